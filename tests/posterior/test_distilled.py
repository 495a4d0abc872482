"""A network that states how much of its entropy is epistemic: from its logits, within bounds, in every place that predicts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import calibayes as cb
from calibayes.posterior.abstract_posterior import Samples
from calibayes.randomness import seeded


def network(outputs: int = 3) -> nn.Module:
    with seeded(1):
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, outputs))


def inputs(count: int = 30) -> Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(2))


def shifted(net: nn.Module, by: float) -> nn.Module:
    """The same probabilities, with a number added to all logits."""
    with torch.no_grad():
        net.get_parameter("2.bias").add_(by)
    return net


def test_the_share_is_that_of_a_dirichlets_variance() -> None:
    posterior, x = cb.Distilled(network()), inputs()
    predictive = cb.predict(posterior, x)
    alpha = network()(x).detach().exp()
    dirichlet = torch.distributions.Dirichlet(alpha)
    # The variance of p_y, divided by that of a label with the mean probabilities: the same for every class.
    shares = dirichlet.variance / (dirichlet.mean * (1 - dirichlet.mean))
    assert torch.allclose(predictive.epistemic[:, None], predictive.entropy[:, None] * shares, atol=1e-6)
    assert torch.allclose(predictive.probs, dirichlet.mean, atol=1e-6)


def test_a_number_added_to_all_logits_changes_the_split_and_nothing_else() -> None:
    x = inputs()
    low, high = (cb.predict(cb.Distilled(shifted(network(), by)), x) for by in (-3.0, 3.0))
    assert torch.allclose(low.probs, high.probs, atol=1e-6)
    assert bool((low.epistemic > high.epistemic).all())


@pytest.mark.parametrize("by", [-1e4, -100.0, 0.0, 100.0, 1e4])
def test_epistemic_uncertainty_lies_between_zero_and_the_entropy(by: float) -> None:
    predictive = cb.predict(cb.Distilled(shifted(network(), by)), inputs())
    assert bool((predictive.epistemic >= 0).all())
    assert bool((predictive.epistemic <= predictive.entropy + 1e-7).all())
    assert torch.allclose(predictive.epistemic + predictive.aleatoric, predictive.entropy, atol=1e-6)


def test_one_pass_whatever_the_number_of_samples() -> None:
    posterior, x = cb.Distilled(network()), inputs()
    expected = cb.predict(posterior, x)
    assert not posterior.random
    every: tuple[Samples, ...] = (1, 20, "mean", "closed-form")
    for samples in every:
        actual = cb.predict(posterior, x, samples=samples, keep_samples=True)
        assert actual.samples is not None
        assert len(actual.samples) == 1
        assert torch.equal(actual.epistemic, expected.epistemic)


def test_a_file_keeps_the_uncertainty(tmp_path: Path) -> None:
    posterior, x = cb.Distilled(network()), inputs()
    cb.save(posterior, tmp_path / "student.safetensors")
    with seeded(5):
        other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    loaded = cb.load(tmp_path / "student.safetensors", other)
    assert isinstance(loaded, cb.Distilled)
    assert torch.equal(cb.predict(loaded, x).epistemic, cb.predict(posterior, x).epistemic)


def test_an_ensemble_of_students_adds_their_disagreement() -> None:
    x = inputs()
    with seeded(7):
        nets = [nn.Linear(4, 3) for _ in range(2)]
    students = [cb.predict(cb.Distilled(net), x) for net in nets]
    both = cb.predict(cb.Ensemble([cb.Distilled(net) for net in nets]), x)
    assert torch.allclose(both.aleatoric, (students[0].aleatoric + students[1].aleatoric) / 2)
    assert torch.allclose(both.within, (students[0].epistemic + students[1].epistemic) / 2, atol=1e-6)
    assert bool((both.between > 0).all())


def test_double_precision_and_outsider_scores() -> None:
    posterior, x = cb.Distilled(network()), inputs()
    predictive = cb.predict(posterior, x, dtype=torch.float64)
    assert predictive.epistemic.dtype == torch.float64
    assert torch.equal(cb.acting.outsider_scores(predictive, "epistemic"), predictive.epistemic)


def test_a_point_has_no_epistemic_uncertainty() -> None:
    assert float(cb.predict(cb.Point(network()), inputs()).epistemic.max()) == 0.0
