#!/usr/bin/env python3
"""What golden's inner values tell of inputs, of layouts and of constants that are wrong in part: test_solved_inputs.py ASSAY

Golden has every value of one sample, and the outputs of three more. An export read columns in another order, lost a function, a reduction or a pooling
before a node, put an axis elsewhere, laid a recurrent layer's weights out as another framework does, cut a weight short, read it from a place too far
on, or folded an offset into a bias where a border of zeros keeps it from being one. `check` says what it is, and the repaired model gives golden's outputs
on inputs that took no part. Golden and outputs are those of onnx's reference evaluator.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

from inner_values import inner_values

R = np.random.default_rng(61)


def f32(*shape, rng=R):
    return rng.normal(size=shape).astype(np.float32)


def i64(*numbers):
    return np.array(numbers, np.int64)


def scalar(x):
    return np.array(x, np.float32)


TABLE, TOKENS, IMAGE = ("x", [2, 8]), ("x", [2, 7, 6]), ("x", [2, 3, 8, 8])
C = {"w": f32(8, 10), "gw": f32(12, 8), "gb": f32(12), "k": f32(6, 3, 3, 3) * np.float32(0.4), "kb": f32(6), "one": f32(4, 6, 1, 1), "mean": f32(1, 3, 1, 1) + np.float32(1),
     "back": f32(4, 6), "v": f32(10, 4), "v8": f32(8, 4), "gv": f32(12, 4), "ow": f32(4, 4), "lw": f32(1, 16, 6) * np.float32(0.4), "lr": f32(1, 16, 4) * np.float32(0.4),
     "lb": f32(1, 32) * np.float32(0.3), "uw": f32(1, 15, 6) * np.float32(0.4), "ur": f32(1, 15, 5) * np.float32(0.4), "ub": f32(1, 30) * np.float32(0.3),
     "wide": f32(8, 16) * np.float32(0.3), "wv": f32(16, 12), "a1": i64(1), "axes": i64(1, 2), "wrong": i64(1, 3), "rows": f32(2, 1, 7, 7), "last": i64(2, 3),
     "bw": f32(2, 16, 6) * np.float32(0.4), "br": f32(2, 16, 4) * np.float32(0.4), "bb": f32(2, 32) * np.float32(0.3), "qs": scalar(0.0375361), "z": np.array(0, np.int8),
     "small": scalar(0.1), "third": i64(2), "whole": i64(0, 6, 7), "other": i64(0, 3, 14), "join": i64(0, 42), "jv": f32(42, 4), "m3": f32(8, 10), "m4": f32(8, 10), "m5": f32(8, 10)}


def per_gate_turned(w, gates, units):
    return np.ascontiguousarray(w.reshape(1, gates, units, units).swapaxes(2, 3)).reshape(w.shape)


def read_across(w):
    return np.ascontiguousarray(w[0].T).reshape(w.shape)


def units_first(w, gates, units):
    return np.ascontiguousarray(w.reshape(1, gates, units, -1).swapaxes(1, 2)).reshape(w.shape)


def second_in_another_order(w, order):
    w = w.copy()
    w[1] = w[1].reshape(4, 4, -1)[list(order)].reshape(w[1].shape)
    return w


def in_tiles(w):
    """4 x 4 tiles, one after the other."""
    return np.ascontiguousarray(w.reshape(2, 4, 4, 4).transpose(0, 2, 1, 3)).reshape(w.shape)


def without(a, part):
    a = a.copy()
    a.reshape(-1)[part] = 0
    return a


def read_too_far(a, by):
    flat = a.reshape(-1)
    return np.concatenate([flat[by:], f32(by)]).reshape(a.shape)


def lost(nodes, *gone):
    """Nodes and the same without some of them: what read one reads its first input."""
    bad = list(nodes)
    for out in gone:
        instead = next(inputs[0] for _, inputs, o, _ in bad if o == out)
        bad = [(op, [instead if v == out else v for v in inputs], o, a) for op, inputs, o, a in bad if o != out]
    return nodes, bad, {}


def other(nodes, **bad):
    return nodes, nodes, bad


def folded():
    """x - mean goes into a layer whose border is of zeros."""
    good = [("Sub", ["x", "mean"], "d", {}), ("Conv", ["d", "k", "kb"], "c", {"pads": [1, 1, 1, 1]}), ("Relu", ["c"], "r", {}), ("Conv", ["r", "one"], "y", {})]
    moved = np.tensordot(C["k"].sum((2, 3)), -C["mean"].reshape(3), 1)
    return good, lost(good, "d")[1], {"kb": (C["kb"] + moved).astype(np.float32)}


PRODUCT = [("MatMul", ["x", "w"], "m", {}), ("Tanh", ["m"], "t", {}), ("MatMul", ["t", "v"], "y", {})]
GEMM = [("Gemm", ["x", "gw", "gb"], "m", {"transB": 1, "alpha": 0.5}), ("Tanh", ["m"], "t", {}), ("MatMul", ["t", "gv"], "y", {})]
SQUEEZED = [("Conv", ["x", "k", "kb"], "c", {"pads": [1, 1, 1, 1]}), ("Relu", ["c"], "r", {}), ("GlobalAveragePool", ["r"], "g", {}), ("Conv", ["g", "one"], "e", {}),
            ("Sigmoid", ["e"], "s", {}), ("ReduceMean", ["s", "last"], "y", {"keepdims": 0})]
POOLED = [("Conv", ["x", "k", "kb"], "c", {"pads": [1, 1, 1, 1]}), ("MaxPool", ["c"], "p", {"kernel_shape": [2, 2], "strides": [2, 2]}), ("Conv", ["p", "one"], "e", {}),
          ("ReduceMean", ["e", "last"], "y", {"keepdims": 0})]
MASKED = [("ReduceMax", ["x", "third"], "f", {"keepdims": 0}), ("Relu", ["f"], "f0", {}), ("Sign", ["f0"], "f1", {}), ("Unsqueeze", ["f1", "axes"], "u", {}), ("Mul", ["rows", "u"], "s", {}),
          ("Softmax", ["s"], "p", {"axis": -1}), ("ReduceMax", ["p", "a1"], "q", {"keepdims": 0}), ("MatMul", ["q", "x"], "y", {})]
BRANCH = [("MatMul", ["x", "w"], "m", {}), ("MatMul", ["x", "m3"], "n", {}), ("Tanh", ["n"], "t", {}), ("Mul", ["m", "t"], "j", {}), ("MatMul", ["j", "v"], "y", {})]
LARGEST = [("MatMul", ["x", "m3"], "a", {}), ("MatMul", ["x", "m4"], "b", {}), ("MatMul", ["x", "m5"], "c", {}), ("Max", ["a", "b", "c"], "m", {}), ("MatMul", ["m", "v"], "y", {})]
TWO_LARGEST = [(op, i[:2], o, a) if op == "Max" else (op, i, o, a) for op, i, o, a in LARGEST]
LSTM = [("Transpose", ["x"], "t", {"perm": [1, 0, 2]}), ("LSTM", ["t", "lw", "lr", "lb"], "all", {"hidden_size": 4}), ("MatMul", ["all", "ow"], "y", {})]
GRU = [("Transpose", ["x"], "t", {"perm": [1, 0, 2]}), ("GRU", ["t", "uw", "ur", "ub"], "all", {"hidden_size": 5, "linear_before_reset": 1}), ("Mul", ["all", "all"], "y", {})]
WIDE = [("MatMul", ["x", "wide"], "m", {}), ("Tanh", ["m"], "t", {}), ("MatMul", ["t", "wv"], "y", {})]
TURNED = [("Transpose", ["x"], "t", {"perm": [0, 2, 1]}), ("Reshape", ["t", "whole"], "r", {}), ("Reshape", ["r", "join"], "j", {}), ("MatMul", ["j", "jv"], "y", {})]
BOTH = [("Transpose", ["x"], "t", {"perm": [1, 0, 2]}), ("LSTM", ["t", "bw", "br", "bb"], "all", {"hidden_size": 4, "direction": "bidirectional"}), ("MatMul", ["all", "ow"], "y", {})]
QUANTIZED = [("Mul", ["x", "small"], "m", {}), ("QuantizeLinear", ["m", "qs", "z"], "q", {}), ("DequantizeLinear", ["q", "qs", "z"], "d", {}), ("MatMul", ["d", "v8"], "y", {})]
ORDER = R.permutation(8)
# what it is: input, good nodes, bad nodes, bad constants, part of what is said
ROWS = {
    "columns in another order": (TABLE, *other(PRODUCT, w=C["w"][ORDER]), "is in another order"),
    "the same of Gemm": (TABLE, *other(GEMM, gw=C["gw"][:, ORDER]), "is in another order"),
    "no squeeze": (IMAGE, *lost(SQUEEZED, "g"), "the mean of 'r'"),
    "no pooling": (IMAGE, *lost(POOLED, "p"), "MaxPool by windows of 2"),
    "a mask on the other axis": (TOKENS, *other(MASKED, axes=C["wrong"]), "axes 2 and 3 exchanged"),
    "no function in a branch": (TABLE, *lost(BRANCH, "t"), "Tanh"),
    "no third value": (TABLE, LARGEST, TWO_LARGEST, {}, "Max with 'c'"),
    "each gate turned": (TOKENS, *other(LSTM, lr=per_gate_turned(C["lr"], 4, 4)), "transposed"),
    "a kernel read across": (TOKENS, *other(GRU, uw=read_across(C["uw"])), "'uw'"),
    "both kernels read across": (TOKENS, *other(LSTM, lw=read_across(C["lw"]), lr=read_across(C["lr"])), "the matrix read the other way"),
    "units first": (TOKENS, *other(GRU, ur=units_first(C["ur"], 3, 5)), "its rows sorted by gates"),
    "half of a bias": (TOKENS, *other(GRU, ub=without(C["ub"], slice(15, 30))), "'ub'"),
    "one direction": (TOKENS, *other(BOTH, br=second_in_another_order(C["br"], (2, 0, 3, 1))), "in the second direction"),
    "tiles": (TABLE, *other(WIDE, wide=in_tiles(C["wide"])), "are counted as ["),
    # Twice the wrong scale gives the same integers.
    "a usual number within an interval": (TABLE, *other(QUANTIZED, qs=scalar(0.0187169)), "0.0375361"),
    "no quantizer": (TABLE, *lost(QUANTIZED, "d", "q"), "a quantizer in steps of 0.037536"),
    "cut short": (TABLE, *other(WIDE, wide=without(C["wide"], slice(90, 128))), "'wide'"),
    "from a place too far on": (TABLE, *other(WIDE, wide=read_too_far(C["wide"], 3)), "'wide'"),
    "an offset under a border": (IMAGE, *folded(), "with other numbers in 'kb'"),
}


def model(x, nodes, constants):
    used = {v for _, inputs, _, _ in nodes for v in inputs}
    values = {k: v for k, v in {**C, **constants}.items() if k in used}
    graph = h.make_graph([h.make_node(op, inputs, [o], name=f"{o}_node", **a) for op, inputs, o, a in nodes], "g", [h.make_tensor_value_info(x[0], T.FLOAT, x[1])],
                         [h.make_tensor_value_info("y", T.FLOAT, None)], [nh.from_array(v, k) for k, v in values.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 19)], ir_version=9)


def check(assay, name, row):
    x, nodes, bad_nodes, bad_constants, says = row
    good, folder, rng = model(x, nodes, {}), pathlib.Path(name), np.random.default_rng(list(name.encode()))
    for part in ("in", "gold"):
        (folder / part).mkdir(parents=True)
    for i in range(4):
        feed = {x[0]: f32(*x[1], rng=rng)}
        values = inner_values(good, feed)
        np.savez(folder / f"in/{i}.npz", **feed)
        np.savez(folder / f"gold/{i}.npz", y=values["y"])
        if i == 0:
            np.savez(folder / "inner.npz", **{k: v for k, v in values.items() if k != "y"})
    onnx.save(model(x, bad_nodes, bad_constants), folder / "m.onnx")
    done = subprocess.run([assay, "check", "m.onnx", "-i", "in", "-g", "gold", "--golden-intermediates", "inner.npz", "-o", "fix", "--search-time", "20"], cwd=folder,
                          capture_output=True, text=True, check=False)
    if "verified: its truth" not in done.stdout or says not in done.stdout:
        return [f"{name}: not as expected ('{says}'):\n{done.stdout}{done.stderr}"]
    fixed = ReferenceEvaluator(onnx.load(folder / "fix/m.repaired.onnx"))
    for _ in range(3):
        feed = {x[0]: f32(*x[1], rng=rng)}
        got, want = (m.run(None, feed)[0] for m in (fixed, ReferenceEvaluator(good)))
        if got.shape != want.shape or np.abs(got - want).max() > 1e-4 * np.abs(want).max():
            return [f"{name}: the repaired model differs where it was not checked:\n{done.stdout}"]
    return []


def main(assay):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, row in ROWS.items():
            faults += check(assay, name, row)
    print("\n".join(faults) or f"{len(ROWS)} inputs, layouts and parts solved")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
