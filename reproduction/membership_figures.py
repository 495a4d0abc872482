"""ROC curves of the attack with shadow models, and the AUC of attacks on every scheme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibayes.acting import tpr_at_fpr
from calibayes.displays.style import GREY, LINES, finish, percent_axis
from reproduction.experiment_results import PartResults
from reproduction.membership_experiments import LAMS
from reproduction.membership_results import Leak, leaks, mean_over_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["leak_figures"]

_LOWEST, _HIGHEST, _POINTS = 1e-3, 0.99, 40  # rates of false alarms


def leak_figures(parts: Sequence[PartResults]) -> Iterator[tuple[str, Figure]]:
    """One figure; none before there are three pairs of some scheme."""
    from matplotlib.figure import Figure

    attacked = leaks(parts)
    if not attacked:
        return
    figure = Figure(figsize=(9.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    # One line for each scheme, with the largest λ.
    fewer = [leak for leak in attacked if not any(leak.name.endswith(f"λ = {lam:g}") for lam in LAMS[:-1])]
    _curves(left, fewer)
    _areas(right, attacked)
    yield "leaks.png", figure


def _curves(ax: Axes, attacked: Sequence[Leak]) -> None:
    """Rates of true and false alarms of LiRA, means over targets."""
    from matplotlib.ticker import FuncFormatter

    for leak, line in zip(attacked, LINES, strict=False):
        targets = [(inside, outside) for _, inside, outside in leak.target_scores("LiRA")]
        # A single false alarm is the lowest rate that a target can show.
        rates = np.geomspace(max(_LOWEST, 1 / min(len(outside) for _, outside in targets)), _HIGHEST, _POINTS)
        found = np.mean([[tpr_at_fpr(*target, rate) for rate in rates] for target in targets], axis=0)
        ax.plot(rates, found, label=leak.name, **line.on(ax))
    ax.plot(rates, rates, color=GREY, linewidth=0.8, label="guessing")
    ax.set(xscale="log", yscale="log", xlabel="false positive rate", ylabel="true positive rate (LiRA)")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    ax.legend(loc="upper left", frameon=False, fontsize="small")
    finish(ax)


def _areas(ax: Axes, attacked: Sequence[Leak]) -> None:
    """The AUC of two attacks with intervals over pairs, a row for each scheme."""
    rows = np.arange(len(attacked))[::-1]
    for attack, line, offset in (("LiRA", LINES[0], 0.12), ("loss", LINES[1], -0.12)):
        means = [mean_over_pairs(leak.name, leak.score(attack, "auc")) for leak in attacked]
        for row, mean in zip(rows, means, strict=True):
            ax.plot([mean.low, mean.high], [row + offset] * 2, color=line.color, linewidth=1.2)
        name = "LiRA" if attack == "LiRA" else "threshold on the loss"
        ax.plot([mean.value for mean in means], rows + offset, line.marker, color=line.color, markersize=5, label=name)
    ax.axvline(0.5, color=GREY, linewidth=0.8)
    ax.set_yticks(rows, [leak.name for leak in attacked])
    ax.set(xlabel="AUC, 95 % interval", ylim=(-0.6, len(attacked) - 0.4))
    percent_axis(ax.xaxis)
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=2, frameon=False, fontsize="small")
    finish(ax)
