"""A small BERT with random weights, and token sequences that it can learn to tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, TrainingArguments

import calibayes as cb
from calibayes.transformers import CalibayesTrainer

CLASSES, WORDS = 3, 30


def bert(*, dropout: float = 0.0) -> Any:
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        num_labels=CLASSES,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return BertForSequenceClassification(config)


class Sentences(Dataset[dict[str, Any]]):
    """Random words, of which the first tells the class four times out of five; every second one has padding at its end."""

    def __init__(self, count: int, seed: int = 5) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randint(WORDS, (count, 6), generator=generator)
        self.mask = torch.ones_like(self.words)
        self.mask[::2, 4:] = 0
        noise = torch.rand(count, generator=generator) < 0.2
        other = torch.randint(CLASSES, (count,), generator=generator)
        self.labels = torch.where(noise, other, self.words[:, 0] % CLASSES)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "input_ids": self.words[index],
            "attention_mask": self.mask[index],
            "labels": int(self.labels[index]),
            "text": "what the network does not take",
        }

    def inputs(self) -> dict[str, torch.Tensor]:
        return {"input_ids": self.words, "attention_mask": self.mask}


def arguments(folder: Path, **settings: Any) -> Any:
    chosen: dict[str, Any] = {
        "output_dir": str(folder),
        "per_device_train_batch_size": 4,
        "per_device_eval_batch_size": 5,
        "max_steps": 3,
        "learning_rate": 1e-3,
        "report_to": "none",
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        "use_cpu": True,
        "dataloader_pin_memory": False,
        **settings,
    }
    return TrainingArguments(**chosen)


def trainer(folder: Path, net: Any = None, *, args: Any = None, **settings: Any) -> Any:
    """One for a Bayesian network with a calibration term, unless the settings say otherwise."""
    chosen: dict[str, Any] = {
        "objective": cb.Objective(lam=5.0, beta=0.1, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1)),
        "posterior": "mean-field",
        "samples": 2,
        "prediction_samples": 3,
        "train_dataset": Sentences(12),
        **settings,
    }
    if not isinstance(chosen["posterior"], cb.posterior.Posterior) and "model_init" not in chosen:
        chosen["model"] = bert() if net is None else net
    return CalibayesTrainer(args=arguments(folder) if args is None else args, **chosen)


def weights(found: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1).clone() for parameter in found.posterior.parameters()])
