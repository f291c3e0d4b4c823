"""Faults of recurrent layers: order of gates, directions, states, activations."""
import numpy as np


def recurrent_weights(kind, order):
    """Gates in another framework's order: W, R and B alike."""
    def apply(s):
        node = s.pick(kind)
        if node is None:
            return None
        for i, groups in ((1, 1), (2, 1), (3, 2)):
            if i < len(node.input) and node.input[i]:
                a = s.const(node.input[i])
                parts = np.split(a, groups * len(order), axis=1)
                s.set_const(node, i, np.concatenate([parts[g * len(order) + o] for g in range(groups) for o in order], axis=1))
        return [node]
    return apply


def recurrent_bias_twice(s):
    """One bias of the framework is written to both halves, which are added."""
    node = s.pick(("LSTM", "GRU", "RNN"), lambda n: len(n.input) > 3 and n.input[3])
    if node is None:
        return None
    a = s.const(node.input[3])
    half = a.shape[1] // 2
    return s.set_const(node, 3, np.concatenate([a[:, :half], a[:, :half]], 1))


def directions_swapped(s):
    node = s.pick(("LSTM", "GRU", "RNN"), lambda n: s.attr(n, "direction", "forward") == "bidirectional")
    if node is None:
        return None
    for i in (1, 2, 3):
        if i < len(node.input) and node.input[i]:
            s.set_const(node, i, s.const(node.input[i])[::-1])
    return [node]


def recurrent_activations(change):
    """change: from names to names, on each direction's."""
    def apply(s):
        default = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}

        def new(n):
            d = 2 if s.attr(n, "direction", "forward") == "bidirectional" else 1
            now = [a.decode() if isinstance(a, bytes) else a for a in s.attr(n, "activations", default[n.op_type] * d)]
            then = change(now)
            return then if then != now else None
        node = s.pick(("LSTM", "GRU", "RNN"), lambda n: new(n) is not None)
        if node is None:
            return None
        s.set_attr(node, "activations", new(node))
        return [node]
    return apply


def exchange(**names):
    return lambda now: [names.get(a, a) for a in now]


def direction(s):
    node = s.pick(("LSTM", "GRU", "RNN"), lambda n: s.attr(n, "direction", "forward") != "bidirectional")
    if node is None:
        return None
    s.set_attr(node, "direction", "forward" if s.attr(node, "direction", "forward") == "reverse" else "reverse")
    return [node]


def recurrent_input(i, until=None):
    """An optional input is not written."""
    def apply(s):
        node = s.pick(("LSTM", "GRU", "RNN"), lambda n: len(n.input) > i and n.input[i])
        if node is None:
            return None
        for k in range(i, until or len(node.input)):
            node.input[k] = ""
        while not node.input[-1]:
            node.input.pop()
        return [node]
    return apply


def bidirectional_order(s):
    """Directions and units exchanged in a bidirectional layer's output."""
    node = s.pick("Transpose", lambda n: s.attr(n, "perm") == [0, 2, 1, 3] and s.made_by(n.input[0], "LSTM", "GRU", "RNN") is not None)
    if node is None:
        return None
    s.set_attr(node, "perm", [0, 2, 3, 1])
    return [node, *s.consumers(node.output[0])]


def backward_not_turned(s):
    """TensorFlow gives a reversed layer's outputs in its own order of time."""
    node = s.pick(("LSTM", "GRU", "RNN"), lambda n: s.attr(n, "direction", "forward") == "reverse" and s.consumers(n.output[0]))
    if node is None:
        return None
    ints = [s.constant(np.array([v], np.int64)) for v in (-1, -2 ** 62, 0, -1)]
    return s.after(node.output[0], ("Slice", [".", *ints], {}))


ROWS = [
    ("lstm_gate_order", "onnxscript", "microsoft/onnxscript#2674", recurrent_weights("LSTM", (0, 2, 3, 1))),
    ("gru_gate_order", "onnxscript", "microsoft/onnxscript#2674", recurrent_weights("GRU", (1, 0, 2))),
    ("recurrent_bias_twice", "keras2onnx", "onnx/keras-onnx#98", recurrent_bias_twice),
    ("recurrent_directions_swapped", "torch.onnx", "pytorch/pytorch#147539", directions_swapped),
    ("recurrent_direction", "keras2onnx", "onnx/keras-onnx#612", direction),
    ("recurrent_hard_sigmoid", "tf2onnx", "onnx/tensorflow-onnx#2001", recurrent_activations(exchange(HardSigmoid="Sigmoid", Sigmoid="HardSigmoid"))),
    ("recurrent_softsign", "keras2onnx", "onnx/keras-onnx#554", recurrent_activations(exchange(Softsign="Tanh", Tanh="Softsign"))),
    ("initial_state_lost", "torch.onnx", "pytorch/pytorch#22813", recurrent_input(5)),
    ("lengths_ignored", "torch.onnx", "pytorch/pytorch#48460", recurrent_input(4, 5)),
    ("bidirectional_order", "torch.onnx", "pytorch/pytorch#10838", bidirectional_order),
    ("backward_not_turned", "keras2onnx", "onnx/keras-onnx#523", backward_not_turned),
]
