"""Sixth generation: networks that read, and their few bits."""
import numpy as np

from blocks import activation, causal_mask, gated_mlp, layer_norm, linear, recurrent
from layers4 import feed_forward, learned
from layers6 import (adapted, attention, decaying_states, difference_attention, embedded, grouped_weight, last_of, nested_weight, partly, scaled_weight,
                     shared_and_routed, squared_layer, tables, tokens_of, turn_by)
from net import BATCH
from vision import conv

N, D, V = 8, 32, 30


def words(net, n=N, d=D, vocab=V):
    ids = net.input("input_ids", [BATCH, n], "tokens", vocab=vocab)
    return ids, embedded(net, ids, vocab, d)


def next_word(net, x, d=D, vocab=V):
    net.output(linear(net, layer_norm(net, x, d, hint="final"), d, vocab, bias=False, hint="lm_head", gain=2.0), "logits")


def partly_turned(net):
    """A decoder of which each head is turned in part; attention and layers side by side; the last word's guess."""
    ids, x = words(net)
    mask, part = causal_mask(net, N), net.pick(4, 8)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            y = layer_norm(net, x, D, hint="ln")
            a = attention(net, y, N, D, 2, lambda q: partly(net, q, N, 16, part), mask, ids)
            x = net.add(net.add(x, a), feed_forward(net, y, D, 48, net.pick("gelu", "gelu_tanh")))
    y = last_of(net, layer_norm(net, x, D, hint="final"))
    net.output(linear(net, y, D, V, rank=2, hint="embed_out", gain=2.0), "next")


def partly_turned_reader(net):
    """A reader in both directions, heads turned in part, gates, and a label for the whole."""
    ids, x = words(net, 7, 24)
    for i in range(2):
        with net.scope(f"encoder.{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, 24, hint="n1"), 7, 24, 2, lambda q: partly(net, q, 7, 12, 4), None, ids))
            x = net.add(x, gated_mlp(net, layer_norm(net, x, 24, hint="n2"), 24, 32, net.pick("swish", "gelu")))
    net.output(linear(net, last_of(net, x), 24, 5, rank=2, hint="label", gain=2.0), "label")


def long_reader(net):
    """Made for longer texts later: slower turns, and what is turned is a little longer, too."""
    ids, x = words(net)
    mask, factor = causal_mask(net, N), net.pick(1.2079, 1.3466, 1.1386)
    cos, sin = tables(N, 16, 40000.0, factor)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, D, hint="n1"), N, D, 2, lambda q: turn_by(net, q, 16, cos, sin), mask, ids, bias=False))
            x = net.add(x, gated_mlp(net, layer_norm(net, x, D, hint="n2"), D, 40))
    next_word(net, x)


def long_squares(net):
    """Turned in part and longer by a factor; squares of rectifiers."""
    ids, x = words(net)
    mask, factor = causal_mask(net, N), net.pick(1.2773, 1.4159)
    for i in range(2):
        with net.scope(f"h.{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, D, hint="n1"), N, D, 2, lambda q: partly(net, q, N, 16, 8, factor), mask, ids))
            x = net.add(x, squared_layer(net, layer_norm(net, x, D, hint="n2"), D, 40))
    next_word(net, x)


def squared_frames(net):
    """Frames of a signal by convolutions and squares of rectifiers; a share of kinds."""
    d = 16
    x = conv(net, net.input("signal", [BATCH, 3, 16], "signal"), 3, d, 3, stride=2, rank=1, hint="in")
    x = net.transpose(x, 0, 2, 1)
    for i in range(2):
        x = net.add(x, squared_layer(net, layer_norm(net, x, d, hint=f"n{i}"), d, 24, f"mlp{i}"))
    net.output(net.softmax(linear(net, net.reduce("Max", x, [1], 0), d, 6, rank=2, hint="kind", gain=2.0), 2), "kinds")


def difference_reader(net):
    """Attention as what two of them do not share; gates behind."""
    ids, x = words(net, 7, 24)
    x = net.add(x, learned(net, (1, 7, 24), "pos"))
    for i in range(2):
        with net.scope(f"layers.{i}"):
            x = net.add(x, difference_attention(net, layer_norm(net, x, 24, hint="n1"), 7, 24, 2, round(0.8 - 0.6 * np.exp(-0.3 * i), 4), like=ids))
            x = net.add(x, gated_mlp(net, layer_norm(net, x, 24, hint="n2"), 24, 32))
    next_word(net, x, 24)


def difference_series(net):
    """Sensors' readings in patches, differences of two attentions, and what comes next."""
    x = net.reshape(net.input("readings", [BATCH, 32, 2], "signal"), [BATCH, 8, 8])
    x = net.add(linear(net, x, 8, 16, hint="patch"), learned(net, (1, 8, 16), "place"))
    for i in range(2):
        with net.scope(f"block{i}"):
            x = net.add(x, difference_attention(net, layer_norm(net, x, 16, hint="n1"), 8, 16, 2, net.pick(0.35, 0.5), like="readings"))
            x = net.add(x, feed_forward(net, layer_norm(net, x, 16, hint="n2"), 16, 24, "gelu"))
    net.output(linear(net, net.op("Flatten", x, axis=1), 128, 6, rank=2, hint="head"), "next")


def shared_experts(net):
    """A decoder whose experts are two of four for each word and one for all."""
    ids, x = words(net, 6, 16)
    mask = causal_mask(net, 6)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, 16, hint="n1"), 6, 16, 2, None, mask, ids, bias=False))
            x = net.add(x, shared_and_routed(net, layer_norm(net, x, 16, hint="n2"), 6, 16, 20, 4, 2))
    next_word(net, x, 16)


