"""Fifth generation: networks that find things, and where they are."""
import numpy as np

from blocks import activation, layer_norm, linear
from layers4 import feed_forward, learned
from layers5 import cross_attention, flat_tokens, unit_length
from net import BATCH
from vision import conv, conv_bn, global_pool, images, resize


def places(side, offset=0.5):
    """[1, side * side, 2]: each cell's column and row."""
    x, y = np.meshgrid(np.arange(side) + offset, np.arange(side) + offset)
    return np.stack([x, y], -1).reshape(1, -1, 2).astype(np.float32)


def doubled_sigmoid(net):
    """Anchors, offsets that reach into neighbouring cells, sizes as squares; corners at the end."""
    n, act = 10, net.pick("swish", "leaky", "mish")
    p3 = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="p3")
    p4 = conv_bn(net, p3, n, n, 3, act, stride=2, hint="p4")
    out = []
    for p, side, stride, anchor in ((p3, 8, 2.0, (3.0, 4.0)), (p4, 4, 4.0, (7.0, 6.0))):
        with net.scope(f"model.24/m.{side}"):
            y = net.op("Sigmoid", flat_tokens(net, conv(net, p, n, 8, 1, hint="conv", gain=1.5), 8, side * side))
            xy, wh, rest = net.split(y, [2, 2, 4], 2)
            xy = net.mul(net.add(net.op("Sub", net.mul(xy, net.const(2.0)), net.const(0.5)), net.const(places(side, 0.0))), net.const(stride))
            wh = net.mul(net.op("Pow", net.mul(wh, net.const(2.0)), net.const(2.0)), net.const(np.array(anchor).reshape(1, 1, 2)))
            half = net.mul(wh, net.const(0.5))
            out.append(net.concat(net.op("Sub", xy, half), net.add(xy, half), rest, axis=2))
    net.output(net.concat(*out, axis=1), "output")


def binned_distances(net):
    """How far each side is, as a mean over bins; boxes in pixels, scores beside them."""
    n, bins, act = 10, net.pick(4, 8), "swish"
    x = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="stem")
    boxes, scores = [], []
    for i, (side, stride) in enumerate(((8, 2.0), (4, 4.0))):
        with net.scope(f"detect{i}"):
            x = x if i == 0 else conv_bn(net, x, n, n, 3, act, stride=2, hint="down")
            reg = conv(net, conv_bn(net, x, n, n, 3, act, hint="cv2"), n, 4 * bins, 1, hint="reg", gain=1.5)
            reg = net.transpose(net.reshape(reg, [BATCH, 4, bins, side * side], like=x), 0, 3, 1, 2)
            share = net.softmax(reg, 4)
            distance = net.squeeze(net.op("MatMul", share, net.weight(np.arange(bins, dtype=np.float32).reshape(bins, 1), "project")), 3)
            near, far = net.split(distance, [2, 2], 2)
            low, high = net.op("Sub", net.const(places(side)), near), net.add(net.const(places(side)), far)
            boxes.append(net.mul(net.concat(low, high, axis=2), net.const(stride)))
            scores.append(net.op("Sigmoid", flat_tokens(net, conv(net, x, n, 3, 3, hint="cls", gain=2.0), 3, side * side)))
    net.output(net.clip(net.concat(*boxes, axis=1), 0.0, 16.0), "boxes")
    net.output(net.concat(*scores, axis=1), "scores")


def pooled_regions(net):
    """What a picture has in each of given boxes, at a third of its size; the boxes of one picture."""
    boxes = net.input("rois", [5, 4], "boxes")
    x = conv_bn(net, images(net), 3, 10, 3, "relu", stride=2, hint="body")
    x = net.op("RoiAlign", x, boxes, net.const(np.zeros(5), np.int64), output_height=3, output_width=3, spatial_scale=0.5,
               sampling_ratio=net.pick(0, 2, 3), **({"coordinate_transformation_mode": "half_pixel"} if net.opset >= 16 else {}))
    x = activation(net, conv(net, x, 10, 8, 3, hint="mask1"), "relu")
    shape = net.op("Sigmoid", conv(net, x, 8, 1, 1, hint="mask", gain=2.0))
    h = activation(net, linear(net, net.op("Flatten", x, axis=1), 72, 24, rank=2, hint="fc"), "relu")
    net.output(shape, "masks")
    net.output(net.softmax(linear(net, h, 24, 5, rank=2, hint="cls", gain=2.0), 2), "classes")


