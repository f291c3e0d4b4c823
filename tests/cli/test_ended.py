#!/usr/bin/env python3
"""A program that is told to end (Ctrl-C, SIGTERM, SIGHUP) ends by that signal, ends the command that it runs and what that started, and
leaves no temporary folder.

    test_ended.py ASSAY [SEED]
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

failures = []
TIMES = 24  # of signals at any time

# What runs for long: an engine, a judge, another's script.
SLOW = "sh slow.sh {inputs} {outputs}"
LINES = [
    ["check", "m.onnx", "-i", "x.npz", "--exec", SLOW],
    ["check", "m.onnx", "-i", "x.npz", "--require", "sh slow.sh {outputs}"],
    ["tune", "m.onnx", "-i", "x.npz", "--check", "sh slow.sh {outputs}"],
    ["debug", "batch", "m.onnx", "-i", "x.npz", "--axis", "0", "--exec", SLOW],
    ["debug", "reduce", "m.onnx", "-i", "x.npz", "--exec", SLOW],
    ["debug", "reduce", "m.onnx", "-i", "x.npz", "--check", "sh slow.sh {model}"],
    ["polygraphy", "run", "m.onnx", "--onnxrt", "--data-loader-script", "slow.py"],
]


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def start(program, words, tmp):
    return subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                            env={**os.environ, "TMPDIR": tmp, "ASSAY_PYTHON": sys.executable})


def end(p, number, what, tmp):
    p.send_signal(number)
    try:
        out, err = p.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        p.kill()
        return check(False, f"{what}: it goes on after signal {number}")
    check(p.returncode in (-number, 0, 1), f"{what}: exit code {p.returncode} after signal {number}", out + err)
    check(not os.listdir(tmp), f"{what}, signal {number}: left {os.listdir(tmp)}", out + err)
    return p.returncode


def test_during(program, tmp):
    """While a command runs."""
    for words in LINES:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if os.path.exists("pids"):
                os.remove("pids")
            p = start(program, words, tmp)
            begun = time.monotonic()
            while not (os.path.exists("pids") and len(open("pids").read().split()) >= 2) and time.monotonic() < begun + 30 and p.poll() is None:
                time.sleep(0.02)
            code = end(p, number, words, tmp)
            check(code == -number, f"{words}: {code} after signal {number}")
            for pid in open("pids").read().split() if os.path.exists("pids") else []:
                for _ in range(100):
                    if not is_alive(pid):
                        break
                    time.sleep(0.02)
                check(not is_alive(pid), f"{words}, signal {number}: process {pid} goes on")


def test_any_time(program, tmp, rng):
    """Between commands, too, as files are written and read."""
    words = ["debug", "reduce", "m.onnx", "-i", "x.npz", "--check", "test -s {model} && cp {inputs} kept.npz; false"]
    begun = time.monotonic()
    start(program, words, tmp).communicate(timeout=120)
    whole = min(time.monotonic() - begun, 3)
    check(not os.listdir(tmp), f"{words}: left {os.listdir(tmp)}")
    for _ in range(TIMES):
        p = start(program, words, tmp)
        time.sleep(rng.uniform(0, whole))
        end(p, rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]), words, tmp)


def test_ignored(program, tmp):
    """Who has said that hanging up does not matter (nohup) is heeded."""
    if os.path.exists("pids"):
        os.remove("pids")
    p = subprocess.Popen(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", program, *LINES[0]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": tmp, "ASSAY_PYTHON": sys.executable})
    begun = time.monotonic()
    while not os.path.exists("pids") and time.monotonic() < begun + 30:
        time.sleep(0.02)
    p.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    check(p.poll() is None, "SIGHUP was to be ignored")
    p.send_signal(signal.SIGTERM)
    check(p.wait(20) == -signal.SIGTERM and not os.listdir(tmp), "SIGTERM after an ignored SIGHUP", os.listdir(tmp))


def main(program, seed="7"):
    program, rng = os.path.abspath(program), random.Random(int(seed))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("tmp")
        tmp = os.path.join(folder, "tmp")
        draw = np.random.default_rng(1)
        w = numpy_helper.from_array(draw.standard_normal((8, 8)).astype(np.float32), "w")
        nodes = [helper.make_node("MatMul", [f"t{i}", "w"], [f"t{i + 1}"], name=f"layer{i}") for i in range(6)]
        info = helper.make_tensor_value_info
        graph = helper.make_graph(nodes, "g", [info("t0", T.FLOAT, [3, 8])], [info("t6", T.FLOAT, [3, 8])], [w])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "m.onnx")
        np.savez("x.npz", t0=draw.standard_normal((3, 8)).astype(np.float32))
        with open("slow.sh", "w") as f:
            f.write("echo $$ > pids; sleep 60 & echo $! >> pids; wait\n")
        with open("slow.py", "w") as f:
            f.write("import os, subprocess\ndef load_data():\n    p = subprocess.Popen(['sleep', '60'])\n"
                    "    with open('pids', 'w') as f:\n        f.write(f'{os.getpid()} {p.pid}')\n    p.wait()\n    yield {}\n")
        test_during(program, tmp)
        test_any_time(program, tmp, rng)
        test_ignored(program, tmp)
        os.chdir("/")
    print(f"{len(failures)} failures (seed {seed})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
