"""Fourth generation: faults of activations, of what gates, and of single numbers in formulas."""
import numpy as np

from faults_structure import UNARY
from surgery import scalar


def swish_product_lost(s):
    """x * sigmoid(x) is only the sigmoid."""
    def gate(n):
        x = n.input[0]
        behind = s.consumers(n.output[0])
        return len(behind) == 1 and behind[0].op_type == "Mul" and x in behind[0].input
    node = s.pick(("Sigmoid", "HardSigmoid"), gate)
    if node is None:
        return None
    product = s.consumers(node.output[0])[0]
    return s.bypass(product, node.output[0])


def bias_after_activation(s):
    """act(w x) + b for act(w x + b)."""
    def fits(n):
        maker = s.producer(n.input[0])
        return maker is not None and len(s.consumers(n.input[0])) == 1 and bias(s, maker) is not None
    node = s.pick((*UNARY, "Gelu", "Selu", "Mish", "ThresholdedRelu"), fits)
    if node is None:
        return None
    maker = s.producer(node.input[0])
    b = bias(s, maker)
    if maker.op_type == "Add":
        i = 0 if s.const(maker.input[0]) is not None else 1
        name, raw = maker.input[i], maker.input[1 - i]
        s.bypass(maker, raw)
        return [s.producer(raw), *s.after(node.output[0], ("Add", [".", name], {}))]
    shape = b.shape + (1,) * (len(s.shape(node.output[0])) - 2) if maker.op_type == "Conv" else b.shape
    del maker.input[2:]
    return [maker, *s.after(node.output[0], ("Add", [".", s.constant(b.reshape(shape))], {}))]


def bias(s, n):
    """The bias that a layer adds, as a vector; None: this is no such layer."""
    if n.op_type in ("Gemm", "Conv") and len(n.input) > 2 and n.input[2]:
        return s.const(n.input[2])
    if n.op_type == "Add" and any(s.made_by(x, "MatMul") is not None for x in n.input):
        return next((c for c in map(s.const, n.input) if c is not None and c.ndim == 1), None)
    return None


def threshold_default(s):
    node = s.pick("ThresholdedRelu", lambda n: s.attr(n, "alpha", 1.0) != 1)
    if node is None:
        return None
    s.set_attr(node, "alpha", None)
    return [node]


def lrn_offset(s):
    node = s.pick("LRN", lambda n: s.attr(n, "bias", 1.0) != 1)
    if node is None:
        return None
    s.set_attr(node, "bias", None)
    return [node]


