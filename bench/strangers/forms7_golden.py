"""Seventh generation of golden: the same network in the arithmetic of other engines. Each is a graph that ONNX Runtime runs in place of them.

What golden then differs by, is rounding alone: of the sums' order (Winograd's, of parts, of places), of the bits that products read and add up in, of
functions that are approximated to the last bits, or of weights in fewer bits. The test measures each against truth.
"""
import numpy as np
from onnx import TensorProto

from forms import copy, done, matrices
from forms4 import f32, replaced
from forms6 import floats, in_few_bits
from forms6_layers import plain
from forms7_layers import attention_in_blocks, convolutions_by_places, long_sums_in_parts
from forms7_weights import brain

LARGEST = 6e4  # of half precision


def too_large(s, values):
    return max((np.abs(s.values[x]).max() if x in s.values else np.abs(s.const(x)).max() for x in values if x), default=0) > LARGEST


def winograd_sums(model, rng):
    """Convolutions of three by three, four places at a time, by sixteen products in place of thirty-six (Lavin and Gray, F(2x2, 3x3))."""
    b = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float64)
    g = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    a = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float64)
    s = copy(model, rng)
    for n in list(s.nodes("Conv")):
        w = plain(s, n)
        if w is None or w.shape[2:] != (3, 3) or s.attr(n, "group", 1) != 1 or max(s.attr(n, "strides", [1]) + s.attr(n, "dilations", [1])) > 1:
            continue
        (_, out, h, v), c, p = s.shape(n.output[0]), w.shape[1], s.attr(n, "pads", [0] * 4)
        if h % 2 or v % 2:
            continue
        inputs = np.einsum("ai,bj->abij", b, b).reshape(16, 1, 4, 4)
        filters = np.einsum("ai,bj,ocij->aboc", g, g, w.astype(np.float64)).reshape(16 * out, c, 1, 1)
        outputs = np.einsum("ma,nb->abmn", a, a).reshape(16, 1, 2, 2)
        h, v = h // 2, v // 2
        shapes = [s.constant(np.array(x), "shape") for x in ([0, c, 16, h, v], [0, 16 * c, h, v], [0, 16, out, h, v], [0, out * 16, h, v])]
        turn = {"perm": [0, 2, 1, 3, 4]}
        steps = [("Pad", [".", s.constant(np.array([0, 0, *p[:2], 0, 0, *p[2:]]), "pads")], {}),
                 ("Conv", [0, s.constant(f32(np.tile(inputs, (c, 1, 1, 1))), "tiles")], {"kernel_shape": [4, 4], "strides": [2, 2], "group": c}),
                 ("Reshape", [1, shapes[0]], {}), ("Transpose", [2], turn), ("Reshape", [3, shapes[1]], {}),
                 ("Conv", [4, s.constant(f32(filters), "filters")], {"kernel_shape": [1, 1], "group": 16}),
                 ("Reshape", [5, shapes[2]], {}), ("Transpose", [6], turn), ("Reshape", [7, shapes[3]], {}),
                 ("ConvTranspose", [8, s.constant(f32(np.tile(outputs, (out, 1, 1, 1))), "places"), *n.input[2:]], {"kernel_shape": [2, 2], "strides": [2, 2], "group": out})]
        replaced(s, n, steps)
    return done(model, s)


def products_in(model, rng, half):
    """What products and convolutions read has few bits; what they give has all of them, as where sums are kept in single precision."""
    s = copy(model, rng)
    for out in [n.output[0] for n in s.nodes("Conv", "MatMul", "Gemm", "ConvTranspose")]:
        n = s.producer(out)
        if half and too_large(s, n.input[:2]):
            return None
        at = s.place(n)
        for i in (0, 1):
            new = s.fresh("low")
            at += in_few_bits(s, at, n.input[i], new, half)
            n = s.graph.node[at]
            n.input[i] = new
    return done(model, s)


