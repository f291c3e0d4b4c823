"""Seventh generation: faults of boxes, masks, joints, headings, and of how pictures become larger or smaller."""
import numpy as np

from faults7_activations import kinds_behind
from surgery import scalar


def outside_counted(s):
    """What is outside of a picture counts as its border."""
    made = [n for n in s.nodes("Resize") if s.attr(n, "exclude_outside", 0)]
    for n in made:
        s.set_attr(n, "exclude_outside", None)
    return made or None


def dilation_sides_exchanged(s):
    """Filters look further up than to the side."""
    def fits(n):
        d, p = s.attr(n, "dilations", [1, 1]), s.attr(n, "pads", [0])
        return len(d) == 2 and d[0] != d[1] and len(p) == 4
    node = s.pick("Conv", fits)
    if node is None:
        return None
    d, p = s.attr(node, "dilations"), s.attr(node, "pads")
    s.set_attr(node, "dilations", list(d)[::-1])
    s.set_attr(node, "pads", [p[1], p[0], p[3], p[2]])
    return [node]


def doubled_sigmoid(s, value, depth=4):
    """Whether a value is twice a sigmoid, or a part of one."""
    n = s.made_by(value, "Mul")
    if n is None or scalar(s, n.input[1]) != 2:
        return False
    x = n.input[0]
    for _ in range(depth):
        n = s.producer(x)
        if n is None:
            return False
        if n.op_type == "Sigmoid":
            return True
        if n.op_type not in ("Split", "Slice", "Transpose", "Reshape"):
            return False
        x = n.input[0]
    return False


def size_not_squared(s):
    """Sizes as twice a sigmoid, not as its square."""
    def fits(n):
        twice = n.op_type == "Mul" and n.input[0] == n.input[1] or n.op_type == "Pow" and scalar(s, n.input[1]) == 2
        return twice and doubled_sigmoid(s, n.input[0])
    node = s.pick(("Mul", "Pow"), fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def half_of_cell_lost(s):
    """Middles half a cell too far."""
    node = s.pick("Sub", lambda n: scalar(s, n.input[1]) == 0.5 and doubled_sigmoid(s, n.input[0]))
    return s.bypass(node, node.input[0]) if node is not None else None


def joint_step_not_doubled(s):
    """Steps to joints half as long."""
    def fits(n):
        behind = s.consumers(n.output[0])
        c = s.const(behind[0].input[1]) if len(behind) == 1 and behind[0].op_type == "Add" else None
        return scalar(s, n.input[1]) == 2 and c is not None and c.ndim > 2 and c.shape[-1] == 2 and s.made_by(n.input[0], "Reshape") is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def mask_not_cut(s):
    """A mask goes on beyond its box."""
    def fits(n):
        inside = s.made_by(n.input[1], "ReduceMin")
        return inside is not None and s.made_by(inside.input[0], "Cast") is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def quarter_lost(s):
    """The hottest pixel itself, not a quarter towards its neighbour."""
    made = []
    for n in list(s.nodes("Add")):
        part = s.made_by(n.input[1], "Mul")
        if part is not None and s.made_by(part.input[0], "Sign") is not None:
            made += s.bypass(n, n.input[0]) or []
    return made or None


def bins_not_divided(s):
    """Bins are taken for pixels."""
    def fits(n):
        mean = s.made_by(n.input[0], "MatMul")
        c = s.const(mean.input[1]) if mean is not None else None
        return (scalar(s, n.input[1]) or 0) > 1.5 and c is not None and c.shape[-1] == 1 and np.array_equal(c.reshape(-1), np.arange(c.size))
    node = s.pick("Div", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def margin_kept(s):
    """Boxes are moved by the margins that made the picture fit."""
    def fits(n):
        c = s.const(n.input[1])
        return c is not None and c.size == 4 and np.array_equal(c.reshape(-1)[:2], c.reshape(-1)[2:]) and kinds_behind(s, n.output[0]) == ["Div"]
    node = s.pick("Sub", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def powers_exchanged(s):
    """How well the box fits has the power of how sure the kind is, and the reverse."""
    def fits(n):
        powers = [s.made_by(x, "Pow") for x in n.input]
        return all(p is not None for p in powers) and abs(sum(scalar(s, p.input[1]) or 0 for p in powers) - 1) < 1e-5
    node = s.pick("Mul", fits)
    if node is None:
        return None
    a, b = (s.producer(x) for x in node.input)
    p, q = s.const(a.input[1]).copy(), s.const(b.input[1]).copy()
    return s.set_const(a, 1, q) + s.set_const(b, 1, p)


def end_not_told(s):
    """Boxes look to either end alike."""
    def fits(n):
        half = s.made_by(n.input[1], "Mul")
        return half is not None and abs((scalar(s, half.input[1]) or 0) - np.pi) < 1e-4 and s.made_by(half.input[0], "Cast") is not None
    node = s.pick("Add", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def sides_of_angle_exchanged(s):
    """The angle from the other axis: who is up and who is to the side was exchanged."""
    atan = s.pick("Atan", lambda n: s.made_by(n.input[0], "Div") is not None)
    if atan is None:
        return None
    div = s.producer(atan.input[0])
    y, x = div.input
    made = [div]
    div.input[0], div.input[1] = x, y
    for n in s.nodes("Less"):
        if n.input[0] in (x, y):
            n.input[0] = y if n.input[0] == x else x
            made.append(n)
    return made if len(made) == 3 else None


ROWS = [
    ("outside_of_picture_counted", "onnxruntime", "microsoft/onnxruntime#2203", outside_counted),
    ("dilation_sides_exchanged", "tt-metal", "tenstorrent/tt-metal#19542", dilation_sides_exchanged),
    ("size_not_squared", "yolov5", "ultralytics/yolov5#3221", size_not_squared),
    ("half_of_cell_lost", "yolov5", "ultralytics/yolov5#9910", half_of_cell_lost),
    ("joint_step_not_doubled", "ultralytics", "ultralytics/ultralytics#8443", joint_step_not_doubled),
    ("mask_not_cut_at_box", "Savant", "insight-platform/Savant#364", mask_not_cut),
    ("quarter_of_pixel_lost", "HRNet", "leoxiaobin/deep-high-resolution-net.pytorch#193", quarter_lost),
    ("bins_taken_for_pixels", "mmpose", "open-mmlab/mmpose#1794", bins_not_divided),
    ("margin_of_picture_kept", "YOLO-World", "AILab-CVC/YOLO-World#570", margin_kept),
    ("powers_of_scores_exchanged", "yolodet-pytorch", "wuzhihao7788/yolodet-pytorch#16", powers_exchanged),
    ("end_of_box_not_told", "Det3D", "V2AI/Det3D#120", end_not_told),
    ("sides_of_angle_exchanged", "tt-metal", "tenstorrent/tt-metal#14470", sides_of_angle_exchanged),
]
