#!/usr/bin/env python3
"""Weights that are places in a table of a few numbers: test_books.py ASSAY

Such a model against golden of the float network it was made of is as right as its bits allow: no fault of the export,
and the report says what the weights cost. Golden of the model itself is held against it to rounding, so that a small
fault shows; a large one shows against either. A table that is looked up for something else than weights is no book.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(29)
SIZES = [24, 48, 32, 10]
WEIGHTS = [(R.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32) for a, b in zip(SIZES, SIZES[1:])]
BIASES = [(0.3 * R.normal(size=b)).astype(np.float32) for b in SIZES[1:]]
X = R.normal(size=(40, SIZES[0])).astype(np.float32)
# In steps that grow, sorted and not.
T16 = np.sign(np.linspace(-1, 1, 16)) * np.abs(np.linspace(-1, 1, 16)) ** 1.4
BOOKS = {"sorted": T16.astype(np.float32), "shuffled": R.permutation(T16).astype(np.float32),
         "of 256": np.sort(np.tanh(np.linspace(-2, 2, 256))).astype(np.float32)}


def places_of(w, book):
    scale = np.abs(w).max(0, keepdims=True) / np.abs(book).max()
    return np.abs((w / scale)[..., None] - book).argmin(-1), scale.astype(np.float32)


def add_weight(nodes, constants, i, book, packed):
    """Value w<i>: Gather and a scale for each column; packed: two places to a byte, taken apart when it runs."""
    places, scale = places_of(WEIGHTS[i], book)
    constants.append(nh.from_array(scale, f"scale{i}"))
    if packed:
        pairs = places.reshape(places.shape[0], -1, 2).astype(np.uint8)
        constants += [nh.from_array(pairs[..., :1] | pairs[..., 1:] << 4, f"bytes{i}"), nh.from_array(np.uint8(15), f"fifteen{i}"),
                      nh.from_array(np.uint8(4), f"four{i}"), nh.from_array(np.array(places.shape), f"shape{i}")]
        nodes += [h.make_node("BitwiseAnd", [f"bytes{i}", f"fifteen{i}"], [f"low{i}"]),
                  h.make_node("BitShift", [f"bytes{i}", f"four{i}"], [f"high{i}"], direction="RIGHT"),
                  h.make_node("Concat", [f"low{i}", f"high{i}"], [f"pairs{i}"], axis=2),
                  h.make_node("Reshape", [f"pairs{i}", f"shape{i}"], [f"flat{i}"]),
                  h.make_node("Cast", [f"flat{i}"], [f"places{i}"], to=T.INT64)]
    else:
        constants.append(nh.from_array(places, f"places{i}"))
    nodes += [h.make_node("Gather", ["book", f"places{i}"], [f"looked_up{i}"], name=f"look_up{i}"),
              h.make_node("Mul", [f"looked_up{i}", f"scale{i}"], [f"w{i}"], name=f"scale{i}")]


def write_model(path, book, packed=False, biases=BIASES, gelu=None):
    """gelu: its approximation, in place of Tanh."""
    nodes, constants, at = [], [nh.from_array(book, "book")], "x"
    for i, bias in enumerate(biases):
        add_weight(nodes, constants, i, book, packed)
        constants.append(nh.from_array(bias, f"b{i}"))
        nodes += [h.make_node("MatMul", [at, f"w{i}"], [f"m{i}"], name=f"product{i}"),
                  h.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"], name=f"bias{i}")]
        at = f"a{i}"
        if i + 1 < len(biases):
            nodes.append(h.make_node("Gelu", [at], [f"t{i}"], name=f"gelu{i}", approximate=gelu) if gelu else
                         h.make_node("Tanh", [at], [f"t{i}"], name=f"tanh{i}"))
            at = f"t{i}"
    save(path, nodes, constants, SIZES[0], at, SIZES[-1])


def save(path, nodes, constants, n_in, out, n_out):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", n_in])], [h.make_tensor_value_info(out, T.FLOAT, ["n", n_out])],
                         constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9), path)


def exact_gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def values(weights, function=np.tanh):
    made, x = {}, X.astype(np.float64)
    for i, (w, b) in enumerate(zip(weights, BIASES)):
        made[f"m{i}"] = x @ w
        made[f"a{i}"] = x = made[f"m{i}"] + b
        if i + 1 < len(weights):
            made[f"t{i}"] = x = function(x)
    return {name: v.astype(np.float32) for name, v in made.items()}


def write_golden(name, weights, function=np.tanh):
    made = values(weights, function)
    np.savez(f"{name}_inner.npz", **made)
    np.savez(f"{name}_outputs.npz", **{f"a{len(weights) - 1}": made[f"a{len(weights) - 1}"]})


# A table of numbers, one for each distance, added to scores: no weights.
DISTANCES = (0.5 * R.normal(size=2 * SIZES[-1] - 1)).astype(np.float32)
PLACES = np.arange(SIZES[-1])[:, None] - np.arange(SIZES[-1]) + SIZES[-1] - 1


def write_distances(path, distances):
    nodes = [h.make_node("MatMul", ["x", "w"], ["m"], name="product"), h.make_node("Gather", ["distances", "places"], ["d"], name="distances"),
             h.make_node("Unsqueeze", ["m", "one"], ["u"]), h.make_node("Add", ["u", "d"], ["s"], name="scores"),
             h.make_node("ReduceLogSumExp", ["s", "two"], ["y"], keepdims=0)]
    constants = [nh.from_array(WEIGHTS[0][:, :SIZES[-1]], "w"), nh.from_array(distances, "distances"), nh.from_array(PLACES, "places"),
                 nh.from_array(np.array([1]), "one"), nh.from_array(np.array([2]), "two")]
    save(path, nodes, constants, SIZES[0], "y", SIZES[-1])
    scores = (X.astype(np.float64) @ WEIGHTS[0][:, :SIZES[-1]])[:, None] + DISTANCES[PLACES]
    np.savez("distances_outputs.npz", y=np.log(np.exp(scores).sum(2)).astype(np.float32))


def write_heads(k):
    """Two heads, one without a book: the other one gives a single number, which any draw may be near to or far from."""
    random = np.random.default_rng(100 + k)
    w = (random.normal(size=(SIZES[0], 12)) / 5).astype(np.float32)
    plain = (random.normal(size=(SIZES[0], 1)) / 5).astype(np.float32)
    years = (5 * np.arange(12, dtype=np.float32))[:, None]
    places, scale = places_of(w, BOOKS["sorted"])
    nodes = [h.make_node("Gather", ["book", "places"], ["looked_up"], name="look_up"), h.make_node("Mul", ["looked_up", "scale"], ["w"], name="scale"),
             h.make_node("MatMul", ["x", "w"], ["scores"], name="product"), h.make_node("Softmax", ["scores"], ["shares"], axis=-1),
             h.make_node("MatMul", ["shares", "years"], ["age"], name="age"), h.make_node("MatMul", ["x", "plain"], ["other"], name="other")]
    constants = [nh.from_array(a, n) for a, n in ((BOOKS["sorted"], "book"), (places, "places"), (scale, "scale"), (years, "years"), (plain, "plain"))]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", SIZES[0]])],
                         [h.make_tensor_value_info(n, T.FLOAT, ["n", 1]) for n in ("age", "other")], constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9), f"heads{k}.onnx")
    x = X[:1].astype(np.float64)
    e = np.exp(x @ w)
    np.savez(f"heads{k}_outputs.npz", age=(e / e.sum(1, keepdims=True) @ years).astype(np.float32), other=(x @ plain).astype(np.float32))
    return (f"heads{k}.onnx", f"heads{k}_outputs.npz", True, None)


def check(assay, model, golden):
    inputs = "x1.npz" if model.startswith("heads") else "x.npz"
    run = subprocess.run([assay, "check", model, "-i", inputs, "--golden", golden, "--search-time", "3", "--json", "r.json"], capture_output=True,
                         text=True, timeout=120, check=False)
    with open("r.json", encoding="utf-8") as f:
        return run, json.load(f)


def main(assay):
    np.savez("x.npz", x=X)
    np.savez("x1.npz", x=X[:1])
    write_golden("float", WEIGHTS)
    rows = []
    for name, book in BOOKS.items():
        own = [book[p] * s for p, s in (places_of(w, book) for w in WEIGHTS)]
        model, kind = f"{name.replace(' ', '_')}.onnx", name.replace(" ", "_")
        write_golden(kind, own)
        write_model(model, book)
        rows += [(model, f"{g}_{which}.npz", True, None) for g in ("float", kind) for which in ("outputs", "inner")]
    write_model("packed.onnx", BOOKS["sorted"], packed=True)
    rows += [("packed.onnx", "float_outputs.npz", True, None), ("packed.onnx", "float_inner.npz", True, None)]
    slightly, lost = [b.copy() for b in BIASES], [b.copy() for b in BIASES]
    slightly[1] = slightly[1] * np.float32(1.002)
    lost[0][:] = 0
    write_model("slightly.onnx", BOOKS["of 256"], biases=slightly)
    write_model("lost.onnx", BOOKS["of 256"], biases=lost)
    rows += [("slightly.onnx", "of_256_inner.npz", False, "bias1"), ("lost.onnx", "float_inner.npz", False, "bias0"),
             ("lost.onnx", "of_256_inner.npz", False, "bias0"), ("lost.onnx", "float_outputs.npz", False, None)]
    # Less than the books may cost, but a repair brings golden back to rounding: so it is the model's own.
    write_golden("gelu", [BOOKS["sorted"][p] * s for p, s in (places_of(w, BOOKS["sorted"]) for w in WEIGHTS)], exact_gelu)
    write_model("gelu.onnx", BOOKS["sorted"], gelu="tanh")
    rows.append(("gelu.onnx", "gelu_outputs.npz", False, "gelu"))
    other = DISTANCES.copy()
    other[7] += np.float32(0.02)
    write_distances("distances.onnx", other)
    rows.append(("distances.onnx", "distances_outputs.npz", False, None))
    rows += [write_heads(k) for k in range(12)]
    failures = 0
    for model, golden, faithful, blamed in rows:
        run, report = check(assay, model, golden)
        wrong = []
        if run.returncode != (0 if faithful else 1):
            wrong.append(f"exit code {run.returncode}")
        if faithful and (report.get("culprits") or report.get("export", {}).get("nodes")):
            wrong.append("something is blamed")
        if faithful and golden.startswith("float") and "weights of a few numbers leave SNR" not in run.stdout:
            wrong.append("what the weights cost is not said")
        if blamed and blamed not in run.stdout:
            wrong.append(f"{blamed} is not named")
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
