#!/usr/bin/env python3
"""Whether int8 layers have the same bits on the emulated engine and on the CPU; as Markdown.

    bench/int8_bits.py MODEL... [--batch N] [--seed N] [--layers N] [--out FILE]

Both run the fused plan on the same random inputs. `output`: whether the model's outputs are alike bit for bit. They need
not be where layers of floats are in between (normalizations, softmax, attention, means): those sum up in orders of their
own. `first to differ`: of all quantized tensors in the graph's order; it may not be what an int8 layer makes. So that
what lies behind it is compared, too, the model is cut at every quantized tensor: whatever reads one is fed what the
emulated engine made of it, and each quantizer's output is an output. Fed the same integers, a layer of quantized operands
has to give the same integers. Needs a release build, or --assay PROGRAM. Exit code 1: an int8 layer that differs, or fewer
of them than --layers.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from false_alarms import ASSAY, shapes  # noqa: E402

FED = "_fed"
MOVES = ("MaxPool", "Transpose", "Reshape", "Slice", "Split", "Concat", "Flatten", "Squeeze", "Unsqueeze", "Gather", "Pad",
         "DepthToSpace", "SpaceToDepth", "Identity", "Expand", "Tile")  # of bytes as they are
MEANS = ("ReduceMean", "GlobalAveragePool")


def run(args, model, target, out, words):
    command = [args.assay, "run", model, "--mode", "plan", "--fused", "--target", target, "--save-outputs", out] + words
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        sys.exit("%s on %s: exit %d: %s" % (model, target, done.returncode, done.stderr.strip()[-300:]))
    with np.load(out) as values:
        return {name: values[name] for name in values.files}


def save(feed, folder):
    """The arrays as words of a command."""
    path = os.path.join(folder, "feed.npz")
    np.savez(path, **feed)
    return ["--inputs", path]


def differing(a, b):
    """How many elements have other bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return max(a.size, b.size, 1)
    bits = "u%d" % a.dtype.itemsize
    return int(np.count_nonzero(np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits)))


def quantized_values(graph):
    """{value: its type} of what QuantizeLinear nodes make and others read."""
    zeros = {t.name: t.data_type for t in graph.initializer}
    reads = {name for node in graph.node for name in node.input}
    return {node.output[0]: zeros.get(node.input[2], onnx.TensorProto.UINT8) if len(node.input) > 2 else onnx.TensorProto.UINT8
            for node in graph.node if node.op_type == "QuantizeLinear" and node.output[0] in reads}


def with_outputs(graph, values):
    had = {o.name for o in graph.output}
    graph.output.extend(onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in values.items() if name not in had)


def cut(graph, values, arrays):
    """Readers of the values read inputs in their place."""
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in values:
                node.input[i] = name + FED
    graph.input.extend(onnx.helper.make_tensor_value_info(name + FED, kind, arrays[name].shape) for name, kind in values.items())


def random_inputs(graph, batch, seed):
    """For inputs that no initializer has a default for; integers are small, as indices have to be."""
    rng, feed = np.random.default_rng(seed), {}
    defaults = {t.name for t in graph.initializer}
    for value in graph.input:
        if value.name in defaults:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dims = [d.dim_value or batch for d in value.type.tensor_type.shape.dim]
        feed[value.name] = (rng.standard_normal(dims) if kind.kind == "f" else rng.integers(0, 2 if kind.kind == "b" else 100, dims)).astype(kind)
    return feed


def moves_bytes(maker, name):
    """Whether a float is a dequantized tensor's elements, elsewhere or fewer."""
    while name in maker and maker[name].op_type in MOVES:
        name = maker[name].input[0]
    return name in maker and maker[name].op_type == "DequantizeLinear"


def of_integers(args, path, graph, values):
    """Those of the values that int8 layers of the fused plan make: from DequantizeLinear to QuantizeLinear, or moves of
    bytes."""
    text = subprocess.run([args.assay, "inspect", "plan", path, "--fused", "--json", "-"], capture_output=True, text=True,
                          check=True).stdout
    layer = {node: set(layer["nodes"]) for layer in json.loads(text)["layers"] for node in layer["nodes"]}
    maker = {name: node for node in graph.node for name in node.output}
    dequantizers = {node.name for node in graph.node if node.op_type == "DequantizeLinear"}
    means = {node.name for node in graph.node if node.op_type in MEANS}  # exact on the CPU, sums of floats on the engine
    made_by = {name: layer.get(maker[name].name, set()) for name in values}
    return {name for name in values
            if (made_by[name] & dequantizers and not made_by[name] & means) or moves_bytes(maker, maker[name].input[0])}


def compare(args, path, folder):
    """(a row of the table, [what is wrong], int8 layers)"""
    model = onnx.load(path)
    values = quantized_values(model.graph)
    feed = random_inputs(model.graph, args.batch, args.seed)
    words = shapes(path, args.batch) + save(feed, folder)
    outputs = [run(args, path, target, os.path.join(folder, target), words) for target in ("emu", "cpu")]
    alike = all(differing(outputs[0][name], outputs[1][name]) == 0 for name in outputs[0])

    whole = os.path.join(folder, "whole.onnx")
    with_outputs(model.graph, values)
    onnx.save(model, whole)
    arrays, other = [run(args, whole, target, os.path.join(folder, target), words) for target in ("emu", "cpu")]
    first = next((name for name in values if differing(arrays[name], other[name])), None)

    parts = os.path.join(folder, "parts.onnx")
    cut(model.graph, values, arrays)
    onnx.save(model, parts)
    words = shapes(parts, args.batch) + save({**feed, **{name + FED: arrays[name] for name in values}}, folder)
    fed = [run(args, parts, target, os.path.join(folder, target), words) for target in ("emu", "cpu")]

    integers = of_integers(args, parts, model.graph, values)
    count = {name: differing(fed[0][name], fed[1][name]) for name in values}
    wrong = ["%s: %d of %d elements" % (name, count[name], fed[0][name].size) for name in values if count[name] and name in integers]
    if first in integers:
        wrong.append("%s: the first in the whole model" % first)
    floats = [name for name in values if name not in integers]
    row = "| %s | %s | %d | %d | %d | %d | %s |" % (
        os.path.basename(path), "the same" if alike else "differs", len(integers), len(wrong), len(floats),
        sum(count[name] > 0 for name in floats),
        "`%s`, %d of %d" % (first, differing(arrays[first], other[first]), arrays[first].size) if first else "")
    return row, wrong, len(integers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--assay", default=ASSAY, metavar="PROGRAM")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=1, metavar="N", help="int8 layers that each model has to have")
    parser.add_argument("--out")
    args = parser.parse_args()
    text = "| model | output | int8 layers | differ | quantizers of floats | differ | first to differ |\n" + "| --- " * 7 + "|\n"
    failed = False
    for path in args.models:
        with tempfile.TemporaryDirectory() as folder:
            row, wrong, layers = compare(args, path, folder)
        text += row + "\n"
        print(row, flush=True)
        for line in wrong:
            print("  int8 layer differs: " + line)
        if layers < args.layers:
            print("  %d int8 layers, expected at least %d" % (layers, args.layers))
        failed |= bool(wrong) or layers < args.layers
    if args.out:
        with open(args.out, "w") as f:
            f.write(text)
    return failed


if __name__ == "__main__":
    sys.exit(main())
