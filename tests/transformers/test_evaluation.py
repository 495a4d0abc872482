"""Evaluation and prediction are those of the ensemble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.transformers.small import CLASSES, Sentences, arguments, bert, trainer

import calibayes as cb

pytestmark = pytest.mark.transformers

DATA = Sentences(13, seed=9)


def wide(folder: Path, **settings: Any) -> Any:
    """A Trainer whose samples disagree."""
    return trainer(folder, init_std=0.3, **settings)


def test_predictions_are_the_ensembles_probabilities(tmp_path: Path) -> None:
    found = wide(tmp_path)
    expected = cb.predict(found.posterior, DATA.inputs(), samples=3, seed=found.args.seed)
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
    torch.testing.assert_close(at_mean, bert().eval()(**DATA.inputs()).logits.softmax(-1).detach())


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
