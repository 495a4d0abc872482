"""The last-layer Laplace approximation, against autograd, plain loops, brute force and numerical integration."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb
from calibayes.posterior.laplace_prior import log_evidence

KINDS = ["full", "kronecker"]
WIDE = torch.float64


class Net(nn.Module):
    def __init__(self, classes: int = 3, bias: bool = True) -> None:
        super().__init__()
        self.body, self.drop, self.head = nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, classes, bias=bias)
        self.runs = 0

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        logits: Tensor = self.head(self.drop(self.body(x).tanh()))
        return logits

    def features(self, x: Tensor) -> Tensor:
        found = self.body(x).tanh().detach()
        return found if self.head.bias is None else torch.cat([found, found.new_ones(len(x), 1)], 1)


def data(n: int = 40, classes: int = 3, dtype: torch.dtype = WIDE) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 4, dtype=dtype), torch.randint(classes, (n,))


def fitted(net: nn.Module | None = None, xy: Any = None, prior_precision: Any = 0.7, **settings: Any) -> cb.LastLayerLaplace:
    return cb.LastLayerLaplace.from_point(net or Net().to(WIDE), data() if xy is None else xy, prior_precision, **settings)


def precision(posterior: cb.LastLayerLaplace) -> Tensor:
    """The posterior's precision over the layer's flat weights, from what it draws by: one unit vector after the other."""
    group = posterior.group
    shape = group.curvature.eigenvalues.shape
    units = torch.eye(shape.numel(), dtype=WIDE).view(-1, *shape)
    basis = torch.stack([group._flat(column) for column in group.curvature.from_basis(units)], 1)
    torch.testing.assert_close(basis @ basis.T, torch.eye(len(basis), dtype=WIDE))
    found: Tensor = (basis / group.variances().flatten()) @ basis.T
    return found


def covariance(posterior: cb.LastLayerLaplace) -> Tensor:
    return precision(posterior).inverse()


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

    found: Tensor = torch.autograd.functional.hessian(loss, theta)
    return found


# --- the covariance ---


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


# --- the prior ---


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_evidence_is_that_of_the_formula(kind: str) -> None:
    net, (x, y) = Net().to(WIDE), data()
    posterior = fitted(net, (x, y), 0.4, covariance=kind)
    theta = torch.cat([value.flatten() for value in net.head.parameters()]).detach()
    likelihood = -nn.functional.cross_entropy(net.eval()(x).detach(), y, reduction="sum")
    prior = torch.distributions.Normal(0, torch.tensor(0.4, dtype=WIDE).rsqrt()).log_prob(theta).sum()
    expected = likelihood + prior - 0.5 * torch.logdet(precision(posterior) / (2 * math.pi))
    assert posterior.log_marginal_likelihood == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_evidence_has_its_maximum_at_the_precision_found(kind: str, scale: float) -> None:
    net = Net().to(WIDE)
    with torch.no_grad():
        net.head.weight.mul_(scale)
    posterior = fitted(net, data(), "marginal-likelihood", covariance=kind)
    best, highest = posterior.prior_precision, posterior.log_marginal_likelihood
    group = copy.deepcopy(posterior.group)
    for factor in [*torch.logspace(-8, 8, 81).tolist(), 1.01, 1 / 1.01]:
        group.prior_precision = best * factor
        assert log_evidence(group) <= highest + 1e-9
    steps = []
    for factor in (math.exp(1e-4), math.exp(-1e-4)):
        group.prior_precision = best * factor
        steps.append(log_evidence(group))
    assert abs(steps[0] - steps[1]) / 2e-4 < 1e-4


def test_validation_finds_the_precision_with_the_lowest_nll() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(340, 4, generator=generator)
    y = (x[:, :3] + 0.5 * torch.randn(340, 3, generator=generator)).argmax(-1)
    net = nn.Sequential(nn.Linear(4, 60), nn.Tanh(), nn.Linear(60, 3))
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(100):  # overfitted to forty examples
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[:40]), y[:40]).backward()
        optimizer.step()
    train, valid = (x[:40], y[:40]), (x[40:], y[40:])
    posterior = fitted(net, train, "validation", validation=valid)

    def nll(delta: float) -> float:
        probs = cb.predict(fitted(net, train, delta), valid[0], samples=200).probs
        return float(nn.functional.nll_loss(probs.log(), valid[1]))

    found = nll(posterior.prior_precision)
    assert found < min(nll(1e-5), nll(1e5)) - 0.05
    assert all(found < nll(delta) + 0.05 for delta in torch.logspace(-5, 5, 21).tolist())
    again = fitted(net, train, "validation", validation=DataLoader(TensorDataset(*valid), batch_size=64))
    assert again.prior_precision == pytest.approx(posterior.prior_precision)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kl_is_that_of_two_gaussians(kind: str) -> None:
    posterior = fitted(prior_precision=0.3, covariance=kind)
    theta = posterior.group.mean().detach()
    q = torch.distributions.MultivariateNormal(theta, precision_matrix=precision(posterior))
    p = torch.distributions.MultivariateNormal(torch.zeros_like(theta), precision_matrix=0.3 * torch.eye(18, dtype=WIDE))
    torch.testing.assert_close(posterior.kl(), torch.distributions.kl_divergence(q, p))


# --- prediction ---


def logit_covariance(posterior: cb.LastLayerLaplace, net: Net, x: Tensor) -> Tensor:
    """J Σ Jᵀ with the Jacobian by hand."""
    features, classes = net.features(x), net.head.out_features
    rows = []
    for phi in features:
        weight = torch.stack([torch.kron(unit, phi[:5]) for unit in torch.eye(classes, dtype=WIDE)])
        jacobian = torch.cat([weight, torch.eye(classes, dtype=WIDE)], 1)
        rows.append(jacobian @ covariance(posterior) @ jacobian.T)
    return torch.stack(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_two_classes_in_closed_form_are_the_integral_up_to_the_probit_approximation(kind: str) -> None:
    net, x = Net(2).to(WIDE), data(30)[0]
    posterior = fitted(net, data(20, 2), 0.5, covariance=kind)
    difference = torch.tensor([1.0, -1.0], dtype=WIDE)
    mean = net.eval()(x).detach() @ difference
    std = (difference @ logit_covariance(posterior, net, x) @ difference).sqrt()
    grid = torch.linspace(-9, 9, 4001, dtype=WIDE)
    density = torch.distributions.Normal(0.0, 1.0).log_prob(grid).exp()
    integral = torch.trapezoid((mean[:, None] + std[:, None] * grid).sigmoid() * density, grid)
    closed = cb.predict(posterior, x, samples="closed-form").probs[:, 0]
    mackay = (mean / (1 + math.pi / 8 * std.square()).sqrt()).sigmoid()
    torch.testing.assert_close(closed, mackay)
    torch.testing.assert_close(closed, integral, atol=0.02, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_closed_form_is_near_many_samples(kind: str) -> None:
    net, x = Net(4).to(WIDE), data(50)[0]
    with torch.no_grad():
        net.head.weight.mul_(5)
    posterior = fitted(net, data(40, 4), 0.1, covariance=kind)
    sampled = cb.predict(posterior, x, samples=2000).probs
    closed = cb.predict(posterior, x, samples="closed-form", batch_size=9).probs
    plain = cb.predict(posterior, x, samples="mean").probs
    torch.testing.assert_close(plain, net.eval()(x).softmax(-1).detach())
    assert float((closed - sampled).abs().max()) < 0.1
    assert float((closed - sampled).abs().mean()) < 0.5 * float((plain - sampled).abs().mean())
    torch.testing.assert_close(closed, cb.predict(posterior, x, samples="closed-form").probs)


def test_adding_a_number_to_all_logits_changes_nothing() -> None:
    net, x = Net().to(WIDE), data(30)[0]
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.head.bias.add_(100)
    first, second = (cb.predict(fitted(n, (x, data(30)[1])), x, samples="closed-form").probs for n in (net, other))
    torch.testing.assert_close(first, second)


def test_sampled_prediction_runs_the_backbone_once_and_agrees_with_whole_networks() -> None:
    posterior, x = fitted(), data(10)[0]
    runs: Any = posterior.structure()
    before = runs.runs
    predictive = cb.predict(posterior, x, samples=50, keep_samples=True)
    assert runs.runs == before + 1
    assert predictive.samples is not None
    assert float(predictive.epistemic.min()) > 0
    with torch.no_grad(), posterior.evaluating():
        from calibayes.randomness import generator_for

        vectors = posterior.draw(generator_for(torch.device("cpu"), 0, "predict", 3))
        torch.testing.assert_close(predictive.samples[3], posterior.call(vectors, x).softmax(-1))


def test_other_posteriors_have_no_closed_form() -> None:
    with pytest.raises(cb.errors.InvalidArgumentError, match="MeanField has no closed-form"):
        cb.predict(cb.MeanField(nn.Linear(4, 3)), torch.randn(2, 4), samples="closed-form")


# --- data, networks and files ---


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_is_the_same_as_all_at_once_and_leaves_global_generators_alone(kind: str) -> None:
    net, (x, y) = Net().to(WIDE), data()
    whole = fitted(net, (x, y), "marginal-likelihood", covariance=kind)
    reads: list[int] = []

    class Counting(TensorDataset):
        def __getitem__(self, index: int) -> tuple[Tensor, ...]:
            reads.append(index)
            return x[index], y[index]

    loader, state = DataLoader(Counting(x, y), batch_size=7, shuffle=True), torch.get_rng_state()
    streamed = fitted(net, loader, "marginal-likelihood", covariance=kind)
    assert sorted(reads) == list(range(40))
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(precision(streamed), precision(whole))
    assert streamed.log_marginal_likelihood == pytest.approx(whole.log_marginal_likelihood)
    torch.testing.assert_close(
        precision(fitted(net, TensorDataset(x, y), whole.prior_precision, covariance=kind)), precision(whole)
    )


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


def test_the_given_network_is_left_alone() -> None:
    net, xy = Net().to(WIDE).train(), data()
    net.body.requires_grad_(False)
    net.drop.eval()
    before, modes = copy.deepcopy(net.state_dict()), [part.training for part in net.modules()]
    posterior = fitted(cb.Point(net), xy)
    same = fitted(net, xy)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert [part.training for part in net.modules()] == modes
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in net.modules())
    assert not posterior.training
    torch.testing.assert_close(precision(posterior), precision(same))
    assert not fitted(net.requires_grad_(False), xy, where="head.*").training  # a frozen network will do


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_files_state_and_copies_give_the_same_bits(kind: str, bias: bool, tmp_path: Path) -> None:
    x, y = data(dtype=torch.float32)
    net = Net(bias=bias)
    posterior = fitted(net, (x, y), "marginal-likelihood", covariance=kind, temperature=0.5)
    cb.save(posterior, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors", Net(bias=bias))
    assert isinstance(loaded, cb.LastLayerLaplace)
    held = Net(bias=bias)
    held.body.requires_grad_(False)
    filled = cb.LastLayerLaplace(held, "head", kind).eval()  # type: ignore[arg-type]
    filled.load_state_dict(posterior.state_dict())
    expected = cb.predict(posterior, x, samples=7)
    for other in (loaded, filled, copy.deepcopy(posterior)):
        assert torch.equal(cb.predict(other, x, samples=7).probs, expected.probs)
        assert other.prior_precision == posterior.prior_precision
        assert other.log_marginal_likelihood == posterior.log_marginal_likelihood
        assert torch.equal(other.kl(), posterior.kl())
    assert (loaded.config(), loaded.prior()) == (posterior.config(), posterior.prior())


@pytest.mark.parametrize("kind", KINDS)
def test_types(kind: str) -> None:
    x, y = data(dtype=torch.float32)
    posterior = fitted(Net(), (x, y), 0.1, covariance=kind)
    expected = cb.predict(posterior, x, samples="closed-form").probs
    wide = copy.deepcopy(posterior).double()
    torch.testing.assert_close(cb.predict(wide, x.double(), samples="closed-form").probs.float(), expected)
    half = copy.deepcopy(posterior).to(torch.bfloat16)
    assert (half.group.curvature.eigenvalues.dtype, half.group.mu.dtype) == (torch.float32, torch.bfloat16)
    torch.testing.assert_close(cb.predict(half, x.bfloat16(), samples="closed-form").probs, expected, atol=0.02, rtol=0)
    assert cb.predict(half, x.bfloat16(), samples=3).probs.isfinite().all()
    assert posterior.prior_precision == wide.prior_precision == half.prior_precision == 0.1
    halved = fitted(Net().to(torch.bfloat16), (x.bfloat16(), y))
    assert halved.group.curvature.eigenvalues.dtype == torch.float32


def test_an_ensemble_of_them(tmp_path: Path) -> None:
    x, y = data()
    members = [fitted(Net().to(WIDE), (x, y)) for _ in range(3)]
    ensemble = cb.Ensemble(members)
    for samples in (6, "closed-form", "mean"):
        each = [cb.predict(member, x, samples=2 if samples == 6 else samples).probs for member in members]
        together = cb.predict(ensemble, x, samples=samples).probs
        if samples != 6:  # members have seeds of their own
            torch.testing.assert_close(together, torch.stack(each).mean(0))
    cb.save(ensemble, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors", Net().to(WIDE))
    assert torch.equal(cb.predict(loaded, x, samples=6).probs, cb.predict(ensemble, x, samples=6).probs)


def test_the_audit_says_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    fitted().audit()
    told = capsys.readouterr().out
    for words in ("gives the network's output", "held at its trained value", "once per input"):
        assert words in told


# --- what is refused ---


class Output(dict[str, Tensor]):
    @property
    def logits(self) -> Tensor:
        return self["logits"]


class Wrapped(Net):
    def forward(self, x: Tensor) -> Any:
        return Output(logits=super().forward(x))


class Changed(Net):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Twice(Net):
    def __init__(self) -> None:
        super().__init__(5)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.head(self.body(x)))
        return logits


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
        self.head.weight = self.body.weight

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(x).tanh())
        return logits


def test_logits_in_an_object_are_found() -> None:
    net, xy = Net().to(WIDE), data()
    wrapped = Wrapped().to(WIDE)
    wrapped.load_state_dict(net.state_dict())
    torch.testing.assert_close(precision(fitted(wrapped, xy)), precision(fitted(net, xy)))


@pytest.mark.parametrize(
    ("net", "error", "told"),
    [
        (Changed(), cb.errors.UnsupportedNetworkError, "not that of an nn.Linear: that of 'head'"),
        (
            nn.Sequential(nn.Unflatten(1, (4, 1)), nn.Conv1d(4, 3, 1), nn.Flatten()),
            cb.errors.UnsupportedNetworkError,
            "none runs",
        ),
        (Twice(), cb.errors.UnsupportedNetworkError, "'head' runs 2 times"),
        (Tied(), cb.errors.UnsupportedNetworkError, "tied with 'body.weight'"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), cb.errors.UnsupportedNetworkError, "more than an nn.Linear"),
        (Net(1), cb.errors.NetworkOutputError, "needs two outputs"),
        (nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Linear(2, 3)), cb.errors.NetworkOutputError, "shape"),
        (cb.Ensemble([cb.Point(Net())]), cb.errors.InvalidArgumentError, "members one by one"),
    ],
)
def test_networks_that_are_refused(net: nn.Module, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        fitted(net, (torch.randn(6, 4), torch.zeros(6, dtype=torch.long)))


@pytest.mark.parametrize(
    "where", ["body.*", "*", "head.weight", ["body.weight", "head.*"], lambda name, _: name == "head.bias"]
)
def test_weights_other_than_those_of_the_last_layer_are_refused(where: Any) -> None:
    with pytest.raises(cb.errors.InvalidArgumentError, match=r"gives the network's output: head.weight, head.bias"):
        fitted(where=where)
    with pytest.raises(cb.errors.EmptySelectionError, match="nothing"):
        fitted(where="nothing.*")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"prior_precision": 0.0}, "positive finite number, but got 0.0"),
        ({"prior_precision": -1}, "but got -1"),
        ({"prior_precision": float("nan")}, "nan"),
        ({"prior_precision": "marginal"}, "'marginal-likelihood' or 'validation', but got 'marginal'"),
        ({"prior_precision": "validation"}, "needs `validation` data"),
        ({"validation": data()}, "only used with"),
        ({"covariance": "diagonal"}, "'diagonal'"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"temperature": 0}, "`temperature`"),
        ({"seed": "a"}, "`seed`"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(cb.errors.InvalidArgumentError, match=told):
        fitted(**settings)


def test_data_that_are_refused() -> None:
    x, y = data()
    with pytest.raises(cb.errors.DataError, match="no examples"):
        fitted(xy=(x[:0], y[:0]))
    with pytest.raises(cb.errors.DataError, match="no examples"):
        fitted(xy=TensorDataset(x[:0], y[:0]))
    with pytest.raises(cb.errors.InvalidTargetsError, match="0 … 2 for a network with 3 outputs, but one is 3"):
        fitted(xy=(x, y + 1))
    with pytest.raises(cb.errors.DataError, match="integer type"):
        fitted(xy=(x, y.double()))
    broken = x.clone()
    broken[11, 2] = math.nan
    with pytest.raises(cb.errors.DataError, match="'head' is NaN or infinite for example 1 of a batch of `data`"):
        fitted(xy=(broken, y), batch_size=10)
    with pytest.raises(cb.errors.DataError, match=r"The inputs are torch\.float32"):
        fitted(xy=(x.float(), y))


def test_an_evidence_without_a_maximum_is_refused() -> None:
    net = Net().to(WIDE)
    with torch.no_grad():
        net.head.weight.zero_()
        net.head.bias.zero_()
    with pytest.raises(cb.errors.InvalidArgumentError, match="weights are all zero"):
        fitted(net, data(), "marginal-likelihood")
    with torch.no_grad():
        net.head.bias.copy_(torch.tensor([1e5, 0, 0]))
    with pytest.raises(cb.errors.InvalidArgumentError, match="saturated"):
        fitted(net, data(), "marginal-likelihood")


def test_trained_by_fit_it_is_a_point_and_then_fitted() -> None:
    torch.manual_seed(3)
    net, xy = Net(), data(dtype=torch.float32)
    point, posterior = cb.Point(net), cb.LastLayerLaplace(net, prior_precision=0.5)
    for each in (point, posterior):
        cb.fit(each, xy, cb.Objective(lam=5.0), epochs=3, batch_size=16, seed=1, samples=1)
    for name, weight in point.mean().items():
        torch.testing.assert_close(posterior.mean()[name], weight)
    after = cb.LastLayerLaplace.from_point(point, xy, 0.5)
    torch.testing.assert_close(
        cb.predict(posterior, xy[0], samples="closed-form").probs, cb.predict(after, xy[0], samples="closed-form").probs
    )
    assert posterior.log_marginal_likelihood == pytest.approx(after.log_marginal_likelihood, rel=1e-5)


def test_a_last_linear_that_does_not_give_the_output_is_told_of_after_training() -> None:
    class Doubled(Net):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    posterior = cb.LastLayerLaplace(Doubled())
    with pytest.raises(cb.errors.UnsupportedNetworkError, match="pass its name as `layer`"):
        cb.fit(posterior, data(dtype=torch.float32), cb.Objective(), epochs=1)


def test_until_it_is_fitted_it_is_a_point() -> None:
    torch.manual_seed(3)
    net, xy = Net(), data(dtype=torch.float32)
    histories = [
        cb.fit(each, xy, cb.Objective(lam=0.0), epochs=4, batch_size=16, seed=1, validation=xy)
        for each in (cb.Point(net), cb.LastLayerLaplace(net))
    ]
    for row, expected in zip(*(history.epochs for history in reversed(histories)), strict=True):
        assert row["val_nll"] == pytest.approx(expected["val_nll"], rel=1e-5)
    fresh = cb.LastLayerLaplace(net)
    assert not fresh.random
    assert float(fresh.eval().kl().detach()) == 0


def test_a_frozen_last_layer_is_refused() -> None:
    net = Net()
    net.head.requires_grad_(False)
    with pytest.raises(cb.errors.EmptySelectionError, match="'head' is frozen"):
        cb.LastLayerLaplace(net)


def test_closed_form_of_an_ensemble_with_points() -> None:
    net, (x, y) = Net(), data(dtype=torch.float32)
    laplace, point = cb.LastLayerLaplace.from_point(net, (x, y), 1.0), cb.Point(Net()).eval()
    found = cb.predict(cb.Ensemble([laplace, point]), x, samples="closed-form").probs
    parts = [cb.predict(laplace, x, samples="closed-form").probs, cb.predict(point, x).probs]
    torch.testing.assert_close(found.double(), (parts[0].double() + parts[1].double()) / 2)
