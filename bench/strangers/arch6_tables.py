"""Sixth generation: networks of rows, graphs and steps."""
import numpy as np

from blocks import activation, layer_norm, linear
from layers5 import waves
from layers6 import each_standardized, embedded, rows_to_one, standard, two_layers
from net import BATCH


# ---- columns ----

def kernel_between(net, x, rows, n, form):
    known = 1.2 * net.rng.standard_normal((1, rows, n))
    gap = net.op("Sub", net.unsqueeze(x, 1), net.const(known))
    square = net.reduce("Sum", net.mul(gap, gap), [2], 0)
    if form == "bell":
        return net.op("Exp", net.mul(square, net.const(-0.15)))
    r = net.mul(net.op("Sqrt", net.add(square, net.const(1e-6))), net.const(0.9))
    return net.mul(net.add(r, net.const(1.0)), net.op("Exp", net.op("Neg", r)))


def process(net, form, n=4, rows=10):
    x = standard(net, net.input("X", [BATCH, n], "features"), n)
    k = kernel_between(net, x, rows, n, form)
    mean = net.op("MatMul", k, net.weight((0.6 * net.rng.standard_normal((rows, 2))).astype(np.float32), "alpha"))
    m = net.rng.standard_normal((rows, rows))
    q, _ = np.linalg.qr(m)
    part = net.op("MatMul", k, net.weight((0.3 * q * net.rng.uniform(0.3, 1, rows)).astype(np.float32), "factor"))
    var = net.op("Sub", net.const(1.0), net.reduce("Sum", net.mul(part, part), [1]))
    deviation = net.op("Sqrt", net.op("Max", var, net.const(1e-3)))
    units, middle = net.rng.uniform(3, 20, 2), net.rng.uniform(-10, 40, 2)
    net.output(net.add(net.mul(mean, net.const(units)), net.const(middle)), "mean")
    net.output(net.mul(deviation, net.const(units)), "std")


def bell_process(net):
    """A mean and how sure it is, from rows that were seen, in the target's units."""
    process(net, "bell")


def rough_process(net):
    """The same where neighbours are less alike."""
    process(net, "rough", 5, 12)


def counted_claims(net):
    """How many claims to expect: columns and kinds, a linear model of a logarithm, for how long it runs."""
    kind = net.input("region", [BATCH], "tokens", vocab=5)
    x = standard(net, net.input("driver", [BATCH, 6], "features"), 6)
    y = net.op("MatMul", x, net.weight((0.3 * net.rng.standard_normal((6, 2))).astype(np.float32), "coef"))
    y = net.add(net.add(y, net.const(net.rng.uniform(-1, 0.5, 2))), embedded(net, kind, 5, 2, "region"))
    net.output(net.mul(net.op("Exp", net.clip(y, None, 4.0)), net.input("exposure", [BATCH, 1], "fraction")), "claims")


def stumps(net, x, n, count, outputs):
    """Questions about single columns, each with an answer for yes and for no."""
    asked = net.op("Gather", x, net.const(net.rng.integers(0, n, count), np.int64), axis=1)
    yes = net.op(net.pick("Less", "Greater"), asked, net.const(0.8 * net.rng.standard_normal(count)))
    share = net.op("Cast", yes, to=1)
    a, b = (net.weight((0.8 * net.rng.standard_normal((count, outputs))).astype(np.float32), h) for h in ("yes", "no"))
    return net.add(net.op("MatMul", share, a), net.op("MatMul", net.op("Sub", net.const(1.0), share), b))


def boosted_counts(net):
    """Trees one after the other, each for a little; counts from their sum."""
    x = net.input("X", [BATCH, 7], "features", scale=1.5)
    y = net.mul(stumps(net, x, 7, 12, 2), net.const(net.pick(0.1, 0.2, 0.05)))
    net.output(net.op("Exp", net.add(y, net.const(net.rng.uniform(0.2, 1.2, 2)))), "counts")


