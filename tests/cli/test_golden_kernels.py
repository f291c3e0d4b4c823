#!/usr/bin/env python3
"""Golden as kernels make it where a rounding is large beside the result: test_golden_kernels.py ASSAY

e^x - 1 of small numbers (Elu, Celu, Selu), log(1 + e^x) of what is far below 0 (Softplus), squared distances of points to themselves whose sums were
added up in other orders, numbers below a float's smallest normal one that were printed with four digits, the logarithm of what vanished in
float32: nothing is wrong with such models, with inner values and without. Of each, a faulty twin is found.
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
F = np.float32
SAMPLES = 3


def save(path, nodes, constants, width, output):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, width)], [h.make_tensor_value_info(o, T.FLOAT, None) for o in output],
                         [nh.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def check(assay, nodes, constants, inputs, golden, outputs, inner, *options):
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *p: os.path.join(folder, *p)
        save(at("model.onnx"), nodes, constants, inputs[0].shape, outputs)
        os.makedirs(at("i")), os.makedirs(at("g"))
        for k, (x, g) in enumerate(zip(inputs, golden)):
            np.savez(at("i", f"{k}.npz"), x=x)
            np.savez(at("g", f"{k}.npz"), **{o: g[o] for o in outputs})
        np.savez(at("inner.npz"), **golden[0])
        line = [assay, "check", at("model.onnx"), "-i", at("i"), "-g", at("g"), "--search-time", "2", "--json", at("out.json"), *options]
        done = subprocess.run(line + (["--golden-intermediates", at("inner.npz")] if inner else []), capture_output=True, text=True)
        return json.load(open(at("out.json"), encoding="utf-8"))["verdict"], done.stdout + done.stderr


# ---- the networks: nodes, constants, inputs, golden of an input, outputs, what a faulty twin has instead ----

def beside_one(op, below, **attributes):
    """Layers around a function whose results are small beside 1."""
    w, v = (R.normal(size=s).astype(F) for s in ((6, 5), (5, 4)))
    near, far = (F(1e-3), F(1e3)) if below else (F(1), F(1e6))
    shift = F(0 if below else -17)
    alpha, gamma = (F(attributes.get(k, d)) for k, d in (("alpha", 1.67326319 if op == "Selu" else 1), ("gamma", 1.05070099)))
    with_scale = alpha * gamma if op == "Selu" else alpha

    def golden(x):
        a = (x @ w).astype(F)
        b = a * near
        c = b + shift
        y = np.log(F(1) + np.exp(c)) if op == "Softplus" else np.where(c < 0, with_scale * (np.exp(c) - F(1)), (gamma if op == "Selu" else F(1)) * c)
        large = y * far
        return {"a": a, "b": b, "c": c, "y": y, "large": large, "z": (large @ v).astype(F)}
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"], "first"), h.make_node("Mul", ["a", "near"], ["b"], "near"), h.make_node("Add", ["b", "shift"], ["c"], "shift"),
             h.make_node(op, ["c"], ["y"], "bent", **attributes), h.make_node("Mul", ["y", "far"], ["large"], "far"), h.make_node("MatMul", ["large", "v"], ["z"], "second")]
    return op, nodes, {"w": w, "v": v, "near": near, "far": far, "shift": shift}, [R.normal(size=(7, 6)).astype(F) for _ in range(SAMPLES)], golden, ["z"], {"far": F(far * (1.02 if below else 1.4))}


def distances(points):
    def golden(x):
        squares = np.zeros(x.shape[:-1] + (1,), F)
        for k in range(x.shape[-1]):
            squares = squares + x[..., k:k + 1] * x[..., k:k + 1]
        dots = np.zeros((points, points), F)
        for k in reversed(range(x.shape[-1])):
            dots = dots + x[:, k:k + 1] * x[:, k:k + 1].T
        apart = np.maximum(squares + squares.T - F(2) * dots, F(0))
        return {"apart": apart, "far": np.sqrt(apart + F(1e-4))}
    nodes = [h.make_node("Mul", ["x", "x"], ["parts"], "square"), h.make_node("ReduceSum", ["parts", "last"], ["squares"], "sum", keepdims=1),
             h.make_node("Transpose", ["x"], ["turned"], "turn"), h.make_node("MatMul", ["x", "turned"], ["dots"], "dots"),
             h.make_node("Transpose", ["squares"], ["across"], "across"), h.make_node("Add", ["squares", "across"], ["both"], "both"),
             h.make_node("Mul", ["dots", "two"], ["twice"], "twice"), h.make_node("Sub", ["both", "twice"], ["raw"], "less"),
             h.make_node("Clip", ["raw", "zero"], ["apart"], "clip"), h.make_node("Add", ["apart", "little"], ["more"], "more"), h.make_node("Sqrt", ["more"], ["far"], "root")]
    constants = {"last": np.array([1], np.int64), "two": F(2), "zero": F(0), "little": F(1e-4)}
    return f"{points} points", nodes, constants, [R.normal(size=(points, 5)).astype(F) for _ in range(SAMPLES)], golden, ["far"], {"little": F(2e-4)}


def printed():
    w = (3 * R.normal(size=(4, 8))).astype(F)

    def golden(x):
        powers = np.exp(-np.square((x @ w).astype(F))).astype(F)
        return {"y": np.array([float(f"{v:.3e}") for v in powers.reshape(-1)], F).reshape(powers.shape)}
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"], "first"), h.make_node("Mul", ["a", "a"], ["b"], "square"), h.make_node("Mul", ["b", "minus"], ["c"], "minus"),
             h.make_node("Exp", ["c"], ["y"], "exp")]
    return "printed", nodes, {"w": w, "minus": F(-1)}, [R.normal(size=(30, 4)).astype(F) for _ in range(SAMPLES)], golden, ["y"], {"minus": F(-1.03)}


def vanished():
    w = R.normal(size=(4, 6)).astype(F)

    def golden(x):
        a = (x @ w).astype(F)
        p = (1 / (1 + np.exp(-a.astype(np.float64)))).astype(F)
        p[p < 1.2e-38] = 0
        with np.errstate(divide="ignore"):
            return {"y": np.log(p).astype(F), "a": a}
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"], "first"), h.make_node("Sigmoid", ["a"], ["p"], "sigmoid"), h.make_node("Log", ["p"], ["y"], "log")]
    x = R.normal(size=(10, 4)).astype(F)
    x[3] = -200 * w[:, 2] / (w[:, 2] @ w[:, 2])
    return "vanished", nodes, {"w": w}, [x] * SAMPLES, golden, ["y"], {"w": (w * np.where(np.arange(6) == 1, 1.1, 1)).astype(F)}


def past_fp16(assay):
    """What passes fp16 is infinite in golden of a framework that ran it in fp16, too; it is the format's doing, and is mended."""
    x, c = R.normal(size=(4, 8)).astype(F), F(30000)
    nodes = [h.make_node("Mul", ["x", "c"], ["p"], "scale"), h.make_node("Add", ["p", "c"], ["y"], "add")]
    with np.errstate(over="ignore"):
        y = (x.astype(np.float16) * np.float16(c) + np.float16(c)).astype(F)
    if not np.isinf(y).any():
        raise ValueError("nothing passes fp16: nothing is tested")
    got, said = check(assay, nodes, {"c": c}, [x], [{"y": y}], ["y"], False, "--precision", "fp16")
    return [] if got == "unfaithful" and "fp16 ends at 65504" in said and "nodes in fp32" in said else [f"past fp16: {got}\n{said}"]


def main():
    assay = sys.argv[1]
    wrong = past_fp16(assay)
    cases = [beside_one("Elu", True, alpha=0.6), beside_one("Celu", True), beside_one("Selu", True), beside_one("Softplus", False), distances(6), distances(40), printed(), vanished()]
    for name, nodes, constants, inputs, golden, outputs, twin in cases:
        known = [golden(x) for x in inputs]
        if name == "printed" and not any((g["y"] > 0).any() and (g["y"][g["y"] > 0] < 1.1e-38).any() for g in known):
            raise ValueError("no number is below the smallest normal one: nothing is tested")
        if name == "vanished" and not np.isinf(known[0]["y"]).any():
            raise ValueError("nothing vanished: nothing is tested")
        for inner in (False, True) if len(known[0]) > len(outputs) else (False,):
            for what, instead, verdict in (("healthy", {}, "faithful"), ("faulty", twin, "unfaithful")):
                got, said = check(assay, nodes, {**constants, **instead}, inputs, known, outputs, inner)
                if got != verdict:
                    wrong.append(f"{name}, {what}, inner {inner}: {got}\n{said}")
    print("\n".join(wrong) if wrong else "roundings of kernels are none of the export's")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
