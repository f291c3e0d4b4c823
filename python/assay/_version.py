"""The library's version."""
from __future__ import annotations

import json
from ctypes import c_int, c_void_p

from . import _library as L
from ._library import STATUS, lib

L.declare({"assay_environment_report": (STATUS, [c_int, c_void_p, c_void_p])})


def version() -> str:
    """Such as "0.6.0"."""
    report = json.loads(L.collect(lambda write, user: lib.assay_environment_report(L.JSON, write, user)))
    return str(next(e["value"] for e in report["entries"] if e["key"] == "assay"))
