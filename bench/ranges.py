#!/usr/bin/env python3
"""Ranges: ten models with planted overflows, and certified boxes under random inputs.

    bench/ranges.py ASSAY OUT.md [--inputs 100000] [--zoo FOLDER] [--cases FOLDER]

Announced: `assay audit` names the planted node (or one that must overflow before it does) without running, and finds a witness,
which is run again here: `assay run` in the format gives NaN or Inf (of integers: `assay run --mode truth` of the float
twin passes int32). Certified: within the box that `assay audit` calls safe, random inputs, corners and sign patterns
give no NaN and no Inf.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(7)


def model(nodes, inputs, outputs, constants, opset=18):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                         [h.make_tensor_value_info(n, t, s) for n, t, s in outputs],
                         [nh.from_array(v, k) for k, v in constants.items()])
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(m)
    return m


def w(*shape, scale=1.0):
    return (R.standard_normal(shape) * scale).astype(np.float32)


def node(op, ins, outs, name, **attrs):
    return h.make_node(op, ins, outs, name=name, **attrs)


def conv_net():
    """Two convolutions with ReLU between; the second one's weights are far too large for fp16."""
    return model([node("Conv", ["x", "w1", "b1"], ["a"], "conv1", pads=[1, 1, 1, 1]), node("Relu", ["a"], ["r"], "relu1"),
                  node("Conv", ["r", "w2"], ["y"], "conv2", pads=[1, 1, 1, 1])],
                 [("x", T.FLOAT, [1, 3, 12, 12])], [("y", T.FLOAT, [1, 4, 12, 12])],
                 {"w1": w(8, 3, 3, 3, scale=2), "b1": w(8), "w2": w(4, 8, 3, 3, scale=300)}), "conv2"


def mlp_exp():
    """An exponential behind a linear layer: infinite in bf16 where its argument passes 88.7."""
    return model([node("Gemm", ["x", "w", "b"], ["a"], "fc", transB=1), node("Exp", ["a"], ["e"], "exp"),
                  node("Div", ["one", "e"], ["d"], "inverse"), node("Add", ["e", "d"], ["y"], "sum")],
                 [("x", T.FLOAT, [2, 16])], [("y", T.FLOAT, [2, 8])],
                 {"w": w(8, 16, scale=12), "b": w(8), "one": np.float32(1)}), "exp"


def square_sum():
    """A norm by hand: the sum of squares passes fp16 long before the root does."""
    return model([node("MatMul", ["x", "w"], ["a"], "proj"), node("Mul", ["a", "a"], ["s"], "square"),
                  node("ReduceSum", ["s", "axes"], ["n"], "norm", keepdims=1), node("Add", ["n", "eps"], ["m"], "eps_add"),
                  node("Sqrt", ["m"], ["q"], "root"), node("Div", ["a", "q"], ["y"], "unit")],
                 [("x", T.FLOAT, [1, 8, 64])], [("y", T.FLOAT, [1, 8, 96])],
                 {"w": w(64, 96, scale=0.8), "axes": np.array([-1], np.int64), "eps": np.float32(1e-3)}), "norm"


def cumsum_pool():
    """Averages by running sums, as an exporter writes local pooling."""
    return model([node("Conv", ["x", "w"], ["a"], "conv", pads=[1, 1, 1, 1]), node("Sigmoid", ["a"], ["g"], "gate"),
                  node("Mul", ["g", "ten"], ["t"], "scale"), node("CumSum", ["t", "ax2"], ["c"], "cumsum_h"),
                  node("CumSum", ["c", "ax3"], ["y"], "cumsum_w")],
                 [("x", T.FLOAT, [1, 2, 96, 96])], [("y", T.FLOAT, [1, 4, 96, 96])],
                 {"w": w(4, 2, 3, 3), "ten": np.float32(10), "ax2": np.int64(2), "ax3": np.int64(3)}), "cumsum_w"


