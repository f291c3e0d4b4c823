#!/usr/bin/env python3
"""assay polygraphy inspect data, data concat, data merge, check accuracy: what they print and write.

    test_polygraphy_data.py ASSAY

Files are written here; what is expected was printed by Polygraphy 0.53.6, which is asked again where it is installed
(rows with SAME).
"""
import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

failures, count = [], 0
SAME = "same"  # prints what the tool prints


def expect(ok, what):
    global count
    count += 1
    if not ok:
        failures.append(what)


# ---- files ------------------------------------------------------------------------------------------------------------


def array(a):
    b = io.BytesIO()
    np.save(b, a)
    return {"array": base64.b64encode(b.getvalue()).decode(), "polygraphy_class": "ndarray"}


def old_array(a):
    """As 0.26 wrote it: the bytes as Latin-1."""
    b = io.BytesIO()
    np.save(b, a)
    return {"array": b.getvalue().decode("latin-1"), "__polygraphy_encoded_ndarray": "polygraphy_serialized_json_type"}


def results(runners):
    """Runner's name to iterations (name to array)."""
    return {"lst": [[name, [{"outputs": {k: {"values": array(v), "polygraphy_class": "LazyArray"} for k, v in i.items()},
                             "runtime": 0.5, "runner_name": name, "polygraphy_class": "IterationResult"} for i in iterations]]
                    for name, iterations in runners], "polygraphy_class": "RunResults"}


def compared(**fields):
    threshold = {"check_error_stat": "max", "atol": 1e-05, "rtol": 1e-05, "polygraphy_class": "SimpleThreshold"}
    values = dict.fromkeys(f"{s}_{k}diff" for s in ("max", "mean", "median", "quantile") for k in ("abs", "rel"))
    return {**values, **fields, "thresholds": threshold, "passed": None, "polygraphy_class": "OutputCompareResult"}


def single(kind, field, value, threshold):
    return {field: value, "thresholds": {"threshold": threshold, "polygraphy_class": kind + "Threshold"}, "polygraphy_class": kind + "Result"}


def accuracy(*iterations_of):
    return {"lst": [{"lst": [[["A", "B"], iterations]], "aggregation": "per_sample", "polygraphy_class": "AccuracyResult"}
                    for iterations in iterations_of], "polygraphy_class": "AccuracyResults"}


def write_files():
    x = (np.arange(24, dtype="f4") / 7).reshape(2, 3, 4)
    wide = (np.arange(2000, dtype="f4") * 0.37 % 5 - 1).reshape(2, 1000)
    kinds = {"f": x[0], "h": x[0].astype("f2"), "d": x[0].astype("f8") / 3, "i": np.array([[-3, 40], [500, 6]]), "b": x[0] > 1,
             "s": np.array(1.25, "f4"), "e": np.zeros((0, 2), "f4"), "n": np.array([np.nan, np.inf, 1], "f4"), "u": np.array([3, 200], "u1")}
    good = compared(max_absdiff=0.5, max_reldiff=0.25, mean_absdiff=0.1, mean_reldiff=0.05, median_absdiff=0.01, median_reldiff=0.005)
    small = dict(good, max_absdiff=1e-7, max_reldiff=1e-7, mean_absdiff=1e-8, mean_reldiff=1e-8)
    files = {
        "inputs.json": [{"x": array(x)}, {"x": array(x + 1)}],
        "one.json": {"x": array(x)},
        "old.json": [{"x": old_array(x)}],
        "y.json": [{"y": array(x * 2)}, {"y": array(x * 3)}],
        "kinds.json": [{k: array(v) for k, v in kinds.items()}],
        "wide.json": [{"w": array(wide)}],
        "golden.json": results([("runner-A", [{"p": x[0]}, {"p": x[1]}])]),
        "two.json": results([("runner-A", [{"p": x[0]}]), ("longer-runner-B", [{"p": x[1]}])]),
        "empty.json": results([]),
        "accuracy.json": accuracy([{"p": good}, {"p": small, "q": small}]),
        "metrics.json": accuracy([{"p": good}], [{"p": single("L2", "l2_norm", 3.0, 1e-5)}, {"p": single("L2", "l2_norm", 1.0, 1e-5)}],
                                 [{"p": single("Psnr", "psnr", float("inf"), 30)}], [{"p": True}]),
        "unequal.json": accuracy([{"p": False}]),
        "elemwise.json": accuracy([{"p": dict(good, passed=True)}]),
    }
    for name, content in files.items():
        with open(name, "w") as f:
            json.dump(content, f, indent=4)
    os.mkdir("dir")
    for i in range(2):
        with open(f"dir/{i:010d}.json", "w") as f:
            json.dump(results([("runner-A", [{"p": x[i]}])]), f)
    os.mkdir("nothing")
    np.savez("arrays.npz", x=x, y=x[0])
    for name, text in {"broken.json": '{"lst": [', "list.json": "[1, 2]", "none.json": "",
                       "array.json": '[{"x": {"array": "k05V", "polygraphy_class": "ndarray"}}]'}.items():
        with open(name, "w") as f:
            f.write(text)


