#!/usr/bin/env python3
"""Models of few bits beside golden of the float network: test_few_bits.py ASSAY

Limits of five bits between a quantizer and its inverse, by Clip or by Min and Max; weights decoded of codes in groups of rows in any order, with scales of
scales, by a law of magnitudes, of halves of octaves, of blocks with a common exponent, of three levels and three for the rest, of FP8 times a scale; casts
to FP8 and back; products in 16 bits by casts around each, and around one node alone. None is blamed on the export. A wrong bias besides is; so are a
lone pair of casts, and values that are cut by an activation which golden does not have. Choices alike in the first sample do not tell golden's kind; weights that are left in the file as they were do
not make rounding a fault, nor do weights that a rule made.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

import test_decoded as decoded
from test_decoded import BIASES, SIZES, SLOPE, WEIGHTS, X, f32, stored

R = np.random.default_rng(71)


class Graph(decoded.Graph):
    def save(self, path, last):
        graph = h.make_graph(self.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", SIZES[0]])], [h.make_tensor_value_info(last, T.FLOAT, ["n", SIZES[-1]])],
                             self.constants)
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 19)], ir_version=9), path)


# ---- weights ----

def groups_in_any_order(g, w, group=4):
    which = R.permutation(np.arange(len(w)) // group)
    scales = np.stack([np.abs(w[which == k]).max(0) / 7 + 1e-9 for k in range(which.max() + 1)]).astype(f32)
    q = np.clip(np.rint(w / scales[which]), -8, 7).astype(np.int8)
    return g("Mul", g("Cast", q, to=T.FLOAT), g("Gather", scales, which.astype(np.int64), axis=0))


def scales_of_scales(g, w, group=8):
    """Scales are bytes times a half, and all of it is."""
    blocks = w.reshape(-1, group, w.shape[1])
    scale = np.abs(blocks).max(1, keepdims=True) / 7
    top = np.float16(scale.max() / 255)
    small = np.clip(np.rint(scale / top), 1, 255).astype(np.uint8)
    q = np.clip(np.rint(blocks / (small * f32(top))), -8, 7).astype(np.int8)
    half = g("Mul", g("Cast", q, to=T.FLOAT16), g("Mul", g("Cast", small, to=T.FLOAT16), top))
    return g("Cast", g("Reshape", half, np.array(w.shape)), to=T.FLOAT)


def law_of_magnitudes(g, w, mu=255.0):
    """Steps that grow with what they round, as in telephony."""
    most = np.abs(w).max()
    q = np.rint(31 * np.sign(w) * np.log1p(mu * np.abs(w) / most) / np.log1p(mu)).astype(np.int8)
    c = g("Cast", q, to=T.FLOAT)
    size = g("Div", g("Sub", g("Pow", f32(1 + mu), g("Div", g("Abs", c), f32(31))), f32(1)), f32(mu / most))
    return g("Mul", g("Sign", c), size)


def halves_of_octaves(g, w):
    most = np.abs(w).max(0, keepdims=True).astype(f32)
    e = np.clip(np.rint(2 * np.log2(np.maximum(np.abs(w) / most, 1e-9))), -15, 0).astype(np.int8)
    sign = g("Sub", g("Mul", g("Cast", w > 0, to=T.FLOAT), f32(2)), f32(1))
    return g("Mul", g("Mul", sign, g("Pow", f32(2), g("Mul", g("Cast", e, to=T.FLOAT), f32(0.5)))), most)


def common_exponents(g, w, group=8):
    blocks = w.reshape(-1, group, w.shape[1])
    e = np.ceil(np.log2(np.abs(blocks).max(1, keepdims=True))).astype(np.int8)
    q = np.clip(np.rint(blocks / 2.0 ** (e - 4)), -15, 15).astype(np.int8)
    scale = g("Pow", f32(2), g("Sub", g("Cast", e, to=T.FLOAT), f32(4)))
    return g("Reshape", g("Mul", g("Cast", q, to=T.FLOAT), scale), np.array(w.shape))


def three_and_the_rest(g, w):
    """Three levels, three more for what they leave, and again."""
    parts, rest, scale = [], w.astype(np.float64), (2 * np.abs(w).max(0)).astype(f32)
    for _ in range(3):
        scale = (scale / f32(3)).astype(f32)
        q = np.clip(np.rint(rest / scale), -1, 1)
        rest = rest - q * scale
        parts.append(g("Mul", g("Cast", q.astype(np.int8), to=T.FLOAT), scale))
    return g("Add", g("Add", parts[0], parts[1]), parts[2])


def small_floats(g, w):
    scale = np.abs(w).max(0) / f32(448)
    small = h.make_tensor(f"small{len(g.constants)}", T.FLOAT8E4M3FN, w.shape, (w / scale).reshape(-1))
    g.constants.append(small)
    return g("Mul", g("Cast", small.name, to=T.FLOAT), scale.astype(f32))


# ---- values ----

def as_it_is(g, x, most):
    return x


def five_bits(g, x, most):
    scale, zero = f32(0.9 * most / 15), np.int8(0)
    q = g("Clip", g("QuantizeLinear", x, scale, zero), np.int8(-16), np.int8(15))
    return g("DequantizeLinear", q, scale, zero)


def five_bits_by_min(g, x, most):
    """Without a sign, from 0 to 31."""
    scale, zero = f32(1.8 * most / 31), np.uint8(15)
    q = g("Max", g("Min", np.uint8(31), g("QuantizeLinear", x, scale, zero)), np.uint8(0))
    return g("DequantizeLinear", q, scale, zero)


def by_small_floats(g, x, most):
    scale = f32(most / 448)
    return g("Mul", g("Cast", g("Cast", g("Div", x, scale), to=T.FLOAT8E4M3FN), to=T.FLOAT), scale)


def through(to):
    return lambda g, x, most: g("Cast", g("Cast", x, to=to), to=T.FLOAT)


WAYS = {"any_order": (groups_in_any_order, as_it_is), "scales_of_scales": (scales_of_scales, as_it_is), "law": (law_of_magnitudes, as_it_is),
        "octaves": (halves_of_octaves, as_it_is), "blocks": (common_exponents, as_it_is), "rest": (three_and_the_rest, as_it_is), "fp8_weights": (small_floats, as_it_is),
        "fp8_all": (small_floats, by_small_floats), "five_bits": (stored, five_bits), "five_by_min": (stored, five_bits_by_min), "fp8_values": (stored, by_small_floats),
        "autocast": (stored, through(T.FLOAT16)), "autocast_bf16": (stored, through(T.BFLOAT16))}


def build(path, weight, value, biases=BIASES, around=None, cut=None, left=False, only=None):
    """only: this product's weight is rounded; around: casts on both sides of this product, "after": behind it alone; cut: behind the first layer; left: the float weights are in the file, too."""
    g, at, made = Graph(), "x", decoded.values(WEIGHTS)
    for i, (w, b) in enumerate(zip(WEIGHTS, biases)):
        at = value(g, at, float(np.abs(made[f"t{i - 1}"] if i else X).max()))
        if around == i:
            at = through(T.BFLOAT16)(g, at, 0)
        if left:
            g.constants.append(nh.from_array(w, f"layer{i}.weight"))
        at = g("MatMul", at, (weight if only in (None, i) else stored)(g, w), name=f"product{i}")
        if around in (i, f"after{i}"):
            at = through(T.BFLOAT16)(g, at, 0)
        at = g("Add", at, b, name=f"bias{i}", out=f"a{i}")
        if i + 1 < len(biases):
            at = g("LeakyRelu", at, name=f"leaky{i}", out=f"t{i}", alpha=SLOPE)
        if cut and not i:
            at = cut(g, at, float(np.abs(made["t0"]).max()))
    g.save(path, at)


