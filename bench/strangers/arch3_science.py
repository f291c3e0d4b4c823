"""Third generation: poses, samplers, equations and densities."""
import numpy as np

from blocks import activation, linear, mlp
from net import BATCH
from vision import conv


def unit(net, x, axis):
    return net.op("Div", x, net.op("Sqrt", net.add(net.reduce("Sum", net.mul(x, x), [axis]), net.const(1e-8))))


def cross(net, a, b, axis):
    (ax, ay, az), (bx, by, bz) = (net.split(v, [1, 1, 1], axis) for v in (a, b))
    return net.concat(*[net.op("Sub", net.mul(p, q), net.mul(r, s)) for p, q, r, s in ((ay, bz, az, by), (az, bx, ax, bz), (ax, by, ay, bx))], axis=axis)


def pose_net(net):
    """A quaternion and six numbers for two rotations, that turn points; an angle in all four quadrants."""
    x, n = net.input("x", [BATCH, 10], "features"), 5
    points = net.input("points", [BATCH, n, 3], "points")
    h = activation(net, linear(net, x, 10, 24, rank=2, hint="fc1"), net.pick("relu", "elu", "tanh"))
    q = unit(net, linear(net, h, 24, 4, rank=2, hint="quaternion"), 1)
    real, *imaginary = net.split(q, [1, 1, 1, 1], 1)
    axis = net.unsqueeze(net.concat(*imaginary, axis=1), 1)
    axis = net.add(net.mul(points, net.const(0.0)), axis)
    inner = net.add(cross(net, axis, points, 2), net.mul(net.unsqueeze(real, 1), points))
    turned = net.add(points, net.mul(cross(net, axis, inner, 2), net.const(2.0)))
    first, second = net.split(linear(net, h, 24, 6, rank=2, hint="rotation"), [3, 3], 1)
    b1 = unit(net, first, 1)
    along = net.reduce("Sum", net.mul(b1, second), [1])
    b2 = unit(net, net.op("Sub", second, net.mul(along, b1)), 1)
    where = net.pick(1, 2)  # columns or rows, as this network has them
    matrix = net.concat(*[net.unsqueeze(b, where) for b in (b1, b2, cross(net, b1, b2, 1))], axis=where)
    moved = net.op("MatMul", turned, matrix)
    px, py, _ = net.split(moved, [1, 1, 1], 2)
    angle = net.op("Atan", net.op("Div", py, net.add(px, net.const(1e-9))))
    half = net.op("Where", net.op("Less", py, net.const(0.0)), net.const(-np.pi), net.const(np.pi))
    net.output(net.op("Where", net.op("Less", px, net.const(0.0)), net.add(angle, half), angle), "heading")
    net.output(moved, "moved")


def sampler(net):
    """Two steps from noise to an image: a time's sines, scale and shift for channels, and back from latents to pixels."""
    n, half, shift = net.pick(8, 10), 6, net.pick(0, 1)
    x = net.input("latents", [BATCH, 4, 6, 6], "image")
    t = net.input("timestep", [BATCH, 1], "time")
    frequency = np.exp(-np.log(1000.0) * np.arange(half) / (half - shift))
    act = net.pick("swish", "gelu")
    weights = [net.trained((m, k, 3, 3), 9 * k, 1.2, h) for m, k, h in ((n, 4, "conv_in"), (n, n, "conv"), (4, n, "conv_out"))]
    kind = net.pick("velocity", "noise")
    for i, (alpha, later) in enumerate(((0.6, 0.85), (0.85, 1.0))):
        with net.scope(f"step{i}"):
            sigma, ahead = np.sqrt(1 - alpha ** 2), np.sqrt(1 - later ** 2)
            angle = net.mul(net.mul(t, net.const(1.0 if i == 0 else 0.5)), net.const(frequency[None]))
            e = net.concat(net.op("Cos", angle), net.op("Sin", angle), axis=1)
            e = activation(net, linear(net, e, 2 * half, 2 * n, rank=2, hint="time_embedding"), act)
            scale, move = (net.unsqueeze(p, 2, 3) for p in net.split(linear(net, e, 2 * n, 2 * n, rank=2, hint="time_proj", gain=0.7), [n, n], 1))
            h = net.op("Conv", x, weights[0], kernel_shape=[3, 3], pads=[1] * 4)
            h = net.add(net.mul(h, net.add(scale, net.const(1.0))), move)
            h = net.add(h, net.op("Conv", activation(net, h, act), weights[1], kernel_shape=[3, 3], pads=[1] * 4))
            out = net.op("Conv", activation(net, h, act), weights[2], kernel_shape=[3, 3], pads=[1] * 4)
            if kind == "velocity":
                clean = net.op("Sub", net.mul(x, net.const(alpha)), net.mul(out, net.const(sigma)))
                noise = net.add(net.mul(x, net.const(sigma)), net.mul(out, net.const(alpha)))
            else:
                clean = net.op("Div", net.op("Sub", x, net.mul(out, net.const(sigma))), net.const(alpha))
                noise = out
            x = net.add(net.mul(clean, net.const(later)), net.mul(noise, net.const(ahead))) if ahead > 0 else clean
    x = net.add(net.op("Div", x, net.const(net.pick(0.36, 1.53))), net.const(net.pick(0.116, 0.061)))
    x = conv(net, activation(net, conv(net, x, 4, n, 3, hint="decode1"), act), n, 3, 3, hint="decode2")
    net.output(net.clip(net.add(net.mul(x, net.const(0.5)), net.const(0.5)), 0.0, 1.0), "image")