def fp8_attention():
    """Scores of an attention that are not scaled: fp8e4m3 ends at 448."""
    d = 16
    return model([node("MatMul", ["x", "wq"], ["q"], "q"), node("MatMul", ["x", "wk"], ["k"], "k"),
                  node("Transpose", ["k"], ["kt"], "kt", perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"], "scores"),
                  node("Softmax", ["s"], ["p"], "softmax", axis=-1), node("MatMul", ["p", "x"], ["y"], "mix")],
                 [("x", T.FLOAT, [1, 6, d])], [("y", T.FLOAT, [1, 6, d])],
                 {"wq": w(d, d, scale=1.0), "wk": w(d, d, scale=1.0)}), "scores"


def residual_chain():
    """Residual blocks that double what they are given: fp8e5m2 ends at 57344."""
    nodes, consts, at = [], {}, "x"
    for i in range(18):
        consts[f"s{i}"] = np.float32(1.0)
        nodes += [node("Mul", [at, f"s{i}"], [f"m{i}"], f"mul{i}"), node("Add", [at, f"m{i}"], [f"a{i}"], f"add{i}")]
        at = f"a{i}"
    return model(nodes, [("x", T.FLOAT, [1, 32])], [(at, T.FLOAT, [1, 32])], consts), "add15"


def tiny_epsilon():
    """A variance with an epsilon that fp16 flushes to 0: a constant row divides 0 by 0."""
    return model([node("ReduceMean", ["x", "ax"], ["mu"], "mean", keepdims=1), node("Sub", ["x", "mu"], ["d"], "centre"),
                  node("Mul", ["d", "d"], ["s"], "square"), node("ReduceMean", ["s", "ax"], ["v"], "variance", keepdims=1),
                  node("Add", ["v", "eps"], ["e"], "eps_add"), node("Sqrt", ["e"], ["r"], "root"),
                  node("Div", ["d", "r"], ["y"], "normalize")],
                 [("x", T.FLOAT, [2, 24])], [("y", T.FLOAT, [2, 24])],
                 {"ax": np.array([1], np.int64), "eps": np.float32(1e-8)}), "normalize"


def huge_logits():
    """A product of two projections whose result passes bf16's (and fp32's) range."""
    return model([node("MatMul", ["x", "w1"], ["a"], "up"), node("Pow", ["a", "p"], ["b"], "power"),
                  node("MatMul", ["b", "w2"], ["y"], "down")],
                 [("x", T.FLOAT, [4, 12])], [("y", T.FLOAT, [4, 3])],
                 {"w1": w(12, 20, scale=300), "p": np.float32(11), "w2": w(20, 3, scale=100)}), "power"


def int8_matmul():
    """A product of 160,000 terms of 8 bits: past int32."""
    k = 160_000
    a = R.integers(0, 2, (k, 2)) * 250 - 125
    return model([node("MatMulInteger", ["q", "w"], ["y"], "matmul")],
                 [("q", T.UINT8, [1, k])], [("y", T.INT32, [1, 2])], {"w": a.astype(np.int8)}), "matmul"


def int8_dynamic():
    """A dynamically quantized layer, wide enough that its int32 sums may wrap."""
    k = 150_000
    b = np.where(R.random((k, 1)) < 0.9, 127, -127).astype(np.int8)
    return model([node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], "quantize"),
                  node("MatMulInteger", ["q", "w", "z"], ["i"], "matmul"), node("Cast", ["i"], ["f"], "cast", to=T.FLOAT),
                  node("Mul", ["f", "s"], ["y"], "scale")],
                 [("x", T.FLOAT, [1, k])], [("y", T.FLOAT, [1, 1])], {"w": b}), "matmul"


