"""Folders that are written can be read again: models without pickle, checkpoints to the same bits."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.transformers.small import Sentences, arguments, bert, trainer, weights
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertTokenizerFast, default_data_collator

import calibayes as cb
from calibayes.errors import CheckpointError, ModelFileError
from calibayes.transformers import load

pytestmark = pytest.mark.transformers

DATA = Sentences(7, seed=9)


def with_adapters(name: str = "default") -> Any:
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, lora_alpha=4, target_modules=["query", "value"])
    return peft.get_peft_model(bert(), config, adapter_name=name)


def predicted(posterior: Any) -> torch.Tensor:
    return cb.predict(posterior, DATA.inputs(), samples=4).probs


@pytest.mark.parametrize("kind", ["head", "all", "point", "double", "adapters", "named adapters"])
def test_a_saved_model_predicts_the_same_and_holds_no_pickle(kind: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"where": "classifier.*"} if kind == "head" else {}
    settings = {"posterior": "point"} if kind == "point" else settings
    settings = {"where": "*lora_*"} if kind.endswith("adapters") else settings
    net = bert().double() if kind == "double" else bert()
    if kind.endswith("adapters"):
        net = with_adapters("mine" if kind.startswith("named") else "default")
    found = trainer(tmp_path / "run", net, **settings)
    found.train()
    found.save_model(str(tmp_path / "model"))
    assert {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()} <= {".json", ".safetensors", ".md"}
    posterior = load(tmp_path / "model")
    assert [choice.role for choice in posterior.members[0].choices] == [choice.role for choice in found.posterior.choices]
    assert torch.equal(predicted(posterior), predicted(found.posterior))
    assert torch.equal(predicted(load(tmp_path / "model", net)), predicted(found.posterior))


def test_beside_the_posterior_lies_the_network_with_the_mean_weights(tmp_path: Path) -> None:
    found = trainer(tmp_path)
    found.train()
    found.save_model()
    net = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    expected = found.predictive(DATA, samples="mean").probs.float()
    torch.testing.assert_close(net(**DATA.inputs()).logits.softmax(-1).detach(), expected)


@pytest.mark.parametrize("kind", ["all", "adapters"])
def test_a_run_that_is_taken_up_ends_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    net = with_adapters() if kind == "adapters" else bert(dropout=0.3)
    settings = {"where": "*lora_*"} if kind == "adapters" else {}
    args = arguments(tmp_path, max_steps=8, save_strategy="steps", save_steps=5, gradient_accumulation_steps=2)
    whole = trainer(tmp_path, net, args=args, train_dataset=Sentences(24), **settings)
    whole.train()
    shutil.rmtree(tmp_path / "checkpoint-8")
    again = trainer(tmp_path, net, args=args, train_dataset=Sentences(24), **settings)
    assert not torch.equal(weights(again), weights(whole))
    again.train(resume_from_checkpoint=True)
    assert torch.equal(weights(again), weights(whole))
    then, now = ([entry["loss"] for entry in each.state.log_history if "loss" in entry] for each in (whole, again))
    assert then == now
    assert torch.equal(predicted(load(tmp_path / "checkpoint-8")), predicted(whole.posterior))
    whole.save_model()  # beside the checkpoints
    assert torch.equal(predicted(load(tmp_path)), predicted(whole.posterior))


def test_a_checkpoint_of_another_posterior_is_refused(tmp_path: Path) -> None:
    args = arguments(tmp_path, max_steps=2, save_strategy="steps", save_steps=1)
    trainer(tmp_path, args=args).train()
    with pytest.raises(CheckpointError, match="is bayesian there and point here"):
        trainer(tmp_path, args=args, where="classifier.*").train(resume_from_checkpoint=True)
    with pytest.raises(CheckpointError, match="is bayesian there and point here"):
        trainer(tmp_path, args=args, posterior="point").train(resume_from_checkpoint=True)


def test_a_folder_without_a_posterior_is_named(tmp_path: Path) -> None:
    bert().save_pretrained(tmp_path)
    with pytest.raises(ModelFileError, match=r"has no posterior\.safetensors"):
        load(tmp_path)
    cb.save(cb.Point(bert()), tmp_path / "posterior.safetensors")
    assert torch.equal(predicted(load(tmp_path)), predicted(cb.Point(bert())))
    (tmp_path / "config.json").unlink()
    with pytest.raises(ModelFileError, match="Pass the network as `model`"):
        load(tmp_path)


def test_which_of_several_adapters_are_active_has_to_be_told(tmp_path: Path) -> None:
    net = with_adapters("first")
    net.add_adapter("second", net.peft_config["first"])
    net.set_adapter("second")
    found = trainer(tmp_path / "run", net, where="*lora_*")
    found.save_model(str(tmp_path / "model"))
    with pytest.raises(ModelFileError, match=r"has the adapters \['first', 'second'\].* Pass the network as `model`"):
        load(tmp_path / "model")
    assert torch.equal(predicted(load(tmp_path / "model", net)), predicted(found.posterior))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"prior_std": 0.5}, r"`prior_std\.\*` is 0\.05 there and 0\.5 here"),
        ({"prior_mean": None}, "is stored there and zero here"),
    ],
)
def test_a_checkpoint_of_another_prior_is_refused(other: Any, words: str, tmp_path: Path) -> None:
    args = arguments(tmp_path, max_steps=1, save_strategy="steps", save_steps=1)
    trainer(tmp_path, args=args).train()
    with pytest.raises(CheckpointError, match=words):
        trainer(tmp_path, args=args, **other).train(resume_from_checkpoint=True)


@pytest.mark.parametrize("adapters", [False, True])
def test_a_model_card_is_that_of_the_network(adapters: bool, tmp_path: Path) -> None:
    found = trainer(tmp_path, with_adapters() if adapters else bert(), where="*lora_*" if adapters else None)
    found.train()
    found.save_model()
    found.create_model_card(model_name="a small BERT")
    card = (tmp_path / "README.md").read_text()
    assert "# a small BERT" in card
    assert isinstance(found.posterior, cb.MeanField)


def test_the_tokenizer_of_the_data_collator_is_kept(tmp_path: Path) -> None:
    class Collator:
        """Collates, and has a tokenizer as those of transformers do."""

        def __init__(self) -> None:
            (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
            self.tokenizer = BertTokenizerFast(vocab=str(tmp_path / "vocab.txt"))

        def __call__(self, examples: list[Any]) -> Any:
            return default_data_collator(examples)

    found = trainer(tmp_path / "run", data_collator=Collator())
    found.save_model(str(tmp_path / "model"))
    assert AutoTokenizer.from_pretrained(tmp_path / "model")("word")["input_ids"] == [2, 5, 3]
