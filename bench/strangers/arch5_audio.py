"""Fifth generation: networks that hear and speak."""
import numpy as np

from arch3_audio import mel_bank, windowed_basis
from blocks import activation, layer_norm, linear, recurrent
from layers4 import block, feed_forward, learned
from layers5 import grouped_attention, modulated, snake, table_of, unit_length, waves
from net import BATCH
from vision import conv


def spectrum(net, wave, size, hop):
    """[B, 1, samples] to real and imaginary parts, [B, size / 2 + 1, frames] each."""
    bins = size // 2 + 1
    basis = net.weight(windowed_basis(bins, size, size).astype(np.float32)[:, None], "stft.basis")
    y = net.op("Conv", wave, basis, kernel_shape=[size], strides=[hop], pads=[size // 2] * 2)
    return net.split(y, [bins, bins], 1)


def powers(net, re, im):
    return net.add(net.mul(re, re), net.mul(im, im))


def floored_spectrum(net):
    """Bands in tens of decibels; nothing counts that is far below the loudest; layers over the frames."""
    bands, d = 10, 16
    wave = net.input("audio", [BATCH, 1, 96], "signal")
    mel = net.op("MatMul", net.weight(mel_bank(bands, 9, True, True), "mel_filters"), powers(net, *spectrum(net, wave, 16, 8)))
    x = net.mul(net.op("Log", net.clip(mel, 1e-10, None)), net.const(1 / np.log(10)))
    x = net.op("Max", x, net.op("Sub", net.reduce("Max", x, [1, 2]), net.const(net.pick(1.0, 1.5))))
    x = net.op("Div", net.add(x, net.const(4.0)), net.const(4.0))
    x = activation(net, conv(net, x, bands, d, 3, rank=1, hint="conv1"), "gelu")
    x = activation(net, conv(net, x, d, d, 3, stride=2, rank=1, hint="conv2"), "gelu")
    x = net.add(net.transpose(x, 0, 2, 1), learned(net, (1, 7, d), "positions"))
    x = block(net, x, 7, d, 2, "gelu", like=wave, hint="blocks/0")
    net.output(layer_norm(net, x, d, hint="ln_post"), "features")


def complex_mask(net):
    """A mask of two parts over a spectrum of two parts, multiplied as such numbers are."""
    wave = net.input("noisy", [BATCH, 1, 96], "signal")
    re, im = spectrum(net, wave, 16, 8)
    x = net.transpose(net.concat(re, im, axis=1), 2, 0, 1)
    both = net.pick(True, False)
    h, _ = recurrent(net, x, net.pick("GRU", "LSTM"), 18, 14, "bidirectional" if both else "forward", hint="rnn")
    m = net.op("Tanh", linear(net, net.transpose(h, 1, 0, 2), 28 if both else 14, 18, hint="mask"))
    mr, mi = net.split(net.transpose(m, 0, 2, 1), [9, 9], 1)
    net.output(net.op("Sub", net.mul(re, mr), net.mul(im, mi)), "real")
    net.output(net.add(net.mul(re, mi), net.mul(im, mr)), "imaginary")


def voice_print(net):
    """Bands without each speaker's own mean, layers along time, weights over the frames, a vector of length one."""
    bands, n = 8, 12
    wave = net.input("wave", [BATCH, 1, 96], "signal")
    mel = net.op("MatMul", net.weight(mel_bank(bands, 9, False, False), "fbank"), powers(net, *spectrum(net, wave, 16, 8)))
    x = net.op("Log", net.add(mel, net.const(1e-5)))
    x = net.op("Sub", x, net.reduce("Mean", x, [2]))
    for i in range(2):
        x = activation(net, conv(net, x, bands if i == 0 else n, n, 3, rank=1, dilation=i + 1, pads=[i + 1] * 2, hint=f"tdnn{i}"), "relu")
    share = net.softmax(conv(net, activation(net, conv(net, x, n, 8, 1, rank=1, hint="att1"), "tanh"), 8, n, 1, rank=1, hint="att2"), 3)
    mean = net.reduce("Sum", net.mul(x, share), [2], 0)
    square = net.reduce("Sum", net.mul(net.mul(x, x), share), [2], 0)
    deviation = net.op("Sqrt", net.clip(net.op("Sub", square, net.mul(mean, mean)), 1e-4, None))
    net.output(unit_length(net, linear(net, net.concat(mean, deviation, axis=1), 2 * n, 12, rank=2, hint="fc")), "embedding")


def speaker_of_text(net):
    """Letters to bands: how long each lasts, how high it is, and what it sounds like."""
    n, d = 7, 16
    ids = net.input("phonemes", [BATCH, n], "tokens", vocab=30)
    x = net.add(table_of(net, ids, 30, d), learned(net, (1, n, d), "position"))
    x = block(net, x, n, d, 2, "relu", hint="encoder/0", like=ids)
    t = net.transpose(x, 0, 2, 1)

    def predictor(hint):
        with net.scope(hint):
            y = activation(net, conv(net, t, d, 10, 3, rank=1, hint="conv"), "relu")
            return linear(net, layer_norm(net, net.transpose(y, 0, 2, 1), 10), 10, 1, hint="out", gain=0.8)
    duration = net.clip(net.op("Sub", net.op("Exp", predictor("duration")), net.const(1.0)), 0.0, None)
    pitch = predictor("pitch")
    x = net.add(x, linear(net, pitch, 1, d, hint="pitch_embed"))
    x = block(net, net.mul(x, net.add(net.mul(duration, net.const(0.1)), net.const(1.0))), n, d, 2, "relu", hint="decoder/0", like=ids)
    net.output(linear(net, x, d, 8, hint="mel"), "mel")
    net.output(net.squeeze(duration, 2), "duration")


def waving_vocoder(net):
    """Bands to samples, with periodic activations, upsampled twice; what three kernels say is averaged."""
    n = 8
    x = conv(net, net.input("mel", [BATCH, 6, 10], "signal"), 6, n, 5, rank=1, hint="pre")
    for i in range(2):
        with net.scope(f"ups.{i}"):
            w = net.trained((n, n, 4), n * 2, 1.2)
            x = net.op("ConvTranspose", snake(net, x, n, "act"), w, net.vector(n), kernel_shape=[4], strides=[2], pads=[1, 1])
            ys = []
            for j, k in enumerate((3, 5)):
                with net.scope(f"resblocks.{j}"):
                    y = conv(net, snake(net, x, n, "act1"), n, n, k, rank=1, dilation=1, hint="conv1", gain=1.0)
                    ys.append(net.add(x, y))
            x = net.op("Div", net.add(*ys), net.const(2.0))
    net.output(net.op("Tanh", conv(net, snake(net, x, n, "post"), n, 1, 7, rank=1, hint="post_conv")), "audio")


def voice_changer(net):
    """A mean and the logarithm of a variance, a given noise between, and couplings that are undone."""
    n, d, c = 8, 8, 4
    x, noise = net.input("spec", [BATCH, 6, n], "signal"), net.input("noise", [BATCH, d, n], "features")
    h = activation(net, conv(net, x, 6, 12, 3, rank=1, hint="enc"), "tanh")
    mean, logs = net.split(conv(net, h, 12, 2 * d, 1, rank=1, hint="proj"), [d, d], 1)
    z = net.add(mean, net.mul(net.op("Exp", net.mul(logs, net.const(0.5))), noise))
    for i in range(2):
        with net.scope(f"flow.{i}"):
            a, b = net.split(z, [c, c], 1)
            y = conv(net, activation(net, conv(net, a, c, 10, 3, rank=1, hint="pre"), "relu"), 10, 2 * c, 1, rank=1, hint="post", gain=0.6)
            shift, scale = net.split(y, [c, c], 1)
            b = net.mul(net.op("Sub", b, shift), net.op("Exp", net.op("Neg", net.op("Tanh", scale))))
            z = net.concat(b, a, axis=1)
    net.output(conv(net, z, d, 6, 3, rank=1, hint="dec"), "out")
    net.output(z, "z")


def letter_shares(net):
    """Frames to letters, as logarithms; a subsampling first, and a gate between layers."""
    bands, d, letters = 8, 16, 20
    x = net.input("fbank", [BATCH, 1, 16, bands], "image")
    x = activation(net, conv(net, x, 1, 6, 3, stride=2, hint="sub1"), "relu")
    x = net.reshape(net.transpose(x, 0, 2, 1, 3), [BATCH, 8, 24], like=x)
    x = net.mul(linear(net, x, 24, d, hint="embed"), net.const(np.sqrt(d)))
    for i in range(2):
        x = block(net, x, 8, d, 2, net.pick("swish", "relu"), hint=f"encoder/{i}", like=x)
    y = linear(net, layer_norm(net, x, d, hint="after"), d, letters, hint="ctc_lo", gain=2.0)
    net.output(net.op("LogSoftmax", y, axis=2), "log_probs")


def two_microphones(net):
    """How alike two channels are at each bin, as real and imaginary parts of one times the other turned back, and from where it comes."""
    pair = net.input("pair", [BATCH, 2, 80], "signal")
    first, second = net.split(pair, [1, 1], 1)
    (ar, ai), (br, bi) = spectrum(net, first, 16, 8), spectrum(net, second, 16, 8)
    re = net.add(net.mul(ar, br), net.mul(ai, bi))
    im = net.op("Sub", net.mul(ai, br), net.mul(ar, bi))
    size = net.op("Sqrt", net.add(powers(net, re, im), net.const(1e-6)))
    x = net.concat(net.op("Div", re, size), net.op("Div", im, size), axis=1)
    x = activation(net, conv(net, x, 18, 12, 3, rank=1, hint="c1"), "relu")
    y = linear(net, net.reduce("Mean", x, [2], 0), 12, 12, rank=2, hint="direction", gain=2.0)
    net.output(re, "phase")
    net.output(net.softmax(y, 2), "direction")


def tagged_music(net):
    """Bands in decibels below the loudest, layers with max pools, chances of many tags."""
    bands, n = 8, 10
    wave = net.input("music", [BATCH, 1, 128], "signal")
    mel = net.op("MatMul", net.weight(mel_bank(bands, 9, True, False), "mel"), powers(net, *spectrum(net, wave, 16, 8)))
    x = net.mul(net.op("Log", net.clip(mel, 1e-6, None)), net.const(10 / np.log(10)))
    x = net.op("Max", x, net.op("Sub", net.reduce("Max", x, [1, 2]), net.const(net.pick(20.0, 12.0))))
    x = net.mul(x, net.const(0.05))
    for i in range(2):
        x = activation(net, conv(net, x, bands if i == 0 else n, n, 3, rank=1, hint=f"c{i}"), net.pick("relu", "elu"))
        x = net.op("MaxPool", x, kernel_shape=[2], strides=[2])
    net.output(net.op("Sigmoid", linear(net, net.reduce("Max", x, [2], 0), n, 12, rank=2, hint="tags", gain=2.0)), "tags")


def sound_from_noise(net):
    """A denoiser of frames under a time and a text's vector."""
    n, d = 8, 12
    x, t, text = net.input("x", [BATCH, n, 6], "features"), net.input("t", [BATCH, 1], "fraction"), net.input("text", [BATCH, 6], "features")
    c = net.concat(waves(net, net.mul(t, net.const(1000.0)), 3, 10000.0, net.pick(True, False)), text, axis=1)
    c = linear(net, c, 12, d, rank=2, hint="cond")
    h = linear(net, x, 6, d, hint="in")
    for i in range(2):
        with net.scope(f"layers.{i}"):
            y, gate = modulated(net, h, d, c, d, gate=True)
            y = net.transpose(conv(net, net.transpose(y, 0, 2, 1), d, d, 3, rank=1, hint="conv"), 0, 2, 1)
            h = net.add(h, net.mul(feed_forward(net, y, d, 20, "mish"), gate))
    net.output(linear(net, h, d, 6, hint="out"), "noise")


def near_frames(net):
    """Frames look at each other with a bias for how far apart they are, in few buckets; each frame's vector at length one."""
    n, d, heads, buckets = 9, 16, 2, net.pick(6, 8)
    x = net.input("frames", [BATCH, n, 6], "signal")
    gap = np.arange(n)[None] - np.arange(n)[:, None]
    index = np.where(gap > 0, buckets // 2, 0) + np.minimum(np.abs(gap), buckets // 2 - 1)
    bias = net.op("Gather", learned(net, (buckets, heads), "rel_attn_embed.weight", 1.0), net.const(index, np.int64), axis=0)
    bias = net.unsqueeze(net.transpose(bias, 2, 0, 1), 0)
    h = linear(net, x, 6, d, hint="in")
    for i in range(2):
        with net.scope(f"layers.{i}"):
            h = net.add(h, grouped_attention(net, layer_norm(net, h, d, hint="ln1"), n, d, heads, bias, like=x, turned=False))
            h = net.add(h, feed_forward(net, layer_norm(net, h, d, hint="ln2"), d, 24, net.pick("gelu", "relu")))
    net.output(unit_length(net, linear(net, h, d, 12, hint="project")), "vectors")


def gated_dilations(net):
    """Samples through gates that see further and further, what each adds to the end, and the next sample's shares."""
    n = 8
    x = conv(net, net.input("samples", [BATCH, 1, 24], "signal"), 1, n, 3, rank=1, hint="causal")
    ends = None
    for i, step in enumerate((1, 2, 4)):
        with net.scope(f"layer{i}"):
            y = net.mul(net.op("Tanh", conv(net, x, n, n, 3, rank=1, dilation=step, hint="filter")),
                        net.op("Sigmoid", conv(net, x, n, n, 3, rank=1, dilation=step, hint="gate")))
            skip = conv(net, y, n, 12, 1, rank=1, hint="skip")
            ends = net.add(ends, skip) if ends else skip
            x = net.add(x, conv(net, y, n, n, 1, rank=1, hint="res"))
    y = conv(net, activation(net, ends, net.pick("relu", "mish")), 12, 16, 1, rank=1, hint="out", gain=2.0)
    net.output(net.softmax(net.transpose(y, 0, 2, 1), 3), "shares")


def two_way_letters(net):
    """Bands without each recording's mean, layers in both directions that are added, and the logarithm of each letter's share."""
    bands, h, kind = 6, 10, net.pick("GRU", "LSTM", "RNN")
    x = net.input("bands", [BATCH, bands, 20], "signal")
    x = net.op("Sub", x, net.reduce("Mean", x, [2]))
    x = activation(net, conv(net, x, bands, 8, 3, stride=2, rank=1, hint="conv"), "relu")
    x = net.transpose(x, 2, 0, 1)
    for i in range(2):
        y, _ = recurrent(net, x, kind, 8 if i == 0 else h, h, "bidirectional", hint=f"rnn{i}")
        a, b = net.split(y, [h, h], 2)
        x = net.add(a, b)
    y = linear(net, net.transpose(x, 1, 0, 2), h, 15, hint="letters", gain=2.0)
    net.output(net.op("LogSoftmax", y, axis=2), "log_probs")
