"""The demo's table, and sentences that are computed from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibayes.objective import SCHEMES
from calibayes.recipes.compare.columns import COLUMNS, Column, Row, Summary, listed, score_table, summary, weight
from calibayes.recipes.compare.task import FASHION_MNIST

if TYPE_CHECKING:
    from rich.table import Table

    from calibayes.recipes.demo.run import Results

__all__ = ["closing_words", "table"]


def table(results: Results) -> Table:
    """The schemes' test scores side by side; prints on a terminal and elsewhere."""
    rows = [
        Row(scheme.upper(), [weight(run.lam), weight(run.beta)], results.test[scheme])
        for scheme, run in ((scheme, results.chosen[scheme]) for scheme in SCHEMES)
    ]
    return score_table(results.settings, FASHION_MNIST.examples, ("scheme", "λ", "β"), rows)


def closing_words(results: Results) -> str:
    """How to read the table, and which scheme leads in which column, as the numbers have it."""
    settings, found = results.settings, {scheme: summary(results.test[scheme]) for scheme in SCHEMES}
    choice = f"λ from {listed(settings.lams)} and β from {listed(settings.betas)}"
    lines = [
        f"Chosen by the lowest NLL on the validation images (seed 0): {choice}.",
        "ECE: how far confidence and accuracy are apart; too sure by: mean confidence minus accuracy.",
        "",
        *(_leader(column, found) for column in COLUMNS if column.best is not None),
        "",
    ]
    if settings.is_quick:
        lines.append("Trained in seconds on little data (--quick): the numbers show what is measured, and little else.")
    if settings.seeds > 1:
        lines.append("Apart: the two ranges mean ± standard deviation do not meet. Within the spread there is no evidence.")
    else:
        lines.append("One seed has no spread: none of these differences is evidence. More seeds: calibayes demo --seeds 3")
    lines.append("One network and one split of one small data set: other data may put the schemes in another order.")
    return "\n".join(lines)


def _leader(column: Column, found: dict[str, dict[str, Summary]]) -> str:
    values = {scheme: found[scheme][column.name] for scheme in SCHEMES}
    ranked = sorted(SCHEMES, key=lambda scheme: values[scheme].mean, reverse=column.best == "highest")
    first, second = (values[scheme] for scheme in ranked[:2])
    name = f"{column.best} {column.title.removesuffix(' %')}:"
    line = f"{name:<18}{ranked[0].upper()} ({column.show(first)}), then {ranked[1].upper()} ({column.show(second)})"
    if first.std is None or second.std is None:
        return line
    apart = abs(first.mean - second.mean) > first.std + second.std
    return f"{line}: {'apart' if apart else 'within the spread'}"
