"""Faults of exporters: each kind finds places in a model and changes one of them.

A kind is a function (graph, node, rng) -> Injected or None (it does not fit the node). `causes` are the names
in the table of causes (src/diagnose/proposals.inc) that mend it: several where the same change can be
told in several ways.
"""
import dataclasses

import numpy as np


@dataclasses.dataclass
class Injected:
    nodes: list           # labels of the nodes at fault; finding one of them is enough
    what: str
    causes: tuple
    mendable: bool = True  # the right numbers can be found: in the model, in a table, or by fitting


KINDS = {}


def kind(name, *causes, mendable=True):
    def register(function):
        KINDS[name] = (function, causes, mendable)
        return function
    return register


def inject(name, graph, node, rng):
    function, causes, mendable = KINDS[name]
    found = function(graph, node, rng)
    if found is None:
        return None
    what, *others = found if isinstance(found, tuple) else (found,)
    label = graph.label(node)
    return Injected([label, *others], f"{label}: {what}", causes, mendable)


def float_inputs(graph, node, least=2):
    """Inputs that are float constants of at least so many elements."""
    out = []
    for i, name in enumerate(node.input):
        array = graph.constant(name) if name else None
        if array is not None and array.dtype.kind == "f" and array.size >= least and array.size < 1 << 24:
            out.append((i, array))
    return out


def weights(graph, node):
    return [(i, a) for i, a in float_inputs(graph, node, 8) if a.ndim >= 2]


# ---- attributes -------------------------------------------------------------------------------------

@kind("epsilon", "epsilon", "fitted attribute")
def epsilon(graph, node, rng):
    now = graph.attribute(node, "epsilon")
    if node.op_type not in ("LayerNormalization", "BatchNormalization", "InstanceNormalization",
                            "GroupNormalization", "RMSNormalization", "LpNormalization"):
        return None
    now = 1e-5 if now is None else now
    value = float(rng.choice([v for v in (1e-12, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2) if abs(v - now) > 0.5 * now]))
    graph.set_attribute(node, "epsilon", value)
    return f"epsilon {value:g} instead of {now:g}"


@kind("epsilon constant", "scaled constant", "usual number", "epsilon")
def epsilon_constant(graph, node, rng):
    if node.op_type != "Add":
        return None
    for i, array in float_inputs(graph, node, 1):
        if array.size == 1 and 0 < abs(float(array.flat[0])) < 1e-2:
            factor = float(rng.choice([1e-3, 0.1, 10, 1e3]))
            graph.set_constant(node, i, (array * factor).astype(array.dtype))
            return f"constant {float(array.flat[0]):g} times {factor:g}"
    return None


@kind("alpha left out", "attribute", "fitted attribute")
def alpha_left_out(graph, node, rng):
    names = {"Elu": "alpha", "LeakyRelu": "alpha", "Selu": "alpha", "Celu": "alpha", "HardSigmoid": "alpha",
             "ThresholdedRelu": "alpha", "Gemm": "alpha"}
    name = names.get(node.op_type)
    if name is None:
        return None
    defaults = {"LeakyRelu": 0.01, "HardSigmoid": 0.2, "Selu": 1.67326}
    now = graph.attribute(node, name)
    if now is None or abs(now - defaults.get(node.op_type, 1.0)) < 1e-4:
        return None
    graph.drop_attribute(node, name)
    return f"{name} left out"


@kind("alpha", "attribute", "fitted attribute")
def alpha(graph, node, rng):
    defaults = {"Elu": 1.0, "LeakyRelu": 0.01, "HardSigmoid": 0.2, "Gemm": 1.0, "Celu": 1.0}
    if node.op_type not in defaults:
        return None
    name = "beta" if node.op_type == "Gemm" and len(node.input) > 2 and rng.integers(2) else "alpha"
    now = graph.attribute(node, name, 1.0 if name == "beta" else defaults[node.op_type])
    value = float(np.float32(now * rng.choice([0.5, 0.9, 1.1, 2.0])))
    graph.set_attribute(node, name, value)
    return f"{name} {value:g} instead of {now:g}"


@kind("axis", "axis", "numbers", "constant numbers")
def axis(graph, node, rng):
    known = {"Softmax": -1, "LogSoftmax": -1, "LayerNormalization": -1, "Concat": None, "Gather": 0, "Split": 0,
             "ArgMax": 0, "Flatten": 1}
    if node.op_type not in known:
        return None
    now = graph.attribute(node, "axis", known[node.op_type])
    if now is None:
        return None
    value = int(now) + int(rng.choice([-2, -1, 1, 2]))
    graph.set_attribute(node, "axis", value)
    return f"axis {value} instead of {now}"


