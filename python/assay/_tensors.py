"""Arrays into and out of the library's tensors (include/assay/tensor.h)."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Optional, Sequence

import numpy as np

from . import _library as L
from ._library import STATUS, check, lib
from ._types import BITS, STRING, code_of, dtype_of, is_float, pack, unpack
from .errors import InvalidArgument

L.declare({
    "assay_tensor_make": (STATUS, [c_int, c_int, POINTER(c_int64), c_void_p, c_size_t, POINTER(c_void_p)]),
    "assay_tensor_make_strings": (STATUS, [c_int, POINTER(c_int64), POINTER(c_char_p), POINTER(c_size_t),
                                           POINTER(c_void_p)]),
    "assay_tensor_make_container": (STATUS, [c_int, c_int, c_int64, POINTER(c_void_p), POINTER(c_void_p)]),
    "assay_tensor_retain": (c_void_p, [c_void_p]),
    "assay_tensor_release": (None, [c_void_p]),
    "assay_tensor_kind": (c_int, [c_void_p]),
    "assay_tensor_type": (c_int, [c_void_p]),
    "assay_tensor_rank": (c_int, [c_void_p]),
    "assay_tensor_dims": (POINTER(c_int64), [c_void_p]),
    "assay_tensor_size": (c_int64, [c_void_p]),
    "assay_tensor_bytes": (c_size_t, [c_void_p]),
    "assay_tensor_read": (STATUS, [c_void_p, c_void_p, c_size_t]),
    "assay_tensor_read_f64": (STATUS, [c_void_p, POINTER(c_double), c_size_t]),
    "assay_tensor_data": (c_void_p, [c_void_p]),
    "assay_tensor_string": (c_void_p, [c_void_p, c_int64, POINTER(c_size_t)]),
    "assay_tensor_item_count": (c_int64, [c_void_p]),
    "assay_tensor_item": (c_void_p, [c_void_p, c_int64]),
})


def owned(handle: Any) -> L.Handle:
    """Takes over one reference to a tensor."""
    return L.Handle(handle, lib.assay_tensor_release)


def as_array(value: Any) -> Any:
    """A numpy array of anything that has elements: an array, DLPack, the array interface, numbers, lists of numbers.

    Memory is shared where the value has any that numpy can see.
    """
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        from ._dlpack import from_dlpack
        return from_dlpack(value)
    return np.asarray(value)


def address_of(array: Any) -> int:
    """Where the elements of a contiguous numpy array lie."""
    if array.dtype.isbuiltin == 1 and array.dtype.kind in "fiub" and array.flags.writeable and array.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # a fifth of the time of the array interface
    address: int = array.__array_interface__["data"][0]
    return address


def _dims(shape: Sequence[int]) -> Any:
    return (c_int64 * max(1, len(shape)))(*shape)


def _strings(array: Any) -> L.Handle:
    out = c_void_p()
    texts = [t if isinstance(t, bytes) else str(t).encode("utf-8", "surrogateescape") for t in array.reshape(-1)]
    check(lib.assay_tensor_make_strings(array.ndim, _dims(array.shape), (c_char_p * len(texts))(*texts),
                                        (c_size_t * len(texts))(*map(len, texts)), byref(out)))
    return owned(out.value)


def _container(kind: int, items: Sequence[L.Handle]) -> L.Handle:
    out = c_void_p()
    handles = (c_void_p * max(1, len(items)))(*[i.value for i in items])
    code = lib.assay_tensor_type(items[0].value) if items else 0
    check(lib.assay_tensor_make_container(kind, code, len(items), handles, byref(out)))
    return owned(out.value)


def array_tensor(array: Any) -> L.Handle:
    """A tensor with a copy of a numpy array, in any order of memory."""
    code = code_of(array.dtype)
    if code == STRING:
        return _strings(array)
    out = c_void_p()
    array = np.asarray(array, order="C")
    data = pack(array, BITS[code]) if code in BITS else array
    check(lib.assay_tensor_make(code, array.ndim, _dims(array.shape), data.ctypes.data, data.nbytes, byref(out)))
    return owned(out.value)


def _map(value: Any, kind: str) -> L.Handle:
    """A map of a type such as "map(string, float[])": keys and values in the order of the dict."""
    key, item = (word.split("[", 1)[0] for word in kind[len("map("):-1].split(", ", 1))
    types = {"string": object, "float": np.float32, "double": np.float64}
    keys = np.asarray(list(value.keys()), types.get(key, key))
    items = np.asarray(list(value.values()), types.get(item, item))
    return _container(L.MAP, [array_tensor(keys), array_tensor(items)])


def to_tensor(value: Any, kind: str = "") -> L.Handle:
    """A value as a tensor: an array or a number; a list for a sequence; a dict for a map; None for an empty optional.

    kind: the ONNX type that it is for, such as "seq(float[N])"; "": by the value, where a list is a sequence.
    """
    if kind.startswith("optional("):
        return _container(L.OPTIONAL, [] if value is None else [to_tensor(value, kind[len("optional("):-1])])
    if kind.startswith("seq("):
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__"):
            raise InvalidArgument("a sequence (%s) is given as a list of arrays, not as %s" % (kind, type(value).__name__))
        return _container(L.SEQUENCE, [to_tensor(v, kind[len("seq("):-1]) for v in value])
    if kind.startswith("map("):
        if not hasattr(value, "keys"):
            raise InvalidArgument("a map (%s) is given as a dict, not as %s" % (kind, type(value).__name__))
        return _map(value, kind)
    if not kind and value is None:
        return _container(L.OPTIONAL, [])
    if not kind and isinstance(value, (list, tuple)):
        return _container(L.SEQUENCE, [to_tensor(v) for v in value])
    if value is None:
        raise InvalidArgument("a value of type %s cannot be None" % kind)
    return array_tensor(as_array(value))


def _text(handle: Any, i: int) -> str:
    length = c_size_t()
    pointer = lib.assay_tensor_string(handle, i, byref(length))
    return L.text(ctypes.string_at(pointer, length.value))


def _numbers(handle: Any, code: int, shape: Any) -> Any:
    dtype = dtype_of(code)
    raw = np.empty(lib.assay_tensor_bytes(handle), np.uint8)
    check(lib.assay_tensor_read(handle, raw.ctypes.data, raw.nbytes))
    if code in BITS:
        return unpack(raw, BITS[code], lib.assay_tensor_size(handle), dtype).reshape(shape)
    return raw.view(dtype).reshape(shape)


def shape_of(handle: Any) -> Any:
    """The shape of a tensor."""
    rank = lib.assay_tensor_rank(handle)
    return tuple(lib.assay_tensor_dims(handle)[:rank]) if rank else ()


def from_tensor(handle: Any, float64: bool = False) -> Any:
    """A borrowed tensor as a numpy array, list (sequence), dict (map), or None (empty optional).

    float64: floats as they were computed; truth's are not rounded to the type.
    """
    kind = lib.assay_tensor_kind(handle)
    if kind != L.TENSOR:
        items = [from_tensor(lib.assay_tensor_item(handle, i), float64)
                 for i in range(lib.assay_tensor_item_count(handle))]
        if kind == L.OPTIONAL:
            return items[0] if items else None
        return dict(zip(items[0].tolist(), items[1].tolist())) if kind == L.MAP else items
    code, shape, n = lib.assay_tensor_type(handle), shape_of(handle), lib.assay_tensor_size(handle)
    if code == STRING:
        return np.array([_text(handle, i) for i in range(n)], object).reshape(shape)
    if float64 and is_float(code):
        out = np.empty(shape, np.float64)
        check(lib.assay_tensor_read_f64(handle, out.ctypes.data_as(POINTER(c_double)), n))
        return out
    return _numbers(handle, code, shape)


class _Memory:
    """The elements of a tensor, as numpy's array interface has them; the tensor lives as long as this."""

    def __init__(self, tensor: L.Handle, address: int, nbytes: int) -> None:
        self.tensor = tensor
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "data": (address, False), "shape": (nbytes,)}


def take_view(handle: Optional[int]) -> Any:
    """take(), but an array is the tensor's own memory where it lies as numpy has it: the caller may write to it."""
    if not handle:
        return None
    mine = owned(handle)
    code, address = lib.assay_tensor_type(handle), lib.assay_tensor_data(handle)
    if not address or code in BITS:
        return from_tensor(handle)
    raw = np.asarray(_Memory(mine, address, lib.assay_tensor_bytes(handle)))
    return raw.view(dtype_of(code)).reshape(shape_of(handle))


def take(handle: Optional[int], float64: bool = False) -> Any:
    """A value of a tensor whose reference is the caller's, which goes; None: there is none."""
    if not handle:
        return None
    mine = owned(handle)
    return from_tensor(mine.value, float64)
