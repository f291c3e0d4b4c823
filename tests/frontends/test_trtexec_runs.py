#!/usr/bin/env python3
"""assay trtexec: what runs print and write, and that every flag of the table does what its level says.

    test_trtexec_runs.py ASSAY MODELS FLAGS

MODELS is tests/models/small, FLAGS the table (flags.inc).
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.reference
from onnx import helper, numpy_helper

QUICK = "--duration=0 --iterations=3 --warmUp=0"
REF_PAIRS = ("--loadEngine=c.plan --accuracyThreshold=2 --accuracyAlgorithm=lInf --refPair=1 --loadInputs=PAIR1 --loadRefOutputs=PAIR1 "
             "--refPair=0 --loadRefOutputs=scores:ones.npy --loadInputs=image:image.npy " + QUICK)
# Arguments ({m}: the models), exit code, patterns of the output and of the error (None: nothing is there but warnings).
ROWS = [
    ("", 0, r"^&&&& RUNNING Assay\.trtexec \[Assay v\d+\] \[b1\] # trtexec\n.*=== Model Options ===.*&&&& PASSED", None),
    ("-h --nonsense", 0, r"=== Build Options ===", None),
    ("--nonsense=5 --onnx={m}/cnn.onnx", 1, r"=== Build Options ===.*&&&& FAILED", r"\[E\] Unknown option: --nonsense 5\n"),
    ("--fp16", 1, "FAILED", r"\[E\] Model missing or format not recognized\n"),
    ("--onnx=nothing.onnx", 1, "FAILED", r"\[E\] .*nothing\.onnx"),
    ("--onnx={m}/cnn.onnx " + QUICK, 0,
     r"(?s)=== Model Options ===.*Format: ONNX.*=== Build Options ===.*=== System Options ===.*=== Inference Options ===.*=== Reporting "
     r"Options ===.*Finished parsing network model\. Parse time: [\d.e-]+\n.*Engine built in [\d.e-]+ sec\.\n"
     r".*Using random values for input image\n.*Input binding for image with dimensions 1x3x8x8 and type fp32 is created\.\n"
     r".*Output binding for scores with dimensions [\dx]+ and type fp32 is created\.\n.*Starting inference\n"
     r".*Warmup completed \d+ queries over 0 ms\n.*Timing trace has [3-9] queries over [\d.e-]+ s\n"
     r".*=== Trace details ===\n.*Trace averages of 10 runs:\n.*=== Performance summary ===\n"
     r".*\[I\] Throughput: [\d.e+]+ qps\n.*\[I\] Latency: min = [\d.e-]+ ms, max = [\d.e-]+ ms, mean = [\d.e-]+ ms, median = [\d.e-]+ ms, "
     r"percentile\(90%\) = [\d.e-]+ ms, percentile\(95%\) = [\d.e-]+ ms, percentile\(99%\) = [\d.e-]+ ms\n.*\[I\] Enqueue Time: min = "
     r".*\[I\] H2D Latency: min = 0 ms.*\[I\] GPU Compute Time: min = .*\[I\] D2H Latency: min = 0 ms.*\[I\] Total Host Walltime: "
     r".*\[I\] Total GPU Compute Time: .*\n&&&& PASSED", None),
    # shapes
    ("--onnx={m}/cnn.onnx --shapes=image:1x3x8x8", 1, "FAILED", "static model does not take explicit shapes"),
    ("--onnx={m}/external.onnx " + QUICK, 0, "binding for x with dimensions 1x16", "Dynamic dimensions required for input: x, but no shapes were provided. Automatically overriding shape to: 1x16\n"),
    ("--onnx={m}/external.onnx --minShapes=x:[1,16] --skipInference", 1, "FAILED", r"\[E\] --minShapes: '\[1,16\]' of 'x': .*: --minShapes=x:1x16\n"),
    ("--onnx={m}/external.onnx --profile=0 --maxShapes=x:4x16,y:(1,2 --skipInference", 1, "FAILED", r"\[E\] --maxShapes: '\(1,2' of 'y': .*--maxShapes=y:1x2\n"),
    ("--onnx={m}/external.onnx --shapes=x:[4,16 --skipInference", 1, "FAILED", r"\[E\] --shapes: '\[4,16' of 'x'"),
    ("--onnx={m}/external.onnx --int8 --optShapesCalib=x:[4,16] --skipInference", 1, "FAILED", r"\[E\] --optShapesCalib: '\[4,16\]' of 'x'"),
    ("--onnx={m}/external.onnx --shapes=x:3x16 " + QUICK, 0, "binding for x with dimensions 3x16", None),
    ("--onnx={m}/external.onnx --shapes=y*:3x16", 1, "FAILED", "no input 'y\\*'"),
    ("--onnx={m}/external.onnx --shapes=x:3x17", 1, "FAILED", "dimension 1 is fixed to 16 and cannot be 17"),
    ("--onnx={m}/external.onnx --shapes=x:3", 1, "FAILED", "'3' has 1 dimensions"),
    ("--onnx={m}/external.onnx --minShapes=x:3x16 --maxShapes=x:2x16", 1, "FAILED", "dimension 0: --minShapes has 3"),
    ("--onnx={m}/external.onnx --minShapes=x:1x16 --optShapes=x:2x16 --maxShapes=x:4x16 --shapes=x:5x16 " + QUICK, 1, "FAILED",
     r"input 'x' is \[5, 16\]; the plan was built for \[1, 16\] to \[4, 16\]"),
    ("--onnx={m}/external.onnx --minShapes=x:1x16 --maxShapes=x:4x16 --saveEngine=x.plan --dumpOptimizationProfile " + QUICK, 0,
     r"Model input x \(profile 0\): min=1x16, opt=4x16, max=4x16\n", "--optShapes has no shape of input 'x': that of --maxShapes is taken"),
    ("--loadEngine=x.plan --shapes=x:2x16 " + QUICK, 0, "binding for x with dimensions 2x16", None),
    ("--loadEngine=x.plan --optShapes=x:2x16 " + QUICK, 1, "FAILED", "are for a build"),
    # inputs that hold a shape
    ("--onnx=expand.onnx " + QUICK, 0, "binding for y with dimensions 1x1 ", r"Values missing for input: s, which holds a shape, .* Automatically setting to: \[1,1\]"),
    ("--onnx=expand.onnx --shapes=x:2x1,s:2x5 " + QUICK, 0, "(?s)Using the values 2x5 of its shape for input s.*binding for y with dimensions 2x5 ", None),
    ("--onnx=expand.onnx --shapes=x:2x1,s:2 " + QUICK, 1, "FAILED", "input 's' holds a shape of 2 numbers.*'2' has 1"),
    ("--onnx=expand.onnx --minShapes=x:1x1,s:1x1 --optShapes=x:2x1,s:2x3 --maxShapes=x:4x1,s:4x8 --saveEngine=e.plan --skipInference", 0, "PASSED", None),
    ("--loadEngine=e.plan --dumpOptimizationProfile " + QUICK, 0,
     r"(?s)Model input s \(profile 0\): min=1x1, opt=2x3, max=4x8\n.*binding for y with dimensions 2x3 ", None),
    ("--loadEngine=e.plan --shapes=x:4x1,s:4x8 " + QUICK, 0, "binding for y with dimensions 4x8 ", None),
    ("--loadEngine=e.plan --shapes=s:2x9 " + QUICK, 1, "FAILED", r"input 's' is 2x9; profile 0 was built for values \[1, 1\] to \[4, 8\]"),
    ("--loadEngine=e.plan --loadInputs=s:shape.npy " + QUICK, 1, "FAILED", r"input 's' is values \[2, 9\]; the plan was built for values \[1, 1\] to \[4, 8\]"),
    ("--onnx=expand.onnx --shapes=x:2x1,s:2x5 --show-native", 0, r"--profile 's=\[2,5\]:\[2,5\]:\[2,5\]'", None),
    # several profiles
    ("--onnx={m}/external.onnx --profile=1 --minShapes=x:8x16 --maxShapes=x:16x16 --profile=0 --minShapes=x:1x16 --maxShapes=x:4x16 --saveEngine=two.plan "
     "--skipInference --dumpOptimizationProfile", 0, r"\(profile 0\): min=1x16, opt=4x16, max=4x16\n.*\(profile 1\): min=8x16, opt=16x16, max=16x16\n",
     "--optShapes has no shape"),
    ("--loadEngine=two.plan " + QUICK, 0, "binding for x with dimensions 4x16", "has 2 profiles, and --useProfile is not given"),
    ("--loadEngine=two.plan --useProfile=1 --dumpProfile " + QUICK, 0, r"binding for x with dimensions 16x16.*\[profile 1\]", None),
    ("--loadEngine=two.plan --useProfile=1 --shapes=x:9x16 " + QUICK, 0, "binding for x with dimensions 9x16", None),
    ("--loadEngine=two.plan --useProfile=0 --shapes=x:9x16 " + QUICK, 1, "FAILED", r"input 'x' is \[9, 16\]; the plan was built for \[1, 16\] to \[4, 16\]"),
    ("--loadEngine=two.plan --useProfile=2 " + QUICK, 1, "FAILED", "--useProfile=2: the highest profile is number 1"),
    # memory of contexts: runs that come later need no more, or do
    ("--loadEngine=two.plan --allocationStrategy=static " + QUICK, 0,
     r"creation: \+0\.\d+ MiB, now: (\S+) MiB \(--allocationStrategy=static\)\n.*Allocation by the runs: \+0 MiB, now: \1 MiB", None),
    ("--loadEngine=two.plan --allocationStrategy=profile --useProfile=1 " + QUICK, 0, r"creation: \+0\.\d+ MiB, now: (\S+) MiB .*the runs: \+0 MiB, now: \1 MiB", None),
    ("--loadEngine=two.plan --allocationStrategy=runtime --useProfile=1 " + QUICK, 0, r"creation: \+0 MiB, now: 0 MiB .*the runs: \+0\.\d+ MiB", None),
    ("--loadEngine=two.plan --allocationStrategy=profile --useProfile=1 --skipInference --show-native", 0, "&&&& PASSED", None),
    ("--loadEngine=two.plan --allocationStrategy=static --show-native", 0, "assay bench two.plan .* --allocation static", None),
    # debug tensors, and what a plan keeps
    ("--onnx={m}/cnn.onnx --markDebug=nothing " + QUICK, 1, "FAILED", "--markDebug: .*the model has no value 'nothing'"),
    ("--onnx={m}/cnn.onnx --markDebug=n --saveDebugTensors=h:h.raw " + QUICK, 1, "FAILED", "--saveDebugTensors: 'h' is not marked"),
    ("--onnx={m}/cnn.onnx --saveAllDebugTensors=raw " + QUICK, 1, "FAILED", "--saveAllDebugTensors: no value is marked"),
    ("--onnx={m}/cnn.onnx --markDebug=n --saveAllDebugTensors=pickle " + QUICK, 1, "FAILED", "'pickle' is not a format"),
    ("--onnx={m}/cnn.onnx --markDebug=n,q --saveEngine=marked.plan --profilingVerbosity=none --show-native", 0,
     r"assay edit extract \S+cnn.onnx --output model.debug.onnx --to scores --to n --to q\nassay build model.debug.onnx ", None),
    ("--onnx={m}/cnn.onnx --markDebug=n,q --saveEngine=marked.plan --profilingVerbosity=none --skipInference", 0, "PASSED", None),
    ("--loadEngine=marked.plan --dumpLayerInfo --profilingVerbosity=detailed " + QUICK, 0, "--profilingVerbosity=none: no layers are told",
     "--profilingVerbosity has no effect with --loadEngine: the plan was built with none"),
    ("--loadEngine=marked.plan --refitFromOnnx={m}/cnn.onnx --saveDebugTensors=n:n.raw,q:q.raw " + QUICK, 0,
     r"(?s)Refitted 0 of.*Output binding for scores(?!.*Output binding).*Wrote n.raw", None),
    # plans
    ("--onnx={m}/cnn.onnx --saveEngine=c.plan --skipInference", 0, r"(?s)Created engine with size: [\d.]+ MiB.*Skipped inference phase", None),
    ("--loadEngine=c.plan " + QUICK, 0, r"(?s)Engine loaded in [\d.e-]+ sec\..*Throughput", None),
    ("--loadEngine=c.plan --shapes=image:1x3x8x8 " + QUICK, 0, "PASSED", None),
    ("--loadEngine=c.plan --shapes=image:2x3x8x8 " + QUICK, 1, "FAILED", "dimension 0 is fixed to 1"),
    ("--loadEngine=c.plan --fp16 " + QUICK, 0, "PASSED", r"\[W\] --fp16 has no effect with --loadEngine"),
    ("--loadEngine=rt.plan", 1, "FAILED", "'rt.plan' is a plan of TensorRT"),
    ("--loadEngine={m}/cnn.onnx", 1, "FAILED", r"\[E\]"),
    # precision
    ("--onnx={m}/cnn.onnx --fp16 --exportOutput=o.json " + QUICK, 0, "PASSED", None),
    ("--onnx={m}/cnn.onnx --layerPrecisions=conv:fp16 " + QUICK, 0, "PASSED", "have no effect without --precisionConstraints"),
    ("--onnx={m}/cnn.onnx --precisionConstraints=obey " + QUICK, 0, "PASSED", "--precisionConstraints=obey has no effect"),
    ("--onnx={m}/cnn.onnx --fp16 --precisionConstraints=prefer --layerPrecisions=norm/*:fp32,konv:fp32 " + QUICK, 0,
     "Set layer norm/square to precision fp32", "'konv' is the name of no layer"),
    ("--onnx={m}/cnn.onnx --fp16 --precisionConstraints=prefer --layerPrecisions='norm/square':fp32,norm/*:fp16 --show-native", 0,
     r"--layer-precision .*norm/scale:fp16,norm/square:fp32,norm/mean:fp16", None),
    ("--onnx={m}/cnn.onnx --fp16 --precisionConstraints=prefer --layerPrecisions=conv:fp16,conv:fp32 --show-native", 0,
     r"--layer-precision conv:fp32\n", None),
    ("--onnx={m}/cnn.onnx --precisionConstraints=obey --layerPrecisions=conv:fp16 " + QUICK, 1, "FAILED", "'conv' cannot be in fp16: --fp16 is not given"),
    ("--onnx={m}/cnn.onnx --precisionConstraints=prefer --layerPrecisions=conv:fp16 --show-native", 0, r"(?!.*layer-precision)", "conv is not in fp16: --fp16 is not given"),
    ("--onnx={m}/cnn.onnx --fp16 --precisionConstraints=obey --layerPrecisions=conv:int64 " + QUICK, 1, "FAILED", "'conv' cannot be in int64"),
    ("--onnx={m}/cnn.onnx --precisionConstraints=obey --layerPrecisions=conv:fp12", 1, "FAILED", "'fp12' of 'conv' is not a type"),
    ("--onnx={m}/cnn.onnx --precisionConstraints=obey --layerPrecisions=*n*:fp32", 1, "FAILED", "more than one '\\*'"),
    ("--onnx={m}/cnn.onnx --fp16 --precisionConstraints=obey --layerPrecisions=conv:fp16 --layerOutputTypes=conv:fp32 " + QUICK, 1, "FAILED", "'conv' cannot be in fp16: Assay stores"),
    ("--onnx={m}/cnn.onnx --fp16 --precisionConstraints=prefer --layerOutputTypes=conv:fp32+fp16 " + QUICK, 1, "FAILED", "'conv' has 1 outputs and 2 types"),
    ("--onnx={m}/cnn.onnx --stronglyTyped --bf16 --show-native", 0, r"assay build \S+cnn.onnx --output model.plan\n", r"--bf16 is switched off"),
    ("--onnx={m}/cnn.onnx --int8 " + QUICK, 0, "PASSED", "its results mean nothing"),
    ("--onnx={m}/cnn.onnx --int8 --inputIOFormats=fp16:chw --show-native", 0,
     r"assay edit quantize \S+cnn.onnx --output model.int8.onnx\nassay edit set model.int8.onnx --output model.formats.onnx --type image=float16\n"
     r"assay build model.formats.onnx --output model.plan --precision int8", "mean nothing"),
    ("--onnx={m}/cnn.onnx --int8 --calib=good.cache " + QUICK, 0, r"(?s)has 1 scales, 1 of them.*using calibration cache good\.cache: it gave 1 of 1\n(?!.*Scale of)", r"--calib: '\S+' \(MatMul\) is left: no scale is given for its input 'd'"),
    ("--onnx={m}/cnn.onnx --int8 --calib=good.cache --show-native", 0, "assay edit quantize \\S+cnn.onnx --output model.int8.onnx --calib good.cache\n", "is left"),
    ("--onnx={m}/cnn.onnx --int8 --calib=empty.cache", 1, "FAILED", "--calib=empty.cache has no scales"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=int8:chw --calib=good.cache " + QUICK, 0, "binding for image with dimensions 1x3x8x8 and type int8", "not used without --int8"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=int8:chw --int8 --calib=good.cache --show-native", 0, r"--calib good.cache\nassay edit set .*--type 'image=int8\*0.00787593[0-9]*'", "is left"),
    ("--onnx={m}/cnn.onnx --int8 --calib=bad.cache", 1, "FAILED", "bad.cache': line 2 of the calibration cache"),
    ("--onnx={m}/cnn.onnx --int8 --calib=nothing.cache", 1, "FAILED", "nothing.cache"),
    ("--onnx={m}/quantized.onnx --int8 --calib=good.cache " + QUICK, 0, "PASSED", "--calib is not used: the model has Q/DQ nodes, whose scales count. Calibrator won't be used in explicit quantization mode"),
    ("--onnx={m}/cnn.onnx --int8 --calib=good.cache --verbose --skipInference", 0, r"\[V\] Scale of image: 0\.007875[0-9]* \(range 1\.000[0-9]*\)\n", None),
    ("--onnx={m}/cnn.onnx --inputIOFormats=int8:chw", 1, "FAILED", "'image' as int8 needs a scale"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=uint8:chw", 1, "FAILED", "'image' is fp32 in the model, and cannot be handed over as uint8: floats"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp16:chw --outputIOFormats=fp16:chw --saveEngine=h.plan --loadInputs=image:half.npy " + QUICK, 0,
     r"(?s)binding for image with dimensions 1x3x8x8 and type fp16.*binding for scores with dimensions \S+ and type fp16", None),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp16:chw --show-native", 0, r"edit set \S+ --output model.formats.onnx --type image=float16\nassay build model.formats.onnx ", None),
    ("--onnx={m}/cnn.onnx --inputIOFormats=chw+hwc --outputIOFormats=fp32:chw " + QUICK, 0, "type fp32 is created", None),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp16:chw --stronglyTyped", 1, "FAILED", "with --stronglyTyped it cannot be fp16"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp32:chw,fp32:chw", 1, "FAILED", "has 2 formats; the model has 1"),
    # layouts
    ("--onnx={m}/cnn.onnx --outputIOFormats=fp32:hwc8", 1, "FAILED", r"--outputIOFormats: 'scores' cannot be in layout hwc8: it has fewer than 3 dimensions \(C, H, W\)"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=dhwc+dhwc8 --outputIOFormats=cdhw32+chw", 0, "Input image is handed over in layout dhwc,", None),
    ("--onnx=rows.onnx --optShapes=x:2x16 --inputIOFormats=chw4+dhwc", 1, "FAILED", "'x' cannot be in layout chw4.dhwc: it has fewer than 3 dimensions"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp32:dla_hwc4", 1, "FAILED", "--inputIOFormats: 'dla_hwc4': there is no DLA; use chw"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp32:nhwc", 1, "FAILED", "'nhwc' is not a layout: chw, chw2, chw4, chw16, chw32, hwc, hwc8, hwc16, dhwc, dhwc8 or cdhw32"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp32:hwc8 --loadInputs=image:image.bin " + QUICK, 1, "FAILED",
     r"--loadInputs: 'image.bin' has 768 bytes; input 'image' takes 2048: values of fp32 in layout hwc8 \(rows would take 768\)"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp16:chw16+chw --saveEngine=chw16.plan --skipInference", 0, "image is handed over in layout chw16, .*is handed over as fp16", None),
    ("--loadEngine=chw16.plan " + QUICK, 0, r"Input binding for image with dimensions 1x3x8x8 and type fp16:chw16 is created\.\n", None),
    ("--loadEngine=chw16.plan --loadInputs=image:half.npy --refitFromOnnx={m}/cnn.onnx " + QUICK, 0, "type fp16:chw16 is created", None),
    ("--loadEngine=chw16.plan --directIO " + QUICK, 0, "PASSED", "--directIO has no effect with --loadEngine"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=hwc --directIO " + QUICK, 1, "FAILED", "--directIO: 'image' in layout hwc would be rearranged: leave the layout out"),
    ("--onnx={m}/cnn.onnx --inputIOFormats=hwc+chw --directIO " + QUICK, 0, "type fp32 is created", None),
    ("--onnx={m}/cnn.onnx --inputIOFormats=hwc --show-native", 0, "# input 'image': trtexec's raw files are in layout hwc; these commands read and write rows\nassay build", None),
    # inputs
    ("--loadEngine=c.plan --loadInputs='image':image.bin,image:image.npy " + QUICK, 0, "Using values loaded from image.npy for input image", None),
    ("--loadEngine=c.plan --loadInputs=im*:image.npz " + QUICK, 0, "Using values loaded from image.npz", None),
    ("--loadEngine=c.plan --loadInputs=image:short.bin " + QUICK, 1, "FAILED", "'short.bin' has 12 bytes; input 'image' takes 768"),
    ("--loadEngine=c.plan --loadInputs=picture:image.bin " + QUICK, 1, "FAILED", "no input 'picture'"),
    ("--loadEngine=c.plan --loadInputs=image:nothing.bin " + QUICK, 1, "FAILED", "nothing.bin"),
    ("--onnx=whole.onnx --loadInputs=x:wide.bin --dumpOutput " + QUICK, 0, r"(?s)holds int64 values.*y: \(3\)\n\S+ \[I\] 1 -2 3\n", None),
    ("--onnx=whole.onnx --loadInputs=x:far.bin " + QUICK, 1, "FAILED", "4294967296 does not fit the int32"),
    # fp8 and int4
    ("--onnx=fp8.onnx --fp8 " + QUICK, 0, r"\d of \d+ layers have no kernel and are emulated, slowly, such as \S", r"(?s)--fp8 has no effect in Assay: fp8 is where (?!.*--fp8: )"),
    ("--onnx=int4.onnx --int4 --fp16 " + QUICK, 0, r"(?s)^(?!.*are emulated).*PASSED", r"(?s)--int4 has no effect in Assay: int4 is where (?!.*--int4: )"),
    ("--onnx=int4.onnx --fp8 --skipInference", 0, "PASSED", r"--fp8: the model has no Q/DQ nodes of fp8 .*'assay edit quantize MODEL --format fp8"),
    ("--onnx=fp8.onnx --int4 --skipInference", 0, "PASSED", r"--int4: the model has no Q/DQ nodes of int4.*'assay edit quantize MODEL --format int4"),
    ("--onnx={m}/cnn.onnx --fp8 --int8", 1, "FAILED", "--fp8 and --int8 do not go together"),
    ("--onnx=fp8.onnx --int8 --skipInference", 0, "PASSED", "--int8: the model's Q/DQ nodes are of other types"),
    ("--onnx=fp8.onnx --fp8 --int4 --stronglyTyped --skipInference", 0, "PASSED", "(?s)--fp8 is switched off.*--int4 is switched off"),
    ("--onnx=fp8.onnx --fp8 --layerPrecisions=conv:fp8 --precisionConstraints=obey", 1, "FAILED", "'conv' cannot be in fp8e4m3: .*where the model's Q/DQ nodes say so"),
    ("--onnx=fp8.onnx --layerPrecisions=conv:fp8 --precisionConstraints=obey", 1, "FAILED", "'conv' cannot be in fp8e4m3: --fp8 is not given"),
    ("--onnx=fp8.onnx --fp8 --show-native", 0, r"\nassay build fp8.onnx --output model.plan\n", None),
    # sparsity
    ("--onnx=fp8.onnx --sparsity=force " + QUICK, 0, "PASSED", r"--sparsity=force is deprecated and changes results: .* of 1 weights the two smallest became 0 \(1 others stay"),
    ("--onnx={m}/cnn.onnx --sparsity=force " + QUICK, 0, "PASSED", "--sparsity=force changes nothing: none of the 2 weights"),
    ("--onnx=rows.onnx --sparsity=force --int8 --show-native", 0,
     r"assay polygraphy surgeon prune rows.onnx --output model.sparse.onnx\nassay edit quantize model.sparse.onnx --output model.int8.onnx\n"
     r"assay build model.int8.onnx ", "changes results"),
    ("--loadEngine=c.plan --sparsity=force --fp8 " + QUICK, 0, "PASSED", "(?s)--fp8 has no effect in Assay.*--sparsity has no effect with --loadEngine"),
    # shapes of calibration
    ("--onnx=rows.onnx --int8 --optShapes=x:2x16 --optShapesCalib=x:3x16 --skipInference", 0, "PASSED", "mean nothing"),
    ("--onnx=rows.onnx --int8 --optShapes=x:2x16 --optShapesCalib=y:3x16 --skipInference", 1, "FAILED", "--optShapesCalib: the model has no input 'y'"),
    ("--onnx=rows.onnx --int8 --optShapes=x:2x16 --optShapesCalib=x:3x17 --skipInference", 1, "FAILED", "--optShapesCalib: input 'x' .*cannot be 17"),
    ("--onnx=rows.onnx --int8 --optShapes=x:2x16 --minShapesCalib=x:3x16 --skipInference", 1, "FAILED", "give --optShapesCalib alone, or all three"),
    ("--onnx=rows.onnx --int8 --optShapes=x:2x16 --minShapesCalib=x:3x16 --optShapesCalib=x:2x16 --maxShapesCalib=x:4x16 --skipInference", 1, "FAILED",
     "--optShapesCalib: input 'x', dimension 0: 2 is less than the 3 of --minShapesCalib"),
    ("--onnx=rows.onnx --optShapesCalib=x:3x16 --skipInference", 0, "PASSED", "Shapes of calibration have no effect"),
    # what a plan with other types at its ends is refitted from
    ("--onnx={m}/cnn.onnx --inputIOFormats=fp16:chw --saveEngine=fp16_in.plan --skipInference", 0, "PASSED", None),
    ("--loadEngine=fp16_in.plan --refitFromOnnx={m}/cnn.onnx " + QUICK, 0, "Refitted 0 of", None),
    # plans without weights
    ("--onnx={m}/cnn.onnx --stripWeights --saveEngine=stripped.plan " + QUICK, 0,
     r"(?s)The engine is stripped: --loadEngine=stripped.plan --refitFromOnnx=.*Skipped inference phase since the engine is stripped", None),
    ("--onnx={m}/cnn.onnx --weightless --skipInference", 0, "stripWeights: Enabled", "--weightless is deprecated: use --stripWeights"),
    ("--loadEngine=stripped.plan " + QUICK, 1, "FAILED", r"the plan is stripped, and its \d+ weights \(.*\) are not in it: add --refitFromOnnx=MODEL.onnx, or --skip"),
    ("--loadEngine=stripped.plan --dumpLayerInfo --dumpRefit --skipInference", 0, r"(?s)conv Kernel\n.*Layers:\n\S+ \[I\] conv", None),
    ("--loadEngine=stripped.plan --refitFromOnnx={m}/cnn.onnx --timeRefit " + QUICK, 0,
     r"(?s)Put (\d+) missing weights of \d+ in from \S+, 0 other than at the build.*Engine refitted in.*Throughput", None),
    ("--loadEngine=stripped.plan --refitFromOnnx=other.onnx " + QUICK, 1, "FAILED",
     "--refitFromOnnx=other.onnx: weight 'head' is not the one that the plan was built with.*--stripAllWeights"),
    ("--loadEngine=stripped.plan --stripWeights --skipInference", 0, "PASSED", "--stripWeights has no effect with --loadEngine"),
    ("--onnx={m}/cnn.onnx --stripAllWeights --saveEngine=open.plan --skipInference", 0, "PASSED", None),
    ("--loadEngine=open.plan --refitFromOnnx=other.onnx " + QUICK, 0, "missing weights of \\d+ in from other.onnx, 1 other than at the build", None),
    ("--onnx={m}/cnn.onnx --refit --stripWeights --show-native", 0, "assay build \\S+ --output model.plan --strip-weights --refittable\n&&&&", None),
    # reference outputs
    ("--loadEngine=c.plan --loadRefOutputs=scores:ones.npy " + QUICK, 1, "FAILED", "needs --accuracyThreshold=X"),
    ("--loadEngine=c.plan --loadRefOutputs=sores:ones.npy --accuracyThreshold=1 " + QUICK, 1, "FAILED", "no output 'sores'"),
    ("--loadEngine=c.plan --loadRefOutputs=sc*:ones.npy --accuracyThreshold=0.5 " + QUICK, 1, "scores: l0 = 1 ", "'scores' is too far from its reference: l0 = 1 is above"),
    ("--loadEngine=c.plan --loadRefOutputs=scores:ones.npy --accuracyThreshold=1 --accuracyAlgorithm=l1 --atol=1 " + QUICK, 1, "FAILED", "--atol is of --accuracyAlgorithm=l0"),
    ("--loadEngine=c.plan --accuracyThreshold=1 " + QUICK, 1, "FAILED", "--accuracyThreshold needs --loadRefOutputs"),
    (REF_PAIRS.replace("PAIR1", "image:image.bin", 1).replace("PAIR1", "scores:ones.npy"), 0, r"(?s)Accuracy of output scores.*Accuracy of output scores", None),
    (REF_PAIRS.replace("PAIR1", "image:image.bin", 1).replace("PAIR1", "scores:far.npy"), 1, "FAILED", "--refPair=1: output 'scores' is too far|output 'scores' is too far"),
    ("--loadEngine=c.plan --refPair=0 --loadInputs=image:image.bin --loadRefOutputs=scores:ones.npy --accuracyThreshold=2 " + QUICK, 1, "FAILED", "there are two pairs at least"),
    ("--loadEngine=c.plan --refPair=0 --loadInputs=image:image.bin --refPair=1 --accuracyThreshold=2 " + QUICK, 1, "FAILED", "number 0 of 2 is missing, or is not followed by"),
    ("--loadEngine=c.plan --refPair=0 --accuracyThreshold=2 --loadInputs=image:image.bin " + QUICK, 1, "FAILED", "it has to follow its --refPair directly"),
    # natively
    ("--onnx={m}/cnn.onnx --loadInputs=image:i.npz --exportOutput=o.json --exportProfile=p.json --exportTimes=t.json --show-native", 0,
     r"assay bench model.plan --inputs image=i.npz --seconds 3 --warm-up 0.2 --layers --trace p.json --latencies > t.json\n"
     r"assay run model.plan --inputs image=i.npz --save-outputs outputs.trtexec.json\n", None),
    ("--onnx={m}/cnn.onnx --fp16 --precisionConstraints=obey --layerPrecisions=conv:fp32 --skipInference --show-native", 0, "--layer-precision conv:fp32 --strict\n", None),
    # caches
    ("--onnx={m}/cnn.onnx --builderOptimizationLevel=5 --errorOnTimingCacheMiss " + QUICK, 1, "FAILED", "--errorOnTimingCacheMiss: kernels"),
    ("--onnx={m}/cnn.onnx --timingCacheFile=t.cache " + QUICK, 0, r"(?s)^(?!.*Loaded).*Saved \d+ bytes of timing cache to t\.cache\n", None),
    ("--onnx={m}/cnn.onnx --builderOptimizationLevel=5 --timingCacheFile=t.cache " + QUICK, 0,
     r"Loaded \d+ bytes of timing cache from t\.cache: kernels that it did not have were timed\n", None),
    ("--onnx={m}/cnn.onnx --builderOptimizationLevel=5 --timingCacheFile=t.cache --errorOnTimingCacheMiss " + QUICK, 0,
     r"Loaded \d+ bytes of timing cache from t\.cache: no kernel had to be timed\n", None),
    ("--onnx={m}/cnn.onnx --timingCacheFile=rt.plan " + QUICK, 0, "PASSED", "'rt.plan' is not a timing cache of Assay's"),
    ("--onnx={m}/cnn.onnx --avgTiming=0", 1, "FAILED", "--avgTiming=0: it is 1 to"),
    ("--onnx={m}/cnn.onnx --memPoolSize=workspace:16 --show-native", 0, "--max-scratch 16777216\n", None),
    ("--onnx={m}/cnn.onnx --tacticSources=+OWN,-own", 1, "FAILED", "OWN is on and off"),
    ("--onnx={m}/cnn.onnx --tacticSources=-OWN,-ONEDNN", 1, "FAILED", "no source is left"),
    ("--onnx={m}/cnn.onnx --tacticSources=-CUDNN " + QUICK, 0, "PASSED", "--tacticSources=-CUDNN has no effect"),
    ("--loadEngine=c.plan --refitFromOnnx={m}/external.onnx", 1, "FAILED", "--refitFromOnnx="),
    # temporary files
    ("--onnx={m}/cnn.onnx --tempdir=. --tempfileControls=temporary:deny,in_memory:allow --saveEngine=t.plan --skipInference", 0, "Created engine with size", None),
    ("--onnx={m}/cnn.onnx --tempdir=nowhere", 1, "FAILED", "--tempdir=nowhere: there is no such folder"),
    ("--onnx={m}/cnn.onnx --tempdir=rt.plan", 1, "FAILED", "--tempdir=rt.plan: it is not a folder"),
    ("--onnx={m}/cnn.onnx --tempfileControls=in_memory:allow,in_memory:deny", 1, "FAILED", "--tempfileControls: in_memory is given twice"),
    ("--onnx={m}/cnn.onnx --tempfileControls=disk:allow", 1, "FAILED", "'disk' is not a kind of temporary files: in_memory or temporary"),
    ("--onnx={m}/cnn.onnx --tempfileControls=temporary:maybe", 1, "FAILED", "'maybe' of temporary is neither allow nor deny"),
    ("--onnx={m}/cnn.onnx --tempfileControls=temporary", 1, "FAILED", "'temporary' is not NAME:VALUE"),
]
# Inputs of ends.onnx, whose outputs are twice as much: four dimensions, five, three.
ENDS = [("a", onnx.TensorProto.FLOAT, [2, 5, 3, 4]), ("v", onnx.TensorProto.FLOAT, [2, 5, 2, 3, 4]), ("i", onnx.TensorProto.INT32, [7, 3, 2])]
# What they are handed over as, and their outputs.
LAYOUTS = [
    ("fp32:chw4,chw2,chw4", "hwc,fp16:chw32,int32:hwc8"), ("fp16:chw2,fp32:dhwc,chw2", "fp16:hwc8,fp32:dhwc,chw"), ("chw32,cdhw32,hwc", "chw16,dhwc8,chw32"),
    ("hwc8,fp16:dhwc8,int64:hwc16", "bf16:chw4,fp16:cdhw32,int64:chw4"), ("bf16:hwc16,hwc,int32:chw16", "fp32:chw2,hwc16,hwc"),
    ("int8:chw32,fp32:chw16,chw", "int8:hwc,chw,int32:chw2"), ("hwc", "hwc8+chw"),
]

# A flag that works: arguments beside it, and a pattern that its presence makes true and its absence does not.
BUILD = "--onnx={m}/cnn.onnx --skipInference"
RUN = "--loadEngine=c.plan " + QUICK
RANGE = "--onnx={m}/external.onnx --skipInference --dumpOptimizationProfile"
NATIVE = "--onnx={m}/cnn.onnx --show-native"
REF = RUN + " --loadInputs=image:image.bin --loadRefOutputs=scores:ones.npy "
CALIB = "--onnx=rows.onnx --int8 --skipInference"
WORKS = {
    "onnx": ("--skipInference", "={m}/cnn.onnx", "Finished parsing network model"),
    "saveEngine": (BUILD, "=s.plan", "Created engine with size"),
    "minShapes": (RANGE + " --optShapes=x:4x16", "=x:2x16", "min=2x16, opt=4x16"),
    "optShapes": (RANGE + " --maxShapes=x:4x16", "=x:2x16", "opt=2x16, max=4x16"),
    "maxShapes": (RANGE + " --optShapes=x:4x16", "=x:6x16", "opt=4x16, max=6x16"),
    "profile": (RANGE, "=0 --optShapes=x:4x16", "min=4x16"),
    "inputIOFormats": (BUILD, "=fp16:chw", "--inputIOFormats: image is handed over as fp16"),
    "outputIOFormats": (BUILD, "=fp16:chw", "--outputIOFormats: scores is handed over as fp16"),
    "fp16": (NATIVE, "", "--precision fp16"),
    "bf16": (NATIVE, "", "--precision bf16"),
    "int8": ("--onnx={m}/quantized.onnx --show-native", "", "--precision int8"),
    "best": (NATIVE, "", "--precision (bf16|fp16)"),
    "stronglyTyped": (BUILD + " --fp16", "", "--fp16 is switched off"),
    "minShapesCalib": (CALIB + " --optShapesCalib=x:2x16 --maxShapesCalib=x:4x16", "=x:3x16", "dimension 0: 2 is less than the 3 of --minShapesCalib"),
    "optShapesCalib": (CALIB, "=x:2x17", "--optShapesCalib: input 'x'"),
    "maxShapesCalib": (CALIB + " --minShapesCalib=x:1x16 --optShapesCalib=x:2x16", "=x:1x16", "dimension 0: 1 is less than the 2 of --optShapesCalib"),
    "calibProfile": (CALIB, "=1", "--calibProfile=1: the highest profile is number 0"),
    "precisionConstraints": (NATIVE + " --fp16 --layerPrecisions=conv:fp32", "=prefer", "--layer-precision conv:fp32"),
    "fix_file": (NATIVE + " --fp16", "=fix.txt", "--layer-precision conv:fp32"),
    "layerPrecisions": (NATIVE + " --fp16 --precisionConstraints=prefer", "=conv:fp32", "--layer-precision conv:fp32"),
    "layerOutputTypes": (NATIVE + " --fp16 --precisionConstraints=prefer", "=conv:fp32", "Set output 0 of layer conv to type fp32"),
    "calib": (BUILD, "=good.cache", "has 1 scales"),
    "memPoolSize": (BUILD, "=workspace:1B", r"need no more than the workspace of|more scratch are passed by"),
    "workspace": (BUILD, "=16", "Workspace of 16 MiB: kernels that need more scratch are passed by"),
    "avgTiming": (BUILD + " --builderOptimizationLevel=5", "=3", "avgTiming: 3"),
    "profilingVerbosity": (BUILD + " --dumpLayerInfo", "=detailed", '"TacticName"'),
    "timingCacheFile": (NATIVE, "=t.cache", "--timing-cache t.cache"),
    "noBuilderCache": (BUILD + " --builderOptimizationLevel=5 --timingCacheFile=t.cache --errorOnTimingCacheMiss", "", "would have to be timed"),
    "errorOnTimingCacheMiss": (BUILD + " --builderOptimizationLevel=5", "", "would have to be timed"),
    "builderOptimizationLevel": (NATIVE, "=5", "--no-batch-invariant"),
    "heuristic": (BUILD + " --errorOnTimingCacheMiss", "", "heuristic: Enabled"),
    "maxTactics": (BUILD + " --builderOptimizationLevel=5 --errorOnTimingCacheMiss", "=1", "&&&& PASSED"),
    "tacticSources": (NATIVE, "=-ONEDNN", "--tactic-sources assay"),
    "refit": (BUILD, "", "refit: Enabled"),
    "stripWeights": (NATIVE, "", "--strip-weights\n"),
    "stripAllWeights": (NATIVE, "", "--strip-weights --refittable\n"),
    "refitFromOnnx": (RUN, "={m}/cnn.onnx", r"Refitted 0 of \d+ weights"),
    "sparsity": (BUILD, "=enable", "--sparsity=enable has no effect"),
    "runtimePlatform": (BUILD, "=WindowsAMD64", "--runtimePlatform=WindowsAMD64 is not supported"),
    "monitorMemory": (BUILD, "", r"\[MemUsage\] building"),
    "skipInference": ("--onnx={m}/cnn.onnx " + QUICK, "", "Skipped inference phase"),
    "getPlanVersionOnly": (RUN, "", r"Plan was created with Assay version \d+\.\d+"),
    "loadEngine": ("--skipInference", "=c.plan", "Engine loaded in"),
    "device": (BUILD, "=3", "no such device"),
    "compat": (BUILD, "=11", "stronglyTyped: Enabled"),
    "show_native": ("--onnx={m}/cnn.onnx --skipInference", "", "assay build "),
    "shapes": ("--loadEngine=x.plan " + QUICK, "=x:2x16", "dimensions 2x16"),
    "loadInputs": (RUN, "=image:image.bin", "Using values loaded from image.bin"),
    "iterations": ("--loadEngine=c.plan --duration=0 --warmUp=0", "=37", "Timing trace has 37 queries"),
    "duration": ("--loadEngine=c.plan --iterations=1 --warmUp=0", "=0.25", r"Timing trace has \d+ queries over 0\.2[5-9]"),
    "warmUp": ("--loadEngine=c.plan --duration=0 --iterations=2", "=30", "Warmup completed [1-9][0-9]* queries over 30 ms"),
    "sleepTime": (RUN, "=20", "sleepTime: 20"),
    "idleTime": (RUN, "=60", r"Timing trace has 3 queries over 0\.1[2-9]"),
    "infStreams": (RUN, "=2", "Latencies overlap"),
    "timeDeserialize": (RUN, "", r"(?s)Engine deserialized in(?!.*Starting inference)"),
    "timeRefit": (RUN + " --refitFromOnnx={m}/cnn.onnx", "", "Engine refitted in"),
    "separateProfileRun": (RUN + " --dumpProfile", "", r"(?s)Throughput: .*=== Profile"),
    "allocationStrategy": ("--loadEngine=two.plan " + QUICK, "=static", r"\[MemUsageChange\] Allocation by execution context creation: \+0\.0*[1-9]"),
    "useProfile": ("--loadEngine=two.plan " + QUICK, "=1", "binding for x with dimensions 16x16"),
    "markDebug": ("--onnx={m}/cnn.onnx --show-native", "=n", "assay edit extract .* --to scores --to n"),
    "markUnfusedTensorsAsDebugTensors": ("--onnx={m}/cnn.onnx --saveAllDebugTensors=numpy " + QUICK, "", "Wrote scores.npy"),
    "saveDebugTensors": ("--loadEngine=marked.plan " + QUICK, "=n:n.raw", "Wrote n.raw"),
    "saveAllDebugTensors": ("--loadEngine=marked.plan " + QUICK, "=summary,raw", "Wrote q.raw.*Wrote tensor_summary.json"),
    "verbose": (RUN, "", r"\[V\] Throughput: "),
    "avgRuns": (RUN, "=3", "Average on 3 runs - GPU latency: "),
    "percentile": (RUN, "=12.5", r"percentile\(12\.5%\) = "),
    "tempdir": (BUILD, "=nowhere", "--tempdir=nowhere: there is no such folder"),
    "tempfileControls": (BUILD, "=temporary:no", "--tempfileControls: 'no' of temporary is neither allow nor deny"),
    "directIO": (BUILD + " --fp16", "", "--directIO: input 'image' is fp32, and layer '[^']+' has it in fp16"),
    "loadRefOutputs": (RUN + " --loadInputs=image:image.bin", "=scores:image.bin --accuracyThreshold=1", "--loadRefOutputs: 'image.bin' has 768 bytes; output 'scores' takes 20"),
    "refPair": (RUN, "=0 --loadInputs=image:image.bin --loadRefOutputs=scores:ones.npy --accuracyThreshold=1", "there are two pairs at least"),
    "accuracyThreshold": (REF + "--accuracyAlgorithm=lInf", "=0.5", r"lInf = [\d.e-]+ \(threshold 0\.5\)"),
    "accuracyAlgorithm": (REF + "--accuracyThreshold=1", "=cos", r"Accuracy of output scores: cos = "),
    "atol": (REF + "--accuracyThreshold=0.5", "=10", "scores: l0 = 0 "),
    "rtol": (REF + "--accuracyThreshold=0.5", "=10", "scores: l0 = 0 "),
    "dumpRefit": (RUN, "", r"\[I\] conv Kernel\n.*weights can be replaced"),
    "dumpOutput": (RUN, "", r"scores: \([\dx]+\)\n\S+ \[I\] [-\d.e]+ "),
    "dumpRawBindingsToFile": (RUN, "", r"Wrote image\.input\.1\.3\.8\.8\.fp32\.raw"),
    "dumpProfile": (RUN, "", r"=== Profile \(\d+ iterations \) ===\n\S+ \[I\]     Time\(ms\)    Avg\.\(ms\)  Median\(ms\)   Time\(%\)   Layer"),
    "dumpLayerInfo": (BUILD, "", r"Layers:\n\S+ \[I\] conv"),
    "dumpOptimizationProfile": ("--loadEngine=x.plan --skipInference", "", "Model input x"),
    "exportTimes": (RUN, "=times.json", "exportTimes: times.json"),
    "exportOutput": (RUN, "=output.json", "exportOutput: output.json"),
    "exportProfile": (RUN, "=profile.json", "exportProfile: profile.json"),
    "exportLayerInfo": (RUN, "=layers.json", "exportLayerInfo: layers.json"),
}


class Failures(list):
    def check(self, good, text):
        if not good:
            self.append(text)
            print("FAILED:", text[:2000], file=sys.stderr)


def trtexec(program, *args):
    p = subprocess.run([program, "trtexec", *args], capture_output=True, text=True, timeout=300)
    return p.returncode, p.stdout, p.stderr


def write_low_bits():
    """fp8 quantizers around Conv and MatMul, and int4 weights in blocks in front of MatMul."""
    kinds, node, info, rng = onnx.TensorProto, helper.make_node, helper.make_tensor_value_info, np.random.default_rng(6)
    w, m = (rng.standard_normal(s).astype(np.float32) for s in ((8, 3, 3, 3), (288, 10)))
    numbers = [("sx", np.float32(4 / 448)), ("sw", np.float32(np.abs(w).max() / 448)), ("sy", np.float32(16 / 448)),
               ("sm", np.float32(np.abs(m).max() / 448)), ("w", w), ("m", m), ("shape", np.array([1, -1]))]
    zero = helper.make_tensor("z", kinds.FLOAT8E4M3FN, [], b"\0", raw=True)
    nodes = [node(op, [x, s, "z"], [x + end]) for x, s in (("x", "sx"), ("w", "sw"), ("r", "sy"), ("m", "sm"))
             for op, x, end in (("QuantizeLinear", x, "q"), ("DequantizeLinear", x + "q", "d"))]
    nodes[4:4] = [node("Conv", ["xqd", "wqd"], ["c"], "conv"), node("Relu", ["c"], ["r"])]
    nodes += [node("Reshape", ["rqd", "shape"], ["flat"]), node("MatMul", ["flat", "mqd"], ["y"], "mm")]
    low = [helper.make_graph(nodes, "g", [info("x", kinds.FLOAT, [1, 3, 8, 8])], [info("y", kinds.FLOAT, [1, 10])],
                             [zero] + [numpy_helper.from_array(v, k) for k, v in numbers])]
    codes = rng.integers(-8, 8, 64 * 32).astype(np.uint8) & 15
    scales = (rng.random((4, 32)) * 0.05 + 0.01).astype(np.float32)
    nodes = [node("DequantizeLinear", ["w4", "s"], ["w"], axis=0, block_size=16), node("MatMul", ["x", "w"], ["y"])]
    low += [helper.make_graph(nodes, "g", [info("x", kinds.FLOAT, [4, 64])], [info("y", kinds.FLOAT, [4, 32])],
                              [helper.make_tensor("w4", kinds.INT4, [64, 32], (codes[::2] | codes[1::2] << 4).tobytes(), raw=True),
                               numpy_helper.from_array(scales, "s")])]
    for name, graph in zip(("fp8", "int4"), low):
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), name + ".onnx")


def write_files(models):
    m = onnx.load(f"{models}/cnn.onnx")
    head = next(t for t in m.graph.initializer if t.name == "head")
    head.CopyFrom(numpy_helper.from_array(2 * numpy_helper.to_array(head), "head"))
    onnx.save(m, "other.onnx")
    image = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    image.tofile("image.bin")
    np.save("image.npy", image)
    np.save("half.npy", image.astype(np.float16))
    np.savez("image.npz", image=image)
    image[:1, 0, 0, :3].tofile("short.bin")
    np.array([1, -2, 3], np.int64).tofile("wide.bin")
    np.array([1, -2, 1 << 32], np.int64).tofile("far.bin")
    tensor = helper.make_tensor_value_info
    write_low_bits()
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [tensor("x", onnx.TensorProto.INT32, [3])],
                              [tensor("y", onnx.TensorProto.INT32, [3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "whole.onnx")
    with open("rt.plan", "wb") as f:
        f.write(b"ftrt" + bytes(1000))
    with open("fix.txt", "w") as f:
        f.write("# options\n--precision bf16 --layer-precision 'head:fp32'\n--precisionConstraints=prefer '--layerPrecisions=conv:fp32'\n")
    with open("good.cache", "w") as f:
        f.write("TRT-8601-EntropyCalibration2\nimage: 3c010a14\n")
    with open("empty.cache", "w") as f:
        f.write("TRT-8601-EntropyCalibration2\n")
    weight = numpy_helper.from_array(np.random.default_rng(2).standard_normal((16, 4)).astype(np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [tensor("x", onnx.TensorProto.FLOAT, ["n", 16])],
                              [tensor("y", onnx.TensorProto.FLOAT, ["n", 4])], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "rows.onnx")
    np.save("far.npy", np.full((1, 5), 9, np.float32))
    np.save("ones.npy", np.ones((1, 5), np.float32))
    np.save("shape.npy", np.array([2, 9], np.int32))
    nodes = [helper.make_node("Cast", ["s"], ["c"], to=onnx.TensorProto.INT64), helper.make_node("Relu", ["x"], ["r"]),
             helper.make_node("Expand", ["r", "c"], ["y"])]
    graph = helper.make_graph(nodes, "g", [tensor("x", onnx.TensorProto.FLOAT, ["n", 1]), tensor("s", onnx.TensorProto.INT32, [2])],
                              [tensor("y", onnx.TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "expand.onnx")
    ends = [(name + which, elem, shape) for which in "xy" for name, elem, shape in ENDS]
    graph = helper.make_graph([helper.make_node("Add", [f"{n}x", f"{n}x"], [f"{n}y"]) for n, *_ in ENDS], "g",
                              *[[tensor(*e) for e in ends if e[0].endswith(which)] for which in "xy"])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "ends.onnx")
    with open("ends.cache", "w") as f:  # 1/8 and 1/4: exact
        f.write("TRT-8601-EntropyCalibration2\nax: 3e000000\nay: 3e800000\n")
    with open("bad.cache", "w") as f:
        f.write("TRT-8601-EntropyCalibration2\nimage: 3c01\n")


def test_rows(program, models, failures):
    for line, code, out, err in ROWS:
        got, stdout, stderr = trtexec(program, *line.format(m=models).split())
        where = f"trtexec {line}: exit code {got}, output {stdout[-600:]!r}, error {stderr!r}"
        failures.check(got == code, f"{where}: exit code {code} expected")
        failures.check(re.search(out, stdout, re.S), f"{where}: output {out!r} expected")
        failures.check(re.search(err, stderr) if err else "[E]" not in stderr, f"{where}: error {err!r} expected")
        failures.check(stdout.startswith("&&&& RUNNING ") and stdout.splitlines()[-1].startswith("&&&& FAILED" if got else "&&&& PASSED"),
                       f"{where}: first and last line")


def read_flags(path):
    text = open(path).read()
    rows = re.findall(r'^TRT_(?:OWN_)?FLAG\((\w+), (?:"--([\w-]+)", )?(\w+), (\w+), (\w+), (NULL|"[^"]*"), (NULL|"[^"]*"), "', text, re.M)
    return [(id, own or id, kind, level, value.strip('"')) for id, own, kind, level, _, value, _ in rows]


VALUES = {"layerDeviceTypes": "conv:GPU", "preview": "+profileSharing0806", "weightStreamingBudget": "5 --allowWeightStreaming"}


def test_flags(program, models, flags, failures):
    failures.check(len(flags) > 150, f"only {len(flags)} flags were found in the table")
    works = {id for id, _, _, level, _ in flags if level == "WORKS"}
    failures.check(works == set(WORKS), f"flags that work without a row here, or the other way: {sorted(works ^ set(WORKS))}")
    for id, name, kind, level, value in flags:
        if level == "WORKS":
            beside, given, pattern = WORKS[id]
            without = "".join(trtexec(program, *beside.format(m=models).split())[1:])
            code, out, err = trtexec(program, *beside.format(m=models).split(), *f"--{name}{given}".format(m=models).split())
            failures.check(re.search(pattern, out + err, re.S), f"--{name} ({code}): {pattern!r} expected: {(out + err)[-600:]!r}")
            failures.check(not re.search(pattern, without, re.S), f"without --{name}: {pattern!r} is there, too")
            continue
        word = VALUES.get(id, value.split("|")[0] if kind == "CHOICE" else "1")
        given = f"--{name}" if kind == "SWITCH" else f"--{name}={word}"
        code, out, err = trtexec(program, f"--onnx={models}/cnn.onnx", "--show-native", *given.split())
        if level == "ACCEPT":
            failures.check(code == 0 and f"[W] --{name} has no effect in Assay: " in err, f"{given}: {code}, {err!r}")
        else:
            says = "not supported" if level == "REJECT" else "not there yet"
            failures.check(code == 1 and f"[E] --{name} is {says}: " in err, f"{given}: {code}, {err!r}")


def test_documented(flags, path, failures):
    text = open(path).read()
    for _, name, *_ in flags:
        failures.check(f"`--{name}`" in text, f"--{name} is not in {path}")


def test_files(program, models, failures):
    code, out, err = trtexec(program, f"--onnx={models}/cnn.onnx", *QUICK.split(), "--loadInputs=image:image.npy", "--separateProfileRun",
                             "--profilingVerbosity=detailed", "--exportTimes=t.json", "--exportOutput=o.json", "--exportProfile=p.json",
                             "--exportLayerInfo=l.json", "--dumpRawBindingsToFile")
    failures.check(code == 0, f"exports: {code}, {err}")
    times = json.load(open("t.json"))
    keys = "startEnqMs endEnqMs startH2dMs endH2dMs startComputeMs endComputeMs startD2hMs endD2hMs h2dMs computeMs d2hMs latencyMs".split()
    failures.check(len(times) == 3 and all(list(t) == keys for t in times), f"--exportTimes: {times}")
    failures.check(all(abs(t["latencyMs"] - t["h2dMs"] - t["computeMs"] - t["d2hMs"]) < 1e-9 for t in times), f"latencies: {times}")
    lines = open("t.json").read().splitlines()
    failures.check(lines[0] == "[" and lines[1].startswith('  { "startEnqMs" : ') and lines[2].startswith(', { "startEnqMs" : ') and
                   lines[-1] == "]", f"layout of --exportTimes: {lines}")
    output, = json.load(open("o.json"))
    raw = np.fromfile(f"scores.output.{output['dimensions'].replace('x', '.')}.fp32.raw", np.float32)
    failures.check(output["name"] == "scores" and np.array_equal(np.array(output["values"], np.float32), raw), f"--exportOutput: {output}")
    got = subprocess.run([program, "run", f"{models}/cnn.onnx", "--inputs", "image.npz", "-o", "native.npz"], capture_output=True, text=True)
    truth = np.load("native.npz")["scores"].ravel()
    failures.check(got.returncode == 0 and np.allclose(truth, raw, rtol=1e-4, atol=1e-5), f"outputs: {raw}, natively {truth}")
    profile, layers = json.load(open("p.json")), json.load(open("l.json"))
    failures.check(profile[0] == {"count": 3} and list(profile[1]) == ["name", "timeMs", "averageMs", "medianMs", "percentage"], f"{profile[:2]}")
    failures.check(abs(sum(p["percentage"] for p in profile[1:]) - 100) < 0.1, "shares are not 100 % together")
    failures.check([p["name"] for p in profile[1:]] == [l["Name"] for l in layers["Layers"]], "names of --exportProfile and --exportLayerInfo")
    failures.check(layers["Bindings"] == ["image", "scores"], f"{layers['Bindings']}")
    conv = layers["Layers"][0]
    failures.check(conv["LayerType"] == "Conv" and conv["Inputs"][0]["Dimensions"] == [1, 3, 8, 8] and
                   "FP32" in conv["Inputs"][0]["Format/Datatype"] and conv["HasBias"] in (0, 1) and
                   re.fullmatch("0x[0-9a-f]{16}", conv["TacticValue"]) and "[ONNX Layer: conv]" in conv["Metadata"] and
                   "conv" in conv["Assay"]["nodes"], f"{conv}")


def test_debug_tensors(program, models, failures):
    """What --markDebug shows is what the model has there, whether the plan was loaded or not, and the outputs stay what they are."""
    code, _, err = trtexec(program, f"--onnx={models}/cnn.onnx", "--markDebug=n,q,scores", "--saveEngine=debug.plan", "--skipInference")
    failures.check(code == 0, f"--markDebug: {err}")
    code, out, err = trtexec(program, "--loadEngine=debug.plan", *QUICK.split(), "--loadInputs=image:image.npy", "--exportOutput=o.json",
                             "--saveDebugTensors=n:debug_n.raw", "--saveAllDebugTensors=summary,numpy,string")
    failures.check(code == 0, f"--saveDebugTensors: {err}")
    p = subprocess.run([program, "run", f"{models}/cnn.onnx", "--inputs", "image.npz", "--all-values", "-o", "all.npz"], capture_output=True, text=True)
    want = np.load("all.npz")
    failures.check(p.returncode == 0 and np.allclose(np.fromfile("debug_n.raw", np.float32), want["n"].ravel(), rtol=1e-4, atol=1e-5), "raw value of n")
    for name in "n", "q", "scores":
        failures.check(np.allclose(np.load(f"{name}.npy"), want[name], rtol=1e-4, atol=1e-5), f"{name}.npy")
        failures.check(np.allclose(np.loadtxt(f"{name}.txt").ravel(), want[name].ravel(), rtol=1e-4, atol=1e-5), f"{name}.txt")
    failures.check([o["name"] for o in json.load(open("o.json"))] == ["scores"], "debug tensors among the outputs")
    told = json.load(open("tensor_summary.json"))
    failures.check(list(told["metadata"]) == ["title", "time_generated", "engine_name", "command_line"] and
                   told["metadata"]["engine_name"] == "debug.plan", f"{told['metadata']}")
    tensors = {t["name"]: t for t in told["tensors"]}
    q = tensors["q"]
    failures.check(sorted(tensors) == ["n", "q", "scores"] and q["shape"] == list(want["q"].shape) and q["type"] == "fp32" and
                   np.isclose(q["statistics"]["max"], want["q"].max(), rtol=1e-6, atol=0) and len(q["elements"]) == min(10, want["q"].size), f"{tensors}")


def test_stripped(program, models, failures):
    """A stripped plan is small, and refitted it gives the same bits."""
    weight = numpy_helper.from_array(np.random.default_rng(4).standard_normal((512, 512)).astype(np.float32), "w")
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", onnx.TensorProto.FLOAT, [3, 512])],
                              [value("y", onnx.TensorProto.FLOAT, [3, 512])], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "wide.onnx")
    np.random.default_rng(5).standard_normal((3, 512)).astype(np.float32).tofile("x.bin")
    for name, flags in (("whole", []), ("bare", ["--stripWeights"])):
        code, _, err = trtexec(program, "--onnx=wide.onnx", "--timingCacheFile=wide.cache", f"--saveEngine={name}.plan", "--skipInference", *flags)
        failures.check(code == 0, f"{name}: {err}")
    failures.check(os.path.getsize("bare.plan") < 32 << 10 < 1 << 20 < os.path.getsize("whole.plan"), f"a stripped plan has {os.path.getsize('bare.plan')} bytes")
    outputs = []
    for flags in (["--loadEngine=whole.plan"], ["--loadEngine=bare.plan", "--refitFromOnnx=wide.onnx"]):
        code, _, err = trtexec(program, *flags, "--loadInputs=x:x.bin", "--exportOutput=y.json", *QUICK.split())
        failures.check(code == 0, f"{flags}: {err}")
        outputs.append(json.load(open("y.json"))[0]["values"])
    failures.check(len(outputs[0]) == 3 * 512 and outputs[0] == outputs[1], "a refitted plan gives other values")
    p = subprocess.run([program, "refit", "bare.plan", "--weights", "wide.onnx"], capture_output=True, text=True)
    failures.check(p.returncode == 0 and "1 missing weights put in, 0 of 1 weights changed" in p.stdout, f"refit: {p.stdout} {p.stderr}")
    failures.check(open("bare.plan", "rb").read() == open("whole.plan", "rb").read(), "a refitted plan is another one")


def test_reference(program, models, failures):
    """Distances are those that numpy finds."""
    values = np.load("all.npz")["scores"].astype(np.float64)
    want = (values * [[1.1, 0.9, 1, 1.3, 0.7]]).astype(np.float32)
    np.save("near.npy", want)
    d = np.abs(values - want)
    cos = 1 - (values * want).sum() / np.sqrt((values ** 2).sum() * (want.astype(np.float64) ** 2).sum())
    for algorithm, distance in ("l0", 0.8), ("l1", d.mean()), ("l2", (d ** 2).mean()), ("lInf", d.max()), ("cos", cos):
        for factor, code in (1.01, 0), (0.99, 1):
            got, out, err = trtexec(program, "--loadEngine=c.plan", *QUICK.split(), "--loadInputs=image:image.npy", "--loadRefOutputs=scores:near.npy",
                                    f"--accuracyAlgorithm={algorithm}", f"--accuracyThreshold={distance * factor}")
            failures.check(got == code, f"{algorithm} by {distance}, threshold times {factor}: {got}, {out[-300:]} {err}")


def test_calibrated(program, models, failures):
    """A model without Q/DQ, built by a cache: near the model, by the cache's ranges, and the same as natively. int8 at its ends."""
    values = dict(np.load("all.npz"), image=np.load("image.npy"))
    with open("all.cache", "w") as f:
        f.write("TRT-100100-EntropyCalibration2\n(Unnamed Layer* 3) [Softmax]_output: 3f800000\n")
        for name, x in values.items():
            f.write(f"{name}: {np.float32(np.abs(x).max() / 127).view(np.uint32):08x}\n")
    line = [f"--onnx={models}/cnn.onnx", "--int8", "--calib=all.cache", *QUICK.split()]
    code, out, err = trtexec(program, *line, "--saveEngine=q.plan", "--loadInputs=image:image.npy", "--exportOutput=o.json")
    got = np.array(json.load(open("o.json"))[0]["values"])
    off = np.abs(got - values["scores"].ravel()).max()
    failures.check(code == 0 and " is left" not in err and "mean nothing" not in err and 1e-6 < off < 0.05, f"--calib: {off}, {err}")
    first = open("q.plan", "rb").read()
    _, out, _ = trtexec(program, *line, "--saveEngine=q.plan", "--show-native")
    for command in [l for l in out.splitlines() if re.match("assay (edit|build)", l)]:
        p = subprocess.run(command.replace("assay", program, 1) + (" --no-proof" if " edit " in command else ""), shell=True, capture_output=True, text=True)
        failures.check(p.returncode == 0, f"{command}: {p.stderr}")
    failures.check(len(open("q.plan", "rb").read()) == len(first), "the native commands make another plan")
    scale, out_scale = (np.float32(np.abs(values[n]).max() / 127) for n in ("image", "scores"))
    codes = np.clip(np.rint(values["image"] / scale), -128, 127).astype(np.int8)
    codes.tofile("codes.bin")
    code, out, err = trtexec(program, *line, "--inputIOFormats=int8:chw", "--outputIOFormats=int8:chw", "--loadInputs=image:codes.bin", "--exportOutput=o.json")
    got = np.array(json.load(open("o.json"))[0]["values"])
    failures.check(code == 0 and np.abs(got * out_scale - values["scores"].ravel()).max() < 0.05, f"int8 at the ends: {got}, {err}")


