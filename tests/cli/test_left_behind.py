#!/usr/bin/env python3
"""What an export left behind, limits, and the same fault at several steps: test_left_behind.py ASSAY

Small models whose last nodes were lost while the branches that they joined are still there and read by nobody; that lost a limit which one sample hardly
shows, at each step of a loop that was unrolled; that forget what they kept of a state; whose windows have their sides exchanged. `check` says what it
is, and the repaired model gives golden's outputs on inputs that took no part.
"""
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto as T

from test_lost_nodes import check, f32, ints, row, scalar

TOKENS = {"x": (T.FLOAT, [2, 8, 6])}
LINE = {"x": (T.FLOAT, [3, 6])}
W, W2, V = f32(6, 6), f32(6, 6), f32(6, 6)


def ends(join, first=(), more=()):
    """A product, what is made of it, and what joins that; the bad model gives the product itself, and the rest hangs there."""
    good = [("MatMul", ["x", "w"], "m", {}), *first, *join]
    bad = [(op, ["y" if v == "m" else v for v in inputs], "y" if o == "m" else o, a) for op, inputs, o, a in good[:1 + len(first)]]
    return row(LINE, good, bad, {"w": W, **dict(more)})


UNDO = [("Abs", ["m"], "a", {}), ("Mul", ["a", "much"], "b", {}), ("Add", ["b", "one"], "c", {}), ("Sqrt", ["c"], "r", {}), ("Sub", ["r", "one"], "d", {}),
        ("Div", ["d", "half"], "q", {}), ("Sign", ["m"], "s", {}), ("Mul", ["q", "q"], "t", {})]
GUIDED = [("ReduceMean", ["m"], "mean", {}), ("Sub", ["m", "mean"], "n", {}), ("Mul", ["n", "n"], "nn", {}), ("ReduceMean", ["nn"], "var", {}), ("Sqrt", ["var"], "std", {}),
          ("Div", ["m", "std"], "z", {}), ("Mul", ["z", "c6"], "p", {}), ("Mul", ["m", "c4"], "q", {})]
GATE = [("MatMul", ["m", "w2"], "g", {}), ("Sigmoid", ["g"], "s", {})]
MIDDLE = [("TopK", ["x", "six"], "t i", {"axis": 1, "largest": 0}), ("Slice", ["t", "two", "three", "one1"], "m", {}), ("Slice", ["t", "three", "four", "one1"], "n", {}),
          ("Add", ["m", "n"], "s", {})]


def middles():
    good = [*MIDDLE, ("Mul", ["s", "half"], "mid", {}), ("Sub", ["x", "mid"], "h", {}), ("MatMul", ["h", "v"], "y", {})]
    bad = [*MIDDLE, ("Sub", ["x", "m"], "h", {}), ("MatMul", ["h", "v"], "y", {})]
    return row(LINE, good, bad, {"six": ints(6), "two": ints(2), "three": ints(3), "four": ints(4), "one1": ints(1), "half": scalar(0.5), "v": V})


def steps(limit, constants, divides="Div", small=0.3):
    """At each step what is known is divided by how much that is, within a limit."""
    good, bad = [], []
    for i in range(4):
        one = [("Gather", ["x", f"at{i}"], f"g{i}", {"axis": 1}), ("Mul", [f"g{i}", "small"], f"q{i}", {}), ("Abs", [f"q{i}"], f"a{i}", {})]
        last = [("MatMul", [f"g{i}", "w"], f"n{i}", {})]
        good += [*one, *last, limit(i), (divides, [f"n{i}", f"l{i}"], f"d{i}", {})]
        bad += [*one, *last, (divides, [f"n{i}", f"a{i}"], f"d{i}", {})]
    tail = [("Add", ["d0", "d1"], "e", {}), ("Add", ["e", "d2"], "f", {}), ("Add", ["f", "d3"], "y", {})]
    at = {f"at{i}": scalar(i, np.int64) for i in range(4)}
    return row(TOKENS, good + tail, bad + tail, {**at, **constants, "w": W, "small": scalar(small)}, says="a clipping to")


