r"""What is minimised: $\sum$ cross-entropy $+ \lambda\,\mathrm{AECE} + \beta\,\mathrm{KL}$, eq. (ca-bnn) on a mini-batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from calibayes.calibration.measures import WMMCE, Measure
from calibayes.checks import class_indices, positive
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

    Example:
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
    ) -> Terms:
        r"""The loss of one batch, for a training loop of your own.

        Args:
            logits: ``[n, K]``, or ``[R, n, K]`` for $R$ samples of the weights: each sample's AECE is taken, then averaged.
            targets: labels, ``[n]``.
            kl: what ``posterior.kl()`` returned.
            dataset_size: $|D|$.
            step: the optimiser step, for schedules.
            held_out: logits and targets to take the calibration term on instead.
        """
        cross = cross_entropy(logits, targets)
        total = cross + self.kl_weight(step, dataset_size) * kl
        weight = self.calibration_weight(step, targets.shape[-1])
        aece = cross.new_zeros(())
        if weight > 0:
            r, c = self.scores(*((logits, targets) if held_out is None else held_out))
            aece = self.calibration.value(r, c).mean()
            total = total + weight * aece
        return Terms(total, cross, aece, kl)

    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Confidence and correctness ``[..., n]``: all that the calibration term sees of the network."""
        return self.calibration.scores(_widened(logits).softmax(-1), targets)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over examples and samples of $-\\log p(y|x)$ for logits ``[..., n, K]``."""
    labels = class_indices(targets)
    if logits.dim() > 2:
        labels = labels.expand(logits.shape[:-1]).reshape(-1)
        logits = logits.reshape(-1, logits.shape[-1])
    return F.cross_entropy(_widened(logits), labels, ignore_index=_NO_LABEL)


def _widened(logits: Tensor) -> Tensor:
    """Half precision overflows in the loss, and has too few digits near 1, where confidences lie."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
