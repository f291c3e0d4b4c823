"""Second generation: faults of attention, positions and what is taken from a sequence."""
import numpy as np

from surgery import scalar


def matrix_masks(s):
    """Constants that are added to scores: nothing where something is seen, a large negative number elsewhere."""
    for n in s.nodes("Add"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is not None and c.ndim >= 2 and c.shape[-1] == c.shape[-2] > 2 and c.size == c.shape[-1] ** 2 and c.min() < -1e3 and c.max() == 0:
                yield n, i, c


def window_off_by_one(s):
    """One more place in the past is seen."""
    def widened(c):
        seen = c.reshape(c.shape[-2:]) == 0
        length = len(seen)
        d = np.arange(length)[:, None] - np.arange(length)
        width = int(d[seen].max()) + 1
        if width >= length or not np.array_equal(seen, (d >= 0) & (d < width)):
            return None
        return np.where((d >= 0) & (d <= width), 0, c.min()).astype(c.dtype).reshape(c.shape)
    site = s.choose([x for x in matrix_masks(s) if widened(x[2]) is not None])
    return s.set_const(site[0], site[1], widened(site[2])) if site else None


def slopes(s):
    """Constants whose heads are a geometric sequence."""
    for n in s.nodes("Add", "Mul"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is None or c.dtype != np.float32 or c.ndim != 4 or c.shape[1] < 2:
                continue
            rows = c.reshape(c.shape[1], -1)[:, -1]
            if rows[0] and np.allclose(rows[1:] / rows[:-1], rows[1] / rows[0], rtol=1e-5) and 0 < rows[1] / rows[0] < 0.9:
                yield n, i, c, rows[1] / rows[0]


def slope_exponent(s):
    """The first head's slope has exponent 0."""
    site = s.choose(slopes(s))
    return s.set_const(site[0], site[1], (site[2] / site[3]).astype(np.float32)) if site else None


def rotary_tables(s):
    """(node, input, table, whether it is of cosines): rows are positions."""
    for n in s.nodes("Mul"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is not None and c.dtype == np.float32 and c.ndim == 2 and min(c.shape) > 2 and np.abs(c).max() <= 1:
                if np.allclose(c[0], 1, atol=1e-6) and np.isclose(c[1, 0], np.cos(1), atol=1e-5):
                    yield n, i, c, True
                elif np.allclose(c[0], 0, atol=1e-6) and np.isclose(c[1, 0], np.sin(1), atol=1e-5):
                    yield n, i, c, False


def rotary_base(s):
    """The default base for the one of the configuration, in every layer."""
    sites = list(rotary_tables(s))
    made, power = [], 0.65 + 0.1 * s.rng.random()
    for n, i, c, cosine in sites:
        first = (np.arccos if cosine else np.arcsin)(c[1].astype(np.float64)) ** power
        angle = np.arange(len(c))[:, None] * first[None]
        made += s.set_const(n, i, (np.cos if cosine else np.sin)(angle).astype(np.float32))
    return made or None


def back_to_weight(s, value):
    """The MatMul or Gemm that made it, through additions, moves and scales."""
    for _ in range(6):
        p = s.producer(value)
        if p is None:
            return None
        if p.op_type in ("MatMul", "Gemm"):
            return p if s.const(p.input[1]) is not None else None
        if p.op_type not in ("Add", "Reshape", "Transpose", "Mul", "Slice", "Neg", "Concat", "Tile", "Unsqueeze"):
            return None
        value = next((x for x in p.input if s.const(x) is None), None)
        if value is None:
            return None
    return None


def rotary_weights(s):
    """Columns of queries and keys in the order of pairs, for rotations that take halves (or the reverse)."""
    found = []
    for n, i, c, cosine in rotary_tables(s):
        size = s.shape(n.output[0])[-1] * (1 if c.shape[1] == s.shape(s.producer(n.input[1 - i]).input[0])[-1] else 2)
        product = back_to_weight(s, n.input[1 - i])
        if cosine and product is not None and all(product is not p for p, _ in found):
            found.append((product, size))
    if len(found) < 2:
        return None
    k = 2 * int(s.rng.integers(len(found) // 2))
    made = []
    for product, size in found[k:k + 2]:
        w = s.const(product.input[1])
        if w.shape[1] % size:
            return None
        pairs = w.reshape(w.shape[0], -1, size // 2, 2).swapaxes(2, 3).reshape(w.shape)
        made += s.set_const(product, 1, np.ascontiguousarray(pairs))
    return made


def fused_order(s):
    """Heads first for queries, keys, values first, or the reverse: columns of a fused weight."""
    def shape(n):
        behind = s.consumers(n.output[0])
        behind = [c for b in behind for c in (s.consumers(b.output[0]) if b.op_type == "Add" else [b])]
        reshape = next((b for b in behind if b.op_type == "Reshape" and len(s.shape(b.output[0])) == 5), None)
        full = s.shape(reshape.output[0])[2:] if reshape is not None else ()
        w = s.const(n.input[1])
        fused = w is not None and w.ndim == 2 and 3 in full[:2] and full[0] != full[1] and w.shape[1] == np.prod(full)
        return full if fused else None
    node = s.pick("MatMul", lambda n: shape(n) is not None)
    if node is None:
        return None
    full, w = shape(node), s.const(node.input[1])
    other = w.reshape(w.shape[0], full[1], full[0], full[2]).swapaxes(1, 2)
    made = s.set_const(node, 1, np.ascontiguousarray(other).reshape(w.shape))
    add = next((c for c in s.consumers(node.output[0]) if c.op_type == "Add"), None)
    if add is not None:
        i = 0 if s.const(add.input[0]) is not None else 1
        b = s.const(add.input[i])
        made += s.set_const(add, i, np.ascontiguousarray(b.reshape(full[1], full[0], full[2]).swapaxes(0, 1)).reshape(b.shape))
    return made


def relative_sign(s):
    """Distances from keys to queries for those from queries to keys."""
    def square(n):
        index, table = s.const(n.input[1]), s.const(n.input[0])
        length = round(index.size ** 0.5) if index is not None else 0
        return table is not None and table.ndim == 2 and length > 2 and length ** 2 == index.size
    node = s.pick("Gather", square)
    if node is None:
        return None
    index = s.const(node.input[1])
    length = round(index.size ** 0.5)
    return s.set_const(node, 1, np.ascontiguousarray(index.reshape(length, length).T).reshape(index.shape))


def heads_not_turned_back(s):
    def merges(n):
        behind = s.consumers(n.output[0])
        if s.attr(n, "perm") != [0, 2, 1, 3] or [b.op_type for b in behind] != ["Reshape"] or len(s.shape(behind[0].output[0])) != 3:
            return False
        return s.const(behind[0].input[1]) is not None and 0 not in s.const(behind[0].input[1])[1:]
    node = s.pick("Transpose", merges)
    return s.bypass(node, node.input[0]) if node is not None else None


def comparison(s):
    """< or equal."""
    node = s.pick(("Less", "Greater"), lambda n: s.opset >= 12 and len(s.shape(n.output[0])) >= 2)
    if node is None:
        return None
    node.op_type += "OrEqual"
    return [node]


def triangle(s):
    node = s.pick("Trilu", lambda n: len(n.input) > 1 and n.input[1] and int(s.const(n.input[1]).reshape(-1)[0]) != 0)
    return s.set_const(node, 1, np.array(0)) if node is not None else None


def pooled_token(s):
    """The last token for the first, or the first for the last."""
    def one(n):
        index = s.const(n.input[1])
        length = s.shape(n.input[0])[1] if len(s.shape(n.input[0])) == 3 else 0
        return s.attr(n, "axis", 0) == 1 and index is not None and index.size == 1 and length > 2 and int(index.reshape(-1)[0]) in (0, length - 1)
    node = s.pick("Gather", one)
    if node is None:
        return None
    index = s.const(node.input[1])
    return s.set_const(node, 1, s.shape(node.input[0])[1] - 1 - index)


def last_of_equals(s):
    node = s.pick("ArgMax", lambda n: s.opset >= 12)
    if node is None:
        return None
    s.set_attr(node, "select_last_index", 1 - s.attr(node, "select_last_index", 0))
    return [node]


def position_offset(s):
    """Positions begin at 0, not behind the padding index."""
    def counts(n):
        index = s.const(n.input[1])
        if s.const(n.input[0]) is None or index is None or index.ndim != 1 or index.size < 3:
            return False
        return index[0] > 0 and (np.diff(index) == 1).all()

    def cut(n):
        parts = [s.const(x) for x in n.input[1:4]]
        return s.const(n.input[0]) is not None and len(parts) == 3 and None not in [p if p is None else 1 for p in parts] and parts[0].size == 1 and \
            parts[0][0] > 0 and parts[2][0] == 0
    node = s.choose([n for n in s.nodes("Gather") if counts(n)] + [n for n in s.nodes("Slice") if cut(n)])
    if node is None:
        return None
    if node.op_type == "Gather":
        return s.set_const(node, 1, s.const(node.input[1]) - s.const(node.input[1])[0])
    start = s.const(node.input[1])
    return s.set_const(node, 2, s.const(node.input[2]) - start) + s.set_const(node, 1, start * 0)


def sinusoid_order(s):
    """Sines and cosines in turn, for one after the other."""
    def table(n, i):
        c = s.const(n.input[i])
        if c is None or c.dtype != np.float32 or c.ndim < 2 or c.shape[-1] % 2 or c.shape[-2] < 3 or c.size != c.shape[-1] * c.shape[-2]:
            return False
        row = c.reshape(c.shape[-2:])[0]
        return np.allclose(row[:row.size // 2], 0) and np.allclose(row[row.size // 2:], 1)
    site = s.choose([(n, i) for n in s.nodes("Add") for i in (0, 1) if table(n, i)])
    if site is None:
        return None
    c = s.const(site[0].input[site[1]])
    return s.set_const(*site, np.ascontiguousarray(c.reshape(c.shape[:-1] + (2, -1)).swapaxes(-1, -2)).reshape(c.shape))


def einsum_turned(s):
    """The last two indices of what comes out, exchanged."""
    def square(n):
        return len(s.shape(n.output[0])) > 2 and s.shape(n.output[0])[-1] == s.shape(n.output[0])[-2]
    node = s.pick("Einsum", square)
    if node is None:
        return None
    equation = s.attr(node, "equation")
    s.set_attr(node, "equation", equation[:-2] + equation[-1] + equation[-2])
    return [node]


def gate_and_value(s):
    """The two matrices of a gated layer, each in the other's place; halves of one where they are stored together."""
    def halves(n):
        behind = s.consumers(n.output[0])
        w = s.const(n.input[1])
        return w is not None and w.ndim == 2 and len(behind) == 1 and behind[0].op_type == "Split" and len(behind[0].output) == 2
    products = [n for n in s.nodes("MatMul") if s.const(n.input[1]) is not None]

    def gated(a, b):
        if a is b or a.input[0] != b.input[0] or s.const(a.input[1]).shape != s.const(b.input[1]).shape:
            return False
        of_a, of_b = ([c.op_type for c in s.consumers(n.output[0])] for n in (a, b))
        return of_b == ["Mul"] and "Mul" in of_a and len(of_a) > 1
    pairs = [(a, b) for a in products for b in products if gated(a, b)]
    site = s.choose([(n, None) for n in s.nodes("MatMul") if halves(n)] + pairs)
    if site is None:
        return None
    a, b = site
    if b is None:
        w = s.const(a.input[1])
        return s.set_const(a, 1, np.roll(w, w.shape[1] // 2, 1))
    a.input[1], b.input[1] = b.input[1], a.input[1]
    return [a, b]


def embedding_scale(s):
    node = s.pick("Mul", lambda n: s.made_by(n.input[0], "Gather") is not None and (scalar(s, n.input[1]) or 0) > 1)
    return s.bypass(node, node.input[0]) if node is not None else None


ROWS = [
    ("window_off_by_one", "transformers", "huggingface/transformers#39408", window_off_by_one),
    ("slope_exponent", "aprender", "paiml/aprender#2143", slope_exponent),
    ("rotary_base", "AutoAWQ", "casper-hansen/AutoAWQ#271", rotary_base),
    ("rotary_weights_in_pairs", "AiDotNet", "ooples/AiDotNet#2074", rotary_weights),
    ("fused_heads_order", "mlxcel", "lablup/mlxcel#928", fused_order),
    ("relative_sign", "nntrainer", "nntrainer/nntrainer#3982", relative_sign),
    ("heads_not_turned_back", "vllm-fork", "HabanaAI/vllm-fork#1218", heads_not_turned_back),
    ("comparison_or_equal", "transformers", "huggingface/transformers#47010", comparison),
    ("triangle_diagonal", "mmdeploy", "open-mmlab/mmdeploy#791", triangle),
    ("pooled_token", "llama.cpp", "ggml-org/llama.cpp#14927", pooled_token),
    ("last_of_equals", "tvm", "apache/tvm#18969", last_of_equals),
    ("position_offset_lost", "transformers", "huggingface/transformers#10200", position_offset),
    ("sinusoid_order", "tensorflow", "tensorflow/tensorflow#37191", sinusoid_order),
    ("einsum_turned", "dace", "spcl/dace#1311", einsum_turned),
    ("gate_and_value_exchanged", "sglang", "sgl-project/sglang#32430", gate_and_value),
    ("embedding_scale_lost", "cascadia", "labscommunity/cascadia#61", embedding_scale),
]
