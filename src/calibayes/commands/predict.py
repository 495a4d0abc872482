"""`calibayes predict`: the predictions of a trained model for a file of any length."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands import data_options as given
from calibayes.commands import guarantee_options as guarantee
from calibayes.commands.data_options import argument, option
from calibayes.commands.output_paths import check_output_path
from calibayes.terminal import EXIT_INTERRUPTED, print_line, status_console, stdout_console, typed_command

__all__ = ["predict"]


def predict(
    ctx: typer.Context,
    model: Annotated[Path, argument("The model file that calibayes train wrote.")],
    data: Annotated[Path, argument("A table with the same columns as the training data, or a folder of images or texts.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write predictions to: .csv or .parquet.")] = Path(
        "predictions.csv"
    ),
    abstain_below: Annotated[float | None, option("Abstain where the confidence is lower: leave the decision empty.")] = None,
    sets: guarantee.Sets = None,
    sets_score: guarantee.SetsScore = None,
    sets_by_class: guarantee.SetsByClass = None,
    certify: guarantee.Certify = None,
    costs: guarantee.Costs = None,
    temperature: Annotated[
        bool | None,
        option(
            "Whether to apply the temperature that was fitted during training.",
            "as the model says",
            "--temperature/--no-temperature",
        ),
    ] = None,
    target: Annotated[str | None, option("The column of the true classes.", "the one used in training, if present")] = None,
    keep: Annotated[list[str] | None, option("A column to copy to the output, like an id; may be repeated.")] = None,
    samples: Annotated[int | None, option("Samples of the weights that a prediction averages over.", "as in training")] = None,
    workers: Annotated[
        int | None,
        option(
            "Processes that predict; the output is the same for any number.",
            "one per core if one alone would take more than about 15 s, judging by the first 16,384 rows; otherwise 1",
        ),
    ] = None,
    backend: Annotated[str, typer.Option(help="Where rows are predicted: local, ray or dask.")] = "local",
    address: Annotated[str | None, option("The address of the Ray or Dask cluster.", "a new local one")] = None,
    encoding: given.Encoding = None,
    delimiter: given.Delimiter = None,
    decimal: given.Decimal = None,
    date_format: given.DateFormat = None,
    header: given.Header = None,
) -> None:
    """Predict every row of a file with a trained model; the file may be larger than memory.

    Each row gets a decision, the probability of every class (p_<class>), the confidence, and its epistemic uncertainty (for
    lack of data) and aleatoric uncertainty (noise in the data), in nats:

        calibayes predict flowers.model new.csv -o out.csv --abstain-below 0.8

    A model that was trained with --sets, --certify or --set-aside can say more: a set of classes that holds the true one as
    often as you ask (--sets 0.9), decisions that are right as often as you ask, and none elsewhere (--certify accuracy=0.95),
    and how unlike the known rows each row is (outsider, from 0 to 1). What it was trained for is the default.

    With --backend ray or dask, shards of the output are kept in a folder beside it until it is complete: after an interruption,
    run the same command again to continue.

    If the file has the true classes, run calibayes evaluate out.csv to find out how far the confidence can be trusted.
    """

    from calibayes.files import load, predict_file

    inputs = [path for path in (model, data, costs) if path is not None and path.is_file()]
    check_output_path("--out", out, inputs, "the model or the data to read")
    console, aside = stdout_console(), status_console()
    names = ("target", "keep", "abstain_below", *guarantee.NAMES, "temperature", "samples", "workers", "backend", "address")
    options = given.typed_in(ctx, (*names, *given.TABLE_OPTIONS))
    try:
        done = predict_file(load(model), data, out, say=lambda line: print_line(aside, line), **options)
    except KeyboardInterrupt:
        kept = "Nothing was written." if backend == "local" else f"Finished shards are kept. To continue: {typed_command()}"
        print_line(aside, f"Stopped. {kept}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    abstained = f" Abstained on {done.abstained:,}." if done.abstains else ""
    print_line(console, f"{done.rows:,} rows, mean confidence {100 * done.confidence:.0f} %.{abstained}\nWritten: {out}")
    if done.labelled:
        print_line(console, f"Next: calibayes evaluate {shlex.quote(str(out))}")
