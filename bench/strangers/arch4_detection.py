"""Fourth generation: networks that find things, and where they are."""
import numpy as np

from blocks import activation, layer_norm, linear
from layers4 import attend, feed_forward, from_heads, learned, norm_of, self_attention, to_heads
from net import BATCH
from vision import conv, conv_bn, global_pool, images, pool, resize


def cells(side, stride=1.0):
    """[1, side * side, 2]: the middle of each cell."""
    x, y = np.meshgrid(np.arange(side) + 0.5, np.arange(side) + 0.5)
    return (np.stack([x, y], -1).reshape(1, -1, 2) * stride).astype(np.float32)


def rows(net, y, n, count):
    """[B, n, h, w] to [B, h * w, n]."""
    return net.transpose(net.reshape(y, [BATCH, n, count], like=y), 0, 2, 1)


def joined(net, parts):
    """Corners from single columns, as TensorFlow's models and torch's both do."""
    return net.concat(*parts, axis=2)


def ssd_lite(net):
    """Prior boxes, and by how much they are off, in tenths and fifths."""
    n, act = net.pick(8, 12), net.pick("relu6", "relu", "hardswish")
    x = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="base")
    boxes, scores = [], []
    for i, side in enumerate((8, 4)):
        with net.scope(f"level{side}"):
            if i:
                x = conv_bn(net, x, n, n, 3, act, stride=2, hint="down")
            d = rows(net, conv(net, x, n, 4, 3, hint="loc", gain=2.0), 4, side * side)
            prior, size = cells(side, 16 / side), 20.0 / side
            move, grow = net.split(d, [2, 2], 2)
            centre = net.add(net.mul(net.mul(move, net.const(0.1)), net.const(size)), net.const(prior))
            wide = net.mul(net.op("Exp", net.mul(grow, net.const(0.2))), net.const(size))
            low = net.op("Sub", centre, net.op("Div", wide, net.const(2.0)))
            (x1, y1), (w, h) = net.split(low, [1, 1], 2), net.split(wide, [1, 1], 2)
            boxes.append(joined(net, [x1, y1, net.add(x1, w), net.add(y1, h)]))
            scores.append(rows(net, conv(net, x, n, 4, 3, hint="conf", gain=2.0), 4, side * side))
    net.output(net.concat(*boxes, axis=1), "boxes")
    net.output(net.softmax(net.concat(*scores, axis=1), 3), "scores")


def yolox(net):
    """No anchors: how far from the cell, how large, whether anything, and what."""
    n, act = net.pick(8, 12), net.pick("swish", "leaky")
    p3 = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="dark3")
    p4 = conv_bn(net, p3, n, n, 3, act, stride=2, hint="dark4")
    boxes, scores = [], []
    for p, side, stride in ((p3, 8, 2.0), (p4, 4, 4.0)):
        with net.scope(f"head{side}"):
            t = conv_bn(net, p, n, n, 1, act, hint="stem")
            reg = rows(net, conv(net, t, n, 4, 1, hint="reg"), 4, side * side)
            obj = net.op("Sigmoid", rows(net, conv(net, t, n, 1, 1, hint="obj", gain=2.0), 1, side * side))
            cls = net.op("Sigmoid", rows(net, conv(net, t, n, 5, 1, hint="cls", gain=2.0), 5, side * side))
            xy, wh = net.split(reg, [2, 2], 2)
            xy = net.mul(net.add(xy, net.const(cells(side) - 0.5)), net.const(stride))
            wh = net.mul(net.op("Exp", wh), net.const(stride))
            (cx, cy), (w, h) = net.split(xy, [1, 1], 2), net.split(wh, [1, 1], 2)
            half = net.const(0.5)
            w, h = net.mul(w, half), net.mul(h, half)
            boxes.append(joined(net, [net.op("Sub", cx, w), net.op("Sub", cy, h), net.add(cx, w), net.add(cy, h)]))
            scores.append(net.mul(obj, cls))
    net.output(net.concat(*boxes, axis=1), "boxes")
    net.output(net.concat(*scores, axis=1), "scores")


