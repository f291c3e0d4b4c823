"""The public C headers, parsed: what each declares and what the comments beside it say.

They are regular (scripts/format sees to it): a comment stands above what it is about, or behind it; a block without an empty
line belongs together, so that a comment at its head is about all of it.
"""
from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass, field


@dataclass
class Member:
    """A field of a struct or a value of an enum."""
    name: str
    code: str
    comment: list[str]


@dataclass
class Item:
    """A declaration: kind is function, struct, enum, opaque, callback or macro."""
    kind: str
    name: str
    code: str
    comment: list[str] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    block_comment: bool = False  # the comment is that of the block's first declaration
    names: list[str] = field(default_factory=list)  # others that are declared by the way: of values, of members


@dataclass
class Section:
    title: str
    items: list = field(default_factory=list)  # Item, or a list of lines: a comment about nothing in particular


@dataclass
class Header:
    name: str
    overview: list[str]
    sections: list[Section]

    def items(self):
        return [i for s in self.sections for i in s.items if isinstance(i, Item)]


COMMENT = re.compile(r"^\s*// ?(.*)$")
TRAILING = re.compile(r"^(.*?\S)\s+// ?(.*)$")
RULE = re.compile(r"^-{4} (.*?)(?: -{4,})?$")  # its dashes may be on the line below
SKIPPED = re.compile(r'^(#include|#ifdef|#ifndef|#if|#else|#endif|extern "C"|\}$|#define ASSAY_\w+_H_$)')


def split_code(line):
    """The code of a line, and the comment behind it."""
    match = TRAILING.match(line)
    return (match.group(1), [match.group(2)]) if match else (line, [])


def item_of(code, comment):
    """The item that these lines of code declare, without its comment."""
    flat = re.sub(r"\s+", " ", code)
    if flat.startswith("#define"):
        return Item("macro", re.match(r"#define (\w+)", flat).group(1), code, comment)
    if flat.startswith("ASSAY_API"):
        return Item("function", re.search(r"(assay_\w+)\(", flat).group(1), code, comment)
    match = re.match(r"(?:typedef )?enum ?(\w*) ?\{(.*)\} ?(\w*);$", flat)
    if match:
        return Item("enum", match.group(3) or match.group(1), code, comment)
    match = re.match(r"(?:typedef )?struct (\w+) \{(.*)\} ?(\w*);$", flat)
    if match:
        return Item("struct", match.group(3) or match.group(1), code, comment)
    match = re.match(r"typedef struct \w+\*? (\w+);$", flat)
    if match:
        return Item("opaque", match.group(1), code, comment)
    match = re.match(r"typedef [^(]*?(\w+)\(.*\);$", flat)
    if match:
        return Item("callback", match.group(1), code, comment)
    match = re.match(r"\w+_fn_t (assay_\w+);$", flat)
    if match:
        return Item("function", match.group(1), code, comment)
    raise ValueError(f"what does this declare? {flat[:100]}")


def whole(lines, start):
    """How many lines a declaration takes from `start` on."""
    depth, n = 0, 0
    macro = lines[start].startswith("#define")
    for line in lines[start:]:
        n += 1
        code = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0] if not COMMENT.match(line) else "").rstrip()
        depth += code.count("{") + code.count("(") - code.count("}") - code.count(")")
        if (not code.endswith("\\")) if macro else (depth == 0 and code.endswith(";")):
            return n
    raise ValueError(f"no end of: {lines[start]}")


def members_of(lines, kind):
    """Fields or values between the braces, and the comments above and behind them."""
    found, pending, code, behind, column = [], [], "", [], None
    for line in lines:
        comment = COMMENT.match(line)
        if comment and column is not None and line.index("//") == column and not code:
            found[-1].comment.append(comment.group(1))  # goes on behind the member before
            continue
        if comment:
            pending.append(comment.group(1))
            column = None
            continue
        if not line.strip():
            pending, column = [], None
            continue
        part, trailing = split_code(line)
        code = f"{code} {part.strip()}".strip()
        behind += trailing
        end = "," if kind == "enum" else ";"
        if not code.endswith(end) or code.count("(") != code.count(")"):
            if kind != "enum" or line is not lines[-1]:
                continue
        found += [Member(name, code.rstrip(","), pending + behind) for name in names_in(code, kind)]
        column = line.index("//") if trailing else None
        pending, code, behind = [], "", []
    return found


def names_in(code, kind):
    if kind == "enum":
        return re.findall(r"\b(ASSAY_\w+)\b(?= =|,|$)", code)[:1] or [code]
    called = re.search(r"\(\*(\w+)\)\(", code)
    if called:
        return [called.group(1)]
    return [", ".join(re.findall(r"(\w+)(?:\[\w+\])?(?=,|;)", code))]


def parse(path):
    lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    overview = []
    while COMMENT.match(lines[len(overview)]):
        overview.append(COMMENT.match(lines[len(overview)]).group(1))
    header = Header(pathlib.Path(path).name, overview, [Section("")])
    i, pending, head, bare = len(overview), [], [], False
    while i < len(lines):
        line = lines[i]
        comment = COMMENT.match(line)
        if comment and RULE.match(comment.group(1)):
            header.sections.append(Section(RULE.match(comment.group(1)).group(1)))
        elif comment and not re.fullmatch("-{4,}", comment.group(1)):
            pending.append(comment.group(1))
        elif comment:
            pass
        elif not line.strip():
            if pending:
                header.sections[-1].items.append(pending)
            pending, head, bare = [], [], False
        elif SKIPPED.match(line):
            pending = []
        else:
            n = whole(lines, i)
            code, behind = [], []
            for one in lines[i:i + n]:
                part, trailing = split_code(one)
                code.append(part if not COMMENT.match(one) else one)
                behind += trailing
            item = make_item(lines[i:i + n], code, pending, behind)
            i += n - 1
            # A comment behind that goes on in the lines below.
            column = line.index("//") if behind and n == 1 and "//" in line else None
            while column is not None and COMMENT.match(lines[i + 1]) and lines[i + 1].index("//") == column:
                i += 1
                item.comment.append(COMMENT.match(lines[i]).group(1))
            if item.comment:
                head = item.comment if pending else head
            elif head:
                item.comment, item.block_comment = head, True
            if item.name not in {i.name for i in header.items()}:  # one of two of an #if
                header.sections[-1].items.append(item)
            pending = []
        i += 1
    return header


def make_item(lines, code, pending, behind):
    plain = "\n".join(part for part in code if not COMMENT.match(part))
    item = item_of(plain, list(pending))
    if item.kind in ("struct", "enum"):
        item.members = members_of(lines[1:-1], item.kind)
        item.code = "\n".join(lines)
        if item.kind == "enum":
            item.names = [m.name for m in item.members]
            item.name = item.name or item.names[0]
    else:
        item.code = plain
        item.comment += behind
    return item


def parse_all(folder):
    return [parse(p) for p in sorted(pathlib.Path(folder).glob("*.h"))]


def undocumented(headers):
    """Public names that no comment is about."""
    for header in headers:
        if not header.overview:
            yield header.name
        for item in header.items():
            if not item.comment and not (item.members and any(m.comment for m in item.members)) \
                    and not item.name.endswith("_INIT") and item.name != "ASSAY_API":
                yield f"{header.name}: {item.name}"
