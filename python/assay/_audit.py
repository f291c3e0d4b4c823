"""Audits: what a model can do in a precision for any input in a range, found without running it on data."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _library as L
from ._calls import Progress, Reports, long_call
from ._library import STATUS, check as ok, lib
from ._plans import Rules
from ._results import Path, Result
from ._samples import samples_of
from ._sizes import Dims, DimSize, InputShape, Shapes, size_fields, warn_of_batch
from ._tensors import from_tensor
from .engine import rules
from .errors import AssayError, NotFound
from .model import sized

_AUDIT = [c_void_p]
_FINDING = [c_void_p, c_int, c_size_t]
L.declare({
    "assay_audit_run": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_audit_destroy": (None, _AUDIT),
    "assay_audit_verdict": (c_int, _AUDIT),
    "assay_audit_verdict_name": (c_char_p, [c_int]),
    "assay_audit_input_count": (c_size_t, _AUDIT),
    "assay_audit_input_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_audit_input_range": (STATUS, [c_void_p, c_size_t, POINTER(c_double), POINTER(c_double)]),
    "assay_audit_value_range": (STATUS, [c_void_p, c_char_p, POINTER(c_double), POINTER(c_double)]),
    "assay_audit_safe_scale": (c_double, _AUDIT),
    "assay_audit_open_sizes": (c_char_p, _AUDIT),
    "assay_audit_batch_used": (c_bool, _AUDIT),
    "assay_audit_has_witness": (c_bool, _AUDIT),
    "assay_audit_witness": (c_void_p, [c_void_p, c_size_t]),
    "assay_audit_save_witness": (STATUS, [c_void_p, c_char_p]),
    "assay_audit_count": (c_size_t, [c_void_p, c_int]),
    "assay_audit_node": (c_char_p, _FINDING),
    "assay_audit_operator": (c_char_p, _FINDING),
    "assay_audit_kind": (c_char_p, _FINDING),
    "assay_audit_describe": (c_char_p, [*_FINDING, c_char_p, c_size_t]),
    "assay_audit_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})

TOPICS = ("hazards", "broadcasts", "baked", "constants", "operators")


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("precision", c_int), ("accumulator", c_int), ("layer_precision", c_char_p),
                ("boxes", POINTER(c_char_p)), ("n_boxes", c_size_t), ("samples", c_void_p),
                ("shapes", POINTER(InputShape)), ("n_shapes", c_size_t), ("no_radius", c_bool), ("no_witness", c_bool),
                ("seconds", c_double), ("seed", c_uint64), ("progress", c_void_p), ("user", c_void_p),
                ("dims", POINTER(DimSize)), ("n_dims", c_size_t), ("batch", c_int64)]


class _ReportOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("topics", c_uint)]


@dataclass
class Finding:
    """Something that an audit found at a node. topic: one of "hazards", "broadcasts", "baked", "constants", "operators"."""

    topic: str
    node: str
    op: str
    kind: str
    text: str


@dataclass
class AuditResult(Result):
    """What an audit found.

    verdict     "safe", "overflow", "may-overflow" or "not-known"
    box         input -> (lowest, highest)
    safe_scale  the largest factor by which the scaled box is safe; 0: none; NaN: not computed
    witness     an input in the box that breaks the model, by name; None: none was found
    findings    of all topics
    open_sizes  which sizes are 1 because nothing was said of them; "": none
    """

    verdict: str
    box: Dict[str, Tuple[float, float]]
    safe_scale: float
    witness: Optional[Dict[str, Any]]
    findings: List[Finding]
    open_sizes: str

    @property
    def safe(self) -> bool:
        """Whether no input in the box gives a NaN or an infinity anywhere."""
        return self.verdict == "safe"

    def range_of(self, name: str) -> Optional[Tuple[float, float]]:
        """Between which numbers a value of the model lies for all inputs in the box; None: nothing is known of it."""
        low, high = c_double(), c_double()
        with self._lock:
            try:
                ok(lib.assay_audit_value_range(self._handle.value, L.encode(name), byref(low), byref(high)))
            except NotFound:
                return None
        return low.value, high.value

    def save_witness(self, path: Path) -> None:
        """Writes the witness to an npz file, which reports name from then on."""
        with self._lock:
            ok(lib.assay_audit_save_witness(self._handle.value, os.fsencode(path)))

    def tell(self, *topics: str) -> str:
        """The text with topics in full; without arguments all of them."""
        bits = sum(1 << L.choice("topic", t, TOPICS) for t in topics or TOPICS)
        options = _ReportOptions(topics=bits)
        with self._lock:
            return L.collect(lambda write, user: lib.assay_audit_report(self._handle.value, L.TEXT, byref(options), write, user))


def _boxes(box: Any) -> List[str]:
    """Boxes in the library's words: of a number, a pair, or {input: number or pair}."""
    if box is None:
        return []
    if isinstance(box, str):
        return [box]
    if not isinstance(box, Mapping):
        return [_between(box)]
    return ["%s=%s" % (name, _between(b)) for name, b in box.items()]


