#!/usr/bin/env python3
"""Writes src/base/functions_tables.inc, the constants behind src/base/functions.h: make_function_tables.py FILE.

All numbers are computed with 60 digits more than are kept. A number that is cut to some bits has its
rest beside it, so that both together are right to 2^-75 or better.
"""
import decimal
import sys
from decimal import Decimal as D
from fractions import Fraction

decimal.getcontext().prec = 900


def cut(x, bits):
    """The number rounded to so many bits, as a float."""
    if x == 0:
        return 0.0
    exponent = 0
    f = Fraction(x)
    while abs(f) >= 2:
        f, exponent = f / 2, exponent + 1
    while abs(f) < 1:
        f, exponent = f * 2, exponent - 1
    return float(Fraction(round(f * 2 ** (bits - 1)), 2 ** (bits - 1)) * Fraction(2) ** exponent)


def grid(x, exponent):
    """The number rounded to a multiple of a power of two."""
    return float(Fraction(round(Fraction(x) * 2 ** -exponent)) / 2 ** -exponent)


def rest(x, *heads):
    f = Fraction(x)
    for head in heads:
        f -= Fraction(head)
    return float(f)


def series(first, ratio):
    term, total, n = first, first, 1
    while abs(term) > abs(total) * D(10) ** -(decimal.getcontext().prec - 5):
        term *= ratio(n)
        total += term
        n += 1
    return total


def arctan(x):
    if x > D("0.1"):  # atan x = 2 atan(x / (1 + sqrt(1 + x^2)))
        return 2 * arctan(x / (1 + (1 + x * x).sqrt()))
    total, power, n = x, x, 1
    while abs(power) > D(10) ** -120:
        power *= -x * x
        n += 2
        total += power / n
    return total


def machin():
    def inverse(n):
        total = term = D(1) / n
        k = 1
        while abs(term) > D(10) ** -890:
            term /= -n * n
            k += 2
            total += term / k
        return total
    return 4 * (4 * inverse(5) - inverse(239))


PI = machin()
LN2 = D(2).ln()
LN10 = D(10).ln()
TWO_OVER_ROOT_PI = 2 / PI.sqrt()


def sine(x):
    return series(x, lambda n: -x * x / (2 * n * (2 * n + 1))) if x else D(0)


def erf(x):
    return TWO_OVER_ROOT_PI * (-x * x).exp() * series(x, lambda n: 2 * x * x / (2 * n + 1)) if x else D(0)


TERMS = 13


