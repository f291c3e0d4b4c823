"""Architectures of sequences: text, speech, series."""
import numpy as np

from blocks import (activation, attention, batch_norm, causal_mask, gated_mlp, glu, heads, instance_norm, layer_norm, linear, mlp,
                    recurrent, rotary)
from net import BATCH
from vision import conv, conv_bn, images, pool


def embed(net, ids, vocab, dim, hint="embed", scale=1.0):
    rows = scale * net.rng.standard_normal((vocab, dim)) * np.exp(0.2 * net.rng.standard_normal((vocab, 1)))
    table = net.weight(rows.astype(np.float32), hint + ".weight")
    return net.op("Gather", table, ids, axis=0), table


def positions(net, x, length, dim):
    return net.add(x, net.weight((0.3 * net.rng.standard_normal((1, length, dim))).astype(np.float32), "positions"))


def time_first(net, x):
    return net.transpose(x, 1, 0, 2)


def padding_mask(net, mask):
    """[batch, length] of 0 and 1 to what is added to scores."""
    m = net.unsqueeze(net.op("Cast", mask, to=1), 1, 2)
    if net.pick(True, False):
        return net.mul(net.op("Sub", net.const(1.0), m), net.const(net.pick(-10000.0, -1e9, -3.4e38)))
    return net.op("Where", net.op("Equal", m, net.const(0.0)), net.const(-1e9), net.const(0.0))


def bert(net):
    ids, segments = net.input("input_ids", [BATCH, 10], "tokens"), net.input("token_type_ids", [BATCH, 10], "tokens", vocab=2)
    mask = padding_mask(net, net.input("attention_mask", [BATCH, 10], "flags"))
    with net.scope("embeddings"):
        x = positions(net, net.add(embed(net, ids, 50, 24)[0], embed(net, segments, 2, 24, "type")[0]), 10, 24)
        x = layer_norm(net, x, 24, 1e-12)
    for i in range(2):
        with net.scope(f"encoder/layer/{i}"):
            x = layer_norm(net, net.add(x, attention(net, x, 10, 24, 2, mask=mask)), 24, 1e-12, "norm1")
            x = layer_norm(net, net.add(x, mlp(net, x, 24, 48)), 24, 1e-12, "norm2")
    first = net.op("Gather", x, net.const(0, np.int64), axis=1)
    net.output(x, "last_hidden_state")
    net.output(activation(net, linear(net, first, 24, 24, rank=2, hint="pooler"), "tanh"), "pooler_output")


def gpt(net):
    x, table = embed(net, net.input("input_ids", [BATCH, 12], "tokens"), 50, 24)
    x, mask = positions(net, x, 12, 24), causal_mask(net, 12)
    for i in range(2):
        with net.scope(f"h/{i}"):
            x = net.add(x, attention(net, layer_norm(net, x, 24, hint="ln_1"), 12, 24, 3, mask=mask, fused_qkv=True))
            x = net.add(x, mlp(net, layer_norm(net, x, 24, hint="ln_2"), 24, 64, "gelu_tanh"))
    x = layer_norm(net, x, 24, hint="ln_f")
    net.output(net.op("MatMul", x, net.transpose(table, 1, 0)), "logits")  # the embedding's weights again


def llama(net):
    x, _ = embed(net, net.input("input_ids", [BATCH, 12], "tokens"), 50, 32)
    mask, rope = causal_mask(net, 12), dict(interleaved=net.pick(True, False))
    for i in range(2):
        with net.scope(f"model/layers/{i}"):
            y = layer_norm(net, x, 32, 1e-6, centred=False, hint="input_layernorm")
            x = net.add(x, attention(net, y, 12, 32, 4, mask=mask, rope=rope, kv_heads=net.pick(2, 4), hint="self_attn"))
            x = net.add(x, gated_mlp(net, layer_norm(net, x, 32, 1e-6, centred=False, hint="post_norm"), 32, 56))
    net.output(linear(net, layer_norm(net, x, 32, 1e-6, centred=False), 32, 50, bias=False, hint="lm_head"), "logits")


