"""Fifth generation of healthy models: the same network as accelerators' tools, model builders and optimizers write it, and in other few bits."""
import numpy as np
from onnx import TensorProto, helper

from forms import copy, done
from forms4 import f32, reduced, replaced
from forms5_layers import (adapters_apart, biases_apart, directions_apart, equalized, groups_apart, kernels_widened, smoothed, weights_in_a_book)
from surgery import scalar


def shape_move(s, kind, x, axes):
    return (kind, [x, s.constant(np.array(axes))], {}) if s.opset >= 13 else (kind, [x], {"axes": list(axes)})


# ---- other operators for the same ----

def clips_as_limits(model, rng):
    """Least and largest values by Min and Max; what cuts at zero by Clip."""
    s = copy(model, rng)
    for n in s.nodes("Clip"):
        limits = [("Max", x) for x in n.input[1:2] if x] + [("Min", x) for x in n.input[2:3] if x]
        if limits:
            replaced(s, n, [(kind, ["." if k == 0 else k - 1, x], {}) for k, (kind, x) in enumerate(limits)])
    for n in s.nodes("Relu"):
        replaced(s, n, [("Clip", [".", s.constant(f32(0), "zero")], {})])
    return done(model, s)


def squares_as_products(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Pow", "Mul"):
        power = scalar(s, n.input[1])
        if n.op_type == "Mul" and n.input[0] == n.input[1]:
            replaced(s, n, [("Pow", [".", s.constant(f32(2), "two")], {})])
        elif n.op_type == "Pow" and power in (2.0, 3.0):
            x = n.input[0]
            replaced(s, n, [("Mul", [".", x], {})] + ([("Mul", [0, x], {})] if power == 3 else []))
    return done(model, s)


def divisions_as_products(model, rng):
    """By the inverse, which is rounded."""
    s = copy(model, rng)
    for n in s.nodes("Div"):
        c = s.const(n.input[1])
        if c is not None and c.dtype == np.float32 and np.all(c != 0) and s.const(n.input[0]) is None:
            n.op_type, n.input[1] = "Mul", s.constant(f32(1 / c), "inverse")
    return done(model, s)


def pools_as_means(model, rng):
    s = copy(model, rng)
    for n in s.nodes("GlobalAveragePool", "ReduceMean"):
        rank = len(s.shape(n.input[0]))
        if n.op_type == "GlobalAveragePool":
            kind, inputs, more = reduced(s, "ReduceMean", ".", list(range(2, rank)))
            replaced(s, n, [(kind, inputs, {**more, "keepdims": 1})])
            continue
        axes = s.const(n.input[1]) if len(n.input) > 1 else s.attr(n, "axes")
        if axes is not None and rank > 2 and sorted(int(a) % rank for a in axes) == list(range(2, rank)) and s.attr(n, "keepdims", 1):
            replaced(s, n, [("GlobalAveragePool", ["."], {})])
    return done(model, s)


def linear_as_convolution(model, rng):
    """As chips want it that know convolutions best."""
    s = copy(model, rng)
    for n in s.nodes("Gemm", "MatMul"):
        w, rank = s.const(n.input[1]), len(s.shape(n.input[0])) if s.const(n.input[0]) is None else 0
        if w is None or w.ndim != 2 or n.op_type == "Gemm" and (s.attr(n, "transA", 0) or s.attr(n, "alpha", 1.0) != 1 or s.attr(n, "beta", 1.0) != 1):
            continue
        w = w if n.op_type == "Gemm" and s.attr(n, "transB", 0) else w.T
        bias = list(n.input[2:])
        if bias and (s.const(bias[0]) is None or s.const(bias[0]).ndim != 1):
            continue
        if n.op_type == "Gemm":
            kernel = s.constant(w[:, :, None, None], "kernel")
            replaced(s, n, [("Reshape", [".", s.constant(np.array([0, -1, 1, 1]))], {}), ("Conv", [0, kernel, *bias], {"kernel_shape": [1, 1]}),
                            ("Reshape", [1, s.constant(np.array([0, -1]))], {})])
        elif rank == 3:
            kernel = s.constant(w[:, :, None], "kernel")
            replaced(s, n, [("Transpose", ["."], {"perm": [0, 2, 1]}), ("Conv", [0, kernel], {"kernel_shape": [1]}), ("Transpose", [1], {"perm": [0, 2, 1]})])
    return done(model, s)


def line_as_plane(model, rng):
    """Convolutions along a line are made over planes that are one high."""
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        w = s.const(n.input[1])
        if w is None or w.ndim != 3:
            continue
        p = list(s.attr(n, "pads", [0, 0]))
        more = {"kernel_shape": [1, w.shape[2]], "pads": [0, p[0], 0, p[1]], "group": s.attr(n, "group", 1)}
        more |= {k: [1, *s.attr(n, k, [1])] for k in ("strides", "dilations")}
        up, down = shape_move(s, "Unsqueeze", ".", [2]), shape_move(s, "Squeeze", 1, [2])
        replaced(s, n, [up, ("Conv", [0, s.constant(w[:, :, None], "plane"), *n.input[2:]], more), down])
    return done(model, s)


def constants_shared(model, rng):
    """What is the same is kept once."""
    s = copy(model, rng)
    for n in list(s.nodes("Constant")):
        if s.attr(n, "value") is None:
            continue
        array = s.const(n.output[0])
        new = s.constant(array, "shared")
        for r in s.graph.node:
            for i, x in enumerate(r.input):
                if x == n.output[0]:
                    r.input[i] = new
        s.graph.node.remove(n)
    first = {}
    for t in list(s.graph.initializer):
        key = (t.data_type, tuple(t.dims), s.const(t.name).tobytes())
        if key not in first:
            first[key] = t.name
            continue
        for r in s.graph.node:
            for i, x in enumerate(r.input):
                if x == t.name:
                    r.input[i] = first[key]
        s.graph.initializer.remove(t)
    return done(model, s)


def stored_turned(model, rng):
    """Matrices lie the other way round, and Gemm turns them."""
    s = copy(model, rng)
    for n in s.nodes("Gemm", "MatMul"):
        w = s.const(n.input[1])
        if w is None or w.ndim != 2 or n.op_type == "MatMul" and (s.const(n.input[0]) is not None or len(s.shape(n.input[0])) != 2):
            continue
        turned = s.attr(n, "transB", 0)
        n.input[1] = s.constant(np.ascontiguousarray(w.T), "turned")
        n.op_type = "Gemm"
        s.set_attr(n, "transB", 1 - turned)
    return done(model, s)


def rows_as_matrix(model, rng):
    """Products of many rows are made as one matrix's, and shaped back."""
    s = copy(model, rng)
    for n in s.nodes("MatMul"):
        w = s.const(n.input[1])
        if w is None or w.ndim != 2 or s.const(n.input[0]) is not None or len(s.shape(n.input[0])) != 3:
            continue
        back = np.array([-1, s.shape(n.input[0])[1], w.shape[1]])
        replaced(s, n, [("Reshape", [".", s.constant(np.array([-1, w.shape[0]]))], {}), ("Gemm", [0, n.input[1]], {}), ("Reshape", [1, s.constant(back)], {})])
    return done(model, s)


def splits_as_slices(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Split"):
        x, axis, outs, at, start = n.input[0], s.attr(n, "axis", 0), list(n.output), s.place(n), 0
        sizes = [s.shape(o)[axis] for o in outs]
        s.graph.node.remove(n)
        for k, (o, size) in enumerate(zip(outs, sizes)):
            ends = [s.constant(np.array([v])) for v in (start, start + size, axis)]
            s.insert(at + k, "Slice", [x, *ends], [o])
            start += size
    return done(model, s)


def joined_in_pairs(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Concat"):
        if len(n.input) < 3 or s.is_output(n.input[0]) or not n.output[0] in s.values:
            continue
        axis, parts = s.attr(n, "axis"), list(n.input)
        replaced(s, n, [("Concat", [parts[0] if k == 0 else k - 1, p], {"axis": axis}) for k, p in enumerate(parts[1:])])
    return done(model, s)


def moves_as_reshape(model, rng):
    if model.batch == "N":
        return None
    s = copy(model, rng)
    for n in s.nodes("Squeeze", "Unsqueeze", "Flatten"):
        if s.const(n.input[0]) is None and n.output[0] in s.values:
            replaced(s, n, [("Reshape", [".", s.constant(np.array(s.shape(n.output[0]), np.int64))], {})])
    return done(model, s)


def computed_twice(model, rng):
    """Who reads what others read, too, has its own."""
    s = copy(model, rng)
    for n in list(s.graph.node):
        if len(n.output) != 1 or n.op_type == "Constant" or n.output[0] not in s.values or any(a.HasField("g") for a in n.attribute):
            continue
        readers = s.consumers(n.output[0])
        if len(readers) < 2 or rng.random() < 0.4:
            continue
        new = s.fresh(n.output[0])
        s.insert(s.place(n) + 1, n.op_type, list(n.input), [new], **{a.name: helper.get_attribute_value(a) for a in n.attribute})
        last = readers[-1]
        for i, x in enumerate(last.input):
            if x == n.output[0]:
                last.input[i] = new
    return done(model, s)


def shapes_made_at_run(model, rng):
    """Shapes are put together from single numbers, which were of another type."""
    s = copy(model, rng)
    for n in list(s.nodes("Reshape")):
        shape = s.const(n.input[1])
        if shape is None or shape.size < 1:
            continue
        at, parts = s.place(n), []
        for k, d in enumerate(shape):
            parts.append(s.fresh("dim"))
            s.insert(at + k, "Cast", [s.constant(np.array([d], np.int32))], [parts[-1]], to=TensorProto.INT64)
        whole = s.fresh("shape")
        node = s.insert(at + len(parts), "Concat", parts, [whole], axis=0)
        s.graph.node[s.place(node) + 1].input[1] = whole
    return done(model, s)


def scales_for_sizes(model, rng):
    """How many times larger, where it was said how large."""
    s = copy(model, rng)
    for n in s.nodes("Resize"):
        if len(n.input) != 4 or s.const(n.input[3]) is None:
            continue
        scales = np.array(s.shape(n.output[0]), np.float64) / np.array(s.shape(n.input[0]))
        if np.all(np.log2(scales) % 1 == 0):
            n.input[2] = s.constant(f32(scales), "scales")
            del n.input[3:]
    return done(model, s)


def constants_made_at_run(model, rng):
    """Whole numbers are cast, and what is the same everywhere is spread."""
    s = copy(model, rng)
    for n in list(s.nodes("Add", "Mul", "Sub", "Div", "Pow", "Max", "Min")):
        for i, x in enumerate(n.input):
            c = s.const(x)
            if c is None or c.dtype != np.float32:
                continue
            if c.size == 1 and float(c.reshape(-1)[0]).is_integer() and abs(float(c.reshape(-1)[0])) < 1e6:
                n.input[i] = s.constant(c.astype(np.int64), "whole")
                n = s.before(n, i, ("Cast", ["."], {"to": TensorProto.FLOAT}))[-1]
            elif c.size > 1 and np.ptp(c) == 0:
                n.input[i] = s.constant(c.reshape(-1)[:1], "one_value")
                n = s.before(n, i, ("Expand", [".", s.constant(np.array(c.shape, np.int64))], {}))[-1]
    return done(model, s)


# Of these, golden is the original's.
SAME = {"clips as limits": clips_as_limits, "squares as products": squares_as_products, "divisions as products": divisions_as_products,
        "pools as means": pools_as_means, "linear as convolution": linear_as_convolution, "line as plane": line_as_plane,
        "constants shared": constants_shared, "stored turned": stored_turned, "rows as matrix": rows_as_matrix, "splits as slices": splits_as_slices,
        "joined in pairs": joined_in_pairs, "moves as reshape": moves_as_reshape, "biases apart": biases_apart, "groups apart": groups_apart,
        "kernels widened": kernels_widened, "computed twice": computed_twice, "shapes at run": shapes_made_at_run, "scales for sizes": scales_for_sizes,
        "directions apart": directions_apart, "adapters apart": adapters_apart, "smoothed": smoothed, "equalized": equalized,
        "constants at run": constants_made_at_run}
# Of these it is their own.
OTHER = {"book weights": weights_in_a_book}
