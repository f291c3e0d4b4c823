#!/usr/bin/env python3
"""`assay audit` on the command line: test_audit.py ASSAY

A row is a small model, a format, a box, and what must be said of it: the verdict, the node that is told first, and between
which numbers the largest safe |x| lies. Where the verdict is 'overflow' the witness is run again; where a safe box is told,
corners and random inputs of it are. Further rows are broadcasts, baked batch sizes, constants and operators.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

R = np.random.default_rng(5)


def build(text, inputs, constants=(), outputs=("y",), opset=18, domains=()):
    """Lines 'name: op in,in -> out,out key=value'; inputs {name: shape}; constants {name: array}."""
    nodes = []
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, rest = line.split(": ", 1)
        op, ins, _, outs, *attrs = rest.split(" ")
        domain, _, op = op.rpartition("|")
        kw = {k: json.loads(v) for k, v in (a.split("=") for a in attrs)}
        nodes.append(h.make_node(op, [x.replace("~", "") for x in ins.split(",")], outs.split(","), name=name, domain=domain, **kw))
    shaped = [h.make_tensor_value_info(k, t, s) for k, (t, s) in
              ((k, v if isinstance(v, tuple) else (T.FLOAT, v)) for k, v in inputs.items())]
    graph = h.make_graph(nodes, "g", shaped, [h.make_empty_tensor_value_info(o) for o in outputs],
                         [nh.from_array(np.asarray(v), k) for k, v in dict(constants).items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset), *(h.make_opsetid(d, 1) for d in domains)], ir_version=9)


f = np.float32
RANGES = [
    # name, model, format, box, verdict, node, least and most safe |x| (None: not asked)
    ("linear", build("m: MatMul x,w -> y", {"x": [1, 2]}, {"w": f([[100, 0], [0, -300]])}), "fp16", "-1000:1000",
     "overflow", "m", (200, 219)),
    ("signs", build("m: MatMul x,w -> y", {"x": [1, 64]}, {"w": f(R.choice([-1, 1], (64, 1)) * 32)}), "fp16", "-100:100",
     "overflow", "m", (31, 32.1)),
    ("cancels", build("a: Add x,k -> a\ns: Sub a,x -> y", {"x": [1, 8]}, {"k": f(1)}), "fp16", "-60000:60000", "safe", None,
     (60000, 65504)),
    ("residual", build("a: MatMul x,w -> a\nb: Sub x,a -> b\nc: MatMul b,v -> y", {"x": [1, 4]},
                       {"w": f(np.eye(4) * 0.5), "v": f(np.eye(4) * 100)}), "fp16", "-100:100", "safe", None, (1200, 1311)),
    ("layer norm", build("n: LayerNormalization x,g,b -> y", {"x": [3, 16]}, {"g": f([1000] * 16), "b": f([5] * 16)}), "fp16",
     "-60000:60000", "safe", None, (65000, 65504)),
    ("norm by hand", build("m: ReduceMean x,ax -> m\nd: Sub x,m -> d\ns: Mul d,d -> s\nv: ReduceMean s,ax -> v\n"
                           "e: Add v,eps -> e\nr: Sqrt e -> r\nq: Div d,r -> q\nz: Mul q,k -> y", {"x": [2, 32]},
                           {"ax": np.int64([1]), "eps": f(1e-3), "k": f(5000)}), "fp16", "-50:50", "safe", None, (100, 256)),
    ("lost epsilon", build("m: ReduceMean x,ax -> m\nd: Sub x,m -> d\ns: Mul d,d -> s\nv: ReduceMean s,ax -> v\n"
                           "e: Add v,eps -> e\nr: Sqrt e -> r\nq: Div d,r -> y", {"x": [2, 32]},
                           {"ax": np.int64([1]), "eps": f(1e-9)}), "fp16", "-1:1", "overflow", "q", (0, 0)),
    ("softmax", build("m: Mul x,k -> a\ns: Softmax a -> y", {"x": [2, 9]}, {"k": f(100)}), "fp16", "-500:500", "safe", None,
     (600, 656)),
    ("softmax by hand", build("m: ReduceMax x -> m\nd: Sub x,m -> d\ne: Exp d -> e\ns: ReduceSum e -> s\nq: Div e,s -> y",
                              {"x": [1, 9]}), "fp16", "-1000:1000", "safe", None, (30000, 65504)),
    ("exp", build("e: Exp x -> y", {"x": [4]}), "fp16", "-20:20", "overflow", "e", (10.8, 11.1)),
    ("exp bf16", build("e: Exp x -> y", {"x": [4]}), "bf16", "-80:80", "safe", None, (86, 88.8)),
    ("silu", build("s: Sigmoid x -> s\nm: Mul x,s -> m\na: Sqrt b -> y\nb: Add m,k -> b".replace("a: Sqrt b -> y\nb: Add m,k -> b",
                   "b: Add m,k -> b\na: Sqrt b -> y"), {"x": [7]}, {"k": f(0.3)}), "fp32", "-50:50", "safe", None, None),
    ("log", build("l: Log x -> y", {"x": [4]}), "fp32", "-1:3", "overflow", "l", None),
    ("divisor", build("s: Sub x,k -> s\nd: Div k,s -> y", {"x": [4]}, {"k": f(0.5)}), "fp16", "0:1", "overflow", "d", None),
    ("fp8", build("a: Add x,x -> a\nb: Add a,a -> y", {"x": [5]}), "fp8e4m3", "-200:200", "overflow", "b", (100, 116.1)),
    ("cumsum", build("c: CumSum x,ax -> y", {"x": [1, 1000]}, {"ax": np.int64(1)}), "fp16", "-100:100", "overflow", "c", (63, 65.6)),
    ("relu chain", build("a: MatMul x,w -> a\nr: Relu a -> r\nb: MatMul r,w -> b\nq: Relu b -> q\nc: MatMul q,w -> y", {"x": [1, 8]},
                         {"w": f(R.standard_normal((8, 8)) * 10)}), "fp16", "-100:100", "overflow", None, None),
    ("cast", build("c: Cast x -> y to=3", {"x": [4]}), "fp32", "-200:100", "overflow", "c", None),
    ("embedding", build("g: Gather w,i -> g\nm: Mul g,k -> y", {"i": (T.INT64, [1, 6])},
                        {"w": f(np.arange(40).reshape(10, 4)), "k": f(2000)}), "fp16", None, "overflow", "m", None),
    ("int8 sums", build("m: MatMulInteger q,w -> y", {"q": (T.UINT8, [1, 90000])},
                        {"w": np.full((90000, 1), -100, np.int8)}), None, "q=0:255", "overflow", "m", None),
    ("mask", build("a: Add x,k -> a\ns: Softmax a -> y", {"x": [2, 3]}, {"k": f([0, -3.4e38, -1e9])}), "fp16", "-5:5", "safe", None, None),
    ("loop", build("t: Mul x,k -> a\nb: Mul a,k -> y", {"x": [3]}, {"k": f(10)}), "fp16", "-10:10", "safe", None, (640, 656)),
]


def run(assay, *args):
    return subprocess.run([assay, *map(str, args)], capture_output=True, text=True)


def audit(assay, path, *args):
    r = run(assay, "audit", path, "--json", "-", *args)
    if r.returncode not in (0, 1):
        raise AssertionError(r.stderr)
    return json.loads(r.stdout), r.returncode


def is_broken(assay, path, precision, inputs, at):
    """Whether what node `at` makes is not finite (or, of integers, wrong) on these inputs."""
    m = onnx.load(path)
    node = next(n for n in m.graph.node if n.name == at)
    del m.graph.output[:]
    m.graph.output.append(h.make_empty_tensor_value_info(node.output[0]))
    onnx.save(m, "inner.onnx")
    np.savez("inner.npz", **inputs)
    r = run(assay, "run", "inner.onnx", "--precision", precision or "fp32", "-i", "inner.npz", "-o", "out.npz")
    assert not r.returncode, r.stderr
    y = next(iter(np.load("out.npz").values()))
    if y.dtype.kind == "f":
        return not np.isfinite(y).all()
    if node.op_type == "Cast":
        return bool((np.abs(np.trunc(next(iter(inputs.values())))) > 127).any())
    w = nh.to_array(m.graph.initializer[0]).astype(np.int64)
    return bool(np.abs(inputs["q"].astype(np.int64) @ w).max() > 2**31 - 1)


def check_ranges(assay, name, m, precision, box, verdict, node, safe):
    onnx.save(m, "m.onnx")
    options = (["--precision", precision] if precision else []) + (["--box", box] if box else [])
    told, code = audit(assay, "m.onnx", *options, "--save-witness", "w.npz", "--search-time", 10)
    assert told["schema"] == "assay.audit/1"
    assert told["verdict"] == verdict, f"verdict {told['verdict']}, hazards {[x['text'] for x in told['hazards']]}"
    assert code == (verdict != "safe")
    if node:
        assert told["hazards"][0]["node"] == node, told["hazards"][0]
    if verdict == "overflow":
        assert is_broken(assay, "m.onnx", precision, dict(np.load("w.npz")), told["witness"]["node"]), "the witness breaks nothing"
    if safe is not None:
        r = told["safe"]["radius"]
        r = told["safe"]["scale"] * max(abs(float(x)) for x in box.split(":")) if r is None else r
        assert safe[0] <= r <= safe[1], f"safe for |x| <= {r}"
        shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in m.graph.input}
        for k in range(12 if r else 0):
            x = {n: (R.uniform(-r, r, s) if k % 3 else R.choice([-r, r], s)).astype(f) for n, s in shapes.items()}
            np.savez("x.npz", **{n: np.clip(v, -np.nextafter(f(r), f(0)), np.nextafter(f(r), f(0))) for n, v in x.items()})
            p = run(assay, "run", "m.onnx", "--precision", precision, "-i", "x.npz", "-o", "y.npz")
            assert not p.returncode, p.stderr
            assert all(np.isfinite(v).all() for v in np.load("y.npz").values()), "NaN or Inf in a box that is called safe"


def only(rows, **wanted):
    return [r for r in rows if all(r[k] == v for k, v in wanted.items())]


def check_others(assay):
    b = build("a: Add x,c -> a\no: Mul row,col -> o\nz: Squeeze a -> z\nr: Reshape x,s -> y", {"x": ["N", 4, 1], "row": [1, 5], "col": [7, 1]},
              {"c": f(np.zeros((2, 4, 1))), "s": np.int64([1, -1])}, outputs=("y", "z", "o"))
    onnx.save(b, "b.onnx")
    told, _ = audit(assay, "b.onnx", "--no-radius", "--batch", 2)
    assert only(told["broadcasts"], node="o", input=0, both=True) and only(told["broadcasts"], node="o", input=1, both=True)
    assert only(told["baked"], node="r", kind="reshape", size=1, silent=True)
    assert only(told["baked"], node="a", kind="constant", size=2, silent=False)
    assert only(told["baked"], node="z", kind="squeeze", silent=True)

    c = build("e: Add x,eps -> e\nd: Div one,e -> d\nm: Add d,mask -> m\ns: Softmax m -> y", {"x": [2, 3]},
              {"eps": f(1e-8), "one": f(1), "mask": f([0, -3.4e38, 0])})
    onnx.save(c, "c.onnx")
    told, _ = audit(assay, "c.onnx", "--precision", "fp16", "--no-radius", "--box", "0:1")
    eps, = only(told["constants"], value="eps")
    mask, = only(told["constants"], value="mask")
    assert eps["becomes"] == "0" and eps["matters"] and "'d'" in eps["why"], eps
    assert mask["becomes"] == "infinity" and mask["past"] == 1 and not mask["matters"], mask
    told, _ = audit(assay, "c.onnx", "--precision", "bf16", "--no-radius", "--box", "0:1")
    assert not only(told["constants"], value="eps"), told["constants"]

    o = build("u: com.example|Strange x -> u\nh: Det u2 -> h\na: Add u,x -> y", {"x": [2, 2], "u2": [3, 3]}, outputs=("y", "h"),
              domains=("com.example",))
    onnx.save(o, "o.onnx")
    told, code = audit(assay, "o.onnx", "--no-radius")
    assert only(told["operators"], node="u", emu="no", cpu="no", tensorrt="no")
    assert only(told["operators"], node="h", emu="yes", cpu="emulated", tensorrt="no")
    assert only(told["operators"], node="a", emu="yes", tensorrt="yes")
    assert only(told["hazards"], node="u", kind="not known") and code == 1

    # Restrictions of TensorRT's list: which of these nodes are past one.
    r = build("p1: AveragePool x -> a kernel_shape=[2,2]\np2: AveragePool x -> b kernel_shape=[2,2] dilations=[2,2]\n"
              "p3: MaxPool x -> c,i kernel_shape=[2,2]\nr1: Resize x,~,s -> d mode=\"linear\"\nr2: Resize x,~,s -> e mode=\"cubic\"\n"
              "r3: Resize x,~,s -> f coordinate_transformation_mode=\"half_pixel_symmetric\"\nt1: TopK x,k -> g,h\n"
              "t2: TopK x,k -> j,l sorted=0\nq1: QuantizeLinear x,one,z -> m\nq2: QuantizeLinear x,one,z0 -> n\n"
              "u1: ReduceSum x,ax -> o\nu2: ReduceSum x,open -> q\ns1: ScatterND x,at,up -> t reduction=\"add\"\n"
              "s2: ScatterND x,at,up -> u", {"x": [1, 1, 4, 4], "open": (T.INT64, [1]), "up": [1, 1, 4, 4]},
              {"s": f([1, 1, 2, 2]), "k": np.int64([2]), "one": f(1), "z": np.uint8(3), "z0": np.int8(0), "ax": np.int64([1]),
               "at": np.int64([[0]])}, outputs=tuple("abcdefgjmnoqtu"), opset=19)
    onnx.save(r, "r.onnx")
    told, _ = audit(assay, "r.onnx", "--no-radius", "--no-witness")
    past = {x["node"] for x in told["operators"] if x["tensorrt"] == "restricted"}
    assert past == {"p2", "p3", "r2", "r3", "t2", "q1", "u2", "s1"}, past


def check_usage(assay):
    for args, code, says in [(["audit"], 2, "MODEL is missing"), (["audit", "c.onnx", "--box", "z=1:2"], 2, "no such input"),
                             (["audit", "c.onnx", "--box", "x=2:1"], 2, "is not NAME=LO:HI"),
                             (["audit", "c.onnx", "--precision", "fp17"], 2, "unknown precision"),
                             (["audit", "none.onnx"], 3, "none.onnx")]:
        r = run(assay, *args)
        assert r.returncode == code and says in r.stderr, (args, r.returncode, r.stderr)
    r = run(assay, "audit", "c.onnx", "--precision", "fp16", "--all")
    assert r.stdout.startswith(("UNSAFE", "MAY OVERFLOW")) and "[-1, 1]   (assumed" in r.stdout, r.stdout


def main(assay):
    assay = os.path.abspath(assay)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for row in RANGES:
            try:
                check_ranges(assay, *row)
            except AssertionError as e:
                wrong += 1
                print(f"{row[0]}: {e}")
        for check in (check_others, check_usage):
            try:
                check(assay)
            except AssertionError as e:
                wrong += 1
                import traceback
                traceback.print_exc()
        os.chdir("/")
    print(f"{len(RANGES)} models, {wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
