#!/usr/bin/env python3
"""Regions that an export lost, merged or wired to other values: test_lost_nodes.py ASSAY

Golden has every value of one sample, and the outputs of three more. `check` finds what is lost (nodes of which golden has the values and the model
nothing, borders that go round, what goes by lengths, branches of a condition, operators that were taken for one), inputs and outputs that changed
places by twos and fours, integers of weights, and faults that hold only together; the repaired model gives golden's outputs on inputs that took no part.
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

R = np.random.default_rng(5)


def f32(*shape):
    return (R.normal(size=shape) * 0.5).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def scalar(value, kind=np.float32):
    return np.array(value, kind)


def model(inputs, nodes, constants, outputs):
    graph = h.make_graph([h.make_node(op, i, o.split(), name=f"n{k}_{op}", **a) for k, (op, i, o, a) in enumerate(nodes)], "g",
                         [h.make_tensor_value_info(k, t, d) for k, (t, d) in inputs.items()],
                         [h.make_tensor_value_info(o, t, None) for o, t in outputs.items()],
                         [nh.from_array(v, k) for k, v in constants.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 19)], ir_version=9)


def draw(inputs):
    """Integers are lengths of sequences of 8."""
    return {k: R.integers(2, 8, d).astype(np.int64) if t == T.INT64 else f32(*d) * 2 for k, (t, d) in inputs.items()}


def check(assay, name, row):
    inputs, good, bad, says = row["inputs"], row["good"], row["bad"], row.get("says", "")
    outputs = row.get("outputs", {"y": T.FLOAT})
    models = [model(inputs, *part, outputs) for part in (good, bad)]
    folder = pathlib.Path(name)
    for part in ("in", "gold"):
        (folder / part).mkdir(parents=True)
    for i in range(4):
        x = draw(inputs)
        values = inner_values(models[0], x)
        np.savez(folder / f"in/{i}.npz", **x)
        np.savez(folder / f"gold/{i}.npz", **{k: values[k] for k in outputs})
        if i == 0:
            np.savez(folder / "inner.npz", **{k: v for k, v in values.items() if k not in outputs})
    onnx.save(models[1], folder / "m.onnx")
    done = subprocess.run([assay, "check", "m.onnx", "-i", "in", "-g", "gold", "--golden-intermediates", "inner.npz", "-o", "fix", "--search-time", "20"], cwd=folder,
                          capture_output=True, text=True, check=False)
    if "verified: its truth" not in done.stdout or says not in done.stdout:
        return [f"{name}: not as expected ('{says}'):\n{done.stdout}{done.stderr}"]
    fixed = ReferenceEvaluator(onnx.load(folder / "fix/m.repaired.onnx"))
    for _ in range(3):
        x = draw(inputs)
        for got, want in zip(fixed.run(None, x), ReferenceEvaluator(models[0]).run(None, x)):
            if got.shape != want.shape or np.abs(got - want).max() > 1e-4 * np.abs(want).max():
                return [f"{name}: the repaired model differs where it was not checked:\n{done.stdout}"]
    return []


TOKENS = {"x": (T.FLOAT, [2, 8, 6])}
WITH_LENGTHS = {**TOKENS, "lengths": (T.INT64, [2])}
W, W2, V = f32(6, 6), f32(6, 6), f32(6, 6)
HEAD = [("MatMul", ["h", "v"], "y", {})]


def row(inputs, good, bad, constants, lost=(), says="", **more):
    """constants: of both models; those of `lost` are in the good one alone."""
    kept = {k: v for k, v in constants.items() if k not in lost}
    return {"inputs": inputs, "good": (good, constants), "bad": (bad, kept), "says": says, **more}


SCORES = [("MatMul", ["x", "w"], "q", {}), ("Transpose", ["x"], "kt", {"perm": [0, 2, 1]}), ("MatMul", ["q", "kt"], "s", {})]
MIXED = [("MatMul", ["a", "x"], "h", {}), *HEAD]
TURNED = [("Transpose", ["x"], "t", {"perm": [1, 0, 2]})]
LSTM = {"lw0": f32(1, 16, 6), "lr0": f32(1, 16, 4), "lb0": f32(1, 32), "lw1": f32(1, 16, 4), "lr1": f32(1, 16, 4), "lb1": f32(1, 32), "one": ints(1), "z": f32(4, 6)}
STARTS = {k: f32(1, 2, 4) for k in ("h0", "c0", "h1", "c1")}


def layers(second):
    starts = [n for k in ("h0", "c0", "h1", "c1") for n in [("ReduceMean", ["x"], f"m{k}", {"keepdims": 1}), ("Add", [f"m{k}", k], f"s{k}", {})]]
    return [*starts, ("Transpose", ["x"], "t", {"perm": [1, 0, 2]}),
            ("LSTM", ["t", "lw0", "lr0", "lb0", "", "sh0", "sc0"], "a0 l0", {"hidden_size": 4}), ("Squeeze", ["a0", "one"], "b0", {}),
            ("LSTM", ["b0", "lw1", "lr1", "lb1", "", *second], "a1 l1", {"hidden_size": 4}), ("Squeeze", ["a1", "one"], "b1", {}),
            ("MatMul", ["b1", "z"], "y", {})]


def packed():
    """Two integers of four bits in a byte, and the same with each one's sign turned round."""
    q = R.integers(0, 256, (3, 6)).astype(np.uint8)
    nodes = [("Cast", ["q"], "c", {"to": T.FLOAT}), ("Mul", ["c", "sixteenth"], "c16", {}), ("Floor", ["c16"], "high", {}), ("Mul", ["high", "sixteen"], "h16", {}),
             ("Sub", ["c", "h16"], "low", {}), ("Concat", ["low", "high"], "rows", {"axis": 0}), ("Mul", ["rows", "scale"], "weights", {}), ("MatMul", ["x", "weights"], "y", {})]
    constants = {"sixteenth": scalar(1 / 16), "sixteen": scalar(16), "scale": scalar(0.05)}
    return {"inputs": TOKENS, "good": (nodes, {**constants, "q": q}), "bad": (nodes, {**constants, "q": q ^ 0x88}), "says": "'q'"}


