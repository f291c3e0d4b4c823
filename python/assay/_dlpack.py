"""Arrays of other packages by DLPack, also of types that numpy's own reader does not know."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any

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


_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = c_void_p, [py_object, c_char_p]


class View:
    """An array of another package: where its elements lie, as long as this object lives.

    elem      ONNX's number of its type
    shape     its sizes; strides: in elements, None: contiguous
    device    CPU or CUDA; address: of the first element there
    """

    def __init__(self, capsule: Any) -> None:
        # The capsule stays as it is: it frees the array when this object, which keeps it, dies.
        self._capsule = capsule
        t = ctypes.cast(_get(capsule, b"dltensor"), POINTER(_Tensor)).contents
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
