"""Fourth generation: wrong edges, wrong axes, and nodes that were lost or exchanged."""
import numpy as np
from onnx import TensorProto

from faults2_weights import last_layers
from surgery import scalar

MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity")


def computed(s, value):
    """Whether a value is a number that depends on the input."""
    x = s.values.get(value)
    return x is not None and np.asarray(x).dtype == np.float32 and s.const(value) is None


def operands_swapped(s):
    """a - b as b - a, a / b as b / a."""
    def fits(n):
        return all(computed(s, x) or scalar(s, x) is not None for x in n.input) and any(computed(s, x) for x in n.input)
    node = s.pick(("Sub", "Div", "Pow"), fits)
    if node is None:
        return None
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return [node]


def scalar_as_integer(s):
    """A factor took the type of whole numbers."""
    def sites():
        for n in s.nodes("Mul", "Div", "Add", "Sub"):
            for i in (0, 1):
                c = scalar(s, n.input[i])
                if c is not None and c != int(c) and abs(c) < 1e4 and not (n.op_type == "Div" and int(c) == 0) and computed(s, n.input[1 - i]):
                    yield n, i, c
    site = s.choose([x for x in sites() if abs(x[2]) > 1e-3])
    return s.set_const(site[0], site[1], np.float32(int(site[2])).reshape(s.const(site[0].input[site[1]]).shape)) if site else None


def transposed_by_reshape(s):
    """The right shape, the wrong order."""
    def fits(n):
        shape = s.shape(n.input[0])
        return computed(s, n.input[0]) and sum(d > 1 for d in shape) > 1 and s.shape(n.output[0]) != () and \
            not np.array_equal(np.reshape(s.values[n.input[0]], s.shape(n.output[0])), s.values[n.output[0]])
    node = s.pick("Transpose", fits)
    if node is None:
        return None
    shape = list(s.shape(node.output[0]))
    perm = s.attr(node, "perm")
    if 0 in perm:  # the batch stays open, wherever it goes
        shape[perm.index(0)] = -1
    name = s.constant(np.array(shape, np.int64), "shape")
    node.op_type = "Reshape"
    s.set_attr(node, "perm", None)
    node.input.append(name)
    return [node]


def older_value(s):
    """A node reads what an earlier block gave, which has the same shape."""
    order = {o: k for k, n in enumerate(s.graph.node) for o in n.output}
    sites = []
    for n in s.nodes("Conv", "MatMul", "Gemm", "Add", "Concat", "Mul", "LayerNormalization", "BatchNormalization", "ReduceMean", "GlobalAveragePool"):
        for i, x in enumerate(n.input):
            if not x or not computed(s, x) or len(s.shape(x)) < 2 or x not in order:
                continue
            older = [y for y in s.values if y in order and order[y] < order[x] and y not in n.input and computed(s, y) and s.shape(y) == s.shape(x)]
            sites += [(n, i, y) for y in older]
    site = s.choose(sites)
    if site is None:
        return None
    site[0].input[site[1]] = site[2]
    return [site[0]]


def division_as_multiplication(s):
    """By a number, the other way."""
    def fits(n):
        c = scalar(s, n.input[1])
        return c is not None and computed(s, n.input[0]) and 0.01 < abs(c) < 100 and abs(abs(c) - 1) > 0.05
    node = s.pick(("Div", "Mul"), fits)
    if node is None:
        return None
    node.op_type = {"Div": "Mul", "Mul": "Div"}[node.op_type]
    return [node]


def reduction_axes_lost(s):
    """All axes are reduced; the result is broadcast."""
    def fits(n):
        return s.attr(n, "keepdims", 1) == 1 and computed(s, n.input[0]) and 1 < np.size(s.values[n.output[0]]) < np.size(s.values[n.input[0]])
    node = s.pick(("ReduceMean", "ReduceSum", "ReduceMax"), fits)
    if node is None:
        return None
    if len(node.input) > 1:
        del node.input[1:]
    s.set_attr(node, "axes", None)
    return [node]


def sum_reversed(s):
    node = s.pick("CumSum")
    if node is None:
        return None
    s.set_attr(node, "reverse", 1 - s.attr(node, "reverse", 0))
    return [node]


def concat_axis(s):
    """Side by side, where one after the other was meant; what follows has room for both."""
    def fits(n):
        shapes = {s.shape(x) for x in n.input}
        behind = s.consumers(n.output[0])
        return len(shapes) == 1 and len(n.input) > 1 and len(next(iter(shapes))) > 2 and all(computed(s, x) for x in n.input) and \
            all(b.op_type in (*MOVES, "ReduceMean", "ReduceSum", "GlobalAveragePool") for b in behind) and behind
    node = s.pick("Concat", fits)
    if node is None:
        return None
    rank = len(s.shape(node.input[0]))
    axis = s.attr(node, "axis") % rank
    s.set_attr(node, "axis", int(s.rng.choice([a for a in range(1, rank) if a != axis])))
    return [node]


