"""One training of the follow-up: with or without confidence minimisation, and what the network makes of outsiders.

The follow-up is Huang, Park and Simeone, "Calibrating Bayesian Learning via Regularization, Confidence Minimization, and
Selective Inference" (2024, https://arxiv.org/abs/2404.11350).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from calibayes.checks import positive_integer
from calibayes.data import Splits
from calibayes.errors import InvalidArgumentError
from calibayes.methods import method_named
from calibayes.objective import ConfidenceMinimization
from calibayes.posterior import LastLayerLaplace
from calibayes.recipes.single_training import TrainingSettings, epoch_records, train_network
from reproduction.followup_scores import OutsiderScorer

__all__ = ["FollowUpData", "FollowUpTraining", "train_and_score_outsiders"]


@dataclass(frozen=True, kw_only=True)
class FollowUpTraining(TrainingSettings):
    """The settings of a training of the follow-up, on images or texts."""

    ocm: float = 0.0  # weight of confidence minimisation beside the mean loss; 0 for none
    clip_norm: float | None = None  # of the gradient
    members: int = 1  # of an ensemble
    train: int | None = None  # training examples; all by default
    test: int | None = None  # validation and test examples, each; all by default
    outsiders: int | None = None  # to test on, of each source; all by default

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("members", self.members)
        if not self.ocm >= 0:
            raise InvalidArgumentError(f"Expected `ocm` to be at least 0, but got {self.ocm!r}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class FollowUpData:
    """A data set with inputs of none of its classes, and test examples that have shifted mildly."""

    splits: Splits
    outside: Tensor  # outsiders to train on
    outsiders: Mapping[str, Tensor]  # outsiders to test on, by their source
    shifted: Mapping[str, tuple[Tensor, Tensor]]  # test inputs and their labels, by the kind of shift


def train_and_score_outsiders(
    settings: FollowUpTraining, data: FollowUpData, network: Callable[[], nn.Module], *, augment: bool = False
) -> dict[str, Any]:
    """Train a network and score it on insiders, outsiders and shifted inputs; the result consists of numbers."""
    extra: dict[str, Any] = {}
    if settings.ocm:
        extra = {"terms": (ConfidenceMinimization(settings.ocm),), "out_of_domain": (data.outside,)}
    own = {"members": settings.members} if method_named(settings.scheme).has("members") else None
    trained = train_network(
        settings, data.splits.train, network, augment=augment, method=own, clip_norm=settings.clip_norm, **extra
    )
    posterior = trained.posterior
    if isinstance(posterior, LastLayerLaplace):
        held_out = data.splits.validation  # as for the temperatures; the prior of the highest evidence is far too wide
        posterior = LastLayerLaplace.from_point(posterior, data.splits.train, "validation", validation=held_out)
    scorer = OutsiderScorer(posterior, settings.predictive_samples, settings.seed)
    return {
        "epochs": epoch_records(trained.history, {}),
        "final": scorer.scores(data.splits, data.outsiders, data.shifted),
        "examples": {part: len(getattr(data.splits, part)[1]) for part in ("train", "validation", "test")}
        | {"outside": len(data.outside)}
        | {name: len(x) for name, x in data.outsiders.items()},
        **trained.record,
    }
