"""Third generation: faults of spectra, codes, times, poses and samplers."""
import numpy as np

from arch3_audio import mel_bank, windowed_basis
from surgery import gone, scalar


def mel(change):
    """Another bank of bands: `change` turns (Slaney's scale, of one area each) into other such flags."""
    def apply(s):
        for n in s.nodes("MatMul"):
            c = s.const(n.input[0])
            for flags in ((a, b) for a in (False, True) for b in (False, True)):
                if c is not None and c.ndim == 2 and c.shape[0] > 3 and np.allclose(c, mel_bank(*c.shape, *flags), rtol=1e-4):
                    return s.set_const(n, 0, mel_bank(*c.shape, *change(*flags)))
        return None
    return apply


def pre_emphasis(s):
    def fits(n):
        w = s.const(n.input[1])
        return w is not None and w.shape == (1, 1, 2) and w[0, 0, 1] == 1 and -1 < w[0, 0, 0] < -0.5
    node = s.pick("Conv", fits)
    return s.set_const(node, 1, np.array([[[0, 1]]], np.float32)) if node is not None else None


def window_side(s):
    """A window shorter than the transform begins with it, where it should stand in its middle."""
    for n in s.nodes("Conv"):
        w = s.const(n.input[1])
        if w is None or w.ndim != 3 or w.shape[1] != 1 or w.shape[0] != w.shape[2] + 2:
            continue
        size = w.shape[2]
        for inner in range(4, size):
            if np.allclose(w[:, 0], windowed_basis(size // 2 + 1, size, inner), atol=1e-5):
                return s.set_const(n, 1, windowed_basis(size // 2 + 1, size, inner, 0).astype(np.float32)[:, None])
    return None


def overlap(s):
    """Divided by what windows add up to, where their squares should be."""
    def of(n):
        cut = s.made_by(n.input[0], "Slice")
        return s.made_by(cut.input[0], "ConvTranspose") if cut is not None and s.const(n.input[1]) is not None and s.const(n.input[1]).ndim == 3 else None
    node = s.pick("Div", lambda n: of(n) is not None)
    if node is None:
        return None
    up = of(node)
    size, hop, frames = s.attr(up, "kernel_shape")[0], s.attr(up, "strides")[0], s.shape(up.input[0])[2]
    total = np.zeros((frames - 1) * hop + size)
    for t in range(frames):
        total[t * hop:t * hop + size] += 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    c = s.const(node.input[1])
    return s.set_const(node, 1, total[size // 2:size // 2 + c.size].reshape(c.shape).astype(np.float32))


def of_fourier(s, n):
    """A scale beside a Fourier transform."""
    if scalar(s, n.input[1]) is None:
        return False
    maker, behind = s.producer(n.input[0]), s.consumers(n.output[0])
    if maker is None:
        return False
    parts = [s.made_by(x, "MatMul") for x in maker.input] if maker.op_type == "Sub" else []
    matrices = len(parts) == 2 and all(p is not None and s.const(p.input[1]) is not None and np.abs(s.const(p.input[1])).max() < 1.0001 for p in parts)
    return maker.op_type == "DFT" or any(b.op_type == "DFT" for b in behind) or matrices


def fourier_axis(s):
    """The transform goes along the channels, or along the sequence where it should along those."""
    node = s.pick("DFT")
    if node is None:
        return None
    if len(node.input) > 2:
        return s.set_const(node, 2, np.array(3 - int(s.const(node.input[2]))))
    s.set_attr(node, "axis", 3 - s.attr(node, "axis", 1))
    return [node]


def to_nearest(s, n):
    """The lengths of codes, in a distance of which the smallest counts."""
    c = s.const(n.input[1])
    return c is not None and c.ndim == 3 and c.shape[:2] == (1, 1) and any(b.op_type == "ArgMin" for b in s.consumers(n.output[0]))


# ---- times and samplers ----

def frequency_shift(s):
    """The slowest frequency is reached a step earlier, or a step later."""
    def falls(c):
        if c is None or c.dtype != np.float32 or c.ndim != 2 or c.shape[0] != 1 or c.shape[1] < 4 or c[0, 0] != 1 or c[0, -1] >= c[0, 1]:
            return False
        return np.allclose(np.diff(np.log(c[0])), np.log(c[0, 1]), rtol=1e-3)
    sites = [(n, s.const(n.input[1])) for n in s.nodes("Mul") if falls(s.const(n.input[1]))]
    made = []
    for n, c in sites:
        half = c.shape[1]
        shifted = np.isclose(np.log(c[0, -1]), -np.log(1000.0), rtol=1e-3)  # the last is the slowest of all
        made += s.set_const(n, 1, (c.astype(np.float64) ** ((half - 1) / half if shifted else half / (half - 1))).astype(np.float32))
    return made or None


def prediction_type(s):
    """An output that says where to go is taken for the noise, or the reverse."""
    def parts(sub):
        """(alpha, sigma): of alpha * x - sigma * out, or (x - sigma * out) / alpha."""
        a, b = (s.made_by(x, "Mul") for x in sub.input)
        sigma = scalar(s, b.input[1]) if b is not None else None
        if sigma is None:
            return None
        behind = s.consumers(sub.output[0])
        if len(behind) == 1 and behind[0].op_type == "Div" and scalar(s, behind[0].input[1]) is not None:
            alpha, node = scalar(s, behind[0].input[1]), behind[0]
        elif a is not None and scalar(s, a.input[1]) is not None:
            alpha, node = scalar(s, a.input[1]), a
        else:
            return None
        return (alpha, node) if abs(alpha ** 2 + sigma ** 2 - 1) < 1e-4 else None
    sub = s.pick("Sub", lambda n: parts(n) is not None)
    if sub is None:
        return None
    alpha, node = parts(sub)
    if node.op_type == "Mul":
        made = s.set_const(node, 1, np.float32(1))
        return [*made, sub, *s.after(sub.output[0], ("Div", [".", s.constant(np.float32(alpha))], {}))]
    made = s.set_const(node, 1, np.float32(1))
    return [*made, *s.before(sub, 0, ("Mul", [".", s.constant(np.float32(alpha))], {}))]


# ---- poses ----

def quaternion_order(s):
    """The real part first, where it is expected last."""
    node = s.pick("Split", lambda n: len(n.output) == 4 and s.shape(n.input[0])[-1] == 4)
    if node is None:
        return None
    names = list(node.output)
    del node.output[:]
    node.output.extend(names[1:] + names[:1])
    return [node]


def rotation_transposed(s):
    """Three directions as rows, where they are columns, or the reverse."""
    def square(n):
        return len(n.input) == 3 and all(s.made_by(x, "Unsqueeze") is not None for x in n.input) and s.shape(n.output[0])[-2:] == (3, 3)
    node = s.pick("Concat", square)
    return s.after(node.output[0], ("Transpose", ["."], {"perm": [0, 2, 1]})) if node is not None else None


def quadrant_lost(s):
    """Directions backwards are those forwards."""
    node = s.pick("Where", lambda n: s.made_by(n.input[2], "Atan") is not None)
    return s.bypass(node, node.input[2]) if node is not None else None


ROWS = [
    ("mel_scale", "kaldifeat", "csukuangfj/kaldifeat#111", mel(lambda slaney, area: (not slaney, area))),
    ("mel_area", "torchaudio", "pytorch/audio#1058", mel(lambda slaney, area: (slaney, not area))),
    ("pre_emphasis_lost", "mlx-audio", "Blaizzy/mlx-audio#285", pre_emphasis),
    ("window_not_centred", "mlx-audio", "Blaizzy/mlx-audio#592", window_side),
    ("overlap_of_windows", "voice", "rgbkrk/voice#7", overlap),
    ("fourier_scale_lost", "onnxscript", "microsoft/onnxscript#2209", gone("Mul", of_fourier)),
    ("fourier_axis", "onnxscript", "microsoft/onnxscript#2704", fourier_axis),
    ("code_lengths_lost", "vector-quantize-pytorch", "lucidrains/vector-quantize-pytorch#121", gone("Add", to_nearest)),
    ("frequency_shift", "sd-scripts", "kohya-ss/sd-scripts#1187", frequency_shift),
    ("prediction_type", "diffusers", "huggingface/diffusers#1667", prediction_type),
    ("quaternion_order", "fairmotion", "facebookresearch/fairmotion#90", quaternion_order),
    ("rotation_transposed", "pytorch3d", "facebookresearch/pytorch3d#1214", rotation_transposed),
    ("quadrant_lost", "torch-to-nnef", "sonos/torch-to-nnef#124", quadrant_lost),
]
