#!/usr/bin/env python3
"""Writes src/ops/text/text_case.inc: the simple case mappings of Unicode, from Python's own tables.

    gen_case_table.py OUT.inc

A row {first, last, step, delta} maps first, first + step, ... last to itself plus delta.
"""
import sys
import unicodedata


def simple(c, method):
    """The one code point that c maps to; c itself if it maps to none or to several."""
    for m in (method, "title"):
        s = getattr(chr(c), m)()
        if len(s) == 1:
            return ord(s)
        if method == "lower":
            return ord("i") if c == 0x130 else c
    return c


def rows(method):
    out = []
    for c in range(0x110000):
        d = simple(c, method) - c
        if not d:
            continue
        if out and out[-1][3] == d:
            first, last, step, _ = out[-1]
            if c - last == step or (first == last and c - last <= 2):
                out[-1] = (first, c, c - last, d)
                continue
        out.append((c, c, 1, d))
    return out


with open(sys.argv[1], "w") as f:
    f.write(f"// Made by scripts/gen_case_table.py from Unicode {unicodedata.unidata_version}.\n")
    for method in ("lower", "upper"):
        table = [f"{{0x{a:X}, 0x{b:X}, {s}, {d}}}" for a, b, s, d in rows(method)]
        f.write(f"static const case_range_t {method}_ranges[] = {{\n")
        for i in range(0, len(table), 3):
            f.write("    " + ", ".join(table[i:i + 3]) + ",\n")
        f.write("};\n")
