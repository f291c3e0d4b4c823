"""Seventh generation: graphs, bodies, values of moves, and steps of samplers."""
import numpy as np

from blocks import activation, linear
from layers7 import deviation, table_of, two_layers
from net import BATCH


def links(net, n, own=True):
    """[B, n, n] of zeros and ones, which are the same in both directions; own: each is linked to itself."""
    a = net.op("Cast", net.op("Greater", net.input("links", [BATCH, n, n], "points"), net.const(0.2)), to=1)
    a = net.op("Max", a, net.transpose(a, 0, 2, 1))
    return net.op("Max", a, net.const(np.eye(n)[None])) if own else a


def even_both_ways(net, a):
    """Each link by the roots of the numbers of links at both ends."""
    degree = net.reduce("Sum", a, [2])
    root = net.op("Reciprocal", net.op("Sqrt", degree)) if net.pick(True, False) else net.op("Pow", degree, net.const(-0.5))
    return net.mul(net.mul(a, root), net.transpose(root, 0, 2, 1))


def second_attention(net):
    """Papers that listen to those they cite: a slope first, then one number for each pair."""
    n = 6
    x, a = net.input("papers", [BATCH, n, 8], "features"), links(net, n)
    for i in range(2):
        with net.scope(f"gat{i}"):
            d, m = (8, 10) if i == 0 else (10, 4)
            left, right = (linear(net, x, d, m, hint=h) for h in ("lin_l", "lin_r"))
            e = net.op("LeakyRelu", net.add(net.unsqueeze(left, 2), net.unsqueeze(right, 1)), alpha=0.2)
            e = net.squeeze(net.op("MatMul", e, net.trained((m, 1), m, 2.0, "att")), 3)
            e = net.op("Where", net.op("Greater", a, net.const(0.5)), e, net.const(-1e4))
            x = net.op("MatMul", net.softmax(e, 3), right)
            x = activation(net, x, "elu") if i == 0 else x
    net.output(x, "fields")


def attending_traffic(net):
    """Roads that listen to roads that lead to them, to how full each will be."""
    n = 7
    x, a = net.input("roads", [BATCH, n, 6], "signal"), links(net, n)
    left, right = (linear(net, x, 6, 12, hint=h) for h in ("source", "target"))
    e = net.op("LeakyRelu", net.add(net.unsqueeze(right, 2), net.unsqueeze(left, 1)), alpha=net.pick(0.1, 0.2))
    e = net.squeeze(net.op("MatMul", e, net.trained((12, 1), 12, 2.0, "attn")), 3)
    e = net.add(e, net.mul(net.op("Sub", net.const(1.0), a), net.const(-1e4)))
    y = net.add(linear(net, x, 6, 12, hint="self"), net.op("MatMul", net.softmax(e, 3), left))
    net.output(net.op("Sigmoid", linear(net, activation(net, y, "relu"), 12, 2, hint="full", gain=2.0)), "full")


def summed_molecules(net):
    """Atoms add up their neighbours, and themselves a little more; what the molecule does."""
    n = 6
    kinds, a = net.input("atoms", [BATCH, n], "tokens", vocab=5), links(net, n, False)
    x = table_of(net, kinds, 5, 8)
    for i in range(2):
        with net.scope(f"gin{i}"):
            x = net.add(net.mul(x, net.const(1 + net.pick(0.3, 0.5))), net.op("MatMul", a, x))
            x = activation(net, net.mul(two_layers(net, x, 8, 12, 8, rank=3, hint="nn"), net.const(0.5)), "relu")
    net.output(linear(net, net.reduce("Sum", x, [1], 0), 8, 3, rank=2, hint="out"), "activity")


def summed_rooms(net):
    """Rooms of a house in the same way, and what each is for."""
    n = 5
    x, a = net.input("house", [BATCH, n, 6], "features"), links(net, n, False)
    x = net.add(net.mul(x, net.const(1.25)), net.op("MatMul", a, x))
    net.output(net.op("LogSoftmax", two_layers(net, x, 6, 14, 5, "leaky", rank=3, hint="nn", gain=2.0), axis=-1), "rooms")


def even_citations(net):
    """Links by the roots of both ends' numbers, two layers, fields."""
    n = 7
    x, a = net.input("papers", [BATCH, n, 10], "counts"), even_both_ways(net, links(net, n))
    x = activation(net, net.op("MatMul", a, linear(net, x, 10, 12, bias=False, hint="w0", gain=0.5)), "relu")
    net.output(net.op("LogSoftmax", net.op("MatMul", a, linear(net, x, 12, 4, hint="w1", gain=1.5)), axis=-1), "fields")


def even_joints(net):
    """Joints over time, each with its neighbours by such links; which gesture."""
    n, t = 5, 6
    x = net.reshape(net.input("joints", [BATCH, t, n * 3], "signal"), [BATCH, t, n, 3])
    a = net.unsqueeze(even_both_ways(net, links(net, n)), 1)
    x = activation(net, net.op("MatMul", a, linear(net, x, 3, 10, rank=4, hint="gcn")), "relu")
    net.output(linear(net, net.reduce("Mean", x, [1, 2], 0), 10, 6, rank=2, hint="gesture", gain=2.0), "gesture")


