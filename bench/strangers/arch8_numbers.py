"""Eighth generation: numbers that are hard to compute: differences of near ones, very small and very large ones, steps towards a solution."""
import numpy as np

from blocks import activation, layer_norm, linear, recurrent
from layers8 import f32, two
from net import BATCH
from vision import conv, images


def near_pairs(net):
    """How far each is from each, by squares and one product; nearly nothing from itself."""
    x = net.input("atoms", [BATCH, 6, 4], "features")
    square = net.reduce("Sum", net.mul(x, x), [2])
    cross = net.op("MatMul", x, net.transpose(x, 0, 2, 1))
    far = net.op("Sub", net.add(square, net.transpose(square, 0, 2, 1)), net.mul(cross, net.const(2.0)))
    far = net.clip(far, 0.0, None)
    net.output(net.op("Sqrt", net.add(far, net.const(1e-4))), "far")
    net.output(two(net, net.op("Exp", net.op("Neg", far)), 6, 10, 3, rank=3), "kinds")


def thousand_steps(net):
    """A share of a thousand steps of noise, as sines of angles up to a thousand."""
    t = net.mul(net.input("t", [BATCH], "fraction"), net.const(1000.0))
    angle = net.mul(net.unsqueeze(t, 1), net.const(10000.0 ** (-np.arange(6) / 6)))
    net.output(two(net, net.concat(net.op("Cos", angle), net.op("Sin", angle), axis=1), 12, 20, 8, "swish", hint="time"), "embedding")


def weighed_scales(net):
    """Scales with a large weight already on them: what is little is what counts."""
    x = net.add(net.mul(net.input("scales", [BATCH, 12], "features"), net.const(0.05)), net.const(net.pick(30.0, 100.0)))
    x = net.op("Sub", x, net.reduce("Mean", x, [1]))
    x = net.op("Div", x, net.add(net.op("Sqrt", net.reduce("Mean", net.mul(x, x), [1])), net.const(1e-6)))
    net.output(two(net, x, 12, 16, 3), "loads")


def joint_chances(net):
    """That all of twelve things happen: tiny numbers, and their logarithms."""
    p = net.op("Sigmoid", net.op("Sub", linear(net, net.input("case", [BATCH, 5, 6], "features"), 6, 12, gain=1.5), net.const(4.0)))
    net.output(net.reduce("Prod", p, [2], 0), "joint")
    net.output(net.reduce("Sum", net.op("Log", p), [2], 0), "logarithm")


def light_in_joules(net):
    """How much light falls on each place, in joules: nothing is as small."""
    h = activation(net, conv(net, images(net, "frame", 3, 8), 3, 8, 3), "relu")
    net.output(net.mul(net.op("Softplus", conv(net, h, 8, 2, 3, hint="photons")), net.const(3.97e-19)), "joules")


def waves_in_hertz(net):
    """Frequencies as they are, next to how strong they are: one output is a million million times the other."""
    h = activation(net, linear(net, net.input("antenna", [BATCH, 10], "features"), 10, 16, rank=2), "tanh")
    net.output(net.mul(net.op("Softplus", linear(net, h, 16, 4, rank=2, hint="where")), net.const(2.4e12)), "hertz")
    net.output(net.mul(net.op("Sigmoid", linear(net, h, 16, 4, rank=2, hint="strong")), net.const(1e-3)), "strong")


def far_bells(net):
    """Bells about centres, narrow ones: most are far too small for single precision's usual numbers."""
    x = net.unsqueeze(net.input("places", [BATCH, 2], "points"), 1)
    d = net.op("Sub", x, net.weight(f32(net.rng.uniform(-1, 1, (1, 14, 2))), "centres"))
    bells = net.op("Exp", net.mul(net.reduce("Sum", net.mul(d, d), [2], 0), net.const(-net.pick(30.0, 60.0))))
    net.output(linear(net, bells, 14, 3, rank=2, hint="heights"), "heights")
    net.output(bells, "bells")


def sharp_look_up(net):
    """A memory that is read at one place: shares that are one or nothing."""
    q = linear(net, net.input("queries", [BATCH, 4, 6], "features"), 6, 8, hint="query")
    keys, values = (net.weight(f32(net.rng.standard_normal((1, 10, 8))), h) for h in ("keys", "values"))
    score = net.mul(net.op("MatMul", q, net.transpose(keys, 0, 2, 1)), net.const(net.pick(12.0, 25.0)))
    share = net.softmax(score, 3)
    net.output(net.op("MatMul", share, values), "read")
    net.output(share, "shares")


def closed_gates(net):
    """A recurrent layer on numbers that shut its gates."""
    x = net.mul(net.input("pulses", [BATCH, 9, 5], "signal"), net.const(net.pick(8.0, 20.0)))
    h, _ = recurrent(net, net.transpose(x, 1, 0, 2), net.pick("LSTM", "GRU"), 5, 8)
    net.output(net.op("Tanh", linear(net, net.transpose(h, 1, 0, 2), 8, 3, hint="head", gain=6.0)), "switches")


