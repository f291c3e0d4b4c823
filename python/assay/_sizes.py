"""Sizes that a model leaves open, as the options --batch, --dim and --shape of the command line give them."""
from __future__ import annotations

import ctypes
import operator
import sys
import warnings
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int64, c_size_t
from typing import Any, Dict, List, Mapping, Optional, Sequence

from . import _library as L
from .errors import InvalidArgument

Dims = Optional[Mapping[str, int]]
Shapes = Optional[Mapping[str, Sequence[Optional[int]]]]

_LARGEST = 2 ** 63 - 1


class InputShape(ctypes.Structure):
    """assay_input_shape_t."""

    _fields_ = [("name", c_char_p), ("rank", c_int), ("dims", POINTER(c_int64))]


class DimSize(ctypes.Structure):
    """assay_dim_size_t."""

    _fields_ = [("name", c_char_p), ("size", c_int64)]


class ModelOptions(L.Options):
    """assay_model_options_t."""

    _fields_ = [("struct_size", c_size_t), ("shapes", POINTER(InputShape)), ("n_shapes", c_size_t),
                ("dims", POINTER(DimSize)), ("n_dims", c_size_t), ("batch", c_int64), ("allow_unknown", c_bool)]


def _size(what: str, value: Any, least: int) -> int:
    """A size as a number that the library can hold."""
    try:
        size = operator.index(value)
    except TypeError:
        raise InvalidArgument("%s: %r is not a size" % (what, value)) from None
    if not least <= size <= _LARGEST:
        raise InvalidArgument("%s: a size of %d; give %d or more%s"
                              % (what, size, least, ", below 2**63" if size > 0 else ""))
    return size


def _mapping(what: str, value: Any, example: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise InvalidArgument("%s is %r; give a dict of names, such as %s" % (what, value, example))
    return value


def _shape(name: str, shape: Any) -> InputShape:
    """None and -1 in a shape keep what the model declares."""
    what = "shape of '%s'" % name
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        raise InvalidArgument("%s: %r is not a list of sizes" % (what, shape))
    sizes = [-1 if d is None or (not isinstance(d, (str, tuple)) and d == -1) else _size(what, d, 0) for d in shape]
    return InputShape(L.encode(name), len(sizes), (c_int64 * max(1, len(sizes)))(*sizes))


def shape_fields(shapes: Shapes) -> Dict[str, Any]:
    """The fields of a struct of options that are for shapes of inputs."""
    if shapes is None:
        return {"shapes": None, "n_shapes": 0}
    each = [_shape(name, shape) for name, shape in _mapping("shapes", shapes, '{"image": [1, 3, 224, 224]}').items()]
    return {"shapes": (InputShape * len(each))(*each) if each else None, "n_shapes": len(each)}


def size_fields(batch: Optional[int], dims: Dims, shapes: Shapes) -> Dict[str, Any]:
    """The fields of a struct of options that are for open sizes."""
    named = {} if dims is None else _mapping("dims", dims, '{"seq": 128}')
    each: List[DimSize] = [DimSize(L.encode(name), _size("dimension '%s'" % name, size, 1)) for name, size in named.items()]
    return {"dims": (DimSize * len(each))(*each) if each else None, "n_dims": len(each),
            "batch": 0 if batch is None else _size("batch", batch, 1), **shape_fields(shapes)}


def warn_of_batch(batch: Optional[int], used: bool) -> None:
    """Says of a batch that no input takes that it does nothing, at the line that called this package."""
    if batch is None or used:
        return
    frame, depth = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__package__")).split(".")[0] == __package__:
        frame, depth = frame.f_back, depth + 1
    warnings.warn("batch=%d sets nothing: no input leaves its leading dimension open" % batch, stacklevel=depth)