PLANTED = [("conv_net", conv_net, "fp16", ["-2:2"]), ("mlp_exp", mlp_exp, "bf16", ["-1:1"]),
           ("square_sum", square_sum, "fp16", ["-4:4"]), ("cumsum_pool", cumsum_pool, "fp16", ["-1:1"]),
           ("fp8_attention", fp8_attention, "fp8e4m3", ["-2:2"]), ("residual_chain", residual_chain, "fp8e5m2", ["-1:1"]),
           ("tiny_epsilon", tiny_epsilon, "fp16", ["-1:1"]), ("huge_logits", huge_logits, "bf16", ["-3:3"]),
           ("int8_matmul", int8_matmul, "int8", ["q=0:255"]), ("int8_dynamic", int8_dynamic, "int8", ["-1:1"])]


def audit(assay, path, precision, *options):
    out = subprocess.run([assay, "audit", str(path), *(["--precision", precision] if precision else []), "--json", "-",
                          *options], capture_output=True, text=True)
    if out.returncode not in (0, 1):
        raise RuntimeError(out.stderr)
    return json.loads(out.stdout)


def run(assay, path, precision, inputs, extra=()):
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        np.savez(d / "in.npz", **inputs)
        subprocess.run([assay, "run", str(path), "--precision", precision, "--inputs", str(d / "in.npz"), "-o",
                        str(d / "out.npz"), *extra], check=True, capture_output=True)
        return dict(np.load(d / "out.npz"))


def breaks(assay, path, precision, witness, m):
    """Whether the witness breaks the model: floats by running it, sums of integers by adding them up here."""
    if precision != "int8":
        # All inner values as outputs: an infinity need not reach the end.
        opened = onnx.shape_inference.infer_shapes(m)
        have = {o.name for o in opened.graph.output}
        opened.graph.output.extend(v for v in opened.graph.value_info if v.name not in have)
        inner = path.with_suffix(".inner.onnx")
        onnx.save(opened, inner)
        outs = run(assay, inner, precision, witness)
        return any(not np.isfinite(v).all() for v in outs.values() if v.dtype.kind == "f")
    weights = nh.to_array(m.graph.initializer[0]).astype(np.int64)
    x = next(iter(witness.values()))
    if x.dtype == np.uint8:
        q, z = x.astype(np.int64), 0
    else:  # DynamicQuantizeLinear
        lo, hi = min(0.0, float(x.min())), max(0.0, float(x.max()))
        s = np.float32((np.float32(hi) - np.float32(lo)) / np.float32(255))
        z = int(np.clip(np.round(-lo / s), 0, 255))
        q = np.clip(np.round(x / s) + z, 0, 255).astype(np.int64)
    return bool(np.abs((q - z) @ weights).max() > 2**31 - 1)


def planted(assay, folder):
    rows, good = [], 0
    for name, make, precision, boxes in PLANTED:
        m, where = make()
        path = folder / f"{name}.onnx"
        onnx.save(m, path)
        box = [o for b in boxes for o in ("--box", b)]
        start = time.time()
        told = audit(assay, path, None if precision == "int8" else precision, *box, "--no-witness", "--no-radius")
        ahead = time.time() - start
        names = [x["node"] for x in told["hazards"]]
        found = audit(assay, path, None if precision == "int8" else precision, *box, "--save-witness",
                      str(folder / "witness.npz"), "--search-time", "30")
        confirmed = found["witness"] is not None and breaks(assay, path, precision,
                                                            dict(np.load(folder / "witness.npz")), m)
        ok = where in names and confirmed
        good += ok
        first = told["hazards"][0]["text"] if told["hazards"] else "-"
        safe = found["safe"] or {"radius": None, "scale": float("nan")}
        rows.append(f"| {name} | {precision} | {where} | {names[0] if names else '-'}: {first} | {ahead:.2f} | "
                    f"{found['witness']['node'] if found['witness'] else '-'} | {'yes' if confirmed else 'NO'} | "
                    f"{safe['radius'] if safe['radius'] is not None else safe['scale']:.4g} |")
        print(rows[-1], flush=True)
    return rows, good


