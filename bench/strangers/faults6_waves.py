"""Sixth generation: faults of spectra, windows, bands and cepstra."""
import numpy as np

from layers6 import window
from surgery import scalar


def power_sums(s):
    """Sums of squares of two parts of one split."""
    for n in s.nodes("Add"):
        squares = [s.made_by(x, "Mul") for x in n.input]
        if all(m is not None and m.input[0] == m.input[1] and s.made_by(m.input[0], "Split") is not None for m in squares):
            yield n


def magnitude_for_power(s):
    """The root of the power."""
    node = s.choose(power_sums(s))
    return s.after(node.output[0], ("Sqrt", ["."], {})) if node is not None else None


def bases(s):
    """(Conv, its weight, its window): filters that are waves under a window, cosines first."""
    for n in s.nodes("Conv"):
        w = s.const(n.input[1])
        if w is None or w.ndim != 3 or w.shape[1] != 1 or w.shape[0] % 2 or w.shape[2] < 8:
            continue
        half = w.shape[0] // 2
        size = w.shape[2]
        root = np.sqrt(w[:half, 0] ** 2 + w[half:, 0] ** 2)
        if half == size // 2 + 1 and np.ptp(root, axis=0).max() < 1e-4:
            yield n, w, root[0], half


def window_changed(s, new):
    site = s.choose(bases(s))
    if site is None:
        return None
    n, w, old, half = site
    size = w.shape[2]
    angle = 2 * np.pi * np.outer(np.arange(half), np.arange(size)) / size
    return s.set_const(n, 1, (np.concatenate([np.cos(angle), -np.sin(angle)]) * new(old, size))[:, None].astype(np.float32))


def window_lost(s):
    """Frames are cut out as they are."""
    return window_changed(s, lambda old, size: np.ones(size))


def window_of_other_kind(s):
    return window_changed(s, lambda old, size: window(size, "hamming" if old[0] < 0.01 else "hann"))


def bank_of_bands(s):
    for n in s.nodes("MatMul"):
        w = s.const(n.input[0])
        if w is None or w.ndim != 2 or w.min() < 0 or not 3 < w.shape[0] <= w.shape[1]:
            continue
        top = w.argmax(1)
        if np.all(np.diff(top) >= 0) and top[-1] > top[0]:
            yield n, w


def bands_to_the_top(s):
    """The highest band ends elsewhere: all edges are where they would be for another top."""
    site = s.choose(bank_of_bands(s))
    if site is None:
        return None
    n, w = site
    bins = w.shape[1]
    grow = 1.25 if w[-1, -3:].max() > 0.05 else 0.8
    at = np.clip(np.arange(bins) * grow, 0, bins - 1)
    return s.set_const(n, 0, np.stack([np.interp(at, np.arange(bins), row) for row in w]).astype(np.float32))


def lifters(s):
    """(Mul, weights, length): one plus a half wave."""
    for n in s.nodes("Mul"):
        c = s.const(n.input[1])
        if c is None or c.ndim != 3 or c.size < 4 or s.made_by(n.input[0], "MatMul") is None:
            continue
        v = c.reshape(-1)
        for length in (22.0, 12.0):
            if np.allclose(v, 1 + length / 2 * np.sin(np.pi * np.arange(1, v.size + 1) / length), rtol=1e-4):
                yield n, c, length


def lifter_lost(s):
    site = s.choose(lifters(s))
    return s.bypass(site[0], site[0].input[0]) if site else None


def lifter_bracket(s):
    """All of it is multiplied by half of its length, the one too."""
    site = s.choose(lifters(s))
    if site is None:
        return None
    n, c, length = site
    return s.set_const(n, 1, (((c - 1) * 2 / length + 1) * length / 2).astype(np.float32))


def deviation_lost(s):
    """Only the mean of each recording is taken away."""
    def fits(n):
        add, gap = s.made_by(n.input[1], "Add"), s.made_by(n.input[0], "Sub")
        return gap is not None and add is not None and s.made_by(add.input[0], "Sqrt") is not None and scalar(s, add.input[1]) is not None and \
            s.made_by(gap.input[1], "ReduceMean") is not None
    node = s.pick("Div", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


ROWS = [
    ("magnitude_for_power", "nnAudio", "KinWaiCheuk/nnAudio#24", magnitude_for_power),
    ("window_lost", "DeepSpeech", "mozilla/DeepSpeech#1047", window_lost),
    ("window_of_other_kind", "Acoustic_Indices", "patriceguyot/Acoustic_Indices#8", window_of_other_kind),
    ("bands_to_another_top", "torchaudio", "pytorch/audio#292", bands_to_the_top),
    ("lifter_lost", "spafe", "SuperKogito/spafe#3", lifter_lost),
    ("lifter_bracket", "librosa", "librosa/librosa#1310", lifter_bracket),
    ("deviation_of_recording_lost", "kaldi", "kaldi-asr/kaldi#1500", deviation_lost),
]
