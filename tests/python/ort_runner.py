#!/usr/bin/env python3
"""Runs scripts for ONNX Runtime's API with one engine: ort_runner.py ENGINE FOLDER SCRIPT...

ENGINE is "onnxruntime", or "assay": then the import is exchanged, and nothing else. The scripts run one after the
other in this process, in a copy of the models' FOLDER each; what each printed, and what ended it, goes to stdout as JSON.
"""
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import traceback
import warnings

# import onnxruntime | import onnxruntime as ort | from onnxruntime import x | from onnxruntime.capi import y
_IMPORTS = ((re.compile(r"^(\s*)import onnxruntime as ", re.M), r"\1import assay.onnxruntime as "),
            (re.compile(r"^(\s*)import onnxruntime(\.[\w.]+) as ", re.M), r"\1import assay.onnxruntime\2 as "),
            (re.compile(r"^(\s*)import onnxruntime(?:\.[\w.]+)?\s*$", re.M), r"\1import assay.onnxruntime as onnxruntime"),
            (re.compile(r"^(\s*)from onnxruntime", re.M), r"\1from assay.onnxruntime"))


def exchanged(source):
    """A script whose imports are of Assay's package."""
    for pattern, instead in _IMPORTS:
        source = pattern.sub(instead, source)
    return source


def run(path, engine, models):
    """What a script prints, and its last words if an exception ends it."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    assert re.search(r"^\s*(import|from) onnxruntime", source, re.M), "%s does not import onnxruntime" % path
    code = compile(exchanged(source) if engine == "assay" else source, path, "exec")
    printed, error = io.StringIO(), ""
    with tempfile.TemporaryDirectory() as folder:
        here = os.path.join(folder, "work")
        shutil.copytree(models, here)
        before = os.getcwd()
        os.chdir(here)
        try:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(code, {"__name__": "__main__", "__file__": path})
        except Exception:
            error = traceback.format_exc()
        finally:
            os.chdir(before)
    return {"out": printed.getvalue(), "error": error}


def main(engine, models, *scripts):
    json.dump({os.path.basename(path): run(path, engine, models) for path in scripts}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
