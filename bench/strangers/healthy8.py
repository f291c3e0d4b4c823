"""The eighth generation's healthy models: name, how the model (or golden) is made, options of check, whether inner values are given.

Their networks are hard on purpose: chaos, cancellation, saturation, ties, choices, empty outputs. So each case is held against four rules before it
counts as healthy (`fair`), all by ONNX Runtime:

- onnx's checker takes the model.
- The model gives golden as it was saved within what its kind says: LIMITS, else 2e-4 of the output's largest magnitude; whole numbers, truths and
  shapes are the same. Of few bits, 0.3, as in the generations before.
- Last bits of weights and inputs change outputs by less than 1e-3 (of quantized models, where a last bit may move a number by a step, 5e-2), and change no
  choice: golden of a correct implementation that adds in another order is as near.
- With `--precision`, the network in such a precision is within 0.3 and makes the same choices.
"""
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import forms8
import forms8_bits
import golden8
from forms import copy
from forms7_golden import GOLDEN as ARITHMETIC
from golden import Runner, difference
from net import Model
from variants import to_half, to_mixed

SAME, OWN, GOLDEN = forms8.SAME, forms8_bits.OWN, golden8.GOLDEN
SAVINGS = [  # of golden, and of inputs; inner values
    ("golden in big endian", True), ("golden in Fortran's order, inner values", True), ("golden compressed", False), ("golden as JSON", False), ("golden as safetensors", False),
    ("inputs and golden as test data", False), ("inputs in other types, inner values", True), ("golden of one sample", False), ("golden of one sample, inner values", True),
    ("golden of the same sample four times", False), ("golden whole numbers in 32 bits", False), ("golden yes and no as bytes", False), ("golden with eight decimals", False),
    ("golden with four digits", False), ("golden without axes of one", False), ("golden without axes of one, inner values", True)]
LOST = ("one round of a loop", "units in another order", "names in other letters")  # inner values are not what they were called


def form_row(k, form):
    inner = k % 2 == 0 and form not in LOST
    return f"{form}, golden {'float64' if k % 6 == 5 else 'of the original'}{', inner values' if inner else ''}", form, [], inner


EIGHTH = [
    *(form_row(k, form) for k, form in enumerate(SAME)),
    ("weights beside in a file, golden of the original, inner values", "float", [], True),
    *((f"inputs {word}, golden fp32{', inner values' if k % 2 else ''}", "float", [], k % 2 == 1) for k, word in enumerate(golden8.INPUTS)),
    ("inputs of zeros, golden float64, inner values", "float", [], True),
    ("inputs of bell noise, golden with a GPU's order of sums", "float", [], False),
    ("inputs of even noise, int8 S8S8, golden of itself", "bytes", [], False),
    ("inputs a thousandth as large, golden float64", "float", [], False),
    *((name, "float", [], inner) for name, inner in SAVINGS),
    ("golden of sums from behind, inner values", "sums from behind", [], True),
    ("golden of sums from behind", "sums from behind", [], False),
    ("golden of weights through text", "weights through text", [], False),
    ("golden of inputs in fp16", "inputs in half", [], False),
    ("golden of shares in bf16", "brain shares", [], False),
    ("golden of shares in fp16, inner values", "half shares", [], True),
    *((f"{form}, golden of itself{', inner values' if k % 2 else ''}", form, [], k % 2 == 1) for k, form in enumerate(OWN)),
    *((f"{form}, golden of the float network{'' if k % 2 else ', inner values'}", form + " of float", [], k % 2 == 0) for k, form in enumerate(OWN) if "two of four" not in form),
    ("signed bytes as unsigned, golden of the signed", "unsigned twin", [], False),
    ("int8 S8S8, golden of fake quantization that rounds halves up", "halves up", [], False),
    ("int8 S8S8, golden without axes of one", "bytes", [], False),
    ("int8 S8S8, golden of the float network, as safetensors", "bytes of float", [], False),
    ("typed fp16, golden fp32 of one sample", "typed half", [], False),
    ("typed fp16, inputs of ones, golden fp32", "typed half", [], False),
    ("mixed fp16, golden float64 in Fortran's order, inner values", "mixed half", [], True),
    ("--precision fp16, golden of one sample", "float", ["--precision", "fp16"], False),
    ("--precision bf16, inputs of bell noise, golden fp32, inner values", "float", ["--precision", "bf16"], True),
    ("--precision fp16, sums turned around, golden as JSON", "sums turned around", ["--precision", "fp16"], False),
    ("--precision bf16, functions in double precision, golden float64", "functions in double precision", ["--precision", "bf16"], False),
    ("one round of a loop, golden of one sample with four digits", "one round of a loop", [], False),
    ("short constants, golden without axes of one in big endian", "short constants", [], False),
    ("functions in double precision, golden of sums from behind", "functions in double precision beside sums from behind", [], False),
    ("shares of matrices, golden of shares in bf16", "shares of matrices beside brain shares", [], False),
]
# How near golden as it was saved is to the model's run in ONNX Runtime, by words of the kind; the first that fits.
LIMITS = {"four digits": 1e-3, "eight decimals": 1e-4}


