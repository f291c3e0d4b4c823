"""Eighth generation: what is computed in many steps, so that last bits grow: loops, filters, chaos, samplers."""
import numpy as np

from blocks import activation, linear
from layers8 import body, f32, rounds, table, two, wide_radius
from net import BATCH


def storm_steps(net):
    """Air that turns (Lorenz), a few small steps in a loop, and what follows from it."""
    x = net.mul(linear(net, net.input("air", [BATCH, 6], "features"), 6, 3, rank=2, hint="start"), net.const(4.0))
    c = {"dt": f32(net.pick(0.01, 0.02)), "ten": f32(10), "r": f32(28), "b": f32(8 / 3)}
    cuts = [(f"at{k}", "Constant", np.array([k])) for k in range(4)]
    parts = [(h, "Slice", ["x", f"at{k}", f"at{k + 1}", "at1"]) for k, h in enumerate("pqr_")][:3]
    steps = [*((k if k != "r" else "rho", "Constant", v) for k, v in c.items()), *cuts, ("p", *parts[0][1:]), ("q", *parts[1][1:]), ("z", *parts[2][1:]),
             ("qp", "Sub", ["q", "p"]), ("dp", "Mul", ["qp", "ten"]), ("rz", "Sub", ["rho", "z"]), ("prz", "Mul", ["p", "rz"]), ("dq", "Sub", ["prz", "q"]),
             ("pq", "Mul", ["p", "q"]), ("bz", "Mul", ["b", "z"]), ("dz", "Sub", ["pq", "bz"]), ("d", "Concat", ["dp", "dq", "dz"], {"axis": 1}),
             ("dd", "Mul", ["d", "dt"]), ("y", "Add", ["x", "dd"])]
    y = rounds(net, 20, x, steps, "y")
    net.output(two(net, net.mul(y, net.const(0.05)), 3, 12, 2, "tanh"), "rain")
    net.output(y, "later")


def settled_state(net):
    """A state that is computed until it moves no more (deep equilibrium), at most forty times."""
    x = linear(net, net.input("demand", [BATCH, 6], "features"), 6, 8, rank=2, hint="inject")
    w = wide_radius(net, 8, 0.6)
    steps = [("wx", "MatMul", ["x", f"^{w}"]), ("s", "Add", ["wx", f"^{x}"]), ("y", "Tanh", ["s"]), ("d", "Sub", ["y", "x"]), ("a", "Abs", ["d"]),
             ("m", "ReduceMax", ["a"], {"keepdims": 0}), ("tol", "Constant", f32(1e-4)), ("on", "Greater", ["m", "tol"])]
    y = rounds(net, 40, net.mul(x, net.const(0.0)), steps, "y", stop="on")
    net.output(linear(net, y, 8, 3, rank=2, hint="read", gain=2.0), "supply")


def echo_state(net):
    """A reservoir at the edge of chaos that nobody trained, and a line that reads it."""
    n = 10
    x = linear(net, net.input("series", [BATCH, n, 2], "signal"), 2, 12, hint="in", gain=1.5)
    w, h = wide_radius(net, 12, net.pick(1.1, 1.4)), None
    for k in range(n):
        with net.scope(f"t{k}"):
            u = net.squeeze(net.slice(x, 1, k, k + 1), 1)
            h = net.op("Tanh", u if h is None else net.add(u, net.op("MatMul", h, w)))
    net.output(linear(net, h, 12, 2, rank=2, hint="out", gain=2.0), "next")


def said_letters(net):
    """Letter after letter in a loop, each chosen as the likeliest after the last: a choice that comes back."""
    rows, n = 12, 8
    h = net.op("Tanh", linear(net, net.input("voice", [BATCH, 5], "features"), 5, n, rank=2, hint="start"))
    letters, w, v = table(net, rows, n, "letters"), wide_radius(net, n, 0.9), table(net, n, rows, "speak")
    steps = [("l", "MatMul", ["x", f"^{v}"]), ("id", "ArgMax", ["l"], {"axis": 1, "keepdims": 0}), ("e", "Gather", [f"^{letters}", "id"], {"axis": 0}),
             ("wx", "MatMul", ["x", f"^{w}"]), ("s", "Add", ["wx", "e"]), ("y", "Tanh", ["s"]), ("spoken", "Identity", ["id"]), ("score", "ReduceMax", ["l"], {"keepdims": 0})]
    _, ids, scores = rounds(net, 6, h, steps, "y", n=3, scanned=[("spoken", "int"), ("score", "float")])
    net.output(net.transpose(ids, 1, 0), "letters_said")
    net.output(scores, "scores")


