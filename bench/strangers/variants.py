"""Models converted to 16 bits, optimized ones, and quantized ones."""
import contextlib
import io
import logging
import os
import subprocess
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

from data import draw
from forms4 import powers_of_two
from forms5_layers import in_set_21, quantizers_written_out
from net import Model


def like(model, proto):
    return Model(model.name, model.style, model.opset, model.batch, proto, model.inputs)


def to_half(model, keep_types, float_operators=()):
    """fp16 as ONNX Runtime's converter makes it: weights are rounded; keep_types: inputs and outputs stay float."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        proto = convert_float_to_float16(onnx.ModelProto.FromString(model.proto.SerializeToString()), keep_io_types=keep_types,
                                         op_block_list=[*DEFAULT_OP_BLOCK_LIST, *float_operators])
    return like(model, proto)


def to_mixed(model, rng):
    """About half of the operators stay in float, with casts between."""
    kinds = sorted({n.op_type for n in model.proto.graph.node})
    return to_half(model, True, [k for k in kinds if rng.random() < 0.5])


def fused_offline(model):
    """What ONNX Runtime saves with its own fused operators; None where there are none."""
    proto = optimized(model, ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)
    return like(model, proto) if any(n.domain not in ("", "ai.onnx") for n in proto.graph.node) else None


def optimized_offline(model):
    """What ONNX Runtime saves at its basic level: constants folded, nodes fused; None where it writes operators of its own."""
    proto = optimized(model, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)
    return like(model, proto) if all(n.domain in ("", "ai.onnx") for n in proto.graph.node) else None


def optimized(model, level):
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.optimized_model_filepath = os.path.join(folder, "model.onnx")
        options.log_severity_level = 4
        ort.InferenceSession(model.proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


class Samples(CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


# Networks that compute indices in floats, which nobody quantizes.
FLOAT_INDICES = {"flow_warp", "t5_encoder", "tab_net", "packed_llm", "neural_codec", "boosted", "even_trees", "sentence_vectors", "padded_in_front", "kept_boxes",
                 "quarter_joints", "quarter_marks", "oblivious_credit", "oblivious_prices"}
METHODS = {"MinMax", "Entropy", "Percentile"}
TYPES = {"U8S8": (QuantType.QUInt8, QuantType.QInt8), "S8S8": (QuantType.QInt8, QuantType.QInt8), "U8U8": (QuantType.QUInt8, QuantType.QUInt8),
         "S16S8": (QuantType.QInt16, QuantType.QInt8), "U16U8": (QuantType.QUInt16, QuantType.QUInt8)}
QUANTIZED = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"}


def quantize(model, rng, per_channel, samples=6, types="U8S8", format=QuantFormat.QDQ, operators=None, method="MinMax", extra=None, narrow=False, exclude=None):
    """By ONNX Runtime, calibrated on drawn data: QuantizeLinear and DequantizeLinear, or operators of integers."""
    if model.name in FLOAT_INDICES or model.opset < 13 and per_channel:  # scales of an axis are of opset 13
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "float.onnx"), os.path.join(folder, "int8.onnx")
        onnx.save(model.proto, source)
        logging.disable(logging.WARNING)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                quantize_static(source, target, Samples(draw(model, rng) for _ in range(samples)), quant_format=format,
                                op_types_to_quantize=operators, per_channel=per_channel, reduce_range=narrow, activation_type=TYPES[types][0],
                                weight_type=TYPES[types][1], calibrate_method=CalibrationMethod[method], extra_options=extra, nodes_to_exclude=exclude)
        finally:
            logging.disable(logging.NOTSET)
        proto = onnx.load(target)
    return like(model, proto) if any(n.op_type in QUANTIZED for n in proto.graph.node) else None


def quantize_any(model, rng):
    """One of the forms that users choose, with DequantizeLinear nodes."""
    return quantize(model, rng, model.opset >= 13 and bool(rng.integers(2)), types=str(rng.choice(["U8S8", "S8S8"])))


def quantize_further(model, rng):
    """The same, also with weights in bytes that have a middle of their own, and with ranges around zero."""
    types = str(rng.choice(["U8S8", "S8S8", "U8U8"]))
    extra = {"ActivationSymmetric": bool(rng.integers(2))} if types == "S8S8" else {}
    return quantize(model, rng, model.opset >= 13 and types != "U8U8" and bool(rng.integers(2)), types=types, extra=extra)


def quantize_in_style(model, rng, style):
    """As other tools write it: ranges around zero, biases or weights that stay float, a pair for each reader, scales that are shifts."""
    extra = {"symmetric": {"ActivationSymmetric": True, "WeightSymmetric": True}, "float biases": {"QuantizeBias": False},
             "float weights": {"AddQDQPairToWeight": True}, "pairs": {"DedicatedQDQPair": True}, "moving": {"CalibMovingAverage": True},
             "constant products": {"MatMulConstBOnly": True}, "float outputs": {"OpTypesToExcludeOutputQuantization": ["Conv", "MatMul", "Gemm"]},
             "removable": {"QDQKeepRemovableActivations": True}, "even ranges": {"CalibTensorRangeSymmetric": True}}.get(style, {})
    channels = model.opset >= 13 and style in ("symmetric", "float biases", "float weights")
    made = quantize(model, rng, channels, types="S8S8", extra=extra, operators={"products": ["MatMul", "Gemm"], "convolutions": ["Conv"]}.get(style), narrow=style == "narrow")
    return {"powers": powers_of_two, "written out": quantizers_written_out}[style](made, rng) if made and style in ("powers", "written out") else made


def quantize_some(model, rng):
    """Every other layer stays as it was, as where a search found it to matter; None where nodes have no names."""
    layers = [n.name for n in model.proto.graph.node if n.op_type in ("Conv", "MatMul", "Gemm")]
    if len(layers) < 3 or not all(layers):
        return None
    return quantize(model, rng, False, types="S8S8", operators=["Conv", "MatMul", "Gemm"], exclude=layers[1::2])


def quantize_to_sixteen(model, rng):
    """Activations in sixteen bits and weights in eight, by ONNX's own operators, which are of set 21."""
    model = in_set_21(model)
    return quantize(model, rng, False, types="S16S8", extra={"ActivationSymmetric": True}) if model else None


