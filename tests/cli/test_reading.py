#!/usr/bin/env python3
"""assay run: how inputs are read and outputs are written: images, types that NumPy lacks, compression.

    test_reading.py ASSAY
"""
import os
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
        ("nchw", "i.png", ["--size", "4"], "--size '4' is not HxW", ""),
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
                                ("bits.npz", ["--dtype", "z:bf16"], "no file has such an array"), ("eight.npz", ["--dtype", "x:bf16"], "array 'x' is uint8")):
        code, _, err = run(program, "bf16.onnx", "--inputs", file, *options, "-o", "o.npz")
        if isinstance(want, str):
            failures.check(code != 0 and want in err, f"{file} {options}: {code}, {err}; {want!r} expected")
        else:
            failures.check(code == 0 and output().dtype == want.dtype and np.array_equal(output(), want), f"{file} {options}: {code}, {err}, {output()}")
    code, _, err = run(program, "fp8.onnx", "--inputs", "eight.npz", "--dtype", "x:fp8e5m2", "-o", "o.npz")
    failures.check(code == 0 and np.array_equal(output(), [1, -1, 2, 0]), f"fp8: {code}, {err}, {output()}")
    code, _, err = run(program, "fp8.onnx", "--inputs", "eight.npz", "--dtype", "x:fp8e5m2", "-o", "o.npz", "--raw-bits")
    failures.check(code == 0 and np.array_equal(output(), np.load("eight.npz")["x"]), f"fp8, raw bits: {code}, {err}")


def test_metadata(program, failures):
    header = b'{"__metadata__":{"format":"pt","by":"a test"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    with open("m.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<f", 2))
    p = subprocess.run([program, "inspect", "data", "m.safetensors"], capture_output=True, text=True)
    failures.check(p.returncode == 0 and '{"format": "pt", "by": "a test"}' in p.stdout, f"inspect data: {p.stdout} {p.stderr}")


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
        test_compress(program, failures)
        test_metadata(program, failures)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
