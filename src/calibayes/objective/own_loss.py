"""A user's own loss: any function of logits and targets that returns one number per example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor, nn

from calibayes.checks import check_targets
from calibayes.errors import InvalidArgumentError
from calibayes.objective.losses import Loss, widened

__all__ = ["OwnLoss", "as_loss"]


@final
@dataclass(frozen=True)
class OwnLoss(Loss):
    """A function of logits ``[m, K]`` and targets ``[m]``, as a `Loss`.

    Args:
        function: returns one number per example, ``[m]``.
        name: what it is logged as.
    """

    function: Callable[[Tensor, Tensor], Tensor]
    name: str

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Call the function; it never sees labels such as -100, which PyTorch's own losses would ignore."""
        check_targets(targets, logits, "logits")
        return self.function(widened(logits), targets)


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
    """The name it says it has, that of the function, or that of the class."""
    function = getattr(loss, "func", loss)  # what a `functools.partial` is made of
    for name in (getattr(loss, "name", None), getattr(function, "__name__", None), type(function).__name__):
        if isinstance(name, str):
            return "own_loss" if name == "<lambda>" else name
    raise AssertionError("a class has a name")
