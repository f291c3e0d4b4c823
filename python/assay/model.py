"""Models: read from ONNX, looked at, and run by the interpreter."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import _library as L
from ._calls import long_call
from ._library import STATUS, check, lib
from ._sizes import Dims, ModelOptions, Shapes, size_fields, warn_of_batch
from ._tensors import take, to_tensor
from .errors import AssayError, InvalidArgument
from .values import Outputs, ValueInfo, describe, in_order

if TYPE_CHECKING:
    from .engine import Engine

L.declare({
    "assay_model_load": (STATUS, [c_char_p, POINTER(c_void_p)]),
    "assay_model_load_bytes": (STATUS, [c_char_p, c_size_t, c_char_p, POINTER(c_void_p)]),
    "assay_model_load_with": (STATUS, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "assay_model_resize": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_model_batch_used": (c_bool, [c_void_p]),
    "assay_model_save": (STATUS, [c_void_p, c_char_p]),
    "assay_model_retain": (c_void_p, [c_void_p]),
    "assay_model_release": (None, [c_void_p]),
    "assay_model_warning": (c_char_p, [c_void_p, c_size_t]),
    "assay_model_path": (c_char_p, [c_void_p]),
    "assay_model_input_count": (c_size_t, [c_void_p]),
    "assay_model_input_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_model_input_type": (STATUS, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "assay_model_input_elem": (c_int, [c_void_p, c_size_t]),
    "assay_model_output_count": (c_size_t, [c_void_p]),
    "assay_model_output_name": (c_char_p, [c_void_p, c_size_t]),
    "assay_model_output_type": (STATUS, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "assay_model_quantizes": (c_bool, [c_void_p]),
    "assay_engine_is_plan_file": (c_bool, [c_char_p]),
    "assay_session_create": (STATUS, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "assay_session_destroy": (None, [c_void_p]),
    "assay_session_run": (STATUS, [c_void_p, c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p)]),
})

MODES = ("native", "truth")


class SessionOptions(L.Options):
    _fields_ = [("struct_size", c_size_t), ("mode", c_int), ("precision", c_int), ("accumulator", c_int),
                ("layer_precision", c_char_p), ("seed", c_uint64), ("unquantized", c_bool), ("target", c_char_p),
                ("fusion", c_int), ("passes_off", POINTER(c_char_p)), ("n_passes_off", c_size_t), ("fp32", c_int),
                ("inject", c_char_p), ("all_values", c_bool), ("progress", c_void_p), ("user", c_void_p)]


def _type_text(function: Any, handle: Any, i: int) -> str:
    text = ctypes.create_string_buffer(4096)
    check(function(handle, i, text, len(text)))
    return L.text(text.value)


_ELEMS = {"float": 1, "double": 11, "string": 8, "bool": 9}


def _elem(text: str) -> int:
    """ONNX's number of the type that a text such as "float[N]" begins with; 0: it is not a tensor."""
    word = text.split("[", 1)[0]
    for code in range(1, 29):
        if L.text(lib.assay_type_name(code)) == word:
            return code
    return 0


