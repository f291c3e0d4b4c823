#!/usr/bin/env python3
"""Results have the same bits whatever functions the C library has for the CPU: check_bits.py PROGRAM PROJECT.

Every function of one element, powers and softmax, in float64, run with the C library's best functions
and with those for CPUs without FMA and AVX2 (as another machine would choose): truth, native and emu.
Also: no file of the evaluator calls the C library's functions, but for those that are exact.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

NAMES = ("Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid Softplus Elu Selu Gelu "
         "Mish Softmax LogSoftmax ReduceLogSumExp").split()
CALL = re.compile(r"(?<![\w.>])(exp|expm1|exp2|log|log1p|log2|log10|sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|asinh|acosh|atanh|"
                  r"pow|erf|erfc|tgamma|lgamma|cbrt|hypot|atan2|sincos)[fl]?\(|\.f = (exp|log|sin|cos|tan|tanh|erf)\b")
# Kernels of the CPU promise the same bits on one machine only; statistics of times promise none.
FREE = ("backends/", "cli/verbs/bench/")


def model(path):
    d = TensorProto.DOUBLE
    nodes = [helper.make_node(name, ["x"], [name.lower()], name=name) for name in NAMES]
    nodes.append(helper.make_node("Pow", ["positive", "x"], ["pow"], name="Pow"))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, d, [400, 250]) for n in ("x", "positive")],
                              [helper.make_tensor_value_info(n.lower(), d, None) for n in NAMES + ["Pow"]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def run(program, folder, mode, tunables):
    out = folder / "out.npz"
    env = dict(os.environ, **({"GLIBC_TUNABLES": tunables} if tunables else {}))
    subprocess.run([program, "run", folder / "m.onnx", "--mode", mode, "-i", folder / "in.npz", "-o", out], check=True,
                   env=env, stdout=subprocess.DEVNULL)
    with np.load(out) as arrays:
        return {k: arrays[k] for k in arrays}


def calls(project):
    for path in sorted((project / "src").rglob("*.[ch]")):
        name = path.relative_to(project / "src").as_posix()
        if name.startswith(FREE):
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            code = re.sub(r'"[^"]*"', '""', line.split("//")[0])
            if not code.lstrip().startswith("FUNCTION(") and CALL.search(code):
                yield f"src/{name}:{number}: {line.strip()}: call base/functions.h"


def main():
    faults = list(calls(pathlib.Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        random = np.random.default_rng(3)
        x = random.normal(size=(400, 250)) * 3
        np.savez(folder / "in.npz", x=x, positive=np.abs(random.normal(size=(400, 250)) * 4) + 1e-9)
        model(folder / "m.onnx")
        for mode in ("truth", "native", "plan"):
            best = run(sys.argv[1], folder, mode, None)
            for masked in ("-AVX2_Usable,-FMA_Usable,-FMA4_Usable", "-AVX2,-FMA,-FMA4,-AVX512F"):
                other = run(sys.argv[1], folder, mode, f"glibc.cpu.hwcaps={masked}")
                for key, value in best.items():
                    differ = np.count_nonzero(value.view(np.uint64) != other[key].view(np.uint64))
                    if differ:
                        faults.append(f"{mode}, {masked}: {differ} of {value.size} elements of {key} differ")
    print("\n".join(faults) or "the same bits")
    return 1 if faults else 0


sys.exit(main())
