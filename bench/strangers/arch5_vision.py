"""Fifth generation: networks that see, and that make images."""
import numpy as np

from blocks import activation, batch_norm, group_norm, linear
from layers4 import block, feed_forward, learned, norm_of, self_attention
from layers5 import bins_matrix, flat_tokens, generalized_mean, mask_of_lengths, pruned, residual, unit_length
from net import BATCH, trained
from vision import classifier, conv, conv_bn, flatten, global_pool, images, pool, resize, roll, squeeze_excite, to_tokens, up_conv


def merged_branches(net):
    """Branches of a training that became one convolution each: three by three, one by one, and what goes past both."""
    n, act = net.pick(8, 12), net.pick("relu", "relu6", "swish")
    x = activation(net, conv(net, images(net), 3, n, 3, stride=2, hint="stem"), act)
    for i in range(net.pick(2, 3, 4)):
        with net.scope(f"stage{i}"):
            w = trained(net.rng, (n, n, 3, 3), n * 9, 0.8)
            w[np.arange(n), np.arange(n), 1, 1] += 1
            x = net.op("Conv", x, net.weight(w, "reparam.weight"), net.vector(n), kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
            x = activation(net, x, act)
    net.output(classifier(net, global_pool(net, x, keep=False), n, net.pick(10, 5)), "logits")


def smooth_pools(net):
    """Each step down is a small blur of every channel by itself."""
    n = net.pick(8, 12)
    x = conv_bn(net, images(net), 3, n, 3, net.pick("relu", "leaky"), hint="stem")
    row = {3: [1, 2, 1], 4: [1, 3, 3, 1]}[net.pick(3, 4)]
    kernel = np.outer(row, row) / np.sum(row) ** 2
    for i in range(2):
        with net.scope(f"down{i}"):
            x = residual(net, x, n)
            w = net.weight(np.tile(kernel, (n, 1, 1, 1)).astype(np.float32), "blur.filt")
            x = net.op("Conv", net.pad(x, [0, 0, 1, 1, 0, 0, len(row) - 2, len(row) - 2], "reflect"), w, kernel_shape=[len(row)] * 2, strides=[2, 2], group=n)
    net.output(classifier(net, global_pool(net, x, keep=False), n, 7, net.pick(None, "softmax")), "classes")


def uneven_pyramid(net):
    """Means of bins that do not divide the image, by matrices, and back to its size."""
    n, side = net.pick(8, 12), 7
    x = conv_bn(net, images(net, side=14), 3, n, 3, "relu", stride=2, hint="stem")
    parts = [x]
    for bins in net.pick((1, 3, 5), (2, 3), (3, 4, 5)):
        with net.scope(f"bins{bins}"):
            m = bins_matrix(side, bins)
            y = net.op("MatMul", net.op("MatMul", net.weight(np.ascontiguousarray(m.T), "rows"), x), net.weight(m, "columns"))
            y = conv_bn(net, y, n, 4, 1, "relu")
            parts.append(resize(net, y, size=(4, side, side), scale=side / bins) if bins > 1 and net.batch != "N" else
                         net.op("MatMul", net.op("MatMul", net.weight(np.ascontiguousarray(bins_matrix(side, bins) > 0).astype(np.float32), "up"), y),
                                net.weight(np.ascontiguousarray(bins_matrix(side, bins).T > 0).astype(np.float32), "across")))
    total = n + 4 * (len(parts) - 1)
    net.output(conv(net, conv_bn(net, net.concat(*parts, axis=1), total, n, 3, "relu", hint="fuse"), n, 6, 1, hint="classes", gain=2.0), "classes")


def landmark_search(net):
    """What a picture shows as a vector of length one, from a mean that is not the mean; and local ones of length one."""
    n = net.pick(12, 16)
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="c1")
    x = activation(net, residual(net, x, n), "relu")
    local = unit_length(net, conv(net, x, n, 8, 1, hint="local"), 1)
    pooled = generalized_mean(net, x, net.pick(3.0, 2.5))
    net.output(unit_length(net, linear(net, pooled, n, 16, rank=2, hint="whiten")), "descriptor")
    net.output(local, "local")


