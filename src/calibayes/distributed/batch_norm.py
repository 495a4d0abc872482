"""Batch norm over the batches of all processes; PyTorch's own (SyncBatchNorm) refuses to run without a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from calibayes.distributed.processes import Processes
from calibayes.errors import UnsupportedNetworkError

__all__ = ["batch_norms", "statistics_names", "synchronised"]

_FORWARDS = (_BatchNorm.forward, nn.SyncBatchNorm.forward)


def batch_norms(network: nn.Module) -> dict[str, _BatchNorm]:
    """The parts of a network that take statistics over the batch as it is now, by name.

    Raises:
        UnsupportedNetworkError: one of them computes something of its own, which nobody can synchronise.
    """
    found = {
        name: part
        for name, part in network.named_modules()
        if isinstance(part, _BatchNorm) and (part.training or part.running_mean is None)
    }
    for name, part in found.items():
        if type(part).forward not in _FORWARDS:
            raise UnsupportedNetworkError(
                f"{name!r} ({type(part).__name__}) is a batch norm with a `forward` of its own: its statistics cannot be taken "
                "over several processes. Put nn.BatchNorm in its place, freeze it with `eval()`, or train with `group=None`."
            )
    return found


def statistics_names(network: nn.Module) -> set[str]:
    """The names of the buffers that synchronised batch norms keep."""
    return {f"{name}.{each}".lstrip(".") for name, part in batch_norms(network).items() for each, _ in part.named_buffers()}


@contextmanager
def synchronised(parts: Iterable[_BatchNorm], processes: Processes, counted: bool) -> Iterator[None]:
    """While this lasts, batch norms take their statistics over the examples of all processes.

    Args:
        parts: what `batch_norms` found.
        processes: whose examples they are.
        counted: whether the examples of this process are its own.
    """
    found = list(parts)
    for number, part in enumerate(found, start=1):
        part.forward = partial(_forward, part, number, processes, counted)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for part in found:
            del part.forward


def _forward(part: _BatchNorm, number: int, processes: Processes, counted: bool, x: Tensor) -> Tensor:
    part._check_input_dim(x)
    axes = [axis for axis in range(x.dim()) if axis != 1]
    shape = [1, -1, *[1] * (x.dim() - 2)]
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    weight = 1.0 if counted else 0.0
    examples = wide.new_full((1,), wide.numel() // wide.shape[1] * weight)
    which = wide.new_tensor([number, number**2])
    sums = _summed(torch.cat([wide.sum(axes) * weight, examples, which]), processes)
    count = sums[-3].detach()
    if not torch.equal(sums[-2:].detach(), which * processes.size):
        raise UnsupportedNetworkError(
            "The network runs other batch norms in some processes than in others, as one that skips blocks at random does: "
            "they would mix the statistics of different layers. Let it skip the same ones everywhere (a seed of its own), "
            "freeze the batch norms with `eval()`, or train with `group=None`."
        )
    if part.training and float(count) <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
    mean = sums[:-3] / count
    centred = wide - mean.view(shape)
    variance = _summed((centred * centred).sum(axes) * weight, processes) / count
    _advance(part, mean.detach(), variance.detach(), count)
    found = centred * torch.rsqrt(variance + part.eps).view(shape)
    if part.weight is not None:
        found = found * part.weight.view(shape)
    if part.bias is not None:
        found = found + part.bias.view(shape)
    return found.to(x.dtype)


def _advance(part: _BatchNorm, mean: Tensor, variance: Tensor, count: Tensor) -> None:
    """The running statistics, as PyTorch's own batch norm has them: with the unbiased variance."""
    if not (part.training and part.track_running_stats) or part.running_mean is None or part.running_var is None:
        return
    momentum: Any = part.momentum
    if part.num_batches_tracked is not None:
        part.num_batches_tracked.add_(1)
        if momentum is None:
            momentum = 1.0 / float(part.num_batches_tracked)
    momentum = momentum or 0.0
    part.running_mean.lerp_(mean.to(part.running_mean.dtype), momentum)
    unbiased = variance * (count / (count - 1))
    part.running_var.lerp_(unbiased.to(part.running_var.dtype), momentum)


def _summed(value: Tensor, processes: Processes) -> Tensor:
    found: Tensor = _Sum.apply(value, processes)  # type: ignore[no-untyped-call]
    return found


class _Sum(torch.autograd.Function):
    """The sum over all processes; since each has a part of the loss, so is the gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, processes: Processes) -> Tensor:
        ctx.processes = processes
        total = value.clone()
        dist.all_reduce(total, group=processes.group)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.clone()
        dist.all_reduce(total, group=ctx.processes.group)
        return total, None
