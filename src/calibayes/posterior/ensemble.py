r"""Several posteriors that vote: deep ensembles, mixtures of Gaussians, ensembles of anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from calibayes.checks import integer, positive_integer
from calibayes.data.sources import Batch
from calibayes.errors import InvalidArgumentError, ModelFileError
from calibayes.posterior.abstract_posterior import Networks, Output, Posterior, Samples, posterior_from
from calibayes.posterior.network_outputs import mean_logits
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.randomness import derived_seed, seeded

__all__ = ["Ensemble", "member_samples", "member_seed"]


def member_seed(seed: int, member: int) -> int:
    """The seed of one member: that of the ensemble for the first, one derived from it for every other."""
    return seed if member == 0 else derived_seed(seed, "member", member)


def member_samples(
    members: Sequence[NetworkPosterior], samples: Samples, seed: int
) -> Iterator[tuple[NetworkPosterior, Samples, int]]:
    """Yield each member with its share of the samples, rounded up, and its seed."""
    each = samples if isinstance(samples, str) else -(-samples // len(members))
    for index, member in enumerate(members):
        yield member, each, member_seed(seed, index)


@final
class Ensemble(Posterior):
    r"""An equal mixture of posteriors, each trained on its own: $q(\theta) = \frac1M \sum_m q_m(\theta)$.

    Members that are `Point`s make a deep ensemble (Lakshminarayanan et al. 2017, https://arxiv.org/abs/1612.01474), members
    that are `MeanField`s a mixture of Gaussians (MultiSWAG and the like; Wilson and Izmailov 2020,
    https://arxiv.org/abs/2002.08791). `calibayes.fit` trains each member with its own order of data, noise and buffers.
    A prediction with $S$ samples draws $\lceil S/M \rceil$ from each member that is random, and one from each that is not;
    all members weigh the same.

    Args:
        members: posteriors over networks with the same classes; those of an ensemble become members one by one.

    Examples:
        >>> def member(seed: int) -> calibayes.Posterior:
        ...     return calibayes.Point(torch.nn.Linear(4, 3))
        >>> ensemble = Ensemble.of(member, members=3, seed=0)
        >>> predictive = calibayes.predict(ensemble, torch.randn(5, 4))
        >>> predictive.probs.shape, bool(torch.allclose(predictive.between, predictive.epistemic))
        (torch.Size([5, 3]), True)
    """

    kind: ClassVar[str] = "ensemble"

    def __init__(self, members: Sequence[Posterior]) -> None:
        super().__init__()
        self.parts = nn.ModuleList()
        if isinstance(members, Posterior) or not isinstance(members, Sequence):
            raise InvalidArgumentError(f"Expected `members` to be a list of posteriors, but got {type(members).__name__}.")
        if not members:
            raise InvalidArgumentError("Expected `members` to be at least one posterior, but got none.")
        self.add(*members)
        self.train(self.members[0].training)

    @classmethod
    def of(cls, factory: Callable[[int], Posterior], members: int = 4, seed: int = 0) -> Ensemble:
        """Make members with their own initial weights by a function of a seed, derived from that of the ensemble.

        While ``factory`` is called with each member's seed, PyTorch's global generator is seeded with it too.
        """
        integer("seed", seed)
        posteriors = []
        for each in (member_seed(seed, member) for member in range(positive_integer("members", members))):
            with seeded(each):
                posteriors.append(factory(each))
        return cls(posteriors)

    def add(self, *members: Posterior) -> None:
        """Append members, trained already or not yet."""
        for member in members:
            if not isinstance(member, Posterior):
                raise InvalidArgumentError(
                    f"Expected every member to be a posterior, but got {type(member).__name__}. Wrap a network: `Point(net)`."
                )
            for each in member.members:
                if any(each is there for there in self.parts):
                    raise InvalidArgumentError("Expected every member once: the same posterior twice is trained twice.")
                self.parts.append(each)

    # --- what is known ---

    @property
    def members(self) -> tuple[NetworkPosterior, ...]:
        """The posteriors over one network each."""
        return tuple(self.parts)  # type: ignore[arg-type]

    @property
    def random(self) -> bool:
        return len(self.parts) > 1 or self.members[0].random

    def audit(self) -> None:
        """Print the members' audits, one for those that are alike."""
        choices = [member.choices for member in self.members]
        kinds = ", ".join(dict.fromkeys(type(member).__name__ for member in self.members))
        print(f"{len(choices)} members ({kinds})")
        for index, member in enumerate(self.members):
            if choices.index(member.choices) == index:
                print(f"Member {index + 1}:" if index else "Member 1, and those like it:")
                member.audit()

    def kl(self) -> Tensor:
        r"""The mean of the members' $\mathrm{KL}(q_m \| p)$, an upper bound of the mixture's own."""
        return torch.stack([member.kl() for member in self.members]).mean()

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Draw ``n`` sets of weights, from each member in turn."""
        positive_integer("n", n)
        drawn = [self.members[index % len(self.parts)].sample(1, generator=generator) for index in range(n)]
        return {name: torch.cat([each[name] for each in drawn]) for name in drawn[0]}

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The members' parameter groups, their names led by the member's number."""
        return [
            {**group, "name": f"{index}.{group['name']}"}
            for index, member in enumerate(self.members)
            for group in member.parameter_groups()
        ]

    def buffer_values(self) -> dict[str, Tensor]:
        """The members' buffers, their names led by the member's number."""
        members = enumerate(member.buffer_values() for member in self.members)
        return {f"{index}.{name}": value for index, values in members for name, value in values.items()}

    def finish(self, batches: Callable[[], Iterator[Batch]]) -> None:
        for member in self.members:
            member.finish(batches)

    # --- prediction ---

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the members' mean probabilities, each at its mean weights."""
        return mean_logits([member(*args, **kwargs) for member in self.members])

    def outputs(self, block: Sequence[Any], samples: Samples, seed: int) -> Iterator[Output]:
        """Yield what every member's networks return, one member after the other."""
        for index, (member, own, own_seed) in enumerate(member_samples(self.members, samples, seed)):
            for output in member.outputs(block, own, own_seed):
                yield output._replace(member=index)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member.evaluating())
            yield

    # --- on disk ---

    def config(self) -> dict[str, Any]:
        return {"kind": self.kind, "members": [member.config() for member in self.members]}

    @classmethod
    def from_config(cls, net: Networks, config: Mapping[str, Any]) -> Ensemble:
        networks = [net] * len(config["members"]) if isinstance(net, nn.Module) else list(net)
        if len(networks) != len(config["members"]):
            raise ModelFileError(f"it has {len(config['members'])} members, but got {len(networks)} networks.")
        return cls([posterior_from(*pair) for pair in zip(networks, config["members"], strict=True)])

    def prior(self) -> dict[str, Any]:
        return {"members": [member.prior() for member in self.members]}