def neural_ode(net):
    """Steps of Runge and Kutta through a field that a network gives."""
    n, step = net.pick(3, 4), net.pick(0.25, 0.4)
    x = net.input("start", [BATCH, n], "features")
    w1, w2 = net.trained((n + 1, 16), n + 1, 1.2, "field1"), net.trained((16, n), 16, 1.0, "field2")
    b1, b2 = net.vector(16), net.vector(n)
    clock = net.mul(net.slice(x, 1, 0, 1), net.const(0.0))

    def field(y, t):
        h = net.op("Tanh", net.add(net.op("MatMul", net.concat(y, net.add(clock, net.const(t)), axis=1), w1), b1))
        return net.add(net.op("MatMul", h, w2), b2)
    for i in range(2):
        with net.scope(f"step{i}"):
            t = i * step
            k1 = field(x, t)
            k2 = field(net.add(x, net.mul(k1, net.const(step / 2))), t + step / 2)
            k3 = field(net.add(x, net.mul(k2, net.const(step / 2))), t + step / 2)
            k4 = field(net.add(x, net.mul(k3, net.const(step))), t + step)
            inner = net.mul(net.add(k2, k3), net.const(2.0))
            x = net.add(x, net.mul(net.add(net.add(k1, inner), k4), net.const(step / 6)))
    net.output(x, "end")


def mixture_density(net):
    """Shares, middles and widths of bells, and how likely a value is."""
    x, y = net.input("x", [BATCH, 6], "features"), net.input("y", [BATCH, 1], "features")
    k, act = net.pick(3, 4), net.pick("tanh", "elu", "softplus")
    h = activation(net, linear(net, x, 6, 16, rank=2, hint="hidden"), act)
    share = net.op("LogSoftmax", linear(net, h, 16, k, rank=2, hint="pi"), axis=1)
    middle = linear(net, h, 16, k, rank=2, hint="mu", gain=1.5)
    width = net.add(net.op("Softplus", linear(net, h, 16, k, rank=2, hint="sigma")), net.const(net.pick(0.1, 0.05)))
    z = net.op("Div", net.op("Sub", y, middle), width)
    part = net.op("Sub", net.mul(net.mul(z, z), net.const(-0.5)), net.add(net.op("Log", width), net.const(0.5 * np.log(2 * np.pi))))
    total = net.add(share, part)
    top = net.reduce("Max", total, [1])
    net.output(net.add(net.op("Log", net.reduce("Sum", net.op("Exp", net.op("Sub", total, top)), [1])), top), "log_likelihood")
    net.output(net.reduce("Sum", net.mul(net.op("Exp", share), middle), [1]), "mean")


def operator_net(net):
    """A function known at sensors, asked at places: products of what a branch and a trunk give."""
    u, y = net.input("sensors", [BATCH, 12], "signal"), net.input("places", [BATCH, 7, 2], "points")
    d, act = net.pick(10, 12), net.pick("tanh", "gelu", "swish")
    branch = mlp(net, net.unsqueeze(u, 1), 12, 20, act, "branch")
    branch = linear(net, branch, 12, d, hint="branch_out")
    trunk = linear(net, y, 2, d, hint="trunk1", gain=1.5)
    trunk = activation(net, linear(net, activation(net, trunk, act), d, d, hint="trunk2"), act)
    net.output(net.add(net.reduce("Sum", net.mul(branch, trunk), [2]), net.vector(1, 0.2, 0.1)), "solution")
