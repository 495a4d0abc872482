"""Networks of word counts: the weights are those of scikit-learn, and neither order nor padding matters."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from calibayes.errors import InvalidArgumentError
from calibayes.networks.text_network import TextLinear, TextNetwork
from calibayes.networks.word_weights import WordWeights, weighted_sum

WORDS = 12


def texts(count: int = 40, seed: int = 0) -> torch.Tensor:
    """Word indices, each once, after padding."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, 6), dtype=np.int64)
    for row in rows:
        size = rng.integers(0, 7)
        row[6 - size :] = rng.permutation(np.arange(1, WORDS - 1))[:size]  # the last word occurs nowhere
    return torch.from_numpy(rows)


def test_the_weights_are_those_of_scikit_learn() -> None:
    tokens = texts()
    weights = WordWeights(WORDS).fit(tokens)
    written = [" ".join(f"w{index}" for index in row if index) for row in tokens.tolist()]
    vocabulary = {f"w{index}": index for index in range(WORDS)}
    expected = TfidfVectorizer(vocabulary=vocabulary, binary=True, token_pattern=r"\S+").fit_transform(written)
    found = weights.matrix(tokens)
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)


def test_a_repeated_word_counts_once_in_its_rarity() -> None:
    once, twice = (WordWeights(4).fit(torch.tensor([[0, 1, last], [0, 0, 2]])) for last in (0, 1))
    assert torch.equal(once.rarity, twice.rarity)


def test_the_weighted_sum_is_a_matrix_product() -> None:
    tokens, vectors = texts(), torch.randn(WORDS, 5, generator=torch.Generator().manual_seed(0))
    layer = WordWeights(WORDS).fit(tokens)
    expected = torch.from_numpy(layer.matrix(tokens).toarray()) @ vectors
    assert torch.allclose(weighted_sum(tokens, layer(tokens), vectors), expected, atol=1e-6)


@pytest.mark.parametrize("kind", [TextNetwork, TextLinear])
def test_neither_order_nor_padding_matters(kind: type[TextNetwork] | type[TextLinear]) -> None:
    torch.manual_seed(0)
    tokens = texts()
    net = kind(WordWeights(WORDS).fit(tokens), 3).eval()
    if isinstance(net, TextLinear):
        torch.nn.init.normal_(net.coefficients)
    outputs = net(tokens)
    assert outputs.std() > 0.01
    assert torch.allclose(net(tokens.flip(1)), outputs, atol=1e-6)
    assert torch.allclose(net(torch.nn.functional.pad(tokens, (3, 2))), outputs, atol=1e-6)
    assert torch.allclose(outputs[tokens.sum(1) == 0], net(torch.zeros(1, 1, dtype=torch.long)), atol=1e-6)


def test_words_are_hidden_in_training_alone_and_the_others_keep_their_weights() -> None:
    torch.manual_seed(0)
    tokens = torch.arange(1, WORDS).repeat(2000, 1)
    net = TextNetwork(WordWeights(WORDS), 2, dim=WORDS, word_dropout=0.3, dropout=0.0)
    with torch.no_grad():
        net.vectors.copy_(torch.eye(WORDS))
        net.last.weight.copy_(torch.ones(2, WORDS))
        net.last.bias.zero_()
    whole = (WORDS - 1) ** 0.5  # as many words of equal weights, whose squares sum to one
    assert torch.allclose(net.eval()(tokens), torch.tensor(whole), atol=1e-5)
    hidden = net.train()(tokens)[:, 0].detach()
    counts = hidden * whole
    assert torch.allclose(counts, counts.round(), atol=1e-4)
    assert float(hidden.mean()) == pytest.approx(0.7 * whole, rel=0.02)
    assert hidden.unique().numel() > 3


def test_the_weights_are_copied_and_not_trained() -> None:
    layer = WordWeights(WORDS).fit(texts())
    net = TextNetwork(layer, 2)
    assert "weights.rarity" not in dict(net.named_parameters())
    layer.rarity.zero_()
    assert bool((net.weights.rarity > 0).all())


def test_other_shapes_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Expected word indices of shape \[n, length\], but got \[3\]"):
        WordWeights(4)(torch.tensor([1, 2, 3]))
    with pytest.raises(InvalidArgumentError, match="`words` to be an integer of at least 2, but got 1"):
        WordWeights(1)
