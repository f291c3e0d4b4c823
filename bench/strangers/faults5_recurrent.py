"""Fifth generation: faults of recurrent layers."""
import numpy as np

LAYERS = ("LSTM", "GRU", "RNN")


def states_exchanged(s):
    """What is held and what is hidden, in the other framework's order."""
    node = s.pick("LSTM", lambda n: len(n.input) > 6 and n.input[5] and n.input[6])
    if node is None:
        return None
    node.input[5], node.input[6] = node.input[6], node.input[5]
    return [node]


def merged_otherwise(s):
    """Both directions are averaged or multiplied, not added."""
    def fits(n):
        parts = [s.made_by(x, "Split") for x in n.input]
        return parts[0] is not None and parts[0] is parts[1] and s.shape(n.input[0]) == s.shape(n.input[1])
    node = s.pick("Add", fits)
    if node is None:
        return None
    if s.rng.integers(2):
        node.op_type = "Mul"
        return [node]
    return s.after(node.output[0], ("Mul", [".", s.constant(np.float32(0.5))], {}))


def directions_share(s):
    """Backwards with the weights that are for forwards."""
    node = s.pick(LAYERS, lambda n: s.attr(n, "direction", "forward") == "bidirectional")
    if node is None:
        return None
    for i in (1, 2, 3):
        if i < len(node.input) and node.input[i]:
            s.set_const(node, i, np.repeat(s.const(node.input[i])[:1], 2, 0))
    return [node]


def parts_of_cell(s):
    """New values where it was to be said what is forgotten, and the reverse: the order of another framework."""
    def fits(n):
        kinds = [s.consumers(o)[0].op_type if s.consumers(o) else "" for o in n.output]
        return len(n.output) == 4 and kinds[0] == "Sigmoid" and kinds[1] == "Tanh" and len({s.shape(o) for o in n.output}) == 1
    nodes = [n for n in s.nodes("Split") if fits(n)]
    for n in nodes:
        n.output[1], n.output[2] = n.output[2], n.output[1]
    return nodes or None


ROWS = [
    ("directions_share_weights", "deepSpeech", "fordDeepDSP/deepSpeech#20", directions_share),
    ("parts_of_cell_exchanged", "tensorflow", "tensorflow/tensorflow#29308", parts_of_cell),
    ("initial_states_exchanged", "nni", "microsoft/nni#2839", states_exchanged),
    ("directions_merged_otherwise", "keras-js", "transcranial/keras-js#84", merged_otherwise),
]
