#!/usr/bin/env python3
"""Engines that are not ours: `assay check --exec` and `--engine-outputs`.

    test_exec.py ASSAY MODELS PYTHON_FOLDER

MODELS is tests/models/small, PYTHON_FOLDER the project's python/. The engines are scripts around ONNX Runtime: faithful ones,
some with a fault in one node, and some that fail in each way that a command can.
"""
import base64
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper

FAITHFUL, UNFAITHFUL, USAGE, INPUT, FAILED = range(5)

# An engine in a few lines: engine.py MODE MODEL INPUTS OUTPUTS [WORD ...].
#   all                every inner value is written
#   keep A B ...       outputs, and these values
#   fault VALUE F      VALUE is F times as large as it should be, and what follows it reads that; all are written
#   fault VALUE F A B  the same; outputs and these values are written
#   batch VALUE F      VALUE is F times as large where the batch is larger than 1
ENGINE = r'''
import os, subprocess, sys, time
import numpy as np, onnx, onnxruntime
from onnx import helper, numpy_helper
mode, model, inputs, outputs, *words = sys.argv[1:]
m = onnx.load(model)
names = [o.name for o in m.graph.output]
inner = [o for n in m.graph.node for o in n.output if o]
x = np.load(inputs)
large = max(len(x[k]) for k in x.files) > 1
keep = words if mode == "keep" else words[2:] or inner if mode == "fault" else inner
if mode == "fault" or mode == "batch" and large:
    value, factor = words[0], float(words[1])
    for at, node in [(i, n) for i, n in enumerate(m.graph.node) if value in n.output]:  # parts may lack it
        node.output[list(node.output).index(value)] = value + "_right"
        m.graph.initializer.append(numpy_helper.from_array(np.float32(factor), "injected"))
        m.graph.node.insert(at + 1, helper.make_node("Mul", [value + "_right", "injected"], [value]))
m.graph.output.extend(onnx.ValueInfoProto(name=k) for k in keep if k not in names)
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.log_severity_level = 3
session = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
all_names = [o.name for o in session.get_outputs()]
y = dict(zip(all_names, session.run(all_names, {i.name: x[i.name] for i in session.get_inputs()})))
np.savez(outputs, **{k.replace("/", "|"): v for k, v in y.items() if not isinstance(v, list)})
'''

# Engines that fail: fail.py HOW INPUTS OUTPUTS.
FAIL = r'''
import os, subprocess, sys, time
import numpy as np
how, inputs, outputs = sys.argv[1:]
scores = np.zeros((1, 5), np.float32)
if how == "exit":
    print("before", file=sys.stderr)
    print("\x1b[1;31mout of\x1b[m memory", file=sys.stderr)
    sys.exit(3)
if how == "hang":
    child = subprocess.Popen(["sleep", "600"])
    with open("child", "w") as f:
        f.write(str(child.pid))
    time.sleep(600)
if how == "signal":
    os.kill(os.getpid(), 9)
if how == "nothing":
    sys.exit(0)
if how == "text":
    with open(outputs, "w") as f:
        f.write("scores: 0 0 0 0 0")
if how == "lacks":
    np.savez(outputs, c=scores)
if how == "shape":
    np.savez(outputs, scores=np.zeros((1, 6), np.float32))
if how == "inner":
    np.savez(outputs, scores=scores, m=np.zeros((7, 7, 7), np.float32))
if how == "type":
    np.savez(outputs, scores=np.array([["a"] * 5]))
if how == "pickle":
    np.savez(outputs, scores=np.array([[None] * 5]))
'''

FAILURES = (  # how, pattern of the message
    ("exit", "ended with exit code 3; its last lines: before; out of memory"),
    ("hang", "did not end within 1 seconds and was killed; it printed nothing"),
    ("signal", "ended with exit code 137|was ended by signal 9"),
    ("nothing", "ended well, but wrote no {outputs}"),
    ("text", "outputs.npz': "),
    ("lacks", "the engine's outputs lack 'scores'"),
    ("shape", r"array 'scores' has shape \[1, 6\]; the model wants"),
    ("inner", r"array 'm' has shape \[7, 7, 7\]; the model wants"),
    ("type", "array 'scores' holds string; the model wants float"),
    ("pickle", "outputs.npz': "),
)

