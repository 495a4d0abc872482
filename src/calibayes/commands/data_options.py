"""The options that say what a file of the user's own holds, the same for every command that trains on one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "TABLE_OPTIONS",
    "Categorical",
    "Config",
    "Data",
    "DateFormat",
    "Decimal",
    "Delimiter",
    "DropRare",
    "Embeddings",
    "Encoding",
    "Header",
    "Ignore",
    "ImageSize",
    "MaxRows",
    "OwnData",
    "Target",
    "Text",
    "typed_in",
]

TABLE_OPTIONS = ("encoding", "delimiter", "decimal", "date_format", "header")
"""The options of every command that reads a table."""

_DATA = "A table (.csv, .tsv, .parquet, .jsonl, .xlsx), or a folder with a folder for each class of images or texts."

Data = Annotated[Path, typer.Argument(help=_DATA, show_default=False)]
OwnData = Annotated[Path | None, typer.Argument(help=_DATA, show_default="images that come with calibayes")]
Target = Annotated[str | None, typer.Option(help="The column of the classes.", show_default=False)]
Text = Annotated[
    list[str] | None, typer.Option(help="A column of texts to classify by; may be repeated.", show_default="all columns")
]
Ignore = Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.", show_default=False)]
Categorical = Annotated[
    list[str] | None,
    typer.Option(help="A column of categories that look like numbers; may be repeated.", show_default=False),
]
DropRare = Annotated[
    bool | None,
    typer.Option("--drop-rare", help="Leave classes with fewer than three examples out.", show_default=False),
]
Encoding = Annotated[str | None, typer.Option(help="The encoding of text files.", show_default="utf-8")]
Delimiter = Annotated[str | None, typer.Option(help="What separates the cells of a CSV file.", show_default="detected")]
Decimal = Annotated[str | None, typer.Option(help="The decimal mark of numbers: '.' or ','.", show_default=".")]
DateFormat = Annotated[
    str | None, typer.Option(help="How dates are written, like %d.%m.%Y; 2024-12-31 is always read.", show_default=False)
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first row has names; if not: column1, ….", show_default="header"),
]
MaxRows = Annotated[int | None, typer.Option(help="Train on at most so many rows, drawn by the seed.", show_default="all")]
Embeddings = Annotated[
    str | None,
    typer.Option(help="Word vectors: learned, or glove (calibayes data get glove).", show_default="learned"),
]
ImageSize = Annotated[
    int | None, typer.Option(help="Height and width that images are brought to.", show_default="28 grey, 32 colour")
]

Config = Annotated[
    Path | None, typer.Option(help="A TOML file with settings like these; what is typed here wins.", show_default=False)
]


def typed_in(ctx: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """The options among ``names`` that were typed; one that may be repeated and was not is an empty list."""
    return {name: ctx.params[name] for name in names if ctx.params[name] not in (None, (), [])}
