"""Packages that only some installations have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from calibayes.errors import MissingExtraError

__all__ = ["require_package"]


def require_package(name: str, purpose: str, extra: str | None = None) -> Any:
    """Import a package, or raise an error that says what needs it and how to install it.

    Args:
        name: of the package or module.
        purpose: the subject of the error's sentence, such as "Logging to MLflow".
        extra: the name of its extra; that of the package by default.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs a package that is not installed ({error}). "
            f"Install it with: pip install 'calibayes[{extra or name}]' "
            f"(in a clone: pip install -c constraints.txt -e '.[{extra or name}]')"
        ) from error
