"""Seventh generation: readers and writers, and layers that keep states."""
import numpy as np

from blocks import activation, linear, recurrent
from layers4 import attend, from_heads, to_heads
from layers7 import (attention, band_mask, bent_norm, halves_turned, held_states, limited_gates, matrix_memory, mixed_with_last, pre, real_gates, root_mean_norm,
                     simple_units, stacked, stretched_tables, table_of, tables_of_sections, two_layers, unrolled_cell)
from net import BATCH, trained


def written(net, rows=40, dim=12, length=8):
    return table_of(net, net.input("ids", [BATCH, length], "tokens", vocab=rows), rows, dim)


def gated_reader(net):
    """Words with gates within limits, and the next word."""
    x = written(net)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            x = net.add(x, attention(net, root_mean_norm(net, x, 12, "norm1"), 8, 12, 2, band_mask(net, 8, 8)))
            x = net.add(x, limited_gates(net, root_mean_norm(net, x, 12, "norm2"), 12, 20))
    net.output(linear(net, root_mean_norm(net, x, 12), 12, 40, bias=False, hint="lm_head", gain=2.0), "next")


def gated_sensors(net):
    """Sensors over time through the same gates, and what state a machine is in."""
    x = linear(net, net.input("sensors", [BATCH, 6, 7], "signal"), 7, 12, hint="in")
    for i in range(2):
        with net.scope(f"b{i}"):
            x = net.add(x, limited_gates(net, root_mean_norm(net, x, 12), 12, 16))
    net.output(net.softmax(linear(net, net.reduce("Mean", x, [1], 0), 12, 5, rank=2, hint="state", gain=2.0), 2), "state")


def bent_reader(net):
    """Sentences without norms, with a bent line in their place; shares of moods as logarithms."""
    x = written(net)
    for i in range(2):
        x = pre(net, x, 12, lambda y: attention(net, y, 8, 12, 3), 20, net.pick("gelu", "swish"), bent_norm, f"encoder.{i}")
    net.output(net.op("LogSoftmax", linear(net, net.reduce("Max", x, [1], 0), 12, 4, rank=2, hint="mood", gain=2.0), axis=1), "moods")


def headwise_reader(net):
    """Queries and keys of unit size in each head; the next word."""
    x = written(net)
    for i in range(2):
        x = pre(net, x, 12, lambda y: attention(net, y, 8, 12, 3, band_mask(net, 8, 8), head_norm=True), 24, "swish", hint=f"layers.{i}")
    net.output(linear(net, root_mean_norm(net, x, 12), 12, 30, bias=False, hint="lm_head", gain=2.0), "next")


def headwise_frames(net):
    """Frames of a film, with such heads, to what happens when."""
    x = linear(net, net.input("frames", [BATCH, 6, 10], "features"), 10, 12, hint="in")
    x = pre(net, x, 12, lambda y: attention(net, y, 6, 12, 2, head_norm=True), 20, "gelu")
    net.output(net.op("Sigmoid", linear(net, x, 12, 5, hint="events", gain=2.0)), "events")


def local_words(net):
    """Every second layer sees only the last few words."""
    x = written(net, length=10)
    for i, window in enumerate((net.pick(3, 4), 10)):
        mask = band_mask(net, 10, window)
        x = pre(net, x, 12, lambda y: attention(net, y, 10, 12, 2, mask), 24, "gelu", hint=f"layers.{i}")
    net.output(linear(net, x, 12, 30, hint="lm_head", gain=2.0), "next")


def local_load(net):
    """A day's load: each hour sees a few before it; the hours to come."""
    x = linear(net, net.input("load", [BATCH, 12, 4], "signal"), 4, 12, hint="embed")
    mask = band_mask(net, 12, net.pick(4, 5))
    x = pre(net, x, 12, lambda y: attention(net, y, 12, 12, 2, mask), 20, "relu")
    net.output(linear(net, net.op("Flatten", x, axis=1), 144, 6, rank=2, hint="head"), "load_later")


