"""Profiles of a session's runs, written as a Chrome trace."""
from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

from ..context import Context


class Trace:
    """Events since the session began: its making, its runs, their layers. Times in microseconds."""

    def __init__(self, prefix: str, provider: str) -> None:
        self.start_ns = time.time_ns()
        self._prefix, self._provider = prefix, provider
        self._zero = time.perf_counter_ns()
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._written = False

    def now(self) -> int:
        """Nanoseconds since the session began."""
        return time.perf_counter_ns() - self._zero

    def session(self, name: str, begin: int, end: int) -> None:
        """An event of the session as a whole."""
        self._add("Session", name, begin, end - begin, {})

    def run(self, context: Context) -> None:
        """A run of a context, which has just ended, and its layers."""
        layers, end = context.layers(), self.now()
        begin = max(0, end - max((layer.start_ns + layer.duration_ns for layer in layers), default=0))
        for index, layer in enumerate(layers):
            name = layer.name or "%s_%d" % (layer.op, index)
            self._add("Node", "%s_kernel_time" % name, begin + layer.start_ns, layer.duration_ns,
                      {"op_name": layer.op, "provider": self._provider, "node_index": str(index), "tactic": layer.tactic,
                       "format": layer.format})
        self.session("SequentialExecutor::Execute", begin, end)
        self.session("model_run", begin, end)

    def _add(self, category: str, name: str, begin: int, duration: int, details: dict[str, str]) -> None:
        with self._lock:
            self._events.append({"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(),
                                 "dur": duration // 1000, "ts": begin // 1000, "ph": "X", "name": name, "args": details})

    def write(self) -> str:
        """Writes the file, once, and gives its path."""
        if self._written:
            return ""
        self._written = True
        moment = self.start_ns // 1_000_000
        path = "%s_%s_%03d.json" % (self._prefix, time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(moment // 1000)),
                                    moment % 1000)
        with self._lock:
            text = "[\n%s\n]\n" % ",\n".join(json.dumps(event) for event in self._events)
        temporary = "%s.%d.part" % (path, os.getpid())
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
        return path
