"""Edits: a model in, a changed one out, and a proof of what that does to its outputs."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional

from . import _library as L
from ._calls import Progress, Reports, long_call
from ._library import STATUS, check as ok, lib
from ._results import Path, Result
from ._samples import samples_of
from ._sizes import Dims, InputShape, Shapes, shape_fields
from .errors import InvalidArgument
from .model import Model, as_model, sized

_EDITED = [c_void_p]
L.declare({
    "assay_edit_name": (c_char_p, [c_size_t]),
    "assay_edit_summary": (c_char_p, [c_size_t]),
    "assay_edit_option_name": (c_char_p, [c_size_t, c_size_t]),
    "assay_edit_option_value": (c_char_p, [c_size_t, c_size_t]),
    "assay_edit_option_help": (c_char_p, [c_size_t, c_size_t]),
    "assay_edit_option_repeats": (c_bool, [c_size_t, c_size_t]),
    "assay_edit_run": (STATUS, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "assay_edited_destroy": (None, _EDITED),
    "assay_edited_verdict": (c_int, _EDITED),
    "assay_edit_verdict_name": (c_char_p, [c_int]),
    "assay_edited_kept_promise": (c_bool, _EDITED),
    "assay_edited_may_write": (c_bool, _EDITED),
    "assay_edited_changes": (c_size_t, _EDITED),
    "assay_edited_done": (c_char_p, _EDITED),
    "assay_edited_why_not_proven": (c_char_p, _EDITED),
    "assay_edited_notes": (c_char_p, _EDITED),
    "assay_edited_output_count": (c_size_t, _EDITED),
    "assay_edited_output_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_edited_output_moved": (c_double, [c_void_p, c_size_t]),
    "assay_edited_output_scale": (c_double, [c_void_p, c_size_t]),
    "assay_edited_model": (STATUS, [c_void_p, POINTER(c_void_p)]),
    "assay_edited_write": (STATUS, [c_void_p, c_char_p]),
    "assay_edited_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p, c_void_p]),
})


class _Request(ctypes.Structure):
    _fields_ = [("option", c_char_p), ("value", c_char_p)]


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("requests", POINTER(_Request)), ("n_requests", c_size_t),
                ("samples", c_void_p), ("shapes", POINTER(InputShape)), ("n_shapes", c_size_t), ("n_samples", c_int),
                ("seed", c_uint64), ("no_proof", c_bool), ("force", c_bool), ("progress", c_void_p), ("user", c_void_p)]


@dataclass
class MovedOutput:
    """An output in float64 before and after. moved: the largest difference; scale: the largest magnitude before."""

    name: str
    moved: float
    scale: float


@dataclass
class EditResult(Result):
    """What an edit made of a model.

    verdict      "unchanged", "rounded", "changed" or "not proven": what the outputs in float64 did
    kept_promise whether the edit did what it promises; may_write: whether the model may be had
    changes, done  how much was changed, and what
    why_not_proven "": there is a proof
    outputs      that were compared; notes: what was left alone, and why
    """

    verdict: str
    kept_promise: bool
    may_write: bool
    changes: int
    done: str
    why_not_proven: str
    outputs: List[MovedOutput]
    notes: List[str]

    @property
    def model(self) -> Model:
        """The new model; Unsupported if it may not be had."""
        out = c_void_p()
        with self._lock:
            ok(lib.assay_edited_model(self._handle.value, byref(out)))
        return Model(L.Handle(out.value, lib.assay_model_release))

    def write_model(self, path: Path) -> None:
        """Writes the new model."""
        with self._lock:
            ok(lib.assay_edited_write(self._handle.value, os.fsencode(path)))


def edits() -> Dict[str, Dict[str, str]]:
    """The edits of the library: name -> {"": what it does, option: what it says}."""
    each: Dict[str, Dict[str, str]] = {}
    while True:
        i = len(each)
        name = lib.assay_edit_name(i)
        if name is None:
            return each
        row = each[L.text(name)] = {"": L.text(lib.assay_edit_summary(i))}
        for option in _option_names(i):
            row[option] = L.text(lib.assay_edit_option_help(i, len(row) - 1))


def _option_names(i: int) -> List[str]:
    names: List[str] = []
    while True:
        name = lib.assay_edit_option_name(i, len(names))
        if name is None:
            return names
        names.append(L.text(name))


def _requests(edit_name: str, options: Mapping[str, Any]) -> List[_Request]:
    """Keyword arguments as requests: True for an option without a value, a list for one that is given again."""
    names = list(edits())
    i = L.choice("edit", edit_name, names)
    known = _option_names(i)
    each = []
    for key, value in options.items():
        option = key.rstrip("_").replace("_", "-")
        if option not in known:
            raise InvalidArgument("edit %r has no option %r; it has %s"
                                  % (edit_name, key, ", ".join(k.replace("-", "_") for k in known) or "none"))
        if value is None or value is False:
            continue
        if not lib.assay_edit_option_value(i, known.index(option)):
            each.append(_Request(L.encode(option), None))
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            each.append(_Request(L.encode(option), L.encode(os.fspath(one) if isinstance(one, os.PathLike) else str(one))))
    return each


def edit(model: Any, name: str, *, inputs: Any = None, batch: Optional[int] = None, dims: Dims = None,
         shapes: Shapes = None, samples: int = 1, seed: int = 0, proof: bool = True, force: bool = False, progress: Progress = None,
         **options: Any) -> EditResult:
    """Changes a model, and runs it before and after in float64 on the same inputs.

    name     of the edit: one of edits(), such as "decompose", "cast", "quantize", "extract", "sanitize"
    inputs   for the proof, and for edits that calibrate, as of check(); None: `samples` of them are made from the seed
    batch, dims, shapes  of inputs that are made, as of Model.resize(); the new model's sizes stay open
    proof    run the models
    force    the model may be had and written whatever the proof says
    options  of the edit, with _ for -: True for one without a value, a list for one that may be given again

    Ctrl-C ends it.
    """
    loaded = as_model(model)
    reports = Reports(progress)
    requests = _requests(name, options)
    given_sizes = _shapes_of(sized(loaded, batch, dims, shapes), loaded)
    struct = _Options(requests=(_Request * max(1, len(requests)))(*requests), n_requests=len(requests), n_samples=samples,
                      seed=seed, no_proof=not proof, force=force, progress=reports.address, **shape_fields(given_sizes))

    def work() -> EditResult:
        out = c_void_p()
        given = samples_of(loaded, inputs) if inputs is not None else None
        struct.samples = given.value if given else None
        ok(lib.assay_edit_run(loaded._handle.value, L.encode(name), byref(struct), byref(out)))
        return _result(L.Handle(out.value, lib.assay_edited_destroy))

    return long_call(work, reports)


def _shapes_of(made: Model, loaded: Model) -> Shapes:
    """The shapes of a model's inputs, in which it is another one than `loaded`; None for sizes that are open."""
    if made is loaded:
        return None
    return {i.name: [d if isinstance(d, int) else None for d in i.shape] for i in made.inputs if i.shape}


