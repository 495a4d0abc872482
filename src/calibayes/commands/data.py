"""`calibayes data`: the data sets of the experiments, from the web to this machine."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from calibayes.commands.data_options import argument, option
from calibayes.errors import CalibayesError
from calibayes.terminal import EXIT_INTERRUPTED, EXIT_INVALID_INPUT, print_error, print_line, status_console, stdout_console

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Download the data sets of the experiments, and list those on this machine.")

_Folder = Annotated[
    Path | None, option("The folder that holds the data sets.", "CALIBAYES_DATA, or calibayes in the user's cache")
]


@app.command()
def get(
    names: Annotated[list[str], argument("newsgroups, cifar10, glove, resnet20, or all.")],
    folder: _Folder = None,
) -> None:
    """Download data sets from their official sources and verify them; those already here are only verified.

        calibayes data get newsgroups glove

    After an interruption, run the same command again to resume the download.
    """
    from calibayes.data.data_folder import data_folder
    from calibayes.data.fetching import SETS, DownloadProgress, data_set, obtain

    named = {name: data_set(name) for name in names if name != "all"}
    wanted = list((SETS if "all" in names else named).values())
    failed = False
    for each in wanted:
        try:
            with DownloadProgress(status_console()) as watch:
                state = obtain(each, data_folder(folder), watch)
        except KeyboardInterrupt:
            typer.echo("Stopped. The partial download is kept; run the same command again to resume it.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except CalibayesError as error:
            print_error(error)
            failed = True
        else:
            extra = "" if state.status == "whole" else f" ({state.note}; remove it to download all)"
            typer.echo(f"{each.title}: {data_folder(folder) / each.place}{extra}")
    if failed:
        raise typer.Exit(EXIT_INVALID_INPUT)


@app.command(name="list")
def list_(
    folder: _Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON instead of a table.")] = False,
) -> None:
    """List the data sets, which of them are on this machine, and whether they are complete."""
    from calibayes.data.data_folder import data_folder
    from calibayes.data.fetching import SETS

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
    from calibayes.wording import megabytes

    console = stdout_console()
    width = max(len(row["name"]) for row in rows) + 2
    for row in rows:
        state = f"{row['status']} ({row['note']})" if row["note"] else row["status"]
        lines = [f"{row['title']}: {row['what']}", f"{state}: {row['path']}"]
        if row["status"] in ("missing", "damaged"):
            lines.append(f"get it: {row['command']}, {megabytes(row['download_bytes'])}")
        print_line(console, row["name"].ljust(width) + f"\n{' ' * width}".join(lines))
