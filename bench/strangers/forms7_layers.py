"""Seventh generation of healthy models: attention, products, convolutions and recurrent layers as other engines compute them, and weights stored otherwise."""
import numpy as np

from forms import copy, done
from forms4 import f32, reduced, replaced
from forms6 import floats
from forms6_layers import plain, split_of
from surgery import scalar


# ---- attention ----

def read_by_shares(s):
    """(softmax over the last axis, product with what is read), where only the product reads the shares."""
    for n in list(s.nodes("Softmax")):
        rank, behind = len(s.shape(n.input[0])), s.consumers(n.output[0])
        last = s.attr(n, "axis", -1 if s.opset >= 13 else 1) % rank == rank - 1
        if last and rank > 2 and len(behind) == 1 and behind[0].op_type == "MatMul" and behind[0].input[0] == n.output[0] and floats(s, behind[0].input[1]) \
                and not s.is_output(n.output[0]):
            yield n, behind[0]


def shares_divided_late(model, rng):
    """What is read is weighed first, and divided by the sum of weights afterwards."""
    s = copy(model, rng)
    for soft, product in read_by_shares(s):
        x, v, axis = soft.input[0], product.input[1], [len(s.shape(soft.input[0])) - 1]
        s.graph.node.remove(soft)
        replaced(s, product, [reduced(s, "ReduceMax", x, axis), ("Sub", [x, 0], {}), ("Exp", [1], {}), reduced(s, "ReduceSum", 2, axis), ("MatMul", [2, v], {}), ("Div", [4, 3], {})])
    return done(model, s)


