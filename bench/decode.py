#!/usr/bin/env python3
"""How long a step of a decoder with a cache takes, by its position: examples/decode, with the caches as states of the
context, and as ordinary inputs and outputs, and ONNX Runtime, whose outputs are its next inputs, in turns.

    bench/decode.py BUILD [--steps 512] [--rounds 5] [-- options of examples/decode/make_model.py]

BUILD: a folder with libassay.so, such as build/release. Prints a table: the median over the rounds of each range's median.
All with as many threads as the machine has cores.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ("anew", "times")


def measure(program, model, steps, mode):
    text = subprocess.run([program, model, str(steps), mode], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()[1:]]
    return {name: (float(ms), int(made)) for name, ms, made in rows}


def measure_peer(model, steps):
    """As measure() does, of ONNX Runtime."""
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    past = {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for i in session.get_inputs() if "past" in i.name}
    token, times = np.array([[1]]), []
    for at in range(steps):
        fed = dict(past, input_ids=token, attention_mask=np.ones((1, at + 1), np.int64), position_ids=np.array([[at]]))
        begin = time.perf_counter()
        values = dict(zip(outputs, session.run(None, fed)))
        times.append(1e3 * (time.perf_counter() - begin))
        token = np.array([[int(values["logits"][0, -1].argmax())]])
        past = {name: values[name.replace("past_key_values", "present")] for name in past}
    rows, first = {}, 1
    while first <= steps:
        last = min(2 * (first - 1) if first > 1 else 1, steps)
        rows[f"{first}-{last}"] = (statistics.median(times[first - 1:last]), 0)
        first = last + 1
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    arguments, _, model_options = " ".join(sys.argv[1:]).partition(" -- ")
    options = parser.parse_args(arguments.split())
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        program, model = os.path.join(folder, "decode"), os.path.join(folder, "model.onnx")
        subprocess.run(["cc", "-O2", ROOT / "examples/decode/decode.c", "-I", ROOT / "include", "-L", build, "-lassay",
                        f"-Wl,-rpath,{build}", "-o", program], check=True)
        subprocess.run([sys.executable, ROOT / "examples/decode/make_model.py", model, *model_options.split()], check=True)
        found = []
        for _ in range(options.rounds):
            found.append({mode: measure(program, model, options.steps, mode) for mode in MODES})
            found[-1]["peer"] = measure_peer(model, options.steps)
    print("| positions | anew, ms a step | kernels made | states, ms a step | kernels made | ONNX Runtime, ms a step |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in found[0][MODES[0]]:
        cells = [name]
        for mode in MODES:
            cells.append(f"{statistics.median(f[mode][name][0] for f in found):.2f}")
            cells.append(f"{found[0][mode][name][1]:,}")
        cells.append(f"{statistics.median(f['peer'][name][0] for f in found):.2f}")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