class Model:
    """A model that was read: what it takes and gives, and runs of it by the interpreter.

    inputs, outputs  list of ValueInfo, in the model's order; inputs with an initializer are not among them
    path             the file that it came from; "" if it came from bytes
    warnings         what is wrong with it though it can be run
    """

    def __init__(self, handle: L.Handle) -> None:
        self._handle = handle
        h = handle.value
        self.inputs: List[ValueInfo] = [
            describe(L.text(lib.assay_model_input_name(h, i)), _type_text(lib.assay_model_input_type, h, i),
                     lib.assay_model_input_elem(h, i)) for i in range(lib.assay_model_input_count(h))]
        outputs = ((L.text(lib.assay_model_output_name(h, i)), _type_text(lib.assay_model_output_type, h, i))
                   for i in range(lib.assay_model_output_count(h)))
        self.outputs: List[ValueInfo] = [describe(name, text, _elem(text)) for name, text in outputs]
        self._sessions: Dict[str, L.Handle] = {}

    @property
    def path(self) -> str:
        """The path that it was read from; "" if it was not."""
        return L.text(lib.assay_model_path(self._handle.value))

    @property
    def warnings(self) -> List[str]:
        """What is wrong with the model though it can be run, a line each."""
        lines: List[str] = []
        while True:
            line = lib.assay_model_warning(self._handle.value, len(lines))
            if line is None:
                return lines
            lines.append(L.text(line))

    @property
    def quantizes(self) -> bool:
        """Whether it has operators that quantize: such a model can be built in int8."""
        return bool(lib.assay_model_quantizes(self._handle.value))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the model as it was read, or as an edit made it."""
        check(lib.assay_model_save(self._handle.value, os.fsencode(path)))

    def resize(self, *, batch: Optional[int] = None, dims: Dims = None, shapes: Shapes = None) -> "Model":
        """This model with sizes that its file leaves open; those that were given before are open again.

        batch   leading dimension of every input that leaves it open
        dims    {name: size} of all dimensions that the model calls so, such as {"seq": 128}
        shapes  {input: sizes}; None or -1 in one keeps what the model declares. They go before the batch
        """
        return _resized(self, batch, dims, shapes)

    def _session(self, mode: str, seed: int) -> L.Handle:
        key = "%s %d" % (mode, seed)
        if key not in self._sessions:
            out = c_void_p()
            options = SessionOptions(mode=L.choice("mode", mode, MODES), seed=seed)
            check(lib.assay_session_create(self._handle.value, byref(options), byref(out)))
            self._sessions[key] = L.Handle(out.value, lib.assay_session_destroy)
        return self._sessions[key]

    def run(self, inputs: Any, mode: str = "native", seed: int = 0) -> Outputs:
        """Runs the model once by the interpreter.

        inputs  {name: array}, or arrays in the model's order, or the only one
        mode    "native": every node's outputs are rounded to the types that the model declares; "truth": all in
                float64, and floats come out as float64, not rounded to their types
        seed    of random operators

        One thread at a time.
        """
        values = in_order(inputs, self.inputs)
        tensors = [input_tensor(info, value) for info, value in zip(self.inputs, values)]
        session = self._session(mode, seed)
        n = len(self.outputs)
        outputs = (c_void_p * max(1, n))()
        given = (c_void_p * max(1, len(tensors)))(*[t.value for t in tensors])

        def work() -> List[Any]:
            check(lib.assay_session_run(session.value, len(tensors), given, n, outputs))
            return [take(outputs[i], mode == "truth") for i in range(n)]

        try:
            return Outputs([o.name for o in self.outputs], long_call(work))
        except KeyboardInterrupt:
            # The call may be in the session for a moment yet: the next run gets another one.
            self._sessions.clear()
            raise

    def __repr__(self) -> str:
        return "<assay.Model %s: %s -> %s>" % (self.path or "from bytes", _signature(self.inputs), _signature(self.outputs))


def _signature(infos: List[ValueInfo]) -> str:
    return ", ".join("%s %s" % (i.name, i.type) for i in infos)


def input_tensor(info: ValueInfo, value: Any) -> L.Handle:
    try:
        return to_tensor(value, info.type)
    except (AssayError, TypeError, ValueError) as e:
        raise InvalidArgument("input '%s' (%s): %s" % (info.name, info.type, e)) from None


def load(model: Any, folder: Optional[str] = None) -> Union[Model, "Engine"]:
    """Reads a model: a path, the bytes of an ONNX file, or an onnx.ModelProto. A path of a plan file gives an Engine.

    folder  where the external data of bytes lie; None: they may have none. A path has its own.
    """
    if isinstance(model, Model):
        return model
    out = c_void_p()
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        data = bytes(model)
        check(lib.assay_model_load_bytes(data, len(data), os.fsencode(folder) if folder else None, byref(out)))
    elif isinstance(model, (str, os.PathLike)):
        path = os.fsencode(model)
        if lib.assay_engine_is_plan_file(path):
            from .engine import Engine
            return Engine.load(os.fsdecode(path))
        check(lib.assay_model_load(path, byref(out)))
    else:
        raise InvalidArgument("a model is a path, bytes or an onnx.ModelProto, not %s" % type(model).__name__)
    return Model(L.Handle(out.value, lib.assay_model_release))


def as_model(model: Any) -> Model:
    """load(), of what has to be a model."""
    loaded = load(model)
    if not isinstance(loaded, Model):
        raise InvalidArgument("'%s' is a plan file; an ONNX model is needed" % os.fsdecode(model))
    return loaded


def sized(model: Any, batch: Optional[int] = None, dims: Dims = None, shapes: Shapes = None) -> Model:
    """as_model(), in the sizes that are given, if any are. Called by what the user calls: warnings are told there."""
    loaded = as_model(model)
    return loaded if batch is None and dims is None and shapes is None else _resized(loaded, batch, dims, shapes)


def _resized(model: Model, batch: Optional[int], dims: Dims, shapes: Shapes) -> Model:
    out = c_void_p()
    check(lib.assay_model_resize(model._handle.value, byref(ModelOptions(**size_fields(batch, dims, shapes))), byref(out)))
    made = Model(L.Handle(out.value, lib.assay_model_release))
    warn_of_batch(batch, bool(lib.assay_model_batch_used(out.value)))
    return made
