"""Sixth generation of healthy models: layers joined, spread, padded and cut in time, and weights in few bits of other kinds."""
import numpy as np
from onnx import helper

from faults4_folding import scale_and_shift
from forms import converted_to, copy, done, matrices
from forms4 import f32, replaced


def split_of(s, x, sizes, names, axis, at):
    if s.opset >= 13:
        return s.insert(at, "Split", [x, s.constant(np.array(sizes))], names, axis=axis)
    return s.insert(at, "Split", [x], names, axis=axis, split=list(sizes))


def siblings_joined(model, rng):
    """Layers that read the same are one product, which is then cut."""
    s = copy(model, rng)
    groups = {}
    for n in s.nodes("MatMul"):
        w = s.const(n.input[1])
        if w is not None and w.ndim == 2 and s.const(n.input[0]) is None:
            groups.setdefault(n.input[0], []).append(n)
    for x, nodes in groups.items():
        if len(nodes) < 2:
            continue
        at = min(s.place(n) for n in nodes)
        weights, outs, rank = [s.const(n.input[1]) for n in nodes], [n.output[0] for n in nodes], len(s.shape(x))
        for n in nodes:
            s.graph.node.remove(n)
        made = s.fresh("joined")
        s.insert(at, "MatMul", [x, s.constant(np.concatenate(weights, 1), "joined_weight")], [made])
        split_of(s, made, [w.shape[1] for w in weights], outs, rank - 1, at + 1)
    return done(model, s)


