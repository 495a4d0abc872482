"""A comparison of other methods than the paper's four."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.methods.own import pair
from tests.recipes.compare.blobs import BLOBS, TINY, load, network, shown
from torch.optim.lr_scheduler import CosineAnnealingLR

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.ensemble import member_seed
from calibayes.recipes.compare import Comparison, MethodRun, Settings, compare, jobs
from calibayes.recipes.compare.jobs import TrainingRecords

OTHERS = replace(
    TINY,
    epochs=3,
    methods=("mixture", "ema", "fnn", "ensemble", "mc-dropout"),
    method_settings={"ensemble": {"members": 2}, "mixture": {"members": 2, "beta": 0.05}},
)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(BLOBS, OTHERS, workers=1)


def test_contenders_are_ordered_from_the_simplest_on(found: Comparison) -> None:
    names = ["EMA", "FNN", "MC dropout", "ensemble", "mixture"]
    assert list(map(str, found.entries)) == [name + scaled for name in names for scaled in ("", " + T")]


def test_an_ensemble_is_the_mean_of_networks_trained_one_by_one(found: Comparison) -> None:
    splits, probs = load(OTHERS.train, OTHERS.validation, OTHERS.test), []
    for index in range(2):
        torch.manual_seed(member_seed(1, index))
        point = cb.Point(network())
        cb.fit(
            point,
            splits.train,
            cb.Objective(lam=0.0, beta=0.0),
            optimizer=lambda groups: torch.optim.Adam(groups, lr=OTHERS.learning_rate),
            scheduler=lambda optimizer: CosineAnnealingLR(optimizer, 9),
            scheduler_interval="step",
            epochs=3,
            batch_size=32,
            seed=member_seed(1, index),
            progress=False,
        )
        probs.append(cb.predict(point, splits.test[0]).probs.numpy())
    entry = next(each for contender, each in found.entries.items() if str(contender) == "ensemble")
    np.testing.assert_allclose(entry.test_probs[1], np.mean(probs, 0), atol=1e-6)


def test_candidates_are_from_the_lists_where_a_method_has_the_weight_and_was_not_told() -> None:
    assert OTHERS.candidates() == [
        MethodRun("mixture", 0.0, 0.05, 0),
        MethodRun("ema", 0.0, 0.0, 0),
        MethodRun("fnn", 0.0, 0.0, 0),
        MethodRun("ensemble", 0.0, 0.0, 0),
        MethodRun("mc-dropout", 0.0, 0.0, 0),
    ]
    free = replace(OTHERS, methods=("mixture", "ensemble"), method_settings={"ensemble": {"lam": 3.0}})
    mixtures = [MethodRun("mixture", 0.0, beta, 0) for beta in TINY.betas]
    assert free.candidates() == [*mixtures, MethodRun("ensemble", 3.0, 0.0, 0)]
    with pair():
        own = replace(TINY, methods=("pair",)).candidates()
        assert own == [MethodRun("pair", lam, 0.0, 0) for lam in TINY.lams]


def test_efforts_count_members_and_samples() -> None:
    plain, double = (jobs.effort(BLOBS, OTHERS, method) for method in ("fnn", "ensemble"))
    assert (plain.members, double.members) == (1, 2)
    assert double.training == 2 * plain.training
    assert double.test == 2 * plain.test
    assert jobs.effort(BLOBS, OTHERS, "mixture").test == 4 * plain.test  # two of three samples from each of two members


def test_a_run_is_known_by_the_settings_of_its_method() -> None:
    run = MethodRun("ensemble", 0.0, 0.0, 0)

    def key(run: MethodRun, settings: Settings) -> str:
        return TrainingRecords.of(BLOBS, settings).training(run).key

    two, three = (key(run, replace(OTHERS, method_settings={"ensemble": {"members": members}})) for members in (2, 3))
    assert two != three
    plain = MethodRun("fnn", 0.0, 0.0, 0)
    assert key(plain, OTHERS) == key(plain, replace(TINY, epochs=3))
    assert key(plain, replace(OTHERS, method_settings={"fnn": {"weight_decay": 0.1}})) != key(plain, OTHERS)


@pytest.mark.slow
def test_a_comparison_of_others_is_shown_kept_and_resumed(tmp_path: Path) -> None:
    settings = replace(OTHERS, seeds=1, epochs=1, methods=("fnn", "ensemble"), method_settings={"ensemble": {"members": 2}})
    first = shown(tmp_path, settings)
    assert [each["name"] for each in first.numbers["contenders"]] == ["FNN", "FNN + T", "ensemble", "ensemble + T"]
    assert {path.name for path in (tmp_path / "predictions").iterdir()} >= {"fnn-seed0.npz", "ensemble-t-seed0.npz"}
    assert "calibayes evaluate" in first.out
    again = shown(tmp_path, replace(settings, methods=("ensemble",)))
    assert again.numbers["seconds"]["trainings_from_before"] == 1
    assert not (tmp_path / "predictions" / "fnn-seed0.npz").exists()


@pytest.mark.slow
def test_a_method_of_somebody_elses_is_known_to_worker_processes(tmp_path: Path) -> None:
    settings = replace(TINY, seeds=1, epochs=1, lams=(2.0,))
    with pair():
        found = compare(BLOBS, settings, methods=["pair"], workers=2)
    assert found.trainings.chosen == {"pair": MethodRun("pair", 2.0, 0.0, 0)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ("fnn", "ensembel")}, "Did you mean 'ensemble'?"),
        ({"methods": "fnn"}, "names of methods, each once, but got 'fnn'"),
        ({"methods": ("fnn", "fnn")}, "each once"),
        ({"method_settings": {"ensemble": {"members": 2}}}, "'ensemble', which is not among fnn, bnn"),
        ({"method_settings": {"fnn": {"members": 2}}}, "'fnn' has no setting 'members'"),
        ({"method_settings": {"fnn": {"lam": 2.0}}}, "With the term it is 'ca-fnn'"),
        ({"method_settings": {"fnn": {"learning_rate": 2.0}}}, "use `learning_rate` of the comparison's settings"),
    ],
)
def test_methods_that_cannot_be_compared(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Settings(**settings)  # type: ignore[arg-type]
