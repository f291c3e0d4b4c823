#!/usr/bin/env python3
"""JSON of bench and inspect plan: nothing else on the standard output, and all that the text has.

    test_json.py ASSAY MODELS

MODELS is tests/models/small.
"""
import json
import os
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto, helper


def assay(program, *arguments):
    run = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert run.returncode == 0, (arguments, run.returncode, run.stderr)
    return run.stdout


def test_bench(program, models):
    told = json.loads(assay(program, "bench", f"{models}/cnn.onnx", "--seconds", "0.01", "--layers", "--json", "-"))
    assert told["runs"] >= 3 and told["layers"]
    assert all(l["layer"] and l["operator"] and l["tactic"] and l["ms"] >= 0 for l in told["layers"]), told["layers"]
    assert "Conv" in {l["operator"] for l in told["layers"]}
    assert told["layers"] == sorted(told["layers"], key=lambda l: -l["ms"])
    assert "layers" not in json.loads(assay(program, "bench", f"{models}/cnn.onnx", "--seconds", "0.01", "--json", "-"))
    text = assay(program, "bench", f"{models}/cnn.onnx", "--seconds", "0.01", "--layers", "--json", "bench.json")
    assert text.startswith("latency") and json.load(open("bench.json"))["layers"]


def test_plan(program, models):
    assay(program, "build", f"{models}/cnn.onnx", "-o", "cnn.plan", "--precision", "bf16")
    told = json.loads(assay(program, "inspect", "plan", "cnn.plan", "--json", "-"))
    assert told["target"] == "cpu" and told["missing_weights"] == 0 and told["run_bytes"] > 0
    shapes = {v["name"]: v["shape"] for v in told["inputs"] + told["outputs"]}
    text = assay(program, "inspect", "plan", "cnn.plan")
    for name, shape in shapes.items():
        assert f"'{name}' float[{', '.join(map(str, shape))}]" in text, (name, shape, text)
    assert {l["format"] for l in told["layers"]} >= {"bf16"} and all(l["tactic"] for l in told["layers"])
    assert "Conv" in {n["op"] for l in told["layers"] for n in l["nodes"]}
    layer = told["layers"][0]["name"]
    one = json.loads(assay(program, "inspect", "plan", "cnn.plan", "--explain", layer.split(" .. ")[0], "--json", "-"))
    assert one["layers"] and one["layers"][0]["choice"], one
    assert len(one["layers"]) < len(told["layers"])


def test_profiles(program, models):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "open.onnx")
    assay(program, "trtexec", "--onnx=open.onnx", "--minShapes=x:1x4", "--optShapes=x:2x4", "--maxShapes=x:8x4", "--saveEngine=p.plan",
          "--skipInference")
    told = json.loads(assay(program, "inspect", "plan", "p.plan", "--json", "-"))
    assert told["profiles"] == [{"input": "x", "profile": 0, "values": False, "min": [1, 4], "opt": [2, 4], "max": [8, 4]}], told["profiles"]
    assert told["inputs"][0]["shape"] == ["N", 4]
    assert "profile 0  'x' [1, 4] to [8, 4]" in assay(program, "inspect", "plan", "p.plan")


def test_stripped(program, models):
    assay(program, "build", f"{models}/cnn.onnx", "-o", "bare.plan", "--strip-weights")
    told = json.loads(assay(program, "inspect", "plan", "bare.plan", "--json", "-"))
    assert told["missing_weights"] > 0 and told["layers"] and told["layers"][0]["tactic"] is None


def main(program, models):
    program, models = os.path.abspath(program), os.path.abspath(models)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (test_bench, test_plan, test_profiles, test_stripped):
            test(program, models)
        os.chdir("/")
    print("4 tests passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
