"""A deployment for Ray Serve that speaks the Open Inference Protocol (v2) over HTTP:

    serve.run(AssayDeployment.bind({"resnet": "model.plan"}), route_prefix="/")
"""
from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

try:
    from ray import serve
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as e:
    raise ImportError("Ray Serve is missing (%s): pip install assay-engine[ray]" % e) from None

from ..errors import InvalidArgument
from .app import App
from .errors import Unavailable
from .repository import Repository
from .settings import Settings

Models = Mapping[str, Union[str, Mapping[str, Any]]]


def _source(name: str, given: Union[str, Mapping[str, Any]], settings: Optional[Mapping[str, Any]]) -> Tuple[str, str, Any]:
    """Path, version and settings of a model. Errors: InvalidArgument."""
    if isinstance(given, str):
        return given, "1", dict(settings or {})
    unknown = set(given) - {"path", "version", "settings"}
    if unknown or not isinstance(given.get("path"), str):
        raise InvalidArgument("model '%s' has %s; it takes path, version and settings" % (name, sorted(given)))
    return given["path"], str(given.get("version", "1")), {**dict(settings or {}), **dict(given.get("settings") or {})}


class AssayReplica:
    """What a replica runs; AssayDeployment is the deployment of it.

    models    {name: path}, or {name: {"path": ..., "version": ..., "settings": {...}}}
    settings  of all models: fields of assay.serving.Settings

    As user_config the same {"models": ..., "settings": ...} replaces models while requests come.
    """

    def __init__(self, models: Optional[Models] = None, settings: Optional[Mapping[str, Any]] = None) -> None:
        self._repository = Repository()
        self._loaded: Dict[str, Tuple[str, str, Any]] = {}
        self._app = App(self._repository, Settings.of(settings))
        self._change(models or {}, settings)

    def _change(self, models: Models, settings: Optional[Mapping[str, Any]]) -> None:
        """Loads what is new or other than before, and unloads what is not there any more."""
        wanted = {name: _source(name, given, settings) for name, given in models.items()}
        for name, source in wanted.items():
            if self._loaded.get(name) == source:
                continue
            self._repository.load(name, *source)
            before = self._loaded.get(name)
            if before and before[1] != source[1]:
                self._repository.unload(name, before[1])
            self._loaded[name] = source
        for name in [n for n in self._loaded if n not in wanted]:
            self._repository.unload(name)
            del self._loaded[name]

    async def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Ray Serve calls it with user_config."""
        await asyncio.get_running_loop().run_in_executor(None, self._change, config.get("models", {}),
                                                         config.get("settings"))

    def check_health(self) -> None:
        """Ray Serve calls it: a replica whose models are not ready is replaced."""
        broken = [m.name for m in self._repository.all() if not m.ready]
        if broken:
            raise Unavailable("not ready: %s" % ", ".join(broken))

    async def __call__(self, request: Request) -> Response:
        started: List[Any] = []
        parts: List[bytes] = []

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.append(message)
            else:
                parts.append(message.get("body", b""))
        await self._app(request.scope, request.receive, send)
        if not started:  # the client has gone
            return Response(status_code=499)
        answer = Response(b"".join(parts), started[0]["status"])
        answer.raw_headers = started[0]["headers"]
        return answer

    async def __del__(self) -> None:
        """Ray Serve awaits it when a replica ends: what runs is answered."""
        await self._repository.close()


# Requests gather in the model's own queue, so that they can be run together: Ray Serve's default would let 5 in.
AssayDeployment = serve.deployment(name="assay", max_ongoing_requests=256)(AssayReplica)
