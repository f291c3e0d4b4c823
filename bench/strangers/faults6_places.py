"""Sixth generation: faults of boxes, regions, cameras, depth, and of where pictures are read."""
import numpy as np

from faults4_structure import computed
from surgery import scalar


def halves(s):
    """Sizes cut in half, which then go to both sides of a middle."""
    for n in s.nodes("Mul", "Div"):
        c = scalar(s, n.input[1])
        kinds = sorted(b.op_type for b in s.consumers(n.output[0]))
        if kinds == ["Add", "Sub"] and (c == 0.5 if n.op_type == "Mul" else c == 2.0) and computed(s, n.input[0]):
            yield n


def half_of_size_lost(s):
    node = s.choose(halves(s))
    return s.bypass(node, node.input[0]) if node is not None else None


def sides_of_limit(s):
    """No column beyond the last row, no row beyond the last column."""
    def fits(n):
        c = s.const(n.input[1])
        return c is not None and c.size == 4 and c.reshape(-1)[0] == c.reshape(-1)[2] != c.reshape(-1)[1] == c.reshape(-1)[3]
    node = s.pick("Min", fits)
    if node is None:
        return None
    c = s.const(node.input[1])
    return s.set_const(node, 1, c.reshape(-1)[[1, 0, 3, 2]].reshape(c.shape))


def anchors_in_cells(s):
    """Sizes of anchors are in cells, and are taken for pixels."""
    def fits(n):
        inner = s.made_by(n.input[0], "Mul")
        anchor = s.const(inner.input[1]) if inner is not None else None
        return (scalar(s, n.input[1]) or 0) > 1 and anchor is not None and anchor.size == 2 and s.made_by(inner.input[0], "Exp") is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def prior_sizes(s):
    """(node, input, array) of sizes of prior boxes: two for each, with few unlike rows."""
    for n in s.nodes("Mul"):
        for i in (0, 1):
            c = s.const(n.input[i])
            if c is not None and c.ndim == 3 and c.shape[-1] == 2 and c.shape[1] > 3 and len(np.unique(c.reshape(-1, 2), axis=0)) <= 4 and computed(s, n.input[1 - i]) \
                    and np.any(np.abs(c[..., 0] - c[..., 1]) > 1e-3):
                yield n, i, c


def width_for_height(s):
    """Steps down are in widths of the prior box."""
    sites = [x for x in prior_sizes(s) if s.made_by(x[0].input[1 - x[1]], "Exp") is None]
    site = s.choose(sites)
    return s.set_const(site[0], site[1], np.repeat(site[2][..., :1], 2, -1)) if site else None


def variances_exchanged(s):
    """Fifths of steps and tenths of sizes."""
    made = []
    for n in s.nodes("Mul"):
        c = s.const(n.input[1])
        if c is None or c.dtype != np.float32:
            continue
        if c.size == 4 and np.allclose(c.reshape(-1), [0.1, 0.1, 0.2, 0.2]):
            made += s.set_const(n, 1, c.reshape(-1)[[2, 3, 0, 1]].reshape(c.shape))
        elif c.size == 1 and (np.isclose(c, 0.1).all() or np.isclose(c, 0.2).all()) and s.made_by(n.input[0], "Split") is not None and s.shape(n.input[0])[-1] == 2:
            made += s.set_const(n, 1, (0.3 - c).astype(np.float32).reshape(c.shape))
    return made or None


def scale_of_other_level(s):
    """A level's features, read as if they were another's."""
    nodes = s.nodes("RoiAlign")
    scales = sorted({s.attr(n, "spatial_scale", 1.0) for n in nodes})
    node = s.choose(nodes)
    if node is None or len(scales) < 2:
        return None
    s.set_attr(node, "spatial_scale", float(s.choose([v for v in scales if v != s.attr(node, "spatial_scale", 1.0)])))
    return [node]


def region_maximum(s):
    """The largest in each bin, for the mean."""
    made = [n for n in s.nodes("RoiAlign") if s.attr(n, "mode", "avg") == "avg"]
    for n in made:
        s.set_attr(n, "mode", "max")
    return made or None


def read_at_nearest(s):
    """An unknown word for the same way of reading becomes the nearest pixel."""
    made = s.nodes("GridSample")
    for n in made:
        s.set_attr(n, "mode", "nearest")
    return made or None


