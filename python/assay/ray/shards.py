"""Shards: data of any kind as files of a few samples each, in the data's order."""
from __future__ import annotations

import io
import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..errors import InvalidArgument, NotFound
from ..model import Model
from ..values import ValueInfo
from .checkpoint import Checkpoint, digest, digest_files

# One sample: its inputs, and its golden outputs (None: it has none).
Sample = Tuple[Mapping[str, Any], Optional[Mapping[str, Any]]]


@dataclass(frozen=True)
class Shard:
    """Files with the inputs of some samples, and with their golden outputs (None: there are none)."""

    inputs: List[str]
    golden: Optional[List[str]]
    digest: str


# ---- files --------------------------------------------------------------------------------------


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def _files_of(data: Any, what: str) -> Optional[List[str]]:
    """Paths of files, of a folder's in the order of their names; None: it is something else."""
    if is_path(data):
        path = os.path.abspath(os.fspath(data))
        if not os.path.exists(path):
            raise NotFound("%s: there is no '%s'" % (what, path))
        if not os.path.isdir(path):
            return [path]
        files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if not name.startswith(".")]
        files = [f for f in files if os.path.isfile(f)]
        if not files:
            raise NotFound("%s: folder '%s' has no files" % (what, path))
        return files
    if isinstance(data, (list, tuple)) and data and all(is_path(d) for d in data):
        return [f for d in data for f in _files_of(d, what) or []]
    return None


def _file_shards(inputs: List[str], golden: Optional[List[str]], size: int) -> Iterator[Shard]:
    if golden is not None and len(golden) != len(inputs):
        raise InvalidArgument("golden has %d files and the inputs %d: each file of inputs needs one with its outputs"
                              % (len(golden), len(inputs)))
    for first in range(0, len(inputs), size):
        some = inputs[first:first + size]
        told = None if golden is None else golden[first:first + size]
        yield Shard(some, told, digest(digest_files(some), digest_files(told or [])))


# ---- arrays -------------------------------------------------------------------------------------


def _sample_array(value: Any, info: ValueInfo) -> Any:
    """A value of a row; a batch of 1 may be left out of it."""
    array = np.asarray(value)
    if array.dtype == object:
        array = np.stack([np.asarray(v) for v in value])
    if info.shape is not None and array.ndim == len(info.shape) - 1:
        array = array[np.newaxis]
    return array


def _pack(runs: Sequence[Mapping[str, Any]]) -> List[bytes]:
    """npz files: one of all runs stacked where they have the same shapes, else one of each."""
    names = list(runs[0])
    alike = all(set(r) == set(names) and all(r[n].shape == runs[0][n].shape and r[n].dtype == runs[0][n].dtype
                                             for n in names) for r in runs)
    groups = [runs] if alike else [[r] for r in runs]
    packed = []
    for group in groups:
        file = io.BytesIO()
        arrays: Dict[str, Any] = {n: np.stack([r[n] for r in group]) for n in group[0]}
        np.savez(file, **arrays)
        packed.append(file.getvalue())
    return packed


def _array_shard(samples: Sequence[Sample], model: Model, checkpoint: Checkpoint) -> Shard:
    infos: Dict[str, ValueInfo] = {v.name: v for v in [*model.inputs, *model.outputs]}

    def files(runs: Sequence[Mapping[str, Any]]) -> List[str]:
        for name in runs[0]:
            if name not in infos:
                raise InvalidArgument("a sample has '%s', which is no input or output of the model" % name)
        arrays = [{n: _sample_array(v, infos[n]) for n, v in run.items()} for run in runs]
        return [checkpoint.put_data(data) for data in _pack(arrays)]

    inputs = files([s[0] for s in samples])
    told = [s[1] for s in samples if s[1] is not None]
    if told and len(told) != len(samples):
        raise InvalidArgument("some samples have golden outputs and some have none")
    golden = files(told) if told else None
    return Shard(inputs, golden, digest([os.path.basename(f) for f in inputs + (golden or [])]))


def _array_shards(samples: Iterable[Sample], model: Model, size: int, checkpoint: Checkpoint) -> Iterator[Shard]:
    some: List[Sample] = []
    for sample in samples:
        some.append(sample)
        if len(some) == size:
            yield _array_shard(some, model, checkpoint)
            some = []
    if some:
        yield _array_shard(some, model, checkpoint)


