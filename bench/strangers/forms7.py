"""Seventh generation of healthy models: other operators for single numbers, sums, cuts and turns, as kernels' authors and simplifiers write them."""
import numpy as np
from onnx import TensorProto

from faults7_activations import axes_of
from forms import copy, done
from forms4 import f32, reduced, replaced
from forms6 import attributes, floats
from surgery import scalar


def each(kinds, steps, where=lambda s, n: True):
    """A form: each node of these kinds becomes some steps, which a function gives (or None)."""
    def form(model, rng):
        s = copy(model, rng)
        for n in list(s.nodes(*kinds)):
            if floats(s, n.input[0]) and where(s, n):
                new = steps(s, n)
                if new:
                    replaced(s, n, new)
        return done(model, s)
    return form


def number(s, value):
    return s.constant(f32(value), "number")


def last_axes(s, axis, rank):
    """Axes as an input or as an attribute of Squeeze and Unsqueeze, by operator set."""
    return ([s.constant(np.array([axis]))], {}) if s.opset >= 13 else ([], {"axes": [axis]})


def axis_step(s, kind, x, axis):
    more, attributes_ = last_axes(s, axis, 0)
    return kind, [x, *more], attributes_


rectifiers_as_limits = each(("Relu",), lambda s, n: [("Clip", [".", number(s, 0)], {})])
rectifiers_as_choices = each(("Relu",), lambda s, n: [("Greater", [".", number(s, 0)], {}), ("Where", [0, ".", number(s, 0)], {})])
slopes_as_learned = each(("LeakyRelu",), lambda s, n: [("PRelu", [".", number(s, [s.attr(n, "alpha", 0.01)])], {})])
magnitudes_as_largest = each(("Abs",), lambda s, n: [("Neg", ["."], {}), ("Max", [".", 0], {})])
negatives_as_products = each(("Neg",), lambda s, n: [("Mul", [".", number(s, -1)], {})])
inverses_as_divisions = each(("Reciprocal",), lambda s, n: [("Div", [number(s, 1), "."], {})])
exponentials_in_halves = each(("Exp",), lambda s, n: [("Mul", [".", number(s, 0.5)], {}), ("Exp", [0], {}), ("Mul", [1, 1], {})])
lengths_written_out = each(("ReduceL2",), lambda s, n: [("Mul", [".", "."], {}), reduced_like(s, n, "ReduceSum", 0), ("Sqrt", [1], {})])
rectifiers_made_smooth = each(("Softplus",), lambda s, n: [("Abs", ["."], {}), ("Neg", [0], {}), ("Exp", [1], {}), ("Add", [2, number(s, 1)], {}), ("Log", [3], {}),
                                                           ("Relu", ["."], {}), ("Add", [4, 5], {})])
roots_by_logarithms = each(("Sqrt",), lambda s, n: [("Log", ["."], {}), ("Mul", [0, number(s, 0.5)], {}), ("Exp", [1], {})],
                           lambda s, n: np.min(s.values[n.input[0]]) > 1e-7)
cubes_as_products = each(("Pow",), lambda s, n: [("Mul", [".", "."], {}), ("Mul", [0, "."], {})], lambda s, n: scalar(s, n.input[1]) == 3)
products_as_divisions = each(("Mul",), lambda s, n: [("Div", [".", s.constant(f32(1 / s.const(n.input[1]).astype(np.float64)), "inverse")], {})],
                             lambda s, n: s.const(n.input[1]) is not None and s.const(n.input[1]).dtype == np.float32 and np.abs(s.const(n.input[1])).min() > 1e-3
                             and np.abs(s.const(n.input[1])).max() < 1e3)


def reduced_like(s, n, kind, x):
    """A reduction over the same axes as the node's."""
    keep = {"keepdims": s.attr(n, "keepdims", 1)}
    step = reduced(s, kind, x, axes_of(s, n))
    return step[0], step[1], {**step[2], **keep}


