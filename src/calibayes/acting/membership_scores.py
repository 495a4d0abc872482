r"""Scores that guess from a prediction whether its example was in the training data; higher for members.

A membership attack asks of a trained classifier and an example: was it trained on this? Overfitted networks are more confident
of what they have seen. The simplest attacks threshold the loss (Yeom et al. 2018, https://arxiv.org/abs/1709.01604), the
confidence (Salem et al. 2019, https://arxiv.org/abs/1806.01246) or entropies (Song and Mittal 2021,
https://arxiv.org/abs/2003.10595). The likelihood-ratio attack, LiRA (Carlini et al. 2022, https://arxiv.org/abs/2112.03570),
compares the prediction with those of *shadow* models that were trained in the same way, with and without the example.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from calibayes.acting.acting_inputs import as_tensor, read_labelled, read_numbers
from calibayes.errors import InvalidArgumentError
from calibayes.metrics.prediction_arrays import Array
from calibayes.predictive import Predictive
from calibayes.wording import did_you_mean

__all__ = ["LiraVariance", "LiraVariant", "MembershipMethod", "lira_scores", "membership_scores", "true_class_log_odds"]

MembershipMethod = Literal["loss", "confidence", "entropy", "modified-entropy"]
LiraVariant = Literal["online", "offline"]
LiraVariance = Literal["pooled", "per-example"]
_TINY = torch.finfo(torch.float64).tiny  # in place of a probability of zero, whose logarithm is not finite


def membership_scores(probs: Array | Predictive, labels: Array, method: MembershipMethod = "loss") -> Tensor:
    r"""The score of each example, ``[n]`` in float64; higher where the example is more likely to be a member.

    Args:
        probs: the classifier's probabilities ``[n, K]``, or a `Predictive`.
        labels: the true classes ``[n]``; ``"confidence"`` and ``"entropy"`` do not use them.
        method: ``"loss"`` is $\log p_y$, minus the loss; ``"confidence"`` is $\max_k p_k$; ``"entropy"`` is minus the entropy
            of $p$; ``"modified-entropy"`` is $(1 - p_y)\log p_y + \sum_{k \ne y} p_k \log(1 - p_k)$, which is highest for
            an example that is classified right with certainty and lowest for one that is classified wrong with certainty.

    Examples:
        >>> probs = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
        >>> membership_scores(probs, torch.tensor([0, 0]))
        tensor([-0.1054, -1.6094], dtype=torch.float64)
        >>> membership_scores(probs, torch.tensor([0, 0]), "confidence")
        tensor([0.9000, 0.8000], dtype=torch.float64)
    """
    if method not in get_args(MembershipMethod):
        raise InvalidArgumentError(f"Unknown `method` {method!r}. {did_you_mean(method, get_args(MembershipMethod))}")
    values, targets = read_labelled(probs, labels)
    if method == "confidence":
        return values.amax(-1)
    if method == "entropy":
        entropy: Tensor = torch.special.entr(values).sum(-1)
        return -entropy
    own, rest = _own_and_rest(values, targets)
    # Close to 1, the logarithm of a probability has more digits if it is taken from the rest.
    log_own = torch.where(own > 0.5, torch.log1p(-rest), own.log())
    if method == "loss":
        return log_own
    others = values.scatter(1, targets[:, None], 0.0)
    decision = values.argmax(-1, keepdim=True)
    log_complements = torch.log1p(-others).scatter(1, decision, _own_and_rest(values, decision[:, 0])[1].log()[:, None])
    return rest * log_own + (others * log_complements).sum(-1)


def true_class_log_odds(probs: Array | Predictive, labels: Array) -> Tensor:
    r"""The log-odds of the true class, $\log p_y - \log(1 - p_y)$, which is close to normally distributed over trainings.

    It is what `lira_scores` takes. The complement is summed over the other classes, so that a confidence of almost 1 keeps its
    digits: predict with ``dtype=torch.float64``.

    Examples:
        >>> true_class_log_odds(torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64), torch.tensor([0, 0]))
        tensor([ 2.1972, -1.3863], dtype=torch.float64)
    """
    values, targets = read_labelled(probs, labels)
    own, rest = _own_and_rest(values, targets)
    return own.log() - rest.log()


def _own_and_rest(values: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The probability of one class of each example, and the sum of the others: 1 minus it would lose digits; both positive."""
    own = values.gather(1, classes[:, None])[:, 0]
    rest = values.scatter(1, classes[:, None], 0.0).sum(-1)
    return own.clamp_min(_TINY), rest.clamp_min(_TINY)


