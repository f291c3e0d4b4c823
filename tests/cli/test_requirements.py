#!/usr/bin/env python3
"""Requirements on the command line: test_requirements.py ASSAY

Rows are inputs, golden and requirements of a small model, the exit codes of check, tune and debug precision, and part of
what they say. A requirement that cannot be judged is never met, and its result stands in the JSON.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(3)
W = R.normal(size=(4, 6)).astype(np.float32)


def write_files():
    graph = h.make_graph(
        [h.make_node("MatMul", ["x", "w"], ["a"], name="mm"), h.make_node("Tanh", ["a"], ["y"], name="th"),
         h.make_node("ArgMax", ["y"], ["k"], name="am", axis=1, keepdims=0)], "g",
        [h.make_tensor_value_info("x", T.FLOAT, ["n", 4])],
        [h.make_tensor_value_info("y", T.FLOAT, ["n", 6]), h.make_tensor_value_info("k", T.INT64, ["n"])],
        [nh.from_array(W, "w")])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "m.onnx")
    root = h.make_graph([h.make_node("Sqrt", ["x"], ["a"], name="root"), h.make_node("MatMul", ["a", "w"], ["y"], name="mm")], "g",
                        [h.make_tensor_value_info("x", T.FLOAT, ["n", 4])], [h.make_tensor_value_info("y", T.FLOAT, ["n", 6])],
                        [nh.from_array(W, "w")])
    onnx.save(h.make_model(root, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "root.onnx")
    x = R.normal(size=(8, 4)).astype(np.float32)
    y = np.tanh(x.astype(np.float64) @ W).astype(np.float32)
    for k in range(8):
        np.savez(f"s{k}.npz", x=x[k:k + 1])
        np.savez(f"g{k}.npz", y=y[k:k + 1])
    np.savez("x8.npz", x=x)
    np.savez("g8.npz", y=y)
    np.savez("g4.npz", y=y[:4])
    np.savez("g7.npz", y=y[:7])
    np.savez("g16.npz", y=np.concatenate([y, y]))
    np.savez("far.npz", y=np.concatenate([y[:7], y[7:] + 0.5]))
    np.savez("other.npz", y=y, z=y)
    np.savez("x0.npz", x=x[:0])
    for name, value in (("nan", np.nan), ("inf", np.inf)):
        bad = x.copy()
        bad[2, 1] = value
        np.savez(f"{name}.npz", x=bad)


EIGHT = [f"s{k}.npz" for k in range(8)]
NO_REASON = None
ROWS = [
    # inputs, golden, requirements, exit of check, of the searches, part of what is said
    (EIGHT, "g8.npz", ["golden_snr_db >= 30"], 0, 0, NO_REASON),
    (EIGHT, "g8.npz", ["golden_snr_db >= 500"], 1, 1, "required: golden_snr_db >= 500"),
    (EIGHT, "far.npz", ["y: golden_max_abs <= 0.1"], 1, 1, "required: y: golden_max_abs <= 0.1"),
    (EIGHT, "g4.npz", ["golden_snr_db >= 30"], 1, 3, "golden has shape [4, 6]"),
    (EIGHT, "g7.npz", ["y: golden_snr_db >= 30"], 1, 3, "golden has shape [7, 6]"),
    (EIGHT, "g16.npz", ["golden_snr_db >= 30"], 1, 3, "golden has 16 rows, the samples give 8"),
    (["x8.npz"], "g8.npz", ["golden_snr_db >= 30"], 0, 0, NO_REASON),
    (["x8.npz"], "g4.npz", ["golden_snr_db >= 30"], 1, 3, "golden has shape [4, 6], the sample [8, 6]"),
    (["x8.npz"], "g16.npz", ["drop_psnr_db <= 60"], 1, 3, "golden has 16 rows, the samples give 8"),
    (["x8.npz"], None, ["y: differing == 0"], 1, 3, "it is of floats"),
    (["x8.npz"], None, ["k: cosine >= 0"], 1, 3, "it is not of floats"),
    (["x8.npz"], None, ["k: top1 >= 0"], 1, 3, "it is not of floats"),
    (["x8.npz"], None, ["y[:, 2:4] snr_db >= 30", "k[-1] differing == 0"], 0, 0, NO_REASON),
    (["x8.npz"], "g8.npz", ["y[2, ::3]: golden_snr_db >= 500"], 1, 1, "'y[2, ::3]' has golden_snr_db"),
    (["x8.npz"], None, ["y[8:] cosine >= 0"], 1, 3, "it has no elements"),
    (["x8.npz"], None, ["y[8] cosine >= 0"], 1, 3, "dimension 0 has 8 elements, none of them 8"),
    (["x8.npz"], None, ["y[0, 6] cosine >= 0"], 2, 2, "dimension 1 has 6 elements, none of them 6"),
    (["x8.npz"], None, ["y[0, 0, 0] cosine >= 0"], 2, 2, "it has 2 dimensions, and the part names 3"),
    (["x8.npz"], None, ["z[0] cosine >= 0"], 2, 2, "the model has no output 'z'"),
    (["nan.npz"], None, [], 1, 3, "the inputs are not finite: 'x' holds 1 NaN"),
    (["nan.npz"], None, ["cosine >= 0"], 1, 3, "truth holds 6 NaN"),
    (["nan.npz"], None, ["y[3:] cosine >= 0.9"], 0, 0, "the inputs are not finite"),
    (["inf.npz"], None, ["cosine >= 0.9"], 0, 0, "the inputs are not finite: 'x' holds 1 infinity"),  # tanh
    (["x0.npz"], None, [], 3, 3, "there is nothing to judge"),
    (["x0.npz"], None, ["cosine >= 0"], 3, 3, "there is nothing to judge"),
]


def run(assay, *args):
    p = subprocess.run([assay, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return p.returncode, p.stdout


def check_json(path, requires, met):
    with open(path) as f:
        results = json.load(f)["requirements"]
    assert {r["requirement"] for r in results} == set(requires), results
    assert not results or all(r["met"] for r in results) == met, results
    assert all((r["why"] is None) == r["met"] for r in results), results
    assert all(r["value"] is not None for r in results if r["met"]), results


def check_row(assay, row):
    inputs, golden, requires, code, search_code, said = row
    args = [x for i in inputs for x in ("-i", i)] + (["-g", golden] if golden else [])
    args += [x for r in requires for x in ("--require", r)] + ["--json", "out.json"]
    verbs = [(["check", "m.onnx", "--no-fix"], code), (["tune", "m.onnx", "--no-pareto"], search_code),
             (["debug", "precision", "m.onnx", "--precision", "bf16"], search_code)]
    for verb, want in verbs:
        if os.path.exists("out.json"):
            os.unlink("out.json")
        got, text = run(assay, *verb, *args)
        assert got == want, f"{' '.join(verb + args)}: exit code {got}, not {want}\n{text}"
        assert said is None or said in text, f"{' '.join(verb + args)}: no '{said}' in\n{text}"
        if want < 2:
            check_json("out.json", requires, want == 0)


def check_blame(assay):
    """NaN that came in are the input's, those that the model makes of finite inputs the model's; neither gets a fix."""
    code, text = run(assay, "check", "m.onnx", "-i", "nan.npz", "--precision", "fp16", "--json", "out.json")
    with open("out.json") as f:
        found = json.load(f)
    assert code == 1 and found["blame"] == "input" and found["fix"] is None, text
    assert found["not_finite"] == {"inputs": "'x' holds 1 NaN", "truth": [{"output": "y", "nan": 6, "inf": 0}]}, found
    code, text = run(assay, "check", "root.onnx", "-i", "x8.npz", "--precision", "fp16", "--json", "out.json")
    with open("out.json") as f:
        found = json.load(f)
    assert code == 1 and found["blame"] == "model" and found["fix"] is None, text
    assert found["not_finite"]["inputs"] is None and found["not_finite"]["truth"], found


def main(assay):
    assay = os.path.abspath(assay)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files()
        for row in [*ROWS, check_blame]:
            try:
                row(assay) if callable(row) else check_row(assay, row)
            except AssertionError as e:
                wrong += 1
                print(e)
        os.chdir("/")
    print(f"{len(ROWS)} rows, {wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
