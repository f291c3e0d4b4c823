"""Fourth generation of healthy models: the same network as another engine, optimizer or exporter would write it."""
import numpy as np
import onnx
from onnx import TensorProto, helper

from faults4_folding import MOVES, fold_into, scale_and_shift
from forms import converted_to, copy, done, matrices
from surgery import scalar


def f32(x):
    return np.asarray(x, np.float32)


def replaced(s, node, steps):
    """The node becomes these steps: (kind, inputs, attributes), '.' being its first input and numbers earlier steps; the last keeps its name."""
    at, x, out = s.place(node), node.input[0], node.output[0]
    s.graph.node.remove(node)
    names = []
    for k, (kind, inputs, attributes) in enumerate(steps):
        names.append(out if k == len(steps) - 1 else s.fresh(out))
        s.insert(at + k, kind, [x if i == "." else names[i] if isinstance(i, int) else i for i in inputs], [names[-1]], **attributes)


def reduced(s, kind, x, axes):
    """A reduction in the form of the operator set."""
    as_input = s.opset >= (13 if kind == "ReduceSum" else 18)
    return (kind, [x, s.constant(np.array(axes))], {}) if as_input else (kind, [x], {"axes": list(axes)})


def norms_folded(model, rng):
    """Into the convolutions in front of them."""
    s = copy(model)
    for bn in s.nodes("BatchNormalization"):
        conv = s.made_by(bn.input[0], "Conv")
        if conv is None or len(s.consumers(bn.input[0])) > 1 or len(s.consumers(conv.input[1])) > 1 or s.const(conv.input[1]) is None:
            continue
        fold_into(s, conv, bn)
        conv.output[0] = bn.output[0]
        s.graph.node.remove(bn)
    return done(model, s)


def norms_written_out(model, rng):
    """Means, differences, squares, roots; a batch's as a factor and an offset for each channel."""
    s = copy(model, rng)
    for n in s.nodes("LayerNormalization", "BatchNormalization"):
        if n.op_type == "BatchNormalization":
            scale, shift = (f32(v).reshape((-1,) + (1,) * (len(s.shape(n.input[0])) - 2)) for v in scale_and_shift(s, n))
            replaced(s, n, [("Mul", [".", s.constant(scale)], {}), ("Add", [0, s.constant(shift)], {})])
            continue
        axes = [-1]
        if s.attr(n, "axis", -1) not in (-1, len(s.shape(n.input[0])) - 1):
            continue
        steps = [reduced(s, "ReduceMean", ".", axes), ("Sub", [".", 0], {}), ("Mul", [1, 1], {}), reduced(s, "ReduceMean", 2, axes),
                 ("Add", [3, s.constant(f32(s.attr(n, "epsilon", 1e-5)))], {}), ("Sqrt", [4], {}), ("Div", [1, 5], {}), ("Mul", [6, n.input[1]], {})]
        if len(n.input) > 2 and n.input[2]:
            steps.append(("Add", [7, n.input[2]], {}))
        replaced(s, n, steps)
    return done(model, s)


def activations_written_out(model, rng):
    s = copy(model, rng)
    found = s.nodes("Sigmoid", "Softplus", "LeakyRelu", "HardSigmoid", "Softmax")
    if not found:
        return None
    one = s.constant(f32(1), "one")
    for n in found:
        if n.op_type == "Sigmoid":
            replaced(s, n, [("Neg", ["."], {}), ("Exp", [0], {}), ("Add", [1, one], {}), ("Div", [one, 2], {})])
        elif n.op_type == "Softplus":
            replaced(s, n, [("Exp", ["."], {}), ("Add", [0, one], {}), ("Log", [1], {})])
        elif n.op_type == "LeakyRelu" and 0 < s.attr(n, "alpha", 0.01) < 1:
            replaced(s, n, [("Mul", [".", s.constant(f32(s.attr(n, "alpha", 0.01)))], {}), ("Max", [".", 0], {})])
        elif n.op_type == "HardSigmoid":
            a, b = s.attr(n, "alpha", 0.2), s.attr(n, "beta", 0.5)
            replaced(s, n, [("Mul", [".", s.constant(f32(a))], {}), ("Add", [0, s.constant(f32(b))], {}),
                            ("Clip", [1, s.constant(f32(0)), one], {})])
        elif n.op_type == "Softmax" and (s.opset >= 13 or s.attr(n, "axis", 1) == len(s.shape(n.input[0])) - 1):
            axis = [s.attr(n, "axis", -1)]
            replaced(s, n, [reduced(s, "ReduceMax", ".", axis), ("Sub", [".", 0], {}), ("Exp", [1], {}), reduced(s, "ReduceSum", 2, axis),
                            ("Div", [2, 3], {})])
    return done(model, s)


