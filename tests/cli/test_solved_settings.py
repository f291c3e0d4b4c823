#!/usr/bin/env python3
"""What golden's inner values tell of functions, arrangements and settings: test_solved_settings.py ASSAY

Small models that an export changed: a function with its numbers is lost or has its epsilon on the wrong side, elements lie in another order, paddings
are on the other side, an index, a scale, a sign of bytes is wrong. `check` says what it is, and the repaired model gives golden's outputs on
inputs that took no part. Golden and the outputs are those of onnx's reference evaluator.
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

R = np.random.default_rng(23)


def f32(*shape):
    return R.normal(size=shape).astype(np.float32)


def i64(*numbers):
    return np.array(numbers, np.int64)


def scalar(x):
    return np.array(x, np.float32)


W = {"w": f32(6, 6), "k": f32(6, 6, 4), "b": f32(6), "k2": f32(3, 3, 3, 3), "q": R.integers(-120, 120, (6, 6)).astype(np.int8), "s": scalar(0.02), "z": np.array(3, np.int8),
     "u": R.integers(0, 255, (6, 6)).astype(np.uint8), "lw": f32(1, 16, 6), "lr": f32(1, 16, 4), "lb": f32(1, 32) * np.float32(0.2), "lp": f32(1, 12)}
LSTM = (W["lb"].reshape(8, 4) - np.eye(8, dtype=np.float32)[2][:, None]).reshape(1, 32)  # of the gates i, o, f, c
TOKENS, IMAGE, WIDE = ("x", ["N", 12, 6]), ("x", ["N", 3, 10, 10]), ("x", ["N", 16, 6])


def mul(w="w"):
    return ("MatMul", ["x", w], "m", {})


def out(x):
    return ("Mul", [x, "two"], "y", {})


# what it is: inputs, good nodes, good constants, bad nodes, bad constants, part of what is said
def lost(nodes, *gone):
    """Nodes and the same without some of them: what read one reads its first input."""
    bad = list(nodes)
    for out in gone:
        instead = next(inputs[0] for _, inputs, o, _ in bad if o == out)
        bad = [(op, [instead if v == out else v for v in inputs], o, a) for op, inputs, o, a in bad if o != out]
    return nodes, {}, bad, {}


def other(nodes, good, bad, bad_nodes=None):
    return nodes, good, bad_nodes or nodes, bad


CAP = [mul(), ("Div", ["m", "cap"], "d", {}), ("Tanh", ["d"], "t", {}), ("Mul", ["t", "cap"], "c", {}), out("c")]
ROOT = [("Mul", ["x", "x"], "v", {}), ("Add", ["v", "e"], "a", {}), ("Sqrt", ["a"], "r", {}), ("Div", ["x", "r"], "y", {})]
OUTSIDE = [("Mul", ["x", "x"], "v", {}), ("Sqrt", ["v"], "raw", {}), ("Add", ["raw", "e"], "r", {}), ("Div", ["x", "r"], "y", {})]
HEADS = [("Reshape", ["x", "split"], "h", {}), ("Transpose", ["h"], "t", {"perm": [0, 2, 1, 3]}), ("Softmax", ["t"], "p", {}),
         ("Transpose", ["p"], "back", {"perm": [0, 2, 1, 3]}), ("Reshape", ["back", "join"], "j", {}), ("MatMul", ["j", "w"], "y", {})]
NOT_BACK = [n for n in HEADS[:3]] + [("Reshape", ["p", "join"], "j", {}), ("MatMul", ["j", "w"], "y", {})]
SHUFFLE = [("Reshape", ["x", "parts"], "p", {}), ("Transpose", ["p"], "t", {"perm": [0, 5, 1, 3, 2, 4]}), ("Reshape", ["t", "whole"], "r", {}), out("r")]
TILES = [("Reshape", ["x", "parts"], "p", {}), ("Transpose", ["p"], "t", {"perm": [0, 5, 3, 1, 4, 2]}), ("Reshape", ["t", "whole"], "r", {}), out("r")]
CENTRE = [("ReduceMean", ["x", "last"], "c", {}), ("Sub", ["x", "c"], "d", {}), ("Mul", ["d", "d"], "v", {}), ("ReduceMean", ["v", "last"], "var", {}),
          ("Add", ["var", "e"], "a", {}), ("Sqrt", ["a"], "r", {}), ("Div", ["d", "r"], "n", {}), out("n")]
NO_CENTRE = [(op, ["x" if v == "d" else v for v in inputs], o, a) for op, inputs, o, a in CENTRE if o != "d"]
PAD = [("Pad", ["x", "pads", "value"], "p", {}), ("MaxPool", ["p"], "m", {"kernel_shape": [3, 3], "strides": [2, 2]}), out("m")]
BYTES = {"u": W["q"].view(np.uint8), "z": W["z"].view(np.uint8)}
DEQUANTIZED = [("DequantizeLinear", ["{q}", "s", "z"], "wd", {}), ("MatMul", ["x", "wd"], "m", {}), out("m")]


def of_bytes(q):
    return [(op, [v.format(q=q) for v in inputs], o, a) for op, inputs, o, a in DEQUANTIZED]


def conv(op="Conv", **attributes):
    return [("Transpose", ["x"], "t", {"perm": [0, 2, 1]}), (op, ["t", "k", "b"], "c", attributes), out("c")]


def resize(n):
    return [("Resize", ["x", "", n], "r", {"mode": "linear"}), out("r")]


def first(index):
    return [("MatMul", ["x", "w"], "m", {}), ("Gather", ["m", index], "g", {"axis": 1}), out("g")]


def mean(count):
    return [("Sign", ["x"], "sign", {}), ("Relu", ["sign"], "mask", {}), ("Mul", ["x", "mask"], "kept", {}), ("ReduceSum", ["kept", "steps"], "sum", {"keepdims": 0}),
            ("ReduceSum", ["mask", "steps"], "number", {"keepdims": 0}), ("Add", ["number", "e"], "count", {}), ("Div", ["sum", count], "d", {}), out("d")]


def lrn(**attributes):
    return ("LRN", ["x"], "c", {"alpha": 0.5, "beta": 0.75, "bias": 1.0, **attributes})


def length(op):
    return [(op, ["x", "last"], "l", {"keepdims": 1}), ("Div", ["x", "l"], "c", {}), out("c")]


RECURRENT = [("Transpose", ["x"], "t", {"perm": [1, 0, 2]}), ("LSTM", ["t", "lw", "lr", "lb"], "all", {"hidden_size": 4}), out("all")]
PEEPHOLES = [RECURRENT[0], ("LSTM", ["t", "lw", "lr", "lb", "", "", "", "lp"], "all", {"hidden_size": 4}), out("all")]
ROWS = {
    "a soft cap": (TOKENS, *lost(CAP, "d", "t", "c"), "tanh(x / "),
    "an activation inside": (TOKENS, *lost(CAP, "t"), "6 tanh(x / 6)"),
    "a clipping": (TOKENS, *lost([mul(), ("Clip", ["m", "low", "high"], "c", {}), out("c")], "c"), "a clipping to -1.5"),
    "a slope": (TOKENS, *lost([mul(), ("LeakyRelu", ["m"], "c", {"alpha": 0.3}), out("c")], "c"), "slopes of 0.3 below 0"),
    "a sharp softplus": (TOKENS, *lost([mul(), ("Mul", ["m", "three"], "d", {}), ("Softplus", ["d"], "p", {}), ("Div", ["p", "three"], "c", {}), out("c")], "d", "p", "c"), "softplus("),
    "an epsilon outside": (TOKENS, *other(ROOT, {}, {}, OUTSIDE), "with e = 0.01"),
    "heads not turned back": (TOKENS, *other(HEADS, {}, {}, NOT_BACK), "transpose:0,2,1,3"),
    "heads split in turn": (TOKENS, *other(HEADS, {}, {"split": i64(0, 0, 3, 2)}), ""),
    "tiles": (("x", ["N", 16, 12]), *other(SHUFFLE, {}, {}, TILES), "perm = [0,5,1,3,2,4]"),
    "the last for the first": (TOKENS, *other(first("zero"), {}, {"zero": np.array(11)}), "element 0, not 11"),
    "the first for the last": (TOKENS, *other(first("minus"), {}, {"minus": np.array(0)}), "element -1, not 0"),
    "causal padding": (TOKENS, *other(conv(pads=[3, 0]), {}, {}, conv(pads=[1, 2])), "pads = [3,0]"),
    "a dilation to one side": (TOKENS, *other(conv(pads=[9, 0], dilations=[3]), {}, {}, conv(pads=[2, 1])), "pads = [9,0], dilations = [3]"),
    "sides of an image": (IMAGE, *other([("Conv", ["x", "k2"], "c", {"pads": [2, 0, 0, 2]}), out("c")], {}, {}, [("Conv", ["x", "k2"], "c", {"pads": [1, 1, 1, 1]}), out("c")]),
                          "pads = [2,0,0,2]"),
    "a pad's value and side": (IMAGE, *other(PAD, {}, {"pads": i64(0, 0, 0, 0, 0, 0, 1, 1), "value": scalar(0)}), "padded by -7"),
    "a scale recomputed": (IMAGE, *other(resize("scales"), {}, {"scales": np.array([1, 1, 1.4, 1.4], np.float32)}), "scales of 1.45"),
    "bytes without a sign": (TOKENS, *other(of_bytes("q"), {}, BYTES, of_bytes("u")), "have the other sign"),
    "a mean over all": (TOKENS, *other(mean("count"), {}, {"all": scalar(12)}, mean("all")), "count"),
    "no centring": (TOKENS, *other(CENTRE, {}, {}, NO_CENTRE), "not taken off"),
    "peepholes in another order": (TOKENS, *other(PEEPHOLES, {}, {"lp": np.roll(W["lp"].reshape(3, 4), 1, 0).reshape(1, 12)}), "order of peepholes"),
    "a radius for a size": (IMAGE, *other([lrn(size=5), out("c")], {}, {}, [lrn(size=2), out("c")]), "size = 5"),
    "a size and its share": (IMAGE, *other([lrn(size=3, alpha=0.9), out("c")], {}, {}, [lrn(size=1, alpha=0.3), out("c")]), "size = 3"),
    "another norm": (TOKENS, *other([("Abs", ["x"], "a", {}), ("LpNormalization", ["a"], "c", {"axis": 2, "p": 1}), out("c")], {}, {},
                                    [("Abs", ["x"], "a", {}), ("LpNormalization", ["a"], "c", {"axis": 2, "p": 2}), out("c")]), "p = 1"),
    "squares for sums": (TOKENS, *other(length("ReduceL2"), {}, {}, length("ReduceL1")), "ReduceL2 in place of ReduceL1"),
    "shares for single chances": (TOKENS, *other([mul(), ("Sigmoid", ["m"], "c", {}), out("c")], {}, {}, [mul(), ("Softmax", ["m"], "c", {"axis": -1}), out("c")]),
                                  "Sigmoid in place of"),
    "a filter before it grows": (IMAGE, *other([("Resize", ["x", "", "scales"], "r", {"mode": "nearest"}), ("Conv", ["r", "k2"], "c", {"pads": [1, 1, 1, 1]}), out("c")], {}, {},
                                               [("Conv", ["x", "k2"], "r", {"pads": [1, 1, 1, 1]}), ("Resize", ["r", "", "scales"], "c", {"mode": "nearest"}), out("c")]),
                                 "on the wrong side"),
    "a forget bias": (TOKENS, *other(RECURRENT, {}, {"lb": LSTM}), "the bias of gate f plus 1"),
}
NUMBERS = {"two": scalar(2), "cap": scalar(6), "e": scalar(0.01), "low": scalar(-1.5), "high": scalar(2.3), "three": scalar(3), "split": i64(0, 0, 2, 3), "join": i64(0, 12, 6),
           "parts": i64(0, 4, 4, 2, 2, 3), "whole": i64(0, 3, 8, 8), "last": i64(-1), "steps": i64(1), "pads": i64(0, 0, 1, 1, 0, 0, 0, 0), "value": scalar(-7),
           "scales": np.array([1, 1, 1.45, 1.45], np.float32), "zero": np.array(0), "minus": np.array(-1)}


def model(x, nodes, constants):
    used = {v for _, inputs, _, _ in nodes for v in inputs}
    values = {k: v for k, v in {**W, **NUMBERS, **constants}.items() if k in used}
    graph = h.make_graph([h.make_node(op, inputs, [o], name=f"{o}_node", **a) for op, inputs, o, a in nodes], "g", [h.make_tensor_value_info(x[0], T.FLOAT, x[1])],
                         [h.make_tensor_value_info("y", T.FLOAT, None)], [nh.from_array(v, k) for k, v in values.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 19)], ir_version=9)


def draw(x, n):
    return {x[0]: f32(n, *x[1][1:])}


def check(assay, name, row):
    x, nodes, constants, bad_nodes, bad_constants, says = row
    good, seen, unseen = model(x, nodes, constants), draw(x, 3), draw(x, 2)
    np.savez("in.npz", **seen)
    np.savez("golden.npz", **inner_values(good, seen))
    onnx.save(model(x, bad_nodes, bad_constants), "m.onnx")
    done = subprocess.run([assay, "check", "m.onnx", "-i", "in.npz", "-g", "golden.npz", "-o", "fix", "--search-time", "20"], capture_output=True, text=True, check=False)
    if "verified: its truth" not in done.stdout or says not in done.stdout:
        return [f"{name}: not as expected ('{says}'):\n{done.stdout}{done.stderr}"]
    got, want = (ReferenceEvaluator(m).run(None, unseen)[0] for m in (onnx.load("fix/m.repaired.onnx"), good))
    if got.shape != want.shape or np.abs(got - want).max() > 1e-4 * np.abs(want).max():
        return [f"{name}: the repaired model differs where it was not checked:\n{done.stdout}"]
    return []


def unlike_sizes(assay):
    """As many rows as each sample has: a right repair is verified."""
    nodes = [("Mul", ["x", "twist"], "m", {}), ("Sub", ["m", "e"], "d", {}), ("Relu", ["d"], "y", {}), ("NonZero", ["y"], "nz", {}), ("Transpose", ["nz"], "where", {})]
    models = []
    for twist in (np.array([[1], [2], [3]], np.float32), np.array([[3], [2], [1]], np.float32)):
        m = model(("x", [1, 3, 8]), nodes, {"twist": twist})
        m.graph.output.append(h.make_tensor_value_info("where", T.INT64, ["K", 3]))
        models.append(m)
    for part in ("ins", "golds"):
        pathlib.Path(part).mkdir()
    for i in range(3):
        x = {"x": f32(1, 3, 8)}
        values = inner_values(models[0], x)
        np.savez(f"ins/{i}.npz", **x)
        np.savez(f"golds/{i}.npz", **{k: values[k] for k in ("y", "where")})
        if i == 0:
            np.savez("inner.npz", **{k: values[k] for k in ("m", "d")})
    onnx.save(models[1], "m.onnx")
    done = subprocess.run([assay, "check", "m.onnx", "-i", "ins", "-g", "golds", "--golden-intermediates", "inner.npz", "-o", "fix"], capture_output=True, text=True, check=False)
    return [] if "verified: its truth" in done.stdout else [f"samples of unlike sizes:\n{done.stdout}{done.stderr}"]


def clipped(assay):
    """A cell's clip is lost; onnx's reference has none, so golden is ONNX Runtime's."""
    import onnxruntime
    nodes = [(op, i, o, {**a, "clip": 0.5} if op == "LSTM" else a) for op, i, o, a in RECURRENT]
    good, x = model(TOKENS, nodes, {}), draw(TOKENS, 3)
    good.graph.output.append(h.make_tensor_value_info("all", T.FLOAT, None))
    run = onnxruntime.InferenceSession(good.SerializeToString(), providers=["CPUExecutionProvider"])
    np.savez("in.npz", **x)
    np.savez("golden.npz", **dict(zip([o.name for o in good.graph.output], run.run(None, x))))
    onnx.save(model(TOKENS, RECURRENT, {}), "m.onnx")
    done = subprocess.run([assay, "check", "m.onnx", "-i", "in.npz", "-g", "golden.npz", "-o", "fix"], capture_output=True, text=True, check=False)
    return [] if "verified: its truth" in done.stdout and "clip = 0.5" in done.stdout else [f"a cell's clip:\n{done.stdout}{done.stderr}"]


def main(assay):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, row in ROWS.items():
            faults += check(assay, name, row)
        faults += unlike_sizes(assay) + clipped(assay)
    print("\n".join(faults) or f"{len(ROWS)} settings solved")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
