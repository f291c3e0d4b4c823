#!/usr/bin/env python3
"""Writes what ml_dtypes, numpy and onnx say about small number formats, for check_vectors.

    make_vectors.py FOLDER [--count N] [--seed S] [--only-random]

FOLDER/manifest.txt has one line a comparison:
    decode FORMAT EXPECTED            every pattern, from 0; expected float64
    encode FORMAT OVERFLOW INPUTS EXPECTED WIDTH
    e8m0 MODE OVERFLOW INPUTS EXPECTED 1
Inputs are float32, expected patterns unsigned of WIDTH bytes; all little endian.
"""
import argparse
import pathlib
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx.numpy_helper

CHUNK = 1 << 20

# Our name, numpy type, bits.
FLOATS = [
    ("bf16", ml_dtypes.bfloat16, 16),
    ("fp16", np.float16, 16),
    ("fp8e4m3", ml_dtypes.float8_e4m3fn, 8),
    ("fp8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 8),
    ("fp8e5m2", ml_dtypes.float8_e5m2, 8),
    ("fp8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 8),
    ("fp6e2m3", ml_dtypes.float6_e2m3fn, 6),
    ("fp6e3m2", ml_dtypes.float6_e3m2fn, 6),
    ("fp4e2m1", ml_dtypes.float4_e2m1fn, 4),
]
INTEGERS = [
    ("int16", -(2**15), 2**15 - 1, 16), ("int8", -128, 127, 8), ("int4", -8, 7, 4),
    ("int2", -2, 1, 2), ("uint16", 0, 2**16 - 1, 16), ("uint8", 0, 255, 8), ("uint4", 0, 15, 4),
    ("uint2", 0, 3, 2),
]
SMALL_INTEGERS = {
    "int8": np.int8, "uint8": np.uint8, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2,
}


def pattern_type(bits):
    return np.uint16 if bits == 16 else np.uint8


def decode(dtype, bits):
    patterns = np.arange(2**bits, dtype=np.uint32).astype(pattern_type(bits))
    return patterns.view(dtype).astype(np.float32).astype(np.float64)


def quiet(name, x, y):
    """numpy keeps NaN's payload in fp16; Assay has one quiet NaN."""
    if name == "fp16":
        y = np.where(np.isnan(x), np.where(np.signbit(x), 0xFE00, 0x7E00), y).astype(np.uint16)
    return y


def encode(name, dtype, bits, x, saturate):
    if saturate:
        y = onnx.numpy_helper.saturate_cast(x, np.dtype(dtype))
    else:
        y = x.astype(dtype)
    return quiet(name, x, y.view(pattern_type(bits)))


def encode_integer(name, low, high, bits, x):
    y = np.clip(np.rint(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)),
                low, high).astype(np.int64)
    if name in SMALL_INTEGERS:  # onnx must agree where it is defined
        ok = np.isfinite(x)
        reference = onnx.numpy_helper.saturate_cast(x[ok].astype(np.float64),
                                                    np.dtype(SMALL_INTEGERS[name]))
        assert np.array_equal(reference.astype(np.int64), y[ok]), name
    return (y & (2**bits - 1)).astype(pattern_type(bits))


def encode_e8m0(x, mode, saturate):
    """The text of Cast 24; checked against onnx's function wherever both are defined."""
    x64 = x.astype(np.float64)
    finite = np.isfinite(x64) & (x64 > 0)
    fraction, exponent = np.frexp(np.where(finite, x64, 1.0))  # fraction in [1/2, 1)
    k = exponent.astype(np.int64) - 1 + 127
    if mode == "up":
        k += fraction > 0.5
    elif mode == "nearest":
        k += fraction >= 0.75
    k = np.where(x64 == 0, -1, k)
    k = np.where(np.isposinf(x64), 1000, k)
    if saturate:
        k = np.clip(k, 0, 254)
    k = np.where((k < 0) | (k > 254) | np.isnan(x64) | (x64 < 0), 255, k).astype(np.uint8)
    defined = np.isnan(x64) | ((x64 >= 2.0**-126) & np.isfinite(x64))
    reference = onnx.numpy_helper.to_float8e8m0(x, saturate, mode).view(np.uint8)
    assert np.array_equal(reference[defined], k[defined]), (mode, saturate)
    if mode == "nearest" and not saturate:  # ml_dtypes rounds so
        wide = defined | (x64 == 0) | (x64 < 0)
        assert np.array_equal(x.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)[wide], k[wide])
    return k