def expert_sensors(net):
    """Readings of many devices: an expert or two for each, one for all."""
    x = linear(net, net.input("devices", [BATCH, 5, 6], "features"), 6, 16, hint="in")
    x = net.add(x, shared_and_routed(net, layer_norm(net, x, 16, hint="n1"), 5, 16, 20, 4, net.pick(1, 2)))
    x = net.add(x, feed_forward(net, layer_norm(net, x, 16, hint="n2"), 16, 24, net.pick("relu", "swish")))
    net.output(linear(net, x, 16, 3, hint="state", gain=2.0), "state")


def fading_states(net):
    """Words by states that fade, with gates; no attention."""
    ids, x = words(net, 6, 16)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            y, gate = net.split(linear(net, layer_norm(net, x, 16, hint="norm"), 16, 32, bias=False, hint="in_proj"), [16, 16], 2)
            y = decaying_states(net, activation(net, y, "swish"), 6, 16, 3)
            x = net.add(x, linear(net, net.mul(y, activation(net, gate, "swish")), 16, 16, bias=False, hint="out_proj"))
    next_word(net, x, 16)


def fading_rows(net):
    """A picture's rows one after the other, states that fade, forwards; a class."""
    x = conv(net, net.input("image", [BATCH, 3, 12, 12], "image"), 3, 12, 4, stride=4, pads=[0] * 4, hint="patch")
    x = tokens_of(net, x, 12, 9)
    x = net.add(x, decaying_states(net, layer_norm(net, x, 12, hint="n1"), 9, 12, 2))
    x = net.add(x, feed_forward(net, layer_norm(net, x, 12, hint="n2"), 12, 20, net.pick("gelu", "relu")))
    net.output(linear(net, last_of(net, x), 12, 6, rank=2, hint="head", gain=2.0), "logits")


def coupled_layer(net, x, n_in, hidden, hint):
    """A cell that forgets as much as it takes in."""
    with net.scope(hint):
        w, r = net.trained((1, 4 * hidden, n_in), n_in, 1.2, "W"), net.trained((1, 4 * hidden, hidden), hidden, 0.9, "R")
        b = net.weight((0.2 * net.rng.standard_normal((1, 8 * hidden))).astype(np.float32), "B")
        y, _ = net.op("LSTM", x, w, r, b, n=2, hidden_size=hidden, input_forget=1)
        return net.squeeze(y, 1)


def hard_layer(net, x, kind, n_in, hidden, hint, both=False):
    """Gates as lines between two limits, as steep as later versions have them."""
    gates, d = {"LSTM": 4, "GRU": 3}[kind], 2 if both else 1
    names = (["HardSigmoid", "Tanh", "Tanh"] if kind == "LSTM" else ["HardSigmoid", "Tanh"]) * d
    with net.scope(hint):
        w, r = net.trained((d, gates * hidden, n_in), n_in, 1.6, "W"), net.trained((d, gates * hidden, hidden), hidden, 1.0, "R")
        b = net.weight((0.3 * net.rng.standard_normal((d, 2 * gates * hidden))).astype(np.float32), "B")
        more = {"linear_before_reset": 1} if kind == "GRU" else {}
        y, _ = net.op(kind, x, w, r, b, n=2, hidden_size=hidden, direction="bidirectional" if both else "forward", activations=names,
                      activation_alpha=[1 / 6 if a == "HardSigmoid" else 0.0 for a in names],
                      activation_beta=[0.5 if a == "HardSigmoid" else 0.0 for a in names], **more)
        return net.op("Reshape", net.transpose(y, 0, 2, 1, 3), net.ints(0, 0, d * hidden))


