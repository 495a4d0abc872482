"""Train classifiers whose confidence can be trusted: calibration-aware Bayesian learning for any PyTorch network."""

from calibayes import calibration as calibration
from calibayes import displays as displays
from calibayes import errors as errors
from calibayes import metrics as metrics
from calibayes import posthoc as posthoc
from calibayes import schedules as schedules
from calibayes import sweeps as sweeps
from calibayes.calibration import DECE as DECE
from calibayes.calibration import MMCE as MMCE
from calibayes.calibration import WMMCE as WMMCE
from calibayes.checkpoint import load as load
from calibayes.checkpoint import save as save
from calibayes.displays import ReliabilityDisplay as ReliabilityDisplay
from calibayes.metrics import evaluate as evaluate
from calibayes.objective import SCHEMES as SCHEMES
from calibayes.objective import Objective as Objective
from calibayes.posterior import MeanField as MeanField
from calibayes.posterior import Point as Point
from calibayes.predictive import Predictive as Predictive
from calibayes.predictive import predict as predict
from calibayes.sweeps.grid import grid as grid
from calibayes.sweeps.sweep import sweep as sweep
from calibayes.training import EarlyStopping as EarlyStopping
from calibayes.training import History as History
from calibayes.training import fit as fit

__version__ = "0.1.0"
