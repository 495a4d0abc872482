"""Training: the only place that changes weights."""

from calibayes.training.distillation import distill as distill
from calibayes.training.early_stopping import EarlyStopping as EarlyStopping
from calibayes.training.fit import fit as fit
from calibayes.training.history import History as History
from calibayes.training.natural_gradient import NaturalGradient as NaturalGradient
from calibayes.training.weight_averaging import EMA as EMA
from calibayes.training.weight_averaging import EqualAverage as EqualAverage
