#!/usr/bin/env python3
"""Operators of the user's own on the command line: --ops, plans that need it, and operators that nobody knows.

    test_ops.py ASSAY OPS MODELS

OPS holds the libraries of tests/ops/libraries and operators.so of examples/custom_operators; MODELS/operators the
models that scripts/make_models.py makes for them. A row says what is run, the exit code, and patterns of what is
printed. Results are held against numpy.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

OK, UNFAITHFUL, USAGE, INPUT, FAILED = range(5)
RANDOM = "assay: no inputs given: random ones are used"
HAVE = "--ops {o}/operators.so"
UNKNOWN = (r"node '/SoftClip_2' \(com.example.SoftClip\): unknown operator: domain 'com.example' is neither a standard one "
           r"nor has the model a function of this name; give the library that has it with --ops LIB.so")

ROWS = [
    # libraries
    ("run {m}/custom.onnx --ops nothing.so", USAGE, "", "there is no library 'nothing.so' that can be read"),
    ("run {m}/custom.onnx --ops {m}/custom.onnx", USAGE, "", "custom.onnx' cannot be opened as a library: "),
    ("run {m}/custom.onnx --ops {o}/no_symbol.so", USAGE, "", "is not a library of operators: it has no function 'assay_register_ops'"),
    ("run {m}/custom.onnx --ops {o}/built_in.so", USAGE, "", "built_in.so': operator 'Relu' of domain 'ai.onnx' is built in"),
    ("run {m}/custom.onnx --ops {o}/operators.so --ops {o}/other_revision.so", USAGE, "", "is registered already, by '.*operators.so'"),
    ("run {m}/custom.onnx --ops", USAGE, "", "--ops needs a value"),
    # with the library
    ("run {m}/custom.onnx -i {m}/custom.npz " + HAVE, OK, r"^mean: float\[3, 15\]  min .*\npeak: int64\[3, 15\]\n$", ""),
    ("run {m}/custom.onnx --ops operators.so", OK, r"^mean: float\[1, 15\]", ""),
    ("run {m}/custom.onnx --mode truth " + HAVE, OK, r"^mean: double\[1, 15\]", ""),
    ("run {m}/custom.onnx --target cpu --fused " + HAVE, OK, r"^mean: float\[1, 15\]", ""),
    ("check {m}/custom.onnx --precision fp32 -i {m}/custom.npz " + HAVE, OK, "^FAITHFUL .* 'peak' is equal", ""),
    ("check {m}/custom.onnx --precision fp16 -i {m}/custom.npz " + HAVE, UNFAITHFUL,  # choices among what was pressed together
     r"(?s)^UNFAITHFUL .*'peak' differs.*/SoftClip_2 .*blame   precision\n  fix .*verified: .*'peak' is equal\n", ""),
    ("check {m}/custom.onnx --target cpu --fused -i {m}/custom.npz " + HAVE, OK, "^FAITHFUL ", ""),
    ("inspect model {m}/custom.onnx " + HAVE, OK, r"(?s)output     'mean' float\[N, 15\]\n.*com.example.SoftClip-1\n.*WindowStats-1\n$", ""),
    ("inspect plan {m}/custom.onnx --fused " + HAVE, OK, r"(?s)^plan       4 layers on emu.*WindowStats", ""),
    ("build {m}/custom.onnx -o custom.plan " + HAVE, OK, "(?s)^built custom.plan: 4 layers, .*1 layers have no kernel", "open sizes are 1: 'N'"),
    ("bench {m}/custom.onnx --seconds 0.01 " + HAVE, OK, "latency", "open sizes are 1: 'N'"),
    ("conformance cases " + HAVE, OK, r"1 of 1|1 passed", ""),
    # plans
    ("run custom.plan -i custom1.npz " + HAVE, OK, r"^mean: float\[1, 15\]", ""),
    ("bench custom.plan --seconds 0.01 " + HAVE, OK, "latency", ""),
    ("inspect plan custom.plan " + HAVE, OK, r"(?s)fp32 +fp32 +custom +SoftClip .*fp32 +fp32 +emu +WindowStats", ""),
    ("refit custom.plan --weights {m}/custom.onnx -o again.plan " + HAVE, OK, "^refitted again.plan: 0 of 3 weights changed", ""),
    ("refit custom.plan --weights {m}/custom.onnx -o again.plan", INPUT, "", "the plan has operator 'SoftClip'"),
    ("run custom.plan", INPUT, "", r"'custom.plan': the plan has operator 'SoftClip' of domain 'com.example', version 1, which is "
                                   "not built in; give the library that has it with --ops LIB.so"),
    ("inspect plan custom.plan", INPUT, "", "the plan has operator 'SoftClip'"),
    ("run custom.plan --ops {o}/other_revision.so", INPUT, "",
     "the plan was built with revision '1.0' of operator 'SoftClip' of domain 'com.example', and '.*other_revision.so' has "
     "revision '0.9'; build the plan again"),
    # functions that fail
    ("run {m}/custom.onnx --ops {o}/other_revision.so", FAILED, "",
     r"node '/SoftClip_2' \(com.example.SoftClip\) of '.*custom.onnx': limits of 2 are for tomorrow"),
    ("check {m}/custom.onnx --ops {o}/other_revision.so", FAILED, "", "limits of 2 are for tomorrow"),
    ("run stats.onnx --ops {o}/other_revision.so", INPUT, "", "its function `evaluate` has not made output 0"),
    ("run wide.onnx " + HAVE, INPUT, "", r"node 'stats' \(com.example.WindowStats\).*the input has 4 elements in a row; a window has 9"),
    ("run negative.onnx " + HAVE, INPUT, "", r"node 'clip' \(com.example.SoftClip\).*limit is -1; it has to be above 0"),
    ("run missing.onnx " + HAVE, INPUT, "", "attribute 'size' is missing; it has no default"),
    ("run other_type.onnx " + HAVE, INPUT, "", r"input 0 X 'x' is int64\[4\]; SoftClip-1 takes float"),
    ("run version.onnx " + HAVE, INPUT, "", "domain 'com.example' is not imported"),
    # without it
    ("run {m}/custom.onnx", INPUT, "", UNKNOWN),
    ("check {m}/custom.onnx --precision fp16", INPUT, "", UNKNOWN),
    ("build {m}/custom.onnx -o no.plan", INPUT, "", UNKNOWN),
    ("bench {m}/custom.onnx", INPUT, "", UNKNOWN),
    ("inspect model {m}/custom.onnx", OK,
     r"(?s)output     'mean' float\[N, W\]\n.*\n +1  com.example.SoftClip   UNKNOWN\n.*\n"
     r"  unknown: node '/SoftClip_2' \(com.example.SoftClip\)\n.*unknown operators do not run: give the library .*--ops LIB.so\n$", ""),
    ("inspect plan {m}/custom.onnx", OK, r"^plan       5 layers on emu\nunknown operators: it cannot be run without --ops\n", ""),
    ("inspect plan {m}/unknown.onnx --fused", OK, r"^plan       5 layers on emu\nunknown operators: ", ""),
    ("inspect model {m}/unknown.onnx", OK, r"(?s)Vote_TRT   UNKNOWN.*unknown: node 'Inner_1' \(com.vendor.Inner\)", ""),
    ("run {m}/unknown.onnx", INPUT, "", r"node 'plugin' \(com.vendor.Plugin\): unknown operator"),
    ("run trt.onnx", INPUT, "", r"node 'vote' \(Vote_TRT\): unknown operator: no version of 'ai.onnx' has it; give the library"),
]


def write_models(models):
    """Models with something wrong about their custom operators."""
    info, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node

    def save(name, nodes, elem=onnx.TensorProto.FLOAT, domains=("com.example",), outputs=("y",)):
        graph = onnx.helper.make_graph(nodes, "g", [info("x", elem, [4])], [info(o, elem, None) for o in outputs])
        opsets = [onnx.helper.make_opsetid("", 17), *(onnx.helper.make_opsetid(d, 1) for d in domains)]
        onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), f"{name}.onnx")

    stats = lambda **a: [node("WindowStats", ["x"], ["y"], name="stats", domain="com.example", **a)]
    clip = lambda **a: [node("SoftClip", ["x"], ["y"], name="clip", domain="com.example", **a)]
    save("stats", stats(size=2))
    save("wide", stats(size=9))
    save("missing", stats())
    save("negative", clip(limit=-1.0))
    save("other_type", clip(), elem=onnx.TensorProto.INT64)
    save("version", clip(), domains=())
    save("trt", [node("Vote_TRT", ["x"], ["y"], name="vote")])
    # A case as the operator tests have them.
    folder = "cases/node/test_clip"
    os.makedirs(os.path.join(folder, "test_data_set_0"))
    save(os.path.join(folder, "model"), clip(limit=2.0))
    x = np.array([-3, 0, 1, 9], np.float32)
    for name, value in (("input", x), ("output", 2 * np.tanh(x / 2))):
        with open(os.path.join(folder, "test_data_set_0", f"{name}_0.pb"), "wb") as f:
            f.write(numpy_helper.from_array(value.astype(np.float32), "x" if name == "input" else "y").SerializeToString())


def assay(program, *arguments):
    run = subprocess.run([program, *arguments], capture_output=True, text=True)
    return run.returncode, run.stdout, "".join(l for l in run.stderr.splitlines(True) if not l.startswith(RANDOM))


def test_rows(program, ops, models):
    wrong = 0
    for line, code, out, err in ROWS:
        got, stdout, stderr = assay(program, *line.format(m=models, o=ops).split())
        ok = got == code and (re.search(out, stdout) if out else not stdout) and (re.search(err, stderr) if err else not stderr)
        if code >= USAGE:
            ok = ok and re.fullmatch(r"assay: [^\n]+\n", stderr)
        if not ok:
            wrong += 1
            print(f"FAIL assay {line}: exit code {got} ({code}), output {stdout!r}, error {stderr!r}")
    return wrong


def test_results(program, ops, models):
    """The same numbers as numpy's, in every mode, and from a plan."""
    model = onnx.load(f"{models}/custom.onnx")
    w = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}
    x = np.load(f"{models}/custom.npz")["x"].astype(np.float64)
    h = 2 * np.tanh((x @ w["w0"] + w["w1"]) / 2)
    windows = np.lib.stride_tricks.sliding_window_view(h, 8, axis=-1)[:, ::4]
    mean, peak = windows.mean(-1) * 3, windows.argmax(-1)
    wrong = 0
    build = ("build", f"{models}/custom.onnx", "-o", "three.plan", "--batch", "3", "--ops", f"{ops}/operators.so")
    if assay(program, *build)[0]:
        print("FAIL: no plan for 3 rows")
        wrong += 1
    for file, options, limit in ((f"{models}/custom.onnx", ("--mode", "truth"), 1e-13), (f"{models}/custom.onnx", (), 1e-5),
                                 (f"{models}/custom.onnx", ("--target", "cpu"), 1e-5),
                                 (f"{models}/custom.onnx", ("--target", "cpu", "--precision", "bf16"), 0.1), ("three.plan", (), 1e-5)):
        code, _, err = assay(program, "run", file, *options, "-i", f"{models}/custom.npz", "-o", "out.npz", "--ops", f"{ops}/operators.so")
        if code:
            print(f"FAIL {file} {options}: {err}")
            wrong += 1
            continue
        with np.load("out.npz") as got:
            off = np.abs(got["mean"] - mean).max()
            same = (got["peak"] == peak).mean()
        if not off <= limit or (limit < 0.1 and same < 1):
            print(f"FAIL {file} {options}: off by {off}, {same:.0%} of the peaks are the same")
            wrong += 1
    return wrong


