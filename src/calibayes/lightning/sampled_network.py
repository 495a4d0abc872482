"""The network at samples of the weights, in a step of several processes."""

from __future__ import annotations

import torch
from torch import Tensor

from calibayes.data.sources import Batch
from calibayes.distributed import Processes
from calibayes.distributed.batch_norm import batch_norms, statistics_names, synchronised
from calibayes.posterior import StepStatistics
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.ensemble import member_seed
from calibayes.posterior.network_outputs import check_labels, check_not_probabilities, logits_of
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.randomness import generator_for, seed_globally
from calibayes.training.data_terms import TrainingPosition

__all__ = ["SampledNetwork", "sampled_members"]


def sampled_members(posterior: Posterior, samples: int, seed: int, processes: Processes) -> list[SampledNetwork]:
    """The network of each member of a posterior, with noise and dropout of its own."""
    return [
        SampledNetwork(member, samples if member.num_bayesian else 1, member_seed(seed, index), processes)
        for index, member in enumerate(posterior.members)
    ]


class SampledNetwork:
    r"""Runs a posterior's network on batches of which each process has a part.

    Args:
        posterior: in training mode.
        samples: $R$.
        seed: of noise and dropout.
        processes: which run it together.

    Attributes:
        posterior: the same.
    """

    def __init__(self, posterior: NetworkPosterior, samples: int, seed: int, processes: Processes) -> None:
        self.posterior, self._samples, self._seed, self._processes = posterior, samples, seed, processes
        shared = processes.size > 1
        self._norms = list(batch_norms(posterior.structure()).values()) if shared else []
        self._alike = statistics_names(posterior.structure()) if shared else set()
        self._checked = False

    def logits(self, batch: Batch, place: TrainingPosition) -> Tensor:
        """Logits ``[R, n, K]``, differentiable in the posterior's parameters; running statistics advance once."""
        statistics = StepStatistics(self.posterior)
        found = torch.stack([self._one(batch, place, r, statistics) for r in range(self._samples)])
        self._keep(statistics, batch.total)
        return found

    def _one(self, batch: Batch, place: TrainingPosition, r: int, statistics: StepStatistics) -> Tensor:
        """Those of θ_r, which is the same in all processes, while dropout is each one's own."""
        others = (self._processes.rank,) if self._processes.rank else ()
        noise = generator_for(self.posterior.device, self._seed, "noise", place.epoch, place.batch, r)
        vectors, buffers = self.posterior.draw(noise), statistics.fresh()
        seed_globally(self._seed, "network", "batch", place.epoch, place.batch, r, 0, *others)
        with synchronised(self._norms, self._processes, counted=True):
            logits = logits_of(self.posterior.call(vectors, batch.inputs, buffers), batch.total)
        statistics.add(buffers, 1)
        check_labels(batch.targets, logits.shape[-1])
        if not self._checked:
            check_not_probabilities(logits)
            self._checked = True
        return logits

    def _keep(self, statistics: StepStatistics, examples: int) -> None:
        if self._processes.size == 1:
            statistics.keep()
        elif self.posterior.buffer_values():
            total = sum(self._processes.counts(examples, self.posterior.device))
            statistics.keep(self._processes, examples / total, self._alike)
