"""The lines of test_polygraphy_flags.py: each shows what a flag does in a subcommand.

A line has '@' where its flag comes; `given` is the value. `see` takes a Run and returns what is looked at: it differs without
the flag. `want` says of it whether it is what it has to be.
"""
import glob
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import onnx
from onnx import numpy_helper as nh

from polygraphy_flag_models import inputs_of, outputs_of


class Run:
    """Calls of the program in one folder, and what they left there."""

    def __init__(self, program, folder, env):
        self.program, self.folder = program, folder
        self.env = {**os.environ, "ASSAY_PYTHON": sys.executable, **env, "PATH": f"{os.path.dirname(program)}:{os.environ['PATH']}"}
        self.code = self.last = 0
        self.out = self.err = self.said = ""

    def call(self, line):
        """A line of polygraphy's; 'assay ...' is another verb, '$ ...' the shell's."""
        words = [self.program, "polygraphy", *line.split()]
        if line.startswith("$ "):
            words = ["sh", "-c", line[2:]]
        elif line.startswith("assay "):
            words = [self.program, *line.split()[1:]]
        p = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, timeout=120)
        self.code, self.out, self.err = p.returncode, p.stdout, p.stderr

    def path(self, name):
        return os.path.join(self.folder, name)


@dataclass
class Row:
    flag: str                                # its name in flags.inc
    lines: list                              # one of each subcommand
    given: str                               # what stands behind its name
    see: Callable
    want: Callable = None
    codes: tuple = (0, 0)                    # of the line with it, and without; None: any
    before: tuple = ()
    then: tuple = ()                         # run behind the line: Run.last, Run.said
    same: bool = False                       # without it all is as with it: only `want` counts
    env: Any = None

    def __post_init__(self):
        self.lines = [self.lines] if isinstance(self.lines, str) else self.lines
        self.env = self.env or {}


# ---- what is looked at ----------------------------------------------------------------------------------------------


def code(r):
    return r.code


def printed(pattern):
    return lambda r: re.findall(pattern, r.out + r.err)


def later(pattern):
    return lambda r: re.findall(pattern, r.said)


def files(*patterns):
    return lambda r: sorted(os.path.relpath(f, r.folder) for p in patterns for f in glob.glob(r.path(p)))


def text(name):
    return lambda r: open(r.path(name), "rb").read() if os.path.exists(r.path(name)) else None


def tensors(name="i.npz.json"):
    """Of a file of inputs: names, types, shapes, values."""
    return lambda r: [{k: (str(v.dtype), v.shape, v.ravel()[:8].tolist()) for k, v in f.items()} for f in inputs_of(r.path(name))]


def results(name="o.json"):
    return lambda r: [[{k: (v.shape, np.round(v.ravel()[:6].astype(float), 3).tolist()) for k, v in i.items()} for i in runs] for _,
        runs in outputs_of(r.path(name))]


def both(*looks):
    return lambda r: tuple(look(r) for look in looks)


def layers(r):
    """Formats and tactics of p.plan's layers."""
    p = subprocess.run([r.program, "inspect", "plan", r.path("p.plan")], capture_output=True, text=True)
    lines = [line.split() for line in p.stdout.splitlines()]
    head = next((i for i, words in enumerate(lines) if words[:2] == ["asked", "ran"]), len(lines))
    return [words[:3] + words[4:5] for words in lines[head + 1:]]


def plan_text(r):
    p = subprocess.run([r.program, "polygraphy", "inspect", "model", r.path("p.plan"), "--show", "layers"], capture_output=True, text=True)
    return p.stdout.split("\n", 1)[1] if p.stdout else p.stderr


def ends(r):
    return re.findall(r"\{[^}]*\}", plan_text(r))[:2]


def profiles(r):
    return re.findall(r"Tensor: (\S+).*min=(.*), opt=(.*), max=(.*)", plan_text(r))


def model(name="o.onnx"):
    def look(r):
        if not os.path.exists(r.path(name)):
            return None
        g = onnx.load(r.path(name), load_external_data=False).graph
        shape = lambda v: [d.dim_value or d.dim_param or None for d in v.type.tensor_type.shape.dim]
        kinds = lambda vs: [(v.name, v.type.tensor_type.elem_type, shape(v)) for v in vs]
        return {"nodes": [n.op_type for n in g.node], "names": [n.name for n in g.node], "in": kinds(g.input), "out": kinds(g.output),
            "known": kinds(g.value_info),
                "weights": [(i.name, i.data_type, list(i.dims), i.data_location) for i in g.initializer]}
    return look


def part(key, name="o.onnx"):
    return lambda r: (model(name)(r) or {}).get(key)


def types(r, name="o.onnx"):
    m = model(name)(r)
    return {t for k in ("in", "out") for _, t, _ in m[k]}, {t for _, t, _, _ in m["weights"]}


def moved(name="o.onnx"):
    """Which weights are in which other file."""
    def look(r):
        found = {}
        for path in glob.glob(r.path(name)):
            for i in onnx.load(path, load_external_data=False).graph.initializer:
                if i.data_location:
                    found[i.name] = next(e.value for e in i.external_data if e.key == "location")
        return found
    return look


def weights(name="o.onnx"):
    return lambda r: {i.name: round(float(np.abs(nh.to_array(i)).sum()), 4) for i in onnx.load(r.path(name)).graph.initializer if i.raw_data}


# ---- lines of several subcommands -----------------------------------------------------------------------------------

FAST = "--builder-optimization-level 1"   # no kernel is timed: the same plan each time
TIMED = "--builder-optimization-level 5"  # all kernels are
ANY = (None, None)                        # debug ends with 1 where it finds nothing


