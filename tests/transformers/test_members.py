"""Members of an ensemble are fine-tuned as each of them is alone, and any method fine-tunes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

pytest.importorskip("transformers")

from tests.transformers.small import Sentences, arguments, bert, trainer, weights
from transformers import AutoModelForSequenceClassification

import calibayes as cb
from calibayes.data.sources import Batch
from calibayes.errors import CheckpointError, InvalidArgumentError
from calibayes.posterior.ensemble import member_seed
from calibayes.transformers import CalibayesTrainer, load, member_steps

pytestmark = pytest.mark.transformers


def member(kind: str, index: int) -> cb.Point | cb.MeanField:
    net = bert(dropout=0.2)
    with torch.no_grad():
        net.classifier.bias.add_(0.1 * index)
    return cb.Point(net) if kind == "point" else cb.MeanField(net, prior_mean="initial")


def flat(posterior: Any) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in posterior.parameters()])


@pytest.mark.parametrize("kind", ["point", "mean-field"])
def test_each_member_has_the_bits_that_it_has_alone(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise, dropout and clipping of its own; what is logged are the means."""

    def run(posterior: Any) -> Any:
        args = arguments(tmp_path, max_grad_norm=0.1, max_steps=4, gradient_accumulation_steps=2)
        found = trainer(tmp_path, posterior=posterior, args=args)
        found.train()
        return found

    ensemble = run(cb.Ensemble([member(kind, 0), member(kind, 1)]))
    logs = []
    for index, found in enumerate(ensemble.posterior.members):
        # Not by the seed of the arguments, which shuffles too, and for which NumPy takes no more than 32 bits.
        monkeypatch.setattr(member_steps, "member_seed", lambda seed, _, index=index: member_seed(seed, index))
        alone = run(member(kind, index))
        assert torch.equal(weights(alone), flat(found)), index
        logs.append([entry for entry in alone.state.log_history if "loss" in entry])
    logged = [entry for entry in ensemble.state.log_history if "loss" in entry]
    assert len(logged) == 4
    for entry, first, second in zip(logged, *logs, strict=True):
        for name in ("loss", "cross_entropy", "calibration", "kl"):
            assert entry[name] == pytest.approx((first[name] + second[name]) / 2, rel=1e-5), name


@pytest.mark.parametrize("averaging", [None, cb.EMA(0.8)])
def test_an_ensemble_is_taken_up_with_the_same_bits(averaging: Any, tmp_path: Path) -> None:
    """Also from a checkpoint after the last step of an epoch, of which the posterior must have been told."""

    def made() -> Any:
        parts = [member("point", 0), cb.MeanField(bert(dropout=0.2), epochs_before=2)]
        args = arguments(tmp_path, max_steps=12, save_strategy="steps", save_steps=3)
        return trainer(tmp_path, posterior=cb.Ensemble(parts), args=args, averaging=averaging)

    whole = made()
    whole.train()
    for step in (6, 3):
        again = made()
        again.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{step}"))
        assert torch.equal(weights(again), weights(whole)), step
    last = load(tmp_path / "checkpoint-12")
    assert torch.equal(flat(last), weights(whole))


def test_a_folder_holds_all_members_and_the_network_of_the_first(tmp_path: Path) -> None:
    found = trainer(tmp_path, posterior="mixture", method_settings={"members": 2})
    found.train()
    found.save_model()
    loaded, data = load(tmp_path), Sentences(7, seed=9)
    assert torch.equal(
        cb.predict(loaded, data.inputs(), samples=4).probs, cb.predict(found.posterior, data.inputs(), samples=4).probs
    )
    net = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    expected = cb.predict(found.posterior.members[0], data.inputs(), samples="mean").probs
    torch.testing.assert_close(net(**data.inputs()).logits.softmax(-1).detach(), expected)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"posterior": "ensemble", "method_settings": {"members": 3}}, "it has 2 members there and 3 here"),
        ({"posterior": "mixture", "method_settings": {"members": 2}}, "of member 1 is point there and bayesian here"),
        ({"posterior": "point"}, "it has 2 members there and 1 here"),
    ],
)
def test_a_checkpoint_of_other_members_is_refused(other: dict[str, Any], words: str, tmp_path: Path) -> None:
    args = arguments(tmp_path, max_steps=1, save_strategy="steps", save_steps=1)
    trainer(tmp_path, args=args, posterior="ensemble", method_settings={"members": 2}).train()
    with pytest.raises(CheckpointError, match=words):
        trainer(tmp_path, args=args, **other).train(resume_from_checkpoint=True)


