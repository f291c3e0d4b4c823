#!/usr/bin/env python3
"""Fits the constants that rank tactics (src/exec/choice/costs.h) to timing caches.

    bench/cost_model.py CACHE... [--write src/backends/cpu/costs_CLASS.inc]
    bench/cost_model.py CACHE... --rate src/backends/cpu/costs_CLASS.inc

A CACHE is what `assay build --no-batch-invariant --timing-cache CACHE` writes, or lines
"MICROSECONDS<tab>TACTIC<tab>SIGNATURE". Of several times of one kernel the least counts. --rate tells for
each kind of layer what the choices by a table cost beside the fastest kernel of each layer.

Rows are fitted by non-negative least squares of the relative error; times of more than 2.5 times the
prediction, which a busy machine makes, are left out and counted.
"""
import argparse
import collections
import math
import re

import numpy as np

FASTER = 0.85  # as src/exec/choice/costs.c
LEFT_OUT = 2.5
POOLS = ("AveragePool", "GlobalMaxPool", "GlobalAveragePool", "MaxPool")
TYPES = {"float": ("fp32", 4), "bfloat16": ("bf16", 2), "float16": ("fp16", 2), "int8": ("int8", 1),
         "uint8": ("int8", 1), "int32": (None, 4), "int64": (None, 8)}
# One row would serve all; these kinds have tactics that a table is needed for.
NODE = re.compile(r"(?:^|; )(Conv|MatMul|Gemm|%s)-\d+\(" % "|".join(POOLS))
OPERAND = re.compile(r" ([io])(\d+) (\w+)\[([\d,]*)\]( last)?( constant)?;")


def read(paths):
    """{signature: {tactic: microseconds}}"""
    layers = collections.defaultdict(dict)
    for path in paths:
        for line in open(path, encoding="utf-8"):
            match = re.match(r"([\d.e+-]+)[\t ](\w+)[\t ](.*\|.*)", line)
            if match:
                us, tactic, signature = float(match[1]), match[2], match[3].strip()
                layers[signature][tactic] = min(us, layers[signature].get(tactic, math.inf))
    return layers


def sizes(signature):
    """(kind, type, by sample, [1, macs, read, write, weights]), as assay_layer_sizes; None."""
    node = NODE.search(signature)
    operands = [(side, type_, [int(d) for d in dims.split(",") if d], bool(constant))
                for side, _, type_, dims, _, constant in OPERAND.findall(signature[signature.rindex("|"):])]
    inputs = [o for o in operands if o[0] == "i"]
    outputs = [o for o in operands if o[0] == "o"]
    acts = [o for o in inputs if not o[3] and math.prod(o[2]) > 1]
    weights = [o for o in inputs if o[3] and len(o[2]) >= 2]
    if not node or not acts or not outputs:
        return None
    x = max(acts, key=lambda o: len(o[2]))
    y = outputs[0]
    type_ = TYPES.get(x[1], (None, 0))[0]
    op = node[1]
    w = max(weights, key=lambda o: math.prod(o[2])) if weights and op not in POOLS else None
    samples = 1
    if not type_ or not y[2]:
        return None
    if op in ("MatMul", "Gemm"):
        kind = "matmul" if w else "matmul_pair"
        macs = math.prod(y[2]) * (math.prod(w[2]) / y[2][-1] if w else x[2][-1])
    else:
        if len(x[2]) < 3 or len(y[2]) != len(x[2]) or x[2][0] != y[2][0]:
            return None
        samples = y[2][0]
        kind, macs = op, math.prod(x[2]) / samples
    if op == "Conv":
        if not w:
            return None
        groups = len(w[2]) != len(x[2]) or w[2][1] != x[2][1]
        if groups and w[2][1] != 1:
            return None
        kind = "depthwise" if groups else "conv_1x1" if math.prod(w[2][2:]) == 1 else "conv"
        macs = math.prod(y[2]) / samples * math.prod(w[2]) / w[2][0]
    size = {"fp32": 4, "int8": 1}.get(type_, 2)
    read_ = sum(math.prod(o[2]) * TYPES[o[1]][1] for o in acts) / samples
    write = math.prod(y[2]) * TYPES[y[1]][1] / samples
    return kind, type_, op not in ("MatMul", "Gemm"), np.array(
        [1, macs, read_, write, math.prod(w[2]) * size if w else 0])