def build(net="net.onnx", more="", fast=FAST, check="true"):
    """What builds, and leaves p.plan. debug precision needs a precision below fp32."""
    return [f"run {net} --trt {fast} {more} @ --save-engine p.plan", f"convert {net} {fast} {more} @ -o p.plan",
            f"debug build {net} {fast} {more} @ --until 1 --iter-artifact p.plan --no-remove-intermediate --check {check}",
            f"debug precision {net} {fast} --bf16 {more} @ --mode linear --iter-artifact p.plan --no-remove-intermediate --check {check}"]


def shown(net="net.onnx", more=""):
    return f"inspect model {net} --display-as trt --show layers attrs {more} @"


def calibrate(net="net.onnx"):
    """Inputs from the generator or a file make the ranges of c.cache."""
    return build(net, "--int8 --calibration-cache c.cache")[1:]


def compared(file="off.json", inputs="x.json", net="id.onnx"):
    return f"run {net} --onnxrt --load-inputs {inputs} --load-outputs {file} @"


BUILT = [build()[k] for k in (1, 2, 3)]
SURGEONS = ["surgeon extract {} --outputs e:auto @ -o o.onnx", "surgeon sanitize {} @ -o o.onnx",
            "surgeon insert {} --inputs c --outputs e --op Relu @ -o o.onnx",
            "surgeon prune {} @ -o o.onnx", "surgeon weight-strip {} --exclude-list keep.txt @ -o o.onnx"]


def surgeons(net):
    return [s.format(net) for s in SURGEONS]


def loading(net, stripped):
    """What reads an ONNX model and writes one."""
    return [f"run {net} --onnxrt @ --save-onnx o.onnx", f"convert {net} @ -o o.onnx", *surgeons(net),
            f"surgeon weight-reconstruct {stripped} @ -o o.onnx",
            f"debug reduce {net} @ --no-reduce-inputs -o o.onnx --check false"]


def building(net):
    return [f"debug precision {net} --bf16 {FAST} @ --mode linear --iter-artifact p.plan --no-remove-intermediate --check true",
            f"debug build {net} {FAST} @ --until 1 --iter-artifact p.plan --no-remove-intermediate --check true"]


def looking(net, bad):
    return [f"inspect model {net} --show layers weights @", f"inspect sparsity {net} @", f"inspect capability {bad} --with-partitioning -o caps @",
        f"check lint {net} @ -o lint.json"]


COUNT = ["surgeon extract count.onnx --inputs f:auto:auto --force-fallback-shape-inference @ -o o.onnx",
"surgeon sanitize count.onnx --force-fallback-shape-inference @ -o o.onnx"]
REDUCE = "debug reduce count.onnx --force-fallback-shape-inference @ -o o.onnx --check ./no_exp.sh"
NO_EXP = ("$ printf '#!/bin/sh\\n! grep -aq Exp polygraphy_debug.onnx\\n' > no_exp.sh; chmod 755 no_exp.sh",)
LINT = "check lint pick.onnx @ -o lint.json"
FIRST = printed(r"\[W\] only the first of the 3 iterations is used")
SHAPE_7 = lambda m: [7] in [s for _, _, s in m["in"] + m["known"]]

