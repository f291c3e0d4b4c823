"""Where models come from: PyTorch, Keras, Hugging Face, ONNX Script. Nothing of them is imported before it is needed."""
from __future__ import annotations

from ._common import ExportError
from ._result import Export, FrameworkCheck
from .huggingface import PartsCheck, check_huggingface, from_huggingface
from .keras import check_keras, from_keras
from .onnxscript import from_onnxscript
from .torch import check_torch, from_torch

__all__ = ["Export", "ExportError", "FrameworkCheck", "PartsCheck", "check_huggingface", "check_keras", "check_torch",
           "from_huggingface", "from_keras", "from_onnxscript", "from_torch"]
