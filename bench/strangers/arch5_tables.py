"""Fifth generation: networks of rows, graphs, fields and steps of a sampler."""
import numpy as np

from blocks import activation, layer_norm, linear
from layers4 import gated
from layers5 import columns_of, standardized, table_of, waves
from net import BATCH

COLUMNS = 8


def filled_columns(net):
    """What is missing becomes the mean, columns are scaled to a range, and two layers."""
    n = COLUMNS
    x = net.input("X", [BATCH, n], "counts")
    fill = net.const(np.round(6 * net.rng.random(n), 2) + 1)
    x = net.op("Where", net.op("Equal", x, net.const(0.0)), fill, x)
    low, high = net.pick((-1.0, 1.0), (0.0, 2.0), (-0.5, 0.5))
    least, most = net.rng.uniform(0, 0.5, n), net.rng.uniform(15, 30, n)
    x = net.add(net.mul(net.op("Div", net.op("Sub", x, net.const(least)), net.const(most - least)), net.const(high - low)), net.const(low))
    x = activation(net, linear(net, x, n, 16, rank=2, hint="fc1"), net.pick("relu", "tanh"))
    net.output(net.softmax(linear(net, x, 16, 5, rank=2, hint="fc2", gain=2.0), 2), "probabilities")


def logged_target(net):
    """Products of pairs of columns, a linear model of a logarithm, and back from it."""
    n = 6
    x = standardized(net, net.input("features", [BATCH, n], "features", scale=2.0), n)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    left, right = (net.op("Gather", x, net.const([p[k] for p in pairs], np.int64), axis=1) for k in (0, 1))
    both = net.concat(x, net.mul(left, right), axis=1)
    y = net.op("MatMul", both, net.weight((0.12 * net.rng.standard_normal((n + len(pairs), 3))).astype(np.float32), "coef"))
    y = net.add(y, net.const(net.rng.uniform(0.5, 1.5, 3)))
    net.output(net.op("Sub", net.op("Exp", net.clip(y, None, 6.0)), net.const(1.0)), "price")


def whitened_parts(net):
    """Main directions, each divided by how far it varies, then which centre is near."""
    n, k = 10, 6
    q, _ = np.linalg.qr(net.rng.standard_normal((n, n)))
    spread = np.sort(net.rng.uniform(0.4, 3.0, k))[::-1]
    x = net.op("Sub", net.input("X", [BATCH, n], "features", scale=2.0), net.const(net.rng.standard_normal(n)))
    x = net.op("Div", net.op("MatMul", x, net.weight(np.ascontiguousarray(q[:, :k]).astype(np.float32), "components")), net.const(spread))
    gap = net.op("Sub", net.unsqueeze(x, 1), net.const(1.5 * net.rng.standard_normal((1, 5, k))))
    distance = net.reduce("L1" if net.pick(True, False) else "L2", gap, [2], 0)
    net.output(net.softmax(net.op("Neg", distance), 2), "shares")
    net.output(distance, "distances")


def weighed_neighbours(net):
    """The nearest of the rows that it learned, by how near each is; near in sums of absolute differences or in straight lines."""
    n, rows, k = 6, 24, net.pick(3, 5)
    known = 1.2 * net.rng.standard_normal((1, rows, n))
    gap = net.op("Sub", net.unsqueeze(net.input("X", [BATCH, n], "features"), 1), net.const(known))
    distance = net.reduce(net.pick("L1", "L2"), gap, [2], 0)
    values, index = net.topk(distance, k, axis=1, largest=0)
    weight = net.op("Div", net.const(1.0), net.op("Max", values, net.const(1e-6)))
    targets = net.op("Gather", net.weight((2 * net.rng.standard_normal((rows, 2))).astype(np.float32), "targets"), index, axis=0)
    weight = net.unsqueeze(weight, 2)
    net.output(net.op("Div", net.reduce("Sum", net.mul(targets, weight), [1], 0), net.reduce("Sum", weight, [1], 0)), "prediction")


