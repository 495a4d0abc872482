"""Weights of an ONNX file as 8-bit integers, with what that does to calibration measured on labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from calibayes.checks import is_real
from calibayes.errors import ExportError, InvalidArgumentError
from calibayes.exporting.agreement import run_in_batches
from calibayes.exporting.graph_files import quiet, runner
from calibayes.metrics import accuracy, ece, nll

__all__ = ["INT8_TOLERANCE", "Int8Effect", "quantized"]

INT8_TOLERANCE = 0.01
"""By how much NLL (in nats), ECE and error rate may grow when weights become integers."""

_QUANTIZED = ["MatMul", "Gemm", "Conv", "Gather"]


@dataclass(frozen=True)
class Int8Effect:
    """What 8-bit weights do, measured on labelled rows.

    Attributes:
        rows: their number.
        before: NLL, ECE and accuracy of the file before.
        after: the same after.
        bytes_before: the size of the file before.
        bytes_after: the size after.
        tolerance: by how much each of the three may get worse.
    """

    rows: int
    before: dict[str, float]
    after: dict[str, float]
    bytes_before: int
    bytes_after: int
    tolerance: float

    @property
    def costs(self) -> dict[str, float]:
        """By how much each score gets worse."""
        worse = {name: self.after[name] - self.before[name] for name in ("nll", "ece")}
        return {**worse, "accuracy": self.before["accuracy"] - self.after["accuracy"]}

    @property
    def accepted(self) -> bool:
        """True if no score gets worse by more than the tolerance."""
        return all(cost <= self.tolerance for cost in self.costs.values())

    def __str__(self) -> str:
        titles = {"nll": "NLL", "ece": "ECE", "accuracy": "accuracy"}
        pairs = [f"{titles[name]} {self.before[name]:.4f} → {self.after[name]:.4f}" for name in titles]
        size = f"{self.bytes_before:,} → {self.bytes_after:,} bytes without metadata"
        return f"{', '.join(pairs)} on {self.rows:,} rows; {size}"


def quantized(data: bytes, tensors: Sequence[Tensor], labels: Tensor, tolerance: float) -> tuple[bytes, Int8Effect]:
    """Return an ONNX file with 8-bit weights (onnxruntime's dynamic quantization), and what it does to calibration.

    Args:
        data: the file.
        tensors: its inputs for labelled rows.
        labels: their classes.
        tolerance: by how much NLL, ECE and error rate may grow.

    Raises:
        ExportError: one of them grows by more.
    """
    if not is_real(tolerance) or tolerance < 0:
        raise InvalidArgumentError(f"Expected a tolerance of at least 0 for 8-bit weights, but got {tolerance!r}.")
    smaller = _dynamic(data)
    if not _has_int8(smaller):
        raise ExportError(
            "8-bit weights are for matrices and convolutions, but this file has none that are constants: its weights are those "
            "of trees, of a sum over words, or of another kind. Leave 8-bit weights (--int8) out."
        )
    before, after = (_scores(each, tensors, labels) for each in (data, smaller))
    effect = Int8Effect(len(labels), before, after, len(data), len(smaller), tolerance)
    if len(smaller) >= len(data):
        raise ExportError(
            f"8-bit weights would not make this file smaller ({effect.bytes_before:,} → {effect.bytes_after:,} bytes). "
            "Leave 8-bit weights (--int8) out."
        )
    if not effect.accepted:
        raise ExportError(
            f"8-bit weights cost more than the {tolerance:g} that is allowed: {effect}. Nothing was written. Leave 8-bit "
            "weights (--int8) out, or allow more."
        )
    return smaller, effect


def _dynamic(data: bytes) -> bytes:
    import onnx
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory() as folder, quiet():
        folded, out = Path(folder) / "folded.onnx", Path(folder) / "int8.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(folded)  # with weights that are constants, not transposed ones
        onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        model = onnx.load(folded)
        del model.graph.value_info[:]  # shapes from before, which some weights no longer have
        quantize_dynamic(model, out, op_types_to_quantize=_QUANTIZED, weight_type=QuantType.QInt8)
        return out.read_bytes()


def _has_int8(data: bytes) -> bool:
    import onnx

    graph = onnx.load_model_from_string(data).graph
    return any(each.data_type == onnx.TensorProto.INT8 and each.dims for each in graph.initializer)


def _scores(data: bytes, tensors: Sequence[Tensor], labels: Tensor) -> dict[str, float]:
    probs = run_in_batches(runner(data, ".onnx"), tensors)["probs"].double()
    return {"nll": float(nll(probs, labels)), "ece": float(ece(probs, labels)), "accuracy": float(accuracy(probs, labels))}
