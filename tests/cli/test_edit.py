#!/usr/bin/env python3
"""assay edit: what is printed, what is written, what other readers say of it.

    test_edit.py ASSAY MODELS

MODELS is tests/models/small.
"""
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from test_cli import FAILED, INPUT, UNFAITHFUL, USAGE, Failures, assay, strict

VERBS = "extract cast quantize broadcasts decompose assemble sanitize rename set".split()

# Arguments ({m}: the models), exit code, the whole output as a pattern, pattern of the error, operators of the file
# that is written (None: none is).
ROWS = [
    ("edit", USAGE, "", "'edit' needs a verb; 'assay edit -h' lists them", None),
    ("edit frobnicate", USAGE, "", "unknown verb 'edit frobnicate'", None),
    ("edit sanitize", USAGE, "", "MODEL is missing; see 'assay edit sanitize -h'", None),
    ("edit sanitize {m}/cnn.onnx", USAGE, "", "say where the model goes: --output FILE", None),
    ("edit sanitize {m}/nothing.onnx -o out.onnx", INPUT, "", "No such file", None),
    ("edit sanitize {m}/cnn.onnx -o no/such/folder.onnx", FAILED, "", "--output 'no/such/folder.onnx' cannot be written", None),
    ("edit extract {m}/cnn.onnx -o out.onnx", USAGE, "", "say where to cut: --from VALUE, --to VALUE, or --nodes", None),
    ("edit extract {m}/cnn.onnx -o out.onnx --to scoers", USAGE, "", "no value 'scoers'; did you mean 'scores'", None),
    ("edit extract {m}/loop.onnx -o out.onnx --to nothing", USAGE, "", "--to: the model has no value 'nothing'", None),
    ("edit extract acts.onnx -o out.onnx --from a --to c", 0,
     "UNCHANGED  acts.onnx: truth unchanged: largest difference 0 of [0-9.]+, 1 sample\n"
     "  edit       extract: nodes kept 2\n"
     "  wrote      out.onnx   2 nodes, were 4; 0 constants, were 1\n", "", "Mish Gelu"),
    ("edit extract acts.onnx -o out.onnx --nodes second --nodes third", 0, "(?s)UNCHANGED .*nodes kept 2.*", "", "Mish Gelu"),
    ("edit extract acts.onnx -o out.onnx --nodes secnod", USAGE, "", "--nodes: 'secnod' matches no node; did you mean 'second'", None),
    ("edit decompose acts.onnx -o out.onnx --op Mish", 0,
     "UNCHANGED  acts.onnx: truth unchanged: largest difference [0-9.e-]+ of [0-9.]+, 1 sample\n"
     "  edit       decompose: Mish 1\n(  'y'.*\n)?"
     "  wrote      out.onnx   6 nodes, were 4; 1 constants, were 1\n", "", "Elu Softplus Tanh Mul Gelu Mul"),
    ("edit decompose acts.onnx -o out.onnx", 0,
     "ROUNDED  acts.onnx: truth moved by no more than rounding explains: largest difference [0-9.e-]+ of [0-9.]+, 1 sample\n"
     "  edit       decompose: Mish 1, Elu 1, Gelu 1\n"
     "  'y'   largest difference [0-9.e-]+ of [0-9.]+, SNR 1[4-9][0-9.]+ dB; RMS [0-9.e-]+ where one rounding of each value "
     "gives [0-9.e-]+\n"
     "  wrote      out.onnx   14 nodes, were 4; 6 constants, were 1\n", "",
     "Relu Min Exp Sub Add Softplus Tanh Mul Div Erf Add Mul Mul Mul"),
    ("edit decompose acts.onnx -o out.onnx --op Conv", USAGE, "", "'Conv' cannot be written out; there are Mish", None),
    ("edit assemble apart.onnx -o out.onnx", 0, "(?s)UNCHANGED .*assemble: Mish 1\n.*has no Swish.*", "", "Mish"),
    ("edit broadcasts acts.onnx -o out.onnx", 0, "(?s)UNCHANGED .*broadcasts: operands 1\n.*", "", "Elu Mish Gelu Expand Mul"),
    ("edit cast {m}/cnn.onnx -o out.onnx --to fp16", UNFAITHFUL,
     "(?s)CHANGED .*not written out.onnx: the edit moves more than it may; --force .*", "", None),
    ("edit cast {m}/cnn.onnx -o out.onnx --to fp16 --not-nodes norm/*", 0, "(?s)ROUNDED .*as stored: .*wrote .*", "", ""),
    ("edit cast {m}/cnn.onnx -o out.onnx --to fp17", USAGE, "", "--to 'fp17': values can be cast to fp16, bf16 and fp32", None),
    ("edit cast {m}/if_sequence.onnx -o out.onnx --to fp16", 0, "(?s)(ROUNDED|UNCHANGED) .*wrote .*", "", ""),
    ("edit quantize {m}/cnn.onnx -o out.onnx", 0,
     "(?s)CHANGED .*quantize: activations 2, weights 2\n.*without quantizers: largest difference [0-9.e-]+ of .*", "", ""),
    ("edit quantize {m}/cnn.onnx -o out.onnx --calibrator entropy", 0, "(?s)CHANGED .*quantize: activations 2, weights 2\n.*", "", ""),
    ("edit quantize {m}/cnn.onnx -o out.onnx --calibrator frob", USAGE, "", "--calibrator 'frob' is none of minmax, entropy and percentile", None),
    ("edit quantize {m}/cnn.onnx -o out.onnx --calibrator minmax --percentile 99", USAGE, "",
     "--percentile is of --calibrator percentile, not minmax", None),
    ("edit quantize {m}/cnn.onnx -o out.onnx --percentile 101", USAGE, "", "--percentile 101: it is above 0, and 100 at most", None),
    ("edit quantize {m}/cnn.onnx -o out.onnx --format fp8", FAILED, "",
     "quantizers to fp8 need operator set 19, and the model imports 17: export it anew .*'assay edit set MODEL --opset 19'", None),
    ("edit quantize {m}/cnn.onnx -o out.onnx --format fp9", USAGE, "", "--format 'fp9': values can be quantized to int8, fp8 and int4", None),
    ("edit quantize product.onnx -o out.onnx --format fp8 --calibrator entropy", 0,
     "(?s)CHANGED .*activations 1, weights 1\n.*without quantizers: largest difference .*", "",
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul"),
    ("edit quantize product.onnx -o out.onnx --format int4", 0, "(?s)CHANGED .*quantize: weights 1\n.*", "",
     "QuantizeLinear DequantizeLinear MatMul"),
    ("edit sanitize coded.onnx -o out.onnx --store-codes", 0, "(?s)UNCHANGED .*sanitize: weights stored as codes 1.*", "", "DequantizeLinear MatMul"),
    ("edit sanitize coded.onnx -o out.onnx", 0, "(?s)UNCHANGED .*", "", "QuantizeLinear DequantizeLinear MatMul"),
    ("edit quantize product.onnx -o out.onnx --calib nothing.cache", INPUT, "", "'nothing.cache': No such file", None),
    ("edit sanitize {m}/cnn.onnx -o out.onnx --input-shape picture=1", INPUT, "", "the model has no input 'picture'", None),
    ("edit quantize product.onnx -o out.onnx --format int4 --calib scales.cache", USAGE, "",
     "the scales of a calibration cache are those of int8", None),
    ("edit quantize product.onnx -o out.onnx -i bad.npz", FAILED, "",
     "calibrating: node 'mm' \\(MatMul\\): of its input 'x' 2 of 1536 elements are NaN or infinite in sample 1, .*--not-nodes", None),
    ("edit sanitize called.onnx -o out.onnx", 0, "(?s)UNCHANGED .*calls of 1 functions were replaced by their bodies.*", "",
     "Tanh Mul Relu Tanh Mul"),
    ("edit extract called.onnx -o out.onnx --from b", 0, "(?s)UNCHANGED .*nodes kept 1.*", "", "Twist"),
    ("edit rename called.onnx -o out.onnx --value b=middle", 0, "(?s)UNCHANGED .*rename: value 1.*", "", "Twist Relu Twist"),
    ("edit rename {m}/external.onnx -o out.onnx --dim n=batch", 0, r"(?s)UNCHANGED .*2 samples \(n=2; n=1\).*", "", ""),
    ("edit rename {m}/cnn.onnx -o out.onnx --value image=scores", USAGE, "", "a value of that name is there", None),
    ("edit set {m}/cnn.onnx -o out.onnx --shape image=Nx3x8x8", 0, "(?s)UNCHANGED .*set: shapes 1.*", "", ""),
    ("edit set acts.onnx -o out.onnx --nodes first --attr alpha=0.5", 0, "(?s)CHANGED .*set: attributes 1.*wrote.*", "", "Elu Mish Gelu Mul"),
    ("edit set acts.onnx -o out.onnx --nodes first --attr beta=0.5", USAGE, "", "the operator has no attribute 'beta'", None),
    ("edit set acts.onnx -o out.onnx --type x=float16 --type y=double", 0, "(?s)UNCHANGED .*set: types 2.*", "", "Cast Elu Mish Gelu Mul Cast"),
    ("edit sanitize {m}/loop.onnx -o out.onnx -i nothing.npz", INPUT, "", "'nothing.npz': No such file", None),
    ("edit sanitize acts.onnx -o out.onnx --no-proof", 0, "(?s)NOT PROVEN  acts.onnx: not verified [(]--no-proof[)]\n.*wrote.*", "",
     "Elu Mish Gelu Mul"),
    ("edit sanitize unknown.onnx -o out.onnx", FAILED, "(?s)NOT PROVEN .*not written out.onnx: the proof could not be had; --no-proof .*", "", None),
    ("edit rename unknown.onnx -o out.onnx --value x=z --no-proof", 0, "(?s)NOT PROVEN .*wrote.*", "", "Frobnicate"),
    ("edit sanitize far.onnx -o out.onnx --all", 0, "(?s)UNCHANGED .*", "", "Relu Add"),
]


def info(name, shape, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, shape)


def save(name, nodes, inputs, outputs, constants=(), functions=(), opset=20, domains=()):
    graph = h.make_graph(nodes, "g", inputs, outputs, [nh.from_array(v, k) for k, v in constants])
    imports = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    onnx.save(h.make_model(graph, opset_imports=imports, ir_version=9, functions=list(functions)), name)


def write_files():
    n = h.make_node
    x, y = [info("x", [2, 3])], [info("y", [2, 3])]
    save("acts.onnx", [n("Elu", ["x"], ["a"], "first"), n("Mish", ["a"], ["b"], "second"), n("Gelu", ["b"], ["c"], "third"),
                       n("Mul", ["c", "w"], ["y"], "last")], x, y, [("w", np.arange(3, dtype=np.float32))])
    save("apart.onnx", [n("Softplus", ["x"], ["a"]), n("Tanh", ["a"], ["b"]), n("Mul", ["x", "b"], ["y"])], x, y)
    twist = h.make_function("own", "Twist", ["p"], ["q"], [n("Tanh", ["p"], ["t"]), n("Mul", ["p", "t"], ["q"])],
                            [h.make_opsetid("", 20)])
    save("called.onnx", [n("Twist", ["x"], ["a"], domain="own"), n("Relu", ["a"], ["b"]), n("Twist", ["b"], ["y"], domain="own")],
         x, y, functions=[twist], domains=["own"])
    save("unknown.onnx", [n("Frobnicate", ["x"], ["y"], domain="own")], x, y, domains=["own"])
    w = np.random.default_rng(4).standard_normal((32, 5)).astype(np.float32)
    save("product.onnx", [n("MatMul", ["x", "w"], ["y"], "mm")], [info("x", [48, 32])], [info("y", [48, 5])], [("w", w)], opset=21)
    blocks = [n(f"{op}Linear", [x, "s", "z"], [y], axis=0, block_size=16) for op, x, y in (("Quantize", "w", "q"), ("Dequantize", "q", "d"))]
    save("coded.onnx", [*blocks, n("MatMul", ["x", "d"], ["y"])], [info("x", [48, 32])], [info("y", [48, 5])],
         [("w", w), ("s", np.full((2, 5), 0.25, np.float32))], opset=21)
    coded = onnx.load("coded.onnx")
    coded.graph.initializer.append(h.make_tensor("z", T.INT4, [2, 5], bytes(5), raw=True))
    onnx.save(coded, "coded.onnx")
    bad = np.ones((3, 48, 32), np.float32)
    bad[1, 3, 4:6] = np.nan, np.inf
    np.savez("bad.npz", x=bad)
    with open("scales.cache", "w") as f:
        f.write("TRT-100100-EntropyCalibration2\nx: 3c010a14\n")
    save("far.onnx", [n("Identity", ["x"], ["a"]), n("Relu", ["a"], ["b"]), n("Dropout", ["b"], ["c"]), n("Add", ["c", "w"], ["y"])],
         [info("x", ["N", 3])], [info("y", ["N", 3])], [("w", np.ones(3, np.float32))])


def test_rows(program, models, failures):
    for line, code, out, err, operators in ROWS:
        if os.path.exists("out.onnx"):
            os.unlink("out.onnx")
        got, stdout, stderr = assay(program, *line.format(m=models).split())
        where = f"assay {line}: exit code {got}, output {stdout!r}, error {stderr!r}"
        failures.check(got == code, f"{where}: exit code {code} expected")
        failures.check(re.fullmatch(out, stdout), f"{where}: output {out!r} expected")
        failures.check(re.search(err, stderr) if err else not stderr, f"{where}: error {err!r} expected")
        failures.check(len(stdout.splitlines()) <= 15, f"{where}: more than 15 lines")
        if code >= USAGE and not out:
            failures.check(re.fullmatch(r"(assay: the inputs are not finite: [^\n]+\n)?assay: [^\n]+\n", stderr), f"{where}: one line expected")
        failures.check((operators is not None) == os.path.exists("out.onnx"), f"{where}: a file is there or not")
        if operators is None or not os.path.exists("out.onnx"):
            continue
        m = onnx.load("out.onnx")
        if "Frobnicate" not in operators:
            onnx.checker.check_model(m, full_check=True)
        if operators:
            failures.check(" ".join(n.op_type for n in m.graph.node) == operators,
                           f"{where}: {[n.op_type for n in m.graph.node]}, {operators} expected")


def test_help(program, failures):
    listed = assay(program, "edit", "-h")[1]
    for verb in VERBS:
        code, out, err = assay(program, "edit", verb, "-h")
        failures.check(code == 0 and not err and f"  assay edit {verb} " in out, f"assay edit {verb} -h: {code}, {err!r}")
        failures.check(max(map(len, out.splitlines())) <= 100, f"assay edit {verb} -h has lines past 100 columns")
        failures.check(re.search(rf"\n  {verb} +\w", listed), f"assay edit -h has no {verb}")


def test_json(program, models, failures):
    where = "assay edit decompose --json -"
    code, out, _ = assay(program, "edit", "decompose", "acts.onnx", "-o", "out.onnx", "--json", "-")
    j = strict(out)
    failures.check(code == 0 and j["schema"] == "assay.edit/1" and j["verdict"] == "rounded" and j["kept_promise"], f"{where}: {j}")
    failures.check(j["outputs"][0]["name"] == "y" and j["outputs"][0]["truth"]["same_shape"] and j["file"] == "out.onnx", f"{where}: {j}")
    failures.check(0 < j["outputs"][0]["truth"]["largest"] < 1e-5 * j["outputs"][0]["truth"]["scale"], f"{where}: {j}")
    code, out, _ = assay(program, "edit", "cast", f"{models}/cnn.onnx", "--to", "fp16", "--json", "-")
    j = strict(out)
    failures.check(code == UNFAITHFUL and not j["kept_promise"] and j["file"] is None and "stored" in j["outputs"][0], f"cast: {j}")


def test_given_inputs(program, failures):
    """Samples of the user's are the proof's, all of them."""
    np.savez("given.npz", x=np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32))
    code, out, err = assay(program, "edit", "decompose", "acts.onnx", "-o", "out.onnx", "-i", "given.npz")
    failures.check(code == 0 and ", 3 samples" in out, f"three samples: {code}, {out!r}, {err!r}")


