"""Seventh generation: where things are: boxes, masks, joints, headings, windows, points."""
import numpy as np

from blocks import activation, layer_norm, linear
from layers7 import angle_of, cells, pre, root_mean_norm, rows_of, small_body, two_layers, with_relative_places
from layers4 import attend, from_heads, to_heads
from net import BATCH
from vision import conv, images


def square_boxes(net, raw, stride, anchor, grid, part=2):
    """Middles that may lie a half beyond their cell, sizes as squares of a doubled sigmoid."""
    y = net.op("Sigmoid", raw)
    xy, wh = net.split(y, [2, part], 2)
    xy = net.mul(net.add(net.op("Sub", net.mul(xy, net.const(2.0)), net.const(0.5)), net.const(grid)), net.const(stride))
    wh = net.mul(wh, net.const(2.0))
    wh = net.op("Pow", wh, net.const(2.0)) if net.pick(True, False) else net.mul(wh, wh)
    return xy, net.mul(wh, net.const(np.array(anchor, np.float32).reshape(1, 1, 2)))


def square_cells(net):
    """Boxes whose sizes are squares, and shares of kinds for each."""
    h = rows_of(net, small_body(net, images(net, side=12), 3, 10), 10, 36)
    xy, wh = square_boxes(net, linear(net, h, 10, 4, hint="box", gain=2.0), 2.0, (5.0, 3.0), cells(6, 6))
    net.output(net.concat(xy, wh, axis=2), "boxes")
    net.output(net.op("Sigmoid", linear(net, h, 10, 4, hint="kinds", gain=2.0)), "kinds")


def square_masks(net):
    """One box for the largest thing, and its mask, which ends where the box does."""
    h = small_body(net, images(net, side=12), 3, 8)
    v = net.reshape(linear(net, net.reduce("Max", h, [2, 3], 0), 8, 4, rank=2, hint="box", gain=0.6), [BATCH, 1, 4], like=h)
    xy, wh = square_boxes(net, v, 2.0, (4.0, 4.0), np.array([[[2.0, 2.0]]], np.float32))
    half = net.add(net.mul(wh, net.const(0.5)), net.const(0.8))
    low, high = (net.unsqueeze(t, 3) for t in (net.op("Sub", xy, half), net.add(xy, half)))
    x = net.const(np.stack(np.meshgrid(np.arange(6), np.arange(6), indexing="xy")).reshape(1, 1, 2, 36) + 0.5)
    inside = net.op("And", net.op("Greater", x, low), net.op("Less", x, high))
    inside = net.reduce("Min", net.op("Cast", inside, to=1), [2], 0)
    mask = net.op("Sigmoid", net.reshape(conv(net, h, 8, 1, 1, hint="proto", gain=3.0), [BATCH, 1, 36], like=h))
    net.output(net.mul(mask, inside), "mask")
    net.output(net.concat(xy, wh, axis=2), "box")


def joint_anchors(net):
    """Joints as steps from each cell, twice as long as they are written, in pixels."""
    h = rows_of(net, small_body(net, images(net, side=12), 3, 10), 10, 36)
    raw = net.reshape(linear(net, h, 10, 6, hint="joints", gain=1.5), [BATCH, 36, 3, 2], like=h)
    place = cells(6, 6).reshape(1, 36, 1, 2)
    net.output(net.mul(net.add(net.mul(raw, net.const(2.0)), net.const(place)), net.const(net.pick(2.0, 8.0))), "joints")
    net.output(net.op("Sigmoid", linear(net, h, 10, 3, hint="seen", gain=2.0)), "seen")


def hand_anchors(net):
    """The same for hands, from a vector: joints about a few places, and whether it is a left hand."""
    h = activation(net, linear(net, net.input("features", [BATCH, 12], "features"), 12, 20, rank=2, hint="fc"), "relu")
    raw = net.reshape(linear(net, h, 20, 12, rank=2, hint="joints"), [BATCH, 6, 2], like=h)
    place = net.rng.integers(0, 6, (1, 6, 2)).astype(np.float32)
    net.output(net.mul(net.add(net.mul(raw, net.const(2.0)), net.const(place)), net.const(4.0)), "joints")
    net.output(net.op("Sigmoid", linear(net, h, 20, 1, rank=2, hint="left", gain=2.0)), "left")


