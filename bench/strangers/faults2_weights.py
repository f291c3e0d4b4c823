"""Second generation: faults of weights and checkpoints, and of quantizers."""
import numpy as np

from faults_constants import change_weight, weighted
from surgery import scalar


def matrix(n, w):
    return n.op_type in ("MatMul", "Gemm") and w.ndim == 2 and min(w.shape) >= 8


def low_rank(w, rng):
    """An adapter of rank 2 that was merged twice, or not at all."""
    delta = rng.standard_normal((w.shape[0], 2)) @ rng.standard_normal((2, w.shape[1]))
    return w + 0.15 * delta * w.std() / delta.std()


def shards(w, rng):
    """Two shards, one after the other in the wrong order."""
    axis = 0 if rng.integers(2) and w.shape[0] % 2 == 0 or w.shape[1] % 2 else 1
    return np.roll(w, w.shape[axis] // 2, axis)


def group_scales(w, rng):
    """Four bits in groups, whose scales are looked up as if groups were twice as long."""
    size = w.shape[0] // 4 if w.shape[0] % 4 == 0 else w.shape[0]
    if size == w.shape[0]:
        return w
    scale = np.abs(w.reshape(4, size, -1)).max(1) / 7
    wrong = scale[np.arange(4) // 2]
    return (w.reshape(4, size, -1) / scale[:, None] * wrong[:, None]).reshape(w.shape)


def layers_exchanged(s):
    """Weights of two layers of one shape, in the order of their names as text."""
    sites = weighted(s)
    pairs = [(a, b) for k, a in enumerate(sites) for b in sites[k + 1:] if a[0].op_type == b[0].op_type and a[2].shape == b[2].shape
             and a[1] == b[1] and not np.array_equal(a[2], b[2])]
    pair = s.choose(pairs)
    if pair is None:
        return None
    (a, i, u), (b, j, v) = pair
    return s.set_const(a, i, v) + s.set_const(b, j, u)


def head_not_tied(s):
    """The head has a matrix of its own, which nobody has trained."""
    def tied(n):
        turn = s.made_by(n.input[1], "Transpose")
        return turn is not None and s.const(turn.input[0]) is not None and any(c.op_type == "Gather" for c in s.consumers(turn.input[0]))
    node = s.pick("MatMul", tied)
    if node is None:
        return None
    turn = s.producer(node.input[1])
    table = s.const(turn.input[0])
    return [*s.set_const(turn, 0, (table.std() * s.rng.standard_normal(table.shape)).astype(np.float32)), node]


def last_layers(s):
    """(node, weight's input, addition or None) of linear layers right in front of an output."""
    for o in s.graph.output:
        p, x = s.producer(o.name), o.name
        while p is not None and p.op_type in ("Softmax", "LogSoftmax", "Sigmoid"):
            x = p.input[0]
            p = s.producer(x)
        add = p if p is not None and p.op_type == "Add" else None
        if add is not None:
            p = next((q for q in map(s.producer, add.input) if q is not None and q.op_type == "MatMul"), None)
            if all(s.const(v) is None for v in add.input):
                continue
        if p is not None and p.op_type in ("MatMul", "Gemm") and s.const(p.input[1]) is not None and s.shape(p.output[0])[-1] > 2:
            yield p, add


def classes_shifted(s):
    """Background, or the blank, stands last in one framework and first in the other."""
    site = s.choose(last_layers(s))
    if site is None:
        return None
    node, add = site
    w = s.const(node.input[1])
    made = s.set_const(node, 1, np.roll(w, 1, 0 if s.attr(node, "transB", 0) else 1))
    if node.op_type == "Gemm" and len(node.input) > 2 and node.input[2]:
        made += s.set_const(node, 2, np.roll(s.const(node.input[2]), 1))
    if add is not None:
        i = 0 if s.const(add.input[0]) is not None else 1
        made += s.set_const(add, i, np.roll(s.const(add.input[i]), 1, -1))
    return made


def table_shifted(s):
    """Tokens counted from 1."""
    def table(n):
        t, ids = s.const(n.input[0]), s.const(n.input[1])
        return t is not None and t.ndim == 2 and t.dtype == np.float32 and ids is None
    node = s.pick("Gather", table)
    return s.set_const(node, 0, np.roll(s.const(node.input[0]), 1, 0)) if node is not None else None


def adapter_scale(s):
    """alpha / r for alpha / sqrt(r)."""
    def adapter(n):
        product = s.made_by(n.input[0], "MatMul")
        w = s.const(product.input[1]) if product is not None else None
        return scalar(s, n.input[1]) is not None and w is not None and w.ndim == 2 and w.shape[0] <= 4
    node = s.pick("Mul", adapter)
    if node is None:
        return None
    rank = s.const(s.producer(node.input[0]).input[1]).shape[0]
    return s.set_const(node, 1, (s.const(node.input[1]) * np.sqrt(rank)).astype(np.float32))


def window_symmetric(s):
    """A window that ends where it began, for one that goes on periodically."""
    def windowed(n):
        w = s.const(n.input[1])
        if w is None or w.ndim != 3 or w.shape[1] != 1 or w.shape[2] < 6:
            return False
        return np.allclose(w[0, 0], 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(w.shape[2]) / w.shape[2]), atol=1e-5)
    node = s.pick("Conv", windowed)
    if node is None:
        return None
    w = s.const(node.input[1])
    n = w.shape[2]
    old = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)
    new = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / (n - 1))
    return s.set_const(node, 1, (w * np.where(old > 1e-9, new / np.maximum(old, 1e-9), 1)).astype(np.float32))


