"""Libraries of operators of one's own (docs/custom-operators.md)."""
from __future__ import annotations

import ctypes
import os

from .. import _library as L
from ..errors import AssayError
from .errors import Fail

L.declare({"assay_ops_load": (L.STATUS, [L.c_char_p])})
_loaded: set[str] = set()


def load(path: str) -> None:
    """Opens a library once; what is no library, or none for Assay, is a Fail."""
    real = os.path.realpath(path)
    if real in _loaded:
        return
    try:
        ctypes.CDLL(path)
    except OSError as e:
        raise Fail.of("Failed to load library %s with error: %s" % (path, e)) from None
    try:
        L.check(L.lib.assay_ops_load(os.fsencode(path)))
    except AssayError as e:
        raise Fail.of("Failed to load library %s with error: %s; Assay takes operators in libraries of its own "
                      "interface (docs/custom-operators.md)" % (path, e)) from None
    _loaded.add(real)
