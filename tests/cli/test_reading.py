#!/usr/bin/env python3
"""How verbs read their files and assay run writes outputs: images, types that NumPy lacks, what other engines
saved, folders of samples, compression.

    test_reading.py ASSAY
"""
import base64
import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper


class Failures(list):
    def check(self, good, text):
        if not good:
            self.append(text)
            print("FAILED:", text[:2000], file=sys.stderr)


def run(program, *args):
    p = subprocess.run([program, "run", *args], capture_output=True, text=True, timeout=120)
    return p.returncode, p.stdout, p.stderr


def model(path, elem, shape, to=None):
    node = helper.make_node("Cast", ["x"], ["y"], to=to) if to else helper.make_node("Identity", ["x"], ["y"])
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", elem, shape)], [value("y", to or elem, shape)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)


def write_png(path, pixels, alpha=False):
    """pixels: uint8 [H, W, 3], or [H, W] of gray."""
    h, w = pixels.shape[:2]
    if alpha:
        pixels = np.dstack([pixels, np.full((h, w), 7, np.uint8)])
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    colour = 0 if pixels.ndim == 2 else 6 if alpha else 2
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, colour, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_ppm(path, pixels):
    with open(path, "wb") as f:
        f.write(b"P6\n%d %d\n255\n" % pixels.shape[1::-1] + pixels.tobytes())


def write_jpeg(path):
    """8 x 8 gray pixels of 128: one block whose coefficients are 0, by codes of one bit."""
    part = lambda marker, data: b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data
    codes = bytes([1] + [0] * 15) + b"\0"
    with open(path, "wb") as f:
        f.write(b"\xff\xd8" + part(0xdb, b"\0" + b"\1" * 64) + part(0xc0, struct.pack(">BHHBBBB", 8, 8, 8, 1, 1, 0x11, 0)) +
                part(0xc4, b"\x00" + codes) + part(0xc4, b"\x10" + codes) + part(0xda, b"\1\1\0\0\x3f\0") + b"\x3f" + b"\xff\xd9")


def output(path="o.npz"):
    return np.load(path)["y"]


def resized(x, h, w):
    """Bilinear, over as many pixels as one stands for where there are fewer."""
    def lines(a, n):
        ratio, out = a.shape[0] / n, []
        reach = max(ratio, 1)
        for i in range(n):
            centre = (i + 0.5) * ratio
            weights = np.clip(1 - np.abs(np.arange(a.shape[0]) + 0.5 - centre) / reach, 0, None)
            out.append(np.tensordot(weights / weights.sum(), a, 1))
        return np.array(out)
    return lines(lines(x.astype(np.float64).transpose(1, 0, 2), w).transpose(1, 0, 2), h)


