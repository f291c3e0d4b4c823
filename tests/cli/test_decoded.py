#!/usr/bin/env python3
"""Quantization that a graph spells out: test_decoded.py ASSAY

Weights that nodes decode of stored codes (two levels of single bits, three levels, nibbles of a wide integer with zero points for groups, exponents),
or round themselves; values that nodes quantize at run (with offsets, by channel, through integers, by the largest number of each row). Golden of the
float network is not blamed on the export, and the report calls it quantization. A wrong bias besides is found; golden of the quantized network itself
is the model's own. One decoded weight is enough. Rounding that is no quantizer, and constants that a rule makes in the graph, excuse nothing.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(59)
SIZES = [32, 48, 64, 16]
WEIGHTS = [(R.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32) for a, b in zip(SIZES, SIZES[1:])]
BIASES = [(0.4 * R.normal(size=b)).astype(np.float32) for b in SIZES[1:]]
X = R.normal(size=(24, SIZES[0])).astype(np.float32)
SLOPE = 0.1


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def __call__(self, kind, *inputs, name=None, out=None, **attributes):
        out = out or f"v{len(self.nodes)}"
        self.nodes.append(h.make_node(kind, [self.constant(i) if not isinstance(i, str) else i for i in inputs], [out], name=name or f"n{len(self.nodes)}", **attributes))
        return out

    def constant(self, a):
        name = f"c{len(self.constants)}"
        self.constants.append(nh.from_array(np.asarray(a), name))
        return name

    def save(self, path, last):
        graph = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", SIZES[0]])], [h.make_tensor_value_info(last, T.FLOAT, ["n", SIZES[-1]])],
                             self.constants)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8), path)


f32 = np.float32


# ---- weights ----

def two_levels(g, w):
    """Eight signs in a byte, taken apart by division and remainder."""
    bits = np.packbits(w > 0, axis=0, bitorder="little").astype(np.int32)
    parts = g("Mod", g("Div", g("Unsqueeze", bits, np.array([1])), (2 ** np.arange(8, dtype=np.int32)).reshape(1, 8, 1)), np.int32(2))
    is_one = g("Equal", g("Reshape", parts, np.array(w.shape)), np.int32(1))
    alpha = np.abs(w).mean(0, keepdims=True)
    return g("Where", is_one, alpha, -alpha)


def three_levels(g, w):
    q = np.where(np.abs(w) > 0.7 * np.abs(w).mean(0), np.sign(w), 0)
    scale = (np.abs(w) * (q != 0)).sum(0) / (q != 0).sum(0)
    return g("Mul", g("Cast", q.astype(np.int8), to=T.FLOAT), scale.astype(f32))


def nibbles_of_words(g, w, group=16):
    """GPTQ: eight rows in a word of 32 bits, shifted and masked; scales and zero points for groups of rows, by a row's group."""
    rows = w.reshape(-1, group, w.shape[1])
    low, high = rows.min(1), rows.max(1)
    scale = ((high - low) / 15).astype(f32)
    zero = np.rint(-low / scale).astype(f32)
    q = np.clip(np.rint(rows / scale[:, None] + zero[:, None]), 0, 15).astype(np.uint32).reshape(-1, 8, w.shape[1])
    words = (q << (4 * np.arange(8, dtype=np.uint32)).reshape(1, 8, 1)).sum(1).astype(np.uint32)
    shifted = g("BitShift", g("Unsqueeze", words, np.array([1])), (4 * np.arange(8, dtype=np.uint32)).reshape(1, 8, 1), direction="RIGHT")
    codes = g("Cast", g("Reshape", g("BitwiseAnd", shifted, np.uint32(15)), np.array(w.shape)), to=T.FLOAT)
    places = g.constant(np.arange(len(w)) // group)
    return g("Mul", g("Sub", codes, g("Gather", zero, places)), g("Gather", scale, places))


def exponents(g, w):
    """A sign and a power of two."""
    e = np.clip(np.rint(np.log2(np.maximum(np.abs(w), 1e-9))), -7, 0)
    return g("Mul", g("Cast", np.sign(w).astype(np.int8), to=T.FLOAT), g("Pow", f32(2), g("Cast", e.astype(np.int8), to=T.FLOAT)))


def mean_of_magnitudes(g, w):
    """BitNet b1.58: three levels that the graph makes of the weights that training left."""
    w = g.constant(w)
    scale = g("Max", g("ReduceMean", g("Abs", w), keepdims=1), f32(1e-5))
    return g("Mul", g("Clip", g("Round", g("Div", w, scale)), f32(-1), f32(1)), scale)


def stored(g, w):
    return g.constant(w)


# ---- values ----

def as_it_is(g, x, most):
    return x


def largest_of_rows(g, x, most):
    """127 over the largest magnitude of each row."""
    scale = g("Div", f32(127), g("Max", g("ReduceMax", g("Abs", x), np.array([1]), keepdims=1), f32(1e-5)))
    return g("Div", g("Clip", g("Round", g("Mul", x, scale)), f32(-128), f32(127)), scale)


def floors(g, x, most, levels=31):
    """An offset, the floor of half more, and cut after."""
    step, zero = f32(2.2 * most / levels), f32(levels // 2)
    q = g("Clip", g("Floor", g("Add", g("Add", g("Mul", x, f32(1 / step)), zero), f32(0.5))), f32(0), f32(levels))
    return g("Mul", g("Sub", q, zero), step)


def through_integers(g, x, most):
    """Steps for channels; what is cut becomes integers, and floats again."""
    step = (most * R.uniform(1, 1.2, SIZES[0]) / 31).astype(f32)
    q = g("Cast", g("Cast", g("Round", g("Clip", g("Div", x, step), f32(-32), f32(31))), to=T.INT8), to=T.FLOAT)
    return g("Mul", q, step)


def straight_through(g, x, most):
    """As training writes it: x plus what rounding changes."""
    step = f32(1.1 * most / 15)
    q = g("Div", x, step)
    return g("Mul", g("Add", q, g("Sub", g("Round", q), q)), step)


WAYS = {"two_levels": (two_levels, as_it_is), "three_levels": (three_levels, as_it_is), "gptq": (nibbles_of_words, as_it_is), "exponents": (exponents, as_it_is),
        "bitnet": (mean_of_magnitudes, largest_of_rows), "rows": (stored, largest_of_rows), "floors": (stored, floors), "integers": (stored, through_integers),
        "straight": (nibbles_of_words, straight_through)}


def build(path, weight, value, biases=BIASES, only=None):
    g, at = Graph(), "x"
    for i, (w, b) in enumerate(zip(WEIGHTS, biases)):
        most = float(np.abs(values(WEIGHTS)[f"t{i - 1}"] if i else X).max())
        if value is not through_integers or not i:
            at = value(g, at, most)
        made = (weight if only in (None, i) else stored)(g, w)
        at = g("Add", g("MatMul", at, made, name=f"product{i}"), b, name=f"bias{i}", out=f"a{i}")
        if i + 1 < len(biases):
            at = g("LeakyRelu", at, name=f"leaky{i}", out=f"t{i}", alpha=SLOPE)
    g.save(path, at)


def values(weights):
    made, x = {}, X.astype(np.float64)
    for i, (w, b) in enumerate(zip(weights, BIASES)):
        made[f"a{i}"] = x = x @ w.astype(np.float64) + b
        if i + 1 < len(weights):
            made[f"t{i}"] = x = np.where(x > 0, x, SLOPE * x)
    return {k: v.astype(f32) for k, v in made.items()}


def wrong_bias():
    out = [b.copy() for b in BIASES]
    out[1] = np.roll(8 * out[1], 1)
    return out


def models():
    """(model, golden, what is right): 'kept' it is quantization, 'plain' golden is the model's own, else what has to be named."""
    rows = []
    for name, (weight, value) in WAYS.items():
        build(f"{name}.onnx", weight, value)
        build(f"{name}_bias.onnx", weight, value, wrong_bias())
        own = onnx.reference.ReferenceEvaluator(f"{name}.onnx").run(None, {"x": X})[0]
        np.savez(f"{name}_own.npz", a2=own)
        rows += [(f"{name}.onnx", "outputs.npz", "kept"), (f"{name}.onnx", "inner.npz", "kept"), (f"{name}.onnx", f"{name}_own.npz", "plain"),
                 (f"{name}_bias.onnx", "inner.npz", "bias1"), (f"{name}_bias.onnx", "outputs.npz", ""), (f"{name}_bias.onnx", f"{name}_own.npz", "")]
    build("one.onnx", nibbles_of_words, as_it_is, only=1)
    rows += [("one.onnx", "outputs.npz", "kept"), ("one.onnx", "inner.npz", "kept")]
    return rows + other()


def other():
    """A pooling matrix that the graph makes of integers, and rounding that nothing undoes, beside a wrong shift."""
    g = Graph()
    pool = g("Mul", g("Cast", g("Equal", g("Div", np.arange(32).reshape(32, 1), np.int64(2)), np.arange(16).reshape(1, 16)), to=T.FLOAT), f32(0.5))
    y = g("MatMul", g("Round", g("Mul", "x", f32(4))), pool)
    g("Add", y, np.linspace(-1, 1, 16).astype(f32) * f32(1.3), name="shift", out="y")
    g.save("other.onnx", "y")
    want = np.rint(4 * X).reshape(len(X), 16, 2).mean(2) + np.linspace(-1, 1, 16).astype(f32)
    np.savez("other.npz", y=want.astype(f32))
    return [("other.onnx", "other.npz", "shift")]


def check(assay, model, golden, right, inputs="x.npz"):
    # Where no place is asked for, how long is searched changes nothing that is judged.
    seconds = "3" if right else "0.5"
    run = subprocess.run([assay, "check", model, "-i", inputs, "--golden", golden, "--search-time", seconds, "--json", "r.json"], capture_output=True, text=True,
                         timeout=120, check=False)
    with open("r.json", encoding="utf-8") as f:
        return run, json.load(f)


def judge(run, report, right):
    rounded = report["export"]["golden_rounded"]
    if right == "plain":
        return [] if run.returncode == 0 and rounded == "none" else ["not faithful as it is"]
    if right == "kept":
        wrong = [] if report["blame"] in ("none", "precision") and not report.get("culprits") else [f"blame {report['blame']}"]
        return wrong + ([] if rounded != "none" and "before quantization rounded its" in run.stdout else ["quantization is not told"])
    wrong = [] if run.returncode == 1 and report["blame"] == "export" else [f"exit code {run.returncode}, blame {report['blame']}"]
    return wrong + ([] if right in run.stdout else [f"{right} is not named"])


def main(assay):
    np.savez("x.npz", x=X)
    made = values(WEIGHTS)
    np.savez("inner.npz", **made)
    np.savez("outputs.npz", a2=made["a2"])
    rows, failures = models(), 0
    for model, golden, right in rows:
        run, report = check(assay, model, golden, right)
        wrong = judge(run, report, right)
        if wrong:
            failures += 1
            print(f"check {model} --golden {golden}: {'; '.join(wrong)}\n{run.stdout[:2000]}{run.stderr}")
    print(f"{len(rows)} checks, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
