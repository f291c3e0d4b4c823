"""Changes to an ONNX file in memory: initializers that become inputs or get other values, sizes of inputs."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from .._types import BITS, pack
from . import wire
from .elements import number_of
from .errors import InvalidArgument
from .modelfile import GRAPH, INITIALIZER, INPUT, OUTPUT, TENSOR_EXTERNAL, TENSOR_NAME, Dim, name_of_tensor

VALUE_INFO, RAW_DATA, DATA_LOCATION = 13, 9, 14


@dataclass
class Changes:
    """What is to be changed.

    inputs          initializers that every run gives
    initializers    other values of initializers, by their names: arrays
    external        contents of files of external data
    sizes           of dimensions, by their names; by_denotation: by what they mean
    without_shape   inputs that are to take any shape
    without_names   sizes of one name need not be the same
    """

    inputs: frozenset[str] = frozenset()
    initializers: Mapping[str, Any] = field(default_factory=dict)
    external: Mapping[str, bytes] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    by_denotation: Mapping[str, int] = field(default_factory=dict)
    without_shape: frozenset[str] = frozenset()
    without_names: bool = False

    def any(self) -> bool:
        """Whether anything is to be changed."""
        return any((self.inputs, self.initializers, self.external, self.sizes, self.by_denotation, self.without_shape,
                    self.without_names))

    def size(self, dim: Dim, denotation: str) -> Dim:
        """What a dimension becomes."""
        if isinstance(dim, str) and dim in self.sizes:
            return self.sizes[dim]
        if not isinstance(dim, int) and denotation in self.by_denotation:
            return self.by_denotation[denotation]
        return None if isinstance(dim, str) and self.without_names else dim


def tensor(name: str, array: Any) -> bytes:
    """A TensorProto of an array."""
    number = number_of(array.dtype)
    data = pack(array, BITS[number]) if number in BITS else array
    return (b"".join(wire.number_field(1, size) for size in array.shape) + wire.number_field(2, number)
            + wire.bytes_field(TENSOR_NAME, name.encode("utf-8", "surrogateescape"))
            + wire.bytes_field(RAW_DATA, data.tobytes()))


def _pairs(message: wire.Buffer) -> dict[str, str]:
    """The entries of external_data."""
    entries: dict[str, str] = {}
    for part in wire.fields(message):
        if part.number == TENSOR_EXTERNAL:
            pair = {f.number: f.text() for f in wire.fields(part.data)}
            entries[pair.get(1, "")] = pair.get(2, "")
    return entries


def _inlined(message: wire.Buffer, files: Mapping[str, bytes]) -> bytes:
    """A tensor whose external data, if it is in one of the files, is its own."""
    where = _pairs(message)
    if where.get("location") not in files:
        return bytes(message)
    data = files[where["location"]]
    begin = int(where.get("offset") or 0)
    length = int(where.get("length") or len(data) - begin)
    if begin < 0 or length < 0 or begin + length > len(data):
        raise InvalidArgument.of("the external data of '%s' end at byte %d; the file '%s' has %d"
                                 % (name_of_tensor(message), begin + length, where["location"], len(data)))
    rest = [bytes(f.whole) for f in wire.fields(message) if f.number not in (TENSOR_EXTERNAL, DATA_LOCATION)]
    return b"".join(rest) + wire.bytes_field(RAW_DATA, data[begin:begin + length])


def _dim(message: wire.Buffer, changes: Changes) -> bytes:
    size: Dim = None
    denotation, rest = "", b""
    for part in wire.fields(message):
        if part.number == 1:
            size = part.signed()
        elif part.number == 2:
            size = part.text()
        else:
            denotation, rest = (part.text() if part.number == 3 else denotation), rest + bytes(part.whole)
    new = changes.size(size, denotation)
    if new is None:
        return rest
    return (wire.number_field(1, new) if isinstance(new, int) else wire.bytes_field(2, new.encode())) + rest


def _tensor_type(message: wire.Buffer, changes: Changes, shapeless: bool) -> bytes:
    out = b""
    for part in wire.fields(message):
        if part.number != 2:
            out += bytes(part.whole)
        elif not shapeless:
            out += wire.bytes_field(2, b"".join(wire.bytes_field(1, _dim(d.data, changes)) for d in wire.fields(part.data)))
    return out


def _value(message: wire.Buffer, changes: Changes) -> bytes:
    parts = list(wire.fields(message))
    name = next((p.text() for p in parts if p.number == 1), "")
    out = b""
    for part in parts:
        if part.number == 2:
            types = [wire.bytes_field(1, _tensor_type(t.data, changes, name in changes.without_shape)) if t.number == 1
                     else bytes(t.whole) for t in wire.fields(part.data)]
            out += wire.bytes_field(2, b"".join(types))
        else:
            out += bytes(part.whole)
    return out


def _graph(message: wire.Buffer, changes: Changes) -> bytes:
    out: list[bytes] = []
    for part in wire.fields(message):
        if part.number == INITIALIZER:
            name = name_of_tensor(part.data)
            if name in changes.inputs:
                continue
            if name in changes.initializers:
                out.append(wire.bytes_field(INITIALIZER, tensor(name, changes.initializers[name])))
                continue
            if changes.external:
                out.append(wire.bytes_field(INITIALIZER, _inlined(part.data, changes.external)))
                continue
        elif part.number in (INPUT, OUTPUT, VALUE_INFO):
            out.append(wire.bytes_field(part.number, _value(part.data, changes)))
            continue
        out.append(bytes(part.whole))
    return b"".join(out)


def apply(model: wire.Buffer, changes: Changes) -> bytes:
    """The file with the changes."""
    return b"".join(wire.bytes_field(GRAPH, _graph(part.data, changes)) if part.number == GRAPH else bytes(part.whole)
                    for part in wire.fields(model))
