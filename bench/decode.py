#!/usr/bin/env python3
"""How long a step of a decoder with a cache takes, by its position: examples/decode, with the caches as states of the
context, and as ordinary inputs and outputs, in turns.

    bench/decode.py BUILD [--steps 512] [--rounds 5] [-- options of examples/decode/make_model.py]

BUILD: a folder with libassay.so, such as build/release. Prints a table: the median over the rounds of each range's median.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ("anew", "times")


def measure(program, model, steps, mode):
    text = subprocess.run([program, model, str(steps), mode], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()[1:]]
    return {name: (float(ms), int(made)) for name, ms, made in rows}


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
        found = [{mode: measure(program, model, options.steps, mode) for mode in MODES} for _ in range(options.rounds)]
    print("| positions | anew, ms a step | kernels made | states, ms a step | kernels made |")
    print("| --- | --- | --- | --- | --- |")
    for name in found[0][MODES[0]]:
        cells = [name]
        for mode in MODES:
            cells.append(f"{statistics.median(f[mode][name][0] for f in found):.2f}")
            cells.append(f"{found[0][mode][name][1]:,}")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
