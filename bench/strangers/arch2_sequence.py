"""Second generation: text, and models of states."""
import numpy as np

from arch_sequence import embed, padding_mask
from blocks import activation, attention, causal_mask, gated_mlp, heads, layer_norm, linear, mlp
from net import BATCH, trained


def distances(length):
    return np.arange(length)[:, None] - np.arange(length)[None]


def roberta(net):
    """Positions begin behind the padding index; a mean over what is no padding."""
    length, dim = net.pick(8, 10), net.pick(16, 24)
    ids, flags = net.input("input_ids", [BATCH, length], "tokens"), net.input("attention_mask", [BATCH, length], "flags")
    with net.scope("embeddings"):
        x, _ = embed(net, ids, 50, dim, "word")
        table = net.weight((0.4 * net.rng.standard_normal((length + 4, dim))).astype(np.float32), "position_embeddings")
        if net.pick(True, False):
            position = net.op("Gather", table, net.const(np.arange(2, length + 2), np.int64), axis=0)
        else:
            position = net.slice(table, 0, 2, length + 2)
        x = layer_norm(net, net.add(x, position), dim, 1e-5)
    mask = padding_mask(net, flags)
    for i in range(2):
        with net.scope(f"encoder/layer/{i}"):
            x = layer_norm(net, net.add(x, attention(net, x, length, dim, 2, mask=mask)), dim, 1e-5, "norm1")
            x = layer_norm(net, net.add(x, mlp(net, x, dim, 2 * dim)), dim, 1e-5, "norm2")
    weight = net.unsqueeze(net.op("Cast", flags, to=1), 2)
    total = net.op("Clip", net.reduce("Sum", weight, [1], 0), net.const(1e-9))
    mean = net.op("Div", net.reduce("Sum", net.mul(x, weight), [1], 0), total)
    first = net.op("Gather", x, net.const(0, np.int64), axis=1)
    net.output(mean, "sentence_embedding")
    net.output(linear(net, activation(net, linear(net, first, dim, dim, rank=2, hint="dense"), "tanh"), dim, 3, rank=2, hint="out"), "logits")


def rms_plus_one(net, x, n, hint):
    """Weights are kept as what they are above 1."""
    with net.scope(hint):
        root = net.op("Sqrt", net.add(net.reduce("Mean", net.mul(x, x), [-1]), net.const(1e-6)))
        weight = net.vector(n, 0.1, 0.25, "weight")
        return net.mul(net.op("Div", x, root), net.add(weight, net.const(1.0)))


def soft_cap(net, x, cap):
    return net.mul(net.op("Tanh", net.op("Div", x, net.const(cap))), net.const(cap))


def gemma(net):
    """Scaled embeddings, a sliding window, scores within a cap, an adapter of low rank, the head tied to the embedding."""
    length, dim, window = 10, net.pick(24, 32), net.pick(3, 4)
    x, table = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, dim, scale=0.3)
    x = net.mul(x, net.const(np.sqrt(dim)))
    d = distances(length)
    seen = (d >= 0) & (d < window)
    cap, rope = net.pick(2.0, 4.0), dict(base=net.pick(10000.0, 500.0))
    masks = [net.const(np.where(seen if i == 0 else d >= 0, 0, net.pick(-1e4, -1e9))[None, None]) for i in range(2)]
    for i in range(2):
        with net.scope(f"layers/{i}"):
            def capped(scores):
                return net.add(soft_cap(net, scores, cap), masks[i])
            y = rms_plus_one(net, x, dim, "input_layernorm")
            x = net.add(x, attention(net, y, length, dim, 4, rope=rope, kv_heads=net.pick(2, 4), adjust=capped, hint="self_attn"))
            y = rms_plus_one(net, x, dim, "pre_feedforward_layernorm")
            gate = activation(net, linear(net, y, dim, 40, bias=False, hint="gate_proj"), "gelu_tanh")
            y = net.mul(gate, linear(net, y, dim, 40, bias=False, hint="up_proj"))
            low = linear(net, linear(net, y, 40, 4, bias=False, hint="lora_A"), 4, dim, bias=False, hint="lora_B")
            x = net.add(x, net.add(linear(net, y, 40, dim, bias=False, hint="down_proj"), net.mul(low, net.const(net.pick(0.5, 0.25)))))
    x = rms_plus_one(net, x, dim, "norm")
    net.output(soft_cap(net, net.op("MatMul", x, net.transpose(table, 1, 0)), 8.0), "logits")