def three_places(net):
    """Pictures and words in one line: each token has a time, a row and a column."""
    n, size = 8, 12
    places = net.input("places", [BATCH, n, 3], "lengths", most=9)
    x = linear(net, net.input("tokens", [BATCH, n, 10], "features"), 10, 24, hint="merge")
    cos, sin = tables_of_sections(net, places, size, net.pick((2, 2, 2), (1, 2, 3)))
    for i in range(2):
        x = pre(net, x, 24, lambda y: attention(net, y, n, 24, 2, turn=lambda t: halves_turned(net, t, size, cos, sin)), 24, "swish", hint=f"layers.{i}")
    net.output(linear(net, root_mean_norm(net, x, 24), 24, 9, hint="out", gain=1.5), "answers")


def stretched_turns(net):
    """Words whose slow turns are slower than they were learned; the next word."""
    n, size = 12, 6
    x = written(net, length=n)
    tables = [net.const(t) for t in stretched_tables(n, size)]
    x = pre(net, x, 12, lambda y: attention(net, y, n, 12, 2, band_mask(net, n, n), turn=lambda t: halves_turned(net, t, size, *tables)), 24, "swish")
    net.output(linear(net, root_mean_norm(net, x, 12), 12, 30, bias=False, hint="lm_head", gain=2.0), "next")


def stretched_clips(net):
    """Clips of a long film with such turns, to a vector."""
    n, size = 10, 8
    x = linear(net, net.input("clips", [BATCH, n, 9], "signal"), 9, 16, hint="in")
    tables = [net.const(t) for t in stretched_tables(n, size, factor=net.pick(4.0, 8.0), original=30.0)]
    x = pre(net, x, 16, lambda y: attention(net, y, n, 16, 2, turn=lambda t: halves_turned(net, t, size, *tables)), 24, "gelu")
    net.output(linear(net, net.reduce("Mean", x, [1], 0), 16, 8, rank=2, hint="vector"), "vector")


def padded_sentences(net):
    """Sentences filled up with a word of its own number, which nobody listens to."""
    ids = net.input("ids", [BATCH, 8], "tokens", vocab=30)
    filled = net.op("Cast", net.op("Equal", ids, net.const(1, np.int64)), to=1)
    mask = net.mul(net.unsqueeze(filled, 1, 2), net.const(net.pick(-1e4, -1e9)))
    x = table_of(net, ids, 30, 12)
    x = pre(net, x, 12, lambda y: attention(net, y, 8, 12, 2, mask), 20, "gelu")
    keep = net.unsqueeze(net.op("Sub", net.const(1.0), filled), 2)
    y = net.op("Div", net.reduce("Sum", net.mul(x, keep), [1], 0), net.clip(net.reduce("Sum", keep, [1], 0), 1.0, None))
    net.output(linear(net, y, 12, 8, rank=2, hint="dense"), "vector")


def two_masks(net):
    """A word is heard if it came before or belongs to the question, and if it is a word at all."""
    n = 8
    ids = net.input("ids", [BATCH, n], "tokens", vocab=30)
    real = net.unsqueeze(net.op("Not", net.op("Equal", ids, net.const(2, np.int64))), 1, 2)
    i = np.arange(n)
    before = net.const((i[None] <= i[:, None])[None, None], bool)
    question = net.const((i < 3).reshape(1, 1, 1, n), bool)
    heard = net.op("And", net.op("Or", before, question), net.op("Or", real, net.const(np.eye(n, dtype=bool)[None, None], bool)))
    mask = net.op("Where", heard, net.const(0.0), net.const(-1e4))
    x = table_of(net, ids, 30, 12)
    x = pre(net, x, 12, lambda y: attention(net, y, n, 12, 3, mask), 20, "relu")
    net.output(linear(net, x, 12, 6, hint="tags", gain=2.0), "tags")


def mixed_words(net):
    """Each layer mixes a word with the one before; gates of squares; the next word."""
    n, dim = 8, 12
    x = written(net, length=n)
    for i in range(2):
        with net.scope(f"blocks.{i}"):
            y = root_mean_norm(net, x, dim, "ln1")
            k, r = (mixed_with_last(net, y, n, dim, h) for h in ("key_mix", "receptance_mix"))
            k = activation(net, linear(net, k, dim, 24, bias=False, hint="key"), "relu")
            v = linear(net, net.mul(k, k), 24, dim, bias=False, hint="value")
            x = net.add(x, net.mul(net.op("Sigmoid", linear(net, r, dim, dim, bias=False, hint="receptance")), v))
    net.output(linear(net, root_mean_norm(net, x, dim), dim, 30, bias=False, hint="head", gain=2.0), "next")