def shifted_windows(net):
    """Tokens move by half a window, are seen, and move back; then four become one by steps of two."""
    d, side = net.pick(8, 12), 8
    x = conv(net, images(net), 3, d, 2, stride=2, pads=[0] * 4, hint="patch")
    x = net.transpose(x, 0, 2, 3, 1)
    for i in range(2):
        with net.scope(f"block{i}"):
            y = x
            if i:
                y = roll(net, roll(net, y, 1, -2, side), 2, -2, side)
            t = net.reshape(y, [BATCH, side * side, d], like=y)
            t = self_attention(net, t, side * side, d, 2, like=y)
            y = net.reshape(t, [BATCH, side, side, d], like=y)
            if i:
                y = roll(net, roll(net, y, 1, 2, side), 2, 2, side)
            x = net.add(x, y)
    parts = [net.slice(net.slice(x, 1, r, side, 2), 2, c, side, 2) for c in (0, 1) for r in (0, 1)]
    x = linear(net, net.concat(*parts, axis=3), 4 * d, 2 * d, rank=4, bias=False, hint="reduction")
    net.output(classifier(net, net.reduce("Mean", x, [1, 2], 0), 2 * d, 9), "logits")


def group_shuffler(net):
    """Groups of channels for themselves, shuffled between."""
    n, groups = 12, net.pick(2, 3, 4)
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="stem")
    for i in range(2):
        with net.scope(f"unit{i}"):
            y = conv_bn(net, x, n, n, 1, "relu", groups=groups, hint="squeeze")
            y = net.reshape(y, [BATCH, groups, n // groups, 8, 8], like=y)
            y = net.reshape(net.transpose(y, 0, 2, 1, 3, 4), [BATCH, n, 8, 8], like=y)
            y = conv_bn(net, y, n, n, 3, None, groups=n, hint="depthwise")
            y = conv_bn(net, y, n, n, 1, None, groups=groups, hint="expand")
            x = activation(net, net.add(x, y), "relu")
    net.output(classifier(net, global_pool(net, x, keep=False), n, 8), "logits")


def flow_pyramid(net):
    """A coarse flow, twice as large in a picture twice as large, moves what is seen."""
    n = 8
    first, second = images(net, "frame1"), images(net, "frame2")
    x = net.concat(first, second, axis=1)
    f = conv_bn(net, conv_bn(net, x, 6, n, 3, "leaky", stride=2, hint="e1"), n, n, 3, "leaky", stride=2, hint="e2")
    flow = net.op("Tanh", conv(net, f, n, 2, 3, hint="flow"))
    for i, side in enumerate((8, 16)):
        with net.scope(f"up{i}"):
            flow = net.mul(resize(net, flow, 2.0, (2, side, side)), net.const(2.0))
    gx, gy = np.meshgrid(np.linspace(-1, 1, 16), np.linspace(-1, 1, 16))
    grid = net.add(net.transpose(net.op("Div", flow, net.const(7.5)), 0, 2, 3, 1), net.const(np.stack([gx, gy], -1)[None]))
    y = net.op("GridSample", second, grid, mode="bilinear" if net.opset < 20 else "linear", padding_mode="border", align_corners=1)
    net.output(flow, "flow")
    net.output(conv(net, net.concat(first, y, axis=1), 6, 3, 3, hint="blend"), "between")


def valid_unet(net):
    """No padding: what comes from the left is cut to the middle."""
    n, act = net.pick(6, 8), net.pick("relu", "elu")
    x = images(net, side=20)
    a = activation(net, conv(net, x, 3, n, 3, pads=[0] * 4, hint="d1"), act)
    b = activation(net, conv(net, pool(net, a), n, n, 3, pads=[0] * 4, hint="d2"), act)
    c = activation(net, conv(net, b, n, n, 3, pads=[0] * 4, hint="bottom"), act)
    up = up_conv(net, c, n, n, 2, 2, 0)
    cut = net.slice(net.slice(a, 2, 4, 14), 3, 4, 14)
    y = activation(net, conv(net, net.concat(cut, up, axis=1), 2 * n, n, 3, pads=[0] * 4, hint="u1"), act)
    net.output(net.op("Sigmoid", conv(net, y, n, 2, 1, hint="out", gain=2.0)), "mask")


def diffusion_unet(net):
    """Two of each level go across; the last that came is the first that is taken."""
    n = 8
    x = conv(net, net.input("latent", [BATCH, 4, 8, 8], "features"), 4, n, 3, hint="conv_in")
    skips = [x]
    for i in range(2):
        x = activation(net, residual(net, x, n, "swish", hint=f"down/resnets/{i}"), "swish")
        skips.append(x)
    x = residual(net, conv(net, x, n, n, 3, stride=2, hint="downsample"), n, "swish", hint="mid")
    x = conv(net, resize(net, x, 2.0, (n, 8, 8), "nearest"), n, n, 3, hint="upsample")
    for i in range(3):
        with net.scope(f"up/resnets/{i}"):
            x = activation(net, batch_norm(net, conv(net, net.concat(x, skips.pop(), axis=1), 2 * n, n, 3, bias=False), n), "swish")
    net.output(conv(net, x, n, 4, 3, hint="conv_out"), "noise")


def disparity_net(net):
    """How near things are, and from it how far."""
    n = net.pick(8, 10)
    x = conv_bn(net, images(net), 3, n, 3, "elu", stride=2, hint="e1")
    y = conv_bn(net, x, n, n, 3, "elu", stride=2, hint="e2")
    y = net.concat(resize(net, y, 2.0, (n, 8, 8), "nearest"), x, axis=1)
    y = activation(net, conv(net, y, 2 * n, n, 3, hint="d1"), "elu")
    disparity = net.op("Sigmoid", conv(net, y, n, 1, 3, hint="disp", gain=1.5))
    low, high = 1 / net.pick(10.0, 80.0), 1 / net.pick(0.5, 1.0)
    scaled = net.add(net.mul(disparity, net.const(high - low)), net.const(low))
    net.output(disparity, "disparity")
    net.output(net.op("Div", net.const(1.0), scaled) if net.pick(True, False) else net.op("Reciprocal", scaled), "depth")


def camera_colours(net):
    """Brightness and two colours in bytes become red, green and blue, then what is seen."""
    full = net.pick(True, False)
    m = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]] if full else [[1.164, 0, 1.596], [1.164, -0.392, -0.813], [1.164, 2.017, 0]])
    x = net.op("Sub", net.input("yuv", [BATCH, 3, 16, 16], "pixels"), net.const(np.array([0.0 if full else 16.0, 128, 128]).reshape(1, 3, 1, 1)))
    x = net.op("Conv", x, net.weight(m.reshape(3, 3, 1, 1).astype(np.float32), "to_rgb"), kernel_shape=[1, 1])
    x = net.op("Sub", net.op("Div", net.clip(x, 0.0, 255.0), net.const(127.5)), net.const(1.0))
    x = conv_bn(net, x, 3, 10, 3, "relu6", stride=2, hint="c1")
    x = squeeze_excite(net, conv_bn(net, x, 10, 10, 3, "relu6", stride=2, hint="c2"), 10, 4)
    net.output(classifier(net, global_pool(net, x, keep=False), 10, 8, "softmax"), "scene")


