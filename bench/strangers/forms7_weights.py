"""Seventh generation of healthy models: recurrent layers written out or given their inputs' products, weights stored otherwise, and weights in other few bits."""
import numpy as np
from onnx import TensorProto, helper

from forms import converted_to, copy, done, matrices
from forms4 import f32
from forms6 import floats


def writer(s, at):
    """A function that writes one node after the other, from a place on, and gives its output."""
    place = [at]

    def write(kind, inputs, out=None, **attributes):
        out = out or s.fresh(kind.lower())
        s.insert(place[0], kind, inputs, [out], **attributes)
        place[0] += 1
        return out
    return write


def axis_move(s, write, kind, x, *axes, out=None):
    if s.opset >= 13:
        return write(kind, [x, s.constant(np.array(axes))], out)
    return write(kind, [x], out, axes=list(axes))


# ---- recurrent layers ----

def plain_cells(s, kinds=("LSTM", "GRU")):
    """(layer, its matrices) of layers with one direction, known weights and the usual functions."""
    for n in list(s.nodes(*kinds)):
        usual = [a.decode() if isinstance(a, bytes) else a for a in s.attr(n, "activations", [])] in ([], ["Sigmoid", "Tanh", "Tanh"], ["Sigmoid", "Tanh"])
        arrays = [s.const(x) if x else None for x in n.input[1:4]]
        rest = [x for x in n.input[4:] if x and not (n.input[4] == "" and x in n.input[5:7])]
        if usual and all(a is not None for a in arrays) and not rest and s.attr(n, "direction", "forward") == "forward" and not s.attr(n, "clip") \
                and not s.attr(n, "layout", 0) and not s.attr(n, "input_forget", 0):
            yield n, arrays


def recurrent_written_out(model, rng, most=14):
    """Each step's products, gates and sums."""
    s = copy(model, rng)
    for n, (w, r, b) in plain_cells(s):
        steps, hidden, kind, reset = s.shape(n.input[0])[0], s.attr(n, "hidden_size"), n.op_type, s.attr(n, "linear_before_reset", 0)
        if steps > most or kind == "LSTM" and len(n.output) > 2 and n.output[2]:
            continue
        x, states, outs = n.input[0], [v for v in n.input[5:7] if v], [*n.output, "", ""][:2]
        write = writer(s, s.place(n))
        s.graph.node.remove(n)
        gates = 4 if kind == "LSTM" else 3
        wb, rb = b[0, :gates * hidden], b[0, gates * hidden:]
        wx, wh = (s.constant(np.ascontiguousarray(m[0].T), h) for m, h in ((w, "input_weights"), (r, "state_weights")))
        sizes = s.constant(np.array([hidden] * gates)) if s.opset >= 13 else None

        def cut(v):
            names = [s.fresh("gate") for _ in range(gates)]
            write_split(s, write, v, names, sizes, hidden)
            return names
        h, c = (axis_move(s, write, "Squeeze", v, 0) for v in (states + [None, None])[:2]) if len(states) == 2 else \
            (axis_move(s, write, "Squeeze", states[0], 0) if states else None, None)
        bias, one = s.constant(wb + rb if kind == "LSTM" else wb, "bias"), s.constant(f32(1), "one")
        rec = s.constant(rb, "state_bias")
        ys = []
        for t in range(steps):
            cutting = [s.constant(np.array([v]), "cut") for v in (t, t + 1, 0)]
            g = write("Add", [write("MatMul", [axis_move(s, write, "Squeeze", write("Slice", [x, *cutting]), 0), wx]), bias])
            if kind == "LSTM":
                g = write("Add", [g, write("MatMul", [h, wh])]) if h else g
                i, o, f, u = cut(g)
                i, o, f, u = write("Sigmoid", [i]), write("Sigmoid", [o]), write("Sigmoid", [f]), write("Tanh", [u])
                new = write("Mul", [i, u])
                c = write("Add", [write("Mul", [f, c]), new]) if c else new
                h = write("Mul", [o, write("Tanh", [c])])
            else:
                z, q, u = cut(g)
                told = write("Add", [write("MatMul", [h, wh]), rec]) if h else None
                bz, bq, bu = (s.constant(rb[k * hidden:(k + 1) * hidden], "part") for k in range(3))
                hz, hq, hu = cut(told) if told else (bz, bq, bu)
                z, q = write("Sigmoid", [write("Add", [z, hz])]), write("Sigmoid", [write("Add", [q, hq])])
                if h and not reset:
                    hu = write("Add", [write("MatMul", [write("Mul", [q, h]), s.constant(np.ascontiguousarray(r[0, 2 * hidden:].T), "new_weights")]), bu])
                u = write("Tanh", [write("Add", [u, write("Mul", [q, hu]) if reset else hu])])
                new = write("Mul", [write("Sub", [one, z]), u])
                h = write("Add", [new, write("Mul", [z, h])]) if h else new
            ys.append(axis_move(s, write, "Unsqueeze", h, 0, 1))
        if outs[0]:
            write("Concat", ys, outs[0], axis=0)
        if outs[1]:
            axis_move(s, write, "Unsqueeze", h, 0, out=outs[1])
    return done(model, s)


