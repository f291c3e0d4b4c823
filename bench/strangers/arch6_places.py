"""Sixth generation: where things are, in pictures and in space."""
import numpy as np

from blocks import activation, linear
from layers5 import flat_tokens
from layers6 import camera, pixels_of, two_layers, with_ones
from net import BATCH
from vision import conv, conv_bn, images, resize, up_conv

WIDE = (12, 16)  # rows and columns of pictures that are no squares


def wide_images(net):
    return net.input("image", [BATCH, 3, *WIDE], "image")


def cell_places(rows, columns, offset):
    x, y = np.meshgrid(np.arange(columns) + offset, np.arange(rows) + offset)
    return np.stack([x, y], -1).reshape(1, -1, 2).astype(np.float32)


def corners_within(net, centre, size, half, limit):
    """Corners from middle and size, none outside of the picture."""
    size = net.mul(size, net.const(0.5)) if half == "mul" else net.op("Div", size, net.const(2.0))
    both = net.concat(net.op("Sub", centre, size), net.add(centre, size), axis=2)
    return net.op("Min", net.op("Max", both, net.const(0.0)), net.const(np.array(limit * 2, np.float32).reshape(1, 1, 4)))


def anchored_cells(net):
    """Two levels of a wide picture; sizes as powers of what is seen times those of anchors, which are in cells; corners inside of the picture."""
    n, act, half = 10, net.pick("leaky", "swish"), net.pick("mul", "div")
    x = conv_bn(net, wide_images(net), 3, n, 3, act, stride=2, hint="c1")
    boxes, scores = [], []
    for i, (rows, columns, stride, anchor) in enumerate(((6, 8, 2.0, (1.5, 2.0)), (3, 4, 4.0, (1.75, 1.5)))):
        with net.scope(f"level{i}"):
            x = x if i == 0 else conv_bn(net, x, n, n, 3, act, stride=2, hint="down")
            y = flat_tokens(net, conv(net, x, n, 7, 1, hint="head", gain=1.5), 7, rows * columns)
            xy, wh, rest = net.split(y, [2, 2, 3], 2)
            at = net.mul(net.add(net.op("Sigmoid", xy), net.const(cell_places(rows, columns, 0.0))), net.const(stride))
            size = net.mul(net.mul(net.op("Exp", net.clip(wh, -2.0, 2.0)), net.const(np.array(anchor).reshape(1, 1, 2))), net.const(stride))
            boxes.append(corners_within(net, at, size, half, (16.0, 12.0)))
            scores.append(net.op("Sigmoid", rest))
    net.output(net.concat(*boxes, axis=1), "boxes")
    net.output(net.concat(*scores, axis=1), "scores")


def one_level_cells(net):
    """One level; middle, size in cells, whether anything is there, and of what kind."""
    n, act = 12, net.pick("relu", "mish")
    x = conv_bn(net, conv_bn(net, wide_images(net), 3, n, 3, act, stride=2, hint="c1"), n, n, 3, act, stride=2, hint="c2")
    y = flat_tokens(net, conv(net, x, n, 8, 1, hint="pred", gain=1.5), 8, 12)
    xy, wh, sure, kind = net.split(y, [2, 2, 1, 3], 2)
    at = net.mul(net.add(net.op("Sigmoid", xy), net.const(cell_places(3, 4, 0.0))), net.const(4.0))
    size = net.mul(net.mul(net.op("Exp", wh), net.const(np.array([1.2, 0.9]).reshape(1, 1, 2))), net.const(4.0))
    net.output(corners_within(net, at, size, net.pick("mul", "div"), (16.0, 12.0)), "boxes")
    net.output(net.mul(net.op("Sigmoid", sure), net.softmax(kind, 3)), "scores")


def priors_of(rows, columns, sizes):
    """[1, count, 4]: middles and sizes as shares of the picture."""
    at = cell_places(rows, columns, 0.5)[0] / np.array([columns, rows])
    return np.concatenate([np.concatenate([at, np.tile(np.array([s]), (len(at), 1))], 1) for s in sizes])[None].astype(np.float32)


