"""Scores against people's answers: closed forms, simulation, and the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.real import needs

from calibayes.data.data_folder import data_folder
from calibayes.errors import DataError, MissingDataError
from reproduction.cifar10_training import cifar10_parts
from reproduction.shift import people
from reproduction.shift.people import PEOPLE_SCORES, people_of_test_images, scores_by_people

HERE = pytest.mark.skipif(not (data_folder() / "cifar-10h").is_dir(), reason="CIFAR-10H is not in the data folder")


def test_a_classifier_that_says_what_people_say_is_at_no_distance() -> None:
    counts = torch.tensor([[40.0, 10.0, 0.0], [0.0, 25.0, 25.0], [50.0, 0.0, 0.0]]).double()
    scores = scores_by_people(counts / 50, counts)
    assert scores["kl"] == pytest.approx(0.0, abs=1e-12)
    assert scores["gap"] == scores["overconfidence"] == pytest.approx(0.0, abs=1e-12)
    assert scores["smooth_ece"] < 1e-3
    assert scores["brier"] < 0  # chance alone would keep an honest classifier from these very shares


def test_the_kl_is_that_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.rand(50, 4, generator=generator).double().softmax(1)
    counts = torch.randint(1, 30, (50, 4), generator=generator).double()
    expected = torch.nn.functional.kl_div(probs.log(), counts / counts.sum(1, keepdim=True), reduction="batchmean")
    assert scores_by_people(probs, counts)["kl"] == pytest.approx(float(expected), rel=1e-5)


def test_the_brier_score_is_right_on_average_over_the_people_asked() -> None:
    generator = np.random.default_rng(0)
    truth = np.array([0.6, 0.3, 0.1])
    probs = torch.tensor([[0.5, 0.25, 0.25]]).double()
    counts = torch.from_numpy(generator.multinomial(10, truth, size=20_000)).double()
    corrected = people.brier_to_people(probs, counts)
    assert float(corrected.mean()) == pytest.approx(float(((probs.numpy() - truth) ** 2).sum()), abs=0.002)


def test_a_constant_gap_is_the_smooth_error() -> None:
    probs = torch.tensor([[0.9, 0.1]]).double().expand(400, 2)
    counts = torch.tensor([[35.0, 15.0]]).expand(400, 2)
    scores = scores_by_people(probs, counts)
    for name in ("gap", "overconfidence", "smooth_ece"):
        assert scores[name] == pytest.approx(0.2, abs=1e-3)
    assert scores["gap_interval"] == pytest.approx([0.2, 0.2])


def test_intervals_hold_the_value_and_shrink_with_images() -> None:
    generator = torch.Generator().manual_seed(0)

    def scores(images: int) -> dict[str, Any]:
        probs = (3 * torch.randn(images, 5, generator=generator)).double().softmax(1)
        counts = torch.from_numpy(np.random.default_rng(0).multinomial(50, probs.sqrt() / probs.sqrt().sum(1, keepdim=True)))
        return scores_by_people(probs, counts.double())

    few, many = scores(100), scores(1600)
    for name in PEOPLE_SCORES:
        if name != "smooth_ece":
            low, high = many[f"{name}_interval"]
            assert low < many[name] < high
            wide = few[f"{name}_interval"]
            assert 2.5 < (wide[1] - wide[0]) / (high - low) < 6.5


def test_a_missing_or_wrong_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    people.people_of_official_images.cache_clear()
    with pytest.raises(MissingDataError, match=r"CIFAR-10H is not here.*cifar10h-counts\.npy"):
        people_of_test_images()
    (tmp_path / "cifar-10h").mkdir()
    np.save(tmp_path / "cifar-10h" / "cifar10h-counts.npy", np.ones((5, 10)))
    with pytest.raises(DataError, match=r"counts \[10000, 10\], but got \[5, 10\]"):
        people_of_test_images()


@HERE
@needs("cifar10")
def test_people_are_in_the_order_of_the_test_images() -> None:
    people.people_of_official_images.cache_clear()
    counts, labels = people_of_test_images(), cifar10_parts(train=10).test[1]
    assert len(counts) == len(labels) == 8000
    assert float((counts.argmax(1) == labels).double().mean()) > 0.98
    assert torch.equal(people_of_test_images(50), counts[:50])
