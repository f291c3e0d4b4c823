#!/usr/bin/env python3
"""Makes the reference (scripts/reference_site), and looks at it.

    test_reference.py BUILD CC LIBRARY PYTHON MODEL

Links lead somewhere, within the site or to the web; pages load nothing from elsewhere; all public names are described and can be
searched for; code in comments of headers compiles, that in docstrings of `assay` runs (PYTHON: with numpy; MODEL: one to run).
"""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts"))
from reference_site import headers, python_pages, text  # noqa: E402
from reference_site.__main__ import Site, main as write_site  # noqa: E402

# What the code in comments calls the caller's own variables, but for `options`, which are of what is created.
VARIABLES = {"model": "assay_model_t*", "inputs": "assay_samples_t*", "golden": "assay_golden_t*", "some_inputs": "assay_samples_t*",
             "some_golden": "assay_golden_t*", "check": "assay_check_t*", "whole": "assay_check_t*", "audit": "assay_audit_t*",
             "write": "assay_report_fn_t*", "user": "void*", "data": "const void*", "size": "size_t", "path": "const char*"}
# Docstrings that need what the test's environment lacks: other packages, a cluster.
NOT_RUN = ("assay.backend", "assay.polygraphy", "assay.ray")


class Page(html.parser.HTMLParser):
    """Links, anchors and what is loaded."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.ids, self.open, self.faults = [], [], set(), [], []
        self.feed(path.read_text(encoding="utf-8"))
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            if attrs["id"] in self.ids:
                self.faults.append(f"two places are called {attrs['id']}")
            self.ids.add(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])
        elif tag in ("link", "script", "img"):
            self.loads.append(attrs.get("href") or attrs.get("src"))
        if tag in ("section", "div", "table", "ul", "ol", "dl", "pre", "code", "main", "nav", "a"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("section", "div", "table", "ul", "ol", "dl", "pre", "code", "main", "nav", "a"):
            if not self.open or self.open.pop() != tag:
                self.faults.append(f"</{tag}> closes something else")


def link_faults(site):
    pages = {p.relative_to(site).as_posix(): Page(p) for p in site.rglob("*.html")}
    for name, page in pages.items():
        yield from (f"{name}: {fault}" for fault in page.faults)
        for link in page.loads + page.links:
            if re.match(r"(https?|mailto):", link):
                if link in page.loads:
                    yield f"{name} loads {link}"
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not (site / target).is_file():
                yield f"{name}: nothing is at {link}"
            elif anchor and target in pages and anchor not in pages[target].ids:
                yield f"{name}: no such place: {link}"
    print(f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links")


def search_faults(site, library):
    """Each name of the index is where it says; what the library exports is there."""
    code = (site / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(code.removeprefix("const SEARCH_INDEX = ").rstrip(";\n").replace("<\\/", "</"))
    ids = {}
    for name, _, place, _ in index:
        path, _, anchor = place.partition("#")
        if path not in ids:
            ids[path] = Page(site / path).ids
        if anchor and anchor not in ids[path]:
            yield f"search: {name} is not at {place}"
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = set(re.findall(r" T (assay_\w+)$", symbols, re.M))
    known = {entry[0] for entry in index}
    yield from (f"search: {name} is not in the index" for name in sorted(exported - known))
    if not exported:
        yield f"{library} exports nothing"


def c_program(parsed):
    """A C file with a function for each piece of code in the comments of the headers."""
    out, count = ["#include <assay/assay.h>", "#include <stdbool.h>"], 0
    for header in parsed:
        comments = [header.overview, *(i if isinstance(i, list) else i.comment for s in header.sections for i in s.items
                                       if isinstance(i, list) or not i.block_comment)]
        for fragment in (f for lines in comments for f in text.fragments(lines)):
            # Behind a statement stands what it does; `...` is what the caller does.
            lines = [re.sub(r"([;)]) {2,}\w.*$| to a \w+$", r"\1", line).rstrip() for line in fragment.split("\n")]
            lines = [re.sub(r"\.\.\.( .*)?$", ";", line) for line in lines]
            lines = [line + ";" if line.endswith(")") and not line.lstrip().startswith("if") and "&&" not in line else line for line in lines]
            code = "\n".join(lines)
            declared = set(re.findall(r"\b(\w+)(?: = [^;]*)?;", "\n".join(x for x in lines if re.match(r"\s*(?:const )?\w+\*? \w", x))))
            made = re.search(r"assay_(\w+?)_(?:create|report)\(", code)
            used = {name: kind for name, kind in VARIABLES.items() if re.search(rf"\b{name}\b", code) and name not in declared}
            if re.search(r"&options\b", code) and made:
                used["options"] = f"assay_{made.group(1)}{'_report' if '_report(' in code else ''}_options_t"
            count += 1
            parameters = ", ".join(f"{kind} {name}" for name, kind in used.items()) or "void"
            out.append(f'#line 1 "{header.name}, code {count}"\nvoid fragment_{count}({parameters});\n'
                       f"void fragment_{count}({parameters}) {{\n{code}\n}}")
    return "\n".join(out) + "\n", count


def c_faults(parsed, work, cc):
    code, count = c_program(parsed)
    source = work / "fragments.c"
    source.write_text(code, encoding="utf-8")
    done = subprocess.run([cc, "-std=c17", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", f"-I{PROJECT}/include", source],
                          capture_output=True, text=True)
    if done.returncode:
        yield f"code in comments of headers does not compile:\n{done.stderr}"
    print(f"{count} pieces of code in headers")


def python_faults(modules, work, python, model):
    """The code of docstrings, in a folder with model.onnx, whose first input `image` is of random numbers."""
    count = 0
    setup = ("import shutil, sys\nimport numpy as np\nimport assay\nshutil.copy(sys.argv[1], 'model.onnx')\n"
             "made = assay.load('model.onnx').inputs[0]\n"
             "image = np.random.default_rng(1).random([s if isinstance(s, int) else 1 for s in made.shape], dtype=np.float32)\n")
    for name, module in modules.items():
        if not python_pages.is_public(name) or name.startswith(NOT_RUN):
            continue
        docs = [module.doc] + [python_pages.ast.get_docstring(n) or "" for _, n in python_pages.offered(modules, module)]
        for fragment in (f for doc in docs for f in text.fragments(doc.split("\n"))):
            if not re.search(r"^ *(import|from) ", fragment):
                continue
            code = "\n".join(line[4:] if line.startswith("    ") else line.lstrip() for line in fragment.split("\n"))
            done = subprocess.run([python, "-c", setup + code, model], cwd=work, capture_output=True, text=True)
            count += 1
            if done.returncode:
                yield f"the code in the docstring of {name} fails:\n{code}\n{done.stderr}"
    print(f"{count} pieces of code in docstrings")
    if not count:
        yield "no code was found in docstrings"


def main(build, cc, library, python, model):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        write_site(PROJECT, build, work / "site")
        site = Site(PROJECT, build, work / "unused")
        faults = [*link_faults(work / "site"), *search_faults(work / "site", library),
                  *(f"nothing is said of {name}" for name in [*headers.undocumented(site.headers), *python_pages.undocumented(site.modules)]),
                  *c_faults(site.headers, work, cc), *python_faults(site.modules, work, python, model)]
    print("\n".join([*faults, f"{len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