def even_trees(net):
    """Trees that ask the same at each depth: the answers are digits of the leaf's number."""
    n, depth, trees = COLUMNS, 4, 6
    x = net.input("X", [BATCH, n], "features", scale=1.5)
    features = net.rng.integers(0, n, trees * depth)
    asked = net.op("Gather", x, net.const(features, np.int64), axis=1)
    bits = net.op("Cast", net.op("Greater", asked, net.const(0.8 * net.rng.standard_normal(trees * depth))), to=1)
    bits = net.reshape(bits, [BATCH, trees, depth], like=x)
    leaf = net.reduce("Sum", net.mul(bits, net.const(2.0 ** np.arange(depth))), [2], 0)
    leaf = net.op("Cast", net.add(leaf, net.const(16.0 * np.arange(trees))), to=7)
    values = net.op("Gather", net.weight(net.rng.standard_normal((trees * 16, 2)).astype(np.float32), "leaf_values"), leaf, axis=0)
    net.output(net.add(net.mul(net.reduce("Sum", values, [1], 0), net.const(net.pick(0.3, 0.1))), net.const(net.rng.standard_normal(2))), "raw")


def calibrated_margin(net):
    """Kernels of learned rows, a margin, and a chance from it by a fitted curve that falls."""
    n, rows = 6, 16
    x = standardized(net, net.input("X", [BATCH, n], "features", scale=2.0), n)
    gap = net.op("Sub", net.unsqueeze(x, 1), net.const(1.2 * net.rng.standard_normal((1, rows, n))))
    kernel = net.op("Exp", net.mul(net.reduce("SumSquare", gap, [2], 0) if net.opset < 18 else net.reduce("Sum", net.mul(gap, gap), [2], 0),
                                   net.const(-net.pick(0.1, 0.2))))
    margin = linear(net, kernel, rows, 2, rank=2, hint="dual", gain=2.0)
    score = net.add(net.mul(margin, net.const(-net.rng.uniform(1.2, 3.0, 2))), net.const(0.4 * net.rng.standard_normal(2)))
    net.output(net.op("Div", net.const(1.0), net.add(net.op("Exp", score), net.const(1.0))), "probability")
    net.output(margin, "margin")


def kinds_and_numbers(net):
    """Kinds as columns of ones beside numbers that the largest of a row scales; layers with gates."""
    kind, other = net.input("kind", [BATCH], "tokens", vocab=6), net.input("region", [BATCH], "tokens", vocab=4)
    x = net.input("numbers", [BATCH, 5], "features", scale=2.0)
    x = net.op("Div", x, net.reduce("Max", net.op("Abs", x), [1]))
    x = net.concat(columns_of(net, kind, 6), columns_of(net, other, 4), x, axis=1)
    h = gated(net, x, 15, 16)
    h = net.add(h, gated(net, layer_norm(net, h, 16), 16, 16))
    net.output(linear(net, h, 16, 3, rank=2, hint="out"), "demand")


def scaled_denoiser(net):
    """What goes in is divided by how large it is at this noise; what comes out is mixed with what went in."""
    d, data = net.pick(10, 12), 0.5
    x, sigma = net.input("x", [BATCH, d], "features", scale=3.0), net.input("sigma", [BATCH, 1], "fraction")
    sigma = net.mul(sigma, net.const(net.pick(4.0, 10.0)))
    total = net.add(net.mul(sigma, sigma), net.const(data * data))
    root = net.op("Sqrt", total)
    skip, out = net.op("Div", net.const(data * data), total), net.op("Div", net.mul(sigma, net.const(data)), root)
    h = net.op("Div", x, root)
    e = linear(net, waves(net, net.mul(net.op("Log", sigma), net.const(0.25)), 4, 10.0), 8, 16, rank=2, hint="noise")
    h = net.add(linear(net, h, d, 16, rank=2, hint="in"), e)
    for i in range(2):
        h = net.add(h, linear(net, activation(net, layer_norm(net, h, 16, hint=f"ln{i}"), "swish"), 16, 16, rank=2, hint=f"fc{i}"))
    net.output(net.add(net.mul(skip, x), net.mul(out, linear(net, h, 16, d, rank=2, hint="out"))), "denoised")