def _between(box: Any) -> str:
    return "%r:%r" % (float(box[0]), float(box[1])) if isinstance(box, (list, tuple)) else "%r" % float(box)


def _findings(a: Any) -> List[Finding]:
    each = []
    line = ctypes.create_string_buffer(4096)
    for topic, name in enumerate(TOPICS):
        for i in range(lib.assay_audit_count(a, topic)):
            lib.assay_audit_describe(a, topic, i, line, len(line))
            each.append(Finding(name, L.text(lib.assay_audit_node(a, topic, i)), L.text(lib.assay_audit_operator(a, topic, i)),
                                L.text(lib.assay_audit_kind(a, topic, i)), L.text(line.value)))
    return each


def _result(handle: L.Handle, keep: Any) -> AuditResult:
    a = handle.value
    names = L.names_of(lib.assay_audit_input_count(a), lambda i: lib.assay_audit_input_name(a, i))
    box = {}
    for i, name in enumerate(names):
        low, high = c_double(), c_double()
        try:
            ok(lib.assay_audit_input_range(a, i, byref(low), byref(high)))
            box[name] = (low.value, high.value)
        except AssayError:  # it is not of numbers
            pass
    tensors = {name: lib.assay_audit_witness(a, i) for i, name in enumerate(names)}
    witness = {n: from_tensor(t) for n, t in tensors.items() if t} if lib.assay_audit_has_witness(a) else None
    result = AuditResult(L.text(lib.assay_audit_verdict_name(lib.assay_audit_verdict(a))), box,
                         float(lib.assay_audit_safe_scale(a)), witness, _findings(a),
                         L.text(lib.assay_audit_open_sizes(a)))
    result._open(handle, lambda kind, write, user: lib.assay_audit_report(a, kind, None, write, user), "findings")
    result._keep = keep  # type: ignore[attr-defined]
    return result


def audit(model: Any, *, precision: Optional[str] = None, accumulator: Optional[str] = None, layer_precision: Rules = None,
          box: Union[None, float, Tuple[float, float], str, Mapping[str, Union[float, Tuple[float, float]]]] = None,
          inputs: Any = None, shapes: Shapes = None, dims: Dims = None, batch: Optional[int] = None, radius: bool = True,
          witness: bool = True, seconds: float = 30, seed: int = 0, progress: Progress = None) -> AuditResult:
    """Says what a model can do in a precision for any input in a range, and what about it is there by accident.

    box        between which numbers inputs lie: a number R for -R to R, a pair, or {input: either}; what nothing is
               said of has the range of `inputs`, or -1 to 1
    inputs     samples, as of check(): their range is the box
    shapes, dims, batch  sizes that the model leaves open, as of Model.resize(); others are 1. Named sizes and the batch
               are for the ranges only: what is baked shows beside open ones
    radius     look for the largest box that is safe
    witness    look for an input that breaks the model, for so many `seconds`
    seed       of that search

    Others as of check(). Ctrl-C ends it.
    """
    loaded = sized(model, shapes=shapes)
    reports = Reports(progress)
    words = _boxes(box)
    options = _Options(
        precision=L.format_of(precision), accumulator=L.format_of(accumulator), layer_precision=rules(layer_precision),
        boxes=L.strings(words) if words else None, n_boxes=len(words), no_radius=not radius,
        no_witness=not witness, seconds=seconds, seed=seed, progress=reports.address, **size_fields(batch, dims, shapes))

    def work() -> AuditResult:
        out = c_void_p()
        samples = samples_of(loaded, inputs) if inputs is not None else None
        options.samples = samples.value if samples else None
        ok(lib.assay_audit_run(loaded._handle.value, byref(options), byref(out)))
        return _result(L.Handle(out.value, lib.assay_audit_destroy), (samples, loaded))

    result = long_call(work, reports)
    warn_of_batch(batch, bool(lib.assay_audit_batch_used(result._handle.value)))
    return result