def almost_alike(net):
    """Rows whose numbers are almost alike, made unlike by a norm: its epsilon counts."""
    x = net.input("faces", [BATCH, 5, 12], "features")
    x = net.add(net.mul(x, net.const(net.pick(1e-3, 4e-3))), net.const(0.5))
    net.output(two(net, layer_norm(net, x, 12, 1e-5), 12, 16, 4, "gelu", rank=3), "faces_apart")


def thin_volumes(net):
    """Volumes of flat bodies, by determinants, and their logarithms."""
    x = net.input("edges_of", [BATCH, 4, 3, 3], "features")
    flat = net.mul(x, net.const(np.array([1.0, 1.0, 0.02])))
    volume = net.op("Det", flat)
    net.output(net.op("Log", net.add(net.op("Abs", volume), net.const(1e-2))), "sizes")
    net.output(volume, "volumes")


def alternating_powers(net):
    """A polynomial whose terms are large and cancel, by Horner's rule; a calibration curve."""
    x = net.op("Tanh", net.input("volts", [BATCH, 6], "features"))
    degree = 7
    roots = net.rng.uniform(-1.1, 1.1, degree)
    c = 64.0 * np.poly(roots)
    y = net.add(net.mul(x, net.const(c[0])), net.const(c[1]))
    for k in range(2, degree + 1):
        y = net.add(net.mul(y, x), net.const(c[k]))
    net.output(y, "degrees")


def main_direction(net):
    """The direction in which points lie, by eight powers of their products."""
    x = net.input("cloud", [BATCH, 10, 4], "features")
    x = net.mul(net.op("Sub", x, net.reduce("Mean", x, [1])), net.const(np.array([2.5, 1.0, 0.7, 0.4])))
    m, v = net.op("MatMul", net.transpose(x, 0, 2, 1), x), None
    for k in range(8):
        with net.scope(f"power{k}"):
            v = net.reduce("Sum", m, [2]) if v is None else net.op("MatMul", m, v)
            v = net.op("Div", v, net.op("Sqrt", net.add(net.reduce("Sum", net.mul(v, v), [1]), net.const(1e-8))))
    net.output(net.reduce("Sum", net.mul(v, net.op("MatMul", m, v)), [1, 2], 0), "much")
    net.output(v, "direction")


def even_transport(net):
    """Who goes with whom, so that all have one: shares of rows and columns in turn, in logarithms."""
    a, b = (linear(net, net.input(h, [BATCH, 5, 6], "features"), 6, 6, hint=h) for h in ("left", "right"))
    s = net.mul(net.op("MatMul", a, net.transpose(b, 0, 2, 1)), net.const(net.pick(1.0, 3.0)))
    for k in range(6):
        with net.scope(f"turn{k}"):
            for axis in (2, 1):
                s = net.op("Sub", s, net.reduce("LogSumExp", s, [axis]))
    net.output(net.op("Exp", s), "goes_with")


def inverse_by_steps(net):
    """A matrix turned around by products alone (Newton and Schulz), and what it does to some numbers."""
    x = net.input("channels", [BATCH, 4, 8], "features")
    eye = net.const(np.eye(4)[None])
    m = net.add(net.mul(net.op("MatMul", x, net.transpose(x, 0, 2, 1)), net.const(1 / 8)), net.mul(eye, net.const(net.pick(0.1, 0.3))))
    y = net.op("Div", eye, net.reduce("Sum", net.mul(m, eye), [1, 2]))
    for k in range(9):
        with net.scope(f"step{k}"):
            y = net.op("MatMul", y, net.op("Sub", net.mul(eye, net.const(2.0)), net.op("MatMul", m, y)))
    net.output(net.op("MatMul", y, x), "equalized")


def evidence_of_bells(net):
    """How likely a mixture of bells makes each row: sums of numbers far below the smallest, in logarithms."""
    x = net.unsqueeze(net.input("rows", [BATCH, 8], "features"), 1)
    mean, scale = net.weight(f32(2.0 * net.rng.standard_normal((1, 6, 8))), "means"), net.const(net.pick(0.1, 0.2))
    d = net.op("Div", net.op("Sub", x, mean), scale)
    e = net.add(net.mul(net.reduce("Sum", net.mul(d, d), [2], 0), net.const(-0.5)), net.vector(6, -1.0, 0.3, "priors"))
    net.output(net.reduce("LogSumExp", e, [1], 0), "evidence")
    net.output(net.softmax(e, 2), "whose")


def lifted_logits(net):
    """Logits with a large number on all of them, as a reader's bias has grown; shares do not mind, in truth."""
    y = linear(net, net.input("words_in", [BATCH, 4, 8], "features"), 8, 10, hint="head", gain=2.0)
    y = net.add(y, net.const(net.pick(64.0, 300.0)))
    net.output(net.op("LogSoftmax", y, axis=-1) if net.opset >= 13 else net.op("LogSoftmax", y, axis=2), "logarithms")


def narrow_way(net):
    """An autoencoder whose middle is a thousandth of its ends."""
    x = net.input("spectrum_in", [BATCH, 12], "features")
    h = net.mul(linear(net, x, 12, 3, rank=2, hint="down"), net.const(1e-3))
    h = activation(net, h, net.pick("tanh", "elu"))
    net.output(linear(net, net.mul(h, net.const(1e3)), 3, 12, rank=2, hint="up"), "spectrum_out")
    net.output(h, "code")
