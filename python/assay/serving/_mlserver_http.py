"""MLServer's HTTP route for inference, for models of AssayRuntime: it knows tensors as bytes (the protocol's binary data
extension, which MLServer lacks), limits bodies, and gives up requests whose clients have gone."""
from __future__ import annotations

import logging
from typing import Any

from mlserver.errors import MLServerError
from mlserver.rest.app import APIRoute
from mlserver.rest.endpoints import Endpoints, ModelRepositoryEndpoints

from . import http, wire
from ._mlserver import AssayRuntime, infer, served_of
from .errors import Failed, RequestError

log = logging.getLogger("assay.serving")


def install() -> None:
    """Takes over the routes of models that are AssayRuntime; others stay MLServer's. May be called again."""
    if getattr(APIRoute.handle, "of_assay", False):
        return
    original = APIRoute.handle

    async def handle(route: Any, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        endpoint = getattr(route.endpoint, "__func__", None)
        if endpoint is ModelRepositoryEndpoints.index:
            receive = _or_empty_object(receive)
        if endpoint is not Endpoints.infer or scope["method"] != "POST":
            await original(route, scope, receive, send)
            return
        plane = route.endpoint.__self__._data_plane
        try:
            model = await plane._model_registry.get_model(**_names(scope))
        except MLServerError as e:
            await http.send_json(send, e.status_code, {"error": str(e)})
            return
        if not isinstance(model, AssayRuntime) or plane._response_cache is not None:
            await original(route, scope, receive, send)
        else:
            await _respond(plane, model, scope, receive, send)

    handle.of_assay = True  # type: ignore[attr-defined]
    APIRoute.handle = handle


def _names(scope: http.Scope) -> Any:
    path = scope["path_params"]
    return {"name": path["model_name"], "version": path.get("model_version")}


def _or_empty_object(receive: http.Receive) -> http.Receive:
    """A body that is empty, as tritonclient sends it, where MLServer wants an object."""
    first = True

    async def received() -> Any:
        nonlocal first
        message = await receive()
        if first and message["type"] == "http.request" and not message.get("body") and not message.get("more_body"):
            message = {"type": "http.request", "body": b"{}", "more_body": False}
        first = False
        return message
    return received


async def _respond(plane: Any, runtime: AssayRuntime, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
    try:
        served = served_of(runtime)
        headers = http.headers_of(scope)
        body = await http.read_body(receive, headers, served.settings.max_request_bytes,
                                    served.settings.timeout_ms / 1e3)
        call = wire.read(served.signature, body, headers.get(wire.HEADER_LENGTH))
        response = await http.while_connected(receive, infer(plane, runtime=runtime, call=call, headers=headers,
                                                             **_names(scope)))
        extra = response.parameters.headers if response.parameters and response.parameters.headers else {}
        answer, parts = wire.write(response.served, call._replace(id=response.id), response.arrays)
        await http.send_parts(send, 200, answer + [(k.lower(), str(v)) for k, v in extra.items()], parts)
    except http.Disconnected:
        pass
    except RequestError as e:
        await http.send_error(send, e)
    except MLServerError as e:
        await http.send_json(send, e.status_code, {"error": str(e)})
    except Exception as e:
        log.exception("a request failed")
        await http.send_error(send, Failed("%s: %s" % (type(e).__name__, e)))
