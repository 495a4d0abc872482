"""Write a file, its card and what lies beside it, after all checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

import calibayes
from calibayes.checks import positive
from calibayes.errors import InvalidArgumentError
from calibayes.exporting.agreement import check_agreement, run_in_batches
from calibayes.exporting.export_paths import READER, check_paths, companions, write_files
from calibayes.exporting.graph_files import file_kind, graph_bytes, runner, with_properties
from calibayes.exporting.int8 import INT8_TOLERANCE, Int8Effect, quantized
from calibayes.exporting.model_card import ModelCard, reliability_lines, score_lines, scores_of_rows
from calibayes.exporting.predictive_graph import InputNames, PredictiveGraph, network_stacks
from calibayes.exporting.row_rules import RowRules, TracedRules
from calibayes.exporting.traced_scaling import traced_scaling
from calibayes.posterior.abstract_posterior import Posterior, Samples
from calibayes.posthoc import Scaling
from calibayes.wording import counted, listed

__all__ = ["TOLERANCE", "ExportPlan", "Exported", "LabelledInputs", "write_export"]

TOLERANCE = 1e-5
"""The largest difference between an exported file and calibayes that is accepted."""


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        path: the file.
        card: the model card, in Markdown, beside it.
        others: further files beside it, such as a reader of rows.
        outputs: the names of what the file says about each row.
        rows: the number of rows that it was checked on.
        largest_difference: between its numbers and those of calibayes for these rows.
        int8: what 8-bit weights do, if they were asked for.
    """

    path: Path
    card: Path
    others: tuple[Path, ...]
    outputs: tuple[str, ...]
    rows: int
    largest_difference: float
    int8: Int8Effect | None = None


@dataclass(frozen=True, eq=False)
class LabelledInputs:
    """Inputs of a file, one tensor for each of its names, and the true classes of their rows."""

    tensors: Sequence[Tensor]
    labels: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class ExportPlan:
    """Everything that goes into a file.

    Attributes:
        posterior: what predicts.
        inputs: of the posterior, for the rows to check with.
        tensors: of the file, for the same rows, by name.
        names: of the inputs, and how the network takes them.
        classes: their names.
        samples: of the weights.
        seed: of the samples.
        scaling: of the averaged probabilities.
        rules: for decisions and sets.
        before: the step from the file's inputs to the posterior's.
        labelled: rows to measure on.
    """

    posterior: Posterior
    inputs: Any
    tensors: dict[str, Tensor]
    names: InputNames
    classes: tuple[str, ...]
    samples: Samples
    seed: int
    scaling: Scaling | None
    rules: RowRules
    before: nn.Module | None = None
    labelled: LabelledInputs | None = None


def write_export(
    plan: ExportPlan,
    path: Path,
    card: ModelCard,
    *,
    int8: bool = False,
    int8_tolerance: float = INT8_TOLERANCE,
    tolerance: float = TOLERANCE,
    rows: Mapping[str, Any] | None = None,
) -> Exported:
    """Write a file and its card, after all checks.

    Args:
        plan: everything that goes into the file.
        path: of the file.
        card: what is known of the model; what is known of the file is added here.
        int8: store weights as 8-bit integers.
        int8_tolerance: by how much scores may get worse for that.
        tolerance: the largest difference to calibayes that is accepted.
        rows: a description of how rows become inputs, for the reader beside the file.
    """
    kind = file_kind(path)
    check_paths(path, described=rows is not None)
    positive("tolerance", tolerance)
    if int8 and (kind != ".onnx" or plan.labelled is None):
        what = "a file that ends in .onnx" if kind != ".onnx" else "labelled rows to measure calibration on"
        raise InvalidArgumentError(f"8-bit weights need {what}, but got {str(path) if kind != '.onnx' else 'none'!r}.")
    tensors = list(plan.tensors.values())
    with plan.posterior.evaluating():
        graph = _graph(plan)
        data = graph_bytes(graph, [tensor[:8] for tensor in tensors], list(plan.tensors), kind)
    checked = {"samples": plan.samples, "seed": plan.seed, "scaling": plan.scaling, "rules": plan.rules}
    gap = check_agreement(runner(data, kind), tensors, plan.inputs, plan.posterior, tolerance=tolerance, **checked)  # type: ignore[arg-type]
    effect = None
    if int8 and plan.labelled is not None:
        data, effect = quantized(data, plan.labelled.tensors, plan.labelled.labels, int8_tolerance)
    outputs = runner(data, kind)([tensor[:1] for tensor in tensors])
    card = _completed(card, plan, kind, data, gap, effect, list(outputs))
    description = {
        "classes": plan.classes,
        "actions": plan.rules.actions(plan.classes),
        "inputs": {name: [None, *tensor.shape[1:]] for name, tensor in plan.tensors.items()},
        "outputs": list(outputs),
        "samples": plan.samples,
        "seed": plan.seed,
        "version": calibayes.__version__,
        **({} if rows is None else {"rows": rows}),
    }
    properties = {"calibayes": json.dumps(description, ensure_ascii=False), "card": card.text()}
    data = with_properties(data, kind, properties)
    card_path, *others = companions(path, described=rows is not None)
    contents = {card_path: properties["card"].encode()}
    if others:
        described = json.dumps(description, ensure_ascii=False, indent=1).encode()
        contents |= dict(zip(others, (described, READER.read_bytes()), strict=True))
    write_files({**contents, path: data})  # the file itself last: what is beside it is there if it is
    return Exported(path, card_path, tuple(others), tuple(outputs), len(tensors[0]), gap, effect)


