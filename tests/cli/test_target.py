#!/usr/bin/env python3
"""`check --target cpu` judges the very plan that `build` makes by the same options: its outputs are those of `run PLAN`, bit for bit.

    test_target.py ASSAY SMALL_MODELS MODELS

The outputs that check judges are what a command of --require is given. They are compared with the account's taps in place, for fused and unfused
plans, so they also say that taps change nothing.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Models of the small folder, by themselves; and of the made ones, with their inputs.
SMALL = ["cnn", "external", "quantized", "places", "loop"]
MADE = ["classifier/model", "detector/model", "transformer/model", "loop/model", "fp32/filters", "int8/blocks", "quantized/model"]
QUANTIZED = ("quantized", "quantized/model", "int8/blocks")
FORMATS = [["--precision", p] for p in ("fp32", "bf16", "fp16")]
WAYS = [[], ["--unfused"], ["--no-pass", "epilogue_fusion"], ["--fp32", "bound"]]

failures = []


def assay(program, *arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def same_bits(a, b):
    with np.load(a) as x, np.load(b) as y:
        if sorted(x.files) != sorted(y.files):
            return f"{sorted(x.files)} and {sorted(y.files)}"
        for name in x.files:
            if x[name].dtype != y[name].dtype or x[name].shape != y[name].shape:
                return f"'{name}' is {x[name].dtype}{x[name].shape} and {y[name].dtype}{y[name].shape}"
            if x[name].tobytes() != y[name].tobytes():
                return f"'{name}' differs in {np.sum(x[name] != y[name])} of {x[name].size} elements"
    return None


def shapes_of(inputs):
    """A plan is built for its inputs' sizes; check takes them from the inputs."""
    if not inputs:
        return []
    with np.load(inputs[1]) as arrays:
        return [w for name in arrays.files for w in ("--shape", f"{name}={'x'.join(map(str, arrays[name].shape))}") if arrays[name].ndim]


def judged_as_built(program, model, inputs, options):
    """Whether what check judged is what the plan gives."""
    for path in ("built.npz", "judged.npz", "model.plan"):
        if os.path.exists(path):
            os.remove(path)
    said = assay(program, "build", model, "-o", "model.plan", *options, *shapes_of(inputs))
    assert said.returncode == 0, (model, options, said.stdout)
    said = assay(program, "run", "model.plan", *inputs, "-o", "built.npz")
    assert said.returncode == 0, (model, options, said.stdout)
    keep = f"cp {{outputs}} {shlex.quote(os.path.abspath('judged.npz'))}"
    said = assay(program, "check", model, *inputs, "--target", "cpu", *options, "--no-fix", "--require", keep)
    if said.returncode not in (0, 1) or not os.path.exists("judged.npz"):
        return f"exit code {said.returncode}: {said.stdout}"
    return same_bits("built.npz", "judged.npz")


def expect(what, wrong):
    if wrong:
        failures.append(f"{what}: {wrong}")


def rows(small, made):
    for name in SMALL:
        yield name, f"{small}/{name}.onnx", []
    for name in MADE:
        inputs = f"{made}/{name}.npz" if os.path.exists(f"{made}/{name}.npz") else f"{made}/{os.path.dirname(name)}/inputs.npz"
        yield name, f"{made}/{name}.onnx", ["-i", inputs]


def check_bits(program, small, made):
    count = 0
    for name, model, inputs in rows(small, made):
        formats = FORMATS + ([["--precision", "int8"]] if name in QUANTIZED else [])
        for options in [f + w for f in formats for w in (WAYS if name == "cnn" else WAYS[:1])]:
            expect(f"{name} {' '.join(options)}", judged_as_built(program, model, inputs, options))
            count += 1
    return count


def check_words(program, small):
    """--fused is emu's: cpu has it anyway, and is told the same; --unfused goes with neither."""
    words = ["check", f"{small}/cnn.onnx", "--precision", "bf16", "--no-fix"]
    on_cpu, fused, unfused = (assay(program, *words, "--target", "cpu", *w) for w in ([], ["--fused"], ["--unfused"]))
    expect("--fused on cpu", None if on_cpu.stdout == fused.stdout else f"{on_cpu.stdout} and {fused.stdout}")
    expect("--unfused on cpu", None if unfused.returncode == 0 else unfused.stdout)
    for wrong in (["--unfused", "--fused"], ["--unfused", "--no-pass", "dead_code"]):
        said = assay(program, *words, *wrong)
        expect(" ".join(wrong), None if said.returncode == 2 and "do not go together" in said.stdout else said.stdout)


