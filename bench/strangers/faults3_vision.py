"""Third generation: faults of images: pooling, borders, sampling, boxes, folded norms."""
import numpy as np

from faults_attributes import attribute, table


def unpool_planes(s):
    """Places within a plane, where places within the whole tensor are meant."""
    node = s.pick("MaxUnpool", lambda n: s.made_by(n.input[1], "MaxPool") is not None)
    if node is None:
        return None
    shape = s.shape(s.producer(node.input[1]).input[0])
    return s.before(node, 1, ("Mod", [".", s.constant(np.int64(shape[2] * shape[3]))], {}))


def ceil_divisor(s):
    """What lies over the edge is counted."""
    def extra(n):
        k, pads = s.attr(n, "kernel_shape"), list(s.attr(n, "pads", [0] * 2 * len(s.attr(n, "kernel_shape"))))
        out, size, half = s.shape(n.output[0])[2:], s.shape(n.input[0])[2:], len(k)
        need = [(o - 1) * t + w - d - pads[i] - pads[half + i] for i, (o, t, w, d) in enumerate(zip(out, s.attr(n, "strides"), k, size))]
        return pads[:half] + [p + e for p, e in zip(pads[half:], need)] if s.attr(n, "ceil_mode", 0) and max(need) > 0 else None
    node = s.pick("AveragePool", lambda n: extra(n) is not None)
    if node is None:
        return None
    pads = extra(node)
    for name, value in (("pads", pads), ("ceil_mode", 0), ("count_include_pad", 1)):
        s.set_attr(node, name, value)
    return [node]


def pool_dilation_lost(s):
    node = s.pick("MaxPool", lambda n: max(s.attr(n, "dilations", [1])) > 1)
    if node is None:
        return None
    pads = list(s.attr(node, "pads"))
    half = len(pads) // 2
    for i, (d, k) in enumerate(zip(s.attr(node, "dilations"), s.attr(node, "kernel_shape"))):
        for j in range((d - 1) * (k - 1)):
            pads[i + half * (j % 2)] -= 1
    if min(pads) < 0:
        return None
    s.set_attr(node, "dilations", None)
    s.set_attr(node, "pads", pads)
    return [node]


def circles(s):
    """Nodes that continue an image with its other side: Concat of Slices, or Pad."""
    def joined(n):
        ends = [s.made_by(x, "Slice") for x in (n.input[0], n.input[-1])]
        return len(n.input) == 3 and None not in ends and all(e.input[0] == n.input[1] for e in ends)
    return [n for n in s.nodes("Concat") if joined(n)] + [n for n in s.nodes("Pad") if s.attr(n, "mode") == "wrap"]


def circular_lost(s):
    node = s.choose(circles(s))
    if node is None:
        return None
    if node.op_type == "Pad":
        s.set_attr(node, "mode", "constant")
        return [node]
    axis, rank = s.attr(node, "axis"), len(s.shape(node.output[0]))
    pads = np.zeros(2 * rank, np.int64)
    pads[[axis, rank + axis]] = s.shape(node.input[0])[axis], s.shape(node.input[2])[axis]
    inner = node.input[1]
    node.op_type = "Pad"
    del node.attribute[:], node.input[:]
    node.input.extend([inner, s.constant(pads, "pads")])
    return [node]


def circular_axis(s):
    """Top and bottom meet in place of left and right, which get the zeros."""
    def zeros_behind(n):
        behind = s.consumers(n.output[0])
        return behind[0] if len(behind) == 1 and behind[0].op_type == "Pad" and s.attr(behind[0], "mode", "constant") == "constant" else None
    node = s.choose([n for n in circles(s) if zeros_behind(n) is not None])
    if node is None:
        return None
    zeros, turn = zeros_behind(node), [0, 1, 3, 2, 4, 5, 7, 6]
    made = s.set_const(zeros, 1, s.const(zeros.input[1])[turn])
    if node.op_type == "Pad":
        return made + s.set_const(node, 1, s.const(node.input[1])[turn])
    for end in (s.producer(node.input[0]), s.producer(node.input[2])):
        made += s.set_const(end, 3, np.array([2]))
    s.set_attr(node, "axis", 2)
    return [*made, node]