def quarter_places(net, heat, count, side):
    """[B, count, side, side] to columns and rows of the hottest pixels, each with a quarter towards the hotter neighbour."""
    flat = net.reshape(heat, [BATCH, count, side * side], like=heat)
    best = net.op("ArgMax", flat, axis=2, keepdims=1)
    out = []
    for axis, pads in ((3, [0, 0, 0, 1, 0, 0, 0, 1]), (2, [0, 0, 1, 0, 0, 0, 1, 0])):
        wide = net.pad(heat, pads, mode="edge")
        gap = net.op("Sub", net.slice(wide, axis, 2, side + 2), net.slice(wide, axis, 0, side))
        gap = net.op("GatherElements", net.reshape(gap, [BATCH, count, side * side], like=heat), best, axis=2)
        place = np.arange(side * side) % side if axis == 3 else np.arange(side * side) // side
        at = net.op("Gather", net.const(place.astype(np.float32)), best, axis=0)
        out.append(net.add(at, net.mul(net.op("Sign", gap), net.const(0.25))))
    return net.concat(*out, axis=2)


def quarter_joints(net):
    """The hottest pixel for each joint, and a quarter towards the hotter neighbour."""
    heat = conv(net, small_body(net, images(net, side=12), 3, 8), 8, 3, 1, hint="heat", gain=2.0)
    net.output(quarter_places(net, heat, 3, 6), "joints")
    net.output(heat, "heat")


def bins_of_places(net):
    """Each joint's column and row as shares of bins, two for each pixel, and the mean of them."""
    h = small_body(net, images(net, side=12), 3, 8)
    rows = net.reshape(conv(net, h, 8, 4, 1, hint="joints"), [BATCH, 4, 36], like=h)
    out = []
    for axis in "xy":
        share = net.softmax(linear(net, rows, 36, 24, hint=axis, gain=3.0), 3)
        out.append(net.op("Div", net.op("MatMul", share, net.const(np.arange(24.0).reshape(24, 1))), net.const(2.0)))
    net.output(net.concat(*out, axis=2), "joints")


def binned_gaze(net):
    """Where somebody looks: shares of angles in steps, their mean, in degrees."""
    x = net.input("eyes", [BATCH, 14], "features")
    h = two_layers(net, x, 14, 20, 16, net.pick("relu", "tanh"), hint="body")
    share = net.softmax(linear(net, h, 16, 18, rank=2, hint="bins", gain=3.0), 2)
    net.output(net.op("Div", net.op("MatMul", share, net.const(np.arange(18.0).reshape(18, 1))), net.const(net.pick(2.0, 3.0))), "angle")


def letterboxed_boxes(net):
    """Boxes of a picture that was made to fit with margins, in pixels of the picture that it was."""
    h = rows_of(net, small_body(net, images(net, side=12), 3, 10), 10, 36)
    middle = net.mul(net.add(net.op("Sigmoid", linear(net, h, 10, 2, hint="xy", gain=2.0)), net.const(cells(6, 6))), net.const(8.0))
    size = net.op("Exp", linear(net, h, 10, 2, hint="wh", gain=0.5))
    size = net.mul(size, net.const(np.array([6.0, 4.0])))
    corners = net.concat(net.op("Sub", middle, size), net.add(middle, size), axis=2)
    margin = np.array([0.0, 6.0, 0.0, 6.0] if net.pick(True, False) else [5.0, 0.0, 5.0, 0.0])
    net.output(net.op("Div", net.op("Sub", corners, net.const(margin)), net.const(net.pick(0.4, 0.75))), "boxes")
    net.output(net.op("Sigmoid", linear(net, h, 10, 3, hint="kinds", gain=2.0)), "kinds")