USAGES = (  # options, pattern
    ("--exec x --engine-outputs y", "not both"),
    ("--exec x --target emu", "--target is for Assay's own engines"),
    ("--exec x --fused", "--fused, --unfused and --no-pass are about Assay's own plan"),
    ("--exec-timeout 3", "--exec-timeout is for --exec"),
    ("--exec true", "the command needs {inputs} and {outputs}"),
    ("--exec true{inputs}{outputs} --exec-timeout -1", "--exec-timeout is a number of seconds"),
)


class Failures(list):
    def check(self, ok, what):
        if not ok:
            self.append(what)
            print("FAIL", what)


class Assay:
    def __init__(self, program, models, python):
        self.program, self.models, self.python = program, models, python

    def run(self, *arguments):
        env = {**os.environ, "PYTHONPATH": self.python}
        done = subprocess.run([self.program, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=300, env=env)
        err = "".join(l for l in done.stderr.decode(errors="replace").splitlines(True) if "random ones are used" not in l)
        return done.returncode, done.stdout.decode(errors="replace"), err

    def check(self, model, *arguments):
        """Exit code, the report as JSON (None if there is none), and what went to stderr."""
        code, out, err = self.run("check", model, "--json", "-", *arguments)
        return code, json.loads(out) if out.startswith("{") else None, err


def engine(mode, *words):
    return " ".join([shlex.quote(sys.executable), "engine.py", mode, "{model} {inputs} {outputs}", *words])


def layers_of(report):
    return {l["name"]: l for l in report["layers"]}


def has_node(layer, node):
    return layer is not None and node in layer["nodes"]


# ---- engines that run ----------------------------------------------------------------------------

def test_faithful(a, failures):
    cnn = f"{a.models}/cnn.onnx"
    for mode, count in (("all", 13), ("keep", 1), ("keep r d", 3), ("keep h", 2)):
        code, j, err = a.check(cnn, "--exec", engine(*mode.split()))
        failures.check(code == FAITHFUL, f"faithful engine, {mode}: exit code {code}, {err}")
        if j is None:
            continue
        failures.check(len(j["layers"]) == count, f"{mode}: {len(j['layers'])} layers, {count} expected")
        failures.check(j["target"].endswith("{outputs}" + mode.partition(" ")[2].join([" ", ""]).rstrip()) or " " in mode,
                       f"{mode}: target {j['target']}")
        bad = [l["name"] for l in j["layers"] if l["verdict"] == "defect"]
        failures.check(not bad, f"{mode}: defects {bad}")
    code, out, err = a.run("check", cnn, "--exec", engine("all"))
    failures.check(f"as declared on {engine('all')}:" in out, f"the target in the text: {out}")


def test_recomputed(a, failures):
    """A value that two layers need is computed in both."""
    _, j, _ = a.check(f"{a.models}/cnn.onnx", "--exec", engine("keep", "s"))
    last = layers_of(j).get("conv .. softmax")
    failures.check(len(j["layers"]) == 2 and last is not None and "norm/scale" in last["nodes"] and
                   "norm/root" not in last["nodes"], f"layers {[l['nodes'] for l in j['layers']]}")
    first = next(l for l in j["layers"] if "norm/root" in l["nodes"])
    failures.check("norm/scale" in first["nodes"], f"{first['nodes']}")


def test_faults(a, failures):
    """A fault in one node: that layer, and no other, is a defect."""
    cnn = f"{a.models}/cnn.onnx"
    nodes = {o: n.name for n in onnx.load(cnn).graph.node for o in n.output}
    for value in ("c", "n", "r", "p", "z", "q", "m", "e", "s", "d", "h"):
        code, j, err = a.check(cnn, "--exec", engine("fault", value, "1.001"))
        bad = [l["nodes"] for l in j["layers"] if l["verdict"] == "defect"] if j else err
        failures.check(bad == [[nodes[value]]], f"fault in '{nodes[value]}': defects {bad}")
        failures.check(code == UNFAITHFUL and j["blame"] == "engine" and j["culprits"][0]["nodes"] == [nodes[value]],
                       f"fault in '{nodes[value]}': exit code {code}, {j and j['blame']}, {j and j['culprits']}")
        failures.check(j and j["fix"] is None, "no fix is made up for another engine")
    # Few taps: the layer that holds the node.
    for value, keep in (("n", "r d"), ("q", "r d"), ("h", "r d"), ("d", "h")):
        code, j, err = a.check(cnn, "--exec", engine("fault", value, "1.01", *keep.split()))
        bad = [l for l in j["layers"] if l["verdict"] == "defect"] if j else []
        failures.check(len(bad) == 1 and has_node(bad[0], nodes[value]),
                       f"fault in '{nodes[value]}', taps {keep}: {[l['nodes'] for l in bad]}")


def test_less_accurate(a, failures):
    """An error of a few units of the full scale, as approximations have, is no defect unless an output shows it."""
    cnn = f"{a.models}/cnn.onnx"
    for value, factor, verdict in (("d", "1.0000006", "less accurate"), ("e", "1.0000008", "less accurate"), ("d", "1.00001", "defect"), ("c", "1.0001", "defect")):
        node = next(n.name for n in onnx.load(cnn).graph.node if value in n.output)
        code, j, err = a.check(cnn, "--exec", engine("fault", value, factor))
        found = {n: l["verdict"] for l in j["layers"] for n in l["nodes"]} if j else {}
        failures.check(found.get(node) == verdict, f"'{value}' times {factor}: {found.get(node)}, {err}")
        failures.check(code == (FAITHFUL if verdict != "defect" else UNFAITHFUL), f"'{value}' times {factor}: exit code {code}")
    _, out, _ = a.run("check", cnn, "--exec", engine("fault", "d", "1.0000006"))
    failures.check("1 layer is less accurate than IEEE arithmetic, harmless here" in out, f"the note: {out}")
    # Where outputs have to be closer than that, it is what keeps them from it.
    code, j, err = a.check(cnn, "--exec", engine("fault", "d", "1.0000006"), "--require", "max_abs <= 1e-9")
    failures.check(code == UNFAITHFUL and j["blame"] == "engine" and j["culprits"][0]["verdict"] == "defect", f"required: {code}, {err}, {j and j['blame']}")


def test_precision(a, failures):
    runner = f"{shlex.quote(sys.executable)} -m runners.onnxruntime {{model}} {{inputs}} {{outputs}} {{precision}} --all"
    for model, precision in (("cnn", "fp32"), ("loop", "fp32"), ("if_sequence", "fp32"), ("external", "fp32"), ("external", "fp16")):
        code, j, err = a.check(f"{a.models}/{model}.onnx", "--exec", runner, "--precision", precision)
        failures.check(code == FAITHFUL, f"runners.onnxruntime, {model} in {precision}: exit code {code}, {err}")
        bad = [l["name"] for l in j["layers"] if l["verdict"] == "defect"] if j else []
        failures.check(not bad, f"runners.onnxruntime, {model} in {precision}: defects {bad}")
    code, _, err = a.check(f"{a.models}/cnn.onnx", "--exec", runner, "--precision", "bf16")
    failures.check(code == FAILED and "runs fp32, fp16 here, not bf16" in err, f"runners.onnxruntime in bf16: {err}")


# Products of operands rounded to tf32, a recurrent layer's, too; a number that the first product is multiplied by.
TF32 = r'''
import sys
import numpy as np, onnx
from onnx import numpy_helper
def tf32(a):
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0xfff + (bits >> 13 & 1)) & ~np.uint64(0x1fff)).astype(np.uint32).view(np.float32)
def product(a, b):
    return tf32(a) @ tf32(b)
def sigmoid(a):
    return 1 / (1 + np.exp(-a))
model, inputs, outputs, factor = sys.argv[1:]
w = {i.name: numpy_helper.to_array(i) for i in onnx.load(model).graph.initializer}
x = np.load(inputs)["x"]
h = np.tanh(product(x, w["first"]) * np.float32(factor))
state = cell = np.zeros((h.shape[1], w["r"].shape[2]), np.float32)
for step in h:
    i, o, f, g = np.split(product(step, w["w"][0].T) + product(state, w["r"][0].T), 4, axis=1)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    state = sigmoid(o) * np.tanh(cell)
np.savez(outputs, y=product(state, w["last"]) + w["bias"])
'''


def test_tf32(a, failures):
    """Engines that round operands to tf32, of which only outputs are known: no defect of a chain of nodes, whichever it ends in."""
    rng = np.random.default_rng(5)
    shapes = {"first": (32, 48), "w": (1, 96, 48), "r": (1, 96, 24), "last": (24, 10), "bias": (10,)}
    weights = [onnx.numpy_helper.from_array(rng.normal(0, 0.3, s).astype(np.float32), k) for k, s in shapes.items()]
    nodes = [helper.make_node("MatMul", ["x", "first"], ["p"]), helper.make_node("Tanh", ["p"], ["t"]),
             helper.make_node("LSTM", ["t", "w", "r"], ["", "h"], hidden_size=24), helper.make_node("Squeeze", ["h", "axis"], ["s"]),
             helper.make_node("MatMul", ["s", "last"], ["q"]), helper.make_node("Add", ["q", "bias"], ["y"])]
    weights.append(onnx.numpy_helper.from_array(np.int64([0]), "axis"))
    value = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "tf32", [value("x", (7, 3, 32))], [value("y", (3, 10))], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "tf32.onnx")
    write("tf32.py", TF32)
    for factor, expected in (("1", FAITHFUL), ("1.1", UNFAITHFUL)):
        code, j, err = a.check("tf32.onnx", "--precision", "tf32", "--exec",
                               f"{shlex.quote(sys.executable)} tf32.py {{model}} {{inputs}} {{outputs}} {factor}")
        failures.check(code == expected, f"products in tf32, the first times {factor}: exit code {code}, {err}, {j and j['culprits']}")


