r"""A mean-field Gaussian around a trained network, without training: as wide as the training loss allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes.checks import positive, positive_integer
from calibayes.data.input_structure import to_device
from calibayes.data.sources import Batch, as_source
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.flat import Layout
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
    r"""Add noise to a trained network until its training loss has risen by a stated amount; in evaluation mode.

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
    posterior = MeanField(trained_network(point), prior_std=prior_std, where=where).eval()
    source = as_source(data, positive_integer("batch_size", batch_size), "data")
    pairs = [(group.layout, pair) for group in posterior.groups if (pair := group.gaussian()) is not None]
    log_sizes = [(pair.rho, _log_sizes(layout, pair.mu.detach())) for layout, pair in pairs]

    def scale(width: float) -> None:
        for rho, log_size in log_sizes:
            rho.copy_(log_size + math.log(width))

    def loss_at(width: float) -> float:
        scale(width)
        generators = [generator_for(posterior.device, seed, "widen", s) for s in range(samples)]
        return _mean_loss(posterior, [posterior.draw(generator) for generator in generators], source.ordered())

    with torch.no_grad(), preserved_global_state(posterior.device):
        allowed = _mean_loss(posterior, [posterior.mean_vectors()], source.ordered()) + by
        if loss_at(_LEAST) > allowed:
            raise InvalidArgumentError(
                f"Noise of {_LEAST:g} times the size of the weights already raises the training loss by more than `by={by!r}`. "
                "Choose a larger `by`."
            )
        low, high = math.log(_LEAST), math.log(_MOST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if loss_at(math.exp(middle)) > allowed:
                high = middle
            else:
                low = middle
        scale(math.exp(low))
    return posterior


def _log_sizes(layout: Layout, mu: Tensor) -> Tensor:
    """For each weight the logarithm of the root mean square of its tensor."""
    sizes = [float(part.square().mean().sqrt()) for part in torch.split_with_sizes(mu, layout.sizes)]
    usual = max(sum(sizes) / len(sizes), _LEAST)  # biases often start at zero
    logs = [math.log(size if size > 0 else usual) for size in sizes]
    return torch.cat([mu.new_full((count,), log) for count, log in zip(layout.sizes, logs, strict=True)])


def _mean_loss(posterior: MeanField, samples: list[list[Tensor]], batches: Iterable[Batch]) -> float:
    """The mean cross-entropy of networks with these weights."""
    total, count, device = 0.0, 0.0, posterior.device
    for batch in batches:
        inputs, targets = to_device(batch.inputs, device), batch.targets.to(device)
        weights = torch.ones(len(targets)) if batch.weights is None else batch.weights
        for vectors in samples:
            logits = logits_of(posterior.call(vectors, inputs), len(targets))
            check_labels(targets, logits.shape[-1])
            losses = F.cross_entropy(logits, targets.long(), reduction="none")
            total += float((losses * weights.to(device)).sum())
        count += float(weights.sum()) * len(samples)
    return total / count
