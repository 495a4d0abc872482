"""How the rows of a table become inputs of a network: one of three ways."""

from __future__ import annotations

from typing import Any

from calibayes.files.checked_fields import Fields
from calibayes.files.image_coding import ImageCoding
from calibayes.files.table_coding import TableCoding
from calibayes.files.text_coding import TextCoding

__all__ = ["Coding", "coding_from"]

Coding = TableCoding | TextCoding | ImageCoding

_KINDS: dict[str, Any] = {each.kind: each for each in (TableCoding, TextCoding, ImageCoding)}


def coding_from(fields: Fields) -> Coding:
    """The coding that a file describes."""
    made: Coding = _KINDS[fields.text("kind", tuple(_KINDS))].of(fields)
    return made
