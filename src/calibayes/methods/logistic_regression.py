"""Logistic regression as a method: scikit-learn finds its weights, calibayes predicts with them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from calibayes.checks import positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.methods.learner import Examples
from calibayes.methods.registry import Method
from calibayes.networks.text_network import TextLinear
from calibayes.networks.word_weights import WordWeights
from calibayes.posterior import Point
from calibayes.posterior.abstract_posterior import Posterior

__all__ = ["LOGISTIC_REGRESSION", "LinearLearner", "LogisticRegressionSettings"]

_SMALLEST = 1e-12  # a probability of zero where the truth is would decide everything

_NEVER = -30.0  # the logit of a class without training rows


@runtime_checkable
class SparseInputs(Protocol):
    """A first layer whose outputs are mostly zeros."""

    def matrix(self, inputs: Tensor) -> Any:
        """The outputs as a sparse matrix of SciPy's."""


@dataclass(frozen=True, kw_only=True)
class LogisticRegressionSettings:
    """The settings of logistic regression.

    Attributes:
        penalties: inverse strengths of the quadratic penalty, from the strongest; the search ends where the NLL rises.
        start: where the search begins, at the closest of them: weaker ones follow, then stronger ones unless a weaker one was
            better. By default at the strongest.
        iterations: of the optimiser for each of them, at most.
    """

    penalties: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    start: float | None = None
    iterations: int = 200

    def __post_init__(self) -> None:
        values = self.penalties if isinstance(self.penalties, list | tuple) else (self.penalties,)
        if not values or not all(isinstance(each, int | float) and 0 < each < np.inf for each in values):
            raise InvalidArgumentError(f"Expected `penalties` to be numbers above 0, but got {self.penalties!r}.")
        object.__setattr__(self, "penalties", tuple(map(float, values)))
        if self.start is not None:
            positive("start", self.start)
        positive_integer("iterations", self.iterations, 1_000_000)


@dataclass(frozen=True)
class LinearLearner:
    """Multinomial logistic regression on fixed inputs; the penalty with the lowest held-out NLL is taken.

    On the piecewise-linear inputs of `TableInputs` this is an additive model: each column has a curve of its own. On
    `WordWeights` the inputs are a sparse matrix.

    Attributes:
        inputs: the first layer, fitted already.
        settings: of the penalty.
    """

    inputs: nn.Module
    settings: LogisticRegressionSettings = LogisticRegressionSettings()

    @property
    def method(self) -> str:
        """The name of the method."""
        return LOGISTIC_REGRESSION.name

    @property
    def title(self) -> str:
        """The name that users see."""
        return LOGISTIC_REGRESSION.title

    def __call__(self, train: Examples, held_out: Examples, classes: int, seed: int) -> Posterior:
        """Fit one member."""
        x, other = self._matrix(train.inputs), self._matrix(held_out.inputs)
        search = _PenaltySearch(x, train, other, held_out, self.settings.iterations)
        penalties, start = self.settings.penalties, self.settings.start
        first = 0 if start is None else int(np.abs(np.log(np.divide(penalties, start))).argmin())
        search.improves(penalties[first : first + 1])
        if not search.improves(penalties[first + 1 :]):
            search.improves(penalties[:first][::-1])
        return Point(self._network(*search.best(classes))).eval()

    def _matrix(self, inputs: Tensor) -> Any:
        """What scikit-learn takes: a sparse matrix of texts, an array of anything else."""
        return self.inputs.matrix(inputs) if isinstance(self.inputs, SparseInputs) else self.inputs(inputs).numpy()

    def _network(self, coefficients: Tensor, intercepts: Tensor) -> nn.Module:
        """The network that predicts by coefficients ``[classes, width]`` of the inputs."""
        classes, width = coefficients.shape
        with torch.no_grad():
            if isinstance(self.inputs, WordWeights):
                text = TextLinear(self.inputs, classes)
                text.coefficients.copy_(coefficients.T)
                text.bias.copy_(intercepts)
                return text
            layer = nn.Linear(width, classes)
            layer.weight.copy_(coefficients)
            layer.bias.copy_(intercepts)
            return nn.Sequential(self.inputs, layer)


class _PenaltySearch:
    """Fits with one penalty after the other, each from the weights of the last one, and keeps the best on held-out rows."""

    def __init__(self, x: Any, train: Examples, other: Any, held_out: Examples, iterations: int) -> None:
        from scipy.sparse import issparse
        from sklearn.linear_model import LogisticRegression

        # The gradient of sparse inputs is small from the start: with the usual tolerance a weaker penalty would change nothing.
        tolerance = 1e-8 if issparse(x) else 1e-4
        self._model: Any = LogisticRegression(warm_start=True, max_iter=iterations, tol=tolerance)
        self._x, self._other, self._train, self._held_out = x, other, train, held_out
        self._best: tuple[Any, Any] = ((), ())  # coefficients and intercepts
        self._lowest = np.inf

    def improves(self, penalties: Sequence[float]) -> bool:
        """Try penalties until one is worse than the best so far; returns True if any is better."""
        from sklearn.exceptions import ConvergenceWarning

        model, lowest, weights = self._model, self._lowest, _numpy(self._train.weights)
        for penalty in penalties:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.set_params(C=penalty).fit(self._x, self._train.targets.numpy(), sample_weight=weights)
            loss = self._loss()
            if loss > self._lowest:
                break
            self._best, self._lowest = (model.coef_.copy(), model.intercept_.copy()), loss
        return self._lowest < lowest

    def _loss(self) -> float:
        """The mean NLL of the held-out rows whose class has training rows."""
        known, labels, weights = self._model.classes_, self._held_out.targets.numpy(), _numpy(self._held_out.weights)
        has = np.isin(labels, known)
        probs = self._model.predict_proba(self._other)[has]
        own = probs[np.arange(len(probs)), np.searchsorted(known, labels[has])]
        return float(-np.average(np.log(np.maximum(own, _SMALLEST)), weights=None if weights is None else weights[has]))

    def best(self, classes: int) -> tuple[Tensor, Tensor]:
        """The best coefficients and intercepts."""
        return _all_classes(*self._best, self._model.classes_, classes)


def _all_classes(coefficients: Any, intercepts: Any, known: Any, classes: int) -> tuple[Tensor, Tensor]:
    """Return scikit-learn's weights for all classes; one without training rows has a logit that is never the largest."""
    if len(known) == 2:
        coefficients, intercepts = (np.stack([-part / 2, part / 2]) for part in (coefficients[0], intercepts[0]))
    weights, biases = torch.zeros(classes, coefficients.shape[1]), torch.full((classes,), _NEVER)
    weights[torch.from_numpy(known)] = torch.from_numpy(np.asarray(coefficients, dtype=np.float32))
    biases[torch.from_numpy(known)] = torch.from_numpy(np.asarray(intercepts, dtype=np.float32))
    return weights, biases


def _numpy(values: Tensor | None) -> Any:
    return None if values is None else values.numpy()


LOGISTIC_REGRESSION = Method(
    "logistic-regression",
    "logistic regression",
    "Logistic regression: on tables each number has a curve of its own, on texts each word a weight.",
    LogisticRegressionSettings,
    learner=LinearLearner,
)
