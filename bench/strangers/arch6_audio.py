"""Sixth generation: networks that hear and sound."""
import numpy as np

from blocks import activation, layer_norm, linear, recurrent
from layers5 import unit_length
from layers6 import bands, cepstra, each_standardized, expanded, harmonic_sine, power_spectrum, rounded_levels, standard
from net import BATCH
from vision import conv


def log_bands(net, wave, count, kind, top=1.0, floor=1e-4):
    power = power_spectrum(net, wave, 16, 8, kind)
    return net.op("Log", net.op("Max", net.op("MatMul", net.weight(bands(count, 9, top), "mel"), power), net.const(floor)))


def lifted_cepstra(net):
    """Cepstra whose later numbers are lifted, each recording standardized as a whole, layers over frames, a word."""
    wave = net.input("audio", [BATCH, 1, 96], "signal")
    x = cepstra(net, log_bands(net, wave, 8, net.pick("hann", "hamming"), net.pick(1.0, 0.8)), 8, 7, 22.0)
    x = each_standardized(net, x, 1, 2)
    for i in range(2):
        x = activation(net, conv(net, x, 7 if i == 0 else 12, 12, 3, rank=1, hint=f"c{i}"), "relu")
    net.output(linear(net, net.reduce("Mean", x, [2], 0), 12, 8, rank=2, hint="word", gain=2.0), "word")


def lifted_voices(net):
    """Cepstra, lifted and without their means, to a voice's vector: a recurrent layer, its last frame, length one."""
    wave = net.input("voice", [BATCH, 1, 80], "signal")
    x = cepstra(net, log_bands(net, wave, 7, "hamming"), 7, 6, net.pick(22.0, 12.0))
    x = net.mul(net.op("Sub", x, net.reduce("Mean", x, [2])), net.const(0.15))
    x = net.transpose(x, 2, 0, 1)
    h, _ = recurrent(net, x, net.pick("GRU", "LSTM"), 6, 12, hint="rnn")
    y = net.op("Gather", h, net.const(-1, np.int64), axis=0)
    net.output(unit_length(net, linear(net, y, 12, 10, rank=2, hint="proj")), "vector")


def machine_hum(net):
    """Whether a machine sounds as it should: bands of power, standardized, squeezed through few numbers; how much is lost."""
    wave = net.input("hum", [BATCH, 1, 96], "signal")
    x = net.transpose(each_standardized(net, log_bands(net, wave, 8, "hann", net.pick(0.7, 1.0)), 2), 0, 2, 1)
    h = activation(net, linear(net, x, 8, 12, hint="e1"), net.pick("relu", "tanh"))
    y = linear(net, activation(net, linear(net, linear(net, h, 12, 3, hint="code"), 3, 12, hint="d1"), "relu"), 12, 8, hint="d2")
    gap = net.op("Sub", x, y)
    net.output(y, "again")
    net.output(net.reduce("Mean", net.mul(gap, gap), [1, 2], 0), "score")


def squeezed_calls(net):
    """Calls of birds: bands over what each has been lately, squeezed by a root; planes over time and bands; many kinds."""
    wave = net.input("forest", [BATCH, 1, 96], "signal")
    x = net.op("MatMul", net.weight(bands(8, 9), "mel"), power_spectrum(net, wave, 16, 8, net.pick("hann", "hamming")))
    slow = net.op("Pow", net.add(net.reduce("Mean", x, [2]), net.const(1e-3)), net.const(-0.8))
    x = net.op("Sub", net.op("Pow", net.add(net.mul(x, slow), net.const(2.0)), net.const(net.pick(0.5, 0.3))), net.const(2.0 ** 0.5))
    x = net.unsqueeze(x, 1)
    x = activation(net, conv(net, x, 1, 8, 3, stride=2, hint="c1"), "relu")
    x = activation(net, conv(net, x, 8, 8, 3, hint="c2"), "relu")
    net.output(net.op("Sigmoid", linear(net, net.reduce("Max", x, [2, 3], 0), 8, 9, rank=2, hint="kinds", gain=2.0)), "kinds")


