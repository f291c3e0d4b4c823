"""Fourth generation: networks of texts, tokens and steps."""
import numpy as np

from arch_sequence import padding_mask
from blocks import activation, batch_norm, causal_mask, layer_norm, linear, recurrent
from layers4 import attend, block, feed_forward, from_heads, gated, learned, log1p, rotate, self_attention, table, to_heads
from net import BATCH
from vision import conv


def electra(net):
    """Small embeddings that a matrix widens; which words were replaced."""
    n, e, d = 10, 12, net.pick(16, 24)
    ids, kinds = net.input("input_ids", [BATCH, n], "tokens"), net.input("token_type_ids", [BATCH, n], "tokens", vocab=2)
    mask = padding_mask(net, net.input("attention_mask", [BATCH, n], "flags"))
    with net.scope("embeddings"):
        x = net.add(net.add(table(net, ids, 50, e, "words"), table(net, kinds, 2, e, "types")), learned(net, (1, n, e), "position"))
        x = linear(net, layer_norm(net, x, e, 1e-12), e, d, hint="project")
    for i in range(2):
        x = block(net, x, n, d, 2, first=False, mask=mask, hint=f"layer{i}")
    x = activation(net, linear(net, x, d, d, hint="dense"), "gelu")
    net.output(net.op("Sigmoid", net.squeeze(linear(net, x, d, 1, hint="prediction", gain=2.0), 2)), "replaced")


def sentence_pair(net):
    """Two parts of one text, a mean over what is no padding, and whether the second follows."""
    n, d = 12, net.pick(16, 24)
    ids, kinds = net.input("input_ids", [BATCH, n], "tokens"), net.input("segment_ids", [BATCH, n], "tokens", vocab=3)
    flags = net.input("input_mask", [BATCH, n], "flags")
    x = net.add(net.add(table(net, ids, 50, d, "word"), learned(net, (1, n, d), "positions")), table(net, kinds, 3, d, "segment"))
    mask = padding_mask(net, flags)
    for i in range(net.pick(1, 2)):
        x = block(net, x, n, d, 4, net.pick("gelu", "relu"), first=True, mask=mask, hint=f"encoder/{i}")
    x = layer_norm(net, x, d, hint="norm")
    weight = net.unsqueeze(net.op("Cast", flags, to=1), 2)
    mean = net.op("Div", net.reduce("Sum", net.mul(x, weight), [1], 0), net.reduce("Sum", weight, [1], 0))
    net.output(net.softmax(linear(net, mean, d, 3, rank=2, hint="cls", gain=2.0), 2), "relation")


