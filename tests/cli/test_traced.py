#!/usr/bin/env python3
"""What is computed no more: test_traced.py ASSAY

A value that was computed once, when the model was exported, and is a constant in the file; an update that was lost; statistics of what is there
in place of those of training; a causal convolution's dilation; a kernel the other way round; a row of an embedding; stale weights; a mask; Casts to 16
bits and back. Golden has inner values of the first of four samples, and outputs of all: `check` finds what computes the value, by the other samples where the first allows several, and the
repaired model gives golden's outputs on inputs that took no part. Golden and the outputs are those of onnx's reference evaluator.
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


def normal(*shape):
    return (R.normal(size=shape) * 0.5).astype(np.float32)


CONSTANTS = {"k": normal(6, 4, 3), "kb": normal(6), "s": 1 + normal(6), "b": normal(6), "m": normal(6), "v": 1 + np.abs(normal(6)), "k2": normal(4, 2, 3, 3),
             "last": np.array([-1], np.int64), "both": np.array([2, 3], np.int64), "w": normal(4, 6), "at": np.array([[2]], np.int64),
             "table": normal(9, 6), "half": np.array(0.5, np.float32), "one": np.array([1], np.int64), "tail": normal(6, 5),
             "mask": np.tri(5, 6, 2, dtype=bool), "low": np.array(-2, np.float32)}
NODES = [
    ("conv", "Conv", ["x", "k", "kb"], ["c"], {"dilations": [2], "pads": [4, 0]}),
    ("norm", "BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], {}),
    ("act", "Relu", ["n"], ["r"], {}),
    ("highest", "ReduceMax", ["r", "last"], ["rm"], {"keepdims": 0}),             # 1, 6
    ("kernel", "Conv", ["p", "k2"], ["q"], {"pads": [1, 1, 1, 1]}),
    ("pool", "ReduceMean", ["q", "both"], ["qm"], {"keepdims": 0}),               # 1, 4
    ("squeeze", "MatMul", ["qm", "w"], ["e"], {}), ("gate", "Sigmoid", ["e"], ["g"], {}),
    ("gated", "Mul", ["rm", "g"], ["u"], {}),                                     # 1, 6
    ("update", "ScatterND", ["cache", "at", "u"], ["cu"], {}),                    # 5, 6
    ("embed", "Gather", ["table", "ids"], ["t"], {}),                             # 5, 6
    ("mix", "Add", ["cu", "t"], ["o"], {}), ("soft", "Softmax", ["o"], ["os"], {"axis": -1}),
    ("more", "Greater", ["os", "limit"], ["keep"], {}), ("choose", "Where", ["keep", "o", "half"], ["z"], {}),
    ("masked", "Where", ["mask", "z", "low"], ["zm"], {}),
    ("out", "MatMul", ["zm", "tail"], ["y"], {}),
]
INPUTS = {"x": [1, 4, 12], "p": [1, 2, 6, 6], "cache": [5, 6], "ids": [5], "limit": [5, 1]}


def model(change=lambda nodes, constants: None):
    nodes, constants = [[*n[:2], list(n[2]), list(n[3]), dict(n[4])] for n in NODES], dict(CONSTANTS)
    change(nodes, constants)
    graph = h.make_graph([h.make_node(op, inputs, outputs, name=name, **attrs) for name, op, inputs, outputs, attrs in nodes], "g",
                         [h.make_tensor_value_info(k, T.INT64 if k == "ids" else T.FLOAT, d) for k, d in INPUTS.items()],
                         [h.make_tensor_value_info("y", T.FLOAT, [5, 5])], [nh.from_array(v, k) for k, v in constants.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)


def find(nodes, name):
    return next(n for n in nodes if n[0] == name)


def draw():
    feed = {k: normal(*d) for k, d in INPUTS.items()}
    return feed | {"ids": R.permutation(9)[:5].astype(np.int64), "limit": np.full((5, 1), 0.1, np.float32) + 0.2 * np.abs(normal(5, 1))}


def traced(name):
    """The node gives what it gave on other inputs, wherever it stands."""
    def change(nodes, constants):
        node = find(nodes, name)
        value = inner_values(model(), draw())[node[3][0]]
        node[1:] = ["Constant", [], node[3], {"value": nh.from_array(np.asarray(value))}]
        nodes.remove(node)
        nodes.insert(0, node)  # constants first
    return change


def lost_update(nodes, constants):
    nodes.remove(find(nodes, "update"))
    find(nodes, "mix")[2][0] = "cache"


def own_statistics(nodes, constants):
    find(nodes, "norm")[1:3] = ["InstanceNormalization", ["c", "s", "b"]]


def lost_dilation(nodes, constants):
    find(nodes, "conv")[4] = {"dilations": [1], "pads": [2, 0]}


def stray(name, to):
    """What the node gives goes through 16 bits, under the name that it had."""
    def change(nodes, constants):
        node = find(nodes, name)
        out, i = node[3][0], nodes.index(node)
        node[3] = [out + "_raw"]
        nodes[i + 1:i + 1] = [["narrow", "Cast", [out + "_raw"], [out + "_16"], {"to": to}], ["wide", "Cast", [out + "_16"], [out], {"to": T.FLOAT}]]
    return change


def flipped(nodes, constants):
    constants["k2"] = np.ascontiguousarray(constants["k2"][:, :, ::-1, ::-1])


def mask_of_next(nodes, constants):
    constants["mask"] = np.tri(5, 6, 3, dtype=bool)


def stale(name):
    """Weights of another moment of training. One sample has not enough rows to tell them."""
    def change(nodes, constants):
        constants[name] = constants[name] + np.float32(0.05) * normal(*constants[name].shape)
    return change


ROWS = [
    # what became of the model, the first culprit, part of what is said
    (traced("highest"), "highest", "ReduceMax of 'r' in place of its output"),
    (traced("pool"), "pool", "ReduceMean of 'q'"),
    (traced("gate"), "gate", "Sigmoid of"),
    (traced("gated"), "gated", "Mul by"),
    (traced("embed"), "embed", "Gather by 'ids' of 'table'"),
    (traced("soft"), "soft", "Softmax of 'o'"),
    (traced("more"), "more", "missing operator: "),
    (lost_update, "mix", "ScatterND of 'u' at 'at'"),
    (own_statistics, "norm", "BatchNormalization in place of InstanceNormalization"),
    (lost_dilation, "conv", "dilations all 2, with pads = [4,0]"),
    (flipped, "kernel", "'k2'"),
    (mask_of_next, "masked", "with its diagonal moved by -1"),
    (stale("tail"), "out", "30 of 30 elements of 'tail'"),
    (stale("k"), "conv", "72 of 72 elements of 'k'"),
    (stray("gated", T.FLOAT16), "wide", "'u_raw' is rounded to float16"),
    (stray("out", T.BFLOAT16), "wide", "'y_raw' is rounded to bfloat16"),
]


def check(assay, *more):
    return subprocess.run([assay, "check", "m.onnx", "-i", "inputs", *more], capture_output=True, text=True, check=False)


def rounded_by_right(assay, samples):
    """The network rounds, too: nothing is wrong."""
    network, faults = model(stray("gated", T.FLOAT16)), []
    onnx.save(network, "m.onnx")
    pathlib.Path("rounded").mkdir()
    for i, feed in enumerate(samples):
        np.savez(f"rounded/{i}.npz", y=ReferenceEvaluator(network).run(None, feed)[0])
    np.savez("rounded.npz", **{k: v for k, v in inner_values(network, samples[0]).items() if k != "y" and v.dtype != np.float16})
    for more in (), ("--golden-intermediates", "rounded.npz"):
        done = check(assay, "-g", "rounded", *more)
        if done.returncode != 0:
            faults.append(f"a network that rounds is called unfaithful {more}:\n{done.stdout}{done.stderr}")
    return faults


def seen_by_outputs(assay):
    """The pair of Casts shows in outputs alone."""
    onnx.save(model(stray("gated", T.FLOAT16)), "m.onnx")
    done = check(assay, "-g", "golden", "-o", "fix")
    return [] if "export  wide (" in done.stdout and "verified: its truth" in done.stdout else [f"the Casts are not seen:\n{done.stdout}{done.stderr}"]


def twice_wrong(assay):
    """Two Constant nodes with the same wrong numbers: neither is the other's source."""
    def make(table):
        constants = [h.make_node("Constant", [], [name], name=name + "_made", value=nh.from_array(table, name)) for name in ("first", "second")]
        nodes = [h.make_node("Mul", ["x", "first"], ["a"], name="times"), h.make_node("Relu", ["a"], ["r"], name="relu"), h.make_node("Add", ["r", "second"], ["y"], name="plus")]
        graph = h.make_graph(constants + nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [4, 6])], [h.make_tensor_value_info("y", T.FLOAT, [4, 6])])
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)

    right, x = normal(4, 6), {"x": normal(4, 6)}
    onnx.save(make(right + normal(4, 6)), "twice.onnx")
    values = inner_values(make(right), x)
    np.savez("twice_x.npz", **x)
    np.savez("twice_y.npz", y=values["y"])
    np.savez("twice_inner.npz", **{k: v for k, v in values.items() if k != "y"})
    done = subprocess.run([assay, "check", "twice.onnx", "-i", "twice_x.npz", "-g", "twice_y.npz", "--golden-intermediates", "twice_inner.npz", "-o", "fix"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 1 or "2 nodes changed, verified: its truth" not in done.stdout:
        return [f"two constants that are alike:\n{done.stdout}{done.stderr}"]
    got, want = (ReferenceEvaluator(m).run(None, x)[0] for m in (onnx.load("fix/twice.repaired.onnx"), make(right)))
    return [] if np.abs(got - want).max() < 1e-5 else ["two constants that are alike: the repaired model gives something else"]


def each_by_the_other(assay):
    """Each of two constants is what the other one's results tell: both repairs at once are no graph, which is said and does not end the check."""
    def make(centre):
        nodes = [h.make_node("Constant", [], [name], name=name + "_made", value=nh.from_array(centre, name)) for name in ("left", "right")]
        nodes += [h.make_node("Relu", ["x"], ["p"], name="p_made"), h.make_node("Sigmoid", ["x"], ["q"], name="q_made"), h.make_node("Sub", ["left", "p"], ["a"], name="from"),
                  h.make_node("Add", ["right", "q"], ["b"], name="to"), h.make_node("Concat", ["a", "b"], ["y"], name="both", axis=1)]
        graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [4, 6])], [h.make_tensor_value_info("y", T.FLOAT, [4, 12])])
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)

    centre, x = normal(4, 6), {"x": normal(4, 6)}
    onnx.save(make(centre - np.float32(0.5)), "each.onnx")
    values = inner_values(make(centre), x)
    np.savez("each_x.npz", **x)
    np.savez("each_y.npz", y=values["y"])
    np.savez("each_inner.npz", **{k: v for k, v in values.items() if k != "y"})
    done = subprocess.run([assay, "check", "each.onnx", "-i", "each_x.npz", "-g", "each_y.npz", "--golden-intermediates", "each_inner.npz", "-o", "fix"],
                          capture_output=True, text=True, check=False)
    named = "export  left_made (" in done.stdout or "export  right_made (" in done.stdout
    if done.returncode != 1 or not named or ("verified: its truth" not in done.stdout and "is cyclic" not in done.stdout):
        return [f"constants that are each told by the other's results:\n{done.stdout}{done.stderr}"]
    return []


