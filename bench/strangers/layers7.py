"""Layers of the seventh generation's networks."""
import numpy as np

from blocks import activation, linear
from layers4 import attend, from_heads, learned, to_heads
from net import BATCH, trained
from vision import conv


# ---- norms and gates ----

def response_norm(net, x, n, hint="grn"):
    """Each channel by its length over the picture, against the mean of all channels' lengths."""
    with net.scope(hint):
        length = net.reduce("L2", x, [2, 3])
        share = net.op("Div", length, net.add(net.reduce("Mean", length, [1]), net.const(1e-6)))
        gamma, beta = (net.weight((m + 0.4 * net.rng.standard_normal((1, n, 1, 1))).astype(np.float32), h) for m, h in ((0.8, "gamma"), (0.0, "beta")))
        return net.add(net.add(net.mul(net.mul(x, share), gamma), beta), x)


def bent_norm(net, x, n, hint="dyt"):
    """In place of a norm: a tanh whose steepness is one number."""
    with net.scope(hint):
        steep = net.weight(np.array([net.pick(0.5, 0.7, 1.6)], np.float32), "alpha")
        return net.add(net.mul(net.op("Tanh", net.mul(x, steep)), net.vector(n, 1.0, 0.3, "weight")), net.vector(n, 0.0, 0.1, "bias"))


def limited_gates(net, x, dim, inner, hint="mlp"):
    """Both halves within limits, a steeper sigmoid for one, and one more than the other."""
    with net.scope(hint):
        limit = net.pick(2.0, 3.0)
        gate = net.clip(linear(net, x, dim, inner, hint="gate_proj", gain=1.5), None, limit)
        up = net.clip(linear(net, x, dim, inner, hint="up_proj", gain=1.5), -limit, limit)
        gate = net.mul(gate, net.op("Sigmoid", net.mul(gate, net.const(1.702))))
        return linear(net, net.mul(net.add(up, net.const(1.0)), gate), inner, dim, hint="down_proj")


def snake_of_two(net, x, n, hint="snake"):
    """How fast the sine is, and how large: numbers of their own for each channel."""
    with net.scope(hint):
        fast, large = (net.weight(np.exp(m + 0.5 * net.rng.standard_normal((1, n, 1))).astype(np.float32), h) for m, h in ((0.3, "alpha"), (0.1, "beta")))
        sine = net.op("Sin", net.mul(x, fast))
        return net.add(x, net.op("Div", net.mul(sine, sine), large))


def root_mean_norm(net, x, n, hint="norm"):
    with net.scope(hint):
        square = net.mul(x, x) if net.pick(True, False) else net.op("Pow", x, net.const(2.0))
        root = net.op("Sqrt", net.add(net.reduce("Mean", square, [-1]), net.const(1e-6)))
        return net.mul(net.op("Div", x, root), net.vector(n, 1.0, 0.25, "weight"))


# ---- attention ----

def attention(net, x, length, dim, heads, mask=None, turn=None, head_norm=False, like=None, hint="self_attn"):
    size = dim // heads
    with net.scope(hint):
        q, k, v = (to_heads(net, linear(net, x, dim, dim, bias=False, hint=h), length, heads, size, like) for h in ("q_proj", "k_proj", "v_proj"))
        if head_norm:
            q, k = (root_mean_norm(net, t, size, h) for t, h in ((q, "q_norm"), (k, "k_norm")))
        if turn:
            q, k = turn(q), turn(k)
        return linear(net, from_heads(net, attend(net, q, k, v, size, mask), length, dim, like), dim, dim, bias=False, hint="o_proj")


