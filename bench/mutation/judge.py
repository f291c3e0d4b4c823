"""What `assay check` said of a mutant, held against what was injected."""
import json

import numpy as np

VERDICTS = ("right", "weak", "weak blamed", "missed", "wrong node", "failed", "too slow")


def culprits(report):
    """Nodes in the order in which they are blamed: each entry is a list of labels."""
    return [c["nodes"] for c in report["culprits"]]


def judge_engine(report, label, fault):
    """Of an engine's fault: the verdict, and whether it is told for what it is."""
    layers = [layer for layer in report["layers"] if "planted" in layer]
    past = sum(layer["planted"]["past_limit"] for layer in layers)
    changed = sum(layer["planted"]["changed"] for layer in layers)
    defects = [c for c in report["culprits"] if c["verdict"] == "defect"]
    blamed = defects if defects else []
    first_is_right = bool(blamed) and label in blamed[0]["nodes"]
    others = [c["nodes"] for c in blamed if label not in c["nodes"]]
    told = any(layer["verdict"] in ("underflow", "overflow", "invalid") for layer in layers)
    facts = {"past_limit": past, "changed": changed, "others": others[:3],
             "layer_verdict": layers[0]["verdict"] if layers else None}
    if changed == 0:
        return None, facts  # it does nothing on these inputs
    if first_is_right:
        facts["cause"] = report["blame"]
        facts["cause_right"] = report["blame"] == "engine"
        return "right", facts
    if fault.startswith("flush") and told and not others:
        facts["cause"], facts["cause_right"] = "underflow", True
        return "right", facts
    if past == 0:
        return ("weak blamed" if others else "weak"), facts
    return ("wrong node" if others else "missed"), facts


def judge_export(report, injected, outputs_only, restored):
    """Of an export's fault. restored: the repaired model gives golden again; None: there is none."""
    found = [c for c in report["culprits"] if c["verdict"] == "export"]
    facts = {"blame": report["blame"], "restored": restored, "export": report.get("export")}
    if not found:
        return "missed", facts
    ranked = [found[0]["nodes"][0]] + (found[0]["rivals"] if outputs_only else [])
    facts.update(cause=found[0]["cause"], why=found[0]["why"], ranked=ranked[:4], faults=len(found))
    facts["first"] = ranked[0] in injected.nodes
    place = next((i for i, label in enumerate(ranked[:3]) if label in injected.nodes), None)
    right = facts["first"] if not outputs_only else place is not None
    facts["cause_right"] = bool(right and found[0]["cause"] in injected.causes)
    if not right:
        return "wrong node", facts
    if outputs_only and restored is False:
        facts["not_restored"] = True
    return "right", facts


def is_undone(report, injected):
    """Whether the report says of a node at fault that later layers undo what it does."""
    return any(v["node"] in injected.nodes for v in (report.get("export") or {}).get("undone") or [])


def difference(got, want):
    """RMS difference over all arrays, each relative to its RMS; inf where shapes differ."""
    worst = 0.0
    for name, y in want.items():
        x = got.get(name)
        if x is None or x.shape != y.shape:
            return float("inf")
        if y.dtype.kind not in "fc":
            worst = max(worst, float(np.mean(x != y)) if y.size else 0.0)
            continue
        finite = np.isfinite(x) & np.isfinite(y)
        if np.any(np.isfinite(x) != np.isfinite(y)):
            return float("inf")
        x, y = x[finite].astype(np.float64), y[finite].astype(np.float64)
        scale = float(np.sqrt(np.mean(y * y))) if y.size else 0.0
        rms = float(np.sqrt(np.mean((x - y) ** 2))) if y.size else 0.0
        worst = max(worst, rms / scale if scale > 0 else (float("inf") if rms > 0 else 0.0))
    return worst


def read_report(path):
    with open(path) as f:
        return json.load(f)