def _graph(plan: ExportPlan) -> PredictiveGraph:
    few = plan.names.packed([tensor[:2] for tensor in plan.names.flat(plan.inputs)])
    stacks = network_stacks(plan.posterior, plan.samples, plan.seed, few)
    scaling = None if plan.scaling is None else traced_scaling(plan.scaling)
    return PredictiveGraph(stacks, plan.names, TracedRules(plan.rules, len(plan.classes)), scaling, plan.before).eval()


def _completed(
    card: ModelCard, plan: ExportPlan, kind: str, data: bytes, gap: float, effect: Int8Effect | None, outputs: list[str]
) -> ModelCard:
    """Add what is known of the file, and the scores of labelled rows, which are those of the file itself."""
    if plan.labelled is not None:
        outputs_of_rows = run_in_batches(runner(data, kind), plan.labelled.tensors)
        probs, labels = outputs_of_rows["probs"].double(), plan.labelled.labels
        found = score_lines(scores_of_rows(probs, labels, plan.classes), "the rows given at export, by this file")
        card = replace(card, scores=[*card.scores, *found])
        card = replace(card, reliability=[*card.reliability, *reliability_lines(probs, labels, "the rows given at export")])
        if abstained := int(outputs_of_rows["abstain"].sum()):
            share = f"{abstained:,} of {len(labels):,} ({100 * abstained / len(labels):.1f} %)"
            card = replace(card, abstains=[*card.abstains, f"Of the rows given at export, it abstains on {share}."])
    members = plan.posterior.members
    kinds = listed(dict.fromkeys(type(member).__name__ for member in members))
    predicts = f"A prediction averages {counted(len(members), 'member')} ({kinds}), samples: {plan.samples}, seed {plan.seed}."
    scaling = "No scaling is applied." if plan.scaling is None else f"Its probabilities are scaled by {plan.scaling!r}."
    inputs = [
        f"`{name}` {['n', *tensor.shape[1:]]} ({str(tensor.dtype).removeprefix('torch.')})"
        for name, tensor in plan.tensors.items()
    ]
    rows = len(next(iter(plan.tensors.values())))
    where = "onnxruntime" if kind == ".onnx" else "torch.export"
    file = [
        f"Classes: {', '.join(map(repr, plan.classes))}.",
        f"Inputs: {', '.join(inputs)}. Outputs: {', '.join(f'`{name}`' for name in outputs)}; uncertainties are in nats, "
        "before a scaling.",
        f"Checked in {where} on {counted(rows, 'row')} before it was written: the largest difference to calibayes was "
        f"{gap:.1e}.",
    ]
    if effect is not None:
        file.append(f"After that check, weights became 8-bit integers: {effect}.")
        if plan.rules.threshold is not None or plan.rules.sets is not None:
            file.append("Thresholds and sets were calibrated before that: what they guarantee holds for the original weights.")
    return replace(card, method=[*card.method, f"{predicts} {scaling}"], file=[*card.file, *file])
