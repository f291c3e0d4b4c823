"""Sixth generation: faults of heads, of what turns them, of experts, and of states that fade."""
import numpy as np

from faults_attention import attention_scores
from faults4_structure import computed
from surgery import scalar


def heads_counted(s):
    """The tool's own number of heads, not the network's."""
    found = {}
    for n in s.nodes("Reshape"):
        shape = s.const(n.input[1])
        turned = [b for b in s.consumers(n.output[0]) if b.op_type == "Transpose" and s.attr(b, "perm") == [0, 2, 1, 3]]
        if shape is not None and shape.size == 4 and len(turned) == 1 and shape[2] > 0 and shape[3] > 1 and computed(s, n.input[0]):
            found.setdefault((int(shape[2]), int(shape[3])), []).append(n)
    key = s.choose(sorted(k for k, v in found.items() if len(v) % 3 == 0))
    if key is None:
        return None
    count = s.choose([c for c in (key[0] * 2, key[0] // 2) if c and key[0] * key[1] % c == 0])
    made = []
    for n in found[key]:
        shape = s.const(n.input[1]).copy()
        shape[2:] = count, key[0] * key[1] // count
        made += s.set_const(n, 1, shape)
    return made


def turning_tables(s):
    """(node, input, array) of tables that products turn queries and keys with, in the order of the graph: cosines, sines."""
    for n in s.nodes("Mul"):
        for i in (0, 1):
            c = s.const(n.input[i])
            table = c is not None and c.ndim == 2 and c.dtype == np.float32 and min(c.shape) > 2 and c.shape[1] % 2 == 0 and np.ptp(c[0]) < 1e-6
            if table and np.abs(c).max() < 1.7 and computed(s, n.input[1 - i]) and len(s.shape(n.input[1 - i])) == 4:
                yield n, i, c


def along_line(c):
    """The angles' growth from place to place, and the length of what is turned; None: they are not places along a line."""
    half = c.shape[1] // 2
    factor = float(c[0, 0]) if c[0, 0] > 0.5 else 1.0
    return factor if np.allclose(c[:, :half], c[:, half:], atol=1e-5) else None


def replace_tables(s, change):
    made = []
    for n, i, c in list(turning_tables(s)):
        new = change(c)
        if new is not None and not np.allclose(new, c, atol=1e-4):
            made += s.set_const(n, i, new.astype(np.float32))
    return made or None


def frequencies_of_head(s):
    """Turns of a part, as slow as if the whole head were turned."""
    sliced = {n.output[0] for n in s.nodes("Concat") if {"Slice", "Add"} <= {getattr(s.producer(x), "op_type", "") for x in n.input}}
    whole = {s.shape(x)[-1] for x in sliced if len(s.shape(x)) == 4}

    def change(c):
        part, wide = c.shape[1], [w for w in whole if w > c.shape[1]]
        if along_line(c) is None or not wide:
            return None
        rows = np.arange(len(c))[:, None]
        angle = rows * 10000.0 ** (-np.arange(0, part, 2) / max(wide))[None]
        angle = np.concatenate([angle, angle], 1)
        cosines = c[0, 0] > 0.5
        factor = c[0, 0] if cosines else float(np.max(np.abs(c[1] / np.sin(1.0)))) if np.isclose(c[1, 0], c[1].max()) else 1.0
        return (np.cos(angle) if cosines else np.sin(angle)) * factor
    return replace_tables(s, change)


def factor_of_tables_lost(s):
    """What makes the turned a little longer is left at one."""
    tables = list(turning_tables(s))
    factor = max([float(c[0, 0]) for _, _, c in tables], default=1.0)
    if factor < 1.05:
        return None
    return replace_tables(s, lambda c: c / factor)


def on_plane(c):
    """Side of a square whose rows and columns the tables are of, or None."""
    side = int(round(np.sqrt(len(c))))
    if side < 2 or side * side != len(c):
        return None
    cube = c.reshape(side, side, -1)
    rows, columns = np.ptp(cube, axis=1).max(0) < 1e-5, np.ptp(cube, axis=0).max(0) < 1e-5
    return side if np.all(rows | columns) and (np.any(~rows) or np.any(~columns)) else None


def rows_for_columns(s):
    """Places are counted along the width first, where the tokens run along the height, or the reverse."""
    def change(c):
        side = on_plane(c)
        return None if side is None else c.reshape(side, side, -1).transpose(1, 0, 2).reshape(c.shape)
    return replace_tables(s, change)


def first_half_for_both(s):
    """An operator that turns reads half of its tables, as if the other were the same."""
    def change(c):
        half = c.shape[1] // 2
        return np.concatenate([c[:, :half]] * 2, 1)
    return replace_tables(s, change)


def second_share_whole(s):
    """All of the second shares is taken away: how much of them is not used."""
    def fits(n):
        c = scalar(s, n.input[1])
        return c is not None and s.made_by(n.input[0], "Softmax", "Div") is not None and [b.op_type for b in s.consumers(n.output[0])] == ["Sub"] and 0 < c < 1
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def shared_expert_sum(s):
    """Sums of what the routed experts say and what one for all says behind a sigmoid: (sum, place of the latter, its product)."""
    for n in s.nodes("Add"):
        for i in (0, 1):
            m = s.made_by(n.input[i], "Mul")
            gate = [x for x in m.input if s.made_by(x, "Sigmoid") is not None] if m is not None else []
            if gate and s.shape(gate[0])[-1] == 1 and s.shape(m.output[0])[-1] > 1 and s.made_by(n.input[1 - i], "Add", "Mul") is not None:
                yield n, i, m, gate[0]


def shared_expert_lost(s):
    site = s.choose(shared_expert_sum(s))
    return s.bypass(site[0], site[0].input[1 - site[1]]) if site else None


def shared_gate_lost(s):
    site = s.choose(shared_expert_sum(s))
    return s.bypass(site[2], next(x for x in site[2].input if x != site[3])) if site else None


def router_by_sigmoid(s):
    """Each expert's chance for itself, not its share of all."""
    made = []
    for n in s.nodes("Softmax"):
        if any(b.op_type == "TopK" for b in s.consumers(n.output[0])):
            n.op_type = "Sigmoid"
            s.set_attr(n, "axis", None)
            made.append(n)
    return made or None


def branch_vector_lost(s):
    """What a block adds is added as it is."""
    sites = []
    for n in s.nodes("Mul"):
        c = s.const(n.input[1])
        x, steps = n.output[0], 0
        while steps < 2 and len(s.consumers(x)) == 1 and s.consumers(x)[0].op_type == "Transpose":
            x, steps = s.consumers(x)[0].output[0], steps + 1
        behind = s.consumers(x)
        if c is not None and c.ndim == 1 and c.size > 3 and computed(s, n.input[0]) and len(behind) == 1 and behind[0].op_type == "Add" and \
                all(computed(s, v) for v in behind[0].input) and s.made_by(n.input[0], "Add", "MatMul", "Gemm") is not None and np.abs(c).max() < 0.95:
            sites.append(n)
    node = s.choose(sites)
    return s.bypass(node, node.input[0]) if node is not None else None


def rate_sign_lost(s):
    """States that should fade grow."""
    node = s.pick("Neg", lambda n: s.made_by(n.input[0], "Exp") is not None and s.const(s.producer(n.input[0]).input[0]) is not None)
    return s.bypass(node, node.input[0]) if node is not None else None


ROWS = [
    ("heads_counted_otherwise", "minGPT", "karpathy/minGPT#71", heads_counted),
    ("rotary_frequencies_of_head", "pie", "pie-project/pie#602", frequencies_of_head),
    ("rotary_factor_lost", "exllamav3", "turboderp-org/exllamav3#259", factor_of_tables_lost),
    ("rotary_rows_for_columns", "VisionLLaMA", "Meituan-AutoML/VisionLLaMA#4", rows_for_columns),
    ("rotary_half_of_tables", "PNNX", "Tencent/ncnn#6833", first_half_for_both),
    ("second_shares_whole", "DifferentialTransformer", "kyegomez/DifferentialTransformer#5", second_share_whole),
    ("shared_expert_lost", "JAXformer", "divyamakkar0/JAXformer#21", shared_expert_lost),
    ("shared_expert_gate_lost", "torchtitan", "NousResearch/torchtitan#36", shared_gate_lost),
    ("router_by_sigmoid", "1bit-MONSTER", "1bit-MONSTER/1bit-MONSTER#650", router_by_sigmoid),
    ("branch_vector_lost", "mlx-image", "riccardomusmeci/mlx-image#26", branch_vector_lost),
    ("rate_sign_lost", "mamba-minimal", "johnma2006/mamba-minimal#29", rate_sign_lost),
]