RUNNING = [
    Row("onnxrt", "run net.onnx @", "", printed(r"(onnxrt-runner-N0-)\S+  \| Activating"), len),
    Row("trt", "run net.onnx @", "", printed(r"(trt-runner-N0-)\S+  \| Activating"), len),
    Row("truth", "run net.onnx @ --save-outputs o.json", "",
        lambda r: [str(v.dtype) for _, runs in outputs_of(r.path("o.json")) for i in runs for v in i.values()], lambda s: s == ["float64"]),
    Row("model_type", ["run odd.plan --trt @", "convert odd.plan -o p.plan @", "inspect model odd.plan @",
        "debug build odd.plan --until 1 @ --check true",
                       "debug precision odd.plan --fp16 @ --check true"], "onnx", code, codes=(0, 1)),
    Row("model_type", ["run plan.onnx --trt @", "inspect model plan.onnx @"], "engine", code, codes=(0, 1)),
    Row("model_type", ["convert plan.onnx -o q.plan @", "debug build plan.onnx --until 1 @ --check true",
        "debug precision plan.onnx --fp16 @ --check true"],
        "engine", printed(r"is a plan already"), len, codes=(1, 1)),
    Row("input_shapes", "run net.onnx --onnxrt @", "x:[2,16,8,8]", printed(r"\{x \[.*?shape=(.*?)\]"), lambda s: s == ["(2, 16, 8, 8)"]),
    Row("input_shapes", "convert net.onnx @ -o p.plan", "x:[2,16,8,8]", profiles, lambda s: s[0][2] == "(2, 16, 8, 8)"),
    Row("input_shapes", "check lint net.onnx @", "x:[5,16,8,8]", printed(r"Will generate data of shape"), lambda s: not s),
    Row("seed", "run net.onnx --onnxrt --save-inputs saved.json @", "7", text("saved.json")),
    Row("val_range", "run net.onnx --onnxrt --save-inputs saved.json @", "x:[5,6]", tensors("saved.json"), lambda s: min(s[0]["x"][2]) >= 5),
    Row("iterations", "run net.onnx --onnxrt --save-inputs saved.json @", "3", lambda r: len(inputs_of(r.path("saved.json"))), lambda n: n == 3),
    Row("load_inputs", "run net.onnx --onnxrt --save-inputs saved.json @", "in.json", text("saved.json")),
    Row("data_loader_script", "run net.onnx --onnxrt --save-inputs saved.json @", "feed_x.py", tensors("saved.json"), lambda s: s[0]["x"][2][0] == 5),
    *[Row(flag, calibrate(), given, text("c.cache")) for flag, given in
      (("seed", "7"), ("val_range", "[5,6]"), ("iterations", "3"), ("load_inputs", "in.json"), ("data_loader_script", "feed_x.py"))],
    Row("seed", LINT + " --val-range [0,4]", "2", both(code, text("lint.json")), codes=(0, 1)),
    *[Row(flag, LINT, given, both(code, text("lint.json")), codes=(1, 0)) for flag, given in
      (("val_range", "i:[9,9]"), ("load_inputs", "i.json"), ("data_loader_script", "feed_i.py"))],
    Row("seed", [c + " --val-range [1,99]" for c in COUNT], "2", model()),
    Row("seed", REDUCE.replace("@", "--val-range [1,99] @"), "2", model(), before=NO_EXP),
    *[Row(flag, [*COUNT, REDUCE], given, model(), SHAPE_7, before=NO_EXP) for flag, given in
      (("val_range", "n:[7,7]"), ("load_inputs", "n.json"), ("data_loader_script", "feed_n.py"))],
    Row("iterations", [LINT, *COUNT, REDUCE], "3", FIRST, len, before=NO_EXP),
    Row("warm_up", "run net.onnx --onnxrt @", "2", printed(r"Running 2 warm-up run"), len),
    Row("save_inputs", "run net.onnx --onnxrt @", "saved.json", files("saved.json"), len),
    Row("save_input_blob", "run net.onnx --onnxrt @", "blobs", files("blobs/*/*"), lambda s: s == ["blobs/0000000000/x.bin"]),
    Row("save_input_blob", "run net.onnx --onnxrt @", "", files("*/0000000000/*.bin"), len),
    Row("save_outputs", "run net.onnx --onnxrt @", "o.json", files("o.json"), len),
    Row("model_input_shapes", "surgeon extract sizes.onnx --inputs a:auto:auto --force-fallback-shape-inference @ -o o.onnx", "x:[4,3]", part("in"),
        lambda s: s == [("a", 1, [4, 3])]),
    Row("model_input_shapes", "debug reduce sizes.onnx @ -o o.onnx --check false", "x:[4,3]", part("in"), lambda s: s[0][2] == [4, 3]),
    Row("override_input_shapes", "surgeon sanitize sizes.onnx @ -o o.onnx", "x:[B,3]", part("in"), lambda s: s == [("x", 1, ["B", 3])]),
]

ACC = "check accuracy acc.json --check-error-stat max @"
METRICS = "check accuracy acc_l2.json"
IGNORED = printed(r"\[W\] (\S+) has no effect on saved results")

COMPARING = [
    Row("postprocess", compared(), "y:top-2,axis=1", code, codes=(0, 1)),
    Row("postprocess_func_script", compared(), "post.py", code, codes=(0, 1)),
    Row("no_shape_check", compared("flat.json"), "", code, codes=(0, 1)),
    Row("validate", "run log.onnx --onnxrt --val-range [-2,-1] @", "", code, codes=(1, 0)),
    Row("fail_fast", compared("off2.json", "x2.json"), "", printed(r"FAILED \| Output"), lambda s: len(s) == 1, codes=(1, 1)),
    Row("fail_fast", "check accuracy acc.json --check-error-stat median @", "", IGNORED, len),
    Row("check_average", compared("one_of_two.json", "x2.json") + " --check-error-stat max --atol 6e-5", "", code, codes=(0, 1)),
    Row("check_average", "check accuracy acc2.json --atol 1 --check-error-stat max @", "", printed(r"Passed: \d+/\d+ \w+"),
        lambda s: "outputs" in s[0]),
    Row("sequential_runners", "run net.onnx --onnxrt --trt --iterations 2 @", "", lambda r: re.findall(r"(\w+)-runner-N0|(iteration \d)", r.out)),
    Row("compare", compared() + " --l2-threshold 1", "l2", code, codes=(0, 1)),
    Row("compare", METRICS + " --l2-threshold 1 @", "l2", code, codes=(0, 1)),
    Row("compare_func_script", compared(), "compare.py", code, codes=(0, 1)),
    Row("compare_func_script", "check accuracy acc.json --check-error-stat max --atol 1 @", "compare.py", printed("give it to 'polygraphy run'"),
        len, codes=(1, 0)),
    Row("load_outputs", "run id.onnx --onnxrt --load-inputs x.json @", "off.json", code, codes=(1, 0)),
    Row("save_accuracy_results", [compared() + " --atol 1", "check accuracy acc.json --check-error-stat max --atol 1 @"], "acc.out",
        files("acc.out"), len),
    *[Row(flag, [compared(), ACC], "y:2e-2", code, codes=(0, 1)) for flag in ("atol", "rtol")],
    Row("check_error_stat", compared(), "y:median", code, codes=(0, 1)),
    Row("check_error_stat", "check accuracy acc.json @", "y:median", code, codes=(0, 1)),
    Row("infinities_compare_equal", compared("inf_out.json", "inf.json"), "", code, codes=(0, 1)),
    Row("infinities_compare_equal", "check accuracy acc.json --check-error-stat median @", "", IGNORED, len),
    Row("no_shape_check", "check accuracy acc.json --check-error-stat median @", "", IGNORED, len),
    *[Row(flag, "check accuracy acc.json --check-error-stat median @", "pictures", IGNORED, len) for flag in ("save_heatmaps",
        "save_error_metrics_plot")],
    Row("error_quantile", "check accuracy acc.json --check-error-stat median @", "y:0.2", IGNORED, len),
    Row("index_tolerance", "check accuracy acc.json --check-error-stat median @", "1", printed(r"\[W\] Option: --index-tolerance is only valid"),
        len),
    *[Row(flag, compared(), "pictures", files("pictures/*", "pictures/*/*"), len, codes=(1, 1)) for flag in ("save_heatmaps",
        "save_error_metrics_plot")],
    Row("error_quantile", compared() + " --check-error-stat quantile", "y:0.5", code, codes=(0, 1)),
    Row("index_tolerance", compared("moved.json") + " --compare indices", "y:1", code, codes=(0, 1)),
    Row("l2_threshold", [compared() + " --compare l2", METRICS + " --compare l2 @"], "y:0.1", code, codes=(0, 1)),
    Row("cosine_similarity_threshold", compared("turned.json") + " --compare cosine_similarity", "y:0.5", code, codes=(0, 1)),
    Row("cosine_similarity_threshold", METRICS + " --compare cosine_similarity @", "y:1.5", code, codes=(1, 0)),
    Row("psnr_threshold", [compared() + " --compare psnr", METRICS + " --compare psnr @"], "y:99", code, codes=(1, 0)),
    Row("snr_threshold", [compared() + " --compare snr", METRICS + " --compare snr @"], "y:99", code, codes=(1, 0)),
]

