#!/usr/bin/env python3
"""Makes C of the pages of reports: embed_page.py FOLDER OUT.

Each FOLDER/NAME.html becomes an array NAME_pieces. It holds {{file NAME}} where another file of the folder goes,
{{part NAME}} on a line of its own for lines that several pages share, and {{title}}, {{text}}, {{data}}, which are
filled when a page is written. OUT is included by src/report/page.c.
"""
import pathlib
import re
import sys

SLOTS = {"title": "t", "text": "p", "data": "d"}


def embed(folder, path):
    """Lines of C for one page."""
    page = re.sub(r"\{\{part ([\w.]+)\}\}\n", lambda m: (folder / m[1]).read_text(), path.read_text())
    page = re.sub(r"\{\{file ([\w.]+)\}\}", lambda m: (folder / m[1]).read_text(), page)
    lines, rows = [], []
    for i, piece in enumerate(re.split(r"\{\{(\w+)\}\}", page)):
        if i % 2:
            rows.append(f"    {{NULL, 0, '{SLOTS[piece]}'}},")
            continue
        data = piece.encode()
        lines.append(f"static const unsigned char {path.stem}_{i}[] = {{")
        lines += ["    " + ", ".join(map(str, data[k:k + 32])) + "," for k in range(0, len(data), 32)]
        lines.append("};")
        rows.append(f"    {{{path.stem}_{i}, sizeof {path.stem}_{i}, 0}},")
    return [*lines, f"static const page_piece_t {path.stem}_pieces[] = {{", *rows, "};"]


def main(folder, out):
    folder = pathlib.Path(folder)
    lines = [line for path in sorted(folder.glob("*.html")) for line in embed(folder, path)]
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