def write_split(s, write, v, names, sizes, hidden):
    """Parts of a value along its last axis but one of two."""
    first = names[0]
    inputs, more = ([v, sizes], {"axis": 1}) if sizes else ([v], {"axis": 1, "split": [hidden] * len(names)})
    write("Split", inputs, first, **more)
    node = s.producer(first)
    node.output.extend(names[1:])


def recurrent_biases_merged(model, rng):
    """Both biases of a gate as one, where they are only added up."""
    s = copy(model, rng)
    for n in s.nodes("LSTM", "GRU", "RNN"):
        b = s.const(n.input[3]) if len(n.input) > 3 and n.input[3] else None
        if b is None:
            continue
        gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[n.op_type], s.attr(n, "hidden_size")
        new = b.reshape(len(b), 2, gates, hidden).copy()
        last = 2 if n.op_type == "GRU" and s.attr(n, "linear_before_reset", 0) else gates
        new[:, 0, :last] += new[:, 1, :last]
        new[:, 1, :last] = 0
        n.input[3] = s.constant(new.reshape(b.shape), "merged")
    return done(model, s)


def input_products_apart(model, rng):
    """All steps' products with the input at once, before the layer, which takes them as they are."""
    s = copy(model, rng)
    for n, (w, _, b) in plain_cells(s):
        many = w.shape[1]
        write = writer(s, s.place(n))
        y = write("MatMul", [n.input[0], s.constant(np.ascontiguousarray(w[0].T), "input_weights")])
        y = write("Add", [y, s.constant(b[0, :many], "input_bias")])
        n = next(m for m in s.nodes("LSTM", "GRU") if m.output == n.output)
        n.input[0], n.input[1] = y, s.constant(np.eye(many, dtype=np.float32)[None], "identity")
        n.input[3] = s.constant(np.concatenate([np.zeros((1, many), np.float32), b[:, many:]], 1), "state_bias")
    return done(model, s)


def cells_filled_up(model, rng):
    """States that stay nothing, until a chip likes their number; they are cut off again."""
    s = copy(model, rng)
    for n, (w, r, b) in plain_cells(s):
        gates, hidden = {"LSTM": 4, "GRU": 3}[n.op_type], s.attr(n, "hidden_size")
        more = -hidden % 8
        if not more or any(n.input[5:7]) or len(n.output) > 2 and n.output[2]:
            continue
        new = (np.pad(w.reshape(1, gates, hidden, -1), ((0, 0), (0, 0), (0, more), (0, 0))).reshape(1, -1, w.shape[2]),
               np.pad(r.reshape(1, gates, hidden, hidden), ((0, 0), (0, 0), (0, more), (0, more))).reshape(1, -1, hidden + more),
               np.pad(b.reshape(1, 2 * gates, hidden), ((0, 0), (0, 0), (0, more))).reshape(1, -1))
        for i, a in enumerate(new):
            n.input[1 + i] = s.constant(a, "padded")
        s.set_attr(n, "hidden_size", hidden + more)
        for out in [o for o in n.output if o]:
            rank = len(s.shape(out))
            s.after(out, ("Slice", [".", *(s.constant(np.array([v]), "cut") for v in (0, hidden, rank - 1))], {}))
    return done(model, s)