# ---- rows -------------------------------------------------------------------------------------------------------------

# Arguments, exit code, patterns of stdout (SAME besides: the tool prints the same), pattern of stderr.
ROWS = [
    ("inspect data inputs.json", 0, r"^\[I\] ==== Data \(2 iterations\) ====\n    \n    x \[dtype=float32, shape=\(2, 3, 4\)\] \| Stats: mean=1\.6429, "
     r"std-dev=0\.98888, var=0\.97789, median=1\.6429, min=0 at \(0, 0, 0\), max=3\.2857 at \(1, 2, 3\), avg-magnitude=1\.6429, p90=2\.9571, "
     r"p95=3\.1214, p99=3\.2529\n$", SAME),
    ("inspect data inputs.json -a", 0, r"-- Iteration: 0    \n        x \[.*\n    \n    -- Iteration: 1    \n        x \[", SAME),
    ("inspect data one.json", 0, r"==== Data \(1 iterations\) ====", SAME),
    ("inspect data old.json", 0, r"x \[dtype=float32, shape=\(2, 3, 4\)\] \| Stats: mean=1\.6429", None),
    ("inspect data golden.json --all --show-values --histogram", 0, r"==== Run Results \(1 runners\) ====\n    \n    ---- runner-A "
     r"\(2 iterations\) ----\n    \n    -- Iteration: 0    \n        p \[(?s:.*)            ---- Histogram ----\n            Bin Range "
     r"(?s:.*)            \[\[0\.         0\.14285715 0\.2857143  0\.42857143\]\n             \[0\.5714286 ", SAME),
    ("inspect data two.json", 0, r"---- runner-A        \(1 iterations\) ----\n(?s:.*)---- longer-runner-B \(1 iterations\) ----", SAME),
    ("inspect data kinds.json -s --histogram", 0, r"h \[dtype=float16(?s:.*)d \[dtype=float64(?s:.*)b \[dtype=bool, shape=\(3, 4\)\]"
     r".*avg-magnitude=0\.33333\n        \n        \[\[False(?s:.*)s \[dtype=float32, shape=\(\)\].*min=1\.25 at \(\)(?s:.*)"
     r"e \[dtype=float32, shape=\(0, 2\)\] \| Stats: mean=nan, std-dev=0(?s:.*)n \[.*mean=nan", None),
    ("inspect data wide.json -s", 0, r"\[\[-1\.         -0\.63       -0\.26       \.\.\.", SAME),
    ("inspect data wide.json -s -n 2 --line-width 40", 0, r"\.\.\.", SAME),
    ("inspect data wide.json -s -n -1 --line-width -1", 0, r"\[\[-1\.  (?! *\n)(?!.*\.\.\.)", SAME),
    ("inspect data dir", 0, r"Loading inference results from dir/0000000001\.json\n(?s:.*)---- runner-A \(2 iterations\) ----", SAME),
    ("inspect data arrays.npz -s", 0, r"==== Data \(1 iterations\) ====(?s:.*)x \[dtype=float32(?s:.*)y \[dtype=float32", None),
    ("inspect data accuracy.json -a", 0, r"==== Accuracy Results \(1 comparison\(s\)\) ====\n    \n    ---- Aggregation: per_sample ----\n    \n"
     r"    A vs\. B \| 1/2 iteration\(s\) matched    \n        -- Iteration: 0        \n            p \| FAILED \| max_absdiff=0\.5, "
     r"max_reldiff=0\.25, .*\n        -- Iteration: 1        \n            p \| PASSED .*\n            q \| PASSED", SAME),
    ("inspect data metrics.json", 0, r"p \| FAILED \| l2_norm=3\n(?s:.*)p \| PASSED \| psnr=inf\n(?s:.*)p \| PASSED$", SAME),
    ("inspect data empty.json", 0, r"==== Run Results \(0 runners\) ====\n$", SAME),
    ("inspect data nothing.json", 1, r"\[!\] .*nothing\.json", None),
    ("inspect data nothing", 1, r"\[!\] .*nothing", None),
    ("inspect data broken.json", 1, r"\[!\] .*broken\.json.*JSON: line 1", None),
    ("inspect data list.json", 1, r"\[!\] .*list\.json", None),
    ("inspect data none.json", 1, r"\[!\] .*none\.json", None),
    ("inspect data array.json", 1, r"\[!\] .*array\.json.*'x'", None),
    ("inspect data inputs.json -n -2", 1, r"--num-items: -2 is below -1", None),
    ("inspect data", 2, r"^$", None),
    # concat
    ("data concat inputs.json one.json -o out1.json", 0, r"^\[I\] Saving input file containing 3 iteration\(s\) to out1\.json\n$", SAME),
    ("inspect data out1.json -a -s", 0, r"==== Data \(3 iterations\) ====(?s:.*)-- Iteration: 2", SAME),
    ("data concat golden.json two.json -o out2.json", 0, r"^\[I\] Saving output file containing concatenated iteration\(s\) to out2\.json\n$", SAME),
    ("inspect data out2.json -a", 0, r"---- runner-A        \(3 iterations\) ----(?s:.*)---- longer-runner-B \(1 iterations\) ----", SAME),
    ("data concat inputs.json y.json -o out3.json", 0, r"\[W\] Iteration 0 from y\.json contains different tensor names than earlier iterations\.\n"
     r"    Note: Expected names: \['x'\], but got: \['y'\]\.\n\[W\] Iteration 1", SAME),
    ("data concat inputs.json golden.json -o out4.json", 1, r"\[!\] Cannot concatenate input data with output data\. Please provide files of the "
     r"same type\.\n$", None),
    ("data concat golden.json inputs.json -o out4.json", 1, r"Cannot concatenate input data with output data", None),
    ("data concat inputs.json nothing.json -o out4.json", 1, r"\[!\] .*nothing\.json", None),
    ("data concat inputs.json", 2, r"^$", None),
    # merge
    ("data merge one.json golden.json -o out5.json", 0, r"The provided files have different numbers of iterations\.\n    Note: Inputs currently "
     r"contains 1 iterations, but the data in golden\.json contains 2 iterations\.", None),
    ("inspect data out5.json -a", 0, r"==== Data \(2 iterations\) ====(?s:.*)-- Iteration: 0    \n        x \[.*    \n        p \[.*\n    \n"
     r"    -- Iteration: 1    \n        p \[", None),
    # Polygraphy gives all iterations that a file adds the tensors of the last one, and what it writes is what users compare with.
    ("data to-input inputs.json y.json -o out6.json", 0, r"Overwriting input 'x' while merging data from inputs\.json(?s:.*)Overwriting input 'y'"
     r"(?s:.*)\[W\] As in Polygraphy, the iterations that a file adds all get the tensors of the last one\.(?s:.*)"
     r"\[I\] Saving input file containing 2 iteration\(s\) to out6\.json\n$", None),
    ("inspect data out6.json -a", 0, r"-- Iteration: 0    \n        x \[.*mean=2\.6429.*    \n        y \[.*mean=4\.9286(?s:.*)"
     r"-- Iteration: 1    \n        x \[.*mean=2\.6429.*    \n        y \[.*mean=4\.9286", None),
    ("data merge one.json one.json -o out7.json", 0, r"\[W\] Overwriting input 'x' while merging data from one\.json\. If you intended to "
     r"concatenate iterations, consider using `data concat` instead\.\n\[I\] Saving", SAME),
    ("data merge arrays.npz -o out8.json", 0, r"containing 1 iteration\(s\)", None),
    ("data merge inputs.json -o newdir/", 0, r"to newdir", None),
    ("inspect data newdir", 0, r"==== Data \(2 iterations\) ====", SAME),
    # accuracy
    ("check accuracy accuracy.json --check-error-stat max --atol 1", 0, r"\[I\] Loading accuracy results from accuracy\.json\n\[I\] Accuracy "
     r"Summary \| A vs\. B \| Passed: 2/2 iterations \| Pass Rate: 100\.00%\n\[I\] PASSED \| Accuracy results passed the requested thresholds\.\n"
     r"\[I\] PASSED \| Runtime", SAME),
    ("check accuracy accuracy.json --check-error-stat max", 1, r"\[E\] Accuracy Summary \| A vs\. B \| Passed: 1/2 iterations \| Pass Rate: 50\.00%\n"
     r"\[E\] FAILED \| Accuracy results did not pass the requested thresholds\.\n\[E\] FAILED \| Runtime", SAME),
    ("check accuracy accuracy.json --check-error-stat max q:mean --atol p:1 0", 0, r"2/2 iterations", SAME),
    ("check accuracy accuracy.json --check-error-stat mean --check-average --atol 0.051 --save-accuracy-results saved.json", 0,
     r"\[I\] Accuracy Summary \| A vs\. B \| Passed: 2/2 outputs\n\[I\] Saving accuracy results to saved\.json\n\[I\] PASSED", SAME),
    ("inspect data saved.json", 0, r"---- Aggregation: average ----", SAME),
    ("check accuracy metrics.json --compare l2 --l2-threshold 2 --check-average", 0, r"\[I\] Ignoring saved comparison with metric fields \['max_absdiff"
     r"(?s:.*)Ignoring saved comparison with metric fields \['psnr'\](?s:.*)fields \[\](?s:.*)Passed: 1/1 outputs\n\[I\]     p \| L2 Norm: 2 "
     r"\(tolerance: 2\) \| PASSED", SAME),
    ("check accuracy metrics.json --compare psnr l2 --l2-threshold p:1", 1, r"Pass Rate: 100\.00%\n\[E\] .*Passed: 1/2 iterations", SAME),
    ("check accuracy metrics.json --compare snr", 1, r"\[!\] No saved comparison results match the requested threshold \(metric fields: \['snr'\]\)", None),
    ("check accuracy metrics.json --compare indices", 1, r"nothing was checked", None),
    ("check accuracy accuracy.json --check-error-stat quantile", 1, r"\[!\] .*no 'quantile'", None),
    ("check accuracy elemwise.json", 1, r"\[!\] .*'elemwise' comparison cannot be checked again", None),
    ("check accuracy elemwise.json --check-error-stat median", 1, r"\[E\] Accuracy Summary", SAME),
    ("check accuracy unequal.json --check-error-stat max", 1, r"\[!\] ", None),
    ("check accuracy accuracy.json --check-error-stat most", 1, r"\[!\] Invalid choice for check_error_stat: most", None),
    ("check accuracy accuracy.json --atol much", 1, r"--atol: 'much' is not a number", None),
    ("check accuracy accuracy.json --check-error-stat max --error-quantile 2", 1, r"not between 0 and 1", None),
    ("check accuracy accuracy.json --check-error-stat max --check-average --fail-fast", 1, r"--fail-fast", None),
    ("check accuracy accuracy.json --check-error-stat max --psnr-threshold 3 --atol 1", 0, r"\[W\] Option: --psnr-threshold/--psnr-tolerance is only "
     r"valid for comparison function\(s\): \['psnr', 'quality_metrics'\]\. The selected comparison functions are: \['simple'\], so this option "
     r"will be ignored\.\n", None),
    ("check accuracy accuracy.json --compare perceptual_metrics", 1, r"psnr", None),
    ("check accuracy golden.json --check-error-stat max", 1, r"\[!\] .*golden\.json.*no accuracy results", None),
    ("check accuracy nothing.json", 1, r"\[!\] .*nothing\.json", None),
    ("check accuracy broken.json", 1, r"\[!\] .*JSON", None),
    ("check accuracy", 2, r"^$", None),
]


