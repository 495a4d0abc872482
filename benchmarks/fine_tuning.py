"""Fine-tuning MiniLM on 20 Newsgroups: scores of each way over seeds, and what a step takes beside ``transformers.Trainer``."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

import calibayes as cb
from benchmarks.fine_tuning_ways import WAYS, step
from benchmarks.report import Report, ratios
from benchmarks.timing import interleaved, peak_memory
from calibayes.data import newsgroups_articles
from calibayes.recipes.compare.difference_interval import Estimate, mean_difference
from calibayes.recipes.compare.recommendation import LEVEL, differences

__all__ = ["FULL", "QUICK", "Sizes", "section", "tell_rates", "tell_scores"]

_FOLDER = Path(__file__).parents[1] / "results" / "benchmarks" / "fine_tuning"
_SCORES = ("accuracy", "ece", "nll")
_CHOOSING = ("plain", "LoRA")  # the ways that learning rates are chosen for: all weights, and adapters


@dataclass(frozen=True)
class Sizes:
    """How much is trained and measured.

    Attributes:
        ways: which of `WAYS`; the first is what the others are compared with.
        seeds: trainings of each.
        articles: training articles, another choice for each seed.
        test: test articles, the same for all.
        tokens: of an article, from its beginning.
        epochs: passes over the training articles.
        samples: S of the ensembles.
        rates: learning rates to choose from, for all weights and for adapters.
        repeats: of the timing of a step.
    """

    ways: tuple[str, ...] = tuple(WAYS)
    seeds: int = 3
    articles: int = 1600
    test: int = 1200
    tokens: int = 64
    epochs: int = 2
    samples: int = 5
    rates: tuple[tuple[float, ...], tuple[float, ...]] = ((2e-4, 5e-4, 1e-3), (2e-3, 5e-3, 1e-2))
    repeats: int = 5

    def trials(self) -> list[dict[str, Any]]:
        """Settings of the trainings that learning rates are chosen by: plain ones, asked about held-out training articles."""
        return [
            {"way": way, "seed": 0, "rate": rate, "held_out": True, **self._shared()}
            for way, rates in zip(_CHOOSING, self.rates, strict=True)
            for rate in rates
        ]

    def settings(self, rates: Mapping[str, float]) -> list[dict[str, Any]]:
        """Those of every training, with the rates of `_CHOOSING`."""
        return [
            {"way": way, "seed": seed, "rate": rates[_CHOOSING[WAYS[way].adapters]], "held_out": False, **self._shared()}
            for seed in range(self.seeds)
            for way in self.ways
        ]

    def _shared(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("articles", "test", "tokens", "epochs", "samples")}


FULL = Sizes()
QUICK = Sizes(
    ways=("plain", "CA Bayesian LoRA"),
    seeds=2,
    articles=32,
    test=24,
    tokens=8,
    epochs=1,
    samples=2,
    rates=((2e-4,), (2e-3,)),
    repeats=1,
)


def section(report: Report, quick: bool = False) -> None:
    """Train what is not trained yet, measure, and tell."""
    sizes = QUICK if quick else FULL
    newsgroups_articles("train")  # or an error that says how to get them, before anything is trained
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if quick else _FOLDER
        rates = tell_rates(report, sizes, _trained(sizes.trials(), folder))
        results: dict[str, list[dict[str, Any]]] = {way: [] for way in sizes.ways}
        for settings, result in _trained(sizes.settings(rates), folder):
            results[settings["way"]].append(result)
    tell_scores(report, sizes, results)
    _tell_cost(report, sizes)


def _trained(settings: list[dict[str, Any]], folder: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Settings and result of every training."""
    found = cb.sweep("benchmarks.fine_tuning_ways:trial", settings, folder, label="{way}-rate{rate}-seed{seed}")
    if found.failed:
        raise RuntimeError(f"{len(found.failed)} trainings failed; the first: {found.failed[0].error}")
    return [(dict(trial.settings), trial.result or {}) for trial in found]