def nnls(a, b):
    """Least squares with no negative coefficient, by coordinates."""
    scale = a.max(0) + 1e-30
    a = a / scale
    gram, target = a.T @ a, a.T @ b
    x = np.zeros(a.shape[1])
    for _ in range(20000):
        for j in range(len(x)):
            x[j] = max(0, x[j] - (gram[j] @ x - target[j]) / (gram[j, j] + 1e-30))
    return x / scale


def fit(points):
    """points: (features, microseconds); returns (row, points that were left out)."""
    kept = points
    for _ in range(4):
        row = nnls(np.array([f / us for f, us in kept]), np.ones(len(kept)))
        rest = [(f, us) for f, us in kept if us < LEFT_OUT * (f @ row)]
        if len(rest) == len(kept) or len(rest) < 3:
            break
        kept = rest
    return row, len(points) - len(kept)


def group(layers):
    """{(kind, type): [(features, by sample, {tactic: us})]} of layers that several tactics take."""
    groups = collections.defaultdict(list)
    for signature, times in layers.items():
        s = sizes(signature)
        if s and len(times) > 1:
            groups[s[0], s[1]].append((s[3], s[2], times))
    return groups


def fit_all(groups):
    table = {}
    for (kind, type_), layers in sorted(groups.items()):
        for tactic in sorted({t for _, _, times in layers for t in times}):
            points = [(f, times[tactic]) for f, _, times in layers if tactic in times]
            if len(points) >= 3:
                table[kind, type_, tactic] = fit(points) + (len(points),)
    return table


def write(path, table, sources):
    with open(path, "w", encoding="utf-8") as out:
        out.write("// Fitted by bench/cost_model.py: kind, type, tactic, microseconds, then nanoseconds a multiply-add,\n"
                  "// and a byte read, written, of weights. From %d kernels.\n" % sources)
        for (kind, type_, tactic), (row, _, _) in table.items():
            numbers = ", ".join("%.4g" % v for v in [row[0]] + [1e3 * v for v in row[1:]])
            out.write('{"%s", "%s", "%s", %s},\n' % (kind, type_, tactic, numbers))


def load(path):
    table = {}
    for line in open(path, encoding="utf-8"):
        match = re.match(r'\{"(\w+)", "(\w+)", "(\w+)", (.*)\},', line)
        if match:
            row = [float(v) for v in match[4].split(",")]
            table[match[1], match[2], match[3]] = (np.array([row[0]] + [v / 1e3 for v in row[1:]]), 0, 0)
    return table


def rate(groups, table, order):
    print("| kind | type | layers | table's order | by prediction | past 1.5 | left out |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (kind, type_), layers in sorted(groups.items()):
        first = chosen = best = past = noisy = 0
        for features, _, times in layers:
            predicted = {t: features @ table[kind, type_, t][0] for t in times if (kind, type_, t) in table}
            names = sorted(times, key=order.index)
            pick = names[0]
            least = FASTER * predicted.get(pick, math.nan)
            for name in names[1:]:
                if predicted.get(name, math.nan) < least:
                    pick, least = name, predicted[name]
            if any(times[t] > LEFT_OUT * predicted.get(t, math.inf) for t in {pick, names[0]}):
                noisy += 1
                continue
            first, chosen, best = first + times[names[0]], chosen + times[pick], best + min(times.values())
            past += times[pick] > 1.5 * min(times.values())
        if best:
            print("| %s | %s | %d | %.2f | %.2f | %d | %d |" %
                  (kind, type_, len(layers), first / best, chosen / best, past, noisy))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("caches", nargs="+")
    parser.add_argument("--write")
    parser.add_argument("--rate")
    parser.add_argument("--leave", nargs="*", default=[], metavar="TYPE:KIND", help="keep the table's order of these")
    parser.add_argument("--tactics", default="src/backends/cpu/tactics.inc")
    args = parser.parse_args()
    layers = read(args.caches)
    groups = {key: v for key, v in group(layers).items() if f"{key[1]}:{key[0]}" not in args.leave}
    order = re.findall(r"CPU_TACTIC\((\w+)\)", open(args.tactics, encoding="utf-8").read().split("// CPU_TACTIC")[-1])
    table = load(args.rate) if args.rate else fit_all(groups)
    if args.write:
        write(args.write, table, sum(len(t) for t in layers.values()))
    rate(groups, table, order)


if __name__ == "__main__":
    main()
