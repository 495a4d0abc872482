"""Small networks of every kind that a posterior must handle, each with data for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm

EXAMPLES, CLASSES = 12, 3


@dataclass(frozen=True)
class Case:
    """A network and inputs for it."""

    build: Callable[[], nn.Module]
    inputs: Callable[[], Any]

    def data(self) -> tuple[Any, Tensor]:
        return self.inputs(), torch.arange(EXAMPLES) % CLASSES


def normal(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(EXAMPLES, *shape)


def tokens(length: int = 5) -> Tensor:
    return torch.randint(0, 11, (EXAMPLES, length))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, CLASSES))


def conv1d() -> nn.Module:
    return nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, CLASSES))


def conv2d() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, CLASSES))


def conv3d() -> nn.Module:
    return nn.Sequential(nn.Conv3d(1, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, CLASSES))


def odd_convolutions() -> nn.Module:
    """Grouped, dilated, circularly padded and transposed."""
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, groups=4),
        nn.Conv2d(8, 4, 3, dilation=2, padding=2),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"),
        nn.ConvTranspose2d(4, 2, 2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2, CLASSES),
    )


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 4, padding_idx=0)
        self.bag = nn.EmbeddingBag(11, 4, mode="mean")
        self.out = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.embedding(x).sum(1) * self.bag(x))  # type: ignore[no-any-return]


def normalised() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(36, 8),
        nn.LayerNorm(8),
        nn.Dropout(0.2),
        nn.Linear(8, CLASSES),
    )


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.rnn = kind(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0].mean(1))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.encoder(x).mean(1))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """With keys of another width, so that the projections are separate weights, and a causal mask as a buffer."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True)
        self.out = nn.Linear(8, CLASSES)
        self.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1), persistent=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.out(self.attention(x, y, y, attn_mask=self.mask)[0].mean(1))  # type: ignore[no-any-return]


class Tied(nn.Module):
    """A weight in two layers, and a layer and a batch norm that have two names each."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.again = self.second
        self.norm = nn.BatchNorm1d(4)
        self.same_norm = self.norm
        self.out = nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.again(self.same_norm(self.second(self.first(x).tanh())).tanh()))  # type: ignore[no-any-return]


class FrozenBackbone(nn.Module):
    """The backbone stays in evaluation mode, as fine-tuning code does it."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU()).requires_grad_(False)
        self.head = nn.Linear(6, CLASSES)

    def train(self, mode: bool = True) -> FrozenBackbone:
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x))  # type: ignore[no-any-return]


class SeveralInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, CLASSES), nn.Linear(2, CLASSES, bias=False)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.left(a) - self.right(b)  # type: ignore[no-any-return]


class OneDict(SeveralInputs):
    def forward(self, batch: dict[str, Tensor]) -> Tensor:  # type: ignore[override]
        return super().forward(batch["a"], batch["b"])


class Buffers(nn.Module):
    """Buffers of every kind: constant, integer, non-persistent, absent, with an awkward name; one put anew by the network."""

    values: Tensor
    table: Tensor
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, CLASSES)
        self.register_buffer("values", torch.tensor([1.0, 0.5, 2.0, 0.1]))
        self.register_buffer("order", torch.tensor([2, 0, 1, 3]), persistent=False)
        self.register_buffer("table", torch.full((3,), torch.finfo(torch.float32).min))
        self.register_buffer("absent", None)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear((x - 0.01 * self.seen)[:, self.get_buffer("order")] * self.values)
        if self.training:
            self.seen = 0.9 * self.seen + 0.1 * x.mean(0)
        return torch.maximum(logits, self.table)


def parametrised() -> nn.Module:
    return nn.Sequential(
        weight_norm(nn.Linear(4, 6)),
        nn.Tanh(),
        spectral_norm(nn.Linear(6, 6)),
        nn.Tanh(),
        orthogonal(nn.Linear(6, 5)),
        nn.Linear(5, CLASSES),
    )


def compiled_twice() -> nn.Module:
    """Wrapped by ``torch.compile`` as a whole, and around a part, and around a part of that; nothing is compiled yet."""
    inner = nn.Sequential(compiled(nn.Linear(4, 6)), nn.Tanh())
    return compiled(nn.Sequential(compiled(inner), nn.Linear(6, CLASSES)))


def compiled(module: nn.Module) -> nn.Module:
    wrapped: Any = torch.compile(module, backend=refusing)
    return wrapped  # type: ignore[no-any-return]


def refusing(*_: Any) -> Any:
    raise AssertionError("nothing should be compiled")


CASES = {
    "mlp": Case(mlp, normal(4)),
    "conv1d": Case(conv1d, normal(2, 6)),
    "conv2d": Case(conv2d, normal(2, 6, 6)),
    "conv3d": Case(conv3d, normal(1, 3, 3, 3)),
    "grouped, dilated, circular, transposed": Case(odd_convolutions, normal(4, 6, 6)),
    "embedding and bag": Case(Embedded, tokens),
    "batch, group, layer norm and dropout": Case(normalised, normal(2, 3, 3)),
    "lstm": Case(lambda: Recurrent(nn.LSTM), normal(4, 3)),
    "gru": Case(lambda: Recurrent(nn.GRU), normal(4, 3)),
    "transformer": Case(Transformer, normal(4, 8)),
    "attention": Case(Attention, lambda: (normal(4, 8)(), normal(4, 6)())),
    "tied": Case(Tied, normal(4)),
    "frozen backbone": Case(FrozenBackbone, normal(4)),
    "several inputs": Case(SeveralInputs, lambda: (normal(4)(), normal(2)())),
    "named inputs": Case(SeveralInputs, lambda: {"b": normal(2)(), "a": normal(4)()}),
    "one dict as input": Case(OneDict, lambda: ({"b": normal(2)(), "a": normal(4)()},)),
    "bare linear": Case(lambda: nn.Linear(4, CLASSES), normal(4)),
    "linear without bias": Case(lambda: nn.Linear(4, CLASSES, bias=False), normal(4)),
    "float64": Case(lambda: mlp().double(), lambda: normal(4)().double()),
    "buffers": Case(Buffers, normal(4)),
    "parametrised": Case(parametrised, normal(4)),
    "compiled": Case(compiled_twice, normal(4)),
}