def batches(shapes, box, n, per):
    """Inputs in the box, `per` of them in a batch: random, corners, signs by row, constants, all at one end."""
    for k in range(0, n, per):
        out = {}
        for name, shape in shapes.items():
            lo, hi = box[name]
            x = R.uniform(lo, hi, (per, *shape)).astype(np.float32)
            for i in range(per):
                kind = (k + i) % 6
                if kind == 1:
                    x[i] = np.where(R.random(shape) < 0.5, lo, hi)
                elif kind == 2:
                    x[i] = lo if (k + i) % 12 < 6 else hi
                elif kind == 3:
                    x[i] = np.where(R.random((*shape[:-1], 1)) < 0.5, lo, hi)
                elif kind == 4:
                    x[i] = R.uniform(lo, hi)
            big = np.float32(max(abs(lo), abs(hi)))
            inside = np.nextafter(big, np.float32(0)) if big > max(abs(lo), abs(hi)) else big
            out[name] = np.clip(x, -inside, inside)
        yield out


def certified(assay, folder, cases, n):
    """Models in boxes that are called safe, at the largest one: batched, so that a run takes many inputs."""
    rows, good = [], 0
    chosen = [(f"{name}", folder / f"{name}.onnx", precision, None) for name, _, precision, _ in PLANTED
              if precision != "int8"]
    chosen += [(f"{c}", cases / c / "model.onnx", p, None) for c in ("digits_cnn", "digits_transformer", "elu_tf2onnx")
               if cases and (cases / c / "model.onnx").exists() for p in ("fp16", "fp8e4m3")]
    for name, path, precision, _ in chosen:
        told = audit(assay, path, precision, "--no-witness", "--box", "-1:1")
        scale = told["safe"]["scale"]
        m = onnx.load(path)
        names = {i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim] for i in m.graph.input}
        if not scale:
            rows.append(f"| {name} | {precision} | none | 0 | - |")
            continue
        box = {k: (-scale, scale) for k in names}
        # An open first size takes a batch; a closed one is run through samples (the array holds several times as much).
        count = 0
        bad = 0
        per = 500
        start = time.time()
        for inputs in batches({k: v[1:] if v and v[0] == 1 and len(v) > 1 else v for k, v in names.items()}, box, n, per):
            inputs = {k: x.reshape(-1, *names[k][1:]) if names[k] and names[k][0] == 1 else
                      x.reshape(-1, *names[k][1:]) for k, x in inputs.items()}
            outs = run(assay, path, precision, inputs)
            bad += sum(int((~np.isfinite(v)).sum()) for v in outs.values() if v.dtype.kind == "f")
            count += per
            if time.time() - start > 600:
                break
        good += bad == 0
        rows.append(f"| {name} | {precision} | {scale:.4g} | {count} | {bad} |")
        print(rows[-1], flush=True)
    return rows, good, len(chosen)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("assay")
    p.add_argument("out")
    p.add_argument("--inputs", type=int, default=100_000)
    p.add_argument("--cases", type=pathlib.Path)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        rows, good = planted(a.assay, d)
        safe, unbroken, all_safe = certified(a.assay, d, a.cases, a.inputs)
    text = f"""# Ranges

`bench/ranges.py`: {good} of {len(PLANTED)} planted overflows announced and confirmed; {unbroken} of {all_safe} certified boxes
without NaN or Inf.

| model | format | planted in | announced first | seconds | witness breaks | confirmed | safe for abs(x) <= |
| --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}

Inputs in the largest box that is called safe (random, corners, rows of one sign, constants):

| model | format | safe for abs(x) <= | inputs | NaN or Inf |
| --- | --- | --- | --- | --- |
{chr(10).join(safe)}
"""
    pathlib.Path(a.out).write_text(text)
    return 0 if good == len(PLANTED) and unbroken == all_safe else 1


if __name__ == "__main__":
    sys.exit(main())