def normalization_order(s):
    """x / deviation - mean for (x - mean) / deviation."""
    def pair(n):
        first = s.made_by(n.input[0], "Sub")
        mean, deviation = (s.const(first.input[1]), s.const(n.input[1])) if first is not None else (None, None)
        if mean is None or deviation is None or len(s.consumers(first.output[0])) != 1:
            return False
        return mean.size == deviation.size > 1
    node = s.pick("Div", pair)
    if node is None:
        return None
    first = s.producer(node.input[0])
    first.input[1], node.input[1] = node.input[1], first.input[1]
    first.op_type, node.op_type = "Div", "Sub"
    return [first, node]


# ---- quantizers ----

def stored(s, kind=np.int8):
    """DequantizeLinear nodes of constants."""
    def of_kind(n):
        q = s.const(n.input[0])
        return q is not None and q.dtype == kind and s.const(n.input[1]) is not None
    return [n for n in s.nodes("DequantizeLinear") if of_kind(n)]


def weight_axis(s):
    node = s.choose([n for n in stored(s) if s.const(n.input[1]).size > 2 and s.const(n.input[0]).ndim >= 2
                     and s.const(n.input[0]).shape[0] == s.const(n.input[0]).shape[1]])
    if node is None:
        return None
    s.set_attr(node, "axis", 1 - s.attr(node, "axis", 1) % s.const(node.input[0]).ndim)
    return [node, *s.consumers(node.output[0])]


def with_readers(change):
    """A fault of a stored weight's DequantizeLinear; change: gives the nodes, or None."""
    def apply(s):
        node = s.choose(change.sites(s))
        return [*change(s, node), *s.consumers(node.output[0])] if node is not None else None
    return apply


def first_scale(s, node):
    scale = s.const(node.input[1])
    return s.set_const(node, 1, np.full_like(scale, scale.reshape(-1)[0]))


first_scale.sites = lambda s: [n for n in stored(s) if s.const(n.input[1]).size > 2]


def full_range(s, node):
    """255 steps from end to end, for 127 on either side."""
    return s.set_const(node, 1, (s.const(node.input[1]) * np.float32(127 / 127.5)).astype(np.float32))


full_range.sites = stored


def bias_scale(s, node):
    """The bias is read with the scale of another layer's input."""
    return s.set_const(node, 1, (s.const(node.input[1]) * np.float32(1.6)).astype(np.float32))


bias_scale.sites = lambda s: stored(s, np.int32)


def unsigned_weights(s, node):
    """Bytes written with a sign and read without one."""
    q = s.const(node.input[0])
    zero = s.const(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(s.const(node.input[1]).shape, np.int8)
    made = s.set_const(node, 0, q.view(np.uint8))
    name = s.constant(zero.view(np.uint8), "zero")
    if len(node.input) > 2:
        node.input[2] = name
    else:
        node.input.append(name)
    return made


unsigned_weights.sites = stored


def parameters_of_another(s):
    """Scale and zero point under a name that another tensor's have, too."""
    def scaled(n):
        return s.const(n.input[1]) is not None and s.const(n.input[1]).size == 1 and len(n.input) > 2
    nodes = [n for n in s.nodes("QuantizeLinear") if scaled(n)]
    pairs = [(a, b) for a in nodes for b in nodes if a is not b and s.const(a.input[2]).dtype == s.const(b.input[2]).dtype
             and 0.5 < s.const(a.input[1]).item() / s.const(b.input[1]).item() < 2 and list(a.input[1:]) != list(b.input[1:])]
    pair = s.choose(pairs)
    if pair is None:
        return None
    a, b = pair
    touched = [a, *[n for n in s.consumers(a.output[0]) if n.op_type == "DequantizeLinear"]]
    for n in touched:
        n.input[1], n.input[2] = b.input[1], b.input[2]
    return touched


ROWS = [
    ("adapter_merged_wrongly", "FastVideo", "hao-ai-lab/FastVideo#870", change_weight(matrix, low_rank)),
    ("shards_exchanged", "Megatron-Bridge", "NVIDIA-NeMo/Megatron-Bridge#2013", change_weight(matrix, shards)),
    ("group_scales", "unsloth", "unslothai/unsloth-zoo#848", change_weight(matrix, group_scales)),
    ("layers_exchanged", "distributed-llama", "b4rtaz/distributed-llama#52", layers_exchanged),
    ("head_not_tied", "transformers", "huggingface/transformers#43429", head_not_tied),
    ("classes_shifted", "armory", "twosixlabs/armory#799", classes_shifted),
    ("table_shifted", "eesen", "srvk/eesen#42", table_shifted),
    ("adapter_scale", "TensorRT-LLM", "NVIDIA/TensorRT-LLM#1668", adapter_scale),
    ("window_symmetric", "mlx-audio", "Blaizzy/mlx-audio#920", window_symmetric),
    ("normalization_order", "caffe", "BVLC/caffe#5040", normalization_order),
    ("quantizer_weight_axis", "aimet", "qualcomm/aimet#3184", weight_axis),
    ("quantizer_first_scale", "tract", "sonos/tract#2849", with_readers(first_scale)),
    ("quantizer_full_range", "onnxruntime", "microsoft/onnxruntime#22020", with_readers(full_range)),
    ("quantizer_bias_scale", "onnxruntime", "microsoft/onnxruntime#28229", with_readers(bias_scale)),
    ("quantizer_unsigned_weights", "onnxruntime", "microsoft/onnxruntime#21346", with_readers(unsigned_weights)),
    ("quantizer_parameters_of_another", "torchao", "pytorch/ao#3835", parameters_of_another),
]
