#!/usr/bin/env python3
"""A bias of integers that layers of unlike scales share: test_shared_bias.py ASSAY

A convolution is used three times in a row (an unrolled cell), and a quantizer writes its bias once, in units of the first use. With
golden of the float network, and with golden of a network that quantizes rightly: check names the layers, the bias and how far its
units are off, and the repaired model gives golden. Uses of one scale share it rightly: no alarm.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

R = np.random.default_rng(8)
CHANNELS, USES, SAMPLES = 6, 3, 2
W = (R.normal(size=(CHANNELS, CHANNELS, 3, 3)) / 7).astype(np.float32)
B = R.normal(size=CHANNELS).astype(np.float32)
HEAD = (R.normal(size=(CHANNELS, CHANNELS, 1, 1)) / 3).astype(np.float32)
SHAPE = ["n", CHANNELS, 5, 5]


def save(path, nodes, constants):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, SHAPE)], [h.make_tensor_value_info("y", T.FLOAT, SHAPE)],
                         [nh.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, path)
    return model


def float_network(path):
    nodes, at = [], "x"
    for i in range(USES):
        nodes += [h.make_node("Conv", [at, "w", "b"], [f"c{i}"], f"conv{i}", pads=[1] * 4), h.make_node("Relu", [f"c{i}"], [f"r{i}"], f"relu{i}")]
        at = f"r{i}"
    nodes += [h.make_node("Conv", [at, "head"], ["y"], "top")]
    return save(path, nodes, {"w": W, "b": B, "head": HEAD})


def scales(model, inputs):
    every = onnx.ModelProto()
    every.CopyFrom(model)
    every.graph.output.extend(h.make_tensor_value_info(f"r{i}", T.FLOAT, None) for i in range(USES))
    runs = [ReferenceEvaluator(every).run(None, {"x": x}) for x in inputs]
    largest = [max(np.abs(x).max() for x in inputs)] + [max(r[1 + i].max() for r in runs) for i in range(USES)]
    return [np.float32(v / 127) for v in largest] + [np.float32(max(np.abs(r[0]).max() for r in runs) / 127)]


def quantized(path, scale, shared, alike=False):
    """Operators on integers; shared: one bias, in units of the first use. alike: all activations have one scale."""
    scale = [max(scale)] * len(scale) if alike else scale
    w_scale, head_scale = np.float32(np.abs(W).max() / 127), np.float32(np.abs(HEAD).max() / 127)
    constants = {"z": np.int8(0), "ws": w_scale, "w": np.rint(W / w_scale).astype(np.int8), "hs": head_scale, "head": np.rint(HEAD / head_scale).astype(np.int8)}
    constants.update({f"s{i}": s for i, s in enumerate(scale)})
    nodes, at = [h.make_node("QuantizeLinear", ["x", "s0", "z"], ["q0"], "in")], "q0"
    for i in range(USES):
        name = "b" if shared else f"b{i}"
        constants[name] = np.rint(B / (w_scale * scale[0 if shared else i])).astype(np.int32)
        # Integers below 0 are cut: symmetric scales keep them, so the Relu stays.
        nodes += [h.make_node("QLinearConv", [at, f"s{i}", "z", "w", "ws", "z", f"s{i + 1}", "z", name], [f"c{i}"], f"conv{i}", pads=[1] * 4),
                  h.make_node("DequantizeLinear", [f"c{i}", f"s{i + 1}", "z"], [f"d{i}"], f"from{i}"), h.make_node("Relu", [f"d{i}"], [f"r{i}"], f"relu{i}"),
                  h.make_node("QuantizeLinear", [f"r{i}", f"s{i + 1}", "z"], [f"q{i + 1}"], f"to{i}")]
        at = f"q{i + 1}"
    nodes += [h.make_node("QLinearConv", [at, f"s{USES}", "z", "head", "hs", "z", f"s{USES + 1}", "z"], ["qy"], "top"),
              h.make_node("DequantizeLinear", ["qy", f"s{USES + 1}", "z"], ["y"], "out")]
    return save(path, nodes, constants)


def check(assay, path, golden, *more):
    done = subprocess.run([assay, "check", path, "-i", "inputs", "-g", golden, "--search-time", "20", "--json", "report.json", *more], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    with open("report.json", encoding="utf-8") as f:
        return json.load(f)


def write_golden(folder, model, inputs):
    os.mkdir(folder)
    for i, x in enumerate(inputs):
        np.savez(f"{folder}/{i}.npz", y=ReferenceEvaluator(model).run(None, {"x": x})[0])


def found_and_mended(assay, path, golden, nodes):
    report = check(assay, path, golden, "-o", "fix")
    assert report["verdict"] == "unfaithful" and report["blame"] == "export", f"{path}, {golden}: {report['verdict']}, blame {report['blame']}"
    culprits = report["culprits"]
    assert {n for c in culprits for n in c["nodes"]} == nodes, f"{path}, {golden}: {[(c['nodes'], c['why']) for c in culprits]}"
    assert all(c["cause"] == "shared bias" and "'b'" in c["why"] for c in culprits), f"{[(c['cause'], c['why']) for c in culprits]}"
    assert report["fix"]["verified"]["verdict"] == "faithful", f"{path}, {golden}: the fix is not verified"
    fixed = [f for f in report["fix"]["files"] if f.endswith(".onnx")][0]
    again = check(assay, fixed, golden)
    assert again["blame"] != "export", f"{path}, {golden}: the repaired model is blamed for {again['culprits'][:1]}"


def main(assay):
    assay = os.path.abspath(assay)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        inputs = [R.normal(size=(2, CHANNELS, 5, 5)).astype(np.float32) for _ in range(SAMPLES)]
        os.mkdir("inputs")
        for i, x in enumerate(inputs):
            np.savez(f"inputs/{i}.npz", x=x)
        model = float_network("float.onnx")
        scale = scales(model, inputs)
        write_golden("of_float", model, inputs)
        write_golden("of_quantized", quantized("right.onnx", scale, False), inputs)
        write_golden("of_alike", quantized("alike.onnx", scale, True, alike=True), inputs)
        quantized("shared.onnx", scale, True)
        wrong = {"conv1", "conv2"}
        found_and_mended(assay, "shared.onnx", "of_float", wrong)
        found_and_mended(assay, "shared.onnx", "of_quantized", wrong)
        for path, golden in (("right.onnx", "of_float"), ("right.onnx", "of_quantized"), ("alike.onnx", "of_alike"), ("alike.onnx", "of_float")):
            report = check(assay, path, golden)
            assert report["blame"] != "export", f"{path}, {golden}: an alarm, {report['culprits'][:1]}"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
