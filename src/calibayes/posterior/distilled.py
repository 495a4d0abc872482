"""One network that has learned an ensemble's probabilities, and how much of their entropy is epistemic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

from torch import Tensor, nn

from calibayes.posterior.network_outputs import entropy
from calibayes.posterior.network_posterior import NetworkPosterior
from calibayes.posterior.rebuilding import network_with_roles
from calibayes.posterior.weight_groups import assemble

__all__ = ["Distilled", "log_evidence"]


@final
class Distilled(NetworkPosterior):
    r"""A network with one value per weight whose single pass gives an ensemble's probabilities and its uncertainty.

    The probabilities $p$ are the softmax of the $K$ logits $z$, which does not change when a number is added to all of them.
    That number is the second output. With the evidence $\alpha_y = e^{z_y}$ and $\alpha_0 = \sum_y \alpha_y$,
    $p_y = \alpha_y/\alpha_0$ and a share $1/(1 + \alpha_0)$ of the entropy is epistemic, as it is of the variance for a
    Dirichlet distribution with the parameters $\alpha$; so $0 \le$ epistemic $\le$ entropy whatever the weights. The network
    needs no further output: any classifier can be a student.

    `calibayes.distill` makes one from an ensemble, or from any other posterior. Trained by anything else, such as the
    cross-entropy, its share of epistemic uncertainty means nothing.

    Args:
        net: any ``nn.Module`` that returns logits; it is copied.

    Examples:
        >>> net = torch.nn.Linear(2, 3)
        >>> _ = net.weight.data.zero_(), net.bias.data.zero_()
        >>> predictive = calibayes.predict(Distilled(net), torch.zeros(1, 2))
        >>> predictive.entropy, predictive.epistemic  # every evidence is 1: a quarter of the entropy is epistemic
        (tensor([1.0986]), tensor([0.2747]))
    """

    kind: ClassVar[str] = "distilled"

    def __init__(self, net: nn.Module) -> None:
        super().__init__(*assemble(net, None))

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> Distilled:
        return cls(network_with_roles(net, config))

    def aleatoric(self, logits: Tensor, probs: Tensor) -> Tensor:
        return entropy(probs) * log_evidence(logits).sigmoid().to(probs)


def log_evidence(logits: Tensor) -> Tensor:
    r"""$\log \alpha_0$ of each example, ``[..., n]``: the logit of the share of its entropy that is aleatoric."""
    return logits.logsumexp(-1)