def dequantized():
    q = R.integers(-127, 128, (6, 6)).astype(np.int8)
    nodes = [("DequantizeLinear", ["q", "scales", "zeros"], "weights", {"axis": 1}), ("MatMul", ["x", "weights"], "y", {})]
    constants = {"scales": np.abs(f32(6)) * 0.02 + 0.01, "zeros": np.zeros(6, np.int8)}
    return {"inputs": TOKENS, "good": (nodes, {**constants, "q": q}), "bad": (nodes, {**constants, "q": np.clip(q, -60, 60)}), "says": "integers of 'q' are others"}


def scattered():
    nodes = [("MatMul", ["x", "w"], "m", {}), ("ScatterElements", ["start", "at", "m"], "s", {"axis": 1, "reduction": "max"}), ("Less", ["s", "low"], "none", {}),
             ("Where", ["none", "zero", "s"], "h", {}), *HEAD]
    at = np.broadcast_to(np.array([0, 0, 1, 3, 3, 4, 4, 6])[None, :, None], (2, 8, 6)).astype(np.int64)
    constants = {"w": W, "v": V, "at": at, "low": scalar(-1e8), "zero": scalar(0)}
    return {"inputs": TOKENS, "good": (nodes, {**constants, "start": np.full((2, 8, 6), -1e9, np.float32)}), "bad": (nodes, {**constants, "start": np.zeros((2, 8, 6), np.float32)}),
            "says": "'start'"}


def frequencies():
    """Two tables by one formula, each of which explains the other alone."""
    nodes = [("ReduceMean", ["x", "two"], "t", {}), ("Mul", ["t", "f1"], "a", {}), ("Sin", ["a"], "sa", {}), ("Mul", ["t", "half"], "t2", {}), ("Mul", ["t2", "f2"], "b", {}),
             ("Cos", ["b"], "sb", {}), ("Add", ["sa", "sb"], "h", {}), *HEAD]
    table = np.geomspace(1, 1e-3, 6).astype(np.float32)
    made = [("Constant", [], f, {"value": nh.from_array(table)}) for f in ("f1", "f2")]
    wrong = [("Constant", [], f, {"value": nh.from_array(table ** np.float32(5 / 6))}) for f in ("f1", "f2")]
    constants = {"two": ints(2), "half": scalar(0.5), "v": V}
    return {"inputs": TOKENS, "good": (made + nodes, constants), "bad": (wrong + nodes, constants), "says": "'f1' as golden has it"}


