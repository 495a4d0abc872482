"""Dropout that stays on at prediction: each sample is one network for all examples."""

from __future__ import annotations

import copy
import itertools
import math
from pathlib import Path

import pytest
import torch
from tests.posterior.zoo import CASES, Transformer
from torch import Tensor, nn

import calibayes as cb
from calibayes.errors import EmptySelectionError, InvalidArgumentError, ModelFileError, UnsupportedNetworkError


def network(p: float = 0.4) -> nn.Sequential:
    return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(p), nn.Linear(6, 3)).double()


class Texts(nn.Module):
    """The share of each of 40 words in a text, as its logits: what is dropped can be read from the outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = cb.InputDropout(0.3, "words", replacement=1)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, words: Tensor) -> Tensor:
        return nn.functional.one_hot(self.dropout(words), 40).double().sum(1) * self.scale


class Reveals(nn.Module):
    """Applies a layer to ones, so that the network's outputs are its mask."""

    def __init__(self, layer: nn.Module, *shape: int) -> None:
        super().__init__()
        self.layer, self.shape, self.scale = layer, shape, nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x[:, :1].view(-1, *[1] * len(self.shape)).expand(-1, *self.shape) * self.scale).flatten(1)  # type: ignore[no-any-return]


def outputs(posterior: cb.Posterior, x: Tensor, samples: int, seed: int = 0) -> Tensor:
    """Every sample's outputs ``[S, n, K]``."""
    with torch.no_grad(), posterior.evaluating():
        return torch.stack([each.outputs[0] for each in posterior.outputs([x], samples, seed)])


def test_the_mean_over_samples_is_the_average_over_all_masks() -> None:
    net, x = network(), torch.randn(7, 5, dtype=torch.float64)
    result = cb.predict(cb.MCDropout(net), x, samples=4000, keep_samples=True)
    hidden = net.eval()[:3](x)
    expected = torch.zeros(7, 3, dtype=torch.float64)
    for mask in itertools.product([0, 1], repeat=6):
        kept = torch.tensor(mask, dtype=torch.float64)
        weight = 0.6 ** kept.sum() * 0.4 ** (6 - kept.sum())
        expected += weight * net[4](hidden * kept / 0.6).softmax(-1)
    assert result.samples is not None
    error = result.samples.std(0) / math.sqrt(4000)
    assert bool(((result.probs - expected).abs() < 5 * error).all())


@pytest.mark.parametrize(
    ("layer", "shape", "units"),
    [
        (nn.Dropout(0.3), (8,), (8,)),
        (nn.Dropout(0.3), (3, 4), (1, 4)),  # a sequence: the same features at all positions
        (nn.Dropout(0.3), (2, 3, 4), (2, 3, 4)),
        (nn.Dropout1d(0.3), (5, 4), (5, 1)),
        (nn.Dropout2d(0.3), (5, 2, 2), (5, 1, 1)),
        (nn.Dropout3d(0.3), (5, 2, 2, 2), (5, 1, 1, 1)),
        (nn.AlphaDropout(0.3), (8,), (8,)),
        (nn.FeatureAlphaDropout(0.3), (5, 2, 2), (5, 1, 1)),
        (cb.InputDropout(0.3), (8,), (8,)),
        (cb.InputDropout(0.3, "patches", patch=2), (2, 4, 4), (1, 4, 4)),
    ],
)
def test_units_are_kept_at_the_layers_rate_with_its_values(layer: nn.Module, shape: tuple[int, ...], units: list[int]) -> None:
    posterior, x = cb.MCDropout(Reveals(layer, *shape)), torch.ones(3, 2, dtype=torch.float64)
    result = outputs(posterior, x, 500)
    assert torch.equal(result, result[:, :1].expand_as(result))  # the same for all examples
    masks = result[:, 0].view(500, *shape)
    trained = layer.train()(torch.ones(64, *shape, dtype=torch.float64)).unique()
    torch.testing.assert_close(masks.unique(), trained)  # dropped and kept activations are those of training
    for axis, size in enumerate(units):
        if size == 1:
            assert torch.equal(masks, masks.select(axis + 1, 0).unsqueeze(axis + 1).expand_as(masks))
            masks = masks.narrow(axis + 1, 0, 1)
    if isinstance(layer, cb.InputDropout) and layer.of == "patches":
        masks = masks[..., ::2, ::2]
    rate = (masks == masks.min()).double().mean(0)
    assert float((rate - 0.3).abs().max()) < 4.5 * math.sqrt(0.3 * 0.7 / 500)
    assert abs(float(rate.mean()) - 0.3) < 4.5 * math.sqrt(0.3 * 0.7 / 500 / rate.numel())


