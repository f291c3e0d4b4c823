"""Third generation: sets, series, filters, graphs, molecules, poses, samplers, and what is not a neural network at all."""
import numpy as np
from onnx import TensorProto

from arch_sequence import embed
from blocks import activation, attention, glu, layer_norm, linear, recurrent
from net import BATCH, trained
from vision import to_tokens


def prototypes(net):
    """A few kinds, each known by a direction; how sharply they are told apart is learned as a logarithm."""
    x, d = net.input("x", [BATCH, 10], "features"), net.pick(8, 12)
    h = activation(net, linear(net, x, 10, 20, rank=2, hint="fc1"), net.pick("relu", "gelu", "tanh"))
    y = net.op("LpNormalization", linear(net, h, 20, d, rank=2, hint="fc2"), axis=1, p=2)
    known = net.op("LpNormalization", net.trained((6, d), d, 1.0, "prototypes"), axis=1, p=2)
    sharp = net.op("Exp", net.weight(np.array(net.pick(1.2, 1.9, 2.6), np.float32), "logit_scale"))
    net.output(net.mul(net.op("MatMul", y, net.transpose(known, 1, 0)), sharp), "logits")


def set_transformer(net):
    """A few points of its own look at all, all look back, and a seed gathers."""
    d, m, n = net.pick(12, 16), 3, 10
    x = linear(net, net.input("points", [BATCH, n, 3], "points"), 3, d, hint="embed", gain=1.5)

    def block(q, kv, lq, lkv, hint):
        with net.scope(hint):
            h = layer_norm(net, net.add(q, attention(net, q, lq, d, 2, kv=kv, kv_length=lkv, like=x)), d, hint="ln0")
            return layer_norm(net, net.add(h, activation(net, linear(net, h, d, d, hint="fc_o"), "relu")), d, hint="ln1")

    def own(count, hint):
        return net.add(net.mul(net.slice(x, 1, 0, count), net.const(0.0)), net.weight(net.rng.standard_normal((1, count, d)).astype(np.float32), hint))
    for i in range(2):
        with net.scope(f"isab{i}"):
            x = block(x, block(own(m, "I"), x, m, n, "mab0"), n, m, "mab1")
    net.output(linear(net, net.squeeze(block(own(1, "S"), x, 1, n, "pma"), 1), d, 4, rank=2, hint="dec", gain=1.5), "prediction")


def gated_residual(net, x, n_in, n, hint):
    with net.scope(hint):
        skip = x if n_in == n else linear(net, x, n_in, n, hint="skip")
        h = linear(net, activation(net, linear(net, x, n_in, n, hint="fc1"), "elu"), n, 2 * n, hint="fc2")
        return layer_norm(net, net.add(skip, glu(net, h, n, 2)), n, 1e-3)


def fusion(net):
    """Series: variables are weighted, an LSTM, attention, quantiles in the target's own units."""
    n, length, variables = net.pick(8, 10), 6, 3
    x = net.input("past", [BATCH, length, variables], "signal")
    weights = net.softmax(gated_residual(net, x, variables, variables, "selection"), 3)
    parts = [gated_residual(net, net.slice(x, 2, i, i + 1), 1, n, f"variable{i}") for i in range(variables)]
    h = None
    for i, p in enumerate(parts):
        p = net.mul(p, net.slice(weights, 2, i, i + 1))
        h = net.add(h, p) if h else p
    about, _ = embed(net, net.input("series", [BATCH], "tokens", vocab=9), 9, n)  # which series it is, and so where a state begins
    y = net.transpose(h, 1, 0, 2)
    for i in range(net.pick(1, 2)):
        states = [net.unsqueeze(linear(net, about, n, n, rank=2, hint=f"context_{s}{i}"), 0) for s in "hc"]
        y, _ = recurrent(net, y, "LSTM", n, n, states=states, hint=f"lstm{i}")
    y = layer_norm(net, net.add(h, net.transpose(y, 1, 0, 2)), n, hint="lstm_norm")
    y = layer_norm(net, net.add(y, attention(net, y, length, n, 2)), n, hint="attn_norm")
    q = linear(net, gated_residual(net, net.slice(y, 1, length - 2, length), n, n, "final"), n, 3, hint="quantiles")
    net.output(net.add(net.mul(q, net.const(net.pick(12.5, 3.7))), net.const(net.pick(40.0, -6.0))), "quantiles")


