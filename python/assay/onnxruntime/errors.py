"""ONNX Runtime's exception classes, and the one that stands for what the library reports."""
from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T", bound="OrtException")
_STATE = "assay.onnxruntime.capi.onnxruntime_pybind11_state"


class OrtException(Exception):
    """What the exceptions of this module have in common. `detail` is the message without number and name."""

    number, label = 1, "FAIL"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.detail = str(args[0]) if args else ""

    @classmethod
    def of(cls: type[_T], detail: str) -> _T:
        """An exception with the text that ONNX Runtime gives it."""
        error = cls("[ONNXRuntimeError] : %d : %s : %s" % (cls.number, cls.label, detail))
        error.detail = detail
        return error


def _exception(name: str, number: int, label: str) -> type[OrtException]:
    return type(name, (OrtException,), {"number": number, "label": label, "__module__": _STATE, "__doc__": label})


Fail = _exception("Fail", 1, "FAIL")
InvalidArgument = _exception("InvalidArgument", 2, "INVALID_ARGUMENT")
NoSuchFile = _exception("NoSuchFile", 3, "NO_SUCHFILE")
NoModel = _exception("NoModel", 4, "NO_MODEL")
EngineError = _exception("EngineError", 5, "ENGINE_ERROR")
RuntimeException = _exception("RuntimeException", 6, "RUNTIME_EXCEPTION")
InvalidProtobuf = _exception("InvalidProtobuf", 7, "INVALID_PROTOBUF")
ModelLoaded = _exception("ModelLoaded", 8, "MODEL_LOADED")
NotImplemented = _exception("NotImplemented", 9, "NOT_IMPLEMENTED")  # noqa: A001: its name there
InvalidGraph = _exception("InvalidGraph", 10, "INVALID_GRAPH")
EPFail = _exception("EPFail", 11, "EP_FAIL")
ModelLoadCanceled = _exception("ModelLoadCanceled", 12, "MODEL_LOAD_CANCELED")
ModelRequiresCompilation = _exception("ModelRequiresCompilation", 13, "MODEL_REQUIRES_COMPILATION")
NotFound = _exception("NotFound", 14, "NOT_FOUND")
DeviceReset = _exception("DeviceReset", 15, "DEVICE_RESET")