def linear_taken_apart(model, rng):
    """Gemm as a product and a sum."""
    s = copy(model, rng)
    for n in s.nodes("Gemm"):
        w = s.const(n.input[1])
        if w is None or s.attr(n, "transA", 0):
            continue
        w = s.constant(np.ascontiguousarray(w.T if s.attr(n, "transB", 0) else w) * f32(s.attr(n, "alpha", 1.0)), "turned")
        steps = [("MatMul", [".", w], {})]
        if len(n.input) > 2 and n.input[2]:
            steps.append(("Add", [0, n.input[2]], {}))
        if s.attr(n, "beta", 1.0) == 1:
            replaced(s, n, steps)
    return done(model, s)


def linear_joined(model, rng):
    """A product and a sum as Gemm."""
    s = copy(model, rng)
    for n in s.nodes("Add"):
        product = next((p for p in (s.made_by(x, "MatMul") for x in n.input) if p is not None), None)
        b = next((x for x in n.input if s.const(x) is not None and s.const(x).ndim == 1), None)
        if product is None or b is None or len(s.shape(product.input[0])) != 2 or s.const(product.input[1]) is None or len(s.consumers(product.output[0])) > 1:
            continue
        product.op_type = "Gemm"
        product.input.append(b)
        product.output[0] = n.output[0]
        s.graph.node.remove(n)
    return done(model, s)


def factors_folded(model, rng):
    """A number behind a layer goes into its weights and its bias."""
    s = copy(model, rng)
    for n in s.nodes("Mul", "Div"):
        c, x, found = scalar(s, n.input[1]), n.input[0], None
        while c and found is None and len(s.consumers(x)) == 1 and not s.is_output(x):
            p = s.producer(x)
            if p is None or p.op_type not in (*MOVES, "Gemm", "Conv"):
                break
            found = p if p.op_type in ("Gemm", "Conv") else None
            x = p.input[0]
        if found is None or any(s.const(v) is None for v in found.input[1:] if v) or len(s.consumers(found.input[1])) > 1:
            continue
        factor = f32(c if n.op_type == "Mul" else 1 / c)
        for i in range(1, len(found.input)):
            if found.input[i]:
                found.input[i] = s.constant(s.const(found.input[i]) * factor, "scaled")  # under a new name
        last = s.producer(n.input[0])
        last.output[0] = n.output[0]
        s.graph.node.remove(n)
    return done(model, s)


def names_lost(model, rng):
    """All names but the model's own inputs and outputs are numbers."""
    s = copy(model)
    kept = {v.name for v in [*s.graph.input, *s.graph.output]} | {""}
    new = {}
    for n in s.graph.node:
        n.name = f"n{s.place(n)}"
        for names in (n.input, n.output):
            for i, x in enumerate(names):
                if x not in kept:
                    names[i] = new.setdefault(x, str(len(new) + 100))
    for t in s.graph.initializer:
        t.name = new.setdefault(t.name, str(len(new) + 100)) if t.name not in kept else t.name
    return done(model, s)


def another_order(model, rng):
    s = copy(model)
    left, made, order = list(s.graph.node), {v.name for v in s.graph.input} | set(s.initializers) | {""}, []
    if any(a.HasField("g") for n in left for a in n.attribute):
        return None  # a branch reads what its own nodes do not say
    while left:
        ready = [k for k, n in enumerate(left) if all(x in made for x in n.input)]
        n = left.pop(ready[int(rng.integers(len(ready)))])
        order.append(n)
        made |= set(n.output)
    keep = [onnx.NodeProto.FromString(n.SerializeToString()) for n in order]
    del s.graph.node[:]
    s.graph.node.extend(keep)
    return done(model, s)


