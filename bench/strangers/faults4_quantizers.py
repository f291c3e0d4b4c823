"""Fourth generation: faults of quantizers."""
import numpy as np


def pairs(s):
    """(QuantizeLinear, its DequantizeLinear nodes) of activations, of one scale."""
    for n in s.nodes("QuantizeLinear"):
        readers = [r for r in s.consumers(n.output[0]) if r.op_type == "DequantizeLinear"]
        if readers and s.const(n.input[0]) is None and s.const(n.input[1]) is not None and s.const(n.input[1]).size == 1:
            yield n, readers


def set_pair(s, node, readers, scale, zero=None):
    name = s.constant(np.asarray(scale, np.float32).reshape(s.const(node.input[1]).shape), "scale")
    kept = s.constant(np.asarray(zero).astype(s.const(node.input[2]).dtype).reshape(s.const(node.input[2]).shape), "zero") if zero is not None else None
    for n in (node, *readers):
        n.input[1] = name
        if kept:
            n.input[2] = kept
    return [node, *readers]


def rectifier_removed(s):
    """A rectifier is left to the integers' range, which has room for negative numbers."""
    sites = []
    for n, readers in pairs(s):
        act = s.made_by(n.input[0], "Relu", "Clip")
        if act is not None and len(s.consumers(n.input[0])) == 1:
            sites.append((n, readers, act))
    site = s.choose(sites)
    if site is not None:
        n, readers, act = site
        limit = float(np.abs(s.values[act.input[0]]).max()) or 1.0
        kind = s.const(n.input[2]).dtype
        made = set_pair(s, n, readers, limit / 127, 0 if kind == np.int8 else 128)
        return [*made, *s.bypass(act, act.input[0])]
    # The quantizer took it away already: the range did its work, and is made symmetric now.
    ends = [(n, r) for n, r in pairs(s) if len(n.input) > 2 and s.const(n.input[2]).item() == np.iinfo(s.const(n.input[2]).dtype).min
            and s.values[n.input[0]].min() < 0]
    site = s.choose(ends)
    if site is None:
        return None
    kind = s.const(site[0].input[2]).dtype
    return set_pair(s, *site, s.const(site[0].input[1]) * 2, 0 if kind == np.int8 else 128)


def power_of_two(s):
    """A scale is rounded down to a power of two, and what does not fit is cut off."""
    site = s.choose([(n, r) for n, r in pairs(s) if np.log2(s.const(n.input[1]).item()) % 1 > 0.2])
    if site is None:
        return None
    return set_pair(s, *site, 2.0 ** np.floor(np.log2(s.const(site[0].input[1]).item())))


def zero_point_missing(s):
    """Not added when numbers are stored, but taken away when they are read."""
    site = s.choose([(n, r) for n, r in pairs(s) if len(n.input) > 2 and n.input[2] and s.const(n.input[2]) is not None and s.const(n.input[2]).any()])
    if site is None:
        return None
    node, readers = site
    return [*s.set_const(node, 2, np.zeros_like(s.const(node.input[2]))), *readers]


def weights_middle(s):
    """Stored weights are read as if they lay around the middle of what bytes hold."""
    nodes = [n for n in s.nodes("DequantizeLinear") if s.const(n.input[0]) is not None and s.const(n.input[0]).dtype == np.uint8
             and s.const(n.input[0]).ndim > 1 and len(n.input) > 2 and n.input[2] and (s.const(n.input[2]) != 128).any()]
    node = s.choose(nodes)
    if node is None:
        return None
    return [*s.set_const(node, 2, np.full_like(s.const(node.input[2]), 128)), node, *s.consumers(node.output[0])]


def other_calibration(s):
    """Ranges are from data that was prepared in another way: all are too narrow, or far too wide."""
    sites = list(pairs(s))
    if len(sites) < 3:
        return None
    factor, made = float(s.rng.choice([0.35, 0.6, 8.0])), []
    for n, readers in sites:
        made += set_pair(s, n, readers, s.const(n.input[1]) * factor * s.rng.uniform(0.8, 1.25))
    return made


ROWS = [
    ("quantizer_rectifier_removed", "onnxruntime", "microsoft/onnxruntime#11660", rectifier_removed),
    ("quantizer_power_of_two", "brevitas", "Xilinx/brevitas#78", power_of_two),
    ("quantizer_zero_point_missing", "QuEST", "hatchetProject/QuEST#18", zero_point_missing),
    ("quantizer_weights_middle", "compressed-tensors", "vllm-project/compressed-tensors#458", weights_middle),
    ("quantizer_other_calibration", "MQBench", "ModelTC/MQBench#39", other_calibration),
]
