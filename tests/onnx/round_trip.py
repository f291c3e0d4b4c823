#!/usr/bin/env python3
"""Reads and writes models with Assay and compares them, field by field, with what they were.

    round_trip.py COPY_MODEL PATH...

COPY_MODEL is the program of tests/onnx/copy_model.c; a PATH is a model or a folder that is searched
for model*.onnx. Each model is copied as it is, with all weights made external, and back again.
Values of test data (*.pb) beside the models are copied, too. Equal means: the same messages, where a
field with its default value is the same as none, elements of tensors count by value (raw_data or a
typed field), and ai.onnx is the empty domain.
"""
import os
import subprocess
import sys
import tempfile

import onnx
from google.protobuf.descriptor import FieldDescriptor
from onnx import TensorProto, numpy_helper

DATA_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "raw_data", "double_data", "uint64_data",
               "external_data", "data_location")


def elements(tensor, folder):
    """The elements of a TensorProto as something that compares exactly."""
    if tensor.data_type == TensorProto.STRING:
        return list(tensor.string_data)
    array = numpy_helper.to_array(tensor, base_dir=folder)
    return array.dtype.str, array.shape, array.tobytes()


def difference(a, b, where, folders):
    """Where two messages differ, or None."""
    skip = ()
    if isinstance(a, TensorProto):
        if elements(a, folders[0]) != elements(b, folders[1]):
            return f"{where}: elements"
        skip = DATA_FIELDS
    for field in a.DESCRIPTOR.fields:
        if field.name in skip:
            continue
        x, y = getattr(a, field.name), getattr(b, field.name)
        here = f"{where}.{field.name}"
        if field.is_repeated:
            x, y = list(x), list(y)
            if field.name == "value_info":
                x, y = sorted(x, key=lambda v: v.name), sorted(y, key=lambda v: v.name)
            if len(x) != len(y):
                return f"{here}: {len(x)} and {len(y)} of them"
            pairs = [(f"{here}[{i}]", p, q) for i, (p, q) in enumerate(zip(x, y))]
        elif field.type == FieldDescriptor.TYPE_MESSAGE and not (a.HasField(field.name) and b.HasField(field.name)):
            if a.HasField(field.name) or b.HasField(field.name):
                return f"{here}: only in one of them"
            continue
        else:
            pairs = [(here, x, y)]
        for at, p, q in pairs:
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                if found := difference(p, q, at, folders):
                    return found
            elif p != q and not (p != p and q != q) and {p, q} != {"", "ai.onnx"}:
                return f"{at}: {p!r} and {q!r}"
    return None


def copy(program, pairs, *mode):
    """Runs the program over pairs of paths; gives its line for each."""
    text = "".join(f"{a}\t{b}\n" for a, b in pairs)
    done = subprocess.run([program, *mode], input=text, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(pairs):
        sys.exit(f"{program} {' '.join(mode)}: exit code {done.returncode} at {pairs[len(lines) - 1]}\n{done.stderr}")
    return lines


def compare(a, b):
    load = lambda path: onnx.load(path, load_external_data=False)
    return difference(load(a), load(b), "model", (os.path.dirname(a), os.path.dirname(b)))


def compare_values(a, b):
    if open(a, "rb").read() == open(b, "rb").read():
        return None
    x, y = TensorProto(), TensorProto()
    x.ParseFromString(open(a, "rb").read())
    y.ParseFromString(open(b, "rb").read())
    x.ClearField("name")
    return difference(x, y, "value", (os.path.dirname(a), os.path.dirname(b)))


def is_tensor(path):
    """Test data of sequences and optionals need their type; tests/onnx/test_value.c reads those."""
    t = TensorProto()
    try:
        t.ParseFromString(open(path, "rb").read())
        return t.data_type > 0 and not t.HasField("doc_string") and numpy_helper.to_array(t) is not None
    except Exception:
        return False


def main(program, *paths):
    models, values = [], []
    for path in paths:
        if os.path.isfile(path):
            models.append(path)
        for folder, _, names in os.walk(path):
            models += [os.path.join(folder, n) for n in names if n.startswith("model") and n.endswith(".onnx")]
            values += [os.path.join(folder, n) for n in names if n.endswith(".pb")]
    values = [v for v in values if is_tensor(v)]
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        def step(name, pairs, check, *mode):
            nonlocal failed
            for (a, b), line in zip(pairs, copy(program, pairs, *mode)):
                found = line if line != "ok" else check(a, b)
                if found:
                    failed += 1
                    print(f"{name}: {a}: {found}")

        plain = [(m, f"{temporary}/{i}.onnx") for i, m in enumerate(models)]
        outside = [(m, f"{temporary}/{i}_e.onnx") for i, m in enumerate(models)]
        inside = [(f"{temporary}/{i}_e.onnx", f"{temporary}/{i}_i.onnx") for i in range(len(models))]
        step("copy", plain, compare)
        step("external", outside, compare, "--external")
        step("internal again", inside, compare, "--internal")
        step("value", [(v, f"{temporary}/{i}.pb") for i, v in enumerate(values)], compare_values, "--value")
    print(f"{len(models)} models, {len(values)} values, {failed} differ")
    return 1 if failed or not models else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 2 else __doc__)