def t5_encoder(net):
    """Relative positions in buckets, computed in the graph (no distance is at the edge of one); scores are not scaled."""
    ids = net.input("input_ids", [BATCH, 12], "tokens")
    x, _ = embed(net, ids, 50, 24, "shared")
    with net.scope("relative_bias"):
        at = net.const(np.arange(12), np.int64)
        distance = net.op("Sub", net.unsqueeze(at, 0), net.unsqueeze(at, 1))
        behind = net.mul(net.op("Cast", net.op("Greater", distance, net.const(0, np.int64)), to=7), net.const(8, np.int64))
        far = net.op("Abs", distance)
        ratio = net.op("Log", net.op("Div", net.op("Max", net.op("Cast", far, to=1), net.const(1.0)), net.const(4.0)))
        large = net.add(net.op("Floor", net.mul(ratio, net.const(4 / np.log(3)))), net.const(4.0))
        large = net.op("Cast", net.op("Min", large, net.const(7.0)), to=7)
        bucket = net.add(behind, net.op("Where", net.op("Less", far, net.const(4, np.int64)), far, large))
        bias = net.unsqueeze(net.transpose(embed(net, bucket, 16, 2, "bias")[0], 2, 0, 1), 0)
    for i in range(2):
        with net.scope(f"block/{i}"):
            y = layer_norm(net, x, 24, 1e-6, centred=False, hint="norm0")
            x = net.add(x, attention(net, y, 12, 24, 2, bias=bias))
            x = net.add(x, gated_mlp(net, layer_norm(net, x, 24, 1e-6, centred=False, hint="norm1"), 24, 40, "gelu_tanh"))
    net.output(layer_norm(net, x, 24, 1e-6, centred=False), "hidden")


def translator(net):
    """Encoder, decoder, attention from one to the other."""
    x, _ = embed(net, net.input("source", [BATCH, 9], "tokens", vocab=40), 40, 24, "source_embed")
    y, _ = embed(net, net.input("target", [BATCH, 6], "tokens", vocab=40), 40, 24, "target_embed")
    x, y = positions(net, x, 9, 24), positions(net, y, 6, 24)
    with net.scope("encoder"):
        x = layer_norm(net, net.add(x, attention(net, x, 9, 24, 2)), 24, hint="norm1")
        x = layer_norm(net, net.add(x, mlp(net, x, 24, 48, "relu")), 24, hint="norm2")
    with net.scope("decoder"):
        y = layer_norm(net, net.add(y, attention(net, y, 6, 24, 2, mask=causal_mask(net, 6))), 24, hint="norm1")
        y = layer_norm(net, net.add(y, attention(net, y, 6, 24, 2, kv=x, kv_length=9, hint="cross")), 24, hint="norm2")
        y = layer_norm(net, net.add(y, mlp(net, y, 24, 48, "relu")), 24, hint="norm3")
    logits = linear(net, y, 24, 40, hint="generator")
    net.output(net.op("LogSoftmax", logits, axis=2), "log_probabilities")


def conformer(net):
    x = net.input("frames", [BATCH, 16, 20], "signal")
    x = linear(net, x, 20, 24, hint="subsample")
    half = lambda y: net.mul(y, net.const(0.5))
    for i in range(2):
        with net.scope(f"layers/{i}"):
            x = net.add(x, half(mlp(net, layer_norm(net, x, 24, hint="norm_ff1"), 24, 48, "swish", "ff1")))
            x = net.add(x, attention(net, layer_norm(net, x, 24, hint="norm_att"), 16, 24, 2))
            with net.scope("conv_module"):
                y = net.transpose(layer_norm(net, x, 24, hint="norm_conv"), 0, 2, 1)
                y = glu(net, conv(net, y, 24, 48, 1, rank=1, hint="pointwise1"), 24, 1)
                y = batch_norm(net, conv(net, y, 24, 24, 5, groups=24, rank=1, hint="depthwise"), 24)
                y = conv(net, activation(net, y, "swish"), 24, 24, 1, rank=1, hint="pointwise2")
            x = net.add(x, net.transpose(y, 0, 2, 1))
            x = net.add(x, half(mlp(net, layer_norm(net, x, 24, hint="norm_ff2"), 24, 48, "swish", "ff2")))
            x = layer_norm(net, x, 24, hint="norm_final")
    net.output(net.op("LogSoftmax", linear(net, x, 24, 12, hint="ctc"), axis=2), "log_probs")


def bilstm_tagger(net):
    x, _ = embed(net, net.input("words", [BATCH, 8], "tokens"), 50, 16)
    lengths = None
    if net.pick(True, False):
        lengths = net.op("Cast", net.input("lengths", [BATCH], "lengths"), to=6)
    x = time_first(net, x)
    for i in range(2):
        x, _ = recurrent(net, x, "LSTM", 16 if i == 0 else 24, 12, "bidirectional", lengths=lengths, hint=f"lstm{i}")
    net.output(linear(net, time_first(net, x), 24, 7, hint="tags"), "emissions")


