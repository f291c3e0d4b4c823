"""Architectures that see."""
import numpy as np

from blocks import (activation, attention, batch_norm, gated_mlp, group_norm, instance_norm, layer_norm, linear, mlp)
from net import BATCH
from vision import (classifier, conv, conv_bn, flatten, global_pool, images, pool, resize, roll, squeeze_excite, to_tokens, up_conv)


def lenet(net):
    x = conv(net, images(net, channels=1), 1, 6, 5, hint="conv1")
    x = pool(net, activation(net, x, net.pick("relu", "tanh", "leaky")), net.pick("Max", "Average"))
    x = pool(net, activation(net, conv(net, x, 6, 12, 3, hint="conv2"), "relu"))
    x = activation(net, linear(net, flatten(net, x, 12, 4), 192, 32, rank=2, hint="fc1"), "relu")
    net.output(classifier(net, x, 32, 10, net.pick(None, "softmax")), "logits")


def resnet(net):
    act = net.pick("relu", "elu", "leaky")
    x, n = conv_bn(net, images(net), 3, 12, 3, act, hint="stem"), 12
    for i, (m, stride) in enumerate([(12, 1), (20, 2), (28, 2)]):
        with net.scope(f"layer{i}"):
            y = conv_bn(net, x, n, m, 3, act, stride=stride, hint="conv1")
            y = conv_bn(net, y, m, m, 3, None, hint="conv2")
            skip = x if (n, stride) == (m, 1) else conv_bn(net, x, n, m, 1, None, stride=stride, pads=[0] * 4, hint="down")
            x, n = activation(net, net.add(y, skip), act), m
    net.output(classifier(net, global_pool(net, x, keep=False), n, 10), "logits")


def preact_resnet(net):
    x = conv(net, images(net), 3, 16, 3, hint="stem")
    for i in range(3):
        with net.scope(f"block{i}"):
            y = activation(net, batch_norm(net, x, 16, "bn1"), "relu")
            y = conv(net, y, 16, 16, 3, hint="conv1", bias=False)
            y = conv(net, activation(net, batch_norm(net, y, 16, "bn2"), "relu"), 16, 16, 3, hint="conv2", bias=False)
            x = net.add(x, y)
    x = activation(net, batch_norm(net, x, 16, "last"), "relu")
    x = pool(net, x, "Average", 3, 2, 1, include=net.pick(0, 1))
    net.output(classifier(net, global_pool(net, x, keep=False), 16, 7, "softmax"), "scores")


def mobilenet(net):
    act = net.pick("relu6", "hardswish")
    x, n = conv_bn(net, images(net), 3, 8, 3, act, stride=2, hint="stem"), 8
    for i, (m, stride) in enumerate([(12, 1), (12, 2), (16, 1)]):
        with net.scope(f"block{i}"):
            y = conv_bn(net, x, n, 3 * n, 1, act, hint="expand")
            y = conv_bn(net, y, 3 * n, 3 * n, 3, act, stride=stride, groups=3 * n, hint="depthwise")
            y = squeeze_excite(net, y, 3 * n, 6, "hard")
            y = conv_bn(net, y, 3 * n, m, 1, None, hint="project")
            x, n = net.add(x, y) if (n, stride) == (m, 1) else y, m
    net.output(classifier(net, global_pool(net, x, keep=False), n, 9), "logits")


def efficientnet(net):
    """TensorFlow's: SAME padding, which is one-sided where it strides."""
    x, n, side = conv_bn(net, images(net), 3, 8, 3, "swish", stride=2, same=16, hint="stem"), 8, 8
    for i, (m, k, stride) in enumerate([(8, 3, 1), (12, 5, 2), (12, 3, 1)]):
        with net.scope(f"mbconv{i}"):
            y = conv_bn(net, x, n, 2 * n, 1, "swish", hint="expand")
            y = conv_bn(net, y, 2 * n, 2 * n, k, "swish", stride=stride, groups=2 * n, same=side, hint="depthwise")
            side //= stride
            y = conv_bn(net, squeeze_excite(net, y, 2 * n, 4), 2 * n, m, 1, None, hint="project")
            x, n = net.add(x, y) if (n, stride) == (m, 1) else y, m
    net.output(classifier(net, global_pool(net, x, keep=False), n, 10, net.pick(None, "softmax")), "logits")


