"""Assay: runs ONNX models and accounts for every number it changes."""
from ._library import AssayError
from .session import Session

__all__ = ["AssayError", "Session"]
