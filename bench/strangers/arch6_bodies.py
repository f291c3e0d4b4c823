"""Sixth generation: who acts, and bodies: moves of games, motors and joints, atoms and liquids."""
import numpy as np

from blocks import activation, linear, recurrent
from layers6 import embedded, harmonics, last_of, standard, two_layers, with_ones, wrapped_gaps
from net import BATCH
from vision import conv


# ---- who acts ----

def value_and_advantage(net, h, n, moves):
    """How good it is to be here, and how much better each move is than the mean of all."""
    value = two_layers(net, h, n, 12, 1, hint="value")
    advantage = two_layers(net, h, n, 12, moves, hint="advantage")
    return net.add(value, net.op("Sub", advantage, net.reduce("Mean", advantage, [1])))


def dueling_values(net):
    """What each move of a game is worth."""
    x = standard(net, net.input("state", [BATCH, 8], "features"), 8)
    h = activation(net, linear(net, x, 8, 20, rank=2, hint="body"), net.pick("relu", "tanh"))
    net.output(value_and_advantage(net, h, 20, 5), "q")


def dueling_screen(net):
    """Four screens of a game to the worth of each move; those that are not allowed are worth nothing."""
    x = net.op("Div", net.input("screens", [BATCH, 4, 8, 8], "pixels"), net.const(255.0))
    h = activation(net, conv(net, x, 4, 8, 3, stride=2, hint="c1"), "relu")
    h = net.op("Flatten", activation(net, conv(net, h, 8, 8, 3, stride=2, hint="c2"), "relu"), axis=1)
    q = value_and_advantage(net, h, 32, 6)
    allowed = net.op("Greater", net.input("allowed", [BATCH, 6], "points"), net.const(-0.6))
    net.output(net.op("Where", allowed, q, net.const(net.pick(-50.0, -100.0))), "q")


def legal_moves(net):
    """A board and what may be moved: shares of the moves that are allowed, and how good the place is."""
    x = conv(net, net.input("board", [BATCH, 3, 6, 6], "image"), 3, 10, 3, hint="in")
    x = net.add(x, conv(net, activation(net, x, "relu"), 10, 10, 3, hint="res"))
    h = net.op("Flatten", activation(net, conv(net, x, 10, 2, 1, hint="squeeze"), "relu"), axis=1)
    score = linear(net, h, 72, 9, rank=2, hint="policy", gain=2.0)
    legal = net.op("Greater", net.input("legal", [BATCH, 9], "points"), net.const(-0.4))
    net.output(net.softmax(net.op("Where", legal, score, net.const(net.pick(-1e9, -1e4))), 2), "moves")
    net.output(net.op("Tanh", two_layers(net, h, 72, 12, 1, hint="value")), "value")


def bounded_actions(net):
    """How much to push and to steer, within what the motors can."""
    x = net.clip(standard(net, net.input("observation", [BATCH, 10], "features"), 10), -5.0, 5.0)
    h = two_layers(net, x, 10, 20, 16, net.pick("relu", "elu"), hint="actor")
    low, high = np.array([-2.0, -0.5, 0.0]), np.array([2.0, 1.5, 3.0])
    y = net.op("Tanh", linear(net, activation(net, h, "relu"), 16, 3, rank=2, hint="mean"))
    net.output(net.add(net.mul(y, net.const((high - low) / 2)), net.const((high + low) / 2)), "action")


def remembered_actions(net):
    """Joints over time, a recurrent layer, and the next angle of each about where it rests."""
    x = net.transpose(standard(net, net.input("history", [BATCH, 6, 7], "signal"), 7), 1, 0, 2)
    h, _ = recurrent(net, x, net.pick("GRU", "LSTM"), 7, 14, hint="memory")
    y = net.op("Tanh", linear(net, last_of(net, net.transpose(h, 1, 0, 2)), 14, 4, rank=2, hint="policy"))
    net.output(net.add(net.mul(y, net.const(np.array([0.25, 0.5, 0.5, 0.3]))), net.const(np.array([0.1, 0.8, -1.5, 0.2]))), "angles")


# ---- bodies ----

def atoms(net, n):
    return net.input("positions", [BATCH, n, 3], "points"), net.input("species", [BATCH, n], "tokens", vocab=4)


