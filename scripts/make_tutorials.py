#!/usr/bin/env python3
"""Writes the models of docs/tutorials: small ones that fail as their users' did, and for the same reason.

    make_tutorials.py OUT [NAME]

    OUT/NAME/*.onnx, OUT/NAME/inputs.npz, OUT/NAME/golden.npz

nan      a NAFNet whose pooling sums pass what fp16 holds (a copy of tests/models/nafnet)
elu      a classifier whose converter dropped the alpha of its ELUs
batch    an exported image model: with an open batch right, with a fixed one a Squeeze took an axis too many
differs  a photo analyser, and what three engines gave for it in bf16: A rounds, B and C have a wrong epsilon, C a little
int8     a quantized block of convolution, BatchNormalization and Mish with no quantizer between them
cases    (for docs/verbs) two operator tests in ONNX's layout, one of them with a wrong attribute

golden.npz is the network that was meant, evaluated in float64 by onnx.reference and stored in float32, as a
framework would hand it over.
"""
import os
import shutil
import sys

import ml_dtypes
import numpy as np
import onnx
from make_models import FLOAT, Builder
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


class Network(Builder):
    """A graph whose nodes and weights have the names that an exporter gives them."""

    def named(self, name, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def draw(self, name, *shape, scale=None):
        fan_in = int(np.prod(shape[1:])) or 1
        return self.named(name, self.rng.standard_normal(shape) * (scale or fan_in**-0.5))

    def node(self, name, *inputs, **attributes):
        """`name` ends in the operator, perhaps with a number: '/stem/Conv', '/Add_1'."""
        kind = name.rsplit("/", 1)[1].split("_")[0]
        output = attributes.pop("out", f"{name}_output_0")
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=name, **attributes))
        return output


def in_double(model):
    """The same graph with float64 for every float32."""
    m = onnx.ModelProto()
    m.CopyFrom(model)
    for t in m.graph.initializer:
        if t.data_type == FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))
    for v in (*m.graph.input, *m.graph.output):
        if v.type.tensor_type.elem_type == FLOAT:
            v.type.tensor_type.elem_type = TensorProto.DOUBLE
    del m.graph.value_info[:]
    return m


def evaluate(model, inputs):
    """Outputs by name, in float64."""
    run = ReferenceEvaluator(in_double(model))
    return dict(zip(run.output_names, run.run(None, {k: v.astype(np.float64) for k, v in inputs.items()})))


def evaluate_rounded(model, inputs, kind):
    """Values by name, the outputs first, of an engine that stores each in `kind` and computes in float32."""
    def store(a):
        return a.astype(kind).astype(np.float32) if a.dtype == np.float32 else a
    values = {t.name: store(numpy_helper.to_array(t)) for t in model.graph.initializer}
    values |= {name: store(a) for name, a in inputs.items()}
    opsets = {o.domain: o.version for o in model.opset_import}
    for node in model.graph.node:
        run = ReferenceEvaluator(node, opsets=opsets)
        results = run.run(None, {i: values[i] for i in run.input_names})
        values |= {o: store(np.asarray(a)) for o, a in zip(run.output_names, results)}
    made = [o.name for o in model.graph.output] + [o for node in model.graph.node for o in node.output]
    return {name: values[name] for name in dict.fromkeys(made)}


def outputs_of(model, values):
    return {o.name: values[o.name] for o in model.graph.output}


def floats(arrays):
    return {name: a.astype(np.float32) for name, a in arrays.items()}


def save(folder, models, inputs, golden, more=()):
    for name, model in models.items():
        onnx.save(model, os.path.join(folder, f"{name}.onnx"))
    for name, arrays in {"inputs": inputs, "golden": golden, **dict(more)}.items():
        np.savez(os.path.join(folder, f"{name}.npz"), **arrays)


def nan(folder):
    trained = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/models/nafnet")
    for name in ("model.onnx", "inputs.npz", "golden.npz"):
        shutil.copy(os.path.join(trained, name), folder)


def elu(folder):
    alphas = (1.0, 0.5, 1.7, 0.25)

    def network(alpha_of):
        b = Network(11)
        x = "image"
        for i, (channels, of, stride) in enumerate(((12, 1, 1), (12, 12, 2), (16, 12, 1), (16, 16, 2))):
            x = b.node(f"/conv{i + 1}/Conv", x, b.draw(f"conv{i + 1}.weight", channels, of, 3, 3, scale=(2 / of / 9)**0.5),
                       b.draw(f"conv{i + 1}.bias", channels, scale=0.1), pads=[1, 1, 1, 1], strides=[stride, stride])
            x = b.node(f"/elu{i + 1}/Elu", x, **alpha_of(alphas[i]))
        x = b.node("/Flatten", b.node("/GlobalAveragePool", x))
        b.node("/dense/Gemm", x, b.draw("dense.weight", 10, 16, scale=1), b.draw("dense.bias", 10), transB=1, out="logits")
        return b.model([("image", FLOAT, ["N", 1, 12, 12])], [("logits", FLOAT, ["N", 10])]), b.rng
    meant, rng = network(lambda alpha: {"alpha": alpha})
    inputs = floats({"image": rng.random((16, 1, 12, 12))})
    save(folder, {"model": network(lambda alpha: {})[0]}, inputs, floats(evaluate(meant, inputs)))


