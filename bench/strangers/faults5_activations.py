"""Fifth generation: faults of activations, of lengths, and of single numbers in formulas."""
import numpy as np

from faults4_structure import computed
from surgery import scalar


def set_axes(s, node, axes):
    """The axes of a reduction, in the form that it has."""
    if len(node.input) > 1:
        return s.set_const(node, 1, np.array(axes, np.int64))
    s.set_attr(node, "axes", list(axes))
    return [node]


def axes_of(s, node):
    axes = s.const(node.input[1]) if len(node.input) > 1 and node.input[1] else s.attr(node, "axes")
    return [int(a) % len(s.shape(node.input[0])) for a in axes] if axes is not None else None


def lengths(s):
    """(division, reduction): something divided by its own length, which is not a norm's root of a mean."""
    for n in s.nodes("Div"):
        x = n.input[1]
        for _ in range(4):
            p = s.producer(x)
            if p is None or not p.input or p.op_type in ("ReduceSum", "ReduceL2"):
                break
            x = p.input[0]
        if p is None or p.op_type not in ("ReduceSum", "ReduceL2"):
            continue
        source = p.input[0] if p.op_type == "ReduceL2" else None
        square = s.made_by(p.input[0], "Mul") if source is None else None
        if source == n.input[0] or square is not None and list(square.input) == [n.input[0]] * 2:
            yield n, p


def unit_length_lost(s):
    site = s.choose(lengths(s))
    return s.bypass(site[0], site[0].input[0]) if site else None


def unit_length_axis(s):
    sites = []
    for n, p in lengths(s):
        shape, axes = s.shape(p.input[0]), axes_of(s, p)
        sites += [(p, a) for a in range(1, len(shape)) if axes is not None and a not in axes and shape[a] > 1 and len(shape) > 2]
    site = s.choose(sites)
    return set_axes(s, site[0], [site[1]]) if site else None


def norm_order(s):
    """The sum of what is there for the root of the sum of squares."""
    node = s.choose([p for n, p in lengths(s) if p.op_type == "ReduceL2"])
    if node is None:
        return None
    node.op_type = "ReduceL1"
    return [node]


def half_of_logarithm(s):
    """A variance where a deviation was meant."""
    node = s.pick("Mul", lambda n: scalar(s, n.input[1]) == 0.5 and [b.op_type for b in s.consumers(n.output[0])] == ["Exp"])
    return s.bypass(node, node.input[0]) if node is not None else None


