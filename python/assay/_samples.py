"""Inputs and golden outputs of checks and the like: files, arrays, or drawn from a seed."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from . import _library as L
from ._library import STATUS, check, lib
from ._tensors import to_tensor
from .errors import InvalidArgument
from .model import Model

L.declare({
    "assay_samples_load": (STATUS, [c_void_p, c_size_t, POINTER(c_char_p), c_void_p, POINTER(c_void_p)]),
    "assay_samples_create": (STATUS, [c_void_p, c_size_t, c_size_t, POINTER(c_char_p), POINTER(c_void_p), c_void_p,
                                      POINTER(c_void_p)]),
    "assay_samples_random": (STATUS, [c_void_p, c_uint64, c_size_t, c_void_p, POINTER(c_void_p)]),
    "assay_samples_destroy": (None, [c_void_p]),
    "assay_samples_count": (c_size_t, [c_void_p]),
    "assay_samples_notes": (c_char_p, [c_void_p]),
    "assay_golden_load_files": (STATUS, [c_void_p, c_size_t, POINTER(c_char_p), c_size_t, c_void_p, POINTER(c_void_p)]),
    "assay_golden_create": (STATUS, [c_void_p, c_size_t, c_size_t, POINTER(c_char_p), POINTER(c_void_p), c_size_t,
                                     c_void_p, POINTER(c_void_p)]),
    "assay_golden_run": (STATUS, [c_void_p, c_char_p, c_void_p, c_uint64, c_void_p, POINTER(c_void_p)]),
    "assay_golden_add_intermediates": (STATUS, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "assay_golden_destroy": (None, [c_void_p]),
    "assay_golden_notes": (c_char_p, [c_void_p]),
})


class _SamplesOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("outputs", c_bool), ("partial", c_bool), ("dtypes", POINTER(c_char_p)),
                ("n_dtypes", c_size_t), ("image_height", c_int64), ("image_width", c_int64), ("image_shorter", c_int64),
                ("crop_height", c_int64), ("crop_width", c_int64), ("image_scale", c_double),
                ("image_mean", POINTER(c_double)), ("image_std", POINTER(c_double)), ("n_image_mean", c_int),
                ("n_image_std", c_int), ("image_layout", c_char_p)]


class _GoldenOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("reading", c_void_p), ("name_map", c_char_p)]


def _paths(value: Any) -> Optional[List[str]]:
    """Paths of files: one or several; None: it is something else."""
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, (str, os.PathLike)) for v in value):
        return [os.fspath(v) for v in value]
    return None


def _runs(value: Any, names: Sequence[str], what: str) -> List[Mapping[str, Any]]:
    """Arrays by name, of one run or several. A sequence of arrays is a run in the model's order."""
    if hasattr(value, "asdict"):
        value = value.asdict()
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, (list, tuple)):
        value = [value]
    runs = [v.asdict() if hasattr(v, "asdict") else v for v in value]
    if all(isinstance(v, Mapping) for v in runs):
        return runs
    if len(runs) != len(names):
        raise InvalidArgument("%s: %d arrays were given; the model has %d: %s"
                              % (what, len(runs), len(names), ", ".join(map(repr, names))))
    return [dict(zip(names, runs))]


def _tensors(runs: List[Mapping[str, Any]], kinds: Mapping[str, str], what: str) -> Tuple[List[str], List[L.Handle]]:
    if not runs:
        raise InvalidArgument("%s: no samples were given" % what)
    names = list(runs[0])
    tensors = []
    for i, run in enumerate(runs):
        if set(run) != set(names):
            raise InvalidArgument("%s: sample %d has %s, the first one %s" % (what, i, sorted(run), sorted(names)))
        for name in names:
            kind = kinds.get(name, "")
            try:
                tensors.append(to_tensor(run[name], kind if "(" in kind else ""))
            except (TypeError, ValueError) as e:
                raise InvalidArgument("%s '%s': %s" % (what, name, e)) from None
    return names, tensors


def _arguments(names: Sequence[str], tensors: Sequence[L.Handle]) -> Tuple[Any, Any]:
    return L.strings(names), (c_void_p * max(1, len(tensors)))(*[t.value for t in tensors])


def samples_of(model: Model, inputs: Any, seed: int = 0) -> L.Handle:
    """Samples of a model's inputs.

    inputs  paths of files as `assay run --inputs` takes them; {name: array} or arrays in order for one sample (or
            several, along a first dimension); a list of dicts for a sample each; None: drawn from the seed, with 1 for
            sizes that the model leaves open
    """
    out = c_void_p()
    m = model._handle.value
    paths = _paths(inputs)
    if inputs is None:
        check(lib.assay_samples_random(m, seed, 0, None, byref(out)))
    elif paths:
        check(lib.assay_samples_load(m, len(paths), L.strings(paths), None, byref(out)))
    else:
        runs = _runs(inputs, [i.name for i in model.inputs], "inputs")
        names, tensors = _tensors(runs, {i.name: i.type for i in model.inputs}, "input")
        c_names, handles = _arguments(names, tensors)
        check(lib.assay_samples_create(m, len(runs), len(names), c_names, handles, None, byref(out)))
    return L.Handle(out.value, lib.assay_samples_destroy)


def golden_of(model: Model, golden: Any, samples: L.Handle, seed: int = 0, intermediates: Any = None,
              name_map: Any = None) -> Optional[L.Handle]:
    """Outputs that are known from elsewhere.

    golden         paths of files; {name: array} or a list of such, a sample each; the path of an .onnx file, which
                   is run on the same inputs in float64; None: none
    intermediates  a file of inner values of the first sample
    name_map       a JSON file {"name in the files": "name in the model"}
    """
    out = c_void_p()
    m, n = model._handle.value, lib.assay_samples_count(samples.value)
    options = _GoldenOptions(name_map=os.fsencode(name_map) if name_map else None)
    paths = _paths(golden)
    if paths and len(paths) == 1 and paths[0].lower().endswith(".onnx"):
        check(lib.assay_golden_run(m, os.fsencode(paths[0]), samples.value, seed, byref(options), byref(out)))
    elif paths:
        check(lib.assay_golden_load_files(m, len(paths), L.strings(paths), n, byref(options), byref(out)))
    elif golden is not None:
        runs = _runs(golden, [o.name for o in model.outputs], "golden")
        names, tensors = _tensors(runs, {o.name: o.type for o in model.outputs}, "golden")
        c_names, handles = _arguments(names, tensors)
        check(lib.assay_golden_create(m, len(runs), len(names), c_names, handles, n, byref(options), byref(out)))
    if intermediates:
        check(lib.assay_golden_add_intermediates(m, os.fsencode(intermediates), byref(options), byref(out)))
    return L.Handle(out.value, lib.assay_golden_destroy) if out.value else None
