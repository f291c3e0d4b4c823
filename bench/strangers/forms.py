"""The same network in another form: by a version converter, with an exporter's leftovers, other types, weights in few bits."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from data import draw
from golden import Runner
from net import Model
from surgery import Surgery

FLOAT_WEIGHTS = ("Conv", "MatMul", "Gemm")


def copy(model, rng=None):
    """A surgeon on a copy; rng: with the values of a run, too."""
    proto = onnx.ModelProto.FromString(model.proto.SerializeToString())
    values = {}
    if rng is not None:
        feed = draw(model, rng)
        values = {**Runner(model.proto, every=True)(feed), **feed}
    return Surgery(proto, values, rng)


def done(model, s, opset=None):
    """The changed model, or None: there was nothing to change."""
    if s.proto.SerializeToString(deterministic=True) == model.proto.SerializeToString(deterministic=True):
        return None
    del s.proto.graph.value_info[:]
    onnx.checker.check_model(s.proto)
    return Model(model.name, model.style, opset or model.opset, model.batch, s.proto, model.inputs)


def converted(model, rng, up):
    """By onnx's converter to another operator set; None: it cannot."""
    choice = [v for v in ((18, 20, 21, 22, 23) if up else (9, 10, 11, 12, 13, 15, 17)) if (v > model.opset if up else v < model.opset)]
    for version in rng.permutation(choice):
        try:
            proto = version_converter.convert_version(model.proto, int(version))
            onnx.checker.check_model(proto)
            Runner(proto)
        except Exception:  # noqa: BLE001: the converter does not know an operator, or makes what does not run
            continue
        return Model(model.name, model.style, int(version), model.batch, proto, model.inputs)
    return None


