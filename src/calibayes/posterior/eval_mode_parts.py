"""The parts of a network that stay in evaluation mode while the rest is trained."""

from __future__ import annotations

from collections.abc import Collection

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

__all__ = ["parts_kept_in_eval_mode"]


def parts_kept_in_eval_mode(network: nn.Module, trained: Collection[str]) -> list[nn.Module]:
    """The parts in evaluation mode of a network in training mode that were put there on purpose.

    These are batch norms, whose statistics are to stay as they are, and parts without a trained weight: a frozen backbone, a
    dropout that was switched off. Any other is trained like the rest: ``from_pretrained`` gives networks in evaluation mode,
    and one that has been given a head or adapters since would be trained without its dropout.

    Args:
        network: the network.
        trained: the names of its weights that are not frozen.
    """
    if not network.training:
        return []
    return [each for name, part in network.named_children() for each in _resting(part, f"{name}.", trained)]


def _resting(part: nn.Module, prefix: str, trained: Collection[str]) -> list[nn.Module]:
    if part.training:
        return [each for name, inner in part.named_children() for each in _resting(inner, f"{prefix}{name}.", trained)]
    learns = any(name.startswith(prefix) for name in trained)
    return [each for each in part.modules() if not each.training and (not learns or isinstance(each, _NormBase))]