def recurrent_in_chunks(model, rng):
    """The first half of the steps, then the second, which begins where the first ended."""
    s = copy(model, rng)
    for n in list(s.nodes("LSTM", "GRU", "RNN")):
        steps, kind, cells = s.shape(n.input[0])[0], n.op_type, n.op_type == "LSTM"
        if s.attr(n, "direction", "forward") != "forward" or steps < 4 or len(n.input) > 4 and n.input[4] or s.attr(n, "layout", 0):
            continue
        inputs, outs, at = [*n.input], [*n.output] + [""] * (3 - len(n.output)), s.place(n)
        more = {a.name: s.attr(n, a.name) for a in n.attribute}
        if "activations" in more:
            more["activations"] = [a.decode() if isinstance(a, bytes) else a for a in more["activations"]]
        s.graph.node.remove(n)
        parts, ys, states = ([s.fresh(h) for _ in range(2)] for h in ("steps", "half", "state"))
        split_of(s, inputs[0], [steps // 2, steps - steps // 2], parts, 0, at)
        s.insert(at + 1, kind, [parts[0], *inputs[1:]], [ys[0], *states[:1 + cells]], **more)
        wide = [parts[1], *inputs[1:4], *[""] * (4 - len(inputs[:4])), "", states[0], *([states[1]] if cells else []), *inputs[7:]]
        s.insert(at + 2, kind, wide, [ys[1], outs[1], *([outs[2]] if cells else [])], **more)
        s.insert(at + 3, "Concat", ys, [outs[0] or s.fresh("all")], axis=0)
    return done(model, s)


def norms_as_convolutions(model, rng):
    """A number for each channel, and one that is added: a convolution of single pixels, channel by channel."""
    s = copy(model, rng)
    for n in s.nodes("BatchNormalization"):
        if len(s.shape(n.input[0])) != 4:
            continue
        scale, shift = (f32(v) for v in scale_and_shift(s, n))
        names = s.constant(scale.reshape(-1, 1, 1, 1), "scale"), s.constant(shift.reshape(-1), "shift")
        replaced(s, n, [("Conv", [".", *names], {"kernel_shape": [1, 1], "group": scale.size})])
    return done(model, s)


def plain(s, n, rank=4):
    """The weight of a convolution that pads as it says, or None."""
    w = s.const(n.input[1])
    return w if w is not None and w.ndim == rank and s.attr(n, "auto_pad", "NOTSET") == "NOTSET" and n.input[0] in s.values else None


def one_by_one_as_product(model, rng):
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        w = plain(s, n)
        if w is None or w.shape[2:] != (1, 1) or s.attr(n, "group", 1) != 1 or max(s.attr(n, "strides", [1])) > 1 or any(s.attr(n, "pads", [0])):
            continue
        steps = [("Transpose", ["."], {"perm": [0, 2, 3, 1]}), ("MatMul", [0, s.constant(np.ascontiguousarray(w[:, :, 0, 0].T), "matrix")], {})]
        if len(n.input) > 2 and n.input[2]:
            steps.append(("Add", [1, n.input[2]], {}))
        replaced(s, n, [*steps, ("Transpose", [len(steps) - 1], {"perm": [0, 3, 1, 2]})])
    return done(model, s)


def steps_as_slices(model, rng):
    """Every place is computed, and every second one is kept."""
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        w, stride = plain(s, n), s.attr(n, "strides", [1, 1])
        if w is None or max(stride) < 2:
            continue
        s.set_attr(n, "strides", [1, 1])
        ends = np.full(2, np.iinfo(np.int64).max)
        s.after(n.output[0], ("Slice", [".", *(s.constant(np.array(v, np.int64)) for v in ([0, 0], ends, [2, 3], stride))], {}))
    return done(model, s)


def dilation_spread(model, rng):
    """Filters with zeros between their numbers."""
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        w, d = s.const(n.input[1]), s.attr(n, "dilations", [1])
        if w is None or max(d) < 2 or s.attr(n, "auto_pad", "NOTSET") != "NOTSET":
            continue
        wide = np.zeros(w.shape[:2] + tuple((k - 1) * q + 1 for k, q in zip(w.shape[2:], d)), np.float32)
        wide[(slice(None), slice(None), *(slice(None, None, q) for q in d))] = w
        n.input[1] = s.constant(wide, "spread")
        s.set_attr(n, "kernel_shape", list(wide.shape[2:]))
        s.set_attr(n, "dilations", None)
    return done(model, s)


def groups_as_one(model, rng):
    """Filters that see all channels, with zeros for those of other groups."""
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        w, groups = s.const(n.input[1]), s.attr(n, "group", 1)
        if w is None or groups < 2:
            continue
        wide = np.zeros((w.shape[0], w.shape[1] * groups) + w.shape[2:], np.float32)
        for g, part in enumerate(np.split(w, groups)):
            rows = slice(g * len(part), (g + 1) * len(part))
            wide[rows, g * w.shape[1]:(g + 1) * w.shape[1]] = part
        n.input[1] = s.constant(wide, "dense")
        s.set_attr(n, "group", None)
    return done(model, s)


def channels_padded(model, rng):
    """As many channels as a chip likes; those that are not there are zero, and are cut off again."""
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        w = plain(s, n)
        more = -len(w) % 8 if w is not None else 0
        bias = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        if not more or s.attr(n, "group", 1) != 1 or len(n.input) > 2 and n.input[2] and bias is None:
            continue
        n.input[1] = s.constant(np.pad(w, ((0, more), (0, 0), (0, 0), (0, 0))), "padded")
        if bias is not None:
            n.input[2] = s.constant(np.pad(bias, (0, more)), "padded")
        s.after(n.output[0], ("Slice", [".", *(s.constant(np.array([v])) for v in (0, len(w), 1))], {}))
    return done(model, s)


def inputs_apart(model, rng):
    """What is joined before a layer has a layer of its own each, and they are added."""
    s = copy(model, rng)
    for n in s.nodes("MatMul", "Gemm"):
        w, join = s.const(n.input[1]), s.made_by(n.input[0], "Concat")
        if w is None or w.ndim != 2 or join is None or s.attr(n, "alpha", 1.0) != 1 or s.attr(n, "beta", 1.0) != 1 or s.attr(n, "transA", 0):
            continue
        rank = len(s.shape(n.input[0]))
        if s.attr(join, "axis") % rank != rank - 1 or any(x not in s.values for x in join.input):
            continue
        w = w.T if s.attr(n, "transB", 0) else w
        ends = np.cumsum([s.shape(x)[-1] for x in join.input])[:-1]
        steps = [("MatMul", [x, s.constant(np.ascontiguousarray(p), "part")], {}) for x, p in zip(join.input, np.split(w, ends))]
        steps += [("Add", [0 if k == 1 else len(steps) + k - 2, k], {}) for k in range(1, len(steps))]
        if n.op_type == "Gemm" and len(n.input) > 2 and n.input[2]:
            steps.append(("Add", [len(steps) - 1, n.input[2]], {}))
        replaced(s, n, steps)
    return done(model, s)


def weight_norms_left(model, rng):
    """A direction and a length for each column, which training kept apart and the graph still joins."""
    s = copy(model, rng)
    for n, w in list(matrices(s)):
        if n.op_type != "MatMul" or w.ndim != 2:
            continue
        length = np.sqrt((w.astype(np.float64) ** 2).sum(0, keepdims=True)) + 1e-9
        v, g = s.constant(f32(w * np.exp(0.5 * rng.standard_normal(length.shape))), "weight_v"), s.constant(f32(length), "weight_g")
        at, names = s.place(n), [s.fresh("norm") for _ in range(5)]
        s.insert(at, "Mul", [v, v], [names[0]])
        if s.opset >= 13:
            s.insert(at + 1, "ReduceSum", [names[0], s.constant(np.array([0]))], [names[1]], keepdims=1)
        else:
            s.insert(at + 1, "ReduceSum", [names[0]], [names[1]], axes=[0], keepdims=1)
        s.insert(at + 2, "Sqrt", [names[1]], [names[2]])
        s.insert(at + 3, "Div", [v, names[2]], [names[3]])
        s.insert(at + 4, "Mul", [names[3], g], [names[4]])
        n.input[1] = names[4]
    return done(model, s)


def layers_as_functions(model, rng):
    """A product and what is added to it are one function of the model's own."""
    s = copy(model, rng)
    found = 0
    for n in list(s.nodes("Add")):
        i = next((i for i in (0, 1) if s.made_by(n.input[i], "MatMul") is not None), None)
        product = s.producer(n.input[i]) if i is not None else None
        bias = s.const(n.input[1 - i]) if i is not None else None
        if product is None or bias is None or bias.ndim != 1 or len(s.consumers(product.output[0])) > 1 or s.is_output(product.output[0]):
            continue
        inputs = [*product.input, n.input[1 - i]]
        s.graph.node.remove(product)
        n.op_type, n.domain = "Linear", "pkg.torch"
        del n.input[:]
        n.input.extend(inputs)
        found += 1
    if not found:
        return None
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    s.proto.functions.append(helper.make_function("pkg.torch", "Linear", ["x", "w", "b"], ["y"], nodes, [helper.make_opsetid("", model.opset)]))
    s.proto.opset_import.append(helper.make_opsetid("pkg.torch", 1))
    s.proto.ir_version = max(s.proto.ir_version, 8)
    return done(model, s)


def pools_as_convolutions(model, rng):
    s = copy(model, rng)
    for n in s.nodes("AveragePool"):
        k, shape = s.attr(n, "kernel_shape"), s.shape(n.input[0])
        if any(s.attr(n, "pads", [0])) or s.attr(n, "ceil_mode", 0) or s.attr(n, "auto_pad", "NOTSET") != "NOTSET":
            continue
        w, strides = np.full((shape[1], 1, *k), 1 / np.prod(k)), list(s.attr(n, "strides", [1] * len(k)))
        replaced(s, n, [("Conv", [".", s.constant(f32(w), "mean")], {"kernel_shape": list(k), "strides": strides, "group": shape[1]})])
    return done(model, s)


# ---- few bits ----

def weights_with_middles(model, rng):
    """Bytes without a sign for weights alone, a scale and a middle for each channel of what is made."""
    if model.opset < 13:
        return None
    s = copy(model)
    for n, w in list(matrices(s)):
        axis = 0 if n.op_type == "Conv" or s.attr(n, "transB", 0) else w.ndim - 1
        other = tuple(i for i in range(w.ndim) if i != axis)
        low, high = np.minimum(w.min(other, keepdims=True), 0), np.maximum(w.max(other, keepdims=True), 0)
        scale = f32((high - low) / 255 + 1e-9)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        q = np.clip(np.rint(w / scale) + zero, 0, 255).astype(np.uint8)
        names = s.constant(q, "stored"), s.constant(scale.reshape(-1), "scale"), s.constant(zero.reshape(-1).astype(np.uint8), "middle")
        s.before(n, 1, ("DequantizeLinear", list(names), {"axis": axis}))
    return done(model, s) if s.nodes("DequantizeLinear") else None


def weights_in_blocks(model, rng, block=4):
    """Bytes with a scale for each few rows; of operator set 21."""
    model = model if model.opset >= 21 else converted_to(model, 21)
    if model is None:
        return None
    s = copy(model)
    for n, w in list(matrices(s)):
        axis = 1 if s.attr(n, "transB", 0) else 0
        if n.op_type == "Conv" or w.ndim != 2 or w.shape[axis] % block:
            continue
        shape = w.shape[:axis] + (-1, block) + w.shape[axis + 1:]
        scale = f32(np.abs(w.reshape(shape)).max(axis + 1) / 127 + 1e-9)
        q = np.clip(np.rint(w / np.repeat(scale, block, axis)), -127, 127).astype(np.int8)
        s.before(n, 1, ("DequantizeLinear", [s.constant(q, "stored"), s.constant(scale, "scale")], {"axis": axis, "block_size": block}))
    return done(model, s) if s.nodes("DequantizeLinear") else None


def weights_of_shifts(model, rng):
    """Weights that are powers of two, or nothing, as chips have them that shift."""
    s = copy(model)
    for n, w in list(matrices(s)):
        power = np.rint(np.log2(np.abs(w) + 1e-12) * 2) / 2
        n.input[1] = s.constant(f32(np.where(np.abs(w) < np.abs(w).max() / 64, 0, np.sign(w) * np.exp2(power))), "shifts")
    return done(model, s)


def weights_in_two_parts(model, rng):
    """Whole numbers and their scale, and other whole numbers for what is left: two products that are added."""
    s = copy(model, rng)
    for n in s.nodes("MatMul"):
        w = s.const(n.input[1])
        if w is None or w.ndim != 2 or s.const(n.input[0]) is not None or min(w.shape) < 4:
            continue
        parts, left = [], w.astype(np.float64)
        for _ in range(2):
            scale = np.abs(left).max() / 7
            parts.append(f32(np.rint(left / scale) * scale))
            left = left - parts[-1]
        x = n.input[0]
        replaced(s, n, [("MatMul", [".", s.constant(parts[0], "coarse")], {}), ("MatMul", [x, s.constant(parts[1], "fine")], {}), ("Add", [0, 1], {})])
    return done(model, s)
