"""Healthy models: golden that differs by rounding only must not be blamed on the export."""
import os

import numpy as np

from . import judge
from .subject import Failed, TooSlow, run


def perturbed(arrays, rng):
    """Truth as a framework that computes in float32 might give it: an error of a unit roundoff in every element."""
    out = {}
    for name, array in arrays.items():
        if array.dtype == np.float64:
            array = (array * (1 + 2.0**-24 * rng.uniform(-1, 1, array.shape))).astype(np.float32)
        out[name] = array
    return out


def goldens(subject):
    """Pairs of what golden is and the options that give it."""
    rng = np.random.default_rng(1)
    outputs, values = (f"{subject.folder}/{n}.npz" for n in ("rounded_outputs", "rounded_values"))
    np.savez(outputs, **perturbed(subject.golden(), rng))
    np.savez(values, **perturbed(dict(np.load(subject.values)), rng))
    yield "rounded outputs", ["--golden", outputs]
    yield "rounded inner values", ["--golden", outputs, "--golden-intermediates", values]
    native, inner = (f"{subject.folder}/{n}.npz" for n in ("native_outputs", "native_values"))
    options = [*subject.input_options(), "--mode", "native"]
    run(subject.program, "run", subject.model, *options, "--save-outputs", native)
    run(subject.program, "run", subject.model, *options, "--all-values", "--save-outputs", inner)
    yield "a float32 run's outputs", ["--golden", native]
    yield "a float32 run's inner values", ["--golden", native, "--golden-intermediates", inner]


def own_golden(subject):
    """The golden files of a case, on all of its inputs."""
    folder = os.path.dirname(subject.path)
    inputs, golden = (os.path.join(folder, f"{n}.npz") for n in ("inputs", "golden"))
    if subject.is_small or not (os.path.exists(inputs) and os.path.exists(golden)):
        return
    with np.load(golden) as arrays:
        if not any(o.name in arrays.files for o in subject.proto.graph.output):
            return
    yield "the case's own golden", ["--inputs", inputs, "--golden", golden]
    inner = os.path.join(folder, "golden_intermediates.npz")
    if os.path.exists(inner):
        yield "the case's own inner values", ["--inputs", inputs, "--golden", golden, "--golden-intermediates", inner]


def check(subject, limit):
    """Rows of (model, golden, verdict, what is blamed)."""
    report = f"{subject.folder}/healthy.json"
    rows = []
    cases = [(name, [*subject.input_options(), *options]) for name, options in goldens(subject)]
    cases += list(own_golden(subject))
    for name, options in cases:
        try:
            run(subject.program, "check", subject.model, *options, "--no-fix", "--json", report, limit=limit, codes=(0, 1))
        except (Failed, TooSlow) as e:
            rows.append((subject.name, name, "failed", str(e)))
            continue
        found = judge.read_report(report)
        blamed = [c["nodes"][0] for c in found["culprits"] if c["verdict"] in ("export", "defect")]
        rows.append((subject.name, name, found["blame"], ", ".join(blamed[:3])))
    return rows
