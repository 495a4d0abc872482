"""Scores of predictions, as they are and with a temperature fitted on validation examples."""

from __future__ import annotations

from typing import Any

import torch

from calibayes import metrics
from calibayes.data import Splits
from calibayes.posthoc import refined_nll
from calibayes.posthoc.temperature_choice import temperature_or_identity

__all__ = ["SCORES", "refined", "scored"]

SCORES = ("accuracy", "nll", "ece", "brier", "aurc")


def refined(validation: Any, splits: Splits) -> float:
    """The validation NLL after temperature scaling, which settings are chosen by."""
    return float(refined_nll(torch.as_tensor(validation), splits.validation[1]))


def scored(validation: Any, test: Any, splits: Splits) -> dict[str, Any]:
    """Scores on validation and test examples, plain and scaled, and the temperature."""
    probs = torch.as_tensor(validation)
    scaling, _ = temperature_or_identity(probs, splits.validation[1])
    parts = {"validation": (probs, splits.validation[1]), "test": (torch.as_tensor(test), splits.test[1])}
    found: dict[str, Any] = {"temperature": float(scaling.temperature)}
    for name, (values, targets) in parts.items():
        both = {"plain": values, "scaled": scaling.transform(values)}
        found[name] = {
            way: {score: float(getattr(metrics, score)(each, targets)) for score in SCORES} for way, each in both.items()
        }
    return found