def rows_last(net):
    """Images with their colours behind, whatever the framework; an average of each channel's own mean and deviation taken off."""
    x = net.input("pixels", [BATCH, 16, 16, 3], "pixels", )
    x = net.transpose(x, 0, 3, 1, 2)
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    x = net.op("Div", x, net.const(255.0))
    x = net.op("Div", net.op("Sub", x, net.const(mean.reshape(1, 3, 1, 1))), net.const(deviation.reshape(1, 3, 1, 1)))
    x = conv_bn(net, x, 3, 8, (3, 5), "relu", stride=(2, 1), hint="c1", pads=[1, 2, 1, 2])
    x = conv_bn(net, x, 8, 10, (3, 5), "relu", stride=(1, 2), hint="c2", pads=[1, 2, 1, 2])
    x = net.transpose(x, 0, 2, 3, 1)
    net.output(linear(net, net.reshape(x, [BATCH, 640], like=x), 640, 6, rank=2, hint="fc", gain=2.0), "logits")


def standard_weights(net):
    """Filters of mean zero and deviation one, which group norms stand behind."""
    n, groups = 8, net.pick(2, 4)
    x = images(net)
    for i, (a, s) in enumerate(((3, 2), (n, 1), (n, 2))):
        with net.scope(f"block{i}"):
            w = trained(net.rng, (n, a, 3, 3), a * 9)
            flat = w.reshape(n, -1)
            w = ((flat - flat.mean(1, keepdims=True)) / flat.std(1, keepdims=True) / np.sqrt(a * 9)).reshape(w.shape).astype(np.float32)
            y = net.op("Conv", x, net.weight(w), net.vector(n), kernel_shape=[3, 3], pads=[1] * 4, strides=[s, s])
            side = {0: 8, 1: 8, 2: 4}[i]
            x = activation(net, group_norm(net, y, n, groups, [side, side]), "relu")
    net.output(classifier(net, global_pool(net, x, keep=False), n, 10), "logits")