def structured():
    """Values around everything where a rounding changes: for every format each value, each middle
    between neighbours, and their float32 neighbours; powers of two; halves around integers."""
    parts = [np.array([0.0, np.inf, np.nan, 3.4028235e38, 1e-45, 2.0**-126], np.float32)]
    for _, dtype, bits in FLOATS:
        v = decode(dtype, bits)
        v = np.unique(v[np.isfinite(v) & (v >= 0)])
        top = v[-1] + (v[-1] - v[-2]) * np.array([0.5, 1.0, 1.5, 2.0])
        v = np.concatenate([v, (v[1:] + v[:-1]) / 2, top]).astype(np.float32)
        parts += [v, np.nextafter(v, np.float32(np.inf)), np.nextafter(v, np.float32(-np.inf))]
    v = (2.0 ** np.arange(-149, 128)).astype(np.float32)
    for scale in (1, 1.25, 1.5, 1.75):
        w = (v * np.float32(scale)).astype(np.float32)
        parts += [w, np.nextafter(w, np.float32(np.inf)), np.nextafter(w, np.float32(0))]
    v = np.concatenate([np.arange(0, 300, 0.5), np.arange(32760, 32775, 0.5),
                        np.arange(65530, 65540, 0.5)]).astype(np.float32)
    parts += [v, np.nextafter(v, np.float32(np.inf)), np.nextafter(v, np.float32(0))]
    x = np.concatenate(parts).astype(np.float32)
    return np.concatenate([x, -x])


def random_chunks(count, seed):
    """float32: all patterns alike, magnitudes around every small format, ordinary weights."""
    random = np.random.default_rng(seed)
    for start in range(0, count, CHUNK):
        n = min(CHUNK, count - start)
        bits = random.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)
        near = (random.standard_normal(n) * 2.0 ** random.integers(-30, 20, n)).astype(np.float32)
        unit = (random.standard_normal(n) * 3).astype(np.float32)
        pick = random.integers(0, 3, n)
        yield np.where(pick == 0, bits, np.where(pick == 1, near, unit)).astype(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=10**6, help="random float32 inputs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only-random", action="store_true",
                        help="leave out what is the same for every seed")
    args = parser.parse_args()
    if sys.byteorder != "little":
        sys.exit("make_vectors: needs a little-endian machine")
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    args.folder.mkdir(parents=True, exist_ok=True)
    lines = []

    if not args.only_random:
        for name, dtype, bits in FLOATS + [("fp8e8m0", ml_dtypes.float8_e8m0fnu, 8)]:
            decode(dtype, bits).tofile(args.folder / f"decode_{name}.bin")
            lines.append(f"decode {name} decode_{name}.bin")
        for name, low, high, bits in INTEGERS:
            v = np.arange(2**bits)
            v = np.where(v > high, v - 2**bits, v) if low else v
            v.astype(np.float64).tofile(args.folder / f"decode_{name}.bin")
            lines.append(f"decode {name} decode_{name}.bin")

    sources = {
        "fp16": lambda: [np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)],
        "bf16": lambda: [np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16)
                         .astype(np.float32)],
        "structured": lambda: [structured()],
        "random": lambda: random_chunks(args.count, args.seed),
    }
    for source, chunks in sources.items():
        if args.only_random and source != "random":
            continue
        with open(args.folder / f"in_{source}.bin", "wb") as file:
            for x in chunks():
                x.tofile(file)
        jobs = []
        for name, dtype, bits in FLOATS:
            for saturate in (False, True):
                if bits < 8 and not saturate:
                    continue  # they always saturate
                jobs.append((f"encode {name} {'saturate' if saturate else 'ieee'}", bits,
                             lambda x, a=(name, dtype, bits), s=saturate: encode(*a, x, s)))
                if bits < 8:
                    jobs.append((f"encode {name} ieee", bits,
                                 lambda x, a=(name, dtype, bits): encode(*a, x, False)))
        for row in INTEGERS:
            jobs.append((f"encode {row[0]} ieee", row[3],
                         lambda x, row=row: encode_integer(*row, x)))
        for mode in ("nearest", "up", "down"):
            for saturate in (False, True):
                jobs.append((f"e8m0 {mode} {'saturate' if saturate else 'ieee'}", 8,
                             lambda x, m=mode, s=saturate: encode_e8m0(x, m, s)))
        files = []
        for what, bits, _ in jobs:
            path = f"{what.replace(' ', '_')}_{source}.bin"
            files.append(open(args.folder / path, "wb"))
            lines.append(f"{what} in_{source}.bin {path} {np.dtype(pattern_type(bits)).itemsize}")
        for x in chunks():
            for (_, _, job), file in zip(jobs, files):
                job(x).tofile(file)
        for file in files:
            file.close()
    (args.folder / "manifest.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
