"""What an ONNX file says of its model: producer, metadata, inputs with their declared types, initializers."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Callable, Optional, Union

from . import wire
from .elements import ELEMENTS

Dim = Union[int, str, None]
# Fields of ModelProto, GraphProto, ValueInfoProto, TypeProto, TensorProto.
GRAPH, NODE, INITIALIZER, INPUT, OUTPUT, SPARSE_INITIALIZER = 7, 1, 5, 11, 12, 15
TENSOR_NAME, TENSOR_EXTERNAL = 8, 13
MAX_INT64 = 2**63 - 1  # ONNX Runtime's version of a model that has none
_KEYS = {1: "tensor", 8: "sparse_tensor"}


@dataclass
class Value:
    """An input or output as it is declared: name, type as ONNX Runtime writes it, dimensions, their denotations."""

    name: str
    type: str = ""
    shape: Optional[list[Dim]] = None
    denotations: list[str] = field(default_factory=list)


@dataclass
class Node:
    """A node of the main graph, by its names."""

    name: str = ""
    op: str = ""
    domain: str = ""


@dataclass
class ModelFile:
    """What is told about a model without running it."""

    ir_version: int = 0
    producer: str = ""
    domain: str = ""
    version: int = MAX_INT64
    description: str = ""
    graph_name: str = ""
    graph_description: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    opsets: dict[str, int] = field(default_factory=dict)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    initializers: set[str] = field(default_factory=set)
    has_graph: bool = False

    @property
    def required(self) -> list[Value]:
        """Inputs that a run must be given."""
        return [value for value in self.inputs if value.name not in self.initializers]

    @property
    def overridable(self) -> list[Value]:
        """Inputs that have an initializer; before IR version 4 such are constants."""
        if self.ir_version < 4:
            return []
        return [value for value in self.inputs if value.name in self.initializers]


def _shape(message: wire.Buffer, value: Value) -> None:
    value.shape = []
    for dim in wire.fields(message):
        size: Dim = None
        denotation = ""
        for part in wire.fields(dim.data):
            if part.number == 1:
                size = part.signed() if part.signed() >= 0 else None
            elif part.number == 2:
                size = part.text() or None
            elif part.number == 3:
                denotation = part.text()
        value.shape.append(size)
        value.denotations.append(denotation)


def _tensor_type(message: wire.Buffer, kind: str, value: Value) -> str:
    element = 0
    for part in wire.fields(message):
        if part.number == 1:
            element = part.value
        elif part.number == 2:
            _shape(part.data, value)
    return "%s(%s)" % (kind, ELEMENTS.get(element, "undefined"))


def _type(message: wire.Buffer, value: Value) -> str:
    for part in wire.fields(message):
        if part.number in _KEYS:
            return _tensor_type(part.data, _KEYS[part.number], value)
        inner = {f.number: f for f in wire.fields(part.data)} if part.number in (4, 5, 9) else {}
        if part.number == 4 and 1 in inner:
            # The shape of a sequence's elements is not the sequence's.
            return "seq(%s)" % _type(inner[1].data, Value(""))
        if part.number == 5 and 2 in inner:
            key = ELEMENTS.get(inner[1].value if 1 in inner else 0, "undefined")
            return "map(%s,%s)" % (key, _type(inner[2].data, Value("")))
        if part.number == 9 and 1 in inner:
            return "optional(%s)" % _type(inner[1].data, value)
    return ""


def _value(message: wire.Buffer) -> Value:
    value = Value("")
    for part in wire.fields(message):
        if part.number == 1:
            value.name = part.text()
        elif part.number == 2:
            value.type = _type(part.data, value)
    return value


def name_of_tensor(message: wire.Buffer) -> str:
    """The name of a TensorProto."""
    return next((part.text() for part in wire.fields(message) if part.number == TENSOR_NAME), "")


def _sparse_name(message: wire.Buffer) -> str:
    return next((name_of_tensor(part.data) for part in wire.fields(message) if part.number == 1), "")


def _node(message: wire.Buffer) -> Node:
    node = Node()
    for part in wire.fields(message):
        if part.number == 3:
            node.name = part.text()
        elif part.number == 4:
            node.op = part.text()
        elif part.number == 7:
            node.domain = part.text()
    return node


def _graph(message: wire.Buffer, model: ModelFile) -> None:
    for part in wire.fields(message):
        if part.number == NODE:
            model.nodes.append(_node(part.data))
        elif part.number == 2:
            model.graph_name = part.text()
        elif part.number == INITIALIZER:
            model.initializers.add(name_of_tensor(part.data))
        elif part.number == 10:
            model.graph_description = part.text()
        elif part.number == INPUT:
            model.inputs.append(_value(part.data))
        elif part.number == OUTPUT:
            model.outputs.append(_value(part.data))
        elif part.number == SPARSE_INITIALIZER:
            model.initializers.add(_sparse_name(part.data))


def read(buffer: wire.Buffer) -> ModelFile:
    """Reads a ModelProto. Raises wire.Malformed where it is not one."""
    model = ModelFile()
    texts = {2: "producer", 4: "domain", 6: "description"}
    for part in wire.fields(buffer):
        if part.number == 1:
            model.ir_version = part.value
        elif part.number in texts:
            setattr(model, texts[part.number], part.text())
        elif part.number == 5:
            model.version = part.signed()
        elif part.number == GRAPH:
            model.has_graph = True
            _graph(part.data, model)
        elif part.number == 8:
            pair = {f.number: f for f in wire.fields(part.data)}
            model.opsets[pair[1].text() if 1 in pair else ""] = pair[2].signed() if 2 in pair else 0
        elif part.number == 14:
            pair = {f.number: f for f in wire.fields(part.data)}
            model.metadata[pair[1].text() if 1 in pair else ""] = pair[2].text() if 2 in pair else ""
    return model


def sized(value: Value, size_of: Callable[[Dim, str], Dim]) -> Value:
    """A value with other sizes: size_of(dimension, its denotation)."""
    if value.shape is None:
        return value
    return replace(value, shape=[size_of(d, n) for d, n in zip(value.shape, value.denotations)])
