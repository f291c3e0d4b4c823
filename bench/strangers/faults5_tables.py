"""Fifth generation: faults of tables and of what stands before them."""
import numpy as np

from surgery import scalar


def missing_kept(s):
    """What is missing counts as the number that stands for it."""
    def fits(n):
        equal = s.made_by(n.input[0], "Equal")
        return equal is not None and scalar(s, equal.input[1]) is not None and s.const(n.input[1]) is not None and n.input[2] == equal.input[0]
    node = s.pick("Where", fits)
    return s.bypass(node, node.input[2]) if node is not None else None


def neighbours_alike(s):
    """Each neighbour counts as much as any other."""
    node = s.pick("Div", lambda n: scalar(s, n.input[0]) == 1 and s.made_by(n.input[1], "Max") is not None)
    if node is None:
        return None
    node.input[0] = node.input[1]
    return [node]


def metric_default(s):
    """Straight lines for sums of differences, or the reverse."""
    def fits(n):
        gap = s.made_by(n.input[0], "Sub")
        return gap is not None and any(s.const(x) is not None and s.const(x).ndim == 3 for x in gap.input)
    node = s.pick(("ReduceL1", "ReduceL2"), fits)
    if node is None:
        return None
    node.op_type = {"ReduceL1": "ReduceL2", "ReduceL2": "ReduceL1"}[node.op_type]
    return [node]


ROWS = [
    ("missing_values_kept", "skl2onnx", "onnx/sklearn-onnx#191", missing_kept),
    ("neighbours_count_alike", "skl2onnx", "onnx/sklearn-onnx#112", neighbours_alike),
    ("neighbour_metric_default", "skl2onnx", "onnx/sklearn-onnx#203", metric_default),
]