def test_the_posterior_is_told_of_every_step_and_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    read: list[Batch] = []

    def finish(self: Any, batches: Callable[[], Iterator[Batch]]) -> None:
        assert self.training
        calls.append("finish")
        read.extend(batches())

    kind = cb.posterior.NetworkPosterior
    monkeypatch.setattr(kind, "begin", lambda _, epochs: calls.append(("begin", epochs)))
    monkeypatch.setattr(kind, "after_step", lambda _: calls.append("step"))
    monkeypatch.setattr(kind, "after_epoch", lambda _: calls.append("epoch"))
    monkeypatch.setattr(kind, "finish", finish)
    args = arguments(tmp_path, max_steps=-1, num_train_epochs=2, gradient_accumulation_steps=2)
    trainer(tmp_path, args=args, posterior="point").train()
    assert calls == [("begin", 2), "step", "step", "epoch", "step", "step", "epoch", "finish"]
    data = Sentences(12)
    assert torch.equal(torch.cat([batch.inputs["input_ids"] for batch in read]), data.words)
    assert torch.equal(torch.cat([batch.targets for batch in read]), data.labels)


def test_a_warm_start_is_a_point_for_its_epochs_and_then_a_distribution(tmp_path: Path) -> None:
    logs: dict[int, bool] = {}
    start = cb.MeanField(bert(), init_std=0.01).rho.detach().clone()
    for epochs in (2, 3):
        settings = {"epochs_before": 2, "init_std": 0.01}
        args = arguments(tmp_path, max_steps=-1, num_train_epochs=epochs)
        found = trainer(tmp_path, args=args, posterior="warm-mean-field", method_settings=settings, objective=None)
        found.train()
        logs[epochs] = torch.equal(found.posterior.rho, start)
        kls = [entry["kl"] for entry in found.state.log_history if "kl" in entry]
        assert [value > 0 for value in kls] == [False] * 6 + [True] * (3 * epochs - 6)
    assert logs == {2: True, 3: False}


def test_a_warm_start_may_be_a_share_of_the_epochs(tmp_path: Path) -> None:
    found = trainer(tmp_path, args=arguments(tmp_path, max_steps=12), posterior="warm-mean-field", objective=None)
    found.train()
    kls = [entry["kl"] for entry in found.state.log_history if "kl" in entry]
    assert [value > 0 for value in kls] == [False] * 6 + [True] * 6


def test_swag_is_refused_where_it_would_collect_nothing_or_be_averaged(tmp_path: Path) -> None:
    args = arguments(tmp_path, max_steps=-1, num_train_epochs=2)
    with pytest.raises(InvalidArgumentError, match="SWAG collects weights from epoch 3 on"):
        trainer(tmp_path, args=args, posterior=cb.SWAG(bert(), start_epoch=3), objective=cb.Objective(lam=0.0)).train()
    averaged = {"posterior": cb.SWAG(bert(), start_epoch=1), "averaging": cb.EMA(0.9)}
    with pytest.raises(InvalidArgumentError, match="A SWAG averages the weights itself"):
        trainer(tmp_path, args=args, objective=cb.Objective(lam=0.0), **averaged).train()


