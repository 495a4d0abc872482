from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call, vmap

from calibayes import MeanField
from calibayes.errors import InvalidArgumentError
from calibayes.networks import TextCNN


def trainable(net: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters() if weight.requires_grad)


def weights(dim: int, classes: int) -> int:
    return (128 * dim * 5 + 128) + 2 * (128 * 128 * 5 + 128) + (128 * 128 + 128) + (128 * classes + classes)


def test_given_vectors_are_copied_and_frozen() -> None:
    vectors = torch.randn(50, 30)
    net = TextCNN(vectors, classes=4)
    assert trainable(net) == weights(30, 4)
    assert not net.embedding.weight.requires_grad
    assert torch.equal(net.embedding.weight, vectors)
    vectors.zero_()
    assert net.embedding.weight.abs().sum() > 0


def test_given_sizes_are_drawn_and_trained() -> None:
    net = TextCNN((50, 30))
    assert trainable(net) == weights(30, 20) + 50 * 30
    net(torch.zeros(1, 149, dtype=torch.long)).sum().backward()
    assert net.embedding.weight.grad is not None


def test_half_precision_vectors_are_widened() -> None:
    net = TextCNN(torch.randn(50, 30).half())
    assert net(torch.zeros(2, 160, dtype=torch.long)).dtype == torch.float32


@pytest.mark.parametrize("pooling", ["max", "average"])
@pytest.mark.parametrize("sizes", [{}, {"channels": 6, "hidden": 9}])
def test_computes_what_it_says(pooling: Any, sizes: Any) -> None:
    net = TextCNN(torch.randn(50, 8), classes=3, pooling=pooling, **sizes).double()
    tokens = torch.randint(50, (2, 300))
    p = dict(net.named_parameters())
    x = p["embedding.weight"][tokens].mT
    x = F.max_pool1d(F.conv1d(x, p["features.0.weight"], p["features.0.bias"]).relu(), 5)
    x = F.max_pool1d(F.conv1d(x, p["features.3.weight"], p["features.3.bias"]).relu(), 5)
    x = F.conv1d(x, p["features.6.weight"], p["features.6.bias"]).relu()
    assert x.shape[-1] == 7  # 300 → 296 → 59 → 55 → 11 → 7
    x = x.max(-1).values if pooling == "max" else x.sum(-1) / x.shape[-1]
    x = (x @ p["classifier.0.weight"].T + p["classifier.0.bias"]).relu()
    x = x @ p["classifier.2.weight"].T + p["classifier.2.bias"]
    assert torch.allclose(net(tokens), x, atol=1e-12)


def test_the_two_poolings_differ() -> None:
    torch.manual_seed(0)
    first, second = TextCNN((50, 8), pooling="max"), TextCNN((50, 8), pooling="average")
    second.load_state_dict(first.state_dict())
    tokens = torch.randint(50, (2, 400))
    assert not torch.allclose(first(tokens), second(tokens), atol=1e-4)
    shortest = tokens[:, :149]  # one position is left: nothing to pool
    assert torch.allclose(first(shortest), second(shortest), atol=1e-6)


def test_the_shortest_text_is_149_words() -> None:
    net = TextCNN((50, 8))
    assert net(torch.zeros(1, 149, dtype=torch.long)).shape == (1, 20)
    with pytest.raises(InvalidArgumentError, match=r"at least 149, .* but got \[1, 148\]. Pad"):
        net(torch.zeros(1, 148, dtype=torch.long))


@pytest.mark.parametrize(("pool", "shortest"), [(1, 13), (2, 32), (3, 61), (4, 100), (5, 149), (6, 208)])
def test_a_smaller_pool_takes_shorter_texts(pool: int, shortest: int) -> None:
    net = TextCNN((50, 8), channels=4, pool=pool)
    assert net.shortest == shortest
    assert net(torch.zeros(1, shortest, dtype=torch.long)).shape == (1, 20)
    with pytest.raises(InvalidArgumentError, match=f"at least {shortest}, .* a smaller `pool` than {pool}"):
        net(torch.zeros(1, shortest - 1, dtype=torch.long))