def restarted_walk(net):
    """What is said of each alone, then walks over links that begin anew every so often."""
    n = 6
    h = two_layers(net, net.input("people", [BATCH, n, 8], "features"), 8, 12, 4, rank=3, hint="alone")
    a, z, again = even_both_ways(net, links(net, n)), h, net.pick(0.1, 0.2)
    for _ in range(3):
        z = net.add(net.mul(net.op("MatMul", a, z), net.const(1 - again)), net.mul(h, net.const(again)))
    net.output(net.softmax(z, 3), "groups")


def restarted_ranks(net):
    """How much each page of a site matters, by such walks."""
    n = 6
    x = net.op("Sigmoid", linear(net, net.input("pages", [BATCH, n, 5], "features"), 5, 1, hint="start", gain=2.0))
    a, z = links(net, n), x
    a = net.op("Div", a, net.reduce("Sum", a, [1]))
    for _ in range(3):
        z = net.add(net.mul(net.op("MatMul", a, z), net.const(0.85)), net.mul(x, net.const(0.15)))
    net.output(z, "ranks")


def curved_fields(net):
    """Filters on a graph: polynomials of its Laplacian by their recurrence."""
    n = 6
    x, a = net.input("stations", [BATCH, n, 5], "signal"), links(net, n)
    l = net.op("Neg", even_both_ways(net, a))
    terms = [x, net.op("MatMul", l, x)]
    for _ in range(2):
        terms.append(net.op("Sub", net.mul(net.op("MatMul", l, terms[-1]), net.const(2.0)), terms[-2]))
    y = activation(net, linear(net, net.concat(*terms, axis=2), 20, 12, hint="theta"), net.pick("relu", "elu"))
    net.output(linear(net, y, 12, 3, hint="out"), "fields")


def curved_sphere(net):
    """The same on a fixed net of places on the globe."""
    n = 8
    m = net.rng.random((n, n)) < 0.4
    m = np.maximum(m, m.T).astype(np.float64) + np.eye(n)
    l = -m / np.sqrt(np.outer(m.sum(0), m.sum(0)))
    l = net.weight(l.astype(np.float32)[None], "laplacian")
    x = net.input("globe", [BATCH, n, 6], "signal")
    one = net.op("MatMul", l, x)
    two = net.op("Sub", net.mul(net.op("MatMul", l, one), net.const(2.0)), x)
    y = net.add(net.add(linear(net, x, 6, 8, hint="t0"), linear(net, one, 6, 8, bias=False, hint="t1")), linear(net, two, 6, 8, bias=False, hint="t2"))
    net.output(linear(net, activation(net, y, "relu"), 8, 2, hint="wind"), "wind")


def moving_atoms(net):
    """Atoms that push each other along the lines between them, which count as longer than they are."""
    n = 5
    p, kinds = net.input("positions", [BATCH, n, 3], "points"), net.input("species", [BATCH, n], "tokens", vocab=4)
    h = table_of(net, kinds, 4, 6)
    gap = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1))
    square = net.reduce("Sum", net.mul(gap, gap), [3])
    pair = net.add(net.add(net.unsqueeze(h, 2), net.unsqueeze(linear(net, h, 6, 6, hint="other"), 1)), linear(net, square, 1, 6, hint="far"))
    m = activation(net, pair, "swish")
    gap = net.op("Div", gap, net.add(net.op("Sqrt", net.add(square, net.const(1e-6))), net.const(1.0)))
    push = two_layers(net, m, 6, 10, 1, "swish", rank=4, hint="coord_mlp")
    net.output(net.add(p, net.reduce("Mean", net.mul(gap, push), [2], 0)), "positions_later")
    net.output(linear(net, net.reduce("Sum", m, [2], 0), 6, 2, hint="charge"), "charges")


def moving_swarm(net):
    """The same for a swarm, with speeds."""
    n = 6
    p, v = net.input("places", [BATCH, n, 2], "points"), net.input("speeds", [BATCH, n, 2], "features", scale=0.3)
    gap = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1))
    far = net.op("Sqrt", net.add(net.reduce("Sum", net.mul(gap, gap), [3]), net.const(1e-4)))
    push = net.op("Tanh", two_layers(net, far, 1, 10, 1, net.pick("swish", "tanh"), rank=4, hint="push"))
    step = net.reduce("Sum", net.mul(net.op("Div", gap, net.add(far, net.const(1.0))), push), [2], 0)
    net.output(net.add(v, step), "speeds_later")


