"""The settings for data in files, and for a training on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from calibayes.checks import fraction, integer, moderate_positive, positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.methods import method_named
from calibayes.methods.term_weights import check_method_settings, check_weights, has_beta, has_lam
from calibayes.objective import SCHEMES
from calibayes.tables import TableOptions
from calibayes.tables.formats import check_regular
from calibayes.toml_file import read_toml
from calibayes.wording import did_you_mean

__all__ = ["DataSettings", "TrainSettings", "read_settings"]

_MOST_SIDE = 512
_LARGEST_SEED = 2**63 - 1
_USUAL = {"lam": 1.0, "beta": 0.03, "prior_std": 0.1, "init_std": 0.02}  # of the paper's four schemes


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
        validation: the fraction of the examples that decides when training stops, and the temperature.
        test: the fraction of the examples that results are reported on.
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
    hidden: tuple[int, ...] = (64, 64)
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
        scheme: one of `calibayes.METHODS`.
        method_settings: further settings of the method, by name.
        lam: $\lambda$, by default 1 for ``ca-fnn`` and ``ca-bnn`` (``fnn`` and ``bnn`` have none); like those below, other
            methods have their own default.
        beta: $\beta$ of methods with a KL term, by default 0.03 for ``bnn`` and ``ca-bnn``.
        epochs: the maximum number of passes over the training examples.
        patience: epochs without a lower validation NLL before training stops.
        batch_size: $|B|$.
        learning_rate: of Adam.
        samples: $R$, samples of the weights per step.
        predictive_samples: $S$, samples of the weights per prediction.
        prior_std: standard deviation of the prior, by default 0.1.
        init_std: initial standard deviation of the posterior, by default 0.02.
    """

    scheme: str = "ca-bnn"
    method_settings: dict[str, Any] = field(default_factory=dict, hash=False)
    lam: float | None = None
    beta: float | None = None
    epochs: int = 100
    patience: int = 10
    batch_size: int = 64
    learning_rate: float = 0.003
    samples: int = 1
    predictive_samples: int = 20
    prior_std: float | None = None
    init_std: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        method_named(self.scheme)
        for name in ("epochs", "patience", "batch_size", "samples", "predictive_samples"):
            positive_integer(name, getattr(self, name), 1_000_000)
        moderate_positive("learning_rate", self.learning_rate)
        check_weights(self.scheme, lam=self.lam, beta=self.beta)
        for name, has in (("lam", has_lam(self.scheme)), ("beta", has_beta(self.scheme))):
            value = getattr(self, name)
            if value is None:
                object.__setattr__(self, name, self._usual(name) if has else 0.0)
            elif value or (has and name == "beta"):
                positive(name, value)
        for name in ("prior_std", "init_std"):
            value = self._usual(name) if getattr(self, name) is None else getattr(self, name)
            object.__setattr__(self, name, value)
            if isinstance(value, int | float):
                moderate_positive(name, value)
        check_method_settings(self.scheme, self.method_settings, _OWN)

    def _usual(self, name: str) -> Any:
        return _USUAL[name] if self.scheme in SCHEMES else method_named(self.scheme).default(name)

    def of_method(self) -> dict[str, Any]:
        """Return all settings of the method, by name."""
        method = method_named(self.scheme)
        ours = {name: getattr(self, name) for name in (*_USUAL, "samples", "learning_rate") if method.has(name)}
        return {**ours, **self.method_settings}


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
