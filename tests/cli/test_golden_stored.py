#!/usr/bin/env python3
"""Golden that was stored with few digits: test_golden_stored.py ASSAY

A healthy network whose nodes amplify what printing loses: 1 - x of an x near 1, logarithms and quotients of small numbers, sums of
several terms, comparisons and choices next to ties, a mask of a
number past what 16 bits hold. Its golden goes through text (with digits, with places) or 16 bits, with inner
values and without: no alarm is raised, of three outputs of three numbers either. A fault of clear size, ten times the resolution, is
found in all of them. Where only one file was printed, it alone is excused.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

np.seterr(over="ignore")  # 16 bits of the mask
R = np.random.default_rng(3)
SAMPLES = 3
NODES = [
    h.make_node("MatMul", ["x", "w"], ["product"], "product"),
    h.make_node("Add", ["product", "b"], ["logits"], "bias"),
    h.make_node("Sigmoid", ["logits"], ["gate"], "gate"),
    h.make_node("Sub", ["one", "gate"], ["rest"], "rest"),
    h.make_node("Log", ["rest"], ["log_rest"], "log_rest"),
    h.make_node("Div", ["gate", "rest"], ["odds"], "odds"),
    h.make_node("MatMul", ["gate", "v"], ["mixed"], "mixed"),
    h.make_node("Tanh", ["mixed"], ["bent"], "bent"),
    h.make_node("ArgMax", ["bent"], ["best"], "best", axis=1, keepdims=0),
    h.make_node("Greater", ["bent", "half"], ["over"], "over"),
    h.make_node("Cast", ["over"], ["as_float"], "as_float", to=T.FLOAT),
    h.make_node("Mul", ["as_float", "bent"], ["kept"], "kept"),
    h.make_node("Constant", [], ["floor"], "floor", value=h.make_tensor("floor", T.FLOAT, [], [-1e9])),
    h.make_node("Where", ["over", "bent", "floor"], ["masked"], "masked"),
    h.make_node("Softmax", ["masked"], ["shares"], "shares"),
    h.make_node("ReduceMax", ["shares"], ["share"], "share", axes=[1], keepdims=0),
    h.make_node("ReduceMean", ["log_rest"], ["loss"], "loss", axes=[1], keepdims=0),
    h.make_node("ReduceMean", ["odds"], ["mean_odds"], "mean_odds", axes=[1], keepdims=0),
]
CONSTANTS = {"w": R.normal(size=(20, 40)) / 3, "b": R.normal(size=40), "v": R.normal(size=(40, 12)) / 4, "one": np.array(1.0), "half": np.array(0.5)}
OUTPUTS = [("kept", T.FLOAT), ("share", T.FLOAT), ("best", T.INT64), ("loss", T.FLOAT), ("mean_odds", T.FLOAT)]


def digits(form):
    return lambda a: np.array([float(form % x) for x in a.reshape(-1)], np.float32).reshape(a.shape)


WAYS = {"%.4g": (digits("%.4g"), 5e-4), "%.5g": (digits("%.5g"), 5e-5), "%.6g": (digits("%.6g"), 5e-6), "%.7g": (digits("%.7g"), 5e-7),
        "%.4f": (digits("%.4f"), 5e-4), "%.6f": (digits("%.6f"), 5e-6),
        "float16": (lambda a: a.astype(np.float16), 5e-4), "float16 in float32": (lambda a: a.astype(np.float16).astype(np.float32), 5e-4),
        "bfloat16": (lambda a: ((a.view(np.uint32) + 0x7FFF + ((a.view(np.uint32) >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32), 4e-3)}


def model(nodes=NODES, **other):
    constants = {k: np.asarray(v, np.float32) for k, v in {**CONSTANTS, **other}.items()}
    outputs = [h.make_tensor_value_info(n, t, ["n"] if n != "kept" else ["n", 12]) for n, t in OUTPUTS]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["n", 20])], outputs, [nh.from_array(v, k) for k, v in constants.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8)


def values_of(proto, x):
    every = onnx.ModelProto()
    every.CopyFrom(proto)
    del every.graph.output[:]
    every.graph.output.extend(h.make_tensor_value_info(n.output[0], T.UNDEFINED, None) for n in proto.graph.node)
    values = ReferenceEvaluator(every).run(None, {"x": x})
    return {n.output[0]: np.asarray(v) for n, v in zip(proto.graph.node, values)}


def stored(values, way):
    return {k: way(v) if v.dtype == np.float32 else v for k, v in values.items()}


def write(golden, every, outer, inner):
    """A file a sample of outputs, one of inner values of the first."""
    names = [n for n, _ in OUTPUTS]
    os.makedirs(golden, exist_ok=True)
    for i, values in enumerate(every):
        np.savez(f"{golden}/{i}.npz", **{k: v for k, v in stored(values, outer).items() if k in names})
    np.savez(f"{golden}_inner.npz", **{k: v for k, v in stored(every[0], inner).items() if k not in names})


def check(assay, path, golden, inner):
    line = [assay, "check", path, "-i", "inputs", "-g", golden, "--search-time", "2", "--json", "report.json"]
    done = subprocess.run(line + (["--golden-intermediates", f"{golden}_inner.npz"] if inner else []), capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    with open("report.json", encoding="utf-8") as f:
        return json.load(f)


def main(assay):
    assay = os.path.abspath(assay)
    as_is = lambda a: a
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("inputs")
        onnx.save(model(), "model.onnx")
        every = []
        for i in range(SAMPLES):
            # Logits up to 9: what is left of 1 has few digits of its own.
            x = (R.normal(size=(3, 20)) * (1.5 if i else 1)).astype(np.float32)
            np.savez(f"inputs/{i}.npz", x=x)
            every.append(values_of(model(), x))
        for name, (way, size) in WAYS.items():
            golden = "golden_" + name.replace("%", "").replace(" ", "_")
            write(golden, every, way, way)
            for inner in (False, True):
                found = check(assay, "model.onnx", golden, inner)
                assert found["verdict"] == "faithful", f"golden in {name}, inner values {inner}: an alarm, {found['culprits'][:1]}"
            # A weight of the last product is off by 20 times the resolution.
            onnx.save(model(v=CONSTANTS["v"] * (1 + 20 * size)), "faulty.onnx")
            found = check(assay, "faulty.onnx", golden, True)
            assert found["verdict"] == "unfaithful", f"golden in {name}: a fault of 20 times its resolution is excused"
            assert found["culprits"][0]["nodes"] == ["mixed"], f"golden in {name}: {found['culprits'][0]['nodes']}"
        # Outputs were printed and inner values were not, or the reverse: what was not has all its digits.
        six, exact = WAYS["%.5g"][0], as_is
        onnx.save(model(v=CONSTANTS["v"] * (1 + 2e-5)), "faulty.onnx")
        for name, outer, inner in (("outer", six, exact), ("inner", exact, six)):
            write(name, every, outer, inner)
            found = check(assay, "model.onnx", name, True)
            assert found["verdict"] == "faithful", f"only {name} values printed: an alarm, {found['culprits'][:1]}"
        write("outer", every, six, exact)
        found = check(assay, "faulty.onnx", "outer", True)
        assert found["verdict"] == "unfaithful" and found["culprits"][0]["nodes"] == ["mixed"], "printed outputs excuse inner values"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