def third_summand_lost(s):
    node = s.pick(("Sum", "Max", "Min", "Mean"), lambda n: len(n.input) > 2)
    if node is None:
        return None
    del node.input[2:]
    return [node]


def first_row_for_all(s):
    """Everyone gets what the first of the batch has."""
    batch = s.shape(s.graph.input[0].name)[0] if s.graph.input and s.shape(s.graph.input[0].name) else 1

    def fits(n):
        x = n.output[0]
        return batch > 1 and computed(s, x) and len(s.shape(x)) > 1 and s.shape(x)[0] == batch and s.consumers(x) and \
            n.op_type not in ("Constant", "Shape")
    node = s.choose([n for n in s.graph.node if n.output and fits(n)])
    if node is None:
        return None
    value = node.output[0]
    ones = [1] * len(s.shape(value))
    cut = ("Slice", [".", s.constant(np.array([0])), s.constant(np.array([1])), s.constant(np.array([0]))], {})
    if s.opset < 10:
        return None
    name = s.graph.input[0].name
    whole = s.fresh("batch")
    made = s.after(value, cut, ("Expand", [".", whole], {}))
    at = s.place(made[0])
    shape = s.insert(at, "Shape", [name], [s.fresh("shape")])
    first = s.insert(at + 1, "Slice", [shape.output[0], s.constant(np.array([0])), s.constant(np.array([1]))], [s.fresh("first")])
    s.insert(at + 2, "Concat", [first.output[0], s.constant(np.array(ones[1:]))], [whole], axis=0)
    return made


def constants_merged(s):
    """Two numbers of one shape are taken for the same."""
    sites = [(n, i, s.const(n.input[i])) for n in s.nodes("Mul", "Div", "Add", "Sub", "Pow") for i in (0, 1)
             if scalar(s, n.input[i]) is not None and computed(s, n.input[1 - i])]
    pair = s.choose([(a, b) for a in sites for b in sites if a[0] is not b[0] and a[2].shape == b[2].shape and a[2].item() != b[2].item()
                     and 0 < abs(b[2].item()) < 1e3])
    return s.set_const(pair[0][0], pair[0][1], pair[1][2]) if pair else None


def gemm_factor_lost(s):
    node = s.pick("Gemm", lambda n: s.attr(n, "alpha", 1.0) != 1)
    if node is None:
        return None
    s.set_attr(node, "alpha", None)
    return [node]


def score_function_added(s):
    """A sigmoid, or a softmax, where scores were to stay what they are."""
    def plain(o):
        p = s.producer(o.name)
        return p is not None and p.op_type not in ("Sigmoid", "Softmax", "Concat") and computed(s, o.name) and len(s.shape(o.name)) > 1 and s.shape(o.name)[-1] > 1
    out = s.choose([o for o in s.graph.output if plain(o)])
    if out is None:
        return None
    return s.after(out.name, (str(s.rng.choice(["Sigmoid", "Softmax"])), ["."], {}))


def softmax_lost(s):
    node = s.pick("Softmax", lambda n: s.is_output(n.output[0]) or any(b.op_type in (*MOVES, "Slice") for b in s.consumers(n.output[0])))
    return s.bypass(node, node.input[0]) if node is not None else None


def many_labels(s):
    """Of several that exclude each other each has a chance of its own."""
    node = s.pick("Softmax", lambda n: s.is_output(n.output[0]))
    if node is None:
        return None
    node.op_type = "Sigmoid"
    s.set_attr(node, "axis", None)
    return [node]


def temperature_lost(s):
    node = s.pick(("Div", "Mul"), lambda n: scalar(s, n.input[1]) is not None and any(b.op_type == "Softmax" for b in s.consumers(n.output[0]))
                  and len(s.shape(n.output[0])) < 4)
    return s.bypass(node, node.input[0]) if node is not None else None


def pads_interleaved(s):
    """Begin and end of one axis, then of the next."""
    def fits(n):
        p = s.attr(n, "pads", [])
        return len(p) == 4 and list(p) != [p[0], p[2], p[1], p[3]]
    node = s.pick(("Conv", "MaxPool", "AveragePool"), fits)
    if node is None:
        return None
    p = s.attr(node, "pads")
    s.set_attr(node, "pads", [p[0], p[2], p[1], p[3]])
    return [node]


def input_channels_reversed(s):
    """The first layer's weights were turned for images of the other order of colours."""
    names = {i.name for i in s.graph.input}
    near = set(names)
    for n in s.graph.node:
        if n.op_type in (*MOVES, "Sub", "Div", "Mul", "Add") and n.input[0] in near:
            near.add(n.output[0])

    def fits(n):
        w = s.const(n.input[1])
        return n.input[0] in near and w is not None and w.ndim == 4 and w.shape[1] == 3
    node = s.pick("Conv", fits)
    return s.set_const(node, 1, np.ascontiguousarray(s.const(node.input[1])[:, ::-1])) if node is not None else None