def halves_turned(net, x, size, cos, sin):
    low, high = net.slice(x, 3, 0, size // 2), net.slice(x, 3, size // 2, size)
    return net.add(net.mul(x, cos), net.mul(net.concat(net.op("Neg", high), low, axis=3), sin))


def stretched_tables(length, size, factor=8.0, low=1.0, high=4.0, original=32.0):
    """Slow turns are slower still, fast ones as they were, and those between in between."""
    freq = 10000.0 ** (-np.arange(0, size, 2) / size)
    wave = 2 * np.pi / freq
    smooth = np.clip((original / wave - low) / (high - low), 0, 1)
    angle = np.arange(length)[:, None] * ((1 - smooth) * freq / factor + smooth * freq)[None]
    angle = np.concatenate([angle, angle], 1)
    return np.cos(angle), np.sin(angle)


def tables_of_sections(net, places, size, sections):
    """[B, length, 3] of time, row and column to cosines and sines: the first frequencies are of time, the next of rows, the last of columns."""
    which = np.repeat(np.arange(3), sections)
    freq = 30.0 ** (-np.arange(0, size, 2) / size)
    angle = net.mul(net.op("Gather", net.op("Cast", places, to=1), net.const(which, np.int64), axis=2), net.const(freq))
    angle = net.unsqueeze(net.concat(angle, angle, axis=2), 1)
    return net.op("Cos", angle), net.op("Sin", angle)


def band_mask(net, length, window):
    """What came before, but not longer ago than the window."""
    i = np.arange(length)
    keep = ((i[None] <= i[:, None]) & (i[:, None] - i[None] < window))[None, None]
    if net.pick(True, False):
        return net.op("Where", net.const(keep, bool), net.const(0.0), net.const(net.pick(-1e4, -1e9)))
    return net.const(np.where(keep, 0, net.pick(-1e4, -1e9)))


def with_relative_places(net, x, side, dim, heads, hint="attn"):
    """Attention in a picture whose scores have a part of rows and one of columns, made from the queries."""
    size, length = dim // heads, side * side
    with net.scope(hint):
        q, k, v = (to_heads(net, linear(net, x, dim, dim, hint=h), length, heads, size) for h in ("q", "k", "v"))
        rows, columns = (net.weight((0.5 * net.rng.standard_normal((side, size, side))).astype(np.float32), h) for h in ("rel_pos_h", "rel_pos_w"))
        scores = net.op("MatMul", net.mul(q, net.const(size ** -0.5)), net.transpose(k, 0, 1, 3, 2))
        plane = net.reshape(q, [BATCH, heads, side, side, size], like=x)
        by_row = net.op("MatMul", plane, rows)
        by_column = net.transpose(net.op("MatMul", net.transpose(plane, 0, 1, 3, 2, 4), columns), 0, 1, 3, 2, 4)
        scores = net.reshape(scores, [BATCH, heads, side, side, side, side], like=x)
        scores = net.add(net.add(scores, net.unsqueeze(by_row, 5)), net.unsqueeze(by_column, 4))
        shares = net.softmax(net.reshape(scores, [BATCH, heads, length, length], like=x), 4)
        return linear(net, from_heads(net, net.op("MatMul", shares, v), length, dim, x), dim, dim, hint="proj")


def pre(net, x, dim, mixer, inner=None, act="gelu", norm=None, hint="block"):
    """Norm, mixer, sum; norm, two layers, sum."""
    norm = norm or root_mean_norm
    with net.scope(hint):
        x = net.add(x, mixer(norm(net, x, dim, hint="norm1")))
        with net.scope("mlp"):
            y = linear(net, norm(net, x, dim, hint="norm2"), dim, inner or 2 * dim, hint="fc1")
            return net.add(x, linear(net, activation(net, y, act, inner or 2 * dim), inner or 2 * dim, dim, hint="fc2"))


# ---- states over time ----

def step_of(net, x, t):
    """[B, steps, d] to the step's [B, d]: by its number where exporters do so, else cut out."""
    if net.style.shapes == "chain":
        return net.op("Gather", x, net.const(t, np.int64), axis=1)
    return net.squeeze(net.slice(x, 1, t, t + 1), 1)


def stacked(net, ys):
    """[B, d] for each step to [B, steps, d]."""
    return net.concat(*[net.unsqueeze(y, 1) for y in ys], axis=1)


def unrolled_cell(net, x, steps, n_in, hidden, kept=None, hint="cell"):
    """A cell with four gates, step by step; kept: that share of the last state stays, as training left it at random."""
    with net.scope(hint):
        wx = linear(net, x, n_in, 4 * hidden, hint="x2h")
        wh = net.weight(np.ascontiguousarray(trained(net.rng, (4 * hidden, hidden), hidden, 0.8).T), "h2h")
        h = c = None
        ys = []
        for t in range(steps):
            g = step_of(net, wx, t)
            g = net.add(g, net.op("MatMul", h, wh)) if h else g
            i, f, o, u = net.split(g, [hidden] * 4, 1)
            i, f, o, u = net.op("Sigmoid", i), net.op("Sigmoid", f), net.op("Sigmoid", o), net.op("Tanh", u)
            new = net.mul(i, u)
            new = net.add(net.mul(f, c), new) if c else new
            y = net.mul(o, net.op("Tanh", new))
            if kept and h:
                y = net.add(net.mul(h, net.const(kept)), net.mul(y, net.const(1 - kept)))
                new = net.add(net.mul(c, net.const(kept)), net.mul(new, net.const(1 - kept)))
            h, c = y, new
            ys.append(h)
        return ys


def simple_units(net, x, steps, n, scale, hint="sru"):
    """What is forgotten depends on the input alone; beside the state the input goes on, a little larger."""
    with net.scope(hint):
        u, f, r = (linear(net, x, n, n, hint=h, bias=b, gain=1.3) for h, b in (("w", False), ("forget", True), ("reset", True)))
        f, r = net.op("Sigmoid", f), net.op("Sigmoid", r)
        come = net.mul(net.op("Sub", net.const(1.0), f), u)
        c, cs = None, []
        for t in range(steps):
            c = net.add(net.mul(step_of(net, f, t), c), step_of(net, come, t)) if c else step_of(net, come, t)
            cs.append(c)
        y = net.mul(r, net.op("Tanh", stacked(net, cs)))
        return net.add(y, net.mul(net.op("Sub", net.const(1.0), r), net.mul(x, net.const(scale))))


def real_gates(net, x, steps, n, hint="rglru"):
    """States that fade by a power of a learned rate, and inputs that are as much smaller."""
    with net.scope(hint):
        r, i = (net.op("Sigmoid", linear(net, x, n, n, hint=h, gain=1.3)) for h in ("a_gate", "input_gate"))
        rate = net.op("Softplus", net.vector(n, -2.0, 0.6, "a_param"))
        a = net.op("Exp", net.op("Neg", net.mul(net.mul(r, net.const(8.0)), rate)))
        come = net.mul(net.mul(i, x), net.op("Sqrt", net.op("Sub", net.const(1.0 + 1e-6), net.mul(a, a))))
        h, ys = None, []
        for t in range(steps):
            h = net.add(net.mul(step_of(net, a, t), h), step_of(net, come, t)) if h else step_of(net, come, t)
            ys.append(h)
        return stacked(net, ys)


def held_states(net, x, steps, n, states, hint="s4d"):
    """States of each channel, whose input is held from step to step."""
    with net.scope(hint):
        a = net.op("Neg", net.op("Exp", net.weight(np.log(np.tile(np.arange(1.0, states + 1), (n, 1))).astype(np.float32), "log_A")))
        dt = net.weight(np.exp(net.rng.uniform(-1.2, 0.1, (n, 1))).astype(np.float32), "dt")
        power = net.mul(a, dt)
        fade = net.op("Exp", power)
        come = net.mul(net.op("Div", net.op("Sub", fade, net.const(1.0)), a), net.trained((n, states), 2, hint="B"))
        read = net.trained((n, states), states, hint="C")
        h, ys = None, []
        for t in range(steps):
            u = net.mul(net.unsqueeze(step_of(net, x, t), 2), come)
            h = net.add(net.mul(h, fade), u) if h else u
            ys.append(net.reduce("Sum", net.mul(h, read), [2], 0))
        return net.add(stacked(net, ys), net.mul(x, net.vector(n, 0.8, 0.2, "D")))


def matrix_memory(net, x, steps, n, hint="mlstm"):
    """A matrix of keys and values that fades, and how much of the query it knows, which counts as one at least."""
    with net.scope(hint):
        q, k, v = (linear(net, x, n, n, hint=h, gain=1.2) for h in ("q", "k", "v"))
        k = net.mul(k, net.const(n ** -0.5))
        i, f = (net.op("Sigmoid", linear(net, x, n, 1, hint=h)) for h in ("igate", "fgate"))
        memory = known = None
        ys = []
        for t in range(steps):
            kt, vt, qt, it, ft = (step_of(net, p, t) for p in (k, v, q, i, f))
            ki = net.mul(kt, it)
            new = net.op("MatMul", net.unsqueeze(vt, 2), net.unsqueeze(ki, 1))
            memory = net.add(net.mul(memory, net.unsqueeze(ft, 2)), new) if memory else new
            known = net.add(net.mul(known, ft), ki) if known else ki
            top = net.squeeze(net.op("MatMul", memory, net.unsqueeze(qt, 2)), 2)
            much = net.op("Abs", net.reduce("Sum", net.mul(known, qt), [1]))
            ys.append(net.op("Div", top, net.op("Max", much, net.const(1.0))))
        return stacked(net, ys)


def mixed_with_last(net, x, length, n, hint="shift"):
    """Some of each token, and of the one before it what is left."""
    with net.scope(hint):
        last = net.slice(net.pad(x, [0, 1, 0, 0, 0, 0]), 1, 0, length)
        mu = net.weight(net.rng.uniform(0.1, 0.9, n).astype(np.float32), "time_mix")
        return net.add(net.mul(x, mu), net.mul(last, net.op("Sub", net.const(1.0), mu)))


# ---- pictures ----

def equal_rate_conv(net, x, n_in, n_out, k, hint="conv", gain=1.4):
    """Weights of unit spread, which the graph makes smaller."""
    with net.scope(hint):
        w = net.trained((n_out, n_in, k, k), 1.0)
        w = net.mul(w, net.const(gain / np.sqrt(n_in * k * k)))
        return net.op("Conv", x, w, net.vector(n_out), kernel_shape=[k, k], pads=[k // 2] * 4)


def blurred_twice_as_large(net, x, n, side, hint="up"):
    """Zeros between the pixels, then a blur that makes good for them."""
    with net.scope(hint):
        y = net.reshape(x, [BATCH, n, side, 1, side, 1], like=x)
        y = net.pad(y, [0] * 9 + [1, 0, 1])
        y = net.reshape(y, [BATCH, n, 2 * side, 2 * side], like=x)
        line = np.array([1.0, 3, 3, 1]) / 8
        kernel = net.const(np.tile((4 * np.outer(line, line))[None, None], (n, 1, 1, 1)))
        return net.op("Conv", y, kernel, kernel_shape=[4, 4], pads=[2, 2, 1, 1], group=n)


def haar(net, x, n, hint="dwt"):
    """[B, n, h, w] to [B, 4 n, h / 2, w / 2]: means, and differences along rows, columns and both."""
    four = 0.5 * np.array([[[1, 1], [1, 1]], [[-1, -1], [1, 1]], [[-1, 1], [-1, 1]], [[1, -1], [-1, 1]]])
    with net.scope(hint):
        return net.op("Conv", x, net.const(np.tile(four[:, None], (n, 1, 1, 1))), kernel_shape=[2, 2], strides=[2, 2], group=n)


def shrunk(net, x, k):
    """The least of each neighbourhood, by the largest of what is turned over."""
    return net.op("Neg", net.op("MaxPool", net.op("Neg", x), kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4))


def colours_of_broadcast(net, x):
    """[B, 3, h, w] of light and two colours in bytes, with room at both ends, to red, green and blue."""
    y, uv = net.split(x, [1, 2], 1)
    y = net.mul(net.op("Sub", y, net.const(16.0)), net.const(255 / 219))
    uv = net.op("Sub", uv, net.const(128.0))
    m = np.array([[1, 0, 1.596], [1, -0.392, -0.813], [1, 2.017, 0]], np.float32)[:, :, None, None]
    rgb = net.op("Conv", net.concat(y, uv, axis=1), net.weight(m, "matrix"), kernel_shape=[1, 1])
    return net.op("Div", rgb, net.const(255.0))


def angle_of(net, y, x):
    """As exporters write an angle of two numbers."""
    a = net.op("Atan", net.op("Div", y, x))
    half = net.op("Where", net.op("Less", y, net.const(0.0)), net.const(-np.pi), net.const(np.pi))
    return net.add(a, net.op("Where", net.op("Less", x, net.const(0.0)), half, net.const(0.0)))


def cells(h, w):
    y, x = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
    return np.stack([x, y], -1).reshape(1, h * w, 2).astype(np.float32)


def small_body(net, x, n_in, n, act="relu", stride=2):
    """Two convolutions."""
    x = activation(net, conv(net, x, n_in, n, 3, stride=stride, hint="stem"), act, n)
    return activation(net, conv(net, x, n, n, 3, hint="body"), act, n)


def rows_of(net, x, n, count):
    """[B, n, h, w] to [B, h * w, n]."""
    return net.transpose(net.reshape(x, [BATCH, n, count], like=x), 0, 2, 1)


def table_of(net, ids, rows, dim, hint="embed"):
    return net.op("Gather", learned(net, (rows, dim), hint + ".weight", 1.0), ids, axis=0)


def two_layers(net, x, n_in, hidden, n_out, act="relu", rank=2, gain=1.0, hint="mlp"):
    with net.scope(hint):
        return linear(net, activation(net, linear(net, x, n_in, hidden, rank=rank, hint="fc1"), act, hidden), hidden, n_out, rank=rank, hint="fc2", gain=gain)


def deviation(net, x, axes):
    gap = net.op("Sub", x, net.reduce("Mean", x, axes))
    return net.op("Sqrt", net.add(net.reduce("Mean", net.mul(gap, gap), axes), net.const(1e-6)))
