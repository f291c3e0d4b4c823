"""Second generation: networks that see."""
import numpy as np

from blocks import activation, attention, batch_norm, layer_norm, linear
from net import BATCH
from vision import classifier, conv, conv_bn, flatten, global_pool, images, pool, resize, squeeze_excite, to_tokens


def standardized(net, image, channels=3):
    """Pixels of 0 to 255 as a network wants them."""
    shape = (1, channels, 1, 1)
    x = net.mul(image, net.const(1 / 255)) if net.pick(True, False) else net.op("Div", image, net.const(255.0))
    mean, deviation = 0.4 + 0.1 * net.rng.random(shape), 0.2 + 0.05 * net.rng.random(shape)
    return net.op("Div", net.op("Sub", x, net.const(mean)), net.const(deviation))


def pixels(net, side=16):
    return standardized(net, net.input("pixels", [BATCH, 3, side, side], "pixels"))


def channel_shuffle(net, x, n, side, groups=2):
    y = net.transpose(net.reshape(x, [BATCH, groups, n // groups, side, side], like=x), 0, 2, 1, 3, 4)
    return net.reshape(y, [BATCH, n, side, side], like=x)


def conv_mixer(net):
    n, act, k = net.pick(12, 16, 20), net.pick("gelu", "relu", "elu"), net.pick(3, 5, 7)
    x = conv(net, images(net), 3, n, 2, stride=2, pads=[0] * 4, hint="patch")
    x = batch_norm(net, activation(net, x, act), n)
    for i in range(net.pick(2, 3)):
        with net.scope(f"layers{i}"):
            y = activation(net, conv(net, x, n, n, k, groups=n, hint="depthwise"), act)
            x = net.add(batch_norm(net, y, n, "bn1"), x)
            x = batch_norm(net, activation(net, conv(net, x, n, n, 1, hint="pointwise"), act), n, "bn2")
    net.output(classifier(net, global_pool(net, x, keep=False), n, net.pick(6, 10)), "logits")


def ghost_net(net):
    act = net.pick("relu", "hardswish", "swish")

    def ghost(x, n, m, hint):
        with net.scope(hint):
            a = conv_bn(net, x, n, m // 2, 1, act, hint="primary")
            return net.concat(a, conv_bn(net, a, m // 2, m // 2, net.pick(3, 5), act, groups=m // 2, hint="cheap"), axis=1)
    x, n = conv_bn(net, images(net), 3, 16, 3, act, stride=2, hint="stem"), 16
    for i, m in enumerate((16, net.pick(16, 24))):
        with net.scope(f"stage{i}"):
            y = ghost(x, n, 2 * n, "expand")
            if net.pick(True, False):
                y = squeeze_excite(net, y, 2 * n, n // 2, "hard")
            y = channel_shuffle(net, ghost(y, 2 * n, m, "project"), m, 8, net.pick(2, 4))
            x, n = net.add(x, y) if n == m else y, m
    net.output(classifier(net, global_pool(net, x, keep=False), n, 8), "logits")


def hr_net(net):
    """Two resolutions that exchange what they have."""
    mode, act = net.pick("nearest", "linear"), net.pick("relu", "leaky")
    a = conv_bn(net, pixels(net), 3, 8, 3, act, stride=2, hint="stem")
    b = conv_bn(net, a, 8, 12, 3, act, stride=2, hint="transition")
    for i in range(2):
        with net.scope(f"stage{i}"):
            a, b = conv_bn(net, a, 8, 8, 3, act, hint="high"), conv_bn(net, b, 12, 12, 3, act, hint="low")
            up = resize(net, conv_bn(net, b, 12, 8, 1, None, hint="up"), 2.0, None, mode)
            down = conv_bn(net, a, 8, 12, 3, None, stride=2, hint="down")
            a, b = activation(net, net.add(a, up), act), activation(net, net.add(down, b), act)
    y = net.concat(a, resize(net, b, 2.0, [12, 8, 8], net.pick("linear", "cubic")), axis=1)
    net.output(conv(net, conv_bn(net, y, 20, 12, 1, act, hint="fuse"), 12, 4, 1, hint="heat", gain=2.0), "heatmaps")


def fpn_detector(net):
    """A pyramid with a head for all levels; distances to a box's sides, and how far a point is from its middle."""
    c3 = conv_bn(net, images(net), 3, 12, 3, "relu", stride=2, hint="c3")
    c4 = conv_bn(net, c3, 12, 16, 3, "relu", stride=2, hint="c4")
    p4 = conv(net, c4, 16, 12, 1, hint="lateral4")
    p3 = net.add(conv(net, c3, 12, 12, 1, hint="lateral3"), resize(net, p4, 2.0, None, "nearest"))
    p3 = conv(net, p3, 12, 12, 3, hint="smooth3")
    w = [net.trained((m, 12, 3, 3), 108, g, h) for m, g, h in ((12, 1.4, "tower"), (3, 2.0, "classes"), (4, 0.7, "sides"), (1, 1.5, "centre"))]
    boxes, scores = [], []
    for i, (p, side, stride) in enumerate(((p3, 8, 2.0), (p4, 4, 4.0))):
        with net.scope(f"level{i}"):
            def head(x, k):
                return net.op("Conv", x, w[k], kernel_shape=[3, 3], pads=[1] * 4)

            def rows(x, n):
                return net.transpose(net.reshape(x, [BATCH, n, side * side], like=x), 0, 2, 1)
            t = activation(net, head(p, 0), "relu")
            kind, sides, centre = rows(net.op("Sigmoid", head(t, 1)), 3), rows(head(t, 2), 4), rows(net.op("Sigmoid", head(t, 3)), 1)
            sides = net.mul(net.op("Exp", net.mul(sides, net.const(0.4 + 0.2 * i))), net.const(stride))
            points = (np.stack(np.meshgrid(range(side), range(side)), -1).reshape(1, side * side, 2) + 0.5) * stride
            lt, rb = net.split(sides, [2, 2], 2)
            boxes.append(net.concat(net.op("Sub", net.const(points), lt), net.add(net.const(points), rb), axis=2))
            scores.append(net.op("Sqrt", net.mul(kind, centre)))
    net.output(net.concat(*boxes, axis=1), "boxes")
    net.output(net.concat(*scores, axis=1), "scores")


def bifpn(net):
    """Levels are added with weights that are made positive and divided by their sum."""
    n, act = net.pick(8, 12), net.pick("swish", "relu")
    c = [conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="c0")]
    c.append(conv_bn(net, c[0], n, n, 3, act, stride=2, hint="c1"))

    def fuse(a, b, hint):
        with net.scope(hint):
            w = net.op("Relu", net.weight(np.abs(1 + 0.4 * net.rng.standard_normal(2)).astype(np.float32), "fusion"))
            w = net.op("Div", w, net.add(net.reduce("Sum", w, [0]), net.const(net.pick(1e-4, 1e-3))))
            parts = [net.mul(x, net.op("Gather", w, net.const(i, np.int64), axis=0)) for i, x in enumerate((a, b))]
            return conv_bn(net, activation(net, net.add(*parts), act), n, n, 3, None, groups=n, hint="conv")
    for i in range(2):
        with net.scope(f"cell{i}"):
            top = fuse(c[0], resize(net, c[1], 2.0, None, "nearest"), "down")
            c = [top, fuse(c[1], pool(net, top, "Max", 3, 2, 1), "up")]
    net.output(conv(net, c[0], n, 6, 3, hint="high"), "high")
    net.output(conv(net, c[1], n, 6, 3, hint="low"), "low")


def segformer(net):
    dim, heads = net.pick((16, 2), (24, 3), (24, 2))
    x = conv(net, images(net), 3, dim, 3, stride=2, hint="overlap_patch")
    for i in range(2):
        with net.scope(f"block{i}"):
            t = to_tokens(net, x, dim, 64)
            y = layer_norm(net, t, dim, hint="norm1")
            small = conv(net, net.reshape(net.transpose(y, 0, 2, 1), [BATCH, dim, 8, 8], like=x), dim, dim, 2, stride=2, pads=[0] * 4, hint="sr")
            kv = layer_norm(net, to_tokens(net, small, dim, 16), dim, hint="sr_norm")
            t = net.add(t, attention(net, y, 64, dim, heads, kv=kv, kv_length=16))
            y = linear(net, layer_norm(net, t, dim, hint="norm2"), dim, 2 * dim, hint="fc1")
            y = conv(net, net.reshape(net.transpose(y, 0, 2, 1), [BATCH, 2 * dim, 8, 8], like=x), 2 * dim, 2 * dim, 3, groups=2 * dim, hint="dw")
            y = linear(net, activation(net, to_tokens(net, y, 2 * dim, 64), "gelu"), 2 * dim, dim, hint="fc2")
            x = net.reshape(net.transpose(net.add(t, y), 0, 2, 1), [BATCH, dim, 8, 8], like=x)
    low = resize(net, conv_bn(net, x, dim, 12, 3, "relu", stride=2, hint="low"), 2.0, [12, 8, 8])
    y = conv_bn(net, net.concat(low, x, axis=1), 12 + dim, 12, 1, "relu", hint="fuse")
    net.output(resize(net, conv(net, y, 12, 5, 1, hint="classify"), 2.0, [5, 16, 16]), "segmentation")


def unet_plus(net):
    """Nested skips, two depths of supervision."""
    act = net.pick("relu", "elu", "mish")

    def up(x):
        return resize(net, x, 2.0)
    a0 = conv_bn(net, images(net), 3, 8, 3, act, hint="x00")
    b0 = conv_bn(net, pool(net, a0), 8, 12, 3, act, hint="x10")
    c0 = conv_bn(net, pool(net, b0), 12, 16, 3, act, hint="x20")
    a1 = conv_bn(net, net.concat(a0, up(b0), axis=1), 20, 8, 3, act, hint="x01")
    b1 = conv_bn(net, net.concat(b0, up(c0), axis=1), 28, 12, 3, act, hint="x11")
    a2 = conv_bn(net, net.concat(a0, a1, up(b1), axis=1), 28, 8, 3, act, hint="x02")
    y = net.add(conv(net, a1, 8, 2, 1, hint="final1"), conv(net, a2, 8, 2, 1, hint="final2"))
    net.output(net.op("Sigmoid", net.op("Div", y, net.const(2.0))), "mask")


def inception(net):
    """Branches with narrow kernels; what a block adds is scaled down."""
    x = conv_bn(net, pixels(net), 3, 16, 3, "relu", stride=2, hint="stem")
    for i in range(2):
        with net.scope(f"block{i}"):
            a = conv_bn(net, x, 16, 6, 1, "relu", hint="b0")
            b = conv_bn(net, conv_bn(net, x, 16, 6, (1, 5), None, hint="b1a"), 6, 6, (5, 1), "relu", hint="b1b")
            c = conv_bn(net, pool(net, x, "Average", 3, 1, 1, include=net.pick(0, 1)), 16, 4, 1, "relu", hint="b2")
            y = conv(net, net.concat(a, b, c, axis=1), 16, 16, 1, hint="up")
            x = activation(net, net.add(x, net.mul(y, net.const(net.pick(0.17, 0.2, 0.3)))), net.pick("relu", "selu"))
    y = pool(net, conv_bn(net, x, 16, 16, 3, None, hint="last"), "Max", 3, 2, 1)
    net.output(classifier(net, global_pool(net, y, keep=False), 16, 8, net.pick(None, "softmax")), "logits")


def alex_lrn(net):
    """Local response normalization, groups, and dense layers at the end."""
    x = conv(net, images(net), 3, 16, 5, stride=2, hint="conv1")
    x = net.op("LRN", activation(net, x, "relu"), size=net.pick(3, 5), alpha=net.pick(0.05, 0.2), beta=0.75, bias=net.pick(1.0, 2.0))
    x = conv(net, x, 16, 16, 3, groups=net.pick(2, 4), hint="conv2")
    x = pool(net, net.op("LRN", activation(net, x, "relu"), size=5, alpha=0.1, beta=0.75, bias=1.0), "Max", 3, 2, 0, ceil=1)
    x = activation(net, conv(net, x, 16, 12, 3, groups=2, hint="conv3"), "relu")
    x = activation(net, linear(net, flatten(net, x, 12, 4), 192, 32, rank=2, hint="fc6"), net.pick("relu", "selu"))
    net.output(classifier(net, x, 32, 10), "logits")


def cbam(net):
    """Attention over channels from two kinds of pooling, then over places."""
    x = conv_bn(net, pixels(net), 3, 12, 3, "relu", stride=2, hint="stem")
    for i in range(2):
        with net.scope(f"block{i}"):
            y = conv_bn(net, x, 12, 12, 3, "relu", hint="conv")
            w1, w2 = net.trained((12, 4), 12, 1.4, "fc1"), net.trained((4, 12), 4, 1.4, "fc2")
            pooled = [net.reduce(k, y, [2, 3], 0) for k in ("Mean", "Max")]
            gates = [net.op("MatMul", activation(net, net.op("MatMul", p, w1), "relu"), w2) for p in pooled]
            y = net.mul(y, net.unsqueeze(net.op("Sigmoid", net.add(*gates)), 2, 3))
            place = net.concat(net.reduce("Mean", y, [1]), net.reduce("Max", y, [1]), axis=1)
            y = net.mul(y, net.op("Sigmoid", conv(net, place, 2, 1, net.pick(3, 7), hint="spatial")))
            x = net.add(x, y)
    net.output(classifier(net, global_pool(net, x, keep=False), 12, 7), "logits")
