"""`calibayes evaluate`: can the confidence of a classifier be trusted?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands import data_options as given
from calibayes.commands.places import check_place
from calibayes.commands.typed import typed

__all__ = ["evaluate"]


def evaluate(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(help="Predictions: .csv, .parquet, .jsonl, .xlsx, .npz; several are compared.", show_default=False),
    ],
    label: Annotated[str | None, typer.Option(help="The column of the true classes.", show_default="found")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="The columns of the probabilities: a pattern like 'p_*', or names.", show_default="found"),
    ] = None,
    logits: Annotated[
        bool | None, typer.Option("--logits/--probabilities", help="What the columns hold.", show_default="by their names")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="A column that says how much each row counts.")] = None,
    id: Annotated[str | None, typer.Option(help="A column by which the rows of several files are matched.")] = None,
    positive: Annotated[str | None, typer.Option(help="The class that a single column of probabilities is about.")] = None,
    encoding: given.Encoding = None,
    delimiter: given.Delimiter = None,
    decimal: given.Decimal = None,
    date_format: given.DateFormat = None,
    header: given.Header = None,
    bins: Annotated[int, typer.Option(help="The number of bins of confidence.")] = 15,
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    replicates: Annotated[int, typer.Option(help="How many times the examples are resampled for the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of the resampling.")] = 0,
    target_accuracy: Annotated[float, typer.Option(help="The accuracy that the coverage is reported for.")] = 0.95,
    report: Annotated[Path | None, typer.Option(help="Write a page (HTML) with tables and diagrams to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON instead of tables.")] = False,
) -> None:
    """Can the confidence of a classifier be trusted? Learn it from a file of its predictions.

    The file has a column with the true class, and one with the probability of each class (or of one of two). They are
    found by their names (label, p_cat, p_dog, …), or named here. With several files, each holds the predictions of
    another classifier for the same examples, and their differences are shown too.

        calibayes evaluate predictions.csv --report page.html
    """
    from rich.console import Console

    from calibayes.checks import positive_integer, share
    from calibayes.data.predictions import align, read_predictions
    from calibayes.metrics.drawing import MOST_REPLICATES
    from calibayes.metrics.evaluate import MOST_BINS
    from calibayes.report import study, write_page
    from calibayes.report.printed import show

    if report is not None:
        check_place("--report", report, files, "the predictions that are to be evaluated")
    positive_integer("--bins", bins, MOST_BINS)
    positive_integer("--replicates", replicates, MOST_REPLICATES)
    share("--level", level)
    share("--target-accuracy", target_accuracy)
    tables = align(
        [
            read_predictions(
                path,
                label=label,
                columns=columns,
                logits=logits,
                weights=weights,
                id=id,
                positive=positive,
                **given.typed_in(ctx, given.TABLE_OPTIONS),
            )
            for path in files
        ]
    )
    aside = Console(stderr=True, highlight=False)
    for table in tables:
        aside.print(f"{table.path}: {table.describe()}", markup=False, soft_wrap=True)
    found = study(
        {table.name: table.probs for table in tables},
        tables[0].targets,
        class_names=tables[0].class_names,
        weights=tables[0].weights,
        logits={table.name: table.logits for table in tables if table.logits is not None},
        bins=bins,
        level=level,
        replicates=replicates,
        seed=seed,
        target_accuracy=target_accuracy,
        origin={"command": typed(), "files": [str(table.path) for table in tables]},
    )
    if report is not None:  # before anything is printed: whoever reads that may stop listening
        write_page(found.to_dict(), report)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        show(found, Console(highlight=False))
    if report is not None:
        aside.print(f"Written: {report}", markup=False, soft_wrap=True)
