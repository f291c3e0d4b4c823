"""Healthy models: what a false alarm would be about. Rows say what check gets and where golden is from."""
import forms
import forms4
import forms5
import forms6
import healthy7
import healthy8
from variants import (METHODS, TYPES, fused_offline, optimized_offline, quantize, quantize_at_run, quantize_by_assay, quantize_in_style, quantize_integers,
                      quantize_some, quantize_to_sixteen, quantize_to_sixteen_unsigned, to_half, to_mixed)

SAME, OTHER = {**forms.SAME, **forms4.SAME, **forms5.SAME, **forms6.SAME, **healthy7.SAME}, {**forms.OTHER, **forms4.OTHER, **forms5.OTHER, **forms6.OTHER, **healthy7.OTHER}
FLOAT_OPERATORS = ("Softmax", "LogSoftmax", "LayerNormalization", "InstanceNormalization", "ReduceMean", "Pow", "Sqrt", "Div", "Exp", "Log")

# Name, how the model is made, options of check, whether inner values are given.
ROWS = [
    ("fp32, golden fp32, inner values", "float", [], True),
    ("fp32, golden fp32", "float", [], False),
    ("fp32, golden float64, inner values", "float", [], True),
    ("fp32, golden float64", "float", [], False),
    ("--precision fp16, golden fp32, inner values", "float", ["--precision", "fp16"], True),
    ("--precision fp16, golden float64", "float", ["--precision", "fp16"], False),
    ("--precision bf16, golden fp32, inner values", "float", ["--precision", "bf16"], True),
    ("--precision bf16, golden float64", "float", ["--precision", "bf16"], False),
    ("typed fp16, golden fp32, inner values", "half", [], True),
    ("typed fp16, golden fp32", "half", [], False),
    ("fp16 inside, golden fp32", "half inside", [], False),
    ("int8 per tensor, golden of itself, inner values", "int8", [], True),
    ("int8 per tensor, golden of itself", "int8", [], False),
    ("int8 per channel, golden of itself, inner values", "int8 channels", [], True),
    ("int8 per channel, golden of itself", "int8 channels", [], False),
    ("int8 per tensor, golden of the float network", "int8 of float", [], False),
    ("int8 per channel, golden of the float network, inner values", "int8 channels of float", [], True),
    ("int8 of `assay edit quantize`, golden of itself, inner values", "int8 of assay", [], True),
    ("int8 of `assay edit quantize`, golden of the float network", "int8 of assay of float", [], False),
]
# The second generation's. Of int8, the word behind says how: types, format, channels.
LATER = [
    ("fp32, golden fp32 with all optimizations", "float", [], False),
    ("fp32, golden of onnx's reference, inner values", "float", [], True),
    ("fp32, golden of onnx's reference", "float", [], False),
    ("fp32, golden float64, inner values", "float", [], True),
    ("fp32, golden float64", "float", [], False),
    ("optimized offline, golden of the original", "optimized", [], False),
    ("--precision fp16, golden of onnx's reference, inner values", "float", ["--precision", "fp16"], True),
    ("--precision bf16, golden fp32 with all optimizations", "float", ["--precision", "bf16"], False),
    ("typed fp16, golden float64", "half", [], False),
    ("fp16 inside, golden fp32, inner values", "half inside", [], True),
    ("mixed fp16, golden fp32, inner values", "half mixed", [], True),
    ("mixed fp16, golden float64", "half mixed", [], False),
    ("int8 QDQ S8S8, golden of itself, inner values", "int8 S8S8", [], True),
    ("int8 QDQ S8S8 per channel, golden of itself", "int8 S8S8 channels", [], False),
    ("int8 QDQ U8U8, golden of itself", "int8 U8U8", [], False),
    ("int8 QDQ S8S8 per channel, golden of the float network, inner values", "int8 S8S8 channels of float", [], True),
    ("int8 QDQ U8S8, golden of the float network", "int8 U8S8 of float", [], False),
    ("int8 operators U8S8, golden of itself, inner values", "int8 U8S8 operators", [], True),
    ("int8 operators U8U8 per channel, golden of itself", "int8 U8U8 operators channels", [], False),
    ("int8 operators S8S8, golden of the float network", "int8 S8S8 operators of float", [], False),
    ("int8 at run, golden of itself, inner values", "int8 at run", [], True),
    ("int8 at run, golden of the float network", "int8 at run of float", [], False),
]
# The third generation's: other forms of the same network, other golden sources, other ways to few bits.
THIRD = [
    ("golden printed with six digits", "float", [], False),
    ("golden printed with six digits, inner values", "float", [], True),
    ("golden float64, inner values", "float", [], True),
    ("--precision fp16, golden printed with six digits", "float", ["--precision", "fp16"], False),
    ("upgraded by onnx's converter, golden of the original, inner values", "upgraded", [], True),
    ("upgraded by onnx's converter, golden float64", "upgraded", [], False),
    ("downgraded by onnx's converter, golden of the original", "downgraded", [], False),
    ("leftovers of an exporter, inner values", "leftovers", [], True),
    ("leftovers of an exporter, golden fp32 with all optimizations", "leftovers", [], False),
    ("weights listed as inputs", "weights listed", [], False),
    ("weights as Constant nodes, inner values", "weights as nodes", [], True),
    ("every axis open", "open", [], False),
    ("unusual attributes, golden of the original, inner values", "unusual", [], True),
    ("unusual attributes, golden of onnx's reference", "unusual", [], False),
    ("activations as local functions, golden of the original", "functions", [], False),
    ("products in double precision, golden fp32", "double", [], False),
    ("weights stored in half precision, golden of itself, inner values", "stored half", [], True),
    ("weights stored in brain floats, golden of itself", "stored brain", [], False),
    ("int8 QDQ by entropy, golden of itself, inner values", "int8 S8S8 Entropy", [], True),
    ("int8 QDQ by percentile, golden of itself", "int8 U8S8 Percentile channels", [], False),
    ("int8 weights only, golden of itself, inner values", "int8 weights", [], True),
    ("int8 weights only, golden of the float network", "int8 weights of float", [], False),
    ("int4 weights in blocks, golden of itself", "int4 weights", [], False),
    ("int4 weights in blocks, golden of the float network, inner values", "int4 weights of float", [], True),
]
# The fourth generation's: what other engines fold, join and take apart, and what other quantizers' conventions and other golden look like.
FOURTH = [
    ("norms folded, golden of the original, inner values", "norms folded", [], True),
    ("norms folded, golden float64", "norms folded", [], False),
    ("norms written out, golden of the original, inner values", "norms written out", [], True),
    ("activations written out, golden of the original", "activations written out", [], False),
    ("Gemm as product and sum, golden of the original, inner values", "linear taken apart", [], True),
    ("product and sum as Gemm, golden of the original", "linear joined", [], False),
    ("factors folded into weights, golden of the original, inner values", "factors folded", [], True),
    ("names lost, golden of the original", "names lost", [], False),
    ("nodes in another order, golden of the original, inner values", "another order", [], True),
    ("moves that cancel, golden of the original, inner values", "moves that cancel", [], True),
    ("padding apart, golden of the original", "padding apart", [], False),
    ("constant conditions, golden of the original", "constant conditions", [], False),
    ("splits as sequences, golden of the original, inner values", "sequences", [], True),
    ("weights in double, golden of the original", "weights in double", [], False),
    ("weights turned at run, golden of the original, inner values", "weights turned", [], True),
    ("fused by ONNX Runtime, golden of the original", "fused", [], False),
    ("golden of a GPU in TF32", "tf32", [], False),
    ("golden of a GPU in TF32, inner values", "tf32", [], True),
    ("golden saved as fp16, inner values", "float", [], True),
    ("golden saved as bf16", "float", [], False),
    ("golden with four decimals", "float", [], False),
    ("--precision fp16, norms written out, golden of the original", "norms written out", ["--precision", "fp16"], False),
    ("int8 symmetric as TensorRT has it, golden of itself, inner values", "int8 style symmetric", [], True),
    ("int8 with float biases, golden of itself", "int8 style float biases", [], False),
    ("int8 with stored float weights, golden of itself, inner values", "int8 style float weights", [], True),
    ("int8 with a pair for each reader, golden of itself", "int8 style pairs", [], False),
    ("int8 of products only, golden of the float network, inner values", "int8 style products of float", [], True),
    ("int8 in powers of two, golden of itself", "int8 style powers", [], False),
    ("int8 of seven bits, golden of itself, inner values", "int8 style narrow", [], True),
    ("uint4 weights with middles, golden of itself", "uint4 weights", [], False),
    ("uint4 weights with middles, golden of the float network", "uint4 weights of float", [], False),
    ("fp8 weights, golden of itself, inner values", "fp8 weights", [], True),
]
# The fifth generation's: what accelerators' tools and model builders write, what quantizers make good elsewhere, and golden that was saved in parts.
FIFTH = [
    ("limits by Min and Max, golden of the original, inner values", "clips as limits", [], True),
    ("squares as products, golden of the original", "squares as products", [], False),
    ("divisions as products, golden of the original, inner values", "divisions as products", [], True),
    ("pools as means, golden float64", "pools as means", [], False),
    ("linear layers as convolutions, golden of the original, inner values", "linear as convolution", [], True),
    ("lines as planes, golden of the original", "line as plane", [], False),
    ("constants shared, golden of the original, inner values", "constants shared", [], True),
    ("matrices stored turned, golden of the original", "stored turned", [], False),
    ("rows as one matrix, golden of the original, inner values", "rows as matrix", [], True),
    ("splits as slices, golden of the original", "splits as slices", [], False),
    ("joined in pairs, golden of the original, inner values", "joined in pairs", [], True),
    ("moves as Reshape, golden of the original", "moves as reshape", [], False),
    ("biases apart, golden of the original, inner values", "biases apart", [], True),
    ("groups apart, golden of the original", "groups apart", [], False),
    ("kernels widened, golden of the original, inner values", "kernels widened", [], True),
    ("computed twice, golden of onnx's reference", "computed twice", [], False),
    ("shapes made at run, golden of the original, inner values", "shapes at run", [], True),
    ("scales for sizes, golden of the original", "scales for sizes", [], False),
    ("directions apart, golden of the original, inner values", "directions apart", [], True),
    ("adapters apart, golden of the original", "adapters apart", [], False),
    ("smoothed on both sides, golden of the original, inner values", "smoothed", [], True),
    ("layers equalized, golden of the original", "equalized", [], False),
    ("constants made at run, golden of the original, inner values", "constants at run", [], True),
    ("golden row by row", "row by row", [], False),
    ("golden fp32, a few inner values", "float", [], True),
    ("golden fp32, inner values saved as fp16", "float", [], True),
    ("golden saved as doubles, inner values", "float", [], True),
    ("--precision fp16, biases apart, golden of the original", "biases apart", ["--precision", "fp16"], False),
    ("--precision bf16, smoothed on both sides, golden float64", "smoothed", ["--precision", "bf16"], False),
    ("typed fp16, golden of itself, inner values", "own half", [], True),
    ("fp16 but for norms and shares, golden fp32, inner values", "half but for norms", [], True),
    ("int16 and int8, golden of itself, inner values", "int16", [], True),
    ("int16 and int8, golden of the float network", "int16 of float", [], False),
    ("int8 by moving averages, golden of itself", "int8 style moving", [], False),
    ("int8 of convolutions only, golden of itself, inner values", "int8 style convolutions", [], True),
    ("int8 with quantizers written out, golden of itself, inner values", "int8 style written out", [], True),
    ("int8 optimized offline, golden of itself", "int8 optimized", [], False),
    ("weights in a book, golden of itself, inner values", "book weights", [], True),
    ("weights in a book, golden of the float network", "book weights of float", [], False),
]
# The sixth generation's: what tracers, accelerators' converters and streaming exports write, golden of frameworks that cast by themselves or add
# in another order, and other bytes.
SIXTH = [
    ("products as Einsum, golden of the original, inner values", "einsum", [], True),
    ("squeezes as gathers, golden of the original", "squeezes as gathers", [], False),
    ("slices as gathers, golden of the original, inner values", "slices as gathers", [], True),
    ("means as products, golden of the original", "means as products", [], False),
    ("shares made safe, golden of the original, inner values", "shares made safe", [], True),
    ("sigmoids by tanh, golden of the original", "sigmoids by tanh", [], False),
    ("tanh by sigmoids, golden of the original, inner values", "tanh by sigmoids", [], True),
    ("slopes by two rectifiers, golden of the original", "two rectifiers", [], False),
    ("exponentials as powers of two, golden of the original, inner values", "powers of two for e", [], True),
    ("differences as sums, golden of the original", "differences as sums", [], False),
    ("choices as sums, golden of the original, inner values", "choices as sums", [], True),
    ("look-ups as products, golden of the original", "look-ups as products", [], False),
    ("activations in another layout, golden of the original, inner values", "layouts around", [], True),
    ("shares by logarithms of sums, golden float64", "logarithms by sums", [], False),
    ("broadcasts spelled out, golden of the original, inner values", "broadcasts spelled out", [], True),
    ("indices in 32 bits, golden of the original", "indices in 32 bits", [], False),
    ("other spellings of shapes, golden of the original, inner values", "other spellings", [], True),
    ("nearest pixels by copies, golden of the original", "nearest by copies", [], False),
    ("the largest by TopK, golden of the original, inner values", "largest by TopK", [], True),
    ("running sums as products, golden of the original", "running sums as products", [], False),
    ("roots as powers, golden of the original, inner values", "roots as powers", [], True),
    ("divisions by inverse roots, golden of the original", "inverse roots", [], False),
    ("siblings joined, golden of the original, inner values", "siblings joined", [], True),
    ("recurrent layers in chunks, golden of the original", "recurrent in chunks", [], False),
    ("norms as convolutions, golden of the original, inner values", "norms as convolutions", [], True),
    ("single pixels as products, golden of the original", "one by one as product", [], False),
    ("steps as slices, golden of the original, inner values", "steps as slices", [], True),
    ("dilated filters spread, golden of the original", "dilation spread", [], False),
    ("groups as one, golden of the original, inner values", "groups as one", [], True),
    ("channels padded, golden of the original", "channels padded", [], False),
    ("joined inputs apart, golden of the original, inner values", "inputs apart", [], True),
    ("weight norms left in the graph, golden of the original", "weight norms left", [], False),
    ("layers as functions, golden of the original, inner values", "layers as functions", [], True),
    ("mean pools as convolutions, golden of onnx's reference", "mean pools as convolutions", [], False),
    ("--precision fp16, siblings joined, golden of the original", "siblings joined", ["--precision", "fp16"], False),
    ("--precision bf16, products as Einsum, golden float64, inner values", "einsum", ["--precision", "bf16"], True),
    ("golden under autocast of fp16", "autocast half", [], False),
    ("golden under autocast of fp16, inner values", "autocast half", [], True),
    ("golden under autocast of bf16", "autocast brain", [], False),
    ("golden with a GPU's order of sums, inner values", "float", [], True),
    ("golden with a GPU's order of sums", "float", [], False),
    ("int8 of every other layer, golden of itself, inner values", "int8 alternate", [], True),
    ("int16 and int8 without signs, golden of itself", "unsigned int16", [], False),
    ("int16 and int8 without signs, golden of the float network, inner values", "unsigned int16 of float", [], True),
    ("uint8 weights with middles, golden of itself, inner values", "byte middles", [], True),
    ("int8 weights in blocks, golden of itself", "byte blocks", [], False),
    ("int8 weights in blocks, golden of the float network, inner values", "byte blocks of float", [], True),
    ("weights of shifts, golden of itself, inner values", "shift weights", [], True),
    ("weights in two parts, golden of itself", "two-part weights", [], False),
    ("weights in two parts, golden of the float network", "two-part weights of float", [], False),
]