def batch(folder):
    size = 24

    def network(fixed):
        b = Network(12)
        n = 1 if fixed else "N"
        seen = b.node("/Concat", b.node("/Mul", "image", "mask"), "mask", axis=1)
        f = b.node("/Relu", b.node("/feat/Conv", seen, b.draw("feat.weight", 8, 4, 3, 3), b.draw("feat.bias", 8), pads=[1, 1, 1, 1]))
        field = b.node("/field/Conv", f, b.draw("field.weight", 1, 8, 3, 3), b.draw("field.bias", 1), pads=[1, 1, 1, 1])
        rows = b.node("/ReduceMean", field, axes=[3], keepdims=1)  # [N, 1, H, 1]
        columns = b.node("/ReduceMean_1", field, axes=[2], keepdims=1)  # [N, 1, 1, W]
        if fixed:  # rows.squeeze(): [1, 1, H, 1] becomes [H], which lies along W where it is added
            rows = b.node("/Squeeze", rows)
        light = b.node("/Add", "image", b.node("/Mul_1", b.draw("position", 1, 1, size, size, scale=0.1), "image"))
        light = b.node("/Add_1", b.node("/Add_2", light, rows), columns)
        b.node("/Add_3", light, b.node("/out/Conv", f, b.draw("out.weight", 3, 8, 3, 3), b.draw("out.bias", 3), pads=[1, 1, 1, 1]),
               out="restored")
        return b.model([("image", FLOAT, [n, 3, size, size]), ("mask", FLOAT, [n, 1, size, size])],
                       [("restored", FLOAT, [n, 3, size, size])]), b.rng
    meant, rng = network(False)
    down = np.linspace(1, 0.4, size)[:, None]  # darker towards the bottom
    inputs = floats({"image": rng.random((4, 3, size, size)) * down,
                     "mask": rng.random((4, 1, size, size)) > 0.5})
    save(folder, {"dynamic": meant, "static": network(True)[0]}, inputs, floats(evaluate(meant, inputs)))


def differs(folder):
    size = 32

    def laplacian():
        """Laplacian of a Gaussian in steps of 2^-14: sums to 0 in fp32, not where fewer bits are kept."""
        y, x = np.mgrid[-3:4, -3:4]
        r = (x * x + y * y) / (2 * 1.3**2)
        w = (1 - r) * np.exp(-r)
        w = np.rint((w - w.mean()) * 16384)
        w[3, 3] -= w.sum()
        return np.tile(w[None, None] / 16384, (3, 1, 1, 1))

    def network(epsilon):
        b = Network(13)
        d = b.node("/log/Conv", "image", b.named("log.weight", laplacian()), pads=[3, 3, 3, 3], group=3)
        b.node("/Add", b.node("/Mul", d, b.named("scale", [4])), b.named("bias", [1e-7]), out="detail")
        f = b.node("/stem/Conv", b.node("/Div", "image", b.named("grey", [255 * 4])), b.draw("stem.weight", 12, 3, 3, 3, scale=0.02),
                   b.draw("stem.bias", 12, scale=0.01), pads=[1, 1, 1, 1], strides=[2, 2])
        f = b.node("/norm/InstanceNormalization", f, b.named("norm.weight", np.ones(12)), b.draw("norm.bias", 12), epsilon=epsilon)
        f = b.node("/Relu", f)
        f = b.node("/Relu_1", b.node("/conv/Conv", f, b.draw("conv.weight", 16, 12, 3, 3), b.draw("conv.bias", 16), strides=[2, 2]))
        f = b.node("/Flatten", b.node("/GlobalAveragePool", f))
        b.node("/head/Gemm", f, b.draw("head.weight", 4, 16, scale=1), b.draw("head.bias", 4), transB=1, out="logits")
        return b.model([("image", FLOAT, ["N", 3, size, size])],
                       [("detail", FLOAT, ["N", 3, size, size]), ("logits", FLOAT, ["N", 4])]), b.rng
    model, rng = network(1e-5)
    image = np.rint(np.kron(rng.random((4, 3, 4, 4)), np.ones((8, 8))) * 160 + 60)  # flat areas in whole grey levels
    image[2:] += np.rint(rng.standard_normal((2, 3, size, size)) * 4)  # and two noisy ones
    inputs = floats({"image": np.clip(image, 0, 255)})
    kind = ml_dtypes.bfloat16
    a, b, c = (evaluate_rounded(network(epsilon)[0], inputs, kind) for epsilon in (1e-5, 2e-3, 2e-5))
    exact = evaluate_rounded(network(2e-5)[0], inputs, np.float32)
    more = {"engine_a": outputs_of(model, a), "engine_b": outputs_of(model, b), "engine_b_all": b,
            "engine_c": outputs_of(model, c), "engine_c_fp32": outputs_of(model, exact), "engine_c_fp32_all": exact}
    save(folder, {"model": model}, inputs, floats(evaluate(model, inputs)), more)


