"""The blocks of ```python in documentation run, one after the other in one session: test_docs.py MODEL PAGE..."""
import os
import re
import shutil
import sys
import tempfile


def blocks(page):
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
        yield text.count("\n", 0, found.start()) + 2, found.group(1)


def main(model, *pages):
    n = 0
    for page in map(os.path.abspath, pages):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(model, os.path.join(folder, "model.onnx"))
            os.chdir(folder)
            names = {"__name__": "__main__"}
            for line, code in blocks(page):
                # Lines of tracebacks are those of the page.
                exec(compile("\n" * (line - 1) + code, page, "exec"), names)
                n += 1
            os.chdir("/")
    print("%d blocks of %d pages ran" % (n, len(pages)))
    return 0 if n else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
