#!/usr/bin/env python3
"""assay bench A B: the verdict, the figures as JSON, layers side by side.

    test_bench_pair.py ASSAY
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

failures = []


def check(ok, what, shown=""):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}\n{shown}")


def write_model(path, width, names, value="x"):
    """x -> MatMul -> Relu -> MatMul -> y."""
    rng = np.random.default_rng(1)
    w = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for s, n in (((64, width), "w0"), ((width, 8), "w1"))]
    nodes = [helper.make_node("MatMul", [value, "w0"], ["t"], name=names[0]), helper.make_node("Relu", ["t"], ["u"], name=names[1]),
             helper.make_node("MatMul", ["u", "w1"], ["y"], name=names[2])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(value, TensorProto.FLOAT, [64, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 8])], w)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def main(program):
    program = os.path.abspath(program)

    def bench(*args):
        p = subprocess.run([program, "bench", *args], capture_output=True, text=True, timeout=120)
        return p.returncode, p.stdout, p.stderr

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_model("small.onnx", 8, ["in", "act", "out"])
        write_model("large.onnx", 4096, ["in", "act", "out"], "other")
        write_model("unnamed.onnx", 8, ["", "", ""])
        np.savez("x.npz", x=np.zeros((64, 64), np.float32))
        fast = ["--seconds", "0.2", "--warm-up", "0.02"]
        code, out, err = bench("large.onnx", "small.onnx", *fast)
        check(code == 0 and re.match(r"B is [0-9.]+ times as fast as A \(95 %: [0-9.]+ to [0-9.]+\)\n", out), "the small one is faster", out + err)
        code, out, err = bench("small.onnx", "large.onnx", "--layers", *fast)
        check(code == 0 and out.startswith("A is "), "from the other side", out + err)
        check(re.search(r"A ms +B ms +A / B +layer\n", out) and re.search(r"\n +[0-9.]+ +[0-9.]+ +0\.\d\d +\S", out), "layers", out)
        check("only" not in out, "layers of one structure all match", out)
        code, out, err = bench("small.onnx", "large.onnx", "--layers", "--json", "-", *fast)
        j = json.loads(out)
        low, high = j["interval_95"]
        check(code == 0 and j["schema"] == "assay.bench_pair/1" and j["differs"] and low <= j["speed_of_b"] <= high < 1, "JSON", out + err)
        check(len(j["a"]["turns_ms"]) == len(j["b"]["turns_ms"]) == 2 * j["rounds"] >= 16, "turns of both", out)
        check(j["b"]["median_ms"] > j["a"]["median_ms"], "medians", out)
        check(sum(l["a_ms"] for l in j["layers"]) > 0 and all("b_ms" in l for l in j["layers"]), "layers in JSON", out)
        # A fused layer stands beside the layers that it is made of.
        subprocess.run([program, "build", "small.onnx", "--unfused", "-o", "unfused.plan"], check=True, capture_output=True)
        code, out, err = bench("small.onnx", "unfused.plan", "--layers", "--json", "-", *fast)
        layers = json.loads(out)["layers"]
        check(all("a" in l and "b" in l for l in layers) and any("act" in l["b"] and l["a"] != l["b"] for l in layers), "fused beside unfused", out)
        check(" + ".join(l["b"] for l in layers).count("in") == 1, "each layer stands once", out)
        # Made-up labels of nodes without a name say nothing; values do.
        code, out, err = bench("small.onnx", "unnamed.onnx", "--layers", *fast)
        check(code == 0 and "only" not in out, "values match", out + err)
        code, out, err = bench("small.onnx", "small.onnx", "-i", "x.npz", "--json", "both.json", *fast)
        check(code == 0 and re.match(r"(no difference that \d+ rounds can show: B is|A is|B is) [01]\.\d+ times", out), "the same model twice", out + err)
        check(json.load(open("both.json"))["verdict"] == out.split("\n")[0], "the verdict in JSON", out)
        for words, code_wanted, said in ((["small.onnx", "no.onnx"], 3, "no.onnx"), (["small.onnx", "small.onnx", "--latencies"], 2, "--latencies is for one model"),
                                         (["small.onnx", "small.onnx", "--contexts", "2"], 2, "--contexts is for one model"),
                                         (["small.onnx", "large.onnx", "-i", "x.npz"], 3, "large.onnx"),
                                         (["small.onnx", "unfused.plan", "--precision", "bf16"], 2, "'unfused.plan' is a plan")):
            code, out, err = bench(*words, *fast)
            check(code == code_wanted and said in err and err.count("\n") <= 2, f"{words}", f"{code} {out}{err}")
        os.chdir("/")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
