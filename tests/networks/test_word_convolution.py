from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, grad, jacfwd, jacrev, vmap

from calibayes.networks.word_convolution import WordConvolution

NAMES = ("convolution.weight", "convolution.bias", "embedding.weight")


class Net(nn.Module):
    def __init__(self, vocabulary: int = 9, dim: int = 3, channels: int = 4, width: int = 5) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dim)
        self.convolution = WordConvolution(dim, channels, width)

    def forward(self, tokens: Tensor) -> Tensor:
        maps: Tensor = self.convolution(tokens, self.embedding)
        return maps

    def values(self) -> list[Tensor]:
        return [self.get_parameter(name) for name in NAMES]

    def at(self, tokens: Tensor, *values: Tensor) -> Tensor:
        maps: Tensor = functional_call(self, dict(zip(NAMES, values, strict=True)), tokens)
        return maps


def usual(tokens: Tensor, weight: Tensor, bias: Tensor, vectors: Tensor) -> Tensor:
    return F.conv1d(vectors[tokens].transpose(-2, -1), weight, bias)


@pytest.mark.parametrize(("n", "length", "width"), [(3, 12, 5), (1, 5, 5), (4, 7, 2), (2, 6, 1), (0, 8, 5)])
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_values_and_gradients_are_those_of_the_usual_convolution(n: int, length: int, width: int, kind: torch.dtype) -> None:
    net = Net(width=width).double()
    tokens = torch.randint(1, 8, (n, length), dtype=kind)  # the words 0 and 8 do not occur
    tokens[:1, -3:] = 3
    maps, expected = net(tokens), usual(tokens.long(), *net.values())
    assert maps.shape == (n, 4, length - width + 1)
    assert torch.allclose(maps, expected, atol=1e-12)
    arrows = torch.randn_like(maps)
    gradients = (torch.autograd.grad(values, net.values(), arrows) for values in (maps, expected))
    for got, wanted in zip(*gradients, strict=True):
        assert torch.allclose(got, wanted, atol=1e-12)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch itself uses it for derivatives forward
def test_derivatives_of_first_and_second_order_backward_and_forward() -> None:
    net = Net(vocabulary=4, dim=2, channels=2, width=3).double()
    tokens = torch.tensor([[0, 1, 1, 3, 0], [3, 3, 3, 3, 3]])

    def squares(*values: Tensor) -> Tensor:
        return net.at(tokens, *values).square()

    assert gradcheck(squares, net.values(), check_forward_ad=True)
    assert gradgradcheck(squares, net.values(), check_fwd_over_rev=True, check_rev_over_rev=True)


def test_several_weights_side_by_side() -> None:
    net = Net().double()
    tokens = torch.randint(9, (3, 12))
    several = [torch.randn(6, *value.shape, dtype=torch.float64, requires_grad=True) for value in net.values()]
    maps = vmap(lambda *values: net.at(tokens, *values))(*several)
    expected = torch.stack([usual(tokens, *values) for values in zip(*several, strict=True)])
    assert torch.allclose(maps, expected, atol=1e-12)
    arrows = torch.randn_like(maps)
    gradients = (torch.autograd.grad(values, several, arrows) for values in (maps, expected))
    for got, wanted in zip(*gradients, strict=True):
        assert torch.allclose(got, wanted, atol=1e-12)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians(jacobian: Callable[..., Callable[..., Tensor]]) -> None:
    net = Net().double()
    tokens = torch.randint(9, (2, 7))
    weight, *others = net.values()
    got = jacobian(lambda weight: net.at(tokens, weight, *others))(weight)
    assert torch.allclose(got, jacobian(lambda weight: usual(tokens, weight, *others))(weight), atol=1e-12)


def test_several_texts_side_by_side() -> None:
    net = Net().double()
    tokens = torch.randint(9, (4, 12))
    weight, bias, vectors = net.values()
    each = vmap(grad(lambda weight, text: net.at(text[None], weight, bias, vectors).exp().sum()), (None, 0))(weight, tokens)
    for gradient, text in zip(each, tokens, strict=True):
        (expected,) = torch.autograd.grad(usual(text[None], weight, bias, vectors).exp().sum(), weight)
        assert torch.allclose(gradient, expected, atol=1e-12)


def test_bfloat16_autocast_rounds_but_computes_the_same() -> None:
    net = Net(channels=16)
    tokens = torch.randint(9, (3, 12))
    with torch.autocast("cpu", torch.bfloat16):
        maps = net(tokens)
    maps.float().sum().backward()
    assert torch.allclose(maps.float(), usual(tokens, *net.values()), atol=0.05)
    assert net.convolution.weight.grad is not None
    assert net.convolution.weight.grad.dtype == torch.float32


def test_where_words_cannot_be_listed_it_is_the_usual_convolution() -> None:
    maps = Net().to("meta")(torch.zeros(3, 12, dtype=torch.long, device="meta"))
    assert maps.shape == (3, 4, 8)
    assert maps.device.type == "meta"
    net, tokens = Net().double(), torch.randint(9, (3, 12))
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(tokens), net(tokens), atol=1e-12)


def test_a_word_beyond_the_vocabulary_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        Net(vocabulary=9)(torch.full((1, 8), 9))