def memory_words(net):
    """Words into a matrix that fades, and out of it by queries."""
    x = written(net, length=6)
    y = matrix_memory(net, root_mean_norm(net, x, 12), 6, 12)
    x = net.add(x, linear(net, net.mul(y, net.op("Sigmoid", linear(net, x, 12, 12, hint="ogate"))), 12, 12, hint="out"))
    net.output(linear(net, x, 12, 20, hint="head", gain=2.0), "next")


def memory_meter(net):
    """A meter's values into such a matrix, and what will be used next."""
    x = linear(net, net.input("meter", [BATCH, 6, 5], "signal"), 5, 8, hint="in")
    y = net.add(x, matrix_memory(net, x, 6, 8))
    net.output(linear(net, net.op("Flatten", y, axis=1), 48, 4, rank=2, hint="later"), "later")


def real_words(net):
    """A short convolution, gates over states that fade, a branch beside them; the next word."""
    n, dim = 6, 12
    x = written(net, length=n)
    y = root_mean_norm(net, x, dim)
    side = activation(net, linear(net, y, dim, dim, hint="linear_y"), "gelu")
    z = net.transpose(linear(net, y, dim, dim, hint="linear_x"), 0, 2, 1)
    z = net.op("Conv", net.pad(z, [0, 0, 2, 0, 0, 0]), net.trained((dim, 1, 3), 3), net.vector(dim), kernel_shape=[3], group=dim)
    z = real_gates(net, net.transpose(z, 0, 2, 1), n, dim)
    x = net.add(x, linear(net, net.mul(z, side), dim, dim, hint="linear_out"))
    net.output(linear(net, x, dim, 20, hint="lm_head", gain=2.0), "next")


def real_engine(net):
    """An engine's sensors through such gates, and how long it will last."""
    x = linear(net, net.input("engine", [BATCH, 6, 8], "signal"), 8, 10, hint="in")
    y = net.add(x, real_gates(net, x, 6, 10))
    net.output(net.op("Softplus", two_layers(net, net.reduce("Max", y, [1], 0), 10, 12, 1, hint="life")), "life")


def held_signal(net):
    """A signal through states whose input is held; gates; which kind."""
    x = linear(net, net.input("signal", [BATCH, 7, 4], "signal"), 4, 8, hint="in")
    for i in range(2):
        with net.scope(f"layer{i}"):
            x = net.add(x, activation(net, linear(net, held_states(net, x, 7, 8, 3), 8, 8, hint="mix"), "gelu"))
    net.output(net.op("LogSoftmax", linear(net, net.reduce("Mean", x, [1], 0), 8, 6, rank=2, hint="fc", gain=2.0), axis=-1), "kinds")


def held_weather(net):
    """Weather of a week through such states, to that of tomorrow."""
    x = net.input("week", [BATCH, 7, 6], "signal")
    y = held_states(net, x, 7, 6, 4)
    net.output(linear(net, net.squeeze(net.slice(net.add(x, y), 1, 6, 7), 1), 6, 6, rank=2, hint="tomorrow"), "tomorrow")


def zoned_letters(net):
    """Letters to sounds: cells of which a part stays as it was, step by step."""
    x = written(net, 26, 8, 6)
    h = stacked(net, unrolled_cell(net, x, 6, 8, 10, kept=net.pick(0.1, 0.2)))
    net.output(linear(net, h, 10, 7, hint="mel"), "mel")


def zoned_steps(net):
    """Steps of a dance through such cells, and the next."""
    x = net.input("steps", [BATCH, 6, 6], "signal")
    hs = unrolled_cell(net, x, 6, 6, 10, kept=0.15)
    net.output(net.add(linear(net, hs[-1], 10, 6, rank=2, hint="next"), net.squeeze(net.slice(x, 1, 5, 6), 1)), "next")


