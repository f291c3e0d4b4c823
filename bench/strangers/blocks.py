"""Layers that architectures are made from: linear layers, norms, activations, attention, recurrent layers."""
import numpy as np

from net import BATCH, trained


def linear(net, x, n_in, n_out, rank=3, bias=True, gain=1.0, hint=""):
    with net.scope(hint or "linear"):
        b = net.vector(n_out, hint="bias") if bias else None
        if rank == 2 and net.style.linear == "gemm":
            return net.op("Gemm", x, net.trained((n_out, n_in), n_in, gain), b or "", transB=1, alpha=1.0, beta=1.0)
        w = np.ascontiguousarray(trained(net.rng, (n_out, n_in), n_in, gain).T)
        y = net.op("MatMul", x, net.weight(w))
        if not b:
            return y
        return net.add(b, y) if net.style.producer == "pytorch" else net.add(y, b)


def layer_norm(net, x, n, eps=None, hint="norm", centred=True):
    """Over the last axis; not centred: RMSNorm."""
    eps = eps or net.pick(1e-5, 1e-6, 1e-5, 1e-12)
    with net.scope(hint):
        gamma = net.vector(n, 1.0, 0.2, "weight")
        beta = net.vector(n, 0.0, 0.15) if centred else None
        if net.style.norm == "fused" and centred:
            return net.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=eps)
        if centred:
            mean = net.reduce("Mean", x, [-1])
            x = net.op("Sub", x, mean)
        if net.style.norm == "mul":
            square = net.mul(x, x)
            root = net.op("Reciprocal", net.op("Sqrt", net.add(net.reduce("Mean", square, [-1]), net.const(eps))))
            y = net.mul(x, net.mul(root, gamma))
        else:
            square = net.op("Pow", x, net.const(2.0))
            root = net.op("Sqrt", net.add(net.reduce("Mean", square, [-1]), net.const(eps)))
            y = net.mul(net.op("Div", x, root), gamma)
        return net.add(y, beta) if beta else y


def batch_norm(net, x, n, hint="bn"):
    """Its statistics are set to what the layer meets (calibrate), as training does."""
    with net.scope(hint):
        names = (net.vector(n, 1.0, 0.25, "weight"), net.vector(n, 0.1, 0.3), net.vector(n, 0, 0.1, "running_mean"),
                 net.weight(np.exp(0.2 * net.rng.standard_normal(n)).astype(np.float32), "running_var"))
        y = net.op("BatchNormalization", x, *names, epsilon=net.pick(1e-5, 1e-3), momentum=0.9)
    net.norms.append((x, names[2], names[3]))
    return y


def instance_norm(net, x, n, hint="in", affine=True):
    with net.scope(hint):
        gamma = net.vector(n, 1.0, 0.2 if affine else 0, "weight")
        return net.op("InstanceNormalization", x, gamma, net.vector(n, 0, 0.2 if affine else 0), epsilon=1e-5)


def group_norm(net, x, n, groups, side, hint="gn"):
    """As torch exports it: InstanceNormalization of groups, then the channels' scale."""
    with net.scope(hint):
        y = net.op("Reshape", x, net.ints(0, groups, -1))
        y = net.op("InstanceNormalization", y, net.const(np.ones(groups)), net.const(np.zeros(groups)), epsilon=1e-5)
        y = net.reshape(y, [BATCH, n, *side], like=x)
        shape = (n,) + (1,) * len(side)
        scale = net.weight((1 + 0.2 * net.rng.standard_normal(shape)).astype(np.float32), "weight")
        return net.add(net.mul(y, scale), net.weight((0.2 * net.rng.standard_normal(shape)).astype(np.float32), "bias"))


