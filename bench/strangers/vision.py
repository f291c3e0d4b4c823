"""Layers of networks that see: convolutions in every exporter's form, pooling, resizing, windows."""
import numpy as np

from blocks import activation, batch_norm, linear
from net import BATCH


def conv(net, x, n_in, n_out, k, stride=1, groups=1, dilation=1, bias=True, pads=None, same=None, hint="conv", gain=1.4, rank=2):
    """pads: None is symmetric; same: TensorFlow's SAME for an input side of this size."""
    k = (k,) * rank if isinstance(k, int) else tuple(k)
    stride = (stride,) * rank if isinstance(stride, int) else tuple(stride)
    fan_in = n_in // groups * int(np.prod(k))
    with net.scope(hint):
        w = net.trained((n_out, n_in // groups) + k, fan_in, gain)
        b = net.vector(n_out, hint="bias") if bias else ""
        if same is not None:
            total = [max((-(-same // s) - 1) * s + (q - 1) * dilation + 1 - same, 0) for q, s in zip(k, stride)]
            pads = [t // 2 for t in total] + [t - t // 2 for t in total]
        elif pads is None:
            pads = [dilation * (q // 2) for q in k] * 2
        shape = dict(kernel_shape=list(k), strides=list(stride), dilations=[dilation] * rank, group=groups)
        if not (net.style.sandwich and rank == 2):
            return net.op("Conv", x, w, b, pads=pads, **shape)
        # TensorFlow's images are NHWC: the values between convolutions are, too.
        y = net.op("Conv", x, w, pads=pads, **shape)
        if bias:
            y = net.add(net.transpose(y, 0, 2, 3, 1), b)
            y = net.transpose(y, 0, 3, 1, 2)
        return y


def conv_bn(net, x, n_in, n_out, k, act="relu", norm=True, hint="block", **more):
    with net.scope(hint):
        y = conv(net, x, n_in, n_out, k, bias=not norm, **more)
        if norm:
            y = batch_norm(net, y, n_out)
        return activation(net, y, act, n_out) if act else y


def up_conv(net, x, n_in, n_out, k=4, stride=2, pads=1, out_pad=0, hint="up"):
    with net.scope(hint):
        w = net.trained((n_in, n_out, k, k), n_in * k * k / stride / stride, 1.2)
        return net.op("ConvTranspose", x, w, net.vector(n_out), kernel_shape=[k, k], strides=[stride] * 2, pads=[pads] * 4,
                      output_padding=[out_pad] * 2)


def resize(net, x, scale=None, size=None, mode="linear", coords=None):
    """By scales, or to a size [channels, height, width] of an input whose batch is open."""
    coords = coords or {"tf2onnx": "half_pixel", "keras2onnx": "asymmetric"}.get(net.style_name, net.pick("pytorch_half_pixel", "align_corners"))
    if mode == "nearest":
        coords = "asymmetric"
    roi = "" if net.opset >= 13 else net.const(np.zeros(0))
    more = dict(mode=mode, coordinate_transformation_mode=coords, cubic_coeff_a=-0.75,
                nearest_mode="floor" if mode == "nearest" else "round_prefer_floor")
    if size is None or net.batch == "N":
        return net.op("Resize", x, roi, net.const([1, 1, scale, scale]), **more)
    empty = "" if net.opset >= 13 else net.const(np.zeros(0))
    return net.op("Resize", x, roi, empty, net.ints(net.batch, *size), **more)


def global_pool(net, x, keep=True):
    """[B, C, 1, 1], or [B, C]."""
    if net.pick(True, False):
        y = net.op("GlobalAveragePool", x)
        return y if keep else net.op("Flatten", y, axis=1)
    return net.reduce("Mean", x, [2, 3], 1 if keep else 0)


def squeeze_excite(net, x, n, reduced, gate="sigmoid", hint="se"):
    with net.scope(hint):
        y = conv(net, global_pool(net, x), n, reduced, 1, hint="reduce")
        y = conv(net, activation(net, y, "relu"), reduced, n, 1, hint="expand")
        if gate == "hard":
            y = net.op("HardSigmoid", y, alpha=net.pick(0.2, 1 / 6), beta=0.5)
        else:
            y = net.op("Sigmoid", y)
        return net.mul(x, y)


def pool(net, x, kind="Max", k=2, stride=2, pads=0, ceil=0, include=None):
    more = dict(count_include_pad=include) if kind == "Average" else {}
    return net.op(kind + "Pool", x, kernel_shape=[k, k], strides=[stride] * 2, pads=[pads] * 4, ceil_mode=ceil, **more)


def to_tokens(net, x, n, count):
    """[B, n, h, w] to [B, h * w, n]."""
    return net.transpose(net.reshape(x, [BATCH, n, count], like=x), 0, 2, 1)


def roll(net, x, axis, shift, size):
    """torch.roll by Slice and Concat."""
    shift %= size
    return net.concat(net.slice(x, axis, size - shift, size), net.slice(x, axis, 0, size - shift), axis=axis)


def classifier(net, x, n, classes, act=None, rank=2):
    y = linear(net, x, n, classes, rank=rank, hint="head", gain=2.0)
    return net.softmax(y, rank) if act == "softmax" else y


def images(net, name="image", channels=3, side=16):
    """NCHW; where the framework's images are NHWC, as TensorFlow's, its Transpose comes first."""
    if net.style.sandwich:
        x = net.input(name, [BATCH, side, side, channels], "image", channels_last=True)
        return net.transpose(x, 0, 3, 1, 2)
    return net.input(name, [BATCH, channels, side, side], "image")


def flatten(net, x, n, side):
    """Flatten in the framework's order: TensorFlow's is NHWC."""
    if net.style.sandwich:
        x = net.transpose(x, 0, 2, 3, 1)
        return net.reshape(x, [BATCH, n * side * side])
    return net.op("Flatten", x, axis=1)
