"""How much of an ensemble's gain one distilled network keeps: on images and on a table, with outsiders."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR

import calibayes as cb
from benchmarks.report import Report
from benchmarks.timing import interleaved
from calibayes import metrics
from calibayes.acting.detection import auroc
from calibayes.data import fashion_mnist
from calibayes.networks import MLP, SmallCNN
from calibayes.recipes.compare.difference_interval import Estimate, mean_difference

__all__ = ["THREADS", "WHAT", "kept", "section", "table"]

WHAT = "one distilled network beside an ensemble of 10: scores, cost, and the share of the ensemble's gain that is kept"
THREADS = 1  # the networks are too small for more
_MEMBERS = 10
_BATCH = 64
_SINGLE, _ENSEMBLE = "one network", "ensemble of 10"
_STUDENTS = {"distilled, training inputs": False, "distilled, also unlabelled": True}
_SCORES = {
    "accuracy": "accuracy", "nll": "NLL", "ece": "ECE", "aurc": "AURC", "nats": "epistemic", "entropy": "entropy",
    "epistemic": "epistemic",
}  # fmt: skip
_GAINS = {"nll": "NLL", "aurc": "AURC", "outsiders": "outsider AUROC"}

Row = dict[str, float]


@dataclass(frozen=True)
class Data:
    """What one seed trains and tests on."""

    train: tuple[Tensor, Tensor]
    unlabelled: Tensor
    test: tuple[Tensor, Tensor]
    outsiders: Tensor


@dataclass(frozen=True)
class Task:
    """Data, a network, and how long it is trained."""

    title: str
    data: Callable[[int], Data]
    network: Callable[[], nn.Module]
    learning_rate: float
    epochs: int
    student_epochs: int
    seeds: int


def _fashion(seed: int) -> Data:
    """Clothes; the outsiders are handwritten digits of the same size and range."""
    splits = fashion_mnist(500, 1000, seed=seed)
    x, y = splits.test
    low, high = splits.train[0].aminmax()
    digits = torch.from_numpy(load_digits().images).float()[:, None] / 16
    enlarged = F.interpolate(digits[:500], size=x.shape[-1], mode="bilinear")
    return Data(splits.train, splits.validation[0], (x[:2000], y[:2000]), low + enlarged * (high - low))


def _digits(seed: int) -> Data:
    """Digits 0 to 7 as a table of 64 columns; the outsiders are 8 and 9, which training has not seen."""
    table = load_digits()
    x, y = torch.from_numpy(table.data).float() / 16, torch.from_numpy(table.target).long()
    outsiders, known = x[y > 7], (y <= 7).nonzero().squeeze(1)
    order = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(seed))]
    train, unlabelled, test = order[:120], order[120:620], order[620:]
    return Data((x[train], y[train]), x[unlabelled], (x[test], y[test]), outsiders)


_TASKS = {
    "fashion-mnist": Task(
        "Fashion-MNIST, 500 labelled and 1,000 unlabelled images, a small CNN; outsiders: digits",
        _fashion, SmallCNN, learning_rate=0.002, epochs=12, student_epochs=12, seeds=6,
    ),
    "digits": Task(
        "Digits 0-7 as a table, 120 labelled and 500 unlabelled rows, an MLP; outsiders: digits 8 and 9",
        _digits, lambda: MLP(64, [32, 32], classes=8), learning_rate=0.01, epochs=80, student_epochs=60, seeds=5,
    ),
}  # fmt: skip


def section(report: Report, *, quick: bool = False) -> None:
    """Train, distil, score and tell."""
    for name, task in _TASKS.items():
        seeds = range(1 if quick else task.seeds)
        rows = [_scored(task, task.data(seed), seed, quick) for seed in seeds]
        costs = _costs(task, quick)
        report.record[name] = {"title": task.title, "seeds": len(seeds), "rows": rows, "cost": costs}
        for line in table(task.title, rows, costs):
            report.tell(line)


def _optimizer(task: Task) -> Callable[[Any], torch.optim.Optimizer]:
    return lambda parameters: torch.optim.Adam(parameters, lr=task.learning_rate)


def _ensemble(task: Task, data: Data, seed: int, quick: bool) -> cb.Ensemble:
    ensemble = cb.Ensemble.of(lambda _: cb.Point(task.network()), members=2 if quick else _MEMBERS, seed=seed)
    epochs = 1 if quick else task.epochs
    steps = epochs * -(-len(data.train[1]) // _BATCH)
    cb.fit(
        ensemble, data.train, cb.Objective(lam=0.0), optimizer=_optimizer(task), epochs=epochs, batch_size=_BATCH, seed=seed,
        scheduler=lambda optimizer: CosineAnnealingLR(optimizer, steps), scheduler_interval="step", group=None, progress=False,
    )  # fmt: skip
    return ensemble


def _scored(task: Task, data: Data, seed: int, quick: bool) -> dict[str, Row]:
    """The scores of the ensemble, of its members on average, and of the students."""
    ensemble = _ensemble(task, data, seed, quick)
    members = [_scores(member, data) for member in ensemble.members]
    rows = {_SINGLE: {score: statistics.mean(each[score] for each in members) for score in members[0]}}
    for name, unlabelled in _STUDENTS.items():
        x = torch.cat([data.train[0], data.unlabelled]) if unlabelled else data.train[0]
        # As many steps with or without the further inputs.
        longer = 1.0 if unlabelled else (len(data.train[0]) + len(data.unlabelled)) / len(data.train[0])
        student = cb.distill(
            ensemble, x, optimizer=_optimizer(task), epochs=1 if quick else round(longer * task.student_epochs),
            batch_size=_BATCH, seed=seed, group=None, progress=False,
        )  # fmt: skip
        rows[name] = _scores(student, data)
    return {**rows, _ENSEMBLE: _scores(ensemble, data)}


def _scores(posterior: cb.Posterior, data: Data) -> Row:
    x, y = data.test
    inside, outside = (cb.predict(posterior, each, dtype=torch.float64) for each in (x, data.outsiders))
    scores = {score: float(getattr(metrics, score)(inside.probs, y)) for score in ("accuracy", "nll", "ece", "aurc")}
    scores["entropy"] = scores["outsiders"] = auroc(inside.entropy.numpy(), outside.entropy.numpy())
    if float(outside.epistemic.max()) > 0:  # one network has none, so its entropy has to do
        scores["epistemic"] = scores["outsiders"] = auroc(inside.epistemic.numpy(), outside.epistemic.numpy())
        scores["nats"] = float(inside.epistemic.mean())
    return scores


def _costs(task: Task, quick: bool) -> dict[str, float]:
    """How long a prediction takes, in predictions of one network."""
    x = task.data(0).test[0][:500]
    net = task.network()
    posteriors: dict[str, cb.Posterior] = {_SINGLE: cb.Point(net), next(iter(_STUDENTS)): cb.Distilled(net)}
    posteriors[_ENSEMBLE] = cb.Ensemble([cb.Point(net) for _ in range(_MEMBERS)])
    runs = {name: (lambda each=each: cb.predict(each, x)) for name, each in posteriors.items()}
    timings = interleaved(runs, repeats=3 if quick else 15)
    costs = {name: timing.over(timings[_SINGLE]) for name, timing in timings.items()}
    return {**costs, **dict.fromkeys(_STUDENTS, costs[next(iter(_STUDENTS))])}


def kept(rows: Sequence[Mapping[str, Row]], student: str, score: str) -> Estimate | None:
    r"""The share of the ensemble's mean gain over one network that a student has, $\bar d/\bar e$, or ``None`` without a gain.

    The interval over seeds is that of a ratio of means, of $\bar d/\bar e + (d_s - e_s \bar d/\bar e)/\bar e$, with a $t$.
    """
    own = [row[student][score] - row[_SINGLE][score] for row in rows]
    whole = [row[_ENSEMBLE][score] - row[_SINGLE][score] for row in rows]
    gain = mean_difference(whole, 0.0)
    if gain.low <= 0 <= gain.high:
        return None
    share = statistics.mean(own) / gain.value
    return mean_difference([share + (d - share * e) / gain.value for d, e in zip(own, whole, strict=True)], 0.0)


def table(title: str, rows: Sequence[Mapping[str, Row]], costs: Mapping[str, float]) -> list[str]:
    """The lines of one task: mean scores, costs, and the shares that are kept."""
    lines = ["", title, f"{f'mean over {len(rows)} seeds':72}{'nats':>11}{'outsider AUROC by':>22}"]
    lines.append(f"{'':28}" + "".join(f"{label:>11}" for label in _SCORES.values()) + f"{'cost':>8}")
    for name in rows[0]:
        means = [statistics.mean(row[name][score] for row in rows) if score in rows[0][name] else None for score in _SCORES]
        cells = "".join(f"{'-' if mean is None else f'{mean:.4f}':>11}" for mean in means)
        lines.append(f"{name:28}{cells}{costs[name]:8.1f}")
    lines += ["", f"{'share of the gain kept':28}" + "".join(f"{label:>24}" for label in _GAINS.values())]
    for student in _STUDENTS:
        shares = [kept(rows, student, score) for score in _GAINS]
        lines.append(f"{student:28}" + "".join(f"{_shown(each):>24}" for each in shares))
    return lines


def _shown(share: Estimate | None) -> str:
    if share is None:
        return "no clear gain"
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f})"
