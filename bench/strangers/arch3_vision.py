"""Third generation: networks that see."""
import numpy as np

from blocks import activation, attention, batch_norm, layer_norm, linear, mlp
from net import BATCH
from vision import classifier, conv, conv_bn, flatten, global_pool, images, pool, resize, to_tokens, up_conv


def celu(net, x, alpha):
    """As the operator, or by what it stands for."""
    if net.opset >= 12 and net.pick(True, True, False):
        return net.op("Celu", x, alpha=alpha)
    return net.mul(net.op("Elu", net.op("Div", x, net.const(alpha)), alpha=1.0), net.const(alpha))


def standardized_conv(net, x, n, m, k, stride=1, hint="conv"):
    """Its weights lose their mean and deviation in the graph."""
    with net.scope(hint):
        w = net.trained((m, n, k, k), n * k * k, 1.4)
        centred = net.op("Sub", w, net.reduce("Mean", w, [1, 2, 3]))
        deviation = net.op("Sqrt", net.add(net.reduce("Mean", net.mul(centred, centred), [1, 2, 3]), net.const(net.pick(1e-5, 1e-6))))
        w = net.mul(net.op("Div", centred, deviation), net.const(1.3 * (n * k * k) ** -0.5))
        return net.op("Conv", x, w, net.vector(m), kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4)


def shared_group_norm(net, x, n, groups, side, hint="gn"):
    """A scale and an offset for each group, written for each channel."""
    with net.scope(hint):
        scale, offset = (np.repeat(m + 0.3 * net.rng.standard_normal(groups), n // groups).astype(np.float32) for m in (1, 0))
        if net.opset >= 21:
            return net.op("GroupNormalization", x, net.weight(scale), net.weight(offset, "bias"), num_groups=groups, epsilon=1e-5)
        y = net.op("InstanceNormalization", net.op("Reshape", x, net.ints(0, groups, -1)), net.const(np.ones(groups)),
                   net.const(np.zeros(groups)), epsilon=1e-5)
        y = net.reshape(y, [BATCH, n, side, side], like=x)
        return net.add(net.mul(y, net.weight(scale.reshape(-1, 1, 1))), net.weight(offset.reshape(-1, 1, 1), "bias"))


def seg_net(net):
    """Where a maximum was, it goes back to."""
    act, half = net.pick("relu", "leaky"), dict(kernel_shape=[2, 2], strides=[2, 2])
    x, at1 = net.op("MaxPool", conv_bn(net, images(net), 3, 8, 3, act, hint="enc1"), n=2, **half)
    x, at2 = net.op("MaxPool", conv_bn(net, x, 8, 12, 3, act, hint="enc2"), n=2, **half)
    x = conv_bn(net, x, 12, 12, net.pick(1, 3), act, hint="middle")
    x = conv_bn(net, net.op("MaxUnpool", x, at2, **half), 12, 8, 3, act, hint="dec2")
    x = conv_bn(net, net.op("MaxUnpool", x, at1, **half), 8, 8, 3, act, hint="dec1")
    net.output(conv(net, x, 8, 4, 3, hint="classify"), "mask")


def big_transfer(net):
    n, groups = net.pick((12, 3), (16, 4), (16, 2))
    x = standardized_conv(net, images(net), 3, n, 3, 2, "root")
    for i in range(2):
        with net.scope(f"unit{i}"):
            y = activation(net, shared_group_norm(net, x, n, groups, 8, "gn1"), "relu")
            y = activation(net, shared_group_norm(net, standardized_conv(net, y, n, n, 3, hint="conv1"), n, groups, 8, "gn2"), net.pick("relu", "elu"))
            x = net.add(x, standardized_conv(net, y, n, n, 1, hint="conv2"))
    net.output(classifier(net, global_pool(net, shared_group_norm(net, x, n, groups, 8), keep=False), n, 7), "logits")


def rep_vgg(net):
    """As it is trained: a wide branch, a narrow one, and what goes straight through a norm."""
    n, act = net.pick(12, 16), net.pick("relu", "swish", "celu")
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="stem")
    for i in range(net.pick(2, 3)):
        with net.scope(f"stage{i}"):
            parts = [conv_bn(net, x, n, n, k, None, hint=f"rbr_{k}") for k in (3, 1)]
            y = net.add(net.add(*parts), batch_norm(net, x, n, "rbr_identity"))
            x = celu(net, y, net.pick(0.5, 1.7)) if act == "celu" else activation(net, y, act)
    net.output(classifier(net, global_pool(net, x, keep=False), n, 9), "logits")


def selective_kernel(net):
    """Two kernels, and a share of each for every channel."""
    n = net.pick(8, 12)
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="stem")
    if net.pick(True, False):
        x = pool(net, x, "Average", 3, 2, 0, 1, net.pick(0, 1))
    for i in range(2):
        with net.scope(f"sk{i}"):
            a = conv_bn(net, x, n, n, 3, "relu", groups=net.pick(1, 2), hint="near")
            b = conv_bn(net, x, n, n, 3, "relu", dilation=2, hint="far")
            z = activation(net, linear(net, global_pool(net, net.add(a, b), keep=False), n, 8, rank=2, hint="fc"), "relu")
            share = net.softmax(net.reshape(linear(net, z, 8, 2 * n, rank=2, hint="fcs", gain=2.0), [BATCH, 2, n], like=x), 3, axis=1)
            first, second = (net.unsqueeze(net.squeeze(s, 1), 2, 3) for s in net.split(share, [1, 1], 1))
            x = net.add(x, net.add(net.mul(a, first), net.mul(b, second)))
    net.output(classifier(net, global_pool(net, x, keep=False), n, 6), "logits")


