"""The choice among contenders: the best by evidence, the simpler of equals, within the budget."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

import calibayes as cb
from calibayes.crossfit.chosen_classifier import choose_classifier
from calibayes.crossfit.cross_fit import CrossFit
from calibayes.crossfit.folds import stratified_folds
from calibayes.crossfit.network_learner import NetworkLearner
from calibayes.crossfit.selection import row_losses, select
from calibayes.methods import Examples


class Fixed(nn.Module):
    """Gives the true class of inputs ``[n, 1]``, which hold it, a logit of its own."""

    def __init__(self, logit: float) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(logit))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.one_hot(x[:, 0].long(), 3) * self.logit


@dataclass(frozen=True)
class Constant:
    """A learner without training."""

    title: str
    logit: float
    seconds: float = 0.0
    error: type[BaseException] | None = None
    method: str = "constant"

    def __call__(self, train: Examples, held_out: Examples, classes: int, seed: int) -> cb.Posterior:
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return cb.Point(Fixed(self.logit)).eval()


def contenders(*learners: Constant) -> list[CrossFit]:
    targets = torch.arange(150) % 3
    folds = stratified_folds(targets.numpy(), 3, seed=0)
    # Every tenth row says the wrong class, so that losses differ from row to row.
    shown = torch.where(torch.arange(150) % 10 == 0, (targets + 1) % 3, targets)
    return [CrossFit(each, Examples(shown.float().unsqueeze(1), targets), 3, folds) for each in learners]


def test_the_best_is_chosen() -> None:
    found = select(contenders(Constant("weak", 0.5), Constant("strong", 3.0), Constant("wrong", -2.0)), budget=60)
    assert found.best.title == "strong"
    assert [each.result for each in found.attempts] == ["complete", "complete", "behind"]
    assert "far behind strong" in found.attempts[2].reason
    assert len(found.attempts[2].parts[0].members) == 1


def test_of_equals_the_simpler_is_chosen() -> None:
    found = select(contenders(Constant("simple", 2.000), Constant("complex", 2.001)), budget=60)
    assert found.attempts[1].nll < found.attempts[0].nll
    assert found.best.title == "simple"


def test_the_budget_is_kept_but_the_first_is_always_finished() -> None:
    start = time.perf_counter()
    ways, said = contenders(Constant("first", 1.0, 0.1), Constant("slow", 3.0, 1.0), Constant("never", 3.0)), list[str]()
    found = select(ways, budget=0.5, say=said.append)
    assert said[-1] == "The time is up. Not tried: never."
    assert [(each.title, each.result) for each in found.attempts] == [("first", "complete"), ("slow", "too slow")]
    assert found.best.title == "first"
    assert time.perf_counter() - start < 2.5


def test_ctrl_c_keeps_the_best_so_far() -> None:
    found = select(contenders(Constant("first", 1.0), Constant("stopped", 3.0, error=KeyboardInterrupt)), budget=60)
    assert found.interrupted
    assert found.best.title == "first"
    with pytest.raises(KeyboardInterrupt):
        select(contenders(Constant("stopped", 3.0, error=KeyboardInterrupt)), budget=60)


def test_a_blend_is_the_mean_of_its_parts_and_can_win() -> None:
    ways = contenders(Constant("one", 1.0), Constant("other", 3.5))
    found = select(ways, budget=60, blends=[("both", (0, 1))])
    one, other, both = found.attempts
    assert np.allclose(both.predictions(), (one.predictions() + other.predictions()) / 2)
    assert both.nll == pytest.approx(row_losses(both.predictions(), ways[0].examples.targets.numpy()).mean())
    assert len(both.parts) == 2


def test_one_that_fails_is_a_line_and_the_others_go_on() -> None:
    said: list[str] = []
    ways = contenders(Constant("broken", 1.0, error=FloatingPointError), Constant("sound", 2.0))
    found = select(ways, budget=60, blends=[("both", (0, 1))], say=said.append)
    assert [(each.title, each.result) for each in found.attempts] == [("broken", "failed"), ("sound", "complete")]
    assert found.best.title == "sound"
    assert "Broken: failed: FloatingPointError (0 s)." in said
    chosen = choose_classifier(contenders(Constant("broken", 1.0, error=ValueError), Constant("sound", 2.0)), budget=60)
    assert not np.isnan(chosen.held_out).any()
    with pytest.raises(FloatingPointError):
        select(contenders(Constant("broken", 1.0, error=FloatingPointError)), budget=60)


class Guesses(nn.Module):
    """Is 80 % sure of a class of its own for each input ``[n, 1]``, which numbers the row."""

    def __init__(self, classes: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(nn.functional.one_hot(classes, 2) * float(np.log(4)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits[x[:, 0].long()]


@dataclass(frozen=True, eq=False)
class Guessing:
    """A learner whose guesses are right 80 % of the time, by chance."""

    guesses: torch.Tensor
    title: str = "guessing"
    method: str = "guessing"

    def __call__(self, train: Examples, held_out: Examples, classes: int, seed: int) -> cb.Posterior:
        return cb.Point(Guesses(self.guesses)).eval()


def test_the_reported_score_of_the_best_of_equals_is_not_too_good() -> None:
    generator = torch.Generator().manual_seed(0)
    targets, repeats = torch.arange(100) % 2, 30
    folds = stratified_folds(targets.numpy(), 4, seed=0)
    entropy = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))  # what every one of them is worth
    best, reported = [], []
    for _ in range(repeats):
        wrong = torch.rand(8, 100, generator=generator) < 0.2
        ways = [Guessing(torch.where(each, 1 - targets, targets)) for each in wrong]
        examples = Examples(torch.arange(100.0).unsqueeze(1), targets)
        found = choose_classifier([CrossFit(each, examples, 2, folds) for each in ways], budget=60)
        best.append(min(each.nll for each in found.selection.attempts))
        reported.append(row_losses(found.held_out, targets.numpy()[found.rows]).mean())
    assert np.mean(best) < entropy - 0.05
    assert np.mean(reported) > entropy - 2 * np.std(reported) / np.sqrt(repeats)


def test_every_row_is_predicted_by_members_that_have_not_seen_it() -> None:
    x, y = torch.randn(90, 4, generator=torch.Generator().manual_seed(0)), torch.arange(90) % 3
    learner = NetworkLearner("fnn", lambda: nn.Linear(4, 3), epochs=3)
    folds = [fold for seed in (0, 1) for fold in stratified_folds(y.numpy(), 3, seed=seed)]
    found = CrossFit(learner, Examples(x, y), 3, folds).run()
    expected = torch.zeros(90, 3, dtype=torch.float64)
    for fold, member in zip(folds, found.members, strict=True):
        rows = torch.from_numpy(fold.held_out)
        expected[rows] += cb.predict(member, x[rows], samples="mean", dtype=torch.float64).probs / 2
    assert np.allclose(found.predictions(), expected.numpy())
    assert len(found.ensemble().members) == 6