def main(assay):
    good, faults = model(), []
    samples, unseen = [draw() for _ in range(4)], [draw() for _ in range(3)]
    for name in "inputs", "golden":
        pathlib.Path(name).mkdir()
    for i, feed in enumerate(samples):
        np.savez(f"inputs/{i}.npz", **feed)
        values = inner_values(good, feed)
        np.savez(f"golden/{i}.npz", y=values["y"])
        if i == 0:
            np.savez("inner.npz", **{k: v for k, v in values.items() if k != "y"})
    used = samples[0]["ids"]

    def zero_row(nodes, constants):
        constants["table"] = constants["table"].copy()
        constants["table"][used[1]] = 0

    rows = [*ROWS, (zero_row, "embed", "6 of 54 elements of 'table' are 0")]
    for i, (change, culprit, says) in enumerate(rows):
        onnx.save(model(change), "m.onnx")
        done = subprocess.run([assay, "check", "m.onnx", "-i", "inputs", "-g", "golden", "--golden-intermediates", "inner.npz", "-o", "fix", "--search-time", "20"],
                              capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr
        if f"export  {culprit} (" not in done.stdout or says not in done.stdout or "verified: its truth" not in done.stdout:
            faults.append(f"row {i}: '{culprit}', '{says}' and a verified repair are expected:\n{text}")
            continue
        fixed = ReferenceEvaluator(onnx.load("fix/m.repaired.onnx"))
        for feed in unseen:
            got, want = fixed.run(None, feed)[0], ReferenceEvaluator(good).run(None, feed)[0]
            if np.abs(got - want).max() > 1e-4 * np.abs(want).max():
                faults.append(f"row {i}: the repaired model is {np.abs(got - want).max():.3g} off where it was not checked:\n{text}")
                break
    faults += rounded_by_right(assay, samples) + seen_by_outputs(assay) + twice_wrong(assay) + each_by_the_other(assay)
    print("\n".join(faults) or f"{len(rows)} found")
    return 1 if faults else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