def half_zero(net):
    """Two weights of four are zero, as a card with sparse products wants it."""
    n = 8
    x = conv_bn(net, images(net), 3, n, 3, "relu", stride=2, hint="stem")
    for i in range(2):
        with net.scope(f"layer{i}"):
            y = net.op("Conv", x, pruned(net, (n, n, 3, 3), n * 9, 1.4), net.vector(n), kernel_shape=[3, 3], pads=[1] * 4)
            x = net.add(activation(net, y, "relu"), x)
    x = global_pool(net, x, keep=False)
    y = net.op("Gemm", x, pruned(net, (16, n), n, 1.2), net.vector(16), transB=1)
    net.output(classifier(net, activation(net, y, "relu"), 16, 6), "logits")


def mirrored(net):
    """Seen as it is and turned by half, with the same filters, and both averaged."""
    n, x = 8, images(net)
    w1, b1 = net.trained((n, 3, 3, 3), 27, 1.4, "conv1.weight"), net.vector(n)
    w2, b2 = net.trained((n, n, 3, 3), n * 9, 1.4, "conv2.weight"), net.vector(n)
    w3, b3 = net.trained((2, n, 1, 1), n, 2.0, "head.weight"), net.vector(2)

    def branch(y):
        y = activation(net, net.op("Conv", y, w1, b1, kernel_shape=[3, 3], pads=[1] * 4), "relu")
        y = activation(net, net.op("Conv", y, w2, b2, kernel_shape=[3, 3], pads=[1] * 4), "relu")
        return net.op("Conv", y, w3, b3, kernel_shape=[1, 1])
    def flip(y):  # rows and columns
        return net.op("Slice", y, net.ints(-1, -1), net.ints(-(1 << 62), -(1 << 62)), net.ints(2, 3), net.ints(-1, -1))
    back = flip(branch(flip(x)))
    net.output(net.op("Sigmoid", net.mul(net.add(branch(x), back), net.const(0.5))), "heat")


def score_map(net):
    """What each place shows, as large as the picture, as a chance for each."""
    n, act = net.pick(8, 10), net.pick("relu", "hardswish")
    x = conv_bn(net, conv_bn(net, images(net), 3, n, 3, act, stride=2, hint="c1"), n, n, 3, act, stride=2, hint="c2", dilation=1)
    y = conv_bn(net, x, n, n, 3, act, dilation=2, pads=[2] * 4, hint="atrous")
    y = net.add(conv(net, net.concat(x, y, axis=1), 2 * n, 4, 1, hint="classes", gain=2.0), conv(net, x, n, 4, 1, hint="aux"))
    y = resize(net, y, 4.0, (4, 16, 16))
    net.output(net.op("Sigmoid", y) if net.pick(True, False) else net.softmax(y, 4, 1), "shares")