def test_a_word_is_dropped_in_all_texts_or_in_none() -> None:
    words = torch.randint(0, 40, (30, 60))
    counts = nn.functional.one_hot(words, 40).double().sum(1)
    result = outputs(cb.MCDropout(Texts()), words, 600)
    assert torch.equal(result[..., 0], counts[:, 0].expand(600, -1))  # padding stays
    types = torch.arange(2, 40)
    hidden = (result[..., types] == 0) & (counts[:, types] > 0)
    visible = result[..., types] == counts[:, types]
    assert bool((hidden | visible).all())
    some = counts[:, types] > 0
    dropped = hidden.any(1)
    assert torch.equal(hidden, dropped.unsqueeze(1) & some)
    # Independent of each other, each with probability 0.3: the number of dropped types is binomial.
    number = dropped.double().sum(1)
    assert abs(float(number.mean()) - 38 * 0.3) < 4 * math.sqrt(38 * 0.21 / 600)
    assert float(number.var()) == pytest.approx(38 * 0.21, rel=4 * math.sqrt(2 / 600))


def test_batches_of_any_size_and_length_agree() -> None:
    layer, x = cb.MCDropout(CASES["batch, group, layer norm and dropout"].build()), torch.randn(11, 2, 3, 3)
    one, other = (cb.predict(layer, x, samples=6, batch_size=size, keep_samples=True) for size in (11, 3))
    assert one.samples is not None
    assert other.samples is not None
    torch.testing.assert_close(one.samples, other.samples)
    net = nn.Sequential(nn.Embedding(9, 4), nn.Dropout(0.5), nn.Linear(4, 3))
    posterior = cb.MCDropout(_Pooled(net))
    words = torch.randint(0, 9, (4, 7))
    first = outputs(posterior, words, 5)
    repeated = outputs(posterior, torch.cat([words, words], 1), 5)  # the mean over positions is the same, whatever the length
    torch.testing.assert_close(first, repeated)


class _Pooled(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).mean(1)  # type: ignore[no-any-return]


def test_a_layer_that_is_used_twice_has_two_masks() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout, self.scale = nn.Dropout(0.5), nn.Parameter(torch.ones(()))

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([self.dropout(x), self.dropout(x)], 1) * self.scale

    result = outputs(cb.MCDropout(Twice()), torch.ones(2, 30), 200)
    first, second = result[..., :30], result[..., 30:]
    agreement = float((first == second).double().mean())
    assert agreement == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(200 * 30))
    assert torch.equal(result, outputs(cb.MCDropout(Twice()), torch.ones(2, 30), 200))  # every pass starts anew


def test_the_same_seed_gives_the_same_bits_and_leaves_no_trace() -> None:
    posterior, x = cb.MCDropout(network()), torch.randn(6, 5, dtype=torch.float64)
    fused, state = torch.backends.mha.get_fastpath_enabled(), torch.get_rng_state()
    one, other = (cb.predict(posterior, x, samples=5, seed=2) for _ in range(2))
    assert torch.equal(one.probs, other.probs)
    assert not torch.equal(one.probs, cb.predict(posterior, x, samples=5, seed=3).probs)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.backends.mha.get_fastpath_enabled() == fused
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in posterior.structure().modules())
    copied = cb.predict(copy.deepcopy(posterior), x, samples=5, seed=2)
    assert torch.equal(copied.probs, one.probs)


def test_the_mean_is_the_network_without_dropout() -> None:
    net, x = network(), torch.randn(6, 5, dtype=torch.float64)
    expected = net.eval()(x)
    torch.testing.assert_close(cb.predict(cb.MCDropout(net), x, samples="mean").probs, expected.softmax(-1))
    torch.testing.assert_close(cb.MCDropout(net)(x), expected)


def test_training_is_that_of_a_point() -> None:
    net, data = network(), (torch.randn(60, 5, dtype=torch.float64), torch.arange(60) % 3)
    one, other = cb.MCDropout(net), cb.Point(net)
    for posterior in (one, other):
        cb.fit(posterior, data, cb.Objective(lam=3.0), epochs=3, batch_size=20)
    assert torch.equal(one.groups[0].mean(), other.groups[0].mean())
    moved = cb.MCDropout.from_point(other)
    assert torch.equal(cb.predict(moved, data[0]).probs, cb.predict(one, data[0]).probs)


