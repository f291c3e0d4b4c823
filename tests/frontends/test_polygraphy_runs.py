#!/usr/bin/env python3
"""assay polygraphy run and convert: what they print, write and make of their inputs.

    test_polygraphy_runs.py ASSAY MODELS FLAGS

MODELS is tests/models/small, FLAGS the table of flags. Inputs and files are compared with the tool's own, where it is installed.
"""
import base64
import fcntl
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

POLYGRAPHY = os.path.join(os.path.dirname(sys.executable), "polygraphy")
failures = []


def expect(ok, what):
    if not ok:
        failures.append(what)
        print("FAILED:", what)


def call(program, line, env=None, as_link=False):
    words = line.split() if isinstance(line, str) else line
    command = [os.path.abspath("polygraphy")] if as_link else [program, "polygraphy"]
    p = subprocess.run(command + words, capture_output=True, text=True, errors="surrogateescape", timeout=300, env={**os.environ, **(env or {})})
    return p.returncode, p.stdout, p.stderr


# ---- models ---------------------------------------------------------------------------------------------------------


def save(name, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), name + ".onnx")


def write_models():
    r = np.random.default_rng(5)
    value = helper.make_tensor_value_info
    w = numpy_helper.from_array(r.standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    fc = numpy_helper.from_array(r.standard_normal((4, 5)).astype(np.float32), "fc")
    axes = numpy_helper.from_array(np.array([2, 3]), "axes")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv0", pads=[1, 1, 1, 1]), helper.make_node("Elu", ["c"], ["e"], "elu0"),
             helper.make_node("ReduceMean", ["e", "axes"], ["m"], "mean0", keepdims=0), helper.make_node("MatMul", ["m", "fc"], ["l"], "fc0"),
             helper.make_node("Softmax", ["l"], ["prob"], "softmax0")]
    save("tiny", nodes, [value("x", TensorProto.FLOAT, ["N", 3, 4, 4])], [value("prob", TensorProto.FLOAT, ["N", 5])], [w, fc, axes])
    # Values that fp16 cannot hold, in the middle.
    sizes = [numpy_helper.from_array(np.full((4, 4), x, np.float32), f"w{k}") for k, x in enumerate((300, 300, 1e-3))]
    nodes = [helper.make_node("MatMul", [a, f"w{k}"], [b], f"fc{k}") for k, (a, b) in enumerate((("x", "a"), ("a", "b"), ("b", "y")))]
    save("overflow", nodes, [value("x", TensorProto.FLOAT, [1, 4])], [value("y", TensorProto.FLOAT, [1, 4])], sizes)
    nodes = [helper.make_node("Neg", ["x"], ["n"], "neg0"), helper.make_node("Log", ["n"], ["y"], "log0")]
    save("nan", nodes, [value("x", TensorProto.FLOAT, [1, 4])], [value("y", TensorProto.FLOAT, [1, 4])])
    kinds = {"f": TensorProto.FLOAT, "h": TensorProto.FLOAT16, "d": TensorProto.DOUBLE, "i": TensorProto.INT64, "j": TensorProto.INT32,
             "u": TensorProto.UINT8, "b": TensorProto.BOOL}
    save("types", [helper.make_node("Identity", [k], [k + "_out"]) for k in kinds], [value(k, t, [2, 3]) for k, t in kinds.items()],
         [value(k + "_out", t, [2, 3]) for k, t in kinds.items()])
    reshape = [helper.make_node("Reshape", ["x", "shape"], ["y"], "reshape0")]
    save("reshape", reshape, [value("x", TensorProto.FLOAT, [2, 6]), value("shape", TensorProto.INT64, [2])], [value("y", TensorProto.FLOAT, None)])


# ---- files of Polygraphy --------------------------------------------------------------------------------------------


def array(j):
    return np.load(io.BytesIO(base64.b64decode(j["array"])))


def inputs_of(path):
    return [{k: array(v) for k, v in feed.items()} for feed in json.load(open(path))]


def outputs_of(path):
    """Of each runner its iterations."""
    return [(name, [{k: array(v["values"]) for k, v in i["outputs"].items()} for i in iterations]) for name, iterations in
            json.load(open(path))["lst"]]


def same(a, b):
    return len(a) == len(b) and all(x.keys() == y.keys() and all(x[k].dtype == y[k].dtype and x[k].tobytes() == y[k].tobytes() and
                                                                  x[k].shape == y[k].shape for k in x) for x, y in zip(a, b))


# ---- what is printed ------------------------------------------------------------------------------------------------

