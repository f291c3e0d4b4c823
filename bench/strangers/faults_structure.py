"""Faults of structure: nodes that are missing, added, exchanged or of another kind."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from surgery import gone, scalar

UNARY = ("Relu", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Clip", "PRelu", "Softplus", "HardSigmoid")


def gelu_form(s):
    """tanh for erf, or erf for tanh."""
    node = s.pick("Gelu")
    if node is not None:
        s.set_attr(node, "approximate", "tanh")
        return [node]
    node = s.pick(("Erf", "Tanh"), lambda n: s.made_by(n.input[0], "Div" if n.op_type == "Erf" else "Mul") is not None)
    if node is None:
        return None
    inner, at = s.producer(node.input[0]), s.place(node)
    if node.op_type == "Erf":
        x = inner.input[0]
        names = [s.fresh("gelu") for _ in range(4)]
        steps = [("Pow", [x, s.constant(np.float32(3))]), ("Mul", [names[0], s.constant(np.float32(0.044715))]), ("Add", [x, names[1]]),
                 ("Mul", [names[2], s.constant(np.float32(np.sqrt(2 / np.pi)))])]
        made = [s.insert(at + k, kind, inputs, [names[k]]) for k, (kind, inputs) in enumerate(steps)]
        node = s.graph.node[at + 4]
        node.op_type, node.input[0] = "Tanh", names[-1]
        return [*made, node, inner, *s.consumers(node.output[0])]
    total = s.made_by(inner.input[0], "Add")
    if total is None or scalar(s, inner.input[1]) is None:
        return None
    made = s.insert(at, "Div", [total.input[0], s.constant(np.float32(np.sqrt(2)))], [s.fresh("gelu")])
    node = s.graph.node[at + 1]
    node.op_type, node.input[0] = "Erf", made.output[0]
    return [made, node, inner, total, *s.consumers(node.output[0])]


def swish_beta(s):
    """x * sigmoid(beta * x): the beta is lost, or there is one that was not."""
    def gate(n):
        x = s.producer(n.input[0])
        source = x.input[0] if x is not None and x.op_type == "Mul" and scalar(s, x.input[1]) is not None else n.input[0]
        return any(r.op_type == "Mul" and source in r.input for r in s.consumers(n.output[0]))
    node = s.pick("Sigmoid", gate)
    if node is None:
        return None
    x = s.made_by(node.input[0], "Mul")
    if x is not None and scalar(s, x.input[1]) is not None:
        return [*s.bypass(x, x.input[0]), node]
    return s.before(node, 0, ("Mul", [".", s.constant(np.float32(1.702))], {}))


def softplus_beta(s):
    node = s.pick("Softplus", lambda n: s.made_by(n.input[0], "Mul") is not None and scalar(s, s.producer(n.input[0]).input[1]) is not None)
    if node is None:
        return None
    before, behind = s.producer(node.input[0]), s.consumers(node.output[0])[0]
    made = [before, node, behind]
    for n in (before, behind):
        made += s.set_const(n, 1, np.float32(1.0).reshape(s.const(n.input[1]).shape))
    return made


def unbiased_variance(s):
    """n - 1 for n."""
    def squares(n):
        x = s.producer(n.input[0])
        return x is not None and (x.op_type == "Pow" and scalar(s, x.input[1]) == 2 or x.op_type == "Mul" and x.input[0] == x.input[1])
    node = s.pick("ReduceMean", squares)
    if node is None:
        return None
    n = np.size(s.values[node.input[0]]) / np.size(s.values[node.output[0]])
    return s.after(node.output[0], ("Mul", [".", s.constant(np.float32(n / (n - 1)))], {}))


def group_count(s):
    """Half as many groups."""
    def groups(n):
        before = s.made_by(n.input[0], "Reshape")
        return before is not None and s.const(before.input[1]) is not None and s.const(n.input[1]).size % 2 == 0
    node = s.pick("InstanceNormalization", groups)
    if node is None:
        return None
    before, half = s.producer(node.input[0]), s.const(node.input[1]).size // 2
    shape = s.const(before.input[1]).copy()
    shape[1] = half
    made = s.set_const(before, 1, shape)
    s.set_const(node, 1, np.ones(half, np.float32))
    s.set_const(node, 2, np.zeros(half, np.float32))
    return [*made, node]


def batch_statistics(s):
    """A normalization by what is there, not by what training saw."""
    node = s.pick("BatchNormalization", lambda n: len(s.shape(n.input[0])) > 2 and np.prod(s.shape(n.input[0])[2:]) > 1)
    if node is None:
        return None
    at, epsilon = s.place(node), s.attr(node, "epsilon", 1e-5)
    new = helper.make_node("InstanceNormalization", list(node.input[:3]), list(node.output[:1]), name=node.name, epsilon=epsilon)
    s.graph.node.remove(node)
    s.graph.node.insert(at, new)
    return [s.graph.node[at]]


def halves_swapped(s):
    node = s.pick("Split", lambda n: len(n.output) == 2 and s.shape(n.output[0]) == s.shape(n.output[1]))
    if node is None:
        return None
    node.output[0], node.output[1] = node.output[1], node.output[0]
    return [node, *s.consumers(node.output[0]), *s.consumers(node.output[1])]


def concat_swapped(s):
    def two(n):
        if len(n.input) != 2 or all(s.const(x) is not None for x in n.input):
            return False
        return s.shape(n.input[0]) == s.shape(n.input[1]) and len(s.shape(n.input[0])) > 1
    node = s.pick("Concat", two)
    if node is None:
        return None
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return [node]


def flatten_layout(s):
    """Channels last where the weights expect them first, or the reverse."""
    def turned(n):
        return s.made_by(n.input[0], "Transpose") is not None and len(s.shape(n.input[0])) == 4 and len(s.shape(n.output[0])) == 2
    node = s.pick(("Reshape", "Flatten"), turned)
    if node is not None and (node.op_type == "Flatten" or -1 in s.const(node.input[1])):
        transpose = s.producer(node.input[0])
        return s.bypass(transpose, transpose.input[0])
    node = s.pick("Flatten", lambda n: len(s.shape(n.input[0])) == 4 and min(s.shape(n.input[0])[2:]) > 1)
    return s.before(node, 0, ("Transpose", ["."], {"perm": [0, 2, 3, 1]})) if node is not None else None


def floor_truncates(s):
    node = s.pick("Floor")
    if node is None:
        return None
    node.op_type = "Cast"
    node.attribute.append(helper.make_attribute("to", TensorProto.INT64))
    return s.after(node.output[0], ("Cast", ["."], {"to": TensorProto.FLOAT}))


def traced_constant(s):
    """What depends on the input became what it was at the export."""
    kinds = ("ReduceMean", "GlobalAveragePool", "Sigmoid", "HardSigmoid", "TopK", "ReduceMax", "Greater", "Equal", "Floor", "Mul", "Sub",
             "Softmax", "Gather")

    def small(n):
        x = s.values.get(n.output[0])
        then = s.traced.get(n.output[0])
        if x is None or then is None or len(n.output) != 1 or not s.consumers(n.output[0]):
            return False
        return 0 < x.size <= 128 and x.shape == then.shape and not np.array_equal(x, then)
    node = s.pick(kinds, small)
    if node is None:
        return None
    node.op_type = "Constant"
    del node.input[:], node.attribute[:]
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(s.traced[node.output[0]])))
    return [node, *s.consumers(node.output[0])]


def half_cast(s):
    def real(n):
        x = s.values.get(n.output[0])
        return x is not None and x.dtype == np.float32 and x.size > 4 and s.consumers(n.output[0]) and np.abs(x).max() < 6e4
    node = s.pick(("Mul", "Add", "Sub", "MatMul", "Conv", "Gemm", "Div"), real)
    if node is None:
        return None
    return s.after(node.output[0], ("Cast", ["."], {"to": TensorProto.FLOAT16}), ("Cast", ["."], {"to": TensorProto.FLOAT}))


def skip_after_activation(s):
    """The activation worked in place, so the skip connection takes its result."""
    for add in s.rng.permutation(np.array(s.nodes("Add"), object)):
        for i, x in enumerate(add.input):
            if s.const(x) is not None or s.const(add.input[1 - i]) is not None:
                continue
            users = [n for n in s.consumers(x) if n.op_type in UNARY + ("BatchNormalization", "LayerNormalization")]
            users = [n for n in users if s.shape(n.output[0]) == s.shape(x) and s.place(n) < s.place(add)]
            if users:
                add.input[i] = users[0].output[0]
                return [add]
    return None


def residual(s, n):
    return s.const(n.input[1]) is None and s.shape(n.input[0]) == s.shape(n.input[1]) and len(s.shape(n.input[0])) > 1


def other_kind(**pairs):
    def apply(s):
        node = s.pick(tuple(pairs), lambda n: len(s.shape(n.input[0])) > 1)
        if node is None:
            return None
        node.op_type = pairs[node.op_type]
        return [node]
    return apply


def unshuffle_order(s):
    node = s.pick("SpaceToDepth")
    if node is None:
        return None
    c = s.shape(node.input[0])[1]
    b = s.attr(node, "blocksize")
    order = np.arange(c * b * b).reshape(b * b, c).T.reshape(-1)
    return s.after(node.output[0], ("Gather", [".", s.constant(order.astype(np.int64))], {"axis": 1}))


def inputs_exchanged(s):
    """Two inputs of one shape under each other's name."""
    names = [i.name for i in s.graph.input]
    pairs = [(a, b) for a in names for b in names if a < b and s.shape(a) == s.shape(b) and s.values[a].dtype == s.values[b].dtype]
    pair = s.choose(pairs)
    if pair is None:
        return None
    swap = dict(zip(pair, reversed(pair)))
    touched = []
    for n in s.graph.node:
        for i, x in enumerate(n.input):
            if x in swap:
                n.input[i] = swap[x]
                touched.append(n)
    return touched


