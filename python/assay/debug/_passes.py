"""The graph pass that changes the result."""
from __future__ import annotations

from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, List, Optional

from .. import _library as L
from .._calls import Progress
from .._check_parts import maybe, structs_of
from .._library import STATUS, check as ok, lib
from .._plans import Rules, Texts
from .._results import Path, Result
from .._sizes import Dims, Shapes
from ..model import sized
from ._run import Experiment, Given, Run, conduct

_SEARCH = [c_void_p]
L.declare({
    "assay_debug_passes": (STATUS, [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_pass_search_destroy": (None, _SEARCH),
    "assay_pass_effect_name": (c_char_p, [c_int]),
    "assay_pass_search_guilty": (c_size_t, _SEARCH),
    "assay_pass_search_count": (c_size_t, _SEARCH),
    "assay_pass_search_step": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_pass_search_node_count": (c_size_t, _SEARCH),
    "assay_pass_search_node": (c_char_p, [c_void_p, c_size_t]),
    "assay_pass_search_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})


class _Step(L.Options):
    _fields_ = [("struct_size", c_size_t), ("pass", c_char_p), ("effect", c_int), ("changes", c_size_t),
                ("layers", c_size_t), ("truth_moved", c_double), ("faithful", c_bool)]


@dataclass
class PassStep:
    """What came of one pass more.

    name         of the pass; None: the first step, without any
    effect       "none": the same bits; "rounding": what rounding explains; "coarser": the outputs do, but their error
                 has grown several times; "engine": truth stays, but the outputs do not do any more; "truth": truth
                 changes by more than rounding explains, a defect of the pass
    changes      that it made, with all passes on
    layers       of the plan
    truth_moved  the largest difference of an output, as a part of its largest value
    faithful     the outputs meet the requirements
    """

    name: Optional[str]
    effect: str
    changes: int
    layers: int
    truth_moved: float
    faithful: bool


@dataclass
class PassesResult(Result):
    """Which graph pass changes the result.

    steps   a PassStep each, in the order of the passes; the first is without any
    guilty  the first whose effect is "engine" or "truth"; None: there is none
    nodes   that it changed where the result changes
    """

    steps: List[PassStep]
    guilty: Optional[PassStep]
    nodes: List[str]

    def tell(self) -> str:
        """The text with all passes, those that change no bits, too."""
        with self._lock:
            return L.collect(lambda write, user: lib.assay_pass_search_report(
                self._handle.value, L.TEXT, byref(self._all), write, user))  # type: ignore[attr-defined]


def _result(x: Experiment, handle: L.Handle) -> PassesResult:
    s, names = handle.value, x.names()
    steps = [PassStep(maybe(getattr(o, "pass")), L.text(lib.assay_pass_effect_name(o.effect)), o.changes, o.layers,
                      o.truth_moved, o.faithful)
             for o in structs_of(lib.assay_pass_search_count(s), lib.assay_pass_search_step, s, _Step)]
    guilty = lib.assay_pass_search_guilty(s)
    result = PassesResult(steps, steps[guilty] if guilty < len(steps) else None, L.names_of(
        lib.assay_pass_search_node_count(s), lambda i: lib.assay_pass_search_node(s, i)))
    result._all = x.names(all=True)  # type: ignore[attr-defined]
    result._open(handle, lambda kind, write, user: lib.assay_pass_search_report(s, kind, byref(names), write, user), "steps")
    return result


def passes(model: Any, *, precision: Optional[str] = None, target: str = "cpu", inputs: Any = None, golden: Any = None,
           accumulator: Optional[str] = None, layer_precision: Rules = None, passes_off: Texts = None,
           fp32: str = "tight", require: Texts = None, unquantized: bool = False, seed: int = 0,
           batch: Optional[int] = None, dims: Dims = None, shapes: Shapes = None, intermediates: Optional[Path] = None,
           name_map: Optional[Path] = None, progress: Progress = None) -> PassesResult:
    """Switches the passes that do something to the model on, one after the other, and compares what comes of each.

    Parameters are those of assay.check(); the plan is a fused one. Ctrl-C ends it.
    """
    loaded = sized(model, batch, dims, shapes)
    run = Run(precision, target, accumulator, layer_precision, True, passes_off, fp32, require, unquantized, seed)

    def experiment(x: Experiment) -> PassesResult:
        out = c_void_p()
        ok(lib.assay_debug_passes(x.debug.value, x.samples.value, x.golden_value, byref(out)))
        return _result(x, L.Handle(out.value, lib.assay_pass_search_destroy))

    return conduct(loaded, run, Given(inputs, golden, intermediates, name_map), progress, experiment)
