#!/usr/bin/env python3
"""`assay tune` on models, and beside all assignments of small networks; as Markdown.

    bench/tune.py [--models MODEL...] [--small] [--exhaustive PROGRAM] [--targets emu,cpu] [--demands N] --out FILE

For each model, target and demand: whether the demand is met by what was handed over, how often the forecast of an assignment's
error was within a factor 2 of what was measured (every assignment that was run after it was forecast counts, those
that did not do included), layers in fp32, time by the model beside all in fp32. Requirements are set from the
error of all layers in the low format: so many decibels above its SNR; PSNR, the largest error and the cosine that belong to
them; top1. Inputs: inputs.npz beside a model, else random ones. --small: seeded networks of at most 16 layers (chains,
residual, attention), each by PROGRAM (target tune_exhaustive of bench/) beside all of their assignments. A line is
written as soon as it is there; lines that are in FILE already are not measured again. Exit code 1: a demand that all of
fp32 meets was not met, fewer than 90 % of the forecasts within a factor 2, or a price of more than 1.2 times the optimum.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
ASSAY = os.environ.get("ASSAY", str(ROOT / "build/release/src/cli/assay"))
LOW = {"emu": "fp16", "cpu": "bf16"}


def machine():
    """What kind of CPU it is, without a name of the machine's own."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    return f"{model}, {os.cpu_count()} cores"


# ---- small networks -----------------------------------------------------------------------------


class Net:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype=np.float32), name))
        return name

    def weight(self, *shape):
        fan = np.prod(shape[1:]) if len(shape) > 2 else shape[0]
        # Some layers have larger weights: their rounding errors count more.
        return self.constant(self.random.standard_normal(shape) * math.sqrt(2 / fan) * 2 ** self.random.uniform(-1.5, 1.5))

    def node(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"


def chain(net, layers):
    """Convolutions of many widths, one after the other."""
    x, width = "x", 4
    while len(net.nodes) < layers - 1:
        wide = int(net.random.choice([2, 4, 8]))
        x = net.node("Conv", x, net.weight(wide, width, 3, 3), pads=[1] * 4)
        if len(net.nodes) < layers - 1:
            x = net.node(str(net.random.choice(["Relu", "Tanh", "Sigmoid"])), x)
        width = wide
    return net.node("GlobalAveragePool", x), [4, 4, 8, 8]


def residual(net, layers):
    x = "x"
    while len(net.nodes) + 3 <= layers:
        y = net.node("Relu", net.node("MatMul", x, net.weight(16, 16)))
        x = net.node("Add", x, y)
    while len(net.nodes) < layers:
        x = net.node("MatMul", x, net.weight(16, 16))
    return x, [8, 16]


def attention(net, layers):
    q, k, v = (net.node("MatMul", "x", net.weight(16, 16)) for _ in range(3))
    s = net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 1]))
    p = net.node("Softmax", net.node("Mul", s, net.constant(0.25)), axis=-1)
    y = net.node("Add", "x", net.node("MatMul", net.node("MatMul", p, v), net.weight(16, 16)))
    while len(net.nodes) + 3 <= layers:
        h = net.node("Tanh", net.node("MatMul", y, net.weight(16, 32)))
        y = net.node("MatMul", h, net.weight(32, 16))
    return y, [2, 8, 16]


def make_small(folder, kind, layers, seed):
    net = Net(seed)
    out, shape = kind(net, layers)
    inner = {chain: None, residual: [8, 16], attention: [2, 8, 16]}[kind]
    graph = helper.make_graph(
        net.nodes, kind.__name__, [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(out, onnx.TensorProto.FLOAT, inner)], net.constants)
    path = folder / f"{kind.__name__}{layers}_{seed}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(path.with_suffix(".npz"), x=net.random.standard_normal(shape).astype(np.float32))
    return path


SMALL = [(chain, 6), (chain, 9), (chain, 12), (residual, 6), (residual, 9), (residual, 12), (attention, 9),
         (attention, 12), (attention, 15), (residual, 16)]
SMALL_HEAD = "| network | layers | format | demand | goal | tune | optimum | times | runs of tune, of all |"


