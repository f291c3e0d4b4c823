"""Seventh generation: rows of columns, trees, kernels, levels, and series."""
import numpy as np

from blocks import activation, linear
from layers7 import table_of, two_layers
from net import BATCH


def pair_machine(net):
    """Which of the columns go together: all pairs at once, by a square of sums less a sum of squares."""
    fields = 5
    ids = net.input("columns", [BATCH, fields], "tokens", vocab=24)
    v = table_of(net, ids, 24, 6, "v")
    total = net.reduce("Sum", v, [1], 0)
    pairs = net.op("Sub", net.mul(total, total), net.reduce("Sum", net.mul(v, v), [1], 0))
    pairs = net.mul(net.reduce("Sum", pairs, [1]), net.const(0.5))
    first = net.reduce("Sum", table_of(net, ids, 24, 1, "w"), [1], 0)
    net.output(net.op("Sigmoid", net.mul(net.add(pairs, first), net.const(0.2))), "click")


def pair_ratings(net):
    """How somebody rates a film, from numbers: pairs of columns by few numbers each, and a layer."""
    x = net.input("row", [BATCH, 8], "features")
    w = net.trained((8, 5), 8, 1.0, "V")
    total = net.op("MatMul", x, w)
    pairs = net.op("Sub", net.op("Pow", total, net.const(2.0)), net.op("MatMul", net.mul(x, x), net.trained((8, 5), 12, 0.6, "V2")))
    pairs = net.mul(net.reduce("Sum", pairs, [1]), net.const(0.5))
    net.output(net.add(linear(net, x, 8, 1, rank=2, hint="linear"), pairs), "rating")


def crossed_columns(net):
    """Columns times layers of what they have become, three times over."""
    n = 10
    x = x0 = net.op("Div", net.op("Sub", net.input("row", [BATCH, n], "features"), net.const(0.2 * net.rng.standard_normal(n))), net.const(1.3))
    for i in range(3):
        x = net.add(net.mul(x0, linear(net, x, n, n, rank=2, hint=f"cross{i}", gain=0.6)), x)
    net.output(net.op("Sigmoid", linear(net, x, n, 2, rank=2, hint="out", gain=1.5)), "clicks")


def crossed_shops(net):
    """The same on few numbers for each column, beside layers."""
    ids = net.input("shop", [BATCH, 3], "tokens", vocab=15)
    x = x0 = net.concat(net.op("Flatten", table_of(net, ids, 15, 3), axis=1), net.input("numbers", [BATCH, 3], "features"), axis=1)
    for i in range(2):
        x = net.add(net.mul(x0, linear(net, x, 12, 12, rank=2, hint=f"cross{i}", gain=0.5)), x)
    deep = two_layers(net, x0, 12, 16, 8, net.pick("relu", "swish"), hint="deep")
    net.output(linear(net, net.concat(x, deep, axis=1), 20, 1, rank=2, hint="out"), "sales")


def oblivious(net, x, columns, trees, depth, hint="trees"):
    """Trees that ask the same at each level: their answers are the digits of a leaf's number."""
    with net.scope(hint):
        total = None
        for t in range(trees):
            which = net.rng.permutation(columns)[:depth]
            asked = net.op("Gather", x, net.const(which, np.int64), axis=1)
            bits = net.op("Cast", net.op("Greater", asked, net.const(0.6 * net.rng.standard_normal(depth))), to=1)
            place = net.op("MatMul", bits, net.const((2.0 ** np.arange(depth)).reshape(depth, 1)))
            leaf = net.op("Gather", net.weight(net.rng.standard_normal(2 ** depth).astype(np.float32), f"leaf{t}"), net.op("Cast", place, to=7), axis=0)
            total = net.add(total, leaf) if total else leaf
        return total


def oblivious_credit(net):
    """Whether a credit is paid back, by such trees."""
    x = net.input("row", [BATCH, 9], "features")
    net.output(net.op("Sigmoid", net.add(net.mul(oblivious(net, x, 9, 4, 3), net.const(0.5)), net.const(net.pick(-0.3, 0.2)))), "paid")