def test_rules(a, failures):
    """Rules say in which format the engine ran a layer: that of the node that it ends in."""
    _, j, _ = a.check(f"{a.models}/cnn.onnx", "--exec", engine("keep", "r"), "--layer-precision", "relu:fp16")
    failures.check([l["format"] for l in j["layers"]] == ["fp16", "fp32"], f"{[l['format'] for l in j['layers']]}")
    code, _, err = a.check(f"{a.models}/cnn.onnx", "--exec", engine("keep", "r"), "--layer-precision", "nothing:fp16")
    failures.check(code == USAGE and "matches no node" in err, f"a rule for nothing: {code}, {err}")


def test_control(a, failures):
    """A control node is judged as a whole, with what its bodies read around it."""
    for model, value, node in (("loop", "y", "Loop"), ("loop", "scaled", "Mul")):
        for keep in ((), ("scaled",)):
            if value not in keep and keep == () and value == "scaled":
                continue
            code, j, err = a.check(f"{a.models}/{model}.onnx", "--exec", engine("fault", value, "1.5", *keep))
            failures.check(code == UNFAITHFUL, f"fault in {model}'s {value}, taps {keep}: exit code {code}, {err}")
        if value == "y":
            own = [l["own"] for l in j["layers"] if any(n.startswith("Loop") for n in l["nodes"])]
            failures.check(own and own[0]["snr_db"] < 20, f"own error of the Loop: {own}")


