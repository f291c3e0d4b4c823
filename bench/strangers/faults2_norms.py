"""Second generation: faults of normalizations, activations, scales and reductions."""
import numpy as np

from surgery import scalar


def reduction_axes(s, node):
    found = s.attr(node, "axes")
    if found is None and len(node.input) > 1 and node.input[1]:
        found = s.const(node.input[1]).tolist()
    return None if found is None else [int(a) % len(s.shape(node.input[0])) for a in found]


def set_axes(s, node, axes):
    if s.attr(node, "axes") is not None:
        s.set_attr(node, "axes", axes)
        return [node]
    return s.set_const(node, 1, np.array(axes, np.int64))


def is_number(s, value, number):
    found = scalar(s, value)
    return found is not None and abs(found - number) < 1e-5 * abs(number)


def epsilon_outside_root(s):
    """sqrt(v) + e for sqrt(v + e)."""
    def small(n):
        root = s.consumers(n.output[0])
        e = [x for x in n.input if scalar(s, x) is not None and 0 < scalar(s, x) < 1e-2]
        return e and [r.op_type for r in root] == ["Sqrt"]
    add = s.pick("Add", small)
    if add is None:
        return None
    root = s.consumers(add.output[0])[0]
    x, e = sorted(add.input, key=lambda v: scalar(s, v) is not None)
    root.input[0] = x
    s.graph.node.remove(add)
    return s.after(root.output[0], ("Add", [".", e], {}))


def offset_of_weight_lost(s):
    """A norm's weight is kept as its distance from 1, and taken as it is kept."""
    def plus_one(n):
        return any(is_number(s, n.input[i], 1.0) and s.const(n.input[1 - i]) is not None and s.const(n.input[1 - i]).ndim for i in (0, 1))
    add = s.pick("Add", plus_one)
    if add is None:
        return None
    return s.bypass(add, add.input[1] if is_number(s, add.input[0], 1.0) else add.input[0])


def gamma_fixed(s):
    node = s.pick("BatchNormalization", lambda n: s.const(n.input[1]) is not None)
    return s.set_const(node, 1, np.ones_like(s.const(node.input[1]))) if node is not None else None


def centred(s):
    """(mean, sub, square, mean of squares) of normalizations that are written out."""
    for sub in s.nodes("Sub"):
        mean = s.made_by(sub.input[1], "ReduceMean")
        if mean is None or mean.input[0] != sub.input[0]:
            continue
        for square in s.consumers(sub.output[0]):
            power = square.op_type == "Pow" and is_number(s, square.input[1], 2.0)
            if not power and not (square.op_type == "Mul" and square.input[0] == square.input[1]):
                continue
            for variance in s.consumers(square.output[0]):
                if variance.op_type == "ReduceMean":
                    yield mean, sub, square, variance


def norm_axis(s):
    """Over the axis before the last one, or the one behind."""
    def other(mean):
        rank = len(s.shape(mean.input[0]))
        axes = reduction_axes(s, mean)
        options = [a for a in range(1, rank) if axes is not None and len(axes) == 1 and a != axes[0] and s.shape(mean.input[0])[a] > 1]
        return options[-1:] if rank > 2 else []
    site = s.choose([c for c in centred(s) if other(c[0])])
    if site is None:
        return None
    mean, sub, square, variance = site
    axes = other(mean)
    return [*set_axes(s, mean, axes), *set_axes(s, variance, axes), sub]


def variance_of_raw(s):
    """Squares of what is not centred."""
    site = s.choose(centred(s))
    if site is None:
        return None
    _, sub, square, variance = site
    for i, x in enumerate(square.input):
        if x == sub.output[0]:
            square.input[i] = sub.input[0]
    return [square, variance]


def centring_lost(s):
    """The norm that divides by the root of squares alone, for the one that subtracts the mean."""
    site = s.choose(centred(s))
    return s.bypass(site[1], site[1].input[0]) if site else None


def lrn_alpha(s):
    """One framework divides alpha by the size, the other does not."""
    node = s.pick("LRN")
    if node is None:
        return None
    s.set_attr(node, "alpha", s.attr(node, "alpha", 1e-4) / s.attr(node, "size"))
    return [node]