def quantize(model: Any, *, format: str = "int8", inputs: Any = None, calibrator: Optional[str] = None,
             percentile: Optional[float] = None, per_tensor: bool = False, residuals: bool = False,
             calib: Optional[Path] = None, nodes: Any = None, not_nodes: Any = None, **more: Any) -> EditResult:
    """Inserts QuantizeLinear and DequantizeLinear, scales from samples: edit(model, "quantize", ...).

    format      "int8", "fp8", or "int4": of products' weights alone, in blocks
    inputs      samples that activations' ranges are taken from, as of check(); random ones have unrealistic ranges
    calibrator  an activation's range: "minmax", "entropy" or "percentile"
    percentile  this part of the magnitudes is in range, such as 99.99
    per_tensor  one scale for a weight, not one a channel
    residuals   what residual sums add to a product, too
    calib       a calibration cache of TensorRT's, scales of activations
    nodes, not_nodes  patterns of names of nodes

    Others as of edit(). The result's model may be built with precision="int8".
    """
    return edit(model, "quantize", inputs=inputs, format=format, calibrator=calibrator, percentile=percentile,
                per_tensor=per_tensor, residuals=residuals, calib=calib, nodes=nodes, not_nodes=not_nodes, **more)


def _result(handle: L.Handle) -> EditResult:
    e = handle.value
    outputs = [MovedOutput(L.text(lib.assay_edited_output_name(e, i)), float(lib.assay_edited_output_moved(e, i)),
                           float(lib.assay_edited_output_scale(e, i))) for i in range(lib.assay_edited_output_count(e))]
    result = EditResult(
        L.text(lib.assay_edit_verdict_name(lib.assay_edited_verdict(e))), bool(lib.assay_edited_kept_promise(e)),
        bool(lib.assay_edited_may_write(e)), int(lib.assay_edited_changes(e)), L.text(lib.assay_edited_done(e)),
        L.text(lib.assay_edited_why_not_proven(e)), outputs, L.text(lib.assay_edited_notes(e)).splitlines())
    result._open(handle, lambda kind, write, user: lib.assay_edited_report(e, kind, None, write, user), "outputs")
    return result