def coupled_tagger(net):
    """Words and their labels, by cells with one gate for two."""
    ids, x = words(net, 7, 12)
    h = coupled_layer(net, net.transpose(x, 1, 0, 2), 12, 14, "lstm0")
    h = coupled_layer(net, h, 14, 14, "lstm1")
    net.output(net.op("LogSoftmax", linear(net, net.transpose(h, 1, 0, 2), 14, 9, hint="tags", gain=2.0), axis=2), "tags")


def coupled_meter(net):
    """A meter's readings by convolutions and a cell that forgets as it takes in; how much comes next."""
    x = conv(net, net.input("load", [BATCH, 2, 16], "signal"), 2, 8, 3, stride=2, rank=1, hint="conv")
    h = coupled_layer(net, net.transpose(activation(net, x, "relu"), 2, 0, 1), 8, 10, "lstm")
    y = last_of(net, net.transpose(h, 1, 0, 2))
    net.output(linear(net, y, 10, 4, rank=2, hint="out", gain=2.0), "later")


def hard_gated(net):
    """Letters by two layers whose gates are lines."""
    ids, x = words(net, 8, 10, 26)
    h = hard_layer(net, net.transpose(x, 1, 0, 2), net.pick("LSTM", "GRU"), 10, 12, "rnn0", net.pick(True, False) and False)
    h = hard_layer(net, h, net.pick("LSTM", "GRU"), 12, 12, "rnn1")
    net.output(linear(net, net.transpose(h, 1, 0, 2), 12, 26, hint="next", gain=2.0), "letters")


def hard_gestures(net):
    """Movements of a hand in both directions, gates as lines; which sign."""
    x = net.transpose(net.input("joints", [BATCH, 9, 6], "signal"), 1, 0, 2)
    h = hard_layer(net, x, net.pick("GRU", "LSTM"), 6, 10, "rnn", True)
    y = net.reduce("Mean", h, [0], 0)
    net.output(net.softmax(linear(net, y, 20, 7, rank=2, hint="sign", gain=2.0), 2), "sign")


def adapted_reader(net):
    """A decoder with what was learned later beside queries and values."""
    ids, x = words(net, 6, 16)
    mask, scale = causal_mask(net, 6), net.pick(2.0, 1.0, 4.0)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            y = layer_norm(net, x, 16, hint="n1")
            key = net.transpose(linear(net, y, 16, 16, hint="k_proj"), 0, 2, 1)
            scores = net.mul(net.op("MatMul", adapted(net, y, 16, 16, 2, scale, "q_proj"), key), net.const(0.25))
            y = net.op("MatMul", net.softmax(net.add(scores, net.squeeze(mask, 0)), 3), adapted(net, y, 16, 16, 2, scale, "v_proj"))
            x = net.add(x, linear(net, y, 16, 16, hint="o_proj"))
            x = net.add(x, feed_forward(net, layer_norm(net, x, 16, hint="n2"), 16, 24, "swish"))
    next_word(net, x, 16)


def adapted_labels(net):
    """A vector from elsewhere, layers with adapters, and labels that do not exclude each other."""
    x = net.input("vector", [BATCH, 20], "features")
    for i in range(2):
        x = activation(net, adapted(net, x, 20, 20, 3, net.pick(1.5, 2.0), f"fc{i}"), net.pick("relu", "gelu"))
    net.output(net.op("Sigmoid", linear(net, x, 20, 8, rank=2, hint="labels", gain=2.0)), "labels")


def with_weight(net, x, w, n, hint):
    with net.scope(hint):
        return net.add(net.op("MatMul", x, w), net.vector(n))


def packed_middles(net):
    """A decoder whose layers are whole numbers with a middle for each group of rows."""
    ids, x = words(net, 6, 16)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, 16, hint="n1"), 6, 16, 2, None, None, ids))
            y = activation(net, with_weight(net, layer_norm(net, x, 16, hint="n2"), grouped_weight(net, 16, 24, 4, hint="up"), 24, "up"), "swish")
            x = net.add(x, with_weight(net, y, grouped_weight(net, 24, 16, 8, hint="down"), 16, "down"))
    next_word(net, x, 16)


