"""``calibayes sweep``: trials from the command line or a file, on this machine or a cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibayes.commands.data_options import argument, option
from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.records import DamagedError, Store
from calibayes.sweeps.settings_grid import checked, varying
from calibayes.sweeps.sweep_plan import SweepPlan, choices, for_schemes, read_plan
from calibayes.sweeps.sweep_results import Sweep
from calibayes.sweeps.trial_identity import function_and_name, result_key
from calibayes.terminal import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    print_line,
    print_results,
    status_console,
    stdout_console,
    typed_command,
)
from calibayes.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["sweep"]

_FASHION = "calibayes.recipes.fashion:fashion_trial"
_SHOWN = tuple(f"final.{part}" for part in ("test.accuracy", "test.nll", "test.brier", "test.ece", "scaled.nll", "scaled.ece"))
_WIDEST = 1000  # a row stays on one line if it is not printed to a terminal


def sweep(
    config: Annotated[Path | None, argument("A TOML file with the trial, its settings and the folder.")] = None,
    set_: Annotated[
        list[str] | None, option("A setting and its values, like lam=1,3,10; every combination is run.", False, "--set")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="The number of runs per combination, with seed=0,1,….")] = None,
    trial: Annotated[str | None, option("The function to run, as package.module:function.", "train on Fashion-MNIST")] = None,
    out: Annotated[
        Path | None,
        option("The folder for results; run the command again with the same folder to continue.", "calibayes-sweep"),
    ] = None,
    backend: Annotated[str, typer.Option(help="Where trials run: local, ray or dask.")] = "local",
    address: Annotated[str | None, option("The address of the cluster.", "a new local one")] = None,
    workers: Annotated[int | None, option("The number of trials to run in parallel.", "one per core")] = None,
    threads: Annotated[int | None, option("The number of threads per trial.", "cores divided by workers")] = None,
    retries: Annotated[int, typer.Option(help="How often to retry a trial whose process was killed.")] = 2,
    keep_failures: Annotated[bool, typer.Option("--keep-failures", help="Do not retry trials that failed before.")] = False,
    show: Annotated[
        str | None, option("The numbers to print, like final.test.nll,final.test.ece.", "the main ones, or the first")
    ] = None,
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Log each trial to MLflow (MLFLOW_TRACKING_URI, or files).")] = False,
    experiment: Annotated[str, typer.Option(help="The name of the MLflow experiment.")] = "calibayes",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be run, without running it.")] = False,
) -> None:
    """Run many trials, each once: over values of λ and β, methods, seeds, or any settings of your own function.

    Without --trial, one trial trains one method on images of clothes that come with calibayes. A setting is used by the methods
    that have it:

        calibayes sweep --set scheme=fnn,ca-fnn --set lam=1,3,10 --set epochs=5 --seeds 3

        calibayes sweep --set scheme=fnn,ensemble --set members=2,4 --set epochs=5

    Each result is a file in the folder. After an interruption, run the same command again to continue. The exit code is 1 if
    any trial failed.
    """

    if config is None and set_ is None and seeds is None and trial is None:
        raise InvalidArgumentError("Nothing to run. Pass settings (--set lam=1,3,10), seeds (--seeds 3) or a TOML file.")
    plan = SweepPlan() if config is None else read_plan(config)
    name = trial or plan.trial or _FASHION
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a module of the user's own
    settings = checked(plan.combinations(choices(set_ or []), seeds))
    if name == _FASHION:
        settings = for_schemes(settings)
    folder = out or Path(plan.out or "calibayes-sweep")
    console, aside = stdout_console(), status_console()
    check = _check_of(name)
    if dry_run:
        for each in settings:
            check(each)
        _print_plan(console, settings, Store(folder), name, plan.version, keep_failures)
        return
    columns = tuple(show.split(",")) if show else _SHOWN if name == _FASHION else ()
    begin = time.monotonic()
    results = _swept(
        aside,
        name,
        settings,
        folder,
        version=plan.version,
        label=plan.label or ("{scheme}-seed{seed}" if all({"scheme", "seed"} <= each.keys() for each in settings) else None),
        backend=backend,
        address=address,
        workers=workers,
        threads=threads,
        retries=retries,
        keep_failures=keep_failures,
        check=check,
        mlflow=experiment if mlflow else None,
        progress=aside,
    )
    _print_results(console, results, columns, folder, time.monotonic() - begin)
    if results.failed:
        raise typer.Exit(EXIT_FAILED)


def _check_of(trial: str) -> Callable[[dict[str, Any]], object]:
    """Return a function that rejects wrong settings before any trial runs."""
    if trial == _FASHION:
        from calibayes.recipes.fashion import FashionTraining

        return FashionTraining.of
    return lambda settings: None


def _swept(aside: Console, name: str, settings: list[dict[str, Any]], folder: Path, **others: Any) -> Sweep:
    """Run the sweep; Ctrl-C ends it with a line that says how to continue."""
    import calibayes

    try:
        return calibayes.sweep(name, settings, folder, **others)
    except KeyboardInterrupt:
        kept = len(_known(Store(folder), _keys(name, others["version"], settings), damaged=lambda path, error: None))
        print_line(aside, f"Stopped. {kept} of {len(settings)} trials are kept in {folder}. To continue: {typed_command()}")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _print_results(console: Console, results: Sweep, columns: tuple[str, ...], folder: Path, seconds: float) -> None:
    from calibayes.sweeps.summary_table import summary_table

    try:
        table = summary_table(results, columns)
    except InvalidArgumentError as error:  # show the results of a long sweep even if a name is misspelt
        print_line(console, str(error))
        table = summary_table(results)
    print_results(console, table, width=_WIDEST)
    names = results.varying()
    for trial in results.failed:
        print_line(console, f"Failed: {_words(trial.settings, names)}: {trial.error}")
    failed = f", {len(results.failed)} failed" if results.failed else ""
    before = f" ({results.kept} from before)" if results.kept else ""
    print_line(console, f"{counted(len(results), 'trial')}{before}{failed}, in {seconds:.0f} s. Every result is in {folder}.")


def _print_plan(
    console: Console, settings: list[dict[str, Any]], store: Store, name: str, version: int | str, keep_failures: bool
) -> None:
    keys = _keys(function_and_name(name)[1], version, settings)
    known = _known(store, keys, damaged=lambda _, error: print_line(console, f"{error}."))
    names = varying(settings)
    failed = "failed before" if keep_failures else "failed before: to run"
    states = [{None: "to run", True: "there", False: failed}[known.get(its_key)] for its_key in keys]
    for state, each in zip(states, settings, strict=True):
        print_line(console, f"{state}: {_words(each, names)}")
    left = sum(state.endswith("to run") for state in states)
    print_line(console, f"{left} of {len(settings)} trials of {name} to run; results go to {store.folder}.")


def _keys(name: str, version: int | str, settings: list[dict[str, Any]]) -> list[str]:
    return [result_key(name, version, each) for each in settings]


def _known(store: Store, keys: list[str], damaged: Callable[[Path, DamagedError], None]) -> dict[str, bool]:
    """Return the keys that have results, and True for those that did not fail."""
    return {record.key: record.error is None for _, record in store.records(damaged, keys)}


def _words(settings: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name}={settings[name]}" for name in names if name in settings) or "the only trial"