def squeeze_lost(s):
    """What opens a gate is each pixel's own, not the mean of all."""
    def fits(n):
        behind = s.consumers(n.output[0])
        return len(s.shape(n.output[0])) == 4 and s.shape(n.output[0])[2:] == (1, 1) and any(b.op_type == "Conv" for b in behind)
    node = s.pick(("GlobalAveragePool", "ReduceMean"), fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def root_lost(s):
    """A sum of squares where its root was meant."""
    node = s.pick("Sqrt", lambda n: s.const(n.input[0]) is None)
    return s.bypass(node, node.input[0]) if node is not None else None


def one_outside(s):
    """log(x) + 1 for log(1 + x)."""
    def fits(n):
        inner = s.made_by(n.input[0], "Add")
        return inner is not None and any(scalar(s, x) == 1 for x in inner.input) and len(s.consumers(inner.output[0])) == 1
    node = s.pick("Log", fits)
    if node is None:
        return None
    inner = s.producer(node.input[0])
    raw = inner.input[1] if scalar(s, inner.input[0]) == 1 else inner.input[0]
    if np.min(s.values[raw]) < 0:
        return None
    small = s.constant(np.float32(1e-3), "least")
    s.bypass(inner, raw)
    made = s.before(node, 0, ("Max", [".", small], {}))
    return [*made, *s.after(made[-1].output[0], ("Add", [".", s.constant(np.float32(1), "one")], {}))]


def time_scaled_twice(s):
    names = {i.name for i in s.graph.input}
    node = s.pick("Mul", lambda n: n.input[0] in names and (scalar(s, n.input[1]) or 0) > 5)
    return s.after(node.output[0], ("Mul", [".", node.input[1]], {})) if node is not None else None


def sample_scale_lost(s):
    """Samples of sixteen bits go in as they are."""
    def fits(n):
        c = scalar(s, n.input[1])
        return c is not None and np.isclose(c, 32768 if n.op_type == "Div" else 1 / 32768)
    node = s.pick(("Div", "Mul"), fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def decibel_factor(s):
    """Twenty for ten, or ten for twenty."""
    node = s.pick("Mul", lambda n: scalar(s, n.input[1]) in (10.0, 20.0) and s.made_by(n.input[0], "Mul") is not None
                  and s.made_by(s.producer(n.input[0]).input[0], "Log") is not None)
    if node is None:
        return None
    c = s.const(node.input[1])
    return s.set_const(node, 1, (c * (2 if c.item() == 10 else 0.5)).astype(np.float32))


def cosine_scale(s):
    """The first row of a cosine transform has the scale of all others."""
    def fits(n):
        c = s.const(n.input[0])
        return c is not None and c.ndim == 2 and min(c.shape) > 3 and np.ptp(c[0]) < 1e-6 and np.isclose(c[0, 0], 1 / np.sqrt(c.shape[1]), rtol=1e-3)
    node = s.pick("MatMul", fits)
    if node is None:
        return None
    c = s.const(node.input[0]).copy()
    c[0] *= np.sqrt(2)
    return s.set_const(node, 0, c)


def luma_reversed(s):
    def fits(n):
        w = s.const(n.input[1])
        return w is not None and w.size == 3 and np.isclose(w.sum(), 1, atol=0.01)
    node = s.pick("Conv", fits)
    return s.set_const(node, 1, np.ascontiguousarray(s.const(node.input[1])[:, ::-1])) if node is not None else None


def grid_by_size(s):
    """Places divided by how many there are, not by one less: the last does not reach the border."""
    sites = []
    for n in s.nodes("Add", "MatMul"):
        for i, x in enumerate(n.input):
            c = s.const(x)
            if c is not None and c.ndim >= 2 and c.dtype == np.float32 and c.shape[-1] == 2:
                steps = np.unique(c)
                if steps.size > 3 and np.allclose(steps, np.linspace(-1, 1, steps.size), atol=1e-5):
                    sites.append((n, i, c, steps.size))
    site = s.choose(sites)
    if site is None:
        return None
    n, i, c, size = site
    return s.set_const(n, i, ((c + 1) * (size - 1) / size - 1).astype(np.float32))


ROWS = [
    ("swish_product_lost", "diffusers", "huggingface/diffusers#1518", swish_product_lost),
    ("bias_after_activation", "onnxruntime", "microsoft/onnxruntime#15837", bias_after_activation),
    ("threshold_default", "coremltools", "apple/coremltools#392", threshold_default),
    ("lrn_offset_default", "MMdnn", "microsoft/MMdnn#805", lrn_offset),
    ("squeeze_lost", "DeepDanbooru", "KichangKim/DeepDanbooru#55", squeeze_lost),
    ("root_lost", "Paddle", "PaddlePaddle/Paddle#11345", root_lost),
    ("one_outside_logarithm", "kuroko", "kuroko-lang/kuroko#17", one_outside),
    ("time_scaled_twice", "Step1X-Edit", "stepfun-ai/Step1X-Edit#91", time_scaled_twice),
    ("sample_scale_lost", "pyannote-rs", "thewh1teagle/pyannote-rs#28", sample_scale_lost),
    ("decibel_factor", "tacotron2", "riverphoenix/tacotron2#9", decibel_factor),
    ("cosine_transform_scale", "CMSIS-DSP", "ARM-software/CMSIS-DSP#338", cosine_scale),
    ("luma_reversed", "mmsegmentation", "open-mmlab/mmsegmentation#3070", luma_reversed),
    ("grid_divided_by_size", "SpatialTransformerLayer", "daerduoCarey/SpatialTransformerLayer#8", grid_by_size),
]
