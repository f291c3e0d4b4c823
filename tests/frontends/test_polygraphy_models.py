#!/usr/bin/env python3
"""assay polygraphy: what its subcommands make of models, and say of them.

    test_polygraphy_models.py ASSAY

Texts are compared with those of Polygraphy itself where Python has it, models by ONNX's own evaluator.
"""
import contextlib
import io
import json
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from test_cli import Failures, assay  # noqa: E402

OK, FAILED, MISUSED = 0, 1, 2

info = h.make_tensor_value_info


def save(name, nodes, inputs, outputs, constants=(), imports=(("", 18),), doc=""):
    g = h.make_graph(nodes, name.split(".")[0], inputs, outputs, [nh.from_array(a, n) for n, a in constants], doc_string=doc)
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid(*i) for i in imports], ir_version=9), name)


def write_tiny(name, elu="Elu", fc="fc", names=True):
    rng = np.random.default_rng(0)
    weights = [("w", (rng.standard_normal((4, 3, 3, 3)) * 0.2).astype(np.float32)), ("b", np.float32([0.1, -0.1, 0.2, 0])),
               ("fc", (rng.standard_normal((4, 5)) * 0.5).astype(np.float32)), ("axes", np.int64([2, 3]))]
    nodes = [h.make_node("Conv", ["x", "w", "b"], ["c"], name="conv0", pads=[1, 1, 1, 1]),
             h.make_node(elu, ["c"], ["e"], name="elu0", alpha=1.0),
             h.make_node("ReduceMean", ["e", "axes"], ["m"], name="mean0", keepdims=0),
             h.make_node("MatMul", ["m", fc], ["logits"], name="fc0"),
             h.make_node("Softmax", ["logits"], ["prob"], name="softmax0", axis=-1)]
    for n in nodes:
        n.name = n.name if names else ""
    save(name, nodes, [info("x", T.FLOAT, ["N", 3, 4, 4])], [info("prob", T.FLOAT, ["N", 5])], weights)