def captured_model():
    """If whose branches read values around it, one of which the record does not hold."""
    f = onnx.TensorProto.FLOAT
    info = lambda n, s=(4,), t=f: helper.make_tensor_value_info(n, t, s)
    then = helper.make_graph([helper.make_node("Add", ["p", "q"], ["t"])], "then", [], [info("t")])
    other = helper.make_graph([helper.make_node("Sub", ["p", "q"], ["u"])], "other", [], [info("u")])
    nodes = [helper.make_node("Mul", ["x", "x"], ["p"], name="p"), helper.make_node("Exp", ["x"], ["q"], name="q"),
             helper.make_node("ReduceSum", ["p"], ["sum"], keepdims=0, name="sum"),
             helper.make_node("Greater", ["sum", "x0"], ["c"], name="c"),
             helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other)]
    zero = onnx.numpy_helper.from_array(np.float32(0), "x0")
    graph = helper.make_graph(nodes, "g", [info("x")], [info("y")], [zero])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "captured.onnx")


def test_captured(a, failures):
    captured_model()
    for keep in ((), ("p",), ("q", "c"), ("p", "q", "c", "sum")):
        code, j, err = a.check("captured.onnx", "--exec", engine("keep", *keep))
        failures.check(code == FAITHFUL, f"captured values, taps {keep}: exit code {code}, {err}")
        last = j["layers"][-1]
        expected = {"choice"} | {n for n, v in (("p", "p"), ("q", "q"), ("c", "c"), ("sum", "sum")) if v not in keep and
                                 not (n == "sum" and "c" in keep)}
        failures.check(set(last["nodes"]) == expected, f"taps {keep}: layer {last['nodes']}")
        failures.check(last["own"]["snr_db"] == "inf" or last["own"]["snr_db"] > 100, f"taps {keep}: {last['own']}")


