"""What numbers and times depend on besides the model: this machine, or two machines compared."""
from __future__ import annotations

import json
import os
import tempfile
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_void_p
from dataclasses import dataclass
from typing import List, Union

from .. import _library as L
from .._library import STATUS, check as ok, lib
from .._results import Path, Result

L.declare({
    "assay_environment_report": (STATUS, [c_int, c_void_p, c_void_p]),
    "assay_environment_compare": (STATUS, [c_char_p, c_char_p, POINTER(c_void_p)]),
    "assay_environment_comparison_destroy": (None, [c_void_p]),
    "assay_environment_comparison_changes_numbers": (c_bool, [c_void_p]),
    "assay_environment_comparison_report": (STATUS, [c_void_p, c_int, c_void_p, c_void_p]),
})


@dataclass
class Entry:
    """One thing that results depend on. numbers: it can change results, not only times."""

    key: str
    value: str
    numbers: bool


@dataclass
class EntryDifference:
    """An entry that differs between two machines. numbers: it can change results, not only times."""

    key: str
    first: str
    second: str
    numbers: bool


@dataclass
class Environment(Result):
    """This machine's libraries, processor and settings: an Entry each. save("here.json") keeps it."""

    entries: List[Entry]


@dataclass
class EnvironmentComparison(Result):
    """Two machines. changes_numbers: whether something differs that can change results; differences: all of them."""

    changes_numbers: bool
    differences: List[EntryDifference]


def environment() -> Environment:
    """What numbers and times depend on here."""
    result = Environment([])
    result._open(L.Handle(None, lambda _: None), lib.assay_environment_report, "entries")
    result.entries = [Entry(e["key"], e["value"], e["numbers"]) for e in json.loads(result.json)["entries"]]
    return result


def compare_environments(first: Union[Path, Environment], second: Union[Path, Environment]) -> EnvironmentComparison:
    """Compares two environments: results of environment(), or files that their save() or the program's --json wrote."""
    out = c_void_p()
    with tempfile.TemporaryDirectory() as folder:
        paths = [_file(e, os.path.join(folder, "%d.json" % i)) for i, e in enumerate((first, second))]
        ok(lib.assay_environment_compare(*paths, byref(out)))
    handle = L.Handle(out.value, lib.assay_environment_comparison_destroy)
    c = handle.value
    result = EnvironmentComparison(bool(lib.assay_environment_comparison_changes_numbers(c)), [])
    result._open(handle, lambda kind, write, user: lib.assay_environment_comparison_report(c, kind, write, user), "differences")
    result.differences = [EntryDifference(d["key"], d["first"], d["second"], d["numbers"])
                          for d in json.loads(result.json)["differences"]]
    return result


def _file(environment: Union[Path, Environment], path: str) -> bytes:
    """A file of an environment: the one that was given, or `path`, which is written."""
    if not isinstance(environment, Environment):
        return os.fsencode(environment)
    environment.save(path)
    return os.fsencode(path)