# ---- weights stored otherwise ----

def behind(s, n, *steps):
    """The node's weight becomes what these steps make: (kind, inputs, attributes), '.' being the step before."""
    write, x = writer(s, s.place(n)), None
    node_out = list(n.output)
    for kind, inputs, attributes in steps:
        x = write(kind, [x if i == "." else i for i in inputs], **attributes)
    next(m for m in s.graph.node if list(m.output) == node_out).input[1] = x


def weights_in_one_block(model, rng):
    """All matrices in one long row, from which each is cut."""
    s = copy(model, rng)
    found, long = list(matrices(s)), []
    if len(found) < 2:
        return None
    block = s.constant(np.concatenate([w.reshape(-1) for _, w in found]), "block")
    for n, w in found:
        start = sum(long)
        cut = [s.constant(np.array([v]), "cut") for v in (start, start + w.size, 0)]
        behind(s, n, ("Slice", [block, *cut], {}), ("Reshape", [".", s.constant(np.array(w.shape), "shape")], {}))
        long.append(w.size)
    return done(model, s)


def filters_with_channels_last(model, rng):
    """Filters as TensorFlow keeps them, and a turn in the graph."""
    s = copy(model, rng)
    for n, w in list(matrices(s)):
        if n.op_type == "Conv":
            perm = [*range(2, w.ndim), 1, 0]
            behind(s, n, ("Transpose", [s.constant(np.ascontiguousarray(w.transpose(perm)), "stored")], {"perm": np.argsort(perm).tolist()}))
    return done(model, s)


def matrices_in_blocks(model, rng):
    """Four columns beside each other for each row, as a chip reads them."""
    s = copy(model, rng)
    for n, w in list(matrices(s)):
        if w.ndim == 2 and w.shape[1] % 4 == 0:
            stored = np.ascontiguousarray(w.reshape(len(w), -1, 4).transpose(1, 0, 2))
            behind(s, n, ("Transpose", [s.constant(stored, "stored")], {"perm": [1, 0, 2]}), ("Reshape", [".", s.constant(np.array(w.shape), "shape")], {}))
    return done(model, s)


def weights_scattered(model, rng):
    """Numbers and their places, put into nothing."""
    s = copy(model, rng)
    for n, w in list(matrices(s)):
        places = np.argwhere(w)
        if w.ndim == 2 and len(places):
            behind(s, n, ("ConstantOfShape", [s.constant(np.array(w.shape), "shape")], {}),
                   ("ScatterND", [".", s.constant(places.astype(np.int64), "places"), s.constant(w[tuple(places.T)], "numbers")], {}))
    return done(model, s)


def brain(x):
    """The nearest brain float."""
    bits = np.ascontiguousarray(f32(x)).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def weights_in_three_brains(model, rng):
    """Three brain floats whose sum is each number, to the last bit."""
    if model.opset < 13:
        return None
    s = copy(model, rng)
    for n, w in list(matrices(s)):
        parts, left = [], w.copy()
        for _ in range(3):
            parts.append(brain(left))
            left = left - parts[-1]
        if np.any(left):
            continue
        write, names = writer(s, s.place(n)), []
        out = list(n.output)
        for p in parts[::-1]:
            name = s.fresh("brain")
            raw = (p.view(np.uint32) >> 16).astype(np.uint16).tobytes()
            s.graph.initializer.append(helper.make_tensor(name, TensorProto.BFLOAT16, p.shape, raw, raw=True))
            names.append(write("Cast", [name], to=TensorProto.FLOAT))
        x = write("Add", [write("Add", names[:2]), names[2]])
        next(m for m in s.graph.node if list(m.output) == out).input[1] = x
    return done(model, s)


