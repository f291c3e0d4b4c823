"""Arrays in a GPU's memory."""
from __future__ import annotations

import math
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from . import _library as L
from ._dlpack import CUDA, capsule_of, on_stream
from ._library import STATUS, check, lib
from ._tensors import as_array
from ._types import BITS, STRING, code_of, dtype_of
from .errors import InvalidArgument

L.declare({
    "assay_device_memory_create": (STATUS, [c_char_p, c_size_t, POINTER(c_void_p)]),
    "assay_device_memory_wrap": (STATUS, [c_char_p, c_uint64, c_size_t, POINTER(c_void_p)]),
    "assay_device_memory_destroy": (None, [c_void_p]),
    "assay_device_memory_address": (c_uint64, [c_void_p]),
    "assay_device_memory_device": (c_int, [c_void_p]),
    "assay_device_memory_stream": (STATUS, [c_void_p, POINTER(c_uint64)]),
    "assay_device_memory_write": (STATUS, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "assay_device_memory_read": (STATUS, [c_void_p, c_size_t, c_void_p, c_size_t]),
})


class DeviceArray:
    """An array in a GPU's memory, contiguous: an input or an output of Context.run(), for other packages by DLPack.

    made by device_array(), to_device() and DeviceArray.at(); its memory is given back with the last reference, or by close()
    """

    def __init__(self, shape: Sequence[int], dtype: Any, target: str = "cuda", address: Optional[int] = None,
                 owner: Any = None) -> None:
        """address: of memory that is somebody else's, the owner's, which is kept; None: new memory"""
        self.shape: Tuple[int, ...] = tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.elem = code_of(self.dtype)
        if self.elem == STRING or self.elem in BITS:
            raise InvalidArgument("an array of %s cannot lie in a GPU's memory" % self.dtype)
        if any(n < 0 for n in self.shape):
            raise InvalidArgument("a shape has no sizes below 0: %s" % list(self.shape))
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        if self.nbytes >= 1 << 63:
            raise InvalidArgument("an array of shape %s is larger than any memory" % list(self.shape))
        out = c_void_p()
        if address is None:
            check(lib.assay_device_memory_create(L.encode(target), self.nbytes, byref(out)))
        else:
            check(lib.assay_device_memory_wrap(L.encode(target), address, self.nbytes, byref(out)))
        self._owner = owner
        self._handle = L.Handle(out.value, lib.assay_device_memory_destroy)
        self.device_id = int(lib.assay_device_memory_device(out.value))

    @classmethod
    def at(cls, address: int, shape: Sequence[int], dtype: Any, *, target: str = "cuda", owner: Any = None) -> "DeviceArray":
        """An array in memory that another package has on a target's GPU, contiguous, at an address.

        owner: kept as long as the array; None: the caller sees to it that the memory stays. Where it is an array by DLPack,
               runs and copies come after what its package has begun to do to it
        """
        return cls(shape, dtype, target, int(address), owner)

    @property
    def address(self) -> int:
        """Of its first element, on the device."""
        return int(lib.assay_device_memory_address(self._open()))

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def _open(self) -> Any:
        if not self._handle.value:
            raise InvalidArgument("the array is closed")
        return self._handle.value

    def close(self) -> None:
        """Gives its memory back; nothing may use it any more, other packages neither."""
        self._handle.close()

    # ---- its elements ---------------------------------------------------------------------------

    def _follow(self) -> None:
        """The next copy comes after what the owner's package has begun to do to the memory."""
        if hasattr(self._owner, "__dlpack__"):
            stream = c_uint64()
            check(lib.assay_device_memory_stream(self._open(), byref(stream)))
            on_stream(self._owner, stream.value)

    def numpy(self) -> Any:
        """A copy in the host's memory. What packages do that are not its owner's has to have ended before."""
        out = np.empty(self.shape, self.dtype)
        self._follow()
        check(lib.assay_device_memory_read(self._open(), 0, out.ctypes.data, self.nbytes))
        return out

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        if copy is False:
            raise ValueError("an array in a GPU's memory is copied to the host's")
        out = self.numpy()
        return out if dtype is None else out.astype(dtype, copy=False)

    def write(self, array: Any) -> None:
        """Copies an array of the host there, of its type and shape; for other packages as numpy()."""
        source = as_array(array)
        if source.dtype != self.dtype or source.shape != self.shape:
            raise InvalidArgument("an array of %s%s is to be written to one of %s%s"
                                  % (source.dtype, list(source.shape), self.dtype, list(self.shape)))
        source = np.ascontiguousarray(source)
        self._follow()
        check(lib.assay_device_memory_write(self._open(), 0, source.ctypes.data, self.nbytes))

    # ---- for other packages ---------------------------------------------------------------------

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        """Its memory, shared. Runs that wrote it have ended, so that a stream has to wait for its owner only."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("an array in a GPU's memory is given as it is, not as a copy and not on another device")
        if stream not in (None, -1) and hasattr(self._owner, "__dlpack__"):
            on_stream(self._owner, stream)
        return capsule_of(self, self.elem, self.shape, self.address, CUDA, self.device_id)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return CUDA, self.device_id

    @property
    def __cuda_array_interface__(self) -> Any:
        if self.dtype.kind not in "biufc":
            raise AttributeError("the CUDA array interface has no type for %s" % self.dtype)
        return {"version": 3, "typestr": self.dtype.str, "shape": self.shape, "data": (self.address, False), "stream": None}

    def __repr__(self) -> str:
        return "DeviceArray(%s%s on cuda:%d)" % (self.dtype, list(self.shape), self.device_id)


def device_array(shape: Sequence[int], dtype: Any = np.float32, *, target: str = "cuda") -> DeviceArray:
    """A new array in the memory of a target's GPU; what is in it is not defined.

    Errors: Unsupported the target has no memory of its own; DeviceError there is no GPU; NoMemory
    """
    return DeviceArray(shape, dtype, target)


def to_device(array: Any, *, target: str = "cuda") -> DeviceArray:
    """A copy of an array of the host in the memory of a target's GPU. Errors: as device_array()."""
    source = as_array(array)
    out = DeviceArray(source.shape, source.dtype, target)
    out.write(source)
    return out
