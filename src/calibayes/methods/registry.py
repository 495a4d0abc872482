"""The registry of methods: a name, settings, and a plan for training a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from torch import nn

from calibayes.errors import InvalidArgumentError
from calibayes.methods.learner import Learner
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.wording import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["METHODS", "NETWORK_METHODS", "Method", "Methods", "Plan", "build", "method_named", "one_network", "register_method"]

GROUP = "calibayes.methods"
"""The entry points by which other packages register methods."""

S = TypeVar("S", bound="DataclassInstance")
Network = nn.Module | Callable[[], nn.Module]


def one_network(net: Network) -> nn.Module:
    """The given network, or the one that a given function makes."""
    network = net if isinstance(net, nn.Module) or not callable(net) else net()
    if not isinstance(network, nn.Module):
        raise InvalidArgumentError(
            f"Expected `net` to be a torch.nn.Module or a function that makes one, but got {type(network).__name__}."
        )
    return network


class Plan(NamedTuple):
    """A method applied to a network: all that `calibayes.fit` needs besides the data."""

    posterior: Posterior
    objective: Objective
    fit: dict[str, Any]  # further arguments of `calibayes.fit`, by name


@dataclass(frozen=True)
class Method(Generic[S]):
    """A way to train a classifier.

    Attributes:
        name: what users type, lower case with hyphens.
        title: what tables show.
        summary: one sentence for users.
        settings: a frozen dataclass, everything in which has a default; of a method for networks, a subclass of
            `MethodSettings`.
        plan: makes a `Plan` of a network and settings; ``None`` for a method that trains no network of the user's.
        needs_dropout: whether the network must have dropout; networks not chosen by the user then get a layer of it.
        learner: for a method that trains no network: makes a `Learner` of the fixed first layer of the data, such as
            `TableInputs`, and settings; ``None`` where it cannot learn such data.
        package: one that the method needs, which an extra installs.
    """

    name: str
    title: str
    summary: str
    settings: type[S]
    plan: Callable[[Network, S], Plan] | None = None
    needs_dropout: bool = False
    learner: Callable[[nn.Module, S], Learner | None] | None = None
    package: str | None = None

    @property
    def installed(self) -> bool:
        """True unless the package that the method needs is missing."""
        return self.package is None or find_spec(self.package) is not None

    def setting_names(self) -> tuple[str, ...]:
        """Return the names of the settings."""
        return tuple(field.name for field in fields(self.settings))

    def has(self, name: str) -> bool:
        """Return True if the method has this setting."""
        return name in self.setting_names()

    def default(self, name: str) -> Any:
        """The value of a setting that is left out, or ``None`` where the method does not have it."""
        return getattr(self.settings(), name) if self.has(name) else None

    def configured(self, **settings: Any) -> S:
        """The settings, or an error that names one that this method does not have."""
        known = self.setting_names()
        for name in settings:
            if name not in known:
                hint = did_you_mean(name, known, f"It has {', '.join(known)}.")
                raise InvalidArgumentError(f"The method {self.name!r} has no setting {name!r}. {hint}")
        return self.settings(**settings)


_REGISTERED: dict[str, Method[Any]] = {}
_loaded_plugins = False


def register_method(method: Method[Any]) -> Method[Any]:
    """Make a method known to the command line, `CalibayesClassifier`, `compare`, `sweep`, Lightning and transformers.

    Other packages do the same without a call by an entry point of the group ``calibayes.methods`` that is a `Method`.
    """
    if not isinstance(method, Method):
        raise InvalidArgumentError(f"Expected a Method to register, but got {type(method).__name__}.")
    if method.name in _REGISTERED and _REGISTERED[method.name] != method:
        raise InvalidArgumentError(f"A method {method.name!r} is registered already. Give the new one another name.")
    _REGISTERED[method.name] = method
    return method


class Methods(Sequence[str]):
    """The names of registered methods, also of those registered later; of all, or of those that train any network."""

    def __init__(self, *, of_networks: bool) -> None:
        self._of_networks = of_networks

    def __getitem__(self, index: Any) -> Any:
        return [name for name, method in _known().items() if method.plan is not None or not self._of_networks][index]

    def __len__(self) -> int:
        return len(self[:])

    def __repr__(self) -> str:
        return repr(tuple(self))


METHODS = Methods(of_networks=False)
"""The names of all registered methods."""

NETWORK_METHODS = Methods(of_networks=True)
"""The names of the registered methods that train any network: all but those for tables and texts alone."""


def method_named(name: str) -> Method[Any]:
    """The method of this name, in any case, or an error that suggests the closest one."""
    known = _known()
    found = known.get(name) or known.get(name.lower() if isinstance(name, str) else name)
    if found is None:
        hint = did_you_mean(str(name).lower(), known, "Other packages register theirs with `register_method`.")
        raise InvalidArgumentError(f"Expected one of the methods {', '.join(known)}, but got {name!r}. {hint}")
    return found


def build(method: str, net: Network, **settings: Any) -> Plan:
    r"""Apply a method to a network: what to train, what to minimise, and further arguments of `calibayes.fit`.

    Args:
        method: one of `calibayes.NETWORK_METHODS`.
        net: any ``nn.Module`` that returns logits, which is copied; or a function without arguments that makes one, so that
            every member of an ensemble has its own initial weights. If a network is given, the members are copies of it with
            new initial weights.
        settings: those of the method, by name; ``calibayes.methods.method_named(method).settings`` lists them.

    Examples:
        >>> x, y = torch.randn(64, 4), torch.arange(64) % 3
        >>> posterior, objective, settings = calibayes.build("ensemble", torch.nn.Linear(4, 3), members=2)
        >>> history = calibayes.fit(posterior, (x, y), objective, epochs=2, **settings)
        >>> calibayes.predict(posterior, x).probs.shape
        torch.Size([64, 3])
    """
    chosen = method_named(method)
    if chosen.plan is None:
        raise InvalidArgumentError(
            f"The method {chosen.name!r} trains no network. Use it with `calibayes train` or `CalibayesClassifier`."
        )
    return chosen.plan(net, chosen.configured(**settings))


def _known() -> dict[str, Method[Any]]:
    global _loaded_plugins  # noqa: PLW0603
    if not _loaded_plugins:
        _loaded_plugins = True
        for entry in entry_points(group=GROUP):
            register_method(entry.load())
    return _REGISTERED
