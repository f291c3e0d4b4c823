"""Calibration: the ranges of every value of a model over data, for quantizers and formats.

Counts are whole numbers and extremes do not depend on an order, so statistics of parts of the data, merged, are those of
all of them to the bit.
"""
from __future__ import annotations

import io
import json
from ctypes import POINTER, byref, c_char_p, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from . import _library as L
from ._calls import long_call
from ._library import STATUS, check as ok, lib
from ._samples import samples_of
from ._tensors import take
from .errors import Corrupt, InvalidArgument
from ._sizes import Dims, Shapes
from .model import MODES, Model, SessionOptions, sized

L.declare({
    "assay_samples_tensor": (c_void_p, [c_void_p, c_size_t, c_size_t]),
    "assay_samples_value_count": (c_size_t, [c_void_p]),
    "assay_samples_value_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_session_evaluate": (STATUS, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "assay_session_value_count": (c_size_t, [c_void_p]),
    "assay_session_value_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_session_value": (STATUS, [c_void_p, c_size_t, POINTER(c_void_p)]),
})

# A histogram's bin is the exponent and the first bits of the mantissa of a magnitude as float32: 16 to a power of 2.
_DROPPED = 23 - 4
BINS = 0xff << 4


@dataclass
class ValueRange:
    """What a value was over all samples.

    name       of the value
    count      elements; nan, inf: of them, which nothing else here counts
    min, max   of the finite ones; NaN: there are none
    zeros      elements that are 0
    histogram  of the magnitudes of finite elements other than 0, BINS numbers: bin b has those from edge(b) to below
               edge(b + 1), with less than 1/16 between them
    """

    name: str
    count: int = 0
    nan: int = 0
    inf: int = 0
    min: float = float("nan")
    max: float = float("nan")
    zeros: int = 0
    histogram: Any = field(default_factory=lambda: np.zeros(BINS, np.int64), repr=False)

    @property
    def largest(self) -> float:
        """The largest finite magnitude; 0 without any."""
        return max(abs(self.min), abs(self.max)) if self.count > self.nan + self.inf else 0.0

    def percentile(self, percent: float) -> float:
        """A magnitude that this part of the finite elements does not pass: the end of a bin, or the largest one."""
        if not 0 <= percent <= 100:
            raise InvalidArgument("a percentile is from 0 to 100, not %r" % percent)
        finite = self.count - self.nan - self.inf
        need = int(np.ceil(finite * percent / 100)) - self.zeros
        if need <= 0:
            return 0.0
        b = int(np.searchsorted(np.cumsum(self.histogram), need))
        return min(edge(b + 1), self.largest)

    def add(self, array: Any) -> None:
        """Counts the elements of one array."""
        x = np.asarray(array).ravel()
        wide = x.astype(np.float64)
        finite = np.isfinite(wide)
        self.count += x.size
        self.nan += int(np.count_nonzero(np.isnan(wide)))
        self.inf += int(np.count_nonzero(np.isinf(wide)))
        some = wide[finite]
        if not some.size:
            return
        self.min = float(np.fmin(self.min, some.min())) + 0.0
        self.max = float(np.fmax(self.max, some.max())) + 0.0
        size = np.abs(some)
        self.zeros += int(np.count_nonzero(size == 0))
        self.histogram += np.bincount(bin_of(size[size > 0]), minlength=BINS)

    def join(self, more: "ValueRange") -> None:
        """Adds what the value was over other samples."""
        self.count += more.count
        self.nan += more.nan
        self.inf += more.inf
        self.min = float(np.fmin(self.min, more.min))
        self.max = float(np.fmax(self.max, more.max))
        self.zeros += more.zeros
        self.histogram = self.histogram + more.histogram


def bin_of(magnitudes: Any) -> Any:
    """Bins of float64 magnitudes above 0; those that float32 does not have are in the first or the last one."""
    small, large = np.float32(np.finfo(np.float32).smallest_subnormal), np.finfo(np.float32).max
    # Rounded down, so that no magnitude passes the end of its bin.
    bits = np.clip(magnitudes, small, large).astype(np.float32)
    bits = np.where(bits > magnitudes, np.nextafter(bits, np.float32(0)), bits).astype(np.float32)
    return bits.view(np.int32) >> _DROPPED


def edge(b: int) -> float:
    """Where bin b begins; bin BINS: infinity."""
    return float(np.array(b << _DROPPED, np.int32).view(np.float32))


class Calibration:
    """Ranges of values: a ValueRange each, by name, in the order in which the model makes them (inputs first)."""

    def __init__(self, values: Optional[Dict[str, ValueRange]] = None, samples: int = 0) -> None:
        self.values = {} if values is None else values
        self.samples = samples

    def __getitem__(self, name: str) -> ValueRange:
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calibration) and self.to_bytes() == other.to_bytes()

    def add(self, name: str, array: Any) -> None:
        """Counts the elements of one array of the value `name`."""
        self.values.setdefault(name, ValueRange(name)).add(array)

    def join(self, more: "Calibration") -> None:
        """Adds what values were over samples that follow."""
        for name, value in more.values.items():
            self.values.setdefault(name, ValueRange(name)).join(value)
        self.samples += more.samples

    @property
    def json(self) -> str:
        """Everything but the histograms, with some percentiles in their place."""
        rows = [{"name": v.name, "count": v.count, "nan": v.nan, "inf": v.inf, "zeros": v.zeros,
                 "min": None if v.min != v.min else v.min, "max": None if v.max != v.max else v.max,
                 "percentiles": {str(p): v.percentile(p) for p in (50, 99, 99.9, 99.99)}} for v in self.values.values()]
        return json.dumps({"schema": "assay.calibration/1", "samples": self.samples, "values": rows}, indent=1) + "\n"

    def to_bytes(self) -> bytes:
        """All of it, as an npz file; the same statistics give the same bytes."""
        all_of = list(self.values.values())
        counts = np.array([[v.count, v.nan, v.inf, v.zeros] for v in all_of], np.int64).reshape(-1, 4)
        ends = np.array([[v.min, v.max] for v in all_of], np.float64).reshape(-1, 2)
        used = [np.flatnonzero(v.histogram) for v in all_of]
        rows = [np.full(u.size, i) for i, u in enumerate(used)]
        bins = np.concatenate([np.stack([r, u, v.histogram[u]]) for r, u, v in zip(rows, used, all_of)], 1) if all_of \
            else np.zeros((3, 0), np.int64)
        file = io.BytesIO()
        np.savez(file, names=np.frombuffer(json.dumps(list(self.values)).encode(), np.uint8), samples=np.int64(self.samples),
                 counts=counts, ends=ends, bins=bins.astype(np.int64))
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Calibration":
        """What `to_bytes()` made; assay.Corrupt if it is something else."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as z:
                names = json.loads(bytes(z["names"]).decode())
                made = cls({}, int(z["samples"]))
                for name, (count, nan, inf, zeros), (least, most) in zip(names, z["counts"].tolist(), z["ends"].tolist()):
                    made.values[name] = ValueRange(name, count, nan, inf, least, most, zeros)
                for row, b, count in z["bins"].T:
                    made.values[names[row]].histogram[b] = count
        except (ValueError, KeyError, IndexError, OSError) as e:
            raise Corrupt("this is no calibration: %s" % e) from None
        return made

    def __repr__(self) -> str:
        return "<assay.Calibration: %d values over %d samples>" % (len(self), self.samples)


def _session(model: Model, mode: str, unquantized: bool, seed: int) -> L.Handle:
    out = c_void_p()
    options = SessionOptions(mode=L.choice("mode", mode, MODES), unquantized=unquantized, all_values=True, seed=seed)
    ok(lib.assay_session_create(model._handle.value, byref(options), byref(out)))
    return L.Handle(out.value, lib.assay_session_destroy)


def _add_tensor(found: Calibration, name: str, handle: Any) -> None:
    """handle: a reference, which goes."""
    value = take(handle, True)
    if isinstance(value, np.ndarray) and _is_float(value.dtype):
        found.add(name, value)


def _is_float(dtype: Any) -> bool:
    # Types of ml_dtypes are of kind V.
    return bool(np.issubdtype(dtype, np.floating)) or "float" in dtype.name


def _arguments(samples: Any, n: int, k: int) -> Tuple[Any, List[Any]]:
    tensors = [lib.assay_samples_tensor(samples, k, i) for i in range(n)]
    return (c_void_p * max(1, n))(*tensors), tensors


def calibrate(model: Any, *, inputs: Any, mode: str = "native", unquantized: bool = False, seed: int = 0,
              batch: Optional[int] = None, dims: Dims = None, shapes: Shapes = None) -> Calibration:
    """The ranges of every float value of a model over samples: inputs, and what nodes of the top graph make.

    inputs       paths of files, {name: array}, a list of such (a sample each)
    mode         "native": in the types that the model declares; "truth": in float64
    unquantized  with "truth": quantizers are the identity
    batch, dims, shapes  sizes that the model leaves open, as of Model.resize(): of a sample

    Ctrl-C ends it between samples.
    """
    loaded = sized(model, batch, dims, shapes)
    if inputs is None:
        raise InvalidArgument("calibration needs inputs from your data: random ones have unrealistic ranges")
    samples = samples_of(loaded, inputs, seed)
    session = _session(loaded, mode, unquantized, seed)
    found = Calibration()
    n = lib.assay_samples_value_count(samples.value)
    names = [L.text(lib.assay_session_value_name(session.value, i))
             for i in range(lib.assay_session_value_count(session.value))]
    for k in range(lib.assay_samples_count(samples.value)):
        arguments, tensors = _arguments(samples.value, n, k)
        long_call(lambda: ok(lib.assay_session_evaluate(session.value, n, arguments)))
        _add_sample(found, loaded, samples, tensors, session, names)
    return found


def _add_sample(found: Calibration, model: Model, samples: L.Handle, tensors: List[Any], session: L.Handle,
                names: List[str]) -> None:
    for i, tensor in enumerate(tensors):
        if tensor:
            name = L.text(lib.assay_samples_value_name(samples.value, i))
            _add_tensor(found, name, lib.assay_tensor_retain(tensor))
    for i, name in enumerate(names):
        out = c_void_p()
        ok(lib.assay_session_value(session.value, i, byref(out)))
        if out.value:
            _add_tensor(found, name, out.value)
    found.samples += 1
