"""All members of an ensemble trained at once: every operation of a step is done for all of them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from calibayes.data.sources import Batch, Source
from calibayes.distributed import ALONE, Processes
from calibayes.errors import InvalidArgumentError, UnsupportedNetworkError
from calibayes.objective import Objective
from calibayes.objective.term_gradient import scores_of, value_of, weight_of
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.posterior.network_outputs import check_labels, check_not_probabilities, logits_of
from calibayes.randomness import seed_globally
from calibayes.training.history import StepTerms
from calibayes.training.micro_batches import TrainingPosition, noise_generators
from calibayes.training.step import StepSettings
from calibayes.training.weight_checks import check_finite, clip_gradient

__all__ = ["MembersSource", "StackedParameters", "TogetherStepper"]


class MembersSource:
    """Training data with a different order for every member: batches have a leading axis of members."""

    def __init__(self, source: Source, members: int) -> None:
        self._source, self._members = source, members

    def steps(self) -> int:
        """Return the number of batches in an epoch."""
        return self._source.steps()

    def epoch(self, seed: int, epoch: int, skip: int = 0, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """The batches of an epoch, without the first ``skip``; those of all members have the same size."""
        orders = [self._source.epoch(member_seed(seed, member), epoch, skip) for member in range(self._members)]
        for batches in zip(*orders, strict=True):
            yield Batch(
                _stacked([batch.inputs for batch in batches]),
                torch.stack([batch.targets for batch in batches]),
                batches[0].total,
                None if batches[0].weights is None else torch.stack([b.weights for b in batches if b.weights is not None]),
            )

    def ordered(self, *, processes: Processes = ALONE) -> Iterator[Batch]:
        """All batches in the data's own order, without members."""
        return self._source.ordered(processes=processes)


class StackedParameters(nn.Module):
    """Tensors ``[M, …]`` that contain the members' parameters, so that one step of an optimiser moves all of them."""

    def __init__(self, ensemble: Posterior) -> None:
        super().__init__()
        _check_alike(ensemble)
        self.stacks = nn.ParameterList()
        self._groups: list[dict[str, Any]] = []
        for group, *others in zip(*(member.parameter_groups() for member in ensemble.members), strict=True):
            rows = zip(group["params"], *(other["params"] for other in others), strict=True)
            stacks = [nn.Parameter(torch.stack([each.detach() for each in row])) for row in rows]
            self.stacks.extend(stacks)
            self._groups.append({**group, "params": stacks})
        self.views = [
            (parameter, stack, index)
            for index, member in enumerate(ensemble.members)
            for parameters, stacks in zip(member.parameter_groups(), self._groups, strict=True)
            for parameter, stack in zip(parameters["params"], stacks["params"], strict=True)
        ]
        widths = ensemble.widths()
        self._widths = {id(stack) for parameter, stack, _ in self.views if id(parameter) in widths}
        for parameter, stack, index in self.views:
            parameter.data = stack.data[index]

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Those of one member, with all members' parameters."""
        return self._groups

    def widths(self) -> set[int]:
        """The identities of the stacks of logarithms of standard deviations."""
        return self._widths

    def clear_gradients(self) -> None:
        """Forget the gradients of members and stacks."""
        for stack in self.stacks:
            stack.grad = None
        for parameter, _, _ in self.views:
            parameter.grad = None

    def gather_gradients(self) -> None:
        """Give the stacks the members' gradients, or ``None`` where no member has one, as for a member alone."""
        gradients: dict[int, list[Tensor | None]] = {}
        for parameter, stack, _ in self.views:
            gradients.setdefault(id(stack), []).append(parameter.grad)
        for stack in self.stacks:
            rows = gradients[id(stack)]
            if any(row is not None for row in rows):
                stack.grad = _side_by_side([stack.new_zeros(stack.shape[1:]) if row is None else row for row in rows])

    def release(self) -> None:
        """Separate the members' parameters again."""
        for parameter, _, _ in self.views:
            parameter.data, parameter.grad = parameter.data.clone(), None