# Line, exit code, patterns of the output, of the error; a pattern that begins with '!' must not be there.
ROWS = [
    ("run tiny.onnx", 0, [r"\[W\] No runners have been selected\. Inference will not be run!", r"\[I\] PASSED \| Runtime: "], ""),
    ("run --onnxrt", 1, [r"\[!\] The runners need a model"], ""),
    ("run nothing.onnx --onnxrt", 1, [r"\[W\] Model path does not exist: nothing\.onnx", r"\[E\] FAILED \| Runtime: "], ""),
    ("run tiny.onnx --onnxrt --onnxrt", 0,
     [r"^\[I\] RUNNING \| Command: polygraphy run tiny\.onnx --onnxrt --onnxrt\n", r"\[I\] onnxrt-runner-N0-\S+  \| Activating and starting inference",
      r"Assay reference evaluator", r"onnxrt-runner-N1-", r"Will generate data of shape: \[1, 3, 4, 4\]",
      r"\[I\] Streaming iteration 0\n    ---- Inference Input\(s\) ----\n    \{x \[dtype=float32, shape=\(1, 3, 4, 4\)\]\}\n",
      r"---- Inference Output\(s\) ----\n    \{prob \[dtype=float32, shape=\(1, 5\)\]\}\n", r"\[I\] Accuracy Comparison \| onnxrt-runner-N0",
      r"\[I\] Accuracy Summary \| .* \| Passed: 1/1 iterations \| Pass Rate: 100\.00%", r"\[I\] PASSED \| Runtime: [\d.]+s \| Command: "], ""),
    ("run tiny.onnx --trt --onnxrt --truth --iterations 2 --input-shapes x:[2,3,4,4]", 0,
     [r"trt-runner-N0", r"truth-runner-N0", r"Passed: 2/2 iterations", r"!Will generate data of shape"], ""),
    ("run tiny.onnx --trt --onnxrt --sequential-runners --warm-up 2", 0, [r"Running 2 warm-up run\(s\)", "Passed: 1/1"], ""),
    ("run tiny.onnx --onnxrt --input-shapes x:[1,4,4,4]", 0, [r"does not allow the shape \[1,4,4,4\]", r"shape=\(1, 3, 4, 4\)"], ""),
    ("run tiny.onnx --onnxrt --input-shapes y:[1,4,4,4]", 0, [r"--input-shapes: 'y' is not an input"], ""),
    ("run reshape.onnx --onnxrt --input-shapes x:[2,6] shape:[3,4]", 0, [r"\{y \[dtype=float32, shape=\(3, 4\)\]\}"], ""),
    ("run tiny.onnx --onnxrt --val-range x:0", 1, [r"\[!\] --val-range: '0' is no \[min,max\]"], ""),
    ("run tiny.onnx --onnxrt --onnx-outputs c nope", 1, [r"\[!\] The following outputs were not found in the model: \{'nope'\}"], ""),
    ("run tiny.onnx --onnxrt --onnx-outputs mark all", 0, [r"\{c \[.*\],\n     e \[.*\],\n     m \[.*\],\n     l \[.*\],\n     prob \["], ""),
    ("run tiny.onnx --onnxrt --onnx-outputs e c", 0, [r"\{e \[.*\],\n     c \[.*\]\}"], ""),
    ("run tiny.onnx --onnxrt --onnx-exclude-outputs prob --onnx-outputs *", 0, [r"l \[[^\n]*\]\}\n"], ""),
    ("run tiny.onnx --onnxrt --onnx-outputs-by-type Elu", 0, [r"\{e \[[^\n]*\]\}\n"], ""),
    ("run tiny.onnx --onnxrt --onnx-outputs-by-type Nothing", 0, [r"\[W\] --onnx-outputs-by-type: no node", r"\{prob \["], ""),
    ("run tiny.onnx --onnxrt --onnx-exclude-outputs nope", 1, [r"not found in the model: \{'nope'\}"], ""),
    ("run tiny.onnx --onnxrt --onnx-outputs fc", 1, [r"not found in the model: \{'fc'\}"], ""),
    ("run tiny.onnx --trt --trt-outputs-by-type CONVOLUTION", 0, [r"\{c \["], ""),
    ("run tiny.onnx --onnxrt --trt --fp16 --atol 1e-9 --rtol 1e-9", 1,
     [r"FAILED \| Output: 'prob'", r"\[I\] Cause: the engine's error grows most after layer ", r"Next: assay check tiny\.onnx --precision fp16"], ""),
    ("run overflow.onnx --trt --fp16 --onnxrt --val-range [1,2]", 1,
     [r"Cause: layer 'fc1' \(MatMul, fp16\) is the first to give what is not finite", r"fp16 ends at 65504"], ""),
    ("run nan.onnx --onnxrt --validate", 1,
     [r"Validating output: y \(check_inf=True, check_nan=True\)", r"NaN Detected", r"Inf Detected", r"Cause: node 'log0' \(Log\)",
      r"\[!\] Output validation failed: iteration 0"], ""),
    ("run nan.onnx --onnxrt --trt --fail-fast", 1, [r"FAILED \| Output: 'y'", r"!Accuracy Summary"], ""),
    ("run tiny.onnx --trt --layer-precisions fc0:float32 --fp16", 0, [r"no effect without --precision-constraints prefer or obey"], ""),
    ("run tiny.onnx --trt --layer-precisions *c*:float16 --precision-constraints obey", 1, [r"cannot be in fp16: --fp16 is not given"], ""),
    ("run tiny.onnx --trt --layer-precisions fc0:float12 --precision-constraints obey", 1, [r"\[!\] --layer-precisions: 'float12' of 'fc0' is not a type"], ""),
    ("run tiny.onnx --trt --fp16 --tactic-sources cublas", 0, [r"\[W\] --tactic-sources \+cublas has no effect"], ""),
    ("run tiny.onnx --trt --tactic-sources frob", 1, [r"--tactic-sources: 'frob' is not a source"], ""),
    ("run tiny.onnx --trt --int8", 0, [r"Calibrating int8 with 1 inputs"], ""),
    ("run tiny.onnx --trt --tf32 --strongly-typed", 0, [r"PASSED"], ""),
    ("run tiny.onnx --trt --stronglyTyped", 0, [r"\[W\] --stronglyTyped is spelled --strongly-typed"], ""),
    ("run tiny.onnx --trt --pool-limit attic:5", 1, [r"--pool-limit: 'attic:5' is not POOL:SIZE"], ""),
    # types and layouts of inputs and outputs
    ("run tiny.onnx --trt --tensor-formats x:[chw4,linear] --save-engine chw4.plan -vv", 0, ["Input x is handed over in layout chw4"], ""),
    ("inspect model chw4.plan --show layers", 0, [r"(?s)Input\(s\) ----\n    \{x \[dtype=float32, shape=\(1, 3, 4, 4\), format=chw4\]\}.*Layer 0 .*\{x \[.*, format=chw4\]\}",
                                                 r"\{prob \[dtype=float32, shape=\(1, 5\)\]\}"], ""),
    ("run chw4.plan --trt --tensor-formats x:[hwc]", 0, ["--tensor-formats has no effect on a plan"], ""),
    ("inspect model tiny.onnx --convert-to trt --all-tensor-formats HWC8, LINEAR --tensor-formats prob:linear", 0, [r"\{x \[.*, format=hwc8\]\}", r"!prob \[.*format"], ""),
    ("inspect model tiny.onnx --convert-to trt --tensor-formats *:[chw32,linear] --tensor-dtypes x:float16", 0, [r"\{x \[dtype=float16, .*, format=chw32\]\}", "!prob .*format"], ""),
    ("convert tiny.onnx --convert-to trt --tensor-formats x:[dhwc] -o dhwc.plan", 0, [], ""),
    ("inspect model dhwc.plan", 0, [r"\{x \[.*, format=dhwc\]\}"], ""),
    ("run tiny.onnx --trt --all-tensor-formats chw4", 1, [r"--all-tensor-formats: 'prob' cannot be in layout chw4: it has fewer than 3 dimensions"], ""),
    ("run tiny.onnx --trt --all-tensor-formats chw4,", 1, [r"--all-tensor-formats: 'prob' cannot be in layout chw4: "], ""),
    ("run tiny.onnx --trt --tensor-formats x:[nhwc]", 1, [r"--tensor-formats: 'nhwc' is not a layout: linear, chw2, chw4, .*cdhw32\n"], ""),
    ("run tiny.onnx --trt --tensor-formats x:chw", 1, [r"--tensor-formats: 'chw' is not a layout"], ""),
    ("run tiny.onnx --trt --tensor-formats x:[linear,DLA_HWC4]", 1, [r"--tensor-formats: 'dla_hwc4': there is no DLA; use linear"], ""),
    ("run tiny.onnx --trt --tensor-formats x:[]", 1, [r"--tensor-formats: '\[\]' names no layout"], ""),
    ("run tiny.onnx --trt --tensor-formats x:[chw4", 1, [r"--tensor-formats: '\[chw4' is a list of which the brackets do not match"], ""),
    ("run tiny.onnx --trt --tensor-formats q:[hwc] --tensor-dtypes r:float16", 0,
     [r"\[W\] --tensor-formats: 'q' is neither an input nor an output", r"\[W\] --tensor-dtypes: 'r' is neither an input nor an output"], ""),
    ("run tiny.onnx --trt --tensor-dtypes x:uint8", 1, [r"--tensor-dtypes: 'x' is fp32 in the model, and cannot be handed over as uint8"], ""),
    ("run tiny.onnx --trt --tensor-dtypes x:frob", 1, [r"--tensor-dtypes: 'frob' is not a type"], ""),
    ("run tiny.onnx --trt --all-tensor-dtypes frob", 1, [r"--all-tensor-dtypes: 'frob' is not a type"], ""),
    ("run tiny.onnx --trt --direct-io", 0, [r"PASSED", "!has no effect"], ""),
    ("run tiny.onnx --trt --direct-io --fp16", 1, [r"--direct-io: input 'x' is fp32, and layer '[^']+' has it in fp16: it would be converted; build a model of that type"], ""),
    ("run tiny.onnx --trt --direct-io --tensor-dtypes x:float16", 1, [r"--direct-io: 'x=float16' would be converted"], ""),
    ("run tiny.onnx --trt --direct-io --tensor-formats x:[hwc8]", 1, [r"--direct-io: 'x' in layout hwc8 would be rearranged"], ""),
    ("run tiny.onnx --trt --direct-io --tensor-formats x:[hwc8,linear]", 0, ["PASSED"], ""),
    ("run tiny.onnx --trt --tensor-dtypes x:float16", 0, [r"PASSED"], ""),
    ("run tiny.onnx --trt --trt-min-shapes x:[1,3,4,4] --trt-max-shapes x:[2,3,4,4] --input-shapes x:[3,3,4,4]", 1, [r"was built for"], ""),
    ("run tiny.onnx --onnxrt --use-dla", 1, [r"\[!\] --use-dla is not supported: "], ""),
    ("run tiny.onnx --onnxrt --use-subprocess", 0, [r"\[W\] --use-subprocess has no effect in Assay: "], ""),
    ("run tiny.onnx --onnxrt --frob", 1, [r"\[E\] Unrecognized Options: \['--frob'\]", r"!RUNNING"], ""),
    ("run tiny.onnx --onxrt", 1, [r"did you mean --onnxrt\?"], ""),
    ("run tiny.onnx --onnxrt --onnx-out c", 2, [], r"ambiguous option: --onnx-out could match --onnx-outputs, --onnx-outputs-by-type"),
    ("run tiny.onnx --onnxrt --seed x", 2, [], r"argument --seed: invalid int value: 'x'"),
    ("frob", 2, [], r"invalid choice: 'frob'"),
    ("template trt-network", 2, [], r"'template' is not supported"),
    ("-h", 0, [r"surgeon weight-strip"], ""),
    ("-v", 0, [r"^Polygraphy \| Version: "], ""),
    ("run -h", 0, [r"--load-inputs, --load-input-data TEXT \.\.\.", r"Example:\n  assay polygraphy run "], ""),
    ("run tiny.onnx --onnxrt --silent", 0, [r"^$"], ""),
    ("run tiny.onnx --onnxrt -q", 0, [r"!Streaming", r"PASSED"], ""),
    ("run tiny.onnx --onnxrt -qqqq", 0, [r"^$"], ""),
    ("run tiny.onnx --onnxrt -v", 0, [r"\[V\] Generating data using numpy seed: 1"], ""),
    ("run tiny.onnx --onnxrt --verbosity VERBOSE frontends/polygraphy/data/feed.c:WARNING", 0, [r"\[V\]", r"!numpy seed"], ""),
    ("run tiny.onnx --onnxrt --verbosity LOUD", 1, [r"'LOUD' is not a level"], ""),
    ("run tiny.onnx --onnxrt --log-format timestamp line-info", 0, [r"\[I\] \(\d\d:\d\d:\d\d\) \[frontends/polygraphy/[\w/]+\.c:\d+\] "], ""),
    ("run tiny.onnx --onnxrt --gen script.py", 0, [r"Writing a script to script\.py", r"!RUNNING", r"!Streaming"], ""),
    ("run tiny.onnx --onnxrt --use-subprocess --gen -", 0, [r"^#!/usr/bin/env python3\n", r"!\[[IW]\]"], ""),
    ("run tiny.onnx --onnxrt --use-dla --gen -", 1, [r"--use-dla is not supported"], ""),
    ("run tiny.onnx --onnxrt --gen none/script.py", 1, [r"--gen-script: cannot write 'none/script\.py'"], ""),
    ("convert tiny.onnx -o t.frob", 1, [r"say --convert-to onnx or trt"], ""),
    ("convert tiny.onnx --fp16 -o t.engine", 0, [r"Saving engine to t\.engine", "PASSED"], ""),
    ("run t.engine --trt --fp16", 0, [r"\[W\] --fp16 has no effect on a plan", r"(?s)\A(?!.*no effect on a plan.*no effect on a plan)"], ""),
    ("run t.engine --trt --allocation-strategy static", 0, [r"bytes are taken for values and scratch", r"(?s)\A(?!.*no effect on a plan)"], ""),
    ("run t.engine --onnxrt", 1, [r"'t\.engine' is a plan: --onnxrt needs the ONNX model"], ""),
    ("convert t.engine -o u.onnx", 1, [r"is a plan already"], ""),
    ("convert tiny.onnx --onnx-outputs e -o t.onnx", 0, [r"Saving ONNX model to: t\.onnx"], ""),
    ("convert tiny.onnx --show-native --fp16 -o t.plan", 0, [r"assay build tiny\.onnx --output t\.plan --precision fp16\n"], ""),
    ("run moved.onnx --onnxrt", 1, [r"moved\.onnx.*external\.onnx\.data"], ""),
    ("run moved.onnx --onnxrt --external-data-dir {m}", 0, ["PASSED"], ""),
    ("convert moved.onnx --ignore-external-data -o hollow.onnx", 0, ["PASSED"], ""),
    ("convert {m}/cnn.onnx --save-external-data --external-data-size-threshold 16 -o apart.onnx", 0, ["PASSED"], ""),
    ("run apart.onnx --onnxrt --trt --atol 1e-4", 0, ["Passed: 1/1"], ""),
    ("convert tiny.onnx --save-external-data --external-data-size-threshold x -o apart.onnx", 1, ["'x' is not a size"], ""),
    ("convert tiny.onnx --fp-to-fp16 --shape-inference -o half.onnx", 0, ["PASSED"], ""),
    ("run tiny.onnx --trt --trt-outputs nope", 1, [r"not found in the model: \{'nope'\}", r"!Finished engine building"], ""),
    ("run tiny.onnx --trt --optimization-profile 1", 1, ["--optimization-profile 1: the highest profile is number 0"], ""),
    ("convert tiny.onnx {two} -o two.plan", 0, [r"!\[W\]", "PASSED"], ""),
    ("inspect model two.plan", 0, [r"---- 2 Profile\(s\) \(2 Tensor\(s\) Each\)", r"- Profile: 0\n.*min=\(1, 3, 4, 4\), opt=\(2, 3, 4, 4\), max=\(4, 3, 4, 4\)",
                                 r"- Profile: 1\n.*min=\(3, 3, 4, 4\), opt=\(8, 3, 4, 4\), max=\(16, 3, 4, 4\)"], ""),
    ("run two.plan --trt --input-shapes x:[9,3,4,4]", 0, [r"!\[W\]", r"shape=\(9, 5\)"], ""),
    ("run two.plan --trt --input-shapes x:[9,3,4,4] --optimization-profile 1", 0, [r"!\[W\]", r"shape=\(9, 5\)"], ""),
    ("run two.plan --trt --input-shapes x:[3,3,4,4] --optimization-profile 0", 0, [r"shape=\(3, 5\)"], ""),
    ("run two.plan --trt --input-shapes x:[9,3,4,4] --optimization-profile 0", 1,
     [r"input 'x' is \[9, 3, 4, 4\]; profile 0 was built for \[1, 3, 4, 4\] to \[4, 3, 4, 4\]"], ""),
    ("run two.plan --trt --optimization-profile 2", 1, ["--optimization-profile 2: the highest profile is number 1"], ""),
    ("run two.plan --trt --optimization-profile -1", 1, ["--optimization-profile -1: "], ""),
    ("run tiny.onnx --trt {two} --input-shapes x:[2,3,4,4] --optimization-profile 1", 1, [r"profile 1 was built for \[3, 3, 4, 4\] to \[16, 3, 4, 4\]"], ""),
    ("run tiny.onnx --trt {two} --input-shapes x:[8,3,4,4] --optimization-profile 1", 0, [r"shape=\(8, 5\)"], ""),
    # an input that holds a shape: its values have a profile
    ("run reshape.onnx --trt --onnxrt --input-shapes x:[2,6] shape:[3,4]", 0, [r"!\[W\]", "Passed: 1/1"], ""),
    ("run reshape.onnx --trt --input-shapes x:[2,6] shape:[3,4] --trt-min-shapes shape:[4,3] --trt-max-shapes shape:[4,3]", 1, [r"built for values \[4, 3\]"], ""),
    # caches of calibration
    ("run tiny.onnx --trt --calibration-cache no.cache", 0, [r"\[W\] --calibration-cache is neither read nor written: --int8 is not given"], ""),
    ("run {m}/quantized.onnx --trt --int8 --calibration-cache no.cache", 0, [r"\[W\] --calibration-cache is neither .* has Q/DQ"], ""),
    ("run types.onnx --trt --int8 --calibration-cache no.cache", 0, [r"there are no ranges: 'no\.cache' is not written"], ""),
    ("run tiny.onnx --trt --int8 --calibration-cache no.cache --show-native", 0, ["assay edit quantize"], ""),
    ("run tiny.onnx --trt --int8 --calibration-cache no/such.cache", 1, [r"--calibration-cache: cannot write 'no/such\.cache'"], ""),
    ("run tiny.onnx --trt --int8 --calibration-cache cut.json", 1, [r"--calibration-cache: 'cut\.json': line 1 of the calibration cache"], ""),
    ("run tiny.onnx --trt --int8 --calib-base-cls IInt8LegacyCalibrator", 0, [r"\[W\] IInt8LegacyCalibrator without --quantile takes all magnitudes"], ""),
    ("run tiny.onnx --trt --int8 --calib-base-cls IInt8LegacyCalibrator --quantile 0.9", 0, [r"Calibrating int8", r"!\[W\].*quantile"], ""),
    ("run tiny.onnx --trt --int8 --calib-base-cls IInt8LegacyCalibrator --quantile 0", 1, [r"\[!\] --quantile 0 leaves nothing in range"], ""),
    ("run tiny.onnx --trt --int8 --quantile 0.9", 0, [r"\[W\] --quantile has no effect: it is of IInt8LegacyCalibrator, not of IInt8EntropyCalibrator2"], ""),
    ("run tiny.onnx --trt --int8 --quantile 1.5", 1, [r"\[!\] --quantile 1\.5: it is 0 to 1"], ""),
    ("run tiny.onnx --trt --int8 --regression-cutoff -1", 1, [r"\[!\] --regression-cutoff -1: it is 0 to 1"], ""),
    ("run nan.onnx --trt --int8", 0, [r"there are no ranges|nothing that can be quantized"], ""),
    ("run tiny.onnx --trt --int8 --calib-base-cls IInt8LegacyCalibrator --quantile 0.999 --show-native", 0,
     [r"assay edit quantize tiny\.onnx --output model\.int8\.onnx --inputs inputs\.json --calibrator percentile --percentile 99\.9\n"], ""),
    ("run tiny.onnx --trt --fp8", 0, [r"\[W\] --fp8 has no effect in Assay: (?s:.*)\[W\] --fp8: the model has no Q/DQ nodes of fp8 .*'assay edit quantize MODEL --format fp8", "PASSED"], ""),
    ("run tiny.onnx --trt --fp8 --int8", 1, [r"\[!\] --fp8 and --int8 do not go together"], ""),
    ("run tiny.onnx --trt --sparse-weights", 0, [r"\[W\] --sparse-weights has no effect in Assay: no kernel uses 2:4 sparse weights"], ""),
    ("run tiny.onnx --trt --int8 --calib-base-cls Frob", 1, ["--calib-base-cls: 'Frob' is none of IInt8EntropyCalibrator2"], ""),
    ("run tiny.onnx --onnxrt --load-inputs empty.json", 1, [r"'empty\.json' is empty"], ""),
    ("run tiny.onnx --onnxrt --load-inputs cut.json", 1, [r"\[!\] --load-inputs: 'cut\.json': JSON"], ""),
    ("run tiny.onnx --onnxrt --load-inputs none.json", 1, [r"none\.json"], ""),
    ("run tiny.onnx --onnxrt --input-shapes x:[1,3,4", 1, [r"'\[1,3,4' is a list of which the brackets do not match"], ""),
    ("run tiny.onnx --onnxrt --atol x", 1, [r"--atol: 'x' is not a number"], ""),
    ("run tiny.onnx --onnxrt --iterations 0", 1, ["--iterations is 1 or more"], ""),
    ("run tiny.onnx --onnxrt --postprocess best-5", 0, ["PASSED"], ""),
    ("run tiny.onnx --onnxrt --onnxrt --postprocess best-5", 1, ["'best-5' is neither top-K"], ""),
    ("run tiny.onnx --onnxrt --onnxrt --postprocess top-2,axis=2", 1, ["has no axis 2"], ""),
    ("run tiny.onnx --trt --onnxrt --allocation-strategy static {two}", 0, [r"--allocation-strategy static: [1-9]\d+ bytes are taken", "Passed: 1/1"], ""),
    ("run tiny.onnx --trt --onnxrt --allocation-strategy profile --trt-outputs mark all {two}", 0, ["--allocation-strategy profile: [1-9]", "Passed: 1/1"], ""),
    ("run tiny.onnx --trt --allocation-strategy runtime {two}", 0, ["--allocation-strategy runtime: 0 bytes are taken"], ""),
    ("run tiny.onnx --trt --allocation-strategy often", 2, [], "invalid choice: 'often'"),
    ("convert tiny.onnx --strip-plan -o stripped.engine", 0, ["PASSED"], ""),
    ("run stripped.engine --trt", 1, [r"\[!\] the plan is stripped: its \d+ weights .* put them in with 'assay refit PLAN --weights MODEL\.onnx'"], ""),
    ("inspect model stripped.engine --show layers", 0, [r"Stripped: 2 weights \(512 bytes\) are missing", r"Layer 0 .*conv0"], ""),
    ("run tiny.onnx --trt --onnxrt --strip-plan --refittable --save-engine bare.engine", 0, ["Passed: 1/1"], ""),
    ("run bare.engine --trt", 1, ["the plan is stripped"], ""),
    ("run tiny.onnx --trt --strip-plan --refittable --save-engine bare.engine --show-native", 0, ["assay build .* --strip-weights --refittable"], ""),
    ("run rt.engine --trt", 1, [r"'rt\.engine' is a plan of TensorRT"], ""),
]