def leftovers(model, rng):
    """Identities, dropouts that drop nothing, casts to the same type; nodes and weights that nobody reads."""
    s = copy(model, rng)
    floats = [o for n in s.graph.node for o in n.output if o in s.values and np.asarray(s.values[o]).dtype == np.float32 and n.op_type != "Constant"]
    for value in rng.permutation(floats)[:max(4, len(floats) // 6)]:
        kind = str(rng.choice(["Identity", "Dropout", "Cast"]))
        s.after(str(value), (kind, ["."], {"to": TensorProto.FLOAT} if kind == "Cast" else {}))
    for value in rng.permutation(floats)[:3]:
        s.insert(s.place(s.producer(str(value))) + 1, "Sigmoid", [str(value)], [s.fresh("unused")])
    s.constant(rng.standard_normal((3, 4)).astype(np.float32), "unused_weight")
    return done(model, s)


def weights_listed(model, rng):
    """As exporters write them that keep initializers as inputs."""
    s = copy(model)
    s.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in s.graph.initializer)
    return done(model, s)


def weights_as_nodes(model, rng):
    s = copy(model)
    for t in list(s.graph.initializer):
        s.graph.node.insert(0, helper.make_node("Constant", [], [t.name], name=f"Constant_of_{t.name}" if s.graph.node[0].name else "", value=t))
    del s.graph.initializer[:]
    return done(model, s)


def every_axis_open(model, rng):
    s = copy(model)
    for k, v in enumerate([*s.graph.input, *s.graph.output]):
        for i, d in enumerate(v.type.tensor_type.shape.dim):
            d.dim_param = f"{v.name}_{i}" if k < len(s.graph.input) else f"out{k}_{i}"
    return done(model, s)


def unusual_attributes(model, rng):
    """Negative axes, defaults left out, padding by name, factors that cancel out."""
    s = copy(model, rng)
    for n in s.graph.node:
        rank = len(s.shape(n.output[0])) if n.output and n.output[0] in s.values else 0
        if n.op_type in ("Concat", "Softmax") and rank:
            s.set_attr(n, "axis", s.attr(n, "axis", -1) % rank - rank)
        if n.op_type == "Transpose" and s.attr(n, "perm") == list(range(rank))[::-1]:
            s.set_attr(n, "perm", None)
        if n.op_type == "Conv":
            pads, k = list(s.attr(n, "pads", [])), s.attr(n, "kernel_shape")
            half = [d * (w // 2) for d, w in zip(s.attr(n, "dilations", [1] * len(k)), k)]
            same = all(w % 2 for w in k) and max(s.attr(n, "strides", [1])) == 1 and pads == half * 2
            if pads and (same or max(pads) == 0):
                s.set_attr(n, "pads", None)
                s.set_attr(n, "auto_pad", "VALID" if max(pads) == 0 else str(rng.choice(["SAME_UPPER", "SAME_LOWER"])))
            s.set_attr(n, "kernel_shape", None)
        if n.op_type == "Gemm" and len(n.input) > 2 and n.input[2] and all(s.const(x) is not None for x in n.input[1:]):
            n.input[1], n.input[2] = s.constant(s.const(n.input[1]) * np.float32(2)), s.constant(s.const(n.input[2]) * np.float32(0.25))
            s.set_attr(n, "alpha", 0.5)
            s.set_attr(n, "beta", 4.0)
        if n.op_type == "Relu" and rng.random() < 0.5:
            n.op_type = "Max"
            n.input.append(s.constant(np.float32(0), "zero"))
        if n.op_type == "Sub" and s.const(n.input[1]) is not None and s.const(n.input[1]).dtype == np.float32:
            n.op_type, n.input[1] = "Add", s.constant(-s.const(n.input[1]))  # under a new name: golden knows the old one
    return done(model, s)


def local_functions(model, rng):
    """Activations as functions of the model's own."""
    s, kinds = copy(model), ("Relu", "Tanh", "Sigmoid", "Erf", "Sqrt", "Exp")
    present = [k for k in kinds if s.nodes(k)]
    if not present:
        return None
    opset = helper.make_opsetid("", model.opset)
    for n in s.nodes(*present):
        n.domain, n.op_type = "local", "my_" + n.op_type
    s.proto.functions.extend(helper.make_function("local", "my_" + k, ["x"], ["y"], [helper.make_node(k, ["x"], ["y"])], [opset]) for k in present)
    s.proto.opset_import.append(helper.make_opsetid("local", 1))
    s.proto.ir_version = max(s.proto.ir_version, 8)
    return done(model, s)


def products_in_double(model, rng):
    """Some products are made in float64, with casts around them."""
    s = copy(model, rng)
    nodes = [n.output[0] for n in s.nodes("MatMul", "Gemm")]
    for value in rng.permutation(nodes)[:max(1, len(nodes) // 3)]:
        node = s.producer(str(value))
        for i in range(len(node.input)):
            if node.input[i]:
                node = s.before(node, i, ("Cast", ["."], {"to": TensorProto.DOUBLE}))[-1]
        s.after(str(value), ("Cast", ["."], {"to": TensorProto.FLOAT}))
    return done(model, s) if nodes else None


def stored_in_16_bits(model, rng, brain):
    """Weights of half precision, or of the upper half of a float, that the graph casts."""
    s = copy(model)
    for t in list(s.graph.initializer):
        w = numpy_helper.to_array(t)
        if w.dtype != np.float32 or w.ndim < 2:
            continue
        if brain:
            new = TensorProto(name=t.name + "_16", data_type=TensorProto.BFLOAT16, dims=w.shape,
                              raw_data=((np.ascontiguousarray(w).view(np.uint32) + 0x8000) >> 16).astype(np.uint16).tobytes())
        else:
            new = numpy_helper.from_array(w.astype(np.float16), t.name + "_16")
        s.graph.node.insert(0, helper.make_node("Cast", [new.name], [t.name], name=f"Cast_of_{t.name}" if s.graph.node[-1].name else "", to=TensorProto.FLOAT))
        t.CopyFrom(new)
    return done(model, s)


def matrices(s, least=2):
    for n in s.nodes(*FLOAT_WEIGHTS):
        w = s.const(n.input[1])
        if w is not None and w.dtype == np.float32 and w.ndim >= least and w.size > 16 and n.input[1] in s.initializers:
            yield n, w


def weights_in_8_bits(model, rng):
    """Only weights, a scale for each channel of what is made; activations stay as they are."""
    s = copy(model)
    for n, w in list(matrices(s)):
        axis = 0 if n.op_type == "Conv" or s.attr(n, "transB", 0) else w.ndim - 1
        if model.opset < 13:
            axis = None
        other = None if axis is None else tuple(i for i in range(w.ndim) if i != axis)
        scale = (np.abs(w).max(other, keepdims=True) / 127 + 1e-9).astype(np.float32)
        q = np.rint(w / scale).astype(np.int8)
        scale = scale.reshape(()) if axis is None else scale.reshape(-1)
        s.before(n, 1, ("DequantizeLinear", [s.constant(q, "stored"), s.constant(scale, "scale"), s.constant(np.zeros(scale.shape, np.int8), "zero")],
                        {} if axis is None else {"axis": axis}))
    return done(model, s) if s.nodes("DequantizeLinear") else None


def weights_in_4_bits(model, rng, block=4):
    """Matrices in four bits, a scale for each few rows; of operator set 21."""
    model = model if model.opset >= 21 else converted_to(model, 21)
    if model is None:
        return None
    s = copy(model)
    for n, w in list(matrices(s)):
        axis = 1 if s.attr(n, "transB", 0) else 0
        if n.op_type == "Conv" or w.ndim != 2 or w.shape[axis] % block:
            continue
        shape = w.shape[:axis] + (-1, block) + w.shape[axis + 1:]
        scale = (np.abs(w.reshape(shape)).max(axis + 1) / 7 + 1e-9).astype(np.float32)
        q = np.clip(np.rint(w / np.repeat(scale, block, axis)), -8, 7).astype(np.int8)
        name = s.fresh("stored")
        s.graph.initializer.append(helper.make_tensor(name, TensorProto.INT4, q.shape, q.reshape(-1).tolist()))
        s.before(n, 1, ("DequantizeLinear", [name, s.constant(scale, "scale")], {"axis": axis, "block_size": block}))
    return done(model, s) if s.nodes("DequantizeLinear") else None


def converted_to(model, version):
    try:
        return Model(model.name, model.style, version, model.batch, version_converter.convert_version(model.proto, version), model.inputs)
    except Exception:  # noqa: BLE001: an operator that the converter does not know
        return None


# Of these, golden is the original's.
SAME = {"upgraded": lambda m, rng: converted(m, rng, True), "downgraded": lambda m, rng: converted(m, rng, False), "leftovers": leftovers,
        "weights listed": weights_listed, "weights as nodes": weights_as_nodes, "open": every_axis_open, "unusual": unusual_attributes,
        "functions": local_functions, "double": products_in_double}
# Of these it may be their own.
OTHER = {"stored half": lambda m, rng: stored_in_16_bits(m, rng, False), "stored brain": lambda m, rng: stored_in_16_bits(m, rng, True),
         "int8 weights": weights_in_8_bits, "int4 weights": weights_in_4_bits}
