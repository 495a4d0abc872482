"""`calibayes reproduce`: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibayes.errors import InvalidArgumentError
from calibayes.terminal import EXIT_FAILED, EXIT_INTERRUPTED, print_line, status_console, stdout_console, typed_command

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["reproduce"]


_NOT_FOR = {
    "claims": ("only", "workers", "backend", "address", "figures_only"),
    "cifar10-pretrain": ("out", "only", "workers", "backend", "address", "figures_only"),
}


def reproduce(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            help="newsgroups-epochs (Fig. 1), newsgroups-lambda (Fig. 2), newsgroups-variations, cifar10-reliability (Fig. 3), "
            "cifar10-variations; cifar10-pretrain, which makes the ResNet-18 that Fig. 3 starts from, in "
            "the folder of data sets; claims, which checks the paper's claims against all results.",
            show_default=False,
        ),
    ],
    preset: Annotated[
        str, typer.Option(help="The size: paper (for a GPU), cpu (for two cores) or tiny (for a quick look).")
    ] = "cpu",
    out: Annotated[
        Path, typer.Option(help="The folder for results; run the command again with the same folder to continue.")
    ] = Path("calibayes-reproduction"),
    only: Annotated[
        list[str] | None,
        typer.Option(help="Train only the runs with this setting, like scheme=ca-bnn or seed=3; may be repeated."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="The number of trainings to run in parallel.", show_default="one per core")
    ] = None,
    backend: Annotated[str, typer.Option(help="Where trainings run: local, ray or dask.")] = "local",
    address: Annotated[str | None, typer.Option(help="The address of the cluster.")] = None,
    figures_only: Annotated[
        bool, typer.Option("--figures-only", help="Train nothing; only draw the figures from existing results.")
    ] = False,
) -> None:
    """Repeat an experiment of the paper, and draw its figure.

    Download the data first: calibayes data get newsgroups glove cifar10 resnet20

        calibayes reproduce newsgroups-epochs

    trains what Fig. 1 shows, in a size that two cores can handle, and writes figures, a table and a record of every training.
    """

    console, aside = stdout_console(), status_console()
    _check_given(ctx, name)
    if name == "claims":
        from calibayes.recipes.reproduce.show_claims import show_claims

        show_claims(out, preset, console=console)
        return
    if name == "cifar10-pretrain":
        _pretrain(preset, console)
        return
    from calibayes.recipes.reproduce.experiments import experiment
    from calibayes.recipes.reproduce.show import show
    from calibayes.sweeps.sweep_plan import choices

    try:
        whole = show(
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


def _check_given(ctx: typer.Context, name: str) -> None:
    """Reject options that would change nothing."""
    for option in _NOT_FOR.get(name, ()):
        source = ctx.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise InvalidArgumentError(f"--{option.replace('_', '-')} has no effect with {name}. Leave it out.")


def _pretrain(preset: str, console: Console) -> None:
    from calibayes.recipes.reproduce.experiments import check_preset
    from calibayes.recipes.reproduce.pretrain import PRETRAININGS, pretrain

    path, record = pretrain(PRETRAININGS[check_preset(preset)])
    scores = ", ".join(f"{name} {value:.4f}" for name, value in record["test"].items())
    minutes = record["training_seconds"] / 60
    print_line(console, f"{path}: {scores} on test images, {minutes:.0f} minutes of training.")
