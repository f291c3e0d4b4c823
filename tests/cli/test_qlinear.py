#!/usr/bin/env python3
"""What operators on quantized numbers lose: test_qlinear.py ASSAY

A small network of QLinearConv, QLinearMatMul, and of com.microsoft QLinearAdd, QLinearSigmoid and QGemm, quantized by hand from a float
network whose outputs are golden. The healthy one loses what its bits cost. Where a scale is too large, or clips, check names the
operator whose result has it, splits its loss, and writes a repaired model that ONNX Runtime runs and that loses far less.
Weights with a scale for each channel are split as well.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(17)
SAMPLES = 3
W0 = (R.normal(size=(12, 3, 3, 3)) / 5).astype(np.float32)
W1 = (R.normal(size=(12, 12, 3, 3)) / 10).astype(np.float32)
B0, B1 = (R.normal(size=12).astype(np.float32) * np.float32(0.2) for _ in range(2))
M = (R.normal(size=(36, 20)) / 6).astype(np.float32)
G = (R.normal(size=(20, 6)) / 4).astype(np.float32)
C = R.normal(size=6).astype(np.float32) * np.float32(0.3)
SHAPES = [h.make_tensor_value_info("x", T.FLOAT, ["n", 3, 6, 6])], [h.make_tensor_value_info("y", T.FLOAT, ["n", 12, 6])]
VALUES = ["x", "c0", "c1", "sum", "bent", "m", "y"]


def save(path, nodes, constants):
    graph = h.make_graph(nodes, "g", *SHAPES, [nh.from_array(np.asarray(v), k) for k, v in constants.items()])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)], ir_version=8)
    onnx.save(model, path)
    return model


def run(model, x, names=("y",)):
    every = onnx.ModelProto()
    every.CopyFrom(model)
    known = {o.name for o in every.graph.output}
    every.graph.output.extend(h.make_tensor_value_info(n, T.FLOAT, None) for n in names if n not in known)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(every.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(list(names), {"x": x})


def float_network(path):
    nodes = [h.make_node("Conv", ["x", "w0", "b0"], ["c0"], "conv0", pads=[1] * 4), h.make_node("Conv", ["c0", "w1", "b1"], ["c1"], "conv1", pads=[1] * 4),
             h.make_node("Add", ["c0", "c1"], ["sum"], "add"), h.make_node("Sigmoid", ["sum"], ["bent"], "sigmoid"),
             h.make_node("Reshape", ["bent", "rows"], ["r"], "rows"), h.make_node("MatMul", ["r", "m36"], ["m"], "matmul"),
             h.make_node("Gemm", ["m", "g", "c"], ["t"], "gemm"), h.make_node("Reshape", ["t", "back"], ["y"], "back")]
    return save(path, nodes, {"w0": W0, "b0": B0, "w1": W1, "b1": B1, "m36": M, "g": G, "c": C, "rows": np.array([-1, 36]), "back": np.array([-1, 12, 6])})


def symmetric(largest):
    return np.float32(max(largest, 1e-6) / 127)


def quantized(path, scale, apart=False):
    """apart: the second convolution's weights have a scale for each channel."""
    s1 = np.array([symmetric(np.abs(w).max()) for w in W1], np.float32) if apart else symmetric(np.abs(W1).max())
    z1 = np.zeros(12, np.int8) if apart else np.int8(0)
    s0, sm, sg = symmetric(np.abs(W0).max()), symmetric(np.abs(M).max()), symmetric(np.abs(G).max())
    by1 = s1.reshape(12, 1, 1, 1) if apart else s1
    constants = {"z": np.int8(0), "z1": z1, "s0": s0, "s1": s1, "sm": sm, "sg": sg, "w0": np.rint(W0 / s0).astype(np.int8), "w1": np.rint(W1 / by1).astype(np.int8),
                 "m36": np.rint(M / sm).astype(np.int8), "g": np.rint(G / sg).astype(np.int8), "b0": np.rint(B0 / (s0 * scale["x"])).astype(np.int32),
                 "b1": np.rint(B1 / (s1 * scale["c0"])).astype(np.int32), "c": np.rint(C / (sg * scale["m"])).astype(np.int32),
                 "rows": np.array([-1, 36]), "back": np.array([-1, 12, 6]), **{f"scale_{k}": np.float32(v) for k, v in scale.items()}}
    of = lambda v: [f"q_{v}", f"scale_{v}", "z"]
    to = lambda v: [f"scale_{v}", "z"]
    nodes = [h.make_node("QuantizeLinear", ["x", *to("x")], ["q_x"], "in"),
             h.make_node("QLinearConv", [*of("x"), "w0", "s0", "z", *to("c0"), "b0"], ["q_c0"], "conv0", pads=[1] * 4),
             h.make_node("QLinearConv", [*of("c0"), "w1", "s1", "z1", *to("c1"), "b1"], ["q_c1"], "conv1", pads=[1] * 4),
             h.make_node("QLinearAdd", [*of("c0"), *of("c1"), *to("sum")], ["q_sum"], "add", domain="com.microsoft"),
             h.make_node("QLinearSigmoid", [*of("sum"), *to("bent")], ["q_bent"], "sigmoid", domain="com.microsoft"),
             h.make_node("Reshape", ["q_bent", "rows"], ["q_r"], "rows"),
             h.make_node("QLinearMatMul", ["q_r", *to("bent"), "m36", "sm", "z", *to("m")], ["q_m"], "matmul"),
             h.make_node("QGemm", [*of("m"), "g", "sg", "z", "c", *to("y")], ["q_t"], "gemm", domain="com.microsoft"),
             h.make_node("Reshape", ["q_t", "back"], ["q_y"], "back"), h.make_node("DequantizeLinear", of("y"), ["y"], "out")]
    return save(path, nodes, constants)