def oblivious_prices(net):
    """A price: trees, and a line for what they leave."""
    x = net.input("row", [BATCH, 8], "features")
    net.output(net.op("Exp", net.mul(net.add(oblivious(net, x, 8, 3, 4), linear(net, x, 8, 1, rank=2, hint="line")), net.const(0.4))), "price")


def seen_words(net):
    """What a text is about, from which words are in it and which are not."""
    words, kinds = 14, 5
    x = net.op("Cast", net.op("Greater", net.input("text", [BATCH, words], "counts"), net.const(2.0)), to=1)
    p = net.rng.uniform(0.05, 0.95, (kinds, words))
    score = net.op("MatMul", x, net.weight(np.log(p / (1 - p)).T.astype(np.float32), "feature_log_prob"))
    score = net.add(score, net.weight(np.log(1 - p).sum(1).astype(np.float32), "neg_prob"))
    score = net.add(score, net.weight(np.log(net.rng.dirichlet(np.ones(kinds) * 3)).astype(np.float32), "class_log_prior"))
    net.output(net.softmax(score, 2) if net.pick(True, False) else net.op("LogSoftmax", score, axis=1), "kinds")


def seen_signs(net):
    """An illness, from signs that are there and those that are not; as logarithms."""
    x = net.op("Cast", net.op("Greater", net.input("signs", [BATCH, 10], "features"), net.const(0.3)), to=1)
    p = net.rng.uniform(0.1, 0.9, (4, 10))
    score = net.op("MatMul", x, net.weight(np.log(p / (1 - p)).T.astype(np.float32), "log_odds"))
    score = net.add(score, net.weight(np.log(1 - p).sum(1).astype(np.float32), "absent"))
    net.output(net.op("LogSoftmax", net.add(score, net.weight(np.log([0.4, 0.3, 0.2, 0.1]).astype(np.float32), "prior")), axis=1), "illness")


def bent(net, x, n):
    """Each column by a power of its own, on both sides of nothing."""
    power = net.rng.uniform(0.3, 1.7, n)
    above, below = net.op("Max", x, net.const(0.0)), net.op("Max", net.op("Neg", x), net.const(0.0))
    parts = []
    for side, lam in ((above, power), (below, 2 - power)):
        y = net.op("Sub", net.op("Pow", net.add(side, net.const(1.0)), net.const(lam)), net.const(1.0))
        parts.append(net.op("Div", y, net.const(lam)))
    return net.op("Where", net.op("Less", x, net.const(0.0)), net.op("Neg", parts[1]), parts[0])


def bent_columns(net):
    """Columns bent until they are even, standardized, and layers."""
    n = 9
    x = bent(net, net.input("row", [BATCH, n], "features", scale=2.0), n)
    x = net.op("Div", net.op("Sub", x, net.const(0.3 * net.rng.standard_normal(n))), net.const(np.exp(0.3 * net.rng.standard_normal(n))))
    net.output(two_layers(net, x, n, 16, 2, net.pick("relu", "tanh"), hint="mlp"), "targets")


def bent_alarm(net):
    """Columns bent in the same way, and how far they are from what is usual."""
    n = 7
    x = bent(net, net.input("machine", [BATCH, n], "features", scale=1.5), n)
    y = two_layers(net, x, n, 4, n, "tanh", hint="again")
    gap = net.op("Sub", x, y)
    net.output(net.reduce("Sum", net.op("Abs", gap), [1], 0), "alarm")


def power_kernel(net):
    """How alike a row is to each of some rows, as a power of their product and one more; two kinds."""
    n, support = 6, 9
    x = net.input("row", [BATCH, n], "features")
    alike = net.mul(net.op("MatMul", x, net.weight(net.rng.standard_normal((n, support)).astype(np.float32), "support")), net.const(net.pick(0.2, 0.15)))
    alike = net.op("Pow", net.add(alike, net.const(net.pick(1.0, 0.5))), net.const(3.0))
    net.output(linear(net, alike, support, 2, rank=2, hint="dual"), "decision")


def power_wine(net):
    """The same with two layers, to a number."""
    x = net.op("Div", net.input("wine", [BATCH, 8], "features"), net.const(1.5))
    alike = net.op("MatMul", x, net.trained((8, 10), 8, 0.7, "vectors"))
    alike = net.op("Pow", net.add(alike, net.const(1.0)), net.const(2.0))
    net.output(linear(net, alike, 10, 1, rank=2, hint="coef"), "quality")


