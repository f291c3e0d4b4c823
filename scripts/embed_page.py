#!/usr/bin/env python3
"""Makes C of the report's page: embed_page.py FOLDER OUT.

FOLDER/page.html holds {{file NAME}} where another file of the folder goes, and {{title}}, {{text}}, {{data}}, which
are filled when a report is written. OUT is included by src/report/html.c.
"""
import pathlib
import re
import sys

SLOTS = {"title": "t", "text": "p", "data": "d"}


def main(folder, out):
    folder = pathlib.Path(folder)
    page = re.sub(r"\{\{file ([\w.]+)\}\}", lambda m: (folder / m[1]).read_text(),
                  (folder / "page.html").read_text())
    lines, rows = [], []
    for i, piece in enumerate(re.split(r"\{\{(\w+)\}\}", page)):
        if i % 2:
            rows.append(f"    {{NULL, 0, '{SLOTS[piece]}'}},")
            continue
        data = piece.encode()
        lines.append(f"static const unsigned char page_{i}[] = {{")
        lines += ["    " + ", ".join(map(str, data[k:k + 32])) + "," for k in range(0, len(data), 32)]
        lines.append("};")
        rows.append(f"    {{page_{i}, sizeof page_{i}, 0}},")
    lines += ["static const page_piece_t page_pieces[] = {", *rows, "};"]
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