def test_images(program, failures):
    pixels = np.random.default_rng(3).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    pixels[0, 0] = 10, 20, 30
    write_png("i.png", pixels)
    write_png("alpha.png", pixels, alpha=True)
    write_png("gray.png", pixels[..., 0])
    write_ppm("i.ppm", pixels)
    write_jpeg("i.jpg")
    model("square.onnx", T.FLOAT, [1, 1, 8, 8])
    open("cut.png", "wb").write(open("i.png", "rb").read()[:50])
    model("nchw.onnx", T.FLOAT, [1, 3, 6, 8])
    model("nhwc.onnx", T.FLOAT, [1, 6, 8, 3])
    model("bytes.onnx", T.UINT8, [1, 3, 6, 8])
    model("one.onnx", T.FLOAT, [1, 1, 6, 8])
    model("half.onnx", T.FLOAT16, [1, 3, "h", "w"])
    model("small.onnx", T.FLOAT, [1, 3, 4, 5])
    model("twice.onnx", T.FLOAT, [1, 3, 6, 3])
    model("words.onnx", T.INT64, [1, 3, 6, 8])
    plain = pixels.astype(np.float64).transpose(2, 0, 1)[None]
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    normal = ((plain / 255) - mean[:, None, None]) / std[:, None, None]
    imagenet = ["--scale", "0.00392156862745098", "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]
    rows = [  # model, file, options, what comes out (or an error's text), what is told
        ("nchw", "i.png", [], plain, "'i.png': PNG of 6 x 8, as float[1, 3, 6, 8]\n"),
        ("nchw", "i.ppm", [], plain, "PPM of 6 x 8, as"),
        ("nchw", "alpha.png", [], plain, "without its transparency"),
        ("nhwc", "i.png", [], plain.transpose(0, 2, 3, 1), "as float[1, 6, 8, 3]"),
        ("bytes", "i.png", [], plain, "as uint8"),
        ("one", "gray.png", [], plain[:, :1], "as float[1, 1, 6, 8]"),
        ("square", "i.jpg", [], np.full((1, 1, 8, 8), 128.0), "'i.jpg': JPEG of 8 x 8, as float"),
        ("nchw", "gray.png", [], plain[:, [0, 0, 0]], "as float"),
        ("nchw", "i.png", imagenet, normal, "times 0.00392157, minus 0.485,0.456,0.406, divided by 0.229,0.224,0.225"),
        ("half", "i.png", ["--mean", "127.5", "--std", "127.5"], (plain - 127.5) / 127.5, "minus 127.5, divided by 127.5"),
        ("small", "i.png", ["--size", "5", "--crop", "4x5"], resized(pixels, 5, 6)[:4, :5].transpose(2, 0, 1)[None],
         "resized to 5 x 6 (bilinear), cut to the 4 x 5 in its middle, as"),
        ("small", "i.png", ["--crop", "4x5"], pixels[1:5, 2:7].transpose(2, 0, 1)[None], "6 x 8, cut to the 4 x 5 in its middle, as"),
        ("small", "i.png", ["--crop", "7x5"], "it is 6 x 8: --crop 7x5 is larger; resize it with --size", ""),
        ("small", "i.png", ["--crop", "7"], "--crop '7' is not HxW", ""),
        ("small", "i.png", ["--size", "99999999"], "an image cannot be resized to 99999999 x 133333332", ""),
        ("small", "i.png", ["--size", "4x5"], resized(pixels, 4, 5).transpose(2, 0, 1)[None], "resized to 4 x 5 (bilinear)"),
        ("half", "i.png", ["--size", "9x13"], resized(pixels, 9, 13).transpose(2, 0, 1)[None], "resized to 9 x 13"),
        ("twice", "i.png", ["--layout", "nchw", "--size", "6x3"], resized(pixels, 6, 3).transpose(2, 0, 1)[None], "resized"),
        ("twice", "i.png", ["--size", "6x3"], "does not tell where its channels are", ""),
        ("small", "i.png", [], "it is 6 x 8; input 'x' takes 4 x 5: resize it with --size, such as --size 4x5", ""),
        ("one", "i.png", [], "it is in colour, and input 'x' takes one channel", ""),
        ("bytes", "i.png", ["--mean", "1"], "input 'x' is uint8", ""),
        ("words", "i.png", [], "images are of floats or uint8", ""),
        ("nchw", "cut.png", [], "it begins as PNG does, and cannot be decoded", ""),
        ("nchw", "i.png", ["--layout", "chw"], "a layout is nchw or nhwc, not 'chw'", ""),
        ("nchw", "i.png", ["--size", "4x"], "--size '4x' is not HxW", ""),
        ("nchw", "i.png", ["--mean", "1,2"], "--mean and --std have one number, or one for each", ""),
        ("nchw", "i.png", ["--std", "1,0,1"], "nothing is divided by 0", ""),
        ("nchw", "i.png", ["--mean", "1,2,3,4"], "is not one number, or three", ""),
    ]
    for name, file, options, want, told in rows:
        code, _, err = run(program, f"{name}.onnx", "--inputs", file, *options, "-o", "o.npz")
        where = f"run {name}.onnx -i {file} {options}: {code}, {err!r}"
        if isinstance(want, str):
            failures.check(code != 0 and want in err, f"{where}; {want!r} expected")
            continue
        failures.check(code == 0 and told in err, f"{where}; {told!r} expected")
        tolerance = 2e-3 * max(1, np.abs(want).max() / 4) if name == "half" else 1e-4
        failures.check(code == 0 and output().shape == want.shape and np.abs(output() - want).max() <= tolerance,
                       f"{where}: {output().ravel()[:6]}, not {want.ravel()[:6]}")
    code, _, err = run(program, "nchw.onnx", "--mean", "1", "-o", "o.npz")
    failures.check(code == 0 and "--mean has no effect: no input is an image" in err, f"--mean without an image: {code}, {err}")


def test_folder(program, failures):
    os.mkdir("pictures")
    all_pixels = np.random.default_rng(4).integers(0, 256, (3, 6, 8, 3), dtype=np.uint8)
    for i, pixels in enumerate(all_pixels):
        (write_png if i else write_ppm)(f"pictures/{'cab'[i]}.img", pixels)
    code, _, err = run(program, "nchw.onnx", "--inputs", "pictures", "-o", "o.npz")
    want = all_pixels[[1, 2, 0]].transpose(0, 3, 1, 2)  # by their names
    failures.check(code == 0 and np.array_equal(output(), want) and err.count("PNG of") == 2, f"a folder of images: {code}, {err}")
    open("pictures/d.txt", "w").write("1 2 3")
    code, _, err = run(program, "nchw.onnx", "--inputs", "pictures", "-o", "o.npz")
    failures.check(code != 0 and "'d.txt'" in err, f"a folder with something else: {code}, {err}")


def test_types(program, failures):
    model("bf16.onnx", T.BFLOAT16, [4])
    model("fp8.onnx", T.FLOAT8E5M2, [4])
    x = np.array([1, -2.5, 3e38, 0.1], np.float32)
    bits = ((x.view(np.uint32).astype(np.uint64) + 0x7fff + (x.view(np.uint32) >> 16 & 1)) >> 16).astype(np.uint16)
    rounded = (bits.astype(np.uint32) << 16).view(np.float32)
    np.savez("bits.npz", x=bits)
    np.savez("floats.npz", x=x)
    np.savez("eight.npz", x=np.array([0x3c, 0xbc, 0x40, 0], np.uint8))
    for file, options, want in (("bits.npz", ["--dtype", "x:bf16"], rounded), ("floats.npz", ["--dtype", "x:bf16"], rounded),
                                ("bits.npz", ["--dtype", "x:bf16", "--raw-bits"], bits), ("bits.npz", ["--dtype", "x:bf17"], "is not NAME:TYPE"),
                                ("bits.npz", ["--dtype", "z:bf16"], "no file has such an array"),
                                (None, ["--dtype", "x:bf16"], "no file has such an array"), ("eight.npz", ["--dtype", "x:bf16"], "array 'x' is uint8")):
        code, _, err = run(program, "bf16.onnx", *(["--inputs", file] if file else []), *options, "-o", "o.npz")
        if isinstance(want, str):
            failures.check(code != 0 and want in err, f"{file} {options}: {code}, {err}; {want!r} expected")
        else:
            failures.check(code == 0 and output().dtype == want.dtype and np.array_equal(output(), want), f"{file} {options}: {code}, {err}, {output()}")
    code, _, err = run(program, "fp8.onnx", "--inputs", "eight.npz", "--dtype", "x:fp8e5m2", "-o", "o.npz")
    failures.check(code == 0 and np.array_equal(output(), [1, -1, 2, 0]), f"fp8: {code}, {err}, {output()}")
    code, _, err = run(program, "fp8.onnx", "--inputs", "eight.npz", "--dtype", "x:fp8e5m2", "-o", "o.npz", "--raw-bits")
    failures.check(code == 0 and np.array_equal(output(), np.load("eight.npz")["x"]), f"fp8, raw bits: {code}, {err}")


# ---- every verb ------------------------------------------------------------------------------------------------------

READING = ("--dtype", "--size", "--crop", "--scale", "--mean", "--std", "--layout")
# What each verb that takes inputs needs besides; one that is not here is a failure.
VERBS = {
    "run": [], "check": [], "bench": ["--seconds", "0.02", "--warm-up", "0.01"], "audit": ["--no-witness", "--no-radius"],
    "tune": ["--require", "cosine >= 0.5", "--no-pareto", "--runs", "1"], "certify": ["-o", "c.cert"],
    "debug precision": ["--precision", "fp16"], "debug batch": [], "debug passes": [], "debug tactics": ["--untimed"],
    "debug reduce": ["--precision", "fp16"], "edit extract": ["--to", "r"], "edit cast": ["--to", "fp16"], "edit quantize": [],
    "edit broadcasts": [], "edit decompose": [], "edit assemble": [], "edit sanitize": [], "edit rename": ["--node", "relu=nothing_below_0"],
    "edit set": ["--shape", "x=1x3x6x8"],
}


def call(program, *args):
    p = subprocess.run([program, *args], capture_output=True, text=True, timeout=120)
    return p.returncode, p.stdout, p.stderr


def net(path, elem=T.FLOAT):
    """y = 0.5 * Relu(Conv(x)), and what it gives: a function of x."""
    w = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3, 1, 1)
    const = lambda name, a: helper.make_tensor(name, elem, a.shape, a.ravel().tolist())
    value = lambda name, c: helper.make_tensor_value_info(name, elem, ["n", c, 6, 8])
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv"), helper.make_node("Relu", ["c"], ["r"], name="relu"),
             helper.make_node("Mul", ["r", "half"], ["y"], name="mul")]
    graph = helper.make_graph(nodes, "g", [value("x", 3)], [value("y", 5)], [const("w", w), const("half", np.array([0.5], np.float32))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), path)

    def values(x):
        c = np.einsum("oi,nihw->nohw", w[..., 0, 0].astype(np.float64), x)
        return {"c": c, "r": np.maximum(c, 0), "y": 0.5 * np.maximum(c, 0)}
    return values


