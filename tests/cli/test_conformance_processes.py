#!/usr/bin/env python3
"""Cases of `assay conformance` share processes: test_conformance_processes.py ASSAY OPS

A case that crashes, ends its process or does not end fails alone, with what it did: those after it in the process run
in another one. However many have one process, and however many processes there are, the results are the same.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

ABORT, EXIT, HANG = 1, 2, 3
N = 23
BAD = {0: (ABORT, "crash: Aborted"), 5: (EXIT, "crash: exit code 7"), 6: (ABORT, "crash: Aborted"), 11: (HANG, "hang: over 2 s"),
       17: (0, "it returned"), 22: (EXIT, "crash: exit code 7")}


def write_case(k):
    """Cases that are right, but for every fourth, and those of BAD."""
    folder = f"cases/case{k:02d}"
    os.makedirs(f"{folder}/test_data_set_0")
    nodes = [h.make_node("Neg", ["x"], ["y"])] if k not in BAD else [h.make_node("Ends", ["x"], ["y"], domain="com.example", how=BAD[k][0])]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, [2])], [h.make_tensor_value_info("y", T.FLOAT, [2])])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("com.example", 1)], ir_version=8), f"{folder}/model.onnx")
    x = np.array([k, 1], np.float32)
    for name, value in (("input_0", x), ("output_0", x if k % 4 == 3 else -x)):
        with open(f"{folder}/test_data_set_0/{name}.pb", "wb") as f:
            f.write(nh.from_array(value).SerializeToString())


def run(assay, ops, *options):
    done = subprocess.run([assay, "conformance", "cases", "--ops", f"{ops}/ends.so", "--timeout", "2", "--json", "r.json", *options],
                          capture_output=True, text=True, timeout=120, check=False)
    with open("r.json", encoding="utf-8") as f:
        return done, json.load(f)


def main(assay, ops):
    failures = []
    for k in range(N):
        write_case(k)
    wrong = {k for k in range(N) if k % 4 == 3 and k not in BAD}
    for each, jobs in ((1, 2), (4, 1), (32, 1), (7, 2), (32, 8)):
        done, found = run(assay, ops, "--each", str(each), "-j", str(jobs))
        at = f"--each {each} -j {jobs}"
        for k in range(N):
            case = found["cases"].get(f"case{k:02d}", {})
            expected = BAD[k][1] if k in BAD else "2 of 2 differ" if k in wrong and k else None
            if case.get("status") != ("failed" if expected else "passed") or (expected or "") not in case.get("why", ""):
                failures.append(f"{at}: case{k:02d} is {case}, expected {expected}")
        if list(found["cases"]) != [f"case{k:02d}" for k in range(N)]:
            failures.append(f"{at}: cases are listed as they ended: {list(found['cases'])}")
        if done.returncode != 1 or f"{N - len(BAD) - len(wrong)} passed, {len(BAD) + len(wrong)} failed\n" not in done.stdout:
            failures.append(f"{at}: exit code {done.returncode}, {done.stdout[-200:]}{done.stderr}")
    print("\n".join(failures) or "the same results however cases share processes")
    return 1 if failures else 0


if __name__ == "__main__":
    words = [os.path.abspath(word) for word in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        sys.exit(main(*words))
