"""Graphs as bytes of a file, ONNX or PyTorch's own (.pt2), and running what those bytes say."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor
from torch._C import _functorch as functorch

from calibayes.errors import ExportError, InvalidArgumentError
from calibayes.exporting.network_stack import Repetition
from calibayes.exporting.predictive_graph import PredictiveGraph
from calibayes.extras import require_package

__all__ = ["Outputs", "Run", "file_kind", "graph_bytes", "quiet", "runner", "with_properties"]

Outputs = dict[str, Tensor]
Run = Callable[[Sequence[Tensor]], Outputs]

_ONNX, _PT2 = ".onnx", ".pt2"
_MOST_BYTES = 2**31 - 1  # of a protocol buffer
_MOST_TEXT = 600


def file_kind(path: Path) -> str:
    """Return the suffix that decides what is written, after a check that its packages are installed."""
    suffix = path.suffix.lower()
    if suffix not in (_ONNX, _PT2):
        raise InvalidArgumentError(
            f"Expected the name of a file to export to that ends in {_ONNX} or {_PT2} (torch.export), but got {str(path)!r}."
        )
    if suffix == _ONNX:
        for name in ("onnx", "onnxscript", "onnxruntime"):
            require_package(name, "Exporting to ONNX", "onnx")
    return suffix


def graph_bytes(graph: PredictiveGraph, tensors: Sequence[Tensor], names: Sequence[str], kind: str) -> bytes:
    """Return the graph as the bytes of a file for any number of rows.

    Networks are run side by side, or in a loop where that is not possible, or each by its own operations.

    Args:
        graph: in evaluation mode.
        tensors: inputs of a few examples.
        names: of the inputs.
        kind: the suffix of the file.
    """
    examples = [tensor if len(tensor) > 1 else torch.cat([tensor, tensor]) for tensor in tensors]  # one row would be a constant
    problem: Exception | None = None
    level = functorch.maybe_current_level()
    for repetition in get_args(Repetition):
        graph.repeat(repetition)
        try:
            with quiet(), torch.no_grad():
                program = _traced(graph, examples)
                data = _onnx_bytes(program, names, graph.outputs) if kind == _ONNX else _pt2_bytes(program)
                runner(data, kind)([tensor[:1] for tensor in examples])
            return data
        except (ExportError, MemoryError):
            raise
        except Exception as error:  # of whatever class: those of exporters are not documented
            problem = error
            while functorch.maybe_current_level() != level:  # an error leaves PyTorch in the middle of a vmap
                functorch._vmap_decrement_nesting()
    raise ExportError(_explained(problem)) from problem


def _traced(graph: PredictiveGraph, examples: Sequence[Tensor]) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(
        graph,
        tuple(examples),
        dynamic_shapes=(tuple({0: batch} for _ in examples),),
        strict=False,
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    # Checks of types that were put before conversions cannot be run again where networks are side by side.
    operations = program.graph_module.graph
    for node in list(operations.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            operations.erase_node(node)
    program.graph_module.recompile()
    decomposed: torch.export.ExportedProgram = program.run_decompositions({})
    _forget_source(decomposed)
    return decomposed


def _forget_source(program: torch.export.ExportedProgram) -> None:
    """Remove from a program where each operation comes from: paths on this machine, which nobody else needs."""
    for part in program.graph_module.modules():
        if isinstance(part, torch.fx.GraphModule):
            for node in part.graph.nodes:
                for name in ("stack_trace", "source_fn_stack", "from_node"):
                    node.meta.pop(name, None)


def _onnx_bytes(program: torch.export.ExportedProgram, names: Sequence[str], outputs: Sequence[str]) -> bytes:
    exported = torch.onnx.export(program, dynamo=True, verbose=False, input_names=names, output_names=outputs)
    assert exported is not None
    try:
        model = exported.model_proto
        _forget_notes(model.graph)
        _name_rows(model.graph)
        data: bytes = model.SerializeToString()
    except ValueError as error:
        raise ExportError(
            f"The graph has more than {_MOST_BYTES:,} bytes, the most that one ONNX file can hold. Use fewer `samples` or "
            f"members, or a file that ends in {_PT2}."
        ) from error
    return data


def _name_rows(graph: Any, own: str | None = None) -> None:
    """Call the number of rows ``n``, as the card does, where the exporter has a name of its own, like ``s95``."""
    if own is None:
        own = graph.output[0].type.tensor_type.shape.dim[0].dim_param
    for each in (*graph.input, *graph.output, *graph.value_info):
        for size in each.type.tensor_type.shape.dim:
            if size.dim_param == own:
                size.dim_param = "n"
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):  # the body of a loop
                _name_rows(attribute.g, own)


def _forget_notes(graph: Any) -> None:
    """Remove the exporter's notes on every operation and value, which often take more room than the weights."""
    for each in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        del each.metadata_props[:]
        each.doc_string = ""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):  # the body of a loop
                _forget_notes(attribute.g)


def _pt2_bytes(program: torch.export.ExportedProgram, extra: Mapping[str, str] | None = None) -> bytes:
    stream = io.BytesIO()
    torch.export.save(program, stream, extra_files=dict(extra or {}))
    return stream.getvalue()


def with_properties(data: bytes, kind: str, properties: Mapping[str, str]) -> bytes:
    """Return the bytes of a file that also has these texts: ONNX's ``metadata_props``, or the extra files of a ``.pt2``."""
    if kind == _PT2:
        with quiet():
            return _pt2_bytes(torch.export.load(io.BytesIO(data)), properties)
    import onnx

    model = onnx.load_model_from_string(data)
    onnx.helper.set_model_props(model, dict(properties))
    model.producer_name = "calibayes"
    return bytes(model.SerializeToString())


def runner(data: bytes, kind: str) -> Run:
    """Return a function that runs a file's graph, in onnxruntime or PyTorch, with inputs in the order of their names."""
    if kind == _PT2:
        with quiet():
            module = torch.export.load(io.BytesIO(data)).module()

        def run_module(tensors: Sequence[Tensor]) -> Outputs:
            with torch.no_grad():
                return dict(module(*tensors))

        return run_module
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names, outputs = ([each.name for each in part] for part in (session.get_inputs(), session.get_outputs()))

    def run_session(tensors: Sequence[Tensor]) -> Outputs:
        # An input that nothing depends on is not there.
        given = dict(zip(names, (tensor.numpy() for tensor in tensors), strict=True))
        return {
            name: torch.from_numpy(np.asarray(value)) for name, value in zip(outputs, session.run(None, given), strict=True)
        }

    return run_session


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what exporters print about themselves."""
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with redirect_stderr(io.StringIO()):  # the graph of what cannot be traced
                yield
    finally:
        logging.disable(disabled)


def _explained(error: Any) -> str:
    while error.__cause__ is not None:  # exporters wrap the one that says something
        error = error.__cause__
    text = " ".join(str(error).split())
    hint = "Look for operations in the network that neither torch.export nor ONNX have."
    if "specialized" in text or "Constraints violated" in text:
        hint = "The network fixes the number of rows: use `x.shape[0]` and `-1` in place of `len(x)` and numbers."
    elif "data-dependent" in text.lower() or "DataDependent" in type(error).__name__:
        hint = "The network chooses by the values of its inputs what it does: use `torch.where` in place of `if`."
    shown = text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} …"
    return f"This network cannot be exported. {hint} PyTorch says: {shown or type(error).__name__}"
