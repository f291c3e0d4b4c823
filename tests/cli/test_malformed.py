#!/usr/bin/env python3
"""Files that are no valid models, through the command line: one line, exit code 3, soon, in little memory.

    test_malformed.py ASSAY MODELS [--no-limits]

MODELS is tests/models. tests/onnx/test_malformed.c has more of each class; here it is the program that
counts: exit code, the one line, and under 1 s (of processor time) and 200 MB (not with --no-limits: for
sanitizers). A real model is cut at places drawn with a printed seed; ASSAY_FULL=1 cuts it at every byte of
its first 4 KiB and 1,000 places behind, in all verbs.
"""
import concurrent.futures
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUT = 3
VERBS = (("check",), ("run",), ("inspect", "model"))
MAX_SECONDS, MAX_MB = 1, 200
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def info(name, dims=(2,), elem=FLOAT):
    return helper.make_tensor_value_info(name, elem, dims)


def model(nodes, inputs=None, outputs=None, initializers=(), opset=17, ir=8, functions=()):
    graph = helper.make_graph(nodes, "g", inputs or [info("x")], outputs or [info("y")], list(initializers))
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid("local", 1)] * bool(functions)
    opsets += [helper.make_opsetid(d, 1) for d in {n.domain for n in nodes} - {"", "local"} if d.startswith("ai.")]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir, functions=list(functions))


def add(weight):
    return model([helper.make_node("Add", ["x", "w"], ["y"])], initializers=[weight])


def weight(dims=(2,), raw=b"\0" * 8, elem=FLOAT):
    return TensorProto(name="w", data_type=elem, dims=dims, raw_data=raw)


def external(**entries):
    t = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        t.external_data.add(key=key, value=value)
    return add(t)


def relu(reads="x", writes="y", **more):
    return helper.make_node("Relu", [reads], [writes], **more)


def field(number, payload):
    def varint(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes(out) + bytes([n])
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def deep(n):
    """A graph in an attribute of a node of a graph ..., n times."""
    graph = b""
    for _ in range(n):
        graph = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, graph)))
    return model([relu()]).SerializeToString() + field(7, graph)


def function(name, calls, domain="local"):
    return helper.make_function("local", name, ["a"], ["b"], [helper.make_node(calls, ["a"], ["b"], domain=domain)],
                                [helper.make_opsetid("local", 1), helper.make_opsetid("", 17)])


def classes():
    yield "empty", b""
    yield "text", b"this is not a model\n" * 100
    yield "bad wire type", b"\x0f\x01" + model([relu()]).SerializeToString()
    yield "wire type of a field", b"\x38\x01"
    yield "cycle", model([helper.make_node("Add", ["x", "c"], ["a"]), relu("a", "b"), relu("b", "c"), relu("c", "y")])
    yield "missing input", model([relu("nothing")])
    yield "missing output", model([relu("x", "z")])
    yield "type mismatch", model([helper.make_node("Add", ["x", "i"], ["y"])], [info("x"), info("i", elem=INT64)])
    yield "declared type", model([relu()], outputs=[info("y", elem=INT64)])
    yield "shape mismatch", model([helper.make_node("Add", ["x", "z"], ["y"])], [info("x"), info("z", (3,))])
    yield "MatMul shapes", model([helper.make_node("MatMul", ["x", "z"], ["y"])],
                                 [info("x", (2, 3)), info("z", (4, 5))], [info("y", (2, 5))])
    yield "declared type", model([relu()], outputs=[helper.make_tensor_value_info("y", TensorProto.INT64, (2,))])
    yield "input of 2^62", model([relu()], [info("x", (1 << 62,))], [info("y", (1 << 62,))])
    yield "input of 2^62 in two", model([relu()], [info("x", (1 << 31, 1 << 31))], [info("y", (1 << 31, 1 << 31))])
    yield "negative input", model([relu()], [info("x", (-2,))], [info("y", (-2,))])
    yield "weight of 2^62", add(weight((1 << 62,)))
    yield "weight of 2^62 in two", add(weight((1 << 31, 1 << 31)))
    yield "negative weight", add(weight((-2,)))
    yield "weight of 2^40", add(weight((1 << 40,)))
    yield "ConstantOfShape 2^62", model([helper.make_node("ConstantOfShape", ["w"], ["y"])], outputs=[info("y", None)],
                                        initializers=[numpy_helper.from_array(np.array([1 << 62]), "w")])
    yield "ConstantOfShape -1", model([helper.make_node("ConstantOfShape", ["w"], ["y"])], outputs=[info("y", None)],
                                      initializers=[numpy_helper.from_array(np.array([-1]), "w")])
    yield "external outside", external(location="../outside.bin")
    yield "external absolute", external(location="/etc/passwd")
    yield "external link", external(location="link.bin")
    yield "external missing", external(location="nothing.bin")
    yield "external past the end", external(location="small.bin", offset="12", length="8")
    yield "external far past the end", external(location="small.bin", offset=str((1 << 63) - 4), length="8")
    yield "external length", external(location="small.bin", offset="0", length="4")
    yield "raw_data short", add(weight(raw=b"\0" * 7))
    yield "raw_data long", add(weight(raw=b"\0" * 12))
    yield "string count", model([helper.make_node("Identity", ["w"], ["y"])], outputs=[info("y", elem=TensorProto.STRING)],
                                initializers=[TensorProto(name="w", data_type=TensorProto.STRING, dims=[4],
                                                          string_data=[b"a", b"b", b"c"])])
    yield "recursion", model([helper.make_node("F", ["x"], ["y"], domain="local")], functions=[function("F", "F")])
    yield "recursion of two", model([helper.make_node("F", ["x"], ["y"], domain="local")],
                                    functions=[function("F", "G"), function("G", "F")])
    yield "call without what the body needs", model([helper.make_node("F", [], ["y"], domain="local")],
                                                    functions=[function("F", "Relu", "")])
    yield "one of several left out", model([helper.make_node("Concat", ["", "x"], ["y"], axis=0)], outputs=[info("y", (2,))])
    yield "the last of several left out", model([helper.make_node("Sum", ["x", ""], ["y"])])
    yield "too many outputs", model([helper.make_node("Adam", ["x", "t", "x", "x", "x", "x"], list("yabc"), domain="ai.onnx.preview.training")],
                                    [info("x", ()), info("t", (), INT64)], [info("y", ())])
    yield "10,000 deep", deep(10000)
    yield "unknown operator", model([helper.make_node("Frobnicate", ["x"], ["y"])])
    yield "unknown domain", model([helper.make_node("Relu", ["x"], ["y"], domain="nowhere")])
    yield "unknown attribute", model([relu(colour=1)])
    yield "too new an opset", model([relu()], opset=999)
    yield "too new an IR", model([relu()], ir=99)


