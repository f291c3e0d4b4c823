"""Sixth generation: faults of slopes, gates as lines, powers, and curves that bend or straighten."""
import numpy as np

from surgery import scalar


def slope_as_maximum(s):
    """The larger of x and its product with the slope, which is the same only for slopes from nothing to one."""
    node = s.pick("PRelu", lambda n: s.const(n.input[1]) is not None and (s.const(n.input[1]).min() < 0 or s.const(n.input[1]).max() > 1))
    if node is None:
        return None
    made = s.before(node, 1, ("Mul", [node.input[0], "."], {}))
    node = made[-1]
    node.op_type = "Max"
    return made


def steepness_default(s):
    """Gates as lines with the steepness of another version."""
    node = s.pick(("LSTM", "GRU"), lambda n: s.attr(n, "activation_alpha") is not None)
    if node is None:
        return None
    s.set_attr(node, "activation_alpha", [0.2 if abs(a - 1 / 6) < 1e-3 else a for a in s.attr(node, "activation_alpha")])
    return [node]


def gates_not_coupled(s):
    """What is forgotten has weights of its own, which nobody trained."""
    node = s.pick("LSTM", lambda n: s.attr(n, "input_forget", 0) == 1)
    if node is None:
        return None
    s.set_attr(node, "input_forget", None)
    return [node]


def mean_powers(s):
    """(Pow in front of a mean, Pow behind it)."""
    for n in s.nodes("GlobalAveragePool", "ReduceMean"):
        first, last = s.made_by(n.input[0], "Pow"), s.consumers(n.output[0])
        if first is not None and len(last) == 1 and last[0].op_type == "Pow" and (scalar(s, first.input[1]) or 0) > 1.01:
            yield first, last[0]


def mean_power_default(s):
    """The power of the default, not the one that was learned."""
    site = s.choose(mean_powers(s))
    if site is None:
        return None
    power = 3.0 if abs(scalar(s, site[0].input[1]) - 3) > 0.1 else 1.0
    made = []
    for node, p in zip(site, (power, 1 / power)):
        made += s.set_const(node, 1, np.full_like(s.const(node.input[1]), p))
    return made


def root_of_light_lost(s):
    """Light as it is, not as a screen, or an ear, has it."""
    behind = {n.output[0] for pair in mean_powers(s) for n in pair}

    def fits(n):
        c = scalar(s, n.input[1])
        return c is not None and 0 < c < 1 and n.output[0] not in behind and abs(c - 0.5) > 0.01 or c == 0.5 and s.made_by(n.input[0], "Add") is not None
    node = s.pick("Pow", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def other_brightness(s):
    """The weights of colours of a later standard."""
    sites = []
    for n in s.nodes("Conv", "MatMul", "Gemm", "Mul"):
        for i in range(min(2, len(n.input))):
            c = s.const(n.input[i])
            if c is not None and c.size == 3 and c.dtype == np.float32 and np.allclose(np.sort(c.reshape(-1)), [0.114, 0.299, 0.587], atol=1e-4):
                sites.append((n, i, c))
    site = s.choose(sites)
    if site is None:
        return None
    n, i, c = site
    new = c.copy()
    for old, now in ((0.299, 0.2126), (0.587, 0.7152), (0.114, 0.0722)):
        new[np.isclose(c, old, atol=1e-4)] = now
    return s.set_const(n, i, new)


def not_expanded(s):
    """Even steps of loudness are taken for samples."""
    def fits(n):
        return any(s.made_by(x, "Sign") is not None for x in n.input) and any(s.made_by(x, "Div") is not None for x in n.input)
    node = s.pick("Mul", fits)
    if node is None:
        return None
    sign = next(s.producer(x) for x in node.input if s.made_by(x, "Sign") is not None)
    return s.bypass(node, sign.input[0])


def level_roundings(s):
    """(Sub of an offset, the offset) in front of a Round."""
    for n in s.nodes("Round"):
        sub = s.made_by(n.input[0], "Sub")
        c = s.const(sub.input[1]) if sub is not None else None
        if c is not None and c.ndim == 1 and set(np.unique(c)) <= {0.0, 0.5}:
            yield sub, c


def half_step_of_odd(s):
    """Half a step where levels are odd in number, none where they are even."""
    site = s.choose(level_roundings(s))
    return s.set_const(site[0], 1, (0.5 - site[1]).astype(np.float32)) if site else None


def finer_step_forgotten(s):
    """What is left is divided by the first levels' own count, not by their steps."""
    sites = []
    for n in s.nodes("Mul", "Div"):
        c = s.const(n.input[1])
        if c is not None and c.ndim == 1 and c.size > 1 and np.allclose(1 / c, np.rint(1 / c), atol=1e-4) and np.all(c < 0.6) and np.all(c > 0.05):
            sites.append((n, c))
    if not sites:
        return None
    made = []
    for n, c in sites:
        made += s.set_const(n, 1, (1 / (np.rint(1 / c) + 1)).astype(np.float32))
    return made


def box_not_wrapped(s):
    """Pairs are as far apart as they stand, whether the box repeats or not."""
    def fits(n):
        back = s.made_by(n.input[1], "Mul")
        return back is not None and s.made_by(back.input[0], "Round") is not None and s.shape(n.input[0]) == s.shape(n.output[0])
    node = s.pick("Sub", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def square_before_rectifier(s):
    """First the square, then what is above zero: all of it."""
    def fits(n):
        relu = s.made_by(n.input[0], "Relu")
        twice = n.op_type == "Mul" and n.input[0] == n.input[1] or n.op_type == "Pow" and scalar(s, n.input[1]) == 2
        return relu is not None and twice and len(s.consumers(n.input[0])) == 1
    node = s.pick(("Mul", "Pow"), fits)
    if node is None:
        return None
    relu, out = s.producer(node.input[0]), node.output[0]
    x, middle = relu.input[0], s.fresh("squared")
    for i, v in enumerate(node.input):
        if v == relu.output[0]:
            node.input[i] = x
    node.output[0] = middle
    name = relu.name
    s.graph.node.remove(relu)
    made = s.insert(s.place(node) + 1, "Relu", [middle], [out])
    made.name = name
    return [node, made]



ROWS = [
    ("slope_as_maximum", "HALO", "alibaba/heterogeneity-aware-lowering-and-optimization#163", slope_as_maximum),
    ("gate_steepness_of_other_version", "keras", "tensorflow/tensorflow#65381", steepness_default),
    ("gates_not_coupled", "tagger", "glample/tagger#25", gates_not_coupled),
    ("mean_power_default", "tensorflow similarity", "tensorflow/similarity#247", mean_power_default),
    ("root_of_light_lost", "scalismo-faces", "unibas-gravis/scalismo-faces#29", root_of_light_lost),
    ("brightness_of_other_standard", "opencv", "opencv/opencv#6765", other_brightness),
    ("samples_not_expanded", "WaveRNN", "fatchord/WaveRNN#39", not_expanded),
    ("half_step_of_odd_levels", "vector-quantize-pytorch", "lucidrains/vector-quantize-pytorch#86", half_step_of_odd),
    ("finer_step_forgotten", "vector-quantize-pytorch", "lucidrains/vector-quantize-pytorch#96", finer_step_forgotten),
    ("box_not_wrapped", "openmm-ml", "openmm/openmm-ml#77", box_not_wrapped),
    ("square_before_rectifier", "nanochat", "karpathy/nanochat#58", square_before_rectifier),
]
