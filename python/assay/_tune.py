"""Tuning: the fastest assignment of formats to layers whose outputs meet what is required."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _library as L
from ._calls import Progress, Reports, long_call
from ._library import STATUS, check as ok, lib
from ._plans import Rules, Texts, plan_fields, require_fields
from ._results import Path, Result, listed
from ._samples import golden_of, samples_of
from ._sizes import Dims, Shapes
from .model import Model, sized

_TUNE = [c_void_p]
L.declare({
    "assay_tune_device_name": (c_char_p, [c_size_t]),
    "assay_tune_create": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_tune_destroy": (None, _TUNE),
    "assay_tune_run": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "assay_tune_met": (c_bool, _TUNE),
    "assay_tune_format": (c_int, [c_void_p, c_size_t]),
    "assay_tune_assignment_count": (c_size_t, _TUNE),
    "assay_tune_assignment": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_tune_assignment_layers": (c_size_t, [c_void_p, c_size_t, c_size_t]),
    "assay_tune_node_count": (c_size_t, [c_void_p, c_size_t]),
    "assay_tune_node": (c_char_p, [c_void_p, c_size_t, c_size_t]),
    "assay_tune_write_model": (STATUS, [c_void_p, c_char_p]),
    "assay_tune_write_plan": (STATUS, [c_void_p, c_char_p]),
    "assay_tune_write_options": (STATUS, [c_void_p, c_char_p]),
    "assay_tune_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("formats", POINTER(c_int)), ("n_formats", c_size_t),
                ("layer_precision", c_char_p), ("target", c_char_p), ("fusion", c_int),
                ("passes_off", POINTER(c_char_p)), ("n_passes_off", c_size_t), ("fp32", c_int),
                ("requirements", POINTER(c_char_p)), ("n_requirements", c_size_t), ("unquantized", c_bool),
                ("device", c_char_p), ("fewest_layers", c_bool), ("front", c_size_t), ("max_runs", c_size_t),
                ("seconds", c_double), ("timing_cache", c_char_p), ("seed", c_uint64), ("inject", c_char_p),
                ("progress", c_void_p), ("user", c_void_p), ("elsewhere", c_void_p)]


class _Assignment(L.Options):
    _fields_ = [("struct_size", c_size_t), ("met", c_bool), ("chosen", c_bool), ("seconds", c_double)]


class _Names(L.Options):
    _fields_ = [("struct_size", c_size_t), ("model", c_char_p), ("saved_model", c_char_p), ("saved_plan", c_char_p),
                ("saved_options", c_char_p)]


@dataclass
class Assignment:
    """Formats of layers that were run. seconds: of a run, estimated or by the layers' times; layers: by format."""

    met: bool
    chosen: bool
    seconds: float
    layers: Dict[str, int]


@dataclass
class TuneResult(Result):
    """What tuning found.

    met          whether some assignment meets the requirements
    formats      those that were asked for, and fp32
    assignments  all in fp32 first, then all in each other format, then what was searched for
    nodes        of the chosen assignment: format -> names of nodes
    """

    met: bool
    formats: List[str]
    assignments: List[Assignment]
    nodes: Dict[str, List[str]]

    @property
    def chosen(self) -> Optional[Assignment]:
        """The fastest assignment that meets the requirements; None: there is none."""
        return next((a for a in self.assignments if a.chosen), None)

    def write_model(self, path: Path) -> None:
        """Writes the model in mixed precision, with explicit Casts."""
        with self._lock:
            ok(lib.assay_tune_write_model(self._handle.value, os.fsencode(path)))

    def write_plan(self, path: Path) -> None:
        """Writes a plan file for the target, its kernels chosen by time."""
        with self._lock:
            ok(lib.assay_tune_write_plan(self._handle.value, os.fsencode(path)))

    def write_options(self, path: Path) -> None:
        """Writes the assignment as options of `assay` (--fix-file) and of trtexec."""
        with self._lock:
            ok(lib.assay_tune_write_options(self._handle.value, os.fsencode(path)))


def devices() -> List[str]:
    """Devices whose times are estimated by their rooflines."""
    names: List[str] = []
    while True:
        name = lib.assay_tune_device_name(len(names))
        if name is None:
            return names
        names.append(L.text(name))


