#!/usr/bin/env python3
"""Whether a program computes what an older one did, to the bit: same_numbers.py OLD NEW [MODEL...]

For each model, format and target OLD writes a certificate of a run, which NEW verifies; with
--json both also write `check --json`, which must be equal but for times and the version. Inputs
beside a model (inputs.npz) are used, else random ones. Models named NAME@int8 are taken as their
quantizers say, once a target.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

# What may differ: times and the program's own version.
UNLIKE = {"seconds", "version"}


def call(program, *args, limit):
    try:
        return subprocess.run([program, *args], capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None


def alike(a, b, key=""):
    if key in UNLIKE:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k], k) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y, key) for x, y in zip(a, b))
    return a == b


def certificate(args, model, options, work):
    """'', or what went wrong."""
    path = work / "old.cert"
    path.unlink(missing_ok=True)
    old = call(args.old, "certify", model, "-o", path, *options, limit=args.limit)
    if old is None or not path.exists():
        return "skipped: " + (old.stderr.strip().splitlines() or ["?"])[-1] if old else "skipped: too slow"
    target = options[options.index("--target"):][:2]
    inputs = options[options.index("-i"):][:2] if "-i" in options else []
    new = call(args.new, "certify", "--verify", path, model, *target, *inputs, limit=args.limit)
    if new is None:
        return "too slow to verify"
    return "" if new.returncode == 0 else (new.stdout + new.stderr).strip()[:300]


def reports(args, model, options):
    found = []
    for program in (args.old, args.new):
        run = call(program, "check", model, *options, "--no-fix", "--json", "-", limit=args.limit)
        if run is None or not run.stdout.startswith("{"):
            return "skipped: no report"
        found.append(json.loads(run.stdout))
    return "" if alike(*found) else "reports differ"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--targets", default="emu,cpu")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--limit", type=float, default=300)
    args = parser.parse_args()
    counts = {"same": 0, "different": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models:
            model, _, quantized = name.partition("@")
            inputs = pathlib.Path(model).parent / "inputs.npz"
            for target in args.targets.split(","):
                for precision in [quantized] if quantized else ["fp32", "bf16", "fp16"]:
                    options = ["--target", target, "--precision", precision]
                    options += ["-i", str(inputs)] if inputs.exists() else []
                    began = time.time()
                    faults = [certificate(args, model, options, pathlib.Path(folder))]
                    faults += [reports(args, model, options)] if args.json else []
                    faults = [f for f in faults if f]
                    kind = "same" if not faults else \
                        "skipped" if all(f.startswith("skipped") for f in faults) else "different"
                    counts[kind] += 1
                    print(f"{kind} {target} {precision} {name} {time.time() - began:.1f} s {'; '.join(faults)}", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return 1 if counts["different"] or not counts["same"] else 0


if __name__ == "__main__":
    sys.exit(main())
