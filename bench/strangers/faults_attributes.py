"""Faults of attributes: what an exporter drops, or writes with another framework's default."""
import numpy as np


def attribute(kinds, name, change, where=lambda s, n: True, default=None):
    """A fault that sets an attribute; change: from the value that is there to another, None: not for this one."""
    def apply(s):
        def new(n):
            value = s.attr(n, name, default)
            return change(value) if where(s, n) else None
        node = s.pick(kinds, lambda n: new(n) is not None)
        if node is None:
            return None
        s.set_attr(node, name, new(node))
        return [node]
    return apply


def table(**pairs):
    return lambda v: pairs.get(v)


def linear_or_cubic(s, n):
    return s.attr(n, "mode") in ("linear", "cubic") and s.shape(n.input[0])[-1] > 1


def swap_pads(pads):
    """Begin and end exchanged: what was padded behind is padded in front."""
    half = len(pads) // 2
    return list(pads[half:]) + list(pads[:half]) if list(pads[half:]) != list(pads[:half]) else None


def one_sided(s):
    """Symmetric padding of an even pull, made one-sided: TensorFlow's SAME of another framework's convolution, or the reverse."""
    def new(n):
        pads = s.attr(n, "pads", [])
        half = len(pads) // 2
        kernel, stride = s.attr(n, "kernel_shape"), s.attr(n, "strides", [1] * half)
        if not pads or max(stride) == 1 or list(pads[:half]) != list(pads[half:]) or max(pads) == 0:
            return None
        size = s.shape(n.input[0])[2:]
        spare = [(d + 2 * p - k) % t for d, p, k, t in zip(size, pads, kernel, stride)]
        moved = [p - 1 if x else p for p, x in zip(pads[:half], spare)] + list(pads[half:])
        return moved if moved != list(pads) else None
    node = s.pick("Conv", lambda n: new(n) is not None)
    if node is None:
        return None
    s.set_attr(node, "pads", new(node))
    return [node]


def dilation_lost(s):
    """The dilation is gone, and the padding fits what is left."""
    node = s.pick("Conv", lambda n: max(s.attr(n, "dilations", [1])) > 1)
    if node is None:
        return None
    dilations, kernel, pads = s.attr(node, "dilations"), s.attr(node, "kernel_shape"), list(s.attr(node, "pads"))
    half = len(pads) // 2
    for i, (d, k) in enumerate(zip(dilations, kernel)):
        for _ in range((d - 1) * (k - 1)):
            side = i if pads[i] >= pads[half + i] else half + i
            pads[side] -= 1
    if min(pads) < 0:
        return None
    s.set_attr(node, "dilations", [1] * half)
    s.set_attr(node, "pads", pads)
    return [node]


def transposed_pads(s):
    """A transposed convolution with kernel larger than needed: its output shifted by one."""
    def new(n):
        pads = list(s.attr(n, "pads", []))
        half = len(pads) // 2
        if not pads or min(pads) < 1:
            return None
        return [p - 1 for p in pads[:half]] + [p + 1 for p in pads[half:]]
    node = s.pick("ConvTranspose", lambda n: new(n) is not None)
    if node is None:
        return None
    s.set_attr(node, "pads", new(node))
    return [node]


def inverse_perm(perm):
    inverse = np.argsort(perm).tolist()
    return inverse if inverse != list(perm) else None


def transpose_inverse(s):
    """The inverse permutation: shapes have to agree, or be hidden by a Reshape that follows."""
    def fits(n):
        perm = s.attr(n, "perm")
        inverse = inverse_perm(perm) if perm else None
        if inverse is None:
            return False
        shape = s.shape(n.input[0])
        if [shape[i] for i in perm] == [shape[i] for i in inverse]:
            return True
        def hidden(r):
            return r.op_type == "Reshape" and s.const(r.input[1]) is not None and 0 not in s.const(r.input[1])
        return all(map(hidden, s.consumers(n.output[0]))) and not s.is_output(n.output[0])
    node = s.pick("Transpose", fits)
    if node is None:
        return None
    s.set_attr(node, "perm", inverse_perm(s.attr(node, "perm")))
    return [node, *s.consumers(node.output[0])]


def softmax_axis(s):
    def others(n):
        rank = len(s.shape(n.input[0]))
        axis = s.attr(n, "axis", -1 if s.opset >= 13 else 1) % rank
        return [a for a in range(1, rank) if a != axis] if s.opset >= 13 else [axis - 1] if axis > 1 else []
    node = s.pick(("Softmax", "LogSoftmax"), lambda n: others(n))
    if node is None:
        return None
    s.set_attr(node, "axis", s.choose(others(node)))
    return [node]


def negative(s, n):
    x = s.values.get(n.input[0], s.const(n.input[0]))
    return x is not None and (x < 0).any()