def limits_as_choices(model, rng):
    s = copy(model, rng)
    for n in list(s.nodes("Clip")):
        if any(len(n.input) > i and n.input[i] and s.const(n.input[i]) is None for i in (1, 2)) or not floats(s, n.input[0]):
            continue
        steps, last = [], "."
        for i, kind in ((1, "Less"), (2, "Greater")):
            if len(n.input) > i and n.input[i]:
                steps += [(kind, [last, n.input[i]], {}), ("Where", [len(steps), n.input[i], last], {})]
                last = len(steps) - 1
        if steps:
            replaced(s, n, steps)
    return done(model, s)


def sigmoids_as_shares(model, rng):
    """The first of two shares, where the other number is nothing."""
    s = copy(model, rng)
    for n in list(s.nodes("Sigmoid")):
        rank = len(s.shape(n.input[0]))
        replaced(s, n, [("Mul", [".", number(s, 0)], {}), axis_step(s, "Unsqueeze", ".", rank), axis_step(s, "Unsqueeze", 0, rank), ("Concat", [1, 2], {"axis": rank}),
                        ("Softmax", [3], {"axis": rank}), ("Gather", [4, s.constant(np.int64(0), "first")], {"axis": rank})])
    return done(model, s)


def larger_by_rectifiers(model, rng):
    s = copy(model, rng)
    for n in list(s.nodes("Max", "Min")):
        if len(n.input) == 2 and floats(s, n.input[0]) and np.asarray(s.values.get(n.input[1], s.const(n.input[1]))).dtype == np.float32:
            a, b = n.input
            order = [a, b] if n.op_type == "Max" else [b, a]
            replaced(s, n, [("Sub", order, {}), ("Relu", [0], {}), ("Add", [b, 1], {}) if n.op_type == "Max" else ("Sub", [b, 1], {})])
    return done(model, s)


def hard_swish_joined(model, rng):
    """x times its hard sigmoid as one operator, of set 14."""
    s = copy(model, rng)
    for n in s.nodes("Mul"):
        gate = s.made_by(n.input[1], "HardSigmoid")
        if s.opset >= 14 and gate is not None and gate.input[0] == n.input[0] and abs(s.attr(gate, "alpha", 0.2) - 1 / 6) < 1e-6 and s.attr(gate, "beta", 0.5) == 0.5:
            n.op_type = "HardSwish"
            del n.input[1]
    return done(model, s)


def bells_joined(model, rng):
    """What an error function and four more make, as Gelu of set 20."""
    s = copy(model, rng)
    for erf in list(s.nodes("Erf")):
        div = s.producer(erf.input[0])
        one = s.consumers(erf.output[0])[0]
        product = s.consumers(one.output[0])[0]
        half = s.consumers(product.output[0])[0]
        x = div.input[0]
        kinds = [n.op_type for n in (div, one, product, half)]
        if s.opset < 20 or kinds != ["Div", "Add", "Mul", "Mul"] or x not in product.input or scalar(s, half.input[1]) != 0.5:
            continue
        for node in (div, erf, one, product):
            s.graph.node.remove(node)
        half.op_type = "Gelu"
        del half.input[:]
        half.input.append(x)
    return done(model, s)


def squares_summed_at_once(model, rng):
    """Sums and means of squares by the operator that has both."""
    s = copy(model, rng)
    for n in list(s.nodes("ReduceSum", "ReduceMean")):
        square, axes = s.made_by(n.input[0], "Mul", "Pow"), axes_of(s, n)
        twice = square is not None and (square.op_type == "Pow" and scalar(s, square.input[1]) == 2 or square.op_type == "Mul" and square.input[0] == square.input[1])
        if not twice or axes is None or 0 in axes:
            continue
        shape = s.shape(n.input[0])
        kind, inputs, more = reduced(s, "ReduceSumSquare", square.input[0], axes)
        more = {**more, "keepdims": s.attr(n, "keepdims", 1)}
        steps = [(kind, inputs, more)]
        if n.op_type == "ReduceMean":
            steps.append(("Mul", [0, number(s, 1 / np.prod([shape[a] for a in axes]))], {}))
        replaced(s, n, steps)
    return done(model, s)


