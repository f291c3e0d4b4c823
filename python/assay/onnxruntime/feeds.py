"""Values that a run is given: made into OrtValues and checked, with ONNX Runtime's words where something is wrong."""
from __future__ import annotations

from typing import Any, Iterable, Mapping

import numpy as np

from .elements import STRING, element_of, number_of, numpy_of, tensor_type
from .errors import Fail, InvalidArgument
from .modelfile import Value
from .values import OrtValue

# ONNX's numbers of kinds of values, which a message has.
_KINDS = {"seq": 3, "map": 1}


def value_of(name: str, wanted: str, value: Any) -> OrtValue:
    """What a caller gives for an input of a type, as an OrtValue, of whatever type it is."""
    if isinstance(value, OrtValue):
        return value
    if wanted.startswith("optional("):
        wanted = wanted[len("optional("):-1]
    if value is None:
        return OrtValue.of(None, wanted)
    kind = wanted.split("(", 1)[0]
    if isinstance(value, np.ndarray):
        if kind in _KINDS:
            raise InvalidArgument.of("input with name: '%s' expected to be of type: %d but received a tensor"
                                     % (name, _KINDS[kind]))
        return _array(value)
    if isinstance(value, list):
        return _list(name, wanted, kind, value)
    if isinstance(value, dict):
        return OrtValue.of(_plain_map(value), _map_type(value, wanted))
    if isinstance(value, Iterable) and not hasattr(value, "__array__"):
        raise RuntimeError("Input must be a list of dictionaries or a single numpy array for input '%s'." % name)
    raise RuntimeError("Unable to handle object of type %s" % type(value))


def _array(value: Any) -> OrtValue:
    if value.dtype.kind in "OUST":
        return OrtValue.of(value, tensor_type(STRING))
    number = number_of(value.dtype)
    return OrtValue.of(np.asarray(value, numpy_of(number)), tensor_type(number))


def _list(name: str, wanted: str, kind: str, value: list[Any]) -> OrtValue:
    if kind == "seq":
        return _sequence(wanted, value)
    if kind != "tensor":
        raise InvalidArgument.of("input with name: '%s' is a %s, not a list" % (name, wanted))
    number = element_of(wanted)
    try:
        return OrtValue.of(np.asarray(value, numpy_of(number)), wanted)
    except (ValueError, TypeError, OverflowError):
        raise RuntimeError("Could not create tensor from given input list") from None


def _sequence(wanted: str, items: list[Any]) -> OrtValue:
    if wanted.startswith("seq(map"):
        maps = [item for item in items if isinstance(item, dict)]
        if len(maps) != len(items):
            raise RuntimeError("Input must be a list of dictionaries")
        return OrtValue.of([_plain_map(item) for item in maps], wanted)
    number, arrays = element_of(wanted), []
    for item in items:
        if isinstance(item, OrtValue) and item.is_tensor():
            item = item.numpy()
        if not isinstance(item, np.ndarray):
            raise RuntimeError("CreateSequenceOfTensors: Input is not a tensor")
        if (STRING if item.dtype.kind in "OUST" else number_of(item.dtype)) != number:
            raise RuntimeError("TensorSeq: tensor to be added has a different data type.")
        arrays.append(item)
    return OrtValue.of(arrays, wanted)


def _plain_map(value: Mapping[Any, Any]) -> dict[Any, Any]:
    return dict(value)


def _map_type(value: Mapping[Any, Any], wanted: str) -> str:
    """The type of a map: keys are texts or integers, values are what the input has, or floats."""
    text = all(isinstance(key, str) for key in value)
    if not text and not all(isinstance(key, (int, np.integer)) for key in value):
        raise RuntimeError("the keys of a map are texts or integers")
    item = wanted[wanted.index(",") + 1:-1] if wanted.startswith("map(") else "tensor(float)"
    if item != "tensor(string)" and any(isinstance(v, (str, bytes)) for v in value.values()):
        raise RuntimeError("Unexpected value type  <class 'str'>, it cannot be linked to C type string")
    return "map(%s,%s)" % ("string" if text else "int64", item)


def check_type(declared: Value, value: OrtValue) -> None:
    """Fails where a value is of another type than the input."""
    wanted = declared.type[len("optional("):-1] if declared.type.startswith("optional(") else declared.type
    if value.has_value() and value.data_type() != wanted:
        form = "(%s)" if value.is_tensor() and wanted.startswith("tensor") else "((%s))"
        raise InvalidArgument.of("Unexpected input data type. Actual: %s , expected: %s"
                                 % (form % value.data_type(), form % wanted))
    if not value.has_value() and not declared.type.startswith("optional("):
        raise Fail.of("Missing Input: %s" % declared.name)


def check_shape(declared: Value, shape: list[int], what: str = "input") -> None:
    """Fails where a tensor has another rank or other sizes than are declared. A scalar takes any shape."""
    expected = declared.shape
    if not expected:
        return
    if len(shape) != len(expected):
        raise InvalidArgument.of("Invalid rank for %s: %s Got: %d Expected: %d Please fix either the inputs/outputs or the "
                                 "model." % (what, declared.name, len(shape), len(expected)))
    wrong = ["\n index: %d Got: %d Expected: %d" % (i, got, want) for i, (got, want) in enumerate(zip(shape, expected))
             if isinstance(want, int) and got != want]
    if wrong:
        raise InvalidArgument.of("Got invalid dimensions for %s: %s for the following indices%s\n Please fix either the "
                                 "inputs/outputs or the model." % (what, declared.name, "".join(wrong)))


def checked(declared: Mapping[str, Value], feeds: Mapping[str, OrtValue]) -> None:
    """Fails at the first of the feeds that is for no input, or does not fit it."""
    for name, value in feeds.items():
        if name not in declared:
            raise InvalidArgument.of("Invalid input name: %s" % name)
        check_type(declared[name], value)
        if value.is_tensor():
            check_shape(declared[name], value.shape())
        if value.is_sparse_tensor():
            raise InvalidArgument.of("input '%s' is a sparse tensor: sessions take dense ones" % name)


def sizes(declared: Mapping[str, Value], feeds: Mapping[str, OrtValue]) -> dict[str, int]:
    """What the inputs' sizes of a name are."""
    found: dict[str, int] = {}
    for name, value in feeds.items():
        if name in declared and value.is_tensor():
            named = zip(declared[name].shape or (), value.shape())
            found.update({dim: size for dim, size in named if isinstance(dim, str)})
    return found


def unusual(declared: Mapping[str, Value], feeds: Mapping[str, OrtValue]) -> tuple[frozenset[str], bool]:
    """What ONNX Runtime takes though the model declares something else.

    Inputs that are declared scalars and are given other shapes; whether sizes of one name differ.
    """
    shapes: set[str] = set()
    sizes: dict[str, int] = {}
    differ = False
    for name, value in feeds.items():
        want = declared[name].shape
        if want is None or not value.is_tensor():
            continue
        got = value.shape()
        if not want and got:
            shapes.add(name)
        for dim, size in zip(want, got):
            if isinstance(dim, str):
                differ |= sizes.setdefault(dim, size) != size
    return frozenset(shapes), differ