def weighed_scores(net):
    """How sure a kind is and how well its box fits, each with a power of its own."""
    h = rows_of(net, small_body(net, images(net, side=12), 3, 10), 10, 36)
    kinds, fit = (net.op("Sigmoid", linear(net, h, 10, n, hint=t, gain=2.0)) for n, t in ((4, "kinds"), (1, "iou")))
    alpha = net.pick(0.4, 0.3)
    net.output(net.mul(net.op("Pow", kinds, net.const(1 - alpha)), net.op("Pow", fit, net.const(alpha))), "scores")
    net.output(linear(net, h, 10, 4, hint="boxes"), "boxes")


def street_objects(net):
    """A field from above: boxes that are turned, and to which end they look."""
    h = rows_of(net, small_body(net, net.input("pillars", [BATCH, 6, 12, 12], "image"), 6, 10), 10, 36)
    turn = linear(net, h, 10, 1, hint="rot")
    ends = linear(net, h, 10, 2, hint="dir", gain=2.0)
    back = net.op("Cast", net.op("Greater", net.slice(ends, 2, 1, 2), net.slice(ends, 2, 0, 1)), to=1)
    yaw = net.add(turn, net.mul(back, net.const(np.pi)))
    net.output(net.concat(linear(net, h, 10, 6, hint="box"), yaw, axis=2), "boxes")


def heading_field(net):
    """Which way each place of a field moves, as an angle, and how fast."""
    v = conv(net, small_body(net, net.input("field", [BATCH, 2, 8, 8], "image"), 2, 8, stride=1), 8, 2, 3, hint="flow")
    y, x = net.split(v, [1, 1], 1)
    net.output(net.op("Div", angle_of(net, y, x), net.const(np.pi)), "heading")
    net.output(net.op("Sqrt", net.add(net.reduce("Sum", net.mul(v, v), [1]), net.const(1e-6))), "speed")


def phases_of_steps(net):
    """Steps of somebody who walks: a phase for each, from two numbers."""
    h = activation(net, linear(net, net.input("gait", [BATCH, 8, 6], "signal"), 6, 12, hint="fc"), "tanh")
    s, c = net.split(linear(net, h, 12, 2, hint="phase", gain=1.5), [1, 1], 2)
    a = angle_of(net, s, c)
    net.output(linear(net, net.concat(net.op("Cos", a), h, axis=2), 13, 3, hint="force"), "force")
    net.output(a, "phase")


def offset_reader(net):
    """Questions that read a map at places which they choose, in cells of it, and weigh what they read."""
    n, points, h, w = 4, 3, 4, 6
    value = conv(net, net.input("map", [BATCH, 6, h, w], "image"), 6, 8, 1, hint="value")
    y = read_at_offsets(net, value, net.input("queries", [BATCH, n, 10], "features"), n, points, h, w)
    net.output(linear(net, y, 8, 5, hint="out"), "answers")


def read_at_offsets(net, value, q, n, points, h, w):
    """[B, n, 8] of what questions of ten numbers read of a map of eight."""
    start = net.op("Sigmoid", linear(net, q, 10, 2, hint="reference"))
    steps = net.reshape(linear(net, q, 10, 2 * points, hint="offsets", gain=1.5), [BATCH, n, points, 2], like=q)
    place = net.add(net.unsqueeze(start, 2), net.op("Div", steps, net.const(np.array([w, h], np.float32))))
    grid = net.op("Sub", net.mul(place, net.const(2.0)), net.const(1.0))
    read = net.op("GridSample", value, grid, mode="linear" if net.opset >= 20 else "bilinear", padding_mode="zeros", align_corners=0)
    share = net.softmax(linear(net, q, 10, points, hint="weights"), 3)
    return net.transpose(net.reduce("Sum", net.mul(read, net.unsqueeze(share, 1)), [3], 0), 0, 2, 1)


def relative_planes(net):
    """A picture's tokens, with scores that know how far apart rows and columns are."""
    x = rows_of(net, conv(net, images(net, side=12), 3, 12, 3, stride=3, pads=[0] * 4, hint="patch"), 12, 16)
    x = pre(net, x, 12, lambda y: with_relative_places(net, y, 4, 12, 2), 20, net.pick("gelu", "relu"))
    x = root_mean_norm(net, x, 12, "neck")
    net.output(net.reshape(net.transpose(linear(net, x, 12, 4, hint="mask"), 0, 2, 1), [BATCH, 4, 4, 4], like=x), "masks")


