"""Third generation: faults of quantizers."""
import numpy as np

from faults2_weights import stored


def stored_weight(change, kind=np.int8):
    """Stored integers, changed; read wrongly by whoever reads them."""
    def apply(s):
        node = s.choose(stored(s, kind))
        if node is None:
            return None
        q = s.const(node.input[0])
        return [*s.set_const(node, 0, change(q.astype(np.int64), s.rng).astype(q.dtype)), node, *s.consumers(node.output[0])]
    return apply


def truncated(q, rng):
    """Towards nothing, where to the nearest was meant."""
    return q - np.sign(q) * (rng.random(q.shape) < 0.5)


def saturated(q, rng):
    """Beyond what the integers hold."""
    limit = int(np.abs(q).max() * rng.uniform(0.3, 0.8))
    return np.clip(q, -limit, limit)


def coarse_scale(s):
    """A scale in eight bits: three of them behind the point, rounded down."""
    node = s.choose(stored(s))
    if node is None:
        return None
    mantissa, exponent = np.frexp(s.const(node.input[1]).astype(np.float64))
    scale = np.ldexp(np.floor(mantissa * 16) / 16, exponent).astype(np.float32)
    return [*s.set_const(node, 1, scale), node, *s.consumers(node.output[0])]


def shared_scale(s):
    """What is joined gets one scale, that of the largest part."""
    def written(x):
        read = s.made_by(x, "DequantizeLinear")
        made = s.made_by(read.input[0], "QuantizeLinear") if read is not None else None
        return (made, read) if made is not None and s.const(made.input[1]) is not None and s.const(made.input[1]).size == 1 else None
    sites = []
    for n in s.nodes("Concat", "Add"):
        parts = sorted((p for p in map(written, n.input) if p), key=lambda p: s.const(p[0].input[1]).item())
        if len(parts) > 1 and s.const(parts[-1][0].input[1]).item() > 1.2 * s.const(parts[0][0].input[1]).item():
            sites.append((parts[0], parts[-1][0]))
    site = s.choose(sites)
    if site is None:
        return None
    (made, read), largest = site
    readers = [n for n in s.consumers(made.output[0]) if n.op_type == "DequantizeLinear"]
    for n in (made, *readers):
        for i in range(1, len(n.input)):
            n.input[i] = largest.input[i]
    return [made, read, *readers]


ROWS = [
    ("quantizer_rounds_to_zero", "tt-metal", "tenstorrent/tt-metal#51304", stored_weight(truncated)),
    ("quantizer_bias_saturated", "onnxruntime", "microsoft/onnxruntime#21645", stored_weight(saturated, np.int32)),
    ("quantizer_coarse_scale", "burn", "tracel-ai/burn#5261", coarse_scale),
    ("quantizer_shared_scale", "libreyolo", "LibreYOLO/libreyolo#361", shared_scale),
]
