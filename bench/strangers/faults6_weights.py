"""Sixth generation: faults of adapters, of scales of scales, and of middles of few bits."""
import numpy as np

from surgery import scalar


def adapters(s):
    """(product with the base weight, A, B, factor): a layer beside which what was learned later is added."""
    for n in s.nodes("Add"):
        base = next((b for b in (s.made_by(x, "MatMul") for x in n.input) if b is not None), None)
        scaled = next((m for m in (s.made_by(x, "Mul") for x in n.input) if m is not None), None)
        second = s.made_by(scaled.input[0], "MatMul") if scaled is not None else None
        first = s.made_by(second.input[0], "MatMul") if second is not None else None
        if base is not None and first is not None and first.input[0] == base.input[0] and scalar(s, scaled.input[1]) is not None:
            w, a, b = s.const(base.input[1]), s.const(first.input[1]), s.const(second.input[1])
            if w is not None and a is not None and b is not None:
                yield base, w, a, b, scalar(s, scaled.input[1])


def adapter_twice(s):
    """It was merged into the base, and is still beside it."""
    made = []
    for base, w, a, b, factor in list(adapters(s)):
        made += s.set_const(base, 1, (w + factor * a.astype(np.float64) @ b).astype(np.float32))
    return made or None


def unpacked(s):
    """(Mul with scales, Cast of whole numbers in front of it, Sub of middles or None)."""
    for n in s.nodes("Mul"):
        for i in (0, 1):
            cast, sub = s.made_by(n.input[i], "Cast"), s.made_by(n.input[i], "Sub")
            if sub is not None:
                cast = s.made_by(sub.input[0], "Cast")
            whole = s.const(cast.input[0]) if cast is not None else None
            if whole is not None and whole.dtype == np.int32 and whole.ndim > 1:
                yield n, i, cast, sub


def middle_one_more(s):
    """Stored less one by one version, read as it is by another."""
    made = []
    for n, i, cast, sub in unpacked(s):
        middle = s.made_by(sub.input[1], "Cast") if sub is not None else None
        if middle is not None:
            made += [*s.set_const(middle, 0, (s.const(middle.input[0]) + 1).astype(np.int32)), middle]
    return made or None


def nothing_becomes_most(s):
    """Less one, in few bits without a sign: nothing becomes the most there is."""
    made = []
    for n, i, cast, sub in unpacked(s):
        middle = s.made_by(sub.input[1], "Cast") if sub is not None else None
        zeros = s.const(middle.input[0]) if middle is not None else None
        if zeros is not None and np.any(zeros == 0):
            most = 255 if s.const(cast.input[0]).max() > 15 else 15
            made += [*s.set_const(middle, 0, np.where(zeros == 0, most, zeros).astype(np.int32)), middle]
    return made or None


def column_scales_lost(s):
    """Whole numbers go into the product as they are."""
    sites = [(n, i) for n, i, cast, sub in unpacked(s) if sub is None and s.const(n.input[1 - i]) is not None and s.const(n.input[1 - i]).size > 1]
    site = s.choose(sites)
    return s.bypass(site[0], site[0].input[site[1]]) if site else None


def nested_sums(s):
    """(Add of a middle, Mul with a scale) of scales that are bytes themselves."""
    for n in s.nodes("Add"):
        inner = s.made_by(n.input[0], "Mul")
        cast = s.made_by(inner.input[0], "Cast") if inner is not None else None
        if cast is not None and s.const(cast.input[0]) is not None and scalar(s, inner.input[1]) is not None and scalar(s, n.input[1]) is not None:
            yield n, inner


def nested_middle_lost(s):
    """The middle of the scales is not added again."""
    made = []
    for n, inner in list(nested_sums(s)):
        made += s.bypass(n, n.input[0]) or []
    return made or None


def scale_in_powers(s):
    """Numbers were divided by their scale, and then the scale was rounded up to a power of two."""
    sites = []
    for n, i, cast, sub in unpacked(s):
        c = s.const(n.input[1 - i])
        if c is not None and c.size > 1:
            sites.append((n, 1 - i, c))
    site = s.choose(sites)
    return s.set_const(site[0], site[1], np.exp2(np.ceil(np.log2(np.maximum(site[2], 1e-9)))).astype(np.float32)) if site else None


def stored_scale_in_powers(s):
    """The same of weights that ONNX's own operators read."""
    made = []
    for n in s.nodes("DequantizeLinear"):
        q, c = s.const(n.input[0]), s.const(n.input[1])
        if q is not None and q.ndim > 1 and c is not None:
            made += [*s.set_const(n, 1, np.exp2(np.ceil(np.log2(c))).astype(np.float32).reshape(c.shape)), n, *s.consumers(n.output[0])]
    return made or None


ROWS = [
    ("adapter_applied_twice", "unsloth", "unslothai/unsloth#289", adapter_twice),
    ("middle_one_more", "vllm", "vllm-project/vllm#38966", middle_one_more),
    ("nothing_becomes_most", "GPTQModel", "ModelCloud/GPTQModel#2350", nothing_becomes_most),
    ("column_scales_lost", "stable-diffusion.cpp", "leejet/stable-diffusion.cpp#1898", column_scales_lost),
    ("scales_middle_lost", "bitsandbytes", "bitsandbytes-foundation/bitsandbytes#1549", nested_middle_lost),
    ("scale_in_powers", "transformers", "huggingface/transformers#46763", scale_in_powers),
    ("quantizer_scale_in_powers", "transformers", "huggingface/transformers#46763", stored_scale_in_powers),
]
