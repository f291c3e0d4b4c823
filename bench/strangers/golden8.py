"""Eighth generation of golden: what inputs people make it of, what other arithmetic gives, and in what files they keep it."""
import json
import struct

import numpy as np
import onnx
from onnx import TensorProto

from forms import copy, done, matrices
from forms4 import f32, replaced
from forms6 import floats, in_few_bits
from forms7_golden import fake_quantized

# Inputs that mean nothing by themselves, and so may be any number.
FREE = {"image", "pixels", "signal", "features", "points", "wave", "counts"}
CALIBRATED = {"pixels", "wave", "counts"}  # of which a network expects a range

INPUTS = {"of zeros": lambda rng, v: np.zeros_like(v), "of ones": lambda rng, v: np.ones_like(v), "of even noise": lambda rng, v: rng.random(v.shape, np.float32),
          "of bell noise": lambda rng, v: rng.standard_normal(v.shape, np.float32), "thirty times as large": lambda rng, v: f32(30 * v),
          "a thousandth as large": lambda rng, v: f32(v / 1000), "of counted numbers": lambda rng, v: np.arange(v.size, dtype=np.float32).reshape(v.shape) / max(v.size, 1)}


def changed_inputs(kind, feeds, model, rng):
    """What people feed who have no data; words of the kind say what."""
    change = next((f for word, f in INPUTS.items() if f"inputs {word}" in kind), None)
    free = {i.name for i in model.inputs if i.kind in FREE - (CALIBRATED if "times as" in kind or "thousandth" in kind else set())}
    if change and free:
        feeds = [{k: change(rng, v) if k in free and v.size else v for k, v in feed.items()} for feed in feeds]
    if "same sample four times" in kind:
        feeds = feeds[:1] * len(feeds)
    return feeds[:1] if "of one sample" in kind else feeds


def has_free_inputs(model, kind):
    return any(i.kind in FREE - (CALIBRATED if "times as" in kind or "thousandth" in kind else set()) for i in model.inputs) if "inputs " in kind else True


# ---- arithmetic ----

def sums_from_behind(model, rng):
    """Products add up from the last number to the first."""
    s = copy(model, rng)
    for n in list(s.nodes("MatMul")):
        w, x = s.const(n.input[1]), n.input[0]
        if w is not None and w.ndim == 2 and floats(s, x):
            back = s.constant(np.arange(len(w))[::-1].astype(np.int64), "back")
            replaced(s, n, [("Gather", [".", back], {"axis": len(s.shape(x)) - 1}), ("MatMul", [0, s.constant(f32(w[::-1]), "turned")], {})])
    for n in list(s.nodes("Gemm")):
        w, turned = s.const(n.input[1]), s.attr(n, "transB", 0)
        if w is not None and floats(s, n.input[0]) and not s.attr(n, "transA", 0):
            s.set_const(n, 1, w[:, ::-1] if turned else w[::-1])
            n = s.producer(n.output[0])
            s.before(n, 0, ("Gather", [".", s.constant(np.arange(w.shape[1 if turned else 0])[::-1].astype(np.int64), "back")], {"axis": 1}))
    return done(model, s)


def weights_through_text(model, rng):
    """Weights were written as text with eight digits, and read again."""
    s = copy(model)
    for n, w in list(matrices(s)):
        s.set_const(n, 1, f32([float(f"{v:.7e}") for v in w.reshape(-1)]).reshape(w.shape))
    return done(model, s)


def inputs_in_half(model, rng):
    """The framework's inputs were halves when it got them."""
    s = copy(model, rng)
    for i in [i.name for i in s.graph.input if i.type.tensor_type.elem_type == TensorProto.FLOAT]:
        if np.size(s.values[i]) and np.abs(s.values[i]).max() > 6e4:
            return None
        low = s.fresh("low")
        for n in s.consumers(i):
            n.input[:] = [low if x == i else x for x in n.input]
        in_few_bits(s, 0, i, low, True)
    return done(model, s)


def is_share(s, value):
    parts = s.made_by(value, "Div")
    return s.made_by(value, "Softmax") or parts and s.made_by(parts.input[0], "Exp")


