#!/usr/bin/env python3
"""Ranges: ten models with injected overflows, and certified boxes under random inputs.

    bench/ranges.py ASSAY OUT.md [--inputs 100000] [--machine TEXT]

Announced: `assay audit` names the injected node without running, and finds a witness in the box, which is run again here: what
the injected node makes of it in `assay run` has a NaN or an Inf; of integers it is another number than the exact sum. Certified:
in the largest box that `assay audit` calls safe, random inputs, corners and sign patterns give no NaN and no Inf, neither at an
output nor anywhere inside.
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
                 [("x", T.FLOAT, ["N", 3, 6, 6])], [("y", T.FLOAT, ["N", 4, 6, 6])],
                 {"w1": w(8, 3, 3, 3, scale=2), "b1": w(8), "w2": w(4, 8, 3, 3, scale=300)}), "conv2"


def mlp_exp():
    """An exponential behind a linear layer: infinite in bf16 where its argument passes 88.7."""
    return model([node("Gemm", ["x", "w", "b"], ["a"], "fc", transB=1), node("Exp", ["a"], ["e"], "exp"),
                  node("Div", ["one", "e"], ["d"], "inverse"), node("Add", ["e", "d"], ["y"], "sum")],
                 [("x", T.FLOAT, ["N", 16])], [("y", T.FLOAT, ["N", 8])],
                 {"w": w(8, 16, scale=12), "b": w(8), "one": np.float32(1)}), "exp"


def square_sum():
    """A norm by hand: the sum of squares passes fp16 long before the root does."""
    return model([node("MatMul", ["x", "w"], ["a"], "proj"), node("Mul", ["a", "a"], ["s"], "square"),
                  node("ReduceSum", ["s", "axes"], ["n"], "norm", keepdims=1), node("Add", ["n", "eps"], ["m"], "eps_add"),
                  node("Sqrt", ["m"], ["q"], "root"), node("Div", ["a", "q"], ["y"], "unit")],
                 [("x", T.FLOAT, ["N", 64])], [("y", T.FLOAT, ["N", 96])],
                 {"w": w(64, 96, scale=0.8), "axes": np.array([-1], np.int64), "eps": np.float32(1e-3)}), "norm"


def cumsum_pool():
    """Averages by running sums, as an exporter writes local pooling."""
    return model([node("Conv", ["x", "w"], ["a"], "conv", pads=[1, 1, 1, 1]), node("Sigmoid", ["a"], ["g"], "gate"),
                  node("Mul", ["g", "ten"], ["t"], "scale"), node("CumSum", ["t", "ax2"], ["c"], "cumsum_h"),
                  node("CumSum", ["c", "ax3"], ["y"], "cumsum_w")],
                 [("x", T.FLOAT, ["N", 2, 16, 16])], [("y", T.FLOAT, ["N", 4, 16, 16])],
                 {"w": w(4, 2, 3, 3), "ten": np.float32(300), "ax2": np.int64(2), "ax3": np.int64(3)}), "cumsum_w"


def fp8_attention():
    """Scores of an attention that are not scaled: fp8e4m3 ends at 448."""
    d = 16
    return model([node("MatMul", ["x", "wq"], ["q"], "q"), node("MatMul", ["x", "wk"], ["k"], "k"),
                  node("Transpose", ["k"], ["kt"], "kt", perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"], "scores"),
                  node("Softmax", ["s"], ["p"], "softmax", axis=-1), node("MatMul", ["p", "x"], ["y"], "mix")],
                 [("x", T.FLOAT, ["N", 6, d])], [("y", T.FLOAT, ["N", 6, d])],
                 {"wq": w(d, d, scale=1.0), "wk": w(d, d, scale=1.0)}), "scores"


def residual_chain():
    """Residual blocks that double what they are given: fp8e5m2 ends at 57344."""
    nodes, consts, at = [], {}, "x"
    for i in range(18):
        consts[f"s{i}"] = np.float32(1.0)
        nodes += [node("Mul", [at, f"s{i}"], [f"m{i}"], f"mul{i}"), node("Add", [at, f"m{i}"], [f"a{i}"], f"add{i}")]
        at = f"a{i}"
    return model(nodes, [("x", T.FLOAT, ["N", 32])], [(at, T.FLOAT, ["N", 32])], consts), "add15"


def tiny_epsilon(epsilon=1e-8):
    """A variance with an epsilon that fp16 flushes to 0: a constant row divides 0 by 0."""
    return model([node("ReduceMean", ["x", "ax"], ["mu"], "mean", keepdims=1), node("Sub", ["x", "mu"], ["d"], "centre"),
                  node("Mul", ["d", "d"], ["s"], "square"), node("ReduceMean", ["s", "ax"], ["v"], "variance", keepdims=1),
                  node("Add", ["v", "eps"], ["e"], "eps_add"), node("Sqrt", ["e"], ["r"], "root"),
                  node("Div", ["d", "r"], ["y"], "normalize")],
                 [("x", T.FLOAT, ["N", 24])], [("y", T.FLOAT, ["N", 24])],
                 {"ax": np.array([1], np.int64), "eps": np.float32(epsilon)}), "normalize"


def huge_logits():
    """A product of two projections whose result passes bf16's (and fp32's) range."""
    return model([node("MatMul", ["x", "w1"], ["a"], "up"), node("Pow", ["a", "p"], ["b"], "power"),
                  node("MatMul", ["b", "w2"], ["y"], "down")],
                 [("x", T.FLOAT, ["N", 12])], [("y", T.FLOAT, ["N", 3])],
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


def held_epsilon():
    """The same with one that fp16 holds."""
    return tiny_epsilon(1e-3)


def gated_block():
    """A residual block as transformers have them: RMS norm by hand, a SiLU gate, products."""
    d, e = 24, 48
    return model([node("Mul", ["x", "x"], ["s"], "square"), node("ReduceMean", ["s", "ax"], ["v"], "mean", keepdims=1),
                  node("Add", ["v", "eps"], ["e"], "eps_add"), node("Sqrt", ["e"], ["r"], "root"),
                  node("Div", ["x", "r"], ["n"], "norm"), node("MatMul", ["n", "wg"], ["g"], "gate"),
                  node("Sigmoid", ["g"], ["z"], "sigmoid"), node("Mul", ["g", "z"], ["a"], "silu"),
                  node("MatMul", ["n", "wu"], ["u"], "up"), node("Mul", ["a", "u"], ["h"], "product"),
                  node("MatMul", ["h", "wd"], ["d"], "down"), node("Add", ["x", "d"], ["y"], "residual")],
                 [("x", T.FLOAT, ["N", d])], [("y", T.FLOAT, ["N", d])],
                 {"ax": np.array([-1], np.int64), "eps": np.float32(1e-3), "wg": w(d, e), "wu": w(d, e), "wd": w(e, d)}), None


def attention_block():
    """LayerNormalization, scaled scores with a mask, softmax, a residual sum."""
    d, n = 16, 8
    mask = np.triu(np.full((n, n), -1e4, np.float32), 1)
    return model([node("LayerNormalization", ["x", "g", "b"], ["l"], "norm"), node("MatMul", ["l", "wq"], ["q"], "q"),
                  node("MatMul", ["l", "wk"], ["k"], "k"), node("Transpose", ["k"], ["kt"], "kt", perm=[0, 2, 1]),
                  node("MatMul", ["q", "kt"], ["s"], "scores"), node("Mul", ["s", "scale"], ["t"], "scaled"),
                  node("Add", ["t", "mask"], ["m"], "masked"), node("Softmax", ["m"], ["p"], "softmax", axis=-1),
                  node("MatMul", ["p", "l"], ["o"], "mix"), node("Add", ["x", "o"], ["y"], "residual")],
                 [("x", T.FLOAT, ["N", n, d])], [("y", T.FLOAT, ["N", n, d])],
                 {"g": w(d), "b": w(d), "wq": w(d, d), "wk": w(d, d), "scale": np.float32(0.25), "mask": mask}), None


def batch_norm_net():
    """Convolution, BatchNormalization, ReLU, a residual sum, pooling, a layer."""
    c = 6
    return model([node("Conv", ["x", "w1"], ["a"], "conv1", pads=[1, 1, 1, 1]),
                  node("BatchNormalization", ["a", "g", "b", "m", "v"], ["n"], "bn"), node("Relu", ["n"], ["r"], "relu"),
                  node("Conv", ["r", "w2"], ["c"], "conv2", pads=[1, 1, 1, 1]), node("Add", ["c", "r"], ["s"], "residual"),
                  node("GlobalAveragePool", ["s"], ["p"], "pool"), node("Flatten", ["p"], ["f"], "flatten"),
                  node("Gemm", ["f", "w3"], ["y"], "fc", transB=1)],
                 [("x", T.FLOAT, ["N", 3, 5, 5])], [("y", T.FLOAT, ["N", 4])],
                 {"w1": w(c, 3, 3, 3), "g": w(c), "b": w(c), "m": w(c), "v": np.abs(w(c)) + 0.1, "w2": w(c, c, 3, 3, scale=0.3),
                  "w3": w(4, c, scale=5)}), None


INJECTED = [("conv_net", conv_net, "fp16", "-2:2"), ("mlp_exp", mlp_exp, "bf16", "-1:1"),
           ("square_sum", square_sum, "fp16", "-4:4"), ("cumsum_pool", cumsum_pool, "fp16", "-1:1"),
           ("fp8_attention", fp8_attention, "fp8e4m3", "-2:2"), ("residual_chain", residual_chain, "fp8e5m2", "-1:1"),
           ("tiny_epsilon", tiny_epsilon, "fp16", "-1:1"), ("huge_logits", huge_logits, "bf16", "-3:3"),
           ("int8_matmul", int8_matmul, "int8", "q=0:255"), ("int8_dynamic", int8_dynamic, "int8", "-1:1")]
CERTIFIED = [("conv_net", conv_net, "fp16"), ("mlp_exp", mlp_exp, "bf16"), ("square_sum", square_sum, "fp16"),
             ("cumsum_pool", cumsum_pool, "fp16"), ("fp8_attention", fp8_attention, "fp8e4m3"),
             ("residual_chain", residual_chain, "fp8e5m2"), ("held_epsilon", held_epsilon, "fp16"),
             ("huge_logits", huge_logits, "bf16"), ("gated_block", gated_block, "fp16"),
             ("attention_block", attention_block, "fp16"), ("batch_norm_net", batch_norm_net, "fp16"),
             ("batch_norm_net", batch_norm_net, "fp8e5m2")]


def audit(assay, path, precision, *options):
    out = subprocess.run([assay, "audit", str(path), *(["--precision", precision] if precision else []), "--json", "-",
                          *options], capture_output=True, text=True)
    if out.returncode not in (0, 1):
        raise RuntimeError(out.stderr)
    return json.loads(out.stdout)


def run(assay, path, precision, inputs):
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        np.savez(d / "in.npz", **inputs)
        subprocess.run([assay, "run", str(path), *(["--precision", precision] if precision else []), "--inputs",
                        str(d / "in.npz"), "-o", str(d / "out.npz")], check=True, capture_output=True)
        return dict(np.load(d / "out.npz"))


def opened(m, path):
    """The model with all inner values as outputs: an infinity need not reach the end."""
    m = onnx.shape_inference.infer_shapes(m)
    have = {o.name for o in m.graph.output}
    m.graph.output.extend(v for v in m.graph.value_info if v.name not in have)
    path = path.with_suffix(".opened.onnx")
    onnx.save(m, path)
    return path


def in_box(witness, box):
    lo, hi = map(float, box.rpartition("=")[2].split(":"))
    return all(x.min() >= lo and x.max() <= hi for x in witness.values())


def exact_sums(m, witness):
    weights = nh.to_array(m.graph.initializer[0]).astype(np.int64)
    x = next(iter(witness.values()))
    if x.dtype == np.uint8:
        return x.astype(np.int64) @ weights
    lo, hi = min(0.0, float(x.min())), max(0.0, float(x.max()))  # DynamicQuantizeLinear
    s = np.float32((np.float32(hi) - np.float32(lo)) / np.float32(255))
    z = int(np.clip(np.round(-lo / s), 0, 255))
    return (np.clip(np.round(x / s) + z, 0, 255).astype(np.int64) - z) @ weights


def breaks(assay, path, precision, witness, m, where):
    """Whether the injected node makes NaN or Inf of the witness, or a sum that is not the exact one."""
    outs = run(assay, opened(m, path), None if precision == "int8" else precision, witness)
    y = outs[next(n for n in m.graph.node if n.name == where).output[0]]
    if precision != "int8":
        return not np.isfinite(y).all()
    exact = exact_sums(m, witness)
    return bool(((np.abs(exact) > 2**31 - 1) & (y != exact)).any())


def injected(assay, folder):
    rows, good = [], 0
    for name, make, precision, box in INJECTED:
        m, where = make()
        path = folder / f"{name}.onnx"
        onnx.save(m, path)
        asked = None if precision == "int8" else precision
        start = time.time()
        told = audit(assay, path, asked, "--box", box, "--no-witness", "--no-radius")
        ahead = time.time() - start
        names = [x["node"] for x in told["hazards"]]
        found = audit(assay, path, asked, "--box", box, "--save-witness", str(folder / "witness.npz"))
        witness = dict(np.load(folder / "witness.npz")) if found["witness"] else None
        confirmed = witness is not None and in_box(witness, box) and breaks(assay, path, precision, witness, m, where)
        good += where in names and confirmed
        first = told["hazards"][0]["text"] if told["hazards"] else "-"
        rows.append(f"| {name} | {precision} | {box} | {where} | {names[0] if names else '-'}: {first} | {ahead:.2f} | "
                    f"{found['witness']['node'] if found['witness'] else '-'} | {'yes' if confirmed else 'NO'} |")
        print(rows[-1], flush=True)
    return rows, good


def batch(shape, r, n):
    """n inputs with |x| <= r: random, corners, all at one end, signs by row, constants."""
    x = R.uniform(-r, r, (n, *shape)).astype(np.float32)
    for i in range(n):
        kind = i % 6
        if kind == 1:
            x[i] = np.where(R.random(shape) < 0.5, -r, r)
        elif kind == 2:
            x[i] = -r if i % 12 < 6 else r
        elif kind == 3:
            x[i] = np.where(R.random((*shape[:-1], 1)) < 0.5, -r, r)
        elif kind == 4:
            x[i] = R.uniform(-r, r)
    end = np.float32(r) if float(np.float32(r)) <= r else np.nextafter(np.float32(r), np.float32(0))
    return np.clip(x, -end, end)


def certified(assay, folder, n):
    rows, good = [], 0
    for name, make, precision in CERTIFIED:
        m, _ = make()
        path = folder / f"{name}.onnx"
        onnx.save(m, path)
        told = audit(assay, path, precision, "--no-witness", "--box", "-1:1")
        r = told["safe"]["radius"]
        given = m.graph.input[0]
        shape = [d.dim_value for d in given.type.tensor_type.shape.dim][1:]
        inner, count, bad = opened(m, path), 0, 0
        while r and count < n:
            x = batch(shape, r, min(5000, n - count))
            bad += sum(int((~np.isfinite(v)).sum()) for v in run(assay, inner, precision, {given.name: x}).values())
            count += len(x)
        good += bool(r) and bad == 0
        rows.append(f"| {name} | {precision} | {r:.4g} | {count} | {bad} |")
        print(rows[-1], flush=True)
    return rows, good


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("assay")
    p.add_argument("out")
    p.add_argument("--inputs", type=int, default=100_000)
    p.add_argument("--machine", default="", help="what it ran on, for the page")
    a = p.parse_args()
    start = time.time()
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        rows, good = injected(a.assay, d)
        safe, unbroken = certified(a.assay, d, a.inputs)
    text = f"""# Ranges

`bench/ranges.py ASSAY OUT --inputs {a.inputs}`{', ' + a.machine if a.machine else ''}; {time.time() - start:.0f} s. {good} of {len(INJECTED)} injected
overflows announced before any run and produced by their witness; {unbroken} of {len(CERTIFIED)} certified boxes without NaN or Inf.

| model | format | box | injected in | announced first | seconds | witness breaks | run again: breaks |
| --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}

Inputs in the largest box that is called safe (random, corners, all at one end, rows of one sign, constants), all inner values
looked at:

| model | format | safe for abs(x) <= | inputs | NaN or Inf |
| --- | --- | --- | --- | --- |
{chr(10).join(safe)}
"""
    pathlib.Path(a.out).write_text(text)
    return 0 if good == len(INJECTED) and unbroken == len(CERTIFIED) else 1


if __name__ == "__main__":
    sys.exit(main())
