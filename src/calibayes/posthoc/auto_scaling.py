"""Choosing a scaling by cross-validation on the held-out data themselves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import torch
from torch import Tensor

from calibayes.checks import non_negative_integer, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import PosthocWarning, Scaling
from calibayes.posthoc.isotonic import IsotonicScaling
from calibayes.posthoc.no_scaling import NoScaling
from calibayes.posthoc.platt import PlattScaling
from calibayes.posthoc.quadratic import QuadraticScaling
from calibayes.posthoc.structured_matrix import StructuredMatrixScaling
from calibayes.posthoc.temperature import TemperatureScaling
from calibayes.posthoc.vector import VectorScaling
from calibayes.posthoc.venn_abers import VennAbersScaling

__all__ = ["SCALINGS", "AutoScaling", "ScalingMethod", "TriedScaling", "scaling_named"]

SCALINGS: dict[str, Callable[[], Scaling]] = {
    "none": NoScaling,
    "temperature": TemperatureScaling,
    "platt": PlattScaling,
    "vector": VectorScaling,
    "quadratic": QuadraticScaling,
    "structured-matrix": StructuredMatrixScaling,
    "venn-abers": VennAbersScaling,
    "isotonic": IsotonicScaling,
}
ScalingMethod: TypeAlias = str | Callable[[], Scaling]
_TWO_CLASSES = ("none", "temperature", "platt", "vector", "quadratic", "venn-abers", "isotonic")
_MANY_CLASSES = ("none", "temperature", "vector", "structured-matrix")
_MOST_PRODUCTS = 10**9  # n K² from which a matrix takes minutes to fit, and each fold as long again
_MANY = 5000  # held-out examples for which one round of folds says enough


@dataclass(frozen=True)
class TriedScaling:
    """How one scaling did.

    Attributes:
        name: as in `AutoScaling`'s ``methods``.
        nll: the cross-validated NLL; NaN if it was not tried.
        behind: by how much that is above the best.
        standard_error: of that difference, from the examples' own differences.
        reason: why it was not tried, or None.
    """

    name: str
    nll: float
    behind: float
    standard_error: float
    reason: str | None = None


@final
class AutoScaling(Scaling):
    """Choose a scaling by cross-validation and fit it on all held-out data: if you do not want to choose yourself.

    Every method is fitted on all folds but one and scored by its NLL on that one, in turn. Of those that are within one
    standard error of the best, the simplest is taken: none, temperature, then the others in the order of `methods`. Methods
    that the data do not settle (they would warn) are left out. The same data and seed give the same choice.

    Args:
        methods: names among ``"none"``, ``"temperature"``, ``"platt"``, ``"vector"`` (with two classes this is beta
            calibration), ``"quadratic"``, ``"structured-matrix"``, ``"venn-abers"`` and ``"isotonic"``, the simplest first; by
            default all that fit the number of classes.
        folds: the number of stratified folds.
        repeats: how often they are drawn; by default twice, and once for 5,000 examples or more.
        seed: of the folds.

    Examples:
        >>> logits = 3 * torch.randn(1000, 4, generator=torch.Generator().manual_seed(0))
        >>> labels = torch.multinomial((logits / 2).softmax(-1), 1, generator=torch.Generator().manual_seed(1))[:, 0]
        >>> scaling = AutoScaling().fit(logits, labels, logits=True)
        >>> scaling.chosen, scaling.scaling
        ('temperature', TemperatureScaling(temperature=1.90103))
        >>> [(tried.name, round(tried.nll, 3)) for tried in scaling.results]
        [('none', 1.036), ('temperature', 0.897), ('vector', 0.899), ('structured-matrix', 0.906)]
    """

    _scaling: Scaling | None = None
    _results: tuple[TriedScaling, ...] | None = None
    _chosen: str | None = None

    def __init__(
        self, methods: Sequence[str] | None = None, *, folds: int = 5, repeats: int | None = None, seed: int = 0
    ) -> None:
        self.methods = None if methods is None else tuple(methods)
        if self.methods == () or (unknown := [name for name in self.methods or () if name not in SCALINGS]):
            shown = "none at all" if self.methods == () else ", ".join(map(repr, unknown))
            raise InvalidArgumentError(f"Expected `methods` among {', '.join(SCALINGS)}, but got {shown}.")
        self.folds = positive_integer("folds", folds)
        if folds < 2:
            raise InvalidArgumentError(f"Expected `folds` to be at least 2, but got {folds}.")
        self.repeats = None if repeats is None else positive_integer("repeats", repeats)
        self.seed = non_negative_integer("seed", seed)

    @property
    def scaling(self) -> Scaling:
        """The scaling that was chosen, fitted on all held-out data."""
        return self._known(self._scaling)

    @property
    def chosen(self) -> str:
        """Its name."""
        return self._known(self._chosen)

    @property
    def results(self) -> tuple[TriedScaling, ...]:
        """What was tried, with its score, the simplest first."""
        return self._known(self._results)

    def __repr__(self) -> str:
        return f"AutoScaling({'not fitted' if self._scaling is None else repr(self._scaling)})"

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        names = self.methods or (_TWO_CLASSES if predictions.classes == 2 else _MANY_CLASSES)
        folds = self._draw_folds(predictions)
        fitted: dict[str, Scaling] = {}
        losses: dict[str, Tensor] = {}
        reasons: dict[str, str] = {}
        for name in names:
            reason = _too_large(name, predictions)
            if reason is None:
                scaling, reason = _fitted(name, predictions, logits)
            if reason is not None:
                reasons[name] = reason
                continue
            fitted[name] = scaling
            losses[name] = torch.stack([_held_out_losses(name, predictions, fold, logits) for fold in folds]).mean(0)
        if not fitted:
            self._chosen, self._scaling = "none", NoScaling()
            self._results = tuple(_tried(name, None, None, predictions, reasons[name]) for name in names)
            return f"None of {', '.join(names)} is settled by these data, so nothing is changed. {reasons[names[0]]}"
        best = min(losses, key=lambda name: predictions.mean(losses[name]))
        self._results = tuple(_tried(name, losses.get(name), losses[best], predictions, reasons.get(name)) for name in names)
        self._chosen = next(tried.name for tried in self._results if tried.behind <= tried.standard_error)
        self._scaling = fitted[self._chosen]
        return None

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        return self.scaling._scaled(values, logits)

    def _draw_folds(self, predictions: Predictions) -> list[Tensor]:
        """The fold of each example, once for each repeat."""
        repeats = self.repeats or (1 if len(predictions) >= _MANY else 2)
        generator = torch.Generator().manual_seed(self.seed)
        return [_stratified_folds(predictions.targets, self.folds, generator) for _ in range(repeats)]


def scaling_named(method: ScalingMethod) -> Scaling:
    """A new scaling by its name, ``"auto"`` among them, or by a class or function that makes one."""
    if callable(method):
        made = method()
        if not isinstance(made, Scaling):
            raise InvalidArgumentError(f"Expected `method` to make a Scaling, but got {type(made).__name__}.")
        return made
    if method == "auto":
        return AutoScaling()
    if method not in SCALINGS:
        raise InvalidArgumentError(
            f"Expected `method` to be one of auto, {', '.join(SCALINGS)}, or to make a Scaling, but got {method!r}."
        )
    return SCALINGS[method]()


def _too_large(name: str, predictions: Predictions) -> str | None:
    if name != "structured-matrix" or len(predictions) * predictions.classes**2 <= _MOST_PRODUCTS:
        return None
    return "It would take minutes a fold; fit a StructuredMatrixScaling by itself."


def _fitted(name: str, predictions: Predictions, logits: bool) -> tuple[Scaling, str | None]:
    """A scaling fitted on all, and the warning that it gives."""
    scaling = SCALINGS[name]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PosthocWarning)
        scaling.fit(predictions.probs, predictions.targets, weights=predictions.weights, logits=logits)
    return scaling, next((str(item.message) for item in caught), None)


def _held_out_losses(name: str, predictions: Predictions, fold: Tensor, logits: bool) -> Tensor:
    """Each example's NLL, by a scaling that was fitted without its fold."""
    losses = torch.zeros(len(predictions), dtype=torch.float64)
    for held_out in (fold == number for number in range(int(fold.max()) + 1)):
        scaling = NoScaling() if bool(held_out.all()) else _fitted(name, _rows(predictions, ~held_out), logits)[0]
        probs = scaling._scaled(predictions.probs[held_out], logits).double()
        losses[held_out] = -probs.gather(-1, predictions.targets[held_out][:, None])[:, 0].log()
    return losses


def _rows(predictions: Predictions, kept: Tensor) -> Predictions:
    weights = None if predictions.weights is None else predictions.weights[kept]
    return Predictions(predictions.probs[kept], predictions.targets[kept], weights)


def _stratified_folds(targets: Tensor, folds: int, generator: torch.Generator) -> Tensor:
    """Numbers from 0: shuffled within each class, then dealt out one by one."""
    order = torch.randperm(len(targets), generator=generator)
    order = order[targets[order].argsort(stable=True)]
    fold = torch.empty_like(targets)
    fold[order] = torch.arange(len(targets)) % folds
    return fold


def _tried(
    name: str, losses: Tensor | None, of_best: Tensor | None, predictions: Predictions, reason: str | None
) -> TriedScaling:
    if losses is None or of_best is None:
        return TriedScaling(name, math.nan, math.nan, math.nan, reason)
    nll = predictions.mean(losses)
    if not math.isfinite(nll):
        return TriedScaling(name, nll, math.inf, math.nan)
    differences = losses - of_best
    behind = predictions.mean(differences)
    mass = predictions.mass
    standard_error = float((mass * (differences - behind)).square().sum().sqrt() / mass.sum())
    return TriedScaling(name, nll, behind, standard_error)
