r"""A Laplace approximation of the last layer, fitted after training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from calibayes.checks import integer, positive, positive_integer
from calibayes.data.input_structure import batch_length, rows, to_device
from calibayes.data.sources import Batch, as_source
from calibayes.device_precision import widest_float
from calibayes.errors import DataError, InvalidArgumentError, UnsupportedNetworkError
from calibayes.posterior.flat import Layout, Skeleton
from calibayes.posterior.head import Head
from calibayes.posterior.laplace_curvature import FullCurvature, KroneckerCurvature
from calibayes.posterior.laplace_group import LaplaceGroup
from calibayes.posterior.laplace_layer import hold_all_but, last_layer_choices, last_linear, output_layer, working_copy
from calibayes.posterior.laplace_prior import Precision, checked_precision, log_evidence, most_evident, most_predictive
from calibayes.posterior.network_outputs import check_labels, logits_of
from calibayes.posterior.network_posterior import NetworkPosterior, trained_network
from calibayes.posterior.rebuilding import network_with_roles
from calibayes.posterior.weight_groups import point_groups
from calibayes.posterior.weight_selection import Where
from calibayes.randomness import preserved_global_state

__all__ = ["LastLayerLaplace"]

_KINDS = {"full": FullCurvature, "kronecker": KroneckerCurvature}
_MOST_FULL = 2_000


@final
class LastLayerLaplace(NetworkPosterior):
    r"""A Gaussian over the last linear layer of a trained network, fitted in one pass over the data, without training.

    The Laplace approximation (Kristiadi et al. 2020, https://arxiv.org/abs/2002.10118; Daxberger et al. 2021,
    https://arxiv.org/abs/2106.14806): the mean is the trained weights $\theta^*$, the precision is
    $P = \sum_n \Lambda_n \otimes \phi_n\phi_n^\top + \delta I$, where $\phi$ are the features that reach the layer (with a one
    for its bias), $\Lambda = \mathrm{diag}(p) - pp^\top$, and $N(0, \delta^{-1}I)$ is the prior. For a last layer, the sum is
    the exact Hessian of the cross-entropy. All other weights are held at their trained values.

    For a trained network, use `from_point`. One that is not trained yet is trained by `calibayes.fit` like a `Point`, and
    fitted to the last layer at the end; before that, the sum is zero and $\delta = 1$.

    Args:
        net: a network; it is copied.
        layer: the name of the ``nn.Linear`` that gives its output; the last one by default.
        covariance: ``"full"``, ``"kronecker"`` or ``"auto"``, as in `from_point`.
        prior_precision: $\delta$, or ``"marginal-likelihood"``, likewise.

    Examples:
        >>> x = torch.randn(200, 4)
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
        >>> posterior = LastLayerLaplace.from_point(net, (x, x[:, :3].argmax(-1)))
        >>> posterior.num_bayesian, posterior.layer, posterior.covariance
        (27, '2', 'full')
        >>> calibayes.predict(posterior, x, samples="closed-form").probs.shape
        torch.Size([200, 3])
    """

    kind: ClassVar[str] = "last-layer-laplace"

    def __init__(
        self,
        net: nn.Module,
        layer: str | None = None,
        covariance: Literal["auto", "full", "kronecker"] = "auto",
        prior_precision: float | Literal["marginal-likelihood"] = "marginal-likelihood",
    ) -> None:
        checked_precision(prior_precision, None)
        skeleton = Skeleton(net)
        layer = last_linear(skeleton.module) if layer is None else layer
        part: Any = skeleton.module.get_submodule(layer)
        shape = part.out_features, part.in_features + (part.bias is not None)  # the bias is one more column
        if covariance not in ("auto", *_KINDS):
            raise InvalidArgumentError(f"Expected `covariance` to be 'auto', 'full' or 'kronecker', but got {covariance!r}.")
        if covariance == "auto":
            covariance = "full" if math.prod(shape) <= _MOST_FULL else "kronecker"
        choices = last_layer_choices(skeleton, layer)
        chosen = [choice for choice in choices if choice.role == "bayesian"]
        layout = Layout(tuple(choice.names for choice in chosen), tuple(choice.shape for choice in chosen))
        values = layout.flatten(skeleton.parameters)
        curvature = _KINDS[covariance](*shape, values)
        groups = [LaplaceGroup(layer or "*", layout, values, curvature), *point_groups(choices, skeleton)]
        super().__init__(skeleton, choices, groups)
        self.layer = layer
        self.covariance = covariance
        self.wanted_precision = prior_precision

    @classmethod
    def from_point(
        cls,
        point: nn.Module,
        data: Any,
        prior_precision: Precision = "marginal-likelihood",
        *,
        where: Where = None,
        covariance: Literal["auto", "full", "kronecker"] = "auto",
        validation: Any = None,
        batch_size: int = 256,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> LastLayerLaplace:
        r"""Fit the posterior, in evaluation mode, to a trained network: one pass over the data, a batch at a time.

        Args:
            point: a trained posterior such as a `Point`, or the network itself; it is not changed.
            data: the training data: ``(x, y)``, ``(x, y, weights)``, a Dataset or a DataLoader.
            prior_precision: $\delta$: a positive number; ``"marginal-likelihood"`` for the one with the highest Laplace
                evidence; ``"validation"`` for the one with the lowest NLL of ``validation``, predicted by 20 samples.
            where: which weights are Bayesian: only those of the ``nn.Linear`` that gives the network's output, the default, are
                allowed.
            covariance: ``"full"``; ``"kronecker"`` for $A \otimes G$ with $A = \sum_n \phi_n\phi_n^\top$ and
                $G = \frac1n\sum_n \Lambda_n$ (Ritter, Botev and Barber 2018, "A Scalable Laplace Approximation for Neural
                Networks"), for large layers; ``"auto"`` is full up to 2,000 weights.
            validation: data for ``prior_precision="validation"``; meanwhile their features are kept in memory.
            batch_size: how many examples go through the network at once.
            temperature: $T$ of the likelihood $p(D|\theta)^{1/T}$: below 1 the posterior is narrower (a cold posterior).
            seed: of the samples for ``"validation"``.
        """
        precision = checked_precision(prior_precision, validation)
        positive_integer("batch_size", batch_size)
        positive("temperature", temperature)
        integer("seed", seed)
        net = working_copy(trained_network(point))
        device = next(net.parameters()).device
        with preserved_global_state(device):
            batches = as_source(data, batch_size, "data").ordered()
            first = next(batches)
            few = rows(first.inputs, torch.arange(min(2, batch_length(first.inputs, "data"))))
            layer = output_layer(net, to_device(few, device), where)
            hold_all_but(net, layer)
            posterior = cls(net, layer, covariance)
            posterior._fit(chain([first], batches), temperature)
            if precision == "marginal-likelihood":
                precision = most_evident(posterior.group)
            elif precision == "validation":
                held_out = posterior._held_out(as_source(validation, batch_size, "validation").ordered())
                precision = most_predictive(posterior.group, *held_out, seed)
        posterior.group.prior_precision = precision
        return posterior

    @classmethod
    def from_config(cls, net: nn.Module, config: Mapping[str, Any]) -> LastLayerLaplace:
        return cls(network_with_roles(net, config), config["layer"], config["covariance"], config["wanted_precision"])

    def settings(self) -> dict[str, Any]:
        return {"layer": self.layer, "covariance": self.covariance, "wanted_precision": self.wanted_precision}

    def finish(self, batches: Callable[[], Iterator[Batch]]) -> None:
        with preserved_global_state(self.device):
            self._fit(batches(), 1.0)
        wanted = self.wanted_precision
        self.group.prior_precision = most_evident(self.group) if isinstance(wanted, str) else wanted

    @property
    def random(self) -> bool:
        return self.group.fitted

    def prior(self) -> dict[str, Any]:
        """The way the prior's precision is found: its value is state, not a setting."""
        return {"prior_precision": self.wanted_precision}

    @property
    def group(self) -> LaplaceGroup:
        """The group of the last layer."""
        return self.groups[0]  # type: ignore[return-value]

    @property
    def prior_precision(self) -> float:
        r"""The precision $\delta$ of the prior $N(0, \delta^{-1}I)$."""
        return self.group.prior_precision

    @property
    def log_marginal_likelihood(self) -> float:
        r"""The Laplace evidence $\log p(D|\theta^*) + \log p(\theta^*|\delta) - \frac12\log\det\frac{P}{2\pi}$, in nats."""
        return log_evidence(self.group)

    def closed_form(self, inputs: Any) -> Tensor:
        r"""Logits of the predictive probabilities for one batch, by the probit approximation for every pair of classes.

        The logits are Gaussian, $f \sim N(m, S)$, and
        $p_k \propto [\sum_j \exp(-(m_k - m_j)/\sqrt{1 + \frac\pi8 (S_{kk} + S_{jj} - 2S_{kj})})]^{-1}$ (Lu, Ie and Sha 2020,
        https://arxiv.org/abs/2006.07584). With two classes this is MacKay's; like a softmax it does not change when a number is
        added to all logits, as approximations by each logit's own variance do.
        """
        if not self.random:
            return super().closed_form(inputs)
        curvature, variances = self.group.curvature, self.group.variances()
        features, logits = (part.to(variances.dtype) for part in self._features(inputs, "x"))
        if torch.compiler.is_exporting():  # the number of rows is not known
            return _pairwise_probit(logits, curvature.logit_covariance(features, variances))
        parts = [part.split(curvature.rows_at_once()) for part in (features, logits)]
        return torch.cat(
            [_pairwise_probit(f, curvature.logit_covariance(phi, variances)) for phi, f in zip(*parts, strict=True)]
        )

    @torch.no_grad()
    def _fit(self, batches: Iterable[Batch], temperature: float) -> None:
        wide = torch.zeros((), dtype=widest_float(self.device), device=self.device)
        curvature, likelihood = self.group.curvature, 0.0
        curvature.begin_sum(wide)
        for features, logits, targets, weights in self._passed(batches, "data"):
            logs = logits.to(wide.dtype).log_softmax(-1)
            weights = weights.to(wide)
            likelihood += float((logs.gather(1, targets.unsqueeze(1)).squeeze(1) * weights).sum())
            curvature.add(features, logs.exp(), weights)
        curvature.end_sum(1 / temperature)
        self.group.fitted = True
        self.group.log_likelihood = likelihood / temperature

    @torch.no_grad()
    def _held_out(self, batches: Iterable[Batch]) -> tuple[Tensor, Tensor, Tensor]:
        parts = [(features, targets, weights) for features, _, targets, weights in self._passed(batches, "validation")]
        features, targets, weights = (torch.cat(part) for part in zip(*parts, strict=True))
        return features.to(self.group.curvature.eigenvalues.dtype), targets, weights

    def _passed(self, batches: Iterable[Batch], name: str) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Features, logits, labels and weights of each batch."""
        for batch in batches:
            features, logits = self._features(to_device(batch.inputs, self.device), name)
            targets = batch.targets.to(self.device)
            if len(targets) != len(logits):
                raise DataError(f"A batch of `{name}` has {len(logits)} inputs and {len(targets)} labels.")
            check_labels(targets, logits.shape[1])
            weights = torch.ones(len(targets), dtype=torch.float64) if batch.weights is None else batch.weights
            yield features, logits, targets, weights.to(widest_float(self.device)).to(self.device)

    def _features(self, inputs: Any, name: str) -> tuple[Tensor, Tensor]:
        """Return the inputs of the layer, with a one for its bias, ``[n, D]``, and the network's logits at the mean weights."""
        with self.evaluating(), Head(self.layer).recorded(self._skeleton) as recorded:
            output = self.call(self.mean_vectors(), inputs)
        logits = logits_of(output, batch_length(inputs, name))
        if len(recorded.calls) != 1 or (
            recorded.outputs[0] is not output and recorded.outputs[0] is not getattr(output, "logits", None)
        ):
            raise UnsupportedNetworkError(
                f"{self.layer!r} does not give the network's output, or not for all examples. A Laplace approximation needs a "
                "last layer that is the same for all: pass its name as `layer`. The trained weights are kept."
            )
        args, kwargs = recorded.calls[0]
        features: Tensor = args[0] if args else kwargs["input"]
        exporting = torch.compiler.is_exporting()  # no values are known
        if not exporting and not math.isfinite(float(features.sum())) and not bool(features.isfinite().all()):
            row = int((~features.isfinite()).any(-1).nonzero()[0])
            raise DataError(
                f"The input of {self.layer or 'the network'!r} is NaN or infinite for example {row} of a batch of `{name}`. "
                "Look for missing values in the inputs, or an overflow in the network."
            )
        if len(self.group.layout.shapes) > 1:
            features = torch.cat([features, torch.ones_like(features[:, :1])], 1)
        return features, logits


def _pairwise_probit(logits: Tensor, covariance: Tensor) -> Tensor:
    own = covariance.diagonal(dim1=1, dim2=2)
    variances = (own.unsqueeze(2) + own.unsqueeze(1) - 2 * covariance).clamp_min(0)
    scaled = (logits.unsqueeze(1) - logits.unsqueeze(2)) * (1 + math.pi / 8 * variances).rsqrt()
    return -scaled.logsumexp(-1)
