"""Eighth generation of healthy models: the same network once more in another form, exact or but for last bits."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from forms import copy, done
from forms4 import f32, reduced, replaced
from forms6 import attributes, floats
from forms7 import each
from faults7_activations import axes_of
from net import Model

LAST = ("Relu", "Tanh", "Sigmoid", "Elu", "LeakyRelu", "Softplus", "Identity")  # number by number


def last_axis(s, n):
    rank = len(s.shape(n.input[0]))
    return s.attr(n, "axis", -1 if s.opset >= 13 else 1) in (-1, rank - 1)


def along(s, n):
    return s.attr(n, "axis", -1 if s.opset >= 13 else 1)


def sum_over(s, x, axis):
    return reduced(s, "ReduceSum", x, [axis])


shares_of_matrices = each(("Softmax",), lambda s, n: [("Reshape", [".", s.constant(np.array([-1, s.shape(n.input[0])[-1]]), "rows")], {}), ("Softmax", [0], {"axis": 1}),
                                                      ("Shape", ["."], {}), ("Reshape", [1, 2], {})], lambda s, n: last_axis(s, n) and len(s.shape(n.input[0])) > 2)
shares_without_the_largest = each(("Softmax",), lambda s, n: [("Exp", ["."], {}), sum_over(s, 0, along(s, n)), ("Div", [0, 1], {})],
                                  lambda s, n: last_axis(s, n) and np.max(s.values[n.input[0]]) < 15 and np.min(np.max(s.values[n.input[0]], -1)) > -15)
shares_by_logarithms = each(("Softmax",), lambda s, n: [("LogSoftmax", ["."], {"axis": along(s, n)}), ("Exp", [0], {})])
above_as_not_below = each(("Greater",), lambda s, n: [("LessOrEqual", [".", n.input[1]], {}), ("Not", [0], {})], lambda s, n: s.opset >= 12)
comparisons_turned = each(("Greater", "Less"), lambda s, n: [("Less" if n.op_type == "Greater" else "Greater", [n.input[1], "."], {})])
sums_turned_around = each(("Add", "Mul"), lambda s, n: [(n.op_type, [n.input[1], "."], {})])
factors_in_two = each(("Mul",), lambda s, n: [("Mul", [".", s.constant(f32(0.25), "quarter")], {}), ("Mul", [0, s.constant(f32(4 * s.const(n.input[1])), "four_times")], {})],
                      lambda s, n: s.const(n.input[1]) is not None and 1e-30 < np.abs(s.const(n.input[1])).max() < 1e30)
functions_in_double = each(("Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Erf", "Sin", "Cos"),
                           lambda s, n: [("Cast", ["."], {"to": TensorProto.DOUBLE}), (n.op_type, [0], attributes(s, n)), ("Cast", [1], {"to": TensorProto.FLOAT})],
                           lambda s, n: n.op_type not in ("Erf",))
norms_as_instances = each(("LayerNormalization",), lambda s, n: [
    ("InstanceNormalization", [".", s.constant(f32(np.ones(s.shape(n.input[0])[1])), "ones"), s.constant(f32(np.zeros(s.shape(n.input[0])[1])), "zeros")],
     {"epsilon": s.attr(n, "epsilon", 1e-5)}), ("Mul", [0, n.input[1]], {}), *([("Add", [1, n.input[2]], {})] if len(n.input) > 2 and n.input[2] else [])],
    lambda s, n: len(s.shape(n.input[0])) == 3 and s.attr(n, "axis", -1) in (-1, 2))


def ids_by_floats(model, rng):
    """Old exporters' places are floats, which are made whole numbers again where they are read."""
    s = copy(model, rng)
    for n in list(s.nodes("Gather", "GatherElements", "OneHot")):
        i, places = (0 if n.op_type == "OneHot" else 1), None
        places = s.values.get(n.input[i])
        if places is not None and s.const(n.input[i]) is None and np.size(places) and places.dtype == np.int64 and np.abs(places).max() < 1 << 23:
            s.before(n, i, ("Cast", ["."], {"to": TensorProto.FLOAT}), ("Cast", ["."], {"to": TensorProto.INT64}))
    return done(model, s)


def look_ups_by_coordinates(model, rng):
    s = copy(model, rng)
    for n in list(s.nodes("Gather")):
        places = s.values.get(n.input[1])
        if places is None or s.attr(n, "axis", 0) or s.const(n.input[1]) is not None or s.const(n.input[0]) is None or not np.ndim(places):
            continue
        axis = ([s.constant(np.array([np.ndim(places)]))], {}) if s.opset >= 13 else ([], {"axes": [np.ndim(places)]})
        out, book, at = n.output[0], n.input[0], s.place(n)
        s.graph.node.remove(n)
        wide = s.fresh("coordinates")
        s.insert(at, "Unsqueeze", [n.input[1], *axis[0]], [wide], **axis[1])
        s.insert(at + 1, "GatherND", [book, wide], [out])
    return done(model, s)


