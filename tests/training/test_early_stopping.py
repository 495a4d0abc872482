"""Early stopping on the refined NLL, and stopping from `on_epoch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.toy import data, net
from torch import Tensor

import calibayes as cb
from calibayes.posterior import Posterior
from calibayes.posthoc import refined_nll
from calibayes.recipes.choosing import ValidationScores, choose, validation_scores

VALIDATION = data(60, seed=9)


def fitted(posterior: Posterior | None = None, **settings: Any) -> tuple[Posterior, cb.History]:
    posterior = cb.Point(net()) if posterior is None else posterior
    return posterior, cb.fit(
        posterior, data(), cb.Objective(lam=0.0), **{"batch_size": 32, "validation": VALIDATION, **settings}
    )


def lowest_on_a_grid(probs: Tensor, targets: Tensor, weights: Tensor) -> float:
    """The refined NLL by trying temperatures."""
    values = []
    for temperature in torch.logspace(-1.5, 1.5, 3001, dtype=torch.float64):
        logs = (probs.double().log() / temperature).log_softmax(-1)[torch.arange(len(targets)), targets]
        values.append(float(-(weights * logs).sum() / weights.sum()))
    return min(values)


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 6.0])
def test_the_refined_nll_is_the_lowest_over_temperatures(sharpness: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 4, generator=generator)
    targets = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    weights = torch.rand(200, generator=generator, dtype=torch.float64)
    probs = (sharpness * logits).softmax(-1)
    assert refined_nll(probs, targets, weights=weights) == pytest.approx(lowest_on_a_grid(probs, targets, weights), abs=1e-6)
    assert refined_nll(probs, targets) <= cb.metrics.nll(probs, targets) + 1e-9


def test_where_no_temperature_is_settled_the_refined_nll_is_the_plain_one() -> None:
    probs = torch.tensor([[0.8, 0.2], [0.3, 0.7]])
    assert refined_nll(probs, torch.tensor([0, 1])) == pytest.approx(cb.metrics.nll(probs, torch.tensor([0, 1])))


def test_stopping_on_the_refined_nll_looks_past_overconfidence() -> None:
    settings: dict[str, Any] = {"epochs": 60, "optimizer": lambda p: torch.optim.Adam(p, lr=0.05)}
    seen: list[dict[str, float]] = []

    def look(posterior: Posterior, _: int) -> None:
        probs = cb.predict(posterior, VALIDATION[0], dtype=torch.float64).probs
        seen.append({"nll": cb.metrics.nll(probs, VALIDATION[1]), "refined": refined_nll(probs, VALIDATION[1])})

    posterior, history = fitted(**settings, early_stopping=cb.EarlyStopping(60, "refined-nll"), on_epoch=look)
    assert [row["val_refined_nll"] for row in history.epochs] == pytest.approx([each["refined"] for each in seen])
    best = min(range(60), key=lambda k: seen[k]["refined"])
    assert history.best_epoch == best + 1
    assert best != min(range(60), key=lambda k: seen[k]["nll"])
    probs = cb.predict(posterior, VALIDATION[0], dtype=torch.float64).probs
    assert refined_nll(probs, VALIDATION[1]) == pytest.approx(seen[best]["refined"])
    _, plain = fitted(**settings, early_stopping=60)
    assert "val_refined_nll" not in plain.epochs[0]


def test_models_are_chosen_by_the_refined_nll_where_asked() -> None:
    scores = {1.0: ValidationScores(0.3, 0.1, 0.9, 0.1, 0.25), 2.0: ValidationScores(0.4, 0.2, 0.9, 0.1, 0.2)}
    pairs = [(1.0, 0.0), (2.0, 0.0)]
    assert choose(pairs, lambda lam, _: lam, scores.__getitem__).model == 1.0
    found = choose(pairs, lambda lam, _: lam, scores.__getitem__, monitor="refined-nll")
    assert (found.model, found.compared) == (2.0, (0.25, 0.2))
    with pytest.raises(cb.errors.InvalidArgumentError, match=r"`monitor` .* but got 'ece'"):
        choose(pairs, lambda lam, _: lam, scores.__getitem__, monitor="ece")  # type: ignore[arg-type]
    with pytest.raises(cb.errors.InvalidArgumentError, match="needs scores that have it"):
        choose(pairs, lambda lam, _: lam, lambda _: ValidationScores(0.3, 0.1, 0.9, 0.1), monitor="refined-nll")
    posterior = cb.Point(net())
    probs = cb.predict(posterior, VALIDATION[0], dtype=torch.float64).probs
    measured = validation_scores(posterior, VALIDATION, monitor="refined-nll")
    assert measured.refined_nll == pytest.approx(refined_nll(probs, VALIDATION[1]))
    assert measured._replace(refined_nll=None) == validation_scores(posterior, VALIDATION)


@pytest.mark.parametrize("no", [False, np.False_])
def test_a_callback_that_returns_false_ends_training(no: Any) -> None:
    posterior, history = fitted(epochs=9, on_epoch=lambda _, epoch: epoch < 3 or no)
    shorter, expected = fitted(epochs=3)
    assert (history.stopped, len(history.epochs)) == ("callback", 3)
    assert history.epochs == expected.epochs
    assert all(torch.equal(value, shorter.state_dict()[name]) for name, value in posterior.state_dict().items())


def test_the_best_weights_are_restored_also_then() -> None:
    wrong = (VALIDATION[0], (VALIDATION[1] + 1) % 3)
    seen: list[Tensor] = []

    def look(posterior: Posterior, epoch: int) -> bool:
        seen.append(torch.cat([each.detach().clone() for each in posterior.parameters()]))
        return epoch < 3

    posterior, history = fitted(epochs=9, validation=wrong, early_stopping=5, on_epoch=look)
    assert (history.stopped, history.best_epoch) == ("callback", 1)
    assert torch.equal(torch.cat([each.detach() for each in posterior.parameters()]), seen[0])


def test_a_run_that_a_callback_has_stopped_stays_stopped(tmp_path: Path) -> None:
    first, history = fitted(epochs=9, checkpoint=tmp_path, on_epoch=lambda _, epoch: epoch < 2)
    again, same = fitted(epochs=9, checkpoint=tmp_path, on_epoch=lambda _, epoch: None)
    assert (same.stopped, len(same.epochs)) == ("callback", 2)
    assert history == same
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in first.state_dict().items())


def test_numbers_of_all_kinds_are_kept() -> None:
    given = {"a": 1, "b": np.float32(0.5), "c": torch.tensor([2.0]), "d": True, "e": np.array(3)}
    _, history = fitted(epochs=1, on_epoch=lambda *_: given)
    assert {name: history.epochs[0][name] for name in given} == {"a": 1.0, "b": 0.5, "c": 2.0, "d": 1.0, "e": 3.0}
