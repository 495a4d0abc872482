"""A classifier for scikit-learn: `CalibayesClassifier`."""

from __future__ import annotations

from calibayes.estimator.classifier import CalibayesClassifier
from calibayes.estimator.example_uncertainty import Uncertainty

__all__ = ["CalibayesClassifier", "Uncertainty"]
