"""Third generation: networks of sequences of words, states and tokens."""
import numpy as np
from onnx import TensorProto, helper

from arch2_sequence import distances
from arch_sequence import embed, positions, time_first
from blocks import activation, attention, causal_mask, gated_mlp, heads, layer_norm, linear, mlp, recurrent
from net import BATCH, trained
from vision import conv


def rms(net, x, n, hint):
    return layer_norm(net, x, n, 1e-5, hint, centred=False)


def stretched_rotary(net, x, length, size, factor):
    """Positions are divided by a factor, for texts longer than those of the training."""
    angle = np.arange(length)[:, None] / factor * 10000.0 ** (-np.arange(0, size, 2) / size)[None]
    angle = np.concatenate([angle, angle], 1)
    low, high = net.slice(x, 3, 0, size // 2), net.slice(x, 3, size // 2, size)
    turned = net.concat(net.op("Neg", high), low, axis=3)
    return net.add(net.mul(x, net.const(np.cos(angle))), net.mul(turned, net.const(np.sin(angle))))


def sink_attention(net):
    """A score of nothing beside those of the keys; four norms in a block; rotations of stretched positions."""
    d, h, length, factor = 24, net.pick(2, 3), net.pick(8, 10), net.pick(1.0, 2.0, 4.0)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)
    mask = causal_mask(net, length)
    for i in range(2):
        with net.scope(f"layers{i}"):
            y = rms(net, x, d, "input_layernorm")
            q, k, v = (heads(net, linear(net, y, d, d, bias=False, hint=n), length, h, d // h, like=x) for n in ("q_proj", "k_proj", "v_proj"))
            q, k = (stretched_rotary(net, t, length, d // h, factor) for t in (q, k))
            scores = net.mul(net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const((d // h) ** -0.5))
            scores = net.add(scores, mask)
            sink = net.weight((0.5 + net.rng.standard_normal((1, h, 1, 1))).astype(np.float32), "sinks")
            sink = net.add(net.mul(net.slice(q, 3, 0, 1), net.const(0.0)), sink)
            p = net.slice(net.softmax(net.concat(scores, sink, axis=3), 4), 3, 0, length)
            y = net.reshape(net.transpose(net.op("MatMul", p, v), 0, 2, 1, 3), [BATCH, length, d], like=x)
            x = net.add(x, rms(net, linear(net, y, d, d, bias=False, hint="o_proj"), d, "post_attention_layernorm"))
            y = gated_mlp(net, rms(net, x, d, "pre_feedforward_layernorm"), d, 40, net.pick("swish", "gelu_tanh"))
            x = net.add(x, rms(net, y, d, "post_feedforward_layernorm"))
    net.output(linear(net, rms(net, x, d, "norm"), d, 50, bias=False, hint="lm_head"), "logits")


def latent_experts(net):
    """Keys and values from a narrow latent; experts are chosen by scores with a bias, and weighted by scores without."""
    d, h, length, experts, r, rotates = 24, 2, 8, 4, net.pick(8, 10), net.pick(None, 2.0, 8.0)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)
    mask = causal_mask(net, length)
    for i in range(2):
        with net.scope(f"layers{i}"):
            y = rms(net, x, d, "input_layernorm")
            latent = rms(net, linear(net, y, d, r, bias=False, hint="kv_a"), r, "kv_norm")
            q = heads(net, linear(net, y, d, d, bias=False, hint="q"), length, h, d // h, like=x)
            k, v = (heads(net, linear(net, latent, r, d, bias=False, hint=n), length, h, d // h, like=x) for n in ("kv_b_k", "kv_b_v"))
            if rotates:
                q, k = (stretched_rotary(net, t, length, d // h, rotates) for t in (q, k))
            scores = net.op("Div", net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const((d // h) ** 0.5))
            y = net.op("MatMul", net.softmax(net.add(scores, mask), 4), v)
            x = net.add(x, linear(net, net.reshape(net.transpose(y, 0, 2, 1, 3), [BATCH, length, d], like=x), d, d, bias=False, hint="o"))
            y = rms(net, x, d, "post_attention_layernorm")
            score = net.op("Sigmoid", linear(net, y, d, experts, bias=False, hint="router", gain=1.5))
            biased = net.add(score, net.vector(experts, 0.0, 0.3, "e_score_correction_bias"))
            _, chosen = net.topk(biased, 2)
            share = net.op("GatherElements", score, chosen, axis=2)
            share = net.mul(net.op("Div", share, net.add(net.reduce("Sum", share, [2]), net.const(1e-20))), net.const(net.pick(1.5, 2.5)))
            full = net.op("ScatterElements", net.mul(score, net.const(0.0)), chosen, share, axis=2)
            up, down = net.trained((1, experts, d, 16), d, 1.3, "up"), net.trained((1, experts, 16, d), 16, 1.0, "down")
            z = net.op("MatMul", activation(net, net.op("MatMul", net.unsqueeze(y, 1), up), "swish"), down)
            z = net.mul(z, net.unsqueeze(net.transpose(full, 0, 2, 1), 3))
            x = net.add(x, net.add(net.reduce("Sum", z, [1], 0), gated_mlp(net, y, d, 16, hint="shared")))
    net.output(linear(net, rms(net, x, d, "norm"), d, 50, bias=False, hint="lm_head"), "logits")


def layout_net(net):
    """Words with their places on a page."""
    d, length = net.pick(16, 24), 8
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)
    for n in ("left", "top", "right", "bottom"):
        x = net.add(x, embed(net, net.input(n, [BATCH, length], "tokens", vocab=20), 20, d, f"{n}_embeddings", 0.5)[0])
    x = layer_norm(net, positions(net, x, length, d), d)
    for i in range(2):
        with net.scope(f"layer{i}"):
            x = layer_norm(net, net.add(x, attention(net, x, length, d, 2)), d, hint="attention_norm")
            x = layer_norm(net, net.add(x, mlp(net, x, d, 2 * d, net.pick("gelu", "relu"))), d, hint="output_norm")
    net.output(linear(net, x, d, 5, hint="classifier"), "labels")


def transformer_xl(net):
    """Scores of distances come from a matrix that is shifted by padding and another shape."""
    d, h, length = 16, 2, net.pick(6, 8)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)
    mask = net.const(np.where(distances(length) >= 0, 0, -1e9))
    angle = np.arange(length - 1, -1, -1)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)[None]
    r = net.const(np.concatenate([np.sin(angle), np.cos(angle)], 1))
    for i in range(2):
        with net.scope(f"layers{i}"):
            q, k, v = (heads(net, linear(net, x, d, d, bias=False, hint=n), length, h, d // h, like=x) for n in "qkv")
            rk = net.transpose(net.op("Reshape", net.op("MatMul", r, net.trained((d, d), d, 1.0, "r")), net.ints(length, h, d // h)), 1, 2, 0)
            u, w = (net.weight((0.3 * net.rng.standard_normal((1, h, 1, d // h))).astype(np.float32), n) for n in ("r_w_bias", "r_r_bias"))
            content = net.op("MatMul", net.add(q, u), net.transpose(k, 0, 1, 3, 2))
            place = net.pad(net.op("MatMul", net.add(q, w), rk), [0, 0, 0, 1, 0, 0, 0, 0])
            place = net.slice(net.reshape(place, [BATCH, h, length + 1, length], like=x), 2, 1, length + 1)
            scores = net.add(net.mul(net.add(content, place), net.const((d // h) ** -0.5)), mask)
            y = net.reshape(net.transpose(net.op("MatMul", net.softmax(scores, 4), v), 0, 2, 1, 3), [BATCH, length, d], like=x)
            x = layer_norm(net, net.add(x, linear(net, y, d, d, bias=False, hint="o")), d, hint="norm1")
            x = layer_norm(net, net.add(x, mlp(net, x, d, 2 * d, "relu")), d, hint="norm2")
    net.output(linear(net, x, d, 50, hint="crit"), "logits")


def performer(net):
    """Random features of an exponential kernel; what all weigh is divided out."""
    d, h, length, m = 16, 2, net.pick(8, 10), net.pick(8, 12)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)
    x = positions(net, x, length, d)
    for i in range(2):
        with net.scope(f"layer{i}"):
            y = layer_norm(net, x, d, hint="norm1")
            q, k, v = (heads(net, linear(net, y, d, d, hint=n), length, h, d // h, like=x) for n in "qkv")
            project = net.weight(net.rng.standard_normal((d // h, m)).astype(np.float32), "projection_matrix")

            def features(t):
                t = net.mul(t, net.const((d // h) ** -0.25))
                half = net.mul(net.reduce("Sum", net.mul(t, t), [3]), net.const(0.5))
                return net.mul(net.add(net.op("Exp", net.op("Sub", net.op("MatMul", t, project), half)), net.const(1e-4)), net.const(m ** -0.5))
            q, k = features(q), features(k)
            y = net.op("MatMul", q, net.op("MatMul", net.transpose(k, 0, 1, 3, 2), v))
            y = net.op("Div", y, net.op("MatMul", q, net.transpose(net.reduce("Sum", k, [2]), 0, 1, 3, 2)))
            y = net.reshape(net.transpose(y, 0, 2, 1, 3), [BATCH, length, d], like=x)
            x = net.add(x, linear(net, y, d, d, hint="out"))
            x = net.add(x, mlp(net, layer_norm(net, x, d, hint="norm2"), d, 2 * d))
    net.output(linear(net, net.reduce("Mean", layer_norm(net, x, d), [1], 0), d, 6, rank=2, hint="head", gain=1.5), "logits")


def delta_net(net):
    """A memory matrix that is corrected towards each value; short convolutions in front; unrolled."""
    d, length = net.pick(12, 16), net.pick(4, 5)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)

    def short(t, hint):
        t = net.pad(net.transpose(t, 0, 2, 1), [0, 0, 3, 0, 0, 0])
        with net.scope(hint):
            t = net.op("Conv", t, net.trained((d, 1, 4), 4, 1.2), net.vector(d), kernel_shape=[4], group=d)
        return activation(net, net.transpose(t, 0, 2, 1), "swish")
    for i in range(2):
        with net.scope(f"layers{i}"):
            y = rms(net, x, d, "attn_norm")
            q, k, v = (short(linear(net, y, d, d, bias=False, hint=f"{n}_proj"), f"{n}_conv1d") for n in "qkv")
            q, k = (net.op("LpNormalization", t, axis=2, p=2) for t in (q, k))
            beta = net.op("Sigmoid", linear(net, y, d, 1, hint="b_proj"))
            state, outs = None, []
            for t in range(length):
                kt, vt, qt, bt = (net.slice(s, 1, t, t + 1) for s in (k, v, q, beta))
                miss = net.op("Sub", vt, net.op("MatMul", kt, state)) if state else vt
                new = net.op("MatMul", net.transpose(kt, 0, 2, 1), net.mul(bt, miss))
                state = net.add(state, new) if state else new
                outs.append(net.op("MatMul", qt, state))
            y = net.mul(rms(net, net.concat(*outs, axis=1), d, "o_norm"), activation(net, linear(net, y, d, d, bias=False, hint="g_proj"), "swish"))
            x = net.add(x, linear(net, y, d, d, bias=False, hint="o_proj"))
    net.output(linear(net, rms(net, x, d, "norm"), d, 50, bias=False, hint="lm_head"), "logits")


def hyena(net):
    """Filters as long as the sequence, by Fourier transforms; gates around them."""
    d, length = net.pick(6, 8), net.pick(8, 10)
    x, _ = embed(net, net.input("letters", [BATCH, length], "tokens", vocab=5), 5, d)
    n = 2 * length

    def transform(t, inverse):
        if net.opset >= 20:
            return net.op("DFT", t, "", net.const(2, np.int64), inverse=inverse)
        return net.op("DFT", t, axis=2, inverse=inverse)
    for i in range(2):
        with net.scope(f"layers{i}"):
            y = net.transpose(linear(net, layer_norm(net, x, d, hint="norm"), d, 3 * d, hint="in_proj"), 0, 2, 1)
            y = conv(net, y, 3 * d, 3 * d, 3, groups=3 * d, pads=[2, 0], rank=1, hint="short_filter")
            y = net.slice(y, 2, 0, length)
            a, b, v = net.split(y, [d, d, d], 1)
            v = net.mul(v, b)
            f = transform(net.unsqueeze(net.pad(v, [0, 0, 0, 0, 0, length]), 3), 0)
            f = net.mul(f, net.const(n ** -0.5))
            decay = net.rng.standard_normal((d, length)) * np.exp(-np.arange(length) / net.pick(2.0, 4.0))
            kernel = np.fft.fft(np.pad(decay, ((0, 0), (0, length))))[None, :, :, None]
            re, im = net.split(f, [1, 1], 3)
            kr, ki = net.const(kernel.real), net.const(kernel.imag)
            f = net.concat(net.op("Sub", net.mul(re, kr), net.mul(im, ki)), net.add(net.mul(re, ki), net.mul(im, kr)), axis=3)
            f = net.mul(transform(f, 1), net.const(n ** 0.5))
            y = net.slice(net.squeeze(net.slice(f, 3, 0, 1), 3), 2, 0, length)
            y = net.mul(net.add(y, net.mul(v, net.weight((0.5 * net.rng.standard_normal((d, 1))).astype(np.float32), "D"))), a)
            x = net.add(x, linear(net, net.transpose(y, 0, 2, 1), d, d, hint="out_proj"))
    net.output(linear(net, layer_norm(net, x, d), d, 5, hint="head", gain=1.5), "logits")


def f_net(net):
    """Tokens are mixed by a Fourier transform over both axes, whose real part goes on."""
    d, length, act, operator = 12, 8, net.pick("gelu", "gelu_tanh"), net.pick(True, False)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)
    x = positions(net, x, length, d)
    (cl, sl), (cd, sd) = ((np.cos(t), np.sin(t)) for t in (2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n for n in (length, d)))
    for i in range(2):
        with net.scope(f"encoder{i}"):
            if net.opset >= 17 and operator:
                y = net.unsqueeze(x, 3)
                for axis in (2, 1):
                    y = net.op("DFT", y, "", net.const(axis, np.int64)) if net.opset >= 20 else net.op("DFT", y, axis=axis)
                y = net.mul(net.squeeze(net.slice(y, 3, 0, 1), 3), net.const((length * d) ** -0.5))
            else:
                parts = [net.op("MatMul", net.op("MatMul", net.const(a), x), net.const(b)) for a, b in ((cl, cd), (sl, sd))]
                y = net.mul(net.op("Sub", *parts), net.const((length * d) ** -0.5))
            x = layer_norm(net, net.add(x, y), d, hint="norm1")
            x = layer_norm(net, net.add(x, mlp(net, x, d, 2 * d, act)), d, hint="norm2")
    net.output(linear(net, net.reduce("Mean", x, [1], 0), d, 6, rank=2, hint="classifier", gain=2.0), "logits")


def pointer_net(net):
    """A sequence forwards and, up to its length, backwards; the answer is a place in it."""
    d, length = net.pick(8, 10), 8
    x, _ = embed(net, net.input("words", [BATCH, length], "tokens"), 50, d)
    lengths = net.input("lengths", [BATCH], "lengths", most=length)
    x = time_first(net, x)
    short = net.op("Cast", lengths, to=TensorProto.INT32)
    kind = net.pick("GRU", "LSTM")
    a, _ = recurrent(net, x, kind, d, d, lengths=short, hint="forward")
    turned = net.op("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)
    b, last = recurrent(net, turned, kind, d, d, lengths=short, hint="backward")
    b = net.op("ReverseSequence", b, lengths, time_axis=0, batch_axis=1)
    e = time_first(net, net.concat(a, b, axis=2))
    query = net.unsqueeze(linear(net, net.squeeze(last, 0), d, 12, rank=2, bias=False, hint="w2"), 1)
    score = linear(net, net.op("Tanh", net.add(linear(net, e, 2 * d, 12, bias=False, hint="w1"), query)), 12, 1, bias=False, hint="v", gain=2.0)
    inside = net.op("Less", net.const(np.arange(length)[None]), net.op("Cast", net.unsqueeze(lengths, 1), to=1))
    net.output(net.softmax(net.op("Where", inside, net.squeeze(score, 2), net.const(-1e9)), 2), "pointer")


def universal(net):
    """One layer again and again, as a loop of the graph."""
    d = net.pick(10, 12)
    x = linear(net, net.input("x", [BATCH, 6], "features"), 6, d, rank=2, hint="embed")
    w = net.weight(trained(net.rng, (d, d), d, 0.9), "recurrent")
    b, one = net.vector(d), net.const(True, bool)
    trips = net.const(net.pick(2, 3, 4), np.int64)
    info = helper.make_tensor_value_info
    state = [None, d]
    nodes = [helper.make_node("MatMul", ["h_body", w], ["m_body"]), helper.make_node("Add", ["m_body", b], ["s_body"]),
             helper.make_node("Add", ["s_body", x], ["a_body"]), helper.make_node("Tanh", ["a_body"], ["n_body"]),
             helper.make_node("Identity", ["c_body"], ["d_body"])]
    body = helper.make_graph(nodes, "body", [info("i_body", TensorProto.INT64, []), info("c_body", TensorProto.BOOL, []), info("h_body", 1, state)],
                             [info("d_body", TensorProto.BOOL, []), info("n_body", 1, state)])
    h = net.op("Loop", trips, one, x, body=body)
    net.output(linear(net, layer_norm(net, h, d), d, 4, rank=2, hint="head", gain=2.0), "logits")


def early_exit(net):
    """What is sure enough leaves early: a branch of the graph."""
    x, d = net.input("x", [BATCH, 8], "features"), 12
    h = activation(net, linear(net, x, 8, d, rank=2, hint="first"), net.pick("relu", "tanh"))
    w1, w2, w3 = (net.weight(trained(net.rng, s, s[0], 1.6), n) for s, n in (((d, d), "deep"), ((d, 4), "late"), ((d, 4), "early")))
    sure = net.reduce("Mean", net.op("Abs", h), None, 0)
    cond = net.op("Greater", sure, net.const(net.pick(0.3, 0.8)))
    out = [helper.make_tensor_value_info(f"{n}_out", 1, [None, 4]) for n in ("then", "else")]
    early = helper.make_graph([helper.make_node("MatMul", [h, w3], ["then_out"])], "then", [], out[:1])
    late = helper.make_graph([helper.make_node("MatMul", [h, w1], ["else_h"]), helper.make_node("Tanh", ["else_h"], ["else_t"]),
                              helper.make_node("MatMul", ["else_t", w2], ["else_out"])], "else", [], out[1:])
    y = net.op("If", cond, then_branch=early, else_branch=late)
    net.output(net.softmax(y, 2), "probabilities")


def packed_llm(net):
    """Two weights in a byte, taken apart in the graph; a scale and a middle for each group."""
    d, length, group = 16, 6, net.pick(4, 8)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, d)

    def packed(t, n, m, hint):
        with net.scope(hint):
            w = trained(net.rng, (n, m), n, 1.1)
            scale = (np.abs(w.reshape(-1, group, m)).max(1, keepdims=True) / 7).astype(np.float32)
            q = (np.rint(w.reshape(-1, group, m) / scale) + 8).clip(0, 15).reshape(n // 2, 2, m)
            bytes_ = net.op("Cast", net.weight((q[:, 0] + 16 * q[:, 1]).astype(np.uint8), "qweight"), to=1)
            high = net.op("Floor", net.mul(bytes_, net.const(1 / 16)))
            low = net.op("Sub", bytes_, net.mul(high, net.const(16.0)))
            whole = net.concat(net.unsqueeze(low, 1), net.unsqueeze(high, 1), axis=1)
            whole = net.op("Sub", net.op("Reshape", whole, net.ints(-1, group, m)), net.const(8.0))
            return net.op("MatMul", t, net.op("Reshape", net.mul(whole, net.weight(scale, "scales")), net.ints(n, m)))
    mask = causal_mask(net, length)
    for i in range(2):
        with net.scope(f"layers{i}"):
            x = net.add(x, attention(net, rms(net, x, d, "norm1"), length, d, 2, mask=mask))
            y = rms(net, x, d, "norm2")
            y = net.mul(activation(net, packed(y, d, 24, "gate"), "swish"), packed(y, d, 24, "up"))
            x = net.add(x, packed(y, 24, d, "down"))
    net.output(linear(net, rms(net, x, d, "norm"), d, 50, bias=False, hint="lm_head"), "logits")


def cached_decoder(net):
    """One word, and what was kept of those before it."""
    d, h, past, sinks = 16, 2, net.pick(4, 5), net.pick(True, False)
    x, _ = embed(net, net.input("input_ids", [BATCH, 1], "tokens"), 50, d)
    for i in range(2):
        with net.scope(f"h{i}"):
            old = [net.input(f"past_{n}{i}", [BATCH, h, past, d // h], "features") for n in ("key", "value")]
            y = layer_norm(net, x, d, hint="ln_1")
            q, k, v = (heads(net, linear(net, y, d, d, hint=n), 1, h, d // h, like=x) for n in ("q", "k", "v"))
            k, v = net.concat(old[0], k, axis=2), net.concat(old[1], v, axis=2)
            scores = net.mul(net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const((d // h) ** -0.5))
            if sinks:
                sink = net.weight(net.rng.standard_normal((1, h, 1, 1)).astype(np.float32), "sinks")
                scores = net.concat(scores, net.add(net.mul(net.slice(q, 3, 0, 1), net.const(0.0)), sink), axis=3)
            p = net.softmax(scores, 4)
            p = net.slice(p, 3, 0, past + 1) if sinks else p
            y = net.reshape(net.transpose(net.op("MatMul", p, v), 0, 2, 1, 3), [BATCH, 1, d], like=x)
            x = net.add(x, linear(net, y, d, d, hint="c_proj"))
            x = net.add(x, mlp(net, layer_norm(net, x, d, hint="ln_2"), d, 32, net.pick("gelu_tanh", "relu")))
            net.output(k, f"present_key{i}")
    net.output(linear(net, layer_norm(net, x, d, hint="ln_f"), d, 50, bias=False, hint="lm_head"), "logits")
