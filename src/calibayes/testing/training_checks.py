"""Checks of training: seeds, samples at once or in turn, resuming, and that something is learned."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from calibayes.testing.comparisons import close, expect, finite, same_bits
from calibayes.testing.posterior_subject import PosteriorSubject, sgd
from calibayes.testing.prediction_checks import ExampleRows
from calibayes.training.training_hooks import cloned_state


def check_training_has_its_seed(subject: PosteriorSubject) -> None:
    """The same seed gives the same bits, whatever the global generators do."""
    results = []
    for seed in (0, 1):
        posterior = subject.posterior()
        torch.manual_seed(seed)
        history = subject.fit(posterior)
        results.append((cloned_state(posterior), history))
    same_bits(results[1][0], results[0][0], "the state after `fit` with the same seed")
    expect(results[1][1] == results[0][1], "`fit` with the same seed gives another history")


def check_everything_is_trained(subject: PosteriorSubject) -> None:
    """One step moves the mean of every group, and a few epochs every parameter that an optimiser is given."""
    posterior = subject.posterior()
    before = [[vector.detach().clone() for vector in member.train().mean_vectors()] for member in posterior.members]
    everything = len(subject.case.data()[1])
    subject.fit(posterior, epochs=1, batch_size=everything)
    for member, vectors in zip(posterior.members, before, strict=True):
        for group, then, now in zip(member.groups, vectors, member.train().mean_vectors(), strict=True):
            expect(not torch.equal(then, now), f"a step of `fit` does not move the mean of group {group.name!r}")
    posterior = subject.posterior()
    start = {id(p): p.detach().clone() for p in posterior.parameters()}
    subject.fit(posterior, epochs=3)
    for optimized in posterior.parameter_groups():
        for parameter in optimized["params"]:
            finite(parameter.detach(), f"{optimized['name']!r} after `fit`")
            moved = not torch.equal(parameter, start[id(parameter)])
            expect(moved, f"three epochs of `fit` do not move {optimized['name']!r}: does a gradient reach it?")


def check_samples_at_once_and_in_turn(subject: PosteriorSubject) -> None:
    """A loop over samples, chunks and all at once train alike; dropout of the network has different masks in each."""
    if subject.case.has_dropout:
        return
    results = {}
    for chunk in (1, 2, 3):
        posterior = subject.posterior(double=True)
        subject.fit(posterior, double=True, samples=3, sample_chunk=chunk, optimizer=sgd)
        results[chunk] = cloned_state(posterior)
    for chunk in (2, 3):
        what = f"the state after `fit` with samples=3, sample_chunk={chunk}, compared with sample_chunk=1"
        close(results[chunk], results[1], what)


def check_training_resumes(subject: PosteriorSubject) -> None:
    """Interrupted after an epoch, training ends with the same bits and the same history."""
    whole = subject.posterior()
    history = subject.fit(whole, epochs=3)
    with TemporaryDirectory() as folder:
        subject.fit(subject.posterior(), epochs=1, checkpoint=Path(folder))
        resumed = subject.posterior(seed=2)
        again = subject.fit(resumed, epochs=3, checkpoint=Path(folder))
    same_bits(
        cloned_state(resumed), cloned_state(whole), "the state after a `fit` that was resumed, compared with one that was not,"
    )
    same_bits(subject.predict(resumed).probs, subject.predict(whole).probs, "`predict` after a `fit` that was resumed")
    expect(again == history, "a `fit` that was resumed has another history than one that was not")


def check_training_on_a_dataset(subject: PosteriorSubject) -> None:
    """A Dataset trains as tensors do."""
    results = []
    for train in (None, ExampleRows(*subject.case.data())):
        posterior = subject.posterior()
        subject.fit(posterior, epochs=1, train=train)
        results.append(cloned_state(posterior))
    same_bits(results[1], results[0], "the state after `fit` on a Dataset, compared with tensors,")
