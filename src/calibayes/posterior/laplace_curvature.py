r"""The curvature of a last layer's cross-entropy, whole or as a Kronecker product, in its eigenbasis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, final

import torch
from torch import Tensor, nn

__all__ = ["Curvature", "FullCurvature", "KroneckerCurvature"]

_ELEMENTS = 1 << 22  # of a temporary tensor
_HALF = (torch.float16, torch.bfloat16)


class Curvature(nn.Module, ABC):
    r"""A positive semi-definite matrix over the weights $[W, b]$ of a linear layer, ``[K, D]``, known by its eigenbasis.

    Its tensors stay in float32 where the network goes to half precision: eigenvalues grow with the number of examples.
    """

    @property
    @abstractmethod
    def eigenvalues(self) -> Tensor:
        """All eigenvalues, ``[K, D]``; none is negative."""

    @abstractmethod
    def from_basis(self, coordinates: Tensor) -> Tensor:
        """Weights ``[..., K, D]`` from their coordinates in the eigenbasis, of the same shape."""

    @abstractmethod
    def to_basis(self, weights: Tensor) -> Tensor:
        """The inverse of `from_basis`."""

    def scaled(self, noise: Tensor, scales: Tensor) -> Tensor:
        """Multiply ``[..., K, D]`` by a function of the matrix that has these eigenvalues ``[K, D]``.

        Unlike `from_basis` of scaled coordinates, the result does not depend on the signs of eigenvectors, nor on which ones
        stand for equal eigenvalues: a rounding error in the data changes it by a rounding error.
        """
        return self.from_basis(self.to_basis(noise) * scales)

    @abstractmethod
    def logit_covariance(self, features: Tensor, variances: Tensor) -> Tensor:
        """The covariance of the logits, ``[n, K, K]``.

        Of the layer's inputs ``[n, D]``, a one for its bias included, and the variances ``[K, D]`` of the weights' coordinates
        in the eigenbasis.
        """

    @abstractmethod
    def rows_at_once(self) -> int:
        """Return the number of rows that `logit_covariance` takes with temporary tensors of a modest size."""

    @abstractmethod
    def begin_sum(self, like: Tensor) -> None:
        """Begin a sum over examples, in the type and on the device of ``like``."""

    @abstractmethod
    def add(self, features: Tensor, probs: Tensor, weights: Tensor) -> None:
        """Add examples: their features ``[n, D]``, class probabilities ``[n, K]``, and how much each counts ``[n]``."""

    @abstractmethod
    def end_sum(self, scale: float) -> None:
        """Become ``scale`` times the sum."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, value in before.items():
            after = self._buffers[name]
            if value is not None and after is not None and after.dtype in _HALF:
                self._buffers[name] = value.to(after.device)
        return self


