#!/usr/bin/env python3
"""Ranges of every operator against runs: bench/ranges_cases.py ASSAY CASES [--format F] [--points N] [--only PATTERN]

For each ONNX operator case: the box is the range of its inputs, `assay audit` says between which numbers every value lies,
and the emulated engine is run on the case's inputs, on random inputs and on corners of the box. A number outside its
range, or one that is not finite where none was announced, is a fault.
"""
import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

R = np.random.default_rng(3)


def inputs_of(folder, m):
    out = {}
    names = [i.name for i in m.graph.input]
    for k, name in enumerate(names):
        f = folder / "test_data_set_0" / f"input_{k}.pb"
        if not f.exists():
            continue
        t = onnx.TensorProto()
        t.ParseFromString(f.read_bytes())
        a = numpy_helper.to_array(t)
        if a.dtype.kind not in "fiub" or a.dtype == object or (a.dtype.kind == "f" and not np.isfinite(a).all()):
            return None
        out[name] = a
    return out


def sample(inputs, kind):
    out = {}
    for name, a in inputs.items():
        if a.dtype not in (np.float32, np.float16, np.float64) or not a.size or not np.isfinite(a).all():
            out[name] = a
            continue
        lo, hi = float(a.min()), float(a.max())
        if kind == 0:
            x = a
        elif kind == 1:
            x = R.uniform(lo, hi, a.shape)
        elif kind == 2:
            x = np.where(R.random(a.shape) < 0.5, lo, hi)
        elif kind == 3:
            x = np.full(a.shape, lo if R.random() < 0.5 else hi)
        else:
            x = np.full(a.shape, R.uniform(lo, hi)) + R.uniform(0, (hi - lo) * 1e-3, a.shape)
        out[name] = np.clip(np.asarray(x).astype(a.dtype), a.min(), a.max())
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("assay")
    p.add_argument("cases", type=pathlib.Path)
    p.add_argument("--format", default="fp32")
    p.add_argument("--points", type=int, default=6)
    p.add_argument("--only", default="*")
    p.add_argument("--verbose", action="store_true")
    a = p.parse_args()
    done = unknown = skipped = faults = hazards = 0
    unknown_ops = {}
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        for path in sorted(a.cases.rglob("model.onnx")):
            case = path.parent
            if not fnmatch.fnmatch(case.name, a.only):
                continue
            try:
                m = onnx.load(path)
                ins = inputs_of(case, m)
            except Exception:
                ins = None
            if not ins or any(x.dtype.name not in ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool",
                                                   "int16", "uint16", "uint32", "uint64") for x in ins.values()):
                skipped += 1
                continue
            np.savez(d / "in.npz", **ins)
            # What is not a float is a parameter as a rule: it is held at its value by a constant.
            held = onnx.ModelProto()
            held.CopyFrom(m)
            for name, x in ins.items():
                if x.dtype.kind != "f" and x.size:
                    held.graph.initializer.append(numpy_helper.from_array(x, name))
            keep = [i for i in held.graph.input if i.name not in ins or ins[i.name].dtype.kind == "f"]
            del held.graph.input[:]
            held.graph.input.extend(keep)
            onnx.save(held, d / "m.onnx")
            floats = {k: v for k, v in ins.items() if v.dtype.kind == "f"}
            np.savez(d / "in.npz", **floats)
            r = subprocess.run([a.assay, "audit", str(d / "m.onnx"), "--precision", a.format, "--inputs", str(d / "in.npz"),
                                "--no-radius", "--no-witness", "--json", "-"], capture_output=True, text=True)
            if r.returncode not in (0, 1):
                if a.verbose or r.returncode < 0:
                    print(case.name, r.returncode, r.stderr.strip()[:200])
                faults += r.returncode < 0
                skipped += 1
                continue
            told = json.loads(r.stdout)
            kinds = {x["kind"] for x in told["hazards"]}
            if "not known" in kinds:
                unknown += 1
                for x in told["hazards"]:
                    if x["kind"] == "not known":
                        unknown_ops[x["operator"]] = unknown_ops.get(x["operator"], 0) + 1
            hazards += bool(kinds - {"not known"})
            for k in range(a.points if floats else 1):
                np.savez(d / "x.npz", **sample(floats, k % 5))
                r = subprocess.run([a.assay, "run", str(d / "m.onnx"), "--precision", a.format, "--inputs", str(d / "x.npz"),
                                    "-o", str(d / "y.npz")], capture_output=True, text=True)
                if r.returncode:
                    break
                for name, y in np.load(d / "y.npz").items():
                    if y.dtype.kind not in "fiub" or name not in told["values"] or not y.size:
                        continue
                    lo, hi = told["values"][name]
                    lo, hi = -np.inf if lo is None else lo, np.inf if hi is None else hi
                    y = y.astype(np.float64)
                    if not np.isfinite(y).all() and not kinds:
                        print(f"FAULT {case.name} {name}: not finite, and nothing announced")
                        faults += 1
                    f = y[np.isfinite(y)]
                    if not kinds and f.size and (f.min() < lo or f.max() > hi):
                        print(f"FAULT {case.name} {name}: [{f.min()!r}, {f.max()!r}] outside [{lo!r}, {hi!r}]")
                        faults += 1
            done += 1
    print(f"{a.format}: {done} cases, {skipped} skipped, {hazards} with hazards, {unknown} not known, {faults} faults")
    print("not known:", ", ".join(f"{k} {v}" for k, v in sorted(unknown_ops.items())))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
