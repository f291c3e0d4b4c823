#!/usr/bin/env python3
"""Sizes of a plan's made-up inputs: test_bench_sizes.py ASSAY

`assay bench PLAN` runs in any sizes that a profile of the plan has; what is left open is the profile's best. The model takes rows in
pairs, so that an odd number of them shows which sizes were run.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

USAGE, FAILED = 2, 4


def write(path, batch):
    nodes = [h.make_node("Reshape", ["x", "pairs"], ["p"], name="pair"), h.make_node("ReduceSum", ["p"], ["a"], keepdims=0),
             h.make_node("ReduceSum", ["z"], ["b"], keepdims=0), h.make_node("Add", ["a", "b"], ["y"])]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [batch, "S", 5]), h.make_tensor_value_info("z", T.FLOAT, [batch, "Q"])],
                         [h.make_tensor_value_info("y", T.FLOAT, [])], [nh.from_array(np.array([2, -1]), "pairs")])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


def main(assay):
    failures = []

    def run(*arguments):
        return subprocess.run([assay, *arguments], capture_output=True, text=True, timeout=120, check=False)

    write("open.onnx", "N")
    write("fixed.onnx", 2)
    np.savez("x.npz", x=np.ones((2, 3, 5), np.float32), z=np.ones((2, 3), np.float32))
    for arguments in (("build", "open.onnx", "-o", "one.plan", "--profile", "x=2x1x5:4x3x5:8x7x5", "--profile", "z=2x2:4x3:8x9"),
                      ("build", "open.onnx", "-o", "two.plan", "--profile", "x=2x1x5:2x3x5:4x7x5", "--profile", "z=2x2:2x3:4x9",
                       "--profile", "x=6x1x5:8x5x5:8x7x5", "--profile", "z=6x2:8x3:8x9"),
                      ("build", "fixed.onnx", "-o", "fixed.plan", "--dim", "S=3", "--dim", "Q=3")):
        done = run(*arguments)
        if done.returncode:
            failures.append(f"{arguments}: {done.stderr}")
    # 3 rows of S = 3 (one's best) by 5 are no pairs; of S = 2 they are.
    for plan, options, code, said in (("one.plan", "", 0, "latency"), ("one.plan", "--batch 6", 0, "latency"), ("one.plan", "--dim N=6", 0, "latency"),
                                      ("one.plan", "--batch 3", FAILED, "45 elements"), ("one.plan", "--dim N=5", FAILED, "75 elements"),
                                      ("one.plan", "--batch 3 --dim S=2", 0, "latency"), ("one.plan", "--dim S=2 --dim Q=7 --dim N=3", 0, "latency"),
                                      ("one.plan", "--shape x=?x2x5", 0, "latency"), ("one.plan", "--shape x=3x2x5", 0, "latency"),
                                      ("one.plan", "--shape z=3x5", FAILED, "45 elements"),
                                      ("one.plan", "--batch 9", FAILED, "input 'x' is [9, 3, 5]; the plan was built for [2, 1, 5] to [8, 7, 5]"),
                                      ("two.plan", "--batch 3", FAILED, "45 elements"), ("two.plan", "--batch 7", FAILED, "175 elements"),
                                      ("two.plan", "--batch 5", FAILED, "input 'x' is [5, 3, 5]"), ("two.plan", "--batch 8 --dim Q=9", 0, "latency"),
                                      ("one.plan", "--dim M=3", USAGE, "no input has an open dimension 'M'"),
                                      ("one.plan", "--shape q=3", USAGE, "the model has no input 'q'"), ("one.plan", "--batch 0", USAGE, "at least 1"),
                                      ("one.plan", "-i x.npz --batch 2", USAGE, "inputs from files have their own sizes"), ("one.plan", "-i x.npz", 0, "latency"),
                                      ("fixed.plan", "--batch 2", USAGE, "--batch was settled when it was built")):
        done = run("bench", plan, *options.split(), "--seconds", "0.01", "--warm-up", "0")
        if done.returncode != code or said not in done.stdout + done.stderr:
            failures.append(f"{plan} {options}: exit code {done.returncode}, expected {code} and '{said}'\n{done.stdout}{done.stderr}")
    print("\n".join(failures) or "plans are measured in the sizes that are asked for")
    return 1 if failures else 0


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.exit(main(program))
