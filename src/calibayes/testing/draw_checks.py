"""Checks of a posterior's draws: their seed, their gradient, and that they have the distribution that it states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from calibayes.posterior.group import Group
from calibayes.testing.comparisons import close, different, expect, finite, same_bits
from calibayes.testing.posterior_subject import PosteriorSubject

_DRAWS = 600
_SURE = 7.0  # standard errors


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def check_draws_have_the_generators_noise(subject: PosteriorSubject) -> None:
    """The same generator gives the same weights, whatever the global generators do; another gives others."""
    posterior = subject.trained()
    torch.manual_seed(0)
    first = posterior.sample(2, generator=_generator(5))
    torch.manual_seed(1)
    again = posterior.sample(2, generator=_generator(5))
    same_bits(again, first, "`sample` from equal generators (is all noise the generator's?)")
    for member in posterior.members:
        if any(group.bayesian for group in member.groups) and member.random:
            one, other = (member.sample(1, generator=_generator(seed)) for seed in (5, 6))
            different(one, other, "generators of different seeds give the same weights: does `draw` use its generator?")
            two = member.sample(2, generator=_generator(5))
            early, late = ({name: value[k] for name, value in two.items()} for k in range(2))
            different(early, late, "two draws in turn from one generator are the same weights")


def check_draws_while_parameters_are_fixed(subject: PosteriorSubject) -> None:
    """Values that a group caches inside ``fixed()`` change no draw, with or without gradients."""
    for member in subject.trained().members:
        with torch.no_grad():
            plain = [vector.clone() for vector in member.draw(_generator(3))]
        with member.fixed():
            kept = [vector.detach().clone() for vector in member.draw(_generator(3))]
        for index, (actual, expected) in enumerate(zip(kept, plain, strict=True)):
            close(actual, expected, f"`draw` of group {index} inside `fixed()`, with gradients")


def check_pull_back(subject: PosteriorSubject) -> None:
    """`leaves` are draws, and `pull_back` gives the gradient that autograd through `draw` has, of one sample and several."""
    posterior = subject.trained(double=True).train()
    for member in posterior.members:
        parameters = {name: p for name, p in member.named_parameters() if p.requires_grad}
        for count in (1, 3):
            draws = [member.draw(_generator(seed)) for seed in range(count)]
            leaves, kept = member.leaves([_generator(seed) for seed in range(count)])
            for index, group in enumerate(member.groups):
                drawn = draws[0][index] if count == 1 else torch.stack([vectors[index] for vectors in draws])
                close(leaves[index].detach(), drawn.detach(), f"`leaves` of {count} generators in group {group.name!r}")
            loss = torch.stack([_loss(vectors) for vectors in draws]).sum()
            if not loss.requires_grad:
                continue
            wanted = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, materialize_grads=True)
            member.zero_grad()
            _loss(leaves).backward()
            member.pull_back(leaves, kept)
            what = f"`pull_back` of {count} sample(s), compared with autograd through `draw`, for"
            _check_gradients(parameters, wanted, what)
            member.zero_grad()


def _loss(vectors: Sequence[Tensor]) -> Tensor:
    return torch.stack([(vector.sin() * vector).sum() for vector in vectors]).sum()


def _check_gradients(parameters: Mapping[str, nn.Parameter], wanted: Sequence[Tensor], what: str) -> None:
    for (name, parameter), expected in zip(parameters.items(), wanted, strict=True):
        actual = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        close(actual, expected, f"{what} {name!r}")


def check_kl(subject: PosteriorSubject) -> None:
    """The KL adds up, has the gradient that training uses, and is that of the densities where the groups have them."""
    posterior = subject.trained(double=True)
    total = posterior.kl()
    expect(total.dim() == 0, f"`kl()` has shape {list(total.shape)}, not one number")
    finite(total, "`kl()`")
    members = torch.stack([member.kl().double() for member in posterior.members])
    close(total.double(), members.mean(), "`kl()`, compared with the mean of the members'")
    for member in posterior.members:
        values = [value.double() for value in (group.kl() for group in member.groups) if value is not None]
        close(member.kl().double(), torch.stack([*values, torch.zeros(()).double()]).sum(), "`kl()`, compared with its groups'")
        for group in member.groups:
            _check_kl_of(group)


def _check_kl_of(group: Group) -> None:
    value = group.kl()
    if value is None:
        expect(group.kl_value() is None, f"`kl_value` of group {group.name!r} is a number, but `kl` is None")
        return
    where, number = f"of group {group.name!r}", float(value.detach())
    expect(number >= -1e-6, f"`kl` {where} is {number:.4g}, but a KL is never negative")
    stated = group.kl_value()
    expect(stated is not None, f"`kl_value` {where} is None, but `kl` is not")
    close(value.new_tensor(float(stated)), value.detach(), f"`kl_value` {where}")  # type: ignore[arg-type]
    if value.requires_grad:
        parameters = {name: p for name, p in group.named_parameters() if p.requires_grad}
        wanted = torch.autograd.grad(0.7 * value, list(parameters.values()), allow_unused=True, materialize_grads=True)
        group.zero_grad()
        group.pull_back_kl(0.7)
        _check_gradients(parameters, wanted, f"`pull_back_kl` {where}, compared with autograd through `kl`, for")
        group.zero_grad()
    _check_kl_by_draws(group, number, where)


@torch.no_grad()
def _check_kl_by_draws(group: Group, number: float, where: str) -> None:
    generator = _generator(11)
    ratios = [_log_ratio(group, group.draw(generator)) for _ in range(_DRAWS)]
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return
    actual = torch.stack(known).double()
    mean, error = float(actual.mean()), float(actual.std()) / math.sqrt(len(known))
    expect(
        abs(mean - number) <= _SURE * error + 1e-6 * max(1.0, abs(mean)),
        f"`kl` {where} is {number:.6g}, but the mean of log q - log p over {len(known)} draws is {mean:.6g} ± {error:.2g}",
    )


def _log_ratio(group: Group, vector: Tensor) -> Tensor | None:
    """log q(θ) - log p(θ), where the densities are known."""
    pair = group.gaussian()
    if pair is not None:
        centre = torch.zeros_like(pair.mu) if pair.prior_mean is None else pair.prior_mean
        prior = Normal(centre, pair.prior_std).log_prob(vector)
        ratio: Tensor = (Normal(pair.mu, pair.rho.exp()).log_prob(vector) - prior).sum()
        return ratio
    own, prior_own = group.log_prob(vector), group.prior_log_prob(vector)
    return None if own is None or prior_own is None else own - prior_own


def check_mean_and_spread(subject: PosteriorSubject) -> None:
    """Many draws have the mean, and where it is stated the spread, of the groups."""
    for member in subject.trained(double=True).members:
        generator = _generator(13)
        with torch.no_grad():
            draws = [[vector.clone() for vector in member.draw(generator)] for _ in range(_DRAWS)]
            for group, vectors in zip(member.groups, zip(*draws, strict=True), strict=True):
                _check_moments(group, torch.stack(vectors))


def _check_moments(group: Group, drawn: Tensor) -> None:
    where, spread = f"of group {group.name!r}", drawn.std(0)
    gap = (drawn.mean(0) - group.mean()).abs()
    allowed = _SURE * spread / math.sqrt(len(drawn)) + 1e-9
    worst = int((gap - allowed).argmax())
    expect(
        bool((gap <= allowed).all()),
        f"`mean` {where} is {float(group.mean()[worst]):.6g} for weight {worst}, but that of {len(drawn)} draws is "
        f"{float(drawn[:, worst].mean()):.6g}",
    )
    stated = group.std()
    if stated is not None:
        expect(stated.shape == spread.shape, f"`std` {where} has shape {list(stated.shape)}, not {list(spread.shape)}")
        ratio = float((spread.square() + 1e-18).sum().div((stated.square() + 1e-18).sum()).sqrt())
        single = (spread + 1e-9) / (stated + 1e-9)
        low, high = float(single.min()), float(single.max())
        expect(
            abs(ratio - 1) < 0.2 and low > 0.5 and high < 2.0,
            f"`std` {where} is {float(stated.mean()):.4g} on average, but that of {len(drawn)} draws is "
            f"{float(spread.mean()):.4g}; weight by weight the ratio lies between {low:.3g} and {high:.3g}",
        )