EXT = loading("ext.onnx", "extstrip.onnx")
EXTBAD = looking("ext.onnx", "extbad.onnx")
SAVING = loading("net.onnx", "stripped.onnx")
PARTS = "inspect capability bad.onnx --with-partitioning -o caps @"
FOLD = "surgeon sanitize fold.onnx --fold-constants @ -o o.onnx"

MODELS = [
    Row("save_onnx", "run net.onnx --onnxrt --onnx-outputs e @", "o.onnx", model(), lambda m: m["out"][0][0] == "e"),
    Row("save_external_data", SAVING, "w.data", moved(), lambda m: set(m.values()) == {"w.data"}),
    Row("save_external_data", PARTS, "w.data", moved("caps/*.onnx"), lambda m: set(m.values()) == {"w.data"}),
    Row("save_external_data", SAVING[1], "", moved(), len),
    *[Row(flag, [s.replace("@", "--save-external-data all.data @") for s in SAVING], given, moved(), want) for flag, given, want in
      (("external_data_size_threshold", "16K", lambda m: not m), ("no_save_all_tensors_to_one_file", "",
      lambda m: m and "all.data" not in m.values()))],
    *[Row(flag, PARTS.replace("@", "--save-external-data all.data @"), given, moved("caps/*.onnx")) for flag, given in
      (("external_data_size_threshold", "16K"), ("no_save_all_tensors_to_one_file", ""))],
    Row("shape_inference", [s for s in SAVING if s.split()[1] in ("net.onnx", "extract",
        "insert") and "prune" not in s and not s.startswith("debug")], "", part("known"), len),
    Row("shape_inference", "inspect model net.onnx --show layers @", "", printed(r"-> \{c \[dtype"), len),
    Row("shape_inference", PARTS, "", lambda r: [len(onnx.load(f).graph.value_info) for f in sorted(glob.glob(r.path("caps/*.onnx")))]),
    Row("external_data_dir", [s for s in EXT + EXTBAD + building("ext.onnx")[:1] if "weight-reconstruct" not in s], "weights", code, codes=(0, 1)),
    Row("external_data_dir", "surgeon weight-reconstruct extstrip.onnx @ -o o.onnx", "weights_strip", code, codes=(0, 1)),
    Row("external_data_dir", building("ext.onnx")[1:], "weights", files("p.plan"), len, codes=(0, 1)),
    Row("ignore_external_data", [s for s in EXT + EXTBAD + building("ext.onnx")], "", code, codes=(0, 1)),
    Row("fp_to_fp16", [s for s in SAVING if "stripped" not in s and "reduce" not in s], "", types, lambda t: 10 in t[1] and 1 not in t[1]),
    Row("fp_to_fp16", "surgeon weight-reconstruct stripped.onnx @ -o o.onnx", "", types, lambda t: 10 in t[1] and 1 not in t[1]),
    Row("fp_to_fp16", SAVING[-1], "", types, lambda t: 10 in t[0]),
    Row("fp_to_fp16", building("net.onnx"), "", layers),
    Row("fp_to_fp16", "inspect model net.onnx --show layers @", "", printed(r"w_fp16 \[dtype=(\w+)"), lambda s: set(s) == {"float16"}),
    Row("fp_to_fp16", "inspect sparsity net.onnx @", "", printed(r"Found (?:non-)?sparse tensor: \w+")),
    Row("fp_to_fp16", PARTS, "", lambda r: {t for f in glob.glob(r.path("caps/*.onnx")) for t in types(r, os.path.relpath(f, r.folder))[1]},
        lambda t: 1 not in t),
    Row("fp_to_fp16", "check lint net.onnx @", "", printed(r"dtype=float16|float32 values of the model to float16"), len),
    Row("onnx_outputs", "run net.onnx --onnxrt @ --save-onnx o.onnx", "e c", part("out"), lambda o: [n for n, _, _ in o] == ["e", "c"]),
    Row("onnx_outputs", "convert net.onnx @ -o o.onnx", "mark all", part("out"), lambda o: len(o) == 5),
    *[Row("onnx_exclude_outputs", line, "pr*", part("out"), lambda o: [n for n, _, _ in o] == ["c", "e", "m", "l"]) for line in
      ("run net.onnx --onnxrt --onnx-outputs * @ --save-onnx o.onnx", "convert net.onnx --onnx-outputs * @ -o o.onnx")],
    Row("onnx_outputs_by_type", ["run net.onnx --onnxrt @ --save-onnx o.onnx", "convert net.onnx @ -o o.onnx"], "Elu MatMul", part("out"),
        lambda o: [n for n, _, _ in o] == ["e", "l"]),
    Row("force_fallback_shape_inference", "surgeon extract sizes.onnx --inputs a:auto:auto @ -o o.onnx", "", part("in"), lambda s: s == [("a", 1,
        [1, 3])]),
    Row("force_fallback_shape_inference", "surgeon sanitize sizes.onnx @ -o o.onnx", "", part("known"), lambda s: s == [("a", 1, [1, 3])]),
    Row("force_fallback_shape_inference", "debug reduce sizes.onnx @ -o o.onnx --no-reduce-outputs --check false", "", part("in"),
        lambda s: s[0][2] == [1, 3]),
    Row("no_shape_inference", "surgeon sanitize net.onnx @ -o o.onnx", "", part("known"), lambda s: not s),
    Row("no_shape_inference", "debug reduce sizes.onnx @ -o o.onnx --no-reduce-outputs --check false", "", part("in")),
    Row("exclude_outputs", "surgeon sanitize pair.onnx @ -o o.onnx", "z", part("out"), lambda o: [n for n, _, _ in o] == ["y"]),
    Row("outputs_by_type", "surgeon sanitize net.onnx @ -o o.onnx", "Elu", part("out"), lambda o: [n for n, _, _ in o] == ["e"]),
    Row("set_unbounded_dds_upper_bound", "surgeon sanitize dds.onnx @ -o o.onnx", "limit:3", part("nodes"), lambda n: "Min" in n),
]

