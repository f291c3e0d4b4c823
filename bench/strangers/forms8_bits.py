"""Eighth generation of few bits: as ModelOpt, Brevitas, GPTQ, bitsandbytes, TensorFlow's and ONNX Runtime's tools leave them in the graph."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from forms import copy, done, matrices
from forms4 import f32
from forms5_layers import in_set_21
from forms6 import floats
from variants import FLOAT_INDICES, quantize

FP8 = TensorProto.FLOAT8E4M3FN
LAYERS = ("Conv", "MatMul", "Gemm")


def step_of(s, value, most):
    """Of what was met, or of a weight; None: it is nothing, or no number."""
    a = s.const(value)
    a = s.values.get(value) if a is None else a
    if a is None or a.dtype != np.float32 or not a.size or not np.isfinite(a).all() or np.abs(a).max() < 1e-12:
        return None
    return float(f32(1.1 * np.abs(a).max() / most if s.const(value) is None else np.abs(a).max() / most))


def zero_of_fp8(s):
    name = s.fresh("zero_fp8")
    s.graph.initializer.append(helper.make_tensor(name, FP8, [], b"\0", raw=True))
    return name


def pair(s, step, zero, between=()):
    scale = s.constant(f32(step), "scale")
    return [("QuantizeLinear", [".", scale, zero], {}), *between, ("DequantizeLinear", [".", scale, zero], {})]


def each_side(kinds, most, zero, between=lambda s: (), sides=(0, 1), where=lambda s, n: True, least=13):
    """A way to few bits: pairs on what these operators read."""
    def form(model, rng):
        if model.name in FLOAT_INDICES:
            return None
        model = in_set_21(model) if least > 18 else model
        if model is None or model.opset < least:
            return None
        s = copy(model, rng)
        for out in [n.output[0] for n in s.nodes(*kinds) if where(s, n)]:
            for i in sides:
                n = s.producer(out)
                step = step_of(s, n.input[i], most)
                if step is not None:
                    s.before(n, i, *pair(s, step, zero(s), between(s)))
        return done(model, s) if s.nodes("QuantizeLinear") else None
    return form


def byte_zero(s):
    return s.constant(np.int8(0), "zero")


def in_limits(bits):
    """Between quantizer and its inverse stand limits of fewer bits, as Brevitas exports them."""
    return lambda s: [("Clip", [".", s.constant(np.int8(-2 ** (bits - 1)), "low"), s.constant(np.int8(2 ** (bits - 1) - 1), "high")], {})]


fp8_all_through = each_side(LAYERS, 448.0, zero_of_fp8, least=19)
six_bits_by_limits = each_side(LAYERS, 31.0, byte_zero, in_limits(6))
seven_bits_by_limits = each_side(LAYERS, 63.0, byte_zero, in_limits(7))
both_sides_run = each_side(("MatMul",), 127.0, byte_zero, where=lambda s, n: all(s.const(x) is None for x in n.input))
sums_in_bytes = each_side(("Add",), 127.0, byte_zero, where=lambda s, n: all(floats(s, x) for x in n.input))
shares_in_bytes = each_side(("Softmax", "Sigmoid", "Tanh"), 127.0, byte_zero, sides=(0,))
words_all_through = each_side(LAYERS, 32767.0, lambda s: s.constant(np.int16(0), "zero"), least=21)


def ends_in_bytes(model, rng):
    """What comes in and what goes out is in bytes, all between them is not: a camera in front, a bus behind."""
    if model.name in FLOAT_INDICES or model.opset < 13:
        return None
    s = copy(model, rng)
    for i in [i.name for i in s.graph.input]:
        step = step_of(s, i, 127)
        for n in list(s.consumers(i)) if step and "mask" not in {x.kind for x in model.inputs if x.name == i} else []:
            for k in [k for k, x in enumerate(n.input) if x == i]:
                if n.op_type not in ("Shape", "Loop", "Scan"):
                    s.before(n, k, *pair(s, step, byte_zero(s)))
    for o in [o.name for o in s.graph.output]:
        step = step_of(s, o, 127)
        if step:
            s.after(o, *pair(s, step, byte_zero(s)))
    return done(model, s) if s.nodes("QuantizeLinear") else None


def outliers_apart(model, rng):
    """Columns that are large stay as they are, the others and their weights go through bytes (LLM.int8)."""
    if model.opset < 13:
        return None
    s = copy(model, rng)
    for n in list(s.nodes("MatMul")):
        w, x = s.const(n.input[1]), n.input[0]
        if w is None or w.ndim != 2 or len(w) < 5 or not floats(s, x):
            continue
        large = np.abs(s.values[x]).reshape(-1, len(w)).max(0).argsort()[-2:]
        rest = np.setdiff1d(np.arange(len(w)), large)
        step = np.abs(s.values[x][..., rest]).max() * 1.1 / 127
        if not step > 1e-12:
            continue
        scale = f32(np.abs(w[rest]).max(0) / 127 + 1e-9)
        names, at, last = [s.fresh(h) for h in ("usual", "bytes", "again", "stored", "product", "large", "large_product")], s.place(n), len(s.shape(x)) - 1
        out = n.output[0]
        s.graph.node.remove(n)
        steps = [("Gather", [x, s.constant(rest, "rest")], names[0], {"axis": last}), ("QuantizeLinear", [names[0], s.constant(f32(step), "scale"), byte_zero(s)], names[1], {}),
                 ("DequantizeLinear", [names[1], s.constant(f32(step), "scale"), byte_zero(s)], names[2], {}),
                 ("DequantizeLinear", [s.constant(np.rint(w[rest] / scale).astype(np.int8), "weights"), s.constant(scale, "scales"), s.constant(np.zeros(w.shape[1], np.int8), "zeros")],
                  names[3], {"axis": 1}),
                 ("MatMul", [names[2], names[3]], names[4], {}), ("Gather", [x, s.constant(large, "outliers")], names[5], {"axis": last}),
                 ("MatMul", [names[5], s.constant(w[large], "rows")], names[6], {}), ("Add", [names[4], names[6]], out, {})]
        for k, (kind, given, name, more) in enumerate(steps):
            s.insert(at + k, kind, given, [name], **more)
    return done(model, s)


def rows_of_weights(s, n, w):
    """A matrix as [rows to be summed, columns], and how to have it as it was."""
    return (w.T, True) if s.attr(n, "transB", 0) else (w, False)


def stored(s, n, flat, turned, steps):
    """Weights come from these steps, turned as the layer has them."""
    if turned:
        steps = [*steps, ("Transpose", ["."], {"perm": [1, 0]})]
    first, *others = steps
    name = s.fresh("stored")
    at = s.place(n)
    s.insert(at, first[0], first[1], [name], **first[2])
    node = s.graph.node[at + 1]
    node.input[1] = name
    if others:
        s.before(node, 1, *others)


def groups_by_activity(model, rng, group=4):
    """Four bits in groups of rows that are alike in what they meet, wherever they stand (GPTQ's order)."""
    s = copy(model)
    for n, w in list(matrices(s)):
        if w.ndim != 2:
            continue
        flat, turned = rows_of_weights(s, n, w)
        which = rng.permutation(np.arange(len(flat)) // group)
        scales = f32([np.abs(flat[which == g]).max(0) / 7 + 1e-9 for g in range(which.max() + 1)])
        q = np.clip(np.rint(flat / scales[which]), -8, 7).astype(np.int8)
        spread = s.fresh("spread")
        s.insert(s.place(n), "Gather", [s.constant(scales, "scales"), s.constant(which.astype(np.int64), "g_idx")], [spread], axis=0)
        stored(s, s.producer(n.output[0]), flat, turned, [("Cast", [s.constant(q, "qweight")], {"to": TensorProto.FLOAT}), ("Mul", [".", spread], {})])
    return done(model, s)


def scales_of_scales(model, rng, group=4):
    """Six bits in small blocks whose scales are bytes themselves, with one scale for all of them."""
    s = copy(model)
    for n, w in list(matrices(s)):
        if w.ndim != 2:
            continue
        flat, turned = rows_of_weights(s, n, w)
        rows, columns = flat.shape
        blocks = -(-rows // group)
        full = np.zeros((blocks * group, columns), np.float32)
        full[:rows] = flat
        full = full.reshape(blocks, group, columns)
        scale = np.abs(full).max(1, keepdims=True) / 31
        top = f32(scale.max() / 255 + 1e-12)
        small = np.clip(np.rint(scale / top), 1, 255).astype(np.uint8)
        q = np.clip(np.rint(full / (small * top)), -32, 31).astype(np.int8)
        names = [s.fresh(h) for h in ("scale_floats", "scales")]
        at = s.place(n)
        s.insert(at, "Cast", [s.constant(small, "scale_bytes")], [names[0]], to=TensorProto.FLOAT)
        s.insert(at + 1, "Mul", [names[0], s.constant(top, "scale_of_scales")], [names[1]])
        cut = [s.constant(np.array([v]), "cut") for v in (0, rows, 0)]
        stored(s, s.producer(n.output[0]), flat, turned, [("Cast", [s.constant(q, "six_bits")], {"to": TensorProto.FLOAT}), ("Mul", [".", names[1]], {}),
                                                          ("Reshape", [".", s.constant(np.array([-1, columns]), "flat")], {}), ("Slice", [".", *cut], {})])
    return done(model, s)


def half_steps(model, rng):
    """Bytes whose steps are halves, and weights that come out as halves."""
    model = in_set_21(model)
    if model is None:
        return None
    s = copy(model)
    for n, w in list(matrices(s)):
        step = np.float16(np.abs(w).max() / 127)
        if step > 1e-4:
            q = np.clip(np.rint(w / np.float32(step)), -127, 127).astype(np.int8)
            s.before(n, 1, ("DequantizeLinear", [s.constant(q, "stored"), s.constant(step, "half_step")], {}), ("Cast", ["."], {"to": TensorProto.FLOAT}))
    return done(model, s)


def pruned(model, rng):
    """Of four weights in a row, the two larger ones."""
    s = copy(model)
    for n, w in list(matrices(s)):
        flat, turned = rows_of_weights(s, n, w) if w.ndim == 2 else (w.reshape(len(w), -1).T, None)
        full = np.zeros((-(-len(flat) // 4) * 4, flat.shape[1]), np.float32)
        full[:len(flat)] = flat
        blocks = full.reshape(-1, 4, flat.shape[1])
        keep = np.argsort(np.argsort(np.abs(blocks), 1), 1) >= 2
        flat = (blocks * keep).reshape(full.shape)[:len(flat)]
        s.set_const(n, 1, f32(flat.T.reshape(w.shape) if turned is not False else flat))
    return done(model, s)


def brain_casts(model, rng):
    """An export under autocast: what products and convolutions read and give goes through a brain float, by casts in the graph."""
    s = copy(model, rng)
    cast = [("Cast", ["."], {"to": TensorProto.BFLOAT16}), ("Cast", ["."], {"to": TensorProto.FLOAT})]
    if model.opset < 13:
        return None
    for out in [n.output[0] for n in s.nodes(*LAYERS)]:
        for i in (0, 1):
            if s.const(s.producer(out).input[i]) is None:
                s.before(s.producer(out), i, *cast)
        s.after(out, *cast)
    return done(model, s) if s.nodes("Cast") else None


def unsigned_twin(model, rng):
    """Signed bytes and their zeros, a hundred and twenty-eight up: the same numbers in bytes without a sign."""
    s = copy(model)
    consts = {}
    for n in s.nodes("QuantizeLinear", "DequantizeLinear"):
        for i, x in enumerate(n.input):
            c = s.const(x)
            if c is not None and c.dtype == np.int8 and i != 1:
                consts[x] = c
        if len(n.input) < 3 or s.const(n.input[2]) is None:
            return None
    if not consts or any(n.op_type not in ("QuantizeLinear", "DequantizeLinear") for x in consts for n in s.consumers(x)):
        return None
    for t in s.graph.initializer:
        if t.name in consts:
            t.CopyFrom(numpy_helper.from_array((consts[t.name].astype(np.int16) + 128).astype(np.uint8), t.name))
    return done(model, s)


def bytes_around(model, rng):
    """int8 by ONNX Runtime's tool."""
    return quantize(model, rng, model.opset >= 13, types="S8S8") if model.opset >= 13 else None


def pruned_bytes(model, rng):
    model = pruned(model, rng)
    return model and bytes_around(model, rng)


# Of these, golden is the model's own, or the float network's.
OWN = {"fp8 all through": fp8_all_through, "six bits by limits": six_bits_by_limits, "seven bits by limits": seven_bits_by_limits, "both sides of products in bytes": both_sides_run,
       "sums in bytes": sums_in_bytes, "shares in bytes": shares_in_bytes, "words all through": words_all_through, "ends in bytes": ends_in_bytes,
       "outliers apart": outliers_apart, "groups by activity": groups_by_activity, "scales of scales": scales_of_scales, "steps in halves": half_steps,
       "two of four kept": pruned, "two of four kept, in bytes": pruned_bytes, "casts to brain floats": brain_casts}
