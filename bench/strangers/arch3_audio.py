"""Third generation: networks that hear, and networks of fields and waves."""
import numpy as np
from onnx import TensorProto

from arch3_vision import wrapped
from arch_sequence import embed, time_first
from blocks import activation, batch_norm, glu, layer_norm, linear, recurrent
from net import BATCH
from vision import conv, images


def mel_bank(bands, bins, slaney, area, rate=16000.0):
    """Triangles over the bins of a spectrum, [bands, bins]; edges in Slaney's mel or HTK's, perhaps of one area each."""
    step = np.log(6.4) / 27

    def mel(f):
        if not slaney:
            return 2595 * np.log10(1 + f / 700)
        return np.where(f < 1000, 3 * f / 200, 15 + np.log(np.maximum(f, 1e-9) / 1000) / step)

    def hertz(m):
        if not slaney:
            return 700 * (10 ** (m / 2595) - 1)
        return np.where(m < 15, 200 * m / 3, 1000 * np.exp(step * (m - 15)))
    edges = hertz(np.linspace(mel(0.0), mel(rate / 2), bands + 2))
    f = np.linspace(0, rate / 2, bins)
    rise, fall = ((f - edges[:-2, None]) / np.diff(edges)[:-1, None]), ((edges[2:, None] - f) / np.diff(edges)[1:, None])
    bank = np.maximum(0, np.minimum(rise, fall))
    if area:
        bank = bank * (2 / (edges[2:] - edges[:-2]))[:, None] * rate / 16
    return (bank + 1e-6).astype(np.float32)


def windowed_basis(bins, n, inner, start=None):
    """Cosines and sines under a Hann window of `inner` samples, in the middle of n unless it starts elsewhere; [2 * bins, n]."""
    window = np.zeros(n)
    start = (n - inner) // 2 if start is None else start
    window[start:start + inner] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(inner) / inner)
    angle = 2 * np.pi * np.outer(np.arange(bins), np.arange(n)) / n
    return np.concatenate([np.cos(angle), -np.sin(angle)]) * window


def mel_bands(net, x, n, inner, hop, bands):
    """[B, 1, samples] to [B, bands, frames]: pre-emphasis, a window in the middle of a transform, bands, a logarithm."""
    bins = n // 2 + 1
    x = net.pad(x, [0, 0, 1, 0, 0, 0])
    x = net.op("Conv", x, net.const(np.array([-net.pick(0.97, 0.95), 1.0]).reshape(1, 1, 2)), kernel_shape=[2])
    spectrum = net.op("Conv", x, net.const(windowed_basis(bins, n, inner)[:, None]), kernel_shape=[n], strides=[hop])
    re, im = net.split(spectrum, [bins, bins], 1)
    power = net.add(net.mul(re, re), net.mul(im, im))
    bank = mel_bank(bands, bins, net.pick(True, False), net.pick(True, False))
    return net.op("Log", net.add(net.op("MatMul", net.const(bank), power), net.const(net.pick(1e-3, 1e-2))))


def keyword(net):
    """A word in a second: bands, separable convolutions with a passage round them, a mean."""
    n, bands, m = net.pick(16, 20), 8, net.pick(8, 12)
    y = mel_bands(net, net.input("wave", [BATCH, 1, 80], "signal"), n, n - 4, net.pick(5, 6), bands)
    y = net.transpose(layer_norm(net, net.transpose(y, 0, 2, 1), bands, hint="normalize"), 0, 2, 1)
    x = activation(net, batch_norm(net, conv(net, y, bands, m, 3, rank=1, hint="prologue"), m), "relu")
    for i in range(2):
        with net.scope(f"block{i}"):
            y = conv(net, conv(net, x, m, m, net.pick(3, 5), groups=m, rank=1, hint="depthwise"), m, m, 1, rank=1, hint="pointwise")
            x = activation(net, net.add(batch_norm(net, y, m), batch_norm(net, conv(net, x, m, m, 1, rank=1, hint="skip"), m, "bn_skip")), net.pick("relu", "swish"))
    y = linear(net, net.reduce("Mean", x, [2], 0), m, 6, rank=2, hint="fc", gain=1.6)
    net.output(net.op("Sigmoid", y) if net.pick(True, False) else y, "words")


