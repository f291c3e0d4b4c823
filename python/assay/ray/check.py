"""assay.check over the cluster."""
from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_void_p
from typing import Any, Dict, List, Optional

from .. import _library as L
from .._calls import Progress, Reports, long_call
from .._check import CheckResult, check_result, create_check
from .._library import STATUS, check as ok, lib
from .._samples import golden_of, samples_of
from .._version import version
from ..errors import InvalidArgument, Unsupported
from .checkpoint import Checkpoint, digest
from .cluster import Source, Task, model_here, parts_of, run, sources_of
from .shards import Shard, shards_of

WRITE = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)
L.declare({
    "assay_check_add_samples": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "assay_check_save_part": (STATUS, [c_void_p, WRITE, c_void_p]),
    "assay_check_add_part": (STATUS, [c_void_p, c_char_p, c_size_t]),
    "assay_golden_count": (c_size_t, [c_void_p]),
})


def collect_bytes(call: Any) -> bytes:
    """What call(write) hands to a function of the library's report type."""
    got: List[bytes] = []

    def write(user: Any, data: int, size: int) -> None:
        got.append(ctypes.string_at(data, size))

    ok(call(WRITE(write)))
    return b"".join(got)


def golden_here(model: Any, files: Optional[List[str]], samples: L.Handle) -> Optional[L.Handle]:
    """On a worker: golden of these samples, one of its own for each.

    What one machine finds with other golden (by its contents, or of another shape) it finds in all samples together.
    """
    told = golden_of(model, files, samples)
    n, has = lib.assay_samples_count(samples.value), lib.assay_golden_count(told.value) if told else 0
    if told and has != n:
        names = ", ".join("'%s' %s" % (o.name, o.type) for o in model.outputs)
        raise Unsupported("golden in '%s' has %d samples with the names and shapes of outputs, and the inputs %d: in shards each sample "
                          "needs golden of its own (%s); run the check on one machine" % ((files or [""])[0], has, n, names))
    return told


def account(where: Any, key: str, inputs: List[str], golden: Optional[List[str]], options: Dict[str, Any]) -> bytes:
    """On a worker: the account of some samples, as assay_check_save_part() writes it."""
    model = model_here(where, key)
    handle, _ = create_check(model, None, pictures=False, **options)
    samples = samples_of(model, inputs)
    told = golden_here(model, golden, samples)
    ok(lib.assay_check_add_samples(handle.value, samples.value, told.value if told else None))
    return collect_bytes(lambda write: lib.assay_check_save_part(handle.value, write, None))


def _gather(source: Source, shards: List[Shard], keys: List[str], checkpoint: Checkpoint, options: Dict[str, Any],
            reports: Reports) -> CheckResult:
    """Here: what one machine finds, from the accounts of the shards."""
    handle, names = create_check(source.model, reports, pictures=False, **options)
    for part in parts_of(keys, checkpoint):
        ok(lib.assay_check_add_part(handle.value, part, len(part)))
    samples = samples_of(source.model, [f for s in shards for f in s.inputs])
    golden = [f for s in shards for f in s.golden or []]
    told = golden_of(source.model, golden or None, samples)
    ok(lib.assay_check_run(handle.value, samples.value, told.value if told else None))
    return check_result(handle, names, (samples, told, reports))


def check(model: Any, data: Any, *, golden: Any = None, folder: Any = None, shard: int = 16,
          in_flight: Optional[int] = None, progress: Progress = None, **options: Any) -> Any:
    """assay.check over the machines of a Ray cluster: the same result, to the bit.

    model      a path that all machines see, or bytes, which go to the object store once; or a list of models that
               take the same data
    data       paths of files or of a folder of files, which all machines see; {name: array} or a list of such, a
               sample each; a Ray Data dataset or Parquet files, whose columns are called as the inputs are
    golden     the same for outputs; of a dataset the names of its columns, or True
    folder     keeps finished shards: the same call goes on where a killed one ended. All machines see it. None: a
               temporary folder of this machine
    shard      samples (of files: files) that a worker takes at a time: what it holds in memory
    in_flight  shards that are begun and not finished, at most; None: 2 for each CPU of the cluster
    options    those of assay.check(), but for what is of one machine: inputs, pictures, command, engine_outputs,
               seconds, shapes, intermediates, name_map

    Returns a CheckResult, or a list of them for a list of models. Workers take the accounts; what follows from them
    (fixes, golden) is looked for here, on the samples that one machine would use.
    """
    unknown = {"inputs", "pictures", "command", "engine_outputs", "seconds", "shapes", "intermediates", "name_map"} & set(options)
    if unknown:
        raise InvalidArgument("assay.ray.check takes no %s" % ", ".join(sorted(unknown)))
    sources, several = sources_of(model)
    for source in sources:  # what is wrong with the options shows here
        create_check(source.model, None, pictures=False, **options)
    with Checkpoint(folder) as checkpoint:
        results = _check_all(sources, data, golden, shard, in_flight, checkpoint, options, progress)
    return results if several else results[0]


def _check_all(sources: List[Source], data: Any, golden: Any, size: int, in_flight: Optional[int],
               checkpoint: Checkpoint, options: Dict[str, Any], progress: Progress) -> List[CheckResult]:
    shards: List[Shard] = []
    keys: List[List[str]] = [[] for _ in sources]

    def tasks() -> Any:
        for s in shards_of(data, golden, sources[0].model, size, checkpoint):
            shards.append(s)
            for i, source in enumerate(sources):
                key = digest("check", version(), source.digest, options, s.digest)
                keys[i].append(key)
                yield Task(key, account, (source.where, source.digest, s.inputs, s.golden, options))

    run(tasks(), checkpoint, in_flight)
    results = []
    for i, source in enumerate(sources):
        reports = Reports(progress)
        results.append(long_call(lambda: _gather(source, shards, keys[i], checkpoint, options, reports), reports))
    return results
