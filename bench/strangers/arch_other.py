"""Architectures of boxes, points, graphs, tables and densities."""
import numpy as np

from arch_sequence import embed
from blocks import activation, attention, batch_norm, layer_norm, linear, mlp
from net import BATCH
from vision import conv, conv_bn, flatten, global_pool, images, pool, to_tokens


def yolo(net):
    """Anchors, decoding, TopK and non-maximum suppression; a sample's boxes are found one at a time."""
    x = conv_bn(net, images(net), 3, 12, 3, "swish", stride=2, hint="stem")
    x = conv_bn(net, x, 12, 16, 3, "swish", stride=2, hint="down")
    y = conv(net, x, 16, 2 * 8, 1, hint="detect", gain=2.5)
    y = net.op("Sigmoid", net.transpose(net.reshape(y, [BATCH, 2, 8, 4, 4]), 0, 1, 3, 4, 2))
    xy, wh, scores = net.split(y, [2, 2, 4], 4)
    grid = np.stack(np.meshgrid(range(4), range(4)), -1).reshape(1, 1, 4, 4, 2)
    xy = net.mul(net.add(net.op("Sub", net.mul(xy, net.const(2.0)), net.const(0.5)), net.const(grid)), net.const(4.0))
    wh = net.mul(net.op("Pow", net.mul(wh, net.const(2.0)), net.const(2.0)), net.const(np.array([[6, 8], [12, 9]]).reshape(1, 2, 1, 1, 2)))
    boxes = net.reshape(net.concat(xy, wh, axis=4), [BATCH, 32, 4])
    scores = net.transpose(net.reshape(scores, [BATCH, 32, 4]), 0, 2, 1)
    chosen = net.op("NonMaxSuppression", boxes, scores, net.ints(net.pick(3, 6)), net.const([0.45]), net.const([0.3]), center_point_box=1)
    net.output(boxes, "boxes")
    net.output(scores, "scores")
    net.output(chosen, "selected")


def centernet(net):
    x = conv_bn(net, images(net), 3, 12, 3, "relu", stride=2, hint="stem")
    heat = net.op("Sigmoid", conv(net, activation(net, conv(net, x, 12, 12, 3, hint="heat1"), "relu"), 12, 2, 1, hint="heat2"))
    size = conv(net, x, 12, 2, 1, hint="wh")
    peaks = net.mul(heat, net.op("Cast", net.op("Equal", pool(net, heat, "Max", 3, 1, 1), heat), to=1))
    score, at = net.topk(net.reshape(peaks, [BATCH, 128], like=heat), 5)
    place = net.op("Mod", at, net.const(64, np.int64))
    kind = net.op("Div", at, net.const(64, np.int64))
    row = net.op("Cast", net.op("Div", place, net.const(8, np.int64)), to=1)
    column = net.op("Cast", net.op("Mod", place, net.const(8, np.int64)), to=1)
    index = net.op("Tile", net.unsqueeze(place, 1), net.ints(1, 2, 1))
    wh = net.op("GatherElements", net.reshape(size, [BATCH, 2, 64], like=size), index, axis=2)
    net.output(net.concat(net.unsqueeze(column, 1), net.unsqueeze(row, 1), wh, axis=1), "boxes")
    net.output(score, "scores")
    net.output(kind, "classes")