ROWS = {
    # Scores beside which one of nothing stood: a Concat, a Softmax and a Slice of them.
    "sink": row(TOKENS, [*SCORES, ("Shape", ["s"], "shape", {"end": 2}), ("Concat", ["shape", "one"], "wide", {"axis": 0}), ("Expand", ["sink", "wide"], "sinks", {}),
                         ("Concat", ["s", "sinks"], "more", {"axis": 2}), ("Softmax", ["more"], "soft", {"axis": -1}), ("Slice", ["soft", "nought", "eight", "two"], "a", {}), *MIXED],
                [*SCORES, ("Shape", ["s"], "shape", {"end": 2}), ("Concat", ["shape", "one"], "wide", {"axis": 0}), ("Expand", ["sink", "wide"], "sinks", {}),
                 ("Softmax", ["s"], "a", {"axis": -1}), *MIXED],
                {"w": W, "v": V, "one": ints(1), "sink": f32(1, 1, 1), "nought": ints(0), "eight": ints(8), "two": ints(2)}),
    # Two products with one input were taken for one; the second one's weights are still in the file, or are gone with it.
    "merged": row(TOKENS, [("MatMul", ["x", "w"], "p", {}), ("Tanh", ["p"], "r", {}), ("MatMul", ["x", "w2"], "p2", {}), ("Sigmoid", ["p2"], "r2", {}), ("Mul", ["r", "r2"], "h", {}), *HEAD],
                  [("MatMul", ["x", "w"], "p", {}), ("Tanh", ["p"], "r", {}), ("Sigmoid", ["p"], "r2", {}), ("Mul", ["r", "r2"], "h", {}), *HEAD], {"w": W, "w2": W2, "v": V},
                  says=""),
    "merged_and_gone": row(TOKENS, [("MatMul", ["x", "w"], "p", {}), ("Tanh", ["p"], "r", {}), ("MatMul", ["x", "w2"], "p2", {}), ("Sigmoid", ["p2"], "r2", {}),
                                    ("Mul", ["r", "r2"], "h", {}), *HEAD],
                           [("MatMul", ["x", "w"], "p", {}), ("Tanh", ["p"], "r", {}), ("Sigmoid", ["p"], "r2", {}), ("Mul", ["r", "r2"], "h", {}), *HEAD], {"w": W, "w2": W2, "v": V},
                           ["w2"], "with weights of its own"),
    # A border that goes round, with zeros; and with the row at the border in place of the one beside it.
    "circular": row(TOKENS, [("Slice", ["x", "last", "far", "one"], "end", {}), ("Slice", ["x", "nought", "one", "one"], "start", {}), ("Concat", ["end", "x", "start"], "c", {"axis": 1}),
                             ("Transpose", ["c"], "t", {"perm": [0, 2, 1]}), ("Conv", ["t", "k"], "y", {})],
                    [("Pad", ["x", "pads"], "c", {}), ("Transpose", ["c"], "t", {"perm": [0, 2, 1]}), ("Conv", ["t", "k"], "y", {})],
                    {"last": ints(-1), "far": ints(1 << 40), "one": ints(1), "nought": ints(0), "k": f32(4, 6, 3), "pads": ints(0, 1, 0, 0, 1, 0)}, says=""),
    "reflected": row(TOKENS, [("Pad", ["x", "pads"], "c", {"mode": "reflect"}), ("Transpose", ["c"], "t", {"perm": [0, 2, 1]}), ("Conv", ["t", "k"], "y", {})],
                     [("Pad", ["x", "pads"], "c", {}), ("Transpose", ["c"], "t", {"perm": [0, 2, 1]}), ("Conv", ["t", "k"], "y", {})],
                     {"k": f32(4, 6, 5), "pads": ints(0, 2, 0, 0, 2, 0)}),
    # What goes by lengths.
    "turned": row(WITH_LENGTHS, [*TURNED, ("ReverseSequence", ["t", "lengths"], "h", {"time_axis": 0, "batch_axis": 1}), *HEAD],
                  [*TURNED, ("Slice", ["t", "last", "first", "nought", "last"], "h", {}), *HEAD], {"v": V, "last": ints(-1), "first": ints(-(1 << 62)), "nought": ints(0)},
                  says=""),
    "last_step": row(WITH_LENGTHS, [("Tanh", ["x"], "t", {}), ("Sub", ["lengths", "one"], "at", {}), ("Unsqueeze", ["at", "one"], "ats", {}),
                                    ("GatherND", ["t", "ats"], "h", {"batch_dims": 1}), *HEAD],
                     [("Tanh", ["x"], "t", {}), ("Gather", ["t", "last"], "h", {"axis": 1}), *HEAD], {"v": V, "one": ints(1), "last": scalar(-1, np.int64)}, says=""),
    "beyond": row(WITH_LENGTHS, [("Tanh", ["x"], "t", {}), ("Unsqueeze", ["lengths", "axes"], "l", {}), ("Less", ["steps", "l"], "in", {}), ("Where", ["in", "t", "zero"], "z", {}),
                                 ("ReduceSum", ["z", "one"], "h", {"keepdims": 0}), *HEAD],
                  [("Tanh", ["x"], "z", {}), ("ReduceSum", ["z", "one"], "h", {"keepdims": 0}), *HEAD],
                  {"v": V, "axes": ints(1, 2), "one": ints(1), "steps": np.arange(8).reshape(1, 8, 1), "zero": scalar(0)}, says="by 'lengths'"),
    # A branch of a condition that nobody asks any more, and of one that is not there.
    "quadrant": row(TOKENS, [("Mul", ["x", "w1"], "a", {}), ("Add", ["x", "w3"], "b", {}), ("Div", ["a", "b"], "r", {}), ("Atan", ["r"], "t", {}), ("Less", ["a", "zero"], "below", {}),
                             ("Where", ["below", "minus", "plus"], "half", {}), ("Add", ["t", "half"], "other", {}), ("Less", ["b", "zero"], "behind", {}), ("Where", ["behind", "other", "t"], "h", {}), *HEAD],
                    [("Mul", ["x", "w1"], "a", {}), ("Add", ["x", "w3"], "b", {}), ("Div", ["a", "b"], "r", {}), ("Atan", ["r"], "h", {}), ("Less", ["a", "zero"], "below", {}),
                     ("Where", ["below", "minus", "plus"], "half", {}), ("Add", ["h", "half"], "other", {}), ("Less", ["b", "zero"], "behind", {}), *HEAD],
                    {"w1": f32(6), "w3": f32(6), "zero": scalar(0), "plus": scalar(np.pi), "minus": scalar(-np.pi), "v": V}, says=""),
    "bent": row(TOKENS, [("Mul", ["x", "w1"], "a", {}), ("Less", ["x", "one"], "small", {}), ("Mul", ["a", "three"], "b", {}), ("Where", ["small", "a", "b"], "h", {}), *HEAD],
                [("Mul", ["x", "w1"], "h", {}), *HEAD], {"w1": f32(6), "one": scalar(1), "three": scalar(3), "v": V}, says="missing node"),
    # Inputs and outputs by twos and fours.
    "states": row(TOKENS, layers(("sh1", "sc1")), layers(("sh0", "sc0")), {**LSTM, **STARTS}, says="reads 'sh1' and 'sc1'"),
    "parts": row(TOKENS, [("Split", ["x"], "a b c d", {"axis": 1, "num_outputs": 4}), ("Mul", ["a", "b"], "ab", {}), ("Tanh", ["c"], "tc", {}), ("Mul", ["ab", "tc"], "abc", {}),
                          ("Sub", ["abc", "d"], "h", {}), *HEAD],
                 [("Split", ["x"], "b c d a", {"axis": 1, "num_outputs": 4}), ("Mul", ["a", "b"], "ab", {}), ("Tanh", ["c"], "tc", {}), ("Mul", ["ab", "tc"], "abc", {}),
                  ("Sub", ["abc", "d"], "h", {}), *HEAD], {"v": V}, says="order of outputs"),
    "packed": packed(),
    "dequantized": dequantized(),
    "scattered": scattered(),
    "frequencies": frequencies(),
    "weights_in_front": {"inputs": TOKENS, "good": ([("Transpose", ["x"], "t", {"perm": [0, 2, 1]}), ("MatMul", ["bank", "t"], "y", {})], {"bank": W}),
                         "bad": ([("Transpose", ["x"], "t", {"perm": [0, 2, 1]}), ("MatMul", ["bank", "t"], "y", {})], {"bank": W + f32(6, 6) * 0.3}), "says": "other numbers in 36 of 36 elements of 'bank'"},
}


def main(assay, *names):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, one in ROWS.items():
            if not names or name in names:
                faults += check(assay, name, one)
    print("\n".join(faults) or f"{len(names or ROWS)} losses mended")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), *sys.argv[2:]))