class Stream(IterableDataset[dict[str, Any]]):
    """Sentences without a length."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (Sentences(12)[index] for index in range(12))


def test_a_stream_trains_as_the_same_examples_with_a_length_do(tmp_path: Path) -> None:
    """As many steps as are asked for, through the data as often as that takes."""
    settings: dict[str, Any] = {"posterior": "point", "objective": cb.Objective(lam=5.0), "samples": None}
    streamed = trainer(tmp_path, args=arguments(tmp_path, max_steps=5), train_dataset=Stream(), **settings)
    streamed.train()
    assert streamed.state.global_step == 5
    args = arguments(tmp_path, max_steps=5, train_sampling_strategy="sequential")
    listed = trainer(tmp_path, args=args, **settings)
    listed.train()
    assert torch.equal(weights(streamed), weights(listed))


@pytest.mark.parametrize("name", ["point", "mean-field", *cb.NETWORK_METHODS])
def test_every_method_fine_tunes(name: str, tmp_path: Path) -> None:
    """A step is that of its posterior with its objective, and its optimiser where it is one of its own."""
    given: dict[str, dict[str, Any]] = {"ensemble": {"members": 2}, "mixture": {"members": 2}, "swag": {"every": "step"}}
    settings = given.get(name)
    args = arguments(tmp_path, max_steps=-1, num_train_epochs=1)
    net = bert(dropout=0.1)
    chosen: dict[str, Any] = {"posterior": name, "method_settings": settings, "objective": None, "samples": None}
    found = trainer(tmp_path, net, args=args, **chosen)
    plan = cb.build({"point": "fnn", "mean-field": "bnn"}.get(name, name), bert(dropout=0.1), **(settings or {}))
    assert type(found.posterior) is type(plan.posterior)
    assert found.objective == plan.objective
    assert found.samples == plan.fit.get("samples", 1)
    assert found.averaging == plan.fit.get("averaging")
    before = [flat(each) for each in found.posterior.members]
    for each in found.posterior.members:
        assert torch.equal(each.mean()["classifier.weight"], net.classifier.weight), "members start from the network"
    found.train()
    assert all(not torch.equal(flat(each), start) for each, start in zip(found.posterior.members, before, strict=True))
    assert hasattr(getattr(found.optimizer, "optimizer", found.optimizer), "handles_kl") == (name == "natural-gradient")
    rows = found.predictive(Sentences(5)).probs.sum(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"posterior": "ensembel"}, "but got 'ensembel'. Did you mean 'ensemble'?"),
        ({"posterior": 3}, "Expected `posterior` to be one of point, mean-field, fnn"),
        ({"posterior": "ensemble", "method_settings": {"member": 3}}, "has no setting 'member'. Did you mean 'members'?"),
        ({"posterior": "ensemble", "where": "classifier.*"}, "No weight of posterior='ensemble' is Bayesian, but `where`"),
        ({"posterior": "bnn", "prior_std": 1.0, "method_settings": {"prior_std": 1.0}}, "`prior_std` is given twice"),
        ({"posterior": "fnn", "method_settings": {"learning_rate": 0.1}}, "`method_settings` has 'learning_rate'. Pass it to"),
        ({"posterior": "natural-gradient", "optimizer": torch.optim.SGD}, "The method trains with its own optimiser"),
        ({"posterior": "natural-gradient", "rho_learning_rate": 0.1}, "Leave `rho_learning_rate` out"),
        (
            {"posterior": cb.Point(torch.nn.Linear(2, 2)), "method_settings": {"members": 2}},
            "`method_settings` is {'members': 2}",
        ),
        ({"posterior": cb.Point(torch.nn.Linear(2, 2)), "objective": None}, "comes without an objective. Pass `objective`"),
        ({"averaging": 0.9}, "Expected `averaging` to be an EMA or an EqualAverage, but got 0.9"),
    ],
)
def test_wrong_choices_are_named(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        trainer(tmp_path, **settings)
    assert words in str(caught.value)


def test_laplace_is_trained_as_a_point_and_fitted_at_the_end(tmp_path: Path) -> None:
    laplace = cb.LastLayerLaplace(bert(), prior_precision=1.0)
    assert not laplace.random
    trainer(tmp_path, posterior=laplace).train()
    assert laplace.random
    assert laplace.prior_precision == 1.0


class Kept(CalibayesTrainer):
    """Keeps the weights of every step."""

    def _begin(self, epochs: int) -> Any:
        self.kept = [weights(self)]
        return super()._begin(epochs)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step:
            self.kept.append(weights(self))
        return super().get_batch_samples(*args, **kwargs)


def test_the_average_is_what_is_evaluated_saved_and_left(tmp_path: Path) -> None:
    args = arguments(tmp_path, max_steps=6, eval_strategy="steps", eval_steps=3, save_strategy="steps", save_steps=3)
    found = Kept(
        bert(), args, posterior="point", averaging=cb.EMA(0.8), train_dataset=Sentences(12), eval_dataset=Sentences(11, seed=9)
    )
    found.train()
    plain = trainer(tmp_path / "plain", args=arguments(tmp_path / "plain", max_steps=6), posterior="point", objective=None)
    plain.train()
    averages = [found.kept[0]]
    for step, each in enumerate([*found.kept[1:], weights(plain)], start=1):
        decay = min(0.8, (1 + step) / (10 + step))
        averages.append(decay * averages[-1] + (1 - decay) * each)
    torch.testing.assert_close(weights(found), averages[6], rtol=1e-5, atol=1e-6)
    for step in (3, 6):
        saved = load(tmp_path / f"checkpoint-{step}")
        torch.testing.assert_close(flat(saved), averages[step], rtol=1e-5, atol=1e-6)
        data = Sentences(11, seed=9)
        nll = cb.metrics.nll(cb.predict(saved, data.inputs()).probs, data.labels)
        (logged,) = (entry["eval_nll"] for entry in found.state.log_history if entry["step"] == step and "eval_nll" in entry)
        assert logged == pytest.approx(nll, rel=1e-5)
    shutil.rmtree(tmp_path / "checkpoint-6")
    for averaging in (None, cb.EMA(0.9)):
        other = trainer(tmp_path, args=args, posterior="point", averaging=averaging, eval_dataset=Sentences(11, seed=9))
        with pytest.raises(CheckpointError, match=r"`averaging` was EMA\(decay=0.8, warm_up=True\) there"):
            other.train(resume_from_checkpoint=True)


def test_the_best_average_is_left_where_it_is_asked_for(tmp_path: Path) -> None:
    args = arguments(
        tmp_path,
        max_steps=6,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="steps",
        save_steps=2,
        load_best_model_at_end=True,
        metric_for_best_model="nll",
        greater_is_better=False,
    )
    found = trainer(tmp_path, args=args, posterior="point", averaging=cb.EMA(0.8), eval_dataset=Sentences(60, seed=5))
    found.train()
    best = load(found.state.best_model_checkpoint)
    assert not found.state.best_model_checkpoint.endswith("-6")
    assert torch.equal(weights(found), flat(best))
    data = Sentences(5)
    torch.testing.assert_close(found.predictive(data).probs.float(), cb.predict(best, data.inputs()).probs)
