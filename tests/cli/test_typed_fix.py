#!/usr/bin/env python3
"""A model that declares float16 or bfloat16 gets a fix as one in float32 with a precision does: layers raised to fp32.

    test_typed_fix.py ASSAY

The fix is found by `check`, `debug precision` and `tune`, holds as rules on the typed model and as a model with Casts, and
ONNX Runtime runs the latter with the same outputs.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h

from inner_values import inner_values
from test_typed import initializer

UNFAITHFUL = 1
SIZE = 32


def local_mean(elem, edges, per_cast=False):
    """A mean by sums over both axes, which pass float16's range, as TLSC pooling is exported. edges: the inputs and outputs
    are float32. per_cast: the sums are float32 nodes, with float16 between any two of them."""
    rng = np.random.default_rng(3)
    inner = "x_low" if edges else "x"
    nodes = [h.make_node("Cast", ["x"], [inner], "down", to=elem)] if edges else []
    nodes += [h.make_node("Conv", [inner, "w0", "b0"], ["c0"], "c0", pads=[1, 1, 1, 1]),
              h.make_node("Relu", ["c0"], ["r0"], "r0")]
    sums = [h.make_node("CumSum", ["r0", "axis2"], ["s2"], "sum2"), h.make_node("CumSum", ["s2", "axis3"], ["s3"], "sum3"),
            h.make_node("Slice", ["s3", "from", "to", "axes"], ["corner"], "corner"),
            h.make_node("Slice", ["s3", "before", "from", "axes"], ["edge"], "edge"),
            h.make_node("Sub", ["corner", "edge"], ["part"], "part"), h.make_node("Div", ["part", "count"], ["mean"], "mean")]
    if per_cast:
        for n in sums:
            floats = [i for i in n.input if i in ("r0", "s2", "s3", "corner", "edge", "part", "count")]
            for i in floats:
                nodes.append(h.make_node("Cast", [i], [f"{i}_for_{n.name}"], f"{n.name}_{i}_up", to=T.FLOAT))
            made = n.output[0]
            nodes.append(h.make_node(n.op_type, [f"{i}_for_{n.name}" if i in floats else i for i in n.input], [made + "_32"], n.name))
            nodes.append(h.make_node("Cast", [made + "_32"], [made], n.name + "_down", to=elem))
    else:
        nodes += sums
    nodes += [h.make_node("Mul", ["r0", "mean"], ["g"], "gate"),
              h.make_node("Conv", ["g", "w1"], ["y_low" if edges else "y"], "c1")]
    if edges:
        nodes.append(h.make_node("Cast", ["y_low"], ["y"], "up", to=T.FLOAT))
    gain = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
    floats = {"w0": gain * 40, "b0": np.full(8, 300, np.float32), "w1": rng.standard_normal((4, 8, 1, 1)).astype(np.float32) / 4096,
              "count": np.full((1, 1, 1, 1), SIZE * SIZE, np.float32)}
    whole = {"axis2": np.array(2), "axis3": np.array(3), "from": np.array([SIZE - 1, SIZE - 1]), "to": np.array([SIZE, SIZE]),
             "before": np.array([SIZE - 2, SIZE - 2]), "axes": np.array([2, 3])}
    init = [initializer(n, v, elem) for n, v in floats.items()]
    init += [onnx.numpy_helper.from_array(v.astype(np.int64), n) for n, v in whole.items()]
    outer = T.FLOAT if edges else elem
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", outer, [1, 3, SIZE, SIZE])],
                     [h.make_tensor_value_info("y", outer, [1, 4, SIZE, SIZE])], init)
    return h.make_model(g, opset_imports=[h.make_opsetid("", 22)], ir_version=10)


def assay(*args, code=0):
    r = subprocess.run([sys.argv[1], *args], capture_output=True, text=True)
    assert r.returncode == code, (args, r.returncode, r.stdout, r.stderr)
    return r.stdout


def checked(*args, code=0):
    return json.loads(assay("check", *args, "--json", "-", code=code))


def ran(model, inputs, *options, target="emu"):
    assay("run", model, "-i", inputs, "-o", "out.npz", "--target", target, *options)
    return np.load("out.npz")["y"].astype(np.float64)


def emulated(model, *options):
    """Layers of the CPU's plan that no kernel serves."""
    said = assay("build", model, "-o", "it.plan", *options)
    return re.findall(r"(\d+) layers? ha\w+ no kernel", said)


def snr_db(got, want):
    return 10 * np.log10(np.sum(want ** 2) / max(np.sum((got - want) ** 2), 1e-300))


def by_onnxruntime(model, inputs):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(np.load(inputs)))[0].astype(np.float64)


