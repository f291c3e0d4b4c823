"""Fifth generation: faults of sounds, of fields, and of numbers with two parts."""
import numpy as np

from faults4_structure import computed


def products(s):
    """(difference, sum) of a product of numbers with a real and an imaginary part."""
    def operands(n):
        makers = [s.made_by(x, "Mul") for x in n.input]
        return frozenset(x for m in makers for x in m.input) if all(m is not None for m in makers) else None
    for a in s.nodes("Sub"):
        found = operands(a)
        if found is not None and len(found) == 4:
            yield from ((a, b) for b in s.nodes("Add") if operands(b) == found and not set(a.input) & set(b.input))


def sign_of_product(s):
    """The imaginary part of a product has the sign of the real part."""
    site = s.choose(products(s))
    if site is None:
        return None
    node = site[1]
    node.op_type = "Sub"
    return [node]


def parts_apart(s):
    """Real parts are multiplied, and imaginary parts, each for themselves."""
    site = s.choose(products(s))
    if site is None:
        return None
    real, imaginary = site
    first, second = (s.producer(x) for x in real.input)
    other = list(second.input)
    imaginary.op_type = "Mul"
    imaginary.input[0], imaginary.input[1] = other
    return [imaginary, *(s.bypass(real, first.output[0]) or [])]


def mean_of_each_lost(s):
    """Each recording keeps what its microphone adds."""
    def fits(n):
        mean = s.made_by(n.input[1], "ReduceMean")
        return mean is not None and mean.input[0] == n.input[0] and {b.op_type for b in s.consumers(n.output[0])} == {"Conv"}
    node = s.pick("Sub", fits)
    return s.bypass(node, node.input[0]) if node is not None else None


def sines_turned(s):
    """Waves turn the other way round."""
    def fits(n):
        w = s.const(n.input[1])
        half = len(w) // 2 if w is not None and w.ndim == 3 and w.shape[1] == 1 and len(w) > 5 else 0
        return half and np.abs(w[half]).max() < 1e-6 and w[0].min() > -1e-6 and computed(s, n.output[0])
    node = s.pick("Conv", fits)
    if node is None:
        return None
    w = s.const(node.input[1]).copy()
    w[len(w) // 2:] *= -1
    return s.set_const(node, 1, w)


ROWS = [
    ("sign_of_complex_product", "muparserx", "beltoforion/muparserx#107", sign_of_product),
    ("complex_parts_apart", "cbmc", "diffblue/cbmc#8375", parts_apart),
    ("mean_of_each_recording_lost", "openwhispr", "OpenWhispr/openwhispr#1621", mean_of_each_lost),
    ("sines_turned", "librosa", "librosa/librosa#521", sines_turned),
]
