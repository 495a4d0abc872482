r"""The curvature of a last layer's cross-entropy, whole or as a Kronecker product, in its eigenbasis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, final

import torch
from torch import Tensor, nn

__all__ = ["Curvature", "CurvatureSum", "FullCurvature", "FullSum", "KroneckerCurvature", "KroneckerSum"]

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

        Args:
            features: what the layer is given, a one for its bias included, ``[n, D]``.
            variances: of the weights' coordinates in the eigenbasis, ``[K, D]``.
        """

    @abstractmethod
    def rows_at_once(self) -> int:
        """Return the number of rows that `logit_covariance` takes with temporary tensors of a modest size."""

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
    """All entries: ``K·D`` eigenvalues and as many eigenvectors."""

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
        """All eigenvalues, ``[K, D]``."""
        return self.values.view(self.shape)

    def from_basis(self, coordinates: Tensor) -> Tensor:
        """Weights from their coordinates in the eigenbasis."""
        return (coordinates.flatten(-2) @ self.basis.T).view(coordinates.shape)

    def to_basis(self, weights: Tensor) -> Tensor:
        """The inverse of `from_basis`."""
        return (weights.flatten(-2) @ self.basis).view(weights.shape)

    def logit_covariance(self, features: Tensor, variances: Tensor) -> Tensor:
        """The covariance of the logits, ``[n, K, K]``."""
        classes, columns = self.shape
        by_column = self.basis.view(classes, columns, -1).movedim(1, 0).reshape(columns, -1)
        seen = (features @ by_column).view(len(features), classes, -1)
        return (seen * variances.flatten()) @ seen.mT

    def rows_at_once(self) -> int:
        """Rows whose products with all eigenvectors fit."""
        return max(1, _ELEMENTS // (self.shape[0] * len(self.values)))


@final
class KroneckerCurvature(Curvature):
    r"""The product $G \otimes A$ (Ritter et al. 2018): the eigenvalues are the products of those of the factors."""

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
        """All eigenvalues, ``[K, D]``."""
        return torch.outer(self.logits_values, self.features_values)

    def from_basis(self, coordinates: Tensor) -> Tensor:
        """Weights from their coordinates in the eigenbasis."""
        return self.logits_basis @ coordinates @ self.features_basis.T

    def to_basis(self, weights: Tensor) -> Tensor:
        """The inverse of `from_basis`."""
        return self.logits_basis.T @ weights @ self.features_basis

    def logit_covariance(self, features: Tensor, variances: Tensor) -> Tensor:
        """The covariance of the logits, ``[n, K, K]``."""
        along = (features @ self.features_basis).square() @ variances.T
        return (self.logits_basis * along.unsqueeze(1)) @ self.logits_basis.T

    def rows_at_once(self) -> int:
        """Rows whose covariances fit."""
        return max(1, _ELEMENTS // len(self.logits_values) ** 2)


class CurvatureSum(ABC):
    r"""A sum over examples from which a `Curvature` is made; batches are added one by one, in the type of ``like``."""

    def __init__(self, classes: int, columns: int, like: Tensor) -> None:
        self.classes, self.columns = classes, columns

    @abstractmethod
    def add(self, features: Tensor, probs: Tensor, weights: Tensor) -> None:
        """Add examples: their features ``[n, D]``, class probabilities ``[n, K]``, and how much each counts ``[n]``."""

    @abstractmethod
    def fill(self, curvature: Any, scale: float) -> None:
        """Put ``scale`` times the sum into a curvature of the same kind."""


@final
class FullSum(CurvatureSum):
    r"""$\sum_n \Lambda_n \otimes \phi_n \phi_n^\top$ with $\Lambda = \mathrm{diag}(p) - p p^\top$, upper blocks only."""

    def __init__(self, classes: int, columns: int, like: Tensor) -> None:
        super().__init__(classes, columns, like)
        self.total = like.new_zeros(classes * columns, classes * columns)

    def add(self, features: Tensor, probs: Tensor, weights: Tensor) -> None:
        """Add examples, one row of blocks after the other."""
        features = features.to(probs.dtype)
        weighted = features * weights.unsqueeze(1)
        spread = (probs.unsqueeze(2) * features.unsqueeze(1)).flatten(1)
        for k in range(self.classes):
            rows = slice(k * self.columns, (k + 1) * self.columns)
            mine = (weighted * probs[:, k, None]).T
            # Not p - p², the difference of two sums: of probabilities near 1 it would leave few digits.
            self.total[rows, rows].addmm_(mine, features * (1 - probs[:, k, None]))
            self.total[rows, rows.stop :].addmm_(mine, spread[:, rows.stop :], alpha=-1)

    def fill(self, curvature: FullCurvature, scale: float) -> None:
        """Put the sum's eigenvalues and eigenvectors into ``curvature``."""
        _fill(curvature.values, curvature.basis, self.total * scale)


@final
class KroneckerSum(CurvatureSum):
    r"""$A = \sum_n \phi_n \phi_n^\top$ and $G = \frac1n \sum_n \Lambda_n$."""

    def __init__(self, classes: int, columns: int, like: Tensor) -> None:
        super().__init__(classes, columns, like)
        self.features = like.new_zeros(columns, columns)
        self.logits = like.new_zeros(classes, classes)
        self.count = 0.0

    def add(self, features: Tensor, probs: Tensor, weights: Tensor) -> None:
        """Add examples; a batch's products have the digits of the features, their sum over batches has all."""
        features = features.to(torch.promote_types(features.dtype, torch.float32))
        self.features += features.T @ (features * weights.unsqueeze(1).to(features.dtype))
        weighted = probs * weights.unsqueeze(1)
        within = (weighted * (1 - probs)).sum(0)
        self.logits += (-weighted.T @ probs).diagonal_scatter(within)
        self.count += float(weights.sum())

    def fill(self, curvature: KroneckerCurvature, scale: float) -> None:
        """Put both factors' eigenvalues and eigenvectors into ``curvature``."""
        _fill(curvature.features_values, curvature.features_basis, self.features * scale)
        _fill(curvature.logits_values, curvature.logits_basis, self.logits / self.count)


def _fill(values: Tensor, basis: Tensor, matrix: Tensor) -> None:
    # On the CPU, where every installation has float64 and the same bits come out.
    found, vectors = torch.linalg.eigh(matrix.to("cpu", torch.float64), UPLO="U")
    values.copy_(found.clamp_min_(0))
    basis.copy_(vectors)


def _options(like: Tensor) -> dict[str, Any]:
    return {"dtype": torch.float32 if like.dtype in _HALF else like.dtype, "device": like.device}
