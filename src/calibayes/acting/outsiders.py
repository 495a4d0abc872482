r"""Scores of how unlike the training data an input is: higher for outsiders.

| score | needs | see |
|---|---|---|
| `outsider_scores(probs, "max-prob")` | probabilities | Hendrycks and Gimpel (2017, https://arxiv.org/abs/1610.02136) |
| `outsider_scores(probs, "entropy")` | probabilities | |
| `outsider_scores(predictive, "epistemic")` | a `Predictive` of several samples: their disagreement | |
| `outsider_scores(predictive, "between")` | a `Predictive` of an `Ensemble`: the disagreement of its members | |
| `Energy.fit(posterior)`, `energy_scores(logits)` | logits | Liu et al. (2020, https://arxiv.org/abs/2010.03759) |
| `FeatureDistance.fit(posterior, x)` | a network that ends in a linear layer, and training inputs | `feature_distance.py` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from calibayes.acting.acting_inputs import as_tensor, read_probabilities
from calibayes.checks import positive
from calibayes.data.input_structure import batch_length
from calibayes.data.sources.input_blocks import input_blocks
from calibayes.distributed import ALONE
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.network_outputs import logits_of
from calibayes.predictive import Predictive
from calibayes.wording import did_you_mean

__all__ = ["Energy", "OutsiderMethod", "energy_scores", "outsider_scores"]

OutsiderMethod = Literal["max-prob", "entropy", "epistemic", "between"]


def outsider_scores(predictions: Predictive | Array, method: OutsiderMethod = "max-prob") -> Tensor:
    r"""The outsider score of each example from its prediction, ``[n]``, in float64; higher is more unlike the training data.

    Args:
        predictions: a `Predictive`; for ``"max-prob"`` and ``"entropy"`` also probabilities ``[n, K]``.
        method: ``"max-prob"`` is $1 - \max_y p_y$; ``"entropy"`` that of $p$; ``"epistemic"`` the disagreement of the samples,
            ``"between"`` that of the members of an ensemble.

    Examples:
        >>> outsider_scores(torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64))
        tensor([0.1000, 0.5000], dtype=torch.float64)
    """
    if method not in get_args(OutsiderMethod):
        raise InvalidArgumentError(f"Unknown `method` {method!r}. {did_you_mean(method, get_args(OutsiderMethod))}")
    if method == "max-prob":
        return 1 - read_probabilities(predictions, "predictions").amax(-1)
    if method == "entropy":
        entropy: Tensor = torch.special.entr(read_probabilities(predictions, "predictions")).sum(-1)
        return entropy
    if not isinstance(predictions, Predictive):
        raise InvalidArgumentError(
            f"The score {method!r} is the disagreement of several networks, which probabilities do not hold: pass what "
            "`calibayes.predict(posterior, x)` returns."
        )
    if method == "between" and predictions.members_entropy is None:
        raise InvalidArgumentError(
            "The score 'between' needs a prediction of an `Ensemble`. Use 'epistemic' for one posterior."
        )
    return (predictions.epistemic if method == "epistemic" else predictions.between).detach().cpu().double()


def energy_scores(logits: Array, temperature: float = 1.0) -> Tensor:
    r"""The energy of each example, $-T \log \sum_y e^{z_y / T}$, from logits ``[n, K]``; higher for outsiders.

    Probabilities are not enough: their logarithms always have the energy 0.

    Examples:
        >>> energy_scores(torch.tensor([[9.0, 1.0], [1.0, 1.0]], dtype=torch.float64))
        tensor([-9.0003, -1.6931], dtype=torch.float64)
    """
    positive("temperature", temperature)
    values = as_tensor("logits", logits).double()
    if values.dim() != 2 or values.shape[1] < 2 or not len(values):
        raise InvalidArgumentError(f"Expected `logits` of shape [n, K] with n ≥ 1 and K ≥ 2, but got {list(values.shape)}.")
    if not bool(values.isfinite().all()):
        row, column = (~values.isfinite()).nonzero()[0].tolist()
        raise InvalidArgumentError(
            f"Expected finite `logits`, but row {row}, column {column} is {values[row, column].item()}. "
            "Look for an overflow in the network or missing values in the input."
        )
    if bool((values >= 0).all()) and bool(((values.sum(-1) - 1).abs() < 1e-4).all()):
        raise InvalidArgumentError(
            "The energy needs logits, but these rows are non-negative and sum to 1, as probabilities do; whatever was "
            "subtracted from the logits is lost. Pass what the network returns, or use `Energy.fit(posterior)`."
        )
    return -temperature * (values / temperature).logsumexp(-1)


@dataclass(frozen=True, eq=False)
class Energy:
    """The energy score of a posterior's networks, each at its mean weights; the mean over the members of an ensemble.

    Examples:
        >>> posterior = calibayes.Point(torch.nn.Linear(4, 3))
        >>> Energy.fit(posterior).scores(torch.randn(5, 4)).shape
        torch.Size([5])
    """

    posterior: Posterior
    temperature: float = 1.0
    batch_size: int = 512

    @classmethod
    def fit(cls, posterior: Posterior, x: Any = None, *, temperature: float = 1.0, batch_size: int = 512) -> Energy:
        """Return the score of a posterior; nothing has to be learned from ``x``."""
        if not isinstance(posterior, Posterior):
            raise InvalidArgumentError(f"Expected a posterior, but got {type(posterior).__name__}. Wrap it: `Point(net)`.")
        return cls(posterior, positive("temperature", temperature), batch_size)

    def scores(self, x: Any) -> Tensor:
        """The score of each example, ``[n]``: of tensors, a Dataset or a DataLoader."""
        parts = []
        with torch.no_grad(), self.posterior.evaluating():
            for block in input_blocks(x, self.batch_size, ALONE, []):
                for inputs in block:
                    members = [
                        energy_scores(logits_of(outputs[0], batch_length(inputs, "x")), self.temperature)
                        for _, outputs in self.posterior.outputs([inputs], "mean", 0)
                    ]
                    parts.append(torch.stack(members).mean(0))
        if not parts:
            raise DataError("There is nothing to score: `x` has no examples.")
        return torch.cat(parts)
