#!/usr/bin/env python3
"""assay trtexec: the rules that no single flag is the proof of, by the sections of the specification.

    test_trtexec_rules.py ASSAY MODELS FLAGS

MODELS is tests/models/small, FLAGS the table (flags.inc).
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import namedtuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from test_trtexec_flags import BUILD, LAYERS, RUN, TIMED, Bench, looks, stored, write_data
from test_trtexec_runs import QUICK, Failures, read_flags

TYPES = {"fp32": np.float32, "fp16": np.float16, "int32": np.int32, "int64": np.int64, "int8": np.int8, "uint8": np.uint8, "bool": np.uint8}
LONG = "a" + 200 * "x" + "z"
SHAPED = "--onnx={d}/names.onnx --skipInference --dumpOptimizationProfile "
PREFER = "--fp16 --precisionConstraints=prefer "

# Section, arguments ({m}: the models, {d}: the data), exit code, a pattern of what is printed or a function of the run.
Rule = namedtuple("Rule", "section line code sees")


def profile(x, y):
    """What --dumpOptimizationProfile prints of the two inputs of names.onnx; the three shapes' first sizes."""
    text = [", ".join(f"{k}={n}x{rest}" for k, n in zip(("min", "opt", "max"), sizes)) for sizes, rest in ((x, 16), (y, 4))]
    return lambda run: f"Model input in:0 (profile 0): {text[0]}\n" in run.text and f"Model input a,b (profile 0): {text[1]}\n" in run.text


def names(*words):
    """All of these are printed on one line of an error."""
    return lambda run: any("[E]" in line and all(word in line for word in words) for line in run.err.splitlines())


def warns(*lines):
    return lambda run: all(re.search(r"\[W\] .*" + line, run.err) for line in lines)


def both(*looked):
    return lambda run: all(looks(sees, run) for sees in looked)


def ends_with_error(run):
    """The help is on stdout, and the errors come last, with the nearest names."""
    return "=== Build Options ===" in run.out and re.search(r"\[E\] Unknown option: --fp17 \(did you mean --fp16\?\)\n"
                                                          r".*\[E\] Unknown option: --iteration 5 \(did you mean --iterations\?\)\n", run.err)


def trace_lines(n, omitted):
    def sees(run):
        lines = run.out.splitlines()
        at = next(i for i, line in enumerate(lines) if line.endswith("Trace averages of 1 runs:")) + 1
        end = next(i for i in range(at, len(lines)) if lines[i].endswith("] "))
        told = [line for line in lines[at:end] if "Average on 1 runs" in line]
        return len(told) == n and end - at == n + bool(omitted) and (not omitted or f"... Omitting {omitted} lines" in lines[at + 200])
    return sees


def two_outputs(run):
    lines = run.bytes("o.json").decode().splitlines()
    return lines == ["[", '  { "name" : "p"', '  , "dimensions" : "2x16"', f'  , "values" : [ {", ".join(["1"] * 32)} ]', "  }",
                     ', { "name" : "q"', '  , "dimensions" : "3x4"', f'  , "values" : [ {", ".join(["1"] * 12)} ]', "  }", "]"]


def first_layer(run):
    return run.json("l.json")["Layers"][0]