def mobile_vit(net):
    """Pixels at the same place of their patch look at each other."""
    d = net.pick(12, 16)
    x = conv_bn(net, images(net), 3, d, 3, "swish", stride=2, hint="stem")
    y = conv_bn(net, x, d, d, 3, "swish", hint="local")
    t = net.transpose(net.reshape(y, [BATCH, d, 4, 2, 4, 2], like=x), 0, 3, 5, 2, 4, 1)
    t = net.op("Reshape", t, net.ints(-1, 16, d))
    for i in range(net.pick(1, 2)):
        with net.scope(f"transformer{i}"):
            t = net.add(t, attention(net, layer_norm(net, t, d, hint="norm1"), 16, d, 2, lead=-1))
            t = net.add(t, mlp(net, layer_norm(net, t, d, hint="norm2"), d, 2 * d, "swish"))
    t = net.transpose(net.reshape(t, [BATCH, 2, 2, 4, 4, d], like=x), 0, 5, 3, 1, 4, 2)
    y = conv_bn(net, net.concat(x, net.reshape(t, [BATCH, d, 8, 8], like=x), axis=1), 2 * d, d, 3, "swish", hint="fuse")
    net.output(classifier(net, global_pool(net, y, keep=False), d, 8), "logits")


def roi_heads(net):
    """Features of given boxes, and how the boxes should be."""
    boxes = net.input("proposals", [6, 4], "boxes")
    x = conv_bn(net, images(net), 3, 12, 3, "relu", stride=2, hint="backbone")
    mode = net.pick("half_pixel", "half_pixel", "output_half_pixel")
    x = net.op("RoiAlign", x, boxes, net.const(np.zeros(6), np.int64), output_height=3, output_width=3, spatial_scale=0.5,
               sampling_ratio=net.pick(1, 2), mode=net.pick("avg", "avg", "max"), coordinate_transformation_mode=mode)
    h = activation(net, linear(net, net.op("Flatten", x, axis=1), 108, 24, rank=2, hint="fc6"), "relu")
    net.output(net.softmax(linear(net, h, 24, 4, rank=2, hint="cls_score", gain=2.0), 2), "scores")
    d = net.op("Div", linear(net, h, 24, 4, rank=2, hint="bbox_pred"), net.const([[10.0, 10.0, 5.0, 5.0]]))
    low, high = net.split(boxes, [2, 2], 1)
    size = net.op("Sub", high, low)
    centre = net.add(low, net.mul(size, net.const(0.5)))
    move, grow = net.split(d, [2, 2], 1)
    centre, half = net.add(net.mul(move, size), centre), net.mul(net.mul(net.op("Exp", grow), size), net.const(0.5))
    net.output(net.clip(net.concat(net.op("Sub", centre, half), net.add(centre, half), axis=1), 0.0, 16.0), "boxes")


