#!/usr/bin/env python3
"""Outputs that are what is left of values that cancel: test_ill_conditioned.py ASSAY

No set of layers in fp32 mends them, so no fix is proposed: the model is to blame, the output is named, and what float32 makes
of it is not a fault of the export's. Where another output overflows, its layers are still the fix. What is required of a model
that is not ill-conditioned, and more than fp32 has, is said to be that.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from inner_values import inner_values

R = np.random.default_rng(5)
N = h.make_node
WHOLE = (R.normal(size=(16, 16)) / 4).astype(np.float32)
PART = (R.normal(size=(16, 16)) / 4).astype(np.float32)
X = R.normal(size=(8, 16)).astype(np.float32)
WEIGHTS = {"whole": WHOLE, "part": PART, "rest": WHOLE - PART, "last": np.array([-1]), "one": np.float32(1), "large": np.float32(3e4)}


def model(nodes, outputs):
    used = {i for n in nodes for i in n.input}
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, list(X.shape))],
                         [h.make_tensor_value_info(o, T.FLOAT, s) for o, s in outputs],
                         [nh.from_array(np.asarray(v), k) for k, v in WEIGHTS.items() if k in used])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def parts():
    """A product, less the same product in two parts: 1e-7 of it is left, by the rounding of the weights."""
    return [N("MatMul", ["x", "whole"], ["a"], "product"), N("MatMul", ["x", "part"], ["b"], "one_part"),
            N("MatMul", ["x", "rest"], ["c"], "other_part"), N("Add", ["b", "c"], ["d"], "both"), N("Sub", ["a", "d"], ["y"], "difference")]


def probabilities():
    """What a sum of probabilities is more than 1: truth itself has only its own rounding there."""
    return [N("MatMul", ["x", "whole"], ["a"], "product"), N("Softmax", ["a"], ["p"], "softmax", axis=-1),
            N("ReduceSum", ["p", "last"], ["s"], "sum"), N("Sub", ["s", "one"], ["y"], "excess")]


def center():
    """The mean of what has none."""
    return [N("MatMul", ["x", "whole"], ["a"], "product"), N("ReduceMean", ["a"], ["m"], "mean", axes=[-1]),
            N("Sub", ["a", "m"], ["c"], "centered"), N("ReduceMean", ["c"], ["y"], "mean_again", axes=[-1])]


def beside():
    """The same beside an output that passes float16's range, which a few layers in fp32 mend."""
    return parts() + [N("Mul", ["a", "large"], ["l"], "gain"), N("Mul", ["l", "large"], ["m"], "gain_again"), N("Div", ["m", "large"], ["e"], "back"),
                      N("Div", ["e", "large"], ["z"], "back_again")]


def easy():
    return [N("MatMul", ["x", "whole"], ["a"], "product"), N("Relu", ["a"], ["y"], "relu")]


def run(assay, *words):
    out = subprocess.run([assay, *words], capture_output=True, text=True, timeout=60, check=False)
    assert out.returncode == 1, (words, out.returncode, out.stdout, out.stderr)
    return out.stdout


def check(assay, name, *words):
    words = ("check", name, "-i", "x.npz", *words)
    return run(assay, *words), json.loads(run(assay, *words, "--json", "-"))


def test_alone(assay, make, width):
    made = model(make(), [("y", [8, width])])
    onnx.save(made, "m.onnx")
    values = inner_values(made, {"x": X})
    np.savez("inner.npz", **values)
    np.savez("outputs.npz", y=values["y"])
    for precision in ("fp16", "bf16"):
        for golden in ([], ["--golden", "outputs.npz"], ["--golden", "inner.npz"]):
            text, report = check(assay, "m.onnx", "--precision", precision, *golden)
            assert report["blame"] == "model" and report["fix"] is None, (make.__name__, report["blame"], report["fix"])
            assert report["ill_conditioned"] == ["y"], (make.__name__, report["ill_conditioned"])
            assert "'y' is ill-conditioned, no precision mends it;" in text and "NOT verified" not in text, text
        assert "'y' is ill-conditioned" in run(assay, "debug", "precision", "m.onnx", "-i", "x.npz", "--precision", precision)
    for golden in ("outputs.npz", "inner.npz"):
        _, report = check(assay, "m.onnx", "--precision", "fp32", "--golden", golden)
        assert report["blame"] == "model", (make.__name__, golden, report["blame"])


def test_beside(assay):
    onnx.save(model(beside(), [("y", [8, 16]), ("z", [8, 16])]), "b.onnx")
    for choice in ([], ["--fix", "fewest"]):
        text, report = check(assay, "b.onnx", "--precision", "fp16", *choice)
        fix = report["fix"]
        assert report["blame"] == "precision" and report["ill_conditioned"] == ["y"], (report["blame"], report["ill_conditioned"])
        assert set(fix["nodes"]) <= {"gain", "gain_again", "back", "back_again"}, fix["nodes"]
        assert fix["verified"]["outputs"][1]["snr_db"] > 60 and "note    'y' is ill-conditioned" in text, text
    found = json.loads(run_fixed(assay, "debug", "precision", "b.onnx", "-i", "x.npz", "--precision", "fp16", "--json", "-"))
    assert found["verdict"] == "fixed" and found["ill_conditioned"] == ["y"], found


def run_fixed(assay, *words):
    return subprocess.run([assay, *words], capture_output=True, text=True, timeout=60, check=False).stdout


def test_too_much(assay):
    onnx.save(model(easy(), [("y", [8, 16])]), "e.onnx")
    text, report = check(assay, "e.onnx", "--precision", "fp16", "--require", "snr_db >= 200")
    assert report["blame"] == "precision" and report["fix"] is None and not report["ill_conditioned"], report
    assert "fix     none: not even all layers in fp32 do: 'y': SNR " in text, text


def main(assay):
    np.savez("x.npz", x=X)
    for make, width in ((parts, 16), (probabilities, 1), (center, 1)):
        test_alone(assay, make, width)
    test_beside(assay)
    test_too_much(assay)
    print("5 models")


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main(program)
