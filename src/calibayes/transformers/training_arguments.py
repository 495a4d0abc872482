"""Reject ``TrainingArguments`` that a posterior cannot be trained with."""

from __future__ import annotations

from typing import Any

from calibayes.errors import InvalidArgumentError

__all__ = ["check_arguments"]

# What each would do to a network that holds no weights of its own, and what to do instead.
_REFUSED = {
    "fp16": "losses would need scaling; use bf16=True",
    "fp16_full_eval": "weights would lose their digits, and their standard deviations with them; use bf16=True",
    "bf16_full_eval": "weights would lose their digits, and their standard deviations with them; use bf16=True",
    "label_smoothing_factor": "the loss is the objective's; leave it at 0",
    "neftune_noise_alpha": "its noise would be drawn for weights that the network does not hold; leave it out",
    "gradient_checkpointing": "layers would run again after the sampled weights are gone; to save memory, use a smaller "
    "per_device_train_batch_size with gradient_accumulation_steps, which leaves the loss as it is",
    "torch_compile": "every sample of the weights would be compiled anew; leave it out",
    "use_liger_kernel": "its kernels replace the loss, which is the objective's; leave it out",
    "fsdp": "the weights are flat vectors, which are not sharded; start it with torchrun alone",
    "deepspeed": "the weights are flat vectors, which are not sharded; start it with torchrun alone",
}


def check_arguments(arguments: Any) -> None:
    """Raise `InvalidArgumentError` for a setting that would be without effect, or with another than it says.

    Args:
        arguments: of ``transformers``.
    """
    for name, why in _REFUSED.items():
        value = getattr(arguments, name, None)
        if value:
            raise InvalidArgumentError(f"CalibayesTrainer cannot train with {name}={value!r}: {why}.")
    if arguments.n_gpu > 1:
        raise InvalidArgumentError(
            f"CalibayesTrainer cannot use {arguments.n_gpu} GPUs from one process. Start one process for each: "
            f"torchrun --nproc-per-node={arguments.n_gpu} …, or choose one with CUDA_VISIBLE_DEVICES."
        )
