"""Second generation: networks that make or compare images, and networks of parts."""
import numpy as np

from arch2_vision import pixels
from blocks import activation, attention, layer_norm, linear, mlp
from net import BATCH
from vision import conv, conv_bn, global_pool, images, pool, resize, to_tokens, up_conv


def pixel_norm(net, x, axis=1, eps=1e-8):
    root = net.op("Sqrt", net.add(net.reduce("Mean", net.mul(x, x), [axis]), net.const(eps)))
    return net.op("Div", x, root)


def pg_gan(net):
    """Latent to image; weights are scaled in the graph, biases stand apart."""
    n = 8
    z = pixel_norm(net, net.input("z", [BATCH, 12], "features"), eps=net.pick(1e-8, 1e-3))
    x = net.reshape(linear(net, z, 12, n * 16, rank=2, hint="dense"), [BATCH, n, 4, 4])
    for i, side in enumerate((8, 16)):
        with net.scope(f"block{side}"):
            x = resize(net, x, 2.0, None, "nearest")
            x = net.mul(conv(net, x, n, n, 3, bias=False, hint="conv", gain=4.0), net.const(net.pick(0.4, 0.5)))
            x = net.add(x, net.weight((0.3 * net.rng.standard_normal((1, n, 1, 1))).astype(np.float32), "bias"))
            x = pixel_norm(net, net.op("LeakyRelu", x, alpha=0.2))
    net.output(activation(net, conv(net, x, n, 3, 1, hint="to_rgb"), net.pick("tanh", "sigmoid")), "image")


def squash(net, s, axis):
    square = net.reduce("Sum", net.mul(s, s), [axis])
    scale = net.op("Div", square, net.add(net.const(1.0), square))
    return net.mul(s, net.op("Div", scale, net.op("Sqrt", net.add(square, net.const(1e-7)))))


def capsule(net):
    n, out, d = 32, net.pick(3, 4), net.pick(4, 6)
    x = activation(net, conv(net, images(net, channels=1, side=8), 1, 12, 3, stride=2, hint="conv"), "relu")
    x = conv(net, x, 12, 32, 3, stride=2, hint="primary")
    u = squash(net, net.reshape(net.transpose(x, 0, 2, 3, 1), [BATCH, n, 4], like=x), 2)
    hat = net.op("MatMul", net.unsqueeze(net.unsqueeze(u, 1), 3), net.trained((1, out, n, 4, d), 4, 1.5, "route"))  # B, out, n, 1, d
    logits = net.mul(net.reduce("Sum", hat, [4]), net.const(0.0))
    for i in range(2):
        with net.scope(f"routing{i}"):
            share = net.softmax(logits, 5, axis=1)
            v = squash(net, net.reduce("Sum", net.mul(share, hat), [2]), 4)
            logits = net.add(logits, net.reduce("Sum", net.mul(hat, v), [4]))
    net.output(net.reshape(net.reduce("L2", v, [4]), [BATCH, out], like=x), "lengths")


def conv_lstm(net):
    """Three frames, a cell unrolled, with peepholes."""
    n = net.pick(6, 8)
    clip = net.input("clip", [BATCH, 3, 2, 8, 8], "image")
    w, bias = net.trained((4 * n, 2 + n, 3, 3), 9 * (2 + n), 1.4, "gates"), net.vector(4 * n)
    first = net.trained((4 * n, 2, 3, 3), 18, 1.4, "first")
    peep = [net.weight((0.5 * net.rng.standard_normal((n, 8, 8))).astype(np.float32), f"peephole{g}") for g in "ifo"]
    h = c = None
    for t in range(3):
        with net.scope(f"step{t}"):
            x = net.squeeze(net.slice(clip, 1, t, t + 1), 1)
            x = net.concat(x, h, axis=1) if h else x
            parts = net.split(net.op("Conv", x, w if h else first, bias, kernel_shape=[3, 3], pads=[1] * 4), [n] * 4, 1)
            i, f, g, o = parts
            if c:
                i, f = net.add(i, net.mul(c, peep[0])), net.add(f, net.mul(c, peep[1]))
            new = net.mul(net.op("Sigmoid", i), net.op("Tanh", g))
            c = net.add(net.mul(net.op("Sigmoid", f), c), new) if c else new
            h = net.mul(net.op("Sigmoid", net.add(o, net.mul(c, peep[2]))), net.op("Tanh", c))
    net.output(conv(net, h, n, 2, 1, hint="head"), "next_frame")


