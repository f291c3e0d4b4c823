#!/usr/bin/env python3
"""What golden's inner values tell of formulas: test_solved_formulas.py ASSAY

Operators along an axis are lost, constants were not computed of a checkpoint's, powers and curves are lost, two values are combined otherwise, a
recurrent layer's functions have other numbers, channels have no range. `check` says what it is, and the repaired model gives golden's outputs on
inputs that took no part. Golden and the outputs are those of onnx's reference evaluator, of recurrent layers ONNX Runtime's.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper as h
from onnx.reference import ReferenceEvaluator

from inner_values import inner_values
from test_solved_settings import RECURRENT, TOKENS, check, draw, i64, lost, model, mul, other, out, scalar

C = {"axis": np.array(1), "zero": scalar(0), "one": scalar(1), "tiny": scalar(1e-3), "gamma": scalar(1 / 2.4), "third": scalar(0.3), "mu": scalar(np.log(256)),
     "over": scalar(1 / 255), "channels": i64(-1), "begin": i64(0), "end": i64(-1), "steps": i64(1), "front": i64(0, 1, 0, 0, 0, 0),
     "table": np.cumprod(np.linspace(0.99, 0.7, 12)).astype(np.float32), "rates": np.exp(np.linspace(-1, 1, 12)).astype(np.float32),
     "slope": np.linspace(-0.5, 1.8, 6, dtype=np.float32), "low": np.array([-2, 0.5, 0, 1, -1, 3], np.float32), "wide": np.array([0.5, 2, 3, 1.5, 0.25, 4], np.float32),
     "turn": np.cos(np.arange(6)).astype(np.float32), "turn2": np.sin(np.arange(1, 7)).astype(np.float32), "w2": np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6) ** 3}


def gone(nodes, *outputs):
    nodes, _, bad, _ = lost(nodes, *outputs)
    return nodes, C, bad, C


def exchanged(nodes, bad):
    return nodes, C, bad, C


def sums(**attributes):
    return [mul(), ("CumSum", ["m", "axis"], "c", attributes), out("c")]


def looked_up(bad):
    nodes = [("ArgMax", ["x"], "i", {"axis": 1, "keepdims": 0}), ("Gather", ["table", "i"], "g", {}), out("g")]
    return nodes, C, nodes, {**C, "table": bad}


def pair(*nodes):
    return [mul(), ("MatMul", ["x", "w2"], "v", {}), *nodes, out("c")]


PRODUCTS = [mul(), ("Sigmoid", ["m"], "p", {}), ("Log", ["p"], "l", {}), ("CumSum", ["l", "axis"], "r", {}), ("Exp", ["r"], "c", {}), out("c")]
STEPS = [mul(), ("Slice", ["m", "begin", "end", "steps"], "before", {}), ("Pad", ["before", "front"], "shifted", {}), ("Sub", ["m", "shifted"], "c", {}), out("c")]
SHARES = [mul(), ("Softplus", ["m"], "p", {}), ("ReduceSum", ["p", "steps"], "all", {"keepdims": 1}), ("Div", ["p", "all"], "c", {}), out("c")]
RANGE = [mul(), ("ReduceMin", ["m", "channels"], "least", {"keepdims": 1}), ("ReduceMax", ["m", "channels"], "most", {"keepdims": 1}), ("Sub", ["m", "least"], "up", {}),
         ("Sub", ["most", "least"], "wide", {}), ("Div", ["up", "wide"], "c", {}), out("c")]
LIGHT = [mul(), ("Clip", ["m", "tiny", "one"], "cut", {}), ("Pow", ["cut", "gamma"], "c", {}), out("c")]
ROOTED = [mul(), ("Abs", ["m"], "a", {}), ("Pow", ["a", "third"], "p", {}), ("Sign", ["m"], "sign", {}), ("Mul", ["p", "sign"], "c", {}), out("c")]
SAMPLES = [mul(), ("Tanh", ["m"], "t", {}), ("Sign", ["t"], "sign", {}), ("Abs", ["t"], "a", {}), ("Mul", ["a", "mu"], "l", {}), ("Exp", ["l"], "e", {}), ("Sub", ["e", "one"], "e1", {}),
           ("Mul", ["e1", "over"], "e2", {}), ("Mul", ["sign", "e2"], "c", {}), out("c")]
SLOPES = [mul(), ("PRelu", ["m", "slope"], "c", {}), out("c")]
AS_MAXIMUM = [mul(), ("Mul", ["m", "slope"], "sloped", {}), ("Max", ["m", "sloped"], "c", {}), out("c")]
LENGTH = pair(("Mul", ["m", "m"], "mm", {}), ("Mul", ["v", "v"], "vv", {}), ("Add", ["mm", "vv"], "sum", {}), ("Sqrt", ["sum"], "c", {}))
MIXED = pair(("Sigmoid", ["x"], "g", {}), ("Sub", ["m", "v"], "d", {}), ("Mul", ["d", "g"], "dg", {}), ("Add", ["v", "dg"], "c", {}))
NOT_MIXED = pair(("Sigmoid", ["x"], "g", {}), ("Mul", ["m", "g"], "mg", {}), ("Add", ["v", "mg"], "c", {}))

# what it is: inputs, good nodes, good constants, bad nodes, bad constants, part of what is said
ROWS = {
    "running sums": (TOKENS, *gone(sums(), "c"), "running sums along axis 1"),
    "running sums from the end": (TOKENS, *gone(sums(reverse=1), "c"), "running sums from the end along axis 1"),
    "running products": (TOKENS, *gone(PRODUCTS, "l", "r", "c"), "running"),
    "steps": (TOKENS, *gone(STEPS, "c"), ""),
    "shares": (TOKENS, *gone(SHARES, "c"), ""),
    "places in a range": (TOKENS, *gone(RANGE, "up", "c"), "between minimum and maximum"),
    "noise of each step": (TOKENS, *looked_up(np.linspace(0.99, 0.7, 12, dtype=np.float32)), ""),
    "logarithms of rates": (TOKENS, *other(looked_up(None)[0], {**C, "table": C["rates"]}, {**C, "table": np.linspace(-1, 1, 12, dtype=np.float32)}), "exp of what is there"),
    "a screen's curve": (TOKENS, *gone(LIGHT, "c"), "power 0.41667"),
    "a root with a sign": (TOKENS, *exchanged(ROOTED, [mul(), out("m")]), "signed power 0.3"),
    "levels of sound": (TOKENS, *exchanged(SAMPLES, [*SAMPLES[:2], out("t")]), "signed exp - 1(5.5452 x)"),
    "slopes as a maximum": (TOKENS, *exchanged(SLOPES, AS_MAXIMUM), "above 0, else the second"),
    "a length as a sum": (TOKENS, *exchanged(LENGTH, pair(("Add", ["m", "v"], "c", {}))), "sqrt("),
    "a mixture": (TOKENS, *exchanged(MIXED, NOT_MIXED), ""),
}


def by_runtime(m, x):
    run = onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in m.graph.output], run.run(None, x)))


def recurrent(assay, name, good, bad, says):
    """A recurrent layer is told other functions than the framework has."""
    models = []
    for told in (good, bad):
        models.append(model(TOKENS, [(op, i, o, {**a, **told} if op == "LSTM" else a) for op, i, o, a in RECURRENT], {}))
    seen, unseen = draw(TOKENS, 3), draw(TOKENS, 2)
    want = by_runtime(models[0], unseen)["y"]
    models[0].graph.output.append(h.make_tensor_value_info("all", T.FLOAT, None))
    np.savez("in.npz", **seen)
    np.savez("golden.npz", **by_runtime(models[0], seen))
    onnx.save(models[1], "m.onnx")
    done = subprocess.run([assay, "check", "m.onnx", "-i", "in.npz", "-g", "golden.npz", "-o", "fix"], capture_output=True, text=True, check=False)
    if "verified: its truth" not in done.stdout or says not in done.stdout:
        return [f"{name}: not as expected ('{says}'):\n{done.stdout}{done.stderr}"]
    got = by_runtime(onnx.load("fix/m.repaired.onnx"), unseen)["y"]
    return [] if np.abs(got - want).max() < 1e-5 else [f"{name}: the repaired model differs where it was not checked:\n{done.stdout}"]


def lines(alpha, beta):
    return {"activations": ["HardSigmoid", "Tanh", "Tanh"], "activation_alpha": [alpha], "activation_beta": [beta]}


def by_samples(assay, name, good, bad, inner, says):
    """One row each in four samples; golden has inner values of the first."""
    x = ("x", [1, 6])
    good, bad = model(x, good, C), model(x, bad, {**C, **{k + "_bad": np.tile(v[:3], 2) for k, v in C.items() if k in ("turn", "turn2")}})
    for i in range(4):
        seen = draw(x, 1)
        values = inner_values(good, seen)
        for part, arrays in (("ins", seen), ("golds", {"y": values["y"]}), ("inner", {k: values[k] for k in inner})):
            pathlib.Path(f"{name}/{part}").mkdir(parents=True, exist_ok=True)
            if part != "inner" or i == 0:
                np.savez(f"{name}/{part}/{i}.npz", **arrays)
    onnx.save(bad, "m.onnx")
    done = subprocess.run([assay, "check", "m.onnx", "-i", f"{name}/ins", "-g", f"{name}/golds", "--golden-intermediates", f"{name}/inner/0.npz", "-o", "fix"],
                          capture_output=True, text=True, check=False)
    if "verified: its truth" not in done.stdout or says not in done.stdout:
        return [f"{name}: not as expected ('{says}'):\n{done.stdout}{done.stderr}"]
    unseen = draw(x, 1)
    got, want = (ReferenceEvaluator(m).run(None, unseen)[0] for m in (onnx.load("fix/m.repaired.onnx"), good))
    return [] if np.abs(got - want).max() < 1e-4 else [f"{name}: it differs where it was not checked:\n{done.stdout}"]


# Each channel's range is lost: three samples tell it, the fourth is the test.
RANGES = [mul(), ("Tanh", ["m"], "t", {}), ("Mul", ["t", "wide"], "d", {}), ("Add", ["d", "low"], "y", {})]
NO_RANGES = [mul(), ("Tanh", ["m"], "y", {})]


def turned(first, second):
    """Two tables, half of which is lost: one sample tells both, the others have to bear them out together."""
    return [mul(), ("Mul", ["m", first], "p", {}), ("MatMul", ["x", "w2"], "v", {}), ("Mul", ["v", second], "r", {}), ("Add", ["p", "r"], "c", {}), ("Tanh", ["c"], "y", {})]


def main(assay):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, row in ROWS.items():
            faults += check(assay, name, row)
        faults += recurrent(assay, "another slope", lines(1 / 6, 0.5), lines(0.2, 0.5), "0.16666")
        faults += recurrent(assay, "a slope that nobody has", lines(0.3172, 0.46), lines(0.2, 0.5), "HardSigmoid of 0.3172 and 0.46")
        faults += recurrent(assay, "names left out", {"activations": ["Sigmoid", "Softsign", "Softsign"]}, {}, "Softsign")
        faults += by_samples(assay, "ranges", RANGES, NO_RANGES, ["m"], "a factor and a bias (12 numbers)")
        faults += by_samples(assay, "tables", turned("turn", "turn2"), turned("turn_bad", "turn2_bad"), ["m", "p", "v", "r", "c"], "elements of 'turn")
    print("\n".join(faults) or f"{len(ROWS) + 5} formulas found")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
