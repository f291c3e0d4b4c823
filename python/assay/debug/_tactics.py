"""Each layer by all kernels that take it."""
from __future__ import annotations

from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, List, Optional

from .. import _library as L
from .._calls import Progress
from .._check_parts import structs_of
from .._library import STATUS, check as ok, lib
from .._plans import Rules, Texts
from .._results import Result
from .._sizes import Dims, Shapes
from ..model import sized
from ._run import Experiment, Given, Run, conduct

_SEARCH = [c_void_p]
L.declare({
    "assay_debug_tactics": (STATUS, [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_tactic_search_destroy": (None, _SEARCH),
    "assay_tactic_fault_name": (c_char_p, [c_int]),
    "assay_tactic_search_fault_count": (c_size_t, _SEARCH),
    "assay_tactic_search_count": (c_size_t, _SEARCH),
    "assay_tactic_search_trial": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_tactic_search_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("layer", c_char_p), ("untimed", c_bool)]


class _Trial(L.Options):
    _fields_ = [("struct_size", c_size_t), ("layer", c_char_p), ("tactic", c_char_p), ("source", c_char_p),
                ("fault", c_int), ("chosen", c_bool), ("same_bits", c_bool), ("seconds", c_double), ("rms", c_double),
                ("max", c_double)]


@dataclass
class Trial:
    """A layer by one tactic.

    tactic, source  such as "onednn_conv" of "onednn"
    fault           "sound"; "outlying": within the bound, but far from what reruns show; "invalid": NaN where truth is
                    finite; "beyond bound": more error than rounding can make, or another shape
    chosen          by the plan
    same_bits       as the plan's
    seconds         of a run; NaN: not measured
    rms, max        error against truth on the same inputs, in the output's units
    """

    layer: str
    tactic: str
    source: str
    fault: str
    chosen: bool
    same_bits: bool
    seconds: float
    rms: float
    max: float


@dataclass
class TacticsResult(Result):
    """Which tactics are at fault. faults: how many; trials: a Trial for each layer and tactic."""

    faults: int
    trials: List[Trial]

    def tell(self) -> str:
        """The text with all layers and their tactics."""
        with self._lock:
            return L.collect(lambda write, user: lib.assay_tactic_search_report(
                self._handle.value, L.TEXT, byref(self._all), write, user))  # type: ignore[attr-defined]


def _result(x: Experiment, handle: L.Handle) -> TacticsResult:
    s, names = handle.value, x.names()
    trials = [Trial(L.text(o.layer), L.text(o.tactic), L.text(o.source), L.text(lib.assay_tactic_fault_name(o.fault)),
                    o.chosen, o.same_bits, o.seconds, o.rms, o.max)
              for o in structs_of(lib.assay_tactic_search_count(s), lib.assay_tactic_search_trial, s, _Trial)]
    result = TacticsResult(int(lib.assay_tactic_search_fault_count(s)), trials)
    result._all = x.names(all=True)  # type: ignore[attr-defined]
    result._open(handle, lambda kind, write, user: lib.assay_tactic_search_report(s, kind, byref(names), write, user), "trials")
    return result


def tactics(model: Any, *, precision: Optional[str] = None, target: str = "cpu", inputs: Any = None,
            layer: Optional[str] = None, timed: bool = True, accumulator: Optional[str] = None,
            layer_precision: Rules = None, fusion: Optional[bool] = None, passes_off: Texts = None, fp32: str = "tight",
            unquantized: bool = False, seed: int = 0, batch: Optional[int] = None, dims: Dims = None,
            shapes: Shapes = None, progress: Progress = None) -> TacticsResult:
    """Runs each layer by all tactics that take it, on its real inputs; judges each by the bound of its way of rounding.

    target  one with several ways to run a layer
    layer   a pattern for names of layers, nodes and outputs; None: all
    timed   measure how long each takes

    Others as of assay.check(). Ctrl-C ends it.
    """
    loaded = sized(model, batch, dims, shapes)
    options = _Options(layer=L.encode(layer), untimed=not timed)
    run = Run(precision, target, accumulator, layer_precision, fusion, passes_off, fp32, None, unquantized, seed)

    def experiment(x: Experiment) -> TacticsResult:
        out = c_void_p()
        ok(lib.assay_debug_tactics(x.debug.value, byref(options), x.samples.value, byref(out)))
        return _result(x, L.Handle(out.value, lib.assay_tactic_search_destroy))

    return conduct(loaded, run, Given(inputs), progress, experiment)
