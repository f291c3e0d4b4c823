#!/usr/bin/env python3
"""What tf32 rounds: test_tf32.py ASSAY

Products and convolutions take their operands in 11 bits, and what is added to them, like every other operator, as it is. Held against
numpy in float64 with operands that were rounded so.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(20)
CLOSE, FAR = 2e-6, 2e-5  # of float32 sums; what rounding of an operand or a bias would change at least


def tf32(x):
    """To the nearest of 11 bits, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def conv(x, w):
    """A convolution of one spatial axis, without padding."""
    n = x.shape[2] - w.shape[2] + 1
    return sum(np.einsum("ncl,oc->nol", x[:, :, k:k + n], w[:, :, k]) for k in range(w.shape[2]))


def conv_transpose(x, w):
    y = np.zeros((x.shape[0], w.shape[1], x.shape[2] + w.shape[2] - 1))
    for k in range(w.shape[2]):
        y[:, :, k:k + x.shape[2]] += np.einsum("ncl,co->nol", x, w[:, :, k])
    return y


def normal(*shape):
    return R.normal(size=shape).astype(np.float32)


# Each: nodes; inputs; constants; what comes out, of operands as r() leaves them.
ROWS = [
    ("MatMul", [h.make_node("MatMul", ["x", "w"], ["y"])], normal(5, 40), {"w": normal(40, 7)}, lambda x, c, r: r(x) @ r(c["w"])),
    ("Gemm", [h.make_node("Gemm", ["x", "w", "b"], ["y"])], normal(5, 40), {"w": normal(40, 7), "b": 30 * normal(7)},
     lambda x, c, r: r(x) @ r(c["w"]) + c["b"]),
    ("Conv", [h.make_node("Conv", ["x", "w", "b"], ["y"])], normal(2, 6, 20), {"w": normal(4, 6, 5), "b": 30 * normal(4)},
     lambda x, c, r: conv(r(x), r(c["w"])) + c["b"].astype(np.float64)[:, None]),
    ("ConvTranspose", [h.make_node("ConvTranspose", ["x", "w", "b"], ["y"])], normal(2, 6, 20), {"w": normal(6, 4, 5), "b": 30 * normal(4)},
     lambda x, c, r: conv_transpose(r(x), r(c["w"])) + c["b"].astype(np.float64)[:, None]),
    ("Einsum", [h.make_node("Einsum", ["x", "w"], ["y"], equation="ij,kj->ik")], normal(5, 40), {"w": normal(7, 40)},
     lambda x, c, r: r(x) @ r(c["w"]).T),
    ("Mul, Add", [h.make_node("Mul", ["x", "w"], ["z"]), h.make_node("Add", ["z", "b"], ["y"])], normal(5, 40),
     {"w": normal(40), "b": normal(40)}, lambda x, c, r: x.astype(np.float64) * c["w"] + c["b"]),
]


def run(program, target, nodes, x, constants, want):
    shape = h.make_tensor_value_info("y", T.FLOAT, list(want.shape))
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, list(x.shape))], [shape], [nh.from_array(v, k) for k, v in constants.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "m.onnx")
    np.savez("in.npz", x=x)
    p = subprocess.run([program, "run", "m.onnx", "-i", "in.npz", "-o", "out.npz", "--precision", "tf32", "--target", target], capture_output=True, text=True)
    if p.returncode:
        return None, p.stdout + p.stderr
    return np.load("out.npz")["y"].astype(np.float64), ""


def main():
    program = os.path.abspath(sys.argv[1])
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for target in ("emu", "cpu"):
            for name, nodes, x, constants, result in ROWS:
                want = result(x, constants, tf32)
                exact = result(x, constants, lambda v: v.astype(np.float64))
                y, said = run(program, target, nodes, x, constants, want)
                size = np.sqrt(np.mean(want**2))
                if y is None or not np.max(np.abs(y - want)) <= CLOSE * size:
                    failures.append(f"{name} on {target}: {said or np.max(np.abs(y - want)) / size}")
                elif name != "Mul, Add" and not np.max(np.abs(y - exact)) > FAR * size:
                    failures.append(f"{name}: this row shows nothing")
        os.chdir("/")
    for f in failures:
        print("FAILED", f)
    print(f"{2 * len(ROWS)} runs, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
