#!/usr/bin/env python3
"""assay trtexec: every flag that works changes something beside the list of options that is printed.

    test_trtexec_flags.py ASSAY MODELS FLAGS

MODELS is tests/models/small, FLAGS the table (flags.inc). A row runs a line with its flag and without it, and what it looks for is
there with the flag only. A new flag that works, and another name of one, need a row here.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import namedtuple

import numpy as np
import onnx
from onnx import numpy_helper

from test_trtexec_runs import QUICK, Failures, read_flags, write_files

BUILD = "--onnx={m}/cnn.onnx --skipInference "
RUN = "--loadEngine={d}/c.plan " + QUICK + " "
GIVEN = RUN + "--loadInputs=image:{d}/image.npy "
RANGE = "--onnx={m}/external.onnx --skipInference --dumpOptimizationProfile "
LAYERS = BUILD + "--profilingVerbosity=detailed --exportLayerInfo=l.json "
TIMES = RUN + "--exportTimes=t.json "
CALIB = "--onnx={d}/rows.onnx --int8 --loadInputs=x:{d}/row.npy --exportOutput=o.json " + QUICK + " "
CHECKED = "--onnx={d}/rows.onnx --int8 --skipInference "
REF = GIVEN + "--loadRefOutputs=scores:{d}/ones.npy "
TIMED = BUILD + "--builderOptimizationLevel=5 "
MARKED = "--loadEngine={d}/marked.plan " + QUICK + " "


# ---- runs ---------------------------------------------------------------------------------------

class Run:
    """A line of trtexec in a folder of its own. `text`: what it printed but for the command line and the list of options."""

    def __init__(self, program, words, folder):
        os.mkdir(folder)
        self.folder = folder
        with open(folder + ".out", "w+") as out, open(folder + ".err", "w+") as err:
            p = subprocess.Popen([program, "trtexec", *words], stdout=out, stderr=err, cwd=folder)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = self.code = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            self.out, self.err = out.read(), err.read()
        self.seconds = usage.ru_utime + usage.ru_stime
        lines = re.sub(r"(?s)\S+ \[I\] === Model Options ===.*(?=\S+ \[I\] === Device Information)", "", self.out).splitlines()
        self.text = "\n".join([line for line in lines if not line.startswith("&&&&")] + [self.err])

    def has(self, name):
        return os.path.exists(f"{self.folder}/{name}")

    def bytes(self, name):
        with open(f"{self.folder}/{name}", "rb") as f:
            return f.read()

    def json(self, name):
        return json.loads(self.bytes(name))

    def values(self):
        """Of the first output."""
        return self.json("o.json")[0]["values"]

    def formats(self):
        """What each node is stored in."""
        return {node: layer["Assay"]["output"] for layer in self.json("l.json")["Layers"] for node in layer["Assay"]["nodes"]}


class Bench:
    """The program, and what it has run: a line is run once."""

    def __init__(self, program, models, data):
        self.program, self.names, self.runs = program, {"m": models, "d": data}, {}

    def __call__(self, line):
        if line not in self.runs:
            words = line.format(**self.names).split()
            self.runs[line] = Run(self.program, words, os.path.join(self.names["d"], f"run{len(self.runs)}"))
        return self.runs[line]


# ---- what a row looks for -----------------------------------------------------------------------

Differs = namedtuple("Differs", "what")  # both runs pass, and this is another thing in each
Longer = namedtuple("Longer", "times")   # it takes so many times the processor's time, at least


def passes(run):
    return run.code == 0


def fails(run):
    return run.code == 1


def tactics(run):
    return {layer["TacticName"] for layer in run.json("l.json")["Layers"]}


def writes(name):
    return lambda run: run.has(name)


def stored(**formats):
    return lambda run: formats.items() <= run.formats().items()


def all_stored(*formats):
    return lambda run: set(run.formats().values()) <= set(formats)


def queries(n):
    return lambda run: len(run.json("t.json")) == n


def starts_late(run):
    return all(t["startComputeMs"] - t["startEnqMs"] > 19 for t in run.json("t.json"))


def waits_between(run):
    t = run.json("t.json")
    return all(b["startEnqMs"] - a["endD2hMs"] > 59 for a, b in zip(t, t[1:]))


def lasts(ms):
    return lambda run: run.json("t.json")[-1]["endD2hMs"] - run.json("t.json")[0]["startH2dMs"] >= ms


def printed_values(run):
    """What --dumpOutput prints is what --exportOutput writes."""
    found = re.search(r"\[I\] scores: \(1x5\)\n\S+ \[I\] (.*)", run.text)
    return bool(found) and [float(x) for x in found[1].split(" ")] == run.values()


def raw_bindings(run):
    given, made = "image.input.1.3.8.8.fp32.raw", "scores.output.1.5.fp32.raw"
    return run.has(given) and run.has(made) and np.array_equal(np.frombuffer(run.bytes(made), np.float32), np.float32(run.values())) \
        and run.bytes(given) == open(os.path.join(run.folder, "../image.bin"), "rb").read()


def profiled_apart(run):
    return "=== Performance summary ===" in run.text and "=== Profile (3 iterations ) ===" in run.text


# ---- rows ---------------------------------------------------------------------------------------
# flags: those that the row is the proof of. beside: the line's other arguments ({m}: the models, {d}: the data). given: the flag.
# sees: a pattern of `text`, a function of the run, Differs or Longer. instead: what stands in the place of the flag without it.
Row = namedtuple("Row", "flags beside given sees instead", defaults=("",))
ROWS = [
    Row("onnx", "--skipInference --dumpLayerInfo", "--onnx={m}/cnn.onnx", r"\[I\] conv \+ relu\n", "--onnx={d}/rows.onnx"),
    Row("saveEngine", BUILD, "--saveEngine=c.plan", lambda run: run.has("c.plan") and run.bytes("c.plan") == run.bytes("../c.plan")),
    Row("loadEngine", "--skipInference --dumpLayerInfo", "--loadEngine={d}/c.plan", r"\[I\] conv \+ relu\n", "--loadEngine={d}/x.plan"),
    # shapes
    Row("minShapes", RANGE + "--optShapes=x:4x16 --maxShapes=x:4x16", "--minShapes=x:2x16", "min=2x16, opt=4x16, max=4x16"),
    Row("optShapes", RANGE + "--minShapes=x:1x16 --maxShapes=x:4x16", "--optShapes=x:2x16", "min=1x16, opt=2x16, max=4x16"),
    Row("maxShapes", RANGE + "--minShapes=x:1x16 --optShapes=x:4x16", "--maxShapes=x:6x16", "min=1x16, opt=4x16, max=6x16"),
    Row("profile", RANGE, "--profile=0 --optShapes=x:2x16 --profile=1 --optShapes=x:4x16",
        r"\(profile 0\): min=2x16.*\n.*\(profile 1\): min=4x16", "--optShapes=x:2x16"),
    Row("useProfile", "--loadEngine={d}/two.plan " + QUICK, "--useProfile=1", "binding for x with dimensions 16x16 "),
    Row("shapes", "--loadEngine={d}/x.plan " + QUICK, "--shapes=x:2x16", "binding for x with dimensions 2x16 "),
    Row("dumpOptimizationProfile", "--loadEngine={d}/x.plan --skipInference", "--dumpOptimizationProfile",
        r"Model input x \(profile 0\): min=1x16, opt=4x16, max=4x16\n"),
    # formats
    Row("inputIOFormats", "--onnx={m}/cnn.onnx --dumpRawBindingsToFile " + QUICK, "--inputIOFormats=fp16:chw",
        lambda run: run.has("image.input.1.3.8.8.fp16.raw") and len(run.bytes("image.input.1.3.8.8.fp16.raw")) == 384),
    Row("outputIOFormats", "--onnx={m}/cnn.onnx --dumpRawBindingsToFile " + QUICK, "--outputIOFormats=fp16:chw",
        lambda run: run.has("scores.output.1.5.fp16.raw") and len(run.bytes("scores.output.1.5.fp16.raw")) == 10),
    Row("fp16", LAYERS, "--fp16", all_stored("fp16")),
    Row("bf16", LAYERS, "--bf16", all_stored("bf16")),
    Row("best", LAYERS, "--best", all_stored("fp16", "bf16")),
    Row("int8", LAYERS, "--int8", lambda run: "int8_gemm_weights" in tactics(run)),
    Row("sparsity", BUILD + "--saveEngine=s.plan", "--sparsity=force", r"\[W\] --sparsity=force"),
    Row("stripWeights", BUILD + "--saveEngine=s.plan", "--stripWeights", lambda run: len(run.bytes("s.plan")) < len(run.bytes("../c.plan"))),
    Row("stripAllWeights", BUILD + "--saveEngine=s.plan", "--stripAllWeights", lambda run: len(run.bytes("s.plan")) < len(run.bytes("../c.plan"))),
    Row("--weightless", BUILD + "--saveEngine=s.plan", "--weightless", lambda run: len(run.bytes("s.plan")) < len(run.bytes("../c.plan"))),
    Row("allocationStrategy", RUN, "--allocationStrategy=static", r"by execution context creation: \+0\.\d*[1-9]"),
    Row("stronglyTyped", LAYERS + "--fp16", "--stronglyTyped", all_stored("fp32")),
    Row("directIO", BUILD + "--fp16", "--directIO", fails),
    Row("precisionConstraints", LAYERS + "--fp16 --layerPrecisions=conv:fp32", "--precisionConstraints=prefer", stored(conv="fp32")),
    Row("precisionConstraints", BUILD + "--fp16 --layerPrecisions=conv:int64", "--precisionConstraints=obey", fails,
        "--precisionConstraints=prefer"),
    Row("layerPrecisions", LAYERS + "--fp16 --precisionConstraints=prefer", "--layerPrecisions=conv:fp32", stored(conv="fp32", head="fp16")),
    Row("fix_file", LAYERS + "--fp16", "--fix-file={d}/fix.txt", stored(conv="fp32", head="fp16")),
    Row("fix_file", LAYERS + "--fp16 --precisionConstraints=none", "--fix-file={d}/fix.txt", r"\[W\] --layerPrecisions and --layerOutputTypes have no effect"),
    Row("fix_file", LAYERS + "--fp16 --precisionConstraints=prefer --layerPrecisions=head:fp32", "--fix-file={d}/fix.txt",
        r"\[E\] --layerPrecisions is given, and --fix-file=.* has one, too"),
    Row("fix_file", LAYERS + "--fp16", "--fix-file={d}/rows.onnx", r"\[E\] .*rows.onnx': it is not text"),
    Row("fix_file", LAYERS + "--fp16", "--fix-file={d}/coarse.txt", r"\[E\] .*coarse.txt': it has no options for trtexec"),
    Row("layerOutputTypes", LAYERS + "--fp16 --precisionConstraints=prefer", "--layerOutputTypes=conv:fp32", stored(conv="fp32", head="fp16")),
    Row("sparsity", BUILD, "--sparsity=enable", r"--sparsity=enable has no effect in Assay"),
    # No folder for temporary files is made here; where they are made is tested in test_trtexec.c.
    Row("tempdir", BUILD, "--tempdir={d}/no_such_folder", fails),
    Row("tempfileControls", BUILD, "--tempfileControls=temporary:never", fails),
    Row("runtimePlatform", BUILD, "--runtimePlatform=WindowsAMD64", fails),
    # calibration
    Row("calib", "--onnx={m}/cnn.onnx --int8 --loadInputs=image:{d}/image.npy --exportOutput=o.json " + QUICK, "--calib={d}/good.cache",
        Differs(Run.values), "--calib={d}/coarse.cache"),
    Row("minShapesCalib", CHECKED + "--optShapesCalib=x:2x16 --maxShapesCalib=x:4x16", "--minShapesCalib=x:3x16",
        "dimension 0: 2 is less than the 3 of --minShapesCalib", "--minShapesCalib=x:2x16"),
    Row("optShapesCalib", CALIB, "--optShapesCalib=x:500x16", Differs(Run.values)),
    Row("maxShapesCalib", CHECKED + "--minShapesCalib=x:1x16 --optShapesCalib=x:2x16", "--maxShapesCalib=x:1x16",
        "dimension 0: 1 is less than the 2 of --optShapesCalib", "--maxShapesCalib=x:2x16"),
    Row("calibProfile", CALIB + "--profile=0 --optShapes=x:1x16 --profile=1 --optShapes=x:500x16", "--calibProfile=1", Differs(Run.values)),
    # kernels
    Row("memPoolSize", BUILD, "--memPoolSize=workspace:1B", r"\[W\] \d+ layers have no kernel that needs no more than the workspace"),
    Row("workspace", BUILD, "--workspace=0", r"\[W\] \d+ layers have no kernel that needs no more than the workspace"),
    Row("avgTiming", TIMED, "--avgTiming=100000", Longer(3), "--avgTiming=1"),
    Row("timingCacheFile", TIMED, "--timingCacheFile=t.cache", writes("t.cache")),
    Row("timingCacheFile", TIMED + "--errorOnTimingCacheMiss", "--timingCacheFile={d}/t.cache", passes),
    Row("noBuilderCache", TIMED + "--errorOnTimingCacheMiss --timingCacheFile={d}/t.cache", "--noBuilderCache", fails),
    Row("noBuilderCache", TIMED + "--timingCacheFile=t.cache", "--noBuilderCache", lambda run: passes(run) and not run.has("t.cache")),
    Row("errorOnTimingCacheMiss", TIMED, "--errorOnTimingCacheMiss", fails),
    Row("builderOptimizationLevel", BUILD + "--errorOnTimingCacheMiss", "--builderOptimizationLevel=5", fails),
    Row("builderOptimizationLevel", BUILD.replace("cnn", "quantized") + "--errorOnTimingCacheMiss", "--builderOptimizationLevel=1", passes),
    Row("heuristic", TIMED, "--heuristic", r"\[W\] --heuristic has no effect beside --builderOptimizationLevel"),
    Row("maxTactics", TIMED + "--errorOnTimingCacheMiss", "--maxTactics=1", passes),
    Row("tacticSources", LAYERS, "--tacticSources=-OWN", lambda run: not {"views", "rows"} & tactics(run)),
    # weights
    Row("refit", BUILD + "--stripWeights --show-native", "--refit", r"(?m)^assay build .* --strip-weights --refittable$"),
    Row("refitFromOnnx", GIVEN + "--exportOutput=o.json", "--refitFromOnnx={d}/other.onnx", Differs(Run.values)),
    Row("timeRefit", RUN + "--refitFromOnnx={m}/cnn.onnx", "--timeRefit", r"Engine refitted in [\d.e-]+ sec\."),
    Row("dumpRefit", RUN, "--dumpRefit", r"(?s)\[I\] conv Kernel\n.*\[I\] bn Shift\n.*weights can be replaced"),
    # debug tensors
    Row("markDebug", "--onnx={m}/cnn.onnx --saveAllDebugTensors=raw " + QUICK, "--markDebug=n", writes("n.raw")),
    Row("markUnfusedTensorsAsDebugTensors", "--onnx={m}/cnn.onnx --saveAllDebugTensors=numpy " + QUICK, "--markUnfusedTensorsAsDebugTensors",
        lambda run: run.has("scores.npy") and not run.has("n.npy")),  # a layer keeps n to itself
    Row("saveDebugTensors", MARKED, "--saveDebugTensors=n:here.raw", writes("here.raw")),
    Row("saveAllDebugTensors", MARKED, "--saveAllDebugTensors=summary,raw",
        lambda run: run.has("n.raw") and run.has("q.raw") and len(run.json("tensor_summary.json")["tensors"]) == 2),
    # where it stops
    Row("skipInference", "--onnx={m}/cnn.onnx " + QUICK, "--skipInference", r"(?s)Engine built(?!.*Starting inference)"),
    Row("getPlanVersionOnly", RUN, "--getPlanVersionOnly", r"(?s)Plan was created with Assay version \d+\.\d+(?!.*Engine loaded)"),
    Row("timeDeserialize", RUN, "--timeDeserialize", r"(?s)Engine deserialized in [\d.e-]+ sec\.(?!.*Starting inference)"),
    Row("show_native", BUILD + "--saveEngine=s.plan", "--show-native",
        lambda run: re.search(r"(?m)^assay build \S+cnn.onnx --output s.plan$", run.text) and not run.has("s.plan")),
    Row("device", BUILD, "--device=1", fails),
    Row("monitorMemory", BUILD, "--monitorMemory", r"\[MemUsage\] building: the most memory taken so far is [\d.]+ MiB"),
    Row("compat", LAYERS.replace("--skipInference", "--dumpProfile " + QUICK) + "--fp16", "--compat=11",
        lambda run: all_stored("fp32")(run) and profiled_apart(run)),
    # runs
    Row("loadInputs", RUN + "--exportOutput=o.json", "--loadInputs=image:{d}/image.npy", Differs(Run.values)),
    Row("iterations", "--loadEngine={d}/c.plan --duration=0 --warmUp=0 --exportTimes=t.json", "--iterations=37", queries(37)),
    Row("duration", "--loadEngine={d}/c.plan --iterations=1 --warmUp=0 --idleTime=20 --exportTimes=t.json",
        "--duration=0.25", lasts(250), "--duration=0"),
    Row("warmUp", TIMES.replace("--warmUp=0", ""), "--warmUp=300", lambda run: run.json("t.json")[0]["startEnqMs"] >= 300, "--warmUp=0"),
    Row("sleepTime", TIMES, "--sleepTime=20", starts_late),
    Row("idleTime", TIMES, "--idleTime=60", waits_between),
    Row("infStreams", TIMES, "--infStreams=2", lambda run: queries(6)(run) and "Latencies overlap" in run.text),
    # references
    Row("loadRefOutputs", GIVEN, "--loadRefOutputs=scores:{d}/far.npy --accuracyThreshold=0.5", "'scores' is too far from its reference"),
    Row("refPair", GIVEN.replace("--loadInputs", "--refPair=0 --loadInputs") + "--loadRefOutputs=scores:{d}/ones.npy --accuracyThreshold=0.999 "
        "--accuracyAlgorithm=lInf", "--refPair=1 --loadInputs=image:{d}/image.bin --loadRefOutputs=scores:{d}/far.npy",
        "--refPair=1: output 'scores' is too far",
        "--refPair=1 --loadInputs=image:{d}/image.bin --loadRefOutputs=scores:{d}/ones.npy"),
    Row("accuracyThreshold", REF + "--accuracyAlgorithm=lInf", "--accuracyThreshold=0.1", fails, "--accuracyThreshold=1"),
    Row("accuracyAlgorithm", REF + "--accuracyThreshold=0.999", "--accuracyAlgorithm=lInf", passes),
    Row("atol", REF + "--accuracyThreshold=0.5", "--atol=10", passes),
    Row("rtol", REF + "--accuracyThreshold=0.5", "--rtol=10", passes),
    # reports
    Row("verbose", RUN, "--verbose", r"\[V\] Throughput: "),
    Row("avgRuns", RUN, "--avgRuns=3", r"\[I\] Average on 3 runs - GPU latency: [\d.e-]+ ms - Host latency: [\d.e-]+ ms \(enqueue 0 ms\)\n"),
    Row("percentile", RUN, "--percentile=12.5,100",
        r"Latency: min = .*, median = [\d.e-]+ ms, percentile\(12\.5%\) = [\d.e-]+ ms, percentile\(100%\) = [\d.e-]+ ms\n"),
    Row("dumpOutput", GIVEN + "--exportOutput=o.json", "--dumpOutput", printed_values),
    Row("dumpRawBindingsToFile", GIVEN + "--exportOutput=o.json", "--dumpRawBindingsToFile", raw_bindings),
    Row("dumpProfile", RUN, "--dumpProfile",
        r"=== Profile \(3 iterations \) ===\n\S+ \[I\]     Time\(ms\)    Avg\.\(ms\)  Median\(ms\)   Time\(%\)   Layer\n"),
    Row("separateProfileRun", RUN + "--dumpProfile", "--separateProfileRun", profiled_apart),
    Row("dumpLayerInfo", BUILD, "--dumpLayerInfo", r"\[I\] Layers:\n\S+ \[I\] conv \+ relu\n"),
    Row("profilingVerbosity", BUILD + "--exportLayerInfo=l.json", "--profilingVerbosity=detailed",
        lambda run: isinstance(run.json("l.json")["Layers"][0], dict)),
    Row("exportTimes", RUN, "--exportTimes=t.json", lambda run: run.has("t.json") and queries(3)(run)),
    Row("exportOutput", RUN, "--exportOutput=o.json", lambda run: run.has("o.json") and len(run.values()) == 5),
    Row("exportProfile", RUN, "--exportProfile=p.json", lambda run: run.has("p.json") and run.json("p.json")[0] == {"count": 3}),
    Row("exportLayerInfo", RUN, "--exportLayerInfo=l.json", lambda run: run.has("l.json") and run.json("l.json")["Layers"][0] == "conv + relu"),
    # other names
    Row("--buildOnly", "--onnx={m}/cnn.onnx " + QUICK, "--buildOnly", r"(?s)Engine built(?!.*Starting inference).*use --skipInference"),
    Row("--streams", TIMES, "--streams=2", lambda run: queries(6)(run) and "use --infStreams" in run.text),
    Row("--nvtxMode", BUILD + "--exportLayerInfo=l.json", "--nvtxMode=verbose", lambda run: isinstance(run.json("l.json")["Layers"][0], dict)),
    Row("--vc", BUILD, "--vc", r"\[W\] --versionCompatible has no effect in Assay: "),
    Row("--pi", BUILD, "--pi", r"\[W\] --pluginInstanceNorm has no effect in Assay: "),
]


# ---- tests --------------------------------------------------------------------------------------

def write_data(bench):
    """What the lines read, in the current folder."""
    write_files(bench.names["m"])
    np.save("row.npy", np.random.default_rng(3).standard_normal((1, 16)).astype(np.float32))
    with open("coarse.cache", "w") as f:
        f.write("TRT-8601-EntropyCalibration2\nimage: 3f800000\n")
    with open("coarse.txt", "w") as f:
        f.write("image:fp32\n")
    model = onnx.load(os.path.join(bench.names["m"], "cnn.onnx"))
    for weight in model.graph.initializer:
        if weight.name in ("w", "head"):
            weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(0.5), weight.name))
    onnx.save(model, "other.onnx")
    for line in (BUILD + "--saveEngine={d}/c.plan", BUILD + "--markDebug=n,q --saveEngine={d}/marked.plan",
                 RANGE + "--minShapes=x:1x16 --maxShapes=x:4x16 --saveEngine={d}/x.plan",
                 RANGE + "--profile=0 --maxShapes=x:4x16 --profile=1 --maxShapes=x:16x16 --saveEngine={d}/two.plan",
                 TIMED + "--timingCacheFile={d}/t.cache"):
        run = bench(line)
        assert run.code == 0, (line, run.err)


def looks(sees, run):
    return bool(re.search(sees, run.text)) if isinstance(sees, str) else bool(sees(run))


def test_rows(bench, failures):
    for row in ROWS:
        without, given = bench(f"{row.beside} {row.instead}"), bench(f"{row.beside} {row.given}")
        told = f"{row.beside} {row.given}: {given.code}, {given.text[-700:]!r}; instead {row.instead!r}: {without.code}, {without.text[-300:]!r}"
        try:
            if isinstance(row.sees, Differs):
                failures.check(passes(given) and passes(without) and row.sees.what(given) != row.sees.what(without), f"{row.flags}: Differs: {told}")
                continue
            if isinstance(row.sees, Longer):
                seconds = without.seconds, given.seconds
                failures.check(passes(given) and passes(without) and seconds[1] > row.sees.times * seconds[0], f"{row.flags}: {seconds}: {told}")
                continue
            failures.check(looks(row.sees, given), f"{row.flags}: no effect: {told}")
            failures.check(not looks(row.sees, without), f"{row.flags}: the same without it: {told}")
        except Exception as e:  # a file that is not there, or is something else
            failures.check(False, f"{row.flags}: {e!r}: {told}")


def test_complete(flags, aliases, failures):
    named = {flag for row in ROWS for flag in row.flags.split()}
    level = {id: level for id, _, _, level, _ in flags}
    works = {id for id in level if level[id] == "WORKS"}
    others = {name for name, id in aliases if level[id] in ("WORKS", "ACCEPT")}
    failures.check(len(works) > 70 and len(others) >= 5, f"only {len(works)} flags and {len(others)} other names were found")
    for name in sorted((works | others) - named):
        failures.check(False, f"{name} works, and no row of ROWS shows what changes by it: add one")
    for name in sorted(named - works - others):
        failures.check(False, f"{name} has a row, and is not a flag that works")


def main():
    program, models, table = (os.path.abspath(a) for a in sys.argv[1:4])
    failures = Failures()
    with open(os.path.join(os.path.dirname(table), "flags.c")) as f:
        aliases = re.findall(r'\{"(--[\w-]+)", TRT_FLAG_(\w+),', f.read())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        bench = Bench(program, models, folder)
        write_data(bench)
        test_rows(bench, failures)
        test_complete(read_flags(table), aliases, failures)
        os.chdir("/")
    print(f"{len(ROWS)} rows, {len(bench.runs)} runs, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