def entropy_range(x):
    """As in Migacz, "8-bit Inference with TensorRT", written out: bins of a power of two, 2049 to 4096 of them."""
    x = np.abs(x[x != 0].astype(np.float64))
    width = 2.0 ** (np.frexp(x.max())[1] - 12)
    bins = np.bincount((x / width).astype(int)).astype(float)
    best = None
    for k in range(128, len(bins) + 1):
        edges = np.arange(129) * k // 128
        level = np.repeat(np.arange(128), np.diff(edges))
        spread = np.add.reduceat(bins[:k], edges[:-1]) / np.maximum(np.add.reduceat(bins[:k] > 0, edges[:-1], dtype=int), 1)
        p, q, clipped = bins[:k].copy(), np.where(bins[:k] > 0, spread[level], 0), bins[k:].sum()
        if clipped and not q[-1]:
            q[-1] = 0.5
        p[-1] += clipped
        p, q = p[p > 0] / p.sum(), q[p > 0] / q.sum()
        divergence = (p * np.log(p / q)).sum()
        if best is None or divergence <= best[0]:
            best = divergence, k
    return min((best[1] + 0.5) * width, x.max())


def test_calibrators(program, failures):
    """Ranges over all samples, as NumPy has them; the same for any order of the samples and any number of threads."""
    x = np.random.default_rng(5).standard_normal((40, 48, 32)).astype(np.float32)
    x[17, 3, 3] = -60
    np.savez("samples.npz", x=x)
    np.savez("backwards.npz", x=x[::-1])
    expected = {"minmax": 60, "entropy": entropy_range(x), "percentile": np.quantile(np.abs(x), 0.9999),
                "percentile --percentile 90": np.quantile(np.abs(x), 0.9)}
    was = os.environ.get("OMP_NUM_THREADS", "2")
    for way, most in expected.items():
        files = []
        for given, threads in (("samples", "1"), ("backwards", "3")):
            os.environ["OMP_NUM_THREADS"] = threads
            code, out, err = assay(program, "edit", "quantize", "product.onnx", "-o", f"{given}.onnx", "-i", f"{given}.npz", "--no-proof",
                                   "--calibrator", *way.split())
            failures.check(code == 0, f"--calibrator {way}: {code}, {out!r}, {err!r}")
            files.append(open(f"{given}.onnx", "rb").read())
        failures.check(files[0] == files[1], f"--calibrator {way}: other bits for another order or number of threads")
        scale = [nh.to_array(i) for i in onnx.load("samples.onnx").graph.initializer if i.name == "x_scale"][0]
        failures.check(abs(127 * scale - most) < most / 120, f"--calibrator {way}: range {127 * scale}, expected {most}")
        if way == "entropy":
            failures.check(scale == np.float32(most / 127) and 3.5 < most < 5, f"entropy: {scale}, expected {np.float32(most / 127)}")
    os.environ["OMP_NUM_THREADS"] = was


