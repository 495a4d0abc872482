r"""Widen a trained network into a Gaussian without training: as far as the training loss allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.checks import positive, positive_integer
from calibayes.data.input_structure import to_device
from calibayes.data.sources import Batch, as_source
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.mean_field import MeanField
from calibayes.posterior.network_outputs import check_labels, logits_of
from calibayes.posterior.network_posterior import trained_network
from calibayes.posterior.weight_selection import Where
from calibayes.randomness import generator_for, preserved_global_state

__all__ = ["widened"]

_LEAST, _MOST = 1e-5, 1.0  # of a width, as a share of its weights' size
_HALVINGS = 14


def widened(
    point: nn.Module,
    data: Any,
    by: float = 0.01,
    *,
    where: Where = None,
    prior_std: float = 0.3,
    samples: int = 4,
    batch_size: int = 512,
    seed: int = 0,
) -> MeanField:
    r"""Add noise to a trained network until its training loss has risen by a stated amount.

    Each weight tensor gets the standard deviation $s$ times the root mean square of its values, with one $s$ for all, the
    largest for which the mean cross-entropy of the sampled networks exceeds that of the trained one by at most ``by``. This is
    the idea of training-free Bayesianization (Shi et al. 2024, https://arxiv.org/abs/2412.05723), for any network.

    Args:
        point: a trained posterior such as a `Point`, or the network itself; it is not changed.
        data: training data, as for `calibayes.fit`; a few thousand examples are enough.
        by: nats of cross-entropy.
        where: which weights get a width, as in `MeanField`.
        prior_std: of the posterior that is returned, for a training that may follow.
        samples: networks that the loss is averaged over; their noise is the same for every $s$.
        batch_size: how many examples go through the network at once.
        seed: of the noise.

    Returns:
        A `MeanField`, in evaluation mode.

    Examples:
        >>> x = torch.randn(200, 4)
        >>> data, point = (x, x[:, :3].argmax(-1)), calibayes.Point(torch.nn.Linear(4, 3))
        >>> adam = lambda parameters: torch.optim.Adam(parameters, lr=0.1)
        >>> _ = calibayes.fit(point, data, calibayes.Objective(lam=0.0), optimizer=adam, epochs=50, batch_size=50)
        >>> narrow, wide = (calibayes.MeanField.widened(point, data, by=by) for by in (0.01, 0.1))
        >>> bool((narrow.rho < wide.rho).all())
        True
    """
    positive("by", by)
    positive_integer("samples", samples)
    net = trained_network(point)
    posterior = MeanField(net, prior_std=prior_std, where=where).eval()
    _set_widths_to_sizes(posterior)
    source = as_source(data, positive_integer("batch_size", batch_size), "data")
    search = _Search(posterior, source.ordered, samples, seed)
    with preserved_global_state(posterior.device):
        allowed = search.loss(None) + by
        if search.loss(_LEAST) > allowed:
            raise InvalidArgumentError(
                f"Noise of {_LEAST:g} times the size of the weights already raises the training loss by more than `by={by!r}`. "
                "Choose a larger `by`."
            )
        low, high = math.log(_LEAST), math.log(_MOST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if search.loss(math.exp(middle)) > allowed:
                high = middle
            else:
                low = middle
        search.scale(math.exp(low))
    return posterior


def _set_widths_to_sizes(posterior: MeanField) -> None:
    """Make the standard deviation of every weight the root mean square of its tensor."""
    with torch.no_grad():
        for group in posterior.groups:
            pair = group.gaussian()
            if pair is None:
                continue
            parts = torch.split_with_sizes(pair.mu, group.layout.sizes)
            sizes = [float(part.square().mean().sqrt()) for part in parts]
            usual = max(sum(sizes) / len(sizes), _LEAST)  # biases often start at zero
            for rho, size in zip(torch.split_with_sizes(pair.rho, group.layout.sizes), sizes, strict=True):
                rho.fill_(math.log(size if size > 0 else usual))


class _Search:
    """The training loss as a function of the width."""

    def __init__(self, posterior: MeanField, batches: Any, samples: int, seed: int) -> None:
        self._posterior, self._batches, self._samples, self._seed = posterior, batches, samples, seed
        pairs = [pair for group in posterior.groups if (pair := group.gaussian()) is not None]
        self._starts = [(pair.rho, pair.rho.detach().clone()) for pair in pairs]

    def scale(self, width: float) -> None:
        """Make every standard deviation ``width`` times what it was at first."""
        with torch.no_grad():
            for rho, start in self._starts:
                rho.copy_(start + math.log(width))

    @torch.no_grad()
    def loss(self, width: float | None) -> float:
        """The mean cross-entropy of samples of this width; ``None`` for the mean weights."""
        posterior = self._posterior
        vectors = [posterior.mean_vectors()]
        if width is not None:
            self.scale(width)
            generators = [generator_for(posterior.device, self._seed, "widen", s) for s in range(self._samples)]
            vectors = [posterior.draw(generator) for generator in generators]
        total, count = 0.0, 0.0
        for batch in self._moved():
            weights = torch.ones(len(batch.targets)) if batch.weights is None else batch.weights
            for each in vectors:
                total += float((self._losses(each, batch) * weights.to(posterior.device)).sum())
            count += float(weights.sum()) * len(vectors)
        return total / count

    def _losses(self, vectors: list[Tensor], batch: Batch) -> Tensor:
        logits = logits_of(self._posterior.call(vectors, batch.inputs), len(batch.targets))
        check_labels(batch.targets, logits.shape[-1])
        return F.cross_entropy(logits, batch.targets.long(), reduction="none")

    def _moved(self) -> Iterator[Batch]:
        device = self._posterior.device
        for batch in self._batches():
            yield batch._replace(inputs=to_device(batch.inputs, device), targets=batch.targets.to(device))
