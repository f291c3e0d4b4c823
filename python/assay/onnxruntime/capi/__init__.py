"""Where scripts find ONNX Runtime's exceptions: capi.onnxruntime_pybind11_state."""
from __future__ import annotations

from . import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state

__all__ = ["_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state"]
