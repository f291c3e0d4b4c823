"""numpy arrays on memory that callers give by its address, and of DLPack capsules."""
from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from .._dlpack import View, from_dlpack
from ..errors import AssayError


class _Memory:
    """Bytes at an address, as numpy's array interface has them."""

    def __init__(self, address: int, nbytes: int, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "data": (address, False), "shape": (nbytes,)}


def array_at(address: int, dtype: Any, shape: Sequence[int], owner: Any = None) -> Any:
    """The elements at an address of the host, which stay the owner's. RuntimeError where there cannot be any."""
    sizes = [int(size) for size in shape]
    nbytes = math.prod(sizes) * dtype.itemsize
    if any(size < 0 for size in sizes):
        raise RuntimeError("a shape has no sizes below 0: %s" % sizes)
    if not nbytes:
        return np.empty(sizes, dtype)
    if not address:
        raise RuntimeError("the address of %d bytes is 0" % nbytes)
    return np.asarray(_Memory(int(address), nbytes, owner)).view(dtype).reshape(sizes)


def array_of_dlpack(data: Any) -> Any:
    """The array of an object that has __dlpack__, or of a capsule. RuntimeError where ONNX Runtime has one."""
    try:
        array = from_dlpack(data) if hasattr(data, "__dlpack__") else View(data).array()
    except AssayError as e:
        raise RuntimeError(str(e)) from None
    if not array.flags.c_contiguous:
        raise RuntimeError("ORT only supports contiguous tensor for now.")
    return array