def test_samples(a, failures):
    """Several samples: one run each."""
    x = np.random.default_rng(3).standard_normal((3, 3, 8, 8)).astype(np.float32)
    np.savez("three.npz", image=x)
    code, j, err = a.check(f"{a.models}/cnn.onnx", "-i", "three.npz", "--exec", "echo run >> runs; " + engine("keep", "r"))
    with open("runs") as f:
        runs = len(f.readlines())
    failures.check(code == FAITHFUL and j["samples"] == 3 and runs == 3, f"three samples: {code}, {runs} runs, {err}")
    failures.check(j["layers"][0]["runs"] == 3, f"runs of a layer: {j['layers'][0]['runs']}")
    # A value that only the first sample's outputs have.
    code, _, err = a.check(f"{a.models}/cnn.onnx", "-i", "three.npz", "--exec",
                           f"if [ -e once ]; then {engine('keep')}; else touch once; {engine('keep', 'r')}; fi")
    failures.check(code == FAILED and "--exec, sample 1: the engine's outputs lack 'r', which those of the first" in err,
                   f"fewer values: {code}, {err}")


def test_quoting(a, failures):
    folder = "it's a folder"
    os.makedirs(folder, exist_ok=True)
    model = f"{folder}/c nn.onnx"
    onnx.save(onnx.load(f"{a.models}/cnn.onnx"), model)
    code, _, err = a.check(model, "--exec", engine("all"))
    failures.check(code == FAITHFUL, f"a path with a quote: exit code {code}, {err}")


# ---- batches -------------------------------------------------------------------------------------

BATCHES = (  # the engine's words, exit code, verdict, node, pattern of the text
    ("all", FAITHFUL, "sound", None, r"^SOUND .* on .*: a sample's result does not depend on its batch"),
    ("keep", FAITHFUL, "sound", None, "^SOUND "),
    ("batch h 1.01", UNFAITHFUL, "engine", "head",
     r"^FAULT .*: the engine makes samples depend on their batch, in layer head\n  node    head \(MatMul\)   first in 'size': at "
     r"place 1 of 2, moved by 0\.01 of its largest\n  why     what enters it stays the same, 5 of its 5 elements do not"),
    ("batch h 1.0000001", UNFAITHFUL, "bits", "head",
     r"^UNEQUAL .*: a sample's bits depend on its batch, from layer head on, by rounding\n(?s:.*)rounding explains as much"),
)


