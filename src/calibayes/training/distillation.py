"""`distill`: train one network to give an ensemble's probabilities and its uncertainty in one pass."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Dataset

from calibayes.checks import integer, is_real, positive_integer
from calibayes.data.input_structure import batch_length, rows, to_device
from calibayes.data.sources import HasSource, Source
from calibayes.data.sources.taught import TaughtBatches, TaughtTensors
from calibayes.distributed import ProcessGroupChoice
from calibayes.errors import DataError, InvalidArgumentError, NetworkOutputError
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior, Samples
from calibayes.posterior.distilled import Distilled, log_evidence
from calibayes.posterior.network_outputs import logits_of
from calibayes.posterior.network_posterior import trained_network
from calibayes.predictive import predict
from calibayes.randomness import preserved_global_state
from calibayes.training.fit import fit
from calibayes.training.optimizers import OptimizerFactory, SchedulerFactory
from calibayes.training.teacher_targets import EpistemicShare, TeacherCrossEntropy, teacher_targets
from calibayes.training.training_inputs import unlabelled_inputs, unlabelled_source

__all__ = ["distill"]

_FEW, _TINY = 8, 1e-4
_FIXED = ("out_of_domain", "calibration_data", "together", "workers", "objective", "train")


def distill(
    posterior: Posterior,
    x: Any,
    *,
    net: nn.Module | None = None,
    samples: Samples | None = None,
    epistemic_weight: float = 1.0,
    optimizer: OptimizerFactory = torch.optim.Adam,
    scheduler: SchedulerFactory | None = None,
    epochs: int = 20,
    batch_size: int = 128,
    seed: int = 0,
    group: ProcessGroupChoice = "auto",
    **fit_settings: Any,
) -> Distilled:
    r"""Train one network to give a posterior's probabilities, and its epistemic uncertainty, in one pass.

    The student minimises, on average over the inputs, $\mathrm{KL}(t \| p) - w\,[E \log s + A \log(1 - s)]$ (up to a
    constant), where $t$ are the teacher's probabilities, $E$ and $A$ its epistemic and aleatoric uncertainty, $p$ the
    student's probabilities and $s$ the share of its entropy that it states to be epistemic; see `Distilled`.

    No labels are needed, so inputs that nobody has labelled are welcome: a teacher that has fitted its training data closely
    disagrees about them in another way than about new ones.

    Args:
        posterior: the teacher, trained: an `Ensemble`, or anything else that `calibayes.predict` takes. It is not changed.
        x: inputs: a tensor, a dict of tensors, ``((x1, x2),)`` for several arguments, a Dataset or a DataLoader (labels in
            it are ignored). The teacher predicts tensors once. A Dataset, a DataLoader or a `calibayes.data.augment.Augmented`
            may change its inputs at random, so the teacher predicts every batch as it is read, which takes longer.
        net: the student, a network with as many logits as there are classes, which starts at its own weights. By default
            the network of the posterior's first member, which starts at that member's mean weights.
        samples: of the teacher's prediction, as in `calibayes.predict`.
        epistemic_weight: $w$.
        optimizer: a factory, parameters → optimiser.
        scheduler: a factory, optimiser → learning-rate scheduler; by default the rate falls to zero along a cosine.
        epochs: passes over the inputs.
        batch_size: inputs a step; a DataLoader's own batch size counts.
        seed: of shuffling, dropout and the teacher's samples.
        group: processes that train together, as in `calibayes.fit`.
        **fit_settings: further arguments of `calibayes.fit`, such as ``validation`` (with labels), ``averaging``,
            ``checkpoint``, ``device``, ``on_epoch`` or ``progress``.

    Returns:
        The student: a posterior for `calibayes.predict`, `calibayes.save` and everything else.

    Examples:
        >>> x = torch.randn(200, 4)
        >>> teacher = calibayes.Ensemble.of(lambda seed: calibayes.Point(torch.nn.Linear(4, 3)), members=5)
        >>> history = calibayes.fit(teacher, (x[:50], x[:50, :3].argmax(-1)), calibayes.Objective(lam=0.0), epochs=5)
        >>> student = calibayes.distill(teacher, x, epochs=5)
        >>> predictive = calibayes.predict(student, x)
        >>> predictive.probs.shape, bool((predictive.epistemic <= predictive.entropy).all())
        (torch.Size([200, 3]), True)
    """
    if not isinstance(posterior, Posterior):
        raise InvalidArgumentError(
            f"Expected `posterior` to be a trained posterior such as Ensemble, but got {type(posterior).__name__}."
        )
    if fixed := [name for name in _FIXED if name in fit_settings]:
        raise InvalidArgumentError(f"`{fixed[0]}` has no meaning when a network is distilled. Leave it out.")
    if not is_real(epistemic_weight) or not 0 <= epistemic_weight < float("inf"):
        raise InvalidArgumentError(
            f"Expected `epistemic_weight` to be a finite number of at least 0, but got {epistemic_weight!r}."
        )
    for name, count in (("epochs", epochs), ("batch_size", batch_size)):
        positive_integer(name, count)
    integer("seed", seed)

    student = Distilled(posterior.members[0].trainable_network() if net is None else trained_network(net))

    def teach(inputs: Any, group: ProcessGroupChoice = None) -> Tensor:
        return teacher_targets(predict(posterior, inputs, samples=samples, seed=seed, group=group))

    taught: TaughtTensors | TaughtBatches
    if isinstance(x, Dataset | DataLoader | HasSource):
        source = _source(x, batch_size)
        with preserved_global_state(student.device):
            _check_outputs(student, posterior, source.draw(_FEW, seed, "outputs").inputs)
        taught = TaughtBatches(source, teach)
    else:
        inputs = unlabelled_inputs(x, "x")
        if batch_length(inputs, "x") == 0:
            raise DataError("There is nothing to learn from: `x` has no examples.")
        _check_outputs(student, posterior, rows(inputs, slice(_FEW)))
        taught = TaughtTensors(inputs, teach(inputs, group), batch_size, "x")
    objective = Objective(loss=TeacherCrossEntropy(), terms=(EpistemicShare(epistemic_weight),), beta=0.0)
    if scheduler is None:
        scheduler = partial(CosineAnnealingLR, T_max=epochs * taught.steps())
        fit_settings["scheduler_interval"] = "step"
    fit_settings |= {"optimizer": optimizer, "scheduler": scheduler, "epochs": epochs, "batch_size": batch_size, "seed": seed}
    fit(student, taught, objective, group=group, **fit_settings)
    return student


def _source(x: Any, batch_size: int) -> Source:
    """Inputs that are read batch by batch, as they are in training."""
    if isinstance(x, HasSource):
        return x.source(batch_size, "x")
    own = x.batch_size if isinstance(x, DataLoader) else None
    return unlabelled_source(x, own or batch_size, "x")


@torch.no_grad()
def _check_outputs(student: Distilled, teacher: Posterior, inputs: Any) -> None:
    """Raise `NetworkOutputError` unless the student has the teacher's classes and logits that can carry the evidence."""
    count = batch_length(inputs, "x")
    with student.evaluating():
        logits = logits_of(student.call(student.mean_vectors(), to_device(inputs, student.device)), count)
    classes = predict(teacher, inputs, samples="mean").probs.shape[-1]
    if logits.shape[-1] != classes:
        raise NetworkOutputError(
            f"The student returns {logits.shape[-1]} logits, but the posterior has {classes} classes. "
            f"Pass a `net` with {classes} outputs."
        )
    normalised = bool((log_evidence(logits).abs() < _TINY).all())
    tied = bool((logits == 0).all(0).any()) and bool(logits.any())
    if normalised or tied:
        how = "are normalised, as after a log-softmax" if normalised else "of one class are always zero"
        raise NetworkOutputError(
            f"The student's logits {how}, but adding a number to all of them must be possible: it says how much of the "
            "uncertainty is epistemic. Pass a `net` that ends in a plain linear layer with an output for each class."
        )