def ordered(net, h, n, levels):
    """Shares of levels, from the chances of being above each border."""
    line = linear(net, h, n, 1, rank=2, bias=False, hint="line", gain=2.0)
    above = net.op("Sigmoid", net.add(line, net.const(np.sort(net.rng.standard_normal(levels - 1) * 1.5)[::-1])))
    one, none = (net.add(net.mul(net.slice(above, 1, 0, 1), net.const(0.0)), net.const(v)) for v in (1.0, 0.0))
    return net.op("Sub", net.concat(one, above, axis=1), net.concat(above, none, axis=1))


def ordered_ages(net):
    """How old somebody is, in levels that come one after the other."""
    h = two_layers(net, net.input("face", [BATCH, 12], "features"), 12, 20, 10, net.pick("relu", "elu"), hint="body")
    net.output(ordered(net, h, 10, 6), "ages")


def ordered_grades(net):
    """A grade for each text, and what it is worth."""
    h = activation(net, linear(net, net.input("text", [BATCH, 10], "features"), 10, 16, rank=2, hint="fc"), "relu")
    share = ordered(net, h, 16, 5)
    net.output(net.op("MatMul", share, net.const(np.arange(5.0).reshape(5, 1))), "mean_grade")
    net.output(share, "grades")


def reversible(net, x, axis, n, inner):
    """Each series by its own mean and deviation, and numbers that training chose; afterwards all of it backwards."""
    mean = net.reduce("Mean", x, [axis])
    gap = net.op("Sub", x, mean)
    root = net.op("Sqrt", net.add(net.reduce("Mean", net.mul(gap, gap), [axis]), net.const(1e-5)))
    shape = (1, 1, n) if axis == 1 else (1, n, 1)
    w = net.weight(np.exp(0.4 * net.rng.standard_normal(shape)).astype(np.float32), "affine_weight")
    b = net.weight((0.4 * net.rng.standard_normal(shape)).astype(np.float32), "affine_bias")
    y = inner(net.add(net.mul(net.op("Div", gap, root), w), b))
    y = net.op("Div", net.op("Sub", y, b), w)
    return net.add(net.mul(y, root), mean)


def reversible_series(net):
    """Series made even and back, with one line between."""
    x = net.input("series", [BATCH, 12, 3], "signal")
    y = reversible(net, x, 1, 3, lambda v: net.transpose(linear(net, net.transpose(v, 0, 2, 1), 12, 6, hint="line"), 0, 2, 1))
    net.output(y, "series_later")


def reversible_tokens(net):
    """Each series is a token; they ask each other; and back."""
    x = net.input("series", [BATCH, 4, 10], "signal")

    def inner(v):
        h = linear(net, v, 10, 12, hint="embed")
        share = net.softmax(net.mul(net.op("MatMul", h, net.transpose(h, 0, 2, 1)), net.const(12 ** -0.5)), 3)
        return linear(net, net.add(h, net.op("MatMul", share, linear(net, h, 12, 12, hint="v"))), 12, 5, hint="out")
    net.output(reversible(net, x, 2, 4, inner), "series_later")


def hidden_causes(net):
    """How likely each sign is, if any of some causes may bring it: one less what all of them leave."""
    causes = net.op("Sigmoid", linear(net, net.input("row", [BATCH, 8], "features"), 8, 4, rank=2, hint="causes", gain=2.0))
    strength = net.weight(net.rng.uniform(0.1, 0.9, (1, 4, 5)).astype(np.float32), "strength")
    left = net.op("Sub", net.const(1.0), net.mul(net.unsqueeze(causes, 2), strength))
    net.output(net.op("Sub", net.const(1.0), net.reduce("Prod", left, [1], 0)), "signs")


def clear_lines(net):
    """How much light comes through layers of a sky, as a product of what each lets through."""
    h = two_layers(net, net.input("layers", [BATCH, 5, 4], "signal"), 4, 12, 3, net.pick("relu", "tanh"), rank=3, hint="layer")
    through = net.op("Exp", net.op("Neg", net.op("Softplus", h)))
    net.output(net.reduce("Prod", through, [1], 0), "light")
    net.output(net.reduce("Min", through, [1], 0), "darkest")
