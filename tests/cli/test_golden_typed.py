#!/usr/bin/env python3
"""Models whose types are float16, against golden of the float32 network: test_golden_typed.py ASSAY

A converter rounds constants: weights, embeddings, an epsilon of 1e-12 to 0, a mask of -3.4e38 to the lowest number. That is
no fault of the export, with inner values and without; a wrong weight is, and is what is blamed.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from inner_values import inner_values

R = np.random.default_rng(17)
LENGTH, WIDTH, WORDS = 6, 16, 20
WEIGHTS = {"table": R.normal(size=(WORDS, WIDTH)), "wq": R.normal(size=(WIDTH, WIDTH)) / 4, "wk": R.normal(size=(WIDTH, WIDTH)) / 4,
           "wv": R.normal(size=(WIDTH, WIDTH)) / 4, "scale": 1 + 0.2 * R.normal(size=WIDTH)}
LOWEST = np.finfo(np.float32).min


def model(dtype, factor=1.0):
    def constant(name, values):
        clipped = np.clip(values, np.finfo(dtype).min, np.finfo(dtype).max)
        return h.make_node("Constant", [], [name], name=f"constant_{name}", value=nh.from_array(np.asarray(clipped).astype(dtype)))
    causal = np.where(np.tri(LENGTH), 0.0, LOWEST)
    nodes = [constant("mask", causal), constant("eps", 1e-12), constant("tiny", 1e-7), h.make_node("Gather", ["table", "ids"], ["x"], name="embedding"),
             h.make_node("MatMul", ["x", "wq"], ["q"], name="query"), h.make_node("MatMul", ["x", "wk"], ["k"], name="key"),
             h.make_node("Transpose", ["k"], ["kt"], name="turn", perm=[0, 2, 1]), h.make_node("MatMul", ["q", "kt"], ["scores"], name="scores"),
             h.make_node("Add", ["scores", "mask"], ["masked"], name="masked"), h.make_node("Softmax", ["masked"], ["p"], name="softmax"),
             h.make_node("MatMul", ["x", "wv"], ["v"], name="value"), h.make_node("MatMul", ["p", "v"], ["o"], name="mix"),
             h.make_node("Mul", ["o", "o"], ["squares"], name="square"), h.make_node("ReduceMean", ["squares"], ["mean"], name="mean", axes=[-1]),
             h.make_node("Add", ["mean", "eps"], ["safe"], name="safe"), h.make_node("Add", ["safe", "tiny"], ["safer"], name="safer"),
             h.make_node("Sqrt", ["safer"], ["root"], name="root"), h.make_node("Div", ["o", "root"], ["normal"], name="divide"),
             h.make_node("Mul", ["normal", "scale"], ["y"], name="scaled")]
    elem = {np.float32: T.FLOAT, np.float16: T.FLOAT16}[dtype]
    weights = {k: (v * (factor if k == "wv" else 1)).astype(np.float32).astype(dtype) for k, v in WEIGHTS.items()}
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("ids", T.INT64, ["n", LENGTH])],
                         [h.make_tensor_value_info("y", elem, ["n", LENGTH, WIDTH])], [nh.from_array(v, k) for k, v in weights.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def main(assay):
    good = model(np.float32)
    onnx.save(model(np.float16), "healthy.onnx")
    onnx.save(model(np.float16, 1.05), "faulty.onnx")
    ids = R.integers(0, WORDS, size=(4, LENGTH))
    np.savez("ids.npz", ids=ids)
    made = inner_values(good, {"ids": ids})
    np.savez("inner.npz", **made)
    np.savez("outputs.npz", y=made["y"])
    failures = count = 0
    for golden in ("outputs.npz", "inner.npz"):
        for name in ("healthy.onnx", "faulty.onnx"):
            count += 1
            run = subprocess.run([assay, "check", name, "-i", "ids.npz", "--golden", golden], capture_output=True, text=True, timeout=120, check=False)
            blamed = [line.split()[1] for line in run.stdout.splitlines() if line.split()[:1] == ["export"]]
            # A factor of all values is taken out again by the normalization: outputs alone do not show it.
            wrong = name == "faulty.onnx" and golden == "inner.npz"
            if run.returncode != (1 if wrong else 0) or blamed != (["value"] if wrong else []):
                failures += 1
                print(f"check {name} --golden {golden}: exit code {run.returncode}, blames {blamed}\n{run.stdout}{run.stderr}")
    print(f"{count} checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