def laid_out(x, layout):
    """The array as a buffer of this layout has it."""
    c = x.ndim - (4 if "d" in layout else 3)
    n = int(re.search(r"\d*$", layout)[0] or 1)
    if layout == "chw":
        return x
    x = np.pad(x, [(0, -x.shape[c] % n if d == c else 0) for d in range(x.ndim)])
    if "hwc" in layout:
        return np.moveaxis(x, c, -1)
    return np.moveaxis(x.reshape(*x.shape[:c], -1, n, *x.shape[c + 1:]), c + 1, -1)


def buffer_of(x, word, own):
    """The bytes of whole numbers, as trtexec's type and layout say."""
    kind, _, layout = word.rpartition(":")
    kind, layout = kind or own, layout.split("+")[0]
    as_type = {"fp32": np.float32, "fp16": np.float16, "int32": np.int32, "int64": np.int64, "int8": np.int8, "bf16": np.float32}[kind]
    x = np.ascontiguousarray(laid_out(x.astype(as_type), layout))
    return kind, (x.view(np.uint32) >> 16).astype(np.uint16).tobytes() if kind == "bf16" else x.tobytes()


def test_layouts(program, failures):
    """Raw files of all layouts go in and come out as numpy arranges them; JSON and npy are rows; a plan keeps its layouts, and takes rows natively."""
    r = np.random.default_rng(7)
    for ins, outs in LAYOUTS:
        int8 = "int8" in ins
        values = {n: r.integers(-60, 60, shape) for n, _, shape in ENDS}
        scale = {"ax": 0.125, "ay": 0.25} if int8 else {}  # codes of int8 stand for so much
        words = [(f.split(",") * 3)[:3] for f in (ins, outs)]
        raw = []
        for (name, elem, shape), word in zip(ENDS, words[0]):
            _, data = buffer_of(values[name], word, "int32" if elem == onnx.TensorProto.INT32 else "fp32")
            open(f"{name}.raw", "wb").write(data)
            raw.append(f"{name}x:{name}.raw")
        formats = [f"--inputIOFormats={ins}", f"--outputIOFormats={outs}"]
        for line in (["--onnx=ends.onnx", *formats, "--calib=ends.cache", "--saveEngine=ends.plan"], ["--loadEngine=ends.plan"]):
            for old in [f for f in os.listdir() if f.endswith(".raw") and "put." in f]:
                os.remove(old)
            code, out, err = trtexec(program, *line, *QUICK.split(), "--loadInputs=" + ",".join(raw), "--dumpRawBindingsToFile", "--exportOutput=o.json")
            where = f"{ins} to {outs}, {line[0]}"
            failures.check(code == 0, f"{where}: {code}, {err}")
            if code:
                continue
            told = {o["name"]: o for o in json.load(open("o.json"))}
            for k, (name, elem, shape) in enumerate(ENDS):
                own = "int32" if elem == onnx.TensorProto.INT32 else "fp32"
                dims = ".".join(map(str, shape))
                kind, data = buffer_of(values[name], words[0][k], own)
                failures.check(open(f"{name}x.input.{dims}.{kind}.raw", "rb").read() == data, f"{where}: buffer of input {name}")
                want = values[name] * (1 if int8 and name == "a" else 2)
                kind, data = buffer_of(want, words[1][k], own)
                failures.check(open(f"{name}y.output.{dims}.{kind}.raw", "rb").read() == data, f"{where}: buffer of output {name}")
                got = np.array(told[f"{name}y"]["values"]).reshape(shape)
                failures.check(np.array_equal(got, want), f"{where}: --exportOutput of {name}: {got.ravel()[:9]}, {want.ravel()[:9]} expected")
                refs = f"--loadRefOutputs={name}y:{name}y.output.{dims}.{kind}.raw"
                code, out, err = trtexec(program, "--loadEngine=ends.plan", *QUICK.split(), "--loadInputs=" + ",".join(raw), refs,
                                         "--accuracyThreshold=1e-30", "--accuracyAlgorithm=lInf")
                failures.check(code == 0 and "lInf = 0 " in out, f"{where}: {refs}: {code}, {err}")
    np.savez("rows.npz", ax=values["a"].astype(np.float32), vx=values["v"].astype(np.float32), ix=values["i"].astype(np.int32))
    p = subprocess.run([program, "run", "ends.plan", "--inputs", "rows.npz", "-o", "native.npz"], capture_output=True, text=True)
    failures.check(p.returncode == 0 and all(np.array_equal(np.load("native.npz")[f"{n}y"], 2 * values[n]) for n in "avi"), f"natively: {p.stderr}")
    code, _, err = trtexec(program, "--loadEngine=ends.plan", "--exportLayerInfo=l.json", "--skipInference")
    code2, _, err2 = trtexec(program, "--onnx=ends.onnx", "--inputIOFormats=fp16:hwc8,fp32:cdhw32,chw", "--outputIOFormats=chw,dhwc,chw4", "--exportLayerInfo=l.json",
                             "--profilingVerbosity=detailed", "--skipInference")
    failures.check(code == code2 == 0, f"--exportLayerInfo: {err} {err2}")
    told = {t["Name"]: t["Format/Datatype"] for l in json.load(open("l.json"))["Layers"] for t in l["Inputs"] + l["Outputs"]}
    want = {"ax": "Channel major FP16 format where channel % 8 == 0", "ix": "Row major linear Int32", "ay": "Row major linear FP32",
            "vx": "Thirty-two wide channel vectorized row major FP32 format with 3 spatial dimensions",
            "vy": "Channel major FP32 format with 3 spatial dimensions", "iy": "Four wide channel vectorized row major Int32 format"}
    failures.check({n: told.get(n) for n in want} == want, f"--exportLayerInfo: {told}")