def text_boxes(net):
    """How likely text is, and where to cut: a steep curve between the two."""
    n = net.pick(8, 10)
    c2 = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c2")
    c3 = conv_bn(net, c2, n, n, 3, "relu", stride=2, hint="c3")
    up = resize(net, conv(net, c3, n, n, 1, hint="lateral"), 2.0, (n, 8, 8), "nearest")
    f = conv_bn(net, net.add(up, conv(net, c2, n, n, 1, hint="lateral2")), n, n, 3, "relu", hint="smooth")
    prob = net.op("Sigmoid", conv(net, f, n, 1, 3, hint="prob", gain=2.0))
    cut = net.op("Sigmoid", conv(net, f, n, 1, 3, hint="thresh", gain=2.0))
    steep = net.op("Neg", net.mul(net.op("Sub", prob, cut), net.const(net.pick(10.0, 6.0))))
    net.output(prob, "probability")
    net.output(net.op("Div", net.const(1.0), net.add(net.op("Exp", steep), net.const(1.0))), "binary")


def refine_boxes(net):
    """Boxes that come in are moved by what a pyramid says about the whole image, twice."""
    given = net.input("proposals", [BATCH, 6, 4], "boxes")
    f = global_pool(net, conv_bn(net, images(net), 3, 12, 3, "relu", stride=2, hint="body"), keep=False)
    for i in range(2):
        with net.scope(f"stage{i}"):
            x1, y1, x2, y2 = net.split(given, [1, 1, 1, 1], 2)
            w, h = net.op("Sub", x2, x1), net.op("Sub", y2, y1)
            cx, cy = net.add(x1, net.mul(w, net.const(0.5))), net.add(y1, net.mul(h, net.const(0.5)))
            shape = net.op("Div", net.concat(cx, cy, w, h, axis=2), net.const(16.0))
            t = net.add(linear(net, shape, 4, 12, rank=3, hint="shape"), net.unsqueeze(linear(net, f, 12, 12, rank=2, hint="body"), 1))
            dx, dy, dw, dh = net.split(linear(net, activation(net, t, "relu"), 12, 4, hint="delta"), [1, 1, 1, 1], 2)
            variance = net.const(0.1), net.const(0.2)
            cx, cy = (net.add(c, net.mul(net.mul(d, variance[0]), s)) for c, d, s in ((cx, dx, w), (cy, dy, h)))
            w, h = (net.mul(s, net.op("Exp", net.mul(d, variance[1]))) for s, d in ((w, dw), (h, dh)))
            hw, hh = net.mul(w, net.const(0.5)), net.mul(h, net.const(0.5))
            given = joined(net, [net.op("Sub", cx, hw), net.op("Sub", cy, hh), net.add(cx, hw), net.add(cy, hh)])
    net.output(given, "boxes")


def query_detector(net):
    """Questions that were learned ask an image's places; boxes are near where a question looks."""
    d = 16
    image = images(net)
    x = conv_bn(net, conv_bn(net, image, 3, d, 3, "relu", stride=2, hint="c1"), d, d, 3, "relu", stride=2, hint="c2")
    memory = rows(net, x, d, 16)
    memory = net.add(memory, learned(net, (1, 16, d), "positions"))
    memory = layer_norm(net, net.add(memory, self_attention(net, memory, 16, d, 2, like=image)), d, hint="enc")
    q = net.add(net.mul(net.reduce("Mean", memory, [1]), net.const(0.1)), learned(net, (1, 5, d), "queries", 1.0))
    with net.scope("cross"):
        a = [to_heads(net, linear(net, t, d, d, hint=h), k, 2, 8, image) for t, h, k in ((q, "q", 5), (memory, "k", 16), (memory, "v", 16))]
        q = layer_norm(net, net.add(q, linear(net, from_heads(net, attend(net, *a, 8), 5, d, image), d, d, hint="o")), d)
    q = layer_norm(net, net.add(q, feed_forward(net, q, d, 24, "relu")), d, hint="dec")
    reference = net.const(np.log(cells(5)[:, :5] / 5 / (1.001 - cells(5)[:, :5] / 5)))
    move, grow = net.split(linear(net, q, d, 4, hint="bbox"), [2, 2], 2)
    centre, size = net.op("Sigmoid", net.add(move, reference)), net.op("Sigmoid", grow)
    half = net.mul(size, net.const(0.5))
    net.output(net.mul(net.concat(net.op("Sub", centre, half), net.add(centre, half), axis=2), net.const([16.0, 16.0, 16.0, 16.0])), "boxes")
    net.output(net.softmax(linear(net, q, d, 6, hint="class", gain=2.0), 3), "scores")


