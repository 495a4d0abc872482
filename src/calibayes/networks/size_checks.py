"""The check on sizes that all networks share."""

from __future__ import annotations

from calibayes.errors import InvalidArgumentError

__all__ = ["check_size"]


def check_size(name: str, value: int, least: int = 1) -> int:
    """``value``, or an error that names and quotes it when it is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"Expected `{name}` to be an integer of at least {least}, but got {value!r}.")
    return value
