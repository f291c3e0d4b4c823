"""Second generation: tables, graphs, densities and series."""
import numpy as np

from arch_sequence import embed
from blocks import activation, attention, batch_norm, glu, layer_norm, linear, mlp
from net import BATCH, trained


def deep_cross(net):
    """Products of the input with itself, layer by layer, beside a deep part; bags of categories."""
    dense = net.input("dense", [BATCH, 5], "features")
    bags = [net.input(f"bag{i}", [BATCH, 4], "tokens", vocab=20) for i in range(2)]
    kind = net.pick("Mean", "Sum")
    x0 = net.concat(dense, *[net.reduce(kind, embed(net, b, 20, 6, f"table{i}")[0], [1], 0) for i, b in enumerate(bags)], axis=1)
    x = x0
    for i in range(net.pick(2, 3)):
        with net.scope(f"cross{i}"):
            x = net.add(net.mul(x0, linear(net, x, 17, 17, rank=2, gain=0.6)), x)
    deep = activation(net, batch_norm(net, linear(net, x0, 17, 20, rank=2, hint="deep1"), 20), net.pick("relu", "elu"))
    deep = activation(net, linear(net, deep, 20, 10, rank=2, hint="deep2"), "relu")
    net.output(net.op("Sigmoid", linear(net, net.concat(x, deep, axis=1), 27, 1, rank=2, hint="out", gain=0.7)), "probability")


def ft_transformer(net):
    """Each column becomes a token; gated layers."""
    n, dim = 6, net.pick(12, 16)
    x = net.unsqueeze(net.input("columns", [BATCH, n], "features"), 2)
    w, b = (net.weight((0.8 * net.rng.standard_normal((1, n, dim))).astype(np.float32), h) for h in ("weight", "bias"))
    t = net.add(net.mul(x, w), b)
    c = net.unsqueeze(embed(net, net.input("category", [BATCH], "tokens", vocab=12), 12, dim)[0], 1)
    t = net.concat(c, t, axis=1)
    for i in range(2):
        with net.scope(f"block{i}"):
            y = t if i == 0 else layer_norm(net, t, dim, 1e-5, "norm1")
            t = net.add(t, attention(net, y, n + 1, dim, 2))
            a, g = net.split(linear(net, layer_norm(net, t, dim, 1e-5, "norm2"), dim, 40, hint="up"), [20, 20], 2)
            t = net.add(t, linear(net, net.mul(a, net.op("Relu", g)), 20, dim, hint="down"))
    y = activation(net, layer_norm(net, net.op("Gather", t, net.const(0, np.int64), axis=1), dim, 1e-5), "relu")
    net.output(linear(net, y, dim, 3, rank=2, hint="head"), "prediction")


def tab_net(net):
    """Steps that choose columns by a sparse softmax: sorting, sums, a threshold."""
    n, dim = 8, 10
    x = batch_norm(net, net.input("columns", [BATCH, n], "features"), n)
    prior, total, a = None, None, linear(net, x, n, dim, rank=2, hint="start")
    ranks = net.const(np.arange(1.0, n + 1)[None])
    for i in range(2):
        with net.scope(f"step{i}"):
            logits = batch_norm(net, linear(net, a, dim, n, rank=2, hint="attention"), n)
            logits = net.mul(logits, prior) if prior else logits
            ordered, _ = net.topk(logits, n)
            sums = net.op("CumSum", ordered, net.const(1, np.int64))
            support = net.op("Greater", net.add(net.const(1.0), net.mul(ranks, ordered)), sums)
            k = net.reduce("Sum", net.op("Cast", support, to=1), [1])
            inside = net.reduce("Sum", net.op("Where", support, ordered, net.const(0.0)), [1])
            mask = net.op("Relu", net.op("Sub", logits, net.op("Div", net.op("Sub", inside, net.const(1.0)), k)))
            left = net.op("Sub", net.const(net.pick(1.3, 1.5)), mask)
            prior = net.mul(prior, left) if prior else left
            h = glu(net, linear(net, net.mul(mask, x), n, 2 * dim, rank=2, hint="glu1"), dim, 1)
            h2 = glu(net, linear(net, h, dim, 2 * dim, rank=2, hint="glu2"), dim, 1)
            a = net.mul(net.add(h, h2), net.const(np.sqrt(0.5)))
            d = activation(net, a, "relu")
            total = net.add(total, d) if total else d
    net.output(linear(net, total, dim, 4, rank=2, hint="out"), "logits")


