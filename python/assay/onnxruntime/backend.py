"""The module onnxruntime.backend: models that are prepared and run by way of sessions."""
from __future__ import annotations

import os
from typing import Any

from .devices import get_device
from .options import RunOptions, SessionOptions
from .session import InferenceSession


class OnnxRuntimeBackendRep:
    """A session that takes its inputs in the model's order."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> list[Any]:
        """All outputs. inputs: a list in the model's order, or the only one; kwargs: attributes of RunOptions."""
        options = RunOptions()
        for name, value in kwargs.items():
            if hasattr(options, name):
                setattr(options, name, value)
        names = [meta.name for meta in self._session.get_inputs()]
        if not isinstance(inputs, list):
            if len(names) != 1:
                raise RuntimeError("Model expect {0} inputs".format(len(names)))
            inputs = [inputs]
        return self._session.run(None, dict(zip(names, inputs)), options)


class OnnxRuntimeBackend:
    """Makes and runs sessions."""

    @classmethod
    def is_compatible(cls, model: Any, device: Any = None, **kwargs: Any) -> bool:
        """Whether the model is for a device that is here."""
        return cls.supports_device(device or get_device())

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether "CPU" or "GPU" is a device of this machine."""
        return device == "CPU" or device in get_device()

    @classmethod
    def prepare(cls, model: Any, device: Any = None, **kwargs: Any) -> OnnxRuntimeBackendRep:
        """A model (path, bytes, onnx.ModelProto, session) that is ready to run. kwargs: attributes of SessionOptions."""
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        if device is not None and not cls.supports_device(device):
            raise RuntimeError("Incompatible device expected '%s', got '%s'" % (device, get_device()))
        options = SessionOptions()
        for name, value in kwargs.items():
            if hasattr(options, name):
                setattr(options, name, value)
        if not isinstance(model, (str, bytes, os.PathLike)):
            model = model.SerializeToString()
        return OnnxRuntimeBackendRep(InferenceSession(model, options))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: Any = None, **kwargs: Any) -> list[Any]:
        """prepare() and run()."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: Any = None, outputs_info: Any = None, **kwargs: Any) -> Any:
        """Single nodes are run by assay.backend."""
        raise NotImplementedError("It is much more efficient to run a whole model than every node independently.")


is_compatible = OnnxRuntimeBackend.is_compatible
prepare = OnnxRuntimeBackend.prepare
run = run_model = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device
