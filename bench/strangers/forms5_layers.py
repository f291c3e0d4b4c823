"""Fifth generation of healthy models: layers taken apart, weights that are made good elsewhere, and other few bits."""
import numpy as np

from forms import converted_to, copy, done, matrices
from forms4 import f32, replaced


def renamed(s, value):
    """The value under a name that golden does not know."""
    new = s.fresh(value)
    for n in s.graph.node:
        for names in (n.input, n.output):
            for i, x in enumerate(names):
                if x == value:
                    names[i] = new
    return new


def biases_apart(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Conv", "ConvTranspose", "Gemm"):
        b = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        if b is None or n.op_type == "Gemm" and (s.attr(n, "beta", 1.0) != 1 or b.ndim != 1):
            continue
        shape = b.shape if n.op_type == "Gemm" else b.shape + (1,) * (s.const(n.input[1]).ndim - 2) if s.const(n.input[1]) is not None else None
        if shape is None:
            continue
        del n.input[2:]
        s.after(n.output[0], ("Add", [".", s.constant(b.reshape(shape), "bias")], {}))
    return done(model, s)


def groups_apart(model, rng, most=12):
    """A convolution for each group, and what they make side by side."""
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        groups, w = s.attr(n, "group", 1), s.const(n.input[1])
        if not 1 < groups <= most or w is None:
            continue
        x, out, at = n.input[0], n.output[0], s.place(n)
        b = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        more = {a.name: s.attr(n, a.name) for a in n.attribute if a.name != "group"}
        s.graph.node.remove(n)
        parts = [s.fresh("part") for _ in range(groups)]
        sizes = [s.shape(x)[1] // groups] * groups
        if s.opset >= 13:
            s.insert(at, "Split", [x, s.constant(np.array(sizes))], parts, axis=1)
        else:
            s.insert(at, "Split", [x], parts, axis=1, split=sizes)
        made = []
        for k, (p, v) in enumerate(zip(parts, np.split(w, groups))):
            bias = [s.constant(np.split(b, groups)[k])] if b is not None else []
            made.append(s.fresh("group"))
            s.insert(at + 1 + k, "Conv", [p, s.constant(v), *bias], [made[-1]], **more)
        s.insert(at + 1 + groups, "Concat", made, [out], axis=1)
    return done(model, s)


def kernels_widened(model, rng):
    """One by one as three by three, with zeros around."""
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        w = s.const(n.input[1])
        if w is None or w.shape[2:] != (1, 1) or any(s.attr(n, "pads", [0])) or s.attr(n, "auto_pad", "NOTSET") != "NOTSET":
            continue
        n.input[1] = s.constant(np.pad(w, ((0, 0), (0, 0), (1, 1), (1, 1))), "wide")
        s.set_attr(n, "kernel_shape", [3, 3])
        s.set_attr(n, "pads", [1] * 4)
        s.set_attr(n, "dilations", None)
    return done(model, s)


def directions_apart(model, rng):
    """Forwards and backwards as two layers, joined."""
    s = copy(model, rng)
    for n in list(s.nodes("LSTM", "GRU", "RNN")):
        if s.attr(n, "direction", "forward") != "bidirectional" or any(n.input[5:]):
            continue
        at, halves, outs = s.place(n), [], list(n.output)
        attributes = {a.name: s.attr(n, a.name) for a in n.attribute if a.name != "direction"}
        kept = [x for x in n.input]
        s.graph.node.remove(n)
        for d, direction in enumerate(("forward", "reverse")):
            own = [s.constant(s.const(x)[d:d + 1]) if 0 < i < 4 and x else x for i, x in enumerate(kept)]
            more = dict(attributes)
            if "activations" in more:
                acts = [a.decode() if isinstance(a, bytes) else a for a in more["activations"]]
                more["activations"] = acts[d * len(acts) // 2:(d + 1) * len(acts) // 2]
            halves.append([s.fresh("half") if o else "" for o in outs])
            s.insert(at + d, n.op_type, own, halves[-1], direction=direction, **more)
        for k, o in enumerate(outs):
            if o:
                s.insert(at + 2 + k, "Concat", [h[k] for h in halves], [o], axis=1 if k == 0 else 0)
    return done(model, s)


def adapters_apart(model, rng):
    """A matrix of low rank that was learned later is added beside the layer, not in it."""
    s = copy(model, rng)
    for n in s.nodes("MatMul"):
        w = s.const(n.input[1])
        if w is None or w.ndim != 2 or min(w.shape) < 6 or s.const(n.input[0]) is not None or rng.random() < 0.3:
            continue
        x = n.input[0]
        a, b = f32(0.3 * rng.standard_normal((w.shape[0], 2))), f32(0.3 * rng.standard_normal((2, w.shape[1])))
        rest = f32(w.astype(np.float64) - a.astype(np.float64) @ b)
        replaced(s, n, [("MatMul", [".", s.constant(rest, "base")], {}), ("MatMul", [x, s.constant(a, "lora_A")], {}),
                        ("MatMul", [1, s.constant(b, "lora_B")], {}), ("Add", [0, 2], {})])
    return done(model, s)


def smoothed(model, rng):
    """A norm's channels are divided, and the weights behind it multiplied by the same."""
    s = copy(model, rng)
    for n in s.nodes("LayerNormalization", "Mul"):
        gamma = s.const(n.input[1]) if len(n.input) > 1 else None
        if gamma is None or gamma.ndim != 1 or gamma.size < 6 or s.const(n.input[0]) is not None:
            continue
        end, beta = n, n.input[2] if n.op_type == "LayerNormalization" and len(n.input) > 2 else ""
        readers = s.consumers(n.output[0])
        if n.op_type == "Mul" and len(readers) == 1 and readers[0].op_type == "Add" and any(s.const(x) is not None for x in readers[0].input):
            end = readers[0]
            beta = next(x for x in end.input if s.const(x) is not None)
            readers = s.consumers(end.output[0])
        fit = readers and all(r.op_type == "MatMul" and r.input[0] == end.output[0] and s.const(r.input[1]) is not None and s.const(r.input[1]).ndim == 2
                              for r in readers)
        if not fit or s.is_output(end.output[0]) or beta and (s.const(beta) is None or s.const(beta).ndim != 1):
            continue
        factor = f32(np.exp(0.6 * rng.standard_normal(gamma.shape)))
        n.input[1] = s.constant(gamma / factor, "smooth")
        if beta:
            place = list(end.input).index(beta)
            end.input[place] = s.constant(s.const(beta) / factor, "smooth")
        for r in readers:
            r.input[1] = s.constant(s.const(r.input[1]) * factor[:, None], "rough")
        if end is not n:
            renamed(s, n.output[0])
        renamed(s, end.output[0])
    return done(model, s)


def equalized(model, rng):
    """Channels of a layer are made larger or smaller, and the next layer makes it good, as a rectifier lets it."""
    s = copy(model, rng)
    for act in s.nodes("Relu", "LeakyRelu"):
        first, readers = s.made_by(act.input[0], "Conv", "Gemm"), s.consumers(act.output[0])
        if first is None or len(s.consumers(act.input[0])) != 1 or len(readers) != 1 or s.is_output(act.output[0]) or readers[0].op_type != first.op_type:
            continue
        second = readers[0]
        names = [first.input[1], second.input[1]]
        w1, w2 = (s.const(x) for x in names)
        whole = all(s.attr(n, "group", 1) == 1 and s.attr(n, "alpha", 1.0) == 1 and n.input[0] in s.values for n in (first, second))
        if w1 is None or w2 is None or not whole or first.op_type == "Gemm" and not (s.attr(first, "transB", 0) and s.attr(second, "transB", 0)) \
                or len(first.input) > 2 and s.const(first.input[2]) is None:
            continue
        factor = f32(np.exp(0.8 * rng.standard_normal(len(w1))))
        wide = (-1,) + (1,) * (w1.ndim - 1)
        first.input[1] = s.constant(w1 * factor.reshape(wide), "equal")
        if len(first.input) > 2 and first.input[2]:
            first.input[2] = s.constant(s.const(first.input[2]) * factor, "equal")
        second.input[1] = s.constant(w2 / factor.reshape((1, -1) + (1,) * (w2.ndim - 2)), "equal")
        renamed(s, act.input[0])
        renamed(s, act.output[0])
    return done(model, s)


# ---- few bits ----

def weights_in_a_book(model, rng, size=16):
    """Matrices as places in a book of numbers that lie close where weights are many, and a scale for each column."""
    s = copy(model)
    t = np.linspace(-1, 1, size)
    book = f32(np.sign(t) * np.abs(t) ** 1.6)
    name = s.constant(book, "book")
    for n, w in list(matrices(s)):
        if n.op_type == "Conv" or w.ndim != 2:
            continue
        scale = f32(np.abs(w).max(0, keepdims=True) + 1e-9)
        places = np.abs((w / scale)[..., None] - book).argmin(-1)
        at, raw, out = s.place(n), s.fresh("looked_up"), s.fresh("weight")
        s.insert(at, "Gather", [name, s.constant(places.astype(np.int64), "places")], [raw], axis=0)
        s.insert(at + 1, "Mul", [raw, s.constant(scale, "scale")], [out])
        n.input[1] = out
    return done(model, s) if len(s.graph.node) > len(model.proto.graph.node) else None


def quantizers_written_out(quantized, rng):
    """Pairs of activations as division, rounding, limits and product, as a training that knows of them is exported."""
    s = copy(quantized)
    found = 0
    for n in list(s.nodes("QuantizeLinear")):
        readers, scale = s.consumers(n.output[0]), s.const(n.input[1])
        zero = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        if s.const(n.input[0]) is not None or scale is None or scale.size != 1 or zero is None or {r.op_type for r in readers} != {"DequantizeLinear"}:
            continue
        if any(s.is_output(r.output[0]) for r in readers):
            continue
        low, high = np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max
        c = [s.constant(f32(v).reshape(())) for v in (scale.item(), zero.item(), low, high)]
        steps = [("Div", [".", c[0]]), ("Round", [0]), ("Add", [1, c[1]]), ("Clip", [2, c[2], c[3]]), ("Sub", [3, c[1]]), ("Mul", [4, c[0]])]
        out = s.fresh("fake")
        for r in readers:
            for reader in s.consumers(r.output[0]):
                for i, x in enumerate(reader.input):
                    if x == r.output[0]:
                        reader.input[i] = out
            s.graph.node.remove(r)
        n.output[0] = out
        replaced(s, n, [(*step, {}) for step in steps])
        found += 1
    return done(quantized, s) if found else None


def in_set_21(model):
    return model if model.opset >= 21 else converted_to(model, 21)
