"""Layers of the fifth generation's networks."""
import numpy as np

from blocks import activation, batch_norm, layer_norm, linear
from layers4 import attend, from_heads, learned, rotate, to_heads
from net import BATCH, trained
from vision import conv


def residual(net, x, n, act="relu", hint="res", rank=2):
    """Two convolutions beside what goes on."""
    with net.scope(hint):
        y = activation(net, batch_norm(net, conv(net, x, n, n, 3, bias=False, hint="conv1", rank=rank), n, "bn1"), act, n)
        return net.add(x, batch_norm(net, conv(net, y, n, n, 3, bias=False, hint="conv2", rank=rank), n, "bn2"))


def unit_length(net, x, axis=-1):
    """Divided by its length, as torch and TensorFlow write it."""
    if net.pick(True, False):
        root = net.reduce("L2", x, [axis])
        return net.op("Div", x, net.clip(root, 1e-12, None))
    return net.op("Div", x, net.op("Sqrt", net.add(net.reduce("Sum", net.mul(x, x), [axis]), net.const(1e-12))))


def generalized_mean(net, x, power):
    """Between the mean and the largest of an image's places, [B, C]."""
    x = net.op("Pow", net.clip(x, 1e-4, None), net.const(power))
    return net.op("Pow", net.reduce("Mean", x, [2, 3], 0), net.const(1 / power))


def bins_matrix(side, bins):
    """[side, bins]: shares of the places that an adaptive mean takes, from the floor of where a bin begins to the ceiling of where it ends."""
    m = np.zeros((side, bins), np.float32)
    for k in range(bins):
        low, high = k * side // bins, -(-(k + 1) * side // bins)
        m[low:high, k] = 1 / (high - low)
    return m


def modulated(net, x, dim, condition, n_in, gate=False, hint="ada"):
    """A norm whose scale and offset come from a condition, and perhaps a gate."""
    with net.scope(hint):
        count = 3 if gate else 2
        parts = net.split(linear(net, activation(net, condition, "swish"), n_in, count * dim, rank=2, hint="linear"), [dim] * count, 1)
        shift, scale, *rest = (net.unsqueeze(p, 1) for p in parts)
        y = layer_norm(net, x, dim, hint="norm")
        return net.add(net.mul(y, net.add(scale, net.const(1.0))), shift), *rest


def waves(net, t, count, base=10000.0, cosine_first=True):
    """[B, 1] to [B, 2 * count]: a time's cosines and sines."""
    angle = net.mul(t, net.const(np.exp(-np.log(base) * np.arange(count) / count).reshape(1, count)))
    both = net.op("Cos", angle), net.op("Sin", angle)
    return net.concat(*(both if cosine_first else both[::-1]), axis=1)


def grouped_attention(net, x, length, dim, heads, mask=None, like=None, turned=True, hint="attn"):
    """Queries and keys turned by their places; one matrix each."""
    size = dim // heads
    with net.scope(hint):
        q, k, v = (to_heads(net, linear(net, x, dim, dim, bias=False, hint=h), length, heads, size, like) for h in ("q_proj", "k_proj", "v_proj"))
        if turned:
            q, k = (rotate(net, t, length, size) for t in (q, k))
        return linear(net, from_heads(net, attend(net, q, k, v, size, mask), length, dim, like), dim, dim, bias=False, hint="o_proj")


def cross_attention(net, x, memory, length, others, dim, heads, like=None, hint="cross"):
    size = dim // heads
    with net.scope(hint):
        q = to_heads(net, linear(net, x, dim, dim, hint="q"), length, heads, size, like)
        k, v = (to_heads(net, linear(net, memory, dim, dim, hint=h), others, heads, size, like) for h in ("k", "v"))
        return linear(net, from_heads(net, attend(net, q, k, v, size), length, dim, like), dim, dim, hint="out")


def pruned(net, shape, fan_in, gain=1.0, hint="weight"):
    """Two of each four weights are zero, the smaller ones."""
    w = trained(net.rng, shape, fan_in, gain * 1.4)
    flat = w.reshape(-1, 4)
    order = np.argsort(np.abs(flat), axis=1)
    for k in (0, 1):
        flat[np.arange(len(flat)), order[:, k]] = 0
    return net.weight(flat.reshape(shape), hint)


def mask_of_lengths(net, flags):
    """[batch, length] of 0 and 1 to what is added to scores."""
    m = net.unsqueeze(net.op("Cast", flags, to=1), 1, 2)
    return net.mul(net.op("Sub", net.const(1.0), m), net.const(net.pick(-10000.0, -1e9)))


def table_of(net, ids, rows, dim, hint="embed"):
    return net.op("Gather", learned(net, (rows, dim), hint + ".weight", 1.0), ids, axis=0)


def lerp(net, a, b, share):
    """share of a, and of b what is left."""
    return net.add(net.mul(a, share), net.mul(b, net.op("Sub", net.const(1.0), share)))


def snake(net, x, n, hint="snake"):
    """x and the square of its sine, by the frequency."""
    with net.scope(hint):
        alpha = net.weight((0.8 + 0.4 * net.rng.random((1, n, 1))).astype(np.float32) * 1.5, "alpha")
        sine = net.op("Sin", net.mul(x, alpha))
        return net.add(x, net.mul(net.mul(sine, sine), net.op("Reciprocal", net.add(alpha, net.const(1e-9)))))


def shifted(net, x, length):
    """[B, length, d]: what was one step ago; nothing before the first."""
    return net.slice(net.pad(x, [0, 1, 0, 0, 0, 0]), 1, 0, length)


def columns_of(net, ids, kinds):
    """[B] of numbers to [B, kinds]: a one in the column of each."""
    return net.op("OneHot", ids, net.const(kinds, np.int64), net.const([0.0, 1.0]), axis=-1)


def gather_rows(net, x, index, dim):
    """Of [B, length, dim] the row that each has in [B], as [B, dim]."""
    index = net.op("Expand", net.unsqueeze(index, 1, 2), net.ints(1, 1, dim))
    return net.squeeze(net.op("GatherElements", x, index, axis=1), 1)


def standardized(net, x, n):
    mean, deviation = 1.5 * net.rng.standard_normal(n), np.exp(0.4 * net.rng.standard_normal(n))
    return net.op("Div", net.op("Sub", x, net.const(mean)), net.const(deviation))


def flat_tokens(net, x, n, count):
    """[B, n, h, w] to [B, h * w, n]."""
    return net.transpose(net.reshape(x, [BATCH, n, count], like=x), 0, 2, 1)