def moves_that_cancel(model, rng):
    """Turned and turned back, cut to the whole, joined with nothing, reshaped to what it is, times one."""
    s = copy(model, rng)
    floats = [o for n in s.graph.node for o in n.output if o in s.values and np.asarray(s.values[o]).dtype == np.float32 and n.op_type != "Constant"
              and np.ndim(s.values[o]) > 1]
    for value in map(str, rng.permutation(floats)[:max(5, len(floats) // 5)]):
        rank = len(s.shape(value))
        perm = rng.permutation(rank)
        whole = [s.constant(np.array([v])) for v in (0, np.iinfo(np.int64).max, rank - 1)]
        steps = {"turn": [("Transpose", ["."], {"perm": perm.tolist()}), ("Transpose", ["."], {"perm": np.argsort(perm).tolist()})],
                 "cut": [("Slice", [".", *whole], {})], "join": [("Concat", ["."], {"axis": 1})],
                 "shape": [("Reshape", [".", s.constant(np.zeros(rank, np.int64))], {})],
                 "unit": [("Mul", [".", s.constant(f32(1))], {}), ("Add", [".", s.constant(f32(0))], {})]}
        s.after(value, *steps[str(rng.choice(list(steps)))])
    return done(model, s)


def padding_apart(model, rng):
    """A node of its own pads with zeros what a convolution reads."""
    s = copy(model, rng)
    for n in s.nodes("Conv"):
        p = s.attr(n, "pads")
        if not p or not any(p):
            continue
        half, shape = len(p) // 2, [0, 0]
        s.set_attr(n, "pads", [0] * len(p))
        s.before(n, 0, ("Pad", [".", s.constant(np.array([*shape, *p[:half], *shape, *p[half:]]))], {}))
    return done(model, s)


def constant_conditions(model, rng):
    """Some nodes stand in a branch that is always taken."""
    s = copy(model)
    nodes = [n for n in s.nodes("Relu", "Tanh", "Sigmoid", "Add", "Mul", "LeakyRelu", "Softmax") if len(n.output) == 1]
    for n in [nodes[k] for k in rng.permutation(len(nodes))[:3]]:
        out, at = n.output[0], s.place(n)
        shape = [helper.make_tensor_value_info(s.fresh("branch"), TensorProto.FLOAT, None) for _ in range(2)]
        then = helper.make_graph([helper.make_node(n.op_type, list(n.input), [shape[0].name])], "then", [], [shape[0]])
        then.node[0].attribute.extend(n.attribute)
        other = helper.make_graph([helper.make_node("Identity", [next(x for x in n.input if s.const(x) is None)], [shape[1].name])], "else", [], [shape[1]])
        s.graph.node.remove(n)
        s.insert(at, "If", [s.constant(np.array(True), "always")], [out], then_branch=then, else_branch=other)
    return done(model, s)


def sequences(model, rng):
    """Parts of a split as a sequence, from which each is taken."""
    s = copy(model, rng)
    for n in s.nodes("Split"):
        sizes = [s.shape(o)[s.attr(n, "axis", 0)] for o in n.output]
        at, parts, axis = s.place(n), s.fresh("parts"), s.attr(n, "axis", 0)
        x, outs = n.input[0], list(n.output)
        s.graph.node.remove(n)
        s.insert(at, "SplitToSequence", [x, s.constant(np.array(sizes))], [parts], axis=axis)
        for k, o in enumerate(outs):
            s.insert(at + 1 + k, "SequenceAt", [parts, s.constant(np.int64(k))], [o])
    return done(model, s)


def weights_in_double(model, rng):
    s = copy(model)
    for n, w in list(matrices(s)):
        s.before(n, 1, ("Cast", [s.constant(w.astype(np.float64), "double")], {"to": TensorProto.FLOAT}))
    return done(model, s)


def weights_turned_at_run(model, rng):
    """A matrix is stored the other way round, and turned in the graph."""
    s = copy(model)
    for n, w in list(matrices(s)):
        if n.op_type == "MatMul" and w.ndim == 2:
            s.before(n, 1, ("Transpose", [s.constant(np.ascontiguousarray(w.T), "turned")], {"perm": [1, 0]}))
    return done(model, s)


def in_tf32(model, rng):
    """What products read has ten bits behind the point, as on a GPU that may use TF32."""
    s = copy(model, rng)
    for n in s.nodes("Conv", "MatMul", "Gemm"):
        if max(np.abs(s.values[x]).max() if x in s.values else np.abs(s.const(x)).max() for x in n.input[:2]) > 6e4:
            return None
        for i in (0, 1):
            n = s.before(n, i, ("Cast", ["."], {"to": TensorProto.FLOAT16}), ("Cast", ["."], {"to": TensorProto.FLOAT}))[-1]
    return done(model, s)


# ---- few bits ----

def weights_in_bytes_with_middle(model, rng, block=4):
    """Four bits without a sign, a middle of their own for each few rows; of operator set 21."""
    model = model if model.opset >= 21 else converted_to(model, 21)
    if model is None:
        return None
    s = copy(model)
    for n, w in list(matrices(s)):
        axis = 1 if s.attr(n, "transB", 0) else 0
        if n.op_type == "Conv" or w.ndim != 2 or w.shape[axis] % block:
            continue
        shape = w.shape[:axis] + (-1, block) + w.shape[axis + 1:]
        low, high = np.minimum(w.reshape(shape).min(axis + 1), 0), np.maximum(w.reshape(shape).max(axis + 1), 0)
        scale = ((high - low) / 15 + 1e-9).astype(np.float32)
        zero = np.clip(np.rint(-low / scale), 0, 15)
        q = np.clip(np.rint(w / np.repeat(scale, block, axis)) + np.repeat(zero, block, axis), 0, 15).astype(np.uint8)
        names = [s.fresh("stored"), s.fresh("middle")]
        for name, array in zip(names, (q, zero.astype(np.uint8))):
            s.graph.initializer.append(helper.make_tensor(name, TensorProto.UINT4, array.shape, array.reshape(-1).tolist()))
        s.before(n, 1, ("DequantizeLinear", [names[0], s.constant(scale, "scale"), names[1]], {"axis": axis, "block_size": block}))
    return done(model, s) if s.nodes("DequantizeLinear") else None


def weights_in_fp8(model, rng):
    """Weights of eight bits with an exponent, and a scale for each; of operator set 19."""
    model = model if model.opset >= 19 else converted_to(model, 19)
    if model is None:
        return None
    s = copy(model)
    for n, w in list(matrices(s)):
        scale = f32(np.abs(w).max() / 448)
        name = s.fresh("stored")
        s.graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT8E4M3FN, w.shape, (w / scale).reshape(-1).tolist()))
        s.before(n, 1, ("DequantizeLinear", [name, s.constant(scale, "scale")], {}))
    return done(model, s) if s.nodes("DequantizeLinear") else None


def powers_of_two(model, rng):
    """Every scale of a quantized model is rounded up to a power of two, as accelerators that shift want them."""
    s = copy(model)
    seen = {}
    for n in s.nodes("QuantizeLinear", "DequantizeLinear"):
        c = s.const(n.input[1])
        if c is None or s.const(n.input[0]) is not None:
            continue
        if n.input[1] not in seen:
            seen[n.input[1]] = s.constant(np.exp2(np.ceil(np.log2(c))).astype(np.float32), "shift")
        n.input[1] = seen[n.input[1]]
    return done(model, s)


# Of these, golden is the original's.
SAME = {"norms folded": norms_folded, "norms written out": norms_written_out, "activations written out": activations_written_out,
        "linear taken apart": linear_taken_apart, "linear joined": linear_joined, "factors folded": factors_folded, "names lost": names_lost,
        "another order": another_order, "moves that cancel": moves_that_cancel, "padding apart": padding_apart,
        "constant conditions": constant_conditions, "sequences": sequences, "weights in double": weights_in_double,
        "weights turned": weights_turned_at_run}
# Of these it is their own.
OTHER = {"uint4 weights": weights_in_bytes_with_middle, "fp8 weights": weights_in_fp8}

