#!/usr/bin/env python3
"""assay polygraphy debug and inspect tactics: injected checks, replays, artifacts, exit codes.

    test_polygraphy_debug.py ASSAY
"""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from machine import has_avx512, skipped

NO_ARTIFACTS = "[W] `--artifacts` was not specified; No artifacts will be stored during this run! Is this what you intended?"


class Failures(list):
    def check(self, good, what, shown=""):
        if not good:
            self.append(what)
            print(f"FAILED: {what}\n{shown}")


def polygraphy(*args, stdin=subprocess.DEVNULL, program="polygraphy"):
    return subprocess.run([program, *args], capture_output=True, text=True, stdin=stdin, timeout=300)


def script(name, text):
    with open(name, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + text + "\n")
    os.chmod(name, 0o755)


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def clean():
    for path in ("polygraphy_artifacts",):
        subprocess.run(["rm", "-rf", path], check=True)
    for name in os.listdir("."):
        if name.startswith("polygraphy_debug"):
            os.remove(name)


def tidy(text):
    """A log without what differs from run to run."""
    text = re.sub(r"Duration [0-9.e-]+s", "Duration Ts", text)
    text = re.sub(r"Runtime: [0-9.]+s", "Runtime: Ts", text)
    return re.sub(r"\d\d-\d\d-\d\d_\d\d-\d\d-\d\d", "STAMP", text)


# ---- models -------------------------------------------------------------------------------------


def save(name, nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), name)


def write_models():
    rng = np.random.default_rng(1)
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 8, 8])
    # Five convolutions, which stay layers of their own.
    weights = {f"w{i}": rng.standard_normal((4, 4, 3, 3)).astype(np.float32) / 6 for i in range(5)}
    nodes = [helper.make_node("Conv", ["x" if i == 0 else f"v{i - 1}", f"w{i}"], [f"v{i}"], f"c{i}", pads=[1] * 4) for i in range(5)]
    save("chain.onnx", nodes, [image], [helper.make_tensor_value_info("v4", TensorProto.FLOAT, ["N", 4, 8, 8])], weights)
    # A line of different operators, as in the samples of Polygraphy's.
    line = ["Relu", "Sigmoid", "Exp", "Tanh", "Abs"]
    nodes = [helper.make_node(op, ["x" if i == 0 else f"t{i - 1}"], [f"t{i}"], op.lower()) for i, op in enumerate(line)]
    save("line.onnx", nodes, [image], [helper.make_tensor_value_info("t4", TensorProto.FLOAT, ["N", 4, 8, 8])], {})
    # Two arms: a bisection that marked single values would lose sight of Tanh in the first one.
    nodes = [helper.make_node("Relu", ["x"], ["a0"]), helper.make_node("Tanh", ["a0"], ["a1"]), helper.make_node("Abs", ["a1"], ["a2"]),
             helper.make_node("Sigmoid", ["x"], ["b0"]), helper.make_node("Exp", ["b0"], ["b1"]), helper.make_node("Neg", ["b1"], ["b2"]),
             helper.make_node("Sqrt", ["b1"], ["nobody"]), helper.make_node("Cos", ["nobody"], ["reads"]),
             helper.make_node("Add", ["a2", "b2"], ["y"])]
    save("arms.onnx", nodes, [image], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4, 8, 8])], {})
    # In fp16 the second product overflows; the last ones bring it back into range.
    big = np.full((4, 4), 200, np.float32)
    names = ["m0", "m1", "m2", "m3"]
    scaled = {"k0": big, "k1": big, "k2": big / 200 / 200, "k3": np.eye(4, dtype=np.float32)}
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"p{i - 1}", f"k{i}"], [f"p{i}"], n) for i, n in enumerate(names)]
    row = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    save("overflow.onnx", nodes, [row], [helper.make_tensor_value_info("p3", TensorProto.FLOAT, [1, 4])], scaled)
    save("integers.onnx", [helper.make_node("Add", ["x", "x"], ["y"])], [helper.make_tensor_value_info("x", TensorProto.INT64, [2])],
         [helper.make_tensor_value_info("y", TensorProto.INT64, [2])], {})


