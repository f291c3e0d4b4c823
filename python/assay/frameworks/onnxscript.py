"""Models written in ONNX Script."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ._common import ExportError, first_reason, loaded, need

if TYPE_CHECKING:
    from .. import Model


def from_onnxscript(function: Any, **options: Any) -> Model:
    """A function of ONNX Script as an assay.Model.

    function  what @onnxscript.script() made, with annotated inputs and outputs (FLOAT["N", 16]), or a model of onnx_ir
    options   those of its to_model_proto(): input_types, output_types, opset_version, functions, ...
    """
    onnxscript = need("onnxscript", "onnxscript")
    if isinstance(function, onnxscript.ir.Model):
        return loaded(onnxscript.ir.to_proto(function))
    if not isinstance(function, onnxscript.OnnxFunction):
        raise InvalidArgument(f"function is a {type(function).__name__}; pass what @onnxscript.script() made of one, or an onnx_ir.Model")
    try:
        proto = function.to_model_proto(**options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ExportError(f"'{function.name}' is not a model: {first_reason(error)}") from error
    return loaded(proto)
