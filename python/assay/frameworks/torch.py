"""PyTorch modules: exported, run, and checked against what PyTorch itself gives."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from ._common import ExportError, check_export, loaded, need, value_shapes
from ._result import Arrays, Export, FrameworkCheck
from ._scopes import Call, leaving, name_calls, without_nodes
from ._torch_export import Exported, choose, export, fx_values, quiet
from ._torch_run import Arguments, as_it_was, flat_outputs, is_tensor, run, to_numpy
from ._trees import flatten

if TYPE_CHECKING:
    from .. import Model


def check_torch(module: Any, inputs: Any, *, precision: str | None = None, target: str = "emu", exporter: str | None = None,
                opset: int | None = None, dynamic_shapes: Any = None, export_options: Mapping[str, Any] | None = None,
                inner: bool = True, **options: Any) -> FrameworkCheck:
    """Exports a PyTorch module and says whether the export is faithful, and whether the engine is.

    The module runs in PyTorch, in eval mode and without gradients; hooks on its layers note what they give. That is
    golden for the check: truth (the ONNX model in float64) is held against it, then the engine against truth. The module, the
    random generators and the inputs are left as they were.

    module          torch.nn.Module, or a function of tensors
    inputs          a tensor, a tuple of arguments, or a dict of keyword arguments; a list of these is a sample each, and
                    only dimensions that dynamic_shapes names may differ between them. Tensors are moved to the module's device.
    precision       of float32 values in the engine: "fp16", "bf16", ...; None: as the module has them
    target          "emu" (the format itself), "cpu", ... as in assay.check
    exporter        "dynamo" (the default where PyTorch has it) or "torchscript"
    opset           of the ONNX model; None: the exporter's choice
    dynamic_shapes  as torch.onnx.export takes it (torchscript: a dict {input: {axis: name}}, its dynamic_axes)
    export_options  more of torch.onnx.export's
    inner           whether values within the module are compared, too
    options         those of assay.check

    Raises ExportError where the exporter cannot do it, InvalidArgument where the inputs do not fit.
    """
    return check_export(lambda: _export(module, inputs, exporter, opset, dynamic_shapes, export_options, inner),
                        precision=precision, target=target, **options)


def from_torch(module: Any, inputs: Any, *, exporter: str | None = None, opset: int | None = None, dynamic_shapes: Any = None,
               export_options: Mapping[str, Any] | None = None) -> Model:
    """A PyTorch module as an assay.Model; arguments as of check_torch."""
    return loaded(_export(module, inputs, exporter, opset, dynamic_shapes, export_options, False).proto)


def _export(module: Any, inputs: Any, exporter: str | None, opset: int | None, dynamic_shapes: Any,
            export_options: Mapping[str, Any] | None, inner: bool) -> Export:
    torch = need("torch", "torch")
    exporter = choose(exporter)
    module = _as_module(module)
    keywords = dict(export_options or {})
    if opset is not None:
        keywords["opset_version"] = opset
    if dynamic_shapes is not None:
        keywords["dynamic_shapes" if exporter == "dynamo" else "dynamic_axes"] = dynamic_shapes
    samples = list(inputs) if isinstance(inputs, list) else [inputs]
    if not samples:
        raise InvalidArgument("inputs is an empty list; pass at least one sample")
    arguments = [Arguments(module, sample) for sample in samples]
    with as_it_was(module) as restore:
        runs = []
        with quiet():
            for sample in arguments:
                runs.append(run(module, sample, inner))
                restore()
        results = [flatten(result, is_tensor) for result, _ in runs]
        if not results[0]:
            raise InvalidArgument(f"{type(module).__name__} gives no tensors, but {type(runs[0][0]).__name__}")
        with flat_outputs(module, runs[0][0]):
            exported = export(module, arguments[0], exporter, keywords)
    export_of = Export(f"PyTorch {torch.__version__}", f"torch.onnx ({exporter})", exported.proto,
                       [_inputs(exported, sample) for sample in arguments], _outputs(exported, results), [{} for _ in runs])
    if inner:
        export_of.inner = [_inner(exported, sample, calls, outputs) for sample, (_, calls), outputs
                           in zip(arguments, runs, export_of.outputs)]
    return export_of


def _as_module(module: Any) -> Any:
    torch = need("torch", "torch")
    if isinstance(module, torch.nn.Module):
        return module
    if not callable(module):
        raise InvalidArgument(f"module is a {type(module).__name__}; pass a torch.nn.Module or a function of tensors")

    class Function(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.forward = module

    return Function()


def _inputs(exported: Exported, sample: Arguments) -> Arrays:
    return {name: to_numpy(leaf) if is_tensor(leaf) else np.asarray(leaf) for name, leaf in exported.feed(sample).items()}


def _outputs(exported: Exported, results: list[list[tuple[str, Any]]]) -> list[Arrays]:
    names = [value.name for value in exported.proto.graph.output]
    for result in results:
        if len(result) != len(names):
            raise ExportError(f"the module gives {len(result)} tensors, and the exported model has {len(names)} outputs: {', '.join(names)}")
    return [{name: to_numpy(tensor) for name, (_, tensor) in zip(names, result)} for result in results]


def _inner(exported: Exported, sample: Arguments, calls: Sequence[Call], outputs: Arrays) -> Arrays:
    """What PyTorch gave for values within the model: of the exporter's graph, if that does what the module does, and of layers."""
    graph = exported.proto.graph
    ends = [value.name for value in graph.output]
    made = {name for node in graph.node for name in node.output} - set(ends)
    values = leaving(exported.steps, ends, {call.layer for call in calls})
    named = name_calls(calls, values, value_shapes(exported.proto), without_nodes(calls, exported.steps))
    if exported.program is not None:
        named.update(_captured(exported.program, sample, list(outputs.values())))
    return {name: array for name, array in named.items() if name in made}


def _captured(program: Any, sample: Arguments, outputs: list[np.ndarray[Any, Any]]) -> Arrays:
    """Values of the graph that torch.export made; none if it gives something else than the module, or does not run by itself."""
    try:
        with quiet():
            values = fx_values(program, sample)
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return {}
    given = [to_numpy(tensor) for _, tensor in flatten(values.pop(""), is_tensor)]
    same = len(given) == len(outputs) and all(a.shape == b.shape and _close(a, b) for a, b in zip(given, outputs))
    return values if same else {}


def _close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two results of one computation differ by no more than the order of sums explains."""
    if a.dtype.kind in "biu":
        return bool(np.array_equal(a, b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.max(np.abs(b), initial=0, where=np.isfinite(b)))
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-4 * scale, equal_nan=True))
