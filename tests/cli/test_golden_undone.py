#!/usr/bin/env python3
"""Inner values that differ from golden while outputs agree: test_golden_undone.py ASSAY

A factor that an exporter folded into one layer's weights and took out behind it: faithful, with a note that names the value and
the factor, also one for each channel. The same must not hide a fault: where golden lacks an output, where the only output that
reads the value is the number of a class, where an output is off, and where a real fault stands beside the fold. What no output
shows on these inputs is said to be so.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(3)
SAMPLES, N = 3, 8


def draw(*shape):
    return R.normal(size=shape).astype(np.float32)


C = {"w0": draw(5, N), "b0": draw(N), "two": np.float32(2), "w1": draw(N, N), "b1": draw(N), "w2": draw(N, 6)}
LINES = [("Gemm", ["x", "w0", "b0"], "first"), ("Relu", ["first"], "relu"), ("Mul", ["relu", "two"], "twice"), ("Gemm", ["twice", "w1", "b1"], "second"),
         ("Sigmoid", ["second"], "y"), ("MatMul", ["y", "w2"], "z"), ("ArgMax", ["z"], "class")]


def model(c=None, lines=LINES, outputs=("y", "z")):
    types = {"class": T.INT64}
    nodes = [h.make_node(op, i, [o], o, **({"axis": 1} if op == "ArgMax" else {})) for op, i, o in lines]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 5])],
                         [h.make_tensor_value_info(o, types.get(o, T.FLOAT), None) for o in outputs],
                         [nh.from_array(np.asarray(v), k) for k, v in {**C, **(c or {})}.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def folded(factor, **c):
    """The factor 2 (times `factor` for each channel) is in the first layer, and `second` undoes the rest."""
    lines = [(op, ["relu", *i[1:]] if o == "second" else i, o) for op, i, o in LINES if o != "twice"]
    f = np.asarray(factor, np.float32)
    return {"w0": C["w0"] * f, "b0": C["b0"] * f, "w1": C["w1"] * (2 / f.reshape(-1, 1)).astype(np.float32), **c}, lines


def golden_of(x, c=C):
    first = x @ c["w0"] + c["b0"]
    relu = np.maximum(first, 0)
    twice = relu * c["two"]
    second = twice @ c["w1"] + c["b1"]
    y = 1 / (1 + np.exp(-second.astype(np.float64))).astype(np.float32)
    z = y @ c["w2"]
    return {"first": first, "relu": relu, "twice": twice, "second": second, "y": y, "z": z, "class": z.argmax(1)[:, None]}


def check(assay, proto, golden, inputs, outputs):
    with tempfile.TemporaryDirectory() as folder:
        at = lambda *p: os.path.join(folder, *p)
        onnx.save(proto, at("model.onnx"))
        os.makedirs(at("inputs")), os.makedirs(at("golden"))
        for k, (x, g) in enumerate(zip(inputs, golden)):
            np.savez(at("inputs", f"{k}.npz"), x=x)
            np.savez(at("golden", f"{k}.npz"), **{o: g[o] for o in outputs})
        np.savez(at("inner.npz"), **{k: v for k, v in golden[0].items() if k in outputs or k not in ("y", "z", "class")})
        done = subprocess.run([assay, "check", at("model.onnx"), "-i", at("inputs"), "-g", at("golden"), "--golden-intermediates", at("inner.npz"),
                               "--search-time", "2", "--json", at("out.json")], capture_output=True, text=True)
        with open(at("out.json"), encoding="utf-8") as f:
            return json.load(f), done.stdout + done.stderr


def main():
    assay, wrong = sys.argv[1], []
    inputs = [draw(1, 5) for _ in range(SAMPLES)]
    golden = [golden_of(x) for x in inputs]

    def look(what, proto, verdict, undone, text="", known=("y", "z"), of=None):
        """undone: value: (factor, whether later layers undo it)"""
        report, said = check(assay, proto, of or golden, inputs, known)
        found = {u["value"]: (round(u.get("factor", 0), 5), u["undone"]) for u in report["export"]["undone"]}
        if report["verdict"] != verdict or found != undone or text not in said:
            wrong.append(f"{what}: {report['verdict']}, {found}, wanted {verdict}, {undone}, '{text}'\n{said}")

    half, lines = folded(0.5)
    look("as it is", model(), "faithful", {})
    look("fold", model(half, lines), "faithful", {"first": (0.5, True)}, "is golden's times 0.5: later layers undo it")
    by_channel, _ = folded(np.linspace(0.5, 3, N))
    look("fold of each channel", model(by_channel, lines), "faithful", {"first": (0, True)}, "differs from golden by RMS")
    look("an output is not known", model(half, lines), "unfaithful", {}, known=("y",))
    look("a class alone", model(half, lines, ("class",)), "unfaithful", {}, known=("class",))
    look("factor lost", model({k: half[k] for k in ("w0", "b0")}), "unfaithful", {})
    bias = C["b1"] + np.eye(N, dtype=np.float32)[2] * 0.01
    look("fold and a fault", model({**half, "b1": bias}, lines), "unfaithful", {})
    look("small fault", model({"b0": C["b0"] * np.float32(1 + 1e-5)}), "unfaithful", {})
    # Sigmoids that are 0 or 1 on these inputs, whatever the bias.
    far = {"b1": np.where(np.arange(N) % 2, 300, -300).astype(np.float32)}
    flat = [golden_of(x, {**C, **far}) for x in inputs]
    look("saturated", model({"b1": far["b1"] + 20}), "faithful", {"second": (0, False)}, "no output shows it on these inputs", of=flat)
    print("\n".join(wrong) if wrong else "what later layers undo is told")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
