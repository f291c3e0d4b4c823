"""Assay: runs ONNX models and shows the precision error of every layer, and what causes it.

    import assay
    engine = assay.build("model.onnx")
    outputs = engine.run({"image": image})
    print(assay.check("model.onnx", precision="fp16", inputs={"image": image}))

Everything is imported when it is first used.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import (AssayError, Cancelled, Corrupt, DeviceError, InternalError, InvalidArgument, NoMemory, NotFound,
                     Unsupported)

if TYPE_CHECKING:
    from .context import Context
    from .engine import Engine, build, targets
    from .model import Model, load
    from .session import Session
    from .values import Outputs, Range, ValueInfo

_PLACES = {
    "Context": "context", "Engine": "engine", "Model": "model", "Outputs": "values", "Range": "values",
    "Session": "session", "ValueInfo": "values", "build": "engine", "load": "model", "targets": "engine",
}

__all__ = ["AssayError", "Cancelled", "Context", "Corrupt", "DeviceError", "Engine", "InternalError", "InvalidArgument",
           "Model", "NoMemory", "NotFound", "Outputs", "Range", "Session", "Unsupported", "ValueInfo", "build", "load",
           "targets"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from ._version import version
        value: Any = version()
    elif name in _PLACES:
        import importlib
        value = getattr(importlib.import_module("." + _PLACES[name], __name__), name)
    else:
        raise AttributeError("module 'assay' has no attribute %r" % name)
    globals()[name] = value
    return value


def __dir__() -> Any:
    return sorted([*globals(), *__all__, "__version__"])
