"""Third generation: faults of norms, activations, residuals and what scales them."""
import numpy as np

from surgery import gone, scalar


def celu_as_elu(s):
    node = s.pick("Celu", lambda n: s.attr(n, "alpha", 1.0) != 1)
    if node is None:
        return None
    node.op_type = "Elu"
    return [node]


def shrink_bias(s):
    """What is left is not moved towards nothing."""
    node = s.pick("Shrink", lambda n: s.attr(n, "bias", 0.0) != 0)
    if node is None:
        return None
    s.set_attr(node, "bias", None)
    return [node]


def gains(s):
    """(node, input, array) of norms' scales: vectors around 1."""
    for n in s.nodes("Mul", "LayerNormalization"):
        for i in ((1,) if n.op_type == "LayerNormalization" else (0, 1)):
            c = s.const(n.input[i])
            if c is not None and c.ndim == 1 and c.dtype == np.float32 and c.size >= 4 and 0.7 < c.mean() < 1.3 and c.std() > 0.02:
                yield n, i, c


def norms_exchanged(s):
    """Two norms, each with the other's scale."""
    sites = list(gains(s))
    pair = s.choose([(a, b) for k, a in enumerate(sites) for b in sites[k + 1:] if a[2].shape == b[2].shape and a[0] is not b[0]])
    return s.set_const(*pair[0][:2], pair[1][2]) + s.set_const(*pair[1][:2], pair[0][2]) if pair else None


def norm_parameters(s):
    """Offset and scale in each other's place."""
    node = s.pick(("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization"), lambda n: len(n.input) > 2 and n.input[2])
    if node is None:
        return None
    node.input[1], node.input[2] = node.input[2], node.input[1]
    return [node]


def normed(s, node):
    """The value that a norm gives: behind its scale, and the offset where there is one. With the node that adds that, or None."""
    behind = s.consumers(node.output[0])
    if node.op_type == "Mul" and len(behind) == 1 and behind[0].op_type in ("Mul", "Sub") and len(s.shape(behind[0].output[0])) == len(s.shape(node.output[0])) \
            and s.const(node.input[0]) is None and s.shape(node.input[0])[-1:] == (1,):
        node, behind = behind[0], s.consumers(behind[0].output[0])  # the root was multiplied with the scale first
    if len(behind) == 1 and behind[0].op_type == "Add" and any(s.const(x) is not None and s.const(x).ndim == 1 for x in behind[0].input):
        return behind[0].output[0], behind[0]
    return node.output[0], None


WRITTEN_OUT = ("Sub", "Mul", "Pow", "ReduceMean", "Add", "Sqrt", "Div", "Reciprocal", "LayerNormalization", "Transpose")


def sources(s, value, depth=7):
    """Values that a norm that is written out is made from."""
    found, now = set(), {value}
    for _ in range(depth):
        makers = [s.producer(v) for v in now]
        now = {x for m in makers if m is not None and m.op_type in WRITTEN_OUT for x in m.input if x and s.const(x) is None} - found
        found |= now
    return found


def residual_after_norm(s):
    """What goes round a block is taken behind the block's norm."""
    sites = []
    for node, _, _ in gains(s):
        out, _ = normed(s, node)
        before, at = sources(s, out), s.place(s.producer(out))
        for add in s.nodes("Add"):
            for i, x in enumerate(add.input):
                other = add.input[1 - i]
                if x in before and s.place(add) > at and s.shape(x) == s.shape(out) == s.shape(other) and s.const(other) is None and other not in before:
                    sites.append((add, i, out))
    site = s.choose(sites)
    if site is None:
        return None
    site[0].input[site[1]] = site[2]
    return [site[0]]


