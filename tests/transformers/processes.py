"""A training under ``torchrun``: weights, evaluation and prediction of every process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from tests.transformers.small import Sentences, arguments, bert, trainer, weights

if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, size, rank = Path(sys.argv[1]), int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    args = arguments(
        folder / f"run{size}",
        per_device_train_batch_size=8 // size,
        gradient_accumulation_steps=2,
        max_steps=4,
        # Not Adam: some gradients of attention are zero but for rounding, which Adam divides by itself.
        optim="sgd",
        learning_rate=0.5,
        save_strategy="steps",
        save_steps=3,
    )
    data = Sentences(32)
    found = trainer(folder, bert().double(), args=args, train_dataset=data, eval_dataset=Sentences(11, seed=9))
    found.train()
    torch.save(
        {
            "weights": weights(found),
            "loss": [entry["loss"] for entry in found.state.log_history if "loss" in entry],
            "calibration": [entry["calibration"] for entry in found.state.log_history if "loss" in entry],
            "scores": {name: value for name, value in found.evaluate().items() if name in ("eval_nll", "eval_ece")},
            "probs": found.predictive(found.eval_dataset).probs,
        },
        folder / f"size{size}rank{rank}.pt",
    )
    again = trainer(folder, bert().double(), args=args, train_dataset=data)
    again.train(resume_from_checkpoint=str(folder / f"run{size}" / "checkpoint-3"))
    assert torch.equal(weights(again), weights(found))
    if size > 1:
        found.accelerator.end_training()