def write_models():
    write_tiny("tiny.onnx")
    write_tiny("bad_missing.onnx", fc="missing")
    write_tiny("bad_op.onnx", elu="Eluu")
    write_tiny("unnamed.onnx", elu="Eluu", names=False)
    relu = lambda a, b, **k: h.make_node("Relu", [a], [b], **k)
    ends = [info("x", T.FLOAT, [2, 3])], [info("y", T.FLOAT, [2, 3])]
    save("twice.onnx", [relu("x", "a", name="n"), h.make_node("Neg", ["a"], ["y"], name="n")], *ends)
    save("unused.onnx", [relu("x", "y", name="used"), relu("x", "z", name="idle")],
         [*ends[0], info("spare", T.FLOAT, [1])], ends[1])
    save("shapes.onnx", [h.make_node("Add", ["x", "w"], ["y"], name="add")], *ends, [("w", np.zeros(4, np.float32))])
    save("custom.onnx", [h.make_node("Foo", ["x"], ["a"], name="foo", domain="my.own"), relu("a", "y", name="behind")], *ends,
         imports=(("", 18), ("my.own", 1)))
    save("empty.onnx", [], [info("x", T.FLOAT, [1])], [info("x", T.FLOAT, [1])])
    with open("junk.onnx", "wb") as f:
        f.write(b"\xff" * 40)
    save("fold.onnx", [
        h.make_node("Constant", [], ["k"], value=nh.from_array(np.float32([1, 2, 3]))),
        h.make_node("Add", ["k", "w"], ["kw"]), h.make_node("Mul", ["x", "kw"], ["y"]), h.make_node("Shape", ["x"], ["s"]),
        h.make_node("Gather", ["s", "one"], ["d"]), h.make_node("Concat", ["m1", "d"], ["target"], axis=0),
        h.make_node("Reshape", ["y", "target"], ["z"]), relu("y", "dead"), h.make_node("Expand", ["two", "big"], ["ex"]),
        h.make_node("ReduceSum", ["ex"], ["exs"], keepdims=0), h.make_node("Add", ["z", "exs"], ["out"])],
        [info("x", T.FLOAT, ["N", 3])], [info("out", T.FLOAT, ["N", 3])],
        [("w", np.float32([.5, .5, .5])), ("one", np.int64([1])), ("m1", np.int64([-1])), ("two", np.float32(2)),
         ("big", np.int64([100, 100]))])
    # A float16 sum that rounds: a runtime computes the same.
    save("half.onnx", [h.make_node("Add", ["a", "b"], ["c"]), h.make_node("Add", ["x", "c"], ["y"])],
         [info("x", T.FLOAT16, [2])], [info("y", T.FLOAT16, [2])],
         [("a", np.float16([1, 2])), ("b", np.float16([0.0004, 0.0007]))])
    body = lambda name, op: h.make_graph([h.make_node(op, ["x", "w"], [name + "o"], name=name)], name, [],
                                         [info(name + "o", T.FLOAT, [3])], [])
    save("rich.onnx", [
        h.make_node("Constant", [], ["k"], value=nh.from_array(np.float32([1, 2, 3]))),
        h.make_node("ReduceSum", ["x"], ["r"], keepdims=0), h.make_node("Cast", ["r"], ["c"], to=T.BOOL),
        h.make_node("If", ["c"], ["y"], name="if0", then_branch=body("a", "Add"), else_branch=body("b", "Mul")),
        h.make_node("Resize", ["im", "", "sc"], ["rz"], name="rz", mode="linear"),
        h.make_node("LSTM", ["ls", "lw", "lr"], ["", "", "lo"], name="lstm", activations=["Tanh", "Sigmoid", "Tanh"],
                    hidden_size=2, clip=0.3)],
        [info("x", T.FLOAT, [3]), info("im", T.FLOAT, [1, 1, None, "W"]), info("ls", T.FLOAT, [2, 1, 3])],
        [info("y", T.FLOAT, [3]), info("rz", T.FLOAT, [1, 1, "h", "w"]), info("lo", T.FLOAT, [1, 1, 2])],
        [("w", np.float32([.5, .5, .5])), ("sc", np.float32([1, 1, 2, 2])), ("lw", np.ones((1, 8, 3), np.float32)),
         ("lr", np.ones((1, 8, 2), np.float32))], imports=(("", 17), ("ai.onnx.ml", 3)), doc="two\nlines")
    save("range.onnx", [h.make_node("ReduceMax", ["x"], ["most"], keepdims=0), h.make_node("Cast", ["most"], ["limit"], to=T.INT64),
                        h.make_node("Range", ["zero", "limit", "step"], ["y"])],
         [info("x", T.FLOAT, ["N"])], [info("y", T.INT64, None)], [("zero", np.int64(0)), ("step", np.int64(1))])
    two = h.make_graph([h.make_node("SequenceInsert", ["seq", "x"], ["longer"])], "two", [], [info("longer", T.FLOAT, None)])
    two.output[0].CopyFrom(h.make_tensor_sequence_value_info("longer", T.FLOAT, None))
    one = h.make_graph([h.make_node("Identity", ["seq"], ["same"])], "one", [], [h.make_tensor_sequence_value_info("same", T.FLOAT, None)])
    save("seq.onnx", [h.make_node("SequenceConstruct", ["x", "x"], ["seq"], name="make"),
                      h.make_node("SequenceLength", ["seq"], ["n"], name="length"), h.make_node("Cast", ["n"], ["b"], name="cast", to=T.BOOL),
                      h.make_node("If", ["b"], ["parts"], name="if", then_branch=two, else_branch=one),
                      h.make_node("ConcatFromSequence", ["parts"], ["all"], name="join", axis=0),
                      h.make_node("Add", ["all", "x"], ["y"], name="add")], [info("x", T.FLOAT, [2, 3])], [info("y", T.FLOAT, None)])
    with open("keep.txt", "w") as f:
        f.write("fc\nno_such\n")


