#!/usr/bin/env python3
"""assay polygraphy: the rules of its command line, log, runners, comparisons, inputs and files, each held by a test.

    test_polygraphy_rules.py ASSAY SOURCES [SEED]

SOURCES is src/frontends/polygraphy. Comparisons and inputs are held against their definitions in NumPy, on random data of a seed
that is printed.
"""
import base64
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from polygraphy_flag_models import array, info, inputs_of, outputs_of, save, write_all, write_inputs, write_results
from test_polygraphy_flags import read_tables

failures = []


def expect(ok, what):
    if not ok:
        failures.append(what)
        print("FAILED", what)


def call(program, line, env=None):
    words = line.split() if isinstance(line, str) else line
    p = subprocess.run([program, "polygraphy", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, env={**os.environ,
        **(env or {})})
    return p.returncode, p.stdout, p.stderr


# ---- 2: values of flags that are wrong ------------------------------------------------------------------------------

# What a subcommand cannot do without, so that a line is refused for nothing else.
MODEL = {"inspect data": "f.json", "inspect tactics": "f.json", "check accuracy": "f.json", "data concat": "f.json", "data merge": "f.json",
         "inspect diff-tactics": "", "debug repeat": ""}


def malformed(kind, names, value):
    """(What is given, the message) of a flag of this kind."""
    name, spelled = max(names, key=lambda n: n.startswith("--")), "/".join(names)
    if kind in ("SWITCH", "COUNT"):
        return [(f"{name}=1", f"argument {spelled}: ignored explicit argument '1'")]
    if kind == "INT":
        return [(f"{name} x", f"argument {spelled}: invalid int value: 'x'"), (f"{name} 1.5", f"argument {spelled}: invalid int value: '1.5'"),
                (name, f"argument {spelled}: expected one argument")]
    if kind == "FLOAT":
        return [(f"{name} x", f"argument {spelled}: invalid float value: 'x'"), (name, f"argument {spelled}: expected one argument")]
    if kind in ("CHOICE", "CHOICES"):
        choices = ", ".join(f"'{c}'" for c in value.split("|"))
        return [(f"{name} odd", f"argument {spelled}: invalid choice: 'odd' (choose from {choices})")]
    if kind in ("TEXT", "OUTPUT"):
        return [(name, f"argument {spelled}: expected one argument")]
    if kind in ("LIST", "LISTS"):
        return [(name, f"argument {spelled}: expected at least one argument")]
    return []


def malformed_lines(sources):
    commands, flags = read_tables(sources)
    text = re.sub(r"(?m)^//.*", "", open(f"{sources}/flags.inc").read())
    kinds = dict(re.findall(r'PG_FLAG\(\s*(\w+),\s*"[^"]+",\s*(\w+)', text))
    values = {}
    for name, rest in re.findall(r"(?s)PG_FLAG\(\s*(\w+),(.*?)\)\n(?=PG_FLAG|\s*\Z|\n)", text):
        # What stands behind the subcommands: the words that it may be.
        words = ["".join(re.findall(r'"([^"]*)"', m)) for m in re.findall(r'((?:"[^"]*"\s*)+)', rest)]
        values[name] = words[1] if len(words) > 1 else ""
    for flag, (names, level, where) in flags.items():
        for command in sorted(where):
            for given, message in malformed(kinds[flag], names, values[flag]):
                model = MODEL.get(command, "m.onnx")
                yield f"{command} {model} {given}", f"polygraphy {command}: error: {message}"


def test_malformed(program, sources):
    lines = list(malformed_lines(sources))

    def check(row):
        line, message = row
        code, out, err = call(program, line)
        if code != 2 or not err.startswith("usage: polygraphy ") or err.splitlines()[-1] != message:
            return f"{line}: exit {code}, {err[-300:]!r}, not 2 and {message!r}"
        return None
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(check, lines):
            expect(not found, found)
    return len(lines)


# ---- 2: lines -------------------------------------------------------------------------------------------------------

DECLARED = r"\[W\] output 'y' is declared as float\[3, 6\], but node 'relu' makes it float\[2, 6\]\n"
MINUS = r"\[W\] value 'x': dimension 0 is -1, taken as open\n"

# Line, exit code, patterns of stdout and stderr together (with '!': not there).
LINES = [
    # the model's place
    ("run --onnxrt id.onnx --onnxrt", 0, ["Passed: 1/1"]),
    ("run --onnxrt --seed 3 id.onnx", 0, ["PASSED"]),
    ("run --onnx-outputs y -- id.onnx --onnxrt", 1, [r"Unrecognized Options: \['--onnxrt'\]"]),
    ("run --onnxrt --onnx-outputs y id.onnx", 1, ["The runners need a model"]),
    ("run id.onnx other.onnx --onnxrt", 1, [r"Unrecognized Options: \['other.onnx'\]"]),
    # given again: the last one counts, or it adds
    ("run id.onnx --onnxrt --seed 7 --seed 1 --save-inputs s1.json", 0, []),
    ("run id.onnx --onnxrt --onnxrt --atol 1 --atol 1e-9 x:4", 0, [r"abs=1e-09, rel=1e-05"]),
    ("run id.onnx --onnxrt --onnxrt --compare l2 --compare psnr", 0, [r"psnr", r"!L2 Norm"]),
    ("convert net.onnx --trt-min-shapes x:[1,16,8,8] --trt-max-shapes x:[2,16,8,8] --trt-min-shapes x:[3,16,8,8] --trt-max-shapes x:[4,16,8,8] -o two2.plan", 0, []),
    ("inspect model two2.plan", 0, [r"2 Profile"]),
    ("run id.onnx --onnxrt -v -v", 0, [r"\[V\]"]),
    # contradictions
    ("run id.onnx --onnxrt --load-inputs x.json --data-loader-script feed_x.py", 2, ["not allowed with argument"]),
    ("run id.onnx --trt --save-tactics a --load-tactics b", 2, ["not allowed with argument"]),
    ("debug repeat --until 1 --fail-code 1 --ignore-fail-code 2 --check true", 2, ["not allowed with argument"]),
    ("debug repeat --until 1 --show-output --hide-fail-output --check true", 2, ["not allowed with argument"]),
    ("debug reduce id.onnx -o o.onnx --no-reduce-inputs --no-reduce-outputs --check true", 2, ["not allowed with argument"]),
    ("run id.onnx --onnxrt --onnxrt --check-average --fail-fast --check-error-stat max", 1, ["--fail-fast"]),
    ("run id.onnx --onnxrt --onnxrt --check-average", 1, ["elemwise"]),
    ("run id.onnx --onnxrt --onnxrt --check-average --compare indices", 1, ["indices"]),
    ("debug precision id.onnx --check true", 1, ["--fp16"]),
    # values of two parts: the last colon divides
    ("run colon.onnx --onnxrt --val-range a:b:[5,6] --save-inputs s2.json", 0, []),
    ("run colon.onnx --onnxrt --onnxrt --atol a:y:3 7", 0, ["abs=3, "]),
    ("run id.onnx --onnxrt --val-range x:[0,1,2]", 1, [r"'\[0,1,2\]' is no \[min,max\]"]),
    ("run id.onnx --onnxrt --input-shapes x:[2, 6]", 1, [r"'\[2,'"]),
    ("run net.onnx --onnxrt --input-shapes ?:[2,16,8,8]", 0, [r"shape=\(2, 16, 8, 8\)"]),
    ("run net.onnx --onnxrt --input-shapes [2,16,8,8]", 0, [r"shape=\(2, 16, 8, 8\)"]),
    # abbreviations
    ("run id.onnx --onnxrt --onnxrt --abs 1e-3 --rel 1e-2 --fail-f", 0, [r"abs=0\.001, rel=0\.01"]),
    ("run id.onnx --onnxrt --load-inp x.json --save-out s3.json", 0, ["Saving inference results to s3.json"]),
    ("run id.onnx --onnxrt --onnx-out y", 2, ["error: ambiguous option: --onnx-out could match --onnx-outputs, --onnx-outputs-by-type$"]),
    ("run id.onnx --onnxrt --onnx-outputs y", 0, ["PASSED"]),
    ("debug repeat --until 1 --check echo --fail-c 3 --frob", 0, ["Running check command: echo --fail-c 3 --frob"]),
    ("debug precision id.onnx --fp16 -pfloat32 --check true", 0, ["PASSED"]),
    ("debug precision id.onnx --fp16 -p=float32 --check true", 0, ["PASSED"]),
    # unknown flags
    ("run id.onnx --onnxrt --iteratoins 3", 1,
     [r"\[E\] Unrecognized Options: \['--iteratoins', '3'\]\n    --iteratoins: did you mean --iterations\?"]),
    ("inspect data x.json --onnxrt", 1, [r"Unrecognized Options: \['--onnxrt'\]"]),
    ("surgeon extract id.onnx -o o.onnx --fp16", 1, [r"Unrecognized Options: \['--fp16'\]"]),
    # first and last lines
    *[(line, 0, [r"^\[I\] RUNNING \| Command: polygraphy " + line.split()[0],
        r"\[I\] PASSED \| Runtime: \d+\.\d{3}s \| Command: polygraphy [^\n]*\n$"]) for line in
      ("run id.onnx --onnxrt", "convert id.onnx -o o1.onnx", "inspect capability id.onnx", "inspect sparsity id.onnx", "check lint id.onnx",
       "surgeon sanitize id.onnx -o o2.onnx", "surgeon prune id.onnx -o o3.onnx", "debug repeat --until 1 --check true",
       "inspect tactics sorted/good/0.json", "inspect diff-tactics --dir sorted", "check accuracy acc.json --check-error-stat median")],
    *[(line, 0, ["!RUNNING", "!PASSED"]) for line in ("inspect model id.onnx", "inspect data x.json", "data concat x.json -o o4.json",
        "data merge x.json -o o5.json",
                                                      "surgeon insert net.onnx --inputs c --outputs e --op Relu -o o6.onnx")],
    ("run none.onnx --onnxrt", 1, [r"\[W\] Model path does not exist: none\.onnx",
     r"\[E\] FAILED \| Runtime: \d+\.\d{3}s \| Command: polygraphy run none\.onnx --onnxrt\n$"]),
    ("run id.onnx --onnxrt --frob", 1, ["!RUNNING", "!FAILED"]),
    # levels: a verbose, an information, a start, a finish and a warning
    *[(f"run id.onnx --onnxrt --use-subprocess {flags}", 0, [("" if k >= shown else "!") + p for k, p in enumerate(
        (r"\[V\]", r"\[I\] Streaming", r"\[I\] RUNNING", r"\[I\] PASSED", r"\[W\]"))]) for flags, shown in
      (("-v", 0), ("--verbosity VERBOSE", 0), ("", 1), ("--verbosity INFO", 1), ("-q", 2), ("--verbosity START", 2), ("-qq", 3),
       ("--verbosity FINISH", 3), ("-qqq", 4),
       ("--quiet --quiet --quiet", 4), ("--verbosity WARNING", 4), ("-qqqq", 5), ("--verbosity ERROR", 5), ("--silent", 5), ("--silent -vvv", 5))],
    ("run none.onnx --onnxrt -qqqq", 1, [r"\[E\] FAILED", r"!\[W\]", r"\[!\]"]),
    ("run none.onnx --onnxrt -qqqqq", 1, [r"!\[E\]", r"\[!\]"]),
    ("run none.onnx --onnxrt --silent", 1, [r"^$"]),
    ("run id.onnx --onnxrt --verbosity CRITICAL frontends/polygraphy/run.c:INFO", 0, ["Streaming", "!Loading model"]),
    ("run id.onnx --onnxrt --verbosity frontends/polygraphy:CRITICAL frontends/polygraphy/run.c:INFO", 0, ["Streaming", "!Loading model"]),
    # log formats
    ("run id.onnx --onnxrt --log-format timestamp", 0, [r"^\[I\] \(\d\d:\d\d:\d\d\) RUNNING"]),
    ("run id.onnx --onnxrt --log-format line-info no-colors", 0, [r"^\[I\] \[frontends/polygraphy/[\w/]+\.c:\d+\] RUNNING"]),
    ("run id.onnx --onnxrt --log-file no/log.txt", 1, ["--log-file: 'no/log.txt' cannot be written"]),
    # models by their names
    ("run plan.onnx --trt", 1, [r"\[!\]"]),
    ("run two.trt --trt", 0, ["Loading engine: two.trt"]),
    ("run two.engine --trt", 0, ["Loading engine: two.engine"]),
    ("run net.onnx --trt --model-type uff", 1, ["--model-type uff is not supported"]),
    ("template trt-network", 2, ["is not supported"]), ("plugin list", 2, ["is not supported"]), ("multi-device x", 2, ["is not supported"]),
    ("inspect", 2, ["required: subtool"]), ("", 2, ["required: tools"]),
    # tactics of a replay
    ("convert net.onnx --load-tactics odd_tactic.json -o o7.plan", 1, ["layer 'fc0' is to be run by 'frob'"]),
    ("convert net.onnx --load-tactics emu_tactic.json -o o8.plan", 1, ["layer 'fc0' is to be run by 'emu'"]),
    ("convert net.onnx --load-tactics other_layer.json -o o9.plan", 0,
     [r"\[W\] --load-tactics: layer 'conv9' of 'other_layer.json' is not in this plan",
                                                                      r"does not have 1 of the 4 layers"]),
    # what more is said of a mismatch, and of one runner alone
    ("run id.onnx --onnxrt --load-inputs x.json --load-outputs off.json -vvv", 1, [r"\[S\] +Mismatched indices:\n +\[\[1 5\]\]",
     r"\[X\] +\S+ +\| Mismatched values:\n"]),
    ("run id.onnx --onnxrt --load-inputs x.json --load-outputs off.json -vv", 1, ["!Mismatched indices", "Mismatched values"]),
    ("run id.onnx --onnxrt --load-inputs x.json --load-outputs off.json -v", 1, ["!Mismatched values",
     r"Cause: .* \| Next: assay check id\.onnx --inputs x\.json"]),
    # lists that data loaders chain
    ("run net.onnx --onnxrt --load-inputs in.json in.json --save-outputs s4.json", 0, []),
    ("run net.onnx --onnxrt --load-inputs golden.json", 1, ["polygraphy data merge"]),
    # what is wrong with a model and keeps nobody from running it: once a call, whoever loads it
    ("run declared.onnx --onnxrt --trt", 0, [DECLARED, f"!{DECLARED}(?s:.*){DECLARED}"]),
    ("convert declared.onnx -o o10.plan", 0, [DECLARED, f"!{DECLARED}(?s:.*){DECLARED}"]),
    ("surgeon sanitize declared.onnx -o o11.onnx", 0, [DECLARED]),
    ("inspect model minus.onnx", 0, [MINUS]),
    ("surgeon extract minus.onnx --outputs y:auto -o o12.onnx", 0, [MINUS]),
    ("run minus.onnx --onnxrt -qqqq", 0, ["!taken as open"]),
]


def write_more(program):
    save("colon.onnx", [h.make_node("Identity", ["a:b"], ["a:y"])], [info("a:b", T.FLOAT, [2])], [info("a:y", T.FLOAT, [2])])
    for name, x, y in (("declared", [2, 6], [3, 6]), ("minus", [-1, 6], None)):
        save(f"{name}.onnx", [h.make_node("Relu", ["x"], ["y"], name="relu")], [info("x", T.FLOAT, x)], [info("y", T.FLOAT, y)])
    for end in ("trt", "engine"):
        os.link("two.plan", f"two.{end}")
    for name, change in (("odd_tactic", lambda l: l["fc0"].update(assay="frob")), ("emu_tactic", lambda l: l["fc0"].update(assay="emu")),
                         ("other_layer", lambda l: l.update(conv9=l.pop("fc0")))):
        replay = json.load(open("sorted/good/0.json"))
        change(replay["replay"])
        json.dump(replay, open(f"{name}.json", "w"))


def test_lines(program):
    for line, code, patterns in LINES:
        got, out, err = call(program, line)
        expect(got == code, f"{line}: exit {got}, not {code}\n{out[-500:]}{err[-300:]}")
        for p in patterns:
            found = re.search(p.lstrip("!"), out + err.rstrip("\n"))
            expect(bool(found) != p.startswith("!"), f"{line}: {p!r} in\n{(out + err)[-700:]}")
    first = np.random.RandomState(1).random_sample((2, 6)).astype(np.float32)
    expect(np.array_equal(inputs_of("s1.json")[0]["x"], first), "--seed 7 --seed 1: the last one counts")
    expect(inputs_of("s2.json")[0]["a:b"].min() >= 5, "a name with a colon")
    expect(len(outputs_of("s4.json")[0][1]) == 4, "files one after the other")


def test_colours(program):
    """On a terminal lines have colours, unless --log-format no-colors."""
    for more, coloured in (([], True), (["--log-format", "no-colors"], False)):
        leader, follower = pty.openpty()
        p = subprocess.run([program, "polygraphy", "run", "id.onnx", "--onnxrt", *more], stdout=follower)
        os.close(follower)
        text = b""
        try:
            while chunk := os.read(leader, 65536):
                text += chunk
        except OSError:  # its end
            pass
        os.close(leader)
        expect(p.returncode == 0 and (b"\033[" in text) == coloured, f"colours with {more}: {text[:80]}")


# ---- 3: runners -----------------------------------------------------------------------------------------------------


def test_runners(program):
    code, out, _ = call(program,
        "run id.onnx --trt --onnxrt --trt --truth --load-inputs x.json --load-outputs off.json pair.json --atol 1 --iterations 1")
    stamp = r"-\d\d/\d\d/\d\d-\d\d:\d\d:\d\d"
    pairs = [tuple(re.sub(stamp, "", n) for n in p) for p in re.findall(r"Accuracy Comparison \| (\S+) vs\. (\S+)", out)]
    names = ["trt-runner-N0", "onnxrt-runner-N0", "trt-runner-N1", "truth-runner-N0", "golden-runner", "golden-runner"]
    expect(code == 0 and pairs == list(zip(names, names[1:])), f"pairs: {pairs}\n{out[-300:]}")
    heads = re.findall(r"(?m)^\[I\] (Accuracy Comparison|Iteration)", out)
    expect(heads == ["Accuracy Comparison"] * 5 + ["Iteration"], f"all pairs are named in front of the first iteration: {heads}")
    code, out, _ = call(program, "run id.onnx --onnxrt")
    expect("Accuracy" not in out, "one runner alone is not compared")
    # Turn about, or one after the other: another order of the log, the same results.
    order = {}
    for flag in ("", "--sequential-runners"):
        code, out, _ = call(program, f"run net.onnx --onnxrt --trt --iterations 2 {flag} --atol 1e-3 -v --save-outputs o{flag}.json")
        order[flag] = re.findall(r"(?m)^\[V\] (onnxrt|trt)-runner-N0\S* +\| Iteration \d took", out)
        told = [len(re.findall(p, out)) for p in (r"Inference Output\(s\)", r"Streaming iteration \d", r"\[I\] Iteration: \d", r"\| Completed 2 iteration\(s\) in \S+ ms \| Average")]
        expect(told == ([2, 0, 2, 2] if flag else [2, 2, 2, 0]), f"lines of {flag}: {told}")
        expect(code == 0, f"{flag}: {out[-300:]}")
    expect(order[""] == ["onnxrt", "trt"] * 2 and order["--sequential-runners"] == ["onnxrt"] * 2 + ["trt"] * 2, f"order: {order}")
    sets = [[[{k: v.tobytes() for k, v in i.items()} for i in runs] for _, runs in outputs_of(f"o{flag}.json")] for flag in order]
    expect(sets[0] == sets[1], "other results with --sequential-runners")


# ---- 4: comparisons -------------------------------------------------------------------------------------------------

KINDS = {"f": (T.FLOAT, "f4"), "h": (T.FLOAT16, "f2"), "d": (T.DOUBLE, "f8"), "i8": (T.INT8, "i1"), "u8": (T.UINT8, "u1"), "i16": (T.INT16, "i2"),
         "u16": (T.UINT16, "u2"), "i32": (T.INT32, "i4"), "u32": (T.UINT32, "u4"), "i64": (T.INT64, "i8"), "t": (T.BOOL, "?")}
SPECIAL = {"zero": lambda a: a.__setitem__((0, 0), 0), "nan": lambda a: a.__setitem__((1, 1), np.nan), "inf": lambda a: a.__setitem__((0, 2), np.inf),
           "minus": lambda a: a.__setitem__((1, 0), -np.inf)}


def widen(a):
    wide = {"f2": "f4", "i1": "i4", "u1": "i4", "i2": "i4", "u2": "i4", "u4": "i8"}.get(a.dtype.str[1:])
    return a.astype(wide) if wide else a


def differences(a, b, equal_infinities=False):
    """The definitions of the absolute and the relative difference."""
    a, b = widen(a), widen(b)
    if a.dtype == bool:
        absolute = np.logical_xor(a, b)
        return absolute, absolute.astype(np.float32) / b.astype(np.float32)
    absolute = np.abs(a - b)
    if equal_infinities:
        absolute[np.isinf(a) & (a == b)] = 0
    if b.dtype.kind == "f":
        b = np.where(b == 0, b.dtype.type(2.220446e-16), b)
    return absolute, absolute / np.abs(b)


def random_pair(r, kind):
    shape = (3, 7)
    if kind == "?":
        return r.random(shape) < 0.5, r.random(shape) < 0.5
    if kind[0] == "f":
        a = (r.standard_normal(shape) * 10).astype(kind)
        return a, (a * (1 + 1e-3 * r.standard_normal(shape))).astype(kind)
    top = min(np.iinfo(kind).max, 120)
    a = r.integers(1, top, shape).astype(kind)
    return a, (a + r.integers(0, 3, shape)).astype(kind)


def near(a, b):
    return np.isnan(a) and np.isnan(b) or a == b or abs(a - b) <= 2e-5 * max(abs(a), abs(b))


def test_comparisons(program, seed):
    r = np.random.default_rng(seed)
    values = {name: random_pair(r, kind) for name, (_, kind) in KINDS.items()}
    kinds = {name: t for name, (t, _) in KINDS.items()}
    for name, change in SPECIAL.items():  # of both, and of one alone
        for where in (0, 1, 2):
            pair = [v.copy() for v in random_pair(r, "f4")]
            for k in (0, 1):
                if where in (k, 2):
                    change(pair[k])
            values[f"{name}{where}"], kinds[f"{name}{where}"] = pair, T.FLOAT
    save("kinds.onnx", [h.make_node("Identity", [k], ["o_" + k]) for k in values], [info(k, t, [3, 7]) for k, t in kinds.items()],
         [info("o_" + k, t, [3, 7]) for k, t in kinds.items()])
    write_inputs("kinds.json", {k: a for k, (a, _) in values.items()})
    write_results("kinds_out.json", {"o_" + k: b for k, (_, b) in values.items()})
    line = "run kinds.onnx --onnxrt --load-inputs kinds.json --load-outputs kinds_out.json "
    n = 0
    for equal in ("", " --infinities-compare-equal"):
        code, out, _ = call(program, line + "--check-error-stat quantile --error-quantile 0.3 --save-accuracy-results kinds_acc.json" + equal)
        saved = json.load(open("kinds_acc.json"))["lst"][0]["lst"][0][1][0]
        for k, (a, b) in values.items():
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                absolute, relative = differences(a, b, bool(equal))
                for what, d in (("abs", absolute), ("rel", relative)):
                    d = d.astype(np.float64) if d.dtype != np.float32 else d
                    for stat, value in (("max", d.max()), ("mean", d.mean()), ("median", np.median(d)), ("quantile", np.quantile(d, 0.3))):
                        got = saved["o_" + k][f"{stat}_{what}diff"]
                        n += 1
                        if k == "t" and what == "rel":
                            continue  # true against nothing: a division by 0, which each says as it likes
                        expect(got is not None and near(float(got), float(value)),
                            f"seed {seed}, {k}{equal}: {stat}_{what}diff is {got}, not {value}")
        # elemwise: any element fails both bounds, or is NaN in both.
        atol, rtol = 5e-3, 5e-4
        code, out, _ = call(program, line + f"--atol {atol} --rtol {rtol}" + equal)
        for k, (a, b) in values.items():
            with np.errstate(all="ignore"):
                absolute, relative = differences(a, b, bool(equal))
            bad = (~(absolute <= atol) & ~(relative <= rtol)).any()
            verdict = re.search(rf"(PASSED|FAILED) +\| Output: 'o_{k}' ", out)
            n += 1
            expect(verdict and (verdict.group(1) == "FAILED") == bad,
                f"seed {seed}, {k}{equal}: elemwise {verdict and verdict.group(1)}, bad is {bad}")
    fields = {"l2": "l2_norm", "cosine_similarity": "cosine_similarity", "psnr": "psnr", "snr": "snr"}
    code, out, _ = call(program, line + "--compare l2 cosine_similarity psnr snr --save-accuracy-results kinds_acc.json")
    saved = json.load(open("kinds_acc.json"))["lst"]
    for metric, result in zip(fields, saved):
        for k, (a, b) in values.items():
            if k == "t":
                continue
            with np.errstate(all="ignore"):
                a, b = a.astype(np.float64), b.astype(np.float64)
                mse, top = ((a - b) ** 2).mean(), a.max()
                want = {"l2": np.sqrt(((a - b) ** 2).sum()), "cosine_similarity": (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()),
                        "psnr": np.inf if mse == 0 else 20 * np.log10(top if top > 0 else 1) - 10 * np.log10(mse),
                        "snr": np.inf if mse == 0 else 10 * np.log10((a * a).mean() / mse)}[metric]
            got = result["lst"][0][1][0]["o_" + k][fields[metric]]
            n += 1
            if np.isfinite(want):
                expect(got is not None and abs(got - want) <= 1e-3 * max(1, abs(want)), f"seed {seed}, {k}: {metric} is {got}, not {want}")
            else:
                expect(got is None or not np.isfinite(got) or k.startswith(("inf", "minus", "nan")),
                    f"seed {seed}, {k}: {metric} is {got}, not {want}")
    return n


# Metrics, first, second, tolerance line, exit code.
INDEX = [("1 2 3", "1 2 3", 0, 0), ("1 2 3", "2 1 3", 0, 1), ("1 2 3", "2 1 3", 1, 0), ("1 2 3", "3 1 2", 1, 1), ("1 2 3", "4 1 2", 1, 0),
    ("1 2 9", "1 2 3", 1, 0),
         ("9 2 1", "1 2 3", 2, 1)]


def test_indices(program):
    save("three.onnx", [h.make_node("Identity", ["x"], ["y"])], [info("x", T.FLOAT, [1, 3])], [info("y", T.FLOAT, [1, 3])])
    row = lambda text: np.float32([text.split()])
    for a, b, tolerance, code in INDEX:
        # Each value of a is in b at a distance of the tolerance at most; the last `tolerance` values of a are not looked for.
        x, y = row(a)[0], row(b)[0]
        fits = all(v in y and abs(list(y).index(v) - i) <= tolerance for i, v in enumerate(x[:3 - tolerance]))
        write_inputs("three_in.json", {"x": row(a)})
        write_results("three_out.json", {"y": row(b)})
        got, out, _ = call(program,
            f"run three.onnx --onnxrt --load-inputs three_in.json --load-outputs three_out.json --compare indices --index-tolerance {tolerance}")
        expect(got == (0 if fits else 1), f"indices {a} in {b} at {tolerance}: exit {got}, fits: {fits}\n{out[-300:]}")


# ---- 5: inputs ------------------------------------------------------------------------------------------------------


def test_generator(program, seed):
    """The bytes of NumPy's RandomState(seed + i), one stream for all inputs, for ranges of each kind."""
    r = np.random.default_rng(seed)
    for k in range(4):
        first, ranges = int(r.integers(0, 2 ** 31)), {}
        for name, (_, kind) in KINDS.items():
            limits = (0, 2) if kind == "?" else (0, 1000) if kind[0] == "f" else (0, np.iinfo(kind).max if kind != "u4" and kind != "i8" else 2 ** 31)
            low, high = sorted(int(v) for v in r.integers(*limits, 2))
            ranges[name] = (low, high)
        words = " ".join(f"{n}:[{low},{high}]" for n, (low, high) in ranges.items())
        save("made.onnx", [h.make_node("Identity", [n], ["o_" + n]) for n in KINDS], [info(n, t, [2, 3]) for n, (t, _) in KINDS.items()],
             [info("o_" + n, t, [2, 3]) for n, (t, _) in KINDS.items()])
        code, out, _ = call(program, f"run made.onnx --onnxrt --seed {first} --iterations 2 --val-range {words} --save-inputs made{k}.json")
        expect(code == 0, f"seed {seed}: {out[-300:]}")
        for i, feed in enumerate(inputs_of(f"made{k}.json")):
            stream = np.random.RandomState(first + i)
            for name, (_, kind) in KINDS.items():
                low, high = ranges[name]
                if kind[0] == "f":
                    want = (stream.random_sample((2, 3)) * (high - low) + low).astype(kind)
                else:
                    want = stream.randint(low, high + 1, (2, 3), dtype=np.dtype(kind))
                expect(want.tobytes() == feed[name].tobytes() and want.dtype == feed[name].dtype,
                    f"seed {seed}: {name} of {first + i} in {ranges[name]}: {feed[name]}, not {want}")


# ---- 6: files -------------------------------------------------------------------------------------------------------


def encoded(a, version=(1, 0)):
    b = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.write_array(b, a, version)
    return b.getvalue()


def readings(x):
    """What holds the same array, in a file of inputs."""
    text = lambda raw: base64.b64encode(raw).decode()
    new = lambda raw: {"array": text(raw), "polygraphy_class": "ndarray"}
    old = {"__polygraphy_encoded_ndarray": "polygraphy_serialized_json_type"}
    archive = io.BytesIO()
    np.savez(archive, x)
    yield "as it is", [{"x": new(encoded(x))}]
    yield "one object", {"x": new(encoded(x))}
    yield "the class first", [{"x": {"polygraphy_class": "ndarray", "array": text(encoded(x))}}]
    yield "keys that nobody knows", [{"x": {**new(encoded(x)), "more": {"a": [1]}}}]
    yield "version 2", [{"x": new(encoded(x, (2, 0)))}]
    yield "version 3", [{"x": new(encoded(x, (3, 0)))}]
    yield "Fortran's order", [{"x": new(encoded(np.asfortranarray(x)))}]
    yield "big-endian", [{"x": new(encoded(x.astype(">f4")))}]
    yield "the older class", [{"x": {"array": text(encoded(x)), **old}}]
    yield "Latin-1", [{"x": {"array": encoded(x).decode("latin-1"), **old}}]
    yield "an archive", [{"x": {"array": archive.getvalue().decode("latin-1"), **old}}]
    yield "a lazy array", [{"x": {"values": new(encoded(x)), "polygraphy_class": "LazyArray"}}]
    yield "an older lazy array", [{"x": {"values": new(encoded(x)), "polygraphy_class": "LazyNumpyArray"}}]


def test_files(program):
    x = inputs_of("x.json")[0]["x"]
    os.mkdir("iterations")
    for what, content in readings(x):
        for indent in (None, 4):
            json.dump(content, open("reading.json", "w"), indent=indent)
            code, out, _ = call(program, "run id.onnx --onnxrt --load-inputs reading.json --save-inputs read.json")
            expect(code == 0 and np.array_equal(inputs_of("read.json")[0]["x"], x), f"{what}: {out[-300:]}")
    for i in range(12):
        json.dump({"x": array(x + i)}, open(f"iterations/{i:010d}.json", "w"))
    code, out, _ = call(program, "run id.onnx --onnxrt --load-inputs iterations --save-outputs results --save-inputs feeds")
    names = [f"{i:010d}.json" for i in range(12)]
    expect(code == 0 and sorted(os.listdir("results")) == names and sorted(os.listdir("feeds")) == names, f"folders: {out[-300:]}")
    expect([inputs_of(f"feeds/{n}")[0]["x"][0, 0] if isinstance(json.load(open(f"feeds/{n}")), list) else
            np.load(io.BytesIO(base64.b64decode(json.load(open(f"feeds/{n}"))["x"]["array"])))[0, 0] for n in names] == [1 + i for i in range(12)],
                "a folder's order")
    code, out, _ = call(program, "run id.onnx --onnxrt --load-inputs iterations --load-outputs results")
    expect(code == 0 and "Passed: 12/12" in out, f"results from a folder: {out[-300:]}")
    # What is written: indented by 4, each class behind the keys of its object.
    code, out, _ = call(program,
        "run id.onnx --onnxrt --onnxrt --load-inputs x.json --save-outputs w.json --save-inputs wi.json --save-accuracy-results wa.json")

    def classes_last(v):
        if isinstance(v, dict):
            keys = list(v)
            return ("polygraphy_class" not in v or keys[-1] == "polygraphy_class") and all(classes_last(i) for i in v.values())
        return all(classes_last(i) for i in v) if isinstance(v, list) else True
    for name in ("w.json", "wi.json", "wa.json"):
        text = open(name).read()
        expect(classes_last(json.loads(text)), f"{name}: a class in front of its keys")
        expect(re.search(r'(?m)^    (\S|"|\{|\[)', text) and "\t" not in text, f"{name}: not indented by 4: {text[:200]}")
    # Formats besides JSON.
    os.makedirs("set/test_data_set_0", exist_ok=True)
    np.savez("x.npz", x=x)
    np.save("x.npy", x)
    np.savez("y.npz", y=x)
    np.save("y.npy", x)
    os.mkdir("pb")
    open("pb/input_0.pb", "wb").write(nh.from_array(x, "x").SerializeToString())
    open("pb/output_0.pb", "wb").write(nh.from_array(x, "y").SerializeToString())
    for name in ("x.npz", "x.npy", "pb"):
        code, out, _ = call(program, f"run id.onnx --onnxrt --load-inputs {name} --save-inputs read2.json")
        expect(code == 0 and np.array_equal(inputs_of("read2.json")[0]["x"], x), f"--load-inputs {name}: {out[-300:]}")
    for name in ("y.npz", "y.npy", "pb"):
        code, out, _ = call(program, f"run id.onnx --onnxrt --load-inputs x.json --load-outputs {name}")
        expect(code == 0 and "Passed: 1/1" in out, f"--load-outputs {name}: {out[-300:]}")


def test_bfloat16(program):
    """There is no such type in NumPy: it is written as float32, and compared as float32."""
    save("b16.onnx", [h.make_node("Cast", ["x"], ["y"], to=T.BFLOAT16)], [info("x", T.FLOAT, [2, 6])], [info("y", T.BFLOAT16, [2, 6])])
    code, out, _ = call(program, "run b16.onnx --onnxrt --save-outputs b16.json")
    y = outputs_of("b16.json")[0][1][0]["y"]
    x = np.random.RandomState(1).random_sample((2, 6)).astype(np.float32)
    expect(code == 0 and y.dtype == np.float32 and "bfloat16" in out and not (y.view(np.uint32) & 0xFFFF).any() and np.abs(y - x).max() < 2 ** -8,
        f"bfloat16: {out[-400:]}")
    moved = y.copy()
    moved[0, 0] += 0.5
    write_results("b16_off.json", {"y": moved})
    code, out, _ = call(program, "run b16.onnx --onnxrt --load-outputs b16_off.json --check-error-stat max --save-accuracy-results b16_acc.json")
    got = json.load(open("b16_acc.json"))["lst"][0]["lst"][0][1][0]["y"]
    expect(code == 1 and abs(got["max_absdiff"] - 0.5) < 1e-6 and abs(got["mean_absdiff"] - 0.5 / 12) < 1e-6, f"bfloat16 compared: {got}")


# ---- 7: tactics -----------------------------------------------------------------------------------------------------


def test_tactics(program):
    """A build takes every tactic of a replay, whatever it would choose itself, and its plan keeps them."""
    for more in ("", "--fp16", "--bf16"):
        taken = {}
        for level, flag in ((5, "--save-tactics"), (1, "--load-tactics")):
            code, out, _ = call(program, f"convert net.onnx {more} --builder-optimization-level {level} {flag} timed.json -o timed{level}.plan")
            expect(code == 0 and "[W] --load-tactics" not in out, f"{flag} {more}: {out[-300:]}")
            text = call(program, f"inspect model timed{level}.plan --show layers attrs")[1]
            taken[level] = dict(re.findall(r"Layer \d+ +\| (.*?) \[Op(?s:.*?)Tactic = (\S+)", text))
        replay = {k: v["assay"] for k, v in json.load(open("timed.json"))["replay"].items()}
        expect(len(replay) == 4 and taken[5] == replay == taken[1], f"{more}: saved {replay}, plans {taken}")


# ---- 8: the next command --------------------------------------------------------------------------------------------


def test_next(program):
    """debug precision ends with a command that finds no more layers than its prefix has."""
    r = np.random.default_rng(2)
    weights = [(f"w{k}", (r.standard_normal((8, 8)) / 3).astype(np.float32)) for k in range(8)]
    weights[5] = ("w5", np.full((8, 8), 3e4, np.float32))
    weights[6] = ("w6", np.full((8, 8), 1e-6, np.float32))
    names = ["x", *[f"v{k}" for k in range(7)], "y"]
    nodes = [h.make_node("MatMul", [names[k], f"w{k}"], [f"m{k}"], f"fc{k}") for k in range(8)]
    nodes = [n for k in range(8) for n in (nodes[k], h.make_node("Abs", [f"m{k}"], [names[k + 1]], f"abs{k}"))]
    save("late.onnx", nodes, [info("x", T.FLOAT, [4, 8])], [info("y", T.FLOAT, [4, 8])], weights)
    call(program, "run late.onnx --onnxrt --save-inputs late_in.json --save-outputs late_out.json --val-range [1,2]")
    check = "--check polygraphy run polygraphy_debug.engine --trt --load-inputs late_in.json --load-outputs=late_out.json --abs 1"
    code, out, _ = call(program, f"debug precision late.onnx --fp16 --mode linear {check}")
    prefix = re.search(r"running the first (\d+) layer", out)
    line = re.search(r"Next: (assay debug precision late\.onnx .*)", out.split("To achieve")[-1])
    expect(code == 0 and prefix and line, f"debug precision: {out[-900:]}")
    if not line:
        return
    expect("--precision fp16" in line.group(1) and "--inputs late_in.json --golden late_out.json --require 'golden_max_abs <= 1'" in line.group(1),
        line.group(1))
    p = subprocess.run(line.group(1).replace("assay", program, 1), shell=True, capture_output=True, text=True)
    found = re.search(r"(\d+) of \d+ layers in fp32 are enough", p.stdout)
    expect(p.returncode == 0 and found and int(found.group(1)) < int(prefix.group(1)),
        f"{line.group(1)}: {p.stdout}{p.stderr}, prefix {prefix.group(1)}")


def main():
    program, sources = (os.path.abspath(a) for a in sys.argv[1:3])
    seed = int(sys.argv[3] if len(sys.argv) > 3 else os.environ.get("ASSAY_TEST_SEED", int.from_bytes(os.urandom(4), "little")))
    print("seed", seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_all(program, folder)
        write_more(program)
        n = test_malformed(program, sources)
        test_lines(program)
        test_colours(program)
        test_runners(program)
        compared = test_comparisons(program, seed)
        test_indices(program)
        test_generator(program, seed)
        test_files(program)
        test_bfloat16(program)
        test_tactics(program)
        test_next(program)
        os.chdir("/")
    print(f"{n} malformed lines, {len(LINES)} others, {compared} numbers compared, {len(failures)} failures; seed {seed}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
