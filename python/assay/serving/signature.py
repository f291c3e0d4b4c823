"""What a model takes and gives: requests are checked against it before they wait, so that they cannot spoil a batch."""
from __future__ import annotations

import logging
from typing import Any, Dict, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..engine import Engine
from ..errors import Unsupported
from ..values import Dim, Range, ValueInfo
from . import datatypes
from .errors import Malformed, NotFound

log = logging.getLogger("assay.serving")
DEFAULT_BATCH = 8


class Tensor(NamedTuple):
    """An input or an output. shape: None where the model does not tell the rank; place: among the engine's."""

    name: str
    datatype: str
    dtype: Any
    shape: Optional[Tuple[Dim, ...]]
    place: int

    def metadata(self) -> Dict[str, Any]:
        """As the protocol has it; -1: open."""
        sizes = [d if isinstance(d, int) else -1 for d in self.shape or ()]
        return {"name": self.name, "datatype": self.datatype, "shape": sizes}


def _tensor(info: ValueInfo, place: int) -> Optional[Tensor]:
    datatype = datatypes.name_of(info.dtype) if info.kind == "tensor" and info.elem else None
    return Tensor(info.name, datatype, info.dtype, info.shape, place) if datatype else None


class Signature:
    """Of an engine.

    max_batch   what the settings say; None: as the profiles do
    batch       the name of the leading dimension that all inputs and outputs share; None: they share none, and
                requests are run alone
    """

    def __init__(self, engine: Engine, max_batch: Optional[int]) -> None:
        self.inputs: List[Tensor] = []
        for place, info in enumerate(engine.inputs):
            tensor = _tensor(info, place)
            if tensor is None:
                raise Unsupported("input '%s' (%s) has no type of the Open Inference Protocol" % (info.name, info.type))
            self.inputs.append(tensor)
        found = [(_tensor(info, place), info) for place, info in enumerate(engine.outputs)]
        for tensor, info in found:
            if tensor is None:
                log.warning("output '%s' (%s) has no type of the Open Inference Protocol: it is not served", info.name,
                            info.type)
        self.outputs: List[Tensor] = [tensor for tensor, _ in found if tensor is not None]
        if not self.outputs:
            raise Unsupported("the model has no output with a type of the Open Inference Protocol")
        self._places = {t.name: t for t in self.inputs}
        self._out = {t.name: n for n, t in enumerate(self.outputs)}
        self._profiles: List[Dict[str, Range]] = engine.profiles
        self._max_batch = max_batch
        self.batch = self._shared_dimension()

    def _shared_dimension(self) -> Dim:
        names = {t.shape[0] if t.shape else None for t in self.inputs + self.outputs}
        name = next(iter(names)) if len(names) == 1 else None
        return name if isinstance(name, str) else None

    # ---- requests -------------------------------------------------------------------------------

    def tensor(self, name: str) -> Tensor:
        """An input by its name. Errors: Malformed."""
        try:
            return self._places[name]
        except (KeyError, TypeError):
            raise Malformed("there is no input %r; there are %s"
                            % (name, ", ".join("'%s'" % t.name for t in self.inputs))) from None

    def output(self, name: str) -> int:
        """The number of an output among those served. Errors: Malformed."""
        try:
            return self._out[name]
        except (KeyError, TypeError):
            raise Malformed("there is no output %r; there are %s"
                            % (name, ", ".join("'%s'" % t.name for t in self.outputs))) from None

    def checked(self, given: Mapping[str, Any]) -> List[Any]:
        """The arrays of a request in the engine's order. Errors: Malformed, where the model does not take them."""
        for name in given:
            self.tensor(name)
        arrays, sizes = [], {}  # type: ignore[var-annotated]
        for t in self.inputs:
            array = given.get(t.name)
            if array is None:
                raise Malformed("input '%s' is missing" % t.name)
            if array.dtype != t.dtype:
                raise Malformed("input '%s' is %s; the request's is %s" % (t.name, t.datatype, array.dtype))
            _check_shape(t, array.shape, sizes)
            arrays.append(array)
        self._check_profiles(arrays)
        return arrays

    def _check_profiles(self, arrays: Sequence[Any]) -> None:
        if self._profiles and not any(self._fits(p, [a.shape for a in arrays]) for p in self._profiles):
            ranges = " or ".join("; ".join("'%s' %s to %s" % (n, list(r.min), list(r.max)) for n, r in p.items())
                                 for p in self._profiles)
            raise Malformed("the plan was built for %s; the request has %s" % (ranges, "; ".join(
                "'%s' %s" % (t.name, list(a.shape)) for t, a in zip(self.inputs, arrays))))

    def _fits(self, profile: Mapping[str, Range], shapes: Sequence[Sequence[int]], skip: int = 0) -> bool:
        """Whether shapes are within a profile, but for the first `skip` dimensions."""
        for t, shape in zip(self.inputs, shapes):
            r = profile.get(t.name)
            if r and (len(r.min) - skip != len(shape) or not all(
                    low <= d <= high for low, d, high in zip(r.min[skip:], shape, r.max[skip:]))):
                return False
        return True

    # ---- batches --------------------------------------------------------------------------------

    def key(self, arrays: Sequence[Any]) -> Hashable:
        """What requests of one batch have in common: all sizes but the leading ones."""
        return tuple(a.shape[1:] for a in arrays)

    def rows(self, arrays: Sequence[Any]) -> int:
        """Of a request of a model whose inputs share their leading dimension. Errors: Malformed."""
        rows = int(arrays[0].shape[0])
        if rows < 1:
            raise Malformed("the request has no rows: dimension '%s' is 0" % self.batch)
        return rows

    def limit(self, key: Any) -> int:
        """Rows that requests of a key may take together."""
        if not self._profiles:
            return self._max_batch or DEFAULT_BATCH
        limits = [min((r.max[0] for n, r in p.items() if n in self._places), default=DEFAULT_BATCH)
                  for p in self._profiles if self._fits(p, key, 1)]
        limit = max(limits, default=1)
        return min(limit, self._max_batch) if self._max_batch else limit

    def made_up(self, rows: int, size: int, seed: int) -> List[Any]:
        """Inputs for a trial. rows: of the batch, if there is one; size: of dimensions that are open and have no
        range; integers are 0 or 1, which are valid as indices of about anything."""
        random = np.random.Generator(np.random.PCG64(seed))
        best = self._profiles[0] if self._profiles else {}
        arrays = []
        for t in self.inputs:
            known = best[t.name].best if t.name in best else t.shape or ()
            shape = [d if isinstance(d, int) else size for d in known]
            if self.batch is not None:
                shape[0] = rows
            if t.datatype == "BYTES":
                arrays.append(np.full(shape, "a", object))
            elif t.dtype.kind in "iub":
                arrays.append(random.integers(0, 2, shape).astype(t.dtype))
            else:
                arrays.append(random.random(shape).astype(t.dtype))
        return arrays


def _check_shape(t: Tensor, shape: Sequence[int], sizes: Dict[str, Tuple[int, str]]) -> None:
    """sizes: those that names of dimensions have in this request so far, and the input that they come from."""
    if t.shape is None:
        return
    fits = len(shape) == len(t.shape)
    if not fits or any(isinstance(d, int) and d != n for d, n in zip(t.shape, shape)):
        raise Malformed("input '%s' has shape %s; it takes %s"
                        % (t.name, list(shape), [d if d is not None else "?" for d in t.shape]))
    for d, n in zip(t.shape, shape):
        if isinstance(d, str):
            other, name = sizes.setdefault(d, (n, t.name))
            if other != n:
                raise Malformed("dimension '%s' is %d in input '%s' and %d in '%s'" % (d, other, name, n, t.name))


__all__ = ["NotFound", "Signature", "Tensor"]
