"""Does calibration-aware training leak less? The paper names membership attacks as future work; this is our answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduction.claim_verdicts import SLIGHT, PaperClaim, judged_claim
from reproduction.experiment_results import PartResults, SeedDifference, between
from reproduction.membership_experiments import LAMS
from reproduction.membership_results import Leak, leaks

__all__ = ["membership_claims"]

_NOTE = (
    "Membership attacks: differences are means over pairs of networks trained on complementary halves of a pool, the same "
    "halves and seeds for all schemes, after the last epoch; the intervals are over pairs, and about other halves of the same "
    "pool."
)
_CALIBRATED = [(plain, f"CA-{plain}, λ = {lam:g}") for plain in ("FNN", "BNN") for lam in LAMS]
_BAYESIAN = [("FNN", "BNN"), *((f"CA-FNN, λ = {lam:g}", f"CA-BNN, λ = {lam:g}") for lam in LAMS)]


def membership_claims(title: str, parts: Sequence[PartResults]) -> list[PaperClaim]:
    """The claims about leaks on a data set, for which there are results."""
    known = {leak.name: leak for leak in leaks(parts)}
    calibrated, bayesian = ([pair for pair in pairs if set(pair) <= set(known)] for pairs in (_CALIBRATED, _BAYESIAN))
    claims = []
    if calibrated:
        claims += [
            _leaks_less(
                f"(Future work of the paper) {title}: calibration-aware training leaks less to {how}", known, calibrated, *what
            )
            for how, what in (
                ("LiRA (AUC)", ("LiRA", "auc")),
                ("LiRA (TPR at 1 % FPR)", ("LiRA", "tpr")),
                ("a threshold on the loss (AUC)", ("loss", "auc")),
            )
        ]
        changes = [
            between(f"{ours} minus {plain}", known[ours].final("accuracy"), known[plain].final("accuracy"))
            for plain, ours in calibrated
        ]
        rule = "the change of accuracy, plus 2 points"
        claims.append(judged_claim("… and the accuracy falls only marginally", changes, rule, at_least=-SLIGHT, note=_NOTE))
    if bayesian:
        text = f"(Asked by us) {title}: Bayesian learning leaks less to LiRA (AUC)"
        claims.append(_leaks_less(text, known, bayesian, "LiRA", "auc"))
    return claims


def _leaks_less(
    text: str, known: Mapping[str, Leak], pairs: Sequence[tuple[str, str]], attack: str, measure: str
) -> PaperClaim:
    gaps: list[SeedDifference] = [
        between(
            f"{first} minus {second}",
            known[first].score(attack, measure),
            known[second].score(attack, measure),
            comparisons=len(pairs),
        )
        for first, second in pairs
    ]
    return judged_claim(text, gaps, "all differences", note=_NOTE)
