#!/usr/bin/env python3
"""`debug reduce` on mutants of bench/mutants: what is left of each, and whether it still fails.

    reduce.py ASSAY MODELS... [--modes EIO] [--seed S] [--count N] [--work DIR] [--results FILE]

Mode E: one node of the engine computes something else (--inject). Taken are those that `assay check` finds unfaithful and
blames the right node for. Of each, `debug reduce` writes a part; the command that it prints is run on the files: it must fail, and
must not without the fault.

Modes I and O: one node of the model was exported wrong, and golden tells: of every value (I), or of the outputs (O). Taken are those that
`debug reduce` finds to fail. The command that it prints must fail, and blame the export; the wrong node must be in the part. With golden of
the outputs only there is nowhere to cut, so that the part is what the wrong outputs are made of: of it no size is asked.

Exit code 1 if a part (of E and I) has more than three nodes, does not fail, fails without the fault, lacks the node, or takes more than 30 s.
"""
import argparse
import datetime
import importlib.machinery
import importlib.util
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_NODES, MAX_SECONDS, LIMIT = 3, 30, 300


def load_mutants():
    loader = importlib.machinery.SourceFileLoader("mutants", os.path.join(HERE, "mutants"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
    loader.exec_module(module)
    return module


mutants = load_mutants()


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    return done.returncode, done.stdout, done.stderr


def reduce(subject, model, options, folder):
    """What debug reduce says, and the seconds that it took; None if it failed or found nothing."""
    report = os.path.join(folder, "reduced.json")
    started = time.monotonic()
    code, _, error = run([subject.program, "debug", "reduce", model, *subject.input_options(), *options,
                          "-o", os.path.join(folder, "part"), "--json", report])
    seconds = time.monotonic() - started
    if code == 0:
        return None, seconds, ""
    if code != 1:
        return None, seconds, error.strip() or f"exit code {code}"
    with open(report) as f:
        return json.load(f), seconds, ""


def show(program, found, inject):
    """Exit code of the command that it prints, with the fault or without."""
    words = shlex.split(found["command"])
    if not inject:
        at = words.index("--inject")
        del words[at:at + 2]
    return run([program, *words[1:]])[0]


def try_mutant(subject, fault, precision, fused):
    options = ["--precision", precision, "--inject", fault, *(["--fused"] if fused else [])]
    with tempfile.TemporaryDirectory() as folder:
        found, seconds, error = reduce(subject, subject.model, options, folder)
        row = {"seconds": round(seconds, 2), "error": error}
        if not found:
            return {**row, "verdict": "not reduced"}
        if found["verdict"] != "reduced":
            return {**row, "verdict": found["verdict"]}
        row.update(nodes=found["nodes"], before=found["nodes_before"], way=found["way"], tries=found["tries"],
                   names=[n["name"] for n in found["node"]])
        if show(subject.program, found, True) != 1:
            return {**row, "verdict": "holds"}
        if show(subject.program, found, False) != 0:
            return {**row, "verdict": "fails without the fault"}
    if found["nodes"] > MAX_NODES:
        return {**row, "verdict": "too many nodes"}
    return {**row, "verdict": "too slow" if seconds > MAX_SECONDS else "right"}


def blames_export(program, found, folder):
    """Whether the command that it prints fails, by the export."""
    report = os.path.join(folder, "shown.json")
    code = run([program, *shlex.split(found["command"])[1:], "--json", report])[0]
    with open(report) as f:
        return code == 1 and json.load(f)["blame"] == "export"


def try_exported(subject, model, injected, mode):
    golden = ["--golden", subject.outputs, *(["--golden-intermediates", subject.values] if mode == "I" else [])]
    with tempfile.TemporaryDirectory() as folder:
        found, seconds, error = reduce(subject, model, golden, folder)
        row = {"seconds": round(seconds, 2), "error": error}
        if not found:
            return {**row, "verdict": "not reduced"} if error else None
        row.update(nodes=found["nodes"], before=found["nodes_before"], way=found["way"], tries=found["tries"],
                   names=[n["name"] for n in found["node"]])
        if found["verdict"] != "reduced":
            return {**row, "verdict": found["verdict"] if mode == "I" else "right"}
        if not blames_export(subject.program, found, folder):
            return {**row, "verdict": "holds"}
    if injected.nodes and not set(injected.nodes) & set(row["names"]):
        return {**row, "verdict": "lacks the node"}
    if mode == "I" and found["nodes"] > MAX_NODES:
        return {**row, "verdict": "too many nodes"}
    return {**row, "verdict": "too slow" if seconds > MAX_SECONDS else "right"}


class Reductions(mutants.Bench):
    """Mutants as the bench makes them, each followed by its reduction."""

    @staticmethod
    def is_faithful(subject):
        """By the report that the check of the mutant has left: no output shows the fault."""
        with open(f"{subject.folder}/report.json") as f:
            return json.load(f)["verdict"] == "faithful"

    def try_engine(self, subject, name, fault, precision, fused):
        found = super().try_engine(subject, name, fault, precision, fused)
        if not found or found["verdict"] != "right" or self.is_faithful(subject):
            return None
        row = try_mutant(subject, f"{name}:{fault}", precision, fused)
        return {"model": found["model"], "what": found["what"], **row}

    def try_export(self, subject, proto, injected, mode):
        path = f"{subject.folder}/mutant.onnx"
        del proto.graph.value_info[:]
        onnx.save(proto, path)
        try:
            change = mutants.judge.difference(subject.truth_outputs(path), subject.golden())
        except (mutants.Failed, mutants.TooSlow):
            return None  # a model that does not run is found by running it
        if change < 1e-6:
            return None
        row = try_exported(subject, path, injected, mode)
        return {"model": subject.name, "what": injected.what, **row} if row else None


def table(rows, options):
    says = {"E": f"engine mutants: {{}} reduced to at most {MAX_NODES} nodes that still fail, and do not without the fault",
            "I": f"export mutants with golden of every value: {{}} reduced to at most {MAX_NODES} nodes that hold the wrong one and still fail",
            "O": "export mutants with golden of the outputs: {} reduced to what the wrong outputs are made of, which still fails"}
    lines = [f"# debug reduce, {datetime.date.today()}", "",
             f"Mutants of bench/mutants, seed {options.seed}, on {platform.machine()}, {os.cpu_count()} cores (bench/reduce.py).", ""]
    for mode in options.modes:
        mine = [r for r in rows if r["mode"] == mode]
        slowest = max((r["seconds"] for r in mine), default=0)
        right = says[mode].format(sum(r["verdict"] == "right" for r in mine))
        lines.append(f"- {len(mine)} {right}; the slowest took {slowest:.1f} s.")
    lines += ["", "| # | model | fault | nodes | were | found | parts run | s | verdict |", "|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(f"| {r['index']} | {r['model']} | {r['kind']}: {r['what']} | {r.get('nodes', '')} | {r.get('before', '')} | "
                     f"{r.get('way', '')} | {r.get('tries', '')} | {r['seconds']:.1f} | {r['verdict']} |")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("assay")
    p.add_argument("models", nargs="+")
    p.add_argument("--modes", default="E", help="which of E, I and O")
    p.add_argument("--seed", type=int, default=21)
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--work", help="where healthy models are kept")
    p.add_argument("--results")
    o = p.parse_args()
    bench_options = argparse.Namespace(assay=os.path.abspath(o.assay), models=o.models, seed=o.seed, biggest=200, rows=2, side=64, modes=o.modes,
                                       kind=None, limit=LIMIT, search_time=None)
    with tempfile.TemporaryDirectory() as temporary:
        bench = Reductions(bench_options, o.work or temporary)
        rows = []
        for index in range(o.count):
            rows.append(bench.one(index))
            r = rows[-1]
            if "seconds" not in r:
                r.update(seconds=0, model="", what="")
            print(index, r["model"], r["what"], r.get("nodes"), r.get("way"), f"{r['seconds']:.1f} s", r["verdict"], r.get("error", ""),
                  flush=True)
    text = table(rows, o)
    if o.results:
        with open(o.results, "w") as f:
            f.write(text)
    return 0 if all(r["verdict"] == "right" for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
