#!/usr/bin/env python3
"""Runs the commands of the documentation, and holds their output against what the pages show.

    test_pages.py ASSAY [--index] [--update] [PAGE...]

Without a PAGE all of them. --index looks whether each verb has a page, each page is in the index and each link
leads somewhere. --update writes into the pages what the commands print now. pages.py says how pages are written.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pages

PROJECT = pathlib.Path(__file__).resolve().parents[2]
INDEX = PROJECT / "docs/README.md"
TIMEOUT_S = 120

# What is shown, what is printed, whether that is the same.
SAME = [
    (["a 1.25"], ["a 1.26"], True),
    (["a 1.25"], ["a 1.27"], False),
    (["2.5e-07"], ["2.4e-07"], True),
    (["2.5e-07"], ["2.5e-06"], False),
    (["12 nodes"], ["13 nodes"], False),
    (["in … s"], ["in 0.03 s"], True),
    (["a", "…", "d"], ["a", "b", "c", "d"], True),
    (["a", "…"], ["b"], False),
    (["a"], ["a", "b"], False),
    ([], ["a"], False),
]


def test_matching():
    wrong = [f"{shown} and {printed}: not {same}" for shown, printed, same in SAME if pages.output_is(shown, printed) != same]
    text = "x\n```console\n$ a \\\n> b\nout\n$ c\n```\n"
    if pages.written(pages.parse(text)) != text:
        wrong.append(f"{text!r} becomes {pages.written(pages.parse(text))!r}")
    return wrong


def fill(folder, models, name):
    """Puts the models into the folder that a page runs in."""
    source = PROJECT / "tests/models/small" if name == "small" else models / name
    if name and not source.is_dir():
        made = subprocess.run([sys.executable, PROJECT / "scripts/make_tutorials.py", models, name])
        if made.returncode or not source.is_dir():
            raise ValueError(f"there are no models '{name}'")
    if name:
        shutil.copytree(source, folder, dirs_exist_ok=True)


def environment(assay):
    """As in a user's shell where `assay` is found, and nothing is said of it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
    return {**env, "PATH": f"{assay.parent}:{env['PATH']}", "LC_ALL": "C.UTF-8"}


def run_page(path, assay, models, update):
    """What is wrong with a page, as lines."""
    text = path.read_text()
    parts = pages.parse(text)
    wrong, code = [], 0
    commands = [p for p in parts if isinstance(p, pages.Command)]
    if not commands:
        return []
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, models, pages.folder_of(text))
        for command in commands:
            done = subprocess.run(["bash", "-c", f"(exit {code}); {command.text}"], cwd=folder, env=environment(assay), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
            code, lines = done.returncode, [l.rstrip() for l in done.stdout.splitlines()]
            if code < 0 or code >= 126:
                wrong.append(f"{path.name}: '{command.text}' ends with {code}:\n{done.stdout}")
            elif update:
                command.shown = pages.updated(command.shown, lines)
            elif not pages.output_is(command.shown, lines):
                wrong.append(f"{path.name}: '{command.text}' prints other lines:\n{pages.difference(command.shown, lines)}")
    if update and pages.written(parts) != text:
        path.write_text(pages.written(parts))
        print(f"written: {path.relative_to(PROJECT)}")
    return wrong


def verbs(assay):
    """All verbs, those of two words with '-' between."""
    def listed(*words):
        out = subprocess.run([assay, *words, "-h"], stdout=subprocess.PIPE, text=True, check=True).stdout
        return re.findall(r"^  (\S+)  +(.*)$", out, re.M)
    for name, summary in listed():
        if f"assay {name} -h' lists them" not in summary:
            yield name
            continue
        for second, _ in listed(name):
            yield f"{name}-{second}"


def check_index(assay):
    """Each verb has a page, each page is in the index, and each link of a page leads to something."""
    wrong = []
    here = {p.stem for p in (PROJECT / "docs/verbs").glob("*.md")}
    wanted = set(verbs(assay))
    wrong += [f"docs/verbs/{name}.md is missing" for name in sorted(wanted - here)]
    wrong += [f"docs/verbs/{name}.md: there is no such verb" for name in sorted(here - wanted)]
    linked = set()
    for page in documents():
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", re.sub(r"(?s)```.*?```", "", page.read_text())):
            if re.match(r"\w+:", target):
                continue
            to = (page.parent / target).resolve()
            if not to.exists():
                wrong.append(f"{page.relative_to(PROJECT)}: there is no '{target}'")
            if page == INDEX:
                linked.add(to)
    for page in documents():
        if page not in linked and page != INDEX and PROJECT / "docs" in page.parents and "adr" not in page.parts:
            wrong.append(f"docs/README.md does not name {page.relative_to(PROJECT)}")
    return wrong


def documents():
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("assay")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--index", action="store_true", help="check the index and links, too")
    parser.add_argument("--update", action="store_true", help="write into the pages what the commands print")
    options = parser.parse_intermixed_args()
    assay = pathlib.Path(options.assay).resolve()
    wrong = test_matching() + (check_index(assay) if options.index else [])
    chosen = [p.resolve() for p in options.pages] or documents()
    with tempfile.TemporaryDirectory() as models:
        for page in chosen:
            wrong += run_page(page, assay, pathlib.Path(models), options.update)
    print("\n".join(wrong))
    print(f"{len(chosen)} pages, {len(wrong)} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