def loss_of(model, inputs, golden):
    return sum(((run(model, x)[0] - g) ** 2).sum() for x, g in zip(inputs, golden)) / sum((g**2).sum() for g in golden)


def check(assay, path, *more):
    done = subprocess.run([assay, "check", path, "-i", "inputs", "-g", "golden", "--json", "report.json", *more], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    with open("report.json", encoding="utf-8") as f:
        return json.load(f)


def main(assay):
    assay = os.path.abspath(assay)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        model = float_network("float.onnx")
        os.mkdir("inputs"), os.mkdir("golden")
        draws = [R.normal(size=(2, 3, 6, 6)).astype(np.float32) for _ in range(2 * SAMPLES)]
        inputs, fresh = draws[:SAMPLES], draws[SAMPLES:]
        values = [dict(zip(VALUES, [x, *run(model, x, VALUES[1:])])) for x in inputs]
        for i, v in enumerate(values):
            np.savez(f"inputs/{i}.npz", x=v["x"])
            np.savez(f"golden/{i}.npz", y=v["y"])
        scale = {k: symmetric(max(np.abs(v[k]).max() for v in values)) for k in VALUES}
        for apart in (False, True):
            quantized("healthy.onnx", scale, apart)
            report = check(assay, "healthy.onnx")
            assert report["verdict"] == "faithful", f"apart {apart}: {report['verdict']}, {report['culprits'][:2]}"
        fresh_golden = [run(model, x)[0] for x in fresh]
        for value, node, times, pattern, part in (("c1", "conv1", 40, "too_large", "rounding"), ("c0", "conv0", 1 / 12, "too_small", "clipping"),
                                                  ("sum", "add", 60, "too_large", "rounding"), ("m", "matmul", 1 / 12, "too_small", "clipping")):
            faulty = quantized("faulty.onnx", {**scale, value: np.float32(scale[value] * times)}, apart=node == "conv1")
            report = check(assay, "faulty.onnx", "-o", "fix")
            q = report["quantization"]
            assert report["verdict"] == "unfaithful" and report["blame"] == "precision", f"{value}: {report['verdict']}, blame {report['blame']}"
            first = q["quantizers"][0]
            assert first["node"] == node and first["pattern"] == pattern, f"{value}: {first['node']}, {first['pattern']}, {first['why']}"
            assert first["loss"][part] > 0.5 * first["loss"]["all"], f"{value}: {first['loss']}"
            assert any(s["of"] == "weight" and s["loss"]["weight_rounding"] > 0 for s in q["quantizers"]), "no weight was measured"
            assert q["verified"], f"{value}: the fix is not verified"
            fixed = onnx.load([f for f in report["fix"]["files"] if f.endswith(".onnx")][0])
            before, after = loss_of(faulty, fresh, fresh_golden), loss_of(fixed, fresh, fresh_golden)
            assert after < before / 4, f"{value}: the fix loses {after:.3g}, the model {before:.3g}"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
