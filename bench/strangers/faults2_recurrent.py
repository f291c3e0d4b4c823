"""Second generation: faults of recurrent layers, scans and unrolled states."""
import numpy as np

from faults_recurrent import recurrent_input


def peephole_order(s):
    """Input, forget, output for ONNX's input, output, forget."""
    node = s.pick("LSTM", lambda n: len(n.input) > 7 and n.input[7])
    if node is None:
        return None
    i, o, f = np.split(s.const(node.input[7]), 3, axis=1)
    return s.set_const(node, 7, np.concatenate([i, f, o], 1))


def clip_lost(s):
    node = s.pick("LSTM", lambda n: s.attr(n, "clip") is not None)
    if node is None:
        return None
    s.set_attr(node, "clip", None)
    return [node]


def forget_bias(s):
    """A cell adds 1 to its forget gate by itself; the weights do not have it."""
    node = s.pick("LSTM", lambda n: len(n.input) > 3 and n.input[3])
    if node is None:
        return None
    b = s.const(node.input[3]).copy()
    h = b.shape[1] // 8
    b[:, 2 * h:3 * h] -= 1
    return s.set_const(node, 3, b)


def reset_bias_merged(s):
    """The two biases of the new state are added before the reset gate sees one of them."""
    node = s.pick("GRU", lambda n: s.attr(n, "linear_before_reset", 0) == 1 and len(n.input) > 3 and n.input[3])
    if node is None:
        return None
    b = s.const(node.input[3]).copy()
    h = b.shape[1] // 6
    b[:, 2 * h:3 * h] += b[:, 5 * h:]
    b[:, 5 * h:] = 0
    return s.set_const(node, 3, b)


def cell_for_hidden(s):
    """The state of the cell where what it gives was meant."""
    node = s.pick("LSTM", lambda n: len(n.output) > 1 and n.output[1] and s.consumers(n.output[1]))
    if node is None:
        return None
    if len(node.output) < 3:
        node.output.append("")
    if not node.output[2]:
        node.output[2] = s.fresh("cell")
    readers = s.consumers(node.output[1])
    for reader in readers:
        for i, x in enumerate(reader.input):
            if x == node.output[1]:
                reader.input[i] = node.output[2]
    return [node, *readers]


def reverse_last_step(s):
    """A backward direction's last output stands at the first step, and is taken from the last."""
    def first(n):
        parts = [s.const(x) for x in n.input[1:4]]
        inner = s.made_by(n.input[0], "Slice")
        return None not in [inner, *(p if p is None else 1 for p in parts)] and [int(p[0]) for p in parts] == [0, 1, 0] and s.shape(n.input[0])[0] > 2
    node = s.pick("Slice", first)
    if node is None:
        return None
    length = s.shape(node.input[0])[0]
    return [*s.set_const(node, 1, np.array([length - 1])), *s.set_const(node, 2, np.array([length]))]


def scan_direction(s):
    node = s.pick("Scan", lambda n: 1 in (s.attr(n, "scan_input_directions") or []))
    if node is None:
        return None
    s.set_attr(node, "scan_input_directions", [0] * len(s.attr(node, "scan_input_directions")))
    return [node]


def older_state(s):
    """A state that is written in place: a step reads the one before the last."""
    def before(add):
        """(product, index of its input, state) of state = product of the last state + something."""
        for x in add.input:
            product = s.made_by(x, "Mul")
            for i, y in enumerate(product.input if product is not None else []):
                state = s.made_by(y, "Add")
                if state is not None and s.shape(y) == s.shape(add.output[0]):
                    yield product, i, state
    sites = []
    for add in s.nodes("Add"):
        for product, i, state in before(add):
            sites += [(product, i, older.output[0]) for _, _, older in before(state)]
    site = s.choose(sites)
    if site is None:
        return None
    site[0].input[site[1]] = site[2]
    return [site[0]]


ROWS = [
    ("peepholes_lost", "onnx2tf", "PINTO0309/onnx2tf#303", recurrent_input(7)),
    ("peephole_order", "opencv", "opencv/opencv#29931", peephole_order),
    ("cell_clip_lost", "paddle", "PaddlePaddle/Paddle#15605", clip_lost),
    ("forget_bias_lost", "TensorFlow.jl", "malmaud/TensorFlow.jl#310", forget_bias),
    ("reset_bias_merged", "nntrainer", "nntrainer/nntrainer#1787", reset_bias_merged),
    ("cell_for_hidden", "rnn-classifier", "mttk/rnn-classifier#3", cell_for_hidden),
    ("reverse_last_step", "onnx2tf", "PINTO0309/onnx2tf#287", reverse_last_step),
    ("scan_direction", "tract", "sonos/tract#2848", scan_direction),
    ("older_state", "mamba.py", "alxndrTL/mamba.py#27", older_state),
]
