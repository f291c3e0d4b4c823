"""Seventh generation: faults of gates, limits, slopes, lengths, and of operators that were taken for their neighbours."""
import numpy as np

from faults4_structure import computed
from surgery import scalar


def axes_of(s, node):
    """Axes of a reduction, each from 0 on, or None."""
    axes = s.const(node.input[1]) if len(node.input) > 1 and node.input[1] else s.attr(node, "axes")
    rank = len(s.shape(node.input[0]))
    return None if axes is None else sorted(int(a) % rank for a in np.reshape(axes, -1))


def set_axes(s, node, axes):
    if len(node.input) > 1 and node.input[1]:
        return s.set_const(node, 1, np.array(axes, np.int64))
    s.set_attr(node, "axes", list(axes))
    return [node]


def kinds_behind(s, value):
    return sorted(n.op_type for n in s.consumers(value))


def gate_plus_one_lost(s):
    """The other half as it is, not one more."""
    def fits(n):
        return scalar(s, n.input[1]) == 1 and s.made_by(n.input[0], "Clip") is not None and kinds_behind(s, n.output[0]) == ["Mul"]
    node = s.pick("Add", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def steepness_of_tanh_lost(s):
    """A tanh in a norm's place, as steep as any."""
    def fits(n):
        c = scalar(s, n.input[1])
        return c is not None and abs(c - 1) > 0.05 and kinds_behind(s, n.output[0]) == ["Tanh"] and computed(s, n.input[0]) and s.const(n.input[1]).ndim == 1
    made = []
    for n in [n for n in s.nodes("Mul") if fits(n)]:
        made += s.bypass(n, n.input[0]) or []
    return made or None


def sine_size_as_speed(s):
    """How large the sine is, taken from how fast it is."""
    sites = []
    for n in s.nodes("Div"):
        square = s.made_by(n.input[0], "Mul")
        sine = s.made_by(square.input[0], "Sin") if square is not None else None
        fast = s.made_by(sine.input[0], "Mul") if sine is not None else None
        if fast is not None and s.const(fast.input[1]) is not None and s.const(n.input[1]) is not None and s.const(n.input[1]).shape == s.const(fast.input[1]).shape:
            sites.append((n, s.const(fast.input[1])))
    site = s.choose(sites)
    return s.set_const(site[0], 1, site[1]) if site else None


def limits_default(s):
    """Hard limits at one on both sides, wherever they were."""
    made = []
    for n in s.nodes("Clip"):
        low, high = (scalar(s, n.input[i]) if len(n.input) > i and n.input[i] else None for i in (1, 2))
        if low is not None and high is not None and low < 0 and low != -1 and 1 < high <= 3 and s.made_by(n.input[0], "Conv", "Transpose", "Add") is not None:
            made += s.set_const(n, 1, np.float32(-1).reshape(s.const(n.input[1]).shape)) + s.set_const(n, 2, np.float32(1).reshape(s.const(n.input[2]).shape))
    return made or None


def root_of_two_lost(s):
    """The bell's sum at the number itself."""
    def fits(n):
        c = scalar(s, n.input[1])
        return c is not None and (abs(c - 2 ** 0.5) < 1e-3 or abs(c - 0.5 ** 0.5) < 1e-3) and kinds_behind(s, n.output[0]) == ["Erf"]
    made = []
    for n in [n for n in s.nodes("Div", "Mul") if fits(n)]:
        made += s.bypass(n, n.input[0]) or []
    return made or None


def shares_for_logarithms(s):
    node = s.pick("LogSoftmax")
    if node is None:
        return None
    node.op_type = "Softmax"
    return [node]


def choice_softened(s):
    """A little of everything, where one was to be chosen."""
    node = s.pick("Hardmax")
    if node is None:
        return None
    node.op_type = "Softmax"
    return [node]


def magnitude_lost(s):
    """Numbers as they are, below nothing, too."""
    node = s.pick("Abs", lambda n: np.min(s.values[n.input[0]]) < 0)
    return s.bypass(node, node.input[0]) if node is not None else None


def shrinking_as_growing(s):
    """The largest of a neighbourhood, where the least was asked."""
    sites = []
    for n in s.nodes("MaxPool"):
        first, last = s.made_by(n.input[0], "Neg"), s.consumers(n.output[0])
        if first is not None and len(last) == 1 and last[0].op_type == "Neg":
            sites.append((first, n, last[0]))
    site = s.choose(sites)
    if site is None:
        return None
    first, pool, last = site
    pool.input[0] = first.input[0]
    made = s.bypass(last, pool.output[0])
    s.graph.node.remove(first)
    return made


def product_as_sum(s):
    node = s.pick("ReduceProd", lambda n: s.opset < 13 or s.opset >= 18)
    if node is None:
        node = s.pick("ReduceProd")
        if node is None:
            return None
        axes = s.attr(node, "axes")  # of ReduceSum they are an input by then
        s.set_attr(node, "axes", None)
        node.input.append(s.constant(np.array(axes, np.int64), "axes"))
    node.op_type = "ReduceSum"
    return [node]


def minimum_as_maximum(s):
    node = s.pick("ReduceMin")
    if node is None:
        return None
    node.op_type = "ReduceMax"
    return [node]


def either_for_both(s):
    """One of two conditions is enough."""
    node = s.pick("And")
    if node is None:
        return None
    node.op_type = "Or"
    return [node]


def lengths_over_channels(s):
    """Lengths over the channels of each pixel, not over the pixels of each channel."""
    def fits(n):
        return axes_of(s, n) == [2, 3] and len(s.shape(n.output[0])) == 4 and kinds_behind(s, n.output[0]) == ["Div", "ReduceMean"]
    node = s.pick("ReduceL2", fits)
    return set_axes(s, node, [1]) if node is not None else None


def pool_power_default(s):
    """Squares, whatever the power was."""
    made = [n for n in s.nodes("LpPool") if s.attr(n, "p", 2) != 2]
    for n in made:
        s.set_attr(n, "p", None)
    return made or None


ROWS = [
    ("gate_plus_one_lost", "sglang", "sgl-project/sglang#39939", gate_plus_one_lost),
    ("steepness_of_tanh_lost", "DyT", "jiachenzhu/DyT#6", steepness_of_tanh_lost),
    ("sine_size_as_speed", "vllm-omni", "vllm-project/vllm-omni#3886", sine_size_as_speed),
    ("limits_default", "executorch", "pytorch/executorch#18102", limits_default),
    ("root_of_two_lost", "MIGraphX", "ROCm/AMDMIGraphX#1299", root_of_two_lost),
    ("shares_for_their_logarithms", "onnx-chainer", "chainer/onnx-chainer#67", shares_for_logarithms),
    ("choice_softened", "openvino", "openvinotoolkit/openvino#33398", choice_softened),
    ("magnitude_lost", "torch", "pytorch/pytorch#125135", magnitude_lost),
    ("shrinking_as_growing", "kornia", "kornia/kornia#1030", shrinking_as_growing),
    ("product_as_sum", "glow", "pytorch/glow#4863", product_as_sum),
    ("minimum_as_maximum", "mace", "XiaoMi/mace#362", minimum_as_maximum),
    ("either_for_both", "mmpretrain", "open-mmlab/mmpretrain#1754", either_for_both),
    ("lengths_over_channels", "ConvNeXt-V2", "facebookresearch/ConvNeXt-V2#86", lengths_over_channels),
    ("pool_power_default", "onnx", "onnx/onnx#1614", pool_power_default),
]
