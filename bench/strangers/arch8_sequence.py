"""Eighth generation: attention and sequences at their edges: masks of infinities, nothing that came before, sinks, steep shares."""
import numpy as np

from blocks import activation, layer_norm, linear, mlp, recurrent
from layers4 import attend, from_heads, to_heads
from layers8 import f32, table, two
from net import BATCH


def turned(net, x, n, dim, heads, mask=None, change=None, hint="attn"):
    """Attention whose shares a function may change."""
    size = dim // heads
    with net.scope(hint):
        q, k, v = (to_heads(net, linear(net, x, dim, dim, hint=h), n, heads, size) for h in ("q", "k", "v"))
        if change is None:
            return linear(net, from_heads(net, attend(net, q, k, v, size, mask), n, dim), dim, dim, hint="o")
        scores = net.mul(net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const(size ** -0.5))
        y = net.op("MatMul", change(net.add(scores, mask) if mask else scores), v)
        return linear(net, from_heads(net, y, n, dim), dim, dim, hint="o")


def infinite_future(net):
    """A reader to whom what comes later is minus infinity."""
    n = 6
    x = net.op("Gather", table(net, 20, 12), net.input("ids", [BATCH, n], "tokens", vocab=20), axis=0)
    mask = net.const(np.where(np.tril(np.ones((1, 1, n, n), bool)), 0, -np.inf))
    for i in range(2):
        with net.scope(f"layer{i}"):
            x = net.add(x, turned(net, layer_norm(net, x, 12), n, 12, 2, mask))
            x = net.add(x, mlp(net, x, 12, 20, "gelu_tanh"))
    net.output(linear(net, x, 12, 20, hint="head", gain=2.0), "logits")


def infinite_padding(net):
    """A reader of texts of many lengths: what fills them up is minus infinity, by a choice at run."""
    n = 7
    x = linear(net, net.input("pieces", [BATCH, n, 6], "features"), 6, 8, hint="in")
    keep = net.input("keep", [BATCH, n], "mask")
    mask = net.op("Where", net.op("Greater", net.unsqueeze(keep, 1, 2), net.const(0.5)), net.const(0.0), net.const(-np.inf))
    x = net.add(x, turned(net, x, n, 8, 2, mask))
    x = net.op("Where", net.op("Greater", net.unsqueeze(keep, 2), net.const(0.5)), x, net.const(-np.inf))
    net.output(two(net, net.reduce("Max", x, [1], 0), 8, 12, 4), "kind")


def steady_sink(net):
    """Shares of which some go to nobody, by a number for each head."""
    n = 5
    x = linear(net, net.input("signals", [BATCH, n, 6], "signal"), 6, 8, hint="in")
    sink = net.weight(f32(net.rng.standard_normal((1, 2, 1, 1)) + 1), "sinks")

    def change(scores):
        top = net.op("Max", net.reduce("Max", scores, [3]), sink)
        e = net.op("Exp", net.op("Sub", scores, top))
        return net.op("Div", e, net.add(net.reduce("Sum", e, [3]), net.op("Exp", net.op("Sub", sink, top))))
    x = net.add(x, turned(net, x, n, 8, 2, change=change))
    net.output(linear(net, x, 8, 3, hint="out"), "forces")


def thresholded_shares(net):
    """Shares that are exactly nothing below a threshold (sparsemax), by sorting and running sums."""
    n = 6
    x = linear(net, net.input("events", [BATCH, n, 5], "features"), 5, 8, hint="in")

    def change(z):
        top, _ = net.topk(z, n, axis=3)
        run = net.op("CumSum", top, net.const(3, np.int64))
        k = net.const(np.arange(1.0, n + 1))
        inside = net.op("Cast", net.op("Greater", net.add(net.mul(top, k), net.const(1.0)), run), to=1)
        many = net.reduce("Sum", inside, [3])
        tau = net.op("Div", net.op("Sub", net.reduce("Sum", net.mul(top, inside), [3]), net.const(1.0)), many)
        return net.op("Relu", net.op("Sub", z, tau))
    y = turned(net, net.mul(x, net.const(2.0)), n, 8, 2, change=change)
    net.output(linear(net, net.add(x, y), 8, 3, hint="out"), "causes")


