"""A plugin for NVIDIA's Polygraphy: `polygraphy run model.onnx --onnxrt --assay` compares with Assay.

    from assay.polygraphy import AssayRunner, EngineFromModel
    from polygraphy.comparator import Comparator
    results = Comparator.run([AssayRunner(EngineFromModel("model.onnx"))])

(`assay polygraphy` is something else: the command line of Polygraphy, without Polygraphy.)
"""
from __future__ import annotations

from typing import Any

try:
    import polygraphy  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401
except ImportError:
    raise ImportError("assay.polygraphy needs the package polygraphy: pip install polygraphy") from None

from .runner import AssayRunner, EngineFromModel


def argument_groups() -> list[Any]:
    """What the plugin adds to `polygraphy run`: its entry point."""
    from .arguments import AssayEngineArgs, AssayRunnerArgs
    return [AssayEngineArgs(), AssayRunnerArgs()]


__all__ = ["AssayRunner", "EngineFromModel", "argument_groups"]
