#!/usr/bin/env python3
"""Writes seeds for a fuzz target.

    make_corpus.py FOLDER onnx|run|cpu|value|npz|json|plan|part|cache|certificate|safetensors|saved|accuracy|torch|text|trtexec [CASES [MODELS [K/N]]]

CASES is what scripts/make_cases.py writes: from there come small models (run: with their inputs made
initializers) and values (value). MODELS is a folder of models: tests/ops/test_agree writes some for every operator row.
"""
import base64
import glob
import io
import json
import os
import sys
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

MAX_BYTES = 6000

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
    yield everything().SerializeToString()


def everything():
    """A valid model that uses what the others leave out."""
    def info(name, *dims):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims, doc_string="d", shape_denotation=["DATA_BATCH"] * len(dims))

    outside = TensorProto(name="outside", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "data.bin"), ("offset", "16"), ("length", "16"), ("checksum", "0")):
        outside.external_data.add(key=key, value=value)
    values = numpy_helper.from_array(np.array([1, 2], np.float32), "sparse")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([[0, 1], [1, 2]])), [2, 4])
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"b", b"a"])
    body = helper.make_graph([helper.make_node("Add", ["a", "e"], ["s"]), helper.make_node("Identity", ["s"], ["scan"])],
                             "body", [info("a", 4), info("e", 4)], [info("s", 4), info("scan", 4)])
    nodes = [
        helper.make_node("Add", ["x", "outside"], ["h"], name="add", doc_string="sum"),
        helper.make_node("Add", ["h", "sparse"], ["k"], name="sparse_add"),
        helper.make_node("Constant", [], ["c"], sparse_value=sparse),
        helper.make_node("Scan", ["h0", "k"], ["last", "all"], body=body, num_scan_inputs=1, name="scan"),
        helper.make_node("Constant", [], ["h0"], value_floats=[1.0, 2.0, 3.0, 4.0]),
        helper.make_node("Unique", ["words"], ["u", "", "", "count"], sorted=1),
        helper.make_node("F", ["all"], ["y"], domain="local", slope=0.5),
        helper.make_node("ZipMap", ["all"], ["zipped"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3, 4]),
    ]
    nodes[3], nodes[4] = nodes[4], nodes[3]
    graph = helper.make_graph(nodes, "everything", [info("x", "N", 4)],
                              [info("y", None, 4), helper.make_tensor_value_info("u", TensorProto.STRING, [None]),
                               helper.make_tensor_value_info("count", TensorProto.INT64, [None])],
                              [outside, words], doc_string="graph", sparse_initializer=[sparse], value_info=[info("h", "N", 4)])
    note = graph.quantization_annotation.add(tensor_name="h")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="outside")
    graph.metadata_props.add(key="graph", value="1")
    graph.node[0].metadata_props.add(key="node", value="2")
    function = helper.make_function("local", "F", ["a"], ["b"],
                                    [helper.make_node("LeakyRelu", ["a"], ["b"])], [helper.make_opsetid("", 20)], ["alpha"])
    function.node[0].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    function.ClearField("attribute")
    function.attribute_proto.append(helper.make_attribute("slope", 0.25))
    function.value_info.append(info("b", "N", 4))
    model = helper.make_model(graph, functions=[function], ir_version=10, producer_name="p", producer_version="1", domain="d",
                              model_version=3, doc_string="model",
                              opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("local", 1), helper.make_opsetid("ai.onnx.ml", 3)])
    model.training_info.add(algorithm=helper.make_graph([], "train", [], []))
    return model


def cases(folder):
    """Folders of operator tests with small models."""
    for path in sorted(glob.glob(f"{folder}/*/*/model.onnx")):
        if os.path.getsize(path) <= MAX_BYTES:
            yield os.path.dirname(path)


def with_inputs(case):
    """A case's model with the inputs of its first data set as initializers; None if it would be large."""
    model = onnx.load(f"{case}/model.onnx", load_external_data=False)
    constant = {t.name for t in model.graph.initializer}
    left = []
    for i, info in enumerate(v for v in model.graph.input if v.name not in constant):
        path = f"{case}/test_data_set_0/input_{i}.pb"
        if info.type.WhichOneof("value") != "tensor_type" or not os.path.exists(path) or os.path.getsize(path) > 2000:
            left.append(info)
            continue
        tensor = onnx.load_tensor(path)
        tensor.name = info.name
        model.graph.initializer.append(tensor)
    del model.graph.input[:]
    model.graph.input.extend(left)
    data = model.SerializeToString()
    return data if len(data) <= MAX_BYTES else None


