"""The demo's table, and sentences that are computed from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibayes.methods import method_named
from calibayes.recipes.compare.columns import COLUMNS, Column, Row, Summary, listed, score_table, summary, weight
from calibayes.recipes.compare.settings import Settings
from calibayes.recipes.compare.task import FASHION_MNIST

if TYPE_CHECKING:
    from rich.table import Table

    from calibayes.recipes.demo.run import Results

__all__ = ["closing_words", "table"]


def table(results: Results) -> Table:
    """The methods' test scores side by side; prints on a terminal and elsewhere."""
    rows = [
        Row(method_named(name).title, [weight(run.lam), weight(run.beta)], results.test[name])
        for name, run in results.chosen.items()
    ]
    return score_table(results.settings, FASHION_MNIST.examples, ("method", "λ", "β"), rows)


def closing_words(results: Results) -> str:
    """How to read the table, and which method leads in which column, as the numbers have it."""
    settings, found = results.settings, {name: summary(results.test[name]) for name in results.chosen}
    choice = f"λ from {listed(settings.lams)} and β from {listed(settings.betas)}"
    lines = [
        f"Chosen by the lowest NLL on the validation images (seed 0): {choice}.",
        *_about_mixture(settings),
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
    lines.append("One network and one split of one small data set: other data may put the methods in another order.")
    return "\n".join(lines)


def _about_mixture(settings: Settings) -> list[str]:
    given = settings.method_settings.get("mixture")
    if given is None:
        return []
    return [
        f"mixture: {given['members']} networks with a Gaussian each, where every other method trains one network; each is "
        f"trained for as many epochs as the others, with β = {given['beta']:g}, which was not chosen."
    ]


def _leader(column: Column, found: dict[str, dict[str, Summary]]) -> str:
    values = {name: each[column.name] for name, each in found.items()}
    ranked = sorted(values, key=lambda name: values[name].mean, reverse=column.best == "highest")
    titles = [method_named(name).title for name in ranked]
    first, second = (values[name] for name in ranked[:2])
    what = f"{column.best} {column.title.removesuffix(' %')}:"
    line = f"{what:<18}{titles[0]} ({column.show(first)}), then {titles[1]} ({column.show(second)})"
    if first.std is None or second.std is None:
        return line
    apart = abs(first.mean - second.mean) > first.std + second.std
    return f"{line}: {'apart' if apart else 'within the spread'}"
