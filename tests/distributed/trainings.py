"""Trainings that ``torchrun`` runs in one, two and three processes; the folder for what they find is the only argument."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import calibayes as cb

SCHEMES = {"fnn": (0.0, 0.0), "ca-fnn": (30.0, 0.0), "bnn": (0.0, 0.1), "ca-bnn": (30.0, 0.1)}
N, CLASSES = 203, 3


def data(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=generator, dtype=torch.float64)
    y = (x[:, :CLASSES] + torch.randn(count, CLASSES, generator=generator, dtype=torch.float64)).argmax(1)
    return x, y


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, CLASSES))


def with_batch_norm() -> nn.Module:
    """Without biases before the norms: their gradient is zero but for rounding, which Adam would make whole steps of."""
    return nn.Sequential(
        nn.Unflatten(1, (2, 3)),
        nn.Conv1d(2, 8, 2, bias=False),
        nn.BatchNorm1d(8, eps=0.1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16, 8, bias=False),
        nn.BatchNorm1d(8, momentum=None, eps=0.1),  # of few examples: not too steep
        nn.Linear(8, CLASSES),
    )


def with_instance_norm() -> nn.Module:
    """Statistics of each example, whose running mean is over the batch."""
    return nn.Sequential(
        nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True, eps=0.1), nn.Flatten(), nn.Linear(6, CLASSES)
    )


class WithTransientBuffer(nn.Module):
    """A random buffer that no file holds."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.randn(6), persistent=False)
        self.layer = nn.Linear(6, CLASSES)

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(x * self.get_buffer("w"))


class Noisy(torch.optim.SGD):
    """An optimiser that draws noise."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.add_(torch.randn_like(parameter), alpha=1e-3)


def with_frozen_batch_norm() -> nn.Module:
    net = with_batch_norm()
    for part in net.modules():
        if isinstance(part, nn.BatchNorm1d):
            part.eval()
    return net


def stop_in_the_first(_: Any, epoch: int) -> bool:
    """Asks to stop after epoch 4, in process 0 alone."""
    return epoch < 4 or (torch.distributed.is_initialized() and torch.distributed.get_rank() > 0)


def cases() -> dict[str, dict[str, Any]]:
    """Settings of each training by name."""
    found: dict[str, dict[str, Any]] = {}
    for scheme in SCHEMES:
        for samples in (1, 4) if scheme.endswith("bnn") else (1,):
            found[f"{scheme}, R={samples}"] = {"scheme": scheme, "samples": samples}
        found[f"{scheme}, batch norm"] = {"scheme": scheme, "net": with_batch_norm, "samples": 2}
    return found | {
        "frozen batch norm": {"scheme": "ca-bnn", "net": with_frozen_batch_norm, "samples": 2},
        "micro-batches": {"scheme": "ca-bnn", "samples": 2, "micro_batch_size": 3},
        "held-out term": {"scheme": "ca-fnn", "calibration_data": data(2, 50)},
        "weights": {"scheme": "ca-bnn", "samples": 2, "train": (*data(0, N), torch.linspace(0, 2, N))},
        "clipped": {"scheme": "ca-bnn", "clip_norm": 0.1},
        "loop over samples": {"scheme": "ca-bnn", "samples": 4, "sample_chunk": 1},
        # 203 = 6 · 33 + 5 for the loader, and batches of two, which leave one of three processes without an example
        "last batch uneven": {
            "scheme": "ca-bnn",
            "train": DataLoader(TensorDataset(*data(0, N)), batch_size=33, shuffle=True),
            "epochs": 8,
        },
        "fewer examples than processes": {"scheme": "ca-bnn", "train": data(0, 40), "batch_size": 2, "epochs": 2},
        "fewer examples than processes, batch norm": {
            "scheme": "bnn",
            "net": with_batch_norm,
            "train": data(0, 40),
            "batch_size": 2,
            "epochs": 2,
        },
        "transient buffer": {"scheme": "fnn", "net": WithTransientBuffer},
        "noisy optimiser": {"scheme": "bnn", "optimizer": lambda parameters: Noisy(parameters, lr=0.1)},
        "natural gradient": {
            "scheme": "ca-bnn",
            "samples": 2,
            "init_std": 0.01,
            "optimizer": cb.NaturalGradient(lr=0.1, betas=(0.9, 0.95)),
        },
        "instance norm": {"scheme": "fnn", "net": with_instance_norm},
        "validation and held-out data from a Dataset": {
            "scheme": "ca-fnn",
            "validation": TensorDataset(*data(1, 101)),
            "calibration_data": DataLoader(TensorDataset(*data(2, 60)), batch_size=7, shuffle=True),
        },
        "averaged": {
            "scheme": "ca-bnn",
            "averaging": cb.EMA(0.9),
            "early_stopping": cb.EarlyStopping(9, "refined-nll"),
            "epochs": 6,
        },
        "averaged, batch norm": {"scheme": "bnn", "net": with_batch_norm, "averaging": cb.EMA(0.9)},
        "equal average, instance norm": {
            "scheme": "fnn",
            "net": with_instance_norm,
            "averaging": cb.EqualAverage(2),
            "epochs": 6,
        },
        "stopped by a callback": {"scheme": "ca-fnn", "epochs": 9, "on_epoch": stop_in_the_first},
        "stopped early": {"scheme": "bnn", "early_stopping": 1, "epochs": 12},
    }


def trained(
    scheme: str,
    net: Any = perceptron,
    train: Any = None,
    batch_size: int = 20,
    epochs: int = 5,
    init_std: float = 0.05,
    **others: Any,
) -> dict[str, Any]:
    lam, beta = SCHEMES[scheme]
    torch.manual_seed(torch.distributed.get_rank() if torch.distributed.is_initialized() else 0)  # not alike: fit sees to it
    made = net().double()
    posterior = cb.MeanField(made, init_std=init_std) if beta else cb.Point(made)
    history = cb.fit(
        posterior,
        data(0, N) if train is None else train,
        # Scores as sharp as by default blow rounding errors up, and batch norms do so once more.
        cb.Objective(lam=lam, beta=beta, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1) if net is with_batch_norm else cb.WMMCE()),
        batch_size=batch_size,
        epochs=epochs,
        validation_samples=4,
        seed=3,
        **{
            "optimizer": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
            "validation": data(1, 101),
            **others,
        },
    )
    x, _ = data(4, 10)
    seen: list[int] = []  # examples of each call of the network
    hook = posterior.structure().register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    shared = cb.predict(posterior, x, samples=4, keep_samples=True, group="auto")
    rows = {"shared": list(seen)}
    seen.clear()
    alone = cb.predict(posterior, x, samples=4, keep_samples=True)
    rows["alone"] = list(seen)
    hook.remove()
    assert torch.allclose(shared.probs, alone.probs, atol=1e-14)
    assert shared.samples is not None
    assert alone.samples is not None
    assert torch.allclose(shared.samples, alone.samples, atol=1e-14)
    return {
        "weights": {k: v.clone() for k, v in posterior.state_dict().items()},
        "epochs": [{name: value for name, value in row.items() if name != "seconds"} for row in history.epochs],
        "steps": len(history.steps),
        "rows": rows,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    results = {name: trained(**settings) for name, settings in cases().items()}
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    torch.save(results, Path(sys.argv[1]) / f"rank{rank}.pt")