def takers(program):
    """The verbs whose help has --inputs, with their help."""
    found = {}
    for name, summary in re.findall(r"^  (\S+)  +(.*)$", call(program, "-h")[1], re.M):
        names = [f"{name} {n}" for n in re.findall(r"^  (\S+)  ", call(program, name, "-h")[1], re.M)] if "lists them" in summary else [name]
        if not summary.startswith("the command line of"):
            found.update({n: text for n in names if "--inputs FILE" in (text := call(program, *n.split(), "-h")[1])})
    return found


def test_every_verb(program, failures):
    net("net.onnx")
    pixels = np.random.default_rng(3).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    write_png("v.png", pixels)
    x = np.random.default_rng(4).normal(size=(1, 3, 6, 8)).astype(np.float32)
    np.savez("v_bits.npz", x=(x.view(np.uint32) >> 16).astype(np.uint16))
    image = ["--size", "6x8", "--scale", "0.5", "--mean", "1,2,3", "--std", "4", "--layout", "nchw"]
    did = "'v.png': PNG of 12 x 10, resized to 6 x 8 (bilinear), times 0.5, minus 1,2,3, divided by 4, as float[1, 3, 6, 8]\n"
    helps = takers(program)
    failures.check(set(helps) == set(VERBS), f"verbs that take inputs: {sorted(set(helps) ^ set(VERBS))}")
    for verb, needs in VERBS.items():
        text, words = helps.get(verb, ""), verb.split()
        for option in READING:
            failures.check(len(re.findall(rf"^  {option} ", text, re.M)) == 1, f"{verb} -h: {option}")
        failures.check(len(re.findall(r"in one of the formats", text)) == 1, f"{verb} -h: the formats are not there once")
        needs = needs + (["-o", "e.onnx"] if words[0] == "edit" else [])
        rows = [(["v.png", *image], (0, 1), did), (["v_bits.npz", "--dtype", "x:bf16"], (0, 1), ""), (["v.png"], (3,), "resize it with --size"),
                (["v_bits.npz"], (0, 1), "'x' holds uint16 and was converted to float (if it is bits of bf16: --dtype x:bf16)\n"),
                (["v_bits.npz", "--dtype", "z:bf16", "--dtype", "x:bf16"], (3,), "--dtype 'z:bf16': no file has such an array"),
                (["v.png", "--size", "big"], (2, 3), "--size 'big' is not HxW"), (["v.png", "--dtype", "x"], (2, 3), "--dtype 'x' is not NAME:TYPE")]
        for inputs, codes, told in rows:
            code, out, err = call(program, *words, "net.onnx", *needs, "-i", *inputs)
            failures.check(code in codes and told in err, f"{verb} -i {inputs}: {code}, {err!r}, {out[:200]!r}; {codes}, {told!r} expected")


