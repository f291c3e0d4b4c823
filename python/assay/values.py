"""What goes in and comes out: descriptions of inputs and outputs, ranges of sizes, and outputs of a run."""
from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union, overload

from ._types import dtype_of
from .errors import InvalidArgument

Dim = Union[int, str, None]


class ValueInfo(NamedTuple):
    """An input or an output.

    name   its name in the model
    type   ONNX's text, such as "float[N, 3, 224, 224]", "seq(int64[])"
    elem   ONNX's number of the element type (1: float); 0 if it is not a tensor
    shape  a size each: an int, the name of an open one, or None; None for a value of unknown rank
    kind   "tensor", "sequence", "optional" or "map"
    """

    name: str
    type: str
    elem: int
    shape: Optional[Tuple[Dim, ...]]
    kind: str

    @property
    def dtype(self) -> Any:
        """The numpy type of the elements; None if it is not a tensor."""
        return dtype_of(self.elem) if self.elem else None


_KINDS = {"seq": "sequence", "sequence": "sequence", "optional": "optional", "map": "map"}


def _dim(word: str) -> Dim:
    return int(word) if word.isdigit() else None if word in ("", "?") else word


def _sizes(text: str) -> List[str]:
    """The sizes of a text such as "N, broadcast(N, M), 3"."""
    words, depth = [""], 0
    for part in re.split(r"(, |[()])", text):
        depth += (part == "(") - (part == ")")
        if part == ", " and not depth:
            words.append("")
        else:
            words[-1] += part
    return words


def describe(name: str, text: str, elem: int) -> ValueInfo:
    """A ValueInfo of the library's text of a type."""
    container = re.match(r"(\w+)\(", text)
    if container and container.group(1) in _KINDS:
        return ValueInfo(name, text, 0, None, _KINDS[container.group(1)])
    dims = re.search(r"\[(.*)\]$", text)
    shape = None
    if dims and dims.group(1) != "...":
        shape = tuple(_dim(word) for word in _sizes(dims.group(1))) if dims.group(1) else ()
    return ValueInfo(name, text, elem, shape, "tensor")


class Range(NamedTuple):
    """Sizes of an input from `min` to `max`; kernels are chosen for `best`. All three are whole shapes."""

    min: Tuple[int, ...]
    best: Tuple[int, ...]
    max: Tuple[int, ...]


class Outputs(Sequence[Any]):
    """The outputs of a run: a sequence in the model's order that takes names, too.

    out[0], out["logits"], a, b = out, out.names, out.asdict(). Tensors are numpy arrays, sequences lists, an
    empty optional None.
    """

    __slots__ = ("names", "_values")

    def __init__(self, names: Sequence[str], values: List[Any]) -> None:
        self.names = names
        self._values = values

    @overload
    def __getitem__(self, key: Union[int, str]) -> Any: ...

    @overload
    def __getitem__(self, key: slice) -> List[Any]: ...

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self._values[key]
        try:
            return self._values[list(self.names).index(key)]
        except ValueError:
            raise KeyError("there is no output %r; there are %s" % (key, ", ".join(map(repr, self.names)))) from None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def asdict(self) -> Dict[str, Any]:
        """The outputs by their names."""
        return dict(zip(self.names, self._values))

    def keys(self) -> Sequence[str]:
        """The names: with it dict(outputs) works."""
        return self.names

    def __repr__(self) -> str:
        each = ("%s: %s" % (n, "%s%s" % (v.dtype, list(v.shape)) if hasattr(v, "dtype") else type(v).__name__)
                for n, v in zip(self.names, self._values))
        return "Outputs(%s)" % ", ".join(each)


def place_of(key: Union[int, str], infos: Sequence[ValueInfo], what: str) -> int:
    """The number of an input or output that is given by its name or number."""
    if isinstance(key, str):
        for i, info in enumerate(infos):
            if info.name == key:
                return i
        raise InvalidArgument("there is no %s %r; there are %s" % (what, key, ", ".join(repr(i.name) for i in infos)))
    if not 0 <= key < len(infos):
        raise InvalidArgument("there is no %s %d; there are %d" % (what, key, len(infos)))
    return key


def in_order(inputs: Any, infos: Sequence[ValueInfo]) -> List[Any]:
    """Values for inputs, in their order, from a mapping, a sequence of as many, or the only one."""
    if hasattr(inputs, "keys"):
        given = dict(inputs)
        values = []
        for info in infos:
            if info.name not in given:
                raise InvalidArgument("input '%s' (%s) is missing" % (info.name, info.type))
            values.append(given.pop(info.name))
        if given:
            raise InvalidArgument("there is no input '%s'; there are %s"
                                  % (next(iter(given)), ", ".join("'%s'" % i.name for i in infos)))
        return values
    if not isinstance(inputs, (list, tuple)):
        inputs = [inputs]
    elif len(infos) == 1 and (infos[0].kind == "sequence" or len(inputs) != 1):
        inputs = [inputs] if infos[0].kind == "sequence" and not (
            len(inputs) == 1 and isinstance(inputs[0], (list, tuple))) else inputs
    if len(inputs) != len(infos):
        raise InvalidArgument("%d inputs were given; there are %d: %s"
                              % (len(inputs), len(infos), ", ".join("'%s'" % i.name for i in infos)))
    return list(inputs)