def test_json(program, ops, models):
    """Layers of custom operators with bounds are judged; unknown ones are marked."""
    _, out, _ = assay(program, "check", f"{models}/custom.onnx", "--precision", "bf16", "--target", "cpu", "-i", f"{models}/custom.npz",
                      "--ops", f"{ops}/operators.so", "--json", "-")
    layers = {l["name"]: l for l in json.loads(out)["layers"]}
    wrong = 0
    for name in ("/SoftClip_2", "/WindowStats"):
        judged = layers[name]["judged"]
        if judged["unbounded"] or layers[name]["verdict"] not in ("exact", "rounding", "flipped"):
            print(f"FAIL {name}: {layers[name]}")
            wrong += 1
    for model, unknown in (("custom", ["/SoftClip_2", "/WindowStats"]), ("unknown", ["plugin", "vote"])):
        nodes = json.loads(assay(program, "inspect", "model", f"{models}/{model}.onnx", "--json", "-")[1])["nodes"]
        if [n["name"] for n in nodes if n["unknown"]] != unknown or any(n["supported"] and n["unknown"] for n in nodes):
            print(f"FAIL inspect {model}: {nodes}")
            wrong += 1
    return wrong


def main(program, ops, models):
    program, ops, models = (os.path.abspath(p) for p in (program, ops, os.path.join(models, "operators")))
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.symlink(f"{ops}/operators.so", "operators.so")
        write_models(models)
        np.savez("custom1.npz", x=np.load(f"{models}/custom.npz")["x"][:1])
        wrong = test_rows(program, ops, models) + test_results(program, ops, models) + test_json(program, ops, models)
        os.chdir(here)
    print(f"{len(ROWS)} command lines, {wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
