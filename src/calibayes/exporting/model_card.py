"""A model card: what an exported file is, how good it is, and how to repeat it, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from calibayes.metrics import evaluate, reliability_bins
from calibayes.metrics.score_table import as_json_numbers

__all__ = ["ModelCard", "reliability_lines", "score_lines", "scores_of_rows", "shown_number"]

_SHOWN = {"accuracy": "accuracy", "nll": "NLL", "brier": "Brier score", "ece": "ECE"}
_BINS = 10


@dataclass(frozen=True)
class ModelCard:
    """The paragraphs of a card, by section; a section without any is left out.

    Attributes:
        title: of the card.
        data: what it was trained on.
        method: how, and what a prediction is made of.
        scores: with intervals.
        reliability: how often it is right at which confidence.
        abstains: where it makes no decision, and what is guaranteed.
        file: the inputs and outputs of the file, and how it was checked.
        repeat: how to train and export it again.
    """

    title: str
    data: Sequence[str] = ()
    method: Sequence[str] = ()
    scores: Sequence[str] = ()
    reliability: Sequence[str] = ()
    abstains: Sequence[str] = ()
    file: Sequence[str] = ()
    repeat: Sequence[str] = ()
    headings: Mapping[str, str] = field(
        default_factory=lambda: {
            "data": "Data",
            "method": "Method",
            "scores": "Scores",
            "reliability": "Reliability",
            "abstains": "Where it abstains",
            "file": "The file",
            "repeat": "To repeat it",
        }
    )

    def text(self) -> str:
        """The card in Markdown."""
        parts = [f"# {self.title}"]
        for name, heading in self.headings.items():
            paragraphs = getattr(self, name)
            if paragraphs:
                parts += [f"## {heading}", *paragraphs]
        return "\n\n".join(parts) + "\n"


def scores_of_rows(probs: Tensor, labels: Tensor, class_names: Sequence[str] | None = None) -> dict[str, Any]:
    """Every score with intervals, in plain values."""
    found: dict[str, Any] = as_json_numbers(evaluate(probs, labels, class_names=class_names).to_dict())
    return found


def score_lines(scores: Mapping[str, Any], rows: str) -> list[str]:
    """Scores with intervals as a table of Markdown, from `Scores.to_dict`.

    Args:
        scores: in plain values.
        rows: which rows they are of.
    """
    level = scores.get("level")
    table = [f"| | score | {100 * level:g} % interval |" if level else "| | score | |", "|---|---|---|"]
    for name, title in _SHOWN.items():
        low_high = scores.get("intervals", {}).get(name)
        ends = f"{shown_number(low_high[0])} to {shown_number(low_high[1])}" if low_high else ""
        table.append(f"| {title} | {shown_number(scores.get(name))} | {ends} |")
    return [f"Measured on {rows} ({scores.get('n', 0):,} examples).", "\n".join(table)]


def reliability_lines(probs: Tensor, labels: Tensor, rows: str) -> list[str]:
    """How often decisions are right, by confidence, as a table of Markdown."""
    bins = reliability_bins(probs, labels, _BINS)
    table = ["| confidence | examples | mean confidence | accuracy |", "|---|---|---|---|"]
    for place, count in enumerate(bins.count.tolist()):
        if count:
            ends = f"{bins.edges[place]:.1f} to {bins.edges[place + 1]:.1f}"
            table.append(f"| {ends} | {count:,} | {bins.confidence[place]:.3f} | {bins.accuracy[place]:.3f} |")
    return [f"By confidence, on {rows}:", "\n".join(table)]


def shown_number(value: Any) -> str:
    """A score as people write it; those that are not numbers are texts in JSON."""
    return f"{value:.4f}" if isinstance(value, int | float) else "–" if value is None else str(value)