def write_checks():
    # Fails in iterations whose number is an argument.
    script("fails.sh", 'n=$(grep -o "[0-9][0-9]*" info.json)\necho "iteration $n"; echo "to stderr" >&2; echo "$n" > art.txt\n'
           'for bad in "$@"; do [ "$n" = "$bad" ] && exit 1; done; exit 0')
    # Fails if the model has this operator.
    script("has.sh", '! grep -aq "$1" polygraphy_debug.onnx')
    # Passes if these layers of the plan are in fp32 and none of those behind -- is.
    script("fp32.sh", 'assay inspect plan polygraphy_debug.engine > ledger.txt || exit 9\nwant=fp32\n'
           'for l in "$@"; do [ "$l" = -- ] && { want=fp16; continue; }\n'
           'grep -Eq "^$want .* $l( |\\$)" ledger.txt || { echo "$l is not in $want"; exit 1; }; done; exit 0')


# ---- repeat -------------------------------------------------------------------------------------

REPEAT_LOG = """\
[I] RUNNING | Command: {line}
[I]     RUNNING | Iteration 1
[I]     Running check command: ./fails.sh 1
[I]     Moving art.txt to polygraphy_artifacts/good/art_STAMP_N0.txt
[I]     Saving debug replay to polygraphy_debug_replay.json
[I]     PASSED | Iteration 1 | Duration Ts
[I]     RUNNING | Iteration 2
[I]     Running check command: ./fails.sh 1
[I]     ========== CAPTURED STDOUT ==========
        iteration 1
[E]     ========== CAPTURED STDERR ==========
        to stderr
[I]     Moving art.txt to polygraphy_artifacts/bad/art_STAMP_N1.txt
[I]     Saving debug replay to polygraphy_debug_replay.json
[E]     FAILED | Iteration 2 | Duration Ts
[I]     RUNNING | Iteration 3
[I]     Running check command: ./fails.sh 1
[I]     Moving art.txt to polygraphy_artifacts/good/art_STAMP_N2.txt
[I]     Saving debug replay to polygraphy_debug_replay.json
[I]     PASSED | Iteration 3 | Duration Ts
[I] Finished 3 iteration(s) | Passed: 2/3 | Pass Rate: 66.66666666666667%
[I] PASSED | Runtime: Ts | Command: {line}
"""


def entry(index, success, state=None):
    return {"state": state or {}, "iteration_info": {"iteration": index}, "success": success, "polygraphy_class": "IterationContext"}


def test_repeat(failures):
    clean()
    args = ["debug", "repeat", "--until", "3", "--iter-info", "info.json", "--artifacts", "art.txt", "--check", "./fails.sh", "1"]
    r = polygraphy(*args)
    want = REPEAT_LOG.format(line="polygraphy " + " ".join(args))
    failures.check(r.returncode == 0 and tidy(r.stdout) == want, "the log of debug repeat", r.stdout + r.stderr)
    with open("polygraphy_debug_replay.json", encoding="utf-8") as f:
        text = f.read()
    replay = {"_N0": entry(0, True), "_N1": entry(1, False), "_N2": entry(2, True)}
    failures.check(json.loads(text) == replay and '\n    "_N0": {\n        "state": {},' in text, "the replay of debug repeat", text)
    skip = read("polygraphy_debug_replay_skip_current.json")
    failures.check(skip == {**replay, "_N2": entry(2, False)}, "the replay that skips", str(skip))
    files = sorted(f"{folder}/{name[:4]}{name[-6:]}" for folder in ("bad", "good") for name in os.listdir("polygraphy_artifacts/" + folder))
    failures.check(files == ["bad/art_N1.txt", "good/art_N0.txt", "good/art_N2.txt"], "artifacts are sorted", str(files))
    failures.check(not os.path.exists("info.json"), "--iter-info is removed")


