#!/usr/bin/env python3
"""Names are shown without control characters: no verb lets a model, a file, an array or an option write to the terminal.

    test_shown.py ASSAY

Nodes, values, inputs, outputs, weights, dimensions, graphs, operators, files, arrays and options carry escape sequences, bells, line breaks
with a verdict behind them, overrides of the direction of text, line separators and bytes that are no UTF-8.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLEAR = "\x1b[2K\rFAITHFUL forged"
PASSED = "\n&&&& PASSED forged"
VERDICT = "\nFAITHFUL forged\a"
TURNED = "\u202egpj\u2066\u2028\u2029"
C1 = "\x9b2J\x85"
BROKEN = "~no~utf~8~"  # of these bytes the file holds:
BYTES = b"\xff\x9b2J\xc2(\xe2\x80\xf8"
BYTES += b"." * (len(BROKEN) - len(BYTES))
EVIL = [CLEAR, PASSED, VERDICT, TURNED, C1, BROKEN, "\x7f\b\v\f"]
ALL = "".join(EVIL)
FILE = "m" + CLEAR + PASSED + TURNED + C1 + "\udcff"
# Arrays of a file carry these names, too, so that they are UTF-8.
X, Y, Z = (begin + ALL.replace(BROKEN, "") for begin in ("in", "out", "two"))
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
failures = []


def calm(raw, what):
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as e:
        failures.append(f"{what}: no UTF-8: {raw[max(0, e.start - 60):e.end + 20]!r}")
        return ""
    bad = HIDDEN.search(text)
    if bad:
        failures.append(f"{what}: {text[max(0, bad.start() - 60):bad.end() + 20]!r}")
    forged = re.search(r"^[^\S\n]*(?:FAITHFUL forged|&&&& PASSED forged)", text, re.M)
    if forged:
        failures.append(f"{what}: a forged line: {text[max(0, forged.start() - 60):forged.end() + 20]!r}")
    return text


def strict(pairs):
    return dict(pairs)


def parsed(text, what):
    try:
        return json.loads(text, object_pairs_hook=strict)
    except ValueError as e:
        failures.append(f"{what}: no JSON: {e}: {text[:300]!r}")
        return None


def write(path, model):
    with open(os.fsencode(path), "wb") as f:
        f.write(model.SerializeToString().replace(BROKEN.encode(), BYTES))


def make(kind):
    """Overflows in fp16; weights, an unused input of a name of its own, two outputs."""
    nodes, weights, last = [], [], X
    for i, evil in enumerate(EVIL):
        weights.append(numpy_helper.from_array(np.array([1e5 if i % 2 == 0 else 1e-5], np.float32), f"w{i}{evil}"))
        nodes.append(helper.make_node("Mul", [last, f"w{i}{evil}"], [f"t{i}{evil}"], name=f"n{i}{evil}"))
        last = f"t{i}{evil}"
    weights.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "w" + ALL))
    nodes.append(helper.make_node("MatMul", [last, "w" + ALL], ["p" + ALL], name="p" + ALL))
    if kind == "nan":
        nodes.append(helper.make_node("Log", ["p" + ALL], ["l" + ALL], name="l" + ALL))
    nodes.append(helper.make_node("Softmax", [nodes[-1].output[0]], [Y], name="last" + ALL))
    nodes.append(helper.make_node("Relu", [nodes[0].output[0]], [Z]))
    if kind == "texts":
        weights.append(helper.make_tensor("texts" + ALL, TensorProto.STRING, [2], [ALL.encode(), b"\xff" + ALL.encode()]))
        nodes.append(helper.make_node("Identity", ["texts" + ALL], ["i" + ALL]))
        nodes.append(helper.make_node("StringNormalizer", ["i" + ALL], ["texts"], name="s" + ALL, stopwords=[ALL], locale="en_US"))
    if kind == "unknown":
        nodes.append(helper.make_node("Op" + ALL, [X], ["u" + ALL], name="u" + ALL, domain="d" + ALL, **{"attr" + ALL: ALL, "list": [ALL, "b"]}))
    if kind == "broken":
        nodes.append(helper.make_node("Add", [X, "nowhere" + ALL], ["u" + ALL], name="u" + ALL))
    f = TensorProto.FLOAT
    rows = "N" + ALL if kind == "open" else 2
    graph = helper.make_graph(nodes, "g" + ALL, [helper.make_tensor_value_info(X, f, [rows, 4])],
                              [helper.make_tensor_value_info(Y, f, [rows, 4]), helper.make_tensor_value_info(Z, f, [rows, 4])]
                              + [helper.make_tensor_value_info("texts", TensorProto.STRING, [2])] * (kind == "texts"), weights,
                              doc_string="doc" + CLEAR + TURNED + C1 + BROKEN)
    domains = [helper.make_opsetid("", 17)] + ([helper.make_opsetid("d" + ALL, 1)] if kind == "unknown" else [])
    model = helper.make_model(graph, opset_imports=domains, ir_version=8, producer_name="by" + ALL, producer_version=ALL)
    helper.set_model_props(model, {"key" + ALL: "value" + ALL})
    return model


def lines(folder):
    m, n = FILE + ".onnx", "nan" + FILE
    unknown, broken, opened = "unknown" + FILE, "broken" + FILE, "open" + FILE
    check = ["--precision", "fp16", "-i", "in.npz"]
    texts = "texts" + FILE
    first = [
        (["run", texts, "-i", "in.npz", "-o", "texts.npz"], None), (["inspect", "model", texts], (0,)),
        (["check", texts, "-i", "in.npz"], None), (["check", texts, "-i", "in.npz", "-g", "texts_golden.npz"], (0, 1)),
        (["polygraphy", "inspect", "model", texts, "--show", "layers", "attrs", "weights", "-v"], (0,)),
        (["polygraphy", "inspect", "model", unknown, "--show", "layers", "attrs", "weights", "-v"], (0,)),
        (["polygraphy", "run", texts, "--onnxrt", "--trt", "-vv", "--validate"], None),
        (["trtexec", "--onnx=" + texts, "--dumpOutput", "--dumpLayerInfo", "--verbose", "--iterations=1", "--duration=0", "--warmUp=0"], None),
        # What is run, what its exit code may be.
        (["check", m, *check, "-o", folder + "/fixed", "--json", "-"], (1,)), (["check", m, *check, "--no-fix"], (1,)),
        (["check", m, *check, "-g", "golden.npz"], (1, 3)), (["check", n, *check], (0, 1)), (["check", m, "-i", "strange.npz"], (2, 3)),
        (["check", m, "-i", "in.npz", "--target", "cpu", "--require", "max_abs <= 1e-30"], (0, 1)),
        (["check", m, *check, "--json", "-", "--no-fix"], (1,)),
        (["run", m, "-i", "in.npz"], (0,)), (["run", m, "--random"], (0, 2)), (["run", opened], None),
        (["run", m, "-i", "in.npz", "-o", "results" + CLEAR + ".npz"], (0,)),
        (["inspect", "model", m], (0,)), (["inspect", "model", unknown], None), (["inspect", "model", broken], (3,)),
        (["inspect", "model", opened], (0,)), (["inspect", "model", m, "--json", "-"], None),
        (["inspect", "plan", m], (0,)), (["inspect", "plan", m, "--json", "-"], None),
        (["inspect", "data", "in.npz"], (0,)), (["inspect", "data", "in.npz", "--json", "-"], (0,)),
        (["build", m, "-o", "p" + FILE + ".plan"], (0,)), (["build", m, "--strip-weights", "-o", "s" + CLEAR + ".plan"], (0,)),
        (["bench", m, "--layers", "--seconds", "0.01", "--warm-up", "0"], (0,)),
        (["bench", m, "--layers", "--seconds", "0.01", "--warm-up", "0", "--json", "b.json"], (0,)),
        (["audit", m, "--precision", "fp16", "--hazards"], None), (["audit", m, "--precision", "fp16", "--json", "-"], None),
        (["tune", m, "-i", "in.npz", "--no-pareto"], None), (["tune", m, "-i", "in.npz", "--json", "-"], None),
        *[(["debug", what, m, *check], (0, 1)) for what in ("passes", "precision", "tactics", "batch", "reduce")],
        *[(["debug", what, m, *check, "--json", "-"], None) for what in ("passes", "precision", "tactics", "batch")],
        (["debug", "environment", "--compare", "a" + ALL, "b" + ALL], None),
        (["edit", "extract", m, "-o", "e.onnx", "--to", Y], None), (["edit", "sanitize", m, "-o", "e2.onnx"], None),
        (["edit", "extract", m, "-o", "e3.onnx", "--to", "no" + ALL], None), (["edit", "decompose", m, "-o", "e4.onnx"], None),
        (["edit", "cast", m, "--to", "fp16", "-o", "e6" + CLEAR + ".onnx"], None), (["edit", "quantize", m, "-o", "e5.onnx", "-i", "in.npz"], None),
        (["certify", m, *check, "-o", "c" + CLEAR + ".json"], None),
        (["trtexec", "--onnx=" + m, "--dumpLayerInfo", "--dumpProfile", "--verbose", "--duration=0", "--iterations=1", "--warmUp=0",
          "--dumpOutput", "--profilingVerbosity=detailed", "--dumpRefit", "--separateProfileRun", "--fp16"], (0,)),
        (["trtexec", "--onnx=" + m, "--fp16", "--layerPrecisions=no" + ALL + ":fp32", "--skipInference"], None),
        (["trtexec", "--onnx=" + opened, "--skipInference", "--verbose"], None), (["trtexec", "--onnx=" + broken], (1,)),
        (["trtexec", "--onnx=" + m, "--no" + ALL], (1,)), (["trtexec", "--onnx=" + m, "--show-native"], None),
        (["polygraphy", "inspect", "model", m, "--show", "layers", "attrs", "weights", "--verbose"], (0,)),
        (["polygraphy", "inspect", "model", m, "--show", "layers", "--display-as=trt"], (0,)),
        (["polygraphy", "inspect", "model", opened, "--show", "layers", "-vv"], (0,)),
        (["polygraphy", "inspect", "capability", unknown, "-o", "cap"], None), (["polygraphy", "inspect", "sparsity", m], None),
        (["polygraphy", "run", m, "--onnxrt", "--trt", "--fp16", "-vv", "--save-outputs", "o.json", "--save-inputs", "i.json",
          "--save-tactics", "t.json"], (0, 1)),
        (["polygraphy", "run", m, "--onnxrt", "--trt", "--val-range", "no" + ALL + ":[0,1]", "--validate"], None),
        (["polygraphy", "run", broken, "--onnxrt"], (1,)), (["polygraphy", "run", m, "--no" + ALL], None),
        (["polygraphy", "check", "lint", m, "-o", "lint.json"], None), (["polygraphy", "check", "lint", unknown, "-o", "lint2.json"], None),
        (["polygraphy", "check", "lint", broken, "-o", "lint3.json"], None),
        (["polygraphy", "surgeon", "sanitize", m, "-o", "s1.onnx", "--fold-constants"], None),
        (["polygraphy", "surgeon", "sanitize", opened, "-o", "s4.onnx", "--override-input-shapes", X + ":[2,4]"], None),
        (["polygraphy", "surgeon", "extract", m, "-o", "s2.onnx", "--outputs", Y + ":auto"], None),
        (["polygraphy", "surgeon", "insert", m, "-o", "s3.onnx", "--inputs", X, "--outputs", Y, "--op", "Op" + ALL], None),
        (["polygraphy", "surgeon", "weight-strip", m, "-o", "s5.onnx"], None), (["polygraphy", "surgeon", "prune", m, "-o", "s6.onnx"], None),
        (["polygraphy", "convert", m, "-o", "conv" + CLEAR + ".plan"], None),
        (["polygraphy", "debug", "reduce", m, "-o", "r.onnx", "--check", "false" ], None),
        (["no" + ALL], None), (["inspect", "no" + ALL], None), (["check", "no" + ALL], None), (["check", m, "--no" + ALL], None),
        (["check", m, "--precision", ALL], None), (["check", m, "-i", "in.npz", "--require", ALL], None),
        (["check", m, "-i", "in.npz", "--layer-precision", "no" + CLEAR + PASSED + C1 + ":fp16"], None),
    ]
    plan = "p" + FILE + ".plan"
    second = [
        (["inspect", "data", "texts.npz"], None), (["inspect", "data", "texts_golden.npz"], None),
        (["inspect", "plan", plan], (0,)), (["run", plan, "-i", "in.npz"], (0,)),
        (["bench", plan, "--layers", "--seconds", "0.01", "--warm-up", "0"], (0,)),
        (["inspect", "plan", "s" + CLEAR + ".plan"], None), (["run", "s" + CLEAR + ".plan"], None),
        (["refit", plan, "--weights", m, "-o", "refit" + CLEAR + ".plan"], None),
        (["trtexec", "--loadEngine=" + plan, "--dumpLayerInfo", "--dumpProfile", "--verbose", "--duration=0", "--iterations=1", "--warmUp=0"], (0,)),
        (["polygraphy", "inspect", "model", plan, "--show", "layers", "-vv"], None),
        (["polygraphy", "inspect", "data", "o.json", "-s"], None), (["polygraphy", "inspect", "data", "i.json", "-s"], None),
        (["polygraphy", "inspect", "tactics", "t.json"], None), (["inspect", "data", "results" + CLEAR + ".npz"], None),
        (["certify", "--verify", "c" + CLEAR + ".json", m, "-i", "in.npz"], (0, 1)), (["inspect", "data", "results" + CLEAR + ".npz", "--json", "-"], None),
    ]
    return first, second


def main(assay, verbose):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("fixed")
        for kind in ("", "nan", "unknown", "broken", "open", "texts"):
            write(kind + FILE + (".onnx" if not kind else ""), make(kind))
        feed = np.random.default_rng(0).uniform(1, 2, (2, 4)).astype(np.float32)
        fed = {X: feed}
        np.savez("in.npz", **fed)
        np.savez("golden.npz", **{"gold" + PASSED + CLEAR + C1 + TURNED: feed})
        np.savez("texts_golden.npz", **{Y: feed, Z: feed, "texts": np.array(["a" + ALL, "b"])})
        np.savez("strange.npz", **{"strange" + PASSED + CLEAR + C1 + TURNED: feed, "b" + VERDICT: feed})

        def run(line):
            words, codes = line
            what = " ".join(w if w.isascii() and w.isprintable() else "EVIL" for w in words)
            raw = [os.fsencode(w).replace(BROKEN.encode(), BYTES) for w in [assay, *words]]
            p = subprocess.run(raw, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
            out, _ = calm(p.stdout, what), calm(p.stderr, what + " (stderr)")
            if p.returncode < 0 or codes and p.returncode not in codes:
                failures.append(f"{what}: ends with {p.returncode}: {p.stdout[-300:]!r} {p.stderr[-300:]!r}")
            if "--json" in words and p.returncode in (0, 1):
                parsed(open("b.json").read() if "b.json" in words else out, what)
            if verbose:
                print(f"==== {what}: {p.returncode}\n{p.stdout.decode(errors='replace')}\n{p.stderr.decode(errors='replace')}")

        for part in lines(folder):
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(run, part))
    for f in failures:
        print(f)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), "-v" in sys.argv))