def detr(net):
    x = conv_bn(net, images(net), 3, 12, 3, "relu", stride=2, hint="stem")
    x = to_tokens(net, conv(net, x, 12, 24, 2, stride=2, pads=[0] * 4, hint="project"), 24, 16)
    x = net.add(x, net.weight((0.4 * net.rng.standard_normal((1, 16, 24))).astype(np.float32), "position"))
    x = layer_norm(net, net.add(x, attention(net, x, 16, 24, 3, hint="encoder")), 24)
    queries = net.weight(net.rng.standard_normal((1, 5, 24)).astype(np.float32), "query_embed")
    zero = net.mul(net.slice(x, 1, 0, 5), net.const(0.0))  # queries for each sample
    q = net.add(queries, zero)
    q = layer_norm(net, net.add(q, attention(net, q, 5, 24, 3, hint="self")), 24, hint="norm1")
    q = layer_norm(net, net.add(q, attention(net, q, 5, 24, 3, kv=x, kv_length=16, hint="cross")), 24, hint="norm2")
    q = layer_norm(net, net.add(q, mlp(net, q, 24, 48, "relu")), 24, hint="norm3")
    net.output(linear(net, q, 24, 6, hint="class_embed"), "logits")
    net.output(activation(net, linear(net, q, 24, 4, hint="bbox_embed"), "sigmoid"), "boxes")


def keypoints(net):
    """Heat maps to coordinates by their expectation."""
    x = conv_bn(net, images(net), 3, 12, 3, "relu", hint="conv1")
    heat = net.reshape(conv(net, conv_bn(net, x, 12, 12, 3, "relu", hint="conv2"), 12, 4, 1, hint="heat", gain=3.0), [BATCH, 4, 256])
    p = net.reshape(net.softmax(heat, 3), [BATCH, 4, 16, 16])
    axis = np.linspace(-1, 1, 16)
    x_mean = net.reduce("Sum", net.mul(net.reduce("Sum", p, [2], 0), net.const(axis)), [2])
    y_mean = net.reduce("Sum", net.mul(net.reduce("Sum", p, [3], 0), net.const(axis)), [2])
    net.output(net.concat(x_mean, y_mean, axis=2), "coordinates")


def transformer_net(net):
    """A spatial transformer: an affine grid from the image, then sampling."""
    image = images(net, side=12)
    y = activation(net, conv(net, pool(net, image), 3, 8, 3, hint="loc"), "relu")
    y = linear(net, global_pool(net, y, keep=False), 8, 6, rank=2, hint="theta", gain=0.4)
    theta = net.reshape(net.add(y, net.const([1.0, 0.1, 0.05, -0.1, 0.9, -0.1])), [BATCH, 2, 3])
    axis = (np.arange(12) * 2 + 1) / 12 - 1
    base = np.stack([*np.meshgrid(axis, axis), np.ones((12, 12))]).reshape(1, 3, 144)
    grid = net.reshape(net.transpose(net.op("MatMul", theta, net.const(base)), 0, 2, 1), [BATCH, 12, 12, 2])
    mode = "linear" if net.opset >= 20 else "bilinear"
    warped = net.op("GridSample", image, grid, mode=mode, padding_mode=net.pick("zeros", "border"), align_corners=net.pick(0, 1))
    x = conv_bn(net, warped, 3, 8, 3, "relu", stride=2, hint="conv")
    net.output(warped, "warped")
    net.output(linear(net, global_pool(net, x, keep=False), 8, 5, rank=2, hint="head"), "logits")


def flow_warp(net):
    """Sampling by hand: floor, four gathers, weights (what exporters write for a grid sample before opset 16)."""
    image, flow = net.input("image", [1, 3, 8, 8], "image"), net.input("flow", [1, 2, 8, 8], "image")
    flow = conv(net, flow, 2, 2, 3, hint="refine")
    at = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0))).reshape(1, 2, 8, 8)
    x, y = net.split(net.add(flow, net.const(at)), [1, 1], 1)
    parts = []
    fx, fy = net.op("Floor", x), net.op("Floor", y)
    wx, wy = net.op("Sub", x, fx), net.op("Sub", y, fy)
    flat = net.op("Reshape", image, net.ints(1, 3, 64))
    for dx in (0, 1):
        for dy in (0, 1):
            cx = net.clip(net.add(fx, net.const(float(dx))), 0.0, 7.0)
            cy = net.clip(net.add(fy, net.const(float(dy))), 0.0, 7.0)
            index = net.op("Cast", net.add(net.mul(cy, net.const(8.0)), cx), to=7)
            index = net.op("Expand", net.op("Reshape", index, net.ints(1, 1, 64)), net.ints(1, 3, 64))
            value = net.op("Reshape", net.op("GatherElements", flat, index, axis=2), net.ints(1, 3, 8, 8))
            one = net.const(1.0)
            weight = net.mul(wx if dx else net.op("Sub", one, wx), wy if dy else net.op("Sub", one, wy))
            parts.append(net.mul(value, weight))
    net.output(conv(net, net.op("Sum", *parts), 3, 3, 3, hint="fuse"), "frame")


