"""Arguments that the Trainer rejects, by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.transformers.small import Sentences, arguments, bert, trainer
from torch.utils.data import IterableDataset
from transformers import BertForTokenClassification

import calibayes as cb
from calibayes.errors import (
    DataError,
    InvalidArgumentError,
    NetworkOutputError,
    NonFiniteLossError,
    UnsupportedNetworkError,
)
from calibayes.transformers import CalibayesTrainer

pytestmark = pytest.mark.transformers


@pytest.mark.parametrize(
    ("name", "value"), [("label_smoothing_factor", 0.1), ("gradient_checkpointing", True), ("neftune_noise_alpha", 5.0)]
)
def test_arguments_that_would_have_no_effect_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=f"cannot train with {name}={value}"):
        trainer(tmp_path, args=arguments(tmp_path, **{name: value}))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "objective": ({"objective": 0.5}, "Expected `objective` to be an Objective, but got float"),
    "outside": (
        {"objective": cb.Objective(terms=(cb.ConfidenceMinimization(),))},
        "'confidence' is taken on out-of-domain inputs, which CalibayesTrainer has none of. Train with `calibayes.fit`",
    ),
    "logged": (
        {"objective": cb.Objective(terms=(cb.Calibration(name="loss"),))},
        "CalibayesTrainer itself logs 'loss': give the loss or term another `name`",
    ),
    "posterior": ({"posterior": "laplacian"}, "but got 'laplacian'. Did you mean 'laplace'?"),
    "where": ({"posterior": "point", "where": "classifier.*"}, "`where` is 'classifier.*'"),
    "samples": ({"samples": 0}, "Expected `samples` to be a positive integer, but got 0"),
    "prediction_samples": ({"prediction_samples": 1.5}, "Expected `prediction_samples` to be a positive integer"),
    "rho_learning_rate": ({"rho_learning_rate": -1.0}, "Expected `rho_learning_rate` to be a positive finite number"),
    "compute_loss_func": ({"compute_loss_func": print}, "takes its loss from `objective`"),
    "model": ({"net": cb.Point(torch.nn.Linear(2, 2))}, "but got a Point. Pass it as `posterior`"),
    "given": (
        {"posterior": cb.MeanField(torch.nn.Linear(2, 2)), "where": "*"},
        "has its settings, but `where` is '*'. Leave",
    ),
    "given prior": ({"posterior": cb.MeanField(torch.nn.Linear(2, 2)), "prior_std": 9.0}, "but `prior_std` is 9.0. Leave it"),
    "given mean": (
        {"posterior": cb.MeanField(torch.nn.Linear(2, 2)), "prior_mean": None},
        "but `prior_mean` is None. Leave",
    ),
    "given network": ({"posterior": cb.Point(torch.nn.Linear(2, 2)), "model": bert()}, "leave `model` and `model_init` out"),
    "given point": ({"posterior": cb.Point(torch.nn.Linear(2, 2)), "rho_learning_rate": 0.1}, "`rho_learning_rate` is 0.1"),
    "prior of a point": ({"posterior": "point", "prior_std": 0.5}, "No weight of a point is Bayesian, but `prior_std` is 0.5"),
    "width of a point": ({"posterior": "point", "init_std": 0.5}, "`init_std` is 0.5. Use posterior='mean-field', or leave it"),
    "rate of a point": ({"posterior": "point", "rho_learning_rate": 0.1}, "but `rho_learning_rate` is 0.1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_settings_are_named(name: str, tmp_path: Path) -> None:
    settings, words = REFUSED[name]
    with pytest.raises(InvalidArgumentError) as caught:
        trainer(tmp_path, **settings)
    assert words in str(caught.value)


@pytest.mark.parametrize("posterior", ["point", "mean-field"])
def test_weights_in_half_precision_are_not_trained(posterior: str, tmp_path: Path) -> None:
    found = trainer(tmp_path, bert().bfloat16(), posterior=posterior)
    with pytest.raises(InvalidArgumentError, match=r"weight' is torch.bfloat16: steps .* rounded away.*`model.float\(\)`"):
        found.train()
    found.predict(Sentences(4))
    with pytest.raises(InvalidArgumentError, match=r"is torch.bfloat16"):
        trainer(tmp_path, model_init=lambda: bert().bfloat16()).train()


def test_an_optimiser_that_is_given_has_its_learning_rates(tmp_path: Path) -> None:
    posterior = cb.MeanField(bert())
    optimizer = torch.optim.Adam(posterior.parameter_groups(), lr=1e-3)
    with pytest.raises(InvalidArgumentError, match=r"An optimiser that is given .* `rho_learning_rate` is 0\.05"):
        trainer(tmp_path, posterior=posterior, optimizers=(optimizer, None), rho_learning_rate=0.05)


def test_a_loss_of_ones_own_is_refused_rather_than_ignored(tmp_path: Path) -> None:
    class Own(CalibayesTrainer):
        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError

    with pytest.raises(InvalidArgumentError, match=r"Own has a `compute_loss` that is never called.*`objective.term"):
        Own(bert(), arguments(tmp_path), objective=cb.Objective())
    found = trainer(tmp_path)
    with pytest.raises(InvalidArgumentError, match="The loss is that of `objective`"):
        found.compute_loss(found.model, {**found.train_dataset.inputs(), "labels": found.train_dataset.labels})


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_network_that_recomputes_activations_is_refused(reentrant: bool, tmp_path: Path) -> None:
    net = bert()
    net.gradient_checkpointing_enable({"use_reentrant": reentrant})
    with pytest.raises(UnsupportedNetworkError, match=r"gradient_checkpointing=True.*`net.gradient_checkpointing_disable\(\)`"):
        trainer(tmp_path, net)
    net.gradient_checkpointing_disable()
    trainer(tmp_path, net)


@pytest.mark.parametrize("shape", ["column", "one-hot"])
def test_labels_of_another_shape_are_named(shape: str, tmp_path: Path) -> None:
    class Shaped(Sentences):
        def __getitem__(self, index: int) -> dict[str, Any]:
            label = self.labels[index : index + 1]
            row = super().__getitem__(index)
            return {**row, "labels": label if shape == "column" else torch.nn.functional.one_hot(label[0], 3)}

    with pytest.raises(DataError, match=r"`train_dataset` must have one class index per example.* have shape \[4, [13]\]"):
        trainer(tmp_path, train_dataset=Shaped(8)).train()


def test_a_loss_that_is_not_finite_tells_how_gradients_are_clipped_here(tmp_path: Path) -> None:
    net = bert()
    with torch.no_grad():
        net.classifier.bias[0] = torch.nan
    with pytest.raises(NonFiniteLossError, match="a smaller `max_grad_norm`"):
        trainer(tmp_path, net, posterior="point").train()


def test_a_classifier_of_tokens_is_named(tmp_path: Path) -> None:
    net = BertForTokenClassification(bert().config)
    with pytest.raises(NetworkOutputError, match=r"returned \[4, 6, 3\]\. Networks that classify every token"):
        trainer(tmp_path, net).train()


def test_training_data_must_have_labels(tmp_path: Path) -> None:
    class Unlabelled(Sentences):
        def __getitem__(self, index: int) -> dict[str, Any]:
            return {"input_ids": self.words[index]}

    with pytest.raises(DataError, match=r"must have 'labels', but it has \['input_ids'\]"):
        trainer(tmp_path, train_dataset=Unlabelled(8)).train()


def test_data_without_a_length_needs_a_size_for_the_kl(tmp_path: Path) -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter([{key: value for key, value in row.items() if key != "text"} for row in Sentences(40)])  # type: ignore[attr-defined]

    with pytest.raises(DataError, match="Pass `dataset_size`"):
        trainer(tmp_path, train_dataset=Stream()).train()
    found = trainer(tmp_path, train_dataset=Stream(), dataset_size=40)
    found.train()
    entry = found.state.log_history[0]
    total = entry["cross_entropy"] + 5.0 / 4 * entry["calibration"] + 0.1 / 40 * entry["kl"]
    assert entry["loss"] == pytest.approx(total, rel=1e-5)
    trainer(tmp_path, train_dataset=Stream(), posterior="point").train()


def test_a_regression_is_no_classifier(tmp_path: Path) -> None:
    net = bert()
    net.classifier = torch.nn.Linear(16, 1)
    with pytest.raises(NetworkOutputError, match="needs two outputs"):
        trainer(tmp_path, net).train()


def test_without_transformers_the_extra_is_named() -> None:
    code = "import sys; sys.modules['transformers'] = None; import calibayes.transformers"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: calibayes.transformers needs a package that is not installed" in done.stderr
    assert "pip install 'calibayes[transformers]'" in done.stderr


def test_a_trainer_needs_a_network() -> None:
    with pytest.raises(RuntimeError, match="requires either a `model` or `model_init`"):
        CalibayesTrainer(objective=cb.Objective())
