"""What a session tells of its model: NodeArg, ModelMetadata, which provider has which nodes."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from .modelfile import Dim, ModelFile, Value


class NodeArg:
    """An input or output: its name, its type such as "tensor(float)", its shape with names or None for open sizes."""

    __slots__ = ("name", "type", "shape")

    def __init__(self, name: str, type: str, shape: Optional[list[Dim]]) -> None:
        self.name, self.type, self.shape = name, type, [] if shape is None else list(shape)

    def __str__(self) -> str:
        return "NodeArg(name='%s', type='%s', shape=[%s])" % (self.name, self.type, ", ".join(map(repr, self.shape)))

    @classmethod
    def of(cls, value: Value) -> NodeArg:
        """Of a declared value."""
        return cls(value.name, value.type, value.shape)


class ModelMetadata:
    """Where a model comes from."""

    __slots__ = ("producer_name", "graph_name", "domain", "description", "graph_description", "version",
                 "custom_metadata_map")

    def __init__(self, model: ModelFile) -> None:
        self.producer_name, self.graph_name, self.domain = model.producer, model.graph_name, model.domain
        self.description, self.graph_description = model.description, model.graph_description
        self.version, self.custom_metadata_map = model.version, dict(model.metadata)


@dataclass(frozen=True)
class OrtEpAssignedNode:
    """A node of the model."""

    name: str
    domain: str
    op_type: str


@dataclass(frozen=True)
class OrtEpAssignedSubgraph:
    """Nodes that a provider runs."""

    ep_name: str
    nodes: list[OrtEpAssignedNode] = field(default_factory=list)

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes, in the model's order."""
        return list(self.nodes)


def assignment(provider: str, model: ModelFile) -> list[Any]:
    """All nodes of the model, with one provider."""
    return [OrtEpAssignedSubgraph(provider, [OrtEpAssignedNode(n.name, n.domain, n.op) for n in model.nodes])]