def dark_yolo(net):
    """Darknet: pooling that keeps the size, a passage from a finer level, anchors by exponentials."""
    x = conv_bn(net, images(net), 3, 8, 3, "leaky", stride=2, hint="conv0")
    fine = conv_bn(net, x, 8, 8, 1, "leaky", hint="route")
    y = conv_bn(net, pool(net, x), 8, 16, 3, "leaky", hint="conv1")
    padded = net.pad(y, [0, 0, 0, 0, 0, 0, 1, 1], value=-3.4e38) if net.pick(True, False) else None
    y = net.op("MaxPool", padded or y, kernel_shape=[2, 2], strides=[1, 1], pads=[0] * 4 if padded else [0, 0, 1, 1])
    r = net.transpose(net.reshape(fine, [BATCH, 8, 4, 2, 4, 2], like=x), 0, 3, 5, 1, 2, 4)
    y = net.concat(net.reshape(r, [BATCH, 32, 4, 4], like=x), y, axis=1)
    y = net.reshape(conv(net, y, 48, 2 * 8, 1, hint="detect", gain=1.5), [BATCH, 2, 8, 4, 4], like=x)
    xy, wh, confidence, kinds = net.split(net.transpose(y, 0, 1, 3, 4, 2), [2, 2, 1, 3], 4)
    grid = np.stack(np.meshgrid(range(4), range(4)), -1).reshape(1, 1, 4, 4, 2)
    xy = net.op("Div", net.add(net.op("Sigmoid", xy), net.const(grid)), net.const(4.0))
    wh = net.op("Div", net.mul(net.op("Exp", wh), net.const(np.array([[0.6, 0.9], [1.8, 1.2]]).reshape(1, 2, 1, 1, 2))), net.const(4.0))
    half = net.mul(wh, net.const(0.5))
    boxes = net.reshape(net.concat(net.op("Sub", xy, half), net.add(xy, half), axis=4), [BATCH, 32, 4], like=x)
    scores = net.mul(net.op("Sigmoid", confidence), net.softmax(kinds, 5))
    scores = net.transpose(net.reshape(scores, [BATCH, 32, 3], like=x), 0, 2, 1)
    chosen = net.op("NonMaxSuppression", boxes, scores, net.ints(4), net.const([0.5]), net.const([net.pick(0.1, 0.2)]))
    net.output(boxes, "boxes")
    net.output(scores, "scores")
    net.output(chosen, "selected")