def gated_graph(net):
    """Messages over an adjacency with a degree's root on both sides; a cell with a gate updates nodes."""
    n, dim = 8, 12
    x, a = net.input("nodes", [BATCH, n, 6], "features"), net.input("adjacency", [BATCH, n, n], "mask")
    a = net.add(a, net.const(np.eye(n)[None]))
    root = net.op("Div", net.const(1.0), net.op("Sqrt", net.reduce("Sum", a, [2])))
    a = net.mul(net.mul(root, a), net.transpose(root, 0, 2, 1))
    h = activation(net, linear(net, x, 6, dim, hint="embed"), "tanh")
    w = [net.weight(trained(net.rng, (2 * dim, dim), 2 * dim), g) for g in ("update", "reset", "new")]
    for i in range(2):
        with net.scope(f"step{i}"):
            m = net.op("MatMul", a, linear(net, h, dim, dim, hint="message"))
            both = net.concat(m, h, axis=2)
            z, r = net.op("Sigmoid", net.op("MatMul", both, w[0])), net.op("Sigmoid", net.op("MatMul", both, w[1]))
            new = net.op("Tanh", net.op("MatMul", net.concat(m, net.mul(r, h), axis=2), w[2]))
            h = net.add(net.mul(net.op("Sub", net.const(1.0), z), h), net.mul(z, new))
    gate = net.op("Sigmoid", linear(net, h, dim, dim, hint="gate"))
    pooled = net.reduce(net.pick("Sum", "Mean"), net.mul(gate, activation(net, linear(net, h, dim, dim, hint="value"), "tanh")), [1], 0)
    net.output(linear(net, pooled, dim, 3, rank=2, hint="out"), "energy")


def vae(net):
    """Noise is an input: mean and half the logarithm of the variance, then the way back."""
    x, eps = net.input("x", [BATCH, 16], "signal"), net.input("eps", [BATCH, 5], "features")
    act = net.pick("relu", "softplus", "elu")
    h = activation(net, linear(net, x, 16, 24, rank=2, hint="encoder"), act)
    mean, log_variance = linear(net, h, 24, 5, rank=2, hint="mean"), net.clip(linear(net, h, 24, 5, rank=2, hint="log_variance"), -6.0, 2.0)
    z = net.add(mean, net.mul(net.op("Exp", net.mul(log_variance, net.const(0.5))), eps))
    h = activation(net, linear(net, z, 5, 24, rank=2, hint="decoder"), act)
    net.output(linear(net, h, 24, 16, rank=2, hint="out"), "reconstruction")
    part = net.op("Sub", net.op("Sub", net.add(net.const(1.0), log_variance), net.mul(mean, mean)), net.op("Exp", log_variance))
    net.output(net.mul(net.reduce("Sum", part, [1]), net.const(-0.5)), "divergence")


def siren(net):
    """Sines all the way, with a frequency for the first layer and one for the others."""
    x, n = net.input("points", [BATCH, 12, 2], "points"), net.pick(16, 24)
    h = net.op("Sin", net.mul(linear(net, x, 2, n, hint="first"), net.const(net.pick(3.0, 5.0))))
    for i in range(2):
        h = net.op("Sin", net.mul(linear(net, h, n, n, hint=f"hidden{i}"), net.const(net.pick(1.5, 2.0))))
    net.output(linear(net, h, n, 3, hint="out"), "colour")