def activation(net, x, kind, channels=None, axes=2):
    if kind == "relu":
        return net.op("Relu", x)
    if kind == "relu6":
        return net.clip(x, 0.0, 6.0)
    if kind == "leaky":
        return net.op("LeakyRelu", x, alpha=net.pick(0.1, 0.2, 0.3))
    if kind == "elu":
        return net.op("Elu", x, alpha=net.pick(1.0, 0.6))
    if kind == "selu":
        return net.op("Selu", x)
    if kind == "tanh":
        return net.op("Tanh", x)
    if kind == "sigmoid":
        return net.op("Sigmoid", x)
    if kind == "swish":
        return net.mul(x, net.op("Sigmoid", x))
    if kind == "quick_gelu":
        return net.mul(x, net.op("Sigmoid", net.mul(x, net.const(1.702))))
    if kind == "hardswish":
        if net.style.producer == "PaddlePaddle":
            return net.op("Div", net.mul(x, net.clip(net.add(x, net.const(3.0)), 0.0, 6.0)), net.const(6.0))
        return net.mul(x, net.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))
    if kind == "mish":
        return net.mul(x, net.op("Tanh", net.op("Softplus", x)))
    if kind == "softplus":  # with a slope beta, as torch has it
        beta = net.pick(2.0, 3.0)
        return net.op("Div", net.op("Softplus", net.mul(x, net.const(beta))), net.const(beta))
    if kind == "prelu":
        slope = net.weight((0.25 + 0.1 * net.rng.standard_normal((channels,) + (1,) * axes)).astype(np.float32), "slope")
        return net.op("PRelu", x, slope)
    if kind == "gelu_tanh":
        inner = net.add(x, net.mul(net.op("Pow", x, net.const(3.0)), net.const(0.044715)))
        t = net.op("Tanh", net.mul(inner, net.const(np.sqrt(2 / np.pi))))
        return net.mul(net.mul(x, net.const(0.5)), net.add(t, net.const(1.0)))
    if kind == "gelu":
        if net.style.gelu == "op" and net.opset >= 20:
            return net.op("Gelu", x)
        e = net.add(net.op("Erf", net.op("Div", x, net.const(np.sqrt(2)))), net.const(1.0))
        return net.mul(net.mul(x, e), net.const(0.5))
    raise KeyError(kind)


def heads(net, x, length, n_heads, size, like=None, lead=BATCH):
    """[lead, length, n_heads * size] to [lead, n_heads, length, size]."""
    return net.transpose(net.reshape(x, [lead, length, n_heads, size], like), 0, 2, 1, 3)


def rotary(net, x, length, size, base=10000.0, interleaved=False):
    """Rotates pairs of [..., length, size]: the halves, or neighbours where interleaved."""
    angle = np.arange(length)[:, None] * base ** (-np.arange(0, size, 2) / size)[None]
    if interleaved:
        cos, sin = net.const(np.cos(angle)), net.const(np.sin(angle))
        even, odd = net.slice(x, 3, 0, size, 2), net.slice(x, 3, 1, size, 2)
        first = net.op("Sub", net.mul(even, cos), net.mul(odd, sin))
        second = net.add(net.mul(even, sin), net.mul(odd, cos))
        pair = net.concat(net.unsqueeze(first, 4), net.unsqueeze(second, 4), axis=4)
        return net.op("Reshape", pair, net.ints(0, 0, 0, size))
    angle = np.concatenate([angle, angle], 1)
    low, high = net.slice(x, 3, 0, size // 2), net.slice(x, 3, size // 2, size)
    turned = net.concat(net.op("Neg", high), low, axis=3)
    return net.add(net.mul(x, net.const(np.cos(angle))), net.mul(turned, net.const(np.sin(angle))))


def causal_mask(net, length):
    """As frameworks make it: a triangle of booleans and a large negative number, or the finished matrix."""
    keep = np.tril(np.ones((1, 1, length, length), bool))
    if net.pick(True, False):
        return net.op("Where", net.const(keep, bool), net.const(0.0), net.const(net.pick(-1e4, -1e9, -3.4e38)))
    return net.const(np.where(keep, 0, net.pick(-1e4, -1e9)))


def attention(net, x, length, dim, n_heads, mask=None, bias=None, rope=None, kv=None, kv_length=None, kv_heads=None,
              like=None, lead=BATCH, fused_qkv=False, adjust=None, hint="attn"):
    """Multi-head attention.

    mask, bias: added to the scores; adjust: a function on them; kv: attends to this instead; lead: -1 where the first dimension
    is batch and windows; like: see Net.reshape.
    """
    size, kv_heads = dim // n_heads, kv_heads or n_heads
    kv_length = kv_length or length
    with net.scope(hint):
        if fused_qkv and kv is None and kv_heads == n_heads:
            qkv = net.reshape(linear(net, x, dim, 3 * dim, hint="qkv"), [lead, length, 3, n_heads, size], like)
            parts = net.split(net.transpose(qkv, 2, 0, 3, 1, 4), [1, 1, 1], 0)
            q, k, v = (net.squeeze(p, 0) for p in parts)
        else:
            source = kv or x
            q = heads(net, linear(net, x, dim, dim, hint="q"), length, n_heads, size, like, lead)
            k = heads(net, linear(net, source, dim, kv_heads * size, hint="k"), kv_length, kv_heads, size, like, lead)
            v = heads(net, linear(net, source, dim, kv_heads * size, hint="v"), kv_length, kv_heads, size, like, lead)
        if rope:
            q, k = rotary(net, q, length, size, **rope), rotary(net, k, kv_length, size, **rope)
        if kv_heads != n_heads:  # grouped queries: each head of k and v serves several
            repeats = n_heads // kv_heads
            k, v = (net.reshape(net.op("Tile", net.unsqueeze(t, 2), net.ints(1, 1, repeats, 1, 1)),
                                [lead, n_heads, kv_length, size], like) for t in (k, v))
        if net.pick(True, False):
            q = net.mul(q, net.const(size ** -0.5))
            scores = net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2))
        else:
            scores = net.op("Div", net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2)), net.const(size ** 0.5))
        for extra in (bias, mask):
            if extra:
                scores = net.add(scores, extra)
        if adjust:
            scores = adjust(scores)
        y = net.op("MatMul", net.softmax(scores, 4), v)
        y = net.reshape(net.transpose(y, 0, 2, 1, 3), [lead, length, dim], like)
        return linear(net, y, dim, dim, hint="out")


