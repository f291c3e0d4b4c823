#!/usr/bin/env python3
"""Products with weights of 4 and 8 bits beside ONNX Runtime and OpenVINO, float32 rows, as Markdown.

Each model is one product: MatMulNBits (blocks of 32, with zero points), or DequantizeLinear of a constant (int8 with
a scale for each column, int4 in blocks of 32) in front of MatMul; and MatMul with float32 weights for comparison. All engines
run the same model on the same rows in one process each, alternating; the median of the rounds' medians counts. Errors are
against the product in float64 with the weights that the model says, in units of the largest output; they stand in brackets
behind the microseconds. By default the peers quantize rows to int8 on the way for some forms; "in fp32" they are asked not to.

Needs numpy, onnx, onnxruntime and openvino; `assay bench` is called as a program.
"""
import argparse, pathlib, statistics, subprocess, sys, tempfile, time

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
from onnx import TensorProto as T, helper as h, numpy_helper

BLOCK = 32


def quantized(rng, k, n, bits, block):
    """Codes, scales and zero points [blocks, n] of random weights, and the weights that they mean."""
    w = rng.standard_normal((k, n)).astype(np.float32) / np.sqrt(k)
    blocks = k // block
    parts = w.reshape(blocks, block, n)
    low, high = np.minimum(parts.min(1), 0), np.maximum(parts.max(1), 0)
    scale = ((high - low) / (2**bits - 1)).astype(np.float32)
    zero = np.clip(np.round(-low / scale), 0, 2**bits - 1).astype(np.uint8)
    code = np.clip(np.round(parts / scale[:, None]) + zero[:, None], 0, 2**bits - 1).astype(np.uint8)
    real = (code.astype(np.float64) - zero[:, None]) * scale[:, None]
    return code.reshape(k, n), scale, zero, real.reshape(k, n)


def nibbles(a):
    return (a[..., 0::2] | a[..., 1::2] << 4).astype(np.uint8)


def int4_tensor(name, a):
    """A uint4 initializer; a: uint8."""
    return h.make_tensor(name, T.UINT4, a.shape, nibbles(a.reshape(1, -1))[0].tobytes(), raw=True)


def model(form, rng, k, n):
    """A model of one product and the float64 weights of it."""
    init, nodes, opset = [], [], 21
    if form == "fp32":
        w = (rng.standard_normal((k, n)) / np.sqrt(k)).astype(np.float32)
        init, real = [numpy_helper.from_array(w, "w")], w.astype(np.float64)
        nodes = [h.make_node("MatMul", ["x", "w"], ["y"])]
    elif form.startswith("nbits"):
        bits = int(form[5:])
        code, scale, zero, real = quantized(rng, k, n, bits, BLOCK)
        codes = np.ascontiguousarray(code.T).reshape(n, k // BLOCK, BLOCK)
        zeros = np.ascontiguousarray(zero.T)
        init = [numpy_helper.from_array(nibbles(codes) if bits == 4 else codes, "w"),
                numpy_helper.from_array(np.ascontiguousarray(scale.T).reshape(-1), "s"),
                numpy_helper.from_array((nibbles(zeros) if bits == 4 else zeros).reshape(-1), "z")]
        nodes = [h.make_node("MatMulNBits", ["x", "w", "s", "z"], ["y"], domain="com.microsoft", K=k, N=n, bits=bits,
                             block_size=BLOCK)]
    elif form == "dq4":
        code, scale, zero, real = quantized(rng, k, n, 4, BLOCK)
        init = [int4_tensor("w", code), numpy_helper.from_array(scale, "s"), int4_tensor("z", zero)]
        nodes = [h.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=0, block_size=BLOCK),
                 h.make_node("MatMul", ["x", "f"], ["y"])]
    else:
        w = rng.standard_normal((k, n)) / np.sqrt(k)
        scale = (np.abs(w).max(0) / 127).astype(np.float32)
        code = np.clip(np.round(w / scale), -127, 127).astype(np.int8)
        real = code.astype(np.float64) * scale
        init = [numpy_helper.from_array(code, "w"), numpy_helper.from_array(scale, "s")]
        nodes = [h.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=1), h.make_node("MatMul", ["x", "f"], ["y"])]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["m", k])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["m", n])], init)
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("com.microsoft", 1)], ir_version=10)
    return m, real


