"""Second generation: faults of images: resizing, padding, filters, grids, the order of pixels and channels."""
import numpy as np

from faults_attributes import attribute, table


def recomputed_scale(s):
    """The ratio of sizes for the scale that was asked for, where it is no whole number."""
    def ratio(n):
        scales = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        if scales is None or scales.size != len(s.shape(n.input[0])):
            return None
        new = np.array(s.shape(n.output[0])) / np.array(s.shape(n.input[0])) + 1e-6
        new[scales == 1] = 1
        seen = np.abs(new - scales).max() > 1e-3 and s.attr(n, "coordinate_transformation_mode") != "align_corners"
        return new.astype(np.float32) if seen else None
    node = s.pick("Resize", lambda n: ratio(n) is not None)
    return s.set_const(node, 2, ratio(node)) if node is not None else None


def pads_of(s, n):
    return list(s.attr(n, "pads", []))


def pool_of_zeros(s):
    """Zeros in front of a maximum that sees only what is there."""
    node = s.pick("MaxPool", lambda n: pads_of(s, n) and max(pads_of(s, n)) > 0 and not s.attr(n, "ceil_mode", 0))
    if node is None:
        return None
    pads = pads_of(s, node)
    half = len(pads) // 2
    full = [0, 0, *pads[:half], 0, 0, *pads[half:]]
    s.set_attr(node, "pads", [0] * len(pads))
    return s.before(node, 0, ("Pad", [".", s.constant(np.array(full, np.int64))], {}))


