#!/usr/bin/env python3
"""Paths that are written are checked before the work, and a file that cannot be written takes no verdict along.

    test_written.py ASSAY SOURCES

SOURCES is src/frontends, whose tables of flags say what trtexec and polygraphy write. Options of verbs are found in their help: a new one
that writes needs no line here.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

failures = []
WRITES = re.compile(r"^  (?:-\w, )?(--(?:json|report|annotate|trace|timing-cache|save[\w-]*|output|output-folder)) (FILE|FILE\.npz|FOLDER)\b", re.M)
# Verbs, with what they cannot do without.
VERBS = [["check", "m.onnx"], ["run", "m.onnx"], ["build", "m.onnx"], ["refit", "m.plan"], ["certify", "m.onnx"], ["audit", "m.onnx"],
         ["inspect", "model", "m.onnx"], ["conformance", "cases"], ["bench", "m.onnx"], ["tune", "m.onnx"], ["debug", "precision", "m.onnx"],
         ["debug", "passes", "m.onnx"], ["debug", "tactics", "m.onnx"], ["debug", "batch", "m.onnx"], ["debug", "reduce", "m.onnx"],
         ["debug", "environment"], ["edit", "extract", "m.onnx"], ["edit", "cast", "m.onnx"], ["edit", "quantize", "m.onnx"],
         ["edit", "broadcasts", "m.onnx"], ["edit", "decompose", "m.onnx"], ["edit", "assemble", "m.onnx"], ["edit", "sanitize", "m.onnx"],
         ["edit", "rename", "m.onnx"], ["edit", "set", "m.onnx"], ["man"]]


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def call(program, *words, most=None, **how):
    """most: of bytes that a file may get."""
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))) if most is not None else None
    p = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, preexec_fn=limit, **how)
    return p.returncode, p.stdout, p.stderr


def write_model(path, scale):
    """Products that pass fp16's range, where scale is large: check and tune have something to find."""
    rng = np.random.default_rng(1)
    w = numpy_helper.from_array((scale * rng.standard_normal((16, 16))).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", [f"t{i}", "w"], [f"t{i + 1}"], name=f"layer{i}") for i in range(4)]
    nodes[3].output[0] = "y"
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("t0", T.FLOAT, [4, 16])], [info("y", T.FLOAT, [4, 16])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.savez("x.npz", t0=rng.standard_normal((4, 16)).astype(np.float32))


def wrong_paths(kind):
    """(Path, what is said of it): none of them can be written."""
    if kind == "FOLDER":
        return [("file/x", r"'file' is not a folder|Not a directory")]
    return [("no/x.npz", r"there is no folder 'no'; make it"), ("folder", "it is a folder; name a file in it|is a folder"),
            ("file/x.npz", "'file' is not a folder|Not a directory"), ("", "the path is empty")]


def test_verbs(program):
    """Nothing is run, made or left where a path cannot be written."""
    seen = 0
    for words in VERBS:
        verb = words[:2] if words[0] in ("debug", "edit") else words[:1]
        options = WRITES.findall(call(program, *verb, "-h")[1])
        check(options, f"{verb}: no option that writes in its help")
        for option, kind in options:
            for path, said in wrong_paths(kind):
                before = set(os.listdir("."))
                code, out, err = call(program, *words, option, path)
                seen += 1
                check(code == 4 and not out and re.search(f"^assay: nothing was run: {option} '{re.escape(path)}' cannot be written: .*({said})", err),
                      f"{words} {option} '{path}'", f"{code}: {out}{err}")
                check(set(os.listdir(".")) == before, f"{words} {option} '{path}': {set(os.listdir('.')) ^ before}")
    check(seen > 80, f"only {seen} lines")
    # What can be written is, with nothing beside it: new folders, files in them, what is there already, devices, links.
    for words, made in ((["-o", "a/b", "--json", "a/b/x.json"], "a/b/x.json"), (["--json", "old.json"], "old.json"), 
                        (["--json", "link.json"], "target.json"), (["--report", "page.html"], "page.html")):
        open("old.json", "w").close()
        open("target.json", "w").close()
        if not os.path.islink("link.json"):
            os.symlink("target.json", "link.json")
        code, out, err = call(program, "check", "m.onnx", "-i", "x.npz", "--precision", "fp16", *words)
        check(code == 1 and not err and out, f"check {words}", f"{code}: {out}{err}")
        check(not made or os.path.getsize(made) > 100, f"check {words}: {made}")
    check(os.path.islink("link.json"), "the link is a link no more")
    # A pipe is written as it is. (Not a device: a program that puts a file in its place must not find one.)
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    code, out, err = call(program, "debug", "environment", "--json", "pipe")
    check(code == 0 and os.read(reader, 1) == b"{" and not os.path.isfile("pipe"), "a pipe", f"{code}: {out}{err}")
    os.close(reader)


def test_read_only(program):
    """A folder that may not be written, for a user who is not root."""
    os.mkdir("closed")
    os.chmod("closed", 0o555)
    os.chmod(".", 0o755)
    how = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        fine = call(program, "--version", **how)[0] == 0
    except OSError:
        fine = False
    if not fine:
        print("no other user can run the program: folders that may not be written are not tried")
        return
    for words in (["tune", "m.onnx", "-o", "closed/m.onnx"], ["check", "m.onnx", "--json", "closed/x"], ["debug", "reduce", "m.onnx", "-o", "closed/x"]):
        code, out, err = call(program, *words, **how)
        check(code == 4 and not out and "nothing can be written into folder 'closed' (Permission denied)" in err, f"{words}", f"{code}: {out}{err}")


VERDICTS = [
    # Files that are asked for, and what stands on stdout all the same.
    (["check", "m.onnx", "-i", "x.npz", "--precision", "fp16"], ["--json", "--report", "--annotate", "-o"], r"^UNFAITHFUL"),
    (["tune", "m.onnx", "-i", "x.npz", "--no-pareto", "--runs", "2"], ["--json", "-o", "--save-plan", "--save-options"], r"m\.onnx"),
    (["certify", "m.onnx", "-i", "x.npz", "--precision", "bf16"], ["-o"], r"^NOT SAVED  m\.onnx"),
    (["certify", "m.onnx", "-i", "x.npz", "--precision", "bf16", "-o", "w2"], ["--json"], r"^NOT SAVED  m\.onnx"),
    (["audit", "m.onnx", "--precision", "fp16", "--box", "1", "--search-time", "1"], ["--json", "--save-witness"], r"m\.onnx"),
    (["bench", "m.onnx", "--seconds", "0.05"], ["--json", "--trace"], r"^latency "),
    (["debug", "precision", "m.onnx", "-i", "x.npz", "--precision", "fp16"], ["--json", "-o", "--save-options"], r"m\.onnx"),
    (["debug", "reduce", "m.onnx", "-i", "x.npz", "--precision", "fp16"], ["--json", "-o"], r"m\.onnx"),
    (["debug", "passes", "m.onnx", "-i", "x.npz"], ["--json"], r"m\.onnx"),
    (["debug", "tactics", "m.onnx", "-i", "x.npz", "--untimed"], ["--json"], r"m\.onnx"),
    (["debug", "batch", "m.onnx", "-i", "x.npz", "--axis", "0"], ["--json"], r"m\.onnx"),
    (["debug", "environment"], ["--json"], r"^assay "),
    (["edit", "sanitize", "m.onnx"], ["--json"], r"^\w+"),
    (["edit", "sanitize", "m.onnx"], ["-o"], r"(?m)^  not written .*: the file could not be written"),
    (["conformance", "cases"], ["--json"], r"1 passed, 0 failed"),
]


def test_verdicts(program):
    """The disk is full when a file is written: the verdict is on stdout, and the exit code says 4."""
    os.makedirs("cases/one/test_data_set_0")
    onnx.save(onnx.load("m.onnx"), "cases/one/model.onnx")
    x = np.load("x.npz")["t0"]
    code, _, _ = call(program, "run", "m.onnx", "-i", "x.npz", "-o", "y.npz")
    for kind, name, array in (("input", "t0", x), ("output", "y", np.load("y.npz")["y"])):
        with open(f"cases/one/test_data_set_0/{kind}_0.pb", "wb") as f:
            f.write(numpy_helper.from_array(array, name).SerializeToString())
    for words, options, verdict in VERDICTS:
        for option in options:
            before = set(os.listdir("."))
            code, out, err = call(program, *words, option, "w", most=16)
            check(code == 4 and re.search(verdict, out) and "cannot write" in err, f"{words} {option} on a full disk", f"{code}: {out}{err}")
            for left in set(os.listdir(".")) - before:
                check(left in ("w", "m.reduced") and os.path.isdir(left) and not os.listdir(left), f"{words} {option}: left {left}")
                os.rmdir(left)
    # Some files cannot be written: those that can are.
    code, out, err = call(program, "tune", "m.onnx", "-i", "x.npz", "--no-pareto", "--runs", "2", "-o", "t.onnx", "--save-options", "o.txt", most=1024)
    check(code == 4 and "cannot write 't.onnx'" in err and os.path.exists("o.txt") and not os.path.exists("t.onnx"), "tune with one bad file of two",
          f"{code}: {out}{err}")
    check(not re.search(r"^  model ", out, re.M), "tune tells of a model that is not there", out)


def rows(path, pattern):
    return re.findall(pattern, re.sub(r"(?m)^//.*", "", open(path).read()), re.M)


def test_fronts(program, sources):
    """The same in the command lines of trtexec and polygraphy."""
    flags = rows(f"{sources}/trtexec/flags.inc", r"^TRT_FLAG\((\w+), (\w+), WORKS,")
    outputs = {name for name, kind in flags if kind in ("OUTPUT", "CACHE")}
    named = {name for name, kind in flags if re.match(r"save|export|timingCacheFile", name) and kind not in ("SWITCH", "CHOICE")}
    # Those two take lists of names and files, or a format.
    check(outputs == named - {"saveDebugTensors", "saveAllDebugTensors"}, "trtexec: flags that write", sorted(outputs ^ named))
    for name in sorted(outputs):
        code, out, err = call(program, "trtexec", "--onnx=m.onnx", f"--{name}=no/x")
        said = f"[E] nothing was run: --{name} 'no/x' cannot be written: there is no folder 'no'"
        check(code == 1 and said in out + err and "Engine built" not in out, f"trtexec --{name}", f"{code}: {out[-2000:]}{err}")
    flags = rows(f"{sources}/polygraphy/flags.inc", r'^PG_FLAG\((\w+), "([^"]+)",\s*(\w+), WORKS,')
    outputs = {name: names.split()[-1] for name, names, kind in flags if kind == "OUTPUT"}
    named = {name for name, _, kind in flags if name.startswith("save_") or name == "output"}
    check(set(outputs) == named - {"save_input_blob", "save_external_data"}, "polygraphy: flags that write", sorted(set(outputs) ^ named))
    lines = {"save_debug_replay": "debug precision m.onnx --fp16 @ --check true", "save_visual": "inspect model m.onnx", "output": "convert m.onnx"}
    for name, flag in sorted(outputs.items()):
        line = lines.get(name, "run m.onnx --onnxrt --trt")
        line = (line if "@" in line else line + " @").replace("@", f"{flag} file/x.json").split()
        code, out, err = call(program, "polygraphy", *line)
        check(code == 1 and re.search(f"nothing was run: {flag} 'file/x.json' cannot be written: ", out + err) and "Accuracy" not in out,
              f"polygraphy {line}", f"{code}: {out}{err}")


def main(program, sources):
    program, sources = os.path.abspath(program), os.path.abspath(sources)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_model("m.onnx", 8)
        open("file", "w").close()
        os.mkdir("folder")
        test_verbs(program)
        test_read_only(program)
        test_verdicts(program)
        test_fronts(program, sources)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
