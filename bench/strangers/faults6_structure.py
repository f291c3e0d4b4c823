"""Sixth generation: faults of new axes, of ends, of ones, and of what a policy, a body or a step of time asks."""
import numpy as np

from faults4_structure import computed
from surgery import scalar


def new_axis(s):
    """A new axis counted from behind stands one place too early, where both are as long."""
    sites = []
    for n in s.nodes("Unsqueeze"):
        axes = s.const(n.input[1]) if len(n.input) > 1 else s.attr(n, "axes")
        if axes is None or np.size(axes) != 1 or not computed(s, n.input[0]):
            continue
        rank = len(s.shape(n.output[0]))
        a = int(np.reshape(axes, -1)[0]) % rank
        kinds = {b.op_type for b in s.consumers(n.output[0])}
        sites += [(n, b) for b in (a - 1, a + 1) if 1 <= b < rank and kinds <= {"Sub", "Add", "Mul"} and s.shape(n.input[0])[min(a, b)] > 1]
    site = s.choose(sites)
    if site is None:
        return None
    n, axis = site
    if len(n.input) > 1:
        return s.set_const(n, 1, np.array([axis]))
    s.set_attr(n, "axes", [axis])
    return [n]


def adjoint_ignored(s):
    """That an operand is to be turned is not read, and its sides are as long."""
    def fits(n):
        perm = s.attr(n, "perm")
        turned = perm is not None and len(perm) > 2 and perm == [*range(len(perm) - 2), len(perm) - 1, len(perm) - 2]
        return turned and s.shape(n.input[0]) == s.shape(n.output[0]) and computed(s, n.input[0]) and {b.op_type for b in s.consumers(n.output[0])} == {"MatMul"}
    node = s.pick("Transpose", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def zeros_for_ones(s):
    """The number that fills is not read, and nothing stands where a one should."""
    node = s.pick("ConstantOfShape", lambda n: s.attr(n, "value") is not None)
    if node is None:
        return None
    s.set_attr(node, "value", None)
    return [node]


def end_by_rank(s):
    """From behind: the number of axes is added to the place, not the axis' length."""
    def fits(n):
        c = s.const(n.input[1])
        axis = s.attr(n, "axis", 0)
        return c is not None and c.size == 1 and c.item() < 0 and s.shape(n.input[0])[axis] > len(s.shape(n.input[0]))
    node = s.pick("Gather", fits)
    if node is None:
        return None
    c = s.const(node.input[1])
    return s.set_const(node, 1, np.full_like(c, c.item() + len(s.shape(node.input[0]))))


def sums_of_other_end(s):
    """Columns add up to one, where rows should, or the reverse."""
    def sites():
        for n in s.nodes("Div"):
            add = s.made_by(n.input[1], "Add")
            total = s.made_by(add.input[0], "ReduceSum") if add is not None else None
            if total is not None and total.input[0] == n.input[0] and len(s.shape(n.input[0])) == 3 and s.shape(n.input[0])[1] == s.shape(n.input[0])[2]:
                yield total
    node = s.choose(sites())
    if node is None:
        return None
    axes = s.const(node.input[1]) if len(node.input) > 1 else s.attr(node, "axes")
    other = [3 - int(np.reshape(axes, -1)[0]) % 3]
    if len(node.input) > 1:
        return s.set_const(node, 1, np.array(other))
    s.set_attr(node, "axes", other)
    return [node]


def advantages(s):
    """(Sub of a mean, its mean, the sum that it goes into)."""
    for n in s.nodes("Sub"):
        mean = s.made_by(n.input[1], "ReduceMean")
        behind = s.consumers(n.output[0])
        if mean is not None and mean.input[0] == n.input[0] and len(behind) == 1 and behind[0].op_type == "Add" and len(s.shape(n.output[0])) == 2:
            other = next((x for x in behind[0].input if x != n.output[0]), None)
            if other and computed(s, other) and s.shape(other)[-1] == 1:
                yield n, mean, behind[0], other


def mean_advantage_lost(s):
    site = s.choose(advantages(s))
    return s.bypass(site[0], site[0].input[0]) if site else None


def mean_of_value(s):
    """The mean is of the worth of the place, not of the moves'."""
    site = s.choose(advantages(s))
    if site is None:
        return None
    n, mean, _, value = site
    graph = s.graph
    at = s.place(n)
    if s.place(s.producer(value)) > at:
        return None
    out = s.fresh("mean")
    more = {a.name: s.attr(mean, a.name) for a in mean.attribute}
    made = s.insert(at, "ReduceMean", [value, *mean.input[1:]], [out], **more)
    graph.node[at + 1].input[1] = out
    return [made, graph.node[at + 1]]


def forbidden_counted(s):
    """What is not allowed counts as what it is."""
    def fits(n):
        hidden = scalar(s, n.input[2])
        return hidden is not None and hidden <= -50 and s.const(n.input[0]) is None and computed(s, n.input[1]) and len(s.shape(n.output[0])) == 2
    node = s.pick("Where", fits)
    return s.bypass(node, node.input[1]) if node is not None else None


def action_range_lost(s):
    """From minus one to one, whatever can be done."""
    def fits(n):
        wide = s.made_by(n.input[0], "Mul")
        c = s.const(n.input[1])
        return c is not None and c.size > 1 and wide is not None and s.const(wide.input[1]) is not None and s.const(wide.input[1]).size > 1 and \
            s.made_by(wide.input[0], "Tanh") is not None
    node = s.pick("Add", fits)
    return s.bypass(node, s.producer(node.input[0]).input[0]) if node is not None else None


def comparison_turned(s):
    """Below for above."""
    node = s.pick(("Less", "Greater"), lambda n: computed(s, n.input[0]) and s.const(n.input[1]) is not None)
    if node is None:
        return None
    node.op_type = {"Less": "Greater", "Greater": "Less"}[node.op_type]
    return [node]


def not_accumulated(s):
    """How much of the signal one step keeps, for how much all steps until here keep."""
    made = []
    for n in s.nodes("Gather"):
        c = s.const(n.input[0])
        if c is not None and c.ndim == 1 and c.size > 8 and c.dtype == np.float32 and np.all(np.diff(c) < 0) and 0 < c[-1] < c[0] < 1:
            made += s.set_const(n, 0, np.concatenate([c[:1], c[1:] / c[:-1]]))
    return made or None


def time_backwards(s):
    """Time runs up, where it runs down."""
    names = {i.name for i in s.graph.input}

    def fits(n):
        x = n.input[1]
        for _ in range(3):
            p = s.producer(x)
            if p is None or not p.input:
                break
            x = p.input[0]
        share = x in names and s.shape(n.input[1])[-1:] == (1,) and np.min(s.values[n.input[1]]) > 0
        return scalar(s, n.input[0]) == 1 and share and s.made_by(n.input[1], "Gather", "Unsqueeze") is None
    node = s.pick("Sub", fits)
    return s.bypass(node, node.input[1]) if node is not None else None


def first_input_for_both(s):
    """A network of two inputs gets the first one twice."""
    shapes = {}
    for i in s.graph.input:
        dims = tuple(str(d.dim_param or d.dim_value) for d in i.type.tensor_type.shape.dim)
        shapes.setdefault((i.type.tensor_type.elem_type, dims), []).append(i.name)
    pair = s.choose([v for v in shapes.values() if len(v) == 2 and len(s.shape(v[0])) > 2])
    if pair is None:
        return None
    readers = s.consumers(pair[1])
    for n in readers:
        for i, x in enumerate(n.input):
            if x == pair[1]:
                n.input[i] = pair[0]
    return readers or None


def other_order_of_axes(s):
    """Harmonics of the first degree as x, y, z, where they are y, z, x."""
    def fits(n):
        made = [s.made_by(x, "Split") for x in n.input]
        return len(n.input) == 3 and made[0] is not None and all(m is not None and m.output[0] == made[0].output[0] for m in made) and \
            list(n.input) != list(made[0].output)
    node = s.pick("Concat", fits)
    if node is None:
        return None
    parts = list(s.producer(node.input[0]).output)
    for i in range(3):
        node.input[i] = parts[i]
    return [node]


def own_energy_lost(s):
    """What each atom has alone is not added."""
    def sites():
        for n in s.nodes("Add"):
            for i in (0, 1):
                g = s.made_by(n.input[i], "Gather")
                table = s.const(g.input[0]) if g is not None else None
                if table is not None and table.ndim == 2 and table.shape[1] <= 2 and len(table) > 2 and computed(s, n.input[1 - i]):
                    yield n, n.input[1 - i]
    site = s.choose(sites())
    return s.bypass(*site) if site else None


def phase_not_accumulated(s):
    """How far a wave goes in a step, for how far it has come."""
    node = s.pick("CumSum", lambda n: any(b.op_type == "Mul" and any(c.op_type == "Sin" for c in s.consumers(b.output[0])) for b in s.consumers(n.output[0])))
    return s.bypass(node, node.input[0]) if node is not None else None


ROWS = [
    ("new_axis_one_too_early", "onnxruntime-web", "microsoft/onnxruntime#11944", new_axis),
    ("adjoint_ignored", "LiteRT", "google-ai-edge/LiteRT#8912", adjoint_ignored),
    ("zeros_for_ones", "skl2onnx", "onnx/sklearn-onnx#709", zeros_for_ones),
    ("end_by_rank", "openvino", "openvinotoolkit/openvino#22039", end_by_rank),
    ("sums_of_other_end", "COTREC", "xiaxin1998/COTREC#13", sums_of_other_end),
    ("mean_advantage_lost", "RLcode", "louisnino/RLcode#1", mean_advantage_lost),
    ("mean_of_value", "Simple-DQN-Pytorch", "tqjxlm/Simple-DQN-Pytorch#1", mean_of_value),
    ("forbidden_moves_count", "stable-baselines3", "Stable-Baselines-Team/stable-baselines3-contrib#212", forbidden_counted),
    ("action_range_lost", "IsaacLab", "isaac-sim/IsaacLab#2636", action_range_lost),
    ("comparison_turned", "deveel-math", "deveel/deveel-math#8", comparison_turned),
    ("shares_not_accumulated", "diffusers", "huggingface/diffusers#26", not_accumulated),
    ("time_backwards", "modflows", "maria-larchenko/modflows#12", time_backwards),
    ("first_input_for_both", "sparseml", "neuralmagic/sparseml#284", first_input_for_both),
    ("harmonics_in_other_order", "e3nn", "dcharatan/pixelsplat#23", other_order_of_axes),
    ("own_energies_lost", "psiflow", "molmod/psiflow#51", own_energy_lost),
    ("phase_not_accumulated", "Retrieval-based-Voice-Conversion", "RVC-Project/Retrieval-based-Voice-Conversion-WebUI#2439", phase_not_accumulated),
]