def sums_regrouped(model, rng):
    """The last two of three are added first."""
    s = copy(model, rng)
    for n in list(s.nodes("Add")):
        first = s.made_by(n.input[0], "Add")
        if first is None or len(s.consumers(first.output[0])) > 1 or s.is_output(first.output[0]) or not floats(s, n.input[0]):
            continue
        both = s.fresh("last_two")
        a, b, c = *first.input, n.input[1]
        s.insert(s.place(n), "Add", [b, c], [both])
        n = s.producer(n.output[0])
        n.input[0], n.input[1] = a, both
        s.graph.node.remove(first)
    return done(model, s)


def short_constants(model, rng):
    """Single numbers and rows of them as value_float, value_ints and the like."""
    if model.opset < 12:
        return None
    s = copy(model)
    kinds = {("f", 0): "value_float", ("f", 1): "value_floats", ("i", 0): "value_int", ("i", 1): "value_ints"}
    short = lambda a: kinds.get((a.dtype.kind, a.ndim)) if a.dtype in (np.float32, np.int64) and a.size else None  # noqa: E731
    for n in s.nodes("Constant"):
        a = s.attr(n, "value")
        a = numpy_helper.to_array(a) if a is not None else None
        if a is not None and short(a):
            del n.attribute[:]
            n.attribute.append(helper.make_attribute(short(a), a.tolist()))
    for t in list(s.graph.initializer):
        a = numpy_helper.to_array(t)
        if short(a) and a.size < 9:
            s.graph.initializer.remove(t)
            s.graph.node.insert(0, helper.make_node("Constant", [], [t.name], **{short(a): a.tolist()}))
    return done(model, s)


def recurrent_backwards(model, rng):
    """Forwards over x is backwards over x turned around."""
    s = copy(model, rng)
    for n in list(s.nodes("LSTM", "GRU", "RNN")):
        if s.attr(n, "direction", "forward") != "forward" or len(n.input) > 4 and n.input[4]:
            continue
        turn = lambda: [s.constant(np.array([v])) for v in (-1, -2 ** 31, 0, -1)]  # noqa: E731
        s.before(n, 0, ("Slice", [".", *turn()], {}))
        n = s.producer(n.output[0] or n.output[1])
        s.set_attr(n, "direction", "reverse")
        if n.output[0]:
            s.after(n.output[0], ("Slice", [".", *turn()], {}))
    return done(model, s)


def units_in_another_order(model, rng):
    """What stands between two products, in another order, in both."""
    s = copy(model, rng)
    side = lambda n, first: (0 if s.attr(n, "transB", 0) else 1) if first else (1 if s.attr(n, "transB", 0) else 0)  # noqa: E731
    for n in list(s.nodes("MatMul", "Gemm")):
        w = s.const(n.input[1])
        if w is None or w.ndim != 2:
            continue
        units, value, shifts, last = w.shape[side(n, True)], n.output[0], ([n] if n.op_type == "Gemm" and len(n.input) > 2 and n.input[2] else []), None
        while last is None:
            readers = s.consumers(value)
            if len(readers) != 1 or s.is_output(value):
                break
            r = readers[0]
            if r.op_type in ("MatMul", "Gemm") and r.input[0] == value and s.const(r.input[1]) is not None and s.const(r.input[1]).ndim == 2:
                last = r
            elif r.op_type in LAST or r.op_type == "Add" and any(s.const(x) is not None and s.const(x).shape == (units,) for x in r.input):
                shifts += [r] if r.op_type == "Add" else []
                value = r.output[0]
            else:
                break
        if last is None:
            continue
        order = rng.permutation(units)
        s.set_const(n, 1, np.take(w, order, side(n, True)))
        for r in shifts:
            i = 2 if r.op_type == "Gemm" else next(i for i, x in enumerate(r.input) if s.const(x) is not None)
            if s.const(r.input[i]).shape == (units,):
                s.set_const(r, i, s.const(r.input[i])[order])
        s.set_const(last, 1, np.take(s.const(last.input[1]), order, side(last, False)))
    return done(model, s)


def one_round_of_a_loop(model, rng):
    """All of the network as the body of a loop that turns once, as where steps of a sampler or of a decoder were traced."""
    proto = onnx.ModelProto.FromString(model.proto.SerializeToString())
    g = proto.graph
    outs = [o.name for o in g.output]
    inner = helper.make_graph(list(g.node), "step", [helper.make_tensor_value_info("i_step", TensorProto.INT64, []), helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])],
                              [helper.make_tensor_value_info("go_on_still", TensorProto.BOOL, []), *[onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in g.output]])
    inner.node.append(helper.make_node("Identity", ["go_on"], ["go_on_still"]))
    stacked, axes = [f"{o}_of_rounds" for o in outs], {} if model.opset >= 13 else {"axes": [0]}
    for n in inner.node:
        for names in (n.input, n.output):
            names[:] = [f"{x}_inside" if x in outs else x for x in names]
    for o in inner.output[1:]:
        o.name += "_inside"
    del g.node[:]
    del g.value_info[:]
    g.initializer.extend([numpy_helper.from_array(np.int64(1), "rounds_1"), numpy_helper.from_array(np.array(True), "start_1"), numpy_helper.from_array(np.array([0]), "axis_0")])
    g.node.append(helper.make_node("Loop", ["rounds_1", "start_1"], stacked, body=inner, name="steps"))
    for a, b in zip(stacked, outs):
        g.node.append(helper.make_node("Squeeze", [a] if axes else [a, "axis_0"], [b], name=f"{b}/squeeze", **axes))
    onnx.checker.check_model(proto)
    return Model(model.name, model.style, model.opset, model.batch, proto, model.inputs)