def stacked_steps(net):
    """Cells written out, and back to front, side by side; tags."""
    x = net.input("words", [BATCH, 6, 8], "features")
    ahead = unrolled_cell(net, x, 6, 8, 8, hint="forward")
    turned = stacked(net, [net.squeeze(net.slice(x, 1, t, t + 1), 1) for t in range(5, -1, -1)])
    back = unrolled_cell(net, turned, 6, 8, 8, hint="backward")
    y = net.concat(stacked(net, ahead), stacked(net, back[::-1]), axis=2)
    net.output(linear(net, y, 16, 5, hint="tags", gain=2.0), "tags")


def simple_tagger(net):
    """Words through simple units, and their tags."""
    x = written(net, 40, 12, 6)
    for i in range(2):
        x = simple_units(net, x, 6, 12, net.pick(1.7320508, 1.5), hint=f"rnn.{i}")
    net.output(net.op("LogSoftmax", linear(net, x, 12, 6, hint="tags", gain=2.0), axis=-1), "tags")


def simple_ward(net):
    """A patient's values through such units, and how likely each turn is."""
    x = linear(net, net.input("ward", [BATCH, 7, 9], "signal"), 9, 10, hint="in")
    x = simple_units(net, x, 7, 10, 1.7320508)
    net.output(net.op("Sigmoid", linear(net, net.squeeze(net.slice(x, 1, 6, 7), 1), 10, 4, rank=2, hint="risk", gain=2.0)), "risks")


def directed_adapter(net):
    """Layers whose columns have a direction, which an adapter turns, and a length of their own."""
    x = net.input("rows", [BATCH, 6, 10], "features")
    for i in range(2):
        with net.scope(f"layer{i}"):
            n_out = 12 if i == 0 else 8
            n_in = 10 if i == 0 else 12
            base = net.weight(np.ascontiguousarray(trained(net.rng, (n_out, n_in), n_in).T), "base.weight")
            a, b = (net.weight((g * net.rng.standard_normal(shape)).astype(np.float32), h)
                    for g, shape, h in ((0.4, (n_in, 2), "lora_A"), (0.4, (2, n_out), "lora_B")))
            v = net.add(base, net.mul(net.op("MatMul", a, b), net.const(1.5)))
            length = net.op("Sqrt", net.reduce("Sum", net.mul(v, v), [0]))
            size = net.weight(np.exp(0.3 * net.rng.standard_normal((1, n_out))).astype(np.float32), "magnitude")
            x = net.mul(net.op("MatMul", x, v), net.op("Div", size, length))
            x = activation(net, x, "gelu") if i == 0 else x
    net.output(x, "rows_later")


def directed_writer(net):
    """Such a layer as the last of a recurrent one."""
    x = net.transpose(net.input("motion", [BATCH, 6, 6], "signal"), 1, 0, 2)
    h, _ = recurrent(net, x, net.pick("GRU", "LSTM"), 6, 10, hint="rnn")
    with net.scope("head"):
        base = net.weight(np.ascontiguousarray(trained(net.rng, (6, 10), 10).T), "weight")
        length = net.reduce("L2", base, [0])
        size = net.weight(np.exp(0.4 * net.rng.standard_normal((1, 6))).astype(np.float32), "magnitude")
        y = net.mul(net.op("MatMul", h, base), net.op("Div", size, length))
    net.output(net.transpose(y, 1, 0, 2), "motion_later")


def crossed_pages(net):
    """A question and a page: shares of the page's words for each of the question's, hard or soft, and an answer."""
    q, p = (linear(net, net.input(name, [BATCH, n, 8], "features"), 8, 12, hint=name) for name, n in (("question", 4), ("page", 9)))
    heads = [to_heads(net, t, n, 2, 6, like=q) for t, n in ((q, 4), (p, 9))]
    y = from_heads(net, attend(net, heads[0], heads[1], heads[1], 6), 4, 12, q)
    best = net.op("Hardmax", net.op("MatMul", q, net.transpose(p, 0, 2, 1)), axis=2)
    y = net.concat(q, y, net.op("MatMul", best, p), axis=2)
    net.output(two_layers(net, y, 36, 16, 5, net.pick("gelu", "relu"), rank=3, hint="answer"), "answer")
