"""Third generation: faults of control flow, states, graphs, trees and kernels."""
import numpy as np

from surgery import scalar

PLAIN = ("Slice", "AveragePool", "MaxPool", "ReduceMean", "ReduceMax", "ReduceSum", "Mul", "Pow", "Gather", "Conv", "MatMul", "Add", "Sub")


def branches_merged(s):
    """Two nodes of one kind with one input are taken for the same; what else they have is not looked at."""
    nodes = [n for n in s.nodes(*PLAIN) if not s.is_output(n.output[0]) and len(n.output) == 1]
    pairs = [(a, b) for k, a in enumerate(nodes) for b in nodes[k + 1:] if a.op_type == b.op_type and a.input[0] == b.input[0]
             and s.shape(a.output[0]) == s.shape(b.output[0]) and not np.array_equal(s.values[a.output[0]], s.values[b.output[0]])
             and all(s.const(x) is not None for n in (a, b) for x in n.input[1:] if x)]
    pair = s.choose(pairs)
    if pair is None:
        return None
    a, b = pair
    readers = s.consumers(b.output[0])
    for r in readers:
        for i, x in enumerate(r.input):
            if x == b.output[0]:
                r.input[i] = a.output[0]
    s.graph.node.remove(b)
    return [a, *readers]


def trip_count(s):
    """A loop that ends a turn early."""
    node = s.pick("Loop", lambda n: s.const(n.input[0]) is not None and int(s.const(n.input[0]).reshape(-1)[0]) > 1)
    return s.set_const(node, 0, s.const(node.input[0]) - 1) if node is not None else None


def branch_frozen(s):
    """Always the branch that the traced input took."""
    node = s.pick("If")
    if node is None:
        return None
    node.input[0] = s.constant(~np.asarray(s.values[node.input[0]]))
    return [node]


def scatter_zeros(s):
    """The largest of what comes in and of nothing."""
    node = s.pick("ScatterElements", lambda n: s.attr(n, "reduction") == "max" and s.const(n.input[0]) is not None and s.const(n.input[0]).max() < -1e6)
    return s.set_const(node, 0, np.zeros_like(s.const(node.input[0]))) if node is not None else None


def edges_reversed(s):
    """Messages go from where an edge ends to where it begins."""
    given = [i.name for i in s.graph.input if s.shape(i.name)[0] == 2 and s.values[i.name].dtype == np.int64]
    rows = [n for n in s.nodes("Slice") if n.input[0] in given]
    if len(rows) != 2:
        return None
    a, b = rows
    starts = [(s.const(n.input[1]), s.const(n.input[2])) for n in (b, a)]
    return [m for n, (start, end) in zip(rows, starts) for m in s.set_const(n, 1, start) + s.set_const(n, 2, end)]


def ceiling_lost(s):
    node = s.pick("Ceil")
    if node is None:
        return None
    node.op_type = "Floor"
    return [node]


# ---- recurrent layers ----

def gate_sense(s):
    """A gate lets the old state through, where it should let the new one."""
    def arms(n):
        muls = [s.made_by(x, "Mul") for x in n.input]
        if len(muls) != 2 or None in muls or muls[0] is muls[1]:
            return None
        for a, b in (muls, muls[::-1]):
            for i in (0, 1):
                rest = s.made_by(a.input[i], "Sub")
                if rest is not None and scalar(s, rest.input[0]) == 1 and rest.input[1] in b.input:
                    return (a, 1 - i), (b, 1 - list(b.input).index(rest.input[1]))
        return None
    node = s.pick("Add", lambda n: arms(n) is not None)
    if node is None:
        return None
    (a, i), (b, j) = arms(node)
    if max(s.place(m) for m in map(s.producer, (a.input[i], b.input[j])) if m is not None) > min(s.place(a), s.place(b)):
        return None
    a.input[i], b.input[j] = b.input[j], a.input[i]
    return [a, b]


def started(s, least=6):
    return [n for n in s.nodes("LSTM", "GRU", "RNN") if len(n.input) >= least and all(n.input[5:least])]


def first_states(s):
    """Every layer begins from the first layer's states."""
    nodes = started(s, 7)
    others = [n for n in nodes[1:] if list(n.input[5:7]) != list(nodes[0].input[5:7]) and s.shape(n.input[5]) == s.shape(nodes[0].input[5])]
    node = s.choose(others)
    if node is None:
        return None
    node.input[5], node.input[6] = nodes[0].input[5], nodes[0].input[6]
    return [node]


def cell_from_hidden(s):
    """One state is given for two."""
    node = s.choose([n for n in started(s, 7) if n.op_type == "LSTM"])
    if node is None:
        return None
    node.input[6] = node.input[5]
    return [node]


def directions_of_states(s):
    def kept(n):
        add = s.made_by(n.input[5], "Add")
        return next(((add, i) for i in (0, 1) if add is not None and s.const(add.input[i]) is not None and s.const(add.input[i]).shape[0] == 2), None)
    node = s.choose([n for n in started(s) if kept(n) is not None])
    if node is None:
        return None
    add, i = kept(node)
    return [*s.set_const(add, i, s.const(add.input[i])[::-1].copy()), node]


