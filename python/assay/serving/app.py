"""The Open Inference Protocol (v2) over HTTP as an ASGI application, for servers that bring none: Ray Serve, uvicorn."""
from __future__ import annotations

import asyncio
import logging
import re
from typing import Any, Dict, List, Optional, Tuple

from .. import AssayError, __version__
from . import http, metrics, wire
from .errors import Failed, Malformed, NotFound, RequestError, Unavailable
from .repository import Repository
from .settings import Settings

log = logging.getLogger("assay.serving")
MODEL = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer))?")
CHANGE = re.compile(r"/v2/repository/models/([^/]+)/(load|unload)")
Answer = Tuple[int, Any]


class App:
    """Serves the models of a repository.

    limits  timeout_ms and max_request_bytes of bodies whose model is not known yet
    """

    def __init__(self, repository: Repository, limits: Optional[Settings] = None) -> None:
        self.repository = repository
        self.limits = limits or Settings()

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            await self._respond(scope, receive, send)
        except http.Disconnected:
            pass
        except RequestError as e:
            await http.send_error(send, e)
        except AssayError as e:
            await http.send_error(send, Failed(str(e)))
        except Exception as e:
            log.exception("a request failed")
            await http.send_error(send, Failed("%s: %s" % (type(e).__name__, e)))

    async def _lifespan(self, receive: http.Receive, send: http.Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.repository.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _respond(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        root = scope.get("root_path", "")
        path = scope["path"][len(root):] if root and scope["path"].startswith(root) else scope["path"]
        path = path.rstrip("/")
        method = scope["method"]
        model, change = MODEL.fullmatch(path), CHANGE.fullmatch(path)
        if method == "GET" and path == "/metrics":
            page = metrics.text()
            await http.send_parts(send, 200, [("content-type", "text/plain; version=0.0.4; charset=utf-8"),
                                              ("content-length", str(len(page)))], [page])
        elif method == "GET" and model and model[3] != "infer":
            await http.send_json(send, *self._model(*model.groups()))
        elif method == "GET":
            await http.send_json(send, *self._server(path))
        elif method == "POST" and model and model[3] == "infer":
            await self._infer(model[1], model[2], scope, receive, send)
        elif method == "POST" and (change or path == "/v2/repository/index"):
            body = await http.read_body(receive, http.headers_of(scope), self.limits.max_request_bytes,
                                        self.limits.timeout_ms / 1e3)
            wire.loads(body or b"{}")
            await http.send_json(send, 200, self._index() if not change else await self._change(change[1], change[2]))
        else:
            raise NotFound("there is nothing at %s %s" % (method, scope["path"]))

    def _server(self, path: str) -> Answer:
        if path == "/v2":
            return 200, {"name": "assay", "version": __version__,
                         "extensions": ["binary_tensor_data", "model_repository"]}
        if path == "/v2/health/live":
            return 200, {"live": True}
        if path == "/v2/health/ready":
            ready = all(m.ready for m in self.repository.all())
            return 200 if ready else 503, {"ready": ready}
        raise NotFound("there is nothing at %s" % path)

    def _model(self, name: str, version: Optional[str], what: Optional[str]) -> Answer:
        model = self.repository.get(name, version)
        if what == "ready":
            return 200 if model.ready else 503, {"name": name, "ready": model.ready}
        return 200, model.metadata()

    def _index(self) -> List[Dict[str, Any]]:
        ready = {(m.name, m.version) for m in self.repository.all() if m.ready}
        return [{"name": n, "version": v, "state": "READY" if (n, v) in ready else "UNAVAILABLE", "reason": ""}
                for n, v in self.repository.known()]

    async def _change(self, name: str, what: str) -> Dict[str, Any]:
        work = self.repository.reload if what == "load" else self.repository.unload
        try:
            await asyncio.get_running_loop().run_in_executor(None, work, name)
        except AssayError as e:
            raise Malformed("model '%s' cannot be loaded: %s" % (name, e)) from None
        return {}

    async def _infer(self, name: str, version: Optional[str], scope: http.Scope, receive: http.Receive,
                     send: http.Send) -> None:
        model = self.repository.get(name, version)
        if not model.ready:
            raise Unavailable("model '%s' is not ready" % name)
        headers = http.headers_of(scope)
        body = await http.read_body(receive, headers, model.settings.max_request_bytes, model.settings.timeout_ms / 1e3)
        call = wire.read(model.signature, body, headers.get(wire.HEADER_LENGTH))
        answered, outputs = await http.while_connected(receive, self.repository.infer(name, version, call))
        await http.send_parts(send, 200, *wire.write(answered, call, outputs))
