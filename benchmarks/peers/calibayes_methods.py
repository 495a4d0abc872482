"""calibayes itself: ensembles, a Laplace approximation of the last layer, SWAG and natural gradients.

Names are looked up when they are called, as those of other libraries are: a row whose method is missing says so.
"""

from __future__ import annotations

import copy
from functools import partial
from importlib import import_module
from typing import Any

from torch import Tensor, nn

import calibayes as cb
from benchmarks.peers.interface import (
    BATCH,
    INIT_STD,
    MEMBERS,
    PRIOR_STD,
    RANK,
    SWAG_EPOCHS,
    Data,
    Method,
    Peer,
    Run,
    trainable,
)
from benchmarks.training_step import BATCH as TRAINING_BATCH
from benchmarks.training_step import adam, our_step

__all__ = ["ENSEMBLES", "LAPLACE", "NATURAL_GRADIENT", "SWAG_EACH_EPOCH", "SWAG_EACH_STEP", "restarted", "train"]

_PRIOR_PRECISION = 1.0


def _library() -> Any:
    return import_module("calibayes")


def train(posterior: cb.Posterior, data: Data, *, epochs: int = 1, together: bool = False) -> None:
    """Epochs of `calibayes.fit` without a calibration term; all members of an ensemble at once, or one by one."""
    cb.fit(
        posterior,
        data,
        cb.Objective(lam=0.0, beta=0.0),
        optimizer=adam,
        epochs=epochs,
        batch_size=TRAINING_BATCH,
        progress=False,
        together=together,
    )


def restarted(net: nn.Module) -> nn.Module:
    """A copy of the network with other initial weights."""
    net = copy.deepcopy(net)
    for layer in net.modules():
        reset = getattr(layer, "reset_parameters", None)
        if callable(reset):
            reset()
    return net


def _ensemble(net: nn.Module) -> cb.Ensemble:
    return cb.Ensemble.of(lambda seed: cb.Point(restarted(net)), members=MEMBERS)


def _ensemble_fit(together: bool, net: nn.Module, data: Data) -> Run:
    ensemble = _ensemble(net)
    return Run(lambda: train(ensemble, data, together=together), MEMBERS * trainable(net))


def _ensemble_predict(net: nn.Module, data: Data, x: Tensor, samples: int | None) -> Run:
    ensemble = _ensemble(net).eval()
    return Run(lambda: cb.predict(ensemble, x, samples=samples, batch_size=BATCH), MEMBERS * trainable(net))


def _laplace(net: nn.Module, data: Data) -> Any:
    point = cb.Point(copy.deepcopy(net)).eval()
    return _library().LastLayerLaplace.from_point(point, data, prior_precision=_PRIOR_PRECISION)


def _laplace_fit(net: nn.Module, data: Data) -> Run:
    return Run(lambda: _laplace(net, data), int(_laplace(net, data).num_bayesian))


def _laplace_predict(net: nn.Module, data: Data, x: Tensor, samples: int | None) -> Run:
    posterior = _laplace(net, data)
    how: Any = "closed-form" if samples is None else samples
    return Run(lambda: cb.predict(posterior, x, samples=how, batch_size=BATCH), int(posterior.num_bayesian))


def _swag(every: str, net: nn.Module) -> Any:
    return _library().SWAG(copy.deepcopy(net), start_epoch=1, every=every, rank=RANK)


def _swag_fit(every: str, net: nn.Module, data: Data) -> Run:
    posterior = _swag(every, net)
    return Run(lambda: train(posterior, data, epochs=SWAG_EPOCHS), trainable(net))


def _swag_predict(net: nn.Module, data: Data, x: Tensor, samples: int | None) -> Run:
    posterior = _swag("step", net)
    train(posterior, data, epochs=SWAG_EPOCHS)
    return Run(lambda: cb.predict(posterior, x, samples=samples, batch_size=BATCH), trainable(net))


def _natural_step(net: nn.Module, x: Tensor, y: Tensor) -> Run:
    posterior = cb.MeanField(copy.deepcopy(net), prior_std=PRIOR_STD, init_std=INIT_STD)
    optimizer = _library().NaturalGradient(lr=1e-4)
    return Run(our_step(posterior, x, y, 1, 0.0, optimizer=optimizer), posterior.num_bayesian)


ENSEMBLES = (
    Method(
        "calibayes Ensemble",
        "calibayes",
        partial(_ensemble_fit, True),
        _ensemble_predict,
        "of Points; an epoch of calibayes.fit with together=True; every member has an order of its own",
    ),
    Method("calibayes Ensemble, in turn", "calibayes", partial(_ensemble_fit, False), None, "the same with together=False"),
)
LAPLACE = (Method("calibayes LastLayerLaplace", "calibayes", _laplace_fit, _laplace_predict, "from a trained Point"),)
_NOTE = "epochs of calibayes.fit; a prediction draws its samples anew"
SWAG_EACH_EPOCH = Method("calibayes SWAG", "calibayes", partial(_swag_fit, "epoch"), _swag_predict, _NOTE)
SWAG_EACH_STEP = Method("calibayes SWAG", "calibayes", partial(_swag_fit, "step"), None, _NOTE)
NATURAL_GRADIENT = (
    Peer("calibayes NaturalGradient", "calibayes", _natural_step, None, "an optimiser of a MeanField; |D|/β as for ivon"),
)
