"""The classes that ONNX Runtime has in its Python module."""
from __future__ import annotations

from ..binding import IOBinding
from ..devices import OrtDevice
from ..session import InferenceSession, Session
from ..sparse import SparseTensor
from ..values import OrtValue, copy_tensors

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session", "SparseTensor", "copy_tensors"]
