"""Fifth generation: faults of attention, of positions, and of which token speaks for all."""
import numpy as np

from faults_attention import attention_scores
from faults4_structure import MOVES
from surgery import scalar


def square(s, value):
    shape = s.shape(value)
    return len(shape) == 4 and shape[-1] == shape[-2] > 2


def became_causal(s):
    """A reader in both directions sees only what came before."""
    made = []
    for n, chain in attention_scores(s):
        value = n.input[0]
        if not square(s, value) or np.min(np.max(s.values[value], (0, 1))) < -100 or s.producer(value) is None:
            continue
        length = s.shape(value)[-1]
        hide = np.triu(np.full((length, length), -1e4, np.float32), 1)
        made += s.after(value, ("Add", [".", s.constant(hide, "causal")], {}))
    return made or None


def mask_after_softmax(s):
    """Hidden places take their part of the softmax, and are cleared behind it."""
    sites = []
    for n, chain in attention_scores(s):
        add = s.made_by(n.input[0], "Add")
        if n.op_type != "Softmax" or add is None or len(s.consumers(n.input[0])) > 1:
            continue
        for i in (0, 1):
            mask = s.values.get(add.input[i], s.const(add.input[i]))
            if mask is not None and np.min(mask) < -1000 and np.max(mask) == 0:
                sites.append((n, add, i))
    site = s.choose(sites)
    if site is None:
        return None
    n, add, i = site
    mask, at = add.input[i], s.place(n)
    seen, keep = s.fresh("seen"), s.fresh("keep")
    made = [s.insert(at, "Greater", [mask, s.constant(np.float32(-1))], [seen]), s.insert(at + 1, "Cast", [seen], [keep], to=1)]
    made = [*made, *s.after(n.output[0], ("Mul", [".", keep], {}))]
    return [*made, *(s.bypass(add, add.input[1 - i]) or [])]


def buckets_one_sided(s):
    """All that comes later is as near as what is here; what came before is counted in all buckets."""
    def fits(n):
        index, rows = s.const(n.input[1]), s.const(n.input[0])
        return index is not None and index.ndim == 2 and index.shape[0] == index.shape[1] > 3 and rows is not None and rows.ndim == 2 \
            and np.all(np.diag(index) == 0)
    node = s.pick("Gather", fits)
    if node is None:
        return None
    n, buckets = s.const(node.input[1]).shape[0], s.const(node.input[0]).shape[0]
    gap = np.arange(n)[:, None] - np.arange(n)[None]
    return s.set_const(node, 1, np.minimum(np.maximum(gap, 0), buckets - 1).astype(s.const(node.input[1]).dtype))


def places_from_start(s):
    """Positions count padding, too."""
    def fits(n):
        x = n.input[1]
        for _ in range(4):
            p = s.producer(x)
            if p is None or not p.input or p.op_type == "CumSum":
                break
            x = p.input[0]
        return s.const(n.input[0]) is not None and p is not None and p.op_type == "CumSum" and len(s.shape(n.input[1])) == 2
    node = s.pick("Gather", fits)
    if node is None:
        return None
    length = s.shape(node.input[1])[1]
    return s.before(node, 1, ("Mul", [".", s.constant(np.int64(0))], {}), ("Add", [".", s.constant(np.arange(length)[None])], {}))


def last_is_padding(s):
    """The last place, whether it is text or not."""
    def fits(n):
        less = s.made_by(n.input[0], "Sub")
        return s.attr(n, "to") == 7 and less is not None and s.made_by(less.input[0], "ReduceSum") is not None
    node = s.pick("Cast", fits)
    if node is None:
        return None
    flags = s.producer(s.producer(node.input[0]).input[0]).input[0]
    last = s.constant(np.int64(s.shape(flags)[1] - 1))
    return s.after(node.output[0], ("Mul", [".", s.constant(np.int64(0))], {}), ("Add", [".", last], {}))


def turned(s, value):
    """The sum that turns queries or keys by their places, and what it turns; None: nothing does."""
    for _ in range(4):
        p = s.producer(value)
        if p is None or p.op_type not in (*MOVES, "Mul", "Div", "Concat", "Add"):
            return None
        if p.op_type == "Add":
            parts = [s.made_by(x, "Mul") for x in p.input]
            if not all(m is not None and any(s.const(x) is not None for x in m.input) for m in parts):
                return None
            plain = next((m.input[0] for m in parts if s.made_by(m.input[0], "Concat", "Reshape") is None), None)
            return (p, plain) if plain else None
        value = p.input[0]
    return None


def keys_not_turned(s):
    """Only who asks knows where it is."""
    sites = []
    for _, chain in attention_scores(s):
        found = turned(s, chain[-1].input[1])
        if found is not None and s.shape(found[1]) == s.shape(found[0].output[0]):
            sites.append(found)
    site = s.choose(sites)
    return s.bypass(*site) if site else None


def scaled_twice(s):
    """Once where queries are made, and once by who multiplies."""
    sites = []
    for _, chain in attention_scores(s):
        product = chain[-1]
        factors = [n for n in [*chain[:-1], s.producer(product.input[0])] if n is not None and n.op_type in ("Mul", "Div")
                   and scalar(s, n.input[1]) not in (None, 1.0)]
        if len(factors) == 1:
            c = scalar(s, factors[0].input[1])
            sites.append((product, c if factors[0].op_type == "Mul" else 1 / c))
    site = s.choose(sites)
    return s.after(site[0].output[0], ("Mul", [".", s.constant(np.float32(site[1]))], {})) if site else None


