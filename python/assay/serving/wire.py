"""Inference over HTTP as the Open Inference Protocol (v2) has it: JSON, and tensors as bytes after it (the binary data
extension, which tritonclient uses)."""
from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import datatypes
from .errors import Malformed
from .model import ServedModel
from .signature import Signature

try:  # much faster, and there where MLServer or KServe is
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]

HEADER_LENGTH = "inference-header-content-length"


class Wanted(NamedTuple):
    """An output that a request asks for. place: among those served; binary: as bytes after the JSON."""

    place: int
    binary: bool


class Call(NamedTuple):
    """A request, read. inputs: arrays by name, views of the body where they came as bytes; timeout_s: None: none."""

    id: Optional[str]
    inputs: Dict[str, Any]
    outputs: List[Wanted]
    timeout_s: Optional[float]


def loads(text: Any) -> Any:
    """JSON. Errors: Malformed."""
    try:
        return orjson.loads(text) if orjson else json.loads(bytes(text))
    except (ValueError, RecursionError) as e:
        raise Malformed("the request is not JSON: %s" % e) from None


def dumps(value: Any) -> bytes:
    """JSON; numbers that are not finite are null."""
    if orjson:
        made: bytes = orjson.dumps(value)
        return made
    try:
        return json.dumps(value, allow_nan=False).encode()
    except ValueError:
        return json.dumps(_finite(value)).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))) else value


def _parameters(of: Any, what: str) -> Dict[str, Any]:
    given = of.get("parameters")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Malformed("%s: its parameters are not an object" % what)
    if "shared_memory_region" in given:
        raise Malformed("%s: tensors in shared memory are not supported" % what)
    return given


def timeout_of(parameters: Any) -> Optional[float]:
    """Seconds of the parameter 'timeout', which is in microseconds. Errors: Malformed."""
    timeout = parameters.get("timeout")
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout < 0:
        raise Malformed("parameter 'timeout' is %r; it is a number of microseconds" % (timeout,))
    return timeout / 1e6 or None  # 0: the server's


def read(signature: Signature, body: Any, header_length: Optional[str]) -> Call:
    """A body. header_length: that header, None if there is none. Errors: Malformed."""
    view = memoryview(body)
    length = len(view)
    if header_length is not None:
        if not header_length.isdigit() or int(header_length) > length:
            raise Malformed("%s is %r; the body has %d bytes" % (HEADER_LENGTH, header_length, length))
        length = int(header_length)
    head = loads(view[:length])
    if not isinstance(head, dict) or not isinstance(head.get("inputs"), list):
        raise Malformed("a request is an object with a list 'inputs'")
    parameters = _parameters(head, "the request")
    identity = head.get("id")
    if identity is not None and not isinstance(identity, str):
        raise Malformed("the request's id is not a string")
    inputs = _read_inputs(signature, head["inputs"], view[length:])
    return Call(identity, inputs, wanted(signature, head.get("outputs"), parameters), timeout_of(parameters))


def _read_inputs(signature: Signature, given: Sequence[Any], rest: memoryview) -> Dict[str, Any]:
    arrays: Dict[str, Any] = {}
    at = 0
    for item in given:
        if not isinstance(item, dict):
            raise Malformed("an input is not an object")
        tensor = signature.tensor(item.get("name"))  # type: ignore[arg-type]
        name = tensor.name
        if name in arrays:
            raise Malformed("input '%s' is there twice" % name)
        if item.get("datatype") != tensor.datatype:
            raise Malformed("input '%s' is %s; the request's is %s" % (name, tensor.datatype, item.get("datatype")))
        shape = datatypes.sizes_of(name, item.get("shape"))
        size = _parameters(item, "input '%s'" % name).get("binary_data_size")
        if size is None:
            if "data" not in item:
                raise Malformed("input '%s' has neither data nor a binary_data_size" % name)
            arrays[name] = datatypes.from_list(name, tensor.datatype, tensor.dtype, shape, item["data"])
            continue
        if isinstance(size, bool) or not isinstance(size, int) or size < 0 or at + size > len(rest):
            raise Malformed("input '%s': binary_data_size is %r; %d bytes are left" % (name, size, len(rest) - at))
        arrays[name] = datatypes.from_raw(name, tensor.datatype, tensor.dtype, shape, rest[at:at + size])
        at += size
    if at != len(rest):
        raise Malformed("%d bytes of the body belong to no input" % (len(rest) - at))
    return arrays


def wanted(signature: Signature, given: Any, parameters: Any) -> List[Wanted]:
    """The outputs that a request names, or all. Errors: Malformed."""
    binary = bool(parameters.get("binary_data_output", False))
    if not given:
        return [Wanted(place, binary) for place in range(len(signature.outputs))]
    if not isinstance(given, list) or not all(isinstance(o, dict) for o in given):
        raise Malformed("'outputs' is not a list of objects")
    found = []
    for item in given:
        of = _parameters(item, "output '%s'" % item.get("name"))
        if of.get("classification"):
            raise Malformed("output '%s': classification is not supported" % item.get("name"))
        found.append(Wanted(signature.output(item.get("name")), bool(of.get("binary_data", binary))))
    return found


def write(model: ServedModel, call: Call, outputs: Sequence[Any]) -> Tuple[List[Tuple[str, str]], List[Any]]:
    """Headers and the parts of a body, which share the outputs' memory."""
    described, parts = [], []  # type: List[Dict[str, Any]], List[Any]
    for want in call.outputs:
        tensor, array = model.signature.outputs[want.place], outputs[want.place]
        item: Dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(array.shape)}
        if want.binary:
            raw = datatypes.to_raw(array)
            item["parameters"] = {"binary_data_size": len(raw)}
            parts.append(raw)
        else:
            item["data"] = datatypes.to_list(array)
        described.append(item)
    answer: Dict[str, Any] = {"model_name": model.name, "model_version": model.version, "outputs": described}
    if call.id:
        answer["id"] = call.id
    head = dumps(answer)
    headers = [("content-type", "application/octet-stream" if parts else "application/json"),
               ("content-length", str(len(head) + sum(len(p) for p in parts)))]
    if parts:
        headers.append((HEADER_LENGTH, str(len(head))))
    return headers, [head] + parts
