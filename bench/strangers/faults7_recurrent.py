"""Seventh generation: faults of cells that are written out."""
from surgery import scalar


def kept_state_lost(s):
    """Only the new state, where training left some of the last one."""
    sites = []
    for n in s.nodes("Add"):
        a, b = (s.made_by(x, "Mul") for x in n.input)
        if a is not None and b is not None:
            p, q = scalar(s, a.input[1]), scalar(s, b.input[1])
            if p is not None and q is not None and abs(p + q - 1) < 1e-5 and p < 0.5 and s.made_by(b.input[0], "Mul", "Add") is not None:
                sites.append((n, b))
    if len(sites) < 4:
        return None
    made = []
    for n, b in sites:
        made += s.bypass(n, b.input[0]) or []
    return made


def output_gate_lost(s):
    """All of the cell is heard."""
    made = []
    for n in list(s.nodes("Mul")):
        tanh, gate = s.made_by(n.input[1], "Tanh"), s.made_by(n.input[0], "Sigmoid")
        if tanh is not None and gate is not None and s.made_by(tanh.input[0], "Add", "Mul") is not None and s.made_by(gate.input[0], "Split") is not None:
            made += s.bypass(n, n.input[1]) or []
    return made or None


def input_beside_not_scaled(s):
    """What goes past the state is as large as it was."""
    def fits(n):
        behind = s.consumers(n.output[0])
        return 1.2 < (scalar(s, n.input[1]) or 0) < 2 and len(behind) == 1 and behind[0].op_type == "Mul" and s.made_by(behind[0].input[0], "Sub") is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def steps_stacked_backwards(s):
    """The first step last."""
    def fits(n):
        first = [s.made_by(x, "Unsqueeze") for x in n.input]
        return len(n.input) > 3 and all(f is not None for f in first) and len({s.shape(x) for x in n.input}) == 1
    node = s.pick("Concat", fits)
    if node is None:
        return None
    inputs = list(node.input)[::-1]
    del node.input[:]
    node.input.extend(inputs)
    return [node]


ROWS = [
    ("kept_state_lost", "TensorFlowTTS", "TensorSpeech/TensorFlowTTS#517", kept_state_lost),
    ("output_gate_lost", "torch benchmark", "pytorch/benchmark#55", output_gate_lost),
    ("input_beside_not_scaled", "trax", "google/trax#279", input_beside_not_scaled),
    ("steps_stacked_backwards", "d2l", "d2l-ai/d2l-en#2306", steps_stacked_backwards),
]
