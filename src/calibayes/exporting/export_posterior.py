"""Write the whole predictive of a posterior to one file that runs without calibayes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from calibayes.acting.cost_thresholds import CostThreshold
from calibayes.acting.guarantee_request import CostTable, GuaranteeRequest
from calibayes.acting.guarantees import Guarantees
from calibayes.acting.prediction_sets import PredictionSets
from calibayes.acting.thresholds import ClassThresholds, Threshold
from calibayes.checks import integer, is_real, number_of_samples
from calibayes.errors import ExportError, InvalidArgumentError
from calibayes.exporting.int8 import INT8_TOLERANCE
from calibayes.exporting.model_card import ModelCard
from calibayes.exporting.predictive_graph import InputNames
from calibayes.exporting.row_rules import RowRules
from calibayes.exporting.write_export import TOLERANCE, Exported, ExportPlan, LabelledInputs, write_export
from calibayes.files.set_aside_rows import ROUNDING
from calibayes.posterior.abstract_posterior import Posterior, Samples
from calibayes.posthoc import Scaling
from calibayes.predictive import predict
from calibayes.tables.formats import is_utf8
from calibayes.wording import listed, shown

__all__ = ["export"]


def export(
    posterior: Posterior,
    path: str | Path,
    example_inputs: Any,
    *,
    samples: Samples = 20,
    posthoc: Scaling | None = None,
    threshold: Threshold | ClassThresholds | CostThreshold | float | None = None,
    sets: PredictionSets | None = None,
    costs: CostTable | None = None,
    class_names: Sequence[str] | None = None,
    seed: int = 0,
    validation: tuple[Any, Any] | None = None,
    int8: bool = False,
    int8_tolerance: float = INT8_TOLERANCE,
    tolerance: float = TOLERANCE,
) -> Exported:
    """Write the whole predictive to one file that needs neither calibayes nor, as ONNX, PyTorch.

    The file takes inputs of any number of rows, and gives for each: ``probs`` after the scaling, ``decision`` (a number),
    ``abstain``, ``set`` if there are prediction sets, ``confidence``, and the ``epistemic`` and ``aleatoric`` uncertainty in
    nats, before the scaling. Samples and members of one architecture are stacked, and what does not depend on the sample is
    stored and computed once. It is checked against calibayes before it is written, and a model card lies beside it.

    Thresholds and sets are moved by $10^{-6}$ to the side on which their guarantee holds: another runtime rounds in another
    way, and rows that tie with a threshold (in adaptive sets often all of them, at a total of 1) would change sides.

    Args:
        posterior: a trained posterior of any kind.
        path: the file to write: ``.onnx``, or ``.pt2`` for ``torch.export``.
        example_inputs: inputs of real rows, as for `calibayes.predict`: a tensor, a tuple or a dict of tensors. The file is
            checked on them.
        samples: of the weights, as for `calibayes.predict`.
        posthoc: a fitted scaling of `calibayes.posthoc`.
        threshold: certified by `calibayes.acting`, or a confidence by hand, below which ``abstain`` is true.
        sets: calibrated prediction sets.
        costs: of actions, to decide by the least expected cost.
        class_names: what the classes are called; their numbers by default.
        seed: of the samples.
        validation: ``(x, y)`` that were not trained on: their scores are in the card, and 8-bit weights are judged by them.
        int8: store weights as 8-bit integers; only ONNX, and only with ``validation``.
        int8_tolerance: by how much NLL, ECE and error rate may grow for that.
        tolerance: the largest difference to calibayes that is accepted.

    Raises:
        ExportError: the network has something that cannot be exported, or the file does not agree with calibayes.

    Examples:
        >>> from tempfile import mkdtemp
        >>> posterior = calibayes.MeanField(torch.nn.Linear(4, 3), init_std=0.5)
        >>> exported = calibayes.export(posterior, Path(mkdtemp()) / "model.pt2", torch.randn(16, 4), samples=8)
        >>> exported.outputs, exported.largest_difference < 1e-5
        (('probs', 'decision', 'abstain', 'confidence', 'epistemic', 'aleatoric'), True)
        >>> torch.export.load(exported.path).module()(torch.randn(2, 4))["probs"].shape
        torch.Size([2, 3])
    """
    if not isinstance(posterior, Posterior):
        raise InvalidArgumentError(
            f"Expected a posterior to export, but got {type(posterior).__name__}. Wrap a network: `Point(net)`."
        )
    if samples != "closed-form":
        number_of_samples("samples", samples)
    names = InputNames(example_inputs)
    below = float(threshold) if is_real(threshold) else None  # type: ignore[arg-type]
    certified: Any = None if below is not None else threshold
    given = RowRules(certified, below, sets, costs)
    if posthoc is not None and not isinstance(posthoc, Scaling):
        raise InvalidArgumentError(
            f"Expected `posthoc` to be a fitted scaling of calibayes.posthoc, but got {type(posthoc).__name__}."
        )
    first = names.packed([each[:1] for each in names.flat(example_inputs)])
    probs = _probs_of_one(posterior, first, example_inputs)
    count = probs.shape[1]
    given.check_classes(count)
    if posthoc is not None:
        posthoc.transform(probs)  # raises unless it is fitted, for as many classes
    guarantees = Guarantees(GuaranteeRequest(costs=costs), 0, sets, None, certified).widened(ROUNDING)
    rules = RowRules(guarantees.threshold, below, guarantees.sets, costs)
    classes = tuple(map(str, range(count) if class_names is None else class_names))
    if len(classes) != count:
        raise InvalidArgumentError(f"Expected {count} `class_names`, one for each output, but got {len(classes)}.")
    _check_names(classes)
    plan = ExportPlan(
        posterior=posterior,
        inputs=example_inputs,
        tensors=dict(zip(names.names, names.flat(example_inputs), strict=True)),
        names=names,
        classes=classes,
        samples=samples,
        seed=integer("seed", seed),
        scaling=posthoc,
        rules=rules,
        labelled=None if validation is None else _labelled(names, *validation),
    )
    card = ModelCard(title=f"A classifier of {count} classes", abstains=_abstains(rules, classes))
    return write_export(plan, Path(path), card, int8=int8, int8_tolerance=int8_tolerance, tolerance=tolerance)


def _probs_of_one(posterior: Posterior, first: Any, example_inputs: Any) -> Tensor:
    """Return the probabilities of the first row; raise if the network takes no other number of rows than all of them."""
    with torch.no_grad():
        try:
            return predict(posterior, first, samples="mean").probs
        except RuntimeError as error:
            try:
                predict(posterior, example_inputs, samples="mean")
            except Exception:
                raise error from None  # it is not about the number of rows
            raise ExportError(
                "This network cannot be exported: it takes the rows of `example_inputs` together, but not the first of them "
                "alone. Use `x.shape[0]` and `-1` in it where it fixes their number. "
                f"PyTorch says: {' '.join(str(error).split())}"
            ) from error


def _check_names(classes: Sequence[str]) -> None:
    for name in classes:
        if classes.count(name) > 1:
            raise InvalidArgumentError(f"Expected all `class_names` to differ, but {shown(name)} is there more than once.")
        if not is_utf8(name):
            raise InvalidArgumentError(f"Expected `class_names` in UTF-8, but {shown(name)} holds half a character.")


def _labelled(names: InputNames, inputs: Any, labels: Any) -> LabelledInputs:
    tensors = names.flat(inputs)
    targets = torch.as_tensor(labels)
    if any(len(tensor) != len(targets) for tensor in tensors):
        raise InvalidArgumentError(f"Expected a label for each example of `validation`, but got {len(targets)} labels.")
    return LabelledInputs(tensors, targets)


def _abstains(rules: RowRules, classes: Sequence[str]) -> list[str]:
    lines = []
    if rules.costs is not None:
        lines.append(f"It decides by the least expected cost among {listed(rules.actions(classes))}.")
    if rules.below is not None:
        lines.append(f"It abstains below a confidence of {rules.below:g}, which was set by hand: nothing is guaranteed.")
    lines += [each.statement for each in (rules.threshold, rules.sets) if each is not None]
    return lines if rules.abstains else [*lines, "It never abstains: no threshold was exported."]
