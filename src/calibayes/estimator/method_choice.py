"""The method of a classifier: named, or chosen by evidence."""

from __future__ import annotations

import warnings
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.methods import method_named

__all__ = ["named_method"]

_ONCE = "ca-bnn"  # the paper's, for one training on all rows
_ON_OWN_NETWORK = "ema"
_OF_A_METHOD = ("method_settings", "lam", "beta", "prior_std", "init_std", "calibration")


def named_method(estimator: Any) -> str | None:
    """Return the name of the method that an estimator is to train; ``None`` to choose among several.

    Settings that contradict one another are an error.
    """
    name: str | None = _given(estimator)
    once = estimator.cv is None
    if name is not None:
        method = method_named(name)
        if method.plan is None:
            _check_trains_no_network(estimator, method.name, once)
        name = method.name
    elif once:
        name = _ONCE
    elif not isinstance(estimator.network, str):
        name = _ON_OWN_NETWORK
    elif wanted := [each for each in _OF_A_METHOD if getattr(estimator, each) is not None]:
        raise InvalidArgumentError(
            f"Expected `method` to be named beside `{wanted[0]}`, which is a setting of one method: for example "
            f"CalibayesClassifier('ca-bnn', {wanted[0]}=...)."
        )
    if not once:
        _check_cross_fits(estimator)
    return name


def _given(estimator: Any) -> Any:
    if estimator.scheme is None:
        return estimator.method
    if estimator.method is not None:
        raise InvalidArgumentError(
            f"Expected `method` alone, but got method={estimator.method!r} and scheme={estimator.scheme!r}: `scheme` is its "
            "older name."
        )
    warnings.warn("`scheme` is now called `method`, and will be removed in 1.0.", FutureWarning, stacklevel=4)
    return estimator.scheme


def _check_trains_no_network(estimator: Any, name: str, once: bool) -> None:
    if once:
        raise InvalidArgumentError(f"The method {name!r} stops by the rows held out, and needs folds: use `cv=5`.")
    if not isinstance(estimator.network, str):
        raise InvalidArgumentError(f"The method {name!r} trains no network. Leave `network` out, or name another method.")


def _check_cross_fits(estimator: Any) -> None:
    """Raise for settings that only one training on all rows has."""
    for name in ("lam", "beta"):
        if isinstance(getattr(estimator, name), str) and getattr(estimator, name) == "auto":
            raise InvalidArgumentError(
                f"`{name}='auto'` chooses by a part held out of one training. Add `cv=None`, or give a number."
            )
    if estimator.warm_start:
        raise InvalidArgumentError(
            "`warm_start` continues one training, but `cv` trains a member for each fold: add `cv=None`."
        )