# Arguments behind "debug repeat", exit code, patterns of the output (with !: not there).
REPEAT_ROWS = [
    ("--until bad --iter-info info.json --check ./fails.sh 2", 0, ["Finished 3 iteration", "Passed: 2/3"]),
    ("--until good --iter-info info.json --check ./fails.sh 0 1", 0, ["Finished 3 iteration", "Passed: 1/3"]),
    ("--until 1 --check true", 0, [re.escape(NO_ARTIFACTS), "!The check command finds"]),
    ("--until 1 --check polygraphy --version", 0, ["The check command finds polygraphy, trtexec and assay in .*, which is first", "1/1"]),
    ("--until 2 --fail-code 3 4 --check sh -c 'exit 2'", 0, ["Passed: 2/2"]),
    ("--until 1 --fail-code 3 4 --check sh -c 'exit 4'", 0, ["Passed: 0/1"]),
    ("--until 1 --ignore-fail-code 4 --check sh -c 'exit 4'", 0, ["Passed: 1/1"]),
    ("--until 1 --fail-code -9 --check sh -c 'kill -9 $$'", 0, ["Passed: 0/1"]),
    ("--until 1 --fail-regex 'e\\w+r \\d' --check echo error 5", 0, ["Passed: 0/1"]),
    ("--until 1 --fail-regex none 'e\\w+r \\d' --check sh -c 'echo error 5 >&2'", 0, ["Passed: 0/1"]),
    ("--until 1 --fail-regex none --check false", 0, ["Passed: 1/1"]),
    ("--until 1 --fail-regex oops --fail-code 2 --check sh -c 'echo oops; exit 1'", 0, ["Passed: 1/1"]),
    ("--until 1 --show-output --check echo hello", 0, [r"CAPTURED STDOUT =+\n        hello\n\[W\]     =+ CAPTURED STDERR"]),
    ("--until 1 --check echo hello", 0, ["!hello\n        "]),
    ("--until 1 --hide-fail-output --check sh -c 'echo hello; false'", 0, ["!CAPTURED"]),
    ("--until 1 --artifacts nothing.txt --check true", 0, [r"\[E\]     Artifact: nothing.txt does not exist, skipping.\n        Was"]),
    ("--until 1 --check sh -c 'polygraphy --version && trtexec -h && assay --version' --until 5", 0, ["Passed: 1/1", "Command: .* --until 5"]),
    ("--until 1 --check ./not_there", 1, [r"\[!\] the check command: cannot start './not_there'", "FAILED"]),
    ("--until 1 --check", 1, ["--check needs a command"]),
    ("--until 1", 1, ["standard input is not a terminal"]),
    ("--until 0 --check true", 1, ["--until value must be an integer, 'good', or 'bad', but was: 0"]),
    ("--until ugly --check true", 1, ["--until value must be an integer, 'good', or 'bad', but was: ugly"]),
    ("--until 1 --fail-code x --check true", 1, ["--fail-code: 'x' is not an exit status"]),
    ("--until 1 --fail-regex '(' --check true", 1, [r"--fail-regex '\('"]),
    ("--until 1 --fail-regex '(?=x)' --check true", 1, ["is not there"]),
    ("--until 1 --load-debug-replay none.json --check true", 1, ["none.json"]),
    ("--until 1 --load-debug-replay list.json --check true", 1, ["'list.json' is not a debug replay"]),
    ("--until 1 --load-debug-replay odd.json --check true", 1, ["'odd.json' is not a debug replay: its entry '_N0'"]),
    ("--check true", 2, ["required: --until"]),
    ("--until 1 --fail-code 1 --ignore-fail-code 2 --check true", 2, ["not allowed with argument"]),
    ("--until 1 --show-output --hide-fail-output --check true", 2, ["not allowed with argument"]),
    ("--until 1 --iter-artifact x --check true", 1, ["Unrecognized Options"]),
]


def expect(failures, name, r, code, patterns):
    text = r.stdout + r.stderr
    failures.check(r.returncode == code, f"{name}: exit code {r.returncode}, not {code}", text)
    for p in patterns:
        found = re.search(p.lstrip("!"), text)
        failures.check(bool(found) != p.startswith("!"), f"{name}: {p}", text)


def test_rows(failures):
    import shlex
    with open("list.json", "w", encoding="utf-8") as f:
        f.write("[]")
    with open("odd.json", "w", encoding="utf-8") as f:
        f.write('{"_N0": {"success": 3}}')
    for args, code, patterns in REPEAT_ROWS:
        clean()
        expect(failures, f"debug repeat {args}", polygraphy("debug", "repeat", *shlex.split(args)), code, patterns)