def tdnn(net):
    """A voice as a vector: bands, dilated layers with gates, mean and deviation by attention."""
    n, inner, bands = 16, net.pick(10, 12), net.pick(6, 8)
    y = mel_bands(net, net.input("wave", [BATCH, 1, 64], "signal"), n, inner, 4, bands)
    y = net.op("Sub", y, net.reduce("Mean", y, [2]))
    m = net.pick(8, 12)
    y = batch_norm(net, activation(net, conv(net, y, bands, m, 3, rank=1, hint="layer1"), "relu"), m)
    for i, dilation in enumerate((2, 3)):
        with net.scope(f"block{i}"):
            z = batch_norm(net, activation(net, conv(net, y, m, m, 3, dilation=dilation, rank=1, hint="conv"), "relu"), m)
            gate = activation(net, conv(net, net.reduce("Mean", z, [2]), m, 4, 1, rank=1, hint="se1"), "relu")
            y = net.add(y, net.mul(z, net.op("Sigmoid", conv(net, gate, 4, m, 1, rank=1, hint="se2"))))
    a = net.softmax(conv(net, net.op("Tanh", conv(net, y, m, 6, 1, rank=1, hint="tdnn")), 6, m, 1, rank=1, hint="attend", gain=2.0), 3, axis=2)
    mean = net.reduce("Sum", net.mul(a, y), [2], 0)
    variance = net.op("Sub", net.reduce("Sum", net.mul(a, net.mul(y, y)), [2], 0), net.mul(mean, mean))
    both = net.concat(mean, net.op("Sqrt", net.clip(variance, 1e-4, None)), axis=1)
    net.output(linear(net, both, 2 * m, 10, rank=2, hint="fc"), "embedding")


