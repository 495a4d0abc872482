"""The settings of a service."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibayes.checks import positive, positive_integer
from calibayes.errors import InvalidArgumentError

__all__ = ["ServiceSettings"]

_MOST_WORKERS = 64


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """What is served, where, and within which limits.

    Attributes:
        model: the file of a trained model.
        host: the address to listen on; this machine alone by default.
        port: 0 for any that is free.
        token: what requests must carry, as ``Authorization: Bearer TOKEN``; None for no token.
        workers: processes that answer requests.
        max_bytes: of the body of a request.
        max_rows: of a request.
        max_seconds: for the body of a request to arrive, and for its prediction; a proxy has to drop heads that never end.
        max_requests: that a worker works on at the same time; more are turned away.
        actions: what is decided for each row, by the names of the options of `calibayes predict`.
        table_options: the format of uploaded texts, by the names of `calibayes.tables.TableOptions`.

    Examples:
        >>> ServiceSettings(model=Path("wines.model"), port=0).for_others
        False
    """

    model: Path
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    workers: int = 1
    max_bytes: int = 16 << 20
    max_rows: int = 10_000
    max_seconds: float = 30.0
    max_requests: int = 256
    actions: Mapping[str, Any] = field(default_factory=dict)
    table_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise InvalidArgumentError(f"Expected --port to lie between 0 and 65535, but got {self.port}.")
        positive_integer("workers", self.workers, _MOST_WORKERS)
        for name in ("max_bytes", "max_rows", "max_requests"):
            positive_integer(name, getattr(self, name))
        positive("max_seconds", self.max_seconds)
        if self.token is not None and (not self.token.isascii() or not self.token.isprintable() or set(self.token) & {" "}):
            raise InvalidArgumentError("Expected --token to be printable ASCII characters without blanks. Choose another one.")
        if self.token == "":
            raise InvalidArgumentError("Expected --token not to be empty. Leave it out for a service without a token.")

    @property
    def for_others(self) -> bool:
        """True if other machines may reach the service."""
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host != "localhost"