def gru_stack(net):
    x = time_first(net, net.input("series", [BATCH, 10, 6], "signal"))
    reset = net.pick(0, 1)
    for i in range(2):
        x, last = recurrent(net, x, "GRU", 6 if i == 0 else 14, 14, net.pick("forward", "reverse"), reset_after=reset, hint=f"gru{i}")
    y = net.concat(net.squeeze(last, 0), net.reduce("Mean", x, [0], 0), axis=1)
    net.output(linear(net, y, 28, 4, rank=2, hint="head"), "forecast")


def keras_lstm(net):
    """Keras' layers with their hard sigmoid, softsign and initial states."""
    x = time_first(net, net.input("series", [BATCH, 9, 5], "signal"))
    h = net.unsqueeze(net.input("h0", [BATCH, 12], "features", scale=0.6), 0)
    c = net.unsqueeze(net.input("c0", [BATCH, 12], "features", scale=0.6), 0)
    names = [net.pick("Sigmoid", "HardSigmoid"), net.pick("Tanh", "Softsign"), "Tanh"]
    x, last = recurrent(net, x, "LSTM", 5, 12, states=[h, c], activations=names, hint="lstm")
    x, last = recurrent(net, x, "LSTM", 12, 10, activations=names, hint="lstm_1")
    net.output(linear(net, net.squeeze(last, 0), 10, 3, rank=2, hint="dense"), "prediction")


def elman(net):
    x, _ = embed(net, net.input("characters", [BATCH, 12], "tokens", vocab=30), 30, 10)
    x, _ = recurrent(net, time_first(net, x), "RNN", 10, 20, net.pick("forward", "bidirectional"), hint="rnn")
    n = 40 if net.nodes[-1].op_type == "Reshape" else 20
    net.output(net.softmax(linear(net, time_first(net, x), n, 30, hint="out"), 3), "next")


def crnn(net):
    """Text in pictures: convolutions, a bidirectional LSTM, CTC."""
    x = conv_bn(net, images(net, channels=1), 1, 8, 3, "relu", hint="conv1")
    x = pool(net, conv_bn(net, x, 8, 12, 3, "relu", hint="conv2"))
    x = conv(net, x, 12, 16, (8, 1), pads=[0] * 4, hint="squash")
    x = net.transpose(net.squeeze(activation(net, x, "relu"), 2), 2, 0, 1)
    x, _ = recurrent(net, x, net.pick("LSTM", "GRU"), 16, 12, "bidirectional")
    net.output(net.op("LogSoftmax", linear(net, x, 24, 11, hint="ctc"), axis=2), "log_probs")


def tcn(net):
    """Causal convolutions of growing dilation."""
    x, n = net.input("audio", [BATCH, 2, 24], "signal"), 2
    for i, d in enumerate((1, 2, 4)):
        with net.scope(f"tcn{i}"):
            y = activation(net, conv(net, x, n, 12, 3, dilation=d, pads=[2 * d, 0], rank=1, hint="conv1"), "relu")
            y = activation(net, conv(net, y, 12, 12, 3, dilation=d, pads=[2 * d, 0], rank=1, hint="conv2"), "prelu", 12, 1)
            skip = x if n == 12 else conv(net, x, n, 12, 1, rank=1, hint="down")
            x, n = activation(net, net.add(y, skip), "relu"), 12
    net.output(linear(net, net.squeeze(net.slice(x, 2, 23, 24), 2), 12, 5, rank=2, hint="head"), "scores")


def wavenet(net):
    x = conv(net, net.input("wave", [BATCH, 1, 24], "signal"), 1, 10, 1, rank=1, hint="in")
    skips = []
    for i, d in enumerate((1, 2, 4)):
        with net.scope(f"layer{i}"):
            y = conv(net, x, 10, 20, 2, dilation=d, pads=[d, 0], rank=1, hint="dilated")
            a, b = net.split(y, [10, 10], 1)
            y = net.mul(net.op("Tanh", a), net.op("Sigmoid", b))
            skips.append(conv(net, y, 10, 8, 1, rank=1, hint="skip"))
            x = net.add(x, conv(net, y, 10, 10, 1, rank=1, hint="res"))
    y = activation(net, net.op("Sum", *skips), "relu")
    net.output(conv(net, activation(net, conv(net, y, 8, 8, 1, rank=1, hint="end1"), "relu"), 8, 6, 1, rank=1, hint="end2"), "mixture")