def half_sums(model, rng, many=4):
    """Products of halves that are added up in halves, a few at a time."""
    s = copy(model, rng)
    for n in list(s.nodes("MatMul")):
        w, x = s.const(n.input[1]), n.input[0]
        if w is None or w.ndim != 2 or not floats(s, x) or too_large(s, [x, n.output[0]]):
            continue
        rank, cast = len(s.shape(x)), lambda k, to: ("Cast", [k], {"to": to})
        steps, total = [cast(".", TensorProto.FLOAT16), cast(0, TensorProto.FLOAT)], None
        for k in range(0, len(w), many):
            cut = [s.constant(np.array([v]), "cut") for v in (k, min(k + many, len(w)), rank - 1)]
            part = f32(w[k:k + many].astype(np.float16))
            steps += [("Slice", [1, *cut], {}), ("MatMul", [len(steps), s.constant(part, "rows")], {})]
            if total is not None:
                steps.append(("Add", [total, len(steps) - 1], {}))
            steps += [cast(len(steps) - 1, TensorProto.FLOAT16), cast(len(steps), TensorProto.FLOAT)]
            total = len(steps) - 1
        replaced(s, n, steps)
    return done(model, s)


def three_brain_products(model, rng):
    """Each number as two brain floats; the product of the smaller ones is left out."""
    s = copy(model, rng)
    for n in list(s.nodes("MatMul")):
        w, x = s.const(n.input[1]), n.input[0]
        if w is None or not floats(s, x):
            continue
        high = brain(w)
        low = brain(w - high)
        push = s.constant(f32(2 ** 16 + 1), "push")
        cut = lambda v, k: [("Mul", [v, push], {}), ("Sub", [k, v], {}), ("Sub", [k, k + 1], {})]  # noqa: E731
        steps = cut(".", 0)
        steps.append(("Sub", [".", 2], {}))
        steps += cut(3, 4)
        steps += [("MatMul", [2, s.constant(high, "high")], {}), ("MatMul", [2, s.constant(low, "low")], {}), ("MatMul", [6, s.constant(high, "high")], {}),
                  ("Add", [8, 9], {}), ("Add", [7, 10], {})]
        replaced(s, n, steps)
    return done(model, s)


def all_in(model, rng, half):
    """Every number that is computed has few bits, as where the whole network was cast."""
    s = copy(model, rng)
    low = (lambda c: f32(c.astype(np.float16))) if half else brain
    outputs = [o for n in s.graph.node for o in n.output if o and floats(s, o) and n.op_type not in ("Constant", "Cast")]
    if half and too_large(s, outputs):
        return None
    for n in list(s.graph.node):
        for i, x in enumerate(n.input):
            c = s.const(x) if x and n.op_type not in ("Resize", "Range") else None
            if c is not None and c.dtype == np.float32 and c.size:
                if half and np.abs(c).max() > LARGEST:
                    return None
                n.input[i] = s.constant(low(c), "low")
    for out in outputs:
        n = s.producer(out)
        raw = s.fresh("raw")
        n.output[list(n.output).index(out)] = raw
        in_few_bits(s, s.place(n) + 1, raw, out, half)
    return done(model, s)


def weights_in(model, rng, half):
    """Weights in few bits, and all else in single precision."""
    s = copy(model, rng)
    for n, w in list(matrices(s)):
        n.input[1] = s.constant(f32(w.astype(np.float16)) if half else brain(w), "low")
    return done(model, s)


def double_sums(model, rng):
    """Products whose sums are kept in double precision."""
    s = copy(model, rng)
    for n in list(s.nodes("MatMul")):
        if all(np.asarray(s.values.get(x, s.const(x))).dtype == np.float32 for x in n.input):
            to = {"to": TensorProto.DOUBLE}
            replaced(s, n, [("Cast", [n.input[0]], to), ("Cast", [n.input[1]], to), ("MatMul", [0, 1], {}), ("Cast", [2], {"to": TensorProto.FLOAT})])
    return done(model, s)


# Of tanh between the two ends where it is one to the last bit: Eigen's quotient of polynomials.
ABOVE = (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)
BELOW = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
# Of the error function: Abramowitz and Stegun, 7.1.26, off by less than 1.5e-7.
BELL = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def polynomial(s, steps, x, numbers):
    """Horner's steps; gives the last one's number."""
    last = s.constant(f32(numbers[0]), "number")
    for c in numbers[1:]:
        steps += [("Mul", [last, x], {}), ("Add", [len(steps), s.constant(f32(c), "number")], {})]
        last = len(steps) - 1
    return last


