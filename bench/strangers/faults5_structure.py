"""Fifth generation: steps, bins, layouts, what is joined, and what a step of a sampler mixes."""
import numpy as np

from faults4_structure import computed
from surgery import scalar


def bins(c):
    """Number of bins of a matrix that takes means over a side, and whether they are its rows; None: it is no such matrix."""
    if c is None or c.ndim != 2 or c.min() < 0 or min(c.shape) < 2 or c.shape[0] == c.shape[1]:
        return None
    rows = c.shape[0] < c.shape[1]
    m = c if rows else c.T
    return (len(m), rows) if np.allclose(m.sum(1), 1, atol=1e-5) and (m > 0).sum(0).max() > 1 else None


def adaptive_bins(s):
    """Bins of one size, a step apart."""
    sites = [(n, i, *bins(s.const(x))) for n in s.nodes("MatMul") for i, x in enumerate(n.input) if bins(s.const(x))]
    choice = s.choose(sites)
    if choice is None:
        return None
    made = []
    for n, i, count, rows in sites:
        if count != choice[2]:
            continue
        c = s.const(n.input[i])
        side = max(c.shape)
        step = side // count
        size = side - (count - 1) * step
        m = np.zeros((count, side), np.float32)
        for k in range(count):
            m[k, k * step:k * step + size] = 1 / size
        made += s.set_const(n, i, m if rows else np.ascontiguousarray(m.T))
    return made


def step_lost(s):
    """Neighbours, not every second one."""
    made = []
    for n in s.nodes("Slice"):
        step = s.const(n.input[4]) if len(n.input) > 4 and n.input[4] else None
        if step is None or step.size != 1 or step.item() < 2 or s.const(n.input[1]) is None:
            continue
        axis = int(s.const(n.input[3]).item())
        start = int(s.const(n.input[1]).item())
        made += s.set_const(n, 2, np.array([start + s.shape(n.output[0])[axis]]))
        made += s.set_const(n, 4, np.array([1]))
    return made or None


def sides_of_picture(s):
    """Columns before rows."""
    names = {i.name for i in s.graph.input}
    node = s.pick("Transpose", lambda n: n.input[0] in names and s.attr(n, "perm") == [0, 3, 1, 2] and s.shape(n.input[0])[1] == s.shape(n.input[0])[2])
    if node is None:
        return None
    s.set_attr(node, "perm", [0, 3, 2, 1])
    return [node]


def flow_not_scaled(s):
    """Twice as many pixels, and as many of them to go as before."""
    node = s.pick("Mul", lambda n: s.made_by(n.input[0], "Resize") is not None and (scalar(s, n.input[1]) or 0) > 1)
    return s.bypass(node, node.input[0]) if node is not None else None


def guidance_less_one(s):
    """How much beyond the condition, taken for how much beyond no condition."""
    def fits(n):
        gap = s.made_by(n.input[0], "Sub")
        return (scalar(s, n.input[1]) or 0) > 1.5 and gap is not None and any(b.op_type == "Add" and gap.input[1] in b.input for b in s.consumers(n.output[0]))
    node = s.pick("Mul", fits)
    return s.set_const(node, 1, s.const(node.input[1]) + np.float32(s.rng.choice([-1, 1]))) if node is not None else None


ROWS = [
    ("adaptive_bins", "torch.onnx", "pytorch/pytorch#74034", adaptive_bins),
    ("slice_step_lost", "ncnn", "Tencent/ncnn#6257", step_lost),
    ("sides_of_picture_exchanged", "lpips-tensorflow", "alexlee-gk/lpips-tensorflow#2", sides_of_picture),
    ("flow_not_scaled", "optical-flow", "ericPrince/optical-flow#3", flow_not_scaled),
    ("guidance_less_one", "diffusers", "huggingface/diffusers#5882", guidance_less_one),
]