def means_as_sums(model, rng):
    s = copy(model, rng)
    for n in list(s.nodes("ReduceMean")):
        axes, shape = axes_of(s, n), s.shape(n.input[0])
        if axes is not None and 0 not in axes:
            replaced(s, n, [reduced_like(s, n, "ReduceSum", "."), ("Div", [0, number(s, np.prod([shape[a] for a in axes]))], {})])
    return done(model, s)


def variances_by_squares(model, rng):
    """The mean of squares less the square of the mean, where that loses little."""
    s = copy(model, rng)
    for n in list(s.nodes("ReduceMean")):
        square = s.made_by(n.input[0], "Mul", "Pow")
        gap = s.made_by(square.input[0], "Sub") if square is not None else None
        mean = s.made_by(gap.input[1], "ReduceMean") if gap is not None else None
        if mean is None or mean.input[0] != gap.input[0] or axes_of(s, mean) != axes_of(s, n) or not s.attr(mean, "keepdims", 1) or not s.attr(n, "keepdims", 1):
            continue
        if np.max(s.values[mean.output[0]] ** 2 / (s.values[n.output[0]] + 1e-9)) < 30:
            x, m = gap.input
            replaced(s, n, [("Mul", [x, x], {}), reduced_like(s, n, "ReduceMean", 0), ("Mul", [m, m], {}), ("Sub", [1, 2], {})])
    return done(model, s)


def sums_of_many(model, rng):
    """Sums that only a sum reads are one sum of three."""
    s = copy(model, rng)
    for n in list(s.nodes("Add")):
        for i in (0, 1):
            inner = s.made_by(n.input[i], "Add")
            if inner is not None and len(s.consumers(inner.output[0])) == 1 and not s.is_output(inner.output[0]) and np.asarray(s.values[n.output[0]]).dtype == np.float32:
                inputs = [*inner.input, n.input[1 - i]]
                s.graph.node.remove(inner)
                n.op_type = "Sum"
                del n.input[:]
                n.input.extend(inputs)
                break
    return done(model, s)


def sums_by_stacking(model, rng):
    s = copy(model, rng)
    for n in list(s.nodes("Add")):
        if all(floats(s, x) for x in n.input) and s.shape(n.input[0]) == s.shape(n.input[1]):
            rank = len(s.shape(n.input[0]))
            kind, inputs, more = reduced(s, "ReduceSum", 2, [rank])
            replaced(s, n, [axis_step(s, "Unsqueeze", n.input[0], rank), axis_step(s, "Unsqueeze", n.input[1], rank), ("Concat", [0, 1], {"axis": rank}),
                            (kind, inputs, {**more, "keepdims": 0})])
    return done(model, s)


def joins_as_sums(model, rng):
    """What is joined is filled up with zeros on either side, and added."""
    s = copy(model, rng)
    for n in list(s.nodes("Concat")):
        rank = len(s.shape(n.output[0]))
        axis = s.attr(n, "axis") % rank
        if len(n.input) != 2 or axis == 0 or not all(floats(s, x) for x in n.input):
            continue
        a, b = (s.shape(x)[axis] for x in n.input)
        pads = [np.zeros((2, rank), np.int64) for _ in range(2)]
        pads[0][1, axis], pads[1][0, axis] = b, a
        replaced(s, n, [*[("Pad", [x, s.constant(p.reshape(-1), "pads")], {}) for x, p in zip(n.input, pads)], ("Add", [0, 1], {})])
    return done(model, s)


def cuts_as_products(model, rng):
    """What is cut out along the last axis, by a matrix of ones and zeros."""
    s = copy(model, rng)
    for n in list(s.nodes("Slice")):
        parts = [s.const(x) for x in n.input[1:] if x]
        shape = s.shape(n.input[0])
        if len(parts) < 3 or any(p is None or p.size != 1 for p in parts) or not floats(s, n.input[0]) or int(parts[2].item()) % len(shape) != len(shape) - 1 or len(shape) < 2:
            continue
        step = int(parts[3].item()) if len(parts) > 3 else 1
        if step > 0:
            places = np.arange(shape[-1])[slice(int(parts[0].item()), int(np.clip(parts[1].item(), -2 ** 31, 2 ** 31)), step)]
            replaced(s, n, [("MatMul", [".", s.constant(f32(np.eye(shape[-1])[:, places]), "chosen")], {})])
    return done(model, s)


