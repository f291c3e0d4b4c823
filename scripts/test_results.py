#!/usr/bin/env python3
"""Sums up what a stage of scripts/test ran.

    test_results.py ctest RESULTS PRESET TIMES SAID   of a file that `ctest --output-junit` wrote
    test_results.py build NINJA_LOG PRESET TIMES      of the steps of a build

The first prints `passed N`, and a line `failed NAME` or `skipped NAME: WHAT: REASON` for each that did. A skip is a test that did not
run at all (SKIP_RETURN_CODE), a case that a cmocka program skipped, or a part of one; a line `skipped: WHAT: REASON` of the test's
output says why (tests/skip_case.h). A program all of whose cases were skipped did not pass. Both add lines 'SECONDS PRESET NAME' to
the file TIMES. The end of what each failed test printed is added to the file SAID.
"""
import re
import sys
import xml.etree.ElementTree

CASES = re.compile(r"^\[==========\].* (\d+) test\(s\) run\.", re.M)
PLACE = re.compile(r"^\[ *ERROR *\]|: error: |ERROR: \w+Sanitizer|runtime error: ")
LAST_LINES = 30
SKIPPED = re.compile(r"^\[  SKIPPED \] ([A-Za-z_]\w*)\s*$|^skipped: (.+?)\s*$", re.M)


def skips_of(output):
    """What a test's output says that it skipped, with the reasons, and how many cmocka cases those are."""
    found = SKIPPED.findall(output)
    reasons = {text.split(": ")[0]: text for _, text in found if text}
    cases = {case for case, _ in found if case}  # named where one is skipped and in the summary
    return list(reasons.values()) + [f"{case}: no reason is given" for case in sorted(cases - set(reasons))], len(cases)


def end_of(output):
    """The last of what a failed test printed, where its reason is; of cmocka's also the lines that name a place."""
    lines = output.rstrip().splitlines()
    first, last = lines[:-LAST_LINES], lines[-LAST_LINES:]
    return [line for line in first if PLACE.search(line)][:LAST_LINES] + last


def of_ctest(path, preset, note, said):
    passed, lines = 0, []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        note(float(case.get("time") or 0), name)
        output = case.findtext("system-out") or ""
        skipped = case.find("skipped")
        texts, skipped_cases = skips_of(output)
        if status == "notrun" and "SKIP_RETURN_CODE" in (skipped.get("message") if skipped is not None else ""):
            lines.append(f"skipped {name}: {'; '.join(texts) or 'no reason is given'}")
            continue
        if status in ("fail", "notrun"):
            lines.append(f"failed {name}")
            said.write("\n".join([f"-- {preset}: {name}", *end_of(output)]) + "\n")
            continue
        if status != "run":  # disabled
            continue
        lines += [f"skipped {name}: {text}" for text in texts]
        cases = CASES.search(output)
        passed += not (cases and 0 < int(cases.group(1)) <= skipped_cases)
    print(f"passed {passed}")
    print("\n".join(lines))


def of_ninja(path, note):
    last = {}
    for line in open(path):
        if not line.startswith("#"):
            start, end, _, output, command = line.rstrip("\n").split("\t")
            last[command] = (int(end) - int(start), output)  # a step with several outputs counts once
    for milliseconds, output in last.values():
        note(milliseconds / 1000, output)


def main(kind, path, preset, times, said=None):
    with open(times, "a") as out:
        def note(seconds, name):
            print(f"{seconds:.2f} {preset} {name}", file=out)

        if kind == "build":
            return of_ninja(path, note)
        with open(said, "a") as texts:
            of_ctest(path, preset, note, texts)


if __name__ == "__main__":
    main(*sys.argv[1:])