def selu_as_elu(s):
    node = s.pick("Selu")
    if node is None:
        return None
    node.op_type = "Elu"
    del node.attribute[:]
    return [node]


def hard_as_soft(s):
    """Swish for its hard form."""
    def gate(n):
        return abs(s.attr(n, "alpha", 0.2) - 1 / 6) < 1e-3 and any(r.op_type == "Mul" and n.input[0] in r.input for r in s.consumers(n.output[0]))
    node = s.pick("HardSigmoid", gate)
    if node is None:
        return None
    node.op_type = "Sigmoid"
    del node.attribute[:]
    return [node]


def gelu_by_sigmoid(s):
    """x * sigmoid(1.702 x) for the exact form."""
    node = s.pick("Gelu")
    if node is not None:
        x, at = node.input[0], s.place(node)
        a = s.insert(at, "Mul", [x, s.constant(np.float32(1.702))], [s.fresh("gelu")])
        b = s.insert(at + 1, "Sigmoid", [a.output[0]], [s.fresh("gelu")])
        node = s.graph.node[at + 2]
        node.op_type = "Mul"
        node.input.append(b.output[0])
        del node.attribute[:]
        return [a, b, node]

    def parts(erf):
        inner = s.made_by(erf.input[0], "Div")
        plus = [c for c in s.consumers(erf.output[0]) if c.op_type == "Add"]
        product = [c for p in plus for c in s.consumers(p.output[0]) if c.op_type == "Mul" and inner is not None and inner.input[0] in c.input]
        half = [c for p in product for c in s.consumers(p.output[0]) if c.op_type == "Mul" and any(is_number(s, x, 0.5) for x in c.input)]
        return (inner, plus[0], product[0], half[0]) if half else None
    erf = s.pick("Erf", parts)
    if erf is None:
        return None
    inner, plus, product, half = parts(erf)
    x, constants = inner.input[0], (inner.input[1], *[v for v in half.input if v != product.output[0]])
    for n in (inner, erf, plus, product):
        s.graph.node.remove(n)
    at = s.place(half)
    a = s.insert(at, "Mul", [x, s.constant(np.full_like(s.const(constants[0]), 1.702))], [s.fresh("gelu")])
    b = s.insert(at + 1, "Sigmoid", [a.output[0]], [s.fresh("gelu")])
    half = s.graph.node[at + 2]
    half.input[0], half.input[1] = x, b.output[0]
    return [a, b, half]


def soft_cap_lost(s):
    def cap(n):
        before = s.made_by(n.input[0], "Div")
        behind = [c for c in s.consumers(n.output[0]) if c.op_type == "Mul"]
        number = scalar(s, before.input[1]) if before is not None else None
        return number is not None and behind and is_number(s, behind[0].input[1], number)
    node = s.pick("Tanh", cap)
    if node is None:
        return None
    before, behind = s.producer(node.input[0]), s.consumers(node.output[0])[0]
    made = s.bypass(behind, before.input[0])
    s.graph.node.remove(node)
    s.graph.node.remove(before)
    # Beside a mask's large number nobody sees the difference: what follows shows it.
    return (made or []) + [r for n in made or [] for r in s.consumers(n.output[0]) if n.op_type == "Add"]


def shares_not_divided(s):
    """The chosen experts' probabilities are not divided by their sum."""
    def divides(n):
        total = s.made_by(n.input[1], "ReduceSum")
        return s.made_by(n.input[0], "TopK") is not None and total is not None and total.input[0] == n.input[0]
    node = s.pick("Div", divides)
    return s.bypass(node, node.input[0]) if node is not None else None


def activation_twice(s):
    """The head has its activation, and the exporter's wrapper applies it again."""
    def last(n):
        return s.is_output(n.output[0]) or any(r.op_type in ("Mul", "Concat", "Transpose", "Reshape", "Slice") for r in s.consumers(n.output[0]))
    node = s.pick("Sigmoid", last)
    return s.after(node.output[0], ("Sigmoid", ["."], {})) if node is not None else None


