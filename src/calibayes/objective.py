r"""What is minimised: $\sum$ cross-entropy $+ \lambda\,\mathrm{AECE} + \beta\,\mathrm{KL}$, eq. (ca-bnn) on a mini-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from calibayes.calibration.measures import WMMCE, Measure
from calibayes.checks import check_logits, class_indices, positive
from calibayes.distributed import Group, Processes
from calibayes.errors import InvalidArgumentError
from calibayes.schedules import Schedule, value_at

__all__ = ["SCHEMES", "Objective", "Terms"]

# Never a label: PyTorch's own default would pass silently over every example that is labelled -100.
_NO_LABEL = -(2**62)

SCHEMES = ("fnn", "bnn", "ca-fnn", "ca-bnn")
"""The paper's four schemes: `Point` or `MeanField`, without or with (``ca-``) the calibration term."""


class Terms(NamedTuple):
    """The loss and what it is made of: mean cross-entropy, AECE and KL as they are, before their weights."""

    total: Tensor
    cross_entropy: Tensor
    calibration: Tensor
    kl: Tensor


@dataclass(frozen=True)
class Objective:
    r"""The calibration-aware free energy of eq. (ca-bnn), divided by the size of the batch.

    $$ \frac1R \sum_r \Big[ \frac1{|B|} \sum_{B} -\log p(y|x,\theta_r) + \frac{\lambda}{|B|} \mathrm{AECE}(\theta_r|B) \Big]
       + \frac{\beta}{|D|} \mathrm{KL}(q \| p) $$

    Args:
        lam: $\lambda \ge 0$, or a function of the optimiser step (`calibayes.schedules.Linear`); 0 leaves the term out.
        beta: $\beta \ge 0$, likewise; it has no effect on a `Point`.
        calibration: the measure that stands for AECE.
        lam_scale: ``"paper"`` as above, or ``"mean"`` for $\lambda$ itself beside the mean cross-entropy.

    Examples:
        >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
        >>> terms = Objective(lam=10.0, beta=0.1)(logits, torch.tensor([0, 1, 1]), kl=torch.tensor(50.0), dataset_size=1000)
        >>> {name: round(float(value), 4) for name, value in terms._asdict().items()}
        {'total': 2.7646, 'cross_entropy': 0.4963, 'calibration': 0.679, 'kl': 50.0}
    """

    lam: Schedule = 10.0
    beta: Schedule = 0.1
    calibration: Measure = field(default_factory=WMMCE)
    lam_scale: Literal["paper", "mean"] = "paper"

    def __post_init__(self) -> None:
        value_at(self.lam, 0, "lam")
        value_at(self.beta, 0, "beta")
        if self.lam_scale not in ("paper", "mean"):
            raise InvalidArgumentError(f"Expected `lam_scale` to be 'paper' or 'mean', but got {self.lam_scale!r}.")
        # A class has the methods too: WMMCE for WMMCE() would only fail at the first step.
        methods = [getattr(self.calibration, name, None) for name in ("scores", "value")]
        if isinstance(self.calibration, type) or not all(callable(method) for method in methods):
            raise InvalidArgumentError(f"Expected `calibration` to be a measure such as WMMCE(), but got {self.calibration!r}.")

    def calibration_weight(self, step: int, batch_size: int) -> float:
        r"""What AECE is multiplied by: $\lambda/|B|$, or $\lambda$ for ``lam_scale="mean"``."""
        lam = value_at(self.lam, step, "lam")
        return lam / batch_size if self.lam_scale == "paper" else lam

    def kl_weight(self, step: int, dataset_size: int) -> float:
        r"""What the KL is multiplied by: $\beta/|D|$."""
        return value_at(self.beta, step, "beta") / positive("dataset_size", dataset_size)

    def __call__(
        self,
        logits: Tensor,
        targets: Tensor,
        kl: Tensor,
        *,
        dataset_size: int,
        step: int = 0,
        held_out: tuple[Tensor, Tensor] | None = None,
        group: Group = None,
    ) -> Terms:
        r"""The loss of one batch, for a training loop of your own.

        With a ``group``, the batch is that of all its processes together, and the values are those of the whole batch in
        each of them. Average the gradients over the processes, as ``DistributedDataParallel``, Lightning and accelerate do:
        the mean is the gradient that a single process would have, also where processes have different numbers of examples.

        Args:
            logits: ``[n, K]``, or ``[R, n, K]`` for $R$ samples of the weights: each sample's AECE is taken, then averaged.
            targets: labels, ``[n]``.
            kl: what ``posterior.kl()`` returned.
            dataset_size: $|D|$.
            step: the optimiser step, for schedules.
            held_out: logits and targets to take the calibration term on instead.
            group: the processes that train together, ``"auto"`` for all; by default this one alone.
        """
        processes = Processes.of(group)
        for each in ((logits, targets), *([] if held_out is None else [held_out])):
            check_logits(*each, some=processes.size == 1, within=_at_hand(each[1]))
        if processes.size > 1:
            return self._shared(processes, logits, targets, kl, dataset_size, step, held_out)
        cross = cross_entropy(logits, targets)
        total = cross + self.kl_weight(step, dataset_size) * kl
        weight = self.calibration_weight(step, targets.shape[-1])
        aece = cross.new_zeros(())
        if weight > 0:
            aece = self._measured(processes, *((logits, targets) if held_out is None else held_out))
            total = total + weight * aece
        return Terms(total, cross, aece, kl)

    def term(self, logits: Tensor, targets: Tensor, *, step: int = 0, group: Group = None) -> Tensor:
        r"""The calibration term alone, $\frac{\lambda}{|B|} \mathrm{AECE}$, to be added to a mean loss of your own.

        Arguments as in calling the objective. With a ``group`` the term is that of the batch of all its processes; average
        the gradients over them.

        Examples:
            >>> logits, targets = torch.randn(8, 3, requires_grad=True), torch.arange(8) % 3
            >>> loss = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.1)
            >>> loss = loss + Objective(lam=10.0).term(logits, targets)
            >>> loss.backward()
        """
        processes = Processes.of(group)
        check_logits(logits, targets, some=processes.size == 1)
        own = targets.shape[-1]
        sizes = [own] if processes.size == 1 else processes.counts(own, logits.device)
        weight = self.calibration_weight(step, sum(sizes))
        return weight * self._measured(processes, logits, targets, sizes) if weight > 0 else logits.new_zeros(())

    def _shared(
        self,
        processes: Processes,
        logits: Tensor,
        targets: Tensor,
        kl: Tensor,
        dataset_size: int,
        step: int,
        held_out: tuple[Tensor, Tensor] | None,
    ) -> Terms:
        """The terms of the batch of all processes; gradients are multiplied by their number, since they are averaged."""
        sizes = processes.counts(targets.shape[-1], logits.device)
        own = cross_entropy(logits, targets, reduction="sum") / sum(sizes)
        whole = own.detach().clone()
        processes.sum_([whole])
        cross = with_gradient(whole, own * processes.size)
        total = cross + self.kl_weight(step, dataset_size) * kl
        weight = self.calibration_weight(step, sum(sizes))
        aece = cross.new_zeros(())
        if weight > 0:
            if held_out is None:
                aece = self._measured(processes, logits, targets, sizes)
            else:
                aece = self._measured(processes, *held_out, processes.counts(held_out[1].shape[-1], logits.device))
            total = total + weight * aece
        return Terms(total, cross, aece, kl)

    def _measured(self, processes: Processes, logits: Tensor, targets: Tensor, sizes: Sequence[int] = ()) -> Tensor:
        """AECE of the examples of all processes, of which each has ``sizes``; gradients are multiplied by their number."""
        r, c = self.scores(logits, targets)
        if processes.size == 1:
            return self.aece(r, c)
        value, grad_r, grad_c = self.derivative(r, c, sizes, processes)
        return with_gradient(value, ((r * grad_r).sum() + (c * grad_c).sum()) * processes.size)

    def derivative(
        self, r: Tensor, c: Tensor, sizes: Sequence[int], processes: Processes, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """AECE of the scores of all processes, and its derivative with respect to this one's, outside the graph.

        Args:
            r: this process's confidences, ``[..., n]``.
            c: its correctness.
            sizes: how many each process has.
            processes: all of them.
            weights: how much each of this process's examples counts.
        """
        everyones = None if weights is None else processes.gather(weights, sizes)
        both = processes.gather(torch.stack([r.detach(), c.detach()]), sizes)
        all_r, all_c = (each.detach().requires_grad_() for each in both)
        with torch.enable_grad():
            value = self.aece(all_r, all_c, everyones)
        found = torch.autograd.grad(value, (all_r, all_c), allow_unused=True, materialize_grads=True)
        begin = sum(sizes[: processes.rank])
        grad_r, grad_c = (each[..., begin : begin + sizes[processes.rank]] for each in found)
        return value.detach(), grad_r, grad_c

    def aece(self, r: Tensor, c: Tensor, weights: Tensor | None = None) -> Tensor:
        """The calibration measure of scores ``[..., n]``, averaged over samples of the weights."""
        if weights is None:
            return self.calibration.value(r, c).mean()
        return self.calibration.value(r, c, weights.to(r).expand(r.shape)).mean()

    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Confidence and correctness ``[..., n]``: all that the calibration term sees of the network."""
        return self.calibration.scores(_widened(logits).softmax(-1), targets)


def cross_entropy(
    logits: Tensor, targets: Tensor, weights: Tensor | None = None, *, reduction: Literal["mean", "sum"] = "mean"
) -> Tensor:
    """The mean over examples and samples of $-\\log p(y|x)$, times its weight, for logits ``[..., n, K]``.

    With ``reduction="sum"``, the sum over examples of the mean over samples: also of none.
    """
    labels, count = class_indices(targets), targets.shape[-1]
    if logits.dim() > 2:
        labels = labels.expand(logits.shape[:-1]).reshape(-1)
        logits = logits.reshape(-1, logits.shape[-1])
    if weights is None and reduction == "mean":
        return F.cross_entropy(_widened(logits), labels, ignore_index=_NO_LABEL)
    each = F.cross_entropy(_widened(logits), labels, ignore_index=_NO_LABEL, reduction="none")
    if weights is not None:
        each = (each.view(-1, count) * weights.to(each)).view(-1)
    return each.mean() if reduction == "mean" else each.sum() * (count / max(len(labels), 1))


def _at_hand(targets: Tensor) -> bool:
    """Whether the values of labels can be looked at without waiting for a GPU."""
    return isinstance(targets, Tensor) and targets.device.type == "cpu"


def with_gradient(value: Tensor, source: Tensor) -> Tensor:
    """A number with the value of one and the gradient of another."""
    return value + (source - source.detach())


def _widened(logits: Tensor) -> Tensor:
    """Half precision overflows in the loss, and has too few digits near 1, where confidences lie."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
