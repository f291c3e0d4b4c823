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


def rates(name):
    """Branches for inputs of 8 and of 16 numbers, by the value of an input: at 16 the one for 8 cannot run."""
    def branch(label, size):
        nodes = [h.make_node("Reshape", ["x", f"to_{size}"], [f"{label}_r"], name=f"{label}_reshape"),
                 h.make_node("Squeeze", [f"{label}_r", "one"], [label], name=f"{label}_squeeze")]
        return h.make_graph(nodes, label, [], [value(label, None)])
    constants = [nh.from_array(np.array([-1, 8, 1], np.int64), "to_8"), nh.from_array(np.array([-1, 16, 1], np.int64), "to_16"),
                 nh.from_array(np.array([0], np.int64), "one"), nh.from_array(np.array(16, np.int64), "sixteen")]
    save(name, [h.make_node("Equal", ["rate", "sixteen"], ["wide"], name="equal"),
                h.make_node("If", ["wide"], ["y"], name="if", then_branch=branch("a", 16), else_branch=branch("b", 8))],
         [value("x", ["N"]), value("rate", [], T.INT64)], [value("y", None)], constants)


def write_models():
    rates("rates.onnx")
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


def check_branches(assay):
    """A branch that cannot run at the given sizes is warned of, once; it is an error only where it is taken."""
    failures = 0
    x = R.normal(size=32).astype(np.float32)
    for rate in (16, 8):
        np.savez(f"rate{rate}.npz", x=x[:16], rate=np.int64(rate))
    said = "a branch that fails if it is taken"
    build = ["build", "rates.onnx", "--shape", "x=16", "-o", "rates.plan"]
    for call, code, warned in ((["run", "rates.onnx", "-i", "rate16.npz", "--mode", "plan", "-o", "y.npz"], 0, False),
                               ([*build, "--profile", "rate=[16]:[16]:[16]"], 0, True),
                               (["run", "rates.plan", "-i", "rate16.npz", "-o", "y.npz"], 0, False),
                               (["run", "rates.plan", "-i", "rate8.npz"], 3, False)):
        run = subprocess.run([assay, *call], capture_output=True, text=True, timeout=60, check=False)
        wrong = run.returncode != code or run.stderr.count(said) != warned
        wrong |= code == 0 and "y.npz" in call and not np.array_equal(np.load("y.npz")["y"], x[:16, None])
        if wrong:
            failures += 1
            print(f"{' '.join(call)}: exit code {run.returncode}, expected {code}\n{run.stderr}")
    run = subprocess.run([assay, *build, "--seed", "3"], capture_output=True, text=True, timeout=60, check=False)
    if run.returncode == 0 or "--profile 'rate=[V]:[V]:[V]'" not in run.stderr:
        failures += 1
        print(f"what chooses the branch is not said: {run.stderr}")
    return failures


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
    failures += check_branches(assay)
    print(f"{len(ROWS)} models, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
