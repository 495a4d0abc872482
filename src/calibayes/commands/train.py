"""`calibayes train`: a classifier of your own files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibayes.commands import data_options as given
from calibayes.commands.methods import method_settings
from calibayes.commands.places import check_place
from calibayes.commands.typed import INTERRUPTED

if TYPE_CHECKING:
    from calibayes.files import Trained

__all__ = ["train"]

_OTHERS = ("data", "out", "config", "ctx", "set_")


def train(
    ctx: typer.Context,
    data: given.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file for the model.")] = Path("model.safetensors"),
    target: given.Target = None,
    text: given.Text = None,
    scheme: Annotated[
        str | None, typer.Option("--scheme", "--method", help="One of the methods below.", show_default="ca-bnn")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the method, like members=3; may be repeated.", show_default=False),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(help="λ, the weight of the calibration term.", show_default="1 for ca-fnn and ca-bnn"),
    ] = None,
    beta: Annotated[float | None, typer.Option(help="β, the weight of the KL.", show_default="0.03 for bnn and ca-bnn")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the examples, at most.", show_default="100")] = None,
    patience: Annotated[
        int | None, typer.Option(help="Epochs without a lower validation NLL before it stops.", show_default="10")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Examples a step.", show_default="64")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's.", show_default="0.003")] = None,
    samples: Annotated[int | None, typer.Option(help="Samples of the weights a step.", show_default="1")] = None,
    predictive_samples: Annotated[
        int | None, typer.Option(help="Samples of the weights behind a prediction.", show_default="20")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the split, the weights and the noise.", show_default="0")] = None,
    validation: Annotated[
        float | None, typer.Option(help="The share of the examples that decides when to stop.", show_default="0.15")
    ] = None,
    test: Annotated[
        float | None, typer.Option(help="The share of the examples that is kept for the final table.", show_default="0.2")
    ] = None,
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
    network: Annotated[
        str | None, typer.Option(help="For images: small-cnn or resnet20.", show_default="by their size")
    ] = None,
    config: given.Config = None,
) -> None:
    """Train a classifier on a file of your own, and see how far its confidence can be trusted.

    A table with a column of classes, numbers, categories and dates, with missing values; texts in a column; or a folder with
    a folder for each class of images or texts:

        calibayes train flowers.csv --target species -o flowers.model

    A part of the examples decides when to stop, and another part, which decides nothing, is what the final table is about.
    """
    from rich.console import Console

    from calibayes.files import TrainSettings, train
    from calibayes.files.settings import read_settings

    typed = given.typed_in(ctx, [name for name in ctx.params if name not in _OTHERS])
    read: dict[str, Any] = {} if config is None else read_settings(config)
    settings = TrainSettings.of({**read, **typed, **_set(set_, read.get("method_settings", {}))})
    inputs = [path for path in (data, config) if path is not None and path.is_file()]
    check_place("--out", out, inputs, "the data or settings that are to be read")
    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    try:
        trained = train(data, settings, say=lambda line: aside.print(line, markup=False, soft_wrap=True), progress=None)
    except KeyboardInterrupt:
        aside.print("Stopped. Nothing was written.", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    trained.model.save_or_keep(out)
    _show(console, trained, data, out)


def _set(words: list[str] | None, read: dict[str, Any]) -> dict[str, Any]:
    """What was typed behind --set: settings of the training by their names, and those of the method in a dict."""
    from calibayes.files import TrainSettings

    found = method_settings(words)
    own = {name: value for name, value in found.items() if name in TrainSettings.__dataclass_fields__}
    return {**own, "method_settings": {**read, **{name: value for name, value in found.items() if name not in own}}}


def _show(console: Any, trained: Trained, data: Path, out: Path) -> None:
    """What the model is worth, and the next command to type."""
    from calibayes.files.summary_text import closing_words, scores_table
    from calibayes.recipes.compare.printing import print_found

    print_found(console, scores_table(trained))
    new = f"new{''.join(data.suffixes)}" if not data.is_dir() else "folder"
    following = f"calibayes predict {shlex.quote(str(out))} {new} -o predictions.csv"
    following += " --temperature" if trained.helps else ""
    console.print(f"{closing_words(trained)}\nWritten: {out}\nNext: {following}", markup=False, soft_wrap=True)
