"""Write a classifier of files, as `calibayes train` makes it, to one file that runs without calibayes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calibayes.errors import InvalidArgumentError
from calibayes.exporting.graph_files import file_kind
from calibayes.exporting.int8 import INT8_TOLERANCE
from calibayes.exporting.model_card import ModelCard, reliability_lines, score_lines, shown_number
from calibayes.exporting.predictive_graph import InputNames
from calibayes.exporting.row_rules import RowRules
from calibayes.exporting.rows_to_check import described_rows, generated_rows, rows_of_file
from calibayes.exporting.table_rows import TableRows
from calibayes.exporting.write_export import TOLERANCE, Exported, ExportPlan, LabelledInputs, write_export
from calibayes.files.model import Model
from calibayes.files.row_actions import RowActions
from calibayes.files.settings import TrainSettings
from calibayes.files.table_coding import TableCoding
from calibayes.posthoc import TemperatureScaling
from calibayes.tables import TableOptions
from calibayes.wording import counted, listed, shown

__all__ = ["export_model"]


def export_model(
    model: Model,
    path: str | Path,
    *,
    check: str | Path | None = None,
    abstain_below: float | None = None,
    sets: float | None = None,
    sets_score: str | None = None,
    sets_by_class: bool | None = None,
    certify: str | None = None,
    costs: str | Path | None = None,
    int8: bool = False,
    int8_tolerance: float = INT8_TOLERANCE,
    tolerance: float = TOLERANCE,
    say: Callable[[str], None] | None = None,
    **options: Any,
) -> Exported:
    """Write a model to an ``.onnx`` or ``.pt2`` file, with a model card, a description of the rows and a reader of them.

    Args:
        model: a trained model.
        path: the file to write.
        check: rows to check the file with; labelled ones are also measured on. By default rows are made up.
        abstain_below: a confidence by hand below which ``abstain`` is true.
        sets: the coverage of prediction sets; like those below, by default as in training.
        sets_score: of the sets.
        sets_by_class: cover every class as often.
        certify: a threshold to certify, such as ``"accuracy=0.95"``.
        costs: a file of what each action costs for each class.
        int8: store weights as 8-bit integers, judged by the labelled rows of ``check``.
        int8_tolerance: by how much NLL, ECE and error rate may grow for that.
        tolerance: the largest difference to calibayes that is accepted.
        say: called with each note for the user.
        options: the format of the text of ``check``, by the names of `calibayes.tables.TableOptions`; those of training by
            default.
    """
    file_kind(Path(path))
    trained = model.about.get("settings", {})
    kept = {name: trained[name] for name in ("decimal", "date_format") if trained.get(name) is not None}
    table_options = TableOptions(**{**kept, **options})
    asked = {"sets": sets, "sets_score": sets_score, "sets_by_class": sets_by_class, "certify": certify, "costs": costs}
    actions = RowActions(model, table_options, abstain_below=abstain_below, temperature=model.calibrated, samples=None, **asked)
    guarantees = actions.guarantees
    rules = RowRules(
        threshold=None if guarantees is None else guarantees.threshold,
        below=abstain_below,
        sets=None if guarantees is None else guarantees.sets,
        costs=actions.costs,
        set_aside=model.set_aside,
    )
    rows = generated_rows(model, table_options) if check is None else rows_of_file(model, Path(check), table_options)
    if int8 and not len(rows.known):
        missing = "no file" if check is None else f"{str(check)!r} without classes in {model.target!r}"
        raise InvalidArgumentError(f"8-bit weights need labelled rows to measure calibration on, --check, but got {missing}.")
    if say is not None:
        for note in actions.notes:
            say(note)
    name = "rows" if isinstance(model.coding, TableCoding) else "inputs"
    plan = ExportPlan(
        posterior=model.posterior,
        inputs=rows.inputs,
        tensors={name: rows.tensor},
        names=InputNames(rows.inputs),
        classes=model.classes,
        samples=model.samples,
        seed=model.seed,
        scaling=TemperatureScaling.of(model.temperature, len(model.classes)) if model.calibrated else None,
        rules=rules,
        before=TableRows(model.coding) if isinstance(model.coding, TableCoding) else None,
        labelled=LabelledInputs([rows.tensor[rows.known]], rows.labels) if len(rows.known) else None,
    )
    described = described_rows(model.coding, table_options)
    return write_export(
        plan,
        Path(path),
        _card(model, actions, "made-up rows" if check is None else f"rows of {Path(check).name!r}"),
        int8=int8,
        int8_tolerance=int8_tolerance,
        tolerance=tolerance,
        rows=described,
    )


def _card(model: Model, actions: RowActions, checked: str) -> ModelCard:
    about = model.about
    scores, aside = about.get("scores"), model.set_aside
    columns, classes = listed(model.coding.needs), ", ".join(map(repr, model.classes))
    inputs = {"table": f"Columns: {columns}.", "text": f"Texts in {columns}.", "images": "Images in files."}
    attempts = [_attempt(each) for each in about.get("tried", [])]
    return ModelCard(
        title=f"A classifier of {shown(model.target)}",
        data=[
            f"Trained on {about.get('examples', 0):,} examples, to predict {model.target!r}: {classes}.",
            inputs[model.coding.kind],
            *([f"{counted(len(aside.labels), 'further row')} were set aside."] if aside is not None else []),
        ],
        method=[f"{about.get('method', 'A network')}.", *(["Tried:\n\n" + "\n".join(attempts)] if len(attempts) > 1 else [])],
        scores=score_lines(scores, str(about.get("rows"))) if isinstance(scores, Mapping) else (),
        reliability=[] if aside is None else reliability_lines(aside.probs, aside.labels, "the rows set aside"),
        abstains=_abstains(model, actions),
        file=[f"It was checked with {checked}. The temperature of the training is {_applied(model)}."],
        repeat=_repeat(model),
    )


def _attempt(tried: Mapping[str, Any]) -> str:
    """Name a method that was tried, with its NLL, and what came of it if it was not tried on all folds."""
    ended = "" if tried.get("result") == "complete" or not tried.get("reason") else f"; {tried['reason']}"
    of_folds = f" of {counted(int(tried['folds']), 'fold')} alone" if ended and tried.get("folds") else ""
    return f"- {tried.get('title')}: NLL {shown_number(tried.get('nll'))}{of_folds}{ended}"


def _applied(model: Model) -> str:
    return f"{model.temperature:.4g} and is applied" if model.calibrated else "not applied"


def _abstains(model: Model, actions: RowActions) -> list[str]:
    found = [] if actions.guarantees is None else actions.guarantees.statements(model.classes)
    found += [] if actions.costs is None else [f"It decides by the least expected cost among {listed(actions.costs.actions)}."]
    if not actions.abstains:
        found.append("It never abstains: no threshold was exported.")
    elif actions.decides_nothing:
        found.append("So it abstains on every row.")
    elif actions.below is not None:
        found.append(f"It abstains below a confidence of {actions.below:g}, which was set by hand: nothing is guaranteed.")
    return found


def _repeat(model: Model) -> list[str]:
    """The settings of the training as a TOML file that `calibayes train --config` reads, and the versions."""
    settings, versions = model.about.get("settings", {}), model.about.get("versions", {})
    usual = TrainSettings(target=model.target)
    lines, tables = [], []
    for name, value in settings.items():
        if isinstance(value, dict):
            entries = [f"{key} = {_toml(each)}" for key, each in value.items()]
            tables += [f"[{name}]", *entries] if entries else []
        elif value is not None and (name == "target" or _plain(getattr(usual, name, None)) != value):
            lines.append(f"{name} = {_toml(value)}")
    toml = "\n".join(["```toml", *lines, *tables, "```"])
    command = "Train it again with these settings in `settings.toml`: `calibayes train DATA --config settings.toml -o model`."
    used = ", ".join(f"{name} {value}" for name, value in versions.items())
    return [command, toml, *([f"Versions: {used}."] if used else [])]


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # escaped, characters beyond 16 bits would be two


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
