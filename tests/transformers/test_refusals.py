"""What cannot be done is said by name."""

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

import calibayes as cb
from calibayes.errors import DataError, InvalidArgumentError, NetworkOutputError
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
    "posterior": ({"posterior": "laplace"}, "but got 'laplace'"),
    "where": ({"posterior": "point", "where": "classifier.*"}, "`where` is 'classifier.*'"),
    "samples": ({"samples": 0}, "Expected `samples` to be a positive integer, but got 0"),
    "prediction_samples": ({"prediction_samples": 1.5}, "Expected `prediction_samples` to be a positive integer"),
    "rho_learning_rate": ({"rho_learning_rate": -1.0}, "Expected `rho_learning_rate` to be a positive finite number"),
    "compute_loss_func": ({"compute_loss_func": print}, "takes its loss from `objective`"),
    "model": ({"net": cb.Point(torch.nn.Linear(2, 2))}, "but got a Point. Pass it as `posterior`"),
    "given": ({"posterior": cb.Point(torch.nn.Linear(2, 2)), "where": "*"}, "leave them out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_settings_are_named(name: str, tmp_path: Path) -> None:
    settings, words = REFUSED[name]
    with pytest.raises(InvalidArgumentError) as caught:
        trainer(tmp_path, **settings)
    assert words in str(caught.value)


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