def run(command, args):
    r = subprocess.run(command + args.split(), capture_output=True, text=True, timeout=300)
    return r.returncode, r.stdout, r.stderr


def plain(text):
    """Without times, program names and what the tool says of its own modules."""
    lines = [line for line in text.splitlines() if "module is not installed" not in line]
    lines = [re.sub(r"Command: .*?polygraphy ", "Command: polygraphy ", re.sub(r"Runtime: [\d.]+s", "", line)).rstrip() for line in lines]
    return "\n".join(lines)


def check_rows(assay, tool):
    for args, code, pattern, mode in ROWS:
        found, out, err = run(assay, args)
        expect(found == code, f"{args}: exit code {found}, not {code}\n{out}{err}")
        expect(re.search(pattern, out), f"{args}: no match of {pattern!r} in\n{out}")
        expect("assay: " not in err and "rror:" not in err.replace("polygraphy", "") or code, f"{args}: {err}")
        if not tool or mode != SAME:
            continue
        theirs = run(tool, args)
        expect(theirs[0] == code, f"{args}: Polygraphy ends with {theirs[0]}")
        expect(plain(theirs[1]) == plain(out), f"{args}: Polygraphy prints\n{plain(theirs[1])}\nand not\n{plain(out)}")


def check_files():
    """What was written: arrays as they were, and read by the tool."""
    with open("out6.json") as f:
        merged = json.load(f)
    expect([list(i) for i in merged] == [["x", "y"], ["x", "y"]], f"merged names: {merged}")
    with open("inputs.json") as f:
        before = json.load(f)
    expect([i["x"]["array"] for i in merged] == [before[1]["x"]["array"]] * 2, "merged arrays are not those of the input's last iteration")
    with open("out2.json") as f:
        joined = json.load(f)
    expect([(name, len(i)) for name, i in joined["lst"]] == [("runner-A", 3), ("longer-runner-B", 1)], "runners of a joined file")
    expect(joined["lst"][0][1][0]["runtime"] == 0.5, "the runtime is kept")
    expect(sorted(os.listdir("newdir")) == ["0000000000.json", "0000000001.json"], f"files of a folder: {os.listdir('newdir')}")
    with open("saved.json") as f:
        saved = json.load(f)
    result = saved["lst"][0]
    expect(result["aggregation"] == "average" and result["lst"][0][1][0]["p"]["thresholds"]
           == {"check_error_stat": "mean", "atol": 0.051, "rtol": 1e-05, "polygraphy_class": "SimpleThreshold"}, f"saved thresholds: {result}")


