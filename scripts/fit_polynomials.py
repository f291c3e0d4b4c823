#!/usr/bin/env python3
"""Fits the polynomials of src/backends/vmath/polynomials.h and prints that file's tables.

    python3 scripts/fit_polynomials.py >src/backends/vmath/polynomials.h     (needs mpmath)

Each is the polynomial of its degree with the smallest largest error, |p - f| * weight, on an interval: Remez's
exchange algorithm (E. Remez, 1934) in 60 digits. The weight makes it the relative error of the function that the
polynomial is a part of. The error is printed for the coefficients as they are rounded.
"""
import sys

from mpmath import mp, mpf

mp.dps = 60


def value(c, x):
    y = mpf(0)
    for k in reversed(c):
        y = y * x + k
    return y


def remez(f, weight, lo, hi, degree):
    """Coefficients, lowest first. f and weight at the ends of the interval are limits."""
    n = degree + 2
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    points = [mid - half * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    points = [x if weight(x) > mpf(10) ** -20 else x + half / 1000 for x in points]  # a weight of 0 says nothing
    cells = 24 * n
    grid = [mid - half * mp.cos(mp.pi * i / cells) for i in range(cells + 1)]
    known = [(x, f(x), weight(x)) for x in grid]
    for _ in range(30):
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for i, x in enumerate(points):
            for k in range(degree + 1):
                a[i, k] = x ** k
            a[i, degree + 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        solved = mp.lu_solve(a, b)
        c, level = [solved[k] for k in range(degree + 1)], abs(solved[degree + 1])
        errors = [(x, (value(c, x) - fx) * w) for x, fx, w in known]
        runs = []  # of one sign; the largest of each is where the next try has its points
        for x, e in errors:
            if e == 0:
                continue
            if runs and (runs[-1][1] > 0) == (e > 0):
                if abs(e) > abs(runs[-1][1]):
                    runs[-1] = (x, e)
            else:
                runs.append((x, e))
        while len(runs) > n:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        if len(runs) < n:
            break
        points = [x for x, _ in runs]
        worst = max(abs(e) for _, e in errors)
        if worst < level * mpf("1.0005"):
            break
    return c, known


def hexadecimal(c, single):
    x = float(c)
    if not single:
        return x.hex()
    import struct
    head, tail = struct.unpack("f", struct.pack("f", x))[0].hex().split("p")
    return (head.rstrip("0").rstrip(".") or "0x0") + "p" + tail + "F"


def rounded(c, single):
    import struct
    return mpf(struct.unpack("f", struct.pack("f", float(c)))[0]) if single else mpf(float(c))


def rounded_fit(f, weight, lo, hi, degree):
    """The same for coefficients of float32: each is rounded, and those behind it make up for that."""
    c, known = [], [(x, f(x), weight(x)) for x in (lo + (hi - lo) * i / 200 for i in range(201))]
    for k in range(degree + 1):
        rest = lambda x: (f(x) - value(c, x)) / x ** k
        some, _ = remez(rest, lambda x: weight(x) * x ** k, lo, hi, degree - k)
        c = c + [rounded(some[0], True)]
    return c, known


def table(name, what, f, weight, lo, hi, degree, single=False):
    fit = rounded_fit if single and lo > 0 else remez
    c, known = fit(f, weight, mpf(lo), mpf(hi), degree)
    used = [rounded(k, single) for k in c]
    error = max(abs((value(used, x) - fx) * w) for x, fx, w in known)
    print("// %s; 2^%.1f." % (what, float(mp.log(error, 2))))
    kind = "float" if single else "double"
    show(kind, name, reversed(used), single)


def numbers(name, values):
    show("float", name, [rounded(v, True) for v in values], True)


def show(kind, name, values, single):
    values = list(values)
    print("VTABLE %s %s[%d] = {" % (kind, name, len(values)))
    line = "   "
    for k in values:
        word = " " + hexadecimal(k, single) + ","
        if len(line) + len(word) > 98:
            print(line)
            line = "   "
        line += word
    print(line.rstrip(",") + "};")
    sys.stdout.flush()


def series(terms):
    """A power series, for where a quotient has lost its digits."""
    def f(x):
        return sum(t * x ** k for k, t in enumerate(terms))
    return f


def near0(f, taylor, limit=mpf(10) ** -8):
    return lambda x: f(x) if abs(x) > limit else taylor(x)


one = lambda x: mpf(1)
ln2 = mp.log(2)
R = ln2 / 2 * mpf("1.0001")
S = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mpf("1.0001")
Q = (mp.pi / 4) ** 2 * mpf("1.0001")


def root(f):
    return lambda s: f(mp.sqrt(s))


def phi_tail(b):  # Phi(-b) exp(b^2 / 2)
    return mp.erfc(b / mp.sqrt(2)) / 2 * mp.exp(b * b / 2)


def pieces(name, what, f, limit):
    """f around 0, 1 / 4, ..., 31 / 4, one polynomial by the distance each: its value, what float32 has lost of that, and
    the coefficients from the highest down; each interpolates f in Chebyshev's points. The error is that up to `limit`."""
    degree, half = 7, mpf(1) / 8
    points = [half * mp.cos(mp.pi * (2 * i + 1) / (2 * degree + 2)) for i in range(degree + 1)]
    rows, error = [], mpf(0)
    for k in range(32):
        middle = mpf(k) / 4
        a = mp.matrix(degree + 1, degree + 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                a[i, j] = x ** j
        solved = mp.lu_solve(a, mp.matrix([f(middle + x) for x in points]))
        c = [solved[j] for j in range(degree + 1)]
        rows.append([c[0], c[0] - rounded(c[0], True)] + c[:0:-1])
        used = [rounded(c[0], True) + rounded(rows[-1][1], True)] + [rounded(x, True) for x in c[1:]]
        for i in range(-16, 17):
            x = half * i / 16
            if 0 <= middle + x <= limit:
                error = max(error, abs(value(used, x) / f(middle + x) - 1))
    print("// %s; 2^%.1f." % (what, float(mp.log(error, 2))))
    print("VTABLE float %s[%d][32] = {" % (name, degree + 2))
    for j in range(degree + 2):
        line = "    {"
        for k in range(32):
            word = hexadecimal(rows[k][j], True) + (", " if k < 31 else "},")
            if len(line) + len(word) > 100:
                print(line.rstrip())
                line = "     "
            line += word
        print(line)
    print("};")
    sys.stdout.flush()


def main():
    print("""// Polynomials of the vector functions, highest coefficient first. Made by
// scripts/fit_polynomials.py; behind each its largest error, relative to the function's value.
#ifndef ASSAY_BACKENDS_VMATH_POLYNOMIALS_H_
#define ASSAY_BACKENDS_VMATH_POLYNOMIALS_H_
""")
    fact = mp.factorial
    table("poly_expm1", "(e^r - 1 - r) / r^2, |r| <= ln(2) / 16",
          near0(lambda r: (mp.expm1(r) - r) / r ** 2, series([1 / fact(k + 2) for k in range(6)])),
          near0(lambda r: abs(r * r / mp.expm1(r)), lambda r: abs(r)), -R / 8, R / 8, 3)
    table("poly_exp2m1", "(2^r - 1) / r, |r| <= 1 / 2",
          near0(lambda r: mp.expm1(r * ln2) / r, series([ln2 ** (k + 1) / fact(k + 1) for k in range(6)])),
          near0(lambda r: r / mp.expm1(r * ln2), lambda r: 1 / ln2), -mpf("0.5001"), mpf("0.5001"), 6)
    table("poly_log", "(log((1 + s) / (1 - s)) - 2 s) / s^3 by s^2, |s| <= (sqrt(2) - 1)^2",
          near0(root(lambda s: (2 * mp.atanh(s) - 2 * s) / s ** 3), series([mpf(2) / 3, mpf(2) / 5, mpf(2) / 7])),
          near0(root(lambda s: s ** 3 / (2 * mp.atanh(s))), lambda z: z / 2), 0, S * S, 3)
    table("poly_log2", "(log2((1 + s) / (1 - s)) - 2 s / ln(2)) / s^3 by s^2, as before",
          near0(root(lambda s: (2 * mp.atanh(s) - 2 * s) / s ** 3 / ln2),
                series([mpf(2) / 3 / ln2, mpf(2) / 5 / ln2, mpf(2) / 7 / ln2])),
          near0(root(lambda s: ln2 * s ** 3 / (2 * mp.atanh(s))), lambda z: z * ln2 / 2), 0, S * S, 4)
    table("poly_sin", "(sin(r) - r) / r^3 by r^2, |r| <= pi / 4",
          near0(root(lambda r: (mp.sin(r) - r) / r ** 3), series([-mpf(1) / 6, mpf(1) / 120, -mpf(1) / 5040])),
          root(lambda r: r ** 3 / mp.sin(r) if r else mpf(0)), 0, Q, 3)
    table("poly_cos", "(cos(r) - 1 + r^2 / 2) / r^4 by r^2, |r| <= pi / 4",
          near0(root(lambda r: (mp.cos(r) - 1 + r * r / 2) / r ** 4), series([mpf(1) / 24, -mpf(1) / 720, mpf(1) / 40320])),
          root(lambda r: r ** 4 / mp.cos(r)), 0, Q, 3)
    table("poly_asin", "(asin(x) - x) / x^3 by x^2, |x| <= 1 / 2",
          near0(root(lambda x: (mp.asin(x) - x) / x ** 3), series([mpf(1) / 6, mpf(3) / 40, mpf(15) / 336])),
          root(lambda x: x ** 3 / mp.asin(x) if x else mpf(0)), 0, mpf("0.25"), 6)
    table("poly_atan", "(atan(x) - x) / x^3 by x^2, |x| <= 1",
          near0(root(lambda x: (mp.atan(x) - x) / x ** 3), series([-mpf(1) / 3, mpf(1) / 5, -mpf(1) / 7])),
          root(lambda x: x ** 3 / mp.atan(x) if x else mpf(0)), 0, 1, 10)
    table("poly_erf", "erf(x) / x by x^2, |x| <= 1",
          near0(root(lambda x: mp.erf(x) / x), series([2 / mp.sqrt(mp.pi), -2 / mp.sqrt(mp.pi) / 3])),
          near0(root(lambda x: x / mp.erf(x)), lambda s: mp.sqrt(mp.pi) / 2), 0, mpf("1.0001"), 7)
    highest = 1 - 1 / (1 + mpf(3) / 10 * 15)
    tail = lambda v: phi_tail(v / (1 - v) * 10 / 3)
    slope = (mpf(1) / 2 - 10 / mpf(3) / mp.sqrt(2 * mp.pi))
    table("poly_tail", "(Phi(-b) e^(b^2 / 2) / (1 - v) - 1 / 2) / v by v = 1 - 1 / (1 + 0.3 b), 0 <= b <= 15",
          near0(lambda v: (tail(v) / (1 - v) - mpf(1) / 2) / v, lambda v: slope),
          lambda v: v * (1 - v) / tail(v), 0, highest, 12)
    table("poly_tail_short", "the same with fewer terms",
          near0(lambda v: (tail(v) / (1 - v) - mpf(1) / 2) / v, lambda v: slope),
          lambda v: v * (1 - v) / tail(v), 0, highest, 9)
    # In float32.
    table("poly32_exp", "(e^r - 1 - r) / r^2, |r| <= ln(2) / 32, in float32",
          near0(lambda r: (mp.expm1(r) - r) / r ** 2, series([1 / fact(k + 2) for k in range(6)])),
          lambda r: r ** 2 / mp.exp(r), -R / 16, R / 16, 1, True)
    table("poly32_tanh", "(tanh(x) - x) / x^3 by x^2, |x| <= 0.875, in float32",
          near0(root(lambda x: (mp.tanh(x) - x) / x ** 3), series([-mpf(1) / 3, mpf(2) / 15, -mpf(17) / 315])),
          root(lambda x: x ** 3 / mp.tanh(x) if x else mpf(0)), 0, mpf("0.766"), 6, True)
    table("poly32_erf", "erf(x) / x - 1 by x^2, |x| <= 0.91, in float32",
          near0(root(lambda x: mp.erf(x) / x - 1), series([2 / mp.sqrt(mp.pi) - 1, -2 / mp.sqrt(mp.pi) / 3])),
          near0(root(lambda x: x / mp.erf(x)), lambda s: mp.sqrt(mp.pi) / 2), mpf("0.001"), mpf("0.84"), 7, True)
    table("poly32_erfc", "log(erfc(a)) by a, 0.9 <= a <= 4, in float32",
          lambda a: mp.log(mp.erfc(a)), lambda a: mp.erfc(a), mpf("0.9"), 4, 6, True)
    pieces("pieces32_gelu", "Phi(-b), 0 <= b <= 5, in float32", lambda b: mp.erfc(b / mp.sqrt(2)) / 2, 5)
    pieces("pieces32_gelu_tanh", "1 / (1 + e^(sqrt(8 / pi) (b + 0.044715 b^3))), 0 <= b <= 4, in float32",
           lambda b: 1 / (1 + mp.exp(mp.sqrt(8 / mp.pi) * (b + mpf("0.044715") * b ** 3))), 4)
    print("// 2^(i / 8), 2^(i / 16), and what float32 has lost of it.")
    powers = [mpf(2) ** (mpf(i) / 16) for i in range(16)]
    show("double", "table_exp2", [rounded(p, False) for p in powers[::2]], False)
    numbers("table32_exp2", powers)
    numbers("table32_exp2_low", [p - rounded(p, True) for p in powers])
    print("\n#endif  // ASSAY_BACKENDS_VMATH_POLYNOMIALS_H_")


if __name__ == "__main__":
    main()