def small_rows(program, done, write):
    with tempfile.TemporaryDirectory() as folder:
        for seed, (kind, layers) in enumerate(SMALL, 1):
            path = make_small(pathlib.Path(folder), kind, layers, seed)
            for form in ("fp16", "bf16"):
                for above in (2, 6, 12, 20):
                    key = f"| {path.stem} | {form} | +{above} dB"
                    if key in done:
                        continue
                    run = subprocess.run([program, path, path.with_suffix(".npz"), form, str(above)],
                                         capture_output=True, text=True)
                    if run.returncode:
                        write(f"{key} | FAULT: {run.stderr.strip()[-160:]} | | | | |")
                        continue
                    for line in run.stdout.splitlines():
                        r = json.loads(line)
                        ratio = r["tune"] / r["optimum"] if r["optimum"] else (1.0 if not r["tune"] else math.inf)
                        scale = 1 if r["goal"] == "layers" else 1e6
                        write(f"{key}, {r['demand']} | {r['units']} | {r['goal']} | {r['tune'] * scale:.4g} | "
                              f"{r['optimum'] * scale:.4g} | {ratio:.3f} | {r['trials']}, {r['runs']} |"
                              + ("" if r["met"] else " FAULT: not met"))


# ---- models -------------------------------------------------------------------------------------


def tune(model, inputs, target, demand, words):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "tune.json")
        command = [ASSAY, "tune", model, "--target", target, "--precision", LOW[target], "--json", out, *words]
        command += ["-i", inputs] if inputs else []
        command += ["--require", demand] if demand else []
        start = time.time()
        run = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=3600)
        seconds = time.time() - start
        if run.returncode not in (0, 1):
            return None, seconds, f"exit {run.returncode}: {run.stderr.strip()[-200:]}"
        with open(out) as f:
            return json.load(f), seconds, ""


def amplitude(statistic, x):
    """A statistic as a size of error."""
    if statistic == "cosine":
        return math.sqrt(max(0.0, 2 - 2 * x))
    if statistic.endswith("_db"):
        return 10 ** (-x / 20)
    return x


def factors(report):
    """Predicted over measured of each assignment that was run behind its forecast: of every output's RMS, and of the
    statistics that were asked for."""
    rms, asked = [], []
    for trial in report["trials"]:
        if not trial["predicted"]:
            continue
        for p, m in zip(trial["predicted"], trial["measured"]):
            if p["rms"] and m["rms"]:
                rms.append(p["rms"] / m["rms"])
        for d in trial["demands"]:
            if d["predicted"] is None or d["statistic"] in ("top1", "top5"):
                continue
            p, m = amplitude(d["statistic"], d["predicted"]), amplitude(d["statistic"], d["measured"])
            if p and m:
                asked.append(p / m)
    return rms, asked


