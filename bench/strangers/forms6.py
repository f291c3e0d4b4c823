"""Sixth generation of healthy models: other operators for the same, as accelerators, tracers and converters write it."""
import numpy as np
from onnx import TensorProto

from forms import copy, done
from forms4 import f32, reduced, replaced
from forms6_layers import (channels_padded, dilation_spread, groups_as_one, inputs_apart, layers_as_functions, norms_as_convolutions, one_by_one_as_product,
                           pools_as_convolutions, recurrent_in_chunks, siblings_joined, steps_as_slices, weight_norms_left, weights_in_blocks,
                           weights_in_two_parts, weights_of_shifts, weights_with_middles)


def attributes(s, n):
    return {a.name: s.attr(n, a.name) for a in n.attribute}


def floats(s, value):
    return value in s.values and np.asarray(s.values[value]).dtype == np.float32 and s.const(value) is None


def products_as_einsum(model, rng):
    s = copy(model, rng)
    for n in s.nodes("MatMul"):
        a, b = (s.shape(x) for x in n.input)
        if len(b) == 2 and len(a) >= 2:
            front = "abcdef"[:len(a) - 1]
            equation = f"{front}k,kn->{front}n"
        elif len(a) == len(b) > 2 and a[:-2] == b[:-2]:
            front = "abcdef"[:len(a) - 2]
            equation = f"{front}ik,{front}kn->{front}in"
        else:
            continue
        n.op_type = "Einsum"
        s.set_attr(n, "equation", equation)
    return done(model, s)


def squeezes_as_gathers(model, rng):
    """One place of an axis is taken, by its number."""
    s = copy(model, rng)
    for n in s.nodes("Squeeze"):
        axes = s.const(n.input[1]) if len(n.input) > 1 else s.attr(n, "axes")
        if axes is not None and np.size(axes) == 1 and floats(s, n.input[0]):
            replaced(s, n, [("Gather", [".", s.constant(np.int64(0), "first")], {"axis": int(np.reshape(axes, -1)[0])})])
    return done(model, s)


