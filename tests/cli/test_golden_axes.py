#!/usr/bin/env python3
"""Inputs and golden that were saved without axes of one: test_golden_axes.py ASSAY

numpy.squeeze before saving, of inputs, outputs and inner values, sample by sample and of all samples in one array, with a batch that is fixed,
open or named: nothing is wrong with such a model, and a line says how arrays are read. Where two ways of putting axes in give two shapes,
other arrays tell, or it stays an error; so does another number of elements. Golden in which other arrays have their axes of one shows a
layer that lost one; wrong numbers in a squeezed array are a fault.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(3)
SAMPLES = 3
C = {"w": R.normal(size=(5, 7)).astype(np.float32), "v": R.normal(size=(7, 4)).astype(np.float32), "axis": np.array([1], np.int64), "last": np.array([2], np.int64)}


def save(path, batch, middle=1, keepdims=1, **other):
    """x [batch, middle, 5] -> tanh(x w) v [batch, middle, 4], its largest number along the last axis."""
    nodes = [h.make_node("MatMul", ["x", "w"], ["wide"], "first"), h.make_node("Tanh", ["wide"], ["turned"], "tanh"),
             h.make_node("MatMul", ["turned", "v"], ["scores"], "second"), h.make_node("ReduceMax", ["scores"], ["best"], "largest", axes=[2], keepdims=keepdims)]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [batch, middle, 5])],
                         [h.make_tensor_value_info("scores", T.FLOAT, [batch, middle, 4]), h.make_tensor_value_info("best", T.FLOAT, None)],
                         [nh.from_array(a, k) for k, a in {**C, **other}.items() if k in "wv"])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def values(x):
    wide = x @ C["w"]
    turned = np.tanh(wide)
    scores = turned @ C["v"]
    return {"wide": wide, "turned": turned, "scores": scores, "best": scores.max(axis=2, keepdims=True)}


def check(assay, batch, xs, golden, inner=None, joined=False, model=None):
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *p: os.path.join(folder, *p)
        save(at("model.onnx"), batch, **(model or {}))
        os.makedirs(at("i")), os.makedirs(at("g"))
        if joined:
            np.savez(at("i", "0.npz"), x=np.stack(xs))
            np.savez(at("g", "0.npz"), **{k: np.stack([g[k] for g in golden]) for k in golden[0]})
        for k in range(0 if joined else len(xs)):
            np.savez(at("i", f"{k}.npz"), x=xs[k])
            np.savez(at("g", f"{k}.npz"), **golden[k])
        if inner:
            np.savez(at("inner.npz"), **inner)
        line = [assay, "check", at("model.onnx"), "-i", at("i"), "-g", at("g"), "--search-time", "2", "--json", at("out.json")]
        done = subprocess.run(line + (["--golden-intermediates", at("inner.npz")] if inner else []), capture_output=True, text=True)
        report = json.load(open(at("out.json"), encoding="utf-8")) if os.path.exists(at("out.json")) else {}
        return report, done.stdout + done.stderr


def main():
    assay, wrong = sys.argv[1], []

    def look(what, verdict, text, *args, node=None, **how):
        report, said = check(assay, *args, **how)
        first = (report.get("culprits") or [{}])[0].get("nodes", [None])[0]
        if report.get("verdict") != verdict or text not in said or (node and first != node):
            wrong.append(f"{what}: {report.get('verdict')}, {first}, wanted {verdict}, {node}, '{text}'\n{said}")

    squeezed = lambda values: {k: np.squeeze(v) for k, v in values.items()}
    outputs = lambda values: {k: values[k] for k in ("scores", "best")}
    xs = [R.normal(size=(1, 1, 5)).astype(np.float32) for _ in range(SAMPLES)]
    all_values = [values(x) for x in xs]
    golden = [squeezed(outputs(v)) for v in all_values]
    for batch in (1, "n", None):
        for inner in (None, squeezed({k: all_values[0][k] for k in ("wide", "turned")})):
            look(f"batch {batch}, inner {bool(inner)}", "faithful", "saved without axes of 1", batch, [np.squeeze(x) for x in xs], golden, inner)
    look("all samples in one array", "faithful", "saved without axes of 1", 1, [np.squeeze(x) for x in xs], golden, joined=True)
    # A batch of four: the axis of one is in the middle, and last of 'best'.
    rows = [R.normal(size=(4, 1, 5)).astype(np.float32) for _ in range(SAMPLES)]
    many = [values(x) for x in rows]
    for batch in (4, "n"):
        for inner in (None, squeezed({k: many[0][k] for k in ("wide", "turned")})):
            look(f"batch {batch} of four, inner {bool(inner)}", "faithful", "read as [4, 1, 5]", batch, [np.squeeze(x) for x in rows], [squeezed(outputs(v)) for v in many], inner)
    # Of two open dimensions either may be the one.
    look("two ways", None, "the model wants", "n", [np.squeeze(x) for x in rows], [outputs(v) for v in many], model={"middle": "m"})
    look("another number of elements", None, "the model wants", 1, [np.squeeze(x)[:4] for x in xs], golden)
    # Faults: numbers, of outputs and inner values; an axis that golden has and the model lost.
    scaled = {"v": (C["v"] * np.where(np.arange(4) == 2, 1.2, 1)).astype(np.float32)}
    inner = squeezed({k: all_values[0][k] for k in ("wide", "turned")})
    look("scaled column", "unfaithful", "", 1, [np.squeeze(x) for x in xs], golden, model=scaled)
    look("scaled column, inner values", "unfaithful", "", 1, [np.squeeze(x) for x in xs], golden, inner, model=scaled, node="second")
    look("lost axis", "unfaithful", "another shape than golden", 4, rows, [outputs(v) for v in many], model={"keepdims": 0}, node="largest")
    print("\n".join(wrong) if wrong else "axes of one are put in")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
