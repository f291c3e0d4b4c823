#!/usr/bin/env python3
"""A part of an order of elements that was lost, told by outputs alone: test_lost_orders.py ASSAY

A picture that was turned over both axes is turned over one; rows and columns that were moved on are moved in rows alone; both
before the network's other result is added. The node that has the other part is named, not the product before it, and the repair is verified.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(8)
SIDE = 10


def conv(x, w):
    edge = w.shape[2] // 2
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (edge, edge), (edge, edge))), w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows.astype(np.float64), w.astype(np.float64))


def save(path, nodes, constants):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 3, SIDE, SIDE])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["n", 2, SIDE, SIDE])], [nh.from_array(v, k) for k, v in constants.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


WEIGHTS = {"a": (R.normal(size=(8, 3, 3, 3)) / 4).astype(np.float32), "b": (R.normal(size=(2, 8, 3, 3)) / 6).astype(np.float32)}


def network(x):
    return conv(np.maximum(conv(x, WEIGHTS["a"]), 0), WEIGHTS["b"])


def branch(x, name):
    return [h.make_node("Conv", [x, "a"], [f"{name}_wide"], f"{name}_wide", pads=[1, 1, 1, 1]), h.make_node("Relu", [f"{name}_wide"], [f"{name}_bent"], f"{name}_bent"),
            h.make_node("Conv", [f"{name}_bent", "b"], [name], name, pads=[1, 1, 1, 1])]


def both(there, back, constants):
    """The mean of the network of a picture and, put back, of the picture in another order."""
    nodes = [there, *branch("other", "far"), back, *branch("x", "near"), h.make_node("Add", ["near", "ordered"], ["sum"], "sum"),
             h.make_node("Mul", ["sum", "half"], ["mean"], "mean"), h.make_node("Sigmoid", ["mean"], ["y"], "squash")]
    return nodes, {**WEIGHTS, "half": np.float32(0.5), **constants}


def turned():
    slice_ = lambda x, y, axes, name: h.make_node("Slice", [x, f"{axes}_start", f"{axes}_end", f"{axes}_axes", f"{axes}_step"], [y], name)
    numbers = {f"{k}_{what}": np.array(v, np.int64) for k, axes in (("both", [2, 3]), ("one", [2]))
               for what, v in (("start", [-1] * len(axes)), ("end", [-SIDE - 1] * len(axes)), ("axes", axes), ("step", [-1] * len(axes)))}
    return both(slice_("x", "other", "both", "there"), slice_("far", "ordered", "one", "back"), numbers), lambda v: v[:, :, ::-1, ::-1], lambda v: v[:, :, ::-1, ::-1]


def moved():
    there = h.make_node("Gather", ["x", "on"], ["other"], "there", axis=2)
    back = h.make_node("Gather", ["far", "off"], ["ordered"], "back", axis=2)
    places = np.arange(SIDE)
    return both(there, back, {"on": (places + 1) % SIDE, "off": (places + SIDE - 1) % SIDE}), lambda v: np.roll(v, -1, 2), lambda v: np.roll(v, (1, 1), (2, 3))


def main():
    assay, wrong = sys.argv[1], []
    for name, ((nodes, constants), there, back) in (("turned", turned()), ("moved", moved())):
        with tempfile.TemporaryDirectory() as folder:
            at = lambda *p: os.path.join(folder, *p)
            save(at("model.onnx"), nodes, constants)
            os.makedirs(at("inputs")), os.makedirs(at("golden"))
            for k in range(3):
                x = R.normal(size=(2, 3, SIDE, SIDE)).astype(np.float32)
                np.savez(at("inputs", f"{k}.npz"), x=x)
                np.savez(at("golden", f"{k}.npz"), y=(1 / (1 + np.exp(-0.5 * (network(x) + back(network(there(x))))))).astype(np.float32))
            done = subprocess.run([assay, "check", at("model.onnx"), "-i", at("inputs"), "-g", at("golden"), "--search-time", "20", "--json", at("out.json"), "-o",
                                   at("fix")], capture_output=True, text=True)
            with open(at("out.json"), encoding="utf-8") as f:
                report = json.load(f)
            first = (report.get("culprits") or [{}])[0]
            verified = ((report.get("fix") or {}).get("verified") or {}).get("verdict")
            if first.get("nodes") != ["back"] or verified != "faithful":
                wrong.append(f"{name}: {first.get('nodes')}, fix {verified}\n{done.stdout}{done.stderr}")
    print("\n".join(wrong) if wrong else "lost orders are found")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