def make_tall():
    """Two layers: what the first hides passes fp16's range on the inputs [1, 2, 3, -3]; what the second reads was folded past it."""
    numbers = {"up": 6e4, "down": 1e-4, "a": 4e4, "b": 2.0, "small": 1e-5}
    weights = [numpy_helper.from_array(np.array(v if n != "a" else [v] * 4, np.float32), n) for n, v in numbers.items()]
    weights.append(numpy_helper.from_array(np.array([[1], [0], [0], [1]], np.float32), "w"))
    nodes = [helper.make_node("Mul", ["x", "up"], ["p"], "first"), helper.make_node("Mul", ["p", "down"], ["q"], "second"),
             helper.make_node("Reshape", ["q", "shape"], ["row"]), helper.make_node("MatMul", ["row", "w"], ["m"]),
             helper.make_node("Mul", ["a", "b"], ["ab"]), helper.make_node("Mul", ["m", "ab"], ["r"], "third"),
             helper.make_node("Mul", ["r", "small"], ["y"], "fourth")]
    weights.append(numpy_helper.from_array(np.array([1, 4], np.int64), "shape"))
    value = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]), helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])]
    graph = helper.make_graph(nodes, "tall", value[:1], value[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "tall.onnx")
    np.savez("tall.npz", x=np.array([1, 2, 3, -3], np.float32))


HIDDEN = "at risk: layer 'first .. second' hides 'p' up to 1.8e+05; fp16 ends at 65504; cpu keeps it wider, another engine may not"
FOLDED = "made by constant_folding, up to 8e+04; fp16 ends at 65504"
INPUTS = ["-i", "tall.npz"]
# The line; whether it is to tell of hidden values, and of folded constants.
RISKS = [
    (["build", "tall.onnx", "-o", "tall.plan", "--precision", "fp16"], False, True),
    (["build", "tall.onnx", "-o", "wide.plan", "--precision", "bf16"], False, False),
    (["bench", "tall.onnx", *INPUTS, "--seconds", "0.01", "--warm-up", "0.01", "--precision", "fp16"], True, True),
    (["bench", "tall.plan", *INPUTS, "--seconds", "0.01", "--warm-up", "0.01"], True, False),
    (["bench", "tall.plan", "wide.plan", *INPUTS, "--seconds", "0.01", "--warm-up", "0.01"], True, False),
    (["bench", "wide.plan", *INPUTS, "--seconds", "0.01", "--warm-up", "0.01"], False, False),
    (["bench", "tall.onnx", *INPUTS, "--seconds", "0.01", "--warm-up", "0.01", "--precision", "fp16", "--unfused"], False, False),
    (["bench", "tall.onnx", *INPUTS, "--seconds", "0.01", "--warm-up", "0.01", "--precision", "fp16", "--layer-precision", "*:fp32"], False, False),
    (["trtexec", "--onnx=tall.onnx", "--fp16", "--loadInputs=x:tall.bin", "--duration=0", "--warmUp=0", "--iterations=1"], True, True),
    (["trtexec", "--onnx=tall.onnx", "--loadInputs=x:tall.bin", "--duration=0", "--warmUp=0", "--iterations=1"], False, False),
    (["polygraphy", "run", "tall.onnx", "--trt", "--fp16", "--load-inputs", "tall.json"], True, True),
    (["polygraphy", "run", "tall.onnx", "--trt", "--load-inputs", "tall.json"], False, False),
    (["polygraphy", "convert", "tall.onnx", "--fp16", "-o", "again.plan"], False, True),
]


def check_risks(program):
    """Whoever builds and runs a plan says what its formats cannot hold, a line each, though its outputs are right."""
    make_tall()
    np.array([1, 2, 3, -3], np.float32).tofile("tall.bin")
    said = assay(program, "run", "tall.onnx", "--mode", "native", *INPUTS, "-o", "tall.pt.npz")
    expect("run", None if said.returncode == 0 else said.stdout)
    said = assay(program, "polygraphy", "data", "to-input", "tall.npz", "-o", "tall.json")
    expect("to-input", None if said.returncode == 0 else said.stdout)
    for words, hidden, folded in RISKS:
        said = assay(program, *words)
        right = said.returncode == 0 and said.stdout.count(HIDDEN) == hidden and said.stdout.count(FOLDED) == folded
        expect(" ".join(words), None if right else said.stdout)


def main():
    program, small, made = (os.path.abspath(a) for a in sys.argv[1:4])
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    try:
        count = check_bits(program, small, made)
        check_words(program, small)
        check_risks(program)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for f in failures:
        print(f, file=sys.stderr)
    print(f"test_target: {count} plans judged as built, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
