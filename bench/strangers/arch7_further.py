"""Seventh generation: further networks with layers of the others, in other places of theirs."""
import numpy as np

from arch7_graphs import root_undone
from arch7_places import in_windows, quarter_places, read_at_offsets
from blocks import activation, linear, recurrent
from layers7 import (attention, cells, halves_turned, mixed_with_last, pre, root_mean_norm, rows_of, small_body, table_of, tables_of_sections, two_layers,
                     with_relative_places)
from net import BATCH
from vision import conv, images


def filmed_places(net):
    """Pieces of a film with their time, row and column; what happens in all of it."""
    n, size = 6, 8
    places = net.input("places", [BATCH, n, 3], "lengths", most=7)
    x = linear(net, net.input("pieces", [BATCH, n, 9], "features"), 9, 16, hint="embed")
    cos, sin = tables_of_sections(net, places, size, net.pick((2, 1, 1), (1, 1, 2)))
    x = pre(net, x, 16, lambda y: attention(net, y, n, 16, 2, turn=lambda t: halves_turned(net, t, size, cos, sin)), 24, "gelu")
    net.output(net.softmax(linear(net, net.reduce("Mean", x, [1], 0), 16, 6, rank=2, hint="head", gain=2.0), 2), "actions")


def relative_spectra(net):
    """Bands over time in patches, with scores that know of rows and columns; which sound."""
    x = rows_of(net, conv(net, net.input("mel", [BATCH, 1, 9, 9], "image"), 1, 12, 3, stride=3, pads=[0] * 4, hint="patch"), 12, 9)
    x = net.add(x, with_relative_places(net, root_mean_norm(net, x, 12), 3, 12, net.pick(2, 3)))
    net.output(linear(net, net.reduce("Max", x, [1], 0), 12, 7, rank=2, hint="sound", gain=2.0), "sound")


def window_enlarger(net):
    """A small picture in windows, and four pixels for each."""
    n = 6
    x = net.transpose(conv(net, images(net, "small", 3, 8), 3, n, 3, hint="first"), 0, 2, 3, 1)
    y = net.transpose(in_windows(net, x, n, 4, 2, "rstb"), 0, 3, 1, 2)
    net.output(net.op("DepthToSpace", conv(net, y, n, 12, 3, hint="up"), blocksize=2, mode="CRD"), "large")


def offset_field(net):
    """Each column of a map reads it at places of its own choice; what stands in it."""
    h, w = 5, 4
    value = activation(net, conv(net, net.input("lidar", [BATCH, 4, h, w], "image"), 4, 8, 3, hint="value"), "relu")
    q = linear(net, net.transpose(net.reduce("Mean", value, [2], 0), 0, 2, 1), 8, 10, hint="query")
    y = read_at_offsets(net, value, q, w, 2, h, w)
    net.output(net.op("Sigmoid", linear(net, y, 8, 3, hint="kinds", gain=2.0)), "kinds")


def mixed_beats(net):
    """Beats of a heart, each mixed with the one before, through gates; which rhythm."""
    n, dim = 8, 10
    x = linear(net, net.input("beats", [BATCH, n, 6], "signal"), 6, dim, hint="in")
    y = mixed_with_last(net, root_mean_norm(net, x, dim), n, dim)
    x = net.add(x, net.mul(linear(net, y, dim, dim, hint="value"), net.op("Sigmoid", linear(net, mixed_with_last(net, x, n, dim, "gate_mix"), dim, dim, hint="gate"))))
    h, _ = recurrent(net, net.transpose(x, 1, 0, 2), net.pick("GRU", "LSTM"), dim, 8, hint="rnn")
    net.output(linear(net, net.reduce("Max", h, [0], 0), 8, 5, rank=2, hint="rhythm", gain=2.0), "rhythm")


def turned_friends(net):
    """Whom somebody may know: vectors turned by how they met, and how near they come."""
    rows, d, reach = 18, 5, net.pick(0.3, 0.6)
    a, b = (net.input(who, [BATCH], "tokens", vocab=rows) for who in ("one", "other"))
    re_a, im_a, re_b, im_b = (table_of(net, ids, rows, d, h) for ids, h in ((a, "real"), (a, "imaginary"), (b, "real_other"), (b, "imaginary_other")))
    phase = net.op("Gather", net.weight(net.rng.uniform(-reach, reach, (6, d)).astype(np.float32), "met"), net.input("met", [BATCH], "tokens", vocab=6), axis=0)
    phase = net.mul(phase, net.const(np.pi / reach))
    c, s = net.op("Cos", phase), net.op("Sin", phase)
    near = net.add(net.mul(net.op("Sub", net.mul(re_a, c), net.mul(im_a, s)), re_b), net.mul(net.add(net.mul(re_a, s), net.mul(im_a, c)), im_b))
    net.output(net.op("Sigmoid", net.reduce("Sum", near, [1], 0)), "know")


def rooted_stakes(net):
    """What a hand of cards may win, on a scale that was learned as a root."""
    h = two_layers(net, net.input("hand", [BATCH, 10], "features"), 10, 18, 8, net.pick("relu", "elu"), hint="body")
    v = linear(net, h, 8, 3, rank=2, hint="stakes", gain=2.0)
    net.output(root_undone(net, v, 0.01), "stakes")


