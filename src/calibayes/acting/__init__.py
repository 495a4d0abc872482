"""Acting on confidence: prediction sets, certified thresholds, decisions by cost, outsiders, membership, data without labels.

Everything is calibrated on examples that neither the classifier nor a scaling of its probabilities has seen, and says what it
guarantees. `docs/acting.md` leads through it.
"""

from __future__ import annotations

from calibayes.acting.acting_inputs import ActingWarning
from calibayes.acting.conformal_scores import ConformalScore
from calibayes.acting.cost_thresholds import CostThreshold, certify_cost
from calibayes.acting.cross_sets import CrossConformalSets, cross_conformal_sets
from calibayes.acting.decisions import CostDecisions, decide_by_cost
from calibayes.acting.detection import Detection, detection
from calibayes.acting.exact_bounds import clopper_pearson
from calibayes.acting.exchangeability import ExchangeabilityTest, same_distribution
from calibayes.acting.feature_distance import FeatureDistance, features_of
from calibayes.acting.guarantee_request import CertifyRequest, CostTable, GuaranteeRequest
from calibayes.acting.guarantees import Guarantees, calibrate_guarantees
from calibayes.acting.membership_attack import MembershipAttack, membership_attack, tpr_at_fpr
from calibayes.acting.membership_scores import lira_scores, membership_scores, true_class_log_odds
from calibayes.acting.outsiders import Energy, energy_scores, outsider_scores
from calibayes.acting.prediction_sets import PredictionSets, conformal_sets, examples_needed
from calibayes.acting.selective_outsiders import SelectiveWithOutsiders, selective_with_outsiders
from calibayes.acting.selector import Selector
from calibayes.acting.set_coverage import SetCoverage, set_coverage
from calibayes.acting.shift_monitor import ShiftMonitor
from calibayes.acting.thresholds import ClassThresholds, Threshold, certify_class_thresholds, certify_threshold
from calibayes.acting.without_labels import ExpectedAccuracy, expected_accuracy

__all__ = [
    "ActingWarning",
    "CertifyRequest",
    "ClassThresholds",
    "ConformalScore",
    "CostDecisions",
    "CostTable",
    "CostThreshold",
    "CrossConformalSets",
    "Detection",
    "Energy",
    "ExchangeabilityTest",
    "ExpectedAccuracy",
    "FeatureDistance",
    "GuaranteeRequest",
    "Guarantees",
    "MembershipAttack",
    "PredictionSets",
    "SelectiveWithOutsiders",
    "Selector",
    "SetCoverage",
    "ShiftMonitor",
    "Threshold",
    "calibrate_guarantees",
    "certify_class_thresholds",
    "certify_cost",
    "certify_threshold",
    "clopper_pearson",
    "conformal_sets",
    "cross_conformal_sets",
    "decide_by_cost",
    "detection",
    "energy_scores",
    "examples_needed",
    "expected_accuracy",
    "features_of",
    "lira_scores",
    "membership_attack",
    "membership_scores",
    "outsider_scores",
    "same_distribution",
    "selective_with_outsiders",
    "set_coverage",
    "tpr_at_fpr",
    "true_class_log_odds",
]
