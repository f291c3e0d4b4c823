"""Seventh generation: faults of colours, wavelets, blurs, medians, sounds' classes and changes."""
import numpy as np

from surgery import scalar


def full_range_taken(s):
    """Light from nothing to all, where it had room at both ends."""
    low = s.pick("Sub", lambda n: scalar(s, n.input[1]) == 16)
    wide = s.consumers(low.output[0]) if low is not None else []
    if len(wide) != 1 or wide[0].op_type != "Mul" or scalar(s, wide[0].input[1]) is None:
        return None
    return s.set_const(low, 1, np.zeros_like(s.const(low.input[1]))) + s.set_const(wide[0], 1, np.ones_like(s.const(wide[0].input[1])))


def middle_of_colours_lost(s):
    """Colours all on one side of grey."""
    node = s.pick("Sub", lambda n: scalar(s, n.input[1]) == 128)
    return s.bypass(node, node.input[0]) if node is not None else None


def bands_of_wavelet_exchanged(s):
    """Differences along rows for those along columns."""
    def fits(n):
        w = s.const(n.input[1])
        return w is not None and w.shape[1:] == (1, 2, 2) and len(w) % 4 == 0 and np.allclose(np.abs(w), 0.5)
    node = s.pick("Conv", fits)
    if node is None:
        return None
    w = s.const(node.input[1]).copy().reshape(-1, 4, 2, 2)
    return s.set_const(node, 1, w[:, [0, 2, 1, 3]].reshape(-1, 1, 2, 2))


def gain_of_blur_lost(s):
    """A blur that does not make good for the zeros between the pixels."""
    def fits(n):
        w = s.const(n.input[1])
        return w is not None and w.shape[1:] == (1, 4, 4) and np.allclose(w.sum((1, 2, 3)), 4, atol=1e-3) and np.allclose(w, w[:1])
    node = s.pick("Conv", fits)
    return s.set_const(node, 1, s.const(node.input[1]) / np.float32(4)) if node is not None else None


def scale_of_weights_lost(s):
    """Weights as they were trained, without the number that makes them smaller."""
    def fits(n):
        behind = s.consumers(n.output[0])
        weight = len(behind) == 1 and behind[0].op_type == "Conv" and behind[0].input[1] == n.output[0]
        return weight and s.const(n.input[0]) is not None and scalar(s, n.input[1]) is not None
    node = s.pick("Mul", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def lower_middle(s):
    """The lower one of the two in the middle."""
    def fits(n):
        both = s.made_by(n.input[0], "Add")
        parts = [s.made_by(x, "Slice", "Gather") for x in both.input] if both is not None else [None]
        return scalar(s, n.input[1]) == 0.5 and all(p is not None and s.made_by(p.input[0], "TopK") is not None for p in parts)
    node = s.pick("Mul", fits)
    return s.bypass(node, s.producer(node.input[0]).input[0]) if node is not None else None


def identity_of_transform_lost(s):
    """A matrix that was to be added to the identity stands alone."""
    def fits(n):
        c = s.const(n.input[1])
        side = int(round(np.sqrt(c.size))) if c is not None else 0
        return side > 1 and side * side == c.size and np.array_equal(c.reshape(side, side), np.eye(side))
    node = s.pick("Add", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def classes_from_other_note(s):
    """The first class of pitch is another note."""
    def fits(n):
        c = s.const(n.input[0])
        return c is not None and c.ndim == 2 and len(c) == 12 and c.min() >= 0 and s.const(n.input[1]) is None
    node = s.pick("MatMul", fits)
    return s.set_const(node, 0, np.roll(s.const(node.input[0]), 3, 0)) if node is not None else None


def changes_divided_by_less(s):
    """Squares are added up from nothing on, so that the last one is not there."""
    made = []
    for n in s.nodes("Conv"):
        w = s.const(n.input[1])
        if w is not None and w.ndim == 3 and w.shape[1:] == (1, 5) and np.allclose(w, np.arange(-2, 3).reshape(1, 1, 5) / 10, atol=1e-5):
            made += s.set_const(n, 1, w * np.float32(5))
    return made or None


def loudness_not_put_first(s):
    """The first cepstrum itself, where the frame's loudness belongs."""
    def fits(n):
        cut = s.made_by(n.input[1], "Slice") if len(n.input) == 2 else None
        return cut is not None and s.made_by(n.input[0], "Log") is not None and s.shape(cut.input[0]) == s.shape(n.output[0])
    node = s.pick("Concat", fits)
    return s.bypass(node, s.producer(node.input[1]).input[0]) if node is not None else None


ROWS = [
    ("full_range_of_light_taken", "FFNx", "julianxhokaxhiu/FFNx#535", full_range_taken),
    ("middle_of_colours_lost", "YUView", "IENT/YUView#432", middle_of_colours_lost),
    ("bands_of_wavelet_exchanged", "ptwt", "v0lta/PyTorch-Wavelet-Toolbox#137", bands_of_wavelet_exchanged),
    ("gain_of_blur_lost", "stylegans-pytorch", "yuuho/stylegans-pytorch#5", gain_of_blur_lost),
    ("scale_of_weights_lost", "style-based-gan", "rosinality/style-based-gan-pytorch#5", scale_of_weights_lost),
    ("lower_of_two_middles", "torch", "pytorch/pytorch#39520", lower_middle),
    ("identity_of_transform_lost", "pointnet.pytorch", "fxia22/pointnet.pytorch#108", identity_of_transform_lost),
    ("classes_from_other_note", "librosa", "librosa/librosa#1311", classes_from_other_note),
    ("changes_divided_by_less", "acoustic_discovery", "nationalparkservice/acoustic_discovery#15", changes_divided_by_less),
    ("loudness_not_put_first", "torchaudio", "pytorch/audio#2665", loudness_not_put_first),
]