def guided_step(net):
    """One step of a sampler: with and without a condition, guided, and back by the share of signal that is left at this time."""
    d, w = 10, net.pick(3.0, 7.5, 2.0)
    x, c, t = net.input("x", [BATCH, d], "features"), net.input("condition", [BATCH, 6], "features"), net.input("step", [BATCH], "tokens", vocab=20)
    shares = np.cumprod(1 - np.linspace(0.01, 0.12, 20)).astype(np.float32)
    a = net.unsqueeze(net.op("Gather", net.weight(shares, "alphas_cumprod"), t, axis=0), 1)
    e = linear(net, waves(net, net.unsqueeze(net.op("Cast", t, to=1), 1), 4, 1000.0), 8, 16, rank=2, hint="time")
    body = linear(net, x, d, 16, rank=2, hint="in")
    w1, w2, b1, b2 = net.trained((16, 16), 16, 1.2, "fc1.weight"), net.trained((16, d), 16, 1.0, "fc2.weight"), net.vector(16), net.vector(d)

    def noise(extra):
        h = activation(net, net.add(net.add(body, e), extra) if extra else net.add(body, e), "swish")
        h = activation(net, net.add(net.op("MatMul", h, w1), b1), "swish")
        return net.add(net.op("MatMul", h, w2), b2)
    free, held = noise(None), noise(linear(net, c, 6, 16, rank=2, hint="condition"))
    eps = net.add(free, net.mul(net.op("Sub", held, free), net.const(w)))
    start = net.op("Div", net.op("Sub", x, net.mul(net.op("Sqrt", net.op("Sub", net.const(1.0), a)), eps)), net.op("Sqrt", a))
    net.output(eps, "noise")
    net.output(start, "start")


def four_slopes(net):
    """A field followed for two steps, each by four slopes of which the middle two count twice."""
    d, step = net.pick(6, 8), 0.5
    y = net.input("state", [BATCH, d], "features")
    w1, w2, b1, b2 = net.trained((d, 16), d, 1.2, "fc1"), net.trained((16, d), 16, 1.2, "fc2"), net.vector(16), net.vector(d)

    def slope(v):
        return net.add(net.op("MatMul", net.op("Tanh", net.add(net.op("MatMul", v, w1), b1)), w2), b2)
    for i in range(2):
        with net.scope(f"step{i}"):
            k1 = slope(y)
            k2 = slope(net.add(y, net.mul(k1, net.const(step / 2))))
            k3 = slope(net.add(y, net.mul(k2, net.const(step / 2))))
            k4 = slope(net.add(y, net.mul(k3, net.const(step))))
            middle = net.mul(net.add(k2, k3), net.const(2.0))
            y = net.add(y, net.mul(net.add(net.add(k1, middle), k4), net.const(step / 6)))
    net.output(y, "state_later")


def even_graph(net):
    """Who is near whom comes from the points; each edge counts less where there are many, at both ends."""
    n, d = 7, 10
    p = net.input("points", [BATCH, n, 3], "points")
    x = linear(net, p, 3, d, hint="in")
    gap = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1))
    square = net.reduce("Sum", net.mul(gap, gap), [3], 0)
    near = net.op("Exp", net.mul(square, net.const(-net.pick(1.0, 2.0))))
    root = net.op("Sqrt", net.reduce("Sum", near, [2]))
    share = net.op("Div", net.op("Div", near, root), net.transpose(root, 0, 2, 1))
    for i in range(2):
        y = linear(net, net.op("MatMul", share, x), d, d, hint=f"gcn{i}")
        x = net.add(activation(net, y, net.pick("relu", "elu")), x)
    net.output(linear(net, net.reduce("Mean", x, [1], 0), d, 6, rank=2, hint="graph", gain=2.0), "graph")
    net.output(linear(net, x, d, 3, hint="nodes"), "nodes")


def ended_forces(net):
    """Filters over distances that end smoothly at a radius; an energy from sums over neighbours."""
    n, d, far = 6, 10, net.pick(1.6, 2.0)
    p, kinds = net.input("positions", [BATCH, n, 3], "points"), net.input("atoms", [BATCH, n], "tokens", vocab=5)
    x = table_of(net, kinds, 5, d, "species")
    gap = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1))
    r = net.op("Sqrt", net.add(net.reduce("Sum", net.mul(gap, gap), [3]), net.const(1e-6)))
    centres = np.linspace(0, far, 8)
    basis = net.op("Exp", net.mul(net.op("Pow", net.op("Sub", r, net.const(centres)), net.const(2.0)), net.const(-8.0)))
    inside = net.op("Cast", net.op("Less", r, net.const(far)), to=1)
    cutoff = net.mul(net.mul(net.add(net.op("Cos", net.mul(r, net.const(np.pi / far))), net.const(1.0)), net.const(0.5)), inside)
    for i in range(2):
        with net.scope(f"interaction{i}"):
            f = linear(net, activation(net, linear(net, basis, 8, d, rank=4, hint="f1"), "softplus"), d, d, rank=4, hint="f2")
            f = net.mul(f, cutoff)
            y = net.reduce("Sum", net.mul(f, net.unsqueeze(linear(net, x, d, d, hint="in"), 1)), [2], 0)
            x = net.add(x, linear(net, activation(net, linear(net, y, d, d, hint="o1"), "tanh"), d, d, hint="o2"))
    net.output(net.reduce("Sum", linear(net, x, d, 1, hint="energy"), [1], 0), "energy")