def kalman(net):
    """Two steps of a filter: predicted, then corrected; a matrix of two by two is inverted by hand."""
    n = 4
    x, p = net.input("state", [BATCH, n, 1], "features"), net.input("noise", [BATCH, n, n], "features")
    z = net.input("measured", [BATCH, 2, 2], "features")
    eye = np.eye(n)
    f = net.weight((eye + 0.3 * net.rng.standard_normal((n, n))).astype(np.float32), "F")
    h = net.weight(net.rng.standard_normal((2, n)).astype(np.float32), "H")
    p = net.add(net.op("MatMul", p, net.transpose(p, 0, 2, 1)), net.const(eye * 0.5))
    for t in range(2):
        with net.scope(f"step{t}"):
            x = net.op("MatMul", f, x)
            p = net.add(net.op("MatMul", net.op("MatMul", f, p), net.transpose(f, 1, 0)), net.const(eye * 0.1))
            pht = net.op("MatMul", p, net.transpose(h, 1, 0))
            s = net.add(net.op("MatMul", h, pht), net.const(np.eye(2) * 0.3))
            (a, b), (c, d) = ([net.slice(row, 2, j, j + 1) for j in range(2)] for row in (net.slice(s, 1, i, i + 1) for i in range(2)))
            det = net.op("Sub", net.mul(a, d), net.mul(b, c))
            turned = net.concat(net.concat(d, net.op("Neg", b), axis=2), net.concat(net.op("Neg", c), a, axis=2), axis=1)
            gain = net.op("MatMul", pht, net.op("Div", turned, det))
            miss = net.op("Sub", net.slice(z, 2, t, t + 1), net.op("MatMul", h, x))
            x = net.add(x, net.op("MatMul", gain, miss))
            p = net.op("MatMul", net.op("Sub", net.const(eye), net.op("MatMul", gain, h)), p)
    net.output(x, "estimate")
    net.output(p, "covariance")


def sage(net):
    """The largest of what neighbours say, along edges that have a direction."""
    n, d, count = 10, net.pick(6, 8), 24
    x = net.input("x", [n, 5], "features")
    edge = net.input("edge_index", [2, count], "edges", nodes=n)
    source, target = (net.squeeze(net.slice(edge, 0, i, i + 1), 0) for i in range(2))
    for i, k in enumerate((5, d)):
        with net.scope(f"conv{i}"):
            message = net.op("Gather", linear(net, x, k, d, rank=2, hint="pool"), source, axis=0)
            place = net.op("Mul", net.unsqueeze(target, 1), net.const(np.ones((1, d)), np.int64))
            low = net.const(np.full((n, d), net.pick(-1e9, -3.4e38)))
            best = net.op("ScatterElements", low, place, message, axis=0, reduction="max")
            best = net.op("Where", net.op("Less", best, net.const(-1e8)), net.const(0.0), best)
            x = net.add(linear(net, x, k, d, rank=2, bias=False, hint="self"), linear(net, best, d, d, rank=2, hint="neighbours"))
            x = activation(net, x, net.pick("relu", "elu")) if i == 0 else x
    net.output(x, "nodes")


def sch_net(net):
    """Atoms: distances as Gaussians, filters from them that vanish at a cutoff."""
    n, d, bells = 6, net.pick(8, 12), 8
    place = net.input("positions", [BATCH, n, 3], "points")
    x, _ = embed(net, net.input("atoms", [BATCH, n], "tokens", vocab=8), 8, d)
    between = net.op("Sub", net.unsqueeze(place, 2), net.unsqueeze(place, 1))
    r = net.op("Sqrt", net.add(net.reduce("Sum", net.mul(between, between), [3]), net.const(1e-6)))
    offset = net.op("Sub", r, net.const(np.linspace(0, 3, bells)))
    g = net.op("Exp", net.mul(net.mul(offset, offset), net.const(-0.5 / net.pick(0.4, 0.6) ** 2)))
    cut = net.mul(net.add(net.op("Cos", net.mul(r, net.const(np.pi / 4))), net.const(1.0)), net.const(0.5))
    cut = net.mul(cut, net.const((1 - np.eye(n))[None, :, :, None]))
    for i in range(2):
        with net.scope(f"interaction{i}"):
            def shifted(t):
                return net.op("Sub", net.op("Softplus", t), net.const(np.log(2)))
            w = net.mul(linear(net, shifted(linear(net, g, bells, d, rank=4, hint="filter1")), d, d, rank=4, hint="filter2"), cut)
            y = net.reduce("Sum", net.mul(w, net.unsqueeze(linear(net, x, d, d, bias=False, hint="in2f"), 1)), [2], 0)
            x = net.add(x, linear(net, shifted(linear(net, y, d, d, hint="f2out")), d, d, hint="dense"))
    net.output(net.reduce("Sum", linear(net, x, d, 1, hint="atomwise"), [1], 0), "energy")