def runs(folder, more=None):
    yield everything().SerializeToString()
    for text in MODELS:
        yield parser.parse_model(text).SerializeToString()
    for i, case in enumerate(cases(folder)):
        data = with_inputs(case)
        if data is None or i % 4 == 0:
            with open(f"{case}/model.onnx", "rb") as f:
                data = f.read()
        yield data
    for path in sorted(glob.glob(f"{more}/*.onnx")) if more else ():
        if os.path.getsize(path) <= MAX_BYTES:
            with open(path, "rb") as f:
                yield f.read()


def values(folder):
    for i, case in enumerate(cases(folder)):
        for path in sorted(glob.glob(f"{case}/test_data_set_0/*.pb")):
            kinds = any(word in case for word in ("sequence", "optional", "map", "string", "text", "int4", "float8", "bfloat"))
            if os.path.getsize(path) <= 300 and (kinds or i % 20 == 0):
                with open(path, "rb") as f:
                    yield f.read()
    tensor = numpy_helper.from_array(np.arange(3.0), "t")
    sequence = onnx.SequenceProto(name="s", elem_type=onnx.SequenceProto.TENSOR, tensor_values=[tensor, tensor])
    yield sequence.SerializeToString()
    yield onnx.SequenceProto(elem_type=onnx.SequenceProto.SEQUENCE, sequence_values=[sequence]).SerializeToString()
    yield onnx.OptionalProto(name="o", elem_type=onnx.OptionalProto.SEQUENCE, sequence_value=sequence).SerializeToString()
    yield onnx.OptionalProto(elem_type=onnx.OptionalProto.TENSOR, tensor_value=tensor).SerializeToString()
    numbers = onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR, tensor_values=[tensor] * 2)
    yield onnx.MapProto(key_type=TensorProto.INT64, keys=[1, 2], values=numbers).SerializeToString()
    yield onnx.MapProto(key_type=TensorProto.STRING, string_keys=[b"a", b"b"], values=numbers).SerializeToString()


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


def certificates():
    """As src/certify/certificate_file.c writes them; the target makes the checksum fit."""
    text = lambda s: bytes([len(s)]) + s.encode()
    for flags, sketches, bits, stride in ((0b11000, 4, 4, 1), (0b10100, 1, 2, 1), (0, 1, 1, 4)):
        out = b"ASCT\x01" + bytes(8)
        out += b"".join(map(text, ("0.2.0", "fp16", "*:fp32", "x=1x2;y=3", "tight", "cpu")))
        out += bytes([flags, 7]) + (b"inputs##" if flags & 4 else b"") + b"model###" + b"\x90\x4e" + b"mach" + b"name"
        out += bytes([9, sketches, bits, stride])
        for i in range(8, -1, -stride):
            out += (b"nm" if flags & 8 else b"") + bytes([120 + i]) + (b"b" if flags & 16 else b"")
            out += b"\xff\x81\x03" * sketches + b"bits"[:bits]
        out += b"\x02\x01\x02\x03\x04"
        out += b"\x03" + b"\x00\x02\x05hash\x0d\x09" + b"\x00\x03" + bytes(8) + b"\x04hash\x12" + b"\x01\x00\x06hash\x01\x02\x03"
        yield out


def plans():
    """Numbers of networks: the target makes their plans, which are those of its build and machine."""
    for number in range(48):
        yield bytes([number])
    # With room for what becomes of them: libFuzzer lets inputs be as long as the longest seed.
    yield bytes([48]) + bytes(1 << 18)


def networks(cases_folder, models_folder):
    """Numbers of networks, which the target draws, and models of single operators."""
    for number in range(64):
        yield number.to_bytes(4, "little")
    yield from runs(cases_folder, models_folder)


def caches():
    """Numbers of networks, and what a cache begins with; the target has the times of its own machine."""
    for number in range(16):
        yield bytes([number]) + b"assay timing cache 1\nno machine\n"
    yield bytes([0]) + b"assay timing cache 1\nx86-64\n12.5 assay.conv fp32[1,3,4,4]\n" + b"1e3 assay.conv fp32[1]\n" * 700


def safetensors():
    for names in ({"a": ("F32", [2, 3]), "b": ("U8", [5]), "c": ("BF16", [])}, {"e": ("I64", [0])}, {}):
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for name, (dtype, shape) in names.items():
            size = int(np.prod(shape, dtype=int)) * {"F32": 4, "U8": 1, "BF16": 2, "I64": 8}[dtype]
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        yield len(text).to_bytes(8, "little") + text + bytes(range(at))


def npy(a):
    f = io.BytesIO()
    np.save(f, a)
    return f.getvalue()


def saved():
    array = {"array": base64.b64encode(npy(np.array([1.5, -2], np.float32))).decode(), "polygraphy_class": "ndarray"}
    lazy = {"values": array, "polygraphy_class": "LazyArray"}
    tensor = {"tensor": base64.b64encode(next(torch())).decode(), "polygraphy_class": "Tensor"}
    old = {"array": npy(np.array(3)).decode("latin-1"), "__polygraphy_encoded_ndarray": "polygraphy_serialized_json_type"}
    yield json.dumps([{"x": array}, {"x": array}]).encode()
    yield json.dumps({"lst": [["r", [{"outputs": {"y": lazy}}]]], "polygraphy_class": "RunResults"}).encode()
    yield json.dumps({"x": tensor, "y": old}).encode()
    yield b'[{"name": "y", "dimensions": "2x1", "values": [1.5, nan]}]'


