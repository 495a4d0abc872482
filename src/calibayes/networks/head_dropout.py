"""Dropout before the last layer of a network that has none."""

from __future__ import annotations

import copy

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from calibayes.errors import UnsupportedNetworkError
from calibayes.networks.input_dropout import InputDropout

__all__ = ["HEAD_DROPOUT", "with_dropout"]

HEAD_DROPOUT = 0.1  # the probability of the layer that `with_dropout` puts in


def with_dropout(net: nn.Module, p: float = HEAD_DROPOUT) -> nn.Module:
    """A copy of a network with a dropout layer before its last linear layer; a network with dropout stays as it is.

    Examples:
        >>> from torch import nn
        >>> with_dropout(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))[2][0]
        Dropout(p=0.1, inplace=False)
    """
    if any(isinstance(part, _DropoutNd | InputDropout) and part.p > 0 for part in net.modules()):
        return net
    linear = [name for name, part in net.named_modules() if isinstance(part, nn.Linear)]
    if not linear:
        raise UnsupportedNetworkError(
            f"{type(net).__name__} has neither dropout nor a linear layer to put it before. Put an `nn.Dropout` into it."
        )
    if linear[-1] == "":
        return nn.Sequential(nn.Dropout(p), copy.deepcopy(net))
    copied = copy.deepcopy(net)
    copied.set_submodule(linear[-1], nn.Sequential(nn.Dropout(p), copied.get_submodule(linear[-1])))
    return copied
