#!/usr/bin/env python3
"""`debug reduce` on engine mutants of bench/mutants: what is left of each, and whether it still fails.

    reduce.py ASSAY MODELS... [--seed S] [--count N] [--work DIR] [--results FILE]

Mutants are those of mode E: one node of the engine computes something else (--plant). Taken are those that `assay check`
finds unfaithful and blames the right node for. Of each, `debug reduce` writes a part; the command that it prints is run on the files: it must fail, and
must not without the fault.

Exit code 1 if a part has more than three nodes, does not fail, fails without the fault, or takes more than 30 s.
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

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_NODES, MOST_SECONDS, LIMIT = 3, 30, 300


def load_mutants():
    loader = importlib.machinery.SourceFileLoader("mutants", os.path.join(HERE, "mutants"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
    loader.exec_module(module)
    return module


mutants = load_mutants()


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    return done.returncode, done.stdout, done.stderr


def reduce(subject, options, folder):
    """What debug reduce says, and the seconds that it took; None if it failed."""
    report = os.path.join(folder, "reduced.json")
    started = time.monotonic()
    code, _, error = run([subject.program, "debug", "reduce", subject.model, *subject.input_options(), *options,
                          "-o", os.path.join(folder, "part"), "--json", report])
    seconds = time.monotonic() - started
    if code != 1:
        return None, seconds, error.strip() or f"exit code {code}"
    with open(report) as f:
        return json.load(f), seconds, ""


def show(program, found, plant):
    """Exit code of the command that it prints, with the fault or without."""
    words = shlex.split(found["command"])
    if not plant:
        at = words.index("--plant")
        del words[at:at + 2]
    return run([program, *words[1:]])[0]


def try_mutant(subject, fault, precision, fused):
    options = ["--precision", precision, "--plant", fault, *(["--fused"] if fused else [])]
    with tempfile.TemporaryDirectory() as folder:
        found, seconds, error = reduce(subject, options, folder)
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
    if found["nodes"] > MOST_NODES:
        return {**row, "verdict": "too many nodes"}
    return {**row, "verdict": "too slow" if seconds > MOST_SECONDS else "right"}


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


def table(rows, options):
    right = sum(r["verdict"] == "right" for r in rows)
    slowest = max((r["seconds"] for r in rows), default=0)
    lines = [f"# debug reduce, {datetime.date.today()}", "",
             f"{len(rows)} engine mutants of bench/mutants, seed {options.seed}, on {platform.machine()}, {os.cpu_count()} cores "
             f"(bench/reduce.py): {right} reduced to at most {MOST_NODES} nodes that still fail, and do not without the fault; "
             f"the slowest took {slowest:.1f} s.", "",
             "| # | model | fault | nodes | were | found | parts run | s | verdict |", "|---|---|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(f"| {r['index']} | {r['model']} | {r['kind']}: {r['what']} | {r.get('nodes', '')} | {r.get('before', '')} | "
                     f"{r.get('way', '')} | {r.get('tries', '')} | {r['seconds']:.1f} | {r['verdict']} |")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("assay")
    p.add_argument("models", nargs="+")
    p.add_argument("--seed", type=int, default=21)
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--work", help="where healthy models are kept")
    p.add_argument("--results")
    o = p.parse_args()
    bench_options = argparse.Namespace(assay=os.path.abspath(o.assay), models=o.models, seed=o.seed, biggest=200, rows=2, side=64, modes="E",
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
