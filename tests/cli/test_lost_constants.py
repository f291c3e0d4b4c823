#!/usr/bin/env python3
"""Constants that a format cannot hold are blamed with both ends of the chain, and mended where other numbers do.

    test_lost_constants.py ASSAY

An epsilon that becomes 0, masks and factors that become infinite, a limit that becomes 1: the operation that reads the
constant is the first culprit, the layer where it shows is named, and the model with another number is run by ONNX Runtime.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

LOWEST = -3.4028235e38
SIZE = 16
N = h.make_node


def f32(x):
    return np.asarray(x, np.float32)


def save(path, nodes, constants, inputs, shape):
    graph = h.make_graph(nodes, "lost", [h.make_tensor_value_info(n, T.FLOAT, x.shape) for n, x in inputs.items()],
                         [h.make_tensor_value_info("y", T.FLOAT, shape)], [nh.from_array(f32(v), k) for k, v in constants.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path + ".onnx")
    np.savez(path + ".npz", **inputs)


class Make:
    """One model a method: its nodes, constants, inputs, the shape of its output."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.w = self.rng.normal(size=(SIZE, SIZE)) / 4
        self.x = f32(self.rng.normal(size=(6, SIZE)))

    def epsilon(self, others=0):
        """Rows that are 0 are divided by the root of an epsilon. others: as many norms before it whose rows are not 0."""
        x = self.x.copy()
        nodes, constants, at = [], {"W": self.w, "eps": 1e-12}, "x"
        for i in range(others):
            constants[f"eps{i}"] = 1e-12
            constants[f"b{i}"] = 1 + 0 * self.w[0]
            nodes += [N("Add", [at, f"b{i}"], [f"z{i}"], f"shift{i}"), N("Mul", [f"z{i}"] * 2, [f"q{i}"], f"square{i}"),
                      N("ReduceMean", [f"q{i}"], [f"v{i}"], f"mean{i}", axes=[-1]), N("Add", [f"v{i}", f"eps{i}"], [f"e{i}"], f"add_eps{i}"),
                      N("Sqrt", [f"e{i}"], [f"s{i}"], f"root{i}"), N("Div", [f"z{i}", f"s{i}"], [f"d{i}"], f"divide{i}"),
                      N("Mul", [f"d{i}", at], [f"o{i}"], f"gate{i}")]
            at = f"o{i}"
        x[2] = x[4] = 0
        nodes += [N("MatMul", [at, "W"], ["a"], "proj"), N("Mul", ["a", "a"], ["sq"], "square"), N("ReduceMean", ["sq"], ["v"], "mean", axes=[-1]),
                  N("Add", ["v", "eps"], ["ve"], "add_eps"), N("Sqrt", ["ve"], ["s"], "root"), N("Div", ["a", "s"], ["n"], "divide"),
                  N("MatMul", ["n", "W"], ["y"], "head")]
        return nodes, constants, {"x": x}, [6, SIZE]

    def mask(self, by):
        """Attention in which every key of a query is masked."""
        m = f32(np.triu(np.ones((6, 6)), 1))
        m[3] = 1
        nodes = [N("MatMul", ["x", "W"], ["q"], "q"), N("Transpose", ["x"], ["t"], "t", perm=[1, 0]), N("MatMul", ["q", "t"], ["sc"], "scores")]
        if by == "Where":
            nodes += [N("Greater", ["m", "half"], ["mb"], "gt"), N("Where", ["mb", "big", "sc"], ["ms"], "mask")]
        else:
            nodes += [N("Mul", ["m", "big"], ["bias"], "mask"), N("Add", ["sc", "bias"], ["ms"], "mask_add")]
        nodes += [N("Softmax", ["ms"], ["p"], "softmax", axis=-1), N("MatMul", ["p", "x"], ["y"], "context")]
        return nodes, {"W": self.w, "big": LOWEST, "half": 0.5}, {"x": self.x, "m": m}, [6, SIZE]

    def scale(self):
        """A factor that float16 cannot hold, and that nothing else can stand for."""
        nodes = [N("MatMul", ["x", "W"], ["a"], "proj"), N("Mul", ["a", "small"], ["b"], "down"), N("Mul", ["b", "up"], ["c"], "up_again"),
                 N("MatMul", ["c", "W"], ["y"], "head")]
        return nodes, {"W": self.w, "small": 1e-3, "up": 1e5}, {"x": self.x}, [6, SIZE]

    def limit(self):
        """The logarithm of the rest to 1, which a limit keeps from 0."""
        nodes = [N("MatMul", ["x", "W"], ["a"], "proj"), N("Mul", ["a", "ten"], ["b"], "gain"), N("Sigmoid", ["b"], ["p"], "probability"),
                 N("Clip", ["p", "lo", "hi"], ["c"], "clip"), N("Sub", ["one", "c"], ["d"], "rest"), N("Log", ["d"], ["e"], "log"),
                 N("Mul", ["e", "V"], ["y"], "weigh")]
        return nodes, {"W": self.w, "ten": 10, "lo": 1e-6, "hi": 1 - 1e-6, "one": 1, "V": self.w[0]}, {"x": 2 * self.x}, [6, SIZE]

    def tiny(self):
        """What is squared underflows by itself: the epsilon beside it is not the fault."""
        nodes, constants, inputs, shape = self.epsilon()
        return nodes, constants, {"x": f32(1e-4 * self.x)}, shape