@final
class FullCurvature(Curvature):
    r"""All entries of $\sum_n \Lambda_n \otimes \phi_n \phi_n^\top$ with $\Lambda = \mathrm{diag}(p) - p p^\top$."""

    values: Tensor
    basis: Tensor

    def __init__(self, classes: int, columns: int, like: Tensor) -> None:
        super().__init__()
        self.shape = (classes, columns)
        size, options = classes * columns, _options(like)
        self.register_buffer("values", torch.zeros(size, **options))
        self.register_buffer("basis", torch.eye(size, **options))

    @property
    def eigenvalues(self) -> Tensor:
        return self.values.view(self.shape)

    def from_basis(self, coordinates: Tensor) -> Tensor:
        return (coordinates.flatten(-2) @ self.basis.T).view(coordinates.shape)

    def to_basis(self, weights: Tensor) -> Tensor:
        return (weights.flatten(-2) @ self.basis).view(weights.shape)

    def logit_covariance(self, features: Tensor, variances: Tensor) -> Tensor:
        classes, columns = self.shape
        by_column = self.basis.view(classes, columns, -1).movedim(1, 0).reshape(columns, -1)
        seen = (features @ by_column).view(features.shape[0], classes, -1)
        return (seen * variances.flatten()) @ seen.mT

    def rows_at_once(self) -> int:
        return max(1, _ELEMENTS // (self.shape[0] * len(self.values)))

    def begin_sum(self, like: Tensor) -> None:
        self._total = like.new_zeros(self.basis.shape)  # only its upper blocks are filled

    def add(self, features: Tensor, probs: Tensor, weights: Tensor) -> None:
        classes, columns = self.shape
        features = features.to(probs.dtype)
        weighted = features * weights.unsqueeze(1)
        spread = (probs.unsqueeze(2) * features.unsqueeze(1)).flatten(1)
        for k in range(classes):
            rows = slice(k * columns, (k + 1) * columns)
            mine = (weighted * probs[:, k, None]).T
            # Not p - p², the difference of two sums: of probabilities near 1 it would leave few digits.
            self._total[rows, rows].addmm_(mine, features * (1 - probs[:, k, None]))
            self._total[rows, rows.stop :].addmm_(mine, spread[:, rows.stop :], alpha=-1)

    def end_sum(self, scale: float) -> None:
        _fill(self.values, self.basis, self._total * scale)
        del self._total


@final
class KroneckerCurvature(Curvature):
    r"""The product $G \otimes A$ (Ritter et al. 2018) of $A = \sum_n \phi_n \phi_n^\top$ and $G = \frac1n \sum_n \Lambda_n$."""

    features_values: Tensor
    features_basis: Tensor
    logits_values: Tensor
    logits_basis: Tensor

    def __init__(self, classes: int, columns: int, like: Tensor) -> None:
        super().__init__()
        for name, size in (("features", columns), ("logits", classes)):
            self.register_buffer(f"{name}_values", torch.zeros(size, **_options(like)))
            self.register_buffer(f"{name}_basis", torch.eye(size, **_options(like)))

    @property
    def eigenvalues(self) -> Tensor:
        return torch.outer(self.logits_values, self.features_values)

    def from_basis(self, coordinates: Tensor) -> Tensor:
        return self.logits_basis @ coordinates @ self.features_basis.T

    def to_basis(self, weights: Tensor) -> Tensor:
        return self.logits_basis.T @ weights @ self.features_basis

    def logit_covariance(self, features: Tensor, variances: Tensor) -> Tensor:
        along = (features @ self.features_basis).square() @ variances.T
        return (self.logits_basis * along.unsqueeze(1)) @ self.logits_basis.T

    def rows_at_once(self) -> int:
        return max(1, _ELEMENTS // len(self.logits_values) ** 2)

    def begin_sum(self, like: Tensor) -> None:
        self._features, self._logits = like.new_zeros(self.features_basis.shape), like.new_zeros(self.logits_basis.shape)
        self._count = 0.0

    def add(self, features: Tensor, probs: Tensor, weights: Tensor) -> None:
        # A batch's products have the digits of the features, their sum over batches has all.
        features = features.to(torch.promote_types(features.dtype, torch.float32))
        self._features += features.T @ (features * weights.unsqueeze(1).to(features.dtype))
        weighted = probs * weights.unsqueeze(1)
        within = (weighted * (1 - probs)).sum(0)
        self._logits += (-weighted.T @ probs).diagonal_scatter(within)
        self._count += float(weights.sum())

    def end_sum(self, scale: float) -> None:
        _fill(self.features_values, self.features_basis, self._features * scale)
        _fill(self.logits_values, self.logits_basis, self._logits / self._count)
        del self._features, self._logits


def _fill(values: Tensor, basis: Tensor, matrix: Tensor) -> None:
    # On the CPU, where every installation has float64 and the same bits come out.
    eigenvalues, vectors = torch.linalg.eigh(matrix.to("cpu", torch.float64), UPLO="U")
    values.copy_(eigenvalues.clamp_min_(0))
    basis.copy_(vectors)


def _options(like: Tensor) -> dict[str, Any]:
    return {"dtype": torch.float32 if like.dtype in _HALF else like.dtype, "device": like.device}