def test_batch(a, failures):
    """Another engine's results for a sample, in batches; cnn's batch is 1, and is opened."""
    for words, expected, verdict, node, pattern in BATCHES:
        how = ["debug", "batch", f"{a.models}/cnn.onnx", "--exec", engine(*words.split())]
        code, out, err = a.run(*how)
        failures.check(code == expected and re.search(pattern, out), f"debug batch, {words}: exit code {code}, {out}{err}")
    code, out, err = a.run(*how, "--json", "-")
    j = json.loads(out) if out.startswith("{") else None
    failures.check(j and j["verdict"] == "bits" and j["guilty"]["node"] == "head", f"debug batch as JSON: {code}, {out}{err}")
    # A model that is open is the user's file itself, but for plans of a fixed batch.
    code, out, err = a.run("debug", "batch", f"{a.models}/external.onnx", "--exec", "echo {model} >> models; " + engine("all"))
    with open("models") as f:
        seen = set(f.read().split())
    failures.check(code == FAITHFUL and f"{a.models}/external.onnx" in seen and len(seen) == 2, f"models given: {seen}, {out}{err}")
    left = [n for n in seen if n != f"{a.models}/external.onnx" and os.path.exists(n)]
    failures.check(not left, f"left behind: {left}")
    code, _, err = a.run("debug", "batch", f"{a.models}/cnn.onnx", "--exec", "exit 3 {inputs} {outputs}")
    failures.check(code == FAILED and "--exec, sample 0: " in err and "exit code 3" in err, f"an engine that fails: {code}, {err}")
    for options, pattern in (("--exec x{inputs}{outputs} --target emu", "do not go with it"), ("--exec true", "needs {inputs} and {outputs}"),
                             ("--exec-timeout 3", "--exec-timeout is for --exec")):
        code, _, err = a.run("debug", "batch", f"{a.models}/cnn.onnx", *options.split())
        failures.check(code == USAGE and pattern in err, f"debug batch {options}: exit code {code}, {err!r}")


# ---- the smallest part that fails ----------------------------------------------------------------

def test_reduce(a, failures):
    """Each part is a model that the engine runs; what it says fails there, too."""
    cnn = f"{a.models}/cnn.onnx"
    for words, left in (("fault n 1.5", ["bn"]), ("fault h 1.5", ["head"])):
        exec = engine(*words.split())
        code, out, err = a.run("debug", "reduce", cnn, "--exec", exec, "-o", "part", "--json", "-")
        j = json.loads(out) if out.startswith("{") else None
        failures.check(code == UNFAITHFUL and j and j["verdict"] == "reduced", f"debug reduce, {words}: exit code {code}, {out}{err}")
        nodes = [n.name for n in onnx.load("part/model.onnx").graph.node]
        failures.check(nodes == left, f"debug reduce, {words}: {nodes} are left")
        code, out, _ = a.run("check", "part/model.onnx", "--inputs", "part/inputs.npz", "--exec", exec, "--no-fix")
        failures.check(code == UNFAITHFUL, f"the part of {words}: exit code {code}, {out}")
    # Of an engine that shows no inner values.
    code, out, err = a.run("debug", "reduce", cnn, "--exec", engine("fault", "d", "1.5", "scores"), "-o", "hidden")
    nodes = [n.name for n in onnx.load("hidden/model.onnx").graph.node] if os.path.exists("hidden") else []
    failures.check(code == UNFAITHFUL and "norm/div" in nodes and len(nodes) <= 3, f"debug reduce without inner values: {code}, {nodes}, {out}{err}")
    code, out, err = a.run("debug", "reduce", cnn, "--exec", engine("all"), "-o", "nothing")
    failures.check(code == FAITHFUL and not os.path.exists("nothing"), f"debug reduce of a faithful engine: {code}, {out}{err}")


# ---- engines that fail ---------------------------------------------------------------------------

def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_failures(a, failures):
    for how, pattern in FAILURES:
        start = time.monotonic()
        command = f"exec {shlex.quote(sys.executable)} fail.py {how} {{inputs}} {{outputs}}"
        code, _, err = a.check(f"{a.models}/cnn.onnx", "--exec", command, "--exec-timeout", "1" if how == "hang" else "100")
        failures.check(code == FAILED, f"{how}: exit code {code}, {err}")
        failures.check(re.fullmatch(r"assay: --exec, sample 0: [^\n]+\n", err) and re.search(pattern, err), f"{how}: {err!r}")
        failures.check(how != "hang" or time.monotonic() - start < 60, f"{how}: {time.monotonic() - start} s")
    with open("child") as f:
        pid = int(f.read())
    for _ in range(50):
        if not alive(pid):
            break
        time.sleep(0.1)
    failures.check(not alive(pid), "what the hanging command had started was not killed")
    left = [n for n in os.listdir(os.environ["TMPDIR"]) if n.startswith("assay.")]
    failures.check(not left, f"left behind: {left}")