def median_time(f, seconds):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return statistics.median(times)


def ort_runner(path, x, threads, fp32):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = threads, 4
    if fp32:
        o.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    s = ort.InferenceSession(str(path), o, providers=["CPUExecutionProvider"])
    return lambda: s.run(None, {"x": x})[0]


def ov_runner(path, x, threads, fp32):
    core = ov.Core()
    options = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    if fp32:
        options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    c = core.compile_model(core.read_model(str(path)), "CPU", options)
    r = c.create_infer_request()
    r.set_input_tensor(ov.Tensor(x, shared_memory=True))

    def run():
        r.infer()
        return r.get_output_tensor().data
    return run


def assay_run(assay, path, x, folder):
    np.savez(folder / "x.npz", x=x)
    subprocess.run([assay, "run", path, "--target", "cpu", "--inputs", folder / "x.npz", "--mode", "plan", "--save-outputs", folder / "y.npz"],
                   check=True, capture_output=True)
    return np.load(folder / "y.npz")["y"]


def assay_time(assay, path, x, threads, seconds):
    """By --latencies: one run's milliseconds a line."""
    shape = f"x={x.shape[0]}x{x.shape[1]}"
    said = subprocess.run([assay, "bench", path, "--shape", shape, "--threads", str(threads), "--seconds", str(seconds),
                           "--latencies"], check=True, capture_output=True, text=True).stdout
    return statistics.median(map(float, said.split())) * 1e3


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--assay", required=True)
    a.add_argument("--forms", nargs="+", default=["nbits4", "nbits8", "dq4", "dq8", "fp32"])
    a.add_argument("--shapes", nargs="+", default=["768x3072", "4096x4096"])
    a.add_argument("--rows", nargs="+", type=int, default=[1, 16, 128])
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--seconds", type=float, default=0.4)
    a.add_argument("--rounds", type=int, default=3)
    args = a.parse_args()
    print("| model | K x N | rows | Assay | ONNX Runtime | in fp32 | OpenVINO | in fp32 | Assay GB/s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as t:
        folder = pathlib.Path(t)
        for form in args.forms:
            for shape in args.shapes:
                k, n = map(int, shape.split("x"))
                rng = np.random.default_rng(7)
                m, real = model(form, rng, k, n)
                path = folder / "m.onnx"
                onnx.save(m, path)
                size = sum(len(i.raw_data) for i in m.graph.initializer)
                for rows in args.rows:
                    line(args, form, shape, rows, path, rng.standard_normal((rows, k)).astype(np.float32), real, size, folder)


def line(args, form, shape, rows, path, x, real, size, folder):
    want = x.astype(np.float64) @ real
    scale = np.abs(want).max()
    runners, errors, times = {}, {}, {"assay": []}
    errors["assay"] = np.abs(assay_run(args.assay, path, x, folder) - want).max() / scale
    for name, make, fp32 in (("ort", ort_runner, False), ("ort32", ort_runner, True), ("ov", ov_runner, False),
                             ("ov32", ov_runner, True)):
        try:
            runners[name] = make(path, x, args.threads, fp32)
            errors[name] = np.abs(runners[name]() - want).max() / scale
            times[name] = []
        except Exception as e:  # an engine that cannot run the model has no figures
            print(f"{name}: {str(e).splitlines()[0][:150]}", file=sys.stderr)
            runners.pop(name, None)
    for _ in range(args.rounds):
        for name, f in runners.items():
            times[name].append(median_time(f, args.seconds) * 1e6)
        times["assay"].append(assay_time(args.assay, path, x, args.threads, args.seconds))
    us = {name: statistics.median(v) for name, v in times.items()}

    def cell(name):
        return f"{us[name]:.0f} ({errors[name]:.0e})" if name in us else "none"
    print(f"| {form} | {shape} | {rows} | {cell('assay')} | {cell('ort')} | {cell('ort32')} | {cell('ov')} | {cell('ov32')} | "
          f"{size / us['assay'] / 1e3:.1f} |", flush=True)


if __name__ == "__main__":
    main()
