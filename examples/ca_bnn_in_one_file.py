"""CA-BNN from data to reliability diagram, in one file of plain PyTorch: read it from top to bottom.

"Calibration-Aware Bayesian Learning" (Huang, Park and Simeone 2023, https://arxiv.org/abs/2305.07504) with nothing left out, on
3,000 of the Fashion-MNIST images that come with calibayes, but without importing it. The library does the same on any network,
and faster; tests/test_ca_bnn_in_one_file.py checks that both end with the same weights and probabilities.

    python examples/ca_bnn_in_one_file.py [folder for the picture]
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

mpl.use("Agg")  # draw to files, no window
from matplotlib import pyplot as plt

SEED = 0
SIZES = (784, 128, 10)  # a perceptron: pixels, hidden units, classes
EPOCHS, BATCH_SIZE, LEARNING_RATE = 15, 125, 1e-3
SAMPLES, PREDICTION_SAMPLES = 1, 20  # R in training, S in prediction
LAMBDA, BETA = 3.0, 0.03  # weights of the calibration term and of the KL
PRIOR_STD, INIT_STD = 0.1, 0.01  # of the prior, and of the posterior that training starts from
TAU_R, TAU_C, KERNEL_WIDTH = 0.001, 0.01, 0.4  # the paper's


def generator(*place: int | str) -> torch.Generator:
    """A generator for each draw, seeded by its place, so that no draw depends on those before it."""
    digest = hashlib.blake2b(repr((SEED, *place)).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


# --- Data


def load_data(train: int = 3000) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images as rows of 784 standardised pixels, and labels: x and y to train on, x and y to test on."""
    folder = Path(__file__).parents[1] / "src" / "calibayes" / "data" / "fashion_mnist"
    pixels = np.frombuffer(gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes()), np.uint8, offset=16)
    classes = np.frombuffer(gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes()), np.uint8, offset=8)
    order = torch.randperm(len(classes), generator=generator("split"))
    x = torch.tensor(pixels.reshape(-1, 784), dtype=torch.float32)[order] / 255
    y = torch.tensor(classes, dtype=torch.long)[order]
    x = (x - x[:train].mean()) / x[:train].std()
    return x[:train], y[:train], x[train:], y[train:]


# --- Network and posterior: q(θ) = N(μ, exp(ρ)²) over all weights, one flat μ and one flat ρ

LAYERS = list(itertools.pairwise(SIZES))  # inputs and outputs of each


def network(theta: Tensor, x: Tensor) -> Tensor:
    """The logits of the perceptron whose weights are the vector θ."""
    parts = iter(theta.split([size for n, m in LAYERS for size in (m * n, m)]))
    for layer, (n, m) in enumerate(LAYERS):
        x = F.linear(torch.relu(x) if layer else x, next(parts).view(m, n), next(parts))
    return x


def initial_mean() -> Tensor:
    """Random weights of standard deviation 1/√(3·inputs), as those of `nn.Linear`, and biases of zero, in one vector."""
    noise = generator("initial weights")
    weights = [torch.randn(m * n, generator=noise) / (3 * n) ** 0.5 for n, m in LAYERS]
    return torch.cat([part for weight, (_, m) in zip(weights, LAYERS, strict=True) for part in (weight, torch.zeros(m))])


def sample(mu: Tensor, rho: Tensor, *place: int | str) -> Tensor:
    """One θ = μ + exp(ρ)·ε, eq. (vi_mean_field): the same weights for the whole batch."""
    return mu + rho.exp() * torch.randn(mu.shape, dtype=mu.dtype, generator=generator(*place))


def kl_to_prior(mu: Tensor, rho: Tensor) -> Tensor:
    """KL(q ‖ N(0, PRIOR_STD²)), summed over weights."""
    return (math.log(PRIOR_STD) - rho + ((2 * rho).exp() + mu**2) / (2 * PRIOR_STD**2) - 0.5).sum()


# --- The calibration term: AECE, here WMMCE of smoothed scores


