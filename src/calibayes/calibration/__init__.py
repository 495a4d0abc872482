"""Differentiable calibration measures and the scores they are made of: pure functions over tensors."""

from calibayes.calibration.binned import DECE as DECE
from calibayes.calibration.binned import SBECE as SBECE
from calibayes.calibration.functional import dece as dece
from calibayes.calibration.functional import mmce as mmce
from calibayes.calibration.functional import sbece as sbece
from calibayes.calibration.functional import wmmce as wmmce
from calibayes.calibration.kernel import quadratic_form as quadratic_form
from calibayes.calibration.measures import MMCE as MMCE
from calibayes.calibration.measures import WMMCE as WMMCE
from calibayes.calibration.measures import Measure as Measure
from calibayes.calibration.scores import confidence as confidence
from calibayes.calibration.scores import correctness as correctness
