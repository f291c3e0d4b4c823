#!/usr/bin/env python3
"""The fewest layers in fp32 of a network too large for all subsets: test_fewest_removal.py ASSAY

Where values are far from 0 until a difference brings them back, the layers between have to be in fp32, and nothing else.
What check, `debug precision` and tune keep is no more than those chosen by hand, and none of it can go: without any one
node of it the requirement does not hold.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(9)
N = h.make_node
SIZE, BLOCKS, FAR = 16, 14, (3, 9)


def network():
    """Residual blocks; in some, the sums are far from 0 in between. By hand: those sums, what they add to and what reads them."""
    nodes, constants, at, by_hand = [], {"far": np.float32(2000)}, "x", []
    for i in range(BLOCKS):
        constants[f"w{i}"] = (R.normal(size=(SIZE, SIZE)) / 4).astype(np.float32)
        if i in FAR:
            nodes += [N("Add", [at, "far"], [f"f{i}"], f"far{i}"), N("Relu", [f"f{i}"], [f"r{i}"], f"relu{i}"), N("Sub", [f"r{i}", "far"], [f"b{i}"], f"back{i}")]
            by_hand += [f"far{i}", f"relu{i}", f"back{i}"]
            at = f"b{i}"
        nodes += [N("MatMul", [at, f"w{i}"], [f"m{i}"], f"product{i}"), N("Tanh", [f"m{i}"], [f"t{i}"], f"tanh{i}"), N("Add", [f"t{i}", at], [f"s{i}"], f"sum{i}")]
        at = f"s{i}"
    nodes.append(N("Softmax", [at], ["y"], "softmax", axis=-1))
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [8, SIZE])], [h.make_tensor_value_info("y", T.FLOAT, [8, SIZE])],
                         [nh.from_array(np.asarray(v), k) for k, v in constants.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), by_hand


def run(assay, *words):
    out = subprocess.run([assay, *words, "--json", "-"], capture_output=True, text=True, timeout=120, check=False)
    assert out.stdout.startswith("{"), (words, out.returncode, out.stderr)
    return json.loads(out.stdout)


def holds(assay, nodes, options):
    rules = ["--layer-precision", ",".join(f"{n}:fp32" for n in nodes)] if nodes else []
    return run(assay, "check", "m.onnx", *options, "--no-fix", *rules)["verdict"] == "faithful"


def minimal(assay, nodes, options, by_hand, verb):
    assert holds(assay, nodes, options), (verb, nodes)
    assert len(nodes) <= len(by_hand), (verb, nodes)
    needless = [n for n in nodes if holds(assay, [m for m in nodes if m != n], options)]
    assert not needless, (verb, nodes, needless)


def main(assay):
    model, by_hand = network()
    onnx.save(model, "m.onnx")
    np.savez("x.npz", x=R.normal(size=(8, SIZE)).astype(np.float32))
    for precision, decibels in (("fp16", 45), ("bf16", 26)):
        options = ["-i", "x.npz", "--precision", precision, "--require", f"snr_db >= {decibels}"]
        assert not holds(assay, [], options) and holds(assay, by_hand, options), precision
        for verb in ("check", "debug precision"):
            found = run(assay, *verb.split(), "m.onnx", *options, "--fix", "best")
            front = found["fix"]["front"]
            minimal(assay, front["fewest"]["nodes"], options, by_hand, verb)
            assert front["chosen"] == "best" and found["fix"]["nodes"] == front["best"]["nodes"], front
            all_in_fp32, best = front["all"][0]["snr_db"], front["best"]["outputs"][0]["snr_db"]
            assert front["best"]["verified"] and best >= min(all_in_fp32, 144) - 3.02, (best, all_in_fp32)
            assert front["fewest"]["estimated_time"] <= front["best"]["estimated_time"] <= 1, front
            found = run(assay, *verb.split(), "m.onnx", *options)
            minimal(assay, found["fix"]["nodes"], options, by_hand, verb)
        tuned = run(assay, "tune", "m.onnx", "-i", "x.npz", "--precision", precision, *options[-2:], "--layers", "--no-pareto")
        kept = [n for rule in tuned["chosen"]["layer_precision"].split(",") for n in rule.split(":")[:1] if rule.endswith(":fp32")]
        minimal(assay, kept, options, by_hand, "tune")
    print(f"{len(model.graph.node)} nodes, {len(by_hand)} by hand")


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main(program)