def fast_functions(model, rng):
    """Tanh, the sigmoid and the error function by short polynomials, as vectors compute them."""
    s = copy(model, rng)
    for n in list(s.nodes("Tanh", "Sigmoid", "Erf")):
        if n.op_type == "Erf":
            one = s.constant(f32(1), "one")
            steps = [("Abs", ["."], {}), ("Mul", [0, s.constant(f32(0.3275911), "number")], {}), ("Add", [1, one], {}), ("Div", [one, 2], {})]
            last = polynomial(s, steps, 3, BELL)
            k = len(steps)
            steps += [("Mul", [last, 3], {}), ("Mul", [0, 0], {}), ("Neg", [k + 1], {}), ("Exp", [k + 2], {}), ("Mul", [k, k + 3], {}), ("Sub", [one, k + 4], {}),
                      ("Sign", ["."], {}), ("Mul", [k + 5, k + 6], {})]
        else:
            half = s.constant(f32(0.5), "half")
            end = [s.constant(f32(v), "end") for v in (-7.90531110763549805, 7.90531110763549805)]
            steps = [("Mul", [".", half], {})] if n.op_type == "Sigmoid" else [("Identity", ["."], {})]
            steps += [("Clip", [0, *end], {}), ("Mul", [1, 1], {})]
            above = polynomial(s, steps, 2, ABOVE)
            steps.append(("Mul", [above, 1], {}))
            top = len(steps) - 1
            steps.append(("Div", [top, polynomial(s, steps, 2, BELOW)], {}))
            if n.op_type == "Sigmoid":
                steps += [("Mul", [len(steps) - 1, half], {}), ("Add", [len(steps), half], {})]
        replaced(s, n, steps)
    return done(model, s)


def fake_quantized(quantized, rng):
    """What training saw of a quantized model: products with inverse scales, roundings and limits, as torch computes them, where pairs of quantizers stand."""
    s = copy(quantized)
    for n in list(s.nodes("QuantizeLinear")):
        readers, scale = s.consumers(n.output[0]), s.const(n.input[1])
        zero = s.const(n.input[2]) if len(n.input) > 2 and n.input[2] else None
        if s.const(n.input[0]) is not None or scale is None or scale.size != 1 or zero is None or {r.op_type for r in readers} != {"DequantizeLinear"}:
            continue
        ends = [s.constant(f32(v), "end") for v in (np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max)]
        inverse, step, middle = (s.constant(f32(v), "number") for v in (f32(1) / scale.item(), scale.item(), zero.item()))
        out = readers[0].output[0]
        if any(s.is_output(r.output[0]) for r in readers[1:]):
            continue
        for r in readers:
            for reader in s.consumers(r.output[0]):
                for i, x in enumerate(reader.input):
                    if x == r.output[0]:
                        reader.input[i] = out
            s.graph.node.remove(r)
        n.output[0] = out
        replaced(s, n, [("Mul", [".", inverse], {}), ("Add", [0, middle], {}), ("Round", [1], {}), ("Clip", [2, *ends], {}), ("Sub", [3, middle], {}), ("Mul", [4, step], {})])
    return done(quantized, s)


GOLDEN = {"winograd": winograd_sums, "brain products": lambda m, rng: products_in(m, rng, False), "half products": lambda m, rng: products_in(m, rng, True),
          "half sums": half_sums, "three brains": three_brain_products, "all brain": lambda m, rng: all_in(m, rng, False), "all half": lambda m, rng: all_in(m, rng, True),
          "brain weights": lambda m, rng: weights_in(m, rng, False), "half weights": lambda m, rng: weights_in(m, rng, True), "double sums": double_sums,
          "fast functions": fast_functions, "blocks of attention": attention_in_blocks, "places of filters": convolutions_by_places, "parts of sums": long_sums_in_parts}
