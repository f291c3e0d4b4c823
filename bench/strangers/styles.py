"""How exporters write a graph: names, constants, and the form of composed operators.

A style is a row. A network is built through it, so that one architecture comes out as torch's, TensorFlow's or Paddle's
converter would write it.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    producer: str
    node: str           # name of a node; {op}, {low} (lower case), {scope}, {dots} (scope with dots), {k} (counter of the scope), {n} (of all)
    value: str          # name of its output k
    weight: str         # name of a weight
    constants: str      # "node": Constant nodes, "initializer"
    shapes: str         # an open batch in Reshape: "chain" (Shape, Gather, Concat), "minus" (-1), "zero" (0)
    linear: str         # "gemm" (on matrices), "matmul" (MatMul and Add)
    norm: str           # LayerNormalization: "fused", "pow" (Sub, Pow, Sqrt, Div), "mul" (tf: Mul, Rsqrt as Sqrt and Reciprocal)
    gelu: str           # "op" (from opset 20), "erf"
    softmax: str        # "op", "decomposed"
    sandwich: bool      # convolutions between Transposes, images NHWC
    opsets: tuple


STYLES = {
    "torch": Style("pytorch", "/{scope}/{op}{_k}", "/{scope}/{op}{_k}_output_{i}", "{dots}.{w}", "node", "chain", "gemm", "pow",
                   "erf", "op", False, (11, 13, 14)),
    "torch17": Style("pytorch", "/{scope}/{op}{_k}", "/{scope}/{op}{_k}_output_{i}", "{dots}.{w}", "node", "chain", "gemm",
                     "fused", "erf", "op", False, (17,)),
    "torch_old": Style("pytorch", "{op}_{n}", "{m}", "{dots}.{w}", "node", "chain", "gemm", "pow", "erf", "op", False, (11, 13)),
    "dynamo": Style("pytorch", "node_{op}_{n}", "{low}_{m}", "{dots}.{w}", "initializer", "minus", "gemm", "fused", "op", "op",
                    False, (18, 20)),
    "tf2onnx": Style("tf2onnx", "model/{scope}/{op}{_k}", "model/{scope}/{op}{_k}:{i}", "model/{scope}/{w}/ReadVariableOp:0",
                     "initializer", "minus", "matmul", "mul", "erf", "op", True, (11, 13, 15)),
    "keras2onnx": Style("keras2onnx", "{low}_{n}", "{low}_output{m}", "{dots}/{w}:0", "initializer", "zero", "matmul", "mul",
                        "erf", "decomposed", True, (11,)),
    "paddle": Style("PaddlePaddle", "p2o.{op}.{n}", "p2o.{op}.{m}", "{dots}.w_{n}_{w}", "node", "minus", "matmul", "pow", "erf",
                    "op", False, (11, 13)),
    # Made by hand or by a tool that names nothing but values.
    "unnamed": Style("", "", "t{m}", "{dots}_{w}", "initializer", "zero", "matmul", "pow", "erf", "op", False, (13, 17)),
}

# Of the second generation: later operator sets, other exporters, and what a simplifier leaves.
LATER = {
    "torch12": Style("pytorch", "{op}_{n}", "onnx::{op}_{m}", "{dots}.{w}", "node", "chain", "gemm", "pow", "erf", "op", False,
                     (12, 15, 16)),
    "dynamo21": Style("pytorch", "node_{low}_{n}", "{low}_{m}", "{dots}.{w}", "initializer", "minus", "gemm", "fused", "op", "op",
                      False, (19, 21)),
    "tf2onnx18": Style("tf2onnx", "StatefulPartitionedCall/model/{scope}/{op}{_k}", "StatefulPartitionedCall/model/{scope}/{op}{_k}:{i}",
                       "StatefulPartitionedCall/model/{scope}/{w}/ReadVariableOp:0", "initializer", "minus", "matmul", "mul", "erf", "op", True,
                       (16, 18)),
    "mindspore": Style("MindSpore", "Default/{scope}/{op}-op{n}", "Default/{scope}/{op}-op{n}_{i}", "{dots}.{w}", "initializer", "zero",
                       "matmul", "mul", "erf", "op", False, (11, 13)),
    "mxnet": Style("", "{low}{n}", "{low}{n}_{i}", "{dots}_{w}", "initializer", "zero", "gemm", "pow", "erf", "op", False, (12, 13)),
    "simplified": Style("pytorch", "/{scope}/{op}{_k}", "/{scope}/{op}{_k}_output_{i}", "{dots}.{w}", "initializer", "minus", "gemm",
                        "pow", "erf", "op", False, (14, 17)),
    "script20": Style("", "n{n}", "val_{m}", "{dots}.{w}", "initializer", "minus", "matmul", "pow", "erf", "decomposed", False,
                      (20, 21)),
}

# Of the third generation: what came from JAX, from Paddle's and torch's later exporters, from nnabla and from Chainer.
THIRD = {
    "jax": Style("jax2onnx", "node_{n}_{low}", "var_{m}", "{dots}_{w}", "initializer", "minus", "matmul", "pow", "erf", "decomposed", False,
                 (18, 21)),
    "paddle17": Style("PaddlePaddle", "pd_op.{low}.{n}", "pd_op.{low}.{n}.{i}", "{dots}_{n}.{w}_0", "node", "zero", "matmul", "fused", "erf",
                      "op", False, (17, 18)),
    "lightning": Style("pytorch", "/model/{scope}/{op}{_k}", "/model/{scope}/{op}{_k}_output_{i}", "model.{dots}.{w}", "node", "chain", "gemm",
                       "fused", "erf", "op", False, (17, 18)),
    "nnabla": Style("", "{scope}/{op}_{n}", "{scope}/{op}_{n}_y{i}", "{scope}/{w}", "initializer", "zero", "gemm", "mul", "erf", "op", False,
                    (11, 13)),
    "chainer": Style("Chainer", "{op}_{n}", "{op}_{n}_{i}", "param_{dots}_{w}", "initializer", "minus", "gemm", "pow", "erf", "op", False, (12, 15)),
}

# Of the fourth generation: optimum's and mmdeploy's exports, what Keras 3, Core ML and TVM write, and what ONNX-GraphSurgeon leaves.
FOURTH = {
    "optimum": Style("pytorch", "/{scope}/{low}/{op}{_k}", "/{scope}/{low}/{op}{_k}_output_{i}", "{dots}.{w}", "initializer", "chain", "matmul",
                     "fused", "erf", "op", False, (17, 18)),
    "mmdeploy": Style("pytorch", "{op}_{n}", "{m}", "{dots}.{w}", "initializer", "minus", "gemm", "pow", "erf", "op", False, (11, 12, 13)),
    "keras3": Style("tf2onnx", "functional_1/{scope}/{low}{_k}", "functional_1/{scope}/{low}{_k}:{i}", "functional_1/{scope}/{w}:0", "initializer",
                    "minus", "matmul", "mul", "erf", "op", True, (15, 17, 18)),
    "coreml": Style("OnnxMLTools", "{op}{n}", "{low}_{m}_output", "{dots}_{w}", "initializer", "zero", "gemm", "pow", "erf", "decomposed", False,
                    (11, 13)),
    "relay": Style("tvm", "{low}_{n}", "{low}_{m}", "p{n}_{w}", "node", "minus", "matmul", "mul", "erf", "decomposed", False, (11, 15)),
    "surgeon": Style("pytorch", "onnx_graphsurgeon_node_{n}", "onnx_graphsurgeon_tensor_{m}", "{dots}.{w}", "initializer", "zero", "gemm", "pow",
                     "erf", "op", False, (16, 17)),
    "onnxscript": Style("pytorch", "node_{op}_{n}", "val_{m}", "{dots}.{w}", "initializer", "chain", "gemm", "fused", "op", "op", False, (18, 20)),
}

# Of the fifth generation: ONNX Runtime's model builder, executorch's and Keras' own exporters, Burn's, and what a graph is after onnxslim.
FIFTH = {
    "builder": Style("onnxruntime-genai", "/model/{scope}/{op}{_k}", "/model/{scope}/{op}{_k}/output_{i}", "model.{dots}.{w}", "initializer", "zero", "matmul",
                     "fused", "erf", "op", False, (17, 18)),
    "keras_own": Style("", "{scope}/{low}{_k}", "{scope}/{low}{_k}:{i}", "{scope}/{w}/Read/ReadVariableOp:0", "initializer", "minus", "matmul", "mul",
                       "erf", "op", True, (15, 18)),
    "burn": Style("", "{low}{n}", "{low}{n}_out{i}", "{dots}.{w}", "node", "chain", "matmul", "pow", "erf", "op", False, (16, 18)),
    "slim": Style("pytorch", "{op}_{n}", "{scope}/{op}{_k}_output_{i}", "{dots}.{w}", "initializer", "zero", "gemm", "fused", "erf", "op", False, (17, 19)),
    "pnnx": Style("pnnx", "{low}_{n}", "{m}", "{dots}.{w}", "initializer", "minus", "gemm", "pow", "op", "op", False, (18, 20)),
}

# Of the sixth generation: scikit-learn's converter, torch's exporter of whole programs, tf2onnx from TensorFlow Lite, and Paddle's newer one.
SIXTH = {
    "skl": Style("skl2onnx", "N{n}", "{op}_C{i}", "{dots}_{w}cst", "initializer", "minus", "matmul", "pow", "erf", "op", False, (15, 17, 20)),
    "torch_export": Style("pytorch", "node_{op}_{n}", "{low}_{n}", "p_{dots}_{w}", "initializer", "chain", "gemm", "fused", "op", "op", False, (18, 20)),
    "tflite": Style("tf2onnx", "{scope}/{op}{_k};StatefulPartitionedCall", "{scope}/{op}{_k};StatefulPartitionedCall:{i}", "{scope}/{w};{n}", "initializer",
                    "minus", "matmul", "mul", "erf", "op", True, (13, 15, 18)),
    "pir": Style("PaddlePaddle", "p2o.pd_op.{low}.{n}", "p2o.pd_op.{low}.{n}.{i}", "{dots}.{w}_{n}", "initializer", "minus", "matmul", "fused", "erf", "op", False,
                 (17, 19)),
}

# Of the seventh generation: torch's exporter as it names values of whole programs, MLIR's, Olive's after its passes, and what PaddleDetection writes.
SEVENTH = {
    "torch_program": Style("pytorch", "n{n}_{low}", "{scope}.{low}_{m}", "{dots}.{w}", "initializer", "chain", "matmul", "fused", "op", "op", False, (18, 20, 21)),
    "mlir": Style("onnx-mlir", "", "%{m}", "{dots}_{w}_{n}", "node", "zero", "matmul", "mul", "erf", "decomposed", False, (13, 17)),
    "olive": Style("pytorch", "/{scope}/{op}_{k}/fused", "/{scope}/{op}_{k}/fused_{i}", "{dots}.{w}", "initializer", "zero", "gemm", "fused", "erf", "op", False, (16, 17, 19)),
    "detection": Style("PaddlePaddle", "{low}_{n}.tmp", "{low}_{n}.tmp_{i}", "{dots}_{n}.{w}_0", "node", "minus", "matmul", "pow", "erf", "op", False, (11, 13, 16)),
    "keras_tf": Style("tf2onnx", "{scope}/{op}{_k}", "{scope}/{op}{_k}:{i}", "{scope}/{w}/Read:0", "initializer", "minus", "matmul", "mul", "erf", "op", True, (13, 17)),
}

# Of the eighth generation: Olive's and ModelOpt's graphs, Quark's, ExecuTorch's notation, optimum's after its merges, and Hummingbird's.
EIGHTH = {
    "modelopt": Style("pytorch", "/{scope}/{op}{_k}_mo", "/{scope}/{op}{_k}_output_{i}_mo", "{dots}.{w}", "initializer", "chain", "gemm", "fused", "erf", "op", False, (19, 20, 21)),
    "quark": Style("pytorch", "{scope}/{op}_{n}", "{scope}/{op}_{n}_out{i}", "{dots}.{w}", "node", "minus", "matmul", "pow", "erf", "op", False, (17, 18)),
    "executor": Style("", "aten.{low}.default_{n}", "aten_{low}_default_{m}", "{dots}_{w}", "initializer", "minus", "gemm", "pow", "op", "op", False, (18, 20)),
    "hummingbird": Style("pytorch", "_operators.0.{op}_{n}", "_operators.0.{m}", "_operators.0.{dots}_{w}", "node", "chain", "gemm", "pow", "erf", "decomposed", False, (11, 13, 15)),
    "tf_signature": Style("tf2onnx", "PartitionedCall/{scope}/{op}{_k}", "PartitionedCall/{scope}/{op}{_k}:{i}", "Func/{scope}/{w}:0", "initializer", "minus", "matmul", "mul", "erf",
                          "op", True, (13, 16, 17)),
}
