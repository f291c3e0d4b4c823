#!/usr/bin/env python3
"""How near truth and native mode are to other evaluators, and what they cost; as Markdown.

    bench/truth_figures.py --cases ../shared/cases --zoo FOLDER --out bench/results/truth.md

--cases  folders with model*.onnx, inputs.npz and golden.npz (the original framework in float64)
--zoo    .onnx files of ordinary networks with one float or token input each (../shared/zoo/materialize.py)

Needs the packages of scripts/requirements-test.txt (build/venv/bin/python has them) and a release build. Exit code 1: a
figure misses its limit; those are listed at the end of the file.
"""
import argparse
import datetime
import glob
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from float64_model import join, largest_difference, run_float64, split_samples  # noqa: E402

GOLDEN_LIMIT, REFERENCE_LIMIT, RUNTIME_LIMIT = 3e-7, 1e-12, 1e-4
SECONDS_LIMIT = {"resnet50": 1.0, "bert_base_128": 2.0}
MEMORY_LIMIT = {"bert_base_128": 1.1}

# Why truth of a file is not golden, from its CASE.md. Everything else is healthy.
NOT_GOLDEN = {
    "elu_tf2onnx/model_missing_alpha.onnx": "planted: alpha left out",
    "nafnet_fp16_nan/model_fp16.onnx": "weights stored in fp16",
    "nafnet_fp16_nan/model_fp16_sca_fp32.onnx": "weights stored in fp16",
    "nafnet_fp16_nan/model_fp16_sca_fp32_percast.onnx": "weights stored in fp16",
    "near_zero_rel/model_twin_axis.onnx": "planted: another axis",
    "near_zero_rel/model_twin_eps.onnx": "planted: another epsilon",
    "near_zero_rel/model_twin_swapped.onnx": "planted: constants swapped",
    "sandglass_mish_int8/model_int8_a_nothing_between.onnx": "int8",
    "sandglass_mish_int8/model_int8_b_between.onnx": "int8",
    "sandglass_mish_int8/model_mish_op_int8_a_nothing_between.onnx": "int8",
    "sandglass_mish_int8/model_mish_op_int8_b_between.onnx": "int8",
    "static_batch_broadcast/model_squeeze_dynamic.onnx": "planted: broadcast along another axis",
    "static_batch_broadcast/model_static_b1_squeezed.onnx": "planted: broadcast along another axis",
}
# Weights are fp32 before their QuantizeLinear: without quantization these are the fp32 network again.
UNQUANTIZED = {"sandglass_mish_int8/model_int8_a_nothing_between.onnx", "sandglass_mish_int8/model_int8_b_between.onnx"}
# Right, or able to run, at batch 1 only (CASE.md): samples run one by one.
ONE_BY_ONE = {f"static_batch_broadcast/model_{name}.onnx" for name in ("baked_reshape", "baked_reshape_silent", "squeeze_dynamic")}


