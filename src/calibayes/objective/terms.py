r"""Terms beside the loss (calibration errors, confidence on out-of-domain inputs, users' own), and their values by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, final, get_args

from torch import Tensor

from calibayes.calibration.measures import WMMCE, Measure, one_of
from calibayes.calibration.scores import widened
from calibayes.errors import InvalidArgumentError
from calibayes.schedules import Schedule, value_at

__all__ = ["Calibration", "ConfidenceMinimization", "LambdaScale", "NamedValues", "Of", "On", "Term", "Terms", "check_measure"]

T = TypeVar("T")
On = Literal["batch", "held_out", "out_of_domain"]
Of = Literal["samples", "predictive"]
LambdaScale = Literal["paper", "mean"]


class Term(ABC):
    r"""A term of the objective that is a function of a whole batch.

    ``scores`` turns logits into a few numbers per example, each example by itself; ``value`` turns those of the whole batch,
    and nothing else, into one number. So the term is exact where a batch lies in several pieces (micro-batches, processes):
    the scores are collected, ``value`` is differentiated there, and each piece gets its slice of the derivative.

    Attributes:
        name: what it is logged as, an identifier.
        on: the data it is taken on: the training ``"batch"``, ``"held_out"`` data or ``"out_of_domain"`` inputs.
        of: ``"samples"`` to take it of each sample of the weights and then average, as the paper does, or ``"predictive"``
            to take it of the probabilities averaged over the samples.

    Examples:
        >>> class Entropy(calibayes.objective.Term):
        ...     name, on, of = "entropy", "batch", "samples"
        ...     def weight(self, step, batch_size):
        ...         return 0.1
        ...     def scores(self, logits, targets):
        ...         return (torch.distributions.Categorical(logits=logits).entropy(),)
        ...     def value(self, entropies, *, weights=None):
        ...         return -entropies.mean(-1)                    # the more, the better
        >>> objective = calibayes.Objective(terms=(Entropy(),))
        >>> history = calibayes.fit(
        ...     calibayes.Point(torch.nn.Linear(4, 3)), (torch.randn(60, 4), torch.arange(60) % 3), objective, epochs=2
        ... )
        >>> list(history.epochs[0])
        ['epoch', 'total', 'cross_entropy', 'entropy', 'kl', 'lr']
    """

    name: str
    on: On
    of: Of

    @abstractmethod
    def weight(self, step: int, batch_size: int) -> float:
        """Return the weight of the value, beside the mean loss, at an optimiser step on ``batch_size`` training examples."""

    @abstractmethod
    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """The scores, each ``[..., n]``, of logits ``[..., n, K]`` and targets ``[n]`` (``None`` for out-of-domain inputs).

        Logits may be the logarithms of averaged probabilities; only their softmax has a meaning.
        """

    @abstractmethod
    def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
        """The term of scores ``[..., n]`` and weights of the same shape, one number per leading index."""


@final
@dataclass(frozen=True)
class Calibration(Term):
    r"""A calibration error: $\frac{\lambda}{|B|} \mathrm{AECE}$, the term of eq. (ca-bnn).

    See Huang, Park and Simeone, "Calibration-Aware Bayesian Learning" (2023, https://arxiv.org/abs/2305.07504).

    Args:
        measure: the calibration measure that stands for AECE.
        lam: $\lambda \ge 0$, or a function of the optimiser step; 0 leaves the term out.
        scale: ``"paper"`` for $\lambda/|B|$ beside the mean loss, or ``"mean"`` for $\lambda$ itself.
        on: the training ``"batch"``, or ``"held_out"`` data (``calibration_data`` of `calibayes.fit`).
        of: ``"samples"``, as in the paper, or ``"predictive"`` for the calibration of the averaged probabilities.
        name: what it is logged as.

    Examples:
        >>> ensemble = Calibration(calibayes.MMCE(), lam=1.0, scale="mean", of="predictive")
        >>> calibayes.Objective(beta=0.1, terms=(ensemble,)).terms[0].weight(step=0, batch_size=128)
        1.0
    """

    measure: Measure = field(default_factory=WMMCE)
    lam: Schedule = 10.0
    scale: LambdaScale = "paper"
    on: On = "batch"
    of: Of = "samples"
    name: str = "calibration"

    def __post_init__(self) -> None:
        check_measure("measure", self.measure)
        value_at(self.lam, 0, "lam")
        one_of("scale", self.scale, get_args(LambdaScale))
        one_of("on", self.on, ("batch", "held_out"))
        one_of("of", self.of, get_args(Of))

    def weight(self, step: int, batch_size: int) -> float:
        lam = value_at(self.lam, step, "lam")
        return lam / batch_size if self.scale == "paper" else lam

    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.measure.scores(widened(logits).softmax(-1), targets))

    def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
        r, c = scores
        return self.measure.value(r, c) if weights is None else self.measure.value(r, c, weights)


@final
@dataclass(frozen=True, init=False, repr=False)
class ConfidenceMinimization(Term):
    r"""Low confidence on inputs of none of the classes, which are given to `calibayes.fit` as ``out_of_domain``.

    The mean over these inputs of $-\frac1K \sum_y \log p(y|x)$, the cross-entropy to the uniform distribution, as in Huang,
    Park and Simeone (2024), *Calibrating Bayesian Learning via Regularization, Confidence Minimization, and Selective
    Inference* (https://arxiv.org/abs/2404.11350). It is smallest, $\log K$, where all classes are equally likely.

    Args:
        weight: of the term beside the mean loss: a number, or a function of the optimiser step.
        of: ``"samples"``, or ``"predictive"`` for the confidence of the averaged probabilities.
        name: what it is logged as.

    Examples:
        >>> term = ConfidenceMinimization(weight=0.5)
        >>> round(float(term.value(*term.scores(torch.zeros(8, 4), None))), 4)         # log 4
        1.3863
    """

    schedule: Schedule
    of: Of
    name: str
    on: On = "out_of_domain"

    def __init__(self, weight: Schedule = 1.0, *, of: Of = "samples", name: str = "confidence") -> None:
        # Not made by `dataclass`: the argument has the name of the method that every term has.
        value_at(weight, 0, "weight")
        one_of("of", of, get_args(Of))
        for key, value in (("schedule", weight), ("of", of), ("name", name)):
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        return f"ConfidenceMinimization(weight={self.schedule!r}, of={self.of!r}, name={self.name!r})"

    def weight(self, step: int, batch_size: int) -> float:
        return value_at(self.schedule, step, "weight")

    def scores(self, logits: Tensor, targets: Tensor | None) -> tuple[Tensor, ...]:
        return (-widened(logits).log_softmax(-1).mean(-1),)

    def value(self, *scores: Tensor, weights: Tensor | None = None) -> Tensor:
        (each,) = scores
        return each.mean(-1) if weights is None else (each * weights).sum(-1) / weights.sum(-1)


def check_measure(name: str, measure: Any) -> None:
    """Raise `InvalidArgumentError` unless it is an object with the two methods of a `Measure`."""
    # A class has the methods too: WMMCE for WMMCE() would only fail at the first step.
    if not isinstance(measure, type) and all(callable(getattr(measure, method, None)) for method in ("scores", "value")):
        return
    hint = "For any other function of the predictions, subclass calibayes.objective.Term and pass it in `terms`."
    if isinstance(measure, type):
        hint = f"Pass an object, not the class: {measure.__name__}()."
    elif callable(measure):
        hint = f"A measure has the methods scores(probs, targets) and value(r, c, weights=None). {hint}"
    raise InvalidArgumentError(f"Expected `{name}` to be a measure such as WMMCE(), but got {measure!r}. {hint}")


class NamedValues(Generic[T]):
    """Values by name that are attributes too: ``terms.kl`` is ``terms.values["kl"]``."""

    values: dict[str, T]

    def __getattr__(self, name: str) -> T:
        # `values` itself is missing while a copy is being made.
        values = self.__dict__.get("values", {})
        if name not in values:
            raise AttributeError(f"{type(self).__name__} has no {name!r}; the terms are {', '.join(values)}.")
        value: T = values[name]
        return value


@final
@dataclass(frozen=True, eq=False)
class Terms(NamedValues[Tensor]):
    """The ``total`` that is minimised, and the ``values`` it is made of, before their weights; iterating gives both in turn.

    The values are the mean loss, every term (zero, and not computed, if its weight is zero) and ``"kl"``, by name; each is an
    attribute too.
    """

    total: Tensor
    values: dict[str, Tensor]

    def __iter__(self) -> Iterator[Tensor]:
        yield self.total
        yield from self.values.values()