def test_replay(failures):
    """A run that was killed in an iteration goes on behind it."""
    clean()
    script("kills.sh", 'n=$(grep -o "[0-9][0-9]*" info.json); echo $n >> ran.txt; [ $n != 1 ] || kill -9 $PPID')
    args = ["debug", "repeat", "--until", "3", "--iter-info", "info.json"]
    r = polygraphy(*args, "--check", "./kills.sh")
    failures.check(r.returncode == -signal.SIGKILL, "the first run is killed", r.stdout)
    failures.check(read("polygraphy_debug_replay.json") == {"_N0": entry(0, True)}, "the replay before the crash")
    os.rename("polygraphy_debug_replay_skip_current.json", "skip.json")
    failures.check(read("skip.json") == {"_N0": entry(0, True), "_N1": entry(1, False)}, "the replay that passes the crash over")
    r = polygraphy(*args, "--load-debug-replay", "skip.json", "--save-debug-replay", "all.json", "--check", "./kills.sh")
    with open("ran.txt", encoding="utf-8") as f:
        ran = f.read().split()
    failures.check(r.returncode == 0 and ran == ["0", "1", "2"], f"what ran: {ran}", r.stdout)
    failures.check("Loading iteration information from debug replay: success=False" in r.stdout, "it says so", r.stdout)
    failures.check(read("all.json") == {"_N0": entry(0, True), "_N1": entry(1, False), "_N2": entry(2, True)}, "the whole replay")
    failures.check(os.path.exists("all_skip_current.json"), "the name of the replay that skips")


def test_artifacts(failures):
    """Folders move, too; what is there already is not overwritten."""
    clean()
    script("makes.sh", "mkdir -p out.d q; echo 1 > out.d/a; echo 2 > q/log.tar.gz; echo 3 > other.txt; mkdir -p mine/good\n"
           "now=$(date +%m-%d-%y_%H-%M-%S)")
    r = polygraphy("debug", "repeat", "--until", "1", "--art-dir", "mine", "--artifacts", "out.d", "q/log.tar.gz", "other.txt", "--check",
                   "./makes.sh")
    names = sorted(re.sub(r"_\d\d-.*_N0", "_STAMP_N0", n) for n in os.listdir("mine/good"))
    failures.check(r.returncode == 0 and names == ["log.tar_STAMP_N0.gz", "other_STAMP_N0.txt", "out_STAMP_N0.d"], f"names: {names}", r.stdout)
    # The same name twice in one second: two artifacts of one base name.
    script("twice.sh", "mkdir -p p q; echo p > p/a.txt; echo q > q/a.txt")
    r = polygraphy("debug", "repeat", "--until", "1", "--art-dir", "two", "--artifacts", "p/a.txt", "q/a.txt", "--check", "./twice.sh")
    contents = []
    for name in sorted(os.listdir("two/good")):
        with open("two/good/" + name, encoding="utf-8") as f:
            contents.append(f.read().strip())
    failures.check(sorted(contents) == ["p", "q"], f"nothing is overwritten: {contents}", r.stdout)


def test_asked(failures):
    """Without --check the terminal is asked."""
    clean()
    leader, follower = pty.openpty()
    p = subprocess.Popen(["polygraphy", "debug", "repeat", "--until", "2"], stdin=follower, stdout=subprocess.PIPE, text=True)
    os.close(follower)
    os.write(leader, b"what\np\nFAIL\n")
    out = p.communicate(timeout=60)[0]
    os.close(leader)
    failures.check(p.returncode == 0 and "Passed: 1/2" in out, "answers", out)
    failures.check(">>> Did 'this iteration' [p]ass or [f]ail? >>> Please choose either: 'p' or 'f': " in out, "the question", out)
    failures.check("Starting interactive debugging session since no `--check` command was provided" in out, "it says that it asks", out)


def test_interrupted(failures):
    """The folder of links goes with the program."""
    clean()
    os.makedirs("tmp", exist_ok=True)
    p = subprocess.Popen(["polygraphy", "debug", "repeat", "--until", "1", "--check", "sh", "-c", "touch started; sleep 5"],
                         stdout=subprocess.DEVNULL, env={**os.environ, "TMPDIR": os.path.abspath("tmp")})
    end = time.time() + 30
    while not os.path.exists("started") and time.time() < end:
        time.sleep(0.02)
    had = os.listdir("tmp")
    p.terminate()
    p.wait(timeout=30)
    failures.check(p.returncode == -signal.SIGTERM and had and not os.listdir("tmp"), f"links: {had}, then {os.listdir('tmp')}")