def accuracy():
    fields = {f"{s}_{k}diff": 0.5 for s in ("max", "mean", "median", "quantile") for k in ("abs", "rel")}
    simple = {**fields, "thresholds": {"check_error_stat": "mean", "atol": 1, "rtol": 1e-05, "polygraphy_class": "SimpleThreshold"},
              "passed": None, "polygraphy_class": "OutputCompareResult"}
    l2 = {"l2_norm": float("nan"), "thresholds": {"threshold": 1e-05, "polygraphy_class": "L2Threshold"}, "polygraphy_class": "L2Result"}
    for aggregation in ("per_sample", "average"):
        yield json.dumps({"lst": [{"lst": [[["A", "B"], [{"y": r}, {"y": r}]]], "aggregation": aggregation, "polygraphy_class": "AccuracyResult"}
                                  for r in (simple, l2)], "polygraphy_class": "AccuracyResults"}).encode()


# torch.save of two bfloat16 numbers, as its pickle.
PICKLE = (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00((X\x07\x00\x00\x00storageq\x01ctorch\nBFloat16Storage\nq\x02"
          b"X\x01\x00\x00\x000q\x03X\x03\x00\x00\x00cpuq\x04K\x02tq\x05QK\x00K\x02\x85q\x06K\x01\x85q\x07\x89ccollections\nOrderedDict\n"
          b"q\x08)Rq\ttq\nRq\x0b.")


def torch():
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        for name, data in (("data.pkl", PICKLE), ("byteorder", b"little"), ("data/0", b"\xc0\x3f\x00\xc0"), ("version", b"3\n")):
            z.writestr(f"archive/{name}", data)
    yield f.getvalue()
    yield PICKLE
    yield PICKLE.replace(b"ctorch\nBFloat16Storage", b"ctorch\nUntypedStorage").replace(b"_v2", b"_v3").replace(
        b"q\ttq", b"q\tctorch\nfloat8_e5m2\ntq")
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "io", "torch_files")
    for path in sorted(glob.glob(os.path.join(folder, "*.pt"))):
        with open(path, "rb") as f:
            yield f.read()


def text():
    yield b"# rows\n1.5 -2e3,inf\n0x1p3 nan 7\n"
    yield b"1 -128 3.0e+00\t18446744073709551615"


def trtexec():
    lines = ("--onnx=m.onnx\n--fp16\n--minShapes=x:1x3\n--maxShapes=x:8x3\n--memPoolSize=workspace:0.5G,dlaSRAM:1\n--percentile=50,99.9",
             "--onnx=m\n--profile=0\n--optShapes='a:b':1x2\n--profile=1\n--optShapes='a:b':3x4\n--useProfile=1\n--preview=+profileSharing0806",
             "--loadEngine=p\n--streams=2\n--exportTimes=t.json\n--nvtxMode=verbose\n--compat=11")
    for line in lines:
        yield b"\0" + line.encode()
    for text in ("image:1x3x224x224,'a,b':scalar,s:", "'in:0':C:\\x.bin,w*:4.5M"):
        yield b"\1" + text.encode()
    for text in ("fp16:chw,int8:chw32+chw,hwc", "50,99.9,100", "+ONEDNN,-OWN"):
        yield b"\2" + text.encode()
    yield b"\3TRT-8601-EntropyCalibration2\nx: 3c010a14\na:b c: 3f800000\nno scale\n"
    for text in ("1x80:4x80:8x80", "[1,2]:[3,4]:[5,6]"):
        yield b"\4" + text.encode()


def main(folder, name, cases_folder=None, models_folder=None, part="0/1"):
    seeds = {"onnx": lambda: [*models(), *list(runs(cases_folder))[::8]], "run": lambda: runs(cases_folder, models_folder), "value": lambda: values(cases_folder),
             "cpu": lambda: networks(cases_folder, models_folder), "plan": plans, "part": plans, "cache": caches, "npz": archives, "json": texts, "certificate": certificates, "safetensors": safetensors,
             "saved": saved, "accuracy": accuracy, "torch": torch, "text": text, "trtexec": trtexec}[name]
    k, n = map(int, part.split("/"))
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(f"{folder}/seed*"):
        os.remove(old)
    for i, data in enumerate(seeds()):
        if i % n == k:
            with open(f"{folder}/seed{i}", "wb") as f:
                f.write(data)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if 3 <= len(sys.argv) <= 6 else __doc__)