def decoded(net, y, priors, limit=True):
    """Prior boxes moved by tenths and stretched by fifths."""
    move, grow = net.split(y, [2, 2], 2)
    size = priors[..., 2:]
    if net.pick(True, False):
        at = net.add(net.const(priors[..., :2]), net.mul(net.mul(move, net.const(0.1)), net.const(size)))
        wide = net.mul(net.const(size), net.op("Exp", net.mul(grow, net.const(0.2))))
    else:
        both = net.mul(y, net.const(np.array([0.1, 0.1, 0.2, 0.2]).reshape(1, 1, 4)))
        move, grow = net.split(both, [2, 2], 2)
        at = net.add(net.mul(move, net.const(size)), net.const(priors[..., :2]))
        wide = net.mul(net.op("Exp", grow), net.const(size))
    half = net.op("Div", wide, net.const(2.0))
    boxes = net.concat(net.op("Sub", at, half), net.add(at, half), axis=2)
    return net.clip(boxes, 0.0, 1.0) if limit else boxes


def prior_corners(net):
    """Boxes that were there before, tall ones and wide ones, moved and stretched."""
    n = 10
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c1"), n, n, 3, "relu", stride=2, hint="c2")
    priors = priors_of(4, 4, ((0.3, 0.5), (0.5, 0.25)))
    y = net.concat(*(flat_tokens(net, conv(net, x, n, 4, 3, hint=f"loc{i}", gain=3.0), 4, 16) for i in range(2)), axis=1)
    c = net.concat(*(flat_tokens(net, conv(net, x, n, 3, 3, hint=f"conf{i}", gain=2.0), 3, 16) for i in range(2)), axis=1)
    net.output(decoded(net, y, priors), "boxes")
    net.output(net.softmax(c, 3), "classes")


def prior_faces(net):
    """Faces from one level: a box from a prior one, whether it is a face, and five points within it."""
    n, act = 10, net.pick("relu", "leaky", "hardswish")
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="c1"), n, n, 3, act, stride=2, hint="c2")
    priors = priors_of(4, 4, ((0.35, 0.45),))
    net.output(decoded(net, flat_tokens(net, conv(net, x, n, 4, 1, hint="box", gain=3.0), 4, 16), priors, net.pick(True, False)), "boxes")
    net.output(net.softmax(flat_tokens(net, conv(net, x, n, 2, 1, hint="face", gain=2.0), 2, 16), 3), "faces")
    marks = flat_tokens(net, conv(net, x, n, 10, 1, hint="marks", gain=2.0), 10, 16)
    at, size = np.tile(priors[..., :2], 5), np.tile(priors[..., 2:], 5)
    net.output(net.add(net.mul(net.mul(marks, net.const(0.1)), net.const(size)), net.const(at)), "points")


def regions_at(net, levels, boxes, size):
    mode = net.pick("avg", "avg", None)
    return [net.op("RoiAlign", c, boxes, net.const(np.zeros(4), np.int64), output_height=size, output_width=size, spatial_scale=scale,
                   sampling_ratio=2, mode=mode) for c, scale in levels]


def level_regions(net):
    """Boxes of one picture, each seen at three levels that are added; what each holds, and how it moves."""
    boxes = net.input("boxes", [4, 4], "boxes")
    x, levels = images(net), []
    for i in range(3):
        x = conv_bn(net, x, 3 if i == 0 else 8, 8, 3, "relu", stride=2, hint=f"p{i + 2}")
        levels.append((x, 0.5 ** (i + 1)))
    parts = regions_at(net, levels, boxes, 3)
    y = net.op("Flatten", net.add(net.add(parts[0], parts[1]), parts[2]), axis=1)
    h = activation(net, linear(net, y, 72, 20, rank=2, hint="fc"), net.pick("relu", "gelu"))
    net.output(net.softmax(linear(net, h, 20, 6, rank=2, hint="cls", gain=2.0), 2), "classes")
    net.output(linear(net, h, 20, 4, rank=2, hint="reg"), "moves")


def region_masks(net):
    """A mask for each given box, from two levels side by side."""
    boxes = net.input("boxes", [4, 4], "boxes")
    c2 = conv_bn(net, images(net), 3, 6, 3, "relu", stride=2, hint="c2")
    c3 = conv_bn(net, c2, 6, 6, 3, "relu", stride=2, hint="c3")
    y = net.concat(*regions_at(net, ((c2, 0.5), (c3, 0.25)), boxes, 4), axis=1)
    y = activation(net, conv(net, y, 12, 8, 3, hint="m1"), "relu")
    y = net.op("Relu", up_conv(net, y, 8, 8)) if net.pick(True, False) else net.op("Relu", conv(net, y, 8, 8, 3, hint="m2"))
    net.output(net.op("Sigmoid", conv(net, y, 8, 2, 1, hint="mask", gain=2.0)), "masks")


