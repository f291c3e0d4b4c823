"""MLServer's gRPC method for inference, for models of AssayRuntime: tensors stay bytes, where MLServer makes lists of
numbers of them and back; BF16; deadlines; and a status for each reason."""
from __future__ import annotations

from typing import Any, Dict, Optional

import grpc
import numpy as np
from mlserver.errors import MLServerError
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc import utils
from mlserver.grpc.converters import ModelInferResponseConverter
from mlserver.grpc.servicers import InferenceServicer

from . import datatypes, wire
from ._mlserver import ArrayResponse, AssayRuntime, array_request, served_of
from .errors import GRPC, Malformed, RequestError, TooLarge
from .model import ServedModel

# Where elements lie that do not come as bytes.
FIELDS = {"BOOL": "bool_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
          "UINT64": "uint64_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
          "INT64": "int64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents"}


def install() -> None:
    """Takes over requests for models that are AssayRuntime; others stay MLServer's. May be called again."""
    if getattr(InferenceServicer._InsertHeaders, "of_assay", False):
        return
    for error, name in GRPC.items():
        utils.STATUS_CODE_MAPPING.setdefault(error.status, grpc.StatusCode[name])
    insert_headers, from_types = InferenceServicer._InsertHeaders, ModelInferResponseConverter.from_types

    def request_of(servicer: Any, request: Any, context: Any) -> Any:
        plane = servicer._data_plane
        runtime = _runtime(plane, request.model_name, request.model_version)
        if runtime is None or plane._response_cache is not None:
            return insert_headers(servicer, request, context)
        headers = utils.to_headers(context)
        try:
            call = read(served_of(runtime), request, context.time_remaining())
        except RequestError as e:
            raise MLServerError(str(e), e.status) from e
        return array_request(call, headers)

    def response_of(cls: Any, response: Any, use_raw: bool = False) -> Any:
        if isinstance(response, ArrayResponse):
            return write(response, use_raw)
        return from_types(response, use_raw=use_raw)

    request_of.of_assay = True  # type: ignore[attr-defined]
    InferenceServicer._InsertHeaders = request_of
    ModelInferResponseConverter.from_types = classmethod(response_of)


def _runtime(plane: Any, name: str, version: str) -> Optional[AssayRuntime]:
    """The model if it is one of ours."""
    versions = plane._model_registry._models.get(name)
    model = versions._find_model(version or None) if versions else None
    return model if isinstance(model, AssayRuntime) else None


def _parameters(given: Any) -> Dict[str, Any]:
    """Values by name; a choice that is not set is None."""
    found: Dict[str, Any] = {}
    for name, value in given.items():
        kind = value.WhichOneof("parameter_choice")
        found[name] = getattr(value, kind) if kind else None
    return found


def read(served: ServedModel, request: Any, remaining_s: Optional[float]) -> wire.Call:
    """A request. remaining_s: until the call's deadline; None: it has none. Errors: RequestError."""
    signature, raw = served.signature, request.raw_input_contents
    if request.ByteSize() > served.settings.max_request_bytes:
        raise TooLarge("the request has %d bytes; %d are allowed" % (request.ByteSize(),
                                                                    served.settings.max_request_bytes))
    arrays: Dict[str, Any] = {}
    if raw and len(raw) != len(request.inputs):
        raise Malformed("there are %d raw_input_contents for %d inputs" % (len(raw), len(request.inputs)))
    for n, item in enumerate(request.inputs):
        tensor = signature.tensor(item.name)
        if item.name in arrays:
            raise Malformed("input '%s' is there twice" % item.name)
        if item.datatype != tensor.datatype:
            raise Malformed("input '%s' is %s; the request's is %s" % (item.name, tensor.datatype, item.datatype))
        shape = datatypes.sizes_of(item.name, list(item.shape))
        if "shared_memory_region" in item.parameters:
            raise Malformed("input '%s': tensors in shared memory are not supported" % item.name)
        if raw:
            arrays[item.name] = datatypes.from_raw(item.name, tensor.datatype, tensor.dtype, shape, raw[n])
        elif tensor.datatype not in FIELDS:
            raise Malformed("input '%s': %s comes in raw_input_contents only" % (item.name, tensor.datatype))
        else:
            data = getattr(item.contents, FIELDS[tensor.datatype])
            elements = list(data) if tensor.datatype == "BYTES" else np.array(data)
            arrays[item.name] = datatypes.from_list(item.name, tensor.datatype, tensor.dtype, shape, elements)
    named = [{"name": o.name, "parameters": _parameters(o.parameters)} for o in request.outputs]
    timeout = wire.timeout_of(_parameters(request.parameters))
    times = [t for t in (timeout, remaining_s) if t]
    return wire.Call(request.id or None, arrays, wire.wanted(signature, named, {}), min(times) if times else None)


def write(response: ArrayResponse, use_raw: bool) -> Any:
    """An answer. use_raw: tensors as bytes, as the request's were; types that have no other form are bytes anyway."""
    served, call = response.served, response.call
    message = pb.ModelInferResponse(model_name=response.model_name, model_version=response.model_version or "",
                                    id=response.id or "")
    raw = use_raw or any(served.signature.outputs[w.place].datatype not in FIELDS for w in call.outputs)
    for want in call.outputs:
        tensor, array = served.signature.outputs[want.place], response.arrays[want.place]
        item = message.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=array.shape)
        if raw:
            message.raw_output_contents.append(bytes(datatypes.to_raw(array)))
            continue
        elements = [datatypes.encoded(t) for t in array.reshape(-1)] if tensor.datatype == "BYTES" else (
            array.reshape(-1).tolist())
        getattr(item.contents, FIELDS[tensor.datatype]).extend(elements)
    return message


__all__ = ["install", "read", "write"]