def dfl_detector(net):
    """Distances to the sides as expectations over bins, at the middle of each cell."""
    n, bins, act = net.pick(8, 12), net.pick(4, 8), net.pick("swish", "relu")
    p3 = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="p3")
    p4 = conv_bn(net, p3, n, n, 3, act, stride=2, hint="p4")
    boxes, scores = [], []
    for p, side, stride in ((p3, 8, 2.0), (p4, 4, 4.0)):
        with net.scope(f"head{side}"):
            y = net.reshape(conv(net, p, n, 4 * bins, 1, hint="reg", gain=2.0), [BATCH, 4, bins, side * side], like=p)
            share = net.softmax(net.transpose(y, 0, 1, 3, 2), 4)
            d = net.squeeze(net.op("MatMul", share, net.const(np.arange(bins)[:, None])), 3)
            lt, rb = net.split(d, [2, 2], 1)
            points = (np.stack(np.meshgrid(range(side), range(side)), 0).reshape(1, 2, -1) + 0.5) * stride
            lt, rb = (net.mul(v, net.const(stride)) for v in (lt, rb))
            boxes.append(net.concat(net.op("Sub", net.const(points), lt), net.add(rb, net.const(points)), axis=1))
            scores.append(net.reshape(net.op("Sigmoid", conv(net, p, n, 3, 1, hint="cls", gain=2.0)), [BATCH, 3, side * side], like=p))
    net.output(net.concat(*boxes, axis=2), "boxes")
    net.output(net.concat(*scores, axis=2), "scores")


def centre_face(net):
    """Heads of one shape: how large, and how far from the cell's corner."""
    n, act = net.pick(8, 12), net.pick("relu", "leaky")
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="stem"), n, n, 3, act, hint="body")
    heads = {}
    for name, m in (("hm", 1), ("wh", 2), ("off", 2), ("lm", 4)):
        with net.scope(name):
            heads[name] = conv(net, activation(net, conv(net, x, n, 8, 3, hint="conv"), "relu"), 8, m, 1, hint="out", gain=1.6)
    size = net.mul(net.op("Exp", net.mul(heads["wh"], net.const(0.5))), net.const(2.0))
    cells = np.stack(np.meshgrid(range(8), range(8)), 0).reshape(1, 2, 8, 8)
    centre = net.mul(net.add(net.op("Sigmoid", heads["off"]), net.const(cells)), net.const(2.0))
    net.output(net.op("Sigmoid", heads["hm"]), "heatmap")
    net.output(net.concat(net.op("Sub", centre, size), net.add(centre, size), axis=1), "boxes")
    net.output(heads["lm"], "landmarks")


def deform_net(net):
    """Features are read where offsets say, each with a weight."""
    n, align = net.pick(8, 12), net.pick(0, 1)
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="stem")
    line = np.linspace(-1, 1, 8) if align else (2 * np.arange(8) + 1) / 8 - 1
    base = np.stack(np.meshgrid(line, line), -1)[None]
    for i in range(2):
        with net.scope(f"deform{i}"):
            offset = net.transpose(net.op("Tanh", conv(net, x, n, 2, 3, hint="offset", gain=1.5)), 0, 2, 3, 1)
            grid = net.add(net.mul(offset, net.const(net.pick(0.2, 0.35))), net.const(base))
            y = net.op("GridSample", x, grid, align_corners=align, padding_mode=net.pick("zeros", "border"))
            y = net.mul(y, net.op("Sigmoid", conv(net, x, n, 1, 3, hint="mask")))
            x = activation(net, net.add(x, conv(net, y, n, n, 1, hint="conv")), "relu")
    net.output(classifier(net, global_pool(net, x, keep=False), n, 6), "logits")


def wrapped(net, x, side, both=False):
    """One more pixel on every side: left and right meet; above and below is nothing, unless both do."""
    if net.opset >= 19 and net.pick(True, False):
        x = net.op("Pad", x, net.ints(0, 0, 0, 1, 0, 0, 0, 1), mode="wrap")
    else:
        x = net.concat(net.slice(x, 3, side - 1, side), x, net.slice(x, 3, 0, 1), axis=3)
    if both:
        return net.concat(net.slice(x, 2, side - 1, side), x, net.slice(x, 2, 0, 1), axis=2)
    return net.pad(x, [0, 0, 1, 0, 0, 0, 1, 0])


