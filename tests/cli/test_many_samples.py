#!/usr/bin/env python3
"""Many samples take the memory of a few, whatever file they are in, and give the same bits as they do one by one.

    test_many_samples.py ASSAY

Memory is compared between few samples and many: what a sample takes more is a small part of what its elements are.
"""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

failures = []
SHAPE = (3, 64, 64)
FEW, MANY = 32, 512
SAMPLE = int(np.prod(SHAPE)) * 4  # bytes, as float32


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def call(program, *words):
    """What it says, and the most memory that it had, in bytes."""
    with open("out", "w+") as out, open("err", "w+") as err:
        p = subprocess.Popen([program, *words], stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return p.returncode, out.read(), err.read(), usage.ru_maxrss * 1024


def write_model(path):
    rng = np.random.default_rng(1)
    w = numpy_helper.from_array((0.1 * rng.standard_normal((4, 3, 3, 3))).astype(np.float32), "w")
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], strides=[4, 4], name="conv"), helper.make_node("Relu", ["c"], ["r"], name="relu"),
             helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"), helper.make_node("Flatten", ["p"], ["y"], name="flat")]
    graph = helper.make_graph(nodes, "g", [info("x", T.FLOAT, [1, *SHAPE])], [info("y", T.FLOAT, [1, 4])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_png(path, pixels):
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def write_files(n):
    """The same samples in several files; float64 and whole numbers are converted."""
    x = np.random.default_rng(2).standard_normal((n, *SHAPE)).astype(np.float32)
    np.savez(f"npz{n}.npz", x=x)
    np.save(f"npy{n}.npy", x)
    np.savez(f"double{n}.npz", x=x.astype(np.float64))
    pixels = np.random.default_rng(3).integers(0, 256, (n, 64, 64, 3), np.uint8)
    np.savez(f"uint8{n}.npz", x=np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
    os.mkdir(f"png{n}")
    for i in range(n):
        write_png(f"png{n}/{i:05}.png", pixels[i])
    return x


def main(program):
    program = os.path.abspath(program)
    sanitized = b"__asan_init" in open(program, "rb").read()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_model("m.onnx")
        x = {n: write_files(n) for n in (FEW, MANY)}
        kinds = {"npz": ".npz", "npy": ".npy", "double": ".npz", "uint8": ".npz", "png": ""}
        outputs = {}
        lines = [["run", "m.onnx", "-o", "y.npz"], ["run", "m.onnx", "--target", "cpu", "-o", "y.npz"], ["check", "m.onnx", "--precision", "fp16", "--json", "j.json"],
                 ["check", "m.onnx", "--precision", "bf16", "--target", "cpu", "--json", "j.json"]]
        for kind, ending in kinds.items():
            for words in lines:
                memory = {}
                for n in (FEW, MANY):
                    code, out, err, memory[n] = call(program, *words, "-i", f"{kind}{n}{ending}")
                    check(code in (0, 1), f"{words} {kind}{n}", out + err)
                    if words[0] == "run":
                        outputs[kind, n, words[2]] = np.load("y.npz")["y"]
                    else:
                        j = json.load(open("j.json"))
                        outputs[kind, n, words[3] + words[4]] = j["outputs"]
                more = (memory[MANY] - memory[FEW]) / (MANY - FEW)
                # A tensor's head, and what else is kept of a sample; pages that stay in memory for a while.
                check(sanitized or more < 0.2 * SAMPLE, f"{words} {kind}: {more / SAMPLE:.2f} of a sample's bytes for each one more",
                      f"{memory[FEW] / 1e6:.1f} MB of {FEW}, {memory[MANY] / 1e6:.1f} MB of {MANY}")
        # The same samples in other files give the same bits, and as many files the same as one.
        for how in ("-o", "--target"):
            for other in ("npy", "double"):
                check(outputs["npz", MANY, how].tobytes() == outputs[other, MANY, how].tobytes(), f"run {how}: {other} and npz differ")
            check(outputs["uint8", MANY, how].tobytes() == outputs["png", MANY, how].tobytes(), f"run {how}: images and their pixels differ")
            check(outputs["npz", MANY, how].shape == (MANY, 4), f"run {how}: {outputs['npz', MANY, how].shape}")
            for i in (0, 1, 15, 16, 17, MANY - 1):
                np.savez("one.npz", x=x[MANY][i:i + 1])
                call(program, "run", "m.onnx", *(["--target", "cpu"] if how == "--target" else []), "-i", "one.npz", "-o", "one_y.npz")
                check(np.load("one_y.npz")["y"].tobytes() == outputs["npz", MANY, how][i:i + 1].tobytes(), f"run {how}: sample {i} by itself differs")
        for how in ("fp16--json", "bf16--target"):
            check(outputs["npz", MANY, how] == outputs["double", MANY, how], f"check {how}: double and npz differ")
            check(outputs["uint8", MANY, how] == outputs["png", MANY, how], f"check {how}: images and their pixels differ")
        # An image that is gone when its turn comes is told, and so are whole numbers that do not fit.
        np.savez("large.npz", x=np.full((3, *SHAPE), 7, np.int64))
        info = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [info("x", T.INT8, [1, *SHAPE])], [info("y", T.INT8, [1, *SHAPE])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "int8.onnx")
        code, out, err, _ = call(program, "run", "int8.onnx", "-i", "large.npz", "-o", "y.npz")
        check(code == 0 and (np.load("y.npz")["y"] == 7).all() and "converted to int8" in err, "int64 that fits int8", err)
        np.savez("large.npz", x=np.full((3, *SHAPE), 700, np.int64))
        code, out, err, _ = call(program, "run", "int8.onnx", "-i", "large.npz", "-o", "y.npz")
        check(code == 3 and "holds 700, which is not a int8" in err, "int64 that does not fit int8", f"{code}: {err}")
        os.chdir("/")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main(*sys.argv[1:]))