# ---- few bits ----

def columns_of(s, n, w):
    """The axis of what is made, and the other axes."""
    axis = 0 if n.op_type == "Conv" or s.attr(n, "transB", 0) else w.ndim - 1
    return axis, tuple(i for i in range(w.ndim) if i != axis)


def three_levels(model, rng):
    """Minus one, nothing and one, and a scale for each channel of what is made."""
    s = copy(model)
    for n, w in list(matrices(s)):
        _, other = columns_of(s, n, w)
        mean = np.abs(w).mean(other, keepdims=True)
        q = np.where(np.abs(w) > 0.7 * mean, np.sign(w), 0)
        scale = f32((np.abs(w) * np.abs(q)).sum(other, keepdims=True) / np.maximum(np.abs(q).sum(other, keepdims=True), 1))
        behind(s, n, ("Cast", [s.constant(q.astype(np.int8), "levels")], {"to": TensorProto.FLOAT}), ("Mul", [".", s.constant(scale, "scale")], {}))
    return done(model, s)


def signs_in_graph(model, rng):
    """Signs that the graph takes of the weights that training left, times the mean of their magnitudes."""
    s = copy(model)
    for n, w in list(matrices(s)):
        _, other = columns_of(s, n, w)
        alpha = f32(np.abs(w).mean(other, keepdims=True))
        behind(s, n, ("Sign", [s.constant(w, "latent")], {}), ("Mul", [".", s.constant(alpha, "alpha")], {}))
    return done(model, s)


def learned_steps(model, rng, bits=4):
    """Weights and what they multiply in steps that were learned, rounded in the graph."""
    s = copy(model, rng)
    low, high = (s.constant(f32(v), "level") for v in (-2 ** (bits - 1), 2 ** (bits - 1) - 1))
    wide = [s.constant(f32(v), "level") for v in (-128, 127)]
    for n, w in list(matrices(s)):
        step = s.constant(f32(2 * np.abs(w).mean() / np.sqrt(2 ** (bits - 1) - 1)), "step")
        behind(s, n, ("Div", [s.constant(w, "latent"), step], {}), ("Clip", [".", low, high], {}), ("Round", ["."], {}), ("Mul", [".", step], {}))
        n = next(m for m in s.graph.node if list(m.output) == list(n.output))
        if floats(s, n.input[0]):
            step = s.constant(f32(np.abs(s.values[n.input[0]]).max() * 1.1 / 127 + 1e-6), "step")
            s.before(n, 0, ("Div", [".", step], {}), ("Clip", [".", *wide], {}), ("Round", ["."], {}), ("Mul", [".", step], {}))
    return done(model, s)


def nibbles_packed(model, rng):
    """Two numbers of four bits in each byte, taken apart in the graph; scales for columns."""
    s = copy(model)
    for n, w in list(matrices(s)):
        if w.ndim != 2 or len(w) % 2 or n.op_type == "Conv":
            continue
        _, other = columns_of(s, n, w)
        scale = f32(np.abs(w).max(other, keepdims=True) / 7 + 1e-9)
        q = (np.clip(np.rint(w / scale), -8, 7) + 8).astype(np.int32)
        half = len(w) // 2
        stored = s.constant((q[:half] + 16 * q[half:]).astype(np.uint8), "packed")
        sixteen = s.constant(np.int32(16), "sixteen")
        write, out = writer(s, s.place(n)), list(n.output)
        whole = write("Cast", [stored], to=TensorProto.INT32)
        high = write("Div", [whole, sixteen])
        low = write("Sub", [whole, write("Mul", [high, sixteen])])
        x = write("Cast", [write("Concat", [low, high], axis=0)], to=TensorProto.FLOAT)
        x = write("Mul", [write("Sub", [x, s.constant(f32(8), "eight")]), s.constant(scale, "scale")])
        next(m for m in s.graph.node if list(m.output) == out).input[1] = x
    return done(model, s)