def phi(net):
    """Attention and a gated layer side by side, behind one norm; a window in every layer."""
    length, dim, window = net.pick(9, 11), net.pick(16, 24), net.pick(3, 5)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, dim)
    d = distances(length)
    mask = net.const(np.where((d >= 0) & (d < window), 0, -3.4e4)[None, None])
    rope = dict(base=net.pick(10000.0, 1000.0), interleaved=net.pick(True, False))
    for i in range(2):
        with net.scope(f"model/layers/{i}"):
            y = layer_norm(net, x, dim, 1e-5, "input_layernorm")
            z = net.add(attention(net, y, length, dim, 2, mask=mask, rope=rope), gated_mlp(net, y, dim, 40, net.pick("swish", "gelu")))
            x = net.add(x, z)
    net.output(linear(net, layer_norm(net, x, dim, 1e-5, "final_layernorm"), dim, 30, hint="lm_head"), "logits")


def bloom(net):
    """Distances instead of positions; queries, keys and values side by side in each head."""
    length, n_heads, size = net.pick(8, 10), net.pick(2, 4), 8
    dim = n_heads * size
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, dim)
    x = layer_norm(net, x, dim, hint="embedding_norm")
    slopes = 2.0 ** (-8 / n_heads * np.arange(1, n_heads + 1)).reshape(1, n_heads, 1, 1)
    if net.pick(True, False):
        bias = net.mul(net.const(slopes), net.const(-np.maximum(distances(length), 0.0)[None, None]))
    else:
        bias = net.const(slopes * np.arange(length).reshape(1, 1, 1, length))
    mask, inside = causal_mask(net, length), net.pick(True, False)
    for i in range(2):
        with net.scope(f"h/{i}"):
            y = layer_norm(net, x, dim, hint="input_norm")
            qkv = linear(net, y, dim, 3 * dim, hint="query_key_value")
            if inside:  # heads first
                qkv = net.transpose(net.reshape(qkv, [BATCH, length, n_heads, 3, size]), 3, 0, 2, 1, 4)
            else:
                qkv = net.transpose(net.reshape(qkv, [BATCH, length, 3, n_heads, size]), 2, 0, 3, 1, 4)
            q, k, v = (net.squeeze(p, 0) for p in net.split(qkv, [1, 1, 1], 0))
            scores = net.mul(net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const(size ** -0.5))
            p = net.softmax(net.add(net.add(scores, bias), mask), 4)
            y2 = net.reshape(net.transpose(net.op("MatMul", p, v), 0, 2, 1, 3), [BATCH, length, dim])
            y2 = linear(net, y2, dim, dim, hint="dense")
            x = net.add(x, y2)
            x = net.add(x, mlp(net, layer_norm(net, x, dim, hint="post_norm"), dim, 2 * dim, "gelu_tanh"))
    net.output(linear(net, layer_norm(net, x, dim, hint="ln_f"), dim, 30, bias=False, hint="lm_head"), "logits")


