"""Sixth generation: networks that see."""
import numpy as np

from blocks import activation, batch_norm, layer_norm, linear
from layers4 import feed_forward, learned
from layers5 import unit_length
from layers6 import attention, branch_scale, by_row_and_column, tokens_of
from net import BATCH
from vision import conv, conv_bn, global_pool, images, resize, up_conv

LUMA = np.array([0.299, 0.587, 0.114])


def slopes(net, x, n, low=-0.6, high=1.6, axes=2):
    """What is below zero is multiplied by each channel's own number, which may be anything."""
    return net.op("PRelu", x, net.weight(net.rng.uniform(low, high, (n,) + (1,) * axes).astype(np.float32), "slope"))


def brightness(net, x):
    return net.op("Conv", x, net.weight(LUMA.reshape(1, 3, 1, 1).astype(np.float32), "luma"), kernel_shape=[1, 1])


def power_mean(net, x, power):
    """What lies between mean and maximum, as its power says."""
    x = net.op("Pow", net.clip(x, 1e-3, None), net.const(power))
    y = net.op("GlobalAveragePool", x) if net.pick(True, False) else net.reduce("Mean", x, [2, 3])
    return net.op("Flatten", net.op("Pow", y, net.const(1 / power)), axis=1)


def lit(net):
    """Bytes as shares of full light, not negative."""
    return net.op("Div", net.op("Max", net.input("pixels", [BATCH, 3, 16, 16], "pixels"), net.const(1.0)), net.const(255.0))


def scaled_branches(net):
    """Patches as tokens; what a block adds is scaled channel by channel; a class token speaks."""
    n, d = 16, 24
    x = tokens_of(net, conv(net, images(net), 3, d, 4, stride=4, pads=[0] * 4, hint="patch"), d, n)
    x = net.add(x, learned(net, (1, n, d), "pos"))
    for i in range(2):
        with net.scope(f"blocks.{i}"):
            x = net.add(x, branch_scale(net, attention(net, layer_norm(net, x, d, hint="n1"), n, d, 2, like=x), d, "ls1"))
            x = net.add(x, branch_scale(net, feed_forward(net, layer_norm(net, x, d, hint="n2"), d, 32, net.pick("gelu", "swish")), d, "ls2"))
    x = layer_norm(net, x, d, hint="norm")
    net.output(linear(net, net.concat(net.reduce("Mean", x, [1], 0), net.reduce("Max", x, [1], 0), axis=1), 2 * d, 10, rank=2, hint="head", gain=2.0), "logits")


def scaled_planes(net):
    """Wide filters of each channel, a norm over channels, two layers, and a scale for what is added."""
    n = 16
    x = conv(net, images(net), 3, n, 2, stride=2, pads=[0] * 4, hint="stem")
    for i in range(2):
        with net.scope(f"stage.{i}"):
            y = net.transpose(conv(net, x, n, n, 5, groups=n, hint="dw"), 0, 2, 3, 1)
            y = layer_norm(net, y, n, hint="norm")
            y = linear(net, activation(net, linear(net, y, n, 2 * n, rank=4, hint="pw1"), net.pick("gelu", "relu")), 2 * n, n, rank=4, hint="pw2")
            x = net.add(x, net.transpose(branch_scale(net, y, n), 0, 3, 1, 2))
    net.output(linear(net, global_pool(net, x, keep=False), n, 8, rank=2, hint="head", gain=2.0), "logits")


