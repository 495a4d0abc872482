"""`calibayes compare`: which method should I use?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from calibayes.commands import data_options as given
from calibayes.commands.data_options import option
from calibayes.commands.methods import method_settings
from calibayes.errors import InvalidArgumentError
from calibayes.terminal import print_line, status_console, stdout_console, typed_command

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
    out: given.ResultsFolder = Path("calibayes-compare"),
    methods: Annotated[
        str | None, option("The methods to compare, like fnn,ensemble,mixture.", "fnn,bnn,ca-fnn,ca-bnn")
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option(help="Compare with logistic regression and boosted trees of scikit-learn, each calibrated."),
    ] = True,
    set_: Annotated[
        list[str] | None, option("Set an option of every method that has it, like members=3; may be repeated.", False, "--set")
    ] = None,
    seeds: Annotated[int | None, option("The number of trainings per method, each with its own seed.", "8")] = None,
    epochs: Annotated[
        int | None, option("The number of epochs (passes over the training rows).", "12; more for small files")
    ] = None,
    lams: Annotated[str | None, option("The values of λ to choose from on validation data.", "1,3,10,30")] = None,
    betas: Annotated[str | None, option("The values of β to choose from on validation data.", "0.01,0.03,0.1,0.3")] = None,
    workers: Annotated[int | None, option("The number of trainings to run in parallel.", "one per core, at most 4")] = None,
    quick: given.Quick = False,
    split_seed: Annotated[
        int | None, option("The random seed of the split into training, validation and test rows.", "0")
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
    config: given.Config = None,
) -> None:
    """Find out which method to use, how much better it is, and how certain that is.

    Trains logistic regression and boosted trees of scikit-learn, and FNN, BNN, CA-FNN and CA-BNN, or the methods that you name,
    plain and temperature-scaled, over several seeds, on a file of your own, or on images of clothes that come with calibayes
    (about ten minutes on two cores):

        calibayes compare flowers.csv --target species

    The output opens with a recommendation and the command that trains it. Everything is chosen on validation examples;
    test examples are the check. Intervals cover the randomness of both the examples and the seeds.
    """

    from calibayes.recipes.compare import Settings
    from calibayes.recipes.compare.run_and_print import run_and_print

    settings = Settings.quick(1 if seeds is None else seeds) if quick else Settings.thorough(8 if seeds is None else seeds)
    settings = replace(
        settings,
        epochs=settings.epochs if epochs is None else epochs,
        lams=settings.lams if lams is None else _numbers("--lams", lams),
        betas=settings.betas if betas is None else _numbers("--betas", betas),
        **_methods(methods, set_, baselines),
    )

    console, aside = stdout_console(), status_console()
    typed = given.typed_in(ctx, (*_OF_A_FILE, "config"))
    if data is None:
        if typed:
            flag = f"--{next(iter(typed)).replace('_', '-')}"
            hint = f"calibayes compare data.csv {flag} …"
            raise InvalidArgumentError(f"Expected a file or folder of your own with {flag}: {hint}")
        run_and_print(settings, out, console=console, aside=aside, command=typed_command(), workers=workers)
        return
    from calibayes.files import DataSettings, file_task

    words = _train_words(data, typed)
    own, unused = ({}, []) if config is None else _data_settings(typed.pop("config"))
    seed = {"seed": typed.pop("split_seed")} if "split_seed" in typed else {}
    task, settings, notes = file_task(data, DataSettings.of({**own, **typed, **seed}), settings, epochs=epochs)
    for note in (*unused, *notes):
        print_line(aside, note)
    run_and_print(
        settings,
        out,
        console=console,
        aside=aside,
        command=typed_command(),
        task=task,
        workers=workers,
        train_words=words,
    )


def _train_words(data: Path, typed: dict[str, Any]) -> list[str]:
    """Return the words of the command that trains on the same data, with the same options about them.

    Examples:
        >>> _train_words(Path("a.csv"), {"target": "-y", "ignore": ["id", "at"], "header": False, "split_seed": 3})
        ['calibayes', 'train', 'a.csv', '--target=-y', '--ignore', 'id', '--ignore', 'at', '--no-header', '--seed', '3']
    """
    words = ["calibayes", "train", str(data)]
    for name, value in typed.items():
        flag = "--seed" if name == "split_seed" else f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{name}")
            continue
        for each in map(str, value if isinstance(value, list | tuple) else [value]):
            words += [f"{flag}={each}"] if each.startswith("-") else [flag, each]
    return words


def _methods(names: str | None, words: list[str] | None, baselines: bool) -> dict[str, Any]:
    """Return the methods and baselines to compare, and the settings of each: those typed after --set that it has."""
    from calibayes.methods import method_named
    from calibayes.methods.term_weights import takes_lam
    from calibayes.objective import SCHEMES
    from calibayes.recipes.compare import BASELINES

    named = SCHEMES if names is None else tuple(name.strip() for name in names.split(","))
    chosen = tuple(name for name in named if name not in BASELINES)
    # Baselines that are named are the ones to compare with.
    others = tuple(name for name in named if name in BASELINES) or tuple(BASELINES)
    typed = method_settings(words)
    settings: dict[str, dict[str, Any]] = {}
    for name in chosen:
        has = [each for each in typed if method_named(name).has(each) and (each != "lam" or takes_lam(name))]
        settings |= {name: {each: typed[each] for each in has}} if has else {}
    unused = [each for each in typed if not any(each in own for own in settings.values())]
    if unused:
        raise InvalidArgumentError(
            f"None of {', '.join(chosen)} has the setting {unused[0]!r}. To see what they have: calibayes methods"
        )
    return {"methods": chosen, "method_settings": settings, "baselines": others if baselines else ()}


def _data_settings(config: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the settings in a file that are about data, and a note about the others, which are for one training."""
    from calibayes.files import DataSettings
    from calibayes.files.settings import read_settings

    every = read_settings(config)
    own = {name: value for name, value in every.items() if name in DataSettings.__dataclass_fields__}
    others = [name for name in every if name not in own]
    note = f"Ignored from {str(config)!r}, because a comparison sets them itself: {', '.join(others)}."
    return own, [note] if others else []


def _numbers(flag: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgumentError(f"Expected {flag} to be comma-separated numbers, like 1,3,10, but got {text!r}.") from None