# Arguments, exit code, pattern of stdout, pattern of stderr.
ROWS = [
    ("surgeon extract tiny.onnx", MISUSED, "", "surgeon extract: error: the following arguments are required: -o/--output"),
    ("surgeon insert tiny.onnx --inputs c", MISUSED, "", "required: --outputs, --op, -o/--output"),
    ("surgeon sanitize -o z.onnx", MISUSED, "", "required: model_file"),
    ("surgeon frob tiny.onnx", MISUSED, "", "invalid choice: 'frob'"),
    ("surgeon sanitize tiny.onnx -o z.onnx --frob", FAILED, r"Unrecognized Options: \['--frob'\]", ""),
    ("surgeon sanitize nothing.onnx -o z.onnx", FAILED, r"\[W\] Model path does not exist: nothing.onnx\n(?s:.*)FAILED", ""),
    ("surgeon extract tiny.onnx -o z.onnx --inputs c", FAILED, r"--inputs: 'c' is not NAME:SHAPE:DTYPE", ""),
    ("surgeon extract tiny.onnx -o z.onnx --inputs c:auto:floot", FAILED, r"--inputs: 'floot' is not a data type", ""),
    ("surgeon extract tiny.onnx -o z.onnx --outputs loggits:auto", FAILED, r"no value 'loggits'; did you mean 'logits'", ""),
    ("surgeon extract tiny.onnx -o z.onnx --inputs fc:auto:auto", FAILED, r"'fc' is a constant, and cannot become an input", ""),
    ("surgeon extract tiny.onnx -o z.onnx --inputs c:[N,x", FAILED, r"\[!\] --inputs: ", ""),
    ("surgeon sanitize tiny.onnx -o z.onnx --fold-constants --fold-size-threshold lots", FAILED, "'lots' is not a size", ""),
    ("surgeon sanitize tiny.onnx -o z.onnx --override-input-shapes z:[1]", FAILED, "the model has no input 'z'", ""),
    ("surgeon sanitize tiny.onnx -o z.onnx --override-input-shapes x:[1,3,4]", FAILED, r"\[!\] ", ""),
    ("surgeon sanitize tiny.onnx -o z.onnx --num-passes 2", OK, r"\[W\] Argument: '--num-const-fold-passes' will be ignored", ""),
    ("surgeon sanitize shapes.onnx -o z.onnx --fold-constants", OK,
     r"\[W\] Constant folding pass failed(?s:.*)do not broadcast(?s:.*)Saving ONNX model to: z.onnx", ""),
    ("surgeon insert tiny.onnx -o z.onnx --op Relu --inputs c --outputs w", FAILED, "'w' is a constant: no node can make it", ""),
    ("surgeon insert tiny.onnx -o z.onnx --op Relu --inputs e --outputs c", FAILED, "is cyclic", ""),
    ("surgeon insert tiny.onnx -o z.onnx --op Relu --inputs c --outputs e --attrs alpha", FAILED, "'alpha' is not NAME=VALUE", ""),
    ("surgeon weight-strip tiny.onnx -o s.onnx --exclude-list keep.txt", OK,
     r"no weight 'no_such'(?s:.*)Finished stripping 2 weights", ""),
    ("surgeon weight-strip tiny.onnx -o s.onnx --exclude-list none.txt", FAILED, "--exclude-list: 'none.txt'", ""),
    ("check lint nothing.onnx", FAILED, r"Model path does not exist(?s:.*)\[E\] FAILED", ""),
    ("check lint tiny.onnx --val-range x:0", FAILED, r"\[!\] --val-range", ""),
    ("inspect model nothing.onnx", FAILED, r"Model path does not exist", ""),
    ("inspect model junk.onnx", FAILED, r"\[!\] 'junk.onnx': ", ""),
    ("inspect model tiny.onnx --show frob", MISUSED, "", "invalid choice: 'frob'"),
    ("inspect model tiny.onnx --save-visual nowhere/p.html", FAILED, r"\[!\] .*nowhere/p.html", ""),
    ("inspect model tiny.onnx --visual --visual-port 65536", FAILED, r"\[!\] --visual-port: 65536 is not a port", ""),
    ("inspect model tiny.onnx --combine-tensor-info p.json", FAILED, r"\[!\] --combine-tensor-info: .*p.json", ""),
    ("inspect model junk.onnx --model-type engine", FAILED, r"\[!\] ", ""),
    ("inspect model range.onnx --list-unbounded-dds", OK, r"Found tensors with unbounded DDS: \[limit .*\]\n", ""),
    ("inspect capability tiny.onnx", OK, r"\[I\] Graph is fully supported by Assay; Will not report errors.\n", ""),
    ("inspect capability tiny.onnx --with-partitioning", OK, r"Assay; Will not generate subgraphs.\n", ""),
    ("inspect sparsity tiny.onnx", OK, r"Found: 1 weight tensor\(s\) eligible for pruning.\n(?s:.*)Found non-sparse tensor: fc\n", ""),
]


