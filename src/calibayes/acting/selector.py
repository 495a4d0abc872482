r"""A learned choice of the inputs to answer, made so that the confidence of the answers can be trusted.

Abstaining on low confidence makes answers more accurate, not better calibrated: where confidence itself is wrong, it is kept. A
selector $g(x) \in (0, 1)$ sees more than the confidence (entropy, outlier scores, …) and is trained by the calibration error of
what it selects,

$$ \min_g \; \sqrt{u^\top K u} \; - \; b \log\frac{\bar g - \xi}{1 - \xi}, \qquad
   u_i = \frac{g_i (c_i - r_i)}{\sum_j g_j}, \quad K_{ij} = e^{-|r_i-r_j|/\gamma}, $$

where the second term is a barrier that keeps the mean weight $\bar g$ above the wanted coverage $\xi$. See Fisch, Jaakkola and
Barzilay, "Calibrated Selective Classification" (2022, https://arxiv.org/abs/2208.12084), and Huang, Park and Simeone (2024,
https://arxiv.org/abs/2404.11350), who train it on top of Bayesian networks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, final

import torch
from torch import Tensor

from calibayes.acting.acting_inputs import read_correct, read_features, read_numbers
from calibayes.calibration import MMCE
from calibayes.checks import fraction, integer, non_negative_integer, positive, positive_integer
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array
from calibayes.randomness import generator_for

__all__ = ["Selector", "selection_loss"]

_FIELDS = ("means", "scales", "layers", "threshold", "coverage")
_NEAR = 0.01  # above the wanted coverage; from there down the barrier goes on as a straight line
_LEAST = 10  # examples to learn from
_FARTHEST = 4.0  # standard deviations: what lies beyond is as far as the network has been shown


@final
@dataclass(frozen=True, eq=False)
class Selector:
    """A network that weighs inputs by their features, and a threshold above which they are selected; `fit` makes it.

    Attributes:
        means: of the features that it was fitted to.
        scales: their standard deviations.
        layers: the weight and the bias of each linear layer; between two layers there is a tanh.
        threshold: inputs with a score of at least this are selected.
        coverage: the share of inputs that the threshold was chosen to select.

    Examples:
        >>> generator = torch.Generator().manual_seed(0)
        >>> strange = torch.rand(2000, generator=generator) < 0.2              # confidence is wrong for these
        >>> confidence = 0.6 + 0.4 * torch.rand(2000, generator=generator)
        >>> correct = torch.rand(2000, generator=generator) < torch.where(strange, confidence - 0.4, confidence)
        >>> features = torch.stack((confidence, strange.float()), -1)
        >>> selector = Selector.fit(features, confidence, correct, coverage=0.75)
        >>> selected = selector.selects(features)
        >>> round(float(selected.float().mean()), 2), float(strange[selected].float().mean()) < 0.05
        (0.75, True)
    """

    means: Tensor
    scales: Tensor
    layers: tuple[tuple[Tensor, Tensor], ...]
    threshold: float
    coverage: float

    @classmethod
    def fit(
        cls,
        features: Array,
        confidence: Array,
        correct: Array,
        *,
        coverage: float = 0.8,
        kernel_width: float = 0.4,
        barrier: float = 1e-3,
        hidden: int = 16,
        weight_decay: float = 1e-3,
        steps: int = 500,
        learning_rate: float = 0.02,
        seed: int = 0,
    ) -> Selector:
        r"""Learn from examples that the classifier was not trained on.

        The threshold is the one that selects ``coverage`` of these examples; with others to spare, `at_coverage` chooses one
        that this fit has not seen. There is no guarantee for new examples, only what was measured.

        Args:
            features: ``[n, d]``: confidence, entropy, outlier scores, whatever may show where confidence is wrong.
            confidence: $r$, one number in $[0, 1]$ per example.
            correct: whether each decision is right.
            coverage: $\xi$, the share of inputs to select.
            kernel_width: $\gamma$ of the calibration error.
            barrier: $b$; the smaller, the closer the mean weight comes to the coverage.
            hidden: units of the hidden layer; 0 for a logistic model.
            weight_decay: weight of the squared weights, which keeps the network from learning examples by heart.
            steps: of Adam, each on all examples.
            learning_rate: of Adam, at first; it falls to zero.
            seed: of the initial weights.
        """
        fraction("coverage", coverage)
        positive("kernel_width", kernel_width)
        positive("barrier", barrier)
        positive("learning_rate", learning_rate)
        non_negative_integer("hidden", hidden)
        positive_integer("steps", steps)
        integer("seed", seed)
        if weight_decay != 0:
            positive("weight_decay", weight_decay)
        r = read_numbers("confidence", confidence, unit=True)
        c = read_correct(correct, len(r)).double()
        rows = read_features(features)
        if len(rows) != len(r):
            raise InvalidArgumentError(f"Expected `features` of {len(r)} examples, as `confidence` has, but got {len(rows)}.")
        if len(r) < _LEAST:
            raise InvalidArgumentError(f"Expected at least {_LEAST} examples to fit a selector to, but got {len(r)}.")
        scales = rows.std(0)
        layers = _initial(rows.shape[1], hidden, coverage, seed)
        start = cls(rows.mean(0), torch.where(scales > 0, scales, 1.0), layers, 0.5, coverage)
        trained = start._trained(rows, r, c, (coverage, barrier, kernel_width), weight_decay, steps, learning_rate)
        return trained.at_coverage(rows, coverage)

    def at_coverage(self, features: Array, coverage: float) -> Selector:
        """The selector with the threshold that selects this share of examples, which should be new to it; no labels are needed.

        Tied scores are selected together, so the share may be larger.
        """
        fraction("coverage", coverage)
        scores = self.scores(features).sort(descending=True).values
        return replace(self, threshold=float(scores[math.ceil(coverage * len(scores) - 1e-9) - 1]), coverage=coverage)

    def scores(self, features: Array) -> Tensor:
        """The weight $g(x)$ of each row of features, ``[n]``, in float64; inputs with a higher one are selected first."""
        rows = read_features(features)
        if rows.shape[1] != len(self.means):
            raise InvalidArgumentError(f"Expected {len(self.means)} columns of `features`, but got {rows.shape[1]}.")
        return self._weights(rows)

    def selects(self, features: Array) -> Tensor:
        """True for each row of features that is selected."""
        return self.scores(features) >= self.threshold

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values, for JSON."""
        layers = [[part.tolist() for part in layer] for layer in self.layers]
        plain = {"means": self.means.tolist(), "scales": self.scales.tolist(), "layers": layers}
        return {**plain, "threshold": self.threshold, "coverage": self.coverage}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Selector:
        """The selector that `to_dict` was called on."""
        if missing := [name for name in _FIELDS if name not in saved]:
            raise InvalidArgumentError(f"Expected what `Selector.to_dict` returned, but {missing[0]!r} is missing.")
        means, scales = (torch.tensor(saved[name], dtype=torch.float64) for name in ("means", "scales"))
        layers = [tuple(torch.tensor(part, dtype=torch.float64) for part in layer) for layer in saved["layers"]]
        pairs = tuple((weight, bias) for weight, bias in layers)
        return cls(means, scales, pairs, float(saved["threshold"]), float(saved["coverage"]))

    def _weights(self, rows: Tensor) -> Tensor:
        values = ((rows - self.means) / self.scales).clamp(-_FARTHEST, _FARTHEST)
        *before, (weight, bias) = self.layers
        for inner_weight, inner_bias in before:
            values = torch.tanh(torch.nn.functional.linear(values, inner_weight, inner_bias))
        return torch.nn.functional.linear(values, weight, bias).squeeze(-1).sigmoid()

    def _trained(
        self, rows: Tensor, r: Tensor, c: Tensor, loss: tuple[float, float, float], weight_decay: float, steps: int, rate: float
    ) -> Selector:
        parameters = [part.requires_grad_() for layer in self.layers for part in layer]
        optimizer = torch.optim.Adam(parameters, lr=rate)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            optimizer.zero_grad()
            total = selection_loss(self._weights(rows), r, c, *loss)
            total = total + weight_decay * torch.stack([weight.square().mean() for weight, _ in self.layers]).sum()
            total.backward()
            optimizer.step()
            scheduler.step()
        return replace(self, layers=tuple((weight.detach(), bias.detach()) for weight, bias in self.layers))


