"""`calibayes data`: the data sets of the experiments, from the web to this machine."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from calibayes.commands.typed import INTERRUPTED
from calibayes.errors import CalibayesError

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Get the data sets of the experiments, and see which are here.")

_Folder = Annotated[
    Path | None,
    typer.Option(help="The folder of data sets.", show_default="CALIBAYES_DATA, or calibayes in the user's cache"),
]


@app.command()
def get(
    names: Annotated[list[str], typer.Argument(help="newsgroups, cifar10, glove, resnet20, or all.", show_default=False)],
    folder: _Folder = None,
) -> None:
    """Download data sets from their official places, and check them; what is here already is only checked.

        calibayes data get newsgroups glove

    Stopped or cut off, the same command goes on where it was.
    """
    from calibayes.data.fetching import SETS, data_set, obtain, progress_for
    from calibayes.data.folder import data_folder

    named = {name: data_set(name) for name in names if name != "all"}
    wanted = list((SETS if "all" in names else named).values())
    failed = False
    for each in wanted:
        try:
            with progress_for(True, sys.stderr) as watch:
                state = obtain(each, data_folder(folder), watch)
        except KeyboardInterrupt:
            typer.echo("Stopped. What has come is kept: the same command goes on with it.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except CalibayesError as error:
            typer.echo(f"calibayes: {' '.join(str(error).split())}", err=True)
            failed = True
        else:
            extra = "" if state.status == "whole" else f" ({state.note}; remove it to get all)"
            typer.echo(f"{each.title}: {data_folder(folder) / each.place}{extra}")
    if failed:
        raise typer.Exit(2)


@app.command(name="list")
def list_(
    folder: _Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON instead of a table.")] = False,
) -> None:
    """Which data sets there are, which of them are on this machine, and whether they are whole."""
    from calibayes.data.fetching import SETS
    from calibayes.data.folder import data_folder

    root = data_folder(folder)
    rows: list[dict[str, Any]] = []
    for each in SETS.values():
        status, note = each.state(root / each.place)
        rows.append(
            {
                "name": each.name,
                "title": each.title,
                "what": each.what,
                "licence": each.licence,
                "sources": list(each.remote.urls),
                "download_bytes": each.remote.size or each.unpacked,
                "path": str(root / each.place),
                "status": status,
                "note": note,
                "command": f"calibayes data get {each.name}{'' if folder is None else f' --folder {shlex.quote(str(folder))}'}",
            }
        )
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _show(rows)


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console

    from calibayes.data.fetching import megabytes

    console = Console(highlight=False)
    width = max(len(row["name"]) for row in rows) + 2
    for row in rows:
        state = f"{row['status']} ({row['note']})" if row["note"] else row["status"]
        lines = [f"{row['title']}: {row['what']}", f"{state}: {row['path']}"]
        if row["status"] in ("missing", "damaged"):
            lines.append(f"get it: {row['command']}, {megabytes(row['download_bytes'])}")
        console.print(row["name"].ljust(width) + f"\n{' ' * width}".join(lines), markup=False, soft_wrap=True)