def test_sizes_of_the_layers() -> None:
    net = TextCNN((50, 8), classes=7, channels=6, hidden=9)
    assert [list(weight.shape) for name, weight in net.named_parameters() if name.endswith("weight")] == [
        [50, 8], [6, 8, 5], [6, 6, 5], [6, 6, 5], [9, 6], [7, 9],
    ]  # fmt: skip


@pytest.mark.parametrize("pooling", ["max", "average"])
@pytest.mark.parametrize("pool", [1, 2, 3])
def test_positions_of_padding_alone_do_not_count(pooling: Any, pool: int) -> None:
    net = TextCNN(torch.randn(50, 8), pooling=pooling, channels=6, pool=pool, padding=0).double()
    counting = TextCNN(net.embedding.weight.detach(), pooling=pooling, channels=6, pool=pool).double()
    counting.load_state_dict(net.state_dict())
    text = torch.randint(1, 50, (3, net.shortest + 4 * pool**2))
    assert torch.equal(net(text), counting(text))
    short = F.pad(text, (0, net.shortest))  # the last position that sees a word is there, and none is missing
    long = F.pad(short, (0, 50 * pool**2))
    assert torch.allclose(net(long), net(short), atol=1e-12)
    if pooling == "average":
        assert not torch.allclose(counting(long), counting(short), atol=1e-6)


@pytest.mark.parametrize("pooling", ["max", "average"])
def test_a_text_of_padding_alone_is_a_vector_of_zeros(pooling: Any) -> None:
    net = TextCNN((50, 8), pooling=pooling, pool=2, padding=3)
    logits = net(torch.full((2, 40), 3))
    assert torch.equal(logits, net.classifier(torch.zeros(2, 128)))
    logits.sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in net.parameters())


@pytest.mark.parametrize("pooling", ["max", "average"])
def test_samples_side_by_side_are_those_in_a_loop(pooling: Any) -> None:
    net = TextCNN(torch.randn(50, 8), pooling=pooling, channels=6, pool=2, padding=0).double()
    tokens = torch.randint(50, (3, 60))
    samples = MeanField(net, init_std=0.3).sample(4, generator=torch.Generator().manual_seed(1))
    together = vmap(lambda weights: functional_call(net, weights, tokens))(samples)
    each = [functional_call(net, {name: value[k] for name, value in samples.items()}, tokens) for k in range(4)]
    assert torch.allclose(together, torch.stack(each), atol=1e-12)
    assert not torch.allclose(each[0], each[1], atol=1e-3)


def test_the_layers_lose_no_gradient() -> None:
    net = TextCNN((20, 3), classes=2, channels=2, hidden=3, pool=2).double()
    parameters = dict(net.named_parameters())
    tokens = torch.randint(20, (2, 34))

    def logits(*values: Tensor) -> Tensor:
        return functional_call(net, dict(zip(parameters, values, strict=True)), tokens)  # type: ignore[no-any-return]

    assert gradcheck(logits, tuple(parameters.values()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embeddings": (50, 8), "pooling": "min"}, "'max' or 'average', but got 'min'"),
        ({"embeddings": (50, 0)}, "`dim` .* but got 0"),
        ({"embeddings": (50,)}, r"pair \(vocabulary, dim\), but got \(50,\)"),
        ({"embeddings": 50}, "but got 50"),
        ({"embeddings": torch.zeros(50)}, r"but got \[50\] of torch.float32"),
        ({"embeddings": torch.zeros(5, 8).long()}, "of torch.int64"),
        ({"embeddings": (50, 8), "classes": 1}, "`classes` .* but got 1"),
        ({"embeddings": (50, 8), "channels": 0}, "`channels` .* but got 0"),
        ({"embeddings": (50, 8), "hidden": 2.5}, "`hidden` .* but got 2.5"),
        ({"embeddings": (50, 8), "pool": 0}, "`pool` .* but got 0"),
        ({"embeddings": (50, 8), "padding": -1}, "`padding` .* but got -1"),
        ({"embeddings": (50, 8), "padding": 50}, "`padding` to be a word index below 50, .* but got 50"),
    ],
)
def test_bad_settings_are_quoted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        TextCNN(**arguments)
