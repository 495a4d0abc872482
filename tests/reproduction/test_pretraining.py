"""Weights to start from are made once, and then found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.data.real import needs

from calibayes.errors import DataError, InvalidArgumentError
from reproduction.cifar10_training import normalized_network, pretrained_file
from reproduction.pretraining import PRETRAININGS, pretrain


@needs("cifar10")
def test_weights_are_made_and_loaded(tmp_path: Path) -> None:
    path, record = pretrain(PRETRAININGS["tiny"], tmp_path, progress=False)
    assert path == tmp_path / "resnet18-from-256" / "resnet18-cifar10.safetensors"
    assert json.loads(path.with_suffix(".json").read_text()) == record
    assert record["settings"]["train"] == 256
    assert 0 <= record["test"]["accuracy"] <= 1
    weights, net = load_file(path), normalized_network("resnet18", path)
    assert torch.equal(weights["conv1.weight"], net.state_dict()["1.conv1.weight"])
    assert not torch.equal(weights["fc.weight"], normalized_network("resnet18", None).state_dict()["1.fc.weight"])
    with pytest.raises(InvalidArgumentError, match=r"exist already\. Remove them to train others"):
        pretrain(PRETRAININGS["tiny"], tmp_path)


def test_missing_weights_say_how_to_make_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    with pytest.raises(DataError, match="calibayes reproduce cifar10-pretrain"):
        pretrained_file("resnet18")
    with pytest.raises(DataError, match="calibayes data get resnet20"):
        pretrained_file("resnet20")
