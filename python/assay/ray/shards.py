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


def _array(value: Any) -> Any:
    array = np.asarray(value)
    return np.stack([np.asarray(v) for v in value]) if array.dtype == object else array


def _lacks_batch(array: Any, info: Optional[ValueInfo]) -> bool:
    return info is not None and info.shape is not None and array.ndim == len(info.shape) - 1


def _with_batch(sample: Sample, infos: Mapping[str, ValueInfo]) -> Sample:
    """Its arrays. A batch of 1 that was left out of the inputs is put in, there and in golden outputs."""
    inputs = {name: _array(value) for name, value in sample[0].items()}
    golden = {name: _array(value) for name, value in (sample[1] or {}).items()}
    if any(_lacks_batch(array, infos[name]) for name, array in inputs.items()):
        for arrays in (inputs, golden):
            for name, array in arrays.items():
                arrays[name] = array[np.newaxis] if _lacks_batch(array, infos.get(name)) else array
    return inputs, golden if sample[1] is not None else None


def _npz(arrays: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **dict(arrays))
    return file.getvalue()


def _stacked(runs: Sequence[Mapping[str, Any]], infos: Mapping[str, ValueInfo]) -> Sequence[Mapping[str, Any]]:
    """One run with a dimension more, which reading cuts into samples again; as they are where it would not."""
    for name, first in runs[0].items():
        shape = infos[name].shape
        if shape is None or any(r[name].ndim != len(shape) or r[name].shape != first.shape or r[name].dtype != first.dtype
                                for r in runs):
            return runs
    return [{name: np.stack([r[name] for r in runs]) for name in runs[0]}]


def _array_shard(samples: Sequence[Sample], infos: Mapping[str, ValueInfo], checkpoint: Checkpoint) -> Shard:
    whole = [_with_batch(s, infos) for s in samples]
    inputs = [checkpoint.put_data(_npz(arrays)) for arrays in _stacked([s[0] for s in whole], infos)]
    # Golden stays as it is, inner values and outputs of other shapes among it: what one machine makes of it goes by its shapes.
    golden = [checkpoint.put_data(_npz(s[1])) for s in whole if s[1] is not None]
    return Shard(inputs, golden or None, digest([os.path.basename(f) for f in inputs + golden]))


def _want_names(what: str, i: int, has: Optional[Mapping[str, Any]], first: Optional[Mapping[str, Any]]) -> None:
    """Every sample has the arrays that the first one has."""
    if (has is None) != (first is None):
        raise InvalidArgument("some samples have golden outputs and some have none")
    if has is not None and first is not None and set(has) != set(first):
        raise InvalidArgument("%s: sample %d has %s, the first one %s" % (what, i, sorted(has), sorted(first)))


def _array_shards(samples: Iterable[Sample], model: Model, size: int, checkpoint: Checkpoint) -> Iterator[Shard]:
    infos: Dict[str, ValueInfo] = {v.name: v for v in [*model.inputs, *model.outputs]}
    names = [v.name for v in model.inputs]
    some: List[Sample] = []
    first: Optional[Sample] = None
    for i, sample in enumerate(samples):
        first = first or sample
        for name in sample[0]:
            if name not in names:
                raise InvalidArgument("a sample has '%s', which is not an input of the model" % name)
        _want_names("inputs", i, sample[0], first[0])
        _want_names("golden", i, sample[1], first[1])
        some.append(sample)
        if len(some) == size:
            yield _array_shard(some, infos, checkpoint)
            some = []
    if some:
        yield _array_shard(some, infos, checkpoint)


def _samples_of(data: Any, golden: Any) -> Iterator[Sample]:
    runs = [data] if isinstance(data, Mapping) else list(data)
    told = [golden] if isinstance(golden, Mapping) else golden
    if told is not None and len(told) != len(runs):
        raise InvalidArgument("golden has %d samples and the inputs %d" % (len(told), len(runs)))
    for i, run in enumerate(runs):
        sample = run, None if told is None else told[i]
        for arrays in sample:
            if arrays is not None and not isinstance(arrays, Mapping):
                raise InvalidArgument("a sample is {name: array}, not %s" % type(arrays).__name__)
        yield sample


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
