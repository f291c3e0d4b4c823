"""Fourth generation: networks of rows, graphs, points, forces and forecasts."""
import numpy as np

from blocks import activation, batch_norm, layer_norm, linear
from layers4 import block, gated, learned, log1p, norm_of, scaled_gemm, self_attention, table
from net import BATCH

COLUMNS = 8


def standard(net, x, n):
    """As a scaler fits it: minus the mean, by the deviation or by its inverse."""
    mean, deviation = 2 * net.rng.standard_normal(n), np.exp(0.5 * net.rng.standard_normal(n))
    x = net.op("Sub", x, net.const(mean))
    return net.op("Div", x, net.const(deviation)) if net.pick(True, False) else net.mul(x, net.const(1 / deviation))


def units(net, y, n):
    """Back to the target's own units."""
    return net.add(net.mul(y, net.const(np.exp(0.8 * net.rng.standard_normal(n)) + 0.3)), net.const(3 * net.rng.standard_normal(n)))


def price(net):
    """Scaled columns, two layers, and a price in its own units."""
    act = net.pick("relu", "elu", "swish", "tanh")
    x = standard(net, net.input("columns", [BATCH, COLUMNS], "features", scale=2.0), COLUMNS)
    x = activation(net, batch_norm(net, linear(net, x, COLUMNS, 16, rank=2, hint="fc1"), 16), act)
    x = activation(net, linear(net, x, 16, 16, rank=2, hint="fc2"), act)
    net.output(units(net, linear(net, x, 16, 3, rank=2, hint="fc3"), 3), "price")


def one_against_rest(net):
    """A score for each label against all others, then shares of their sum."""
    n = net.pick(4, 12)
    x = standard(net, net.input("X", [BATCH, COLUMNS], "features", scale=2.0), COLUMNS)
    chance = net.op("Sigmoid", linear(net, x, COLUMNS, n, rank=2, hint="coef", gain=2.0))
    net.output(net.op("Div", chance, net.reduce("Sum", chance, [1])), "probabilities")


def softmax_regression(net):
    """Counts, their logarithm, pairs of them multiplied, and shares of many labels."""
    x = log1p(net, net.input("counts", [BATCH, 6], "counts"))
    both = net.reshape(net.mul(net.unsqueeze(x, 2), net.unsqueeze(x, 1)), [BATCH, 36], like=x)
    y = linear(net, net.concat(x, net.mul(both, net.const(0.1)), axis=1), 42, 11, rank=2, hint="coef", gain=1.5)
    net.output(net.softmax(y, 2), "probabilities")


def mlp_classifier(net):
    """As libraries for tables have it: layers of one width, many labels."""
    act = net.pick("relu", "tanh", "sigmoid")
    x = net.input("float_input", [BATCH, 10], "features")
    for i in range(net.pick(2, 3)):
        x = activation(net, linear(net, x, 10 if i == 0 else 14, 14, rank=2, hint=f"coefficient{i}"), act)
    net.output(net.softmax(linear(net, x, 14, 12, rank=2, hint="last", gain=2.0), 2), "probabilities")


def self_scaled(net):
    """Layers whose weights have a scale beside them; thresholds instead of gates."""
    alpha = net.pick(0.5, 0.125, 3.0)
    x = net.input("x", [BATCH, 9], "features")
    x = activation(net, scaled_gemm(net, x, 9, 16, alpha, "l1"), net.pick("selu", "relu"))
    x = net.op("ThresholdedRelu", scaled_gemm(net, x, 16, 16, alpha, "l2"), alpha=net.pick(0.2, 0.6))
    net.output(scaled_gemm(net, x, 16, 4, alpha, "l3"), "y")


def res_table(net):
    """Residual layers over columns, with a norm in front of each."""
    d, act = net.pick(12, 16), net.pick("relu", "gelu", "mish")
    x = linear(net, net.input("num", [BATCH, COLUMNS], "features"), COLUMNS, d, rank=2, hint="first")
    for i in range(net.pick(2, 3)):
        with net.scope(f"block{i}"):
            y = batch_norm(net, x, d) if net.pick(True, False) else layer_norm(net, x, d)
            x = net.add(x, linear(net, activation(net, linear(net, y, d, 20, rank=2, hint="up"), act), 20, d, rank=2, hint="down"))
    net.output(linear(net, activation(net, layer_norm(net, x, d, hint="last"), "relu"), d, 2, rank=2, hint="head"), "out")


def dense_graph(net):
    """An adjacency of numbers, with every node its own neighbour; degrees divide."""
    n, d = 8, net.pick(8, 12)
    x, a = net.input("nodes", [BATCH, n, 5], "features"), net.input("weights", [BATCH, n, n], "fraction")
    a = net.add(a, net.const(np.eye(n)))
    root = net.op("Reciprocal", net.op("Sqrt", net.reduce("Sum", a, [2])))
    a = net.mul(net.mul(a, root), net.transpose(root, 0, 2, 1))
    for i in range(2):
        x = activation(net, net.op("MatMul", a, linear(net, x, 5 if i == 0 else d, d, hint=f"gc{i}")), net.pick("relu", "elu"))
    net.output(linear(net, x, d, 4, hint="each"), "labels")
    net.output(linear(net, net.reduce("Max", x, [1], 0), d, 3, rank=2, hint="all"), "graph")


