#!/usr/bin/env python3
"""`assay compare` on the command line: test_compare.py ASSAY

A row is two sets of arrays, options, the exit code, and words of what is printed.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

F = np.float32
X = F([[1, 2, 3], [4, 5, -6]])
NEAR = X + F([[0, 0, 1e-3], [0, 0, 0]])
NAN = X.copy()
NAN[1, 1] = np.nan
SETS = {
    "x": {"x": X},
    "near": {"x": NEAR},
    "nan": {"x": NAN},
    "wide": {"x": X.astype(np.float64)},
    "shape": {"x": X.reshape(3, 2)},
    "two": {"x": X, "a:0": X},
    "two_near": {"x": X, "a:0": NEAR},
    "none": {},
}
ROWS = [
    # files, options, exit code, words of stdout, words of stderr
    ("x", "x", [], 0, ["PASSED  1 tensor\n", "'x'   no error"], []),
    ("wide", "x", [], 0, ["PASSED"], []),
    ("near", "x", [], 1, ["FAILED  1 of 1 tensors", "max abs 0.001", "SNR 79.6 dB", "1 of 6 elements"], []),
    ("near", "x", ["--atol", "1e-2"], 0, ["PASSED"], []),
    ("near", "x", ["--atol", "0", "--rtol", "4e-4"], 0, ["PASSED"], []),
    ("near", "x", ["--atol", "0", "--rtol", "1e-4"], 1, ["FAILED"], []),
    ("near", "x", ["--require", "snr_db >= 79"], 0, ["PASSED"], []),
    ("near", "x", ["--require", "snr_db >= 80"], 1, ["FAILED", "snr_db"], []),
    ("near", "x", ["--require", "snr_db>79", "--require", "x: max_abs < 0.002"], 0, ["PASSED"], []),
    ("near", "x", ["--require", "snr_db > 79", "--atol", "1e-6"], 1, ["FAILED"], []),
    ("near", "x", ["--require", "outside == 0", "--rtol", "1e-2"], 0, ["PASSED"], []),
    ("x", "x", ["--require", "max_abs > 0"], 1, ["FAILED", "max_abs"], []),
    ("x", "x", ["--require", "max_abs >= 0"], 0, ["PASSED"], []),
    ("x", "x", ["--require", "max_abs < 0"], 1, ["FAILED"], []),
    ("nan", "x", ["--require", "cosine >= 0"], 1, ["FAILED", "mismatched"], []),
    ("nan", "x", ["--require", "mismatched <= 1"], 0, ["PASSED"], []),
    ("nan", "nan", ["--require", "max_abs <= 0"], 0, ["PASSED"], []),
    ("nan", "nan", [], 0, ["PASSED"], []),
    ("shape", "x", [], 1, ["FAILED"], []),
    ("two_near", "two", [], 1, ["FAILED  1 of 2 tensors", "failed  'a:0'", "passed  'x'"], []),
    ("two_near", "two", ["--require", "a:0: max_abs <= 0.1"], 0, ["PASSED  2 tensors"], []),
    ("two_near", "two", ["--require", "b: max_abs <= 0.1"], 3, [], ["'b', which is not compared"]),
    ("two", "x", [], 1, ["FAILED"], []),
    ("two", "x", ["--allow-missing"], 0, ["PASSED  1 tensor\n"], []),
    ("none", "x", ["--allow-missing"], 1, ["nothing to compare"], []),
    ("x", "lost", [], 3, [], ["lost.npz"]),
    ("x", "x", ["--require", "median < 1"], 2, [], ["no statistic 'median'"]),
    ("x", "x", ["--require", "max_ab < 1"], 2, [], ["did you mean 'max_abs'"]),
    ("x", "x", ["--require", "max_abs"], 2, [], ["STATISTIC OP VALUE"]),
    ("x", "x", ["--require", "max_abs < 1 2"], 2, [], ["STATISTIC OP VALUE"]),
    ("x", "x", ["--atol", "-1"], 2, [], ["--atol is a number of 0 or more"]),
    ("x", "x", ["--rtol", "q"], 2, [], ["--rtol is a number of 0 or more"]),
    ("x", "x", ["--ulp", "int8"], 2, [], ["unknown format 'int8'"]),
    ("x", "x", ["--top-k", "65"], 2, [], ["--top-k is 1 to 64"]),
]


def call(program, *words):
    p = subprocess.run([program, "compare", *words], capture_output=True, text=True, timeout=60)
    return p.returncode, p.stdout, p.stderr


def test_rows(program):
    wrong = 0
    for file, reference, options, code, out_words, err_words in ROWS:
        got, out, err = call(program, file + ".npz", reference + ".npz", *options)
        if got == code and all(w in out for w in out_words) and all(w in err for w in err_words):
            continue
        wrong += 1
        print(f"FAIL {file} {reference} {options}: exit code {got} ({code}), output {out!r}, error {err!r}")
    return wrong


def test_json(program):
    code, out, err = call(program, "near.npz", "x.npz", "--json", "-", "--ulp", "bf16", "--top-k", "2")
    j = json.loads(out)
    s = j["pairs"][0]["statistics"]
    error = NEAR.astype(np.float64) - X
    fine = (code == 1 and j["schema"] == "assay.compare/1" and not j["passed"] and j["failed"] == 1 and not err
            and abs(s["max_abs"] - abs(error).max()) < 1e-12 and s["outside"] == 1 and s["elements"] == 6
            and abs(s["snr_db"] - 10 * np.log10((X.astype(np.float64) ** 2).sum() / (error ** 2).sum())) < 1e-9
            and s["max_ulp"] < 1 and s["top_k"] == 1 and j["pairs"][0]["worst_at"] == 2)
    if not fine:
        print(f"FAIL json: {code}, {out}, {err}")
    code, out, _ = call(program, "near.npz", "x.npz", "--json", "c.json")
    same = code == 1 and out.startswith("FAILED") and json.load(open("c.json"))["failed"] == 1
    if not same:
        print(f"FAIL json to a file: {code}, {out}")
    return (not fine) + (not same)


def main(program):
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, arrays in SETS.items():
            np.savez(name + ".npz", **arrays)
        wrong = test_rows(program) + test_json(program)
        os.chdir("/")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
