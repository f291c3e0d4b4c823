"""Models and their versions, of which new ones take the place of old ones while requests come."""
from __future__ import annotations

import asyncio
import threading
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .errors import NotFound, Unavailable
from .model import ServedModel
from .wire import Call


def newest(versions: Mapping[str, Any]) -> str:
    """The version that a request without one gets: the highest number, else the last in the alphabet."""
    return max(versions, key=lambda v: (v.isdigit(), int(v) if v.isdigit() else 0, v))


class Repository:
    """Models by name and version. Threads: any; load() and unload() block while they load and drain."""

    def __init__(self) -> None:
        self._models: Dict[str, Dict[str, ServedModel]] = {}
        self._sources: Dict[Tuple[str, str], Tuple[str, Any]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def load(self, name: str, path: str, version: str = "1", settings: Any = None) -> ServedModel:
        """Loads and warms a model beside the one of that name and version, if there is one, which is replaced at once
        and then drained. Errors: assay.AssayError; then the old one goes on."""
        model = ServedModel(path, name, version, settings)
        with self._lock:
            closed = self._closed
            if not closed:
                old = self._models.setdefault(name, {}).get(version)
                self._models[name] = {**self._models[name], version: model}
                self._sources[name, version] = (path, settings)
        if closed:
            model.close(0)
            raise Unavailable("the server ends")
        if old:
            old.close()
        return model

    def reload(self, name: str) -> None:
        """Loads each version of a model again from where it was, unloaded ones as well. Errors: NotFound."""
        sources = [(v, path, s) for (n, v), (path, s) in list(self._sources.items()) if n == name]
        if not sources:
            raise NotFound("there is no model '%s'" % name)
        for version, path, settings in sources:
            self.load(name, path, version, settings)

    def unload(self, name: str, version: Optional[str] = None) -> None:
        """Takes a model, or a version of it, away and drains it. Errors: NotFound."""
        with self._lock:
            there = dict(self._models.get(name, {}))
            gone = there if version is None else {v: m for v, m in there.items() if v == version}
            if not gone:
                raise NotFound("there is no model '%s'%s" % (name, "" if version is None else " of version " + version))
            self._models[name] = {v: m for v, m in there.items() if v not in gone}
            if not self._models[name]:
                del self._models[name]
        for model in gone.values():
            model.close()

    def get(self, name: str, version: Optional[str] = None) -> ServedModel:
        """Errors: NotFound."""
        versions = self._models.get(name)
        if not versions:
            raise NotFound("there is no model '%s'" % name)
        found = versions.get(version or newest(versions))
        if found is None:
            raise NotFound("model '%s' has no version '%s'; it has %s" % (name, version, ", ".join(sorted(versions))))
        return found

    def all(self) -> List[ServedModel]:
        return [m for versions in list(self._models.values()) for m in versions.values()]

    def known(self) -> List[Tuple[str, str]]:
        """Names and versions, of unloaded models as well."""
        return sorted(self._sources)

    async def infer(self, name: str, version: Optional[str], call: Call) -> Tuple[ServedModel, List[Any]]:
        """Runs a request; one that came to a model while that was being replaced goes to its successor."""
        model = self.get(name, version)
        try:
            return model, await model.infer(call.inputs, call.timeout_s)
        except Unavailable:
            successor = self.get(name, version)
            if successor is model:
                raise
            return successor, await successor.infer(call.inputs, call.timeout_s)

    async def close(self) -> None:
        """Drains all models."""
        with self._lock:
            self._closed = True
        await asyncio.gather(*[asyncio.get_running_loop().run_in_executor(None, m.close) for m in self.all()])