@kind("reduced axes", "numbers", "constant numbers", "axis")
def reduced_axes(graph, node, rng):
    if not node.op_type.startswith("Reduce"):
        return None
    now = graph.attribute(node, "axes")
    array = graph.constant(node.input[1]) if len(node.input) > 1 else None
    if now is None and array is None:
        return None
    axes = list(now) if now is not None else [int(a) for a in np.atleast_1d(array)]
    step = int(rng.choice([-1, 1]))
    value = [a + step for a in axes]
    if now is not None:
        graph.set_attribute(node, "axes", value)
    else:
        graph.set_constant(node, 1, np.array(value, array.dtype).reshape(array.shape))
    return f"axes {value} instead of {axes}"


@kind("flag", "flag")
def flag(graph, node, rng):
    flags = {"Gemm": ["transA", "transB"], "AveragePool": ["count_include_pad", "ceil_mode"], "MaxPool": ["ceil_mode"],
             "CumSum": ["exclusive", "reverse"], "ReduceMean": ["noop_with_empty_axes"], "TopK": ["largest"],
             "ArgMax": ["select_last_index", "keepdims"], "LSTM": ["input_forget"], "GRU": ["linear_before_reset"],
             "IsInf": ["detect_negative"], "OneHot": []}
    names = flags.get(node.op_type)
    if not names:
        return None
    name = str(rng.choice(names))
    default = 1 if name in ("largest", "keepdims", "detect_negative") else 0
    now = graph.attribute(node, name, default)
    graph.set_attribute(node, name, 1 - int(now))
    return f"{name} {1 - int(now)} instead of {now}"


@kind("padding", "numbers", "mode", "constant numbers")
def padding(graph, node, rng):
    pads = graph.attribute(node, "pads")
    if node.op_type not in ("Conv", "MaxPool", "AveragePool", "ConvTranspose") or not pads or not any(pads):
        return None
    half = len(pads) // 2
    k = int(rng.integers(half))
    if pads[k] + pads[k + half] == 0:
        return None
    value = list(pads)
    step = 1 if value[k + half] > 0 else -1
    value[k] += step
    value[k + half] -= step
    graph.set_attribute(node, "pads", value)
    return f"pads {value} instead of {list(pads)}"


@kind("dilation", "numbers", "dilation")
def dilation(graph, node, rng):
    shape = graph.attribute(node, "kernel_shape")
    if node.op_type != "Conv" or not shape or min(shape) < 3:
        return None
    now = list(graph.attribute(node, "dilations", [1] * len(shape)))
    pads = list(graph.attribute(node, "pads", [0] * (2 * len(shape))))
    half = len(shape)
    new = [2 if d == 1 else 1 for d in now]
    for i in range(half):
        grow = (new[i] - now[i]) * (shape[i] - 1)
        if grow % 2 or pads[i] + grow // 2 < 0 or pads[i + half] + grow // 2 < 0:
            return None
        pads[i] += grow // 2
        pads[i + half] += grow // 2
    graph.set_attribute(node, "dilations", new)
    graph.set_attribute(node, "pads", pads)
    return f"dilations {new} instead of {now}"


@kind("permutation", "permutation")
def permutation(graph, node, rng):
    now = graph.attribute(node, "perm")
    if node.op_type != "Transpose" or not now or len(now) < 3:
        return None
    value = list(now)
    i, k = (int(x) for x in rng.choice(len(value), 2, replace=False))
    value[i], value[k] = value[k], value[i]
    graph.set_attribute(node, "perm", value)
    return f"perm {value} instead of {list(now)}"


@kind("mode", "mode")
def mode(graph, node, rng):
    choices = {"Resize": [("coordinate_transformation_mode", "half_pixel", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]),
                          ("nearest_mode", "round_prefer_floor", ["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"]),
                          ("mode", "nearest", ["nearest", "linear", "cubic"])],
               "Pad": [("mode", "constant", ["constant", "reflect", "edge"])],
               "Gelu": [("approximate", "none", ["none", "tanh"])],
               "DepthToSpace": [("mode", "DCR", ["DCR", "CRD"])],
               "GridSample": [("padding_mode", "zeros", ["zeros", "border", "reflection"])],
               "LSTM": [("direction", "forward", ["forward", "reverse"])]}
    if node.op_type not in choices:
        return None
    rows = choices[node.op_type]
    name, default, texts = rows[int(rng.integers(len(rows)))]
    now = graph.attribute(node, name, default.encode()).decode()
    if now not in texts:
        return None
    value = str(rng.choice([t for t in texts if t != now]))
    graph.set_attribute(node, name, value)
    return f"{name} '{value}' instead of '{now}'"


