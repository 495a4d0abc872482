"""A trained classifier of files, on disk and in memory."""

from __future__ import annotations

import errno
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from calibayes.checked_fields import Fields
from calibayes.checkpoint import as_tree, from_tree
from calibayes.errors import CalibayesError, DataError, ModelFileError
from calibayes.files.image_coding import ImageCoding
from calibayes.files.input_predictor import InputPredictor
from calibayes.files.networks import NetworkPlan, check_weights_fit
from calibayes.files.set_aside_rows import SetAsideRows
from calibayes.files.table_coding import TableCoding
from calibayes.files.text_coding import TextCoding
from calibayes.networks import TextCNN
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posthoc import TemperatureScaling
from calibayes.predictive import Predictive
from calibayes.sweeps.results_folder import versions
from calibayes.tables import RowBlock, frame_block
from calibayes.tensor_tree_file import TreeFileError, read_tree, tree_bytes, tree_digest, write_tree
from calibayes.wording import listed, shown_path

__all__ = ["Coding", "Model", "load"]

Coding = TableCoding | TextCoding | ImageCoding
"""The conversion of a table's rows to inputs of a network."""

_CODINGS: dict[str, Any] = {coding.kind: coding for coding in (TableCoding, TextCoding, ImageCoding)}
_KIND = "classifier of files"
_MOST_MEMBERS = 10_000
_SPARE_FOLDERS = ("/var/tmp", "/dev/shm")


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A trained classifier of rows, texts or images.

    Attributes:
        posterior: the trained network.
        classes: the names of the classes, in the order of the probabilities.
        target: the column of the classes that it was trained on.
        coding: the conversion of rows to inputs.
        plans: the network; for an ensemble of different networks, that of each member.
        temperature: for temperature scaling, fitted on held-out predictions.
        samples: of the weights for a prediction, by default.
        seed: of those samples.
        about: a record of the training: settings, numbers of examples, scores, versions.
        calibrated: whether predictions have the temperature applied unless told otherwise.
        set_aside: predictions of rows that nothing in training has seen, if some were set aside.
    """

    posterior: Posterior
    classes: tuple[str, ...]
    target: str
    coding: Coding
    plans: tuple[NetworkPlan, ...]
    temperature: float
    samples: int
    seed: int
    about: dict[str, Any]
    calibrated: bool = False
    set_aside: SetAsideRows | None = None

    def predict(self, frame: Any, *, samples: int | None = None) -> Predictive:
        """Predict the rows of a pandas frame, an Arrow table or a dict of columns.

        Columns that it does not know are ignored; the target need not be there.

        Args:
            frame: the rows; for images a column ``file`` with their paths.
            samples: of the weights; those of training by default.
        """
        block = frame if isinstance(frame, RowBlock) else frame_block(frame)
        return self.predict_block(block, InputPredictor(self, samples))

    def predict_block(self, block: RowBlock, predictor: InputPredictor) -> Predictive:
        """Predict a block of rows with a predictor of this model, which serves for any number of blocks."""
        result = predictor(self.encode(block))
        if not bool(result.probs.isfinite().all()):
            raise ModelFileError("The model's weights are so large that its probabilities are not finite. Train it again.")
        return result

    def encode(self, block: RowBlock) -> Tensor:
        """Return the inputs of the network for rows; raise a `DataError` that lists missing columns, or names a bad cell."""
        self.check_columns(block.table.column_names)
        return self.coding.encode(block)

    def scaled(self, predictive: Predictive) -> Tensor:
        """Return the probabilities with the temperature applied; decisions are the same."""
        return TemperatureScaling.of(self.temperature, len(self.classes)).transform(predictive.probs)

    def calibrated_probs(self, predictive: Predictive) -> Tensor:
        """Return the probabilities to use: with the temperature if the model was calibrated on all rows, otherwise without."""
        return self.scaled(predictive) if self.calibrated else predictive.probs

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that numbered or named the training rows, which predictions carry along."""
        names = self.about.get("identifiers", [])
        return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()

    def check_columns(self, names: list[str]) -> None:
        """Raise a `DataError` that lists the missing columns, if there are any."""
        there = set(names)
        missing = [name for name in self.coding.needs if name not in there]
        if missing:
            raise DataError(f"The model needs columns that are not there: {listed(missing)}. There are {listed(names)}.")

    def save(self, path: str | Path) -> None:
        """Write everything to one file: safetensors with a JSON header, complete or not at all, never pickle."""
        try:
            write_tree(Path(path), _KIND, self._tree())
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or str(error).removeprefix("Error while serializing: I/O error: ")
            raise ModelFileError(f"{shown_path(Path(path))} cannot be written: {reason}.") from None

    def digest(self) -> str:
        """Return a hash of everything that `save` writes: models with the same predict the same."""
        return tree_digest(self._tree())

    def _tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {
            "classes": list(self.classes),
            "target": self.target,
            "coding": self.coding.to_dict(),
            "networks": [plan.to_dict() for plan in self.plans],
            "temperature": self.temperature,
            "calibrated": self.calibrated,
            "samples": self.samples,
            "seed": self.seed,
            **({} if self.set_aside is None else {"set_aside": self.set_aside.to_dict()}),
        }
        _described(Fields(tree, "the model"))  # never write a model that could not be loaded
        return tree | {"about": {**self.about, "versions": versions()}, "posterior": as_tree(self.posterior)}

    def save_or_keep(self, path: Path) -> None:
        """Write everything to a file; if that fails, keep the model in a temporary folder, and say where in the error.

        Where the size of files is limited (``ulimit -f``), it is kept in parts.
        """
        try:
            self.save(path)
        except ModelFileError as error:
            limit = _file_size_limit() if os.strerror(errno.EFBIG) in str(error) else None
            limited = "" if limit is None else f" Files may have at most {limit:,} bytes here (ulimit -f)."
            folders = [*_SPARE_FOLDERS]
            with suppress(OSError):  # if no temporary folder can be written to
                folders.insert(0, gettempdir())
            kept = next(filter(None, (self._keep(folder, path, limit) for folder in folders)), "")
            raise ModelFileError(f"{error}{limited}{kept}") from None

    def _keep(self, folder: str, path: Path, limit: int | None) -> str:
        """Write everything to a new folder in ``folder``, and return where it is for the message, or nothing if that fails."""
        try:
            kept = Path(mkdtemp(prefix="calibayes-", dir=folder))
        except OSError:
            return ""
        out = shlex.quote(str(path))
        try:
            if limit is None:
                self.save(kept / path.name)
                name = shown_path(kept / path.name)
                return f" The model is kept in {name}; once there is room: mv {shlex.quote(str(kept / path.name))} {out}"
            data = tree_bytes(_KIND, self._tree())
            for number, begin in enumerate(range(0, len(data), limit)):
                (kept / f"part{number:06}").write_bytes(data[begin : begin + limit])
            join = f"cat {shlex.quote(str(kept))}/part* > {out}"
            return f" The model is kept in parts in {shown_path(kept)}; to join them in a shell without the limit: {join}"
        except (OSError, ValueError, ModelFileError):
            rmtree(kept, ignore_errors=True)
            return ""