def boosted_stages(net):
    """Three stages of trees, with the same small step; shares of kinds."""
    x, total = net.input("X", [BATCH, 6], "features", scale=1.5), None
    for i in range(3):
        with net.scope(f"stage{i}"):
            y = net.mul(stumps(net, x, 6, 6, 4), net.const(0.3))
        total = net.add(total, y) if total else y
    net.output(net.softmax(net.add(total, net.const(0.5 * net.rng.standard_normal(4))), 2), "probabilities")


def weighed_counts(net, n):
    """How often each word stands there: its logarithm and one, where there is any, by how seldom it is elsewhere; length one."""
    x = net.input("counts", [BATCH, n], "counts")
    seen = net.op("Greater", x, net.const(0.0))
    x = net.op("Where", seen, net.add(net.op("Log", net.op("Max", x, net.const(1.0))), net.const(1.0)), net.const(0.0))
    x = net.mul(x, net.const(1 + np.log(50 / (1 + net.rng.integers(1, 40, n)))))
    root = net.op("Sqrt", net.add(net.reduce("Sum", net.mul(x, x), [1]), net.const(1e-8)))
    return net.op("Div", x, root)


def weighed_terms(net):
    """Words' counts to a subject."""
    n = 16
    x = weighed_counts(net, n)
    net.output(net.softmax(linear(net, x, n, 5, rank=2, hint="subject", gain=6.0), 2), "subject")


def term_topics(net):
    """Words' counts to a few topics, by directions, and which text is like it."""
    n, k = 14, 5
    x = weighed_counts(net, n)
    q, _ = np.linalg.qr(net.rng.standard_normal((n, k)))
    y = net.op("MatMul", x, net.weight(q.astype(np.float32), "topics"))
    net.output(net.op("MatMul", y, net.weight(net.rng.standard_normal((k, 9)).astype(np.float32), "texts")), "likeness")
    net.output(y, "topics")


def parts_and_back(net, n, k):
    q, _ = np.linalg.qr(net.rng.standard_normal((n, k)))
    spread = np.sort(net.rng.uniform(0.5, 3.5, k))[::-1]
    mean = net.const(net.rng.standard_normal(n))
    x = net.op("Sub", net.input("X", [BATCH, n], "features", scale=2.0), mean)
    z = net.op("Div", net.op("MatMul", x, net.weight(q.astype(np.float32), "components")), net.const(spread))
    return z, lambda v: net.add(net.op("MatMul", net.mul(v, net.const(spread)), net.weight(np.ascontiguousarray(q.T).astype(np.float32), "components_T")), mean)


def whitened_codes(net):
    """Main directions, each as wide as any other, a small network among them, and back to columns."""
    n, k = 10, 5
    z, back = parts_and_back(net, n, k)
    z = net.add(z, two_layers(net, z, k, 12, k, net.pick("tanh", "relu"), gain=0.6))
    net.output(back(z), "again")
    net.output(z, "codes")


def whitened_alarm(net):
    """How far from what is usual: main directions cut to a range, back, and what is lost beside how far the codes are."""
    n, k = 8, 4
    z, back = parts_and_back(net, n, k)
    y = back(net.clip(z, -2.0, 2.0))
    net.output(net.reduce("Sum", net.mul(z, z), [1]), "distance")
    net.output(net.reduce("Sum", net.op("Abs", net.op("Sub", "X", y)), [1]), "lost")


# ---- graphs ----

def directed_roads(net):
    """Sensors along roads that have directions: shares of what comes in, forwards and backwards, over time."""
    n, d = 6, 8
    a = net.op("Relu", net.input("roads", [BATCH, n, n], "features"))
    x = linear(net, net.input("traffic", [BATCH, n, 5], "signal"), 5, d, hint="in")
    ahead, back = rows_to_one(net, a, 2), rows_to_one(net, net.transpose(a, 0, 2, 1), 2)
    for i in range(2):
        with net.scope(f"diffusion{i}"):
            y = net.add(linear(net, net.op("MatMul", ahead, x), d, d, hint="ahead"), linear(net, net.op("MatMul", back, x), d, d, hint="back"))
            x = net.add(x, activation(net, y, net.pick("relu", "tanh")))
    net.output(linear(net, x, d, 3, hint="later"), "later")