def relative_bert(net):
    """A learned bias for each distance; products written as Einsum."""
    length, n_heads, size = net.pick(8, 9), 2, 8
    dim = n_heads * size
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens"), 50, dim)
    table = net.weight((0.6 * net.rng.standard_normal((2 * length - 1, n_heads))).astype(np.float32), "relative_bias")
    index = (distances(length) + length - 1).reshape(-1)
    bias = net.op("Reshape", net.op("Gather", table, net.const(index, np.int64), axis=0), net.ints(length, length, n_heads))
    bias = net.unsqueeze(net.transpose(bias, 2, 0, 1), 0)
    for i in range(2):
        with net.scope(f"layer/{i}"):
            y = layer_norm(net, x, dim, hint="norm1")
            q, k, v = (net.reshape(linear(net, y, dim, dim, hint=h), [BATCH, length, n_heads, size]) for h in "qkv")
            scores = net.op("Einsum", q, k, equation="bihd,bjhd->bhij")
            p = net.softmax(net.add(net.op("Div", scores, net.const(size ** 0.5)), bias), 4)
            y = net.reshape(net.op("Einsum", p, v, equation="bhij,bjhd->bihd"), [BATCH, length, dim])
            x = net.add(x, linear(net, y, dim, dim, hint="out"))
            x = net.add(x, mlp(net, layer_norm(net, x, dim, hint="norm2"), dim, 2 * dim, net.pick("gelu", "relu")))
    last = net.op("Gather", layer_norm(net, x, dim), net.const(net.pick(0, length - 1), np.int64), axis=1)
    net.output(linear(net, last, dim, 4, rank=2, hint="classifier"), "logits")


def perceiver(net):
    """Few latents read many inputs."""
    length, dim, m = 14, net.pick(16, 24), net.pick(4, 6)
    x = linear(net, net.input("inputs", [BATCH, length, 5], "signal"), 5, dim, hint="embed")
    angle = np.arange(length)[:, None] * 100.0 ** (-np.arange(0, dim, 2) / dim)[None]
    x = net.add(x, net.const(np.concatenate([np.sin(angle), np.cos(angle)], 1)[None]))
    latents = net.weight((0.6 * net.rng.standard_normal((1, m, dim))).astype(np.float32), "latents")
    z = net.add(latents, net.mul(net.slice(x, 1, 0, m), net.const(0.0)))
    for i in range(2):
        with net.scope(f"block{i}"):
            z = net.add(z, attention(net, layer_norm(net, z, dim, hint="norm_q"), m, dim, 2, kv=layer_norm(net, x, dim, hint="norm_kv"),
                                     kv_length=length, hint="cross"))
            z = net.add(z, mlp(net, layer_norm(net, z, dim, hint="norm1"), dim, 2 * dim, hint="mlp1"))
            z = net.add(z, attention(net, layer_norm(net, z, dim, hint="norm2"), m, dim, 2, hint="self"))
    net.output(linear(net, net.reduce("Mean", layer_norm(net, z, dim), [1], 0), dim, 5, rank=2, hint="head"), "logits")


def mamba(net):
    """A selective scan, unrolled."""
    length, dim, inner, n = 6, 12, net.pick(12, 16), 4
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens", vocab=40), 40, dim)
    for i in range(net.pick(1, 2)):
        with net.scope(f"layers/{i}"):
            y = linear(net, layer_norm(net, x, dim, 1e-5, centred=False), dim, 2 * inner, bias=False, hint="in_proj")
            u, z = net.split(y, [inner, inner], 2)
            w = net.trained((inner, 1, 4), 4, 1.2, "conv1d")
            u = net.op("Conv", net.transpose(u, 0, 2, 1), w, net.vector(inner), kernel_shape=[4], pads=[3, 0], group=inner)
            u = activation(net, net.transpose(u, 0, 2, 1), "swish")
            dt, b, c = net.split(linear(net, u, inner, 2 + 2 * n, bias=False, hint="x_proj"), [2, n, n], 2)
            dt = net.op("Softplus", linear(net, dt, 2, inner, hint="dt_proj"))
            a = net.op("Neg", net.op("Exp", net.weight(np.log(np.tile(np.arange(1, n + 1), (inner, 1))).astype(np.float32), "A_log")))
            decay = net.op("Exp", net.mul(net.unsqueeze(dt, 3), a))
            enter = net.mul(net.mul(net.unsqueeze(dt, 3), net.unsqueeze(b, 2)), net.unsqueeze(u, 3))
            state, rows = None, []
            for t in range(length):
                def at(v, t=t):
                    return net.squeeze(net.slice(v, 1, t, t + 1), 1)
                state = net.add(net.mul(at(decay), state), at(enter)) if state else at(enter)
                rows.append(net.unsqueeze(net.reduce("Sum", net.mul(state, net.unsqueeze(at(c), 1)), [2], 0), 1))
            y = net.add(net.concat(*rows, axis=1), net.mul(u, net.vector(inner, 1.0, 0.2, "D")))
            x = net.add(x, linear(net, net.mul(y, activation(net, z, "swish")), inner, dim, bias=False, hint="out_proj"))
    net.output(linear(net, layer_norm(net, x, dim, 1e-5, centred=False), dim, 20, bias=False, hint="lm_head"), "logits")


