"""Networks for the members of an ensemble: each with its own initial weights."""

from __future__ import annotations

import copy
from collections.abc import Callable

from torch import nn

from calibayes.errors import InvalidArgumentError, UnsupportedNetworkError

__all__ = ["member_network", "one_network"]


def one_network(net: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """The given network, or the one that a given function makes."""
    made = net if isinstance(net, nn.Module) or not callable(net) else net()
    if not isinstance(made, nn.Module):
        raise InvalidArgumentError(
            f"Expected `net` to be a torch.nn.Module or a function that makes one, but got {type(made).__name__}."
        )
    return made


def member_network(net: nn.Module | Callable[[], nn.Module], member: int, reinitialize: bool) -> nn.Module:
    """The network of a member of an ensemble: a given network is that of the first, copies with new weights of the others.

    Copies keep the weights unless they are to ``reinitialize``; a function makes the network of every member.
    """
    made = one_network(net)
    return made if made is not net or member == 0 or not reinitialize else _reinitialized(made)


def _reinitialized(net: nn.Module) -> nn.Module:
    """A copy whose layers have drawn new initial weights, from PyTorch's global generator."""
    copied = copy.deepcopy(net)
    for name, part in copied.named_modules():
        if next(part.parameters(recurse=False), None) is None:
            continue
        reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if reset is None:
            raise UnsupportedNetworkError(
                f"{name or 'the network'!r} ({type(part).__name__}) has weights but no `reset_parameters`, so a further member "
                "cannot be initialised. Pass a function that makes the network, or `reinitialize=False` for members that "
                "start from the same weights."
            )
        reset()
    return copied
