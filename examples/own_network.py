"""Train a network of your own so that its confidence can be trusted, from data to reliability diagram.

Run it with ``python examples/own_network.py [FOLDER]``. What it writes goes to FOLDER (``own_network_output`` by default).
Run it again with the same folder: training finds its checkpoint, has nothing left to do, and the output is the same.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib as mpl
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import calibayes as cb

mpl.use("Agg")  # draw to files, no window


class TwoSpirals(Dataset[tuple[Tensor, Tensor]]):
    """Points on two noisy spirals, each with the index of its spiral: any Dataset of (input, label) will do."""

    def __init__(self, size: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(size) % 2
        angle = 3 * math.pi * torch.rand(size, generator=generator).sqrt()
        turned = angle + math.pi * self.labels
        spiral = torch.stack([turned.cos(), turned.sin()], dim=1) * angle[:, None] / 5
        self.points = spiral + 0.2 * torch.randn(size, 2, generator=generator)

    def __len__(self) -> int:
        """The number of points."""
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """One point and its label."""
        return self.points[index], self.labels[index]


class MyNetwork(nn.Module):
    """Any module that returns logits will do; nothing in it needs to know about calibayes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, one row per example, without a softmax."""
        logits: Tensor = self.head(self.body(x))
        return logits


def main(folder: Path) -> None:
    """Train, predict, evaluate, draw."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # the fastest for a network this small, and the same bits on any number of cores
    torch.manual_seed(0)  # of the network's initial weights; `fit` and `predict` have their own seeds
    train, validation, test = TwoSpirals(400, seed=1), TwoSpirals(400, seed=2), TwoSpirals(2000, seed=3)

    # The four schemes of the paper: Point or MeanField, lam=0 or lam>0. This is CA-BNN.
    posterior = cb.MeanField(MyNetwork(), prior_std=0.5, init_std=0.05)
    posterior.audit()
    history = cb.fit(
        posterior,
        train,
        cb.Objective(lam=5.0, beta=0.05),
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.01),
        epochs=100,
        batch_size=100,
        validation=validation,
        early_stopping=cb.EarlyStopping(patience=20, monitor="nll"),
        checkpoint=folder / "checkpoint",
        device="cpu",
    )
    print(f"\nTraining ended ({history.stopped}) after {len(history.epochs)} epochs; the best was epoch {history.best_epoch}.")

    predictive = cb.predict(posterior, test, samples=20)
    print(f"\n{cb.evaluate(predictive.probs, test.labels)}")

    unsure = int(predictive.epistemic.argmax())
    place = ", ".join(f"{value:.2f}" for value in test.points[unsure].tolist())
    print(f"\nThe sampled networks disagree most at ({place}): confidence {predictive.confidence[unsure]:.2f}.")

    display = cb.ReliabilityDisplay.from_predictions(predictive.probs, test.labels, name="CA-BNN, two spirals").plot()
    display.ax_.get_figure(root=True).savefig(folder / "reliability.png", dpi=150)  # type: ignore[union-attr]

    cb.save(posterior, folder / "model.safetensors")
    again = cb.predict(cb.load(folder / "model.safetensors", MyNetwork()), test, samples=20)
    print(f"The model loaded from disk predicts the same: {torch.equal(again.probs, predictive.probs)}.")
    print("Written: checkpoint/, model.safetensors, reliability.png.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "own_network_output"))