def tell_rates(
    report: Report, sizes: Sizes, results: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> dict[str, float]:
    """The learning rate of the lowest NLL for plain training and for adapters, which the other ways take over."""
    report.tell(f"\n(a) learning rates: NLL on {sizes.test:,} training articles that were held out, one training each")
    chosen, record = {}, {}
    for way in _CHOOSING:
        found = {settings["rate"]: result["nll"] for settings, result in results if settings["way"] == way}
        chosen[way] = min(found, key=found.__getitem__)
        cells = [f"{rate:g}: {value:.3f}{' *' if rate == chosen[way] else ''}" for rate, value in found.items()]
        _tell_row(report, way, cells)
        record[way] = {"nll": {f"{rate:g}": value for rate, value in found.items()}, "chosen": chosen[way]}
    report.record["rates"] = record
    report.tell("    * taken by this way, and by all that train the same weights")
    return chosen


def tell_scores(report: Report, sizes: Sizes, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """The scores, with intervals, and their differences: from the first way, and between ways with adapters."""
    entries: Any = {
        way: SimpleNamespace(test_probs=[each["probs"].numpy() for each in seeds]) for way, seeds in results.items()
    }
    table: Any = differences(entries, results[sizes.ways[0]][0]["targets"])
    record: dict[str, Any] = {way: {} for way in sizes.ways}
    report.tell(
        f"\n(b) MiniLM on 20 Newsgroups, {sizes.articles:,} training articles, {sizes.tokens} tokens, {sizes.epochs} epochs: "
        f"test scores, mean over {sizes.seeds} seeds"
    )
    report.tell(
        "    (ECE without what chance adds), with 95 % intervals for the luck of the trainings and of the test articles"
    )
    _tell_row(report, "", list(_SCORES))
    for way in sizes.ways:
        means = {name: _mean(table, way, name) for name in _SCORES}
        _tell_row(report, way, [f"{each.value:.3f} ({each.low:.3f} to {each.high:.3f})" for each in means.values()])
        record[way] |= {
            name: {"seeds": list(table.values[way][name]), "mean": list(means[name][:3]), "differences": {}} for name in _SCORES
        }
    for base in (sizes.ways[0], "LoRA"):
        ways = [way for way in sizes.ways if way != base and (base == sizes.ways[0] or WAYS[way].adapters)]
        if base not in sizes.ways or not ways:
            continue
        report.tell(f"\n    less those of {base}, with 95 % intervals corrected for {table.comparisons} comparisons")
        for way in ways:
            gaps = {name: table.between(way, base, name) for name in _SCORES}
            _tell_row(report, way, [f"{gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})" for gap in gaps.values()])
            for name, gap in gaps.items():
                record[way][name]["differences"][base] = list(gap[:3])
    report.record |= {"sizes": asdict(sizes), "scores": record}


def _mean(table: Any, way: str, name: str) -> Estimate:
    """A score's mean over seeds, with its interval, which ends where the score does."""
    variance = float(table.draws[way][name].var(-1).max())
    found = mean_difference(table.values[way][name], variance, level=LEVEL, comparisons=1)
    return found._replace(low=max(found.low, 0.0), high=min(found.high, math.inf if name == "nll" else 1.0))


def _tell_row(report: Report, label: str, cells: Sequence[str]) -> None:
    report.tell((f"    {label:<20}" + "".join(f"{cell:<28}" for cell in cells)).rstrip())


def _tell_cost(report: Report, sizes: Sizes) -> None:
    runs = {way: step(way, sizes.tokens) for way in sizes.ways}
    timings = interleaved(runs, repeats=sizes.repeats)
    base = timings[sizes.ways[0]]
    memory = {way: _memory(way, sizes.tokens) for way in sizes.ways}
    report.tell(f"\n(c) a step of 32 articles of {sizes.tokens} tokens, R = 1, beside {sizes.ways[0]} (transformers.Trainer)")
    for way, timing in timings.items():
        share = memory[way] / memory[sizes.ways[0]]
        report.tell(
            f"    {way:<20} {timing.seconds:8.3f} s  {timing.over(base):6.2f}x   "
            f"peak memory {memory[way] / 2**20:8.0f} MiB  {share:6.2f}x"
        )
    record: Mapping[str, Any] = ratios(timings, base)
    report.record["step"] = {way: {**record[way], "peak bytes": memory[way]} for way in sizes.ways}


def _memory(way: str, tokens: int) -> int:
    """Bytes by which three steps of a fresh process lie above what it holds before there is a network."""
    threads = f"import torch; torch.set_num_threads({torch.get_num_threads()})"
    setup = f"{threads}; import benchmarks.fine_tuning_ways as ways; ways.warm()"
    return peak_memory(setup, f"run = ways.step({way!r}, {tokens})\nfor _ in range(3): run()")
