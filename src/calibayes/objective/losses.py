r"""Losses: one number per example, of which the objective takes the mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.calibration.scores import widened
from calibayes.checks import check_targets, class_indices, is_real
from calibayes.errors import InvalidArgumentError

__all__ = ["CrossEntropy", "Focal", "Loss", "OwnLoss", "as_loss", "cross_entropy", "flattened", "widened"]

# Never a label: PyTorch's own default would pass silently over every example that is labelled -100.
_NO_LABEL = -(2**62)
_UNSURE, _GAMMA_UNSURE, _GAMMA_SURE = 0.2, 5.0, 3.0  # FLSD-53


class Loss(ABC):
    """A loss of single examples, for `calibayes.Objective`.

    A subclass has a ``name``, an identifier under which its mean is logged, and is called with logits and targets. ``mean``
    and ``sum`` follow from that; a loss overrides them only where a fused form pays.
    """

    name: str

    @abstractmethod
    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The losses ``[..., n]`` of logits ``[..., n, K]`` and class indices ``[n]`` or ``[..., n]``."""

    def mean(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The mean over examples and samples, each example times its weight ``[n]``."""
        return self._weighted(logits, targets, weights).mean()

    def sum(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The sum over examples of the mean over samples; zero if there are no examples."""
        each = self._weighted(logits, targets, weights)
        return each.sum() * (targets.shape[-1] / max(len(each), 1))

    def _weighted(self, logits: Tensor, targets: Tensor, weights: Tensor | None) -> Tensor:
        """One number for each row of all samples."""
        rows, labels = flattened(logits, targets)
        each = self(rows, labels)
        if not isinstance(each, Tensor) or each.shape != labels.shape:
            got = list(each.shape) if isinstance(each, Tensor) else type(each).__name__
            raise InvalidArgumentError(
                f"Expected the loss {self.name!r} to return one number per example, shape {list(labels.shape)}, but got "
                f"{got}. Return one number per example without averaging; PyTorch's losses do with reduction='none'."
            )
        if rows.requires_grad and torch.is_grad_enabled() and not each.requires_grad:
            raise InvalidArgumentError(
                f"The loss {self.name!r} has no gradient: compute it from the logits with PyTorch's operations, without "
                "`detach`, `item` or NumPy."
            )
        return each if weights is None else (each.view(-1, targets.shape[-1]) * weights.to(each)).view(-1)


@final
@dataclass(frozen=True)
class CrossEntropy(Loss):
    r"""The cross-entropy $-\log p(y|x)$, eq. (ce_loss), optionally with smoothed labels.

    With smoothing $\varepsilon$ (Szegedy et al. 2016, https://arxiv.org/abs/1512.00567) the label counts $1-\varepsilon$, and
    $\varepsilon$ is spread evenly over all classes: $-(1-\varepsilon) \log p_y - \frac{\varepsilon}{K} \sum_{y'} \log p_{y'}$.

    Args:
        label_smoothing: $\varepsilon$, from 0 to below 1.

    Examples:
        >>> logits, targets = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
        >>> CrossEntropy()(logits, targets)
        tensor([0.1269, 1.3133])
    """

    label_smoothing: float = 0.0
    name: str = field(default="cross_entropy", init=False, repr=False)

    def __post_init__(self) -> None:
        if not is_real(self.label_smoothing) or not 0 <= self.label_smoothing < 1:
            raise InvalidArgumentError(
                f"Expected `label_smoothing` to be at least 0 and below 1, but got {self.label_smoothing!r}."
            )

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        rows, labels = flattened(logits, targets)
        each = F.cross_entropy(rows, labels, ignore_index=_NO_LABEL, reduction="none", label_smoothing=self.label_smoothing)
        return each.view(logits.shape[:-1])

    def mean(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        if weights is not None:
            return Loss.mean(self, logits, targets, weights)
        rows, labels = flattened(logits, targets)
        return F.cross_entropy(rows, labels, ignore_index=_NO_LABEL, label_smoothing=self.label_smoothing)


@final
@dataclass(frozen=True)
class Focal(Loss):
    r"""The focal loss $-(1-p_y)^\gamma \log p_y$, which asks less of examples that are already right.

    By Lin et al. (2017, https://arxiv.org/abs/1708.02002). Mukhoti et al. (2020, https://arxiv.org/abs/2002.09437) found it to
    calibrate better than cross-entropy; their FLSD-53 takes $\gamma = 5$ for examples with $p_y < 0.2$ and $\gamma = 3$ for
    the others. $\gamma = 0$ is the cross-entropy.

    Args:
        gamma: $\gamma \ge 0$.
        schedule: ``"flsd"`` for FLSD-53, which chooses $\gamma$ for each example.

    Examples:
        >>> logits, targets = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
        >>> Focal(gamma=2.0)(logits, targets)
        tensor([0.0018, 0.7019])
    """

    gamma: float = 2.0
    schedule: Literal["flsd"] | None = None
    name: str = field(default="focal", init=False, repr=False)

    def __post_init__(self) -> None:
        if not is_real(self.gamma) or not 0 <= self.gamma < float("inf"):
            raise InvalidArgumentError(f"Expected `gamma` to be a non-negative finite number, but got {self.gamma!r}.")
        if self.schedule not in (None, "flsd"):
            raise InvalidArgumentError(f"Expected `schedule` to be None or 'flsd', but got {self.schedule!r}.")
        if self.schedule == "flsd" and self.gamma != 2.0:
            raise InvalidArgumentError(
                f"schedule='flsd' chooses gamma for each example, so gamma={self.gamma!r} would have no effect. Leave it out."
            )

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        rows, labels = flattened(logits, targets)
        log_p = rows.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        # Where p is 1 to the last bit, the slope of a power below 1 would be infinite; the loss and its gradient are zero.
        miss = (-torch.expm1(log_p)).clamp_min(torch.finfo(log_p.dtype).tiny)
        gamma: Tensor | float = self.gamma
        if self.schedule == "flsd":
            gamma = torch.where(log_p.detach().exp() < _UNSURE, _GAMMA_UNSURE, _GAMMA_SURE).to(log_p)
        return (-(miss**gamma) * log_p).view(logits.shape[:-1])


@final
@dataclass(frozen=True)
class OwnLoss(Loss):
    """A function of logits ``[m, K]`` and targets ``[m]`` that returns one number per example, as a `Loss`."""

    function: Callable[[Tensor, Tensor], Tensor]
    name: str

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Call the function; it never sees labels such as -100, which PyTorch's own losses would ignore."""
        check_targets(targets, logits, "logits")
        return self.function(widened(logits), targets)


def cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor | None = None, *, label_smoothing: float = 0.0) -> Tensor:
    r"""The mean over examples and samples of $-\log p(y|x)$, times its weight, for logits ``[..., n, K]``."""
    return CrossEntropy(label_smoothing).mean(logits, targets, weights)


def flattened(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The rows ``[m, K]`` of all samples, in full precision, and their labels ``[m]``."""
    labels = class_indices(targets)
    if logits.dim() > 2:
        labels = labels.expand(logits.shape[:-1]).reshape(-1)
        logits = logits.reshape(-1, logits.shape[-1])
    return widened(logits), labels


def as_loss(loss: Any) -> Loss:
    """``loss`` as a `Loss`, or an error that says what to pass instead."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type):
        raise InvalidArgumentError(
            f"Expected `loss` to be an object, but got the class {loss.__name__}: pass {loss.__name__}()."
        )
    if not callable(loss):
        raise InvalidArgumentError(
            f"Expected `loss` to be a loss such as CrossEntropy(), or a function of (logits, targets), but got {loss!r}."
        )
    if isinstance(loss, nn.Module) and any(parameter.requires_grad for parameter in loss.parameters()):
        raise InvalidArgumentError(
            f"Expected `loss` to have no weights of its own, but {type(loss).__name__} has trainable parameters, which would "
            "never be trained. Make them part of the network, or call `requires_grad_(False)`."
        )
    return OwnLoss(loss, _name_of(loss))


def _name_of(loss: Any) -> str:
    """Its own name, that of the function, or that of the class."""
    function = getattr(loss, "func", loss)  # of a `functools.partial`
    names = (getattr(loss, "name", None), getattr(function, "__name__", None), type(function).__name__)
    name = next(name for name in names if isinstance(name, str))
    return "own_loss" if name == "<lambda>" else name