def kept_boxes(net):
    """Boxes of one picture; those that are better than their neighbours of the same class keep their score."""
    n, count = 10, 16
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c1"), n, n, 3, "relu", stride=2, hint="c2")
    d = flat_tokens(net, conv(net, x, n, 4, 3, hint="box", gain=1.2), 4, count)
    score = net.op("Sigmoid", flat_tokens(net, conv(net, x, n, 3, 3, hint="cls", gain=2.5), 3, count))
    move, grow = net.split(d, [2, 2], 2)
    centre = net.mul(net.add(net.op("Tanh", move), net.const(places(4))), net.const(4.0))
    half = net.mul(net.op("Exp", net.clip(grow, -2.0, 2.0)), net.const(4.0))
    boxes = net.concat(net.op("Sub", centre, half), net.add(centre, half), axis=2)
    best = net.op("ReduceMax", score, net.ints(-1), keepdims=1) if net.opset >= 18 else net.op("ReduceMax", score, axes=[-1], keepdims=1)
    kind = net.op("Cast", net.op("ArgMax", score, axis=2, keepdims=1), to=1)
    apart = net.add(boxes, net.mul(kind, net.const(net.pick(64.0, 4096.0))))
    kept = net.op("NonMaxSuppression", apart, net.transpose(best, 0, 2, 1), net.ints(count), net.const([0.3]), net.const([net.pick(0.5, 0.6)]))
    where = net.slice(kept, 1, 2, 3)
    marks = net.op("ScatterND", net.const(np.zeros(count)), where, net.op("Cast", net.op("Greater", net.op("Cast", net.squeeze(where, 1), to=1),
                                                                                              net.const(-1.0)), to=1))
    net.output(boxes, "boxes")
    net.output(net.mul(score, net.unsqueeze(marks, 0, 2)), "kept")


def moved_references(net):
    """Points that were learned are moved, layer by layer, on the scale where a sigmoid is undone."""
    d, q = 16, 6
    image = images(net)
    x = conv_bn(net, conv_bn(net, image, 3, d, 3, "relu", stride=2, hint="c1"), d, d, 3, "relu", stride=2, hint="c2")
    memory = net.add(flat_tokens(net, x, d, 16), learned(net, (1, 16, d), "position"))
    h = net.add(net.mul(net.reduce("Mean", memory, [1]), net.const(0.2)), learned(net, (1, q, d), "queries", 1.0))
    reference = net.op("Sigmoid", linear(net, h, d, 2, hint="reference"))
    for i in range(2):
        with net.scope(f"decoder/{i}"):
            h = layer_norm(net, net.add(h, cross_attention(net, h, memory, q, 16, d, 2, like=image)), d, hint="norm2")
            h = layer_norm(net, net.add(h, feed_forward(net, h, d, 24, "relu")), d, hint="norm3")
            safe = net.clip(reference, 1e-5, 1 - 1e-5)
            undone = net.op("Log", net.op("Div", safe, net.op("Sub", net.const(1.0), safe)))
            reference = net.op("Sigmoid", net.add(undone, linear(net, h, d, 2, hint="move")))
    net.output(reference, "points")
    net.output(net.op("Sigmoid", linear(net, h, d, 4, hint="class", gain=2.0)), "scores")