def skeleton(net):
    """Joints along time: along bones, then along time."""
    joints, c, n = 5, 3, 8
    bones = (np.abs(np.arange(joints)[:, None] - np.arange(joints)[None]) == 1).astype(np.float64)
    x = net.input("joints", [BATCH, c, 6, joints], "signal")
    edge = net.op("Sigmoid", learned(net, (joints, joints), "importance", 1.0))
    a = net.add(net.mul(edge, net.const(bones)), net.const(np.eye(joints)))
    a = net.op("Div", a, net.reduce("Sum", a, [0]))
    for i in range(2):
        with net.scope(f"st_gcn{i}"):
            m = c if i == 0 else n
            w = net.trained((n, m, 1, 1), m)
            y = net.op("MatMul", net.op("Conv", x, w, net.vector(n), kernel_shape=[1, 1]), a)
            y = activation(net, norm_of(net, y, n), "relu")
            t = net.op("Conv", y, net.trained((n, n, 3, 1), 3 * n), net.vector(n), kernel_shape=[3, 1], pads=[1, 0, 1, 0])
            x = activation(net, net.add(norm_of(net, t, n, "tcn"), y), "relu")
    net.output(linear(net, net.reduce("Mean", x, [2, 3], 0), n, 12, rank=2, hint="fcn", gain=2.0), "action")


def patch_forecast(net):
    """A series in patches that overlap not, its mean and deviation put back in the end."""
    d, n = 16, 24
    x = net.input("past", [BATCH, n], "signal")
    mean = net.reduce("Mean", x, [1])
    centred = net.op("Sub", x, mean)
    deviation = net.op("Sqrt", net.add(net.reduce("Mean", net.mul(centred, centred), [1]), net.const(1e-5)))
    t = linear(net, net.reshape(net.op("Div", centred, deviation), [BATCH, 6, 4], like=x), 4, d, hint="embed")
    t = net.add(t, learned(net, (1, 6, d), "W_pos"))
    for i in range(2):
        t = block(net, t, 6, d, 2, first=net.pick(True, False), hint=f"layers/{i}", like=x)
    y = linear(net, net.reshape(t, [BATCH, 6 * d], like=x), 6 * d, 8, rank=2, hint="head")
    net.output(net.add(net.mul(y, deviation), mean), "future")


def weather(net):
    """Stations: what each measures, where it stands, and what all say; forecasts in degrees and millimetres."""
    n, d = 7, 16
    x = standard(net, net.input("measured", [BATCH, n, 5], "features", scale=2.0), 5)
    x = net.add(linear(net, x, 5, d, hint="embed"), learned(net, (1, n, d), "station"))
    x = net.add(x, self_attention(net, layer_norm(net, x, d, hint="n1"), n, d, 2))
    x = net.add(x, linear(net, gated(net, layer_norm(net, x, d, hint="n2"), d, 20, rank=3), 20, d, hint="down"))
    y = linear(net, layer_norm(net, x, d, hint="final"), d, 2, hint="head")
    net.output(units(net, y, 2), "forecast")


def ensemble(net):
    """Three small networks, added up; how far they are apart."""
    x = net.input("inputs", [BATCH, COLUMNS], "features")
    x = net.op("Div", x, net.const(net.pick(1.5, 2.5)))
    parts = []
    for i in range(3):
        with net.scope(f"member{i}"):
            h = activation(net, linear(net, x, COLUMNS, 12, rank=2, hint="fc1"), net.pick("tanh", "relu"))
            parts.append(linear(net, h, 12, 3, rank=2, hint="fc2"))
    mean = net.op("Div", net.op("Sum", *parts), net.const(3.0))
    apart = [net.op("Pow", net.op("Sub", p, mean), net.const(2.0)) for p in parts]
    net.output(mean, "mean")
    net.output(net.op("Sqrt", net.add(net.op("Div", net.op("Sum", *apart), net.const(2.5)), net.const(1e-6))), "apart")


def recommender(net):
    """Who, what and how often: products of embeddings, wide and deep."""
    who, what = net.input("user", [BATCH], "tokens"), net.input("item", [BATCH], "tokens")
    often = log1p(net, net.input("visits", [BATCH, 3], "counts"))
    u, v = table(net, who, 50, 10, "user"), table(net, what, 50, 10, "item")
    deep = net.concat(table(net, who, 50, 8, "user_mlp"), table(net, what, 50, 8, "item_mlp"), often, axis=1)
    for i, (a, b) in enumerate(((19, 16), (16, 10))):
        deep = activation(net, linear(net, deep, a, b, rank=2, hint=f"mlp{i}"), "relu")
    both = net.concat(net.mul(u, v), deep, axis=1)
    net.output(net.op("Sigmoid", linear(net, both, 20, 1, rank=2, hint="predict", gain=2.0)), "chance")


def spring_net(net):
    """Bodies and the forces between each pair, from how far they are apart."""
    n = 5
    p = net.input("places", [BATCH, n, 2], "points")
    apart = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1))
    distance = net.op("Sqrt", net.add(net.reduce("Sum", net.mul(apart, apart), [3]), net.const(0.01)))
    h = activation(net, linear(net, net.concat(distance, net.op("Reciprocal", distance), axis=3), 2, 12, hint="f1"), net.pick("tanh", "softplus"))
    force = net.op("Div", net.mul(linear(net, h, 12, 1, hint="f2"), apart), distance)
    net.output(net.reduce("Sum", force, [2], 0), "force")
    net.output(net.reduce("Mean", distance, [2], 0), "distance")