def cited_papers(net):
    """Who cites whom, as weights that add up to one for each; two layers, and a field for each paper."""
    n, d = 6, 10
    a = net.op("Sigmoid", net.input("links", [BATCH, n, n], "features", scale=2.0))
    share = rows_to_one(net, a, net.pick(1, 2))
    x = linear(net, net.input("papers", [BATCH, n, 6], "features"), 6, d, hint="in")
    for i in range(2):
        x = activation(net, linear(net, net.op("MatMul", share, x), d, d, hint=f"gcn{i}"), net.pick("relu", "elu"))
    net.output(linear(net, x, d, 4, hint="field", gain=2.0), "field")


def folded_pairs(net):
    """Pairs of a chain's links: each pair learns from those that share one of its ends; distances as shares."""
    n, d = 6, 6
    x = linear(net, net.input("links", [BATCH, n, 5], "features"), 5, d, hint="in")
    pair = net.add(net.unsqueeze(x, 2), linear(net, net.unsqueeze(x, 1), d, d, rank=4, hint="other"))
    for i in range(2):
        with net.scope(f"triangle{i}"):
            y = layer_norm(net, pair, d, hint="norm")
            a, b = (net.mul(linear(net, y, d, d, rank=4, hint=h), net.op("Sigmoid", linear(net, y, d, d, rank=4, hint=h + "_gate"))) for h in "ab")
            a, b = net.transpose(a, 0, 3, 1, 2), net.transpose(b, 0, 3, 1, 2)
            out = net.op("MatMul", a, net.transpose(b, 0, 1, 3, 2)) if i == 0 else net.op("MatMul", net.transpose(a, 0, 1, 3, 2), b)
            pair = net.add(pair, linear(net, net.transpose(out, 0, 2, 3, 1), d, d, rank=4, hint="out"))
    net.output(net.softmax(linear(net, pair, d, 5, rank=4, hint="bins", gain=2.0), 4), "distances")


# ---- steps ----

def accumulated(net, t, steps=24):
    keep = np.cumprod(1 - np.linspace(0.005, 0.1, steps)).astype(np.float32)
    return net.unsqueeze(net.op("Gather", net.weight(keep, "alphas_cumprod"), t, axis=0), 1)


def noise_body(net, x, d, e, n_e):
    h = net.add(linear(net, x, d, 18, rank=2, hint="in"), linear(net, e, n_e, 18, rank=2, hint="time"))
    h = net.add(h, two_layers(net, layer_norm(net, h, 18, hint="n"), 18, 24, 18, net.pick("swish", "gelu"), hint="mid"))
    return linear(net, h, 18, d, rank=2, hint="out")


def step_back(net):
    """A step from one amount of noise to a smaller one, without chance."""
    d = 8
    x, t, s = net.input("x", [BATCH, d], "features"), net.input("t", [BATCH], "tokens", vocab=24), net.input("t_next", [BATCH], "tokens", vocab=24)
    a, b = accumulated(net, t), accumulated(net, s)
    eps = noise_body(net, x, d, waves(net, net.unsqueeze(net.op("Cast", t, to=1), 1), 4, 1000.0), 8)
    start = net.clip(net.op("Div", net.op("Sub", x, net.mul(net.op("Sqrt", net.op("Sub", net.const(1.0), a)), eps)), net.op("Sqrt", a)), -3.0, 3.0)
    net.output(net.add(net.mul(net.op("Sqrt", b), start), net.mul(net.op("Sqrt", net.op("Sub", net.const(1.0), b)), eps)), "x_next")


def noised_plan(net):
    """A plan of a few moves with a given noise, and what a network thinks it was without."""
    d = 10
    plan, noise, t = net.input("plan", [BATCH, d], "signal"), net.input("noise", [BATCH, d], "features"), net.input("t", [BATCH], "tokens", vocab=24)
    a = accumulated(net, t)
    x = net.add(net.mul(net.op("Sqrt", a), plan), net.mul(net.op("Sqrt", net.op("Sub", net.const(1.0), a)), noise))
    e = waves(net, net.unsqueeze(net.op("Cast", t, to=1), 1), 3, 100.0, net.pick(True, False))
    net.output(noise_body(net, x, d, e, 6), "cleaned")
    net.output(x, "noised")


