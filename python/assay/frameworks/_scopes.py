"""Which value of an ONNX model holds what a layer of the framework gave: from the layer that each node was made in."""
from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Tuple

import numpy as np


Shape = Tuple[Optional[int], ...]


@dataclasses.dataclass(frozen=True)
class Step:
    """A node of a graph: the layer that it is of ("encoder.0.norm"; "" for the model itself), and its values."""

    layer: str
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclasses.dataclass
class Call:
    """What a layer gave in one of its calls. Identities are those of tensors that lived until the run had ended."""

    layer: str
    arrays: list[np.ndarray[Any, Any]]
    came_in: frozenset[int]
    came_out: frozenset[int]


def _inside(layer: str, of: str) -> bool:
    return layer == of or layer.startswith(of + ".")


def leaving(steps: Iterable[Step], graph_outputs: Iterable[str], layers: Iterable[str]) -> dict[str, list[str]]:
    """For each of the layers, the values made within it that are read outside of it, in the order they are made."""
    steps = list(steps)
    outputs = set(graph_outputs)
    readers: dict[str, set[str]] = defaultdict(set)
    for step in steps:
        for name in step.inputs:
            readers[name].add(step.layer)
    found = {}
    for of in layers:
        found[of] = [name for step in steps if _inside(step.layer, of) for name in step.outputs
                     if name and (name in outputs or any(not _inside(reader, of) for reader in readers[name]))]
    return found


def without_nodes(calls: Sequence[Call], steps: Iterable[Step]) -> dict[int, int]:
    """Calls of layers that have no node, since an exporter folded them into the layer before: {call: call before}.

    The value of the layer before is what the folded one gave: a convolution's, where a normalization went into its weights.
    """
    present = {step.layer for step in steps}
    maker: dict[int, int] = {}
    folded = {}
    for i, call in enumerate(calls):
        before = [maker[identity] for identity in call.came_in if identity in maker]
        if not any(_inside(layer, call.layer) for layer in present) and len(before) == 1:
            folded[i] = before[0]
        for identity in call.came_out:
            maker[identity] = folded.get(i, i)
    return folded


def fits(shape: Shape | None, of: tuple[int, ...]) -> bool:
    """Whether a value of this shape, as far as it is known, can be an array of that one."""
    return shape is not None and len(shape) == len(of) and all(a is None or a == b for a, b in zip(shape, of))


def name_calls(calls: Sequence[Call], values: dict[str, list[str]], shapes: dict[str, Shape],
               folded: dict[int, int]) -> dict[str, np.ndarray[Any, Any]]:
    """{value of the model: array} for layers of which as many values leave as they gave, where shapes tell which is which.

    shapes   of values, as far as the exporter noted them
    folded   as without_nodes() has it: such a call's arrays stand for the values of the one before
    """
    by_layer: dict[str, list[int]] = defaultdict(list)
    for i, call in enumerate(calls):
        if i not in folded:
            by_layer[call.layer].append(i)
    after = {before: i for i, before in folded.items()}  # the last one folded, of several
    named: dict[str, np.ndarray[Any, Any]] = {}
    for layer, indices in by_layer.items():
        of_calls = [calls[after.get(i, i)].arrays for i in indices]
        names = values.get(layer, [])
        if len(names) == sum(map(len, of_calls)) and (arranged := _arranged(names, of_calls, shapes)):
            named.update(arranged)
    return named


def _arranged(names: Sequence[str], of_calls: Sequence[list[np.ndarray[Any, Any]]],
              shapes: dict[str, Shape]) -> dict[str, np.ndarray[Any, Any]]:
    """A layer's values and the arrays that they are. Calls follow each other; within one, only shapes tell."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    at = 0
    for arrays in of_calls:
        of_call = names[at:at + len(arrays)]
        at += len(arrays)
        for array in arrays:
            fitting = [name for name in of_call if fits(shapes.get(name), array.shape)]
            rivals = [other for other in arrays if other is not array and fitting and fits(shapes.get(fitting[0]), other.shape)]
            if len(fitting) == 1 and not rivals:
                found[fitting[0]] = array
    return found
