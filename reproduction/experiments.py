"""The paper's experiments as lists of trainings, with presets for a GPU, for two cores, and for a quick look."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from calibayes.errors import InvalidArgumentError
from calibayes.methods.term_weights import has_beta, has_lam
from calibayes.objective import SCHEMES
from calibayes.recipes.single_training import TrainingSettings
from calibayes.sweeps.settings_grid import varying
from calibayes.wording import did_you_mean
from reproduction.cifar10_training import CIFAR10Training, check_cifar10, cifar10_trial
from reproduction.experiment_part import ExperimentPart
from reproduction.followup_experiments import cifar10_followup, clinc150_followup
from reproduction.followup_images import check_images, cifar10_followup_trial
from reproduction.followup_texts import check_texts, clinc150_followup_trial
from reproduction.membership_experiments import fashion_membership, newsgroups_membership
from reproduction.membership_training import check_fashion, fashion_membership_trial, newsgroups_membership_trial
from reproduction.newsgroups_training import check_newsgroups, newsgroups_settings, newsgroups_trial

__all__ = ["EXPERIMENTS", "PRESETS", "Experiment", "ExperimentPart", "check_preset", "experiment"]

PRESETS = ("tiny", "cpu", "paper")


@dataclass(frozen=True)
class Experiment:
    """All trainings of an experiment."""

    name: str  # as on the command line
    title: str  # what it shows
    preset: str  # its size
    trial: Callable[[Mapping[str, Any]], dict[str, Any]]  # the function that is run on each of the settings
    check: Callable[[Mapping[str, Any]], None]  # raises if the data of a training are not on this machine
    parts: tuple[ExperimentPart, ...]  # the trainings

    @property
    def data(self) -> str:
        """The data set."""
        return self.name.partition("-")[0]

    def settings(self) -> list[dict[str, Any]]:
        """Every training once, as a dict."""
        return list({repr(each): each.to_dict() for part in self.parts for each in part.settings}.values())

    def only(self, wanted: Mapping[str, Sequence[Any]]) -> Experiment:
        """The experiment with only the trainings that have these settings, or an error if none has."""
        known = list(dict.fromkeys(name for each in self.settings() for name in each))
        for name in wanted:
            if name not in known:
                raise InvalidArgumentError(f"Expected --only to name settings, but got {name!r}. {did_you_mean(name, known)}")
        parts = []
        for part in self.parts:
            kept = [each for each in part.settings if all(getattr(each, name) in values for name, values in wanted.items())]
            parts += [ExperimentPart(part.name, tuple(kept))] if kept else []
        if not parts:
            settings = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in wanted.items())
            raise InvalidArgumentError(f"Expected some training of {self.name} to have {settings}, but none has.")
        return replace(self, parts=tuple(parts))

    def command(self, part: ExperimentPart) -> str:
        """The command that runs exactly the trainings of a part, with all its seeds."""
        settings = part.settings[0].to_dict()
        names = [name for name in varying(self.settings()) if name != "seed"]
        for name in reversed(names.copy()):
            fewer = [each for each in names if each != name]
            if self.only({each: [settings[each]] for each in fewer}).parts == (part,):
                names = fewer
        preset = "" if self.preset == "cpu" else f" --preset {self.preset}"
        values = {name: settings[name] if isinstance(settings[name], str) else json.dumps(settings[name]) for name in names}
        return " ".join([f"calibayes reproduce {self.name}{preset}", *(f"--only {name}={values[name]}" for name in names)])


def check_preset(preset: str) -> str:
    """``preset`` itself, or an error that lists the valid ones."""
    if preset not in PRESETS:
        raise InvalidArgumentError(f"Expected the preset to be one of {', '.join(PRESETS)}, but got {preset!r}.")
    return preset


def experiment(name: str, preset: str = "cpu") -> Experiment:
    """One of `EXPERIMENTS` by its name; `find_experiment` knows those under shift, too."""
    check_preset(preset)
    known_as = EXPERIMENTS[name]
    return Experiment(name, known_as.title, preset, known_as.trial, known_as.check, tuple(known_as.parts(preset)))


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


def _parts(settings: Callable[[str], Mapping[str, tuple[TrainingSettings, ...]]]) -> Callable[[str], list[ExperimentPart]]:
    return lambda preset: [ExperimentPart(name, each) for name, each in settings(preset).items()]


class Definition(NamedTuple):
    """An experiment in every size."""

    title: str  # what it shows
    parts: Callable[[str], list[ExperimentPart]]  # its trainings, by preset
    trial: Callable[[Mapping[str, Any]], dict[str, Any]]  # as in `Experiment`
    check: Callable[[Mapping[str, Any]], None]  # likewise


_TEXTS, _IMAGES = (newsgroups_trial, check_newsgroups), (cifar10_trial, check_cifar10)
EXPERIMENTS: dict[str, Definition] = {
    "newsgroups-epochs": Definition("Fig. 1: 20 Newsgroups, ECE and accuracy over epochs", _newsgroups_epochs, *_TEXTS),
    "newsgroups-lambda": Definition("Fig. 2: 20 Newsgroups, ECE and accuracy over λ", _newsgroups_lambda, *_TEXTS),
    "newsgroups-variations": Definition("20 Newsgroups: what the paper leaves open, varied", _newsgroups_variations, *_TEXTS),
    "cifar10-reliability": Definition("Fig. 3: CIFAR-10, reliability diagrams", _cifar10_reliability, *_IMAGES),
    "cifar10-variations": Definition("CIFAR-10: wider posteriors", _cifar10_variations, *_IMAGES),
    "cifar10-followup": Definition(
        "Follow-up: CIFAR-10 with outsiders", cifar10_followup, cifar10_followup_trial, check_images
    ),
    "clinc150-followup": Definition(
        "Follow-up: CLINC150 with outsiders", clinc150_followup, clinc150_followup_trial, check_texts
    ),
    "membership-newsgroups": Definition(
        "20 Newsgroups: membership attacks", _parts(newsgroups_membership), newsgroups_membership_trial, check_newsgroups
    ),
    "membership-fashion": Definition(
        "Fashion-MNIST: membership attacks", _parts(fashion_membership), fashion_membership_trial, check_fashion
    ),
}