RULES = [
    # 1. the command line
    Rule(1, "--onnx={d}/a=b.onnx --skipInference", 0, "Engine built"),
    Rule(1, "--onnx={m}/cnn.onnx --skipInference=0 " + QUICK, 0, both(warns("--skipInference=0: its value is ignored"), "Skipped inference phase")),
    Rule(1, "--onnx={m}/cnn.onnx --skipInference=false", 0, both(warns("--skipInference=false: its value is ignored"), "Skipped inference phase")),
    Rule(1, BUILD + "--streams=2 --infStreams=3", 1, r"\[E\] Unknown option: --infStreams 3 \(given twice\)"),
    Rule(1, BUILD + "--skipInference", 1, r"\[E\] Unknown option: --skipInference \(given twice\)"),
    Rule(1, BUILD + "--plugins=a.so --plugins=b.so", 1, "--plugins is not supported"),
    Rule(1, BUILD + "--fp17 --iteration=5", 1, ends_with_error),
    Rule(1, BUILD + "--iterations 5", 1, "--iterations needs a value: --iterations=N"),
    Rule(1, BUILD + "--fp16 model.onnx", 1, r"\[E\] Unknown option: model.onnx \(values stand after '=': --name=value\)"),
    Rule(1, BUILD + "-fp16", 1, r"\[E\] Unknown option: -fp16 \(did you mean --fp16\?\)"),
    Rule(1, "--iterations=abc --nonsense --help", 0, lambda run: "=== Build Options ===" in run.out and not run.err),
    Rule(1, "--help=1", 0, lambda run: "=== Build Options ===" in run.out),
    Rule(1, "--skipInference", 1, r"\[E\] Model missing or format not recognized\n"),
    Rule(1, BUILD + "--iterations=0x10", 1, "'0x10' is not a whole number"),
    Rule(1, BUILD + "--duration=0x10", 1, "'0x10' is not a number"),
    Rule(1, BUILD + "--iterations=99999999999999999999", 1, "is not a whole number"),
    Rule(1, BUILD + "--percentile=90,,95", 1, r"\[E\] .*--percentile"),
    Rule(1, BUILD + "--percentile=-1", 1, "'-1' is not a percentile, 0 to 100"),
    Rule(1, BUILD + "--memPoolSize=workspace:1T", 1, "B, K, M or G"),
    Rule(1, BUILD + "--memPoolSize=workspace:0x1M", 1, "'0x1M'"),
    Rule(1, BUILD + "--memPoolSize=workspace:0.25M", 0, r"Workspace of 0\.25 MiB"),
    Rule(1, BUILD + "--memPoolSize=workspace:512k", 0, r"Workspace of 0\.5 MiB"),
    Rule(1, BUILD + "--memPoolSize=workspace:3", 0, r"Workspace of 3 MiB"),
    Rule(1, BUILD + "--memPoolSize=workspace:2G,tacticSharedMem:1K", 0, both(r"Workspace of 2048 MiB", warns("tacticSharedMem has no effect"))),
    Rule(1, BUILD + "--memPoolSize=workspace:1G --workspace=5", 1, "--memPoolSize=workspace and --workspace"),
    Rule(1, "--onnx=~/whole.onnx --skipInference", 0, "Engine built"),
    Rule(1, "--onnx={d}/rt.plan", 1, r"\[E\] "),
    Rule(1, "--loadEngine={d}/c.plan --saveEngine=d.plan", 1, names("--loadEngine", "--saveEngine")),
    Rule(1, SHAPED + "--shapes=in:0:2x16,a,b:3x4", 1, names("'a' is not NAME:VALUE")),
    Rule(1, SHAPED + "--shapes=in:0:2x16,'a,b':3x4", 0, profile((2, 2, 2), (3, 3, 3))),
    Rule(1, SHAPED + "--shapes='in:0':2x16,'a,b':3x4", 0, profile((2, 2, 2), (3, 3, 3))),
    Rule(1, SHAPED + "--shapes='in:0:2x16,a:3x4", 1, names("two quotes around the name")),
    Rule(1, SHAPED + "--shapes='in':0':2x16", 1, r"\[E\] .*quotes"),
    Rule(1, SHAPED + "--shapes=in*:2x16,a*b:3x4", 0, profile((2, 2, 2), (3, 3, 3))),
    Rule(1, SHAPED + "--shapes=in:0*:2x16,'*a,b':3x4", 0, profile((2, 2, 2), (3, 3, 3))),
    Rule(1, SHAPED + "--shapes=in:0:5x16,in*:2x16,'a,b':3x4,'a*':6x4", 0, profile((5, 5, 5), (3, 3, 3))),
    Rule(1, SHAPED + "--shapes=*n*:2x16", 1, names("'*n*' has more than one '*'")),
    Rule(1, "--onnx={d}/names.onnx --loadInputs='in:0':{d}/in.npy,'a,b':{d}/ab.bin --shapes='in:0':2x16,'a,b':3x4 " + QUICK, 0,
         r"Using values loaded from \S+in\.npy for input in:0\n(.*\n)*.*Using values loaded from \S+ab\.bin for input a,b\n"),
    Rule(2, "--loadEngine={d}/rt.plan --getPlanVersionOnly", 1, names("is a plan of TensorRT")),
    Rule(2, "--onnx={m}/cnn.onnx --saveEngine=s.plan --timeDeserialize " + QUICK, 0,
         r"(?s)Engine built.*Engine deserialized in [\d.e-]+ sec\.(?!.*Starting inference)"),
    Rule(2, "--onnx={m}/cnn.onnx --timeDeserialize " + QUICK, 0, both(warns("--timeDeserialize has no effect without"), "Starting inference")),
    Rule(2, BUILD + "--tacticSources=CUDNN", 1, names("'CUDNN' needs + or - before it")),
    Rule(2, BUILD + "--tacticSources=+CUDA", 1, names("'CUDA' is not a source")),
    Rule(2, BUILD + "--tacticSources=-cudnn,+onednn,+own", 0, warns("--tacticSources=-cudnn has no effect in Assay")),
    Rule(2, BUILD + "--noBuilderCache --timingCacheFile=t.cache", 0, warns("--timingCacheFile has no effect beside --noBuilderCache")),
    Rule(2, BUILD + "--exportTimes=t.json --dumpOutput", 0, warns("--exportTimes has no effect with --skipInference", "--dumpOutput has no effect")),
    Rule(2, BUILD + "--saveEngine=no/such/folder", 1, names("'no/such/folder'")),
    Rule(2, TIMED + "--timingCacheFile=no/such/folder", 1, names("--timingCacheFile 'no/such/folder'")),
    # 3. shapes
    Rule(3, SHAPED + "--optShapes=in:0:2x16,'a,b':3x4", 0,
         both(profile((2, 2, 2), (3, 3, 3)), warns("--minShapes has no shape of input 'in:0': that of --optShapes",
                                                       "--maxShapes has no shape of input 'a,b'"))),
    Rule(3, SHAPED + "--minShapes=in:0:2x16,'a,b':3x4", 0,
         both(profile((2, 2, 2), (3, 3, 3)), warns("--optShapes has no shape of input 'in:0': that of --minShapes",
                                                       "--maxShapes .* 'a,b': that of --minShapes"))),
    Rule(3, SHAPED + "--maxShapes=in:0:2x16,'a,b':3x4", 0,
         both(profile((2, 2, 2), (3, 3, 3)), warns("--minShapes .* 'in:0': that of --maxShapes", "--optShapes .* 'a,b': that of --maxShapes"))),
    Rule(3, SHAPED + "--minShapes='*':1x16,'a,b':1x4 --optShapes='*':2x16,'a,b':3x4", 0, profile((1, 2, 2), (1, 3, 3))),
    Rule(3, SHAPED + "--optShapes='*':2x16,'a,b':3x4 --maxShapes='*':5x16,'a,b':6x4", 0, profile((2, 2, 5), (3, 3, 6))),
    Rule(3, SHAPED + "--minShapes='*':1x16,'a,b':2x4 --maxShapes='*':5x16,'a,b':6x4", 0, profile((1, 5, 5), (2, 6, 6))),
    Rule(3, SHAPED + "--minShapes='*':1x16,'a,b':1x4 --optShapes=in:0:2x16 --maxShapes='*':5x16,'a,b':6x4", 1, names("--optShapes", "'a,b'")),
    Rule(3, SHAPED + "--minShapes=in:0:1x16 --optShapes=in:0:2x16 --maxShapes=in:0:4x16 --shapes='a,b':3x4", 0, profile((1, 2, 4), (3, 3, 3))),
    Rule(3, "--onnx={d}/names.onnx --minShapes=in:0:1x16 --optShapes=in:0:2x16 --maxShapes=in:0:4x16 --shapes='a,b':3x4 " + QUICK, 0,
         "(?s)binding for in:0 with dimensions 2x16 .*binding for a,b with dimensions 3x4 "),
    Rule(3, "--onnx={d}/names.onnx " + QUICK, 0,
         both(warns("required for input: in:0", "required for input: a,b"), "binding for a,b with dimensions 1x4 ")),
    Rule(3, SHAPED + "--optShapes=in:1:2x16", 1, names("--optShapes: the model has no input 'in:1'")),
    Rule(3, SHAPED + "--maxShapes=z*:2x16", 1, names("--maxShapes: the model has no input 'z*'")),
    Rule(3, BUILD + "--optShapes=image:1x3x8x8", 1, names("static model does not take explicit shapes")),
    Rule(3, "--loadEngine={d}/c.plan --shapes=image:1x3x8x8 " + QUICK, 0, "Throughput"),
    Rule(3, "--loadEngine={d}/c.plan --shapes=image:1x3x8x9 " + QUICK, 1, names("image", "dimension 3", "8", "9")),
    Rule(3, SHAPED + "--shapes=in:0:2x16x1", 1, names("in:0", "'2x16x1' has 3 dimensions")),
    Rule(3, SHAPED + "--shapes=in:0:2x17", 1, names("in:0", "dimension 1 is fixed to 16 and cannot be 17")),
    Rule(3, SHAPED + "--shapes=in:0:-1x16", 1, names("in:0", "'-1x16'")),
    Rule(3, SHAPED + "--minShapes=in:0:3x16 --optShapes=in:0:2x16 --maxShapes=in:0:4x16", 1,
         names("in:0", "dimension 0", "--minShapes has 3", "the 2 of --optShapes")),
    Rule(3, SHAPED + "--minShapes=in:0:1x16 --optShapes=in:0:5x16 --maxShapes=in:0:4x16", 1,
         names("in:0", "dimension 0", "--optShapes has 5", "the 4 of --maxShapes")),
    Rule(3, "--loadEngine={d}/x.plan --shapes=x:5x16 " + QUICK, 1, names("x", "[5, 16]", "[1, 16] to [4, 16]")),
    Rule(3, SHAPED + "--profile=1 --maxShapes='*':8x16,'a,b':8x4 --minShapes='*':1x16,'a,b':1x4 --profile=0 --optShapes='*':2x16,'a,b':3x4", 0,
         both(profile((2, 2, 2), (3, 3, 3)), r"in:0 \(profile 1\): min=1x16, opt=8x16, max=8x16\n.*a,b \(profile 1\): min=1x4, opt=8x4, max=8x4\n")),
    Rule(3, SHAPED + "--optShapes=in:0:1x16 --optShapes=in:0:2x16", 1, names("--optShapes", "it was given before")),
    Rule(3, "--loadEngine={d}/two.plan " + QUICK, 0, warns("has 2 profiles, and --useProfile is not given")),
    Rule(3, "--loadEngine={d}/two.plan --useProfile=2 " + QUICK, 1, names("--useProfile=2", "number 1")),
    Rule(3, "--loadEngine={d}/scalar.plan --shapes=s:scalar " + QUICK, 0, "Throughput"),
    Rule(3, "--loadEngine={d}/scalar.plan --shapes=s: " + QUICK, 0, "Throughput"),
    # 5. layers
    Rule(5, LAYERS + PREFER, 0, warns("--precisionConstraints=prefer has no effect")),
    Rule(5, LAYERS + PREFER + "--layerPrecisions=norm/*:fp16,n*:fp32", 0, stored(**{"norm/scale": "fp32", "conv": "fp16"})),
    Rule(5, LAYERS + PREFER + "--layerPrecisions=n*:fp32,norm/*:fp16", 0, stored(**{"norm/scale": "fp16", "conv": "fp16"})),
    Rule(5, LAYERS + PREFER + "--layerPrecisions=norm/scale:fp32,norm/*:fp16", 0, stored(**{"norm/scale": "fp32", "conv": "fp16"})),
    Rule(5, LAYERS + PREFER + "--layerPrecisions=conv:fp32,relu:fp16", 0,
         both(stored(conv="fp32", head="fp16"), "Set layer conv to precision fp32\n")),
    Rule(5, LAYERS + PREFER + "--layerOutputTypes=conv:fp32", 0, both(stored(conv="fp32"), r"\[I\] Set output 0 of layer conv to type fp32\n")),
    Rule(5, LAYERS + PREFER + "--layerPrecisions=hed:fp32", 0, warns("'hed' is the name of no layer; did you mean 'head'")),
    Rule(5, LAYERS + "--fp16 --precisionConstraints=obey --layerPrecisions=relu:fp32,norm/*:fp32,softmax:fp32", 0,
         both(stored(relu="fp32", softmax="fp32", conv="fp16"), lambda run: "computes in another format" not in run.text)),
    Rule(5, LAYERS + PREFER + "--layerPrecisions='head':fp32", 0, stored(head="fp32", conv="fp16")),
    Rule(5, "--onnx={d}/sizes.onnx --skipInference --shapes=x:2x2x3 --verbose " + PREFER + "--layerPrecisions=*:fp16", 0,
         lambda run: all(f"[V] Layer {name} is skipped by '*'" in run.out for name in ("shape", "first", "half", "times", "whole", "sizes")) and
         all(f"Set layer {name} to precision fp16" in run.out for name in ("Relu_6", "reshape")) and
         "Set layer half" not in run.out),
    Rule(5, "--onnx={d}/sizes.onnx --skipInference --shapes=x:2x2x3 --fp16 --precisionConstraints=obey --layerPrecisions=*:fp16", 0, "Engine built"),
    Rule(5, "--onnx={d}/sizes.onnx --skipInference --shapes=x:2x2x3 --fp16 --precisionConstraints=obey --layerPrecisions=shape:fp16", 1,
         names("layer 'shape' cannot be in fp16")),
    Rule(5, "--onnx={d}/sizes.onnx --skipInference --shapes=x:2x2x3 " + PREFER + "--layerPrecisions=shape:fp16", 0, warns("shape")),
    Rule(5, "--onnx={d}/sizes.onnx --skipInference --shapes=x:2x2x3 " + PREFER + "--layerPrecisions=node_of_r:fp32", 0,
         r"\[I\] Set layer Relu_6 to precision fp32\n"),
    # 6. inputs
    Rule(6, RUN + "--loadInputs=image:{d}/double.bin", 1, names("double.bin' has 1536 bytes", "takes 768")),
    Rule(6, RUN + "--loadInputs=image:{d}/short.bin", 1, names("has 12 bytes", "takes 768")),
    Rule(6, RUN + "--loadInputs='im*':{d}/image.bin", 0, "image.bin for input image"),
    Rule(6, RUN, 0, warns(r"\(seed 0\) show how fast a model is, and nothing of its accuracy")),
    Rule(6, RUN + "--loadRefOutputs=scores:{d}/ones.npy --accuracyThreshold=0", 1, names("--accuracyThreshold=X, above 0")),
    Rule(6, "--onnx={d}/long.onnx --dumpRawBindingsToFile --shapes='in/0(1)':2x3 " + QUICK, 0,
         lambda run: run.has("in_0_1_.input.2.3.fp32.raw") and any(
             re.fullmatch(r"ax+\.\.\.x+z\.output\.2\.3\.fp32\.raw", name) and name.index(".output") <= 150 for name in os.listdir(run.folder))),
    # 8. timing caches
    Rule(8, TIMED + "--timingCacheFile={d}/strange.cache", 0, both(warns("strange.cache' is not a timing cache of Assay's"),
                                                                   lambda run: run.bytes("../strange.cache") == b"ftrt nothing of ours\n")),
    Rule(8, TIMED + "--timingCacheFile={d}/elsewhere.cache", 0, both(warns("elsewhere.cache' is of another machine"),
                                                                     lambda run: run.bytes("../elsewhere.cache") == run.bytes("../elsewhere.copy"))),
    Rule(8, TIMED + "--timingCacheFile={d}/elsewhere.cache --errorOnTimingCacheMiss", 1, names("--errorOnTimingCacheMiss")),
    Rule(8, TIMED + "--timingCacheFile={d}/older.cache", 0,
         both(warns("older.cache' is not a timing cache of Assay's"), lambda run: run.bytes("../older.cache") == run.bytes("../older.copy"))),
    # 9. files
    Rule(9, RUN + "--dumpProfile", 0,
         lambda run: "=== Performance summary ===" not in run.text and "no summary is printed. Use --separateProfileRun" in run.text),
    Rule(9, BUILD + "--profilingVerbosity=none --exportLayerInfo=l.json", 0,
         both("no layers are told", lambda run: run.json("l.json") == {"Layers": [], "Bindings": ["image", "scores"]})),
    Rule(9, BUILD + "--exportLayerInfo=l.json", 0, lambda run: run.json("l.json")["Layers"][:2] == ["conv + relu", "pool"]),
    Rule(9, "--loadEngine={d}/two.plan --useProfile=1 --exportLayerInfo=l.json " + QUICK, 0,
         lambda run: all(name.endswith(" [profile 1]") for name in run.json("l.json")["Layers"])),
    Rule(9, "--loadEngine={d}/two.plan --useProfile=0 --exportLayerInfo=l.json " + QUICK, 0, lambda run: "[profile" not in str(run.json("l.json"))),
    Rule(9, LAYERS + "--dumpLayerInfo", 0,
         lambda run: [json.loads(line.split("[I] ", 1)[1]) for line in run.text.splitlines() if '"LayerType"' in line] ==
         run.json("l.json")["Layers"]),
    Rule(9, "--onnx={d}/wild.onnx --loadInputs=x:{d}/wild.npy --exportOutput=o.json --dumpOutput " + QUICK, 0,
         both(r'y: \(5\)\n\S+ \[I\] NaN Infinity -Infinity 0\.100000001 -0\n',
              lambda run: run.bytes("o.json") == b'[\n  { "name" : "y"\n  , "dimensions" : "5"\n'
              b'  , "values" : [ NaN, Infinity, -Infinity, 0.100000001, -0 ]\n  }\n]\n')),
    Rule(9, "--onnx={d}/names.onnx --loadInputs='in:0':{d}/in.npy,'a,b':{d}/ab.bin --shapes='in:0':2x16,'a,b':3x4 --exportOutput=o.json " + QUICK, 0,
         two_outputs),
    # 10. what is printed
    Rule(10, "--loadEngine={d}/c.plan --duration=0 --warmUp=0 --iterations=400 --avgRuns=1", 0, trace_lines(400, 0)),
    Rule(10, "--loadEngine={d}/c.plan --duration=0 --warmUp=0 --iterations=437 --avgRuns=1", 0, trace_lines(400, 37)),
    Rule(10, RUN + "--verbose", 0,
         lambda run: all(re.match(r"(&&&& \w+ |\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[[IV]\] )", line) for line in run.out.splitlines()) and
         all(re.match(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[[WE]\] ", line) for line in run.err.splitlines())),
    # 11. the defaults of trtexec 11
    Rule(11, LAYERS + "--compat=11 --int8", 0,
         both(warns("--int8 is switched off"), lambda run: first_layer(run)["Assay"]["nodes"] == ["conv", "relu"])),
    Rule(11, LAYERS + "--compat=11 --best", 0, both(warns("--best is switched off"), stored(conv="fp32", head="fp32"))),
    Rule(11, BUILD + "--compat=11 --inputIOFormats=chw+hwc --outputIOFormats=chw", 0, "Engine built"),
    Rule(11, BUILD + "--compat=11 --inputIOFormats=fp16:chw", 1, names("'image' is fp32 in the model")),
    Rule(11, LAYERS + "--compat=10 --fp16", 0, stored(conv="fp16")),
    Rule(11, LAYERS + "--includeDataTransfers --fp16", 0, stored(conv="fp16")),
]


# ---- data ---------------------------------------------------------------------------------------

def tensor(name, elem, dims):
    return helper.make_tensor_value_info(name, elem, dims)


def save(path, nodes, inputs, outputs, **constants):
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(np.array(x), name) for name, x in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_rule_data(bench):
    node, image = helper.make_node, np.load("image.npy")
    os.link("whole.onnx", "a=b.onnx")
    image.repeat(2).tofile("double.bin")
    save("names.onnx", [node("Relu", ["in:0"], ["p"]), node("Relu", ["a,b"], ["q"])], [tensor("in:0", 1, ["n", 16]), tensor("a,b", 1, ["m", 4])],
         [tensor("p", 1, ["n", 16]), tensor("q", 1, ["m", 4])])
    np.save("in.npy", np.ones((2, 16), np.float32))
    np.ones((3, 4), np.float32).tofile("ab.bin")
    save("scalar.onnx", [node("Relu", ["s"], ["y"])], [tensor("s", 1, [])], [tensor("y", 1, [])])
    nodes = [node("Shape", ["x"], ["s"], name="shape"), node("Gather", ["s", "zero"], ["f"], name="first"),
             node("Cast", ["f"], ["h"], name="half", to=TensorProto.FLOAT), node("Mul", ["h", "one"], ["t"], name="times"),
             node("Cast", ["t"], ["w"], name="whole", to=TensorProto.INT64), node("Concat", ["w", "rest"], ["z"], name="sizes", axis=0),
             node("Relu", ["x"], ["r"]), node("Reshape", ["r", "z"], ["y"], name="reshape")]
    save("sizes.onnx", nodes, [tensor("x", 1, ["n", 2, 3])], [tensor("y", 1, ["n", 6])], zero=np.int64([0]), one=np.float32([1]), rest=np.int64([-1]))
    save("long.onnx", [node("Relu", ["in/0(1)"], [LONG])], [tensor("in/0(1)", 1, ["n", 3])], [tensor(LONG, 1, ["n", 3])])
    save("chain.onnx", [node("Relu", ["x"], ["h"], name="a"), node("Sigmoid", ["h"], ["y"], name="b")], [tensor("x", 1, [5])], [tensor("y", 1, [5])])
    save("wild.onnx", [node("Identity", ["x"], ["y"])], [tensor("x", 1, [5])], [tensor("y", 1, [5])])
    np.save("wild.npy", np.float32([np.nan, np.inf, -np.inf, 0.1, -0.0]))
    kinds = {word: helper.np_dtype_to_tensor_dtype(np.dtype(bool if word == "bool" else kind)) for word, kind in TYPES.items()}
    save("types.onnx", [node("Identity", [word], ["y" + word]) for word in kinds], [tensor(word, kind, [4096]) for word, kind in kinds.items()],
         [tensor("y" + word, kind, [4096]) for word, kind in kinds.items()])
    indexed = [node("Add", ["i", "zero"], ["k"]), node("Gather", ["table", "k"], ["g"])]
    save("table.onnx", indexed, [tensor("i", TensorProto.INT64, [64])], [tensor("g", 1, [64])], zero=np.int64(0), table=np.float32(range(3)))
    with open("strange.cache", "wb") as f:
        f.write(b"ftrt nothing of ours\n")
    lines = open("t.cache").read().split("\n")
    for ending in "cache", "copy":
        with open(f"elsewhere.{ending}", "w") as f:
            f.write("\n".join([lines[0], lines[1] + " elsewhere", *lines[2:]]))
        with open(f"older.{ending}", "w") as f:
            f.write("\n".join([lines[0] + "0", *lines[1:]]))
    assert bench("--onnx={d}/scalar.onnx --skipInference --saveEngine={d}/scalar.plan").code == 0


# ---- tests --------------------------------------------------------------------------------------

def test_rules(bench, failures):
    for rule in RULES:
        run = bench(rule.line)
        told = f"section {rule.section}: {rule.line}: exit code {run.code}, {run.text[-900:]!r}"
        failures.check(run.code == rule.code, f"{told}: exit code {rule.code} expected")
        try:
            failures.check(looks(rule.sees, run), f"{told}: {rule.sees!r}")
        except Exception as e:
            failures.check(False, f"{told}: {e!r}")
        failures.check(run.out.startswith("&&&& RUNNING Assay.trtexec ") and
                       run.out.splitlines()[-1].startswith("&&&& FAILED" if run.code else "&&&& PASSED"),
                       f"{told}: first and last line")


def test_random(bench, failures):
    """Section 6: floats are uniform in [-1, 1], integers in [-128, 127], uint8 in [0, 255], bool 0 or 1; what indexes stays inside."""
    ranges = {"fp32": (-1, 1), "fp16": (-1, 1), "int32": (-128, 127), "int64": (-128, 127), "int8": (-128, 127), "uint8": (0, 255), "bool": (0, 1)}
    run = bench("--onnx={d}/types.onnx --dumpRawBindingsToFile " + QUICK)
    for word, (least, most) in ranges.items():
        x = np.frombuffer(run.bytes(f"{word}.input.4096.{word}.raw"), TYPES[word]).astype(np.float64)
        share = np.histogram(x, 2, (least, most))[0] / x.size
        failures.check(x.min() >= least and x.max() <= most and x.min() < least + 0.05 * (most - least) and x.max() > most - 0.05 * (most - least) and
                       abs(share - 0.5).max() < 0.05, f"random values of {word}: {x.min()} to {x.max()}, {share}")
    run = bench("--onnx={d}/table.onnx " + QUICK)
    failures.check(run.code == 0, f"a table that is indexed by way of Add: {run.err}")


def test_numbers(bench, failures):
    """Sections 9 and 10: what is printed is what --exportTimes has of the same run."""
    line = "--loadEngine={d}/c.plan --duration=0 --warmUp=0 --iterations=41 --avgRuns=20 --percentile=0,10,50,90,99,99.9,100 --exportTimes=t.json"
    for more, runs in ("", 41), (" --infStreams=2", 82):
        run = bench(line + more)
        t = run.json("t.json")
        latency, compute = sorted(r["latencyMs"] for r in t), sorted(r["computeMs"] for r in t)
        agree = all(math.isclose(r["endComputeMs"] - r["startComputeMs"], r["computeMs"], abs_tol=2e-3) for r in t)
        failures.check(len(t) == runs and agree, f"{t[:2]}")

        def percentile(x, p):
            return x[max(len(x) - 1 - math.trunc((1 - p / 100) * len(x)), 0)]

        for name, x in ("Latency", latency), ("GPU Compute Time", compute), ("H2D Latency", [0] * runs), ("Enqueue Time", [0] * runs):
            text = re.search(rf"\[I\] {name}: (.*)\n", run.out)[1]
            told = {k: float(v) for k, v in re.findall(r"([\w.()%]+) = ([\d.e+-]+) ms", text)}
            want = {"min": x[0], "max": x[-1], "mean": sum(x) / runs, "median": (x[(runs - 1) // 2] + x[runs // 2]) / 2}
            want.update({f"percentile({p:g}%)": percentile(x, p) for p in (0, 10, 50, 90, 99, 99.9, 100)})
            failures.check(told.keys() == want.keys() and all(math.isclose(told[k], want[k], rel_tol=1e-4) for k in want), f"{name}: {told}, {want}")
        variation = 100 * np.std(compute) / np.mean(compute)
        told = "GPU compute time is unstable" in run.err
        failures.check(abs(variation - 2.5) < 0.01 or told == (variation > 2.5), f"coefficient of variation {variation}: {run.err}")
        wall = 1e-3 * (max(r["endD2hMs"] for r in t) - min(r["startH2dMs"] for r in t))
        for name, x in (("Throughput", runs / wall), ("Total Host Walltime", wall), ("Total GPU Compute Time", 1e-3 * sum(compute))):
            told = float(re.search(rf"\[I\] {name}: ([\d.e+-]+) (qps|s)\n", run.out)[1])
            failures.check(math.isclose(told, x, rel_tol=2e-3), f"{name}: {told}, {x}")
        means = [float(m) for m in re.findall(r"Average on 20 runs - GPU latency: ([\d.e+-]+) ms", run.out)]
        want = [sum(r["computeMs"] for r in t[at:at + 20]) / 20 for at in range(0, runs - 19, 20)]
        failures.check(len(means) == len(want) and np.allclose(means, want, rtol=1e-4), f"the trace: {means}, {want}")


def test_profile(bench, failures):
    """Section 9: the lines of --exportProfile, and the columns of --dumpProfile, which say the same."""
    run = bench(RUN + "--separateProfileRun --dumpProfile --exportProfile=p.json")
    lines, profile = run.bytes("p.json").decode().splitlines(), run.json("p.json")
    number = r"[\d.e+-]+"
    layer_line = rf', \{{ "name" : ".*", "timeMs" : {number}, "averageMs" : {number}, "medianMs" : {number}, "percentage" : {number} \}}'
    failures.check(lines[:2] == ["[", '  { "count" : 3 }'] and lines[-1] == "]" and len(lines) == len(profile) + 2 and
                   all(re.fullmatch(layer_line, line) for line in lines[2:-1]), f"lines of --exportProfile: {lines}")
    told = [line.split("[I] ", 1)[1] for line in run.out.splitlines() if "[I] " in line]
    told = told[told.index("=== Profile (3 iterations ) ===") + 1:]
    table = told[:next(i for i, line in enumerate(told) if line.endswith("   Total")) + 1]
    failures.check(table[0] == "    Time(ms)    Avg.(ms)  Median(ms)   Time(%)   Layer" and
                   all(re.fullmatch(r" {4,}\d+\.\d\d +\d+\.\d{4} +\d+\.\d{4} +\d+\.\d   \S.*", row) and row[46:49] == "   " for row in table[1:]),
                   f"--dumpProfile: {table}")
    rows = {row[49:]: [float(x) for x in row[:46].split()] for row in table[1:]}
    want = {layer["name"]: layer for layer in profile[1:] if layer["timeMs"] > 0}
    failures.check(list(rows) == [*want, "Total"] and rows["Total"][3] == 100 and
                   all(abs(rows[name][0] - want[name]["timeMs"]) <= 0.006 and abs(rows[name][1] - want[name]["averageMs"]) <= 6e-5 and
                       abs(rows[name][2] - want[name]["medianMs"]) <= 6e-5 and abs(rows[name][3] - want[name]["percentage"]) <= 0.06
                       for name in want), f"{rows}, {want}")
    total = sum(layer["timeMs"] for layer in profile[1:])
    failures.check(all(math.isclose(layer["averageMs"], layer["timeMs"] / 3, rel_tol=1e-4) and
                       math.isclose(layer["percentage"], 100 * layer["timeMs"] / total, rel_tol=1e-3) for layer in profile[1:]), f"{profile}")


def test_layer_info(bench, failures):
    """Section 9: the keys of a convolution and a pooling."""
    run = bench(LAYERS)
    conv, pool = run.json("l.json")["Layers"][:2]
    own = set("Kernel PaddingMode PrePadding PostPadding Stride Dilation OutMaps Groups Weights Bias HasBias HasReLU HasSparseWeights "
              "Activation".split())
    every = set("Name LayerType Inputs Outputs ParameterType TacticName TacticValue StreamId Metadata Assay".split())
    failures.check(own | every == set(conv), f"keys of a convolution: {sorted((own | every) ^ set(conv))}")
    failures.check(every <= set(pool), f"keys of a pooling: {sorted(pool)}")
    failures.check(conv["Kernel"] == [3, 3] and conv["OutMaps"] == 6 and conv["Groups"] == 1 and conv["Weights"] == {"Type": "FP32", "Count": 162} and
                   conv["HasReLU"] == 1 and set(conv["Inputs"][0]) == {"Name", "Location", "Dimensions", "Format/Datatype"} and
                   conv["Inputs"][0]["Location"] in ("Host", "Device") and conv["Inputs"][0]["Format/Datatype"] == "Row major linear FP32" and
                   conv["Metadata"] == "\x1e".join(f"[ONNX Layer: {name}]" for name in ("conv", "bn", "relu")), f"{conv}")


def test_merged(bench, failures):
    """Section 8: builds that write one timing cache at the same time keep each other's entries."""
    models = [f"{bench.names['m']}/cnn.onnx", f"{bench.names['m']}/quantized.onnx", f"{bench.names['m']}/external.onnx",
              f"{bench.names['d']}/rows.onnx"]
    shape = {"external.onnx": ["--shapes=x:3x16"], "rows.onnx": ["--shapes=x:3x16"]}
    line = [[bench.program, "trtexec", f"--onnx={m}", "--skipInference", "--builderOptimizationLevel=5", "--timingCacheFile=merged.cache",
             *shape.get(os.path.basename(m), [])] for m in models]
    for p in [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for words in line]:
        failures.check(p.wait() == 0, "builds with one timing cache")
    for words in line:
        p = subprocess.run([*words, "--errorOnTimingCacheMiss"], capture_output=True, text=True)
        failures.check(p.returncode == 0, f"{words}: entries of a build at the same time are lost: {p.stderr}")


def test_loaded(bench, flags, build, failures):
    """Section 2: every flag of a build beside a plan that is there says that it has no effect, or that it cannot be."""
    # These mean something then, too.
    beside = {"profilingVerbosity", "skipInference", "getPlanVersionOnly", "refit", "tempdir", "tempfileControls"}
    needs = {"minShapesCalib": " --optShapesCalib=x:1 --maxShapesCalib=x:1", "maxShapesCalib": " --optShapesCalib=x:1 --minShapesCalib=x:1",
             "runtimePlatform": "=WindowsAMD64", "markDebug": "=n", "precisionConstraints": "=obey", "profile": "=0", "calibProfile": "=0",
             "memPoolSize": "=workspace:1"}
    asked = [row for row in flags if row[3] == "WORKS" and row[0] in build - beside]
    failures.check(len(asked) > 30, f"only {len(asked)} flags of a build were found")
    for id, name, kind, _, value in asked:
        word = "" if kind == "SWITCH" else "=" + (value.split("|")[0] if kind == "CHOICE" else "1")
        more = needs.get(id, "")
        run = bench(f"{RUN}--{name}{more if more.startswith('=') else word + more}")
        good = run.code == 0 and f"[W] --{name} has no effect with --loadEngine" in run.err
        refused = run.code == 1 and ("are for a build" in run.err or "do not go together" in run.err or "is not supported" in run.err)
        failures.check(good or refused, f"--{name} beside --loadEngine: {run.code}, {run.err!r}")


def test_strict(bench, failures):
    """Section 5: what --show-native prints for obey takes the same plan."""
    line = "--onnx={d}/chain.onnx --skipInference --fp16 --precisionConstraints=obey --layerPrecisions=b:fp32 --saveEngine=s.plan"
    native = re.search(r"(?m)^assay (build .*--strict)$", bench(line + " --show-native").out)
    p = native and subprocess.run([bench.program, *native[1].replace("'", "").split()], capture_output=True, text=True)
    failures.check(bench(line).code == 0 and p and p.returncode == 0, f"--strict of what obey builds: {native}, {p}")


def test_unwritable(bench, failures):
    """A file that cannot be written fails, and is named with its flag."""
    for flag in "exportTimes", "exportOutput", "exportProfile", "exportLayerInfo":
        run = bench(f"{RUN}--{flag}=no/such/folder")
        failures.check(run.code == 1 and re.search(rf"\[E\] .*--{flag}.*'no/such/folder'", run.err), f"--{flag}: {run.code}, {run.err!r}")


def build_flags(path):
    with open(path) as f:
        return set(re.findall(r"^TRT_FLAG\((\w+), \w+, \w+, BUILD,", f.read(), re.M))


def main():
    program, models, table = (os.path.abspath(a) for a in sys.argv[1:4])
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["HOME"] = folder
        bench = Bench(program, models, folder)
        write_data(bench)
        write_rule_data(bench)
        for test in test_rules, test_random, test_numbers, test_profile, test_layer_info, test_merged, test_strict, test_unwritable:
            test(bench, failures)
        test_loaded(bench, read_flags(table), build_flags(table), failures)
        os.chdir("/")
    print(f"{len(RULES)} rules, {len(bench.runs)} runs, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
