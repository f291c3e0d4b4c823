"""Seventh generation: networks that see, and that paint."""
import numpy as np

from blocks import activation, linear
from layers7 import (attention, bent_norm, blurred_twice_as_large, colours_of_broadcast, equal_rate_conv, haar, pre, response_norm, rows_of, shrunk, small_body,
                     two_layers)
from net import BATCH
from vision import conv, conv_bn, global_pool, images, resize, up_conv


def response_blocks(net):
    """Filters channel by channel, wide layers whose channels compete, sums; shares of classes."""
    x = conv(net, images(net, side=12), 3, 8, 2, stride=2, pads=[0] * 4, hint="stem")
    for i in range(2):
        with net.scope(f"stages.{i}"):
            y = conv(net, x, 8, 8, net.pick(3, 5), groups=8, hint="dwconv")
            y = activation(net, conv(net, y, 8, 16, 1, hint="pw1"), "gelu")
            x = net.add(x, conv(net, response_norm(net, y, 16), 16, 8, 1, hint="pw2"))
    net.output(net.softmax(linear(net, global_pool(net, x, keep=False), 8, 6, rank=2, hint="head", gain=2.0), 2), "classes")


def response_segments(net):
    """The same competition at half the size, and what each pixel belongs to."""
    x = images(net, "scan", 1, 8)
    a = activation(net, conv(net, x, 1, 8, 3, hint="enc1"), "relu")
    b = response_norm(net, activation(net, conv(net, a, 8, 12, 3, stride=2, hint="enc2"), net.pick("relu", "gelu")), 12)
    y = net.concat(up_conv(net, b, 12, 8), a, axis=1)
    y = response_norm(net, activation(net, conv(net, y, 16, 8, 3, hint="dec"), "relu"), 8, hint="grn2")
    net.output(net.op("LogSoftmax", conv(net, y, 8, 3, 1, hint="out", gain=2.0), axis=1), "segments")


def bent_patches(net):
    """Patches as tokens, blocks with a tanh where norms stood, one vector."""
    x = rows_of(net, conv(net, images(net, side=12), 3, 12, 4, stride=4, pads=[0] * 4, hint="patch"), 12, 9)
    x = net.add(x, net.weight((0.3 * net.rng.standard_normal((1, 9, 12))).astype(np.float32), "pos"))
    for i in range(2):
        x = pre(net, x, 12, lambda y: attention(net, y, 9, 12, 2), 20, "gelu", bent_norm, hint=f"blocks.{i}")
    net.output(linear(net, net.reduce("Mean", bent_norm(net, x, 12, "norm"), [1], 0), 12, 8, rank=2, hint="head", gain=1.5), "vector")


def haar_textures(net):
    """Means and differences instead of strides; which texture."""
    x = haar(net, images(net, side=16), 3)
    x = conv_bn(net, x, 12, 12, 3, net.pick("relu", "leaky"), hint="b1")
    x = haar(net, conv(net, x, 12, 6, 1, hint="squeeze"), 6, "dwt2")
    x = activation(net, conv(net, x, 24, 12, 3, hint="b2"), "relu")
    net.output(net.op("LogSoftmax", linear(net, global_pool(net, x, keep=False), 12, 7, rank=2, hint="fc", gain=2.0), axis=1), "textures")


def haar_cleaner(net):
    """Noise taken from the differences of a picture, and the picture put together again."""
    x = images(net, "noisy", 1, 12)
    bands = haar(net, x, 1)
    h = activation(net, conv(net, bands, 4, 12, 3, hint="c1"), "relu")
    h = activation(net, conv(net, h, 12, 12, 3, hint="c2"), net.pick("relu", "elu"))
    clean = net.op("Sub", bands, conv(net, h, 12, 4, 3, hint="c3"))
    net.output(net.op("DepthToSpace", clean, blocksize=2, mode="CRD"), "clean")
    net.output(net.reduce("Mean", net.op("Abs", bands), [2, 3], 0), "energies")


def broadcast_colours(net):
    """A picture as television sends it, to what it shows."""
    x = colours_of_broadcast(net, net.input("yuv", [BATCH, 3, 12, 12], "pixels"))
    x = small_body(net, x, 3, 10, net.pick("relu", "hardswish"))
    net.output(net.softmax(linear(net, net.reduce("Max", x, [2, 3], 0), 10, 6, rank=2, hint="fc", gain=2.0), 2), "shown")