def grid_from_zero(s):
    """Places are shares of the picture, and are taken for those between minus one and one."""
    def fits(n):
        wide = s.made_by(n.input[0], "Mul")
        if scalar(s, n.input[1]) != 1 or wide is None or scalar(s, wide.input[1]) != 2:
            return False
        x = n.output[0]
        for _ in range(3):
            behind = s.consumers(x)
            if any(b.op_type == "GridSample" for b in behind):
                return True
            if len(behind) != 1:
                return False
            x = behind[0].output[0]
        return False
    node = s.pick("Sub", fits)
    return s.bypass(node, s.producer(node.input[0]).input[0]) if node is not None else None


def flow_backwards(s):
    """A picture is read where things would be, had they moved the other way."""
    def leads(n):
        x = n.output[0]
        for _ in range(5):
            behind = s.consumers(x)
            if any(b.op_type == "GridSample" for b in behind):
                return True
            if len(behind) != 1:
                return False
            x = behind[0].output[0]
        return False

    def fits(n):
        c = s.const(n.input[0])
        return c is not None and c.ndim == 4 and c.shape[-1] == 2 and computed(s, n.input[1]) and leads(n)
    node = s.pick("Add", fits)
    if node is None:
        return None
    node.op_type = "Sub"
    return [node]


def inverse_ranges(s):
    """(product with a width, sum with an end, division of one): shares between two inverses of depth."""
    for n in s.nodes("Div"):
        add = s.made_by(n.input[1], "Add")
        wide = s.made_by(add.input[0], "Mul") if add is not None else None
        if scalar(s, n.input[0]) == 1 and wide is not None and s.made_by(wide.input[0], "Sigmoid") is not None and scalar(s, add.input[1]) is not None:
            yield wide, add, n


def nearest_of_other_setting(s):
    """The nearest depth is that of another set of pictures."""
    site = s.choose(inverse_ranges(s))
    if site is None:
        return None
    wide, add, _ = site
    far = scalar(s, add.input[1])
    near = scalar(s, wide.input[1]) + far
    near = near / 5 if near > 5 else near * 5
    return s.set_const(wide, 1, np.float32(near - far).reshape(s.const(wide.input[1]).shape))


def depth_not_inverted(s):
    """How near, where how far was asked."""
    site = s.choose(inverse_ranges(s))
    return s.bypass(site[2], site[2].input[1]) if site else None


def projections(s):
    """(division by depth, product with focal lengths)."""
    for n in s.nodes("Mul"):
        c, div = s.const(n.input[1]), s.made_by(n.input[0], "Div")
        if c is not None and c.size == 2 and div is not None and computed(s, div.input[1]) and s.shape(div.input[1])[-1] == 1 and s.shape(div.input[0])[-1] == 2:
            yield div, n


def depth_division_lost(s):
    site = s.choose(projections(s))
    return s.bypass(site[0], site[0].input[0]) if site else None


def one_focal_length(s):
    """The width's focal length for both."""
    site = s.choose(projections(s))
    if site is None:
        return None
    c = s.const(site[1].input[1])
    return s.set_const(site[1], 1, np.full_like(c, c.reshape(-1)[0]))


ROWS = [
    ("half_of_size_lost", "ssd.pytorch", "amdegroot/ssd.pytorch#420", half_of_size_lost),
    ("sides_of_limit_exchanged", "efficientdet-pytorch", "rwightman/efficientdet-pytorch#162", sides_of_limit),
    ("anchors_in_cells", "yolov3-tf2", "zzh8829/yolov3-tf2#118", anchors_in_cells),
    ("width_for_height_of_prior", "ssd_keras", "rykov8/ssd_keras#53", width_for_height),
    ("variances_exchanged", "caffe", "weiliu89/caffe#155", variances_exchanged),
    ("region_scale_of_other_level", "fpn.pytorch", "jwyang/fpn.pytorch#12", scale_of_other_level),
    ("region_maximum_for_mean", "onnxruntime", "microsoft/onnxruntime#6921", region_maximum),
    ("read_at_nearest", "onnx-tensorrt", "onnx/onnx-tensorrt#1060", read_at_nearest),
    ("grid_from_zero_to_one", "LiDAR4D", "ispc-lab/LiDAR4D#2", grid_from_zero),
    ("flow_backwards", "tfoptflow", "philferriere/tfoptflow#6", flow_backwards),
    ("nearest_depth_of_other_setting", "SurroundDepth", "weiyithu/SurroundDepth#15", nearest_of_other_setting),
    ("depth_not_inverted", "EndoMUST", "BaymaxShao/EndoMUST#2", depth_not_inverted),
    ("depth_division_lost", "cnballpit-vrc", "cnlohr/cnballpit-vrc#6", depth_division_lost),
    ("one_focal_length", "rerun", "rerun-io/rerun#12711", one_focal_length),
]
