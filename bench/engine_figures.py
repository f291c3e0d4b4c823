#!/usr/bin/env python3
"""What the CPU engine promises, measured over models; as Markdown.

    bench/engine_figures.py bits   MODEL... --out FILE [--precision P,P...]
    bench/engine_figures.py memory MODEL... --out FILE [--precision P,P...] [--peers PYTHON]
    bench/engine_figures.py builds MODEL... --out FILE [--precision P,P...]

bits: a plan built for batch 1, one for batch 8, and one for any batch between give the same bits for the same rows: with
1, 2 and 7 threads, from run to run, and each row of a batch as by itself (models whose samples see each other, and those
without an open size, are held to what applies to them). memory: the largest resident size of a process that loads and
runs the model ten times, beside peers' (PYTHON has onnxruntime and openvino). builds: seconds of a build, cold and with
the timing cache that it left, and of loading the plan and running it once. Goes on where it was stopped. Needs a release
build, or ASSAY=PROGRAM. Exit code 1: bits that differ, or a program that failed.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSAY = os.environ.get("ASSAY", os.path.join(ROOT, "build/release/src/cli/assay"))
BATCH = 8


class Failed(Exception):
    pass


def run(*words, **environment):
    """(largest resident size in MB, seconds) of a command."""
    start = time.monotonic()
    child = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, **environment})
    text = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stderr.close()
    if child.returncode:
        raise Failed("%s: exit %d: %s" % (words[1], child.returncode, text.strip()[-200:]))
    return usage.ru_maxrss / 1024, time.monotonic() - start


def inputs_of(model):
    text = subprocess.run([ASSAY, "inspect", "model", model, "--json", "-"], capture_output=True, text=True, check=True)
    return json.loads(text.stdout)["inputs"]


def dims(value, batch):
    return [d if isinstance(d, int) else batch for d in value.get("shape") or []]


def is_open(inputs):
    return any(not isinstance(d, int) for v in inputs for d in v.get("shape") or [])


def shapes(inputs, batch):
    words = []
    for value in inputs:
        if is_open([value]):
            words += ["--shape", "%s=%s" % (value["name"], "x".join(map(str, dims(value, batch))))]
    return words


def profile(inputs):
    words = []
    for value in inputs:
        if is_open([value]):
            words += ["--profile", value["name"] + "=" + ":".join("x".join(map(str, dims(value, n))) for n in (1, 4, BATCH))]
    return words


def draw(value, batch, rng):
    shape, type_ = dims(value, batch), value["elem"]
    if type_ in ("float", "float32", "double", "float64", "float16"):
        return rng.standard_normal(shape).astype({"double": np.float64, "float64": np.float64, "float16": np.float16}.get(type_, np.float32))
    if "mask" in value["name"]:
        return np.ones(shape, np.dtype(type_))
    return rng.integers(0, 100, shape).astype(np.bool_ if type_ == "bool" else np.dtype(type_))


def outputs(plan, arrays, threads, folder, words=()):
    out = os.path.join(folder, "out.npz")
    run(ASSAY, "run", plan, "--inputs", arrays, "-o", out, *words, OMP_NUM_THREADS=str(threads))
    with np.load(out) as z:
        return {k: z[k] for k in z.files}


def same(a, b):
    return a.keys() == b.keys() and all(a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes() for k in a)


def bits(model, precision, options):
    inputs = inputs_of(model)
    rng = np.random.default_rng(5)
    wrong, words = [], ["--precision", precision]
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        many = {v["name"]: draw(v, BATCH, rng) for v in inputs}
        one = {v["name"]: many[v["name"]][:1] if is_open([v]) and dims(v, 1)[0] == 1 else
               draw(v, 1, rng) if is_open([v]) else many[v["name"]] for v in inputs}
        np.savez(path("one.npz"), **one)
        np.savez(path("many.npz"), **many)
        cache = ["--timing-cache", path("times.txt")]
        run(ASSAY, "build", model, *shapes(inputs, 1), *words, *cache, "-o", path("one.plan"))
        first = outputs(path("one.plan"), path("one.npz"), 2, folder)
        held = ["run to run", "1, 2, 7 threads"]
        for threads, what in ((2, "run to run"), (1, "1 thread"), (7, "7 threads")):
            if not same(first, outputs(path("one.plan"), path("one.npz"), threads, folder)):
                wrong.append("other bits: " + what)
        if is_open(inputs):
            held += ["dynamic", "batch %d, static and dynamic" % BATCH]
            run(ASSAY, "build", model, *profile(inputs), *words, *cache, "-o", path("any.plan"))
            run(ASSAY, "build", model, *shapes(inputs, BATCH), *words, *cache, "-o", path("many.plan"))
            if not same(first, outputs(path("any.plan"), path("one.npz"), 2, folder)):
                wrong.append("other bits: dynamic, batch 1")
            whole = outputs(path("many.plan"), path("many.npz"), 2, folder)
            for plan, threads in (("any.plan", 2), ("many.plan", 7), ("many.plan", 1)):
                if not same(whole, outputs(path(plan), path("many.npz"), threads, folder)):
                    wrong.append("other bits: %s, batch %d, %d threads" % (plan[:-5], BATCH, threads))
            rows = [k for k in first if whole[k].ndim and whole[k].shape[0] == BATCH and first[k].shape[0] == 1]
            if rows:
                held.append("row 0 of %d as by itself" % BATCH)
                wrong += ["other bits: row 0 of '%s' by itself" % k for k in rows if whole[k][0].tobytes() != first[k][0].tobytes()]
    return [", ".join(held), "; ".join(wrong) or "none"], bool(wrong)


PEERS = {
    "onnxruntime": """