def test_ranges(program, failures):
    """What audit takes for the box is what was done to the image."""
    write_png("w.png", np.full((6, 8, 3), 100, np.uint8))
    code, _, err = call(program, "audit", "net.onnx", "-i", "w.png", "--scale", "0.01", "--mean", "0.5", "--no-witness", "--no-radius",
                        "--json", "a.json")
    box = json.load(open("a.json")) if code == 0 else {}
    failures.check(code == 0 and "0.5" in json.dumps(box), f"audit of an image: {code}, {err}")


def array_json(a):
    b = io.BytesIO()
    np.save(b, a)
    return {"array": base64.b64encode(b.getvalue()).decode(), "polygraphy_class": "ndarray"}


def save_results(path, runs, runner="trt-runner-N0-11/23/26-10:00:00"):
    """As polygraphy run --trt --save-outputs writes it."""
    result = lambda r: {"outputs": {k: {"values": array_json(v), "polygraphy_class": "LazyArray"} for k, v in r.items()},
                        "runtime": 0.001, "runner_name": runner, "polygraphy_class": "IterationResult"}
    json.dump({"lst": [[runner, [result(r) for r in runs]]], "polygraphy_class": "RunResults"}, open(path, "w"))


def save_trtexec(path, run):
    """As trtexec --exportOutput writes it."""
    json.dump([{"name": k, "dimensions": "x".join(map(str, v.shape)), "values": v.ravel().tolist()} for k, v in run.items()], open(path, "w"))


