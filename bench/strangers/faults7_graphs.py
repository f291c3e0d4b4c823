"""Seventh generation: faults of links, walks, polynomials, bodies, values of moves, and samplers' steps; and of weights."""
import numpy as np

from faults4_structure import computed
from faults7_activations import kinds_behind
from surgery import scalar


def slope_after_sum(s):
    """One number for each pair first, then the slope."""
    def fits(n):
        behind = s.consumers(n.output[0])
        w = s.const(behind[0].input[1]) if len(behind) == 1 and behind[0].op_type == "MatMul" else None
        return w is not None and w.shape[-1] == 1
    node = s.pick("LeakyRelu", fits)
    if node is None:
        return None
    product = s.consumers(node.output[0])[0]
    x, out, middle = node.input[0], product.output[0], s.fresh("pair")
    product.input[0], product.output[0] = x, middle
    alpha, name = s.attr(node, "alpha", 0.01), node.name
    s.graph.node.remove(node)
    made = s.insert(s.place(product) + 1, "LeakyRelu", [middle], [out], alpha=alpha)
    made.name = name
    return [product, made]


def own_share_lost(s):
    """Each counts itself as much as its neighbours."""
    def fits(n):
        behind = s.consumers(n.output[0])
        summed = len(behind) == 1 and behind[0].op_type == "Add" and any(s.made_by(x, "MatMul") is not None for x in behind[0].input)
        return summed and 1 < (scalar(s, n.input[1]) or 0) < 1.6
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def evened_at_one_end(s):
    """Links by the numbers at one end alone."""
    def fits(n):
        first, turned = s.made_by(n.input[0], "Mul"), s.made_by(n.input[1], "Transpose")
        return first is not None and turned is not None and turned.input[0] == first.input[1]
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def restart_turned(s):
    """As often anew as it should go on."""
    made = []
    for n in s.nodes("Add"):
        a, b = (s.made_by(x, "Mul") for x in n.input)
        p, q = (scalar(s, m.input[1]) if m is not None else None for m in (a, b))
        if p is not None and q is not None and abs(p + q - 1) < 1e-5 and p > q and s.made_by(a.input[0], "MatMul") is not None:
            made.append((a, b))
    out = []
    for a, b in made:
        p, q = s.const(a.input[1]).copy(), s.const(b.input[1]).copy()
        out += s.set_const(a, 1, q) + s.set_const(b, 1, p)
    return out or None


