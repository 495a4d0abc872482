"""A posterior over a last part: what comes before it runs once per input, and the result is the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb


class Net(nn.Module):
    def __init__(self, after: bool = False) -> None:
        super().__init__()
        self.body, self.head, self.after = nn.Linear(4, 8), nn.Linear(8, 3), after
        self.runs: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.runs.append(len(x))
        logits: Tensor = self.head(self.body(x).tanh())
        return 2 * logits if self.after else logits


class Twice(Net):
    """Uses its head twice, the second time for the output."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x).tanh()
        self.runs.append(len(x))
        logits: Tensor = self.head(hidden + self.head(hidden).sum(-1, keepdim=True))
        return logits


class Tied(nn.Module):
    """Its head's weight is that of its first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.runs = nn.Linear(4, 4), nn.Linear(4, 4), list[int]()
        self.head.weight = self.body.weight

    def forward(self, x: Tensor) -> Tensor:
        self.runs.append(len(x))
        logits: Tensor = self.head(self.body(x).tanh())
        return logits


class Changing(nn.Module):
    """A head that changes its input in place."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 5), nn.Linear(5, 3))
        self.runs: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.runs.append(len(x))
        logits: Tensor = self.head(self.body(x))
        return logits


def runs(posterior: cb.NetworkPosterior) -> list[int]:
    result: Any = posterior.structure().runs
    return result  # type: ignore[no-any-return]


def one_by_one(posterior: cb.MeanField, x: Tensor, samples: int) -> Tensor:
    """By drawing all weights and running the whole network for each."""
    from calibayes.randomness import generator_for

    with torch.no_grad():
        draws = [posterior.draw(generator_for(torch.device("cpu"), 0, "predict", s)) for s in range(samples)]
        return torch.stack([posterior.call(vectors, x).softmax(-1) for vectors in draws]).mean(0)


def test_the_backbone_runs_once_per_input_and_the_result_is_the_same() -> None:
    posterior, x = cb.MeanField(Net(), init_std=0.3, where="head.*").eval(), torch.randn(10, 4)
    expected = one_by_one(posterior, x, 20)
    runs(posterior).clear()
    result = cb.predict(posterior, x, samples=20, batch_size=4)
    assert runs(posterior) == [4, 4, 2]
    torch.testing.assert_close(result.probs, expected)


@pytest.mark.parametrize("net", [lambda: Net(after=True), Twice, Tied, Changing])
def test_where_that_does_not_hold_the_whole_network_runs(net: Any) -> None:
    posterior, x = cb.MeanField(net(), init_std=0.3, where="head.*").eval(), torch.randn(6, 4)
    expected = one_by_one(posterior, x, 5)
    runs(posterior).clear()
    result = cb.predict(posterior, x, samples=5)
    assert len(runs(posterior)) == 5
    torch.testing.assert_close(result.probs, expected)


def test_the_audit_says_what_is_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    cb.MeanField(Net(), where="head.*").audit()
    assert "All Bayesian weights lie in 'head'" in capsys.readouterr().out
    cb.MeanField(Net()).audit()
    assert "once per input" not in capsys.readouterr().out


def frozen_backbone(dropout: float = 0.0) -> cb.MeanField:
    net = Net()
    net.body.requires_grad_(False)
    net.body_dropout = nn.Dropout(dropout)
    return cb.MeanField(net, init_std=0.3)


def trained(posterior: cb.MeanField, **others: Any) -> Tensor:
    torch.manual_seed(1)
    x = torch.randn(40, 4)
    cb.fit(posterior, (x, x[:, :3].argmax(-1)), cb.Objective(), epochs=2, batch_size=20, samples=5, sample_chunk=1, **others)
    return posterior.mu.detach()


def test_a_step_with_several_samples_runs_a_frozen_backbone_once() -> None:
    torch.manual_seed(0)
    shared = frozen_backbone()
    result = trained(shared)
    assert runs(shared) == [20] * 4  # a run a step: the head alone runs for each of the five samples
    torch.manual_seed(0)
    apart = frozen_backbone()
    apart.head = None
    torch.testing.assert_close(result, trained(apart))
    assert runs(apart) == [20] * 20


def test_a_frozen_backbone_with_dropout_runs_for_every_sample() -> None:
    posterior = frozen_backbone(dropout=0.5)
    trained(posterior)
    assert len(runs(posterior)) == 20


def test_hooks_of_the_head_act_once() -> None:
    net = Net()
    net.head.register_forward_pre_hook(lambda module, args: (3 * args[0],))
    posterior, x = cb.MeanField(net, init_std=1e-6, where="head.*").eval(), torch.randn(6, 4)
    samples = cb.predict(posterior, x, samples=3, keep_samples=True).samples
    assert samples is not None
    torch.testing.assert_close(samples[1], samples[0], rtol=1e-3, atol=1e-4)


def test_a_frozen_backbone_that_draws_by_itself_runs_for_every_sample() -> None:
    class Drawing(Net):
        def forward(self, x: Tensor) -> Tensor:
            self.runs.append(len(x))
            logits: Tensor = self.head(nn.functional.dropout(self.body(x).tanh(), 0.5, self.training))
            return logits

    def built() -> cb.MeanField:
        torch.manual_seed(0)
        net = Drawing()
        net.body.requires_grad_(False)
        return cb.MeanField(net, init_std=0.3)

    one, other = built(), built()
    result = trained(one)
    torch.manual_seed(99)
    torch.rand(3)
    assert torch.equal(trained(other), result)