def neighbour_norms(net):
    """Divided by what neighbouring channels have; in groups, as in two cards."""
    n, size = 12, net.pick(5, 3, 7)
    x = activation(net, conv(net, images(net), 3, n, 5, stride=2, pads=[2] * 4, hint="conv1"), "relu")
    x = net.op("LRN", x, size=size, alpha=net.pick(0.5, 1.0), beta=0.75, bias=net.pick(1.0, 2.0))
    x = pool(net, x, k=3, stride=2, pads=1)
    x = activation(net, conv(net, x, n, n, 3, groups=2, hint="conv2"), "relu")
    x = net.op("LRN", x, size=size, alpha=net.pick(0.5, 1.0), beta=0.75, bias=net.pick(1.0, 2.0))
    x = activation(net, linear(net, flatten(net, x, n, 4), n * 16, 24, rank=2, hint="fc6"), "relu")
    net.output(classifier(net, x, 24, 9, "softmax"), "prob")


def painter(net):
    """From a vector to a picture by doubling pixels; styles of mish and tanh."""
    n, z = 8, net.input("z", [BATCH, 12], "features")
    x = net.reshape(linear(net, z, 12, n * 16, rank=2, hint="fc"), [BATCH, n, 4, 4], like=z)
    for i, side in enumerate((8, 16)):
        with net.scope(f"up{i}"):
            x = resize(net, x, 2.0, (n, side, side), "nearest")
            x = activation(net, batch_norm(net, conv(net, x, n, n, 3, bias=False), n), net.pick("mish", "leaky"))
    net.output(net.op("Tanh", conv(net, x, n, 3, 3, hint="rgb")), "image")


def projection_shortcuts(net):
    """Blocks that halve the picture, with a single pixel of four on the short way."""
    n, act = 8, net.pick("relu", "mish", "relu")
    x = activation(net, norm_of(net, conv(net, images(net), 3, n, 3, hint="stem"), n), act)
    for i in range(2):
        with net.scope(f"layer{i}"):
            y = conv_bn(net, x, n, n, 3, act, stride=2, hint="a")
            y = conv_bn(net, y, n, n, 3, None, hint="b")
            short = conv_bn(net, x, n, n, 1, None, stride=2, pads=[0] * 4, hint="shortcut")
            x = activation(net, net.add(y, short), act)
    net.output(classifier(net, global_pool(net, x, keep=False), n, 10), "logits")


def picture_and_words(net):
    """Words look at a picture's places; which answer fits."""
    d, n = 16, 8
    image = images(net)
    memory = flat_tokens(net, conv_bn(net, conv_bn(net, image, 3, d, 3, "relu", stride=2, hint="c1"), d, d, 3, "relu", stride=2, hint="c2"), d, 16)
    ids, flags = net.input("question", [BATCH, n], "tokens"), net.input("question_mask", [BATCH, n], "flags")
    x = net.add(net.op("Gather", learned(net, (50, d), "words", 1.0), ids, axis=0), learned(net, (1, n, d), "places"))
    mask = mask_of_lengths(net, flags)
    x = block(net, x, n, d, 2, net.pick("gelu", "relu"), first=False, mask=mask, like=image, hint="text")
    both = net.concat(net.reduce("Mean", memory, [1], 0), net.op("Gather", x, net.const(0, np.int64), axis=1), axis=1)
    net.output(linear(net, activation(net, linear(net, both, 2 * d, 24, rank=2, hint="fc1"), "gelu"), 24, 13, rank=2, hint="fc2", gain=2.0), "answers")


def hybrid_vit(net):
    """Convolutions first, then tokens, a class that asks at the end."""
    d, act = net.pick(12, 16), net.pick("gelu", "gelu_tanh", "swish")
    image = images(net)
    x = conv_bn(net, image, 3, d, 3, "hardswish", stride=2, hint="stem1")
    x = conv_bn(net, x, d, d, 3, "hardswish", stride=2, hint="stem2")
    x = net.add(to_tokens(net, x, d, 16), learned(net, (1, 16, d), "pos_embed"))
    for i in range(3):
        x = block(net, x, 16, d, 2, act, like=image, hint=f"blocks/{i}")
    x = net.reduce("Mean", feed_forward(net, x, d, 24, act, hint="last"), [1], 0)
    net.output(classifier(net, x, d, 11), "logits")