# Runs a command and writes its CPU seconds and peak memory into a file. A process of its own, and a small one: Linux
# counts into a child's peak what its parent held when it was forked.
LAUNCHER = """
import os, sys
child = os.fork()
if not child:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as f:
    f.write(f"{usage.ru_utime} {usage.ru_maxrss * 1024}")
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""


class Usage:
    """What a run of the program took and said."""

    def __init__(self, user, peak, text):
        self.user, self.peak, self.text = float(user), int(peak), text
        words = text.split()  # 'loaded in 0.017 s, ran in 0.190 s'
        self.loaded, self.ran = (float(words[words.index(w) + 2]) if w in words else None for w in ("loaded", "ran"))


class Program:
    def __init__(self, path, work, threads):
        self.path, self.work, self.threads = path, work, threads

    def __call__(self, *arguments):
        # Threads that wait sleep: other programs on the machine would else lengthen every parallel loop.
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ, "OMP_NUM_THREADS": str(self.threads)}
        usage = os.path.join(self.work, "usage")
        run = subprocess.run([sys.executable, "-I", "-S", "-c", LAUNCHER, usage, self.path, *arguments], env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode:
            raise RuntimeError(f"{shlex.join(arguments)}: exit code {run.returncode}: {run.stdout.strip()[-300:]}")
        with open(usage) as f:
            return Usage(*f.read().split(), run.stdout)

    def outputs(self, model, arrays, *options):
        inputs, path = os.path.join(self.work, "in.npz"), os.path.join(self.work, "out.npz")
        np.savez(inputs, **arrays)
        self("run", model, "--inputs", inputs, "--save-outputs", path, *options)
        with np.load(path) as z:
            return dict(z)


class Page:
    """The lines of the file, printed as they come, and what missed its limit."""

    def __init__(self):
        self.lines, self.misses = [], []

    def say(self, *lines):
        for line in lines:
            self.lines.append(line)
            print(line, flush=True)

    def head(self, *columns):
        self.say("", "| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns))

    def row(self, *cells):
        self.say("| " + " | ".join(cells) + " |")

    def judge(self, what, value, limit):
        """A cell: the value, in bold where it is over the limit."""
        if value <= limit:
            return f"{value:.1e}"
        self.misses.append(f"{what}: {value:.2e}, limit {limit:g}")
        return f"**{value:.1e}**"


# ---- cases ----------------------------------------------------------------------------------------

def truth_of(program, path, case, arrays, *options):
    count = len(next(iter(arrays.values())))
    parts = [{k: v[i:i + 1] for k, v in arrays.items()} for i in range(count)] if case in ONE_BY_ONE else [arrays]
    runs = [program.outputs(path, part, "--mode", "truth", *options) for part in parts]
    return {name: join([r[name] for r in runs]) for name in runs[0]}, parts


def cases(page, program, folder):
    page.say("", "## Cases: truth against golden and against onnx.reference in float64", "",
             "Each figure is the largest difference of an output over its largest magnitude, over all samples of "
             f"inputs.npz. Limits: golden {GOLDEN_LIMIT:g} on healthy models, onnx.reference {REFERENCE_LIMIT:g}. Golden is the "
             "framework's own network in float64; exporters fold and round constants to fp32.",
             "", "The model that onnx.reference gets (`tests/float64_model.py`) has every stored float widened exactly, "
             "types of constants, Casts and values made float64, nothing else. Quantized models keep their QuantizeLinear and "
             "DequantizeLinear as written, on float64 scales, as truth does. The reference is mended where it leaves float64: "
             "its Erf returns float32 (here math.erf), and float attributes become float64 of the same value; "
             "DequantizeLinear below version 19, which it lacks, is added.")
    page.head("model", "output", "golden", "onnx.reference", "note")
    for path in sorted(glob.glob(os.path.join(folder, "*", "model*.onnx"))):
        home, file = os.path.split(path)
        case = f"{os.path.basename(home)}/{file}"
        model = onnx.load(path)
        with np.load(f"{home}/inputs.npz") as z:
            arrays = {i.name: z[i.name] for i in model.graph.input if i.name in z.files}
        with np.load(f"{home}/golden.npz") as z:
            golden = {o.name: z[o.name] for o in model.graph.output}
        ours, parts = truth_of(program, path, case, arrays)
        runs = [run_float64(model, split_samples(model, part)) for part in parts]
        for name in golden:
            theirs = join([r[name] for r in runs])
            distance = largest_difference(ours[name], golden[name])
            cell = f"{distance:.1e}" if case in NOT_GOLDEN else page.judge(f"{case} '{name}' to golden", distance, GOLDEN_LIMIT)
            reference = page.judge(f"{case} '{name}' to onnx.reference", largest_difference(ours[name], theirs), REFERENCE_LIMIT)
            note = NOT_GOLDEN.get(case, "healthy") + (", samples one by one" if case in ONE_BY_ONE else "")
            page.row(case, name, cell, reference, note)
        if case in UNQUANTIZED:
            plain, _ = truth_of(program, path, case, arrays, "--truth", "unquantized")
            for name in golden:
                cell = page.judge(f"{case} '{name}', unquantized, to golden", largest_difference(plain[name], golden[name]), GOLDEN_LIMIT)
                page.row(case, name, cell, "", "`--truth unquantized`: the fp32 network")


# ---- zoo ------------------------------------------------------------------------------------------

def feed(model):
    """One sample: normal numbers, or tokens."""
    rng, constants = np.random.default_rng(0), {t.name for t in model.graph.initializer}
    arrays = {}
    for i in model.graph.input:
        if i.name not in constants:
            dims = [d.dim_value or 1 for d in i.type.tensor_type.shape.dim]
            tokens = i.type.tensor_type.elem_type == onnx.TensorProto.INT64
            arrays[i.name] = rng.integers(0, 30000, dims) if tokens else rng.standard_normal(dims, dtype=np.float32)
    return arrays


def onnx_runtime(path, arrays, optimize, threads):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, threads
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, arrays)))


def rms_ratio(ours, theirs):
    """RMS of the difference over the RMS of theirs."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape or not np.isfinite(ours).all():
        return float("inf")
    return float(np.sqrt(np.mean((ours - theirs)**2)) / np.sqrt(np.mean(theirs**2)))


def zoo(page, program, paths):
    page.say("", "## Zoo: truth and native mode against ONNX Runtime in fp32", "",
             "RMS of the difference over the RMS of ONNX Runtime's output; one seeded sample. "
             f"off: all its optimizations off; on: as it comes. Limit {RUNTIME_LIMIT:g}.")
    page.head("model", "output", "inferred", "truth, off", "truth, on", "native, off", "native, on")
    for path in paths:
        name, arrays = os.path.basename(path)[:-5], feed(onnx.load(path, load_external_data=False))
        ours = {mode: program.outputs(path, arrays, "--mode", mode) for mode in ("truth", "native")}
        theirs = {word: onnx_runtime(path, arrays, word == "on", program.threads) for word in ("off", "on")}
        shapes = [line.split(" ", 1)[1].strip() for line in program("inspect", "model", path).text.splitlines()
                  if line.startswith("output ")]
        for output, shape in zip(theirs["off"], shapes):
            cells = [page.judge(f"{name} '{output}', {mode} to ONNX Runtime, optimizations {word}",
                                rms_ratio(ours[mode][output], theirs[word][output]), RUNTIME_LIMIT)
                     for mode in ("truth", "native") for word in ("off", "on")]
            page.row(name, output, shape.split("' ", 1)[-1], *cells)


