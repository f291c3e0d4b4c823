"""A server of MLServer's for given models, which answers what runs before it ends."""
from __future__ import annotations

import asyncio
import contextlib
import math
import os
from typing import Any, Dict, List, Sequence, Tuple

from ._mlserver import AssayRuntime
from .settings import Settings

try:
    import mlserver.metrics.server
    import mlserver.rest.server
    from mlserver import MLServer
    from mlserver import Settings as ServerSettings
    from mlserver.errors import ModelNotFound
    from mlserver.repository import ModelRepository
    from mlserver.settings import ModelParameters, ModelSettings
    from mlserver.utils import install_uvloop_event_loop
except ImportError as e:
    raise ImportError("MLServer is missing (%s): pip install assay-engine[mlserver]" % e) from None

_given: List[Tuple[Tuple[str, str, str], Dict[str, Any]]] = []


def _model(name: str, version: str, path: str, settings: Dict[str, Any]) -> Any:
    return ModelSettings(name=name, implementation=AssayRuntime,
                         parameters=ModelParameters(uri=os.path.abspath(path), version=version, extra=dict(settings)))


class GivenModels(ModelRepository):  # type: ignore[misc]
    """The models of the command line, which clients may unload and load again."""

    def __init__(self, root: str) -> None:
        self._root = root

    async def list(self) -> List[Any]:
        return [_model(*which, settings) for which, settings in _given]

    async def find(self, name: str) -> List[Any]:
        found = [_model(*which, settings) for which, settings in _given if which[0] == name]
        if not found:
            raise ModelNotFound(name)
        return found


class Server(MLServer):  # type: ignore[misc]
    """MLServer, which on TERM or INT answers what came before, for drain_s at most, and only then unloads models."""

    drain_s = 30.0
    failed = False
    _stopping = False

    async def start(self, models_settings: Sequence[Any] = ()) -> None:
        rest = self._rest_server
        self._http_ended = asyncio.Event()
        start, rest._get_config = rest.start, _configured(rest._get_config, self.drain_s)
        self._metrics_server._get_config = _configured(self._metrics_server._get_config, 1)

        async def to_the_end() -> None:
            try:
                await start()
            finally:
                self._http_ended.set()

        rest.start = to_the_end
        await super().start(list(models_settings))

    async def stop(self, sig: Any = None) -> None:
        if self._stopping:
            return
        self._stopping = True
        self.failed = sig is None  # a model did not load
        await self._rest_server.stop(sig)
        await asyncio.gather(self._grpc_server._server.stop(grace=self.drain_s), self._http_ended.wait())
        models = list(await self._model_registry.get_models())
        await asyncio.gather(*[m.unload() for m in models])
        await self._metrics_server.stop(sig)


def _configured(get_config: Any, patience_s: float) -> Any:
    """A uvicorn.Config without a line for each request, and with an end of patience at the end."""
    def config() -> Any:
        made = get_config()
        made.access_log, made.timeout_graceful_shutdown = False, math.ceil(patience_s)
        return made
    return config


def _leave_signals() -> None:
    """uvicorn would take the signals for itself; they are MLServer's."""
    for module in (mlserver.rest.server, mlserver.metrics.server):
        module._NoSignalServer.capture_signals = lambda self: contextlib.nullcontext()


def serve(models: Sequence[Tuple[str, str, str]], settings: Dict[str, Any], args: Any) -> int:
    """Serves until TERM or INT. Returns the exit code."""
    limits = Settings.of(settings)
    _given[:] = [(which, settings) for which in models]
    install_uvloop_event_loop()
    _leave_signals()
    return asyncio.run(_serve(limits, args))


async def _serve(limits: Settings, args: Any) -> int:
    server = Server(ServerSettings(
        debug=False, parallel_workers=0, host=args.host, http_port=args.http_port, grpc_port=args.grpc_port,
        metrics_port=args.metrics_port, server_name="assay", gzip_enabled=False,
        grpc_max_message_length=limits.max_request_bytes + (1 << 20),
        model_repository_implementation="assay.serving._mlserver_start.GivenModels",
        extensions=["binary_tensor_data", "model_repository"]))
    server.drain_s = limits.drain_s
    await server.start(await GivenModels("").list())
    return 3 if server.failed else 0
