"""What models take and give, flattened to tensors: mappings, dataclasses, named tuples, sequences."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


def flatten(value: Any, is_leaf: Callable[[Any], bool], name: str = "") -> list[tuple[str, Any]]:
    """The leaves in order, each with its path: keys, fields and positions joined by dots; "" for a leaf alone.

    What is neither a leaf nor a container (None, numbers, text) is left out.
    """
    if is_leaf(value):
        return [(name, value)]
    found: list[tuple[str, Any]] = []
    for key, item in _items(value):
        found += flatten(item, is_leaf, f"{name}.{key}" if name else key)
    return found


def _items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(str(key), item) for key, item in value.items()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (list, tuple)):
        return [(str(i), item) for i, item in enumerate(value)]
    return []