def convnext(net):
    x = conv(net, images(net), 3, 16, 2, stride=2, pads=[0] * 4, hint="stem")
    for i in range(3):
        with net.scope(f"block{i}"):
            y = net.transpose(conv(net, x, 16, 16, 7, groups=16, hint="dw"), 0, 2, 3, 1)
            y = mlp(net, layer_norm(net, y, 16, 1e-6), 16, 40, "gelu")
            y = net.mul(y, net.vector(16, 0.6, 0.3, "layer_scale"))
            x = net.add(x, net.transpose(y, 0, 3, 1, 2))
    y = layer_norm(net, global_pool(net, x, keep=False), 16, 1e-6, "head_norm")
    net.output(classifier(net, y, 16, 8), "logits")


def densenet(net):
    x, n = conv(net, images(net), 3, 12, 3, hint="stem"), 12
    for i in range(4):
        with net.scope(f"dense{i}"):
            y = conv(net, activation(net, batch_norm(net, x, n), "relu"), n, 8, 3, hint="conv", bias=False)
            x, n = net.concat(x, y, axis=1), n + 8
        if i == 1:
            x = pool(net, conv(net, x, n, 16, 1, hint="transition"), "Average")
            n = 16
    net.output(classifier(net, global_pool(net, activation(net, x, "relu"), keep=False), n, 6), "logits")


def shufflenet(net):
    x = conv_bn(net, images(net), 3, 16, 3, "relu", stride=2, hint="stem")
    for i in range(3):
        with net.scope(f"unit{i}"):
            a, b = net.split(x, [8, 8], 1)
            b = conv_bn(net, b, 8, 8, 1, "relu", hint="pw1")
            b = conv_bn(net, b, 8, 8, 3, None, groups=8, hint="dw")
            y = net.concat(a, conv_bn(net, b, 8, 8, 1, "relu", hint="pw2"), axis=1)
            y = net.transpose(net.reshape(y, [BATCH, 2, 8, 8, 8], like=y), 0, 2, 1, 3, 4)
            x = net.reshape(y, [BATCH, 16, 8, 8], like=x)
    net.output(classifier(net, global_pool(net, x, keep=False), 16, 5), "logits")