def tune_result(handle: L.Handle, names: Any, keep: Any) -> TuneResult:
    """What a tuning that has run found. keep: what has to live as long."""
    t = handle.value
    formats: List[str] = []
    while lib.assay_tune_format(t, len(formats)):
        formats.append(L.format_name(lib.assay_tune_format(t, len(formats))))
    assignments = []
    for i in range(lib.assay_tune_assignment_count(t)):
        a = _Assignment()
        ok(lib.assay_tune_assignment(t, i, byref(a)))
        assignments.append(Assignment(a.met, a.chosen, a.seconds, {
            name: lib.assay_tune_assignment_layers(t, i, f) for f, name in enumerate(formats)}))
    nodes = {name: [L.text(lib.assay_tune_node(t, f, i)) for i in range(lib.assay_tune_node_count(t, f))]
             for f, name in enumerate(formats)}
    result = TuneResult(bool(lib.assay_tune_met(t)), formats, assignments, nodes)
    result._open(handle, lambda kind, write, user: lib.assay_tune_report(t, kind, byref(names), write, user), "assignments")
    result._keep = keep  # type: ignore[attr-defined]
    return result


def create_tune(loaded: Model, reports: Optional[Reports], *, precision: Union[str, Sequence[str]] = "fp16",
                target: str = "emu", require: Texts = None, layer_precision: Rules = None, fusion: Optional[bool] = None,
                passes_off: Texts = None, fp32: str = "tight", unquantized: bool = False, device: Optional[str] = None,
                fewest_layers: bool = False, front: int = 0, max_runs: int = 0, seconds: float = 0,
                timing_cache: Optional[Path] = None, seed: int = 0, elsewhere: Any = None) -> Tuple[L.Handle, Any]:
    """The library's tuning, not run, and what its reports call things. Options as of tune().

    elsewhere: the address of a function that runs assignments somewhere else
    """
    formats = [L.format_of(f) for f in listed(precision if isinstance(precision, str) else list(precision))]
    options = _Options(
        formats=(c_int * max(1, len(formats)))(*formats), n_formats=len(formats), unquantized=unquantized,
        device=L.encode(device), fewest_layers=fewest_layers, front=front, max_runs=max_runs, seconds=seconds,
        timing_cache=os.fsencode(timing_cache) if timing_cache else None, seed=seed,
        progress=reports.address if reports else None, elsewhere=elsewhere,
        **plan_fields(target, layer_precision, fusion, passes_off, fp32), **require_fields(require))
    out = c_void_p()
    ok(lib.assay_tune_create(loaded._handle.value, byref(options), byref(out)))
    return L.Handle(out.value, lib.assay_tune_destroy), _Names(model=os.fsencode(loaded.path) if loaded.path else None)


def tune(model: Any, *, precision: Union[str, Sequence[str]] = "fp16", target: str = "emu", inputs: Any = None,
         golden: Any = None, require: Texts = None, layer_precision: Rules = None, fusion: Optional[bool] = None,
         passes_off: Texts = None, fp32: str = "tight", unquantized: bool = False, device: Optional[str] = None,
         fewest_layers: bool = False, front: int = 0, max_runs: int = 0, seconds: float = 0,
         timing_cache: Optional[Path] = None, seed: int = 0, batch: Optional[int] = None, dims: Dims = None,
         shapes: Shapes = None, progress: Progress = None) -> TuneResult:
    """Searches for the fastest assignment of formats to layers whose outputs meet what is required.

    precision      formats below fp32, one to three
    require        "[OUTPUT:] STATISTIC OP VALUE", one or several; None: cosine at least 0.999
    device         whose time is to be small: one of assay.devices(), or "here", which is measured and goes with "cpu"
    fewest_layers  as few layers in fp32 as possible, rather than the least time
    front          points of the front of time against error in the report
    max_runs       of assignments, besides all in one format; 0: 8
    seconds        to measure each format here; 0: 0.5
    timing_cache   a file of measured times, read and added to

    Others as of check(). Ctrl-C ends it.
    """
    loaded = sized(model, batch, dims, shapes)
    reports = Reports(progress)

    def work() -> TuneResult:
        handle, names = create_tune(
            loaded, reports, precision=precision, target=target, require=require, layer_precision=layer_precision,
            fusion=fusion, passes_off=passes_off, fp32=fp32, unquantized=unquantized, device=device,
            fewest_layers=fewest_layers, front=front, max_runs=max_runs, seconds=seconds, timing_cache=timing_cache, seed=seed)
        samples = samples_of(loaded, inputs, seed)
        told = golden_of(loaded, golden, samples, seed)
        ok(lib.assay_tune_run(handle.value, samples.value, told.value if told else None))
        return tune_result(handle, names, (samples, told, reports))

    return long_call(work, reports)
