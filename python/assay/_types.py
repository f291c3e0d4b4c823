"""Element types: ONNX's numbers and numpy's types."""
from __future__ import annotations

from typing import Any, Dict

import numpy as np

from .errors import InvalidArgument

# Types that numpy lacks come from ml_dtypes where it is installed.
_PLAIN = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
          10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
_ML = {16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
       21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
       27: "float6_e2m3fn", 28: "float6_e3m2fn"}
# Bits of an element in memory of the library, where they are fewer than numpy's 8.
BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
STRING = 8

_dtypes: Dict[int, Any] = {}
_codes: Dict[Any, int] = {}


def dtype_of(code: int) -> Any:
    """The numpy type for an ONNX element type; strings are objects."""
    if code in _dtypes:
        return _dtypes[code]
    if code in _PLAIN:
        dtype = np.dtype(_PLAIN[code])
    elif code == STRING:
        dtype = np.dtype(object)
    elif code in _ML:
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError("arrays of %s need the package ml_dtypes: pip install assay-engine[types]"
                              % _ML[code]) from None
        dtype = np.dtype(getattr(ml_dtypes, _ML[code]))
    else:
        raise InvalidArgument("%d is not the number of an element type" % code)
    _dtypes[code] = dtype
    return dtype


def code_of(dtype: Any) -> int:
    """The ONNX element type for a numpy type."""
    code = _codes.get(dtype)
    if code:
        return code
    if dtype.kind in "OUST":
        return STRING
    for code, name in {**_PLAIN, **_ML}.items():
        if dtype.name == name and dtype.isnative:
            _codes[dtype] = code
            return code
    raise InvalidArgument("numpy type %s has no ONNX element type" % dtype)


def name_of(code: int) -> str:
    """numpy's name of an ONNX element type, whether or not it is installed."""
    return _PLAIN.get(code) or _ML.get(code) or ("string" if code == STRING else "type %d" % code)


def is_float(code: int) -> bool:
    """Whether elements are real floating-point numbers."""
    return code in (1, 10, 11, 16, 17, 18, 19, 20, 23, 24, 27, 28)


def pack(array: Any, bits: int) -> Any:
    """Elements of fewer than 8 bits as bytes, the first one lowest. array: a byte each, any shape."""
    raw = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    each = 8 // bits
    raw = np.concatenate([raw, np.zeros(-len(raw) % each, np.uint8)]).reshape(-1, each)
    return np.bitwise_or.reduce(raw << (np.arange(each, dtype=np.uint8) * np.uint8(bits)), axis=1).astype(np.uint8)


def unpack(raw: Any, bits: int, n: int, dtype: Any) -> Any:
    """The reverse of pack: n elements of a numpy type of one byte each."""
    each = 8 // bits
    out = (raw[:, None] >> (np.arange(each, dtype=np.uint8) * np.uint8(bits))) & np.uint8((1 << bits) - 1)
    out = out.reshape(-1)[:n].astype(np.uint8)
    if dtype.name in ("int4", "int2"):
        out = np.where(out >> (bits - 1), out | np.uint8(0xFF << bits & 0xFF), out).astype(np.uint8)
    return out.view(dtype)
