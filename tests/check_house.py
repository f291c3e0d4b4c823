#!/usr/bin/env python3
"""Checks how src/ is laid out: check_house.py PROJECT.

Every folder has a README.md whose named files exist, and no more than 45 files; files begin with a sentence that says what
they are; struct, union and enum tags of ours are defined once, since files that see two would compile with either. Verbs that
are clients of the library include its public headers, and else what reads a command line and base/; so do the headers of cli/
that they include.
"""
import collections
import pathlib
import re
import sys

MAX_FILES = 45
# Verbs over the public API alone, in src/cli/verbs.
CLIENTS = ("cmd_audit.c", "cmd_certify.c", "cmd_check.c", "cmd_compare.c", "cmd_debug_batch.c", "cmd_debug_environment.c", "cmd_debug_passes.c",
           "cmd_debug_precision.c",
           "cmd_debug_reduce.c", "cmd_debug_tactics.c", "cmd_edit.c", "cmd_run.c", "cmd_tune.c")
CLIENT_INCLUDE = re.compile(r"<.*>|\"(?:base|cli)/.*\"|\"io/json.h\"")  # the last: what cli.h prints JSON by
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(<[^>]+>|"[^"]+")', re.M)
TAG = re.compile(r"^(?:typedef\s+)?(struct|union|enum)\s+(assay_\w+)\s*\{", re.M)  # others are of one file
NAMED = re.compile(r"`([\w/.*-]+\.(?:c|h|inc))`")


def named_files(folder, root):
    """What a README names that is not there: below its folder, beside it, or by a path from src/ or the project."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    for name in NAMED.findall(text):
        if not any(list(top.glob(name)) for top in (folder.parent, root / "src", root)) and not list(folder.rglob(name)):
            yield name


def layout_faults(root):
    for folder in sorted(p for p in (root / "src").rglob("*") if p.is_dir()):
        files = [p for p in folder.iterdir() if p.is_file() and p.name != "README.md"]
        where = folder.relative_to(root)
        sources = [p for p in files if p.suffix in (".c", ".h", ".inc")]
        if len(files) > MAX_FILES:
            yield f"{where}: {len(files)} files, {MAX_FILES} at most: make sub-folders"
        if sources and not (folder / "README.md").exists():
            yield f"{where}: no README.md says what it is and where to start"
        elif sources:
            yield from (f"{where}/README.md names {name}, which is not there" for name in named_files(folder, root))


def tag_faults(root):
    seen = collections.defaultdict(list)
    for top in ("src", "include"):
        for path in sorted((root / top).rglob("*.[ch]")):
            for kind, tag in TAG.findall(path.read_text(encoding="utf-8")):
                seen[tag].append(f"{path.relative_to(root)} ({kind})")
    for tag, places in sorted(seen.items()):
        if len(places) > 1:
            yield f"tag '{tag}' is defined in {', '.join(places)}: give one of them another name"


def opening_faults(root):
    for top in ("src", "include", "tests", "fuzz", "bench", "examples", "integrations"):
        for path in sorted((root / top).rglob("*.[ch]")):
            if not path.read_text(encoding="utf-8").startswith("//"):
                yield f"{path.relative_to(root)}: begins with no comment that says what it is"


def client_faults(root):
    for name in CLIENTS:
        todo, seen = [f"cli/verbs/{name}"], set()
        while todo:
            file = todo.pop()
            path = root / "src" / file
            seen.add(file)
            for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if not CLIENT_INCLUDE.fullmatch(included):
                    yield f"{name}: {path.relative_to(root)} includes {included}: it is a client of <assay/...>, with base/ and cli/ beside"
                elif included.startswith('"cli/') and included[1:-1] not in seen and included[1:-1].endswith(".h"):
                    todo.append(included[1:-1])


def test_faults(root):
    """Tests in Python run only where tests/CMakeLists.txt or tests/python/tests.cmake name them."""
    named = "".join((root / "tests" / name).read_text(encoding="utf-8") for name in ("CMakeLists.txt", "python/tests.cmake"))
    for path in sorted((root / "tests").glob("*/test_*.py")):
        if path.stem not in named:
            yield f"{path.relative_to(root)} is not named in tests/CMakeLists.txt: it never runs"


def main(root):
    root = pathlib.Path(root)
    faults = [*layout_faults(root), *opening_faults(root), *tag_faults(root), *client_faults(root), *test_faults(root)]
    print("\n".join(faults + [f"{len(faults)} faults of the layout of src/"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
