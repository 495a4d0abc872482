"""Processes that work on one batch together: the part of each, and messages that put parts together."""

from __future__ import annotations

import atexit
import gc
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from calibayes.errors import InvalidArgumentError

__all__ = ["ALONE", "ProcessGroupChoice", "Processes", "local_gpu", "whole"]

ProcessGroupChoice = dist.ProcessGroup | Literal["auto"] | None
"""The processes that work together: a group, all that were started together, or none but this one."""

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """The processes of a group, seen from one of them."""

    group: dist.ProcessGroup | None = None  # ``None`` for a single process
    rank: int = 0  # of this process
    size: int = 1  # of the group

    @classmethod
    def of(cls, group: ProcessGroupChoice) -> Processes:
        """Those of a group; ``"auto"`` finds the ones that ``torchrun`` started, and connects them if need be."""
        if group is None or not dist.is_available() or os.environ.get(_CONNECTED, str(os.getpid())) != str(os.getpid()):
            return ALONE  # the last: a child of a connected process is not part of the group
        if isinstance(group, str):
            if group != "auto":
                raise InvalidArgumentError(f"Expected `group` to be a process group, 'auto' or None, but got {group!r}.")
            if not dist.is_initialized() and not _connect():
                return ALONE
        chosen = dist.group.WORLD if isinstance(group, str) else group
        if chosen is None or dist.get_world_size(chosen) == 1:
            return ALONE
        rank = dist.get_rank(chosen)
        if rank < 0:
            raise InvalidArgumentError("Expected `group` to be one that this process is part of, but it is not.")
        atexit.unregister(_leave)  # so that it is registered once, and after the functions of the group's owner
        atexit.register(_leave)
        return cls(chosen, rank, dist.get_world_size(chosen))

    @property
    def first(self) -> bool:
        """True in the process that writes files and prints messages."""
        return self.rank == 0

    def sizes(self, count: int) -> list[int]:
        """Return how many of ``count`` examples each process has; they differ by one at most."""
        return [(rank + 1) * count // self.size - rank * count // self.size for rank in range(self.size)]

    def share(self, count: int) -> slice:
        """Return which of ``count`` examples belong to this process."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def rows(self, count: int) -> slice:
        """The same, but never empty: with fewer examples than processes, an example of another one that does not count."""
        own = self.share(count)
        return own if own.start < own.stop else slice(0, 1)

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes: one message for each type of number."""
        if self.size == 1:
            return
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            alike = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = self._sendable(torch.cat([tensor.reshape(-1) for tensor in alike]))
            dist.all_reduce(flat, group=self.group)
            parts = flat.split([tensor.numel() for tensor in alike])
            for tensor, part in zip(alike, parts, strict=True):
                tensor.copy_(part.view_as(tensor))

    def gather(self, own: Tensor, sizes: Sequence[int]) -> Tensor:
        """The parts of all processes, of lengths ``sizes``, side by side along the last axis, outside the graph."""
        if self.size == 1:
            return own.detach()
        padded = self._sendable(own.new_zeros((*own.shape[:-1], max(sizes))))
        padded[..., : own.shape[-1]] = own.detach()
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded, group=self.group)
        return torch.cat([part[..., :size] for part, size in zip(parts, sizes, strict=True)], dim=-1).to(own.device)

    def _sendable(self, tensor: Tensor) -> Tensor:
        """The tensor on a device that the group can send from: nccl sends from GPUs only."""
        on_gpu = tensor.device.type == "cpu" and dist.get_backend(self.group) == "nccl"
        return tensor.cuda() if on_gpu else tensor

    def counts(self, own: int, device: torch.device) -> list[int]:
        """The numbers that all processes pass as ``own``."""
        counts = torch.zeros(self.size, dtype=torch.int64, device=device)
        counts[self.rank] = own
        self.sum_([counts])
        return [int(each) for each in counts.tolist()]

    def copy_from_first_(self, tensors: Iterable[Tensor]) -> None:
        """Give every process the first one's values."""
        if self.size > 1:
            for tensor in tensors:
                numbers = self._sendable(tensor.detach().reshape(-1).contiguous())
                dist.broadcast(numbers.view(torch.uint8), group=self.group, group_src=0)  # of whatever type they are
                tensor.detach().copy_(numbers.view(tensor.shape))

    def from_first(self, make: Callable[[], T]) -> T:
        """Call ``make`` in the first process, and return its result, or raise its error, in all of them."""
        if self.size == 1:
            return make()
        message: list[Any] = [None]
        if self.first:
            try:
                message = [(make(), None)]
            except Exception as error:
                message = [(None, error)]
        dist.broadcast_object_list(message, group=self.group, group_src=0)
        value, problem = message[0]
        if problem is not None:
            raise problem
        return value  # type: ignore[no-any-return]

    def differ(self, value: object) -> list[int]:
        """The processes whose value differs from that of the first."""
        if self.size == 1:
            return []
        values: list[object] = [None] * self.size
        dist.all_gather_object(values, value, group=self.group)
        return [rank for rank, each in enumerate(values) if each != values[0]]


