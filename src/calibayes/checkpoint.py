"""Posteriors and training runs on disk: `save` and `load` a model, and the folder that `fit` resumes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor, nn

from calibayes.errors import CheckpointError, ModelFileError, UnsupportedNetworkError
from calibayes.posterior.base import Posterior
from calibayes.posterior.flat import Skeleton
from calibayes.posterior.groups import GaussianGroup
from calibayes.posterior.mean_field import MeanField
from calibayes.posterior.point import Point
from calibayes.treefile import TreeFileError, read_tree, write_tree

__all__ = ["CheckpointFolder", "as_tree", "check_prior", "from_tree", "load", "prior_of", "save"]

_KEPT = 2
_NAME = re.compile(r"step-(\d{9})\.safetensors")


def save(posterior: Posterior, path: str | Path) -> None:
    """Write a posterior to one file: safetensors with a JSON header, written atomically.

    Args:
        posterior: what to save: weights, buffers, and which weights are Bayesian with which prior.
        path: the file, ``model.safetensors`` say.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "model.safetensors"
        >>> net = torch.nn.Linear(4, 3)
        >>> calibayes.save(calibayes.MeanField(net), path)
        >>> calibayes.load(path, net).num_bayesian
        15
    """
    try:
        write_tree(Path(path), "model", as_tree(posterior))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}. Does its folder exist?") from error


def as_tree(posterior: Posterior) -> dict[str, Any]:
    """What a file has to hold of a posterior, for `from_tree` to build it again."""
    return {"architecture": _architecture(posterior), "state": dict(posterior.state_dict())}


def load(path: str | Path, net: nn.Module) -> Posterior:
    """Read a posterior that `save` wrote.

    Args:
        path: the file.
        net: a network of the same architecture; its weights do not matter, and it is not changed.

    Raises:
        ModelFileError: the file is missing, torn, or of another architecture; then it says which parameter differs.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "model.safetensors"
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3))
        >>> calibayes.save(posterior, path)
        >>> torch.equal(calibayes.load(path, torch.nn.Linear(4, 3)).mu, posterior.mu)
        True
    """
    try:
        tree = read_tree(Path(path), "model")
    except TreeFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}.") from error
    return from_tree(tree, net, path)


def from_tree(tree: Any, net: nn.Module, path: str | Path) -> Posterior:
    """The posterior that a file holds; ``path`` is for messages, everything else is as in `load`."""
    try:
        saved = tree["architecture"]
        posterior = _rebuilt(saved, net, str(path))
        posterior.load_state_dict(tree["state"])
        return posterior.train(saved["training"])
    except UnsupportedNetworkError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} does not hold a whole model: {type(error).__name__}: {error}") from error


def _architecture(posterior: Posterior) -> dict[str, Any]:
    """What a file and a network must have in common, and how to build the posterior from the network."""
    gaussians = [group for group in posterior.groups if isinstance(group, GaussianGroup)]
    types = {name: value.dtype for name, value in posterior.mean().items()}
    return {
        "kind": posterior.kind,
        "parameters": {
            choice.name: {"shape": list(choice.shape), "dtype": str(types[choice.name])} for choice in posterior.choices
        },
        "buffers": {
            name: {"shape": list(value.shape), "dtype": str(value.dtype)} for name, value in posterior.buffer_values().items()
        },
        "roles": {choice.name: choice.role for choice in posterior.choices},
        "prior_std": posterior.prior_std if isinstance(posterior, MeanField) else None,
        "prior_mean": any(group.prior_mean is not None for group in gaussians),
        "training": posterior.training,
    }


def prior_of(posterior: Posterior) -> dict[str, Any]:
    """What a prior is known by: the standard deviation of each group, and whether its mean is zero or stored."""
    gaussians = [group for group in posterior.groups if isinstance(group, GaussianGroup)]
    return {
        "prior_std": {group.name: group.prior_std for group in gaussians},
        "prior_mean": "stored" if any(group.prior_mean is not None for group in gaussians) else "zero",
    }


def check_prior(saved: Mapping[str, Any], posterior: Posterior, place: str) -> None:
    """Raise `CheckpointError` unless what was saved, as `prior_of` told it, is the posterior's prior."""
    for name, value in prior_of(posterior).items():
        if saved[name] != value:
            raise CheckpointError(
                f"{place} belongs to another posterior: `{name}` is {saved[name]} there and {value} here. "
                "Use another checkpoint, or the same prior."
            )