TWO = " ".join(f"--trt-{end}-shapes x:[{n},3,4,4]" for n, end in ((1, "min"), (2, "opt"), (4, "max"), (3, "min"), (8, "opt"), (16, "max")))


def test_rows(program, models):
    open("rt.engine", "wb").write(b"ftrt" + bytes(60))
    open("empty.json", "w").close()
    open("cut.json", "w").write('[{"x": {"array": "k05VTVBZ')
    shutil.copyfile(f"{models}/external.onnx", "moved.onnx")
    for line, code, patterns, error in ROWS:
        got, out, err = call(program, line.replace("{m}", models).replace("{two}", TWO))
        expect(got == code, f"{line}: exit {got}, not {code}\n{out[-600:]}{err[-300:]}")
        for p in patterns:
            found = re.search(p.lstrip("!"), out)
            expect(bool(found) != p.startswith("!"), f"{line}: {p!r}\n{out[-900:]}")
        expect(re.search(error, err), f"{line}: {error!r} in {err[-300:]!r}")


# ---- inputs ---------------------------------------------------------------------------------------------------------

FEEDS = ["tiny.onnx --input-shapes x:[2,3,4,4] --seed 7 --iterations 2", "types.onnx", "types.onnx --val-range [-5,100] i:[-1000000,1000000000] b:[0,1] u:[3,9]",
         "tiny.onnx --seed 3 --val-range x:[-1,1]"]