def crowded_ponds(net):
    """How many fish there are each year in ponds that lead to each other: doubling what is not known."""
    x = net.op("Sigmoid", net.input("ponds", [BATCH, 6], "features"))
    m = 0.85 * np.eye(6) + 0.15 / 6
    for k in range(7):
        with net.scope(f"year{k}"):
            x = net.mul(net.mul(x, net.op("Sub", net.const(1.0), x)), net.const(net.pick(3.7, 3.9) if k == 0 else 3.8))
            x = net.op("MatMul", x, net.const(m))
    net.output(x, "fish")


def orbit_angles(net):
    """Where a body is on its way (Kepler), by five of Newton's steps."""
    h = linear(net, net.input("elements", [BATCH, 5], "features"), 5, 4, rank=2, hint="fit")
    mean, much = net.op("Sigmoid", net.slice(h, 1, 0, 2)), net.mul(net.op("Sigmoid", net.slice(h, 1, 2, 4)), net.const(0.8))
    mean = net.mul(mean, net.const(np.pi))
    e = mean
    for k in range(5):
        with net.scope(f"newton{k}"):
            over = net.op("Sub", net.op("Sub", e, net.mul(much, net.op("Sin", e))), mean)
            e = net.op("Sub", e, net.op("Div", over, net.op("Sub", net.const(1.0), net.mul(much, net.op("Cos", e)))))
    net.output(net.op("Sub", net.const(1.0), net.mul(much, net.op("Cos", e))), "distance")
    net.output(e, "anomaly")


def ringing_filter(net):
    """Samples through a filter that rings for long, one after the other in a Scan; then a few numbers of what comes out."""
    n = 24
    x = net.transpose(net.input("samples", [BATCH, n], "signal"), 1, 0)
    fade, turn = net.pick(0.9, 0.97), net.pick(0.4, 1.1)
    a = f32([2 * fade * np.cos(turn), -fade * fade])
    steps = [("a", "Constant", a[0]), ("b", "Constant", a[1]), ("p", "Mul", ["s", "a"]), ("q", "Mul", ["t", "b"]), ("pq", "Add", ["p", "q"]), ("y", "Add", ["pq", "u"]),
             ("old", "Identity", ["s"]), ("seen", "Identity", ["y"])]
    turn_ = body("filter", [("s", "float"), ("t", "float"), ("u", "float")], steps, [("y", "float"), ("old", "float"), ("seen", "float")])
    zero = net.mul(net.squeeze(net.slice(x, 0, 0, 1), 0), net.const(0.0))
    *_, seen = net.op("Scan", zero, zero, x, n=3, body=turn_, num_scan_inputs=1)
    seen = net.transpose(seen, 1, 0)
    net.output(two(net, seen, n, 12, 3, "tanh"), "what")
    net.output(seen, "rung")


def last_noise(net):
    """Four steps of a sampler from noise alone, the first dividing by almost nothing."""
    x = net.input("noise", [BATCH, 8], "features")
    for k, (a, b) in enumerate(zip((0.02, 0.2, 0.6, 0.9), (0.2, 0.6, 0.9, 0.999))):
        with net.scope(f"step{k}"):
            e = net.mul(two(net, x, 8, 16, 8, "swish", hint="eps"), net.const(0.3))
            clean = net.op("Div", net.op("Sub", x, net.mul(e, net.const(np.sqrt(1 - a)))), net.const(np.sqrt(a)))
            clean = net.clip(clean, -1.0, 1.0)
            x = net.add(net.mul(clean, net.const(np.sqrt(b))), net.mul(e, net.const(np.sqrt(1 - b))))
    net.output(x, "drawn")


def heated_rod(net):
    """Heat along a rod, twenty explicit steps near the limit of what is stable."""
    x = net.unsqueeze(linear(net, net.input("heaters", [BATCH, 4], "features"), 4, 12, rank=2, hint="lay"), 1)
    r = net.pick(0.45, 0.49)
    kernel = net.weight(f32([[[r, 1 - 2 * r, r]]]), "stencil")
    for k in range(12):
        with net.scope(f"t{k}"):
            x = net.op("Conv", x, kernel, kernel_shape=[3], pads=[1, 1])
    net.output(net.squeeze(x, 1), "heat")


def softened_votes(net):
    """Capsules that agree in rounds: shares of shares."""
    u = linear(net, net.input("parts", [BATCH, 6, 5], "features"), 5, 12, hint="votes")
    u, b = net.reshape(u, [BATCH, 6, 3, 4]), None
    for k in range(4):
        with net.scope(f"round{k}"):
            c = net.softmax(b, 3, 2) if b else net.const(np.full((1, 6, 3), 1 / 3))
            v = activation(net, net.reduce("Sum", net.mul(net.unsqueeze(c, 3), u), [1]), "tanh")
            a = net.reduce("Sum", net.mul(u, v), [3], 0)
            b = net.add(b, a) if b else a
    net.output(net.squeeze(v, 1), "wholes")
