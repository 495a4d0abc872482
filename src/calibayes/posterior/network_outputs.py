"""The logits in a network's output, and explanations of its errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calibayes.calibration.scores import widened
from calibayes.data.input_structure import tensors_in
from calibayes.errors import DataError, InvalidTargetsError, NetworkOutputError

__all__ = [
    "check_labels",
    "check_not_probabilities",
    "counted_tensors",
    "entropy",
    "explained",
    "logits_of",
    "mean_logits",
]


_MISFITS = ("shapes cannot be multiplied", "channels, but got", "size mismatch, got input")


def logits_of(output: Any, examples: int) -> Tensor:
    """The logits ``[n, K]`` in a network's output: the output itself, or its ``logits``; half precision is widened."""
    logits = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise NetworkOutputError(
            f"Expected the network to return a tensor of logits (or an object with `.logits`), but got {type(output).__name__}."
        )
    if logits.dim() != 2 or logits.shape[0] != examples or logits.shape[1] < 2:
        raise NetworkOutputError(
            f"Expected logits of shape [{examples}, K] with K ≥ 2 for {examples} examples, but the network returned "
            f"{list(logits.shape)}.{_hint(logits, examples)}"
        )
    return widened(logits)


def mean_logits(outputs: Sequence[Any]) -> Tensor:
    """Logits of the mean of several networks' probabilities."""
    tensors = [output if isinstance(output, Tensor) else getattr(output, "logits", None) for output in outputs]
    sizes = [len(each) if isinstance(each, Tensor) and each.dim() else 0 for each in tensors]
    logs = [logits_of(output, size).log_softmax(-1) for output, size in zip(outputs, sizes, strict=True)]
    return torch.stack(logs).logsumexp(0) - math.log(len(logs))


def entropy(probs: Tensor) -> Tensor:
    """The entropy of probabilities ``[..., K]``, in nats."""
    total: Tensor = torch.special.entr(probs).sum(-1)
    return total


def _hint(logits: Tensor, examples: int) -> str:
    if logits.shape in ((examples,), (examples, 1)):
        return " A binary classifier needs two outputs."
    if logits.dim() > 2:
        return " Networks that classify every token or pixel cannot be trained; the logits must be those of whole examples."
    return ""


def check_labels(targets: Tensor, classes: int) -> None:
    """Raise `InvalidTargetsError` for a label that the network has no output for (PyTorch ignores -100 and crashes a GPU).

    Targets that are no labels, a teacher's predictions, are left to the loss.
    """
    if targets.is_floating_point():
        return
    lowest, highest = targets.aminmax()
    wrong = int(lowest) if int(lowest) < 0 else int(highest)
    if not 0 <= wrong < classes:
        raise InvalidTargetsError(
            f"Labels must lie in 0 … {classes - 1} for a network with {classes} outputs, but one is {wrong}."
        )


def check_not_probabilities(logits: Tensor) -> None:
    """Raise `NetworkOutputError` if the network seems to end in a softmax: its output would be softmaxed twice."""
    values = logits.detach()
    if bool((values >= 0).all()) and bool(((values.sum(-1) - 1).abs() < 1e-4).all()):
        raise NetworkOutputError(
            "The network returns rows that are non-negative and sum to 1, which look like probabilities. "
            "Return logits: drop the final softmax."
        )


def counted_tensors(inputs: Any) -> list[Tensor]:
    """The input tensors for which PyTorch counts how often they were written to, as ``_version``."""
    return [tensor for tensor in tensors_in(inputs) if not tensor.is_inference()]


def explained(error: Exception, inputs: Any, dtype: torch.dtype) -> Exception:
    """Suggest what to do about an error inside the network, where that is known."""
    types = {tensor.dtype for tensor in tensors_in(inputs) if tensor.is_floating_point()}
    if types and types != {dtype}:
        names = ", ".join(sorted(map(str, types)))
        return DataError(f"The inputs are {names} but the weights are {dtype}: convert one of them, say `x.float()`. ({error})")
    if "more than 1 value per channel" in str(error):
        return DataError(
            "Batch norm met a batch of one example. Choose a larger batch size, or `drop_last` for a DataLoader whose last "
            f"batch has a single one. ({error})"
        )
    shapes = [list(tensor.shape) for tensor in tensors_in(inputs)]
    if shapes and any(sign in str(error) for sign in _MISFITS):
        return DataError(
            f"A layer of the network does not fit inputs of shape {shapes[0]}. Pass inputs of the same size as in "
            f"training, with their axes in the same order. ({error})"
        )
    return error
