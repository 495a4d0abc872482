"""A claim of a paper with our numbers, and the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reproduction.experiment_results import SeedDifference

__all__ = ["SLIGHT", "Holds", "PaperClaim", "judged_claim"]

Holds = Literal["holds", "holds in part", "does not hold here", "cannot be told"]
SLIGHT = 0.02  # of accuracy: the most that "only marginally" may mean


@dataclass(frozen=True)
class PaperClaim:
    """A claim of the paper, our numbers and the verdict."""

    text: str  # the claim
    gaps: tuple[SeedDifference, ...]  # our numbers, in shares; shown in points
    verdict: Holds  # by the rule `rule`
    rule: str  # the difference that is above zero if it holds
    note: str = ""  # about its numbers, where they are made in another way than most

    def to_dict(self) -> dict[str, Any]:
        """The claim as numbers and texts."""
        return {"claim": self.text, "verdict": self.verdict, "rule": self.rule, "gaps": [gap._asdict() for gap in self.gaps]}


def judged_claim(text: str, gaps: Sequence[SeedDifference], rule: str, *, at_least: float = 0.0, note: str = "") -> PaperClaim:
    """All clearly above: holds; some: in part; none, and some clearly below: does not; otherwise it cannot be told."""
    above, below = [gap.low > at_least for gap in gaps], [gap.high < at_least for gap in gaps]
    verdict: Holds = "does not hold here" if any(below) else "cannot be told"
    if any(above):
        verdict = "holds" if all(above) else "holds in part"
    return PaperClaim(text, tuple(gaps), verdict, f"{rule}: clearly above 0", note)
