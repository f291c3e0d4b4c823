#!/usr/bin/env python3
"""Golden whose weights alone have 16 bits, whose products are three products each, or whose sums have 16 bits: test_golden_arithmetic_parts.py ASSAY

Weights of products, or all constants, in bfloat16 and in float16; operands as sums of two bfloat16 numbers, rounded or cut, of all
products and of matrix products alone; products of float16 that are added up in float16, one, four or eight at a time;
products that the export writes as a Mul and a ReduceSum: none of these is a fault, with inner values and
without, and the report names the arithmetic. Of each, a fault on top is one.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from test_golden_arithmetic import R, ROUND, bits_of, check, constants, conv, draw, network

SAMPLES = 4


def exact(op, a, w):
    return conv(a, w) if op == "Conv" else (a.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)


def three(cut, of=("Conv", "MatMul")):
    """Both operands in two parts; the small parts' product is left out."""
    def product(op, a, w):
        if op not in of:
            return exact(op, a, w)
        (a0, a1), (w0, w1) = ((high, bits_of(v - high, 7, cut)) for v in (a, w) for high in [bits_of(v, 7, cut)])
        return exact(op, a0, w0) + (exact(op, a0, w1) + exact(op, a1, w0))
    return product


def half_sums(many, apart):
    """Products of matrices in float16 whose sums are rounded to it after so many; convolutions in float32."""
    r = ROUND["fp16"]

    def product(op, a, w):
        if op == "Conv":
            return exact(op, a, w)
        a, w, total = r(a), r(w), 0
        for k in range(0, len(w), many):
            part = a[:, k:k + many].astype(np.float64) @ w[k:k + many].astype(np.float64)
            total = r((total + (r(part) if apart else part)).astype(np.float32))
        return total
    return product


def values(x, c, product=exact):
    v = {"x": x, **c}
    for op, names, out in network():
        a = [v[n] for n in names]
        if op == "Conv":
            v[out] = product(op, a[0], a[1]) + a[2][:, None, None]
        elif op == "MatMul":
            v[out] = product(op, a[0], a[1])
        else:
            v[out] = {"Relu": lambda p: np.maximum(p, 0), "Flatten": lambda p: p.reshape(len(p), -1), "Add": lambda p, q: p + q,
                      "Tanh": np.tanh, "Softplus": lambda p: np.log1p(np.exp(p.astype(np.float64))).astype(np.float32)}[op](*a)
    return {out: v[out] for _, _, out in network()}


def stored(c, kind, every):
    return {k: ROUND[kind](a) if every or k[0] in "wv" else a for k, a in c.items()}


# ---- a product that the export writes as a Mul and a ReduceSum ----

def written_constants():
    return {"w": draw((12, 16), 12), "u": draw((1, 16), 4), "v": draw((16, 9), 16), "axis": np.array([1], np.int64)}


def save_written(path, c, rows):
    nodes = [h.make_node("MatMul", ["x", "w"], ["wide"], "wide"), h.make_node("Tanh", ["wide"], ["turned"], "turned"),
             h.make_node("Mul", ["turned", "u"], ["parts"], "parts"), h.make_node("ReduceSum", ["parts", "axis"], ["score"], "score", keepdims=1),
             h.make_node("MatMul", ["turned", "v"], ["other"], "other"), h.make_node("Mul", ["other", "score"], ["y"], "y")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [rows, 12])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                         [nh.from_array(v, k) for k, v in c.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def written_values(x, c):
    r = ROUND["bf16"]
    dot = lambda a, b: exact("MatMul", r(a), r(b))
    wide = dot(x, c["w"])
    turned = np.tanh(wide)
    score, other = dot(turned, c["u"].T), dot(turned, c["v"])
    return {"wide": wide, "turned": turned, "score": score, "other": other, "y": other * score}


def main():
    assay, wrong = sys.argv[1], []
    c = constants()
    inputs = [R.normal(size=(1, 3, 6, 6)).astype(np.float32) for _ in range(SAMPLES)]
    scaled = {**c, "w1": c["w1"] * np.where(np.arange(8) == 3, 1.25, 1).astype(np.float32)[:, None, None, None]}

    def look(what, model, golden, inner, verdict, kind, node=None, text="", xs=inputs, **how):
        report, said = check(assay, model, golden, xs, inner, seconds=8 if verdict == "faithful" else 2, **how)
        first, found = (report.get("culprits") or [{}])[0].get("nodes", [None])[0], report["export"]["golden_arithmetic"]
        if report["verdict"] != verdict or (kind and found != kind) or (node and first != node) or text not in said:
            wrong.append(f"{what}, inner {inner}: {report['verdict']}, {found}, {first}, wanted {verdict}, {kind}, {node}, '{text}'\n{said}")

    cases = [(f"{kind} {name}", [values(x, stored(c, kind, every)) for x in inputs], f"{kind} {name}", words + kind)
             for kind in ("bf16", "fp16") for every, name, words in ((False, "weights", "with its weights in "), (True, "constants", "with all of its constants in "))]
    cases += [(f"three products, cut {cut}, {of}", [values(x, c, three(cut, of)) for x in inputs], "bf16x3 products", "three products in bf16")
              for cut, of in ((False, ("Conv", "MatMul")), (True, ("Conv", "MatMul")), (False, ("MatMul",)))]
    cases += [(f"sums of {many}, apart {apart}", [values(x, c, half_sums(many, apart)) for x in inputs], "fp16 sums", "added up in fp16, too")
              for many, apart in ((4, True), (8, False), (1, False))]
    for what, golden, kind, text in cases:
        few = kind == "fp16 sums" or "('MatMul',)" in what
        for inner in (False, True):
            look(what, c, golden, inner, "faithful", kind, text=text)
        # Two products that are alike, against the fault and what it does to the outputs, do not show that golden had the arithmetic.
        look(f"scaled channel, {what}", scaled, golden, True, "unfaithful", None if few else kind, "conv1")
        look(f"scaled channel, {what}", scaled, golden, False, "unfaithful", None)
    apart, rows = written_constants(), [R.normal(size=(6, 12)).astype(np.float32) for _ in range(SAMPLES)]
    golden = [written_values(x, apart) for x in rows]
    for inner in (False, True):
        look("written product", apart, golden, inner, "faithful", "bf16 products", xs=rows, save=save_written)
        look("lost column", {**apart, "u": apart["u"] * (np.arange(16) != 5).astype(np.float32)}, golden, inner, "unfaithful", None, "score" if inner else None,
             xs=rows, save=save_written)
    # Weights that were changed by as much as bfloat16 changes them, by chance, are a fault.
    noise = {**c, "v0": (c["v0"] * (1 + 2e-3 * R.normal(size=c["v0"].shape))).astype(np.float32)}
    for inner in (False, True):
        look("noise", noise, [values(x, c) for x in inputs], inner, "unfaithful", "fp32")
    print("\n".join(wrong) if wrong else "golden's arithmetic is told")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
