#!/usr/bin/env python3
"""`debug precision` from the account beside bisecting with a build for each trial, as Polygraphy does.

    debug_precision.py ASSAY CASES [--repeat N] [--threads T] [--results FILE]

CASES holds nafnet_fp16_nan. Beside it a network of 1,000 layers is made, of convolutions of many sizes, in
whose middle a few layers need more than fp16: once for their range (a norm that squares large numbers), once for
their precision (a large offset that is taken off again). Each is run in the account's mode, and with
--mode bisect with and without --rebuild, on the CPU target, where a build chooses and times kernels, and on
the emulated engine, where there is nothing to build. Times are the fastest of N, in user seconds (on a machine with other
work, wall time says little).

Exit code 1 if the account takes more than three runs to find layers that do or builds anything, more than a tenth of the time of bisecting with
builds on the CPU, or more layers than the prefix.
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
from datetime import date

import numpy as np
import onnx
from onnx import helper, numpy_helper

LAYERS, CHANNELS, SIDE = 1000, 16, 64


class Net:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def conv(self, x, c, m, k, gain=1):
        w = self.random.standard_normal((m, c, k, k)) * np.sqrt(gain / (c * k * k))
        return self.node("Conv", x, self.constant(w.astype(np.float32)), pads=[k // 2] * 4)


def block(net, x, k):
    """Five layers that change the values little, so that rounding adds up slowly: x + conv(relu(conv(x))) / 10."""
    inner = 8 * int(net.random.integers(1, 6))
    y = net.conv(net.node("Relu", net.conv(x, CHANNELS, inner, k)), inner, CHANNELS, 1, gain=2)
    return net.node("Add", x, net.node("Mul", y, net.constant(np.float32(0.1))))


def wide_range(net, x):
    """Values of some 1e6 between convolutions, which no fusion hides."""
    for gain in (1e3, 1e3, 1e-3, 1e-3):
        x = net.conv(x, CHANNELS, CHANNELS, 1, gain * gain)
    return x


def offset(net, x):
    """A mean of small differences between numbers of some 2e4, where fp16 has steps of 16."""
    far = net.constant(np.float32(20000))
    mean = net.node("AveragePool", net.node("Add", x, far), kernel_shape=[3, 3], pads=[1] * 4)
    return net.node("Sub", mean, far)


def make_network(folder, middle, seed=1):
    """1,000 layers; `middle` stands behind the first half of them."""
    net = Net(seed)
    x, done = net.conv("image", 3, CHANNELS, 3), False
    while len(net.nodes) < LAYERS:
        if not done and len(net.nodes) > LAYERS // 2:
            x, done = middle(net, x), True
        if LAYERS - len(net.nodes) >= 5:
            x = block(net, x, int(net.random.choice([1, 3, 5])))
        else:
            x = net.node("Relu", x)
    graph = helper.make_graph(
        net.nodes, "thousand", [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, [1, CHANNELS, SIDE, SIDE])], net.constants)
    assert len(net.nodes) == LAYERS, len(net.nodes)
    path = folder / f"{middle.__name__}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez(folder / f"{middle.__name__}.npz",
             image=net.random.standard_normal((1, 3, SIDE, SIDE)).astype(np.float32))
    return path, folder / f"{middle.__name__}.npz"


def run(assay, model, inputs, target, options, threads, repeat):
    best = None
    for _ in range(repeat):
        command = [assay, "debug", "precision", model, "--precision", "fp16", "--inputs", inputs, "--target", target,
                   "--json", "-", *options]
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([str(c) for c in command], capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr.decode())
        result = json.loads(done.stdout)
        result['user'] = after.ru_utime - before.ru_utime
        if not best or result['user'] < best['user']:
            best = result
    return best


def machine():
    """What kind of CPU it is, without a name of the machine's own."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    return f"{model}, {os.cpu_count()} cores"


def row(name, target, mode, r):
    fix = r["fix"]
    kept = len(fix["nodes"]) if fix else 0
    prefix = fix["prefix"] if fix and fix["prefix"] else ""
    return (f"| {name} | {target} | {mode} | {r['verdict']} | {kept} | {prefix} | {r['runs']} | {r['builds']} | "
            f"{r['user']:.2f} |")


MODES = {"account": [], "bisect": ["--mode", "bisect"], "bisect, rebuild": ["--mode", "bisect", "--rebuild"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--targets", default="cpu,emu")
    a = parser.parse_args()
    lines, faults, ratios = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        nafnet = a.cases / "nafnet_fp16_nan"
        models = [("nafnet (681)", nafnet / "model.onnx", nafnet / "inputs.npz")]
        for middle in (wide_range, offset):
            models.append((f"{middle.__name__} (1,000)", *make_network(folder, middle)))
        for name, model, inputs in models:
            for target in a.targets.split(","):
                got = {}
                for mode, options in MODES.items():
                    got[mode] = run(a.assay, model, inputs, target, options, a.threads, a.repeat)
                    lines.append(row(name, target, mode, got[mode]))
                    print(lines[-1], flush=True)
                account, rebuilt = got["account"], got["bisect, rebuild"]
                ratio = account['user'] / rebuilt['user']
                ratios.append(f"| {name} | {target} | {ratio:.3f} | {account['user'] / got['bisect']['user']:.2f} |")
                where = f"{name} on {target}"
                if account["verdict"] != "fixed" or account["runs"] - account["removals"] > 3 or account["builds"]:
                    faults.append(f"{where}: {account['verdict']} in {account['runs']} runs, {account['builds']} builds")
                if target == "cpu" and ratio > 0.1:
                    faults.append(f"{where}: {ratio:.3f} of the time of bisecting with builds")
                if rebuilt["fix"] and account["fix"] and len(account["fix"]["nodes"]) >= len(rebuilt["fix"]["nodes"]):
                    faults.append(f"{where}: {len(account['fix']['nodes'])} layers, bisecting keeps fewer")
    text = "\n".join([
        "# debug precision", "",
        f"`bench/debug_precision.py ASSAY CASES --repeat {a.repeat} --threads {a.threads}`, {date.today()}; {machine()}; fastest of "
        f"{a.repeat}, user seconds of the whole program.", "",
        "| model | target | mode | verdict | layers kept | prefix | runs | builds | user s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |", *lines, "",
        "Runs are those of the engine; truth is evaluated once, and by parts where nothing passes a range and the error is split "
        "among layers. Layers kept: in fp32; of a prefix, those that make floats.", "",
        "The account's time, as a part of that of bisecting:", "",
        "| model | target | with builds | without |", "| --- | --- | --- | --- |", *ratios, ""])
    print(text)
    if a.results:
        a.results.write_text(text)
    for fault in faults:
        print("FAULT", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
