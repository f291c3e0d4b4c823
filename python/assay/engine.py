"""Engines: models compiled for a target."""
from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _library as L
from ._calls import long_call
from ._library import STATUS, check, lib
from ._tensors import as_array, array_tensor
from .errors import InvalidArgument, NotFound
from .model import Model, as_model
from .values import Outputs, Range, ValueInfo, describe

L.declare({
    "assay_engine_build": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_engine_load_on": (STATUS, [c_char_p, c_char_p, POINTER(c_void_p)]),
    "assay_engine_save": (STATUS, [c_void_p, c_char_p]),
    "assay_engine_missing_weights": (c_size_t, [c_void_p, POINTER(c_uint64)]),
    "assay_engine_refit": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_engine_refit_tensors": (STATUS, [c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_void_p),
                                            POINTER(c_void_p)]),
    "assay_engine_model": (c_void_p, [c_void_p]),
    "assay_engine_release": (None, [c_void_p]),
    "assay_engine_input_count": (c_size_t, [c_void_p]),
    "assay_engine_input": (c_void_p, [c_void_p, c_size_t]),
    "assay_engine_output_count": (c_size_t, [c_void_p]),
    "assay_engine_output": (c_void_p, [c_void_p, c_size_t]),
    "assay_engine_profile_count": (c_size_t, [c_void_p]),
    "assay_engine_profile_range": (STATUS, [c_void_p, c_size_t, c_size_t, c_void_p]),
    "assay_io_name": (c_char_p, [c_void_p]),
    "assay_io_elem": (c_int, [c_void_p]),
    "assay_io_type": (c_char_p, [c_void_p, c_char_p, c_size_t]),
    "assay_target_name": (c_char_p, [c_size_t]),
})

FP32 = ("tight", "plain", "bound")
Shapes = Union[None, Mapping[str, Union[Sequence[int], Range]], Sequence[Mapping[str, Union[Sequence[int], Range]]]]


class _Shape(ctypes.Structure):
    _fields_ = [("input", c_char_p), ("rank", c_int), ("dims", POINTER(c_int64)), ("min", POINTER(c_int64)),
                ("max", POINTER(c_int64))]


class _EngineRange(L.Options):
    _fields_ = [("struct_size", c_size_t), ("values", c_bool), ("rank", c_int), ("min", c_int64 * 8),
                ("best", c_int64 * 8), ("max", c_int64 * 8)]


class EngineOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("target", c_char_p), ("precision", c_int), ("accumulator", c_int),
                ("layer_precision", c_char_p), ("shapes", POINTER(_Shape)), ("n_shapes", c_size_t), ("batch", c_int64),
                ("tactic_sources", c_char_p), ("timing_cache", c_char_p), ("measure", c_bool), ("strict", c_bool),
                ("fusion", c_int), ("seed", c_uint64), ("batch_variant", c_bool), ("fp32", c_int),
                ("strip_weights", c_bool), ("refittable", c_bool)]


def targets() -> List[str]:
    """The names of what this library can build for."""
    names: List[str] = []
    while True:
        name = lib.assay_target_name(len(names))
        if name is None:
            return names
        names.append(L.text(name))


def _sizes(shape: Sequence[Any]) -> Any:
    """A shape for the library; None and -1 keep what the model declares."""
    return (c_int64 * max(1, len(shape)))(*[-1 if d is None else int(d) for d in shape])


def _shape(name: str, shape: Any) -> _Shape:
    if isinstance(shape, Range):
        if not len(shape.min) == len(shape.best) == len(shape.max):
            raise InvalidArgument("the shapes of the range of '%s' have %d, %d and %d dimensions"
                                  % (name, len(shape.min), len(shape.best), len(shape.max)))
        return _Shape(L.encode(name), len(shape.best), _sizes(shape.best), _sizes(shape.min), _sizes(shape.max))
    return _Shape(L.encode(name), len(shape), _sizes(shape), None, None)


