"""`calibayes serve`: a trained model behind HTTP."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands import data_options as given
from calibayes.commands import guarantee_options as guarantee
from calibayes.commands.data_options import argument, option
from calibayes.terminal import print_line, status_console, stdout_console

__all__ = ["serve"]

_ACTIONS = ("abstain_below", *guarantee.NAMES, "temperature", "samples")
_LIMITS = ("max_bytes", "max_rows", "max_seconds", "max_requests")


def serve(
    ctx: typer.Context,
    model: Annotated[Path, argument("The model file that calibayes train wrote.")],
    port: Annotated[int, typer.Option(help="The port to listen at; 0 for any that is free.")] = 8000,
    host: Annotated[
        str, typer.Option(help="The address to listen at; 0.0.0.0 lets other machines in (pass a --token then).")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(envvar="CALIBAYES_TOKEN", help="Answer only requests with Authorization: Bearer TOKEN.", show_envvar=True),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that answer requests; one for each core at most.")] = 1,
    abstain_below: Annotated[float | None, option("Abstain where the confidence is lower.")] = None,
    sets: guarantee.Sets = None,
    sets_score: guarantee.SetsScore = None,
    sets_by_class: guarantee.SetsByClass = None,
    certify: guarantee.Certify = None,
    costs: guarantee.Costs = None,
    temperature: Annotated[
        bool | None,
        option(
            "Whether to apply the temperature that was fitted during training.",
            "as the model says",
            "--temperature/--no-temperature",
        ),
    ] = None,
    samples: Annotated[int | None, option("Samples of the weights that a prediction averages over.", "as in training")] = None,
    max_bytes: Annotated[int | None, option("The largest body of a request, in bytes.", "16 MiB")] = None,
    max_rows: Annotated[int | None, option("The most rows of a request.", "10,000")] = None,
    max_seconds: Annotated[float | None, option("The longest that a request may take, in seconds.", "30")] = None,
    max_requests: Annotated[
        int | None, option("The most requests that a worker works on at the same time; more are turned away.", "256")
    ] = None,
    encoding: given.Encoding = None,
    delimiter: given.Delimiter = None,
    decimal: given.Decimal = None,
    date_format: given.DateFormat = None,
    header: given.Header = None,
) -> None:
    """Serve a trained model over HTTP, with a page to try it at / and metrics for Prometheus at /metrics.

        calibayes serve flowers.model

    Then open http://127.0.0.1:8000 in a browser, or send rows:

        curl localhost:8000/predict -H 'Content-Type: application/json' -d '{"rows": [{"petals": 5, "colour": "red"}]}'
        curl localhost:8000/predict -F file=@new.csv

    Each row gets what calibayes predict would write: the decision, probabilities, confidence, set, abstention and outsider.
    Only this machine can reach it unless --host says otherwise. SIGTERM or Ctrl-C finishes what is under way and ends it.
    """
    from calibayes.files import load
    from calibayes.files.row_actions import RowActions
    from calibayes.service.settings import ServiceSettings
    from calibayes.service.supervisor import bound_socket, check_packages, run_service
    from calibayes.tables import TableOptions

    check_packages()
    settings = ServiceSettings(
        model=model,
        host=host,
        port=port,
        token=token,
        workers=workers,
        actions=given.typed_in(ctx, _ACTIONS),
        table_options=given.typed_in(ctx, given.TABLE_OPTIONS),
        **given.typed_in(ctx, _LIMITS),
    )
    # A model or option that is no good is told here, once, and not by every worker.
    actions = RowActions(load(model), TableOptions(**settings.table_options), **settings.actions)
    console, aside = stdout_console(), status_console()
    with bound_socket(host, port) as listening:
        for note in actions.notes:
            print_line(aside, note)
        if settings.for_others and token is None:
            print_line(aside, "Anyone who can reach this machine can use the service. Pass a --token to prevent that.")
        shown_host = f"[{host}]" if ":" in host else host
        address = f"http://{shown_host}:{listening.getsockname()[1]}"
        print_line(console, f"Serving {shlex.quote(str(model))} at {address} (Ctrl-C ends it)")
        console.file.flush()
        code = run_service(settings, listening)
    if code:
        raise typer.Exit(code)