def nearest(net):
    """Neighbours among what was seen, weighted by how near they are."""
    x, seen = net.input("x", [BATCH, 5], "features"), net.rng.standard_normal((20, 5)).astype(np.float32)
    table = net.weight(seen, "fit_X")
    gap = net.op("Sub", net.unsqueeze(x, 1), net.unsqueeze(table, 0))
    if net.pick(True, False):
        distance = net.op("Sqrt", net.reduce("Sum", net.mul(gap, gap), [2], 0))
    else:
        distance = net.reduce("Sum", net.op("Abs", gap), [2], 0)
    near, at = net.topk(distance, net.pick(3, 5), largest=0)
    w = net.op("Reciprocal", net.add(near, net.const(1e-6)))
    values = net.op("Gather", net.weight(net.rng.standard_normal(20).astype(np.float32), "y"), at, axis=0)
    net.output(net.op("Div", net.reduce("Sum", net.mul(w, values), [1]), net.reduce("Sum", w, [1])), "prediction")


def kernel_machine(net):
    """Standardized columns, Gaussians around support vectors, one score for each label, of which several may hold."""
    x, n = net.input("x", [BATCH, 5], "features"), net.pick(10, 14)
    x = net.op("Div", net.op("Sub", x, net.const(0.3 * net.rng.standard_normal((1, 5)))), net.const(np.exp(0.4 * net.rng.standard_normal((1, 5)))))
    s = net.rng.standard_normal((n, 5)).astype(np.float32)
    cross = net.mul(net.op("MatMul", x, net.weight(s.T.copy(), "support")), net.const(-2.0))
    d = net.add(net.add(cross, net.reduce("Sum", net.mul(x, x), [1])), net.const((s.astype(np.float64) ** 2).sum(1)[None]))
    k = net.op("Exp", net.mul(d, net.const(-0.5 / net.pick(1.3, 1.8, 2.5) ** 2)))
    score = net.add(net.op("MatMul", k, net.weight((1.5 * net.rng.standard_normal((n, 4))).astype(np.float32), "dual_coef")), net.vector(4, 0.0, 0.4, "intercept"))
    net.output(net.op("Sigmoid", score), "probabilities")


def boosted(net):
    """Trees as products of matrices: which questions are answered with yes, which leaf that is, what the leaves add up to."""
    columns, trees, depth = 6, net.pick(3, 4), 2
    x = net.op("Cast", net.input("ordinals", [BATCH, columns], "tokens", vocab=12), to=TensorProto.FLOAT)
    inner, leaves = 2 ** depth - 1, 2 ** depth
    total = None
    for t in range(trees):
        with net.scope(f"tree{t}"):
            pick = np.zeros((columns, inner), np.float32)
            pick[net.rng.integers(0, columns, inner), np.arange(inner)] = 1
            yes = net.op("LessOrEqual" if net.opset >= 12 else "Less", net.op("MatMul", x, net.weight(pick, "A")),
                         net.weight(net.rng.integers(1, 5, (1, inner)).astype(np.float32), "B"))
            path = np.array([[1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]], np.float32)
            where = net.op("MatMul", net.op("Cast", yes, to=TensorProto.FLOAT), net.weight(path, "C"))
            leaf = net.op("Cast", net.op("Equal", where, net.const([[2.0, 1.0, 0.0, -1.0]])), to=TensorProto.FLOAT)
            leaf = net.mul(leaf, net.op("Cast", net.op("Greater", net.const([[9.0] * leaves]), where), to=TensorProto.FLOAT))
            y = net.op("MatMul", leaf, net.weight((0.8 * net.rng.standard_normal((leaves, 1))).astype(np.float32), "E"))
            total = net.add(total, y) if total else y
    total = net.add(total, net.const(np.float32(net.pick(-0.7, 0.6, 1.1))))  # the logit of the share of ones
    net.output(net.op("Sigmoid", total), "probability")


