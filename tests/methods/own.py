"""A method of somebody else's: two networks, with a calibration term."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from calibayes.methods import Method, MethodSettings, Plan, register_method
from calibayes.methods.registry import _REGISTERED, one_network
from calibayes.posterior import Ensemble, Point


@dataclass(frozen=True, kw_only=True)
class Pair(MethodSettings):
    """The settings of a pair of networks."""

    lam: Any = 2.0
    loudness: int = 1


def _plan(net: Any, settings: Pair) -> Plan:
    members = [Point(one_network(net)) for _ in range(2)]
    return Plan(Ensemble(members), settings.objective(), settings.fit())


PAIR = Method("pair", "Pair", "Two networks.", Pair, _plan)


@contextmanager
def pair() -> Iterator[None]:
    """The method is registered in here."""
    register_method(PAIR)
    try:
        yield
    finally:
        del _REGISTERED["pair"]
