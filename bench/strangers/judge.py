"""Runs `assay check` on a case and judges what it says."""
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import time

import healthy
from cases import repaired

INNER, OUTPUTS = "inner values", "outputs only"


@functools.cache
def _digest(path, size, time_ns):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def program(assay):
    """Which program it is: it may be built again between two cases."""
    about = assay.stat()
    return _digest(assay, about.st_size, about.st_mtime_ns)


def command(assay, folder, mode, options=(), search=None):
    line = [str(assay), "check", "model.onnx", "-i", "inputs", "-g", "golden"]
    if mode == INNER:
        line += ["--golden-intermediates", "intermediates.npz"]
    if search:
        line += ["--search-time", str(search)]
    name = "inner" if mode == INNER else "outputs"
    return [*line, *options, "--json", f"{name}.json", "-o", f"{name}_fix"]


def run(line, folder, limit):
    """The report, how long it took, and what went wrong ('')."""
    report_path = pathlib.Path(folder) / line[line.index("--json") + 1]
    report_path.unlink(missing_ok=True)
    start = time.monotonic()
    try:
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=limit, env={**os.environ, "OMP_NUM_THREADS": "1"})
    except subprocess.TimeoutExpired:
        return {}, limit, f"stopped after {limit} s"
    seconds = time.monotonic() - start
    if done.returncode not in (0, 1) or not report_path.exists():
        return {}, seconds, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    return json.loads(report_path.read_text()), seconds, ""


def suspects(report):
    """Groups of names of nodes, first to blame first: culprits, and behind each those that are as likely."""
    groups = []
    for culprit in report.get("culprits") or []:
        rivals = [[r] if isinstance(r, str) else r.get("nodes") or [r.get("node")] for r in culprit.get("rivals") or []]
        for names in [culprit.get("nodes") or [], *rivals]:
            names = {n for n in names if n}
            if names and names not in groups:
                groups.append(names)
    return groups


def judge_fault(case, mode, report, folder):
    blamed, groups = set(case.blamed), suspects(report)
    ranks = [i for i, g in enumerate(groups) if g & blamed]
    fix = report.get("fix") or {}
    claims = (fix.get("verified") or {}).get("verdict") == "faithful"
    files = [f for f in fix.get("files") or [] if f.endswith(".onnx")]
    wrong = ("no file" if not files else repaired(case, pathlib.Path(folder) / files[0])) if claims else ""
    return {"first": bool(groups) and ranks[:1] == [0], "three": bool(ranks) and ranks[0] < 3, "claims": claims,
            "fixed": claims and not wrong, "fix_wrong": wrong, "says": " | ".join(",".join(sorted(g)) for g in groups[:3]),
            "unnoticed": report.get("verdict") == "faithful"}


def said(case, report):
    """How sure check is of its first culprit, and of a region where no single node explains the difference; whether the region is right."""
    culprit = (report.get("culprits") or [{}])[0]
    region = culprit.get("region")
    return {"probability": culprit.get("probability"), "cause": culprit.get("cause"),
            "region": region and {"probability": region["probability"], "nodes": region["count"], "right": bool(set(region["nodes"]) & set(case.blamed))}}


def judge(case, mode, report, folder):
    if case.id[0] == "H":
        return {"alarm": healthy.alarm({"kind": case.kind}, report)}
    return {**judge_fault(case, mode, report, folder), **said(case, report)}