ROWS = [  # the model, the precision, the first culprit and its constant, what it becomes, where it shows, its mended number
    ("epsilon", {}, "fp16", "add_eps", "eps", 0.0, "divide", 2.0 ** -14),
    ("epsilon", {"others": 3}, "fp16", "add_eps", "eps", 0.0, "divide", 2.0 ** -14),
    ("mask", {"by": "Mul"}, "fp16", "mask", "big", "-inf", "softmax", -65504),
    ("mask", {"by": "Where"}, "fp16", "mask", "big", "-inf", "softmax", -65504),
    ("mask", {"by": "Where"}, "bf16", "mask", "big", "-inf", "softmax", -3.3895313892515355e38),
    ("scale", {}, "fp16", "up_again", "up", "inf", "up_again", None),
    ("limit", {}, "fp16", "clip", "hi", 1.0, "log", None),
    ("limit", {}, "bf16", "clip", "hi", 1.0, "log", None),
]


def check(assay, path, *more):
    out = subprocess.run([assay, "check", path + ".onnx", "--inputs", path + ".npz", *more], capture_output=True, text=True)
    assert out.returncode in (0, 1), out.stderr
    return out


def run(path, inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def test_row(assay, folder, row):
    name, options, precision, node, constant, becomes, shows, number = row
    path = os.path.join(folder, "m")
    nodes, constants, inputs, shape = getattr(Make(), name)(**options)
    save(path, nodes, constants, inputs, shape)
    text = check(assay, path, "--precision", precision).stdout
    out = os.path.join(folder, "fix")
    found = json.loads(check(assay, path, "--precision", precision, "-o", out, "--json", "-").stdout)
    first = found["culprits"][0]
    assert found["verdict"] == "unfaithful" and found["blame"] == "precision", found
    assert first["nodes"] == [node], (row, first)
    assert first["constant"]["name"] == constant and first["constant"]["becomes"] == becomes, (row, first)
    assert np.isclose(first["constant"]["from"], constants[constant], rtol=1e-6) and first["constant"]["format"] == precision, (row, first)
    assert first["constant"]["shows"]["layer"] == shows and first["constant"]["shows"]["not_finite"] > 0, (row, first)
    assert f"constant: '{constant}' is " in text and f"          shows in {shows} (" in text, text
    # Layers in fp32 stay the fix; the others are not blamed.
    assert found["fix"]["verified"]["verdict"] == "faithful", found["fix"]
    assert sum(c["constant"] is not None for c in found["culprits"]) == 1, found["culprits"]
    mended = os.path.join(out, "m.mended.onnx")
    if number is None:
        assert found["mended"] is None and not os.path.exists(mended) and "  or  " not in text, (row, found["mended"])
        return
    assert [(c["node"], c["name"]) for c in found["mended"]["changes"]] == [(node, constant)], found["mended"]
    assert found["mended"]["changes"][0]["to"] == number and found["mended"]["file"] == mended, found["mended"]
    assert f"  or      '{constant}' = {number:.6g} instead of " in text, text
    # A mask that is added leaves something of the scores where all are masked: in float32, not in float16.
    rows = [0, 1, 2, 4, 5] if options.get("by") == "Mul" else range(6)
    assert np.allclose(run(mended, inputs)[rows], run(path + ".onnx", inputs)[rows], rtol=1e-3, atol=1e-3), row
    if options.get("by") == "Mul":
        return
    again = subprocess.run([assay, "check", mended, "--inputs", path + ".npz", "--precision", precision], capture_output=True, text=True)
    assert again.returncode == 0 and again.stdout.startswith("FAITHFUL"), again.stdout


def test_not_to_blame(assay, folder):
    """No constant is the first culprit where squares underflow, and nothing is said where no output shows a lost constant."""
    path = os.path.join(folder, "t")
    save(path, *Make().tiny())
    found = json.loads(check(assay, path, "--precision", "fp16", "--json", "-").stdout)
    assert found["culprits"][0]["constant"] is None, found["culprits"]
    assert found["mended"] is None, found["mended"]
    nodes, constants, inputs, shape = Make().epsilon()
    save(path, nodes, constants, {"x": f32(np.random.default_rng(1).normal(size=(6, SIZE)))}, shape)
    found = json.loads(check(assay, path, "--precision", "fp16", "--json", "-").stdout)
    assert found["verdict"] == "faithful" and not found["culprits"] and found["mended"] is None, found


def test_no_fix(assay, folder):
    """Without a search for a fix the account alone tells the constant."""
    path = os.path.join(folder, "n")
    save(path, *Make().mask("Where"))
    found = json.loads(check(assay, path, "--precision", "fp16", "--no-fix", "--json", "-").stdout)
    assert found["culprits"][0]["constant"]["name"] == "big" and found["mended"] is None and found["fix"] is None, found


def main():
    assay = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for i, row in enumerate(ROWS):
            os.mkdir(os.path.join(folder, str(i)))
            test_row(assay, os.path.join(folder, str(i)), row)
        test_not_to_blame(assay, folder)
        test_no_fix(assay, folder)
    print(f"{len(ROWS)} models")


if __name__ == "__main__":
    main()
