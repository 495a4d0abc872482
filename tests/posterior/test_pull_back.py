"""The gradients that a training step writes by hand are those of autograd."""

from __future__ import annotations

import pytest
import torch
from tests.posterior.zoo import Tied
from torch import Tensor

import calibayes as cb
from calibayes.posterior.gaussian_group import GaussianGroup


def posterior() -> cb.MeanField:
    built = cb.MeanField(Tied().double(), init_std=0.3, prior_std={"out.*": 0.2, "*": 1.0}, prior_mean="initial")
    with torch.no_grad():
        for vector in built.parameters():
            vector.add_(torch.randn_like(vector) * 0.1)
    return built


def generators(count: int) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed) for seed in range(count)]


def loss(vectors: list[Tensor]) -> Tensor:
    return torch.stack([(vector.sin() * vector).sum() for vector in vectors]).sum()


@pytest.mark.parametrize("count", [1, 3])
def test_of_samples(count: int) -> None:
    built = posterior()
    draws = [built.draw(generator) for generator in generators(count)]
    expected = torch.autograd.grad(torch.stack([loss(vectors) for vectors in draws]).sum(), list(built.parameters()))
    leaves, shifts = built.leaves(generators(count))
    for k, vectors in enumerate(draws):
        assert all(torch.equal(leaf if count == 1 else leaf[k], v) for leaf, v in zip(leaves, vectors, strict=True))
    loss(leaves).backward()
    built.pull_back(leaves, shifts)
    for vector, gradient in zip(built.parameters(), expected, strict=True):
        assert vector.grad is not None
        assert torch.allclose(vector.grad, gradient, rtol=1e-12, atol=1e-12)


def test_gradients_add_up() -> None:
    built = posterior()
    for times in (1, 2):
        leaves, shifts = built.leaves(generators(1))
        loss(leaves).backward()
        built.pull_back(leaves, shifts)
        result = [vector.grad.clone() for vector in built.parameters() if vector.grad is not None]
        if times == 1:
            once = result
    assert all(torch.allclose(two, 2 * one, rtol=1e-12) for one, two in zip(once, result, strict=True))


@pytest.mark.parametrize("before", [False, True], ids=["alone", "beside other gradients"])
def test_of_the_kl(before: bool) -> None:
    built = posterior()
    gaussians = [group for group in built.groups if isinstance(group, GaussianGroup)]
    vectors = [vector for group in gaussians for vector in (group.mu, group.rho)]
    expected = torch.autograd.grad(0.7 * built.kl(), vectors)
    for vector in vectors:
        vector.grad = torch.ones_like(vector) if before else None
    for group in gaussians:
        group.pull_back_kl(0.7)
    for vector, gradient in zip(vectors, expected, strict=True):
        assert vector.grad is not None
        assert torch.allclose(vector.grad, gradient + int(before), rtol=1e-12, atol=1e-12)