def _rebuilt(saved: Mapping[str, Any], net: nn.Module, path: str) -> Posterior:
    if saved["kind"] not in ("point", "mean-field"):
        raise ModelFileError(f"{path} holds a posterior of the unknown kind {saved['kind']!r}.")
    skeleton = Skeleton(net)
    point = Point(skeleton.filled({**skeleton.parameters, **skeleton.buffers}, skeleton.parameters))
    here = _architecture(point)
    for what in ("parameters", "buffers"):
        _compare(saved[what], here[what], what[:-1], path)
    roles = saved["roles"]
    network = point.network()
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(roles[name] != "frozen")
    if saved["kind"] == "point":
        return Point(network)
    return MeanField(
        network,
        prior_std=saved["prior_std"],
        where=lambda name, _: roles.get(name) == "bayesian",
        prior_mean="initial" if saved["prior_mean"] else None,
    )


def _compare(saved: Mapping[str, Any], here: Mapping[str, Any], what: str, path: str) -> None:
    for name in [*saved, *here]:
        if name not in here:
            problem = f"it has a {what} {name!r}, the network has not"
        elif name not in saved:
            problem = f"the network has a {what} {name!r}, it has not"
        elif saved[name] != here[name]:
            problem = f"{what} {name!r} has {_told(saved[name])} in the file and {_told(here[name])} in the network"
        else:
            continue
        raise ModelFileError(f"{path} is of another architecture: {problem}.")


def _told(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in entry.items())


def _flat(tree: Any, place: str = "") -> dict[str, Any]:
    """A tree's leaves by their dotted places."""
    if not isinstance(tree, dict | list) or not tree:
        return {place: tree}
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return {key: leaf for name, part in pairs for key, leaf in _flat(part, f"{place}.{name}".lstrip(".")).items()}


class CheckpointFolder:
    """The last two states of a training run; the newest whole one is resumed from."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self.fingerprint = dict(fingerprint)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"`checkpoint` must be a folder, but {self.folder} cannot be one: {error}.") from error

    def write(self, step: int, state: Mapping[str, Any]) -> None:
        """Store the state after optimiser step ``step`` and drop the oldest."""
        try:
            write_tree(self._path(step), "checkpoint", {"fingerprint": self.fingerprint, "state": dict(state)})
        except TypeError as error:
            raise CheckpointError(f"The training state cannot be checkpointed: {error}.") from error
        except (OSError, SafetensorError) as error:
            raise CheckpointError(
                f"The checkpoint cannot be written to {self.folder}: {error}. The one before is kept."
            ) from error
        for old in self._files()[_KEPT:]:
            old.unlink(missing_ok=True)

    def newest(self) -> dict[str, Tensor | Any] | None:
        """The newest whole state of this run, or ``None`` in an empty folder."""
        problems = []
        for path in self._files():
            try:
                tree = read_tree(path, "checkpoint")
            except TreeFileError as error:
                problems.append(f"{path}: {error}")
                continue
            self._check(tree["fingerprint"], path)
            state: dict[str, Any] = tree["state"]
            return state
        if problems:
            raise CheckpointError(
                "No whole checkpoint is left to resume from: " + "; ".join(problems) + ". Delete the folder to start anew."
            )
        return None

    def _check(self, saved: Mapping[str, Any], path: Path) -> None:
        then, now = _flat(saved), _flat(self.fingerprint)
        for key in dict.fromkeys([*then, *now]):
            if then.get(key) != now.get(key):
                raise CheckpointError(
                    f"{path} belongs to another run: `{key}` was {then.get(key)!r} and is now {now.get(key)!r}. "
                    "Use another folder, or the same call."
                )

    def _files(self) -> list[Path]:
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:09}.safetensors"
