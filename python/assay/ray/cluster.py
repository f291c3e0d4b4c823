"""Work on the cluster: shards that are finished are not run again, a few are in flight, and what was killed runs again."""
from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from ..errors import InvalidArgument
from ..model import Model, load
from .checkpoint import Checkpoint, digest, digest_files
from .shards import is_path

ray: Any = import_module("ray")  # it has types for some of its functions only

# How often a shard runs again whose worker or machine died.
RETRIES = 4
SECONDS_TO_END = 10


@dataclass(frozen=True)
class Task:
    """A part to be made: function(*arguments) -> bytes, on some worker. key: of its file in the checkpoint."""

    key: str
    function: Callable[..., bytes]
    arguments: Tuple[Any, ...]


def _run(function: Callable[..., bytes], *arguments: Any) -> bytes:
    return function(*arguments)


def _in_flight(asked: Optional[int]) -> int:
    if asked is not None:
        if asked < 1:
            raise InvalidArgument("in_flight is 1 or more, not %r" % asked)
        return asked
    return max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))


def _take(refs: Dict[Any, str], checkpoint: Checkpoint) -> None:
    """Waits for one of them and keeps its part."""
    ready, _ = ray.wait(list(refs), num_returns=1)
    key = refs.pop(ready[0])
    try:
        checkpoint.put(key, ray.get(ready[0]))
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from None


def run(tasks: Iterable[Task], checkpoint: Checkpoint, in_flight: Optional[int] = None) -> None:
    """Makes the parts that the checkpoint does not have; tasks are asked for as they can be begun."""
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    most = _in_flight(in_flight)
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)
    refs: Dict[Any, str] = {}
    try:
        for task in tasks:
            if checkpoint.has(task.key) or task.key in refs.values():
                continue
            while len(refs) >= most:
                _take(refs, checkpoint)
            refs[remote.remote(task.function, *task.arguments)] = task.key
        while refs:
            _take(refs, checkpoint)
    finally:
        _drop(list(refs))


def _drop(refs: List[Any]) -> None:
    """Ends what is in flight when a part has failed, and sees it end: it may be reading files that are about to go."""
    for ref in refs:
        ray.cancel(ref, force=True)
    for ref in ray.wait(refs, num_returns=len(refs), timeout=SECONDS_TO_END)[0] if refs else []:
        try:
            ray.get(ref)
        except ray.exceptions.RayError:  # an error that nobody asks for is printed
            pass


# ---- models -------------------------------------------------------------------------------------


@dataclass
class Source:
    """A model here, and where workers get it: a path that they see, or bytes in the object store."""

    model: Model
    where: Any
    digest: str


def sources_of(models: Any) -> Tuple[List[Source], bool]:
    """One model or a list of them, as paths or bytes; whether it was a list."""
    several = isinstance(models, (list, tuple))
    sources = []
    for m in models if several else [models]:
        if hasattr(m, "SerializeToString"):
            m = m.SerializeToString()
        if isinstance(m, Model):
            if not m.path:
                raise InvalidArgument("give the bytes of a model that did not come from a file")
            m = m.path
        if is_path(m):
            path = os.path.abspath(os.fspath(m))
            sources.append(Source(_loaded(os.fspath(m)), path, digest_files([path])))
        elif isinstance(m, (bytes, bytearray)):
            data = bytes(m)
            if not ray.is_initialized():
                ray.init(include_dashboard=False, log_to_driver=False)
            sources.append(Source(_loaded(data), ray.put(data), digest(data)))
        else:
            raise InvalidArgument("a model is a path or bytes, not %s" % type(m).__name__)
    if not sources:
        raise InvalidArgument("no models were given")
    return sources, several


def _loaded(model: Any) -> Model:
    loaded = load(model)
    if not isinstance(loaded, Model):
        raise InvalidArgument("'%s' is a plan file: give the model that it was built of" % model)
    return loaded


_last: Tuple[str, Any] = ("", None)


def model_here(where: Any, key: str) -> Model:
    """A worker's model: the last one is kept, for the next shard is mostly of the same."""
    global _last
    if _last[0] != key:
        _last = ("", None)
        _last = (key, _loaded(where))
    model: Model = _last[1]
    return model


def parts_of(keys: Sequence[str], checkpoint: Checkpoint) -> Iterable[bytes]:
    """The parts in this order, one at a time."""
    return (checkpoint.get(key) for key in keys)