def norm_folded(s):
    """A norm's scale is divided, and the weights of all that read it are multiplied: but for one."""
    def readers(n):
        out, _ = normed(s, n)
        found = s.consumers(out)
        fits = all(r.op_type in ("MatMul", "Gemm") and r.input[0] == out and s.const(r.input[1]) is not None for r in found)
        return found if fits and len(found) > 1 and not s.is_output(out) else []
    site = s.choose([x for x in gains(s) if readers(x[0])])
    if site is None:
        return None
    node, i, c = site
    found, (_, add) = readers(node), normed(s, node)
    factor = np.exp(s.rng.choice([0.15, 0.5]) * s.rng.standard_normal(c.size)).astype(np.float32)
    wrong = found[int(s.rng.integers(len(found)))]
    made = s.set_const(node, i, c / factor)
    if node.op_type == "LayerNormalization" and len(node.input) > 2 and node.input[2]:
        s.set_const(node, 2, s.const(node.input[2]) / factor)
    if add is not None:
        k = 0 if s.const(add.input[0]) is not None else 1
        made += s.set_const(add, k, s.const(add.input[k]) / factor)
    for r in found:
        if r is not wrong:
            w = s.const(r.input[1])
            s.set_const(r, 1, w * (factor if s.attr(r, "transB", 0) else factor[:, None]))
    return [*made, s.producer(normed(s, node)[0]), wrong]


def dropout_scale(s):
    """Nothing is dropped, but what is left is still made larger."""
    node = s.pick(("Relu", "Elu", "LeakyRelu", "Tanh", "Softmax", "Gelu", "PRelu", "Selu"), lambda n: s.consumers(n.output[0]))
    if node is None:
        return None
    keep = 1 - float(s.rng.choice([0.05, 0.1, 0.2, 0.5]))
    return s.after(node.output[0], ("Mul", [".", s.constant(np.float32(1 / keep))], {}))


def bias_twice(s):
    """By the layer, and once more behind it."""
    inner = [(n.output[0], s.const(n.input[2])) for n in s.nodes("Gemm", "Conv") if len(n.input) > 2 and n.input[2] and s.const(n.input[2]) is not None]
    apart = [(n.output[0], s.const(n.input[i])) for n in s.nodes("Add") for i in (0, 1)
             if s.made_by(n.input[1 - i], "MatMul") is not None and s.const(n.input[i]) is not None and s.const(n.input[i]).ndim == 1]
    site = s.choose(inner + apart)
    if site is None:
        return None
    value, b = site
    shape = b.shape + (1,) * (len(s.shape(value)) - 2) if s.producer(value).op_type == "Conv" else b.shape
    return s.after(value, ("Add", [".", s.constant(b.reshape(shape))], {}))


def exp_twice(s):
    node = s.pick("Exp", lambda n: s.const(n.input[0]) is not None)
    return s.after(node.output[0], ("Exp", ["."], {})) if node is not None else None


def exp_lost(s):
    node = s.pick("Exp", lambda n: s.const(n.input[0]) is not None)
    return s.bypass(node, node.input[0]) if node is not None else None


def near_a_scale(s, n):
    maker = s.producer(n.input[0])
    return scalar(s, n.input[1]) is not None and maker is not None and maker.op_type in ("Div", "Mul") and scalar(s, maker.input[1]) is not None \
        and len(s.shape(n.output[0])) == 4


ROWS = [
    ("celu_as_elu", "onnx", "onnx/onnx#3323", celu_as_elu),
    ("shrink_bias_lost", "pytorch-ort", "microsoft/pytorch-ort#26", shrink_bias),
    ("norms_exchanged", "Megatron-Bridge", "NVIDIA-NeMo/Megatron-Bridge#4200", norms_exchanged),
    ("norm_scale_and_offset", "keras", "keras-team/keras#3248", norm_parameters),
    ("residual_after_norm", "RiNALMo", "lbcb-sci/RiNALMo#9", residual_after_norm),
    ("norm_folded_for_some", "imp", "kekzl/imp#1162", norm_folded),
    ("dropout_scale_left", "keras_to_tensorflow", "amir-abdi/keras_to_tensorflow#1", dropout_scale),
    ("bias_added_twice", "AutoAWQ", "casper-hansen/AutoAWQ#383", bias_twice),
    ("scale_not_exponentiated", "M3D", "BAAI-DCAI/M3D#64", exp_lost),
    ("scale_exponentiated_twice", "pybioclip", "Imageomics/pybioclip#196", exp_twice),
    ("shift_factor_lost", "NewbieLoraTrainer", "NewBieAI-Lab/NewbieLoraTrainer#3", gone("Add", near_a_scale)),
]
