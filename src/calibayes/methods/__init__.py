"""Ways to train a classifier, by name: each a posterior, an objective and arguments of `fit`."""

from calibayes.methods import boosted_trees, ensembles, logistic_regression, mean_fields, points, swag_and_laplace
from calibayes.methods.learner import Examples as Examples
from calibayes.methods.learner import Learner as Learner
from calibayes.methods.method_settings import REGULARISED as REGULARISED
from calibayes.methods.method_settings import MethodSettings as MethodSettings
from calibayes.methods.registry import METHODS as METHODS
from calibayes.methods.registry import NETWORK_METHODS as NETWORK_METHODS
from calibayes.methods.registry import Method as Method
from calibayes.methods.registry import Plan as Plan
from calibayes.methods.registry import build as build
from calibayes.methods.registry import method_named as method_named
from calibayes.methods.registry import register_method as register_method

for _method in (
    *(points.FNN, mean_fields.BNN, points.CA_FNN, mean_fields.CA_BNN),
    *(points.AVERAGED, points.FOCAL, points.SMOOTHED, points.DROPOUT),
    *(swag_and_laplace.LAPLACE, swag_and_laplace.SWAG_METHOD, mean_fields.WARM, mean_fields.NATURAL),
    *(ensembles.ENSEMBLE, ensembles.MIXTURE),
    *(logistic_regression.LOGISTIC_REGRESSION, boosted_trees.BOOSTED_TREES),
):
    register_method(_method)
