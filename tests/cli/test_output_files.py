#!/usr/bin/env python3
"""What is written where: nothing that was not asked for.

    test_output_files.py ASSAY MODELS

MODELS is tests/models/small.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

UNFAITHFUL, FAILED = 1, 4


class Failures(list):
    def check(self, fine, what):
        if not fine:
            self.append(what)
            print(f"FAILED: {what}")


def assay(program, *arguments, **how):
    run = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **how)
    return run.returncode, run.stdout, run.stderr


def as_files(text):
    """The words of the command that the report says writes the files, with "assay" left out."""
    found = re.search(r"^ +as files: assay (.*)$", text, re.M)
    return shlex.split(found[1]) if found else []


def lost_alpha():
    """An export that lost the alpha of its Elu, with a name that a shell has to be kept from reading."""
    tensor = helper.make_tensor_value_info
    node = helper.make_node("Elu", ["x"], ["y"], name="elu")
    graph = helper.make_graph([node], "g", [tensor("x", TensorProto.FLOAT, [1, 64])], [tensor("y", TensorProto.FLOAT, [1, 64])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "it's; lost.onnx")
    x = np.random.default_rng(3).standard_normal((1, 64)).astype(np.float32)
    np.savez("x.npz", x=x)
    np.savez("y.npz", y=np.where(x > 0, x, np.float32(0.5) * np.expm1(x)).astype(np.float32))


def test_unasked(program, models, failures):
    """check writes its fix only where it is told to, and says how."""
    lost_alpha()
    before = set(os.listdir("."))
    for line, files in ((("check", f"{models}/cnn.onnx", "--precision", "fp16"), {"cnn.fixed.onnx", "cnn.fix.txt"}),
                        (("check", f"{models}/cnn.onnx", "--precision", "fp8e4m3"), {"cnn.fix.txt"}),
                        (("check", "it's; lost.onnx", "-i", "x.npz", "-g", "y.npz"), {"it's; lost.repaired.onnx"})):
        code, out, _ = assay(program, *line)
        left = set(os.listdir(".")) - before
        failures.check(code == UNFAITHFUL and " verified: " in out, f"{line}: {code}, {out}")
        failures.check(not left, f"{line}: {left} written unasked")
        code, text, _ = assay(program, *line, "--json", "-")
        fix = json.loads(text)["fix"]
        failures.check(fix["files"] == [] and shlex.split(fix["command"])[-2:] == ["-o", "fix"], f"{line}: {fix}")
        words = as_files(out)
        failures.check(words[-2:] == ["-o", "fix"], f"{line}: no command in {out}")
        if not words:
            continue
        code, out, _ = assay(program, *words[:-1], "made")
        failures.check(code == UNFAITHFUL and "as files" not in out and all(f"made/{f}" in out for f in files), f"{words}: {out}")
        failures.check(set(os.listdir("made")) == files, f"{words}: {os.listdir('made')} instead of {files}")
        for file in os.listdir("made"):
            os.remove(f"made/{file}")
        os.rmdir("made")


def main(program, models):
    program, models = os.path.abspath(program), os.path.abspath(models)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        test_unasked(program, models, failures)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
