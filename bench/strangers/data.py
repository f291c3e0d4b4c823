"""Inputs that look like data."""
import numpy as np

from net import BATCH


def smooth(rng, shape):
    """Images are smooth: neighbours are alike."""
    x = rng.standard_normal(shape)
    for axis in range(2, len(shape)):
        x = x + 0.8 * np.roll(x, 1, axis) + 0.5 * np.roll(x, 2, axis)
    return (x / (x.std() + 1e-9) + 0.3 * rng.standard_normal()).astype(np.float32)


def image(rng, shape, channels_last=False):
    if channels_last:
        return np.ascontiguousarray(np.moveaxis(smooth(rng, (shape[0], shape[-1]) + shape[1:-1]), 1, -1))
    return smooth(rng, shape)


def pixels(rng, shape):
    """Of 0 to 255, whole numbers."""
    x = smooth(rng, shape)
    return np.clip(np.round(120 + 55 * x), 0, 255).astype(np.float32)


def tokens(rng, shape, vocab=50):
    return np.minimum(rng.geometric(min(0.6, 3 / vocab), shape) - 1, vocab - 1).astype(np.int64)


def prompts(rng, shape, vocab=50):
    """Words, then the end, which is the largest token and fills what is left."""
    ids = np.minimum(tokens(rng, shape, vocab), vocab - 2)
    length = rng.integers(shape[-1] // 2, shape[-1], shape[:-1] + (1,))
    return np.where(np.arange(shape[-1]) < length, ids, vocab - 1).astype(np.int64)


def signal(rng, shape):
    t = np.arange(shape[-1])
    waves = np.sin(t * rng.uniform(0.1, 1.2, shape[:-1] + (1,)) + rng.uniform(0, 6, shape[:-1] + (1,)))
    return (waves * rng.uniform(0.5, 1.5, shape[:-1] + (1,)) + 0.3 * rng.standard_normal(shape)).astype(np.float32)


def features(rng, shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def mask(rng, shape):
    """1 up to each row's length, which is at least half."""
    length = rng.integers(shape[-1] // 2, shape[-1] + 1, shape[:-1] + (1,))
    return (np.arange(shape[-1]) < length).astype(np.float32)


def flags(rng, shape):
    return mask(rng, shape).astype(np.int64)


def late_flags(rng, shape):
    """1 from somewhere in the first half on: padding stands in front."""
    return np.ascontiguousarray(flags(rng, shape)[..., ::-1])


def lengths(rng, shape, most=8):
    return rng.integers(most // 2, most + 1, shape).astype(np.int64)


def time(rng, shape):
    return rng.uniform(0, 100, shape).astype(np.float32)


def fraction(rng, shape):
    return rng.uniform(0.05, 0.95, shape).astype(np.float32)


def wave(rng, shape):
    """Samples of 16 bits, whole numbers."""
    return np.clip(np.round(9000 * signal(rng, shape)), -32768, 32767).astype(np.float32)


def counts(rng, shape):
    """How often something was seen: mostly seldom."""
    return np.floor(rng.gamma(0.8, 6.0, shape)).astype(np.float32)


def edges(rng, shape, nodes=10):
    return rng.integers(0, nodes, shape).astype(np.int64)


def points(rng, shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def boxes(rng, shape, side=16):
    """Corners, the smaller first, within an image."""
    low = rng.uniform(0, 0.6 * side, shape[:-1] + (2,))
    return np.concatenate([low, low + rng.uniform(2, 0.4 * side, low.shape)], -1).astype(np.float32)


KINDS = {f.__name__: f for f in (image, pixels, tokens, prompts, signal, features, mask, flags, late_flags, lengths, time, edges, points, boxes, fraction, wave, counts)}


def draw(model, rng, batch=None):
    """A feed of the model; batch: where it is open (default 2)."""
    n = model.batch if model.batch != "N" else batch or 2
    return {i.name: KINDS[i.kind](rng, tuple(n if d == BATCH else d for d in i.dims), **i.options) for i in model.inputs}
