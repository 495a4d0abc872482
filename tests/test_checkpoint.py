"""Models on disk."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import calibayes as cb
from calibayes.checkpoint import as_tree
from calibayes.errors import ModelFileError
from calibayes.posterior import NetworkPosterior
from calibayes.tensor_tree_file import write_tree


class Net(nn.Module):
    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.body = nn.Linear(5, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.norm(self.body(x)).relu())
        return logits


def posteriors() -> dict[str, NetworkPosterior]:
    frozen = Net()
    frozen.body.requires_grad_(False)
    groups = {"head.*": 0.5, "*": 0.1}
    return {
        "point": cb.Point(Net()),
        "mean-field": cb.MeanField(Net()),
        "groups": cb.MeanField(Net(), prior_std=groups, init_std={"head.*": 0.2, "*": 0.1}),
        "head": cb.MeanField(Net(), where="head.*", prior_mean="initial"),
        "frozen": cb.MeanField(frozen),
        "float64": cb.MeanField(Net().double()),
    }


@pytest.mark.parametrize("name", posteriors())
def test_what_is_saved_is_loaded_to_the_bit(tmp_path: Path, name: str) -> None:
    posterior = posteriors()[name]
    dtype = torch.float64 if name == "float64" else torch.float32
    x, y = torch.randn(64, 5, dtype=dtype), torch.arange(64) % 3
    cb.fit(posterior, (x, y), cb.Objective(), epochs=2)
    assert not posterior.training
    path = tmp_path / "model.safetensors"
    cb.save(posterior, path)
    loaded = cb.load(path, Net().to(dtype))
    assert type(loaded) is type(posterior)
    for key, value in posterior.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value)
    torch.testing.assert_close(loaded.kl(), posterior.kl(), rtol=0, atol=0)
    assert not loaded.training
    assert torch.equal(cb.predict(loaded, x).probs, cb.predict(posterior, x).probs)


def test_a_compiled_network_is_the_same_architecture(tmp_path: Path) -> None:
    cb.save(cb.MeanField(Net()), tmp_path / "model")
    assert cb.load(tmp_path / "model", torch.compile(Net(), backend="eager")).num_bayesian == 75  # type: ignore[arg-type]


def test_a_posterior_in_another_precision_is_not_loaded_silently(tmp_path: Path) -> None:
    cb.save(cb.MeanField(Net()).double(), tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"torch.float64 in the file and .*torch.float32 in the network"):
        cb.load(tmp_path / "model", Net())
    loaded = cb.load(tmp_path / "model", Net().double()).members[0]
    assert loaded.mean()["head.bias"].dtype == torch.float64


def test_another_architecture_says_which_parameter_differs(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    cb.save(cb.MeanField(Net(8)), path)
    with pytest.raises(ModelFileError, match=r"'body.weight' has shape \[8, 5\], .* in the file and shape \[9, 5\]"):
        cb.load(path, Net(9))
    with pytest.raises(ModelFileError, match=r"it has a parameter 'body.weight', the network does not"):
        cb.load(path, nn.Linear(5, 3))
    cb.save(cb.Point(Net(8)), path)
    mixed = Net(8)
    mixed.head.bias.data = mixed.head.bias.data.double()
    with pytest.raises(ModelFileError, match=r"'head.bias' has .*torch.float32 in the file and .*torch.float64 in the network"):
        cb.load(path, mixed)


def test_files_that_are_not_models_are_named(tmp_path: Path) -> None:
    missing, pickled, torn = (tmp_path / name for name in ("missing", "pickled", "torn"))
    pickled.write_bytes(pickle.dumps({"a": 1}))
    cb.save(cb.Point(Net()), torn)
    torn.write_bytes(torn.read_bytes()[:-7])
    for path in (missing, pickled, torn):
        with pytest.raises(ModelFileError, match=f"{path.name} cannot be loaded"):
            cb.load(path, Net())
    cb.fit(cb.Point(Net()), (torch.randn(8, 5), torch.arange(8) % 3), cb.Objective(), epochs=1, checkpoint=tmp_path / "run")
    with pytest.raises(ModelFileError, match="it holds a checkpoint, not a model"):
        cb.load(next((tmp_path / "run").iterdir()), Net())


def test_the_file_is_plain_safetensors_and_a_failed_save_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    posterior = cb.MeanField(Net())
    cb.save(posterior, path)
    with safe_open(path, framework="pt") as file:
        names = set(file.keys())
    assert {"state.groups.0.mu", "state.groups.0.rho"} <= names
    before = path.read_bytes()
    posterior.prior_std = object()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="prior_std is a object"):
        cb.save(posterior, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "header",
    [
        "{torn",
        "[]",
        "null",
        "{}",
        '{"kind": "model"}',
        '{"kind": "model", "format": 1, "crc32": 0, "tree": "{}"}',
        '{"kind": "model", "format": 1, "crc32": 0, "tree": 5}',
        "[" * 100_000,
    ],
)
def test_a_strangers_header_is_a_named_error(tmp_path: Path, header: str) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(2)}, path, metadata={"calibayes": header})
    with pytest.raises(ModelFileError, match=r"model.safetensors cannot be loaded: its (header is damaged|checksum)"):
        cb.load(path, Net())


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"architecture": {"kind": "evil"}, "state": {}},
        {"architecture": [], "state": 3},
        {"architecture": {**as_tree(cb.MeanField(Net()))["architecture"], "prior_std": -1.0}, "state": {}},
        {"architecture": as_tree(cb.MeanField(Net()))["architecture"], "state": {"groups.0.mu": torch.zeros(2)}},
    ],
)
def test_a_whole_file_with_a_strange_tree_is_a_named_error(tmp_path: Path, tree: dict[str, Any]) -> None:
    write_tree(tmp_path / "model", "model", tree)
    with pytest.raises(ModelFileError, match="model"):
        cb.load(tmp_path / "model", Net())


def test_a_frozen_network_will_do_to_load_into(tmp_path: Path) -> None:
    cb.save(cb.MeanField(Net()), tmp_path / "model")
    assert cb.load(tmp_path / "model", Net().requires_grad_(False)).num_bayesian == 75


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="nowhere/model cannot be written: No such file or directory"):
        cb.save(cb.Point(Net()), tmp_path / "nowhere" / "model")
