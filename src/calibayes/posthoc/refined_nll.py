"""The NLL that is left once a temperature has been fitted."""

from __future__ import annotations

from calibayes.metrics import nll
from calibayes.metrics.prediction_arrays import Array
from calibayes.posthoc.temperature_choice import temperature_or_identity

__all__ = ["refined_nll"]


def refined_nll(probs: Array, targets: Array, *, weights: Array | None = None) -> float:
    """Return the NLL after temperature scaling fitted on the same predictions.

    Overconfidence that a temperature can fix does not count, so this says how well a network can tell the classes apart: the
    number to watch in training if a temperature is fitted afterwards (Berta et al. 2025, "Rethinking Early Stopping: Refine,
    Then Calibrate", https://arxiv.org/abs/2501.19195). Where the predictions settle no temperature, as where all of them are
    right, it is the plain NLL.

    Args:
        probs: class probabilities, shape ``[n, K]``.
        targets: the true classes, shape ``[n]``.
        weights: how much each example counts, non-negative.

    Examples:
        >>> probs = torch.tensor([[0.99, 0.01], [0.98, 0.02], [0.01, 0.99], [0.97, 0.03]])
        >>> labels = torch.tensor([0, 0, 1, 1])
        >>> round(calibayes.metrics.nll(probs, labels), 3), round(refined_nll(probs, labels), 3)
        (0.887, 0.516)
    """
    scaling, _ = temperature_or_identity(probs, targets, weights)
    return nll(scaling.transform(probs), targets, weights=weights, check=False)
