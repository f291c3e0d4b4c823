"""Seventh generation: networks that hear and sound."""
import numpy as np

from blocks import activation, linear, recurrent
from layers6 import cepstra, power_spectrum
from layers7 import root_mean_norm, snake_of_two, two_layers
from net import BATCH
from vision import conv


def classes_of_pitch(bins, first):
    """[12, bins]: how much each bin belongs to each of the twelve classes, the first of them being C."""
    f = np.arange(1, bins + 1) * first
    place = (12 * np.log2(f / 261.63)) % 12
    gap = (place[None] - np.arange(12)[:, None] + 6) % 12 - 6
    m = np.exp(-0.5 * (gap / 0.8) ** 2)
    return (m / np.sqrt((m * m).sum(0, keepdims=True))).astype(np.float32)


def pitch_classes(net):
    """Twelve classes of pitch over time, and the chord."""
    power = power_spectrum(net, net.input("music", [BATCH, 1, 96], "signal"), 16, 8, "hann")
    x = net.op("MatMul", net.weight(classes_of_pitch(9, net.pick(55.0, 110.0)), "chroma_fb"), power)
    x = net.op("Div", x, net.add(net.reduce("Max", x, [1]), net.const(1e-3)))
    x = activation(net, conv(net, x, 12, 14, 3, rank=1, hint="c1"), "relu")
    net.output(net.op("LogSoftmax", linear(net, net.reduce("Mean", x, [2], 0), 14, 8, rank=2, hint="chord", gain=2.0), axis=1), "chord")


def key_of_song(net):
    """The same classes through a recurrent layer, and a song's key."""
    power = power_spectrum(net, net.input("song", [BATCH, 1, 80], "signal"), 16, 8, "hann")
    x = net.op("MatMul", net.weight(classes_of_pitch(9, 82.0), "chroma"), net.op("Sqrt", net.add(power, net.const(1e-6))))
    h, _ = recurrent(net, net.transpose(x, 2, 0, 1), net.pick("LSTM", "GRU"), 12, 10, hint="rnn")
    net.output(net.softmax(linear(net, net.squeeze(net.slice(h, 0, 10, 11), 0), 10, 12, rank=2, hint="key", gain=2.0), 2), "key")


def changes_of(net, x, n):
    """How fast each number changes, over five frames; the ends go on."""
    w = np.tile(np.arange(-2.0, 3.0).reshape(1, 1, 5) / 10, (n, 1, 1))
    return net.op("Conv", net.pad(x, [0, 0, 2, 0, 0, 2], mode="edge"), net.const(w), kernel_shape=[5], group=n)


def changing_words(net):
    """Cepstra, how fast they change, and how fast that does; a word."""
    power = power_spectrum(net, net.input("audio", [BATCH, 1, 96], "signal"), 16, 8, "hamming")
    x = cepstra(net, net.op("Log", net.add(power, net.const(1e-3))), 9, 6, 22.0)
    d = changes_of(net, x, 6)
    x = net.mul(net.concat(x, d, changes_of(net, d, 6), axis=1), net.const(0.2))
    x = activation(net, conv(net, x, 18, 12, 3, rank=1, hint="c1"), "relu")
    net.output(linear(net, net.reduce("Mean", x, [2], 0), 12, 7, rank=2, hint="word", gain=2.0), "word")


def changing_motion(net):
    """A watch's sensors and how fast they change, to what its wearer does."""
    x = net.input("watch", [BATCH, 6, 20], "signal")
    x = net.concat(x, changes_of(net, x, 6), axis=1)
    x = activation(net, conv(net, x, 12, 12, 5, rank=1, stride=2, hint="c1"), net.pick("relu", "elu"))
    net.output(net.softmax(linear(net, net.reduce("Max", x, [2], 0), 12, 6, rank=2, hint="fc", gain=2.0), 2), "activity")


def loud_cepstra(net):
    """Cepstra whose first number is how loud a frame is; whose voice."""
    power = power_spectrum(net, net.input("voice", [BATCH, 1, 96], "signal"), 16, 8, "hamming")
    c = cepstra(net, net.op("Log", net.add(power, net.const(1e-3))), 9, 7, 22.0)
    loud = net.op("Log", net.add(net.reduce("Sum", power, [1]), net.const(1e-3)))
    x = net.mul(net.concat(loud, net.slice(c, 1, 1, 7), axis=1), net.const(0.2))
    h, _ = recurrent(net, net.transpose(x, 2, 0, 1), "GRU", 7, 12, hint="rnn")
    net.output(linear(net, net.reduce("Mean", h, [0], 0), 12, 8, rank=2, hint="voice"), "vector")


