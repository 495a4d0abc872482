"""`check_term`: everything that the objective expects of a term beside the loss."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from calibayes.objective import Objective
from calibayes.testing.check_batches import batch, examples, expect_finite_for_every_batch, expect_stable_repr, train
from calibayes.testing.check_runner import checks_in, run_checks
from calibayes.testing.comparisons import close, different, expect, gradient_by_differences, same_bits

__all__ = ["check_term"]


def check_term(term: Any, *, skip: Collection[str] = ()) -> None:
    """Check that a term can stand in an `calibayes.Objective` beside the loss.

    Scores are finite numbers per example that do not depend on the other examples; the value of a batch is one finite number
    per leading index, in any order, and weights are copies; its gradient is that of the value; training in micro-batches,
    with samples of the weights and after an interruption is training on whole batches.

    Args:
        term: a `calibayes.objective.Term` whose weight is not zero.
        skip: names of checks to leave out, as messages have them.

    Raises:
        AssertionError: says which check failed, and what differed.

    Examples:
        >>> calibayes.testing.check_term(calibayes.Calibration(calibayes.MMCE(), lam=5.0))
    """
    run_checks(checks_in(__name__, check_term), _Used(term), repr(term), skip=skip)


@dataclass(frozen=True)
class _Used:
    """A term, and how it is called and trained with."""

    term: Any

    def scores(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        """The scores of a batch; out-of-domain inputs have no targets."""
        return self.term.scores(logits, None if self.term.on == "out_of_domain" else targets)  # type: ignore[no-any-return]

    def value(self, logits: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The term of a batch."""
        scores = self.scores(logits, targets)
        given = None if weights is None else weights.to(scores[0]).expand(scores[0].shape)
        return self.term.value(*scores, weights=given)  # type: ignore[no-any-return]

    def train(self, **settings: Any) -> tuple[dict[str, Tensor], Any]:
        """A training with the data that the term is taken on."""
        x, y = examples()
        given: dict[str, Any] = {}
        if self.term.on == "held_out":
            given = {"calibration_data": (x.flip(0) + 0.1, y.flip(0))}
        elif self.term.on == "out_of_domain":
            given = {"out_of_domain": (3 * x.flip(0),)}
        return train(_objective(self.term), **given, **settings)


def _objective(*terms: Any) -> Any:
    return Objective(beta=0.1, terms=terms)


def check_description(used: _Used) -> None:
    """It has a name, says what it is taken on and of, has a weight, and a `repr` by which checkpoints are recognised."""
    term = used.term
    expect(isinstance(getattr(term, "name", None), str) and term.name.isidentifier(), "its `name` must be an identifier")
    known = ("batch", "held_out", "out_of_domain")
    expect(term.on in known, f"`on` is {term.on!r}, which is not 'batch', 'held_out' or 'out_of_domain'")
    expect(term.of in ("samples", "predictive"), f"`of` is {term.of!r}, neither 'samples' nor 'predictive'")
    weight = term.weight(step=0, batch_size=12)
    expect(isinstance(weight, float | int) and weight >= 0, f"`weight` is {weight!r}, not a number of at least 0")
    expect_stable_repr(term)


def check_shapes(used: _Used) -> None:
    """Scores are one number per example each, the value is one per leading index."""
    for lead in ((), (3,)):
        logits, targets = batch(12, *lead)
        scores = used.scores(logits, targets)
        expect(isinstance(scores, tuple), f"`scores` must be a tuple of tensors, but is a {type(scores).__name__}")
        for k, score in enumerate(scores):
            expect(list(score.shape) == [*lead, 12], f"score {k} of [..., n] = {[*lead, 12]} has shape {list(score.shape)}")
        value = used.value(logits, targets)
        expect(list(value.shape) == list(lead), f"`value` for the leading axes {list(lead)} has shape {list(value.shape)}")


def check_finite_for_every_batch(used: _Used) -> None:
    """Value and gradient are finite for batches that are all right, all wrong, single, saturated or tied."""
    expect_finite_for_every_batch(used.value, "value", (torch.bfloat16, torch.float32, torch.float64))


def check_scores_are_independent(used: _Used) -> None:
    """An example's scores depend on no other example, nor on a constant that is added to its logits."""
    logits, targets = batch()
    whole = used.scores(logits, targets)
    for k, (few, many) in enumerate(zip(used.scores(logits[:5], targets[:5]), whole, strict=True)):
        close(few, many[:5], f"score {k} of the first five, compared with those among twenty,")
    for k, (moved, many) in enumerate(zip(used.scores(logits + 3, targets), whole, strict=True)):
        close(moved, many, f"score {k} after adding 3 to all logits (only their softmax means something)", 1e-6)


def check_batches(used: _Used) -> None:
    """The order of examples does not matter, leading axes are separate batches, and weights of one change nothing."""
    logits, targets = batch(12, 3)
    whole = used.value(logits, targets)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    close(used.value(logits[:, order], targets[order]), whole, "the value after a permutation of the examples")
    for k in range(3):
        close(used.value(logits[k], targets), whole[k], f"the value of batch {k} alone, compared with that among three")
    close(used.value(logits, targets, torch.ones(12)), whole, "the value of weights of one, compared with none")


def check_weights(used: _Used) -> None:
    """A weight of two is the example twice."""
    logits, targets = batch()
    copies = 1 + torch.arange(len(targets)) % 3
    copied = used.value(logits.repeat_interleave(copies, 0), targets.repeat_interleave(copies))
    close(used.value(logits, targets, copies), copied, "the value of weights, compared with copies,")


def check_gradient(used: _Used) -> None:
    """The gradient is that of finite differences in the scores."""
    scores = {f"score {index} of example": score for index, score in enumerate(used.scores(*batch(7)))}
    gradient_by_differences(used.term.value, scores)


def check_training(used: _Used) -> None:
    """It has an effect, is logged, and micro-batches and samples in turn train as whole batches do."""
    for bayesian in (False, True):
        settings: dict[str, Any] = {"bayesian": bayesian, "samples": 3}
        whole, history = used.train(**settings)
        name, row = used.term.name, history.epochs[-1]
        expect(name in row, f"the history has no {name!r}, only {sorted(row)}")
        different(whole, train(_objective(), **settings)[0], "training with the term is training without it")
        for others in ({"micro_batch_size": 5}, {"sample_chunk": 1}):
            actual, _ = used.train(**settings, **others)
            close(actual, whole, f"the state after training with {others}, compared with whole batches,", 1e-6)


def check_training_resumes(used: _Used) -> None:
    """Interrupted after an epoch, training ends with the same bits."""
    whole, history = used.train(epochs=3)
    with TemporaryDirectory() as folder:
        used.train(epochs=1, checkpoint=Path(folder))
        resumed, again = used.train(epochs=3, checkpoint=Path(folder))
    same_bits(resumed, whole, "the state after a `fit` that was resumed, compared with one that was not,")
    expect(again == history, "a `fit` that was resumed has another history than one that was not")