def shared_head(net):
    """Three levels by one head, whose norms are each level's own."""
    n, act = net.pick(8, 12), net.pick("swish", "relu")
    w = net.trained((n, n, 3, 3), 9 * n, 1.4, "tower.weight")
    p, outs = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="p0"), []
    final, bias = net.trained((3, n, 1, 1), n, 2.0, "cls.weight"), net.vector(3)
    for i, side in enumerate((8, 4, 2)):
        with net.scope(f"level{i}"):
            if i:
                p = pool(net, p, net.pick("Max", "Average"))
            t = net.op("Conv", p, w, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            t = activation(net, norm_of(net, t, n), act)
            outs.append(rows(net, net.op("Conv", t, final, bias, kernel_shape=[1, 1]), 3, side * side))
    net.output(net.op("Sigmoid", net.concat(*outs, axis=1)), "scores")


def landmarks(net):
    """A box, whether it is a face, and five points, from one level."""
    n = net.pick(8, 12)
    x = conv_bn(net, images(net), 3, n, 3, "leaky", stride=2, hint="body1")
    x = conv_bn(net, x, n, n, 3, "leaky", stride=2, hint="body2")
    a, b = conv(net, x, n, n, 3, hint="ssh1"), conv(net, x, n, n, 5, hint="ssh2")
    x = activation(net, net.op("Sum", a, b, conv(net, x, n, n, 1, hint="ssh3")), "relu")
    prior, size = cells(4, 4.0), 6.0
    points = net.reshape(rows(net, conv(net, x, n, 10, 1, hint="landm"), 10, 16), [BATCH, 16, 5, 2], like=x)
    points = net.add(net.mul(net.mul(points, net.const(0.1)), net.const(size)), net.const(prior[:, :, None]))
    face = net.softmax(rows(net, conv(net, x, n, 2, 1, hint="face", gain=2.0), 2, 16), 3)
    net.output(points, "points")
    net.output(net.slice(face, 2, 1, 2), "face")


def lanes(net):
    """For each row of the image, in which of some columns a lane lies."""
    n, act = net.pick(8, 10), net.pick("relu", "swish")
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="l1"), n, n, 3, act, stride=2, hint="l2")
    f = net.reshape(conv(net, x, n, 4, 1, hint="pool"), [BATCH, 64], like=x)
    f = activation(net, linear(net, f, 64, 32, rank=2, hint="fc"), "relu")
    grid = net.reshape(linear(net, f, 32, 6 * 4 * 2, rank=2, hint="cls", gain=2.0), [BATCH, 6, 4, 2], like=x)
    share = net.softmax(grid, 4, axis=1)
    where = net.reduce("Sum", net.mul(share, net.const(np.arange(1, 7).reshape(1, 6, 1, 1))), [1], 0)
    net.output(where, "columns")
    net.output(net.reduce("Max", grid, [1], 0), "confidence")


def anchor_net(net):
    """Three anchors in each cell, of two levels; how sure it is, and of what."""
    n, act = net.pick(8, 12), net.pick("leaky", "swish")
    p = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="p1")
    boxes, scores = [], []
    for side, stride in ((8, 2.0), (4, 4.0)):
        with net.scope(f"detect{side}"):
            if side == 4:
                p = conv_bn(net, p, n, n, 3, act, stride=2, hint="down")
            y = net.reshape(conv(net, p, n, 2 * 9, 1, hint="m", gain=2.0), [BATCH, 2, 9, side * side], like=p)
            y = net.reshape(net.transpose(y, 0, 1, 3, 2), [BATCH, 2 * side * side, 9], like=p)
            xy, wh, obj, cls = net.split(y, [2, 2, 1, 4], 2)
            xy = net.mul(net.add(net.op("Sigmoid", xy), net.const(np.tile(cells(side) - 0.5, (1, 2, 1)))), net.const(stride))
            wh = net.mul(net.op("Exp", wh), net.const(stride))
            low = net.op("Sub", xy, net.mul(wh, net.const(0.5)))
            (x1, y1), (w, h) = net.split(low, [1, 1], 2), net.split(wh, [1, 1], 2)
            boxes.append(joined(net, [x1, y1, net.add(x1, w), net.add(y1, h)]))
            scores.append(net.mul(net.op("Sigmoid", cls), net.op("Sigmoid", obj)))
    net.output(net.concat(*boxes, axis=1), "boxes")
    net.output(net.concat(*scores, axis=1), "scores")