def stereo(net):
    """A cost volume of shifted features."""
    def encode(x, hint):
        return conv(net, activation(net, conv(net, x, 3, 8, 3, hint=hint + "1"), "leaky"), 8, 8, 3, hint=hint + "2")
    left, right = encode(images(net, "left", side=12), "left"), encode(images(net, "right", side=12), "right")
    costs = []
    for d in range(4):
        shifted = net.slice(net.pad(right, [0, 0, 0, d, 0, 0, 0, 0]), 3, 0, 12)
        costs.append(net.reduce("Mean", net.mul(left, shifted), [1]))
    p = net.softmax(net.concat(*costs, axis=1), 4, axis=1)
    net.output(net.reduce("Sum", net.mul(p, net.const(np.arange(4.0).reshape(1, 4, 1, 1))), [1]), "disparity")


def flow(net):
    """Affine couplings; density and latent."""
    x = net.input("x", [BATCH, 6], "features")
    total = None
    for i in range(3):
        with net.scope(f"coupling{i}"):
            a, b = net.split(x, [3, 3], 1)
            h = activation(net, linear(net, a, 3, 16, rank=2, hint="net1"), "relu")
            log_s = net.op("Tanh", linear(net, h, 16, 3, rank=2, hint="scale"))
            b = net.add(net.mul(b, net.op("Exp", log_s)), linear(net, h, 16, 3, rank=2, hint="shift"))
            x = net.op("Gather", net.concat(a, b, axis=1), net.ints(5, 4, 3, 2, 1, 0), axis=1)
            part = net.reduce("Sum", log_s, [1])
            total = net.add(total, part) if total else part
    net.output(x, "z")
    net.output(total, "log_det")


def glow(net):
    x = net.input("image", [BATCH, 4, 6, 6], "image")
    for i in range(2):
        with net.scope(f"step{i}"):
            x = net.mul(net.add(x, net.weight((0.2 * net.rng.standard_normal((1, 4, 1, 1))).astype(np.float32), "actnorm.bias")),
                        net.weight(np.exp(0.3 * net.rng.standard_normal((1, 4, 1, 1))).astype(np.float32), "actnorm.scale"))
            q, _ = np.linalg.qr(net.rng.standard_normal((4, 4)))
            x = net.op("Conv", x, net.weight(q.astype(np.float32)[:, :, None, None], "invconv"), kernel_shape=[1, 1])
            a, b = net.split(x, [2, 2], 1)
            h = conv(net, activation(net, conv(net, a, 2, 12, 3, hint="c1"), "relu"), 12, 4, 3, hint="c2", gain=0.8)
            scale, shift = net.split(h, [2, 2], 1)
            b = net.mul(net.add(b, shift), net.op("Sigmoid", net.add(scale, net.const(2.0))))
            x = net.concat(a, b, axis=1)
    net.output(x, "latent")


def gcn(net):
    """A graph given by its edges; messages are added up."""
    x, edges = net.input("nodes", [10, 8], "features"), net.input("edges", [2, 24], "edges")
    source, target = (net.op("Gather", edges, net.const(i, np.int64), axis=0) for i in (0, 1))
    index = net.unsqueeze(target, 1)
    for i, (n, m) in enumerate([(8, 16), (16, 16)]):
        with net.scope(f"conv{i}"):
            message = net.op("Gather", linear(net, x, n, m, rank=2, hint="lin"), source, axis=0)
            empty = net.mul(linear(net, x, n, m, rank=2, hint="self"), net.const(1.0))
            x = activation(net, scatter_add(net, empty, index, message, m), "relu" if i == 0 else "elu")
    net.output(linear(net, x, 16, 4, rank=2, hint="head"), "logits")


