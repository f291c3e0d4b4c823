"""ONNX's backend interface: prepare(), run_model() and run_node() of onnx.backend.base, on engines.

    import assay.backend as backend
    y, = backend.prepare(onnx.load("model.onnx"), "CPU").run([x])

Needs the package onnx.
"""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .engine import Engine, build
from .errors import AssayError
from .model import Model, as_model, load

try:
    import onnx  # type: ignore[import-not-found, unused-ignore]
    from onnx.backend.base import (  # type: ignore[import-not-found, unused-ignore]
        Backend, BackendRep, namedtupledict)
except ImportError:
    raise ImportError("assay.backend needs the package onnx: pip install assay-engine[onnx]") from None


def _target(device: str) -> str:
    """The target that a device of ONNX's means: "CPU", "CUDA", "CUDA:1"."""
    kind, _, number = device.partition(":")
    name = kind.lower() if kind in ("CPU", "CUDA") else ""
    if not name or (number and not number.isdigit()):
        raise ValueError("device %r is not one of CPU, CUDA, CUDA:N" % device)
    return "%s:%s" % (name, number) if name == "cuda" and number else name


class AssayRep(BackendRep):  # type: ignore[misc, unused-ignore]
    """An engine that is ready to run."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """The outputs, by place and by name. inputs: arrays in the model's order, the only one, or {name: array}."""
        out = self.engine.run(list(inputs) if isinstance(inputs, tuple) else inputs)
        return namedtupledict("Outputs", list(out.names))(*out)


class AssayBackend(Backend):  # type: ignore[misc, unused-ignore]
    """Builds an engine for each model. Options of assay.build() may be given to each of these: precision="fp16"."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be read, with all of its operators."""
        try:
            load(model)
        except AssayError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> AssayRep:
        """An engine of a model (onnx.ModelProto, bytes, path, assay.Model) for a device."""
        target = _target(device)
        return AssayRep(build(model if isinstance(model, Model) else as_model(model), target=target, **kwargs))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """prepare() and run()."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> Any:
        """Runs one node on arrays in the order of its inputs (names that are "" have none).

        outputs_info  (numpy type, shape) of each output, where they cannot be inferred
        opset_version of the node's domain; None: the newest that the package onnx knows
        """
        version = kwargs.pop("opset_version", None) or _newest(node.domain)
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        if len(names) != len(arrays):
            raise ValueError("node '%s' (%s) has %d inputs, %d arrays are given"
                             % (node.name, node.op_type, len(names), len(arrays)))
        described = [_info(name, array.dtype, array.shape) for name, array in zip(names, arrays)]
        names_out = [name for name in node.output if name]
        outputs = [_info(name, np.dtype(dtype), shape) for name, (dtype, shape) in zip(names_out, outputs_info)] \
            if outputs_info else [onnx.ValueInfoProto(name=name) for name in names_out]
        graph = onnx.helper.make_graph([node], "node", described, outputs)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)],
                                       ir_version=min(10, onnx.IR_VERSION))
        return cls.run_model(model, dict(zip(names, arrays)), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether engines for "CPU", "CUDA" or "CUDA:N" run on this machine."""
        try:
            target = _target(device)
        except ValueError:
            return False
        if target == "cpu":
            return True
        from .onnxruntime.devices import runs_here
        return runs_here(target)


def _newest(domain: str) -> int:
    """The newest version of a domain that the package onnx knows; 1 of one that it does not."""
    if domain in ("", "ai.onnx"):
        return int(onnx.defs.onnx_opset_version())
    return max((s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain), default=1)


def _info(name: str, dtype: Any, shape: Any) -> Any:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)


is_compatible = AssayBackend.is_compatible
prepare = AssayBackend.prepare
run_model = AssayBackend.run_model
run_node = AssayBackend.run_node
supports_device = AssayBackend.supports_device
