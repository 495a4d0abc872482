"""Networks for the members of an ensemble: each with its own initial weights."""

from __future__ import annotations

import copy
from collections.abc import Callable

from torch import nn

from calibayes.errors import InvalidArgumentError, UnsupportedNetworkError

__all__ = ["initialized_anew", "member_network", "one_network"]


def one_network(net: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """The network that is given, or that a function makes."""
    made = net if isinstance(net, nn.Module) or not callable(net) else net()
    if not isinstance(made, nn.Module):
        raise InvalidArgumentError(
            f"Expected `net` to be a torch.nn.Module or a function that makes one, but got {type(made).__name__}."
        )
    return made


def member_network(net: nn.Module | Callable[[], nn.Module], member: int, reinitialize: bool) -> nn.Module:
    """The network of one member of an ensemble: the first is the one that is given, others are initialised anew.

    Args:
        net: a network, or a function that makes one.
        member: its number, from 0.
        reinitialize: whether copies get initial weights of their own; not where a pretrained network is fine-tuned.
    """
    made = one_network(net)
    return made if made is not net or member == 0 or not reinitialize else initialized_anew(made)


def initialized_anew(net: nn.Module) -> nn.Module:
    """A copy whose layers have drawn new initial weights, from PyTorch's global generator."""
    made = copy.deepcopy(net)
    for name, part in made.named_modules():
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
    return made
