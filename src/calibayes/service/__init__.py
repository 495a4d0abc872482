"""A trained model behind HTTP: predictions, a page for people, and numbers for monitoring.

`calibayes serve` runs it. Only `calibayes.service.http_app` and what it imports need the extra ``serve``.
"""

from __future__ import annotations

from calibayes.service.settings import ServiceSettings

__all__ = ["ServiceSettings"]