def run(program, line):
    return assay(program, "polygraphy", *line.split())


def test_rows(program, failures):
    for line, code, out, err in ROWS:
        got, stdout, stderr = run(program, line)
        where = f"polygraphy {line}: exit code {got}, output {stdout!r}, error {stderr!r}"
        failures.check(got == code, f"{where}: exit code {code} expected")
        failures.check(re.search(out, stdout) if out else not stdout, f"{where}: output {out!r} expected")
        failures.check(re.search(err, stderr) if err else not stderr, f"{where}: error {err!r} expected")


# ---- check lint -----------------------------------------------------------------------------------------------------

UNSORTED = ("Nodes in a graph must be topologically sorted, however input 'missing' of node: name: fc0 OpType: MatMul is not "
            "output of any previous nodes.")
NO_OP = "No Op registered for Eluu with domain_version of 18"

# Model, exit code, nodes that pass, nodes that fail, entries (level, source, pattern of the message, node).
LINTS = [
    ("tiny", OK, "conv0 elu0 fc0 mean0 softmax0", "", []),
    ("bad_missing", FAILED, "conv0 elu0 mean0", "", [("exception", "onnx_checker", re.escape(UNSORTED), None)]),
    ("bad_op", FAILED, "conv0", "elu0", [("exception", "assay", re.escape(NO_OP), "elu0")]),
    ("unnamed", FAILED, "polygraphy_unnamed_node_0", "polygraphy_unnamed_node_1",
     [("exception", "assay", re.escape(NO_OP), "polygraphy_unnamed_node_1")]),
    ("twice", FAILED, "", "n", [("exception", "onnx_checker", "Duplicate node name: 'n'", "n")]),
    ("shapes", FAILED, "", "add", [("exception", "assay", r"shapes \[2, 3\] and \[4\] do not broadcast", "add")]),
    ("seq", FAILED, "cast if join length make", "add", [("exception", "assay", r"shapes \[6, 3\] and \[2, 3\] do not broadcast", "add")]),
    ("unused", OK, "idle used", "", [("warning", "assay", "Input: 'spare' does not affect outputs", None),
                                     ("warning", "assay", "Does not affect outputs, can be removed.", "idle")]),
    ("custom", OK, "foo", "", [("warning", "assay", "unknown operator: domain 'my.own'", "foo")]),
    ("empty", OK, "", "", [("warning", "onnx_checker", "ONNX model has no nodes", None)]),
    ("junk", FAILED, "", "", [("exception", "onnx_checker", "junk.onnx", None)]),
]