def kept():
    """A part of the last state stays; the bad model takes the new one alone, and what was to be added up is left."""
    good, bad, last = [], [], ("n0", "n0")
    for i in range(4):
        good += [("Gather", ["x", f"at{i}"], f"g{i}", {"axis": 1})]
        bad += good[-1:]
        if i == 0:
            good.append(("Tanh", ["g0"], "n0", {}))
            bad += good[-1:]
            continue
        for nodes, was in ((good, last[0]), (bad, last[1])):
            nodes += [("MatMul", [was, "w"], f"m{i}", {}), ("Add", [f"m{i}", f"g{i}"], f"s{i}", {}), ("Tanh", [f"s{i}"], f"n{i}", {}),
                      ("Mul", [was, "c1"], f"o{i}", {}), ("Mul", [f"n{i}", "c9"], f"p{i}", {})]
        good.append(("Add", [f"o{i}", f"p{i}"], f"k{i}", {}))
        last = (f"k{i}", f"n{i}")
    good.append(("MatMul", [last[0], "v"], "y", {}))
    bad.append(("MatMul", [last[1], "v"], "y", {}))
    at = {f"at{i}": scalar(i, np.int64) for i in range(4)}
    return row(TOKENS, good, bad, {**at, "w": W, "v": V, "c1": scalar(0.1), "c9": scalar(0.9)})


def both_sides():
    parts = [("Slice", ["x", "nought", "three", "one1"], "a", {}), ("Slice", ["x", "three", "six", "one1"], "b", {}), ("Sign", ["a"], "sa", {}), ("Sign", ["b"], "sb", {}),
             ("Mul", ["sa", "quarter"], "pa", {}), ("Mul", ["sb", "quarter"], "pb", {})]
    good = [*parts, ("Add", ["a", "pa"], "ca", {}), ("Add", ["b", "pb"], "cb", {}), ("Concat", ["ca", "cb"], "h", {"axis": 1}), ("MatMul", ["h", "v"], "y", {})]
    bad = [*parts, ("Concat", ["a", "b"], "h", {"axis": 1}), ("MatMul", ["h", "v"], "y", {})]
    return row(LINE, good, bad, {"nought": ints(0), "three": ints(3), "six": ints(6), "one1": ints(1), "quarter": scalar(0.25), "v": V})


def window(good, bad, **more):
    image = {"x": (T.FLOAT, [1, 3, 12, 12])}
    nodes = [[("Conv", ["x", "k"], "c", a), ("Relu", ["c"], "y", {})] for a in (good, bad)]
    return row(image, *nodes, {"k": f32(4, 3, 3, 3)}, **more)


ROWS = {
    # The last node is lost, and what it joined hangs on what is given in its place.
    "undone": ends([("Mul", ["s", "t"], "y", {})], UNDO, {"much": scalar(0.08), "one": scalar(1), "half": scalar(0.2)}.items()),
    "guided": ends([("Add", ["p", "q"], "y", {})], GUIDED, {"c6": scalar(0.6), "c4": scalar(0.4)}.items()),
    "gate": ends([("Mul", ["m", "s"], "y", {})], GATE, {"w2": W2}.items()),
    "middles": middles(),
    # Limits at each step, of a number as people write it and of another one.
    "floor": steps(lambda i: ("Max", [f"a{i}", "limit"], f"l{i}", {}), {"limit": scalar(1)}),
    "ceiling": steps(lambda i: ("Min", [f"a{i}", "limit"], f"l{i}", {}), {"limit": scalar(0.3715)}, "Mul"),
    "kept": kept(),
    "both_sides": both_sides(),
    # Height first for width first.
    "dilations": window({"dilations": [1, 3], "pads": [1, 3, 1, 3]}, {"dilations": [3, 1], "pads": [3, 1, 3, 1]}, says="dilations"),
    "dilations_unlike": window({"dilations": [2, 4], "pads": [2, 4, 2, 4]}, {"dilations": [1, 1], "pads": [1, 1, 1, 1]}, says="dilations = [2,4]"),
    "strides": window({"strides": [1, 2], "pads": [1, 1, 1, 1]}, {"strides": [2, 1], "pads": [1, 1, 1, 1]}, says="strides = [1,2]"),
}


def main(assay, *names):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, one in ROWS.items():
            if not names or name in names:
                faults += check(assay, name, one)
    print("\n".join(faults) or f"{len(names or ROWS)} losses mended")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), *sys.argv[2:]))