def camera_points(net):
    """Points in space, turned and moved to a camera, in its picture; features of where they fall say what each is."""
    n = 8
    p = net.input("points", [BATCH, n, 3], "points")
    at = net.op("MatMul", with_ones(net, p, n), net.weight(camera(net.rng), "pose"))
    uv = pixels_of(net, at, (9.0, 12.0), (8.0, 6.0))
    x = net.concat(net.mul(uv, net.const(0.1)), at, axis=2)
    net.output(two_layers(net, x, 5, 16, 4, net.pick("relu", "tanh"), rank=3, gain=2.0), "kinds")
    net.output(uv, "pixels")


def seen_from_above(net):
    """A grid on the ground takes what a camera sees at each of its cells."""
    rows, columns, c = 4, 4, 8
    f = conv_bn(net, wide_images(net), 3, c, 3, "relu", hint="features")
    grid = np.concatenate([cell_places(rows, columns, -1.5)[0] * 0.4, np.zeros((rows * columns, 1))], 1)[None]
    move = net.unsqueeze(net.mul(net.op("Tanh", linear(net, net.input("pose", [BATCH, 4], "features"), 4, 3, rank=2, hint="pose")), net.const(0.3)), 1)
    p = net.add(net.const(grid), move)
    at = net.op("MatMul", with_ones(net, p, rows * columns), net.weight(camera(net.rng), "extrinsics"))
    uv = pixels_of(net, at, (10.0, 13.0), (8.0, 6.0))
    where = net.op("Sub", net.mul(net.op("Div", uv, net.const(np.array([16.0, 12.0]).reshape(1, 1, 2))), net.const(2.0)), net.const(1.0))
    y = sample(net, f, net.reshape(where, [BATCH, rows, columns, 2], like="image"), "zeros")
    net.output(net.softmax(conv(net, y, c, 4, 3, hint="seg", gain=2.0), 4, 1), "map")


def sample(net, x, grid, padding, corners=0):
    return net.op("GridSample", x, grid, mode="linear" if net.opset >= 20 else "bilinear", padding_mode=padding, align_corners=corners)


def frame_between(net):
    """What lies between two frames: flow from layers, each frame read where it points, and how much of each."""
    a, b = (net.input(h, [BATCH, 2, 8, 8], "image") for h in ("before", "after"))
    h = activation(net, conv(net, net.concat(a, b, axis=1), 4, 12, 3, hint="c1"), net.pick("leaky", "relu"))
    y = conv(net, h, 12, 5, 3, hint="c2")
    first, second, share = net.split(y, [2, 2, 1], 1)
    base = net.const(2 * cell_places(8, 8, 0.5).reshape(1, 8, 8, 2) / 8 - 1)
    made = []
    for x, flow in ((a, first), (b, second)):
        step = net.mul(net.transpose(net.mul(net.op("Tanh", flow), net.const(2.0)), 0, 2, 3, 1), net.const(0.25))
        made.append(sample(net, x, net.add(base, step), "border"))
    share = net.op("Sigmoid", share)
    net.output(net.add(net.mul(made[0], share), net.mul(made[1], net.op("Sub", net.const(1.0), share))), "between")


def registered_scans(net):
    """A scan is bent onto another: steps at each place, and it is read there; what still differs."""
    moving, fixed = net.input("moving", [BATCH, 1, 8, 8], "image"), net.input("fixed", [BATCH, 1, 8, 8], "image")
    h = conv_bn(net, net.concat(moving, fixed, axis=1), 2, 10, 3, "leaky", hint="enc")
    flow = net.op("Tanh", conv(net, h, 10, 2, 3, hint="flow"))
    grid = net.add(net.const(cell_places(8, 8, 0.0).reshape(1, 8, 8, 2)), net.transpose(net.mul(flow, net.const(1.5)), 0, 2, 3, 1))
    where = net.op("Sub", net.mul(net.op("Div", grid, net.const(7.0)), net.const(2.0)), net.const(1.0))
    y = sample(net, moving, where, net.pick("border", "zeros"), 1)
    net.output(net.op("Sub", y, fixed), "difference")
    net.output(y, "moved")


