"""Fifth generation: faults of boxes, of regions, and of what is suppressed."""
import numpy as np

from surgery import scalar


def sampling_default(s):
    """One sample in each part of a region."""
    node = s.pick("RoiAlign", lambda n: s.attr(n, "sampling_ratio", 0) != 1)
    if node is None:
        return None
    s.set_attr(node, "sampling_ratio", 1)
    return [node]


def across_classes(s):
    """Boxes of other classes are in each other's way."""
    def fits(n):
        shift = s.made_by(n.input[1], "Mul")
        return shift is not None and (scalar(s, shift.input[1]) or 0) > 30 and any(b.op_type == "NonMaxSuppression" for b in s.consumers(n.output[0]))
    node = s.pick("Add", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def threshold_of_scores(s):
    node = s.pick("NonMaxSuppression", lambda n: len(n.input) > 4 and s.const(n.input[4]) is not None)
    if node is None:
        return None
    c = s.const(node.input[4])
    return s.set_const(node, 4, np.full_like(c, s.rng.choice([0.3, 0.8, 0.9])))


def older_offset(s):
    """A cell's own square, as in the version before: not twice as wide, and not half a cell back."""
    def fits(n):
        wide = s.made_by(n.input[0], "Mul")
        return scalar(s, n.input[1]) == 0.5 and wide is not None and scalar(s, wide.input[1]) == 2
    node = s.pick("Sub", fits)
    if node is None:
        return None
    wide = s.producer(node.input[0])
    made = s.bypass(node, wide.output[0])
    return [*made, *s.bypass(wide, wide.input[0])]


def middle_at_other_scale(s):
    """Half a pixel of the picture is added, not half a cell of the map."""
    def fits(n):
        behind = s.consumers(n.output[0])
        return scalar(s, n.input[1]) == 0.5 and len(behind) == 1 and behind[0].op_type == "Mul" and (scalar(s, behind[0].input[1]) or 0) > 1
    node = s.pick("Add", fits)
    if node is None:
        return None
    wide, half = s.consumers(node.output[0])[0], node.input[1]
    made = s.bypass(node, node.input[0])
    return [*made, *s.after(wide.output[0], ("Add", [".", half], {}))]


ROWS = [
    ("middle_at_other_scale", "HigherHRNet", "HRNet/HigherHRNet-Human-Pose-Estimation#67", middle_at_other_scale),
    ("region_samples_default", "openvino", "openvinotoolkit/openvino#37826", sampling_default),
    ("suppressed_across_classes", "yolov5", "ultralytics/yolov5#422", across_classes),
    ("suppression_score_threshold", "tf_trt_models", "NVIDIA-AI-IOT/tf_trt_models#19", threshold_of_scores),
    ("box_offset_of_older_version", "yolov5", "ultralytics/yolov5#1457", older_offset),
]
