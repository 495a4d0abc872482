"""Distributions over a network's weights: one file for each kind of posterior."""

from calibayes.posterior.abstract_posterior import Posterior as Posterior
from calibayes.posterior.distilled import Distilled as Distilled
from calibayes.posterior.dropout import MCDropout as MCDropout
from calibayes.posterior.ensemble import Ensemble as Ensemble
from calibayes.posterior.flat import Layout as Layout
from calibayes.posterior.group import Group as Group
from calibayes.posterior.laplace import LastLayerLaplace as LastLayerLaplace
from calibayes.posterior.mean_field import MeanField as MeanField
from calibayes.posterior.network_posterior import NetworkPosterior as NetworkPosterior
from calibayes.posterior.point import Point as Point
from calibayes.posterior.running_statistics import StepStatistics as StepStatistics
from calibayes.posterior.swag import SWAG as SWAG
from calibayes.posterior.weight_groups import assemble as assemble
