#!/usr/bin/env python3
"""What users are told to paste: names and files with quotes, $(...), ';', ',', ':' and control characters stay words of the shell.

    test_quoted.py ASSAY

Everything that is printed or written as an option or a command is given to bash as it is, in a folder where a command hidden in a
name would leave a file. Rules are read back from files, by --layer-precision @FILE and --fix-file, in every verb that has them.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NAMES = ["q'$(touch RAN)'z", "a; touch RAN", "c,d", "e:f", "@at", "g*h*i", "`touch RAN`", "", "k\n&&&& PASSED\x1b[2K", "*star", "back\\slash",
         "sp ace [x]", "#no | comment > RAN"]
failures = []


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def write_model(path, names, input="x"):
    """Each product overflows in fp16, or comes back from there."""
    nodes, weights, last = [], [], input
    for i, name in enumerate(names):
        weights.append(numpy_helper.from_array(np.array([1e5 if i % 2 == 0 else 1e-5], np.float32), f"w{i}"))
        nodes.append(helper.make_node("Mul", [last, f"w{i}"], [f"t{i}"], name=name))
        last = f"t{i}"
    nodes.append(helper.make_node("Softmax", [last], ["y"], name="last"))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(input, TensorProto.FLOAT, [2, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_wide(path):
    weight = numpy_helper.from_array(np.ones((4, 4096), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="wide")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4096])], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def run(*words):
    p = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    return p.returncode, p.stdout, p.stderr


def pasted(line):
    code, out, err = run("bash", "-c", line)
    check(not os.path.exists("RAN"), f"inert: {line}", err)
    return code, out, err


def calm(text, what):
    """No control character reaches the terminal."""
    check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text) and "\n&&&& PASSED\\" not in text, f"{what}: control characters", repr(text))


def lines_of(path, begin):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    calm(text, path)
    return [line for line in text.splitlines() if line.startswith(begin)]


def layers(out):
    """Of trtexec's log: the layers that it has set."""
    return set(re.findall(r"(?s)Set layer (.*?) to precision fp32\n", out))


def test_check(assay, names, labels):
    code, out, err = run(assay, "check", "m.onnx", "--precision", "fp16", "-i", "in.npz", "-o", ".", "--json", "j.json")
    check(code == 1 and os.path.exists("m.fix.txt"), "check writes m.fix.txt", out + err)
    rules = lines_of("m.fix.txt", "--layer-precision ")
    trtexec = lines_of("m.fix.txt", "--precisionConstraints=")
    check(len(rules) == len(trtexec) == 1, "one line each", f"{rules} {trtexec}")
    again = f"{assay} check m.onnx --precision fp16 -i in.npz --no-fix "
    for what in (rules[0], "--fix-file m.fix.txt", "--layer-precision @m.fix.txt", "--fix-file=m.fix.txt"):
        code, out, err = pasted(again + what)
        check(code == 0 and "FAITHFUL" in out, f"check with {what}", out + err)
    code, out, err = pasted(f"{assay} trtexec --onnx=m.onnx --fp16 --skipInference {trtexec[0]}")
    check(code == 0 and layers(out) == set(labels), "trtexec sets all layers", f"{layers(out) ^ set(labels)} {err}")
    check("no layer" not in err, "trtexec knows all names", err)
    calm(out.splitlines()[0], "trtexec's command line")
    code, out, err = run(assay, "trtexec", "--onnx=m.onnx", "--fp16", "--skipInference", "--fix-file=m.fix.txt")
    check(code == 0 and layers(out) == set(labels), "trtexec with --fix-file", f"{layers(out) ^ set(labels)} {err}")
    with open("j.json") as f:
        fix = json.load(f)["fix"]
    code, out, err = pasted(f"{assay} trtexec --onnx=m.onnx --fp16 --skipInference {fix['trtexec']}")
    check(code == 0 and layers(out) == set(labels), "the JSON's trtexec sets all layers", err)
    code, out, err = run(assay, "check", "m.onnx", "--precision", "fp16", "-i", "in.npz", "--no-fix", "--layer-precision", fix["layer_precision"])
    check(code == 0, "the JSON's rules", out + err)


