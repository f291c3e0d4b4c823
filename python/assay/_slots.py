"""Inputs and outputs of a context: what the library was told of each, and whether an array fits."""
from __future__ import annotations

import sys
from typing import Any, List, Optional, Sequence

import numpy as np

from ._dlpack import View, device_number, on_stream
from ._tensors import as_array
from ._types import BITS, STRING, dtype_of, name_of
from .errors import AssayError, InvalidArgument
from .values import ValueInfo

POOL = 3  # arrays of an output that are kept for the runs to come


class Input:
    """What the context reads an input from."""

    __slots__ = ("info", "elem", "dtype", "numeric", "address", "shape", "bound", "held", "state", "on_device")

    def __init__(self, info: ValueInfo) -> None:
        self.info, self.elem = info, info.elem
        self.numeric = info.kind == "tensor" and info.elem not in (0, STRING) and info.elem not in BITS
        self.dtype = dtype_of(info.elem) if self.numeric else None
        self.address = 0         # that the library was told
        self.shape: Any = None
        self.on_device = False              # it lies there on the GPU
        self.bound = False                  # by bind_input(): a run needs no value
        self.held: Any = None               # the array or tensor that has to stay for it
        self.state = False


class Output:
    """Where the context puts an output."""

    __slots__ = ("info", "dtype", "follows", "shape", "bytes", "address", "array", "pool", "on_device")

    def __init__(self, info: ValueInfo, inputs: Sequence[ValueInfo]) -> None:
        self.info = info
        sizes = {d for i in inputs for d in i.shape or () if isinstance(d, str)}
        numeric = info.kind == "tensor" and info.elem not in (0, STRING) and info.elem not in BITS
        # Its sizes are those of the inputs, or fixed: runs of the same shapes give the same shape.
        self.follows = numeric and info.shape is not None and all(
            isinstance(d, int) or d in sizes for d in info.shape)
        self.dtype = dtype_of(info.elem) if numeric else None
        self.shape: Any = None   # of the last run, if the next one with such inputs has it, too
        self.bytes = 0
        self.address = 0         # that the library was told
        self.on_device = False   # it lies there on the GPU
        self.array: Any = None   # bind_output()'s
        self.pool: List[Any] = []

    def room(self) -> Any:
        """An array for the next run: one that nobody has any more, or a new one."""
        for array in self.pool:
            # The pool, `array` and the argument: nobody else, no view either.
            if sys.getrefcount(array) == 3:
                return array
        array = np.empty(self.shape, self.dtype)
        if len(self.pool) < POOL:
            self.pool.append(array)
        return array


def numeric_array(i: Input, value: Any) -> Any:
    try:
        array = as_array(value)
    except (TypeError, ValueError) as e:
        raise InvalidArgument("input '%s' (%s): %s" % (i.info.name, i.info.type, e)) from None
    # Python's own numbers have no type of their own.
    if array.dtype != i.dtype and isinstance(value, (bool, int, float, complex, list, tuple)):
        cast = np.asarray(value, i.dtype)
        if array.dtype.kind in "biufc" and np.array_equal(cast, array, equal_nan=array.dtype.kind in "fc"):
            return cast
    return array


def wrong_type(i: Input, array: Any) -> AssayError:
    return InvalidArgument("input '%s' is %s; the array for it is %s%s: convert it with .astype()"
                           % (i.info.name, name_of(i.elem), array.dtype, list(array.shape)))


def writable_array(o: Output, array: Any) -> Any:
    """An array for an output: numpy's, or one on a GPU."""
    if not isinstance(array, np.ndarray):
        if device_number(array) is not None:
            return array
        raise InvalidArgument("output '%s' is written to a numpy array or to an array on a GPU, not to %s"
                              % (o.info.name, type(array).__name__))
    if o.dtype is None:
        raise InvalidArgument("output '%s' (%s) cannot be written to an array" % (o.info.name, o.info.type))
    if array.dtype != o.dtype or not array.flags.c_contiguous or not array.flags.writeable:
        raise InvalidArgument("output '%s' is %s: the array for it, %s, has to be of that type, contiguous and writable"
                              % (o.info.name, name_of(o.info.elem), array.dtype))
    return array


class Stream:
    """The stream on a GPU in which a context runs. number: of the GPU; None: it runs elsewhere."""

    def __init__(self, handle: int, number: Optional[int]) -> None:
        self.handle, self.number = handle, number

    def follow(self, array: Any) -> None:
        """What the context runs from now on comes after what the array's package has begun to do to it."""
        if self.number == device_number(array):
            on_stream(array, self.handle)

    def view(self, what: str, info: ValueInfo, elem: int, array: Any, writable: bool = False) -> View:
        """Where an array lies on the context's GPU, after what its package still does to it. what: "input", "output"."""
        number = device_number(array)
        if self.number != number:
            raise InvalidArgument("%s '%s': the array lies on GPU %s, and the context runs on %s" % (
                what, info.name, number, "the CPU" if self.number is None else "GPU %d" % self.number))
        view = View(on_stream(array, self.handle))
        if view.elem != elem:
            raise InvalidArgument("%s '%s' is %s; the array for it, on the GPU, is %s%s"
                                  % (what, info.name, name_of(elem), name_of(view.elem), list(view.shape)))
        if not view.contiguous:
            raise InvalidArgument("%s '%s': the array for it, on the GPU, is not contiguous" % (what, info.name))
        if writable and not view.writable:
            raise InvalidArgument("%s '%s': the array for it, on the GPU, is not writable" % (what, info.name))
        return view