def names_in_other_letters(model, rng):
    """Names of values, weights and nodes with blanks, accents and other alphabets."""
    s = copy(model)
    ends = {v.name for v in (*s.graph.input, *s.graph.output)}
    tails, named = ("слой", "層", " – couche n°", "\u03b1/\u03b2", "@[0]", "'s \"x\""), {}
    new = lambda x: x if not x or x in ends or inner_names(s) & {x} else named.setdefault(x, f"{x} {tails[len(named) % len(tails)]} {len(named)}")  # noqa: E731
    for n in s.graph.node:
        n.input[:], n.output[:] = [new(x) for x in n.input], [new(x) for x in n.output]
        n.name = n.name and f"{n.name} {tails[len(n.op_type) % len(tails)]}"
    for t in s.graph.initializer:
        t.name = new(t.name)
    return done(model, s)


def inner_names(s):
    """What subgraphs read."""
    return {x for n in s.graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH for m in a.g.node for x in m.input}


def weights_as_numbers(model, rng):
    """Not in raw bytes, but as lists of numbers, as protobuf's users write them by hand."""
    s = copy(model)
    for t in s.graph.initializer:
        a = numpy_helper.to_array(t)
        if a.dtype in (np.float32, np.int64):
            t.CopyFrom(helper.make_tensor(t.name, t.data_type, a.shape, a.reshape(-1).tolist()))
    return done(model, s)


def notes_of_tools(model, rng):
    """Texts, authors, metadata, sets of operators and functions that nobody needs."""
    s = copy(model)
    s.proto.doc_string, s.proto.domain, s.proto.model_version = "made at night\n\n\ttwice", "org.example", 7
    s.proto.metadata_props.add(key="stride", value="32")
    s.proto.metadata_props.add(key="names", value="{0: 'a', 1: 'b'}")
    for domain in ("ai.onnx.ml", "com.microsoft", "org.example.unused"):
        s.proto.opset_import.add(domain=domain, version=1)
    for k, n in enumerate(s.graph.node):
        n.doc_string = f'File "model.py", line {k}, in forward'
    s.graph.initializer.append(numpy_helper.from_array(f32(rng.standard_normal((3, 2))), "num_batches_tracked_x"))
    return done(model, s)


def reductions_one_by_one(model, rng):
    """Over two axes: over one, then over the other."""
    s = copy(model, rng)
    for n in list(s.nodes("ReduceSum", "ReduceMean", "ReduceMax")):
        axes = axes_of(s, n)
        if axes is None or len(axes) < 2 or not floats(s, n.input[0]):
            continue
        axes, keep = sorted((int(a) % len(s.shape(n.input[0])) for a in axes), reverse=True), s.attr(n, "keepdims", 1)
        steps = []
        for k, a in enumerate(axes):
            kind, given, more = reduced(s, n.op_type, k - 1 if k else ".", [a])
            steps.append((kind, given, {**more, "keepdims": keep}))
        replaced(s, n, steps)
    return done(model, s)


def joined_with_nothing(model, rng):
    """Values are joined with a constant of no elements, as where a cache is empty."""
    s = copy(model, rng)
    chosen = [o for n in s.graph.node for o in n.output if o in s.values and floats(s, o) and np.ndim(s.values[o]) > 1 and n.op_type not in ("Constant", "Loop", "Scan")]
    for value in rng.permutation(chosen)[:4]:
        shape = list(np.shape(s.values[str(value)]))
        if model.batch == "N" and len(shape) < 2 or 0 in shape:
            continue
        if model.batch == "N" and shape[0] == 2 or model.batch != "N":
            axis = len(shape) - 1 if model.batch != "N" else 0
            shape[axis] = 0
            s.after(str(value), ("Concat", [".", s.constant(np.zeros(shape, np.float32), "nothing")], {"axis": axis}))
    return done(model, s)


SAME = {"shares of matrices": shares_of_matrices, "shares without the largest": shares_without_the_largest, "shares by exponentials of logarithms": shares_by_logarithms,
        "above as not below": above_as_not_below, "comparisons turned around": comparisons_turned, "sums turned around": sums_turned_around, "factors in two": factors_in_two,
        "functions in double precision": functions_in_double, "norms as instances": norms_as_instances, "places by floats": ids_by_floats,
        "look-ups by coordinates": look_ups_by_coordinates, "sums regrouped": sums_regrouped, "short constants": short_constants, "recurrent layers backwards": recurrent_backwards,
        "units in another order": units_in_another_order, "one round of a loop": one_round_of_a_loop, "names in other letters": names_in_other_letters,
        "weights as lists of numbers": weights_as_numbers, "notes of tools": notes_of_tools, "reductions one by one": reductions_one_by_one, "joined with nothing": joined_with_nothing}
