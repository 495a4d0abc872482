"""Texts cross-fitted: every method learns them, and the file predicts what the members do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from calibayes import METHODS, predict
from calibayes.checked_fields import Fields
from calibayes.crossfit import CrossFit, NetworkLearner, stratified_folds, text_representation
from calibayes.crossfit.contenders import learner_for
from calibayes.errors import DataError
from calibayes.files import DataSettings, load
from calibayes.files.model import Model
from calibayes.files.network_description import plan_of
from calibayes.files.text_coding import TextCoding, fit_text
from calibayes.methods import Examples, method_named
from calibayes.networks import WordBag
from calibayes.networks.text_network import TextNetwork
from calibayes.posterior import Ensemble
from calibayes.tables import frame_block

TOPICS = {
    "sea": "ship sailed deep water fish harbour wave anchor storm sail",
    "sky": "bird flew cloud blue air wing storm wind feather sail",
    "land": "tree grew field brown earth root stone wind path water",
}
SETTINGS = DataSettings(target="topic", text=("body",), length=12)


def frame(count: int = 150, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    topics = np.array(list(TOPICS))[np.arange(count) % 3]
    bodies = [" ".join(rng.permutation(TOPICS[topic].split())[:4]) for topic in topics]
    return pd.DataFrame({"topic": topics, "body": bodies})


@pytest.fixture(scope="module")
def coding() -> TextCoding:
    return fit_text(frame_block(frame()), SETTINGS, once=True)


@pytest.fixture(scope="module")
def examples(coding: TextCoding) -> Examples:
    labels = torch.arange(150) % 3
    return Examples(coding.encode(frame_block(frame())), labels)


def nll(probs: np.ndarray, targets: Tensor) -> float:
    return float(-np.log(probs[np.arange(len(targets)), targets.numpy()]).mean())


def cross_fitted(method: str, examples: Examples, words: int, folds: int = 3) -> CrossFit:
    representation = text_representation(examples.inputs, words, 3)
    learner = learner_for(representation, method_named(method), {})
    assert learner is not None
    if isinstance(learner, NetworkLearner):
        learner = replace(learner, epochs=10, settings={**learner.settings, "learning_rate": 0.02})
    return CrossFit(learner, examples, 3, stratified_folds(examples.targets.numpy(), folds, seed=0)).run()


@pytest.mark.parametrize("method", ["logistic-regression", "ema"])
def test_texts_are_learnt_and_the_file_predicts_the_same_bits(
    method: str, examples: Examples, coding: TextCoding, tmp_path: Path
) -> None:
    found = cross_fitted(method, examples, 1 + len(coding.vocabulary))
    assert nll(found.predictions(), examples.targets) < 0.3 < np.log(3)
    ensemble = Ensemble(found.members)
    model = Model(
        posterior=ensemble,
        classes=("sea", "sky", "land"),
        target="topic",
        coding=coding,
        plans=tuple(plan_of(member.network()) for member in ensemble.members),
        temperature=1.0,
        samples=1,
        seed=0,
        about={},
    )
    model.save(tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    new = frame(40, seed=1)
    assert torch.equal(loaded.predict(new).probs, model.predict(new).probs)
    inputs = coding.encode(frame_block(new))
    assert torch.equal(loaded.predict(new).probs, predict(ensemble, inputs, dtype=torch.float64).probs)


def test_the_same_seed_gives_the_same_bits(examples: Examples, coding: TextCoding) -> None:
    one, two = (cross_fitted("ema", examples, 1 + len(coding.vocabulary), folds=2) for _ in range(2))
    assert np.array_equal(one.predictions(), two.predictions())


@pytest.mark.parametrize("method", [name for name in METHODS if method_named(name).plan is not None])
def test_every_method_trains_a_network_of_texts_that_a_file_can_describe(method: str, examples: Examples) -> None:
    words = int(examples.inputs.max()) + 1
    representation = text_representation(examples.inputs, words, 3)
    learner = learner_for(representation, method_named(method), {})
    assert isinstance(learner, NetworkLearner)
    short = replace(learner, epochs=3)
    member = short(examples.rows(slice(100)), examples.rows(slice(100, 150)), 3, 0)
    assert bool(predict(member, examples.inputs[:5]).probs.isfinite().all())
    for each in member.members:
        network = each.network()
        again = plan_of(network)()
        assert list(again.state_dict()) == list(network.state_dict())


def test_the_averaged_network_alone_has_dropout() -> None:
    representation = text_representation(torch.tensor([[1, 2], [0, 1]]), 3, 2)
    averaged = representation.network("ema")
    assert isinstance(averaged, TextNetwork)
    plain = representation.network("bnn")
    assert isinstance(plain, WordBag)
    assert torch.equal(plain.weights, averaged.weights.rarity)


def test_trees_do_not_learn_texts() -> None:
    representation = text_representation(torch.tensor([[1, 2], [0, 1]]), 3, 2)
    assert learner_for(representation, method_named("boosted-trees"), {}) is None


def test_pairs_of_words_are_words_of_their_own_and_survive_a_file() -> None:
    rows = frame_block({"body": ["not good at all", "good, not bad", "not good! bad"]})
    coding = fit_text(rows, DataSettings(text=("body",), length=4), once=True, bigrams=True)
    assert coding.vocabulary == ("good", "not", "bad", "not good")
    assert coding.single_words == 4
    # good=1, not=2, bad=3, "not good"=4; pairs across unknown words do not count
    assert coding.encode(rows).tolist() == [
        [0, 0, 2, 1, 0, 0, 0, 4],
        [0, 1, 2, 3, 0, 0, 0, 0],
        [0, 2, 1, 3, 0, 0, 0, 4],
    ]
    again = TextCoding.of(Fields(coding.to_dict(), "the coding"))
    assert again == coding


def test_the_number_of_pairs_is_bounded_and_a_file_without_them_is_as_before() -> None:
    rows = frame_block(frame())
    few = DataSettings(text=("body",), vocabulary=5)
    coding = fit_text(rows, few, once=True, bigrams=True)
    assert len(coding.vocabulary) == 10
    plain = fit_text(rows, few, once=True)
    assert "bigrams" not in plain.to_dict()
    assert TextCoding.of(Fields(plain.to_dict(), "the coding")) == plain
    assert plain.vocabulary == coding.vocabulary[:5]
    with pytest.raises(DataError, match="No word occurs twice"):
        fit_text(frame_block({"body": ["one two", "three"]}), few, once=True, bigrams=True)


def test_pairs_tell_what_words_cannot(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    count = 300
    labels, turned = rng.integers(0, 2, count), rng.integers(0, 2, count)
    # "not good but bad" and "not bad but good" have the same words
    bodies = ["not good but bad" if label else "not bad but good" for label in labels]
    rows = frame_block({"body": [f"{body} {'well' if turn else 'so'}" for body, turn in zip(bodies, turned, strict=True)]})
    losses = []
    for bigrams in (False, True):
        coding = fit_text(rows, DataSettings(text=("body",)), once=True, bigrams=bigrams)
        examples = Examples(coding.encode(rows), torch.from_numpy(labels))
        representation = text_representation(examples.inputs, 1 + len(coding.vocabulary), 2)
        learner = learner_for(representation, method_named("logistic-regression"), {})
        assert learner is not None
        found = CrossFit(learner, examples, 2, stratified_folds(labels, 3, seed=0)).run()
        losses.append(nll(found.predictions(), examples.targets))
    assert losses[0] > 0.65
    assert losses[1] < 0.05