def slices_as_gathers(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Slice"):
        parts = [s.const(x) for x in n.input[1:] if x]
        if len(parts) < 3 or any(p is None or p.size != 1 for p in parts) or not floats(s, n.input[0]):
            continue
        axis, shape = int(parts[2].item()), s.shape(n.input[0])
        if axis % len(shape) == 0 and model.batch == "N":
            continue
        step = int(parts[3].item()) if len(parts) > 3 else 1
        places = np.arange(shape[axis])[slice(int(parts[0].item()), int(np.clip(parts[1].item(), -2 ** 31, 2 ** 31)), step)] if step > 0 else None
        if places is not None and len(places) == s.shape(n.output[0])[axis]:
            replaced(s, n, [("Gather", [".", s.constant(places.astype(np.int64), "places")], {"axis": axis})])
    return done(model, s)


def means_as_products(model, rng):
    """Sums along the last axis by a column of ones."""
    s = copy(model, rng)
    for n in s.nodes("ReduceMean", "ReduceSum"):
        axes = s.const(n.input[1]) if len(n.input) > 1 and n.input[1] else s.attr(n, "axes")
        shape = s.shape(n.input[0])
        if axes is None or [int(a) % len(shape) for a in axes] != [len(shape) - 1] or len(shape) < 2 or not floats(s, n.input[0]):
            continue
        w = np.full((shape[-1], 1), 1 / shape[-1] if n.op_type == "ReduceMean" else 1)
        steps = [("MatMul", [".", s.constant(f32(w), "ones")], {})]
        if not s.attr(n, "keepdims", 1):
            last = [len(shape) - 1]
            steps.append(("Squeeze", [0, s.constant(np.array(last))], {}) if s.opset >= 13 else ("Squeeze", [0], {"axes": last}))
        replaced(s, n, steps)
    return done(model, s)


def shares_made_safe(model, rng):
    """The largest is taken away before a softmax does it again."""
    s = copy(model, rng)
    for n in s.nodes("Softmax"):
        rank = len(s.shape(n.input[0]))
        axis = s.attr(n, "axis", -1 if s.opset >= 13 else 1) % rank
        if s.opset >= 13 or axis == rank - 1:
            replaced(s, n, [reduced(s, "ReduceMax", ".", [axis]), ("Sub", [".", 0], {}), ("Softmax", [1], {"axis": axis})])
    return done(model, s)


def sigmoids_by_tanh(model, rng):
    s = copy(model, rng)
    found = s.nodes("Sigmoid")
    half = s.constant(f32(0.5), "half") if found else None
    for n in found:
        replaced(s, n, [("Mul", [".", half], {}), ("Tanh", [0], {}), ("Mul", [1, half], {}), ("Add", [2, half], {})])
    return done(model, s)


def tanh_by_sigmoids(model, rng):
    s = copy(model, rng)
    found = s.nodes("Tanh")
    two, one = (s.constant(f32(v), "number") for v in (2, 1)) if found else (None, None)
    for n in found:
        replaced(s, n, [("Mul", [".", two], {}), ("Sigmoid", [0], {}), ("Mul", [1, two], {}), ("Sub", [2, one], {})])
    return done(model, s)


def slopes_by_two_rectifiers(model, rng):
    """What is above zero, less a part of what is below."""
    s = copy(model, rng)
    for n in s.nodes("LeakyRelu", "PRelu"):
        slope = s.const(n.input[1]) if n.op_type == "PRelu" else f32(s.attr(n, "alpha", 0.01))
        if slope is not None:
            replaced(s, n, [("Relu", ["."], {}), ("Neg", ["."], {}), ("Relu", [1], {}), ("Mul", [2, s.constant(slope, "slope")], {}), ("Sub", [0, 3], {})])
    return done(model, s)


def exponentials_of_two(model, rng):
    s = copy(model, rng)
    found = [n for n in s.nodes("Exp") if floats(s, n.input[0])]
    two, factor = (s.constant(f32(v), "number") for v in (2, np.log2(np.e))) if found else (None, None)
    for n in found:
        replaced(s, n, [("Mul", [".", factor], {}), ("Pow", [two, 0], {})])
    return done(model, s)


def differences_as_sums(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Sub"):
        if np.asarray(s.values.get(n.output[0], 0)).dtype == np.float32:
            replaced(s, n, [("Neg", [n.input[1]], {}), ("Add", [".", 0], {})])
    return done(model, s)


def choices_as_sums(model, rng):
    """Where: a mask times the one, and what is left of it times the other."""
    s = copy(model, rng)
    for n in s.nodes("Where"):
        pair = [s.values.get(x, s.const(x)) for x in n.input[1:]]
        if any(v is None or np.asarray(v).dtype != np.float32 or not np.isfinite(v).all() or np.abs(v).max() > 1e30 for v in pair):
            continue
        one = s.constant(f32(1), "one")
        replaced(s, n, [("Cast", ["."], {"to": TensorProto.FLOAT}), ("Mul", [0, n.input[1]], {}), ("Sub", [one, 0], {}), ("Mul", [2, n.input[2]], {}),
                        ("Add", [1, 3], {})])
    return done(model, s)


def look_ups_as_products(model, rng):
    """A row of a table by a one in its column."""
    s = copy(model, rng)
    for n in s.nodes("Gather"):
        rows = s.const(n.input[0])
        if rows is None or rows.ndim != 2 or rows.dtype != np.float32 or s.attr(n, "axis", 0) or s.const(n.input[1]) is not None or rows.shape[0] > 300:
            continue
        table, ids = n.input[0], n.input[1]
        depth, ends = s.constant(np.int64(len(rows)), "depth"), s.constant(f32([0, 1]), "off_on")
        replaced(s, n, [("OneHot", [ids, depth, ends], {"axis": -1}), ("MatMul", [0, table], {})])
    return done(model, s)


def layouts_around(model, rng):
    """Activations are made in another layout, with turns around them."""
    s = copy(model, rng)
    for n in s.nodes("Relu", "Sigmoid", "Tanh", "Erf", "LeakyRelu", "Softplus", "HardSigmoid", "Exp", "Sqrt"):
        rank = len(s.shape(n.input[0]))
        if rank < 3 or not floats(s, n.input[0]):
            continue
        perm = [0, *range(2, rank), 1]
        replaced(s, n, [("Transpose", ["."], {"perm": perm}), (n.op_type, [0], attributes(s, n)), ("Transpose", [1], {"perm": np.argsort(perm).tolist()})])
    return done(model, s)


def logarithms_by_sums(model, rng):
    """LogSoftmax as a difference to the logarithm of the sum; Softmax as the exponential of one."""
    s = copy(model, rng)
    for n in s.nodes("LogSoftmax", "Softmax"):
        rank = len(s.shape(n.input[0]))
        axis = s.attr(n, "axis", -1 if s.opset >= 13 else 1) % rank
        if s.opset < 13 and axis != rank - 1 or np.min(s.values[n.input[0]]) < -1e4:
            continue
        steps = [reduced(s, "ReduceLogSumExp", ".", [axis]), ("Sub", [".", 0], {})]
        replaced(s, n, steps if n.op_type == "LogSoftmax" else [*steps, ("Exp", [1], {})])
    return done(model, s)


def broadcasts_spelled_out(model, rng):
    """What is smaller is spread to the shape of the other first."""
    s = copy(model, rng)
    for n in list(s.nodes("Add", "Mul", "Sub", "Div")):
        for i in (0, 1):
            c, other = s.const(n.input[i]), n.input[1 - i]
            if c is not None and c.dtype == np.float32 and floats(s, other) and s.shape(other) == s.shape(n.output[0]) != c.shape and rng.random() < 0.7:
                shape = s.fresh("shape")
                s.insert(s.place(n), "Shape", [other], [shape])
                s.before(n, i, ("Expand", [".", shape], {}))
                break
    return done(model, s)


def indices_in_32_bits(model, rng):
    s = copy(model, rng)
    for n in list(s.nodes("Gather", "GatherElements")):
        c = s.const(n.input[1])
        if c is not None and c.dtype == np.int64:
            n.input[1] = s.constant(c.astype(np.int32), "index32")
        elif c is None and n.input[1] in s.values and np.asarray(s.values[n.input[1]]).dtype == np.int64:
            s.before(n, 1, ("Cast", ["."], {"to": TensorProto.INT32}))
    return done(model, s)


def other_spellings(model, rng):
    """Shapes with a nothing where a side stays, and a rest where one number is not said."""
    s = copy(model, rng)
    for n in s.nodes("Reshape"):
        shape, old = s.const(n.input[1]), s.shape(n.input[0])
        if shape is None or shape.ndim != 1 or s.attr(n, "allowzero", 0):
            continue
        new = [0 if i < len(old) and d == old[i] and d > 0 else int(d) for i, d in enumerate(shape)]
        said = [i for i, d in enumerate(new) if d > 0]
        if -1 not in new and said:
            new[said[-1]] = -1
        n.input[1] = s.constant(np.array(new, np.int64), "shape")
    return done(model, s)


def nearest_by_copies(model, rng):
    """Twice as large by copies of each pixel, side by side and below."""
    s = copy(model, rng)
    for n in s.nodes("Resize"):
        a, b = s.shape(n.input[0]), s.shape(n.output[0])
        whole = len(a) == 4 and not any(y % x for x, y in zip(a, b))
        if s.attr(n, "mode", "nearest") != "nearest" or not whole or s.attr(n, "coordinate_transformation_mode") != "asymmetric":
            continue
        u, v = b[2] // a[2], b[3] // a[3]
        shapes = [s.constant(np.array(x), "shape") for x in ([0, a[1], a[2], 1, a[3], 1], [1, 1, 1, u, 1, v], [0, a[1], b[2], b[3]])]
        replaced(s, n, [("Reshape", [".", shapes[0]], {}), ("Tile", [0, shapes[1]], {}), ("Reshape", [1, shapes[2]], {})])
    return done(model, s)


def largest_by_topk(model, rng):
    s = copy(model, rng)
    for n in s.nodes("ReduceMax"):
        axes = s.const(n.input[1]) if len(n.input) > 1 and n.input[1] else s.attr(n, "axes")
        if axes is None or len(axes) != 1 or not s.attr(n, "keepdims", 1) or not floats(s, n.input[0]):
            continue
        x, out, at = n.input[0], n.output[0], s.place(n)
        s.graph.node.remove(n)
        s.insert(at, "TopK", [x, s.constant(np.array([1]), "k")], [out, s.fresh("index")], axis=int(axes[0]))
    return done(model, s)


def running_sums_as_products(model, rng):
    """By a triangle of ones."""
    s = copy(model, rng)
    for n in s.nodes("CumSum"):
        axis, shape = s.const(n.input[1]), s.shape(n.input[0])
        if axis is None or s.attr(n, "exclusive", 0) or s.attr(n, "reverse", 0) or len(shape) < 2 or not floats(s, n.input[0]):
            continue
        axis = int(axis.item()) % len(shape)
        if axis == len(shape) - 1:
            replaced(s, n, [("MatMul", [".", s.constant(f32(np.triu(np.ones([shape[axis]] * 2))), "triangle")], {})])
        elif axis == len(shape) - 2 and axis > 0:
            replaced(s, n, [("MatMul", [s.constant(f32(np.tril(np.ones([shape[axis]] * 2))), "triangle"), "."], {})])
    return done(model, s)


def roots_as_powers(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Sqrt"):
        if floats(s, n.input[0]):
            replaced(s, n, [("Pow", [".", s.constant(f32(0.5), "half")], {})])
    return done(model, s)


def inverse_roots(model, rng):
    """Divided by a root: times its inverse, as one function has it."""
    s = copy(model, rng)
    for n in s.nodes("Div"):
        if floats(s, n.input[1]) and floats(s, n.input[0]):
            replaced(s, n, [("Reciprocal", [n.input[1]], {}), ("Mul", [".", 0], {})])
    return done(model, s)


# ---- golden that another precision made ----

def in_few_bits(s, at, x, out, half):
    """x with the bits of half precision, or of a brain float: those are cut by a product that pushes the others out. Gives how many nodes that takes."""
    names = [s.fresh("bits") for _ in range(2)]
    if half:
        s.insert(at, "Cast", [x], [names[0]], to=TensorProto.FLOAT16)
        s.insert(at + 1, "Cast", [names[0]], [out], to=TensorProto.FLOAT)
        return 2
    s.insert(at, "Mul", [x, s.constant(f32(2 ** 16 + 1), "push")], [names[0]])
    s.insert(at + 1, "Sub", [names[0], x], [names[1]])
    s.insert(at + 2, "Sub", [names[0], names[1]], [out])
    return 3


def under_autocast(model, rng, half):
    """What products and convolutions read and give has few bits, as where a framework casts by itself."""
    s = copy(model, rng)
    for out in [n.output[0] for n in s.nodes("Conv", "MatMul", "Gemm", "ConvTranspose")]:
        n = s.producer(out)
        if max(np.abs(s.values[x]).max() if x in s.values else np.abs(s.const(x)).max() for x in [*n.input[:2], out]) > 6e4:
            return None
        at = s.place(n)
        for i in (0, 1):
            new = s.fresh("low")
            at += in_few_bits(s, at, n.input[i], new, half)
            n = s.graph.node[at]
            n.input[i] = new
        n.output[0] = s.fresh("raw")
        in_few_bits(s, at + 1, n.output[0], out, half)
    return done(model, s)


GOLDEN = {"autocast half": lambda m, rng: under_autocast(m, rng, True), "autocast brain": lambda m, rng: under_autocast(m, rng, False)}
# Of these, golden is the original's.
SAME = {"einsum": products_as_einsum, "squeezes as gathers": squeezes_as_gathers, "slices as gathers": slices_as_gathers, "means as products": means_as_products,
        "shares made safe": shares_made_safe, "sigmoids by tanh": sigmoids_by_tanh, "tanh by sigmoids": tanh_by_sigmoids, "two rectifiers": slopes_by_two_rectifiers,
        "powers of two for e": exponentials_of_two, "differences as sums": differences_as_sums, "choices as sums": choices_as_sums,
        "look-ups as products": look_ups_as_products, "layouts around": layouts_around, "logarithms by sums": logarithms_by_sums,
        "broadcasts spelled out": broadcasts_spelled_out, "indices in 32 bits": indices_in_32_bits, "other spellings": other_spellings,
        "nearest by copies": nearest_by_copies, "largest by TopK": largest_by_topk, "running sums as products": running_sums_as_products,
        "roots as powers": roots_as_powers, "inverse roots": inverse_roots, "siblings joined": siblings_joined, "recurrent in chunks": recurrent_in_chunks,
        "norms as convolutions": norms_as_convolutions, "one by one as product": one_by_one_as_product, "steps as slices": steps_as_slices,
        "dilation spread": dilation_spread, "groups as one": groups_as_one, "channels padded": channels_padded, "inputs apart": inputs_apart,
        "weight norms left": weight_norms_left, "layers as functions": layers_as_functions, "mean pools as convolutions": pools_as_convolutions}
# Of these it is their own.
OTHER = {"byte middles": weights_with_middles, "byte blocks": weights_in_blocks, "shift weights": weights_of_shifts, "two-part weights": weights_in_two_parts}
