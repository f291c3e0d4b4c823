#!/usr/bin/env python3
"""Makes src/backends/emu/like/exp2_deltas.inc of what a GPU's ex2.approx.ftz.f32 gave: make_ex2_table.py BELOW ABOVE OUT.

BELOW, ABOVE: 8,192 float32 each, little-endian: 2^(-k / 8192) and 2^(k / 8192), k from 0 on; exponents below 0 are no others turned
around. OUT: how many ulps they are from the nearest float32 of the true values, two to a letter, those of BELOW first. The true values
are computed with 40 digits; none is so near the middle of two float32 that a float64 within an ulp would be rounded to the other one,
so that whoever reads the table may use one.
"""
import decimal
import struct
import sys

BITS, PER_ROW, MOST = 13, 96, 2
MIN_MARGIN = decimal.Decimal(2) ** -20  # of an ulp of float32: a float64 within an ulp is within 2^-29


def deltas_of(measured, sign):
    count = 1 << BITS
    with open(measured, "rb") as f:
        values = struct.unpack(f"<{count}f", f.read(4 * count))
    # In ulps of the binade below 1, or of the one from 1 on; of 1 itself, whose ulp is twice as large as those below, the same.
    bits = 24 if sign < 0 else 23
    deltas, margin = [], decimal.Decimal(1)
    for k, value in enumerate(values):
        true = decimal.Decimal(2) ** (decimal.Decimal(bits) + sign * decimal.Decimal(k) / count)
        nearest = int(true.to_integral_value(decimal.ROUND_HALF_EVEN))
        margin = min(margin, abs(abs(true - nearest) - decimal.Decimal("0.5")))
        delta = int(value * 2.0**bits) - nearest
        if abs(delta) > MOST:
            sys.exit(f"2^({sign * k} / {count}) is {delta} ulps off")
        deltas.append(delta)
    if margin < MIN_MARGIN:
        sys.exit(f"a true value is within {margin} ulps of the middle of two float32")
    print(f"{sum(map(bool, deltas))} of {count} are not the nearest, by {min(deltas)} to {max(deltas)} ulps; margin {float(margin):.3g} ulps")
    return deltas


def main(below, above, out):
    decimal.getcontext().prec = 40
    deltas = deltas_of(below, -1) + deltas_of(above, 1)
    letters = "".join(chr(ord("A") + (2 * MOST + 1) * (a + MOST) + b + MOST) for a, b in zip(deltas[::2], deltas[1::2]))
    lines = ["// Made by scripts/make_ex2_table.py from what an H200 gave: of 2^(-k / 8192), k below 8,192, then of 2^(k / 8192),",
             "// ulps between it and the nearest float32, of two neighbours a letter: 'A' + 5 (first + 2) + second + 2."]
    lines += [f'"{letters[i:i + PER_ROW]}",' for i in range(0, len(letters), PER_ROW)]
    with open(out, "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
