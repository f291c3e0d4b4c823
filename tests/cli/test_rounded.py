#!/usr/bin/env python3
"""Weights that were rounded in a type that does not say so: test_rounded.py ASSAY

Float32 constants on a grid (by tensor, by channel, by block, in two parts that are added), of a palette, of few bits, of powers of two, ternary and
binary ones with their scale after the product, and 2:4 sparse ones. Golden of the network before is not blamed on the export, and the report says what
the rounding loses. A wrong constant besides is found, with inner values and without; one whose golden is the rounded network's own is found to
rounding. Constants that a rule made, and one rounded weight among others, excuse nothing.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(41)
SIZES = [24, 48, 64, 12]
WEIGHTS = [(R.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32) for a, b in zip(SIZES, SIZES[1:])]
BIASES = [(0.4 * R.normal(size=b)).astype(np.float32) for b in SIZES[1:]]
X = R.normal(size=(24, SIZES[0])).astype(np.float32)
SLOPE = 0.1


def on_grid(w, bits, axis=None):
    scale = np.abs(w).max(axis, keepdims=axis is not None) / (2 ** (bits - 1) - 1)
    return (np.rint(w / scale) * scale).astype(np.float32)


def by_blocks(w, bits, block):
    return np.concatenate([on_grid(w[i:i + block], bits, 0) for i in range(0, len(w), block)])


def with_offset(w, bits):
    """Steps from the smallest number on: 0 need not be among them."""
    low, step = w.min(0), (w.max(0) - w.min(0)) / (2 ** bits - 1)
    return (np.rint((w - low) / step) * step + low).astype(np.float32)


def palette(w, n):
    numbers = np.quantile(w, (np.arange(n) + 0.5) / n)
    for _ in range(12):
        places = np.abs(w[..., None] - numbers).argmin(-1)
        numbers = np.array([w[places == i].mean() if (places == i).any() else numbers[i] for i in range(n)])
    return numbers[np.abs(w[..., None] - numbers).argmin(-1)].astype(np.float32)


def bits_of(w, bits):
    """The nearest numbers of so many significant bits."""
    m, e = np.frexp(w.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(m, bits)), e - bits).astype(np.float32)


def in_few_bits(w, bits, least, largest, axis=None):
    """A format of so many bits with its hidden one, whose smallest number is 2^least, times a scale of the tensor or of each index along the other axis."""
    scale = (np.abs(w).max(axis, keepdims=axis is not None) / largest).astype(np.float32)
    x = (w / scale).astype(np.float64)
    step = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 1e-30))) - bits + 1, least))
    return (np.clip(np.rint(x / step) * step, -largest, largest).astype(np.float32) * scale).astype(np.float32)


def cut(w):
    """bfloat16 by the first half of each float's bytes."""
    return (w.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def powers(w, terms):
    """Sums of so many powers of two, the largest of which is 1 and the smallest 1/128."""
    out, left = np.zeros_like(w), w.copy()
    for _ in range(terms):
        e = np.clip(np.rint(np.log2(np.maximum(np.abs(left), 1e-9))), -7, 0)
        term = np.where(np.abs(left) > 2.0 ** -8, np.sign(left) * 2.0 ** e, 0).astype(np.float32)
        out, left = out + term, left - term
    return out


def sparse(w):
    """The two smallest of each four inputs are 0."""
    groups = w.reshape(-1, 4, w.shape[1]).copy()
    order = np.abs(groups).argsort(1)
    np.put_along_axis(groups, order[:, :2], 0, 1)
    return groups.reshape(w.shape)


def signs(w, least):
    """-1, 0, 1 and a scale for each column."""
    t = np.where(np.abs(w) > least * np.abs(w).mean(0), np.sign(w), 0).astype(np.float32)
    return t, ((np.abs(w) * (t != 0)).sum(0) / (t != 0).sum(0)).astype(np.float32)


def both_parts(w):
    """Two parts in one constant."""
    coarse = on_grid(w, 4)
    return coarse + on_grid(w - coarse, 4)


WAYS = {"both_parts": both_parts, "tensor8": lambda w: on_grid(w, 8), "channel8": lambda w: on_grid(w, 8, 0), "channel4": lambda w: on_grid(w, 4, 0),
        "tensor16": lambda w: on_grid(w, 12), "block4": lambda w: by_blocks(w, 4, 16), "offset4": lambda w: with_offset(w, 4),
        "palette16": lambda w: palette(w, 16), "bf16": lambda w: bits_of(w, 8), "cut16": cut, "fp16": lambda w: bits_of(w, 11), "fp8": lambda w: bits_of(w, 4),
        "powers": lambda w: powers(w, 1), "two_powers": lambda w: powers(w, 2), "sparse": sparse,
        "e4m3_channel": lambda w: in_few_bits(w, 4, -9, 448, 0), "e4m3_tensor": lambda w: in_few_bits(w, 4, -9, 448), "e5m2_channel": lambda w: in_few_bits(w, 3, -16, 57344, 0),
        "fp6_row": lambda w: in_few_bits(w, 3, -4, 28, 1), "e4m3_block": lambda w: np.concatenate([in_few_bits(w[i:i + 16], 4, -9, 448, 0) for i in range(0, len(w), 16)])}


def save(path, parts, biases, slope=SLOPE, opset=17):
    """parts: of each layer, the weights whose products are added, and the scale after them or None."""
    nodes, constants, at = [], [], "x"
    for i, ((weights, scale), bias) in enumerate(zip(parts, biases)):
        for k, w in enumerate(weights):
            constants.append(nh.from_array(w, f"w{i}_{k}"))
            nodes.append(h.make_node("MatMul", [at, f"w{i}_{k}"], [f"p{i}_{k}"], name=f"product{i}_{k}"))
        last = f"p{i}_0"
        if len(weights) > 1:
            nodes.append(h.make_node("Add", [f"p{i}_0", f"p{i}_1"], [f"s{i}"], name=f"parts{i}"))
            last = f"s{i}"
        if scale is not None:
            constants.append(nh.from_array(scale, f"scale{i}"))
            nodes.append(h.make_node("Mul", [last, f"scale{i}"], [f"m{i}"], name=f"scaling{i}"))
            last = f"m{i}"
        constants.append(nh.from_array(bias, f"b{i}"))
        nodes.append(h.make_node("Add", [last, f"b{i}"], [f"a{i}"], name=f"bias{i}"))
        at = f"a{i}"
        if i + 1 < len(biases):
            nodes.append(h.make_node("LeakyRelu", [at], [f"t{i}"], name=f"leaky{i}", alpha=slope))
            at = f"t{i}"
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", SIZES[0]])],
                         [h.make_tensor_value_info(at, T.FLOAT, ["n", SIZES[-1]])], constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8), path)


