"""The library's version."""
from __future__ import annotations

from . import _library as L
from ._library import lib


def version() -> str:
    """Such as "0.2.0"."""
    return L.text(lib.assay_version())