def camera_stream(net):
    """Pictures of a camera in light and colours, to how far each pixel is and whether it is ground."""
    x = colours_of_broadcast(net, net.input("frame", [BATCH, 3, 8, 12], "pixels"))
    a = activation(net, conv(net, x, 3, 8, 3, hint="e1"), "leaky")
    b = activation(net, conv(net, a, 8, 12, 3, stride=2, hint="e2"), "leaky")
    y = net.add(conv(net, resize(net, b, 2, mode="nearest"), 12, 8, 3, hint="d1"), a)
    net.output(net.op("Softplus", conv(net, y, 8, 1, 3, hint="depth")), "depth")
    net.output(net.op("Sigmoid", conv(net, y, 8, 1, 1, hint="ground", gain=2.0)), "ground")


def equal_rate_painter(net):
    """A code to a picture: weights that are scaled in the graph, blurs between sizes."""
    z = net.input("code", [BATCH, 10], "features")
    z = activation(net, linear(net, z, 10, 32, rank=2, hint="mapping"), "leaky")
    x = net.reshape(linear(net, z, 32, 8 * 9, rank=2, hint="const"), [BATCH, 8, 3, 3], like=z)
    x = activation(net, equal_rate_conv(net, x, 8, 8, 3, "conv1"), "leaky")
    x = blurred_twice_as_large(net, x, 8, 3)
    x = activation(net, equal_rate_conv(net, x, 8, 6, 3, "conv2"), "leaky")
    net.output(net.op("Tanh", equal_rate_conv(net, x, 6, 3, 1, "to_rgb")), "picture")


def equal_rate_judge(net):
    """Whether a picture is a real one: weights scaled in the graph, means, a number."""
    x = activation(net, equal_rate_conv(net, images(net, side=12), 3, 8, 1, "from_rgb"), "leaky")
    for i in range(2):
        x = activation(net, equal_rate_conv(net, x, 8, 8, 3, f"b{i}.conv"), "leaky")
        x = net.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    net.output(linear(net, net.op("Flatten", x, axis=1), 72, 1, rank=2, hint="out"), "real")


def blurred_enlarger(net):
    """A small picture, twice as large by zeros and a blur, and layers that sharpen it."""
    x = images(net, "small", 3, 6)
    y = blurred_twice_as_large(net, x, 3, 6)
    h = activation(net, conv(net, y, 3, 10, 3, hint="c1"), "prelu", 10)
    net.output(net.add(y, conv(net, h, 10, 3, 3, hint="c2")), "large")


def grown_shapes(net):
    """Lines of a page: shrunk and grown again, what is lost by that, and layers."""
    x = net.op("Div", net.input("page", [BATCH, 1, 12, 12], "pixels"), net.const(255.0))
    k = net.pick(3, 5)
    opened = net.op("MaxPool", shrunk(net, x, k), kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4)
    y = net.concat(x, opened, net.op("Sub", x, opened), axis=1)
    y = activation(net, conv(net, y, 3, 8, 3, hint="c1"), "relu")
    net.output(net.op("Sigmoid", conv(net, y, 8, 1, 3, hint="c2", gain=2.0)), "lines")


def thin_cells(net):
    """Cells on a slide: a map of what is inside, shrunk until they part, and how many there may be."""
    y = small_body(net, images(net, "slide", 3, 12), 3, 8, stride=1)
    inside = net.op("Sigmoid", conv(net, y, 8, 1, 1, hint="inside", gain=3.0))
    cores = shrunk(net, inside, 3)
    net.output(inside, "inside")
    net.output(net.reduce("Sum", net.clip(net.op("Sub", cores, net.const(0.3)), 0.0, None), [1, 2, 3], 0), "count")


def median_cleaner(net):
    """Four pictures of the same: the middle of each pixel, then layers."""
    x = net.op("Div", net.input("burst", [BATCH, 4, 8, 8], "pixels"), net.const(255.0))
    y, _ = net.topk(x, 4, axis=1, largest=0)
    middle = net.mul(net.add(net.slice(y, 1, 1, 2), net.slice(y, 1, 2, 3)), net.const(0.5))
    h = activation(net, conv(net, net.concat(middle, x, axis=1), 5, 8, 3, hint="c1"), net.pick("relu", "leaky"))
    net.output(net.add(middle, conv(net, h, 8, 1, 3, hint="c2")), "clean")