def turned_boxes(net):
    """Boxes with an angle in degrees: the four corners of each."""
    n, act = 10, net.pick("relu", "swish")
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="c1"), n, n, 3, act, stride=2, hint="c2")
    y = flat_tokens(net, conv(net, x, n, 5, 3, hint="head"), 5, 16)
    move, grow, turn = net.split(y, [2, 2, 1], 2)
    centre = net.mul(net.add(net.op("Tanh", move), net.const(places(4))), net.const(4.0))
    size = net.mul(net.op("Exp", net.clip(grow, -3.0, 3.0)), net.const(2.0))
    degrees = net.mul(net.op("Tanh", turn), net.const(90.0))
    angle = net.mul(degrees, net.const(np.pi / 180)) if net.pick(True, False) else net.op("Div", degrees, net.const(180 / np.pi))
    cos, sin = net.op("Cos", angle), net.op("Sin", angle)
    w, h = net.split(size, [1, 1], 2)
    ax, ay, bx, by = net.mul(w, cos), net.mul(w, sin), net.mul(h, sin), net.mul(h, cos)
    a, b = net.concat(ax, ay, axis=2), net.concat(net.op("Neg", bx), by, axis=2)
    corners = [net.add(net.add(centre, p), q) for p in (a, net.op("Neg", a)) for q in (b, net.op("Neg", b))]
    net.output(net.concat(*corners, axis=2), "corners")
    net.output(degrees, "degrees")


def soft_points(net):
    """Where each joint is, as the mean place of a heat map; in the picture's pixels, their middles at one half."""
    n, joints = 10, net.pick(4, 5)
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c1")
    x = conv_bn(net, x, n, n, 3, "relu", hint="c2")
    heat = net.reshape(conv(net, x, n, joints, 1, hint="heat", gain=3.0), [BATCH, joints, 64], like=x)
    share = net.softmax(net.mul(heat, net.const(net.pick(1.0, 2.0))), 3)
    at = net.op("MatMul", share, net.const(places(8, 0.0)[0]))
    at = net.mul(net.add(at, net.const(0.5)), net.const(2.0))
    most = net.reduce("Max", share, [2])
    net.output(net.concat(at, most, axis=2), "joints")


def prototype_masks(net):
    """Shapes that all share, and how much of each a thing has; cut out after the picture's size is reached."""
    n, count = 8, 4
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c1")
    protos = activation(net, conv(net, x, n, count, 3, hint="proto"), "relu")
    deep = conv_bn(net, conv_bn(net, x, n, n, 3, "relu", stride=2, hint="c2"), n, n, 3, "relu", stride=2, hint="c3")
    amounts = net.op("Tanh", flat_tokens(net, conv(net, deep, n, count, 1, hint="coef", gain=1.5), count, 4))
    y = net.op("MatMul", amounts, net.reshape(protos, [BATCH, count, 64], like=x))
    y = resize(net, net.reshape(y, [BATCH, 4, 8, 8], like=x), 2.0, (4, 16, 16))
    net.output(net.op("Sigmoid", y), "masks")
    net.output(net.softmax(flat_tokens(net, conv(net, deep, n, 3, 1, hint="cls", gain=2.0), 3, 4), 3), "classes")


def centre_distance(net):
    """From each place to four sides, by a scale of each level; how central it is counts."""
    n = 10
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="p3")
    boxes, scores = [], []
    for i, (side, stride) in enumerate(((8, 2.0), (4, 4.0))):
        with net.scope(f"fcos{i}"):
            x = x if i == 0 else conv_bn(net, x, n, n, 3, "relu", stride=2, hint="down")
            t = conv_bn(net, x, n, n, 3, "relu", hint="tower")
            d = net.mul(conv(net, t, n, 4, 3, hint="reg"), net.const(net.pick(0.8, 1.3)))
            d = net.mul(flat_tokens(net, net.op("Exp", d) if net.pick(True, False) else net.op("Softplus", d), 4, side * side), net.const(stride))
            near, far = net.split(d, [2, 2], 2)
            at = net.const(places(side) * stride)
            boxes.append(net.concat(net.op("Sub", at, near), net.add(at, far), axis=2))
            c = net.op("Sigmoid", flat_tokens(net, conv(net, t, n, 3, 3, hint="cls", gain=2.0), 3, side * side))
            m = net.op("Sigmoid", flat_tokens(net, conv(net, t, n, 1, 3, hint="ctr"), 1, side * side))
            scores.append(net.op("Sqrt", net.add(net.mul(c, m), net.const(1e-12))))
    net.output(net.concat(*boxes, axis=1), "boxes")
    net.output(net.concat(*scores, axis=1), "scores")