def spectrogram(net):
    """Audio by a Fourier transform as convolution, logarithm, and instance norm."""
    wave = net.input("wave", [BATCH, 1, 64], "signal")
    t = np.arange(16)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * t / 16)
    basis = [window * f(2 * np.pi * k * t / 16) for f in (np.cos, np.sin) for k in range(9)]
    spectrum = net.op("Conv", wave, net.weight(np.array(basis, np.float32)[:, None], "stft.basis"), kernel_shape=[16], strides=[4], pads=[0, 0])
    real, imaginary = net.split(spectrum, [9, 9], 1)
    power = net.add(net.mul(real, real), net.mul(imaginary, imaginary))
    mel = np.maximum(0, 1 - np.abs(np.arange(9) - np.linspace(0, 8, 6)[:, None]) / 1.6).astype(np.float32)
    x = net.op("Log", net.add(net.op("MatMul", net.weight(mel, "mel"), power), net.const(1e-6)))
    x = activation(net, conv(net, instance_norm(net, x, 6), 6, 12, 3, rank=1, hint="conv"), "gelu")
    x = net.reduce("Max", x, [2], 0) if net.pick(True, False) else net.reduce("Mean", x, [2], 0)
    net.output(linear(net, x, 12, 5, rank=2, hint="head"), "logits")


def n_beats(net):
    x = net.input("past", [BATCH, 16], "signal")
    forecasts = []
    for i in range(3):
        with net.scope(f"stack{i}"):
            h = activation(net, linear(net, x, 16, 24, rank=2, hint="fc1"), "relu")
            h = activation(net, linear(net, h, 24, 24, rank=2, hint="fc2"), "relu")
            x = net.op("Sub", x, linear(net, h, 24, 16, rank=2, hint="backcast"))
            forecasts.append(linear(net, h, 24, 6, rank=2, hint="forecast"))
    net.output(net.op("Sum", *forecasts), "future")


def linear_attention(net):
    """Kernel features in place of softmax; sums along the sequence by CumSum."""
    x, _ = embed(net, net.input("ids", [BATCH, 12], "tokens"), 50, 16)
    x = positions(net, x, 12, 16)
    with net.scope("attn"):
        q, k, v = (heads(net, linear(net, layer_norm(net, x, 16), 16, 16, hint=h), 12, 2, 8) for h in "qkv")
        q, k = (net.add(net.op("Elu", t, alpha=1.0), net.const(1.0)) for t in (q, k))
        outer = net.mul(net.unsqueeze(k, 4), net.unsqueeze(v, 3))
        state = net.op("CumSum", outer, net.const(2, np.int64), exclusive=0, reverse=0)
        total = net.op("CumSum", k, net.const(2, np.int64))
        top = net.squeeze(net.op("MatMul", net.unsqueeze(q, 3), state), 3)
        y = net.op("Div", top, net.add(net.reduce("Sum", net.mul(q, total), [3]), net.const(1e-6)))
        y = net.reshape(net.transpose(y, 0, 2, 1, 3), [BATCH, 12, 16])
        x = net.add(x, linear(net, y, 16, 16, hint="out"))
    net.output(linear(net, layer_norm(net, x, 16, hint="last"), 16, 9, hint="head"), "logits")


def retention(net):
    """Scores that decay with distance, normalized by groups."""
    x = linear(net, net.input("frames", [BATCH, 10, 8], "signal"), 8, 16, hint="in")
    i = np.arange(10)
    decay = np.stack([np.where(i[:, None] >= i, g ** np.maximum(i[:, None] - i, 0), 0) for g in (0.9, 0.7)])
    with net.scope("retention"):
        q, k, v = (heads(net, linear(net, x, 16, 16, hint=h), 10, 2, 8) for h in "qkv")
        q, k = rotary(net, q, 10, 8), rotary(net, k, 10, 8)
        scores = net.mul(net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const(decay[None]))
        y = net.op("Div", net.op("MatMul", scores, v), net.const(3.0))
        y = layer_norm(net, net.transpose(y, 0, 2, 1, 3), 8, hint="group_norm")
        y = net.mul(net.reshape(y, [BATCH, 10, 16]), activation(net, linear(net, x, 16, 16, hint="gate"), "swish"))
        x = net.add(x, linear(net, y, 16, 16, hint="out"))
    net.output(x, "hidden")


def spatial_gating(net):
    """gMLP: the sequence is mixed by a matrix."""
    x, _ = embed(net, net.input("ids", [BATCH, 10], "tokens", vocab=40), 40, 20)
    for i in range(2):
        with net.scope(f"block{i}"):
            y = activation(net, linear(net, layer_norm(net, x, 20), 20, 40, hint="in"), "gelu")
            u, v = net.split(y, [20, 20], 2)
            v = net.transpose(layer_norm(net, v, 20, hint="gate_norm"), 0, 2, 1)
            v = net.transpose(linear(net, v, 10, 10, hint="spatial"), 0, 2, 1)
            x = net.add(x, linear(net, net.mul(u, v), 20, 20, hint="out"))
    net.output(linear(net, net.reduce("Mean", x, [1], 0), 20, 6, rank=2, hint="head"), "logits")