def engine_shapes(shapes: Shapes) -> Tuple[Any, int]:
    """An array of assay_engine_shape_t: a list of mappings is a profile each."""
    if not shapes:
        return None, 0
    profiles = [shapes] if isinstance(shapes, Mapping) else list(shapes)
    each = [_shape(name, shape) for profile in profiles for name, shape in profile.items()]
    return (_Shape * len(each))(*each), len(each)


def rules(layer_precision: Union[None, str, Mapping[str, str]]) -> Optional[bytes]:
    """Rules "PATTERN:FORMAT,..." of text or of {pattern: format}."""
    if isinstance(layer_precision, Mapping):
        layer_precision = ",".join("%s:%s" % pair for pair in layer_precision.items())
    return L.encode(layer_precision)


def build(model: Any, *, target: str = "cpu", precision: Optional[str] = None, accumulator: Optional[str] = None,
          layer_precision: Union[None, str, Mapping[str, str]] = None, shapes: Shapes = None,
          batch: Optional[int] = None, timing_cache: Union[None, str, "os.PathLike[str]"] = None,
          tactic_sources: Optional[str] = None, measure: bool = False, strict: bool = False, fusion: bool = True,
          seed: int = 0, batch_variant: bool = False, fp32: str = "tight", strip_weights: bool = False,
          refittable: bool = False) -> "Engine":
    """Compiles a model.

    model            a Model, or what load() takes
    target           what it is for: one of targets()
    precision        of float32 values, such as "fp16"; None: as declared. "int8" is for models with quantizers
    accumulator      what sums are kept in; None: the precision's own
    layer_precision  "PATTERN:FORMAT,..." or {pattern: format} on names of nodes and outputs
    shapes           {"x": (1, 3, 224, 224)}, {"x": assay.Range(min=..., best=..., max=...)}, or a list of such, a
                     profile each; None in a shape keeps what the model declares
    batch            leading dimension of inputs that leave it open
    timing_cache     a file of measured times, read and added to
    tactic_sources   kernels of these sources only, such as "assay,onednn"
    measure          time the kernels that compete for a layer
    strict           fail where a layer would not run in the format asked for
    fusion           several nodes in a layer
    batch_variant    the fastest of all kernels, though bits then depend on the batch
    fp32             which kernels fp32 layers may use: "tight", "plain" or "bound"
    strip_weights    save() leaves the elements of weights out
    refittable       with strip_weights: other weights may take their place

    Ctrl-C ends it.
    """
    loaded = as_model(model)
    each, n = engine_shapes(shapes)
    options = EngineOptions(
        target=L.encode(target), precision=L.format_of(precision), accumulator=L.format_of(accumulator),
        layer_precision=rules(layer_precision), shapes=each, n_shapes=n, batch=batch or 0,
        tactic_sources=L.encode(tactic_sources), timing_cache=os.fsencode(timing_cache) if timing_cache else None,
        measure=measure, strict=strict, fusion=L.fusion_of(fusion), seed=seed, batch_variant=batch_variant,
        fp32=L.choice("fp32", fp32, FP32), strip_weights=strip_weights, refittable=refittable)
    return _make(lambda out: lib.assay_engine_build(loaded._handle.value, byref(options), out))


def _make(call: Callable[[Any], Any]) -> "Engine":
    """An engine that a call gives, which Ctrl-C ends."""
    def work() -> L.Handle:
        out = c_void_p()
        check(call(byref(out)))
        return L.Handle(out.value, lib.assay_engine_release)

    return Engine(long_call(work))


def _io(io: int) -> ValueInfo:
    text = ctypes.create_string_buffer(4096)
    lib.assay_io_type(io, text, len(text))
    return describe(L.text(lib.assay_io_name(io)), L.text(text.value), lib.assay_io_elem(io))


