"""The objective: a loss and terms, each an object with a name."""

from calibayes.objective.losses import CrossEntropy as CrossEntropy
from calibayes.objective.losses import Focal as Focal
from calibayes.objective.losses import Loss as Loss
from calibayes.objective.losses import cross_entropy as cross_entropy
from calibayes.objective.objective import SCHEMES as SCHEMES
from calibayes.objective.objective import Objective as Objective
from calibayes.objective.objective import checked_objective as checked_objective
from calibayes.objective.objective_checks import check_batch_terms as check_batch_terms
from calibayes.objective.objective_checks import check_data as check_data
from calibayes.objective.terms import Calibration as Calibration
from calibayes.objective.terms import ConfidenceMinimization as ConfidenceMinimization
from calibayes.objective.terms import Term as Term
from calibayes.objective.terms import Terms as Terms