def istft_net(net):
    """A few frames of a spectrum, and the wave by adding up overlapping windows, divided by what the windows add up to."""
    n, hop, frames, m = 8, net.pick(2, 4), 9, net.pick(8, 10)
    bins = n // 2 + 1
    x = net.input("mel", [BATCH, 6, frames], "signal")
    x = activation(net, conv(net, x, 6, m, 5, rank=1, hint="conv_pre"), "leaky")
    for i, dilation in enumerate((1, 3)):
        with net.scope(f"resblock{i}"):
            alpha = net.weight((1 + 0.3 * net.rng.standard_normal((1, m, 1))).astype(np.float32), "alpha")  # Snake
            s = net.op("Sin", net.mul(x, alpha))
            y = net.add(x, net.op("Div", net.mul(s, s), alpha))
            x = net.add(x, conv(net, y, m, m, 3, dilation=dilation, rank=1, hint="conv"))
    y = conv(net, x, m, 2 * bins, 5, rank=1, hint="conv_post", gain=0.7)
    size, phase = net.split(y, [bins, bins], 1)
    size, phase = net.op("Exp", net.clip(size, None, 3.0)), net.mul(net.op("Sin", phase), net.const(np.pi))
    spectrum = net.concat(net.mul(size, net.op("Cos", phase)), net.mul(size, net.op("Sin", phase)), axis=1)
    weight = np.full(bins, 2 / n)
    weight[[0, -1]] = 1 / n
    basis = windowed_basis(bins, n, n) * np.concatenate([weight, weight])[:, None]
    wave = net.op("ConvTranspose", spectrum, net.const(basis[:, None]), kernel_shape=[n], strides=[hop])
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)) ** 2
    total = np.zeros((frames - 1) * hop + n)
    for t in range(frames):
        total[t * hop:t * hop + n] += window
    end = len(total) - n // 2
    wave, total = net.slice(wave, 2, n // 2, end), total[n // 2:end]
    net.output(net.op("Div", wave, net.const(total.reshape(1, 1, -1))), "wave")


def conv_tasnet(net):
    """Two voices: a learned transform, masks, and back."""
    n, length = net.pick(12, 16), 40
    mixture = net.input("mixture", [BATCH, 1, length], "signal")
    w = activation(net, conv(net, mixture, 1, n, 8, stride=4, pads=[0, 0], rank=1, hint="encoder"), "relu")
    frames = (length - 8) // 4 + 1

    def global_norm(t, m, hint):
        with net.scope(hint):
            mean = net.reduce("Mean", t, [1, 2])
            c = net.op("Sub", t, mean)
            v = net.reduce("Mean", net.mul(c, c), [1, 2])
            y = net.op("Div", c, net.op("Sqrt", net.add(v, net.const(1e-8))))
            gamma, beta = (net.weight((k + 0.2 * net.rng.standard_normal((1, m, 1))).astype(np.float32), h) for k, h in ((1, "gamma"), (0, "beta")))
            return net.add(net.mul(y, gamma), beta)
    x = conv(net, global_norm(w, n, "norm"), n, 10, 1, rank=1, hint="bottleneck")
    skip = None
    for i, dilation in enumerate((1, 2)):
        with net.scope(f"tcn{i}"):
            y = global_norm(activation(net, conv(net, x, 10, 14, 1, rank=1, hint="in"), "prelu", 14, 1), 14, "norm1")
            y = conv(net, y, 14, 14, 3, groups=14, dilation=dilation, rank=1, hint="depthwise")
            y = global_norm(activation(net, y, "prelu", 14, 1), 14, "norm2")
            x, part = net.add(x, conv(net, y, 14, 10, 1, rank=1, hint="res")), conv(net, y, 14, 10, 1, rank=1, hint="skip")
            skip = net.add(skip, part) if skip else part
    masks = net.op(net.pick("Sigmoid", "Relu"), conv(net, activation(net, skip, "prelu", 10, 1), 10, 2 * n, 1, rank=1, hint="masks"))
    masks = net.reshape(masks, [BATCH, 2, n, frames], like=mixture)
    voices = net.op("Reshape", net.mul(masks, net.unsqueeze(w, 1)), net.ints(-1, n, frames))
    with net.scope("decoder"):
        y = net.op("ConvTranspose", voices, net.trained((n, 1, 8), 4 * n, 1.0), kernel_shape=[8], strides=[4])
    net.output(net.reshape(y, [BATCH, 2, length], like=mixture), "voices")


def demucs(net):
    """Down, a recurrent layer, and up again, with passages."""
    n, mixture = net.pick(6, 8), net.input("mixture", [BATCH, 1, 32], "signal")
    x, skips = mixture, []
    for i, m in enumerate((n, 2 * n)):
        with net.scope(f"encoder{i}"):
            x = activation(net, conv(net, x, 1 if i == 0 else n, m, 4, stride=2, pads=[1, 1], rank=1, hint="conv1"), "relu")
            x = glu(net, conv(net, x, m, 2 * m, 1, rank=1, hint="conv2"), m, 1)
            skips.append(x)
    y = net.transpose(x, 2, 0, 1)
    y, _ = recurrent(net, y, "LSTM", 2 * n, n, "bidirectional")
    y = net.transpose(linear(net, y, 2 * n, 2 * n, hint="lstm_linear"), 1, 2, 0)
    for i, m in ((1, n), (0, 1)):
        with net.scope(f"decoder{i}"):
            k = 2 * n if i else n
            y = net.add(y, skips[i])
            y = glu(net, conv(net, y, k, 2 * k, 3, rank=1, hint="conv1"), k, 1)
            y = net.op("ConvTranspose", y, net.trained((k, m, 4), 2 * k, 1.2), net.vector(m), kernel_shape=[4], strides=[2], pads=[1, 1])
            y = activation(net, y, "relu") if i else y
    net.output(y, "source")


def neural_codec(net):
    """The nearest of some codes, then the nearest to what is left, and back to a wave."""
    n, codes = net.pick(6, 8), net.pick(10, 16)
    x = net.input("wave", [BATCH, 1, 32], "signal")
    for i, (a, b) in enumerate(((1, n), (n, n))):
        x = activation(net, conv(net, x, a, b, 4, stride=2, pads=[1, 1], rank=1, hint=f"encoder{i}", gain=1.8), net.pick("elu", "tanh"))
    rest, total = net.transpose(x, 0, 2, 1), None
    for i in range(2):
        with net.scope(f"quantizer{i}"):
            book = (0.8 ** i * net.rng.standard_normal((codes, n)) * np.exp(0.5 * net.rng.standard_normal((codes, 1)))).astype(np.float32)
            table = net.weight(book, "codebook")
            cross = net.mul(net.op("MatMul", rest, net.transpose(table, 1, 0)), net.const(2.0))
            distance = net.op("Sub", net.reduce("Sum", net.mul(rest, rest), [2]), cross)
            distance = net.add(distance, net.const((book.astype(np.float64) ** 2).sum(1)[None, None]))
            index = net.op("ArgMin", distance, axis=2, keepdims=0)
            code = net.op("Gather", table, index, axis=0)
            rest = net.op("Sub", rest, code)
            total = net.add(total, code) if total else code
            net.output(index, f"codes{i}")
    y = net.transpose(total, 0, 2, 1)
    for i, (a, b) in enumerate(((n, n), (n, 1))):
        with net.scope(f"decoder{i}"):
            y = net.op("ConvTranspose", y, net.trained((a, b, 4), 2 * a, 1.2), net.vector(b), kernel_shape=[4], strides=[2], pads=[1, 1])
            y = activation(net, y, "elu") if i == 0 else y
    net.output(y, "reconstruction")


def transducer(net):
    """Frames by two recurrent layers that begin from learned states; half as many are left, of which some are padding."""
    n, length = net.pick(8, 10), 8
    x = net.input("frames", [BATCH, length, 6], "signal")
    lengths = net.input("lengths", [BATCH], "lengths", most=length)
    x = time_first(net, x)
    zero = net.mul(net.reduce("Sum", x, [0, 2]), net.const(0.0))

    def state(directions, hint):
        return net.add(zero, net.weight(net.rng.standard_normal((directions, 1, n)).astype(np.float32), hint))
    for i in range(2):
        x, _ = recurrent(net, x, "LSTM", 6 if i == 0 else n, n, states=[state(1, f"h{i}"), state(1, f"c{i}")], hint=f"encoder{i}")
    x, _ = recurrent(net, x, "GRU", n, n, "bidirectional", states=[state(2, "both")], hint="last")
    pairs = net.reshape(time_first(net, x), [BATCH, length // 2, 4 * n], like=lengths)
    y = linear(net, pairs, 4 * n, 12, hint="project")
    half = net.op("Ceil", net.op("Div", net.op("Cast", lengths, to=TensorProto.FLOAT), net.const(2.0)))
    inside = net.op("Cast", net.op("Less", net.const(np.arange(length // 2)[None]), net.unsqueeze(half, 1)), to=TensorProto.FLOAT)
    y = net.mul(y, net.unsqueeze(inside, 2))
    before, _ = embed(net, net.input("last", [BATCH], "tokens", vocab=20), 20, 12)
    joint = net.op("Tanh", net.add(y, net.unsqueeze(linear(net, before, 12, 12, rank=2, hint="predict"), 1)))
    net.output(linear(net, joint, 12, 9, hint="joint", gain=1.5), "logits")
    net.output(net.op("Div", net.reduce("Sum", y, [1], 0), net.unsqueeze(half, 1)), "summary")


def afno(net):
    """Weather: waves of a field are mixed by complex weights, small ones vanish."""
    d, side = net.pick(6, 8), 8
    x = conv(net, images(net), 3, d, 2, stride=2, pads=[0] * 4, hint="patch")
    angle = 2 * np.pi * np.outer(np.arange(side), np.arange(side)) / side
    c, s = np.cos(angle) * side ** -0.5, np.sin(angle) * side ** -0.5
    for i in range(2):
        with net.scope(f"block{i}"):
            y = net.transpose(x, 0, 2, 3, 1)
            y = net.transpose(layer_norm(net, y, d, 1e-5, "norm"), 0, 1, 3, 2)
            re, im = net.op("MatMul", y, net.const(c)), net.op("Neg", net.op("MatMul", y, net.const(s)))
            re, im = (net.transpose(v, 0, 1, 3, 2) for v in (re, im))
            wr, wi = net.trained((d, d), d, 1.0, "w_real"), net.trained((d, d), d, 0.7, "w_imag")
            a = net.op("Sub", net.op("MatMul", re, wr), net.op("MatMul", im, wi))
            b = net.add(net.op("MatMul", re, wi), net.op("MatMul", im, wr))
            limit = net.pick(0.05, 0.2)
            a, b = (net.op("Shrink", v, lambd=limit, bias=limit) for v in (a, b))
            a, b = (net.transpose(v, 0, 1, 3, 2) for v in (a, b))
            y = net.op("Sub", net.op("MatMul", a, net.const(c)), net.op("MatMul", b, net.const(s)))
            x = net.add(x, net.transpose(y, 0, 2, 1, 3))
            x = net.add(x, conv(net, activation(net, conv(net, x, d, 2 * d, 1, hint="fc1"), "gelu"), 2 * d, d, 1, hint="fc2"))
    if net.pick(True, False):
        x = net.add(x, activation(net, conv(net, wrapped(net, x, side, net.pick(True, False)), d, d, 3, pads=[0] * 4, hint="local"), "gelu"))
    net.output(conv(net, x, d, 3, 1, hint="head"), "field")