def sampled_places(net):
    """Each question reads a picture at four places beside its own, by weights; places are shares of the picture."""
    q, d, k = 4, 16, 4
    f = conv_bn(net, images(net), 3, d, 3, "relu", stride=2, hint="value")
    x = net.input("queries", [BATCH, q, d], "features")
    own = net.op("Sigmoid", linear(net, x, d, 2, hint="reference"))
    move = net.reshape(linear(net, x, d, 2 * k, hint="offsets", gain=0.8), [BATCH, q, k, 2], like=x)
    where = net.add(net.unsqueeze(own, 2), net.mul(net.op("Div", move, net.const(8.0)), net.const(1.0)))
    y = sample(net, f, net.op("Sub", net.mul(where, net.const(2.0)), net.const(1.0)), "zeros")
    share = net.unsqueeze(net.softmax(linear(net, x, d, k, hint="weights", gain=1.5), 3), 1)
    y = net.transpose(net.reduce("Sum", net.mul(y, share), [3], 0), 0, 2, 1)
    y = net.add(x, linear(net, y, d, d, hint="out"))
    net.output(linear(net, y, d, 5, hint="classes", gain=2.0), "classes")
    net.output(own, "places")


def depth_head(net, x, n, near, far):
    """From a share between the nearest and the farthest, which are inverses, to how far it is."""
    share = net.op("Sigmoid", conv(net, x, n, 1, 3, hint="disp"))
    disparity = net.add(net.mul(share, net.const(1 / near - 1 / far)), net.const(1 / far))
    return disparity, net.op("Div", net.const(1.0), disparity)


def inverse_depths(net):
    """How far each place is, from one picture, at two sizes."""
    n, act = 10, net.pick("elu", "relu")
    a = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="e1")
    b = conv_bn(net, a, n, n, 3, act, stride=2, hint="e2")
    with net.scope("coarse"):
        disparity, depth = depth_head(net, b, n, net.pick(0.1, 0.5), net.pick(20.0, 80.0))
    net.output(depth, "depth_coarse")
    up = net.concat(resize(net, b, 2.0, (n, 8, 8)), a, resize(net, disparity, 2.0, (1, 8, 8), net.pick("nearest", "linear")), axis=1)
    with net.scope("fine"):
        x = activation(net, conv(net, up, 2 * n + 1, n, 3, hint="mix"), act)
        net.output(depth_head(net, x, n, 0.5, 40.0)[1], "depth")


def far_and_moving(net):
    """Two frames: how far each place of the first is, and how the camera moved."""
    n, near, far = 8, net.pick(0.1, 0.2), net.pick(10.0, 100.0)
    a, b = (net.input(h, [BATCH, 3, 8, 8], "image") for h in ("frame", "next"))
    x = conv_bn(net, a, 3, n, 3, "relu", hint="d1")
    disparity, depth = depth_head(net, conv_bn(net, x, n, n, 3, "elu", hint="d2"), n, near, far)
    net.output(depth, "depth")
    h = conv_bn(net, net.concat(a, b, disparity, axis=1), 7, n, 3, "relu", stride=2, hint="p1")
    pose = linear(net, net.reduce("Mean", h, [2, 3], 0), n, 6, rank=2, hint="pose")
    net.output(net.mul(pose, net.const(0.01)), "pose")


def twin_plates(net):
    """Two pictures by the same layers: how far apart, and whether of the same thing."""
    n, vectors = 8, []
    w = [net.trained((n, 1, 3, 3), 9, 1.4, "c1.weight"), net.vector(n), net.trained((n, n, 3, 3), 9 * n, 1.4, "c2.weight"), net.vector(n)]
    for name in ("first", "second"):
        x = net.input(name, [BATCH, 1, 8, 8], "image")
        with net.scope(name):
            x = net.op("Relu", net.op("Conv", x, w[0], w[1], kernel_shape=[3, 3], pads=[1] * 4))
            x = net.op("Relu", net.op("Conv", x, w[2], w[3], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]))
            vectors.append(net.op("Flatten", net.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), axis=1))
    gap = net.op("Abs", net.op("Sub", *vectors))
    net.output(net.op("Sigmoid", linear(net, gap, 32, 3, rank=2, hint="same", gain=2.0)), "same")
    net.output(net.op("Sqrt", net.add(net.reduce("Sum", net.mul(gap, gap), [1]), net.const(1e-6))), "distance")
