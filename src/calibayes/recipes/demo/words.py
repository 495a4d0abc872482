"""The demo's table, and sentences that are computed from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibayes.objective import SCHEMES
from calibayes.recipes.compare.columns import COLUMNS, Column, Summary, listed, summary
from calibayes.recipes.compare.settings import Settings

if TYPE_CHECKING:
    from rich.table import Table

    from calibayes.recipes.demo.run import Results

__all__ = ["closing_words", "opening_words", "table"]


def opening_words(settings: Settings, workers: int) -> str:
    """What is about to happen."""
    return (
        f"Fashion-MNIST, which comes with calibayes: {settings.train:,} images to train, {settings.validation:,} to choose "
        f"λ and β, {settings.test:,} to test.\n"
        f"{settings.trainings} trainings of {settings.epochs} epochs, {workers} at a time on one thread each."
    )


def table(results: Results) -> Table:
    """The schemes' test scores side by side; prints on a terminal and elsewhere."""
    from rich import box
    from rich.table import Table

    test, seeds = results.settings.test, results.settings.seeds
    spread = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    made = Table(title=f"{test:,} test images, {spread}", box=box.SIMPLE_HEAD, title_style="bold")
    made.add_column("scheme", style="bold", no_wrap=True)
    for title in ("λ", "β", *(column.title for column in COLUMNS)):
        made.add_column(title, justify="right", no_wrap=True)
    for scheme in SCHEMES:
        run, found = results.chosen[scheme], summary(results.test[scheme])
        weights = [f"{value:g}" if value else "–" for value in (run.lam, run.beta)]
        made.add_row(scheme.upper(), *weights, *(column.show(found[column.name]) for column in COLUMNS))
    return made


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