def test_it_resumes_with_the_same_bits(tmp_path: Path) -> None:
    net, data = network(), (torch.randn(60, 5, dtype=torch.float64), torch.arange(60) % 3)
    whole, parts = cb.MCDropout(net), cb.MCDropout(net)
    cb.fit(whole, data, cb.Objective(), epochs=4, batch_size=20, validation=data)
    for epochs in (2, 4):
        parts = cb.MCDropout(net)
        cb.fit(parts, data, cb.Objective(), epochs=epochs, batch_size=20, validation=data, checkpoint=tmp_path)
    assert torch.equal(cb.predict(whole, data[0]).probs, cb.predict(parts, data[0]).probs)


def test_files_keep_which_layers_stay_on(tmp_path: Path) -> None:
    net = nn.Sequential(cb.InputDropout(0.2), network())
    posterior, x = cb.MCDropout(net, layers="1.*"), torch.randn(6, 5, dtype=torch.float64)
    assert posterior.layers == {"1.3": 0.4}
    cb.save(posterior, tmp_path / "m.safetensors")
    loaded = cb.load(tmp_path / "m.safetensors", nn.Sequential(cb.InputDropout(0.2), network()))
    assert isinstance(loaded, cb.MCDropout)
    assert loaded.layers == posterior.layers
    assert torch.equal(cb.predict(loaded, x).probs, cb.predict(posterior, x).probs)
    with pytest.raises(ModelFileError, match=r"'1.3' has p=0.4 in the file and p=0.1 in the network"):
        cb.load(tmp_path / "m.safetensors", nn.Sequential(cb.InputDropout(0.2), network(0.1)))


def test_members_of_an_ensemble_have_masks_of_their_own(tmp_path: Path) -> None:
    net, x = network(), torch.randn(6, 5, dtype=torch.float64)
    ensemble = cb.Ensemble([cb.MCDropout(net), cb.MCDropout(net), cb.Point(net)])
    result = cb.predict(ensemble, x, samples=12, keep_samples=True)
    assert result.samples is not None
    assert result.samples.shape[0] == 4 + 4 + 1
    assert not torch.equal(result.samples[:4], result.samples[4:8])
    cb.save(ensemble, tmp_path / "m.safetensors")
    assert torch.equal(cb.predict(cb.load(tmp_path / "m.safetensors", net), x, samples=12).probs, result.probs)


def test_dropout_inside_attention_stays_off_and_the_audit_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    posterior, x = cb.MCDropout(Transformer(), layers="encoder.*"), torch.randn(5, 4, 8)
    posterior.audit()
    shown = capsys.readouterr().out
    assert "stays on at prediction, with one mask per sample for all examples: 'encoder.layers.0.dropout' (p=0.1)" in shown
    assert "Dropout inside these is off at prediction" in shown
    assert "'encoder.layers.1.self_attn' (p=0.1)" in shown
    result = cb.predict(posterior, x, samples=8)
    assert bool((result.epistemic > 0).all())  # PyTorch's fused layers would leave dropout out
    torch.testing.assert_close(result.probs, cb.predict(posterior, x, samples=8, batch_size=2).probs)


def test_dropout_that_was_switched_off_stays_off() -> None:
    net = nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.5).eval(), nn.Dropout(0.2), nn.Linear(6, 3))
    assert cb.MCDropout(net).layers == {"2": 0.2}
    assert cb.MCDropout(net, layers="*").layers == {"1": 0.5, "2": 0.2}
    assert cb.MCDropout(net.eval()).layers == {"1": 0.5, "2": 0.2}
    with pytest.raises(EmptySelectionError, match=r"'1' \(p=0.5\)\) are in evaluation mode"):
        cb.MCDropout(nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.5).eval(), nn.Linear(6, 3)))


def test_refusals() -> None:
    with pytest.raises(UnsupportedNetworkError, match=r"Sequential has no dropout layer with p > 0, .*calibayes.InputDropout"):
        cb.MCDropout(network(0.0))
    lstm = nn.LSTM(3, 4, num_layers=2, dropout=0.2)
    with pytest.raises(UnsupportedNetworkError, match=r"inside '0' \(p=0.2\) cannot be sampled"):
        cb.MCDropout(nn.Sequential(lstm))
    with pytest.raises(EmptySelectionError, match=r"'head\.\*' matches none of the dropout layers '3' \(p=0.4\)"):
        cb.MCDropout(network(), layers=["3", "head.*"])
    with pytest.raises(EmptySelectionError, match="`layers` is empty"):
        cb.MCDropout(network(), layers=[])
    with pytest.raises(InvalidArgumentError, match=r"its dropout \('0'\) is off when it predicts"):
        cb.predict(cb.Point(nn.Sequential(cb.InputDropout(0.2), nn.Linear(2, 2))), torch.randn(3, 2), samples=5)