def floats_of_four_bits(model, rng, block=4):
    """Places in the book of four-bit floats, and a power of two for each few rows."""
    book = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    book = np.concatenate([book, -book])
    s = copy(model)
    for n, w in list(matrices(s)):
        if w.ndim != 2 or n.op_type == "Conv" or len(w) % block:
            continue
        rows = w.reshape(-1, block, w.shape[1])
        scale = np.exp2(np.floor(np.log2(np.abs(rows).max(1, keepdims=True) + 1e-9)) - 2)
        places = np.abs((rows / scale)[..., None] - book).argmin(-1)
        behind(s, n, ("Gather", [s.constant(f32(book), "book"), s.constant(places.astype(np.int64), "places")], {"axis": 0}),
               ("Mul", [".", s.constant(f32(scale), "powers")], {}), ("Reshape", [".", s.constant(np.array(w.shape), "shape")], {}))
    return done(model, s)


def weights_in_wide_fp8(model, rng):
    """Eight bits of which five are of the exponent; of operator set 19."""
    model = model if model.opset >= 19 else converted_to(model, 19)
    if model is None:
        return None
    s = copy(model)
    for n, w in list(matrices(s)):
        scale = f32(np.abs(w).max() / 4096)
        name = s.fresh("stored")
        s.graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT8E5M2, w.shape, (w / scale).reshape(-1).tolist()))
        behind(s, n, ("Cast", [name], {"to": TensorProto.FLOAT}), ("Mul", [".", s.constant(scale, "scale")], {}))
    return done(model, s)


def rows_in_bytes_at_run(model, rng):
    """Each row of what is multiplied in bytes of a scale of its own, which the graph takes; weights in bytes with scales for columns."""
    s = copy(model, rng)
    for n in list(s.nodes("MatMul")):
        w = s.const(n.input[1])
        if w is None or w.ndim != 2 or not floats(s, n.input[0]) or len(s.shape(n.input[0])) < 2:
            continue
        rank, x, out = len(s.shape(n.input[0])), n.input[0], n.output[0]
        scale_w = f32(np.abs(w).max(0, keepdims=True) / 127 + 1e-9)
        q = s.constant(f32(np.rint(w / scale_w)), "bytes")
        write = writer(s, s.place(n))
        s.graph.node.remove(n)
        most = write("ReduceMax", [write("Abs", [x]), *([s.constant(np.array([rank - 1]))] if s.opset >= 18 else [])], **({} if s.opset >= 18 else {"axes": [rank - 1]}))
        scale = write("Div", [write("Max", [most, s.constant(f32(1e-6), "least")]), s.constant(f32(127), "levels")])
        y = write("MatMul", [write("Round", [write("Div", [x, scale])]), q])
        write("Mul", [write("Mul", [y, scale]), s.constant(scale_w.reshape(-1), "scale")], out)
    return done(model, s)


# Of these, golden is the original's.
SAME = {"recurrent written out": recurrent_written_out, "recurrent biases merged": recurrent_biases_merged, "input products apart": input_products_apart,
        "cells filled up": cells_filled_up, "weights in one block": weights_in_one_block, "filters with channels last": filters_with_channels_last,
        "matrices in blocks": matrices_in_blocks, "weights scattered": weights_scattered, "weights in three brains": weights_in_three_brains}
# Of these it is their own.
OTHER = {"three levels": three_levels, "signs in graph": signs_in_graph, "learned steps": learned_steps, "nibbles packed": nibbles_packed,
         "floats of four bits": floats_of_four_bits, "wide fp8": weights_in_wide_fp8, "rows in bytes": rows_in_bytes_at_run}
