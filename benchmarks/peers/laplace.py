"""laplace-torch: a Laplace approximation of the last layer."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.peers.interface import BATCH, Data, Method, Run

__all__ = ["LAPLACE"]

_PRIOR_PRECISION = 1.0


def _approximation(structure: str, net: nn.Module) -> Any:
    """Not fitted yet; it works on a copy of the network."""
    return import_module("laplace").Laplace(
        net,
        "classification",
        subset_of_weights="last_layer",
        hessian_structure=structure,
        prior_precision=_PRIOR_PRECISION,
    )


def _loader(data: Data) -> DataLoader[Any]:
    return DataLoader(TensorDataset(*data), batch_size=BATCH)


def _weights(approximation: Any) -> int:
    return int(approximation.n_params)


def _fit(structure: str, net: nn.Module, data: Data) -> Run:
    def fit() -> Any:
        approximation = _approximation(structure, net)
        approximation.fit(_loader(data))
        return approximation

    return Run(fit, _weights(fit()))


def _predict(structure: str, net: nn.Module, data: Data, x: Tensor, samples: int | None) -> Run:
    approximation = _approximation(structure, net)
    approximation.fit(_loader(data))
    if samples is None:
        call = partial(approximation, pred_type="glm", link_approx="probit")
    else:
        call = partial(approximation, pred_type="nn", link_approx="mc", n_samples=samples)
    return Run(lambda: torch.cat([call(batch) for batch in x.split(BATCH)]), _weights(approximation))


def _method(structure: str, note: str) -> Method:
    return Method(f"laplace-torch, {structure}", "laplace-torch", partial(_fit, structure), partial(_predict, structure), note)


LAPLACE = (
    _method("kron", "its default: a Kronecker-factored curvature; the closed form is its probit approximation"),
    _method("full", "the same, with the full curvature of the last layer"),
)
