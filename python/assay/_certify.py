"""Certificates: what a run of a model was, in a small file, and whether another run is the same."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, List, Optional

from . import _library as L
from ._calls import Progress, Reports, long_call
from ._library import STATUS, check as ok, lib
from ._plans import Rules, Texts, plan_fields
from ._results import Path, Result, listed
from ._samples import samples_of
from .engine import FP32, Engine
from ._sizes import Dims, Shapes
from .model import Model, as_model, sized

_CERTIFICATE = [c_void_p]
L.declare({
    "assay_certificate_make": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_certificate_load": (STATUS, [c_char_p, POINTER(c_void_p)]),
    "assay_certificate_save": (STATUS, [c_void_p, c_char_p]),
    "assay_certificate_destroy": (None, _CERTIFICATE),
    "assay_certificate_precision": (c_char_p, _CERTIFICATE),
    "assay_certificate_layer_precision": (c_char_p, _CERTIFICATE),
    "assay_certificate_target": (c_char_p, _CERTIFICATE),
    "assay_certificate_shapes": (c_char_p, _CERTIFICATE),
    "assay_certificate_version": (c_char_p, _CERTIFICATE),
    "assay_certificate_seed": (c_uint64, _CERTIFICATE),
    "assay_certificate_needs_samples": (c_bool, _CERTIFICATE),
    "assay_certificate_bytes": (c_size_t, _CERTIFICATE),
    "assay_certificate_value_count": (c_size_t, _CERTIFICATE),
    "assay_certificate_kept_count": (c_size_t, _CERTIFICATE),
    "assay_certificate_load_model": (STATUS, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "assay_certificate_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p]),
    "assay_verification_run": (STATUS, [c_void_p, c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_verification_destroy": (None, _CERTIFICATE),
    "assay_verification_holds": (c_bool, _CERTIFICATE),
    "assay_verification_change_count": (c_size_t, _CERTIFICATE),
    "assay_verification_change_kind": (c_char_p, [c_void_p, c_size_t]),
    "assay_verification_change_node": (c_char_p, [c_void_p, c_size_t]),
    "assay_verification_change_why": (c_char_p, [c_void_p, c_size_t]),
    "assay_verification_change_is_note": (c_bool, [c_void_p, c_size_t]),
    "assay_verification_change_is_cause": (c_bool, [c_void_p, c_size_t]),
    "assay_verification_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p]),
})


class _CertifyOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("target", c_char_p), ("precision", c_int), ("layer_precision", c_char_p),
                ("fp32", c_int), ("fusion", c_int), ("passes_off", POINTER(c_char_p)), ("n_passes_off", c_size_t),
                ("unquantized", c_bool), ("seed", c_uint64), ("samples", c_void_p), ("thresholds", POINTER(c_char_p)),
                ("n_thresholds", c_size_t), ("max_bytes", c_size_t), ("inject", c_char_p), ("progress", c_void_p),
                ("user", c_void_p)]


class _VerifyOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("target", c_char_p), ("other_fp32", c_bool), ("fp32", c_int),
                ("fusion", c_int), ("passes_off", POINTER(c_char_p)), ("n_passes_off", c_size_t), ("samples", c_void_p),
                ("engine", c_void_p), ("engine_name", c_char_p), ("bits", c_bool), ("inject", c_char_p),
                ("progress", c_void_p), ("user", c_void_p)]


@dataclass
class Change:
    """What changed since a certificate was made. note: it holds all the same; cause: it explains the others."""

    kind: str
    node: str
    why: str
    note: bool
    cause: bool


@dataclass
class Verification(Result):
    """Whether a run is what its certificate says, and what changed."""

    holds: bool
    changes: List[Change]

    def __bool__(self) -> bool:
        return self.holds


@dataclass
class Certificate(Result):
    """What a run of a model was. bytes: of its file; values: of the model; kept: those that there was room for."""

    precision: str
    layer_precision: str
    target: str
    shapes: str
    version: str
    seed: int
    needs_inputs: bool
    bytes: int
    values: int
    kept: int

    def save(self, path: Path) -> None:
        """Writes the certificate's file; to .json, .html or .txt its report."""
        if os.path.splitext(os.fsdecode(path))[1].lower() in (".json", ".html", ".htm", ".txt"):
            super().save(path)
            return
        with self._lock:
            ok(lib.assay_certificate_save(self._handle.value, os.fsencode(path)))

    @classmethod
    def load(cls, path: Path) -> "Certificate":
        """Reads a certificate from its file."""
        out = c_void_p()
        ok(lib.assay_certificate_load(os.fsencode(path), byref(out)))
        return _certificate(L.Handle(out.value, lib.assay_certificate_destroy), None)

    def verify(self, model: Any = None, *, engine: Optional[Engine] = None, target: Optional[str] = None, inputs: Any = None,
               fp32: Optional[str] = None, fusion: Optional[bool] = None, passes_off: Texts = None, bits: bool = False,
               progress: Progress = None) -> Verification:
        """Runs a model again, and holds the run against the certificate.

        model   a path, which is read in the shapes that were certified, or a Model in them (Model.resize)
        engine  run this one in the place of a target; without a model its own is taken
        target  None: the certificate's
        inputs  as certified; None: drawn from the certificate's seed
        bits    other bits are a change; else only what passes its bounds is
        """
        loaded = self._model(model, engine)
        reports = Reports(progress)
        plan = plan_fields(target, None, fusion, passes_off, fp32 or FP32[0])
        del plan["layer_precision"]
        options = _VerifyOptions(other_fp32=fp32 is not None, engine=engine._handle.value if engine else None, bits=bits,
                                 progress=reports.address, **plan)

        def work() -> Verification:
            out = c_void_p()
            samples = samples_of(loaded, inputs) if inputs is not None else None
            options.samples = samples.value if samples else None
            ok(lib.assay_verification_run(self._handle.value, loaded._handle.value, byref(options), byref(out)))
            return _verification(L.Handle(out.value, lib.assay_verification_destroy), (self, samples, engine))

        return long_call(work, reports)

    def _model(self, model: Any, engine: Optional[Engine]) -> Model:
        if model is None and engine is not None:
            return engine.model
        if not isinstance(model, (str, os.PathLike)):
            return as_model(model)
        out = c_void_p()
        ok(lib.assay_certificate_load_model(self._handle.value, os.fsencode(model), byref(out)))
        return Model(L.Handle(out.value, lib.assay_model_release))


