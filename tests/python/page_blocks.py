"""Python on pages of the documentation, run as a reader would type it: the blocks of a section in one namespace."""
import os
import pathlib
import re
import sys
import tempfile
import types

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def run_section(page, heading):
    """Runs the blocks of a section, in a folder that is removed; returns how many there are."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        raise ValueError(f"{page} has no section '{heading}'")
    blocks = re.findall(r"^```python\n(.*?)^```$", section.group(1), re.M | re.S)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            # A module of files: some frameworks read the source of what they are given.
            module = sys.modules["page"] = types.ModuleType("page")
            for i, block in enumerate(blocks):
                path = pathlib.Path(folder, f"block{i}.py")
                path.write_text(block, encoding="utf-8")
                exec(compile(block, str(path), "exec"), module.__dict__)
        finally:
            os.chdir(before)
    return len(blocks)
