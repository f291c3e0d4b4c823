"""Layers of the sixth generation's networks."""
import numpy as np
from onnx import numpy_helper

from blocks import activation, layer_norm, linear
from layers4 import attend, from_heads, learned, to_heads
from net import BATCH, trained


# ---- places that turn queries and keys ----

def tables(length, size, base=10000.0, factor=1.0):
    angle = np.arange(length)[:, None] * base ** (-np.arange(0, size, 2) / size)[None]
    angle = np.concatenate([angle, angle], 1)
    return factor * np.cos(angle), factor * np.sin(angle)


def turn_by(net, x, size, cos, sin):
    low, high = net.slice(x, 3, 0, size // 2), net.slice(x, 3, size // 2, size)
    return net.add(net.mul(x, net.const(cos)), net.mul(net.concat(net.op("Neg", high), low, axis=3), net.const(sin)))


def partly(net, x, length, size, part, factor=1.0):
    """Only the first numbers of each head are turned, by frequencies of their own count."""
    turned = turn_by(net, net.slice(x, 3, 0, part), part, *tables(length, part, factor=factor))
    return net.concat(turned, net.slice(x, 3, part, size), axis=3) if part < size else turned


def by_row_and_column(net, x, side, size, form):
    """In a picture: the first half of the frequencies is for rows, the second for columns; three layouts that libraries have."""
    place = np.arange(side * side)
    freq = 100.0 ** (-np.arange(0, size // 2, 2) / (size // 2))
    rows, columns = (p[:, None] * freq[None] for p in (place // side, place % side))
    if form == "apart":
        low, high = net.slice(x, 3, 0, size // 2), net.slice(x, 3, size // 2, size)
        pair = [np.concatenate([a, a], 1) for a in (rows, columns)]
        return net.concat(turn_by(net, low, size // 2, np.cos(pair[0]), np.sin(pair[0])), turn_by(net, high, size // 2, np.cos(pair[1]), np.sin(pair[1])), axis=3)
    angle = np.concatenate([rows, columns, rows, columns] if form == "twice" else [rows, rows, columns, columns], 1)
    return turn_by(net, x, size, np.cos(angle), np.sin(angle))


def attention(net, x, length, dim, heads, turn=None, mask=None, like=None, bias=True, hint="attention"):
    size = dim // heads
    with net.scope(hint):
        q, k, v = (to_heads(net, linear(net, x, dim, dim, bias=bias, hint=h), length, heads, size, like) for h in ("query", "key", "value"))
        if turn:
            q, k = turn(q), turn(k)
        return linear(net, from_heads(net, attend(net, q, k, v, size, mask), length, dim, like), dim, dim, bias=bias, hint="dense")


def difference_attention(net, x, length, dim, heads, share, like=None, hint="diff_attn"):
    """Shares of one pair of queries and keys, less some of another's."""
    size = dim // heads
    with net.scope(hint):
        q1, k1, q2, k2, v = (to_heads(net, linear(net, x, dim, dim, bias=False, hint=h), length, heads, size, like) for h in ("q1", "k1", "q2", "k2", "v"))
        first, second = (net.softmax(net.mul(net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const(size ** -0.5)), 4) for q, k in ((q1, k1), (q2, k2)))
        y = net.op("MatMul", net.op("Sub", first, net.mul(second, net.const(share))), v)
        y = net.mul(y, net.const(1 - share))
        return linear(net, from_heads(net, y, length, dim, like), dim, dim, bias=False, hint="out")


def branch_scale(net, y, dim, hint="ls"):
    """What a block adds, channel by channel."""
    with net.scope(hint):
        return net.mul(y, net.vector(dim, 0.35, 0.12, "gamma"))


def squared_layer(net, x, dim, inner, hint="mlp"):
    """The square of what a rectifier lets through."""
    with net.scope(hint):
        y = activation(net, linear(net, x, dim, inner, bias=False, hint="fc"), "relu")
        y = net.mul(y, y) if net.pick(True, False) else net.op("Pow", y, net.const(2.0))
        return linear(net, y, inner, dim, bias=False, hint="proj")


def shared_and_routed(net, x, length, dim, inner, experts, chosen, like=None, hint="moe"):
    """Some experts for each token, by their shares of all, and one for every token behind a gate of its own."""
    with net.scope(hint):
        share = net.softmax(linear(net, x, dim, experts, bias=False, hint="gate", gain=2.0), 3)
        best, index = net.topk(share, chosen, axis=2)
        least = net.slice(best, 2, chosen - 1, chosen)
        share = net.mul(share, net.op("Cast", net.op("Not", net.op("Less", share, least)), to=1))
        total = None
        for k in range(experts):
            y = linear(net, activation(net, linear(net, x, dim, inner, bias=False, hint=f"experts.{k}.up"), "swish"), inner, dim, bias=False, hint=f"experts.{k}.down")
            y = net.mul(y, net.slice(share, 2, k, k + 1))
            total = net.add(total, y) if total else y
        y = linear(net, activation(net, linear(net, x, dim, inner, bias=False, hint="shared.up"), "swish"), inner, dim, bias=False, hint="shared.down")
        gate = net.op("Sigmoid", linear(net, x, dim, 1, bias=False, hint="shared_gate", gain=1.5))
        return net.add(total, net.mul(y, gate))


def decaying_states(net, x, steps, dim, states, hint="ssm"):
    """[B, steps, dim]: states that fade as fast as each channel's rate says, which is kept as a logarithm."""
    with net.scope(hint):
        rate = net.weight(np.log(np.tile(np.arange(1, states + 1), (dim, 1)) * np.exp(0.3 * net.rng.standard_normal((dim, states)))).astype(np.float32), "A_log")
        a = net.op("Neg", net.op("Exp", rate))
        dt = net.op("Softplus", linear(net, x, dim, dim, hint="dt_proj", gain=0.7))
        b, c = (linear(net, x, dim, states, bias=False, hint=h) for h in ("B", "C"))
        fade = net.op("Exp", net.mul(net.unsqueeze(dt, 3), a))
        come = net.mul(net.unsqueeze(net.mul(dt, x), 3), net.unsqueeze(b, 2))
        state, ys = None, []
        for t in range(steps):
            f, u, r = (net.squeeze(net.slice(v, 1, t, t + 1), 1) for v in (fade, come, c))
            state = net.add(net.mul(state, f), u) if state else u
            ys.append(net.unsqueeze(net.squeeze(net.op("MatMul", state, net.unsqueeze(r, 2)), 2), 1))
        y = net.concat(*ys, axis=1)
        return net.add(y, net.mul(x, net.vector(dim, 1.0, 0.2, "D")))


def adapted(net, x, n_in, n_out, rank=2, scale=2.0, hint="lora"):
    """A layer and, beside it, what was learned later, of low rank."""
    with net.scope(hint):
        w = net.weight(np.ascontiguousarray(trained(net.rng, (n_out, n_in), n_in).T), "base.weight")
        a, b = (net.weight((g * net.rng.standard_normal(shape)).astype(np.float32), h)
                for g, shape, h in ((1 / np.sqrt(n_in), (n_in, rank), "lora_A"), (0.5, (rank, n_out), "lora_B")))
        y = net.mul(net.op("MatMul", net.op("MatMul", x, a), b), net.const(scale))
        return net.add(net.op("MatMul", x, w), y)


# ---- weights in few bits, taken apart in the graph ----

def grouped_weight(net, n_in, n_out, group, bits=4, hint="q"):
    """[n_in, n_out] from whole numbers, a middle and a scale for each group of rows."""
    w = trained(net.rng, (n_out, n_in), n_in).T.reshape(-1, group, n_out)
    low, high = np.minimum(w.min(1, keepdims=True), 0), np.maximum(w.max(1, keepdims=True), 0)
    high = np.where(net.rng.random(low.shape) < 0.15, high - low, high)  # some groups have no negative numbers
    low = np.where(high - low > 2 * (w.max(1, keepdims=True) - w.min(1, keepdims=True)), low, low)
    most = 2 ** bits - 1
    scale = (high - low) / most + 1e-9
    zero = np.clip(np.rint(-low / scale), 0, most)
    zero = np.where(net.rng.random(zero.shape) < 0.12, 0, zero)
    q = np.clip(np.rint(w / scale + zero), 0, most)
    with net.scope(hint):
        q, zero = (net.op("Cast", net.weight(v.astype(np.int32), h), to=1) for v, h in ((q, "qweight"), (zero, "qzeros")))
        y = net.mul(net.op("Sub", q, zero), net.weight(scale.astype(np.float32), "scales"))
        return net.op("Reshape", y, net.ints(n_in, n_out))


def nested_weight(net, n_in, n_out, group=4, hint="nf4"):
    """[n_in, n_out] from places in a book; the scales of groups are bytes themselves, of one scale and around a middle."""
    w = trained(net.rng, (n_out, n_in), n_in).T.reshape(-1, group, n_out)
    most = np.abs(w).max(1, keepdims=True) + 1e-6
    middle = float(most.mean())
    step = float(np.abs(most - middle).max() / 127)
    t = np.linspace(-1, 1, 16)
    book = np.sign(t) * np.abs(t) ** 1.3
    places = np.abs((w / most)[..., None] - book).argmin(-1)
    with net.scope(hint):
        scale = net.op("Cast", net.weight(np.rint((most - middle) / step).astype(np.int32), "absmax"), to=1)
        scale = net.add(net.mul(scale, net.const(step)), net.const(middle))
        y = net.mul(net.op("Gather", net.weight(book.astype(np.float32), "code"), net.const(places, np.int64), axis=0), scale)
        return net.op("Reshape", y, net.ints(n_in, n_out))


def scaled_weight(net, n_in, n_out, hint="fp8"):
    """[n_in, n_out] from whole numbers and a scale for each column."""
    w = trained(net.rng, (n_out, n_in), n_in).T
    scale = np.abs(w).max(0, keepdims=True) / 31
    with net.scope(hint):
        return net.mul(net.op("Cast", net.weight(np.rint(w / scale).astype(np.int32), "weight"), to=1), net.weight(scale.astype(np.float32), "weight_scale"))


# ---- sounds ----

def window(size, kind):
    t = np.arange(size) / size
    return 0.5 - 0.5 * np.cos(2 * np.pi * t) if kind == "hann" else 0.54 - 0.46 * np.cos(2 * np.pi * t)


def power_spectrum(net, wave, size, hop, kind):
    """[B, 1, samples] to [B, size / 2 + 1, frames]."""
    bins = size // 2 + 1
    angle = 2 * np.pi * np.outer(np.arange(bins), np.arange(size)) / size
    basis = np.concatenate([np.cos(angle), -np.sin(angle)]) * window(size, kind)
    y = net.op("Conv", wave, net.weight(basis.astype(np.float32)[:, None], "stft.weight"), kernel_shape=[size], strides=[hop], pads=[size // 2] * 2)
    re, im = net.split(y, [bins, bins], 1)
    return net.add(net.mul(re, re), net.mul(im, im))


def bands(count, bins, top=1.0):
    """[count, bins]: triangles whose edges lie even on a bent scale, up to a share of all."""
    edges = np.expm1(np.linspace(0, np.log1p(top * (bins - 1) * 0.4), count + 2)) / 0.4
    k = np.arange(bins)
    up, down = ((k - edges[i:i + count, None]) / np.maximum(edges[i + 1:i + 1 + count, None] - edges[i:i + count, None], 1e-6) * sign
                for i, sign in ((0, 1), (1, 1)))
    return np.maximum(np.minimum(up, 1 - down), 0).astype(np.float32) + 1e-3 * (k[None] < top * bins).astype(np.float32)


def cepstra(net, x, count, kept, lifter, frames_last=True):
    """A cosine transform of the bands, and weights that lift the later ones."""
    angle = np.pi / count * np.outer(np.arange(kept), np.arange(count) + 0.5)
    m = np.sqrt(2 / count) * np.cos(angle)
    m[0] /= np.sqrt(2)
    y = net.op("MatMul", net.weight(m.astype(np.float32), "dct"), x)
    return net.mul(y, net.const(1 + lifter / 2 * np.sin(np.pi * np.arange(1, kept + 1) / lifter).reshape(1, kept, 1)))


def each_standardized(net, x, *axes):
    """Less its own mean, by its own deviation."""
    gap = net.op("Sub", x, net.reduce("Mean", x, list(axes)))
    return net.op("Div", gap, net.add(net.op("Sqrt", net.reduce("Mean", net.mul(gap, gap), list(axes))), net.const(1e-5)))


def expanded(net, x, mu=255.0):
    """From even steps of loudness back to samples."""
    y = net.op("Sub", net.op("Exp", net.mul(net.op("Abs", x), net.const(np.log1p(mu)))), net.const(1.0))
    return net.mul(net.op("Sign", x), net.op("Div", y, net.const(mu)))


def harmonic_sine(net, pitch, harmonics, rate):
    """[B, frames, 1] of cycles in a second to [B, frames, harmonics]: how far each wave has come, and its sine."""
    step = net.mul(pitch, net.const(np.arange(1, harmonics + 1).reshape(1, 1, harmonics) / rate))
    phase = net.op("CumSum", step, net.const(1, np.int64))
    return net.op("Sin", net.mul(phase, net.const(2 * np.pi)))


def rounded_levels(net, z, levels, hint="fsq"):
    """Each number to one of a few levels; where they are even in number, all are moved by half a step."""
    half = (np.array(levels) - 1) * 0.999 / 2
    offset = np.where(np.array(levels) % 2 == 0, 0.5, 0.0)
    shift = np.arctanh(offset / half)
    with net.scope(hint):
        y = net.mul(net.op("Tanh", net.add(z, net.const(shift))), net.const(half))
        y = net.op("Round", net.op("Sub", y, net.const(offset)))
        return net.op("Div", y, net.const((np.array(levels) // 2).astype(np.float32)))


# ---- bodies, cameras, graphs ----

def wrapped_gaps(net, p, side):
    """[B, n, n, 3]: from each to the nearest picture of every other, in a box that repeats."""
    gap = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1))
    return net.op("Sub", gap, net.mul(net.op("Round", net.op("Div", gap, net.const(side))), net.const(side)))


def with_ones(net, p, n):
    """[B, n, 3] to [B, n, 4]: a one behind each point."""
    shape = net.op("Shape", net.slice(p, 2, 0, 1))
    one = net.op("ConstantOfShape", shape, value=numpy_helper.from_array(np.ones(1, np.float32)))
    return net.concat(p, one, axis=2)


def pixels_of(net, p, focal, centre):
    """[B, n, 3] in front of a camera to [B, n, 2] in its picture."""
    xy, z = net.split(p, [2, 1], 2)
    flat = net.op("Div", xy, net.clip(z, 0.5, None))
    return net.add(net.mul(flat, net.const(np.array(focal).reshape(1, 1, 2))), net.const(np.array(centre).reshape(1, 1, 2)))


def camera(rng):
    """[4, 3]: a small turn, and a way back from the points."""
    q, _ = np.linalg.qr(np.eye(3) + 0.25 * rng.standard_normal((3, 3)))
    q = q * np.sign(np.diag(q))
    return np.concatenate([q, [[0.2, -0.1, 2.5]]]).astype(np.float32)


def harmonics(net, gap, axis):
    """Directions to real harmonics of the first and second degree: y, z, x; products of pairs, and squares."""
    length = net.op("Sqrt", net.add(net.reduce("Sum", net.mul(gap, gap), [axis]), net.const(1e-4)))
    x, y, z = net.split(net.op("Div", gap, length), [1, 1, 1], axis)
    c = np.sqrt(3.0)
    two = [net.mul(net.mul(a, b), net.const(np.sqrt(15.0))) for a, b in ((x, y), (y, z), (x, z))]
    three = net.mul(net.op("Sub", net.mul(net.mul(z, z), net.const(3.0)), net.const(1.0)), net.const(np.sqrt(5.0) / 2))
    first = net.mul(net.concat(y, z, x, axis=axis), net.const(c))
    return net.concat(first, *two, three, axis=axis), length


def rows_to_one(net, a, axis):
    """An adjacency whose rows, or columns, add up to one."""
    return net.op("Div", a, net.add(net.reduce("Sum", a, [axis]), net.const(1e-3)))


def standard(net, x, n, spread=0.5):
    mean, deviation = net.rng.standard_normal(n), np.exp(spread * net.rng.standard_normal(n)) * 1.5
    return net.op("Div", net.op("Sub", x, net.const(mean)), net.const(deviation))


def two_layers(net, x, n_in, hidden, n_out, act="relu", rank=2, gain=1.0, hint="mlp"):
    with net.scope(hint):
        return linear(net, activation(net, linear(net, x, n_in, hidden, rank=rank, hint="fc1"), act), hidden, n_out, rank=rank, hint="fc2", gain=gain)


def embedded(net, ids, rows, dim, hint="embed"):
    return net.op("Gather", learned(net, (rows, dim), hint + ".weight", 1.0), ids, axis=0)


def normed(net, x, dim, hint):
    return layer_norm(net, x, dim, hint=hint)


def last_of(net, x):
    """[B, length, d]: the last, by an index from behind."""
    return net.op("Gather", x, net.const(-1, np.int64), axis=1)


def tokens_of(net, x, n, count):
    return net.transpose(net.reshape(x, [BATCH, n, count], like=x), 0, 2, 1)
