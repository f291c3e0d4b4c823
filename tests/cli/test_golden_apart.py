#!/usr/bin/env python3
"""Inner values that are not quite what was computed from them: test_golden_apart.py ASSAY

Each value out of a run of its own, with its sums in an order of its own, as on a GPU whose sums are atomic; where two of them
cancel, that shows. Half precision whose kernels do several nodes at once and keep float32 between, while what is stored is
rounded: a cosine of a large angle shows it. Neither is a fault of the export. Faults of these models that are larger are found
where they are.
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


def save(path, nodes, constants, x, outputs, type):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", type, list(x.shape))], [h.make_tensor_value_info(o, type, None) for o in outputs],
                         [nh.from_array(v, k) for k, v in constants.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def check(assay, nodes, constants, x, golden, outputs, type=T.FLOAT):
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        save(at("model.onnx"), nodes, constants, x, outputs, type)
        np.savez(at("x.npz"), x=x)
        np.savez(at("golden.npz"), **{k: golden[k] for k in outputs})
        np.savez(at("inner.npz"), **{k: v for k, v in golden.items() if k not in outputs})
        done = subprocess.run([assay, "check", at("model.onnx"), "-i", at("x.npz"), "-g", at("golden.npz"), "--golden-intermediates", at("inner.npz"),
                               "--search-time", "3", "--json", at("out.json")], capture_output=True, text=True)
        with open(at("out.json"), encoding="utf-8") as f:
            return json.load(f), done.stdout + done.stderr


# ---- a run for each value ----

INNER, WIDTH = 64, 96


def gap_constants():
    w = R.normal(size=(INNER, WIDTH)).astype(np.float32)
    return {"w": w, "u": (w + 0.02 * R.normal(size=w.shape)).astype(np.float32), "floor": np.float32(0.7), "k": np.float32(10)}


def gap_nodes():
    return [h.make_node("MatMul", ["x", "w"], ["near"], "near"), h.make_node("MatMul", ["x", "u"], ["far"], "far"),
            h.make_node("Sub", ["near", "far"], ["gap"], "gap"), h.make_node("Abs", ["gap"], ["size"], "size"),
            h.make_node("Add", ["size", "floor"], ["above"], "above"), h.make_node("Div", ["k", "above"], ["depth"], "depth"),
            h.make_node("Concat", ["x", "gap"], ["both"], "both", axis=1), h.make_node("Sigmoid", ["both"], ["y"], "y")]


def product(x, w, order):
    """In float32, term by term."""
    y = np.zeros((len(x), w.shape[1]), np.float32)
    for k in order:
        y += x[:, k:k + 1] * w[k]
    return y


def gap_run(x, c):
    v = {"near": product(x, c["w"], R.permutation(INNER)), "far": product(x, c["u"], R.permutation(INNER))}
    v["gap"] = v["near"] - v["far"]
    v["size"] = np.abs(v["gap"])
    v["above"] = v["size"] + c["floor"]
    v["depth"] = c["k"] / v["above"]
    v["both"] = np.concatenate([x, v["gap"]], axis=1)
    v["y"] = (1 / (1 + np.exp(-v["both"].astype(np.float64)))).astype(np.float32)
    return v


def gap_values(x, c):
    return {k: gap_run(x, c)[k] for k in gap_run(x, c)}


# ---- half precision, float32 between ----

def turn_constants():
    half = lambda a: np.asarray(a, np.float16)
    return {"thousand": half(1000), "f": half(np.exp(-np.log(1e4) * np.arange(8) / 8)), "w": half(R.normal(size=(16, 12)) / 4), "b": half(R.normal(size=12))}


def turn_nodes(turn="Cos"):
    return [h.make_node("Mul", ["x", "thousand"], ["t"], "t"), h.make_node("Mul", ["t", "f"], ["angle"], "angle"), h.make_node(turn, ["angle"], ["cos"], "cos"),
            h.make_node("Sin", ["angle"], ["sin"], "sin"), h.make_node("Concat", ["cos", "sin"], ["turned"], "turned", axis=1),
            h.make_node("MatMul", ["turned", "w"], ["dot"], "dot"), h.make_node("Add", ["dot", "b"], ["y"], "y")]


def turn_values(x, c, scale=1):
    wide = {k: v.astype(np.float32) for k, v in c.items()}
    v = {"t": x.astype(np.float32) * wide["thousand"]}
    v["angle"] = v["t"] * wide["f"]
    v["cos"], v["sin"] = np.cos(v["angle"] * np.float32(scale)), np.sin(v["angle"])
    v["turned"] = np.concatenate([v["cos"], v["sin"]], axis=1)
    v["dot"] = v["turned"] @ wide["w"]
    v["y"] = v["dot"] + wide["b"]
    return {k: a.astype(np.float16) for k, a in v.items()}


def main():
    assay, wrong = sys.argv[1], []

    def look(what, found, verdict, node=None):
        report, said = found
        first = (report.get("culprits") or [{}])[0].get("nodes", [None])[0]
        if report["verdict"] != verdict or (node and first != node):
            wrong.append(f"{what}: {report['verdict']}, {first}, wanted {verdict}, {node}\n{said}")

    c, x, outputs = gap_constants(), R.normal(size=(4, INNER)).astype(np.float32), ("depth", "y")
    golden = gap_values(x, c)
    look("a run for each value", check(assay, gap_nodes(), c, x, golden, outputs), "faithful")
    one = gap_run(x, c)
    look("a run for all values", check(assay, gap_nodes(), c, x, one, outputs), "faithful")
    for k, node in (("floor", "above"), ("k", "depth")):
        for values, sizes in ((golden, (1e-4, 1e-3)), (one, (3e-6, 1e-4))):  # what one run shows, several runs hide
            for size in sizes:
                look(f"{k} off by {size}", check(assay, gap_nodes(), {**c, k: np.float32(c[k] * (1 + size))}, x, values, outputs), "unfaithful", node)
    stale = c["u"] * np.where(np.arange(WIDTH) == 5, 1.0001, 1).astype(np.float32)
    look("a column off", check(assay, gap_nodes(), {**c, "u": stale}, x, golden, outputs), "unfaithful", "far")
    c, x = turn_constants(), (np.arange(1, 7)[:, None] / 90).astype(np.float16)
    look("float32 between", check(assay, turn_nodes(), c, x, turn_values(x, c), ("y",), T.FLOAT16), "faithful")
    look("another angle", check(assay, turn_nodes(), c, x, turn_values(x, c, 1.1), ("y",), T.FLOAT16), "unfaithful", "cos")
    look("another function", check(assay, turn_nodes("Sin"), c, x, turn_values(x, c), ("y",), T.FLOAT16), "unfaithful", "cos")
    print("\n".join(wrong) if wrong else "inner values may be apart")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
