"""The whole predictive as one module: from inputs to probabilities, uncertainties and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from calibayes.errors import ExportError, InvalidArgumentError
from calibayes.exporting.network_stack import Aleatoric, ClosedFormNetwork, NetworkStack, Repetition, drawn_networks
from calibayes.exporting.padded_trees import same_size
from calibayes.exporting.row_rules import TracedRules
from calibayes.exporting.traced_scaling import TracedScaling
from calibayes.posterior.abstract_posterior import Posterior, Samples
from calibayes.posterior.ensemble import member_seed
from calibayes.posterior.network_posterior import NetworkPosterior

__all__ = ["InputNames", "PredictiveGraph", "network_stacks"]

_OUTPUTS = ("probs", "decision", "abstain", "set", "outsider", "confidence", "epistemic", "aleatoric")


class InputNames:
    """The names of a network's inputs, and how they are passed: one tensor, by position, or by name."""

    def __init__(self, inputs: Any) -> None:
        self._kind = dict if isinstance(inputs, Mapping) else tuple if isinstance(inputs, Sequence) else None
        if isinstance(inputs, Mapping):
            self.names = list(inputs)
            if taken := [name for name in self.names if name in _OUTPUTS or not isinstance(name, str)]:
                raise InvalidArgumentError(
                    f"Expected inputs with names other than those of the outputs, but got {taken[0]!r}. Wrap the network in a "
                    "module whose `forward` calls it otherwise."
                )
        else:
            self.names = [f"input_{place}" for place in range(len(inputs))] if self._kind else ["inputs"]
        for name, value in zip(self.names, self.flat(inputs), strict=True):
            if not isinstance(value, Tensor) or not value.dim() or not len(value):
                got = f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
                raise InvalidArgumentError(
                    f"Expected `example_inputs` to be tensors with an axis for the examples, but {name!r} is {got}."
                )
        if len({len(value) for value in self.flat(inputs)}) != 1:
            raise InvalidArgumentError(f"Expected all of {self.names} to have the same number of examples.")

    def flat(self, inputs: Any) -> list[Any]:
        """The tensors in the order of the names, as a file's runtime takes them."""
        if self._kind is dict:
            if not isinstance(inputs, Mapping) or set(inputs) != set(self.names):
                got = list(inputs) if isinstance(inputs, Mapping) else type(inputs).__name__
                raise InvalidArgumentError(f"Expected inputs by the names {self.names}, but got {got}.")
            values = [inputs[name] for name in self.names]
        else:
            values = list(inputs) if self._kind and isinstance(inputs, Sequence) else [inputs]
            if len(values) != len(self.names):
                raise InvalidArgumentError(f"Expected {len(self.names)} inputs, but got {len(values)}.")
        return [value.detach().cpu() if isinstance(value, Tensor) else value for value in values]

    def packed(self, tensors: Sequence[Tensor]) -> Any:
        """Invert `flat`."""
        if self._kind is dict:
            return dict(zip(self.names, tensors, strict=True))
        return tuple(tensors) if self._kind else tensors[0]


def network_stacks(posterior: Posterior, samples: Samples, seed: int, inputs: Any) -> list[NetworkStack | ClosedFormNetwork]:
    """The networks that `calibayes.predict` runs: a stack for each architecture, and members with a closed form."""
    for member in posterior.members:
        if type(member).one_network is not NetworkPosterior.one_network:
            raise ExportError(
                f"A {type(member).__name__} fixes by code of its own (`one_network`) what is random in a sample, which cannot "
                "be written to a file. Override `masks` instead, if it is dropout."
            )
    found: list[NetworkStack | ClosedFormNetwork] = []
    drawn, members = [], []
    each = samples if isinstance(samples, str) else -(-samples // len(posterior.members))
    for index, member in enumerate(posterior.members):
        if each == "closed-form" and member.random:
            found.append(ClosedFormNetwork(member))
        else:
            drawn.append(drawn_networks(member, "mean" if each == "closed-form" else each, member_seed(seed, index)))
            members.append(member)
    alike: dict[tuple[str, Any], list[Any]] = {}
    aleatoric: dict[tuple[str, Any], Aleatoric] = {}
    for member, networks in zip(members, same_size(drawn), strict=True):
        key = (networks.layout, type(member).aleatoric)
        alike.setdefault(key, []).append(networks)
        aleatoric.setdefault(key, member.aleatoric)
    return [*found, *(NetworkStack(networks, inputs, aleatoric[key]) for key, networks in alike.items())]


class PredictiveGraph(nn.Module):
    """From inputs to what is said about each row; the module that is exported.

    Args:
        stacks: the networks.
        names: of the inputs.
        rules: for decisions and sets.
        scaling: of the averaged probabilities.
        before: the first step from what users have to the networks' inputs; for one tensor.
    """

    def __init__(
        self,
        stacks: Sequence[nn.Module],
        names: InputNames,
        rules: TracedRules,
        scaling: TracedScaling | None = None,
        before: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.stacks = nn.ModuleList(stacks)
        self._names, self._scaling = names, scaling
        self.rules, self.before = rules, before

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in their order."""
        return ["probs", *self.rules.outputs, "confidence", "epistemic", "aleatoric"]

    def repeat(self, repetition: Repetition) -> None:
        """Run networks side by side or one after the other."""
        for stack in self.stacks:
            if isinstance(stack, NetworkStack):
                stack.repetition = repetition

    def _stacks(self) -> list[NetworkStack | ClosedFormNetwork]:
        return list(self.stacks)  # type: ignore[arg-type]

    def forward(self, *tensors: Tensor) -> dict[str, Tensor]:
        """The outputs by name; uncertainties are in nats, before a scaling."""
        inputs = self._names.packed(tensors if self.before is None else [self.before(*tensors)])
        members = 0
        sums: list[Tensor] = []
        for stack in self._stacks():
            logits = stack(inputs).double()
            probs = logits.softmax(-1)
            of_members = probs.mean(1)
            entropies = stack.aleatoric(logits, probs).mean(1)
            weight = stack.members / len(of_members)  # a single one may stand for several that are all the same
            own = [weight * of_members.sum(0), weight * entropies.sum(0)]
            sums = own if not sums else [total + each for total, each in zip(sums, own, strict=True)]
            members += stack.members
        unscaled, aleatoric = (total / members for total in sums)
        epistemic = (_entropy(unscaled) - aleatoric).clamp_min(0)
        probs = unscaled if self._scaling is None else self._scaling(unscaled, False)
        found = {"probs": probs, **self.rules(probs, unscaled, epistemic)}
        found |= {"confidence": probs.amax(-1), "epistemic": epistemic, "aleatoric": aleatoric}
        return {name: value.float() if value.is_floating_point() else value for name, value in found.items()}


def _entropy(probs: Tensor) -> Tensor:
    return -(probs * torch.where(probs > 0, probs, 1.0).log()).sum(-1)