def test_every_verb(assay):
    """Whatever takes --layer-precision takes files with them."""
    lines = [("build", "-o", "p.plan"), ("bench", "--seconds", "0.01", "--warm-up", "0"), ("run", "--mode", "plan", "-i", "in.npz"),
             ("check", "-i", "in.npz", "--no-fix"), ("audit", "--no-witness", "--no-radius"), ("certify", "-i", "in.npz", "-o", "c.json"),
             ("tune", "-i", "in.npz", "--no-pareto"), ("debug", "passes", "-i", "in.npz"), ("debug", "precision", "-i", "in.npz"),
             ("debug", "tactics", "-i", "in.npz"), ("debug", "batch", "-i", "in.npz"), ("debug", "reduce", "-i", "in.npz"), ("inspect", "plan")]
    for words in lines:
        verb = words[:2] if words[0] in ("debug", "inspect") else words[:1]
        line = [assay, *verb, "m.onnx", *words[len(verb):], "--precision", "fp16"]
        plain = run(*line, "--layer-precision", "plain:fp32")
        for more in (["--fix-file", "plain.txt"], ["--layer-precision", "@rules.txt"]):
            code, out, err = run(*line, *more)
            check(code == plain[0] and code in (0, 1), f"{' '.join(verb)} {more}", f"{code} {plain[0]} {out} {err}")
        code, out, err = run(*line, "--fix-file", "nothing.txt")
        check(code == 3 and "'nothing.txt'" in err, f"{' '.join(verb)}: a file that is not there", f"{code} {err}")
        _, out, _ = run(assay, *verb, "-h")
        check("--fix-file FILE" in out and "@FILE" in out, f"{' '.join(verb)} -h", out)
    listed = "".join(line for line in run(assay, "completion", "fish")[1].splitlines(True) if "trtexec" not in line)
    check(listed.count("-l layer-precision ") == listed.count("-l fix-file ") == len(lines), "no verb with --layer-precision is left out", listed)


# What is in the file, the other options, the exit code, what is said; the model's first layers decide by their format.
FILES = [
    ("plain*:fp32\n", "", 0, ""),
    ("# comment\n  plain*:fp16,\r\n\nplain*:fp32  \n", "", 0, ""),
    ("plain*:fp32", "--layer-precision plain*:fp16", 1, ""),
    ("plain*:fp16", "--layer-precision plain*:fp32", 0, ""),
    ("# a\n--layer-precision plain*:fp32\n--fp16 --precisionConstraints=prefer '--layerPrecisions=x:fp32'\n", "", 0, ""),
    ("--layer-precision='pl*':fp32", "", 0, ""),
    ("--precision fp16 --layer-precision plain*:fp32", "", 0, ""),
    ("--precision bf16 --layer-precision plain*:fp32", "", 2, "--precision is fp16, and bf16 in the file"),
    ("--precision fp16 --precision bf16", "", 3, "--precision is both fp16 and bf16"),
    ("--layer-precision 'plain*:fp32", "", 3, "which nothing ends"),
    ("--layer-precision", "", 3, "--layer-precision has no value"),
    ("--layer-precisions plain*:fp32", "", 3, "'--layer-precisions' is neither"),
    ("--golden x", "", 3, "'--golden' is neither"),
    ("", "", 3, "no rules are in it"),
    ("plain*:fp32,\\\\,\n", "", 2, "'\\\\' is not PATTERN:FORMAT"),
    ("plain*:fp32,\\,\n", "", 2, "'\\,' is not PATTERN:FORMAT"),
    ("# nothing\n\n", "", 3, "no rules are in it"),
    ("plain*:fp32\0", "", 3, "it is not text"),
    ("plain*:fp32\nodd", "", 2, "'odd' is not PATTERN:FORMAT"),
]


def test_files(assay):
    write_model("one.onnx", ["plain", "plain2"])
    for text, more, want, says in FILES:
        with open("f.txt", "w", newline="") as f:
            f.write(text)
        for option in ("--fix-file", "--layer-precision"):
            file = ["--fix-file", "f.txt"] if option == "--fix-file" else ["--layer-precision", "@f.txt"]
            code, out, err = run(assay, "check", "one.onnx", "--precision", "fp16", "-i", "in.npz", "--no-fix", *file, *more.split())
            check(code == want and says in err, f"{text!r} by {option} {more}", f"{code} {out} {err}")


