"""The other name of onnxruntime_pybind11_state."""
from __future__ import annotations

from .onnxruntime_pybind11_state import *  # noqa: F403
