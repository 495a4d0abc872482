"""The settings of a comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from calibayes.checks import positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.methods import method_named
from calibayes.methods.fit_arguments import plain_values
from calibayes.methods.term_weights import check_method_settings, check_weights, has_beta, has_lam
from calibayes.objective import SCHEMES

__all__ = ["BASELINES", "MethodRun", "Settings", "title_of"]

#: The classifiers of scikit-learn that methods are compared with, from the simplest on, and their titles.
BASELINES = {"logistic-regression": "logistic regression", "boosted-trees": "boosted trees"}

_OWN = {name: f"`{name}` of the comparison's settings" for name in ("learning_rate", "samples", "member_seed", "calibration")}
_COUNTS = ("seeds", "train", "validation", "test", "epochs", "batch_size", "samples", "predictive_samples")


def title_of(name: str) -> str:
    """What tables call a method or a baseline.

    Examples:
        >>> title_of("ca-bnn"), title_of("boosted-trees")
        ('CA-BNN', 'boosted trees')
    """
    return BASELINES[name] if name in BASELINES else method_named(name).title


@dataclass(frozen=True)
class MethodRun:
    r"""One training: a method or baseline, its $\lambda$ and $\beta$ (zero where the method has none), and a seed."""

    scheme: str
    lam: float
    beta: float
    seed: int

    def with_seed(self, seed: int) -> MethodRun:
        """The same training with another seed."""
        return replace(self, seed=seed)

    def __str__(self) -> str:
        parts = [title_of(self.scheme)]
        parts += [f"λ={self.lam:g}"] if self.lam else []
        parts += [f"β={self.beta:g}"] if self.beta else []
        return " ".join([*parts, f"seed {self.seed}"])


@dataclass(frozen=True, kw_only=True)
class Settings:
    r"""The settings of a comparison, the same for all methods.

    The defaults are those of the demo. With 3,000 images, Adam and 11 epochs that end on a learning rate of zero, the plain
    network has learned what it can and is becoming overconfident. Around the values of $\lambda$ and $\beta$ to choose from,
    the validation score turns: at this batch size $\lambda = 40$ already costs accuracy, and so does $\beta = 0.3$. `thorough`
    is for a comparison, `quick` for a look at the output.
    """

    seeds: int = 3  # their number; they are 0, 1, …, and govern initial weights, order of the data and noise, not the split
    train: int = 3000  # training examples
    validation: int = 1000  # examples to choose λ and β and to fit temperatures on
    test: int = 6000  # examples to report results on
    epochs: int = 11  # passes over the training examples
    batch_size: int = 64  # |B|
    learning_rate: float = 0.005  # Adam's at the start; it falls to zero along a cosine
    samples: int = 1  # R, samples of the weights per step
    predictive_samples: int = 10  # S, samples of the weights per prediction
    prior_std: float = 0.1  # standard deviation of the prior of BNN and CA-BNN
    init_std: float = 0.02  # initial standard deviation of their posteriors
    lams: tuple[float, ...] = (3.0, 10.0)  # values of λ to choose from, for methods with a calibration term
    betas: tuple[float, ...] = (0.03, 0.1)  # values of β to choose from, for methods with a KL term
    methods: tuple[str, ...] = SCHEMES  # the methods to compare, of `calibayes.METHODS`
    baselines: tuple[str, ...] = tuple(BASELINES)  # of `BASELINES`; those that do not suit the data are left out
    # Settings of methods, by the method's name; a ``lam`` or ``beta`` given here is not chosen.
    method_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in _COUNTS:
            positive_integer(name, getattr(self, name))
        for name in ("learning_rate", "prior_std", "init_std"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        for name in ("lams", "betas"):
            values = tuple(getattr(self, name))
            if not values or not all(0 < value < math.inf for value in values) or len(set(values)) < len(values):
                raise InvalidArgumentError(f"Expected `{name}` to be positive numbers, each once, but got {values!r}.")
            object.__setattr__(self, name, tuple(float(value) for value in values))
        self._check_methods()
        self._check_baselines()

    def _check_baselines(self) -> None:
        baselines = tuple(self.baselines)
        if isinstance(self.baselines, str) or len(set(baselines)) < len(baselines) or set(baselines) - set(BASELINES):
            known = ", ".join(BASELINES)
            raise InvalidArgumentError(f"Expected `baselines` to be among {known}, each once, but got {self.baselines!r}.")
        object.__setattr__(self, "baselines", baselines)

    def _check_methods(self) -> None:
        methods = tuple(self.methods)
        if isinstance(self.methods, str) or not methods or len(set(methods)) < len(methods):
            raise InvalidArgumentError(f"Expected `methods` to be names of methods, each once, but got {self.methods!r}.")
        object.__setattr__(self, "methods", methods)
        for name in methods:
            if name in BASELINES:
                raise InvalidArgumentError(f"Expected {name!r} in `baselines`, not in `methods`: it is one of scikit-learn's.")
            method_named(name)
        for name, given in self.method_settings.items():
            if name not in methods:
                raise InvalidArgumentError(f"There are settings of {name!r}, which is not among {', '.join(methods)}.")
            check_method_settings(name, given, _OWN)
            check_weights(name, lam=given.get("lam"))

    @classmethod
    def thorough(cls, seeds: int = 8) -> Settings:
        """The settings of a comparison: more seeds, data and candidates; about ten minutes on two cores.

        After these epochs the plain network's accuracy on validation images no longer rises: with more, it would only become
        more confident, and easy to beat. Eight seeds rather than five make intervals narrower by up to 40 %.
        """
        lams, betas = (1.0, 3.0, 10.0, 30.0), (0.01, 0.03, 0.1, 0.3)
        return cls(seeds=seeds, train=4000, test=5000, epochs=12, predictive_samples=20, lams=lams, betas=betas)

    @classmethod
    def quick(cls, seeds: int = 1) -> Settings:
        """Settings for a look at the output in seconds; too small for meaningful numbers."""
        return cls(seeds=seeds, train=600, validation=400, test=600, epochs=5, predictive_samples=4)

    @property
    def is_quick(self) -> bool:
        """True if the data are as few as those of `quick`, or fewer and hardly learnt: too little for reliable numbers."""
        few = Settings.quick()
        sizes = ((self.train, few.train), (self.validation, few.validation), (self.test, few.test))
        fewer = self.epochs <= few.epochs and all(own <= most for own, most in sizes)  # of a file with few rows
        return fewer or all(own == most for own, most in sizes)

    @property
    def names(self) -> tuple[str, ...]:
        """The baselines and the methods."""
        return (*self.baselines, *self.methods)

    @property
    def trainings(self) -> int:
        """The number of trainings: the candidates, and the other seeds of each method's choice."""
        return len(self.candidates()) + len(self.names) * (self.seeds - 1)

    def candidates(self) -> list[MethodRun]:
        """Every combination to choose from, for every baseline and method, with the first seed."""
        return [MethodRun(name, lam, beta, 0) for name in self.names for lam, beta in self._weights(name)]

    def _weights(self, method: str) -> list[tuple[float, float]]:
        if method in BASELINES:
            return [(0.0, 0.0)]
        given = self.method_settings.get(method, {})
        lams = (given["lam"],) if "lam" in given else self.lams if has_lam(method) else (0.0,)
        betas = (given["beta"],) if "beta" in given else self.betas if has_beta(method) else (0.0,)
        return list(product(lams, betas))

    def to_dict(self) -> dict[str, Any]:
        """Every setting by name, for a file."""
        return {**asdict(self), "method_settings": plain_values(self.method_settings)}

    def of_method(self, run: MethodRun) -> dict[str, Any]:
        """All settings of a run's method, by name; the prior of the paper's schemes is that of the comparison."""
        method = method_named(run.scheme)
        ours: dict[str, Any] = {"lam": run.lam, "beta": run.beta, "learning_rate": self.learning_rate, "samples": self.samples}
        if run.scheme in SCHEMES:
            ours |= {"prior_std": self.prior_std, "init_std": self.init_std}
        given = self.method_settings.get(run.scheme, {})
        return {**{name: value for name, value in ours.items() if method.has(name)}, **given}