def test_lints(program, failures):
    for name, code, passing, failing, entries in LINTS:
        got, out, err = run(program, f"check lint {name}.onnx -o {name}.json")
        where = f"check lint {name}.onnx"
        failures.check(got == code and not err, f"{where}: exit code {got}, output {out!r}, error {err!r}")
        failures.check(f"[I] Saving linting report to {name}.json\n" in out, f"{where}: {out!r}")
        with open(name + ".json") as f:
            report = json.load(f)
        failures.check(sorted(report["summary"]["passing"]) == passing.split(), f"{where}: {report}")
        failures.check(sorted(report["summary"]["failing"]) == failing.split(), f"{where}: {report}")
        failures.check(len(report["lint_entries"]) == len(entries), f"{where}: {report}")
        for e, (level, source, message, node) in zip(report["lint_entries"], entries):
            same = (e["level"], e["source"], e.get("nodes")) == (level, source, [node] if node else None)
            failures.check(same and re.search(message, e["message"]), f"{where}: {e}")
            mark = {"exception": "[E]", "warning": "[W]"}[level]
            failures.check(f"{mark} LINT | " in out and e["message"] in out, f"{where}: {e['message']!r} is not told: {out!r}")
    os.remove("tiny.json")
    run(program, "check lint tiny.onnx")
    failures.check(not os.path.exists("tiny.json"), "check lint without -o wrote a report")


# ---- inspect model --------------------------------------------------------------------------------------------------

TINY = """\
Name: tiny | ONNX Opset: 18

---- 1 Graph Input(s) ----
{x [dtype=float32, shape=('N', 3, 4, 4)]}

---- 1 Graph Output(s) ----
{prob [dtype=float32, shape=('N', 5)]}

---- 4 Initializer(s) ----
{w [dtype=float32, shape=(4, 3, 3, 3)],
 b [dtype=float32, shape=(4,)],
 fc [dtype=float32, shape=(4, 5)],
 axes [dtype=int64, shape=(2,)]}

---- 5 Node(s) ----
Node 0    | conv0 [Op: Conv]
    {x [dtype=float32, shape=('N', 3, 4, 4)],
     Initializer | w [dtype=float32, shape=(4, 3, 3, 3)],
     Initializer | b [dtype=float32, shape=(4,)]}
     -> {c}
    ---- Attributes ----
    conv0.pads = [1, 1, 1, 1]

Node 1    | elu0 [Op: Elu]
    {c}
     -> {e}
    ---- Attributes ----
    elu0.alpha = 1.0

Node 2    | mean0 [Op: ReduceMean]
    {e,
     Initializer | axes [dtype=int64, shape=(2,)]}
     -> {m}
    ---- Attributes ----
    mean0.keepdims = 0

Node 3    | fc0 [Op: MatMul]
    {m,
     Initializer | fc [dtype=float32, shape=(4, 5)]}
     -> {logits}

Node 4    | softmax0 [Op: Softmax]
    {logits}
     -> {prob [dtype=float32, shape=('N', 5)]}
    ---- Attributes ----
    softmax0.axis = -1"""


def as_logged(text):
    return "".join("    " + line + "\n" for line in text.split("\n"))