# ---- costs ----------------------------------------------------------------------------------------

def judged_seconds(page, name, value):
    limit = SECONDS_LIMIT.get(name)
    if limit is None:
        return f"{value:.2f}"
    if value >= limit:
        page.misses.append(f"{name}: truth in {value:.2f} s, limit {limit:g} s")
    return f"{'**' if value >= limit else ''}{value:.2f}{'**' if value >= limit else ''} (limit {limit:g})"


def costs(page, program, paths, runs):
    page.say("", "## Costs", "",
             f"`run --mode truth` on {program.threads} threads (OMP_WAIT_POLICY=passive), {runs} runs, the program's own times: reading the model (its weights stay "
             "in the mapped file) and one sample behind it; user: CPU seconds of the whole process. Seconds are of the load "
             "that the machine had. Peak memory is that of the process over the size of the file, libraries and touched "
             "pages of the mapped file included; small files are mostly libraries.")
    page.head("model", "file, MB", "load, s", "truth, s: median", "least", "user, s", "truth: peak / file", "`inspect model`: peak / file")
    for path in paths:
        name, size = os.path.basename(path)[:-5], os.path.getsize(path)
        inputs = os.path.join(program.work, "in.npz")
        np.savez(inputs, **feed(onnx.load(path, load_external_data=False)))
        save = os.path.join(program.work, "out.npz")
        all_runs = [program("run", path, "--mode", "truth", "--inputs", inputs, "--save-outputs", save, "--time") for _ in range(runs)]
        reading = max(program("inspect", "model", path).peak for _ in range(3)) / size
        if reading >= MEMORY_LIMIT.get(name, float("inf")):
            page.misses.append(f"{name}: reading it takes {reading:.2f} times the file, limit {MEMORY_LIMIT[name]}")
        middle = statistics.median(r.ran for r in all_runs)
        page.row(name, f"{size / 1e6:.1f}", f"{statistics.median(r.loaded for r in all_runs):.3f}", judged_seconds(page, name, middle),
                 f"{min(r.ran for r in all_runs):.2f}", f"{statistics.median(r.user for r in all_runs):.2f}",
                 f"{max(r.peak for r in all_runs) / size:.2f}",
                 f"{reading:.2f}" + (f" (limit {MEMORY_LIMIT[name]})" if name in MEMORY_LIMIT else ""))


def machine():
    with open("/proc/cpuinfo") as f:
        fields = dict(line.split(":", 1) for line in f.read().split("\n\n")[0].splitlines() if ":" in line)
    fields = {k.strip(): v.strip() for k, v in fields.items()}
    wide = [w for w in ("avx2", "avx512f", "amx_tile") if w in fields.get("flags", "").split()]
    return (f"{fields.get('model name', platform.processor())} (family {fields.get('cpu family')}, model {fields.get('model')}; "
            f"{' '.join(wide)}), {len(os.sched_getaffinity(0))} cores, {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--zoo", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--assay", default=os.path.join(ROOT, "build/release/src/cli/assay"),
                        help="the program (default: the release build's)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    a = parser.parse_args()
    page = Page()
    paths = sorted(glob.glob(os.path.join(a.zoo, "*.onnx")))
    if not paths or not glob.glob(os.path.join(a.cases, "*", "model*.onnx")):
        parser.error("no models in --zoo or no cases in --cases")
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as work:
        program = Program(a.assay, work, a.threads)
        version = program("--version").text.splitlines()[0]
        page.say("# Truth: figures", "", f"- {datetime.datetime.now():%Y-%m-%d %H:%M}, {machine()}",
                 f"- `bench/truth_figures.py --cases {os.path.basename(os.path.normpath(a.cases))} "
                 f"--zoo {os.path.basename(os.path.normpath(a.zoo))} --threads {a.threads} --runs {a.runs}`",
                 f"- {version} ({commit}), Python {platform.python_version()}, onnx {onnx.__version__}, "
                 f"onnxruntime {onnxruntime.__version__}, numpy {np.__version__}",
                 f"- load average at the start: {os.getloadavg()[0]:.1f}")
        cases(page, program, a.cases)
        zoo(page, program, paths)
        costs(page, program, paths, a.runs)
        page.say("", f"Load average at the end: {os.getloadavg()[0]:.1f}.", "", "## Limits", "",
                 *([f"- missed: {m}" for m in page.misses] or ["All kept."]))
    with open(a.out, "w") as f:
        f.write("\n".join(page.lines) + "\n")
    return 1 if page.misses else 0


if __name__ == "__main__":
    sys.exit(main())