# Kind, exporter, source, function.
ROWS = [
    ("resize_align_corners", "torch.onnx", "pytorch/pytorch#22906", attribute("Resize", "coordinate_transformation_mode",
     table(pytorch_half_pixel="align_corners", half_pixel="align_corners", align_corners="pytorch_half_pixel"), linear_or_cubic)),
    ("resize_asymmetric", "tf2onnx", "onnx/tensorflow-onnx#932", attribute("Resize", "coordinate_transformation_mode",
     table(half_pixel="asymmetric", pytorch_half_pixel="asymmetric", asymmetric="half_pixel"), linear_or_cubic)),
    ("resize_nearest_rounding", "tf2onnx", "onnx/tensorflow-onnx#2168", attribute("Resize", "nearest_mode",
     table(floor="ceil"), lambda s, n: s.attr(n, "mode") == "nearest")),
    ("resize_mode", "torch.onnx", "pytorch/pytorch#12647", attribute("Resize", "mode", table(linear="nearest", cubic="linear"), linear_or_cubic)),
    ("cubic_coefficient", "onnx", "onnx/onnx#2057", attribute("Resize", "cubic_coeff_a", lambda v: -0.5, lambda s, n: s.attr(n, "mode") == "cubic")),
    ("average_counts_padding", "torch.onnx", "pytorch/pytorch#13934", attribute("AveragePool", "count_include_pad", lambda v: 1 - v,
     lambda s, n: max(s.attr(n, "pads", [0])) > 0, 0)),
    ("same_pads_swapped", "onnxruntime", "microsoft/onnxruntime#4086", attribute("Conv", "pads", swap_pads, lambda s, n: s.attr(n, "pads"))),
    ("pads_one_sided", "keras2onnx", "onnx/keras-onnx#555", one_sided),
    ("dilation_lost", "tf2onnx", "onnx/tensorflow-onnx#945", dilation_lost),
    ("transposed_conv_shifted", "tf2onnx", "onnx/tensorflow-onnx#765", transposed_pads),
    ("pad_mode", "torch.onnx", "pytorch/pytorch#4263", attribute("Pad", "mode", table(reflect="edge", edge="reflect"))),
    ("transpose_inverse", "torch.onnx", "pytorch/pytorch#7868", transpose_inverse),
    ("softmax_axis", "tf2onnx", "onnx/tensorflow-onnx#1763", softmax_axis),
    ("leaky_slope", "X2Paddle", "PaddlePaddle/X2Paddle#516", attribute("LeakyRelu", "alpha", lambda v: 0.01)),
    ("elu_alpha", "torch.onnx", "pytorch/pytorch#80783", attribute("Elu", "alpha", lambda v: 1.0 if v != 1 else 0.5, default=1.0)),
    ("hard_sigmoid_slope", "keras2onnx", "onnx/keras-onnx#718",
     attribute("HardSigmoid", "alpha", lambda v: 0.2 if abs(v - 0.2) > 1e-3 else 1 / 6, default=0.2)),
    ("depth_to_space_mode", "onnx2tf", "PINTO0309/onnx2tf#91", attribute("DepthToSpace", "mode", table(DCR="CRD", CRD="DCR"), default="DCR")),
    ("grid_align_corners", "onnx", "onnx/onnx#4454", attribute("GridSample", "align_corners", lambda v: 1 - v, default=0)),
    ("grid_padding", "torch-mlir", "llvm/torch-mlir#4186",
     attribute("GridSample", "padding_mode", table(zeros="border", border="zeros"), default="zeros")),
    ("gru_reset_after", "tf2onnx", "onnx/tensorflow-onnx#939", attribute("GRU", "linear_before_reset", lambda v: 1 - v, default=0)),
    ("topk_smallest", "mxnet", "apache/mxnet#19854", attribute("TopK", "largest", lambda v: 1 - v, default=1)),
    ("nms_box_format", "yolov7", "WongKinYiu/yolov7#679", attribute("NonMaxSuppression", "center_point_box", lambda v: 1 - v, default=0)),
    ("batch_norm_epsilon", "keras2onnx", "onnx/keras-onnx#404",
     attribute("BatchNormalization", "epsilon", lambda v: 1e-3 if v < 1e-3 else 1e-5, default=1e-5)),
    ("layer_norm_epsilon", "torch.onnx", "pytorch/pytorch#60582",
     attribute(("LayerNormalization", "InstanceNormalization"), "epsilon", lambda v: 1e-3, default=1e-5)),
    ("scatter_overwrites", "torch.onnx", "pytorch/pytorch#32960", attribute(("ScatterND", "ScatterElements"), "reduction", table(add="none"))),
    ("cumsum_exclusive", "torch.onnx", "pytorch/pytorch#40044", attribute("CumSum", "exclusive", lambda v: 1 - v, default=0)),
    ("modulo_sign", "torch.onnx", "pytorch/pytorch#24410", attribute("Mod", "fmod", lambda v: 1, negative, 0)),
]
