"""Fourth generation: faults of columns, units and graphs."""
import numpy as np


def squared_units(s):
    """Back to the target's units by its variance, not by its deviation."""
    def fits(n):
        c = s.const(n.input[1])
        behind = s.consumers(n.output[0])
        return c is not None and c.dtype == np.float32 and [b.op_type for b in behind] == ["Add"] and s.is_output(behind[0].output[0]) and \
            any(s.const(x) is not None for x in behind[0].input) and np.abs(c - 1).max() > 0.05
    node = s.pick("Mul", fits)
    return s.set_const(node, 1, (s.const(node.input[1]) ** 2).astype(np.float32)) if node is not None else None


def loops_lost(s):
    """No node is its own neighbour."""
    def fits(n):
        return any(s.const(x) is not None and s.const(x).ndim == 2 and np.array_equal(s.const(x), np.eye(len(s.const(x)))) for x in n.input)
    node = s.pick("Add", fits)
    if node is None:
        return None
    i = 0 if s.const(node.input[0]) is not None else 1
    return s.bypass(node, node.input[1 - i])


ROWS = [
    ("units_by_variance", "channel_independent_MTSF", "hanlu-nju/channel_independent_MTSF#3", squared_units),
    ("self_loops_lost", "pytorch_geometric", "pyg-team/pytorch_geometric#6251", loops_lost),
]