def pad_side(s):
    """What is added behind is added in front."""
    def swapped(n):
        p = s.const(n.input[1]) if len(n.input) > 1 else None
        if p is None:
            return None
        q = np.concatenate([p[p.size // 2:], p[:p.size // 2]])
        return q if not np.array_equal(p, q) else None
    node = s.pick("Pad", lambda n: swapped(n) is not None)
    return s.set_const(node, 1, swapped(node)) if node is not None else None


def pad_value_lost(s):
    def valued(n):
        value = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        return value is not None and float(value.reshape(-1)[0]) != 0
    node = s.pick("Pad", valued)
    if node is None:
        return None
    del node.input[2:]
    return [node]


def filters(kinds, test, change):
    def apply(s):
        def fits(n):
            w = s.const(n.input[1])
            return w is not None and test(s, n, w)
        node = s.pick(kinds, fits)
        if node is None:
            return None
        w = s.const(node.input[1])
        return s.set_const(node, 1, change(w, s.attr(node, "group", 1)))
    return apply


def square_kernel(s, n, w):
    return w.ndim == 4 and w.shape[2] == w.shape[3] > 1


def square_channels(s, n, w):
    return s.attr(n, "group", 1) == 1 and w.shape[0] == w.shape[1] > 1


def some_groups(s, n, w):
    return s.attr(n, "group", 1) > 1 and w.shape[1] > 1 and w.shape[0] // s.attr(n, "group", 1) > 1


def across_groups(w, groups):
    """Filters dealt out to the groups in turn."""
    return np.ascontiguousarray(w.reshape((groups, -1) + w.shape[1:]).swapaxes(0, 1)).reshape(w.shape)


def causal_lost(s):
    """As much padding on both sides."""
    node = s.pick("Conv", lambda n: len(pads_of(s, n)) == 2 and pads_of(s, n)[1] == 0 and pads_of(s, n)[0] > 1)
    if node is None:
        return None
    total = pads_of(s, node)[0]
    s.set_attr(node, "pads", [total // 2, total - total // 2])
    return [node]


def hidden_by_reshape(s, node):
    """Whether the value goes to Reshape nodes only, which give it one shape whatever it has."""
    def hides(r):
        shape = s.const(r.input[1]) if r.op_type == "Reshape" else None
        return shape is not None and 0 not in shape[1:]
    readers = s.consumers(node.output[0])
    return readers and not s.is_output(node.output[0]) and all(map(hides, readers))


def shuffle_groups(s):
    """(channels of a group, groups) for (groups, channels of a group)."""
    def fits(n):
        behind = s.consumers(n.output[0])
        shape = s.const(n.input[1])
        if shape is None or shape.size != 5 or shape[1] == shape[2] or [b.op_type for b in behind] != ["Transpose"]:
            return False
        return s.attr(behind[0], "perm") == [0, 2, 1, 3, 4] and hidden_by_reshape(s, behind[0])
    node = s.pick("Reshape", fits)
    if node is None:
        return None
    behind = s.consumers(node.output[0])
    return [*s.set_const(node, 1, s.const(node.input[1])[[0, 2, 1, 3, 4]]), node, *behind, *s.consumers(behind[0].output[0])]


def exchange_axes(choose):
    """Another permutation of six axes; choose: from the shape and the permutation."""
    def apply(s):
        def new(n):
            perm = s.attr(n, "perm")
            return choose(s.shape(n.input[0]), list(perm)) if perm and len(perm) == 6 else None
        node = s.pick("Transpose", lambda n: new(n) is not None and hidden_by_reshape(s, n))
        if node is None:
            return None
        s.set_attr(node, "perm", new(node))
        return [node, *s.consumers(node.output[0])]
    return apply


def pixels_of_a_patch(shape, perm):
    """Rows and columns within a patch: the last two axes of one size."""
    pairs = [(i, j) for i in range(1, 6) for j in range(i + 1, 6) if shape[i] == shape[j] > 1]
    if not pairs:
        return None
    i, j = min(pairs, key=lambda p: shape[p[0]])
    swap = {i: j, j: i}
    return [swap.get(p, p) for p in perm]


def tiles(shape, perm):
    """The factor varies slower than the place: the picture is repeated, not enlarged."""
    return [*perm[:2], perm[3], perm[2], perm[5], perm[4]]


def constant_on_width(s):
    """A constant of channels lies along the width, which is as long."""
    def fits(n, i):
        c = s.const(n.input[i])
        shape = s.shape(n.output[0])
        return c is not None and len(shape) == 4 and c.size > 1 and c.ndim >= 3 and c.shape[-3] == c.size and shape[1] == shape[3] == c.size
    site = s.choose([(n, i) for n in s.nodes("Add", "Mul", "Sub", "Div") for i in (0, 1) if fits(n, i)])
    return s.set_const(*site, s.const(site[0].input[site[1]]).reshape(-1)) if site else None


def grids(s):
    """Constants that hold places: x and y beside each other, all combinations."""
    for n in s.nodes("Add", "Sub", "Mul"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is None or c.dtype != np.float32 or c.ndim < 3 or c.shape[-1] != 2:
                continue
            x, y = c[..., 0].reshape(-1), c[..., 1].reshape(-1)
            steps = np.unique(x)
            if steps.size > 2 and np.array_equal(steps, np.unique(y)) and x.size == steps.size ** 2:
                yield n, i, c, steps[1] - steps[0]


def meshgrid(s):
    site = s.choose(grids(s))
    return s.set_const(site[0], site[1], np.ascontiguousarray(site[2][..., ::-1])) if site else None


def grid_from_one(s):
    site = s.choose(grids(s))
    return s.set_const(site[0], site[1], (site[2] + site[3]).astype(np.float32)) if site else None


def anchors_reversed(s):
    def anchors(n, i):
        c = s.const(n.input[i])
        if c is None or c.dtype != np.float32 or c.ndim != 5 or c.shape[-1] != 2:
            return False
        return c.shape[1] > 1 and c.size == 2 * c.shape[1] and c.min() > 0
    site = s.choose([(n, i) for n in s.nodes("Mul") for i in (0, 1) if anchors(n, i)])
    return s.set_const(*site, np.ascontiguousarray(s.const(site[0].input[site[1]])[:, ::-1])) if site else None


ROWS = [
    ("resize_antialias_lost", "torch.onnx", "pytorch/pytorch#80033", attribute("Resize", "antialias", lambda v: 0 if v else None, default=0)),
    ("resize_outside", "onnxscript", "microsoft/onnxscript#2916",
     attribute("Resize", "exclude_outside", lambda v: 1 - v, lambda s, n: s.attr(n, "mode") == "cubic" or s.attr(n, "antialias", 0), 0)),
    ("resize_scale_recomputed", "ncnn", "Tencent/ncnn#6836", recomputed_scale),
    ("resize_nearest_half_pixel", "onnxruntime", "microsoft/onnxruntime#28085",
     attribute("Resize", "coordinate_transformation_mode", table(asymmetric="half_pixel"), lambda s, n: s.attr(n, "mode") == "nearest")),
    ("pool_of_zeros", "onnx-mlir", "onnx/onnx-mlir#20", pool_of_zeros),
    ("pad_side", "onnx2keras", "gmalivenko/onnx2keras#45", pad_side),
    ("pad_value_lost", "onnx-to-keras", "AxisCommunications/onnx-to-keras#31", pad_value_lost),
    ("kernel_axes_exchanged", "tvm", "apache/tvm#16354", filters("Conv", square_kernel, lambda w, g: np.ascontiguousarray(w.swapaxes(2, 3)))),
    ("filter_channels_exchanged", "tvm", "apache/tvm#14546",
     filters(("Conv", "ConvTranspose"), square_channels, lambda w, g: np.ascontiguousarray(w.swapaxes(0, 1)))),
    ("group_filters_dealt_out", "onnx", "onnx/onnx#2273", filters("Conv", some_groups, across_groups)),
    ("transposed_groups_dealt_out", "tvm", "apache/tvm#10223", filters("ConvTranspose", some_groups, across_groups)),
    ("causal_padding_lost", "keras2onnx", "onnx/keras-onnx#460", causal_lost),
    ("shuffle_groups_exchanged", "mxnet", "ZiyueHuang/MXShuffleNet#4", shuffle_groups),
    ("patch_pixels_exchanged", "minRF", "cloneofsimo/minRF#6", exchange_axes(pixels_of_a_patch)),
    ("pixel_shuffle_tiles", "caffe2", "pytorch/pytorch#19054", exchange_axes(tiles)),
    ("channel_constant_on_width", "tf2onnx", "onnx/tensorflow-onnx#121", constant_on_width),
    ("meshgrid_indexing", "torch.onnx", "pytorch/pytorch#109350", meshgrid),
    ("grid_from_one", "YOLOv3", "xiaochus/YOLOv3#1", grid_from_one),
    ("anchors_reversed", "yolov5", "ultralytics/yolov5#1000", anchors_reversed),
]