def mlp(net, x, dim, inner, act="gelu", hint="mlp"):
    with net.scope(hint):
        return linear(net, activation(net, linear(net, x, dim, inner, hint="fc1"), act), inner, dim, hint="fc2")


def gated_mlp(net, x, dim, inner, act="swish", hint="mlp"):
    with net.scope(hint):
        gate = activation(net, linear(net, x, dim, inner, bias=False, hint="gate"), act)
        return linear(net, net.mul(gate, linear(net, x, dim, inner, bias=False, hint="up")), inner, dim, bias=False, hint="down")


def glu(net, x, n, axis):
    """The first half times the sigmoid of the second."""
    a, b = net.split(x, [n, n], axis)
    return net.mul(a, net.op("Sigmoid", b))


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(net, x, kind, n_in, hidden, direction="forward", states=None, lengths=None, activations=None, reset_after=1, hint="rnn"):
    """x: [length, batch, n_in]; gives Y as [length, batch, directions * hidden], and the last state."""
    d, g = 2 if direction == "bidirectional" else 1, GATES[kind]
    with net.scope(hint):
        w = net.trained((d, g * hidden, n_in), n_in, 1.2, "W")
        r = net.trained((d, g * hidden, hidden), hidden, 0.9, "R")
        keras = net.style.producer in ("tf2onnx", "keras2onnx")  # one bias: the recurrent half is zero
        b = 0.2 * net.rng.standard_normal((d, 2 * g * hidden)).astype(np.float32)
        if keras:
            b[:, g * hidden:] = 0
        if kind == "LSTM":
            b[:, 2 * hidden:3 * hidden] += 1  # the forget gate is open
        more = {"linear_before_reset": reset_after} if kind == "GRU" else {}
        if activations:
            more["activations"] = activations * d
        inputs = [x, w, r, net.weight(b, "B"), lengths or "", *(states or [])]
        while not inputs[-1]:
            inputs.pop()
        y, last = net.op(kind, *inputs, n=2, hidden_size=hidden, direction=direction, **more)
        if d == 1:
            return net.squeeze(y, 1), last
        y = net.transpose(y, 0, 2, 1, 3)
        return net.op("Reshape", y, net.ints(0, 0, d * hidden)), last