def scatter_add(net, into, index, updates, width):
    """ScatterElements or ScatterND with addition (opset 16); before, as a product with the indicator of targets."""
    if net.opset >= 16:
        if net.pick(True, False):
            return net.op("ScatterND", into, index, updates, reduction="add")
        return net.op("ScatterElements", into, net.op("Tile", index, net.ints(1, width)), updates, axis=0, reduction="add")
    here = net.op("Equal", net.const(np.arange(10)[:, None], np.int64), net.transpose(index, 1, 0))
    return net.add(into, net.op("MatMul", net.op("Cast", here, to=1), updates))


def gat(net):
    """Attention along edges of a dense adjacency."""
    x, adjacency = net.input("nodes", [BATCH, 9, 8], "features"), net.input("adjacency", [BATCH, 9, 9], "mask")
    for i, n in enumerate((8, 12)):
        with net.scope(f"gat{i}"):
            h = linear(net, x, n, 12, bias=False, hint="w")
            a, b = linear(net, h, 12, 1, hint="a_source"), linear(net, h, 12, 1, hint="a_target")
            scores = net.op("LeakyRelu", net.add(a, net.transpose(b, 0, 2, 1)), alpha=0.2)
            linked = net.op("Greater", net.add(adjacency, net.const(np.eye(9)[None])), net.const(0.0))
            p = net.softmax(net.op("Where", linked, scores, net.const(-9e15)), 3)
            x = net.op("Elu", net.op("MatMul", p, h), alpha=1.0)
    net.output(linear(net, x, 12, 3, hint="head"), "classes")


def dlrm(net):
    dense = net.input("dense", [BATCH, 6], "features")
    ids = [net.input(f"id{i}", [BATCH], "tokens", vocab=20) for i in range(3)]
    x = activation(net, linear(net, dense, 6, 16, rank=2, hint="bottom1"), "relu")
    x = activation(net, linear(net, x, 16, 8, rank=2, hint="bottom2"), "relu")
    rows = [net.unsqueeze(x, 1)] + [net.unsqueeze(embed(net, i, 20, 8, f"table{k}")[0], 1) for k, i in enumerate(ids)]
    t = net.concat(*rows, axis=1)
    product = net.reshape(net.op("MatMul", t, net.transpose(t, 0, 2, 1)), [BATCH, 16], like=dense)
    pairs = [i * 4 + j for i in range(4) for j in range(i)]
    y = net.concat(x, net.op("Gather", product, net.ints(*pairs), axis=1), axis=1)
    y = activation(net, linear(net, y, 14, 16, rank=2, hint="top1"), "relu")
    net.output(net.op("Sigmoid", linear(net, y, 16, 1, rank=2, hint="top2")), "click")


def deep_fm(net):
    ids = net.input("fields", [BATCH, 5], "tokens", vocab=30)
    e, _ = embed(net, ids, 30, 8, scale=0.5)
    first = net.reduce("Sum", embed(net, ids, 30, 1, "linear")[0], [1], 0)
    total = net.reduce("Sum", e, [1], 0)
    squares = net.reduce("Sum", net.mul(e, e), [1], 0)
    second = net.mul(net.reduce("Sum", net.op("Sub", net.mul(total, total), squares), [1]), net.const(0.5))
    deep = activation(net, linear(net, net.reshape(e, [BATCH, 40]), 40, 16, rank=2, hint="deep1"), "relu")
    y = net.op("Sum", first, second, linear(net, deep, 16, 1, rank=2, hint="deep2"))
    net.output(net.op("Sigmoid", y), "probability")


