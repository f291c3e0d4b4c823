#!/usr/bin/env python3
"""Runs test models through the program, beside ONNX Runtime and golden outputs.

    check_models.py ASSAY FOLDER...

A FOLDER holds model.onnx, inputs.npz and perhaps golden.npz (the original framework's outputs). Native
mode agrees with ONNX Runtime (without its rewriting) to 1e-4 of the RMS of each output, truth with
golden to 3e-7 of its largest value; one thread and three give the same bytes; `check` in fp16 and bf16
gives valid JSON.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime


def assay(program, *arguments, threads=2, codes=(0,)):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    run = subprocess.run([program, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode not in codes:
        raise AssertionError(f"{' '.join(arguments)}: exit code {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


def reference(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, {k: v for k, v in inputs.items() if k in wanted})))


def rms(x):
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) if x.size else 0.0


def compare(name, ours, theirs):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, \
        f"{name}: {ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
    if theirs.dtype.kind != "f":
        assert np.array_equal(ours, theirs), f"{name}: {np.sum(ours != theirs)} elements differ"
        return 0.0
    distance, scale = rms(ours.astype(np.float64) - theirs), rms(theirs)
    assert distance <= 1e-4 * scale, f"{name}: RMS difference {distance:.3g} of {scale:.3g}"
    return distance / scale if scale else 0.0


def no_constant(word):
    raise AssertionError(f"{word} in JSON")


def check_model(program, folder, work):
    model, inputs = f"{folder}/model.onnx", f"{folder}/inputs.npz"

    def run(name, *options, threads=2):
        path = f"{work}/{name}.npz"
        assay(program, "run", model, "--inputs", inputs, "--save-outputs", path, *options, threads=threads)
        return path

    native = run("native")
    ours, theirs = np.load(native), reference(model, np.load(inputs))
    assert sorted(ours.files) == sorted(theirs), f"outputs {ours.files} instead of {list(theirs)}"
    worst = max(compare(name, ours[name], theirs[name]) for name in theirs)
    text = f"RMS difference to ONNX Runtime {worst:.1e}"
    if os.path.exists(f"{folder}/golden.npz"):
        truth, golden = np.load(run("truth", "--mode", "truth")), np.load(f"{folder}/golden.npz")
        for name in golden.files:
            distance = np.abs(truth[name] - golden[name]).max() / np.abs(golden[name]).max()
            assert distance <= 3e-7, f"{name}: truth differs from golden by {distance:.3g} of the largest value"
            text += f", truth's to golden {distance:.1e}"
    for options in ((), ("--mode", "truth"), ("--mode", "plan", "--precision", "bf16")):
        one, three = (open(run(f"threads{n}", *options, threads=n), "rb").read() for n in (1, 3))
        assert one == three, f"{' '.join(options)}: one thread and three give different bits"
    verdicts = []
    for precision in ("fp16", "bf16"):
        report = json.loads(assay(program, "check", model, "--inputs", inputs, "--precision", precision, "--json", "-",
                                  "--output-folder", work, codes=(0, 1)), parse_constant=no_constant)
        assert report["schema"] == "assay.check/1" and report["verdict"] in ("faithful", "unfaithful")
        assert {o["name"] for o in report["outputs"]} == set(theirs)
        for key in ("model", "precision", "target", "blame", "culprits", "fix", "layers"):
            assert key in report, f"no '{key}' in the report"
        verdicts.append(f"{precision} {report['verdict']}")
    return f"{text}, {', '.join(verdicts)}"


def main(program, *folders):
    failed = 0
    for folder in folders:
        name = os.path.basename(folder)
        with tempfile.TemporaryDirectory(dir=".") as work:
            try:
                print(f"{name}: {check_model(program, folder, work)}", flush=True)
            except AssertionError as e:
                failed += 1
                print(f"FAIL {name}: {e}", flush=True)
    print(f"{len(folders) - failed} passed, {failed} failed")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
