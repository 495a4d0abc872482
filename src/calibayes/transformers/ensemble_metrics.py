"""Scores of an evaluation by the ``Trainer``, from the ensemble's probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes import metrics

__all__ = ["compute_metrics"]


def compute_metrics(prediction: Any) -> dict[str, float]:
    """Accuracy, NLL, Brier score and ECE: what `CalibayesTrainer` computes unless it is given something else.

    Args:
        prediction: the ``EvalPrediction`` of a `CalibayesTrainer`, whose predictions are probabilities.

    Examples:
        >>> from transformers import EvalPrediction
        >>> probs = torch.tensor([[0.9, 0.1], [0.4, 0.6]]).numpy()
        >>> found = compute_metrics(EvalPrediction(predictions=probs, label_ids=torch.tensor([0, 0]).numpy()))
        >>> {name: round(value, 4) for name, value in found.items()}
        {'accuracy': 0.5, 'nll': 0.5108, 'brier': 0.37, 'ece': 0.35}
    """
    probs, targets = (_joined(each) for each in (prediction.predictions, prediction.label_ids))
    return {
        "accuracy": metrics.accuracy(probs, targets),
        "nll": metrics.nll(probs, targets, check=False),
        "brier": metrics.brier(probs, targets, check=False),
        "ece": metrics.ece(probs, targets, check=False),
    }


def _joined(found: Any) -> Any:
    """One array; with ``eval_do_concat_batches=False`` there is a list of one for each batch."""
    return np.concatenate(found) if isinstance(found, list) else found
