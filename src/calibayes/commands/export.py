"""`calibayes export`: a trained model as one file that runs anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibayes.commands import data_options as given
from calibayes.commands import guarantee_options as guarantee
from calibayes.commands.data_options import argument, option
from calibayes.commands.output_paths import check_output_path
from calibayes.terminal import print_line, status_console, stdout_console

__all__ = ["export"]


def export(
    ctx: typer.Context,
    model: Annotated[Path, argument("The model file that calibayes train wrote.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write: .onnx, or .pt2 for torch.export.", show_default=True)
    ] = Path("model.onnx"),
    check: Annotated[
        Path | None,
        option("Rows to check the file with; with their true classes, its scores are in the card.", "made-up rows"),
    ] = None,
    int8: Annotated[
        bool, option("Store weights as 8-bit integers; needs --check with the true classes.", False, "--int8")
    ] = False,
    int8_tolerance: Annotated[
        float | None, option("By how much NLL, ECE and error rate may grow with 8-bit weights.", "0.01")
    ] = None,
    abstain_below: Annotated[float | None, option("Abstain where the confidence is lower.")] = None,
    sets: guarantee.Sets = None,
    sets_score: guarantee.SetsScore = None,
    sets_by_class: guarantee.SetsByClass = None,
    certify: guarantee.Certify = None,
    costs: guarantee.Costs = None,
    encoding: given.Encoding = None,
    delimiter: given.Delimiter = None,
    decimal: given.Decimal = None,
    date_format: given.DateFormat = None,
    header: given.Header = None,
) -> None:
    """Write a trained model to one file that needs neither calibayes nor PyTorch.

    The file has the whole prediction inside: all members and samples, the temperature, the certified threshold and the
    prediction sets. It is checked against calibayes before it is written:

        calibayes export flowers.model -o flowers.onnx --check new.csv

    Beside it come a model card (.md), a description of the columns (.json), and reader.py, which turns rows of a table or
    texts into the file's inputs with numpy alone.

    With --int8 weights become 8-bit integers; if that costs more accuracy or calibration than --int8-tolerance, on the rows
    of --check, nothing is written.
    """

    from calibayes.errors import InvalidArgumentError
    from calibayes.exporting.export_model import export_model
    from calibayes.files import load

    if int8_tolerance is not None and not int8:
        raise InvalidArgumentError("Expected --int8-tolerance only with --int8, but there is no --int8.")
    inputs = [path for path in (model, check, costs) if path is not None and path.is_file()]
    check_output_path("--out", out, inputs, "the model or the data to read")
    console, aside = stdout_console(), status_console()
    names = ("check", "int8", "int8_tolerance", "abstain_below", *guarantee.NAMES)
    options = given.typed_in(ctx, (*names, *given.TABLE_OPTIONS))
    done = export_model(load(model), out, say=lambda line: print_line(aside, line), **options)
    print_line(
        console,
        f"Checked on {done.rows:,} rows: the largest difference is {done.largest_difference:.1e}.\n"
        f"Outputs: {', '.join(done.outputs)}.",
    )
    if done.int8 is not None:
        print_line(console, f"8-bit weights: {done.int8}.")
    print_line(console, f"Written: {', '.join(str(path) for path in (done.path, done.card, *done.others))}")