def test_interrupt(a, failures):
    """Ctrl-C takes the command along."""
    command = f"exec {shlex.quote(sys.executable)} fail.py hang {{inputs}} {{outputs}}"
    if os.path.exists("child"):
        os.remove("child")
    p = subprocess.Popen([a.program, "check", f"{a.models}/cnn.onnx", "--exec", command], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    for _ in range(300):
        if os.path.exists("child") and os.path.getsize("child"):
            break
        time.sleep(0.1)
    with open("child") as f:
        pid = int(f.read())
    p.send_signal(2)
    failures.check(p.wait(30) == -2, f"interrupted: {p.returncode}")
    time.sleep(0.5)
    failures.check(not alive(pid), "the command outlived an interrupted check")


def test_usage(a, failures):
    for options, pattern in USAGES:
        code, _, err = a.check(f"{a.models}/cnn.onnx", *options.split())
        failures.check(code == USAGE and pattern in err, f"{options}: exit code {code}, {err!r}")


# ---- what engines left in files ------------------------------------------------------------------

def values_of(model, x):
    m = onnx.load(model)
    names = [o for n in m.graph.node for o in n.output]
    m.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in {o.name for o in m.graph.output})
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    s = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in s.get_outputs()], s.run(None, {"image": x})))


def polygraphy(iterations):
    def array(x):
        b = io.BytesIO()
        np.lib.format.write_array(b, x)
        return {"values": {"array": base64.b64encode(b.getvalue()).decode(), "polygraphy_class": "ndarray"},
                "polygraphy_class": "LazyArray"}
    rows = [{"outputs": {k: array(v) for k, v in it.items()}, "runtime": 0.1, "runner_name": "r",
             "polygraphy_class": "IterationResult"} for it in iterations]
    return json.dumps({"lst": [["r", rows]], "polygraphy_class": "RunResults"}, indent=4)


def trtexec(values):
    rows = []
    for k, v in values.items():
        numbers = ", ".join("nan" if np.isnan(x) else "%.9g" % x for x in v.ravel().tolist())
        rows.append(f'  {{ "name" : "{k}"\n  , "dimensions" : "{"x".join(map(str, v.shape))}"\n  , "values" : [ {numbers} ]\n  }}')
    return "[\n" + "\n,".join(rows) + "\n]\n"


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def test_files(a, failures):
    cnn = f"{a.models}/cnn.onnx"
    x = np.random.default_rng(5).standard_normal((2, 3, 8, 8)).astype(np.float32)
    np.savez("one.npz", image=x[:1])
    np.savez("two.npz", image=x)
    first, second = values_of(cnn, x[:1]), values_of(cnn, x[1:])
    wrong = {**first, "d": first["d"] * np.float32(1.01)}
    outputs = {"scores": first["scores"]}
    np.savez("all.npz", **first)
    np.savez("wrong.npz", **wrong)
    np.savez("both.npz", **{k: np.concatenate([first[k], second[k]]) for k in ("r", "scores")})
    np.savez("extra.npz", stranger=np.zeros(3), **outputs)
    nan = {"scores": first["scores"] * np.nan}
    rows = (
        ("one.npz", "all.npz", FAITHFUL, 13, ""),
        ("one.npz", "extra.npz", FAITHFUL, 1, "note: 1 array of the engine's 'stranger' is not a value of the model"),
        ("two.npz", "both.npz", FAITHFUL, 2, ""),
        ("two.npz", "all.npz", INPUT, 0, "'all.npz': it holds 1 samples, the inputs 2"),
        ("one.npz", "both.npz", INPUT, 0, "'both.npz': it holds 2 samples, the inputs 1"),
        ("one.npz", "wrong.npz", UNFAITHFUL, 13, ""),
        ("one.npz", write("p.json", polygraphy([first])), FAITHFUL, 13, ""),
        ("two.npz", write("p2.json", polygraphy([first, second])), FAITHFUL, 13, ""),
        ("one.npz", write("t.json", trtexec(outputs)), FAITHFUL, 1, ""),
        ("one.npz", write("nan.json", trtexec(nan)), UNFAITHFUL, 1, ""),
        ("one.npz", write("none.json", "[]"), INPUT, 0, "neither Polygraphy's nor trtexec's"),
        ("one.npz", write("cut.json", trtexec(outputs)[:-20]), INPUT, 0, "'cut.json': JSON: line"),
        ("one.npz", write("count.json", trtexec(outputs).replace('"1x5"', '"1x6"')), INPUT, 0, "not its dimensions' number"),
        ("one.npz", write("bytes.json", polygraphy([outputs]).replace("k05VTVBZ", "????")), INPUT, 0, "base64: character 1 of"),
        ("one.npz", write("torch.json", polygraphy([outputs]).replace('"ndarray"', '"Tensor"')), INPUT, 0, "not Polygraphy JSON: expected"),
        ("one.npz", "nothing.npz", INPUT, 0, "'nothing.npz': No such file"),
        ("one.npz", "one.npz", INPUT, 0, "the engine's outputs lack 'scores'"),
    )
    for inputs, path, code, count, message in rows:
        got, j, err = a.check(cnn, "-i", inputs, "--engine-outputs", path)
        failures.check(got == code and message in err, f"{path}: exit code {got}, {err!r}")
        failures.check((len(j["layers"]) if j else 0) == count, f"{path}: {len(j['layers']) if j else 0} layers")
        failures.check(not j or j["target"] == path, f"{path}: target {j and j['target']}")
    _, j, _ = a.check(cnn, "-i", "one.npz", "--engine-outputs", "wrong.npz")
    bad = [l["name"] for l in j["layers"] if l["verdict"] == "defect"]
    failures.check("norm/div" in bad and bad[0] == "norm/div", f"wrong.npz: defects {bad}")


