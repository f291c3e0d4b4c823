#!/usr/bin/env python3
"""Truth against onnx.reference on the same models converted to float64.

    check_truth.py ASSAY MODEL_OR_FOLDER...

A folder holds model.onnx with inputs.npz, or any number of .onnx files, which get seeded random inputs.
Every output differs by at most 1e-12 of its largest magnitude; integers are equal.
"""
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from float64_model import largest_difference, run_float64, split_samples

LIMIT = 1e-12


def truth(program, model, inputs, work, *options):
    """Truth of a model's outputs that are tensors, by name. inputs: the npz."""
    path = os.path.join(work, "truth.npz")
    run = subprocess.run([program, "run", model, "--mode", "truth", "--inputs", inputs, "--save-outputs", path, *options],
                         capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"exit code {run.returncode}: {run.stderr.strip()}")
    with np.load(path) as arrays:
        return dict(arrays)


def make_inputs(model, seed=1):
    rng = np.random.default_rng(seed)
    constants = {t.name for t in model.graph.initializer}
    arrays = {}
    for i in model.graph.input:
        t = i.type.tensor_type
        dims = [d.dim_value or 2 for d in t.shape.dim]
        if i.name not in constants:
            arrays[i.name] = rng.standard_normal(dims).astype(onnx.helper.tensor_dtype_to_np_dtype(t.elem_type))
    return arrays


def check(program, path, work):
    model = onnx.load(path)
    inputs = os.path.join(os.path.dirname(path), "inputs.npz")
    if not os.path.exists(inputs):
        inputs = os.path.join(work, "inputs.npz")
        np.savez(inputs, **make_inputs(model))
    with np.load(inputs) as arrays:
        theirs = run_float64(model, split_samples(model, dict(arrays)))
    names = [o.name for o in model.graph.output if o.type.HasField("tensor_type")]
    ours = truth(program, path, inputs, work, *(w for name in names for w in ("--output", name)))
    assert sorted(ours) == sorted(names), f"outputs {sorted(ours)} instead of {sorted(names)}"
    worst = 0.0
    for name in names:
        distance = largest_difference(ours[name], theirs[name])
        assert distance <= LIMIT, f"output '{name}' differs by {distance:.2e} of its largest magnitude"
        worst = max(worst, distance)
    return worst


def main(program, *places):
    failed, paths = 0, []
    for place in places:
        found = sorted(glob.glob(os.path.join(place, "*.onnx"))) if os.path.isdir(place) else [place]
        assert found, f"no model in {place}"
        paths += found
    for path in paths:
        with tempfile.TemporaryDirectory(dir=".") as work:
            try:
                print(f"{path}: {check(program, path, work):.1e}", flush=True)
            except AssertionError as e:
                failed += 1
                print(f"FAIL {path}: {e}", flush=True)
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
