"""Draw the pictures of docs/acting.md, beside this file; half a minute.

python docs/acting/draw.py
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import Tensor

import calibayes as cb
from calibayes.acting import Threshold, clopper_pearson, conformal_sets, set_coverage
from calibayes.displays import RiskCoverageDisplay
from calibayes.displays.style import BLUE, GREEN, INK, ORANGE, SKY, VERMILLION, finish, percent_axis

Labelled = tuple[Tensor, Tensor]


def predictions() -> tuple[Labelled, Labelled]:
    """The probabilities and labels of the page's calibration rows and of its new rows."""
    images, labels = (torch.from_numpy(each) for each in load_digits(return_X_y=True))
    generator = torch.Generator().manual_seed(0)
    images = images.float() / 16 + 0.3 * torch.randn(images.shape, generator=generator)
    known = labels < 8
    order = torch.randperm(int(known.sum()), generator=generator)
    x, y = images[known][order], labels[known][order]

    def member(seed: int) -> cb.Point:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
        return cb.Point(net)

    ensemble = cb.Ensemble.of(member, members=3, seed=0)
    adam = partial(torch.optim.Adam, lr=0.003)
    train = (x[:400], y[:400])
    cb.fit(ensemble, train, cb.Objective(lam=0), optimizer=adam, epochs=12, batch_size=32, progress=False)
    probs = cb.predict(ensemble, x[400:]).probs
    return (probs[:600], y[400:1000]), (probs[600:], y[1000:])


def threshold(calibration: Labelled, new: Labelled) -> Figure:
    """Risk over coverage of the new rows, with the threshold that was certified on the calibration rows."""
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    display = RiskCoverageDisplay.from_predictions(*new, target_accuracy=0.95, name="new rows").plot(figure.add_subplot())
    certified = Threshold.fit(*calibration, accuracy=0.95, certainty=0.9)
    answered = certified.answers(new[0].amax(-1))
    coverage, wrong = float(answered.double().mean()), (new[0].argmax(-1) != new[1])[answered]
    point = (coverage, float(wrong.double().mean()))
    low, high = clopper_pearson(int(wrong.sum()), len(wrong))
    display.ax_.errorbar(
        *point, [[point[1] - low], [high - point[1]]], fmt="D", color=VERMILLION, markersize=6, linewidth=1.2, zorder=5
    )
    display.ax_.annotate(
        f"certified on 600 other rows:\nconfidence above {certified.value:.2f},\nwith the 95 % interval of its errors here",
        point,
        (-14, 34),
        textcoords="offset points",
        ha="right",
        fontsize="small",
        color=INK,
        arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.8, "shrinkB": 5},
    )
    return figure


def set_sizes(calibration: Labelled, new: Labelled) -> Figure:
    """The share of sets of each size, by score."""
    figure = Figure(figsize=(5.6, 2.7), layout="constrained")
    ax = figure.add_subplot()
    names = ("lac", "aps", "raps", "top-k")
    colors = (BLUE, SKY, ORANGE, GREEN)
    for row, name in enumerate(names):
        sets = conformal_sets(*calibration, 0.95, name, seed=None if name == "lac" else 0)
        measured = set_coverage(sets.predict(new[0]), new[1])
        counts = [*measured.size_counts[1:4], sum(measured.size_counts[4:])]
        start = 0.0
        for size, (count, color) in enumerate(zip(counts, colors, strict=True)):
            share = count / len(new[1])
            label = ("1 class", "2 classes", "3 classes", "4 or more")[size] if not row else None
            ax.barh(row, share, left=start, height=0.62, color=color, edgecolor="white", label=label)
            start += share
        text = f"coverage {measured.coverage:.1%}, mean size {measured.mean_size:.2f}"
        ax.text(1.01, row, text, va="center", fontsize="small", color=INK)
    ax.set(yticks=range(len(names)), yticklabels=names, xlim=(0, 1), xlabel="share of sets")
    ax.invert_yaxis()
    percent_axis(ax.xaxis)
    finish(ax)
    ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize="small", handlelength=1.2)
    return figure


def main() -> None:
    """Draw both."""
    torch.set_num_threads(1)
    parts = predictions()
    for picture in (threshold, set_sizes):
        picture(*parts).savefig(Path(__file__).parent / f"{picture.__name__}.png", dpi=110)


if __name__ == "__main__":
    main()
