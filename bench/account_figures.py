#!/usr/bin/env python3
"""How the account of whole models adds up, and how shares agree with ablation; as Markdown.

    bench/account_figures.py --cases ../shared/cases --zoo FOLDER --out bench/results/account.md

Drives the programs of tests/accuracy in a release build. --keep FILE holds what was measured, model by model: a run that was
stopped goes on from there. Exit code 1: a figure misses its limit.
"""
import argparse
import datetime
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from truth_figures import ONE_BY_ONE, feed, machine  # noqa: E402

FORMATS = ("fp32", "tf32", "bf16", "fp16")
SPLIT_LIMIT, SUM_LIMIT, ABLATION_LIMIT = 1e-12, 1e-9, 0.1
SHARES_OF = ("mobilenet_v3_large", "efficientnet_b0", "resnet50", "speech_lstm")


class Kept:
    """Answers of programs, by what was asked."""

    def __init__(self, path):
        self.path, self.answers = path, {}
        if path and os.path.exists(path):
            with open(path) as f:
                self.answers = {a["key"]: a for a in map(json.loads, f)}

    def ask(self, key, command):
        if key not in self.answers:
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            answer = {"key": key, "error": run.stderr.strip()[-300:] if run.returncode else None,
                      "lines": [json.loads(line) for line in run.stdout.splitlines()]}
            self.answers[key] = answer
            if self.path:
                with open(self.path, "a") as f:
                    f.write(json.dumps(answer) + "\n")
        return self.answers[key]


def models(cases, zoo, work):
    """(name, model, inputs) of every model; the first sample of a case."""
    for path in sorted(glob.glob(f"{cases}/*/model*.onnx")):
        name, inputs = os.path.relpath(path, cases), os.path.join(os.path.dirname(path), "inputs.npz")
        if name in ONE_BY_ONE:  # they do not run, or not rightly, with more samples
            arrays, inputs = dict(np.load(inputs)), os.path.join(work, name.replace("/", "_") + ".npz")
            np.savez(inputs, **{k: a[:1] for k, a in arrays.items()})
        yield name[:-5], path, inputs
    for path in sorted(glob.glob(f"{zoo}/*.onnx"), key=os.path.getsize):
        name = os.path.basename(path)[:-5]
        inputs = os.path.join(work, name + ".npz")
        np.savez(inputs, **feed(onnx.load(path)))
        yield "zoo/" + name, path, inputs


def split(page, kept, program, found):
    """Whether total = own + inherited, model by model. Returns what misses its limit."""
    misses = []
    page += ["## total = own + inherited", "",
             "Worst |total - (own + inherited)| / (|own| + |inherited|) over the finite elements of all float values, with the engine "
             f"and truth run once more by themselves (limit {SPLIT_LIMIT:g}); values that differ from those runs' (of truth: only "
             "behind flips); whether the plan's checksum and the outputs' bits are those without the account; defects.", "",
             "| model | format | layers | values | elements | worst | other than engine | other than truth | flipped | same plan | "
             "same bits | defects |", "|---|---|--:|--:|--:|--:|--:|--:|--:|---|---|--:|"]
    for name, path, inputs in found:
        for way in ("", "fused "):
            answer = kept.ask(f"split {way}{name}", [program] + (["--fused"] if way else []) + [path, inputs, *FORMATS])
            for line in answer["lines"]:
                page.append(f"| {name} | {way}{line['format']} | {line['layers']} | {line['values']} | {line['elements']:,} | "
                            f"{line['worst']:.1e} | {line['other_engine']} | {line['other_truth']} | {line['flipped']} | "
                            f"{'yes' if line['same_checksum'] else 'NO'} | {'yes' if line['same_outputs'] else 'NO'} | "
                            f"{line['defects']} |")
                if not (line["worst"] <= SPLIT_LIMIT and not line["other_engine"] and line["same_checksum"] and
                        line["same_outputs"] and (not line["other_truth"] or line["flipped"])):
                    misses.append(f"{name} in {way}{line['format']}")
            if answer["error"]:
                page.append(f"| {name} | {way} | {answer['error']} |")
                misses.append(f"{name}: {answer['error']}")
    return misses


def shares(page, kept, program, found):
    """Shares against ablation, for models of which truth is cheap."""
    misses = []
    page += ["", "## Shares of an output's error", "",
             "Shares as `check` makes them (at most 32 evaluations of truth), and the single layers with the largest ones (4 at most) held "
             f"against ablation: the layer's own error alone, and all errors but its own. Limits: shares add up to 1 within {SUM_LIMIT:g}, "
             f"ablation within {ABLATION_LIMIT:g} where errors superpose: not where the outputs are not finite (shares count elements there), and "
             "not behind quantizers, of which a step is taken or not, whoever pushed.", "",
             "| model | format | layers | layer ranges | evaluations | tried | 1 - sum | all own errors added: off by | alone - share | "
             "left out - share |", "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for name, path, inputs in found:
        if name.startswith("zoo/") and name[4:] not in SHARES_OF:
            continue
        answer = kept.ask(f"shares {name}", [program, "4", path, inputs, "bf16", "fp16"])
        for line in answer["lines"]:
            page.append(f"| {name} | {line['format']} | {line['layers']} | {line['layer_ranges']} | {line['runs']} | {line['tried']} | "
                        f"{line['sum_off']:.1e} | {line['engine_off']:.1e} | {line['alone_off']:.1e} | {line['exact_off']:.1e} |" + ("" if line.get("finite", True) else " not finite"))
            superpose = line.get("finite", True) and "int8" not in os.path.basename(path)
            off = max(line["alone_off"], line["exact_off"]) if superpose else 0
            if not (line["sum_off"] <= SUM_LIMIT and off <= ABLATION_LIMIT):
                misses.append(f"shares of {name} in {line['format']}")
        if answer["error"]:
            page.append(f"| {name} | {answer['error']} |")
            misses.append(f"shares of {name}: {answer['error']}")
    return misses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--zoo", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--keep")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build/release/tests"))
    a = parser.parse_args()
    kept = Kept(a.keep)
    page = [f"# The account's figures, {datetime.date.today()}", "", machine(), ""]
    with tempfile.TemporaryDirectory() as work:
        found = list(models(a.cases, a.zoo, work))
        misses = split(page, kept, os.path.join(a.programs, "account_split_error"), found)
        misses += shares(page, kept, os.path.join(a.programs, "account_shares_ablation"), found)
    page += ["", "## Limits missed", ""] + ([f"- {m}" for m in misses] or ["None."])
    with open(a.out, "w") as f:
        f.write("\n".join(page) + "\n")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
