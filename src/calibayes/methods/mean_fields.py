"""Methods with a Gaussian over the weights: the paper's, from a trained point, and by natural gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibayes.methods.method_settings import MethodSettings
from calibayes.methods.registry import Method, Network, Plan, one_network
from calibayes.posterior import MeanField
from calibayes.posterior.mean_field import PriorMean
from calibayes.posterior.weight_selection import Where
from calibayes.schedules import Schedule
from calibayes.training.natural_gradient import NaturalGradient

__all__ = ["BNN", "CA_BNN", "NATURAL", "WARM", "MeanFieldSettings", "WarmMeanField"]


@dataclass(frozen=True, kw_only=True)
class MeanFieldSettings(MethodSettings):
    r"""The settings of BNN: those of `calibayes.MeanField`, the weight $\beta$ of the KL, and $R$ ``samples`` per step."""

    beta: Schedule = 0.1
    prior_std: float | Mapping[str, float] = 0.05
    init_std: float | Mapping[str, float] = 0.01
    prior_mean: PriorMean = None
    where: Where = None
    epochs_before: float = 0
    samples: int = 1

    def posterior(self, net: Network) -> MeanField:
        """The posterior over a network's weights."""
        settings = (self.prior_std, self.init_std, self.where, self.prior_mean, self.epochs_before)
        return MeanField(one_network(net), *settings)


@dataclass(frozen=True, kw_only=True)
class CalibratedMeanField(MeanFieldSettings):
    r"""The settings of CA-BNN: those of BNN, with $\lambda > 0$."""

    lam: Schedule = 10.0


@dataclass(frozen=True, kw_only=True)
class WarmMeanField(MeanFieldSettings):
    r"""The settings of a mean field that starts from a trained point: a wide prior and a small $\beta$."""

    beta: Schedule = 0.01
    prior_std: float | Mapping[str, float] = 0.3
    epochs_before: float = 0.5


@dataclass(frozen=True, kw_only=True)
class NaturalGradientSettings(MeanFieldSettings):
    r"""The settings of natural-gradient variational inference (IVON).

    Attributes:
        natural_rate: learning rate of the natural gradient; ``learning_rate`` is that of weights without a distribution.
        decay_rates: of the gradient's and the curvature's averages.
        rescale_rate: take ``natural_rate`` as the learning rate of SGD at the start; it then suits any number of examples.
    """

    prior_std: float | Mapping[str, float] = 0.3
    init_std: float | Mapping[str, float] = 0.03
    natural_rate: float = 0.01
    decay_rates: tuple[float, float] = (0.9, 0.9999)
    rescale_rate: bool = False

    def fit(self, **others: Any) -> dict[str, Any]:
        """Arguments of `calibayes.fit`."""
        optimizer = NaturalGradient(
            self.natural_rate,
            self.decay_rates,
            point_lr=self.learning_rate,
            point_weight_decay=self.weight_decay,
            rescale_lr=self.rescale_rate,
        )
        return {**super().fit(**others), "optimizer": optimizer}


def _mean_field(net: Network, settings: MeanFieldSettings) -> Plan:
    return Plan(settings.posterior(net), settings.objective(settings.beta), settings.fit(samples=settings.samples))


BNN = Method("bnn", "BNN", "A Gaussian over the weights, trained from the start.", MeanFieldSettings, _mean_field)
CA_BNN = Method("ca-bnn", "CA-BNN", "BNN with the calibration term: the paper's proposal.", CalibratedMeanField, _mean_field)
WARM = Method(
    "warm-mean-field", "warm mean field", "A Gaussian over the weights, from a trained point.", WarmMeanField, _mean_field
)
NATURAL = Method(
    "natural-gradient", "natural gradient", "BNN trained by natural gradients (IVON).", NaturalGradientSettings, _mean_field
)