def made_of(model, form, rng):
    if form == "bytes":
        return forms8_bits.bytes_around(model, rng)
    if form in ("typed half", "mixed half"):
        return to_half(model, False) if form == "typed half" else to_mixed(model, rng)
    return {**SAME, **OWN}[form](model, rng)


def variant(model, number, rng):
    """As healthy.variant, of this generation."""
    kind, made, options, inner = EIGHTH[number % len(EIGHTH)]
    if not golden8.has_free_inputs(model, kind):
        return None
    try:
        if made == "float":
            return kind, model, model, options, inner
        if " beside " in made:
            form, arithmetic = made.split(" beside ")
            given, seen = SAME[form](model, rng), GOLDEN[arithmetic](model, rng)
            return given and seen and (kind, given, seen, options, inner)
        if made in GOLDEN:
            seen = GOLDEN[made](model, rng)
            return seen and (kind, model, seen, options, inner)
        if made in ("halves up", "unsigned twin"):
            given = forms8_bits.bytes_around(model, rng)
            other = given and (golden8.halves_up if made == "halves up" else forms8_bits.unsigned_twin)(given, rng)
            return other and ((kind, given, other, options, inner) if made == "halves up" else (kind, other, given, options, inner))
        given = made_of(model, made.removesuffix(" of float"), rng)
    except Exception:  # noqa: BLE001: an operator that the set does not have, a quantizer that cannot
        return None
    original = made in SAME or made.endswith(" of float") or made.endswith(" half")
    return given and (kind, given, model if original else given, options, inner)


def few_bits(kind):
    return any(word in kind for word in ("float network", "fp16", "bf16", "fake quantization"))


def quantized(proto):
    """Whether a last bit may move a number by a step."""
    return any(n.op_type == "QuantizeLinear" or n.op_type == "Cast" and any(a.i == TensorProto.BFLOAT16 for a in n.attribute) for n in proto.graph.node)


def moved(model, rng):
    """Weights a last bit or so off."""
    s = copy(model)
    for t in s.graph.initializer:
        if t.data_type == TensorProto.FLOAT:
            a = numpy_helper.to_array(t)
            if a.size > 1:
                t.CopyFrom(numpy_helper.from_array((a * (1 + 1.2e-7 * rng.standard_normal(a.shape))).astype(np.float32), t.name))
    return Model(model.name, model.style, model.opset, model.batch, s.proto, model.inputs)


def last_bits(rng, feed):
    return {k: (v * (1 + 6e-8 * rng.standard_normal(v.shape))).astype(np.float32) if v.dtype == np.float32 else v for k, v in feed.items()}


def distance(given, want):
    """As golden.difference, of all outputs, whatever type or axes of one they were saved with."""
    worst = 0.0
    for k, w in want.items():
        g, w = np.asarray(given[k]), np.asarray(w)
        if g.size == w.size and g.dtype.kind != "f":
            w = w.astype(g.dtype)
        worst = max(worst, difference(g.reshape(-1), w.reshape(-1).astype(g.dtype)) if g.size == w.size and np.squeeze(g).shape == np.squeeze(w).shape else np.inf)
    return worst


def fair(case, feeds, golden):
    """Whether the rules above hold; golden: outputs as they were saved, a sample each."""
    try:
        onnx.checker.check_model(case.model)
    except onnx.checker.ValidationError:  # ONNX Runtime takes some models that are not quite ones, as of converters that mix up the order of nodes
        return False
    model = Model(case.architecture, case.style, case.opset, case.batch, case.model, case.recipe.inputs)
    rng = np.random.default_rng(1)
    run, other, low = Runner(case.model), Runner(moved(model, rng).proto), few_bits(case.kind)
    limit = 0.3 if low else next((v for word, v in LIMITS.items() if word in case.kind), 2e-4)
    for feed, want in zip(feeds, golden):
        given = run(feed)
        steady = 5e-2 if low or quantized(case.model) else 1e-3
        if distance(given, want) > limit or distance(other(last_bits(rng, feed)), given) > steady:
            return False
        if "as JSON" in case.kind and any(np.size(v) == 0 for v in (*want.values(), *feed.values())):
            return False  # a list without elements has lost its other axes
        if "without axes of one" in case.kind and not any(1 in np.shape(v) for v in given.values()):
            return False
        if "32 bits" in case.kind and not any(v.dtype == np.int64 for v in given.values()) or "yes and no" in case.kind and not any(v.dtype == bool for v in given.values()):
            return False
        if any(word in case.kind for word in LIMITS) and not any(v.dtype == np.float32 for v in given.values()):
            return False
    if "--precision" in case.options:
        rough = ARITHMETIC["all half" if "fp16" in case.options else "all brain"](Model(case.architecture, case.style, case.opset, case.batch, case.intact, case.recipe.inputs), rng)
        if rough is None:
            return False
        rough = Runner(rough.proto)
        return all(distance(rough(feed), run(feed)) < 0.3 for feed in feeds)
    return True
