"""Arrays of other packages by DLPack, also of types that numpy's own reader does not know."""
from __future__ import annotations

import ctypes
from ctypes import (POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p,
                    py_object)
from typing import Any, Dict, Optional, Sequence

import numpy as np

from ._types import dtype_of
from .errors import InvalidArgument, Unsupported

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# (code, bits) of DLDataType -> ONNX's number
_ELEMS = {(0, 8): 3, (0, 16): 5, (0, 32): 6, (0, 64): 7, (1, 8): 2, (1, 16): 4, (1, 32): 12, (1, 64): 13, (2, 16): 10,
          (2, 32): 1, (2, 64): 11, (4, 16): 16, (5, 64): 14, (5, 128): 15, (6, 8): 9, (10, 8): 17, (11, 8): 18,
          (12, 8): 19, (13, 8): 20, (14, 8): 24}


class _DataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("dtype", _DataType), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    """What a capsule has (DLManagedTensor)."""

    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    """What a capsule of DLPack 1.0 has (DLManagedTensorVersioned)."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor)]


PLAIN, VERSIONED, READ_ONLY = b"dltensor", b"dltensor_versioned", 1
_python = ctypes.pythonapi
_get, _valid, _new = _python.PyCapsule_GetPointer, _python.PyCapsule_IsValid, _python.PyCapsule_New
_get.restype, _get.argtypes = c_void_p, [py_object, c_char_p]
_valid.restype, _valid.argtypes = c_int, [py_object, c_char_p]
_new.restype, _new.argtypes = py_object, [c_void_p, c_char_p, c_void_p]


class View:
    """An array of another package: where its elements lie, as long as this object lives.

    elem      ONNX's number of its type
    shape     its sizes; strides: in elements, None: contiguous
    device    CPU or CUDA; address: of the first element there
    writable  False where the package says that nobody may write to it
    """

    def __init__(self, capsule: Any) -> None:
        # The capsule stays as it is: it frees the array when this object, which keeps it, dies.
        self._capsule = capsule
        self.writable = True
        if _valid(capsule, VERSIONED):
            whole = ctypes.cast(_get(capsule, VERSIONED), POINTER(_Versioned)).contents
            if whole.major != 1:
                raise Unsupported("an array of DLPack %d.%d" % (whole.major, whole.minor))
            t, self.writable = whole.tensor, not whole.flags & READ_ONLY
        else:
            t = ctypes.cast(_get(capsule, PLAIN), POINTER(_Tensor)).contents
        key = (t.dtype.code, t.dtype.bits)
        if t.dtype.lanes != 1 or key not in _ELEMS:
            raise Unsupported("a DLPack array of type code %d with %d bits and %d lanes"
                              % (t.dtype.code, t.dtype.bits, t.dtype.lanes))
        self.elem = _ELEMS[key]
        self.shape = tuple(t.shape[:t.ndim])
        self.strides = tuple(t.strides[:t.ndim]) if t.strides and t.ndim else None
        self.device, self.device_id = t.device_type, t.device_id
        self.address = (t.data or 0) + t.byte_offset

    @property
    def contiguous(self) -> bool:
        expected, contiguous = 1, True
        for size, stride in zip(reversed(self.shape), reversed(self.strides or ())):
            contiguous &= size == 1 or stride == expected
            expected *= size
        return contiguous or 0 in self.shape

    def array(self) -> Any:
        """The same memory as a numpy array."""
        if self.device not in (CPU, CUDA_HOST, CUDA_MANAGED):
            raise InvalidArgument("the array lies on a device of DLPack's type %d, not in the host's memory" % self.device)
        dtype = dtype_of(self.elem)
        strides = None
        if self.strides is not None and not self.contiguous:
            strides = tuple(s * dtype.itemsize for s in self.strides)
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        raw = _Memory(self, dtype.itemsize, strides)
        return np.asarray(raw).view(dtype).reshape(self.shape) if strides is None else np.asarray(raw).view(dtype)[..., 0]


class _Memory:
    """Bytes of a view, as numpy's array interface has them."""

    def __init__(self, view: View, itemsize: int, strides: Any) -> None:
        self.view = view
        n = itemsize
        for size in view.shape:
            n *= size
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "data": (view.address, False),
            "shape": (n,) if strides is None else (*view.shape, itemsize),
            "strides": None if strides is None else (*strides, 1)}


def device_of(value: Any) -> int:
    """The type of the device that an array lies on."""
    return int(value.__dlpack_device__()[0])


def from_dlpack(value: Any) -> Any:
    """An array of the host by DLPack, its memory shared."""
    if device_of(value) not in (CPU, CUDA_HOST, CUDA_MANAGED):
        raise InvalidArgument("the array lies on a device of DLPack's type %d, not in the host's memory" % device_of(value))
    return View(value.__dlpack__()).array()


def on_stream(value: Any, stream: int) -> Any:
    """The capsule of an array on a GPU, after whose package's work this stream will go on."""
    try:
        return value.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # of a package from before DLPack 1.0
        return value.__dlpack__(stream=stream)


# ---- arrays for other packages ------------------------------------------------------------------

_CODES = {number: key for key, number in _ELEMS.items()}
_given: Dict[Optional[int], Any] = {}  # by the addresses of their structures: arrays that other packages have


_CALLED = ctypes.PYFUNCTYPE(None, c_void_p)


def _end(managed: Optional[int]) -> None:
    """Another package has no more use for an array."""
    _given.pop(managed, None)


_is_unused = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _python))
_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _python))


def _drop(capsule: Optional[int]) -> None:
    """A capsule dies; what nobody has taken out of it (who does gives it another name) ends here."""
    if _is_unused(capsule, PLAIN):
        _end(_pointer(capsule, PLAIN))


_END, _DROP = _CALLED(_end), _CALLED(_drop)


def capsule_of(owner: Any, elem: int, shape: Sequence[int], address: int, device: int, device_id: int) -> Any:
    """A capsule of a contiguous array, whose owner lives as long as anybody has it. elem: ONNX's number of its type."""
    if elem not in _CODES:
        raise BufferError("DLPack has no type for elements of ONNX's number %d" % elem)
    code, bits = _CODES[elem]
    sizes = (c_int64 * max(1, len(shape)))(*shape)
    managed = _Managed(_Tensor(data=address, device_type=device, device_id=device_id, ndim=len(shape),
                               dtype=_DataType(code, bits, 1), shape=sizes, strides=None, byte_offset=0),
                       None, ctypes.cast(_END, c_void_p))
    key = ctypes.addressof(managed)
    _given[key] = (managed, sizes, owner)
    try:
        return _new(key, PLAIN, ctypes.cast(_DROP, c_void_p))
    except BaseException:
        _end(key)
        raise


def device_number(value: Any) -> Optional[int]:
    """The number of the GPU that an array lies on; None: it lies elsewhere, or is no array."""
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None:
        return None
    kind, number = ask()
    return int(number) if int(kind) == CUDA else None
