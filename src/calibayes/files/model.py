"""A trained classifier of files: what it knows, on disk and in memory."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from calibayes.checkpoint import as_tree, from_tree
from calibayes.errors import CalibayesError, DataError, ModelFileError
from calibayes.files.checked_fields import Fields
from calibayes.files.codings import Coding, coding_from
from calibayes.files.image_coding import ImageCoding
from calibayes.files.networks import NetworkPlan
from calibayes.files.table_coding import TableCoding
from calibayes.files.text_coding import TextCoding
from calibayes.networks import TextCNN
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc import TemperatureScaling
from calibayes.predictive import Predictive, predict, samples_for
from calibayes.sweeps.results_folder import versions
from calibayes.tables import RowBlock, frame_block
from calibayes.tensor_tree_file import TreeFileError, read_tree, write_tree
from calibayes.wording import listed, shown_path

__all__ = ["Model", "load"]

_KIND = "classifier of files"
_BATCH = 512
_SPARE_FOLDERS = ("/var/tmp", "/dev/shm")


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A trained classifier of rows, texts or images.

    Attributes:
        posterior: the trained network.
        classes: what the classes are called, in the order of the probabilities.
        target: the column of the classes that it was trained on.
        coding: how rows become inputs.
        plan: the network.
        temperature: that of temperature scaling, fitted on the validation part.
        samples: of the weights behind a prediction, unless told otherwise.
        seed: of those samples.
        about: how it came about: settings, numbers of examples, scores, versions.
    """

    posterior: Posterior
    classes: tuple[str, ...]
    target: str
    coding: Coding
    plan: NetworkPlan
    temperature: float
    samples: int
    seed: int
    about: dict[str, Any]

    def predict(self, frame: Any, *, samples: int | None = None) -> Predictive:
        """Predict the rows of a pandas frame, an Arrow table or a dict of columns.

        Columns that it does not know are not looked at; the target need not be there.

        Args:
            frame: the rows; for images a column ``file`` with their paths.
            samples: of the weights; those of training by default.
        """
        block = frame if isinstance(frame, RowBlock) else frame_block(frame)
        self.check_columns(block.table.column_names)
        inputs = self.coding.encode(block)
        wanted = self.samples if samples is None else samples
        found = predict(
            self.posterior,
            inputs,
            samples=samples_for(self.posterior, wanted),
            batch_size=_BATCH,
            seed=self.seed,
            dtype=torch.float64,
        )
        if not bool(found.probs.isfinite().all()):
            raise ModelFileError("The model's weights are so large that its probabilities are no numbers. Train it again.")
        return found

    def scaled(self, predictive: Predictive) -> Tensor:
        """The probabilities with the temperature; decisions are the same."""
        return TemperatureScaling.of(self.temperature, len(self.classes)).transform(predictive.probs)

    def check_columns(self, names: list[str]) -> None:
        """Raise `DataError` that lists the columns that are missing, if any."""
        there = set(names)
        missing = [name for name in self.coding.needs if name not in there]
        if missing:
            raise DataError(f"The model needs columns that are not there: {listed(missing)}. There are {listed(names)}.")

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, whole or not at all, never pickle."""
        tree: dict[str, Any] = {
            "classes": list(self.classes),
            "target": self.target,
            "coding": self.coding.to_dict(),
            "network": self.plan.to_dict(),
            "temperature": self.temperature,
            "samples": self.samples,
            "seed": self.seed,
        }
        _described(Fields(tree, "the model"))  # what could not be loaded is not written
        tree |= {"about": {**self.about, "versions": versions()}, "posterior": as_tree(self.posterior)}
        try:
            write_tree(Path(path), _KIND, tree)
        except (OSError, SafetensorError) as error:
            raise ModelFileError(f"{shown_path(Path(path))} cannot be written: {_reason(error)}.") from None

    def save_or_keep(self, path: Path) -> None:
        """Write everything to a file; where there is no room, keep the model elsewhere, and say where in the error."""
        try:
            self.save(path)
        except ModelFileError as error:
            kept = self._keep(path.name)
            if kept is None:
                raise
            move = f"mv {shlex.quote(str(kept))} {shlex.quote(str(path))}"
            raise ModelFileError(f"{error} The model is kept in {shown_path(kept)}; once there is room: {move}") from None

    def _keep(self, name: str) -> Path | None:
        """Write everything to the first of some temporary folders that has room, and return the file."""
        for folder in dict.fromkeys((gettempdir(), *_SPARE_FOLDERS)):
            with suppress(OSError, ModelFileError):
                kept = Path(mkdtemp(prefix="calibayes-", dir=folder))
                try:
                    self.save(kept / name)
                    return kept / name
                except ModelFileError:
                    kept.rmdir()
        return None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error).removeprefix("Error while serializing: I/O error: ")


def load(path: str | Path) -> Model:
    """Read a model that `Model.save` wrote; nothing in a file of unknown origin is run.

    Networks are built by name from a fixed list, every value is checked, and a network is not built before the file is
    seen to hold its weights.

    Raises:
        ModelFileError: the file is missing, damaged, newer than this version of calibayes, or something else.
    """
    place = Path(path)
    told = shown_path(place)
    if not place.is_file():
        what = "this is no file" if place.exists() else "there is no such file"
        raise ModelFileError(f"{told}: {what}. Train a model first: calibayes train.")
    try:
        tree = read_tree(place, _KIND)
    except TreeFileError as error:
        why = " ".join(str(error).split())
        raise ModelFileError(f"{told} cannot be loaded: {why}. Pass a file that `calibayes train` wrote.") from None
    try:
        return _model(Fields(tree, "the model"), tree, told)
    except ModelFileError as error:
        raise ModelFileError(str(error) if str(error).startswith(told) else f"{told} is damaged: {error}") from None
    except (CalibayesError, KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise ModelFileError(f"{told} is damaged: {type(error).__name__}: {' '.join(str(error).split())}") from None


def _model(fields: Fields, tree: dict[str, Any], told: str) -> Model:
    described = _described(fields)
    plan: NetworkPlan = described["plan"]
    state = tree["posterior"]["state"]
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise fields.wrong("posterior", "a posterior with weights")
    broken = next((name for name, value in state.items() if not bool(value.isfinite().all())), None)
    if broken is not None:
        raise ModelFileError(f"the weights {broken!r} are not finite.")
    members = tree["posterior"]["architecture"].get("members", [None])
    plan.check_fits(state, told, len(members))
    posterior = from_tree(tree["posterior"], plan(), told).eval()
    return Model(posterior=posterior, about=tree["about"] if isinstance(tree["about"], dict) else {}, **described)


def _described(fields: Fields) -> dict[str, Any]:
    """Everything about a model but its weights, checked; nothing is built yet."""
    classes = fields.texts("classes", 1000)
    coding, plan = coding_from(fields.inside("coding")), NetworkPlan.of(fields.inside("network"))
    if plan.sizes["classes"] != len(classes):
        raise fields.wrong("classes", f"{plan.sizes['classes']} names, one for each output of the network")
    _check_widths(coding, plan)
    return {
        "classes": classes,
        "target": fields.text("target"),
        "coding": coding,
        "plan": plan,
        "temperature": fields.number("temperature", positive=True),
        "samples": fields.size("samples", 1, 1_000_000),
        "seed": fields.size("seed", -(2**63), 2**63),
    }


def _check_widths(coding: Coding, plan: NetworkPlan) -> None:
    """Raise unless the network takes what the coding makes."""
    sizes = plan.sizes
    if isinstance(coding, TableCoding):
        fits = plan.name == "mlp" and sizes["inputs"] == coding.width
    elif isinstance(coding, TextCoding):
        fits = plan.name == ("word-bag" if coding.once else "text-cnn") and sizes["words"] == 1 + len(coding.vocabulary)
        fits = fits and (coding.once or coding.length >= TextCNN.shortest_for(sizes["pool"]))
    else:
        fits = isinstance(coding, ImageCoding) and (sizes.get("channels"), sizes.get("side")) == (coding.channels, coding.size)
        fits = fits and (coding.channels == 3 or plan.name == "small-cnn")
    if not fits:
        raise ModelFileError(f"its network {plan.name!r} does not take what its columns become.")
