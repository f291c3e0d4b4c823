"""Fourth generation: faults of norms and their parameters."""
import numpy as np

from faults3_norms import gains, normed

NORMS = ("LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization")


def removed(s, value):
    """Nodes that nobody reads any more are gone."""
    node = s.producer(value)
    while node is not None and not any(s.consumers(o) or s.is_output(o) for o in node.output):
        inputs = list(node.input)
        s.graph.node.remove(node)
        for x in inputs:
            removed(s, x)
        node = None


def written_out(s):
    """(what a norm of several nodes reads, what it gives)."""
    for node, _, _ in gains(s):
        if node.op_type != "Mul":
            continue
        out, now = normed(s, node)[0], {x for x in node.input if s.const(x) is None}
        for _ in range(5):
            makers = [m for m in map(s.producer, now) if m is not None]
            centred = [m for m in makers if m.op_type == "Sub" and s.made_by(m.input[1], "ReduceMean") is not None
                       and s.producer(m.input[1]).input[0] == m.input[0]]
            if centred and s.shape(centred[0].input[0]) == s.shape(out):
                yield centred[0].input[0], out
                break
            now = {x for m in makers if m.op_type in ("Div", "Mul", "Sqrt", "Reciprocal") for x in m.input if s.const(x) is None}


def norm_lost(s):
    sites = [(n.input[0], n.output[0]) for n in s.nodes(*NORMS)] + list(written_out(s))
    site = s.choose([x for x in sites if not s.is_output(x[1])])
    if site is None:
        return None
    value, out = site
    readers = s.consumers(out)
    for r in readers:
        for i, x in enumerate(r.input):
            if x == out:
                r.input[i] = value
    removed(s, out)
    before = s.producer(value)
    return ([before] if before is not None else []) + readers


def norm_offset_lost(s):
    """As if the framework's norm had none."""
    nodes = [n for n in s.nodes(*NORMS) if len(n.input) > 2 and n.input[2] and s.const(n.input[2]) is not None and s.const(n.input[2]).any()]
    adds = [a for n, _, _ in gains(s) for a in [normed(s, n)[1]] if a is not None]
    node = s.choose(nodes + adds)
    if node is None:
        return None
    if node.op_type == "Add":
        i = 0 if s.const(node.input[0]) is not None else 1
        return s.bypass(node, node.input[1 - i])
    return s.set_const(node, 2, np.zeros_like(s.const(node.input[2])))


def statistics_not_loaded(s):
    node = s.pick("BatchNormalization", lambda n: s.const(n.input[3]) is not None)
    if node is None:
        return None
    return s.set_const(node, 3, np.zeros_like(s.const(node.input[3]))) + s.set_const(node, 4, np.ones_like(s.const(node.input[4])))


def parameters(s):
    """(node, input, array) of all vectors and matrices that were trained."""
    for n in s.nodes("Conv", "ConvTranspose", "Gemm", "MatMul", "LayerNormalization", "BatchNormalization", "InstanceNormalization", "Mul", "Add"):
        for i, x in enumerate(n.input):
            c = s.const(x) if x else None
            if c is not None and c.dtype == np.float32 and c.size >= 6 and np.ptp(c) > 0 and (n.op_type not in ("Mul", "Add") or c.ndim == 1):
                yield n, i, c


def loaded_twice(s):
    """A layer has what belongs to another of its shape; that one has it, too."""
    sites = list(parameters(s))
    pair = s.choose([(a, b) for a in sites for b in sites if a[0] is not b[0] and a[0].op_type == b[0].op_type and a[1] == b[1]
                     and a[2].shape == b[2].shape and not np.array_equal(a[2], b[2])])
    return s.set_const(pair[0][0], pair[0][1], pair[1][2]) if pair else None


ROWS = [
    ("norm_lost", "speculators", "vllm-project/speculators#313", norm_lost),
    ("norm_offset_lost", "hls4ml", "fastmachinelearning/hls4ml#754", norm_offset_lost),
    ("norm_statistics_not_loaded", "tf2onnx", "onnx/tensorflow-onnx#1610", statistics_not_loaded),
    ("parameters_of_another_layer", "deep_q_rl", "spragunr/deep_q_rl#16", loaded_twice),
]
