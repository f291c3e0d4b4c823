"""Types of elements: ONNX's numbers, ONNX Runtime's names for them, numpy's types."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._types import BITS, code_of, dtype_of

# As ONNX Runtime writes them: tensor(float), tensor(float8e4m3fn).
ELEMENTS = {1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
            10: "float16", 11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
            17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4",
            23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2"}
NUMBERS = {name: number for number, name in ELEMENTS.items()}
STRING = 8
# The other of two C types of 64 bits, where there are two.
_CHARS = {"l": np.longlong, "L": np.ulonglong} if np.dtype("l").itemsize == 8 else {}


def tensor_type(number: int) -> str:
    """The type of a tensor, by the number of its elements' type."""
    return "tensor(%s)" % ELEMENTS.get(number, "undefined")


def element_of(text: str) -> int:
    """The number of the innermost element type of a type; 0: none."""
    inner = text.rstrip(")")
    return NUMBERS.get(inner[max(inner.rfind("("), inner.rfind(",")) + 1:], 0)


def number_of(dtype: Any) -> int:
    """ONNX's number of a numpy type. Raises RuntimeError, as ONNX Runtime does, where there is none."""
    native = dtype.newbyteorder("=") if dtype.kind not in "OUSV" else dtype
    try:
        return code_of(native)
    except (ValueError, TypeError):
        raise RuntimeError("Numpy_type %d can't be converted to MLDataType." % dtype.num) from None


def numpy_of(number: int) -> Any:
    """The numpy type of an ONNX type's number."""
    return dtype_of(number)


def lies_on_gpus(number: int) -> bool:
    """Whether a tensor of a type can lie in a GPU's memory: whole bytes, and no strings."""
    return number != STRING and number not in BITS


def as_told(value: Any) -> Any:
    """An array (or a list of them) with the C type that ONNX Runtime's int64 has, which its text form shows; else the value."""
    if isinstance(value, np.ndarray) and value.dtype.char in _CHARS:
        return value.view(_CHARS[value.dtype.char])
    return [as_told(item) for item in value] if isinstance(value, list) else value


def element_number(element_type: Any) -> int:
    """The number of what callers give as an element type: a number of ONNX's, or anything numpy takes as a type."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, (bool, np.bool_)):
        if int(element_type) not in ELEMENTS:
            raise RuntimeError("Not a valid ONNX Tensor data type: %d" % element_type)
        return int(element_type)
    return number_of(np.dtype(element_type))