def erf_over_x(c):
    """Coefficients of erf(c + h) / (c + h)."""
    if c == 0:
        g, factor = [], TWO_OVER_ROOT_PI
        for k in range(TERMS):
            g.append(factor / (k + 1) if k % 2 == 0 else D(0))
            if k % 2:
                factor = -factor / ((k + 1) // 2)
        return g
    slopes = [TWO_OVER_ROOT_PI * (-c * c).exp()]
    for n in range(TERMS):
        slopes.append((-2 * c * slopes[n] - 2 * (slopes[n - 1] if n else 0)) / (n + 1))
    g = [erf(c) / c]
    for n in range(1, TERMS):
        g.append((slopes[n - 1] / n - g[n - 1]) / c)
    return g


def scaled_erfc(c):
    """Coefficients of e^(x^2) erfc(x) at x = c + h."""
    r = [(c * c).exp() * (1 - erf(c))]
    r.append(2 * c * r[0] - TWO_OVER_ROOT_PI)
    for n in range(1, TERMS):
        r.append((2 * c * r[n] + 2 * r[n - 1]) / (n + 1))
    return r[:TERMS]


def emit(out, name, comment, rows, type_="double"):
    width = len(rows[0])
    out.write(f"\n// {comment}\nstatic const {type_} {name}[{len(rows)}][{width}] = {{\n")
    for row in rows:
        words = [x.hex() if isinstance(x, float) else x for x in row]
        line = "    {"
        for i, word in enumerate(words):
            piece = word + ("," if i + 1 < len(words) else "},")
            if len(line) + len(piece) + 1 > 100:
                out.write(line.rstrip() + "\n")
                line = "     "
            line += piece + " "
        out.write(line.rstrip() + "\n")
    out.write("};\n")


def polynomial(g):
    head, slope = float(g[0]), cut(g[1], 26)
    return [head, rest(g[0], head), slope, rest(g[1], slope)] + [float(x) for x in g[2:]]


def parts(x, *bits):
    found = []
    for n in bits:
        found.append(cut(Fraction(x) - sum(map(Fraction, found)), n))
    return found


def logarithm(i):
    """1/c for numbers from 1 + i/128 on; from 181/128 on of their halves."""
    upper = i >= 53
    if i == 0:
        c = 1.0
    elif i == 127:
        c = 0.5
    else:
        c = grid(D(1) / (1 + (D(i) + D("0.5")) / 128), -10)
    value = -(D(2 if upper else 1) * D(c)).ln()
    head = grid(value, -42)
    return [c, head, rest(value, head)]


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("// Constants of the elementary functions; scripts/make_function_tables.py writes this file.\n"
                  "// clang-format off\n")
        for group in ("exp", "log", "circle", "arctan", "erf", "two_over_pi"):
            out.write(f"\n#ifdef ASSAY_TABLE_{group.upper()}\n")
            if group == "exp":
                step = LN2 / 128
                first = cut(step, 34)
                out.write(f"static const double exp_step[3] = {{{float(1 / step).hex()}, {first.hex()}, "
                          f"{rest(step, first).hex()}}};\n")
                rows = [(D(2) ** (D(j) / 128)) for j in range(128)]
                emit(out, "exp_table", "2^(j/128): 26 bits, and the rest", [[cut(v, 26), rest(v, cut(v, 26))] for v in rows])
            elif group == "log":
                first = cut(LN2, 40)
                out.write(f"static const double ln2_parts[2] = {{{first.hex()}, {rest(LN2, first).hex()}}};\n")
                emit(out, "log_table", "c, and -ln c (from row 53 on -ln 2c): a multiple of 2^-42, and the rest",
                     [logarithm(i) for i in range(128)])
            elif group == "circle":
                step = PI / 256
                words = [float(1 / step)] + parts(step, 33, 33, 53)
                out.write("static const double circle_step[4] = {" + ", ".join(w.hex() for w in words) + "};\n")
                values = [sine(step * j) for j in range(129)]
                emit(out, "sine_table", "sin(j pi/256): 26 bits, and the rest", [[cut(v, 26), rest(v, cut(v, 26))] for v in values])
            elif group == "arctan":
                values = [arctan(D(j) / 64) if j else D(0) for j in range(65)]
                emit(out, "arctan_table", "arctan(j/64)", [[float(v), rest(v, float(v))] for v in values])
            elif group == "erf":
                emit(out, "erf_table", "erf(x)/x about j/16: the value, its slope of 26 bits and the rest, coefficients",
                     [polynomial(erf_over_x(D(j) / 16)) for j in range(17)])
                centers = [D(j) / 16 for j in range(8, 129)] + [D(j) / 2 for j in range(17, 57)]
                emit(out, "erfc_table", "e^(x^2) erfc(x) about 8/16, 9/16, ... 8, then 17/2, 18/2, ... 28",
                     [polynomial(scaled_erfc(c)) for c in centers])
            else:
                bits = int(Fraction(2 / PI) * 2 ** 1280)
                words = [[f"0x{bits >> (1280 - 32 * (4 * i + k + 1)) & 0xffffffff:08x}" for k in range(4)] for i in range(10)]
                emit(out, "two_over_pi", "2/pi: 1280 bits behind the point", words, "uint32_t")
            out.write("#endif\n")


main()
