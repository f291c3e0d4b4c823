#!/usr/bin/env python3
"""Golden inner values of another shape, which pass through some nodes before one cannot read them: test_golden_shapes.py ASSAY

Golden takes the place of what a node makes, so that the nodes after it are judged by themselves. Of another shape it may get
through a Relu and not through the MatMul after it, of a model that runs: the check goes on and names the node where the shapes part.
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from inner_values import inner_values

R = np.random.default_rng(23)
# What takes any shape, or many: nodes from the value 'a' [N, 4, 8, 8] on.
TAKE = {"Relu": [("Relu", {})], "Identity": [("Identity", {})], "Mul": [("Mul", {}, "half")], "Tanh of Relu": [("Relu", {}), ("Tanh", {})],
        "Transpose": [("Transpose", {"perm": [0, 1, 3, 2]})], "Softmax": [("Softmax", {"axis": -1})], "Flatten": [("Flatten", {"axis": 1})],
        "Slice": [("Slice", {}, "zero", "three", "one")], "Gather": [("Gather", {"axis": 1}, "picks")], "ReduceMax": [("ReduceMax", {"axes": [1], "keepdims": 1})],
        "Unsqueeze of Relu": [("Relu", {}), ("Unsqueeze", {}, "zero")]}
# What wants the model's own: {} is what the nodes before have made.
READ = {"Reshape": ("Reshape", {}, "sizes"), "MatMul": ("MatMul", {}, "columns"), "Add": ("Add", {}, "row"), "Transpose": ("Transpose", {"perm": None}), "Concat": ("Concat", {"axis": -1}, "side"),
        "Conv": ("Conv", {}, "kernel"), "Gemm": ("Gemm", {}, "columns"), "If": ("If", {}, "row")}
SHAPES = {"channels last": (2, 8, 8, 4), "flat": (2, 256), "larger": (2, 4, 9, 9), "fewer channels": (2, 3, 8, 8), "one more axis": (2, 4, 8, 8, 1),
          "a number": (), "other order": (4, 2, 8, 8)}


def draw(*shape):
    return (R.normal(size=shape) / 2).astype(np.float32)


def model(nodes, outputs, constants):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", 3, 8, 8])],
                         [h.make_tensor_value_info(o, T.FLOAT, None) for o in outputs], [nh.from_array(v, k) for k, v in constants.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8)


def branch(name, op, inputs):
    return h.make_graph([h.make_node(op, inputs, [f"{name}_out"], name=name)], name, [], [h.make_tensor_value_info(f"{name}_out", T.FLOAT, None)])


def build(take, read, x):
    """A model of a Conv, what takes its value and what reads that; None: what is read has not the rank for it."""
    constants = {"w": draw(4, 3, 1, 1), "half": np.float32([0.5]), "zero": np.array([0]), "one": np.array([1]), "three": np.array([3]),
                 "picks": np.array([3, 1]), "yes": np.array(True)}
    nodes, last = [h.make_node("Conv", ["x", "w"], ["a"], name="conv")], "a"
    for i, (op, attributes, *more) in enumerate(TAKE[take]):
        nodes.append(h.make_node(op, [last, *more], [f"t{i}"], name=f"take{i}", **attributes))
        last = f"t{i}"
    shape = inner_values(model(nodes, [last], constants), {"x": x})[last].shape
    constants.update(sizes=np.array([0, -1, shape[-1], 1]), columns=draw(shape[-1], 5), row=draw(*shape[1:]), kernel=draw(5, shape[1], 3, 3))
    op, attributes, *more = READ[read]
    if (op, len(shape)) in (("Conv", 2), ("Conv", 3), ("Conv", 5), ("Gemm", 3), ("Gemm", 4), ("Gemm", 5)):
        return None
    if "perm" in attributes:
        attributes = {"perm": [0, *reversed(range(1, len(shape)))]}
    if "side" in more:
        nodes.append(h.make_node("Shape", [last], ["n"], name="n"))
        nodes.append(h.make_node("ConstantOfShape", ["own"], ["side"], name="zeros"))
        constants["own"] = np.array(shape)
    if op == "If":
        branches = {f"{name}_branch": branch(name, kind, [last, *more]) for name, kind in (("then", "Add"), ("else", "Sub"))}
        made = h.make_node("If", ["yes"], ["z"], name="read", **branches)
    else:
        made = h.make_node(op, [last, *more], ["z"], name="read", **attributes)
    return model([*nodes, made, h.make_node("Tanh", ["z"], ["y"], name="end")], ["y"], constants)


def check(assay, *arguments):
    run = subprocess.run([assay, "check", "m.onnx", "-i", "x.npz", "--golden", "g.npz", "--json", "-", *arguments], capture_output=True, text=True,
                         timeout=120, check=False)
    report = json.loads(run.stdout) if run.stdout.startswith("{") else {}
    return run.returncode, [n for culprit in report.get("culprits", []) for n in culprit["nodes"]], run.stderr


def main(assay):
    failures = count = 0
    x = draw(2, 3, 8, 8)
    np.savez("x.npz", x=x)
    for i, (take, read) in enumerate(itertools.product(TAKE, READ)):
        made = build(take, read, x)
        if not made:
            continue
        onnx.save(made, "m.onnx")
        values = inner_values(made, {"x": x})
        for k, (name, shape) in enumerate(SHAPES.items()):
            if (i + k) % 2:  # of what is alike half is enough
                continue
            # Golden has the output, what is read, or all values beside the one in question.
            known = (["y"], ["y", "z"], list(values))[(i + k) // 2 % 3]
            np.savez("g.npz", **{**{v: values[v] for v in known}, "a": draw(*shape)})
            count += 1
            search = ["--search-time", "1"] if (i + k) % 20 == 0 else ["--no-fix"]
            code, blamed, errors = check(assay, *search)
            if code != 1 or blamed[:1] != ["conv"]:
                failures += 1
                print(f"'a' is {name} of {take}, then {read}; golden has {known}: exit code {code}, blames {blamed}\n{errors}")
    print(f"{count} checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
