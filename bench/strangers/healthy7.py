"""The seventh generation's healthy models: name, how the model (or golden) is made, options of check, whether inner values are given.

Forms keep the function: they differ by rounding alone. Golden of other arithmetic differs by what its name says. Weights in few bits are the model's own.
"""
import forms7
import forms7_golden
import forms7_layers
import forms7_weights
from forms7_golden import fake_quantized  # noqa: F401: of healthy models

FORMS = {**forms7.SAME, **forms7_layers.SAME, **forms7_weights.SAME}


def all_names(proto):
    """Of values and of nodes."""
    graph = proto.graph
    return {x for n in graph.node for x in (*n.input, *n.output, n.name)} | {t.name for t in graph.initializer} | {v.name for v in (*graph.input, *graph.output)}


def told_apart(proto, before, tail):
    """New names get a tail, so that those of the next form are not the same."""
    for n in proto.graph.node:
        n.name = n.name + tail if n.name and n.name not in before else n.name
        for names in (n.input, n.output):
            for i, x in enumerate(names):
                names[i] = x + tail if x and x not in before else x
    for t in proto.graph.initializer:
        t.name = t.name + tail if t.name not in before else t.name


def several_forms(model, rng, most=4):
    """Some forms, one after the other, as where an exporter, a simplifier and a chip's tool each had their turn."""
    made = []
    for form in rng.permutation(sorted(FORMS)):
        try:
            new = FORMS[str(form)](model, rng)
        except Exception:  # noqa: BLE001: an operator that the set does not have
            continue
        if new is not None:
            told_apart(new.proto, all_names(model.proto), f"_form{len(made)}")
            model = new
            made.append(form)
        if len(made) == most:
            break
    return model if len(made) > 1 else None


SAME = {**FORMS, "several forms": several_forms}
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
    *((f"{form}, golden {'float64' if k % 7 == 3 else 'of the original'}{inner(k % 2 == 0)}", form, [], k % 2 == 0) for k, form in enumerate(FORMS)),
    *((name + inner(given), made, [], given) for name, made, ways in ARITHMETIC for given in ways),
    ("several forms at once, golden of the original, inner values", "several forms", [], True),
    ("several forms at once, golden float64", "several forms", [], False),
    ("several forms at once, golden with a GPU's order of sums, inner values", "several forms", [], True),
    ("several forms at once, golden printed with six digits", "several forms", [], False),
    ("several forms at once, golden saved as bf16", "several forms", [], False),
    ("several forms at once, golden of products in bf16, inner values", "several forms beside brain products", [], True),
    ("several forms at once, golden of sums in fp16", "several forms beside half sums", [], False),
    ("several forms at once, golden of Winograd's sums", "several forms beside winograd", [], False),
    ("--precision fp16, several forms at once, golden of the original, inner values", "several forms", ["--precision", "fp16"], True),
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
