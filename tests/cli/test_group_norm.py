#!/usr/bin/env python3
"""GroupNormalization of opset 18, which that opset deprecates and exporters wrote: scale and bias are one a group.

    test_group_norm.py ASSAY

Expected values are NumPy's; each format is checked on the evaluator, the emulator and the CPU.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

GROUPS, EPSILON = 3, 1e-3


def make(shape):
    numbers = np.random.default_rng(len(shape))
    scale, bias = (numbers.standard_normal(GROUPS).astype(np.float32) for _ in range(2))
    node = helper.make_node("GroupNormalization", ["x", "scale", "bias"], ["y"], num_groups=GROUPS, epsilon=EPSILON)
    weights = [onnx.numpy_helper.from_array(a, n) for a, n in ((scale, "scale"), (bias, "bias"))]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:], weights), opset_imports=[helper.make_opsetid("", 18)],
                                ir_version=8), "m.onnx")
    x = numbers.standard_normal(shape).astype(np.float32)
    np.savez("x.npz", x=x)
    parts = x.astype(np.float64).reshape(shape[0], GROUPS, -1)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + np.float64(np.float32(EPSILON)))
    y = (parts * scale.astype(np.float64)[:, None] + bias.astype(np.float64)[:, None]).reshape(shape)
    np.savez("y.npz", y=y)
    return y


def assay(program, *arguments):
    run = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert run.returncode == 0, (arguments, run.returncode, run.stdout)


def main(program):
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for shape in ([2, 6, 5], [1, 9, 4, 7], [2, 3, 3, 2, 5]):
            y = make(shape)
            for how, limit in ((("--mode", "truth"), 1e-13), (("--mode", "native"), 1e-6), (("--target", "cpu"), 2e-6)):
                assay(program, "run", "m.onnx", "-i", "x.npz", "-o", "out.npz", *how)
                with np.load("out.npz") as out:
                    off = np.abs(out["y"] - y).max()
                assert off <= limit, (shape, how, off)
            for precision in ("fp32", "bf16", "fp16"):
                for target in (("--target", "emu"), ("--target", "cpu"), ("--target", "cpu", "--fused")):
                    assay(program, "check", "m.onnx", "-i", "x.npz", "-g", "y.npz", "--precision", precision, *target)
            assay(program, "audit", "m.onnx", "--precision", "fp16")
        os.chdir("/")
    print("3 shapes passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
