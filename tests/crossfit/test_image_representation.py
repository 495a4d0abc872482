"""Images cross-fitted: every method learns them, and the file predicts what the members do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression

from calibayes import NETWORK_METHODS, predict
from calibayes.crossfit import CrossFit, NetworkLearner, image_representation, stratified_folds
from calibayes.crossfit.contenders import learner_for
from calibayes.crossfit.image_representation import pixel_moments
from calibayes.errors import ModelFileError
from calibayes.files import load
from calibayes.files.image_coding import ImageCoding
from calibayes.files.model import Model
from calibayes.files.network_description import plan_of
from calibayes.methods import Examples, method_named
from calibayes.posterior import Ensemble

SIDE = 12
Name = Literal["small-cnn", "resnet20"]


def images(count: int = 60, channels: int = 1, seed: int = 0) -> Examples:
    """Bright left halves, and bright right halves."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    pixels = rng.integers(0, 120, (count, channels, SIDE, SIDE))
    for image, label in zip(pixels, labels, strict=True):
        image[:, :, label * SIDE // 2 : (label + 1) * SIDE // 2] += 60
    return Examples(torch.from_numpy(pixels.astype(np.uint8)), torch.from_numpy(labels))


def learner(method: str, examples: Examples, network: Name = "small-cnn", epochs: int = 8) -> NetworkLearner:
    found = learner_for(image_representation(examples.inputs, 2, network), method_named(method), {})
    assert isinstance(found, NetworkLearner)
    return replace(found, epochs=epochs)


def saved(tmp_path: Path, ensemble: Ensemble, channels: int) -> Model:
    model = Model(
        posterior=ensemble,
        classes=("left", "right"),
        target="label",
        coding=ImageCoding(channels, SIDE),
        plans=tuple(plan_of(member.network(), SIDE) for member in ensemble.members),
        temperature=1.0,
        samples=1,
        seed=0,
        about={},
    )
    model.save(tmp_path / "m.safetensors")
    return load(tmp_path / "m.safetensors")


def test_the_moments_are_those_of_all_pixels() -> None:
    pixels = images(channels=3).inputs
    mean, std = pixel_moments(pixels)
    values = pixels.numpy() / 255
    np.testing.assert_allclose(mean, values.mean((0, 2, 3)), rtol=1e-9)
    np.testing.assert_allclose(std, values.std((0, 2, 3)), rtol=1e-9)
    assert pixel_moments(torch.zeros(2, 1, 3, 3, dtype=torch.uint8)) == ([0.0], [1e-3])


def test_grey_images_are_learnt_and_the_file_predicts_the_same_bits(tmp_path: Path) -> None:
    examples = images()
    folds = stratified_folds(examples.targets.numpy(), 2, seed=0)
    found = CrossFit(learner("ema", examples, epochs=30), examples, 2, folds).run()
    assert (found.predictions().argmax(1) == examples.targets.numpy()).mean() > 0.9
    ensemble = Ensemble(found.members)
    loaded = saved(tmp_path, ensemble, 1)
    paths = []
    for place, image in enumerate(examples.inputs[:5, 0].numpy()):
        paths.append(str(tmp_path / f"{place}.png"))
        Image.fromarray(image).save(paths[-1])
    expected = predict(ensemble, examples.inputs[:5], dtype=torch.float64).probs
    assert torch.equal(loaded.predict({"file": paths}).probs, expected)


def test_logistic_regression_on_pixels_is_that_of_scikit_learn_and_survives_a_file(tmp_path: Path) -> None:
    examples = images(channels=3)
    representation = image_representation(examples.inputs, 2, "small-cnn")
    layer = representation.first_layer
    assert layer is not None
    found = learner_for(representation, method_named("logistic-regression"), {"penalties": (0.003,), "start": None})
    assert found is not None
    member = found(examples, examples, 2, 0)
    pixels = layer(examples.inputs).numpy()
    assert pixels.shape == (60, 3 * SIDE * SIDE)
    expected = LogisticRegression(C=0.003, max_iter=200).fit(pixels, examples.targets.numpy()).predict_proba(pixels)
    probs = predict(member, examples.inputs).probs
    np.testing.assert_allclose(probs.numpy(), expected, atol=1e-5)
    loaded = saved(tmp_path, Ensemble([member]), 3)
    assert torch.equal(predict(loaded.posterior, examples.inputs).probs, probs)


def test_many_pixels_are_left_to_networks() -> None:
    pixels = torch.zeros(1, dtype=torch.uint8).expand(3000, 3, 32, 32)
    assert image_representation(pixels, 2, "small-cnn").first_layer is None


@pytest.mark.parametrize("method", list(NETWORK_METHODS))
def test_every_method_trains_a_network_of_images_that_a_file_can_describe(method: str) -> None:
    examples = images(24)
    member = learner(method, examples, epochs=3)(examples.rows(slice(16)), examples.rows(slice(16, 24)), 2, 0)
    assert bool(predict(member, examples.inputs[:3]).probs.isfinite().all())
    for each in member.members:
        network = each.network()
        assert list(plan_of(network, SIDE)().state_dict()) == list(network.state_dict())


def test_colour_images_alone_are_augmented_and_have_the_larger_network_if_asked_for(tmp_path: Path) -> None:
    examples = images(24, channels=3)
    large = learner("ema", examples, "resnet20", epochs=1)
    assert large.augment
    assert not learner("ema", images(4)).augment
    member = large(examples, examples, 2, 0)
    loaded = saved(tmp_path, Ensemble([member]), 3)
    assert loaded.plans[0].name == "resnet20"
    assert torch.equal(predict(loaded.posterior, examples.inputs).probs, predict(member, examples.inputs).probs)


def test_a_network_that_no_file_describes_is_refused() -> None:
    with pytest.raises(ModelFileError, match="cannot describe a Linear"):
        plan_of(torch.nn.Linear(2, 2))