def shares_in(half):
    """Attention's shares are halves or brain floats where they are multiplied, as in fused kernels."""
    def form(model, rng):
        s = copy(model, rng)
        for n in list(s.nodes("MatMul")):
            if all(s.const(x) is None for x in n.input) and floats(s, n.input[0]) and is_share(s, n.input[0]):
                low, out = s.fresh("low"), n.output[0]
                in_few_bits(s, s.place(n), n.input[0], low, half)
                s.producer(out).input[0] = low
        return done(model, s)
    return form


def halves_up(given, rng):
    """Fake quantization that rounds halves up, as TensorFlow's does."""
    seen = fake_quantized(given, rng)
    s = copy(seen) if seen else None
    for n in list(s.nodes("Round")) if s else []:
        replaced(s, n, [("Add", [".", s.constant(f32(0.5), "half")], {}), ("Floor", [0], {})])
    return s and done(seen, s)


GOLDEN = {"sums from behind": sums_from_behind, "weights through text": weights_through_text, "inputs in half": inputs_in_half,
          "brain shares": shares_in(False), "half shares": shares_in(True)}

# ---- numbers as they are kept ----

TYPES = {"whole numbers in 32 bits": lambda v: v.astype(np.int32) if v.dtype == np.int64 else v, "yes and no as bytes": lambda v: v.astype(np.uint8) if v.dtype == bool else v,
         "with eight decimals": lambda v: np.round(v.astype(np.float64), 8) if v.dtype == np.float32 else v,
         "with four digits": lambda v: np.array([float(f"{x:.3e}") for x in v.reshape(-1)], np.float32).reshape(v.shape) if v.dtype == np.float32 else v,
         "without axes of one": np.squeeze, "in big endian": lambda v: v.astype(v.dtype.newbyteorder(">")) if v.dtype.itemsize > 1 else v, "in Fortran's order": np.asfortranarray}


def kept(kind, values):
    """Golden outputs as their files have them."""
    for word, change in TYPES.items():
        if word in kind:
            values = {k: change(np.asarray(v)) for k, v in values.items()}
    return values


def saved(kind, path, values):
    """Writes a sample's arrays; the words of the kind say in what file."""
    if "as JSON" in kind:
        path.with_suffix(".json").write_text(json.dumps({k: plain(v) for k, v in values.items()}))
    elif "as safetensors" in kind:
        path.with_suffix(".safetensors").write_bytes(safetensors(values))
    elif "as test data" in kind:
        folder = path.with_suffix("").parent / f"test_data_set_{path.stem}"
        folder.mkdir(exist_ok=True)
        for i, (k, v) in enumerate(values.items()):
            (folder / f"{'output' if 'golden' in str(path) else 'input'}_{i}.pb").write_bytes(onnx.numpy_helper.from_array(np.asarray(v), k).SerializeToString())
    elif "compressed" in kind:
        np.savez_compressed(path.with_suffix(".npz"), **values)
    else:
        np.savez(path.with_suffix(".npz"), **values)


def plain(v):
    v = np.asarray(v)
    return v.astype(object).tolist() if v.dtype.kind != "f" else [float(x) for x in v.reshape(-1)][0] if v.ndim == 0 else np.float64(v).tolist()


def safetensors(values):
    """Length of the header, the header, the numbers."""
    names = {"f4": "F32", "f8": "F64", "f2": "F16", "i8": "I64", "i4": "I32", "u1": "U8", "b1": "BOOL", "i1": "I8"}
    header, blobs, at = {}, [], 0
    for k, v in values.items():
        v = np.asarray(v, order="C")
        header[k] = {"dtype": names[v.dtype.str[1:]], "shape": list(v.shape), "data_offsets": [at, at + v.nbytes]}
        blobs.append(v.tobytes())
        at += v.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)


def input_types(kind, feed):
    """Inputs as another program has them: numbers in double precision, places in 32 bits."""
    if "inputs in other types" not in kind:
        return feed
    return {k: v.astype(np.float64) if v.dtype == np.float32 else v.astype(np.int32) if v.dtype == np.int64 else v for k, v in feed.items()}