def turns_as_einsum(model, rng):
    def steps(s, n):
        perm = s.attr(n, "perm")
        letters = "abcdefgh"[:len(perm)] if perm else ""
        return [("Einsum", ["."], {"equation": f"{letters}->{''.join(letters[p] for p in perm)}"})] if perm else None
    return each(("Transpose",), steps)(model, rng)


def borders_as_places(model, rng):
    """Borders that repeat or mirror a picture, by the numbers of its places."""
    s = copy(model, rng)
    for n in list(s.nodes("Pad")):
        mode, pads, shape = s.attr(n, "mode", "constant"), s.const(n.input[1]), s.shape(n.input[0])
        if mode not in ("edge", "reflect") or pads is None or len(pads) != 2 * len(shape):
            continue
        low, high = pads.reshape(2, -1)
        steps = []
        for axis in np.flatnonzero(low + high):
            places = np.pad(np.arange(shape[axis]), (low[axis], high[axis]), mode).astype(np.int64)
            steps.append(("Gather", ["." if not steps else len(steps) - 1, s.constant(places, "places")], {"axis": int(axis)}))
        replaced(s, n, steps)
    return done(model, s)


def zeros_joined(model, rng):
    """Borders of zeros, made from the picture, and joined to it."""
    s = copy(model, rng)
    for n in list(s.nodes("Pad")):
        pads, shape = s.const(n.input[1]), s.shape(n.input[0])
        value = scalar(s, n.input[2]) if len(n.input) > 2 and n.input[2] else 0.0
        if s.attr(n, "mode", "constant") != "constant" or value != 0 or pads is None or len(pads) != 2 * len(shape) or pads.min() < 0 or np.count_nonzero(pads) != 1:
            continue
        low, high = pads.reshape(2, -1)
        axis = int(np.flatnonzero(low + high)[0])
        many = int(low[axis] + high[axis])
        if many > shape[axis]:
            continue
        cut = [s.constant(np.array([v]), "cut") for v in (0, many, axis)]
        joined = ["zeros", "."] if low[axis] else [".", "zeros"]
        replaced(s, n, [("Slice", [".", *cut], {}), ("Mul", [0, number(s, 0)], {}), ("Concat", [1 if j == "zeros" else "." for j in joined], {"axis": axis})])
    return done(model, s)


def comparisons_by_signs(model, rng):
    """A one where the difference is above nothing."""
    s = copy(model, rng)
    for n in list(s.nodes("Cast")):
        ask = s.made_by(n.input[0], "Greater", "Less")
        if ask is not None and s.attr(n, "to") == TensorProto.FLOAT and all(np.asarray(s.values.get(x, s.const(x))).dtype == np.float32 for x in ask.input):
            a, b = ask.input if ask.op_type == "Greater" else list(ask.input)[::-1]
            replaced(s, n, [("Sub", [a, b], {}), ("Sign", [0], {}), ("Relu", [1], {})])
    return done(model, s)


def choices_by_places(model, rng):
    """A one at the place of the largest."""
    s = copy(model, rng)
    for n in list(s.nodes("Hardmax")):
        rank = len(s.shape(n.input[0]))
        axis = s.attr(n, "axis", -1) % rank
        if s.opset >= 13 or axis == rank - 1:
            depth, ends = s.constant(np.int64(s.shape(n.input[0])[axis]), "depth"), number(s, [0, 1])
            replaced(s, n, [("ArgMax", ["."], {"axis": axis, "keepdims": 0}), ("OneHot", [0, depth, ends], {"axis": axis})])
    return done(model, s)


def logarithms_of_shares(model, rng):
    def steps(s, n):
        span = np.ptp(s.values[n.input[0]])
        return [("Softmax", ["."], attributes(s, n)), ("Log", [0], {})] if span < 20 else None
    return each(("LogSoftmax",), steps)(model, rng)


