#!/usr/bin/env python3
"""Golden as engines make it, of healthy models: test_golden_engines.py ASSAY

Boxes of several samples, as many in each as were chosen. Scores that are the square root of small logistic values, which
engines give an error that is small beside 1 and not beside them. A fault of such a model is still found, and its repair verified. Inner values of the
float network that its quantized model does not have, and whose names are gone: none is taken for another one. An LSTM whose
`clip` bounds what its gates read, as engines have it.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(5)
BOXES, CLASSES, SAMPLES = 24, 3, 4


def detector(threshold):
    nodes = [h.make_node("MatMul", ["x", "w"], ["logits"], "head"), h.make_node("Sigmoid", ["logits"], ["scores"], "sigmoid"),
             h.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"], "nms")]
    constants = {"w": R.normal(size=(5, BOXES)).astype(np.float32), "most": np.array([6], np.int64),
                 "overlap": np.array([0.5], np.float32), "least": np.array([threshold], np.float32)}
    inputs = [h.make_tensor_value_info("x", T.FLOAT, ["n", CLASSES, 5]), h.make_tensor_value_info("boxes", T.FLOAT, ["n", BOXES, 4])]
    outputs = [h.make_tensor_value_info("scores", T.FLOAT, ["n", CLASSES, BOXES]), h.make_tensor_value_info("chosen", T.INT64, ["m", 3])]
    return nodes, constants, inputs, outputs


def product(shift):
    nodes = [h.make_node("MatMul", ["x", "a"], ["b"], "first"), h.make_node("Add", ["b", "shift"], ["c"], "shift_by"),
             h.make_node("Sigmoid", ["c"], ["p"], "sigmoid"), h.make_node("MatMul", ["x", "d"], ["e"], "second"),
             h.make_node("Sigmoid", ["e"], ["q"], "centre"), h.make_node("Mul", ["p", "q"], ["pq"], "product"),
             h.make_node("Sqrt", ["pq"], ["y"], "root")]
    constants = {"a": R.normal(size=(6, 8)).astype(np.float32), "d": R.normal(size=(6, 8)).astype(np.float32),
                 "shift": np.linspace(shift, 1, 8).astype(np.float32)}
    return nodes, constants, [h.make_tensor_value_info("x", T.FLOAT, ["n", 6])], [h.make_tensor_value_info("y", T.FLOAT, ["n", 8])]


def save(path, parts, **other):
    nodes, constants, inputs, outputs = parts
    graph = h.make_graph(nodes, "g", inputs, outputs, [nh.from_array(v, k) for k, v in {**constants, **other}.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def logistic(x):
    """As engines have it: nothing below what float32 can still take from 1."""
    return np.maximum(1 / (1 + np.exp(-x.astype(np.float64))), 1.5e-8)


def chosen(boxes, scores, most, overlap, least):
    """NonMaxSuppression, one box at a time, in float64."""
    rows = []
    for b, image in enumerate(boxes):
        low, high = np.minimum(image[:, :2], image[:, 2:]), np.maximum(image[:, :2], image[:, 2:])
        area = (high - low).prod(axis=1)
        for c in range(scores.shape[1]):
            kept = []
            for i in np.argsort(-scores[b, c], kind="stable"):
                if scores[b, c, i] <= least or len(kept) == most:
                    break
                shared = [np.maximum(0, np.minimum(high[i], high[k]) - np.maximum(low[i], low[k])).prod() for k in kept]
                if all(s / (area[i] + area[k] - s) <= overlap for s, k in zip(shared, kept)):
                    kept.append(i)
            rows += [(b, c, i) for i in kept]
    return np.array(rows, np.int64).reshape(-1, 3)


def golden_of(inputs, constants):
    if "boxes" not in inputs:
        p, q = logistic(inputs["x"] @ constants["a"] + constants["shift"]), logistic(inputs["x"] @ constants["d"])
        return {"y": np.sqrt(p * q).astype(np.float32)}
    scores = logistic(inputs["x"] @ constants["w"])
    return {"scores": scores.astype(np.float32),
            "chosen": chosen(inputs["boxes"], scores, *(constants[k][0] for k in ("most", "overlap", "least")))}


def draw(parts, k):
    inputs = {"x": R.normal(size=(2, CLASSES, 5) if len(parts[2]) == 2 else (2, 6)).astype(np.float32)}
    if len(parts[2]) == 2:
        corner = R.uniform(0, 1, size=(2, BOXES, 2))
        inputs["boxes"] = np.concatenate([corner, corner + R.uniform(0.2, 0.6, size=corner.shape)], axis=2).astype(np.float32)
    os.makedirs("i", exist_ok=True)
    os.makedirs("g", exist_ok=True)
    np.savez(f"i/{k}.npz", **inputs)
    golden = golden_of(inputs, parts[1])
    np.savez(f"g/{k}.npz", **golden)
    return len(golden.get("chosen", []))


def quantized():
    """Two layers; the zero point of a quantizer stands in for Relu, so that the model has no value before it."""
    w, v, bias = (R.normal(size=n).astype(np.float32) for n in ((12, 16), (16, 5), (16,)))
    x = R.normal(size=(8, 12)).astype(np.float32)
    before = x @ w + 0.2 * bias
    golden = {"before": before, "y": np.maximum(before, 0) @ v}
    nodes, constants = [], {"bias": 0.2 * bias}

    def quantize(name, kind, top):
        constants[name + "_scale"] = np.array(top / np.iinfo(kind).max, np.float32)
        constants[name + "_zero"] = np.array(0, kind)
        ends = [name + "_scale", name + "_zero"]
        nodes.extend([h.make_node("QuantizeLinear", [name, *ends], [name + "_q"], name + "_quantize"),
                      h.make_node("DequantizeLinear", [name + "_q", *ends], [name + "_dq"], name + "_dequantize")])

    def weight(name, values):
        constants[name + "_scale"] = np.array(abs(values).max() / 127, np.float32)
        constants[name + "_q"] = np.round(values / constants[name + "_scale"]).astype(np.int8)
        nodes.append(h.make_node("DequantizeLinear", [name + "_q", name + "_scale"], [name], name + "_dequantize"))

    weight("w", w)
    weight("v", v)
    nodes.append(h.make_node("MatMul", ["x", "w"], ["product"], "first"))
    quantize("product", np.int8, abs(x @ w).max())
    nodes.append(h.make_node("Add", ["product_dq", "bias"], ["sum"], "biased"))
    quantize("sum", np.uint8, before.max())
    nodes.append(h.make_node("MatMul", ["sum_dq", "v"], ["y"], "second"))
    save("quantized.onnx", (nodes, constants, [h.make_tensor_value_info("x", T.FLOAT, ["n", 12])],
                            [h.make_tensor_value_info("y", T.FLOAT, ["n", 5])]))
    np.savez("x.npz", x=x)
    np.savez("y.npz", **golden)
    return ["quantized.onnx", "-i", "x.npz", "-g", "y.npz", "--no-fix"]


def clipped():
    """An LSTM whose cell grows past `clip`, which bounds what gates read and not the cell."""
    steps, batch, width, hidden, clip = 9, 2, 4, 6, 1.0
    w, r, b, p = (R.normal(size=n) for n in ((1, 4 * hidden, width), (1, 4 * hidden, hidden), (1, 8 * hidden), (1, 3 * hidden)))
    w, r, b, p = (x.astype(np.float32) for x in (w, r, b, p))
    x = (2 * R.normal(size=(steps, batch, width))).astype(np.float32)

    def gate(z, kind=lambda v: 1 / (1 + np.exp(-v))):
        return kind(np.clip(z, -clip, clip))

    h_, c, rows, largest = np.zeros((batch, hidden)), np.zeros((batch, hidden)), [], 0
    of_i, of_o, of_f = np.split(p[0].astype(np.float64), 3)
    for step in x.astype(np.float64):
        i, o, f, g = np.split(step @ w[0].T.astype(np.float64) + h_ @ r[0].T + b[0, :4 * hidden] + b[0, 4 * hidden:], 4, axis=1)
        c = gate(f + of_f * c) * c + gate(i + of_i * c) * gate(g, np.tanh)
        h_ = gate(o + of_o * c) * np.tanh(c)
        largest = max(largest, abs(c).max())
        rows.append(h_)
    if largest < 1.2 * clip:
        raise ValueError("no cell is past the clip: nothing is tested")
    node = h.make_node("LSTM", ["x", "w", "r", "b", "", "", "", "p"], ["y"], "lstm", hidden_size=hidden, clip=clip)
    save("clipped.onnx", ([node], {"w": w, "r": r, "b": b, "p": p}, [h.make_tensor_value_info("x", T.FLOAT, x.shape)],
                          [h.make_tensor_value_info("y", T.FLOAT, [steps, 1, batch, hidden])]))
    np.savez("x.npz", x=x)
    np.savez("y.npz", y=np.stack(rows)[:, None].astype(np.float32))
    return ["clipped.onnx", "-i", "x.npz", "-g", "y.npz", "--no-fix"]


def check(assay, arguments):
    return subprocess.run([assay, "check", *arguments], capture_output=True, text=True, timeout=120, check=False)


def main(assay):
    failures = 0
    for name, parts, other in (("boxes", detector(0.55), {"least": np.array([0.8], np.float32)}),
                               ("roots", product(-19), {"shift": np.linspace(-19, 1.1, 8).astype(np.float32)})):
        sizes = {draw(parts, k) for k in range(SAMPLES)}
        if name == "boxes" and len(sizes) < 2:
            raise ValueError("the samples have as many boxes each: nothing is tested")
        save("healthy.onnx", parts)
        save("faulty.onnx", parts, **other)
        for model, code in (("healthy.onnx", 0), ("faulty.onnx", 1)):
            run = check(assay, [model, "-i", "i", "-g", "g", "--no-fix"])
            if run.returncode != code or (code == 1 and "blame   export" not in run.stdout):
                failures += 1
                print(f"{name}, {model}: exit code {run.returncode}\n{run.stdout}{run.stderr}")
        if name == "boxes":  # a repair is held against the boxes of each sample as well
            save("reversed.onnx", parts, w=np.ascontiguousarray(parts[1]["w"][:, ::-1]))
            run = check(assay, ["reversed.onnx", "-i", "i", "-g", "g", "-o", "repaired"])
            if "verified: its truth agrees with golden" not in run.stdout:
                failures += 1
                print(f"reversed: exit code {run.returncode}\n{run.stdout}{run.stderr}")
    run = check(assay, quantized())
    if "export" in run.stdout or "is taken for" in run.stdout + run.stderr:
        failures += 1
        print(f"quantized: exit code {run.returncode}\n{run.stdout}{run.stderr}")
    run = check(assay, clipped())
    if run.returncode:
        failures += 1
        print(f"clipped: exit code {run.returncode}\n{run.stdout}{run.stderr}")
    print(f"7 checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
