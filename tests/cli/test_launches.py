#!/usr/bin/env python3
"""What runs launch on an H200, from builds on a GPU that compiles kernels and runs none (tests/cuda/fake/README.md).

    test_launches.py ASSAY PLATFORM

Blocks of networks, as exporters and `edit quantize` write them, take the launches that are said here: a pass or a kernel that
no longer finds its layers is told by one launch more. Each launch is told to take as long as any other, so that fewer are better.
"""
import collections
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

failures = []
BATCH = 4


class Graph:
    """Nodes and constants of a model that is being written."""

    def __init__(self):
        self.nodes, self.constants, self.draw = [], [], np.random.default_rng(7)

    def constant(self, *shape, scale=0.1):
        self.constants.append(numpy_helper.from_array((scale * self.draw.standard_normal(shape)).astype(np.float32),
                                                      f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], f"{op}_{len(self.nodes)}", **attributes))
        return self.nodes[-1].output[0]

    def save(self, y, shape, out, path):
        graph = helper.make_graph([*self.nodes, helper.make_node("Identity", [y], ["y"], "end")], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def convnext(path, n=2, c=64, size=14):
    """A convolution that halves the image, and blocks: 7x7 depthwise, norm, product, GELU, product, scale, residual."""
    g = Graph()
    x = g.node("Conv", "x", g.constant(c, 32, 2, 2), g.constant(c), strides=[2, 2])
    for _ in range(n):
        y = g.node("Conv", x, g.constant(c, 1, 7, 7), g.constant(c), pads=[3, 3, 3, 3], group=c)
        y = g.node("LayerNormalization", g.node("Transpose", y, perm=[0, 2, 3, 1]), g.constant(c), g.constant(c), axis=-1)
        y = g.node("Gelu", g.node("Add", g.node("MatMul", y, g.constant(c, 4 * c)), g.constant(4 * c)))
        y = g.node("Add", g.node("MatMul", y, g.constant(4 * c, c)), g.constant(c))
        y = g.node("Mul", g.node("Transpose", y, perm=[0, 3, 1, 2]), g.constant(c, 1, 1))
        x = g.node("Add", y, x)
    g.save(x, [BATCH, 32, 2 * size, 2 * size], [BATCH, c, size, size], path)


def squeeze_excite(path, c=64, size=14):
    """A block of MobileNetV3: product, depthwise, squeeze-excite, product, residual."""
    g = Graph()
    y = g.node("HardSwish", g.node("Conv", "x", g.constant(3 * c, c, 1, 1), g.constant(3 * c)))
    y = g.node("HardSwish", g.node("Conv", y, g.constant(3 * c, 1, 5, 5), g.constant(3 * c), pads=[2] * 4, group=3 * c))
    s = g.node("Relu", g.node("Conv", g.node("GlobalAveragePool", y), g.constant(c, 3 * c, 1, 1), g.constant(c)))
    s = g.node("HardSigmoid", g.node("Conv", s, g.constant(3 * c, c, 1, 1), g.constant(3 * c)), alpha=1 / 6)
    y = g.node("Conv", g.node("Mul", y, s), g.constant(c, 3 * c, 1, 1), g.constant(c))
    g.save(g.node("Add", y, "x"), [BATCH, c, size, size], [BATCH, c, size, size], path)


def assay(program, folder, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_CUDA", "CUDA_"))}
    said = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
                          env={**env, "ASSAY_CUDA_PATH": folder, "ASSAY_FAKE_DRY": "1", "ASSAY_FAKE_TIMES": "2000,2000,5000,5000",
                               "ASSAY_FAKE_LAUNCHES": "launches.txt"})
    if said.returncode:
        failures.append(f"assay {' '.join(arguments)}: exit code {said.returncode}\n{said.stdout}")
    return said


def count(program, folder, model, precision):
    plan = f"{model}.{precision}.plan"
    assay(program, folder, "build", model, "--precision", precision, "--target", "cuda", "-o", plan)
    assay(program, folder, "bench", plan, "--target", "cuda", "--seconds", "0.01")
    return collections.Counter(line.split()[0] for line in open("launches.txt", encoding="ascii")) if not failures else {}


def expect(what, got, most, none=()):
    if sum(got.values()) > most or any(kernel in got for kernel in none):
        failures.append(f"{what}: {sum(got.values())} launches, at most {most} were expected, none of {', '.join(none) or 'nothing'}: "
                        f"{dict(got)}")


def quantize(program, folder, model, shape):
    np.savez("x.npz", x=np.random.default_rng(3).standard_normal(shape).astype(np.float32))
    assay(program, folder, "edit", "quantize", model, "-o", f"q_{model}", "--inputs", "x.npz", "--no-proof")
    return f"q_{model}"


def main(program, platform):
    nvrtc = os.environ.get("ASSAY_TEST_NVRTC")
    if not nvrtc:
        print("there is no libnvrtc.so.13 (scripts/setup test installs it on x86-64)")
        return 77
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.mkdir("gpu")
        for library in os.listdir(nvrtc):
            os.symlink(os.path.join(nvrtc, library), os.path.join("gpu", library))
        os.symlink(os.path.join(platform, "libcuda.so.1"), "gpu/libcuda.so.1")
        folder = os.path.abspath("gpu")
        convnext("convnext.onnx")
        squeeze_excite("mobile.onnx")
        # Of a block: depthwise, norm, and two products, the last one with the scale and the residual.
        expect("ConvNeXt's blocks", count(program, folder, "convnext.onnx", "fp16"), 11, ("chain",))
        quantized = quantize(program, folder, "convnext.onnx", (BATCH, 32, 28, 28))
        expect("the same, quantized", count(program, folder, quantized, "int8"), 12, ("chain",))
        # Product, depthwise, means, two products and a product with the gate.
        expect("squeeze-excite", count(program, folder, "mobile.onnx", "fp16"), 7)
        quantized = quantize(program, folder, "mobile.onnx", (BATCH, 64, 14, 14))
        expect("the same, quantized", count(program, folder, quantized, "int8"), 8)
    print("\n".join(failures) or "ok")
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
