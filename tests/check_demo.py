#!/usr/bin/env python3
"""The main job on the NAFNet of tests/models: check_demo.py ASSAY FOLDER.

In fp16 its output is NaN, since the sums of its local pooling pass 65504. The culprit has to be the first
of these sums; the fix may keep only that pooling in fp32, and the model written has to be right in
ONNX Runtime; keeping the sums alone is not a fix.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

FIRST = "/encoders.0/encoders.0.0/sca/sca.0/CumSum_1"


def run_check(assay, folder, work, *options):
    path = os.path.join(work, "check.json")
    run = subprocess.run([assay, "check", f"{folder}/model.onnx", "--precision", "fp16", "--inputs", f"{folder}/inputs.npz",
                          "--golden", f"{folder}/golden.npz", "--json", path, "--output-folder", work, *options],
                         stdout=subprocess.PIPE, text=True)
    print(run.stdout)
    with open(path, encoding="utf-8") as f:
        return run.returncode, json.load(f)


def snr_db(y, reference):
    return 10 * np.log10(np.sum(reference**2) / np.sum((y - reference) ** 2))


def main(assay, folder):
    with tempfile.TemporaryDirectory(dir=".") as work:
        code, report = run_check(assay, folder, work)
        assert code == 1 and report["verdict"] == "unfaithful" and report["blame"] == "precision"
        assert report["outputs"][0]["nan"] == 3 * 256 * 256
        first = report["culprits"][0]
        assert first["nodes"] == [FIRST] and first["verdict"] == "overflow", first
        assert abs(first["value"] - 5.405e5) < 1e3, first
        fix = report["fix"]
        assert fix["verified"]["verdict"] == "faithful"
        assert all("/sca/sca.0/" in node for node in fix["nodes"]), fix["nodes"]
        # The rules handed over do the same.
        code, again = run_check(assay, folder, work, "--no-fix", "--layer-precision", fix["layer_precision"])
        assert code == 0 and again["verdict"] == "faithful"
        # The sums alone: they are stored in fp16 again behind them.
        code, sums = run_check(assay, folder, work, "--no-fix", "--layer-precision", "*/CumSum*:fp32")
        assert code == 1 and sums["verdict"] == "unfaithful"
        # The mixed model in ONNX Runtime.
        (fixed,) = (f for f in fix["files"] if f.endswith(".onnx"))
        onnx.checker.check_model(fixed, full_check=True)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(fixed, options, providers=["CPUExecutionProvider"])
        outputs = dict(zip((o.name for o in session.get_outputs()), session.run(None, dict(np.load(f"{folder}/inputs.npz")))))
        golden = np.load(f"{folder}/golden.npz")["denoised"].astype(np.float64)
        snr = snr_db(outputs["denoised"].astype(np.float64), golden)
        print(f"the fixed model in ONNX Runtime: SNR {snr:.1f} dB")
        assert snr > 65


if __name__ == "__main__":
    main(*sys.argv[1:])