def write_golden(name, weights):
    made, x = {}, X.astype(np.float64)
    for i, (w, b) in enumerate(zip(weights, BIASES)):
        made[f"a{i}"] = x = x @ w.astype(np.float64) + b
        if i + 1 < len(weights):
            made[f"t{i}"] = x = np.where(x > 0, x, SLOPE * x)
    made = {k: v.astype(np.float32) for k, v in made.items()}
    np.savez(f"{name}_inner.npz", **made)
    np.savez(f"{name}_outputs.npz", **{f"a{len(weights) - 1}": made[f"a{len(weights) - 1}"]})


def wrong_bias():
    out = [b.copy() for b in BIASES]
    out[1] = np.roll(8 * out[1], 1)
    return out


def models():
    """(model, golden, what is right): 'kept' nothing is blamed on the export and the loss is told, else what has to be named."""
    rows = []
    for name, function in WAYS.items():
        parts = [([function(w)], None) for w in WEIGHTS]
        save(f"{name}.onnx", parts, BIASES)
        save(f"{name}_bias.onnx", parts, wrong_bias())
        rows += [(f"{name}.onnx", "float_outputs.npz", "kept"), (f"{name}.onnx", "float_inner.npz", "kept"),
                 (f"{name}_bias.onnx", "float_inner.npz", "bias1"), (f"{name}_bias.onnx", "float_outputs.npz", "")]
    halves = []
    for w in WEIGHTS:
        coarse = on_grid(w, 4)
        halves.append(([coarse, on_grid(w - coarse, 4)], None))
    save("halves.onnx", halves, BIASES)
    save("halves_bias.onnx", halves, wrong_bias())
    rows += [("halves.onnx", "float_outputs.npz", "kept"), ("halves.onnx", "float_inner.npz", "kept"), ("halves_bias.onnx", "float_outputs.npz", ""),
             ("halves_bias.onnx", "float_inner.npz", "bias1")]
    for name, least in (("ternary", 0.7), ("binary", 0)):
        parts = [([t], scale) for t, scale in (signs(w, least) for w in WEIGHTS)]
        save(f"{name}.onnx", parts, BIASES)
        rows += [(f"{name}.onnx", "float_outputs.npz", "kept"), (f"{name}.onnx", "float_inner.npz", "kept")]
    # Golden of the rounded network itself: a fault that is smaller than the rounding, which a repair proves.
    own = [on_grid(w, 4, 0) for w in WEIGHTS]
    write_golden("own", own)
    save("own_slope.onnx", [([w], None) for w in own], BIASES, slope=0.01)
    save("own.onnx", [([w], None) for w in own], BIASES)
    rows += [("own.onnx", "own_outputs.npz", "plain"), ("own_slope.onnx", "own_outputs.npz", "leaky"), ("own_slope.onnx", "own_inner.npz", "leaky0")]
    # One weight among others is nobody's choice; nor are the digits of a text.
    save("one.onnx", [([on_grid(w, 6)] if i == 1 else [w], None) for i, w in enumerate(WEIGHTS)], BIASES)
    save("text.onnx", [([np.round(w, 2)], None) for w in WEIGHTS], BIASES)
    rows += [("one.onnx", "float_inner.npz", "bias1"), ("text.onnx", "float_outputs.npz", "")]
    return rows + designed() + convolutions()


