#!/usr/bin/env python3
"""Number formats against ml_dtypes: run_vectors.py CHECK_VECTORS COUNT, with COUNT random float32 inputs a format.

Every pattern of the formats of 16 bits and fewer is always tried, decoded and as an input to all the others.
The random inputs come in pieces, each with a seed of its own, so that the files stay small.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PIECE = 2_000_000

program, count = sys.argv[1], int(sys.argv[2])
make = pathlib.Path(__file__).with_name("make_vectors.py")
total = wrong = 0
for seed, start in enumerate(range(0, count, PIECE), 1):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        options = ["--count", str(min(PIECE, count - start)), "--seed", str(seed)]
        if start:
            options.append("--only-random")
        subprocess.run([sys.executable, make, folder, *options], check=True)
        result = subprocess.run([program, folder], stdout=subprocess.PIPE, text=True)
        counts = re.search(r"(\d+) comparisons in \d+ files, (\d+) wrong", result.stdout)
        if not counts or result.returncode:
            print(f"seed {seed}:", result.stdout, sep="\n")
        if not counts:
            sys.exit(1)
        total += int(counts[1])
        wrong += int(counts[2])
print(f"{count} random inputs: {total} comparisons, {wrong} wrong")
sys.exit(wrong > 0)
