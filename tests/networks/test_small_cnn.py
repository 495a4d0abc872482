from __future__ import annotations

import pytest
import torch
from torch import nn

from calibayes.errors import InvalidArgumentError
from calibayes.networks import SmallCNN


@pytest.mark.parametrize("classes", [2, 10, 47])
def test_shape_and_number_of_weights(classes: int) -> None:
    net = SmallCNN(classes)
    assert net(torch.zeros(3, 1, 28, 28)).shape == (3, classes)
    expected = (16 * 9 + 16) + (32 * 16 * 9 + 32) + (800 * 64 + 64) + (64 * classes + classes)
    assert sum(weight.numel() for weight in net.parameters()) == expected


def test_depends_on_its_weights_alone() -> None:
    torch.manual_seed(0)
    net = SmallCNN()
    assert not list(net.buffers())
    assert not any(isinstance(module, nn.Dropout | nn.BatchNorm2d) for module in net.modules())
    x = torch.randn(4, 1, 28, 28)
    assert torch.equal(net.train()(x), net.eval()(x))
    assert torch.allclose(net(x)[:1], net(x[:1]), atol=1e-6), "an example does not see the others of its batch"


@pytest.mark.parametrize("shape", [(2, 28, 28), (2, 3, 28, 28), (2, 1, 32, 32)])
def test_images_of_another_shape_are_explained(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[n, 1, 28, 28\], but got \[2, "):
        SmallCNN()(torch.zeros(shape))