# ---- integers in constants ---------------------------------------------------------------------------

@kind("slice", "slice", "constant numbers", "numbers", "axis")
def off_by_one_slice(graph, node, rng):
    if node.op_type not in ("Slice", "Gather") or len(node.input) < 2:
        return None
    if node.op_type == "Gather":
        array = graph.constant(node.input[1])
        if array is None or array.dtype.kind != "i" or array.size != 1:
            return None
        value = array + array.dtype.type(1 if array.flat[0] == 0 else -1)
        graph.set_constant(node, 1, np.asarray(value, array.dtype))
        return f"index {value} instead of {array}"
    starts, ends = (graph.constant(node.input[i]) for i in (1, 2))
    if starts is None or starts.size > 8:
        return None
    step = int(rng.choice([-1, 1]))
    graph.set_constant(node, 1, (starts + step).astype(starts.dtype))
    both = ends is not None and abs(int(ends.flat[0])) < 1 << 30
    if both:
        graph.set_constant(node, 2, (ends + step).astype(ends.dtype))
    return f"starts {'and ends ' if both else ''}moved by {step}"


@kind("split sizes", "constant numbers", "numbers")
def split_sizes(graph, node, rng):
    if node.op_type != "Split" or len(node.input) < 2:
        return None
    sizes = graph.constant(node.input[1])
    if sizes is None or sizes.size < 2 or sizes[0] == sizes[1]:
        return None
    value = sizes.copy()
    value[0], value[1] = sizes[1], sizes[0]
    graph.set_constant(node, 1, value)
    return f"sizes {value} instead of {sizes}"


@kind("baked batch", "constant numbers", "numbers", "squeezed axes")
def baked_batch(graph, node, rng):
    if node.op_type != "Reshape":
        return None
    shape = graph.constant(node.input[1])
    if shape is None or shape.size < 2 or shape[0] not in (0, -1):
        return None
    value = shape.copy()
    if -1 in shape[1:]:
        value[0] = 1
    else:
        return None
    graph.set_constant(node, 1, value)
    return f"shape {value} instead of {shape}"


# ---- inputs -------------------------------------------------------------------------------------------

@kind("swapped inputs", "swapped inputs")
def swapped(graph, node, rng):
    if node.op_type not in ("Sub", "Div", "MatMul", "Pow", "Concat", "Greater", "Less"):
        if node.op_type != "Where":
            return None
        a, b = 1, 2
    else:
        a, b = (int(x) for x in sorted(rng.choice(len(node.input), 2, replace=False))) if len(node.input) > 1 else (0, 0)
    if a == b or node.input[a] == node.input[b]:
        return None
    node.input[a], node.input[b] = node.input[b], node.input[a]
    return f"inputs {a} and {b} exchanged"


@kind("broadcast", "broadcast")
def broadcast(graph, node, rng):
    if node.op_type not in ("Add", "Mul", "Sub", "Div"):
        return None
    for i, array in float_inputs(graph, node, 2):
        dims = [k for k, d in enumerate(array.shape) if d > 1]
        if len(dims) != 1 or array.ndim < 2:
            if array.ndim != 1:
                continue
            shape = (array.size, 1)
        else:
            at = dims[0]
            other = at + 1 if at + 1 < array.ndim else at - 1
            shape = list(array.shape)
            shape[at], shape[other] = 1, array.size
        graph.set_constant(node, i, array.reshape(shape))
        return f"'{node.input[i]}' of shape {tuple(shape)} instead of {array.shape}"
    return None


# ---- constants ------------------------------------------------------------------------------------------

@kind("scaled weight", "scaled constant", "usual number", "fitted attribute", "attribute")
def scaled(graph, node, rng):
    places = float_inputs(graph, node, 2)
    if not places:
        return None
    i, array = places[int(rng.integers(len(places)))]
    factor = float(rng.choice([0.5, 0.9, 0.99, 1.01, 1.1, 2.0]))
    graph.set_constant(node, i, (array * factor).astype(array.dtype))
    return f"'{node.input[i]}' times {factor:g}"


@kind("wrong scalar", "usual number", "scaled constant", "attribute", "fitted attribute")
def scalar(graph, node, rng):
    if node.op_type not in ("Mul", "Div", "Add", "Sub", "Pow", "Clip", "Max", "Min"):
        return None
    for i, array in float_inputs(graph, node, 1):
        x = float(array.flat[0])
        if array.size != 1 or x == 0 or not np.isfinite(x):
            continue
        value = x * float(rng.choice([0.5, 0.9, 1.1, 2.0]))
        if node.op_type == "Mul" and 0 < x < 1 and rng.integers(2):
            value = float(np.sqrt(x))
        graph.set_constant(node, i, np.full_like(array, value))
        return f"{value:.7g} instead of {x:.7g}"
    return None


