#!/usr/bin/env python3
"""assay check A --reference B: another model's outputs as golden; inputs and outputs by name, else by position.

    test_reference.py ASSAY
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

failures = []


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def write_model(path, a="a", b="b", y="y", z="z", bias=1.0, batch=4, elem=T.FLOAT, inner=("t", "u"), swap=False, extra=None):
    """y = sigmoid(a W + bias) - b; z = y * 2."""
    kind = {T.FLOAT: np.float32, T.DOUBLE: np.float64, T.FLOAT16: np.float16}[elem]
    w = np.random.default_rng(3).standard_normal((6, 5)).astype(kind)
    constants = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array(bias, kind), "c"), numpy_helper.from_array(np.array(2, kind), "two")]
    nodes = [helper.make_node("MatMul", [a, "w"], [inner[0]], name="product"), helper.make_node("Add", [inner[0], "c"], [inner[1]], name="bias"),
             helper.make_node("Sigmoid", [inner[1]], ["s"], name="act"), helper.make_node("Sub", ["s", b], [y], name="less"),
             helper.make_node("Mul", [y, "two"], [z], name="twice")]
    values = [helper.make_tensor_value_info(a, elem, [batch, 6]), helper.make_tensor_value_info(b, elem, [batch, 5])]
    if extra:
        values.append(helper.make_tensor_value_info(extra, elem, [1]))
    outputs = [helper.make_tensor_value_info(n, elem, [batch, 5]) for n in (y, z)]
    graph = helper.make_graph(nodes, "g", values[::-1] if swap else values, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main(program):
    program = os.path.abspath(program)

    def assay(*args):
        p = subprocess.run([program, "check", *args], capture_output=True, text=True, timeout=120)
        return p.returncode, p.stdout, p.stderr

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rng = np.random.default_rng(5)
        draw = lambda rows: {"a": rng.standard_normal((rows, 6)).astype(np.float32), "b": rng.standard_normal((rows, 5)).astype(np.float32)}
        np.savez("x.npz", **draw(4))
        np.savez("two.npz", **draw(4))
        np.savez("twelve.npz", **draw(12))
        write_model("m.onnx")
        write_model("same.onnx", swap=True)
        write_model("other.onnx", a="left", b="right", y="first", z="second")
        write_model("biased.onnx", bias=1.01)
        write_model("double.onnx", elem=T.DOUBLE)
        write_model("half.onnx", elem=T.FLOAT16)
        write_model("single.onnx", batch=1)
        write_model("extra.onnx", extra="mask")
        write_model("shape.onnx", batch=3)
        write_model("numbered.onnx", inner=("u", "t"))

        code, out, err = assay("m.onnx", "-i", "x.npz", "--reference", "same.onnx", "--require", "golden_snr_db > 120")
        check(code == 0 and "golden  'y': truth SNR" in out and "golden  'z'" in out, "by name, in another order", out + err)
        check("by position" not in err, "names need no note", err)
        code, out, err = assay("m.onnx", "-i", "x.npz", "--reference", "other.onnx", "--require", "golden_snr_db > 120")
        check(code == 0 and "note: input 'a' is taken for 'left', by position\n" in err and "note: output 'second' is taken for 'z', by position\n" in err, "by position", out + err)
        # The same constants in another type of float: golden keeps what that computes in float64.
        for name in ("double.onnx", "half.onnx"):
            code, out, err = assay("m.onnx", "-i", "x.npz", "--reference", name, "--require", "golden_snr_db > 50")
            check(code == (0 if name == "double.onnx" else code) and "golden" in out and "error" not in err, name, out + err)
        code, out, err = assay("m.onnx", "-i", "x.npz", "--reference", "biased.onnx", "--json", "j.json")
        check(code == 1 and "blame   export" in out and json.load(open("j.json"))["blame"] == "export", "another bias is the export's fault", out + err)
        code, out, err = assay("m.onnx", "-i", "x.npz", "--reference", "numbered.onnx")
        check(code == 0 and "export" not in out, "inner values that share a name only are left alone", out + err)
        code, out, err = assay("m.onnx", "-i", "x.npz", "--reference", "biased.onnx", "--no-fix", "--search-time", "0.5")
        check("export  bias (Add)   'u' differs from golden" in out, "inner values of the same names show the node", out)
        # Several samples, in one file and in two.
        for words in (["-i", "twelve.npz"], ["-i", "x.npz", "-i", "two.npz"]):
            code, out, err = assay("m.onnx", *words, "--reference", "other.onnx", "--no-fix")
            check(code == 0 and "golden  'y': truth SNR" in out, f"samples: {words}", out + err)
            code, out, err = assay("m.onnx", *words, "--reference", "biased.onnx", "--no-fix", "--search-time", "1")
            check(code == 1 and "export" in out, f"samples differ: {words}", out + err)
        code, out, err = assay("m.onnx", "--reference", "m.onnx")
        check(code == 0 and "golden" in out, "random inputs are the same for both", out + err)
        for words, wanted, said in ((["extra.onnx"], 3, "the reference 'extra.onnx': it takes input 'mask' (float[1]), which the model that is checked does not have"),
                                    (["shape.onnx"], 3, "array 'a' has shape [4, 6]; the model wants"), (["single.onnx"], 3, "it takes smaller batches"),
                                    (["no.onnx"], 3, "no.onnx"), (["m.onnx", "--golden", "x.npz"], 2, "not both")):
            code, out, err = assay("m.onnx", "-i", "x.npz", "--reference", *words)
            check(code == wanted and said in err and not out, f"{words}", f"{code} {out}{err}")
        os.chdir("/")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
