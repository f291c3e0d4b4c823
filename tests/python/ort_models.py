"""The models that the scripts of ort_scripts/ use: save(FOLDER) writes them all."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

F = T.FLOAT
_draw = np.random.default_rng(7)
io = h.make_tensor_value_info


def weights(*shape, scale=0.3):
    """Random float32."""
    return (scale * _draw.standard_normal(shape)).astype(np.float32)


def model(name, nodes, inputs, outputs, constants=None, opset=17, **fields):
    """A model of the standard operators and those of ai.onnx.ml."""
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
    graph = h.make_graph(nodes, name, inputs, outputs, tensors, doc_string=fields.pop("graph_doc", ""))
    imports = [h.make_opsetid("", opset), h.make_opsetid("ai.onnx.ml", 3)]
    return h.make_model(graph, opset_imports=imports, ir_version=fields.pop("ir_version", 8), **fields)


def node(op, inputs, outputs, **attributes):
    """A node; inputs and outputs are names with spaces between them."""
    return h.make_node(op, inputs.split(" ") if inputs else [], outputs.split(" "), **attributes)


def mlp():
    """x float[batch,4] -> probabilities, with metadata."""
    made = model("mlp", [
        node("Gemm", "x w1 b1", "h1", name="fc1"), node("Relu", "h1", "a1", name="relu1"),
        node("Gemm", "a1 w2 b2", "logits", name="fc2"), node("Softmax", "logits", "probabilities", name="softmax", axis=1)],
        [io("x", F, ["batch", 4])], [io("probabilities", F, ["batch", 3])],
        {"w1": weights(4, 8), "b1": weights(8), "w2": weights(8, 3), "b2": weights(3)},
        producer_name="trainer", producer_version="1.2", domain="org.example", model_version=3, doc_string="a classifier",
        graph_doc="two layers")
    for key, value in (("classes", "setosa,versicolor,virginica"), ("stride", "32")):
        entry = made.metadata_props.add()
        entry.key, entry.value = key, value
    return made


def cnn():
    """input float[batch,3,32,32] -> output float[batch,10]."""
    return model("cnn", [
        node("Conv", "input c1 cb1", "f1", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", "f1", "r1"),
        node("MaxPool", "r1", "p1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p1 c2 cb2", "f2", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", "f2", "r2"),
        node("GlobalAveragePool", "r2", "g"), node("Flatten", "g", "flat"), node("Gemm", "flat w b", "output")],
        [io("input", F, ["batch", 3, 32, 32])], [io("output", F, ["batch", 10])],
        {"c1": weights(8, 3, 3, 3), "cb1": weights(8), "c2": weights(16, 8, 3, 3), "cb2": weights(16),
         "w": weights(16, 10), "b": weights(10)})


def arithmetic():
    """a, b float[3] -> sum, product; b may be left out: it has an initializer."""
    return model("arithmetic", [node("Add", "a b", "sum"), node("Mul", "a b", "product")],
                 [io("a", F, ["n"]), io("b", F, [3])], [io("sum", F, ["n"]), io("product", F, ["n"])],
                 {"b": np.array([1, 2, 3], np.float32)})


def half():
    """x float16[n,16] -> y float16[n,4]."""
    return model("half", [node("MatMul", "x w", "m"), node("Add", "m b", "s"), node("Tanh", "s", "y")],
                 [io("x", T.FLOAT16, ["n", 16])], [io("y", T.FLOAT16, ["n", 4])],
                 {"w": weights(16, 4).astype(np.float16), "b": weights(4).astype(np.float16)})


def iris():
    """float_input float[None,4] -> output_label int64, output_probability: a list of maps."""
    probability = h.make_value_info("output_probability", h.make_sequence_type_proto(
        h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(F, None))))
    return model("iris", [
        node("LinearClassifier", "float_input", "label scores", domain="ai.onnx.ml", classlabels_ints=[0, 1, 2],
             coefficients=[float(v) for v in weights(12)], intercepts=[0.1, 0.2, -0.3], multi_class=1, post_transform="SOFTMAX"),
        node("Cast", "label", "output_label", to=T.INT64),
        node("ZipMap", "scores", "output_probability", domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])],
        [io("float_input", F, [None, 4])], [io("output_label", T.INT64, [None]), probability])


def text():
    """labels int64[n] -> names string[n]."""
    return model("text", [node("LabelEncoder", "labels", "names", domain="ai.onnx.ml", keys_int64s=[0, 1, 2],
                               values_strings=["cat", "dog", "bird"], default_string="unknown")],
                 [io("labels", T.INT64, ["n"])], [io("names", T.STRING, ["n"])])


def words():
    """words string[n] -> ids int64[n]."""
    return model("words", [node("LabelEncoder", "words", "ids", domain="ai.onnx.ml", keys_strings=["a", "b", "héllo"],
                                values_int64s=[10, 20, 30], default_int64=-1)],
                 [io("words", T.STRING, ["n"])], [io("ids", T.INT64, ["n"])])


def sequences():
    """a, b float[None] -> items: a list; count int64."""
    return model("sequences", [node("SequenceConstruct", "a b", "items"), node("SequenceLength", "items", "count")],
                 [io("a", F, [None]), io("b", F, [None])],
                 [h.make_tensor_sequence_value_info("items", F, None), io("count", T.INT64, [])])


def pick():
    """items: a list of float arrays, index int64 -> item."""
    return model("pick", [node("SequenceAt", "items index", "item")],
                 [h.make_tensor_sequence_value_info("items", F, None), io("index", T.INT64, [])], [io("item", F, None)])


def lstm():
    """x float[steps,batch,5], h0, c0 -> y, hn, cn."""
    return model("lstm", [node("LSTM", "x w r b  h0 c0", "y hn cn", hidden_size=6)],
                 [io("x", F, ["steps", "batch", 5]), io("h0", F, [1, "batch", 6]), io("c0", F, [1, "batch", 6])],
                 [io("y", F, ["steps", 1, "batch", 6]), io("hn", F, [1, "batch", 6]), io("cn", F, [1, "batch", 6])],
                 {"w": weights(1, 24, 5), "r": weights(1, 24, 6), "b": weights(1, 48)})


def encoder():
    """input_ids, attention_mask int64[batch,seq] -> last_hidden_state, pooled."""
    return model("encoder", [
        node("Gather", "table input_ids", "e"), node("Cast", "attention_mask", "m", to=F),
        node("Unsqueeze", "m axis1", "m1"), node("Sub", "one m1", "inv"), node("Mul", "inv big", "bias"),
        node("MatMul", "e wq", "q"), node("MatMul", "e wk", "k"), node("MatMul", "e wv", "v"),
        node("Transpose", "k", "kt", perm=[0, 2, 1]), node("MatMul", "q kt", "s"), node("Add", "s bias", "sb"),
        node("Softmax", "sb", "p", axis=-1), node("MatMul", "p v", "o"), node("Add", "e o", "res"),
        node("LayerNormalization", "res g bt", "last_hidden_state", axis=-1),
        node("ReduceMean", "last_hidden_state", "pooled", axes=[1], keepdims=0)],
        [io("input_ids", T.INT64, ["batch", "seq"]), io("attention_mask", T.INT64, ["batch", "seq"])],
        [io("last_hidden_state", F, ["batch", "seq", 8]), io("pooled", F, ["batch", 8])],
        {"table": weights(50, 8, scale=1), "wq": weights(8, 8), "wk": weights(8, 8), "wv": weights(8, 8),
         "axis1": np.array([1]), "one": np.float32(1), "big": np.float32(-1e4), "g": np.ones(8, np.float32),
         "bt": weights(8)})


def decoder():
    """token int64[1,1], past float[1,past,8] -> logits float[1,1,20], present: the past with one more."""
    return model("decoder", [
        node("Gather", "table token", "e"), node("Concat", "past e", "present", axis=1),
        node("Transpose", "present", "pt", perm=[0, 2, 1]), node("MatMul", "e pt", "s"), node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p present", "c"), node("MatMul", "c w", "logits")],
        [io("token", T.INT64, [1, 1]), io("past", F, [1, "past", 8])],
        [io("logits", F, [1, 1, 20]), io("present", F, [1, "total", 8])],
        {"table": weights(20, 8, scale=1), "w": weights(8, 20, scale=1)})


def quantized():
    """x float[n,8] -> y: a product between quantizers."""
    return model("quantized", [
        node("QuantizeLinear", "x xs xz", "xq"), node("DequantizeLinear", "xq xs xz", "xd"),
        node("DequantizeLinear", "wq ws wz", "wd"), node("MatMul", "xd wd", "m"),
        node("QuantizeLinear", "m ys yz", "yq"), node("DequantizeLinear", "yq ys yz", "y")],
        [io("x", F, ["n", 8])], [io("y", F, ["n", 4])],
        {"xs": np.float32(0.03), "xz": np.uint8(128), "ws": np.float32(0.01), "wz": np.int8(0),
         "wq": _draw.integers(-100, 100, (8, 4)).astype(np.int8), "ys": np.float32(0.05), "yz": np.uint8(128)})


def branches():
    """flag bool, x float[3] -> y: 2x or -x."""
    def body(op):
        nodes = [node(op, "x two" if op == "Mul" else "x", "r")]
        return h.make_graph(nodes, op, [], [io("r", F, [3])])
    return model("branches", [h.make_node("If", ["flag"], ["y"], then_branch=body("Mul"), else_branch=body("Neg"))],
                 [io("flag", T.BOOL, []), io("x", F, [3])], [io("y", F, [3])], {"two": np.float32(2)})


def top():
    """scores float[batch,classes], k int64[1] -> values, indices."""
    return model("top", [node("TopK", "scores k", "values indices", axis=-1)],
                 [io("scores", F, ["batch", "classes"]), io("k", T.INT64, [1])],
                 [io("values", F, ["batch", None]), io("indices", T.INT64, ["batch", None])])


def found():
    """x float[n] -> positions int64[1,found], of what is not 0."""
    return model("found", [node("NonZero", "x", "positions")], [io("x", F, ["n"])], [io("positions", T.INT64, [1, "found"])])


def scalar():
    """x float -> y float, and whole int32[2] -> twice."""
    return model("scalar", [node("Mul", "x x", "y"), node("Add", "whole whole", "twice")],
                 [io("x", F, []), io("whole", T.INT32, [2])], [io("y", F, []), io("twice", T.INT32, [2])])


def static():
    """x float[1,3,8,8] -> y float[1,3,4,4], z: nothing open."""
    return model("static", [node("AveragePool", "x", "y", kernel_shape=[2, 2], strides=[2, 2]),
                            node("ReduceSum", "x", "z", keepdims=0)],
                 [io("x", F, [1, 3, 8, 8])], [io("y", F, [1, 3, 4, 4]), io("z", F, [])])


def types():
    """Casts of x float[n] to several types."""
    to = {"i8": T.INT8, "u8": T.UINT8, "i16": T.INT16, "i32": T.INT32, "i64": T.INT64, "f64": T.DOUBLE, "f16": T.FLOAT16,
          "flag": T.BOOL}
    return model("types", [node("Cast", "x", n, to=t) for n, t in to.items()], [io("x", F, ["n"])],
                 [io(n, t, ["n"]) for n, t in to.items()])


def vectorizer():
    """m: a map of texts to floats -> y float[1,3]."""
    wanted = h.make_value_info("m", h.make_map_type_proto(T.STRING, h.make_tensor_type_proto(F, None)))
    return model("vectorizer", [node("DictVectorizer", "m", "y", domain="ai.onnx.ml", string_vocabulary=["a", "b", "c"])],
                 [wanted], [io("y", F, None)])


def optional():
    """x: an optional float[2] -> has bool."""
    wanted = h.make_value_info("x", h.make_optional_type_proto(h.make_tensor_type_proto(F, [2])))
    return model("optional", [node("OptionalHasElement", "x", "has")], [wanted], [io("has", T.BOOL, [])], opset=18)


def random():
    """Nothing -> noise float[2,3]."""
    return model("random", [node("RandomNormal", "", "noise", shape=[2, 3])], [], [io("noise", F, [2, 3])])


ALL = (mlp, cnn, arithmetic, half, iris, text, words, sequences, pick, lstm, encoder, decoder, quantized, branches, top,
       found, scalar, static, types, vectorizer, optional, random)


def save(folder):
    """Writes NAME.onnx for each, and 'external.onnx' with its weights in a file beside it."""
    for make in ALL:
        onnx.save(make(), os.path.join(folder, make.__name__ + ".onnx"))
    onnx.save_model(mlp(), os.path.join(folder, "external.onnx"), save_as_external_data=True, location="external.bin",
                    size_threshold=0)
