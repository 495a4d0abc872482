"""Ways to train a classifier, by name: each a posterior, an objective and arguments of `fit`."""

from calibayes.methods import ensembles as _ensembles
from calibayes.methods import mean_fields as _mean_fields
from calibayes.methods import points as _points
from calibayes.methods import trajectories as _trajectories
from calibayes.methods.registry import METHODS as METHODS
from calibayes.methods.registry import Method as Method
from calibayes.methods.registry import Plan as Plan
from calibayes.methods.registry import build as build
from calibayes.methods.registry import method_named as method_named
from calibayes.methods.registry import register_method as register_method
from calibayes.methods.settings import MethodSettings as MethodSettings
