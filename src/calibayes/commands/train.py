"""`calibayes train`: train a classifier on your own files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibayes.commands import data_options as given
from calibayes.commands import guarantee_options as guarantee
from calibayes.commands.data_options import option
from calibayes.commands.methods import method_settings
from calibayes.commands.output_paths import check_output_path
from calibayes.terminal import EXIT_INTERRUPTED, print_line, print_results, status_console, stdout_console, typed_command

if TYPE_CHECKING:
    from calibayes.files import Trained

__all__ = ["train"]

_OTHERS = ("data", "out", "report", "no_report", "config", "ctx", "set_")


def train(
    ctx: typer.Context,
    data: given.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write the model to.")] = Path("model.safetensors"),
    report: Annotated[Path | None, option("The page to write the report to.", "beside the model, .html", "--report")] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    target: given.Target = None,
    text: given.Text = None,
    scheme: Annotated[
        str | None, option("The method to train with, one of those below.", "the best of several", "--method", "--scheme")
    ] = None,
    budget: Annotated[
        float | None, option("Minutes for trying methods; with it, all methods are tried until then.", "3 to 30, by the size")
    ] = None,
    folds: Annotated[
        int | None, option("Parts of the rows; each member trains without one. 1 splits the file once.", "5")
    ] = None,
    group: Annotated[str | None, option("A column; rows with the same value stay on one side of every split.")] = None,
    time: Annotated[str | None, option("A column of dates or numbers; rows are predicted from earlier ones alone.")] = None,
    test_file: Annotated[str | None, option("A file of other rows to compute the scores on.", "held-out rows")] = None,
    sets: guarantee.Sets = None,
    sets_score: guarantee.SetsScore = None,
    sets_by_class: guarantee.SetsByClass = None,
    certify: guarantee.Certify = None,
    costs: guarantee.Costs = None,
    set_aside: Annotated[
        float | None,
        option("The share of the rows to keep out of training, for sets and thresholds.", "0.2 with --sets or --certify"),
    ] = None,
    set_: Annotated[
        list[str] | None, option("Set an option of the method, like members=3; may be repeated.", False, "--set")
    ] = None,
    lam: Annotated[float | None, option("The weight λ of the calibration term.", "1 for ca-fnn and ca-bnn")] = None,
    beta: Annotated[float | None, option("The weight β of the KL divergence.", "0.03 for bnn and ca-bnn")] = None,
    epochs: Annotated[int | None, option("The maximum number of epochs (passes over the training rows).", "200")] = None,
    patience: Annotated[int | None, option("Epochs without a lower held-out NLL before training stops.", "6 or 8")] = None,
    batch_size: Annotated[int | None, option("The number of examples in a training step.", "32 to 512, by the rows")] = None,
    learning_rate: Annotated[float | None, option("The learning rate of the optimizer.", "by the method")] = None,
    samples: Annotated[int | None, option("Samples of the weights in a training step.", "1")] = None,
    predictive_samples: Annotated[int | None, option("Samples of the weights that a prediction averages over.", "20")] = None,
    seed: Annotated[int | None, option("The random seed of the folds, the initial weights and the noise.", "0")] = None,
    validation: Annotated[float | None, option("Split once: the fraction of the rows to decide when to stop.", "0.15")] = None,
    test: Annotated[float | None, option("Split once: the fraction of the rows for the final scores.", "0.2")] = None,
    ignore: given.Ignore = None,
    categorical: given.Categorical = None,
    drop_rare: given.DropRare = None,
    encoding: given.Encoding = None,
    delimiter: given.Delimiter = None,
    decimal: given.Decimal = None,
    date_format: given.DateFormat = None,
    header: given.Header = None,
    max_rows: given.MaxRows = None,
    embeddings: given.Embeddings = None,
    image_size: given.ImageSize = None,
    network: Annotated[str | None, option("The network for images: small-cnn or resnet20.", "by their size")] = None,
    config: given.Config = None,
) -> None:
    """Train a classifier on your own data, and measure how far its confidence can be trusted.

    The data are a table with a column of classes (columns may hold numbers, categories, dates or texts, and missing values), or
    a folder with a subfolder of images or texts for each class:

        calibayes train flowers.csv --target species -o flowers.model

    All rows train and all rows measure: each member of an ensemble is trained without a part of the rows, which it then
    predicts. Several methods are tried in this way, and the best is taken. Press Ctrl-C to stop with the best so far.

    With --sets 0.9, predictions will have a set of classes that holds the true one 90 % of the time; with --certify
    accuracy=0.95, they will abstain where 95 % cannot be guaranteed. Both set a share of the rows aside (--set-aside).
    """

    from calibayes.files import TrainSettings, train
    from calibayes.files.report_page import write_report
    from calibayes.files.settings import read_settings

    typed = given.typed_in(ctx, [name for name in ctx.params if name not in _OTHERS])
    typed |= {} if costs is None else {"costs": str(costs)}
    read: dict[str, Any] = {} if config is None else read_settings(config)
    settings = TrainSettings.of({**read, **typed, **_set(set_, read.get("method_settings", {}))})
    page = None if no_report else report or out.with_suffix(".report.html" if out.suffix == ".html" else ".html")
    others = [Path(name) for name in (settings.test_file, settings.costs) if name is not None]
    inputs = [path for path in (data, config, *others) if path is not None and path.is_file()]
    check_output_path("--out", out, inputs, "the data or settings to read")
    if page is not None:
        check_output_path("--report", page, [*inputs, out], "the data or settings to read, or the model")
    console, aside = stdout_console(), status_console()
    try:
        trained = train(data, settings, say=lambda line: print_line(aside, line))
    except KeyboardInterrupt:
        print_line(aside, "Stopped. Nothing was written.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    trained.model.save_or_keep(out)
    stopped = False
    if page is not None:
        print_line(aside, "Writing the report. Press Ctrl-C to leave it out.")
        try:
            write_report(trained, page, source=data, command=typed_command())
        except KeyboardInterrupt:  # the model is there already, and its scores are worth more than the page
            print_line(aside, "Stopped. The report was not written.")
            page, stopped = None, True
    _show(console, trained, data, out, page)
    if stopped:
        raise typer.Exit(EXIT_INTERRUPTED)


def _set(words: list[str] | None, read: dict[str, Any]) -> dict[str, Any]:
    """Return what was typed after --set: settings of the training by name, and those of the method in a dict."""
    from calibayes.files import TrainSettings

    typed = method_settings(words)
    own = {name: value for name, value in typed.items() if name in TrainSettings.__dataclass_fields__}
    return {**own, "method_settings": {**read, **{name: value for name, value in typed.items() if name not in own}}}


def _show(console: Any, trained: Trained, data: Path, out: Path, page: Path | None) -> None:
    """Print what was taken and why, its scores, and the next command to type."""
    from calibayes.files.summary_text import attempts_table, closing_words, opening_words, scores_table, scores_title
    from calibayes.report.guarantees_text import guarantees_text

    print_line(console, f"{opening_words(trained)}\n\n{scores_title(trained)}")
    for table in (scores_table(trained), attempts_table(trained)):
        if table is not None:
            print_results(console, table)
    if trained.guarantees is not None:
        print_line(console, guarantees_text(trained.guarantees, trained.data.classes))
    new = f"new{''.join(data.suffixes)}" if not data.is_dir() else "folder"
    following = f"calibayes predict {shlex.quote(str(out))} {new} -o predictions.csv"
    written = "" if page is None else f" and {page}"
    print_line(console, f"{closing_words(trained)}\nWritten: {out}{written}\nNext: {following}")