def branch_scale_lost(s):
    """What a branch adds is scaled down, or is not."""
    def scales(n):
        number = scalar(s, n.input[1])
        adds = [c for c in s.consumers(n.output[0]) if c.op_type == "Add" and all(s.const(x) is None for x in c.input)]
        return number is not None and 0 < number < 1 and s.const(n.input[0]) is None and adds and s.shape(adds[0].output[0]) == s.shape(n.output[0])
    node = s.pick("Mul", scales)
    return s.bypass(node, node.input[0]) if node is not None else None


def logarithm_base(s):
    """The natural logarithm for the one to base 10."""
    node = s.pick("Mul", lambda n: s.made_by(n.input[0], "Log") is not None and is_number(s, n.input[1], 1 / np.log(10)))
    return s.bypass(node, node.input[0]) if node is not None else None


def sum_for_mean(s):
    """One reduction for the other, of bags and of pooling."""
    def pools(n):
        axes = reduction_axes(s, n)
        return axes is not None and s.attr(n, "keepdims", 1) == 0 and np.prod([s.shape(n.input[0])[a] for a in axes]) > 1
    node = s.pick(("ReduceMean", "ReduceSum"), pools)
    if node is None:
        return None
    axes = reduction_axes(s, node)
    node.op_type = "ReduceSum" if node.op_type == "ReduceMean" else "ReduceMean"
    s.set_attr(node, "axes", None)
    del node.input[1:]
    if s.opset >= (13 if node.op_type == "ReduceSum" else 18):
        node.input.append(s.constant(np.array(axes, np.int64)))
    else:
        s.set_attr(node, "axes", axes)
    return [node]


def mean_over_padding(s):
    """The mean over what is no padding is divided by the whole length."""
    def masked(n):
        total = s.made_by(n.input[1], "Clip")
        return total is not None and s.made_by(total.input[0], "ReduceSum") is not None and s.made_by(n.input[0], "ReduceSum") is not None
    node = s.pick("Div", masked)
    if node is None:
        return None
    length = s.shape(s.producer(node.input[0]).input[0])[1]
    node.input[1] = s.constant(np.float32(length))
    return [node]


def floor_for_round(s):
    node = s.pick("Round")
    if node is None:
        return None
    node.op_type = "Floor"
    return [node]


ROWS = [
    ("epsilon_outside_root", "TransformerEngine", "NVIDIA/TransformerEngine#364", epsilon_outside_root),
    ("norm_offset_of_one_lost", "executorch", "pytorch/executorch#19901", offset_of_weight_lost),
    ("norm_gamma_fixed", "mxnet", "apache/mxnet#9624", gamma_fixed),
    ("norm_axis", "tensorflow", "tensorflow/addons#2142", norm_axis),
    ("norm_variance_of_raw", "opencv", "opencv/opencv#23047", variance_of_raw),
    ("norm_centring_lost", "tract", "sonos/tract#2646", centring_lost),
    ("lrn_alpha", "caffe", "BVLC/caffe#1453", lrn_alpha),
    ("selu_as_elu", "keras2onnx", "onnx/keras-onnx#163", selu_as_elu),
    ("hard_swish_as_swish", "ComputeLibrary", "ARM-software/ComputeLibrary#1164", hard_as_soft),
    ("gelu_by_sigmoid", "mindone", "mindspore-lab/mindone#225", gelu_by_sigmoid),
    ("soft_cap_lost", "Megatron-Bridge", "NVIDIA-NeMo/Megatron-Bridge#4645", soft_cap_lost),
    ("expert_shares_not_divided", "torchtitan", "pytorch/torchtitan#1448", shares_not_divided),
    ("activation_twice", "nanodet", "RangiLyu/nanodet#583", activation_twice),
    ("branch_scale_lost", "tf2onnx", "onnx/tensorflow-onnx#1824", branch_scale_lost),
    ("logarithm_base", "wenet", "wenet-e2e/wenet#2320", logarithm_base),
    ("sum_for_mean", "onnxscript", "microsoft/onnxscript#1056", sum_for_mean),
    ("mean_over_padding", "lantern", "lanterndata/lantern_extras#91", mean_over_padding),
    ("floor_for_round", "sglang-jax", "sgl-project/sglang-jax#1598", floor_for_round),
]
