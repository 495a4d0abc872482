r"""The objective: a mean loss, terms beside it, and $\beta\,\mathrm{KL}$: eq. (ca-bnn) on a mini-batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, final

from torch import Tensor

from calibayes.calibration.measures import WMMCE, Measure, one_of
from calibayes.checks import positive
from calibayes.distributed import Processes, ProcessGroupChoice
from calibayes.errors import InvalidArgumentError
from calibayes.objective.losses import CrossEntropy, Loss, as_loss
from calibayes.objective.objective_checks import check_names, check_terms
from calibayes.objective.term_gradient import LogitBatch, weight_of
from calibayes.objective.terms import Calibration, Term, Terms, check_measure
from calibayes.schedules import Schedule, value_at

__all__ = ["SCHEMES", "Objective", "checked_objective"]

SCHEMES = ("fnn", "bnn", "ca-fnn", "ca-bnn")
"""The paper's four schemes: `Point` or `MeanField`, without or with (``ca-``) the calibration term."""

_NOT_GIVEN: Any = type("_NotGiven", (), {"__repr__": lambda _: "default"})()


class _ShortForm(tuple[Term, ...]):
    """Terms made from ``lam``, ``calibration`` and ``lam_scale``, which `dataclasses.replace` makes again."""


@final
@dataclass(frozen=True, repr=False)
class Objective:
    r"""The calibration-aware free energy of eq. (ca-bnn), divided by the size of the batch.

    $$ \frac1R \sum_r \Big[ \frac1{|B|} \sum_{B} -\log p(y|x,\theta_r) + \frac{\lambda}{|B|} \mathrm{AECE}(\theta_r|B) \Big]
       + \frac{\beta}{|D|} \mathrm{KL}(q \| p) $$

    ``lam``, ``calibration`` and ``lam_scale`` are short for ``terms=(Calibration(calibration, lam=lam, scale=lam_scale),)``;
    with ``terms`` they are left out, and are ``None``.

    Args:
        lam: $\lambda \ge 0$, or a function of the optimiser step (`calibayes.schedules.Linear`); 10 by default, 0 leaves the
            term out.
        beta: $\beta \ge 0$, likewise; it has no effect on a `Point`.
        calibration: the measure that stands for AECE; `WMMCE` by default.
        lam_scale: ``"paper"`` (the default) as above, or ``"mean"`` for $\lambda$ itself beside the mean loss.
        loss: in the place of the cross-entropy: `Focal`, or any function of logits ``[n, K]`` and targets ``[n]`` that
            returns one number per example.
        terms: what stands beside the mean loss: `Calibration`, `ConfidenceMinimization`, or a `Term` of your own.

    Examples:
        >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
        >>> terms = Objective(lam=10.0, beta=0.1)(logits, torch.tensor([0, 1, 1]), kl=torch.tensor(50.0), dataset_size=1000)
        >>> round(float(terms.total), 4), {name: round(float(value), 4) for name, value in terms.values.items()}
        (2.7646, {'cross_entropy': 0.4963, 'calibration': 0.679, 'kl': 50.0})
        >>> Objective(loss=calibayes.Focal(gamma=3.0), terms=(calibayes.ConfidenceMinimization(weight=0.5),))
        Objective(beta=0.1, loss=Focal(gamma=3.0, schedule=None),
            terms=(ConfidenceMinimization(weight=0.5, of='samples', name='confidence'),))
    """

    lam: Schedule | None = field(default=_NOT_GIVEN, compare=False)
    beta: Schedule = 0.1
    calibration: Measure | None = field(default=_NOT_GIVEN, compare=False)
    lam_scale: Literal["paper", "mean"] | None = field(default=_NOT_GIVEN, compare=False)
    loss: Loss = field(default_factory=CrossEntropy, kw_only=True)
    terms: Sequence[Term] = field(default=None, kw_only=True)  # type: ignore[arg-type]

    if TYPE_CHECKING:  # what may be passed, rather than what it becomes

        def __init__(
            self,
            lam: Schedule = 10.0,
            beta: Schedule = 0.1,
            calibration: Measure = ...,
            lam_scale: Literal["paper", "mean"] = "paper",
            *,
            loss: Loss | Callable[[Tensor, Tensor], Tensor] = ...,
            terms: Sequence[Term] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        value_at(self.beta, 0, "beta")
        self._set(loss=as_loss(self.loss))
        if self.terms is None or isinstance(self.terms, _ShortForm):
            self._fill_short_form()
        else:
            short = {name: getattr(self, name) for name in ("lam", "calibration", "lam_scale")}
            given = [name for name, value in short.items() if value is not _NOT_GIVEN and value is not None]
            if given:
                raise InvalidArgumentError(
                    f"`{given[0]}` and `terms` cannot be given together: `lam`, `calibration` and `lam_scale` are short for "
                    "terms=(Calibration(measure, lam=…, scale=…),). Put them there."
                )
            self._set(lam=None, calibration=None, lam_scale=None, terms=check_terms(self.terms))
        check_names(self.loss, self.terms)

    def _fill_short_form(self) -> None:
        defaults = {"lam": 10.0, "calibration": WMMCE(), "lam_scale": "paper"}
        self._set(**{name: value for name, value in defaults.items() if getattr(self, name) is _NOT_GIVEN})
        lam, calibration, scale = self.lam, self.calibration, self.lam_scale
        one_of("lam_scale", scale, ("paper", "mean"))
        check_measure("calibration", calibration)
        self._set(terms=_ShortForm((Calibration(calibration, lam, scale),)))  # type: ignore[arg-type]

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def is_short(self) -> bool:
        """True if the terms are those of ``lam``, ``calibration`` and ``lam_scale``."""
        return isinstance(self.terms, _ShortForm)

    def __repr__(self) -> str:
        names = ("lam", "beta", "calibration", "lam_scale", "loss") if self.is_short else ("beta", "loss", "terms")
        return f"Objective({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def on_held_out(self) -> Objective:
        """The same with the calibration term of the short form taken on held-out data; other terms say it themselves."""
        if not self.is_short:
            return self
        moved = tuple(replace(term, on="held_out") for term in self.terms if isinstance(term, Calibration))
        return Objective(beta=self.beta, loss=self.loss, terms=moved)

    def _terms(self, held_out: object) -> Sequence[Term]:
        return self.terms if held_out is None else self.on_held_out().terms

    def calibration_weight(self, step: int, batch_size: int) -> float:
        r"""Return the weight of AECE: $\lambda/|B|$, or $\lambda$ for ``lam_scale="mean"``; 0 without such a term."""
        return sum(weight_of(term, step, batch_size) for term in self.terms if term.name == "calibration")

    def kl_weight(self, step: int, dataset_size: int) -> float:
        r"""Return the weight of the KL: $\beta/|D|$."""
        return value_at(self.beta, step, "beta") / positive("dataset_size", dataset_size)

    def __call__(
        self,
        logits: Tensor,
        targets: Tensor,
        kl: Tensor,
        *,
        dataset_size: int,
        step: int = 0,
        held_out: tuple[Tensor, Tensor] | None = None,
        out_of_domain: Tensor | None = None,
        group: ProcessGroupChoice = None,
    ) -> Terms:
        r"""The loss of one batch, for a training loop of your own.

        With a ``group``, the batch is that of all its processes together, and the values are those of the whole batch in
        each of them. Average the gradients over the processes, as ``DistributedDataParallel``, Lightning and accelerate do:
        the mean is the gradient that a single process would have, also where processes have different numbers of examples.

        Args:
            logits: ``[n, K]``, or ``[R, n, K]`` for $R$ samples of the weights: each sample's AECE is taken, then averaged.
            targets: labels, ``[n]``.
            kl: what ``posterior.kl()`` returned.
            dataset_size: $|D|$.
            step: the optimiser step, for schedules.
            held_out: logits and targets of held-out data, for terms that are taken there; the calibration term of the short
                form is one where they are given.
            out_of_domain: logits of out-of-domain inputs, likewise.
            group: the processes that train together, ``"auto"`` for all; by default this one alone.
        """
        batch = LogitBatch(Processes.of(group), logits, targets, held_out, out_of_domain)
        mean = batch.mean(self.loss)
        total = mean + self.kl_weight(step, dataset_size) * kl
        values = {self.loss.name: mean}
        for term, weight, value in batch.terms(self._terms(held_out), step):
            values[term.name] = mean.new_zeros(()) if value is None else value
            total = total if value is None else total + weight * value
        return Terms(total, {**values, "kl": kl})

    def term(
        self,
        logits: Tensor,
        targets: Tensor,
        *,
        step: int = 0,
        held_out: tuple[Tensor, Tensor] | None = None,
        out_of_domain: Tensor | None = None,
        group: ProcessGroupChoice = None,
    ) -> Tensor:
        r"""The terms alone, $\frac{\lambda}{|B|} \mathrm{AECE}$ in the short form, to be added to a mean loss of your own.

        Arguments as in calling the objective. With a ``group`` the terms are those of the batch of all its processes;
        average the gradients over them.

        Examples:
            >>> logits, targets = torch.randn(8, 3, requires_grad=True), torch.arange(8) % 3
            >>> loss = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.1)
            >>> loss = loss + Objective(lam=10.0).term(logits, targets)
            >>> loss.backward()
        """
        batch = LogitBatch(Processes.of(group), logits, targets, held_out, out_of_domain)
        values = [weight * value for _, weight, value in batch.terms(self._terms(held_out), step) if value is not None]
        return sum(values[1:], start=values[0]) if values else logits.new_zeros(())


def checked_objective(objective: Any) -> Objective:
    """``objective`` itself, or `InvalidArgumentError` unless it is exactly an `Objective`.

    Training takes an objective apart and never calls it, so what a subclass overrides would be ignored.
    """
    if type(objective) is Objective:
        return objective
    hint = " For a loss or terms of your own, pass `loss=` or `terms=` to calibayes.Objective."
    if isinstance(objective, Objective):
        hint = f" What a subclass overrides would be ignored.{hint}"
    raise InvalidArgumentError(f"Expected `objective` to be an Objective, but got {type(objective).__name__}.{hint}")
