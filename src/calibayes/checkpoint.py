"""Posteriors and training runs on disk: `save` and `load` a model, and the folder that `fit` resumes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from calibayes.errors import CheckpointError, ModelFileError, UnsupportedNetworkError
from calibayes.posterior.abstract_posterior import Networks, Posterior, posterior_from, registered_kinds
from calibayes.posterior.rebuilding import OtherArchitectureError
from calibayes.tensor_tree_file import TreeFileError, read_tree, write_tree

__all__ = ["CheckpointFolder", "as_tree", "check_prior", "from_tree", "load", "save"]

_KEPT = 2
_NAME = re.compile(r"step-(\d{9})\.safetensors")


def save(posterior: Posterior, path: str | Path) -> None:
    """Write a posterior to one file: safetensors with a JSON header, written atomically.

    Args:
        posterior: the posterior, saved with weights, buffers, and which weights are Bayesian with which prior.
        path: the file, such as ``model.safetensors``.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "model.safetensors"
        >>> net = torch.nn.Linear(4, 3)
        >>> calibayes.save(calibayes.MeanField(net), path)
        >>> calibayes.load(path, net).num_bayesian
        15
    """
    kind = getattr(posterior, "kind", None)
    if kind not in registered_kinds():
        raise ModelFileError(
            f"A {type(posterior).__name__} cannot be saved: `load` would not find it by its `kind`, {kind!r}. Give the class "
            "its own `kind`, and implement `config` and `from_config`."
        )
    try:
        write_tree(Path(path), "model", as_tree(posterior))
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}. Does its folder exist?") from error


def as_tree(posterior: Posterior) -> dict[str, Any]:
    """Return the contents of a posterior's file, from which `from_tree` builds it again."""
    return {"architecture": {**posterior.config(), "training": posterior.training}, "state": dict(posterior.state_dict())}


def load(path: str | Path, net: Networks) -> Posterior:
    """Read a posterior that `save` wrote.

    Args:
        path: the file.
        net: a network of the same architecture; its weights do not matter, and it is not changed. For an ensemble whose
            members have different architectures, a list of networks, one for each member.

    Raises:
        ModelFileError: the file is missing, truncated, or of another architecture; it names the parameter that differs.

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


def from_tree(tree: Any, net: Networks, path: str | Path) -> Posterior:
    """The posterior of a file's contents; ``path`` is for messages, everything else as in `load`."""
    try:
        saved = tree["architecture"]
        posterior = posterior_from(net, saved)
        posterior.load_state_dict(tree["state"])
        return posterior.train(saved["training"])
    except UnsupportedNetworkError:
        raise
    except OtherArchitectureError as error:
        raise ModelFileError(f"{path} is of another architecture: {error}.") from None
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise ModelFileError(f"{path} does not hold a whole model: {type(error).__name__}: {error}") from error


def check_prior(saved: Mapping[str, Any], posterior: Posterior, place: str) -> None:
    """Raise `CheckpointError` unless the saved ``posterior.prior()`` is the posterior's own prior."""
    for name, then, now in _differences(saved, posterior.prior()):
        raise CheckpointError(
            f"{place} belongs to another posterior: `{name}` is {then} there and {now} here. "
            "Use another checkpoint, or the same prior."
        )


def _differences(saved: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The places where two trees differ, with both values."""
    then, now = _flat(saved), _flat(current)
    for name in dict.fromkeys([*then, *now]):
        if then.get(name) != now.get(name):
            yield name, then.get(name), now.get(name)


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
            path = self.folder / f"step-{step:09}.safetensors"
            write_tree(path, "checkpoint", {"fingerprint": self.fingerprint, "state": dict(state)})
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
            for name, then, now in _differences(tree["fingerprint"], self.fingerprint):
                raise CheckpointError(
                    f"{path} belongs to another run: `{name}` was {then!r} and is now {now!r}. "
                    "Use another folder, or the same call."
                )
            state: dict[str, Any] = tree["state"]
            return state
        if problems:
            raise CheckpointError(
                "No whole checkpoint is left to resume from: " + "; ".join(problems) + ". Delete the folder to start again."
            )
        return None

    def _files(self) -> list[Path]:
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)
