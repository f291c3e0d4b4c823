"""Pages of the C headers."""
from __future__ import annotations

import html

from . import headers, text

KINDS = {"function": "function", "struct": "struct", "enum": "enum", "opaque": "type", "callback": "function type", "macro": "macro"}


def place(header):
    return f"c/{header.name.removesuffix('.h')}.html"


def add_names(parsed, names):
    for header in parsed:
        for item in header.items():
            for name in [item.name, *item.names]:
                names.add(name, f"{place(header)}#{item.name if name == item.name else name}")


def member_rows(item, names, root):
    rows = []
    for member in item.members:
        shown = names.linked(member.code, root, member.name)
        about = text.rendered(member.comment, names, root) if member.comment else ""
        anchor = f' id="{member.name}"' if item.kind == "enum" and member.name != item.name else ""
        rows.append(f"<tr{anchor}><td><code>{shown}</code></td><td>{about}</td></tr>")
    return f'<table class="members">{"".join(rows)}</table>'


def item_html(item, names, root):
    # What a comment inside says is in the table; the declaration stays short.
    code = item.code
    if item.kind in ("struct", "enum"):
        code = f"typedef {item.kind} {item.name.removesuffix('_t')} {{ ... }} {item.name};" if item.name.endswith("_t") else f"{item.kind} {{ ... }};"
    out = [f'<section class="item" id="{item.name}">',
           f'<h3><a href="#{item.name}">{item.name}</a> <small>{KINDS[item.kind]}</small></h3>',
           f"<pre><code>{names.linked(code.removeprefix('ASSAY_API '), root, item.name)}</code></pre>"]
    if item.block_comment:
        out.append('<p class="shared">Said of the declarations here together:</p>')
    out.append(text.rendered(item.comment, names, root, item.name))
    if item.members:
        out.append(member_rows(item, names, root))
    return "\n".join([*out, "</section>"])


def body(header, names):
    root = "../"
    out = [f"<h1>{header.name}</h1>", f"<pre><code>#include &lt;assay/{header.name}&gt;</code></pre>",
           text.rendered(header.overview, names, root)]
    for section in header.sections:
        if section.title:
            out.append(f"<h2>{html.escape(section.title)}</h2>")
        for item in section.items:
            out.append(item_html(item, names, root) if isinstance(item, headers.Item) else text.rendered(item, names, root))
    return "\n".join(out)


def entries(header):
    """What the search knows: (name, kind, place, first sentence)."""
    first = " ".join(header.overview).split(". ")[0]
    yield (header.name, "header", place(header), first)
    for item in header.items():
        about = " ".join(x.strip() for x in item.comment).split(". ")[0]
        for name in [item.name, *item.names]:
            yield (name, KINDS[item.kind] if name == item.name else "value", f"{place(header)}#{name}", about[:120])