def point_centre(s):
    """Points at the corners of cells, not in their middle."""
    def step(c):
        values = np.unique(c)
        if c.dtype != np.float32 or c.ndim != 3 or c.shape[1] != 2 or values.size < 3 or c.shape[2] != values.size ** 2:
            return None
        gap = values[1] - values[0]
        return gap if np.allclose(np.diff(values), gap) and np.isclose(values[0], gap / 2) else None
    sites = [(n, i, s.const(n.input[i])) for n in s.nodes("Add", "Sub") for i in (0, 1) if s.const(n.input[i]) is not None]
    site = s.choose([x for x in sites if step(x[2]) is not None])
    if site is None:
        return None
    made = []
    for n, i, c in sites:
        if c.shape == site[2].shape and np.array_equal(c, site[2]):
            made += s.set_const(n, i, (c - step(site[2]) / 2).astype(np.float32))
    return made


def grid_axes(s):
    """Row and column exchanged, for all that is sampled."""
    node = s.pick("GridSample")
    return s.before(node, 1, ("Gather", [".", s.constant(np.array([1, 0]))], {"axis": 3})) if node is not None else None


def pad_folded(s):
    """Padding goes into the convolution behind it, width before height."""
    def fits(n):
        behind, p = s.consumers(n.output[0]), s.const(n.input[1])
        if p is None or p.size != 8 or p[[0, 1, 4, 5]].any() or s.attr(n, "mode", "constant") != "constant" or [b.op_type for b in behind] != ["Conv"]:
            return False
        return not any(s.attr(behind[0], "pads", [0])) and p.min() >= 0 and list(p[[2, 3, 6, 7]]) != list(p[[3, 2, 7, 6]])
    node = s.pick("Pad", fits)
    if node is None:
        return None
    conv, p = s.consumers(node.output[0])[0], s.const(node.input[1])
    s.set_attr(conv, "pads", [int(v) for v in p[[3, 2, 7, 6]]])
    s.bypass(node, node.input[0])
    return [conv]


def heads_exchanged(s):
    """Two heads of one shape, each under the other's name."""
    def part_of_it(n):
        """Its bias, where that is added apart, and the way back to the framework's layout."""
        return n.op_type == "Transpose" or n.op_type == "Add" and any(s.const(x) is not None and s.const(x).ndim == 1 for x in n.input)

    def end(n):
        value = n.output[0]
        while len(s.consumers(value)) == 1 and part_of_it(s.consumers(value)[0]):
            value = s.consumers(value)[0].output[0]
        return value
    heads = [n for n in s.nodes("Conv") if s.const(n.input[1]) is not None and s.const(n.input[1]).shape[0] <= 4]
    pairs = [(a, b) for k, a in enumerate(heads) for b in heads[k + 1:] if s.const(a.input[1]).shape == s.const(b.input[1]).shape and a.input[0] != b.input[0]]
    pair = s.choose(pairs)
    if pair is None:
        return None
    a, b = map(end, pair)
    if s.is_output(a) or s.is_output(b):
        return None
    readers = [(n, i, b if x == a else a) for n in s.graph.node for i, x in enumerate(n.input) if x in (a, b)]
    if min(s.place(n) for n, _, _ in readers) < max(s.place(s.producer(v)) for v in (a, b)):
        return None
    for n, i, x in readers:
        n.input[i] = x
    return [s.producer(a), s.producer(b), *[n for n, _, _ in readers]]


def position_grid(s):
    """Positions of patches, column by column for row by row."""
    def fits(n, i):
        c = s.const(n.input[i])
        side = round(c.shape[1] ** 0.5) if c is not None and c.ndim == 3 else 0
        return side > 2 and side ** 2 == c.shape[1] and c.shape[0] == 1 and s.made_by(n.input[1 - i], "Transpose") is not None
    site = s.choose([(n, i) for n in s.nodes("Add") for i in (0, 1) if fits(n, i)])
    if site is None:
        return None
    c = s.const(site[0].input[site[1]])
    side = round(c.shape[1] ** 0.5)
    return s.set_const(*site, np.ascontiguousarray(c.reshape(side, side, -1).swapaxes(0, 1)).reshape(c.shape))


