"""The settings for data in files, and for a training on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from calibayes.acting.conformal_scores import ScoreName
from calibayes.checks import fraction, integer, moderate_positive, positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.files.guarantee_settings import check_guarantees
from calibayes.methods import method_named
from calibayes.methods.term_weights import check_method_settings, check_weights, has_lam
from calibayes.objective import SCHEMES
from calibayes.tables import TableOptions
from calibayes.tables.formats import check_regular
from calibayes.toml_file import read_toml
from calibayes.wording import did_you_mean

__all__ = ["DataSettings", "TrainSettings", "read_settings"]

_MOST_SIDE = 512
_LARGEST_SEED = 2**63 - 1
# Of the paper's four schemes.
_USUAL = {"lam": 1.0, "beta": 0.03, "prior_std": 0.1, "init_std": 0.02, "learning_rate": 0.003}


@dataclass(frozen=True, kw_only=True)
class DataSettings(TableOptions):
    """The roles of a file's columns, its split and its network, besides the `TableOptions`.

    Attributes:
        target: the column of the classes; in a folder the classes are its folders.
        text: columns of texts to classify by; without any, all other columns are numbers and categories.
        ignore: columns to leave out.
        categorical: columns of categories that look like numbers.
        drop_rare: leave out classes with fewer than three examples, instead of raising an error.
        max_rows: train on at most this many rows, drawn by ``seed``.
        seed: of the split, and of everything in training.
        validation: in one split, the fraction of the examples that decides when training stops, and the temperature.
        test: in one split, the fraction of the examples that results are reported on.
        hidden: the width of each hidden layer of the network for tables.
        vocabulary: the number of known words of texts, the most frequent ones.
        length: the number of words of a text that are read.
        embeddings: ``"learned"`` word vectors, or ``"glove"`` for those of GloVe and a convolutional network.
        image_size: the height and width to resize images to; by default 28 for grey and 32 for colour images.
        network: for images ``"small-cnn"`` or ``"resnet20"``; by default the first up to 32×32.
    """

    target: str | None = None
    text: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop_rare: bool = False
    max_rows: int | None = None
    seed: int = 0
    validation: float = 0.15
    test: float = 0.2
    hidden: tuple[int, ...] = (128, 128)
    vocabulary: int = 20_000
    length: int = 256
    embeddings: Literal["learned", "glove"] = "learned"
    image_size: int | None = None
    network: Literal["small-cnn", "resnet20"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -_LARGEST_SEED <= integer("seed", self.seed) <= _LARGEST_SEED:
            raise InvalidArgumentError(f"Expected `seed` to be a number of at most 63 bits, but got {self.seed}.")
        for name in ("text", "ignore", "categorical"):  # a column named twice counts once
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        fraction("validation", self.validation)
        fraction("test", self.test)
        if self.validation + self.test >= 0.9:
            raise InvalidArgumentError(
                "Expected `validation` and `test` to leave at least a tenth of the examples to train on, "
                f"but got {self.validation:g} and {self.test:g}."
            )
        positive_integer("vocabulary", self.vocabulary, 1_000_000)
        positive_integer("length", self.length, 4096)
        for width in self.hidden:
            positive_integer("hidden", width, 4096)
        if self.image_size is not None and positive_integer("image_size", self.image_size, _MOST_SIDE) < 10:
            raise InvalidArgumentError(f"Expected `image_size` to be at least 10, but got {self.image_size}.")
        for name in ("embeddings", "network"):
            known = get_args(_kinds(get_type_hints(type(self))[name])[0])
            value = getattr(self, name)
            if value is not None and value not in known:
                raise InvalidArgumentError(f"Expected `{name}` to be one of {', '.join(known)}, but got {value!r}.")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings by name; unknown names and values of another type are rejected.

        Examples:
            >>> TrainSettings.of({"target": "species", "epochs": 5}).epochs
            5
            >>> TrainSettings.of({"epoch": 5})
            Traceback (most recent call last):
            calibayes.errors.InvalidArgumentError: There is no setting 'epoch'. Did you mean 'epochs'?
        """
        return cls(**cls.named(given))

    @classmethod
    def named(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings by their names with underscores; each is checked for its name and type, but not for its value."""
        hints = {name: hint for name, hint in get_type_hints(cls).items() if name in {each.name for each in fields(cls)}}
        checked: dict[str, Any] = {}
        for spelling, value in given.items():
            name = spelling.replace("-", "_")
            if name not in hints:
                raise InvalidArgumentError(f"There is no setting {spelling!r}. {did_you_mean(name, hints)}")
            if name in checked:
                raise InvalidArgumentError(f"Expected {name!r} once, but it is there with a dash and with an underscore.")
            checked[name] = _converted(spelling, value, hints[name])
        return checked


@dataclass(frozen=True, kw_only=True)
class TrainSettings(DataSettings):
    r"""The settings of a training, besides the `DataSettings`.

    Attributes:
        scheme: one of `calibayes.METHODS`, in any case; without it, several are tried and the best is taken.
        folds: how many parts the rows are cut into; each trains without one of them. With 1 the file is split once, into
            ``validation``, ``test`` and the rest, which is the default if one of these is set.
        budget: minutes for trying methods; by default 3 for small files, and up to 30 for large ones.
        group: a column; rows with the same value are never on both sides of a split. It is no input.
        time: a column of dates or numbers; rows are predicted by members that have seen earlier ones alone.
        test_file: other rows to report results on.
        set_aside: the share of the rows that nothing in training sees, to calibrate sets and thresholds on; by default 0.2 if
            ``sets`` or ``certify`` is set, otherwise none.
        sets: the coverage of prediction sets.
        sets_score: of the sets, ``"lac"``, ``"aps"``, ``"raps"`` or ``"top-k"``.
        sets_by_class: cover every class as often.
        certify: a threshold to certify, such as ``"accuracy=0.95"`` or ``"precision=0.9,certainty=0.95"``.
        costs: a file of what each action costs for each class, for ``certify="cost=…"``.
        method_settings: further settings of the method, by name.
        lam: $\lambda$, by default 1 for ``ca-fnn`` and ``ca-bnn`` (``fnn`` and ``bnn`` have none); like those below, other
            methods have their own default.
        beta: $\beta$ of methods with a KL term, by default 0.03 for ``bnn`` and ``ca-bnn``.
        epochs: the maximum number of passes over the training examples; by default 200.
        patience: epochs without a lower held-out NLL before training stops; by default 6 or 8.
        batch_size: $|B|$; by default 32 to 512, depending on the number of examples.
        learning_rate: of the optimiser; by default what suits the method.
        samples: $R$, samples of the weights per step.
        predictive_samples: $S$, samples of the weights per prediction.
        prior_std: standard deviation of the prior, by default 0.1.
        init_std: initial standard deviation of the posterior, by default 0.02.
    """

    scheme: str | None = None
    folds: int = 5
    budget: float | None = None
    group: str | None = None
    time: str | None = None
    test_file: str | None = None
    set_aside: float | None = None
    sets: float | None = None
    sets_score: ScoreName = "lac"
    sets_by_class: bool = False
    certify: str | None = None
    costs: str | None = None
    method_settings: dict[str, Any] = field(default_factory=dict, hash=False)
    lam: float | None = None
    beta: float | None = None
    epochs: int | None = None
    patience: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    samples: int = 1
    predictive_samples: int = 20
    prior_std: float | None = None
    init_std: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epochs", "patience", "batch_size", "samples", "predictive_samples"):
            if getattr(self, name) is not None:
                positive_integer(name, getattr(self, name), 1_000_000)
        positive_integer("folds", self.folds, 100)
        if self.budget is not None:
            positive("budget", self.budget)
        check_guarantees(self)
        if self.scheme is None:
            self._check_no_method_settings()
        else:
            object.__setattr__(self, "scheme", method_named(self.scheme).name)
            self._check_method()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the settings by name; unknown names and values of another type are rejected.

        Examples:
            >>> TrainSettings.of({"target": "species", "test": 0.3}).folds
            1
        """
        named = cls.named(given)
        split_once = ("validation" in named or "test" in named) and "folds" not in named
        return cls(**{**named, **({"folds": 1} if split_once else {})})

    def _check_no_method_settings(self) -> None:
        given = [name for name in _OF_METHOD if getattr(self, name) not in (None, {})]
        if given:
            name = "set" if given[0] == "method_settings" else given[0].replace("_", "-")
            raise InvalidArgumentError(f"Expected --method with --{name}: without it, several methods are tried.")

    def _check_method(self) -> None:
        assert self.scheme is not None
        check_weights(self.scheme, lam=self.lam, beta=self.beta)
        method = method_named(self.scheme)
        for name in _OF_METHOD[:-1]:
            value = getattr(self, name)
            if value is None:
                continue
            if not method.has(name) and value:
                raise InvalidArgumentError(f"Expected no {name!r} for {self.scheme!r}, which has no such setting.")
            if name in ("lam", "beta"):
                if value or (name == "beta" and method.has(name)):
                    positive(name, value)
            else:
                moderate_positive(name, value)
        check_method_settings(self.scheme, self.method_settings, _OWN)

    def of_method(self) -> dict[str, Any]:
        """Return the settings of the method that were set, or have another default in files, by name."""
        if self.scheme is None:
            return {}
        method = method_named(self.scheme)
        usual = {name: value for name, value in _USUAL.items() if self.scheme in SCHEMES and method.has(name)}
        if not has_lam(self.scheme):
            usual.pop("lam", None)
        given = {name: getattr(self, name) for name in _OF_METHOD[:-1] if getattr(self, name) is not None and method.has(name)}
        samples = {"samples": self.samples} if method.has("samples") else {}
        return {**usual, **samples, **given, **self.method_settings}


_OF_METHOD = ("lam", "beta", "learning_rate", "prior_std", "init_std", "method_settings")
_OWN = {field.name: f"the setting {field.name!r} itself" for field in fields(TrainSettings)} | {"member_seed": "'seed'"}


def read_settings(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings, by their names in `TrainSettings`, which checks their values."""
    if path.exists():
        check_regular(path)
    return TrainSettings.named(read_toml(path))


def _converted(name: str, value: Any, hint: Any) -> Any:
    """Return ``value`` in its type, or raise an error that says what it should be."""
    kinds = _kinds(hint)
    if value is None and NoneType in kinds:
        return None
    kind = kinds[0]
    if get_origin(kind) is tuple:
        part = get_args(kind)[0]
        parts = [value] if isinstance(value, str) else value
        if isinstance(parts, list | tuple) and all(type(each) is part for each in parts):
            return tuple(parts)
    elif get_origin(kind) is dict and isinstance(value, dict):
        return dict(value)
    elif kind is float and type(value) in (int, float):
        return float(value)
    elif type(value) is (str if get_origin(kind) is Literal else kind):
        return value
    raise InvalidArgumentError(f"Expected {name!r} to be {_type_name(kind)}, but got {value!r}.")


def _kinds(hint: Any) -> list[Any]:
    """Return the types of a union, or a single type."""
    return list(get_args(hint)) if NoneType in get_args(hint) else [hint]


def _type_name(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return "a list of whole numbers" if get_args(kind)[0] is int else "a text or a list of texts"
    if get_origin(kind) is dict:
        return "a table of settings by name"
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a text")