def cut_by_activation(g, x, most):
    """The integers are cut at a number that ends no range of bits."""
    scale = f32(most / 127)
    q = g("Clip", g("QuantizeLinear", x, scale, np.int8(0), name="cut_quantizer"), np.int8(-21), np.int8(21), name="cut")
    return g("DequantizeLinear", q, scale, np.int8(0), name="cut_dequantizer")


def models():
    """(model, golden, whether the export is to blame)."""
    rows = []
    for name, (weight, value) in WAYS.items():
        build(f"{name}.onnx", weight, value)
        build(f"{name}_bias.onnx", weight, value, decoded.wrong_bias())
        rows += [(f"{name}.onnx", golden, False) for golden in ("inner.npz", "outputs.npz")] + [(f"{name}_bias.onnx", golden, True) for golden in ("inner.npz", "outputs.npz")]
    build("left.onnx", groups_in_any_order, as_it_is, left=True)
    build("left_of_one.onnx", scales_of_scales, as_it_is, left=True, only=1)
    build("around.onnx", stored, as_it_is, around=1)
    build("lone.onnx", stored, as_it_is, around="after1")
    build("activation.onnx", stored, as_it_is, cut=cut_by_activation)
    rows += [(f"{name}.onnx", golden, False) for name in ("left", "left_of_one", "around") for golden in ("inner.npz", "outputs.npz")]
    return rows + [(f"{name}.onnx", "inner.npz", True) for name in ("lone", "activation")]