def int8(folder):
    def network(ranges=None, between=False):
        """With ranges ({value: largest magnitude}) quantizers stand before each convolution; `between`: before Mish, too."""
        b = Network(14)

        def through(x, name, scale, axis=None):
            """Q and DQ of a value."""
            zero = b.const(np.zeros(np.shape(scale), np.int8))
            scale = b.named(f"{name}_scale", scale)
            on = {} if axis is None else {"axis": axis}
            return b.node(f"{name}/DequantizeLinear", b.node(f"{name}/QuantizeLinear", x, scale, zero, **on), scale, zero, **on)

        def conv(x, name, channels, of, kernel, stride=1, group=1):
            weight = b.draw(f"{name}.weight", channels, of // group, kernel, kernel, scale=(2.0 / kernel / kernel / of * group)**0.5)
            if ranges is not None:
                largest = np.abs(numpy_helper.to_array(b.weights[-1])).max(axis=(1, 2, 3))
                x = through(x, f"/{name}/input", ranges[x] / 127)
                weight = through(weight, f"/{name}/weight", largest / 127, axis=0)
            return b.node(f"/{name}/Conv", x, weight, pads=[kernel // 2] * 4, strides=[stride, stride], group=group)

        def norm(x, name, channels):
            return b.node(f"/{name}/BatchNormalization", x, b.named(f"{name}.weight", 1 + 0.2 * b.rng.standard_normal(channels)),
                          b.draw(f"{name}.bias", channels, scale=0.2), b.draw(f"{name}.running_mean", channels, scale=0.1),
                          b.named(f"{name}.running_var", b.rng.uniform(0.5, 1.5, channels)))

        def mish(x, name):
            if between:
                x = through(x, f"/{name}/input", ranges[x] / 127)
            return b.node(f"/{name}/Mul", x, b.node(f"/{name}/Tanh", b.node(f"/{name}/Softplus", x)))

        x = mish(norm(conv("image", "stem.0", 16, 1, 3, stride=2), "stem.1", 16), "stem.2")
        first = x
        x = mish(norm(conv(x, "SandGlass1.0", 16, 16, 3, group=16), "SandGlass1.1", 16), "SandGlass1.2")
        x = norm(conv(x, "SandGlass1.3", 8, 16, 1), "SandGlass1.4", 8)
        x = mish(norm(conv(x, "SandGlass1.5", 16, 8, 1), "SandGlass1.6", 16), "SandGlass1.7")
        x = norm(conv(x, "SandGlass1.8", 16, 16, 3, group=16), "SandGlass1.9", 16)
        x = b.node("/SandGlass1/Add", first, x)
        x = b.node("/Flatten", b.node("/GlobalAveragePool", x))
        b.node("/fc/Gemm", x, b.draw("fc.weight", 10, 16, scale=1), b.draw("fc.bias", 10), transB=1, out="logits")
        return b.model([("image", FLOAT, ["N", 1, 16, 16])], [("logits", FLOAT, ["N", 10])]), b

    plain, b = network()
    inputs = floats({"image": b.rng.random((16, 1, 16, 16))})
    entering = dict.fromkeys(n.input[0] for n in plain.graph.node if n.op_type in ("Conv", "Softplus"))
    inner = in_double(plain)
    inner.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in entering if name != "image")
    values = evaluate(inner, inputs) | inputs
    ranges = {name: np.percentile(np.abs(values[name]), 99.99) for name in entering}
    save(folder, {"model": network(ranges)[0], "between": network(ranges, True)[0], "fp32": plain}, inputs, floats(evaluate(plain, inputs)))


def cases(folder):
    for name, alpha in (("test_elu", 2.0), ("test_elu_wrong", 1.0)):
        data = os.path.join(folder, name, "test_data_set_0")
        os.makedirs(data, exist_ok=True)
        b = Builder(15)
        b.op("Elu", "x", out="y", alpha=alpha)
        onnx.save(b.model([("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])]), os.path.join(folder, name, "model.onnx"))
        x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
        y = np.where(x > 0, x, 2 * np.expm1(x))
        for file, value in (("input_0.pb", x), ("output_0.pb", y)):
            with open(os.path.join(data, file), "wb") as f:
                f.write(numpy_helper.from_array(value).SerializeToString())


def main(out, *names):
    for make in (nan, elu, batch, differs, int8, cases):
        if not names or make.__name__ in names:
            folder = os.path.join(out, make.__name__)
            os.makedirs(folder, exist_ok=True)
            make(folder)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
