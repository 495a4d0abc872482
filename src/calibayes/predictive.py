r"""Ensemble prediction, eq. (bayesian_predictive): the average of $p(y|x,\theta_s)$ over samples of the weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from calibayes.checks import number_of_samples, positive_integer
from calibayes.data.input_structure import batch_length
from calibayes.data.sources import Source
from calibayes.data.sources.input_blocks import input_blocks
from calibayes.device_precision import widest_float
from calibayes.distributed import ALONE, Processes, ProcessGroupChoice
from calibayes.distributed.processes import whole
from calibayes.errors import DataError, InvalidArgumentError, UnsupportedNetworkError
from calibayes.posterior.abstract_posterior import Output, Posterior, Samples
from calibayes.posterior.drawn_networks import DrawnNetworks
from calibayes.posterior.dropout_masks import dropout_layers
from calibayes.posterior.network_outputs import entropy, logits_of
from calibayes.posterior.network_posterior import NetworkPosterior

__all__ = ["Predictive", "Samples", "predict", "predict_networks", "predict_source", "samples_for"]

_USUAL_SAMPLES = 20


@dataclass(frozen=True)
class Predictive:
    r"""The prediction of an ensemble, one row per example; uncertainties are in nats.

    Attributes:
        probs: $p(y|x,D)$, shape ``[n, K]``.
        aleatoric: the mean entropy of the samples, $E_\theta H[p(y|x,\theta)]$, which more data would not reduce; a `Distilled`
            network states it itself.
        samples: every sample's probabilities, ``[S, n, K]``, if requested. ``probs`` is their mean, except for an `Ensemble`
            whose members have different numbers of samples (points beside distributions): every member has the same weight.
        members_entropy: the mean entropy of an `Ensemble`'s members, each averaged over its samples; ``None`` for others.

    Examples:
        >>> samples = torch.tensor([[[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.1, 0.9]]])  # S = 2, n = 2
        >>> aleatoric = torch.special.entr(samples).sum(-1).mean(0)
        >>> predictive = calibayes.Predictive(samples.mean(0), aleatoric)
        >>> predictive.entropy, predictive.epistemic  # equally uncertain; the second because the samples disagree
        (tensor([0.6931, 0.6931]), tensor([0.0000, 0.3681]))
    """

    probs: Tensor
    aleatoric: Tensor
    samples: Tensor | None = None
    members_entropy: Tensor | None = None

    @property
    def confidence(self) -> Tensor:
        """The probability of the decision."""
        return self.probs.max(-1).values

    @property
    def decision(self) -> Tensor:
        """The most probable class."""
        return self.probs.argmax(-1)

    @property
    def entropy(self) -> Tensor:
        """The total uncertainty, the entropy of ``probs``."""
        return entropy(self.probs)

    @property
    def epistemic(self) -> Tensor:
        """The disagreement of the samples: ``entropy`` minus ``aleatoric``, the mutual information of label and weights."""
        return (self.entropy - self.aleatoric).clamp_min(0)

    @property
    def between(self) -> Tensor:
        """The disagreement of the members of an `Ensemble`: the part of ``epistemic`` between them."""
        if self.members_entropy is None:
            return torch.zeros_like(self.aleatoric)
        return (self.entropy - self.members_entropy).clamp_min(0)

    @property
    def within(self) -> Tensor:
        """The disagreement of the samples of each member: the rest of ``epistemic``."""
        return (self.epistemic - self.between).clamp_min(0)


def predict(
    posterior: Posterior,
    x: Any,
    *,
    samples: Samples | None = None,
    batch_size: int = 512,
    seed: int = 0,
    keep_samples: bool = False,
    dtype: torch.dtype | None = None,
    group: ProcessGroupChoice = None,
) -> Predictive:
    r"""Average the network's probabilities over samples of the weights.

    The same seed gives the same $\theta_s$ for any batch size. Memory does not grow with ``samples`` nor, beyond the result,
    with the number of examples.

    Args:
        posterior: a trained posterior; a `Point` has one sample, an `Ensemble` at least one for each member.
        x: inputs: a tensor, a tuple or dict of tensors, a Dataset or a DataLoader (labels in it are ignored).
        samples: $S$, 20 by default; ``"mean"`` for the mean weights alone, ``"closed-form"`` where the posterior has one. An
            `Ensemble` draws $\lceil S/M \rceil$ from each member that is random.
        batch_size: the number of examples per forward pass.
        seed: of the samples.
        keep_samples: also return every sample's probabilities.
        dtype: of the probabilities; that of the logits by default. In ``torch.float64`` those below 1e-45, which are zero in
            float32 and make an NLL infinite, keep their value.
        group: processes that predict a share of the examples each; all must call this with the same ``x``, and all get all
            predictions. ``"auto"`` for those that ``torchrun`` has started; by default this process predicts everything.

    Examples:
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3), init_std=0.5)
        >>> predictive = calibayes.predict(posterior, torch.randn(6, 4), samples=8)
        >>> predictive.probs.shape, bool((predictive.epistemic > 0).all())
        (torch.Size([6, 3]), True)
    """
    if not isinstance(posterior, Posterior):
        raise InvalidArgumentError(
            f"Expected `posterior` to be a posterior such as Point or MeanField, but got {type(posterior).__name__}. "
            "Wrap it: `Point(net)`."
        )
    positive_integer("batch_size", batch_size)
    _check_not_ignored(posterior, samples)
    processes, totals = Processes.of(group), list[int]()
    _check_shareable(posterior, processes)
    own = _run(posterior, input_blocks(x, batch_size, processes, totals), samples, seed, keep_samples, dtype)
    return _whole(own, totals, processes)


def predict_source(
    posterior: Posterior, source: Source, *, samples: Samples | None, seed: int, processes: Processes = ALONE
) -> tuple[Predictive, Tensor, Tensor | None]:
    """The predictive of labelled data that is read once, with the labels, and weights if there are any, in the same order.

    Each of several processes predicts its rows of every batch; all get all predictions. They are precise enough for a finite
    NLL.
    """
    _check_shareable(posterior, processes)
    targets: list[Tensor] = []
    weights: list[Tensor] = []
    totals: list[int] = []

    def blocks() -> Iterator[list[Any]]:
        for batch in source.ordered(processes=processes):
            targets.append(batch.targets)
            weights.extend([] if batch.weights is None else [batch.weights])
            totals.append(batch.total)
            yield [batch.inputs]

    predictive = _run(posterior, blocks(), samples, seed, dtype=widest_float(posterior.device))
    device = predictive.probs.device
    labels = whole(torch.cat(targets).to(device), totals, processes)
    counts = whole(torch.cat(weights).to(device), totals, processes) if weights else None
    return _whole(predictive, totals, processes), labels, counts


def _check_shareable(posterior: Posterior, processes: Processes) -> None:
    """Raise if predictions depend on the other examples of a batch, and so on the number of processes."""
    odd = [
        name
        for member in posterior.members
        for name, part in member.structure().named_modules()
        if processes.size > 1 and isinstance(part, _BatchNorm) and part.running_mean is None
    ]
    if odd:
        raise UnsupportedNetworkError(
            f"{odd[0]!r} takes the statistics of the batch at hand (track_running_stats=False), so predictions would depend on "
            "the number of processes. Predict in one process, with `group=None`."
        )


def _whole(own: Predictive, totals: Sequence[int], processes: Processes) -> Predictive:
    """Gather the predictions of all processes."""
    if processes.size == 1:
        return own
    kept = None if own.samples is None else whole(own.samples.movedim(1, 0), totals, processes).movedim(0, 1)
    between = None if own.members_entropy is None else whole(own.members_entropy, totals, processes)
    return Predictive(whole(own.probs, totals, processes), whole(own.aleatoric, totals, processes), kept, between)


@torch.no_grad()
def _run(
    posterior: Posterior,
    blocks: Iterator[Sequence[Any]],
    samples: Samples | None,
    seed: int,
    keep_samples: bool = False,
    dtype: torch.dtype | None = None,
) -> Predictive:
    wanted = _USUAL_SAMPLES if samples is None else samples
    if wanted != "closed-form":
        number_of_samples("samples", wanted)
    results = []
    # One batch at a time, since a head keeps something of each.
    apart = any(member.head is not None for member in posterior.members)
    with posterior.evaluating():
        for block in blocks:
            for part in [[each] for each in block] if apart else [block] if len(block) else []:
                results.append(_run_block(posterior, part, wanted, seed, keep_samples, dtype))
    if not results:
        raise DataError("There is nothing to predict: `x` has no examples.")
    members_entropy = [each.members_entropy for each in results if each.members_entropy is not None]
    return Predictive(
        torch.cat([each.probs for each in results]),
        torch.cat([each.aleatoric for each in results]),
        torch.cat([each.samples for each in results if each.samples is not None], dim=1) if keep_samples else None,
        torch.cat(members_entropy) if members_entropy else None,
    )


def samples_for(posterior: Posterior, samples: Samples) -> Samples:
    """``samples``, or ``"mean"`` for a posterior whose samples are all the same, for callers that always have a number."""
    return samples if posterior.random else "mean"


def _check_not_ignored(posterior: Posterior, samples: Samples | None) -> None:
    """Raise if samples are requested of a network whose dropout is off in prediction: all would be the same."""
    if posterior.random or not isinstance(samples, int) or samples <= 1:
        return
    layers = [name for member in posterior.members for name in dropout_layers(member.structure())]
    if layers:
        raise InvalidArgumentError(
            f"This {type(posterior).__name__} has one value per weight; its dropout ({layers[0]!r}) is off when it predicts, "
            f"so `samples={samples}` would be one sample. Use `MCDropout(net)` to keep dropout on, or leave `samples` out."
        )


def predict_networks(
    posterior: Posterior,
    networks: DrawnNetworks,
    x: Tensor,
    *,
    batch_size: int = 512,
    dtype: torch.dtype | None = None,
) -> Predictive:
    """`predict` with networks that `drawn_networks` drew from the posterior before, for an input that is one tensor."""
    batches = x.split(batch_size)
    with torch.inference_mode():
        return _average(posterior.members, networks.outputs(batches), [len(batch) for batch in batches], False, dtype)


def _run_block(
    posterior: Posterior, block: Sequence[Any], samples: Samples, seed: int, keep_samples: bool, dtype: torch.dtype | None
) -> Predictive:
    """Run all networks over a block of batches: weights are drawn, and put in place, once for the block."""
    sizes = [batch_length(inputs, "x") for inputs in block]
    return _average(posterior.members, posterior.outputs(block, samples, seed), sizes, keep_samples, dtype)


def _average(
    members: Sequence[NetworkPosterior],
    networks: Iterable[Output],
    sizes: Sequence[int],
    keep_samples: bool,
    dtype: torch.dtype | None,
) -> Predictive:
    """Average over the outputs of the members' networks for batches of these sizes."""
    kept: list[Tensor] = []
    counts: list[int] = []  # of each member's samples
    sums: list[tuple[Tensor, Tensor]] = []  # of each member's probabilities, and of their aleatoric uncertainties
    for member, outputs in networks:
        batches = [logits_of(out, size) for out, size in zip(outputs, sizes, strict=True)]
        logits = batches[0] if len(batches) == 1 else torch.cat(batches)
        probs = logits.softmax(-1, dtype=dtype)
        aleatoric = members[member].aleatoric(logits, probs)
        if keep_samples:
            kept.append(probs.clone())
        if member == len(sums):
            counts.append(1)
            sums.append((probs, aleatoric))
        else:
            counts[member] += 1
            sums[member][0].add_(probs)
            sums[member][1].add_(aleatoric)
    means = [each if count == 1 else (each[0] / count, each[1] / count) for each, count in zip(sums, counts, strict=True)]
    stacked = torch.stack(kept) if kept else None
    if len(means) == 1:
        return Predictive(*means[0], stacked)
    columns = [*zip(*means, strict=True), [entropy(probs) for probs, _ in means]]
    probs, aleatoric, members_entropy = (sum(each[1:], each[0]) / len(means) for each in columns)
    return Predictive(probs, aleatoric, stacked, members_entropy)
