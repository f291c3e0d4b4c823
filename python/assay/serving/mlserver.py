"""The runtime for MLServer: `"implementation": "assay.serving.mlserver.AssayRuntime"` in model-settings.json.

MLServer imports this module anew for each model that it loads; what it names lives in other modules, and stays the same.
"""
from __future__ import annotations

from ._mlserver import AssayRuntime

__all__ = ["AssayRuntime"]
