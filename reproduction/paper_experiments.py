"""The paper's experiments as lists of trainings, with presets for a GPU, for two cores, and for a quick look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibayes.methods.term_weights import has_beta, has_lam
from calibayes.objective import SCHEMES
from calibayes.recipes.single_training import TrainingSettings
from reproduction.cifar10_training import CIFAR10Training, check_cifar10, cifar10_trial
from reproduction.experiment import Definition, ExperimentPart
from reproduction.newsgroups_training import check_newsgroups, newsgroups_settings, newsgroups_trial

__all__ = ["PAPER"]

# 20 Newsgroups.
_LAMS = {"tiny": (10.0,), "cpu": (3.0, 10.0, 30.0, 100.0, 300.0), "paper": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)}
_SEEDS = {"tiny": 2, "cpu": 5, "paper": 10}


def _newsgroups_epochs(preset: str) -> list[ExperimentPart]:
    seeds = range(2 if preset == "tiny" else 10)
    return [
        ExperimentPart("FNN", newsgroups_settings(preset, "fnn", seeds)),
        ExperimentPart("CA-FNN, hard scores", newsgroups_settings(preset, "ca-fnn", seeds, scores="hard")),
        ExperimentPart("CA-FNN, fully differentiable", newsgroups_settings(preset, "ca-fnn", seeds)),
    ]


def _newsgroups_lambda(preset: str) -> list[ExperimentPart]:
    seeds = range(_SEEDS[preset])
    plain = [ExperimentPart(scheme.upper(), newsgroups_settings(preset, scheme, seeds)) for scheme in ("fnn", "bnn")]
    return plain + [
        ExperimentPart(f"{scheme.upper()}, λ = {lam:g}", newsgroups_settings(preset, scheme, seeds, lam=lam))
        for scheme in ("ca-fnn", "ca-bnn")
        for lam in _LAMS[preset]
    ]


def _newsgroups_variations(preset: str) -> list[ExperimentPart]:
    """Variations at a λ at which the term has an effect; those that claims need have as many seeds as Fig. 2."""
    few, many = range(min(3, _SEEDS[preset])), range(_SEEDS[preset])
    of_fnn: dict[str, dict[str, Any]] = {
        "average pooling": {"pooling": "average"},
        "learning rate to zero": {"schedule": "cosine"},
    }
    of_term: dict[str, dict[str, Any]] = {
        "plain MMCE": {"measure": "mmce"},
        "DECE": {"measure": "dece"},
        "term on 1,000 held-out texts": {"held_out": 50 if preset == "tiny" else 1000},
        "λ rising over 4 epochs": {"warm_up": 1 if preset == "tiny" else 4},
    }
    of_bnn: dict[str, dict[str, Any]] = {
        "β = 0.01": {"beta": 0.01},
        "initial width 0.003": {"init_std": 0.003},
        "learning rate to zero": {"schedule": "cosine"},
        "from a trained FNN": {"start_epochs": 1 if preset == "tiny" else 10},
        "R = 4": {"samples": 4},
    }
    of_ca_bnn = {name: of_bnn[name] for name in ("learning rate to zero", "from a trained FNN")}
    started = {"from a trained FNN": of_bnn["from a trained FNN"]}
    longer = {"as long as those from a trained FNN": {"epochs": 3 if preset == "tiny" else 42}}
    reference = {"lam": 4.0, "lam_scale": "mean", "normalization": "reference"}
    other = ExperimentPart(
        "CA-FNN, λ = 4 beside the mean: reference WMMCE", newsgroups_settings(preset, "ca-fnn", few, **reference)
    )
    hard = [
        ExperimentPart(f"CA-FNN, λ = {lam:g}: hard scores", newsgroups_settings(preset, "ca-fnn", many, scores="hard", lam=lam))
        for lam in (30.0, 100.0)
    ]
    return [*hard, other] + [
        ExperimentPart(
            f"{name}: {way}", newsgroups_settings(preset, scheme, many if "start_epochs" in each else few, **(lam | each))
        )
        for name, scheme, lam, ways in (
            ("FNN", "fnn", {}, of_fnn | longer),
            ("CA-FNN, λ = 100", "ca-fnn", {"lam": 100.0}, of_fnn | of_term | started),
            ("BNN", "bnn", {}, of_bnn),
            ("CA-BNN, λ = 100", "ca-bnn", {"lam": 100.0}, of_ca_bnn),
        )
        for way, each in ways.items()
    ]


# CIFAR-10. Printed in the paper: Adam with 1e-5, three epochs, β = 1e-5, prior 0.001, λ = 20 (CA-FNN) and 18 (CA-BNN).
_CIFAR10: dict[str, Any] = {"epochs": 3, "optimizer": "adam", "learning_rate": 1e-5, "evaluate_every": 3}
_CIFAR10 |= {"prior_std": 0.001, "init_std": 0.001}
_CIFAR10_LAM = {"ca-fnn": 20.0, "ca-bnn": 18.0}
_CIFAR10_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"train": 256, "test": 200, "epochs": 1, "predictive_samples": 2, "epoch_samples": 2},
    "cpu": {"predictive_samples": 10},
    "paper": {"predictive_samples": 20},
}
_CIFAR10_NETWORKS = {"tiny": ("resnet20",), "cpu": ("resnet20", "resnet18"), "paper": ("resnet18-3x3",)}


def _cifar10(preset: str, scheme: str, seeds: Sequence[int], **others: Any) -> tuple[TrainingSettings, ...]:
    given = {**_CIFAR10, **_CIFAR10_SIZES[preset]}
    given |= {"beta": 1e-5} if has_beta(scheme) else {}
    given |= {"lam": _CIFAR10_LAM[scheme]} if has_lam(scheme) else {}
    return tuple(CIFAR10Training(scheme=scheme, seed=seed, **(given | others)) for seed in seeds)


def _cifar10_reliability(preset: str) -> list[ExperimentPart]:
    seeds = range(1 if preset == "tiny" else 3)
    return [
        ExperimentPart(f"{network}: {scheme.upper()}", _cifar10(preset, scheme, seeds, network=network))
        for network in _CIFAR10_NETWORKS[preset]
        for scheme in SCHEMES
    ]


def _cifar10_variations(preset: str) -> list[ExperimentPart]:
    """Wider posteriors, since three epochs at a learning rate of 1e-5 hardly change their widths."""
    seeds = range(1 if preset == "tiny" else 3)
    network = _CIFAR10_NETWORKS[preset][0]
    wide: dict[str, Any] = {"network": network, "init_std": 0.01}
    return [
        ExperimentPart(f"{network}: {scheme.upper()}, initial width 0.01", _cifar10(preset, scheme, seeds, **wide))
        for scheme in ("bnn", "ca-bnn")
    ]


_TEXTS, _IMAGES = (newsgroups_trial, check_newsgroups), (cifar10_trial, check_cifar10)
PAPER: dict[str, Definition] = {
    "newsgroups-epochs": Definition("Fig. 1: 20 Newsgroups, ECE and accuracy over epochs", _newsgroups_epochs, *_TEXTS),
    "newsgroups-lambda": Definition("Fig. 2: 20 Newsgroups, ECE and accuracy over λ", _newsgroups_lambda, *_TEXTS),
    "newsgroups-variations": Definition("20 Newsgroups: what the paper leaves open, varied", _newsgroups_variations, *_TEXTS),
    "cifar10-reliability": Definition("Fig. 3: CIFAR-10, reliability diagrams", _cifar10_reliability, *_IMAGES),
    "cifar10-variations": Definition("CIFAR-10: wider posteriors", _cifar10_variations, *_IMAGES),
}
