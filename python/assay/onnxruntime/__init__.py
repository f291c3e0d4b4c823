"""ONNX Runtime's Python API on Assay: scripts run with `import assay.onnxruntime as onnxruntime`.

Sessions are engines in float32 for the CPU, or for a GPU with CUDAExecutionProvider. What differs is listed in
docs/coming-from-onnxruntime.md. `__version__` is that of the API; the library's is assay.__version__.
"""
from __future__ import annotations

from .binding import IOBinding, OrtValueVector
from .devices import (OrtDevice, OrtEpDevice, OrtHardwareDevice, OrtMemoryInfo, get_all_providers,
                      get_available_providers, get_device, get_ep_devices)
from .enums import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, OrtAllocatorType, OrtDeviceMemoryType,
                    OrtDeviceVendorId, OrtHardwareDeviceType, OrtMemType, OrtSparseFormat)
from .meta import ModelMetadata, NodeArg, OrtEpAssignedNode, OrtEpAssignedSubgraph
from .options import RunOptions, SessionOptions
from .session import InferenceSession
from .settings import (create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events,
                       enable_telemetry_events, has_collective_ops, preload_dlls, register_execution_provider_library,
                       set_default_logger_severity, set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed,
                       unregister_execution_provider_library)
from .sparse import SparseTensor
from .values import OrtValue, copy_tensors
from .versions import __version__, get_build_info, get_version_string, print_debug_info

from . import capi  # isort: skip  # scripts reach exceptions by it without importing it

SessionIOBinding = IOBinding

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata",
    "NodeArg", "OrtAllocatorType", "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph", "OrtEpDevice", "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfo",
    "OrtSparseFormat", "OrtValue", "OrtValueVector", "RunOptions", "SessionIOBinding", "SessionOptions", "SparseTensor",
    "__version__", "capi", "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2",
    "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers",
    "get_build_info", "get_device", "get_ep_devices", "get_version_string", "has_collective_ops", "preload_dlls",
    "print_debug_info", "register_execution_provider_library", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed", "unregister_execution_provider_library",
]