def first_token(net):
    """The first step of a reader with a memory: nothing came before."""
    heads, size, dim = 2, 4, 8
    x = net.unsqueeze(net.op("Gather", table(net, 16, dim), net.input("id", [BATCH], "tokens", vocab=16), axis=0), 1)
    past = [net.input(h, [BATCH, heads, 0, size], "features") for h in ("past_key", "past_value")]
    q, k, v = (net.transpose(net.reshape(linear(net, x, dim, dim, hint=h), [BATCH, 1, heads, size], like=x), 0, 2, 1, 3) for h in "qkv")
    k, v = net.concat(past[0], k, axis=2), net.concat(past[1], v, axis=2)
    score = net.mul(net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const(size ** -0.5))
    y = net.transpose(net.op("MatMul", net.softmax(score, 4), v), 0, 2, 1, 3)
    y = net.add(x, linear(net, net.reshape(y, [BATCH, 1, dim], like=x), dim, dim, hint="o"))
    net.output(linear(net, y, dim, 16, hint="head", gain=2.0), "logits")
    net.output(k, "key")
    net.output(v, "value")


def divided_memory(net):
    """Linear attention over what came, by running sums that are divided by another."""
    n = 8
    x = linear(net, net.input("trades", [BATCH, n, 5], "signal"), 5, 6, hint="in")
    q, k = (net.add(activation(net, linear(net, x, 6, 6, hint=h), "elu"), net.const(1.01)) for h in "qk")
    v = linear(net, x, 6, 4, hint="v")
    kv = net.op("CumSum", net.mul(net.unsqueeze(k, 3), net.unsqueeze(v, 2)), net.const(1, np.int64))
    above = net.reduce("Sum", net.mul(net.unsqueeze(q, 3), kv), [2], 0)
    below = net.reduce("Sum", net.mul(q, net.op("CumSum", k, net.const(1, np.int64))), [2])
    net.output(net.op("Div", above, below), "prices")


def mended_memory(net):
    """A memory that is corrected by what it got wrong (delta rule), step by step."""
    n = 6
    x = linear(net, net.input("lessons", [BATCH, n, 6], "features"), 6, 10, hint="in")
    k, v, b = net.split(x, [4, 5, 1], 2)
    k = net.op("Div", k, net.add(net.reduce("L2", k, [2]), net.const(1e-6)))
    b, s, read = net.op("Sigmoid", b), None, []
    at = lambda t, i: net.slice(t, 1, i, i + 1)  # noqa: E731: [B, 1, n]
    for i in range(n):
        with net.scope(f"t{i}"):
            ki, vi = at(k, i), at(v, i)
            wrong = vi if s is None else net.op("Sub", vi, net.op("MatMul", ki, s))
            new = net.op("MatMul", net.transpose(ki, 0, 2, 1), net.mul(wrong, at(b, i)))
            s = new if s is None else net.add(s, new)
            read.append(net.op("MatMul", ki, s))
    net.output(net.concat(*read, axis=1), "recalled")


def long_gate(net):
    """A recurrent layer over forty steps that forgets little."""
    n = 40
    x = net.input("ticks", [BATCH, n, 2], "signal")
    h, _ = recurrent(net, net.transpose(x, 1, 0, 2), net.pick("GRU", "LSTM", "RNN"), 2, 8)
    net.output(linear(net, net.squeeze(net.slice(h, 0, n - 1, n), 0), 8, 3, rank=2, hint="now"), "now")


def multiplied_fades(net):
    """A state that fades by products of many shares, in logarithms and by running sums."""
    n = 12
    x = linear(net, net.input("heat_in", [BATCH, n, 4], "signal"), 4, 6, hint="in")
    log = net.op("Neg", net.op("Softplus", linear(net, x, 6, 6, hint="fade", gain=2.0)))
    run = net.op("CumSum", log, net.const(1, np.int64))
    gone = net.op("Exp", net.op("Sub", net.unsqueeze(run, 2), net.unsqueeze(run, 1)))
    gone = net.op("Where", net.const(np.tril(np.ones((1, n, n, 1), bool)), bool), gone, net.const(0.0))
    y = net.reduce("Sum", net.mul(gone, net.unsqueeze(x, 1)), [2], 0)
    net.output(linear(net, y, 6, 2, hint="out"), "heat_out")


def quiet_bands(net):
    """Powers of bands in decibels down to a floor below the loudest: silence is at the floor."""
    n = 16
    t = np.arange(n)
    basis = [np.cos(2 * np.pi * np.outer(t, np.arange(8)) / n), np.sin(2 * np.pi * np.outer(t, np.arange(8)) / n)]
    x = net.input("sound_in", [BATCH, 5, n], "signal")
    re, im = (net.op("MatMul", x, net.const(b)) for b in basis)
    p = net.add(net.mul(re, re), net.mul(im, im))
    log = net.mul(net.op("Log", net.op("Max", p, net.const(1e-4))), net.const(1 / np.log(10)))
    log = net.op("Max", log, net.op("Sub", net.reduce("Max", log, [1, 2]), net.const(3.0)))
    net.output(net.mul(net.add(log, net.const(3.0)), net.const(0.25)), "bands")
    net.output(two(net, net.reduce("Mean", log, [1], 0), 8, 12, 3), "sounds")
