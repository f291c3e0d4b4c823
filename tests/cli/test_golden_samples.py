#!/usr/bin/env python3
"""Golden inner values of several samples that differ in shape: test_golden_samples.py ASSAY

Samples with batches or lengths of their own, each with its golden file. A healthy model is faithful, a fault is found where it is
and its repair holds, also where only a later sample shows it; inner values in a file beside them are the first sample's.
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

R = np.random.default_rng(22)
W = (R.normal(size=(6, 5)) * 0.5).astype(np.float32)
V = (R.normal(size=(5, 4)) * 0.5).astype(np.float32)


def model(slope=0.1, declared=True):
    """LeakyRelu's slope shows only where something is negative. declared: shapes are."""
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"], name="first"), h.make_node("LeakyRelu", ["a"], ["b"], name="leaky", alpha=slope),
             h.make_node("MatMul", ["b", "v"], ["c"], name="second"), h.make_node("Tanh", ["c"], ["y"], name="tanh")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", "S", 6] if declared else None)],
                         [h.make_tensor_value_info("y", T.FLOAT, ["N", "S", 4] if declared else None)], [nh.from_array(W, "w"), nh.from_array(V, "v")])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def files(healthy, shapes, hidden=False):
    """A file of inputs and one of golden for each sample. hidden: in the first, all that LeakyRelu reads is positive."""
    inputs, golden = [], []
    for i, shape in enumerate(shapes):
        x = R.normal(size=(*shape, 6)).astype(np.float32)
        if hidden and i == 0:
            x = np.abs(R.normal(size=(*shape, 5))).astype(np.float32) @ np.linalg.pinv(W).astype(np.float32)
        np.savez(f"x{i}.npz", x=x)
        np.savez(f"g{i}.npz", **inner_values(healthy, {"x": x}))
        inputs += ["-i", f"x{i}.npz"]
        golden += ["--golden", f"g{i}.npz"]
    return inputs, golden


def check(assay, *arguments):
    run = subprocess.run([assay, "check", *arguments, "--json", "-"], capture_output=True, text=True, timeout=120, check=False)
    report = json.loads(run.stdout) if run.stdout.startswith("{") else {}
    return run.returncode, [n for culprit in report.get("culprits", []) for n in culprit["nodes"]], run.stdout + run.stderr


SAMPLES = {"batches": [(1, 2), (3, 2)], "the larger first": [(3, 2), (1, 2)], "one divides the other": [(2, 2), (4, 2)],
           "vectors of unknown rank": [(), (), ()], "alike of unknown rank": [(2,), (2,)], "of unknown ranks": [(2, 3), (3,)],
           "three": [(1, 2), (2, 2), (3, 2)], "lengths": [(2, 3), (2, 5)], "both": [(1, 3), (4, 2)], "alike": [(2, 2), (2, 2)]}


def main(assay):
    failures = 0

    def expect(what, ok, text):
        nonlocal failures
        if not ok:
            failures += 1
            print(f"{what}:\n{text}")

    for name, shapes in SAMPLES.items():
        declared = "unknown" not in name
        healthy = model(declared=declared)
        onnx.save(healthy, "healthy.onnx")
        onnx.save(model(0.2, declared), "faulty.onnx")
        inputs, golden = files(healthy, shapes)
        code, blamed, text = check(assay, "healthy.onnx", *inputs, *golden)
        expect(f"{name}, healthy", code == 0 and not blamed, text)
        code, blamed, text = check(assay, "faulty.onnx", *inputs, *golden, "-o", "fixed")
        expect(f"{name}, faulty", code == 1 and blamed == ["leaky"], text)
        code, _, text = check(assay, "fixed/faulty.repaired.onnx", *inputs, *golden)
        expect(f"{name}, repaired", code == 0, text)
        inputs, golden = files(healthy, shapes, hidden=True)
        code, blamed, text = check(assay, "faulty.onnx", *inputs, *golden, "--no-fix")
        expect(f"{name}, shown by a later sample", code == 1 and blamed == ["leaky"], text)
        # Inner values of the first sample in a file of their own.
        for i in range(len(shapes)):
            known = np.load(f"g{i}.npz")
            np.savez(f"y{i}.npz", y=known["y"])
        outputs = [argument.replace("g", "y") if argument.endswith(".npz") else argument for argument in golden]
        code, blamed, text = check(assay, "healthy.onnx", *inputs, *outputs, "--golden-intermediates", "g0.npz")
        expect(f"{name}, inner values of the first", code == 0 and not blamed, text)
        reduce = subprocess.run([assay, "debug", "reduce", "faulty.onnx", *inputs, *golden, "-o", "reduced"], capture_output=True,
                                text=True, timeout=120, check=False)
        kept = [n.name for n in onnx.load("reduced/model.onnx").graph.node] if os.path.exists("reduced/model.onnx") else []
        expect(f"{name}, reduced to {kept}", kept == ["leaky"], reduce.stdout + reduce.stderr)
    print(f"{len(SAMPLES)} kinds of samples, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
