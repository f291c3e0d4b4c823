"""What a check is made of: the library's structs and functions, and the dataclasses that show them."""
from __future__ import annotations

from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, List, Optional

from . import _library as L
from ._library import STATUS, check as ok, lib

_CHECK = [c_void_p]
L.declare({
    "assay_verdict_name": (c_char_p, [c_int]),
    "assay_blame_name": (c_char_p, [c_int]),
    "assay_check_create": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_check_destroy": (None, _CHECK),
    "assay_check_use_command": (STATUS, [c_void_p, c_char_p, c_char_p, c_double, c_void_p, c_char_p]),
    "assay_check_use_outputs": (STATUS, [c_void_p, c_char_p, c_void_p, c_void_p, c_char_p]),
    "assay_check_run": (STATUS, [c_void_p, c_void_p, c_void_p]),
    "assay_check_notes": (c_char_p, _CHECK),
    "assay_check_faithful": (c_bool, _CHECK),
    "assay_check_blame": (c_int, _CHECK),
    "assay_check_unmet": (c_char_p, _CHECK),
    "assay_check_output_count": (c_size_t, _CHECK),
    "assay_check_output": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_check_layer_count": (c_size_t, _CHECK),
    "assay_check_layer": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_check_layer_node": (c_char_p, [c_void_p, c_size_t, c_size_t]),
    "assay_check_culprit_count": (c_size_t, _CHECK),
    "assay_check_culprit": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_check_fault_count": (c_size_t, _CHECK),
    "assay_check_fault": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_check_fix_count": (c_size_t, _CHECK),
    "assay_check_fix_node": (c_char_p, [c_void_p, c_size_t]),
    "assay_check_fix_format": (c_int, _CHECK),
    "assay_check_fix_verified": (c_bool, _CHECK),
    "assay_check_fix_runs": (c_int, _CHECK),
    "assay_check_fix_output": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_check_write_model": (STATUS, [c_void_p, c_char_p]),
    "assay_check_write_options": (STATUS, [c_void_p, c_char_p]),
    "assay_check_mended_count": (c_size_t, _CHECK),
    "assay_check_mended": (STATUS, [c_void_p, c_size_t, c_void_p]),
    "assay_check_repair": (STATUS, [c_void_p, c_char_p, c_void_p, c_void_p, c_char_p, POINTER(c_size_t), POINTER(c_bool)]),
    "assay_check_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
    "assay_check_annotate": (STATUS, [c_void_p, c_void_p, c_char_p, c_void_p, c_char_p, c_char_p, c_bool, c_char_p]),
})


class OptionsStruct(L.Options):
    _fields_ = [("struct_size", c_size_t), ("precision", c_int), ("accumulator", c_int), ("layer_precision", c_char_p),
                ("target", c_char_p), ("fusion", c_int), ("passes_off", POINTER(c_char_p)), ("n_passes_off", c_size_t),
                ("fp32", c_int), ("requirements", POINTER(c_char_p)), ("n_requirements", c_size_t),
                ("unquantized", c_bool), ("no_fix", c_bool), ("shares", c_bool), ("pictures", c_bool),
                ("search_seconds", c_double), ("seed", c_uint64), ("inject", c_char_p), ("progress", c_void_p),
                ("judged", c_void_p), ("user", c_void_p), ("fix", c_int)]


class OutputStruct(L.Options):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("faithful", c_bool), ("is_float", c_bool),
                ("elements", c_int64), ("differing", c_int64), ("nan", c_int64), ("inf", c_int64), ("max_abs", c_double),
                ("max_rel", c_double), ("rms", c_double), ("cosine", c_double), ("snr_db", c_double),
                ("has_golden", c_bool), ("golden_max_abs", c_double), ("golden_snr_db", c_double)]


class LayerStruct(L.Options):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("op", c_char_p), ("verdict", c_int), ("format", c_int),
                ("n_nodes", c_size_t), ("runs", c_int64), ("own_rms", c_double), ("own_max", c_double),
                ("inherited_rms", c_double), ("inherited_max", c_double), ("truth_max", c_double),
                ("own_over_probable", c_double), ("elements", c_int64), ("beyond", c_int64), ("overflowed", c_int64),
                ("underflowed", c_int64), ("born_nan", c_int64), ("flipped", c_int64)]


class CulpritStruct(L.Options):
    _fields_ = [("struct_size", c_size_t), ("layer", c_size_t), ("verdict", c_int), ("seen", c_bool), ("share", c_double),
                ("why", c_char_p), ("constant", c_char_p), ("constant_from", c_double), ("constant_becomes", c_double),
                ("shows", c_size_t)]


