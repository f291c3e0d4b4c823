"""Pages whose commands can be run: what is in them, and whether an output is what they show.

A block that begins with ```console holds commands behind '$ ', continued behind '> ' where a line ends in a
backslash, and under each what it prints, the standard error with it. All blocks of a page run in one folder;
the comment `<!-- runs in: NAME -->` says which models lie there. In what is shown

    …              stands for any text; on a line of its own, for any lines
    0.125, 3e-07   numbers with a point or an exponent may differ by one in their last digit
"""
import difflib
import re

NUMBER = r"\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+"
# What depends on the machine and the hour, and is '…' in lines that --update writes.
VARIES = [
    (r"\b\d+(?:\.\d+)? (s|ms|us)\b", r"… \1"),
    (r"\b\d+(?:\.\d+)? (?:kB|MB|GB)\b", "…"),
]


class Command:
    """Its text as the shell gets it, and the lines of output that the page shows."""

    def __init__(self, text):
        self.text, self.shown = text, []


def parse(page):
    """The page as a list of strings (lines) and Commands, in order."""
    parts, inside = [], False
    for line in page.split("\n"):
        if not inside:
            parts.append(line)
            inside = line == "```console"
        elif line == "```":
            parts.append(line)
            inside = False
        elif line.startswith("$ "):
            parts.append(Command(line[2:]))
        elif not isinstance(parts[-1], Command):
            raise ValueError(f"'{line}': a console block begins with a command")
        elif line.startswith("> ") and not parts[-1].shown and parts[-1].text.endswith("\\"):
            parts[-1].text += "\n" + line[2:]
        else:
            parts[-1].shown.append(line)
    if inside:
        raise ValueError("a console block does not end")
    return parts


def written(parts):
    """The page of these parts."""
    lines = []
    for part in parts:
        if isinstance(part, Command):
            lines += ["$ " + part.text.replace("\n", "\n> "), *part.shown]
        else:
            lines.append(part)
    return "\n".join(lines)


def folder_of(page):
    found = re.search(r"^<!-- runs in: (\w+) -->$", page, re.M)
    return found.group(1) if found else None


def _unit(number):
    """What one in the last digit of a number is."""
    mantissa, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def _close(a, b):
    return abs(float(a) - float(b)) <= 1.001 * max(_unit(a), _unit(b))


def line_is(shown, line):
    """Whether a line is what one of the page says."""
    pattern = ""
    numbers = []
    for piece in re.split(f"(…|{NUMBER})", shown):
        if piece == "…":
            pattern += ".*"
        elif re.fullmatch(NUMBER, piece):
            numbers.append(piece)
            pattern += f"({NUMBER})"
        else:
            pattern += re.escape(piece)
    found = re.fullmatch(pattern, line)
    return bool(found) and all(map(_close, numbers, found.groups()))


def output_is(shown, lines):
    """The same for all lines of an output."""
    if not shown:
        return not lines
    if shown[0] == "…":
        return any(output_is(shown[1:], lines[i:]) for i in range(len(lines) + 1))
    return bool(lines) and line_is(shown[0], lines[0]) and output_is(shown[1:], lines[1:])


def updated(shown, lines):
    """What the page should show: its own lines where they hold, the rest with what varies as '…'."""
    if output_is(shown, lines):
        return shown
    wild = [s for s in shown if "…" in s and s != "…"]
    new = []
    for line in lines:
        kept = next((s for s in wild if line_is(s, line)), None)
        for pattern, instead in VARIES if kept is None else ():
            line = re.sub(pattern, instead, line)
        new.append(kept or line)
    return new


def difference(shown, lines):
    return "\n".join("    " + d for d in difflib.unified_diff(shown, lines, "the page", "the output", lineterm="", n=1))