def aece(probs: Tensor, y: Tensor) -> Tensor:
    """Eq. (weighted), with the smoothed confidence of eq. (rhat) and the smoothed correctness of eq. (chat)."""
    r = (probs * torch.softmax(probs / TAU_R, dim=1)).sum(1)
    margins = probs - probs.gather(1, y[:, None])
    rivals = torch.sigmoid(margins / TAU_C).sum(1) - 0.5  # the class itself, at a margin of 0, counts ½
    c = torch.relu(1 - rivals)
    right, wrong = c.sum().clamp_min(1), (1 - c).sum().clamp_min(1)  # at least 1: an empty group counts zero, not infinity
    u = c * (1 - r) / right - (1 - c) * r / wrong
    kernel = torch.exp(-(r[:, None] - r).abs() / KERNEL_WIDTH)
    return (u @ kernel @ u).clamp_min(1e-20).sqrt()


# --- Training: Algorithm 1 of the paper


def train(x: Tensor, y: Tensor, mu: Tensor, epochs: int = EPOCHS) -> tuple[Tensor, Tensor]:
    """The μ and ρ that minimise cross-entropy + (λ/|B|)·AECE + (β/|D|)·KL, each batch's loss being divided by |B|."""
    mu = mu.clone().requires_grad_()
    rho = torch.full_like(mu, math.log(INIT_STD)).requires_grad_()
    optimizer = torch.optim.Adam([mu, rho], lr=LEARNING_RATE)
    for epoch in range(epochs):
        batches = torch.randperm(len(x), generator=generator("shuffle", epoch)).split(BATCH_SIZE)
        for step, batch in enumerate(batches):
            loss = BETA / len(x) * kl_to_prior(mu, rho)
            for r in range(SAMPLES):
                logits = network(sample(mu, rho, "noise", epoch, step, r), x[batch])
                calibration = LAMBDA / len(batch) * aece(logits.softmax(1), y[batch])
                loss = loss + (F.cross_entropy(logits, y[batch]) + calibration) / SAMPLES
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return mu.detach(), rho.detach()


# --- Prediction and evaluation


def predict(x: Tensor, mu: Tensor, rho: Tensor) -> Tensor:
    """Probabilities averaged over S networks drawn from the posterior, eq. (bayesian_predictive)."""
    draws = (sample(mu, rho, "predict", s) for s in range(PREDICTION_SAMPLES))
    return torch.stack([network(theta, x).softmax(1) for theta in draws]).mean(0)


def reliability(probs: Tensor, y: Tensor, bins: int = 15) -> tuple[Tensor, Tensor, Tensor]:
    """The share of examples, the mean confidence and the accuracy in each bin of confidence; NaN in empty bins."""
    confidence, decision = probs.max(1)
    right = (decision == y).to(probs)
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1  # right-closed bins
    count = torch.bincount(place, minlength=bins).to(probs)
    return count / len(y), torch.bincount(place, confidence, bins) / count, torch.bincount(place, right, bins) / count


def expected_calibration_error(probs: Tensor, y: Tensor) -> float:
    """ECE: the gap between confidence and accuracy, averaged over the bins by their share of examples."""
    share, confidence, accuracy = reliability(probs, y)
    return float((share * (confidence - accuracy).abs()).nansum())


def draw_reliability(probs: Tensor, y: Tensor, file: Path) -> None:
    """Accuracy over confidence: on the diagonal, the classifier is right as often as it says."""
    share, _, accuracy = (values.nan_to_num().numpy() for values in reliability(probs, y))
    edges = np.arange(len(share)) / len(share)
    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, height_ratios=(3, 1), figsize=(4.5, 5.5), layout="constrained")
    top.bar(edges, accuracy, 1 / len(share), align="edge", edgecolor="white", label="accuracy")
    top.plot([0, 1], [0, 1], "k--", label="perfectly calibrated")
    top.set(ylabel="accuracy", title=f"CA-BNN, ECE {100 * expected_calibration_error(probs, y):.1f} %")
    top.legend()
    bottom.bar(edges, share, 1 / len(share), align="edge", edgecolor="white", color="grey")
    bottom.set(xlabel="confidence", ylabel="share of images", xlim=(0, 1))
    figure.savefig(file, dpi=150)
    plt.close(figure)


def main(folder: Path) -> None:
    """Train, predict, evaluate, draw."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # as fast for a network this small, and the same bits on any number of cores
    x, y, x_test, y_test = load_data()
    mu, rho = train(x, y, initial_mean())
    probs = predict(x_test, mu, rho)
    print(f"accuracy  {(probs.argmax(1) == y_test).double().mean():.3f}")
    print(f"NLL       {F.nll_loss(probs.log(), y_test):.3f}")
    print(f"ECE       {expected_calibration_error(probs, y_test):.3f}")
    draw_reliability(probs, y_test, folder / "reliability.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