def ray_field(net):
    """A point's waves, doubled again and again, to a colour and how dense it is."""
    count, d = net.pick(4, 5), 24
    p, view = net.input("points", [BATCH, 3], "points"), net.input("view", [BATCH, 3], "points")

    def encoded(v, k):
        angle = net.mul(net.unsqueeze(v, 2), net.const(np.pi * 2.0 ** np.arange(k).reshape(1, 1, k)))
        both = net.concat(net.op("Sin", angle), net.op("Cos", angle), axis=2)
        return net.concat(v, net.reshape(both, [BATCH, 6 * k], like=v), axis=1)
    x = encoded(p, count)
    h = activation(net, linear(net, x, 3 + 6 * count, d, rank=2, hint="fc1"), "relu")
    h = activation(net, linear(net, net.concat(h, x, axis=1), d + 3 + 6 * count, d, rank=2, hint="fc2"), "relu")
    net.output(net.op("Softplus", linear(net, h, d, 1, rank=2, hint="density")), "density")
    y = net.concat(linear(net, h, d, 12, rank=2, hint="bottle"), encoded(view, 2), axis=1)
    y = activation(net, linear(net, y, 27, 16, rank=2, hint="rgb1"), "relu")
    net.output(net.op("Sigmoid", linear(net, y, 16, 3, rank=2, hint="rgb2", gain=2.0)), "rgb")


def real_fourier(net):
    """A field on a line: waves by a matrix of cosines and one of sines, few of them mixed as complex numbers, and back."""
    n, c, modes = 16, 5, 5
    x = linear(net, net.input("field", [BATCH, n, 2], "features"), 2, c, hint="lift")
    angle = 2 * np.pi * np.outer(np.arange(modes), np.arange(n)) / n
    cos, sin = (net.weight((f(angle) / np.sqrt(n)).astype(np.float32), m) for f, m in ((np.cos, "cosines"), (np.sin, "sines")))
    back = [net.weight(np.ascontiguousarray((np.where(np.arange(modes) > 0, 2, 1)[:, None] * f(angle)).T / np.sqrt(n)).astype(np.float32), m)
            for f, m in ((np.cos, "inverse_cosines"), (np.sin, "inverse_sines"))]
    for i in range(2):
        with net.scope(f"fno{i}"):
            re, im = net.op("MatMul", cos, x), net.op("Neg", net.op("MatMul", sin, x))
            wr, wi = (net.trained((modes, c), 1, 0.9, m) for m in ("w_re", "w_im"))
            yr = net.op("Sub", net.mul(re, wr), net.mul(im, wi))
            yi = net.add(net.mul(re, wi), net.mul(im, wr))
            y = net.op("Sub", net.op("MatMul", back[0], yr), net.op("MatMul", back[1], yi))
            x = net.add(activation(net, net.add(y, linear(net, x, c, c, hint="skip")), "gelu"), x)
    net.output(linear(net, x, c, 2, hint="project"), "field_later")


def normal_series(net):
    """A series loses its own mean and deviation, is forecast in patches, and gets both back."""
    n, later, c = 24, 8, 3
    x = net.input("past", [BATCH, n, c], "signal")
    mean = net.reduce("Mean", x, [1])
    gap = net.op("Sub", x, mean)
    deviation = net.op("Sqrt", net.add(net.reduce("Mean", net.mul(gap, gap), [1]), net.const(1e-5)))
    h = net.transpose(net.op("Div", gap, deviation), 0, 2, 1)
    h = net.reshape(h, [BATCH, c, 6, 4], like=x)
    h = activation(net, linear(net, h, 4, 8, rank=4, hint="patch"), "gelu")
    y = linear(net, net.reshape(h, [BATCH, c, 48], like=x), 48, later, hint="head")
    y = net.transpose(y, 0, 2, 1)
    net.output(net.add(net.mul(y, deviation), mean), "later")