def plate_reader(net):
    """Columns of a picture as letters: the logarithm of each letter's share."""
    n, letters = 10, net.pick(12, 20)
    x = conv_bn(net, net.input("plate", [BATCH, 1, 8, 24], "image"), 1, n, 3, "relu", hint="c1", stride=(2, 1))
    x = conv_bn(net, x, n, n, 3, "relu", hint="c2", stride=(2, 2))
    x = net.transpose(net.reduce("Mean", x, [2], 0), 0, 2, 1)
    y = linear(net, activation(net, linear(net, x, n, 16, hint="neck"), "hardswish"), 16, letters, hint="ctc", gain=2.0)
    axis = 2 if net.opset < 13 else net.pick(-1, 2)
    net.output(net.op("LogSoftmax", y, axis=axis), "log_probs")
    net.output(net.reduce("Max", net.softmax(y, 3), [2], 0), "sure")


def three_heads(net):
    """How old, which of two, and what mood: one picture, three answers of unlike kind."""
    n = 10
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c1"), n, n, 3, "relu", stride=2, hint="c2", groups=2)
    x = global_pool(net, x, keep=False)
    years = net.softmax(linear(net, x, n, 12, rank=2, hint="age", gain=2.0), 2)
    net.output(net.op("MatMul", years, net.weight(8.0 * np.arange(12, dtype=np.float32).reshape(12, 1), "years")), "age")
    net.output(net.op("Sigmoid", linear(net, x, n, 1, rank=2, hint="gender", gain=2.0)), "gender")
    net.output(net.op("LogSoftmax", linear(net, x, n, 7, rank=2, hint="mood", gain=2.0), axis=1), "mood")


def second_stage(net):
    """Boxes of one picture at two levels: what is in each, its class, and by how much it should move."""
    boxes = net.input("boxes", [4, 4], "boxes")
    c2 = conv_bn(net, images(net), 3, 8, 3, "relu", stride=2, hint="c2")
    c3 = conv_bn(net, c2, 8, 8, 3, "relu", stride=2, hint="c3")
    more = {"coordinate_transformation_mode": net.pick("half_pixel", "output_half_pixel")} if net.opset >= 16 else {}
    parts = [net.op("RoiAlign", c, boxes, net.const(np.zeros(4), np.int64), output_height=2, output_width=2, spatial_scale=scale,
                    sampling_ratio=net.pick(0, 2), **more) for c, scale in ((c2, 0.5), (c3, 0.25))]
    x = net.op("Flatten", net.concat(*parts, axis=1), axis=1)
    h = activation(net, linear(net, x, 64, 20, rank=2, hint="fc1"), net.pick("relu", "gelu"))
    net.output(net.op("LogSoftmax", linear(net, h, 20, 6, rank=2, hint="cls", gain=2.0), axis=1), "classes")
    net.output(net.add(boxes, net.mul(linear(net, h, 20, 4, rank=2, hint="move"), net.const(0.5))), "moved")


def plane_boxes(net):
    """Seen from above: boxes with an angle, offsets within twice a cell, and the vector of each at length one."""
    n = 10
    x = conv_bn(net, net.input("pillars", [BATCH, 4, 8, 8], "image"), 4, n, 3, "relu", hint="c1")
    x = conv_bn(net, x, n, n, 3, net.pick("relu", "mish"), stride=2, hint="c2")
    y = flat_tokens(net, conv(net, x, n, 8, 1, hint="head"), 8, 16)
    move, turn, looks = net.split(y, [2, 1, 5], 2)
    at = net.op("Sub", net.mul(net.op("Sigmoid", move), net.const(2.0)), net.const(0.5))
    at = net.mul(net.add(at, net.const(places(4, 0.0))), net.const(2.0))
    angle = net.mul(net.mul(net.op("Tanh", turn), net.const(180.0)), net.const(np.pi / 180))
    net.output(net.concat(at, net.op("Cos", angle), net.op("Sin", angle), axis=2), "boxes")
    net.output(unit_length(net, looks, 2), "looks")
