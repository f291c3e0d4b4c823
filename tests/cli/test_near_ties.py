#!/usr/bin/env python3
"""Steps of quantizers that float32 rounds to the other side: test_near_ties.py ASSAY

A product ends half way between two steps of a quantizer, where the order of float32 sums decides, and what comes after it
shows nothing but that step. Truth and float32 then have nothing in common, and nobody is to blame: check is faithful, and says
near ties. An engine that is off by more than rounding is not excused by it.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

SCALE = np.float32(1 / 64)


def inputs():
    """Rows whose sums of 64 products are half way between two steps, but for rounding."""
    r = np.random.default_rng(2)
    w = r.normal(size=(64, 1)).astype(np.float32)
    rows = []
    while len(rows) < 64:
        x = r.normal(size=64).astype(np.float32)
        steps = int(r.integers(-40, 40)) + 0.5
        x[-1] = np.float32((steps * float(SCALE) - x[:-1].astype(np.float64) @ w[:-1, 0].astype(np.float64)) / float(w[-1, 0]))
        rows.append(x)
    return np.stack(rows), w


def write_model(path, w):
    """y: how far the quantized product is above the one that is rounded down."""
    constants = [nh.from_array(w, "w"), nh.from_array(SCALE, "s"), nh.from_array(np.int8(0), "z"), nh.from_array(np.float32(0.25), "quarter")]
    nodes = [h.make_node("MatMul", ["x", "w"], ["m"], name="product"), h.make_node("QuantizeLinear", ["m", "s", "z"], ["q"], name="quantize"),
             h.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="dequantize"), h.make_node("Div", ["m", "s"], ["t"], name="in_steps"),
             h.make_node("Sub", ["t", "quarter"], ["below"], name="below"), h.make_node("Round", ["below"], ["floor"], name="round"),
             h.make_node("Div", ["d", "s"], ["u"], name="of_steps"), h.make_node("Sub", ["u", "floor"], ["y"], name="step")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 64])], [h.make_tensor_value_info("y", T.FLOAT, ["n", 1])], constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def check(assay, *more):
    done = subprocess.run([assay, "check", "m.onnx", "-i", "x.npz", "--json", "-", *more], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, json.loads(done.stdout)


def main(assay):
    x, w = inputs()
    write_model("m.onnx", w)
    np.savez("x.npz", x=x)
    failures = []
    code, report = check(assay)
    cosine = report["outputs"][0]["cosine"]
    if cosine > 0.999 or not report["near_ties"]["elements"]:
        failures.append(f"no step differs: cosine {cosine}, {report['near_ties']}")
    if code != 0 or report["blame"] != "none" or report["culprits"]:
        failures.append(f"exit code {code}, blame {report['blame']}, {report['culprits']}")
    code, report = check(assay, "--inject", "product:terms=1")
    if code != 1 or report["blame"] != "engine":
        failures.append(f"a wrong product: exit code {code}, blame {report['blame']}")
    print("\n".join(failures) or "2 checks")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