def wind_and_load(net):
    """Where the wind comes from in degrees, how strong it is, and what plants will give; the angle as a point on a circle."""
    n = net.pick(6, 8)
    degrees, rest = net.input("direction", [BATCH, n], "time"), net.input("weather", [BATCH, n, 4], "signal")
    angle = net.mul(degrees, net.const(np.pi / 180)) if net.pick(True, False) else net.op("Div", degrees, net.const(180 / np.pi))
    x = net.concat(net.unsqueeze(net.op("Sin", angle), 2), net.unsqueeze(net.op("Cos", angle), 2), rest, axis=2)
    h = linear(net, x, 6, 12, hint="in")
    gate = net.mul(net.op("Tanh", linear(net, h, 12, 12, hint="value")), net.op("Sigmoid", linear(net, h, 12, 12, hint="gate")))
    h = net.op("CumSum", net.mul(gate, net.const(1 / n)), net.const(1, np.int64))
    net.output(net.op("Softplus", linear(net, net.concat(h, x, axis=2), 18, 2, hint="out")), "power")


def drawn_codes(net):
    """A code for each row with given noise, by the logarithm of how uncertain it is, and the row from it."""
    n, d, act = 9, net.pick(4, 6), net.pick("relu", "gelu", "gelu_tanh")
    x, noise = net.input("x", [BATCH, n], "features"), net.input("noise", [BATCH, d], "features")
    h = activation(net, linear(net, x, n, 16, rank=2, hint="enc"), act)
    mean, logs = linear(net, h, 16, d, rank=2, hint="mu"), linear(net, h, 16, d, rank=2, hint="log_var")
    z = net.add(mean, net.mul(noise, net.op("Exp", net.mul(logs, net.const(0.5)))))
    h = activation(net, linear(net, z, d, 16, rank=2, hint="dec1"), act)
    net.output(linear(net, h, 16, n, rank=2, hint="dec2"), "x_again")
    net.output(mean, "mean")


def picture_of_places(net):
    """Colours of places in a plane, from waves that are doubled, and from a code that says which picture."""
    count, d = net.pick(3, 4), 20
    p, code = net.input("xy", [BATCH, 2], "points"), net.input("code", [BATCH, 6], "features")
    angle = net.mul(net.unsqueeze(p, 2), net.const(np.pi * 2.0 ** np.arange(count).reshape(1, 1, count)))
    x = net.reshape(net.concat(net.op("Sin", angle), net.op("Cos", angle), axis=2), [BATCH, 4 * count], like=p)
    h = linear(net, net.concat(x, code, axis=1), 4 * count + 6, d, rank=2, hint="fc1")
    for i in range(2):
        h = net.add(h, linear(net, activation(net, layer_norm(net, h, d, hint=f"ln{i}"), net.pick("relu", "swish", "mish")), d, d, rank=2, hint=f"fc{i + 2}"))
    net.output(net.op("Sigmoid", linear(net, h, d, 3, rank=2, hint="rgb", gain=2.0)), "rgb")


def nearest_centres(net):
    """Rows scaled to a range, how far each learned centre is, and the mean of the answers of those that are near."""
    n, centres, k = 5, 14, 3
    x = net.input("rows", [BATCH, n], "features", scale=2.0)
    x = net.op("Div", net.op("Sub", x, net.const(net.rng.uniform(-3, -2, n))), net.const(net.rng.uniform(4, 6, n)))
    x = net.add(net.mul(x, net.const(net.pick(2.0, 3.0))), net.const(-1.0))
    gap = net.op("Sub", net.unsqueeze(x, 1), net.const(0.8 * net.rng.standard_normal((1, centres, n))))
    distance = net.reduce(net.pick("L1", "L2"), gap, [2], 0)
    values, index = net.topk(distance, k, axis=1, largest=0)
    weight = net.unsqueeze(net.op("Div", net.const(1.0), net.op("Max", values, net.const(1e-6))), 2)
    answers = net.op("Gather", net.weight((2 * net.rng.standard_normal((centres, 3))).astype(np.float32), "answers"), index, axis=0)
    net.output(net.op("Div", net.reduce("Sum", net.mul(answers, weight), [1], 0), net.reduce("Sum", weight, [1], 0)), "answer")
    net.output(values, "distances")