def test_inputs(program):
    """The same bytes as Polygraphy makes of a seed, where it is installed; else those of NumPy."""
    for i, line in enumerate(FEEDS):
        code, out, _ = call(program, f"run {line} --onnxrt --save-inputs a{i}.json --save-outputs o{i}.json")
        expect(code == 0, f"{line}: {out[-300:]}")
        if not os.path.exists(POLYGRAPHY):
            continue
        p = subprocess.run([POLYGRAPHY, "run", *line.split(), "--onnxrt", "--save-inputs", f"b{i}.json"], capture_output=True, text=True)
        expect(p.returncode == 0 and same(inputs_of(f"a{i}.json"), inputs_of(f"b{i}.json")), f"{line}: other inputs than Polygraphy's\n{p.stdout[-500:]}")
    feeds = inputs_of("a0.json")
    r = np.random.RandomState(8)
    expect(feeds[1]["x"].tobytes() == r.random_sample((2, 3, 4, 4)).astype(np.float32).tobytes(), "inputs are not NumPy's")


def test_their_files(program):
    """What is written here is read there, and the other way."""
    if not os.path.exists(POLYGRAPHY):
        print("no polygraphy here: files are not compared with it")
        return
    line = ["run", "tiny.onnx", "--onnxrt", "--load-inputs", "a0.json", "--load-outputs", "o0.json"]
    p = subprocess.run([POLYGRAPHY, *line], capture_output=True, text=True)
    expect(p.returncode == 0 and "Passed: 2/2 iterations" in p.stdout, f"Polygraphy does not take our files: {p.stdout[-600:]}")
    p = subprocess.run([POLYGRAPHY, "run", "tiny.onnx", "--onnxrt", "--load-inputs", "a0.json", "--save-inputs", "theirs", "--save-outputs", "theirs.json"],
                       capture_output=True, text=True)
    code, out, _ = call(program, "run tiny.onnx --trt --load-inputs theirs --load-outputs theirs.json")
    expect(p.returncode == 0 and code == 0 and "Passed: 2/2 iterations" in out, f"their files: {out[-600:]}")
    for k, axis in (("top-2", ""), ("prob:top-3,axis=0", "")):
        code, out, _ = call(program, f"run tiny.onnx --onnxrt --load-inputs a0.json --load-outputs theirs.json --postprocess {k} --compare indices")
        expect(code == 0 and "Passed: 2/2" in out, f"--postprocess {k}: {out[-400:]}")