def scaled_twice(s):
    """What prepares the input is done by the caller, too."""
    names = {i.name for i in s.graph.input}
    sites = [n for n in s.nodes("Div", "Mul") if n.input[0] in names and s.const(n.input[1]) is not None
             and not (n.op_type == "Mul" and np.max(s.const(n.input[1])) > 5)]
    sites += [n for n in s.nodes("Div", "Mul") if s.const(n.input[1]) is not None and s.made_by(n.input[0], "Sub") is not None
              and s.producer(n.input[0]).input[0] in names]
    node = s.choose(sites)
    if node is None:
        return None
    first = s.made_by(node.input[0], "Sub")
    steps = [("Sub", [".", first.input[1]], {})] if first is not None else []
    return s.after(node.output[0], *steps, (node.op_type, [".", node.input[1]], {}))


def classes_as_text(s):
    """Labels in the order of their names: 10 before 2."""
    site = s.choose([x for x in last_layers(s) if s.shape(x[0].output[0])[-1] > 10])
    if site is None:
        return None
    node, add = site
    w = s.const(node.input[1])
    axis = 0 if s.attr(node, "transB", 0) else 1
    order = sorted(range(w.shape[axis]), key=str)
    made = s.set_const(node, 1, np.take(w, order, axis))
    if node.op_type == "Gemm" and len(node.input) > 2 and node.input[2]:
        made += s.set_const(node, 2, s.const(node.input[2])[order])
    if add is not None:
        i = 0 if s.const(add.input[0]) is not None else 1
        made += s.set_const(add, i, s.const(add.input[i])[..., order])
    return made


def rounded_to_whole(s):
    """Places became whole numbers on the way."""
    def fits(n):
        x = n.output[0]
        joined = n.op_type == "Concat" and s.attr(n, "axis") in (-1, len(s.shape(x)) - 1)
        return computed(s, x) and len(s.shape(x)) > 2 and s.shape(x)[-1] in (2, 4) and np.abs(s.values[x]).max() > 3 and (joined or s.is_output(x))
    node = s.pick(("Concat", "Mul", "Add"), fits)
    return s.after(node.output[0], ("Cast", ["."], {"to": TensorProto.INT32}), ("Cast", ["."], {"to": TensorProto.FLOAT})) if node is not None else None


ROWS = [
    ("operands_swapped", "opencv", "opencv/opencv#20852", operands_swapped),
    ("scalar_as_integer", "torch.onnx", "pytorch/pytorch#52436", scalar_as_integer),
    ("transposed_by_reshape", "Arraymancer", "mratsim/Arraymancer#386", transposed_by_reshape),
    ("older_value_read", "nerfactor", "google/nerfactor#27", older_value),
    ("division_as_multiplication", "perceiver-io", "esceptico/perceiver-io#9", division_as_multiplication),
    ("reduction_axes_lost", "burn-onnx", "tracel-ai/burn-onnx#459", reduction_axes_lost),
    ("running_sum_reversed", "TensorRT", "NVIDIA/TensorRT#4513", sum_reversed),
    ("concat_axis", "MMdnn", "microsoft/MMdnn#769", concat_axis),
    ("third_summand_lost", "mgeconvert", "MegEngine/mgeconvert#104", third_summand_lost),
    ("first_row_for_all", "mmdeploy", "open-mmlab/mmdeploy#2207", first_row_for_all),
    ("constants_merged", "onnxsim", "onnxsim/onnxsim#265", constants_merged),
    ("gemm_factor_lost", "HALO", "alibaba/heterogeneity-aware-lowering-and-optimization#551", gemm_factor_lost),
    ("score_function_added", "nanodet", "RangiLyu/nanodet#67", score_function_added),
    ("softmax_lost", "mmaction2", "open-mmlab/mmaction2#552", softmax_lost),
    ("labels_exclude_no_more", "skl2onnx", "onnx/sklearn-onnx#339", many_labels),
    ("temperature_lost", "gemma.cpp", "google/gemma.cpp#981", temperature_lost),
    ("pads_interleaved", "onnxruntime WebNN", "microsoft/onnxruntime#17325", pads_interleaved),
    ("input_channels_reversed", "TensorRT", "NVIDIA/TensorRT#657", input_channels_reversed),
    ("input_scaled_twice", "pytorch-nested-unet", "4uiiurz1/pytorch-nested-unet#62", scaled_twice),
    ("classes_sorted_as_text", "mljar", "mljar/mljar-supervised#245", classes_as_text),
    ("boxes_became_whole", "supervision", "roboflow/supervision#2515", rounded_to_whole),
]