def interest(net):
    """A history is weighted by how it suits what is offered; padding is left out."""
    n, length = 8, net.pick(6, 8)
    rows = net.rng.standard_normal((40, n)).astype(np.float32)
    table = net.weight(rows, "items")
    history = net.op("Gather", table, net.input("history", [BATCH, length], "tokens", vocab=40), axis=0)
    offer = net.op("Gather", table, net.input("offer", [BATCH], "tokens", vocab=40), axis=0)
    mask = net.input("seen", [BATCH, length], "mask")
    o = net.add(net.mul(history, net.const(0.0)), net.unsqueeze(offer, 1))
    y = net.concat(o, history, net.op("Sub", o, history), net.mul(o, history), axis=2)
    y = activation(net, linear(net, y, 4 * n, 12, hint="att1"), net.pick("sigmoid", "prelu"), 1, 0) if net.pick(True, False) else \
        activation(net, linear(net, y, 4 * n, 12, hint="att1"), "relu")
    score = net.squeeze(linear(net, y, 12, 1, hint="att2", gain=2.0), 2)
    hidden = net.op("Where", net.op("Greater", mask, net.const(0.5)), score, net.const(-4294967.0))
    p = net.softmax(net.op("Div", hidden, net.const(np.sqrt(n))), 2)
    taste = net.squeeze(net.op("MatMul", net.unsqueeze(p, 1), history), 1)
    y = activation(net, linear(net, net.concat(taste, offer, axis=1), 2 * n, 12, rank=2, hint="fc1"), "relu")
    net.output(net.op("Sigmoid", linear(net, y, 12, 1, rank=2, hint="fc2")), "click")


def reversible_linear(net):
    """A series loses its mean and deviation, which the forecast gets back; trend and rest apart."""
    length, ahead = 12, net.pick(4, 6)
    x = net.input("past", [BATCH, 3, length], "signal")
    mean = net.reduce("Mean", x, [2])
    centred = net.op("Sub", x, mean)
    deviation = net.op("Sqrt", net.add(net.reduce("Mean", net.mul(centred, centred), [2]), net.const(net.pick(1e-5, 1e-3))))
    scale, shift = (net.weight(v.astype(np.float32), h) for v, h in ((1 + 0.2 * net.rng.standard_normal((3, 1)), "affine_weight"),
                                                                    (0.2 * net.rng.standard_normal((3, 1)), "affine_bias")))
    y = net.add(net.mul(net.op("Div", centred, deviation), scale), shift)
    trend = net.op("AveragePool", net.pad(y, [0, 0, 2, 0, 0, 2], "edge"), kernel_shape=[5], strides=[1])
    rest = net.op("Sub", y, trend)
    y = net.add(linear(net, trend, length, ahead, hint="trend"), linear(net, rest, length, ahead, hint="season"))
    y = net.op("Div", net.op("Sub", y, shift), scale)
    net.output(net.add(net.mul(y, deviation), mean), "future")


def char_cnn(net):
    """Letters by convolutions of several widths, the largest over time, then a highway."""
    x = net.transpose(embed(net, net.input("letters", [BATCH, 10], "tokens", vocab=30), 30, 8)[0], 0, 2, 1)
    parts = []
    for k in (1, 2, 3):
        w = net.trained((6, 8, k), 8 * k, 1.4, f"width{k}")
        y = net.op("Conv", x, w, net.vector(6), kernel_shape=[k])
        parts.append(net.reduce("Max", net.op(net.pick("Tanh", "Relu"), y), [2], 0))
    y = net.concat(*parts, axis=1)
    for i in range(2):
        with net.scope(f"highway{i}"):
            t = net.op("Sigmoid", linear(net, y, 18, 18, rank=2, hint="gate"))
            h = net.op("Relu", linear(net, y, 18, 18, rank=2, hint="transform"))
            y = net.add(net.mul(t, h), net.mul(net.op("Sub", net.const(1.0), t), y))
    net.output(linear(net, y, 18, 12, rank=2, hint="project"), "word")