def _file_size_limit() -> int | None:
    """Return the largest size in bytes that the files of this process may have, or None for any size."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def load(path: str | Path) -> Model:
    """Read a model that `Model.save` wrote; nothing in a file of unknown origin is executed.

    Networks are built by name from a fixed list, every value is checked, and a network is built only after a check that the
    file holds its weights.

    Raises:
        ModelFileError: the file is missing, damaged, newer than this version of calibayes, or something else.
    """
    name = shown_path(Path(path))
    if not Path(path).is_file():
        what = "this is not a file" if Path(path).exists() else "there is no such file"
        raise ModelFileError(f"{name}: {what}. Train a model first: calibayes train.")
    try:
        tree = read_tree(Path(path), _KIND)
    except TreeFileError as error:
        why = " ".join(str(error).split())
        raise ModelFileError(f"{name} cannot be loaded: {why}. Pass a file that `calibayes train` wrote.") from None
    try:
        return _model(Fields(tree, "the model"), tree, name)
    except ModelFileError as error:
        raise ModelFileError(str(error) if str(error).startswith(name) else f"{name} is damaged: {error}") from None
    except (CalibayesError, KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError) as error:
        raise ModelFileError(f"{name} is damaged: {type(error).__name__}: {' '.join(str(error).split())}") from None


def _model(fields: Fields, tree: dict[str, Any], name: str) -> Model:
    described = _described(fields)
    plans: tuple[NetworkPlan, ...] = described["plans"]
    state = tree["posterior"]["state"]
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise fields.wrong("posterior", "a posterior with weights")
    broken = next((name for name, value in state.items() if not bool(value.isfinite().all())), None)
    if broken is not None:
        raise ModelFileError(f"the weights {broken!r} are not finite.")
    members = tree["posterior"]["architecture"].get("members", [None])
    if len(plans) not in (1, len(members)):
        raise fields.wrong("networks", f"one network, or one for each of the {len(members)} members")
    check_weights_fit(plans if len(plans) > 1 else plans * len(members), state, name)
    networks = [plan() for plan in plans]
    posterior = from_tree(tree["posterior"], networks if len(networks) > 1 else networks[0], name).eval()
    return Model(posterior=posterior, about=tree["about"] if isinstance(tree["about"], dict) else {}, **described)


def _described(fields: Fields) -> dict[str, Any]:
    """Check and return everything about a model but its weights; nothing is built yet."""
    classes = fields.texts("classes", 1000)
    coded = fields.inside("coding")
    coding: Coding = _CODINGS[coded.text("kind", tuple(_CODINGS))].of(coded)
    # Files of 0.1 have one network.
    described = fields.each("networks", _MOST_MEMBERS) if fields.has("networks") else [fields.inside("network")]
    plans = tuple(map(NetworkPlan.of, described))
    for plan in plans:
        if plan.sizes["classes"] != len(classes):
            raise fields.wrong("classes", f"{plan.sizes['classes']} names, one for each output of the network")
        _check_widths(coding, plan)
    return {
        "classes": classes,
        "target": fields.text("target"),
        "coding": coding,
        "plans": plans,
        "temperature": fields.number("temperature", positive=True),
        "calibrated": fields.has("calibrated") and fields.flag("calibrated"),
        "samples": fields.size("samples", 1, 1_000_000),
        "seed": fields.size("seed", -(2**63), 2**63),
        "set_aside": SetAsideRows.of(fields.inside("set_aside"), len(classes)) if fields.has("set_aside") else None,
    }


def _check_widths(coding: Coding, plan: NetworkPlan) -> None:
    """Raise unless the network takes what the coding produces."""
    sizes = plan.sizes
    if isinstance(coding, TableCoding) and coding.raw:
        fits = plan.name in ("table-network", "table-mlp", "table-linear", "boosted-trees")
        if plan.name == "boosted-trees":
            fits = sizes["features"] == coding.width
        elif fits:
            pairs = list(zip(sizes["category_columns"], sizes["categories"], strict=True))
            fits = (sizes["numbers"], pairs) == (coding.numbers, coding.categories)
    elif isinstance(coding, TableCoding):
        fits = plan.name == "mlp" and sizes["inputs"] == coding.width
    elif isinstance(coding, TextCoding):
        of_bags = ("text-network", "text-linear", "word-bag")
        fits = plan.name in (of_bags if coding.once else ("text-cnn",)) and sizes["words"] == 1 + len(coding.vocabulary)
        fits = fits and (coding.once or coding.length >= TextCNN.shortest_for(sizes["pool"]))
    else:
        fits = isinstance(coding, ImageCoding) and (sizes.get("channels"), sizes.get("side")) == (coding.channels, coding.size)
        fits = fits and (coding.channels == 3 or plan.name in ("image-linear", "small-cnn"))
    if not fits:
        raise ModelFileError(f"its network {plan.name!r} does not fit the inputs that its columns give.")