def holds(report, model, inputs, culprits, run_it):
    """The fix of a report, whose files stand in the folder fix: as rules, and as a model."""
    assert report["verdict"] == "unfaithful" and report["blame"] == "precision", report["blame"]
    assert set(report["culprits"][0]["nodes"]) <= culprits, report["culprits"][0]
    fix = report["fix"]
    assert fix["verified"]["verdict"] == "faithful", fix["verified"]
    stem = os.path.splitext(model)[0]
    options = ["--layer-precision", fix["layer_precision"]]
    assert checked(model, "-i", inputs, *options)["verdict"] == "faithful"
    fixed = f"fix/{stem}.fixed.onnx"
    onnx.checker.check_model(fixed, full_check=True)
    assert checked(fixed, "-i", inputs)["verdict"] == "faithful"
    rules, written = ran(model, inputs, *options), ran(fixed, inputs)
    assert np.array_equal(rules, written), f"{stem}: {np.count_nonzero(rules != written)} of {rules.size} differ"
    # On the CPU the model is as fast as the rules: it has the same kernels.
    assert emulated(model, *options) == emulated(fixed), (emulated(model, *options), emulated(fixed))
    rules, cpu = ran(model, inputs, *options, target="cpu"), ran(fixed, inputs, target="cpu")
    assert np.array_equal(rules, cpu), f"{stem} on cpu: {np.count_nonzero(rules != cpu)} of {rules.size} differ"
    if run_it:
        got = by_onnxruntime(fixed, inputs)
        assert np.isfinite(got).all() and snr_db(got, written) > 50, (stem, snr_db(got, written))
    return fix


def overflow(elem, name, edges, per_cast):
    """float16 overflows in the sums. Casts between raised layers would lose the range again."""
    model = f"{name}.onnx"
    onnx.save(local_mean(elem, edges, per_cast), model)
    x = np.abs(np.random.default_rng(4).standard_normal((1, 3, SIZE, SIZE))).astype(np.float16)
    np.savez("x.npz", x=x.astype(np.float32) if edges else x)
    # Golden is of the network before its weights were rounded: that is not a fault of the export's.
    wide = local_mean(T.FLOAT, True)
    wide.graph.node.remove(wide.graph.node[0])
    wide.graph.node[0].input[0] = "x"
    wide.graph.node.remove(wide.graph.node[-1])
    wide.graph.node[-1].output[0] = "y"
    onnx.save(wide, "wide.onnx")
    np.savez("wide.npz", x=x.astype(np.float32))
    np.savez("golden.npz", y=by_onnxruntime("wide.onnx", "wide.npz").astype(np.float32))
    np.savez("inner.npz", **inner_values(wide, {"x": x.astype(np.float32)}))
    culprits = {"sum3", "sum3_down"} if per_cast else {"sum3"}
    report = checked(model, "-i", "x.npz", "--golden", "inner.npz", code=UNFAITHFUL)
    assert report["blame"] == "precision" and set(report["culprits"][0]["nodes"]) <= culprits, report["culprits"][0]
    assert report["fix"]["verified"]["verdict"] == "faithful" and report["export"]["values_compared"] > 5, report["export"]
    report = checked(model, "-i", "x.npz", "--golden", "golden.npz", "-o", "fix", code=UNFAITHFUL)
    fix = holds(report, model, "x.npz", culprits, True)
    assert len(fix["nodes"]) < len(onnx.load(model).graph.node), "all layers in fp32 are no fix"
    text = assay("check", model, "-i", "x.npz", code=UNFAITHFUL)
    assert "verified" in text and "blame   precision" in text, text
    # The other verbs find one, too.
    assay("debug", "precision", model, "-i", "x.npz", "--save", "debug.onnx")
    assert np.isfinite(by_onnxruntime("debug.onnx", "x.npz")).all()
    assert checked("debug.onnx", "-i", "x.npz")["verdict"] == "faithful"
    tuned = json.loads(assay("tune", model, "-i", "x.npz", "--no-pareto", "-o", "tuned.onnx", "--json", "-"))
    assert tuned["verdict"] == "met" and tuned["out_of_range"] > 0 and tuned["chosen"]["layers"]["fp16"] > 0, tuned["chosen"]
    assert np.isfinite(by_onnxruntime("tuned.onnx", "x.npz")).all()
    rules = ["--precision", tuned["chosen"]["precision"], "--layer-precision", tuned["chosen"]["layer_precision"]]
    assert checked(model, "-i", "x.npz", *rules)["verdict"] == "faithful"
    assert np.array_equal(ran(model, "x.npz", *rules), ran("tuned.onnx", "x.npz")), name


def digits(elem, name):
    """Nothing passes a range: layers are raised for a demand."""
    model = f"{name}.onnx"
    onnx.save(local_mean(elem, True), model)
    x = np.random.default_rng(4).standard_normal((1, 3, SIZE, SIZE)).astype(np.float32)
    np.savez("x.npz", x=x)
    plain = checked(model, "-i", "x.npz", "--no-fix", "--require", "snr_db >= 10")
    has = plain["outputs"][0]["snr_db"]
    demand = f"snr_db >= {has + 10:.1f}"
    report = checked(model, "-i", "x.npz", "--require", demand, "-o", "fix", code=UNFAITHFUL)
    fix = report["fix"]
    assert report["blame"] == "precision" and fix["verified"]["verdict"] == "faithful", (report["blame"], fix)
    assert checked(f"fix/{name}.fixed.onnx", "-i", "x.npz", "--require", demand)["verdict"] == "faithful"
    rules = ran(model, "x.npz", "--layer-precision", fix["layer_precision"])
    assert np.array_equal(rules, ran(f"fix/{name}.fixed.onnx", "x.npz"))


def main():
    sys.argv[1] = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        overflow(T.FLOAT16, "typed", True, False)
        overflow(T.FLOAT16, "typed_ends", False, False)
        overflow(T.FLOAT16, "per_cast", True, True)
        digits(T.BFLOAT16, "digits")
        os.chdir("/")
    print("typed models: fixed by raising layers")


if __name__ == "__main__":
    main()
