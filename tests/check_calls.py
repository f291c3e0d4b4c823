#!/usr/bin/env python3
"""Checks which files call which: check_calls.py BUILD ARGUED.

Reads the symbols of the objects of src in a build. A folder calls itself and those before it (the
order of check_includes.py), and no files of a folder call each other in a circle, but for what
ARGUED lists, each with its reason:

  table FILE PATTERN: why      FILE holds a table whose rows are symbols of these names, or, where the pattern ends
                               with .inc, those that this file names; rows are not calls
  up FILE FILE: why            a call into a later folder
  circle FILE FILE...: why     exactly these files

An entry that nothing needs any more is an error as well.
"""
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

from check_includes import ORDER

PROJECT = pathlib.Path(__file__).resolve().parent.parent


def source_of(obj, build):
    """src/... of an object file; None: it is of no file of src."""
    match = re.fullmatch(r"(.*?)/?CMakeFiles/[^/]+\.dir/(.*)\.o", str(obj.relative_to(build)))
    if not match:
        return None
    parts = []
    for part in (match.group(1) + "/" + match.group(2)).strip("/").split("/"):
        parts = parts[:-1] if part == "__" else parts + [part]
    name = "/".join(parts)
    known = name.startswith("src/") and parts[1] in ORDER and (PROJECT / name).exists()
    return name if known else None


def read_calls(build):
    """{(caller, callee): symbols} over the files of src."""
    objects = {}
    for obj in build.rglob("*.o"):
        if source := source_of(obj, build):
            objects.setdefault(source, obj)
    by_object = {str(obj): source for source, obj in objects.items()}
    listed = subprocess.run(["nm", "-A", *by_object], capture_output=True, text=True, check=True).stdout
    defined, wanted = {}, []
    for line in listed.splitlines():
        obj, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        symbol = symbol.split(".")[0]
        if kind == "U":
            wanted.append((by_object[obj], symbol))
        elif kind in "TDRBVWi":
            defined.setdefault(symbol, by_object[obj])
    calls = collections.defaultdict(set)
    for source, symbol in wanted:
        target = defined.get(symbol)
        if target and target != source:
            calls[source, target].add(symbol)
    return len(objects), calls


def read_argued(path):
    argued = {"table": [], "up": [], "circle": []}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        head, colon, why = line.partition(": ")
        kind, *names = head.split()
        if kind not in argued or not colon or not why.strip():
            sys.exit(f"{path}:{number}: neither 'table', 'up' nor 'circle' with a reason")
        argued[kind].append((number, names))
    return argued


def circles_of(arrows):
    """The strongly connected parts of more than one file (R. Tarjan, Depth-first search and linear
    graph algorithms, SIAM J. Comput. 1, 1972), without recursion."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(arrows):
        if root in index:
            continue
        work = [(root, iter(sorted(arrows[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(arrows.get(target, ())))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = stack[stack.index(node):]
                    del stack[stack.index(node):]
                    on_stack.difference_update(part)
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def is_row(symbol, pattern):
    if pattern.endswith(".inc"):
        return re.search(rf"\b{symbol}\b", (PROJECT / pattern).read_text(encoding="utf-8")) is not None
    return fnmatch.fnmatchcase(symbol, pattern)


def without_rows(calls, tables):
    """The calls that are not rows of tables, and the numbers of entries that took something away."""
    used, left = set(), {}
    for (source, target), symbols in calls.items():
        rest = set(symbols)
        for number, names in tables:
            if names[0] == source:
                rows = {s for s in rest if any(is_row(s, p) for p in names[1:])}
                used |= {number} if rows else set()
                rest -= rows
        if rest:
            left[source, target] = rest
    return left, used


def main(build, argued_path):
    n_files, calls = read_calls(pathlib.Path(build))
    argued = read_argued(pathlib.Path(argued_path))
    calls, used = without_rows(calls, argued["table"])
    faults = []
    ups = {tuple(names): number for number, names in argued["up"]}
    arrows = collections.defaultdict(set)
    for (source, target), symbols in sorted(calls.items()):
        arrows[source].add(target)
        if ORDER.index(target.split("/")[1]) <= ORDER.index(source.split("/")[1]):
            continue
        if (source, target) in ups:
            used.add(ups[source, target])
            arrows[source].discard(target)
        else:
            faults.append(f"{source} calls {', '.join(sorted(symbols))} of the later folder {target}")
    known = {tuple(sorted(names)): number for number, names in argued["circle"]}
    for circle in circles_of(arrows):
        if tuple(circle) in known:
            used.add(known[tuple(circle)])
            continue
        faults.append("files call each other in a circle: " + " ".join(circle))
        faults += [f"    {s} -> {t}: {', '.join(sorted(n)[:4])}" for (s, t), n in sorted(calls.items())
                   if s in circle and t in circle and t in arrows[s]]
    for kind, entries in argued.items():
        faults += [f"{argued_path}:{number}: {kind} {' '.join(names)}: there is no such call any more"
                   for number, names in entries if number not in used]
    print("\n".join([*faults, f"{n_files} files, {len(calls)} arrows between them, {len(faults)} lines of faults"]))
    return 1 if faults or not n_files else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