def test_low_bits(program, failures):
    """Models with fp8 and int4 quantizers give what ONNX's own evaluator gives, natively and built; a check finds them faithful."""
    for name in "fp8", "int4":
        model = onnx.load(f"{name}.onnx")
        x = np.random.default_rng(7).standard_normal([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]).astype(np.float32)
        np.savez("x.npz", x=x)
        np.save("x.npy", x)
        want = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0].ravel()
        code, out, err = trtexec(program, f"--onnx={name}.onnx", f"--{name}", *QUICK.split(), "--loadInputs=x:x.npy", "--exportOutput=o.json")
        built = np.array(json.load(open("o.json"))[0]["values"])
        run, check = (subprocess.run([program, *line.split()], capture_output=True, text=True)
                      for line in (f"run {name}.onnx -i x.npz -o o.npz", f"check {name}.onnx -i x.npz"))
        native = np.load("o.npz")["y"].ravel()
        failures.check(code == 0 and run.returncode == 0 and np.abs(built - native).max() < 1e-5 * np.abs(native).max(), f"{name}: {built}, {native}, {err}")
        failures.check(np.abs(native - want).max() < 1e-4 * np.abs(want).max(), f"{name}: {native}, ONNX's evaluator: {want}")
        failures.check(check.returncode == 0 and check.stdout.startswith("FAITHFUL"), f"check {name}: {check.stdout}, {check.stderr}")


