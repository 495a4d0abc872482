"""Checks of copies: files, state dicts, configurations, ``copy.deepcopy`` and pickle."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from calibayes.checkpoint import load, save
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.testing.comparisons import expect, same_bits
from calibayes.testing.posterior_subject import PosteriorSubject
from calibayes.training.training_hooks import cloned_state


def _expect_same(subject: PosteriorSubject, actual: Posterior, expected: Posterior, what: str) -> None:
    expect(type(actual) is type(expected), f"{what} is a {type(actual).__name__}, not a {type(expected).__name__}")
    same_bits(cloned_state(actual), cloned_state(expected), f"the state of {what}")
    same_bits(
        subject.predict(actual).probs, subject.predict(expected).probs, f"`predict` of {what} (is all it knows in its state?)"
    )
    if expected.random:
        one, other = (each.sample(2, generator=torch.Generator().manual_seed(4)) for each in (actual, expected))
        same_bits(one, other, f"`sample` of {what}")


def check_save_and_load(subject: PosteriorSubject) -> None:
    """A file gives the same bits back, on a network with other weights."""
    posterior = subject.trained()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save(posterior, path)
        loaded = load(path, subject.case.network(seed=2))
    expect(loaded.training == posterior.training, "`load` gives another mode back")
    _expect_same(subject, loaded, posterior, "what `load` gives back")


def check_config(subject: PosteriorSubject) -> None:
    """`config` is made of plain values, and `from_config` builds a posterior with the same one that takes the state."""
    posterior = subject.trained()
    config = posterior.config()
    try:
        plain = json.loads(json.dumps(config))
    except TypeError as error:
        raise AssertionError(f"`config()` must be plain values, which JSON can hold: {error}") from error
    problem = "`config()` must be plain values that JSON gives back as they were: no tuples, keys are strings"
    expect(plain == config, problem)
    rebuilt = type(posterior).from_config(subject.case.network(seed=2), plain)
    again = rebuilt.config()
    for name in {**config, **again}:
        same = again.get(name) == config.get(name)
        expect(same, f"`from_config` gives another `config`: {name!r} is {again.get(name)!r}, not {config.get(name)!r}")
    rebuilt.load_state_dict(posterior.state_dict())
    expect(rebuilt.prior() == posterior.prior(), f"`from_config` gives the prior {rebuilt.prior()}, not {posterior.prior()}")
    _expect_same(subject, rebuilt.eval(), posterior, "what `from_config` and `load_state_dict` give back")


def check_state_dict(subject: PosteriorSubject) -> None:
    """A posterior of the same kind on a network with other weights takes the state, and is the same then."""
    posterior = subject.trained()
    other = subject.posterior(seed=2).eval()
    other.load_state_dict(cloned_state(posterior))
    _expect_same(subject, other, posterior, "a posterior with the same state")


def check_copies(subject: PosteriorSubject) -> None:
    """`copy.deepcopy` and pickle give the same, and what happens to a copy does not happen to the original."""
    posterior = subject.trained()
    before = cloned_state(posterior)
    for what, copied in (
        ("a deep copy", copy.deepcopy(posterior)),
        ("an unpickled copy", pickle.loads(pickle.dumps(posterior))),
    ):
        _expect_same(subject, copied, posterior, what)
        with torch.no_grad():
            for tensor in (*copied.parameters(), *copied.buffers()):
                tensor.zero_()
        same_bits(cloned_state(posterior), before, f"the state of the original after a change of {what}")
