"""Posteriors with one fault each, which the checks must find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from tests.testing.outsider import LaplaceGroup
from torch import Tensor, nn

import calibayes as cb
from calibayes.posterior import Layout


class Sound(LaplaceGroup):
    def __init__(self, name: str, layout: Layout, values: Tensor) -> None:
        super().__init__(name, layout, values, 0.1, 0.3)


class GlobalNoise(Sound):
    def draw(self, generator: torch.Generator | None) -> Tensor:
        return super().draw(None)


class NoNoise(Sound):
    def draw(self, generator: torch.Generator | None) -> Tensor:
        return self.mean()


class TwiceTheKL(Sound):
    def kl(self) -> Tensor:
        return 2 * super().kl()


class WrongKLGradient(Sound):
    def pull_back_kl(self, weight: float) -> None:
        super().pull_back_kl(2 * weight)


class WrongMean(Sound):
    def mean(self) -> Tensor:
        return self.mu + 0.05


class WrongSpread(Sound):
    def std(self) -> Tensor:
        return self.rho.exp()


class WrongPullBack(Sound):
    def pull_back(self, gradient: Tensor, kept: Any) -> None:
        super().pull_back(gradient if gradient.dim() == 1 else gradient[:1].expand_as(gradient), kept)


class StateInAnAttribute(Sound):
    """It learns something beside its parameters that is in no state dict."""

    def __init__(self, name: str, layout: Layout, values: Tensor) -> None:
        super().__init__(name, layout, values)
        self.offset = values.clone()

    def mean(self) -> Tensor:
        return self.mu + 0.1 * self.offset.to(self.mu)

    def draw(self, generator: torch.Generator | None) -> Tensor:
        return super().draw(generator) + 0.1 * self.offset.to(self.mu)

    def log_prob(self, vector: Tensor) -> Tensor:
        return super().log_prob(vector - 0.1 * self.offset.to(vector))

    def kl(self) -> Tensor:
        b, far = self.rho.exp(), self.mean().abs()
        return (torch.log(0.3 / b) + far / 0.3 + b / 0.3 * torch.exp(-far / b) - 1).sum()


class NotTrained(Sound):
    """No gradient reaches its widths."""

    def draw(self, generator: torch.Generator | None) -> Tensor:
        return self.mu + (super().draw(generator) - self.mu).detach()

    def kl(self) -> Tensor:
        b, far = self.rho.exp().detach(), self.mu.abs()
        return (torch.log(0.3 / b) + far / 0.3 + b / 0.3 * torch.exp(-far / b) - 1).sum()


class Broken(cb.NetworkPosterior):
    kind = "example.sound"
    group: ClassVar[type[Sound]] = Sound

    def __init__(self, net: nn.Module, where: Any = None) -> None:
        super().__init__(*cb.posterior.assemble(net, self.group, where))


class MaskOfTheBatch(Broken):
    """Noise for each example apart: what an example gets depends on those before it in the batch."""

    kind = "example.mask-of-the-batch"

    @contextmanager
    def one_network(self, generator: torch.Generator) -> Iterator[None]:
        def noisy(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            return output + torch.randn(output.shape, generator=generator, dtype=output.dtype)

        handle = self.structure().register_forward_hook(noisy)
        try:
            yield
        finally:
            handle.remove()


class SeedOfThePast(Broken):
    """Samples depend on the number of those that were drawn before."""

    kind = "example.seed-of-the-past"

    def outputs(self, block: Any, samples: Any, seed: int) -> Any:
        return super().outputs(block, samples, seed if isinstance(samples, str) else seed + samples)


class ChangesTheNetwork(Broken):
    kind = "example.changes-the-network"

    def __init__(self, net: nn.Module, where: Any = None) -> None:
        super().__init__(net, where)
        with torch.no_grad():
            next(net.parameters()).mul_(1.1)


class ForgetsItsSettings(Broken):
    kind = "example.forgets-its-settings"

    def __init__(self, net: nn.Module, where: Any = None, temperature: float = 1.0) -> None:
        super().__init__(net, where)
        self.temperature = temperature

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs) / self.temperature

    def calls(self, vectors: Any, inputs: Any) -> list[Any]:
        return [output / self.temperature for output in super().calls(vectors, inputs)]


class CountsWrong(Broken):
    kind = "example.counts-wrong"

    @property
    def num_bayesian(self) -> int:
        return 1 + super().num_bayesian


class Silent(Broken):
    kind = "example.silent"

    def audit(self) -> None:
        print("all well")


class ApartNoise(Broken):
    """Each of several processes draws noise of its own."""

    kind = "example.apart-noise"

    def leaves(self, generators: Any) -> Any:
        if torch.distributed.is_initialized():
            for generator in generators:
                generator.manual_seed(generator.initial_seed() + torch.distributed.get_rank())
        return super().leaves(generators)