def two_towers(net):
    """Cosine similarity times a temperature, as CLIP."""
    def unit(x):
        if net.pick(True, False):
            return net.op("Div", x, net.op("Clip", net.reduce("L2", x, [1]), net.const(1e-12)))
        return net.op("LpNormalization", x, axis=1, p=2)
    query = net.input("query", [BATCH, 12], "features")
    items, _ = embed(net, net.input("items", [BATCH, 6], "tokens"), 50, 16)
    a = unit(linear(net, activation(net, linear(net, query, 12, 24, rank=2, hint="q1"), "gelu"), 24, 16, rank=2, hint="q2"))
    b = unit(linear(net, net.reduce("Mean", items, [1], 0), 16, 16, rank=2, hint="item"))
    cosine = net.reduce("Sum", net.mul(a, b), [1])
    net.output(net.mul(cosine, net.op("Exp", net.weight(np.float32([2.3]), "logit_scale"))), "similarity")


def tabular(net):
    """Columns and categories, standardized in the graph."""
    x = net.input("columns", [BATCH, 8], "features", scale=3.0)
    c, _ = embed(net, net.input("category", [BATCH], "tokens", vocab=12), 12, 6)
    centred = net.op("Sub", x, net.vector(8, 0.3, 1.0, "mean"))
    x = net.op("Div", centred, net.weight(2 * np.exp(0.3 * net.rng.standard_normal(8)).astype(np.float32), "std"))
    x = net.concat(x, c, axis=1)
    for i, n in enumerate((14, 24)):
        with net.scope(f"layer{i}"):
            y = linear(net, x, n, 24, rank=2)
            x = activation(net, batch_norm(net, y, 24), net.pick("elu", "softplus", "mish"))
    net.output(linear(net, x, 24, 2, rank=2, hint="head"), "risk")


def pointnet(net):
    points = net.input("points", [BATCH, 3, 24], "points")
    y = activation(net, conv(net, points, 3, 12, 1, rank=1, hint="tnet"), "relu")
    t = net.reshape(linear(net, net.reduce("Max", y, [2], 0), 12, 9, rank=2, hint="matrix", gain=0.5), [BATCH, 3, 3], like=points)
    x = net.transpose(net.op("MatMul", net.transpose(points, 0, 2, 1), net.add(t, net.const(np.eye(3)[None]))), 0, 2, 1)
    for i, (n, m) in enumerate([(3, 12), (12, 24)]):
        x = activation(net, conv(net, x, n, m, 1, rank=1, hint=f"mlp{i}"), "relu")
    net.output(linear(net, net.reduce("Max", x, [2], 0), 24, 7, rank=2, hint="head"), "logits")


def dgcnn(net):
    """Nearest neighbours in the graph, features of edges."""
    x = net.input("points", [1, 16, 3], "points")
    square = net.reduce("Sum", net.mul(x, x), [2])
    product = net.mul(net.op("MatMul", x, net.transpose(x, 0, 2, 1)), net.const(2.0))
    near = net.op("Sub", net.op("Sub", product, square), net.transpose(square, 0, 2, 1))
    _, index = net.topk(near, 4)
    flat = net.op("Reshape", x, net.ints(16, 3))
    neighbours = net.op("Reshape", net.op("Gather", flat, net.op("Reshape", index, net.ints(-1)), axis=0), net.ints(1, 16, 4, 3))
    centre = net.op("Tile", net.unsqueeze(x, 2), net.ints(1, 1, 4, 1))
    y = net.concat(net.op("Sub", neighbours, centre), centre, axis=3)
    y = activation(net, linear(net, y, 6, 16, rank=4, hint="edge1"), "leaky")
    y = net.reduce("Max", linear(net, y, 16, 16, rank=4, hint="edge2"), [2], 0)
    net.output(linear(net, y, 16, 5, hint="head"), "parts")


