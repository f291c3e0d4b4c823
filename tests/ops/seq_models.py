#!/usr/bin/env python3
"""Models with control flow and sequences: writes each as an operator test and has Assay run them all.

    seq_models.py ASSAY

A row is a model in ONNX's text form, its inputs, and its outputs (computed here) or a part of the error.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

HEAD = '<ir_version: 8, opset_import: ["" : %d]>\n'


def f(*shape):
    return (np.arange(np.prod(shape), dtype=np.float32) * 0.5 - 1).reshape(shape)


def i64(x):
    return np.array(x, np.int64)


def scan_model(in_axis, out_axis, reverse):
    return f"""g (float[2] s0, float[3,3,2] x, float[3,3,2] z) => (float[2] s, float[] o, float[] p) {{
      axes = Constant<value = int64[1] {{0}}>()
      s, o, p = Scan<num_scan_inputs=2, scan_input_axes=[{in_axis},0], scan_output_axes=[{out_axis},0],
                     scan_input_directions=[{reverse},{1 - reverse}], scan_output_directions=[{reverse},0],
                     body = b (float[2] si, float[3,2] e, float[3,2] h) => (float[2] so, float[3,2] oo, float[2] po) {{
          m = ReduceSum<keepdims=0>(e, axes)
          so = Add(si, m)
          oo = Mul(e, h)
          po = Identity(so) }}>(s0, x, z)
    }}"""


def scan_expected(in_axis, out_axis, reverse, s, x, z):
    xs, zs = list(np.moveaxis(x, in_axis, 0)), list(z)
    (xs if reverse else zs).reverse()
    o, p = [], []
    for e, h in zip(xs, zs):
        s = s + e.sum(0)
        o.append(e * h)
        p.append(s)
    return [s, np.stack(o[::-1] if reverse else o, out_axis), np.stack(p)]


def rows():
    x = f(4)
    grow = """g (int64 M, float[N] x) => (float[K] y, float[T,N] s) {
      c = Constant<value = bool {1}>()
      y, s = Loop(M, c, x)<body = b (int64 i, bool ci, float[A] st) => (bool co, float[B] so, float[N] sc) {
          co = Identity(ci)
          so = Concat<axis=0>(st, x)
          sc = Add(x, x) }>
    }"""
    yield "loop_grow", 18, grow, [i64(3), x], [np.tile(x, 4), np.stack([x + x] * 3)]
    yield "loop_never_entered", 18, grow, [i64(-5), x], [x, np.zeros((0, 4), np.float32)]
    doubles = """g (int64 M, bool c, float x) => (float y, int64[T] s) {
      limit = Constant<value = float {50.0}>()
      y, s = Loop(%s)<body = b (int64 i, bool ci, float st) => (bool co, float so, int64 sc) {
          so = Add(st, st)
          co = Less(so, limit)
          sc = Identity(i) }>
    }"""
    yes, no = np.array(True), np.array(False)
    yield "loop_while", 18, doubles % ", c, x", [i64(0), yes, np.array(1.5, np.float32)], [
        np.array(96, np.float32), i64(range(6))]
    yield "loop_while_false", 18, doubles % ", c, x", [i64(0), no, np.array(1.5, np.float32)], [
        np.array(1.5, np.float32), i64([])]
    yield "loop_condition_before_count", 18, doubles % "M, c, x", [i64(2**62), yes, np.array(1.5, np.float32)], [
        np.array(96, np.float32), i64(range(6))]
    # Without a condition that goes in, the one that comes out does not count.
    yield "loop_condition_ignored", 18, doubles % "M, , x", [i64(8), yes, np.array(1.5, np.float32)], [
        np.array(384, np.float32), i64(range(8))]
    yield "loop_too_long", 18, doubles % "M, , x", [i64(2**62), yes, np.array(1.5, np.float32)], "iterations are the most"
    yield "loop_endless", 18, doubles % ", , x", [i64(1), yes, np.array(1.5, np.float32)], "never ends"
    yield "loop_does_not_end", 18, """g (bool c, float x) => (float y) {
      y = Loop(, c, x)<body = b (int64 i, bool ci, float st) => (bool co, float so) {
          co = Identity(ci)
          so = Identity(st) }>
    }""", [yes, np.array(1.5, np.float32)], "never to end"
    yield "loop_explodes", 18, """g (int64 M, int64[1] x) => (int64[1] y, float[] s) {
      million = Constant<value = int64[1] {1000000}>()
      y, s = Loop(M, , x)<body = b (int64 i, bool ci, int64[1] st) => (bool co, int64[1] so, float[] sc) {
          co = Identity(ci)
          so = Mul(st, million)
          sc = ConstantOfShape(so) }>
    }""", [i64(3), i64([1])], "out of memory"
    yield "loop_scan_changes", 18, """g (int64 M, float[1] x) => (float[] y, float[] s) {
      y, s = Loop(M, , x)<body = b (int64 i, bool ci, float[] st) => (bool co, float[] so, float[] sc) {
          co = Identity(ci)
          so = Concat<axis=0>(st, st)
          sc = Identity(st) }>
    }""", [i64(3), f(1)], "must not change"
    yield "loop_nested", 18, """g (int64 M, float[2] x) => (float[2] y, float[T,2] s) {
      y, s = Loop(M, , x)<body = b (int64 i, bool ci, float[2] st) => (bool co, float[2] so, float[2] sc) {
          co = Identity(ci)
          so = Loop(i, , st)<body = b2 (int64 j, bool cj, float[2] t) => (bool ck, float[2] u) {
              ck = Identity(cj)
              n = Cast<to=1>(j)
              v = Add(t, n)
              u = Add(v, x) }>
          sc = Identity(so) }>
    }""", [i64(4), f(2)], nested(4, f(2))
    yield "loop_strings", 20, """g (int64 M, string[2] x) => (string[2] y, string[T,2] s) {
      y, s = Loop(M, , x)<body = b (int64 i, bool ci, string[2] st) => (bool co, string[2] so, string[2] sc) {
          co = Identity(ci)
          so = StringConcat(st, x)
          sc = Identity(st) }>
    }""", [i64(6), np.array(["a", "bc"], object)], [
        np.array(["a" * 7, "bc" * 7], object), np.array([["a" * k, "bc" * k] for k in range(1, 7)], object)]
    yield "loop_sequence", 18, """g (int64 M, float[2] x) => (float[] y, int64 n) {
      s0 = SequenceEmpty<dtype=1>()
      s = Loop(M, , s0)<body = b (int64 i, bool ci, seq(float[]) st) => (bool co, seq(float[]) so) {
          co = Identity(ci)
          n = Cast<to=1>(i)
          v = Add(x, n)
          so = SequenceInsert(st, v) }>
      y = ConcatFromSequence<axis=-1, new_axis=1>(s)
      n = SequenceLength(s)
    }""", [i64(3), f(2)], [np.stack([f(2) + k for k in range(3)], -1), i64(3)]
    branch = """g (bool c, float[2,3] x) => (float[] y) {
      axes = Constant<value = int64[1] {0}>()
      y = If(c)<then_branch = t () => (float[2,3] a) { a = Add(x, x) },
                else_branch = e () => (float[3] b) { b = ReduceSum<keepdims=0>(x, axes) }>
    }"""
    yield "if_then", 18, branch, [yes, f(2, 3)], [f(2, 3) * 2]
    yield "if_else", 18, branch, [no, f(2, 3)], [f(2, 3).sum(0)]
    # The branch that a constant condition never takes may be wrong.
    yield "if_dead_branch", 18, """g (float[2,3] x) => (float[6] y) {
      c = Constant<value = bool {1}>()
      s6 = Constant<value = int64[1] {6}>()
      s7 = Constant<value = int64[1] {7}>()
      y = If(c)<then_branch = t () => (float[6] a) { a = Reshape(x, s6) },
                else_branch = e () => (float[7] b) { b = Reshape(x, s7) }>
    }""", [f(2, 3)], [f(6)]
    for axes in ((0, 0), (1, 1), (-2, -1), (0, -2)):
        for reverse in (0, 1):
            a = [f(2), f(3, 3, 2), f(3, 3, 2) + 1]
            yield f"scan_{axes[0]}_{axes[1]}_{reverse}", 18, scan_model(*axes, reverse), a, scan_expected(*axes, reverse, *a)
    yield "scan9_negative_axis", 9, """g (float[2] s0, float[3,2] x) => (float[2] s, float[] o) {
      s, o = Scan<num_scan_inputs=1, scan_input_axes=[-2], body = b (float[2] si, float[2] e) => (float[2] so, float[2] oo) {
          so = Add(si, e)
          oo = Identity(so) }>(s0, x)
    }""", [f(2), f(3, 2)], "negative axes came with opset 11"
    yield "scan_lengths_differ", 18, scan_model(0, 0, 0).replace("float[3,3,2] z", "float[N,3,2] z"), [
        f(2), f(3, 3, 2), f(2, 3, 2)], "as length of axis 0"
    yield "scan_empty", 18, """g (float[3] s0, float[N,3] x) => (float[3] s, float[M,3] o) {
      s, o = Scan<num_scan_inputs=1, body = b (float[3] si, float[3] e) => (float[3] so, float[3] oo) {
          so = Add(si, e)
          oo = Identity(so) }>(s0, x)
    }""", [f(3), np.zeros((0, 3), np.float32)], [f(3), np.zeros((0, 3), np.float32)]
    lens = """g (int64[2] lens, float[2,3] s0, float[2,4,3] x) => (float[2,3] s, float[2,4,3] o) {
      s, o = Scan<num_scan_inputs=1, directions=[1], body = b (float[3] si, float[3] e) => (float[3] so, float[3] oo) {
          so = Add(si, e)
          oo = Identity(so) }>(lens, s0, x)
    }"""
    yield "scan8_lengths", 8, lens, [i64([2, 4]), f(2, 3), f(2, 4, 3)], scan8([2, 4], f(2, 3), f(2, 4, 3))
    yield "scan8_too_long", 8, lens, [i64([2, 5]), f(2, 3), f(2, 4, 3)], "sequence_lens[1] is 5"
    sequence = """g (float[N] a, float[M] b, int64 p) => (float[] y, int64 n, float[] z) {
      s = SequenceConstruct(a, b)
      t = SequenceInsert(s, b, p)
      u = SequenceErase(t, p)
      y = SequenceAt(u, p)
      n = SequenceLength(t)
      z = ConcatFromSequence<axis=-1>(t)
    }"""
    a, b = f(2), f(3) + 7
    yield "sequence", 18, sequence, [a, b, i64(-2)], [b, i64(3), np.concatenate([b, a, b])]
    yield "sequence_position", 18, sequence, [a, b, i64(3)], "position 3 is outside [-2, 2]"
    for name, split, keepdims, at, y in (("none", "", 0, -1, f(4, 7)[:, 6]), ("keep", "", 1, 0, f(4, 7)[:, :1]),
                                         ("three", ", k", 0, -1, f(4, 7)[:, 6:])):
        yield f"split_{name}", 18, f"""g (float[4,7] x, int64 k) => (float[] y) {{
          s = SplitToSequence<axis=1, keepdims={keepdims}>(x{split})
          p = Constant<value = int64 {{{at}}}>()
          y = SequenceAt(s, p)
        }}""", [f(4, 7), i64(3)], [y]
    lengths = """g (float[4,7] x, int64[3] k, int64 p) => (float[] y, int64 n) {
      s = SplitToSequence<axis=-1>(x, k)
      y = SequenceAt(s, p)
      n = SequenceLength(s)
    }"""
    yield "split_lengths", 18, lengths, [f(4, 7), i64([3, 0, 4]), i64(2)], [f(4, 7)[:, 3:], i64(3)]
    yield "split_wrong_sum", 18, lengths, [f(4, 7), i64([3, 0, 5]), i64(2)], "add up to 7"
    yield "split_negative", 18, lengths, [f(4, 7), i64([-3, 6, 4]), i64(2)], "negative entry"


def of_kinds():
    """One operator each, whose inputs or outputs are sequences and maps: (name, model, inputs, outputs)."""
    kinds = {
        "seq": helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
        "map": helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, ())),
        "words": helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, ())),
        "float": helper.make_tensor_type_proto(TensorProto.FLOAT, None),
    }
    kinds["maps"] = helper.make_sequence_type_proto(kinds["words"])

    def model(op, domain, inputs, outputs, **attrs):
        value = lambda name, kind: helper.make_value_info(name, kinds[kind])
        ins, outs = ([f"{c}{k}" for k in range(len(v))] for c, v in (("x", inputs), ("y", outputs)))
        graph = helper.make_graph([helper.make_node(op, ins, outs, domain=domain, **attrs)], "g",
                                  list(map(value, ins, inputs)), list(map(value, outs, outputs)))
        return helper.make_model(graph, ir_version=8,
                                 opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)])

    numbers = {9: np.float32(2), 3: np.float32(1.5)}
    words = {"b": np.float32(2), "a": np.float32(1)}
    yield "concat_from_file", model("ConcatFromSequence", "", ["seq"], ["float"], axis=0), [[f(2), f(3)]], [
        np.concatenate([f(2), f(3)])]
    yield "cast_map", model("CastMap", "ai.onnx.ml", ["map"], ["float"]), [numbers], [
        np.array([[1.5, 2]], np.float32)]
    yield "cast_map_sparse", model("CastMap", "ai.onnx.ml", ["map"], ["float"], map_form="SPARSE", max_map=4), [
        {3: np.float32(1.5)}], [np.array([[0, 0, 0, 1.5]], np.float32)]
    yield "cast_map_outside", model("CastMap", "ai.onnx.ml", ["map"], ["float"], map_form="SPARSE", max_map=4), [
        numbers], "key 9 is outside"
    yield "dict_vectorizer", model("DictVectorizer", "ai.onnx.ml", ["words"], ["float"],
                                   string_vocabulary=["a", "c", "b"]), [words], [np.array([1, 0, 2], np.float32)]
    yield "dict_unknown", model("DictVectorizer", "ai.onnx.ml", ["words"], ["float"],
                                string_vocabulary=["a", "c"]), [words], "the vocabulary lacks"
    yield "zip_map", model("ZipMap", "ai.onnx.ml", ["float"], ["maps"], classlabels_strings=["a", "b"]), [f(2, 2)], [
        [{"a": np.float32(-1), "b": np.float32(-0.5)}, {"a": np.float32(0), "b": np.float32(0.5)}]]


def nested(m, x):
    s, y = [], x
    for i in range(m):
        for j in range(i):
            y = y + j + x
        s.append(y)
    return [y.astype(np.float32), np.stack(s).astype(np.float32)]


def scan8(lens, s, x):
    out, states = np.zeros_like(x), s.copy()
    for b, n in enumerate(lens):
        for t in range(n):
            states[b] = states[b] + x[b, n - 1 - t]
            out[b, t] = states[b]
    return [states, out]


def to_proto(x):
    if isinstance(x, dict):
        keys = list(x)
        proto = onnx.MapProto(key_type=TensorProto.STRING if isinstance(keys[0], str) else TensorProto.INT64)
        if isinstance(keys[0], str):
            proto.string_keys.extend(k.encode() for k in keys)
        else:
            proto.keys.extend(keys)
        values = numpy_helper.from_list([np.array(v) for v in x.values()])
        proto.values.CopyFrom(values)
        return proto
    if isinstance(x, list):
        if not isinstance(x[0], dict):
            return numpy_helper.from_list(x)
        proto = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
        proto.map_values.extend(map(to_proto, x))
        return proto
    return numpy_helper.from_array(x)


def write(folder, name, model, inputs, outputs):
    case = os.path.join(folder, "test_" + name.replace("-", "m"))
    os.makedirs(os.path.join(case, "test_data_set_0"))
    onnx.save(model, os.path.join(case, "model.onnx"))
    for kind, values in (("input", inputs), ("output", outputs)):
        for k, x in enumerate(values):
            with open(os.path.join(case, "test_data_set_0", f"{kind}_{k}.pb"), "wb") as file:
                file.write(to_proto(x).SerializeToString())
    return os.path.basename(case)


def main(assay):
    with tempfile.TemporaryDirectory() as folder:
        errors = {}
        models = [(name, parser.parse_model(HEAD % opset + text), inputs, outputs)
                  for name, opset, text, inputs, outputs in rows()]
        for name, model, inputs, outputs in models + list(of_kinds()):
            failing = isinstance(outputs, str)
            case = write(folder, name, model, inputs, [] if failing else outputs)
            errors[case] = outputs if failing else None
        results = os.path.join(folder, "results.json")
        run = subprocess.run([assay, "conformance", folder, "--json", results, "--timeout", "900"], stdout=subprocess.PIPE, text=True)
        if run.returncode not in (0, 1):
            sys.exit(f"assay conformance ended with exit code {run.returncode}\n{run.stdout}")
        with open(results, encoding="utf-8") as file:
            found = {name.split("/")[-1]: case for name, case in json.load(file)["cases"].items()}
    wrong = 0
    for case, error in errors.items():
        result = found.get(case, {"status": "missing", "why": ""})
        good = result["status"] == "passed" if error is None else error in (result.get("why") or "")
        if not good:
            print(f"FAIL {case}: {result['status']} {result.get('why')}; expected {error or 'to pass'}")
        wrong += not good
    print(f"{len(errors)} models, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