def test_engines_outputs(program, failures):
    """What a TensorRT elsewhere gave is accounted for layer by layer: all tensors marked, or the outputs alone."""
    values = net("net.onnx")
    xs = np.random.default_rng(5).normal(size=(2, 1, 3, 6, 8)).astype(np.float32)
    np.savez("x0.npz", x=xs[0])
    np.savez("x1.npz", x=xs[1])
    right = [{k: v.astype(np.float32) for k, v in values(x.astype(np.float64)).items()} for x in xs]
    wrong = [dict(r, r=r["r"] * 1.5, y=r["y"] * 1.5) for r in right]  # by the node that makes r
    only = [{"y": r["y"]} for r in wrong]
    for name, runs in ("right", right), ("wrong", wrong), ("only", only):
        save_results(f"{name}.json", runs)
        save_results(f"{name}0.json", runs[:1])
        save_trtexec(f"{name}0.trtexec.json", runs[0])
        np.savez(f"{name}0.npz", **runs[0])
        os.makedirs(name)
        for i, run in enumerate(runs):
            np.savez(f"{name}/sample{i}.npz", **run)
    bits = lambda a: (a.view(np.uint32) + 0x7fff + (a.view(np.uint32) >> 16 & 1) >> 16).astype(np.uint16)
    np.savez("bits0.npz", **{k: bits(v) for k, v in right[0].items()})
    as_bits = ["--dtype", "y:bf16", "--dtype", "c:bf16", "--dtype", "r:bf16", "--precision", "bf16"]
    one, two = ["-i", "x0.npz"], ["-i", "x0.npz", "-i", "x1.npz"]
    rows = [  # inputs, file, options, exit code, the layer that is to blame, samples
        (one, "right0.json", [], 0, None, 1), (one, "right0.trtexec.json", [], 0, None, 1), (one, "right0.npz", [], 0, None, 1),
        (one, "wrong0.json", [], 1, "relu", 1), (one, "wrong0.trtexec.json", [], 1, "relu", 1), (one, "only0.json", [], 1, "*", 1),
        (two, "right.json", [], 0, None, 2), (two, "wrong.json", [], 1, "relu", 2), (two, "right", [], 0, None, 2), (two, "wrong", [], 1, "relu", 2),
        (one, "bits0.npz", as_bits, 0, None, 1), (one, "bits0.npz", [], 1, "*", 1),
        (two, "right0.json", [], 3, "it holds 1 samples, the inputs 2", 0),
        (one, "right0.npz", ["--dtype", "q:bf16"], 3, "--dtype 'q:bf16': no file has such an array", 0),
    ]
    for inputs, file, options, want, blamed, n in rows:
        code, out, err = call(program, "check", "net.onnx", *inputs, "--engine-outputs", file, *options, "--json", "check.json", "--no-fix")
        where = f"check --engine-outputs {file} {inputs} {options}: {code}, {out[:300]!r}, {err!r}"
        failures.check(code == want, f"{where}; {want} expected")
        if want == 3:
            failures.check(blamed in err, f"{where}; {blamed!r} expected")
            continue
        found = json.load(open("check.json"))
        culprits = [n for c in found["culprits"] for n in c["nodes"]]
        as_blamed = blamed == "*" or (culprits[:1] == [blamed] if blamed else not culprits)
        failures.check(found["samples"] == n and as_blamed, f"{where}; culprits {culprits}, samples {found['samples']}")
    # The same files as what the original framework gave.
    for file, options, want in (("right0.json", [], 0), ("right0.trtexec.json", [], 0), ("wrong0.json", [], 1), ("wrong0.trtexec.json", [], 1),
                                ("right", [], 0), ("wrong", [], 1), ("bits0.npz", as_bits[:6], 0)):
        for verb, more in ("check", ["--golden-intermediates", file]), ("debug reduce", ["--golden-intermediates", file]), ("check", []):
            code, out, err = call(program, *verb.split(), "net.onnx", *(one if "0" in file else two), "--golden", file, *more, *options)
            failures.check(code == want, f"{verb} --golden {file} {more}: {code}, {out[:300]!r}, {err!r}; {want} expected")
    for verb in "tune", "debug precision", "debug passes":
        for file, options, holds in ("right0.json", [], True), ("wrong0.trtexec.json", [], False), ("bits0.npz", as_bits[:2], True):
            code, out, err = call(program, *verb.split(), "net.onnx", *VERBS[verb], *one, "--golden", file, *options,
                                  "--require", "golden_snr_db >= 20")
            kept = code == 0 and "do not do" not in out
            failures.check(code in (0, 1) and kept == holds, f"{verb} --golden {file}: {code}, {out[:300]!r}, {err!r}; golden is kept: {holds}")