def panorama(net):
    n, act, x = net.pick(8, 12), net.pick("relu", "elu", "mish"), images(net, side=12)
    for i, m in enumerate((n, n, 5)):
        with net.scope(f"layer{i}"):
            y = conv(net, wrapped(net, x, 12), 3 if i == 0 else n, m, 3, pads=[0] * 4)
            x = y if i == 2 else activation(net, batch_norm(net, y, n), act)
    net.output(x, "layout")


def cait(net):
    """Heads talk to each other; what a block adds is scaled by channel; a class looks at all in the end."""
    d, heads = net.pick((16, 2), (24, 3))
    x = to_tokens(net, conv(net, images(net), 3, d, 4, stride=4, pads=[0] * 4, hint="patch_embed"), d, 16)
    x = net.add(x, net.weight((0.6 * net.rng.standard_normal((1, 16, d))).astype(np.float32), "pos_embed"))
    for i in range(2):
        with net.scope(f"blocks{i}"):
            mix = net.weight((np.eye(heads) + 0.3 * net.rng.standard_normal((heads, heads))).astype(np.float32).reshape(heads, heads, 1, 1), "proj_l")
            y = attention(net, layer_norm(net, x, d, hint="norm1"), 16, d, heads, adjust=lambda s, mix=mix: net.op("Conv", s, mix, kernel_shape=[1, 1]))
            x = net.add(x, net.mul(y, net.vector(d, 0.5, 0.2, "gamma_1")))
            x = net.add(x, net.mul(mlp(net, layer_norm(net, x, d, hint="norm2"), d, 2 * d), net.vector(d, 0.5, 0.2, "gamma_2")))
    c = net.add(net.mul(net.slice(x, 1, 0, 1), net.const(0.0)), net.weight(net.rng.standard_normal((1, 1, d)).astype(np.float32), "cls_token"))
    both = layer_norm(net, net.concat(c, x, axis=1), d, hint="norm_cls")
    c = net.add(c, attention(net, net.slice(both, 1, 0, 1), 1, d, heads, kv=both, kv_length=17, hint="class_attn"))
    net.output(linear(net, net.squeeze(layer_norm(net, c, d), 1), d, 8, rank=2, hint="head", gain=1.5), "logits")


def style_gan(net):
    """Styles multiply what a convolution reads; its weights' length is divided out again; noise is an input."""
    n, latent = 8, net.input("w", [BATCH, 10], "features")
    noise = net.input("noise", [BATCH, 1, 8, 8], "features")
    zero = net.unsqueeze(net.mul(net.slice(latent, 1, 0, 1), net.const(0.0)), 2, 3)
    x = net.add(zero, net.weight(net.rng.standard_normal((1, n, 4, 4)).astype(np.float32), "const"))
    rgb = None
    for i, side in enumerate((4, 8)):
        with net.scope(f"synthesis{side}"):
            style = net.add(linear(net, latent, 10, n, rank=2, hint="affine", gain=0.5), net.const(1.0))
            if i:
                x = resize(net, x, 2.0, None, net.pick("nearest", "linear"))
            w = net.trained((n, n, 3, 3), 9 * n, 1.4, "conv_weight")
            y = net.op("Conv", net.mul(x, net.unsqueeze(style, 2, 3)), w, kernel_shape=[3, 3], pads=[1] * 4)
            energy = net.op("MatMul", net.mul(style, style), net.transpose(net.reduce("Sum", net.mul(w, w), [2, 3], 0), 1, 0))
            y = net.op("Div", y, net.unsqueeze(net.op("Sqrt", net.add(energy, net.const(1e-8))), 2, 3))
            if i:
                y = net.add(y, net.mul(noise, net.const(net.pick(0.1, 0.3))))
            x = net.op("LeakyRelu", net.add(y, net.weight((0.2 * net.rng.standard_normal((1, n, 1, 1))).astype(np.float32), "bias")), alpha=0.2)
            new = conv(net, x, n, 3, 1, hint="torgb")
            rgb = net.add(resize(net, rgb, 2.0, None, "linear"), new) if rgb else new
    net.output(rgb, "image")