def turned_patches(net):
    """Patches that know their row and column by how they are turned."""
    side, d, heads, form = net.pick(4, 4), 32, 2, net.pick("twice", "apart", "halves")
    n = side * side
    x = tokens_of(net, conv(net, images(net), 3, d, 4, stride=4, pads=[0] * 4, hint="patch"), d, n)
    for i in range(2):
        with net.scope(f"blocks.{i}"):
            y = layer_norm(net, x, d, hint="n1")
            x = net.add(x, attention(net, y, n, d, heads, lambda q: by_row_and_column(net, q, side, d // heads, form), like=x))
            x = net.add(x, feed_forward(net, layer_norm(net, x, d, hint="n2"), d, 48, "quick_gelu"))
    net.output(linear(net, layer_norm(net, x, d, hint="merger"), d, 12, hint="project"), "tokens")


def matched_patches(net):
    """Two pictures, patches turned by row and column; each place of one looks for its like in the other."""
    side, d, heads, form = 4, 16, 1, net.pick("halves", "twice")
    n, made = side * side, []
    w = None
    for name in ("left", "right"):
        x = net.input(name, [BATCH, 1, 16, 16], "image")
        w = w or (net.trained((d, 1, 4, 4), 16, 1.4, "patch.weight"), net.vector(d))
        x = tokens_of(net, net.op("Conv", x, *w, kernel_shape=[4, 4], strides=[4, 4]), d, n)
        with net.scope(name):
            x = net.add(x, attention(net, layer_norm(net, x, d, hint="n"), n, d, heads, lambda q: by_row_and_column(net, q, side, d, form), like=x))
        made.append(x)
    like = net.op("MatMul", unit_length(net, made[0]), net.transpose(unit_length(net, made[1]), 0, 2, 1))
    net.output(net.softmax(net.mul(like, net.const(net.pick(4.0, 6.0))), 3), "matches")


def light_curves(net):
    """A dark picture: its brightness to layers, which give curves that are applied again and again, and light as a screen shows it."""
    x = lit(net)
    grey = brightness(net, x)
    h = activation(net, conv(net, net.concat(x, grey, axis=1), 4, 10, 3, hint="c1"), "relu")
    h = activation(net, conv(net, h, 10, 10, 3, hint="c2"), "relu")
    a = net.op("Tanh", conv(net, h, 10, 6, 3, hint="c3", gain=0.8))
    for part in net.split(a, [3, 3], 1):
        x = net.add(x, net.mul(part, net.op("Sub", net.mul(x, x), x)))
    x = net.op("Pow", net.clip(x, 1e-3, None), net.const(net.pick(1 / 2.2, 0.6)))
    net.output(net.clip(x, 0.0, 1.0), "brighter")


def sensor_to_screen(net):
    """Light as a sensor counts it: four places of a cell become channels, layers, colours, gain by how bright it is, and a screen's curve."""
    raw = net.op("Div", net.op("Max", net.input("raw", [BATCH, 1, 16, 16], "pixels"), net.const(0.0)), net.const(255.0))
    x = net.op("SpaceToDepth", raw, blocksize=2)
    x = activation(net, conv(net, x, 4, 12, 3, hint="c1"), net.pick("relu", "leaky"))
    x = net.op("DepthToSpace", conv(net, x, 12, 12, 3, hint="c2"), blocksize=2, mode="DCR")
    x = net.op("Sigmoid", x)
    gain = net.op("Sigmoid", conv(net, brightness(net, x), 1, 3, 3, hint="gain"))
    x = net.mul(x, net.add(gain, net.const(0.5)))
    net.output(net.op("Pow", net.clip(x, 1e-4, None), net.const(net.pick(1 / 2.2, 1 / 2.4))), "srgb")


def grey_counter(net):
    """How many are in a picture, from its brightness: a map of densities and their sum."""
    x = brightness(net, lit(net))
    n, act = 10, net.pick("relu", "elu")
    x = conv_bn(net, conv_bn(net, x, 1, n, 5, act, stride=2, hint="c1"), n, n, 3, act, hint="c2")
    d = net.op("Softplus", conv(net, x, n, 1, 1, hint="density"))
    net.output(net.reduce("Sum", d, [2, 3], 0), "count")
    net.output(d, "map")


def powered_search(net):
    """A picture as a vector of length one, from means that are near the largest."""
    n = 12
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c1"), n, n, 3, "relu", stride=2, hint="c2")
    y = power_mean(net, x, net.pick(2.5, 4.0, 3.0))
    net.output(unit_length(net, linear(net, unit_length(net, y), n, 10, rank=2, hint="whiten")), "vector")


def powered_tiles(net):
    """A large slide in tiles: each tile's means of a power, and what all say by weights that are learned."""
    n, tiles = 8, 4
    x = net.reshape(net.input("tiles", [BATCH, 12, 16, 8], "image"), [-1, 3, 16, 8])
    x = conv_bn(net, x, 3, n, 3, net.pick("relu", "hardswish"), stride=2, hint="c1")
    y = net.reshape(power_mean(net, x, net.pick(2.0, 3.0, 5.0)), [BATCH, tiles, n], like="tiles")
    score = linear(net, net.mul(net.op("Tanh", linear(net, y, n, 6, hint="V")), net.op("Sigmoid", linear(net, y, n, 6, hint="U"))), 6, 1, hint="w", gain=2.0)
    share = net.softmax(net.transpose(score, 0, 2, 1), 3)
    net.output(linear(net, net.squeeze(net.op("MatMul", share, y), 1), n, 5, rank=2, hint="slide", gain=2.0), "grade")
    net.output(share, "weights")


def sloped_faces(net):
    """Faces by separable layers, each channel with its own slope below zero; a vector at the end."""
    n = 12
    x = slopes(net, conv_bn(net, images(net), 3, n, 3, None, stride=2, hint="conv1"), n)
    for i in range(2):
        with net.scope(f"bottle.{i}"):
            y = slopes(net, conv_bn(net, x, n, n, 1, None, hint="expand"), n)
            y = slopes(net, conv_bn(net, y, n, n, 3, None, groups=n, hint="dw"), n)
            x = net.add(x, conv_bn(net, y, n, n, 1, None, hint="project"))
    y = conv_bn(net, x, n, n, 8, None, groups=n, pads=[0] * 4, hint="global")
    net.output(linear(net, net.op("Flatten", y, axis=1), n, 16, rank=2, hint="embed"), "face")


def sloped_enlarger(net):
    """Three times as large; slopes below zero are learned, and what layers add goes onto the picture."""
    n = 10
    x = net.input("low", [BATCH, 1, 8, 8], "image")
    y = slopes(net, conv(net, x, 1, n, 5, hint="feature"), n, -0.4, 1.4)
    for i in range(2):
        y = slopes(net, conv(net, y, n, n, 3, hint=f"map{i}"), n, -0.4, 1.4)
    y = up_conv(net, y, n, 1, hint="up")
    net.output(net.add(resize(net, x, 2.0, (1, 16, 16), net.pick("linear", "nearest")), y), "high")


def scan_segments(net):
    """A body in slices: convolutions in space, norms of each scan, down and up; shares of tissues at each point."""
    n = 6
    x = net.input("scan", [BATCH, 1, 8, 8, 8], "image")

    def layer(x, a, b, stride=1, hint="l"):
        with net.scope(hint):
            y = conv(net, x, a, b, 3, stride=stride, rank=3, bias=False, hint="conv")
            y = net.op("InstanceNormalization", y, net.vector(b, 1.0, 0.2, "weight"), net.vector(b, 0, 0.2), epsilon=1e-5)
            return net.op("LeakyRelu", y, alpha=0.01)
    a = layer(x, 1, n, hint="enc1")
    b = layer(a, n, 2 * n, 2, hint="enc2")
    with net.scope("up"):
        up = net.op("ConvTranspose", b, net.trained((2 * n, n, 2, 2, 2), 2 * n, 1.2), net.vector(n), kernel_shape=[2] * 3, strides=[2] * 3)
    y = layer(net.concat(up, a, axis=1), 2 * n, n, hint="dec1")
    net.output(net.softmax(conv(net, y, n, 4, 1, rank=3, hint="out", gain=2.0), 5, 1), "tissues")


def field_indices(net):
    """Light of four colours from above: ratios of differences to sums beside it, and what grows where."""
    x = net.op("Div", net.add(net.input("bands", [BATCH, 4, 16, 16], "pixels"), net.const(1.0)), net.const(256.0))
    red, green, blue, infra = net.split(x, [1] * 4, 1)
    index = [net.op("Div", net.op("Sub", a, b), net.add(net.add(a, b), net.const(0.1))) for a, b in ((infra, red), (green, infra))]
    soil = net.mul(net.op("Div", net.op("Sub", infra, red), net.add(net.add(infra, red), net.const(0.5))), net.const(1.5))
    x = net.concat(x, *index, soil, axis=1)
    n = 10
    x = conv_bn(net, conv_bn(net, x, 7, n, 3, "relu", hint="c1"), n, n, 3, "relu", dilation=2, pads=[2] * 4, hint="c2")
    wide = conv_bn(net, x, n, n, 3, "relu", stride=2, hint="wide")
    x = net.add(x, resize(net, wide, 2.0, (n, 16, 16), "nearest"))
    net.output(net.op("Relu", net.concat(*index, axis=1)), "indices")
    net.output(net.softmax(conv(net, x, n, 5, 1, hint="classes", gain=2.0), 4, 1), "cover")


def events_and_frames(net):
    """A frame beside counts of what became brighter and darker; each says how much of the other counts."""
    n = 8
    f = conv_bn(net, net.input("frame", [BATCH, 1, 16, 16], "image"), 1, n, 3, "relu", stride=2, hint="frame")
    e = net.op("Log", net.add(net.input("events", [BATCH, 2, 16, 16], "counts"), net.const(1.0)))
    e = conv_bn(net, e, 2, n, 3, "relu", stride=2, hint="event")
    both = net.concat(f, e, axis=1)
    gate = net.op("Sigmoid", conv(net, both, 2 * n, 2 * n, 1, hint="gate"))
    a, b = net.split(gate, [n, n], 1)
    x = net.add(net.mul(f, a), net.mul(e, b))
    x = batch_norm(net, net.op("Relu", conv(net, x, n, n, 3, hint="mix")), n, "bn")
    net.output(linear(net, global_pool(net, x, keep=False), n, 6, rank=2, hint="steer", gain=2.0), "motion")
