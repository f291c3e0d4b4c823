"""Tensors as the Open Inference Protocol (v2) has them: names of types, raw bytes, elements in JSON."""
from __future__ import annotations

import math
import struct
from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np

from .errors import Malformed

Buffer = Union[bytes, bytearray, memoryview]

# The protocol's names by numpy's; strings are objects. Other element types of ONNX have no name there.
NAMES: Dict[str, str] = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16", "bfloat16": "BF16", "float32": "FP32",
    "float64": "FP64", "object": "BYTES"}
SIZES: Dict[str, int] = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8}


def name_of(dtype: Any) -> Optional[str]:
    """The protocol's name of a numpy type; None: it has none."""
    return NAMES.get(dtype.name)


def sizes_of(name: str, shape: Any) -> List[int]:
    """A shape that came with a request, as integers that are not negative."""
    if not isinstance(shape, (list, tuple)):
        raise Malformed("input '%s': its shape is not a list of sizes" % name)
    for d in shape:
        if isinstance(d, bool) or not isinstance(d, int) or d < 0:
            raise Malformed("input '%s': %r is not a size of a dimension" % (name, d))
    return list(shape)


# ---- raw bytes ------------------------------------------------------------------------------------------------------


def from_raw(name: str, datatype: str, dtype: Any, shape: Sequence[int], raw: Buffer) -> Any:
    """A tensor of bytes that lie as in ONNX's raw_data; the array shares them. Of BYTES each element has its length
    before it, 4 bytes, the lowest first."""
    count = math.prod(shape)
    if datatype == "BYTES":
        return _strings(name, count, raw).reshape(shape)
    expected = count * SIZES[datatype]
    if len(raw) != expected:
        raise Malformed("input '%s' has %d bytes; %s of shape %s takes %d" % (name, len(raw), datatype, list(shape),
                                                                             expected))
    return np.frombuffer(raw, dtype).reshape(shape)


def _strings(name: str, count: int, raw: Buffer) -> Any:
    view, at, texts = memoryview(raw), 0, []
    while at < len(view):
        if at + 4 > len(view):
            raise Malformed("input '%s': %d bytes are left where a string's length takes 4" % (name, len(view) - at))
        (length,) = struct.unpack_from("<I", view, at)
        at += 4
        if at + length > len(view):
            raise Malformed("input '%s': a string of %d bytes, of which there are %d" % (name, length, len(view) - at))
        texts.append(_text(name, bytes(view[at:at + length])))
        at += length
    return _objects(name, count, texts)


def _text(name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise Malformed("input '%s': a string is not UTF-8: %s" % (name, e)) from None


def _objects(name: str, count: int, texts: Sequence[str]) -> Any:
    if len(texts) != count:
        raise Malformed("input '%s' has %d strings; its shape takes %d" % (name, len(texts), count))
    array = np.empty(count, object)
    array[:] = texts
    return array


def encoded(text: Any) -> bytes:
    """An element of BYTES."""
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")


def to_raw(array: Any) -> Buffer:
    """The bytes of a tensor, shared with it where they lie one after the other."""
    if array.dtype == object:
        texts = [encoded(t) for t in array.reshape(-1)]
        return b"".join(part for t in texts for part in (struct.pack("<I", len(t)), t))
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


# ---- elements -------------------------------------------------------------------------------------------------------


def from_list(name: str, datatype: str, dtype: Any, shape: Sequence[int], data: Any) -> Any:
    """A tensor of elements in a list, nested or flat. Nothing is rounded but what has to be: a float64 of JSON to the
    float of the input."""
    count = math.prod(shape)
    if datatype == "BYTES":
        texts = [_text(name, t) if isinstance(t, bytes) else t for t in _flat(data)]
        if not all(isinstance(t, str) for t in texts):
            raise Malformed("input '%s' takes strings" % name)
        return _objects(name, count, texts).reshape(shape)
    try:
        array = np.asarray(data).reshape(-1)
    except (ValueError, TypeError, OverflowError) as e:
        raise Malformed("input '%s': its data is not a tensor: %s" % (name, e)) from None
    if array.size != count:
        raise Malformed("input '%s' has %d elements; shape %s takes %d" % (name, array.size, list(shape), count))
    return _typed(name, datatype, dtype, array).reshape(shape)


def _flat(data: Any) -> List[Any]:
    if not isinstance(data, (list, tuple, np.ndarray)):
        return [data]
    flat: List[Any] = []
    for item in data:
        flat.extend(_flat(item)) if isinstance(item, (list, tuple, np.ndarray)) else flat.append(item)
    return flat


def _typed(name: str, datatype: str, dtype: Any, array: Any) -> Any:
    kind = "b" if datatype == "BOOL" else "iuf" if datatype in ("FP16", "BF16", "FP32", "FP64") else "iu"
    if array.size == 0:
        return array.astype(dtype)
    if array.dtype.kind not in kind:
        raise Malformed("input '%s' takes %s, and its data is of another kind" % (name, datatype))
    if kind == "iu":
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise Malformed("input '%s': %s goes from %d to %d" % (name, datatype, limits.min, limits.max))
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def to_list(array: Any) -> List[Any]:
    """The elements in a flat list."""
    flat = array.reshape(-1)
    if array.dtype == object:
        return [t.decode("utf-8", "replace") if isinstance(t, bytes) else str(t) for t in flat]
    result: List[Any] = flat.astype(np.float32).tolist() if flat.dtype.name == "bfloat16" else flat.tolist()
    return result