def cleaned_powers(net):
    """Power of each bin squeezed by a root, a mask from layers over time, and back."""
    wave = net.input("noisy", [BATCH, 1, 80], "signal")
    p = power_spectrum(net, wave, 16, 8, "hann")
    x = net.op("Pow", net.add(p, net.const(1e-4)), net.const(net.pick(0.3, 0.15)))
    h = activation(net, conv(net, x, 9, 14, 3, rank=1, hint="c1"), net.pick("relu", "elu"))
    mask = net.op("Sigmoid", conv(net, h, 14, 9, 3, rank=1, hint="mask"))
    net.output(net.mul(p, mask), "power")
    net.output(net.op("Log", net.add(net.reduce("Sum", net.mul(p, mask), [1], 0), net.const(1e-3))), "loudness")


def harmonic_source(net):
    """A voice from its pitch: sines of the pitch and its multiples, mixed, and a filter that bands say."""
    n = 12
    pitch = net.mul(net.add(net.input("pitch", [BATCH, n, 1], "fraction"), net.const(0.5)), net.const(net.pick(200.0, 150.0)))
    sines = harmonic_sine(net, pitch, 4, net.pick(1600.0, 2000.0))
    source = net.op("Tanh", linear(net, net.mul(sines, net.const(0.8)), 4, 6, hint="merge", gain=1.5))
    mel = net.transpose(net.input("mel", [BATCH, 6, n], "signal"), 0, 2, 1)
    x = net.transpose(net.concat(source, mel, axis=2), 0, 2, 1)
    for i in range(2):
        x = activation(net, conv(net, x, 12, 12, 5, rank=1, hint=f"filter{i}"), "leaky")
    net.output(net.op("Tanh", conv(net, x, 12, 2, 3, rank=1, hint="post")), "audio")


def sung_notes(net):
    """Notes that are sung: a pitch for each from a table, its waves, loudness, and the sum."""
    n = 10
    notes = net.input("notes", [BATCH, n], "tokens", vocab=16)
    pitch = net.op("Gather", net.weight((110 * 2 ** (np.arange(16) / 12)).astype(np.float32).reshape(16, 1), "pitches"), notes, axis=0)
    waves = harmonic_sine(net, pitch, 3, 1000.0)
    loud = net.softmax(linear(net, net.input("expression", [BATCH, n, 5], "features"), 5, 3, hint="loud", gain=1.5), 3)
    y = net.reduce("Sum", net.mul(waves, loud), [2])
    x = activation(net, conv(net, net.transpose(net.concat(y, loud, axis=2), 0, 2, 1), 4, 8, 3, rank=1, hint="c"), "tanh")
    net.output(conv(net, x, 8, 1, 3, rank=1, hint="out"), "sung")
    net.output(y, "tone")


def expanded_samples(net):
    """What comes next of a sound, in even steps of loudness, and the samples from it."""
    x = conv(net, net.input("past", [BATCH, 1, 24], "signal"), 1, 8, 3, rank=1, hint="in")
    for i, step in enumerate((1, 2)):
        with net.scope(f"layer{i}"):
            y = net.mul(net.op("Tanh", conv(net, x, 8, 8, 3, rank=1, dilation=step, hint="filter")),
                        net.op("Sigmoid", conv(net, x, 8, 8, 3, rank=1, dilation=step, hint="gate")))
            x = net.add(x, conv(net, y, 8, 8, 1, rank=1, hint="mix"))
    y = net.op("Tanh", conv(net, x, 8, 1, 1, rank=1, hint="out"))
    net.output(expanded(net, y, net.pick(255.0, 127.0)), "samples")