def _verification(handle: L.Handle, keep: Any) -> Verification:
    v = handle.value
    changes = [Change(L.text(lib.assay_verification_change_kind(v, i)), L.text(lib.assay_verification_change_node(v, i)),
                      L.text(lib.assay_verification_change_why(v, i)), bool(lib.assay_verification_change_is_note(v, i)),
                      bool(lib.assay_verification_change_is_cause(v, i)))
               for i in range(lib.assay_verification_change_count(v))]
    result = Verification(bool(lib.assay_verification_holds(v)), changes)
    result._open(handle, lambda kind, write, user: lib.assay_verification_report(v, kind, write, user), "changes")
    result._keep = keep  # type: ignore[attr-defined]
    return result


def _certificate(handle: L.Handle, keep: Any) -> Certificate:
    c = handle.value
    result = Certificate(
        L.text(lib.assay_certificate_precision(c)), L.text(lib.assay_certificate_layer_precision(c)),
        L.text(lib.assay_certificate_target(c)), L.text(lib.assay_certificate_shapes(c)),
        L.text(lib.assay_certificate_version(c)), int(lib.assay_certificate_seed(c)),
        bool(lib.assay_certificate_needs_samples(c)), int(lib.assay_certificate_bytes(c)),
        int(lib.assay_certificate_value_count(c)), int(lib.assay_certificate_kept_count(c)))
    result._open(handle, lambda kind, write, user: lib.assay_certificate_report(c, kind, write, user))
    result._keep = keep  # type: ignore[attr-defined]
    return result


def certify(model: Any, *, precision: Optional[str] = None, target: str = "emu", layer_precision: Rules = None,
            fusion: Optional[bool] = None, passes_off: Texts = None, fp32: str = "tight", unquantized: bool = False,
            inputs: Any = None, thresholds: Texts = None, max_bytes: int = 0, seed: int = 0, batch: Optional[int] = None,
            dims: Dims = None, shapes: Shapes = None, progress: Progress = None) -> Certificate:
    """Runs a model beside its truth, and notes what that was: certificate.save(path), certificate.verify(model).

    inputs      as of check(); verifying needs the same. None: drawn from the seed
    thresholds  "OUTPUT:VALUE", one or several: elements of this output are decided by a threshold
    max_bytes   how large the certificate may be; 0: 1 % of the model, or 512 bytes
    batch, dims, shapes  as of check(); the certificate has them, and verify() reads a path in them

    Others as of check(). Ctrl-C ends it.
    """
    loaded = sized(model, batch, dims, shapes)
    reports = Reports(progress)
    words = listed(thresholds)
    options = _CertifyOptions(precision=L.format_of(precision), unquantized=unquantized, seed=seed,
                              thresholds=L.strings(words) if words else None, n_thresholds=len(words),
                              max_bytes=max_bytes, progress=reports.address,
                              **plan_fields(target, layer_precision, fusion, passes_off, fp32))

    def work() -> Certificate:
        out = c_void_p()
        samples = samples_of(loaded, inputs) if inputs is not None else None
        options.samples = samples.value if samples else None
        ok(lib.assay_certificate_make(loaded._handle.value, byref(options), byref(out)))
        return _certificate(L.Handle(out.value, lib.assay_certificate_destroy), (samples, loaded))

    return long_call(work, reports)
