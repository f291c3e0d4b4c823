"""A model being run by the interpreter: the older way to write Model.run()."""
from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any, List, Optional

from . import _library as L
from ._library import check, lib
from ._tensors import take
from .errors import InvalidArgument
from .model import SessionOptions, as_model, input_tensor
from .model import load as load_model
from .values import in_order

MODES = ("native", "truth", "plan")


class Session:
    """A model, loaded from a path or from bytes, ready to run.

    mode             "native" (rounded to each declared type), "truth" (float64) or "plan" (the emu backend)
    layer_precision  plan: "PATTERN:FORMAT,..."
    """

    def __init__(self, model: Any, mode: str = "native", layer_precision: Optional[str] = None, seed: int = 0,
                 folder: Optional[str] = None) -> None:
        loaded = load_model(model, folder) if isinstance(model, bytes) else as_model(model)
        self._model = as_model(loaded)
        self._truth = mode == "truth"
        out = c_void_p()
        options = SessionOptions(mode=L.choice("mode", mode, MODES), layer_precision=L.encode(layer_precision), seed=seed)
        check(lib.assay_session_create(self._model._handle.value, byref(options), byref(out)))
        self._session = L.Handle(out.value, lib.assay_session_destroy)

    @property
    def input_names(self) -> List[str]:
        """Names of the inputs, in the model's order."""
        return [i.name for i in self._model.inputs]

    @property
    def output_names(self) -> List[str]:
        """Names of the outputs, in the model's order."""
        return [o.name for o in self._model.outputs]

    def run(self, inputs: Any) -> List[Any]:
        """Runs once. inputs: {name: value}, or values in order. Returns the outputs in order."""
        if not hasattr(inputs, "keys") and len(inputs) != len(self._model.inputs):
            raise InvalidArgument("%d inputs were given; the model has %d" % (len(inputs), len(self._model.inputs)))
        values = in_order(inputs, self._model.inputs)
        tensors = [input_tensor(info, value) for info, value in zip(self._model.inputs, values)]
        n = len(self._model.outputs)
        outputs = (c_void_p * max(1, n))()
        check(lib.assay_session_run(self._session.value, len(tensors),
                                    (c_void_p * max(1, len(tensors)))(*[t.value for t in tensors]), n, outputs))
        return [take(outputs[i], self._truth) for i in range(n)]


