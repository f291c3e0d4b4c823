#!/usr/bin/env python3
"""How many of their random draws tests make on this machine: draws.py [SECONDS].

Prints a percentage for ASSAY_DRAWS (tests/seed_case.h): 100 where a fixed piece of work takes an ordinary core's time or less, in
proportion where it takes longer, and never less than 20. SECONDS: as if it had taken that long.
"""
import statistics
import sys
import time

ORDINARY, LEAST = 0.2, 20  # seconds of the piece of work, percent


def piece_of_work():
    start = time.monotonic()
    sum(i * i % 7 for i in range(1_000_000))
    return time.monotonic() - start


def main(seconds=None):
    taken = float(seconds) if seconds else statistics.median(piece_of_work() for _ in range(5))
    print(max(LEAST, min(100, round(100 * ORDINARY / taken))))


if __name__ == "__main__":
    main(*sys.argv[1:])