PROFILE = "--trt-min-shapes x:[1,16,8,8] --trt-opt-shapes x:[2,16,8,8] --trt-max-shapes x:[4,16,8,8]".split()
def profile(without):
    return " ".join(w for k in range(3) if k != without for w in PROFILE[2 * k:2 * k + 2])


def outputs(r):
    return re.findall(r"(\w+) \[dtype", ends(r)[1])


BUILDING = [
    *[Row(f"trt_{end}_shapes", [line.replace("--trt --", "--trt --input-shapes x:[2,16,8,8] --") for line in build(more=profile(k))],
        f"x:[{n},16,8,8]", profiles, lambda s, n=n, k=k: s[0][1 + k] == f"({n}, 16, 8, 8)")
      for k, (end, n) in enumerate((("min", 1), ("opt", 3), ("max", 7)))],
    Row("fp16", BUILT[:1] + build()[:1] + BUILT[1:2], "", layers, lambda l: "fp16" in {x[0] for x in l}),
    Row("bf16", BUILT[:1] + build()[:1] + BUILT[1:2], "", layers, lambda l: "bf16" in {x[0] for x in l}),
    Row("int8", build(), "", layers, lambda l: any("int8" in x[2] for x in l)),
    *[Row(flag, f"debug precision net.onnx {FAST} @ --mode linear --iter-artifact p.plan --no-remove-intermediate --check true", "", layers,
          lambda l, flag=flag: flag in {x[0] for x in l}, codes=(0, 1)) for flag in ("fp16", "bf16")],
    Row("precision_constraints", [s.replace("@", "--fp16 --layer-precisions fc0:float32 @") for s in (build()[0], *BUILT[:2])], "obey", layers),
    Row("precision_constraints", build()[3], "prefer", printed(r"\[W\] --precision-constraints prefer has no effect"), len),
    Row("layer_precisions", build(more="--fp16 --precision-constraints obey"), "fc*:float32", layers),
    Row("layer_precisions", shown(), "fc*:float32", printed(r"\[W\] --layer-precisions .*no effect"), len),
    Row("calibration_cache", build(more="--int8"), "c.cache", files("c.cache"), len),
    Row("calib_base_cls", build(more="--int8 --calibration-cache c.cache"), "IInt8MinMaxCalibrator", lambda r: open(r.path("c.cache")).readline(),
        lambda s: "MinMax" in s),
    Row("load_timing_cache", build(more="--error-on-timing-cache-miss", fast=TIMED), "times", files("p.plan"), len, codes=ANY),
    Row("error_on_timing_cache_miss", build(fast=TIMED), "", files("p.plan"), lambda s: not s, codes=ANY),
    Row("save_timing_cache", build(fast=""), "new.cache", files("new.cache"), len),
    Row("save_timing_cache", shown(), "new.cache", files("new.cache"), len),
    Row("save_tactics", build(), "r.json", files("r.json"), len),
    Row("load_tactics", build(), "other_tactics.json", layers),
    Row("tactic_sources", build(), "onednn", layers, lambda l: any("onednn" in x[2] for x in l)),
    Row("tactic_sources", [s.replace("@", "--tactic-sources onednn @") for s in build()], "", layers, lambda l: not any("onednn" in x[2] for x in l)),
    Row("refittable", build(more="--strip-plan"), "", lambda r: open(r.path("p.plan"), "rb").read(), len),
    Row("refittable", build(), "", lambda r: r.last, lambda c: c == 0, same=True,
        then=("assay trtexec --loadEngine=p.plan --refitFromOnnx=net.onnx --skipInference",)),
    Row("pool_limit", build(), "workspace:1", layers),
    Row("builder_optimization_level", build(more="--save-timing-cache new.cache", fast=""), "5", lambda r: "ReduceMean" in open(r.path("new.cache"),
        errors="replace").read(), lambda s: s),
    Row("profiling_verbosity", build(), "none", later(r"Layer\(s\).*|conv0"),
        then=("assay trtexec --loadEngine=p.plan --dumpLayerInfo --skipInference",)),
    Row("trt_outputs", build()[1:], "c e", outputs, lambda o: o == ["c", "e"]),
    Row("trt_outputs", "run net.onnx --trt @ --save-outputs o.json", "c e", lambda r: list(outputs_of(r.path("o.json"))[0][1][0]),
        lambda o: o == ["c", "e"]),
    Row("trt_exclude_outputs", build("pair.onnx")[1:], "z", outputs, lambda o: o == ["y"]),
    Row("trt_exclude_outputs", "run pair.onnx --trt @ --save-outputs o.json", "z", lambda r: list(outputs_of(r.path("o.json"))[0][1][0]),
        lambda o: o == ["y"]),
    *[Row(flag, build()[1:], given, outputs, want) for flag, given, want in
      (("trt_outputs_by_type", "CONVOLUTION", lambda o: o == ["c"]), ("mark_debug", "e", lambda o: "e" in o and "prob" in o),
       ("mark_unfused_tensors_as_debug_tensors", "", lambda o: len(o) > 2))],
    *[Row(flag, "run net.onnx --trt @ --save-outputs o.json", given, lambda r: list(outputs_of(r.path("o.json"))[0][1][0]), want) for flag, given,
        want in
      (("trt_outputs_by_type", "CONVOLUTION", lambda o: o == ["c"]), ("mark_debug", "e", lambda o: "e" in o and "prob" in o),
       ("mark_unfused_tensors_as_debug_tensors", "", lambda o: len(o) > 2))],
    Row("mark_debug", "convert net.onnx --trt-outputs c @ -o p.plan", "e", outputs, lambda o: o == ["e", "c"]),
    *[Row(flag, shown(), given, printed(r"Engine Output\(s\)[^}]*")) for flag, given in (("mark_debug", "e"),
        ("mark_unfused_tensors_as_debug_tensors", ""))],
    Row("tensor_dtypes", build(), "x:float16", ends, lambda e: "float16" in e[0] and "float32" in e[1]),
    Row("all_tensor_dtypes", build(), "float16", ends, lambda e: "float16" in e[0] and "float16" in e[1]),
    Row("tensor_dtypes", shown(), "x:float16", printed(r"x \[dtype=(\w+)")),
    Row("all_tensor_dtypes", shown(), "float16", printed(r"x \[dtype=(\w+)")),
    Row("tensor_formats", build(), "x:[chw4]", ends, lambda e: "format=chw4" in e[0] and "format" not in e[1]),
    Row("all_tensor_formats", build(), "chw4 linear", ends, lambda e: "format=chw4" in e[0] and "format" not in e[1]),
    *[Row(flag, shown(), given, printed(r"format=(\w+)"), lambda s: s and set(s) == {"chw4"})
      for flag, given in (("tensor_formats", "x:[chw4]"), ("all_tensor_formats", "chw4 linear"))],
    Row("direct_io", build(more="--tensor-dtypes x:float16"), "", printed(r"--direct-io.*"), len, codes=ANY),
    Row("quantile", build(more="--int8 --calib-base-cls IInt8LegacyCalibrator --calibration-cache c.cache"), "0.5", text("c.cache")),
    Row("strip_plan", build(), "", lambda r: os.path.getsize(r.path("p.plan")), lambda n: n < 22000),
    Row("allocation_strategy", "run net.onnx --trt @", "static", printed(r"(\d+) bytes are taken for values and scratch"), len),
    Row("strongly_typed", build(more="--fp16"), "", layers, lambda l: {x[0] for x in l} == {"fp32"}),
    Row("save_engine", "run net.onnx --trt @", "p.plan", files("p.plan"), len),
    Row("optimization_profile", "run two.plan --trt --input-shapes x:[1,16,8,8] @", "1", code, codes=(1, 0)),
]