def test_files(program):
    feeds = inputs_of("a0.json")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --load-inputs a0.json --save-inputs folder --save-input-blob blobs --save-outputs o.npz")
    expect(code == 0 and sorted(os.listdir("folder")) == ["0000000000.json", "0000000001.json"], f"a folder of inputs: {out[-300:]}")
    expect(open("blobs/0000000001/x.bin", "rb").read() == feeds[1]["x"].tobytes(), "--save-input-blob")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --load-inputs folder --save-inputs folder")
    expect(code == 1 and "is not empty" in out, "a folder that is not empty")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --load-inputs folder a0.json --save-outputs chained.json")
    expect(code == 0 and len(outputs_of("chained.json")[0][1]) == 4, f"files one after the other: {out[-300:]}")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --load-inputs chained.json")
    expect(code == 1 and "polygraphy data merge" in out, f"results as inputs: {out[-300:]}")
    np.savez("x.npz", x=feeds[0]["x"])
    np.save("x.npy", feeds[0]["x"])
    for name in ("x.npz", "x.npy"):
        code, out, _ = call(program, f"run tiny.onnx --onnxrt --load-inputs {name} --save-inputs read.json")
        expect(code == 0 and same(inputs_of("read.json"), feeds[:1]), f"{name}: {out[-300:]}")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --trt --load-inputs a0.json --save-outputs two.json --log-file log.txt")
    runners = outputs_of("two.json")
    expect([len(r) for _, r in runners] == [2, 2] and runners[1][0].startswith("trt-runner-N0-"), "results of two runners")
    expect(open("log.txt").read() == out, "--log-file is not a copy of the log")
    seconds = json.load(open("two.json"))["lst"][0][1][0]["runtime"]
    expect(isinstance(seconds, float) and 0 < seconds < 60, f"runtime: {seconds}")
    # Several files of results are a runner each; without a runner of ours they are compared.
    code, out, _ = call(program, "run tiny.onnx --onnxrt --load-inputs a0.json --load-outputs two.json o0.json")
    expect(code == 0 and out.count("Accuracy Summary") == 3, f"--load-outputs of two files: {out[-600:]}")
    code, out, _ = call(program, "run tiny.onnx --trt --load-inputs a0.json --save-engine t.engine --save-onnx t2.onnx --onnx-outputs e --save-timing-cache times")
    expect(code == 0 and os.path.getsize("t.engine") > 0 and onnx.load("t2.onnx").graph.output[0].name == "e", f"saving: {out[-300:]}")
    expect(os.path.exists("times"), "--save-timing-cache")
    code, out, _ = call(program, "run t.engine --trt --load-inputs a0.json --load-outputs o0.json")
    expect(code == 0 and "Passed: 2/2" in out, f"a plan: {out[-300:]}")


def test_stripped(program):
    """What refit makes of a stripped plan gives the results of one that was built whole."""
    code, out, _ = call(program, "run tiny.onnx --trt --strip-plan --load-inputs a0.json --save-engine bare.engine --save-outputs whole.json")
    expect(code == 0 and os.path.getsize("bare.engine") > 0, f"--strip-plan: {out[-300:]}")
    p = subprocess.run([program, "refit", "bare.engine", "--weights", "tiny.onnx"], capture_output=True, text=True)
    expect(p.returncode == 0 and "2 missing weights put in" in p.stdout, f"refit: {p.stdout}{p.stderr}")
    code, out, _ = call(program, "run bare.engine --trt --load-inputs a0.json --save-outputs put.json")
    expect(code == 0 and same(outputs_of("whole.json")[0][1], outputs_of("put.json")[0][1]), f"a refitted plan: {out[-300:]}")


SCRIPT = '''
import numpy as np
print("a line of the script's own")
def load_data():
    for i in range(3):
        yield {"x": np.full((1, 3, 4, 4), i, np.float32)}
def wrong():
    raise ValueError("no data")
'''


def test_script(program):
    open("feed.py", "w").write(SCRIPT)
    env = {"ASSAY_PYTHON": sys.executable}
    code, out, _ = call(program, "run tiny.onnx --onnxrt --data-loader-script feed.py --save-inputs s.json", env)
    expect(code == 0 and [f["x"].ravel()[0] for f in inputs_of("s.json")] == [0, 1, 2], f"a script: {out[-400:]}")
    code, out, err = call(program, "run tiny.onnx --onnxrt --data-loader-script feed.py:wrong", env)
    expect(code == 1 and "no data" in err and "--load-inputs" in out, f"a script that fails: {out[-400:]}")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --data-loader-script feed.py:nothing", env)
    expect(code == 1, "a function that is not there")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --data-loader-script feed.py", {"ASSAY_PYTHON": "/no/python"})
    expect(code == 1 and "no Python was found" in out, f"no Python: {out[-300:]}")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --data-loader-script none.py", env)
    expect(code == 1 and "cannot be read" in out, "no script")