def test_sparsity(program, failures):
    """--sparsity=force gives what the model gives that 'surgeon prune' writes."""
    subprocess.run([program, "polygraphy", "surgeon", "prune", "fp8.onnx", "-o", "pruned.onnx"], check=True, capture_output=True)
    got = []
    np.save("x.npy", np.random.default_rng(8).standard_normal((1, 3, 8, 8)).astype(np.float32))
    for line in ["--onnx=fp8.onnx"], ["--onnx=fp8.onnx", "--sparsity=force"], ["--onnx=pruned.onnx"]:
        code, out, err = trtexec(program, *line, *QUICK.split(), "--loadInputs=x:x.npy", "--exportOutput=o.json")
        got.append(json.load(open("o.json"))[0]["values"])
        failures.check(code == 0, f"{line}: {err}")
    failures.check(got[1] == got[2] != got[0], f"--sparsity=force: {got}")


def test_nafnet(program, models, failures):
    """The model of the issue, which is NaN in fp16: the list that a script makes of nodes mends it, and the plan keeps that."""
    folder = os.path.join(models, "..", "nafnet")
    np.load(f"{folder}/inputs.npz")["noisy"][:1].tofile("noisy.bin")
    golden = np.load(f"{folder}/golden.npz")["denoised"][:1].ravel()
    nodes = onnx.load(f"{folder}/model.onnx").graph.node
    listed = ",".join(f"{n.name}:fp32" for n in nodes if any("sca" in o for o in n.output))
    listed += "".join(f",no/such/layer/{i}:fp32" for i in range(4000))  # 100 KB
    for more, right in (([], False), (["--precisionConstraints=prefer", f"--layerPrecisions={listed}"], True)):
        code, _, err = trtexec(program, f"--onnx={folder}/model.onnx", "--fp16", "--saveEngine=fp16.plan", "--skipInference", *more)
        failures.check(code == 0 and err.count("/sca/sca.0/Constant") <= 1, f"build of NAFNet: {code}, {err[-500:]}")
        code, out, err = trtexec(program, "--loadEngine=fp16.plan", "--duration=0", "--iterations=1", "--warmUp=0", "--dumpProfile",
                                 "--loadInputs=noisy:noisy.bin", "--exportOutput=o.json")
        failures.check(code == 0 and "=== Profile (1 iterations ) ===" in out, f"run of NAFNet: {code}, {err}")
        values = np.array(json.load(open("o.json"))[0]["values"])
        near = bool(np.isfinite(values).all() and np.abs(values - golden).max() < 5e-3)
        failures.check(near == right, f"NAFNet in fp16 {'with' if more else 'without'} a list: {values[:4]}, {golden[:4]} expected")


