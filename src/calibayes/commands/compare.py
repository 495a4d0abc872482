"""`calibayes compare`: which method should I use?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from calibayes.commands import data_options as given
from calibayes.commands.methods import method_settings
from calibayes.commands.typed import typed
from calibayes.errors import InvalidArgumentError

__all__ = ["compare"]

_OF_A_FILE = (
    *("target", "text", "split_seed", "ignore", "categorical", "drop_rare", *given.TABLE_OPTIONS, "max_rows"),
    *("embeddings", "image_size"),
)


def compare(
    ctx: typer.Context,
    data: given.OwnData = None,
    target: given.Target = None,
    text: given.Text = None,
    out: Annotated[Path, typer.Option(help="The folder for results; started again with it, it goes on.")] = Path(
        "calibayes-compare"
    ),
    methods: Annotated[
        str | None,
        typer.Option(help="The methods to compare, like fnn,ensemble,mixture.", show_default="fnn,bnn,ca-fnn,ca-bnn"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting of all methods that have it, like members=3; may be repeated.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many times each method is trained.", show_default="8")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the training examples.", show_default="12; more for small files")
    ] = None,
    lams: Annotated[str | None, typer.Option(help="Values of λ to choose from.", show_default="1,3,10,30")] = None,
    betas: Annotated[str | None, typer.Option(help="Values of β to choose from.", show_default="0.01,0.03,0.1,0.3")] = None,
    workers: Annotated[int | None, typer.Option(help="Trainings at a time.", show_default="one per core, at most 4")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few seconds, one seed, less data: to see what it does, not for its numbers.")
    ] = False,
    split_seed: Annotated[int | None, typer.Option(help="Of the split of your file in three parts.", show_default="0")] = None,
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
    config: given.Config = None,
) -> None:
    """Which method should I use, by how much is it better, and how sure are we?

    Trains FNN, BNN, CA-FNN and CA-BNN, or the methods that you name, over several seeds, plain and temperature-scaled, on
    images of clothes that come with calibayes (about ten minutes on two cores), or on a file of your own:

        calibayes compare flowers.csv --target species

    λ, β and temperatures are chosen on validation examples; test examples decide nothing but the answer. Differences have
    intervals for the chance of the test examples and of the seeds.
    """
    from rich.console import Console

    from calibayes.recipes.compare import Settings
    from calibayes.recipes.compare.show import show

    settings = Settings.quick(1 if seeds is None else seeds) if quick else Settings.thorough(8 if seeds is None else seeds)
    settings = replace(
        settings,
        epochs=settings.epochs if epochs is None else epochs,
        lams=settings.lams if lams is None else _numbers("--lams", lams),
        betas=settings.betas if betas is None else _numbers("--betas", betas),
        **_methods(methods, set_),
    )

    console, aside = Console(highlight=False), Console(stderr=True, highlight=False)
    said = given.typed_in(ctx, (*_OF_A_FILE, "config"))
    if data is None:
        if said:
            flag = f"--{next(iter(said)).replace('_', '-')}"
            raise InvalidArgumentError(
                f"Expected a file or folder of your own with {flag}: calibayes compare data.csv {flag} …"
            )
        show(settings, out, console=console, aside=aside, command=typed(), workers=workers)
        return
    from calibayes.files import DataSettings, file_task

    own, unused = ({}, []) if config is None else _about_data(said.pop("config"))
    seed = {"seed": said.pop("split_seed")} if "split_seed" in said else {}
    task, settings, notes = file_task(data, DataSettings.of({**own, **said, **seed}), settings, epochs=epochs)
    for note in (*unused, *notes):
        aside.print(note, markup=False, soft_wrap=True)
    show(settings, out, console=console, aside=aside, command=typed(), task=task, workers=workers)


def _methods(names: str | None, words: list[str] | None) -> dict[str, Any]:
    """Who is compared, and the settings of each: those that were typed and that it has."""
    from calibayes.methods import method_named
    from calibayes.methods.weights import takes_lam
    from calibayes.objective import SCHEMES

    chosen = SCHEMES if names is None else tuple(name.strip() for name in names.split(","))
    given = method_settings(words)
    found: dict[str, dict[str, Any]] = {}
    for name in chosen:
        has = [each for each in given if method_named(name).has(each) and (each != "lam" or takes_lam(name))]
        found |= {name: {each: given[each] for each in has}} if has else {}
    unused = [each for each in given if not any(each in settings for settings in found.values())]
    if unused:
        raise InvalidArgumentError(
            f"None of {', '.join(chosen)} has the setting {unused[0]!r}. To see what they have: calibayes methods"
        )
    return {"methods": chosen, "method_settings": found}


def _about_data(config: Path) -> tuple[dict[str, Any], list[str]]:
    """The settings in a file that are about data, and what to say of the others, which are for one training."""
    from calibayes.files import DataSettings
    from calibayes.files.settings import read_settings

    every = read_settings(config)
    own = {name: value for name, value in every.items() if name in DataSettings.__dataclass_fields__}
    others = [name for name in every if name not in own]
    return own, [f"Not used in {str(config)!r}, since a comparison has its own: {', '.join(others)}."] if others else []


def _numbers(flag: str, text: str) -> tuple[float, ...]:
    """The numbers of a list with commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgumentError(
            f"Expected {flag} to be numbers with commas between them, like 1,3,10, but got {text!r}."
        ) from None
