#!/usr/bin/env python3
"""Models whose declared shapes are wrong: test_declared.py ASSAY

What ONNX Runtime 1.23 loads with a warning is loaded with a line that names the value, once, and what inference says counts:
outputs declared with another shape or none at all, in branches as well, sizes of -1, and "?" for a name. Types that
contradict stay errors.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(5)
W = (R.normal(size=(4, 3, 3, 3)) * 0.2).astype(np.float32)
X = R.normal(size=(2, 3, 8, 8)).astype(np.float32)


def save(name, nodes, inputs, outputs, constants):
    graph = h.make_graph(nodes, "g", inputs, outputs, constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), name)


def value(name, shape, elem=T.FLOAT):
    return h.make_tensor_value_info(name, elem, shape)


def conv(name, declared, given=("N", 3, 8, 8), elem=T.FLOAT):
    """A convolution whose output is declared like that."""
    save(name, [h.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4), h.make_node("Relu", ["c"], ["y"], name="relu")],
         [value("x", given)], [value("y", declared, elem)], [nh.from_array(W, "w")])


def branches(name):
    """The branch that is not taken declares its output with a shape that it does not make."""
    def branch(label, declared):
        return h.make_graph([h.make_node("Relu", ["x"], [label], name=f"make_{label}")], label, [], [value(label, declared)])
    save(name, [h.make_node("If", ["cond"], ["y"], name="if", then_branch=branch("a", ["N", 3, 8, 8]), else_branch=branch("b", [7]))],
         [value("x", ["N", 3, 8, 8])], [value("y", None)], [nh.from_array(np.array(True), "cond")])


def write_models():
    conv("none.onnx", [])
    conv("rank.onnx", ["N", 4, 8])
    conv("size.onnx", ["N", 5, 8, 8])
    conv("minus.onnx", [-1, 4, -1, 8], given=[-1, 3, -1, 8])
    conv("mark.onnx", ["?", 4, "?", "?"], given=["?", 3, "?", "?"])
    conv("right.onnx", ["N", 4, 8, 8])
    conv("type.onnx", ["N", 4, 8, 8], elem=T.INT64)
    branches("branch.onnx")
    np.savez("x.npz", x=X)


ROWS = [
    # model, exit code, what stands in the only line that warns (None: no such line)
    ("none.onnx", 0, "output 'y' is declared as float[], but node 'relu' makes it float[N, 4, 8, 8]"),
    ("rank.onnx", 0, "output 'y' is declared as float[N, 4, 8], but node 'relu' makes it float[N, 4, 8, 8]"),
    ("size.onnx", 0, "output 'y' is declared as float[N, 5, 8, 8], but node 'relu' makes it float[N, 4, 8, 8]"),
    ("minus.onnx", 0, "value 'x': dimension 0 is -1, taken as open"),
    ("mark.onnx", 0, None),
    ("right.onnx", 0, None),
    ("branch.onnx", 0, "output 'b' is declared as float[7]"),
    ("type.onnx", 3, "is declared as int64"),
]


def expected(name):
    if name == "branch.onnx":
        return np.maximum(X, 0)
    padded = np.pad(X.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.maximum(np.einsum("nchwij,kcij->nkhw", windows, W), 0)


def main(assay):
    failures = 0
    write_models()
    for name, code, said in ROWS:
        for call in (["run", name, "-i", "x.npz", "--target", "cpu", "-o", "y.npz"], ["check", name, "-i", "x.npz", "--precision", "fp32"]):
            run = subprocess.run([assay, *call], capture_output=True, text=True, timeout=60, check=False)
            wrong = []
            if run.returncode != code:
                wrong.append(f"exit code {run.returncode}, expected {code}")
            if run.stderr.count(said or "declared as") != (1 if said else 0):
                wrong.append(f"'{said}' is not said once")
            if not wrong and code == 0 and call[0] == "run":
                got, want = np.load("y.npz")["y"], expected(name)
                if got.shape != want.shape or np.abs(got - want).max() > 1e-5:
                    wrong.append("y is not what the nodes make")
            if wrong:
                failures += 1
                print(f"{' '.join(call)}: {'; '.join(wrong)}\n{run.stderr}")
    print(f"{len(ROWS)} models, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
