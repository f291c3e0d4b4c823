#!/usr/bin/env python3
"""Writes seeds for a fuzz target: make_corpus.py FOLDER onnx|npz|json."""
import io
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, parser

MODELS = [
    """<ir_version: 8, opset_import: ["" : 13]>
    g (float[N, 3] x, bool c) => (float[N, M] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> {
      h = MatMul(x, w)
      y = If(c) <then_branch = t () => (float[N, M] a) { a = Relu(h) },
                 else_branch = e () => (float[N, M] b) { b = LeakyRelu<alpha = 0.5>(h) }>
    }""",
    """<ir_version: 10, opset_import: ["" : 20, "local" : 1], metadata_props: ["a" : "b"]>
    g (float[4] x) => (float[4] y) { y = local.F<slope = 0.25>(x) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    F<slope>(a) => (b) { c = LeakyRelu<alpha: float = @slope>(a)  b = local.G(c) }
    <domain: "local", opset_import: ["" : 18]>
    G(a) => (b) { k = Constant<value_float = 2.0>()  b = Mul(a, k) }""",
    """<ir_version: 8, opset_import: ["" : 16]>
    g (int64 n, float[2] x) => (seq(float[2]) s, float[2] z) {
      e = SequenceEmpty()  s = SequenceInsert(e, x)  t = Constant<value = bool {1}>()
      z = Loop(n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u) { d = Identity(c)  u = Add(v, x) }>
    }""",
]


def models():
    for text in MODELS:
        yield parser.parse_model(text).SerializeToString()
    # Every element type, raw and in typed fields; sparse; strings; all kinds of attributes.
    tensors = []
    for kind in TensorProto.DataType.values():
        if kind == TensorProto.UNDEFINED:
            continue
        values = [b"a", b"bc"] if kind == TensorProto.STRING else [1, 0]
        tensors.append(helper.make_tensor(f"t{kind}", kind, [2], values))
    tensors.append(numpy_helper.from_array(np.arange(4, dtype=np.float32), "raw"))
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.array([1.5], np.float32), "sp"),
                                       numpy_helper.from_array(np.array([2], np.int64)), [5])
    node = helper.make_node("Any", ["raw", "", "sp"], ["y", "", "z"], name="n", domain="my", i=1, f=0.5, s="x", t=tensors[0],
                            fs=[1.0, 2.0], ints=[1, 2, 3], ss=["a", "b"], ts=tensors[:2],
                            tp=helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(1, [1, "N", None])))
    out = helper.make_value_info("y", helper.make_optional_type_proto(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))))
    graph = helper.make_graph([node], "g", [], [out], tensors, sparse_initializer=[sparse], doc_string="d")
    yield helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("my", 1)]).SerializeToString()


def archives():
    some = {"f": np.arange(6, dtype="<f4").reshape(2, 3), "b": np.array([1, 2], ">i8"), "s": np.array(["a", "é"]),
            "F": np.asfortranarray(np.ones((2, 3), np.float16)), "e": np.zeros((0, 2))}
    for save in (np.savez, np.savez_compressed):
        f = io.BytesIO()
        save(f, **some)
        yield f.getvalue()
    for a in some.values():
        f = io.BytesIO()
        np.save(f, a)
        yield f.getvalue()


def texts():
    yield b'{"schema": "assay.check/1", "outputs": [{"name": "y", "max_abs": 1.5e-3, "nan": 0, "x": null, "ok": true, "s": "inf"}]}'
    yield b'[1, -2, 3.25, "\\u00e9\\n", [[], {}]]'


def main(folder, name):
    os.makedirs(folder, exist_ok=True)
    for i, data in enumerate({"onnx": models, "npz": archives, "json": texts}[name]()):
        with open(f"{folder}/{i}", "wb") as f:
            f.write(data)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else __doc__)
