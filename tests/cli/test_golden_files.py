#!/usr/bin/env python3
"""--golden given several times: test_golden_files.py ASSAY

A file a sample, in the order of the inputs, is what a folder of them is; another order is not. Files of other outputs complete the
first. Files that do not go together, or are not as many as the inputs, are told. `tune` and `debug precision` take them, too.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(4)
SAMPLES = 3


def call(assay, *words):
    return subprocess.run([assay, *words], capture_output=True, text=True)


def verdict(assay, *golden):
    files = [w for i in range(SAMPLES) for w in ("-i", f"x{i}.npz")]
    done = call(assay, "check", "model.onnx", *files, *[w for g in golden for w in ("-g", g)], "--json", "report.json", "--search-time", "1")
    assert done.returncode in (0, 1), f"{golden}: {done.stderr}"
    with open("report.json", encoding="utf-8") as f:
        report = json.load(f)
    assert report["samples"] == SAMPLES, f"{golden}: {report['samples']} samples"
    assert all(o["truth_against_golden"] for o in report["outputs"]), f"{golden}: an output was not compared"
    return report["verdict"]


def main(assay):
    assay = os.path.abspath(assay)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        w = R.normal(size=(5, 4)).astype(np.float32)
        nodes = [h.make_node("MatMul", ["x", "w"], ["y"], "product"), h.make_node("Tanh", ["y"], ["z"], "tanh")]
        value = lambda name, n: h.make_tensor_value_info(name, T.FLOAT, [2, n])
        graph = h.make_graph(nodes, "g", [value("x", 5)], [value("y", 4), value("z", 4)], [nh.from_array(w, "w")])
        onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "model.onnx")
        os.mkdir("folder")
        for i in range(SAMPLES):
            x = R.normal(size=(2, 5)).astype(np.float32)
            y = x.astype(np.float64) @ w
            np.savez(f"x{i}.npz", x=x)
            np.savez(f"both{i}.npz", y=y.astype(np.float32), z=np.tanh(y).astype(np.float32))
            np.savez(f"folder/{i}.npz", y=y.astype(np.float32), z=np.tanh(y).astype(np.float32))
        runs = [np.load(f"both{i}.npz") for i in range(SAMPLES)]
        for name in ("y", "z"):
            np.savez(f"all_{name}.npz", **{name: np.concatenate([r[name] for r in runs])})
        both = [f"both{i}.npz" for i in range(SAMPLES)]
        assert verdict(assay, "folder") == "faithful"
        assert verdict(assay, *both) == "faithful", "a file a sample"
        assert verdict(assay, *both[::-1]) == "unfaithful", "samples in another order"
        assert verdict(assay, "all_y.npz", "all_z.npz") == "faithful", "a file an output"
        files = [w for i in range(SAMPLES) for w in ("-i", f"x{i}.npz")]
        few = call(assay, "check", "model.onnx", *files, "-g", both[0], "-g", both[1])
        assert few.returncode == 2 or few.returncode == 3, f"two samples for three: {few.returncode}"
        assert "holds 2 samples, the inputs 3" in few.stderr, few.stderr
        mixed = call(assay, "check", "model.onnx", *files, "-g", "all_y.npz", "-g", both[0])
        assert mixed.returncode in (2, 3) and "as the files before it have" in mixed.stderr, mixed.stderr
        golden = [w for g in both for w in ("-g", g)]
        for words in (("debug", "precision", "model.onnx", "--precision", "fp16"), ("tune", "model.onnx", "--precision", "fp16", "-o", "mixed.onnx")):
            done = call(assay, *words, *files, *golden, "--require", "golden_snr_db >= 20")
            assert done.returncode == 0, f"{words}: {done.returncode}, {done.stderr}"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
