"""Ways to train a classifier, by name: each a posterior, an objective and arguments of `fit`."""

from calibayes.methods.ensembles import ENSEMBLE as _ENSEMBLE
from calibayes.methods.ensembles import MIXTURE as _MIXTURE
from calibayes.methods.mean_fields import BNN as _BNN
from calibayes.methods.mean_fields import CA_BNN as _CA_BNN
from calibayes.methods.mean_fields import NATURAL as _NATURAL
from calibayes.methods.mean_fields import WARM as _WARM
from calibayes.methods.method_settings import REGULARISED as REGULARISED
from calibayes.methods.method_settings import MethodSettings as MethodSettings
from calibayes.methods.points import AVERAGED as _AVERAGED
from calibayes.methods.points import CA_FNN as _CA_FNN
from calibayes.methods.points import DROPOUT as _DROPOUT
from calibayes.methods.points import FNN as _FNN
from calibayes.methods.points import FOCAL as _FOCAL
from calibayes.methods.points import SMOOTHED as _SMOOTHED
from calibayes.methods.registry import METHODS as METHODS
from calibayes.methods.registry import Method as Method
from calibayes.methods.registry import Plan as Plan
from calibayes.methods.registry import build as build
from calibayes.methods.registry import method_named as method_named
from calibayes.methods.registry import register_method as register_method
from calibayes.methods.swag_and_laplace import LAPLACE as _LAPLACE
from calibayes.methods.swag_and_laplace import SWAG_METHOD as _SWAG

for _method in (
    *(_FNN, _BNN, _CA_FNN, _CA_BNN),
    *(_AVERAGED, _FOCAL, _SMOOTHED, _DROPOUT),
    *(_LAPLACE, _SWAG, _WARM, _NATURAL),
    *(_ENSEMBLE, _MIXTURE),
):
    register_method(_method)
