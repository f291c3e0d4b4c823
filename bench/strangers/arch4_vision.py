"""Fourth generation: networks that see."""
import numpy as np

from blocks import activation, instance_norm, layer_norm, linear
from layers4 import block, conv_act_norm, learned, norm_of, scaled_gemm, self_attention, feed_forward
from net import BATCH
from vision import classifier, conv, conv_bn, global_pool, images, pool, resize, squeeze_excite, to_tokens, up_conv


def vgg_behind(net):
    """Norms stand behind activations."""
    act, n = net.pick("relu", "elu", "leaky"), net.pick(8, 12)
    x = conv_act_norm(net, images(net), 3, n, 3, act, hint="conv1")
    x = pool(net, conv_act_norm(net, x, n, n, 3, act, hint="conv2"))
    x = pool(net, conv_act_norm(net, x, n, 2 * n, 3, act, hint="conv3"), net.pick("Max", "Average"))
    net.output(classifier(net, global_pool(net, x, keep=False), 2 * n, 12), "logits")


def aggregation(net):
    """What a convolution gives goes on with its norm, and without it to a node that gathers."""
    n, act = net.pick(8, 12), net.pick("relu", "swish")
    x, raws = conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="base"), []
    for i in range(net.pick(2, 3)):
        with net.scope(f"level{i}"):
            raw = conv(net, x, n, n, 3, hint="conv")
            raws.append(raw)
            x = net.add(activation(net, norm_of(net, raw, n), act), x)
    x = conv_bn(net, net.concat(*raws, x, axis=1), n * (len(raws) + 1), n, 1, act, hint="node")
    net.output(classifier(net, global_pool(net, x, keep=False), n, 7), "logits")