STRAY = "import os, sys\nopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ran.txt'), 'a').write(__name__ + '\\n')\n"
USES_BESIDE = '''
import numpy as np
from beside import VALUE
def load_data():
    yield {"x": np.full((1, 3, 4, 4), VALUE, np.float32)}
def postprocess_outputs(result):
    return {k: v + VALUE for k, v in result.items()}
def compare_outputs(a, b):
    return {k: VALUE == 7 for k in a}
'''


def test_isolated(program):
    """Modules that lie in the current folder are not run, whatever PYTHONPATH says; what lies beside a script can be imported by it."""
    os.makedirs("strays/scripts")
    modules = ["base64", "io", "json", "os", "pkgutil", "runpy", "numpy", "ast", "struct", "pickle", "warnings", "site", "sitecustomize", "usercustomize", "encodings"]
    for module in modules + ["subprocess"]:
        open(f"strays/{module}.py", "w").write(STRAY)
    open("strays/scripts/beside.py", "w").write("VALUE = 7\n")
    open("strays/scripts/feed.py", "w").write(USES_BESIDE)
    os.link("tiny.onnx", "strays/tiny.onnx")
    here = os.getcwd()
    os.chdir("strays")
    try:
        line = "run tiny.onnx --onnxrt --onnxrt --data-loader-script scripts/feed.py --postprocess-func-script scripts/feed.py"
        line += " --compare-func-script scripts/feed.py --save-inputs s.json"
        for path in (None, "", ".", ":", here + "/strays"):
            code, out, err = call(program, line, {"ASSAY_PYTHON": sys.executable, **({} if path is None else {"PYTHONPATH": path})})
            expect(code == 0 and [f["x"].ravel()[0] for f in inputs_of("s.json")] == [7], f"PYTHONPATH={path}: {out[-400:]}{err[-400:]}")
        expect(not os.path.exists("ran.txt"), f"modules of the current folder were run: {open('ran.txt').read().split() if os.path.exists('ran.txt') else ''}")
        # Where the script itself lies among them, it is the script that imports; this program has imported what it needs before.
        open("feed.py", "w").write(SCRIPT)
        code, out, err = call(program, "run tiny.onnx --onnxrt --data-loader-script feed.py", {"ASSAY_PYTHON": sys.executable})
        expect(code == 0 and not os.path.exists("ran.txt"), f"a script beside strays: {out[-400:]}{err[-400:]}")
        call(program, "run tiny.onnx --onnxrt --gen-script gen.py")
        p = subprocess.run([sys.executable, "gen.py"], capture_output=True, text=True)
        expect(p.returncode == 0 and not os.path.exists("ran.txt"), f"a script of --gen-script beside strays: {p.stdout[-400:]}{p.stderr[-400:]}")
    finally:
        os.chdir(here)


POSTPROCESS = '''
import numpy as np
print("a line of the script's own")
def postprocess_outputs(result):
    assert result.runner_name.startswith(("onnxrt-runner", "truth-runner"))
    return {"rounded": np.round(result["prob"].astype(np.float32), 1)}
def apart(result):
    result["prob"] = result["prob"] + result.runner_name.startswith("onnxrt")
    return result
def nothing(result):
    pass
'''


def test_postprocess_script(program):
    open("post.py", "w").write(POSTPROCESS)
    env = {"ASSAY_PYTHON": sys.executable}
    line = "run tiny.onnx --onnxrt --truth --atol 0 --rtol 0"
    code, out, _ = call(program, line, env)
    expect(code == 1, "the evaluator's types do not show")
    code, out, _ = call(program, line + " --iterations 2 --postprocess-func-script post.py --postprocess top-1", env)
    expect(code == 0 and "Comparing Output: 'rounded' (dtype=float32" in out and "Passed: 2/2" in out and "will be ignored since" in out,
           f"a script that rounds: {out[-600:]}")
    code, out, _ = call(program, "run tiny.onnx --onnxrt --truth --postprocess-func-script post.py:apart --save-outputs p.json", env)
    expect(code == 1 and "FAILED | Output: 'prob'" in out, f"a script that takes outputs apart: {out[-600:]}")
    expect(outputs_of("p.json")[0][1][0]["prob"].sum() < 1.5, "what is saved is what the runner gave")
    code, out, err = call(program, line + " --postprocess-func-script post.py:nothing", env)
    expect(code == 1 and "--postprocess-func-script: 'post.py' ended with status 1" in out and "NoneType" in err, f"no outputs: {out[-400:]}")
    code, out, _ = call(program, line + " --postprocess-func-script none.py", env)
    expect(code == 1 and "--postprocess-func-script: 'none.py' cannot be read" in out, f"no script: {out[-400:]}")


COMPARE = '''
import numpy as np
def compare_outputs(first, second):
    assert first.runner_name.startswith("onnxrt-runner") and second.runner_name.startswith("truth-runner")
    assert second["prob"].dtype == np.float64
    return {"prob": np.allclose(first["prob"], second["prob"], atol=1e-4)}
def strict(first, second):
    return {"odd": [], "prob": first["prob"].shape == second["prob"].shape}
def nothing(first, second):
    return {}
def wrong(first, second):
    return True
'''


def test_compare_script(program):
    open("compare.py", "w").write(COMPARE)
    env = {"ASSAY_PYTHON": sys.executable}
    line = "run tiny.onnx --onnxrt --truth --atol 0 --rtol 0 --iterations 2 --compare-func-script compare.py"
    code, out, _ = call(program, line + " --compare l2", env)
    expect(code == 0 and "PASSED | compare.py | All outputs matched | Outputs: ['prob']" in out and "Passed: 2/2 iterations" in out and
           "--compare is ignored" in out, f"a script that compares: {out[-600:]}")
    code, out, _ = call(program, line + ":strict", env)
    expect(code == 1 and out.count("Mismatched outputs: ['odd']") == 2 and "Passed: 0/2 iterations" in out, f"a script that says no: {out[-600:]}")
    code, out, _ = call(program, line + ":strict --fail-fast", env)
    expect(code == 1 and out.count("Mismatched outputs: ['odd']") == 1 and "Accuracy Summary" not in out, f"--fail-fast: {out[-600:]}")
    code, out, _ = call(program, line + ":nothing", env)
    expect(code == 0 and "nothing was compared" in out, f"no verdicts: {out[-600:]}")
    code, out, err = call(program, line + ":wrong", env)
    expect(code == 1 and "--compare-func-script: 'compare.py' ended with status 1" in out, f"no dict: {out[-400:]}")
    code, out, _ = call(program, line + " --check-average", env)
    expect(code == 1 and "--check-average cannot be used with --compare-func-script" in out, f"averages: {out[-400:]}")
    code, out, _ = call(program, line + " --save-accuracy-results verdicts.json", env)
    expect(code == 0 and json.load(open("verdicts.json")), "verdicts saved")
    code, out, _ = call(program, "check accuracy verdicts.json --compare-func-script compare.py", env)
    expect(code == 1 and "give it to 'polygraphy run'" in out, f"check accuracy: {out[-400:]}")


