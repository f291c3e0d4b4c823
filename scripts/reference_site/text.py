"""Comments and docstrings as HTML: paragraphs, indented lists of parameters, code, and links of names."""
from __future__ import annotations

import html
import re

# Of a list of terms: "name, name   what they mean", or the same indented.
FLUSH_TERM = re.compile(r"^()(\*{0,2}[A-Za-z_]\w*(?:, \*{0,2}\w+)*) {2,}(\S.*)$")
TERM = re.compile(r"^( {2,4})(\S(?:.*?\S)?) {2,}(\S.*)$")
LABEL = re.compile(r"^(Errors and threads|Errors|Threads|Returns|Raises)\b")
NAME = re.compile(r"\b(?:assay_\w+|ASSAY_\w+|assay\.\w+(?:\.\w+)*)(?:\(\))?")
CODE = re.compile(r"[;{}]|\w\(.*\)|^\s*(?:import|from|with|for|if|\$) ")


class Names:
    """Where each public name is described."""

    def __init__(self):
        self.places = {}
        self.used = set()

    def add(self, name, place):
        self.places.setdefault(name, place)

    def linked(self, text, root="", own=None):
        """HTML of a text whose known names are links; root: the way to the site's folder."""
        out, end = [], 0
        for match in NAME.finditer(text):
            place = self.places.get(match.group(0).removesuffix("()"))
            if place and match.group(0).removesuffix("()") != own:
                out += [html.escape(text[end:match.start()], False), f'<a href="{root}{place}">{match.group(0)}</a>']
                end = match.end()
        return "".join(out) + html.escape(text[end:], False)


def kind_of(line, after_text):
    """What an indented block is, by its first line: code (a statement or a call behind an empty line, or an end of a statement),
    terms with what they mean, or lines that stay as they are; None: the text before goes on."""
    term = TERM.match(line)
    if (not after_text or re.search(r";( {2,}|$)", line)) and CODE.search(term.group(2) if term else line):
        return "code"
    return "terms" if term else None if after_text else "plain"


def blocks(lines):
    """(kind, lines): 'text', 'label', 'terms', 'code', 'plain'."""
    kind, block, found = None, [], []

    def close():
        nonlocal block
        while block and not block[-1].strip():
            block.pop()
        if block:
            found.append((kind, block))
        block = []

    for n, line in enumerate(lines):
        indented = line.startswith("  ")
        if not line.strip():
            # Code goes on behind an empty line.
            following = next((x for x in lines[n:] if x.strip()), "")
            if kind == "code" and following.startswith("  "):
                block.append("")
            else:
                close()
                kind = None
            continue
        if FLUSH_TERM.match(line):
            if kind != "terms" or block[0].startswith(" "):
                close()
            kind = "terms"
        elif not indented:
            if kind not in ("text", "label") or LABEL.match(line):
                close()
                kind = "label" if LABEL.match(line) else "text"
        elif kind == "label" and block:
            pass  # the label's text goes on
        elif kind not in ("terms", "code", "plain"):
            new = kind_of(line, kind == "text")
            if new:
                close()
                kind = new
        block.append(line)
    close()
    return found


def terms(lines):
    """(term, text) of an indented list; lines that go on are deeper."""
    found = []
    for line in lines:
        match = FLUSH_TERM.match(line) or TERM.match(line)
        if match and (not found or len(match.group(1)) <= found[0][2]):
            found.append([match.group(2), match.group(3), len(match.group(1))])
        else:
            found[-1][1] += " " + line.strip()
    return [(term, text) for term, text, _ in found]


def inline(text, names, root, own=None):
    """A text with `code` and links."""
    parts = re.split(r"(`[^`]+`)", text)
    out = []
    for part in parts:
        if part.startswith("`") and part.endswith("`") and len(part) > 2:
            out.append(f"<code>{names.linked(part[1:-1], root, own)}</code>")
        else:
            out.append(names.linked(part, root, own))
    return "".join(out)


def rendered(lines, names, root="", own=None):
    """HTML of the lines of a comment."""
    out = []
    for kind, block in blocks(lines):
        if kind in ("code", "plain"):
            indent = min(len(x) - len(x.lstrip()) for x in block if x.strip())
            out.append("<pre><code>" + "\n".join(names.linked(x[indent:], root, own) for x in block) + "</code></pre>")
        elif kind == "terms":
            rows = (f"<dt><code>{html.escape(t, False)}</code></dt><dd>{inline(text, names, root, own)}</dd>" for t, text in terms(block))
            out.append("<dl>" + "".join(rows) + "</dl>")
        elif kind == "label":
            text = " ".join(x.strip() for x in block)
            label = LABEL.match(text).group(1)
            rest = text[len(label):].lstrip(": ")
            out.append(f'<p class="label"><b>{label}</b> {inline(rest, names, root, own)}</p>')
        else:
            out.append(f"<p>{inline(' '.join(x.strip() for x in block), names, root, own)}</p>")
    return "\n".join(out)


def fragments(lines):
    """The blocks of code in a comment."""
    return ["\n".join(block) for kind, block in blocks(lines) if kind == "code"]
