"""Sixth generation: faults of targets, of links, of small steps, of main directions and of counted words."""
import numpy as np

from faults4_structure import computed
from surgery import scalar


def deviation_without_units(s):
    """How sure it is, in units in which all are alike."""
    def fits(n):
        c = s.const(n.input[1])
        root = s.made_by(n.input[0], "Sqrt")
        return c is not None and c.size > 1 and root is not None and s.made_by(root.input[0], "Max") is not None
    node = s.pick("Mul", fits)
    if node is None:
        return None
    return s.set_const(node, 1, np.ones_like(s.const(node.input[1])))


def units_not_put_back(s):
    """A target that was made like others stays so."""
    def fits(n):
        wide, c = s.made_by(n.input[0], "Mul"), s.const(n.input[1])
        scale = s.const(wide.input[1]) if wide is not None else None
        return c is not None and c.size > 1 and scale is not None and scale.shape == c.shape and np.all(scale > 2) and s.is_output(n.output[0])
    node = s.pick("Add", fits)
    if node is None:
        return None
    wide = s.producer(node.input[0])
    return [*s.set_const(node, 1, np.zeros_like(s.const(node.input[1]))), *s.set_const(wide, 1, np.ones_like(s.const(wide.input[1])))]


def link_lost(s):
    """The logarithm of what is expected, for what is expected."""
    def fits(n):
        x = n.output[0]
        if s.is_output(x):
            return True
        behind = s.consumers(x)
        return len(behind) == 1 and behind[0].op_type == "Mul" and s.is_output(behind[0].output[0]) and len(s.shape(x)) == 2
    node = s.pick("Exp", lambda n: computed(s, n.input[0]) and fits(n))
    return s.bypass(node, node.input[0]) if node is not None else None


def small_steps(s):
    """Products of a sum of two answers with a small number."""
    return [n for n in s.nodes("Mul") if 0 < (scalar(s, n.input[1]) or 0) < 0.5 and s.made_by(n.input[0], "Add") is not None
            and all(s.made_by(x, "MatMul") is not None for x in s.producer(n.input[0]).input)]


def small_step_lost(s):
    """Each tree counts for as much as it says."""
    made = []
    for n in small_steps(s):
        made += s.set_const(n, 1, np.ones_like(s.const(n.input[1])))
    return made or None


def falling(c):
    return c is not None and c.ndim == 1 and c.size > 2 and np.all(np.diff(c) <= 0) and c[0] > c[-1] > 0


def directions_not_evened(s):
    """Main directions as wide as they are."""
    node = s.pick("Div", lambda n: falling(s.const(n.input[1])) and s.made_by(n.input[0], "MatMul") is not None)
    return s.bypass(node, node.input[0]) if node is not None else None


def evened_not_undone(s):
    """On the way back they stay as wide as any other."""
    node = s.pick("Mul", lambda n: falling(s.const(n.input[1])) and [b.op_type for b in s.consumers(n.output[0])] == ["MatMul"])
    return s.bypass(node, node.input[0]) if node is not None else None


def logarithm_of_count_lost(s):
    """How often, for its logarithm and one."""
    def fits(n):
        log = s.made_by(n.input[0], "Log")
        counted = log is not None and scalar(s, n.input[1]) == 1 and s.made_by(log.input[0], "Max") is not None
        return counted and any(b.op_type == "Where" for b in s.consumers(n.output[0]))
    node = s.pick("Add", fits)
    return s.bypass(node, s.producer(node.input[0]).input[0]) if node is not None else None


def rarity_lost(s):
    """A word that is everywhere counts as much as one that is seldom."""
    node = s.pick("Mul", lambda n: s.made_by(n.input[0], "Where") is not None and s.const(n.input[1]) is not None and s.const(n.input[1]).size > 4)
    return s.bypass(node, node.input[0]) if node is not None else None


ROWS = [
    ("deviation_without_units", "scikit-learn", "scikit-learn/scikit-learn#15782", deviation_without_units),
    ("units_not_put_back", "scikit-learn", "scikit-learn/scikit-learn#29697", units_not_put_back),
    ("link_lost", "LightGBM", "lightgbm-org/LightGBM#869", link_lost),
    ("small_step_lost", "skl2onnx", "onnx/sklearn-onnx#171", small_step_lost),
    ("directions_not_evened", "h2o4gpu", "h2oai/h2o4gpu#554", directions_not_evened),
    ("directions_evened_not_undone", "torch_pca", "valentingol/torch_pca#18", evened_not_undone),
    ("logarithm_of_count_lost", "skl2onnx", "onnx/sklearn-onnx#1055", logarithm_of_count_lost),
    ("rarity_of_words_lost", "skl2onnx", "onnx/sklearn-onnx#197", rarity_lost),
]
