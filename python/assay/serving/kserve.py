"""The model class for KServe: kserve.ModelServer().start([AssayModel("resnet", "model.plan")])."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

try:
    from fastapi import HTTPException
    from grpc import StatusCode
    from grpc_interceptor.exceptions import GrpcException
    from kserve import InferOutput, InferResponse, Model
    from kserve.errors import InvalidInput
except ImportError as e:
    raise ImportError("KServe is missing (%s): pip install assay-engine[kserve]" % e) from None

from ..errors import Unsupported
from . import datatypes, wire
from .errors import GRPC, Malformed, RequestError, TooLarge, Unavailable
from .model import ServedModel
from .settings import Settings


class AssayModel(Model):  # type: ignore[misc]
    """Serves an ONNX model or a plan by KServe's ModelServer.

    path      the file, or a folder with model.plan or model.onnx
    settings  a dict of fields of assay.serving.Settings, or one
    version   of answers and metrics

    load() loads and warms the model, beside the old one where it is called again; stop() drains it.
    """

    def __init__(self, name: str, path: str, settings: Optional[Mapping[str, Any]] = None, version: str = "1") -> None:
        super().__init__(name)
        self._path, self._version = path, version
        self._settings = settings if isinstance(settings, Settings) else Settings.of(settings)
        self.served: Optional[ServedModel] = None

    def load(self) -> bool:
        new = ServedModel(self._path, self.name, self._version, self._settings)
        for t in new.signature.inputs + new.signature.outputs:
            if t.datatype == "BF16":
                new.close(0)
                raise Unsupported("'%s' is BF16, which KServe does not know" % t.name)
        old, self.served = self.served, new
        if old is not None:
            old.close()
        self.ready = True
        return True

    def start(self) -> None:
        if self.served is None:
            self.load()

    def stop(self) -> None:
        self.ready = False
        if self.served is not None:
            self.served.close()

    async def get_input_types(self) -> List[Dict[str, Any]]:
        return [t.metadata() for t in self._loaded().signature.inputs]

    async def get_output_types(self) -> List[Dict[str, Any]]:
        return [t.metadata() for t in self._loaded().signature.outputs]

    def _loaded(self) -> ServedModel:
        if self.served is None:
            raise Unavailable("model '%s' is not loaded" % self.name)
        return self.served

    # ---- requests -------------------------------------------------------------------------------

    async def predict(self, payload: Any, headers: Optional[Dict[str, str]] = None,
                      response_headers: Optional[Dict[str, str]] = None) -> Any:
        try:
            served = self._loaded()
            call = self._read(served, payload)
            try:
                outputs = await served.infer(call.inputs, call.timeout_s)
            except Unavailable:
                successor = self._loaded()
                if successor is served:
                    raise
                served = successor
                outputs = await served.infer(call.inputs, call.timeout_s)
        except RequestError as e:
            raise _failure(e, bool(getattr(payload, "from_grpc", False))) from e
        each = []
        for want in call.outputs:
            tensor, array = served.signature.outputs[want.place], outputs[want.place]
            if tensor.datatype == "BYTES":
                array = _bytes(array)
            made = InferOutput(tensor.name, list(array.shape), tensor.datatype, array)
            if payload.from_grpc:  # bytes: KServe cannot make its message of an array
                made.set_data_from_numpy(array, binary_data=True)
            each.append(made)
        return InferResponse(payload.id or "", self.name, each, model_version=self._version,
                             from_grpc=payload.from_grpc, use_binary_outputs=payload.use_binary_outputs,
                             requested_outputs=payload.request_outputs)

    def _read(self, served: ServedModel, payload: Any) -> wire.Call:
        if not hasattr(payload, "inputs"):
            raise Malformed("the model takes requests of the protocol's version 2: /v2/models/%s/infer" % self.name)
        signature, size = served.signature, 0
        arrays: Dict[str, Any] = {}
        for item in payload.inputs:
            tensor = signature.tensor(item.name)
            if item.datatype != tensor.datatype:
                raise Malformed("input '%s' is %s; the request's is %s" % (item.name, tensor.datatype, item.datatype))
            if item.name in arrays:
                raise Malformed("input '%s' is there twice" % item.name)
            shape = datatypes.sizes_of(item.name, list(item.shape))
            raw = item._raw_data
            if raw is not None:
                size += len(raw)
                if size > served.settings.max_request_bytes:
                    raise TooLarge("the tensors have more than %d bytes" % served.settings.max_request_bytes)
                arrays[item.name] = datatypes.from_raw(item.name, tensor.datatype, tensor.dtype, shape, raw)
            else:
                arrays[item.name] = datatypes.from_list(item.name, tensor.datatype, tensor.dtype, shape, item.data)
        named = [{"name": o.name} for o in payload.request_outputs or []]
        return wire.Call(payload.id, arrays, wire.wanted(signature, named, {}), _timeout(payload.parameters))


def _timeout(parameters: Any) -> Optional[float]:
    """Parameters come as numbers over HTTP, and as messages over gRPC."""
    given = dict(parameters or {}).get("timeout")
    if given is not None and hasattr(given, "WhichOneof"):
        kind = given.WhichOneof("parameter_choice")
        given = getattr(given, kind) if kind else None
    return wire.timeout_of({"timeout": given})


def _bytes(array: Any) -> Any:
    """Strings as KServe writes them."""
    made = array.copy()
    made.reshape(-1)[:] = [datatypes.encoded(t) for t in array.reshape(-1)]
    return made


def _failure(error: RequestError, grpc: bool) -> Exception:
    """A RequestError in KServe's terms."""
    failure: Exception = InvalidInput(str(error))
    if grpc:
        failure = GrpcException(StatusCode[GRPC.get(type(error), "INTERNAL")], str(error))
    elif error.status != 400:
        failure = HTTPException(error.status, str(error))
    return failure
