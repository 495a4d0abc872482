r"""Conformity scores: how unusual each class would be as the label of an example, low for the probable ones.

The most probable class has a score below all others, whatever its probability, so that a set is never empty. This lowers the
threshold: beside the most probable class a set holds no class that the plain score would leave out, and it holds the label as
often as promised.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

import torch
from torch import Tensor

from calibayes.checked_fields import Fields
from calibayes.checks import integer, is_real, non_negative_integer
from calibayes.errors import InvalidArgumentError
from calibayes.randomness import derived_seed
from calibayes.wording import did_you_mean

__all__ = ["LEAST", "ConformalScore", "ScoreName", "chosen_score"]

ScoreName = Literal["lac", "aps", "raps", "top-k"]

LEAST = -1.0  # below the score of any class; all others are at least 0


@dataclass(frozen=True)
class ConformalScore:
    r"""A conformity score $s(x, y)$ of every class, with its settings.

    Args:
        name: ``"lac"`` is $1 - p_y$, which gives the smallest sets on average (Sadinle, Lei and Wasserman, 2019,
            https://arxiv.org/abs/1609.00451). ``"aps"`` is the probability of all classes at least as probable as $y$, which
            gives larger sets to harder examples (Romano, Sesia and Candès, 2020, https://arxiv.org/abs/2006.02544).
            ``"raps"`` adds ``penalty`` for each rank beyond ``free_ranks`` (Angelopoulos et al., 2021,
            https://arxiv.org/abs/2009.14193). ``"top-k"`` is the rank of $y$.
        seed: randomises APS, RAPS and top-k, which makes their sets smaller: the share $u$ of $p_y$ (or of a rank) that
            counts is uniform on 0 … 1, a function of the seed and of the example's probabilities alone. ``None`` for $u = 1$.
        penalty: of RAPS; must not be chosen on the calibration examples.
        free_ranks: of RAPS, likewise.

    Examples:
        >>> ConformalScore("aps").of_classes(torch.tensor([[0.6, 0.3, 0.1]], dtype=torch.float64))
        tensor([[-1.0000,  0.9000,  1.0000]], dtype=torch.float64)
    """

    name: ScoreName = "lac"
    seed: int | None = None
    penalty: float = 0.1
    free_ranks: int = 1

    def __post_init__(self) -> None:
        if self.name not in get_args(ScoreName):
            raise InvalidArgumentError(f"Unknown `score` {self.name!r}. {did_you_mean(self.name, get_args(ScoreName))}")
        if self.seed is not None:
            integer("seed", self.seed)
        if not is_real(self.penalty) or not 0 <= self.penalty < float("inf"):
            raise InvalidArgumentError(f"Expected `penalty` to be a number of at least 0, but got {self.penalty!r}.")
        non_negative_integer("free_ranks", self.free_ranks)

    def of_classes(self, probs: Tensor) -> Tensor:
        """The score of every class, ``[n, K]``, from probabilities ``[n, K]`` in float64.

        They are rounded to float32 first, so that the same probabilities have the same scores in either type.
        """
        best = probs.argmax(-1, keepdim=True)
        probs = probs.float().double()
        if self.name == "lac":
            scores = 1 - probs
        else:
            # Among equally probable classes the first comes first, as in an argmax.
            if torch.compiler.is_exporting():  # where no sort is stable, so equal ones are made different by their place
                place = torch.arange(probs.shape[-1], dtype=torch.float64)
                different = torch.where(probs > 0, probs * (1 - place * 2.0**-50), -place)
                order = different.topk(probs.shape[-1], sorted=True).indices
                ordered = probs.gather(-1, order)
            else:
                ordered, order = torch.sort(probs, dim=-1, descending=True, stable=True)
            share = self._shares(probs)
            rank = torch.arange(1, probs.shape[-1] + 1, dtype=torch.float64).expand_as(probs)
            by_rank = rank - 1 + share if self.name == "top-k" else ordered.cumsum(-1) - (1 - share) * ordered
            if self.name == "raps":
                penalty = torch.tensor(self.penalty, dtype=torch.float64)  # as a plain number, ONNX has it in float32
                by_rank = by_rank + penalty * (rank - self.free_ranks).clamp_min(0)
            scores = torch.empty_like(probs).scatter_(-1, order, by_rank)
        return scores.scatter(-1, best, LEAST)

    def of_labels(self, probs: Tensor, labels: Tensor) -> Tensor:
        """The score of each example's label, ``[n]``."""
        return self.of_classes(probs).gather(-1, labels[:, None])[:, 0]

    def to_dict(self) -> dict[str, Any]:
        """The settings in plain values."""
        return asdict(self)

    @classmethod
    def of(cls, fields: Fields) -> Self:
        """Check and return what `to_dict` described."""
        return cls(
            name=fields.text("name", get_args(ScoreName)),  # type: ignore[arg-type]
            seed=None if fields.is_none("seed") else fields.seed("seed"),
            penalty=fields.number("penalty", least=0),
            free_ranks=fields.size("free_ranks", 0),
        )

    def _shares(self, probs: Tensor) -> Tensor:
        """$u$ of each example, ``[n, 1]``.

        A function of the example alone keeps the scores exchangeable and does not depend on the batch.
        """
        if self.seed is None:
            return torch.ones_like(probs[:, :1])
        generator = torch.Generator().manual_seed(derived_seed(self.seed, "conformal scores"))
        # The digits of a mixture of the probabilities beyond the sixth are as good as random.
        mixture = 1e6 * (1 + torch.rand(probs.shape[-1], generator=generator, dtype=torch.float64))
        return (probs * mixture).sum(-1, keepdim=True).remainder(1.0)


def chosen_score(score: ScoreName | ConformalScore, seed: int | None) -> ConformalScore:
    """A score with its settings, from its name and a seed, or as it is."""
    if not isinstance(score, ConformalScore):
        return ConformalScore(score, seed)
    if seed is not None:
        raise InvalidArgumentError(f"{score} has its own seed: leave `seed={seed!r}` out.")
    return score