def selection_loss(
    weights: Tensor, confidence: Tensor, correct: Tensor, coverage: float, barrier: float, kernel_width: float
) -> Tensor:
    r"""The selective calibration error $\sqrt{u^\top K u}$ with the barrier on the mean weight; see the module for both.

    Examples:
        >>> r, c = torch.tensor([0.9, 0.9], dtype=torch.float64), torch.tensor([1.0, 0.0], dtype=torch.float64)
        >>> losses = [selection_loss(torch.tensor(g, dtype=r.dtype), r, c, 0.4, 1e-9, 0.4) for g in ([1, 1e-9], [0.9, 0.1])]
        >>> [round(float(loss), 3) for loss in losses]                    # 0.9·0.1 − 0.1·0.9 = 0
        [0.1, 0.0]
    """
    error = MMCE(mode="hard", kernel_width=kernel_width).value(confidence, correct, weights)
    room = (weights.mean() - coverage) / (1 - coverage)
    near = torch.as_tensor(_NEAR, dtype=room.dtype)
    wall = torch.where(room > near, room.clamp_min(_NEAR).log(), near.log() + room / near - 1)
    return error - barrier * wall


def _initial(columns: int, hidden: int, coverage: float, seed: int) -> tuple[tuple[Tensor, Tensor], ...]:
    """Small random layers and a bias that gives every example a weight half-way between the coverage and 1."""
    generator = generator_for(torch.device("cpu"), seed, "selector")
    widths = [columns, *([hidden] if hidden else []), 1]
    pairs = []
    for width, following in pairwise(widths):
        weight = torch.randn(following, width, generator=generator, dtype=torch.float64) / math.sqrt(width)
        pairs.append((weight, torch.zeros(following, dtype=torch.float64)))
    weight, bias = pairs[-1]
    level = (1 + coverage) / 2
    pairs[-1] = (0.1 * weight, bias + math.log(level / (1 - level)))
    return tuple(pairs)
