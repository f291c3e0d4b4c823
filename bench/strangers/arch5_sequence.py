"""Fifth generation: networks of texts, tokens and steps."""
import numpy as np

from blocks import activation, causal_mask, layer_norm, linear, recurrent
from layers4 import attend, block, feed_forward, from_heads, learned, rotate, to_heads
from layers5 import (columns_of, cross_attention, gather_rows, grouped_attention, lerp, mask_of_lengths, modulated, shifted, table_of, unit_length, waves)
from net import BATCH, trained
from vision import conv


def sentence_vectors(net):
    """A reader in both directions; the vector of the last word that is no padding, at length one."""
    n, d = 10, net.pick(16, 24)
    ids, flags = net.input("input_ids", [BATCH, n], "tokens"), net.input("attention_mask", [BATCH, n], "flags")
    m, mask = net.op("Cast", flags, to=1), mask_of_lengths(net, flags)
    x = table_of(net, ids, 50, d)
    for i in range(2):
        with net.scope(f"layers/{i}"):
            x = net.add(x, grouped_attention(net, layer_norm(net, x, d, hint="ln1", centred=False), n, d, 2, mask))
            x = net.add(x, feed_forward(net, layer_norm(net, x, d, hint="ln2", centred=False), d, 24, net.pick("gelu", "swish")))
    last = net.op("Cast", net.op("Sub", net.reduce("Sum", m, [1], 0), net.const(1.0)), to=7)
    net.output(unit_length(net, gather_rows(net, layer_norm(net, x, d, hint="norm"), last, d)), "embedding")


def padded_in_front(net):
    """Prompts end together: positions count from where the text begins, and what is before it is hidden."""
    n, d = 9, net.pick(16, 24)
    ids, flags = net.input("input_ids", [BATCH, n], "tokens"), net.input("attention_mask", [BATCH, n], "late_flags")
    m = net.op("Cast", flags, to=1)
    count = net.op("Sub", net.op("CumSum", m, net.const(1, np.int64)), net.const(1.0))
    place = net.op("Cast", net.clip(count, 0.0, None), to=7)
    x = net.add(table_of(net, ids, 50, d), table_of(net, place, n, d, "wpe"))
    mask = net.add(mask_of_lengths(net, flags), net.const(np.where(np.tril(np.ones((1, 1, n, n), bool)), 0, -1e4)))
    for i in range(2):
        x = block(net, x, n, d, 2, net.pick("gelu", "gelu_tanh"), mask=mask, hint=f"h.{i}")
    last = net.op("Gather", layer_norm(net, x, d, hint="ln_f"), net.const(n - 1, np.int64), axis=1)
    net.output(linear(net, last, d, 50, rank=2, bias=False, hint="lm_head"), "logits")


