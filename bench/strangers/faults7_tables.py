"""Seventh generation: faults of pairs, trees, words that are not there, bent columns, kernels, levels, and series made even."""
import numpy as np

from faults4_structure import computed
from faults7_activations import kinds_behind
from surgery import scalar


def square_of_sums(s):
    """Squares of sums, less sums of squares, as differences."""
    for n in s.nodes("Sub"):
        square = s.made_by(n.input[0], "Mul", "Pow")
        twice = square is not None and (square.op_type == "Pow" and scalar(s, square.input[1]) == 2 or square.input[0] == square.input[1])
        if twice and s.made_by(n.input[1], "ReduceSum", "MatMul") is not None and kinds_behind(s, n.output[0]) == ["ReduceSum"]:
            yield n


def pairs_counted_twice(s):
    """Each pair from both ends."""
    sites = []
    for n in square_of_sums(s):
        half = s.consumers(s.consumers(n.output[0])[0].output[0])
        sites += [h for h in half if h.op_type == "Mul" and scalar(s, h.input[1]) == 0.5]
    node = s.choose(sites)
    return s.bypass(node, node.input[0]) if node is not None else None


def own_pairs_kept(s):
    """Pairs of a column with itself are counted, too."""
    node = s.choose(square_of_sums(s))
    return s.bypass(node, node.input[0]) if node is not None else None


def crossed_with_last(s):
    """What the columns have become, times layers of it, in place of what they were."""
    sites = []
    for n in s.nodes("Add"):
        for i in (0, 1):
            cross = s.made_by(n.input[i], "Mul")
            if cross is not None and computed(s, cross.input[0]) and cross.input[0] != n.input[1 - i] and s.shape(cross.input[0]) == s.shape(n.input[1 - i]) \
                    and s.made_by(cross.input[1], "Gemm", "Add") is not None and s.made_by(n.input[1 - i], "Add") is not None and len(s.consumers(cross.input[0])) > 2:
                sites.append((cross, n.input[1 - i]))
    site = s.choose(sites)
    if site is None:
        return None
    site[0].input[0] = site[1]
    return [site[0]]


def digits_of_leaf_turned(s):
    """The first question gives the last digit."""
    def fits(n):
        c = s.const(n.input[1])
        return c is not None and c.ndim == 2 and c.shape[1] == 1 and len(c) > 1 and np.array_equal(c.reshape(-1), 2.0 ** np.arange(len(c)))
    node = s.pick("MatMul", fits)
    return s.set_const(node, 1, s.const(node.input[1])[::-1]) if node is not None else None


def absent_words_ignored(s):
    """Only words that are there say something."""
    def fits(n):
        c = s.const(n.input[1])
        behind = s.consumers(n.output[0])
        return c is not None and c.ndim == 1 and c.size > 1 and c.max() < 0 and s.made_by(n.input[0], "MatMul") is not None and [b.op_type for b in behind] == ["Add"]
    node = s.pick("Add", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def power_below_as_above(s):
    """Below nothing the same power as above."""
    powers = [n for n in s.nodes("Pow") if s.const(n.input[1]) is not None and s.const(n.input[1]).ndim == 1 and s.const(n.input[1]).size > 1]
    if len(powers) != 2 or not np.allclose(s.const(powers[0].input[1]) + s.const(powers[1].input[1]), 2, atol=1e-5):
        return None
    above = s.const(powers[0].input[1]).copy()
    less = s.consumers(powers[1].output[0])[0]
    div = s.consumers(less.output[0])[0]
    return s.set_const(powers[1], 1, above) + s.set_const(div, 1, above)


def kernel_summand_lost(s):
    """A power of the product alone."""
    def fits(n):
        behind = s.consumers(n.output[0])
        return (scalar(s, n.input[1]) or 0) > 0.1 and len(behind) == 1 and behind[0].op_type == "Pow" and (scalar(s, behind[0].input[1]) or 0) in (2.0, 3.0) \
            and len(s.shape(n.output[0])) == 2 and s.made_by(n.input[0], "MatMul", "Mul") is not None
    node = s.pick("Add", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def chances_not_subtracted(s):
    """Chances of being above each border are taken for those of each level."""
    def fits(n):
        return all(s.made_by(x, "Concat") is not None for x in n.input) and s.shape(n.input[0]) == s.shape(n.input[1])
    node = s.pick("Sub", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def chosen_numbers_not_undone(s):
    """Back by mean and deviation alone."""
    def fits(n):
        sub = s.made_by(n.input[0], "Sub")
        return s.const(n.input[1]) is not None and s.const(n.input[1]).ndim == 3 and sub is not None and s.const(sub.input[1]) is not None and \
            s.const(sub.input[1]).shape == s.const(n.input[1]).shape
    node = s.pick("Div", fits)
    if node is None:
        return None
    sub = s.producer(node.input[0])
    made = s.bypass(node, sub.input[0])
    s.graph.node.remove(sub)
    return made


ROWS = [
    ("pairs_counted_twice", "CTR-keras", "Hourout/CTR-keras#3", pairs_counted_twice),
    ("own_pairs_kept", "TransFM", "rpasricha/TransFM#4", own_pairs_kept),
    ("crossed_with_last", "DeepCTR", "shenweichen/DeepCTR#416", crossed_with_last),
    ("digits_of_leaf_turned", "catboost", "catboost/catboost#1850", digits_of_leaf_turned),
    ("absent_words_ignored", "onnxmltools", "onnx/onnxmltools#151", absent_words_ignored),
    ("power_below_as_above", "scikit-learn", "scikit-learn/scikit-learn#12522", power_below_as_above),
    ("kernel_summand_lost", "autoMrP", "retowuest/autoMrP#9", kernel_summand_lost),
    ("chances_not_subtracted", "coral-pytorch", "Raschka-research-group/coral-pytorch#25", chances_not_subtracted),
    ("chosen_numbers_not_undone", "FITS", "VEWOXIC/FITS#23", chosen_numbers_not_undone),
]
