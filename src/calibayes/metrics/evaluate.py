"""Every score of a set of predictions, together."""

from __future__ import annotations

from dataclasses import dataclass, fields

from calibayes.metrics.arrays import Array, as_predictions
from calibayes.metrics.bins import reliability_bins
from calibayes.metrics.proper import accuracy, brier, nll

__all__ = ["Scores", "evaluate"]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How good a set of predictions is, and how far its confidence can be trusted; print it for a table.

    Attributes:
        n: the number of examples.
        bins: the number of bins behind ``ece``.
        accuracy: the share of right decisions.
        nll: the mean negative log-likelihood, in nats.
        brier: the squared distance to the truth, summed over classes, mean over examples.
        ece: the expected calibration error.
        confidence: the mean confidence.
    """

    n: int
    bins: int
    accuracy: float
    nll: float
    brier: float
    ece: float
    confidence: float

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy: positive when the classifier is surer than it is right."""
        return self.confidence - self.accuracy

    def to_dict(self) -> dict[str, float]:
        """The fields by name, and ``overconfidence``: a row for a table or a JSON file."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**row, "overconfidence": self.overconfidence}

    def __str__(self) -> str:
        rows = [
            ("examples", f"{self.n:,}", ""),
            ("accuracy", f"{self.accuracy:.4f}", ""),
            ("NLL", f"{self.nll:.4f}", ""),
            ("Brier", f"{self.brier:.4f}", ""),
            ("ECE", f"{self.ece:.4f}", f"{self.bins} bins"),
            ("confidence", f"{self.confidence:.4f}", ""),
            ("overconfidence", f"{self.overconfidence:+.4f}", "confidence - accuracy"),
        ]
        left = max(len(name) for name, _, _ in rows)
        right = max(len(value) for _, value, _ in rows)
        return "\n".join(f"{name:<{left}}  {value:>{right}}  {note}".rstrip() for name, value, note in rows)


def evaluate(probs: Array, targets: Array, bins: int = 15, *, check: bool = True) -> Scores:
    """Every score of a classifier's probabilities at once, so that none is read without the others.

    Args:
        probs: class probabilities, shape ``[n, K]``, torch or numpy.
        targets: the true classes, integers of shape ``[n]``.
        bins: the number of bins of the expected calibration error.
        check: look at the values first; ``False`` when they are known to be good.

    Example:
        >>> import torch
        >>> print(evaluate(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]), torch.tensor([0, 1, 1])))
        examples              3
        accuracy         0.6667
        NLL              0.7419
        Brier            0.5400
        ECE              0.4333  15 bins
        confidence       0.7667
        overconfidence  +0.1000  confidence - accuracy
    """
    probs, targets = as_predictions(probs, targets, check=check)
    reliability = reliability_bins(probs, targets, bins, check=False)
    return Scores(
        n=len(probs),
        bins=len(reliability.count),
        accuracy=accuracy(probs, targets, check=False),
        nll=nll(probs, targets, check=False),
        brier=brier(probs, targets, check=False),
        ece=reliability.ece,
        confidence=float(probs.amax(-1).double().mean()),
    )
