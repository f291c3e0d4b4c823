#!/usr/bin/env python3
"""--timeout: exit code 4 and one line that says what was going on; no folder and no process is left; the verdict is printed.

    test_timeout.py ASSAY
"""
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

failures = []


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def write_model(path, width, layers, scale=1.0):
    rng = np.random.default_rng(1)
    w = numpy_helper.from_array((scale * rng.standard_normal((width, width))).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", [f"t{i}", "w"], [f"t{i + 1}"], name=f"layer{i}") for i in range(layers)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("t0", T.FLOAT, [width, width])], [info(f"t{layers}", T.FLOAT, [width, width])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main(program):
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("tmp")
        env = {**os.environ, "TMPDIR": os.path.join(folder, "tmp")}

        def run(*args):
            start = time.monotonic()
            p = subprocess.run([program, *args], capture_output=True, text=True, timeout=60, env=env, stdin=subprocess.DEVNULL)
            return p.returncode, p.stdout, p.stderr, time.monotonic() - start

        write_model("m.onnx", 64, 3)
        write_model("large.onnx", 1024, 40)
        write_model("over.onnx", 32, 6, 3)
        line = r"assay: stopped after 0\.\d+ seconds \(--timeout\), during '%s'(: [^\n]+)?\n$"
        for words in (["bench", "m.onnx", "--seconds", "30"], ["bench", "m.onnx", "m.onnx", "--seconds", "30"], ["check", "large.onnx", "--precision", "bf16"],
                      ["run", "large.onnx", "--target", "emu"], ["tune", "large.onnx"], ["debug", "precision", "large.onnx", "--precision", "fp16"]):
            code, out, err, seconds = run(*words, "--timeout", "0.3")
            verb = " ".join(words[:2]) if words[0] == "debug" else words[0]
            err = re.sub("assay: no inputs given[^\n]*\n", "", err)
            check(code == 4 and re.match(line % verb, err) and seconds < 5, f"{words}", f"{code} after {seconds}: {out}{err}")
        # Another engine's command and what that started end, and the folder of its files is gone.
        with open("engine.sh", "w") as f:
            f.write("echo $$ > pids; sleep 40 & echo $! >> pids; wait\n")
        code, out, err, seconds = run("check", "m.onnx", "--exec", "sh engine.sh {inputs} {outputs}", "--timeout", "0.5")
        check(code == 4 and "during 'check': running the engine\n" in err and err.count("\n") == 2 and seconds < 5, "--exec", f"{code} {out}{err}")
        check(os.listdir("tmp") == [], "no folder is left", os.listdir("tmp"))
        time.sleep(0.1)
        for pid in open("pids").read().split():
            state = open(f"/proc/{pid}/stat").read().split()[2] if os.path.exists(f"/proc/{pid}") else "Z"
            check(state == "Z", f"process {pid} has ended", state)
        # The verdict is there before a fix is: the demand's command hangs where a fix is tried.
        with open("demand.sh", "w") as f:
            f.write("[ -f asked ] && sleep 40; touch asked; exit 1\n")
        code, out, err, seconds = run("check", "over.onnx", "--precision", "fp16", "--require", "sh demand.sh {outputs}", "--timeout", "2")
        check(code == 4 and out.startswith("UNFAITHFUL  over.onnx in fp16") and "  origin  layer" in out and "stopped after 2 seconds" in err and seconds < 6,
              "the verdict comes before the end", f"{code} after {seconds} {out}{err}")
        check(os.listdir("tmp") == [], "no folder of a demand is left", os.listdir("tmp"))
        # What ends in time is as without; its files are no other.
        code, out, err, _ = run("check", "m.onnx", "--precision", "bf16", "--timeout", "50")
        without = run("check", "m.onnx", "--precision", "bf16")
        check((code, out) == without[:2] and code == 0, "in time", f"{code} {out}{err}")
        for text in ("-1", "nan"):
            code, out, err, _ = run("check", "m.onnx", f"--timeout={text}")
            check(code == 2 and "--timeout is more than 0 seconds" in err, f"--timeout {text}", f"{code} {err}")
        os.chdir("/")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
