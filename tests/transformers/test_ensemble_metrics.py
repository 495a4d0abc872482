"""Evaluation and prediction are those of the ensemble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.transformers.small import CLASSES, Sentences, arguments, bert, trainer
from transformers import BertForSequenceClassification

import calibayes as cb
from calibayes.errors import InvalidArgumentError

pytestmark = pytest.mark.transformers

DATA = Sentences(13, seed=9)


def wide(folder: Path, **settings: Any) -> Any:
    """A Trainer whose samples disagree."""
    return trainer(folder, init_std=0.3, **settings)


def test_predictions_are_the_ensembles_probabilities(tmp_path: Path) -> None:
    found = wide(tmp_path)
    expected = cb.predict(found.posterior, DATA.inputs(), samples=3, seed=found.args.seed, dtype=torch.float64)
    predicted = found.predict(DATA)
    assert predicted.predictions.shape == (13, CLASSES)
    torch.testing.assert_close(torch.from_numpy(predicted.predictions), expected.probs)
    assert predicted.label_ids.tolist() == DATA.labels.tolist()
    predictive = found.predictive(DATA)
    torch.testing.assert_close(predictive.probs, expected.probs)
    torch.testing.assert_close(predictive.epistemic, expected.epistemic)
    assert float(predictive.epistemic.min()) > 0
    kept = found.predictive(DATA, samples=7, keep_samples=True).samples
    assert kept is not None
    assert kept.shape == (7, 13, CLASSES)
    at_mean = found.predictive(DATA, samples="mean").probs
    torch.testing.assert_close(at_mean, bert().eval()(**DATA.inputs()).logits.softmax(-1, torch.float64).detach())
    sure = wide(tmp_path, prediction_samples="mean")
    torch.testing.assert_close(torch.from_numpy(sure.predict(DATA).predictions), at_mean)
    with pytest.raises(InvalidArgumentError, match=r"Expected `samples` to be a positive integer or 'mean' .*, but got 0"):
        found.predictive(DATA, samples=0)


def test_scores_are_those_of_the_library(tmp_path: Path) -> None:
    found = wide(tmp_path, eval_dataset=DATA)
    scores = cb.evaluate(found.predictive(DATA).probs, DATA.labels, intervals=False)
    measured = found.evaluate()
    for name in ("accuracy", "nll", "brier", "ece"):
        assert measured[f"eval_{name}"] == pytest.approx(getattr(scores, name), rel=1e-5), name
    assert found.predict(DATA).metrics["test_ece"] == measured["eval_ece"]
    even = Sentences(10, seed=9)  # whole batches, since the Trainer's mean of losses counts the last as a whole one
    loss = found.evaluate(even)["eval_loss"]
    assert loss == pytest.approx(cb.metrics.nll(found.predictive(even).probs, even.labels), rel=1e-5)


def test_metrics_of_ones_own_see_probabilities(tmp_path: Path) -> None:
    seen: list[Any] = []

    def own(prediction: Any) -> dict[str, float]:
        seen.append(prediction.predictions)
        return {"sum": float(prediction.predictions.sum())}

    found = wide(tmp_path, eval_dataset=DATA, compute_metrics=own)
    assert found.evaluate()["eval_sum"] == pytest.approx(13)
    assert seen[0].shape == (13, CLASSES)


def test_a_data_set_without_labels_is_predicted(tmp_path: Path) -> None:
    class Unlabelled(Sentences):
        def __getitem__(self, index: int) -> dict[str, Any]:
            return {key: value for key, value in super().__getitem__(index).items() if key != "labels"}

    found = wide(tmp_path)
    predicted = found.predict(Unlabelled(13, seed=9))
    assert predicted.label_ids is None
    torch.testing.assert_close(torch.from_numpy(predicted.predictions), found.predictive(DATA).probs)


def test_the_best_epoch_is_kept(tmp_path: Path) -> None:
    args = arguments(
        tmp_path,
        max_steps=6,
        learning_rate=0.05,
        eval_strategy="steps",
        save_strategy="steps",
        eval_steps=1,
        save_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model="nll",
        greater_is_better=False,
    )
    found = trainer(tmp_path, args=args, eval_dataset=DATA)
    found.train()
    measured = [entry["eval_nll"] for entry in found.state.log_history if "eval_nll" in entry]
    assert min(measured) < measured[-1]
    assert found.evaluate()["eval_nll"] == min(measured)


def test_the_nll_of_a_network_that_is_too_sure_is_finite(tmp_path: Path) -> None:
    net = bert()
    with torch.no_grad():
        net.classifier.weight.zero_()
        net.classifier.bias.copy_(torch.tensor([300.0, 0.0, 0.0]))
    expected = 300.0 * float((DATA.labels > 0).float().mean())
    for half in (False, True):
        found = trainer(tmp_path, net, posterior="point", args=arguments(tmp_path, bf16=half, per_device_eval_batch_size=13))
        measured = found.evaluate(DATA)
        assert measured["eval_nll"] == pytest.approx(expected, rel=1e-2)
        assert measured["eval_loss"] == pytest.approx(expected, rel=1e-2)


def test_labels_of_another_name_are_kept_from_the_network(tmp_path: Path) -> None:
    class Renamed(Sentences):
        def __getitem__(self, index: int) -> dict[str, Any]:
            row = super().__getitem__(index)
            return {"input_ids": row["input_ids"], "attention_mask": row["attention_mask"], "target": row["labels"]}

    class Strict(BertForSequenceClassification):  # type: ignore[misc]
        def forward(self, input_ids: Any = None, attention_mask: Any = None) -> Any:
            return super().forward(input_ids=input_ids, attention_mask=attention_mask)

    net = bert()
    net.__class__ = Strict
    found = wide(tmp_path, net=net, args=arguments(tmp_path, label_names=["target"]))
    torch.testing.assert_close(found.predictive(Renamed(13, seed=9)).probs, found.predictive(DATA).probs)


def test_batches_that_are_kept_apart_are_measured_together(tmp_path: Path) -> None:
    apart = wide(tmp_path, args=arguments(tmp_path, eval_do_concat_batches=False)).evaluate(DATA)
    together = wide(tmp_path).evaluate(DATA)
    for name in ("accuracy", "nll", "brier", "ece"):
        assert apart[f"eval_{name}"] == together[f"eval_{name}"]
