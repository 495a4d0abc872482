"""Trainings in one, two and three processes, which ``torchrun`` or ``accelerate launch`` starts.

Arguments: the folder for what they find, and the names of trainings (all by default).
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tests.transformers.small import CLASSES, WORDS, Sentences, arguments, bert, trainer, weights
from torch import Tensor, nn
from torch.utils.data import ConcatDataset, Subset

import calibayes as cb

SCHEMES = {"fnn": (0.0, 0.0), "ca-fnn": (5.0, 0.0), "bnn": (0.0, 0.1), "ca-bnn": (5.0, 0.1)}
MICRO, EPOCHS = 6, 11  # examples of a micro-batch of all processes; two such make a batch
N = 54  # batches of 12, 12, 12, 12 and 6: 55 steps


class Bag(nn.Module):
    """A network of words without order; it has no weights whose gradient is rounding alone, which Adam makes steps of."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.words = nn.Embedding(WORDS, 8)
        self.head = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, CLASSES))
        self.double()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        mask = attention_mask[..., None]
        return self.head((self.words(input_ids) * mask).sum(1) / mask.sum(1))


def cases() -> dict[str, Any]:
    """Trainings by name, each a function of a folder and the number of processes."""
    found: dict[str, Any] = {}
    for scheme in SCHEMES:
        for samples in (1, 4) if scheme.endswith("bnn") else (1,):
            found[f"{scheme}, R={samples}"] = partial(trained, Bag, scheme, samples)
    # Not Adam: some gradients of attention are zero but for rounding, which Adam divides by itself.
    found["BERT"] = partial(trained, lambda: bert().double(), "ca-bnn", 2, optim="sgd", learning_rate=0.1)
    found["ensemble"] = partial(trained, Bag, "ca-bnn", 2, members=True)
    found["filled up"] = partial(trained, Bag, "ca-bnn", 2, count=N - 3, train_sampling_strategy="sequential")
    return found


def examples(count: int, size: int) -> Any:
    """As many examples; to a single process the first ones again, as accelerate fills up the last batch of several."""
    data = Sentences(count)
    return data if size > 1 or count == N else ConcatDataset([data, Subset(data, range(N - count))])


def trained(
    network: Any, scheme: str, samples: int, folder: Path, size: int, *, count: int = N, members: bool = False, **others: Any
) -> dict[str, Any]:
    lam, beta = SCHEMES[scheme]
    args = arguments(
        folder / f"run{size}",
        **{
            "per_device_train_batch_size": MICRO // size,
            "gradient_accumulation_steps": 2,
            "max_steps": -1,
            "num_train_epochs": EPOCHS,
            "learning_rate": 0.01,
            "lr_scheduler_type": "constant",
            "eval_strategy": "epoch",
            **({"save_strategy": "steps", "save_steps": 48} if network is not Bag else {}),
            **others,
        },
    )
    settings: dict[str, Any] = {
        "args": args,
        "objective": cb.Objective(lam=lam, beta=beta, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1)),
        "posterior": "mixture" if members else "mean-field" if beta else "point",
        "method_settings": {"members": 2, "epochs_before": 3} if members else None,
        "averaging": cb.EMA(0.9) if members else None,
        "samples": samples,
        "train_dataset": examples(count, size),
        "dataset_size": count,
    }
    found = trainer(folder, network(), eval_dataset=Sentences(11, seed=9), **settings)
    found.train()
    if network is not Bag:
        again = trainer(folder, network(), eval_dataset=Sentences(11, seed=9), **settings)
        again.train(resume_from_checkpoint=str(folder / f"run{size}" / "checkpoint-48"))
        assert torch.equal(weights(again), weights(found))
    history = found.state.log_history
    # Without eval_loss: the Trainer averages over batches, and counts those twice that even out the processes' shares.
    names = ("eval_nll", "eval_ece", "eval_brier", "eval_accuracy")
    return {
        "weights": weights(found),
        "steps": found.state.global_step,
        "loss": [entry["loss"] for entry in history if "loss" in entry],
        "calibration": [entry["calibration"] for entry in history if "loss" in entry],
        "scores": [{name: entry[name] for name in names} for entry in history if "eval_nll" in entry],
        "probs": found.predictive(found.eval_dataset).probs,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, size, rank = Path(sys.argv[1]), int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    chosen = {name: train for name, train in cases().items() if name in (sys.argv[2:] or cases())}
    torch.save({name: train(folder, size) for name, train in chosen.items()}, folder / f"rank{rank}.pt")
    torch.distributed.destroy_process_group()
