#!/usr/bin/env python3
"""Scales and zero points that are wrong: test_solved_quantizer.py ASSAY

With golden inner values of a network that quantizes, `check` finds the number that a scale or a zero point has to be, and the repaired model gives
golden on inputs that took no part. And a Relu that an exporter dropped in front of a quantizer from 0 on is not a fault, though its name went to the
value before it.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

from inner_values import inner_values

R = np.random.default_rng(17)
W = [(R.normal(size=s) * 0.5).astype(np.float32) for s in ((8, 3, 3, 3), (8, 8, 1, 1), (8, 6))]
CONSTANTS = {"sx": np.float32(0.03), "zx": np.uint8(121), "s1": np.float32(0.041), "z1": np.uint8(0), "s2": np.float32(0.07), "z2": np.int8(-3),
             **{f"w{i}": np.clip(np.rint(w / (np.abs(w).max() / 127)), -127, 127).astype(np.int8) for i, w in enumerate(W)},
             "sw0": (np.abs(W[0]).max() / 127 * (1 + 0.1 * np.arange(8))).astype(np.float32), "zw0": np.zeros(8, np.int8),
             "sw1": np.float32(np.abs(W[1]).max() / 127), "zw1": np.int8(0), "sw2": np.float32(np.abs(W[2]).max() / 127), "zw2": np.int8(0),
             "axes": np.array([2, 3], np.int64)}


def model(quantizes=True, relu=True, **changed):
    nodes = []

    def pair(x, s, z):
        if not quantizes:
            return x
        nodes.append(h.make_node("QuantizeLinear", [x, s, z], [x + "_q"], name=x + "_quantize"))
        nodes.append(h.make_node("DequantizeLinear", [x + "_q", s, z], [x + "_d"], name=x + "_dequantize"))
        return x + "_d"

    def weight(i):
        nodes.append(h.make_node("DequantizeLinear", [f"w{i}", f"sw{i}", f"zw{i}"], [f"wd{i}"], name=f"weight{i}", axis=0))
        return f"wd{i}"

    at = pair("x", "sx", "zx")
    nodes.append(h.make_node("Conv", [at, weight(0)], ["c" if relu else "r"], name="conv", pads=[1, 1, 1, 1]))
    if relu:
        nodes.append(h.make_node("Relu", ["c"], ["r"], name="relu"))
    at = pair("r", "s1", "z1")
    nodes.append(h.make_node("Conv", [at, weight(1)], ["p"], name="point"))
    at = pair("p", "s2", "z2")
    nodes.append(h.make_node("ReduceMean", [at, "axes"], ["m"], name="pool", keepdims=0))
    nodes.append(h.make_node("MatMul", ["m", weight(2)], ["y"], name="product"))
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", 3, 6, 6])], [h.make_tensor_value_info("y", T.FLOAT, ["N", 6])],
                         [nh.from_array(np.asarray(v), k) for k, v in {**CONSTANTS, **changed}.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 19)], ir_version=9)


SCALED = CONSTANTS["sw0"].copy()
SCALED[[1, 6]] *= np.float32(1.5)
ROWS = [
    # what is changed, the node to blame, part of what is said
    ({"sx": np.float32(0.18)}, "x_quantize", "'sx' = 0.03"),
    ({"s1": np.float32(0.0205)}, "r_quantize", "'s1' = 0.041"),
    ({"z2": np.int8(40)}, "p_quantize", "zero point -3 instead of 40"),
    ({"zx": np.uint8(0)}, "x_quantize", "zero point 121 instead of 0"),
    ({"sw0": SCALED}, "weight0", "'sw0'"),
    ({"zw1": np.int8(5)}, "weight1", ""),
]


def inputs(n):
    return {"x": R.normal(size=(n, 3, 6, 6)).astype(np.float32)}


def run(assay):
    return subprocess.run([assay, "check", "m.onnx", "-i", "in.npz", "-g", "golden.npz", "-o", "fix"], capture_output=True, text=True, check=False)


def main(assay):
    seen, unseen = inputs(8), inputs(4)
    want = ReferenceEvaluator(model()).run(None, unseen)[0]
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        np.savez("in.npz", **seen)
        np.savez("golden.npz", **inner_values(model(), seen))
        for changed, blamed, says in ROWS:
            onnx.save(model(**changed), "m.onnx")
            done = run(assay)
            first = next((line for line in done.stdout.splitlines() if line.lstrip().startswith("export")), "")
            if f" {blamed} " not in first or says not in done.stdout or "verified: its truth" not in done.stdout:
                faults.append(f"{changed}: {blamed}, '{says}' expected:\n{done.stdout}{done.stderr}")
                continue
            got = ReferenceEvaluator(onnx.load("fix/m.repaired.onnx")).run(None, unseen)[0]
            if np.abs(got - want).max() > 1e-2 * np.abs(want).max():
                faults.append(f"{changed}: the repaired model is {np.abs(got - want).max():.3g} off where it was not checked:\n{done.stdout}")
        # The float network's own values beside a model without its Relu.
        np.savez("golden.npz", **inner_values(model(quantizes=False), seen))
        onnx.save(model(relu=False), "m.onnx")
        done = run(assay)
        if done.returncode != 0 or "FAITHFUL" not in done.stdout:
            faults.append(f"a dropped Relu is taken for a fault:\n{done.stdout}{done.stderr}")
        # Where golden has something below 0 there, the value is held against all of it.
        golden = inner_values(model(quantizes=False, relu=False), seen)
        golden["r"] = golden["r"] * 1.5
        np.savez("golden.npz", **golden)
        done = run(assay)
        if done.returncode != 1 or "the export is to blame" not in done.stdout:
            faults.append(f"another convolution is not found:\n{done.stdout}{done.stderr}")
    print("\n".join(faults) or f"{len(ROWS)} quantizers solved for")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
