"""`calibayes reproduce`: the paper's experiments."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import calibayes
from calibayes.commands import data_options as given
from calibayes.commands.data_options import argument, option
from calibayes.errors import InvalidArgumentError, MissingExtraError
from calibayes.terminal import EXIT_FAILED, EXIT_INTERRUPTED, print_line, status_console, stdout_console, typed_command

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["reproduce"]

_NOT_FOR = {
    "claims": ("only", "workers", "backend", "address", "figures_only"),
    "followup-claims": ("only", "workers", "backend", "address", "figures_only"),
    "cifar10-pretrain": ("out", "only", "workers", "backend", "address", "figures_only"),
}


def reproduce(
    ctx: typer.Context,
    name: Annotated[
        str,
        argument(
            "newsgroups-epochs (Fig. 1), newsgroups-lambda (Fig. 2), newsgroups-variations, cifar10-reliability (Fig. 3), "
            "cifar10-variations; shift-fashion, shift-cifar10, shift-newsgroups, shift-digits (every method on corrupted data, "
            "beyond the paper); membership-newsgroups and membership-fashion, which attack networks to find out what they "
            "were trained on; cifar10-pretrain, which makes the ResNet-18 that Fig. 3 starts from, in the "
            "folder of data sets; claims, which checks the paper's claims against all results. Of the follow-up paper: "
            "cifar10-followup, clinc150-followup, and followup-claims."
        ),
    ],
    preset: Annotated[
        str, typer.Option(help="The size: paper (for a GPU), cpu (for two cores) or tiny (for a quick look).")
    ] = "cpu",
    out: given.ResultsFolder = Path("calibayes-reproduction"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="Train only the runs with this setting, like scheme=ca-bnn or seed=3; may be repeated."),
    ] = None,
    workers: Annotated[int | None, option("The number of trainings to run in parallel.", "one per core")] = None,
    backend: Annotated[str, typer.Option(help="Where trainings run: local, ray or dask.")] = "local",
    address: Annotated[str | None, typer.Option(help="The address of the cluster.")] = None,
    figures_only: Annotated[
        bool, typer.Option("--figures-only", help="Train nothing; only draw the figures from existing results.")
    ] = False,
) -> None:
    """Repeat an experiment of the paper, or run one beyond it, and draw its figures.

    Download the data first: calibayes data get newsgroups glove cifar10 resnet20

        calibayes reproduce newsgroups-epochs

    trains what Fig. 1 shows, in a size that two cores can handle, and writes figures, a table and a record of every training.
    """

    console, aside = stdout_console(), status_console()
    _check_options(ctx, name)
    _find_package()
    if name in ("claims", "followup-claims"):
        from reproduction.run_experiment import print_claims, print_followup_claims

        (print_claims if name == "claims" else print_followup_claims)(out, preset, console=console)
        return
    if name == "cifar10-pretrain":
        _pretrain(preset, console)
        return
    from calibayes.sweeps.sweep_plan import choices
    from reproduction.experiments import experiment
    from reproduction.run_experiment import run_experiment

    try:
        whole = run_experiment(
            experiment(name, preset),
            out,
            wanted=choices(only, "--only", again=True) if only else None,
            console=console,
            aside=aside,
            run=not figures_only,
            workers=workers,
            backend=backend,
            address=address,
        )
    except KeyboardInterrupt:
        print_line(aside, f"Stopped. Finished trainings are kept in {out}. To continue: {typed_command()}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not whole and not figures_only:
        raise typer.Exit(EXIT_FAILED)


def _find_package() -> None:
    """Make the package `reproduction` importable, which is beside the library in a clone of the repository."""
    for root in (Path(calibayes.__file__).parents[2], Path.cwd()):
        if (root / "reproduction" / "run_experiment.py").is_file() and str(root) not in sys.path:
            sys.path.append(str(root))
    if find_spec("reproduction") is None or find_spec("reproduction.run_experiment") is None:
        raise MissingExtraError(
            "The paper's experiments are not part of the installed package: Python finds no package 'reproduction'. "
            "Clone the repository of calibayes, and run `calibayes reproduce` in the clone."
        )


def _check_options(ctx: typer.Context, name: str) -> None:
    """Reject options that would change nothing."""
    for unused in _NOT_FOR.get(name, ()):
        source = ctx.get_parameter_source(unused)
        if source is not None and source.name == "COMMANDLINE":
            raise InvalidArgumentError(f"--{unused.replace('_', '-')} has no effect with {name}. Leave it out.")


def _pretrain(preset: str, console: Console) -> None:
    from reproduction.experiment import check_preset
    from reproduction.pretraining import PRETRAININGS, pretrain

    path, record = pretrain(PRETRAININGS[check_preset(preset)])
    scores = ", ".join(f"{name} {value:.4f}" for name, value in record["test"].items())
    minutes = record["training_seconds"] / 60
    print_line(console, f"{path}: {scores} on test images, {minutes:.0f} minutes of training.")