def _samples_of(data: Any, golden: Any) -> Iterator[Sample]:
    runs = [data] if isinstance(data, Mapping) else list(data)
    told = [golden] if isinstance(golden, Mapping) else golden
    if told is not None and len(told) != len(runs):
        raise InvalidArgument("golden has %d samples and the inputs %d" % (len(told), len(runs)))
    for i, run in enumerate(runs):
        if not isinstance(run, Mapping):
            raise InvalidArgument("a sample is {name: array}, not %s" % type(run).__name__)
        yield run, None if told is None else told[i]


# ---- data sets of Ray ---------------------------------------------------------------------------


def _ray_data() -> Any:
    try:
        return import_module("ray.data")
    except ImportError as e:
        raise ImportError("data sets need Ray Data (%s): pip install assay-engine[ray]" % e) from None


def _dataset_of(data: Any) -> Any:
    """A Ray Data dataset, also of Parquet files; None: it is something else."""
    paths = [data] if is_path(data) else data if isinstance(data, (list, tuple)) else []
    parquet = [os.fspath(p) for p in paths if is_path(p) and os.fspath(p).endswith(".parquet")]
    if hasattr(data, "iter_batches") and hasattr(data, "schema"):
        return data
    if not parquet:
        return None
    if len(parquet) != len(paths):
        raise InvalidArgument("Parquet files and others are not one data set")
    return _ray_data().read_parquet(parquet)


def _dataset_samples(dataset: Any, model: Model, golden: Any, size: int) -> Iterator[Sample]:
    """Rows, streamed. golden: names of columns with golden outputs; True: all that are called as outputs are."""
    columns = list(dataset.schema().names)
    inputs = [i.name for i in model.inputs]
    missing = [n for n in inputs if n not in columns]
    if missing:
        raise InvalidArgument("the data set has no column %s; it has %s" % (", ".join(map(repr, missing)), columns))
    outputs = [o.name for o in model.outputs]
    told = [n for n in outputs if n in columns] if golden is True else [] if golden is None else list(golden)
    wrong = [n for n in told if n not in columns or n not in outputs]
    if wrong or (golden is not None and not told):
        raise InvalidArgument("golden outputs are columns that are called as outputs are (%s): %s"
                              % (", ".join(outputs), ", ".join(map(repr, wrong or columns))))
    for batch in dataset.iter_batches(batch_size=size, batch_format="numpy", prefetch_batches=1):
        for i in range(len(batch[inputs[0]])):
            yield ({n: batch[n][i] for n in inputs}, {n: batch[n][i] for n in told} if told else None)


# ---- all of them --------------------------------------------------------------------------------


def shards_of(data: Any, golden: Any, model: Model, size: int, checkpoint: Checkpoint) -> Iterator[Shard]:
    """Cuts data into shards of `size` samples (or files), one after the other as they are asked for.

    data    paths of files or of a folder of them, which all machines see; {name: array} or a list of such, a sample
            each; a Ray Data dataset, or Parquet files, whose columns are called as the model's inputs are
    golden  the same for outputs; of a dataset the names of its columns, or True
    """
    if size < 1:
        raise InvalidArgument("a shard has 1 sample or more, not %r" % size)
    dataset = _dataset_of(data)
    if dataset is not None:
        # The order of rows is part of the result.
        _ray_data().DataContext.get_current().execution_options.preserve_order = True
        return _array_shards(_dataset_samples(dataset, model, golden, size), model, size, checkpoint)
    files = _files_of(data, "data")
    if files is not None:
        told = None if golden is None else _files_of(golden, "golden")
        if golden is not None and told is None:
            raise InvalidArgument("the inputs are files: golden has to be files, too")
        return _file_shards(files, told, size)
    if isinstance(data, (Mapping, list, tuple)) and len(data):
        return _array_shards(_samples_of(data, golden), model, size, checkpoint)
    raise InvalidArgument("data: files, {name: array} or a list of such, or a Ray Data dataset; not %s"
                          % type(data).__name__)
