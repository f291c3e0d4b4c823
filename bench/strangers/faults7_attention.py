"""Seventh generation: faults of heads, masks, turns by places, windows, and of what mixes neighbours."""
import numpy as np

from faults4_structure import computed
from faults6_attention import replace_tables
from faults7_activations import axes_of, kinds_behind, set_axes
from surgery import scalar


def head_norm_over_all(s):
    """Queries and keys by the size of all heads together."""
    made = []
    for n in s.nodes("ReduceMean"):
        shape = s.shape(n.input[0])
        if len(shape) != 4 or shape[1] < 2 or axes_of(s, n) != [3]:
            continue
        square = s.made_by(n.input[0], "Mul", "Pow")
        x = s.producer(square.input[0]) if square is not None else None
        if x is not None and x.op_type == "Transpose" and s.attr(x, "perm") == [0, 2, 1, 3] and kinds_behind(s, n.output[0]) == ["Add"]:
            made += set_axes(s, n, [1, 3])
    return made or None


def window_ignored(s):
    """All that came before, however long ago."""
    for n in s.nodes("Where", "Add"):
        for i, name in enumerate(n.input):
            c = s.const(name)
            if c is None or c.ndim != 4 or c.shape[2] != c.shape[3] or c.shape[2] < 4 or (n.op_type == "Where") != (c.dtype == bool):
                continue
            keep = c if c.dtype == bool else c > -1
            all_before = np.tril(np.ones(c.shape[2:], bool))[None, None]
            if not (keep & ~all_before).any() and (all_before & ~keep).any() and keep.any(-1).all():
                return s.set_const(n, i, all_before if c.dtype == bool else np.where(all_before, 0, c.min()).astype(c.dtype))
    return None


def sections_interleaved(s):
    """Times, rows and columns take turns, where each had frequencies of its own."""
    def fits(n):
        c = s.const(n.input[1])
        if c is None or c.ndim != 1 or c.size < 4 or set(c.tolist()) != {0, 1, 2} or np.any(np.diff(c) < 0) or len(s.shape(n.input[0])) != 3:
            return False
        return kinds_behind(s, n.output[0]) == ["Mul"]
    node = s.pick("Gather", fits)
    return s.set_const(node, 1, np.arange(s.const(node.input[1]).size) % 3) if node is not None else None


def slower_turns_ignored(s):
    """Turns as they were learned, before they were made slower."""
    def change(c):
        half = c.shape[1] // 2
        plain = np.arange(len(c))[:, None] * 10000.0 ** (-np.arange(0, c.shape[1], 2) / c.shape[1])[None]
        plain = np.concatenate([plain, plain], 1)
        cosines = c[0, 0] > 0.5
        new = np.cos(plain) if cosines else np.sin(plain)
        return new if np.allclose(c[:, :half], c[:, half:], atol=1e-5) and np.allclose(c[:, 0], new[:, 0], atol=1e-3) else None
    return replace_tables(s, change)


def rows_for_columns_of_scores(s):
    """What is said of rows goes to columns."""
    sites = [n for n in s.nodes("MatMul") if s.const(n.input[1]) is not None and s.const(n.input[1]).ndim == 3 and len(s.shape(n.input[0])) == 5]
    if len(sites) != 2 or s.const(sites[0].input[1]).shape != s.const(sites[1].input[1]).shape:
        return None
    a, b = (s.const(n.input[1]).copy() for n in sites)
    return s.set_const(sites[0], 1, b) + s.set_const(sites[1], 1, a)


