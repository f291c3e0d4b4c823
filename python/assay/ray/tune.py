"""assay.tune over the cluster."""
from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_size_t, c_void_p
from typing import Any, Dict, List, Optional

from .. import _library as L
from .._calls import Progress, Reports, long_call
from .._library import STATUS, check as ok, lib
from .._samples import golden_of, samples_of
from .._tune import TuneResult, create_tune, tune_result
from .._version import version
from ..errors import InvalidArgument
from .check import WRITE, collect_bytes, golden_here
from .checkpoint import Checkpoint, digest
from .cluster import Source, Task, model_here, parts_of, run, sources_of
from .shards import Shard, shards_of

_ELSEWHERE = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)
L.declare({
    "assay_tune_run_part": (STATUS, [c_void_p, c_char_p, c_size_t, c_void_p, c_void_p, WRITE, c_void_p]),
    "assay_tune_add_part": (STATUS, [c_void_p, c_char_p, c_size_t]),
})


def trial(where: Any, key: str, assignment: bytes, inputs: List[str], golden: Optional[List[str]],
          options: Dict[str, Any]) -> bytes:
    """On a worker: what an assignment gives on some samples, as assay_tune_run_part() writes it."""
    model = model_here(where, key)
    handle, _ = create_tune(model, None, **options)
    samples = samples_of(model, inputs)
    told = golden_here(model, golden, samples)
    return collect_bytes(lambda write: lib.assay_tune_run_part(
        handle.value, assignment, len(assignment), samples.value, told.value if told else None, write, None))


class _Elsewhere:
    """Runs the assignments that the library asks about. What went wrong ends the tuning, and is raised there."""

    def __init__(self, source: Source, shards: List[Shard], options: Dict[str, Any], checkpoint: Checkpoint,
                 in_flight: Optional[int]) -> None:
        self._source, self._shards, self._options = source, shards, options
        self._checkpoint, self._in_flight = checkpoint, in_flight
        self.raised: Optional[BaseException] = None
        self._callback = _ELSEWHERE(self._call)
        self.address = ctypes.cast(self._callback, c_void_p)

    def _call(self, user: Any, data: int, size: int, parts: int) -> Any:
        try:
            self._run(ctypes.string_at(data, size), parts)
        except BaseException as error:
            self.raised = error
            return lib.assay_status_create(8, b"cancelled")
        return None

    def _run(self, assignment: bytes, parts: int) -> None:
        keys = [digest("tune", version(), self._source.digest, self._options, assignment, s.digest) for s in self._shards]
        run((Task(key, trial, (self._source.where, self._source.digest, assignment, s.inputs, s.golden, self._options))
             for key, s in zip(keys, self._shards)), self._checkpoint, self._in_flight)
        for part in parts_of(keys, self._checkpoint):
            ok(lib.assay_tune_add_part(parts, part, len(part)))


def _tune_one(source: Source, shards: List[Shard], options: Dict[str, Any], checkpoint: Checkpoint,
              in_flight: Optional[int], reports: Reports) -> TuneResult:
    elsewhere = _Elsewhere(source, shards, options, checkpoint, in_flight)
    handle, names = create_tune(source.model, reports, elsewhere=elsewhere.address, **options)
    samples = samples_of(source.model, [f for s in shards for f in s.inputs])
    golden = [f for s in shards for f in s.golden or []]
    told = golden_of(source.model, golden or None, samples)
    status = lib.assay_tune_run(handle.value, samples.value, told.value if told else None)
    if elsewhere.raised is not None:
        lib.assay_status_free(status)
        raise elsewhere.raised
    ok(status)
    return tune_result(handle, names, (samples, told, reports, elsewhere))


def tune(model: Any, data: Any, *, golden: Any = None, folder: Any = None, shard: int = 16, in_flight: Optional[int] = None,
         progress: Progress = None, **options: Any) -> Any:
    """assay.tune over the machines of a Ray cluster: the same assignments and the same result, to the bit.

    model, data, golden, folder, shard, in_flight  as of check(); a list of models gives a list
    options  those of assay.tune(), but for what is of one machine: inputs, shapes, timing_cache, and device="here"

    Workers run the assignments, on their shards; truth of the samples once, and the search, run here.
    """
    unknown = {"inputs", "shapes", "timing_cache"} & set(options)
    if unknown:
        raise InvalidArgument("assay.ray.tune takes no %s" % ", ".join(sorted(unknown)))
    if options.get("device") == "here":
        raise InvalidArgument("device 'here' measures one machine, not a cluster")
    sources, several = sources_of(model)
    for source in sources:  # what is wrong with the options shows here
        create_tune(source.model, None, **options)
    results = []
    with Checkpoint(folder) as checkpoint:
        shards = list(shards_of(data, golden, sources[0].model, shard, checkpoint))
        for source in sources:
            reports = Reports(progress)
            results.append(long_call(lambda: _tune_one(source, shards, options, checkpoint, in_flight, reports), reports))
    return results if several else results[0]
