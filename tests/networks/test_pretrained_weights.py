from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError, ModelFileError
from calibayes.networks import MLP, ResNetCIFAR, load_weights, resnet18


def built(classes: int = 10, seed: int = 0) -> ResNetCIFAR:
    torch.manual_seed(seed)
    return ResNetCIFAR(blocks=1, classes=classes)


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def as_safetensors(state: dict[str, Tensor], path: Path) -> None:
    save_file(state, path)


def as_torch(state: dict[str, Tensor], path: Path) -> None:
    torch.save(state, path)


def as_old_torch(state: dict[str, Tensor], path: Path) -> None:
    torch.save(state, path, _use_new_zipfile_serialization=False)


def as_training_script(state: dict[str, Tensor], path: Path) -> None:
    torch.save({"epoch": 3, "state_dict": {f"module.{name}": value for name, value in state.items()}}, path)


FORMATS = [as_safetensors, as_torch, as_old_torch, as_training_script]


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("name", ["net.safetensors", "net.pt", "net"])  # the contents tell, not the name
def test_weights_from_a_file(tmp_path: Path, write: Callable[[dict[str, Tensor], Path], None], name: str) -> None:
    source, net = built(seed=0), built(seed=1)
    source(torch.randn(4, 3, 32, 32))  # running statistics too
    write(source.state_dict(), tmp_path / name)
    assert not equal(net.state_dict(), source.state_dict())
    load_weights(net, str(tmp_path / name))
    assert equal(net.state_dict(), source.state_dict())


def test_weights_from_a_state_dict_are_copied() -> None:
    source, net = built(seed=0), built(seed=1)
    load_weights(net, source.state_dict())
    assert equal(net.state_dict(), source.state_dict())
    nn.init.zeros_(source.conv1.weight)
    assert net.conv1.weight.abs().sum() > 0


def test_a_new_head_for_another_number_of_classes(tmp_path: Path) -> None:
    source, net = built(10, seed=0), built(4, seed=1)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    save_file(source.state_dict(), tmp_path / "net")
    load_weights(net, tmp_path / "net", head="new")
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name] if name.startswith("linear.") else source.state_dict()[name]), name


def test_a_new_head_where_the_file_has_none() -> None:
    source, net = built(seed=0), built(seed=1)
    load_weights(net, {name: value for name, value in source.state_dict().items() if "linear" not in name}, head="new")
    assert torch.equal(net.conv1.weight, source.conv1.weight)


def test_the_head_is_the_last_layer_with_weights() -> None:
    source, net = MLP(3, [5], 4), MLP(3, [5], 2)
    load_weights(net, source.state_dict(), head="new")
    assert torch.equal(net.get_parameter("layers.0.weight"), source.get_parameter("layers.0.weight"))
    published, other = resnet18(classes=7), resnet18(classes=3)
    load_weights(other, published.state_dict(), head="new")
    assert torch.equal(other.layer4[1].conv2.weight, published.layer4[1].conv2.weight)  # type: ignore[union-attr,arg-type]


def test_half_precision_is_widened_and_counters_may_lack() -> None:
    source, net = built(seed=0), built(seed=1)
    state = {name: value.half() for name, value in source.state_dict().items() if not name.endswith("num_batches_tracked")}
    load_weights(net, state)
    assert net.conv1.weight.dtype == torch.float32
    assert torch.equal(net.conv1.weight, source.conv1.weight.half().float())


def changed(**values: Any) -> dict[str, Any]:
    state = {**built().state_dict(), **{name.replace("__", "."): value for name, value in values.items()}}
    return {name: value for name, value in state.items() if value is not None}


@pytest.mark.parametrize(
    ("state", "head", "message"),
    [
        (changed(conv1__weight=None), "keep", "The state dict does not fit the network: 'conv1.weight' is missing.$"),
        (changed(conv1__weight=torch.ones(16, 1, 3, 3)), "new", r"shape \[16, 1, 3, 3\], the network's \[16, 3, 3, 3\]\.$"),
        (changed(bn1__bias=torch.ones(16).long()), "keep", "'bn1.bias' is of torch.int64, the network's of torch.float32"),
        (changed(conv9__weight=torch.ones(2)), "new", "'conv9.weight' has no place in the network"),
        (changed(bn1__bias=None, bn1__other=torch.ones(2)), "keep", "'bn1.bias' is missing; 'bn1.other' has no place"),
        (changed(linear__weight=torch.ones(3, 64)), "keep", r"\[3, 64\], the network's \[10, 64\]\. .* pass head='new'"),
        ({"x": torch.ones(1)}, "keep", "'conv1.weight' is missing; .*; and [0-9]+ more"),
        ({}, "keep", "The state dict holds no weights by name, but an empty dict"),
        (changed(conv1__weight=[1.0]), "keep", "under the name 'conv1.weight', a list"),
    ],
)
def test_what_does_not_fit_is_listed_and_nothing_is_changed(state: dict[str, Any], head: Any, message: str) -> None:
    net = built(seed=1)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(ModelFileError, match=message):
        load_weights(net, state, head)
    assert equal(net.state_dict(), before)


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_torn_files_are_named(tmp_path: Path, write: Callable[[dict[str, Tensor], Path], None], share: float) -> None:
    path = tmp_path / "net"
    write(built().state_dict(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ModelFileError, match=r"net holds no weights that can be read \(.*compare its size"):
        load_weights(built(), path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>not found</html>", "holds no weights that can be read"),
        (b"12345678{", "holds no weights that can be read"),
        (b"\x80\x02}", "holds no weights that can be read"),
        (b"PK\x03\x04 and nothing else", "holds no weights that can be read"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "net.pt").write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        load_weights(built(), tmp_path / "net.pt")


def test_a_file_of_something_else(tmp_path: Path) -> None:
    torch.save(torch.ones(3), tmp_path / "net.pt")
    with pytest.raises(ModelFileError, match=r"net\.pt holds no weights by name, but a Tensor"):
        load_weights(built(), tmp_path / "net.pt")


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="none cannot be read: No such file or directory"):
        load_weights(built(), tmp_path / "none")
    with pytest.raises(ModelFileError, match="cannot be read: Is a directory"):
        load_weights(built(), tmp_path)


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_file_is_not_run(tmp_path: Path, zipped: bool) -> None:
    path, mark = tmp_path / "net.pt", tmp_path / "mark"
    torch.save({"conv1.weight": Trap(mark)}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ModelFileError, match=r"\(UnpicklingError\).* could run code"):
        load_weights(built(), path)
    assert not mark.exists()
    torch.load(path, weights_only=False)
    assert mark.exists()  # it would have run


def test_bad_settings_are_quoted() -> None:
    with pytest.raises(InvalidArgumentError, match="'keep' or 'new', but got 'drop'"):
        load_weights(built(), {}, head="drop")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"layers with weights of their own, but got Linear\("):
        load_weights(nn.Linear(2, 2), nn.Linear(2, 2).state_dict(), head="new")
