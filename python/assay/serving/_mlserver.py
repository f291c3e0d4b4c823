"""MLServer's model class over a ServedModel."""
from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional

try:
    from mlserver import MLModel
    from mlserver.errors import MLServerError
    from mlserver.types import (InferenceRequest, InferenceResponse, MetadataModelResponse, MetadataTensor, Parameters,
                                ResponseOutput, TensorData)
    from mlserver.utils import get_model_uri
except ImportError as e:
    raise ImportError("MLServer is missing (%s): pip install assay-engine[mlserver]" % e) from None

from .. import AssayError
from . import datatypes, wire
from .errors import Failed, Malformed, RequestError, Unavailable
from .model import FILES, ServedModel
from .settings import Settings


class RuntimeFailure(MLServerError):  # type: ignore[misc]
    """A RequestError in MLServer's terms."""

    def __init__(self, error: RequestError) -> None:
        super().__init__(str(error), error.status)
        self.error = error


class ArrayRequest(InferenceRequest):  # type: ignore[misc]
    """A request whose tensors are arrays already. Made without validation."""

    model_config = {"arbitrary_types_allowed": True}
    call: Any = None


class ArrayResponse(InferenceResponse):  # type: ignore[misc]
    """A response whose tensors are arrays still."""

    model_config = {"arbitrary_types_allowed": True}
    call: Any = None
    served: Any = None
    arrays: Any = None


def array_request(call: wire.Call, headers: Dict[str, str]) -> ArrayRequest:
    """What MLServer's data plane passes to predict(): its middleware reads id, parameters and headers."""
    request: ArrayRequest = ArrayRequest.model_construct(
        id=call.id, parameters=Parameters.model_construct(headers=headers), inputs=[], outputs=None)
    request.call = call
    return request


class AssayRuntime(MLModel):  # type: ignore[misc]
    """Serves an ONNX model or a plan.

    parameters.uri       the file, or a folder with model.plan or model.onnx
    parameters.version   its version
    parameters.extra     fields of assay.serving.Settings, such as {"instances": 2, "build": {"precision": "bf16"}}

    MLServer's own max_batch_size and max_batch_time (in seconds) are taken as max_batch and max_delay_ms, unless
    `extra` says them. Runs are made in the server's process, where the contexts share the weights, whatever
    parallel_workers says.
    """

    def __init__(self, settings: Any) -> None:
        given = dict((settings.parameters.extra or {}) if settings.parameters else {})
        if settings.max_batch_size > 0:
            given.setdefault("max_batch", settings.max_batch_size)
        if settings.max_batch_time > 0:
            given.setdefault("max_delay_ms", settings.max_batch_time * 1e3)
        # MLServer must not put requests together as well, nor send them to processes of its own.
        settings.max_batch_size, settings.max_batch_time, settings.parallel_workers = 0, 0.0, 0
        super().__init__(settings)
        self._given = given
        self.served: Optional[ServedModel] = None
        from . import _mlserver_grpc, _mlserver_http
        _mlserver_http.install()
        _mlserver_grpc.install()

    async def load(self) -> bool:
        try:
            path = await get_model_uri(self._settings, list(FILES))
            settings = Settings.of(self._given)
            served = await asyncio.get_running_loop().run_in_executor(
                None, lambda: ServedModel(path, self.name, self.version or "", settings))
        except AssayError as e:
            raise MLServerError("model '%s' cannot be loaded: %s" % (self.name, e)) from e
        if not self._settings.platform:
            self._settings.platform = "assay"
        if self.version and not self._settings.versions:
            self._settings.versions = [self.version]
        # Not validated: MLServer has no BF16.
        self.inputs = [MetadataTensor.model_construct(**t.metadata()) for t in served.signature.inputs]
        self.outputs = [MetadataTensor.model_construct(**t.metadata()) for t in served.signature.outputs]
        self.served = served
        return True

    async def unload(self) -> bool:
        if self.served is not None:
            await asyncio.get_running_loop().run_in_executor(None, self.served.close)
        return True

    async def metadata(self) -> Any:
        answer = await super().metadata()
        return MetadataModelResponse.model_construct(**{k: v for k, v in dict(answer).items() if v is not None})

    # ---- requests -------------------------------------------------------------------------------

    async def predict(self, payload: Any) -> Any:
        try:
            served = self.served
            if served is None:
                raise Unavailable("model '%s' is not loaded" % self.name)
            call = payload.call if isinstance(payload, ArrayRequest) else self._read(served, payload)
            outputs = await served.infer(call.inputs, call.timeout_s)
        except RequestError as e:
            raise RuntimeFailure(e) from e
        if not isinstance(payload, ArrayRequest):
            return self._plain(served, call, outputs)
        response = ArrayResponse.model_construct(model_name=self.name, model_version=self.version, id=call.id,
                                                 parameters=None, outputs=[])
        response.call, response.served, response.arrays = call, served, outputs
        return response

    def _read(self, served: ServedModel, payload: Any) -> wire.Call:
        """A request of MLServer's own kind, with its elements in lists: of its other front ends and its caches."""
        arrays: Dict[str, Any] = {}
        for item in payload.inputs:
            tensor = served.signature.tensor(item.name)
            if str(item.datatype) != tensor.datatype:
                raise Malformed("input '%s' is %s; the request's is %s" % (item.name, tensor.datatype, item.datatype))
            shape = datatypes.sizes_of(item.name, list(item.shape))
            data = item.data.root if isinstance(item.data, TensorData) else item.data
            arrays[item.name] = datatypes.from_list(item.name, tensor.datatype, tensor.dtype, shape, data)
        named = [{"name": o.name} for o in payload.outputs or []]
        parameters = payload.parameters.model_dump() if payload.parameters else {}
        return wire.Call(payload.id, arrays, wire.wanted(served.signature, named, {}), wire.timeout_of(parameters))

    def _plain(self, served: ServedModel, call: wire.Call, outputs: List[Any]) -> Any:
        each = []
        for want in call.outputs:
            tensor, array = served.signature.outputs[want.place], outputs[want.place]
            each.append(ResponseOutput.model_construct(name=tensor.name, datatype=tensor.datatype,
                                                       shape=list(array.shape),
                                                       data=TensorData.model_construct(root=datatypes.to_list(array))))
        return InferenceResponse.model_construct(model_name=self.name, model_version=self.version, id=call.id,
                                                 outputs=each)


def plain(response: ArrayResponse, runtime: AssayRuntime) -> Any:
    """A response with lists, for what cannot use arrays."""
    return runtime._plain(response.served, response.call, response.arrays)


async def infer(data_plane: Any, name: str, version: Optional[str], runtime: AssayRuntime, call: wire.Call,
                headers: Dict[str, str]) -> ArrayResponse:
    """A request through MLServer's data plane: its metrics, headers and events. One that came while its model was being
    replaced goes to the successor. Errors: RequestError, MLServerError."""
    while True:
        try:
            response: ArrayResponse = await data_plane.infer(array_request(call, headers), name, version)
            return response
        except RuntimeFailure as e:
            successor = await data_plane._model_registry.get_model(name, version)
            if not isinstance(e.error, Unavailable) or successor is runtime or not isinstance(successor, AssayRuntime):
                raise e.error from None
            runtime = successor


def served_of(runtime: AssayRuntime) -> ServedModel:
    """What a runtime serves. Errors: Unavailable."""
    if runtime.served is None or not runtime.ready:
        raise Unavailable("model '%s' is not ready" % runtime.name)
    return runtime.served


__all__ = ["AssayRuntime", "ArrayRequest", "ArrayResponse", "Failed", "infer", "plain", "served_of"]
