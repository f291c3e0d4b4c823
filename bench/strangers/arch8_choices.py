"""Eighth generation: outputs that are choices, places, counts and whole numbers, and outputs that may be empty."""
import numpy as np

from blocks import activation, linear
from layers8 import f32, table, two
from net import BATCH
from vision import conv, images

INT, FLOAT, BYTE, UINT32 = 7, 1, 2, 12


def small_maps(net, n=8, side=8, channels=3, hint="view"):
    x = activation(net, conv(net, images(net, hint, channels, side), channels, n, 3, hint="in"), "relu")
    return activation(net, conv(net, x, n, n, 3, hint="mid"), net.pick("relu", "leaky"))


def labels_only(net):
    """What stands at each pixel: numbers of kinds, and nothing else."""
    net.output(net.op("ArgMax", conv(net, small_maps(net), 8, 5, 1, hint="kinds", gain=3.0), axis=1, keepdims=0), "labels")


def label_bytes(net):
    """The same in bytes, and how sure."""
    p = net.softmax(conv(net, small_maps(net, hint="tile"), 8, 4, 1, hint="kinds", gain=3.0), 4, 1)
    net.output(net.op("Cast", net.op("ArgMax", p, axis=1, keepdims=0), to=BYTE), "bytes")
    net.output(net.reduce("Max", p, [1], 0), "sure")


def found_places(net):
    """Places that are hot enough, if there are any."""
    heat = net.op("Sigmoid", conv(net, small_maps(net, hint="night"), 8, 1, 1, hint="heat", gain=3.0))
    hot = net.op("Greater", heat, net.const(net.pick(0.8, 0.95, 0.9999)))
    net.output(net.transpose(net.op("NonZero", hot), 1, 0), "places")
    net.output(net.reduce("Sum", net.op("Cast", hot, to=FLOAT), [1, 2, 3], 0), "how_many")


def few_boxes(net):
    """Boxes that a suppression leaves; at times none."""
    h = net.transpose(net.reshape(small_maps(net, hint="road"), [BATCH, 8, 64], like=None), 0, 2, 1) if net.batch != "N" else net.transpose(
        net.op("Reshape", small_maps(net, hint="road"), net.ints(0, 8, 64)), 0, 2, 1)
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1).reshape(1, 64, 2)
    middle = net.add(net.op("Tanh", linear(net, h, 8, 2, hint="middle")), net.const(grid))
    half = net.op("Softplus", linear(net, h, 8, 2, hint="half"))
    boxes = net.concat(net.op("Sub", middle, half), net.add(middle, half), axis=2)
    scores = net.transpose(net.op("Sigmoid", linear(net, h, 8, 2, hint="scores", gain=3.0)), 0, 2, 1)
    kept = net.op("NonMaxSuppression", boxes, scores, net.ints(4), net.const([0.5]), net.const([net.pick(0.5, 0.9, 0.999)]))
    net.output(kept, "kept")
    net.output(boxes, "boxes")


def joined_letters(net):
    """Letters of each time step; those that repeat and blanks are left out."""
    n = 10
    y = linear(net, net.input("speech", [BATCH, n, 6], "signal"), 6, 5, hint="letters", gain=3.0)
    ids = net.op("ArgMax", y, axis=2, keepdims=0)
    before = net.concat(net.mul(net.slice(ids, 1, 0, 1), net.const(0, np.int64)), net.slice(ids, 1, 0, n - 1), axis=1)
    keep = net.op("And", net.op("Not", net.op("Equal", ids, before)), net.op("Greater", ids, net.const(0, np.int64)))
    net.output(net.op("Compress", ids, net.op("Reshape", keep, net.ints(-1))), "said")
    net.output(net.reduce("Max", y, [2], 0), "loud")


def best_path(net):
    """The best sequence of tags (Viterbi), forwards by sums and largest, backwards by where they were."""
    n, tags = 6, 4
    e = linear(net, net.input("words_tagged", [BATCH, n, 6], "features"), 6, tags, hint="emit", gain=2.0)
    move = net.weight(f32(net.rng.standard_normal((1, tags, tags))), "transitions")
    at = lambda k: net.squeeze(net.slice(e, 1, k, k + 1), 1)  # noqa: E731
    score, back = at(0), []
    for k in range(1, n):
        with net.scope(f"t{k}"):
            all_ = net.add(net.unsqueeze(score, 2), move)
            back.append(net.op("ArgMax", all_, axis=1, keepdims=0))
            score = net.add(net.reduce("Max", all_, [1], 0), at(k))
    tag = net.op("ArgMax", score, axis=1, keepdims=1)
    path = [tag]
    for b in reversed(back):
        tag = net.op("GatherElements", b, tag, axis=1)
        path.insert(0, tag)
    net.output(net.concat(*path, axis=1), "tags")
    net.output(net.reduce("Max", score, [1], 0), "score")


def three_beams(net):
    """The three best continuations of three beginnings: which beginning, which word."""
    words = 9
    y = linear(net, net.input("beams", [BATCH, 3, 8], "features"), 8, words, hint="words", gain=2.0)
    y = net.op("LogSoftmax", y, axis=2)
    flat = net.reshape(y, [BATCH, 3 * words])
    best, places = net.topk(flat, 3, axis=1)
    net.output(best, "scores")
    net.output(net.op("Div", places, net.const(words, np.int64)), "beginning")
    net.output(net.op("Mod", places, net.const(words, np.int64)), "word")


