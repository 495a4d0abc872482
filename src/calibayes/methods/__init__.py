"""Ways to train a classifier, by name: each a posterior, an objective and arguments of `fit`."""

from calibayes.methods import ensembles, mean_fields, points, swag_and_laplace
from calibayes.methods.method_settings import REGULARISED as REGULARISED
from calibayes.methods.method_settings import MethodSettings as MethodSettings
from calibayes.methods.registry import METHODS as METHODS
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
):
    register_method(_method)
