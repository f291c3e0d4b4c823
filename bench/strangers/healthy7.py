"""The seventh generation's healthy models: name, how the model (or golden) is made, options of check, whether inner values are given.

Forms keep the function: they differ by rounding alone. Golden of other arithmetic differs by what its name says. Weights in few bits are the model's own.
"""
import forms7
import forms7_golden
import forms7_layers
import forms7_weights
from forms7_golden import fake_quantized  # noqa: F401: of healthy models

SAME = {**forms7.SAME, **forms7_layers.SAME, **forms7_weights.SAME}
OTHER, GOLDEN = forms7_weights.OTHER, forms7_golden.GOLDEN
# What other engines' arithmetic is called, and with what it is given.
ARITHMETIC = [
    ("golden of Winograd's sums", "winograd", (True, False)),
    ("golden of products in bf16", "brain products", (True, False)),
    ("golden of products in fp16", "half products", (False,)),
    ("golden of sums in fp16", "half sums", (True, False)),
    ("golden of three products in bf16 each", "three brains", (True, False)),
    ("golden of the network in bf16", "all brain", (True, False)),
    ("golden of the network in fp16", "all half", (True, False)),
    ("golden of weights in bf16", "brain weights", (False,)),
    ("golden of weights in fp16", "half weights", (True,)),
    ("golden of sums in double precision", "double sums", (True,)),
    ("golden of fast functions", "fast functions", (True, False)),
    ("golden of attention in blocks", "blocks of attention", (True,)),
    ("golden of filters place by place", "places of filters", (False,)),
    ("golden of long sums in parts", "parts of sums", (True, False)),
]
LOW = ("bf16", "fp16", "fake quantization", "integer arithmetic")  # in a name: only blame on the export is a false alarm


def inner(given):
    return ", inner values" if given else ""


SEVENTH = [
    *((f"{form}, golden {'float64' if k % 7 == 3 else 'of the original'}{inner(k % 2 == 0)}", form, [], k % 2 == 0) for k, form in enumerate(SAME)),
    *((name + inner(given), made, [], given) for name, made, ways in ARITHMETIC for given in ways),
    ("--precision fp16, convolutions by places, golden of the original", "convolutions by places", ["--precision", "fp16"], False),
    ("--precision bf16, heads apart, golden of the original, inner values", "heads apart", ["--precision", "bf16"], True),
    ("--precision fp16, recurrent written out, golden float64", "recurrent written out", ["--precision", "fp16"], False),
    ("--precision bf16, shares divided late, golden of the original", "shares divided late", ["--precision", "bf16"], False),
    ("--precision fp16, turned and back, golden of the original, inner values", "turned and back", ["--precision", "fp16"], True),
    ("golden flushed to zero, inner values", "float", [], True),
    ("golden flushed to zero", "float", [], False),
    ("weights of three levels, golden of itself, inner values", "three levels", [], True),
    ("weights of three levels, golden of the float network", "three levels of float", [], False),
    ("weights as signs, golden of itself", "signs in graph", [], False),
    ("learned steps of four bits, golden of itself, inner values", "learned steps", [], True),
    ("learned steps of four bits, golden of the float network", "learned steps of float", [], False),
    ("two weights in a byte, golden of itself", "nibbles packed", [], False),
    ("two weights in a byte, golden of the float network, inner values", "nibbles packed of float", [], True),
    ("floats of four bits with shared powers, golden of itself, inner values", "floats of four bits", [], True),
    ("floats of four bits with shared powers, golden of the float network", "floats of four bits of float", [], False),
    ("fp8 weights with wide exponents, golden of itself", "wide fp8", [], False),
    ("rows in bytes at run, golden of itself, inner values", "rows in bytes", [], True),
    ("rows in bytes at run, golden of the float network", "rows in bytes of float", [], False),
    ("int8 of products with constants, golden of itself, inner values", "int8 style constant products", [], True),
    ("int8 whose products stay float, golden of itself", "int8 style float outputs", [], False),
    ("int8 with all rectifiers, golden of itself, inner values", "int8 style removable", [], True),
    ("int8 with ranges around zero, golden of itself", "int8 style even ranges", [], False),
    ("int8 U8U8, golden of itself in integer arithmetic, with all optimizations", "int8 U8U8", [], False),
    ("int8 S8S8, golden of fake quantization, inner values", "fake quantization", [], True),
    ("int8 S8S8, golden of fake quantization", "fake quantization", [], False),
]
