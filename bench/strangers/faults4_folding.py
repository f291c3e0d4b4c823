"""Fourth generation: what optimizers fold where they must not, or by half."""
import numpy as np

from surgery import scalar

MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze")


def scale_and_shift(s, bn):
    gamma, beta, mean, variance = (s.const(x) for x in bn.input[1:5])
    scale = gamma / np.sqrt(variance + s.attr(bn, "epsilon", 1e-5))
    return scale, beta - mean * scale


def set_bias(s, conv, b):
    name = s.constant(b.astype(np.float32), "folded_bias")
    del conv.input[2:]
    conv.input.append(name)


def fold_into(s, conv, bn):
    """The norm's scale and offset go into the convolution."""
    scale, shift = scale_and_shift(s, bn)
    w = s.const(conv.input[1])
    old = s.const(conv.input[2]) if len(conv.input) > 2 and conv.input[2] else 0
    conv.input[1] = s.constant((w * scale.reshape((-1,) + (1,) * (w.ndim - 1))).astype(np.float32), "folded")
    set_bias(s, conv, old * scale + shift)


def past_activation(s):
    """A norm behind an activation goes into the convolution in front of it."""
    def fits(n):
        act = s.made_by(n.input[0], "Relu", "LeakyRelu", "Elu", "Clip", "Selu")
        conv = s.made_by(act.input[0], "Conv") if act is not None else None
        return conv is not None and len(s.consumers(n.input[0])) == 1 and len(s.consumers(act.input[0])) == 1 and s.const(conv.input[1]) is not None
    bn = s.pick("BatchNormalization", fits)
    if bn is None:
        return None
    act = s.producer(bn.input[0])
    conv = s.producer(act.input[0])
    fold_into(s, conv, bn)
    return [conv, act, *s.bypass(bn, act.output[0])]


def second_reader(s):
    """Who else reads the convolution gets the norm, too."""
    def fits(n):
        conv = s.made_by(n.input[0], "Conv")
        return conv is not None and len(s.consumers(n.input[0])) > 1 and s.const(conv.input[1]) is not None
    bn = s.pick("BatchNormalization", fits)
    if bn is None:
        return None
    conv = s.producer(bn.input[0])
    fold_into(s, conv, bn)
    return [conv, *s.bypass(bn, conv.output[0])]


def shared_weight(s):
    """A weight that two convolutions share gets both norms."""
    def fits(n):
        conv = s.made_by(n.input[0], "Conv")
        return conv is not None and len(s.consumers(n.input[0])) == 1 and conv.input[1] in s.initializers and \
            sum(c.op_type == "Conv" and c.input[1] == conv.input[1] for c in s.consumers(conv.input[1])) > 1
    first = s.pick("BatchNormalization", fits)
    if first is None:
        return None
    weight, made = s.producer(first.input[0]).input[1], []
    total = np.ones(s.const(weight).shape[0])
    for conv in list(s.consumers(weight)):
        behind = s.consumers(conv.output[0])
        if len(behind) != 1 or behind[0].op_type != "BatchNormalization":
            return None
        scale, shift = scale_and_shift(s, behind[0])
        total = total * scale
        old = s.const(conv.input[2]) if len(conv.input) > 2 and conv.input[2] else 0
        set_bias(s, conv, old * scale + shift)
        made += [conv, *s.bypass(behind[0], conv.output[0])]
    w = s.const(weight)
    name = s.constant((w * total.reshape((-1,) + (1,) * (w.ndim - 1))).astype(np.float32), "folded")
    for conv in list(s.consumers(weight)):
        conv.input[1] = name
    return made


def before_padding(s):
    """The mean is subtracted by the layer's bias, where its border is of zeros."""
    def fits(n):
        behind = s.consumers(n.output[0])
        c = s.const(n.input[1])
        return c is not None and [b.op_type for b in behind] == ["Conv"] and any(s.attr(behind[0], "pads", [0])) and s.attr(behind[0], "group", 1) == 1 \
            and s.const(behind[0].input[1]) is not None and (c.size == 1 or c.size == s.shape(n.output[0])[1] and c.ndim > 2)
    node = s.pick(("Sub", "Add"), fits)
    if node is None:
        return None
    conv, c = s.consumers(node.output[0])[0], s.const(node.input[1]).astype(np.float64)
    w = s.const(conv.input[1])
    c = np.broadcast_to(c.reshape(-1), (w.shape[1],)) * (1 if node.op_type == "Add" else -1)
    old = s.const(conv.input[2]) if len(conv.input) > 2 and conv.input[2] else 0
    set_bias(s, conv, old + np.tensordot(w.reshape(w.shape[0], w.shape[1], -1).sum(2), c, 1))
    return [conv, *s.bypass(node, node.input[0])]


def bias_not_scaled(s):
    """A factor behind a layer goes into its weights, and not into its bias."""
    def layer(n):
        x = n.input[0]
        while True:
            p = s.producer(x)
            if p is None or len(s.consumers(x)) != 1 or s.is_output(x):
                return None
            if p.op_type in MOVES:
                x = p.input[0]
                continue
            if p.op_type in ("Gemm", "Conv"):
                has = len(p.input) > 2 and p.input[2] and s.const(p.input[2]) is not None
                return (p, p) if has and s.const(p.input[1]) is not None else None
            if p.op_type == "Add":
                product = next((q for q in (s.made_by(y, "MatMul") for y in p.input) if q is not None), None)
                b = next((c for c in map(s.const, p.input) if c is not None), None)
                ok = product is not None and b is not None and s.const(product.input[1]) is not None and len(s.consumers(product.output[0])) == 1
                return (product, p) if ok else None
            return None
    sites = [(n, layer(n)) for n in s.nodes("Mul", "Div") if scalar(s, n.input[1]) not in (None, 1.0) and s.const(n.input[0]) is None]
    site = s.choose([x for x in sites if x[1]])
    if site is None:
        return None
    node, (product, end) = site
    factor = scalar(s, node.input[1]) if node.op_type == "Mul" else 1 / scalar(s, node.input[1])
    s.set_const(product, 1, (s.const(product.input[1]) * factor).astype(np.float32))
    return [product, end, *s.bypass(node, node.input[0])]


ROWS = [
    ("norm_folded_past_activation", "glow", "pytorch/glow#5892", past_activation),
    ("norm_folded_for_second_reader", "acetone", "onera/acetone#56", second_reader),
    ("norms_folded_into_one_weight", "torchao", "pytorch/ao#2795", shared_weight),
    ("offset_folded_under_padding", "ResNet-on-Cifar10", "junyuseu/ResNet-on-Cifar10#4", before_padding),
    ("factor_folded_without_bias", "tt-mlir", "tenstorrent/tt-mlir#5386", bias_not_scaled),
]