class Engine:
    """A model compiled for a target. Immutable; its contexts run it side by side and share its weights.

    inputs, outputs  list of ValueInfo, in the model's order
    """

    def __init__(self, handle: L.Handle) -> None:
        self._handle = handle
        h = handle.value
        self.inputs: List[ValueInfo] = [_io(lib.assay_engine_input(h, i)) for i in range(lib.assay_engine_input_count(h))]
        self.outputs: List[ValueInfo] = [_io(lib.assay_engine_output(h, i))
                                         for i in range(lib.assay_engine_output_count(h))]
        self._contexts = threading.local()

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"], target: Optional[str] = None) -> "Engine":
        """Reads a plan file, which must not change while the engine lives. target: its device, such as "cuda:1"."""
        out = c_void_p()
        check(lib.assay_engine_load_on(os.fsencode(path), L.encode(target), byref(out)))
        return cls(L.Handle(out.value, lib.assay_engine_release))

    @property
    def profiles(self) -> List[Dict[str, Range]]:
        """What each profile says of the shapes of inputs; empty: the engine was built without ranges. Inputs that
        hold a shape, whose values have ranges, are left out."""
        h = self._handle.value
        return [{info.name: r for i, info in enumerate(self.inputs) for r in self._range(profile, i)}
                for profile in range(lib.assay_engine_profile_count(h))]

    def _range(self, profile: int, i: int) -> List[Range]:
        """What a profile says of input i; empty: nothing."""
        out = _EngineRange()
        try:
            check(lib.assay_engine_profile_range(self._handle.value, profile, i, byref(out)))
        except NotFound:
            return []
        return [] if out.values else [Range(*[tuple(v[:out.rank]) for v in (out.min, out.best, out.max)])]

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a plan file. No context of the engine may run meanwhile."""
        check(lib.assay_engine_save(self._handle.value, os.fsencode(path)))

    @property
    def missing_weights(self) -> int:
        """How many weights a loaded engine lacks; with some it cannot run, but be refitted."""
        return int(lib.assay_engine_missing_weights(self._handle.value, None))

    @property
    def model(self) -> Model:
        """The model that it runs."""
        return Model(L.Handle(lib.assay_engine_model(self._handle.value), lib.assay_model_release))

    def refit(self, weights: Union[Model, str, bytes, "os.PathLike[str]", Mapping[str, Any]]) -> "Engine":
        """An engine like this one with other weights: of the same model with others, or {name: array}."""
        if not isinstance(weights, Mapping):
            model = as_model(weights)
            return _make(lambda out: lib.assay_engine_refit(self._handle.value, model._handle.value, out))
        tensors = [array_tensor(as_array(w)) for w in weights.values()]
        handles = (c_void_p * max(1, len(tensors)))(*[t.value for t in tensors])
        names = L.strings(list(weights))
        return _make(lambda out: lib.assay_engine_refit_tensors(self._handle.value, len(tensors), names, handles, out))

    def context(self, threads: int = 0, profile: bool = False, tap: Optional[Callable[[Any], Any]] = None,
                allocation: Union[str, int] = "runtime", times: bool = False) -> Any:
        """A context: runs of the engine, with memory of their own; see assay.Context for the parameters."""
        from .context import Context
        return Context(self, threads=threads, profile=profile, tap=tap, allocation=allocation, times=times)

    def run(self, inputs: Any, outputs: Optional[Mapping[str, Any]] = None) -> Outputs:
        """Runs once, in a context that the engine keeps for the calling thread; see Context.run()."""
        context = getattr(self._contexts, "context", None)
        if context is None:
            context = self._contexts.context = self.context()
        result: Outputs = context.run(inputs, outputs)
        return result

    def __repr__(self) -> str:
        return "<assay.Engine: %s -> %s>" % (", ".join("%s %s" % (i.name, i.type) for i in self.inputs),
                                             ", ".join("%s %s" % (o.name, o.type) for o in self.outputs))