EACH = ["debug repeat --until 2 {} --check {}", f"debug build rows.onnx {FAST} --until 2 {{}} --check {{}}",
        f"debug precision rows.onnx {FAST} --fp16 {{}} --check {{}}", "debug reduce rows.onnx -o o.onnx {} --check {}"]
MAKING = EACH[1:]
SHOUT = ("$ printf '#!/bin/sh\\necho hello; cat info.json 2>/dev/null; echo art > art.txt; exit $1\\n' > say.sh; chmod 755 say.sh",)
OLD = """$ printf '{"_N0": %s, "_N0_outputs": %s}' "$E" "$E" > old.json"""
ENTRY = '{"state": {}, "iteration_info": {"iteration": 0}, "success": false, "polygraphy_class": "IterationContext"}'


def each(check, more="@", lines=None):
    return [line.format(more, check) for line in lines or EACH]


DEBUGGING = [
    Row("check", [line.split(" --check")[0].format("@") for line in EACH], "./say.sh 1", printed(r"FAILED \| Iteration"), len, before=SHOUT,
        codes=ANY),
    Row("fail_code", each("./say.sh 4"), "3", printed(r"FAILED \| Iteration"), lambda s: not s, before=SHOUT, codes=ANY),
    Row("ignore_fail_code", each("./say.sh 4"), "4 5", printed(r"FAILED \| Iteration"), lambda s: not s, before=SHOUT, codes=ANY),
    Row("fail_regex", each("./say.sh 0"), "he.*o", printed(r"FAILED \| Iteration"), len, before=SHOUT, codes=ANY),
    Row("show_output", each("./say.sh 0"), "", printed(r"        hello"), len, before=SHOUT, codes=ANY),
    Row("hide_fail_output", each("./say.sh 1"), "", printed(r"        hello"), lambda s: not s, before=SHOUT, codes=ANY),
    Row("artifacts", each("./say.sh 1"), "art.txt", files("polygraphy_artifacts/bad/*"), len, before=SHOUT, codes=ANY),
    Row("art_dir", each("./say.sh 1", "--artifacts art.txt @"), "mine", files("mine"), len, before=SHOUT, codes=ANY),
    Row("iter_artifact", each("./say.sh 1", lines=MAKING), "mine.bin", printed(r"(?:to:?) (mine\.bin)"), len, before=SHOUT, codes=ANY),
    Row("no_remove_intermediate", each("./say.sh 1", lines=MAKING), "", files("polygraphy_debug.engine", "polygraphy_debug.onnx"), len,
        before=SHOUT, codes=ANY),
    Row("iter_info", each("./say.sh 1"), "info.json", printed(r'"iteration": \d'), len, before=SHOUT, codes=ANY),
    Row("until", ["debug repeat @ --check true", f"debug build rows.onnx {FAST} @ --check true"], "3", printed(r"Finished 3 iteration"), len,
        codes=(0, 2)),
    Row("save_debug_replay", each("./say.sh 1", lines=[EACH[0], *EACH[2:]]), "mine.json", files("mine.json"), len, before=SHOUT, codes=ANY),
    Row("load_debug_replay", each("./say.sh 1", lines=[EACH[0], *EACH[2:]]), "old.json",
        printed(r"Loading iteration information from debug replay"), len, before=(*SHOUT, OLD), env={"E": ENTRY}, codes=ANY),
    Row("mode", [EACH[2].format("@", "false"), "debug reduce net.onnx -o o.onnx @ --check false"], "linear", printed(r"RUNNING \| Iteration \d+"),
        codes=ANY),
    Row("dir", EACH[2].format("@", "true"), "reverse", printed(r"Marking the (\w+)"), lambda s: set(s) == {"last"}),
    Row("precision", EACH[2].format("@ --int8", "true"), "float16", printed(r"to run in (\w+)"), lambda s: set(s) == {"fp16"}),
    Row("min_good", "debug reduce rows.onnx -o o.onnx @ --check ./no_exp.sh", "good.onnx", files("good.onnx"), len, before=NO_EXP),
    Row("no_reduce_inputs", "debug reduce rows.onnx -o o.onnx @ --check ./no_exp.sh", "", part("nodes"), lambda n: n == ["Relu", "Exp"],
        before=NO_EXP),
    Row("no_reduce_outputs", "debug reduce rows.onnx -o o.onnx @ --check ./no_exp.sh", "", part("nodes"), lambda n: n == ["Exp", "Neg"],
        before=NO_EXP),
]