def layer_behind(s, value):
    """The product with a matrix of weights from which a value comes, through moves, scales and sums."""
    for _ in range(8):
        p = s.producer(value)
        if p is None or not p.input:
            return None
        if p.op_type in ("MatMul", "Gemm") and s.const(p.input[1]) is not None:
            return p
        if p.op_type not in (*MOVES, "Add", "Mul", "Div"):
            return None
        value = next((x for x in p.input if s.const(x) is None), None)
        if value is None:
            return None
    return None


def keys_from_values(s):
    """The same part of a joint matrix was taken for keys and for values."""
    sites = []
    for n, chain in attention_scores(s):
        shares = n.output[0]
        behind = next((b for b in s.consumers(shares) if b.op_type == "MatMul"), None)
        key, value = layer_behind(s, chain[-1].input[1]), behind is not None and layer_behind(s, behind.input[1])
        if key is not None and value and key is not value and s.const(key.input[1]).shape == s.const(value.input[1]).shape:
            sites.append((key, value))
    site = s.choose(sites)
    return s.set_const(site[0], 1, s.const(site[1].input[1])) if site else None


def filled_with_zeros(s):
    """Keys and values were looked for under another name."""
    sites = []
    for n, chain in attention_scores(s):
        behind = next((b for b in s.consumers(n.output[0]) if b.op_type == "MatMul"), None)
        found = [layer_behind(s, chain[-1].input[1]), layer_behind(s, behind.input[1]) if behind is not None else None]
        if all(f is not None for f in found) and found[0] is not found[1]:
            sites.append(found)
    site = s.choose(sites)
    return [m for n in site for m in s.set_const(n, 1, np.zeros_like(s.const(n.input[1])))] if site else None


def scale_of_heads(s):
    """Scores divided by the root of how many heads there are, not of how wide one is."""
    sites = []
    for _, chain in attention_scores(s):
        shape = s.shape(chain[-1].input[0])
        for n in [*chain[:-1], s.producer(chain[-1].input[0])]:
            c = scalar(s, n.input[1]) if n is not None and n.op_type in ("Mul", "Div") else None
            root = c if c is None or n.op_type == "Div" else 1 / c
            if root is not None and len(shape) == 4 and shape[1] not in (1, shape[3]) and np.isclose(root, shape[3] ** 0.5, rtol=1e-3):
                sites.append((n, shape[1]))
    site = s.choose(sites)
    if site is None:
        return None
    n, heads = site
    return s.set_const(n, 1, np.full_like(s.const(n.input[1]), heads ** (0.5 if n.op_type == "Div" else -0.5)))


def gate_squashed(s):
    """How much of a branch is added was meant as it is, not between nothing and all."""
    def gates(n):
        for i in (0, 1):
            wide = s.made_by(n.input[i], "Unsqueeze")
            if wide is not None and s.made_by(wide.input[0], "Split") is not None and any(b.op_type == "Add" for b in s.consumers(n.output[0])):
                if layer_behind(s, n.input[1 - i]) is not None:
                    yield n, i
    site = s.choose([x for n in s.nodes("Mul") for x in gates(n)])
    return s.before(*site, ("Sigmoid", ["."], {})) if site else None


def block_left_out(s):
    """One block too few."""
    sums = [n for n in s.nodes("Add") if all(s.const(x) is None and x in s.values for x in n.input) and s.shape(n.input[0]) == s.shape(n.input[1])]
    made = {n.output[0]: n for n in sums}
    sites = []
    for last in sums:
        for middle in (made[x] for x in last.input if x in made):
            sites += [(last, x) for x in middle.input if x in made and not s.is_output(last.output[0])]
    site = s.choose(sites)
    return s.bypass(*site) if site else None


ROWS = [
    ("keys_not_turned", "sglang", "kvcache-ai/sglang#31", keys_not_turned),
    ("attention_scaled_twice", "maxtext", "AI-Hypercomputer/maxtext#3138", scaled_twice),
    ("keys_from_values", "transformers", "huggingface/transformers#40253", keys_from_values),
    ("keys_filled_with_zeros", "TransformerLens", "TransformerLensOrg/TransformerLens#1620", filled_with_zeros),
    ("attention_scale_of_heads", "tt-metal", "tenstorrent/tt-metal#56789", scale_of_heads),
    ("gate_squashed", "transfusion-pytorch", "lucidrains/transfusion-pytorch#43", gate_squashed),
    ("became_causal", "transformers", "huggingface/transformers#46077", became_causal),
    ("mask_after_softmax", "timm", "huggingface/pytorch-image-models#2236", mask_after_softmax),
    ("relative_buckets_one_sided", "transformers", "huggingface/transformers#8518", buckets_one_sided),
    ("positions_count_padding", "TransformerLens", "TransformerLensOrg/TransformerLens#1610", places_from_start),
    ("last_token_is_padding", "peft", "huggingface/peft#3620", last_is_padding),
    ("block_left_out", "stable-diffusion-webui", "AUTOMATIC1111/stable-diffusion-webui#2001", block_left_out),
]