def rwkv(net):
    """Each step is mixed with the one before; sums that decay, unrolled; squared rectifiers."""
    length, dim = 6, net.pick(12, 16)
    x, _ = embed(net, net.input("input_ids", [BATCH, length], "tokens", vocab=40), 40, dim)

    def mixed(y, hint):
        before = net.slice(net.pad(y, [0, 1, 0, 0, 0, 0]), 1, 0, length)
        mu = net.weight(net.rng.random(dim).astype(np.float32), "mix_" + hint)
        return net.add(net.mul(y, mu), net.mul(before, net.op("Sub", net.const(1.0), mu)))
    for i in range(2):
        with net.scope(f"blocks/{i}"):
            y = layer_norm(net, x, dim, hint="ln1")
            r, k, v = (linear(net, mixed(y, h), dim, dim, bias=False, hint=h) for h in "rkv")
            e = net.op("Exp", net.clip(k, -8.0, 8.0))
            decay = net.op("Exp", net.op("Neg", net.op("Exp", net.vector(dim, -0.5, 0.4, "decay"))))
            top = low = None
            rows = []
            for t in range(length):
                def at(value, t=t):
                    return net.squeeze(net.slice(value, 1, t, t + 1), 1)
                ev = net.mul(at(e), at(v))
                top = net.add(net.mul(top, decay), ev) if top else ev
                low = net.add(net.mul(low, decay), at(e)) if low else at(e)
                rows.append(net.unsqueeze(net.op("Div", top, low), 1))
            y = net.mul(net.op("Sigmoid", r), net.concat(*rows, axis=1))
            x = net.add(x, linear(net, y, dim, dim, bias=False, hint="output"))
            y = layer_norm(net, x, dim, hint="ln2")
            k = net.op("Relu", linear(net, mixed(y, "ck"), dim, 2 * dim, bias=False, hint="ck"))
            k = net.mul(k, k) if net.pick(True, False) else net.op("Pow", k, net.const(2.0))
            gate = net.op("Sigmoid", linear(net, mixed(y, "cr"), dim, dim, bias=False, hint="cr"))
            x = net.add(x, net.mul(gate, linear(net, k, 2 * dim, dim, bias=False, hint="cv")))
    net.output(linear(net, layer_norm(net, x, dim, hint="ln_out"), dim, 20, bias=False, hint="head"), "logits")


