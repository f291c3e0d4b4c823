"""Small models for examples, by the names that onnxruntime.datasets has.

Where the package onnxruntime is installed its files are given; else 'sigmoid.onnx' and 'mul_1.onnx' are made.
"""
from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from typing import Callable, Sequence

import numpy as np

from .. import wire
from ..rewrite import tensor


def _value(name: bytes, shape: Sequence[int]) -> bytes:
    """A ValueInfoProto of float32."""
    dims = b"".join(wire.bytes_field(1, wire.number_field(1, size)) for size in shape)
    tensor_type = wire.number_field(1, 1) + wire.bytes_field(2, dims)
    return wire.bytes_field(1, name) + wire.bytes_field(2, wire.bytes_field(1, tensor_type))


def _model(op: bytes, inputs: Sequence[bytes], output: bytes, shape: Sequence[int], initializer: bytes = b"") -> bytes:
    """A model of one node, whose first input and output have a shape."""
    node = b"".join(wire.bytes_field(1, name) for name in inputs) + wire.bytes_field(2, output) + wire.bytes_field(4, op)
    graph = wire.bytes_field(1, node) + wire.bytes_field(2, op) + initializer
    graph += wire.bytes_field(11, _value(inputs[0], shape)) + wire.bytes_field(12, _value(output, shape))
    return wire.number_field(1, 8) + wire.bytes_field(7, graph) + wire.bytes_field(8, wire.number_field(2, 13))


def _sigmoid() -> bytes:
    return _model(b"Sigmoid", [b"x"], b"y", (3, 4, 5))


def _mul() -> bytes:
    factors = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    return _model(b"Mul", [b"X", b"W"], b"Y", (3, 2), wire.bytes_field(5, tensor("W", factors)))


_MADE: dict[str, Callable[[], bytes]] = {"sigmoid.onnx": _sigmoid, "mul_1.onnx": _mul}
_folder: list[str] = []


def get_example(name: str) -> str:
    """The path of an example."""
    installed = importlib.util.find_spec("onnxruntime")
    for place in (installed.submodule_search_locations or []) if installed else []:
        path = os.path.join(place, "datasets", name)
        if os.path.isfile(path):
            return path
    if name not in _MADE:
        raise FileNotFoundError("Unable to find example '%s'; there are %s" % (name, ", ".join(sorted(_MADE))))
    if not _folder:
        _folder.append(tempfile.mkdtemp(prefix="assay-examples-"))
        atexit.register(shutil.rmtree, _folder[0], True)
    path = os.path.join(_folder[0], name)
    if not os.path.exists(path):
        with open(path, "wb") as file:
            file.write(_MADE[name]())
    return path
