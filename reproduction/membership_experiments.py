"""The trainings for membership attacks: several schemes, each on halves of a pool, in complementary pairs.

The attack with shadow models takes each training in turn as the target, and all others of the same scheme, except the one on
the target's complement, as shadow models. The cpu preset has 10 trainings a scheme, so 8 shadow models. A core takes
about half an hour for 20 Newsgroups, and less for Fashion-MNIST.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calibayes.methods.term_weights import has_beta, has_lam
from calibayes.recipes.fashion import FashionTraining
from calibayes.recipes.single_training import TrainingSettings
from reproduction.experiment import Definition, ExperimentPart
from reproduction.membership_training import check_fashion, fashion_membership_trial, newsgroups_membership_trial
from reproduction.newsgroups_training import check_newsgroups, newsgroups_settings

__all__ = ["LAMS", "MEMBERSHIP"]

LAMS = (10.0, 100.0)  # the paper's λ of Fig. 1, and one at which the term clearly acts; see docs/explanation/reproduction.md
_TRAININGS = {"tiny": 6, "cpu": 10, "paper": 66}

# Epochs are those of FNN and CA-FNN; Bayesian schemes have twice as many, as in Fig. 2. Networks are scored once, at the end.
_NEWSGROUPS: dict[str, dict[str, Any]] = {
    "tiny": {"train": 100, "test": 100, "epochs": 2},
    "cpu": {"train": 3000, "test": 2000, "epochs": 24, "predictive_samples": 10},
    "paper": {"epochs": 20},
}
_FASHION: dict[str, dict[str, Any]] = {
    "tiny": {"train": 100, "validation": 100, "test": 200, "epochs": 2, "predictive_samples": 2},
    "cpu": {"train": 1500, "validation": 1000, "test": 2000, "epochs": 40, "predictive_samples": 10},
    "paper": {"train": 4000, "validation": 1000, "test": 1000, "epochs": 20},
}

# The weight of the KL for each example, β/|D|, is that of Fig. 2, which has 10,000 articles; with β = 0.1 on 3,000 a BNN does
# not learn at all from random weights. So Bayesian schemes start from a trained FNN, one of the variations of Fig. 2.
_BAYESIAN_NEWSGROUPS: dict[str, dict[str, Any]] = {
    "tiny": {"beta": 0.03, "start_epochs": 1},
    "cpu": {"beta": 0.03, "start_epochs": 8},
    "paper": {"beta": 0.05, "start_epochs": 10},
}


def _newsgroups(preset: str) -> list[ExperimentPart]:
    seeds = range(_TRAININGS[preset])
    bayesian = _BAYESIAN_NEWSGROUPS[preset]
    return _schemes(
        _NEWSGROUPS[preset],
        lambda scheme, given: newsgroups_settings(preset, scheme, seeds, **(given | bayesian if has_beta(scheme) else given)),
    )


def _fashion(preset: str) -> list[ExperimentPart]:
    seeds = range(_TRAININGS[preset])
    return _schemes(
        _FASHION[preset],
        lambda scheme, given: tuple(FashionTraining.of({"scheme": scheme, "seed": seed, **given}) for seed in seeds),
    )


def _schemes(
    sizes: dict[str, Any], settings: Callable[[str, dict[str, Any]], tuple[TrainingSettings, ...]]
) -> list[ExperimentPart]:
    parts = []
    for scheme in ("fnn", "bnn", "ca-fnn", "ca-bnn"):
        epochs = sizes["epochs"] * (2 if has_beta(scheme) else 1)
        given = {**sizes, "epochs": epochs, "evaluate_every": epochs}
        for lam in LAMS if has_lam(scheme) else (0.0,):
            trainings = settings(scheme, {**given, **({"lam": lam} if lam else {})})
            parts.append(ExperimentPart(f"{scheme.upper()}, λ = {lam:g}" if lam else scheme.upper(), trainings))
    return parts


MEMBERSHIP: dict[str, Definition] = {
    "membership-newsgroups": Definition(
        "20 Newsgroups: membership attacks", _newsgroups, newsgroups_membership_trial, check_newsgroups
    ),
    "membership-fashion": Definition("Fashion-MNIST: membership attacks", _fashion, fashion_membership_trial, check_fashion),
}
