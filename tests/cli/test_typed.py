#!/usr/bin/env python3
"""Models that declare float16 or bfloat16: their plans are those of the float32 model in that format, bit for bit.

    test_typed.py ASSAY

Each case is one network, written twice: with typed values and Casts, and in float32 for --precision.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

NARROW = {"fp16": T.FLOAT16, "bf16": T.BFLOAT16}


def weights(rng, *shape):
    """Numbers of both formats."""
    return (rng.integers(-60, 61, shape) / 256).astype(np.float32)


def initializer(name, x, elem):
    raw = helper_bits(x, elem)
    return h.make_tensor(name, elem, x.shape, raw, raw=True)


def helper_bits(x, elem):
    if elem == T.FLOAT16:
        return x.astype(np.float16).tobytes()
    if elem == T.BFLOAT16:
        return (x.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return x.tobytes()


def network(elem, edges):
    """Convolutions with fused additions, activations and products, pools, and a chain of additions. edges: Casts at the
    inputs and outputs, which are float32; else these have the type."""
    rng = np.random.default_rng(5)
    inner = "x_in" if edges and elem != T.FLOAT else "x"
    nodes = [h.make_node("Cast", ["x"], [inner], "down", to=elem)] if inner != "x" else []
    nodes += [
        h.make_node("Conv", [inner, "w0", "b0"], ["c0"], "c0", pads=[1, 1, 1, 1]),
        h.make_node("Relu", ["c0"], ["r0"], "r0"),
        h.make_node("Conv", ["r0", "w1"], ["c1"], "c1"),
        h.make_node("Mul", ["c1", "gain"], ["m1"], "m1"),
        h.make_node("Add", ["m1", "r0"], ["a1"], "a1"),
        h.make_node("Sigmoid", ["a1"], ["s1"], "s1"),
        h.make_node("Mul", ["a1", "s1"], ["g1"], "g1"),
        h.make_node("GlobalAveragePool", ["g1"], ["p1"], "p1"),
        h.make_node("Conv", ["p1", "w1"], ["c2"], "c2"),
        h.make_node("Mul", ["g1", "c2"], ["y_in" if inner != "x" else "y"], "m2"),
    ]
    if inner != "x":
        nodes.append(h.make_node("Cast", ["y_in"], ["y"], "up", to=T.FLOAT))
    outer = elem if not edges else T.FLOAT
    init = [initializer(n, weights(rng, *s), elem) for n, s in
            (("w0", (16, 3, 3, 3)), ("b0", (16,)), ("w1", (16, 16, 1, 1)), ("gain", (1, 16, 1, 1)))]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", outer, [1, 3, 24, 24])],
                     [h.make_tensor_value_info("y", outer, [1, 16, 24, 24])], init)
    return h.make_model(g, opset_imports=[h.make_opsetid("", 22)], ir_version=10)


def assay(*args):
    r = subprocess.run([sys.argv[1], *args], capture_output=True, text=True)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r.stdout


def run(model, inputs, *options):
    """What the built plan of a model gives."""
    built = assay("build", model, "-o", "it.plan", *options)
    assert "no kernel" not in built, f"{model}: {built}"
    assay("run", "it.plan", "-i", inputs, "-o", "out.npz")
    return np.load("out.npz")["y"].astype(np.float32)


def check(name, elem, edges):
    onnx.save(network(T.FLOAT, True), "wide.onnx")
    onnx.save(network(elem, edges), "typed.onnx")
    x = np.random.default_rng(6).standard_normal((1, 3, 24, 24)).astype(np.float16).astype(np.float32)
    x = (x.view(np.uint32) & 0xffff0000).view(np.float32)  # numbers of both formats
    np.savez("wide.npz", x=x)
    np.savez("typed.npz", x=x.astype(np.float16) if elem == T.FLOAT16 and not edges else x)
    inputs = ["typed.npz", "--dtype", "x:bf16"] if elem == T.BFLOAT16 and not edges else ["typed.npz"]
    want = run("wide.onnx", "wide.npz", "--precision", name)
    built = assay("build", "typed.onnx", "-o", "it.plan")
    assert "no kernel" not in built, f"typed in {name}: {built}"
    assay("run", "it.plan", "-i", *inputs, "-o", "out.npz")
    got = np.load("out.npz")["y"].astype(np.float32)
    assert np.array_equal(want.view(np.uint32), got.view(np.uint32)), \
        f"{name}, Casts at the edges: {edges}: {np.count_nonzero(want != got)} of {want.size} differ"
    said = assay("check", "typed.onnx", "-i", *inputs, "--target", "cpu", "--fused", "--no-fix")
    assert "defect" not in said, said


def round_trip():
    """A Cast to float16 that only a Cast back reads rounds all the same."""
    nodes = [h.make_node("Cast", ["x"], ["low"], "down", to=T.FLOAT16), h.make_node("Cast", ["low"], ["back"], "up", to=T.FLOAT),
             h.make_node("Add", ["back", "x"], ["y"], "sum")]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [64])], [h.make_tensor_value_info("y", T.FLOAT, [64])])
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "round.onnx")
    x = np.random.default_rng(7).standard_normal(64).astype(np.float32)
    np.savez("round.npz", x=x)
    got = run("round.onnx", "round.npz")
    assert np.array_equal(got, x + x.astype(np.float16).astype(np.float32)), got


def main():
    assay_path = os.path.abspath(sys.argv[1])
    sys.argv[1] = assay_path
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, elem in NARROW.items():
            for edges in (True, False):
                check(name, elem, edges)
        round_trip()
        os.chdir("/")
    print("typed models: as in that precision")


if __name__ == "__main__":
    main()
