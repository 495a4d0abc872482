"""Vector scaling: a scale and a bias for every class."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from calibayes.checks import positive
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.log_scores import blocks, log_scores
from calibayes.wording import first_few

__all__ = ["VectorScaling"]

_Parts: TypeAlias = list[tuple[Tensor, Tensor, Tensor]]  # log-probabilities [m, K], labels [m, 1] and weights [m, 1]
_UNIT = 1e8  # the objective is multiplied by this: torch's L-BFGS ignores what it sees along steps as short as ours at the end
_SEARCH: dict[str, Any] = {
    "max_iter": 100,
    "max_eval": 150,
    "tolerance_grad": 1e-7 * _UNIT,
    "tolerance_change": 1e-18 * _UNIT,
    "history_size": 20,
}
_ROUNDS = 20  # coordinates are made anew where a search ended


class VectorScaling(Scaling):
    r"""Give every class its own scale and bias: for classifiers that favour some classes, given enough held-out data.

    $$\tilde p(y|x) \propto \exp(a_y \log p(y|x) + b_y)$$
    minimises the mean NLL plus $\frac{\rho}{2} (\lVert a - 1 \rVert^2 + \lVert b \rVert^2)$. The problem is convex and
    starts at the identity, so on the data of `fit` the NLL never gets worse. The ridge $\rho$ keeps the parameters finite
    where no finite ones are best; a `PosthocWarning` says when. Decisions may change. See Guo et al., "On Calibration of Modern
    Neural Networks" (2017, https://arxiv.org/abs/1706.04599).

    Args:
        ridge: $\rho$, positive.

    Examples:
        >>> held_out = torch.tensor([[0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.9, 0.1], [0.8, 0.2]])
        >>> scaling = VectorScaling().fit(held_out, torch.tensor([0, 1, 1, 0, 1]))
        >>> scaling.transform(torch.tensor([[0.7, 0.3]])).argmax(-1)
        tensor([1])
    """

    _scale: Tensor | None = None
    _bias: Tensor | None = None

    def __init__(self, *, ridge: float = 1e-6) -> None:
        self.ridge = positive("ridge", ridge)

    @property
    def scale(self) -> Tensor:
        """$a$, shape ``[K]``."""
        return self._known(self._scale)

    @property
    def bias(self) -> Tensor:
        """$b$, shape ``[K]``."""
        return self._known(self._bias)

    def __repr__(self) -> str:
        shown = "not fitted" if self._scale is None else f"{len(self._scale)} classes, ridge={self.ridge:g}"
        return f"VectorScaling({shown})"

    def _fit(self, found: Predictions, logits: bool) -> str | None:
        # Kept for all examples, unlike elsewhere: the search goes through them a hundred times.
        parts = [(_log_probs(part.probs, logits), part.targets[:, None], part.mass[:, None]) for part in blocks(found)]
        self._scale, self._bias = _best(parts, float(found.mass.sum()), self.ridge).unbind()
        return _unsettled(found, parts, self._scale, self._bias)

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        return (_log_probs(values, logits) * self.scale + self.bias).softmax(-1)


def _best(parts: _Parts, total: float, ridge: float) -> Tensor:
    """Scale and bias ``[2, K]`` at the minimum."""
    # scikit-learn's logistic regression has neither one scale a class nor a ridge towards anything but zero.
    classes = parts[0][0].shape[1]
    identity = torch.stack((torch.ones(classes), torch.zeros(classes))).double()

    def objective(parameters: Tensor) -> tuple[float, Tensor]:
        value, gradient = _nll(parts, parameters)
        away = parameters - identity
        return value / total + ridge / 2 * float(away.square().sum()), gradient / total + ridge * away

    best, lowest = identity, objective(identity)[0]
    for _ in range(_ROUNDS):
        spread = _Spread(parts, best, total, ridge)
        position = torch.zeros_like(identity)
        search = torch.optim.LBFGS([position], line_search_fn="strong_wolfe", **_SEARCH)

        def closure(spread: _Spread = spread, position: Tensor = position) -> float:
            value, gradient = objective(spread.parameters(position))
            position.grad = _UNIT * spread.back(gradient)
            return _UNIT * value

        search.step(closure)
        found = spread.parameters(position)
        value = objective(found)[0]
        if not value <= lowest:
            break
        best, lowest = found, value
        state = search.state[position]
        if state["n_iter"] < _SEARCH["max_iter"] and state["func_evals"] < _SEARCH["max_eval"]:
            break
    return best


class _Spread:
    """Coordinates in which the objective is about as curved in every direction, so that the search is short.

    A class that is rarely predicted bends the objective little, and its scale and bias pull nearly the same way. So scales
    turn about the class's usual log-probability, and each coordinate is divided by the root of its curvature.
    """

    def __init__(self, parts: _Parts, origin: Tensor, total: float, ridge: float) -> None:
        moments = torch.zeros(3, origin.shape[1], dtype=torch.float64)
        for scores, _, mass in parts:
            probs = (scores * origin[0] + origin[1]).softmax(-1)
            bend = probs * (1 - probs) * mass
            moments += torch.stack((bend.sum(0), (bend * scores).sum(0), (bend * scores.square()).sum(0)))
        moments /= total
        self.origin = origin
        self.center = moments[1] / moments[0].clamp_min(ridge)
        around = (moments[2] - moments[1] * self.center).clamp_min(0)
        self.width = torch.stack((around + ridge * (1 + self.center.square()), moments[0] + ridge)).rsqrt()

    def parameters(self, position: Tensor) -> Tensor:
        """Scale and bias ``[2, K]``."""
        scale, bias = position * self.width
        return self.origin + torch.stack((scale, bias - self.center * scale))

    def back(self, gradient: Tensor) -> Tensor:
        """The gradient with respect to these coordinates."""
        scale, bias = gradient
        return torch.stack((scale - self.center * bias, bias)) * self.width


def _log_probs(values: Tensor, logits: bool) -> Tensor:
    return log_scores(values, logits).log_softmax(-1)


def _nll(parts: _Parts, parameters: Tensor) -> tuple[float, Tensor]:
    """The summed NLL and its gradient with respect to scale and bias ``[2, K]``."""
    scale, bias = parameters
    value, gradient = 0.0, torch.zeros_like(parameters)
    for scores, labels, mass in parts:
        predicted = (scores * scale).add_(bias).log_softmax(-1)
        value -= float((predicted.gather(-1, labels) * mass).sum())
        error = predicted.exp_().scatter_add_(-1, labels, -torch.ones_like(mass)).mul_(mass)
        gradient[1] += error.sum(0)
        gradient[0] += error.mul_(scores).sum(0)
    return value, gradient


def _unsettled(found: Predictions, parts: _Parts, scale: Tensor, bias: Tensor) -> str | None:
    """Explain which parameters only the ridge decided.

    The scores are linear in the parameters: if they put every label strictly first, multiplied by ten they fit better.
    """
    reasons = []
    absent = (torch.bincount(found.targets, found.mass, found.classes) == 0).nonzero()[:, 0].tolist()
    if absent:
        shown = first_few([str(label) for label in absent], 5)
        reasons.append(f"the labels hold no example of {len(absent)} of the {found.classes} classes ({shown})")
    if all(_all_first(scores * scale + bias, labels, mass) for scores, labels, mass in parts):
        reasons.append("every held-out example can be decided right")
    if not reasons:
        return None
    return (
        f"No finite scales and biases are best, because {' and '.join(reasons)}: only the ridge keeps them finite. "
        "Fit on more held-out examples, or use TemperatureScaling."
    )


def _all_first(scores: Tensor, labels: Tensor, mass: Tensor) -> bool:
    """Return True if every label that counts has the largest score alone."""
    others = scores.scatter(-1, labels, -torch.inf).amax(-1, keepdim=True)
    return bool(((scores.gather(-1, labels) > others) | (mass == 0)).all())