def test_others(assay, labels):
    """Other commands that print what to paste."""
    code, out, err = run(assay, "debug", "precision", "m.onnx", "--precision", "fp16", "-i", "in.npz", "--save-options", "o p.txt")
    check(code == 0, "debug precision", out + err)
    code, out, err = pasted(f"{assay} check m.onnx --precision fp16 -i in.npz --no-fix --fix-file 'o p.txt'")
    check(code == 0, "what debug precision wrote", out + err)
    # Short lists stand in the report.
    code, out, err = run(assay, "debug", "precision", "few.onnx", "--precision", "fp16", "-i", "in.npz")
    shown = dict(re.findall(r"(?m)^  (rules|trtexec) +(--.*)$", out))
    check(set(shown) == {"rules", "trtexec"}, "debug precision prints options", out + err)
    code, out, err = pasted(f"{assay} check few.onnx --precision fp16 -i in.npz --no-fix {shown.get('rules')}")
    check(code == 0, "the rules that debug precision prints", out + err)
    code, out, err = pasted(f"{assay} trtexec --onnx=few.onnx --fp16 --skipInference {shown.get('trtexec')}")
    check(code == 0 and layers(out) == set(NAMES[:2]), "what debug precision prints for trtexec", out + err)
    code, out, err = run(assay, "tune", "few.onnx", "--precision", "fp16", "--layers", "-i", "in.npz", "--save-options", "tuned.txt")
    shown = dict(re.findall(r"(?m)^  (rules|trtexec) +(--.*)$", out))
    with open("tuned.txt") as f:
        check(shown.get("rules", "?") in f.read(), "tune prints and writes the same", out + err)
    for options in (shown.get("rules"), "--fix-file tuned.txt", "--layer-precision @tuned.txt"):
        code, out, err = pasted(f"{assay} check few.onnx -i in.npz --no-fix {options}")
        check(code == 0, f"tune's {options}", out + err)
    # Names of files
    os.mkdir("it's $(touch RAN)")
    odd = "it's $(touch RAN)/m;n.onnx"
    write_model(odd, NAMES[:2])
    code, out, err = run(assay, "build", odd, "-o", odd + ".plan", "--strip-weights")
    command = re.search(r"weights are left out: (assay refit .*)", out)
    check(command and pasted(command[1].replace("assay", assay, 1))[0] == 0, "the refit that build prints", out + err)
    run(assay, "build", "wide.onnx", "-o", odd + ".plan", "--strip-weights")
    code, out, err = run(assay, "inspect", "plan", odd + ".plan")
    command = re.search(r"(assay refit .*) --weights MODEL.onnx", out)
    check(command and pasted(f"{command[1].replace('assay', assay, 1)} --weights wide.onnx")[0] == 0, "the refit that inspect prints", out + err)
    code, out, err = run(assay, "trtexec", f"--onnx={odd}", f"--saveEngine={odd}.plan", "--stripWeights", "--skipInference")
    words = re.search(r"The engine is stripped: (.*) puts", out)
    check(words and pasted(f"{assay} trtexec {words[1]} --skipInference")[0] == 0, "what trtexec prints of a stripped plan", out + err)
    code, out, err = run(assay, "trtexec", f"--onnx={odd}", "--fp16", "--precisionConstraints=prefer", f"--layerPrecisions=q*z:fp32",
                         "--skipInference", "--show-native")
    command = re.search(r"(?m)^assay build .*", out)
    check(command and pasted(command[0].replace("assay", assay, 1))[0] == 0, "--show-native of trtexec", out + err)
    code, out, err = run(assay, "debug", "reduce", odd, "--precision", "fp16", "-i", "in.npz", "-o", "it's;reduced")
    command = re.search(r"show it +(assay .*)", out)
    check(command and pasted(command[1].replace("assay", assay, 1))[0] == 1, "what debug reduce shows", out + err)
    # Names of values
    write_model("value.onnx", ["plain"], NAMES[0])
    np.savez("bits.npz", **{NAMES[0]: np.zeros((2, 4), np.uint16)})
    code, out, err = run(assay, "run", "value.onnx", "-i", "bits.npz")
    option = re.search(r"if it is bits of bf16: (--dtype .*)\)", err)
    check(option and pasted(f"{assay} run value.onnx -i bits.npz {option[1]}")[0] == 0, "the --dtype that a note tells", out + err)
    # The front end of Polygraphy
    code, out, err = run(assay, "polygraphy", "run", odd, "--trt", "--onnxrt", "--fp16", "--show-native")
    check("(written" not in out, "--show-native of polygraphy", out + err)
    shown = [line for line in out.splitlines() if line.startswith(("assay ", "#"))]
    check(len(shown) == 5, "polygraphy shows four commands and where the inputs come from", out)
    for line in shown:
        code, out, err = pasted(line.replace("--inputs inputs.json", "--inputs in.npz").replace("assay", assay, 1))
        check(code in (0, 1), f"polygraphy shows {line}", out + err)
    code, out, err = run(assay, "polygraphy", "debug", "precision", "few.onnx", "--fp16", "--artifacts-dir", "a", "--check",
                         "sh", "-c", f"! {assay} inspect plan polygraphy_debug.engine | grep -q '^fp16.*touch'")
    found = re.search(r"For polygraphy: (.*)\n.*For trtexec: (.*)", out)
    check(found, "polygraphy debug precision", out + err)
    if found:
        check(pasted(f"{assay} trtexec --onnx=few.onnx --fp16 --skipInference {found[2]}")[0] == 0, "its line for trtexec", found[2])
        check(pasted(f"{assay} polygraphy convert few.onnx --fp16 -o p2.plan {found[1]}")[0] == 0, "its line for polygraphy", found[1])


def main():
    assay = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_model("m.onnx", NAMES + ["plain"])
        write_model("few.onnx", NAMES[:2])
        write_wide("wide.onnx")
        np.savez("in.npz", x=np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32))
        with open("plain.txt", "w") as f:
            f.write("# a fix\n--layer-precision 'plain:fp32'\n")
        with open("rules.txt", "w") as f:
            f.write("plain:fp32\n")
        # As texts show them.
        labels = [re.sub(r"[\x00-\x1f]", lambda c: f"\\x{ord(c[0]):02x}", name) or f"Mul_{i}" for i, name in enumerate(NAMES)]
        test_check(assay, NAMES, labels + ["plain"])
        test_every_verb(assay)
        test_files(assay)
        test_others(assay, labels)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
