#!/usr/bin/env python3
"""Slower machines draw less, and say how much, so that a run can be had again: test_draws.py SCRIPT OPS_TEST_AGREE TESTS."""
import os
import subprocess
import sys

# Seconds of the piece of work, and percent.
ROWS = [("0.05", 100), ("0.2", 100), ("0.4", 50), ("0.6", 33), ("60", 20)]


def printed(command, folder=None, **environment):
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=dict(os.environ, **environment), check=True)
    return run.stdout + run.stderr


def main(script, agree, tests):
    wrong = [(seconds, percent) for seconds, percent in ROWS if int(printed([sys.executable, script, seconds])) != percent]
    if wrong:
        print("not what these seconds should give:", wrong)
    if not 20 <= int(printed([sys.executable, script])) <= 100:
        print("the machine's own percentage is out of range")
        wrong.append(script)
    for draws, cases, line in (("100", 40, ""), ("25", 10, "ASSAY_DRAWS=25: 10 of 40"), ("1", 1, "ASSAY_DRAWS=1: 1 of 40")):
        out = printed([agree, "40", "Abs"], tests, ASSAY_DRAWS=draws, ASSAY_SEED="3", ASSAY_SHOW="1")
        if line not in out or f"{cases} of {cases}," not in out or (not line and "ASSAY_DRAWS" in out):
            print(f"ASSAY_DRAWS={draws} gave {out!r}")
            wrong.append(draws)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