def test_apart(program):
    """A file for each tensor: names that no file can have, or that become equal, and the model's own."""
    names = ["a/b", "a_b", "a b", "..", "apart.onnx", "x" * 300, "é"]
    w = [numpy_helper.from_array(np.full(4, i, np.float32), n) for i, n in enumerate(names)]
    nodes = [helper.make_node("Sum", ["x", *names], ["y"], name="s")]
    make = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [make("x", TensorProto.FLOAT, [4])], [make("y", TensorProto.FLOAT, [4])], w)
    os.makedirs("apart", exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "names.onnx")
    line = "convert names.onnx --save-external-data --external-data-size-threshold 0 --no-save-all-tensors-to-one-file -o apart/apart.onnx"
    for _ in range(2):  # the second time over the files of the first
        code, out, _ = call(program, line)
        expect(code == 0, f"a file for each tensor: {out[-400:]}")
        files = sorted(os.listdir("apart"))
        expect(len(files) == len(names) + 1 and {"a_b.data", "a_b_1.data", "a_b_2.data", "__.data", "apart.onnx"} <= set(files), f"files: {files}")
        read = {i.name: numpy_helper.to_array(i) for i in onnx.load("apart/apart.onnx").graph.initializer}
        expect(all(np.array_equal(read[n], np.full(4, i)) for i, n in enumerate(names)), "tensors in files of their own")
    code, out, _ = call(program, "run apart/apart.onnx --onnxrt --trt")
    expect(code == 0, f"a model of many files: {out[-400:]}")


def test_network(program, models):
    """A plan's layers as a model: valid, without weights, with their kernels, between the same ends."""
    for name in ("cnn", "loop", "if_sequence", "quantized"):
        code, out, _ = call(program, f"convert {models}/{name}.onnx --convert-to onnx-like-trt-network -o network.onnx")
        expect(code == 0 and "Saving ONNX model to: network.onnx" in out, f"{name} as layers: {out[-400:]}")
        there, model = onnx.load("network.onnx"), onnx.load(f"{models}/{name}.onnx")
        onnx.checker.check_model(there)
        given = {i.name for i in model.graph.initializer}
        ends = [[v.name for v in g.input if v.name not in given] + [v.name for v in g.output] for g in (there.graph, model.graph)]
        expect(ends[0] == ends[1] and not there.graph.initializer, f"{name}: {ends}")
        nodes = there.graph.node
        expect(nodes and all(n.domain == "assay" and {a.name for a in n.attribute} == {"format", "tactic", "origin"} for n in nodes), f"{name}: nodes")
        said = ", ".join(a.s.decode() for n in nodes for a in n.attribute if a.name == "origin")
        expect(name != "cnn" or ("Conv" in nodes[0].op_type and "conv" in said.lower()), f"{name}: {said}")


# ---- caches ---------------------------------------------------------------------------------------------------------


def test_calibration(program, models):
    """A cache that is not there is written from the data; builds by it give the same plan."""
    expect(not os.path.exists("no.cache"), "a cache is written that nothing can be built by")
    line = f"run {models}/cnn.onnx --trt --int8 --calibration-cache c.cache --save-timing-cache c.times --calib-base-cls IInt8MinMaxCalibrator"
    code, out, _ = call(program, line + " --iterations 2 --save-engine c1.plan --save-inputs c.json")
    expect(code == 0 and "Calibrating int8 with 2 inputs" in out and "Saving calibration cache to c.cache" in out, f"a cache is written: {out[-400:]}")
    text = open("c.cache").read()
    most = np.float32(max(np.abs(f["image"]).max() for f in inputs_of("c.json")) / 127).view(np.uint32)
    expect(re.fullmatch(r"TRT-\d+-MinMaxCalibration\n(\w+: [0-9a-f]{8}\n)+", text) and f"\nimage: {most:08x}\n" in text, f"the cache: {text}")
    code, out, _ = call(program, line + " --seed 9 --save-engine c2.plan")
    expect(code == 0 and "Calibrating" not in out and "Saving calibration" not in out, f"a cache is read: {out[-400:]}")
    expect(open("c1.plan", "rb").read() == open("c2.plan", "rb").read(), "another plan by the cache than by the data")
    # The ranges are those of the file, not of the data.
    open("c.cache", "w").write(text.replace(f"{most:08x}", "3f800000"))
    call(program, line + " --save-engine c3.plan")
    expect(open("c.cache").read() != text and open("c1.plan", "rb").read() != open("c3.plan", "rb").read(), "the cache's ranges are not taken")


def test_calibrators(program, models):
    """Each class takes the ranges that it says, of all iterations; its cache says which one it was."""
    # The bell of the first iteration has an outlier in the second one.
    image = np.random.default_rng(1).standard_normal((3, 1, 3, 8, 8)).astype(np.float32)
    image[1, 0, 2, 7, 7] = 64
    np.savez("calib.npz", image=image)
    magnitudes = np.abs(image)
    ranges = {}
    script = "import numpy as np\ndef load_data():\n    for x in np.load('calib.npz')['image']:\n        yield {'image': x}\n"
    open("calib.py", "w").write(script)
    for word, algorithm, more in [("MinMax", "MinMaxCalibration", ""), ("Entropy", "EntropyCalibration", ""), ("Entropy2", "EntropyCalibration2", ""),
                                  ("Legacy", "LegacyCalibration", " --quantile 0.99")]:
        cls = "IInt8EntropyCalibrator2" if word == "Entropy2" else f"IInt8{word}Calibrator"
        code, out, _ = call(program, f"run {models}/cnn.onnx --trt --int8 --data-loader-script calib.py --calibration-cache {word}.cache --calib-base-cls {cls}{more}",
                            {"ASSAY_PYTHON": sys.executable})
        expect(code == 0 and "Calibrating int8 with 3 inputs" in out, f"{cls}: {out[-400:]}")
        text = open(f"{word}.cache").read()
        expect(re.match(rf"TRT-\d+-{algorithm}\n", text), f"{cls}: {text}")
        bits = int(re.search(r"\nimage: ([0-9a-f]{8})\n", text).group(1), 16)
        ranges[word] = 127 * float(np.uint32(bits).view(np.float32))
    expect(abs(ranges["MinMax"] - 64) < 1e-4, f"MinMax: {ranges}")
    expect(2 < ranges["Entropy"] < 6 and ranges["Entropy"] == ranges["Entropy2"], f"Entropy: {ranges}")
    image[2, 0, 1, 1, 1] = np.inf
    np.savez("calib.npz", image=image)
    code, out, _ = call(program, f"run {models}/cnn.onnx --trt --int8 --data-loader-script calib.py", {"ASSAY_PYTHON": sys.executable})
    expect(code == 1 and re.search(r"\[!\] .*of its input 'image' 1 of 192 elements are NaN or infinite in sample 2", out), f"infinity: {out[-400:]}")
    quantile = np.quantile(magnitudes, 0.99)
    expect(abs(ranges["Legacy"] - quantile) < quantile / 60, f"Legacy: {ranges}, {quantile}")


