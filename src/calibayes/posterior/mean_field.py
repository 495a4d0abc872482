r"""A Gaussian over the weights with independent components, eq. (vi_mean_field)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from calibayes.checks import non_negative_integer
from calibayes.errors import InvalidArgumentError
from calibayes.posterior.flat import Skeleton
from calibayes.posterior.gaussian_group import GaussianGroup
from calibayes.posterior.group import GaussianPair, Group
from calibayes.posterior.network_posterior import NetworkPosterior, trained_network
from calibayes.posterior.weight_groups import grouped, point_groups
from calibayes.posterior.weight_selection import Where, choose, settings_of

__all__ = ["MeanField", "PriorMean"]

PriorMean = Mapping[str, Tensor] | Literal["initial"] | None


@final
class MeanField(NetworkPosterior):
    r"""A mean-field Gaussian over a network's weights (BNN, CA-BNN).

    $q(\theta|\varphi) = N(\theta | \mu, \mathrm{Diag}(e^{2\rho}))$ with $\varphi = [\mu, \rho]$, literally two flat vectors,
    and prior $p(\theta) = N(m, s^2 I)$. Any ``nn.Module`` works; its layers stay what they are. See
    Blundell et al., "Weight Uncertainty in Neural Networks" (2015, https://arxiv.org/abs/1505.05424).

    Args:
        net: any ``nn.Module`` that returns logits; it is copied, and its weights are the initial $\mu$.
        prior_std: $s$; a mapping from glob patterns to numbers gives every pattern its own, and its own pair of vectors
            (so that an optimiser can give each its own learning rate). The first pattern that matches counts.
        init_std: the initial $\sigma = e^\rho$; a number, or a mapping as above. Starting as wide as the prior learns slowly.
        where: which weights are Bayesian: glob patterns on the parameter's name, or a predicate on name and parameter.
            By default every trainable parameter except those of normalisation layers. The other trainable ones are
            trained as point values; frozen ones stay as they are. `audit` prints the outcome.
        prior_mean: $m$: zero by default, ``"initial"`` for the weights of ``net`` (fine-tuning), or a state dict.
        epochs_before: a warm start: train this many epochs as a point first, then the distribution; an integer, or a share of
            all epochs between 0 and 1.

    Examples:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        >>> posterior = MeanField(net, prior_std=0.1, where="2.*")
        >>> posterior.num_bayesian
        27
        >>> {name: tuple(w.shape) for name, w in posterior.sample(5).items()}["2.weight"]
        (5, 3, 8)
    """

    kind: ClassVar[str] = "mean-field"

    def __init__(
        self,
        net: nn.Module,
        prior_std: float | Mapping[str, float] = 0.05,
        init_std: float | Mapping[str, float] = 0.01,
        where: Where = None,
        prior_mean: PriorMean = None,
        epochs_before: float = 0,
    ) -> None:
        _check_epochs_before(epochs_before)
        skeleton = Skeleton(net)
        choices = choose(skeleton, where, bayesian=True)
        chosen = [choice for choice in choices if choice.role == "bayesian"]
        priors, starts = settings_of("prior_std", prior_std, chosen), settings_of("init_std", init_std, chosen)
        groups: list[Group] = []
        for name, layout, values in grouped(chosen, skeleton, priors):
            widths, prior = [starts[weight].value for weight in values], priors[next(iter(values))].value
            group = GaussianGroup(name, layout, layout.flatten(values), widths, prior, epochs_before)
            if prior_mean is not None:
                group.prior_mean = layout.flatten(_prior_values(prior_mean, values)).to(group.mu)
            groups.append(group)
        super().__init__(skeleton, choices, [*groups, *point_groups(choices, skeleton)])
        self.prior_std = dict(prior_std) if isinstance(prior_std, Mapping) else prior_std
        self.epochs_before = epochs_before

    @classmethod
    def from_point(cls, point: nn.Module, **settings: Any) -> MeanField:
        r"""Start at a trained posterior such as a `Point`, or a network: $\mu$ is its weights; ``settings`` as for `MeanField`.

        Examples:
            >>> posterior = MeanField.from_point(calibayes.Point(torch.nn.Linear(3, 2)), prior_mean="initial", init_std=1e-3)
            >>> posterior.num_bayesian
            8
        """
        return cls(trained_network(point), **settings)

    @classmethod
    def widened(cls, point: nn.Module, data: Any, by: float = 0.01, **settings: Any) -> MeanField:
        """Add noise to a trained network until its training loss on ``data`` has risen by ``by`` nats; nothing is trained.

        See `calibayes.posterior.mean_field_without_training.widened` for the arguments and further settings.
        """
        from calibayes.posterior.mean_field_without_training import widened

        return widened(point, data, by, **settings)

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> MeanField:
        return super().from_config(net, {**config, "prior_mean": "initial" if config["prior_mean"] else None})

    def check_epochs(self, epochs: int) -> None:
        """Raise `InvalidArgumentError` if the point phase would not end."""
        before = self.epochs_before
        if not isinstance(before, float) and before > epochs:
            raise InvalidArgumentError(
                f"The first {before} epochs are trained as a point (`epochs_before`), but there are only {epochs}. Use more "
                "epochs, or a share such as `epochs_before=0.5`."
            )

    def settings(self) -> dict[str, Any]:
        """The prior, and the length of the point phase where there is one."""
        centred = any(pair.prior_mean is not None for pair in self._pairs())
        before = {"epochs_before": self.epochs_before} if self.epochs_before else {}
        return {"prior_std": self.prior_std, "prior_mean": centred, **before}

    @property
    def mu(self) -> Tensor:
        r"""The means $\mu$ as one vector (the parameter itself where there is one group)."""
        return _joined([pair.mu for pair in self._pairs()])

    @property
    def rho(self) -> Tensor:
        r"""The log standard deviations $\rho$ as one vector (the parameter itself where there is one group)."""
        return _joined([pair.rho for pair in self._pairs()])

    def _pairs(self) -> list[GaussianPair]:
        return [pair for group in self.groups if (pair := group.gaussian()) is not None]


def _check_epochs_before(value: Any) -> None:
    if not isinstance(value, float):
        non_negative_integer("epochs_before", value)
    elif not 0 < value < 1:
        raise InvalidArgumentError(
            f"Expected `epochs_before` to be a number of epochs, or a share of them between 0 and 1, but got {value!r}."
        )


def _joined(vectors: list[nn.Parameter]) -> Tensor:
    return vectors[0] if len(vectors) == 1 else torch.cat(list(vectors))


def _prior_values(prior_mean: Mapping[str, Tensor] | Literal["initial"], values: dict[str, Tensor]) -> dict[str, Tensor]:
    if prior_mean == "initial":
        return values
    if not isinstance(prior_mean, Mapping):
        raise InvalidArgumentError(f"Expected `prior_mean` to be None, 'initial' or a state dict, but got {prior_mean!r}.")
    for name, value in values.items():
        if name not in prior_mean:
            raise InvalidArgumentError(f"`prior_mean` has no value for {name!r}; it has {sorted(prior_mean)[:8]}.")
        if prior_mean[name].shape != value.shape:
            raise InvalidArgumentError(
                f"`prior_mean[{name!r}]` has shape {list(prior_mean[name].shape)}, but the weight has {list(value.shape)}."
            )
    return {name: prior_mean[name].to(value) for name, value in values.items()}
