#!/usr/bin/env python3
"""Faults that outputs alone show: test_golden_outputs.py ASSAY

With golden outputs of several samples `check` names the node, and the repaired model gives golden's outputs on inputs that took no
part, by onnx's reference evaluator. What cannot be mended is called a guess; the healthy model stays healthy.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

R = np.random.default_rng(11)


def normal(*shape):
    return (R.normal(size=shape) * 0.4).astype(np.float32)


WEIGHTS = {"k1": normal(8, 3, 3, 3), "k2": normal(8, 8, 3, 3), "k3": normal(8, 8, 3, 3), "k4": normal(4, 8, 1, 1), "b1": normal(8), "b2": normal(8),
           "b3": normal(8), "b4": normal(4), "half": np.float32(0.5).reshape(()), "spare": normal(8)}

FACTORS = np.exp(0.3 * R.normal(size=(1, 8, 1, 1))).astype(np.float32)


def blocks():
    """Convolutions with SiLU and residuals, as nodes by name."""
    nodes = [h.make_node("Conv", ["x", "k1", "b1"], ["c1"], name="conv1", pads=[1] * 4), h.make_node("Sigmoid", ["c1"], ["s1"], name="gate1"),
             h.make_node("Mul", ["c1", "s1"], ["a1"], name="silu1")]
    for i, before in ((2, "a1"), (3, "r2")):
        nodes += [h.make_node("Conv", [before, f"k{i}", f"b{i}"], [f"c{i}"], name=f"conv{i}", pads=[1] * 4),
                  h.make_node("Elu", [f"c{i}"], [f"e{i}"], name=f"elu{i}", alpha=0.6), h.make_node("Add", [f"e{i}", before], [f"r{i}"], name=f"skip{i}")]
    return nodes + [h.make_node("Conv", ["r3", "k4", "b4"], ["y"], name="head")]


def model(nodes, weights):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [2, 3, 8, 8])], [h.make_tensor_value_info("y", T.FLOAT, [2, 4, 8, 8])],
                         [nh.from_array(v, k) for k, v in weights.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)


def without(nodes, name, reads):
    """Without a node: those that read it read `reads`."""
    gone = next(n for n in nodes if n.name == name)
    for n in nodes:
        n.input[:] = [reads if i == gone.output[0] else i for i in n.input]
    return [n for n in nodes if n.name != name]


def changed(nodes, name, change):
    change(next(n for n in nodes if n.name == name))
    return nodes


def reading(at, value):
    return lambda n: n.input.__setitem__(at, value)


def other_weights(name, value):
    return {**WEIGHTS, name: value}


# what it is, nodes, weights, the nodes to blame; the last: what is said of it
ROWS = [
    ("activation lost", without(without(blocks(), "silu1", "c1"), "gate1", "c1"), WEIGHTS, ("conv1", "conv2"), "x * sigmoid(x)"),
    ("unlike its twin", changed(blocks(), "elu3", lambda n: n.ClearField("attribute")), WEIGHTS, ("elu3",), "alpha as in 'elu2'"),
    ("as its twin has it", without(blocks(), "elu3", "c3"), WEIGHTS, ("conv3", "skip3"), "Elu after it"),
    ("branch cut off", without(blocks(), "skip3", "r2"), WEIGHTS, ("skip2", "head"), "Add with 'e3'"),
    ("residual lost after an activation", without(blocks(), "skip3", "e3"), WEIGHTS, ("elu3", "head"), "Add"),
    ("skip from another value", changed(blocks(), "skip3", reading(1, "a1")), WEIGHTS, ("skip3",), "reads 'r2'"),
    ("bias dropped", changed(blocks(), "conv2", lambda n: n.input.pop()), WEIGHTS, ("conv2",), "'b2'"),
    ("bias of zeros", blocks(), other_weights("b3", np.zeros(8, np.float32)), ("conv3",), "by channel"),
    ("channels scaled", blocks(), {**WEIGHTS, "k2": WEIGHTS["k2"] * np.linspace(0.8, 1.3, 8, dtype=np.float32).reshape(8, 1, 1, 1)}, ("conv2",), "by channel"),
    ("scale of one reader", blocks(), {**WEIGHTS, "k3": WEIGHTS["k3"] * FACTORS}, ("conv3",), "where it is read"),
    ("scale on the other side", blocks(), {**WEIGHTS, "k3": WEIGHTS["k3"] * FACTORS / FACTORS.reshape(8, 1, 1, 1)}, ("conv3",), "not at those"),
]


def samples(n):
    return [{"x": R.normal(size=(2, 3, 8, 8)).astype(np.float32)} for _ in range(n)]


def check(assay, inputs, golden, folder):
    run = subprocess.run([assay, "check", "m.onnx", "-i", *inputs, "--golden", *golden, "--search-time", "10", "--json", "report.json", "-o", folder],
                         capture_output=True, text=True, timeout=120, check=False)
    with open("report.json", encoding="utf-8") as report:
        return run, json.load(report)


def main(assay):
    good, given, other = model(blocks(), WEIGHTS), samples(4), samples(1)[0]
    evaluator = ReferenceEvaluator(good)
    for name in ("inputs", "golden"):
        os.mkdir(name)
    for i, x in enumerate(given):
        np.savez(f"inputs/{i}.npz", **x)
        np.savez(f"golden/{i}.npz", y=evaluator.run(None, x)[0])
    want = evaluator.run(None, other)[0]
    failures = 0
    for row, (what, nodes, weights, blamed, said) in enumerate(ROWS):
        onnx.save(model(nodes, weights), "m.onnx")
        run, report = check(assay, ["inputs"], ["golden"], f"fix{row}")
        wrong = [] if run.returncode == 1 else [f"exit code {run.returncode}"]
        culprit = (report["culprits"] or [{"nodes": [], "probability": 0, "why": ""}])[0]
        wrong += [] if set(culprit["nodes"]) & set(blamed) else [f"blames {culprit['nodes']}"]
        wrong += [] if said in culprit["why"] else [f"says '{culprit['why']}'"]
        wrong += [] if (culprit["probability"] or 0) > 0.4 else [f"probability {culprit['probability']}"]
        repaired = glob.glob(f"fix{row}/*.onnx")
        if not repaired or "verified" not in run.stdout:
            wrong.append("no repair that is verified")
        elif not np.abs(ReferenceEvaluator(repaired[0]).run(None, other)[0] - want).max() < 1e-4:
            wrong.append("the repaired model differs on other inputs")
        if wrong:
            failures += 1
            print(f"{what}: {'; '.join(wrong)}\n{run.stdout}{run.stderr}")
    # All weights of a layer are others: no table has them.
    onnx.save(model(blocks(), other_weights("k3", normal(8, 8, 3, 3))), "m.onnx")
    run, report = check(assay, ["inputs"], ["golden"], "none")
    region = report["culprits"][0]["region"] or {"nodes": [], "probability": 0, "from": [], "to": []}
    known = "conv3" in region["nodes"] and 0.5 < region["probability"] < 1 and region["to"] and region["count"] == len(region["nodes"])
    if run.returncode != 1 or glob.glob("none/*.onnx") or (report["culprits"][0]["probability"] or 0) >= 0.5 or not known:
        failures += 1
        print(f"other weights: exit code {run.returncode}, {report['culprits']}\n{run.stdout}{run.stderr}")
    onnx.save(good, "m.onnx")
    run, report = check(assay, ["inputs"], ["golden"], "good")
    if run.returncode != 0 or report["culprits"]:
        failures += 1
        print(f"healthy: exit code {run.returncode}\n{run.stdout}{run.stderr}")
    print(f"{len(ROWS) + 2} models, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder_:
        os.chdir(folder_)
        sys.exit(main(program))