def straight_path(net):
    """Two steps along straight paths from noise to data; time runs down from one."""
    d, n = 8, 2
    x, t = net.input("x", [BATCH, d], "features"), net.input("t", [BATCH, 1], "fraction")
    for i in range(n):
        with net.scope(f"step{i}"):
            left = net.op("Sub", net.const(1.0), t)
            v = noise_body(net, x, d, waves(net, net.mul(left, net.const(100.0)), 4, 100.0), 8)
            x = net.add(x, net.mul(v, net.const(0.25)))
            t = net.mul(t, net.const(0.5))
    net.output(x, "x_later")


def path_policy(net):
    """Moves of a robot as a path from noise under what it sees, within what it can."""
    d = 6
    x, t, seen = net.input("moves", [BATCH, d], "features"), net.input("t", [BATCH, 1], "fraction"), net.input("seen", [BATCH, 8], "features")
    left = net.op("Sub", net.const(1.0), t)
    e = net.concat(waves(net, net.mul(left, net.const(10.0)), 3, 100.0, False), seen, axis=1)
    v = noise_body(net, x, d, e, 14)
    y = net.op("Tanh", net.add(x, net.mul(v, left)))
    net.output(net.add(net.mul(y, net.const(np.array([1.5, 1.5, 0.5, 0.8, 0.8, 2.0]))), net.const(np.array([0.0, 0.5, 0.5, -0.3, 0.0, 1.0]))), "moves_later")


# ---- others ----

def bell_edges(net):
    """Each edge of the network is a curve of its own: bells at fixed places and a smooth part."""
    x = net.input("x", [BATCH, 5], "features")
    for i, (a, b) in enumerate(((5, 6), (6, 3))):
        with net.scope(f"kan{i}"):
            z = net.op("Div", net.op("Sub", net.unsqueeze(net.op("Tanh", x), 2), net.const(np.linspace(-1.2, 1.2, 6))), net.const(0.48))
            bells = net.reshape(net.op("Exp", net.op("Neg", net.mul(z, z))), [BATCH, a * 6], like="x")
            x = net.add(linear(net, bells, a * 6, b, rank=2, bias=False, hint="spline"), linear(net, activation(net, x, "swish"), a, b, rank=2, hint="base"))
    net.output(x, "y")


def liquid_cells(net):
    """Cells whose time depends on what they see: a step of each to where it is pulled, six times."""
    x = net.input("series", [BATCH, 6, 4], "signal")
    d, h = 10, None
    w, b, wt, bt = net.trained((4 + d, d), 4 + d, 1.2, "pull"), net.vector(d), net.trained((4 + d, d), 4 + d, 1.0, "time"), net.vector(d)
    zero = net.mul(net.op("MatMul", net.squeeze(net.slice(x, 1, 0, 1), 1), net.trained((4, d), 4, 1.0, "start")), net.const(0.5))
    h = zero
    for t in range(6):
        z = net.concat(net.squeeze(net.slice(x, 1, t, t + 1), 1), h, axis=1)
        pull, gate = net.op("Tanh", net.add(net.op("MatMul", z, w), b)), net.op("Sigmoid", net.add(net.op("MatMul", z, wt), bt))
        h = net.add(net.mul(h, net.op("Sub", net.const(1.0), gate)), net.mul(pull, gate))
    net.output(linear(net, h, d, 3, rank=2, hint="out", gain=2.0), "next")


def split_season(net):
    """A series as what is slow and what is left, each forecast by its own lines, added."""
    x = net.transpose(net.input("past", [BATCH, 24, 2], "signal"), 0, 2, 1)
    padded = net.pad(x, [0, 0, 2, 0, 0, 2], "edge")
    slow = net.op("AveragePool", padded, kernel_shape=[5], strides=[1])
    rest = each_standardized(net, net.op("Sub", x, slow), 2)
    y = net.add(linear(net, slow, 24, 6, hint="trend"), linear(net, rest, 24, 6, hint="season"))
    net.output(net.transpose(y, 0, 2, 1), "later")