def reversed_whole(s):
    """Sequences are turned round with their padding."""
    node = s.pick("ReverseSequence")
    if node is None:
        return None
    axis, x = s.attr(node, "time_axis", 0), node.input[0]
    node.op_type = "Slice"
    del node.attribute[:], node.input[:]
    node.input.extend([x, *(s.constant(np.array([v]), "part") for v in (-1, np.iinfo(np.int64).min, axis, -1))])
    return [node]


# ---- trees, kernels, scores ----

def thresholds(s):
    """Thresholds in single precision, a hair below or above those in double."""
    def fits(n):
        c = s.const(n.input[1])
        return c is not None and c.dtype == np.float32 and c.size > 1 and np.array_equal(c, np.rint(c)) and s.made_by(n.input[0], "MatMul") is not None
    node = s.pick(("LessOrEqual", "Less"), fits)
    if node is None:
        return None
    side = -np.inf if node.op_type == "LessOrEqual" else np.inf
    return s.set_const(node, 1, np.nextafter(s.const(node.input[1]), np.float32(side)))


def base_of(s):
    """(Add, input) of a number in front of the last sigmoid."""
    for n in s.nodes("Sigmoid"):
        add = s.made_by(n.input[0], "Add") if s.is_output(n.output[0]) else None
        for i in (0, 1) if add is not None else ():
            if scalar(s, add.input[i]) is not None:
                yield add, i


def base_lost(s):
    site = s.choose(base_of(s))
    return s.bypass(site[0], site[0].input[1 - site[1]]) if site else None


def base_as_share(s):
    """A share where its logit should be."""
    site = s.choose(base_of(s))
    if site is None:
        return None
    c = s.const(site[0].input[site[1]])
    return s.set_const(*site, (1 / (1 + np.exp(-c))).astype(np.float32))


def score_doubled(s):
    """One score for two kinds, given to both with opposite signs."""
    def pair(n):
        return any(b.op_type == "Concat" and len(b.input) == 2 and s.made_by(b.input[0], "Sub") is not None for b in s.consumers(n.output[0]))
    node = s.pick("Sigmoid", pair)
    return s.before(node, 0, ("Mul", [".", s.constant(np.float32(2))], {})) if node is not None else None


def labels_normalized(s):
    """Independent labels are made to add up to one."""
    node = s.pick("Sigmoid", lambda n: s.is_output(n.output[0]) and len(s.shape(n.output[0])) == 2 and s.shape(n.output[0])[1] > 2)
    return s.after(node.output[0], ("LpNormalization", ["."], {"axis": 1, "p": 1})) if node is not None else None


def kernel_width(s):
    """A width that should have been squared."""
    def of_bell(n):
        v = scalar(s, n.input[1])
        return v is not None and v < 0 and abs(v + 0.5) > 0.02 and any(b.op_type == "Exp" for b in s.consumers(n.output[0]))
    node = s.pick("Mul", of_bell)
    if node is None:
        return None
    c = s.const(node.input[1])
    return s.set_const(node, 1, (-0.5 / np.sqrt(-0.5 / c)).astype(np.float32))


ROWS = [
    ("branches_merged", "onnx optimizer", "onnx/optimizer#254", branches_merged),
    ("trip_count", "torch.onnx", "pytorch/pytorch#54297", trip_count),
    ("branch_frozen", "torch.jit", "pytorch/pytorch#21774", branch_frozen),
    ("scatter_includes_self", "pytorch_geometric", "pyg-team/pytorch_geometric#9587", scatter_zeros),
    ("edges_reversed", "spektral", "danielegrattarola/spektral#240", edges_reversed),
    ("ceiling_lost", "tf2onnx", "onnx/tensorflow-onnx#2174", ceiling_lost),
    ("update_gate_sense", "RESCAN", "XiaLiPKU/RESCAN#2", gate_sense),
    ("states_of_first_layer", "tf2onnx", "onnx/tensorflow-onnx#1264", first_states),
    ("cell_from_hidden_state", "onnx-tensorflow", "onnx/onnx-tensorflow#408", cell_from_hidden),
    ("states_of_directions", "onnx-tensorflow", "onnx/onnx-tensorflow#409", directions_of_states),
    ("reverse_ignores_lengths", "tensorflow", "tensorflow/tensorflow#2895", reversed_whole),
    ("thresholds_a_hair_off", "skl2onnx", "onnx/sklearn-onnx#1192", thresholds),
    ("base_score_lost", "onnxmltools", "onnx/onnxmltools#566", base_lost),
    ("base_score_as_share", "onnxmltools", "onnx/onnxmltools#771", base_as_share),
    ("score_doubled", "skl2onnx", "onnx/sklearn-onnx#1116", score_doubled),
    ("labels_normalized", "skl2onnx", "onnx/sklearn-onnx#113", labels_normalized),
    ("kernel_width", "d2l", "d2l-ai/d2l-en#2665", kernel_width),
]
