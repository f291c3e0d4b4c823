"""Fifth generation: faults of quantizers."""
import numpy as np

from faults4_quantizers import pairs


def stored(s):
    return [n for n in s.nodes("DequantizeLinear") if s.const(n.input[0]) is not None and s.const(n.input[0]).ndim > 1 and s.const(n.input[1]) is not None]


def range_of_other_type(s):
    """Scales of stored weights were converted for numbers that reach further, which these do not."""
    made = []
    for n in stored(s):
        made += [*s.set_const(n, 1, s.const(n.input[1]) * np.float32(448 / 127)), n, *s.consumers(n.output[0])]
    return made or None


def half_a_step_more(s):
    """Stored with one divisor of the range, read with another that is half a step larger."""
    site = s.choose(pairs(s))
    if site is None:
        return None
    node, readers = site
    name = s.constant((s.const(node.input[1]) * np.float32(127.5 / 127)).reshape(s.const(node.input[1]).shape), "scale")
    for r in readers:
        r.input[1] = name
    return [node, *readers]


ROWS = [
    ("quantizer_range_of_other_type", "Model-Optimizer", "NVIDIA/Model-Optimizer#215", range_of_other_type),
    ("quantizer_half_a_step_more", "torchao", "pytorch/ao#644", half_a_step_more),
]