def shared_model():
    """A node whose outputs are read by several layers, in another order than the graph's, and shown in part."""
    f = onnx.TensorProto.FLOAT
    info = lambda n, s=(4,): helper.make_tensor_value_info(n, f, s)
    nodes = [helper.make_node("Exp", ["x"], ["v"], name="v"), helper.make_node("Neg", ["v"], ["late"], name="late"),
             helper.make_node("Split", ["x"], ["l", "m"], name="split", num_outputs=2),
             helper.make_node("Abs", ["v"], ["soon"], name="soon"), helper.make_node("Sqrt", ["soon"], ["a"], name="a"),
             helper.make_node("Mul", ["late", "late"], ["b"], name="b"), helper.make_node("Add", ["l", "m"], ["c"], name="c")]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("a"), info("b"), info("c", (2,))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), "shared.onnx")


def test_shared(a, failures):
    """Unfaithful engines: the error is split over layers that share nodes."""
    shared_model()
    for value in ("v", "late", "l", "soon", "a", "c"):
        for keep in ("a", "l", "l late", "v", "m soon"):
            code, j, err = a.check("shared.onnx", "--exec", engine("fault", value, "3", *keep.split()))
            failures.check(code == UNFAITHFUL and j["blame"] == "engine", f"fault in '{value}', taps {keep}: {code}, {err}")


def random_model():
    f = onnx.TensorProto.FLOAT
    info = lambda n: helper.make_tensor_value_info(n, f, [4])
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["noise"], name="noise"),
             helper.make_node("Add", ["x", "noise"], ["y"], name="add")]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "random.onnx")


def test_random(a, failures):
    """Random numbers are the engine's own: taken as they are where they are shown, refused where not."""
    random_model()
    code, j, err = a.check("random.onnx", "--exec", engine("all"))
    failures.check(code == FAITHFUL, f"random numbers that are shown: exit code {code}, {err}")
    code, j, err = a.check("random.onnx", "--exec", engine("keep"))
    failures.check(code == FAILED and "node 'noise'" in err and "draws random numbers" in err,
                   f"random numbers that are not shown: exit code {code}, {err}")


def main(program, models, python):
    failures = Failures()
    a = Assay(os.path.abspath(program), os.path.abspath(models), os.path.abspath(python))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # What is left behind is looked for here, where no other test puts anything.
        os.mkdir("tmp")
        os.environ["TMPDIR"] = os.path.join(folder, "tmp")
        write("engine.py", ENGINE)
        write("fail.py", FAIL)
        for test in (test_faithful, test_recomputed, test_faults, test_less_accurate, test_precision, test_tf32, test_rules, test_control, test_captured,
                     test_samples, test_quoting, test_shared, test_batch, test_reduce, test_failures, test_interrupt, test_usage, test_files, test_random):
            test(a, failures)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
