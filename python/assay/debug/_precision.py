"""The layers that need more precision than was asked for."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, List, Optional

from .. import _library as L
from .._calls import Progress
from .._check import FIXES
from .._library import STATUS, check as ok, lib
from .._plans import Rules, Texts
from .._results import Path, Result
from .._sizes import Dims, Shapes
from ..errors import InvalidArgument
from ..model import sized
from ._run import Experiment, Given, Run, conduct, path_of

_SEARCH = [c_void_p]
L.declare({
    "assay_debug_precision": (STATUS, [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_precision_search_destroy": (None, _SEARCH),
    "assay_precision_search_enough": (c_bool, _SEARCH),
    "assay_precision_search_found": (c_bool, _SEARCH),
    "assay_precision_search_node_count": (c_size_t, _SEARCH),
    "assay_precision_search_node": (c_char_p, [c_void_p, c_size_t]),
    "assay_precision_search_format": (c_int, _SEARCH),
    "assay_precision_search_runs": (c_size_t, _SEARCH),
    "assay_precision_search_write_model": (STATUS, [c_void_p, c_char_p]),
    "assay_precision_search_write_options": (STATUS, [c_void_p, c_char_p]),
    "assay_precision_search_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})

MODES = ("account", "bisect", "linear")


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("mode", c_int), ("from_end", c_bool), ("as_asked", c_bool),
                ("rebuild", c_char_p), ("fix", c_int)]


@dataclass
class PrecisionResult(Result):
    """Which layers need more precision.

    enough  whether the model is enough as it was asked for: no layer needs more
    found   whether with `nodes` kept in `format` the outputs meet the requirements, as a run has shown
    nodes   to keep, also where they were not enough
    format  that they are kept in, such as "fp32"
    runs    of the model that the search took
    """

    enough: bool
    found: bool
    nodes: List[str]
    format: str
    runs: int

    def write_model(self, path: Path) -> None:
        """Writes the model in mixed precision, with explicit Casts."""
        with self._lock:
            ok(lib.assay_precision_search_write_model(self._handle.value, os.fsencode(path)))

    def write_options(self, path: Path) -> None:
        """Writes the nodes as options of `assay` (--fix-file) and of trtexec."""
        with self._lock:
            ok(lib.assay_precision_search_write_options(self._handle.value, os.fsencode(path)))


def _result(x: Experiment, handle: L.Handle) -> PrecisionResult:
    s, names = handle.value, x.names()
    result = PrecisionResult(
        bool(lib.assay_precision_search_enough(s)), bool(lib.assay_precision_search_found(s)),
        L.names_of(lib.assay_precision_search_node_count(s), lambda i: lib.assay_precision_search_node(s, i)),
        L.format_name(lib.assay_precision_search_format(s)), int(lib.assay_precision_search_runs(s)))
    result._open(handle, lambda kind, write, user: lib.assay_precision_search_report(s, kind, byref(names), write, user))
    return result


def _rebuilt(model: Any) -> Optional[bytes]:
    if not model.path:
        raise InvalidArgument("rebuild needs a model that came from a file, which is read for each run")
    return path_of(model)


def precision(model: Any, *, precision: Optional[str] = None, target: str = "emu", inputs: Any = None,
              golden: Any = None, mode: str = "account", from_end: bool = False, as_asked: bool = False,
              rebuild: bool = False, fix: str = "any", accumulator: Optional[str] = None, layer_precision: Rules = None,
              fusion: Optional[bool] = None, passes_off: Texts = None, fp32: str = "tight", require: Texts = None,
              unquantized: bool = False, seed: int = 0, batch: Optional[int] = None, dims: Dims = None,
              shapes: Shapes = None, intermediates: Optional[Path] = None, name_map: Optional[Path] = None,
              progress: Progress = None) -> PrecisionResult:
    """Looks for layers to keep in higher precision so that the outputs meet the requirements. Finding none is no error.

    mode      "account": the fewest layers, by what truth and the account of errors tell, in at most three runs;
              "bisect": the shortest prefix of layers that is enough; "linear": the same, one layer more each time
    from_end  prefixes begin at the last layer
    as_asked  "account": run the model as asked, too, where ranges told what to keep
    rebuild   prefixes: build everything anew for each run
    fix       "account": which layers are looked for: "any", "fewest" or "best"

    Others as of assay.check(). Ctrl-C ends it.
    """
    loaded = sized(model, batch, dims, shapes)
    options = _Options(mode=L.choice("mode", mode, MODES), from_end=from_end, as_asked=as_asked,
                       rebuild=_rebuilt(loaded) if rebuild else None, fix=L.choice("fix", fix, FIXES))
    run = Run(precision, target, accumulator, layer_precision, fusion, passes_off, fp32, require, unquantized, seed)

    def experiment(x: Experiment) -> PrecisionResult:
        out = c_void_p()
        x.want_precision()
        ok(lib.assay_debug_precision(x.debug.value, byref(options), x.samples.value, x.golden_value, byref(out)))
        return _result(x, L.Handle(out.value, lib.assay_precision_search_destroy))

    return conduct(loaded, run, Given(inputs, golden, intermediates, name_map), progress, experiment)