def discriminant(net):
    """Whitened columns; one score decides between two kinds, densities tell of groups."""
    x, n = net.input("x", [BATCH, 6], "features"), 4
    x = net.op("Sub", x, net.const(0.4 * net.rng.standard_normal((1, 6))))
    y = net.op("Div", net.op("MatMul", x, net.weight(trained(net.rng, (6, n), 6), "components")), net.const(np.exp(0.3 * net.rng.standard_normal((1, n)))))
    score = net.op("Sigmoid", net.add(net.op("MatMul", y, net.weight((0.9 * net.rng.standard_normal((n, 1))).astype(np.float32), "coef")), net.vector(1, 0.3, 0.1)))
    net.output(net.concat(net.op("Sub", net.const(1.0), score), score, axis=1), "probabilities")
    parts = []
    for i in range(3):
        with net.scope(f"group{i}"):
            chol = np.triu(0.3 * net.rng.standard_normal((n, n)), 1) + np.diag(np.exp(0.2 * net.rng.standard_normal(n)))
            z = net.op("MatMul", net.op("Sub", y, net.const(net.rng.standard_normal((1, n)))), net.weight(chol.astype(np.float32), "precision"))
            q = net.mul(net.reduce("Sum", net.mul(z, z), [1]), net.const(-0.5))
            parts.append(net.add(q, net.const(float(np.log(np.diag(chol)).sum()) - 1.0 - 0.3 * i)))
    net.output(net.softmax(net.concat(*parts, axis=1), 2), "groups")


def multi_task(net):
    """Experts for all tasks, and for each task its own mixture of them."""
    x, d, act = net.input("x", [BATCH, 8], "features"), 10, net.pick("relu", "swish", "selu")
    experts = [activation(net, linear(net, x, 8, d, rank=2, hint=f"expert{i}"), act) for i in range(3)]
    pairs = net.pick(True, False)  # of no and yes
    stack = net.concat(*[net.unsqueeze(e, 1) for e in experts], axis=1)
    for i, name in enumerate(("click", "buy")):
        with net.scope(name):
            gate = net.softmax(linear(net, x, 8, 3, rank=2, bias=False, hint="gate", gain=1.5), 2)
            y = net.squeeze(net.op("MatMul", net.unsqueeze(gate, 1), stack), 1)
            y = activation(net, linear(net, y, d, 6, rank=2, hint="tower"), act)
            y = net.op("Sigmoid", linear(net, y, 6, 1, rank=2, hint="out", gain=1.6))
            net.output(net.concat(net.op("Sub", net.const(1.0), y), y, axis=1) if pairs else y, name)


def raft(net):
    """How far things moved: likenesses of all pairs, and an estimate that a gated cell corrects again and again."""
    d, side = 8, 6
    a, b = (net.input(n, [BATCH, 3, side, side], "image") for n in ("first", "second"))
    w, bias = net.trained((d, 3, 3, 3), 27, 1.4, "fnet"), net.vector(d)
    fa, fb = (net.op("Conv", t, w, bias, kernel_shape=[3, 3], pads=[1] * 4) for t in (a, b))
    volume = net.op("MatMul", to_tokens(net, fa, d, side * side), net.reshape(fb, [BATCH, d, side * side], like=a))
    volume = net.reshape(net.transpose(net.op("Div", volume, net.const(d ** 0.5)), 0, 2, 1), [BATCH, side * side, side, side], like=a)
    h = net.op("Tanh", fa)
    zr, q = net.trained((2 * d, 2 * d, 3, 3), 18 * d, 1.4, "convzr"), net.trained((d, 2 * d, 3, 3), 18 * d, 1.4, "convq")
    base = np.stack(np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side)), -1)
    samples = net.opset >= 16 and net.pick(True, True, False)
    flow, to_flow = None, net.trained((2, d, 3, 3), 9 * d, 1.2, "flow_head")
    look, back = net.trained((d, side * side, 1, 1), side * side, 1.4, "convc"), net.trained((d, 2, 3, 3), 18, 1.0, "convf")
    for t in range(net.pick(2, 3)):
        with net.scope(f"update{t}"):
            x = activation(net, net.op("Conv", volume, look, kernel_shape=[1, 1]), "relu")
            x = net.add(x, net.op("Conv", flow, back, kernel_shape=[3, 3], pads=[1] * 4)) if flow else x
            if flow and samples:  # what stands where the estimate points to
                grid = net.add(net.mul(net.transpose(net.op("Tanh", flow), 0, 2, 3, 1), net.const(0.5)), net.const(base[None]))
                x = net.add(x, net.op("GridSample", fb, grid, align_corners=1, padding_mode="border"))
            z, r = net.split(net.op("Sigmoid", net.op("Conv", net.concat(h, x, axis=1), zr, kernel_shape=[3, 3], pads=[1] * 4)), [d, d], 1)
            new = net.op("Tanh", net.op("Conv", net.concat(net.mul(r, h), x, axis=1), q, kernel_shape=[3, 3], pads=[1] * 4))
            h = net.add(net.mul(net.op("Sub", net.const(1.0), z), h), net.mul(z, new))
            step = net.op("Conv", h, to_flow, kernel_shape=[3, 3], pads=[1] * 4)
            flow = net.add(flow, step) if flow else step
    net.output(flow, "flow")
