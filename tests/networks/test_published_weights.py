from __future__ import annotations

import pytest
import torch
from tests.data.real import needs, place
from torch import Tensor

from calibayes import metrics
from calibayes.networks import load_weights, resnet20


def labelled_images() -> tuple[Tensor, Tensor]:
    """CIFAR-10's test images, normalised as for ImageNet, and their labels."""
    rows = torch.frombuffer(bytearray((place("cifar10") / "test_batch.bin").read_bytes()), dtype=torch.uint8).view(
        10_000, 1 + 3 * 32 * 32
    )
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    pixels = rows[:, 1:].view(-1, 3, 32, 32) / 255
    return (pixels - mean.view(3, 1, 1)) / std.view(3, 1, 1), rows[:, 0].long()


@pytest.mark.slow
@needs("cifar10", "resnet20")
def test_resnet20_scores_as_published() -> None:
    net = resnet20()
    load_weights(net, place("resnet20"))
    images, labels = labelled_images()
    net.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with torch.inference_mode():
        batches = images.contiguous(memory_format=torch.channels_last).split(100)
        probs = torch.cat([net(batch) for batch in batches]).softmax(-1)
    assert metrics.accuracy(probs, labels) == pytest.approx(0.9173, abs=2e-4)
    assert metrics.ece(probs, labels, bins=15) == pytest.approx(0.0532, abs=2e-4)
