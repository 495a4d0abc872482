"""`calibayes train`: train a classifier on your own files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibayes.commands import data_options as given
from calibayes.commands.data_options import option
from calibayes.commands.methods import method_settings
from calibayes.commands.output_paths import check_output_path
from calibayes.terminal import EXIT_INTERRUPTED, print_line, print_results, status_console, stdout_console

if TYPE_CHECKING:
    from calibayes.files import Trained

__all__ = ["train"]

_OTHERS = ("data", "out", "config", "ctx", "set_")


def train(
    ctx: typer.Context,
    data: given.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write the model to.")] = Path("model.safetensors"),
    target: given.Target = None,
    text: given.Text = None,
    scheme: Annotated[
        str | None, option("The method to train with: one of those below.", "ca-bnn", "--scheme", "--method")
    ] = None,
    set_: Annotated[
        list[str] | None, option("Set an option of the method, like members=3; may be repeated.", False, "--set")
    ] = None,
    lam: Annotated[float | None, option("The weight λ of the calibration term.", "1 for ca-fnn and ca-bnn")] = None,
    beta: Annotated[float | None, option("The weight β of the KL divergence.", "0.03 for bnn and ca-bnn")] = None,
    epochs: Annotated[int | None, option("The maximum number of epochs (passes over the training rows).", "100")] = None,
    patience: Annotated[int | None, option("Epochs without a lower validation NLL before training stops.", "10")] = None,
    batch_size: Annotated[int | None, option("The number of examples in a training step.", "64")] = None,
    learning_rate: Annotated[float | None, option("The learning rate of the Adam optimizer.", "0.003")] = None,
    samples: Annotated[int | None, option("Samples of the weights in a training step.", "1")] = None,
    predictive_samples: Annotated[int | None, option("Samples of the weights that a prediction averages over.", "20")] = None,
    seed: Annotated[int | None, option("The random seed of the split, the initial weights and the noise.", "0")] = None,
    validation: Annotated[float | None, option("The fraction of the rows used to decide when to stop.", "0.15")] = None,
    test: Annotated[float | None, option("The fraction of the rows held out for the final scores.", "0.2")] = None,
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

    Part of the rows is used to decide when to stop. Another part is held out: the final scores are computed on it.
    """

    from calibayes.files import TrainSettings, train
    from calibayes.files.settings import read_settings

    typed = given.typed_in(ctx, [name for name in ctx.params if name not in _OTHERS])
    read: dict[str, Any] = {} if config is None else read_settings(config)
    settings = TrainSettings.of({**read, **typed, **_set(set_, read.get("method_settings", {}))})
    inputs = [path for path in (data, config) if path is not None and path.is_file()]
    check_output_path("--out", out, inputs, "the data or settings to read")
    console, aside = stdout_console(), status_console()
    try:
        trained = train(data, settings, say=lambda line: print_line(aside, line), progress=None)
    except KeyboardInterrupt:
        print_line(aside, "Stopped. Nothing was written.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    trained.model.save_or_keep(out)
    _show(console, trained, data, out)


def _set(words: list[str] | None, read: dict[str, Any]) -> dict[str, Any]:
    """Return what was typed after --set: settings of the training by name, and those of the method in a dict."""
    from calibayes.files import TrainSettings

    typed = method_settings(words)
    own = {name: value for name, value in typed.items() if name in TrainSettings.__dataclass_fields__}
    return {**own, "method_settings": {**read, **{name: value for name, value in typed.items() if name not in own}}}


def _show(console: Any, trained: Trained, data: Path, out: Path) -> None:
    """Print the model's scores, and the next command to type."""
    from calibayes.files.summary_text import closing_words, scores_table

    print_results(console, scores_table(trained))
    new = f"new{''.join(data.suffixes)}" if not data.is_dir() else "folder"
    following = f"calibayes predict {shlex.quote(str(out))} {new} -o predictions.csv"
    following += " --temperature" if trained.helps else ""
    print_line(console, f"{closing_words(trained)}\nWritten: {out}\nNext: {following}")
