"""What every posterior can do, whatever it knows about the weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calibayes.checks import positive_integer
from calibayes.errors import UnsupportedNetworkError
from calibayes.posterior.flat import Call, Skeleton, split_inputs
from calibayes.posterior.groups import GaussianGroup, PointGroup
from calibayes.posterior.held import first_names, held_key, held_tensors, hold
from calibayes.posterior.modes import resting_parts
from calibayes.posterior.outputs import counted_tensors, explained
from calibayes.posterior.selection import Choice, audit_table

__all__ = ["Posterior"]

Group = GaussianGroup | PointGroup
Scales = Sequence[Tensor | None]


class Posterior(nn.Module):
    """A distribution over a network's weights; build a `Point` or a `MeanField`.

    The network that was given is copied and never changed. What is trained lives in ``groups``, flat vectors in the order
    in which they are drawn; frozen parameters and buffers are held beside them, so ``state_dict()`` is complete.

    Attributes:
        kind: ``"point"`` or ``"mean-field"``.
        groups: the flat vectors.
        choices: what is done with each of the network's parameters, and why; `audit` prints them.
    """

    kind: Literal["point", "mean-field"]
    groups: nn.ModuleList

    def __init__(self, skeleton: Skeleton, choices: tuple[Choice, ...], groups: Iterable[Group]) -> None:
        super().__init__()
        self.choices = choices
        self.groups = nn.ModuleList(groups)
        self._frozen_names = {name: c.name for c in choices if c.role == "frozen" for name in c.names}
        self._buffer_names = first_names(skeleton.buffers)
        self.frozen = hold({name: skeleton.parameters[name] for name in self._frozen_names.values()})
        self.buffers_held = hold({name: skeleton.buffers[name] for name in self._buffer_names.values()}, skeleton.transient)
        skeleton.release()
        self._skeleton = skeleton
        super().train(skeleton.module.training)
        self._resting = resting_parts(skeleton.module, [name for c in choices if c.role != "frozen" for name in c.names])

    # --- what is known about the weights ---

    @property
    def num_bayesian(self) -> int:
        """How many weights have a distribution; tied weights count once."""
        return sum(group.mu.numel() for group in self._gaussians())

    def audit(self) -> None:
        """Print a table of every parameter: Bayesian, point or frozen, and why."""
        print(audit_table(self.choices))

    def kl(self, scales: Scales | None = None) -> Tensor:
        r"""$\mathrm{KL}(q \| p)$ in nats, summed over all Bayesian weights; zero for `Point`.

        Args:
            scales: what `scales` returned, where it is at hand.
        """
        scales = self.scales() if scales is None else scales
        terms = [g.kl(s) for g, s in zip(self.groups, scales, strict=True) if isinstance(g, GaussianGroup)]  # type: ignore[arg-type]
        return sum(terms[1:], start=terms[0]) if terms else torch.zeros((), device=self.device)

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """Draw ``n`` sets of weights; differentiable in the posterior's parameters.

        Args:
            n: how many; every tensor gets a leading axis of this length.
            generator: where the noise comes from, on the posterior's device; PyTorch's global one by default.

        Returns:
            The weights by the network's parameter names.
        """
        positive_integer("n", n)
        scales = self.scales()
        draws = [self.draw(generator, scales) for _ in range(n)]
        stacked = [torch.stack(vectors) for vectors in zip(*draws, strict=True)]
        frozen = {name: value.expand(n, *value.shape) for name, value in self._frozen_values().items()}
        return {**self._views(stacked), **frozen}

    def mean(self) -> dict[str, Tensor]:
        """The mean weights, by the network's parameter names."""
        return {**self._views(self.mean_vectors()), **self._frozen_values()}

    def network(self) -> nn.Module:
        """An ordinary network with the mean weights and the present buffers."""
        values = {**self.mean(), **self.buffer_values()}
        trainable = [name for c in self.choices if c.role != "frozen" for name in c.names]
        return self._skeleton.filled(values, trainable)

    def parameter_groups(self) -> list[dict[str, Any]]:
        r"""Parameter groups for any ``torch.optim`` optimiser: named, and without weight decay on $\rho$.

        Weight decay would pull $\rho$ towards zero, that is, every standard deviation towards one.
        """
        found: list[dict[str, Any]] = []
        for group in self.groups:
            if isinstance(group, GaussianGroup):
                found.append({"params": [group.mu], "name": f"{group.name}.mu"})
                found.append({"params": [group.rho], "name": f"{group.name}.rho", "weight_decay": 0.0})
            elif isinstance(group, PointGroup):
                found.append({"params": [group.theta], "name": f"{group.name}.theta"})
        return found

    # --- running the network ---

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The network's output at the mean weights."""
        return self._run(self.mean_vectors(), [(args, kwargs)], None)[0]

    def call(self, vectors: Sequence[Tensor], inputs: Any, buffers: dict[str, Tensor] | None = None) -> Any:
        """The network's output for weights given as flat vectors, one per group.

        Args:
            vectors: what `draw` or `mean_vectors` returned.
            inputs: one argument, a tuple of arguments, or a dict of named ones.
            buffers: used, and updated, instead of the posterior's own; those of `buffer_values`.
        """
        return self._run(vectors, [split_inputs(inputs)], buffers)[0]

    def calls(self, vectors: Sequence[Tensor], inputs: Iterable[Any]) -> list[Any]:
        """`call` for many inputs with the same weights, which are put in place once."""
        return self._run(vectors, (split_inputs(each) for each in inputs), None)

    def scales(self) -> list[Tensor | None]:
        """Each group's standard deviations (``None`` for points), to be taken once a step."""
        return [group.scale() if isinstance(group, GaussianGroup) else None for group in self.groups]

    def draw(self, generator: torch.Generator | None, scales: Scales) -> list[Tensor]:
        """One set of weights, as flat vectors, one per group."""
        return [
            group.draw(generator, scale) if isinstance(group, GaussianGroup) else group.mean()  # type: ignore[arg-type, operator]
            for group, scale in zip(self.groups, scales, strict=True)
        ]

    def noise(self, generators: Sequence[torch.Generator]) -> list[Tensor | None]:
        """Standard normal noise for `leaves`, one sample per generator: ``[N]`` for one, ``[C, N]`` for several."""
        return [group.noise(generators) if isinstance(group, GaussianGroup) else None for group in self.groups]

    def leaves(self, noise: Sequence[Tensor | None], count: int, scales: Scales) -> tuple[list[Tensor], list[Tensor | None]]:
        """Samples to differentiate a loss in, and what `pull_back` needs to go on from there.

        Args:
            noise: what `noise` returned; it is used up.
            count: how many samples that is.
            scales: what `scales` returned.

        Returns:
            For each group the weights, ``[N]`` for one sample and ``[C, N]`` for several, and their distance from the mean.
        """
        vectors, shifts = [], []
        for group, drawn, scale in zip(self.groups, noise, scales, strict=True):
            vector = group.mean().detach()  # type: ignore[operator]
            shift = None
            if drawn is not None and scale is not None:
                shift = drawn.mul_(scale)
                vector = vector + shift
            elif count > 1:
                vector = vector.expand(count, -1)
            vectors.append(vector.detach().requires_grad_())
            shifts.append(shift)
        return vectors, shifts

    def pull_back(self, vectors: Sequence[Tensor], shifts: Sequence[Tensor | None]) -> None:
        """Add the gradients that a loss left in the leaves to those of the posterior's parameters."""
        for group, vector, shift in zip(self.groups, vectors, shifts, strict=True):
            if vector.grad is None:
                continue
            if isinstance(group, GaussianGroup) and shift is not None:
                group.pull_back(vector.grad, shift)
            elif isinstance(group, PointGroup):
                group.pull_back(vector.grad)

    def kl_values(self, scales: Scales) -> list[Tensor]:
        """Each group's KL, outside the graph: what `kl` is the sum of."""
        pairs = zip(self.groups, scales, strict=True)
        return [group.kl_value(scale) for group, scale in pairs if isinstance(group, GaussianGroup) and scale is not None]

    def pull_back_kl(self, scales: Scales, weight: float) -> None:
        """Add the gradient of ``weight`` times the KL to those of the posterior's parameters."""
        for group, scale in zip(self.groups, scales, strict=True):
            if isinstance(group, GaussianGroup) and scale is not None:
                group.pull_back_kl(scale, weight)

    def mean_vectors(self) -> list[Tensor]:
        """The mean weights as flat vectors, one per group."""
        return [group.mean() for group in self.groups]  # type: ignore[operator]

    def buffer_values(self) -> dict[str, Tensor]:
        """The network's buffers, by name (the first of several); these are the tensors themselves."""
        return held_tensors(self.buffers_held, self._buffer_names.values())

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def architecture(self) -> str:
        """The network's own description of its layers."""
        return repr(self._skeleton.module)

    def structure(self) -> nn.Module:
        """The network's modules as they are run, without weights of their own."""
        return self._skeleton.module

    def leaf_modules(self) -> list[nn.Module]:
        """The network's innermost modules."""
        return [part for part in self._skeleton.module.modules() if next(part.children(), None) is None]

    def train(self, mode: bool = True) -> Posterior:
        """Set training or evaluation mode, for the network too, but for parts that were put into evaluation mode on purpose."""
        super().train(mode)
        self._skeleton.module.train(mode)
        for part in self._resting:
            part.training = False
        return self

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Evaluation mode for a while; every part of the network gets its own mode back."""
        modes = [(part, part.training) for part in self._skeleton.module.modules()]
        training = self.training
        self.eval()
        try:
            yield
        finally:
            super().train(training)
            for part, mode in modes:
                part.training = mode

    def _run(self, vectors: Sequence[Tensor], calls: Iterable[Call], buffers: dict[str, Tensor] | None) -> list[Any]:
        if self._skeleton.module.training != self.training:
            self.train(self.training)  # someone has set the attribute, as Lightning does, rather than called `train`
        held = self.buffer_values() if buffers is None else buffers
        tied = {name: held[first] for name, first in self._buffer_names.items()}
        values = {**self._views(vectors), **self._frozen_values(), **tied}
        last: list[Call] = []

        def noted() -> Iterator[Call]:
            for each in calls:
                last[:] = [each]
                given = counted_tensors(each)
                versions = [tensor._version for tensor in given]
                yield each
                if versions != [tensor._version for tensor in given]:
                    raise UnsupportedNetworkError(
                        "The network changes its input in place, so every further run on the same data would see something "
                        "else. Start it with an operation that makes a new tensor (inplace=False in its first layer)."
                    )

        try:
            outputs = self._skeleton.calls(values, noted())
        except (RuntimeError, ValueError) as error:
            raise explained(error, last, vectors[0].dtype) from error
        # Most networks update buffers in place; one that puts a new tensor in a buffer's place is heard too. A new shape
        # is a cache for inputs of another size, which the next call makes again.
        for name, before in held.items():
            if values[name] is not before and values[name].shape == before.shape:
                held[name] = values[name].detach()
                if buffers is None:
                    self.buffers_held._buffers[held_key(name)] = held[name]
        return outputs

    def _gaussians(self) -> list[GaussianGroup]:
        return [group for group in self.groups if isinstance(group, GaussianGroup)]

    def _views(self, vectors: Sequence[Tensor]) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for group, vector in zip(self.groups, vectors, strict=True):
            found.update(group.layout.views(vector))  # type: ignore[operator, union-attr]
        return found

    def _frozen_values(self) -> dict[str, Tensor]:
        held = held_tensors(self.frozen, self._frozen_names.values())
        return {name: held[first] for name, first in self._frozen_names.items()}