def depth_net(net):
    """A transformer whose tokens become a map again, through a size that is no multiple."""
    x = images(net)
    if net.opset >= 18:  # seen at half the size, with the filter that this needs
        x = net.op("Resize", x, "", net.const([1, 1, 0.5, 0.5]), mode="linear", antialias=1)
    x = conv(net, x, 3, 16, 2, stride=2, pads=[0] * 4, hint="patch")
    side = 4 if net.opset >= 18 else 8
    t = to_tokens(net, x, 16, side * side)
    t = net.add(t, attention(net, layer_norm(net, t, 16, hint="norm1"), side * side, 16, 2))
    t = net.add(t, mlp(net, layer_norm(net, t, 16, hint="norm2"), 16, 32, net.pick("gelu", "relu")))
    x = net.reshape(net.transpose(t, 0, 2, 1), [BATCH, 16, side, side], like=x)
    groups = net.pick(2, 4)
    w = net.trained((16, 12 // groups, 4, 4), 16 * 4 / groups, 1.2, "reassemble")
    x = net.op("ConvTranspose", x, w, net.vector(12), kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4, group=groups)
    y = conv(net, activation(net, conv(net, activation(net, x, "relu"), 12, 12, 3, hint="rcu1"), "relu"), 12, 12, 3, hint="rcu2")
    y = resize(net, net.add(x, y), net.pick(1.3, 1.45), None, net.pick("linear", "cubic"), net.pick("half_pixel", "pytorch_half_pixel"))
    net.output(activation(net, conv(net, conv_bn(net, y, 12, 8, 3, "relu", hint="head1"), 8, 1, 1, hint="head2"), "relu"), "depth")


def siamese(net):
    """One encoder for two images; generalized means, unit length."""
    p = net.pick(2.5, 3.0, 4.0)
    w1, w2 = net.trained((12, 3, 3, 3), 27, 1.4, "conv1"), net.trained((16, 12, 3, 3), 108, 1.4, "conv2")
    b1, b2, project = net.vector(12), net.vector(16), net.trained((16, 12), 16, 1.0, "project")
    units = []
    for name in ("anchor", "other"):
        x = net.input(name, [BATCH, 3, 12, 12], "image")
        with net.scope(name):
            x = activation(net, net.op("Conv", x, w1, b1, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), "relu")
            x = activation(net, net.op("Conv", x, w2, b2, kernel_shape=[3, 3], pads=[1] * 4), "relu")
            x = net.op("Pow", net.clip(x, 1e-6, None), net.const(p))
            x = net.op("Pow", net.reduce("Mean", x, [2, 3], 0), net.const(1 / p))
            x = net.op("MatMul", x, project)
            if net.pick(True, False):
                units.append(net.op("Div", x, net.op("Sqrt", net.add(net.reduce("Sum", net.mul(x, x), [1]), net.const(1e-6)))))
            else:
                units.append(net.op("LpNormalization", x, axis=1, p=2))
    net.output(net.reduce("Sum", net.mul(*units), [1]), "cosine")
    net.output(net.op("Sub", units[0], units[1]), "difference")


def dit(net):
    """A diffusion transformer: scale and shift from the time, patches back to an image."""
    dim = net.pick(16, 24)
    x, t = net.input("noisy", [BATCH, 3, 8, 8], "image"), net.input("time", [BATCH, 1], "time")
    angle = net.mul(t, net.const(np.exp(-np.log(1e4) * np.arange(8) / 8)[None]))
    t = net.concat(net.op("Cos", angle), net.op("Sin", angle), axis=1)
    t = activation(net, linear(net, t, 16, dim, rank=2, hint="time"), "swish")
    x = to_tokens(net, conv(net, x, 3, dim, 2, stride=2, pads=[0] * 4, hint="patch"), dim, 16)
    x = net.add(x, net.weight((0.4 * net.rng.standard_normal((1, 16, dim))).astype(np.float32), "position"))

    def modulate(y, hint):
        with net.scope(hint):
            shift, scale, gate = (net.unsqueeze(v, 1) for v in net.split(linear(net, t, dim, 3 * dim, rank=2, hint="ada"), [dim] * 3, 1))
            return net.add(net.mul(y, net.add(scale, net.const(1.0))), shift), gate
    for i in range(2):
        with net.scope(f"block{i}"):
            y, gate = modulate(layer_norm(net, x, dim, hint="norm1"), "mod1")
            x = net.add(x, net.mul(gate, attention(net, y, 16, dim, 2, fused_qkv=True)))
            y, gate = modulate(layer_norm(net, x, dim, hint="norm2"), "mod2")
            x = net.add(x, net.mul(gate, mlp(net, y, dim, 2 * dim, "gelu_tanh")))
    y = net.reshape(linear(net, layer_norm(net, x, dim), dim, 12, hint="final"), [BATCH, 4, 4, 2, 2, 3], like=x)
    net.output(net.reshape(net.transpose(y, 0, 5, 1, 3, 2, 4), [BATCH, 3, 8, 8], like=x), "velocity")


def hyper_network(net):
    """A small network whose weights another one makes."""
    image = net.input("image", [BATCH, 3, 8, 8], "image")
    style = activation(net, linear(net, net.input("style", [BATCH, 6], "features"), 6, 16, rank=2, hint="fc"), net.pick("relu", "tanh"))
    w = net.reshape(linear(net, style, 16, 8 * 3, rank=2, hint="weights"), [BATCH, 8, 3], like=image)
    norm = net.op("Sqrt", net.add(net.reduce("Sum", net.mul(w, w), [2]), net.const(1e-4)))  # filters of unit length
    x = net.op("MatMul", net.op("Div", w, norm), net.reshape(image, [BATCH, 3, 64], like=image))
    x = net.reshape(x, [BATCH, 8, 8, 8], like=image)
    x = net.add(x, net.weight((0.3 * net.rng.standard_normal((8, 1, 1))).astype(np.float32), "bias"))
    x = conv(net, activation(net, x, "relu"), 8, 8, 3, hint="conv")
    n = 3 * 4
    y = net.reshape(conv(net, x, 8, n, 1, hint="up"), [BATCH, 3, 2, 2, 8, 8], like=image)  # pixel shuffle in parts
    net.output(net.reshape(net.transpose(y, 0, 1, 4, 2, 5, 3), [BATCH, 3, 16, 16], like=image), "large")


def global_context(net):
    """Asymmetric padding as diffusion's encoders have it, and a border of a set value."""
    x = net.pad(images(net), [0, 0, 1, 1, 0, 0, 1, 1], value=net.pick(0.5, -1.0))
    x = conv(net, x, 3, 8, 3, pads=[0] * 4, hint="in")
    for i in range(2):
        with net.scope(f"down{i}"):
            y = net.pad(activation(net, x, "swish"), [0, 0, 0, 0, 0, 0, 1, 1])
            x = conv(net, y, 8, 8, 3, stride=2, pads=[0] * 4, hint="conv")
    scores = net.softmax(net.reshape(conv(net, x, 8, 1, 1, hint="mask"), [BATCH, 1, 16], like=x), 3)
    context = net.op("MatMul", net.reshape(x, [BATCH, 8, 16], like=x), net.transpose(scores, 0, 2, 1))
    y = linear(net, net.squeeze(context, 2), 8, 8, rank=2, hint="transform")
    net.output(net.add(x, net.unsqueeze(y, 2, 3)), "features")


def fake_quantized(net):
    """Quantization-aware training written out: divide, round, clip, multiply."""
    def fake(x, scale, low, high, shape=()):
        q = net.op("Round", net.op("Div", x, net.const(np.full(shape, scale) if shape else scale)))
        return net.mul(net.clip(q, low, high), net.const(np.full(shape, scale) if shape else scale))
    x = fake(pixels(net), 0.05, -128.0, 127.0)
    for i, (n, m) in enumerate(((3, 8), (8, 12))):
        with net.scope(f"layer{i}"):
            x = conv(net, x, n, m, 3, stride=2, hint="conv")
            x = fake(activation(net, x, "relu"), net.pick(0.02, 0.04), 0.0, 255.0)
    net.output(linear(net, global_pool(net, x, keep=False), 12, 6, rank=2, hint="head"), "logits")