class FaultStruct(L.Options):
    _fields_ = [("struct_size", c_size_t), ("node", c_char_p), ("op", c_char_p), ("value", c_char_p), ("cause", c_char_p),
                ("repair", c_char_p), ("restored", c_bool)]


class MendedStruct(L.Options):
    _fields_ = [("struct_size", c_size_t), ("node", c_char_p), ("name", c_char_p), ("before", c_double), ("to", c_double)]


class NamesStruct(L.Options):
    _fields_ = [("struct_size", c_size_t), ("model", c_char_p), ("precision", c_char_p), ("golden", c_char_p),
                ("inputs", POINTER(c_char_p)), ("n_inputs", c_size_t), ("files", POINTER(c_char_p)),
                ("n_files", c_size_t), ("to_write", c_char_p), ("mended", c_char_p)]


@dataclass
class OutputAccount:
    """An output over all samples, the engine's against truth. Errors are in the output's own units, SNR in dB."""

    name: str
    faithful: bool
    is_float: bool
    elements: int
    differing: int
    nan: int
    inf: int
    max_abs: float
    max_rel: float
    rms: float
    cosine: float
    snr_db: float
    golden_max_abs: Optional[float]  # truth against golden; None: no golden was given for it
    golden_snr_db: Optional[float]


@dataclass
class LayerAccount:
    """A layer: its own error (its outputs minus truth on its own inputs) and the error that it inherited."""

    name: str
    op: str
    verdict: str
    format: str
    nodes: List[str]
    runs: int
    own_rms: float
    own_max: float
    inherited_rms: float
    inherited_max: float
    truth_max: float
    own_over_probable: float
    elements: int
    beyond: int
    overflowed: int
    underflowed: int
    nan_originating: int
    flipped: int


@dataclass
class Culprit:
    """A layer that outputs' errors come from. share: of an output's error; 0: not known."""

    layer: str
    verdict: str
    seen: bool
    share: float
    why: str
    constant: Optional[str]


@dataclass
class Fault:
    """A node that differs from golden: what its exporter did wrong."""

    node: str
    op: str
    value: str
    cause: Optional[str]
    repair: Optional[str]
    restored: bool


@dataclass
class Fix:
    """The nodes to keep in a higher format. outputs: those of the run that verified it."""

    nodes: List[str]
    format: str
    verified: bool
    runs: int
    outputs: List[OutputAccount]


@dataclass
class Mended:
    """A constant that the format cannot hold, and a number in its place that mends the outputs."""

    node: str
    name: str
    before: float
    to: float


def output_account(o: OutputStruct) -> OutputAccount:
    return OutputAccount(L.text(o.name), o.faithful, o.is_float, o.elements, o.differing, o.nan, o.inf, o.max_abs,
                         o.max_rel, o.rms, o.cosine, o.snr_db, o.golden_max_abs if o.has_golden else None,
                         o.golden_snr_db if o.has_golden else None)


def layer_account(c: Any, i: int, o: LayerStruct) -> LayerAccount:
    return LayerAccount(L.text(o.name), L.text(o.op), L.text(lib.assay_verdict_name(o.verdict)), L.format_name(o.format),
                        L.names_of(o.n_nodes, lambda k: lib.assay_check_layer_node(c, i, k)), o.runs, o.own_rms, o.own_max,
                        o.inherited_rms, o.inherited_max, o.truth_max, o.own_over_probable, o.elements, o.beyond,
                        o.overflowed, o.underflowed, o.born_nan, o.flipped)


def maybe(data: Optional[bytes]) -> Optional[str]:
    return None if data is None else L.text(data)


def structs_of(count: int, function: Any, handle: Any, struct: Any) -> List[Any]:
    """The structs that a function of an index fills."""
    each = []
    for i in range(count):
        each.append(struct())
        ok(function(handle, i, byref(each[-1])))
    return each


def fix_of(c: Any) -> Optional[Fix]:
    n = lib.assay_check_fix_count(c)
    if not n:
        return None
    verified = bool(lib.assay_check_fix_verified(c))
    outputs = structs_of(lib.assay_check_output_count(c), lib.assay_check_fix_output, c, OutputStruct)
    return Fix(L.names_of(n, lambda i: lib.assay_check_fix_node(c, i)), L.format_name(lib.assay_check_fix_format(c)),
               verified, lib.assay_check_fix_runs(c), [output_account(o) for o in outputs])