def degrees(s):
    def fits(n):
        c = scalar(s, n.input[1])
        return c is not None and np.isclose(c, np.pi / 180 if n.op_type == "Mul" else 180 / np.pi, rtol=1e-4) and \
            {b.op_type for b in s.consumers(n.output[0])} <= {"Sin", "Cos"}
    node = s.pick(("Mul", "Div"), fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def pi_lost(s):
    """Waves of whole numbers, not of half turns."""
    def fits(n):
        c = s.const(n.input[1])
        return c is not None and c.size > 1 and c.dtype == np.float32 and np.allclose(np.log2(np.abs(c) / np.pi + 1e-30) % 1, 0, atol=1e-4) and \
            any(b.op_type in ("Sin", "Cos") for b in s.consumers(n.output[0]))
    node = s.pick("Mul", fits)
    return s.set_const(node, 1, (s.const(node.input[1]) / np.pi).astype(np.float32)) if node is not None else None


def lrn_radius(s):
    """How far to either side, taken for how many in all."""
    node = s.pick("LRN", lambda n: s.attr(n, "size") > 2)
    if node is None:
        return None
    s.set_attr(node, "size", (s.attr(node, "size") - 1) // 2)
    return [node]


def penalty_of_negative(s):
    """All are divided, those below zero too, which come nearer by it."""
    def fits(n):
        less = s.made_by(n.input[0], "Less")
        return less is not None and scalar(s, less.input[1]) == 0 and s.made_by(n.input[1], "Mul") is not None and s.made_by(n.input[2], "Div") is not None
    node = s.pick("Where", fits)
    if node is None:
        return None
    node.input[1] = node.input[2]
    return [node]


def sine_square_lost(s):
    node = s.pick("Mul", lambda n: n.input[0] == n.input[1] and s.made_by(n.input[0], "Sin") is not None)
    return s.bypass(node, node.input[0]) if node is not None else None


def one_not_taken_back(s):
    """exp(x) for exp(x) - 1."""
    node = s.pick("Sub", lambda n: s.made_by(n.input[0], "Exp") is not None and scalar(s, n.input[1]) == 1)
    return s.bypass(node, node.input[0]) if node is not None else None


def range_below_loudest(s):
    """What is far below the loudest counts as what it is."""
    def fits(n):
        floor = s.made_by(n.input[1], "Sub") if len(n.input) == 2 else None
        return floor is not None and s.made_by(floor.input[0], "ReduceMax") is not None and computed(s, n.input[0])
    node = s.pick("Max", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def through(s, start, kinds, most=7):
    """Nodes of these kinds that one value leads to, with no other reader on the way."""
    made, x = [], start
    for _ in range(most):
        behind = s.consumers(x)
        if len(behind) != 1 or behind[0].op_type not in kinds:
            break
        made.append(behind[0])
        x = behind[0].output[0]
    return made


def gelu_ends(s):
    """(what goes in, last node) of each gelu, by the error function, by a hyperbolic tangent, or of its own."""
    for n in s.nodes("Gelu"):
        yield n.input[0], n
    for n in s.nodes("Erf"):
        scaled = s.producer(n.input[0])
        if scaled is None or scaled.op_type not in ("Div", "Mul"):
            continue
        x, last = scaled.input[0], None
        for m in through(s, n.output[0], ("Add", "Mul")):
            last = m
        if last is not None:
            yield x, last
    for n in s.nodes("Tanh"):
        inner = s.made_by(n.input[0], "Mul")
        total = s.made_by(inner.input[0], "Add") if inner is not None and scalar(s, inner.input[1]) is not None else None
        after = through(s, n.output[0], ("Add", "Mul"), 2)
        if total is not None and len(after) == 2 and s.made_by(total.input[1], "Mul") is not None:
            yield total.input[0], after[-1]


def become(s, last, kind, x):
    """The last node of a composed activation is a simple one of its input."""
    last.op_type = kind
    del last.input[:]
    last.input.append(x)
    s.set_attr(last, "approximate", None)
    return [last]


def gelu_as_rectifier(s):
    site = s.choose([x for x in gelu_ends(s) if x[0] in s.values and s.shape(x[0]) == s.shape(x[1].output[0])])
    return become(s, site[1], "Relu", site[0]) if site else None


def mish_as_rectifier(s):
    """What the converter does not know becomes what it knows."""
    def fits(n):
        tangent = [s.made_by(x, "Tanh") for x in n.input]
        return any(t is not None and s.made_by(t.input[0], "Softplus") is not None for t in tangent)
    node = s.pick("Mul", fits)
    return become(s, node, "Relu", node.input[0]) if node is not None else None


def gate_added(s):
    """How much and what are added, not multiplied."""
    node = s.pick("Mul", lambda n: {getattr(s.producer(x), "op_type", "") for x in n.input} == {"Sigmoid", "Tanh"})
    if node is None:
        return None
    node.op_type = "Add"
    return [node]


ROWS = [
    ("gelu_as_rectifier", "PaddleNLP", "PaddlePaddle/PaddleNLP#1048", gelu_as_rectifier),
    ("mish_as_rectifier", "darknet", "AlexeyAB/darknet#5483", mish_as_rectifier),
    ("gate_added", "torchrecurrent", "MartinuzziFrancesco/torchrecurrent#22", gate_added),
    ("unit_length_lost", "sentence-transformers", "huggingface/sentence-transformers#3258", unit_length_lost),
    ("unit_length_axis", "mmt", "gabeur/mmt#1", unit_length_axis),
    ("length_as_sum", "onnx2tf", "PINTO0309/onnx2tf#438", norm_order),
    ("variance_for_deviation", "ibp_vae", "rachtsingh/ibp_vae#3", half_of_logarithm),
    ("degrees_for_radians", "valis", "MathOnco/valis#103", degrees),
    ("half_turns_lost", "nerf-pytorch", "yenchenlin/nerf-pytorch#146", pi_lost),
    ("lrn_radius_as_size", "MNN", "alibaba/MNN#192", lrn_radius),
    ("penalty_of_negative", "transformers", "huggingface/transformers#2302", penalty_of_negative),
    ("sine_square_lost", "KAN-TTS", "modelscope/KAN-TTS#19", sine_square_lost),
    ("one_not_taken_back", "wetts", "wenet-e2e/wetts#26", one_not_taken_back),
    ("range_below_loudest_lost", "kaldi-native-fbank", "csukuangfj/kaldi-native-fbank#63", range_below_loudest),
]