def vit(net):
    net_dim, n_heads = net.pick(32, 24), net.pick(2, 4)
    x = conv(net, images(net), 3, net_dim, 4, stride=4, pads=[0] * 4, hint="patch")
    x = to_tokens(net, x, net_dim, 16)
    if net.batch == 1:
        cls = net.weight((0.5 * net.rng.standard_normal((1, 1, net_dim))).astype(np.float32), "cls_token")
        x, length = net.concat(cls, x, axis=1), 17
    else:
        length = 16
    x = net.add(x, net.weight((0.3 * net.rng.standard_normal((1, length, net_dim))).astype(np.float32), "pos_embed"))
    for i in range(2):
        with net.scope(f"blocks/{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, net_dim, hint="norm1"), length, net_dim, n_heads, fused_qkv=net.pick(True, False)))
            x = net.add(x, mlp(net, layer_norm(net, x, net_dim, hint="norm2"), net_dim, 2 * net_dim, net.pick("gelu", "quick_gelu")))
    x = layer_norm(net, x, net_dim, hint="norm")
    y = net.op("Gather", x, net.const(0, np.int64), axis=1) if length == 17 else net.reduce("Mean", x, [1], 0)
    net.output(classifier(net, y, net_dim, 10), "logits")


def swin(net):
    """Window attention with relative bias; every other block is shifted, with a mask for what wraps around."""
    dim, n_heads, side, win = 24, 3, 8, 4
    count, n_win = win * win, (side // win) ** 2
    x = conv(net, images(net), 3, dim, 2, stride=2, pads=[0] * 4, hint="patch")
    x = net.reshape(net.transpose(x, 0, 2, 3, 1), [BATCH, side, side, dim])
    ij = np.stack(np.meshgrid(range(win), range(win), indexing="ij")).reshape(2, -1)
    index = ((ij[:, :, None] - ij[:, None] + win - 1) * np.array([2 * win - 1, 1])[:, None, None]).sum(0)
    region = np.zeros((side, side))
    for a, rows in enumerate((slice(0, -win), slice(-win, -2), slice(-2, None))):
        for b, columns in enumerate((slice(0, -win), slice(-win, -2), slice(-2, None))):
            region[rows, columns] = 3 * a + b
    region = region.reshape(2, win, 2, win).transpose(0, 2, 1, 3).reshape(n_win, count)
    shift_mask = np.where(region[:, None] == region[:, :, None], 0, -100.0).reshape(1, n_win, 1, count, count)
    for i in range(2):
        with net.scope(f"layers/{i}"):
            table = net.weight((0.4 * net.rng.standard_normal(((2 * win - 1) ** 2, n_heads))).astype(np.float32), "relative_position_bias_table")
            bias = net.op("Gather", table, net.const(index.reshape(-1), np.int64), axis=0)
            bias = net.transpose(net.op("Reshape", bias, net.ints(count, count, n_heads)), 2, 0, 1)
            y = layer_norm(net, x, dim, hint="norm1")
            if i:
                y = roll(net, roll(net, y, 1, -2, side), 2, -2, side)
            y = net.transpose(net.op("Reshape", y, net.ints(-1, 2, win, 2, win, dim)), 0, 1, 3, 2, 4, 5)
            y = net.op("Reshape", y, net.ints(-1, count, dim))

            def masked(scores):
                z = net.add(net.op("Reshape", scores, net.ints(-1, n_win, n_heads, count, count)), net.const(shift_mask))
                return net.op("Reshape", z, net.ints(-1, n_heads, count, count))
            y = attention(net, y, count, dim, n_heads, bias=net.unsqueeze(bias, 0), lead=-1, adjust=masked if i else None)
            y = net.transpose(net.op("Reshape", y, net.ints(-1, 2, 2, win, win, dim)), 0, 1, 3, 2, 4, 5)
            y = net.op("Reshape", y, net.ints(-1, side, side, dim))
            if i:
                y = roll(net, roll(net, y, 1, 2, side), 2, 2, side)
            x = net.add(x, y)
            x = net.add(x, mlp(net, layer_norm(net, x, dim, hint="norm2"), dim, 48))
    parts = [net.slice(net.slice(x, 1, a, side, 2), 2, b, side, 2) for b in (0, 1) for a in (0, 1)]
    x = linear(net, layer_norm(net, net.concat(*parts, axis=3), 4 * dim, hint="merge_norm"), 4 * dim, 32, rank=4, bias=False, hint="merge")
    net.output(classifier(net, net.reduce("Mean", x, [1, 2], 0), 32, 8), "logits")


def mixer(net):
    x = to_tokens(net, conv(net, images(net), 3, 24, 4, stride=4, pads=[0] * 4, hint="patch"), 24, 16)
    for i in range(2):
        with net.scope(f"mixer{i}"):
            y = net.transpose(layer_norm(net, x, 24, hint="norm1"), 0, 2, 1)
            x = net.add(x, net.transpose(mlp(net, y, 16, 32, "gelu", "tokens"), 0, 2, 1))
            x = net.add(x, mlp(net, layer_norm(net, x, 24, hint="norm2"), 24, 48, "gelu", "channels"))
    net.output(classifier(net, net.reduce("Mean", layer_norm(net, x, 24), [1], 0), 24, 10), "logits")


def unet(net):
    up = net.pick("deconv", "resize")
    act = net.pick("relu", "leaky", "prelu")
    skips, x, n = [], images(net), 3
    for i, m in enumerate((8, 12, 16)):
        with net.scope(f"enc{i}"):
            x = conv_bn(net, x, n, m, 3, act, hint="a")
            skips.append((x, m))
            x, n = pool(net, x), m
    x = conv_bn(net, x, n, 20, 3, act, hint="mid")
    n = 20
    for i, (skip, m) in enumerate(reversed(skips)):
        with net.scope(f"dec{i}"):
            x = up_conv(net, x, n, m, 2, 2, 0) if up == "deconv" else conv(net, resize(net, x, 2.0), n, m, 3)
            x, n = conv_bn(net, net.concat(skip, x, axis=1), 2 * m, m, 3, act, hint="b"), m
    net.output(activation(net, conv(net, x, n, 2, 1, hint="out"), net.pick("sigmoid", "tanh")), "mask")


def deeplab(net):
    x = conv_bn(net, images(net), 3, 12, 3, "relu", stride=2, hint="stem")
    branches = [conv_bn(net, x, 12, 8, 1, "relu", hint="aspp0")]
    branches += [conv_bn(net, x, 12, 8, 3, "relu", dilation=d, hint=f"aspp{d}") for d in (2, 3)]
    y = conv(net, global_pool(net, x), 12, 8, 1, hint="image_pool")
    branches.append(resize(net, activation(net, y, "relu"), 8.0, [8, 8, 8]))
    x = conv_bn(net, net.concat(*branches, axis=1), 32, 12, 1, "relu", hint="project")
    x = resize(net, conv(net, x, 12, 5, 1, hint="classify"), 2.0, [5, 16, 16])
    net.output(net.softmax(x, 4, axis=1) if net.pick(True, False) else x, "segmentation")


def super_resolution(net):
    shuffle = net.pick("CRD", "DCR")
    image = images(net, side=12)
    x = conv(net, image, 3, 16, 3, hint="head")
    y = x
    for i in range(2):
        with net.scope(f"body{i}"):
            z = conv(net, activation(net, conv(net, y, 16, 16, 3, hint="a"), "relu"), 16, 16, 3, hint="b")
            y = net.add(y, net.mul(z, net.const(0.5)))
    y = net.op("DepthToSpace", conv(net, net.add(x, y), 16, 48, 3, hint="up"), blocksize=2, mode=shuffle)
    y = conv(net, y, 12, 3, 3, hint="tail")
    base = resize(net, image, 2.0, [3, 24, 24], "cubic", net.pick("pytorch_half_pixel", "half_pixel"))
    net.output(net.add(y, base), "large")


def focus_net(net):
    """Space to depth in front, as YOLOv5's first layer by slices or by the operator."""
    image = images(net)
    if net.pick(True, False):
        x = net.op("SpaceToDepth", image, blocksize=2)
    else:
        x = net.concat(*[net.slice(net.slice(image, 2, a, 16, 2), 3, b, 16, 2) for b in (0, 1) for a in (0, 1)], axis=1)
    x = conv_bn(net, x, 12, 16, 3, "swish", hint="focus")
    for i in range(2):
        with net.scope(f"csp{i}"):
            a = conv_bn(net, x, 16, 8, 1, "swish", hint="cv1")
            b = conv_bn(net, x, 16, 8, 1, "swish", hint="cv2")
            a = net.add(a, conv_bn(net, a, 8, 8, 3, "swish", hint="m"))
            x = conv_bn(net, net.concat(a, b, axis=1), 16, 16, 1, "swish", hint="cv3")
    pooled = [x]
    for _ in range(2):
        pooled.append(pool(net, pooled[-1], "Max", 5, 1, 2))
    x = conv_bn(net, net.concat(*pooled, axis=1), 48, 16, 1, "swish", hint="sppf")
    net.output(conv(net, x, 16, 9, 1, hint="detect"), "maps")


def style_transfer(net):
    """Instance norm, reflected borders, nearest upsampling."""
    x, n = images(net), 3
    for i, (m, stride) in enumerate([(8, 1), (12, 2)]):
        x = conv(net, net.pad(x, [0, 0, 1, 1, 0, 0, 1, 1], "reflect"), n, m, 3, stride, pads=[0] * 4, hint=f"down{i}")
        x, n = activation(net, instance_norm(net, x, m, f"in{i}"), "relu"), m
    for i in range(2):
        with net.scope(f"res{i}"):
            y = conv(net, net.pad(x, [0, 0, 1, 1, 0, 0, 1, 1], "reflect"), 12, 12, 3, pads=[0] * 4, hint="a")
            y = activation(net, instance_norm(net, y, 12), "relu")
            y = conv(net, net.pad(y, [0, 0, 1, 1, 0, 0, 1, 1], "reflect"), 12, 12, 3, pads=[0] * 4, hint="b")
            x = net.add(x, instance_norm(net, y, 12, "in2"))
    x = resize(net, x, 2.0, [12, 16, 16], "nearest")
    x = conv(net, net.pad(x, [0, 0, 1, 1, 0, 0, 1, 1], "edge"), 12, 3, 3, pads=[0] * 4, hint="out")
    net.output(activation(net, x, "tanh"), "styled")


def adain(net):
    """Content takes on the channels' mean and deviation of style."""
    def encode(x, hint):
        with net.scope(hint):
            return activation(net, conv(net, activation(net, conv(net, x, 3, 12, 3, hint="a"), "relu"), 12, 12, 3, hint="b"), "relu")

    def statistics(x):
        mean = net.reduce("Mean", x, [2, 3])
        centred = net.op("Sub", x, mean)
        variance = net.reduce("Mean", net.mul(centred, centred), [2, 3])
        return centred, mean, net.op("Sqrt", net.add(variance, net.const(1e-5)))
    content = encode(images(net, "content"), "content_encoder")
    style = encode(images(net, "style"), "style_encoder")
    centred, _, deviation = statistics(content)
    _, mean, scale = statistics(style)
    y = net.add(net.mul(net.op("Div", centred, deviation), scale), mean)
    net.output(conv(net, y, 12, 3, 3, hint="decode"), "image")


def vae_decoder(net):
    z = net.input("z", [BATCH, 8], "features")
    x = net.reshape(linear(net, z, 8, 16 * 16, rank=2, hint="fc"), [BATCH, 16, 4, 4])
    for i, m in enumerate((12, 8)):
        with net.scope(f"up{i}"):
            k = net.pick(3, 4)
            x = up_conv(net, x, (16, 12)[i], m, k, 2, 1, int(k == 3))
            x = activation(net, group_norm(net, x, m, 4, (8 << i, 8 << i)), "swish")
    net.output(activation(net, conv(net, x, 8, 3, 3, hint="out"), "sigmoid"), "image")


def diffusion_step(net):
    """A step of a denoiser: a time embedding, group norms, attention in the middle."""
    x = net.input("noisy", [BATCH, 3, 8, 8], "image")
    t = net.input("time", [BATCH, 1], "time")
    angle = net.mul(t, net.const(np.exp(-np.log(1e4) * np.arange(8) / 8)[None]))
    t = net.concat(net.op("Sin", angle), net.op("Cos", angle), axis=1)
    t = linear(net, activation(net, linear(net, t, 16, 24, rank=2, hint="time1"), "swish"), 24, 12, rank=2, hint="time2")
    h = conv(net, x, 3, 12, 3, hint="in")
    for i in range(2):
        with net.scope(f"res{i}"):
            y = conv(net, activation(net, group_norm(net, h, 12, 3, (8, 8)), "swish"), 12, 12, 3, hint="conv1")
            y = net.add(y, net.unsqueeze(t, 2, 3))
            y = conv(net, activation(net, group_norm(net, y, 12, 3, (8, 8), "gn2"), "swish"), 12, 12, 3, hint="conv2")
            h = net.add(h, y)
        if i == 0:
            y = to_tokens(net, h, 12, 64)
            y = attention(net, layer_norm(net, y, 12), 64, 12, 2)
            h = net.add(h, net.reshape(net.transpose(y, 0, 2, 1), [BATCH, 12, 8, 8], like=h))
    net.output(conv(net, activation(net, h, "swish"), 12, 3, 3, hint="out"), "noise")


def video(net):
    x = net.input("clip", [BATCH, 2, 6, 8, 8], "image")
    x = activation(net, conv(net, x, 2, 8, 3, rank=3, hint="conv1"), "relu")
    x = net.op("MaxPool", x, kernel_shape=[1, 2, 2], strides=[1, 2, 2], pads=[0] * 6)
    x = conv(net, x, 8, 12, (3, 1, 1), rank=3, hint="temporal")
    x = activation(net, batch_norm(net, x, 12), "relu")
    x = conv(net, x, 12, 12, (1, 3, 3), rank=3, hint="spatial")
    net.output(classifier(net, net.reduce("Mean", activation(net, x, "elu"), [2, 3, 4], 0), 12, 6), "logits")


def vision_llama(net):
    """A vision transformer with gated layers and a learned scale of the scores."""
    x = to_tokens(net, conv(net, images(net), 3, 24, 4, stride=4, pads=[0] * 4, hint="patch"), 24, 16)
    for i in range(2):
        with net.scope(f"layer{i}"):
            y = layer_norm(net, x, 24, 1e-6, centred=False, hint="norm1")
            x = net.add(x, attention(net, y, 16, 24, 3, rope={}))
            x = net.add(x, gated_mlp(net, layer_norm(net, x, 24, 1e-6, centred=False, hint="norm2"), 24, 40))
    y = net.reduce("Mean", x, [1], 0)
    norm = net.op("Clip", net.reduce("L2", y, [1]), net.const(1e-12))
    net.output(net.op("Div", y, norm), "embedding")