def cosines(assay):
    """Weights that a rule made, which were rounded all the same."""
    w = (np.sqrt(2 / 16) * np.cos(np.pi / 16 * (np.arange(16)[:, None] + 0.5) * (np.arange(16) + 0.5))).astype(f32)
    x, g = R.normal(size=(9, 16)).astype(f32), decoded.Graph()
    at = want = "x"
    for i in range(3):
        at = g("Tanh", g("MatMul", at, groups_in_any_order(g, w)), out=f"t{i}")
        want = np.tanh((x if i == 0 else want).astype(np.float64) @ w)
    graph = h.make_graph(g.nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 16])], [h.make_tensor_value_info(at, T.FLOAT, ["n", 16])], g.constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8), "cosines.onnx")
    np.savez("cosines_in.npz", x=x), np.savez("cosines.npz", **{at: want.astype(f32)})
    run, _ = decoded.check(assay, "cosines.onnx", "cosines.npz", "kept", "cosines_in.npz")
    return [] if run.returncode == 0 else [f"cosines: {run.stdout}"]


def choices(assay):
    """A quantized model that gives choices: golden is its own, which the second sample alone tells."""
    nodes = [h.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), h.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]), h.make_node("Greater", ["d", "t"], ["y"])]
    constants = [nh.from_array(np.array(v, t), k) for k, v, t in (("s", 0.1, f32), ("z", 0, np.int8), ("t", 0.25, f32))]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 6])], [h.make_tensor_value_info("y", T.BOOL, [1, 6])], constants)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "choices.onnx")
    os.makedirs("choices_in"), os.makedirs("choices_out")
    for k, x in enumerate(([-1, 0.1, 0.9, 0.5, -0.4, 0], [0.26, 0.24, 0.9, 0.247, -0.4, 0.1], [0.7, 0.9, -2, 1, 0, 0.45])):
        x = np.array([x], f32)
        np.savez(f"choices_in/{k}.npz", x=x)
        np.savez(f"choices_out/{k}.npz", y=f32(np.rint(x / f32(0.1))) * f32(0.1) > f32(0.25) if k != 1 else np.array([[True, False, True, False, False, False]]))
    run, _ = decoded.check(assay, "choices.onnx", "choices_out", "plain", "choices_in")
    return [] if run.returncode == 0 else [f"choices: {run.stdout}"]


def main(assay):
    np.savez("x.npz", x=X)
    made = decoded.values(WEIGHTS)
    np.savez("inner.npz", **made)
    np.savez("outputs.npz", a2=made["a2"])
    failures, rows = choices(assay) + cosines(assay), models()
    for model, golden, faulty in rows:
        run, report = decoded.check(assay, model, golden, "" if faulty else "kept")
        if (report["blame"] == "export") != faulty or bool(report.get("culprits")) and not faulty:
            failures.append(f"check {model} --golden {golden}: blame {report['blame']}\n{run.stdout[:2000]}{run.stderr}")
    print(*failures, f"{len(rows) + 2} checks, {len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