def looked_up_one_by_one(model, rng):
    """Rows of a table by the operator for places of any rank."""
    s = copy(model, rng)
    for n in list(s.nodes("Gather")):
        rows, index = s.const(n.input[0]), n.input[1]
        ids = s.values.get(index)
        if rows is None or s.attr(n, "axis", 0) or rows.dtype != np.float32 or ids is None or np.asarray(ids).dtype != np.int64 or np.ndim(ids) < 1 or np.min(ids) < 0:
            continue
        replaced(s, n, [(*axis_step(s, "Unsqueeze", index, np.ndim(ids))[:2], axis_step(s, "Unsqueeze", index, np.ndim(ids))[2]), ("GatherND", [n.input[0], 0], {})])
    return done(model, s)


def single_places_as_slices(model, rng):
    s = copy(model, rng)
    for n in list(s.nodes("Gather")):
        c = s.const(n.input[1])
        if c is None or c.ndim != 0 or not floats(s, n.input[0]):
            continue
        axis = s.attr(n, "axis", 0) % len(s.shape(n.input[0]))
        at = int(c) % s.shape(n.input[0])[axis]
        cut = [s.constant(np.array([v]), "cut") for v in (at, at + 1, axis)]
        replaced(s, n, [("Slice", [".", *cut], {}), axis_step(s, "Squeeze", 0, axis)])
    return done(model, s)


def places_from_behind(model, rng):
    """Beginnings, ends and axes counted from the end."""
    s = copy(model, rng)
    for n in s.nodes("Slice"):
        parts = [s.const(x) for x in n.input[1:4] if x]
        if len(parts) < 3 or any(p is None or p.size != 1 for p in parts) or n.input[0] not in s.values:
            continue
        shape = s.shape(n.input[0])
        axis = int(parts[2].item()) % len(shape)
        if axis == 0 and model.batch == "N":
            continue
        if parts[0].item() >= 0 and 0 < parts[1].item() < shape[axis]:
            for i, v in ((1, parts[0].item() - shape[axis]), (2, parts[1].item() - shape[axis])):
                n.input[i] = s.constant(np.array([v]), "behind")
        n.input[3] = s.constant(np.array([axis - len(shape)]), "axis")
    for n in s.nodes("Concat", "Gather", "Split"):
        if n.input[0] in s.values and len(s.shape(n.input[0])):
            s.set_attr(n, "axis", s.attr(n, "axis", 0) % len(s.shape(n.input[0])) - len(s.shape(n.input[0])))
    return done(model, s)


# Of these, golden is the original's.
SAME = {"rectifiers as limits": rectifiers_as_limits, "rectifiers as choices": rectifiers_as_choices, "slopes as learned": slopes_as_learned,
        "magnitudes as largest": magnitudes_as_largest, "negatives as products": negatives_as_products, "inverses as divisions": inverses_as_divisions,
        "exponentials in halves": exponentials_in_halves, "lengths written out": lengths_written_out, "rectifiers made smooth": rectifiers_made_smooth,
        "roots by logarithms": roots_by_logarithms, "cubes as products": cubes_as_products, "products as divisions": products_as_divisions,
        "limits as choices": limits_as_choices, "sigmoids as shares": sigmoids_as_shares, "larger by rectifiers": larger_by_rectifiers,
        "hard swish joined": hard_swish_joined, "bells joined": bells_joined, "squares summed at once": squares_summed_at_once, "means as sums": means_as_sums,
        "variances by squares": variances_by_squares, "sums of many": sums_of_many, "sums by stacking": sums_by_stacking, "joins as sums": joins_as_sums,
        "cuts as products": cuts_as_products, "turns as einsum": turns_as_einsum, "borders as places": borders_as_places, "zeros joined": zeros_joined,
        "comparisons by signs": comparisons_by_signs, "choices by places": choices_by_places, "logarithms of shares": logarithms_of_shares,
        "looked up one by one": looked_up_one_by_one, "single places as slices": single_places_as_slices, "places from behind": places_from_behind}