def test_interrupted(program, models, failures):
    p = subprocess.Popen([program, "trtexec", f"--onnx={models}/cnn.onnx", "--duration=-1", "--warmUp=0"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    failures.check(p.returncode == 0 and "Throughput: " in out, f"--duration=-1, interrupted: {p.returncode}, {out[-300:]}, {err}")


def test_link(program, models, failures):
    os.symlink(program, "trtexec")
    p = subprocess.run([os.path.abspath("trtexec"), f"--onnx={models}/cnn.onnx", "--skipInference"], capture_output=True, text=True)
    failures.check(p.returncode == 0 and "&&&& PASSED" in p.stdout, f"by a link: {p.returncode}, {p.stderr!r}")


def test_native(program, models, failures):
    """What --show-native prints gives the same plan."""
    line = [f"--onnx={models}/external.onnx", "--bf16", "--minShapes=x:1x16", "--maxShapes=x:4x16", "--saveEngine=n.plan", "--timingCacheFile=n.cache"]
    code, _, err = trtexec(program, *line, "--skipInference")
    failures.check(code == 0, f"{line}: {err}")
    first = open("n.plan", "rb").read()
    os.remove("n.plan")
    _, out, _ = trtexec(program, *line, "--skipInference", "--show-native")
    command = next(l for l in out.splitlines() if l.startswith("assay build"))
    p = subprocess.run(command.replace("assay", program, 1), shell=True, capture_output=True, text=True)
    failures.check(p.returncode == 0 and open("n.plan", "rb").read() == first, f"{command}: another plan; {p.stderr}")


def main():
    program, models, flags = (os.path.abspath(a) for a in sys.argv[1:4])
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files(models)
        test_rows(program, models, failures)
        test_flags(program, models, read_flags(flags), failures)
        test_documented(read_flags(flags), os.path.join(os.path.dirname(flags), "../../../docs/coming-from-trtexec.md"), failures)
        test_files(program, models, failures)
        test_debug_tensors(program, models, failures)
        test_stripped(program, models, failures)
        test_reference(program, models, failures)
        test_calibrated(program, models, failures)
        test_layouts(program, failures)
        test_low_bits(program, failures)
        test_sparsity(program, failures)
        test_nafnet(program, models, failures)
        test_interrupted(program, models, failures)
        test_link(program, models, failures)
        test_native(program, models, failures)
        os.chdir("/")
    print(f"{len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