def quantize_to_sixteen_unsigned(model, rng):
    """The same without signs, with middles, as phones' chips have it."""
    model = in_set_21(model)
    return quantize(model, rng, False, types="U16U8") if model else None


def quantize_integers(model, rng, per_channel, types):
    """Operators of integers, of ONNX alone for convolutions and products."""
    return quantize(model, rng, per_channel, types=types, format=QuantFormat.QOperator, operators=["Conv", "MatMul"])


def quantize_at_run(model, rng):
    """Scales of activations are computed in the graph."""
    if model.name in FLOAT_INDICES:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "float.onnx"), os.path.join(folder, "int8.onnx")
        onnx.save(model.proto, source)
        logging.disable(logging.WARNING)
        try:
            quantize_dynamic(source, target, op_types_to_quantize=["Conv", "MatMul"],
                             weight_type=QuantType.QUInt8 if rng.integers(2) else QuantType.QInt8)
        finally:
            logging.disable(logging.NOTSET)
        proto = onnx.load(target)
    return like(model, proto) if any(n.op_type in QUANTIZED for n in proto.graph.node) else None


def quantize_by_assay(model, rng, assay, samples=6):
    """The same by `assay edit quantize`; None where it refuses."""
    if model.name in FLOAT_INDICES:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "float.onnx"), os.path.join(folder, "int8.onnx")
        onnx.save(model.proto, source)
        os.mkdir(os.path.join(folder, "inputs"))
        for i in range(samples):
            np.savez(os.path.join(folder, "inputs", f"{i}.npz"), **draw(model, rng))
        line = [str(assay), "edit", "quantize", source, "-o", target, "-i", os.path.join(folder, "inputs"), "--no-proof"]
        done = subprocess.run(line, capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0 or not os.path.exists(target):
            return None
        return like(model, onnx.load(target))
