#!/usr/bin/env python3
"""Constants solved for: test_solved.py ASSAY

With golden inner values `check` finds what a wrong constant has to be, whatever was done to it, and the repaired model
gives golden's outputs on inputs that took no part. Golden and the outputs are those of onnx's reference evaluator.
"""
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

from inner_values import inner_values

R = np.random.default_rng(3)


def normal(*shape):
    return (R.normal(size=shape) * 0.4).astype(np.float32)


CONSTANTS = {"k": normal(8, 2, 3, 3), "kb": normal(8), "s": 1 + normal(8), "b": normal(8), "m": normal(8), "v": 1 + np.abs(normal(8)),
             "ax": np.array([2, 3], np.int64), "w": normal(8, 16), "wb": normal(16), "ls": 1 + normal(16), "lb": normal(16),
             "g": normal(5, 16), "gb": normal(5), "table": normal(6, 16), "factor": np.array([1.75], np.float32)}


def model(constants):
    nodes = [h.make_node("Conv", ["x", "k", "kb"], ["c"], name="conv", pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2], group=2),
             h.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], name="norm"), h.make_node("Relu", ["n"], ["r"], name="relu"),
             h.make_node("ReduceMean", ["r", "ax"], ["p"], name="pool", keepdims=0), h.make_node("MatMul", ["p", "w"], ["a"], name="product"),
             h.make_node("Add", ["a", "wb"], ["d"], name="bias"), h.make_node("Gather", ["table", "id"], ["e"], name="embedding"),
             h.make_node("Add", ["d", "e"], ["f"], name="sum"), h.make_node("LayerNormalization", ["f", "ls", "lb"], ["l"], name="layer"),
             h.make_node("Constant", [], ["factor"], name="constant", value=nh.from_array(constants["factor"])),
             h.make_node("Mul", ["l", "factor"], ["t"], name="times"), h.make_node("Gemm", ["t", "g", "gb"], ["y"], name="gemm", transB=1)]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", 4, 9, 9]), h.make_tensor_value_info("id", T.INT64, ["N"])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["N", 5])], [nh.from_array(v, k) for k, v in constants.items() if k != "factor"])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)


def as_bf16(a):
    bits = a.view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


def exchanged(a, i, k):
    b = a.copy()
    b[[i, k]] = b[[k, i]]
    return b


C = CONSTANTS
ROWS = [
    # what is wrong with which constant, the node to blame, part of what is said of it
    ("k", exchanged(C["k"], 1, 5), "conv", "36 of 144 elements of 'k'"),
    ("k", (C["k"] + normal(8, 2, 3, 3) * np.float32(0.1)), "conv", "of 144 elements of 'k'"),
    ("kb", np.zeros(8, np.float32), "conv", "8 of 8 elements of 'kb' are 0"),
    ("m", np.zeros(8, np.float32), "norm", "of 8 elements of"),
    ("v", C["v"] + np.float32(0.01), "norm", "of 8 elements of"),
    ("w", as_bf16(C["w"]), "product", "'w' was rounded to bf16"),
    ("w", np.concatenate([C["w"][:, :12], np.zeros((8, 4), np.float32)], 1), "product", "32 of 128 elements of 'w' are 0"),
    ("wb", C["wb"] + normal(16), "bias", "16 of 16 elements of 'wb'"),
    ("table", exchanged(C["table"], 0, 3), "embedding", "32 of 96 elements of 'table'"),
    ("ls", np.ones(16, np.float32), "layer", "16 of 16 elements of 'ls'"),
    ("g", C["g"] + normal(5, 16), "gemm", "80 of 80 elements of 'g'"),
    ("gb", np.zeros(5, np.float32), "gemm", "5 of 5 elements of 'gb' are 0"),
    ("factor", np.array([2.5], np.float32), "constant", "'factor' = 1.75 instead of 2.5"),
]


def inputs(n):
    return {"x": R.normal(size=(n, 4, 9, 9)).astype(np.float32), "id": np.arange(n, dtype=np.int64) % 6}


def main(assay):
    good = model(CONSTANTS)
    given, other = inputs(64), inputs(12)
    np.savez("x.npz", **given)
    made = inner_values(good, given)
    made["factor"] = made["factor"].reshape(())  # a framework has a number where the exporter wrote a vector of one
    np.savez("g.npz", **made)
    want = ReferenceEvaluator(good).run(None, other)[0]
    failures = 0
    for row, (name, value, node, said) in enumerate(ROWS):
        onnx.save(model({**CONSTANTS, name: np.ascontiguousarray(value)}), "m.onnx")
        run = subprocess.run([assay, "check", "m.onnx", "-i", "x.npz", "--golden", "g.npz", "-o", f"fix{row}"], capture_output=True,
                             text=True, timeout=120, check=False)
        wrong = [f"'{part}' is not said" for part in (f"export  {node} (", "constant: ", said, "verified") if part not in run.stdout]
        repaired = glob.glob(f"fix{row}/*.onnx")
        if run.returncode != 1 or len(repaired) != 1:
            wrong.append(f"exit code {run.returncode}, repaired models {repaired}")
        elif not np.abs(ReferenceEvaluator(repaired[0]).run(None, other)[0] - want).max() < 2e-6:
            wrong.append("the repaired model differs")
        if wrong:
            failures += 1
            print(f"row {row}, '{name}': {'; '.join(wrong)}\n{run.stdout}{run.stderr}")
    print(f"{len(ROWS)} constants, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
