"""Vector scaling: a scale and a bias for every class."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from calibayes.checks import positive
from calibayes.metrics.prediction_arrays import Predictions
from calibayes.posthoc.abstract_scaling import Scaling
from calibayes.posthoc.convex_fit import Part, PerClass, minimize
from calibayes.posthoc.log_scores import blocks, log_scores
from calibayes.wording import first_few

__all__ = ["VectorScaling"]


@final
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

    def _fit(self, predictions: Predictions, logits: bool) -> str | None:
        total, classes = predictions.mass.sum(), predictions.classes
        parts = [
            Part(_log_probs(part.probs, logits), part.targets[:, None], part.mass[:, None] / total)
            for part in blocks(predictions)
        ]
        identity = torch.stack((torch.ones(classes), torch.zeros(classes))).double()
        parameters = minimize(PerClass(), parts, identity, torch.full_like(identity, self.ridge))
        self._scale, self._bias = parameters.unbind()
        return _unsettled(predictions, parts, parameters)

    def _scaled(self, values: Tensor, logits: bool) -> Tensor:
        return (_log_probs(values, logits) * self.scale + self.bias).softmax(-1)


def _log_probs(values: Tensor, logits: bool) -> Tensor:
    return log_scores(values, logits).log_softmax(-1)


def _unsettled(predictions: Predictions, parts: list[Part], parameters: Tensor) -> str | None:
    """Explain which parameters only the ridge decided.

    The scores are linear in the parameters: if they put every label strictly first, multiplied by ten they fit better.
    """
    reasons = []
    absent = (torch.bincount(predictions.targets, predictions.mass, predictions.classes) == 0).nonzero()[:, 0].tolist()
    if absent:
        shown = first_few([str(label) for label in absent], 5)
        reasons.append(f"the labels hold no example of {len(absent)} of the {predictions.classes} classes ({shown})")
    if all(_all_first(PerClass().scores(part.inputs, parameters), part) for part in parts):
        reasons.append("every held-out example can be decided right")
    if not reasons:
        return None
    return (
        f"No finite scales and biases are best, because {' and '.join(reasons)}: only the ridge keeps them finite. "
        "Fit on more held-out examples, or use TemperatureScaling."
    )


def _all_first(scores: Tensor, part: Part) -> bool:
    """Return True if every label has the largest score alone."""
    others = scores.scatter(-1, part.labels, -torch.inf).amax(-1, keepdim=True)
    return bool((scores.gather(-1, part.labels) > others).all())
