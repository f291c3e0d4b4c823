"""The models that optimum makes of one of Hugging Face's: each run in PyTorch and exported."""
from __future__ import annotations

import contextlib
import inspect
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ._common import ExportError, first_reason, need, value_shapes
from ._result import Arrays, Export
from ._scopes import leaving, name_calls, without_nodes
from ._torch_export import onnx_steps, quiet
from ._torch_run import Arguments, as_it_was, is_tensor, run, to_numpy
from ._trees import flatten


def parts_of(model: Any, task: str) -> dict[str, tuple[Any, Any]]:
    """{name: (module, optimum's configuration of its export)}: an encoder and a decoder are two."""
    utils = need("optimum.exporters.onnx.utils", "huggingface")
    try:
        _, parts = utils._get_submodels_and_onnx_configs(
            model=model, task=task, monolith=False, custom_onnx_configs={}, custom_architecture=False, _variant="default",
            library_name="transformers")
    except (ValueError, KeyError, NotImplementedError) as error:
        raise ExportError(f"{type(model).__name__} cannot be exported for '{task}' (optimum): {first_reason(error)}") from error
    return dict(parts)


@contextlib.contextmanager
def untouched(model: Any) -> Iterator[None]:
    """optimum sets options in the configurations that a model and its layers share, and leaves a forward() of theirs in layers."""
    configs = {id(layer.config): layer.config for layer in model.modules() if hasattr(getattr(layer, "config", None), "__dict__")}
    kept = [(config, dict(config.__dict__)) for config in configs.values()]
    without = [layer for layer in model.modules() if "forward" not in layer.__dict__]
    try:
        yield
    finally:
        for config, values in kept:
            config.__dict__.clear()
            config.__dict__.update(values)
        for layer in without:
            layer.__dict__.pop("forward", None)


def export_part(name: str, module: Any, config: Any, given: Mapping[str, Any] | None, opset: int | None, inner: bool) -> Export:
    """given: the part's arguments by name; None: optimum's own, drawn."""
    torch = need("torch", "torch")
    convert = need("optimum.exporters.onnx.convert", "huggingface")
    onnx = need("onnx", "huggingface")
    values = config.rename_ambiguous_inputs(config.generate_dummy_inputs(framework="pt")) if given is None else given
    patched = config.patch_model_for_export(module, model_kwargs={})
    with as_it_was(module):
        # What comes out is named as the export names it, but computed by the model's own code.
        with _forward(module, patched.patched_forward), quiet():
            arguments = Arguments(module, dict(values))
            result, calls = run(module, arguments, inner)
        with tempfile.TemporaryDirectory(prefix="assay-") as folder, quiet():
            path = pathlib.Path(folder, "model.onnx")
            try:
                # Not export(), which runs the model in ONNX Runtime as well, to fix the outputs' shapes.
                inputs, outputs = convert.export_pytorch(module, config, opset or config.DEFAULT_ONNX_OPSET, path)
            except (KeyboardInterrupt, MemoryError):
                raise
            except Exception as error:
                raise ExportError(f"{type(module).__name__} ({name}) cannot be exported (optimum): {first_reason(error)}") from error
            proto = onnx.load(str(path))
    found = [(key, to_numpy(tensor)) for key, tensor in flatten(result, is_tensor)]
    if len(found) != len(outputs):
        raise ExportError(f"{name} gives {len(found)} tensors ({', '.join(key for key, _ in found)}), and its export has "
                          f"{len(outputs)} outputs: {', '.join(outputs)}")
    known = {value.name for value in proto.graph.input}
    golden = {output: array for output, (_, array) in zip(outputs, found)}
    export = Export(f"transformers {need('transformers', 'huggingface').__version__} on PyTorch {torch.__version__}",
                    f"optimum ({name})", proto,
                    [{key: array for key, array in _fed(module, arguments, inputs).items() if key in known}], [golden], [{}])
    if inner:
        export.inner = [_named(module, proto, calls, golden)]
    return export


@contextlib.contextmanager
def _forward(module: Any, forward: Any) -> Iterator[None]:
    kept = module.__dict__.get("forward")
    module.forward = forward
    try:
        yield
    finally:
        del module.forward
        if kept is not None:
            module.forward = kept


def _fed(module: Any, arguments: Arguments, names: list[str]) -> Arrays:
    """Arguments in the order of forward()'s parameters, as the exporter takes them, flattened."""
    order = [key for key in inspect.signature(module.forward).parameters if key in arguments.kwargs]
    leaves = flatten({key: arguments.kwargs[key] for key in order}, is_tensor)
    if len(leaves) != len(names):
        raise InvalidArgument(f"the inputs hold {len(leaves)} tensors ({', '.join(key for key, _ in leaves)}); the model takes "
                              f"{len(names)}: {', '.join(names)}")
    return {name: to_numpy(tensor) for name, (_, tensor) in zip(names, leaves)}


def _named(module: Any, proto: Any, calls: Any, golden: Mapping[str, np.ndarray[Any, Any]]) -> Arrays:
    steps = list(onnx_steps(module, proto.graph))
    made = {name for node in proto.graph.node for name in node.output} - set(golden)
    values = leaving(steps, golden, {call.layer for call in calls})
    named = name_calls(calls, values, value_shapes(proto), without_nodes(calls, steps))
    return {name: array for name, array in named.items() if name in made}
