"""What Prometheus reads: requests, failures by reason, waiting, batches and computing, by model and version."""
from __future__ import annotations

import threading
from typing import Any, Dict, Optional

_BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SECONDS = (.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
_LABELS = ("model", "version")

_lock = threading.Lock()
_collectors: Optional[Dict[str, Any]] = None


def _registered() -> Dict[str, Any]:
    """The collectors, made with the first model: servers choose before that whether processes share them. Empty where
    prometheus_client is not installed."""
    global _collectors
    with _lock:
        if _collectors is None:
            try:
                from prometheus_client import Counter, Gauge, Histogram
            except ImportError:
                _collectors = {}
                return _collectors
            _collectors = {
                "requests": Counter("assay_requests", "Requests that came for a model", _LABELS),
                "failures": Counter("assay_request_failures", "Requests that got no answer, by reason",
                                    _LABELS + ("reason",)),
                "queue": Histogram("assay_queue_seconds", "Time that a request waited for its run", _LABELS,
                                   buckets=_SECONDS),
                "batch": Histogram("assay_batch_rows", "Rows of a run", _LABELS, buckets=_BATCH),
                "compute": Histogram("assay_compute_seconds", "Time that a run took", _LABELS, buckets=_SECONDS),
                "waiting": Gauge("assay_requests_waiting", "Requests that wait for their run", _LABELS,
                                 multiprocess_mode="livesum")}
        return _collectors


class Metrics:
    """The metrics of one version of a model. Threads: any."""

    def __init__(self, model: str, version: str) -> None:
        self._labels = (model, version)
        self._failures = _registered().get("failures")
        self._of = {name: c.labels(model, version) for name, c in _registered().items() if name != "failures"}

    def came(self) -> None:
        if self._of:
            self._of["requests"].inc()

    def failed(self, reason: str) -> None:
        if self._failures is not None:
            self._failures.labels(*self._labels, reason).inc()

    def ran(self, rows: int, seconds: float) -> None:
        if self._of:
            self._of["batch"].observe(rows)
            self._of["compute"].observe(seconds)

    def waited(self, seconds: float) -> None:
        if self._of:
            self._of["queue"].observe(seconds)

    def waiting(self, count: int) -> None:
        if self._of:
            self._of["waiting"].set(count)


def text() -> bytes:
    """All metrics of this process, as Prometheus reads them."""
    from prometheus_client import generate_latest
    _registered()
    page: bytes = generate_latest()
    return page
