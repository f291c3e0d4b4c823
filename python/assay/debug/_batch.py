"""The node that makes a sample's result depend on the batch that it is in."""
from __future__ import annotations

from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, List, Optional, Union

from .. import _library as L
from .._calls import Progress
from .._check_parts import structs_of
from .._library import STATUS, check as ok, lib
from .._plans import Rules, Texts
from .._results import Result
from .._sizes import Dims, Shapes
from ..model import sized
from ._run import Experiment, Given, Run, command_path, conduct, seconds_of

_SEARCH = [c_void_p]
L.declare({
    "assay_debug_batch": (STATUS, [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_batch_search_destroy": (None, _SEARCH),
    "assay_batch_search_verdict": (c_int, _SEARCH),
    "assay_batch_verdict_name": (c_char_p, [c_int]),
    "assay_batch_search_runs": (c_size_t, _SEARCH),
    "assay_batch_search_node_count": (c_size_t, _SEARCH),
    "assay_batch_search_node": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_batch_search_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("axis", c_char_p), ("command", c_char_p), ("model", c_char_p),
                ("seconds", c_double)]


class _Node(L.Options):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("op", c_char_p), ("why", c_char_p), ("guilty", c_bool),
                ("in_truth", c_bool), ("rounding", c_bool), ("declared", c_bool), ("moved", c_double)]


@dataclass
class BatchNode:
    """A node whose inputs stay the same from batch to batch, and whose result does not.

    name      "": a batch that the model allows does not run
    guilty    the first of the worst
    in_truth  the model itself does it; else the engine
    rounding  of the engine: no more than rounding explains
    declared  what the model declares anyway, or never promised: no fault
    moved     the largest difference, as a part of the largest value; NaN: not known
    """

    name: str
    op: str
    why: str
    guilty: bool
    in_truth: bool
    rounding: bool
    declared: bool
    moved: float


@dataclass
class BatchResult(Result):
    """Whether a sample's result depends on its batch.

    verdict  "sound"; "bits": the engine's bits do, by no more than rounding explains; "engine"; "model": truth does
    runs     in other batches than the first
    nodes    a BatchNode each
    """

    verdict: str
    runs: int
    nodes: List[BatchNode]

    @property
    def guilty(self) -> Optional[BatchNode]:
        """The node that is to blame; None: there is none."""
        return next((n for n in self.nodes if n.guilty), None)


def _result(x: Experiment, handle: L.Handle) -> BatchResult:
    s, names = handle.value, x.names()
    nodes = [BatchNode(L.text(n.name), L.text(n.op), L.text(n.why), n.guilty, n.in_truth, n.rounding, n.declared, n.moved)
             for n in structs_of(lib.assay_batch_search_node_count(s), lib.assay_batch_search_node, s, _Node)]
    result = BatchResult(L.text(lib.assay_batch_verdict_name(lib.assay_batch_search_verdict(s))),
                         int(lib.assay_batch_search_runs(s)), nodes)
    result._open(handle, lambda kind, write, user: lib.assay_batch_search_report(s, kind, byref(names), write, user), "nodes")
    return result


def batch(model: Any, *, axis: Union[None, int, str] = None, precision: Optional[str] = None, target: str = "emu",
          inputs: Any = None, command: Optional[str] = None, seconds: float = 0, accumulator: Optional[str] = None,
          layer_precision: Rules = None, fusion: Optional[bool] = None, passes_off: Texts = None, fp32: str = "tight",
          unquantized: bool = False, seed: int = 0, dims: Dims = None, shapes: Shapes = None,
          progress: Progress = None) -> BatchResult:
    """Runs one sample alone and in batches of several sizes, at each place, among other samples and among padding.

    Its part of every value has to stay the same. Truth is run first; the engine is held to what truth keeps.

    axis     the batch: a number, 0 is the first axis, or the name of an open size; None: one named after a batch, the
             first axis, or an open one
    inputs   samples; those that are missing are drawn
    command  another engine, which this shell command runs for each batch ({model} {inputs} {outputs} {precision});
             needs a model that came from a file. seconds: that one run may take; 0: 600

    Others as of assay.check(). Ctrl-C ends it.
    """
    loaded = sized(model, None, dims, shapes)
    options = _Options(axis=None if axis is None else L.encode(str(axis)), command=L.encode(command),
                       model=command_path(loaded, command), seconds=seconds_of("seconds", seconds))
    run = Run(precision, target, accumulator, layer_precision, fusion, passes_off, fp32, None, unquantized, seed)

    def experiment(x: Experiment) -> BatchResult:
        out = c_void_p()
        ok(lib.assay_debug_batch(x.debug.value, byref(options), x.samples.value, byref(out)))
        return _result(x, L.Handle(out.value, lib.assay_batch_search_destroy))

    return conduct(loaded, run, Given(inputs), progress, experiment)
