#!/usr/bin/env python3
"""Golden of models that quantize: test_golden_quantized.py ASSAY

Golden may come from the network before quantization, or from one that quantizes as the model does (quantization-aware
training, the model run elsewhere). Either is faithful, with outputs only and with inner values, and the report says which
it was. A fault of the export is still found where golden quantizes, and nothing else is blamed.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(11)
SIZES = [12, 32, 24, 10]
WEIGHTS = [(R.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32) for a, b in zip(SIZES, SIZES[1:])]
X = R.normal(size=(64, SIZES[0])).astype(np.float32)


def scales(i):
    """Of the activation, of the weight for each output, and the activation's zero point."""
    return np.float32(0.021 * (i + 1)), (np.abs(WEIGHTS[i]).max(axis=0) / 127).astype(np.float32), np.uint8(128 if i == 0 else 3)


def write_model(path, weights):
    nodes, constants = [], []
    at = "x"
    for i, w in enumerate(weights):
        s, ws, z = scales(i)
        constants += [nh.from_array(w, f"w{i}"), nh.from_array(s, f"s{i}"), nh.from_array(ws, f"ws{i}"), nh.from_array(z, f"z{i}"),
                      nh.from_array(np.zeros(len(ws), np.int8), f"wz{i}")]
        nodes += [h.make_node("QuantizeLinear", [at, f"s{i}", f"z{i}"], [f"q{i}"], name=f"quantize{i}"),
                  h.make_node("DequantizeLinear", [f"q{i}", f"s{i}", f"z{i}"], [f"d{i}"], name=f"dequantize{i}"),
                  h.make_node("QuantizeLinear", [f"w{i}", f"ws{i}", f"wz{i}"], [f"wq{i}"], name=f"quantize_w{i}", axis=1),
                  h.make_node("DequantizeLinear", [f"wq{i}", f"ws{i}", f"wz{i}"], [f"wd{i}"], name=f"dequantize_w{i}", axis=1),
                  h.make_node("MatMul", [f"d{i}", f"wd{i}"], [f"m{i}"], name=f"product{i}")]
        at = f"m{i}"
        if i + 1 < len(weights):
            nodes.append(h.make_node("Relu", [at], [f"r{i}"], name=f"relu{i}"))
            at = f"r{i}"
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", SIZES[0]])],
                         [h.make_tensor_value_info(at, T.FLOAT, ["n", SIZES[-1]])], constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)
    return at


def values(quantizes):
    """What float32 arithmetic makes of the values, from the formulas of QuantizeLinear and DequantizeLinear."""
    made, x = {}, X
    for i, w in enumerate(WEIGHTS):
        s, ws, z = scales(i)
        if quantizes:
            made[f"q{i}"] = np.clip(np.rint(x / s) + np.float32(z), 0, 255).astype(np.uint8)
            made[f"d{i}"] = (made[f"q{i}"].astype(np.float32) - np.float32(z)) * s
            made[f"wq{i}"] = np.clip(np.rint(w / ws), -128, 127).astype(np.int8)
            made[f"wd{i}"] = made[f"wq{i}"].astype(np.float32) * ws
            x, w = made[f"d{i}"], made[f"wd{i}"]
        made[f"m{i}"] = x = x @ w
        if i + 1 < len(WEIGHTS):
            made[f"r{i}"] = x = np.maximum(x, 0)
    return made


def check(assay, model, golden, samples):
    inputs = [word for k in range(samples) for word in ("-i", f"x{samples}_{k}.npz")]
    run = subprocess.run([assay, "check", model, *inputs, "--golden", golden, "--json", "-"], capture_output=True, text=True, timeout=120,
                         check=False)
    report = json.loads(run.stdout) if run.stdout.startswith("{") else {}
    return run, report


def main(assay):
    output = write_model("m.onnx", WEIGHTS)
    stale = [w.copy() for w in WEIGHTS]
    stale[1][:, 5] *= np.float32(1.5)
    write_model("stale.onnx", stale)
    for samples in (1, 4):
        for k, rows in enumerate(np.split(X, samples)):
            np.savez(f"x{samples}_{k}.npz", x=rows)
    for quantizes in (True, False):
        made = values(quantizes)
        np.savez(f"outputs{int(quantizes)}.npz", **{output: made[output]})
        np.savez(f"inner{int(quantizes)}.npz", **made)
    failures = 0
    rows = [("m.onnx", "outputs1.npz", 1, True, True), ("m.onnx", "inner1.npz", 1, True, True), ("m.onnx", "outputs0.npz", 1, True, False),
            ("m.onnx", "inner0.npz", 1, True, False), ("stale.onnx", "inner1.npz", 1, False, True), ("m.onnx", "outputs1.npz", 4, True, True),
            ("m.onnx", "outputs0.npz", 4, True, False)]
    for model, golden, samples, faithful, quantized in rows:
        run, report = check(assay, model, golden, samples)
        wrong = []
        if run.returncode != (0 if faithful else 1):
            wrong.append(f"exit code {run.returncode}")
        if report.get("export", {}).get("golden_quantized") != quantized:
            wrong.append("golden is taken for the other kind")
        blamed = {node for culprit in report.get("culprits", []) for node in culprit["nodes"]}
        if not faithful and (not blamed or blamed - {"quantize_w1", "dequantize_w1"}):
            wrong.append(f"blames {sorted(blamed)}")
        if wrong:
            failures += 1
            print(f"check {model} --golden {golden}, {samples} samples: {'; '.join(wrong)}\n{run.stdout[:3000]}{run.stderr}")
    print(f"{len(rows)} checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