@kind("transposed weight", "transposed weight")
def transposed(graph, node, rng):
    for i, array in weights(graph, node):
        pairs = [(a, b) for a in range(array.ndim) for b in range(a + 1, array.ndim)
                 if array.shape[a] == array.shape[b] > 1]
        if pairs:
            a, b = pairs[int(rng.integers(len(pairs)))]
            graph.set_constant(node, i, np.swapaxes(array, a, b).copy())
            return f"'{node.input[i]}' with dims {a} and {b} exchanged"
    return None


@kind("reversed weight", "reversed constant", "transposed weight")
def reversed_weight(graph, node, rng):
    places = weights(graph, node)
    if node.op_type not in ("Conv", "MatMul", "Gemm", "ConvTranspose") or not places:
        return None
    i, array = places[0]
    axes = [a for a in range(array.ndim) if array.shape[a] > 1]
    at = int(rng.choice(axes))
    graph.set_constant(node, i, np.flip(array, at).copy())
    return f"'{node.input[i]}' reversed along axis {at}"


def alike(graph, node, i, array):
    """Other constants of the same shape and type that are initializers, by name."""
    return [name for name, t in graph.initializers.items()
            if name != node.input[i] and tuple(t.dims) == array.shape and t.data_type == 1 and not graph.is_input(name)
            and len(graph.readers.get(name, [])) == 1]


def pick_alike(graph, node, rng):
    places = [(i, a, alike(graph, node, i, a)) for i, a in float_inputs(graph, node, 4)
              if node.input[i] in graph.initializers and len(graph.readers[node.input[i]]) == 1]
    places = [p for p in places if p[2]]
    if not places:
        return None
    i, array, names = places[int(rng.integers(len(places)))]
    return i, array, str(rng.choice(names))


@kind("exchanged weights", "exchanged constants", "swapped inputs")
def exchanged(graph, node, rng):
    found = pick_alike(graph, node, rng)
    if not found:
        return None
    i, array, other = found
    reader = graph.readers[other][0]
    k = list(reader.input).index(other)
    if reader is node and {i, k} == {0, 1} and node.op_type in ("Add", "Mul"):
        return None
    name = node.input[i]
    node.input[i], reader.input[k] = other, name
    return f"'{name}' and '{other}' exchanged", graph.label(reader)


@kind("shared weight", "another constant", "exchanged constants")
def shared(graph, node, rng):
    found = pick_alike(graph, node, rng)
    if not found:
        return None
    i, array, other = found
    name = node.input[i]
    node.input[i] = other
    return f"'{other}' in place of '{name}'"


@kind("stale row", "stale rows", mendable=False)
def stale_row(graph, node, rng):
    places = [(i, a) for i, a in float_inputs(graph, node, 4) if a.ndim and a.shape[0] > 1]
    if not places:
        return None
    i, array = places[int(rng.integers(len(places)))]
    k = int(rng.integers(array.shape[0]))
    value = array.copy()
    value[k] = array[k - 1]
    if np.array_equal(value, array):
        return None
    graph.set_constant(node, i, value)
    return f"row {k} of '{node.input[i]}' is the row before"


@kind("rounded weight", "rounded constant", mendable=False)
def rounded(graph, node, rng):
    places = weights(graph, node)
    if not places:
        return None
    i, array = places[int(rng.integers(len(places)))]
    if array.dtype != np.float32:
        return None
    if rng.integers(2):
        value, to = array.astype(np.float16).astype(np.float32), "fp16"
    else:
        value, to = (array.view(np.uint32) + 0x8000 & 0xffff0000).astype(np.uint32).view(np.float32), "bf16"
    if not np.isfinite(value).all() or np.array_equal(value, array):
        return None
    graph.set_constant(node, i, value)
    return f"'{node.input[i]}' rounded to {to}"


@kind("gate order", "gate order")
def gate_order(graph, node, rng):
    gates = {"LSTM": 4, "GRU": 3}.get(node.op_type)
    if gates is None:
        return None
    order = [0, 2, 3, 1] if gates == 4 else [1, 0, 2]
    arrays = {}
    for i, sets in ((1, 1), (2, 1), (3, 2)):
        if i < len(node.input) and node.input[i]:
            arrays[i] = (graph.constant(node.input[i]), sets)
    if any(a is None for a, _ in arrays.values()):
        return None
    for i, (array, sets) in arrays.items():
        blocks = array.reshape(array.shape[0], sets, gates, -1)
        graph.set_constant(node, i, blocks[:, :, order].reshape(array.shape))
    return f"gates in the order {order}"