def wide_strips(net):
    """Filters that look further to the side than up: lines of text in a picture."""
    x = activation(net, conv(net, images(net, "strip", 1, 12), 1, 8, 3, hint="in"), "relu")
    for i, wide in enumerate((2, 3)):
        with net.scope(f"strip{i}"):
            y = net.op("Conv", x, net.trained((8, 8, 3, 3), 72, 1.3), net.vector(8), kernel_shape=[3, 3], dilations=[1, wide], pads=[1, wide, 1, wide])
            x = net.add(x, net.clip(y, -net.pick(1.5, 2.0), 2.0) if i else activation(net, y, "relu"))
    net.output(net.op("LogSoftmax", linear(net, net.transpose(net.reduce("Mean", x, [2], 0), 0, 2, 1), 8, 9, hint="letters", gain=2.0), axis=-1), "letters")


def bicubic_enlarger(net):
    """Pictures made larger by cubics that leave out what is outside, and what layers add."""
    x = images(net, "small", 3, 6)
    h = activation(net, conv(net, x, 3, 8, 3, hint="c1"), "relu")
    more = dict(mode="cubic", coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.5, exclude_outside=1)
    roi = "" if net.opset >= 13 else net.const(np.zeros(0))
    large, detail = (net.op("Resize", v, roi, net.const([1, 1, 2, 2]), **more) for v in (x, h))
    net.output(net.add(large, conv(net, detail, 8, 3, 3, hint="c2")), "large")


def cubic_features(net):
    """Maps of two sizes, the smaller one made larger by cubics, added; a vector of length one."""
    a = activation(net, conv(net, images(net, side=8), 3, 8, 3, hint="c1"), "relu")
    b = activation(net, conv(net, a, 8, 8, 3, stride=2, hint="c2"), "relu")
    roi = "" if net.opset >= 13 else net.const(np.zeros(0))
    more = dict(mode="cubic", coordinate_transformation_mode="half_pixel", cubic_coeff_a=net.pick(-0.5, -0.75), exclude_outside=1)
    y = activation(net, net.add(a, net.op("Resize", conv(net, b, 8, 8, 1, hint="lat"), roi, net.const([1, 1, 2, 2]), **more)), "relu")
    v = linear(net, global_pool(net, y, keep=False), 8, 10, rank=2, hint="vector")
    net.output(net.op("Div", v, net.add(net.reduce("L2", v, [1]), net.const(1e-6))), "vector")


def power_pools(net):
    """Powers of neighbourhoods, between their mean and their largest; classes."""
    x = net.op("Div", net.input("photo", [BATCH, 3, 12, 12], "pixels"), net.const(255.0))
    x = activation(net, conv(net, x, 3, 8, 3, hint="c1"), "relu")
    x = net.op("LpPool", x, kernel_shape=[2, 2], strides=[2, 2], p=net.pick(3, 4))
    x = activation(net, conv(net, x, 8, 10, 3, hint="c2"), "relu")
    x = net.op("LpPool", x, kernel_shape=[3, 3], strides=[3, 3], p=3)
    net.output(linear(net, net.op("Flatten", x, axis=1), 40, 6, rank=2, hint="fc"), "classes")


def words_of_pictures(net):
    """Each place of a picture to the nearest word of a book, by ones and zeros, and the picture again from the words."""
    h = small_body(net, images(net, side=8), 3, 8)
    rows = rows_of(net, h, 8, 16)
    book = 0.8 * net.rng.standard_normal((12, 8)).astype(np.float32)
    near = net.op("Sub", net.op("MatMul", rows, net.weight(np.ascontiguousarray(2 * book.T), "book_t")), net.const((book * book).sum(1)))
    pick = net.op("Hardmax", near, axis=2)
    words = net.transpose(net.op("MatMul", pick, net.weight(book, "book")), 0, 2, 1)
    y = up_conv(net, net.reshape(words, [BATCH, 8, 4, 4], like=h), 8, 3)
    net.output(net.op("Tanh", y), "again")
    net.output(net.reduce("Mean", pick, [1], 0), "counts")


def tanh_sketches(net):
    """Layers between hard limits, for a chip that has no more bits: sketches to kinds."""
    x = images(net, "sketch", 1, 12)
    limit = net.pick(1.5, 2.0, 3.0)
    for i in range(2):
        x = net.clip(conv(net, x, 1 if i == 0 else 8, 8, 3, stride=2, hint=f"c{i}", gain=2.5), -limit, limit)
    h = two_layers(net, net.op("Flatten", x, axis=1), 72, 16, 5, "tanh", hint="head")
    net.output(net.op("Hardmax", h, axis=1) if net.pick(True, False) else net.softmax(h, 2), "kind")
    net.output(h, "scores")
