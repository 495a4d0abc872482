r"""Natural-gradient variational inference: an optimiser of the pairs $\varphi = [\mu, \rho]$ of a posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import nn

from calibayes.checks import is_real, positive
from calibayes.errors import InvalidArgumentError, OptimizerError
from calibayes.objective import Objective
from calibayes.posterior.abstract_posterior import Posterior
from calibayes.posterior.group import GaussianPair

__all__ = ["NaturalGradient", "NaturalGradientOptimizer"]

_POINT_BETAS = (0.9, 0.999)
_EPS = 1e-8
_ROUNDING = 1e-5


@final
@dataclass(frozen=True)
class NaturalGradient:
    r"""Natural-gradient variational inference (IVON) for a `MeanField`, in the place of Adam.

    It learns $\sigma$ from the loss's curvature, which it estimates from the gradients of the usual step: with
    $\theta = \mu + \sigma \circ \epsilon$ and $g$ the gradient of the mean loss of a batch (without the KL) at $\theta$, the
    estimate is $\hat h = g \circ \epsilon / \sigma$. With $w = \beta/|D|$, $\delta = w/s^2$ and the prior $N(m_0, s^2 I)$,

    $$ m \leftarrow \beta_1 m + (1-\beta_1) g, \qquad
       h \leftarrow \beta_2 h + (1-\beta_2) \hat h + \tfrac12 (1-\beta_2)^2 \frac{(h - \hat h)^2}{h + \delta}, $$
    $$ \mu \leftarrow \mu - \mathrm{lr} \, \frac{m/(1-\beta_1^t) + \delta (\mu - m_0)}{h + \delta}, \qquad
       \sigma^2 = \frac{w}{h + \delta}. $$

    $h$ starts where the posterior does, at $w/\sigma_0^2 - \delta$, so ``init_std`` must be smaller than ``prior_std``. Its
    fixed point is that of the `Objective` as $\beta_2 \to 1$. The method is that of Shen et al., "Variational Learning is
    Effective for Large Deep Networks" (ICML 2024, https://arxiv.org/abs/2402.17641).

    Weights without a distribution, and $\mu$ in steps without sampling, are trained by AdamW. Learning-rate schedulers scale
    both rates.

    Args:
        lr: the fraction of a Newton step. At first $h$ comes from ``init_std`` alone, $w/\sigma_0^2$: a start that is too wide
            for the data (many examples, a small $\beta$) needs a smaller ``lr``.
        betas: the decay rates $\beta_1$ of the gradient and $\beta_2$ of the curvature. The curvature is averaged over about
            $1/(1-\beta_2)$ steps: fewer adapt faster, and make $\sigma$ noisier.
        point_lr: the learning rate of AdamW.
        point_weight_decay: its weight decay.
        rescale_lr: multiply ``lr`` by the mean of $h_0 + \delta$, as the paper does. Then it is the learning rate of SGD at
            the start, whatever ``init_std``, $\beta$ and $|D|$ are: 0.1 suits many networks.

    Examples:
        >>> x, y = torch.randn(64, 4), torch.arange(64) % 3
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3), prior_std=0.5, init_std=0.1)
        >>> objective = calibayes.Objective(lam=0.0, beta=1.0)
        >>> history = calibayes.fit(posterior, (x, y), objective, optimizer=calibayes.NaturalGradient(lr=0.1), epochs=2)
        >>> history.epochs[-1]["lr"]
        0.1
    """

    lr: float = 0.03
    betas: tuple[float, float] = (0.9, 0.999)
    point_lr: float = 1e-3
    point_weight_decay: float = 0.0
    rescale_lr: bool = False

    def __post_init__(self) -> None:
        positive("lr", self.lr)
        positive("point_lr", self.point_lr)
        if not is_real(self.point_weight_decay) or not 0 <= self.point_weight_decay < math.inf:
            raise InvalidArgumentError(
                f"Expected `point_weight_decay` to be a non-negative finite number, but got {self.point_weight_decay!r}."
            )
        given: Any = self.betas
        if not isinstance(given, tuple | list) or len(given) != 2 or not all(is_real(b) and 0 <= b < 1 for b in given):
            raise InvalidArgumentError(f"Expected `betas` to be two numbers of at least 0 and less than 1, but got {given!r}.")
        if not isinstance(self.rescale_lr, bool):
            raise InvalidArgumentError(f"Expected `rescale_lr` to be True or False, but got {self.rescale_lr!r}.")

    def bind(self, posterior: Posterior, objective: Objective, dataset_size: int) -> NaturalGradientOptimizer:
        r"""The optimiser of a posterior's parameters, which must be on its device; it adds the effect of the KL itself."""
        return NaturalGradientOptimizer(self, posterior, objective, dataset_size)