def overlap_net(net):
    """Boxes of two images: how much each covers of each, how alike they look, and how likely they are the same thing."""
    first, second = net.input("boxes_a", [BATCH, 5, 4], "boxes"), net.input("boxes_b", [BATCH, 5, 4], "boxes")
    looks = [net.input(f"looks_{k}", [BATCH, 5, 6], "features") for k in "ab"]
    a, b = net.split(first, [1, 1, 1, 1], 2), [net.transpose(c, 0, 2, 1) for c in net.split(second, [1, 1, 1, 1], 2)]
    size = [net.clip(net.op("Sub", net.op("Min", a[i + 2], b[i + 2]), net.op("Max", a[i], b[i])), 0.0, None) for i in (0, 1)]
    x1, y1, x2, y2 = net.split(first, [1, 1, 1, 1], 2)
    area = net.mul(net.op("Sub", x2, x1), net.op("Sub", y2, y1))
    share = net.op("Div", net.mul(*size), net.add(area, net.const(1.0)))
    e = [linear(net, x, 6, 8, hint=f"embed{i}") for i, x in enumerate(looks)]
    e = [net.op("Div", x, net.op("Sqrt", net.add(net.reduce("Sum", net.mul(x, x), [2]), net.const(1e-6)))) for x in e]
    alike = net.op("MatMul", e[0], net.transpose(e[1], 0, 2, 1))
    net.output(net.softmax(net.op("Div", net.add(alike, share), net.const(net.pick(0.3, 0.6))), 3), "same")
    net.output(share, "covered")


def box_tracker(net):
    """Where boxes were, and where they are now: a cell of each box's own looks and an image's mean."""
    before = net.input("before", [BATCH, 4, 4], "boxes")
    image = net.input("frame", [BATCH, 3, 16, 16], "pixels")
    x = net.op("Div", net.op("Sub", image, net.const(np.array([123.7, 116.3, 103.5]).reshape(3, 1, 1))), net.const(58.0))
    f = global_pool(net, conv_bn(net, x, 3, 10, 3, net.pick("relu", "swish"), stride=2, hint="body"), keep=False)
    x1, y1, x2, y2 = net.split(before, [1, 1, 1, 1], 2)
    w, h = net.op("Sub", x2, x1), net.op("Sub", y2, y1)
    t = net.add(linear(net, net.op("Div", before, net.const(16.0)), 4, 12, hint="where"), net.unsqueeze(linear(net, f, 10, 12, rank=2, hint="seen"), 1))
    t = activation(net, t, "tanh")
    dx, dy, dw, dh = net.split(linear(net, t, 12, 4, hint="move"), [1, 1, 1, 1], 2)
    cx = net.add(net.add(x1, net.mul(w, net.const(0.5))), net.mul(net.mul(dx, net.const(0.1)), w))
    cy = net.add(net.add(y1, net.mul(h, net.const(0.5))), net.mul(net.mul(dy, net.const(0.1)), h))
    w, h = net.mul(w, net.op("Exp", net.mul(dw, net.const(0.2)))), net.mul(h, net.op("Exp", net.mul(dh, net.const(0.2))))
    hw, hh = net.op("Div", w, net.const(2.0)), net.op("Div", h, net.const(2.0))
    net.output(joined(net, [net.op("Sub", cx, hw), net.op("Sub", cy, hh), net.add(cx, hw), net.add(cy, hh)]), "now")
    there = net.op("Sigmoid", linear(net, t, 12, 1, hint="there", gain=2.0))
    net.output(net.mul(there, net.op("Sigmoid", linear(net, t, 12, 3, hint="what", gain=2.0))), "scores")
