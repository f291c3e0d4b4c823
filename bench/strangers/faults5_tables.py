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


def range_lost(s):
    """From nothing to one, whatever range was asked for."""
    def fits(n):
        wide = s.made_by(n.input[0], "Mul")
        share = s.made_by(wide.input[0], "Div") if wide is not None else None
        return scalar(s, n.input[1]) is not None and share is not None and scalar(s, wide.input[1]) is not None and \
            s.const(share.input[1]) is not None and s.const(share.input[1]).size > 1
    node = s.pick("Add", fits)
    if node is None:
        return None
    wide = s.producer(node.input[0])
    made = s.bypass(node, wide.output[0])
    return [*made, *s.bypass(wide, wide.input[0])]


def largest_not_absolute(s):
    node = s.pick("Abs", lambda n: [b.op_type for b in s.consumers(n.output[0])] == ["ReduceMax"])
    return s.bypass(node, node.input[0]) if node is not None else None


def curve_turned(s):
    """A chance that rises with the margin falls with it."""
    def fits(n):
        c, more = s.const(n.input[1]), s.consumers(n.output[0])
        return c is not None and c.ndim == 1 and np.all(c < 0) and len(more) == 1 and more[0].op_type == "Add" and \
            [b.op_type for b in s.consumers(more[0].output[0])] == ["Exp"]
    node = s.pick("Mul", fits)
    return s.set_const(node, 1, -s.const(node.input[1])) if node is not None else None


ROWS = [
    ("range_of_scaler_lost", "skl2onnx", "onnx/sklearn-onnx#986", range_lost),
    ("largest_not_absolute", "skl2onnx", "onnx/sklearn-onnx#793", largest_not_absolute),
    ("curve_of_margin_turned", "skl2onnx", "onnx/sklearn-onnx#990", curve_turned),
    ("missing_values_kept", "skl2onnx", "onnx/sklearn-onnx#191", missing_kept),
    ("neighbours_count_alike", "skl2onnx", "onnx/sklearn-onnx#112", neighbours_alike),
    ("neighbour_metric_default", "skl2onnx", "onnx/sklearn-onnx#203", metric_default),
]
