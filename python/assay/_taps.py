"""Taps: Python functions that see each layer's values during a run."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_size_t, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Optional

from . import _library as L
from ._library import lib
from ._tensors import from_tensor


class _Values(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("layer", c_char_p), ("op", c_char_p), ("iteration", c_uint64),
                ("n_inputs", c_size_t), ("n_outputs", c_size_t), ("input_names", POINTER(c_char_p)),
                ("inputs", POINTER(c_void_p)), ("output_names", POINTER(c_char_p)), ("outputs", POINTER(c_void_p))]


class LayerValues:
    """What a tap sees of a layer.

    layer, op     its name, and the type of its first node
    iteration     of the loops around it; 0: none
    input_names, output_names  of its values
    inputs, outputs  their arrays, copied when they are first asked for, which has to be during the call
    """

    def __init__(self, values: Any) -> None:
        self.layer, self.op, self.iteration = L.text(values.layer), L.text(values.op), int(values.iteration)
        self.input_names: List[str] = [L.text(values.input_names[i]) for i in range(values.n_inputs)]
        self.output_names: List[str] = [L.text(values.output_names[i]) for i in range(values.n_outputs)]
        self._values: Optional[Any] = values
        self._known: Dict[str, List[Any]] = {}

    def _arrays(self, what: str, count: int) -> List[Any]:
        if what not in self._known:
            if self._values is None:
                raise RuntimeError("values of a layer can be read during the tap's call only")
            handles = getattr(self._values, what)
            self._known[what] = [from_tensor(handles[i]) if handles[i] else None for i in range(count)]
        return self._known[what]

    @property
    def inputs(self) -> List[Any]:
        return self._arrays("inputs", len(self.input_names))

    @property
    def outputs(self) -> List[Any]:
        return self._arrays("outputs", len(self.output_names))


class Tap:
    """A function of the caller's as the library calls it. What it raises ends the run, and is kept: take()."""

    def __init__(self, function: Callable[[LayerValues], Any], cancel: Callable[[], None]) -> None:
        self._function, self._cancel = function, cancel
        self._raised: Optional[BaseException] = None
        self._callback = L.TAP_FN(self._call)
        self.address = ctypes.cast(self._callback, c_void_p)

    def _call(self, user: Any, values: Any) -> Optional[int]:
        try:
            seen = LayerValues(ctypes.cast(values, POINTER(_Values)).contents)
            try:
                self._function(seen)
            finally:
                seen._values = None
            return None
        except BaseException as e:  # it goes on where the run was called
            self._raised = e
            status: Optional[int] = lib.assay_status_create(8, b"the tap raised an exception")
            return status

    def take(self) -> Optional[BaseException]:
        """What the function has raised, once."""
        raised, self._raised = self._raised, None
        return raised
