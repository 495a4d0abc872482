"""`fit`: train a posterior on a data set with an objective."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Literal

import torch

from calibayes.checkpoint import CheckpointFolder
from calibayes.checks import integer, is_real, positive, positive_integer
from calibayes.data.overlap import check_apart
from calibayes.data.sources import as_source
from calibayes.distributed import Processes, ProcessGroupChoice
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.objective import Objective, check_data, checked_objective
from calibayes.objective.terms import On
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.randomness import preserved_global_state
from calibayes.training.early_stopping import BestEpoch, EarlyStopping, stopping_rule
from calibayes.training.epoch_metrics import OnEpoch
from calibayes.training.fingerprint import fingerprint, sampled
from calibayes.training.history import History
from calibayes.training.optimizers import OptimizerFactory, SchedulerFactory, check_interval, made_optimizer, made_scheduler
from calibayes.training.separate_members import fit_members
from calibayes.training.stacked_members import MembersSource, StackedParameters, TogetherStepper
from calibayes.training.step import Stepper, StepSettings
from calibayes.training.training_inputs import chosen_device, unlabelled_source
from calibayes.training.training_run import TrainingRun
from calibayes.training.weight_averaging import Averaging, check_averaging
from calibayes.training.weight_checks import check_full_precision

__all__ = ["fit"]

_EXTRA_DATA: dict[On, str] = {"held_out": "calibration_data", "out_of_domain": "out_of_domain"}
_PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def fit(
    posterior: Posterior,
    train: Any,
    objective: Objective,
    *,
    optimizer: OptimizerFactory = torch.optim.Adam,
    epochs: int = 20,
    batch_size: int = 128,
    samples: int = 1,
    validation: Any = None,
    calibration_data: Any = None,
    out_of_domain: Any = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    scheduler: SchedulerFactory | None = None,
    scheduler_interval: Literal["epoch", "step"] = "epoch",
    early_stopping: EarlyStopping | int | None = None,
    averaging: Averaging | None = None,
    validation_samples: int = 10,
    micro_batch_size: int | None = None,
    sample_chunk: int | Literal["auto"] = "auto",
    clip_norm: float | None = None,
    precision: Literal["bfloat16", "float16"] | None = None,
    device: str | torch.device | None = None,
    checkpoint_seconds: float = 60.0,
    on_epoch: OnEpoch | None = None,
    group: ProcessGroupChoice = "auto",
    progress: bool | None = None,
    workers: int = 1,
    together: bool = False,
) -> History:
    r"""Train a posterior: Algorithm 1, for all four schemes.

    The posterior is changed in place and left in evaluation mode. Where a network in training mode was given, its batch norms
    in evaluation mode and its parts in evaluation mode without a trained weight (a frozen backbone, say) stay in it. Ctrl-C
    ends training after the step under way and keeps what was learned.

    Args:
        posterior: a `Point` (FNN, CA-FNN), a `MeanField` (BNN, CA-BNN) or any other; the members of an `Ensemble` are trained
            separately, with different seeds.
        train: a pair ``(x, y)`` of tensors or arrays (``x`` may be a tuple or dict of them), or ``(x, y, weights)`` with
            how much each example counts (only ratios matter); a Dataset, or a DataLoader (whose own batch size counts).
        objective: what is minimised.
        optimizer: a factory, parameters → optimiser; called with named parameter groups, $\rho$ without weight decay. Or a
            `NaturalGradient`.
        epochs: passes over the data.
        batch_size: $|B|$, at most: an epoch is cut into batches that differ in size by one example at most, so that no small
            one is left over at its end. (A DataLoader does leave one, unless it has ``drop_last``.)
        samples: $R$, samples of the weights a step.
        validation: data for metrics after every epoch.
        calibration_data: held-out data to take the calibration term on instead of the training batch, and for terms with
            ``on="held_out"``; a batch of the training batch's size is drawn each step. It must be apart from ``validation``.
        out_of_domain: inputs of none of the classes, for terms such as `ConfidenceMinimization`; drawn likewise. They have no
            labels: ``(x,)``, ``x``, or a Dataset of inputs (labels in it are ignored).
        seed: of shuffling, noise and dropout; the caller's global generators are left as they were.
        checkpoint: a folder. If the process is killed at any moment and ``fit`` called again, training continues from the
            last checkpoint, also in the middle of an epoch, and ends with the same bits.
        scheduler: a factory, optimiser → learning-rate scheduler.
        scheduler_interval: whether the scheduler steps once an ``"epoch"`` or once a ``"step"``.
        early_stopping: a patience in epochs, or an `EarlyStopping`; needs ``validation``.
        averaging: an `EMA` or an `EqualAverage` of the weights (of $\mu$ and $\rho$ alike). Validation, ``early_stopping``
            and ``on_epoch`` see the average, and the posterior holds it in the end. Running statistics of batch norms are
            estimated for it by a pass over the training data, each time it is used.
        validation_samples: $S$ of the validation metrics.
        micro_batch_size: run the batch through the network in parts of at most this many examples; the calibration term
            stays that of the whole batch (at the price of a second forward pass).
        sample_chunk: how many samples run through the network at once; ``"auto"`` chooses by the network's layers.
        clip_norm: clip the gradient to this norm.
        precision: run the network in ``"bfloat16"`` or ``"float16"``; weights and loss stay in full precision.
        device: where to train; by default a GPU if there is one.
        checkpoint_seconds: how often a checkpoint is written within an epoch.
        on_epoch: called after every epoch with the posterior and the number of the epoch (from 1), to look at it; numbers
            that it returns by name are kept in the history of the epoch, and ``False`` ends training. Its time is not counted
            as training. Every one of several processes calls it; the first one's result counts.
        group: the processes that train together, each of which must be given the same data: by default all that
            ``torchrun`` has started; a process group of ``torch.distributed``; ``None`` for this process alone. Batches,
            and the calibration term, are those of all processes together, and the result is that of a single one.
        progress: show a progress line; by default where standard error is a terminal.
        workers: how many members of an ensemble are trained at a time, each in its own process.
        together: train all members of an ensemble at once, side by side in every operation (``vmap``). That pays for small
            networks of linear layers. Validation and early stopping then look at the ensemble rather than at each member.

    Returns:
        The `History` of the run.

    Examples:
        >>> x, y = torch.randn(64, 4), torch.arange(64) % 3
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3))
        >>> history = calibayes.fit(posterior, (x, y), calibayes.Objective(lam=10.0, beta=0.1), epochs=2, batch_size=16)
        >>> len(history.epochs), len(history.steps)
        (2, 8)
    """
    arguments = {name: value for name, value in locals().items() if name not in ("posterior", "workers", "together")}
    if not isinstance(posterior, Posterior):
        raise InvalidArgumentError(
            f"Expected `posterior` to be a posterior such as Point or MeanField, but got {type(posterior).__name__}. "
            "Wrap it: `Point(net)`."
        )
    positive_integer("workers", workers)
    if posterior.members != (posterior,) and not together:
        return fit_members(fit, posterior, arguments, workers)
    if workers > 1:
        reason = "`together` trains all at once: leave one of the two out" if together else "this is not one: use `workers=1`"
        raise InvalidArgumentError(f"`workers={workers}` trains the members of an ensemble apart, but {reason}.")
    given = checked_objective(objective)
    objective = given if calibration_data is None else given.on_held_out()
    extra: dict[On, Any] = {"held_out": calibration_data, "out_of_domain": out_of_domain}
    check_data(objective.terms, [on for on, data in extra.items() if data is not None], _EXTRA_DATA)
    integer("seed", seed)
    counts = {"epochs": epochs, "batch_size": batch_size, "samples": samples, "validation_samples": validation_samples}
    if micro_batch_size is not None:
        counts["micro_batch_size"] = micro_batch_size
    if sample_chunk != "auto":
        counts["sample_chunk"] = sample_chunk
    for name, value in counts.items():
        positive_integer(name, value)
    if precision is not None and precision not in _PRECISIONS:
        raise InvalidArgumentError(f"Expected `precision` to be one of {list(_PRECISIONS)}, but got {precision!r}.")
    if on_epoch is not None and not callable(on_epoch):
        raise InvalidArgumentError(f"Expected `on_epoch` to be a function of posterior and epoch, but got {on_epoch!r}.")
    if checkpoint is not None and (not isinstance(checkpoint, str | PathLike) or not str(checkpoint)):
        raise InvalidArgumentError(f"Expected `checkpoint` to be the path of a folder, but got {checkpoint!r}.")
    if not is_real(checkpoint_seconds) or not checkpoint_seconds >= 0:
        raise InvalidArgumentError(
            f"Expected `checkpoint_seconds` to be a number of at least 0, but got {checkpoint_seconds!r}."
        )
    check_interval(scheduler_interval)
    check_averaging(averaging, epochs, posterior)
    rule = stopping_rule(early_stopping)
    if rule is not None and validation is None:
        raise InvalidArgumentError("`early_stopping` needs `validation` data to look at.")
    check_full_precision(posterior, "Convert them with `posterior.float()`; `precision='bfloat16'` runs the network in half.")
    for member in posterior.members:
        member.check_epochs(epochs)
    check_apart(calibration_data, validation, "calibration_data", "validation")
    processes = Processes.of(group)
    if together and (posterior.members == (posterior,) or processes.size > 1):
        raise InvalidArgumentError("`together` trains the members of an ensemble in one process. Use `together=False`.")
    if together and hasattr(optimizer, "bind"):
        raise InvalidArgumentError(f"{type(optimizer).__name__} trains one member at a time. Use `together=False`.")
    posterior.to(chosen_device(device, processes))
    source = as_source(train, batch_size, "train")
    watched = None if validation is None else as_source(validation, max(batch_size, 512), "validation")
    held_out = None if calibration_data is None else as_source(calibration_data, batch_size, "calibration_data")
    outside = None if out_of_domain is None else unlabelled_source(out_of_domain, batch_size, "out_of_domain")
    stacked = StackedParameters(posterior) if together else None
    torch_optimizer = made_optimizer(optimizer, posterior if stacked is None else stacked, objective, lambda: source.size)
    settings = StepSettings(
        samples=samples,
        sample_chunk=sample_chunk,
        micro_batch_size=micro_batch_size,
        clip_norm=None if clip_norm is None else positive("clip_norm", clip_norm),
        precision=None if precision is None else _PRECISIONS[precision],
        seed=int(seed),
    )
    lr_scheduler = None if scheduler is None else made_scheduler(scheduler, torch_optimizer, scheduler_interval)
    folder = None
    if checkpoint is not None or processes.size > 1:
        others = {
            "batch_size": batch_size,
            "early_stopping": rule,
            "averaging": averaging,
            "scheduler": None if lr_scheduler is None else type(lr_scheduler).__name__,
            "scheduler_interval": scheduler_interval,
            "scheduler_settings": None if lr_scheduler is None else lr_scheduler.state_dict(),
            "validation": sampled(watched),
            "validation_samples": validation_samples,
            "calibration_data": sampled(held_out),
            "out_of_domain": sampled(outside),
            "together": len(posterior.members) if together else None,
        }
        identity = fingerprint(posterior.members[0], source, given, torch_optimizer, settings, **others)
        drawn = (watched, held_out, outside)
        shapes = [None if each is None else (type(each).__name__, each.size, each.steps()) for each in drawn]
        if strangers := processes.differ({**identity, "epochs": epochs, "others": shapes, "kept": checkpoint is not None}):
            raise DataError(
                f"Processes {strangers} of {processes.size} were given other data or settings than process 0. Give every "
                "process the whole data set, and let `fit` share it out; or train in this process alone with `group=None`."
            )
        if checkpoint is not None:
            folder = processes.from_first(lambda: CheckpointFolder(checkpoint, identity))
    stepper: Stepper | TogetherStepper = (
        Stepper(posterior.members[0], objective, torch_optimizer, source.size, settings, processes)
        if stacked is None
        else TogetherStepper(posterior, objective, torch_optimizer, source.size, settings, stacked)
    )
    run = TrainingRun(
        stepper=stepper,
        epochs=epochs,
        scheduler=lr_scheduler,
        scheduler_interval=scheduler_interval,
        train=source if stacked is None else MembersSource(source, len(posterior.members)),
        validation=watched,
        validation_samples=validation_samples,
        calibration_data=held_out,
        out_of_domain=outside,
        best=None if rule is None else BestEpoch(rule),
        averaging=averaging,
        folder=folder,
        checkpoint_seconds=checkpoint_seconds,
        on_epoch=on_epoch,
        progress=progress,
    )
    with preserved_global_state(posterior.device):
        if watched is not None:
            watched.draw(1, settings.seed, "label")  # examples without labels are an error now, not after an epoch
        try:
            return run.go()
        finally:
            if stacked is not None:
                stacked.release()
