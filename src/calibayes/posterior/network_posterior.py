"""A posterior over the weights of one network, as flat vectors."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self

import torch
from torch import Tensor, nn

from calibayes.checks import positive_integer
from calibayes.data.input_structure import batch_length, to_device
from calibayes.data.sources import Batch
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.abstract_posterior import Output, Posterior, Samples
from calibayes.posterior.dropout_masks import DropoutMasks, masked_layers
from calibayes.posterior.group import Group
from calibayes.posterior.network_from_vectors import NetworkFromVectors
from calibayes.posterior.network_outputs import entropy, logits_of
from calibayes.posterior.rebuilding import described, network_with_roles
from calibayes.posterior.weight_selection import audit_table
from calibayes.randomness import generator_for

__all__ = ["NetworkPosterior", "trained_network"]

_NOT_SETTINGS = ("kind", "parameters", "buffers", "roles", "training")  # in a file, besides a posterior's own settings


class NetworkPosterior(NetworkFromVectors, Posterior, ABC):
    """A distribution over the weights of one network, made of groups: flat vectors and what is known about them.

    The network that was given is copied and never changed. What is trained lives in ``groups``, flat vectors in the order in
    which they are drawn; frozen parameters and buffers are held beside them, so ``state_dict()`` is complete. ``choices``
    says what is done with each of the network's parameters, and why; `audit` prints them.
    """

    # --- what a subclass may override ---

    def settings(self) -> dict[str, Any]:
        """Return what `from_config` needs besides the roles of the weights, in plain values."""
        return {}

    def one_network(self, generator: torch.Generator) -> AbstractContextManager[None]:
        """Fix by the generator what else is random in the network, while one sample of the weights is used to predict."""
        masks = self.masks(generator)
        return nullcontext() if masks is None else masked_layers(self.structure(), masks.layers, masks.keys)

    def masks(self, generator: torch.Generator) -> DropoutMasks | None:
        """Draw the dropout masks of one sample; ``None`` for posteriors whose dropout is off at prediction."""
        return None

    @property
    def needs_statistics(self) -> bool:
        """Return True if predictions use mean weights at which no step was taken.

        Running statistics of batch norms then have to be estimated again, at the `mean_vectors` of evaluation mode.
        """
        return False

    def check_epochs(self, epochs: int) -> None:
        """Raise `InvalidArgumentError` if training for ``epochs`` more epochs is not enough."""

    def notes(self) -> list[str]:
        """Lines that `audit` prints below its table."""
        return []

    def aleatoric(self, logits: Tensor, probs: Tensor) -> Tensor:
        """The uncertainty ``[n]`` of one network's prediction that more data would not reduce, in nats: all, by default."""
        return entropy(probs)

    def closed_form(self, inputs: Any) -> Tensor:
        """Logits of the predictive probabilities for one batch, without samples; an error if samples differ."""
        if not self.random:
            with self.evaluating():
                return logits_of(self.call(self.mean_vectors(), inputs), batch_length(inputs, "x"))
        raise InvalidArgumentError(
            f"A {type(self).__name__} has no closed-form prediction, but `samples` is 'closed-form'. Pass a number."
        )

    # --- what is known about the weights ---

    @property
    def members(self) -> tuple[NetworkPosterior, ...]:
        return (self,)

    @property
    def trained_parts(self) -> Sequence[Group]:
        return self.groups

    @property
    def num_bayesian(self) -> int:
        return sum(group.size for group in self.groups if group.bayesian)

    @property
    def random(self) -> bool:
        return self.num_bayesian > 0

    @property
    def random_in_training(self) -> bool:
        """Return True if samples of the weights differ in training mode."""
        return any(group.bayesian and group.random_in_training for group in self.groups)

    @property
    def settled(self) -> bool:
        """Return False while training is still preparing for the distribution."""
        return all(group.settled() for group in self.groups)

    @property
    def averages_itself(self) -> bool:
        """Return True if predictions use an average of the weights that the posterior takes by itself."""
        return False

    def audit(self) -> None:
        """Print a table of every parameter: Bayesian, point or frozen, and why; and what prediction runs once."""
        print(audit_table(self.choices))
        if self.head is not None:
            print(self.head.audit_line())
        for line in self.notes():
            print(line)

    def kl(self) -> Tensor:
        r"""$\mathrm{KL}(q \| p)$ in nats, summed over all Bayesian weights; zero for `Point`."""
        terms = [value for value in (group.kl() for group in self.groups) if value is not None]
        return sum(terms[1:], start=terms[0]) if terms else torch.zeros((), device=self.device)

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Draw ``n`` sets of weights, by the network's parameter names; differentiable in the posterior's parameters.

        Args:
            n: how many; every tensor gets a leading axis of this length.
            generator: where the noise comes from, on the posterior's device; PyTorch's global one by default.
        """
        positive_integer("n", n)
        with self.fixed():
            draws = [self.draw(generator) for _ in range(n)]
        stacked = [torch.stack(vectors) for vectors in zip(*draws, strict=True)]
        frozen = {name: value.expand(n, *value.shape) for name, value in self._frozen_values().items()}
        return {**self._views(stacked), **frozen}

    def mean(self) -> dict[str, Tensor]:
        """The mean weights, by the network's parameter names."""
        return {**self._views(self.mean_vectors()), **self._frozen_values()}

    def network(self) -> nn.Module:
        """An ordinary network with the mean weights and the present buffers."""
        return self._skeleton.filled({**self.mean(), **self.buffer_values()}, self.trained_names())

    def trainable_network(self) -> nn.Module:
        """The same in training mode, except for parts that were put into evaluation mode on purpose: to be trained further."""
        network = self.network().train()
        in_eval_mode = {id(part) for part in self._in_eval_mode}
        for name, part in self._skeleton.module.named_modules():
            if id(part) in in_eval_mode:
                network.get_submodule(name).training = False
        return network

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Named parameter groups for any ``torch.optim`` optimiser, as the posterior's own groups want them."""
        return [each for group in self.groups for each in group.optimizer_groups()]

    # --- training ---

    @contextmanager
    def fixed(self) -> Iterator[None]:
        """Compute what draws have in common once, while the parameters do not change."""
        for group in self.groups:
            group.keep()
        try:
            yield
        finally:
            for group in self.groups:
                group.release()

    def draw(self, generator: torch.Generator | None) -> list[Tensor]:
        """One set of weights, as flat vectors, one per group."""
        return [group.draw(generator) for group in self.groups]

    def leaves(self, generators: Sequence[torch.Generator]) -> tuple[list[Tensor], list[Any]]:
        """Samples to differentiate a loss in, one for each generator, and what `pull_back` needs.

        For each group the weights, ``[N]`` for one sample and ``[C, N]`` for several, and what it keeps of them.
        """
        pairs = [group.leaves(generators) for group in self.groups]
        return [vector for vector, _ in pairs], [kept for _, kept in pairs]

    def pull_back(self, vectors: Sequence[Tensor], kept: Sequence[Any]) -> None:
        """Add the gradients that a loss left in the leaves to those of the posterior's parameters."""
        for group, vector, each in zip(self.groups, vectors, kept, strict=True):
            if vector.grad is not None:
                group.pull_back(vector.grad, each)

    def kl_values(self) -> list[Tensor]:
        """Each group's KL, outside the graph: what `kl` is the sum of."""
        return [value for value in (group.kl_value() for group in self.groups) if value is not None]

    def pull_back_kl(self, weight: float) -> None:
        """Add the gradient of ``weight`` times the KL to those of the posterior's parameters."""
        for group in self.groups:
            group.pull_back_kl(weight)

    def finish(self, batches: Callable[[], Iterator[Batch]]) -> None:
        """Do nothing, unless a subclass has something to do at the end of training."""

    def mean_vectors(self) -> list[Tensor]:
        return [group.mean() for group in self.groups]

    # --- running the network ---

    def outputs(self, block: Sequence[Any], samples: Samples, seed: int) -> Iterator[Output]:
        """Yield what the network returns at each sample of the weights; what does not depend on the sample is run once."""
        if samples == "closed-form":
            yield Output(0, [self.closed_form(to_device(each, self.device)) for each in block])
            return
        count, device, features = self.draws_of(samples), self.device, None
        for vectors, generator in self.draws(samples, seed):
            with nullcontext() if samples == "mean" else self.one_network(generator):
                inputs = (to_device(each, device) for each in block)
                if self.head is None or count == 1:
                    outputs = self.calls(vectors, inputs)
                elif features is None:
                    with self.head.recorded(self._skeleton) as recorded:
                        outputs = self.calls(vectors, inputs)
                    features = recorded.features(outputs)
                else:
                    outputs = self._skeleton.calls(self.values(vectors), features, self.head.name)
                yield Output(0, outputs)

    def draws_of(self, samples: Samples) -> int:
        """Return how many networks a prediction with so many samples has."""
        return 1 if isinstance(samples, str) or not self.random else samples

    def draws(self, samples: Samples, seed: int) -> Iterator[tuple[list[Tensor], torch.Generator]]:
        """Yield the weights of each network of a prediction, and the generator that drew them."""
        with self.fixed():
            for s in range(self.draws_of(samples)):
                generator = generator_for(self.device, seed, "predict", s)
                yield (self.mean_vectors() if samples == "mean" else self.draw(generator)), generator

    # --- on disk ---

    def config(self) -> dict[str, Any]:
        """The network's weights and buffers, their roles, and `settings`."""
        values = self.mean()
        return {
            "kind": self.kind,
            "parameters": described({choice.name: values[choice.name] for choice in self.choices}),
            "buffers": described(self.buffer_values()),
            "roles": {choice.name: choice.role for choice in self.choices},
            **self.settings(),
        }

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> Self:
        """Rebuild what `config` described; the weights do not matter yet.

        Calls the class with the network, ``where`` and what `settings` returned; a subclass with other arguments overrides it.
        """
        roles = config["roles"]
        settings = {name: value for name, value in config.items() if name not in _NOT_SETTINGS}
        return cls(network_with_roles(net, config), where=lambda name, _: roles.get(name) == "bayesian", **settings)  # type: ignore[call-arg,arg-type]

    def prior(self) -> dict[str, Any]:
        """Return each group's prior, by the group's name, and whether the mean of any is zero or stored."""
        priors = {group.name: prior for group in self.groups if (prior := group.prior()) is not None}
        keys = dict.fromkeys(["prior_std", *(key for prior in priors.values() for key in prior if key != "prior_mean")])
        by_key = {key: {name: prior[key] for name, prior in priors.items() if key in prior} for key in keys}
        stored = any(prior.get("prior_mean") == "stored" for prior in priors.values())
        return {**by_key, "prior_mean": "stored" if stored else "zero"}


def trained_network(source: Any) -> nn.Module:
    """The network that ``from_point`` starts from: that at a posterior's mean weights, or the network itself."""
    if isinstance(source, NetworkPosterior):
        return source.trainable_network()
    if isinstance(source, nn.Module) and not isinstance(source, Posterior):
        return source
    raise InvalidArgumentError(
        f"Expected a trained `Point` or a network to start from, but got {type(source).__name__}. "
        "Of an ensemble, start from its members one by one."
    )
