#!/usr/bin/env python3
"""Runs the ONNX operator tests and holds the failures against the list of allowed ones.

    check_conformance.py ASSAY CASES BACKEND EXPECTED [--without GROUP/CASE] [OPTION...]

--without: all cases but this one. Options are those of `assay conformance`, such as --match PATTERN.

Prints the counts of each group. A failure that EXPECTED does not list with a reason fails the test,
and so does a listed case that passes: then its line has to go.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile


def allowed(path, backend):
    """The cases that may fail, each with its reason."""
    out = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            words = line.split(None, 2)
            if len(words) < 3:
                sys.exit(f"{path}: '{line}' gives no reason")
            if words[0] == backend:
                out[words[1]] = words[2]
    return out


def links_to(cases, left_out, folder):
    """A folder of links to all cases but one."""
    group, case = left_out.split("/")
    if not os.path.isdir(os.path.join(cases, group, case)):
        sys.exit(f"{cases} has no {left_out}, which --without names")
    os.makedirs(os.path.join(folder, group))
    for name in os.listdir(cases):
        if name != group:
            os.symlink(os.path.abspath(os.path.join(cases, name)), os.path.join(folder, name))
    for name in os.listdir(os.path.join(cases, group)):
        if name != case:
            os.symlink(os.path.abspath(os.path.join(cases, group, name)), os.path.join(folder, group, name))


def main(assay, cases, backend, expected, *options):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        if options[:1] == ("--without",):
            links_to(cases, options[1], os.path.join(folder, "cases"))
            cases, options = os.path.join(folder, "cases"), options[2:]
        results = os.path.join(folder, "results.json")
        run = subprocess.run([assay, "conformance", cases, "--backend", backend, "--json", results, *options],
                             stdout=subprocess.PIPE, text=True)
        if run.returncode not in (0, 1):
            sys.exit(f"assay conformance ended with exit code {run.returncode}\n{run.stdout}")
        with open(results, encoding="utf-8") as f:
            found = json.load(f)["cases"]
    reasons = allowed(expected, backend)
    groups = collections.defaultdict(lambda: [0, 0])
    wrong = 0
    for name, case in sorted(found.items()):
        passed = case["status"] == "passed"
        groups[name.split("/")[0]][not passed] += 1
        if passed and name in reasons:
            print(f"PASSES NOW {name}: take its line out of {os.path.basename(expected)}")
            wrong += 1
        elif not passed and name in reasons:
            print(f"allowed {name}: {reasons[name]}")
        elif not passed:
            print(f"FAIL {name}: {case['why']}\n     rerun: {assay} conformance {cases} --backend {backend} --match '{name}'")
            wrong += 1
    for group, (passed, failed) in sorted(groups.items()):
        print(f"{group:<18} {passed:5d} passed, {failed} failed")
    passed, failed = (sum(g[i] for g in groups.values()) for i in (0, 1))
    print(f"{passed} passed, {failed} failed, {wrong} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