def bucketed_pair(net):
    """Biases by how far apart words are, in few buckets for either side; a second text reads the first, of the same length."""
    n, d, heads, buckets = 8, 16, 2, 8
    source, target = net.input("input_ids", [BATCH, n], "tokens"), net.input("decoder_input_ids", [BATCH, n], "tokens")
    words = learned(net, (50, d), "shared.weight", 1.0)
    gap = np.arange(n)[None] - np.arange(n)[:, None]
    index = np.where(gap > 0, buckets // 2, 0) + np.minimum(np.abs(gap), buckets // 2 - 1)
    bias = net.op("Gather", learned(net, (buckets, heads), "relative_attention_bias.weight", 1.0), net.const(index, np.int64), axis=0)
    bias = net.unsqueeze(net.transpose(bias, 2, 0, 1), 0)
    x = net.op("Gather", words, source, axis=0)
    for i in range(2):
        with net.scope(f"encoder/block/{i}"):
            x = net.add(x, grouped_attention(net, layer_norm(net, x, d, centred=False), n, d, heads, bias, turned=False))
            x = net.add(x, feed_forward(net, layer_norm(net, x, d, centred=False, hint="norm2"), d, 32, "relu"))
    memory, mask = layer_norm(net, x, d, centred=False, hint="encoder/final"), causal_mask(net, n)
    y = net.op("Gather", words, target, axis=0)
    with net.scope("decoder"):
        y = net.add(y, grouped_attention(net, layer_norm(net, y, d, centred=False), n, d, heads, mask, turned=False))
        y = net.add(y, cross_attention(net, layer_norm(net, y, d, centred=False, hint="norm2"), memory, n, n, d, heads))
        y = net.add(y, feed_forward(net, layer_norm(net, y, d, centred=False, hint="norm3"), d, 32, "gelu_tanh"))
    net.output(linear(net, layer_norm(net, y, d, centred=False, hint="final"), d, 50, bias=False, hint="lm_head"), "logits")


def turned_keys(net):
    """A decoder whose queries and keys are turned; what follows is the word it says next."""
    n, d, heads = 10, net.pick(16, 24), 2
    x, mask = table_of(net, net.input("input_ids", [BATCH, n], "tokens"), 50, d), causal_mask(net, n)
    for i in range(2):
        with net.scope(f"model/layers.{i}"):
            x = net.add(x, grouped_attention(net, layer_norm(net, x, d, centred=False, hint="input_layernorm"), n, d, heads, mask, hint="attn"))
            x = net.add(x, feed_forward(net, layer_norm(net, x, d, centred=False, hint="post_attention_layernorm"), d, 32, "swish", hint="mlp"))
    net.output(linear(net, layer_norm(net, x, d, centred=False, hint="model/norm"), d, 50, bias=False, hint="lm_head"), "logits")


def conditioned_tokens(net):
    """Tokens under a time: norms whose scale and offset it gives, and a gate."""
    n, d = 9, 16
    x, t = net.input("tokens", [BATCH, n, 6], "features"), net.input("time", [BATCH, 1], "fraction")
    c = linear(net, waves(net, net.mul(t, net.const(net.pick(100.0, 1000.0))), 4, net.pick(1e4, 100.0), net.pick(True, False)), 8, d, rank=2, hint="time")
    c = linear(net, activation(net, c, "swish"), d, d, rank=2, hint="time2")
    h = net.add(linear(net, x, 6, d, hint="in"), learned(net, (1, n, d), "pos"))
    for i in range(2):
        with net.scope(f"blocks.{i}"):
            y, gate = modulated(net, h, d, c, d, gate=True, hint="ada1")
            h = net.add(h, net.mul(grouped_attention(net, y, n, d, 2, like=x, turned=False), gate))
            y, gate = modulated(net, h, d, c, d, gate=True, hint="ada2")
            h = net.add(h, net.mul(feed_forward(net, y, d, 24, net.pick("gelu", "gelu_tanh")), gate))
    y, = modulated(net, h, d, c, d, hint="last")
    net.output(linear(net, y, d, 6, hint="out"), "velocity")


def kernel_attention(net):
    """No softmax: positive features of queries and keys, and their sum below."""
    n, d, heads = 12, 16, 2
    size, like = d // heads, net.input("steps", [BATCH, n, 5], "signal")
    x = net.add(linear(net, like, 5, d, hint="in"), learned(net, (1, n, d), "pos"))
    for i in range(2):
        with net.scope(f"layer{i}"):
            h = layer_norm(net, x, d, hint="norm1")
            q, k, v = (to_heads(net, linear(net, h, d, d, hint=m), n, heads, size, like) for m in "qkv")
            q, k = (net.add(net.op("Elu", t, alpha=1.0), net.const(1.0)) for t in (q, k))
            context = net.op("MatMul", net.transpose(k, 0, 1, 3, 2), v)
            below = net.op("MatMul", q, net.transpose(net.reduce("Sum", k, [2]), 0, 1, 3, 2))
            y = net.op("Div", net.op("MatMul", q, context), net.add(below, net.const(1e-6)))
            x = net.add(x, linear(net, from_heads(net, y, n, d, like), d, d, hint="o"))
            x = net.add(x, feed_forward(net, layer_norm(net, x, d, hint="norm2"), d, 24, "relu"))
    net.output(linear(net, net.reduce("Mean", x, [1], 0), d, 9, rank=2, hint="head", gain=2.0), "label")


def mixed_steps(net):
    """Each step is mixed with the one before it; what was decays as each channel has learned."""
    n, d = 6, 12
    x = net.add(table_of(net, net.input("input_ids", [BATCH, n], "tokens"), 50, d), learned(net, (1, n, d), "pos"))
    for i in range(2):
        with net.scope(f"blocks.{i}/att"):
            h = layer_norm(net, x, d, hint="ln")
            before = shifted(net, h, n)
            mixed = {m: lerp(net, h, before, net.weight(net.rng.uniform(0.1, 0.9, (1, 1, d)).astype(np.float32), f"time_mix_{m}"))
                     for m in ("key", "value", "receptance")}
            k, v, r = (linear(net, x_m, d, d, bias=False, hint=m) for m, x_m in mixed.items())
            decay = net.op("Exp", net.op("Neg", net.op("Exp", learned(net, (1, 1, d), "time_decay", 0.6))))
            weight = net.op("Exp", net.clip(k, -4.0, 4.0))
            rows, top, below = [], None, None
            for t in range(n):
                wt, vt = net.slice(weight, 1, t, t + 1), net.slice(v, 1, t, t + 1)
                top = net.mul(wt, vt) if top is None else net.add(net.mul(top, decay), net.mul(wt, vt))
                below = wt if below is None else net.add(net.mul(below, decay), wt)
                rows.append(net.op("Div", top, below))
            y = net.mul(net.op("Sigmoid", r), net.concat(*rows, axis=1))
            x = net.add(x, linear(net, y, d, d, bias=False, hint="output"))
    net.output(linear(net, layer_norm(net, x, d, hint="ln_out"), d, 20, hint="head"), "logits")


def punished_words(net):
    """What was said already is less likely: its score is divided, or multiplied where it is negative."""
    n, d, words = 8, 16, 24
    ids = net.input("input_ids", [BATCH, n], "tokens", vocab=words)
    x = net.add(table_of(net, ids, words, d), learned(net, (1, n, d), "wpe"))
    x = block(net, x, n, d, 2, net.pick("gelu", "gelu_tanh"), mask=causal_mask(net, n), hint="h.0")
    last = net.op("Gather", layer_norm(net, x, d, hint="ln_f"), net.const(n - 1, np.int64), axis=1)
    logits, penalty = linear(net, last, d, words, rank=2, hint="head", gain=2.0), net.const(net.pick(1.3, 2.0))
    said = net.op("Greater", net.reduce("Max", columns_of(net, ids, words), [1], 0), net.const(0.5))
    less = net.op("Where", net.op("Less", logits, net.const(0.0)), net.mul(logits, penalty), net.op("Div", logits, penalty))
    net.output(net.op("Where", said, less, logits), "scores")


def summed_directions(net):
    """Forwards and backwards, added or averaged; twice."""
    n, d, h, kind = 8, 6, 8, net.pick("LSTM", "GRU")
    x = net.transpose(net.input("x", [BATCH, n, d], "signal"), 1, 0, 2)
    for i in range(2):
        with net.scope(f"bidirectional_{i}"):
            y, _ = recurrent(net, x, kind, d if i == 0 else h, h, "bidirectional", hint="rnn")
            a, b = net.split(y, [h, h], 2)
            x = net.add(a, b)
            x = net.mul(x, net.const(0.5)) if i and net.pick(True, False) else x
    net.output(net.transpose(linear(net, x, h, 5, hint="tags", gain=2.0), 1, 0, 2), "tags")


def started_states(net):
    """What is remembered comes from a vector, held and hidden apart; both outlive the steps."""
    n, d, h = 7, 5, 8
    c = net.input("context", [BATCH, 6], "features")
    x = net.transpose(net.input("steps", [BATCH, n, d], "signal"), 1, 0, 2)
    held, hidden = (net.unsqueeze(net.op("Tanh", linear(net, c, 6, h, rank=2, hint=m)), 0) for m in ("init_c", "init_h"))
    with net.scope("lstm"):
        w, r = net.trained((1, 4 * h, d), d, 1.2, "W"), net.trained((1, 4 * h, h), h, 0.9, "R")
        b = net.weight((0.2 * net.rng.standard_normal((1, 8 * h))).astype(np.float32), "B")
        y, yh, yc = net.op("LSTM", x, w, r, b, "", hidden, held, n=3, hidden_size=h,
                           activations=net.pick(None, ["Sigmoid", "Tanh", "Relu"], ["HardSigmoid", "Tanh", "Tanh"]))
    net.output(net.transpose(linear(net, net.squeeze(y, 1), h, 4, hint="out"), 1, 0, 2), "y")
    net.output(net.squeeze(yc, 0), "held")
    net.output(net.squeeze(yh, 0), "hidden")


def unrolled_cell(net):
    """A cell written out step by step: one matrix, four parts, in the order of the framework."""
    n, d, h = 5, 6, 8
    x = net.input("x", [BATCH, n, d], "signal")
    w, r = net.weight(np.ascontiguousarray(trained(net.rng, (4 * h, d), d, 1.2).T), "kernel"), net.weight(
        np.ascontiguousarray(trained(net.rng, (4 * h, h), h, 0.9).T), "recurrent_kernel")
    b, hidden, cell = net.vector(4 * h), None, None
    for t in range(n):
        with net.scope(f"step{t}"):
            z = net.op("MatMul", net.squeeze(net.slice(x, 1, t, t + 1), 1), w)
            if hidden:
                z = net.add(z, net.op("MatMul", hidden, r))
            i, j, f, o = net.split(net.add(z, b), [h] * 4, 1)
            new = net.mul(net.op("Sigmoid", i), net.op("Tanh", j))
            cell = net.add(net.mul(net.op("Sigmoid", net.add(f, net.const(1.0))), cell), new) if cell else new
            hidden = net.mul(net.op("Sigmoid", o), net.op("Tanh", cell))
    net.output(linear(net, hidden, h, 7, rank=2, hint="out", gain=2.0), "label")
    net.output(cell, "cell")


def square_stack(net):
    """Recurrent layers as wide as what they read, one above the other, each added to what it read."""
    n, d = 8, net.pick(8, 10)
    x = net.transpose(linear(net, net.input("series", [BATCH, n, 4], "signal"), 4, d, hint="in"), 1, 0, 2)
    for i in range(3):
        y, last = recurrent(net, x, net.pick("GRU", "LSTM", "RNN"), d, d, net.pick("forward", "reverse"), reset_after=net.pick(0, 1), hint=f"layer{i}")
        x = net.add(x, y)
    net.output(linear(net, net.squeeze(last, 0), d, 6, rank=2, hint="head", gain=2.0), "head")
    net.output(net.transpose(x, 1, 0, 2), "states")


def running_sums(net):
    """What was seen until each step: sums along time of gated steps, and their mean so far."""
    n, d = 10, net.pick(8, 10)
    x = net.input("events", [BATCH, n, 5], "signal")
    h = activation(net, linear(net, x, 5, d, hint="in"), "gelu_tanh")
    gate = net.op("Sigmoid", linear(net, h, d, d, hint="gate"))
    total = net.op("CumSum", net.mul(gate, h), net.const(1, np.int64))
    mean = net.mul(total, net.const((1 / np.arange(1, n + 1)).reshape(1, n, 1)))
    h = net.add(h, linear(net, mean, d, d, hint="mix"))
    total = net.op("CumSum", linear(net, h, d, 3, hint="hazard"), net.const(1, np.int64))
    net.output(net.op("Exp", net.op("Neg", net.op("Softplus", total))), "survival")


def best_passages(net):
    """The best passages, best first; each counts less than the one before."""
    n, d, k = 9, 12, net.pick(3, 4)
    q, p = net.input("query", [BATCH, d], "features"), net.input("passages", [BATCH, n, d], "features")
    with net.scope("encode"):
        a = linear(net, activation(net, linear(net, q, d, 16, rank=2, hint="q1"), "tanh"), 16, d, rank=2, hint="q2")
        b = linear(net, activation(net, linear(net, p, d, 16, hint="p1"), "tanh"), 16, d, hint="p2")
    score = net.squeeze(net.op("MatMul", b, net.unsqueeze(a, 2)), 2)
    values, index = net.topk(score, k)
    rows = net.op("GatherElements", b, net.op("Expand", net.unsqueeze(index, 2), net.ints(1, 1, d)), axis=1)
    rows = net.mul(rows, net.const((0.6 ** np.arange(k)).reshape(1, k, 1)))
    net.output(values, "scores")
    net.output(linear(net, net.reduce("Sum", rows, [1], 0), d, 8, rank=2, hint="answer", gain=2.0), "answer")


def labelled_spans(net):
    """Words over a window of words, a smaller and a larger, and the logarithm of how likely each label is."""
    n, d = 12, net.pick(12, 16)
    ids, caps = net.input("words", [BATCH, n], "tokens"), net.input("caps", [BATCH, n], "tokens", vocab=4)
    x = net.concat(table_of(net, ids, 50, d - 4), columns_of(net, caps, 4), axis=2)
    h = net.transpose(x, 0, 2, 1)
    for i, k in enumerate((3, 5)):
        h = net.add(activation(net, conv(net, h, d, d, k, rank=1, hint=f"conv{i}"), net.pick("relu", "mish")), h)
    y = linear(net, net.transpose(h, 0, 2, 1), d, 9, hint="labels", gain=2.0)
    net.output(net.op("LogSoftmax", y, axis=2 if net.opset < 13 else -1), "log_shares")


def cut_weights(net):
    """Weights are numbers of a small book, and a scale for each group of rows, which need not be neighbours."""
    n, d, inner = 8, 16, 24
    x, mask = table_of(net, net.input("input_ids", [BATCH, n], "tokens"), 50, d), causal_mask(net, n)
    book = np.array([-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0, 0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.723, 1.0], np.float32)

    def layer(y, a, b, hint):
        with net.scope(hint):
            codes = net.weight(net.rng.integers(0, 16, (a, b)).astype(np.int64), "qweight")
            w = net.op("Gather", net.weight(book, "code"), codes, axis=0)
            groups = net.weight(net.rng.permutation(np.repeat(np.arange(4), a // 4)).astype(np.int64), "g_idx")
            scales = net.weight((np.exp(0.5 * net.rng.standard_normal((4, b))) * 1.6 / np.sqrt(a)).astype(np.float32), "scales")
            return net.op("MatMul", y, net.mul(w, net.op("Gather", scales, groups, axis=0)))
    for i in range(2):
        with net.scope(f"layers.{i}"):
            h = layer_norm(net, x, d, centred=False, hint="norm1")
            q, k, v = (to_heads(net, layer(h, d, d, m), n, 2, d // 2) for m in ("q_proj", "k_proj", "v_proj"))
            q, k = (rotate(net, t, n, d // 2) for t in (q, k))
            x = net.add(x, layer(from_heads(net, attend(net, q, k, v, d // 2, mask), n, d), d, d, "o_proj"))
            x = net.add(x, layer(activation(net, layer(layer_norm(net, x, d, centred=False, hint="norm2"), d, inner, "up"), "swish"), inner, d, "down"))
    net.output(linear(net, layer_norm(net, x, d, centred=False, hint="norm"), d, 50, bias=False, hint="lm_head"), "logits")


def turned_space(net):
    """A matrix of signs turns what is read and is undone in the weights behind it, so that few bits would do."""
    n, d, inner = 8, 16, 32
    x = net.add(table_of(net, net.input("input_ids", [BATCH, n], "tokens"), 50, d), learned(net, (1, n, d), "pos"))
    flags = mask_of_lengths(net, net.input("attention_mask", [BATCH, n], "flags"))

    def signs(size):
        h = np.ones((1, 1))
        while len(h) < size:
            h = np.block([[h, h], [h, -h]])
        return h / np.sqrt(size)
    for i in range(2):
        with net.scope(f"layer.{i}"):
            x = layer_norm(net, net.add(x, grouped_attention(net, x, n, d, 2, flags, turned=False)), d, hint="ln1")
            h = activation(net, linear(net, x, d, inner, hint="up"), net.pick("gelu", "relu"))
            turn = signs(inner)
            h = net.op("MatMul", h, net.weight(turn.astype(np.float32), "hadamard"))
            w = turn.T @ trained(net.rng, (d, inner), inner).T
            x = layer_norm(net, net.add(x, net.op("MatMul", h, net.weight(w.astype(np.float32), "down.weight"))), d, hint="ln2")
    net.output(linear(net, net.op("Gather", x, net.const(0, np.int64), axis=1), d, 6, rank=2, hint="head", gain=2.0), "label")
