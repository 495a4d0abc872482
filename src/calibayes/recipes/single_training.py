"""One training with its scores, as trials of sweeps run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Self, get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from calibayes.calibration import DECE, MMCE, WMMCE
from calibayes.calibration.measures import Measure
from calibayes.checks import integer, non_negative_integer, positive, positive_integer
from calibayes.data import Splits
from calibayes.data.augment import Augmented
from calibayes.errors import InvalidArgumentError
from calibayes.methods import Plan, build, method_named
from calibayes.methods.term_weights import check_weights, has_beta
from calibayes.objective import Objective, Term
from calibayes.posterior import Point
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.randomness import generator_for
from calibayes.recipes.fitting import fit_plan, plan_from_seed, seeded_network
from calibayes.recipes.training_scores import EpochScorer, rounded
from calibayes.schedules import Linear
from calibayes.training import History
from calibayes.training.epoch_metrics import OnEpoch
from calibayes.wording import did_you_mean

__all__ = [
    "TrainedNetwork",
    "TrainingSettings",
    "epoch_records",
    "fit_with_settings",
    "train_and_score",
    "train_network",
]

_COUNTS = ("epochs", "batch_size", "samples", "predictive_samples", "epoch_samples", "evaluate_every")
_OPTIMIZERS: dict[str, Any] = {
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "sgd": partial(torch.optim.SGD, momentum=0.9, nesterov=True),
}
_TERMS = ("total", "cross_entropy", "calibration", "confidence", "kl")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The settings of one training, besides its data and its network."""

    scheme: str = "fnn"  # one of `calibayes.METHODS`
    lam: float = 0.0  # λ; 0 for `fnn` and `bnn`
    beta: float = 0.0  # β; 0 for methods without a KL term
    seed: int = 0  # of initial weights, order of the data, and noise; not of the split
    epochs: int = 20  # passes over the training examples
    batch_size: int = 128  # |B|
    optimizer: Literal["rmsprop", "adam", "sgd"] = "rmsprop"  # "sgd" with Nesterov's momentum of 0.9
    learning_rate: float = 0.002  # of the optimiser
    schedule: Literal["constant", "cosine"] = "constant"  # of the learning rate; "cosine" ends at zero
    warm_up: int = 0  # epochs over which λ rises from zero
    samples: int = 1  # R
    predictive_samples: int = 20  # S of the final predictions
    epoch_samples: int = 5  # S of the predictions after other epochs
    evaluate_every: int = 1  # epochs between two scorings of the network
    prior_std: float = 0.05  # standard deviation of the prior
    init_std: float = 0.01  # standard deviation that the posterior starts with
    prior_mean: Literal["zero", "initial"] = "zero"  # centre of the prior; "initial": the weights that training starts from
    start_epochs: int = 0  # epochs of plain training (FNN) beforehand, whose weights training starts from
    measure: Literal["wmmce", "mmce", "dece"] = "wmmce"  # of the calibration term
    scores: Literal["soft", "hard"] = "soft"  # fully differentiable, or those of Kumar et al.
    tau_r: float = 0.001  # temperature of the soft confidence
    tau_c: float = 0.01  # temperature of the soft correctness
    kernel_width: float = 0.4  # γ of the kernel
    normalization: Literal["paper", "reference"] = "paper"  # of WMMCE
    lam_scale: Literal["paper", "mean"] = "paper"  # "mean": λ itself beside the mean cross-entropy
    held_out: int = 0  # training examples for the calibration term only; 0 to use the training batch

    def __post_init__(self) -> None:
        for name in _COUNTS:
            positive_integer(name, getattr(self, name))
        integer("seed", self.seed)
        for name in ("start_epochs", "warm_up", "held_out"):
            non_negative_integer(name, getattr(self, name))
        positive("learning_rate", self.learning_rate)
        if has_beta(self.scheme) and not self.beta > 0:
            raise InvalidArgumentError(f"Expected `beta` to be positive for {self.scheme!r}, but got {self.beta!r}.")
        check_weights(self.scheme, lam=self.lam, beta=self.beta)
        if self.start_epochs and method_named(self.scheme).has("members"):
            raise InvalidArgumentError(
                f"Expected no `start_epochs` for {self.scheme!r}, but got {self.start_epochs}: each of its members has its own "
                "initial weights."
            )
        for name, hint in get_type_hints(type(self)).items():
            if get_origin(hint) is Literal and (value := getattr(self, name)) not in get_args(hint):
                raise InvalidArgumentError(f"Expected `{name}` to be one of {get_args(hint)}, but got {value!r}.")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The settings in a mapping; unknown names are rejected, with the closest match suggested."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise InvalidArgumentError(f"Expected names of settings, but got {name!r}. {did_you_mean(name, known)}")
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        """Every setting by name."""
        return asdict(self)

    def of_method(self, steps: int) -> dict[str, Any]:
        r"""The settings of the method, by name; ``steps`` is the number of steps per epoch, for the rise of $\lambda$."""
        settings: dict[str, Any] = {
            "lam": Linear(end=self.lam, steps=self.warm_up * steps) if self.warm_up and self.lam else self.lam,
            "prior_mean": "initial" if self.prior_mean == "initial" else None,
            "calibration": self.calibration(),
            **{name: getattr(self, name) for name in ("beta", "prior_std", "init_std", "samples", "learning_rate")},
        }
        return {name: value for name, value in settings.items() if method_named(self.scheme).has(name)}

    def calibration(self) -> Measure:
        """The calibration measure."""
        scores: dict[str, Any] = {"mode": self.scores, "tau_r": self.tau_r, "tau_c": self.tau_c}
        kernel: dict[str, Any] = {"kernel_width": self.kernel_width}
        if self.measure == "wmmce":
            return WMMCE(**scores, **kernel, normalization=self.normalization)
        return MMCE(**scores, **kernel) if self.measure == "mmce" else DECE(**scores)