def packed_router(net):
    """Rows through layers of eight and of four bits; which queue."""
    x = net.input("ticket", [BATCH, 16], "features")
    h = activation(net, with_weight(net, x, grouped_weight(net, 16, 24, 4, net.pick(4, 8), "fc1"), 24, "fc1"), net.pick("relu", "gelu"))
    h = activation(net, with_weight(net, h, grouped_weight(net, 24, 24, 6, 4, "fc2"), 24, "fc2"), "relu")
    net.output(net.softmax(linear(net, h, 24, 7, rank=2, hint="queue", gain=2.0), 2), "queue")


def nested_scales(net):
    """A reader whose weights are places in a book, and whose scales are bytes."""
    ids, x = words(net, 6, 16)
    x = net.add(x, learned(net, (1, 6, 16), "pos"))
    for i in range(2):
        with net.scope(f"layers.{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, 16, hint="n1"), 6, 16, 2, None, None, ids))
            y = activation(net, with_weight(net, layer_norm(net, x, 16, hint="n2"), nested_weight(net, 16, 24, hint="fc1"), 24, "fc1"), net.pick("gelu", "relu"))
            x = net.add(x, with_weight(net, y, nested_weight(net, 24, 16, hint="fc2"), 16, "fc2"))
    net.output(linear(net, net.reduce("Mean", x, [1], 0), 16, 6, rank=2, hint="head", gain=2.0), "label")


def nested_signal(net):
    """A signal's features through layers of a book with bytes for scales."""
    x = net.op("Flatten", conv(net, net.input("signal", [BATCH, 2, 16], "signal"), 2, 4, 5, stride=2, rank=1, hint="conv"), axis=1)
    h = activation(net, with_weight(net, x, nested_weight(net, 32, 20, hint="fc1"), 20, "fc1"), "tanh")
    h = activation(net, with_weight(net, h, nested_weight(net, 20, 12, hint="fc2"), 12, "fc2"), "relu")
    net.output(linear(net, h, 12, 5, rank=2, hint="out", gain=2.0), "state")


def byte_scales(net):
    """Layers in bytes, a scale for each column beside them; gates."""
    ids, x = words(net, 6, 16)
    for i in range(2):
        with net.scope(f"layers.{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, 16, hint="n1"), 6, 16, 2, None, None, ids))
            y = layer_norm(net, x, 16, hint="n2")
            gate = activation(net, net.op("MatMul", y, scaled_weight(net, 16, 24, "gate_proj")), "swish")
            y = net.mul(gate, net.op("MatMul", y, scaled_weight(net, 16, 24, "up_proj")))
            x = net.add(x, net.op("MatMul", y, scaled_weight(net, 24, 16, "down_proj")))
    next_word(net, x, 16)


def byte_columns(net):
    """Rows of numbers through three layers in bytes."""
    x = layer_norm(net, net.input("row", [BATCH, 14], "features"), 14, hint="norm")
    h = activation(net, with_weight(net, x, scaled_weight(net, 14, 20, "fc1"), 20, "fc1"), net.pick("swish", "relu"))
    h = activation(net, with_weight(net, h, scaled_weight(net, 20, 20, "fc2"), 20, "fc2"), "relu")
    net.output(linear(net, h, 20, 4, rank=2, hint="out", gain=2.0), "value")


def stored_patterns(net):
    """What comes in calls up patterns that were stored, again and again; forwards and backwards before it."""
    x = net.transpose(net.input("frames", [BATCH, 6, 8], "signal"), 1, 0, 2)
    h, _ = recurrent(net, x, net.pick("GRU", "LSTM"), 8, 8, "bidirectional", hint="rnn")
    q = net.transpose(h, 1, 0, 2)
    memory = net.trained((12, 16), 4, 1.0, "patterns")
    for _ in range(2):
        score = net.mul(net.op("MatMul", q, net.op("Transpose", memory, perm=[1, 0])), net.const(net.pick(1.0, 2.0)))
        q = net.add(net.op("MatMul", net.softmax(score, 3), memory), net.mul(q, net.const(0.2)))
    net.output(linear(net, net.reduce("Mean", q, [1], 0), 16, 5, rank=2, hint="out", gain=2.0), "kind")
