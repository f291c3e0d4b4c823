"""The manual pages of the program (assay man writes them), as HTML."""
from __future__ import annotations

import html
import re

ESCAPES = {"\\-": "-", "\\[aq]": "'", "\\[rs]": "\\", "\\(aq": "'", "\\e": "\\", "\\&": "", "\\[ha]": "^", "\\[ti]": "~",
           "\\[dq]": '"', "\\[ga]": "`", "\\~": "\u00a0"}
FONTS = {"B": "<b>", "I": "<i>"}


def inline(text):
    out, open_font = [], ""
    for part in re.split(r"(\\f[BIRP]|\\\[\w+\]|\\\(\w\w|\\.)", text):
        if re.fullmatch(r"\\f[BIRP]", part):
            out.append(open_font.replace("<", "</"))
            open_font = FONTS.get(part[2], "")
            out.append(open_font)
        elif part.startswith("\\"):
            if part not in ESCAPES:
                raise ValueError(f"manual page: what does {part} stand for?")
            out.append(html.escape(ESCAPES[part], False))
        else:
            out.append(html.escape(part, False))
    return "".join(out) + open_font.replace("<", "</")


def body(source, pages):
    """HTML of a page; pages: names of all, which are linked."""
    out, state, plain = [], "", False

    def leave(new=""):
        nonlocal state
        out.append({"p": "</p>", "dd": "</dd></dl>", "dt": "</dt></dl>"}.get(state, ""))
        state = new

    for line in source.split("\n"):
        macro, _, rest = line.partition(" ")
        rest = rest.strip('"')
        if macro == ".TH":
            out.append(f"<h1>{inline(rest.split()[0].lower())}</h1>")
        elif macro == ".SH":
            leave()
            out.append(f"<h2>{inline(rest.capitalize())}</h2>")
        elif macro == ".nf":
            leave()
            plain = True
            out.append("<pre>")
        elif macro == ".fi":
            plain = False
            out.append("</pre>")
        elif macro == ".TP":
            leave("term")
        elif macro in (".PP", ".P"):
            leave()
        elif macro in (".B", ".BR"):
            name, _, after = rest.partition(" ")
            bold = f"<b>{inline(name)}</b>"
            plain_name = re.sub(r"\\-", "-", name)
            if macro == ".BR" and plain_name in pages:
                bold = f'<a href="{plain_name}.html">{bold}</a>'
            write_line(out, bold + (inline(after) if macro == ".BR" else f" <b>{inline(after)}</b>" if after else ""), state, plain)
            state = {"term": "dt", "dt": "dd", "": "p"}.get(state, state) if not plain else state
        elif line.startswith("."):
            raise ValueError(f"manual page: the macro {macro} is not known")
        elif line or plain:
            write_line(out, inline(line), state, plain)
            state = {"term": "dt", "dt": "dd", "": "p"}.get(state, state) if not plain else state
    leave()
    return "\n".join(out)


def write_line(out, text, state, plain):
    if plain:
        out.append(text)
    elif state == "term":
        out.append(f"<dl><dt>{text}")
    elif state == "dt":
        out.append(f"</dt><dd>{text}")
    elif state == "":
        out.append(f"<p>{text}")
    else:
        out.append(text)