def demands(model, inputs, target, most):
    """Requirements that all layers in the low format do not meet, from how large its error is there."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "check.json")
        command = [ASSAY, "check", model, "--no-fix", "--precision", LOW[target], "--target", target, "--json", out, "-o", folder]
        run = subprocess.run([str(c) for c in command + (["-i", inputs] if inputs else [])], capture_output=True, text=True)
        if run.returncode not in (0, 1):
            return None, f"exit {run.returncode}: {run.stderr.strip()[-200:]}"
        with open(out) as f:
            o = json.load(f)["outputs"][0]
    name = o["name"]
    e = o
    rows = []
    if e.get("snr_db") is not None:
        rows.append(f"{name}: snr_db >= {max(e['snr_db'], 10) + 6:.2f}")
    if e.get("max_abs"):
        rows.append(f"{name}: max_abs <= {e['max_abs'] / 2:.3g}")
    if e.get("cosine") is not None and e["cosine"] < 1 - 1e-12:
        rows.append(f"{name}: cosine >= {1 - (1 - e['cosine']) / 5:.12f}")
    rows.append("top1 >= 1")
    return rows[:most], ""


MODEL_HEAD = "| model | target | demand | verdict | predicted/measured: RMS | of what was asked | fp32 of layers | ms, all fp32 | runs | s |"


def model_rows(models, targets, words, most, done, write):
    for model in models:
        path = pathlib.Path(model)
        name = path.parent.name if path.stem == "model" else path.stem
        inputs = path.parent / "inputs.npz"
        inputs = inputs if path.stem == "model" and inputs.exists() else None
        for target in targets:
            head = f"| {name} | {target} | "
            if any(line.startswith(head) for line in done.splitlines()):
                continue
            rows, wrong = demands(model, inputs, target, most)
            if rows is None:
                write(f"{head}FAULT: {wrong} | | | | | | | |")
                continue
            for demand in rows:
                report, seconds, wrong = tune(model, inputs, target, demand, words)
                if not report:
                    write(f"{head}{demand} | FAULT: {wrong} | | | | | | |")
                    continue
                rms, asked = factors(report)
                chosen = report["chosen"] or report["trials"][0]
                high = report["trials"][0]
                short = lambda xs: " ".join(f"{x:.2f}" for x in xs) or "-"
                write(f"{head}{demand} | {report['verdict']} | {short(rms)} | {short(asked)} | "
                      f"{chosen['layers']['fp32']} of {report['layers']} | {chosen['milliseconds']:.4g}, "
                      f"{high['milliseconds']:.4g} | {report['runs']} | {seconds:.0f} |")


# ---- the table ----------------------------------------------------------------------------------


def judge(text):
    """What the tables come to, and what is wrong."""
    faults = [line for line in text.splitlines() if "FAULT" in line]
    rms, first, asked, ratios, verdicts, words = [], [], [], {}, {}, []
    for line in text.splitlines():
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if len(cells) == 10 and cells[1] in LOW:
            verdicts[cells[3]] = verdicts.get(cells[3], 0) + 1
            rms += [float(x) for x in cells[4].split() if x != "-"]
            first += [float(x) for x in cells[4].split()[:1] if x != "-"]
            asked += [float(x) for x in cells[5].split() if x != "-"]
        elif len(cells) == 9 and cells[1] in ("fp16", "bf16"):
            ratios.setdefault(cells[4], []).append(float(cells[7]))
    within = lambda xs: sum(0.5 <= x <= 2 for x in xs)
    if verdicts:
        words.append("Verdicts: " + ", ".join(f"{v}: {n}" for v, n in sorted(verdicts.items())) + ".")
    for what, xs in (("RMS errors", rms), ("RMS errors, the first of each line only", first), ("statistics that were asked for", asked)):
        if xs:
            words.append(f"Forecasts of {what} within a factor 2: {within(xs)} of {len(xs)} ({100 * within(xs) / len(xs):.1f} %).")
            if within(xs) < 0.9 * len(xs):
                faults.append(f"forecasts of {what}")
    for goal, xs in ratios.items():
        words.append(f"Small networks, goal {goal}: {sum(x <= 1.2 for x in xs)} of {len(xs)} at most 1.2 times the optimum, "
                     f"{sum(x < 1.0005 for x in xs)} at it, the worst {max(xs):.3f}.")
        if max(xs) > 1.2:
            faults.append(f"goal {goal}: {max(xs):.3f} times the optimum")
    return words, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--targets", default="emu,cpu")
    parser.add_argument("--device", help="whose roofline; default: h100 for emu, this CPU for cpu")
    parser.add_argument("--demands", type=int, default=4, help="of SNR, largest error, cosine, top1: the first so many")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--exhaustive", default=str(ROOT / "build/release/bench/tune_exhaustive"))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    a = parser.parse_args()
    done = a.out.read_text() if a.out.exists() else ""
    lines = done.splitlines()
    body = [line for line in lines if line.startswith("| ") and " --- " not in line and line not in (MODEL_HEAD, SMALL_HEAD)]

    def save():
        models = [line for line in body if len(line.split("|")) >= 12]
        small = [line for line in body if line not in models]
        words, _ = judge("\n".join(body))
        text = [f"# tune, {datetime.date.today()}", "",
                f"`bench/tune.py {' '.join(os.path.basename(w) if '/' in w else w for w in sys.argv[1:])}`; {machine()}.", "", *words, ""]
        if models:
            text += [MODEL_HEAD, "| --- " * 10 + "|", *models, ""]
        if small:
            text += [SMALL_HEAD, "| --- " * 9 + "|", *small, ""]
        a.out.write_text("\n".join(text))

    def write(line):
        print(line, flush=True)
        body.append(line)
        save()

    if a.small:
        small_rows(a.exhaustive, done, write)
    model_rows(a.models, a.targets.split(","), ["--no-pareto"] + (["--device", a.device] if a.device else []), a.demands, done, write)
    save()
    _, faults = judge("\n".join(body))
    for fault in faults:
        print("FAULT", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
