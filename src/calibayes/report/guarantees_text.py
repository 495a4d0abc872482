"""Sets and certified thresholds on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from calibayes.acting.guarantees import Guarantees
from calibayes.wording import percent

__all__ = ["guarantees_text"]


def guarantees_text(guarantees: Guarantees, class_names: Sequence[str] | None = None) -> str:
    """Say what sets and a threshold guarantee, and how sets turned out."""
    lines = []
    if guarantees.sets is not None and guarantees.measured is not None:
        measured = guarantees.measured
        low, high = measured.coverage_interval
        lines.append(
            f"Sets of {100 * guarantees.sets.level:.4g} %: the true class is in {100 * measured.coverage:.1f} % of "
            f"{guarantees.rows:,} sets ({100 * low:.1f} to {100 * high:.1f} %), which have {measured.mean_size:.2f} classes on "
            f"average; {percent(measured.singletons)} have one. Each row is measured with a threshold from the other half."
        )
    lines += [*guarantees.statements(class_names), *guarantees.notes]
    return "\n".join(lines)
