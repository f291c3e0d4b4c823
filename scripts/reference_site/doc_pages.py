"""Pages of Markdown, and the files that they link to."""
from __future__ import annotations

import html
import os
import pathlib
import re
import shutil

from markdown_it import MarkdownIt

FIRST = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "ROADMAP.md", "examples/README.md", "python/README.md")
IMAGES = (".svg", ".png", ".jpg")
LINK = re.compile(r'(<(?:a|img) [^>]*?(?:href|src)=")([^"]*)(")')


def slug(text):
    """What a heading's place is called, as code hosts do it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def rendered(text):
    """HTML of a page; headings are places."""
    md = MarkdownIt("commonmark").enable("table")
    tokens, seen = md.parse(text), {}
    for heading, inline in zip(tokens, tokens[1:]):
        if heading.type == "heading_open":
            name = slug("".join(t.content for t in inline.children))
            n = seen[name] = seen.get(name, -1) + 1
            heading.attrSet("id", f"{name}-{n}" if n else name)
    return md.renderer.render(tokens, md.options, {})


class Docs:
    """All pages that can be reached from docs/ and from the files of the first folder."""

    def __init__(self, root, out):
        self.root, self.out = pathlib.Path(root), pathlib.Path(out)
        self.todo = [p.relative_to(self.root).as_posix() for p in sorted((self.root / "docs").rglob("*.md"))]
        self.todo += [name for name in FIRST if (self.root / name).exists()]
        self.pages = {}  # source: (place, title, HTML)
        self.broken = []

    @staticmethod
    def place(source):
        """Where a file of the project is in the site."""
        if source.endswith(".md"):
            return "pages/" + source.removesuffix(".md") + ".html"
        return "pages/" + source.rstrip("/.") + ("" if source.endswith(IMAGES) else ".html")

    def target(self, source, link):
        """What a link of a page becomes; files of the project are taken along."""
        if re.match(r"[a-z]+:|#|$", link):
            return link
        path, _, anchor = link.partition("#")
        wanted = os.path.normpath(os.path.join(os.path.dirname(source), path))
        full = self.root / wanted
        if wanted.startswith("..") or not full.exists():
            self.broken.append(f"{source}: {link}")
            return link
        here = os.path.dirname(self.place(source))
        if wanted == "include/assay":
            to = "c/index.html"
        elif re.fullmatch(r"include/assay/\w+\.h", wanted):
            to = f"c/{full.stem}.html"
        else:
            if full.is_dir() and (full / "README.md").exists():
                wanted += "/README.md"
            if wanted not in self.pages and wanted not in self.todo:
                self.todo.append(wanted)
            to = self.place(wanted)
        return os.path.relpath(to, here) + (f"#{anchor}" if anchor else "")

    def listing(self, source):
        names = sorted(p.name + ("/README.md" if (p / "README.md").exists() else "") for p in (self.root / source).iterdir()
                       if (p.is_file() or (p / "README.md").exists()) and not p.name.startswith("."))
        rows = "".join(f'<li><a href="{self.target(source + "/.", n)}">{html.escape(n)}</a></li>' for n in names)
        return f"<h1>{source}</h1><ul>{rows}</ul>"

    def render(self, source):
        full = self.root / source
        if full.is_dir():
            return source, self.listing(source)
        if source.endswith(".md"):
            text = full.read_text(encoding="utf-8")
            body = LINK.sub(lambda m: m.group(1) + html.escape(self.target(source, html.unescape(m.group(2)))) + m.group(3), rendered(text))
            title = re.search(r"^# (.*)$", text, re.M)
            return (title.group(1).replace("`", "") if title else source), body
        if source.endswith(IMAGES):
            place = self.out / self.place(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(full, place)
            return None, None
        return source, f"<h1>{source}</h1><pre><code>{html.escape(full.read_text(encoding='utf-8'))}</code></pre>"

    def make(self):
        while self.todo:
            source = self.todo.pop()
            if source in self.pages:
                continue
            self.pages[source] = None
            title, body = self.render(source)
            if body is not None:
                self.pages[source] = (self.place(source), title, body)
        self.pages = {s: p for s, p in sorted(self.pages.items()) if p}