def make(model, made, rng, assay):
    form = made.removesuffix(" of float")
    if form == "int16":
        return quantize_to_sixteen(model, rng)
    if form in ("int8 alternate", "unsigned int16"):
        return {"int8 alternate": quantize_some, "unsigned int16": quantize_to_sixteen_unsigned}[form](model, rng)
    if form == "int8 optimized":
        given = quantize(model, rng, model.opset >= 13, types="S8S8")
        return given and optimized_offline(given)
    if form == "own half":
        return to_half(model, False)
    if form == "half but for norms":
        return to_half(model, True, FLOAT_OPERATORS)
    if form in SAME or form in OTHER:
        return {**SAME, **OTHER}[form](model, rng)
    if made == "fused":
        return fused_offline(model)
    if " style " in form:
        return quantize_in_style(model, rng, form.split(" style ")[1])
    if made.startswith("half"):
        return to_mixed(model, rng) if "mixed" in made else to_half(model, made == "half inside")
    if made == "optimized":
        return optimized_offline(model)
    if "assay" in made:
        return quantize_by_assay(model, rng, assay)
    if "at run" in made:
        return quantize_at_run(model, rng)
    types = next((w for w in made.split() if w in TYPES), "U8S8")
    if "operators" in made:
        return quantize_integers(model, rng, "channels" in made, types)
    return quantize(model, rng, "channels" in made, types=types, method=next((w for w in made.split() if w in METHODS), "MinMax"))


