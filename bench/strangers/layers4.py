"""Layers of the fourth generation's networks."""
import numpy as np

from blocks import activation, layer_norm, linear
from net import BATCH
from vision import conv


def scaled_gemm(net, x, n_in, n_out, alpha, hint="scaled"):
    """A linear layer whose weights are kept at another scale, as for an equalized learning rate."""
    with net.scope(hint):
        w = net.trained((n_out, n_in), n_in * alpha * alpha)
        return net.op("Gemm", x, w, net.vector(n_out), transB=1, alpha=alpha, beta=1.0)


def conv_act_norm(net, x, n_in, n_out, k, act="relu", hint="block", **more):
    """The norm stands behind the activation."""
    with net.scope(hint):
        y = activation(net, conv(net, x, n_in, n_out, k, **more), act, n_out)
        return norm_of(net, y, n_out)


def norm_of(net, x, n, hint="bn"):
    with net.scope(hint):
        names = (net.vector(n, 1.0, 0.3, "gamma"), net.vector(n, 0.2, 0.3, "beta"), net.vector(n, 0, 0.1, "mean"),
                 net.weight(np.exp(0.2 * net.rng.standard_normal(n)).astype(np.float32), "var"))
        y = net.op("BatchNormalization", x, *names, epsilon=net.pick(1e-5, 1e-3, 1e-4))
    net.norms.append((x, names[2], names[3]))
    return y


def attend(net, q, k, v, size, mask=None):
    """[B, heads, length, size] each; the scale stands before the product, behind it, or on both sides."""
    form = net.pick("query", "scores", "divided", "both")
    k = net.transpose(k, 0, 1, 3, 2)
    if form == "query":
        q = net.mul(q, net.const(size ** -0.5))
    if form == "both":
        q, k = net.mul(q, net.const(size ** -0.25)), net.mul(k, net.const(size ** -0.25))
    scores = net.op("MatMul", q, k)
    if form == "scores":
        scores = net.mul(scores, net.const(size ** -0.5))
    if form == "divided":
        scores = net.op("Div", scores, net.const(size ** 0.5))
    return net.op("MatMul", net.softmax(net.add(scores, mask) if mask else scores, 4), v)


def to_heads(net, x, length, heads, size, like=None):
    return net.transpose(net.reshape(x, [BATCH, length, heads, size], like), 0, 2, 1, 3)


def from_heads(net, x, length, dim, like=None):
    return net.reshape(net.transpose(x, 0, 2, 1, 3), [BATCH, length, dim], like)


def self_attention(net, x, length, dim, heads, mask=None, like=None, turn=None, hint="self_attn"):
    """turn: what is done to queries and keys."""
    size = dim // heads
    with net.scope(hint):
        q, k, v = (to_heads(net, linear(net, x, dim, dim, hint=h), length, heads, size, like) for h in ("q_proj", "k_proj", "v_proj"))
        if turn:
            q, k = turn(q), turn(k)
        return linear(net, from_heads(net, attend(net, q, k, v, size, mask), length, dim, like), dim, dim, hint="out_proj")


def feed_forward(net, x, dim, inner, act="gelu", hint="ffn"):
    with net.scope(hint):
        return linear(net, activation(net, linear(net, x, dim, inner, hint="up"), act, inner), inner, dim, hint="down")


def block(net, x, length, dim, heads, act="gelu", first=True, hint="layer", **more):
    """first: norms stand in front, else behind what is added."""
    with net.scope(hint):
        if first:
            x = net.add(x, self_attention(net, layer_norm(net, x, dim, hint="ln1"), length, dim, heads, **more))
            return net.add(x, feed_forward(net, layer_norm(net, x, dim, hint="ln2"), dim, 2 * dim, act))
        x = layer_norm(net, net.add(self_attention(net, x, length, dim, heads, **more), x), dim, hint="ln1")
        return layer_norm(net, net.add(feed_forward(net, x, dim, 2 * dim, act), x), dim, hint="ln2")


def learned(net, shape, hint, scale=0.3):
    return net.weight((scale * net.rng.standard_normal(shape)).astype(np.float32), hint)


def table(net, ids, rows, dim, hint="embed"):
    return net.op("Gather", learned(net, (rows, dim), hint + ".weight", 1.0), ids, axis=0)


def log1p(net, x):
    return net.op("Log", net.add(x, net.const(1.0)))


def gated(net, x, n_in, n, axis=-1, rank=2, act="Sigmoid"):
    """One matrix for what goes on and for how much of it."""
    a, b = net.split(linear(net, x, n_in, 2 * n, rank=rank, hint="gated"), [n, n], axis)
    return net.mul(a, net.op(act, b))


def rotate(net, x, length, size, base=10000.0, pairs=False):
    """Rotates [..., length, size] by tables of the whole size: halves, or neighbours (pairs)."""
    angle = np.arange(length)[:, None] * base ** (-np.arange(0, size, 2) / size)[None]
    angle = np.repeat(angle, 2, 1) if pairs else np.concatenate([angle, angle], 1)
    cos, sin = net.const(np.cos(angle)), net.const(np.sin(angle))
    if pairs:
        even, odd = net.slice(x, 3, 0, size, 2), net.slice(x, 3, 1, size, 2)
        both = net.concat(net.unsqueeze(net.op("Neg", odd), 4), net.unsqueeze(even, 4), axis=4)
        turned = net.op("Reshape", both, net.ints(0, 0, 0, size))
    else:
        low, high = net.slice(x, 3, 0, size // 2), net.slice(x, 3, size // 2, size)
        turned = net.concat(net.op("Neg", high), low, axis=3)
    return net.add(net.mul(x, cos), net.mul(turned, sin))
