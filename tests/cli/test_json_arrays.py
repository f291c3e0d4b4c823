#!/usr/bin/env python3
"""Plain JSON arrays as inputs: types from the model, NaN and infinities, samples, ragged arrays.

    test_json_arrays.py ASSAY
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

failures = []
TYPES = {"f": (T.FLOAT, np.float32), "d": (T.DOUBLE, np.float64), "h": (T.FLOAT16, np.float16), "i": (T.INT32, np.int32), "u": (T.UINT8, np.uint8),
         "l": (T.INT64, np.int64), "b": (T.BOOL, np.bool_)}


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def write_model(path, values):
    nodes = [helper.make_node("Identity", [n], [n + "_out"]) for n, _, _ in values]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info(n, t, s) for n, t, s in values], [info(n + "_out", t, s) for n, t, s in values])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main(program):
    program = os.path.abspath(program)

    def run(text, model="all.onnx", verb="run", *more):
        with open("in.json", "w") as f:
            f.write(text)
        p = subprocess.run([program, verb, model, "-i", "in.json", *more], capture_output=True, text=True, timeout=60)
        return p.returncode, p.stdout, p.stderr

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_model("all.onnx", [(n, t, ["N", 3]) for n, (t, _) in TYPES.items()])
        write_model("one.onnx", [("x", T.FLOAT, [2, 2])])
        write_model("scalar.onnx", [("x", T.FLOAT, [])])
        write_model("text.onnx", [("x", T.STRING, [2])])
        rng = np.random.default_rng(2)
        want = {n: (rng.standard_normal((4, 3)) * 50).astype(np.float64) for n in "fdh"}
        want |= {"i": rng.integers(-9, 9, (4, 3)), "u": rng.integers(0, 255, (4, 3)), "l": np.array([[2**62 + 1, -5, 0]] * 4), "b": rng.integers(0, 2, (4, 3)) == 1}
        want["f"][0] = [np.nan, np.inf, -np.inf]
        code, out, err = run(json.dumps({n: a.tolist() for n, a in want.items()}), "all.onnx", "run", "-o", "out.npz")  # NaN, Infinity: literals
        check(code == 0 and "note" not in err, "all types, without a conversion to tell", out + err)
        got = np.load("out.npz")
        for n, (_, kind) in TYPES.items():
            a = got[n + "_out"]
            check(a.dtype == kind and np.array_equal(a, want[n].astype(kind), equal_nan=kind in (np.float32, np.float64)), f"elements of {n}", f"{a} {want[n]}")
        code, out, err = run('{"x": [["NaN", "Infinity"], ["-Infinity", "nan"]]}', "one.onnx", "run", "-o", "out.npz")
        check(code == 0 and np.array_equal(np.load("out.npz")["x_out"], np.array([[np.nan, np.inf], [-np.inf, np.nan]], np.float32), equal_nan=True), "strings", out + err)
        code, out, err = run('{"x": 2.5}', "scalar.onnx", "run", "-o", "out.npz")
        check(code == 0 and np.load("out.npz")["x_out"] == np.float32(2.5), "a scalar", out + err)
        code, out, err = run('{"x": ["inf", "b c"]}', "text.onnx")
        check(code == 0, "strings stay strings where the model says so", out + err)
        samples = [{"x": [[k, 1], [2, 3]]} for k in range(3)]
        code, out, err = run(json.dumps(samples), "one.onnx", "check", "--json", "-")
        check(code == 0 and json.loads(out)["samples"] == 3, "a list of objects is samples", out + err)
        # As golden, too.
        with open("golden.json", "w") as f:
            json.dump({"x_out": [[0, 1], [2, 3]]}, f)
        code, out, err = run(json.dumps(samples[0]), "one.onnx", "check", "--golden", "golden.json", "--require", "golden_max_abs <= 0")
        check(code == 0 and "golden  'x_out'" in out or "unknown" in err, "golden", out + err)
        for text, model, said in (('{"x": [[1, 2], [3]]}', "one.onnx", "x[1] has 1 elements, those before it have 2"),
                                  ('{"x": [[1, 2], 3]}', "one.onnx", "x[1] is not a list"), ('{"x": [[1, 2], [3, [4]]]}', "one.onnx", "x[1][1] is a list"),
                                  ('[{"x": [[1, 2], [3, 4]]}, {"x": [[1, 2], [3, null]]}]', "one.onnx", "sample 1: x[1][1] is not of type float"),
                                  ('{"x": [[1, 2], [3, "four"]]}', "one.onnx", "x[1][1] is not of type float"),
                                  ('{"y": [[1, 2], [3, 4]]}', "one.onnx", "'x'"), ('{"x": [[1, 2, 3], [3, 4, 5]]}', "one.onnx", "shape [2, 3]"),
                                  (json.dumps({n: (a if n != "u" else a + 200).tolist() for n, a in want.items()}), "all.onnx", "is not of type uint8"),
                                  (json.dumps({n: (a if n != "i" else a + 0.5).tolist() for n, a in want.items()}), "all.onnx", "i[0][0] is not of type int32"),
                                  ('{"x": ' + "[" * 60 + "1" + "]" * 60 + "}", "one.onnx", "more dimensions"), ('{"x": {}}', "one.onnx", "in.json"), ("[]", "one.onnx", "nor an object of arrays")):
            code, out, err = run(text, model)
            check(code == 3 and said in err and "in.json" in err or said == "'x'" and code == 3 and said in err or said == "shape [2, 3]" and code == 3 and said in err, f"{text[:70]}", f"{code} {out}{err}")
        os.chdir("/")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