def test_lock(program):
    """Times are written when nobody else holds the lock."""
    with open("held.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        p = subprocess.Popen([program, "polygraphy", "run", "tiny.onnx", "--trt", "--fp16", "--save-timing-cache", "held"], stdout=subprocess.DEVNULL)
        try:
            p.wait(3)
            expect(False, "the lock of the timing cache is not waited for")
        except subprocess.TimeoutExpired:
            expect(not os.path.exists("held"), "times are written while another holds the lock")
    expect(p.wait(120) == 0 and os.path.getsize("held") > 0, "times are not written behind the lock")


# ---- bits -----------------------------------------------------------------------------------------------------------


def test_marked(program, models):
    """Outputs that are asked for besides leave those of the plan as they are."""
    for model in ("tiny.onnx", f"{models}/cnn.onnx"):
        for precision in ("", "--fp16", "--bf16"):
            line = f"run {model} --trt {precision} --load-timing-cache none.cache"
            call(program, f"{line} --save-outputs plain.json")
            code, out, _ = call(program, f"{line} --trt-outputs mark all --save-outputs marked.json")
            plain, marked = outputs_of("plain.json")[0][1][0], outputs_of("marked.json")[0][1][0]
            expect(code == 0 and len(marked) > len(plain), f"{line}: no more outputs\n{out[-300:]}")
            expect(all(marked[k].tobytes() == v.tobytes() for k, v in plain.items()), f"{line}: other bits with --trt-outputs mark all")


def test_layouts(program):
    """Layouts are for callers of a plan: runs take and give the same rows, bit by bit, from the model and from the plan; trtexec's raw files have them."""
    call(program, "run tiny.onnx --trt --save-inputs in.json --save-outputs rows.json")
    line = "--trt --load-inputs in.json --save-outputs"
    code, out, _ = call(program, f"run tiny.onnx {line} hwc.json --tensor-formats x:[hwc8] --save-engine hwc.plan --trt-outputs mark all")
    expect(code == 0, f"--tensor-formats: {out[-300:]}")
    code, out, _ = call(program, f"run hwc.plan {line} plan.json")
    expect(code == 0, f"a plan with layouts: {out[-300:]}")
    rows = outputs_of("rows.json")[0][1][0]["prob"]
    for path in "hwc.json", "plan.json":
        expect(outputs_of(path)[0][1][0]["prob"].tobytes() == rows.tobytes(), f"{path}: other values")
    x = inputs_of("in.json")[0]["x"]
    np.pad(x, [(0, 0), (0, 5), (0, 0), (0, 0)]).transpose(0, 2, 3, 1).tofile("x.raw")
    p = subprocess.run([program, "trtexec", "--loadEngine=hwc.plan", "--loadInputs=x:x.raw", "--duration=0", "--iterations=1", "--warmUp=0", "--exportOutput=o.json"],
                       capture_output=True, text=True)
    got = np.array(json.load(open("o.json"))[0]["values"], np.float32) if not p.returncode else np.zeros(0)
    expect(got.tobytes() == rows.tobytes(), f"trtexec with a plan of polygraphy: {got}, {p.stderr}")


def test_script_of_commands(program):
    """What --show-native prints can be run, and gives the same plan."""
    code, out, _ = call(program, "run tiny.onnx --trt --fp16 --input-shapes x:[2,3,4,4] --save-engine n.plan --show-native -qqqq")
    command = next(l for l in out.splitlines() if l.startswith("assay build"))
    p = subprocess.run(command.replace("assay", program, 1), shell=True, capture_output=True, text=True)
    expect(code == 0 and p.returncode == 0 and os.path.getsize("n.plan") > 0, f"{command}: {p.stderr}")


def test_generated(program):
    """What --gen-script writes does what the line does, wherever its flags stand, with its exit code."""
    def run(words, expected, env=None):
        code, out, _ = call(program, words[:1] + ["--gen-script", "gen.py"] + words[1:])
        expect(code == 0, f"{words}: no script: {out}")
        p = subprocess.run([sys.executable, "gen.py"], capture_output=True, text=True, errors="surrogateescape", env={**os.environ, **(env or {})})
        expect(p.returncode == expected, f"{words}: exit {p.returncode}\n{p.stdout[-400:]}{p.stderr[-400:]}")
        return p.stdout

    # A list that --gen-script ended, and names that are to be quoted.
    name = "a \"b\" \\ \N{GREEK SMALL LETTER ALPHA}.json"
    flags = ["--onnxrt", "--trt", f"--save-outputs={name}", "--input-shapes", "x:[2,3,4,4]"]
    out = run(["run"] + flags + ["--gen", "gen.py", "tiny.onnx"], 0)
    expect("Passed: 1/1" in out, f"a script: {out[-300:]}")
    ours = outputs_of(name)
    call(program, ["run", "tiny.onnx"] + flags)
    expect(same(ours[0][1], outputs_of(name)[0][1]) and ours[0][1][0]["prob"].shape == (2, 5), "a script gives other outputs")
    expect("PASSED" in run(["run", "--onnxrt", b"--save-outputs=\xff.json", "tiny.onnx"], 0) and os.path.exists(b"\xff.json"), "a name of bytes")
    os.link("tiny.onnx", "-tiny.onnx")
    run(["run", "--onnxrt", "--iterations=2", "--", "-tiny.onnx"], 0)
    run("run nan.onnx --onnxrt --validate".split(), 1)
    run("run tiny.onnx --onnxrt".split(), 0, {"ASSAY_PROGRAM": "true"})


def test_link(program):
    os.symlink(program, "polygraphy")
    code, out, _ = call(program, "run tiny.onnx --onnxrt", as_link=True)
    expect(code == 0 and "RUNNING | Command: polygraphy run" in out, f"by a link: {out[:200]}")


def test_documented(flags):
    """Each flag of the table is in the text for users, under what its level says."""
    path = os.path.join(os.path.dirname(flags), "../../../docs/coming-from-polygraphy.md")
    text = open(path).read()
    table = open(flags).read()
    rows = re.findall(r"PG_FLAG\(\s*\w+,\s*\"([^\"]+)\",\s*\w+,\s*(WORKS|ACCEPT|REJECT)", table)
    expect(len(rows) > 150, f"{len(rows)} flags in the table")
    parts = {m.group(1): m.group(2) for m in re.finditer(r"(?ms)^### (\w[^\n]*)\n(.*?)(?=^##|\Z)", text)}
    titles = {"WORKS": "Works", "ACCEPT": "Read, without effect", "REJECT": "Not supported"}
    for names, level in rows:
        cell = "`" + "`, `".join(names.split()) + "`"
        expect(f"| {cell} |" in parts.get(titles[level], ""), f"docs/coming-from-polygraphy.md: {cell} is not under '{titles[level]}'")


def main():
    program, models, flags = (os.path.abspath(a) for a in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_models()
        test_rows(program, models)
        test_inputs(program)
        test_their_files(program)
        half = onnx.load("half.onnx")
        expect({i.data_type for i in half.graph.initializer} <= {TensorProto.FLOAT16, TensorProto.INT64} and len(half.graph.value_info) > 3,
               "--fp-to-fp16 --shape-inference")
        expect(not np.any(numpy_helper.to_array(onnx.load("hollow.onnx").graph.initializer[0])), "--ignore-external-data reads data")
        test_files(program)
        test_stripped(program)
        test_script(program)
        test_isolated(program)
        test_postprocess_script(program)
        test_compare_script(program)
        test_apart(program)
        test_network(program, models)
        test_calibration(program, models)
        test_calibrators(program, models)
        test_lock(program)
        test_marked(program, models)
        test_layouts(program)
        test_script_of_commands(program)
        test_generated(program)
        test_link(program)
        test_documented(flags)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