def naf_net(net):
    """No activations: halves are multiplied."""
    n = net.pick(8, 12)
    source = images(net)
    x = conv(net, source, 3, n, 3, hint="intro")
    for i in range(2):
        with net.scope(f"block{i}"):
            y = net.transpose(layer_norm(net, net.transpose(x, 0, 2, 3, 1), n, 1e-6, "norm1"), 0, 3, 1, 2)
            y = conv(net, conv(net, y, n, 2 * n, 1, hint="conv1"), 2 * n, 2 * n, 3, groups=2 * n, hint="conv2")
            y = net.mul(*net.split(y, [n, n], 1))
            y = net.mul(y, conv(net, global_pool(net, y), n, n, 1, hint="sca"))
            x = net.add(x, net.mul(conv(net, y, n, n, 1, hint="conv3"), net.weight((0.4 + 0.1 * net.rng.standard_normal((1, n, 1, 1))).astype(np.float32), "beta")))
    net.output(net.add(source, conv(net, x, n, 3, 3, hint="ending", gain=0.6)), "restored")


def temporal_shift(net):
    """A part of the channels moves on by a frame, a part moves back."""
    n = net.pick(8, 12)
    clip = net.input("clip", [BATCH, 4, 3, 8, 8], "image")
    x = net.op("Reshape", clip, net.ints(-1, 3, 8, 8))
    x = conv_bn(net, x, 3, n, 3, "relu", hint="conv1")
    for i in range(2):
        with net.scope(f"layer{i}"):
            v = net.reshape(x, [BATCH, 4, n, 8, 8], like=clip)
            a, b, c = net.split(v, [2, 2, n - 4], 2)
            a = net.pad(net.slice(a, 1, 1, 4), [0] * 6 + [1, 0, 0, 0])
            b = net.pad(net.slice(b, 1, 0, 3), [0, 1] + [0] * 8)
            y = net.op("Reshape", net.concat(a, b, c, axis=2), net.ints(-1, n, 8, 8))
            x = net.add(x, conv_bn(net, y, n, n, 3, net.pick("relu", "tanh"), hint="conv"))
    y = linear(net, net.reduce("Mean", x, [2, 3], 0), n, 6, rank=2, hint="fc", gain=2.0)
    net.output(net.reduce("Mean", net.reshape(y, [BATCH, 4, 6], like=clip), [1], 0), "logits")


def now_casting(net):
    """Frames go through a gated cell of convolutions, twice; what comes next is drawn from its state."""
    n, side, frames = net.pick(6, 8), 8, 3
    clip = net.input("radar", [BATCH, frames, 1, side, side], "image")
    w = [net.trained((m, k, 3, 3), 9 * k, 1.4, h) for m, k, h in ((2 * n, n + 1, "gates"), (n, n + 1, "candidate"), (1, n, "head"))]
    gates_bias, h = net.vector(2 * n), None

    def cell(x, h, t):
        with net.scope(f"step{t}"):
            if h is None:
                h = net.mul(net.concat(*[x] * n, axis=1), net.const(0.0))
            both = net.op("Sigmoid", net.op("Conv", net.concat(x, h, axis=1), w[0], gates_bias, kernel_shape=[3, 3], pads=[1] * 4))
            z, r = net.split(both, [n, n], 1)
            new = net.op("Tanh", net.op("Conv", net.concat(x, net.mul(r, h), axis=1), w[1], kernel_shape=[3, 3], pads=[1] * 4))
            if keeps:
                return net.add(net.mul(z, h), net.mul(net.op("Sub", net.const(1.0), z), new))
            return net.add(net.mul(net.op("Sub", net.const(1.0), z), h), net.mul(z, new))
    keeps = net.pick(True, False)
    for t in range(frames):
        h = cell(net.squeeze(net.slice(clip, 1, t, t + 1), 1), h, t)
    ahead = []
    for t in range(2):
        x = net.op("Conv", h, w[2], kernel_shape=[3, 3], pads=[1] * 4)
        ahead.append(net.unsqueeze(x, 1))
        h = cell(x, h, frames + t)
    net.output(net.op("Relu", net.concat(*ahead, axis=1)), "ahead")


