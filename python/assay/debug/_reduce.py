"""The smallest part of a model that still fails."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Optional

from .. import _library as L
from .._calls import Progress
from .._library import STATUS, check as ok, lib
from .._plans import Rules, Texts
from .._results import Path, Result
from .._sizes import Dims, Shapes
from ..model import sized
from ._run import Experiment, Given, Run, command_path, conduct, path_of, seconds_of

_REDUCTION = [c_void_p]
L.declare({
    "assay_debug_reduce": (STATUS, [c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_reduction_destroy": (None, _REDUCTION),
    "assay_reduction_verdict": (c_int, _REDUCTION),
    "assay_reduce_verdict_name": (c_char_p, [c_int]),
    "assay_reduction_node_count": (c_size_t, _REDUCTION),
    "assay_reduction_nodes_before": (c_size_t, _REDUCTION),
    "assay_reduction_tries": (c_size_t, _REDUCTION),
    "assay_reduction_why": (c_char_p, _REDUCTION),
    "assay_reduction_write": (STATUS, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "assay_reduction_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("judge", c_char_p), ("judge_seconds", c_double), ("seconds", c_double),
                ("command", c_char_p), ("model", c_char_p), ("command_seconds", c_double)]


class _Names(L.Options):
    _fields_ = [("struct_size", c_size_t), ("model", c_char_p), ("precision", c_char_p), ("folder", c_char_p),
                ("samples", c_size_t), ("command", c_char_p)]


@dataclass
class ReduceResult(Result):
    """The smallest part of a model that still fails.

    verdict       "reduced"; "whole": it fails, and no part of it was found that does; "sound": nothing fails
    nodes         of the part, but for Constants; nodes_before: of the model
    tries         parts that were run
    why           what is wrong with the part, in words; "": nothing, or the judge did not say
    """

    verdict: str
    nodes: int
    nodes_before: int
    tries: int
    why: str

    def write(self, folder: Path) -> int:
        """Writes model.onnx, inputs.npz and golden.npz into a folder, which is made and which reports name from then on.

        Gives how many samples are in the files; NotFound if the verdict is not "reduced".
        """
        samples, names = c_size_t(), self._names  # type: ignore[attr-defined]
        with self._lock:
            ok(lib.assay_reduction_write(self._handle.value, os.fsencode(folder), byref(samples)))
            names.folder, names.samples = os.fsencode(folder), samples.value
        return samples.value


def _result(x: Experiment, handle: L.Handle) -> ReduceResult:
    r, names = handle.value, _Names(model=path_of(x.model), precision=L.encode(x.run.precision))
    result = ReduceResult(
        L.text(lib.assay_reduce_verdict_name(lib.assay_reduction_verdict(r))), int(lib.assay_reduction_node_count(r)),
        int(lib.assay_reduction_nodes_before(r)), int(lib.assay_reduction_tries(r)), L.text(lib.assay_reduction_why(r)))
    result._names = names  # type: ignore[attr-defined]
    result._open(handle, lambda kind, write, user: lib.assay_reduction_report(r, kind, byref(names), write, user))
    return result


def reduce(model: Any, *, precision: Optional[str] = None, target: str = "emu", inputs: Any = None, golden: Any = None,
           intermediates: Optional[Path] = None, judge: Optional[str] = None, judge_seconds: float = 0,
           seconds: float = 0, command: Optional[str] = None, command_seconds: float = 0,
           accumulator: Optional[str] = None, layer_precision: Rules = None, fusion: Optional[bool] = None,
           passes_off: Texts = None, fp32: str = "tight", require: Texts = None, unquantized: bool = False,
           seed: int = 0, batch: Optional[int] = None, dims: Dims = None, shapes: Shapes = None,
           name_map: Optional[Path] = None, progress: Progress = None) -> ReduceResult:
    """Cuts a model to what is needed for its failure, and runs each part. A model that does not fail is no error.

    golden         outputs of the original framework, as of assay.check(): a fault of the export is reduced, too
    intermediates  a file of its inner values: where parts can be cut
    judge          your own, in place of the requirements: a shell command with {model} {inputs} {golden} {outputs} put
                   in (files); exit code 0: it does not fail. judge_seconds: that one run may take; 0: 600
    seconds        begin no new part after them; 0: 60
    command        another engine, which this shell command runs for each part ({model} {inputs} {outputs}
                   {precision}); needs a model that came from a file. command_seconds: that one run may take; 0: 600

    Others as of assay.check(). Ctrl-C ends it.
    """
    loaded = sized(model, batch, dims, shapes)
    options = _Options(judge=L.encode(judge), judge_seconds=seconds_of("judge_seconds", judge_seconds),
                       seconds=seconds_of("seconds", seconds), command=L.encode(command),
                       model=command_path(loaded, command),
                       command_seconds=seconds_of("command_seconds", command_seconds))
    run = Run(precision, target, accumulator, layer_precision, fusion, passes_off, fp32, require, unquantized, seed)

    def experiment(x: Experiment) -> ReduceResult:
        out = c_void_p()
        ok(lib.assay_debug_reduce(x.debug.value, byref(options), x.samples.value, x.golden_value, byref(out)))
        return _result(x, L.Handle(out.value, lib.assay_reduction_destroy))

    return conduct(loaded, run, Given(inputs, golden, intermediates, name_map), progress, experiment)
