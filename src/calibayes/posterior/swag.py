r"""A Gaussian around the average of the weights that training went through: SWAG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Literal, final

from torch import Tensor, nn

from calibayes.errors import InvalidArgumentError
from calibayes.posterior.flat import Layout
from calibayes.posterior.network_posterior import NetworkPosterior, trained_network
from calibayes.posterior.rebuilding import network_with_roles
from calibayes.posterior.swag_group import AveragedGroup, CollectionRule, SWAGGroup
from calibayes.posterior.weight_groups import assemble
from calibayes.posterior.weight_selection import Where

__all__ = ["SWAG"]


@final
class SWAG(NetworkPosterior):
    r"""A Gaussian fitted to the weights at the end of each epoch (Maddox et al. 2019, https://arxiv.org/abs/1902.02476).

    Training is that of a `Point`, with a learning rate that stays high enough for the weights to move. From ``start_epoch`` on
    they are collected, and predictions draw from

    $$N\!\left(\bar\theta,\; c\,\Big(\Sigma_\mathrm{diag} + \tfrac{1}{K-1} D D^\top\Big)\right)$$

    with the average $\bar\theta$, the variances $\Sigma_\mathrm{diag}$, and in the columns of $D$ the last $K$ deviations from
    the running average; $c = \frac12$ is the paper's. There is no prior and no KL. Until two sets of weights are collected, all
    samples are the average, or the trained weights.

    `calibayes.fit` estimates the running statistics of batch norms again at the average. All samples share them, where the
    paper estimates them for every sample.

    Args:
        net: any ``nn.Module`` that returns logits; it is copied.
        start_epoch: the first epoch (from 1) whose weights are collected; or the share of the epochs before it, a half by
            default.
        every: collect after each ``"epoch"``, after each ``"step"``, or after this many steps.
        rank: $K$, how many deviations are kept, each as large as the network; 0 for the variances alone (SWAG-Diagonal).
        scale: $c$; the paper's SWAG-Diagonal has 1.
        where: which weights get a distribution, as for `MeanField`; of the other trained weights predictions use the average.

    Examples:
        >>> data = torch.randn(64, 4), torch.arange(64) % 3
        >>> posterior = SWAG(torch.nn.Linear(4, 3), start_epoch=3)
        >>> history = calibayes.fit(posterior, data, calibayes.Objective(), epochs=8, batch_size=16)
        >>> posterior.collected, calibayes.predict(posterior, data[0], samples=30).probs.shape
        (6, torch.Size([64, 3]))
    """

    kind: ClassVar[str] = "swag"

    def __init__(
        self,
        net: nn.Module,
        start_epoch: float = 0.5,
        every: Literal["epoch", "step"] | int = "epoch",
        rank: int = 20,
        scale: float = 0.5,
        where: Where = None,
    ) -> None:
        collection = CollectionRule(start_epoch, every, rank, scale)

        def averaged(name: str, layout: Layout, values: Tensor) -> AveragedGroup:
            return AveragedGroup("averaged", layout, values, collection)

        super().__init__(*assemble(net, partial(SWAGGroup, collection=collection), where, averaged))
        self.collection = collection

    @classmethod
    def from_point(cls, point: nn.Module, **settings: Any) -> SWAG:
        """Continue from a trained posterior such as a `Point`, or a network; ``settings`` are those of `SWAG`."""
        return cls(trained_network(point), **settings)

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> SWAG:
        roles = config["roles"]
        return cls(network_with_roles(net, config), **config["collection"], where=lambda name, _: roles.get(name) == "bayesian")

    def settings(self) -> dict[str, Any]:
        return {"collection": asdict(self.collection)}

    @property
    def collected(self) -> int:
        """The number of sets of weights collected."""
        return int(self._drawn().collected)

    @property
    def random(self) -> bool:
        return self.collected > 1

    @property
    def averages_itself(self) -> bool:
        return True

    @property
    def needs_statistics(self) -> bool:
        return self.collected > 0

    def check_epochs(self, epochs: int) -> None:
        """Raise `InvalidArgumentError` if two sets of weights would not be collected in this many more epochs."""
        behind = int(self._drawn().epochs)
        start = int(self._drawn().first) or self.collection.first(behind + epochs)
        least = start + (self.collection.steps is None)
        if self.collected < 2 and behind + epochs < least:
            raise InvalidArgumentError(
                f"SWAG collects weights from epoch {start} on and needs two sets of them, but training ends with `epochs="
                f"{behind + epochs}`. Use a smaller `start_epoch`, `every='step'`, or more epochs."
            )

    def notes(self) -> list[str]:
        return [f"Sets of weights collected: {self.collected}. Weights that are points are averaged."]

    def _drawn(self) -> SWAGGroup:
        return self.groups[0]  # type: ignore[return-value]  # `choose` makes sure that there is one
