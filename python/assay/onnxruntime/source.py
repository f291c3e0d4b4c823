"""Where a session's model comes from: a file, bytes, or a plan file; and engines of it with changes."""
from __future__ import annotations

import mmap
import os
from dataclasses import replace
from typing import Any, Optional, Union

import numpy as np

from .. import _library
from .. import engine as engines
from .. import model as models
from ..errors import AssayError
from . import modelfile, rewrite, wire
from .elements import ELEMENTS
from .enums import GraphOptimizationLevel
from .errors import InvalidArgument, InvalidProtobuf, NoSuchFile, NotImplemented
from .modelfile import Dim, ModelFile, Value
from .options import SessionOptions
from .refusals import refused
from .rewrite import Changes

_FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"


MAPPED_BYTES = 1 << 28  # files from this size on are mapped: they must not change while the session lives


def _contents(path: str) -> wire.Buffer:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < MAPPED_BYTES:
            return memoryview(file.read())
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class Source:
    """A model that is read once for what it tells, and as often as engines with other changes are wanted.

    engine  that of a plan file; None: the model is ONNX
    file    what the ONNX file tells
    """

    def __init__(self, model: Union[str, bytes], options: SessionOptions) -> None:
        self.path: Optional[str] = model if isinstance(model, str) else None
        self.options, self.engine = options, None
        self._prefix = "Load model from %s failed:" % model if isinstance(model, str) else ""
        if options._entries.get("session.load_model_format", "ONNX").upper() == "ORT" or str(self.path).endswith(".ort"):
            raise NotImplemented.of(self._prefix + "files in ONNX Runtime's own format cannot be read; give the ONNX model")
        self._buffer = self._open(model)
        if self.path and self._buffer and _library.lib.assay_engine_is_plan_file(os.fsencode(self.path)):
            self.engine = engines.Engine.load(self.path)
            self.file = _file_of_engine(self.engine)
            return
        self.file = self._read()
        self.fixed = Changes(
            initializers={n: np.ascontiguousarray(v.numpy()) for n, v in options.initializers.items()},
            external=options.external_files, sizes=options.free_by_name, by_denotation=options.free_by_denotation)

    def _open(self, model: Union[str, bytes]) -> wire.Buffer:
        if isinstance(model, bytes):
            return memoryview(model)
        if not os.path.exists(model):
            raise NoSuchFile.of("Load model from %s failed:Load model %s failed. File doesn't exist" % (model, model))
        try:
            return _contents(model)
        except (OSError, ValueError):
            raise InvalidProtobuf.of(self._prefix + "Protobuf parsing failed.") from None

    def _read(self) -> ModelFile:
        try:
            file = modelfile.read(self._buffer)
        except wire.Malformed:
            raise InvalidProtobuf.of(self._prefix + "Protobuf parsing failed." if self.path else
                                     "Failed to load model because protobuf parsing failed.") from None
        if not file.has_graph:
            raise InvalidArgument.of(self._prefix + "No graph was found in the protobuf.")
        return file

    def load(self, changes: Changes) -> models.Model:
        """The model with changes, besides those of the session's options."""
        changes = replace(changes, initializers=self.fixed.initializers, external=self.fixed.external,
                          sizes=self.fixed.sizes, by_denotation=self.fixed.by_denotation)
        folder = self.options._entries.get(_FOLDER_ENTRY)
        if self.path and not changes.any() and not folder and len(self._buffer) >= MAPPED_BYTES:
            return models.as_model(self.path)
        data = rewrite.apply(self._buffer, changes) if changes.any() else bytes(self._buffer)
        beside = os.path.dirname(os.path.abspath(self.path)) if self.path else os.getcwd()
        loaded = models.load(data, folder=folder or beside)
        assert isinstance(loaded, models.Model)
        return loaded

    def build(self, target: str, seed: int, changes: Changes) -> engines.Engine:
        """An engine for a target. What is wrong with the model is said by ONNX Runtime's classes."""
        if self.engine:
            return self.engine
        plain = self.options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            return engines.build(self.load(changes), target=target, fusion=not plain, seed=seed)
        except AssayError as e:
            raise refused(e, self.file, self._prefix) from None

    def declared(self, value: Value) -> Value:
        """A value as it is declared, with the sizes that the options override."""
        return value if self.engine else modelfile.sized(value, self.fixed.size)


def described(info: Any, declared: Optional[Value], names: set[str]) -> Value:
    """An output as ONNX Runtime tells of it: sizes as declared, where these say nothing as inferred.

    names  of dimensions that the model declares; others are the inference's own
    """
    if info.kind != "tensor":
        return declared or Value(info.name, info.type)
    inferred: Optional[list[Dim]] = None
    if info.shape is not None:
        inferred = [size if isinstance(size, int) or size in names else None for size in info.shape]
    shape = declared.shape if declared else None
    if shape is None:
        shape = inferred
    elif inferred is not None and len(inferred) == len(shape):
        shape = [own if isinstance(own, int) else size if isinstance(size, int) or own is None else own
                 for own, size in zip(shape, inferred)]
    return Value(info.name, "tensor(%s)" % ELEMENTS.get(info.elem, "undefined"), shape)


def _names(infos: Any) -> set[str]:
    return {size for info in infos for size in info.shape or () if isinstance(size, str)}


def _file_of_engine(engine: engines.Engine) -> ModelFile:
    """What a plan tells of its model: inputs and outputs, and nothing of where it comes from."""
    return ModelFile(ir_version=4, graph_name="", inputs=[described(i, None, _names(engine.inputs)) for i in engine.inputs],
                     outputs=[described(o, None, _names(engine.inputs)) for o in engine.outputs], has_graph=True)
