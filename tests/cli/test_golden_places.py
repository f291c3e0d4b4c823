#!/usr/bin/env python3
"""Golden in which single places of the network have few bits, all else is float32: test_golden_places.py ASSAY

Shares of attention (a Softmax, and e^x divided by its sum), keys and values in 16 and in 8 bits, scores, what products read but for weights, rows of a table,
what a normalization gives, inputs, also of a network without products: none of these is a fault of the export, with inner values and without, and the
report names the place. Of each, a fault on top is one; values that were changed by as much, by chance, are a fault.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from test_golden_arithmetic import R, ROUND, check, draw

ROWS, WIDTH, SAMPLES = 8, 12, 4


def eighth_bits(x):
    """E4M3: three bits behind the point, steps of 2^-9 below 2^-6."""
    two = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(x.astype(np.float64)), 2.0**-20))), -6) - 3)
    return (np.round(x / two) * two).astype(np.float32)


ROUNDED = {**ROUND, "fp8": eighth_bits}


def constants():
    c = {k: draw((WIDTH, WIDTH), WIDTH) for k in ("wq", "wk", "wv", "wo")}
    return {**c, "table": draw((9, WIDTH), 2), "scale": (1 + 0.2 * draw(WIDTH, 2)).astype(np.float32), "shift": draw(WIDTH, 8), "root": np.float32(WIDTH**-0.5),
            "head": draw((WIDTH, 6), WIDTH), "ids": (np.arange(ROWS) * 5 % 9).astype(np.int64)}


def saver(written):
    def save(path, c, rows):
        softmax = [h.make_node("Exp", ["scores"], ["powers"], "exp"), h.make_node("ReduceSum", ["powers", "last"], ["total"], "total"),
                   h.make_node("Div", ["powers", "total"], ["shares"], "divide")] if written else [h.make_node("Softmax", ["scores"], ["shares"], "softmax", axis=-1)]
        nodes = [h.make_node("Gather", ["table", "ids"], ["rows"], "rows"), h.make_node("Add", ["x", "rows"], ["placed"], "place"),
                 h.make_node("LayerNormalization", ["placed", "scale", "shift"], ["normal"], "norm"),
                 *(h.make_node("MatMul", ["normal", "w" + k], [k], k) for k in "qkv"), h.make_node("Transpose", ["k"], ["kt"], "turn", perm=[0, 2, 1]),
                 h.make_node("MatMul", ["q", "kt"], ["dots"], "dots"), h.make_node("Mul", ["dots", "root"], ["scores"], "scale"), *softmax,
                 h.make_node("MatMul", ["shares", "v"], ["mixed"], "mix"), h.make_node("MatMul", ["mixed", "wo"], ["o"], "o"),
                 h.make_node("Add", ["placed", "o"], ["sum"], "sum"), h.make_node("MatMul", ["sum", "head"], ["y"], "head")]
        graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [rows, ROWS, WIDTH])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                             [nh.from_array(np.asarray(v), k) for k, v in c.items()] + ([nh.from_array(np.array([-1], np.int64), "last")] if written else []))
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)
    return save


def values(x, c, place="", kind="fp32"):
    f32 = lambda a: a.astype(np.float32)
    at = lambda name, a: ROUNDED[kind](f32(a)) if name == place else f32(a)
    dot = lambda a, b: f32(a.astype(np.float64) @ b.astype(np.float64))
    layer = lambda a, w: dot(at("activations", a), c[w])
    rows = at("tables", c["table"])[c["ids"]]
    placed = at("inputs", x) + rows
    wide = placed.astype(np.float64)
    normal = at("normalizations", (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * c["scale"] + c["shift"])
    q, k, v = (layer(normal, "w" + n) for n in "qkv")
    if place == "activations":
        dots = dot(at(place, q), at(place, k).transpose(0, 2, 1))
    else:
        dots = dot(q, at("keys and values", k).transpose(0, 2, 1))
    scores = f32(dots * c["root"])
    powers = np.exp(at("softmax inputs", scores).astype(np.float64))
    shares = f32(powers / powers.sum(-1, keepdims=True))
    mixed = dot(at("activations", at("softmax outputs", shares)), at("activations", at("keys and values", v)))
    o = layer(mixed, "wo")
    total = placed + o
    return {"rows": rows, "placed": placed, "normal": normal, "q": q, "k": k, "v": v, "dots": dots, "scores": scores, "shares": shares, "mixed": mixed, "o": o,
            "sum": total, "y": layer(total, "head")}


def save_plain(path, c, rows):
    """A network without products."""
    nodes = [h.make_node("Mul", ["x", "gain"], ["louder"], "gain"), h.make_node("Tanh", ["louder"], ["bent"], "tanh"), h.make_node("Exp", ["bent"], ["powers" if c.get("one") else "y"], "exp")]
    nodes += [h.make_node("ReduceMean", ["powers"], ["y"], "mean", axes=[1], keepdims=0)] if c.get("one") else []
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [rows, 40])], [h.make_tensor_value_info("y", T.FLOAT, None)], [nh.from_array(c["gain"], "gain")])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def plain_values(x, c, kind):
    louder = ROUNDED[kind](x) * c["gain"]
    bent = np.tanh(louder)
    return {"louder": louder, "bent": bent, "y": np.exp(bent).mean(1, dtype=np.float64).astype(np.float32) if c.get("one") else np.exp(bent)}


def main():
    assay, wrong = sys.argv[1], []
    c = constants()
    xs = [R.normal(size=(2, ROWS, WIDTH)).astype(np.float32) for _ in range(SAMPLES)]
    scaled = {**c, "wo": c["wo"] * np.where(np.arange(WIDTH) == 3, 1.5, 1).astype(np.float32)}

    def look(what, model, golden, inner, verdict, kind, node=None, inputs=xs, save=saver(False)):
        report, said = check(assay, model, golden, inputs, inner, save=save, seconds=8 if verdict == "faithful" else 2)
        first, found = (report.get("culprits") or [{}])[0].get("nodes", [None])[0], report["export"]["golden_arithmetic"]
        if report["verdict"] != verdict or (kind and found != kind) or (node and first != node):
            wrong.append(f"{what}, inner {inner}: {report['verdict']}, {found}, {first}, wanted {verdict}, {kind}, {node}\n{said}")

    cases = [("bf16", "softmax outputs"), ("fp16", "softmax outputs"), ("bf16", "softmax inputs"), ("fp8", "keys and values"), ("bf16", "keys and values"),
             ("bf16", "activations"), ("fp16", "inputs"), ("bf16", "tables"), ("fp16", "normalizations")]
    for kind, place in cases:
        golden = [values(x, c, place, kind) for x in xs]
        name = f"{kind} {place}"
        for inner in (False, True):
            look(name, c, golden, inner, "faithful", None if place in ("normalizations", "tables", "activations") else name)
            # One product alone that looks so shows nothing of the network beside a fault.
            look(f"scaled column, {name}", scaled, golden, inner, "unfaithful", None)
    for inner in (False, True):
        look("shares that are divided", c, [values(x, c, "softmax outputs", "bf16") for x in xs], inner, "faithful", "bf16 softmax outputs", save=saver(True))
    # Weights that were changed by as much as bfloat16 changes them, by chance, are a fault.
    noise = {**c, "wv": (c["wv"] * (1 + 2e-3 * R.normal(size=c["wv"].shape))).astype(np.float32)}
    for inner in (False, True):
        look("noise", noise, [values(x, c) for x in xs], inner, "unfaithful", "fp32")
    gain = {"gain": (1 + R.random(40)).astype(np.float32)}
    plain = [R.normal(size=(2, 40)).astype(np.float32) for _ in range(SAMPLES)]
    golden = [plain_values(x, gain, "fp16") for x in plain]
    look("no products", gain, golden, False, "faithful", "fp16 inputs", inputs=plain, save=save_plain)
    look("no products, another gain", {"gain": gain["gain"] * np.where(np.arange(40) == 7, 1.1, 1).astype(np.float32)}, golden, False, "unfaithful", None, inputs=plain, save=save_plain)
    # One number of each sample is as emulated to most of its digits, or by chance as large.
    single = [R.normal(size=(1, 40)).astype(np.float32) for _ in range(6)]
    look("one number", {**gain, "one": True}, [plain_values(x, {**gain, "one": True}, "fp16") for x in single], False, "faithful", "fp16 inputs", inputs=single, save=save_plain)
    noisy = {"gain": (gain["gain"] * (1 + 2e-4 * R.normal(size=40))).astype(np.float32), "one": True}
    look("one number, noise", noisy, [plain_values(x, {**gain, "one": True}, "fp32") for x in single], False, "unfaithful", "fp32", inputs=single, save=save_plain)
    print("\n".join(wrong) if wrong else "golden's places are told")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