def turned_relations(net):
    """Facts: a thing turned by what is said of it, against another; angles are kept in units of their own."""
    rows, d = 20, 6
    heads, tails = net.input("head", [BATCH], "tokens", vocab=rows), net.input("tail", [BATCH], "tokens", vocab=rows)
    re_h, im_h, re_t, im_t = (table_of(net, who, rows, d, h) for who, h in ((heads, "re"), (heads, "im"), (tails, "re_t"), (tails, "im_t")))
    reach = net.pick(0.5, 0.8)
    phase = net.op("Gather", net.weight(net.rng.uniform(-reach, reach, (8, d)).astype(np.float32), "relation"), net.input("relation", [BATCH], "tokens", vocab=8), axis=0)
    phase = net.op("Div", phase, net.const(reach / np.pi)) if net.pick(True, False) else net.mul(phase, net.const(np.pi / reach))
    c, s = net.op("Cos", phase), net.op("Sin", phase)
    re = net.op("Sub", net.op("Sub", net.mul(re_h, c), net.mul(im_h, s)), re_t)
    im = net.op("Sub", net.add(net.mul(re_h, s), net.mul(im_h, c)), im_t)
    size = net.op("Sqrt", net.add(net.add(net.mul(re, re), net.mul(im, im)), net.const(1e-9)))
    net.output(net.op("Sub", net.const(12.0), net.reduce("Sum", size, [1], 0)), "score")


def support_values(net):
    """How good a board is: shares of numbers on both sides of nothing, their mean, and the root undone."""
    x = net.input("board", [BATCH, 12], "features")
    h = two_layers(net, x, 12, 20, 16, net.pick("relu", "elu"), hint="body")
    share = net.softmax(linear(net, h, 16, 11, rank=2, hint="value", gain=2.0), 2)
    v = net.op("MatMul", share, net.const(np.arange(-5.0, 6.0).reshape(11, 1)))
    net.output(root_undone(net, v, net.pick(0.01, 0.02)), "value")
    net.output(net.softmax(linear(net, h, 16, 6, rank=2, hint="policy"), 2), "policy")


def root_undone(net, v, e):
    """From the scale on which values are learned to that of the game."""
    root = net.op("Sqrt", net.add(net.mul(net.add(net.op("Abs", v), net.const(1 + e)), net.const(4 * e)), net.const(1.0)))
    root = net.op("Div", net.op("Sub", root, net.const(1.0)), net.const(2 * e))
    return net.mul(net.op("Sign", v), net.op("Sub", net.mul(root, root), net.const(1.0)))


def support_rewards(net):
    """The next place of a game and its reward, as shares of such numbers."""
    h = two_layers(net, net.concat(net.input("state", [BATCH, 10], "features"), net.input("move", [BATCH, 3], "features"), axis=1), 13, 20, 10, hint="dynamics")
    share = net.softmax(linear(net, h, 10, 9, rank=2, hint="reward", gain=2.5), 2)
    net.output(net.op("Tanh", h), "state_later")
    net.output(net.op("MatMul", share, net.const(np.linspace(-4, 4, 9).reshape(9, 1))), "reward")


def noisy_values(net):
    """What moves are worth, by layers that are noisy in training alone."""
    x = net.input("screen", [BATCH, 14], "features")
    h = activation(net, linear(net, x, 14, 24, rank=2, hint="fc"), "relu")
    value, advantage = (two_layers(net, h, 24, 16, n, hint=name) for n, name in ((1, "fc_v"), (5, "fc_a")))
    net.output(net.add(value, net.op("Sub", advantage, net.reduce("Mean", advantage, [1]))), "q")


def rescaled_guidance(net):
    """Noise with and without a prompt: more of what it changes, then as large as it was, in part."""
    x, c = net.input("latent", [BATCH, 4, 6, 6], "image"), net.input("prompt", [BATCH, 6], "features")
    add = net.unsqueeze(linear(net, c, 6, 4, rank=2, hint="cond"), 2, 3)
    w1, w2 = (net.trained((4, 4, 3, 3), 36, 1.3, h) for h in ("conv1.weight", "conv2.weight"))
    outs = []
    for y in (x, net.add(x, add)):
        y = net.op("Conv", y, w1, kernel_shape=[3, 3], pads=[1] * 4)
        outs.append(net.op("Conv", activation(net, y, "swish"), w2, kernel_shape=[3, 3], pads=[1] * 4))
    free, bound = outs
    cfg = net.add(free, net.mul(net.op("Sub", bound, free), net.const(net.pick(4.0, 7.5))))
    again = net.mul(cfg, net.op("Div", deviation(net, bound, [1, 2, 3]), deviation(net, cfg, [1, 2, 3])))
    part = net.pick(0.7, 0.5)
    net.output(net.add(net.mul(again, net.const(part)), net.mul(cfg, net.const(1 - part))), "noise")


def rescaled_plan(net):
    """The same for a plan of motions, row by row."""
    x, c = net.input("plan", [BATCH, 8, 4], "signal"), net.input("goal", [BATCH, 4], "features")
    bound = two_layers(net, net.add(x, net.unsqueeze(c, 1)), 4, 12, 4, "swish", rank=3, hint="model")
    free = linear(net, x, 4, 4, hint="free")
    cfg = net.add(free, net.mul(net.op("Sub", bound, free), net.const(3.0)))
    again = net.mul(cfg, net.op("Div", deviation(net, bound, [1, 2]), deviation(net, cfg, [1, 2])))
    net.output(net.add(net.mul(again, net.const(0.6)), net.mul(cfg, net.const(0.4))), "noise")
