#!/usr/bin/env python3
"""`assay check` of healthy models in every format: what each layer's verdict is; as Markdown.

    bench/false_alarms.py MODEL... [--precision P,P...] [--batch N,N...] [--target cpu] [--golden] --out FILE

A model's open sizes are made N, one batch after the other. With --golden, inputs.npz and
golden.npz beside a model are given, and nothing may be blamed on its export. Goes on where it was
stopped: a line that is in FILE already is not measured again. Needs a release build, or
ASSAY=PROGRAM. Exit code 1: a false alarm, which is any layer 'defect' or 'unclassified', blame on
an engine or an export, or a check that did not end.
"""
import argparse
import collections
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(ROOT, "build/release/src/cli/assay"))
HEAD = "| model | batch | format | blame | seconds | layers by verdict | false alarms |"


def shapes(model, batch):
    """--shape words that make every open size of the inputs `batch`; none if there are none."""
    text = subprocess.run([ASSAY, "inspect", "model", model, "--json", "-"], capture_output=True, text=True).stdout
    words = []
    for value in json.loads(text)["inputs"]:
        dims = value.get("shape") or []
        if any(not isinstance(d, int) for d in dims):
            words += ["--shape", "%s=%s" % (value["name"], "x".join(str(d if isinstance(d, int) else batch) for d in dims))]
    return words


def judge(model, words):
    """(blame, seconds, {verdict: layers}, [what is wrong])"""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "check.json")
        command = [ASSAY, "check", model, "--no-fix", "--json", out, "-o", folder] + words
        start = time.time()
        run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        seconds = time.time() - start
        if run.returncode not in (0, 1):
            return "none", seconds, {}, ["exit %d: %s" % (run.returncode, run.stderr.strip()[-200:])]
        with open(out) as f:
            report = json.load(f)
    wrong = ["%s: %s" % (layer["verdict"], layer["name"]) for layer in report["layers"]
             if layer["verdict"] in ("defect", "unclassified")]
    if report["blame"] in ("engine", "export"):
        wrong.append("blame " + report["blame"])
    return report["blame"], seconds, collections.Counter(layer["verdict"] for layer in report["layers"]), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--precision", default="fp32,tf32,bf16,fp16")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--target", default="emu", help="emu: one layer a node; cpu: the fused plan, too")
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    done = set()
    if os.path.exists(args.out):
        with open(args.out) as f:
            done = {tuple(re.split(r" *\| *", line)[1:4]) for line in f if line.startswith("| ")}
    else:
        with open(args.out, "w") as f:
            f.write("# Verdicts on healthy models\n\n`bench/false_alarms.py`, %s, %s, %d cores.\n\n%s\n%s\n" % (
                datetime.date.today(), platform.machine(), os.cpu_count(), HEAD, "| --- " * 7 + "|"))
    alarms = 0
    for model in args.models:
        name = os.path.join(os.path.basename(os.path.dirname(model)), os.path.basename(model)) if args.golden \
            else os.path.basename(model)
        for batch in args.batch.split(","):
            for precision in args.precision.split(","):
                if (name, batch, precision) in done:
                    continue
                words = [] if precision == "declared" else ["--precision", precision]
                if args.target != "emu":
                    words += ["--target", args.target]
                if args.golden:
                    folder = os.path.dirname(model)
                    for option, file in (("--inputs", "inputs.npz"), ("--golden", "golden.npz")):
                        words += [option, os.path.join(folder, file)]
                else:
                    words += shapes(model, batch)
                blame, seconds, verdicts, wrong = judge(model, words)
                alarms += bool(wrong)
                line = "| %s | %s | %s | %s | %.1f | %s | %s |" % (
                    name, batch, precision, blame, seconds,
                    ", ".join("%d %s" % (n, v) for v, n in sorted(verdicts.items())), "; ".join(wrong) or "none")
                print(line, flush=True)
                with open(args.out, "a") as f:
                    f.write(line + "\n")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
