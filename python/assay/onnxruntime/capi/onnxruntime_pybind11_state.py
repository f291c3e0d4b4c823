"""The exceptions, and the classes that ONNX Runtime has in its extension module."""
from __future__ import annotations

from ..binding import IOBinding as SessionIOBinding
from ..binding import OrtValueVector
from ..devices import (OrtDevice, OrtEpDevice, OrtHardwareDevice, OrtMemoryInfo, get_all_providers,
                       get_available_providers, get_device, get_ep_devices)
from ..enums import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType,
                     OrtHardwareDeviceType, OrtMemType, OrtSparseFormat)
from ..errors import (DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled,
                      ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented,  # noqa: A004
                      RuntimeException)
from ..meta import ModelMetadata, NodeArg
from ..options import RunOptions, SessionOptions
from ..session import InferenceSession
from ..settings import set_default_logger_severity, set_default_logger_verbosity, set_seed
from ..sparse import SparseTensor
from ..values import OrtValue
from ..versions import get_build_info, get_version_string

__all__ = [
    "DeviceReset", "EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel",
    "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled", "ModelLoaded",
    "ModelMetadata", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NodeArg", "NotFound", "NotImplemented",
    "OrtAllocatorType", "OrtDevice", "OrtDeviceMemoryType", "OrtEpDevice", "OrtHardwareDevice", "OrtHardwareDeviceType",
    "OrtMemType", "OrtMemoryInfo", "OrtSparseFormat", "OrtValue", "OrtValueVector", "RunOptions", "RuntimeException",
    "SessionIOBinding", "SessionOptions", "SparseTensor", "get_all_providers", "get_available_providers",
    "get_build_info", "get_device", "get_ep_devices", "get_version_string", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed",
]