def r2_plus_1(net):
    """Convolutions over space, then over time."""
    n, act = net.pick(6, 8), net.pick("relu", "elu")
    x = net.input("clip", [BATCH, 2, 4, 8, 8], "image")
    for i, m in enumerate((n, n)):
        with net.scope(f"layer{i}"):
            y = conv(net, x, 2 if i == 0 else n, m, (1, 3, 3), pads=[0, 1, 1] * 2, rank=3, hint="spatial")
            y = activation(net, batch_norm(net, y, m), act)
            y = batch_norm(net, conv(net, y, m, m, (3, 1, 1), pads=[1, 0, 0] * 2, rank=3, hint="temporal"), m, "bn2")
            x = activation(net, net.add(x, y) if i else y, act)
    x = net.op("MaxPool", x, kernel_shape=[1, 2, 2], strides=[1, 2, 2])
    net.output(linear(net, net.reduce("Mean", x, [2, 3, 4], 0), n, 5, rank=2, hint="fc", gain=2.0), "logits")


def arc_face(net):
    """A face as a direction; its likeness to known ones."""
    n = net.pick(8, 12)
    x = conv_bn(net, images(net), 3, n, 3, None, stride=2, hint="input_layer")
    x = activation(net, x, "prelu", n)
    for i in range(2):
        with net.scope(f"body{i}"):
            y = batch_norm(net, x, n, "bn0")
            y = conv(net, y, n, n, 3, hint="conv1")
            y = celu(net, y, net.pick(0.4, 2.0)) if net.pick(True, False) else activation(net, y, "prelu", n)
            x = net.add(x, conv_bn(net, y, n, n, 3, None, hint="conv2"))
    y = linear(net, flatten(net, pool(net, batch_norm(net, x, n, "output_bn")), n, 4), 16 * n, 16, rank=2, hint="linear")
    y = net.op("LpNormalization", batch_norm(net, y, 16, "features"), axis=1, p=2)
    w = net.op("LpNormalization", net.trained((7, 16), 16, 1.0, "known"), axis=1, p=2)
    likeness = net.op("MatMul", y, net.transpose(w, 1, 0))
    net.output(y, "embedding")
    scale = net.op("Exp", net.weight(np.array(net.pick(1.4, 2.1), np.float32), "logit_scale")) if net.pick(True, False) else net.const(net.pick(8.0, 16.0))
    net.output(net.mul(likeness, scale), "logits")


def pool_pyramid(net):
    """Means of several sizes, some over the edge, and maxima with holes."""
    n = net.pick(8, 10)
    x = conv_bn(net, images(net), 3, n, 3, "relu", hint="stem")
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[2] * 4, dilations=[2, 2])
    parts = [x]
    for k, stride in ((3, 2), (5, 4)):
        with net.scope(f"level{k}"):
            y = pool(net, x, "Average", k, stride, 0, 1, net.pick(0, 1))
            y = conv_bn(net, y, n, 4, 1, "relu", hint="reduce")
            parts.append(resize(net, y, float(stride), [4, 16, 16], net.pick("linear", "nearest")))
    y = conv_bn(net, net.concat(*parts, axis=1), n + 8, n, 3, "relu", hint="bottleneck")
    net.output(conv(net, y, n, 5, 1, hint="classify"), "segmentation")


def pix2pix(net):
    """Borders are added in front of strided convolutions; transposed ones lead back."""
    n, act, x = net.pick(8, 12), net.pick("leaky", "relu"), images(net)
    for i in range(2):
        with net.scope(f"down{i}"):
            top, left, bottom, right = net.pick((0, 0, 1, 1), (1, 0, 1, 1), (1, 0, 0, 1), (0, 1, 1, 0))
            x = net.pad(x, [0, 0, top, left, 0, 0, bottom, right])
            x = activation(net, batch_norm(net, conv(net, x, 3 if i == 0 else n, n, 3, stride=2, pads=[0] * 4), n), act)
    for i in range(2):
        with net.scope(f"up{i}"):
            x = activation(net, batch_norm(net, up_conv(net, x, n, n, *net.pick((2, 2, 0), (4, 2, 1))), n), "relu")
    net.output(net.op("Tanh", conv(net, x, n, 3, 1, hint="out")), "generated")
