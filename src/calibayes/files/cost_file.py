"""Read what each action costs for each true class from a file."""

from __future__ import annotations

import math
from pathlib import Path

from calibayes.acting.decisions import ABSTAIN
from calibayes.acting.guarantee_request import CostTable
from calibayes.files.read_rows import read_rows
from calibayes.tables import RowBlock, TableOptions
from calibayes.tables.formats import file_problem
from calibayes.tables.numbers import label_key, parse_numbers
from calibayes.wording import did_you_mean, listed, shown

__all__ = ["read_cost_file"]


def read_cost_file(path: Path, classes: tuple[str, ...], options: TableOptions | None = None) -> CostTable:
    """Read a table of costs: its first column names the actions, and the others are the true classes, in any order.

    An action named ``abstain`` is what it costs to make no decision, the same for every class.

    Args:
        path: the file, of any kind that `calibayes.tables` reads.
        classes: the names of the classes.
        options: of its text.

    Examples:
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "costs.csv"
        >>> _ = path.write_text("action,ill,well\\nsend home,100,0\\ntreat,1,10\\nabstain,6,6\\n")
        >>> read_cost_file(path, ("well", "ill"))
        CostTable(actions=('send home', 'treat'), costs=((0.0, 100.0), (10.0, 1.0)), abstain_cost=6.0)
    """
    block, _ = read_rows(path, options)
    first, *names = block.table.column_names
    columns = _class_columns(path, names, classes)
    actions = block.cells(first).to_pylist()
    empty = next((row for row, action in enumerate(actions) if action is None), None)
    if empty is not None:
        raise block.problem("there is no name of an action.", empty, first)
    twice = next((action for action in actions if actions.count(action) > 1), None)
    if twice is not None:
        raise file_problem(path, f"the action {shown(twice)} is there twice. Give every action one row.")
    rows = _numbers(block, columns)
    abstain = rows.pop(actions.index(ABSTAIN)) if ABSTAIN in actions else None
    if not rows:
        raise file_problem(path, f"there is no action besides {ABSTAIN!r}. Write a row for each action.")
    if abstain is not None and len(set(abstain)) > 1:
        raise file_problem(
            path, f"the row {ABSTAIN!r} has different costs, {listed(abstain)}. Give it the same for every class."
        )
    named = tuple(action for action in actions if action != ABSTAIN)
    return CostTable(named, tuple(rows), None if abstain is None else abstain[0])


def _class_columns(path: Path, names: list[str], classes: tuple[str, ...]) -> list[str]:
    """Return the column of each class."""
    by_key = {label_key(name): name for name in names}
    known = {label_key(name) for name in classes}
    other = next((name for name in names if label_key(name) not in known), None)
    if other is not None:
        raise file_problem(path, f"the column {shown(other)} is not a class. {did_you_mean(other, classes)}")
    missing = [name for name in classes if label_key(name) not in by_key]
    if missing:
        what = (
            f"there is no column for the classes {listed(missing)}. After the first column, which names the actions, write one "
        )
        raise file_problem(path, f"{what}for each class.")
    return [by_key[label_key(name)] for name in classes]


def _numbers(block: RowBlock, columns: list[str]) -> list[tuple[float, ...]]:
    """Return the costs of each row, all of them finite."""
    cells = [block.cells(name) for name in columns]
    parsed = parse_numbers(cells, block.source.options.decimal)
    for place, name in enumerate(columns):
        for row, text in enumerate(cells[place].to_pylist()):
            if text is None or not parsed.good[row, place] or not math.isfinite(parsed.values[row, place]):
                found = "nothing" if text is None else shown(text)
                raise block.problem(f"expected a finite number, the cost, but got {found}.", row, name)
    return [tuple(map(float, row)) for row in parsed.values]