def loud_gates(net):
    """The same numbers to whether somebody speaks, frame by frame."""
    power = power_spectrum(net, net.input("call", [BATCH, 1, 80], "signal"), 16, 8, "hann")
    c = cepstra(net, net.op("Log", net.add(power, net.const(1e-3))), 9, 6, 12.0)
    loud = net.op("Log", net.add(net.reduce("Mean", power, [1]), net.const(1e-4)))
    x = net.mul(net.concat(loud, net.slice(c, 1, 1, 6), axis=1), net.const(0.25))
    x = activation(net, conv(net, x, 6, 10, 3, rank=1, hint="c1"), "tanh")
    net.output(net.op("Sigmoid", conv(net, x, 10, 1, 1, rank=1, hint="speech", gain=2.0)), "speech")


def snake_vocoder(net):
    """Bands to sound: layers twice as long, between them sines of two numbers for each channel."""
    x = conv(net, net.input("mel", [BATCH, 8, 6], "signal"), 8, 12, 5, rank=1, hint="pre")
    for i in range(2):
        n = 12 >> i
        x = snake_of_two(net, x, n, f"act{i}")
        w = net.trained((n, n // 2, 4), n * 2, 1.2)
        x = net.op("ConvTranspose", x, w, net.vector(n // 2), kernel_shape=[4], strides=[2], pads=[1, 1])
        x = net.add(x, conv(net, snake_of_two(net, x, n // 2, f"res{i}.act"), n // 2, n // 2, 3, rank=1, hint=f"res{i}"))
    net.output(net.op("Tanh", conv(net, snake_of_two(net, x, 3, "post"), 3, 1, 5, rank=1, hint="out")), "audio")


def snake_words(net):
    """Sound to few numbers with such sines, to the nearest word of a book, and its scores."""
    x = conv(net, net.input("audio", [BATCH, 1, 32], "signal"), 1, 8, 5, rank=1, hint="in")
    for i in range(2):
        x = conv(net, snake_of_two(net, x, 8, f"act{i}"), 8, 8, 4, rank=1, stride=2, pads=[1, 1], hint=f"down{i}")
    x = net.transpose(x, 0, 2, 1)
    near = linear(net, root_mean_norm(net, x, 8), 8, 10, hint="book", gain=2.0)
    net.output(net.op("MatMul", net.op("Hardmax", near, axis=2), net.weight(net.rng.standard_normal((10, 6)).astype(np.float32), "codes")), "codes")
    net.output(near, "scores")


def followed_level(net):
    """How loud a signal is over time, by its magnitude and a slow mean; and how much to turn it down."""
    x = net.input("audio", [BATCH, 1, 40], "signal")
    level = net.op("AveragePool", net.op("Abs", x), kernel_shape=[5], strides=[5])
    h = activation(net, conv(net, net.op("Log", net.op("Max", level, net.const(0.05))), 1, 8, 3, rank=1, hint="c1"), net.pick("tanh", "elu"))
    net.output(net.op("Sigmoid", conv(net, h, 8, 1, 3, rank=1, hint="gain")), "gain")
    net.output(level, "level")


def peaks_of_cable(net):
    """A cable's current: magnitudes, their largest in windows, lengths by a power; whether it will fail."""
    x = net.op("Abs", conv(net, net.input("current", [BATCH, 2, 36], "signal"), 2, 8, 5, rank=1, hint="filters"))
    a = net.op("MaxPool", x, kernel_shape=[4], strides=[4])
    b = net.op("LpPool", x, kernel_shape=[4], strides=[4], p=net.pick(3, 4))
    y = net.reduce("Mean", net.concat(a, b, axis=1), [2], 0)
    net.output(net.op("Sigmoid", two_layers(net, y, 16, 12, 2, hint="fail", gain=2.0)), "fail")


def letters_of_sound(net):
    """Bands through layers over time, shares of letters as logarithms."""
    x = net.input("mel", [BATCH, 8, 16], "signal")
    for i in range(2):
        x = net.clip(conv(net, x, 8 if i == 0 else 12, 12, 5, rank=1, stride=2 - i, hint=f"c{i}"), -net.pick(2.0, 3.0), 3.0) if i else \
            activation(net, conv(net, x, 8, 12, 5, rank=1, stride=2, hint="c0"), "relu")
    h, _ = recurrent(net, net.transpose(x, 2, 0, 1), "LSTM", 12, 8, "bidirectional", hint="rnn")
    net.output(net.op("LogSoftmax", linear(net, net.transpose(h, 1, 0, 2), 16, 12, hint="fc", gain=2.0), axis=-1), "letters")