def test_samples(program, failures):
    """Several files and folders of files are several samples."""
    x = np.random.default_rng(6).normal(size=(3, 1, 3, 6, 8)).astype(np.float32)
    for folder in "npz", "npy", "sets", "mixed":
        os.makedirs(folder)
    for i in range(3):
        np.savez(f"npz/{i}.npz", x=x[i])
        np.save(f"npy/{i}.npy", x[i])
        os.makedirs(f"sets/test_data_set_{8 + i}")  # 10 behind 9
        onnx.save_tensor(onnx.numpy_helper.from_array(x[i], "x"), f"sets/test_data_set_{8 + i}/input_0.pb")
    open("sets/model.onnx", "w").close()
    np.save("mixed/a.npy", x[0])
    open("mixed/b", "w").write("[]]")
    np.savez("other.npz", x=x[0], z=x[0])
    files = lambda *names: [w for n in names for w in ("-i", n)]
    rows = [("npz",), ("npy",), ("sets",), ("npz/0.npz", "npy/1.npy", "x=npy/2.npy"), ("npz/0.npz", "sets/test_data_set_9", "npy/2.npy")]
    for names in rows:
        code, _, err = call(program, "run", "net.onnx", *files(*names), "-o", "o.json")
        first = call(program, "run", "net.onnx", *files("npz"), "-o", "want.json")
        strip = lambda p: re.sub(r'"runtime": [^,]*', "", open(p).read())
        same = code == 0 and first[0] == 0 and strip("o.json") == strip("want.json")
        failures.check(same and strip("o.json").count("LazyArray") == 3, f"{names}: {code}, {err}")
    for names, text in ((("mixed",), "'mixed/b'"),
                        (("npz/0.npz", "other.npz"), "'other.npz' has another array 'x', as the files before it have, and 'z'")):
        code, _, err = call(program, "check", "net.onnx", *files(*names))
        failures.check(code == 3 and text in err, f"{names}: {code}, {err}")


