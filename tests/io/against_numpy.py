#!/usr/bin/env python3
"""Arrays of every type that NumPy and Assay share, in every order and layout, through both.

    against_numpy.py COPY_ARRAYS

COPY_ARRAYS is the program of tests/io/copy_arrays.c. NumPy writes files, the program copies them,
NumPy reads the copies; damaged files must be refused with a message.
"""
import io
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile

import ml_dtypes
import numpy as np

SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0, 2), (2, 3, 4), (1, 1, 2, 1, 3)]
TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "c8", "c16", "S7", "U5"]


def arrays(rng):
    """(name, array) of every type, shape, byte order and memory order."""
    for t in TYPES:
        for shape in SHAPES:
            n = int(np.prod(shape, dtype=int))
            if t[0] in "SU":
                letters = ["", "a", "bcd", "efghi"] if t[0] == "S" else ["", "é", "日本語", "😀x"]
                a = np.array([letters[i % 4] for i in range(n)], dtype=t).reshape(shape)
            elif t == "b1":
                a = rng.integers(0, 2, shape).astype(t)
            else:
                a = np.frombuffer(rng.bytes(n * np.dtype(t).itemsize), dtype=t).reshape(shape)
            for order in "<>":
                for layout in "CF":
                    yield f"{t}_{len(shape)}_{n}_{order == '>'}_{layout}", np.asarray(a.astype(np.dtype(t).newbyteorder(order)), order=layout)


def run(program, pairs, *mode):
    text = "".join(f"{a}\t{b}\n" for a, b in pairs)
    done = subprocess.run([program, *mode], input=text, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(pairs):
        sys.exit(f"{program}: exit code {done.returncode} after {len(lines)} files\n{done.stderr}")
    return lines


def same(a, b):
    return a.shape == b.shape and a.dtype.newbyteorder("<") == b.dtype.newbyteorder("<") and \
        a.astype(a.dtype.newbyteorder("<")).tobytes() == b.astype(b.dtype.newbyteorder("<")).tobytes() or \
        a.dtype.kind in "SU" and a.shape == b.shape and (a == b).all()


def widened(a):
    """What the program makes of an array: bytes become text where they are text."""
    return a.astype("U7") if a.dtype.kind == "S" else a


def main(program):
    rng, failures, count = np.random.default_rng(0), [], 0
    warnings.simplefilter("ignore")  # two members of one name are meant

    def expect(ok, what):
        nonlocal count
        count += 1
        if not ok:
            failures.append(what)

    with tempfile.TemporaryDirectory() as d:
        cases = list(arrays(rng))
        pairs = []
        for i, (_, a) in enumerate(cases):
            np.save(f"{d}/{i}.npy", a)
            pairs.append((f"{d}/{i}.npy", f"{d}/{i}_copy.npy"))
        for (name, a), (_, copy), line in zip(cases, pairs, run(program, pairs)):
            expect(line == "ok" and same(widened(a), np.load(copy)), f"npy {name}: {line}")

        # Archives, written by NumPy both ways and copied both ways.
        some = dict(cases[::7])
        some["with/slash"] = np.arange(70000, dtype=np.int64)
        np.savez(f"{d}/a.npz", **some)
        np.savez_compressed(f"{d}/b.npz", **some)
        np.savez(f"{d}/c.npz")
        for mode in ([], ["--compress"]):
            pairs = [(f"{d}/{x}.npz", f"{d}/{x}_copy.npz") for x in "abc"]
            for (_, copy), line in zip(pairs, run(program, pairs, *mode)):
                expect(line == "ok", f"npz {copy}: {line}")
                back = np.load(copy)
                names = [] if "c_copy" in copy else list(some)
                expect(back.files == names, f"npz {copy}: names")
                expect(all(same(widened(some[k]), back[k]) for k in names), f"npz {copy}: arrays")
                expect(zipfile.ZipFile(copy).testzip() is None, f"npz {copy}: checksums")
            first = open(f"{d}/a_copy.npz", "rb").read()
            run(program, pairs, *mode)
            expect(first == open(f"{d}/a_copy.npz", "rb").read(), "equal data, equal files")

        # Versions 2 and 3 of npy; bfloat16 of ml_dtypes.
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        for version in ((2, 0), (3, 0)):
            with open(f"{d}/v.npy", "wb") as f:
                np.lib.format.write_array(f, a, version=version)
            expect(run(program, [(f"{d}/v.npy", f"{d}/w.npy")]) == ["ok"] and same(a, np.load(f"{d}/w.npy")), f"npy {version}")
        np.save(f"{d}/bf.npy", np.array([1.5, -2, np.inf, 3e38], dtype=ml_dtypes.bfloat16))
        expect(run(program, [(f"{d}/bf.npy", f"{d}/bw.npy")]) == ["ok"] and
               same(np.load(f"{d}/bw.npy"), np.array([1.5, -2, np.inf, 3e38], ml_dtypes.bfloat16).astype(np.float32)), "bfloat16")

        # What must be refused: cut anywhere, damaged, untruthful.
        refused = []

        def refuse(name, data):
            path = f"{d}/r{len(refused)}.{'npz' if data[:2] == b'PK' or name.startswith('npz') else 'npy'}"
            open(path, "wb").write(data)
            refused.append((name, path))

        good = open(f"{d}/v.npy", "rb").read()
        for n in range(len(good)):
            refuse(f"npy cut at {n}", good[:n])
        refuse("npy with more", good + b"x")
        head = lambda text: b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        for text in (b"{'descr': '<f4', 'fortran_order': False, 'shape': (4)}", b"{'descr': '<f4', 'fortran_order': False, 'shape': (-4,)}",
                     b"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", b"{'descr': '<f4', 'fortran_order': 1, 'shape': (4,)}",
                     b"{'descr': '|O', 'fortran_order': False, 'shape': (4,)}", b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}",
                     b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'x': 1}", b"{'descr': '<f4', 'shape': (4,)}", b"{}", b"{", b"",
                     b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} x", b"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,)}",
                     b"{'descr': '<U4294967295', 'fortran_order': False, 'shape': (2,)}"):
            refuse(f"npy header {text}", head(text) + bytes(16))
        refuse("npy bad character", head(b"{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}") + b"\x00\xd8\x00\x00")
        for letter in "ab":
            small = io.BytesIO()
            (np.savez if letter == "a" else np.savez_compressed)(small, x=a, y=np.ones(100))
            data = small.getvalue()
            for n in range(0, len(data)):
                refuse(f"npz {letter} cut at {n}", data[:n])
            at = data.index(b"NUMPY") + 130 if letter == "a" else 120
            refuse(f"npz {letter} damaged", data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("x.npy", head(b"{'descr': '|u1', 'fortran_order': False, 'shape': (10000000,)}") + bytes(10000000))
        data = bytearray(bomb.getvalue())
        at = data.rindex(b"PK\x01\x02") + 24
        data[at:at + 4] = (0xF0000000).to_bytes(4, "little")
        refuse("npz untrue size", bytes(data))
        twice = io.BytesIO()
        with zipfile.ZipFile(twice, "w") as z:
            z.writestr("x.npy", good)
            z.writestr("x.npy", good)
        refuse("npz of two arrays of one name", twice.getvalue())
        for (name, _), line in zip(refused, run(program, [(p, f"{d}/out") for _, p in refused])):
            expect(line != "ok", f"{name}: was read")
    for f in failures[:20]:
        print(f)
    print(f"{count} checks, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