def windows_not_turned_back(s):
    """Windows are put in a row, as if they were lines of the picture."""
    def fits(n):
        behind = s.consumers(n.output[0])
        return s.attr(n, "perm") == [0, 1, 3, 2, 4, 5] and len(behind) == 1 and behind[0].op_type == "Reshape" and len(s.shape(behind[0].output[0])) == 4
    node = s.pick("Transpose", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def steps_by_other_side(s):
    """Steps to the side are counted in rows, and those down in columns."""
    def fits(n):
        c = s.const(n.input[1])
        return c is not None and c.size == 2 and c.reshape(-1)[0] != c.reshape(-1)[1] and np.all(c == np.rint(c)) and np.all(c > 1) and len(s.shape(n.input[0])) == 4 \
            and bool(s.nodes("GridSample"))
    node = s.pick("Div", fits)
    return s.set_const(node, 1, s.const(node.input[1])[..., ::-1]) if node is not None else None


def filling_word_of_other_book(s):
    """The number of the word that fills is another vocabulary's."""
    def fits(n):
        c = s.const(n.input[1])
        return c is not None and c.size == 1 and c.dtype == np.int64 and s.const(n.input[0]) is None
    node = s.pick("Equal", fits)
    if node is None:
        return None
    c = s.const(node.input[1])
    return s.set_const(node, 1, np.full_like(c, 0))


def mix_turned(s):
    """Most of the word before, where most of this one was meant."""
    sites = []
    for n in s.nodes("Add"):
        parts = [s.made_by(x, "Mul") for x in n.input]
        if all(p is not None for p in parts):
            for p, q in (parts, parts[::-1]):
                rest = s.made_by(q.input[1], "Sub")
                if s.const(p.input[1]) is not None and rest is not None and scalar(s, rest.input[0]) == 1 and rest.input[1] == p.input[1]:
                    sites.append((p, q))
    site = s.choose(sites)
    if site is None:
        return None
    p, q = site
    p.input[0], q.input[0] = q.input[0], p.input[0]
    return [p, q]


def floor_of_memory_lost(s):
    """Divided by how much is known, even where that is almost nothing."""
    made = []
    for n in [n for n in s.nodes("Max") if scalar(s, n.input[1]) == 1 and s.made_by(n.input[0], "Abs") is not None and kinds_behind(s, n.output[0]) == ["Div"]]:
        made += s.bypass(n, n.input[0]) or []
    return made or None


def input_size_of_gate_lost(s):
    """Inputs as large as they come, however slowly states fade."""
    def root(x):
        r = s.made_by(x, "Sqrt")
        sub = s.made_by(r.input[0], "Sub") if r is not None else None
        return sub is not None and scalar(s, sub.input[0]) is not None and s.made_by(sub.input[1], "Mul") is not None
    node = s.pick("Mul", lambda n: root(n.input[1]) and computed(s, n.input[0]))
    return s.bypass(node, node.input[0]) if node is not None else None


def power_of_gate_lost(s):
    """The gate itself, not its eighth power."""
    def fits(n):
        return (scalar(s, n.input[1]) or 0) == 8 and s.made_by(n.input[0], "Sigmoid") is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def held_input_as_first_step(s):
    """A step's length times the input, where the input is held as long as the step is."""
    def fits(n):
        less = s.made_by(n.input[0], "Sub")
        grow = s.made_by(less.input[0], "Exp") if less is not None and scalar(s, less.input[1]) == 1 else None
        return grow is not None and s.made_by(grow.input[0], "Mul") is not None
    node = s.pick("Div", fits)
    if node is None:
        return None
    less = s.producer(node.input[0])
    node.input[0] = s.producer(less.input[0]).input[0]
    s.graph.node.remove(less)
    return [node]


ROWS = [
    ("head_norm_over_all_heads", "vllm-metal", "vllm-project/vllm-metal#691", head_norm_over_all),
    ("window_of_attention_ignored", "optimum", "sonos/tract#2323", window_ignored),
    ("rotary_sections_interleaved", "vllm-gaudi", "vllm-project/vllm-gaudi#1437", sections_interleaved),
    ("rotary_slowing_ignored", "mlxcel", "lablup/mlxcel#1355", slower_turns_ignored),
    ("rows_for_columns_of_scores", "segment-anything", "facebookresearch/segment-anything#438", rows_for_columns_of_scores),
    ("windows_not_turned_back", "CMOS", "ByChelsea/CMOS#4", windows_not_turned_back),
    ("steps_by_other_side", "Deformable-DETR", "fundamentalvision/Deformable-DETR#6", steps_by_other_side),
    ("filling_word_of_other_book", "transformers", "huggingface/transformers#4138", filling_word_of_other_book),
    ("mix_with_last_turned", "ChatRWKV", "BlinkDL/ChatRWKV#27", mix_turned),
    ("floor_of_memory_lost", "PyxLSTM", "muditbhargava66/PyxLSTM#27", floor_of_memory_lost),
    ("input_size_of_gate_lost", "TransformerLens", "TransformerLensOrg/TransformerLens#1472", input_size_of_gate_lost),
    ("power_of_gate_lost", "TransformerLens", "TransformerLensOrg/TransformerLens#1472", power_of_gate_lost),
    ("held_input_as_first_step", "mamba", "state-spaces/mamba#114", held_input_as_first_step),
]
