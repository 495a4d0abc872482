"""Methods with one value per weight: the plain network, and cheap improvements on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from calibayes.methods.method_settings import MethodSettings
from calibayes.methods.registry import Method, Network, Plan, one_network
from calibayes.objective import CrossEntropy, Focal
from calibayes.objective.losses import Loss
from calibayes.posterior import MCDropout, Point
from calibayes.schedules import Schedule

__all__ = ["AVERAGED", "CA_FNN", "DROPOUT", "FNN", "FOCAL", "SMOOTHED"]


@dataclass(frozen=True, kw_only=True)
class CalibratedPoint(MethodSettings):
    r"""The settings of CA-FNN: those of all methods, with $\lambda > 0$."""

    lam: Schedule = 10.0


@dataclass(frozen=True, kw_only=True)
class AveragedPoint(MethodSettings):
    """The settings of a network with averaged weights."""

    ema: float | None = 0.99


@dataclass(frozen=True, kw_only=True)
class FocalPoint(MethodSettings):
    """The settings of a network trained with the focal loss."""

    loss: Loss | None = field(default_factory=Focal)


@dataclass(frozen=True, kw_only=True)
class SmoothedPoint(MethodSettings):
    """The settings of a network trained with smoothed labels."""

    loss: Loss | None = field(default_factory=lambda: CrossEntropy(label_smoothing=0.05))


@dataclass(frozen=True, kw_only=True)
class Dropout(MethodSettings):
    """The settings of dropout that stays on at prediction; which layers, by glob patterns on their names."""

    layers: tuple[str, ...] | None = None


def _point(net: Network, settings: MethodSettings) -> Plan:
    return Plan(Point(one_network(net)), settings.objective(), settings.fit())


def _dropout(net: Network, settings: Dropout) -> Plan:
    return Plan(MCDropout(one_network(net), layers=settings.layers), settings.objective(), settings.fit())


FNN = Method("fnn", "FNN", "The plain network: one value per weight, cross-entropy.", MethodSettings, _point)
CA_FNN = Method("ca-fnn", "CA-FNN", "The plain network with the calibration term.", CalibratedPoint, _point)
AVERAGED = Method("ema", "EMA", "The plain network with an average of its weights over steps.", AveragedPoint, _point)
FOCAL = Method("focal", "focal loss", "The plain network trained with the focal loss.", FocalPoint, _point)
SMOOTHED = Method(
    "label-smoothing", "label smoothing", "The plain network trained with smoothed labels.", SmoothedPoint, _point
)
DROPOUT = Method(
    "mc-dropout", "MC dropout", "The network's own dropout stays on at prediction.", Dropout, _dropout, needs_dropout=True
)
