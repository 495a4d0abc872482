"""The covariance of the last-layer Laplace approximation, against autograd and plain loops."""

from __future__ import annotations

import pytest
import torch
from tests.posterior.laplace_cases import KINDS, WIDE, Net, covariance, data, fitted, precision
from torch import Tensor, nn

import calibayes as cb


def hessian(net: Net, x: Tensor, y: Tensor, delta: float, temperature: float = 1.0, weights: Tensor | None = None) -> Tensor:
    """Of the summed cross-entropy and the prior, by autograd."""
    names = [name for name, _ in net.head.named_parameters()]
    shapes = [value.shape for value in net.head.parameters()]
    theta = torch.cat([value.detach().flatten() for value in net.head.parameters()])
    hidden = net.body(x).tanh().detach()

    def loss(theta: Tensor) -> Tensor:
        parts = theta.split([shape.numel() for shape in shapes])
        values = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        losses = nn.functional.cross_entropy(torch.func.functional_call(net.head, values, hidden), y, reduction="none")
        total = losses.sum() if weights is None else (losses * weights).sum()
        return total / temperature + delta / 2 * theta.square().sum()

    result: Tensor = torch.autograd.functional.hessian(loss, theta)
    return result


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_the_full_precision_is_the_hessian_of_the_loss(bias: bool, temperature: float) -> None:
    net, (x, y) = Net(bias=bias).to(WIDE), data()
    posterior = fitted(net, (x, y), 0.7, temperature=temperature, covariance="full", batch_size=7)
    torch.testing.assert_close(precision(posterior), hessian(net, x, y, 0.7, temperature))


def test_weights_of_examples_count() -> None:
    net, (x, y), weights = Net().to(WIDE), data(), torch.rand(40, dtype=WIDE) + 0.1
    posterior = fitted(net, (x, y, weights), 0.7)
    torch.testing.assert_close(precision(posterior), hessian(net, x, y, 0.7, weights=weights / weights.mean()))


def test_the_kronecker_precision_is_that_of_a_plain_loop() -> None:
    net, (x, y) = Net().to(WIDE), data()
    features, probs = net.features(x), net.eval()(x).softmax(-1).detach()
    a, g = torch.zeros(6, 6, dtype=WIDE), torch.zeros(3, 3, dtype=WIDE)
    for phi, p in zip(features, probs, strict=True):
        a += torch.outer(phi, phi)
        g += (torch.diag(p) - torch.outer(p, p)) / len(x)
    expected = torch.kron(g, a) + 0.7 * torch.eye(18, dtype=WIDE)
    order = [k * 6 + i for k in range(3) for i in range(5)] + [k * 6 + 5 for k in range(3)]  # the layer has the bias apart
    posterior = fitted(net, (x, y), 0.7, covariance="kronecker", batch_size=11)
    torch.testing.assert_close(precision(posterior), expected[order][:, order])


def test_kronecker_is_exact_for_one_example() -> None:
    net, (x, y) = Net().to(WIDE), data(1)
    full, kronecker = (precision(fitted(net, (x, y), covariance=kind)) for kind in KINDS)
    torch.testing.assert_close(full, kronecker)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_mean_and_the_covariance(kind: str) -> None:
    net = Net().to(WIDE)
    posterior = fitted(net, data(), 2.0, covariance=kind)
    drawn = posterior.sample(20_000, generator=torch.Generator().manual_seed(0))
    flat = torch.cat([drawn["head.weight"].flatten(1), drawn["head.bias"]], 1).detach()
    mean = torch.cat([net.head.weight.flatten(), net.head.bias]).detach()
    expected = covariance(posterior)
    torch.testing.assert_close(flat.mean(0), mean, atol=0.03, rtol=0)
    torch.testing.assert_close(flat.T.cov(), expected, atol=0.02, rtol=0)
    # Nothing else is random.
    torch.testing.assert_close(drawn["body.weight"], net.body.weight.expand(20_000, -1, -1))


def test_auto_is_full_up_to_2000_weights() -> None:
    small, large = nn.Linear(199, 10), nn.Linear(200, 10)
    x, y = torch.randn(20, 200), torch.arange(20) % 10
    assert fitted(small, (x[:, :199], y)).covariance == "full"
    assert fitted(large, (x, y)).covariance == "kronecker"


def test_logistic_regression_has_no_backbone() -> None:
    net, (x, y) = nn.Linear(4, 3).to(WIDE), data()
    posterior = fitted(net, (x, y), "marginal-likelihood")
    assert (posterior.num_bayesian, posterior.layer) == (15, "")
    probs = net(x).softmax(-1).detach()
    phi = torch.cat([x, torch.ones(40, 1, dtype=WIDE)], 1)
    blocks = torch.einsum("nkl,ni,nj->kilj", torch.diag_embed(probs) - probs[:, :, None] * probs[:, None], phi, phi)
    mine = precision(posterior)[:12, :12] - posterior.prior_precision * torch.eye(12, dtype=WIDE)
    torch.testing.assert_close(mine, blocks[:, :4, :, :4].reshape(12, 12))
    assert cb.predict(posterior, x, samples=5).probs.shape == (40, 3)
