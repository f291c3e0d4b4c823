#!/usr/bin/env python3
"""assay certify: what is printed, what is written, what it says of other models, engines, inputs and damaged files.

    test_certify.py ASSAY MODELS

MODELS is tests/models/small.
"""
import os
import random
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from test_cli import INPUT, RANDOM, UNFAITHFUL, USAGE, Failures, assay, strict

HOLDS = r"^HOLDS  [^\n]* on {}: \d+ layers, each within its bound; truth as certified in {} values\n"

# Arguments ({m}: the models), exit code, pattern of the output, of the error.
ROWS = [
    ("certify", USAGE, "", "MODEL is missing; see 'assay certify -h'"),
    ("certify {m}/cnn.onnx", USAGE, "", "say -o FILE to make a certificate, or --verify FILE"),
    ("certify {m}/cnn.onnx -o a --verify b", USAGE, "", "say -o FILE to make a certificate, or --verify FILE"),
    ("certify {m}/cnn.onnx -o a --bits", USAGE, "", "--plan and --bits are for --verify"),
    ("certify {m}/cnn.onnx -o a --precision fp17", USAGE, "", "unknown precision 'fp17'"),
    ("certify {m}/cnn.onnx -o a --precision int8", USAGE, "", "needs a model with QuantizeLinear"),
    ("certify {m}/cnn.onnx -o a --target abacus", USAGE, "", "unknown target 'abacus'"),
    ("certify {m}/cnn.onnx -o a --threshold scores", USAGE, "", "threshold 'scores' is not OUTPUT:VALUE"),
    ("certify {m}/cnn.onnx -o a --threshold score:0.5", USAGE, "", r"no such output \(such as 'scores'\)"),
    ("certify {m}/nothing.onnx -o a", INPUT, "", "nothing.onnx': No such file"),
    ("certify {m}/cnn.onnx -o no/such/folder.cert", 4, "", "no/such/folder.cert"),
    ("certify {m}/cnn.onnx -o cnn.cert", 0,
     r"^CERTIFIED  [^\n]*cnn.onnx in fp32, as declared on emu: cnn.cert, \d+ bytes, \d+ % of the model\n"
     r"  values    13 of 13: truth in 4 numbers each, bounds, bits\n"
     r"  decides   'scores' \(largest of a row\): of 1 1 proven, 0 probable, 0 may flip\n$", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx", 0, HOLDS.format("emu", 13) + r"  bits      the same in all 13 values\n"
     r"  decides   'scores' \(largest of a row\): of 1 1 proven, 0 probable, 0 may flip; 0 flipped\n$", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --bits", 0, HOLDS.format("emu", 13), ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --target cpu", 0, HOLDS.format("cpu", 13) + "  decides", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --target cpu --unfused", 0, HOLDS.format("cpu", 13), ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --fused", 0, HOLDS.format("emu", 13), ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --target cpu --bits", USAGE, "", "--bits: .* made on another target"),
    ("certify --verify cnn.cert {m}/cnn.onnx --fused --bits", USAGE, "", "--bits: .* fused otherwise"),
    ("build {m}/cnn.onnx -o cnn.plan", 0, "^built", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --plan cnn.plan", 0, HOLDS.format("cnn.plan", 13), ""),
    ("build {m}/cnn.onnx -o half.plan --precision bf16", 0, "^built", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --plan half.plan", INPUT, "", "'half.plan' was built in bf16, the certificate is of fp32"),
    # A plan of another model is sound layer by layer.
    ("build other.onnx -o other.plan", 0, "^built", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --plan other.plan", UNFAITHFUL,
     r"^CHANGED  [^\n]*: the engine computes something else than the model, from here on: \w+ \(\w+\)[^\n]*\n  why       drift: off truth by ", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --plan cut.plan", INPUT, "", "cut.plan"),
    ("certify --verify cnn.cert {m}/cnn.onnx --plan cnn.plan --target cpu", USAGE, "", "nothing about building goes with it"),
    ("certify --verify cnn.cert {m}/cnn.onnx --precision fp16", USAGE, "", "are those of the certificate"),
    ("certify --verify cnn.cert {m}/cnn.onnx --max-size 4K", USAGE, "", "--threshold and --max-size are for making"),
    ("certify --verify nothing.cert {m}/cnn.onnx", INPUT, "", "'nothing.cert': No such file"),
    ("certify --verify {m}/cnn.onnx {m}/cnn.onnx", INPUT, "", "it is not a certificate: 'assay certify MODEL -o C' writes one"),
    ("certify --verify cnn.cert {m}/nothing.onnx", INPUT, "", "nothing.onnx': No such file"),
    # Faults: in their node, as more than rounding, and by bits where rounding could be it.
    ("certify --verify cnn.cert {m}/cnn.onnx --inject norm/mean:terms=2", UNFAITHFUL,
     r"^CHANGED  [^\n]*: the engine is at fault in norm/mean \(ReduceMean\)\n  why       fault: own error [0-9.e+]+ times the "
     r"guaranteed bound, in 1 of 1 elements\n(?s:.*)  note      bits: norm/mean \(ReduceMean\): other bits than certified; "
     r"(?s:.*)  next      assay check", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --inject conv:round=zero --bits", UNFAITHFUL,
     r"^CHANGED  [^\n]*: other bits from here on: conv \(Conv\)\n  why       bits: ", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --inject conv:round=zero", 0, r"(?s)^HOLDS .*note      bits: conv ", ""),
    ("certify --verify cnn.cert {m}/cnn.onnx --inject conv:tail=3 --fused", UNFAITHFUL, r"the engine is at fault in \w+ \(\w+\) and \d nodes in its layer", ""),
    # Another model: the node by truth; one with other values: that it is.
    ("certify --verify cnn.cert other.onnx", UNFAITHFUL,
     r"^CHANGED  [^\n]*: it is another model than the certified one\n  why       model: the same values by name, [^\n]*\n"
     r"  also      truth: bn \(BatchNormalization\): truth moved by [0-9.e+]+ times the error that was certified; \d+ values are so\n", ""),
    ("certify --verify cnn.cert {m}/loop.onnx", UNFAITHFUL, r"why       model: it has 3 values, the certified one 13\n", ""),
    # Inputs of a file.
    ("certify {m}/cnn.onnx -o given.cert -i image.npz --precision fp16", 0, r"(?s)^CERTIFIED .* overflow  4 values have NaN", ""),
    ("certify --verify given.cert {m}/cnn.onnx", USAGE, "", "'given.cert' was made of given inputs: give them with --inputs"),
    ("certify --verify given.cert {m}/cnn.onnx -i image.npz --bits", 0, "^HOLDS ", ""),
    ("certify --verify given.cert {m}/cnn.onnx -i moved.npz", UNFAITHFUL, "(?s)^CHANGED .*: the inputs are others than .*", ""),
    # Thresholds, shapes, seeds, other formats, control flow.
    ("certify {m}/cnn.onnx -o t.cert --threshold scores:0.25 --seed 3", 0, r"decides   'scores' > 0.25: of 5 \d", ""),
    ("certify --verify t.cert {m}/cnn.onnx --bits", 0, r"'scores' > 0.25: of 5 .*; 0 flipped", ""),
    ("certify {m}/external.onnx -o e.cert --shape x=3x16", 0, r"'y' \(largest of a row\): of 3 ", ""),
    ("certify --verify e.cert {m}/external.onnx --target cpu", 0, HOLDS.format("cpu", 6), ""),
    ("certify {m}/if_sequence.onnx -o i.cert --precision bf16", 0, "^CERTIFIED ", ""),
    ("certify --verify i.cert {m}/if_sequence.onnx --target cpu", 0, "^HOLDS ", ""),
    ("certify {m}/quantized.onnx -o q.cert --precision int8", 0, "^CERTIFIED ", ""),
    ("certify --verify q.cert {m}/quantized.onnx --target cpu", 0, "^HOLDS ", ""),
    ("certify {m}/cnn.onnx -o c.cert --target cpu", 0, "^CERTIFIED .* on cpu: ", ""),
    ("certify --verify c.cert {m}/cnn.onnx --bits", 0, r"^HOLDS .* on cpu: (?s:.*)  bits      the same in all \d+ values", ""),
    ("certify --verify c.cert {m}/cnn.onnx --target emu", 0, "^HOLDS .* on emu: ", ""),
    # A small one keeps every second, fourth, ... value.
    ("certify {m}/cnn.onnx -o small.cert --max-size 120", 0, r"  values    [2-7] of 13: truth in 1 number each, bits\n", ""),
    ("certify --verify small.cert other.onnx", UNFAITHFUL, r"truth: [^\n]* or before it from \w+ on: truth moved", ""),
    ("certify {m}/cnn.onnx -o tiny.cert --max-size 10", 0, r"  size      more than the 10 bytes that it was allowed\n", ""),
    ("certify --verify tiny.cert {m}/cnn.onnx", 0, "^HOLDS ", ""),
]


def write_files(models):
    image = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.savez("image.npz", image=image)
    np.savez("moved.npz", image=image + np.float32(0.5))
    model = onnx.load(f"{models}/cnn.onnx")
    node = next(n for n in model.graph.node if n.name == "bn")
    for a in list(node.attribute):
        if a.name == "epsilon":
            node.attribute.remove(a)
    node.attribute.append(h.make_attribute("epsilon", 0.5))
    onnx.save(model, "other.onnx")
    with open("cut.plan", "wb") as f:
        f.write(b"ASSAYPLN" + bytes(100))


def test_rows(program, models, failures):
    for line, code, out, err in ROWS:
        got, stdout, stderr = assay(program, *line.format(m=models).split())
        rest = "".join(l for l in stderr.splitlines(True) if not l.startswith(RANDOM))
        where = f"assay {line}: exit code {got}, output {stdout!r}, error {rest!r}"
        failures.check(got == code, f"{where}: exit code {code} expected")
        failures.check(re.search(out, stdout) if out else not stdout, f"{where}: output {out!r} expected")
        failures.check(re.search(err, rest) if err else not rest, f"{where}: error {err!r} expected")
        failures.check(stdout.count("\n") <= 15, f"{where}: more than 15 lines")
        failures.check("--verify" not in line or RANDOM not in stderr, f"{where}: warns of inputs that are the certificate's")


def test_json(program, models, failures):
    code, out, _ = assay(program, "certify", f"{models}/cnn.onnx", "-o", "j.cert", "--json", "-")
    j = strict(out)
    failures.check(code == 0 and j["schema"] == "assay.certify/1" and j["bytes"] == os.path.getsize("j.cert"), f"certify: {out}")
    failures.check(j["model_bytes"] == os.path.getsize(f"{models}/cnn.onnx"), f"certify: model_bytes {j['model_bytes']}")
    failures.check(j["decisions"][0]["grades"] == [2], f"certify: {j['decisions']}")
    code, out, _ = assay(program, "certify", "--verify", "j.cert", f"{models}/cnn.onnx", "--inject", "conv:tail=3", "--json", "-")
    j = strict(out)
    failures.check(code == 1 and j["schema"] == "assay.certify.verify/1" and j["verdict"] == "changed", f"verify: {out}")
    failures.check(j["guilty"]["what"] == "fault" and j["guilty"]["nodes"] == ["conv"] and j["guilty"] in j["found"], f"verify: {out}")
    failures.check({"values", "compared", "layers", "bits", "same_bits", "decisions", "seconds"} <= set(j), f"verify: {sorted(j)}")


def test_same_bytes(program, models, failures):
    """Certificates made twice are the same, for any number of threads."""
    made = []
    for threads in ("1", "2", "2"):
        assay(program, "certify", f"{models}/cnn.onnx", "-o", "s.cert", env=dict(os.environ, OMP_NUM_THREADS=threads))
        with open("s.cert", "rb") as f:
            made.append(f.read())
    failures.check(made[0] == made[1] == made[2], "certificates made twice differ")


def test_damaged(program, models, failures):
    """Any cut and any byte that differs: exit code 3, one line."""
    with open("cnn.cert", "rb") as f:
        whole = f.read()
    rng = random.Random(1)
    print("seed 1")
    for _ in range(60):
        at = rng.randrange(len(whole))
        cut = rng.random() < 0.3
        data = whole[:at] if cut else whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1:]
        with open("bad.cert", "wb") as f:
            f.write(data)
        code, out, err = assay(program, "certify", "--verify", "bad.cert", f"{models}/cnn.onnx")
        failures.check(code == INPUT and not out and re.fullmatch(r"assay: 'bad.cert': [^\n]+\n", err),
                       f"{'cut' if cut else 'byte'} at {at}: exit code {code}, {err!r}")


def rows_model():
    """Scores that fp16 cannot tell apart, and others that it can."""
    graph = h.make_graph([h.make_node("MatMul", ["x", "w"], ["y"], name="fc")], "g", [h.make_tensor_value_info("x", T.FLOAT, ["N", 2])],
                         [h.make_tensor_value_info("y", T.FLOAT, ["N", 2])], [nh.from_array(np.eye(2, dtype=np.float32), "w")])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), "rows.onnx")
    np.savez("rows.npz", x=np.array([[1, 0], [1, 1 + 2**-15], [0.5, 2], [3, 3.00001]], np.float32))


def test_decisions(program, failures):
    rows_model()
    code, out, err = assay(program, "certify", "rows.onnx", "-o", "r.cert", "--precision", "fp16", "-i", "rows.npz", "--json", "-")
    grades = strict(out)["decisions"][0]["grades"]
    failures.check(code == 0 and grades == [2, 0, 2, 0], f"decisions: {grades}, {err}")
    code, out, _ = assay(program, "certify", "--verify", "r.cert", "rows.onnx", "-i", "rows.npz", "--json", "-")
    d = strict(out)["decisions"][0]
    failures.check(code == 0 and d["flipped"] == 2 and d["flipped_stable"] == 0, f"decisions: {out}")
    # A fault that flips a stable one is told.
    code, out, _ = assay(program, "certify", "--verify", "r.cert", "rows.onnx", "-i", "rows.npz", "--inject", "fc:transpose=1",
                         "--json", "-")
    failures.check(code == 0, f"a transposed identity is the same: {out}")
    code, out, _ = assay(program, "certify", "--verify", "r.cert", "rows.onnx", "-i", "rows.npz", "--inject", "fc:add=1,1,9")
    failures.check(code == 1 and re.search(r"also      decision: .*of 'y', certified as stable, the first is number 0", out), out)


def main(program, models):
    program, models = os.path.abspath(program), os.path.abspath(models)
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files(models)
        test_rows(program, models, failures)
        test_json(program, models, failures)
        test_same_bytes(program, models, failures)
        test_damaged(program, models, failures)
        test_decisions(program, failures)
        os.chdir("/")
    print(f"{len(ROWS)} command lines, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