def pair_energy(net, square, kinds, n, d):
    """Gaussians of distances, filters, sums over neighbours; an energy for each, and what it has alone."""
    r = net.op("Sqrt", net.add(square, net.const(1e-4)))
    basis = net.op("Exp", net.mul(net.op("Pow", net.op("Sub", r, net.const(np.linspace(0, 2, 6))), net.const(2.0)), net.const(-6.0)))
    f = two_layers(net, basis, 6, 12, d, net.pick("swish", "tanh"), rank=4, hint="filter")
    x = embedded(net, kinds, 4, d, "species")
    y = net.reduce("Sum", net.mul(f, net.unsqueeze(x, 1)), [2], 0)
    y = net.add(x, linear(net, activation(net, y, "swish"), d, d, hint="update"))
    own = net.op("Gather", net.weight(net.rng.uniform(-6, -1, (4, 1)).astype(np.float32), "atomref"), kinds, axis=0)
    return net.add(two_layers(net, y, d, 10, 1, "swish", rank=3, hint="energy"), own)


def periodic_atoms(net):
    """Atoms in a box that repeats: each sees the nearest picture of every other."""
    n = 5
    p, kinds = atoms(net, n)
    gap = wrapped_gaps(net, p, net.pick(1.2, 1.5))
    e = pair_energy(net, net.reduce("Sum", net.mul(gap, gap), [3]), kinds, n, 8)
    net.output(net.reduce("Sum", e, [1], 0), "energy")
    net.output(e, "energies")


def periodic_liquid(net):
    """A liquid's bodies: pushes between all pairs of a repeating box, and where each will be."""
    n, side = 6, 1.4
    p = net.input("positions", [BATCH, n, 3], "points")
    v = net.input("speeds", [BATCH, n, 3], "features", scale=0.3)
    gap = wrapped_gaps(net, p, side)
    square = net.add(net.reduce("Sum", net.mul(gap, gap), [3]), net.const(0.05))
    weight = two_layers(net, net.concat(square, net.op("Div", net.const(0.2), square), axis=3), 2, 12, 1, "swish", rank=4, hint="push")
    push = net.reduce("Sum", net.mul(gap, weight), [2], 0)
    later = net.add(v, net.mul(push, net.const(0.1)))
    net.output(net.add(p, net.mul(later, net.const(0.5))), "positions_later")
    net.output(later, "speeds_later")


def open_molecule(net):
    """A molecule alone: energies from distances of all pairs, and what each atom has alone."""
    n = 5
    p, kinds = atoms(net, n)
    gap = net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1))
    net.output(net.reduce("Sum", pair_energy(net, net.reduce("Sum", net.mul(gap, gap), [3]), kinds, n, 10), [1], 0), "energy")


def harmonic_atoms(net):
    """Directions to neighbours as harmonics, weighed by distance and kind, added up; what does not turn with the whole is read."""
    n = 5
    p, kinds = atoms(net, n)
    y, r = harmonics(net, net.op("Sub", net.unsqueeze(p, 2), net.unsqueeze(p, 1)), 3)
    w = net.mul(net.op("Exp", net.mul(r, net.const(-1.0))), net.unsqueeze(embedded(net, kinds, 4, 1), 1))
    a = net.reduce("Sum", net.mul(y, w), [2], 0)
    net.output(linear(net, a, 7, 3, bias=False, hint="dipole"), "dipole")
    square = net.mul(a, a)
    net.output(two_layers(net, square, 7, 12, 2, "swish", rank=3, hint="energy"), "energy")


def lit_points(net):
    """Colours of points that change with where one looks from: numbers of each for harmonics of the direction."""
    n = 6
    p, eye = net.input("points", [BATCH, n, 3], "points"), net.input("eye", [BATCH, 3], "features", scale=2.0)
    y, _ = harmonics(net, net.op("Sub", p, net.unsqueeze(eye, 1)), 2)
    k = net.reshape(two_layers(net, p, 3, 16, 21, net.pick("relu", "swish"), rank=3, hint="coefficients"), [BATCH, n, 7, 3], like=p)
    colour = net.reduce("Sum", net.mul(k, net.unsqueeze(y, 3)), [2], 0)
    net.output(net.op("Relu", net.add(colour, net.const(0.5))), "colours")


def joint_chain(net):
    """Angles of an arm to where its points are: turns and moves, one after the other, of points with a one behind."""
    angle = net.op("Tanh", linear(net, net.input("command", [BATCH, 5], "features"), 5, 2, rank=2, hint="angles"))
    rest = net.input("points", [BATCH, 4, 3], "points")
    x = with_ones(net, rest, 4)
    for i, part in enumerate(net.split(angle, [1, 1], 1)):
        base = np.eye(4)
        base[3, :3] = (0.3 * (i + 1), 0.1, -0.2)
        turn = np.zeros((4, 4))
        turn[i, 2], turn[2, i] = 1.0, -1.0
        m = net.add(net.const(base[None]), net.mul(net.unsqueeze(part, 2), net.const(turn[None])))
        x = net.op("MatMul", x, m)
    net.output(net.slice(x, 2, 0, 3), "points_later")
