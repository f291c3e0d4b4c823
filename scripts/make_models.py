#!/usr/bin/env python3
"""Writes the small models that the tests use, with inputs: make_models.py OUT.

    OUT/NAME/model.onnx, OUT/NAME/inputs.npz

classifier    convolutions, BatchNormalization, Gemm, Softmax; batch open
transformer   embedding, attention, LayerNormalization, Gelu; batch and length open, by Shape and Reshape
loop          Loop with If inside, values captured from outside, a model-local function
external      weights in a file of their own
quantized     QuantizeLinear and DequantizeLinear around a convolution and a MatMul
detector      Resize, TopK, NonMaxSuppression: discrete outputs

    OUT/operators/NAME.onnx, OUT/operators/NAME.npz

custom        operators of domain com.example, as in examples/custom_operators; batch open
unknown       operators that nobody knows

    OUT/fp32/NAME.onnx, OUT/fp32/NAME.npz

filters       convolutions of many channels, as a setting of fp32 lets Winograd's filtering serve them

    OUT/int8/NAME.onnx, OUT/int8/NAME.npz

blocks        a quantized network of layers of every kind, wide enough for kernels' tiles to end in the middle

    OUT/states/NAME.onnx

gpt2          a decoder with a cache, as examples/decode has it; gpt2_whole: the same without one; gpt2_operator: with ONNX's Attention
series        layers of many kinds over a sequence that grows
recurrent     a state that keeps its shape, and one that is a number

    OUT/serving/NAME.onnx

strings       strings in and out; batch open
scalars       inputs and outputs without dimensions, and one whose size depends on the data
rows          a number a row of the batch
optional      an input that may be left out
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "decode"))
import make_model as decoder  # noqa: E402


class Builder:
    """Nodes and weights of one graph."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def const(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape, scale=None):
        fan_in = int(np.prod(shape[1:])) or 1
        return self.const((self.rng.standard_normal(shape) * (scale or fan_in**-0.5)).astype(np.float32))

    def op(self, kind, *inputs, out=None, n_out=1, **attributes):
        number = len(self.nodes)
        outs = [out or f"{kind.lower()}{number}"] if n_out == 1 else [f"{kind.lower()}{number}_{i}" for i in range(n_out)]
        self.nodes.append(helper.make_node(kind, list(inputs), outs, name=f"/{kind}_{number}", **attributes))
        return outs[0] if n_out == 1 else outs

    def model(self, inputs, outputs, opset=17, functions=(), domains=()):
        graph = helper.make_graph(self.nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs], self.weights)
        opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
        model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        return model


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def classifier():
    b = Builder(1)
    x = "image"
    for channels, of in ((8, 3), (16, 8)):
        x = b.op("Conv", x, b.weight(channels, of, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
        x = b.op("BatchNormalization", x, b.const(1 + 0.1 * b.rng.standard_normal(channels).astype(np.float32)),
                 b.weight(channels, scale=0.1), b.weight(channels, scale=0.1),
                 b.const(np.linspace(0.5, 2, channels, dtype=np.float32)))
        x = b.op("Relu", x)
    x = b.op("Flatten", b.op("GlobalAveragePool", x))
    b.op("Softmax", b.op("Gemm", x, b.weight(10, 16), b.weight(10, scale=0.1), transB=1), out="probabilities", axis=-1)
    model = b.model([("image", FLOAT, ["N", 3, 16, 16])], [("probabilities", FLOAT, ["N", 10])])
    return model, {"image": b.rng.standard_normal((2, 3, 16, 16)).astype(np.float32)}


def transformer():
    b = Builder(2)
    width, heads = 16, 2
    x = b.op("Gather", b.weight(50, width, scale=1.0), "tokens")
    # [N, L, width] -> [N, heads, L, width / heads], through the shape as exporters write it.
    n, length = (b.op("Unsqueeze", b.op("Gather", b.op("Shape", "tokens"), b.const(np.int64(i))), b.const(np.array([0])))
                 for i in (0, 1))
    split = b.op("Concat", n, length, b.const(np.array([heads, width // heads])), axis=0)
    joined = b.op("Concat", n, length, b.const(np.array([width])), axis=0)
    q, k, v = (b.op("Reshape", b.op("MatMul", x, b.weight(width, width)), split) for _ in range(3))
    q, v = (b.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
    scores = b.op("Mul", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 2, 3, 1])), b.const(np.float32(8**-0.5)))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    y = b.op("MatMul", b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), joined), b.weight(width, width))
    x = b.op("LayerNormalization", b.op("Add", x, y), b.const(np.ones(width, np.float32)), b.weight(width, scale=0.1), axis=-1)
    y = b.op("MatMul", x, b.weight(width, 4 * width))
    y = b.op("Mul", b.op("Mul", y, b.const(np.float32(0.5))),
             b.op("Add", b.op("Erf", b.op("Div", y, b.const(np.float32(2**0.5)))), b.const(np.float32(1))))
    b.op("Add", x, b.op("MatMul", y, b.weight(4 * width, width)), out="features")
    model = b.model([("tokens", INT64, ["N", "L"])], [("features", FLOAT, ["N", "L", width])])
    return model, {"tokens": b.rng.integers(0, 50, (2, 7))}


def loop():
    """v is halved and moved while its sum is large, else grows; "steps" times, through a function."""
    b = Builder(3)
    step = helper.make_function("local", "Step", ["v", "w"], ["r"], [
        helper.make_node("MatMul", ["v", "w"], ["m"]), helper.make_node("Tanh", ["m"], ["t"]),
        helper.make_node("Add", ["v", "t"], ["r"])], [helper.make_opsetid("", 17)])
    weight = b.weight(4, 4)
    shrink = helper.make_graph([helper.make_node("Mul", ["stepped", "half"], ["small"])], "shrink", [],
                               [value("small", FLOAT, ["N", 4])])
    keep = helper.make_graph([helper.make_node("Identity", ["stepped"], ["same"])], "keep", [],
                             [value("same", FLOAT, ["N", 4])])
    body = helper.make_graph([
        helper.make_node("Step", ["v_in", weight], ["stepped"], domain="local"),
        helper.make_node("ReduceSum", ["stepped"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "limit"], ["large"]),
        helper.make_node("If", ["large"], ["v_out"], name="choose", then_branch=shrink, else_branch=keep),
        helper.make_node("Identity", ["go"], ["go_out"]), helper.make_node("Identity", ["total"], ["seen"]),
    ], "body", [value("i", INT64, []), value("go", BOOL, []), value("v_in", FLOAT, ["N", 4])],
        [value("go_out", BOOL, []), value("v_out", FLOAT, ["N", 4]), value("seen", FLOAT, [])])
    b.nodes.append(helper.make_node("Constant", [], ["half"], value_float=0.5))
    b.nodes.append(helper.make_node("Constant", [], ["limit"], value_float=1.0))
    b.nodes.append(helper.make_node("Loop", ["steps", "", "start"], ["end", "totals"], name="repeat", body=body))
    model = b.model([("steps", INT64, []), ("start", FLOAT, ["N", 4])],
                    [("end", FLOAT, ["N", 4]), ("totals", FLOAT, ["steps"])], functions=[step], domains=["local"])
    return model, {"steps": np.int64(5), "start": b.rng.standard_normal((3, 4)).astype(np.float32)}


def external():
    b = Builder(4)
    x = b.op("Relu", b.op("Gemm", "x", b.weight(32, 8), b.weight(32), transB=1))
    b.op("Gemm", x, b.weight(5, 32), b.weight(5), transB=1, out="y")
    model = b.model([("x", FLOAT, ["N", 8])], [("y", FLOAT, ["N", 5])])
    return model, {"x": b.rng.standard_normal((4, 8)).astype(np.float32)}


def quantized():
    b = Builder(5)

    def through(x, scale, zero, **attributes):
        parameters = b.const(np.asarray(scale, np.float32)), b.const(np.asarray(zero, np.int8))
        return b.op("DequantizeLinear", b.op("QuantizeLinear", x, *parameters, **attributes), *parameters, **attributes)

    def weights(*shape):
        w = b.rng.standard_normal(shape).astype(np.float32)
        scale = np.abs(w).reshape(shape[0], -1).max(1) / 127
        q = np.rint(w / scale.reshape(-1, *[1] * (len(shape) - 1))).astype(np.int8)
        return b.op("DequantizeLinear", b.const(q), b.const(scale), b.const(np.zeros(shape[0], np.int8)), axis=0)

    x = b.op("Relu", b.op("Conv", through("x", 0.03, 3), weights(6, 2, 3, 3), pads=[1, 1, 1, 1]))
    x = b.op("Flatten", b.op("GlobalAveragePool", through(x, 0.05, -128)))
    x = b.op("MatMul", through(x, 0.02, -100), b.op("Transpose", weights(4, 6), perm=[1, 0]))
    b.op("Identity", through(x, 0.05, 0), out="y")
    model = b.model([("x", FLOAT, [1, 2, 6, 6])], [("y", FLOAT, [1, 4])])
    return model, {"x": b.rng.standard_normal((1, 2, 6, 6)).astype(np.float32)}


def blocks():
    """Quantizers around each node: convolutions of few and many channels, grouped and dilated, residual sums, gates,
    parameters by channel, functions by table, products with constants and of two tensors."""
    b = Builder(11)

    def through(x, scale, zero=128, kind=np.uint8, **attributes):
        parameters = b.const(np.asarray(scale, np.float32)), b.const(np.asarray(zero, kind))
        return b.op("DequantizeLinear", b.op("QuantizeLinear", x, *parameters), *parameters, **attributes)

    def constant(values, axis):
        others = tuple(i for i in range(values.ndim) if i != axis)
        scale = (np.abs(values).max(others) / 127).astype(np.float32)
        along = [-1 if i == axis else 1 for i in range(values.ndim)]
        q = np.rint(values / scale.reshape(along)).astype(np.int8)
        return b.op("DequantizeLinear", b.const(q), b.const(scale), b.const(np.zeros(scale.size, np.int8)), axis=axis)

    def conv(x, out, of, kernel, **attributes):
        w = b.rng.standard_normal((out, of, kernel, kernel)) * (of * kernel * kernel) ** -0.5
        return b.op("Conv", x, constant(w, 0), b.const(b.rng.standard_normal(out).astype(np.float32) * 0.2), **attributes)

    def by_channel(n):
        return through(b.const(b.rng.uniform(0.5, 1.5, (1, n, 1, 1)).astype(np.float32)), 0.012, 0)

    x = through(conv(through("x", 0.03), 64, 3, 7, strides=[2, 2], pads=[3, 3, 3, 3]), 0.025)
    x = through(b.op("HardSwish", x), 0.016, 30)
    y = through(b.op("Relu", conv(x, 70, 64, 3, pads=[1, 1, 1, 1])), 0.014, 0)
    y = through(conv(y, 64, 70, 1), 0.02)
    x = through(b.op("Add", x, y), 0.03)
    y = through(b.op("Mul", x, by_channel(64)), 0.03)
    y = through(b.op("Add", y, by_channel(64)), 0.035, 100)
    y = through(conv(y, 256, 64, 1), 0.03, -3, np.int8)
    y = through(conv(y, 256, 1, 3, group=256, pads=[1, 1, 1, 1]), 0.02)
    first, second = b.op("Split", y, axis=1, n_out=2)
    y = through(b.op("Mul", through(first, 0.02), through(second, 0.02)), 0.012)
    y = through(conv(y, 64, 128, 3, dilations=[3, 3], pads=[3, 3, 3, 3], strides=[2, 2]), 0.02)
    rows = b.op("Reshape", y, b.const(np.array([1, 64, 49])))
    columns = b.op("Transpose", rows, perm=[0, 2, 1])
    scores = through(b.op("MatMul", through(rows, 0.02), through(columns, 0.02)), 0.3)
    y = b.op("Flatten", through(b.op("GlobalAveragePool", y), 0.005))
    y = through(b.op("Gemm", y, constant(b.rng.standard_normal((130, 64)), 0), transB=1), 0.05)
    b.op("Identity", y, out="y")
    b.op("Identity", scores, out="scores")
    model = b.model([("x", FLOAT, [1, 3, 28, 28])], [("y", FLOAT, [1, 130]), ("scores", FLOAT, [1, 64, 64])])
    return model, {"x": b.rng.standard_normal((1, 3, 28, 28)).astype(np.float32)}


def detector():
    b = Builder(6)
    x = b.op("Resize", "image", "", b.const(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    x = b.op("Conv", x, b.weight(6, 1, 3, 3, scale=0.5), strides=[2, 2], pads=[1, 1, 1, 1])
    x = b.op("Reshape", b.op("Transpose", x, perm=[0, 2, 3, 1]), b.const(np.array([1, -1, 6])))
    corner, size, score = b.op("Split", x, b.const(np.array([2, 2, 2])), axis=2, n_out=3)
    boxes = b.op("Concat", corner, b.op("Add", corner, b.op("Exp", size)), axis=2)
    scores = b.op("Transpose", b.op("Sigmoid", score), perm=[0, 2, 1])
    b.op("NonMaxSuppression", boxes, scores, b.const(np.array([4])), b.const(np.array([0.4], np.float32)),
         b.const(np.array([0.3], np.float32)), out="selected")
    b.nodes.append(helper.make_node("TopK", [scores, b.const(np.array([3]))], ["best", "where"], name="/TopK", axis=-1))
    model = b.model([("image", FLOAT, [1, 1, 6, 6])],
                    [("selected", INT64, ["S", 3]), ("best", FLOAT, [1, 2, 3]), ("where", INT64, [1, 2, 3])])
    return model, {"image": b.rng.standard_normal((1, 1, 6, 6)).astype(np.float32)}


def custom():
    """What examples/custom_operators has: a pointwise operator, and one with two outputs and open sizes."""
    b = Builder(9)
    h = b.op("Add", b.op("MatMul", "x", b.weight(64, 64, scale=0.3)), b.weight(64, scale=0.5))
    h = b.op("SoftClip", h, domain="com.example", limit=2.0)
    b.nodes.append(helper.make_node("WindowStats", [h], ["stats", "peak"], name="/WindowStats", domain="com.example",
                                    size=8, stride=4))
    b.op("Mul", "stats", b.const(np.float32(3)), out="mean")
    model = b.model([("x", FLOAT, ["N", 64])], [("mean", FLOAT, ["N", "W"]), ("peak", INT64, ["N", "W"])],
                    domains=("com.example",))
    return model, {"x": (b.rng.standard_normal((3, 64)) * 2).astype(np.float32)}


def unknown():
    """Operators that nobody knows, with attributes of every kind; one has a body that reads a value around it."""
    b = Builder(10)
    a = b.op("Relu", b.op("Mul", "x", b.weight(8)))
    body = helper.make_graph([helper.make_node("Add", ["item", a], ["sum"]), helper.make_node("Inner", ["sum"], ["result"],
                                                                                              domain="com.vendor")],
                             "body", [value("item", FLOAT, ["N", 8])], [value("result", FLOAT, ["N", 8])])
    b.nodes.append(helper.make_node(
        "Plugin", [a, "", b.weight(8, 4)], ["left", "", "right"], name="plugin", domain="com.vendor", doc_string="a plugin",
        level=3, ratio=0.1, mode="fast\0er", sizes=[1, -2], rates=[0.5, 1e-30], names=["p", ""], body=body,
        table=numpy_helper.from_array(np.arange(6, dtype=np.float16).reshape(2, 3), "t"),
        kind=helper.make_tensor_type_proto(FLOAT, ["N", 8])))
    b.nodes.append(helper.make_node("Sigmoid", ["left"], ["half"], name="sigmoid"))
    b.nodes.append(helper.make_node("Vote_TRT", ["half", "right"], ["vote"], name="vote"))
    b.nodes.append(helper.make_node("Neg", ["vote"], ["y"], name="neg"))
    graph = helper.make_graph(b.nodes, "g", [value("x", FLOAT, ["N", 8])], [value("y", FLOAT, ["N", 8])], b.weights,
                              value_info=[value("left", FLOAT, ["N", 8])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.vendor", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    helper.set_model_props(model, {"made by": "a vendor"})
    return model, {"x": b.rng.standard_normal((2, 8)).astype(np.float32)}


def filters():
    b = Builder(17)
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = b.op("Relu", b.op("Conv", "x", b.weight(64, 3, 3, 3), b.weight(64), **conv))
    for _ in range(2):
        y = b.op("Relu", b.op("Conv", x, b.weight(64, 64, 3, 3), b.weight(64), **conv))
        x = b.op("Relu", b.op("Add", b.op("Conv", y, b.weight(64, 64, 3, 3), **conv), x))
    x = b.op("Conv", x, b.weight(128, 64, 3, 3), strides=[2, 2], **conv)
    x = b.op("Sigmoid", b.op("Conv", x, b.weight(128, 128, 3, 3), b.weight(128), **conv))
    b.op("Conv", x, b.weight(8, 128, 1, 1), out="y")
    model = b.model([("x", FLOAT, ["N", 3, 48, 48])], [("y", FLOAT, ["N", 8, 24, 24])])
    return model, {"x": np.abs(b.rng.standard_normal((2, 3, 48, 48))).astype(np.float32)}


def series():
    """What is read so far is kept; layers see all of it, and its length in values, shapes and slices."""
    b = Builder(23)
    rows = b.op("Concat", "past", "x", out="present", axis=0)
    length = b.op("Gather", b.op("Shape", rows), b.const(np.int64(0)), axis=0)
    norm = b.op("LayerNormalization", rows, b.weight(6), b.weight(6))
    hidden = b.op("Relu", b.op("Add", b.op("MatMul", norm, b.weight(6, 40)), b.weight(40)))
    scores = b.op("MatMul", b.op("Transpose", hidden, perm=[1, 0]), hidden)  # the growing size is summed over
    b.op("Mul", scores, b.op("Div", b.const(np.float32(1)), b.op("Cast", length, to=FLOAT)), out="moments")
    turned = b.op("Softmax", b.op("Transpose", hidden, perm=[1, 0]), axis=1)
    b.op("MatMul", turned, rows, out="means")
    places = b.op("Range", b.const(np.int64(0)), length, b.const(np.int64(1)))
    even = b.op("Equal", b.op("Mod", places, b.const(np.int64(2))), b.const(np.int64(0)))
    chosen = b.op("Where", b.op("Unsqueeze", even, b.const(np.array([1], np.int64))), rows, b.const(np.float32(-1)))
    last = b.op("Slice", chosen, b.const(np.array([-3], np.int64)), b.const(np.array([1 << 40], np.int64)))
    b.op("ReduceSum", last, b.const(np.array([0], np.int64)), out="last", keepdims=0)
    b.op("CumSum", chosen, b.const(np.int64(0)), out="sums")
    spread = b.op("Expand", b.op("Unsqueeze", chosen, b.const(np.array([0], np.int64))),
                  b.op("Concat", b.const(np.array([2], np.int64)), b.op("Shape", rows), axis=0))
    b.op("Sigmoid", b.op("Reshape", spread, b.const(np.array([2, -1, 3], np.int64))), out="spread")
    return b.model([("past", FLOAT, ["P", 6]), ("x", FLOAT, ["S", 6])],
                   [("present", FLOAT, ["P + S", 6]), ("moments", FLOAT, [40, 40]), ("means", FLOAT, [40, 6]),
                    ("last", FLOAT, [6]), ("sums", FLOAT, ["P + S", 6]), ("spread", FLOAT, [2, "R", 3])])


def recurrent():
    b = Builder(29)
    b.op("Tanh", b.op("Add", b.op("MatMul", "x", b.weight(4, 8)), b.op("MatMul", "h", b.weight(8, 8))), out="next")
    b.op("Add", "count", b.const(np.int64(1)), out="counted")
    b.op("MatMul", "next", b.weight(8, 2), out="y")
    return b.model([("x", FLOAT, ["N", 4]), ("h", FLOAT, ["N", 8]), ("count", TensorProto.INT64, [])],
                   [("y", FLOAT, ["N", 2]), ("next", FLOAT, ["N", 8]), ("counted", TensorProto.INT64, [])])


def states(folder):
    os.makedirs(folder, exist_ok=True)
    size = decoder.parse(["", "--layers", "7", "--hidden", "48", "--heads", "3", "--vocabulary", "50", "--positions", "64"])
    models = {"gpt2": decoder.make(size, True), "gpt2_whole": decoder.make(size, False), "series": series(),
              "recurrent": recurrent()}
    size.operator = True
    models["gpt2_operator"] = decoder.make(size, True)
    for name, model in models.items():
        onnx.save(model, os.path.join(folder, f"{name}.onnx"))


def plain(nodes, inputs, outputs):
    """A model without weights."""
    graph = helper.make_graph([helper.make_node(kind, of, to, **attributes) for kind, of, to, attributes in nodes], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


def strings():
    return plain([("StringConcat", ["a", "b"], ["joined"], {})], [value(n, TensorProto.STRING, ["N", 2]) for n in "ab"],
                 [value("joined", TensorProto.STRING, ["N", 2])])


def scalars():
    return plain([("Add", ["x", "s"], ["moved"], {}), ("ReduceSum", ["moved"], ["total"], {"keepdims": 0}), ("NonZero", ["x"], ["places"], {})],
                 [value("x", FLOAT, ["L"]), value("s", FLOAT, [])],
                 [value("moved", FLOAT, ["L"]), value("total", FLOAT, []), value("places", INT64, [1, None])])


def rows():
    return plain([("Neg", ["x"], ["y"], {})], [value("x", FLOAT, ["N"])], [value("y", FLOAT, ["N"])])


def optional():
    given = helper.make_graph([helper.make_node("OptionalGetElement", ["x"], ["given"])], "given", [], [value("given", FLOAT, ["N", 2])])
    missing = helper.make_graph([helper.make_node("Neg", ["z"], ["missing"])], "missing", [], [value("missing", FLOAT, ["N", 2])])
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["N", 2]))
    return plain([("OptionalHasElement", ["x"], ["has"], {}), ("If", ["has"], ["y"], {"then_branch": given, "else_branch": missing})],
                 [helper.make_value_info("x", kind), value("z", FLOAT, ["N", 2])], [value("y", FLOAT, ["N", 2])])


def serving(folder):
    os.makedirs(folder, exist_ok=True)
    for make in (strings, scalars, rows, optional):
        onnx.save(make(), os.path.join(folder, f"{make.__name__}.onnx"))


def main(out):
    for make in (classifier, transformer, loop, external, quantized, detector):
        model, inputs = make()
        folder = os.path.join(out, make.__name__)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "model.onnx")
        if make is external:
            data = os.path.join(folder, "weights.bin")
            if os.path.exists(data):
                os.remove(data)
            onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        else:
            onnx.save(model, path)
        np.savez(os.path.join(folder, "inputs.npz"), **inputs)
    # Not among the models that every test goes over.
    for make, kind in ((custom, "operators"), (unknown, "operators"), (filters, "fp32"), (blocks, "int8")):
        model, inputs = make()
        folder = os.path.join(out, kind)
        os.makedirs(folder, exist_ok=True)
        onnx.save(model, os.path.join(folder, f"{make.__name__}.onnx"))
        np.savez(os.path.join(folder, f"{make.__name__}.npz"), **inputs)
    states(os.path.join(out, "states"))
    serving(os.path.join(out, "serving"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
