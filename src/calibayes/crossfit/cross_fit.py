"""Cross-fitting: every row trains, and every row has a prediction by members that have not seen it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from calibayes.crossfit.folds import Fold
from calibayes.methods.learner import Examples, Learner
from calibayes.posterior import Ensemble
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.predictive import predict, samples_for
from calibayes.randomness import derived_seed

__all__ = ["CrossFit"]

Probs = npt.NDArray[np.float64]


@dataclass(eq=False)
class CrossFit:
    """A learner, trained once for each fold without the rows of that fold.

    Attributes:
        learner: trains one member.
        examples: all rows.
        classes: how many there are.
        folds: of the rows; several repeats of folds come one after the other.
        seed: members have seeds derived from it.
        samples: of the weights, behind a prediction of a random member.
        members: those trained so far, one for each fold.
        out_of_fold: the probabilities ``[rows, classes]`` of each held-out fold, by the member that has not seen it.
        seconds: how long each member took.
    """

    learner: Learner
    examples: Examples
    classes: int
    folds: Sequence[Fold]
    seed: int = 0
    samples: int = 20
    members: list[Posterior] = field(default_factory=list)
    out_of_fold: list[Probs] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """True if every fold has its member."""
        return len(self.members) == len(self.folds)

    def train_next(self) -> None:
        """Train the member of the next fold, and predict the rows that it has not seen."""
        start, place = time.perf_counter(), len(self.members)
        fold = self.folds[place]
        held_out = self.examples.rows(torch.from_numpy(fold.held_out))
        train = self.examples.rows(torch.from_numpy(fold.train))
        member = self.learner(train, held_out, self.classes, derived_seed(self.seed, "fold", place)).to("cpu")
        found = predict(
            member,
            held_out.inputs,
            samples=samples_for(member, self.samples),
            seed=self.seed,
            dtype=torch.float64,
        )
        self.members.append(member)
        self.out_of_fold.append(found.probs.numpy())
        self.seconds.append(time.perf_counter() - start)

    def run(self) -> CrossFit:
        """Train all members that are missing."""
        while not self.complete:
            self.train_next()
        return self

    def ensemble(self) -> Ensemble:
        """The members as one posterior."""
        return Ensemble(self.members)

    def predictions(self) -> Probs:
        """The out-of-fold probabilities ``[n, classes]`` of all rows, the mean over repeats; NaN where there is none yet."""
        total, count = np.zeros((len(self.examples.targets), self.classes)), np.zeros(len(self.examples.targets))
        for fold, probs in zip(self.folds, self.out_of_fold, strict=False):
            total[fold.held_out] += probs
            count[fold.held_out] += 1
        with np.errstate(invalid="ignore"):
            mean: Probs = total / count[:, None]
        return mean