def two_domains(net):
    """Two images of two kinds of cameras: the same weights, norms of their own."""
    n, first, second = net.pick(8, 12), images(net, "visible"), images(net, "thermal")
    w1, w2 = net.trained((n, 3, 3, 3), 27, 1.4), net.trained((n, n, 3, 3), 9 * n, 1.4)
    ends = []
    for name, x in (("visible", first), ("thermal", second)):
        with net.scope(name):
            for i, w in enumerate((w1, w2)):
                x = net.op("Conv", x, w, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
                x = activation(net, norm_of(net, x, n, f"bn{i}"), "relu")
            ends.append(global_pool(net, x, keep=False))
    net.output(classifier(net, net.op("Sub", *ends), n, 5), "logits")


def mnas(net):
    """TensorFlow's padding, with a squeeze in the middle."""
    n, act = net.pick(8, 12), net.pick("relu", "relu6", "hardswish")
    x = conv_bn(net, images(net), 3, n, 3, act, stride=2, same=16, hint="stem")
    x = conv_bn(net, x, n, n, 3, act, groups=n, hint="dw1")
    x = squeeze_excite(net, conv_bn(net, x, n, 2 * n, 1, None, hint="pw1"), 2 * n, 4, net.pick("sigmoid", "hard"))
    x = conv_bn(net, x, 2 * n, 2 * n, 5, act, stride=2, groups=2 * n, same=8, hint="dw2")
    x = conv_bn(net, x, 2 * n, 2 * n, 1, act, hint="pw2")
    net.output(classifier(net, global_pool(net, x, keep=False), 2 * n, 11, net.pick(None, "softmax")), "scores")


def tall_pads(net):
    """Kernels that look up only, as for a row that is not there yet."""
    n, act = net.pick(8, 10), net.pick("relu", "mish")
    x = conv_bn(net, images(net, channels=1), 1, n, (2, 3), act, pads=[1, 1, 0, 1], hint="v1")
    x = conv_bn(net, x, n, n, (2, 3), act, stride=2, pads=[1, 1, 0, 1], hint="v2")
    x = conv_bn(net, x, n, n, (1, 3), act, pads=[0, 2, 0, 0], hint="h1")
    net.output(classifier(net, global_pool(net, x, keep=False), n, 6), "logits")


def registers(net):
    """A vision transformer with tokens that are nobody's, left out of the mean."""
    d, heads, extra = net.pick((24, 2, 1), (24, 3, 2), (32, 4, 1))
    x = to_tokens(net, conv(net, images(net), 3, d, 4, stride=4, pads=[0] * 4, hint="patch"), d, 16)
    more = net.op("Mul", net.reduce("Max", net.mul(x, net.const(0.0)), [1]), net.const(0.0))
    x = net.concat(net.add(more, learned(net, (1, extra, d), "cls_token", 1.0)), x, axis=1)
    x = net.add(x, learned(net, (1, 16 + extra, d), "pos_embed"))
    for i in range(2):
        x = block(net, x, 16 + extra, d, heads, net.pick("gelu", "quick_gelu"), hint=f"blocks/{i}", like=x)
    x = net.reduce("Mean", net.slice(x, 1, extra, 16 + extra), [1], 0)
    net.output(classifier(net, layer_norm(net, x, d, hint="fc_norm"), d, 13), "logits")


def cct(net):
    """Convolutions make tokens, and attention says which of them count."""
    d, heads = net.pick((16, 2), (24, 2))
    x = pool(net, activation(net, conv(net, images(net), 3, d, 3, stride=2, bias=False, hint="tokenizer"), "relu"), "Max", 3, 2, 1)
    x = net.add(to_tokens(net, x, d, 16), learned(net, (1, 16, d), "positional"))
    for i in range(2):
        x = block(net, x, 16, d, heads, hint=f"layers/{i}")
    x = layer_norm(net, x, d, hint="norm")
    share = net.transpose(net.softmax(linear(net, x, d, 1, hint="attention_pool", gain=2.0), 3, axis=1), 0, 2, 1)
    net.output(classifier(net, net.squeeze(net.op("MatMul", share, x), 1), d, 8, net.pick(None, "softmax")), "scores")


def zf_net(net):
    """Responses are normalized by their neighbours', with an offset of two."""
    n = net.pick(8, 12)
    more = dict(size=net.pick(3, 5), alpha=net.pick(0.5, 1.5), beta=0.75, bias=net.pick(2.0, 1.5))
    x = net.op("LRN", pool(net, activation(net, conv(net, images(net), 3, n, 5, stride=2, hint="conv1"), "relu"), "Max", 3, 2, 1), **more)
    x = net.op("LRN", activation(net, conv(net, x, n, 2 * n, 3, hint="conv2"), "relu"), **more)
    x = activation(net, conv(net, x, 2 * n, n, 3, groups=2, hint="conv3"), "relu")
    net.output(classifier(net, global_pool(net, x, keep=False), n, 10, "softmax"), "prob")


def maxout_net(net):
    """Whichever of three is largest; sums of three."""
    n, x = net.pick(8, 10), images(net)
    for i in range(2):
        with net.scope(f"maxout{i}"):
            parts = [conv(net, x, n if i else 3, n, k, stride=2, hint=f"c{k}") for k in (1, 3, 5)]
            x = net.op(net.pick("Max", "Max", "Sum"), *parts)
    ends = [conv(net, x, n, n, 3, dilation=d, pads=[d] * 4, hint=f"d{d}") for d in (1, 2)]
    x = activation(net, net.op("Sum", *ends, x), "relu")
    net.output(classifier(net, global_pool(net, x, keep=False), n, 6), "logits")


def edge_net(net):
    """A grey image, filters, and where edges are."""
    x = net.input("rgb", [BATCH, 3, 12, 12], "pixels")
    x = net.mul(x, net.const(1 / 255)) if net.pick(True, False) else net.op("Div", x, net.const(255.0))
    grey = net.op("Conv", x, net.weight(np.array([0.299, 0.587, 0.114], np.float32).reshape(1, 3, 1, 1), "luma"), kernel_shape=[1, 1])
    y = activation(net, conv(net, grey, 1, 8, 3, hint="edges"), net.pick("relu", "tanh", "leaky"))
    y = conv_bn(net, y, 8, 8, 3, "relu", hint="merge")
    net.output(net.op("Sigmoid", conv(net, y, 8, 1, 1, hint="score", gain=2.0)), "edges")
    net.output(net.reduce("Mean", y, [2, 3], 0), "features")


def low_light(net):
    """Curves that make an image brighter, step by step."""
    x = images(net, side=12)
    y = conv(net, x, 3, 8, 3, hint="c1")
    y = activation(net, y, "relu")
    y = activation(net, conv(net, y, 8, 8, 3, hint="c2"), "relu")
    curves = net.op("Tanh", conv(net, y, 8, 9, 3, hint="curves"))
    for c in net.split(curves, [3, 3, 3], 1):
        x = net.add(x, net.mul(c, net.op("Sub", net.mul(x, x), x)))
    net.output(x, "enhanced")
    net.output(net.reduce("Mean", curves, [2, 3], 0), "mean_curves")


def residual_dense(net):
    """Every layer sees all before it; what they add is made smaller."""
    n, grow, x = 8, net.pick(4, 6), conv(net, images(net, side=12), 3, 8, 3, hint="first")
    for i in range(2):
        with net.scope(f"rdb{i}"):
            parts = [x]
            for k in range(2):
                parts.append(activation(net, conv(net, net.concat(*parts, axis=1), n + k * grow, grow, 3, hint=f"conv{k}"), "leaky"))
            y = conv(net, net.concat(*parts, axis=1), n + 2 * grow, n, 1, hint="fuse")
            x = net.add(net.mul(y, net.const(0.2)), x)
    y = net.op("DepthToSpace", conv(net, x, n, 12, 3, hint="up"), blocksize=2, mode="CRD")
    net.output(net.add(conv(net, y, 3, 3, 3, hint="last"), net.const(np.array([0.4488, 0.4371, 0.4040]).reshape(3, 1, 1))), "enlarged")


def u2_small(net):
    """A hourglass within an hourglass."""
    n, act = 8, net.pick("relu", "swish")
    def glass(x, hint):
        with net.scope(hint):
            a = conv_bn(net, x, n, n, 3, act, hint="a")
            b = conv_bn(net, pool(net, a), n, n, 3, act, hint="b")
            c = conv_bn(net, b, n, n, 3, act, dilation=2, pads=[2] * 4, hint="c")
            up = resize(net, conv_bn(net, net.add(b, c), n, n, 3, act, hint="d"), 2.0, (n, *SIDES[hint]), "linear", "half_pixel")
            return net.add(up, a)
    SIDES = {"outer": (16, 16), "inner": (8, 8)}
    x = glass(conv_bn(net, images(net), 3, n, 3, act, hint="stem"), "outer")
    y = glass(pool(net, x), "inner")
    net.output(net.op("Sigmoid", conv(net, up_conv(net, y, n, n), n, 1, 3, hint="side", gain=2.0)), "mask")
    net.output(conv(net, x, n, 2, 1, hint="fine"), "fine")


def slim_gan(net):
    """A latent through layers of one scale, to an image."""
    d, alpha = net.pick((12, 0.5), (16, 0.25), (16, 2.0))
    z = net.input("z", [BATCH, d], "features")
    for i in range(2):
        z = activation(net, scaled_gemm(net, z, d, d, alpha, f"mapping{i}"), "leaky")
    x = net.reshape(scaled_gemm(net, z, d, 8 * 16, alpha, "const"), [BATCH, 8, 4, 4])
    x = activation(net, instance_norm(net, up_conv(net, x, 8, 8, hint="up1"), 8), "relu")
    x = net.op("Tanh", conv(net, up_conv(net, x, 8, 6, hint="up2"), 6, 3, 3, hint="rgb"))
    net.output(net.mul(net.add(x, net.const(1.0)), net.const(127.5)), "image")


def cross_scale(net):
    """Two sizes of patches; each asks the other."""
    d = 16
    image = images(net)
    fine = net.add(to_tokens(net, conv(net, image, 3, d, 4, stride=4, pads=[0] * 4, hint="fine"), d, 16), learned(net, (1, 16, d), "pos_fine"))
    coarse = net.add(to_tokens(net, conv(net, image, 3, d, 8, stride=8, pads=[0] * 4, hint="coarse"), d, 4), learned(net, (1, 4, d), "pos_coarse"))
    both = net.concat(coarse, fine, axis=1)
    for i in range(2):
        with net.scope(f"stage{i}"):
            both = net.add(both, self_attention(net, layer_norm(net, both, d, hint="n1"), 20, d, 2, like=image))
            both = net.add(both, feed_forward(net, layer_norm(net, both, d, hint="n2"), d, 24, net.pick("gelu", "relu")))
    a, b = (net.reduce("Mean", t, [1], 0) for t in net.split(both, [4, 16], 1))
    net.output(net.add(classifier(net, a, d, 11), linear(net, b, d, 11, rank=2, hint="head_fine")), "logits")


def warp_net(net):
    """A field of small movements, and the image moved by it."""
    side, x = 12, images(net, side=12)
    flow = net.mul(net.op("Tanh", conv(net, activation(net, conv(net, x, 3, 8, 3, hint="c1"), "relu"), 8, 2, 3, hint="flow")), net.const(0.3))
    line = np.linspace(-1, 1, side)
    base = np.stack(np.meshgrid(line, line), -1)[None]
    grid = net.add(net.transpose(flow, 0, 2, 3, 1), net.const(base))
    y = net.op("GridSample", x, grid, mode="bilinear" if net.opset < 20 else "linear", padding_mode=net.pick("zeros", "border"), align_corners=1)
    net.output(conv(net, y, 3, 4, 3, hint="out"), "warped")


def squeeze_fire(net):
    """Pixels less a mean; narrow layers feed wide ones of two sizes."""
    n = net.pick(8, 10)
    x = net.op("Sub", net.input("data", [BATCH, 3, 16, 16], "image"), net.const(np.array([0.41, 0.46, 0.48]).reshape(3, 1, 1)))
    x = activation(net, conv(net, x, 3, n, 3, stride=2, hint="conv1"), "relu")
    if net.pick(True, False):
        x = net.op("LRN", x, size=5, alpha=net.pick(0.5, 1.5), beta=0.75, bias=2.0)
    for i in range(2):
        with net.scope(f"fire{i}"):
            q = activation(net, conv(net, x, n, 4, 1, hint="squeeze"), "relu")
            wide = [activation(net, conv(net, q, 4, n // 2, k, hint=f"expand{k}"), "relu") for k in (1, 3)]
            x = net.concat(*wide, axis=1)
    x = global_pool(net, activation(net, conv(net, x, n, 11, 1, hint="conv10"), "relu"), keep=False)
    net.output(net.softmax(x, 2), "prob")


def drive_net(net):
    """A camera's pixels between -1 and 1, channels that are weighed, and where to steer."""
    n, act = net.pick(8, 10), net.pick("relu", "swish", "elu")
    x = net.op("Div", net.input("camera", [BATCH, 3, 16, 16], "pixels"), net.const(127.5))
    x = activation(net, conv(net, net.op("Sub", x, net.const(1.0)), 3, n, 3, stride=2, hint="c1"), act)
    for i in range(2):
        x = net.add(x, squeeze_excite(net, conv_bn(net, x, n, n, 3, act, hint=f"c{i + 2}"), n, 4, hint=f"se{i}"))
    y = activation(net, linear(net, global_pool(net, x, keep=False), n, 12, rank=2, hint="fc"), act)
    net.output(net.mul(net.op("Tanh", linear(net, y, 12, 2, rank=2, hint="steer")), net.const(net.pick(25.0, 0.5))), "angle")


def key_glass(net):
    """Down and up, with what a convolution gave before its norm passed along; points by their means."""
    n, act = 8, net.pick("relu", "leaky")
    raw = conv(net, images(net), 3, n, 3, hint="stem")
    x = activation(net, norm_of(net, raw, n), act)
    down = conv(net, pool(net, x), n, n, 3, hint="down")
    y = activation(net, norm_of(net, down, n, "bn_down"), act)
    y = conv_bn(net, net.add(y, down), n, n, 3, act, hint="middle")
    x = net.add(resize(net, y, 2.0, (n, 16, 16), "nearest"), raw)
    heat = net.reshape(conv(net, x, n, 5, 1, hint="heat", gain=2.0), [BATCH, 5, 256], like=x)
    share = net.softmax(net.mul(heat, net.const(net.pick(2.0, 0.5))), 3)
    u, v = np.meshgrid(np.arange(16), np.arange(16))
    where = [net.op("MatMul", share, net.const(a.reshape(-1, 1).astype(float))) for a in (u, v)]
    net.output(net.concat(*where, axis=2), "points")


def lip_reader(net):
    """Grey frames, filters for each, then along time."""
    n, t = 8, 4
    frames = net.input("frames", [BATCH, 3, 8, 8 * t], "pixels")
    x = net.op("Div", frames, net.const(255.0))
    x = net.op("Conv", x, net.weight(np.array([0.299, 0.587, 0.114], np.float32).reshape(1, 3, 1, 1), "grey"), kernel_shape=[1, 1])
    x = conv_act_norm(net, x, 1, n, 3, "relu", stride=2, hint="front")
    x = net.reshape(x, [BATCH, n, 4, t, 4], like=frames)  # each frame's own columns
    a, b = (net.reduce(k, x, [2, 4], 0) for k in ("Mean", "Max"))
    x = net.concat(net.unsqueeze(a, 2), net.unsqueeze(b, 2), axis=2)
    x = net.transpose(net.reshape(x, [BATCH, 2 * n, t], like=frames), 0, 2, 1)
    x = net.add(x, learned(net, (1, t, 2 * n), "time"))
    x = block(net, x, t, 2 * n, 2, like=frames, hint="temporal")
    net.output(linear(net, net.reduce("Mean", x, [1], 0), 2 * n, 12, rank=2, hint="word", gain=2.0), "word")


def deskew(net):
    """A page is turned straight by an angle that a small network sees."""
    side, x = 10, images(net, side=10, channels=1)
    e = activation(net, linear(net, net.reduce("Mean", activation(net, conv(net, x, 1, 8, 3, stride=2, hint="c1"), "relu"), [2, 3], 0), 8, 8,
                               rank=2, hint="fc"), "tanh")
    angle = net.mul(net.op("Tanh", linear(net, e, 8, 1, rank=2, hint="angle")), net.const(0.4))
    cos, sin = net.unsqueeze(net.op("Cos", angle), 2), net.unsqueeze(net.op("Sin", angle), 2)
    turn = net.concat(net.concat(cos, net.op("Neg", sin), axis=2), net.concat(sin, cos, axis=2), axis=1)
    line = np.linspace(-1, 1, side)
    places = np.stack(np.meshgrid(line, line), -1).reshape(1, -1, 2)
    grid = net.reshape(net.op("MatMul", net.const(places), turn), [BATCH, side, side, 2], like=x)
    y = net.op("GridSample", x, grid, mode="bilinear" if net.opset < 20 else "linear", padding_mode="border", align_corners=1)
    net.output(y, "straight")
    net.output(angle, "angle")
