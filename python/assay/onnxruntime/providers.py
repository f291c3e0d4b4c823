"""Providers that a script asks for, as ONNX Runtime checks them, and the target that they mean here."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Optional

from .devices import CPU_PROVIDER, CUDA_PROVIDER, TARGETS, get_all_providers, get_available_providers


def normalize(providers: Any, provider_options: Any, available: Sequence[str]) -> dict[str, dict[str, str]]:
    """The options of each provider, in order; what is wrong with them is said as ONNX Runtime says it."""
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    named: dict[str, dict[str, str]] = {}
    for name, options in _pairs(providers, provider_options):
        if name not in available:
            warnings.warn("Specified provider '%s' is not in available provider names."
                          "Available providers: '%s'" % (name, ", ".join(available)), stacklevel=5)
        if name in named:
            warnings.warn("Duplicate provider '%s' encountered, ignoring." % name, stacklevel=5)
            continue
        named[name] = {str(key): str(value) for key, value in options.items()}
    return named


def _pairs(providers: Sequence[Any], provider_options: Any) -> list[tuple[str, dict[Any, Any]]]:
    if provider_options is None:
        pairs = [(p, {}) if isinstance(p, str) else p for p in providers]
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], dict)):
                raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        return pairs
    if not isinstance(provider_options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(providers) != len(provider_options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    if not all(isinstance(p, str) for p in providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(o, dict) for o in provider_options):
        raise ValueError("'provider_options' values must be dicts.")
    return list(zip(providers, provider_options))


class Providers:
    """The providers of a session: their names and options, and the target that the first of them means."""

    def __init__(self, providers: Any, provider_options: Any = None) -> None:
        available = get_available_providers()
        asked = {} if providers is None else normalize(providers, provider_options, available)
        unknown = [name for name in asked if name not in get_all_providers()]
        if unknown:
            raise RuntimeError("Unknown Provider Type: %s" % unknown[0])
        if providers is None:
            asked = {name: {} for name in available}
        self.options: dict[str, dict[str, str]] = {name: o for name, o in asked.items() if name in available}
        self.options.setdefault(CPU_PROVIDER, {})
        self.fallback: list[str] = [CPU_PROVIDER]

    @property
    def names(self) -> list[str]:
        """In the order in which layers are offered to them."""
        return list(self.options)

    @property
    def target(self) -> str:
        """What Assay builds for: "cpu", "cuda:0"."""
        first = next(iter(self.options))
        return _device(first, self.options[first])

    def is_gpu(self, number: int) -> bool:
        """Whether engines run on this GPU."""
        kind, _, device = self.target.partition(":")
        return kind == "cuda" and int(device or 0) == number

    def told(self) -> dict[str, dict[str, str]]:
        """As get_provider_options() tells them: a GPU's number, nothing of a CPU."""
        return {name: {"device_id": "0", **o} if name == CUDA_PROVIDER else {} for name, o in self.options.items()}


def _device(name: str, options: dict[str, str]) -> str:
    number: Optional[str] = options.get("device_id")
    return "%s:%s" % (TARGETS[name], number) if name == CUDA_PROVIDER and number not in (None, "0") else TARGETS[name]
