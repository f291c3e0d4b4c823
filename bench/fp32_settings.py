#!/usr/bin/env python3
"""Own errors of every layer in the settings of fp32, side by side; as Markdown.

    bench/fp32_settings.py MODEL... [--out FILE] [--batch N] [--golden]

Each model is checked on the CPU (fused plan) in plain, tight and bound. Layers that a gated tactic runs in one of them
are listed, with the condition under which it may serve (tight: root mean square own error at most twice that of plain
sums; bound: six standard deviations within plain sums' guaranteed bound), as measured on these inputs. With --golden, inputs.npz beside a model is given. Goes on where --out stopped. Needs a
release build, or --assay PROGRAM. Exit code 1: a condition that does not hold, a defect, or fewer gated layers than
--gated.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from false_alarms import ASSAY, shapes  # noqa: E402

SETTINGS = ("plain", "tight", "bound")
ROOM = 2  # times plain's own error, in tight


def layers_of(assay, model, setting, words):
    """{layer's name: its account}"""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "check.json")
        run = subprocess.run([assay, "check", model, "--precision", "fp32", "--target", "cpu", "--fused", "--fp32", setting,
                              "--no-fix", "--json", out, "-o", folder] + words, capture_output=True, text=True, timeout=1800)
        if run.returncode not in (0, 1):
            sys.exit("%s in %s: exit %d: %s" % (model, setting, run.returncode, run.stderr.strip()[-300:]))
        with open(out) as f:
            return {layer["name"]: layer for layer in json.load(f)["layers"]}


def condition(layer):
    """What a gated layer measured, or nothing."""
    l = layer.get("licensed")
    if not l:
        return "plain sums"
    measured = "%.2f of plain's" % l["own_over_plain"] if l["asks"] == "tight" else \
        "%.3f of the bound" % l["six_sigma_over_bound"]
    return "%s: %s%s" % (l["tactic"], measured, "" if l["holds"] else " (does not hold)")


def compare(accounts):
    """(rows of the table, layers alike, [what is wrong])"""
    rows, alike, wrong = [], 0, []
    for name, plain in accounts["plain"].items():
        each = [accounts[s].get(name) for s in SETTINGS]
        if None in each:
            wrong.append("%s: not a layer in all settings" % name)
            continue
        own = [layer["own"]["rms"] for layer in each]
        wrong += ["%s: defect in %s" % (name, s) for s, layer in zip(SETTINGS, each) if layer["verdict"] == "defect"]
        wrong += ["%s: %s" % (name, condition(layer)) for layer in each if not layer.get("licensed", {}).get("holds", True)]
        if not any(layer.get("licensed") for layer in each):
            alike += 1
            continue
        if each[1].get("licensed") and own[1] > ROOM * own[0] > 0:
            wrong.append("%s: %.2f times plain's own error in tight" % (name, own[1] / own[0]))
        rows.append("| %s | %.2e | %.2e | %.2e | %s | %s |" % (name, *own, condition(each[1]), condition(each[2])))
    return rows, alike, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--out")
    parser.add_argument("--assay", default=ASSAY, metavar="PROGRAM")
    parser.add_argument("--gated", type=int, default=0, metavar="N", help="layers that a gated tactic has to run")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--golden", action="store_true")
    args = parser.parse_args()
    done = set()
    if args.out and os.path.exists(args.out):
        with open(args.out) as f:
            done = {line[3:].strip() for line in f if line.startswith("## ")}
    elif args.out:
        with open(args.out, "w") as f:
            f.write("# Own errors in the settings of fp32\n\n`bench/fp32_settings.py`, %s, %s, %d cores. Root mean square own "
                    "error of each layer's outputs.\n" % (datetime.date.today(), platform.machine(), os.cpu_count()))
    failed = False
    for model in args.models:
        name = os.path.relpath(model, os.path.dirname(os.path.dirname(os.path.abspath(model)))) if args.golden \
            else os.path.basename(model)
        if name in done:
            continue
        words = ["--inputs", os.path.join(os.path.dirname(model), "inputs.npz")] if args.golden else shapes(model, args.batch)
        rows, alike, wrong = compare({s: layers_of(args.assay, model, s, words) for s in SETTINGS})
        if len(rows) < args.gated:
            wrong.append("%d layers are run by gated tactics, expected %d" % (len(rows), args.gated))
        text = "\n## %s\n\n%d layers run by plain sums in all settings; %d by a gated tactic in one.\n" % (
            name, alike, len(rows))
        if rows:
            text += "\n| layer | plain | tight | bound | in tight | in bound |\n%s\n%s\n" % ("| --- " * 6 + "|", "\n".join(rows))
        text += "".join("\n**%s**\n" % w for w in wrong)
        print(text, flush=True)
        if args.out:
            with open(args.out, "a") as f:
                f.write(text)
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