# ---- operators --------------------------------------------------------------------------------------------

OTHERS = {"Add": ["Sub", "Mul"], "Sub": ["Add"], "Mul": ["Add", "Div"], "Div": ["Mul"], "Max": ["Min"], "Min": ["Max"],
          "Sigmoid": ["HardSigmoid", "Tanh"], "Tanh": ["Sigmoid", "Erf"], "Relu": ["Abs", "LeakyRelu", "Softplus"],
          "HardSwish": ["Mish"], "Erf": ["Tanh"], "ReduceMean": ["ReduceSum", "ReduceMax"], "MaxPool": ["AveragePool"],
          "AveragePool": ["MaxPool"], "GlobalAveragePool": ["GlobalMaxPool"], "Sin": ["Cos"], "Cos": ["Sin"],
          "Softmax": ["LogSoftmax"], "Floor": ["Round"], "Elu": ["Selu", "LeakyRelu"], "Softplus": ["Relu"],
          "LeakyRelu": ["Relu"], "Exp": ["Softplus"], "Greater": ["Less"]}


@kind("operator", "operator", "superfluous node", "attribute", "swapped inputs", "scaled constant", "usual number")
def operator(graph, node, rng):
    if node.op_type not in OTHERS or len(node.output) != 1:
        return None
    now, other = node.op_type, str(rng.choice(OTHERS[node.op_type]))
    if other == "Mish" and graph.opset < 18:
        return None
    if other in ("HardSigmoid", "Selu", "LeakyRelu"):
        graph.drop_attribute(node, "alpha")
    node.op_type = other
    return f"{other} in place of {now}"


LEFT_OUT = ("Relu", "Sigmoid", "Tanh", "Sqrt", "Abs", "HardSwish", "Erf", "Softplus", "Elu", "LeakyRelu", "Neg", "Exp",
            "Clip", "Floor", "Reciprocal", "Softmax", "Gelu", "Mish")


@kind("node left out", "operator", "missing node")
def left_out(graph, node, rng):
    if node.op_type not in LEFT_OUT:
        return None
    now = node.op_type
    node.op_type = "Identity"
    del node.attribute[:]
    del node.input[1:]
    return f"{now} left out"


@kind("superfluous node", "superfluous node", "operator")
def superfluous(graph, node, rng):
    if node.op_type not in ("Conv", "MatMul", "Gemm", "Add", "Mul", "LayerNormalization", "BatchNormalization"):
        return None
    op = str(rng.choice(["Relu", "Sigmoid", "Tanh", "Neg"]))
    if any(o.name == node.output[0] for o in graph.graph.output):
        return None
    return f"a {op} behind it", graph.insert_after(node, op)


# Operators that a kind takes at all; those that are not listed look at the node's constants.
OPERATORS = {"operator": tuple(OTHERS), "node left out": LEFT_OUT,
             "superfluous node": ("Conv", "MatMul", "Gemm", "Add", "Mul", "Normalization"),
             "epsilon": ("Normalization",), "epsilon constant": ("Add",), "alpha left out": ("Elu", "LeakyRelu", "Selu", "Celu", "HardSigmoid", "ThresholdedRelu", "Gemm"),
             "alpha": ("Elu", "LeakyRelu", "HardSigmoid", "Gemm", "Celu"), "axis": ("Softmax", "LayerNormalization", "Concat", "Gather", "Split", "ArgMax", "Flatten"),
             "reduced axes": ("Reduce",), "flag": ("Gemm", "Pool", "CumSum", "ReduceMean", "TopK", "ArgMax", "LSTM", "GRU", "IsInf"),
             "padding": ("Conv", "Pool"), "dilation": ("Conv",), "permutation": ("Transpose",),
             "mode": ("Resize", "Pad", "Gelu", "DepthToSpace", "GridSample", "LSTM"), "slice": ("Slice", "Gather"),
             "split sizes": ("Split",), "baked batch": ("Reshape",),
             "swapped inputs": ("Sub", "Div", "MatMul", "Pow", "Concat", "Greater", "Less", "Where"),
             "broadcast": ("Add", "Mul", "Sub", "Div"), "gate order": ("LSTM", "GRU"),
             "wrong scalar": ("Mul", "Div", "Add", "Sub", "Pow", "Clip", "Max", "Min")}


def may_fit(name, node):
    return name not in OPERATORS or any(part in node.op_type for part in OPERATORS[name])
