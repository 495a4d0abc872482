"""Published weights, from a file into a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError, ModelFileError

__all__ = ["load_weights"]

_SHOWN = 8
_COUNTER = "num_batches_tracked"  # files made before batches were counted lack it


def load_weights(net: nn.Module, source: str | Path | Mapping[str, Tensor], head: Literal["keep", "new"] = "keep") -> None:
    """Put published weights into a network; either all of them fit, or the network stays as it was.

    Posteriors are written and read by `calibayes.save` and `calibayes.load`; this is for the files of others.

    Args:
        net: the network, which is changed.
        source: a file in the format safetensors or of ``torch.save`` (only its tensors are read: no code in it is run), or
            a state dict. A dict that holds the weights as ``"state_dict"`` and names that all start with ``"module."``, as
            training scripts leave them, are understood.
        head: ``"keep"`` expects weights for every layer; ``"new"`` leaves the last layer of ``net`` as it is, for another
            number of classes.

    Raises:
        ModelFileError: the file cannot be read, or does not fit; then the message lists what differs.

    Examples:
        >>> from calibayes.networks import resnet20
        >>> published, net = resnet20(classes=10).state_dict(), resnet20(classes=4)
        >>> load_weights(net, published, head="new")
        >>> bool((net.conv1.weight == published["conv1.weight"]).all()), net.linear.out_features
        (True, 4)
    """
    if head not in ("keep", "new"):
        raise InvalidArgumentError(f"Expected `head` to be 'keep' or 'new', but got {head!r}.")
    what = "The state dict" if isinstance(source, Mapping) else str(source)
    given = _unwrapped(source if isinstance(source, Mapping) else _read(Path(source)), what)
    state = net.state_dict()
    last = _last_layer(net, state)
    if head == "new":
        given = {name: value for name, value in given.items() if name not in last}
    problems = _problems(given, {name: value for name, value in state.items() if head == "keep" or name not in last})
    if problems:
        only_head = head == "keep" and problems.keys() <= last
        advice = " To keep the network's own last layer, pass head='new'." if only_head else ""
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        shown = "; ".join(list(problems.values())[:_SHOWN])
        raise ModelFileError(f"{what} does not fit the network: {shown}{more}.{advice}")
    net.load_state_dict({**state, **given})


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            start = file.read(9)
            if start[8:] == b"{":  # safetensors: a length of eight bytes, and then a JSON object
                return load_file(path)
            file.seek(0)
            return torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}. Is it the path of a file?") from error
    except Exception as error:  # torn or foreign bytes make unpickling fail in any way
        raise ModelFileError(
            f"{path} holds no weights that can be read ({type(error).__name__}). Expected safetensors, or only tensors written "
            "by torch.save: reading other objects could run code. If the file was downloaded, compare its size."
        ) from error


def _unwrapped(given: Any, what: str) -> dict[str, Tensor]:
    if isinstance(given, Mapping) and isinstance(given.get("state_dict"), Mapping):
        given = given["state_dict"]
    if not isinstance(given, Mapping) or not given:
        raise ModelFileError(f"{what} holds no weights by name, but {_kind(given)}. Expected a state dict.")
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ModelFileError(f"{what} has, under the name {name!r}, {_kind(value)}. Expected a state dict: only tensors.")
    prefix = "module." if all(name.startswith("module.") for name in given) else ""
    return {name.removeprefix(prefix): value for name, value in given.items()}


def _kind(value: object) -> str:
    return f"an empty {type(value).__name__}" if isinstance(value, Mapping) and not value else f"a {type(value).__name__}"


def _last_layer(net: nn.Module, state: Mapping[str, Tensor]) -> set[str]:
    """The names of what belongs to the last layer that has parameters."""
    names = [name for name, _ in net.named_parameters()]
    layer = names[-1].rpartition(".")[0] if names else ""
    if not layer:
        raise InvalidArgumentError(f"Expected `net` to have layers with weights of their own, but got {net!r}.")
    return {name for name in state if name.startswith(f"{layer}.")}


def _problems(given: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, str]:
    """Describe what does not fit, by name: what is missing, of another shape or type, or superfluous."""
    problems = {}
    for name, value in wanted.items():
        if name not in given:
            if not name.endswith(_COUNTER):
                problems[name] = f"{name!r} is missing"
        elif given[name].shape != value.shape:
            problems[name] = f"{name!r} has shape {list(given[name].shape)}, the network's {list(value.shape)}"
        elif given[name].is_floating_point() != value.is_floating_point():
            problems[name] = f"{name!r} is of {given[name].dtype}, the network's of {value.dtype}"
    problems |= {name: f"{name!r} has no place in the network" for name in given if name not in wanted}
    return problems
