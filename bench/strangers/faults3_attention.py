"""Third generation: faults of attention, rotations, routers, and of weights of four bits."""
import numpy as np


def sink_lost(s):
    """Scores without the one of nothing."""
    def fits(n):
        joined, behind = s.made_by(n.input[0], "Concat"), s.consumers(n.output[0])
        if joined is None or len(joined.input) != 2 or s.attr(joined, "axis") not in (3, -1) or [b.op_type for b in behind] != ["Slice"]:
            return False
        return s.shape(joined.input[1])[-1] == 1 and s.shape(joined.input[0]) == s.shape(behind[0].output[0])
    node = s.pick("Softmax", fits)
    if node is None:
        return None
    joined, cut = s.producer(node.input[0]), s.consumers(node.output[0])[0]
    node.input[0] = joined.input[0]
    s.graph.node.remove(joined)
    node.output[0] = cut.output[0]
    s.graph.node.remove(cut)
    return [node, s.producer(node.input[0])]


def rotary_scale(s):
    """Positions multiplied by what they should be divided by."""
    made = []
    for n in s.nodes("Mul"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is None or c.dtype != np.float32 or c.ndim != 2 or min(c.shape) < 3 or np.abs(c).max() > 1:
                continue
            cosine = np.allclose(c[0], 1, atol=1e-6)
            if not cosine and not np.allclose(c[0], 0, atol=1e-6):
                continue
            first = (np.arccos if cosine else np.arcsin)(c[1].astype(np.float64))
            if not 0.05 < first[0] < 0.9:
                continue
            angle = np.arange(len(c))[:, None] * (first / first[0] ** 2)[None]
            made += s.set_const(n, i, (np.cos if cosine else np.sin)(angle).astype(np.float32))
    return made or None


def router_bias(s):
    """The shares of the chosen have the bias that was for choosing."""
    def fits(n):
        top = s.made_by(n.input[1], "TopK")
        add = s.made_by(top.input[0], "Add") if top is not None else None
        return add is not None and n.input[0] in add.input
    node = s.pick("GatherElements", fits)
    if node is None:
        return None
    node.input[0] = s.producer(node.input[1]).input[0]
    return [node]


# ---- two weights in a byte: the first of two rows in the lower half ----

def packed(change):
    """change: of the rows of numbers 0 to 15, with the generator."""
    def apply(s):
        node = s.pick("Cast", lambda n: s.const(n.input[0]) is not None and s.const(n.input[0]).dtype == np.uint8)
        if node is None:
            return None
        q = s.const(node.input[0]).astype(np.int64)
        rows = np.stack([q % 16, q // 16], 1).reshape(-1, q.shape[1])
        new = np.clip(change(rows), 0, 15).reshape(-1, 2, q.shape[1])
        return s.set_const(node, 0, (new[:, 0] + 16 * new[:, 1]).astype(np.uint8))
    return apply


def reordered(rows):
    """Even rows before odd ones, of eight."""
    if len(rows) % 8:
        return rows
    return rows.reshape(-1, 8, rows.shape[1])[:, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(rows.shape)


def borrowed(rows):
    """Where the lower half is negative, the upper one has lost one."""
    new = rows.copy()
    new[1::2] -= rows[0::2] < 8
    return new


def taps_scrambled(s):
    """Filters of single channels, read in another shape where the axes should have been exchanged."""
    def fits(n):
        w = s.const(n.input[1])
        return w is not None and w.ndim == 3 and w.shape[1] == 1 and w.shape[2] > 1 and w.shape[0] == s.attr(n, "group", 1) > 1
    node = s.pick("Conv", fits)
    if node is None:
        return None
    w = s.const(node.input[1])
    return s.set_const(node, 1, np.ascontiguousarray(w.reshape(w.shape[2], w.shape[0]).T).reshape(w.shape))


ROWS = [
    ("attention_sink_lost", "vllm", "vllm-project/vllm#52156", sink_lost),
    ("rotary_scale_inverted", "imp", "kekzl/imp#584", rotary_scale),
    ("router_bias_in_shares", "PaddleFormers", "PaddlePaddle/PaddleFormers#3452", router_bias),
    ("packed_rows_order", "Quark", "amd/Quark#30", packed(reordered)),
    ("packed_sign", "1bit-MONSTER", "1bit-MONSTER/1bit-MONSTER#572", packed(lambda rows: rows ^ 8)),
    ("packed_borrow", "sparkinfer", "gittensor-ai-lab/sparkinfer#761", packed(borrowed)),
    ("depthwise_taps_scrambled", "1bit-MONSTER", "1bit-MONSTER/1bit-MONSTER#572", taps_scrambled),
]
