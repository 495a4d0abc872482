"""Objects in JSON as rows of a table."""

from __future__ import annotations

from collections import Counter
from typing import Any

from calibayes.errors import DataError
from calibayes.wording import shown

__all__ = ["object_of_pairs"]


def object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return names and values as a dictionary; raise a `DataError` if a name is there twice. For `json.loads`.

    Examples:
        >>> import json
        >>> json.loads('{"a": 1, "b": 2}', object_pairs_hook=object_of_pairs)
        {'a': 1, 'b': 2}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise DataError(f"The name {shown(twice)} occurs more than once in an object. Give it one value.")
    return found