@final
class NaturalGradientOptimizer(torch.optim.Optimizer):
    r"""The optimiser that `NaturalGradient` makes for one posterior.

    It must be handed the gradient of the loss *without* the KL, which ``handles_kl`` says. That of $\rho$ is then
    $g \circ \sigma \epsilon$, averaged over samples, and divided by $\sigma^2$ it is $\hat h$.
    """

    handles_kl = True

    def __init__(self, settings: NaturalGradient, posterior: Posterior, objective: Objective, dataset_size: int) -> None:
        self._settings, self._objective, self._dataset_size = settings, objective, dataset_size
        everything = (group for member in posterior.members for group in member.groups)
        self._paired = [group for group in everything if group.gaussian() is not None]
        if not self._paired:
            raise OptimizerError(
                f"NaturalGradient trains Gaussians over weights, but this posterior ({posterior.kind}) has none. Use a "
                "MeanField, or another optimiser: `torch.optim.Adam`."
            )
        self._kl_weight(0)
        given = posterior.parameter_groups()
        names = {id(parameter): group.get("name", "") for group in given for parameter in group["params"]}
        groups: list[dict[str, Any]] = []
        recognised = {"point_lr": settings.point_lr, "rescale_lr": settings.rescale_lr}  # in fingerprints of checkpoints
        for pair in self._pairs():
            groups.append({"params": [pair.mu, pair.rho], "name": names[id(pair.mu)].removesuffix(".mu"), **recognised})
        in_pairs = {id(parameter) for group in groups for parameter in group["params"]}
        decay = float(settings.point_weight_decay)
        for group in given:
            alone = [parameter for parameter in group["params"] if id(parameter) not in in_pairs]
            if alone:
                groups.append({"lr": settings.point_lr, "betas": _POINT_BETAS, "weight_decay": decay, **group, "params": alone})
        super().__init__(groups, {"lr": settings.lr, "betas": tuple(settings.betas)})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step with the gradients that the parameters have, or those that ``closure`` computes; returns its loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        pairs = self._pairs()
        for pair, group in zip(pairs, self.param_groups, strict=False):
            state = self.state[pair.mu]
            weight = self._kl_weight(state.get("step", 0))
            state["step"] = state.get("step", 0) + 1
            if pair.mu.grad is None:
                continue
            if pair.rho.grad is None:  # drawn at the mean: nothing is known about the curvature
                rate = group["point_lr"] * group["lr"] / self._settings.lr
                self._adamw(pair.mu, rate, self._settings.point_weight_decay, _POINT_BETAS)
            else:
                self._natural(pair, group, weight)
        for group in self.param_groups[len(pairs) :]:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._adamw(parameter, group["lr"], group["weight_decay"], group["betas"])
        return loss

    def _pairs(self) -> list[GaussianPair]:
        """Looked up at every step: a prior's mean that has moved to another device is another tensor."""
        return [pair for group in self._paired if (pair := group.gaussian()) is not None]

    def _kl_weight(self, step: int) -> float:
        r"""$w = \beta/|D|$ at one of the optimiser's own steps."""
        weight = self._objective.kl_weight(step, self._dataset_size)
        if weight == 0:
            raise OptimizerError(
                f"NaturalGradient needs a positive beta, but beta is 0 at step {step}: without a KL term the standard "
                "deviations have no optimum. Use a constant beta, or a schedule that starts above 0, such as "
                "`calibayes.schedules.Linear(start=0.01, end=0.1, steps=1000)`."
            )
        return weight

    def _natural(self, pair: GaussianPair, group: dict[str, Any], weight: float) -> None:
        r"""The update of the class's docstring, in few passes; the precision $1/\sigma^2$ is $h/w + 1/s^2$."""
        (mu, rho, prior_std, prior_mean), (beta1, beta2) = pair, group["betas"]
        assert mu.grad is not None
        assert rho.grad is not None
        state = self.state[mu]
        if "hessian" not in state:
            state.update(_start(pair, weight))
        h, m = state["hessian"], state["momentum"]
        prior_precision = torch.tensor(prior_std**-2, dtype=mu.dtype)
        precision = torch.add(prior_precision, h, alpha=1 / state["kl_weight"])  # of the samples that were drawn
        if weight == state["kl_weight"]:
            excess = torch.addcmul(h, rho.grad, precision, value=-1)  # h − ĥ
        else:
            curvature = rho.grad * precision
            if weight < state["kl_weight"]:  # a smaller β never widens: with h < 0 the variance could become negative
                torch.maximum(h, h * (weight / state["kl_weight"]), out=h)
            torch.add(prior_precision, h, alpha=1 / weight, out=precision)
            excess = torch.sub(h, curvature, out=curvature)
        h.add_(excess, alpha=beta2 - 1)
        h.addcdiv_(excess.square_(), precision, value=0.5 * (1 - beta2) ** 2 / weight)
        torch.add(prior_precision, h, alpha=1 / weight, out=precision)
        torch.log(precision, out=rho).mul_(-0.5)

        state["updates"] += 1
        state["kl_weight"] = weight
        correction = 1 - beta1 ** state["updates"]
        pull = weight * prior_std**-2 * correction
        m.lerp_(mu.grad, 1 - beta1)
        direction = torch.add(m, mu, alpha=pull, out=excess)
        if prior_mean is not None:
            direction.sub_(prior_mean, alpha=pull)
        rate = group["lr"] * (state["start"] if group["rescale_lr"] else 1.0)
        mu.addcdiv_(direction, precision, value=-rate / (correction * weight))

    def _adamw(self, parameter: nn.Parameter, lr: float, weight_decay: float, betas: tuple[float, float]) -> None:
        """A step of AdamW."""
        beta1, beta2 = betas
        state = self.state[parameter]
        if "exp_avg" not in state:
            state.update(exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter), adam_step=0)
        assert parameter.grad is not None
        state["adam_step"] += 1
        first, second = 1 - beta1 ** state["adam_step"], 1 - beta2 ** state["adam_step"]
        state["exp_avg"].lerp_(parameter.grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(parameter.grad, parameter.grad, value=1 - beta2)
        width = state["exp_avg_sq"].sqrt().div_(math.sqrt(second)).add_(_EPS)
        parameter.mul_(1 - lr * weight_decay).addcdiv_(state["exp_avg"], width, value=-lr / first)


def _start(pair: GaussianPair, weight: float) -> dict[str, Any]:
    """The state before the first update: the curvature at which σ is what it is, and the mean of h₀ + δ."""
    widest = float(pair.rho.max().exp())
    if widest >= pair.prior_std * (1 - _ROUNDING):
        raise OptimizerError(
            f"NaturalGradient must start narrower than the prior, but the largest standard deviation is {widest:.4g} with "
            f"prior_std={pair.prior_std:.4g}: no positive curvature has that width. Choose a smaller `init_std` (0.1 or 0.2 "
            "times `prior_std`, say); to resume training, use `checkpoint`, which keeps the optimiser's state."
        )
    precision = pair.rho.mul(-2).exp_()
    start = weight * float(precision.mean())
    hessian = precision.sub_(pair.prior_std**-2).mul_(weight)
    return {"hessian": hessian, "momentum": torch.zeros_like(pair.mu), "updates": 0, "kl_weight": weight, "start": start}