def test_external(program, failures):
    """Data that lay beside the model lie beside the edited one; the original's stay as they are."""
    w = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    save("beside.onnx", [h.make_node("MatMul", ["x", "w"], ["a"]), h.make_node("Identity", ["a"], ["b"]),
                         h.make_node("Relu", ["b"], ["y"])], [info("x", [2, 64])], [info("y", [2, 64])], [("w", w)])
    onnx.save_model(onnx.load("beside.onnx"), "beside.onnx", save_as_external_data=True, location="beside.data", size_threshold=1)
    with open("beside.data", "rb") as f:
        was = f.read()
    for target in ("cleaned.onnx", "beside.onnx"):  # at last in its own place
        code, out, err = assay(program, "edit", "sanitize", "beside.onnx", "-o", target)
        failures.check(code == 0, f"external data, {target}: {code}, {out!r}, {err!r}")
        m = onnx.load(target, load_external_data=False)
        where = {e.key: e.value for e in m.graph.initializer[0].external_data}
        failures.check(where["location"] == target + ".data", f"external data, {target}: {where}")
        failures.check(np.array_equal(nh.to_array(onnx.load(target).graph.initializer[0]), w), f"external data, {target}: other elements")
    with open("beside.data", "rb") as f:
        failures.check(f.read() == was, "the original's data changed")


def main(program, models):
    program, models = os.path.abspath(program), os.path.abspath(models)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files()
        test_rows(program, models, failures)
        test_help(program, failures)
        test_json(program, models, failures)
        test_given_inputs(program, failures)
        test_calibrators(program, failures)
        test_external(program, failures)
        os.chdir("/")
    print(f"{len(ROWS)} command lines, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
