#!/usr/bin/env python3
"""Golden inner values whose rows are not the batch's: test_golden_rows.py ASSAY

Windows of images are rows of their own (4 for each image), and what is chosen from all rows has as many as were chosen.
A healthy model is faithful with such values, its batch open or given, of one image or three; a fault in the windows is
found. Golden is what onnx's reference evaluator makes.
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

R = np.random.default_rng(21)
C = 8


def array(values):
    return np.array(values, np.int64)


def model(perm=(0, 1, 3, 2, 4, 5)):
    constants = {"w": (R.normal(size=(C, C)) * 0.3).astype(np.float32), "wo": (R.normal(size=(C, 5)) * 0.3).astype(np.float32),
                 "split": array([-1, 2, 4, 2, 4, C]), "rows": array([-1, 16, C]), "back": array([-1, 2, 2, 4, 4, C]),
                 "image": array([-1, 8, 8, C]), "axes": array([1, 2]), "two": array([2]), "zero": array([0]), "one": array([1])}
    nodes = [("Reshape", ["x", "split"], "a", {}), ("Transpose", ["a"], "b", {"perm": list(perm)}),
             ("Reshape", ["b", "rows"], "windows", {}), ("MatMul", ["windows", "w"], "q", {}),
             ("Transpose", ["windows"], "keys", {"perm": [0, 2, 1]}), ("MatMul", ["q", "keys"], "scores", {}),
             ("Softmax", ["scores"], "p", {"axis": -1}), ("MatMul", ["p", "windows"], "o", {}),
             ("Reshape", ["o", "back"], "e", {}), ("Transpose", ["e"], "f", {"perm": [0, 1, 3, 2, 4, 5]}),
             ("Reshape", ["f", "image"], "images", {}), ("Add", ["images", "x"], "sum", {}),
             ("ReduceMean", ["sum", "axes"], "pooled", {"keepdims": 0}), ("MatMul", ["pooled", "wo"], "y", {}),
             # The two images of the largest first score, by a size that follows from nothing.
             ("Slice", ["y", "zero", "one", "one"], "first", {}), ("Reshape", ["first", "minus"], "flat", {}),
             ("TopK", ["flat", "k"], ("best", "at"), {}), ("Gather", ["pooled", "at"], "chosen", {"axis": 0}),
             ("ReduceMax", ["chosen", "zero"], "top", {"keepdims": 0}),
             ("Shape", ["x"], "size", {}), ("Slice", ["size", "zero", "one"], "n", {}), ("Min", ["n", "two"], "k", {})]
    constants["minus"] = array([-1])
    order = nodes[:14] + nodes[19:] + nodes[14:19]
    made = [h.make_node(op, i, [o] if isinstance(o, str) else list(o), name=f"{op}_{k}", **attributes)
            for k, (op, i, o, attributes) in enumerate(order)]
    graph = h.make_graph(made, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 8, 8, C])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["n", 5]), h.make_tensor_value_info("top", T.FLOAT, [C])],
                         [nh.from_array(v, k) for k, v in constants.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)


def main(assay):
    failures = count = 0
    healthy = model()
    onnx.save(healthy, "healthy.onnx")
    faulty = onnx.ModelProto()
    faulty.CopyFrom(healthy)
    faulty.graph.node[6].attribute[0].i = 1  # Softmax over the wrong axis
    onnx.save(faulty, "faulty.onnx")
    for batch in (1, 3, 5):
        x = R.normal(size=(batch, 8, 8, C)).astype(np.float32)
        np.savez("x.npz", x=x)
        np.savez("g.npz", **inner_values(healthy, {"x": x}))
        for name in ("healthy.onnx", "faulty.onnx"):
            for sizes in ([], ["--batch", str(batch)]):
                count += 1
                run = subprocess.run([assay, "check", name, "-i", "x.npz", "--golden", "g.npz", "--json", "-", *sizes],
                                     capture_output=True, text=True, timeout=120, check=False)
                report = json.loads(run.stdout) if run.stdout.startswith("{") else {}
                blamed = [n for culprit in report.get("culprits", []) for n in culprit["nodes"]]
                right = run.returncode == 0 and not blamed if name == "healthy.onnx" else \
                    run.returncode == 1 and blamed[:1] == ["Softmax_6"]
                if not right:
                    failures += 1
                    print(f"batch {batch}, {name} {sizes}: exit code {run.returncode}, blames {blamed}\n{run.stderr}")
    print(f"{count} checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
