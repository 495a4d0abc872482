"""Checks of a posterior's description of a network's weights, and that it leaves the network alone."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import torch

from calibayes.randomness import seeded
from calibayes.testing.comparisons import expect, same_bits
from calibayes.testing.posterior_subject import PosteriorSubject
from calibayes.training.training_hooks import cloned_state


def check_network_is_left_alone(subject: PosteriorSubject) -> None:
    """Building, training and predicting change neither the network's weights nor its modes, nor do they depend on it later."""
    net = subject.case.network()
    before, modes = cloned_state(net), [part.training for part in net.modules()]
    wanted = [parameter.requires_grad for parameter in net.parameters()]
    with seeded(1):
        posterior = subject.factory(net)
    if subject.training is not None:
        subject.fit(posterior, epochs=1)
    subject.predict(posterior)
    predicted = subject.predict(posterior, samples="mean").probs
    same_bits(cloned_state(net), before, "the state of the network that was given")
    expect([part.training for part in net.modules()] == modes, "the network that was given has parts in another mode")
    expect([p.requires_grad for p in net.parameters()] == wanted, "the network that was given has other frozen weights")
    expect(all(p.grad is None for p in net.parameters()), "the network that was given has gradients")
    with torch.no_grad():
        for tensor in (*net.parameters(), *net.buffers()):
            tensor.zero_()
    again = subject.predict(posterior, samples="mean").probs
    same_bits(again, predicted, "`predict` after a change of the network that was given")


def check_audit(subject: PosteriorSubject) -> None:
    """`audit` prints every parameter of the network."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        subject.posterior().audit()
    missing = [name for name, _ in subject.case.network().named_parameters() if name not in printed.getvalue()]
    expect(not missing, f"`audit` does not print the parameter {missing[:1]}")


def check_roles(subject: PosteriorSubject) -> None:
    """Every parameter has one role, the groups hold what is trained, and ``num_bayesian`` counts what has a distribution."""
    posterior = subject.posterior()
    parameters = dict(subject.case.network().named_parameters(remove_duplicate=False))
    total = 0
    for member in posterior.members:
        names = [name for choice in member.choices for name in choice.names]
        odd = sorted(set(names) ^ set(parameters))
        expect(sorted(names) == sorted(parameters), f"`choices` have {odd} too much or not at all")
        bayesian = {name for choice in member.choices if choice.role == "bayesian" for name in choice.names}
        frozen = {name for choice in member.choices if choice.role == "frozen" for name in choice.names}
        grouped = [(name, group.bayesian) for group in member.groups for names in group.layout.names for name in names]
        once = sorted(name for name, _ in grouped) == sorted(set(names) - frozen)
        expect(once, "`groups` do not hold every trained weight once")
        odd = [name for name, random in grouped if random != (name in bayesian)]
        expect(not odd, f"`groups` and `choices` disagree on whether {odd[:1]} is Bayesian")
        total += sum(choice.shape.numel() for choice in member.choices if choice.role == "bayesian")
    expect(posterior.num_bayesian == total, f"`num_bayesian` is {posterior.num_bayesian}, but `choices` say {total}")


def check_parameter_groups(subject: PosteriorSubject) -> None:
    """Every parameter that can be trained is in one named group for the optimiser."""
    posterior = subject.posterior()
    groups = posterior.parameter_groups()
    names = [group.get("name") for group in groups]
    expect(len(set(names)) == len(names) and None not in names, f"`parameter_groups` need different names, but have {names}")
    grouped = [id(parameter) for group in groups for parameter in group["params"]]
    expect(len(set(grouped)) == len(grouped), "`parameter_groups` have a parameter twice")
    missing = [name for name, p in posterior.named_parameters() if p.requires_grad and id(p) not in grouped]
    expect(not missing, f"`parameter_groups` lack {missing[:1]}, which no optimiser would train")


def check_sample(subject: PosteriorSubject) -> None:
    """`sample` gives every parameter of the network, by all its names, with a leading axis."""
    drawn = subject.posterior().sample(2, generator=torch.Generator().manual_seed(0))
    wanted = {name: [2, *p.shape] for name, p in subject.case.network().named_parameters(remove_duplicate=False)}
    actual = {name: list(value.shape) for name, value in drawn.items()}
    expect(actual == wanted, f"`sample(2)` has the shapes {actual}, not {wanted}")
