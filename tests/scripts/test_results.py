#!/usr/bin/env python3
"""scripts/test_results.py counts and names what passed, failed and was skipped: test_results.py SCRIPT CTEST."""
import os
import subprocess
import sys
import tempfile

# What each test prints, its exit code, and what has to be said of it.
ROWS = [
    ("passes", "[==========] Running 2 test(s).\\n[==========] 2 test(s) run.\\n", 0, []),
    ("fails", "[  ERROR   ] --- 1 != 2\\nbetween %040d\\nsrc.c:3: error: Failure!\\n" + "more\\n" * 40 + "the last line\\n", 1, ["failed fails"]),
    ("skips_one", "[  SKIPPED ] tiles\\n[==========] 2 test(s) run.\\n[  SKIPPED ] 1 test(s), listed below:\\n[  SKIPPED ] tiles\\n", 0,
     ["skipped skips_one: tiles: no reason is given"]),
    ("says_why", "skipped: tiles: no AMX here\\n[  SKIPPED ] tiles\\n[==========] 2 test(s) run.\\n[  SKIPPED ] tiles\\n", 0,
     ["skipped says_why: tiles: no AMX here"]),
    ("skips_all", "skipped: a: no b\\n[  SKIPPED ] a\\n[  SKIPPED ] b\\n[==========] 2 test(s) run.\\n", 0,
     ["skipped skips_all: a: no b", "skipped skips_all: b: no reason is given"]),
    ("skips_a_part", "skipped: a kernel: no AVX-512 here\\n[==========] 1 test(s) run.\\n", 0,
     ["skipped skips_a_part: a kernel: no AVX-512 here"]),
    ("long_output", "x" * 3000 + "\\nskipped: products of bf16\\n", 0, ["skipped long_output: products of bf16"]),
    ("absent", "skipped: Chromium is not installed\\n", 77, ["skipped absent: Chromium is not installed"]),
]


def main(script, ctest):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as f:
            for name, text, code, _ in ROWS:
                with open(os.path.join(folder, name), "w") as program:
                    program.write(f"#!/bin/sh\nprintf '{text}'\nexit {code}\n")
                os.chmod(program.name, 0o755)
                f.write(f'add_test({name} "{program.name}")\nset_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77)\n')
        results, times, said = (os.path.join(folder, name) for name in ("ctest.xml", "times", "said"))
        subprocess.run([ctest, "--test-dir", folder, "--test-output-size-passed", "1000000", "--output-junit", results],
                       capture_output=True)
        run = subprocess.run([sys.executable, script, "ctest", results, "release", times, said], check=True, capture_output=True, text=True)
        wanted = ["passed 5"] + [line for row in ROWS for line in row[3]]
        if sorted(run.stdout.split("\n")[:-1]) != sorted(wanted):
            print(f"found {run.stdout!r}, expected {wanted}")
            return 1
        if len(open(times).readlines()) != len(ROWS):
            print("the times of some tests are missing")
            return 1
        # Of a long output: the lines that name a place, and the end.
        told = open(said).read().splitlines()
        if told[:3] != ["-- release: fails", "[  ERROR   ] --- 1 != 2", "src.c:3: error: Failure!"] or told[-1] != "the last line" or len(told) > 40:
            print(f"a failed test's end is told as {told}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