def wide_maps(net):
    """Maps of a coast: filters that look far along it, and what is land."""
    x = activation(net, conv(net, net.input("radar", [BATCH, 2, 8, 12], "image"), 2, 8, 3, hint="in"), "relu")
    for i, d in enumerate(((1, 2), (1, 3))):
        with net.scope(f"far{i}"):
            y = net.op("Conv", x, net.trained((8, 1, 3, 3), 9, 1.3), net.vector(8), kernel_shape=[3, 3], dilations=list(d), pads=[*d, *d], group=8)
            x = net.add(x, activation(net, conv(net, y, 8, 8, 1, hint="mix"), net.pick("relu", "leaky")))
    net.output(net.op("Sigmoid", conv(net, x, 8, 1, 1, hint="land", gain=2.0)), "land")


def cut_faces(net):
    """A map of faces and a box that is given: what is within, and how much."""
    h = small_body(net, images(net, side=12), 3, 8)
    box = net.op("Div", net.input("box", [BATCH, 4], "boxes", side=12), net.const(2.0))
    low, high = (net.unsqueeze(t, 2) for t in net.split(box, [2, 2], 1))
    x = net.const(np.stack(np.meshgrid(np.arange(6), np.arange(6), indexing="xy")).reshape(1, 2, 36) + 0.5)
    inside = net.op("And", net.op("Greater", x, net.op("Sub", low, net.const(0.4))), net.op("Less", x, net.add(high, net.const(0.4))))
    inside = net.reduce("Min", net.op("Cast", inside, to=1), [1], 0)
    heat = net.op("Sigmoid", net.reshape(conv(net, h, 8, 1, 1, hint="faces", gain=3.0), [BATCH, 36], like=h))
    kept = net.mul(heat, inside)
    net.output(net.reduce("Sum", kept, [1], 0), "much")
    net.output(kept, "within")


def quarter_marks(net):
    """Marks on an X-ray: where each is, to a quarter of a pixel, in millimetres."""
    h = small_body(net, images(net, "xray", 1, 8), 1, 8, net.pick("relu", "leaky"), stride=1)
    heat = conv(net, h, 8, 4, 3, hint="marks", gain=2.0)
    net.output(net.mul(quarter_places(net, heat, 4, 8), net.const(net.pick(0.5, 1.25))), "marks")


def margins_of_lanes(net):
    """Ends of lanes in a picture with margins, in pixels of the camera's."""
    h = two_layers(net, net.input("features", [BATCH, 4, 8], "features"), 8, 16, 4, "relu", rank=3, hint="ends")
    ends = net.mul(net.op("Sigmoid", h), net.const(64.0))
    margin = np.array([3.0, 11.0, 3.0, 11.0])
    net.output(net.op("Div", net.op("Sub", ends, net.const(margin)), net.const(net.pick(0.5, 0.8))), "lanes")


def weighed_offers(net):
    """How well an offer fits and how new it is, each with a power of its own."""
    h = activation(net, linear(net, net.input("offer", [BATCH, 9], "features"), 9, 14, rank=2, hint="fc"), net.pick("relu", "tanh"))
    fit, new = (net.op("Sigmoid", linear(net, h, 14, 3, rank=2, hint=t, gain=2.0)) for t in ("fit", "new"))
    net.output(net.mul(net.op("Pow", fit, net.const(0.7)), net.op("Pow", new, net.const(0.3))), "rank")


def ends_of_ships(net):
    """Ships from above, as turned boxes, and at which end their bow is."""
    h = rows_of(net, small_body(net, images(net, "sea", 1, 8), 1, 10), 10, 16)
    turn = net.mul(net.op("Tanh", linear(net, h, 10, 1, hint="turn")), net.const(np.pi / 2))
    bow = net.op("Cast", net.op("Greater", linear(net, h, 10, 1, hint="bow", gain=2.0), net.const(0.0)), to=1)
    net.output(net.add(turn, net.mul(bow, net.const(np.pi))), "headings")
    net.output(net.mul(net.add(linear(net, h, 10, 2, hint="middle"), net.const(cells(4, 4))), net.const(2.0)), "middles")


def median_sensors(net):
    """Six sensors of the same: the middle of them, and how far each is from it."""
    x = net.input("sensors", [BATCH, 6], "features")
    y, _ = net.topk(x, 6, axis=1, largest=0)
    middle = net.mul(net.add(net.slice(y, 1, 2, 3), net.slice(y, 1, 3, 4)), net.const(0.5))
    far = net.op("Abs", net.op("Sub", x, middle))
    net.output(two_layers(net, far, 6, 12, 3, net.pick("relu", "elu"), hint="faults"), "faults")
    net.output(middle, "middle")


def aligned_features(net):
    """Features of points, turned by a matrix about the identity; parts of a thing."""
    n = 8
    h = activation(net, linear(net, net.input("points", [BATCH, n, 3], "points"), 3, 4, hint="mlp1"), "relu")
    g = net.reduce("Max", two_layers(net, h, 4, 10, 12, rank=3, hint="tnet"), [1], 0)
    m = net.add(linear(net, g, 12, 16, rank=2, hint="fc", gain=0.5), net.const(np.eye(4).reshape(-1)))
    h = net.op("MatMul", h, net.reshape(m, [BATCH, 4, 4], like=g))
    net.output(two_layers(net, h, 4, 14, 5, net.pick("relu", "leaky"), rank=3, hint="parts", gain=2.0), "parts")