def levels_of_sound(net):
    """Sound through numbers of few levels and back, expanded from even steps."""
    levels = net.pick([8, 5, 5, 4], [6, 5, 4, 4])
    x = activation(net, conv(net, net.input("sound", [BATCH, 1, 32], "signal"), 1, 8, 4, stride=4, pads=[0, 0], rank=1, hint="enc1"), net.pick("elu", "relu"))
    z = net.transpose(conv(net, x, 8, 4, 3, rank=1, hint="enc2", gain=2.0), 0, 2, 1)
    z = rounded_levels(net, z, levels)
    h = activation(net, conv(net, net.transpose(z, 0, 2, 1), 4, 8, 3, rank=1, hint="dec1"), "elu")
    w = net.trained((8, 1, 4), 8, 1.2, "dec2.weight")
    y = net.op("Tanh", net.op("ConvTranspose", h, w, net.vector(1), kernel_shape=[4], strides=[4]))
    net.output(expanded(net, y), "audio")
    net.output(z, "codes")


def levels_of_gait(net):
    """A walk as numbers of few levels, twice: the second for what is left of the first, at its finer step."""
    levels = [5, 4, 6]
    x = standard(net, net.input("steps", [BATCH, 10], "signal"), 10)
    z = linear(net, activation(net, linear(net, x, 10, 16, rank=2, hint="e1"), "relu"), 16, 3, rank=2, hint="e2", gain=1.6)
    first = rounded_levels(net, z, levels, "first")
    left = net.op("Div", net.op("Sub", net.op("Tanh", z), first), net.const(1 / (np.array(levels) - 1)))
    second = net.mul(rounded_levels(net, left, levels, "second"), net.const(1 / (np.array(levels) - 1)))
    y = net.add(first, second)
    net.output(linear(net, activation(net, linear(net, y, 3, 16, rank=2, hint="d1"), "tanh"), 16, 10, rank=2, hint="d2"), "again")
    net.output(y, "codes")


def pitch_bins(net):
    """A frame to shares of fine bins of pitch, and the pitch as their mean around the best, in cents and in cycles."""
    x = net.input("frame", [BATCH, 1, 48], "signal")
    for i, (a, b) in enumerate(((1, 8), (8, 8))):
        x = activation(net, conv(net, x, a, b, 5, stride=2, rank=1, hint=f"c{i}"), "relu")
    y = net.op("Sigmoid", linear(net, net.op("Flatten", x, axis=1), 96, 20, rank=2, hint="bins", gain=2.0))
    cents = 1997.0 + 20 * np.arange(20)
    mean = net.op("Div", net.reduce("Sum", net.mul(y, net.const(cents)), [1]), net.reduce("Sum", y, [1]))
    net.output(net.mul(net.op("Exp", net.mul(mean, net.const(np.log(2) / 1200))), net.const(10.0)), "pitch")
    net.output(net.reduce("Max", y, [1], 0), "sure")


def quake_picks(net):
    """Three directions of the ground, standardized one by one: where each of two waves arrives."""
    x = each_standardized(net, net.input("ground", [BATCH, 3, 32], "signal"), 2)
    a = activation(net, conv(net, x, 3, 8, 7, rank=1, hint="e1"), "relu")
    b = activation(net, conv(net, a, 8, 12, 5, stride=2, rank=1, hint="e2"), net.pick("relu", "elu"))
    h, _ = recurrent(net, net.transpose(b, 2, 0, 1), "LSTM", 12, 6, "bidirectional", hint="rnn")
    h = layer_norm(net, net.transpose(h, 1, 0, 2), 12, hint="norm")
    with net.scope("up"):
        up = net.op("ConvTranspose", net.transpose(h, 0, 2, 1), net.trained((12, 8, 2), 12, 1.2), net.vector(8), kernel_shape=[2], strides=[2])
    y = conv(net, net.concat(up, a, axis=1), 16, 3, 5, rank=1, hint="out", gain=2.0)
    net.output(net.softmax(y, 3, 1), "phases")
