"""What is known about a network's weights: a point, or a distribution."""

from calibayes.posterior.base import Posterior as Posterior
from calibayes.posterior.mean_field import MeanField as MeanField
from calibayes.posterior.point import Point as Point
from calibayes.posterior.statistics import StepStatistics as StepStatistics
