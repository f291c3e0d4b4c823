#!/usr/bin/env python3
"""Checks that words which have been given up stay out: check_words.py PROJECT.

One word a thing, the word that the field uses, in code, messages and pages alike. A retired word may stand in a few places, which its
row names. Decisions (docs/adr), results and the changelog keep the words of their day. A word counts within identifiers, too:
`crowd` is found in `assay_crowd_set`, and not in `crowded`.
"""
import fnmatch
import pathlib
import re
import sys

# Word, what to write, and where it may stand (shell patterns of paths).
WORDS = [
    ("crowd", "CPU contention", []),
    ("foreign", "external engine; or say whose it is", ["tests/ir/test_ir.c", "tests/frontends/*"]),
    ("misshapen", "shape mismatch", []),
    ("assay_machine", "assay_evaluator, or say which computer", []),
    ("stretch", "segment, layer range or run", ["src/ops/conv/resize*", "src/ranges/*", "src/eval/gradients/*", "src/diagnose/proposals.c", "tests/ops/*"]),
    ("stretches", "segments, layer ranges or runs", ["src/edit/broadcasts.c", "src/ranges/broadcasts.h"]),
    ("licence", "accuracy gate", ["README.md"]),
    ("licensed", "gated", ["README.md", "src/report/json.c", "bench/fp32_settings.py"]),
    ("assay_twice", "assay_dd", []),
    ("assay_held", "assay_value_slot", []),
    ("hunt", "search", []),
    ("hunts", "searches", []),
    ("wish", "request", []),
    ("wishes", "requests", []),
    ("shadow", "running bound", ["src/ir/graph.c"]),
    ("shadows", "running bounds", []),
    ("foresee", "predict", []),
    ("foresees", "predicts", []),
    ("plant", "inject", []),
    ("planted", "injected", ["src/report/json.c", "bench/mutation/judge.py", "bench/truth_figures.py"]),
    ("heed", "respect", []),
    # Only as names of code: English has the words, too.
    ("search_look", "search_screening", []),
    (r"assay_(?:look|looks|kept|told|say|room)(?:_[a-z]+)*", "the name of what it does: screen, own, infer, log, capacity", []),
    (r"(?<!_)look(?:_at_[a-z]+|_past|_t)", "inspect, probe or screen", []),
    (r"(?<!_)(?:tell|say)_[a-z]+", "report, print or log", []),
    (r"(?<!_)(?:told|kept|room)_t", "the name of what it holds", []),
    ("assay_executor_run_told", "assay_executor_run_progress", []),
    (r"(?<!_)(?:most|least)_[a-z]+", "max or min", ["src/frontends/polygraphy/*"]),
    # Order in time or in a graph, and what a thing is not.
    ("one behind the other", "one after the other", []),
    (r"(?<!there )(?:is|was) no (?:error|number|tensor|size|type|layout|multiple of|float|fault)", "is not an error, is not a number, ...", []),
    # Models are trained, and batch normalization trains.
    ("train", "row pipeline", ["src/ops/norm/norm.c", "src/passes/no_ops.c", "fuzz/make_corpus.py"]),
    ("trains", "row pipelines", ["src/backends/layers/pointwise_nodes.c", "src/plan/plan.c"]),
]
PLACES = ("src", "include", "docs", "tests", "bench", "fuzz", "examples", "integrations", "README.md", "CONTRIBUTING.md", "ROADMAP.md")
LEFT_OUT = ("docs/adr/*", "bench/results/*", "tests/check_words.py", "tests/models/*")
ENDINGS = {".c", ".h", ".inc", ".cc", ".md", ".py", ".sh", ".txt", ".html", ""}


def files_of(root):
    for place in PLACES:
        top = root / place
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and path.suffix in ENDINGS and not any(fnmatch.fnmatch(name, p) for p in LEFT_OUT) and "__pycache__" not in name:
                yield name, path


def main(root):
    root = pathlib.Path(root)
    rows = [(word, instead, allowed, re.compile(rf"(?<![a-z]){word}(?![a-z])", re.I)) for word, instead, allowed in WORDS]
    faults, used, count = [], set(), 0
    for name, path in files_of(root):
        count += 1
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
            for word, instead, allowed, pattern in rows:
                if not pattern.search(line):
                    continue
                places = [p for p in allowed if fnmatch.fnmatch(name, p)]
                used.update((word, p) for p in places)
                if not places:
                    faults.append(f"{name}:{number}: '{word}': write '{instead}'")
    faults += [f"tests/check_words.py: '{word}' is not in {place} any more: take it out of the row"
               for word, _, allowed in WORDS for place in allowed if (word, place) not in used]
    print("\n".join(faults + [f"{count} files, {len(faults)} retired words"]))
    return 1 if faults or count < 1000 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
