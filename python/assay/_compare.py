"""Comparisons: two sets of arrays against each other, by name."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _library as L
from ._calls import long_call
from ._library import STATUS, check as ok, lib
from ._results import Result
from ._tensors import to_tensor
from .errors import InvalidArgument

_COMPARISON = [c_void_p]
L.declare({
    "assay_statistic_name": (c_char_p, [c_int]),
    "assay_compare_tensors": (STATUS, [c_size_t, POINTER(c_char_p), POINTER(c_void_p), c_size_t, POINTER(c_char_p),
                                       POINTER(c_void_p), c_void_p, POINTER(c_void_p)]),
    "assay_compare_files": (STATUS, [c_char_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "assay_comparison_destroy": (None, _COMPARISON),
    "assay_comparison_passed": (c_bool, _COMPARISON),
    "assay_comparison_count": (c_size_t, _COMPARISON),
    "assay_comparison_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_comparison_pair_passed": (c_bool, [c_void_p, c_size_t]),
    "assay_comparison_why": (c_char_p, [c_void_p, c_size_t]),
    "assay_comparison_statistic": (c_double, [c_void_p, c_size_t, c_int]),
    "assay_comparison_worst_at": (c_int64, [c_void_p, c_size_t]),
    "assay_comparison_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})


class _Limit(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("statistic", c_int), ("min", c_double), ("max", c_double)]


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("atol", c_double), ("rtol", c_double), ("no_tolerance", c_bool),
                ("allow_missing", c_bool), ("limits", POINTER(_Limit)), ("n_limits", c_size_t), ("ulp_format", c_int),
                ("top_k", c_int)]


@dataclass
class Pair:
    """Two arrays of one name. why: it has not passed; statistics: by name, NaN where these arrays have none."""

    name: str
    passed: bool
    why: str
    worst_at: int
    statistics: Dict[str, float]


@dataclass
class CompareResult(Result):
    """What a comparison found: whether all pairs passed, and each pair, in the reference's order."""

    passed: bool
    pairs: List[Pair]

    def _table(self) -> List[Dict[str, Any]]:
        return [{"name": p.name, "passed": p.passed, "why": p.why, "worst_at": p.worst_at, **p.statistics}
                for p in self.pairs]

    def __bool__(self) -> bool:
        return self.passed


def statistic_names() -> List[str]:
    """The names of what is measured of two arrays, such as "max_abs"."""
    names: List[str] = []
    while True:
        name = lib.assay_statistic_name(len(names))
        if name is None:
            return names
        names.append(L.text(name))


def _named(value: Any, what: str) -> Tuple[Any, List[L.Handle], Any, int]:
    if hasattr(value, "asdict"):
        value = value.asdict()
    if not isinstance(value, Mapping):
        value = dict(enumerate(value)) if isinstance(value, (list, tuple)) else {0: value}
    try:
        tensors = [to_tensor(v) for v in value.values()]
    except TypeError as e:
        raise InvalidArgument("%s: %s" % (what, e)) from None
    return (L.strings([str(n) for n in value]), tensors, (c_void_p * max(1, len(tensors)))(*[t.value for t in tensors]),
            len(tensors))


def _limits(limits: Optional[Mapping[str, Any]]) -> List[_Limit]:
    names = statistic_names()
    each = []
    for key, bounds in (limits or {}).items():
        name, _, statistic = key.rpartition(":")
        low, high = bounds
        each.append(_Limit(L.encode(name) if name else None, L.choice("statistic", statistic.strip(), names),
                           float("-inf") if low is None else low, float("inf") if high is None else high))
    return each


def compare(a: Any, b: Any, *, atol: float = 1e-5, rtol: float = 1e-5, tolerance: bool = True, allow_missing: bool = False,
            limits: Optional[Mapping[str, Sequence[Optional[float]]]] = None, ulp_format: Optional[str] = None,
            top_k: int = 5) -> CompareResult:
    """Compares arrays with those of the same names in a reference.

    a, b           {name: array}, Outputs, a sequence of arrays, one array; or paths of files, both
    atol, rtol     |error| <= atol + rtol * |reference|, element by element; tolerance=False: only shapes and limits
    allow_missing  names that one side lacks are left out; else they fail
    limits         {"max_abs": (None, 1e-3), "logits:cosine": (0.999, None)}: what statistics have to be
    ulp_format     whose steps "max_ulp" counts; None: of the reference's type
    top_k          of the statistic of this name, 1 to 64
    """
    each = _limits(limits)
    options = _Options(atol=atol, rtol=rtol, no_tolerance=not tolerance, allow_missing=allow_missing,
                       limits=(_Limit * len(each))(*each) if each else None, n_limits=len(each),
                       ulp_format=L.format_of(ulp_format), top_k=top_k)
    files = [isinstance(v, (str, os.PathLike)) for v in (a, b)]
    if any(files) and not all(files):
        raise InvalidArgument("compare() takes two paths, or arrays on both sides")

    def work() -> CompareResult:
        out = c_void_p()
        if all(files):
            ok(lib.assay_compare_files(os.fsencode(a), os.fsencode(b), byref(options), byref(out)))
        else:
            names, tensors, handles, n = _named(a, "the first side")
            other_names, others, other_handles, m = _named(b, "the second side")
            ok(lib.assay_compare_tensors(n, names, handles, m, other_names, other_handles, byref(options), byref(out)))
            del tensors, others
        return _result(L.Handle(out.value, lib.assay_comparison_destroy))

    return long_call(work)


def _result(handle: L.Handle) -> CompareResult:
    c, names = handle.value, statistic_names()
    pairs = [Pair(L.text(lib.assay_comparison_name(c, i)), bool(lib.assay_comparison_pair_passed(c, i)),
                  L.text(lib.assay_comparison_why(c, i)), int(lib.assay_comparison_worst_at(c, i)),
                  {name: float(lib.assay_comparison_statistic(c, i, k)) for k, name in enumerate(names)})
             for i in range(lib.assay_comparison_count(c))]
    result = CompareResult(bool(lib.assay_comparison_passed(c)), pairs)
    result._open(handle, lambda kind, write, user: lib.assay_comparison_report(c, kind, None, write, user))
    return result
