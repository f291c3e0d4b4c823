"""What the front doors share: lazy imports, errors, and the way from an export to a check."""
from __future__ import annotations

import importlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from ..errors import AssayError
from ._result import Arrays, Export, FrameworkCheck

if TYPE_CHECKING:
    from .. import Model


class ExportError(AssayError):
    """A framework's model that its exporter cannot turn into ONNX; the exporter's own error is __cause__."""


def need(module: str, extra: str) -> ModuleType:
    """Imports a module, or says in a line how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this needs {module.split('.')[0]} ({error}): pip install 'assay-engine[{extra}]'") from error


def loaded(proto: Any) -> Model:
    """An onnx.ModelProto as a model."""
    from .. import load

    return cast("Model", load(proto))


def check_export(make: Callable[[], Export], **options: Any) -> FrameworkCheck:
    """Exports and checks; options are those of assay.check."""
    from .. import check

    start = time.perf_counter()
    export = make()
    model = loaded(export.proto)
    exported = time.perf_counter()
    if len(export.inputs) > 1 and export.inner[0]:
        # Inner values are those of one sample, which only a file can say.
        with tempfile.TemporaryDirectory(prefix="assay-") as folder:
            path = os.path.join(folder, "inner.npz")
            _save(path, export.inner[0])
            result = check(model, inputs=export.inputs, golden=export.outputs, intermediates=path, **options)
    else:
        result = check(model, inputs=export.inputs, golden=export.golden(), **options)
    return FrameworkCheck(export, model, result, {"export": exported - start, "check": time.perf_counter() - exported})


def _save(path: str, arrays: Arrays) -> None:
    """As npz, which lacks numpy's newer floats: they fit into float32."""
    import numpy as np

    np.savez(path, **{name: array if array.dtype.isbuiltin else array.astype(np.float32) for name, array in arrays.items()})  # type: ignore[arg-type]


def first_reason(error: BaseException) -> str:
    """What stopped an exporter, in a line or two: the first cause, not the exporter's guide around it."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    lines = [line.strip() for line in re.sub(r"\x1b\[\d+m", "", str(first)).splitlines() if line.strip()]
    text = " ".join(lines[:3]).split("  [Caused by")[0] if lines else type(first).__name__
    return (text if len(text) <= 400 else text[:400] + " ...") + _place(first)


def _place(error: BaseException) -> str:
    """Where in the user's code an error arose: the last line of a traceback that is of no installed package."""
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return f" (at {frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line})" if frames else ""


def _is_users(path: str) -> bool:
    own = os.path.dirname(os.path.abspath(__file__))
    library = os.path.dirname(os.path.abspath(os.__file__))
    return not (path.startswith((own, library, "<")) or "site-packages" in path or "dist-packages" in path)


def value_shapes(proto: Any) -> dict[str, tuple[int | None, ...]]:
    """Shapes of a model's values that its exporter noted or that follow; None: a dimension that is not fixed."""
    onnx = need("onnx", "torch")
    graph = proto.graph
    if not graph.value_info and proto.ByteSize() < 1 << 31:
        graph = onnx.shape_inference.infer_shapes(proto).graph
    noted = [(value.name, value.type.tensor_type) for value in (*graph.value_info, *graph.output)]
    return {name: tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim)
            for name, kind in noted if kind.HasField("shape")}
