"""Pages "How to add ...": the files and lines of their example, and the commands that show it.

Every fenced block but `sh` belongs to the example. The paragraph before it says where it goes:

    ... the file `src/passes/x.c`:                        a new file
    ... in `src/passes/passes.inc`:                       at its end
    ... in `src/passes/passes.inc`, after `TEXT`:         after the only line that holds TEXT; `before`: in front of it

`shell-session` blocks hold commands and what they print (pages.py says how that is compared); unlike `console` blocks they need the
example. They run in the project's folder. The comment `<!-- tests: ops/test_bounds ... -->` names tests that go over all rows of
a table and have to pass with the example.
"""
import re

import pages

FENCE = re.compile(r"^( *)(`{3,}|~{3,})([\w-]*)\s*$")
PLACE = re.compile(r"(?:\b(file) |\bin )`([^`]+)`(?:, (after|before) `([^`]+)`)?:(?= |$)", re.I)


class Block:
    """A fenced block: its first line of text in the page, its end, and the spaces before each line."""

    def __init__(self, language, indent, first, end):
        self.language, self.indent, self.first, self.end = language, indent, first, end


class Placed:
    """A piece of the example. where: None (a new file), "end", "after" or "before"."""

    def __init__(self, path, where, anchor, lines):
        self.path, self.where, self.anchor, self.lines = path, where, anchor, lines


def blocks_of(lines):
    at = 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        if not opening:
            at += 1
            continue
        indent, fence, language = opening.groups()
        end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == fence), None)
        if end is None:
            raise ValueError(f"line {at + 1}: the block does not end")
        yield Block(language, len(indent), at + 1, end)
        at = end + 1


def paragraph_before(lines, at):
    """The text before line `at`, up to an empty line or another block."""
    end = at
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    start = end
    while start > 0 and lines[start - 1].strip() and not FENCE.match(lines[start - 1]):
        start -= 1
    return " ".join(line.strip() for line in lines[start:end])


class Page:
    def __init__(self, text):
        self.lines = text.split("\n")
        self.placed, self.sessions = [], []
        self.tests = [t for found in re.findall(r"<!-- tests: (.*?) -->", text, re.S) for t in found.split()]
        for block in blocks_of(self.lines):
            self._take(block)

    def _text(self, block):
        return [line[block.indent:] if not line[:block.indent].strip() else line for line in self.lines[block.first:block.end]]

    def _take(self, block):
        if block.language == "sh":
            return
        if block.language == "shell-session":
            self.sessions.append((block, pages.parse("\n".join(["```console", *self._text(block), "```"]))))
            return
        places = PLACE.findall(paragraph_before(self.lines, block.first - 1))
        if not places:
            raise ValueError(f"line {block.first}: the paragraph before the block does not say where it goes, such as "
                             "'The file `src/x.c`:' or 'One line in `src/x.inc`:'")
        new, path, where, anchor = places[-1]
        if new and where:
            raise ValueError(f"line {block.first}: a new file has no place within")
        self.placed.append(Placed(path, None if new else where or "end", anchor, self._text(block)))

    def commands(self):
        for _, parts in self.sessions:
            yield from (p for p in parts if isinstance(p, pages.Command))

    def command_text(self):
        return "\n".join(c.text for c in self.commands())

    def apply(self, tree):
        """Puts the example into a tree; which files are new, which ones it changed."""
        added, changed = [], []
        for piece in self.placed:
            path = tree / piece.path
            if piece.where is None:
                if path.exists():
                    raise ValueError(f"{piece.path} is there already")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("\n".join(piece.lines) + "\n")
                added.append(piece.path)
                continue
            if not path.exists():
                raise ValueError(f"there is no {piece.path}")
            path.write_text(inserted(path.read_text(), piece))
            if piece.path not in added + changed:
                changed.append(piece.path)
        return added, changed

    def written(self):
        """The page with what its commands show now."""
        lines = list(self.lines)
        for block, parts in reversed(self.sessions):
            body = pages.written(parts).split("\n")[1:-1]
            lines[block.first:block.end] = [" " * block.indent + line if line else line for line in body]
        return "\n".join(lines)


def inserted(text, piece):
    lines = text.split("\n")
    if piece.where == "end":
        at = len(lines) - 1 if not lines[-1] else len(lines)
    else:
        found = [i for i, line in enumerate(lines) if piece.anchor in line]
        if len(found) != 1:
            raise ValueError(f"{piece.path}: {len(found)} lines hold '{piece.anchor}', one is expected")
        at = found[0] + (piece.where == "after")
    lines[at:at] = piece.lines
    return "\n".join(lines)
