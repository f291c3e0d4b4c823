"""What experiments share: how the model is run, its inputs and golden, and what reports call things."""
from __future__ import annotations

import os
import threading
import weakref
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar

from .. import _library as L
from .._calls import Progress, Reports, long_call
from .._library import STATUS, check as ok, lib
from .._plans import Rules, Texts, plan_fields, require_fields
from .._results import Path, Result
from .._samples import golden_of, samples_of
from ..errors import InvalidArgument
from ..model import Model

L.declare({
    "assay_debug_create": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_debug_release": (None, [c_void_p]),
    "assay_debug_has_precision": (c_bool, [c_void_p]),
})

R = TypeVar("R", bound=Result)


class _Options(L.Options):
    _fields_ = [("struct_size", c_size_t), ("precision", c_int), ("accumulator", c_int), ("layer_precision", c_char_p),
                ("target", c_char_p), ("fusion", c_int), ("passes_off", POINTER(c_char_p)), ("n_passes_off", c_size_t),
                ("fp32", c_int), ("requirements", POINTER(c_char_p)), ("n_requirements", c_size_t),
                ("unquantized", c_bool), ("seed", c_uint64), ("inject", c_char_p), ("progress", c_void_p),
                ("user", c_void_p)]


class Names(L.Options):
    """assay_debug_report_options_t."""

    _fields_ = [("struct_size", c_size_t), ("model", c_char_p), ("precision", c_char_p), ("saved_model", c_char_p),
                ("saved_options", c_char_p), ("all", c_bool)]


@dataclass
class Run:
    """How a model is run; the parameters of the same names."""

    precision: Optional[str] = None
    target: Optional[str] = None
    accumulator: Optional[str] = None
    layer_precision: Rules = None
    fusion: Optional[bool] = None
    passes_off: Texts = None
    fp32: str = "tight"
    require: Texts = None
    unquantized: bool = False
    seed: int = 0

    def options(self, reports: Reports) -> _Options:
        return _Options(
            precision=L.format_of(self.precision), accumulator=L.format_of(self.accumulator),
            unquantized=self.unquantized, seed=self.seed, progress=reports.address,
            **plan_fields(self.target, self.layer_precision, self.fusion, self.passes_off, self.fp32),
            **require_fields(self.require))


@dataclass
class Given:
    """What a model is run on, and what is known of its outputs; the parameters of the same names."""

    inputs: Any = None
    golden: Any = None
    intermediates: Optional[Path] = None
    name_map: Optional[Path] = None


@dataclass
class Experiment:
    """The library's experiment with what it is given, while one function of it runs."""

    model: Model
    run: Run
    debug: L.Handle
    samples: L.Handle
    golden: Optional[L.Handle]
    reports: Reports

    @property
    def golden_value(self) -> Any:
        return self.golden.value if self.golden else None

    def names(self, all: bool = False) -> Names:
        """What reports call things; all: they leave nothing out."""
        return Names(model=path_of(self.model), precision=L.encode(self.run.precision), all=all)

    def want_precision(self) -> None:
        """That a precision is asked for at all."""
        if not lib.assay_debug_has_precision(self.debug.value):
            raise InvalidArgument('say which precision is asked for: precision="fp16"')


def path_of(model: Model) -> Optional[bytes]:
    """The path of a model's file; None: it came from bytes."""
    return os.fsencode(model.path) if model.path else None


def command_path(model: Model, command: Optional[str]) -> Optional[bytes]:
    """The path that stands for {model} in a command; None where there is no command."""
    if command and not model.path:
        raise InvalidArgument("a command needs a model that came from a file: it is given the file")
    return path_of(model) if command else None


def seconds_of(name: str, value: float) -> c_double:
    """A time in seconds, 0 for the library's own."""
    if not value >= 0:
        raise InvalidArgument("%s is %r; give a number of seconds, 0 or more" % (name, value))
    return c_double(value)


class _Turn:
    """Of a model's experiments the library allows one at a time; others wait."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_turns: "weakref.WeakValueDictionary[int, _Turn]" = weakref.WeakValueDictionary()
_turns_lock = threading.Lock()


def _turn_of(model: Model) -> _Turn:
    """That of the library's model, which several Models may be of."""
    with _turns_lock:
        return _turns.setdefault(model._handle.value, _Turn())


def conduct(model: Model, run: Run, given: Given, progress: Progress, experiment: Callable[[Experiment], R]) -> R:
    """Makes an experiment of a model, and what comes of it; Ctrl-C ends it."""
    reports = Reports(progress)

    def work() -> R:
        out = c_void_p()
        with _turn_of(model).lock:
            ok(lib.assay_debug_create(model._handle.value, byref(run.options(reports)), byref(out)))
            debug = L.Handle(out.value, lib.assay_debug_release)
            samples = samples_of(model, given.inputs, run.seed)
            golden = golden_of(model, given.golden, samples, run.seed, given.intermediates, given.name_map)
            x = Experiment(model, run, debug, samples, golden, reports)
            result = experiment(x)
        result._keep = x  # type: ignore[attr-defined]
        return result

    return long_call(work, reports)