# ---- precision ----------------------------------------------------------------------------------

# Arguments before --check, check, exit code, K of the result (None: none found), iterations.
PRECISION_ROWS = [
    ("--fp16", "./fp32.sh c0 c1 c2", 0, ("first", 3), None),
    ("--fp16 --dir reverse", "./fp32.sh c3", 0, ("last", 2), None),
    ("--fp16 --mode linear", "./fp32.sh c0 c1", 0, ("first", 2), 3),
    ("--fp16 --mode linear --dir reverse", "./fp32.sh -- c4", 0, ("last", 0), 1),
    ("--fp16", "true", 0, ("first", 0), None),
    ("--fp16", "false", 1, None, 1),
    ("--fp16 -p float32", "./fp32.sh c4 c0", 0, ("first", 5), None),
    ("--fp16 --layer-precisions c1:float16", "./fp32.sh c0 c2 -- c1", 0, ("first", 3), None),
    ("--fp16 --mode linear", "false", 1, None, 6),
]


def test_precision(failures):
    for args, check, code, found, n in PRECISION_ROWS:
        if "c1:float16" in args and not has_avx512():
            skipped(f"debug precision {args}", "no kernel computes in fp16 without AVX-512")
            continue
        clean()
        r = polygraphy("debug", "precision", "chain.onnx", *args.split(), "--check", *check.split())
        name = f"debug precision {args} --check {check}"
        want = ["Could not find a configuration that satisfied accuracy requirements."]
        if found:
            want = [f"To achieve acceptable accuracy, try running the {found[0]} {found[1]} layer\\(s\\) in higher precision"]
        if n:
            want.append(f"Finished {n} iteration")
        if found and found[1]:
            layers = [f"c{i}" for i in range(5)]
            layers = layers[:found[1]] if found[0] == "first" else layers[::-1][:found[1]]
            own = " ".join(f"'{l}:float32'" for l in layers)
            want.append(f"--precision-constraints obey --layer-precisions {own}\n")
            want.append("--precisionConstraints=obey --layerPrecisions='" + ",".join(l + ":fp32" for l in layers) + "'\n")
        expect(failures, name, r, code, want)
        failures.check(not os.path.exists("polygraphy_debug.engine"), name + ": the engine is removed")
    clean()
    rows = [("chain.onnx", [], ["--fp16, --bf16, --int8"]), ("chain.onnx", ["--int8", "-p", "float16"], ["-p float16 needs --fp16"]),
            ("integers.onnx", ["--fp16"], ["no layer whose precision"]), ("none.onnx", ["--fp16"], ["Model path does not exist"])]
    for model, args, patterns in rows:
        expect(failures, f"debug precision {model} {args}", polygraphy("debug", "precision", model, *args, "--check", "true"), 1, patterns)
    with open("polygraphy_debug.engine", "w", encoding="utf-8") as f:
        f.write("mine")
    r = polygraphy("debug", "precision", "chain.onnx", "--fp16", "--check", "true")
    expect(failures, "an engine that is there", r, 1, [r"\[!\] polygraphy_debug.engine already exists, refusing to overwrite. Please remove"])
    with open("polygraphy_debug.engine", encoding="utf-8") as f:
        failures.check(f.read() == "mine", "it is left as it is")
    r = polygraphy("debug", "precision", "chain.onnx", "--fp16", "--mode", "linear", "--iter-artifact", "e.plan", "--no-remove-intermediate",
                   "--check", "test", "-s", "e.plan")
    failures.check(r.returncode == 0 and os.path.exists("e.plan"), "--iter-artifact, --no-remove-intermediate", r.stdout)


