"""The tables of experiments and of claims, for the terminal and for files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from calibayes.recipes.compare.score_columns import ScoreColumn, values_summary
from calibayes.terminal import as_text
from reproduction.claim_verdicts import PaperClaim
from reproduction.experiment import Experiment
from reproduction.experiment_results import PartResults
from reproduction.followup_tables import outsider_tables
from reproduction.membership_results import ATTACKS, Leak, leaks, mean_over_pairs

__all__ = ["claims_text", "missing_note", "plain_table", "summary", "table_text"]

# A column, and where its numbers are in a trained network's result.
_COLUMNS = [
    (ScoreColumn(path[-1], title, scale, digits, "", None), path)
    for title, path, scale, digits in (
        ("accuracy %", ("test", "accuracy"), 100, 1),
        ("ECE %", ("test", "ece"), 100, 1),
        ("NLL", ("test", "nll"), 1, 3),
        ("Brier", ("test", "brier"), 1, 3),
        ("T", ("temperature",), 1, 2),
        ("ECE % + T", ("scaled", "ece"), 100, 1),
        ("NLL + T", ("scaled", "nll"), 1, 3),
    )
]
_LEAKS = {"auc": "AUC % of membership attacks (guessing: 50)", "tpr": "Members found at 1 % false alarms, % (guessing: 1)"}
_ABOUT_CLAIMS = (
    "Differences are in points (hundredths), paired by seed, of scores averaged over the last quarter of the epochs, with 95 % "
    "intervals over seeds (Student's t, Bonferroni within a claim). They are about other trainings on the same data. Clearly: "
    "the interval does not contain the bound."
)
_ABOUT_FOLLOWUP = _ABOUT_CLAIMS.replace("scores averaged over the last quarter of the epochs", "the trained networks' scores")


def table_text(experiment: Experiment, parts: Sequence[PartResults]) -> str:
    """The tables of an experiment as they are printed."""
    title = f"{experiment.title} (preset {experiment.preset}; test, mean ± standard deviation over seeds)"
    complete = [part for part in parts if part.results]
    bayesian = [part for part in complete if "by_samples" in part.results[0]["final"]]
    followed_up = [part for part in complete if "outsiders" in part.results[0]["final"]]
    attacked = leaks(complete) if experiment.data == "membership" else []
    tables = [_scores_table(title, complete), *([_samples_table(bayesian)] if bayesian else [])]
    tables += [plain_table(*table) for table in outsider_tables(followed_up)]
    tables += [_leaks_table(attacked, measure, about) for measure, about in _LEAKS.items()] if attacked else []
    return as_text(Group(*tables, *missing_note(parts)), width=200)


def missing_note(parts: Sequence[PartResults]) -> list[str]:
    """A line with the number of trainings without a result, if there are any."""
    missing = sum(part.missing for part in parts)
    return [f"{missing} trainings are missing." if missing > 1 else "1 training is missing."] if missing else []


def _scores_table(title: str, parts: Sequence[PartResults]) -> Table:
    """Mean and standard deviation over seeds, plain and with a temperature, and the time of the fastest epoch."""
    plain = {_network(part): part.epoch_seconds() for part in parts if part.name.rpartition(": ")[2] == "FNN"}
    titles = ("seeds", *(column.title for column, _ in _COLUMNS), "s / epoch", *(["× FNN"] if plain else []))
    rows = []
    for part in parts:
        cells = [column.show(values_summary(part.final(*path).tolist())) for column, path in _COLUMNS]
        seconds = part.epoch_seconds()
        cost = [f"{seconds / plain[_network(part)]:.2f}"] if _network(part) in plain else []
        rows.append((part.name, str(len(part.results)), *cells, f"{seconds:.1f}", *cost))
    return plain_table(title, titles, rows)


def _network(part: PartResults) -> str:
    """The network that a part trains, where an experiment has several."""
    return part.name.rpartition(": ")[0]


def _samples_table(parts: Sequence[PartResults]) -> Table:
    """ECE and accuracy of Bayesian parts by the number of samples of a prediction, means over seeds."""
    counts = sorted(parts[0].results[0]["final"]["by_samples"], key=int)
    ways = {"mean weights": ("mean_weights",), **{f"S = {count}": ("by_samples", count) for count in counts}}
    ways[f"S = {parts[0].settings[0].predictive_samples}"] = ()
    rows = []
    for part in parts:
        errors, right = (
            [100 * part.final(*path, "test", score).mean() for path in ways.values()] for score in ("ece", "accuracy")
        )
        rows.append((part.name, *(f"{a:.1f} ({b:.1f})" for a, b in zip(errors, right, strict=True))))
    return plain_table("ECE % (accuracy %) by the number of samples of a prediction", tuple(ways), rows)


def _leaks_table(attacked: Sequence[Leak], measure: str, about: str) -> Table:
    """The success of every attack on every scheme beside its scores, means over targets with intervals over pairs."""
    titles = ("targets", "accuracy %", "on members %", "ECE %", "NLL", *ATTACKS)
    rows = []
    for leak in attacked:
        scores = [leak.final("accuracy"), leak.accuracy_on_members(), leak.final("ece"), leak.final("nll")]
        means = [values_summary(list(each.values())).mean for each in scores]
        cells = [*(f"{100 * mean:.1f}" for mean in means[:3]), f"{means[3]:.3f}"]
        ends = [mean_over_pairs(attack, leak.score(attack, measure)) for attack in ATTACKS]
        cells += [f"{100 * each.value:.1f} ± {50 * (each.high - each.low):.1f}" for each in ends]
        rows.append((leak.name, str(len(leak.results)), *cells))
    return plain_table(f"{about}; mean over targets ± half of the 95 % interval over pairs", titles, rows)


def plain_table(title: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table without lines between rows, whose first column has the rows' names."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("", no_wrap=True)
    for name in titles:
        table.add_column(name, justify="right", no_wrap=True)
    for name, *cells in rows:
        table.add_row(Text(name), *cells)
    return table


def summary(parts: Sequence[PartResults]) -> list[dict[str, Any]]:
    """The same, and each seed's value, as numbers."""
    return [
        {
            "name": part.name,
            "seeds": [each.seed for each in part.settings],
            "settings": {name: value for name, value in part.settings[0].to_dict().items() if name != "seed"},
            "scores": {" ".join(path): part.final(*path).tolist() for _, path in _COLUMNS},
            "fastest_epoch_seconds": part.epoch_seconds(),
        }
        for part in parts
        if part.results
    ]


def claims_text(claims: Sequence[PaperClaim], *, followup: bool = False) -> str:
    """The table of claims as it is printed; those of the follow-up are about trained networks alone."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("The paper's claim", ratio=4, overflow="fold")
    table.add_column("here", ratio=4, overflow="fold")
    table.add_column("", no_wrap=True)
    for claim in claims:
        table.add_row(Text(claim.text), Text("\n".join(map(str, claim.gaps))), claim.verdict)
    notes = dict.fromkeys(claim.note for claim in claims if claim.note)
    return as_text(Group(table, _ABOUT_FOLLOWUP if followup else _ABOUT_CLAIMS, *notes), width=120)
