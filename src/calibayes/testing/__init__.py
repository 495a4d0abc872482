"""Checks that every posterior, measure, loss and term must pass, also those of other packages."""

from calibayes.testing.framework_checks import check_under_lightning as check_under_lightning
from calibayes.testing.framework_checks import check_under_transformers as check_under_transformers
from calibayes.testing.loss import check_loss as check_loss
from calibayes.testing.measure import check_measure as check_measure
from calibayes.testing.network_cases import DROPOUT_NETWORKS as DROPOUT_NETWORKS
from calibayes.testing.network_cases import NETWORKS as NETWORKS
from calibayes.testing.network_cases import NetworkCase as NetworkCase
from calibayes.testing.posterior import check_posterior as check_posterior
from calibayes.testing.process_checks import check_with_processes as check_with_processes
from calibayes.testing.term import check_term as check_term