def two_of_recurrence_lost(s):
    """Each polynomial from the last one once, not twice."""
    def fits(n):
        behind = s.consumers(n.output[0])
        less = len(behind) == 1 and behind[0].op_type == "Sub" and behind[0].input[0] == n.output[0]
        return less and scalar(s, n.input[1]) == 2 and s.made_by(n.input[0], "MatMul") is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def one_of_length_lost(s):
    """Directions of length one, where near ones were to count less."""
    def fits(n):
        return scalar(s, n.input[1]) == 1 and s.made_by(n.input[0], "Sqrt") is not None and kinds_behind(s, n.output[0]) == ["Div"]
    node = s.pick("Add", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def unit_of_angle_lost(s):
    """Numbers are taken for angles."""
    def fits(n):
        return scalar(s, n.input[1]) is not None and s.made_by(n.input[0], "Gather") is not None and kinds_behind(s, n.output[0]) == ["Cos", "Sin"]
    node = s.pick(("Div", "Mul"), fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def numbers_from_nothing(s):
    """Shares of numbers from nothing on, where they lay on both sides."""
    def fits(n):
        c = s.const(n.input[1])
        if c is None or c.shape[-1] != 1 or c.size < 5 or abs(float(c.sum())) > 1e-3 or c.min() > -1:
            return False
        steps = np.diff(c.reshape(-1))
        return np.allclose(steps, steps[0], atol=1e-4)
    node = s.pick("MatMul", fits)
    if node is None:
        return None
    c = s.const(node.input[1])
    return s.set_const(node, 1, c - c.min())


def root_of_value_kept(s):
    """A value as the network has it, not as the game counts."""
    node = s.pick("Mul", lambda n: s.made_by(n.input[0], "Sign") is not None and s.made_by(n.input[1], "Sub") is not None)
    return s.bypass(node, s.producer(node.input[0]).input[0]) if node is not None else None


def size_of_guided_kept(s):
    """What is wished for is as large as it comes."""
    def fits(n):
        a, b = (s.made_by(x, "Mul") for x in n.input)
        p, q = (scalar(s, m.input[1]) if m is not None else None for m in (a, b))
        again = s.made_by(a.input[0], "Mul") if a is not None else None
        return p is not None and q is not None and abs(p + q - 1) < 1e-5 and again is not None and s.made_by(again.input[1], "Div") is not None
    node = s.pick("Add", fits)
    return s.bypass(node, s.producer(node.input[1]).input[0]) if node is not None else None


def length_of_columns_lost(s):
    """Columns as the adapter left them, without the length that was learned."""
    def fits(n):
        share = s.made_by(n.input[1], "Div")
        length = s.made_by(share.input[1], "Sqrt", "ReduceL2") if share is not None else None
        return length is not None and s.const(share.input[0]) is not None and s.made_by(n.input[0], "MatMul") is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def noise_left_in(s):
    """Weights with the noise of training."""
    sites = []
    for n in s.nodes("MatMul", "Gemm"):
        w = s.const(n.input[1])
        if w is not None and w.ndim == 2 and min(w.shape) > 3 and computed(s, n.input[0]) and len(s.shape(n.input[0])) == 2:
            sites.append((n, w))
    site = s.choose(sites)
    if site is None:
        return None
    n, w = site
    a, b = (s.rng.standard_normal(k) for k in w.shape)
    noise = np.outer(*(np.sign(v) * np.sqrt(np.abs(v)) for v in (a, b))) * 0.5 / np.sqrt(max(w.shape))
    return s.set_const(n, 1, (w + noise).astype(np.float32))


def bytes_wrap(s):
    """Weights beyond the largest byte begin anew from below."""
    sites = []
    for n in s.nodes("DequantizeLinear"):
        q = s.const(n.input[0])
        if q is not None and q.dtype == np.int8 and q.size > 20:
            sites.append((n, q))
    site = s.choose(sites)
    if site is None:
        return None
    n, q = site
    scale = s.const(n.input[1])
    wide = np.rint(q.astype(np.float64) * 1.12)
    made = s.set_const(n, 0, wide.astype(np.int64).astype(np.int8))
    return made + s.set_const(n, 1, (scale / np.float32(1.12)).astype(scale.dtype))


ROWS = [
    ("slope_after_sum", "torch-geometric", "pyg-team/pytorch_geometric#8200", slope_after_sum),
    ("own_share_lost", "SimSGT", "syr-cn/SimSGT#4", own_share_lost),
    ("evened_at_one_end", "pygcn", "tkipf/pygcn#11", evened_at_one_end),
    ("restart_turned", "ngraph.pagerank", "anvaka/ngraph.pagerank#1", restart_turned),
    ("two_of_recurrence_lost", "ProNE", "THUDM/ProNE#14", two_of_recurrence_lost),
    ("one_of_length_lost", "egnn-pytorch", "lucidrains/egnn-pytorch#7", one_of_length_lost),
    ("unit_of_angle_lost", "KnowledgeGraphEmbedding", "DeepGraphLearning/KnowledgeGraphEmbedding#9", unit_of_angle_lost),
    ("numbers_from_nothing", "muzero-pytorch", "koulanurag/muzero-pytorch#14", numbers_from_nothing),
    ("root_of_value_kept", "EfficientZero", "YeWR/EfficientZero#13", root_of_value_kept),
    ("size_of_guided_kept", "diffusers", "huggingface/diffusers#4558", size_of_guided_kept),
    ("length_of_columns_lost", "unsloth", "unslothai/unsloth-zoo#828", length_of_columns_lost),
    ("noise_left_in", "coach", "IntelLabs/coach#368", noise_left_in),
    ("quantizer_bytes_wrap", "sentence-transformers", "huggingface/sentence-transformers#3847", bytes_wrap),
]
