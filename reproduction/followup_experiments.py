"""The trainings of the follow-up's experiments: its schemes, each with and without confidence minimisation, and baselines.

Estimated for preset ``cpu`` from steps timed on a core that other work shared: a core trains a ResNet-20 on 280 images a second
(150 with outsiders) and predicts 800, so ``cifar10-followup`` takes about 2.5 core-hours (30 trainings); an epoch of CLINC150
takes 5 seconds, so ``clinc150-followup`` takes about 0.8 core-hours (50 trainings). Two cores halve these hours.
"""

from __future__ import annotations

from typing import Any

from calibayes.methods.term_weights import has_beta, has_lam
from reproduction.experiment import Definition, ExperimentPart
from reproduction.followup_images import check_images, cifar10_followup_trial
from reproduction.followup_texts import check_texts, clinc150_followup_trial
from reproduction.followup_training import FollowUpTraining

__all__ = ["BASELINES", "FOLLOWUP", "SCHEMES"]

SCHEMES = {"fnn": "FNN", "ca-fnn": "CFNN", "bnn": "BNN", "ca-bnn": "CBNN"}  # names in the library, and in the follow-up
BASELINES = {"ensemble": "deep ensemble", "laplace": "last-layer Laplace"}

# Of the follow-up's code: λ beside the mean cross-entropy, WMMCE normalised twice and with hard scores, β, and γ = 0.5 on sums
# over 32 insiders and 64 outsiders, which is 1 between means; here there are as many outsiders as insiders in a step.
_LAM = {"ca-fnn": 3.0, "ca-bnn": 0.8}
_SETTINGS: dict[str, Any] = {
    "lam_scale": "mean",
    "normalization": "reference",
    "scores": "hard",
    "batch_size": 32,
    "schedule": "cosine",
}
_BETA = 2.8e-4
_OCM = 1.0


def _trainings(preset: dict[str, Any], seeds: int) -> list[ExperimentPart]:
    """Every scheme with and without confidence minimisation, then the baselines, which see no outsiders."""
    parts = []
    for ocm, suffix in ((0.0, ""), (_OCM, "-OCM")):
        for scheme, title in SCHEMES.items():
            given = {**_SETTINGS, **preset, "ocm": ocm}
            given |= {"beta": _BETA} if has_beta(scheme) else {}
            given |= {"lam": _LAM[scheme]} if has_lam(scheme) else {}
            trainings = (FollowUpTraining(scheme=scheme, seed=seed, **given) for seed in range(seeds))
            parts.append(ExperimentPart(f"{title}{suffix}", tuple(trainings)))
    for scheme, title in BASELINES.items():
        given = {**_SETTINGS, **preset, "members": 3 if scheme == "ensemble" else 1}
        trainings = (FollowUpTraining(scheme=scheme, seed=seed, **given) for seed in range(seeds))
        parts.append(ExperimentPart(title, tuple(trainings)))
    return parts


# The published network was trained without a prior, so the prior is centred on its weights; and it is wider than the
# follow-up's 0.001, at which a posterior hardly differs from a point. The learning rate was chosen by validation NLL: the
# follow-up's, 0.001 beside sums, undoes much of what the published network has learnt.
_IMAGES: dict[str, Any] = {
    "optimizer": "sgd",
    "learning_rate": 0.001,
    "prior_mean": "initial",
    "prior_std": 0.01,
    "init_std": 0.01,
}
_IMAGE_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"train": 96, "test": 80, "outsiders": 60, "epochs": 1, "predictive_samples": 2},
    "cpu": {"train": 5000, "test": 2000, "outsiders": 1000, "epochs": 4, "predictive_samples": 10},
    "paper": {"train": 9000, "epochs": 10, "predictive_samples": 20},
}

_TEXTS: dict[str, Any] = {"optimizer": "adam", "learning_rate": 0.005}
_TEXT_SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"train": 600, "test": 200, "outsiders": 100, "epochs": 1, "predictive_samples": 2},
    "cpu": {"epochs": 8, "predictive_samples": 10},
    "paper": {"epochs": 20, "predictive_samples": 20},
}


def _cifar10(preset: str) -> list[ExperimentPart]:
    """Fine-tunings of the published ResNet-20 on some of CIFAR-10."""
    return _trainings({**_IMAGES, **_IMAGE_SIZES[preset]}, seeds=1 if preset == "tiny" else 3)


def _clinc150(preset: str) -> list[ExperimentPart]:
    """Trainings of a bag of words on CLINC150."""
    return _trainings({**_TEXTS, **_TEXT_SIZES[preset]}, seeds=1 if preset == "tiny" else 5)


FOLLOWUP: dict[str, Definition] = {
    "cifar10-followup": Definition("Follow-up: CIFAR-10 with outsiders", _cifar10, cifar10_followup_trial, check_images),
    "clinc150-followup": Definition("Follow-up: CLINC150 with outsiders", _clinc150, clinc150_followup_trial, check_texts),
}
