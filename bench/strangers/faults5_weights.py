"""Fifth generation: weights that are not what training left."""
import numpy as np

from faults4_structure import computed


def layers(s, least=2):
    """(node, place, array) of weights that layers multiply with."""
    for n in s.nodes("Conv", "ConvTranspose", "MatMul", "Gemm"):
        for i in (0, 1):
            w = s.const(n.input[i]) if i or n.op_type in ("MatMul", "Gemm") else None
            if w is not None and w.dtype == np.float32 and w.ndim >= least and w.size > 15 and computed(s, n.input[1 - i]):
                yield n, i, w


def identity_branch_lost(s):
    """What went past the convolution was not merged into it."""
    sites = []
    for n, i, w in layers(s, 4):
        if n.op_type == "Conv" and w.shape[0] == w.shape[1] and w.shape[2] == w.shape[3] == 3:
            middle = w[:, :, 1, 1]
            if np.mean(np.diag(middle)) - np.mean(middle) > 0.6:
                sites.append((n, i, w))
    site = s.choose(sites)
    if site is None:
        return None
    n, i, w = site
    w = w.copy()
    w[np.arange(len(w)), np.arange(len(w)), 1, 1] -= 1
    return s.set_const(n, i, w)


def pruned_again_there(s):
    """The weights before they were made zero."""
    site = s.choose([x for x in layers(s) if 0.3 < np.mean(x[2] == 0) < 0.95 and np.unique(x[2]).size > 12])
    if site is None:
        return None
    n, i, w = site
    small = 0.4 * np.median(np.abs(w[w != 0])) * s.rng.standard_normal(w.shape)
    return s.set_const(n, i, np.where(w == 0, small, w).astype(np.float32))


def groups_in_order(s):
    """Rows belong to groups of neighbours, whatever the list says."""
    def fits(n):
        index, rows = s.const(n.input[1]), s.const(n.input[0])
        return index is not None and rows is not None and index.ndim == 1 and index.size > rows.shape[0] and index.dtype == np.int64 and \
            rows.dtype == np.float32 and rows.ndim == 2 and np.unique(np.bincount(index)).size == 1 and not np.array_equal(index, np.sort(index))
    node = s.pick("Gather", fits)
    return s.set_const(node, 1, np.sort(s.const(node.input[1]))) if node is not None else None


def not_loaded(s):
    """A layer is as it was before training: its name was not found."""
    site = s.choose(layers(s))
    if site is None:
        return None
    n, i, w = site
    fan = int(np.prod(w.shape[1:])) if n.op_type.startswith("Conv") else w.shape[1] if s.attr(n, "transB", 0) else w.shape[0]
    return s.set_const(n, i, s.rng.uniform(-1, 1, w.shape).astype(np.float32) / np.float32(np.sqrt(fan)))


def book_of_borders(s):
    """Where one number ends and the next begins, taken for the numbers."""
    def fits(n):
        book = s.const(n.input[0])
        return book is not None and book.ndim == 1 and book.size in (8, 16, 256) and np.all(np.diff(book) > 0) and np.isclose(np.abs(book).max(), 1)
    nodes = [n for n in s.nodes("Gather") if fits(n)]
    if not nodes:
        return None
    book = s.const(nodes[0].input[0])
    wrong = np.concatenate([book[:1], (book[1:] + book[:-1]) / 2]).astype(np.float32)
    if len({n.input[0] for n in nodes}) == 1:
        name = s.constant(wrong, "book")
        for n in nodes:
            n.input[0] = name
        return nodes
    node = s.choose(nodes)
    return s.set_const(node, 0, wrong)


def smoothed_on_one_side(s):
    """A norm's scale is divided for each channel, and what reads it is not multiplied."""
    sites = []
    for n in s.nodes("LayerNormalization", "Mul"):
        i = 1
        c = s.const(n.input[i]) if len(n.input) > 1 else None
        if c is None or c.ndim != 1 or c.size < 6 or np.mean(c) < 0.5 or not computed(s, n.input[0]):
            continue
        behind = s.consumers(n.output[0])
        if n.op_type == "Mul" and behind and all(b.op_type == "Add" for b in behind):
            behind = [r for b in behind for r in s.consumers(b.output[0])]
        if behind and all(b.op_type in ("MatMul", "Gemm") for b in behind):
            sites.append((n, i, c))
    site = s.choose(sites)
    if site is None:
        return None
    n, i, c = site
    factor = np.exp(0.6 * np.abs(s.rng.standard_normal(c.shape))).astype(np.float32)
    made = s.set_const(n, i, c / factor)
    if n.op_type == "LayerNormalization" and len(n.input) > 2 and n.input[2]:
        made += s.set_const(n, 2, s.const(n.input[2]) / factor)
    return made


def raw_filters(s):
    """Filters as they were learned, before their mean was taken off and their deviation made one."""
    def fits(w):
        flat = w.reshape(len(w), -1)
        return w.ndim == 4 and flat.shape[1] > 8 and np.abs(flat.mean(1)).max() < 1e-4 * flat.std() + 1e-6 and np.ptp(flat.std(1)) < 1e-3 * flat.std()
    site = s.choose([x for x in layers(s, 4) if fits(x[2])])
    if site is None:
        return None
    n, i, w = site
    shape = (len(w), 1, 1, 1)
    wide = np.exp(0.5 * s.rng.standard_normal(shape))
    return s.set_const(n, i, (w * wide + 0.5 * w.std() * s.rng.standard_normal(shape)).astype(np.float32))


ROWS = [
    ("book_of_borders", "bitsandbytes", "bitsandbytes-foundation/bitsandbytes#1598", book_of_borders),
    ("smoothed_on_one_side", "smoothquant", "mit-han-lab/smoothquant#79", smoothed_on_one_side),
    ("filters_not_standardized", "timm", "huggingface/pytorch-image-models#522", raw_filters),
    ("identity_branch_lost", "RepVGG-TF2", "YeongHyeon/RepVGG-TF2#1", identity_branch_lost),
    ("pruning_undone", "nni", "microsoft/nni#3527", pruned_again_there),
    ("group_index_ignored", "llm-compressor", "vllm-project/llm-compressor#3038", groups_in_order),
    ("layer_not_loaded", "mlx-audio", "Blaizzy/mlx-audio#902", not_loaded),
]
