"""The network at samples of the weights, in a step of several processes; and parameters that such a step does not use."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from calibayes.data.sources import Batch
from calibayes.distributed import Processes
from calibayes.distributed.batch_norm import batch_norms, statistics_names, synchronised
from calibayes.posterior import StepStatistics
from calibayes.posterior.network_outputs import check_labels, check_not_probabilities, logits_of
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.randomness import seed_globally
from calibayes.training.micro_batches import TrainingPosition, noise_generators

__all__ = ["SampledNetwork", "idle_parameters"]


class SampledNetwork:
    """Runs the network of a posterior in training mode at $R$ samples, on batches of which each process has a part."""

    def __init__(self, posterior: NetworkPosterior, samples: int, seed: int, processes: Processes) -> None:
        self.posterior, self._seed, self._processes = posterior, seed, processes
        self._samples = samples if posterior.num_bayesian else 1
        shared = processes.size > 1
        self._norms = list(batch_norms(posterior.structure()).values()) if shared else []
        self._alike = statistics_names(posterior.structure()) if shared else set()
        self._checked = False

    def logits(self, batch: Batch, place: TrainingPosition) -> Tensor:
        """Logits ``[R, n, K]``, differentiable in the posterior's parameters; running statistics advance once."""
        statistics = StepStatistics(self.posterior)
        logits = torch.stack([self._one(batch, place, r, statistics) for r in range(self._samples)])
        if self._processes.size == 1:
            statistics.keep()
        elif self.posterior.buffer_values():
            total = sum(self._processes.counts(batch.total, self.posterior.device))
            statistics.keep(self._processes, batch.total / total, self._alike)
        return logits

    def _one(self, batch: Batch, place: TrainingPosition, r: int, statistics: StepStatistics) -> Tensor:
        """Those of θ_r, which is the same in all processes, while each has its own dropout masks."""
        others = (self._processes.rank,) if self._processes.rank else ()
        (noise,) = noise_generators(self.posterior.device, self._seed, place, range(r, r + 1))
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


def idle_parameters(loss: Tensor, parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    r"""The parameters that a loss has no gradient for, such as $\rho$ while a `MeanField` is still trained as a point.

    DistributedDataParallel must not wait for them.

    Examples:
        >>> first, second = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
        >>> [len(each) for each in idle_parameters((2 * first).sum(), [first, second])]
        [3]
    """
    reached: set[int] = set()
    seen, nodes = set(), [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        reached.add(id(getattr(node, "variable", None)))
        nodes += [each for each, _ in node.next_functions]
    return [parameter for parameter in parameters if id(parameter) not in reached]