def quantizer(what):
    """Faults of scales and zero points; they are of the pair of a QuantizeLinear and its DequantizeLinear."""
    def apply(s):
        if what == "weight_scales":
            node = s.pick("DequantizeLinear", lambda n: s.const(n.input[0]) is not None and s.const(n.input[1]).size > 2)
            return s.set_const(node, 1, np.roll(s.const(node.input[1]), 1)) if node is not None else None
        node = s.pick("QuantizeLinear", lambda n: s.const(n.input[1]).size == 1)
        if node is None:
            return None
        pair = [node, *[n for n in s.consumers(node.output[0]) if n.op_type == "DequantizeLinear"]]
        if what == "zero_point":
            zero = s.const(node.input[2]).astype(int)
            s.set_const(pair[-1], 2, (zero + (1 if zero < 100 else -1)).astype(s.const(node.input[2]).dtype))
            return pair
        scale = s.const(node.input[1])
        name = s.constant((scale * (0.4 if what == "clips" else 6)).astype(np.float32), "scale")
        for n in pair:
            n.input[1] = name
        return pair
    return apply


ROWS = [
    ("gelu_form", "torch.onnx", "NVIDIA/DeepLearningExamples#447", gelu_form),
    ("swish_beta", "paddle2onnx", "PaddlePaddle/Paddle2ONNX#1167", swish_beta),
    ("softplus_beta", "torch.onnx", "pytorch/pytorch#64811", softplus_beta),
    ("unbiased_variance", "torch.onnx", "pytorch/pytorch#45678", unbiased_variance),
    ("group_count", "onnxscript", "microsoft/onnxscript#1205", group_count),
    ("batch_statistics", "torch.onnx", "pytorch/pytorch#53887", batch_statistics),
    ("halves_swapped", "tt-metal", "tenstorrent/tt-metal#53283", halves_swapped),
    ("concat_swapped", "torch.onnx", "pytorch/pytorch#143751", concat_swapped),
    ("flatten_layout", "keras2onnx", "keras-team/keras#9696", flatten_layout),
    ("floor_truncates", "torch.onnx", "pytorch/pytorch#78442", floor_truncates),
    ("traced_constant", "torch.onnx", "pytorch/pytorch#33443", traced_constant),
    ("half_cast", "torch.onnx", "vadimkantorov/convasr#64", half_cast),
    ("skip_after_activation", "torch.onnx", "pytorch/pytorch#5687", skip_after_activation),
    ("residual_lost", "torch.onnx", "openpifpaf/openpifpaf#240", gone("Add", residual)),
    ("activation_lost", "torch.onnx", "pytorch/pytorch#89261", gone(UNARY)),
    ("update_lost", "torch.onnx", "pytorch/pytorch#19948", gone(("ScatterND", "ScatterElements"))),
    ("pool_kind", "torch.onnx", "pytorch/pytorch#60452",
     other_kind(GlobalAveragePool="GlobalMaxPool", ReduceMax="ReduceMean", ReduceMean="ReduceMax")),
    ("unshuffle_order", "onnxscript", "microsoft/onnxscript#2891", unshuffle_order),
    ("inputs_exchanged", "homr", "liebharc/homr#99", inputs_exchanged),
    ("quantizer_zero_point", "onnxruntime", "microsoft/onnxruntime#25823", quantizer("zero_point")),
    ("quantizer_clips", "onnxruntime", "microsoft/onnxruntime#11928", quantizer("clips")),
    ("quantizer_outlier_scale", "paddle2onnx", "PaddlePaddle/Paddle2ONNX#1441", quantizer("outlier")),
    ("quantizer_channel_scales", "onnxruntime", "microsoft/onnxruntime#11415", quantizer("weight_scales")),
]