def test_overflow(failures):
    """What a check of another call of polygraphy finds, and that what is printed mends it."""
    clean()
    r = polygraphy("run", "overflow.onnx", "--onnxrt", "--save-inputs", "input.json", "--save-outputs", "golden.json")
    failures.check(r.returncode == 0, "golden outputs", r.stdout + r.stderr)
    compare = ["--trt", "--load-inputs", "input.json", "--load-outputs", "golden.json", "--abs", "1e-1", "--rel", "1e-2"]
    r = polygraphy("run", "overflow.onnx", "--fp16", *compare)
    failures.check(r.returncode == 1, "in fp16 it is wrong", r.stdout + r.stderr)
    r = polygraphy("debug", "precision", "overflow.onnx", "--fp16", "--tactic-sources", "cublas", "--verbose", "-p", "float32", "--check",
                   "polygraphy", "run", "polygraphy_debug.engine", *compare)
    expect(failures, "debug precision", r, 0, [r"running the first [1-4] layer\(s\) in higher precision"])
    line = re.search(r"For polygraphy: (.*)", r.stdout)
    words = [w.strip("'") for w in line.group(1).split()] if line else []
    r = polygraphy("run", "overflow.onnx", "--fp16", *words, *compare)
    failures.check(r.returncode == 0, "what is printed mends it", r.stdout + r.stderr)


# ---- reduce -------------------------------------------------------------------------------------