def clip_text(net):
    """A text beside an image's features: the end is where the largest token stands."""
    length, dim = 8, net.pick(16, 24)
    ids = net.input("input_ids", [BATCH, length], "prompts")
    x, _ = embed(net, ids, 50, dim)
    x = net.add(x, net.weight((0.4 * net.rng.standard_normal((1, length, dim))).astype(np.float32), "position_embedding"))
    if net.opset >= 14 and net.pick(True, False):
        mask = net.unsqueeze(net.op("Trilu", net.const(np.full((length, length), -1e4)), net.const(1, np.int64), upper=1), 0, 1)
    else:
        at = net.const(np.arange(length), np.int64)
        later = net.op("Less", net.unsqueeze(at, 1), net.unsqueeze(at, 0))
        mask = net.unsqueeze(net.mul(net.op("Cast", later, to=1), net.const(-1e4)), 0, 1)
    for i in range(2):
        with net.scope(f"text_model/layers/{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, dim, hint="ln_1"), length, dim, 2, mask=mask))
            x = net.add(x, mlp(net, layer_norm(net, x, dim, hint="ln_2"), dim, 2 * dim, net.pick("quick_gelu", "gelu")))
    end = net.op("ArgMax", net.op("Cast", ids, to=6), axis=1, keepdims=1)
    here = net.op("Equal", end, net.const(np.arange(length)[None], np.int64))
    x = net.reduce("Sum", net.mul(layer_norm(net, x, dim, hint="ln_final"), net.unsqueeze(net.op("Cast", here, to=1), 2)), [1], 0)

    def unit(v):
        return net.op("Div", v, net.reduce("L2", v, [1]))
    text = unit(net.op("MatMul", x, net.weight(trained(net.rng, (dim, 12), dim), "text_projection")))
    features = net.input("image_features", [BATCH, 10], "features")
    image = unit(net.op("MatMul", features, net.weight(trained(net.rng, (10, 12), 10), "visual_projection")))
    cosine = net.op("MatMul", text, net.transpose(image, 1, 0))
    net.output(text, "text_embeds")
    net.output(net.mul(cosine, net.op("Exp", net.weight(np.float32(2.0 + net.rng.random()).reshape(()), "logit_scale"))), "logits_per_text")


def switch_moe(net):
    """Probabilities of all experts, of which the best are taken and divided by their sum; gate and value from one matrix."""
    length, dim, n, k = 6, 16, net.pick(4, 6), net.pick(2, 3)
    x, _ = embed(net, net.input("ids", [BATCH, length], "tokens"), 50, dim)
    probabilities = net.softmax(linear(net, x, dim, n, bias=False, hint="router", gain=1.5), 3)
    best, index = net.topk(probabilities, k)
    best = net.op("Div", best, net.reduce("Sum", best, [2]))
    hot = net.op("Cast", net.op("Equal", net.unsqueeze(index, 3), net.const(np.arange(n).reshape(1, 1, 1, n), np.int64)), to=1)
    share = net.reduce("Sum", net.mul(hot, net.unsqueeze(best, 3)), [2], 0)
    parts = []
    for i in range(n):
        with net.scope(f"experts/{i}"):
            gate, value = net.split(linear(net, x, dim, 40, bias=False, hint="w13"), [20, 20], 2)
            y = linear(net, net.mul(activation(net, gate, "swish"), value), 20, dim, bias=False, hint="w2")
            parts.append(net.mul(net.slice(share, 2, i, i + 1), y))
    y = layer_norm(net, net.add(x, net.op("Sum", *parts)), dim, 1e-6, centred=False)
    net.output(linear(net, y, dim, 8, hint="head"), "logits")


def soft_moe(net):
    """Slots are means of tokens, tokens are means of slots: softmax over one axis, then over the other."""
    length, dim, slots = net.pick(8, 10), 16, 4
    x = linear(net, net.input("frames", [BATCH, length, 6], "signal"), 6, dim, hint="embed")
    y = layer_norm(net, x, dim)
    logits = net.op("MatMul", y, net.weight(trained(net.rng, (dim, slots), dim, 2.0), "phi"))
    dispatch, combine = net.softmax(logits, 3, axis=1), net.softmax(logits, 3)
    z = net.op("MatMul", net.transpose(dispatch, 0, 2, 1), y)
    z = net.concat(*[mlp(net, net.slice(z, 1, i, i + 1), dim, 24, net.pick("gelu", "relu"), f"expert{i}") for i in range(slots)], axis=1)
    x = net.add(x, net.op("MatMul", combine, z))
    h = heads(net, x, length, 2, 8)
    x = net.reshape(net.transpose(h, 0, 2, 1, 3), [BATCH, length, dim])
    net.output(linear(net, net.reduce("Mean", x, [1], 0), dim, 5, rank=2, hint="head"), "logits")
