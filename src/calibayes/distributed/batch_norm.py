"""Batch norm over the batches of all processes; PyTorch's own (SyncBatchNorm) does not run without a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def batch_norms(network: nn.Module) -> dict[str, _BatchNorm]:
    """The parts of a network that take statistics over the batch, by name; raises for those that cannot be synchronised."""
    norms = {}
    for name, part in network.named_modules():
        if not isinstance(part, _BatchNorm) or not (part.training or part.running_mean is None):
            continue
        if type(part).forward not in (_BatchNorm.forward, nn.SyncBatchNorm.forward):
            raise UnsupportedNetworkError(
                f"{name!r} ({type(part).__name__}) is a batch norm with its own `forward`: its statistics cannot be taken over "
                "several processes. Put nn.BatchNorm in its place, freeze it with `eval()`, or train with `group=None`."
            )
        norms[name] = part
    return norms


def statistics_names(network: nn.Module) -> set[str]:
    """The names of the buffers that synchronised batch norms keep."""
    return {f"{name}.{each}".lstrip(".") for name, part in batch_norms(network).items() for each, _ in part.named_buffers()}


@contextmanager
def synchronised(norms: Sequence[_BatchNorm], processes: Processes, counted: bool) -> Iterator[None]:
    """Let batch norms take their statistics over the examples of all processes; those of this one only if ``counted``."""
    for number, part in enumerate(norms, start=1):
        part.forward = partial(_forward, part, number, processes, counted)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for part in norms:
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
            "they would mix the statistics of different layers. Let it skip the same ones everywhere (by a fixed seed), "
            "freeze the batch norms with `eval()`, or train with `group=None`."
        )
    if part.training and float(count) <= 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
    mean = sums[:-3] / count
    centred = wide - mean.view(shape)
    variance = _summed((centred * centred).sum(axes) * weight, processes) / count
    _advance(part, mean.detach(), variance.detach(), count)
    normed = centred * torch.rsqrt(variance + part.eps).view(shape)
    if part.weight is not None:
        normed = normed * part.weight.view(shape)
    if part.bias is not None:
        normed = normed + part.bias.view(shape)
    return normed.to(x.dtype)


def _advance(part: _BatchNorm, mean: Tensor, variance: Tensor, count: Tensor) -> None:
    """Update the running statistics as PyTorch's batch norm does: with the unbiased variance."""
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
    return _Sum.apply(value, processes)  # type: ignore[no-untyped-call, no-any-return]


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
