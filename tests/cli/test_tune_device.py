#!/usr/bin/env python3
"""The device that `assay tune` finds the fastest formats for: 16-bit ones pay by default, and the report says what it assumes.

    test_tune_device.py ASSAY
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper


def network():
    """Convolutions without any trouble in float16."""
    rng = np.random.default_rng(2)
    nodes, init, last, channels = [], [], "x", 3
    for k, wide in enumerate((16, 32, 32, 64)):
        w = rng.standard_normal((wide, channels, 3, 3)) / np.sqrt(9 * channels)
        init.append(numpy_helper.from_array(w.astype(np.float32), f"w{k}"))
        nodes.append(h.make_node("Conv", [last, f"w{k}"], [f"c{k}"], f"conv{k}", pads=[1, 1, 1, 1], strides=[1 + k % 2] * 2))
        nodes.append(h.make_node("Relu", [f"c{k}"], [f"r{k}"], f"relu{k}"))
        last, channels = f"r{k}", wide
    nodes.append(h.make_node("GlobalAveragePool", [last], ["y"], "pool"))
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [1, 3, 48, 48])],
                     [h.make_tensor_value_info("y", T.FLOAT, [1, 64, 1, 1])], init)
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def tune(*options):
    args = [sys.argv[1], "tune", "net.onnx", "-i", "x.npz", "--require", "cosine >= 0.99", "--no-pareto", *options]
    r = subprocess.run(args, capture_output=True, text=True)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r.stdout


def by_default():
    for precision in ("fp16", "bf16"):
        got = json.loads(tune("--precision", precision, "--json", "-"))
        chosen, fp32 = got["chosen"], got["trials"][0]
        assert chosen["layers"]["fp32"] <= 1, f"{precision}: {chosen['layers']}"
        assert chosen["milliseconds"] < 0.8 * fp32["milliseconds"], (precision, chosen["milliseconds"], fp32["milliseconds"])
        assert got["device"] == "generic"
        rates = got["device_rates"]
        assert rates["tflops"][precision] > rates["tflops"]["fp32"] and rates["gigabytes_per_second"] > 0, rates


def is_told():
    """Rates, and which option picks others."""
    said = tune("--precision", "bf16,fp16")
    assert "  device  a generic accelerator (--device generic): 10 TFLOP/s in fp32, 40 TFLOP/s in fp16, 40 TFLOP/s in bf16, 400 GB/s\n" in said, said
    said = tune("--device", "orin")
    assert "  device  NVIDIA Jetson AGX Orin 64GB (--device orin): 5.3 TFLOP/s in fp32, 42.5 TFLOP/s in fp16, 205 GB/s, 5 us a kernel\n" in said, said
    assert json.loads(tune("--device", "h100", "--json", "-"))["device_rates"]["microseconds_per_kernel"] == 2


def here():
    said = tune("--target", "cpu", "--precision", "bf16", "--seconds", "0.05")
    line = [row for row in said.splitlines() if row.startswith("  device")][0]
    assert "this machine's CPU, timed layer by layer; whole runs:" in line and "ms in fp32" in line and line.endswith("ms in bf16"), line
    got = json.loads(tune("--target", "cpu", "--precision", "bf16", "--seconds", "0.05", "--json", "-"))
    assert got["device"] is None and got["device_rates"] is None and got["whole_runs"]["bf16"] > 0, got["whole_runs"]


def main():
    sys.argv[1] = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        onnx.save(network(), "net.onnx")
        np.savez("x.npz", x=np.random.default_rng(3).standard_normal((1, 3, 48, 48)).astype(np.float32))
        by_default()
        is_told()
        here()
        os.chdir("/")
    print("devices of tune: told, and 16 bits pay by default")


if __name__ == "__main__":
    main()
