"""Draw the pictures of docs/reference/displays.md, beside this file; ten minutes for all of them.

python docs/reference/displays/draw.py [name …]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from torch import nn

import calibayes as cb
from calibayes.displays import (
    ConfidenceHistogramDisplay,
    HistoryDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SweepDisplay,
    reliability_grid,
)
from calibayes.displays.lambda_sweep import Values

SEEDS, LAMS = range(5), (1.0, 3.0, 10.0, 30.0)


def digits(train: int) -> list[Any]:
    """Scikit-learn's handwritten digits: images to train on, images to test on, and the labels of both."""
    images, labels = load_digits(return_X_y=True)
    parts: list[Any] = train_test_split(images / 16, labels, train_size=train, random_state=0)
    return parts


def fitted() -> tuple[list[Any], tuple[Any, Any]]:
    """Naive Bayes and logistic regression fitted on 300 digits, and the others to test them on."""
    images, test_images, labels, test_labels = digits(300)
    models = [GaussianNB(var_smoothing=0.3), LogisticRegression(max_iter=2000)]
    return [model.fit(images, labels) for model in models], (test_images, test_labels)


def trained(lam: float, seed: int, *, bayesian: bool) -> tuple[cb.History, float]:
    """A small network trained on 600 digits of which every fourth has a random label: its history, and its ECE on others."""
    images, test_images, labels, test_labels = (torch.from_numpy(each) for each in digits(600))
    generator = torch.Generator().manual_seed(0)

    def mislabelled(true: torch.Tensor) -> torch.Tensor:
        drawn = torch.randint(10, true.shape, generator=generator)
        return torch.where(torch.rand(true.shape, generator=generator) < 0.25, drawn, true)

    train, test = (images.float(), mislabelled(labels)), (test_images.float(), mislabelled(test_labels))
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    posterior = cb.MeanField(net, prior_std=0.3) if bayesian else cb.Point(net)
    history = cb.fit(
        posterior,
        train,
        cb.Objective(lam=lam, beta=0.1),
        optimizer=partial(torch.optim.Adam, lr=0.01),
        epochs=70,
        batch_size=32,
        validation=(test[0][:300], test[1][:300]),
        seed=seed,
        progress=False,
    )
    return history, cb.metrics.ece(cb.predict(posterior, test[0][300:], samples=20, seed=seed).probs, test[1][300:])


def reliability() -> Figure:
    """Two models, one overconfident and one underconfident."""
    models, test = fitted()
    return reliability_grid([ReliabilityDisplay.from_estimator(model, *test) for model in models])


def risk_coverage() -> Figure:
    """The same two models."""
    models, test = fitted()
    figure = Figure(figsize=(4.6, 3.4), layout="constrained")
    ax = figure.add_subplot()
    for model in models:
        RiskCoverageDisplay.from_estimator(model, *test, target_accuracy=0.98).plot(ax)
    return figure


def confidence_histogram() -> Figure:
    """The second of them."""
    models, test = fitted()
    figure = Figure(figsize=(4.6, 3.4), layout="constrained")
    ConfidenceHistogramDisplay.from_estimator(models[1], *test).plot(figure.add_subplot())
    return figure


def history() -> Figure:
    """A CA-BNN."""
    figure = Figure(figsize=(4.6, 6.4), layout="constrained")
    HistoryDisplay.from_history(trained(10.0, 0, bayesian=True)[0]).plot(figure.add_subplot())
    return figure


def sweep() -> Figure:
    """All four schemes, five seeds each."""
    figure = Figure(figsize=(4.6, 3.4), layout="constrained")
    values: Values = {
        "fnn": [trained(0.0, seed, bayesian=False)[1] for seed in SEEDS],
        "bnn": [trained(0.0, seed, bayesian=True)[1] for seed in SEEDS],
        "ca-fnn": {lam: [trained(lam, seed, bayesian=False)[1] for seed in SEEDS] for lam in LAMS},
        "ca-bnn": {lam: [trained(lam, seed, bayesian=True)[1] for seed in SEEDS] for lam in LAMS},
    }
    SweepDisplay(values, metric="ece").plot(figure.add_subplot())
    return figure


def main(names: Sequence[str]) -> None:
    """Draw those pictures, or all."""
    torch.set_num_threads(1)
    pictures: list[Callable[[], Figure]] = [reliability, risk_coverage, confidence_histogram, history, sweep]
    for picture in pictures:
        if not names or picture.__name__ in names:
            picture().savefig(Path(__file__).parent / f"{picture.__name__}.png", dpi=110)
            print(picture.__name__, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