def theirs():
    """Polygraphy's own text of a model; None where Python does not have it."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            from polygraphy.backend.onnx.util import str_from_onnx
        return str_from_onnx
    except ImportError:
        return None


def test_texts(program, failures):
    head = "[I] Loading model: {}\n[I] ==== ONNX Model ====\n"
    code, out, err = run(program, "inspect model tiny.onnx --show layers attrs")
    failures.check((code, out, err) == (OK, head.format("tiny.onnx") + as_logged(TINY), ""), f"inspect model: {code}, {out}, {err}")
    text = theirs()
    for name in ("tiny.onnx", "rich.onnx", "fold.onnx", "half.onnx"):
        for show in ("", "layers", "layers attrs", "weights", "layers attrs weights"):
            code, out, err = run(program, f"inspect model {name}" + (f" --show {show}" if show else ""))
            failures.check(code == OK and not err, f"inspect model {name} --show {show}: {code}, {err!r}")
            if not text:
                continue
            want = text(onnx.load(name), **{"show_" + word: True for word in show.split()}).strip()
            failures.check(out == head.format(name) + as_logged(want), f"inspect model {name} --show {show}: {out}\nexpected\n{want}")
    code, out, err = run(program, "inspect model tiny.onnx --show layers --shape-inference")
    failures.check(code == OK and "-> {e [dtype=float32, shape=('N', 4, 4, 4)]}" in out, f"--shape-inference: {code}, {out}, {err}")
    code, out, err = run(program, "inspect model bad_missing.onnx --show layers")
    failures.check(code == OK and "missing" in out, f"a model that is wrong: {code}, {out}, {err}")


PLAN = [r"==== Assay Plan ====\n    Name: tiny \| Plan for cpu\n", r"---- 1 Engine Input\(s\) ----\n    \{x \[dtype=float32, shape=\(",
        r"---- 1 Engine Output\(s\) ----\n    \{prob \[dtype=float32, shape=\(", r"Device Memory: [0-9]+ bytes\n",
        r"---- 1 Profile\(s\) \(2 Tensor\(s\) Each\) ----\n    - Profile: 0\n        Tensor: x +\(Input\), Index: 0 \| Shapes: min=",
        r"Tensor: prob +\(Output\), Index: 1 \| Shape: \(", r"Layer 0    \| .*\[Op: Conv", r"Origin = conv0", r"Tactic = [a-z]"]


def test_plans(program, failures):
    assay(program, "build", "tiny.onnx", "-o", "tiny.plan")
    for line in ("inspect model tiny.plan --show layers attrs", "inspect model tiny.onnx --display-as trt --show layers attrs"):
        code, out, err = run(program, line)
        failures.check(code == OK, f"{line}: {code}, {out!r}, {err!r}")
        for part in PLAN:
            failures.check(re.search(part, out), f"{line}: no {part!r} in {out}")


def test_capability(program, failures):
    code, out, err = run(program, "inspect capability bad_op.onnx -o caps")
    row = r"\| Eluu +\| elu0 +\| unknown operator"
    failures.check(code == OK and re.search(row, out) and "mean0" not in out, f"capability: {code}, {out}, {err}")
    with open("caps/results.txt") as f:
        failures.check(re.search("===== Summary =====\n(?s:.*)" + row, f.read()), "capability: results.txt")
    code, out, err = run(program, "inspect capability bad_op.onnx -o caps --with-partitioning")
    failures.check(code == OK and re.search(r"Eluu +\| +1 \| unknown operator.*\| \[\[1, 2\]\]\n", out), f"partitions: {out}, {err}")
    failures.check(sorted(os.listdir("caps")) == [
        "results.txt", "supported_subgraph-nodes-0-0.onnx", "supported_subgraph-nodes-2-4.onnx",
        "unsupported_subgraph-nodes-1-1.onnx"], f"partitions: {os.listdir('caps')}")
    part = onnx.load("caps/supported_subgraph-nodes-0-0.onnx")
    onnx.checker.check_model(part)
    failures.check([o.name for o in part.graph.output] == ["c"] and [n.name for n in part.graph.node] == ["conv0"], "first part")


# ---- surgeon --------------------------------------------------------------------------------------------------------

def evaluate(path, inputs, outputs=None):
    return ReferenceEvaluator(onnx.load(path)).run(outputs, inputs)


def shape_of(value):
    return [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim]


def test_surgeon(program, failures):
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 4)).astype(np.float32)
    tiny = onnx.load("tiny.onnx")
    onnx.save(onnx.utils.Extractor(onnx.shape_inference.infer_shapes(tiny)).extract_model(["x"], ["c", "logits", "prob"]), "all.onnx")
    c, logits, prob = evaluate("all.onnx", {"x": x})

    code, out, err = run(program, "surgeon extract tiny.onnx --inputs c:auto:auto --outputs logits:auto -o sub.onnx")
    failures.check(code == OK and "[I] Running shape inference to derive shapes and/or data types for `auto` arguments.\n" in out
                   and "[I] New Model:\n    Name: tiny | ONNX Opset: 18\n" in out and "---- 3 Node(s) ----" in out, f"extract: {out}, {err}")
    sub = onnx.load("sub.onnx")
    onnx.checker.check_model(sub, full_check=True)
    failures.check(shape_of(sub.graph.input[0]) == ["N", 4, 4, 4] and len(sub.graph.initializer) == 2, f"extract: {sub.graph}")
    failures.check(np.allclose(evaluate("sub.onnx", {"c": c})[0], logits), "extract: other values")

    run(program, "surgeon extract tiny.onnx --inputs c:[B,4,4,4]:float32 --outputs logits:float32 -o given.onnx")
    failures.check(shape_of(onnx.load("given.onnx").graph.input[0]) == ["B", 4, 4, 4], "extract: the shape that was given")
    code, out, err = run(program, "surgeon extract tiny.onnx --inputs m:auto:auto --outputs prob:auto -o f.onnx "
                                  "--force-fallback-shape-inference --model-input-shapes x:[3,3,4,4]")
    failures.check(code == OK and shape_of(onnx.load("f.onnx").graph.input[0]) == [3, 4], f"extract by running: {out}, {err}")
    code, out, err = run(program, "surgeon extract bad_op.onnx --outputs c:auto -o ok.onnx")
    failures.check(code == OK and len(onnx.load("ok.onnx").graph.node) == 1, f"the part in front of what is unknown: {out}, {err}")

    # Whatever is folded, values stay.
    for options, nodes in (("", 11), ("--cleanup", 10), ("--fold-constants", 3), ("--fold-constants --fold-size-threshold 1K", 5),
                           ("--fold-constants --no-fold-shapes", None), ("--fold-constants --num-passes 1", 3),
                           ("--fold-constants --override-input-shapes x:[4,3]", 3), ("--toposort --no-shape-inference", 11)):
        code, out, err = run(program, f"surgeon sanitize fold.onnx -o folded.onnx {options}")
        failures.check(code == OK, f"sanitize {options}: {out}, {err}")
        folded = onnx.load("folded.onnx")
        onnx.checker.check_model(folded)
        if nodes:
            failures.check(len(folded.graph.node) == nodes, f"sanitize {options}: {[n.op_type for n in folded.graph.node]}")
        else:
            failures.check("Shape" in {n.op_type for n in folded.graph.node}, f"sanitize {options}: no Shape left")
        y = np.arange(12, dtype=np.float32).reshape(4, 3)
        failures.check(np.array_equal(evaluate("folded.onnx", {"x": y})[0], evaluate("fold.onnx", {"x": y})[0]),
                       f"sanitize {options}: other values")
    failures.check(re.search(r"\[I\] Folding Constants \| Pass 1\n\[I\]     Total Nodes \| Original:    11, After Folding:     3 \|     8 Nodes Folded\n",
                             run(program, "surgeon sanitize fold.onnx -o folded.onnx --fold-constants")[1]), "sanitize: what it says")
    run(program, "surgeon sanitize half.onnx -o folded.onnx --fold-constants")
    half = np.float16([1, 1])
    failures.check(len(onnx.load("folded.onnx").graph.node) == 1
                   and np.array_equal(evaluate("folded.onnx", {"x": half})[0], evaluate("half.onnx", {"x": half})[0]), "float16 sums")

    code, out, err = run(program, "surgeon sanitize tiny.onnx -o o.onnx --override-input-shapes x:[B,3,4,4] --outputs e prob")
    m = onnx.load("o.onnx")
    failures.check(code == OK and [o.name for o in m.graph.output] == ["e", "prob"] and shape_of(m.graph.output[0]) == ["B", 4, 4, 4]
                   and shape_of(m.graph.input[0]) == ["B", 3, 4, 4], f"override, outputs: {out}, {err}")

    code, out, err = run(program, "surgeon insert tiny.onnx --inputs c --outputs e --op LeakyRelu --name lr --attrs alpha=0.2 -o i.onnx")
    m = onnx.load("i.onnx")
    onnx.checker.check_model(m, full_check=True)
    n = [n for n in m.graph.node if n.name == "lr"]
    failures.check(code == OK and len(n) == 1 and "elu0" not in {n.name for n in m.graph.node}
                   and abs(h.get_attribute_value(n[0].attribute[0]) - 0.2) < 1e-6, f"insert: {out}, {err}")
    run(program, "surgeon insert tiny.onnx --inputs e --outputs e --op Transpose --attrs perm=[0,1,3,2] -o i.onnx")
    m = onnx.load("i.onnx")
    onnx.checker.check_model(m, full_check=True)
    failures.check([n.op_type for n in m.graph.node] == "Conv Elu Transpose ReduceMean MatMul Softmax".split()
                   and np.allclose(evaluate("i.onnx", {"x": x})[0], prob), "insert behind itself")
    run(program, "surgeon insert tiny.onnx --inputs prob --outputs prob --op Neg -o i.onnx")
    failures.check(np.allclose(evaluate("i.onnx", {"x": x}, ["prob"])[0], -prob), "insert at the end")

    code, out, err = run(program, "surgeon sanitize range.onnx --set-unbounded-dds-upper-bound 3 -o r.onnx")
    failures.check(code == OK and "[I] Set tensor upper bounds: {'limit': 3}\n" in out, f"bounds: {out}, {err}")
    failures.check(len(evaluate("r.onnx", {"x": np.float32([9])})[0]) == 3, "bounds: more than there should be")


def test_sparsity(program, failures):
    run(program, "surgeon prune tiny.onnx -o pruned.onnx")
    fc = {i.name: nh.to_array(i) for i in onnx.load("tiny.onnx").graph.initializer}["fc"]
    want = fc.copy()
    for column in want.T:
        column[np.argsort(np.abs(column))[:2]] = 0
    after = {i.name: nh.to_array(i) for i in onnx.load("pruned.onnx").graph.initializer}
    failures.check(np.array_equal(after["fc"], want), f"prune: {after['fc']}")
    failures.check("Found sparse tensor: fc\n" in run(program, "inspect sparsity pruned.onnx")[1], "inspect sparsity")

    run(program, "surgeon weight-strip pruned.onnx -o stripped.onnx")
    m = onnx.load("stripped.onnx")
    docs = {i.name: (i.doc_string, len(i.raw_data), list(i.dims)) for i in m.graph.initializer}
    failures.check(m.doc_string == "TRT_WEIGHTLESS" and docs["w"] == ("TRT_WEIGHTLESS/", 0, [4, 3, 3, 3])
                   and docs["fc"] == ("TRT_WEIGHTLESS/SPARSE_2_4", 0, [4, 5]) and docs["axes"][1] == 16, f"weight-strip: {docs}")
    code, out, err = assay(program, "run", "stripped.onnx")
    failures.check(code and "initializer 'w': its data were stripped from the model (TRT_WEIGHTLESS)" in err, f"{code}, {err}")
    code, out, err = run(program, "surgeon sanitize stripped.onnx -o z.onnx")
    failures.check(code == FAILED and "weight-reconstruct" in out, f"a stripped model: {code}, {out}")
    failures.check("<stripped>" in run(program, "inspect model stripped.onnx --show weights")[1], "a stripped model shown")

    run(program, "surgeon weight-reconstruct stripped.onnx -o again.onnx")
    m = onnx.load("again.onnx")
    onnx.checker.check_model(m)
    fc = {i.name: i for i in m.graph.initializer}["fc"]
    failures.check(fc.doc_string == "TRT_WEIGHTLESS/SPARSE_2_4" and ((nh.to_array(fc) == 0).sum(0) == 2).all(), "weight-reconstruct")


def main(program):
    program = os.path.abspath(program)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_models()
        test_rows(program, failures)
        test_lints(program, failures)
        test_texts(program, failures)
        test_plans(program, failures)
        test_capability(program, failures)
        test_surgeon(program, failures)
        test_sparsity(program, failures)
        os.chdir("/")
    print(f"{len(ROWS)} command lines, {len(LINTS)} reports, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
