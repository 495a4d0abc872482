"""`calibayes evaluate`: can the confidence of a classifier be trusted?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands import data_options as given
from calibayes.commands import guarantee_options as guarantee
from calibayes.commands.data_options import argument, option
from calibayes.commands.output_paths import check_output_path
from calibayes.terminal import print_line, status_console, stdout_console, typed_command

__all__ = ["evaluate"]


def evaluate(
    ctx: typer.Context,
    files: Annotated[
        list[Path], argument("Files of predictions (.csv, .tsv, .parquet, .jsonl, .xlsx, .npz); several files are compared.")
    ],
    label: Annotated[str | None, option("The column of the true classes.", "detected")] = None,
    columns: Annotated[
        str | None, option("The columns of the probabilities: a pattern like 'p_*', or their names.", "detected")
    ] = None,
    logits: Annotated[
        bool | None, option("Whether the columns hold logits or probabilities.", "by their names", "--logits/--probabilities")
    ] = None,
    confidence_column: Annotated[
        str | None, option("A column of confidences, if there are no probabilities of classes.", "confidence")
    ] = None,
    correct_column: Annotated[
        str | None, option("The column that says which answers are right, next to one of confidences.", "correct")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="A column with the weight of each row.")] = None,
    id: Annotated[str | None, typer.Option(help="A column to match the rows of several files by.")] = None,
    positive: Annotated[str | None, typer.Option(help="The class that a single column of probabilities belongs to.")] = None,
    encoding: given.Encoding = None,
    delimiter: given.Delimiter = None,
    decimal: given.Decimal = None,
    date_format: given.DateFormat = None,
    header: given.Header = None,
    bins: Annotated[int, typer.Option(help="The number of confidence bins.")] = 15,
    level: Annotated[float, typer.Option(help="The confidence level of the intervals.")] = 0.95,
    replicates: Annotated[int, typer.Option(help="The number of bootstrap samples for the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="The random seed of the bootstrap.")] = 0,
    target_accuracy: Annotated[float, typer.Option(help="The accuracy to report the coverage at.")] = 0.95,
    sets: guarantee.Sets = None,
    sets_score: guarantee.SetsScore = None,
    sets_by_class: guarantee.SetsByClass = None,
    certify: guarantee.Certify = None,
    costs: guarantee.Costs = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page with tables and diagrams to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON instead of tables.")] = False,
) -> None:
    """Measure from a file of predictions how far a classifier's confidence can be trusted.

    The file has a column with the true class, and one with the probability of each class (or of one of two). They are
    found by their names (label, p_cat, p_dog, …), or set with options. Several files hold the predictions of several
    classifiers for the same examples; their differences are shown too.
    A file may also have only a column of confidences and one that says which answers are right, such as those of a
    language model; they are found by the names confidence and correct.

        calibayes evaluate predictions.csv --report page.html

    If the classifier has not seen the rows, they can also calibrate what to do with its predictions: --sets 0.9 for sets that
    hold the true class 90 % of the time, --certify accuracy=0.95 for the confidence above which 95 % of the answers are right:

        calibayes evaluate predictions.csv --certify accuracy=0.95
    """
    from calibayes.checks import fraction, positive_integer
    from calibayes.data.predictions import align, read_predictions
    from calibayes.data.predictions.read_pairs import pair_tables
    from calibayes.metrics.bootstrap import MOST_REPLICATES
    from calibayes.metrics.evaluate import MOST_BINS
    from calibayes.metrics.pairs import as_pairs
    from calibayes.report import study, write_page
    from calibayes.report.study_text import show

    if report is not None:
        check_output_path("--report", report, [*files, *([] if costs is None else [costs])], "the predictions to evaluate")
    positive_integer("--bins", bins, MOST_BINS)
    positive_integer("--replicates", replicates, MOST_REPLICATES)
    fraction("--level", level)
    fraction("--target-accuracy", target_accuracy)
    read_options = given.typed_in(ctx, given.TABLE_OPTIONS)
    pairs = pair_tables(
        files, confidence_column, correct_column, {"--label": label, "--columns": columns, "--id": id}, weights, read_options
    )
    options = given.typed_in(ctx, ("label", "columns", "logits", "weights", "id", "positive")) | read_options
    tables = [] if pairs else align([read_predictions(path, **options) for path in files])
    request = None
    asked = {name: ctx.params[name] for name in guarantee.NAMES}
    if any(value is not None for value in asked.values()):
        from calibayes.files.guarantee_settings import request_to_evaluate

        request = request_to_evaluate(tables[0].class_names if tables else (), read_options, **asked)
    aside = status_console()
    for table in pairs or tables:
        print_line(aside, f"{table.path}: {table.describe()}")
    results = study(
        {table.name: as_pairs(table.confidence, table.correct, table.weights) for table in pairs}
        or {table.name: table.probs for table in tables},
        None if pairs else tables[0].targets,
        class_names=None if pairs else tables[0].class_names,
        weights=(pairs or tables)[0].weights,
        logits={table.name: table.logits for table in tables if table.logits is not None},
        bins=bins,
        level=level,
        replicates=replicates,
        seed=seed,
        target_accuracy=target_accuracy,
        guarantees=request,
        origin={"command": typed_command(), "files": [str(table.path) for table in pairs or tables]},
    )
    if report is not None:  # before anything is printed: a reader of the output may close the pipe
        write_page(results.to_dict(), report)
    if as_json:
        typer.echo(json.dumps(results.to_dict(), indent=2, ensure_ascii=False))
    else:
        show(results, stdout_console())
    if report is not None:
        print_line(aside, f"Written: {report}")
