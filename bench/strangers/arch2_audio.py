"""Second generation: sound, speech, and recurrent layers as other frameworks have them."""
import numpy as np
import onnx
from onnx import helper

from arch_sequence import embed, time_first
from blocks import activation, attention, batch_norm, causal_mask, layer_norm, linear, mlp, recurrent
from net import BATCH
from vision import conv


def log_mel(net, wave, n, hop, bands):
    """[B, 1, samples] to [B, bands, frames]: a window, a transform as convolution, triangles, a logarithm to base 10 with a floor."""
    t = np.arange(n)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * t / n)
    basis = [window * f(2 * np.pi * k * t / n) for f in (np.cos, np.sin) for k in range(n // 2 + 1)]
    m = n // 2 + 1
    wave = net.pad(wave, [0, 0, n // 2, 0, 0, n // 2], "reflect")
    spectrum = net.op("Conv", wave, net.weight(np.array(basis, np.float32)[:, None], "stft"), kernel_shape=[n], strides=[hop], pads=[0, 0])
    real, imaginary = net.split(spectrum, [m, m], 1)
    power = net.add(net.mul(real, real), net.mul(imaginary, imaginary))
    mel = np.maximum(0, 1 - np.abs(np.arange(m) - np.linspace(0, m - 1, bands)[:, None]) / 1.5).astype(np.float32)
    x = net.op("Log", net.op("Max", net.op("MatMul", net.weight(mel, "mel_filters"), power), net.const(1e-4)))
    x = net.mul(x, net.const(1 / np.log(10)))
    return net.op("Div", net.add(x, net.const(4.0)), net.const(4.0))


def sinusoids(length, dim):
    angle = np.arange(length)[:, None] * 100.0 ** (-np.arange(dim // 2) / (dim // 2 - 1))[None]
    return np.concatenate([np.sin(angle), np.cos(angle)], 1)[None]


def whisper(net):
    dim = net.pick(16, 24)
    x = log_mel(net, net.input("audio", [BATCH, 1, 64], "signal"), 8, 4, 6)  # 17 frames
    x = activation(net, conv(net, x, 6, dim, 3, rank=1, hint="conv1"), "gelu")
    x = activation(net, conv(net, x, dim, dim, 3, stride=2, rank=1, hint="conv2"), "gelu")
    x = net.add(net.transpose(x, 0, 2, 1), net.const(sinusoids(9, dim)))
    with net.scope("encoder"):
        x = net.add(x, attention(net, layer_norm(net, x, dim, hint="ln1"), 9, dim, 2))
        x = layer_norm(net, net.add(x, mlp(net, layer_norm(net, x, dim, hint="ln2"), dim, 2 * dim)), dim, hint="ln_post")
    y, table = embed(net, net.input("tokens", [BATCH, 6], "tokens", vocab=30), 30, dim)
    y = net.add(y, net.weight((0.3 * net.rng.standard_normal((1, 6, dim))).astype(np.float32), "positional_embedding"))
    with net.scope("decoder"):
        y = net.add(y, attention(net, layer_norm(net, y, dim, hint="ln1"), 6, dim, 2, mask=causal_mask(net, 6)))
        y = net.add(y, attention(net, layer_norm(net, y, dim, hint="ln2"), 6, dim, 2, kv=x, kv_length=9, hint="cross"))
        y = net.add(y, mlp(net, layer_norm(net, y, dim, hint="ln3"), dim, 2 * dim))
    net.output(net.op("MatMul", layer_norm(net, y, dim), net.transpose(table, 1, 0)), "logits")


def wav2vec(net):
    """Convolutions on the wave, a normalization over time in front, positions by a grouped convolution of even length."""
    dim = 16
    x = conv(net, net.input("wave", [BATCH, 1, 80], "signal"), 1, 12, 8, stride=4, bias=False, pads=[0, 0], rank=1, hint="conv0")
    x = net.op("InstanceNormalization", x, net.vector(12, 1.0, 0.2, "gn"), net.vector(12), epsilon=1e-5)
    x = activation(net, conv(net, activation(net, x, "gelu"), 12, 12, 3, stride=2, bias=False, pads=[0, 0], rank=1, hint="conv1"), "gelu")
    x = linear(net, layer_norm(net, net.transpose(x, 0, 2, 1), 12, 1e-5), 12, dim, hint="projection")  # 9 steps
    y = conv(net, net.transpose(x, 0, 2, 1), dim, dim, 4, groups=net.pick(2, 4), pads=[2, 2], rank=1, hint="pos_conv")
    y = activation(net, net.slice(y, 2, 0, 9), "gelu")
    x = layer_norm(net, net.add(x, net.transpose(y, 0, 2, 1)), dim, 1e-5, "norm")
    with net.scope("layers/0"):
        x = layer_norm(net, net.add(x, attention(net, x, 9, dim, 2)), dim, 1e-5, "norm1")
        x = layer_norm(net, net.add(x, mlp(net, x, dim, 2 * dim)), dim, 1e-5, "norm2")
    net.output(linear(net, x, dim, 12, hint="lm_head"), "logits")


def tacotron(net):
    """An encoder of letters; two steps of a decoder that looks where it looked before."""
    length, dim = 8, 16
    x, _ = embed(net, net.input("letters", [BATCH, length], "tokens", vocab=30), 30, dim)
    y = net.transpose(x, 0, 2, 1)
    y = activation(net, batch_norm(net, conv(net, y, dim, dim, 5, rank=1, hint="conv"), dim), "relu")
    memory, _ = recurrent(net, net.transpose(y, 2, 0, 1), "LSTM", dim, 8, "bidirectional", hint="encoder")
    memory = time_first(net, memory)
    keys = linear(net, memory, 16, 12, bias=False, hint="memory_layer")
    frame = net.input("frame", [BATCH, 6], "features")
    w_ih, w_location, v = net.trained((22, 3 * 12), 22), net.trained((4, 1, 3), 3, 1.0, "location"), net.trained((12, 1), 12, 2.0, "v")
    w_query, w_out, w_place = net.trained((12, 12), 12), net.trained((28, 6), 28), net.trained((4, 12), 4)
    context, weights = net.reduce("Mean", memory, [1], 0), None
    outputs = []
    for t in range(2):
        with net.scope(f"step{t}"):
            pre = net.op("MatMul", net.concat(net.op("Relu", frame), context, axis=1), w_ih)
            i, g, o = net.split(pre, [12, 12, 12], 1)
            h = net.mul(net.op("Sigmoid", o), net.op("Tanh", net.mul(net.op("Sigmoid", i), net.op("Tanh", g))))
            energy = net.add(keys, net.unsqueeze(net.op("MatMul", h, w_query), 1))
            if weights:
                place = net.op("Conv", net.transpose(weights, 0, 2, 1), w_location, kernel_shape=[3], pads=[1, 1])
                energy = net.add(energy, net.op("MatMul", net.transpose(place, 0, 2, 1), w_place))
            weights = net.softmax(net.op("MatMul", net.op("Tanh", energy), v), 3, axis=1)
            context = net.squeeze(net.op("MatMul", net.transpose(weights, 0, 2, 1), memory), 1)
            frame = net.op("MatMul", net.concat(h, context, axis=1), w_out)
            outputs.append(net.unsqueeze(frame, 1))
    net.output(net.concat(*outputs, axis=1), "mel")
    net.output(weights, "alignment")


def hifi_gan(net):
    """Transposed convolutions, then residual blocks of several dilations, whose mean is taken."""
    n, x = 12, conv(net, net.input("mel", [BATCH, 6, 8], "signal"), 6, 12, 3, rank=1, hint="conv_pre")
    for i, (k, stride) in enumerate(((4, 2), (net.pick(4, 8), 4))):
        m = n * 2 // 3
        with net.scope(f"up{i}"):
            x = activation(net, x, "leaky")
            w = net.trained((n, m, k), n * k / stride, 1.2, "up")
            x = net.op("ConvTranspose", x, w, net.vector(m), kernel_shape=[k], strides=[stride], pads=[(k - stride) // 2] * 2)
            total = None
            for d in (1, 3):
                y = conv(net, activation(net, x, "leaky"), m, m, 3, dilation=d, rank=1, hint=f"conv1_{d}")
                y = net.add(x, conv(net, activation(net, y, "leaky"), m, m, 3, rank=1, hint=f"conv2_{d}"))
                total = net.add(total, y) if total else y
            x, n = net.op("Div", total, net.const(2.0)), m
    net.output(activation(net, conv(net, activation(net, x, "leaky"), n, 1, 5, rank=1, hint="conv_post"), "tanh"), "wave")


def fsmn(net):
    """Memory blocks: a causal convolution of each channel beside what goes straight on."""
    x, n = net.input("frames", [BATCH, 12, 10], "signal"), net.pick(12, 16)
    x = activation(net, linear(net, x, 10, n, hint="in"), "relu")
    for i in range(3):
        with net.scope(f"fsmn{i}"):
            p = linear(net, x, n, 8, bias=False, hint="project")
            d = net.pick(1, 2)
            m = net.op("Conv", net.transpose(p, 0, 2, 1), net.trained((8, 1, 3), 3, 1.0, "memory"), kernel_shape=[3], dilations=[d],
                       pads=[2 * d, 0], group=8)
            p = net.add(p, net.transpose(m, 0, 2, 1))
            x = net.add(x, activation(net, linear(net, p, 8, n, hint="affine"), "relu"))
    net.output(net.op("LogSoftmax", linear(net, x, n, 9, hint="out"), axis=2), "log_posteriors")


def kaldi_lstm(net):
    """Peepholes, perhaps a limit for what gates see, and a layer whose last state matters."""
    h = net.pick(8, 10)
    x = time_first(net, net.input("features", [BATCH, 9, 6], "signal"))
    clip = net.pick(None, None, 1.0, 1.5)

    def layer(x, n, hint):
        with net.scope(hint):
            w, r = net.trained((1, 4 * h, n), n, 1.6, "W"), net.trained((1, 4 * h, h), h, 1.0, "R")
            b = 0.2 * net.rng.standard_normal((1, 8 * h))
            b[:, 2 * h:3 * h] += 1
            peep = net.weight((0.6 * net.rng.standard_normal((1, 3 * h))).astype(np.float32), "P")
            b = net.weight(b.astype(np.float32), "B")
            return net.op("LSTM", x, w, r, b, "", "", "", peep, n=3, hidden_size=h, clip=clip)
    y, _, _ = layer(x, 6, "lstm1")
    y = net.squeeze(y, 1)
    z, last, cell = layer(y, h, "lstm2")
    z = time_first(net, net.squeeze(z, 1))
    net.output(linear(net, z, h, 5, hint="out"), "posteriors")
    net.output(linear(net, net.squeeze(last, 0), h, 3, rank=2, hint="summary"), "summary")
    net.output(net.squeeze(cell, 0), "memory")


def bi_gru(net):
    """What the forward direction has at the end and the backward one at the beginning."""
    h, length = net.pick(8, 10), 8
    x = time_first(net, embed(net, net.input("words", [BATCH, length], "tokens"), 50, 10)[0])
    kind = net.pick("GRU", "GRU", "LSTM")
    y, _ = recurrent(net, x, kind, 10, h, "bidirectional", reset_after=1, hint="rnn")
    forward = net.squeeze(net.slice(net.slice(y, 2, 0, h), 0, length - 1, length), 0)
    backward = net.squeeze(net.slice(net.slice(y, 2, h, 2 * h), 0, 0, 1), 0)
    z = activation(net, linear(net, net.concat(forward, backward, axis=1), 2 * h, 12, rank=2, hint="dense"), net.pick("relu", "selu"))
    net.output(net.softmax(linear(net, z, 12, 4, rank=2, hint="out"), 2), "probabilities")


def scan_filter(net):
    """A recursive filter as Scan, forwards and backwards."""
    n = 6
    x = net.transpose(linear(net, net.input("series", [BATCH, 10, 4], "signal"), 4, n, hint="in"), 1, 0, 2)
    start = net.mul(net.squeeze(net.slice(x, 0, 0, 1), 0), net.const(0.0))
    parts = []
    for d in (0, 1):
        with net.scope(f"scan{d}"):
            keep = net.vector(n, 0.7, 0.15, "keep")
            names = [f"{k}_{d}" for k in ("state", "x", "decayed", "next", "y")]
            nodes = [helper.make_node("Mul", [names[0], keep], [names[2]]), helper.make_node("Add", [names[2], names[1]], [names[3]]),
                     helper.make_node("Tanh", [names[3]], [names[4]])]
            info = [helper.make_tensor_value_info(v, onnx.TensorProto.FLOAT, None) for v in (names[0], names[1], names[3], names[4])]
            body = helper.make_graph(nodes, f"body{d}", info[:2], info[2:])
            _, y = net.op("Scan", start, x, n=2, body=body, num_scan_inputs=1, scan_input_directions=[d], scan_output_directions=[d])
            parts.append(y)
    y = net.transpose(net.concat(*parts, axis=2), 1, 0, 2)
    net.output(linear(net, activation(net, y, "relu"), 2 * n, 4, hint="out"), "smoothed")
