"""TabM from its own package, trained as its authors suggest."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.optimize import minimize_scalar
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OrdinalEncoder, QuantileTransformer
from torch import Tensor, nn

__all__ = ["TableTensors", "fitted_temperature", "tabm"]

Array = npt.NDArray[Any]
_LEARNING_RATE, _WEIGHT_DECAY, _CLIP, _BATCH, _PATIENCE = 2e-3, 3e-4, 1.0, 256, 16
_BINS, _EMBEDDING = 48, 16
_MOST_EPOCHS, _LEAST_STEPS = 500, 8  # steps an epoch: small tables have smaller batches
_NOISE = 1e-5  # on the numbers whose quantiles are taken, so that frequent values do not make them jump


class TableTensors:
    """Rows as TabM takes them: quantile-normal numbers, and category indices with one for missing and unknown.

    Args:
        rows: the training rows.
        seed: of the noise and the quantiles.
    """

    def __init__(self, rows: pd.DataFrame, seed: int) -> None:
        numbers = rows.select_dtypes("number")
        self._numbers = [name for name in numbers if numbers[name].nunique() > 1]
        self._missing = [name for name in self._numbers if numbers[name].isna().any()]
        self._categories = list(rows.select_dtypes("category"))
        self._medians = numbers.median()
        if self._numbers:
            values = self._filled(rows)
            noise = np.random.default_rng(seed).normal(0.0, _NOISE, values.shape) * values.std(0)
            quantiles = max(min(len(rows) // 30, 1000), 10)
            self._quantiles = QuantileTransformer(
                n_quantiles=quantiles, output_distribution="normal", subsample=None, random_state=seed
            ).fit(values + noise)
        if self._categories:
            unknown: dict[str, Any] = {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -1}
            self._codes = OrdinalEncoder(**unknown).fit(rows[self._categories].astype(object))
        sizes = [len(set(each) - {np.nan}) for each in self._codes.categories_] if self._categories else []
        self.cardinalities = [*(size + 1 for size in sizes), *(2 for _ in self._missing)]

    def __call__(self, rows: pd.DataFrame) -> tuple[Tensor | None, Tensor | None]:
        """Return numbers and categories, or ``None`` in place of what the table does not have."""
        x = torch.tensor(self._quantiles.transform(self._filled(rows)), dtype=torch.float32) if self._numbers else None
        parts = []
        if self._categories:
            parts.append(self._codes.transform(rows[self._categories].astype(object)).astype(np.int64) + 1)
        if self._missing:
            parts.append(rows[self._missing].isna().to_numpy().astype(np.int64))
        return x, torch.tensor(np.concatenate(parts, 1)) if parts else None

    def _filled(self, rows: pd.DataFrame) -> Array:
        return rows[self._numbers].fillna(self._medians).to_numpy(np.float64)


def tabm(x: pd.DataFrame, y: Array, seed: int, epochs: int | None) -> Callable[[pd.DataFrame], dict[str, Array]]:
    """Train on four fifths of the rows until the NLL of the others has not fallen for sixteen epochs."""
    train, validation = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    tensors = TableTensors(x.iloc[train], seed)
    numbers, categories = tensors(x.iloc[train])
    targets, held_out = torch.tensor(y[train]), (tensors(x.iloc[validation]), y[validation])
    torch.manual_seed(seed)
    network = _network(numbers, tensors.cardinalities, int(y.max()) + 1)
    optimizer = torch.optim.AdamW(network.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
    batch = max(1, min(_BATCH, -(-len(train) // _LEAST_STEPS)))
    best, state, waited = float("inf"), copy.deepcopy(network.state_dict()), 0
    for _ in range(epochs or _MOST_EPOCHS):
        network.train()
        for rows in torch.randperm(len(train)).split(batch):
            logits = network(*(None if part is None else part[rows] for part in (numbers, categories)))
            # Every member learns on its own: the mean of their losses, not the loss of their mean.
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets[rows].repeat_interleave(logits.shape[1]))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), _CLIP)
            optimizer.step()
        value = _nll(_probs(network, held_out[0]), held_out[1])
        waited += 1
        if value < best:
            best, state, waited = value, copy.deepcopy(network.state_dict()), 0
        if waited >= _PATIENCE:
            break
    network.load_state_dict(state)
    temperature = fitted_temperature(_probs(network, held_out[0]), held_out[1])

    def predict(rows: pd.DataFrame) -> dict[str, Array]:
        probs = _probs(network, tensors(rows))
        return {"TabM": probs, "TabM, temperature": _softened(probs, temperature)}

    return predict


def fitted_temperature(probs: Array, targets: Array) -> float:
    """Return the temperature with the lowest NLL of these predictions."""
    found = minimize_scalar(
        lambda log: _nll(_softened(probs, float(np.exp(log))), targets), bounds=(-2.5, 2.5), method="bounded"
    )
    return float(np.exp(found.x))


def _network(numbers: Tensor | None, cardinalities: list[int], classes: int) -> nn.Module:
    embeddings = None
    if numbers is not None:
        package = import_module("rtdl_num_embeddings")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*just two bin edges")  # columns of zeros and ones
            bins = package.compute_bins(numbers, n_bins=min(_BINS, len(numbers) - 1))
            embeddings = package.PiecewiseLinearEmbeddings(bins, d_embedding=_EMBEDDING, activation=False, version="B")
    network: nn.Module = import_module("tabm").TabM.make(
        n_num_features=0 if numbers is None else numbers.shape[1],
        cat_cardinalities=cardinalities,
        d_out=classes,
        num_embeddings=embeddings,
    )
    return network


def _probs(network: nn.Module, inputs: tuple[Tensor | None, Tensor | None]) -> Array:
    """The mean of the members' probabilities."""
    network.eval()
    rows = next(len(part) for part in inputs if part is not None)
    with torch.inference_mode():
        parts = [
            network(*(None if part is None else part[begin : begin + 1024] for part in inputs)).double().softmax(-1).mean(1)
            for begin in range(0, rows, 1024)
        ]
    return torch.cat(parts).numpy()


def _softened(probs: Array, temperature: float) -> Array:
    powers: Array = np.exp(np.log(np.clip(probs, 1e-300, 1)) / temperature)
    return powers / powers.sum(1, keepdims=True)  # type: ignore[no-any-return]


def _nll(probs: Array, targets: Array) -> float:
    return -float(np.log(np.clip(probs[np.arange(len(targets)), targets], 1e-300, 1)).mean())