def experts(net):
    """Two of four experts for each token."""
    x, _ = embed(net, net.input("ids", [BATCH, 8], "tokens"), 50, 16)
    gate = linear(net, x, 16, 4, bias=False, hint="router", gain=2.0)
    best, index = net.topk(gate, 2)
    weights = net.softmax(best, 3)
    hot = net.op("Cast", net.op("Equal", net.unsqueeze(index, 3), net.const(np.arange(4).reshape(1, 1, 1, 4), np.int64)), to=1)
    share = net.reduce("Sum", net.mul(hot, net.unsqueeze(weights, 3)), [2], 0)
    parts = []
    for i in range(4):
        one = net.slice(share, 2, i, i + 1)
        parts.append(net.mul(one, mlp(net, x, 16, 24, "swish", f"expert{i}")))
    y = layer_norm(net, net.add(x, net.op("Sum", *parts)), 16)
    net.output(linear(net, y, 16, 6, hint="head"), "logits")


def nerf(net):
    """Positions as sines and cosines; the input once more half-way."""
    x = net.input("rays", [BATCH, 10, 3], "points")
    parts = [x]
    for k in range(4):
        angle = net.mul(x, net.const(float(2 ** k * np.pi / 2)))
        parts += [net.op("Sin", angle), net.op("Cos", angle)]
    e = net.concat(*parts, axis=2)
    h = activation(net, linear(net, e, 27, 32, hint="fc1"), "relu")
    h = activation(net, linear(net, net.concat(h, e, axis=2), 59, 32, hint="fc2"), "relu")
    density = activation(net, linear(net, h, 32, 1, hint="sigma"), "softplus")
    colour = net.op("Sigmoid", linear(net, h, 32, 3, hint="rgb"))
    # What light is left behind each sample of a ray: a product, as the exponential of a sum.
    left = net.op("Exp", net.op("Neg", net.op("CumSum", net.mul(density, net.const(0.2)), net.const(1, np.int64), exclusive=1)))
    alpha = net.op("Sub", net.const(1.0), net.op("Exp", net.op("Neg", net.mul(density, net.const(0.2)))))
    net.output(net.reduce("Sum", net.mul(net.mul(left, alpha), colour), [1], 0), "colour")


def memory(net):
    """A tensor that is written in place: rows of a cache get new values."""
    x, cache = net.input("step", [1, 8], "features"), net.input("cache", [6, 8], "features")
    key = linear(net, x, 8, 8, rank=2, hint="key")
    slot = net.const([[2]], np.int64)
    cache = net.op("ScatterND", cache, slot, key)
    position = net.op("Mod", net.op("Sub", net.const(np.arange(6), np.int64), net.const(net.pick(4, 2), np.int64)), net.const(6, np.int64), fmod=0)
    turned = net.op("Gather", cache, position, axis=0)
    scores = net.op("Div", net.op("MatMul", linear(net, x, 8, 8, rank=2, hint="query"), net.transpose(turned, 1, 0)), net.const(8 ** 0.5))
    decay = net.op("Pow", net.const(0.8), net.op("Cast", net.unsqueeze(position, 0), to=1))
    p = net.mul(net.softmax(scores, 2), decay)
    net.output(linear(net, net.op("MatMul", p, turned), 8, 5, rank=2, hint="out"), "reply")


def autoencoder(net):
    x = images(net, channels=2, side=8)
    h = activation(net, linear(net, flatten(net, x, 2, 8), 128, 24, rank=2, hint="encode"), "tanh")
    mean, log_variance = net.split(linear(net, h, 24, 12, rank=2, hint="latent"), [6, 6], 1)
    y = activation(net, linear(net, mean, 6, 24, rank=2, hint="decode1"), "tanh")
    net.output(net.reshape(net.op("Sigmoid", linear(net, y, 24, 128, rank=2, hint="decode2")), [BATCH, 2, 8, 8]), "image_out")
    net.output(net.op("Exp", net.mul(log_variance, net.const(0.5))), "deviation")
