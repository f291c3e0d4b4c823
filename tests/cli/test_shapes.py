#!/usr/bin/env python3
"""Sizes that a model leaves open: --shape, --dim and --batch mean the same in every verb, and dimensions of one name agree.

    test_shapes.py ASSAY
"""
import os
import re
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper

INPUT_OR_USAGE = (2, 3)
VERBS = (("run",), ("check", "--no-fix"), ("debug", "passes"), ("tune", "--no-pareto"), ("audit", "--no-radius", "--no-witness"),
         ("build", "-o", "out.plan"), ("bench", "--seconds", "0.01", "--warm-up", "0.01"), ("certify", "-o", "out.cert"),
         ("inspect", "model"))
DEFAULTED = re.compile(r"open sizes are 1: ([^;]*); --dim NAME=N")


class Failures(list):
    def check(self, fine, what):
        if not fine:
            self.append(what)
            print(f"FAILED: {what}")


def assay(program, *arguments):
    run = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    return run.returncode, run.stdout, run.stderr


def write_models():
    tensor = helper.make_tensor_value_info
    def save(name, *inputs):
        nodes = [helper.make_node("Identity", [i.name], ["y_" + i.name]) for i in inputs]
        outputs = [tensor("y_" + i.name, TensorProto.FLOAT, [None] * len(i.type.tensor_type.shape.dim)) for i in inputs]
        graph = helper.make_graph(nodes, "g", list(inputs), outputs)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), name)
    save("two.onnx", tensor("a", TensorProto.FLOAT, ["N", "L", 3]), tensor("b", TensorProto.FLOAT, ["N", "L"]),
         tensor("c", TensorProto.FLOAT, ["M"]), tensor("d", TensorProto.FLOAT, [5, None]))
    save("fixed.onnx", tensor("a", TensorProto.FLOAT, [2, 3]))


def shapes(text):
    """Shapes of the outputs as `assay run` prints them."""
    return {n: s for n, s in re.findall(r"^y_(\w): float\w*(\[[^\]]*\])", text, re.M)}


# Options, the shapes of a, b, c, d, and what stays 1 and is told.
SETTLED = [
    ([], ("[1,1,3]", "[1,1]", "[1]", "[5,1]"), "'N', 'L', 'M', dimension 1 of 'd'"),
    (["--batch", "8"], ("[8,1,3]", "[8,1]", "[8]", "[5,1]"), "'L', dimension 1 of 'd'"),
    (["--batch", "8", "--dim", "L=4"], ("[8,4,3]", "[8,4]", "[8]", "[5,1]"), "dimension 1 of 'd'"),
    (["--shape", "a=2x7x3"], ("[2,7,3]", "[2,7]", "[1]", "[5,1]"), "'M', dimension 1 of 'd'"),
    (["--shape", "b=?x7", "--batch", "3", "--shape", "d=5x6"], ("[3,7,3]", "[3,7]", "[3]", "[5,6]"), None),
    (["--shape", "c=9", "--batch", "2", "--dim=L=2", "--shape", "d=5x6"], ("[2,2,3]", "[2,2]", "[9]", "[5,6]"), None),
]
REFUSED = [
    (["--batch", "-3"], r"--batch -3: a size is at least 1"),
    (["--batch", "0"], r"--batch 0: a size is at least 1"),
    (["--batch", "x"], r"'x' is not a number, as --batch needs"),
    (["--dim", "L=0"], r"--dim L=0: a size is at least 1"),
    (["--dim", "L"], r"--dim 'L' is not NAME=N"),
    (["--dim", "seq=4"], r"no input has an open dimension 'seq'; there are 'N', 'L', 'M'"),
    (["--shape", "a=2x7x3", "--shape", "b=2x6"], r"inputs 'a' and 'b' share dimension 'L', which is given as 7 and as 6"),
    (["--shape", "a=2x7x3", "--dim", "L=6"], r"dimension 'L' of input 'a' is given as 7, and as 6"),
    (["--shape", "a=2x7x3", "--batch", "4"], r"dimension 'N' of input 'a' is given as 2, and as 4 by the batch"),
    (["--dim", "N=2", "--batch", "4"], r"dimension 'N' is given as 2 .* and as 4 \(the batch\)"),
]


def test_settled(program, failures):
    for options, want, ones in SETTLED:
        code, out, err = assay(program, "run", "two.onnx", *options)
        got = shapes(out.replace(", ", ",").replace("x", ","))
        failures.check(code == 0 and tuple(got.get(k) for k in "abcd") == want, f"run {options}: {code}, {out!r}, {err!r}: {want} expected")
        told = DEFAULTED.findall(err)
        failures.check(told == ([ones] if ones else []), f"run {options}: {err!r}: {ones} expected")


def test_verbs(program, failures):
    for verb in VERBS:
        for options, why in REFUSED:
            code, out, err = assay(program, *verb, "two.onnx", *options)
            if verb[0] == "inspect":  # what does not fit is told, and the model shown
                failures.check(code in INPUT_OR_USAGE and re.search(why, err), f"{verb} {options}: {code}, {err!r}")
                continue
            failures.check(code in INPUT_OR_USAGE and not out and re.search(why, err), f"{verb} {options}: {code}, {out!r}, {err!r}")
        code, out, err = assay(program, *verb, "two.onnx", "--batch", "8")
        told = DEFAULTED.findall(err)
        if verb[0] != "inspect":
            failures.check(told == ["'L', dimension 1 of 'd'"], f"{verb} --batch 8: {err!r}")
        code, out, err = assay(program, *verb, "fixed.onnx", "--batch", "8")
        failures.check(err.count("--batch 8 sets nothing") == 1, f"{verb} fixed.onnx --batch 8: {err!r}")
        code, out, err = assay(program, *verb, "fixed.onnx", "--batch", "2")
        failures.check("sets nothing" not in err, f"{verb} fixed.onnx --batch 2: {err!r}")


def test_profiles(program, failures):
    """An input that shares a dimension with one that has a profile follows it."""
    code, out, err = assay(program, "build", "two.onnx", "-o", "p.plan", "--profile", "a=1x4x3:2x4x3:6x4x3", "--shape", "d=5x2", "--shape", "c=3")
    failures.check(code == 0 and not DEFAULTED.search(err), f"build --profile: {code}, {err!r}")
    code, out, err = assay(program, "bench", "p.plan", "--seconds", "0.01", "--shape", "a=5x4x3")
    failures.check(code == 0, f"bench of the plan: {code}, {err!r}")


def main(program):
    program = os.path.abspath(program)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_models()
        test_settled(program, failures)
        test_verbs(program, failures)
        test_profiles(program, failures)
        os.chdir("/")
    print(f"{len(SETTLED) + len(VERBS) * (len(REFUSED) + 3) + 2} command lines, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