def lira_scores(
    target: Array,
    shadows: Array,
    membership: Array,
    *,
    variant: LiraVariant = "online",
    variance: LiraVariance = "pooled",
) -> Tensor:
    r"""The scores of the likelihood-ratio attack, ``[n]`` in float64; higher where the example is more likely to be a member.

    For each example, normal distributions are fitted to the log-odds of its true class in shadow models that were trained with
    it, $N(\mu_1, \sigma_1^2)$, and without it, $N(\mu_0, \sigma_0^2)$. With the target model's log-odds $t$ the score is

    $$ \log N(t; \mu_1, \sigma_1^2) - \log N(t; \mu_0, \sigma_0^2) \quad\text{or, offline,}\quad (t - \mu_0) / \sigma_0. $$

    The offline attack needs no shadow model that has seen the example; the original's $\Phi((t - \mu_0) / \sigma_0)$ gives the
    same ranking. The shadow models must not include the target, nor depend on which examples it was trained on.

    Args:
        target: the target model's `true_class_log_odds`, ``[n]``.
        shadows: those of the shadow models, ``[m, n]``.
        membership: which examples each shadow model was trained on, booleans ``[m, n]``.
        variant: ``"online"`` or ``"offline"``.
        variance: ``"pooled"`` estimates one $\sigma_1$ and one $\sigma_0$ from all examples, which is better below some 64
            shadow models; ``"per-example"`` estimates them for each example.

    Examples:
        >>> shadows = torch.tensor([[3.0, 1.0], [5.0, 3.0], [0.0, 1.0], [2.0, 3.0]])
        >>> membership = torch.tensor([[True, True], [True, True], [False, False], [False, False]])
        >>> lira_scores(torch.tensor([4.0, 2.0]), shadows, membership)  # the second example makes no difference
        tensor([2.2500, 0.0000], dtype=torch.float64)
    """
    for name, value, known in (("variant", variant, LiraVariant), ("variance", variance, LiraVariance)):
        if value not in get_args(known):
            raise InvalidArgumentError(f"Unknown `{name}` {value!r}. {did_you_mean(value, get_args(known))}")
    wanted = read_numbers("target", target)
    odds, inside = _read_shadows(shadows, membership, len(wanted))
    out_mean, out_variance = _normal(odds, ~inside, variance, "without")
    if variant == "offline":
        return (wanted - out_mean) / out_variance.sqrt()
    in_mean, in_variance = _normal(odds, inside, variance, "with")
    with_it = -0.5 * ((wanted - in_mean).square() / in_variance + in_variance.log())
    without_it = -0.5 * ((wanted - out_mean).square() / out_variance + out_variance.log())
    return with_it - without_it


def _read_shadows(shadows: Array, membership: Array, examples: int) -> tuple[Tensor, Tensor]:
    """Log-odds in float64 and membership as booleans, both ``[m, n]``."""
    odds, inside = as_tensor("shadows", shadows).double(), as_tensor("membership", membership)
    if odds.dim() != 2 or not len(odds) or odds.shape[1] != examples:
        raise InvalidArgumentError(f"Expected `shadows` of shape [m, {examples}], but got {list(odds.shape)}.")
    if inside.shape != odds.shape or not bool(((inside == 0) | (inside == 1)).all()):
        raise InvalidArgumentError(
            f"Expected `membership` to be booleans of shape {list(odds.shape)}, that of `shadows`, but got {inside.dtype} of "
            f"shape {list(inside.shape)}."
        )
    if not bool(odds.isfinite().all()):
        model, row = np.argwhere(~odds.isfinite().numpy())[0]
        raise InvalidArgumentError(
            f"Expected `shadows` to be finite, but that of model {model} for example {row} is {odds[model, row].item()}."
        )
    return odds, inside.bool()


def _normal(odds: Tensor, chosen: Tensor, variance: LiraVariance, how: str) -> tuple[Tensor, Tensor]:
    """Mean and variance of the log-odds of each example over the chosen shadow models."""
    count = chosen.sum(0)
    least = 2 if variance == "per-example" else 1
    if bool((count < least).any()):
        row = int((count < least).nonzero()[0])
        raise InvalidArgumentError(
            f"Expected at least {least} shadow model{'s' * (least > 1)} trained {how} each example, but example {row} has "
            f"{int(count[row])}. Train more shadow models, or leave the example out."
        )
    mean = odds.where(chosen, 0.0).sum(0) / count
    squares = (odds - mean).where(chosen, 0.0).square().sum(0)
    if variance == "pooled":
        freedom = int((count - 1).sum())
        if not freedom:
            raise InvalidArgumentError(
                f"Expected some example to have two shadow models trained {how} it, to estimate a variance, but each has one."
            )
        squares, count = squares.sum().expand_as(mean), torch.full_like(count, freedom + 1)
    spread = squares / (count - 1)
    if not bool((spread > 0).all()):
        row = int((spread <= 0).nonzero()[0])
        raise InvalidArgumentError(
            f"The log-odds of example {row} are the same in all shadow models trained {how} it, so no normal distribution can "
            "be fitted. Use `variance='pooled'`, and shadow models with different seeds."
        )
    return mean, spread
