#!/usr/bin/env python3
"""Golden that was not computed in float32: test_golden_arithmetic.py ASSAY

Products whose operands were rounded, or cut, to TF32 (all of them, convolutions alone), were bfloat16, or gave 16 bits, and a
network wholly in 16 bits: none of these is a fault of the export, with inner values and without, and the report names the
arithmetic. A fault on top of it that is larger than its errors is found where it is; golden that looks so at one product of
several is a fault there; a small fault of a model whose golden is float32's is not taken for an arithmetic.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(11)
SAMPLES = 4


def bits_of(x, kept, truncated=False):
    """x with so many bits behind the point of its significand: the nearest, ties to even, or cut."""
    i = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    lost = 23 - kept
    if not truncated:
        i = i + (1 << (lost - 1)) - 1 + (i >> lost & 1)
    return (i >> lost << lost).astype(np.uint32).view(np.float32)


ROUND = {"tf32": lambda x: bits_of(x, 10), "cut": lambda x: bits_of(x, 10, True), "bf16": lambda x: bits_of(x, 7),
         "fp16": lambda x: x.astype(np.float16).astype(np.float32), "fp32": lambda x: x}


def draw(shape, fan):
    return (R.normal(size=shape) * np.sqrt(2 / fan)).astype(np.float32)


def constants():
    c = {f"w{k}": draw((o, i, 3, 3), 9 * i) for k, (i, o) in enumerate([(3, 8), (8, 8), (8, 6)])}
    c.update({f"b{k}": draw(len(c[f"w{k}"]), 8) for k in range(3)})
    return {**c, "v0": draw((6 * 36, 16), 216), "a0": draw(16, 8), "v1": draw((16, 12), 16), "a1": draw(12, 8)}


def network():
    """(operator, inputs, output) of each node."""
    nodes, x = [], "x"
    for k in range(3):
        nodes += [("Conv", [x, f"w{k}", f"b{k}"], f"conv{k}"), ("Relu", [f"conv{k}"], f"relu{k}")]
        x = f"relu{k}"
    nodes += [("Flatten", [x], "flat"), ("MatMul", ["flat", "v0"], "dot0"), ("Add", ["dot0", "a0"], "sum0"), ("Tanh", ["sum0"], "tanh"),
              ("MatMul", ["tanh", "v1"], "dot1"), ("Add", ["dot1", "a1"], "y")]
    return nodes


def save(path, c, rows):
    nodes = [h.make_node(op, i, [o], o, **({"pads": [1, 1, 1, 1]} if op == "Conv" else {})) for op, i, o in network()]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [rows, 3, 6, 6])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                         [nh.from_array(v, k) for k, v in c.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def conv(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows.astype(np.float64), w.astype(np.float64)).astype(np.float32)


def values(x, c, kind, scope="operands", of=("Conv", "MatMul"), only=None, vectors=True):
    """Every value, in float32 but for what products of these operators, or one node, read (and give)."""
    r, every = ROUND[kind], scope == "all"
    v = {"x": r(x) if every else x, **{k: r(a) if every else a for k, a in c.items()}}
    for op, names, out in network():
        a = [v[n] for n in names]
        low = op in of and (only is None or out == only) and (vectors or op == "Conv" or min(len(a[0]), a[1].shape[1]) > 1)
        if low:
            a[:2] = r(a[0]), r(a[1])
            a[2:] = [r(b) if scope == "products" else b for b in a[2:]]
        if op == "Conv":
            y = conv(a[0], a[1]) + a[2][:, None, None]
        elif op == "MatMul":
            y = (a[0].astype(np.float64) @ a[1].astype(np.float64)).astype(np.float32)
        else:
            y = {"Relu": lambda p: np.maximum(p, 0), "Flatten": lambda p: p.reshape(len(p), -1), "Add": lambda p, q: p + q,
                 "Tanh": np.tanh}[op](*a)
        v[out] = r(y) if every or (low and scope == "products") else y
    return {out: v[out] for _, _, out in network()}


def check(assay, c, golden, inputs, inner):
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *p: os.path.join(folder, *p)
        save(at("model.onnx"), c, len(inputs[0]))
        os.makedirs(at("inputs")), os.makedirs(at("golden"))
        for k, (x, g) in enumerate(zip(inputs, golden)):
            np.savez(at("inputs", f"{k}.npz"), x=x)
            np.savez(at("golden", f"{k}.npz"), y=g["y"])
        np.savez(at("inner.npz"), **golden[0])
        line = [assay, "check", at("model.onnx"), "-i", at("inputs"), "-g", at("golden"), "--search-time", "2", "--json", at("out.json")]
        done = subprocess.run(line + (["--golden-intermediates", at("inner.npz")] if inner else []), capture_output=True, text=True)
        with open(at("out.json"), encoding="utf-8") as f:
            return json.load(f), done.stdout + done.stderr


KINDS = [("tf32", "tf32", {}), ("cut", "tf32", {}), ("bf16", "bf16 products", {}), ("fp16", "fp16 products", {"scope": "products"}),
         ("bf16", "bf16 products", {"scope": "products"}), ("bf16", "bf16", {"scope": "all"}), ("fp16", "fp16", {"scope": "all"}),
         ("tf32", "tf32", {"of": ("Conv",)}), ("tf32", "tf32", {"of": ("MatMul",)})]


def main():
    assay, wrong = sys.argv[1], []
    c = constants()
    inputs = [R.normal(size=(1, 3, 6, 6)).astype(np.float32) for _ in range(SAMPLES)]

    def look(what, model, golden, inner, verdict, kind, node=None, text="", xs=inputs):
        report, said = check(assay, model, golden, xs, inner)
        first = (report.get("culprits") or [{}])[0].get("nodes", [None])[0]
        found = report["export"]["golden_arithmetic"]
        if report["verdict"] != verdict or (kind and found != kind) or (node and first != node) or text not in said:
            wrong.append(f"{what}, inner {inner}: {report['verdict']}, {found}, {first}, wanted {verdict}, {kind}, {node}, '{text}'\n{said}")

    for kind, name, how in KINDS:
        golden = [values(x, c, kind, **how) for x in inputs]
        text = {("Conv",): "with convolutions in TF32", ("MatMul",): "with matrix products in TF32"}.get(how.get("of"), "golden seems to have been computed")
        for inner in (False, True):
            # What was stored in 16 bits as well may be within the limits of that alone.
            stored = how.get("scope") == "all"
            look(f"{kind} {how}", c, golden, inner, "faithful", None if stored else name, text="" if stored else text)
    tf32 = [values(x, c, "tf32") for x in inputs]
    look("advice", c, tf32, True, "faithful", "tf32", text="torch.backends.cudnn.allow_tf32 = False")
    # cuBLAS has no TF32 for products with a vector.
    column = {**c, "v1": c["v1"][:, :1], "a1": c["a1"][:1]}
    pairs = [R.normal(size=(4, 3, 6, 6)).astype(np.float32) for _ in range(SAMPLES)]
    for inner in (False, True):
        look("no vectors", column, [values(x, column, "tf32", vectors=False) for x in pairs], inner, "faithful", "tf32", text="with its products in TF32", xs=pairs)
    # A fault on top: one channel's weights of a convolution, the bias of a product.
    scaled = {**c, "w1": c["w1"] * np.where(np.arange(8) == 3, 1.25, 1).astype(np.float32)[:, None, None, None]}
    look("scaled channel", scaled, tf32, True, "unfaithful", "tf32", "conv1")
    look("scaled channel", scaled, tf32, False, "unfaithful", "fp32")
    look("lost bias", {**c, "a0": np.zeros_like(c["a0"])}, tf32, True, "unfaithful", "tf32", "sum0")
    # One product alone, and what is no arithmetic at all.
    look("one node", c, [values(x, c, "tf32", only="conv1") for x in inputs], True, "unfaithful", "fp32", "conv1")
    fp32 = [values(x, c, "fp32") for x in inputs]
    look("float32", c, fp32, True, "faithful", "fp32")
    for size in (2e-4, 1e-3, 5e-3):
        for inner in (False, True):
            look(f"fault of {size}", {**c, "w1": c["w1"] * np.float32(1 + size)}, fp32, inner, "unfaithful", "fp32", "conv1" if inner else None)
            noise = (c["v0"] * (1 + size * R.normal(size=c["v0"].shape))).astype(np.float32)
            look(f"noise of {size}", {**c, "v0": noise}, fp32, inner, "unfaithful", "fp32", "dot0" if inner else None)
    print("\n".join(wrong) if wrong else "golden's arithmetic is told")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