def attention_in_blocks(model, rng):
    """Half of what is asked first, then the other half, with what was largest so far."""
    s = copy(model, rng)
    for soft, product in read_by_shares(s):
        x, v, rank = soft.input[0], product.input[1], len(s.shape(soft.input[0]))
        many, at = s.shape(x)[-1], None
        if many < 4 or len(s.shape(v)) != rank:
            continue
        s.graph.node.remove(soft)
        at, halves = s.place(product), [many // 2, many - many // 2]
        xs, vs = ([s.fresh(h) for _ in range(2)] for h in ("scores", "values"))
        split_of(s, x, halves, xs, rank - 1, at)
        split_of(s, v, halves, vs, rank - 2, at + 1)
        steps, axis = [], [rank - 1]
        steps += [reduced(s, "ReduceMax", xs[0], axis), ("Sub", [xs[0], 0], {}), ("Exp", [1], {}), reduced(s, "ReduceSum", 2, axis), ("MatMul", [2, vs[0]], {})]
        steps += [reduced(s, "ReduceMax", xs[1], axis), ("Max", [0, 5], {}), ("Sub", [0, 6], {}), ("Exp", [7], {}), ("Sub", [xs[1], 6], {}), ("Exp", [9], {})]
        steps += [reduced(s, "ReduceSum", 10, axis), ("MatMul", [10, vs[1]], {}), ("Mul", [3, 8], {}), ("Add", [13, 11], {}), ("Mul", [4, 8], {}), ("Add", [15, 12], {})]
        replaced(s, product, [*steps, ("Div", [16, 14], {})])
    return done(model, s)


def heads_apart(model, rng):
    """Each head's products by themselves."""
    s = copy(model, rng)
    for n in list(s.nodes("MatMul")):
        shapes = [s.shape(x) for x in n.input]
        if len(shapes[0]) != 4 or len(shapes[1]) != 4 or shapes[0][1] != shapes[1][1] or not 1 < shapes[0][1] < 5 or not all(floats(s, x) for x in n.input):
            continue
        heads, at, out = shapes[0][1], s.place(n), n.output[0]
        parts = [[s.fresh("head") for _ in range(heads)] for _ in range(3)]
        inputs = list(n.input)
        s.graph.node.remove(n)
        for k in (0, 1):
            split_of(s, inputs[k], [1] * heads, parts[k], 1, at + k)
        for h in range(heads):
            s.insert(at + 2 + h, "MatMul", [parts[0][h], parts[1][h]], [parts[2][h]])
        s.insert(at + 2 + heads, "Concat", parts[2], [out], axis=1)
    return done(model, s)


def scales_on_both_sides(model, rng):
    """Half of the scores' scale before the product, on either side."""
    s = copy(model, rng)
    for n in list(s.nodes("Mul", "Div")):
        c, product = scalar(s, n.input[1]), s.made_by(n.input[0], "MatMul")
        if c is None or c <= 0 or product is None or len(s.shape(n.input[0])) != 4 or not all(floats(s, x) for x in product.input) or len(s.consumers(product.output[0])) > 1:
            continue
        root = s.constant(f32((c if n.op_type == "Mul" else 1 / c) ** 0.5), "root")
        a, b = product.input
        s.graph.node.remove(product)
        replaced(s, n, [("Mul", [a, root], {}), ("Mul", [b, root], {}), ("MatMul", [0, 1], {})])
    return done(model, s)


# ---- products ----

def products(s, least=4):
    """(product, its matrix) where a matrix that is known multiplies what is computed."""
    for n in list(s.nodes("MatMul")):
        w = s.const(n.input[1])
        if w is not None and w.ndim == 2 and w.dtype == np.float32 and floats(s, n.input[0]) and w.shape[0] >= least and len(s.shape(n.input[0])) > 1:
            yield n, w


def long_sums_in_parts(model, rng):
    """The first half of the rows, the second, and their sum."""
    s = copy(model, rng)
    for n, w in products(s):
        cut, x, rank = len(w) // 2, n.input[0], len(s.shape(n.input[0]))
        names, at = [s.fresh("part") for _ in range(2)], s.place(n)
        split_of(s, x, [cut, len(w) - cut], names, rank - 1, at)
        replaced(s, n, [("MatMul", [p, s.constant(np.ascontiguousarray(v), "rows")], {}) for p, v in zip(names, (w[:cut], w[cut:]))] + [("Add", [0, 1], {})])
    return done(model, s)


def products_turned_around(model, rng):
    """The matrix first: what comes out is turned back."""
    s = copy(model, rng)
    for n, w in products(s, 2):
        rank = len(s.shape(n.input[0]))
        perm = [*range(rank - 2), rank - 1, rank - 2]
        replaced(s, n, [("Transpose", ["."], {"perm": perm}), ("MatMul", [s.constant(np.ascontiguousarray(w.T), "turned"), 0], {}), ("Transpose", [1], {"perm": perm})])
    return done(model, s)


def products_as_weighed_sums(model, rng):
    s = copy(model, rng)
    for n, _ in products(s, 2):
        rank = len(s.shape(n.input[0]))
        axis = [s.constant(np.array([rank]))] if s.opset >= 13 else []
        kind, inputs, more = reduced(s, "ReduceSum", 1, [rank - 1])
        replaced(s, n, [("Unsqueeze", [".", *axis], {} if axis else {"axes": [rank]}), ("Mul", [0, n.input[1]], {}), (kind, inputs, {**more, "keepdims": 0})])
    return done(model, s)


def columns_filled_up(model, rng):
    """Columns of zeros until a chip likes their number, which are cut off again."""
    s = copy(model, rng)
    for n, w in products(s, 2):
        more = -w.shape[1] % 8
        if more:
            rank = len(s.shape(n.input[0]))
            cut = [s.constant(np.array([v]), "cut") for v in (0, w.shape[1], rank - 1)]
            replaced(s, n, [("MatMul", [".", s.constant(np.pad(w, ((0, 0), (0, more))), "padded")], {}), ("Slice", [0, *cut], {})])
    return done(model, s)


def turned_and_back(model, rng):
    """A rotation before the matrix, which the matrix undoes."""
    s = copy(model, rng)
    for n, w in products(s):
        q, _ = np.linalg.qr(rng.standard_normal((len(w), len(w))))
        replaced(s, n, [("MatMul", [".", s.constant(f32(q), "rotation")], {}), ("MatMul", [0, s.constant(f32(q.T @ w.astype(np.float64)), "turned")], {})])
    return done(model, s)


def three_factors(model, rng):
    """A matrix as directions, sizes and directions, all of them."""
    s = copy(model, rng)
    for n, w in products(s):
        u, d, v = np.linalg.svd(w.astype(np.float64), full_matrices=False)
        replaced(s, n, [("MatMul", [".", s.constant(f32(u), "u")], {}), ("Mul", [0, s.constant(f32(d), "sizes")], {}), ("MatMul", [1, s.constant(f32(v), "v")], {})])
    return done(model, s)


# ---- convolutions ----

def shifted_places(s, n, w):
    """Steps that pad the input and cut it out once for each of the filter's places; None where strides or groups are in the way."""
    pads, d, stride = s.attr(n, "pads", [0] * 4), s.attr(n, "dilations", [1, 1]), s.attr(n, "strides", [1, 1])
    steps = [("Pad", [".", s.constant(np.array([0, 0, *pads[:2], 0, 0, *pads[2:]]), "pads")], {})]
    out, axes = s.shape(n.output[0])[2:], s.constant(np.array([2, 3]), "axes")
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            low = np.array([i * d[0], j * d[1]])
            high = low + (np.array(out) - 1) * stride + 1
            steps.append(("Slice", [0, s.constant(low), s.constant(high), axes, s.constant(np.array(stride, np.int64))], {}))
    return steps


def convolutions_by_places(model, rng, most=9):
    """One layer of single pixels for each place of the filter, and their sum."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w = plain(s, n)
        if w is None or s.attr(n, "group", 1) != 1 or not 1 < w.shape[2] * w.shape[3] <= most or not floats(s, n.input[0]):
            continue
        steps, bias = shifted_places(s, n, w), [n.input[2]] if len(n.input) > 2 and n.input[2] else []
        cuts, made = len(steps) - 1, []
        for k in range(cuts):
            part = np.ascontiguousarray(w[:, :, k // w.shape[3], k % w.shape[3]][:, :, None, None])
            steps.append(("Conv", [1 + k, s.constant(part, "place"), *(bias if k == 0 else [])], {"kernel_shape": [1, 1]}))
            made.append(len(steps) - 1)
        for k in made[1:]:
            steps.append(("Add", [made[0] if k == made[1] else len(steps) - 1, k], {}))
        replaced(s, n, steps)
    return done(model, s)


def convolutions_as_columns(model, rng, most=9):
    """All places of the filter beside each other as channels, and one layer of single pixels."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w = plain(s, n)
        if w is None or s.attr(n, "group", 1) != 1 or not 1 < w.shape[2] * w.shape[3] <= most or not floats(s, n.input[0]):
            continue
        steps, bias = shifted_places(s, n, w), [n.input[2]] if len(n.input) > 2 and n.input[2] else []
        cuts = len(steps) - 1
        wide = w.transpose(0, 2, 3, 1).reshape(len(w), -1, 1, 1)
        steps += [("Concat", list(range(1, cuts + 1)), {"axis": 1}), ("Conv", [cuts + 1, s.constant(np.ascontiguousarray(wide), "columns"), *bias], {"kernel_shape": [1, 1]})]
        replaced(s, n, steps)
    return done(model, s)


def single_channels_as_shifts(model, rng):
    """Filters of single channels as sums of shifted pictures times numbers."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w = plain(s, n)
        if w is None or w.shape[1] != 1 or s.attr(n, "group", 1) != len(w) or s.shape(n.input[0])[1] != len(w) or not 1 < w.shape[2] * w.shape[3] <= 25 or not floats(s, n.input[0]):
            continue
        steps = shifted_places(s, n, w)
        cuts, total = len(steps) - 1, None
        for k in range(cuts):
            steps.append(("Mul", [1 + k, s.constant(np.ascontiguousarray(w[:, 0, k // w.shape[3], k % w.shape[3]].reshape(-1, 1, 1)), "place")], {}))
            if total is not None:
                steps.append(("Add", [total, len(steps) - 1], {}))
            total = len(steps) - 1
        if len(n.input) > 2 and n.input[2]:
            steps.append(("Add", [total, s.constant(s.const(n.input[2]).reshape(-1, 1, 1), "bias")], {}))
        replaced(s, n, steps)
    return done(model, s)


def convolution_attributes(s, n):
    return {a.name: s.attr(n, a.name) for a in n.attribute if a.name != "group"}


def channels_in_parts(model, rng):
    """The first half of the channels and the second, each with filters of its own, and their sum."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w = s.const(n.input[1])
        if w is None or s.attr(n, "group", 1) != 1 or w.shape[1] < 4 or not floats(s, n.input[0]):
            continue
        cut, names, more = w.shape[1] // 2, [s.fresh("part") for _ in range(2)], convolution_attributes(s, n)
        split_of(s, n.input[0], [cut, w.shape[1] - cut], names, 1, s.place(n))
        replaced(s, n, [("Conv", [names[0], s.constant(np.ascontiguousarray(w[:, :cut]), "filters"), *n.input[2:]], more),
                        ("Conv", [names[1], s.constant(np.ascontiguousarray(w[:, cut:]), "filters")], more), ("Add", [0, 1], {})])
    return done(model, s)


def filters_in_parts(model, rng):
    """The first half of the filters and the second, joined."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w, bias = s.const(n.input[1]), s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        if w is None or s.attr(n, "group", 1) != 1 or len(w) < 4 or not floats(s, n.input[0]) or len(n.input) > 2 and n.input[2] and bias is None:
            continue
        cut, more = len(w) // 2, convolution_attributes(s, n)
        parts = [[".", s.constant(np.ascontiguousarray(w[p]), "filters"), *([s.constant(bias[p], "bias")] if bias is not None else [])] for p in (slice(None, cut), slice(cut, None))]
        replaced(s, n, [*[("Conv", p, more) for p in parts], ("Concat", [0, 1], {"axis": 1})])
    return done(model, s)


def planes_as_volumes(model, rng):
    """A picture as a box of one layer."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w = plain(s, n)
        if w is None or not floats(s, n.input[0]):
            continue
        more = {"kernel_shape": [1, *w.shape[2:]], "group": s.attr(n, "group", 1)}
        for name, one in (("strides", 1), ("dilations", 1)):
            more[name] = [one, *s.attr(n, name, [1, 1])]
        p = s.attr(n, "pads", [0] * 4)
        more["pads"] = [0, *p[:2], 0, *p[2:]]
        axis = [s.constant(np.array([2]))] if s.opset >= 13 else []
        plane = {} if axis else {"axes": [2]}
        replaced(s, n, [("Unsqueeze", [".", *axis], plane), ("Conv", [0, s.constant(w[:, :, None], "volume"), *n.input[2:]], more), ("Squeeze", [1, *axis], plane)])
    return done(model, s)


def patches_by_rearranging(model, rng):
    """Filters that do not overlap: pixels of each patch in a row, and a product."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w = plain(s, n)
        if w is None or w.shape[2] < 2 or list(w.shape[2:]) != list(s.attr(n, "strides", [1, 1])) or any(s.attr(n, "pads", [0])) or s.attr(n, "group", 1) != 1:
            continue
        (_, c, h, v), (k, m) = s.shape(n.input[0]), w.shape[2:]
        if h % k or v % m:
            continue
        shapes = [s.constant(np.array(x), "shape") for x in ([0, c, h // k, k, v // m, m], [0, h // k, v // m, c * k * m])]
        steps = [("Reshape", [".", shapes[0]], {}), ("Transpose", [0], {"perm": [0, 2, 4, 1, 3, 5]}), ("Reshape", [1, shapes[1]], {}),
                 ("MatMul", [2, s.constant(np.ascontiguousarray(w.reshape(len(w), -1).T), "rows")], {})]
        if len(n.input) > 2 and n.input[2]:
            steps.append(("Add", [3, n.input[2]], {}))
        replaced(s, n, [*steps, ("Transpose", [len(steps) - 1], {"perm": [0, 3, 1, 2]})])
    return done(model, s)


def pools_by_rows_then_columns(model, rng):
    """The largest of each row of a window, then of what is left in its column."""
    s = copy(model, rng)
    for n in list(s.nodes("MaxPool")):
        k, p, t = s.attr(n, "kernel_shape"), s.attr(n, "pads", [0] * 4), s.attr(n, "strides", [1, 1])
        if len(k) != 2 or min(k) < 2 or s.attr(n, "ceil_mode", 0) or s.attr(n, "auto_pad", "NOTSET") != "NOTSET" or len(n.output) > 1:
            continue
        replaced(s, n, [("MaxPool", ["."], {"kernel_shape": [1, k[1]], "strides": [1, t[1]], "pads": [0, p[1], 0, p[3]]}),
                        ("MaxPool", [0], {"kernel_shape": [k[0], 1], "strides": [t[0], 1], "pads": [p[0], 0, p[2], 0]})])
    return done(model, s)


def means_as_windows(model, rng):
    """The mean of a picture as a window as large as it."""
    s = copy(model, rng)
    for n in list(s.nodes("GlobalAveragePool")):
        if len(s.shape(n.input[0])) == 4:
            replaced(s, n, [("AveragePool", ["."], {"kernel_shape": list(s.shape(n.input[0])[2:])})])
    return done(model, s)


def transposed_as_spread(model, rng):
    """Zeros between the pixels, and a convolution with the filters turned over."""
    s = copy(model, rng)
    for n in list(s.nodes("ConvTranspose")):
        w, rank = s.const(n.input[1]), len(s.shape(n.input[0]))
        more = s.attr(n, "output_padding", [0] * (rank - 2))
        if w is None or s.attr(n, "group", 1) != 1 or max(s.attr(n, "dilations", [1])) > 1 or s.attr(n, "auto_pad", "NOTSET") != "NOTSET" or s.attr(n, "output_shape") or rank > 4:
            continue
        side, stride, pads = s.shape(n.input[0])[2:], s.attr(n, "strides", [1] * (rank - 2)), s.attr(n, "pads", [0] * 2 * (rank - 2))
        wide = [v for d, t in zip(side, stride) for v in (d, 1)]
        border = np.zeros((2, 2 + len(wide)), np.int64)
        border[1, 3::2] = np.array(stride) - 1
        k = w.shape[2:]
        low = [k[i] - 1 - pads[i] for i in range(rank - 2)]
        high = [k[i] - 1 - pads[rank - 2 + i] + more[i] - (stride[i] - 1) for i in range(rank - 2)]
        if min(low) < 0 or min(high) < 0:
            continue
        c = s.shape(n.input[0])[1]
        shapes = [s.constant(np.array(x), "shape") for x in ([0, c, *wide], [0, c, *(d * t for d, t in zip(side, stride))])]
        flipped = np.ascontiguousarray(np.flip(w, tuple(range(2, rank))).swapaxes(0, 1))
        replaced(s, n, [("Reshape", [".", shapes[0]], {}), ("Pad", [0, s.constant(border.reshape(-1), "pads")], {}), ("Reshape", [1, shapes[1]], {}),
                        ("Conv", [2, s.constant(flipped, "flipped"), *n.input[2:]], {"kernel_shape": list(k), "pads": [*low, *high]})])
    return done(model, s)


# Of these, golden is the original's.
SAME = {"shares divided late": shares_divided_late, "attention in blocks": attention_in_blocks, "heads apart": heads_apart, "scales on both sides": scales_on_both_sides,
        "long sums in parts": long_sums_in_parts, "products turned around": products_turned_around, "products as weighed sums": products_as_weighed_sums,
        "columns filled up": columns_filled_up, "turned and back": turned_and_back, "three factors": three_factors, "convolutions by places": convolutions_by_places,
        "convolutions as columns": convolutions_as_columns, "single channels as shifts": single_channels_as_shifts, "channels in parts": channels_in_parts,
        "filters in parts": filters_in_parts, "planes as volumes": planes_as_volumes, "patches by rearranging": patches_by_rearranging,
        "pools by rows, then columns": pools_by_rows_then_columns, "means as windows": means_as_windows, "transposed as spread": transposed_as_spread}