class TrainedNetwork(NamedTuple):
    """A posterior after its training."""

    posterior: Posterior
    history: History
    record: dict[str, Any]  # how many weights were trained, how long, and on what


def train_network(
    settings: TrainingSettings,
    train: tuple[Tensor, Tensor],
    network: Callable[[], nn.Module],
    *,
    augment: bool = False,
    method: Mapping[str, Any] | None = None,
    terms: Sequence[Term] = (),
    on_epoch: OnEpoch | None = None,
    **others: Any,
) -> TrainedNetwork:
    """Train a network with these settings.

    Args:
        settings: of the training.
        train: inputs and labels.
        network: returns a new network; the seed governs its initial weights.
        augment: shift and mirror images.
        method: further settings of the method, by name.
        terms: of the objective, beside the calibration term.
        on_epoch: called after every epoch, unless the posterior is an ensemble.
        others: further arguments of `calibayes.fit`.
    """
    data = Augmented(train) if augment else train
    sizes: list[int] = []

    def counted() -> nn.Module:
        net = network()
        sizes.append(sum(parameter.numel() for parameter in net.parameters() if parameter.requires_grad))
        return net

    chosen = {**settings.of_method(steps=-(-len(train[1]) // settings.batch_size)), **(method or {})}
    seconds = 0.0
    if settings.start_epochs:
        start = Point(seeded_network(settings.scheme, counted, settings.seed))
        before = fit_with_settings(replace(settings, epochs=settings.start_epochs), Plan(start, Objective(lam=0.0), {}), data)
        seconds = sum(before.seconds)
        plan = build(settings.scheme, start.network(), **chosen)
    else:
        plan = plan_from_seed(settings.scheme, counted, settings.seed, **chosen)
    objective = replace(plan.objective, lam_scale=settings.lam_scale)
    if terms:
        objective = Objective(beta=objective.beta, loss=objective.loss, terms=(*objective.terms, *terms))
    posterior = plan.posterior
    # The members of an ensemble are trained one after the other, so it can only be scored at the end.
    on_epoch = on_epoch if len(posterior.members) == 1 else None
    history = fit_with_settings(settings, plan._replace(objective=objective), data, on_epoch=on_epoch, **others)
    record = {
        "weights": sum(sizes),
        "training_seconds": round(seconds + sum(history.seconds), 3),
        "threads": torch.get_num_threads(),
        "device": str(posterior.device),
    }
    return TrainedNetwork(posterior, history, record)


def train_and_score(
    settings: TrainingSettings,
    splits: Splits,
    network: Callable[[], nn.Module],
    *,
    augment: bool = False,
    examine: Callable[[Posterior, Mapping[str, Any]], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Train a network on the training part and score it on the others; the result consists of numbers.

    Args:
        settings: of the training.
        splits: the data; temperatures are fitted on validation examples.
        network: returns a new network; the seed governs its initial weights.
        augment: shift and mirror images.
        examine: called with the trained posterior and its final scores; what it returns, by name, is added to the result.
    """
    train, held_out = _without_held_out(splits.train, settings.held_out)
    scorer = EpochScorer(splits, settings.evaluate_every, settings.epochs, settings.epoch_samples, settings.seed)
    trained = train_network(settings, train, network, augment=augment, on_epoch=scorer, calibration_data=held_out)
    final = scorer.final(trained.posterior, settings.predictive_samples)
    return {
        "epochs": epoch_records(trained.history, scorer.scores),
        "final": final,
        "examples": {"train": len(train[1]), **{part: len(getattr(splits, part)[1]) for part in ("validation", "test")}},
        **trained.record,
        **(examine(trained.posterior, final) if examine else {}),
    }


def fit_with_settings(settings: TrainingSettings, plan: Plan, data: Any, **others: Any) -> History:
    """Train a plan with the optimiser, its schedule, epochs, batch size, samples and seed of these settings."""
    named = {name: getattr(settings, name) for name in ("learning_rate", "epochs", "batch_size", "samples", "seed")}
    return fit_plan(
        plan, data, optimizer=_OPTIMIZERS[settings.optimizer], cosine=settings.schedule == "cosine", **named, **others
    )


def _without_held_out(train: tuple[Tensor, Tensor], count: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor] | None]:
    """The training examples, and the held-out ones for the calibration term."""
    if not count:
        return train, None
    x, y = train
    if count >= len(y):
        raise InvalidArgumentError(f"Expected `held_out` to leave some of the {len(y):,} training examples, but got {count}.")
    order = torch.randperm(len(y), generator=generator_for(torch.device("cpu"), 0, "held-out"))
    kept, rest = order[:count], order[count:]
    return (x[rest], y[rest]), (x[kept], y[kept])


def epoch_records(history: History, scores: Mapping[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """Every epoch's time and terms, and its scores where it has some."""
    return [_epoch(row, took, scores) for row, took in zip(history.epochs, history.seconds, strict=True)]


def _epoch(row: Mapping[str, float], seconds: float, scores: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    epoch = int(row["epoch"])
    terms = {name: rounded(row[name]) for name in _TERMS if name in row}
    return {"epoch": epoch, "seconds": round(seconds, 3), **terms, **scores.get(epoch, {})}
