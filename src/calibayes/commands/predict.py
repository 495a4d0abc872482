"""`calibayes predict`: what a trained model says about a file of any length."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands import data_options as given
from calibayes.commands.places import check_place

__all__ = ["predict"]


def predict(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(help="What calibayes train wrote.", show_default=False)],
    data: Annotated[
        Path,
        typer.Argument(help="A table with the columns of training, or a folder of images or texts.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file for predictions: .csv or .parquet.")] = Path(
        "predictions.csv"
    ),
    abstain_below: Annotated[
        float | None, typer.Option(help="Leave decisions empty whose confidence is lower.", show_default=False)
    ] = None,
    temperature: Annotated[
        bool, typer.Option("--temperature", help="Scale the probabilities by the temperature of training.")
    ] = False,
    target: Annotated[
        str | None, typer.Option(help="The column of the true classes.", show_default="that of training, if it is there")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A column to copy, like an id; may be repeated.", show_default=False)
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Samples of the weights.", show_default="those of training")] = None,
    encoding: given.Encoding = None,
    delimiter: given.Delimiter = None,
    decimal: given.Decimal = None,
    date_format: given.DateFormat = None,
    header: given.Header = None,
) -> None:
    """Let a trained model predict every row of a file, a part at a time: the file may be larger than memory.

    Each row gets a decision, the probability of every class (p_<class>), the confidence, and how uncertain it is for want of
    data (epistemic) and by itself (aleatoric), in nats:

        calibayes predict flowers.model new.csv -o out.csv --abstain-below 0.8

    Where the file has the true classes, calibayes evaluate out.csv says how far the confidence can be trusted.
    """
    from rich.console import Console

    from calibayes.files import load, predict_file

    check_place("--out", out, [path for path in (model, data) if path.is_file()], "what is to be read")
    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    done = predict_file(
        load(model),
        data,
        out,
        target=target,
        keep=keep or (),
        abstain_below=abstain_below,
        temperature=temperature,
        samples=samples,
        **given.typed_in(ctx, given.TABLE_OPTIONS),
        say=lambda line: aside.print(line, markup=False, soft_wrap=True),
    )
    told = [f"{done.rows:,} rows, {100 * done.confidence:.0f} % sure on average."]
    if abstain_below is not None:
        told.append(f"{done.abstained:,} without a decision.")
    lines = [" ".join(told), f"Written: {out}"]
    if done.labelled:
        lines.append(f"Next: calibayes evaluate {shlex.quote(str(out))}")
    console.print("\n".join(lines), markup=False, soft_wrap=True)
