"""Fourth generation: weights read in another order, from another place, or in too few digits; recurrent layers."""
import numpy as np

from faults_constants import change_weight
from faults4_norms import parameters


def matrix_reshaped(w, rng):
    """The other orientation's numbers in this one's shape."""
    return np.ascontiguousarray(w.T).reshape(w.shape)


def oblong(n, w):
    return n.op_type in ("MatMul", "Gemm") and w.ndim == 2 and w.shape[0] != w.shape[1] and min(w.shape) > 1


def filters_reshaped(w, rng):
    """Height, width, in, out: read as out, in, height, width."""
    return np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2))).reshape(w.shape)


def filters(n, w):
    return n.op_type == "Conv" and w.ndim > 2 and min(w.shape[:2]) > 1 and max(w.shape[2:]) > 1


def halves_interleaved(s):
    """One half's and the other's in turn, where they stand behind one another."""
    node = s.pick("Split", lambda n: len(n.output) == 2 and s.shape(n.output[0]) == s.shape(n.output[1]) and len(s.shape(n.output[0])) > 1)
    if node is None:
        return None
    shape = s.shape(node.input[0])
    axis = s.attr(node, "axis", 0) % len(shape)
    order = np.arange(shape[axis]).reshape(2, -1).T.reshape(-1) if s.rng.integers(2) else np.arange(shape[axis]).reshape(-1, 2).T.reshape(-1)
    return s.before(node, 0, ("Gather", [".", s.constant(order)], {"axis": axis}))


def columns_sorted(s):
    """The input's columns in the order of their names."""
    names = {i.name for i in s.graph.input}
    near = set(names)
    for n in s.graph.node:
        if n.op_type in ("Sub", "Div", "Mul", "Add", "Cast") and n.input[0] in near and len(s.shape(n.output[0])) == 2:
            near.add(n.output[0])
    node = s.pick(("MatMul", "Gemm"), lambda n: n.input[0] in near and s.const(n.input[1]) is not None and len(s.shape(n.input[0])) == 2)
    if node is None:
        return None
    w = s.const(node.input[1])
    axis = 1 if s.attr(node, "transB", 0) else 0
    return s.set_const(node, 1, np.take(w, s.rng.permutation(w.shape[axis]), axis))


def big(s, least=24):
    return [x for x in parameters(s) if x[2].size >= least]


def offset_of_data(s):
    """Read from a place a few numbers too far on; the last come from what is stored behind."""
    sites = big(s)
    site = s.choose(sites)
    if site is None:
        return None
    n, i, c = site
    other = sites[int(s.rng.integers(len(sites)))][2].reshape(-1)
    step = int(s.rng.integers(1, 9))
    new = np.concatenate([c.reshape(-1)[step:], np.resize(other, step)])
    return s.set_const(n, i, new.reshape(c.shape).astype(np.float32))


def data_cut_short(s):
    """The file ends before the tensor does."""
    site = s.choose(big(s))
    if site is None:
        return None
    n, i, c = site
    new = c.reshape(-1).copy()
    new[int(c.size * s.rng.uniform(0.3, 0.9)):] = 0
    return s.set_const(n, i, new.reshape(c.shape))


def few_digits(w, rng):
    """As a text with few digits behind the point says them."""
    return np.round(w, int(rng.integers(1, 3)))


def any_matrix(n, w):
    return w.size >= 16


# ---- recurrent layers ----

def recurrent_turned(s):
    """Each gate's matrix of the state, transposed."""
    node = s.pick(("LSTM", "GRU", "RNN"), lambda n: s.const(n.input[2]) is not None)
    if node is None:
        return None
    r = s.const(node.input[2])
    h = r.shape[2]
    return s.set_const(node, 2, np.ascontiguousarray(np.swapaxes(r.reshape(r.shape[0], -1, h, h), 2, 3)).reshape(r.shape))


def recurrent_activation(s):
    """Tanh, which is what a recurrent layer has unless it says otherwise."""
    node = s.pick("RNN", lambda n: s.attr(n, "activations") is not None)
    if node is None:
        return None
    s.set_attr(node, "activations", None)
    return [node]


def recurrent_bias(s):
    """One of its two biases is not there."""
    def fits(n):
        b = s.const(n.input[3]) if len(n.input) > 3 and n.input[3] else None
        return b is not None and b[:, b.shape[1] // 2:].any()
    node = s.pick(("GRU", "LSTM", "RNN"), fits)
    if node is None:
        return None
    b = s.const(node.input[3]).copy()
    b[:, b.shape[1] // 2:] = 0
    return s.set_const(node, 3, b)


ROWS = [
    ("matrix_reshaped", "TransformerLens", "TransformerLensOrg/TransformerLens#1554", change_weight(oblong, matrix_reshaped)),
    ("filters_in_another_order", "tfjs", "tensorflow/tfjs-core#379", change_weight(filters, filters_reshaped, 3)),
    ("halves_interleaved", "vllm", "vllm-project/vllm#27024", halves_interleaved),
    ("columns_sorted", "imodels", "csinva/imodels#290", columns_sorted),
    ("data_offset", "1bit-MONSTER", "1bit-MONSTER/1bit-MONSTER#654", offset_of_data),
    ("data_cut_short", "vmlx-swift", "osaurus-ai/vmlx-swift#217", data_cut_short),
    ("weights_in_few_digits", "kaldi", "kaldi-asr/kaldi#3468", change_weight(any_matrix, few_digits)),
    ("recurrent_matrix_turned", "transformers", "huggingface/transformers#10712", recurrent_turned),
    ("recurrent_activation_default", "onnxruntime", "microsoft/onnxruntime#4034", recurrent_activation),
    ("recurrent_second_bias_lost", "tfjs", "tensorflow/tfjs#2442", recurrent_bias),
]