MERGED = ["inputs.json", "one.json", "y.json", "golden.json", "two.json", "inputs.json y.json", "one.json inputs.json", "inputs.json one.json",
          "y.json inputs.json y.json", "one.json y.json", "out1.json y.json", "golden.json y.json", "wide.json"]


# Runs the lines of its standard input one after the other.
TOOL = """
import json, sys
from polygraphy.tools import main
for sys.argv in json.load(sys.stdin):
    try:
        main()
    except SystemExit:
        pass
"""


def check_bytes(assay):
    """What merge writes is what Polygraphy writes, byte for byte; concat, too; also where the name ends in nothing."""
    rows = [("data", verb, *files.split(), "-o", f"{i}{verb}" + (".json" if i % 2 else ""))
            for i, files in enumerate(MERGED) for verb in ("merge", "concat")]
    os.mkdir("theirs")
    theirs = [["polygraphy", *row[:-1], f"theirs/{row[-1]}"] for row in rows]
    subprocess.run([sys.executable, "-c", TOOL], input=json.dumps(theirs), capture_output=True, text=True)
    for row in rows:
        subprocess.run([*assay, *row], capture_output=True)
        ours, other = (open(name, "rb").read() if os.path.isfile(name) else None for name in (row[-1], f"theirs/{row[-1]}"))
        expect(ours == other, f"{row}: {str(ours)[:300]}, and Polygraphy {str(other)[:300]}")
    expect(len(os.listdir("theirs")) > len(MERGED), "Polygraphy has written its files")


def main():
    assay = [os.path.abspath(sys.argv[1]), "polygraphy"]
    beside = os.path.join(os.path.dirname(sys.executable), "polygraphy")
    tool = [beside] if os.path.exists(beside) else [shutil.which("polygraphy")] if shutil.which("polygraphy") else None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files()
        check_rows(assay, tool)
        check_files()
        if tool == [beside]:
            check_bytes(assay)
        os.chdir("/")
    for f in failures:
        print("FAILED", f)
    print(f"{count} checks, {len(failures)} failed{'' if tool else '; Polygraphy is not installed'}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
