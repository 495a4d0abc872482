from __future__ import annotations

import pytest
import torch
from torch import nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks import ResNetCIFAR, resnet20


def weights(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters())


@pytest.mark.parametrize(("blocks", "millions"), [(3, 0.27), (5, 0.46), (7, 0.66), (9, 0.85)])
def test_number_of_weights_is_that_of_the_article(blocks: int, millions: float) -> None:
    assert weights(ResNetCIFAR(blocks)) / 1e6 == pytest.approx(millions, abs=0.006)


def test_resnet20_has_269722_weights_and_20_layers() -> None:
    net = resnet20()
    assert weights(net) == 269_722
    assert sum(isinstance(module, nn.Conv2d | nn.Linear) for module in net.modules()) == 20


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_shape(classes: int) -> None:
    net = resnet20(classes).eval()
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, classes)
    assert weights(net) == 269_722 + 65 * (classes - 10)


def test_names_are_those_of_published_weights() -> None:
    names = {f"conv1.{kind}" for kind in ("weight",)} | {"linear.weight", "linear.bias"}
    norms = ["bn1"]
    for stage in (1, 2, 3):
        for block in range(3):
            names |= {f"layer{stage}.{block}.conv{i}.weight" for i in (1, 2)}
            norms += [f"layer{stage}.{block}.bn{i}" for i in (1, 2)]
    names |= {f"{norm}.{kind}" for norm in norms for kind in ("weight", "bias", "running_mean", "running_var")}
    state = resnet20().state_dict()
    assert {name for name in state if not name.endswith("num_batches_tracked")} == names
    # Files made before batches were counted lack the counters; they load all the same.
    assert not any(resnet20().load_state_dict({name: state[name] for name in names}, strict=True))


def test_shortcuts_have_no_weights_and_are_identity_or_padding() -> None:
    net = resnet20()
    for name, block in (("layer1.1", net.layer1[1]), ("layer2.0", net.layer2[0]), ("layer3.0", net.layer3[0])):
        children = {child for child, _ in block.named_children()}
        assert children == {"conv1", "bn1", "conv2", "bn2"}, name
    x = torch.randn(2, 16, 8, 8)
    assert net.layer1[1].shortcut(x) is x  # type: ignore[operator]
    y = net.layer2[0].shortcut(x)  # type: ignore[operator]
    assert y.shape == (2, 32, 4, 4)
    assert torch.equal(y[:, 8:24], x[:, :, ::2, ::2])
    assert y[:, :8].abs().sum() == y[:, 24:].abs().sum() == 0


def test_a_block_whose_last_norm_is_zero_passes_its_input_through() -> None:
    block = resnet20().layer1[0].eval()
    nn.init.zeros_(block.bn2.weight)  # type: ignore[arg-type,union-attr]
    x = torch.rand(2, 16, 8, 8)
    assert torch.equal(block(x), x)


def test_stages_halve_the_resolution() -> None:
    net = resnet20().eval()
    x = torch.zeros(1, 16, 32, 32)
    for stage, shape in ((net.layer1, (16, 32, 32)), (net.layer2, (32, 16, 16)), (net.layer3, (64, 8, 8))):
        x = stage(x)
        assert x.shape[1:] == shape


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 1, 32, 32)])
def test_images_of_another_shape_are_explained(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[n, 3, 32, 32\], but got"):
        resnet20()(torch.zeros(shape))


def test_bad_classes() -> None:
    with pytest.raises(InvalidArgumentError, match="`classes` to be an integer of at least 2, but got 1"):
        resnet20(1)