def ops(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return [n.op_type for n in model.graph.node]


def reduce(*args, model="line.onnx"):
    clean()
    for name in ("r.onnx", "g.onnx"):
        if os.path.exists(name):
            os.remove(name)
    return polygraphy("debug", "reduce", model, "-o", "r.onnx", "--model-input-shapes", "x:[2,4,8,8]", *args)


def test_reduce(failures):
    for mode in ("bisect", "linear"):
        for op in ("Relu", "Sigmoid", "Exp", "Tanh", "Abs"):
            r = reduce("--mode", mode, "--min-good", "g.onnx", "--check", "./has.sh", op)
            name = f"debug reduce --mode {mode}, a bad {op}"
            failures.check(r.returncode == 0 and os.path.exists("r.onnx") and ops("r.onnx") == [op], name, r.stdout + r.stderr)
            if op == "Relu" and mode == "bisect":
                failures.check("Could not find a minimum good model" in r.stdout, name + ": no part is good", r.stdout)
            if os.path.exists("g.onnx"):
                failures.check(op not in ops("g.onnx") and "Minimum Good Model:" in r.stdout, name + ": the good one", r.stdout)
    r = reduce("--check", "./has.sh", "Exp")
    expect(failures, "the log of debug reduce", r, 0, [
        r"\[I\] Overriding input shapes to:\n    \{x \[dtype=float32, shape=\(2, 4, 8, 8\)\]\}\n",
        r"\[I\] Reducing model outputs\n\[I\]     RUNNING \| Iteration 1 \| Approximately 3 iteration\(s\) remaining\n"
        r"\[I\]         Marking model outputs: \[Variable \(t2\): \(shape=\[2, 4, 8, 8\], dtype=float32\)\]\n"
        r"\[I\]         Saving ONNX model to: polygraphy_debug.onnx\n\[I\]     Running check command: ./has.sh Exp\n",
        r"\[I\] Finished reducing model outputs\n\[I\] Marking model outputs: \[Variable \(t2\)", r"\[I\] Reducing model inputs\n",
        r"\[I\] Marking model inputs: \[Variable \(t1\)", r"\[I\] Minimum Bad Model:\n    Name: g \| ONNX Opset: 17\n",
        r"\{t1 \[dtype=float32, shape=\(2, 4, 8, 8\)\]\}", r"\[I\] Saving ONNX model to: r.onnx\n"])
    replay = read("polygraphy_debug_replay.json")
    sizes = {k: (v["state"]["num_nodes"], v["success"]) for k, v in replay.items()}
    failures.check(sizes == {"_N0_outputs": (3, False), "_N1_outputs": (2, True), "_N0_inputs": (2, False),
                             "_N1_inputs": (1, False)}, f"the replay: {sizes}")
    # With its replay nothing is checked any more, and the same comes out.
    os.rename("polygraphy_debug_replay.json", "saved.json")
    r = reduce("--load-debug-replay", "saved.json", "--check", "./not_there")
    failures.check(r.returncode == 0 and ops("r.onnx") == ["Exp"] and "Running check" not in r.stdout, "reduced from a replay", r.stdout)
    r = reduce("--artifacts", "polygraphy_debug.onnx", "--check", "./has.sh", "Exp")
    names = sorted(re.sub(r"_\d\d-.*_N", "_STAMP_N", n) for n in os.listdir("polygraphy_artifacts/bad"))
    failures.check("polygraphy_debug_STAMP_N0_outputs.onnx" in names and "polygraphy_debug_STAMP_N1_inputs.onnx" in names, f"{names}", r.stdout)
    # Two arms
    r = reduce("--check", "./has.sh", "Tanh", model="arms.onnx")
    failures.check(r.returncode == 0 and "Tanh" in ops("r.onnx") and len(ops("r.onnx")) <= 2, f"two arms: {ops('r.onnx')}", r.stdout)
    r = reduce("--mode", "linear", "--check", "./has.sh", "Tanh", model="arms.onnx")
    failures.check(ops("r.onnx") == ["Tanh"], f"two arms, one by one: {ops('r.onnx')}", r.stdout)
    # Only one end
    reduce("--no-reduce-inputs", "--check", "./has.sh", "Exp")
    failures.check(ops("r.onnx") == ["Relu", "Sigmoid", "Exp"], "--no-reduce-inputs")
    reduce("--no-reduce-outputs", "--check", "./has.sh", "Exp")
    failures.check(ops("r.onnx") == ["Exp", "Tanh", "Abs"], "--no-reduce-outputs")
    # Nothing to do
    r = reduce("--check", "true")
    expect(failures, "a model that passes", r, 1, ["The check passes on the whole model: there is nothing to reduce", "!Reducing model"])
    failures.check(not os.path.exists("r.onnx"), "nothing is written")
    expect(failures, "no output", polygraphy("debug", "reduce", "line.onnx", "--check", "true"), 2, ["-o/--output"])
    expect(failures, "neither end", reduce("--no-reduce-inputs", "--no-reduce-outputs", "--check", "true"), 2, ["not allowed with argument"])
    expect(failures, "a shape that is none", polygraphy("debug", "reduce", "line.onnx", "-o", "r.onnx", "--model-input-shapes", "x:[a", "--check",
                                                        "true"), 1, ["--model-input-shapes"])


# ---- build and tactics --------------------------------------------------------------------------


def test_build(failures):
    clean()
    r = polygraphy("debug", "build", "chain.onnx", "--until", "3", "--save-tactics", "replay.json", "--artifacts", "replay.json", "--iter-info",
                   "info.json", "--check", "./fails.sh", "1")
    expect(failures, "debug build", r, 0, ["Passed: 2/3", r"Moving replay.json to polygraphy_artifacts/bad/replay_.*_N1.json"])
    good, bad = (os.path.join("polygraphy_artifacts", k) for k in ("good", "bad"))
    failures.check(len(os.listdir(good)) == 2 and len(os.listdir(bad)) == 1, "replays are sorted", r.stdout)
    r = polygraphy("inspect", "diff-tactics", "--dir", "polygraphy_artifacts")
    expect(failures, "diff-tactics", r, 0, ["Loaded 2 good tactic replays.", "Loaded 1 bad tactic replays.", "potentially bad tactics"])
    expect(failures, "a build that fails", polygraphy("debug", "build", "chain.onnx", "--until", "1", "--layer-precisions", "c0:int4",
                                                      "--precision-constraints", "obey", "--check", "true"), 0, ["Passed: 0/1", "!Running check"])


def build(*args):
    clean()
    return polygraphy("debug", "build", "chain.onnx", "--until", "1", "--no-remove-intermediate", *args, "--check", "true")


def tactics_of_plan():
    text = subprocess.run(["assay", "inspect", "plan", "polygraphy_debug.engine"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines()]
    head = next(i for i, words in enumerate(lines) if words[:2] == ["asked", "ran"])
    return {words[4]: words[2] for words in lines[head + 1:]}


def test_tactics(failures):
    build("--save-tactics", "t.json")
    was = tactics_of_plan()
    replay = read("t.json")
    failures.check(replay["polygraphy_class"] == "TacticReplayData" and list(replay) == ["replay", "polygraphy_class"], "the replay's class")
    failures.check({k: v["assay"] for k, v in replay["replay"].items()} == was, "tactics are those of the plan", str(was))
    first = replay["replay"]["c0"]
    failures.check(list(first) == ["implementation", "tactic", "assay", "inputs", "outputs", "polygraphy_class"], f"keys: {list(first)}")
    failures.check(first["inputs"] == [{"dtype": "DataType.FLOAT", "strides": [256, 64, 8, 1], "vectorized_dim": -1,
                                        "components_per_element": 1, "polygraphy_class": "TensorInfo"}], f"{first['inputs']}")
    # Another tactic for one layer: which ones take it, the machine says.
    changed = json.loads(json.dumps(replay))
    forced = []
    for other in ("onednn_conv", "direct_conv", "conv_few_channels", "gemm_weights"):
        changed["replay"]["c0"].update(assay=other, tactic=5)
        with open("changed.json", "w", encoding="utf-8") as f:
            json.dump(changed, f)
        r = build("--load-tactics", "changed.json")
        if other == first["assay"] or "Passed: 0/1" in r.stdout:
            continue
        now = tactics_of_plan()
        failures.check(r.returncode == 0 and now == {**was, "c0": other}, f"forced: {now}, was {was}", r.stdout)
        forced.append(other)
    if not forced and not has_avx512():
        skipped("another tactic by --load-tactics", "one tactic takes the layer without AVX-512")
    else:
        failures.check(forced, "no other tactic takes the layer", str(was))
    # It does not depend on the order of keys or the older class.
    old = {"__polygraphy_encoded_TacticReplayData": "polygraphy_serialized_json_type", "replay": replay["replay"]}
    with open("old.json", "w", encoding="utf-8") as f:
        json.dump(old, f)
    r = build("--load-tactics", "old.json")
    failures.check(r.returncode == 0 and tactics_of_plan() == was, "an older file", r.stdout)
    # What does not fit
    changed["replay"]["c0"]["assay"] = "data_movement"
    with open("unfit.json", "w", encoding="utf-8") as f:
        json.dump(changed, f)
    expect(failures, "a tactic that does not fit", build("--load-tactics", "unfit.json"), 0,
           ["layer 'c0' is to be run by 'data_movement', which does not take it", "Passed: 0/1"])
    del changed["replay"]["c0"]["assay"]
    with open("foreign.json", "w", encoding="utf-8") as f:
        json.dump(changed, f)
    expect(failures, "TensorRT's replay", build("--load-tactics", "foreign.json"), 0, ["was not made by Assay", "Passed: 0/1"])
    expect(failures, "both", build("--load-tactics", "t.json", "--save-tactics", "u.json"), 2, ["not allowed"])
    # inspect
    expect(failures, "inspect tactics", polygraphy("inspect", "tactics", "foreign.json"), 0,
           [r"\[I\] Layer: c0\n        Algorithm: \(Implementation: \d+, Tactic: 5\) \| Inputs: \(TensorInfo\(DataType.FLOAT, \(256, 64, 8, 1\), -1, 1\),\)"])
    expect(failures, "diff", polygraphy("inspect", "diff-tactics", "--good", "t.json", "--bad", "foreign.json"), 0,
           [r"Found potentially bad tactics:\n    Layer: c0\n        Algorithms: \(Implementation: \d+, Tactic: 5\)", "!Layer: c1"])
    expect(failures, "no bad ones", polygraphy("inspect", "diff-tactics", "--good", "t.json"), 1, ["no bad replays: give --bad"])
    expect(failures, "no folder", polygraphy("inspect", "diff-tactics", "--dir", "none"), 1, ["none/good"])
    for name, text in (("empty", ""), ("list", "[]"), ("class", '{"replay": {}}'), ("entry", '{"replay": {"a": 3}, "polygraphy_class": "TacticReplayData"}'),
                       ("strides", '{"replay": {"a": {"implementation": 1, "tactic": 1, "inputs": [{"strides": ["x"]}]}}, '
                                   '"polygraphy_class": "TacticReplayData"}')):
        with open("bad.json", "w", encoding="utf-8") as f:
            f.write(text)
        expect(failures, f"a damaged replay: {name}", polygraphy("inspect", "tactics", "bad.json"), 1, ["bad.json"])


def main():
    assay = os.path.abspath(sys.argv[1])
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("bin")
        for name in ("polygraphy", "assay"):
            os.symlink(assay, "bin/" + name)
        os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
        write_models()
        write_checks()
        for test in (test_repeat, test_rows, test_replay, test_artifacts, test_asked, test_interrupted, test_precision, test_overflow, test_reduce, test_build,
                     test_tactics):
            test(failures)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
