"""The networks on which libraries of Bayesian networks are compared: those of the other benchmarks, and two more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.training_step import BATCH, NETWORKS
from calibayes.networks import MLP, ResNetCIFAR, TextCNN

__all__ = ["FULL", "MLP_NAME", "QUICK", "QUICK_BATCH", "RESNET_NAME", "Case"]

Made = tuple[nn.Module, Tensor, int]
QUICK_BATCH = 16
MLP_NAME, _TEXT_NAME, _OWN_RESNET = NETWORKS
RESNET_NAME = f"{_OWN_RESNET} of stock layers"


@dataclass(frozen=True)
class Case:
    """A network with a batch of inputs and the number of classes, and how often a step is timed."""

    make: Callable[[], Made]
    repeats: int


class StockTextCNN(nn.Module):
    """The 20 Newsgroups CNN, of PyTorch's own layers alone: the one of calibayes has layers of its own."""

    def __init__(self, embeddings: Tensor, classes: int, channels: int = 128, pool: int = 5) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embeddings, freeze=True)
        self.features = nn.Sequential(
            nn.Conv1d(embeddings.shape[1], channels, 5),
            nn.ReLU(),
            nn.MaxPool1d(pool),
            nn.Conv1d(channels, channels, 5),
            nn.ReLU(),
            nn.MaxPool1d(pool),
            nn.Conv1d(channels, channels, 5),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, classes))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of word indices ``[n, length]``."""
        logits: Tensor = self.classifier(self.features(self.embedding(tokens).transpose(1, 2)))
        return logits


class ImageTransformer(nn.Module):
    """A transformer encoder over the 4×4 patches of an image: 64 tokens of 32×32 pixels."""

    def __init__(self, width: int, heads: int, layers: int, size: int = 32, classes: int = 10) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.positions = nn.Parameter(0.02 * torch.randn((size // 4) ** 2, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``[n, classes]`` of images ``[n, 3, size, size]``."""
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        logits: Tensor = self.head(self.encoder(tokens).mean(1))
        return logits


def _stock_text_cnn() -> Made:
    return StockTextCNN(torch.randn(20_000, 100), 20), torch.randint(20_000, (BATCH, 256)), 20


def _stock_resnet(blocks: int, images: Tensor) -> Made:
    """The ResNet of calibayes with ``nn.Conv2d`` itself in place of its own convolutions, which libraries do not know."""
    net = ResNetCIFAR(blocks=blocks)
    for parent in list(net.modules()):
        for name, part in parent.named_children():
            if isinstance(part, nn.Conv2d):
                stock = nn.Conv2d(part.in_channels, part.out_channels, 3, part.stride[0], padding=1, bias=False)
                stock.weight = part.weight
                setattr(parent, name, stock)
    return net, images, 10


def _transformer() -> Made:
    return ImageTransformer(width=128, heads=4, layers=2), torch.randn(BATCH, 3, 32, 32), 10


FULL = {
    MLP_NAME: Case(NETWORKS[MLP_NAME][0], 61),
    _TEXT_NAME: Case(NETWORKS[_TEXT_NAME][0], 25),
    "20 Newsgroups CNN of stock layers": Case(_stock_text_cnn, 25),
    RESNET_NAME: Case(lambda: _stock_resnet(3, torch.randn(BATCH, 3, 32, 32)), 21),
    "transformer encoder (2 layers, d = 128, 4 heads, 64 tokens)": Case(_transformer, 21),
}

QUICK = {
    MLP_NAME: Case(lambda: (MLP(8, [16], 3), torch.randn(QUICK_BATCH, 8), 3), 2),
    _TEXT_NAME: Case(lambda: (TextCNN(torch.randn(50, 4), 3, channels=4, pool=2), torch.randint(50, (QUICK_BATCH, 40)), 3), 2),
    "20 Newsgroups CNN of stock layers": Case(
        lambda: (StockTextCNN(torch.randn(50, 4), 3, channels=4, pool=2), torch.randint(50, (QUICK_BATCH, 40)), 3), 2
    ),
    RESNET_NAME: Case(lambda: _stock_resnet(1, torch.randn(QUICK_BATCH, 3, 8, 8)), 2),
    "transformer encoder": Case(
        lambda: (ImageTransformer(width=16, heads=2, layers=1, size=8), torch.randn(QUICK_BATCH, 3, 8, 8), 10), 2
    ),
}