def in_windows(net, x, n, ws, count, hint="swin"):
    """[B, side, side, n]: attention within windows, which are cut out and put back."""
    side = ws * count
    with net.scope(hint):
        y = layer_norm(net, x, n, hint="norm1")
        y = net.transpose(net.reshape(y, [BATCH, count, ws, count, ws, n], like=x), 0, 1, 3, 2, 4, 5)
        y = net.op("Reshape", y, net.ints(-1, ws * ws, n))
        q, k, v = (net.transpose(net.op("Reshape", linear(net, y, n, n, hint=h), net.ints(-1, ws * ws, 2, n // 2)), 0, 2, 1, 3) for h in "qkv")
        y = net.op("Reshape", net.transpose(attend(net, q, k, v, n // 2), 0, 2, 1, 3), net.ints(-1, ws * ws, n))
        y = net.reshape(linear(net, y, n, n, hint="proj"), [BATCH, count, count, ws, ws, n], like=x)
        y = net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), [BATCH, side, side, n], like=x)
        return net.add(x, y)


def window_pictures(net):
    """A picture in windows, and a field of what is where."""
    n = 8
    x = net.transpose(conv(net, images(net, side=12), 3, n, 2, stride=2, pads=[0] * 4, hint="patch"), 0, 2, 3, 1)
    x = net.transpose(in_windows(net, x, n, 3, 2), 0, 3, 1, 2)
    net.output(conv(net, activation(net, conv(net, x, n, 8, 3, hint="c1"), "relu"), 8, 3, 1, hint="out"), "field")


def aligned_points(net):
    """Points turned by a matrix that they say themselves, about the identity; kinds."""
    n = 10
    p = net.input("points", [BATCH, n, 3], "points")
    g = net.reduce("Max", two_layers(net, p, 3, 12, 16, rank=3, hint="tnet"), [1], 0)
    m = net.add(linear(net, g, 16, 9, rank=2, hint="fc3", gain=0.6), net.const(np.eye(3).reshape(-1)))
    p = net.op("MatMul", p, net.reshape(m, [BATCH, 3, 3], like=g))
    h = net.reduce("Max", two_layers(net, p, 3, 16, 20, net.pick("relu", "leaky"), rank=3, hint="mlp1"), [1], 0)
    net.output(net.op("LogSoftmax", linear(net, h, 20, 6, rank=2, hint="fc", gain=2.0), axis=1), "kinds")


def nearest_surfaces(net):
    """How far each point is from the nearest point of a shape, and a label from that."""
    n, m = 8, 10
    p, shape = net.input("points", [BATCH, n, 3], "points"), net.input("shape", [BATCH, m, 3], "points")
    gap = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(shape, 1))
    far = net.reduce("Min", net.reduce("Sum", net.mul(gap, gap), [3], 0), [2])
    h = net.concat(p, net.op("Sqrt", net.add(far, net.const(1e-4))), axis=2)
    net.output(two_layers(net, h, 4, 16, 3, "relu", rank=3, hint="label"), "labels")
    net.output(far, "distances")


def crossed_views(net):
    """Two views that ask each other, and the least sure of both."""
    a, b = (linear(net, net.input(name, [BATCH, 6, 8], "features"), 8, 12, hint=name) for name in ("left", "right"))
    out = []
    for k, (x, y) in enumerate(((a, b), (b, a))):
        with net.scope(f"cross{k}"):
            q, kk, v = (to_heads(net, linear(net, t, 12, 12, hint=h), 6, 2, 6, a) for t, h in ((x, "q"), (y, "k"), (y, "v")))
            z = net.add(x, linear(net, from_heads(net, attend(net, q, kk, v, 6), 6, 12, a), 12, 12, hint="out"))
        out.append(net.op("Sigmoid", linear(net, z, 12, 3, hint=f"head{k}", gain=2.0)))
    both = net.concat(*(net.unsqueeze(t, 3) for t in out), axis=3)
    net.output(net.reduce("Min", both, [3], 0), "sure")