def olmo(net):
    """Rotations by tables of the whole size, norms without parameters of their own, gates in one matrix."""
    n, d, heads = 10, net.pick(16, 32), 2
    x, mask, pairs = table(net, net.input("input_ids", [BATCH, n], "tokens"), 50, d, "tok"), causal_mask(net, n), net.pick(True, False)
    for i in range(2):
        with net.scope(f"blocks/{i}"):
            turn = lambda t: rotate(net, t, n, d // heads, net.pick(10000.0, 500.0), pairs)
            x = net.add(x, self_attention(net, layer_norm(net, x, d, hint="attn_norm"), n, d, heads, mask, turn=turn))
            y = gated(net, layer_norm(net, x, d, hint="ff_norm"), d, 24, rank=3, act="Sigmoid")
            x = net.add(x, linear(net, y, 24, d, bias=False, hint="ff_out"))
    net.output(linear(net, layer_norm(net, x, d, hint="final"), d, 50, bias=False, hint="lm_head"), "logits")


def normed_queries(net):
    """Queries and keys are normalized for themselves, then turned; two norms in a block; a sharper or softer answer."""
    n, d, heads = 8, 24, 3
    x, mask, size = table(net, net.input("tokens", [BATCH, n], "tokens"), 50, 24, "embed"), causal_mask(net, n), 8
    x = net.mul(x, net.const(np.sqrt(d)))
    for i in range(2):
        with net.scope(f"layers/{i}"):
            h = layer_norm(net, x, d, hint="ln1", centred=net.pick(True, False))
            q, k, v = (to_heads(net, linear(net, h, d, d, hint=m), n, heads, size) for m in "qkv")
            q, k = (rotate(net, layer_norm(net, t, size, hint=m, centred=False), n, size) for t, m in ((q, "q_norm"), (k, "k_norm")))
            x = net.add(x, linear(net, from_heads(net, attend(net, q, k, v, size, mask), n, d), d, d, hint="o"))
            x = net.add(x, feed_forward(net, layer_norm(net, x, d, hint="ln2"), d, 32, "swish"))
    x = layer_norm(net, x, d, hint="norm_f")
    last = net.op("Gather", x, net.const(n - 1, np.int64), axis=1)
    logits = linear(net, last, d, 50, rank=2, hint="head")
    net.output(net.softmax(net.op("Div", logits, net.const(net.pick(0.7, 1.3))), 2), "next")


def dual_path(net):
    """Along chunks, then across them, by recurrent layers."""
    k, c, d = 4, 5, 8
    x = net.input("chunks", [BATCH, c, k, d], "signal")
    hidden = net.pick(8, 6)
    with net.scope("intra"):
        y = net.transpose(net.op("Reshape", x, net.ints(-1, k, d)), 1, 0, 2)
        y, _ = recurrent(net, y, net.pick("GRU", "LSTM"), d, hidden, "bidirectional")
        y = net.transpose(linear(net, y, 2 * hidden, d, hint="back"), 1, 0, 2)
        x = net.add(x, net.reshape(y, [BATCH, c, k, d], like=x))
    with net.scope("inter"):
        y = net.op("Reshape", net.transpose(x, 1, 0, 2, 3), net.ints(c, -1, d))
        y, _ = recurrent(net, y, "GRU", d, hidden)
        y = linear(net, y, hidden, d, hint="back")
        like = x
        y = net.transpose(net.op("Reshape", y, net.ints(c, -1, k, d)), 1, 0, 2, 3)
        x = net.add(x, y)
    net.output(net.op("Sigmoid", linear(net, net.reshape(x, [BATCH, c * k, d], like=like), d, 3, hint="mask", gain=2.0)), "masks")


def irnn(net):
    """A plain recurrent layer that rectifies, twice."""
    n, d, h = 9, 6, net.pick(8, 12)
    x = net.transpose(net.input("steps", [BATCH, n, d], "signal"), 1, 0, 2)
    x, _ = recurrent(net, x, "RNN", d, h, activations=["Relu"], hint="rnn1")
    x, last = recurrent(net, x, "RNN", h, h, net.pick("forward", "reverse"), activations=["Relu"], hint="rnn2")
    net.output(net.transpose(linear(net, x, h, 4, hint="each"), 1, 0, 2), "each")
    net.output(linear(net, net.squeeze(last, 0), h, 11, rank=2, hint="all", gain=2.0), "label")


def deep_speech(net):
    """Clipped rectifiers, a recurrent layer forwards and backwards that rectifies, letters."""
    n, d, h = 8, 12, 10
    x = net.input("features", [BATCH, n, d], "signal")
    for i in range(2):
        x = net.clip(linear(net, x, 12 if i == 0 else 16, 16, hint=f"h{i}"), 0.0, net.pick(20.0, 3.0))
    x, _ = recurrent(net, net.transpose(x, 1, 0, 2), "RNN", 16, h, "bidirectional", activations=["Relu"], hint="h4")
    x = net.clip(linear(net, net.transpose(x, 1, 0, 2), 2 * h, 16, hint="h5"), 0.0, 20.0)
    net.output(net.softmax(linear(net, x, 16, 29, hint="h6", gain=2.0), 3), "letters")


def aligner(net):
    """How long each letter lasts, added up, says which letter a frame belongs to."""
    n, d, frames = 6, 16, 12
    x = net.add(table(net, net.input("letters", [BATCH, n], "tokens", vocab=30), 30, d), learned(net, (1, n, d), "position"))
    x = block(net, x, n, d, 2, "relu", hint="encoder")
    length = net.op("Softplus", net.squeeze(linear(net, x, d, 1, hint="duration"), 2))
    end = net.op("CumSum", length, net.const(1, np.int64))
    middle = net.op("Sub", end, net.mul(length, net.const(0.5)))
    distance = net.op("Sub", net.const(np.arange(frames).reshape(1, frames, 1) * 0.5), net.unsqueeze(middle, 1))
    share = net.softmax(net.op("Neg", net.mul(net.mul(distance, distance), net.const(0.8))), 3)
    y = net.op("MatMul", share, x)
    net.output(linear(net, activation(net, y, "tanh"), d, 8, hint="mel"), "mel")
    net.output(length, "duration")


def monotonic(net):
    """Where attention stops: chances that it went on before, multiplied as sums of logarithms."""
    n, d = 10, net.pick(12, 16)
    keys, query = net.input("memory", [BATCH, n, d], "features"), net.input("query", [BATCH, d], "features")
    energy = net.op("Tanh", net.add(linear(net, keys, d, 16, hint="k"), net.unsqueeze(linear(net, query, d, 16, rank=2, hint="q"), 1)))
    stop = net.op("Sigmoid", net.squeeze(linear(net, energy, 16, 1, hint="v", gain=2.0), 2))
    go = net.op("CumSum", net.op("Log", net.clip(net.op("Sub", net.const(1.0), stop), 1e-6, 1.0)), net.const(1, np.int64), exclusive=1)
    share = net.mul(stop, net.op("Exp", go))
    context = net.squeeze(net.op("MatMul", net.unsqueeze(share, 1), keys), 1)
    net.output(share, "alignment")
    net.output(linear(net, net.concat(context, query, axis=1), 2 * d, 5, rank=2, hint="out"), "out")


def value_net(net):
    """A board seen as planes: how good each move is, and how good the place."""
    n = net.pick(8, 12)
    x = conv(net, net.input("planes", [BATCH, 5, 6, 6], "image"), 5, n, 3, hint="stem")
    for i in range(2):
        with net.scope(f"res{i}"):
            y = activation(net, batch_norm(net, conv(net, x, n, n, 3, bias=False, hint="c1"), n, "b1"), net.pick("relu", "mish"))
            y = batch_norm(net, conv(net, y, n, n, 3, bias=False, hint="c2"), n, "b2")
            x = activation(net, net.add(x, y), "relu")
    p = net.reshape(conv(net, x, n, 2, 1, hint="policy"), [BATCH, 72], like=x)
    net.output(net.softmax(net.mul(linear(net, p, 72, 36, rank=2, hint="moves", gain=2.0), net.const(net.pick(1.5, 0.8))), 2), "policy")
    v = activation(net, linear(net, net.reshape(conv(net, x, n, 1, 1, hint="value"), [BATCH, 36], like=x), 36, 16, rank=2, hint="fc1"), "relu")
    net.output(net.op("Tanh", linear(net, v, 16, 1, rank=2, hint="fc2")), "value")


def session_net(net):
    """What was looked at, step by step, then what comes next; numbers of looks beside it."""
    n, d = 7, 12
    x = table(net, net.input("items", [BATCH, n], "tokens"), 50, d, "item")
    seen = log1p(net, net.input("looks", [BATCH, n, 1], "counts"))
    x = net.transpose(net.add(x, linear(net, seen, 1, d, hint="looks")), 1, 0, 2)
    y, last = recurrent(net, x, "GRU", d, 12, reset_after=net.pick(0, 1), hint="gru")
    last = net.squeeze(last, 0)
    share = net.softmax(linear(net, activation(net, net.add(linear(net, y, 12, 12, hint="a1"), linear(net, last, 12, 12, rank=2, hint="a2")), "sigmoid"),
                               12, 1, hint="v"), 3, axis=0)
    seenall = net.reduce("Sum", net.mul(share, y), [0], 0)
    net.output(linear(net, net.concat(seenall, last, axis=1), 24, 14, rank=2, hint="next", gain=2.0), "next")


def step_time(net):
    """A denoiser of vectors; its time of 0 to 1 becomes thousandths."""
    d = net.pick(12, 16)
    x, t = net.input("x", [BATCH, d], "features"), net.input("t", [BATCH, 1], "fraction")
    wave = net.mul(net.mul(t, net.const(net.pick(100.0, 30.0))), net.const(np.exp(-np.arange(4) * 1.2).reshape(1, 4)))
    e = net.concat(net.op("Sin", wave), net.op("Cos", wave), axis=1)
    e = linear(net, activation(net, linear(net, e, 8, 16, rank=2, hint="t1"), "swish"), 16, 2 * d, rank=2, hint="t2")
    for i in range(2):
        with net.scope(f"block{i}"):
            scale, shift = net.split(e, [d, d], 1)
            h = net.add(net.mul(layer_norm(net, x, d, hint="norm"), net.add(scale, net.const(1.0))), shift)
            x = net.add(x, linear(net, activation(net, linear(net, h, d, 24, rank=2, hint="fc1"), "gelu"), 24, d, rank=2, hint="fc2"))
    net.output(linear(net, layer_norm(net, x, d, hint="last"), d, d, rank=2, hint="out"), "noise")


def flow_match(net):
    """Tokens of a latent with a time and a label, norms scaled by both; where to go."""
    n, d = 9, 16
    z, t = net.input("latent", [BATCH, n, 4], "features"), net.input("time", [BATCH, 1], "fraction")
    label = net.input("label", [BATCH], "tokens", vocab=6)
    wave = net.mul(net.mul(t, net.const(40.0)), net.const(np.exp(-np.arange(4) * 0.9).reshape(1, 4)))
    c = net.add(linear(net, net.concat(net.op("Cos", wave), net.op("Sin", wave), axis=1), 8, d, rank=2, hint="time"), table(net, label, 6, d, "label"))
    c = activation(net, c, "swish")
    x = net.add(linear(net, z, 4, d, hint="in"), learned(net, (1, n, d), "pos"))
    for i in range(2):
        with net.scope(f"dit{i}"):
            scale, shift, gate = (net.unsqueeze(p, 1) for p in net.split(linear(net, c, d, 3 * d, rank=2, hint="ada"), [d, d, d], 1))
            h = net.add(net.mul(layer_norm(net, x, d, hint="norm"), net.add(scale, net.const(1.0))), shift)
            x = net.add(x, net.mul(self_attention(net, h, n, d, 2, like=z), gate))
            x = net.add(x, feed_forward(net, layer_norm(net, x, d, hint="norm2"), d, 24, "gelu_tanh"))
    net.output(linear(net, layer_norm(net, x, d, hint="final"), d, 4, hint="out"), "velocity")


def reranker(net):
    """A question and a text as one: rotations, padding left out, gates, and how well they suit each other."""
    n, d, heads = 10, net.pick(16, 24), 2
    ids, kinds = net.input("input_ids", [BATCH, n], "tokens"), net.input("type_ids", [BATCH, n], "tokens", vocab=2)
    mask = padding_mask(net, net.input("attention_mask", [BATCH, n], "flags"))
    x = layer_norm(net, net.add(table(net, ids, 50, d, "tok"), table(net, kinds, 2, d, "type")), d, hint="emb_norm")
    for i in range(2):
        with net.scope(f"layer/{i}"):
            turn = lambda t: rotate(net, t, n, d // heads, 10000.0, False)
            x = layer_norm(net, net.add(x, self_attention(net, x, n, d, heads, mask, turn=turn)), d, hint="norm1")
            x = layer_norm(net, net.add(x, linear(net, gated(net, x, d, 20, rank=3), 20, d, hint="down")), d, hint="norm2")
    first = net.op("Gather", x, net.const(0, np.int64), axis=1)
    score = linear(net, activation(net, linear(net, first, d, d, rank=2, hint="dense"), "tanh"), d, 2, rank=2, hint="score", gain=2.0)
    net.output(net.softmax(net.mul(score, net.const(net.pick(0.5, 2.0))), 2), "relevance")


def code_model(net):
    """What comes next in a text, of positions that are learned, with a head that is the embedding again."""
    n, d, heads = net.pick((9, 16, 2), (12, 24, 4))
    words = learned(net, (50, d), "wte.weight", 1.0)
    x = net.op("Gather", words, net.input("input_ids", [BATCH, n], "tokens"), axis=0)
    x, mask = net.add(x, learned(net, (n, d), "wpe.weight")), causal_mask(net, n)
    for i in range(2):
        x = block(net, x, n, d, heads, net.pick("gelu", "gelu_tanh", "relu"), mask=mask, hint=f"h/{i}")
    net.output(net.op("MatMul", layer_norm(net, x, d, hint="ln_f"), net.transpose(words, 1, 0)), "logits")


def event_net(net):
    """Things that happen along time: what is left to come, sums of three filters, thresholds."""
    n, d = 12, net.pick(8, 10)
    x = log1p(net, net.input("events", [BATCH, n, 4], "counts"))
    left = net.op("CumSum", x, net.const(1, np.int64), reverse=net.pick(0, 1), exclusive=net.pick(0, 1))
    h = net.transpose(linear(net, net.concat(x, net.mul(left, net.const(0.1)), axis=2), 8, d, hint="in"), 0, 2, 1)
    h = net.op("Sum", *[conv(net, h, d, d, k, rank=1, hint=f"conv{k}") for k in (1, 3, 5)])
    h = net.op("ThresholdedRelu", h, alpha=net.pick(0.1, 0.5))
    mean, most = net.reduce("Mean", h, [2]), net.reduce("Max", h, [2])
    both = net.reshape(net.concat(mean, most, axis=2), [BATCH, 2 * d], like=x)
    net.output(net.softmax(linear(net, both, 2 * d, 13, rank=2, hint="kind", gain=2.0), 2), "kind")
    net.output(net.op("Softplus", linear(net, both, 2 * d, 1, rank=2, hint="rate")), "rate")
