"""A Polygraphy runner on an engine, and a loader of engines."""
from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Any, Mapping, Optional

from polygraphy import util  # type: ignore[import-not-found, import-untyped, unused-ignore]
from polygraphy.backend.base import BaseLoader, BaseRunner  # type: ignore[import-not-found, import-untyped, unused-ignore]
from polygraphy.common import TensorMetadata  # type: ignore[import-not-found, import-untyped, unused-ignore]
from polygraphy.datatype import DataType  # type: ignore[import-not-found, import-untyped, unused-ignore]
from polygraphy.logger import G_LOGGER  # type: ignore[import-not-found, import-untyped, unused-ignore]

from .. import engine as engines
from .. import model as models
from ..errors import AssayError
from ..values import ValueInfo


class EngineFromModel(BaseLoader):  # type: ignore[misc, unused-ignore]
    """Builds an engine of a model, or loads a plan file.

    model      a path, bytes, an onnx.ModelProto, or a callable that gives one of them
    save_plan  where the plan is written; None: nowhere
    options    of assay.build(): target, precision, ...
    """

    def __init__(self, model: Any, save_plan: Optional[str] = None, **options: Any) -> None:
        self._model, self._save_plan, self._options = model, save_plan, options

    def call_impl(self) -> Any:
        """The engine."""
        model, _ = util.invoke_if_callable(self._model)
        folder = os.getcwd() if not isinstance(model, (str, os.PathLike)) else None
        try:
            loaded = models.load(model, folder=folder)
            engine = loaded if isinstance(loaded, engines.Engine) else engines.build(loaded, **self._options)
            if self._save_plan:
                engine.save(self._save_plan)
        except (AssayError, OSError) as e:
            G_LOGGER.critical("assay: %s" % e)  # which raises
        return engine


class AssayRunner(BaseRunner):  # type: ignore[misc, unused-ignore]
    """Runs an engine.

    engine  an assay.Engine, or a callable that gives one, such as an EngineFromModel
    """

    def __init__(self, engine: Any, name: Optional[str] = None) -> None:
        super().__init__(name=name, prefix="assay-runner")
        self._engine = engine

    def activate_impl(self) -> None:
        """Builds the engine and makes a context."""
        self.engine, _ = util.invoke_if_callable(self._engine)
        self.context = self.engine.context()

    def get_input_metadata_impl(self) -> Any:
        """Names, types and shapes of the inputs; open sizes by their names, or None."""
        meta = TensorMetadata()
        for info in self.engine.inputs:
            meta.add(info.name, dtype=_type(info), shape=None if info.shape is None else list(info.shape))
        return meta

    def infer_impl(self, feed_dict: Mapping[str, Any]) -> Any:
        """The outputs of a run, as torch tensors if inputs are."""
        torch = any(util.array.is_torch(value) for value in feed_dict.values())
        begin = time.perf_counter()
        try:
            out = self.context.run(dict(feed_dict))
        except AssayError as e:
            G_LOGGER.critical("assay: %s" % e)
        self.inference_time = time.perf_counter() - begin
        return OrderedDict((name, util.array.to_torch(out[name]) if torch else out[name]) for name in out.names)

    def deactivate_impl(self) -> None:
        """Frees the context and the engine."""
        self.context.close()
        del self.context, self.engine


def _type(info: ValueInfo) -> Any:
    if not info.elem:
        G_LOGGER.critical("assay: input '%s' is %s; Polygraphy's inputs are tensors" % (info.name, info.type))
    return DataType.from_dtype(info.elem, "onnx")
