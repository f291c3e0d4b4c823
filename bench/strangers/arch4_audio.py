"""Fourth generation: networks that hear, and networks of signals."""
import numpy as np

from arch3_audio import mel_bank, windowed_basis
from blocks import activation, layer_norm, linear, recurrent
from layers4 import block, conv_act_norm, gated, learned, log1p
from net import BATCH
from vision import conv, conv_bn


def spectrum(net, wave, size, hop, root):
    """[B, 1, samples] to [B, size / 2 + 1, frames]: magnitudes (root) or powers."""
    bins = size // 2 + 1
    basis = net.weight(windowed_basis(bins, size, size).astype(np.float32)[:, None], "stft.basis")
    y = net.op("Conv", wave, basis, kernel_shape=[size], strides=[hop], pads=[size // 2] * 2)
    re, im = net.split(y, [bins, bins], 1)
    power = net.add(net.mul(re, re), net.mul(im, im))
    return net.op("Sqrt", net.add(power, net.const(1e-7))) if root else power


def decibels(net, x, root):
    """Of magnitudes or powers, with a floor."""
    log = net.op("Log", net.clip(x, 1e-5, None))
    return net.mul(net.mul(log, net.const(1 / np.log(10))), net.const(20.0 if root else 10.0))


def mfcc_net(net):
    """Sixteen bits, a spectrum, bands, decibels, a cosine transform, and a small network."""
    bands, keep, root = 8, net.pick(6, 8), net.pick(True, False)
    wave = net.op("Div", net.input("pcm", [BATCH, 1, 96], "wave"), net.const(32768.0))
    mel = net.op("MatMul", net.weight(mel_bank(bands, 9, net.pick(True, False), True), "mel"), spectrum(net, wave, 16, 8, root))
    x = net.mul(decibels(net, mel, root), net.const(0.05))
    k, m = np.arange(keep)[:, None], np.arange(bands)[None]
    cosine = np.sqrt(2 / bands) * np.cos(np.pi * k * (2 * m + 1) / (2 * bands))
    cosine[0] *= np.sqrt(0.5)
    x = net.op("MatMul", net.weight(cosine.astype(np.float32), "dct"), x)
    x = conv_act_norm(net, x, keep, 10, 3, "relu", hint="c1", rank=1)
    net.output(linear(net, net.reduce("Mean", x, [2], 0), 10, 12, rank=2, hint="word", gain=2.0), "word")


def vad(net):
    """Whether somebody speaks: a spectrum's logarithm, a recurrent layer, a chance."""
    wave = net.mul(net.input("samples", [BATCH, 1, 80], "wave"), net.const(1 / 32768))
    x = log1p(net, net.mul(spectrum(net, wave, 16, 8, True), net.const(net.pick(20.0, 100.0))))
    x = activation(net, conv(net, x, 9, 12, 3, rank=1, hint="conv"), "relu")
    y, _ = recurrent(net, net.transpose(x, 2, 0, 1), net.pick("GRU", "LSTM"), 12, 10, hint="rnn")
    net.output(net.op("Sigmoid", net.squeeze(linear(net, net.transpose(y, 1, 0, 2), 10, 1, hint="out", gain=2.0), 2)), "speech")


def denoiser(net):
    """A mask over a spectrum, in decibels of what comes in, and the spectrum under it."""
    wave = net.op("Div", net.input("noisy", [BATCH, 1, 96], "wave"), net.const(32768.0))
    s = spectrum(net, wave, 16, 8, True)
    x = net.op("Div", net.add(decibels(net, s, True), net.const(40.0)), net.const(30.0))
    x = net.transpose(x, 2, 0, 1)
    h, _ = recurrent(net, x, "GRU", 9, 12, reset_after=1, hint="gru")
    gain = net.op("Sigmoid", linear(net, net.transpose(h, 1, 0, 2), 12, 9, hint="gain", gain=2.0))
    net.output(net.mul(net.transpose(gain, 0, 2, 1), s), "clean")


def speaker(net):
    """A voice by layers along time, mean and deviation, and how like known ones it is."""
    wave = net.op("Div", net.input("voice", [BATCH, 1, 96], "wave"), net.const(32768.0))
    x = net.mul(decibels(net, spectrum(net, wave, 16, 8, False), False), net.const(0.1))
    x = net.op("Sub", x, net.reduce("Mean", x, [2]))
    for i, d in enumerate((1, 2)):
        x = conv_act_norm(net, x, 12 if i else 9, 12, 3, "relu", hint=f"tdnn{i}", rank=1, dilation=d, pads=[d, d])
    mean = net.reduce("Mean", x, [2])
    deviation = net.op("Sqrt", net.add(net.reduce("Mean", net.op("Pow", net.op("Sub", x, mean), net.const(2.0)), [2]), net.const(1e-5)))
    e = linear(net, net.squeeze(net.concat(mean, deviation, axis=1), 2), 24, 12, rank=2, hint="embedding")
    e = net.op("Div", e, net.op("Sqrt", net.add(net.reduce("Sum", net.mul(e, e), [1]), net.const(1e-9))))
    known = net.rng.standard_normal((12, 11))
    net.output(net.op("MatMul", e, net.weight((known / np.linalg.norm(known, axis=0)).astype(np.float32), "voices")), "cosine")


def patch_audio(net):
    """A spectrum cut into patches, tokens, and a class token that is left out of the mean."""
    d = 16
    x = net.input("fbank", [BATCH, 1, 8, 16], "image")
    x = net.op("Div", net.op("Sub", x, net.const(0.4)), net.const(1.8))
    x = net.transpose(net.reshape(conv(net, x, 1, d, 4, stride=4, pads=[0] * 4, hint="patch"), [BATCH, d, 8], like=x), 0, 2, 1)
    start = net.add(net.mul(net.reduce("Max", x, [1]), net.const(0.0)), learned(net, (1, 1, d), "cls", 1.0))
    x = net.add(net.concat(start, x, axis=1), learned(net, (1, 9, d), "pos"))
    for i in range(2):
        x = block(net, x, 9, d, 2, net.pick("gelu", "relu"), hint=f"blocks/{i}", like=x)
    x = net.reduce("Mean", net.slice(layer_norm(net, x, d, hint="norm"), 1, 1, 9), [1], 0)
    net.output(net.op("Sigmoid", linear(net, x, d, 14, rank=2, hint="tags", gain=2.0)), "tags")


def heart(net):
    """Leads of an electrocardiogram: strided residual layers, three summaries side by side."""
    n, act = 8, net.pick("relu", "elu")
    x = conv_bn(net, net.input("leads", [BATCH, 4, 64], "signal"), 4, n, 7, act, stride=2, rank=1, hint="stem")
    for i in range(2):
        with net.scope(f"block{i}"):
            y = conv_bn(net, x, n, n, 5, act, rank=1, hint="a")
            x = net.add(x, conv_bn(net, y, n, n, 5, None, rank=1, hint="b"))
    ends = [net.unsqueeze(net.reduce(k, x, [2], 0), 2) for k in ("Mean", "Max", "Min")]
    x = net.reshape(net.concat(*ends, axis=2), [BATCH, 3 * n], like=x)
    net.output(net.op("Sigmoid", linear(net, x, 3 * n, 5, rank=2, hint="labels", gain=2.0)), "labels")


def sparse_code(net):
    """Codes that vanish below a threshold, three steps, and the signal from them."""
    n, d, theta = 16, 24, net.pick(0.3, 0.5, 1.6)
    x = net.input("signal", [BATCH, n], "features")
    b = linear(net, x, n, d, rank=2, hint="We")
    z = net.op("ThresholdedRelu", b, alpha=theta)
    for i in range(2):
        z = net.op("ThresholdedRelu", net.add(b, linear(net, z, d, d, rank=2, bias=False, hint=f"S{i}", gain=0.6)), alpha=theta)
    net.output(linear(net, z, d, n, rank=2, bias=False, hint="decode"), "signal_again")
    net.output(z, "code")


def machine_wear(net):
    """Sensors along time by gated convolutions; how many hours are left, in the scale of hours."""
    n, c = 16, 6
    x = net.op("Div", net.op("Sub", net.input("sensors", [BATCH, c, n], "signal"), net.const(0.3 * np.arange(c).reshape(c, 1) / c)),
               net.const((0.6 + 0.2 * np.arange(c)).reshape(c, 1)))
    for i in range(2):
        a, b = net.split(conv(net, x, c if i == 0 else 8, 16, 3, rank=1, hint=f"conv{i}"), [8, 8], 1)
        x = net.mul(net.op("Tanh", a), net.op("Sigmoid", b))
    y = gated(net, net.reduce("Mean", x, [2], 0), 8, 12)
    y = linear(net, y, 12, 2, rank=2, hint="out")
    net.output(net.add(net.mul(y, net.const([3.5, 0.4])), net.const([12.0, 1.0])), "hours")


def cepstral(net):
    """Cepstra and how they change, rows of a filter, and which language it is."""
    bands, keep = 8, 6
    wave = net.mul(net.input("pcm16", [BATCH, 1, 96], "wave"), net.const(1 / 32768))
    mel = net.op("MatMul", net.weight(mel_bank(bands, 9, False, net.pick(True, False)), "mel"), spectrum(net, wave, 16, 8, False))
    x = net.op("Log", net.add(mel, net.const(1e-4)))
    k, m = np.arange(keep)[:, None], np.arange(bands)[None]
    cosine = np.sqrt(2 / bands) * np.cos(np.pi * k * (2 * m + 1) / (2 * bands))
    cosine[0] *= np.sqrt(0.5)
    x = net.op("MatMul", net.weight(cosine.astype(np.float32), "dct"), x)
    change = net.op("Sub", net.slice(x, 2, 1, 13), net.slice(x, 2, 0, 12))
    x = net.concat(net.slice(x, 2, 1, 13), change, axis=1)
    x = activation(net, conv(net, net.mul(x, net.const(0.2)), 12, 10, 3, rank=1, hint="conv"), "relu")
    mean, most = net.reduce("Mean", x, [2]), net.reduce("Max", x, [2])
    y = net.reshape(net.concat(mean, most, axis=2), [BATCH, 20], like=x)
    net.output(net.softmax(linear(net, y, 20, 11, rank=2, hint="language", gain=1.5), 2), "language")
