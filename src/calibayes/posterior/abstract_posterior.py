"""The base of all posteriors, and the registry of their kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from inspect import isabstract
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from calibayes.data.sources import Batch
from calibayes.errors import InvalidArgumentError, ModelFileError

if TYPE_CHECKING:
    from calibayes.posterior.group import Group
    from calibayes.posterior.network_posterior import NetworkPosterior

__all__ = ["Networks", "Output", "Posterior", "Samples", "posterior_from", "registered_kinds"]

Networks = nn.Module | Sequence[nn.Module]
Samples = int | Literal["mean", "closed-form"]

_KINDS: dict[str, type[Posterior]] = {}


class Output(NamedTuple):
    """The outputs of one network, one for each batch of inputs, and the number of its member in an `Ensemble` (or 0)."""

    member: int
    outputs: list[Any]


class Posterior(nn.Module, ABC):
    """A distribution over networks: all that `calibayes.fit`, `calibayes.predict` and `calibayes.save` need to know.

    A posterior over the weights of one network, made of flat vectors, is a `calibayes.posterior.NetworkPosterior`. A final
    subclass registers itself under its ``kind``, the name by which `calibayes.load` finds it.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        kind = cls.__dict__.get("kind")
        if kind is None:
            return
        known = _KINDS.get(kind, cls)
        # A cell of a notebook that is run again defines the same class again.
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidArgumentError(
                f"Expected every kind of posterior once, but {kind!r} is both {known.__qualname__} and {cls.__qualname__}. "
                "Give the new one another `kind`."
            )
        _KINDS[kind] = cls

    # --- what is known ---

    @property
    @abstractmethod
    def members(self) -> Sequence[NetworkPosterior]:
        """The posteriors over one network each that are trained separately: itself, or those of an ensemble."""

    @property
    def trained_parts(self) -> Sequence[NetworkPosterior | Group]:
        """The parts that are notified as training goes on: the members of an ensemble, or the groups of one of them."""
        return self.members

    @property
    def num_bayesian(self) -> int:
        """The number of weights that have a distribution; tied weights count once."""
        return sum(member.num_bayesian for member in self.members)

    @property
    @abstractmethod
    def random(self) -> bool:
        """True if samples of it differ."""

    def widths(self) -> set[int]:
        r"""The identities of the parameters that are logarithms of standard deviations, $\rho$."""
        groups = (group for member in self.members for group in member.groups)
        return {id(pair.rho) for group in groups if (pair := group.gaussian()) is not None}

    @abstractmethod
    def audit(self) -> None:
        """Print what is done with every parameter, and why."""

    @abstractmethod
    def parameter_groups(self) -> list[dict[str, Any]]:
        """Named parameter groups for any ``torch.optim`` optimiser."""

    @abstractmethod
    def kl(self) -> Tensor:
        r"""$\mathrm{KL}(q \| p)$ in nats; zero for posteriors without one."""

    @abstractmethod
    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Draw ``n`` sets of weights, by the network's parameter names, with a leading axis of length ``n``."""

    # --- training ---

    def begin(self, epochs: int) -> None:
        """Notify the parts that a training of ``epochs`` epochs begins."""
        for part in self.trained_parts:
            part.begin(epochs)

    def after_step(self) -> None:
        """Notify the parts that an optimiser step was taken."""
        for part in self.trained_parts:
            part.after_step()

    def after_epoch(self) -> None:
        """Notify the parts that an epoch is over."""
        for part in self.trained_parts:
            part.after_epoch()

    @abstractmethod
    def finish(self, batches: Callable[[], Iterator[Batch]]) -> None:
        """Called at the end of training, in training mode, for what can only be known then.

        ``batches`` gives the training data from the beginning, in their own order, whenever it is called.
        """

    # --- prediction ---

    @abstractmethod
    def outputs(self, block: Sequence[Any], samples: Samples, seed: int) -> Iterator[Output]:
        """Yield what every network of the predictive ensemble returns for a block of batches of inputs.

        ``samples`` is the number of networks, ``"mean"`` for the mean weights, or ``"closed-form"`` where the posterior has
        one. A sample depends on the ``seed`` and on its own number, not on the batches.
        """

    @abstractmethod
    def evaluating(self) -> AbstractContextManager[None]:
        """Be in evaluation mode for a while; every part of the network gets its own mode back."""

    # --- on disk ---

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """A description in plain values, from which `from_config` builds a posterior that can take the same state."""

    @classmethod
    @abstractmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> Posterior:
        """Rebuild what `config` described, on a network of the same architecture; the weights do not matter yet."""

    @abstractmethod
    def prior(self) -> dict[str, Any]:
        """The prior in plain values: what a checkpoint must have in common with the posterior that it is loaded into."""

    @abstractmethod
    def buffer_values(self) -> dict[str, Tensor]:
        """The networks' buffers, by name; these are the tensors themselves."""

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device


def registered_kinds() -> list[str]:
    """The kinds of posterior that can be loaded."""
    return sorted(kind for kind, each in _KINDS.items() if not isabstract(each))


def posterior_from(net: Networks, config: Mapping[str, Any]) -> Posterior:
    """Rebuild a posterior of any registered kind from its `Posterior.config`."""
    kind = config["kind"]
    if kind not in _KINDS:
        raise ModelFileError(
            f"it holds a posterior of the kind {kind!r}, which is not known; known are {', '.join(registered_kinds())}. "
            "Import the module that defines it first."
        )
    if not isinstance(net, nn.Module) and "members" not in config:
        raise ModelFileError(f"it holds a posterior of one network, but got {len(net)}.")
    rebuild: Callable[[Any, Mapping[str, Any]], Posterior] = _KINDS[kind].from_config  # an ensemble takes several networks
    return rebuild(net, config)