import sys, numpy as np, onnxruntime as o
s = o.SessionOptions(); s.intra_op_num_threads = 2
m = o.InferenceSession(sys.argv[1], s, providers=["CPUExecutionProvider"])
x = dict(np.load(sys.argv[2]))
for i in range(10): m.run(None, x)
""",
    "openvino": """
import sys, numpy as np, openvino as o
c = o.Core()
m = c.compile_model(sys.argv[1], "CPU", {"INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": sys.argv[3], "PERFORMANCE_HINT": "LATENCY"})
x = dict(np.load(sys.argv[2])); r = m.create_infer_request()
for i in range(10): r.infer(x)
""",
}


def memory(model, precision, options):
    inputs, rng, row = inputs_of(model), np.random.default_rng(5), []
    with tempfile.TemporaryDirectory() as folder:
        arrays, plan = os.path.join(folder, "in.npz"), os.path.join(folder, "model.plan")
        np.savez(arrays, **{v["name"]: draw(v, 1, rng) for v in inputs})
        common = ["--precision", precision, *shapes(inputs, 1)]
        measure = ["--seconds", "0.2", "--warm-up", "0", "--threads", "2"]
        best = float("inf")
        for peer, text in PEERS.items():
            hint = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}[precision]
            size = run(options.peers, "-c", text, model, arrays, hint)[0] if options.peers else float("nan")
            best = min(best, size)
            row.append("%.0f" % size)
        run(ASSAY, "build", model, *common, "-o", plan)
        ours = run(ASSAY, "bench", plan, *measure)[0]
        row += ["%.0f" % ours, "%.0f" % run(ASSAY, "bench", model, *common, *measure)[0], "%.2f" % (best / ours)]
    return row, False


def builds(model, precision, options):
    inputs, row = inputs_of(model), []
    with tempfile.TemporaryDirectory() as folder:
        plan, cache = os.path.join(folder, "model.plan"), os.path.join(folder, "times.txt")
        line = [ASSAY, "build", model, "--precision", precision, *shapes(inputs, 1), "--timing-cache", cache, "-o", plan]
        row.append("%.2f" % run(*line)[1])
        row.append("%.2f" % statistics.median(run(*line)[1] for _ in range(3)))
        row.append("%.0f" % (os.path.getsize(plan) / 1e6))
        row.append("%.3f" % statistics.median(run(ASSAY, "run", plan)[1] for _ in range(3)))
    return row, False


TASKS = {
    "bits": (bits, ["the same bits", "not the same"]),
    "memory": (memory, ["onnxruntime, MB", "openvino, MB", "a plan, MB", "from ONNX, MB", "better peer / a plan"]),
    "builds": (builds, ["cold, s", "with timing cache, s", "plan, MB", "a process that loads it and runs once, s"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--precision", default="fp32,bf16,fp16")
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    function, columns = TASKS[options.task]
    done, failures = "", 0
    if os.path.exists(options.out):
        with open(options.out) as f:
            done = f.read()
    with open(options.out, "a") as f:
        if not done:
            f.write("`bench/engine_figures.py %s`, %s, %s, %d cores\n\n" % (
                options.task, datetime.date.today(), platform.machine(), os.cpu_count()))
            f.write("| model | format | %s |\n|%s\n" % (" | ".join(columns), " --- |" * (len(columns) + 2)))
        for model in options.models:
            name = os.path.basename(model)
            if name == "model.onnx":
                name = os.path.basename(os.path.dirname(os.path.abspath(model)))
            for precision in options.precision.split(","):
                key = "| %s | %s |" % (name, precision)
                if key in done:
                    continue
                try:
                    row, bad = function(model, precision, options)
                except (Failed, OSError, ValueError) as error:
                    row, bad = [str(error)] + [""] * (len(columns) - 1), True
                failures += bad
                f.write("%s %s |\n" % (key, " | ".join(row)))
                f.flush()
                print(key, " | ".join(row), flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
