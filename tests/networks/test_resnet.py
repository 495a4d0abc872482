from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from calibayes import MeanField
from calibayes.errors import InvalidArgumentError
from calibayes.networks import ResNet, resnet18
from calibayes.networks.residual import convolution


def weights(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters())


def published_shapes() -> dict[str, list[int]]:
    """The entries of the state dict of torchvision's resnet18, in their order."""
    shapes: dict[str, list[int]] = {}

    def norm(name: str, channels: int) -> None:
        for kind in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{name}.{kind}"] = [channels]
        shapes[f"{name}.num_batches_tracked"] = []

    shapes["conv1.weight"] = [64, 3, 7, 7]
    norm("bn1", 64)
    inputs = 64
    for stage, outputs in enumerate((64, 128, 256, 512), start=1):
        for block in (0, 1):
            name = f"layer{stage}.{block}"
            shapes[f"{name}.conv1.weight"] = [outputs, inputs, 3, 3]
            norm(f"{name}.bn1", outputs)
            shapes[f"{name}.conv2.weight"] = [outputs, outputs, 3, 3]
            norm(f"{name}.bn2", outputs)
            if inputs != outputs:
                shapes[f"{name}.downsample.0.weight"] = [outputs, inputs, 1, 1]
                norm(f"{name}.downsample.1", outputs)
            inputs = outputs
    return shapes | {"fc.weight": [1000, 512], "fc.bias": [1000]}


def test_names_and_shapes_are_those_of_published_weights() -> None:
    net = resnet18(classes=1000)
    shapes = published_shapes()
    assert len(shapes) == 122
    assert [(name, list(value.shape)) for name, value in net.state_dict().items()] == list(shapes.items())
    assert weights(net) == 11_689_512


def test_stages_of_other_lengths() -> None:
    assert weights(ResNet((3, 4, 6, 3), classes=1000)) == 21_797_672  # ResNet-34, as published


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("stem", ["imagenet", "cifar"])
def test_numbers_of_weights(classes: int, stem: Any) -> None:
    other_stem = 3 * 64 * (49 - 9) if stem == "cifar" else 0
    assert weights(resnet18(classes, stem)) == 11_689_512 - 513 * (1000 - classes) - other_stem


def reference(state: dict[str, Tensor], x: Tensor, small: bool) -> Tensor:
    """The network written out with functions, in evaluation mode."""

    def norm(x: Tensor, name: str) -> Tensor:
        mean, var = state[f"{name}.running_mean"], state[f"{name}.running_var"]
        scaled = (x - mean.view(-1, 1, 1)) / (var.view(-1, 1, 1) + 1e-5).sqrt()
        return scaled * state[f"{name}.weight"].view(-1, 1, 1) + state[f"{name}.bias"].view(-1, 1, 1)

    if small:
        x = norm(F.conv2d(x, state["conv1.weight"], padding=1), "bn1").relu()
    else:
        x = F.max_pool2d(norm(F.conv2d(x, state["conv1.weight"], None, 2, 3), "bn1").relu(), 3, 2, 1)
    for stage in (1, 2, 3, 4):
        for block in (0, 1):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            y = norm(F.conv2d(x, state[f"{name}.conv1.weight"], None, stride, 1), f"{name}.bn1").relu()
            y = norm(F.conv2d(y, state[f"{name}.conv2.weight"], None, 1, 1), f"{name}.bn2")
            if stride == 2:
                x = norm(F.conv2d(x, state[f"{name}.downsample.0.weight"], None, 2), f"{name}.downsample.1")
            x = (x + y).relu()
    return x.flatten(2).mean(-1) @ state["fc.weight"].T + state["fc.bias"]


@pytest.mark.parametrize("stem", ["imagenet", "cifar"])
def test_computes_what_the_article_says(stem: Any) -> None:
    net = resnet18(7, stem).eval()
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if "bn" in name or "downsample.1" in name:  # norms that do something
                value.copy_(torch.rand_like(value) + 0.5 if value.is_floating_point() else value)
        x = torch.randn(2, 3, 32, 40)
        assert torch.allclose(net(x), reference(net.state_dict(), x, small=stem == "cifar"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("stem", "sides"),
    [
        ("imagenet", [224, 56, 56, 28, 14, 7]),
        ("imagenet", [32, 8, 8, 4, 2, 1]),
        ("cifar", [32, 32, 32, 16, 8, 4]),
        ("cifar", [64, 64, 64, 32, 16, 8]),
    ],
)
def test_resolutions(stem: Any, sides: list[int]) -> None:
    net = resnet18(stem=stem).eval()
    seen = []
    for part in (net.maxpool, net.layer1, net.layer2, net.layer3, net.layer4):
        part.register_forward_hook(lambda _, inputs, output: seen.append(output.shape[-1]))
    with torch.no_grad():
        logits = net(torch.randn(1, 3, sides[0], sides[0]))
    assert seen == sides[1:]
    assert logits.shape == (1, 10)
    assert logits.isfinite().all()


def test_a_new_network_neither_fades_nor_explodes() -> None:
    net = resnet18()
    logits = net(torch.randn(16, 3, 32, 32))
    assert 0.05 < logits.std() < 5
    F.cross_entropy(logits, torch.arange(16) % 10).backward()
    norms = {name: float(weight.grad.norm()) for name, weight in net.named_parameters() if weight.grad is not None}
    assert len(norms) == 62
    assert all(0 < norm < 100 for norm in norms.values()), norms


def test_norms_are_not_bayesian_by_default() -> None:
    posterior = MeanField(resnet18())
    norms = sum(w.numel() for m in resnet18().modules() if isinstance(m, nn.BatchNorm2d) for w in m.parameters())
    assert posterior.num_bayesian == weights(resnet18()) - norms


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: resnet18(1), "`classes` to be an integer of at least 2, but got 1"),
        (lambda: resnet18(stem="small"), "'imagenet' or 'cifar', but got 'small'"),  # type: ignore[arg-type]
        (lambda: ResNet((2, 2, 2)), r"four numbers, one for each stage, but got \(2, 2, 2\)"),
        (lambda: ResNet("2222"), "four numbers, .* but got '2222'"),  # type: ignore[arg-type]
        (lambda: ResNet(18), "four numbers, .* but got 18"),  # type: ignore[arg-type]
        (lambda: ResNet((2, 0, 2, 2)), r"`blocks\[1\]` .* but got 0"),
        (lambda: resnet18()(torch.zeros(3, 32, 32)), r"\[n, 3, height, width\], but got \[3, 32, 32\]"),
        (lambda: resnet18()(torch.zeros(2, 1, 32, 32)), r"but got \[2, 1, 32, 32\]"),
    ],
)
def test_mistakes_are_quoted(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 3), (4, 4)])
def test_convolutions_of_tiny_maps_are_convolutions(stride: int, size: tuple[int, int]) -> None:
    layer = convolution(5, 7, stride).double()
    x = torch.randn(6, 5, *size, dtype=torch.float64, requires_grad=True)
    with_matrix = layer(x)
    usual = F.conv2d(x, layer.weight, stride=stride, padding=1)
    torch.testing.assert_close(with_matrix, usual, rtol=1e-12, atol=1e-12)
    direction = torch.randn_like(usual)
    for mine, theirs in zip(
        torch.autograd.grad(with_matrix, (x, layer.weight), direction),
        torch.autograd.grad(usual, (x, layer.weight), direction),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-12)