UNKNOWN = ("unknown operator", "unknown domain")


def cuts(data, full, seed):
    random.seed(seed)
    if full:
        return list(range(4096)) + random.sample(range(4096, len(data)), 1000)
    return random.sample(range(4096), 60) + random.sample(range(4096, len(data)), 20)


def judge(program, verb, path, data, limits):
    """What is wrong, or None."""
    with open(path, "wb") as file:
        file.write(data)
    try:
        return judge_file(program, verb, path, limits)
    finally:
        os.remove(path)


def judge_file(program, verb, path, limits):
    out, err = (tempfile.TemporaryFile() for _ in range(2))
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    process = subprocess.Popen([program, *verb, path], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
    start = time.monotonic()
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() - start > 120:
            process.kill()
        time.sleep(0.002)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    err.seek(0, io.SEEK_SET)
    text = err.read().decode(errors="replace")
    seconds, mb = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    # Models whose fault shows when they run have their random inputs by then.
    text = re.sub(r"^assay: no inputs given: [^\n]*\n", "", text)
    if code != INPUT:
        return f"exit code {code}: {text!r}"
    if not re.fullmatch(r"assay: [^\n]+\n", text):
        return f"not one line: {text!r}"
    if len(text) > 1000:
        return f"a line of {len(text)} bytes"
    if limits and (seconds > MAX_SECONDS or mb > MAX_MB):
        return f"{seconds:.2f} s and {mb:.0f} MB"
    return None


def is_model(data):
    """A cut between two fields at the end may leave a model that is valid."""
    try:
        onnx.checker.check_model(onnx.load_model_from_string(data))
        return True
    except Exception:
        return False


def main(program, models, *options):
    program, limits, full = os.path.abspath(program), "--no-limits" not in options, bool(os.environ.get("ASSAY_FULL"))
    with open(os.path.join(models, "nafnet", "model.onnx"), "rb") as f:
        real = f.read()
    wrong = runs = 0
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = os.path.join(root, "models")
        os.mkdir(folder)
        with open(os.path.join(root, "outside.bin"), "wb") as f:
            f.write(b"\0" * 16)
        with open(os.path.join(folder, "small.bin"), "wb") as f:
            f.write(b"\0" * 16)
        os.symlink("../outside.bin", os.path.join(folder, "link.bin"))
        jobs = []

        def start(name, data, verbs):
            for verb in verbs:
                path = os.path.join(folder, f"{len(jobs)}.onnx")
                jobs.append((name, verb, data, pool.submit(judge, program, verb, path, data, limits)))

        for name, data in classes():
            # What has unknown operators does not run, and can be looked at (cli/test_ops.py).
            verbs = [v for v in VERBS if v[0] != "inspect"] if name in UNKNOWN else VERBS
            start(name, data if isinstance(data, bytes) else data.SerializeToString(), verbs)
        seed = int(os.environ.get("ASSAY_TEST_SEED", time.time()))
        print(f"cuts with seed {seed}")
        for i, at in enumerate(cuts(real, full, seed)):
            start(f"cut at {at}", memoryview(real)[:at], VERBS if full else VERBS[i % 3:i % 3 + 1])
        for name, verb, data, job in jobs:
            runs += 1
            why = job.result()
            if why and not (name.startswith("cut") and is_model(bytes(data))):
                wrong += 1
                print(f"FAIL assay {' '.join(verb)}: {name}: {why}")
    print(f"{runs} runs, {wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
