r"""The distance of an input to the training data in the features of a network's last layer.

With ``"knn"`` it is the distance to the $k$-th nearest training example, features scaled to length 1 (Sun et al., 2022,
https://arxiv.org/abs/2204.06507). With ``"mahalanobis"`` it is the distance to the nearest class, or to the mean of all
examples without labels, in units of the spread within classes (Lee et al., 2018, https://arxiv.org/abs/1807.03888); the
covariance is shrunk after Ledoit and Wolf (2004), so that it can be inverted with fewer examples than features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from calibayes.acting.acting_inputs import as_tensor, read_features
from calibayes.checks import positive_integer
from calibayes.data.input_structure import to_device
from calibayes.data.sources.input_blocks import input_blocks
from calibayes.distributed import ALONE
from calibayes.errors import DataError, InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.flat import split_inputs
from calibayes.posterior.laplace_layer import output_layer
from calibayes.wording import did_you_mean

__all__ = ["DistanceMethod", "FeatureDistance", "features_of"]

DistanceMethod = Literal["knn", "mahalanobis"]
_NEIGHBOURS = 10
_BLOCK = 1 << 24  # distances computed at a time


def features_of(posterior: Posterior, x: Any, *, batch_size: int = 512) -> Tensor:
    """The input of the last linear layer for each example, ``[n, d]``, at the mean weights.

    Those of the members of an ensemble are put side by side.

    Raises:
        UnsupportedNetworkError: the network's output is not that of an ``nn.Linear``.

    Examples:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> features_of(calibayes.Point(net), torch.randn(5, 4)).shape
        torch.Size([5, 8])
    """
    if not isinstance(posterior, Posterior):
        raise InvalidArgumentError(f"Expected a posterior, but got {type(posterior).__name__}. Wrap it: `Point(net)`.")
    networks = [member.network().eval() for member in posterior.members]
    layers: list[str] = []
    parts: list[Tensor] = []
    for block in input_blocks(x, positive_integer("batch_size", batch_size), ALONE, []):
        for each in block:
            inputs = to_device(each, posterior.device)
            layers = layers or [output_layer(network, inputs, None) for network in networks]
            parts.append(torch.cat([_reaching(*pair, inputs) for pair in zip(networks, layers, strict=True)], -1))
    if not parts:
        raise DataError("There are no features to compute: `x` has no examples.")
    return torch.cat(parts)


def _reaching(network: nn.Module, layer: str, inputs: Any) -> Tensor:
    """What reaches a layer while the network runs, as rows of float64."""
    kept: list[Tensor] = []
    handle = network.get_submodule(layer).register_forward_pre_hook(lambda _, args: kept.append(args[0]))
    args, kwargs = split_inputs(inputs)
    try:
        with torch.no_grad():
            network(*args, **kwargs)
    finally:
        handle.remove()
    return kept[-1].flatten(1).cpu().double()


@dataclass(frozen=True, eq=False)
class FeatureDistance:
    """Distances to training examples in feature space; `fit` or `from_features` makes it.

    Attributes:
        method: ``"knn"`` or ``"mahalanobis"``.
        centres: the training features (knn), or the mean of each class (mahalanobis), scaled or whitened.
        whitening: a matrix that makes the spread within classes the same in all directions; ``None`` for knn.
        neighbours: the $k$ of the $k$-th nearest; 1 for mahalanobis.
        posterior: whose features they are; ``None`` if features were given.
    """

    method: DistanceMethod
    centres: Tensor
    whitening: Tensor | None
    neighbours: int
    posterior: Posterior | None = None

    @classmethod
    def fit(
        cls,
        posterior: Posterior,
        x: Any,
        labels: Array | None = None,
        *,
        method: DistanceMethod = "knn",
        neighbours: int | None = None,
    ) -> FeatureDistance:
        """Learn where the training data lie in a posterior's features.

        Args:
            posterior: with a network that ends in a linear layer.
            x: training inputs; for an honest score of new examples, those that trained the network will do.
            labels: their classes, for ``"mahalanobis"``.
            method: of the distance.
            neighbours: the $k$ of the $k$-th nearest, 10 by default, or the number of examples if that is smaller.
        """
        made = cls.from_features(features_of(posterior, x), labels, method=method, neighbours=neighbours)
        return cls(made.method, made.centres, made.whitening, made.neighbours, posterior)

    @classmethod
    def from_features(
        cls, features: Array, labels: Array | None = None, *, method: DistanceMethod = "knn", neighbours: int | None = None
    ) -> FeatureDistance:
        """Learn from features ``[n, d]`` that were computed elsewhere; arguments as `fit`.

        Examples:
            >>> inside = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
            >>> distance = FeatureDistance.from_features(inside, method="mahalanobis")
            >>> near, far = distance.scores_of_features(torch.tensor([[0.0, 0, 0], [9, 9, 9]]))
            >>> bool(near < 1), bool(far > 10)
            (True, True)
        """
        if method not in get_args(DistanceMethod):
            raise InvalidArgumentError(f"Unknown `method` {method!r}. {did_you_mean(method, get_args(DistanceMethod))}")
        rows = read_features(features)
        if method == "knn":
            default = min(_NEIGHBOURS, len(rows))
            nearest = default if neighbours is None else positive_integer("neighbours", neighbours, most=len(rows))
            return cls(method, _unit(rows), None, nearest)
        classes = torch.zeros(len(rows), dtype=torch.long) if labels is None else as_tensor("labels", labels).long()
        if classes.shape != (len(rows),):
            raise InvalidArgumentError(f"Expected {len(rows)} `labels`, but got {list(classes.shape)}.")
        kinds, of_row = classes.unique(return_inverse=True)
        means = torch.stack([rows[of_row == k].mean(0) for k in range(len(kinds))])
        from sklearn.covariance import ledoit_wolf

        covariance, _ = ledoit_wolf((rows - means[of_row]).numpy(), assume_centered=True)
        values, vectors = torch.linalg.eigh(torch.from_numpy(covariance))
        if float(values.max()) <= 0:
            raise InvalidArgumentError("All `features` of a class are the same, so there is no spread to measure distances by.")
        whitening = vectors / values.clamp_min(1e-12 * float(values.max())).sqrt()
        return cls(method, means @ whitening, whitening, 1)

    def scores(self, x: Any) -> Tensor:
        """The distance of each input, ``[n]``; higher for outsiders."""
        if self.posterior is None:
            raise InvalidArgumentError("This distance was made of features: pass features to `scores_of_features`.")
        return self.scores_of_features(features_of(self.posterior, x))

    def scores_of_features(self, features: Array) -> Tensor:
        """The distance of each row of features, ``[n]``."""
        rows = read_features(features)
        expected = self.centres.shape[1]
        if rows.shape[1] != expected:
            raise InvalidArgumentError(f"Expected features of {expected} columns, but got {rows.shape[1]}.")
        rows = _unit(rows) if self.whitening is None else rows @ self.whitening
        step = max(1, _BLOCK // len(self.centres))
        distances = [torch.cdist(part, self.centres).kthvalue(self.neighbours, -1).values for part in rows.split(step)]
        return torch.cat(distances)


def _unit(rows: Tensor) -> Tensor:
    return torch.nn.functional.normalize(rows, dim=-1)
