"""Checks that all corruptions share."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.checks import integer
from calibayes.errors import InvalidArgumentError
from calibayes.wording import did_you_mean

__all__ = ["SEVERITIES", "check_severity", "known_name"]

SEVERITIES = (1, 2, 3, 4, 5)


def check_severity(severity: int) -> int:
    """``severity`` itself, or an error if it is not one of 1 … 5."""
    if integer("severity", severity) not in SEVERITIES:
        raise InvalidArgumentError(f"Expected `severity` to be one of 1, 2, 3, 4, 5, but got {severity!r}.")
    return severity


def known_name(name: str, known: Sequence[str], kind: str) -> str:
    """``name`` itself, or an error that suggests the closest of the known names."""
    if name not in known:
        raise InvalidArgumentError(f"Expected the name of {kind}, but got {name!r}. {did_you_mean(name, known)}")
    return name