def fold_into_transposed(s):
    """A norm's scale goes to the channels that a transposed convolution reads, not to those that it makes."""
    def fits(n):
        up = s.made_by(n.input[0], "ConvTranspose")
        w = s.const(up.input[1]) if up is not None and len(s.consumers(n.input[0])) == 1 else None
        return w is not None and w.shape[0] == w.shape[1]
    bn = s.pick("BatchNormalization", fits)
    if bn is None:
        return None
    up = s.producer(bn.input[0])
    gamma, beta, mean, variance = (s.const(x) for x in bn.input[1:5])
    w, scale = s.const(up.input[1]), gamma / np.sqrt(variance + s.attr(bn, "epsilon", 1e-5))
    bias = s.const(up.input[2]) if len(up.input) > 2 and up.input[2] else 0
    s.set_const(up, 1, (w * scale.reshape((-1,) + (1,) * (w.ndim - 1))).astype(np.float32))
    name = s.constant((beta + (bias - mean) * scale).astype(np.float32), "folded_bias")
    del up.input[2:]
    up.input.append(name)
    up.output[0] = bn.output[0]
    s.graph.node.remove(bn)
    return [up]


def group_scale(s):
    """Values of groups are repeated group after group, not each for its own channels."""
    def repeats(c):
        r = c.reshape(-1) if c is not None and c.dtype == np.float32 and c.size >= 6 and max(c.shape) == c.size else None
        return next((k for k in range(r.size // 2, 1, -1) if r.size % k == 0 and np.ptp(r.reshape(-1, k), axis=1).max() == 0 and np.ptp(r) > 0), 0) \
            if r is not None else 0
    sites = [(n, i) for n in s.nodes("Mul", "Add", "GroupNormalization") for i in range(len(n.input)) if n.input[i] and repeats(s.const(n.input[i]))]
    site = s.choose(sites)
    if site is None:
        return None
    c = s.const(site[0].input[site[1]])
    return s.set_const(*site, np.ascontiguousarray(c.reshape(-1, repeats(c)).T).reshape(c.shape))


ROWS = [
    ("unpool_planes", "mmagic", "open-mmlab/mmagic#243", unpool_planes),
    ("roi_half_pixel", "torchvision", "pytorch/vision#4692",
     attribute("RoiAlign", "coordinate_transformation_mode", table(half_pixel="output_half_pixel", output_half_pixel="half_pixel"))),
    ("average_ceil_divisor", "torch.onnx", "pytorch/pytorch#183528", ceil_divisor),
    ("pool_dilation_lost", "torch2trt", "NVIDIA-AI-IOT/torch2trt#526", pool_dilation_lost),
    ("circular_padding_lost", "torch.onnx", "pytorch/pytorch#86690", circular_lost),
    ("circular_padding_axis", "torch", "pytorch/pytorch#37844", circular_axis),
    ("point_centre_lost", "retinanet-examples", "NVIDIA/retinanet-examples#34", point_centre),
    ("grid_axes_exchanged", "deformable-attention", "lucidrains/deformable-attention#6", grid_axes),
    ("pad_folded_wrongly", "OnnxSlim", "inisis/OnnxSlim#212", pad_folded),
    ("heads_exchanged", "TensorRT-CenterNet", "CaoWGG/TensorRT-CenterNet#38", heads_exchanged),
    ("position_grid_transposed", "torchtitan", "pytorch/torchtitan#4244", position_grid),
    ("fold_into_transposed", "ultralytics", "ultralytics/ultralytics#25364", fold_into_transposed),
    ("group_scale_repeat", "onnx version converter", "onnx/onnx#5808", group_scale),
]
