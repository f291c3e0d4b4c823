#!/usr/bin/env python3
"""Weights of which one sample does not tell everything: test_solved_weights.py ASSAY

A layer was exported with weights that are not those of training, and golden has inner values of one sample of so few rows that these alone do not
determine the weight. What it was made of does (a filter before its mean was taken off, an adapter beside it, a mask that is lost), or the outputs of
the other samples. `check` verifies a repair, which gives golden's outputs on inputs that took no part. Of noise in a weight, with one sample and no
others, nothing is claimed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

from inner_values import inner_values

R = np.random.default_rng(5)


def f32(*shape):
    return R.normal(size=shape).astype(np.float32)


TOKENS, ROW, IMAGE = [1, 6, 12], [1, 12], [1, 6, 5, 5]
MATMUL = [("Tanh", ["x"], "t"), ("MatMul", ["t", "w"], "m"), ("Softplus", ["m"], "s"), ("MatMul", ["s", "v"], "y")]
ATTENTION = [("MatMul", ["x", "q"], "query"), ("MatMul", ["x", "w"], "key"), ("Transpose", ["key"], "turned"), ("MatMul", ["query", "turned"], "scores"), ("Softmax", ["scores"], "p"),
             ("MatMul", ["p", "x"], "mixed"), ("MatMul", ["mixed", "v"], "y")]
CONV = [("Conv", ["x", "k"], "c"), ("Tanh", ["c"], "y")]
W, BESIDE, K = f32(12, 12), f32(12, 12), f32(6, 6, 3, 3)
MADE = np.tril(np.ones((12, 12), np.float32))
STANDARD = (K - K.mean((1, 2, 3), keepdims=True)) / K.std((1, 2, 3), keepdims=True)
# what it is: nodes, shape of an input, the right weight, the wrong one, constants besides, part of what is said
ROWS = {
    "filters as learned": (CONV, IMAGE, {"k": STANDARD}, {"k": K}, "in each channel itself times a number"),
    "an adapter beside it": (MATMUL, TOKENS, {"w": (W + np.float32(0.25) * BESIDE)}, {"w": W, "beside": BESIDE}, "a sum of itself and 'beside'"),
    "a matrix made symmetric": (MATMUL, TOKENS, {"w": (W + W.T) / 2}, {"w": W}, "itself transposed"),
    "a mask of directions": (MATMUL, ROW, {"w": W * MADE}, {"w": W}, "a mask is lost"),
    "signs": (MATMUL, TOKENS, {"w": W}, {"w": np.abs(W)}, "of the other sign"),
    "another layer's": (MATMUL, TOKENS, {"w": W}, {"w": f32(12, 12)}, "other numbers in 144"),
    "keys of another layer": (ATTENTION, [1, 9, 12], {"w": W / 4}, {"w": f32(12, 12) / 4}, "other numbers in 144"),
}
OTHERS = {"v": f32(12, 12), "q": f32(12, 12) / 4}


def model(nodes, shape, constants):
    used = {v for _, inputs, _ in nodes for v in inputs} | {"beside"}
    values = {k: v.astype(np.float32) for k, v in {**OTHERS, **constants}.items() if k in used}
    attributes = {"Transpose": {"perm": [0, 2, 1]}}
    graph = h.make_graph([h.make_node(op, inputs, [o], name=f"{o}_node", **attributes.get(op, {})) for op, inputs, o in nodes], "g",
                         [h.make_tensor_value_info("x", T.FLOAT, shape)], [h.make_tensor_value_info("y", T.FLOAT, None)], [nh.from_array(v, k) for k, v in values.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)


def check(assay, name, row, samples=4):
    nodes, shape, right, wrong, says = row
    good = model(nodes, shape, right)
    for part in ("ins", "golds", "fix"):
        shutil.rmtree(part, ignore_errors=True)
        pathlib.Path(part).mkdir()
    for i in range(samples):
        x = {"x": f32(*shape)}
        values = inner_values(good, x)
        np.savez(f"ins/{i}.npz", **x)
        np.savez(f"golds/{i}.npz", y=values["y"])
        if i == 0:
            np.savez("inner.npz", **values)
    onnx.save(model(nodes, shape, wrong), "m.onnx")
    line = [assay, "check", "m.onnx", "-i", "ins", "-g", "golds", "--golden-intermediates", "inner.npz", "-o", "fix", "--search-time", "30"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    said = "verified: its truth" in done.stdout
    if not says:
        return [f"{name}: a repair is claimed:\n{done.stdout}"] if said else []
    if not said or says not in done.stdout:
        return [f"{name}: not as expected ('{says}'):\n{done.stdout}{done.stderr}"]
    unseen = {"x": f32(*shape)}
    got, want = (ReferenceEvaluator(m).run(None, unseen)[0] for m in (onnx.load("fix/m.repaired.onnx"), good))
    if np.abs(got - want).max() > 1e-4 * np.abs(want).max():
        return [f"{name}: the repaired model differs where it was not checked:\n{done.stdout}"]
    return []


def main(assay):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, row in ROWS.items():
            faults += check(assay, name, row)
        faults += check(assay, "noise", (MATMUL, ROW, {"w": W}, {"w": W + 0.3 * f32(12, 12)}, ""), samples=2)
    print("\n".join(faults) or f"{len(ROWS)} weights solved")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
