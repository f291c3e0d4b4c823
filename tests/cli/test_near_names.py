#!/usr/bin/env python3
"""Names that are misspelt get a suggestion, wherever one may be given; so do name maps whose sides are exchanged.

    test_near_names.py ASSAY
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

failures = []
USAGE, INPUT = 2, 3

# A line, its exit code, what stderr says.
LINES = [
    ("chek m.onnx", USAGE, r"unknown verb 'chek'; did you mean 'check'\?"),
    ("trtexe m.onnx", USAGE, r"unknown verb 'trtexe'; did you mean 'trtexec'\?"),
    ("debug precison m.onnx", USAGE, r"unknown verb 'debug precison'; did you mean 'precision'\?"),
    ("edit sanitise m.onnx", USAGE, r"unknown verb 'edit sanitise'; did you mean 'sanitize'\?"),
    ("check m.onnx --presicion fp16", USAGE, r"unknown option '--presicion'; did you mean --precision\?"),
    ("check m.onnx --precison=fp16", USAGE, r"unknown option '--precison=fp16'; did you mean --precision\?"),
    ("check m.onnx --entirely-different", USAGE, r"unknown option '--entirely-different'; see"),
    # arrays
    ("check m.onnx -i imgae.npz", INPUT, r"no array for input 'image' \(.*\), but one that is called 'imgae', as no input is: did you mean 'image'\?"),
    ("run m.onnx -i Image.npz", INPUT, r"one that is called 'Image', as no input is: did you mean 'image'\?"),
    ("run m.onnx -i other.npz", INPUT, r"one that is called 'q', as no input is: did you mean 'image'\?"),
    ("run m.onnx -i two.npz", INPUT, r"there is no array for input 'image' \(float\[1, 4\]\)$"),
    ("run m.onnx -i imgae=x.npz", INPUT, r"'imgae=x\.npz': the model has no such input; did you mean 'image'\?"),
    ("run m.onnx -i image=four.npz", INPUT, r"the file has 2 arrays, and none named 'image'; did you mean 'imgae'\?"),
    ("tune m.onnx -i x.npz -g scoers.npz", INPUT, r"no array with the name of an output \(such as 'scores'\); did you mean 'scores' by 'scoers'\?"),
    ("debug precision m.onnx -i x.npz -g scoers.npz --precision fp16", INPUT, r"did you mean 'scores' by 'scoers'\?"),
    # golden of which one output is misspelt, and the other not
    ("tune m.onnx -i x.npz -g half.npz --no-pareto --runs 1", 0, r"an output has no golden; did you mean 'scores' by 'scoers'\?"),
    ("check m.onnx -i x.npz -g small.npz", INPUT, r"'small\.npz' has no array with the name of an output .*; did you mean 'scores' by 'scoers'\?; --name-map"),
    # name maps
    ("check m.onnx -i x.npz -g theirs.npz --name-map exchanged.json", INPUT,
     r"has 'scores' on the left and 'out_0' on the right, but the file has 'out_0' and the model 'scores': its left and right sides look "
     r"exchanged; write \{\"out_0\": \"scores\"\}"),
    ("check m.onnx -i x.npz --engine-outputs theirs.npz --name-map exchanged.json", INPUT, r"its left and right sides look exchanged"),
    ("check m.onnx -i x.npz -g theirs.npz --name-map misspelt.json", INPUT, r"gives 'scoers' for 'out_0', which the model does not have; did you mean 'scores'\?"),
    ("check m.onnx -i x.npz -g theirs.npz --name-map right.json --no-fix", 0, r"^$"),
    # outputs, nodes, layers, shapes, dimensions, boxes, thresholds, requirements
    ("run m.onnx -i x.npz --output scoers", USAGE, r"no output matches 'scoers'; .*; did you mean 'scores'\?"),
    ("run m.onnx -i x.npz --output score?z", USAGE, r"no output matches 'score\?z'; .*; did you mean 'scores'\?"),
    ("check m.onnx -i x.npz --precision fp16 --layer-precision /haed/*:fp32", USAGE, r"'/haed/\*' matches no node .*; did you mean '/head/MatMul'\?"),
    ("check m.onnx -i x.npz --precision fp16 --layer-precision frist:fp32", USAGE, r"; did you mean 'first'\?"),
    ("debug tactics m.onnx -i x.npz --layer frist", USAGE, r"'frist' matches no layer, node or output; did you mean 'first'\?"),
    ("run m.onnx --shape imgae=1x4", INPUT, r"the model has no input 'imgae'; did you mean 'image'\?"),
    ("run open.onnx --dim bacth=2", INPUT, r"no input has an open dimension 'bacth'; there are 'batch'; did you mean 'batch'\?"),
    ("audit m.onnx --box imgae=0:1", USAGE, r"box 'imgae=0:1': the model has no such input; did you mean 'image'\?"),
    ("certify m.onnx -o c --threshold scoers:0.5", USAGE, r"the model has no such output \(such as 'scores'\); did you mean 'scores'\?"),
    ("check m.onnx -i x.npz --require 'scoers: cosine >= 0.9'", USAGE, r"the model has no output 'scoers'; did you mean 'scores'\?"),
    ("edit extract m.onnx -o e.onnx --to scoers", USAGE, r"no value 'scoers'; did you mean 'scores'\?"),
    ("edit extract m.onnx -o e.onnx --nodes frist", USAGE, r"'frist' matches no node; did you mean 'first'\?"),
    # the other command lines
    ("trtexec --onnx=m.onnx --loadInputs=imgae:x.npz --iterations=1 --duration=0 --warmUp=0", 1, r"the model has no input 'imgae'; did you mean 'image'\?"),
    ("trtexec --onnx=m.onnx --loadInputs=image:four.npz --iterations=1 --duration=0 --warmUp=0", 1, r"has no array 'image'; did you mean 'imgae'\?"),
    ("trtexec --onnx=open.onnx --minShapes=imgae:1x4 --optShapes=imgae:1x4 --maxShapes=imgae:2x4", 1, r"has no input 'imgae'; .*; did you mean 'image'\?"),
    ("trtexec --onnx=m.onnx --skipInference --fp16 --precisionConstraints=prefer --layerPrecisions=frist:fp32", 0,
     r"'frist' is the name of no layer; did you mean 'first'\?"),
    ("polygraphy run m.onnx --onnxrt --load-inputs imgae.npz", 1, r"did you mean 'image'\?"),
]


def write_model(path, rows):
    info = helper.make_tensor_value_info
    rng = np.random.default_rng(1)
    w = [numpy_helper.from_array(rng.standard_normal((4, 4)).astype(np.float32), f"w{i}") for i in range(2)]
    nodes = [helper.make_node("MatMul", ["image", "w0"], ["hidden"], name="first"), helper.make_node("MatMul", ["hidden", "w1"], ["scores"], name="/head/MatMul"),
             helper.make_node("Relu", ["scores"], ["boxes"], name="second")]
    graph = helper.make_graph(nodes, "g", [info("image", T.FLOAT, [rows, 4])], [info("scores", T.FLOAT, [rows, 4]), info("boxes", T.FLOAT, [rows, 4])], w)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return [numpy_helper.to_array(t) for t in w]


def main(program):
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        w0, w1 = write_model("m.onnx", 1)
        write_model("open.onnx", "batch")
        x = np.ones((1, 4), np.float32)
        scores = x @ w0 @ w1
        boxes = np.maximum(scores, 0)
        for name, arrays in (("x", {"image": x}), ("imgae", {"imgae": x}), ("Image", {"Image": x}), ("other", {"q": x}), ("two", {"q": x, "r": x}),
                             ("four", {"imgae": x, "r": x}), ("scoers", {"scoers": scores}), ("half", {"scoers": scores, "boxes": boxes}),
                             ("small", {"scoers": np.zeros((7, 3), np.float32)}), ("theirs", {"out_0": scores, "boxes": boxes})):
            np.savez(f"{name}.npz", **arrays)
        for name, pairs in (("exchanged", {"scores": "out_0"}), ("misspelt", {"out_0": "scoers"}), ("right", {"out_0": "scores"})):
            with open(f"{name}.json", "w") as f:
                json.dump(pairs, f)
        for line, code, said in LINES:
            words = re.findall(r"'[^']*'|\S+", line)
            p = subprocess.run([program, *[w.strip("'") for w in words]], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
            err = p.stderr if not line.startswith("polygraphy") else p.stdout + p.stderr
            if p.returncode != code or not re.search(said, err, re.M):
                failures.append(line)
                print(f"FAILED: {line}: {p.returncode}, not {code} and {said!r}\n{p.stdout[-300:]}{p.stderr}")
        os.chdir("/")
    print(f"{len(LINES)} lines, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