def counted_colours(net):
    """How many pixels of each brightness: whole numbers."""
    x = net.input("photo", [BATCH, 1, 8, 8], "pixels")
    bins = net.op("Cast", net.op("Floor", net.mul(net.reshape(x, [BATCH, 64]), net.const(1 / 32))), to=INT)
    one = net.op("Equal", net.unsqueeze(bins, 2), net.const(np.arange(8).reshape(1, 1, 8), np.int64))
    count = net.op("Cast", net.reduce("Sum", net.op("Cast", one, to=FLOAT), [1], 0), to=INT)
    net.output(net.op("Sigmoid", linear(net, net.mul(net.op("Cast", count, to=FLOAT), net.const(1 / 64)), 8, 2, rank=2, hint="day", gain=3.0)), "day")
    net.output(count, "histogram")


def ordered_ties(net):
    """Readings that were rounded, sorted, with ties; where each stood, the first of equals first."""
    x = net.op("Div", net.op("Round", net.mul(net.input("meters", [BATCH, 12], "features"), net.const(4.0))), net.const(4.0))
    values, places = net.topk(x, 12, axis=1, largest=net.pick(0, 1))
    net.output(places, "stood")
    net.output(linear(net, values, 12, 2, rank=2, hint="trim"), "trim")
    net.output(values, "sorted")


def hours_and_days(net):
    """Seconds of a clock since 1970 in whole numbers: hour, day of the week, and how much is used then."""
    t = net.input("clock", [BATCH, 3], "lengths", most=1_900_000_000)
    hour = net.op("Mod", net.op("Div", t, net.const(3600, np.int64)), net.const(24, np.int64))
    day = net.op("Mod", net.add(net.op("Div", t, net.const(86400, np.int64)), net.const(4, np.int64)), net.const(7, np.int64))
    e = net.concat(net.op("Gather", table(net, 24, 5, "hours"), hour, axis=0), net.op("Gather", table(net, 7, 3, "days"), day, axis=0), axis=2)
    net.output(hour, "hour")
    net.output(day, "weekday")
    net.output(two(net, e, 8, 10, 1, rank=3, hint="load"), "load")


def hashed_words(net):
    """Pairs of words find their row by products and remainders of large whole numbers."""
    w = net.input("words", [BATCH, 6], "tokens", vocab=40000)
    pair = net.add(net.mul(net.slice(w, 1, 0, 5), net.const(2654435761, np.int64)), net.slice(w, 1, 1, 6))
    row = net.op("Mod", net.mul(pair, net.const(40503, np.int64)), net.const(31, np.int64))
    e = net.op("Gather", table(net, 31, 6, "pairs"), row, axis=0)
    net.output(row, "rows")
    net.output(linear(net, net.reduce("Mean", e, [1], 0), 6, 4, rank=2, hint="topic", gain=3.0), "topic")


def bits_of_states(net):
    """States of machines as bits of one number: shifted, looked at, counted."""
    s = net.op("Cast", net.input("states", [BATCH, 4], "tokens", vocab=200), to=UINT32)
    shift = net.const(np.arange(8).reshape(1, 1, 8), np.uint32)
    bits = net.op("BitShift", net.op("Expand", net.unsqueeze(s, 2), net.ints(1, 1, 8)), net.op("Expand", shift, net.op("Shape", net.op("Expand", net.unsqueeze(s, 2), net.ints(1, 1, 8)))),
                  direction="RIGHT")
    bits = net.op("Mod", net.op("Cast", bits, to=INT), net.const(2, np.int64))
    on = net.op("Cast", bits, to=FLOAT)
    net.output(net.op("Cast", net.reduce("Sum", on, [2], 0), to=INT), "how_many_on")
    net.output(linear(net, on, 8, 2, hint="wear"), "wear")


def which_words(net):
    """Which words a text has, each once, and how often."""
    w = net.input("text", [BATCH, 9], "tokens", vocab=12)
    once, _, _, often = net.op("Unique", w, n=4, sorted=1)
    net.output(often, "how_often")
    net.output(net.op("Gather", table(net, 12, 3), once, axis=0), "their_rows")
    net.output(once, "words_once")


def limits_kept(net):
    """Whether each machine keeps within its limits: yes or no, and no number."""
    y = two(net, net.input("machine_values", [BATCH, 8], "features"), 8, 12, 5, "tanh", gain=2.0)
    net.output(net.op("And", net.op("Less", y, net.const(0.7)), net.op("Greater", y, net.const(-0.9))), "within")


def nearest_code(net):
    """The entry of a book that is nearest, as number and as numbers."""
    x = linear(net, net.input("frames", [BATCH, 5, 6], "signal"), 6, 4, hint="in")
    book = table(net, 10, 4, "book")
    d = net.reduce("Sum", net.op("Pow", net.op("Sub", net.unsqueeze(x, 2), book), net.const(2.0)), [3], 0)
    ids = net.op("ArgMin", d, axis=2, keepdims=0)
    net.output(net.op("Gather", book, ids, axis=0), "frames_again")
    net.output(ids, "codes")


def stepped_dose(net):
    """A dose in steps of a quarter, within limits: most are at one of them."""
    y = two(net, net.input("patient", [BATCH, 9], "features"), 9, 14, 3, "elu", gain=3.0)
    y = net.op("Div", net.op("Round", net.mul(y, net.const(4.0))), net.const(4.0))
    net.output(net.clip(y, 0.0, 2.0), "dose")
