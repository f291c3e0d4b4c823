"""ONNX's operator tests over the cluster."""
from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional

from .. import _places
from .._version import version
from ..errors import DeviceError, InvalidArgument, NotFound
from .checkpoint import Checkpoint, digest, digest_files
from .cluster import Task, parts_of, run

SCHEMA = "assay.conformance/1"


@dataclass
class ConformanceResult:
    """What the cases gave. cases: name -> {"status": "passed"}, or {"status": "failed", "why": ...}."""

    cases: Dict[str, Dict[str, str]]

    @property
    def failed(self) -> Dict[str, str]:
        """Why, by the name of the case."""
        return {name: case["why"] for name, case in self.cases.items() if case["status"] != "passed"}

    @property
    def json(self) -> str:
        """What `assay conformance --json` writes."""
        failed = len(self.failed)
        whole = {"schema": SCHEMA, "passed": len(self.cases) - failed, "failed": failed, "cases": self.cases}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    @property
    def text(self) -> str:
        lines = ["FAIL %s: %s" % failed for failed in self.failed.items()]
        return "\n".join([*lines, "%d passed, %d failed" % (len(self.cases) - len(self.failed), len(self.failed))])

    def __str__(self) -> str:
        return self.text


def _cases(root: str, match: Optional[str]) -> List[str]:
    """Folders of cases, relative to the root, in the order of their names."""
    found = []
    for folder, names, files in os.walk(root):
        if "model.onnx" in files and "test_data_set_0" in names:
            found.append(os.path.relpath(folder, root))
            names[:] = []
    return sorted(c for c in found if match is None or fnmatch.fnmatchcase(c, match))


def _files(folder: str) -> List[str]:
    return sorted(os.path.join(top, name) for top, _, names in os.walk(folder) for name in names)


def run_cases(root: str, cases: List[str], options: List[str]) -> bytes:
    """On a worker: the program's JSON of these cases. A case that crashes is one that failed."""
    with tempfile.TemporaryDirectory(prefix="assay-cases-") as folder:
        for case in cases:
            link = os.path.join(folder, case)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(os.path.join(root, case), link)
        results = os.path.join(folder, "results.json")
        done = subprocess.run([_places.program(), "conformance", folder, "-j", "1", "--json", results, *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not os.path.exists(results):
            raise DeviceError(done.stderr.decode("utf-8", "replace").strip() or "assay conformance ended with %d" % done.returncode)
        with open(results, "rb") as f:
            return f.read()


def conformance(cases: Any, *, backend: str = "native", match: Optional[str] = None, timeout: int = 60, folder: Any = None,
                shard: int = 64, in_flight: Optional[int] = None) -> ConformanceResult:
    """`assay conformance` over the machines of a Ray cluster: the same result.

    cases      a folder with cases in ONNX's layout, at any depth, which all machines see
    backend    "native", or a target
    match      only cases whose name matches (shell wildcards)
    timeout    seconds until a case counts as hung
    shard      cases that a worker takes at a time
    folder, in_flight  as of check()
    """
    root = os.path.abspath(os.fspath(cases))
    if shard < 1:
        raise InvalidArgument("a shard has 1 case or more, not %r" % shard)
    names = _cases(root, match)
    if not names:
        raise NotFound("there are no cases in '%s'%s" % (root, " whose name matches %s" % match if match else ""))
    options = ["--backend", backend, "--timeout", str(timeout)]
    keys: List[str] = []

    def tasks() -> Iterator[Task]:
        for first in range(0, len(names), shard):
            some = names[first:first + shard]
            contents = digest_files([f for name in some for f in _files(os.path.join(root, name))])
            keys.append(digest("conformance", version(), some, options, contents))
            yield Task(keys[-1], run_cases, (root, some, options))

    with Checkpoint(folder) as checkpoint:
        run(tasks(), checkpoint, in_flight)
        found: Dict[str, Dict[str, str]] = {}
        for part in parts_of(keys, checkpoint):
            found.update(json.loads(part)["cases"])
    return ConformanceResult(found)
