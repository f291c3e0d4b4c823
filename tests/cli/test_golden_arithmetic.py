#!/usr/bin/env python3
"""Golden that was not computed in float32: test_golden_arithmetic.py ASSAY

Products whose operands were rounded, or cut, to TF32 (all of them, convolutions alone), were bfloat16, or gave 16 bits (biases
rounded as well or added in float32, what follows in 16 bits or in float32), a network wholly in 16 bits, one whose recurrent
layer alone is in float32, and one whose numbers are so small that float16 loses digits of them: none of these is a fault of the export, with inner values and without, and the report names the
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
              ("MatMul", ["tanh", "v1"], "dot1"), ("Add", ["dot1", "a1"], "sum1"), ("Softplus", ["sum1"], "y")]
    return nodes


def save(path, c, rows):
    nodes = [h.make_node(op, i, [o], o, **({"pads": [1, 1, 1, 1]} if op == "Conv" else {})) for op, i, o in network()]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [rows, 3, 6, 6])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                         [nh.from_array(v, k) for k, v in c.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def conv(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows.astype(np.float64), w.astype(np.float64)).astype(np.float32)


WIDE = ("Softplus",)  # what a framework that casts by itself keeps in float32


def values(x, c, kind, scope="operands", of=("Conv", "MatMul"), only=None, vectors=True, biases=True):
    """Every value, in float32 but for what products of these operators, or one node, read (and give)."""
    r, every = ROUND[kind], scope == "all"
    v = {"x": r(x) if every else x, **{k: r(a) if every else a for k, a in c.items()}}
    for op, names, out in network():
        a = [v[n] for n in names]
        low = op in of and (only is None or out == only) and (vectors or op == "Conv" or min(len(a[0]), a[1].shape[1]) > 1)
        if low:
            a[:2] = r(a[0]), r(a[1])
            a[2:] = [r(b) if scope != "operands" and biases else b for b in a[2:]]
        if op == "Conv":
            y = conv(a[0], a[1]) + a[2][:, None, None]
        elif op == "MatMul":
            y = (a[0].astype(np.float64) @ a[1].astype(np.float64)).astype(np.float32)
        else:
            y = {"Relu": lambda p: np.maximum(p, 0), "Flatten": lambda p: p.reshape(len(p), -1), "Add": lambda p, q: p + q,
                 "Tanh": np.tanh, "Softplus": lambda p: np.log1p(np.exp(p.astype(np.float64))).astype(np.float32)}[op](*a)
        if scope == "autocast":  # the bias that follows is added before the product is rounded
            low = low and op != "MatMul" or op not in WIDE + ("MatMul",) and names[0] != "x" and all(np.array_equal(r(v[n]), v[n]) or n in c for n in names)
            low = low or op == "Add" and names[0].startswith("dot")
        v[out] = r(y) if every or (low and scope in ("products", "autocast")) else y
    return {out: v[out] for _, _, out in network()}


def check(assay, c, golden, inputs, inner, save=save, seconds=2):
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *p: os.path.join(folder, *p)
        save(at("model.onnx"), c, len(inputs[0]))
        os.makedirs(at("inputs")), os.makedirs(at("golden"))
        for k, (x, g) in enumerate(zip(inputs, golden)):
            np.savez(at("inputs", f"{k}.npz"), x=x)
            np.savez(at("golden", f"{k}.npz"), y=g["y"])
        np.savez(at("inner.npz"), **golden[0])
        line = [assay, "check", at("model.onnx"), "-i", at("inputs"), "-g", at("golden"), "--search-time", str(seconds), "--json", at("out.json")]
        done = subprocess.run(line + (["--golden-intermediates", at("inner.npz")] if inner else []), capture_output=True, text=True)
        with open(at("out.json"), encoding="utf-8") as f:
            return json.load(f), done.stdout + done.stderr


# ---- a recurrent layer between a convolution and a product ----

STEPS, WIDTH = 6, 8


def recurrent_constants():
    return {"k": draw((WIDTH, 2, 3), 6), "kb": draw(WIDTH, 8), "W": draw((1, WIDTH, WIDTH), WIDTH), "R": draw((1, WIDTH, WIDTH), 2 * WIDTH),
            "B": draw((1, 2 * WIDTH), WIDTH), "last": np.array(STEPS - 1, np.int64), "v": draw((WIDTH, 4), WIDTH), "vb": draw(4, 8)}


def save_recurrent(path, c, rows):
    nodes = [h.make_node("Conv", ["x", "k", "kb"], ["conv"], "conv", pads=[1, 1]), h.make_node("Transpose", ["conv"], ["steps"], "steps", perm=[2, 0, 1]),
             h.make_node("RNN", ["steps", "W", "R", "B"], ["states"], "rnn", hidden_size=WIDTH), h.make_node("Gather", ["states", "last"], ["end"], "end", axis=0),
             h.make_node("Squeeze", ["end"], ["flat"], "flat", axes=[0]), h.make_node("MatMul", ["flat", "v"], ["dot"], "dot"), h.make_node("Add", ["dot", "vb"], ["y"], "y")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [rows, 2, STEPS])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                         [nh.from_array(v, k) for k, v in c.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 11)], ir_version=6), path)


def recurrent_values(x, c, biases=False):
    """The convolution and the product give float16, the recurrent layer is in float32."""
    r = ROUND["fp16"]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(r(x), ((0, 0), (0, 0), (1, 1))), 3, axis=2).astype(np.float64)
    conv = r((np.einsum("nctj,ocj->not", windows, r(c["k"]).astype(np.float64)) + (r(c["kb"]) if biases else c["kb"])[:, None]).astype(np.float32))
    steps, state, states = conv.transpose(2, 0, 1), np.zeros((len(x), WIDTH), np.float32), []
    for step in steps:
        state = np.tanh(step @ c["W"][0].T + state @ c["R"][0].T + c["B"][0, :WIDTH] + c["B"][0, WIDTH:]).astype(np.float32)
        states.append(state)
    dot = r((r(state).astype(np.float64) @ r(c["v"]).astype(np.float64)).astype(np.float32))
    return {"conv": conv, "steps": steps, "states": np.stack(states)[:, None], "end": state[None], "flat": state, "dot": dot, "y": dot + c["vb"]}


def exact_recurrent(x, c):
    """The same in float32."""
    kept, ROUND["fp16"] = ROUND["fp16"], lambda a: a
    values_ = recurrent_values(x, c)
    ROUND["fp16"] = kept
    return values_


# ---- numbers that float16 has few digits for: energies of a quiet recording, and their logarithms ----

def quiet_constants():
    return {"a": draw((12, 10), 12), "m": (np.abs(R.normal(size=(10, 8))) / 5).astype(np.float32), "tiny": np.float32(1e-6), "d": draw((8, 6), 60)}


def save_quiet(path, c, rows):
    nodes = [h.make_node("MatMul", ["x", "a"], ["wave"], "wave"), h.make_node("Mul", ["wave", "wave"], ["energy"], "energy"),
             h.make_node("MatMul", ["energy", "m"], ["bands"], "bands"), h.make_node("Add", ["bands", "tiny"], ["floor"], "floor"),
             h.make_node("Log", ["floor"], ["log"], "log"), h.make_node("MatMul", ["log", "d"], ["y"], "y")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [rows, 12])], [h.make_tensor_value_info("y", T.FLOAT, None)],
                         [nh.from_array(np.asarray(v), k) for k, v in c.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def quiet_values(x, c):
    """What products read is float16."""
    r = ROUND["fp16"]
    dot = lambda a, b: (r(a).astype(np.float64) @ r(b).astype(np.float64)).astype(np.float32)
    wave = dot(x, c["a"])
    energy = wave * wave
    bands = dot(energy, c["m"])
    floor = bands + c["tiny"]
    log = np.log(floor)
    return {"wave": wave, "energy": energy, "bands": bands, "floor": floor, "log": log, "y": dot(log, c["d"])}


KINDS = [("tf32", "tf32", {}), ("cut", "tf32", {}), ("bf16", "bf16 products", {}), ("fp16", "fp16 products", {"scope": "products"}),
         ("bf16", "bf16 products", {"scope": "products"}), ("fp16", "fp16 products", {"scope": "products", "biases": False}),
         ("fp16", "fp16 products", {"scope": "autocast"}), ("bf16", "bf16 products", {"scope": "autocast"}), ("bf16", "bf16", {"scope": "all"}), ("fp16", "fp16", {"scope": "all"}),
         ("tf32", "tf32", {"of": ("Conv",)}), ("tf32", "tf32", {"of": ("MatMul",)})]


def main():
    assay, wrong = sys.argv[1], []
    c = constants()
    inputs = [R.normal(size=(1, 3, 6, 6)).astype(np.float32) for _ in range(SAMPLES)]

    def look(what, model, golden, inner, verdict, kind, node=None, text="", xs=inputs, save=save):
        report, said = check(assay, model, golden, xs, inner, save)
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
    # Layers that a framework does not cast, with few numbers at the end.
    few, waves = recurrent_constants(), [R.normal(size=(1, 2, STEPS)).astype(np.float32) for _ in range(SAMPLES)]
    quiet, hushed = quiet_constants(), [(3e-3 * R.normal(size=(3, 12))).astype(np.float32) for _ in range(SAMPLES)]
    for inner in (False, True):
        for biases in (False, True):
            golden = [recurrent_values(x, few, biases) for x in waves]
            look(f"recurrent layer apart, biases {biases}", few, golden, inner, "faithful", "fp16 products", xs=waves, save=save_recurrent)
        look("small numbers", quiet, [quiet_values(x, quiet) for x in hushed], inner, "faithful", "fp16 products", xs=hushed, save=save_quiet)
    # A fault in either of them is none of their arithmetics, though its effect be as small as theirs.
    for size in (1e-4, 5e-4, 2e-3):
        stale = {**few, "R": (few["R"] * (1 + size * R.normal(size=few["R"].shape))).astype(np.float32)}
        single = [{k: v.astype(np.float32) for k, v in exact_recurrent(x, few).items()} for x in waves]
        look(f"stale weights of {size}", stale, single, False, "unfaithful", "fp32", xs=waves, save=save_recurrent)
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