def designed():
    """Constants that a rule made: what differs is a fault, not their rounding."""
    hadamard = np.array([[1]])
    while len(hadamard) < 16:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    pooling = np.kron(np.eye(8), np.full((2, 1), 0.5))
    cosine = np.cos(np.pi / 8 * (np.arange(8)[:, None] + 0.5) * np.arange(8))
    table = (np.arange(64).reshape(8, 8) % 7 == np.arange(8)).astype(np.float32)
    constants = [hadamard / 4, pooling, cosine, table]
    x = R.normal(size=(24, 16)).astype(np.float32)
    y, nodes, at = x.astype(np.float64), [], "x"
    for i, c in enumerate(constants):
        y = y @ c.astype(np.float32)
        nodes.append(h.make_node("MatMul", [at, f"c{i}"], [f"y{i}"], name=f"rule{i}"))
        at = f"y{i}"
    shift = np.linspace(-1, 1, 8).astype(np.float32)
    nodes.append(h.make_node("Add", [at, "shift"], ["y"], name="shift"))
    names = [nh.from_array(c.astype(np.float32), f"c{i}") for i, c in enumerate(constants)] + [nh.from_array(shift * np.float32(1.3), "shift")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 16])], [h.make_tensor_value_info("y", T.FLOAT, ["n", 8])], names)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "designed.onnx")
    np.savez("x16.npz", x=x)
    np.savez("designed_outputs.npz", y=(y + shift).astype(np.float32))
    return [("designed.onnx", "designed_outputs.npz", "shift")]


def convolutions():
    """The same of convolutions, a scale for each filter; their golden is made by the operators' definition, in float64."""
    weights = [(R.normal(size=s) / np.sqrt(np.prod(s[1:]))).astype(np.float32) for s in ((8, 3, 3, 3), (12, 8, 3, 3), (8, 12, 3, 3))]
    x = R.normal(size=(6, 3, 8, 8)).astype(np.float32)
    np.savez("x3.npz", x=x)

    def by_filter(w, bits):
        return np.stack([on_grid(f, bits) for f in w])

    def write(path, some, slope):
        nodes, constants, at = [], [], "x"
        for i, w in enumerate(some):
            constants.append(nh.from_array(w, f"w{i}"))
            nodes.append(h.make_node("Conv", [at, f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]))
            nodes.append(h.make_node("LeakyRelu", [f"c{i}"], [f"r{i}"], name=f"leaky{i}", alpha=slope))
            at = f"r{i}"
        nodes.append(h.make_node("GlobalAveragePool", [at], ["y"], name="pool"))
        graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 3, 8, 8])],
                             [h.make_tensor_value_info("y", T.FLOAT, ["n", 8, 1, 1])], constants)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)

    def golden(path, some):
        y = x.astype(np.float64)
        for w in some:
            padded = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))
            windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
            y = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64))
            y = np.where(y > 0, y, SLOPE * y)
        np.savez(path, y=y.mean((2, 3), keepdims=True).astype(np.float32))

    eight, four = [by_filter(w, 8) for w in weights], [by_filter(w, 4) for w in weights]
    golden("conv_float.npz", weights)
    golden("conv_own.npz", four)
    for name, some, slope in (("conv8", eight, SLOPE), ("conv8_slope", eight, 3 * SLOPE), ("conv4", four, SLOPE), ("conv4_slope", four, 1.3 * SLOPE)):
        write(f"{name}.onnx", some, slope)
    return [("conv8.onnx", "conv_float.npz", "kept"), ("conv4.onnx", "conv_float.npz", "kept"), ("conv8_slope.onnx", "conv_float.npz", "leaky"),
            ("conv4.onnx", "conv_own.npz", "plain"), ("conv4_slope.onnx", "conv_own.npz", "leaky")]


def check(assay, model, golden, right):
    # Where no place is asked for, how long is searched changes nothing that is judged.
    seconds = "3" if right else "0.5"
    inputs = "x16.npz" if model == "designed.onnx" else "x3.npz" if model.startswith("conv") else "x.npz"
    run = subprocess.run([assay, "check", model, "-i", inputs, "--golden", golden, "--search-time", seconds, "--json", "r.json"], capture_output=True,
                         text=True, timeout=120, check=False)
    with open("r.json", encoding="utf-8") as f:
        return run, json.load(f)


def judge(run, report, right):
    rounded = report["export"]["golden_rounded"]
    if right == "plain":
        return [] if run.returncode == 0 and rounded == "none" else ["not faithful as it is"]
    if right == "kept":
        wrong = [] if report["blame"] in ("none", "precision") and not report.get("culprits") else [f"blame {report['blame']}"]
        return wrong + ([] if rounded != "none" and "the rounding of weights leaves SNR" in run.stdout else ["the loss is not told"])
    wrong = [] if run.returncode == 1 and report["blame"] == "export" else [f"exit code {run.returncode}, blame {report['blame']}"]
    return wrong + ([] if right in run.stdout else [f"{right} is not named"])


def main(assay):
    np.savez("x.npz", x=X)
    write_golden("float", WEIGHTS)
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