def variant(model, number, rng, assay, of=1):
    """(kind, what check gets, what golden is of, options, inner values), or None: this model has no such variant; of: the generation."""
    if of == 8:
        return healthy8.variant(model, number, rng)
    rows = {1: ROWS, 2: LATER, 3: THIRD, 4: FOURTH, 5: FIFTH, 6: SIXTH, 7: healthy7.SEVENTH}[of]
    kind, made, options, inner = rows[number % len(rows)]
    if made == "row by row" and model.batch != "N":
        return None
    if made in ("float", "row by row"):
        return kind, model, model, options, inner
    try:
        golden = {"tf32": forms4.in_tf32, **forms6.GOLDEN, **healthy7.GOLDEN}.get(made)
        if " beside " in made:  # another form, and golden in another arithmetic
            form, arithmetic = made.split(" beside ")
            given, seen = SAME[form](model, rng), healthy7.GOLDEN[arithmetic](model, rng)
            return given and seen and (kind, given, seen, options, inner)
        if made == "fake quantization":  # golden is what training saw: quantizers as divisions, roundings and limits
            given = quantize(model, rng, model.opset >= 13, types="S8S8")
            seen = given and healthy7.fake_quantized(given, rng)
            return seen and (kind, given, seen, options, inner)
        given = golden(model, rng) if golden else make(model, made, rng, assay)
    except Exception:  # noqa: BLE001: the converter or the quantizer cannot
        return None
    if given is None:
        return None
    if golden:  # golden is of the network that rounds
        return kind, model, given, options, inner
    original = made.startswith("half") or made in ("optimized", "fused") or made in SAME or made.endswith("of float")
    return kind, given, model if original else given, options, inner


def alarm(row, report):
    """What is wrong with the report of a healthy model, or ''.

    A precision may well be at fault where one was asked for or is typed, and quantization beside the float network: not the export.
    """
    blame, verdict = report.get("blame"), report.get("verdict")
    low = any(word in row["kind"] for word in ("fp16", "bf16", "TF32", "four decimals", "four digits", "float network", *healthy7.LOW))
    if verdict == "faithful" or low and blame != "export":
        return ""
    first = (report.get("culprits") or [{}])[0]
    return f"{verdict}, blame {blame}: {', '.join(first.get('nodes', []))} ({first.get('op')}): {first.get('why')}"
