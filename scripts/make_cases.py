#!/usr/bin/env python3
"""Writes the operator tests of the installed onnx package to a folder, for `assay conformance`.

    make_cases.py OUT

    OUT/GROUP/NAME/model.onnx
    OUT/GROUP/NAME/data.json                        where tolerances differ from rtol 1e-3, atol 1e-7
    OUT/GROUP/NAME/test_data_set_K/input_J.pb       by position among the inputs without an initializer
    OUT/GROUP/NAME/test_data_set_K/output_J.pb      by position

Groups: node (one operator, and the same as a function's body), simple (small models made by code),
pytorch-converted and pytorch-operator (stored models), light (topologies of known networks with
constant weights). Nothing is downloaded. OUT is replaced; it is left alone if this script and this
onnx made it before.
"""
import hashlib
import json
import os
import shutil
import sys
import warnings

import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import model as model_cases
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

DEFAULT = {"rtol": 1e-3, "atol": 1e-7}


def fed_inputs(graph):
    constant = {t.name for t in graph.initializer}
    return [v for v in graph.input if v.name not in constant]


def as_proto(value, info):
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(value, info.name)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def write_values(folder, what, values, infos):
    for j, (value, info) in enumerate(zip(values, infos, strict=True)):
        write(f"{folder}/{what}_{j}.pb", as_proto(value, info).SerializeToString(deterministic=True))


def write_case(folder, case, model, data_sets):
    write(f"{folder}/model.onnx", model.SerializeToString(deterministic=True))
    tolerance = {"rtol": case.rtol, "atol": case.atol}
    if tolerance != DEFAULT:
        write(f"{folder}/data.json", json.dumps(tolerance).encode())
    for k, (inputs, outputs) in enumerate(data_sets):
        # A case may feed initialized inputs, too; then it feeds all of them.
        infos = model.graph.input if len(inputs) == len(model.graph.input) else fed_inputs(model.graph)
        write_values(f"{folder}/test_data_set_{k}", "input", inputs, infos)
        write_values(f"{folder}/test_data_set_{k}", "output", outputs, model.graph.output)


def write_light(folder, case):
    """The model and its outputs lie in the package; the inputs are the ramps that ONNX's own runner makes."""
    path = os.path.join(os.path.dirname(os.path.dirname(onnx.__file__)), case.url)
    model = onnx.load(path)
    outputs = [onnx.load_tensor(f"{os.path.splitext(path)[0]}_output_{j}.pb") for j in range(len(model.graph.output))]
    inputs = [Runner.generate_dummy_data(v, name=case.model_name) for v in fed_inputs(model.graph)]
    write_case(folder, case, model, [(inputs, outputs)])


def write_stored(folder, case):
    write_case(folder, case, onnx.load(os.path.join(case.model_dir, "model.onnx")), [])
    for entry in sorted(os.listdir(case.model_dir)):
        if entry.startswith("test_data_set_"):
            shutil.copytree(os.path.join(case.model_dir, entry), os.path.join(folder, entry))


def write_all(out):
    """Returns the number of cases of each group."""
    counts = {}
    made = set()

    def add(group, case, how, *args):
        how(f"{out}/{group}/{case.name}", case, *args)
        made.add(case.name)
        counts[group] = counts.get(group, 0) + 1

    for case in node_cases.collect_testcases():
        add("node", case, write_case, case.model, case.data_sets)
    for case in model_cases.collect_testcases():
        if case.model is not None:
            add("simple", case, write_case, case.model, case.data_sets)
        elif "/light/" in (case.url or ""):
            add("light", case, write_light)
    for group in ("simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=group):
            if case.model_dir is not None and case.name not in made:
                add(group, case, write_stored)
    return counts


def main(out):
    with open(__file__, "rb") as f:
        stamp = f"{onnx.__version__} {hashlib.sha256(f.read()).hexdigest()}\n"
    stamp_file = os.path.join(out, "made_by.txt")
    if os.path.exists(stamp_file):
        with open(stamp_file) as f:
            if f.read() == stamp:
                return
    shutil.rmtree(out, ignore_errors=True)
    warnings.simplefilter("ignore")  # some cases divide by zero on purpose
    counts = write_all(out)
    write(stamp_file, stamp.encode())
    print(", ".join(f"{n} {group}" for group, n in counts.items()), f"= {sum(counts.values())} cases in {out}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
