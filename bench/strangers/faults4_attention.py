"""Fourth generation: faults of attention, of positions, and of tokens that stand for something else."""
import numpy as np

from faults_attention import attention_scores
from surgery import scalar


def scale_of_width(s):
    """Scores divided by the root of the whole width, not of a head's."""
    sites = []
    for _, chain in attention_scores(s):
        heads = s.shape(chain[-1].output[0])[1] if len(s.shape(chain[-1].output[0])) == 4 else 1
        for n in [*chain[:-1], s.producer(chain[-1].input[0])]:
            if n is not None and n.op_type in ("Mul", "Div") and scalar(s, n.input[1]) not in (None, 1.0) and heads > 1:
                sites.append((n, heads))
    site = s.choose(sites)
    if site is None:
        return None
    n, heads = site
    return s.set_const(n, 1, (s.const(n.input[1]) * heads ** (0.5 if n.op_type == "Div" else -0.5)).astype(np.float32))


def mask_on_queries(s):
    """Padding hides who asks, not who is asked."""
    def fits(n):
        axes = s.attr(n, "axes") if len(n.input) < 2 else s.const(n.input[1])
        return axes is not None and list(axes) == [1, 2] and len(s.shape(n.input[0])) == 2 and s.shape(n.input[0])[1] > 1
    node = s.pick("Unsqueeze", fits)
    if node is None:
        return None
    if len(node.input) > 1:
        return s.set_const(node, 1, np.array([1, 3]))
    s.set_attr(node, "axes", [1, 3])
    return [node]


def triangle_turned(s):
    """What comes after is seen, what came before is not."""
    def triangle(c):
        return c is not None and c.ndim >= 2 and c.shape[-1] == c.shape[-2] > 2 and np.unique(c).size == 2 and \
            not np.array_equal(c, np.swapaxes(c, -1, -2)) and (np.array_equal(c != c[..., :1, -1:], np.tril(np.ones_like(c, bool))))
    site = s.choose([(n, i) for n in s.nodes("Where", "Add") for i, x in enumerate(n.input) if triangle(s.const(x))])
    return s.set_const(*site, np.ascontiguousarray(np.swapaxes(s.const(site[0].input[site[1]]), -1, -2))) if site else None


def rotary_tables(s):
    """Each angle twice in a row for the whole row twice, or the reverse."""
    def halves(c):
        return c is not None and c.ndim == 2 and c.dtype == np.float32 and c.shape[1] % 2 == 0 and c.shape[1] > 2 and np.abs(c).max() <= 1 and \
            np.array_equal(c[:, :c.shape[1] // 2], c[:, c.shape[1] // 2:])

    def pairs(c):
        return c is not None and c.ndim == 2 and c.dtype == np.float32 and c.shape[1] % 2 == 0 and c.shape[1] > 2 and np.abs(c).max() <= 1 and \
            np.array_equal(c[:, ::2], c[:, 1::2])
    made = []
    for n in s.nodes("Mul"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if halves(c):
                made += s.set_const(n, i, np.repeat(c[:, :c.shape[1] // 2], 2, 1))
            elif pairs(c):
                made += s.set_const(n, i, np.concatenate([c[:, ::2]] * 2, 1))
    return made or None


def segment_fixed(s):
    """The first kind of segment is added to every word's own, whatever segment it is of."""
    node = s.pick("Gather", lambda n: s.const(n.input[0]) is not None and s.const(n.input[0]).ndim == 2 and s.const(n.input[0]).shape[0] in (2, 3)
                  and s.const(n.input[1]) is None)
    if node is None:
        return None
    rows = s.const(node.input[0])
    return s.set_const(node, 0, np.repeat(rows[:1], len(rows), 0))


def placed(s):
    """(addition, input, array) of positions that are learned or made of waves."""
    for n in s.nodes("Add"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is not None and c.dtype == np.float32 and c.ndim in (2, 3) and c.shape[-2] > 2 and c.shape[-1] > 3 and c.size == c.shape[-2] * c.shape[-1] and \
                    s.const(n.input[1 - i]) is None and s.shape(n.input[1 - i])[-2:] == c.shape[-2:]:
                yield n, i, c


def positions_lost(s):
    site = s.choose(placed(s))
    return s.bypass(site[0], site[0].input[1 - site[1]]) if site else None


def one_position(s):
    """The same position for all: that at the length."""
    site = s.choose(placed(s))
    if site is None:
        return None
    n, i, c = site
    return s.set_const(n, i, np.ascontiguousarray(np.broadcast_to(c[..., -1:, :], c.shape)))


def class_in_mean(s):
    """A mean over all tokens, the class's too."""
    def fits(n):
        cut = s.made_by(n.input[0], "Slice")
        start = s.const(cut.input[1]) if cut is not None else None
        return start is not None and start.size == 1 and start.item() > 0 and len(s.shape(cut.input[0])) == 3
    node = s.pick("ReduceMean", fits)
    if node is None:
        return None
    cut = s.producer(node.input[0])
    return s.bypass(cut, cut.input[0])


ROWS = [
    ("attention_scale_of_width", "ViT", "FrancescoSaverioZuppichini/ViT#1", scale_of_width),
    ("mask_on_queries", "transformer", "hyunwoongko/transformer#40", mask_on_queries),
    ("causal_mask_turned", "TensorRT", "NVIDIA/trt-samples-for-hackathon-cn#84", triangle_turned),
    ("rotary_tables_layout", "vjepa2", "facebookresearch/vjepa2#15", rotary_tables),
    ("segment_fixed", "lightseq", "bytedance/lightseq#265", segment_fixed),
    ("positions_lost", "Abstractive-Summarization", "santhoshkolloju/Abstractive-Summarization-With-Transfer-Learning#21", positions_lost),
    ("one_position_for_all", "DiffPoseTalk", "DiffPoseTalk/DiffPoseTalk#20", one_position),
    ("class_token_in_mean", "vit-pytorch", "lucidrains/vit-pytorch#226", class_in_mean),
]
