"""Writes the reference: python -m reference_site PROJECT BUILD OUTPUT.

BUILD has the manual pages (share/man1). OUTPUT is put in place when all of it is written.
"""
from __future__ import annotations

import html
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

from . import c_pages, doc_pages, headers, manual_pages, python_pages, text

HERE = pathlib.Path(__file__).resolve().parent
TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - Assay</title>
<link rel="stylesheet" href="{root}style.css">
</head>
<body data-root="{root}">
<nav>
<p class="home"><a href="{root}index.html">Assay {version}</a></p>
<input id="search" type="search" placeholder="Search: / " aria-label="Search" autocomplete="off">
<ul id="found"></ul>
{nav}
</nav>
<main>
{body}
</main>
<script src="{root}search_index.js"></script>
<script src="{root}search.js"></script>
</body>
</html>
"""


class Site:
    def __init__(self, project, build, out):
        self.project, self.out = pathlib.Path(project), pathlib.Path(out)
        self.version = re.search(r"project\(assay VERSION ([0-9.]+)", (self.project / "CMakeLists.txt").read_text()).group(1)
        self.names = text.Names()
        self.headers = headers.parse_all(self.project / "include/assay")
        self.modules = python_pages.modules(self.project / "python/assay")
        self.public = {n: m for n, m in self.modules.items() if python_pages.is_public(n)}
        self.manuals = {p.stem: p.read_text(encoding="utf-8") for p in sorted((pathlib.Path(build) / "share/man1").glob("*.1"))}
        if not self.manuals:
            sys.exit(f"no manual pages in {build}/share/man1; build the target assay_share")
        self.docs = doc_pages.Docs(self.project, self.out)
        self.index = []
        c_pages.add_names(self.headers, self.names)
        for module in self.public.values():
            for name, _, place, _ in python_pages.entries(self.modules, module):
                self.names.add(name, place)

    def write(self, place, title, body):
        root = "../" * place.count("/")
        path = self.out / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEMPLATE.format(title=html.escape(title), root=root, version=self.version, nav=self.nav(root), body=body), encoding="utf-8")

    def nav(self, root):
        def listing(title, index, rows):
            links = "".join(f'<li><a href="{root}{place}">{html.escape(name)}</a></li>' for name, place in rows)
            return f'<h2><a href="{root}{index}">{title}</a></h2><ul>{links}</ul>'

        packages = [(n, m.place) for n, m in self.public.items() if n.count(".") <= 1]
        return (listing("Pages", "pages/docs/README.html", [])
                + listing("C", "c/index.html", [(h.name, c_pages.place(h)) for h in self.headers])
                + listing("Python", "python/index.html", packages)
                + listing("Manual", "man/index.html", []))

    def overview(self, place, title, rows):
        body = "".join(f'<tr><td><a href="{os.path.relpath(to, os.path.dirname(place))}">{html.escape(name)}</a></td><td>{html.escape(about)}</td></tr>'
                       for name, to, about in rows)
        self.write(place, title, f'<h1>{title}</h1><table class="members">{body}</table>')

    def make(self):
        for header in self.headers:
            self.write(c_pages.place(header), header.name, c_pages.body(header, self.names))
            self.index += c_pages.entries(header)
        self.overview("c/index.html", "C headers", [(h.name, c_pages.place(h), " ".join(h.overview).split(". ")[0]) for h in self.headers])
        for module in self.public.values():
            self.write(module.place, module.name, python_pages.body(self.modules, module, self.names))
            self.index += python_pages.entries(self.modules, module)
        self.overview("python/index.html", "Python modules", [(n, m.place, m.doc.split("\n")[0]) for n, m in self.public.items()])
        rows = []
        for name, source in self.manuals.items():
            about = re.search(r'^\.SH NAME\n.*? \\- (.*)$', source, re.M).group(1).replace("\\-", "-").replace("\\[aq]", "'")
            rows.append((name, f"man/{name}.html", about))
            self.index.append((name.replace("-", " "), "manual page", f"man/{name}.html", about))
            self.write(f"man/{name}.html", name, manual_pages.body(source, self.manuals))
        self.overview("man/index.html", "Manual pages", rows)
        self.docs.make()
        for source, (place, title, body) in self.docs.pages.items():
            self.write(place, title, body)
            if source.endswith(".md"):
                self.index.append((title, "page", place, source))
        home = self.docs.pages["docs/README.md"][2]
        self.write("index.html", "Reference", re.sub(r'((?:href|src)=")(?![a-z]+:|#)', r"\1pages/docs/", home))
        index = json.dumps([list(e) for e in self.index], ensure_ascii=False, separators=(",", ":"))
        (self.out / "search_index.js").write_text(f"const SEARCH_INDEX = {index};\n".replace("</", "<\\/"), encoding="utf-8")
        for name in ("search.js", "style.css"):
            shutil.copy(HERE / name, self.out / name)


def main(project, build, output):
    output = pathlib.Path(output).resolve()
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=output.name + ".") as folder:
        site = Site(project, build, pathlib.Path(folder) / "new")
        site.make()
        if site.docs.broken:
            sys.exit("links to files that are not there:\n" + "\n".join(site.docs.broken))
        if output.exists():
            output.rename(pathlib.Path(folder) / "old")
        (pathlib.Path(folder) / "new").rename(output)
    print(f"{output}: {sum(1 for _ in output.rglob('*.html'))} pages, {len(site.index)} names to search for")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
