"""A posterior over a Hugging Face network in a folder, as ``save_pretrained`` lays it out, and back."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import transformers
from torch import nn

from calibayes import checkpoint
from calibayes.errors import CheckpointError, ModelFileError
from calibayes.extras import require_package
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.tensor_tree_file import TreeFileError, read_tree, write_tree
from calibayes.training.training_hooks import check_saved_average
from calibayes.training.weight_averaging import Averaging

__all__ = ["base_network", "load", "restore", "restore_average", "write", "write_average"]

_POSTERIOR = "posterior.safetensors"
_AVERAGE = "averaging.safetensors"
_ADAPTER = "adapter_config.json"


def load(folder: str | Path, model: nn.Module | None = None) -> Posterior:
    """Read the posterior that `CalibayesTrainer.save_model` wrote, or one of its checkpoints; nothing is unpickled.

    Args:
        folder: what it was written to.
        model: a network of the same architecture, whose weights do not matter; by default it is built as the folder's
            ``config.json`` says, with the adapters of its ``adapter_config.json``.

    Raises:
        ModelFileError: the folder has no posterior, or one of another architecture.
    """
    place = Path(folder)
    if not (place / _POSTERIOR).is_file():
        raise ModelFileError(f"{place} has no {_POSTERIOR}. Pass a folder that `CalibayesTrainer.save_model` wrote.")
    return checkpoint.load(place / _POSTERIOR, _network(place) if model is None else model)


def write(posterior: Posterior, folder: str | Path) -> None:
    """Write a posterior, and beside it the (first) network with the mean weights for ``from_pretrained``."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    checkpoint.save(posterior, place / _POSTERIOR)
    network: Any = posterior.members[0].network()
    if hasattr(network, "save_pretrained"):
        network.save_pretrained(place)
    base = base_network(network)
    if hasattr(base, "config"):
        config = copy.deepcopy(base.config)
        config.architectures = [type(base).__name__]
        config.dtype = next(base.parameters()).dtype
        config.save_pretrained(place)


def restore(posterior: Posterior, folder: str | Path) -> None:
    """Give a posterior the values of one like it that was written."""
    saved = load(folder, posterior.members[0].network())
    if len(saved.members) != len(posterior.members):
        _refuse(folder, f"it has {len(saved.members)} members there and {len(posterior.members)} here")
    for index, (then, now) in enumerate(zip(saved.members, posterior.members, strict=True), start=1):
        member = f" of member {index}" if len(posterior.members) > 1 else ""
        roles = {choice.name: choice.role for choice in then.choices}
        for choice in now.choices:
            if roles.get(choice.name) != choice.role:
                _refuse(folder, f"{choice.name!r}{member} is {roles.get(choice.name)} there and {choice.role} here")
        if then.kind != now.kind:
            _refuse(folder, f"the kind{member} is {then.kind!r} there and {now.kind!r} here")
    checkpoint.check_prior(saved.prior(), posterior, str(folder))
    posterior.load_state_dict(saved.state_dict())


def _refuse(folder: str | Path, difference: str) -> None:
    raise CheckpointError(
        f"{folder} belongs to another posterior: {difference}. Use another folder, or the same `posterior` and `where`."
    )


def write_average(state: dict[str, Any] | None, folder: str | Path) -> None:
    """Write the state that a training with averaged weights continues from, if it is one."""
    if state is not None:
        write_tree(Path(folder) / _AVERAGE, "averaging", state)


def restore_average(posterior: Posterior, averaging: Averaging | None, folder: str | Path) -> dict[str, Any] | None:
    """Give a posterior the weights that training continues from, if the folder has an average; returns the average's state."""
    path, saved = Path(folder) / _AVERAGE, None
    if path.is_file():
        try:
            saved = read_tree(path, "averaging")
        except TreeFileError as error:
            raise CheckpointError(f"{path} cannot be read: {error}. Use another checkpoint.") from error
    check_saved_average(saved, averaging, str(folder))
    if saved is not None:
        posterior.load_state_dict(saved["weights"])
    return saved


def base_network(network: Any) -> Any:
    """The network itself, or the one that adapters of peft have been put into."""
    return network.get_base_model() if hasattr(network, "get_base_model") else network


def _network(place: Path) -> nn.Module:
    if not (place / "config.json").is_file():
        raise ModelFileError(f"{place} has no config.json to build the network from. Pass the network as `model`.")
    config = transformers.AutoConfig.from_pretrained(place)
    kind = getattr(transformers, config.architectures[0], None)
    if kind is None:
        raise ModelFileError(
            f"{place} has a {config.architectures[0]}, which transformers does not know. Pass the network as `model`."
        )
    network: nn.Module = kind(config).to(config.dtype)
    # An adapter that is not called "default" is in a folder of its name; a folder with a posterior is a checkpoint.
    adapters = {"default": place} if (place / _ADAPTER).is_file() else {}
    inner = [path.parent for path in sorted(place.glob(f"*/{_ADAPTER}"))]
    adapters |= {each.name: each for each in inner if not (each / _POSTERIOR).exists()}
    if len(adapters) > 1:
        raise ModelFileError(
            f"{place} has the adapters {list(adapters)}, but not which of them are active. Pass the network as `model`."
        )
    for name, where in adapters.items():
        network = _adapted(network, name, where)
    return network


def _adapted(network: nn.Module, name: str, place: Path) -> nn.Module:
    peft = require_package("peft", f"{place}, which holds adapters,", extra="transformers")
    adapters = peft.PeftConfig.from_pretrained(place)
    base, adapters.base_model_name_or_path = adapters.base_model_name_or_path, None  # peft warns of another name
    adapted: nn.Module = peft.get_peft_model(network, adapters, adapter_name=name)
    adapters.base_model_name_or_path = base
    return adapted
