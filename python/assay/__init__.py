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
    from . import debug
    from ._audit import AuditResult, audit
    from ._certify import Certificate, Verification, certify
    from ._check import CheckResult, check
    from ._compare import CompareResult, compare
    from ._edit import EditResult, edit, edits, quantize
    from ._tune import TuneResult, devices, tune
    from .calibration import Calibration, ValueRange, calibrate
    from .context import Context
    from .device import DeviceArray, device_array, to_device
    from .engine import Engine, build, targets
    from .frameworks import (ExportError, check_huggingface, check_keras, check_torch, from_huggingface, from_keras,
                             from_onnxscript, from_torch)
    from .model import Model, load
    from .session import Session
    from .values import Outputs, Range, ValueInfo

_PLACES = {
    "ExportError": "frameworks", "check_huggingface": "frameworks", "check_keras": "frameworks",
    "check_torch": "frameworks", "from_huggingface": "frameworks", "from_keras": "frameworks",
    "from_onnxscript": "frameworks", "from_torch": "frameworks",
    "AuditResult": "_audit", "Certificate": "_certify", "CheckResult": "_check", "CompareResult": "_compare",
    "EditResult": "_edit", "TuneResult": "_tune", "Verification": "_certify", "audit": "_audit", "certify": "_certify",
    "check": "_check", "compare": "_compare", "devices": "_tune", "edit": "_edit", "edits": "_edit",
    "quantize": "_edit", "tune": "_tune",
    "Calibration": "calibration", "ValueRange": "calibration", "calibrate": "calibration",
    "Context": "context", "DeviceArray": "device", "device_array": "device", "to_device": "device", "Engine": "engine", "Model": "model", "Outputs": "values", "Range": "values",
    "Session": "session", "ValueInfo": "values", "build": "engine", "load": "model", "targets": "engine",
}

__all__ = ["AssayError", "AuditResult", "Calibration", "Cancelled", "Certificate", "CheckResult", "CompareResult", "Context", "Corrupt",
           "DeviceArray", "DeviceError", "EditResult", "Engine", "ExportError", "InternalError", "InvalidArgument", "Model", "NoMemory",
           "NotFound", "Outputs", "Range", "Session", "TuneResult", "Unsupported", "ValueInfo", "ValueRange",
           "Verification", "audit", "build", "calibrate", "certify", "check",
           "check_huggingface", "check_keras", "check_torch", "compare", "debug", "device_array", "devices", "edit", "edits",
           "from_huggingface", "from_keras", "from_onnxscript", "from_torch", "load", "quantize", "targets", "to_device", "tune"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from ._version import version
        value: Any = version()
    elif name == "debug":
        import importlib
        value = importlib.import_module(".debug", __name__)
    elif name in _PLACES:
        import importlib
        value = getattr(importlib.import_module("." + _PLACES[name], __name__), name)
    else:
        raise AttributeError("module 'assay' has no attribute %r" % name)
    globals()[name] = value
    return value


def __dir__() -> Any:
    return sorted({*globals(), *__all__, "__version__"})