SURGERY = [
    Row("inputs", "surgeon extract net.onnx @ --outputs l:auto -o o.onnx", "e:auto:auto", part("nodes"), lambda n: n == ["ReduceMean", "MatMul"]),
    Row("inputs", "surgeon insert net.onnx @ --outputs e --op Relu -o o.onnx", "c", code, codes=(0, 2)),
    Row("outputs", "surgeon extract net.onnx @ -o o.onnx", "e:auto", part("nodes"), lambda n: n == ["Conv", "Elu"]),
    Row("outputs", "surgeon sanitize net.onnx @ -o o.onnx", "e prob", part("out"), lambda o: [n for n, _, _ in o] == ["e", "prob"]),
    Row("outputs", "surgeon insert net.onnx --inputs c --op Relu @ -o o.onnx", "e", part("nodes"), lambda n: n[1] == "Relu", codes=(0, 2)),
    Row("fold_constants", "surgeon sanitize fold.onnx @ -o o.onnx", "", part("nodes")),
    Row("num_passes", FOLD, "0", part("nodes"), lambda n: len(n) == 11),
    Row("no_fold_shapes", FOLD + " --override-input-shapes x:[4,3]", "", part("nodes"), lambda n: "Shape" in n),
    Row("fold_size_threshold", FOLD, "1K", part("nodes"), lambda n: "Expand" in n),
    Row("cleanup", "surgeon sanitize fold.onnx @ -o o.onnx", "", part("names"), lambda n: "dead0" not in n),
    # A model is sorted when it is read: the flag asks for what is so anyway.
    Row("toposort", "surgeon sanitize unsorted.onnx @ -o o.onnx", "", part("nodes"), lambda n: n == ["Relu", "Exp", "Neg"], same=True),
    Row("op", "surgeon insert net.onnx --inputs c --outputs e @ -o o.onnx", "LeakyRelu", part("nodes"), lambda n: n[1] == "LeakyRelu", codes=(0, 2)),
    Row("name", "surgeon insert net.onnx --inputs c --outputs e --op Relu @ -o o.onnx", "mine", part("names"), lambda n: "mine" in n),
    Row("attrs", "surgeon insert net.onnx --inputs c --outputs e --op LeakyRelu @ -o o.onnx", "alpha=0.25",
        lambda r: [a.f for n in onnx.load(r.path("o.onnx")).graph.node if n.op_type == "LeakyRelu" for a in n.attribute], lambda a: a == [0.25]),
    Row("exclude_list", "surgeon weight-strip net.onnx @ -o o.onnx", "keep.txt", weights(), lambda w: "fc" in w),
]

