"""Assay: runs ONNX models and shows the precision error of every layer, and what causes it."""
from ._library import AssayError
from .session import Session

__all__ = ["AssayError", "Session"]