def test_metadata(program, failures):
    header = b'{"__metadata__":{"format":"pt","by":"a test"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    with open("m.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<f", 2))
    p = subprocess.run([program, "inspect", "data", "m.safetensors"], capture_output=True, text=True)
    failures.check(p.returncode == 0 and '{"format": "pt", "by": "a test"}' in p.stdout, f"inspect data: {p.stdout} {p.stderr}")
    # A run hands on what the inputs' file says: of several files, the first that says something.
    model("scalar.onnx", T.FLOAT, [1])
    np.savez("plain.npz", x=np.ones(1, np.float32))
    with open("n.safetensors", "wb") as f:
        other = header.replace(b"a test", b"others")
        f.write(struct.pack("<Q", len(other)) + other + struct.pack("<f", 3))
    first, second = {"format": "pt", "by": "a test"}, {"format": "pt", "by": "others"}
    for files, want in ((["m"], first), (["n", "m"], second), (["plain.npz", "m"], first), (["plain.npz"], None)):
        files = [w for n in files for w in ("-i", n if "." in n else n + ".safetensors")]
        code, _, err = run(program, "scalar.onnx", *files, "-o", "o.safetensors")
        data = open("o.safetensors", "rb").read()
        written = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
        failures.check(code == 0 and written.get("__metadata__") == want and "y" in written, f"metadata of {files}: {code}, {err}, {written}")
    code, _, err = run(program, "scalar.onnx", "-i", "m.safetensors", "-o", "o.npz")
    failures.check(code == 0 and not err, f"metadata where npz has none: {code}, {err}")


def test_compress(program, failures):
    model("large.onnx", T.FLOAT, [1, 1000])
    np.savez("zeros.npz", x=np.zeros((1, 1000), np.float32))
    for options, method in ([], zipfile.ZIP_STORED), (["--compress"], zipfile.ZIP_DEFLATED):
        code, _, err = run(program, "large.onnx", "--inputs", "zeros.npz", "-o", "o.npz", *options)
        failures.check(code == 0 and zipfile.ZipFile("o.npz").infolist()[0].compress_type == method and not output().any(), f"{options}: {code}, {err}")
    for options, text in (["--compress"], "is for --save-outputs"), (["--raw-bits"], "is for --save-outputs"), (["--compress", "-o", "o.npy"], "is for npz"):
        code, _, err = run(program, "large.onnx", *options)
        failures.check(code == 2 and text in err, f"{options}: {code}, {err}")


def main():
    program = os.path.abspath(sys.argv[1])
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        test_images(program, failures)
        test_folder(program, failures)
        test_types(program, failures)
        test_every_verb(program, failures)
        test_ranges(program, failures)
        test_engines_outputs(program, failures)
        test_samples(program, failures)
        test_compress(program, failures)
        test_metadata(program, failures)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