MADE = ["convert net.onnx @", "check lint net.onnx @", *[s.replace(" -o o.onnx", "") for s in surgeons("net.onnx")],
"surgeon weight-reconstruct stripped.onnx @",
        "debug reduce rows.onnx @ --check false", "data concat in.json @", "data merge in.json @"]
NEEDED = [c for c in MADE if not c.startswith("check lint")]

OTHERS = [
    Row("gen", "run net.onnx --onnxrt @", "gen.py", files("gen.py"), len),
    Row("show_native", ["run net.onnx --trt @", "convert net.onnx -o p.plan @"], "", printed(r"(?m)^assay \w+ net.onnx"), len),
    Row("output", NEEDED, "o.onnx", files("o.onnx"), len, codes=(0, 2)),
    Row("output", "check lint net.onnx @", "o.json", files("o.json"), len),
    Row("output", "inspect capability bad.onnx @", "caps", files("caps/*"), len),
    Row("convert_to", "convert net.onnx -o o.bin @", "trt", code, codes=(0, 1)),
    Row("convert_to_inspect_model", "inspect model net.onnx @", "trt", printed(r"==== (\w+ \w+) ===="), lambda s: s == ["Assay Plan"]),
    *[Row("show", "inspect model net.onnx @", word, printed(pattern), len) for word, pattern in
      (("layers", r"Node 0"), ("layers attrs", r"conv0\.pads = "), ("weights", r"\[\[\[\["))],
    Row("save_visual", "inspect model net.onnx @", "net.html", files("net.html"), len),
    Row("combine_tensor_info", "inspect model net.onnx --show layers @", "in.json", printed(r"x \[dtype=.*Stats: mean="), len),
    Row("list_unbounded_dds", "inspect model dds.onnx @", "", printed(r"unbounded DDS: \[limit"), len),
    Row("all", "inspect data in.json @", "", printed(r"Iteration: 1"), len),
    Row("show_values", "inspect data x.json @", "", printed(r"\[\[ *1\. "), len),
    Row("histogram", "inspect data in.json @", "", printed(r"---- Histogram"), len),
    Row("num_items", "inspect data in.json -s @", "2", printed(r"\[\[\[\[.*")),
    Row("line_width", "inspect data golden.json -s @", "20", printed(r"\[\[0.*")),
    Row("with_partitioning", "inspect capability bad.onnx -o caps @", "", files("caps/*.onnx"), len),
    Row("dir_inspect_diff_tactics", "inspect diff-tactics @", "sorted", printed(r"Loaded 1 good"), len, codes=(0, 1)),
    Row("good", "inspect diff-tactics --bad sorted/bad @", "sorted/good", printed(r"Loaded 1 good"), len, codes=(0, 1)),
    Row("bad", "inspect diff-tactics --good sorted/good @", "sorted/bad", printed(r"Loaded 1 bad"), len, codes=(0, 1)),
]

# A line of each subcommand that says something.
ALL = ["run net.onnx --onnxrt @", "convert net.onnx -o o.onnx @", "inspect model net.onnx @", "inspect data in.json @",
"inspect tactics sorted/good/0.json @",
       "inspect diff-tactics --dir sorted @", "inspect capability net.onnx @", "inspect sparsity net.onnx @", "check lint net.onnx @",
       "check accuracy acc.json --check-error-stat median @", *surgeons("net.onnx"), "surgeon weight-reconstruct stripped.onnx -o o.onnx @",
       "debug precision rows.onnx --fp16 @ --check true", "debug reduce rows.onnx -o o.onnx @ --check false",
       "debug build rows.onnx --until 1 @ --check true",
       "debug repeat --until 1 @ --check true", "data concat in.json -o o.json @", "data merge in.json -o o.json @"]
LINES = lambda r: r.out.count("\n")
# Subcommands that have no more to say.
QUIET = ("convert", "inspect", "check accuracy", "surgeon", "data")

LOGGING = [
    Row("verbose", [s for s in ALL if not s.startswith(QUIET)], "-vvvv", LINES),
    Row("quiet", ALL, "-qqqq", LINES, lambda n: n == 0),
    Row("silent", ALL, "", LINES, lambda n: n == 0),
    Row("verbosity", ALL, "CRITICAL", LINES, lambda n: n == 0),
    Row("verbosity", ALL, "frontends/polygraphy:CRITICAL", LINES, lambda n: n == 0),
    Row("log_format", ALL, "timestamp line-info", printed(r"(?m)^\[\w\] \(\d\d:\d\d:\d\d\) \[frontends/polygraphy/[\w/]+\.c:\d+\]"), len),
    Row("log_file", ALL, "log.txt", both(files("log.txt"),
        lambda r: open(r.path("log.txt")).read() == r.out if os.path.exists(r.path("log.txt")) else None),
        lambda s: s == (["log.txt"], True)),
]

ROWS = RUNNING + COMPARING + MODELS + BUILDING + DEBUGGING + SURGERY + OTHERS + LOGGING

# What a subcommand has, and needs for nothing: why.
NOTHING_TO_DO = {("shape_inference", "debug precision"): "a build infers shapes anyway", ("shape_inference", "debug build"): "the same",
                 ("strongly_typed", "inspect model"): "it has no precision flags that this one would switch off",
                 **{("verbose", " ".join(line.split()[:2]).replace("convert net.onnx",
                 "convert")): "there is no more to say" for line in ALL if line.startswith(QUIET)}}
# Flags whose effect a test of another file shows: the file, and the name of the test.
ELSEWHERE = {"visual": ("test_visual.py", "def test_server"), "visual_port": ("test_visual.py", "def test_server")}