ALONE = Processes()
"""A single process."""

_LAST_MOMENT = 0.1  # seconds before a process ends in which no thread holds Python's lock
_CONNECTED = "CALIBAYES_CONNECTED"  # tells children the process that has connected itself


def whole(own: Tensor, totals: Sequence[int], processes: Processes) -> Tensor:
    """The rows that all processes have made of several batches, in order, in every process.

    Args:
        own: this process's rows, those of `Processes.rows` of the first batch, then of the second, and so on.
        totals: how many rows each batch has in all processes together.
        processes: whose rows they are.
    """
    if processes.size == 1:
        return own
    places: list[list[Tensor]] = [[] for _ in range(processes.size)]
    counted: list[Tensor] = []
    begin = 0
    for total in totals:
        sizes = processes.sizes(total)
        for place, part in zip(places, torch.arange(begin, begin + total).split(sizes), strict=True):
            place.append(part)
        mine = sizes[processes.rank]
        counted.append(torch.ones(mine, dtype=torch.bool) if mine else torch.zeros(1, dtype=torch.bool))
        begin += total
    kept = own[torch.cat(counted).to(own.device)]
    gathered = processes.gather(kept.movedim(0, -1), [sum(map(len, place)) for place in places]).movedim(-1, 0)
    order = torch.cat([part for place in places for part in place]).to(own.device)
    return torch.empty_like(gathered).index_copy_(0, order, gathered)


def _connect() -> bool:
    """Connect the processes that ``torchrun`` started; false if there is only one."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        return False
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InvalidArgumentError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']} and RANK is {os.environ['RANK']}, but {missing[0]} is not set, so the "
            "processes cannot find each other. Start them with `torchrun`, or unset these two, or pass group=None."
        )
    if torch.cuda.is_available():
        torch.cuda.set_device(local_gpu())
    # After a restart, processes would find the addresses of those that died; so each attempt has a separate store.
    store, rank, size = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    place = dist.PrefixStore(f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)  # type: ignore[attr-defined]
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=place, rank=rank, world_size=size)
    os.environ[_CONNECTED] = str(os.getpid())
    return True


def local_gpu() -> int:
    """The GPU of this process among those on its machine."""
    here, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if here >= count:
        raise InvalidArgumentError(
            f"Expected a GPU for each process of this machine, but process {here} has none: there are {count}. "
            "Start fewer (`--nproc-per-node`), or train on CPUs: CUDA_VISIBLE_DEVICES= torchrun …"
        )
    return here


def _leave() -> None:
    """Let the group's threads release their tensors before Python ends.

    For that, a thread of gloo needs Python's lock; if it asks for it while Python ends, it is killed in the middle of a
    destructor, and the whole process with it (SIGABRT after a training that went well).
    """
    if os.environ.get(_CONNECTED) == str(os.getpid()) and dist.is_initialized():
        dist.destroy_process_group()
    gc.collect()
    time.sleep(_LAST_MOMENT)