class TogetherStepper:
    """Takes optimiser steps on all members at once; a member's step is the one that it would take alone, up to rounding."""

    def __init__(
        self,
        ensemble: Posterior,
        objective: Objective,
        optimizer: torch.optim.Optimizer,
        dataset_size: int,
        settings: StepSettings,
        parameters: StackedParameters,
    ) -> None:
        self.posterior, self.objective, self.optimizer = ensemble, objective, optimizer
        self.dataset_size, self.settings, self.processes = dataset_size, settings, ALONE
        self._parameters, self._samples = parameters, settings.samples if ensemble.members[0].random_in_training else 1
        self.stop = False  # like the scaler, for loops that expect a `Stepper`
        self.scaler = torch.amp.GradScaler(ensemble.device.type, enabled=False)
        self._checked = False
        _check_settings(objective, settings)

    def step(self, batch: Batch, held_out: Batch | None, place: TrainingPosition, out_of_domain: Batch | None) -> StepTerms:
        """One update of all members, each on its own batch."""
        self._parameters.clear_gradients()
        seed_globally(self.settings.seed, "network", "together", place.epoch, place.batch)
        with ExitStack() as stack:
            for member in self.posterior.members:
                stack.enter_context(member.fixed())
            terms = self._gradients(batch, place)
        if self.settings.clip_norm is not None:
            for member in self.posterior.members:
                clip_gradient(member.parameters(), self.settings.clip_norm, place)
        self._parameters.gather_gradients()
        seed_globally(self.settings.seed, "optimizer", place.epoch, place.batch)
        self.optimizer.step()
        return terms

    def _gradients(self, batch: Batch, place: TrainingPosition) -> StepTerms:
        members = self.posterior.members
        seeds, numbers = [member_seed(self.settings.seed, index) for index in range(len(members))], range(self._samples)
        noise = [noise_generators(self.posterior.device, seed, place, numbers) for seed in seeds]
        pairs = [member.leaves(generators) for member, generators in zip(members, noise, strict=True)]
        groups = zip(*(vectors for vectors, _ in pairs), strict=True)
        leaves = [_side_by_side(rows).detach().requires_grad_() for rows in groups]
        logits = self._logits(leaves, batch)
        terms = [self._member_terms(logits[index], batch, index, place) for index in range(len(members))]
        torch.stack([total for total, _ in terms]).sum().backward()  # every member's own gradient
        for index, (member, (_, kept)) in enumerate(zip(members, pairs, strict=True)):
            rows = [leaf.detach()[index].requires_grad_() for leaf in leaves]
            for row, leaf in zip(rows, leaves, strict=True):
                row.grad = None if leaf.grad is None else leaf.grad[index]
            member.pull_back(rows, kept)
        means = {name: float(torch.stack([values[name] for _, values in terms]).mean()) for name in terms[0][1]}
        total = float(torch.stack([total.detach() for total, _ in terms]).mean())
        return self._with_kl(means, total, batch.total, place)

    def _member_terms(
        self, logits: Tensor, batch: Batch, index: int, place: TrainingPosition
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of one member, and its parts by name: losses and terms see the batch of one member."""
        targets = batch.targets[index]
        weights = None if batch.weights is None else batch.weights[index]
        total = self.objective.loss.mean(logits, targets, weights)
        values = {self.objective.loss.name: total.detach()}
        for term in self.objective.terms:
            weight = weight_of(term, place.step, batch.total)
            value = value_of(term, scores_of(term, logits, targets), weights) if weight > 0 else total.new_zeros(())
            values[term.name] = value.detach()
            total = total + weight * value if weight > 0 else total
        return total, values

    def _with_kl(self, values: dict[str, float], total: float, examples: int, place: TrainingPosition) -> StepTerms:
        weight = self.objective.kl_weight(place.step, self.dataset_size) if self.posterior.num_bayesian else 0.0
        kl = 0.0
        for member in self.posterior.members:
            kl += sum(float(value) for value in member.kl_values()) / len(self.posterior.members)
            if weight > 0:
                member.pull_back_kl(weight)
        values["kl"] = kl
        check_finite(values, place, "`clip_norm`")
        return StepTerms(total + weight * kl, values, examples)

    def _logits(self, leaves: Sequence[Tensor], batch: Batch) -> Tensor:
        """Logits ``[M, n, K]``, or ``[M, R, n, K]`` for several samples."""
        posterior, examples = self.posterior.members[0], batch.targets.shape[-1]
        buffers = posterior.buffer_values()

        def one(vectors: tuple[Tensor, ...], inputs: Any) -> Tensor:
            return logits_of(posterior.call(vectors, inputs, dict(buffers)), examples)

        call = one if self._samples == 1 else torch.vmap(one, in_dims=(0, None), randomness="different")
        try:
            logits: Tensor = torch.vmap(call, randomness="different")(tuple(leaves), batch.inputs)
        except (RuntimeError, NotImplementedError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UnsupportedNetworkError(
                f"The members cannot be trained together: vmap does not support their network: {reason} Use `together=False`."
            ) from error
        check_labels(batch.targets, logits.shape[-1])
        if not self._checked:
            check_not_probabilities(logits.flatten(0, -2))
            self._checked = True
        return logits


def _side_by_side(rows: Sequence[Tensor]) -> Tensor:
    """The rows as one tensor; not a copy where they lie one after the other in memory, as rows of a stack do."""
    first, step = rows[0].detach(), rows[0].numel()
    place, memory = first.storage_offset(), first.untyped_storage().data_ptr()
    if all(
        row.is_contiguous() and row.untyped_storage().data_ptr() == memory and row.storage_offset() == place + index * step
        for index, row in enumerate(rows)
    ):
        return first.as_strided((len(rows), *first.shape), (step, *first.stride()))
    return torch.stack(list(rows))


def _stacked(inputs: Sequence[Any]) -> Any:
    first = inputs[0]
    if isinstance(first, Tensor):
        return torch.stack(list(inputs))
    if isinstance(first, dict):
        return {key: _stacked([each[key] for each in inputs]) for key in first}
    return tuple(_stacked(each) for each in zip(*inputs, strict=True))


def _check_alike(ensemble: Posterior) -> None:
    first, *others = ensemble.members
    for index, member in enumerate(others, start=2):
        pairs = zip(first.buffer_values().values(), member.buffer_values().values(), strict=False)
        constant = all(mine.shape == theirs.shape and torch.equal(mine, theirs) for mine, theirs in pairs)
        same = (type(member), member.choices, member.architecture()) == (type(first), first.choices, first.architecture())
        if not same or not constant:
            raise InvalidArgumentError(
                f"Members are trained together only if all are alike, but member {index} is not like member 1. "
                "Use `together=False`."
            )


def _check_settings(objective: Objective, settings: StepSettings) -> None:
    instead = "which training all members together does not offer. Use `together=False`."
    if settings.micro_batch_size is not None or settings.precision is not None:
        raise InvalidArgumentError(f"There are micro-batches or half precision, {instead}")
    for term in objective.terms:
        if term.on != "batch":
            raise InvalidArgumentError(f"The term {term.name!r} is taken on {term.on!r}, {instead}")
