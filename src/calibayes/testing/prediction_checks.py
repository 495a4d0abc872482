"""Checks of predictions: a sample of the network depends on its seed and its number, and on nothing else."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from calibayes.data.input_structure import batch_length, rows, to_device
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.network_outputs import logits_of
from calibayes.predictive import predict
from calibayes.testing.comparisons import close, different, expect, finite, same_bits
from calibayes.testing.posterior_subject import PosteriorSubject

__all__ = ["ExampleRows"]


class ExampleRows(Dataset[tuple[Any, Tensor]]):
    """Examples one by one."""

    def __init__(self, x: Any, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple[Any, Tensor]:
        return rows(self.x, torch.tensor(index)), self.y[index]


def check_predictions_are_probabilities(subject: PosteriorSubject) -> None:
    """Probabilities ``[n, K]`` that add up to one."""
    posterior = subject.trained()
    _, y = subject.case.data()
    probs = subject.predict(posterior).probs
    expect(list(probs.shape) == [len(y), subject.case.classes], f"`predict` gives the shape {list(probs.shape)}")
    finite(probs, "`predict`")
    expect(bool((probs >= 0).all()), "`predict` gives negative probabilities")
    close(probs.sum(-1), torch.ones(len(y), dtype=probs.dtype), "the sum of the probabilities of `predict`")


def check_predictions_have_their_seed(subject: PosteriorSubject) -> None:
    """The same seed gives the same bits whatever the global generators do; another gives others."""
    posterior = subject.trained()
    torch.manual_seed(0)
    first = subject.predict(posterior, keep_samples=True)
    torch.manual_seed(1)
    again = subject.predict(posterior, keep_samples=True)
    same_bits(again.probs, first.probs, "`predict` with the same seed")
    if any(member.random for member in posterior.members):
        other = subject.predict(posterior, keep_samples=True, seed=8)
        different(other.probs, first.probs, "`predict` gives the same for different seeds, but `random` is True")
        expect(first.samples is not None and len(first.samples) > 1, "`keep_samples` keeps fewer than two samples")
        different(first.samples[0], first.samples[-1], "the samples of `predict` are alike, but `random` is True")  # type: ignore[index]


def check_samples_do_not_depend_on_the_batch(subject: PosteriorSubject) -> None:
    """Sample s is the same network for every batch size."""
    posterior = subject.trained(double=True)
    whole = subject.predict(posterior, keep_samples=True)
    for size in (1, 5):
        actual = subject.predict(posterior, keep_samples=True, batch_size=size)
        assert actual.samples is not None
        assert whole.samples is not None
        close(actual.samples, whole.samples, f"the samples of `predict` with batch_size={size}, compared with one batch")
        close(actual.probs, whole.probs, f"`predict` with batch_size={size}, compared with one batch")


def check_samples_do_not_depend_on_their_number(subject: PosteriorSubject) -> None:
    """Sample s is the same network however many there are."""
    posterior = subject.trained(double=True)
    members = len(posterior.members)
    few, many = (_samples(subject, posterior, count * members) for count in (2, 5))
    for index, (two, five) in enumerate(zip(few, many, strict=True)):
        for s, actual in enumerate(two):
            close(actual, five[s], f"sample {s} of member {index} among 2, compared with that among 5,")


def _samples(subject: PosteriorSubject, posterior: Posterior, count: int) -> list[list[Tensor]]:
    """Each member's networks' logits."""
    x = to_device(subject.case.data(double=True)[0], posterior.device)
    actual: list[list[Tensor]] = [[] for _ in posterior.members]
    with torch.no_grad(), posterior.evaluating():
        for member, outputs in posterior.outputs([x], count, 7):
            actual[member].append(logits_of(outputs[0], batch_length(x, "x")))
    return actual


def check_predictions_without_samples(subject: PosteriorSubject) -> None:
    """The mean weights predict the same with every seed, and as ``forward`` does; so does a closed form, if there is one."""
    posterior = subject.trained(double=True)
    x, _ = subject.case.data(double=True)
    actual = predict(posterior, x, samples="mean").probs
    same_bits(predict(posterior, x, samples="mean", seed=9).probs, actual, "`predict(samples='mean')` with another seed")
    with torch.no_grad(), posterior.evaluating():
        args, kwargs = ((), x) if isinstance(x, dict) else (x if isinstance(x, tuple) else (x,), {})
        logits = logits_of(posterior(*args, **kwargs), len(actual))
    close(actual, logits.softmax(-1), "`predict(samples='mean')`, compared with `forward`")
    try:
        closed = predict(posterior, x, samples="closed-form").probs
    except InvalidArgumentError:
        return
    for settings in ({"seed": 9}, {"batch_size": 5}):
        again = predict(posterior, x, samples="closed-form", **settings).probs  # type: ignore[arg-type]
        close(again, closed, f"`predict(samples='closed-form')` with {settings}")


def check_predictions_for_data_of_every_kind(subject: PosteriorSubject) -> None:
    """Tensors, a Dataset and a DataLoader give the same."""
    posterior = subject.trained(double=True)
    x, y = subject.case.data(double=True)
    whole = subject.predict(posterior).probs
    for kind in (ExampleRows(x, y), DataLoader(ExampleRows(x, y), batch_size=5)):
        close(subject.predict(posterior, kind).probs, whole, f"`predict` of a {type(kind).__name__}, compared with tensors")
